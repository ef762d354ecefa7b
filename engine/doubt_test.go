package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/internal/ident"
	"github.com/stint-dev/stint/journal"
)

// payer has a loop that is completed, and a second one that pays. What becomes of a
// payment is not known as long as lost says so.
type payer struct {
	lost bool
	paid int
	got  []string // results of the payments
	name string   // of the step
}

func (p *payer) agent() engine.Agent {
	return agent("a", func(ctx context.Context, l stint.Loop) (stint.Next, error) {
		if l.Session().At.Loop == 1 {
			return stint.Next{State: json.RawMessage(`"one"`)}, nil
		}
		if _, err := step(ctx, l, "look", stint.Read, text("seen")); err != nil {
			return stint.Next{}, err
		}
		res, err := l.Do(ctx, stint.Step{Name: or(p.name, "pay"), Effect: stint.Once, Input: json.RawMessage(`5`)}, func(context.Context, string) (stint.Result, error) {
			if p.paid++; p.lost {
				return stint.Result{}, errBoom
			}
			return stint.Result{Data: json.RawMessage(`"paid"`)}, nil
		})
		if err != nil {
			return stint.Next{}, err
		}
		p.got = append(p.got, string(res.Data))
		return stint.Next{End: &stint.End{}}, nil
	})
}

func or(a, b string) string {
	if a == "" {
		return b
	}
	return a
}

// refusals returns why messages to the session were refused, in order.
func (r *rig) refusals(id stint.ID) (why []string) {
	for _, e := range r.entries(id) {
		if e.Kind == stint.MessageRefused {
			d, err := journal.Decode[journal.Taken](&e)
			if err != nil {
				r.t.Fatal(err)
			}
			why = append(why, d.Why)
		}
	}
	return why
}

// TestAnOpenDoubtStaysOpen sends every order to a session that waits for a person's
// word on a step, to one that a runner serves and to one that nobody holds.
func TestAnOpenDoubtStaysOpen(t *testing.T) {
	one := 1
	for name, c := range map[string]struct {
		kind stint.MessageKind
		c    journal.Command
		want string // of the refusal
	}{
		"pause":            {stint.Pause, journal.Command{}, "its question stays open"},
		"pause now":        {stint.Pause, journal.Command{Now: true}, "its question stays open"},
		"interrupt":        {stint.Interrupt, journal.Command{}, "its question stays open"},
		"resume":           {stint.Resume, journal.Command{}, "step 2.2 pay is in doubt"},
		"restart here":     {stint.Restart, journal.Command{Say: "go on"}, "step 2.2 pay is in doubt"},
		"restart from 1":   {stint.Restart, journal.Command{From: &one}, "step 2.2 pay is in doubt"},
		"restart and ask":  {stint.Restart, journal.Command{From: &one, InDoubt: journal.AskDoubt}, "choose skip or redo"},
		"with a state":     {stint.Restart, journal.Command{State: json.RawMessage(`1`)}, "step 2.2 pay is in doubt"},
		"rollback":         {stint.Rollback, journal.Command{From: &one}, "step 2.2 pay is in doubt"},
		"a choice of none": {stint.Restart, journal.Command{From: &one, InDoubt: "hope"}, `in_doubt is "hope"`},
		"another step":     {stint.Resolve, journal.Command{Step: &stint.Position{Loop: 2, Step: 1}, Verdict: journal.Happened}, "the step in doubt is 2.2"},
		"a limit":          {stint.SetLimit, journal.Command{Limits: &stint.Limits{Steps: 90}}, ""},
	} {
		for _, held := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, served %v", name, held), func(t *testing.T) {
				inBubble(t, func(r *rig) {
					p := &payer{lost: true}
					a := p.agent()
					n := r.serve(engine.Options{Agents: []engine.Agent{a}, Holder: "r1"})
					id := r.start(n.Engine, a, "")
					r.settles(id, stint.Waiting)
					if !held {
						n.stop()
					}
					r.send(id, c.kind, c.c)
					if !held {
						e := r.engine(engine.Options{Holder: "tool"})
						if err := e.Settle(r.t.Context(), id); err != nil {
							t.Error(err)
						}
						r.closes(e)
					}
					<-time.After(10 * time.Second)
					s := r.row(id).Session
					if s.Status != stint.Waiting || s.Wait.For != stint.ForDoubt || s.At.Line != 0 || p.paid != 1 || r.row(id).Unread != 0 {
						t.Errorf("%s\n%s", s.Status, r.journal(id))
					}
					if why := strings.Join(r.refusals(id), "; "); !strings.Contains(why, c.want) || c.want == "" && why != "" {
						t.Errorf("it was refused: %q", why)
					}
					if held {
						n.stop()
					}
					r.verifies(id)
				})
			})
		}
	}
}

