package replay_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/replay"
)

// A golden journal was recorded by the code of its day. It is never recorded anew in a
// change that it checks: what was recorded once has to be replayed for ever.
func TestGoldenJournals(t *testing.T) {
	all := scenes()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		s := all[name]
		t.Run(name, func(t *testing.T) {
			recordScene(t, name, &s)
			g := readGolden(t, name)
			var passed []replay.Loop
			rep, err := replay.Run(t.Context(), g, g.session.ID, s.agent(t), replay.Options{Line: -1, Passed: func(l replay.Loop) { passed = append(passed, l) }})
			if err != nil {
				t.Fatal(err)
			}
			if rep.Divergence != nil {
				t.Fatalf("it diverged: %s", marshal(t, rep.Divergence))
			}
			if n := g.session.Checkpoint.Loop; len(rep.Loops) != n || n == 0 || !slices.Equal(passed, rep.Loops) {
				t.Errorf("%d loops were recorded; it replayed %v and told of %v", n, rep.Loops, passed)
			}
			for i, l := range rep.Loops {
				if l.Steps == 0 && name != "llm" {
					t.Errorf("loop %d has no steps: %+v", i+1, l)
				}
			}
		})
	}
}

// A file that no scene has would be replayed by nobody.
func TestEveryGoldenHasItsScene(t *testing.T) {
	files, err := os.ReadDir("testdata")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		name, ok := strings.CutSuffix(f.Name(), ".jsonl")
		if _, has := scenes()[name]; ok && !has {
			t.Errorf("nothing replays %s", f.Name())
		}
	}
}

// changed is an agent in which one thing was changed.
func changed(fn func(l stint.Loop) (stint.Next, error)) stint.Agent {
	return stint.AgentFunc(func(ctx context.Context, l stint.Loop) (stint.Next, error) { return fn(l) })
}

// meddled is a loop whose steps are changed on their way.
type meddled struct {
	stint.Loop
	with func(s *stint.Step)
}

func (m meddled) Do(ctx context.Context, s stint.Step, fn func(context.Context, string) (stint.Result, error)) (stint.Result, error) {
	m.with(&s)
	return m.Loop.Do(ctx, s, fn)
}

func (m meddled) DoAll(ctx context.Context, steps []stint.Step, fn func(context.Context, int, string) (stint.Result, error)) ([]stint.Result, error) {
	steps = slices.Clone(steps)
	for i := range steps {
		m.with(&steps[i])
	}
	return m.Loop.DoAll(ctx, steps, fn)
}

// divergence is a change of an agent and where it shows.
type divergence struct {
	name  string
	agent stint.Agent
	at    string // loop.step
	what  replay.What
	text  string
}

// keeper is the shopkeeper with other steps, and another end of its loops.
func keeper(t *testing.T, with func(*stint.Step), then func(*stint.Next)) stint.Agent {
	return changed(func(l stint.Loop) (stint.Next, error) {
		next, err := shopkeeper(t.Context(), meddled{l, with})
		if then != nil {
			then(&next)
		}
		return next, err
	})
}

func otherSteps(t *testing.T) []divergence {
	return []divergence{
		{"another name", keeper(t, func(s *stint.Step) { s.Name = strings.Replace(s.Name, "colour", "color", 1) }, nil), "1.3", replay.OtherStep,
			`step 1.3 was step "colour" (once), and the agent asks for step "color" (once)`},
		{"another input", keeper(t, func(s *stint.Step) {
			if s.Name == "order" {
				s.Input = json.RawMessage(strings.Replace(string(s.Input), "}", `,"n":2}`, 1))
			}
		}, nil), "1.4.1", replay.OtherStep, `/n`},
		{"another effect", keeper(t, func(s *stint.Step) {
			if s.Name == "insure" {
				s.Effect = stint.Once
			}
		}, nil), "1.4.2", replay.OtherStep, `(idempotent), and the agent asks for tool "insure" (once)`},
		{"another one that failed", keeper(t, func(s *stint.Step) { s.Name = strings.Replace(s.Name, "stock", "store", 1) }, nil), "1.2", replay.OtherStep, `"store"`},
		{"a long input", keeper(t, func(s *stint.Step) {
			if s.Name == "ring" {
				s.Input = json.RawMessage(`[]`)
			}
		}, nil), "2.4", replay.OtherStep, `"old_size":2502`},
		{"one more", changed(func(l stint.Loop) (stint.Next, error) {
			next, err := shopkeeper(t.Context(), l)
			if err == nil && len(next.State) > 5000 {
				return next, nil
			}
			_, err = l.Do(t.Context(), stint.Step{Name: "thank"}, func(context.Context, string) (stint.Result, error) {
				t.Error("a step was done")
				return stint.Result{}, nil
			})
			return next, err
		}), "1.5", replay.NoStep, `step 1.5 is not on record, and the agent asks for step "thank" (once)`},
		{"none", changed(func(stint.Loop) (stint.Next, error) { return stint.Next{}, nil }), "1.1", replay.LeftStep, `step 1.1 was step "price" (read), and the agent ends the loop without it`},
	}
}

