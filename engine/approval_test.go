package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/journal"
)

// decide sends a decision of a question of the session, the n-th that is open.
func (r *rig) decide(id stint.ID, n int, state stint.ApprovalState, note, answer string) {
	r.t.Helper()
	var open []stint.Approval
	for _, a := range r.row(id).Session.At.Approvals {
		if a.State == stint.ApprovalOpen {
			open = append(open, a)
		}
	}
	if n >= len(open) {
		r.t.Fatalf("%d questions are open\n%s", len(open), r.journal(id))
	}
	data, err := stint.Marshal(journal.Decision{Approval: open[n].Seq, State: state, Note: note})
	if err != nil {
		r.t.Fatal(err)
	}
	m := stint.Message{ID: journal.Decision{Approval: open[n].Seq}.MessageID(), Kind: stint.Decision, From: "human:kim", Data: data}
	if answer != "" {
		m.Body = []byte(answer)
	}
	if err := r.store.Send(r.t.Context(), id, m); err != nil {
		r.t.Fatal(err)
	}
}

// gated is an agent whose group has a step that may run, two that a person is asked
// about, and one that stands behind them; then a question.
func gated(ran map[string]int) engine.Agent {
	return agent("a", func(ctx context.Context, l stint.Loop) (stint.Next, error) {
		const why = "tool pay: approve: always"
		steps := []stint.Step{
			{Name: "pay ann", Kind: stint.Tool, Input: json.RawMessage(`{"to":"ann"}`), Alone: true, Ask: `pay {"to":"ann"}`, Why: why},
			{Name: "pay bob", Kind: stint.Tool, Input: json.RawMessage(`{"to":"bob"}`), Alone: true, Ask: `pay {"to":"bob"}`, Why: why},
			{Name: "look", Kind: stint.Tool, Effect: stint.Read},
			{Name: "post", Kind: stint.Tool, Alone: true},
		}
		res, err := l.DoAll(ctx, steps, func(_ context.Context, i int, _ string) (stint.Result, error) {
			ran[steps[i].Name]++
			return stint.Result{Data: json.RawMessage(`"did it"`)}, nil
		})
		if errors.Is(err, stint.ErrParked) {
			return stint.Next{}, err
		}
		said := ""
		var all interface{ Members() []error }
		if errors.As(err, &all) {
			for _, err := range all.Members() {
				if err != nil {
					said += fmt.Sprintf("%v (%s). ", err, stint.CodeOf(err))
				}
			}
		}
		for _, r := range res {
			said += string(r.Data) + " "
		}
		got, err := l.Do(ctx, stint.Step{Name: "ask", Kind: stint.Tool, Effect: stint.Read,
			Ask: "Which colour?", Answer: json.RawMessage(`{"type":"string"}`)},
			func(context.Context, string) (stint.Result, error) { panic("a person is the one who answers") })
		if err != nil {
			return stint.Next{}, err
		}
		out, err := stint.Marshal(said + "| " + string(got.Data))
		return stint.Next{End: &stint.End{Result: out}}, err
	})
}

