//go:build linux

package acceptance_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/journal"
)

// acks is what somebody was told.
type acks struct {
	sessions map[string]bool
	entries  map[string]map[int64]string // by session and seq: the hash
}

func newAcks() *acks {
	return &acks{map[string]bool{}, map[string]map[int64]string{}}
}

// told adds what stint printed on standard output, as JSON lines.
func (a *acks) told(out string) {
	for _, v := range decodeLines[session](out, "stint.session/1") {
		a.sessions[v.ID] = true
	}
	for _, e := range decodeLines[entry](out, "stint.entry/1") {
		a.sessions[e.Session] = true
		if a.entries[e.Session] == nil {
			a.entries[e.Session] = map[int64]string{}
		}
		a.entries[e.Session][e.Seq] = e.Hash
	}
}

// missing says what of it the store does not have. all is its sessions, and read
// gets the journal of one.
func (a *acks) missing(all []session, read func(id string) []entry) []string {
	var lost []string
	there := map[string]bool{}
	for _, v := range all {
		there[v.ID] = true
	}
	for id := range a.sessions {
		if !there[id] {
			lost = append(lost, "session "+id)
		}
	}
	for id, told := range a.entries {
		if !there[id] {
			continue
		}
		have := map[int64]string{}
		for _, e := range read(id) {
			have[e.Seq] = e.Hash
		}
		for seq, hash := range told {
			if have[seq] != hash {
				lost = append(lost, fmt.Sprintf("entry %d of session %s", seq, id))
			}
		}
	}
	return lost
}

// sound checks what must hold of a store that nothing runs on: it verifies, what
// was told is there, and no session says that it runs.
func (s *site) sound(a *acks) []session {
	s.t.Helper()
	if !exists(s.store()) {
		if len(a.sessions) > 0 {
			s.t.Fatalf("there is no store, but sessions were acknowledged: %v", a.sessions)
		}
		return nil
	}
	if r := s.run("verify", "--all", "--states"); r.code != 0 {
		s.t.Fatalf("%s", r)
	}
	all := s.still()
	for _, v := range all {
		if v.Status == "pending" && v.Lease != nil && v.Reason != "interrupted" {
			s.t.Errorf("%s is pending, its runner is gone, and it does not say that it was interrupted: %q", v.Name, v.Reason)
		}
	}
	if lost := a.missing(all, s.entries); len(lost) > 0 {
		s.t.Errorf("acknowledged and not there: %s", strings.Join(lost, ", "))
	}
	return all
}

// still is all sessions, none of which says that it runs. What was killed while it
// forked has a child that holds its locks until it executes something, an instant
// later.
func (s *site) still() (all []session) {
	s.t.Helper()
	runs := func(v session) bool { return v.Status == "running" || v.Lease != nil && v.Lease.Live }
	if !soon(2*time.Second, func() bool {
		all = s.list()
		return !slices.ContainsFunc(all, runs)
	}) {
		v := all[slices.IndexFunc(all, runs)]
		s.t.Fatalf("%s is %s under a live lease, but nothing runs", v.Name, v.Status)
	}
	return all
}

// deed is a line of the ledger: an effect that took place.
type deed struct {
	Key    string          `json:"key"`
	Name   string          `json:"name"`
	Class  string          `json:"class"`
	Input  string          `json:"input"`
	Result json.RawMessage `json:"result"`
	PID    int             `json:"pid"`
}

// ledger is what the agents of the site did, oldest first.
func (s *site) ledger() (all []deed) {
	s.t.Helper()
	b, err := os.ReadFile(s.path("ledger"))
	if err != nil && !os.IsNotExist(err) {
		s.t.Fatal(err)
	}
	for l := range bytes.Lines(b) {
		all = append(all, decode[deed](s.t, string(l)))
	}
	return all
}

// quiet waits until no process of an agent lives, so that the ledger is final. All
// hold a lock while they live.
func (s *site) quiet() {
	s.t.Helper()
	if !soon(patience, func() bool { return alone(s.t, s.path("alive")) }) {
		s.t.Fatalf("processes of the agent are left %v after stint ended", patience)
	}
}

