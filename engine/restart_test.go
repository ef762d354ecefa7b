package engine_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/journal"
)

func TestRestartFromALoop(t *testing.T) {
	inBubble(t, func(r *rig) {
		var ran []string
		a := agent("counter", counter(4, &ran))
		n := r.serve(engine.Options{Agents: []engine.Agent{a}, Holder: "r1"})
		id := r.start(n.Engine, a, "")
		s := r.settles(id, stint.Completed)
		ran = nil
		from := 2
		r.send(id, stint.Restart, journal.Command{From: &from, Head: s.Head, Reason: "again", Say: "mind the gap"})
		<-time.After(time.Second)
		s = r.settles(id, stint.Completed)
		if len(ran) != 4 || ran[0] != "think 2" {
			t.Errorf("ran %q after the restart", ran)
		}
		if s.At.Line != 1 || s.Totals.Loops != 6 || s.Totals.Restarts != 1 {
			t.Errorf("line %d, totals %+v", s.At.Line, s.Totals)
		}
		// A plan made before the journal moved is refused, and says so in the journal.
		r.send(id, stint.Restart, journal.Command{From: &from, Head: s.Head - 1})
		<-time.After(time.Second)
		if got := r.settles(id, stint.Completed); got.At.Line != 1 {
			t.Error("a restart went through on an old plan")
		}
		far := 9
		r.send(id, stint.Restart, journal.Command{From: &far})
		<-time.After(time.Second)
		r.settles(id, stint.Completed)
		n.stop()
		r.show(id)
		r.golden("restart")
	})
}

// TestGoingBackSeesWhatThisDriveMade: a restart is decided on the journal as this
// drive has made it, not as the store has it by then.
func TestGoingBackSeesWhatThisDriveMade(t *testing.T) {
	pace := func(ctx context.Context, l stint.Loop) (stint.Next, error) {
		<-time.After(time.Second)
		state, err := stint.Marshal(map[string]int{"loop": l.Session().At.Loop})
		next := stint.Next{State: state}
		if l.Session().At.Loop == 4 {
			next.End = &stint.End{}
		}
		return next, err
	}
	// The loop that has just ended is one that can be kept.
	t.Run("a restart that keeps the loop just ended", func(t *testing.T) {
		inBubble(t, func(r *rig) {
			a := agent("a", pace)
			n := r.serve(engine.Options{Agents: []engine.Agent{a}, Holder: "r1"})
			id := r.start(n.Engine, a, "")
			<-time.After(1500 * time.Millisecond) // in loop 2
			from := 2
			r.send(id, stint.Restart, journal.Command{From: &from, State: json.RawMessage(`{"loop":"two"}`)})
			s := r.settles(id, stint.Completed)
			n.stop()
			if s.At.Line != 1 {
				t.Errorf("line %d: the restart was refused\n%s", s.At.Line, r.journal(id))
			}
		})
	})
	// Of two restarts at once the second stands on the line that the first began; one
	// that kept loops of the line left behind would make the journal corrupt.
	t.Run("two restarts", func(t *testing.T) {
		inBubble(t, func(r *rig) {
			a := agent("a", pace)
			n := r.serve(engine.Options{Agents: []engine.Agent{a}, Holder: "r1"})
			id := r.start(n.Engine, a, "")
			r.settles(id, stint.Completed)
			one, three := 1, 3
			n.stop()
			r.send(id, stint.Restart, journal.Command{From: &one})
			r.send(id, stint.Restart, journal.Command{From: &three})
			n = r.serve(engine.Options{Agents: []engine.Agent{a}, Holder: "r2"})
			<-time.After(time.Second)
			r.settles(id, stint.Completed)
			n.stop()
			r.verifies(id)
		})
	})
}

// TestSayOfARestartIsNotLost: what a restart says is a prompt in the journal from
// the moment the restart is taken, for its sender was told that it is durable. It
// is heard by the next loop that begins, whatever comes between: an open loop that
// begins again, a limit, a drain, another message.
func TestSayOfARestartIsNotLost(t *testing.T) {
	said := func(t *testing.T, r *rig, id stint.ID) bool {
		t.Helper()
		for _, e := range r.entries(id) {
			if e.Kind == stint.MessageTaken && string(e.Body) == "mind the gap" {
				return true
			}
		}
		return false
	}
	t.Run("an open loop is begun again", func(t *testing.T) {
		inBubble(t, func(r *rig) {
			heard := 0
			a := agent("a", func(_ context.Context, l stint.Loop) (stint.Next, error) {
				for _, m := range l.Inbox() {
					if string(m.Body) == "mind the gap" {
						heard++
					}
				}
				if l.Session().At.Loop == 1 && l.Session().At.Attempt < 2 {
					return stint.Next{}, stint.Fail(errBoom)
				}
				return stint.Next{Wait: &stint.Wait{For: stint.ForMessage}}, nil
			})
			n := r.serve(engine.Options{Agents: []engine.Agent{a}, Holder: "r1"})
			id := r.start(n.Engine, a, "")
			r.settles(id, stint.Failed)
			r.send(id, stint.Restart, journal.Command{Say: "mind the gap"})
			r.settles(id, stint.Waiting)
			r.message(id, stint.Message{Kind: stint.Prompt, Body: []byte("anything else")})
			<-time.After(10 * time.Second)
			r.settles(id, stint.Waiting)
			n.stop()
			if heard == 0 || !said(t, r, id) {
				t.Errorf("what the restart said was never heard\n%s", r.journal(id))
			}
		})
	})
	t.Run("a limit parks it first", func(t *testing.T) {
		inBubble(t, func(r *rig) {
			var ran []string
			a := agent("a", counter(4, &ran))
			n := r.serve(engine.Options{Agents: []engine.Agent{a}, Holder: "r1"})
			res, err := n.Start(r.t.Context(), engine.Request{Agent: a, Limits: &stint.Limits{Loops: 4}})
			if err != nil {
				r.t.Fatal(err)
			}
			r.settles(res.ID, stint.Completed)
			from := 2
			r.send(res.ID, stint.Restart, journal.Command{From: &from, Say: "mind the gap"})
			r.settles(res.ID, stint.Waiting) // for the budget
			r.send(res.ID, stint.SetLimit, journal.Command{Limits: &stint.Limits{}})
			r.settles(res.ID, stint.Completed)
			n.stop()
			if !said(t, r, res.ID) {
				t.Errorf("what the restart said was never taken\n%s", r.journal(res.ID))
			}
		})
	})
}