// TestApproval: each question gets its own answer, what was asked nobody about runs
// meanwhile unless it stands behind, and nothing of it is asked or done twice, whoever
// dies in between.
func TestApproval(t *testing.T) {
	inBubble(t, func(r *rig) {
		ran := map[string]int{}
		a := gated(ran)
		one := r.serve(engine.Options{Agents: []engine.Agent{a}, Holder: "r1"})
		id := r.start(one.Engine, a, "")
		r.settles(id, stint.Waiting)
		if ran["look"] != 1 || ran["post"]+ran["pay ann"]+ran["pay bob"] > 0 {
			t.Errorf("before any decision: %v", ran)
		}
		one.stop() // nobody is there when a person decides
		r.decide(id, 1, stint.ApprovalDenied, "not him", "")
		two := r.serve(engine.Options{Agents: []engine.Agent{a}, Holder: "r2"})
		<-time.After(3 * time.Second)
		if s := r.settles(id, stint.Waiting); s.Wait.For != stint.ForApproval || ran["post"] != 0 {
			t.Errorf("waits for %s, %v", s.Wait.For, ran)
		}
		r.store.Kill("r2")
		three := r.serve(engine.Options{Agents: []engine.Agent{a}, Holder: "r3"})
		r.decide(id, 0, stint.ApprovalApproved, "", "")
		<-time.After(3 * time.Second)
		if s := r.settles(id, stint.Waiting); s.Wait.What != "Which colour?" || ran["post"] != 1 {
			t.Errorf("waits for %q, %v", s.Wait.What, ran)
		}
		r.decide(id, 0, stint.ApprovalApproved, "", `"blue"`)
		r.settles(id, stint.Completed)
		if ran["pay ann"] != 1 || ran["pay bob"] != 0 || ran["look"] != 1 || ran["post"] != 1 {
			t.Errorf("%v", ran)
		}
		r.show(id)
		two.stop()
		three.stop()
		r.verifies(id)
		r.golden("approval")
	})
}

// reasonTime is what differs from one test run to the next in a reason.
func reasonTime() *regexp.Regexp { return regexp.MustCompile(`\d{4}-\S+Z`) }

// TestDecidedOnce: of many decisions the store takes one, and what comes late, of what
// is not asked, or without sense is refused with a reason.
func TestDecidedOnce(t *testing.T) {
	inBubble(t, func(r *rig) {
		a := gated(map[string]int{})
		one := r.serve(engine.Options{Agents: []engine.Agent{a}, Holder: "r1"})
		id := r.start(one.Engine, a, "")
		s := r.settles(id, stint.Waiting)
		one.stop()
		seq := s.At.Approvals[0].Seq
		won := 0
		for i := range 50 {
			data, _ := stint.Marshal(journal.Decision{Approval: seq, State: stint.ApprovalApproved, Nonce: fmt.Sprint(i)})
			err := r.store.Send(t.Context(), id, stint.Message{ID: journal.Decision{Approval: seq}.MessageID(), Kind: stint.Decision, From: "human:kim", Data: data})
			switch {
			case err == nil:
				won++
			case !errors.Is(err, stint.Conflict):
				t.Error(err)
			}
		}
		if won != 1 {
			t.Errorf("%d decisions were taken", won)
		}
		for i, d := range []journal.Decision{{Approval: 1, State: stint.ApprovalApproved}, {Approval: seq, State: stint.ApprovalDenied}, {Approval: seq, State: "maybe"}} {
			data, _ := stint.Marshal(d)
			r.message(id, stint.Message{ID: fmt.Sprint("late", i), Kind: stint.Decision, From: "human:eve", Data: data})
		}
		r.message(id, stint.Message{ID: "empty", Kind: stint.Decision, From: "human:eve"})
		one = r.serve(engine.Options{Agents: []engine.Agent{a}, Holder: "r2"})
		<-time.After(5 * time.Second)
		refused := 0
		for _, e := range r.entries(id) {
			if e.Kind == stint.MessageRefused {
				d, err := journal.Decode[journal.Taken](&e)
				if refused++; err != nil || d.Why == "" {
					t.Errorf("%s: %q, %v", d.ID, d.Why, err)
				}
				r.note("%s", reasonTime().ReplaceAllString(d.Why, "TIME"))
			}
		}
		if refused != 4 {
			t.Errorf("%d were refused\n%s", refused, r.journal(id))
		}
		one.stop()
		r.golden("decided-once")
	})
}