// TestADivergenceCanBeResumed is the other question: the agent may have been mended.
func TestADivergenceCanBeResumed(t *testing.T) {
	inBubble(t, func(r *rig) {
		fails := true
		name := "list"
		a := agent("a", func(ctx context.Context, l stint.Loop) (stint.Next, error) {
			if _, err := step(ctx, l, name, stint.Read, text("l")); err != nil {
				return stint.Next{}, err
			}
			if fails {
				fails, name = false, "lists"
				return stint.Next{}, errBoom
			}
			return stint.Next{End: &stint.End{}}, nil
		})
		n := r.serve(engine.Options{Agents: []engine.Agent{a}, Holder: "r1"})
		id := r.start(n.Engine, a, "")
		for w := r.settles(id, stint.Waiting).Wait; w.For != stint.ForDoubt; w = r.settles(id, stint.Waiting).Wait {
			<-time.After(time.Second)
		}
		r.send(id, stint.Pause, journal.Command{})
		<-time.After(time.Second)
		if w := r.row(id).Session.Wait; w.For != stint.ForDoubt {
			t.Errorf("a pause hides both sides of it: it waits for %s", w.For)
		}
		name = "list"
		r.send(id, stint.Resume, journal.Command{})
		r.settles(id, stint.Completed)
		n.stop()
	})
}

// TestSettleSettlesAll sends several orders at once to a session that nobody holds.
func TestSettleSettlesAll(t *testing.T) {
	type sent struct {
		kind stint.MessageKind
		c    journal.Command
	}
	order := func(k stint.MessageKind) sent { return sent{k, journal.Command{}} }
	zero := 0
	limit := sent{stint.SetLimit, journal.Command{Limits: &stint.Limits{Steps: 7}}}
	for name, c := range map[string]struct {
		sent    []sent
		want    stint.Status
		waits   stint.WaitFor
		refused int
	}{
		"paused and stopped":       {[]sent{order(stint.Pause), order(stint.Stop)}, stint.Canceled, "", 0},
		"paused and resumed":       {[]sent{order(stint.Pause), order(stint.Resume)}, stint.Pending, "", 0},
		"paused twice":             {[]sent{order(stint.Pause), order(stint.Pause)}, stint.Waiting, stint.ForOperator, 0},
		"interrupted and limited":  {[]sent{order(stint.Interrupt), limit}, stint.Waiting, stint.ForMessage, 0},
		"paused and rolled back":   {[]sent{order(stint.Pause), {stint.Rollback, journal.Command{From: &zero}}}, stint.Waiting, stint.ForOperator, 0},
		"stopped and stopped":      {[]sent{order(stint.Stop), order(stint.Stop), order(stint.Pause)}, stint.Canceled, "", 2},
		"stopped and begun again":  {[]sent{order(stint.Stop), order(stint.Restart)}, stint.Pending, "", 0},
		"everything, and the last": {[]sent{order(stint.Pause), order(stint.Resume), limit, order(stint.Kill), {stint.Restart, journal.Command{From: &zero}}, order(stint.Pause)}, stint.Waiting, stint.ForOperator, 0},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(r *rig) {
				a := agent("a", func(context.Context, stint.Loop) (stint.Next, error) {
					return stint.Next{Wait: &stint.Wait{For: stint.ForMessage}}, nil
				})
				n := r.serve(engine.Options{Agents: []engine.Agent{a}, Holder: "r1"})
				id := r.start(n.Engine, a, "")
				r.settles(id, stint.Waiting)
				n.stop()
				for _, m := range c.sent {
					r.send(id, m.kind, m.c)
				}
				e := r.engine(engine.Options{Holder: "tool"})
				if err := e.Settle(r.t.Context(), id); err != nil {
					t.Error(err)
				}
				r.closes(e)
				row := r.row(id)
				s := row.Session
				if s.Status != c.want || row.Unread != 0 || row.Live || len(r.refusals(id)) != c.refused || s.Wait != nil && s.Wait.For != c.waits {
					t.Errorf("%s with %d unread\n%s", s.Status, row.Unread, r.journal(id))
				}
				r.verifies(id)
			})
		})
	}
}