// TestARefusedRestartBeginsNoAttempt: a restart is judged before it breaks off the
// loop that runs.
func TestARefusedRestartBeginsNoAttempt(t *testing.T) {
	inBubble(t, func(r *rig) {
		canceled := 0
		a := agent("slow", func(ctx context.Context, l stint.Loop) (stint.Next, error) {
			if _, err := slow(stint.Read, &canceled)(ctx, l); err != nil {
				return stint.Next{}, err
			}
			return slow(stint.Read, &canceled)(ctx, l)
		})
		n := r.serve(engine.Options{Agents: []engine.Agent{a}, Holder: "r1"})
		id := r.start(n.Engine, a, "")
		r.settles(id, stint.Running)
		r.send(id, stint.Restart, journal.Command{Head: 1})
		<-time.After(11 * time.Minute)
		s := r.row(id).Session
		if s.At.Attempt != 1 {
			t.Errorf("attempt %d after a restart that was refused\n%s", s.At.Attempt, r.journal(id))
		}
		n.stop()
	})
}

// TestSayDoesNotMakeAnAgentDiverge: what a restart says is for the first loop that
// begins after it. The open loop has recorded steps that were made without it, and an
// agent that saw another inbox would ask for other steps.
func TestSayDoesNotMakeAnAgentDiverge(t *testing.T) {
	inBubble(t, func(r *rig) {
		mended := false
		a := agent("llm", func(ctx context.Context, l stint.Loop) (stint.Next, error) {
			said := []string{}
			for _, m := range l.Inbox() {
				said = append(said, string(m.Body))
			}
			prompt, err := json.Marshal(said)
			if err != nil {
				return stint.Next{}, err
			}
			if _, err := l.Do(ctx, stint.Step{Name: "ask", Kind: stint.Model, Effect: stint.Read, Input: prompt}, func(context.Context, string) (stint.Result, error) {
				return stint.Result{Data: json.RawMessage(`"let me see"`)}, nil
			}); err != nil {
				return stint.Next{}, err
			}
			if !mended {
				return stint.Next{}, stint.Fail(errBoom)
			}
			return stint.Next{Wait: &stint.Wait{For: stint.ForMessage}}, nil
		})
		n := r.serve(engine.Options{Agents: []engine.Agent{a}, Holder: "r1"})
		id := r.start(n.Engine, a, "do it")
		r.settles(id, stint.Failed)
		mended = true
		r.send(id, stint.Restart, journal.Command{Say: "use the other door"})
		<-time.After(time.Minute)
		s := r.row(id).Session
		n.stop()
		if s.Status != stint.Waiting || s.Wait.For != stint.ForMessage {
			t.Errorf("%s\n%s", s.Status, r.journal(id))
		}
	})
}

// TestARestartWithAStateKeepsItsPlace: the loops that are kept stay kept when the
// restart gives another state.
func TestARestartWithAStateKeepsItsPlace(t *testing.T) {
	inBubble(t, func(r *rig) {
		var ran []string
		a := agent("a", func(ctx context.Context, l stint.Loop) (stint.Next, error) {
			if string(l.State()) == `{"N":99}` {
				return stint.Next{End: &stint.End{}}, nil
			}
			return counter(3, &ran)(ctx, l)
		})
		n := r.serve(engine.Options{Agents: []engine.Agent{a}, Holder: "r1"})
		id := r.start(n.Engine, a, "")
		r.settles(id, stint.Completed)
		from := 2
		r.send(id, stint.Restart, journal.Command{From: &from, State: json.RawMessage(`{"N":99}`)})
		<-time.After(time.Second)
		s := r.settles(id, stint.Completed)
		n.stop()
		if s.At.Line != 1 || s.At.Loop != 3 {
			t.Errorf("loop %d of line %d, want 3 of 1\n%s", s.At.Loop, s.At.Line, r.journal(id))
		}
	})
}