func otherEnds(t *testing.T) []divergence {
	same := func(*stint.Step) {}
	return []divergence{
		{"another state", keeper(t, same, func(n *stint.Next) { n.State = json.RawMessage(strings.Replace(string(n.State), `"buy`, `"BUY`, 1)) }), "1", replay.OtherState, `"path":"/1"`},
		{"a state in other words", keeper(t, same, func(n *stint.Next) { n.State = append(n.State, ' ') }), "1", replay.OtherState, "written otherwise"},
		{"no wait", keeper(t, same, func(n *stint.Next) { n.Wait = nil }), "1", replay.OtherWait, "the session waited (for: message), and the agent goes on"},
		{"another wait", keeper(t, same, func(n *stint.Next) {
			if n.Wait != nil {
				n.Wait.For = stint.ForHealth
			}
		}), "1", replay.OtherWait, "waits (for: health)"},
		{"no end", keeper(t, same, func(n *stint.Next) { n.End = nil }), "2", replay.OtherEnd, "the session ended here (completed: sold out), and the agent goes on"},
		{"an end", keeper(t, same, func(n *stint.Next) { n.End = &stint.End{Reason: "sold out"} }), "1", replay.OtherEnd, "the session waited (for: message), and the agent ends it (completed: sold out)"},
		{"another result", keeper(t, same, func(n *stint.Next) {
			if n.End != nil {
				n.End.Result = json.RawMessage("1")
			}
		}), "2", replay.OtherEnd, "another result"},
		{"another reason", keeper(t, same, func(n *stint.Next) {
			if n.End != nil {
				n.End.Reason = "tired"
			}
		}), "2", replay.OtherEnd, "ends it (completed: tired)"},
		{"an error", changed(func(l stint.Loop) (stint.Next, error) {
			if l.Session().At.Loop == 2 {
				panic("boom")
			}
			return shopkeeper(t.Context(), l)
		}), "2", replay.AgentFailed, "panic: boom"},
		{"other instructions", clerk(t, "You are a lazy clerk."), "1.1", replay.OtherStep, "clerk-1"},
	}
}

// Each change of the agent is found at the step, or the end, that it changes, and at no
// other.
func TestFirstDivergence(t *testing.T) {
	for _, c := range slices.Concat(otherSteps(t), otherEnds(t)) {
		t.Run(c.name, func(t *testing.T) {
			name := "go"
			if c.name == "other instructions" {
				name = "llm"
			}
			rep := all(t, name, c.agent)
			d := rep.Divergence
			if d == nil {
				t.Fatalf("nothing differed: %s", marshal(t, rep))
			}
			at := d.Pos.String()
			if got := string(marshal(t, d)); d.What != c.what || at != c.at || !strings.Contains(got+d.Text, c.text) {
				t.Errorf("got %s at %s: %s", d.What, at, got)
			}
			if len(rep.Loops) != d.Pos.Loop-1 {
				t.Errorf("it diverged in loop %d after %d loops", d.Pos.Loop, len(rep.Loops))
			}
		})
	}
}

