package replay_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/internal/ident"
	"github.com/stint-dev/stint/internal/replay"
	"github.com/stint-dev/stint/journal"
)

// walker counts its loops, with what it was given and heard.
func walker(ctx context.Context, l stint.Loop) (stint.Next, error) {
	n := l.Session().At.Loop
	got, err := stint.Do(ctx, l, stint.Step{Name: "walk", Effect: stint.Read, Input: json.RawMessage(fmt.Sprint(n))}, func(context.Context, string) (int, error) { return n, nil })
	if err != nil {
		return stint.Next{}, err
	}
	heard := ""
	for _, m := range l.Inbox() {
		heard += string(m.Body) + ";"
	}
	next := stint.Next{State: json.RawMessage(fmt.Sprintf(`{"at":%d,"before":%d,"heard":%q}`, got, len(l.State()), heard))}
	if n == 4 {
		next.End = &stint.End{}
	}
	return next, nil
}

// The loops of a branch are its own: they begin behind the one that it branched off at.
func TestBranches(t *testing.T) {
	r := newRig(t, stint.AgentFunc(walker))
	r.start("begin")
	for _, from := range []int{0, 2} {
		c, err := r.e.Branch(t.Context(), r.id, engine.Branch{From: &from, Say: "otherwise", Actor: "human:ana"})
		if err != nil {
			t.Fatal(err)
		}
		if s, err := r.e.Run(t.Context(), c.ID); err != nil || s.Status != stint.Completed {
			t.Fatalf("the branch from %d is %s: %s, %v", from, s.Status, s.Reason, err)
		}
		rep, err := replay.Run(t.Context(), r.store, c.ID, stint.AgentFunc(walker), replay.Options{Line: -1})
		if err != nil || rep.Divergence != nil || len(rep.Loops) != 4-from || rep.From != from+1 || rep.To != 4 {
			t.Errorf("from %d: %v: %s", from, err, marshal(t, rep))
		}
		if _, err := replay.Run(t.Context(), r.store, c.ID, stint.AgentFunc(walker), replay.Options{Line: -1, From: from}); from > 0 && stint.CodeOf(err) != stint.NotFound {
			t.Errorf("loop %d of the parent: %v", from, err)
		}
	}
}

// An input that a person put in the place of the agent's is given to the agent again.
func TestEditedInput(t *testing.T) {
	agent := stint.AgentFunc(func(ctx context.Context, l stint.Loop) (stint.Next, error) {
		input := json.RawMessage(`{"amount":7}`)
		edited := "nothing"
		_, err := l.Do(ctx, stint.Step{Name: "pay", Input: input, Ask: "Pay?", Edit: func(in json.RawMessage) { edited = string(in) }}, func(context.Context, string) (stint.Result, error) {
			return stint.Result{Data: json.RawMessage(edited)}, nil
		})
		if err != nil {
			return stint.Next{}, err
		}
		return stint.Next{State: marshal(t, edited), End: &stint.End{}}, nil
	})
	r := newRig(t, agent)
	s := r.start("")
	_, seq := ident.CutApprovalID(s.Wait.Approval)
	d := journal.Decision{Approval: seq, State: stint.ApprovalApproved, Edit: true}
	if s = r.send(stint.Message{ID: d.MessageID(), Kind: stint.Decision, Data: marshal(t, d), Body: []byte(`{"amount":5}`)}); s.Status != stint.Completed {
		t.Fatalf("it is %s: %s %+v", s.Status, s.Reason, s.Wait)
	}
	rep, err := replay.Run(t.Context(), r.store, r.id, agent, replay.Options{Line: -1})
	if err != nil || rep.Divergence != nil {
		t.Errorf("%v: %s", err, marshal(t, rep))
	}
	other := stint.AgentFunc(func(ctx context.Context, l stint.Loop) (stint.Next, error) {
		_, err := l.Do(ctx, stint.Step{Name: "pay", Input: json.RawMessage(`{"amount":5}`)}, nil)
		return stint.Next{}, err
	})
	rep, err = replay.Run(t.Context(), r.store, r.id, other, replay.Options{Line: -1})
	if err != nil || rep.Divergence == nil || rep.Divergence.What != replay.OtherStep || rep.Divergence.Recorded.Size != -1 {
		t.Errorf("the input that the person chose, asked for by the agent: %v, %s", err, marshal(t, rep))
	}
}
