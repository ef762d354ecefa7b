package cases_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// occurrence is what the cases look at in a line of a schedule's history.
type occurrence struct {
	Outcome, Reason, Session string
	Manual                   bool
	From                     time.Time
}

// history is that of a schedule, oldest line first.
func (v *server) history(name string) []occurrence {
	v.t.Helper()
	all := unmarshal[struct{ Items []occurrence }](v.t, v.gets("/v1/schedules/"+name+"/occurrences?limit=500")).Items
	slices.SortStableFunc(all, func(a, b occurrence) int { return a.From.Compare(b.From) })
	return all
}

// ran are the sessions that came of a schedule's times.
func ran(all []occurrence) (ids []string) {
	for _, o := range all {
		if o.Session != "" && !o.Manual {
			ids = append(ids, o.Session)
		}
	}
	return ids
}

// scheduled is a site with a schedule that is due each second while its session before has
// ended. Its agent waits in the first session for a file go.
func scheduled(t *testing.T, effect string) *site {
	t.Helper()
	s := newSite(t)
	s.write("stint.yaml", fmt.Sprintf(`agents:
  hold: {kind: exec, protocol: none, effect: %s, command: [sh, -c, 'echo $STINT_SESSION >> begun; until [ -e go ]; do sleep 0.05; done']}
schedules:
  often: {agent: hold, every: 1s, overlap: skip}
`, effect))
	return s
}

// began waits until the agent has begun so often, and returns the sessions.
func (s *site) began(n int) (ids []string) {
	s.t.Helper()
	await(s.t, fmt.Sprintf("beginning no. %d", n), func() bool {
		ids = lines(s.t, s.path("begun"))
		return len(ids) >= n
	})
	return ids
}

// TestC06NotStuck: a server is killed while a session of a schedule runs. Without a server
// the session is said to be interrupted, and not to run. The next server goes on with it
// at once, what is fired by hand is not held up by it, and when it has ended the next time
// fires (openclaw/openclaw#30096, openclaw/openclaw#18120, nextlevelbuilder/goclaw#797,
// stakpak/agent#556, NousResearch/hermes-agent#55386).
func TestC06NotStuck(t *testing.T) {
	t.Parallel()
	s := scheduled(t, "read")
	v := s.serves()
	id := s.began(1)[0]
	v.run.kill()
	s.is(s.show(id), "pending", "interrupted")
	v = s.serves()
	if again := s.began(2); again[1] != id {
		t.Errorf("the next server began %s, not %s", again[1], id)
	}
	if now := v.session(id); now.Status != "running" {
		t.Errorf("the session is %s", now.Status)
	}
	v.orders("/v1/schedules/often/fire", `{"reason":"now"}`)
	if fired := s.began(3); fired[2] == id {
		t.Errorf("what was fired is the old session")
	}
	await(t, "time that is skipped", func() bool {
		return slices.ContainsFunc(v.history("often"), func(o occurrence) bool { return o.Outcome == "skipped" && o.Reason == "overlap" })
	})
	s.write("go", "")
	v.becomes(id, "completed")
	await(t, "time that fires", func() bool { return len(ran(v.history("often"))) > 1 })
	v.ends()
	if kinds := kindsOf(s.journal(id)); !strings.Contains(kinds, "loop.started lease.lost loop.started") {
		t.Errorf("the journal does not say that it was interrupted: %s", kinds)
	}
	s.verified()
}