// What a loop is told of itself is what the engine told the last entry into it.
func TestALoopSeesWhatItsLastEntrySaw(t *testing.T) {
	var was, is []string
	spy := func(to *[]string) stint.Agent {
		return stint.AgentFunc(func(ctx context.Context, l stint.Loop) (stint.Next, error) {
			ses := l.Session()
			begun, verdict := l.(interface{ Begun(int, int) (bool, string) }).Begun(4, 1)
			var said []string
			for _, m := range l.Inbox() {
				said = append(said, fmt.Sprintf("%s %s %s %s", m.ID, m.From, m.At, m.Body))
			}
			_, back := l.(interface {
				Outcome(context.Context, stint.Position) (json.RawMessage, error)
			}).Outcome(ctx, stint.Position{Line: 0, Loop: 1, Step: 1})
			line := fmt.Sprintf("%d %s %s %q %v %q %d %v %s", ses.At.Loop, marshal(t, ses), l.State(), said, begun, verdict,
				l.(interface{ Epoch() int64 }).Epoch(), back, l.(interface{ Recorded() []json.RawMessage }).Recorded())
			next, err := shopkeeper(ctx, l)
			if err == nil { // an entry that parked is not done again
				*to = append(*to, line)
			}
			return next, err
		})
	}
	r := newRig(t, spy(&was))
	scene := scenes()["go"]
	scene.play(r)
	rep, err := replay.Run(t.Context(), r.store, r.id, spy(&is), replay.Options{Line: -1})
	if err != nil || rep.Divergence != nil {
		t.Fatalf("%v, %s", err, marshal(t, rep))
	}
	if !slices.Equal(was, is) || len(was) != 2 {
		t.Errorf("live:\n%s\nreplayed:\n%s", strings.Join(was, "\n"), strings.Join(is, "\n"))
	}
}

// Loops that a restart gave up are replayed on their line, and the current line is kept
// loops and its own.
func TestLines(t *testing.T) {
	word := "one"
	agent := stint.AgentFunc(func(ctx context.Context, l stint.Loop) (stint.Next, error) {
		got, err := stint.Do(ctx, l, stint.Step{Name: "say", Effect: stint.Read}, func(context.Context, string) (string, error) { return word, nil })
		if err != nil {
			return stint.Next{}, err
		}
		loop := l.Session().At.Loop
		next := stint.Next{State: json.RawMessage(fmt.Sprintf(`{"said":%q,"loop":%d,"heard":%d}`, got, loop, len(l.Inbox())))}
		if loop == 3 {
			next.End = &stint.End{}
		}
		return next, nil
	})
	r := newRig(t, agent)
	r.start("begin")
	word = "two"
	r.send(stint.Message{Kind: stint.Restart, Data: json.RawMessage(`{"from":1,"say":"again"}`)})
	for _, c := range []struct {
		opt  replay.Options
		want string
	}{
		{replay.Options{Line: -1}, "1/0 2/1 3/1"},
		{replay.Options{Line: 1, From: 2}, "2/1 3/1"},
		{replay.Options{Line: 0, To: 2}, "1/0 2/0"},
		{replay.Options{Line: 0, From: 3, To: 3}, "3/0"},
	} {
		rep, err := replay.Run(t.Context(), r.store, r.id, agent, c.opt)
		if err != nil || rep.Divergence != nil {
			t.Fatalf("%+v: %v, %s", c.opt, err, marshal(t, rep))
		}
		var got []string
		for _, l := range rep.Loops {
			got = append(got, fmt.Sprintf("%d/%d", l.Loop, l.Line))
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%+v: %v, want %s", c.opt, got, c.want)
		}
	}
	for _, opt := range []replay.Options{{Line: 2}, {Line: -1, From: 4}, {Line: -1, To: 9}, {Line: -1, From: -1}} {
		if _, err := replay.Run(t.Context(), r.store, r.id, agent, opt); stint.CodeOf(err) != stint.NotFound {
			t.Errorf("%+v: %v", opt, err)
		}
	}
	if _, err := replay.Run(t.Context(), r.store, r.id, agent, replay.Options{Line: -1, From: 3, To: 2}); stint.CodeOf(err) != stint.Invalid {
		t.Errorf("from the last to the first: %v", err)
	}
}
