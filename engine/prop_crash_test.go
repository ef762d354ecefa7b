package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/internal/ident"
	"github.com/stint-dev/stint/journal"
	"github.com/stint-dev/stint/store/mem"
)

// For a small session every crash is tried: its runner dies at its first append, at
// its second, and so on to the last, before the append is durable and after, and a
// second runner takes over. Steps in doubt are settled by a person who looks at the
// outside world. The session must end as it does without a crash.
//
// A session is written as one word a loop, one letter a step:
//
//	r read   i idempotent   o once   m model   t tool, idempotent   T tool, once
//	x a read that fails once   d idempotent, with a definite error   B a read of a large result
//	( )  a group
//
// and, at the end of a word, what follows the loop:
//
//	w a wait for a message   z a wait for a time   f the loop fails at its first try
type spec []string

func exampleSpecs() []spec {
	return []spec{
		{"r"},
		{"o"},
		{"rio"},
		{"mtt", "mtT"},
		{"(roi)r"},
		{"(ooo)i"},
		{"xo", "oxf"},
		{"dof", "d"},
		{"rw", "ow", "i"},
		{"oz", "(tT)w", "rf"},
		{"BoB", "B"},
		{"", "", ""},
	}
}

// deed is a step as the outside world of a spec sees it.
type deed struct{ loop, step, sub int }

// theatre is the outside world of one session, and the store that its runners share.
type theatre struct {
	spec spec
	mem  *mem.Store

	mu    sync.Mutex
	deeds map[deed]int    // how often each took effect
	gave  map[deed]string // what each returned
	once  map[deed]bool   // those of the class
	tries map[deed]int    // how often each was begun
	keys  map[string]deed
	wrong error // what must not happen
}

// dying is the store as a process reaches it that dies at an append.
type dying struct {
	*mem.Store
	mu      sync.Mutex
	n       int  // appends so far
	at      int  // it dies at this one; 0: never
	after   bool // once that is durable
	gone    chan struct{}
	release func() error
}

func (d *dying) dead() bool {
	select {
	case <-d.gone:
		return true
	default:
		return false
	}
}

func (d *dying) die() {
	close(d.gone)
	_ = d.release()
}

func (d *dying) Hold(ctx context.Context, holder string) (func() error, error) {
	release, err := d.Store.Hold(ctx, holder)
	d.release = release
	return release, err
}

func (d *dying) Append(ctx context.Context, l stint.Lease, b stint.Batch, done func(error)) {
	d.mu.Lock()
	d.n++
	last := d.n == d.at
	d.mu.Unlock()
	switch {
	case d.dead():
		done(stint.Fenced)
	case last && d.after:
		d.Store.Append(ctx, l, b, func(error) {})
		d.die()
		done(stint.Fenced)
	case last:
		d.die()
		done(stint.Fenced)
	default:
		d.Store.Append(ctx, l, b, done)
	}
}

func (d *dying) Claim(ctx context.Context, c stint.Claim) ([]stint.Lease, error) {
	if d.dead() {
		return nil, nil
	}
	return d.Store.Claim(ctx, c)
}

func (d *dying) Renew(ctx context.Context, ttl time.Duration, held []stint.Lease) ([]stint.ID, error) {
	if d.dead() {
		return nil, stint.Unavailable
	}
	return d.Store.Renew(ctx, ttl, held)
}

// loop is the agent that does what the spec says.
func (th *theatre) loop(ctx context.Context, d *dying, l stint.Loop) (stint.Next, error) {
	n := l.Session().At.Loop
	word := th.spec[n-1]
	var log []string
	if l.State() != nil {
		if err := json.Unmarshal(l.State(), &log); err != nil {
			return stint.Next{}, err
		}
	}
	for _, m := range l.Inbox() {
		log = append(log, fmt.Sprintf("%d hears %s", n, m.Body))
	}
	for step := 1; word != "" && !strings.ContainsAny(word[:1], "wzf"); step++ {
		group, rest := word[:1], word[1:]
		if group == "(" {
			group, rest, _ = strings.Cut(rest, ")")
		}
		said, err := th.step(ctx, d, l, step, group, word[0] == '(')
		if err != nil {
			return stint.Next{}, err
		}
		log, word = append(log, said...), rest
	}
	if word == "f" && !d.dead() && th.try(deed{loop: n}) == 1 {
		return stint.Next{}, errBoom
	}
	state, err := stint.Marshal(log)
	next := stint.Next{State: state}
	switch {
	case n == len(th.spec):
		next.End = &stint.End{Reason: "over", Result: json.RawMessage(`"over"`)}
	case word == "w":
		next.Wait = &stint.Wait{For: stint.ForMessage}
	case word == "z":
		next.Wait = &stint.Wait{Until: time.Now().Add(time.Minute)}
	}
	return next, err
}