// TestC06InDoubt: one that nobody may run again is not stuck either: it waits for a
// person, is found among what is bad, and the schedule says what holds it up until that
// person says what happened.
func TestC06InDoubt(t *testing.T) {
	t.Parallel()
	s := scheduled(t, "once")
	v := s.serves()
	id := s.began(1)[0]
	v.run.kill()
	s.write("go", "")
	v = s.serves()
	s.is(v.becomes(id, "waiting"), "waiting", "doubt")
	if bad := unmarshal[struct{ Items []shown }](t, v.gets("/v1/sessions?bad=true")).Items; len(bad) != 1 || bad[0].ID != id {
		t.Errorf("bad are %+v", bad)
	}
	await(t, "time that is skipped", func() bool {
		return slices.ContainsFunc(v.history("often"), func(o occurrence) bool { return o.Outcome == "skipped" && o.Reason == "overlap" })
	})
	v.orders("/v1/sessions/"+id+"/resolve", `{"verdict":"not","reason":"looked at it"}`)
	v.becomes(id, "completed")
	await(t, "time that fires", func() bool { return len(ran(v.history("often"))) > 1 })
	if n := slices.Compact(s.began(3)); n[0] != id || len(n) < 2 {
		t.Errorf("the agent began for %v", n)
	}
	v.ends()
	s.verified()
}

// kindsOf are the kinds of entries, in order.
func kindsOf(all []wrote) string {
	var kinds []string
	for _, e := range all {
		kinds = append(kinds, e.Kind)
	}
	return strings.Join(kinds, " ")
}

// waves is how often the flood of TestC09 comes with 8 and with 64 at once.
func waves() int {
	if long() {
		return 20
	}
	return 3
}

// TestC09LockedByABackup: a flood of deliveries and of sessions begun over the API, while
// others read, an agent works in another process, and the store is backed up over and
// over. Nobody is told that the database is locked, nothing that was acknowledged is lost,
// and each backup is sound and has all that was acknowledged before it began
// (arcee-ai/nac#213, NousResearch/hermes-agent#74478, phnx-labs/agi-cli#2479,
// zai-org/feedback#625).
func TestC09LockedByABackup(t *testing.T) {
	t.Parallel()
	const done = 400
	s := hooked(t, inPython(t, "count", "counts.py", fmt.Sprint(done)), "gh: {agent: keep, scheme: github, secret: env:HOOK_SECRET}")
	v := s.serves("--no-run") // what runs is the agent in a process of its own
	f := &flood{server: v}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var beside sync.WaitGroup
	for _, path := range []string{"/v1/sessions?limit=500", "/v1/hooks/gh/deliveries?limit=500", "/healthz"} {
		beside.Go(func() { f.reads(ctx, path) })
	}
	var backups []backup
	beside.Go(func() { backups = f.backsUp(ctx) })
	agent := s.start("run", "count", "--json")
	for _, at := range []int{8, 64} {
		for wave := range waves() {
			f.wave(fmt.Sprintf("%d-%d", at, wave), at)
		}
	}
	agent.ends(0)
	await(t, "backup that has something in it", func() bool { return f.backed() })
	stop()
	beside.Wait()
	for what, found := range map[string]string{"the server": v.logged(), "the agent": agent.talk.String()} {
		if strings.Contains(found, "locked") || strings.Contains(found, `"level":"ERROR"`) {
			t.Errorf("%s says: %s", what, clip(found))
		}
	}
	v.ends()
	made := s.all()
	if f.has(made); len(made) != len(f.acked)+1 {
		t.Errorf("there are %d sessions, and %d were acknowledged", len(made), len(f.acked))
	}
	if of := s.steps(made); of != done {
		t.Errorf("the agent did %d steps, and %d are there", done, of)
	}
	s.verified()
	if len(backups) == 0 {
		t.Fatal("there is no backup")
	}
	last := backups[len(backups)-1]
	for _, b := range []backup{backups[0], last} {
		if u := s.start("verify", "--all", "--states", "--store", "sqlite:"+b.path); u.ends(-1) == "" || u.cmd.ProcessState.ExitCode() != 0 {
			t.Errorf("a backup is not sound: %s", u)
		}
		there := unmarshal[struct{ Items []shown }](t, s.must("ps", "-a", "--json", "--store", "sqlite:"+b.path)).Items
		f.hasFirst(there, b.acked)
	}
	t.Logf("%d sessions began, beside %d backups, the last of which has %d or more, and %d reads", len(f.acked), len(backups), last.acked, f.read)
}