// TestOrdersToARunningStepAreAllSettled sends them while a step is under way.
func TestOrdersToARunningStepAreAllSettled(t *testing.T) {
	inBubble(t, func(r *rig) {
		a := agent("a", func(ctx context.Context, l stint.Loop) (stint.Next, error) {
			_, err := step(ctx, l, "long", stint.Read, func() (string, error) { <-time.After(time.Minute); return "", nil })
			return stint.Next{}, err
		})
		e := r.engine(engine.Options{Agents: []engine.Agent{a}, Holder: "r1"})
		id := r.start(e, a, "")
		done := make(chan error, 1)
		go func() { _, err := e.Run(r.t.Context(), id); done <- err }()
		r.settles(id, stint.Running)
		<-time.After(time.Second)
		r.send(id, stint.Pause, journal.Command{})
		r.send(id, stint.SetLimit, journal.Command{Limits: &stint.Limits{Steps: 7}})
		r.send(id, stint.Stop, journal.Command{})
		if err := <-done; err != nil {
			t.Error(err)
		}
		if row := r.row(id); row.Session.Status != stint.Canceled || row.Unread != 0 || row.Session.Limits.Steps != 7 {
			t.Errorf("%d unread\n%s", row.Unread, r.journal(id))
		}
		r.closes(e)
		r.verifies(id)
	})
}

// TestGoingBackAcrossADoubt is what a person can choose for the step.
func TestGoingBackAcrossADoubt(t *testing.T) {
	one := 1
	for name, c := range map[string]struct {
		kind   stint.MessageKind
		choice journal.DoubtChoice
		ended  bool // the session was killed with the step in doubt
		name   string
		paid   int
		got    string
	}{
		"redo":                   {stint.Restart, journal.RedoDoubt, false, "", 2, `"paid"`},
		"skip":                   {stint.Restart, journal.SkipDoubt, false, "", 1, unknownMarker},
		"skip, by a rollback":    {stint.Rollback, journal.SkipDoubt, false, "", 1, unknownMarker},
		"redo after the end":     {stint.Restart, journal.RedoDoubt, true, "", 2, `"paid"`},
		"skip after the end":     {stint.Restart, journal.SkipDoubt, true, "", 1, unknownMarker},
		"skip, but another step": {stint.Restart, journal.SkipDoubt, false, "pay more", 2, `"paid"`},
	} {
		for _, dies := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, dies %v", name, dies), func(t *testing.T) {
				inBubble(t, func(r *rig) {
					p := &payer{lost: true}
					a := p.agent()
					n := r.serve(engine.Options{Agents: []engine.Agent{a}, Holder: "r1"})
					id := r.start(n.Engine, a, "")
					r.settles(id, stint.Waiting)
					if c.ended {
						r.send(id, stint.Kill, journal.Command{})
						r.settles(id, stint.Canceled)
						r.send(id, stint.Restart, journal.Command{From: &one}) // it has to be chosen here too
						<-time.After(time.Second)
						if why := r.refusals(id); len(why) != 1 || !strings.Contains(why[0], "step 2.2 pay is in doubt") {
							t.Errorf("refused: %q", why)
						}
					}
					n.stop()
					r.plan(id, 1, 1)
					p.lost, p.name = false, c.name
					r.send(id, c.kind, journal.Command{From: &one, InDoubt: c.choice})
					if dies { // the line begins under one runner, and goes on under another
						e := r.engine(engine.Options{Holder: "tool"})
						if err := e.Settle(r.t.Context(), id); err != nil {
							t.Error(err)
						}
						r.closes(e)
					}
					n = r.serve(engine.Options{Agents: []engine.Agent{a}, Holder: "r2"})
					if c.kind == stint.Rollback {
						for r.row(id).Session.At.Line == 0 {
							<-time.After(time.Second)
						}
						r.send(id, stint.Resume, journal.Command{})
					}
					r.settles(id, stint.Completed)
					n.stop()
					if p.paid != c.paid || !slices.Equal(p.got, []string{c.got}) {
						t.Errorf("paid %d times, got %s\n%s", p.paid, p.got, r.journal(id))
					}
					line := r.line(id)
					if line.InDoubt != c.choice || len(line.Doubts) != 1 || line.Doubts[0].Name != "pay" || line.Doubts[0].Pos.String() != "2.2" {
						t.Errorf("the line begins with %+v", line)
					}
					r.verifies(id)
				})
			})
		}
	}
}