// TestApprovalIsBound: a yes is for exactly the step that was shown. Other arguments at
// its place are asked about anew, and a step that no rule asks about any more runs.
func TestApprovalIsBound(t *testing.T) {
	for name, change := range map[string]func(*stint.Step){
		"arguments": func(s *stint.Step) { s.Input = json.RawMessage(`{"amount":500}`) },
		"the step":  func(s *stint.Step) { s.Name = "pay twice" },
		"the rule":  func(s *stint.Step) { s.Ask = "" },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(r *rig) {
				changed := false
				var paid []string
				a := agent("a", func(ctx context.Context, l stint.Loop) (stint.Next, error) {
					s := stint.Step{Name: "pay", Input: json.RawMessage(`{"amount":5}`), Ask: "pay"}
					if changed {
						change(&s)
					}
					_, err := l.Do(ctx, s, func(context.Context, string) (stint.Result, error) {
						paid = append(paid, s.Name+string(s.Input))
						return stint.Result{}, nil
					})
					return stint.Next{End: &stint.End{}}, err
				})
				one := r.serve(engine.Options{Agents: []engine.Agent{a}, Holder: "r1"})
				id := r.start(one.Engine, a, "")
				first := r.settles(id, stint.Waiting).At.Approvals[0]
				changed = true
				r.decide(id, 0, stint.ApprovalApproved, "", "")
				<-time.After(3 * time.Second)
				if name != "the rule" {
					s := r.settles(id, stint.Waiting)
					if len(paid) > 0 || s.At.Approvals[0].Seq == first.Seq {
						t.Errorf("paid %v on a yes to something else\n%s", paid, r.journal(id))
					}
					r.decide(id, 0, stint.ApprovalApproved, "", "")
				}
				r.settles(id, stint.Completed)
				if len(paid) != 1 || !strings.Contains(r.journal(id), "invalidated") {
					t.Errorf("paid %v\n%s", paid, r.journal(id))
				}
				one.stop()
				r.verifies(id)
			})
		})
	}
}

// TestLeftQuestions: who leaves a loop leaves no question open, and a yes that was given
// before is not used after.
func TestLeftQuestions(t *testing.T) {
	for name, leave := range map[string]struct {
		kind stint.MessageKind
		cmd  journal.Command
		want stint.Status
	}{
		"stopped":     {stint.Stop, journal.Command{}, stint.Canceled},
		"killed":      {stint.Kill, journal.Command{}, stint.Canceled},
		"restarted":   {stint.Restart, journal.Command{From: new(int)}, stint.Waiting},
		"rolled back": {stint.Rollback, journal.Command{From: new(int)}, stint.Waiting},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(r *rig) {
				ran := map[string]int{}
				a := gated(ran)
				one := r.serve(engine.Options{Agents: []engine.Agent{a}, Holder: "r1"})
				id := r.start(one.Engine, a, "")
				old := r.settles(id, stint.Waiting).At.Approvals
				one.stop()
				r.decide(id, 0, stint.ApprovalApproved, "", "")
				r.send(id, leave.kind, leave.cmd)
				two := r.serve(engine.Options{Agents: []engine.Agent{a}, Holder: "r2"})
				<-time.After(5 * time.Second)
				s := r.settles(id, leave.want)
				for _, q := range s.At.Approvals {
					if q.Seq <= old[len(old)-1].Seq || q.State != stint.ApprovalOpen {
						t.Errorf("%+v", q)
					}
				}
				ends := map[stint.Seq]int{}
				for _, e := range r.entries(id) {
					if d, err := journal.Decode[journal.ApprovalDecided](&e); e.Kind == stint.ApprovalDecided && err == nil {
						ends[d.Approval]++
					}
				}
				if ends[old[0].Seq] != 1 || ends[old[1].Seq] != 1 {
					t.Errorf("ends of the questions: %v\n%s", ends, r.journal(id))
				}
				if ran["pay ann"] > 0 {
					t.Errorf("%v\n%s", ran, r.journal(id))
				}
				two.stop()
				r.verifies(id)
			})
		})
	}
}

