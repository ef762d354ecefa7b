package engine_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/journal"
	"github.com/stint-dev/stint/store/mem"
)

// branch makes a branch, and fails the test if there is none.
func (r *rig) branch(e *engine.Engine, parent stint.ID, b engine.Branch) stint.ID {
	r.t.Helper()
	c, err := e.Branch(r.t.Context(), parent, b)
	if err != nil {
		r.t.Fatal(err)
	}
	return c.ID
}

func TestBranch(t *testing.T) {
	inBubble(t, func(r *rig) {
		var ran []string
		a := agent("counter", counter(4, &ran))
		n := r.serve(engine.Options{Agents: []engine.Agent{a}, Holder: "r1"})
		id := r.start(n.Engine, a, "count")
		before := r.settles(id, stint.Completed)
		ran = nil
		two := 2
		b := r.branch(n.Engine, id, engine.Branch{From: &two, Reason: "what if", Say: "mind the gap", Actor: "human:kim"})
		s := r.settles(b, stint.Completed)
		if want := []string{"think 2", "act 2", "think 3", "act 3"}; !slices.Equal(ran, want) {
			t.Errorf("the branch did %q, want %q", ran, want)
		}
		if s.Family != id || s.Parent.Session != id || s.Parent.Loop != 2 || s.Name != before.Name+".2" || s.Totals.Loops != 2 || s.Checkpoint.Loop != 4 {
			t.Errorf("the branch is %+v", s)
		}
		if after := r.row(id).Session; after.Head != before.Head || after.HeadHash != before.HeadHash {
			t.Error("the parent's journal changed")
		}
		// A loop of the branch is kept as one of any session; those before it are the parent's.
		three, one := 3, 1
		r.send(b, stint.Restart, journal.Command{From: &three})
		<-time.After(time.Second)
		if s = r.settles(b, stint.Completed); s.At.Line != 1 {
			t.Errorf("the branch is on line %d after a restart", s.At.Line)
		}
		r.send(b, stint.Restart, journal.Command{From: &one})
		<-time.After(time.Second)
		if s = r.settles(b, stint.Completed); s.At.Line != 1 {
			t.Error("the branch went back to a loop of its parent")
		}
		if _, err := n.Branch(t.Context(), b, engine.Branch{From: &one}); stint.CodeOf(err) != stint.NotFound {
			t.Errorf("a branch of the branch at a loop of its parent: %v", err)
		}
		r.verifies(b)
		n.stop()
		r.note("the parent")
		r.show(id)
		r.note("the branch")
		r.show(b)
		r.golden("branch")
	})
}

// heard is an agent that keeps what it was told, by loop, and waits for more.
func heard(ctx context.Context, l stint.Loop) (stint.Next, error) {
	var all []string
	if l.State() != nil {
		if err := json.Unmarshal(l.State(), &all); err != nil {
			return stint.Next{}, err
		}
	}
	for _, m := range l.Inbox() {
		all = append(all, fmt.Sprintf("%d %s: %s", l.Session().At.Loop, m.From, m.Body))
	}
	if _, err := stint.Do(ctx, l, stint.Step{Name: "key", Effect: stint.Idempotent}, func(_ context.Context, key string) (string, error) { return key, nil }); err != nil {
		return stint.Next{}, err
	}
	state, err := stint.Marshal(all)
	return stint.Next{State: state, Wait: &stint.Wait{For: stint.ForMessage, Wakes: []stint.MessageKind{stint.Prompt}}}, err
}