// step is one step or group, and what it leaves in the state.
func (th *theatre) step(ctx context.Context, d *dying, l stint.Loop, n int, letters string, group bool) ([]string, error) {
	steps := make([]stint.Step, len(letters))
	for i, c := range letters {
		s := stint.Step{Name: string(c), Effect: stint.Read, Kind: stint.Custom, Input: json.RawMessage(fmt.Sprint(n))}
		switch c {
		case 'i', 'd':
			s.Effect = stint.Idempotent
		case 'o':
			s.Effect = stint.Once
		case 'm':
			s.Kind = stint.Model
		case 't':
			s.Kind, s.Effect = stint.Tool, stint.Idempotent
		case 'T':
			s.Kind, s.Effect = stint.Tool, stint.Once
		}
		steps[i] = s
	}
	at := deed{loop: l.Session().At.Loop, step: n}
	if !group {
		res, err := l.Do(ctx, steps[0], func(ctx context.Context, key string) (stint.Result, error) {
			return th.act(d, at, steps[0], key)
		})
		return outcomes(at, []stint.Result{res}, []error{err})
	}
	res, err := l.DoAll(ctx, steps, func(ctx context.Context, i int, key string) (stint.Result, error) {
		at := at
		at.sub = i + 1
		<-time.After(time.Duration(len(steps)-i) * time.Millisecond)
		return th.act(d, at, steps[i], key)
	})
	errs := make([]error, len(steps))
	var members interface{ Members() []error }
	switch {
	case errors.As(err, &members):
		errs = members.Members()
	case err != nil:
		return nil, err
	}
	return outcomes(at, res, errs)
}

func outcomes(at deed, res []stint.Result, errs []error) ([]string, error) {
	var out []string
	for i, err := range errs {
		switch {
		case err == nil:
			out = append(out, fmt.Sprintf("%v %.40s", at, res[i].Data))
		case isDefinite(err):
			out = append(out, fmt.Sprintf("%v %v", at, err))
		default:
			return nil, err
		}
	}
	return out, nil
}

// act is a step's effect. The dead have none.
func (th *theatre) act(d *dying, at deed, s stint.Step, key string) (stint.Result, error) {
	if d.dead() {
		return stint.Result{}, errGone
	}
	if s.Name == "x" && th.try(at) == 1 {
		return stint.Result{}, errBoom
	}
	th.mu.Lock()
	defer th.mu.Unlock()
	th.deeds[at]++
	if other, known := th.keys[key]; known && other != at {
		th.wrong = fmt.Errorf("%v and %v have one key", at, other)
	}
	th.keys[key] = at
	th.once[at] = s.Effect == stint.Once
	if s.Name == "d" {
		return stint.Result{}, stint.Definite(stint.Denied.Errorf("ask", "no\nbecause caf\xe9 is closed"))
	}
	data := fmt.Sprintf("%q", fmt.Sprint(at))
	if s.Name == "B" {
		data = fmt.Sprintf("%q", strings.Repeat(fmt.Sprint(at), 500))
	}
	th.gave[at] = data
	return stint.Result{Data: json.RawMessage(data)}, nil
}

func (th *theatre) try(at deed) int {
	th.mu.Lock()
	defer th.mu.Unlock()
	th.tries[at]++
	return th.tries[at]
}

// crash is the append at which a runner dies, and whether that is durable.
type crash struct {
	at    int
	after bool
}