const unknownMarker = `{"stint":"unknown","note":"interrupted; whether the effect took place is not known"}`

// plan holds the plan of going back against the steps that somebody has to decide on.
func (r *rig) plan(id stint.ID, from, undecided int) {
	r.t.Helper()
	s := r.row(id).Session
	p, err := journal.MakePlan(s, r.entries(id), from, nil, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	if got := p.Undecided(); len(got) != undecided {
		r.t.Errorf("the plan has %d undecided steps: %+v", len(got), got)
	}
}

// line is the data of the newest line's beginning.
func (r *rig) line(id stint.ID) journal.LineStarted {
	r.t.Helper()
	var d journal.LineStarted
	for _, e := range r.entries(id) {
		if e.Kind == stint.LineStarted {
			var err error
			if d, err = journal.Decode[journal.LineStarted](&e); err != nil {
				r.t.Fatal(err)
			}
		}
	}
	return d
}

// TestASkippedStepStaysSkipped goes back twice, and lets runners die after the skip:
// what a person chose not to do again is not done by a later line or attempt either.
func TestASkippedStepStaysSkipped(t *testing.T) {
	one := 1
	for name, c := range map[string]struct {
		again journal.DoubtChoice
		paid  int
	}{"": {"", 1}, "ask": {journal.AskDoubt, 1}, "redo": {journal.RedoDoubt, 2}} {
		t.Run("again with "+name, func(t *testing.T) {
			inBubble(t, func(r *rig) {
				p := &payer{lost: true}
				a := p.agent()
				pays := a.Loop
				fails := 0
				a.Loop = stint.AgentFunc(func(ctx context.Context, l stint.Loop) (stint.Next, error) {
					next, err := pays.Loop(ctx, l)
					if fails++; err == nil && next.End != nil && l.Session().At.Attempt < 3 {
						return stint.Next{}, errBoom // after the skip
					}
					return next, err
				})
				n := r.serve(engine.Options{Agents: []engine.Agent{a}, Holder: "r1"})
				id := r.start(n.Engine, a, "")
				r.settles(id, stint.Waiting)
				p.lost = false
				r.send(id, stint.Restart, journal.Command{From: &one, InDoubt: journal.SkipDoubt})
				r.settles(id, stint.Completed)
				r.send(id, stint.Restart, journal.Command{From: &one, InDoubt: c.again})
				<-time.After(time.Minute)
				s := r.settles(id, stint.Completed)
				n.stop()
				if s.At.Line != 2 || p.paid != c.paid || len(r.refusals(id)) != 0 {
					t.Errorf("paid %d times on line %d\n%s", p.paid, s.At.Line, r.journal(id))
				}
				r.verifies(id)
			})
		})
	}
}

// TestBadArgumentsAreRefused is what a message from outside can hold that must not act.
func TestBadArgumentsAreRefused(t *testing.T) {
	resolve := func(result string) string {
		return `{"step":{"line":0,"loop":2,"step":2},"verdict":"happened","result":` + result + `}`
	}
	for name, c := range map[string]struct {
		kind stint.MessageKind
		data string
		want string
	}{
		"a name twice":                {stint.Resolve, resolve(`{"a":1,"a":2}`), "twice"},
		"half a surrogate":            {stint.Resolve, resolve(`"\ud800"`), "surrogate"},
		"not UTF-8":                   {stint.Resolve, resolve("\"\xff\""), "UTF-8"},
		"nested too deep":             {stint.Resolve, resolve(strings.Repeat("[", 600) + strings.Repeat("]", 600)), "nested"},
		"a command with a name twice": {stint.Resolve, `{"verdict":"not","verdict":"happened"}`, "twice"},
		"cut off":                     {stint.Restart, `{"from":`, "not one JSON value"},
		"a state with a name twice":   {stint.Restart, `{"from":1,"in_doubt":"redo","state":{"a":1,"a":2}}`, "twice"},
		"a limit cut off":             {stint.SetLimit, `{"limits":{`, "not one JSON value"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(r *rig) {
				p := &payer{lost: true}
				a := p.agent()
				n := r.serve(engine.Options{Agents: []engine.Agent{a}, Holder: "r1"})
				id := r.start(n.Engine, a, "")
				r.settles(id, stint.Waiting)
				r.message(id, stint.Message{Kind: c.kind, Data: json.RawMessage(c.data)})
				<-time.After(10 * time.Second)
				n.stop()
				row := r.row(id)
				if s := row.Session; s.Status != stint.Waiting || s.Wait.For != stint.ForDoubt || s.At.Line != 0 || row.Unread != 0 {
					t.Errorf("%d unread\n%s", row.Unread, r.journal(id))
				}
				if why := strings.Join(r.refusals(id), "; "); !strings.Contains(why, c.want) {
					t.Errorf("it was refused: %q", why)
				}
				r.verifies(id)
			})
		})
	}
}

