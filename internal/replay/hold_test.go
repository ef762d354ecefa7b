package replay_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/internal/ident"
	"github.com/stint-dev/stint/internal/replay"
	"github.com/stint-dev/stint/journal"
)

// asker goes on from an error before and after a question that it is held for, and from one
// of a step that a rule finds not to have happened.
func asker(ctx context.Context, l stint.Loop) (stint.Next, error) {
	var said []string
	try := func(name string, effect stint.Effect) {
		_, err := l.Do(ctx, stint.Step{Name: name, Effect: effect}, func(context.Context, string) (stint.Result, error) {
			return stint.Result{}, errors.New(name + " is away")
		})
		if err != nil && !errors.Is(err, stint.ErrParked) {
			said = append(said, err.Error())
		}
	}
	try("first", stint.Read)
	_, err := l.Do(ctx, stint.Step{Name: "ask", Ask: "Now?", Hold: time.Hour}, func(context.Context, string) (stint.Result, error) { return stint.Result{}, nil })
	if err != nil {
		return stint.Next{}, err
	}
	try("second", stint.Idempotent)
	try("third", stint.Once)
	state, err := stint.Marshal(said)
	return stint.Next{State: state, End: &stint.End{Result: state}}, err
}

func TestErrorsThatTheAgentWentOnFrom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, stint.AgentFunc(asker))
		r.agent.Doubt = func(string) engine.Doubt {
			return engine.Doubt{Verify: func(context.Context, stint.Step, string) (journal.Verdict, json.RawMessage, error) {
				return journal.NotHappened, nil, nil
			}}
		}
		if err := r.e.Close(); err != nil {
			t.Fatal(err)
		}
		var err error
		if r.e, err = engine.New(t.Context(), r.store, engine.Options{Agents: []engine.Agent{r.agent}}); err != nil {
			t.Fatal(err)
		}
		ended := make(chan stint.Session, 1)
		go func() { ended <- r.start("") }()
		synctest.Wait()
		row, err := r.store.Session(t.Context(), r.id)
		if err != nil || row.Session.Wait == nil || !row.Live {
			t.Fatalf("it is not held: %+v, %v", row, err)
		}
		_, seq := ident.CutApprovalID(row.Session.Wait.Approval)
		d := journal.Decision{Approval: seq, State: stint.ApprovalApproved}
		if err := r.store.Send(t.Context(), r.id, stint.Message{ID: d.MessageID(), Kind: stint.Decision, From: "human:ana", Data: marshal(t, d)}); err != nil {
			t.Fatal(err)
		}
		s := <-ended
		if s.Status != stint.Completed {
			t.Fatalf("it is %s: %s", s.Status, s.Reason)
		}
		rep, err := replay.Run(t.Context(), r.store, r.id, stint.AgentFunc(asker), replay.Options{Line: -1})
		if err != nil || rep.Divergence != nil || len(rep.Loops) != 1 || rep.Loops[0].Steps != 4 {
			t.Errorf("%v: %s", err, marshal(t, rep))
		}
	})
}

// A prompt that was taken while a loop was open belongs to the loop after it.
func TestAPromptForTheLoopAfter(t *testing.T) {
	agent := stint.AgentFunc(func(ctx context.Context, l stint.Loop) (stint.Next, error) {
		if l.Session().At.Loop == 1 {
			if _, err := l.Do(ctx, stint.Step{Name: "ask", Ask: "Now?"}, func(context.Context, string) (stint.Result, error) { return stint.Result{}, nil }); err != nil {
				return stint.Next{}, err
			}
			return stint.Next{State: json.RawMessage(`"asked"`)}, nil
		}
		state := marshal(t, string(l.Inbox()[0].Body))
		return stint.Next{State: state, End: &stint.End{}}, nil
	})
	r := newRig(t, agent)
	s := r.start("")
	r.send(stint.Message{Kind: stint.Restart, Data: json.RawMessage(`{"say":"again"}`)})
	row, err := r.store.Session(t.Context(), r.id)
	if err != nil || row.Session.At.Said == 0 {
		t.Fatalf("no prompt is on record for the loop after: %+v, %v", row.Session.At, err)
	}
	if s = r.decide(s, stint.ApprovalApproved, "", ""); s.Status != stint.Completed {
		t.Fatalf("it is %s: %s", s.Status, s.Reason)
	}
	rep, err := replay.Run(t.Context(), r.store, r.id, agent, replay.Options{Line: -1})
	if err != nil || rep.Divergence != nil || len(rep.Loops) != 2 {
		t.Errorf("%v: %s", err, marshal(t, rep))
	}
}

// A wait for a child that is over at once leaves no trace: what stops the session after it
// is a limit, or a person.
func TestAWaitForNoChildBeforeALimit(t *testing.T) {
	agent := stint.AgentFunc(func(context.Context, stint.Loop) (stint.Next, error) {
		return stint.Next{Wait: &stint.Wait{For: stint.ForChild}}, nil
	})
	r := newRig(t, agent)
	r.agent.Limits = func(time.Time) stint.Limits { return stint.Limits{Loops: 2} }
	if s := r.start(""); s.Wait == nil || s.Wait.For != stint.ForBudget {
		t.Fatalf("it is %s: %s", s.Status, s.Reason)
	}
	rep, err := replay.Run(t.Context(), r.store, r.id, agent, replay.Options{Line: -1})
	if err != nil || rep.Divergence != nil || len(rep.Loops) != 2 {
		t.Errorf("%v: %s", err, marshal(t, rep))
	}
}