// TestHeldQuestion: an agent that keeps its process for the answer goes on with it, under
// the same lease and in the same attempt; after the time it is parked like any other.
func TestHeldQuestion(t *testing.T) {
	held := func(entered *int) engine.Agent {
		return agent("a", func(ctx context.Context, l stint.Loop) (stint.Next, error) {
			*entered++
			_, err := l.Do(ctx, stint.Step{Name: "edit", Kind: stint.Tool, Ask: "edit a.go", Hold: time.Hour},
				func(context.Context, string) (stint.Result, error) {
					return stint.Result{Data: json.RawMessage(`"edited"`)}, nil
				})
			if err != nil {
				return stint.Next{}, err
			}
			return stint.Next{End: &stint.End{}}, nil
		})
	}
	for name, tt := range map[string]struct {
		act     func(*rig, stint.ID, *runner) *runner
		want    stint.Status
		entered int
	}{
		"answered": {func(r *rig, id stint.ID, n *runner) *runner {
			r.decide(id, 0, stint.ApprovalApproved, "", "")
			return n
		}, stint.Completed, 1},
		"too late": {func(r *rig, id stint.ID, n *runner) *runner {
			<-time.After(2 * time.Hour)
			r.decide(id, 0, stint.ApprovalApproved, "", "")
			return n
		}, stint.Completed, 2},
		"stopped": {func(r *rig, id stint.ID, n *runner) *runner { r.send(id, stint.Stop, journal.Command{}); return n }, stint.Canceled, 1},
		"killed":  {func(r *rig, id stint.ID, n *runner) *runner { r.send(id, stint.Kill, journal.Command{}); return n }, stint.Canceled, 1},
		"paused": {func(r *rig, id stint.ID, n *runner) *runner {
			r.send(id, stint.Pause, journal.Command{})
			<-time.After(2 * time.Second)
			r.decide(id, 0, stint.ApprovalApproved, "", "")
			r.send(id, stint.Resume, journal.Command{})
			return n
		}, stint.Completed, 2},
		"the runner dies": {func(r *rig, id stint.ID, n *runner) *runner {
			r.store.Kill("r1")
			two := r.serve(engine.Options{Agents: []engine.Agent{held(new(int))}, Holder: "r2"})
			<-time.After(2 * time.Second)
			r.decide(id, 0, stint.ApprovalApproved, "", "")
			<-time.After(2 * time.Second)
			n.stop()
			return two
		}, stint.Completed, 1},
		"drained": {func(r *rig, id stint.ID, n *runner) *runner {
			n.stop()
			r.decide(id, 0, stint.ApprovalApproved, "", "")
			return r.serve(engine.Options{Agents: []engine.Agent{held(new(int))}, Holder: "r2"})
		}, stint.Completed, 1},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(r *rig) {
				entered := 0
				a := held(&entered)
				a.Limits = func(time.Time) stint.Limits { return stint.Limits{Idle: time.Minute, Wall: time.Minute} }
				one := r.serve(engine.Options{Agents: []engine.Agent{a}, Holder: "r1"})
				id := r.start(one.Engine, a, "")
				r.settles(id, stint.Waiting)
				<-time.After(10 * time.Minute)
				if row := r.row(id); !row.Live || row.Session.Wait.For != stint.ForApproval {
					t.Errorf("the lease is held: %v, waits for %s", row.Live, row.Session.Wait.For)
				}
				last := tt.act(r, id, one)
				<-time.After(5 * time.Second)
				s := r.settles(id, tt.want)
				if entered != tt.entered || s.Totals.Running > time.Minute {
					t.Errorf("the agent was entered %d times, %v of running time\n%s", entered, s.Totals.Running, r.journal(id))
				}
				last.stop()
				r.verifies(id)
			})
		})
	}
}