// TestAVerdictOfARuleIsChecked has a Verify of the agent return what is no result.
func TestAVerdictOfARuleIsChecked(t *testing.T) {
	for _, result := range []string{`{"a":1,"a":2}`, `"\ud800"`, `{`, `"` + strings.Repeat("x", 32<<20) + `"`} {
		inBubble(t, func(r *rig) {
			p := &payer{lost: true}
			a := p.agent()
			a.Doubt = func(string) engine.Doubt {
				return engine.Doubt{Verify: func(context.Context, stint.Step, string) (journal.Verdict, json.RawMessage, error) {
					return journal.Happened, json.RawMessage(result), nil
				}}
			}
			n := r.serve(engine.Options{Agents: []engine.Agent{a}, Holder: "r1"})
			id := r.start(n.Engine, a, "")
			if s := r.settles(id, stint.Waiting); s.Wait.For != stint.ForDoubt || p.paid != 1 {
				t.Errorf("%.20s: it waits for %s, paid %d times", result, s.Wait.For, p.paid)
			}
			n.stop()
		})
	}
}

// TestNamesAreBounded is what names a request, a message and who sent it.
func TestNamesAreBounded(t *testing.T) {
	name := func(n int) string { return strings.Repeat("a", n) }
	for what, c := range map[string]struct {
		r    engine.Request
		fits bool
	}{
		"an actor":               {engine.Request{Actor: stint.Actor(name(200))}, true},
		"a longer actor":         {engine.Request{Actor: stint.Actor(name(201))}, false},
		"an actor not UTF-8":     {engine.Request{Actor: "human:\xff"}, false},
		"a dedupe key":           {engine.Request{Dedupe: name(255)}, true},
		"a longer dedupe key":    {engine.Request{Dedupe: name(256)}, false},
		"a dedupe key not UTF-8": {engine.Request{Dedupe: "\xff"}, false},
	} {
		t.Run(what, func(t *testing.T) {
			inBubble(t, func(r *rig) {
				e := r.engine(engine.Options{Holder: "r1"})
				c.r.Agent = agent("a", func(context.Context, stint.Loop) (stint.Next, error) { return stint.Next{}, nil })
				_, err := e.Start(r.t.Context(), c.r)
				if c.fits != (err == nil) || !c.fits && (stint.CodeOf(err) != stint.Invalid || !strings.Contains(err.Error(), "bytes")) {
					t.Errorf("%v", err)
				}
				r.closes(e)
			})
		})
	}
	for what, m := range map[string]stint.Message{
		"a prompt of a long sender":       {Kind: stint.Prompt, From: stint.Actor(name(201)), Body: []byte("x")},
		"a prompt with a long id":         {Kind: stint.Prompt, ID: name(5000), Body: []byte("x")},
		"a prompt with much beside it":    {Kind: stint.Prompt, Data: json.RawMessage(`"` + name(20_000) + `"`), Body: []byte("x")},
		"a resume of a long sender":       {Kind: stint.Resume, From: stint.Actor(name(100_000))},
		"a resume of one that is no text": {Kind: stint.Resume, From: "human:\xff"},
	} {
		t.Run(what, func(t *testing.T) {
			inBubble(t, func(r *rig) {
				a := agent("a", func(_ context.Context, l stint.Loop) (stint.Next, error) {
					if len(l.Inbox()) > 0 {
						t.Errorf("it heard %s", l.Inbox()[0].Body)
					}
					return stint.Next{Wait: &stint.Wait{For: stint.ForMessage}}, nil
				})
				n := r.serve(engine.Options{Agents: []engine.Agent{a}, Holder: "r1"})
				id := r.start(n.Engine, a, "")
				r.settles(id, stint.Waiting)
				m.ID = or(m.ID, ident.New().String())
				if err := r.store.Send(r.t.Context(), id, m); err != nil {
					r.t.Fatal(err)
				}
				<-time.After(10 * time.Second)
				n.stop()
				if why := r.refusals(id); len(why) != 1 || !strings.Contains(why[0], "bytes") || r.row(id).Unread != 0 {
					t.Errorf("refused: %q\n%s", why, r.journal(id))
				}
				r.verifies(id)
			})
		})
	}
}