// ending is how a session ended.
type ending struct {
	status  stint.Status
	reason  string
	state   string
	died    int // runners that did
	attempt int // highest attempt at any loop
	journal string
}

// play runs the session with runners that die as given, one after the other, and
// then one that does not.
func (sp spec) play(t *testing.T, crashes ...crash) (end ending, err error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		th := &theatre{spec: sp, mem: mem.New(), deeds: map[deed]int{}, gave: map[deed]string{}, once: map[deed]bool{}, tries: map[deed]int{}, keys: map[string]deed{}}
		end, err = th.play(t, crashes)
	})
	return end, err
}

func (th *theatre) play(t *testing.T, crashes []crash) (ending, error) {
	t.Helper()
	r := &rig{t: t, store: &mortal{Store: th.mem}}
	desk, err := engine.New(t.Context(), th.mem, engine.Options{Holder: "desk"})
	if err != nil {
		return ending{}, err
	}
	c, err := desk.Start(t.Context(), engine.Request{Agent: engine.Agent{Name: "a", Loop: stint.AgentFunc(nil)}, Input: []byte("go")})
	if err != nil {
		return ending{}, err
	}
	end, died := ending{}, 0
	for range len(crashes) + 1 {
		d := &dying{Store: th.mem, gone: make(chan struct{})}
		if died < len(crashes) {
			d.at, d.after = crashes[died].at, crashes[died].after
		}
		if err = th.run(t, c.ID, d, fmt.Sprintf("r%d", died)); err != nil || !d.dead() {
			break
		}
		died++
	}
	if err := desk.Close(); err != nil {
		return end, err
	}
	end.journal, end.died = r.journal(c.ID), died
	if err == nil {
		err = th.judge(r, c.ID, &end)
	}
	if err != nil {
		err = fmt.Errorf("%w\n%s", err, end.journal)
	}
	return end, err
}

// run is one runner, until it dies or the session has ended.
func (th *theatre) run(t *testing.T, id stint.ID, d *dying, name string) error {
	a := engine.Agent{Name: "a", Retry: engine.Retry{Attempts: -1}, Loop: stint.AgentFunc(func(ctx context.Context, l stint.Loop) (stint.Next, error) {
		return th.loop(ctx, d, l)
	})}
	e, err := engine.New(t.Context(), d, engine.Options{Agents: []engine.Agent{a}, Holder: name})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- e.Serve(ctx) }()
	live := func() error {
		for range 20_000 {
			synctest.Wait()
			row, err := th.mem.Session(ctx, id)
			if err != nil || row.Session.Status.Ended() || d.dead() {
				return err
			}
			if err := th.help(ctx, &row); err != nil {
				return err
			}
			<-time.After(100 * time.Millisecond)
		}
		return errors.New("it does not come to an end")
	}
	err = live()
	cancel()
	return errors.Join(err, <-done, e.Close())
}

// help is what a person does for a session that waits for one.
func (th *theatre) help(ctx context.Context, row *stint.Row) error {
	w := row.Session.Wait
	if row.Session.Status != stint.Waiting || row.Unread > 0 {
		return nil
	}
	m := stint.Message{ID: ident.New().String(), From: "human:ana"}
	switch w.For {
	case stint.ForMessage:
		m.Kind, m.Body = stint.Prompt, fmt.Appendf(nil, "the prompt after loop %d", row.Session.At.Loop)
	case stint.ForDoubt:
		at := w.Step
		c := journal.Command{Step: &at, Verdict: journal.NotHappened}
		th.mu.Lock()
		if gave, ok := th.gave[deed{at.Loop, at.Step, at.Sub}]; ok {
			c.Verdict, c.Result = journal.Happened, json.RawMessage(gave)
		}
		th.mu.Unlock()
		m = message(stint.Resolve, c)
		m.ID, m.From = ident.New().String(), "human:ana"
	default:
		return nil
	}
	return th.mem.Send(ctx, row.Session.ID, m)
}