// steps is how many the one session of the agent count has finished.
func (s *site) steps(all []shown) int {
	s.t.Helper()
	i := slices.IndexFunc(all, func(v shown) bool { return v.Totals.Steps > 0 })
	if i < 0 {
		s.t.Fatal("no session has a step")
	}
	return len(of(s.journal(all[i].ID), "step.completed"))
}

// backup is a copy of a store, and how many sessions were acknowledged when it began.
type backup struct {
	path  string
	acked int
}

// flood is what comes to a server at once.
type flood struct {
	*server

	mu    sync.Mutex
	acked []string // sessions, in the order of their answers
	most  int      // how many the newest backup has at least
	read  int
}

// wave sends so many deliveries and as many requests that begin a session, all at once.
func (f *flood) wave(name string, n int) {
	f.t.Helper()
	var wg sync.WaitGroup
	for i := range n {
		body := fmt.Sprintf(`{"n":%q,"x":%q}`, fmt.Sprint(name, "-", i), strings.Repeat("x", 2000))
		wg.Go(func() { f.acks(f.sends("gh", body, gitHub(fmt.Sprint(name, "-", i), body)), 202) })
		wg.Go(func() {
			f.acks(f.asks(f.t.Context(), http.MethodPost, "/v1/sessions", strings.NewReader(`{"agent":"keep","prompt":"go"}`), nil), 201)
		})
	}
	wg.Wait()
}

// acks takes an answer that has to have that status.
func (f *flood) acks(a answer, status int) {
	if a.err != nil || a.status != status {
		f.t.Errorf("got %d, want %d: %v %s", a.status, status, a.err, clip(a.text))
		return
	}
	var d struct{ Session, ID string }
	if err := json.Unmarshal([]byte(a.text), &d); err != nil {
		f.t.Errorf("%v in %s", err, clip(a.text))
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.acked = append(f.acked, cmp.Or(d.Session, d.ID))
}

// reads asks for a list until ctx ends.
func (f *flood) reads(ctx context.Context, path string) {
	for ctx.Err() == nil {
		a := f.asks(ctx, http.MethodGet, path, http.NoBody, nil)
		if ctx.Err() == nil && (a.err != nil || a.status != http.StatusOK) {
			f.t.Errorf("%s: %d %v %s", path, a.status, a.err, clip(a.text))
			return
		}
		f.mu.Lock()
		f.read++
		f.mu.Unlock()
	}
}

// backsUp backs the store up until ctx ends, once at least.
func (f *flood) backsUp(ctx context.Context) (all []backup) {
	for len(all) == 0 || ctx.Err() == nil {
		f.mu.Lock()
		b := backup{f.path(fmt.Sprintf("backup-%d.db", len(all))), len(f.acked)}
		f.mu.Unlock()
		u := f.start("db", "backup", b.path)
		<-u.done
		if u.cmd.ProcessState.ExitCode() != 0 {
			f.t.Errorf("%s", u)
			return all
		}
		if len(all) > 2 { // the first one and the newest ones are looked at
			_ = os.Remove(all[len(all)-2].path)
		}
		f.mu.Lock()
		f.most = b.acked
		f.mu.Unlock()
		all = append(all, b)
	}
	return all
}

// backed reports whether a backup has begun after a session was acknowledged.
func (f *flood) backed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.most > 0
}

// has checks that each session that was acknowledged is there.
func (f *flood) has(there []shown) { f.t.Helper(); f.hasFirst(there, len(f.acked)) }

// hasFirst checks the same of the first n.
func (f *flood) hasFirst(there []shown, n int) {
	f.t.Helper()
	ids := map[string]bool{}
	for _, v := range there {
		ids[v.ID] = true
	}
	for _, id := range f.acked[:n] {
		if !ids[id] {
			f.t.Errorf("the session %s was acknowledged and is not there", id)
		}
	}
}