// TestInputsHaveOneBound gives steps of each effect the largest input, and a larger one.
func TestInputsHaveOneBound(t *testing.T) {
	for _, effect := range []stint.Effect{stint.Read, stint.Idempotent, stint.Once} {
		for _, extra := range []int{0, 1} {
			t.Run(fmt.Sprintf("%s with %d bytes more", effect, extra), func(t *testing.T) {
				inBubble(t, func(r *rig) {
					ran := 0
					var got error
					a := agent("a", func(ctx context.Context, l stint.Loop) (stint.Next, error) {
						in := json.RawMessage(`"` + strings.Repeat("x", 32<<20-2+extra) + `"`)
						_, got = l.Do(ctx, stint.Step{Name: "big", Effect: effect, Input: in}, func(context.Context, string) (stint.Result, error) {
							ran++
							return stint.Result{}, nil
						})
						return stint.Next{End: &stint.End{}}, nil
					})
					n := r.serve(engine.Options{Agents: []engine.Agent{a}, Holder: "r1"})
					id := r.start(n.Engine, a, "")
					r.settles(id, stint.Completed)
					n.stop()
					if ran != 1-extra || (got != nil) != (extra == 1) || got != nil && (stint.CodeOf(got) != stint.Limit || !strings.Contains(got.Error(), "33554432")) {
						t.Errorf("it ran %d times and gave %v", ran, got)
					}
				})
			})
		}
	}
}

// TestBegun has an agent ask, at each attempt, what earlier ones left of its steps: a read,
// a payment that a person is asked about, and one that was never reached.
func TestBegun(t *testing.T) {
	for verdict, want := range map[journal.Verdict]string{
		journal.NotHappened: "1 true, 2 true not, 3 false; 1 true, 2 true, 3 true",
		journal.Happened:    "1 true, 2 true happened, 3 false; 1 true, 2 true happened, 3 true",
		journal.Unknown:     "1 true, 2 true unknown, 3 false; 1 true, 2 true unknown, 3 true",
	} {
		inBubble(t, func(r *rig) {
			var told []string
			attempt := 0
			a := agent("a", func(ctx context.Context, l stint.Loop) (stint.Next, error) {
				attempt++
				look := l.(interface {
					Begun(step, sub int) (begun bool, verdict string)
				})
				var line []string
				for n, sub := range map[int]int{1: 0, 2: 0, 3: 1} {
					begun, said := look.Begun(n, sub)
					line = append(line, strings.TrimSpace(fmt.Sprintf("%d %v %s", n, begun, said)))
				}
				slices.Sort(line)
				told = append(told, strings.Join(line, ", "))
				if _, err := step(ctx, l, "look", stint.Read, text("seen")); err != nil {
					return stint.Next{}, err
				}
				_, err := l.Do(ctx, stint.Step{Name: "pay"}, func(context.Context, string) (stint.Result, error) {
					if attempt == 1 {
						return stint.Result{}, errBoom
					}
					return stint.Result{}, nil
				})
				if err != nil {
					return stint.Next{}, err
				}
				steps := []stint.Step{{Name: "one", Effect: stint.Read}, {Name: "two", Effect: stint.Read}}
				if _, err = l.DoAll(ctx, steps, func(context.Context, int, string) (stint.Result, error) { return stint.Result{}, nil }); err == nil && attempt == 2 {
					err = errBoom
				}
				return stint.Next{End: &stint.End{}}, err
			})
			n := r.serve(engine.Options{Agents: []engine.Agent{a}, Holder: "r1"})
			id := r.start(n.Engine, a, "")
			s := r.settles(id, stint.Waiting)
			r.send(id, stint.Resolve, journal.Command{Step: &s.Wait.Step, Verdict: verdict})
			r.settles(id, stint.Completed)
			if none := "1 false, 2 false, 3 false"; len(told) != 3 || told[0] != none || strings.Join(told[1:], "; ") != want {
				t.Errorf("%s: the agent was told %q", verdict, told)
			}
			n.stop()
			r.verifies(id)
		})
	}
}