// TestReserve: a step that reserves does not begin where it might pass a limit, and what
// a death left reserved stays so.
func TestReserve(t *testing.T) {
	inBubble(t, func(r *rig) {
		var asked atomic.Int32
		hang := make(chan struct{})
		a := agent("a", func(ctx context.Context, l stint.Loop) (stint.Next, error) {
			_, err := l.Do(ctx, stint.Step{Name: "m", Kind: stint.Model, Effect: stint.Read, Reserve: stint.Usage{Input: 10, Output: 20}},
				func(context.Context, string) (stint.Result, error) {
					if asked.Add(1) == 2 {
						<-hang
					}
					return stint.Result{Usage: stint.Usage{Input: 10, Output: 5}}, nil
				})
			return stint.Next{State: json.RawMessage(fmt.Sprint(asked.Load()))}, err
		})
		a.Limits = func(time.Time) stint.Limits { return stint.Limits{Tokens: 100} }
		one := r.serve(engine.Options{Agents: []engine.Agent{a}, Holder: "r1"})
		id := r.start(one.Engine, a, "")
		<-time.After(2 * time.Second)
		r.store.Kill("r1") // 15 used, 30 reserved for good
		two := r.serve(engine.Options{Agents: []engine.Agent{a}, Holder: "r2"})
		s := r.settles(id, stint.Waiting)
		if want := "tokens: 75 of 100 tokens, and the next call may use 30"; s.Wait.For != stint.ForBudget || s.Wait.What != want || asked.Load() != 4 {
			t.Errorf("asked %d times, waits for %s: %s", asked.Load(), s.Wait.For, s.Wait.What)
		}
		r.send(id, stint.SetLimit, journal.Command{Limits: &stint.Limits{Tokens: 110}})
		<-time.After(2 * time.Second)
		if s := r.settles(id, stint.Waiting); asked.Load() != 5 || s.Totals.Usage.Tokens() != 60 || s.Totals.Reserved.Tokens() != 30 {
			t.Errorf("asked %d times, %+v", asked.Load(), s.Totals)
		}
		close(hang)
		one.stop()
		two.stop()
		r.verifies(id)
	})
}

// TestAloneInDoubt: of members that run one after the other, a death leaves only the one
// in doubt that had begun.
func TestAloneInDoubt(t *testing.T) {
	inBubble(t, func(r *rig) {
		hang := make(chan struct{})
		ran := map[string]int{}
		a := agent("a", func(ctx context.Context, l stint.Loop) (stint.Next, error) {
			steps := []stint.Step{{Name: "one", Alone: true}, {Name: "two", Alone: true}, {Name: "three", Alone: true}}
			_, err := l.DoAll(ctx, steps, func(_ context.Context, i int, _ string) (stint.Result, error) {
				if ran[steps[i].Name]++; i == 1 && ran["two"] == 1 {
					<-hang
				}
				return stint.Result{}, nil
			})
			return stint.Next{End: &stint.End{}}, err
		})
		one := r.serve(engine.Options{Agents: []engine.Agent{a}, Holder: "r1"})
		id := r.start(one.Engine, a, "")
		r.settles(id, stint.Running)
		<-time.After(time.Second)
		intents := 0
		for _, e := range r.entries(id) {
			if e.Kind == stint.StepRequested {
				intents++
			}
		}
		if intents != 2 {
			t.Errorf("%d steps have begun\n%s", intents, r.journal(id))
		}
		r.store.Kill("r1")
		two := r.serve(engine.Options{Agents: []engine.Agent{a}, Holder: "r2"})
		s := r.settles(id, stint.Waiting)
		r.send(id, stint.Resolve, journal.Command{Step: &s.Wait.Step, Verdict: journal.Unknown})
		r.settles(id, stint.Completed)
		if s.Wait.For != stint.ForDoubt || ran["one"] != 1 || ran["two"] != 1 || ran["three"] != 1 {
			t.Errorf("waits for %s, %v\n%s", s.Wait.For, ran, r.journal(id))
		}
		close(hang)
		one.stop()
		two.stop()
		r.verifies(id)
	})
}