// judge fills in how the session ended and says what is wrong with that.
func (th *theatre) judge(r *rig, id stint.ID, end *ending) error {
	s := r.row(id).Session
	state, err := journal.ReadState(s.Checkpoint, engine.Source(r.t.Context(), th.mem, id, s.Family))
	if err != nil {
		return err
	}
	end.status, end.reason, end.state = s.Status, s.Reason, string(state)
	var v journal.Verifier
	for _, e := range r.entries(id) {
		if err := v.Add(e); err != nil {
			return err
		}
		end.attempt = max(end.attempt, e.Pos.Attempt)
	}
	if th.wrong != nil {
		return th.wrong
	}
	for at, n := range th.deeds {
		if th.once[at] && n != 1 {
			return fmt.Errorf("the once step %v took effect %d times", at, n)
		}
	}
	return nil
}

// crashed compares a session that crashed with one that did not.
func (sp spec) crashed(t *testing.T, want ending, crashes ...crash) (ending, error) {
	t.Helper()
	got, err := sp.play(t, crashes...)
	switch {
	case err != nil:
	case got.status != want.status || got.reason != want.reason || got.state != want.state:
		err = fmt.Errorf("it ended %s (%s) with %s, without a crash %s (%s) with %s\n%s", got.status, got.reason, got.state, want.status, want.reason, want.state, got.journal)
	case got.attempt > want.attempt+got.died:
		err = fmt.Errorf("attempt %d after %d deaths, without them %d\n%s", got.attempt, got.died, want.attempt, got.journal)
	}
	if err != nil {
		err = fmt.Errorf("%q with crashes %v: %w", sp, crashes, err)
	}
	return got, err
}

func TestEveryCrash(t *testing.T) {
	for _, sp := range exampleSpecs() {
		t.Run(strings.Join(sp, " "), func(t *testing.T) {
			want, err := sp.play(t)
			if err != nil || want.status != stint.Completed {
				t.Fatalf("%s: %v", want.status, err)
			}
			n := 0
			for _, after := range []bool{false, true} {
				for at := 1; ; at++ {
					got, err := sp.crashed(t, want, crash{at, after})
					if err != nil {
						t.Fatal(err)
					}
					if got.died == 0 {
						n += at - 1
						break
					}
				}
			}
			if n < 4 {
				t.Errorf("only %d crashes were tried", n)
			}
		})
	}
}

// TestEveryTwoCrashes lets the successor die as well.
func TestEveryTwoCrashes(t *testing.T) {
	specs := []spec{{"ro"}, {"(oo)"}, {"iow", "o"}}
	if long() {
		specs = exampleSpecs()
	}
	for _, sp := range specs {
		t.Run(strings.Join(sp, " "), func(t *testing.T) {
			want, err := sp.play(t)
			if err != nil {
				t.Fatal(err)
			}
			for _, after := range []int{0, 1, 2, 3} {
				for first, died := 1, 1; died > 0; first++ {
					died = 0
					for second, again := 1, 2; again == 2; second++ {
						got, err := sp.crashed(t, want, crash{first, after&1 == 0}, crash{second, after&2 == 0})
						if err != nil {
							t.Fatal(err)
						}
						again, died = got.died, max(died, got.died)
					}
				}
			}
		})
	}
}

// TestAnyCrash draws the session as well.
func TestAnyCrash(t *testing.T) {
	step := rapid.SampledFrom([]string{"r", "i", "o", "m", "t", "T", "x", "d", "B", "(ro)", "(oi)", "(xr)", "(mtT)"})
	word := rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(step, 0, 4).Draw(t, "steps"), "") + rapid.SampledFrom([]string{"", "", "w", "z", "f"}).Draw(t, "then")
	})
	rapid.Check(t, func(rt *rapid.T) {
		sp := spec(rapid.SliceOfN(word, 1, 3).Draw(rt, "session"))
		crashes := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) crash {
			return crash{rapid.IntRange(1, 15).Draw(t, "at"), rapid.Bool().Draw(t, "after")}
		}), 1, 2).Draw(rt, "crashes")
		want, err := sp.play(t)
		if err != nil {
			rt.Fatal(err)
		}
		if _, err := sp.crashed(t, want, crashes...); err != nil {
			rt.Fatal(err)
		}
	})
}