// TestBranchHears: a branch before the first loop hears the input, also one of such a
// branch and one that went back; what a branch says is heard once.
func TestBranchHears(t *testing.T) {
	inBubble(t, func(r *rig) {
		a := agent("heard", heard)
		n := r.serve(engine.Options{Agents: []engine.Agent{a}, Holder: "r1"})
		long := string(bytes.Repeat([]byte("x"), 5000))
		state := func(id stint.ID) (all []string) {
			r.settles(id, stint.Waiting)
			<-time.After(time.Second)
			s := r.settles(id, stint.Waiting)
			b, err := journal.ReadState(s.Checkpoint, engine.Source(t.Context(), r.store, id, s.Family))
			if err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(b, &all); err != nil {
				t.Fatal(err)
			}
			for i := range all {
				if len(all[i]) > 1000 {
					all[i] = all[i][:13] + "…"
				}
			}
			return all
		}
		id := r.start(n.Engine, a, long)
		r.settles(id, stint.Waiting)
		r.message(id, stint.Message{Kind: stint.Prompt, Body: []byte("more")})
		zero, one := 0, 1
		input := "1 human:ana: …"
		for _, c := range []struct {
			what string
			make func() stint.ID
			want []string
		}{
			{"the parent", func() stint.ID { return id }, []string{input, "2 human:ana: more"}},
			{"at a loop", func() stint.ID { return r.branch(n.Engine, id, engine.Branch{From: &one, Say: "hi"}) }, []string{input, "2 engine: hi"}},
			{"before the first", func() stint.ID {
				return r.branch(n.Engine, id, engine.Branch{From: &zero, Say: "hi", Actor: "human:kim"})
			}, []string{input, "1 human:kim: hi"}},
			{"of that one", func() stint.ID {
				return r.branch(n.Engine, r.branch(n.Engine, id, engine.Branch{From: &zero}), engine.Branch{From: &zero})
			}, []string{input}},
			{"one that goes back", func() stint.ID {
				b := r.branch(n.Engine, id, engine.Branch{From: &zero, Say: "once"})
				r.settles(b, stint.Waiting)
				r.send(b, stint.Restart, journal.Command{From: &zero})
				return b
			}, []string{input}},
			{"with a state of its own", func() stint.ID {
				return r.branch(n.Engine, id, engine.Branch{From: &one, State: json.RawMessage(`["set"]`), Say: "hi"})
			}, []string{"set", "2 engine: hi"}},
		} {
			got := state(c.make())
			for i := range got {
				if len(got[i]) > 13 && got[i][len(got[i])-3:] == "…" {
					got[i] = got[i][:13] + "…"
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("%s: it heard %q, want %q", c.what, got, c.want)
			}
		}
		n.stop()
	})
}

// TestBranchKeys: the same step has one key in a session and another in each of its branches.
func TestBranchKeys(t *testing.T) {
	inBubble(t, func(r *rig) {
		a := agent("heard", heard)
		n := r.serve(engine.Options{Agents: []engine.Agent{a}, Holder: "r1"})
		id := r.start(n.Engine, a, "")
		r.settles(id, stint.Waiting)
		zero, keys := 0, map[string]bool{}
		all := []stint.ID{id}
		for range 3 {
			all = append(all, r.branch(n.Engine, id, engine.Branch{From: &zero}))
		}
		for _, id := range all {
			r.settles(id, stint.Waiting)
			for _, e := range r.entries(id) {
				if e.Kind == stint.StepCompleted {
					keys[string(e.Body)] = true
				}
			}
		}
		if n.stop(); len(keys) != len(all) {
			t.Errorf("%d sessions have %d keys", len(all), len(keys))
		}
	})
}

// TestBranchAcrossADoubt: a branch that would come to a step in doubt again is refused
// without a choice; it does not do the step where skip is chosen, nor does a branch of it.
func TestBranchAcrossADoubt(t *testing.T) {
	inBubble(t, func(r *rig) {
		did := 0
		a := agent("pay", func(ctx context.Context, l stint.Loop) (stint.Next, error) {
			_, err := stint.Do(ctx, l, stint.Step{Name: "pay", Effect: stint.Once}, func(context.Context, string) (any, error) { // a marker is no text
				if did++; did == 1 {
					return "", errBoom // nobody knows what became of it
				}
				return "paid", nil
			})
			return stint.Next{End: &stint.End{}}, err
		})
		n := r.serve(engine.Options{Agents: []engine.Agent{a}, Holder: "r1"})
		id := r.start(n.Engine, a, "")
		r.settles(id, stint.Waiting)
		if _, err := n.Branch(t.Context(), id, engine.Branch{}); stint.CodeOf(err) != stint.Conflict {
			t.Fatalf("a branch across a doubt: %v", err)
		}
		skips := r.branch(n.Engine, id, engine.Branch{InDoubt: journal.SkipDoubt})
		r.settles(skips, stint.Completed)
		zero := 0
		r.settles(r.branch(n.Engine, skips, engine.Branch{From: &zero}), stint.Completed)
		if did != 1 {
			t.Errorf("it was done %d times where it was to be skipped", did)
		}
		r.settles(r.branch(n.Engine, id, engine.Branch{InDoubt: journal.RedoDoubt}), stint.Completed)
		if n.stop(); did != 2 {
			t.Errorf("it was done %d times, want 2: once more in the branch", did)
		}
		r.show(skips)
		r.golden("branch-doubt")
	})
}

// counted is a store that counts what is read of it.
type counted struct {
	stint.Store

	reads, entries int
}

func (c *counted) Entries(ctx context.Context, r stint.Range) ([]stint.Entry, error) {
	es, err := c.Store.Entries(ctx, r)
	c.reads++
	c.entries += len(es)
	return es, err
}

// TestBranchCost: what a branch reads does not grow with the loops of its parent.
func TestBranchCost(t *testing.T) {
	for _, same := range []bool{false, true} {
		store := &counted{Store: mem.New()}
		e, err := engine.New(t.Context(), store, engine.Options{Holder: "r1"})
		if err != nil {
			t.Fatal(err)
		}
		a := agent("a", func(ctx context.Context, l stint.Loop) (stint.Next, error) {
			at := l.Session().At.Loop
			next := stint.Next{State: json.RawMessage(fmt.Sprint(at))}
			if same && at%2 == 0 {
				next.State = nil
			}
			if at == 2000 {
				next.End = &stint.End{}
			}
			return next, nil
		})
		var id stint.ID
		if _, err := e.RunNew(t.Context(), engine.Request{Agent: a}, func(c engine.Created) { id = c.ID }); err != nil {
			t.Fatal(err)
		}
		for _, loop := range []int{0, 1, 999, 1000, 1998, 1999, 2000} {
			store.reads, store.entries = 0, 0
			c, err := e.Branch(t.Context(), id, engine.Branch{From: &loop})
			if err != nil {
				t.Fatal(err)
			}
			if store.reads > 160 || store.entries > 160 { // half of it is the chain of deltas
				t.Errorf("a branch at loop %d of 2,000 made %d reads of %d entries", loop, store.reads, store.entries)
			}
			row, err := store.Session(t.Context(), c.ID)
			if err != nil {
				t.Fatal(err)
			}
			got, err := journal.ReadState(row.Session.Checkpoint, engine.Source(t.Context(), store, c.ID, id))
			want := fmt.Sprint(loop)
			if same && loop > 0 {
				want = fmt.Sprint(loop - 1 + loop%2)
			}
			if loop == 0 {
				want = ""
			}
			if err != nil || string(got) != want {
				t.Errorf("a branch at loop %d begins with %q, %v; want %q", loop, got, err, want)
			}
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
}

// versioned makes agents that say in their state which definition they are.
func versioned(ref stint.AgentRef, config json.RawMessage) (engine.Agent, error) {
	if string(config) == `{"v":0}` {
		return engine.Agent{}, errBoom
	}
	return engine.Agent{Name: ref.Name, Runtime: ref.Runtime, Config: config, Loop: stint.AgentFunc(func(_ context.Context, l stint.Loop) (stint.Next, error) {
		state := slices.Concat(l.State(), []byte(fmt.Sprintf(" %d", l.Session().At.Loop)), config)
		quoted, err := stint.Marshal(string(state))
		next := stint.Next{State: quoted}
		if l.Session().At.Loop%2 == 0 {
			next.Wait = &stint.Wait{For: stint.ForOperator}
		}
		return next, err
	})}, nil
}

// TestAnotherAgent: a line, or a branch, that begins with another definition goes on with it,
// in every process; what was before stays pinned as it was.
func TestAnotherAgent(t *testing.T) {
	inBubble(t, func(r *rig) {
		ref := func(config string) *stint.AgentRef {
			return &stint.AgentRef{Name: "a", Runtime: "exec", Pin: sha256.Sum256([]byte(config))}
		}
		first, err := versioned(*ref(`{"v":1}`), json.RawMessage(`{"v":1}`))
		if err != nil {
			t.Fatal(err)
		}
		opt := engine.Options{Resolve: versioned, Holder: "r1"}
		n := r.serve(opt)
		id := r.start(n.Engine, first, "")
		r.settles(id, stint.Waiting)
		one := 1
		for _, c := range []journal.Command{
			{From: &one, Agent: ref(`{"v":2}`), Config: json.RawMessage(`{"v":3}`)}, // not what the pin is of
			{Agent: ref(`{"v":2}`), Config: json.RawMessage(`{"v":2}`)},             // on the same line
			{From: &one, Agent: ref(`{"v":0}`), Config: json.RawMessage(`{"v":0}`)}, // one that cannot be made
		} {
			r.send(id, stint.Restart, c)
			<-time.After(time.Second)
			if s := r.settles(id, stint.Waiting); s.At.Line != 0 {
				t.Errorf("%+v began a line", c)
			}
		}
		r.send(id, stint.Restart, journal.Command{From: &one, Agent: ref(`{"v":2}`), Config: json.RawMessage(`{"v":2}`)})
		<-time.After(time.Second)
		if s := r.settles(id, stint.Waiting); s.At.Line != 1 || s.Agent != *ref(`{"v":2}`) {
			t.Errorf("line %d of %+v", s.At.Line, s.Agent)
		}
		n.stop()
		opt.Holder = "r2"
		n = r.serve(opt) // which knows no agent but by the journal
		r.send(id, stint.Resume, journal.Command{})
		<-time.After(time.Second)
		r.settles(id, stint.Waiting)
		third, err := versioned(*ref(`{"v":3}`), json.RawMessage(`{"v":3}`))
		if err != nil {
			t.Fatal(err)
		}
		with := r.branch(n.Engine, id, engine.Branch{Agent: &third})
		same := r.branch(n.Engine, id, engine.Branch{})
		for id, want := range map[stint.ID]string{id: `{"v":2}`, same: `{"v":2}`, with: `{"v":3}`} {
			s := r.settles(id, stint.Waiting)
			got, err := engine.Pinned(t.Context(), r.store, &s)
			if err != nil || string(got) != want || s.Agent.Pin != sha256.Sum256(got) {
				t.Errorf("%s is pinned to %s, %v; want %s", s.Name, got, err, want)
			}
		}
		n.stop()
		r.show(id)
		r.golden("another-agent")
	})
}