// alone reports whether nobody holds a lock on the file at path.
func alone(t *testing.T, path string) bool {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if os.IsNotExist(err) {
		return true
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
}

// honest checks the ledger by itself and against the journal of a session that has
// come to its end.
func (s *site) honest(id string) {
	s.t.Helper()
	for _, p := range dishonest(s.ledger(), id, s.entries(id)) {
		s.t.Error(p)
	}
}

// dishonest says what is wrong with a ledger: something of class once that took
// place twice, a key that was used for two inputs, a step that the journal records
// and that did not take place.
func dishonest(ledger []deed, id string, journaled []entry) (problems []string) {
	bad := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	done := map[string]deed{}
	for _, d := range ledger {
		first, twice := done[d.Key]
		switch {
		case twice && d.Class == "once":
			bad("step %s (once) took place twice under key %s", d.Name, d.Key)
		case twice && (first.Name != d.Name || first.Class != d.Class || first.Input != d.Input):
			bad("key %s was used for %s with input %s, and for %s with input %s", d.Key, first.Name, first.Input, d.Name, d.Input)
		}
		done[d.Key] = d
	}
	if len(done) == 0 {
		return problems // an agent that keeps none
	}
	sid, err := stint.ParseID(id)
	if err != nil {
		bad("%v", err)
	}
	for _, e := range journaled {
		if e.Kind != string(stint.StepCompleted) {
			continue
		}
		key := journal.Key(sid, stint.Position{Line: e.Pos.Line, Loop: e.Pos.Loop, Step: e.Pos.Step, Sub: e.Pos.Sub})
		if _, ok := done[key]; !ok {
			bad("entry %d records step %d.%d.%d as completed, but no effect took place under its key", e.Seq, e.Pos.Loop, e.Pos.Step, e.Pos.Sub)
		}
	}
	return problems
}

// theWord is the message that the agent in mode work waits for.
const theWord = "abracadabra"

// finish brings a session to its end.
func (s *site) finish(id string) session {
	s.t.Helper()
	return s.bring(id, func(session) bool { return false })
}

// bring brings a session to its end, or to where stop is true, with the plain
// binary, as a person would: it resumes it, gives it the message that it waits
// for, and settles doubts by what the ledger says.
func (s *site) bring(id string, stop func(session) bool) session {
	s.t.Helper()
	for range 40 {
		s.quiet()
		s.still()
		v := s.show(id)
		switch {
		case stop(v):
			return v
		case ended(v.Status) && v.Unread == 0:
			return v
		case ended(v.Status): // a restart was recorded, and its sender died
			s.went("restart", id, "--run", "--json")
			continue
		case v.Waiting == nil:
		case v.Waiting.For == "message" && v.Unread == 0:
			s.must("send", id, theWord)
		case v.Waiting.For == "doubt":
			s.settle(v)
		}
		s.went("resume", id, "--run", "--json")
	}
	s.t.Fatalf("%s does not come to an end: %s", id, s.must("show", id))
	return session{}
}

// went runs a command that drives a session: it may end with the session waiting,
// and with one that did not complete. An order may have come too late, where an
// earlier one, whose sender died, has done what it asks.
func (s *site) went(args ...string) {
	s.t.Helper()
	r := s.run(args...)
	late := r.code == 5 && strings.Contains(r.talk, "the session is not waiting")
	if r.code != 0 && r.code != 6 && r.code != 7 && !late {
		s.t.Fatalf("%s", r)
	}
}

// settle gives a person's word on the step in doubt, after a look at the ledger.
func (s *site) settle(v session) {
	s.t.Helper()
	if v.Waiting.Step == nil {
		s.t.Fatalf("%s waits for a doubt without a step: %s", v.Name, v.Waiting.What)
	}
	key := ""
	for _, st := range v.Steps {
		if st.Step == *v.Waiting.Step {
			key = st.Key
		}
	}
	if key == "" {
		s.t.Fatalf("stint show does not list the step in doubt, %s, with its key: %+v", *v.Waiting.Step, v.Steps)
	}
	address := v.ID + ":" + *v.Waiting.Step
	for _, d := range s.ledger() {
		if d.Key == key {
			s.must("resolve", address, "--happened", "--result", string(d.Result))
			return
		}
	}
	s.must("resolve", address, "--not")
}

func ended(status string) bool { return stint.Status(status).Ended() }

// course is how a workload ends if nothing disturbs it.
type course struct {
	status, reason, state, result string
	took                          time.Duration
}

// courseOf is how a session ended.
func (s *site) courseOf(v session) course {
	s.t.Helper()
	c := course{status: v.Status, reason: v.Reason, state: s.state(v.ID)}
	if v.Result != nil {
		c.result = v.Result.Text
	}
	return c
}

// undisturbed runs an agent once, without any fault.
func undisturbed(t *testing.T, env map[string]string, agent string) course {
	t.Helper()
	s := newSite(t, env, agent)
	begun := time.Now()
	s.went("run", mode(agent), "--json", "-p", "topic;")
	took := time.Since(begun)
	all := s.list()
	if len(all) != 1 {
		t.Fatalf("there are %d sessions", len(all))
	}
	v := s.finish(all[0].ID)
	s.honest(v.ID)
	c := s.courseOf(v)
	c.took = took
	if c.status != "completed" || c.state == "" {
		t.Fatalf("undisturbed, %s ends as %+v", agent, c)
	}
	return c
}

func mode(agent string) string { return strings.Fields(agent)[0] }

// same checks that a session that was disturbed ended as it would have otherwise.
func (s *site) same(v session, want course) {
	s.t.Helper()
	got := s.courseOf(v)
	got.took = want.took
	if got != want {
		s.t.Errorf("%s ended as\n%+v\nundisturbed it ends as\n%+v\n%s", v.Name, got, want, s.must("logs", v.ID))
	}
}

// TestCheckersReject shows that what the other tests lean on can fail.
func TestCheckersReject(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil, workAgent)
	a := newAcks()
	a.told(s.run("run", "work", "--json", "-p", "topic;").out)
	v := s.finish(s.list()[0].ID)
	a.told(s.must("show", v.ID, "--json"))
	ledger, es := s.ledger(), s.entries(v.ID)
	if p := dishonest(ledger, v.ID, es); len(p) > 0 {
		t.Fatalf("a sound ledger is refused: %v", p)
	}
	if lost := a.missing(s.list(), s.entries); len(lost) > 0 || len(a.entries[v.ID]) < 10 {
		t.Fatalf("lost %v of %d entries", lost, len(a.entries[v.ID]))
	}
	once := slices.IndexFunc(ledger, func(d deed) bool { return d.Class == "once" })
	safe := slices.IndexFunc(ledger, func(d deed) bool { return d.Class == "idempotent" })
	other := ledger[safe]
	other.Input = "another"
	for what, l := range map[string][]deed{
		"twice":    append(slices.Clone(ledger), ledger[once]),
		"another":  append(slices.Clone(ledger), other),
		"no place": slices.Delete(slices.Clone(ledger), once, once+1),
	} {
		if p := dishonest(l, v.ID, es); len(p) != 1 {
			t.Errorf("a ledger with something %s: %q", what, p)
		}
	}
	a.entries[v.ID][7] = "another hash"
	a.sessions["an invented one"] = true
	if lost := a.missing(s.list(), s.entries); len(lost) != 2 {
		t.Errorf("of an entry and a session that are not there it finds missing %v", lost)
	}
	if got := s.courseOf(v); got == (course{}) || got == undisturbed(t, nil, "work loops=2") {
		t.Errorf("two workloads are told to end alike: %+v", got)
	}
}

// keep copies a folder to where it outlives the test, if the test has failed, so
// that what is left can be looked at.
func (s *site) keep() {
	s.t.Cleanup(func() {
		to := os.Getenv("STINT_KEEP")
		if !s.t.Failed() || to == "" {
			return
		}
		dir := filepath.Join(to, strings.ReplaceAll(s.t.Name(), "/", "-"))
		if err := os.CopyFS(dir, os.DirFS(s.dir)); err != nil {
			s.t.Logf("keep: %v", err)
		}
		s.t.Logf("kept in %s", dir)
	})
}
