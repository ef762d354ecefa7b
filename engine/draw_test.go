package engine_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/journal"
)

const dollar = stint.Money(1e9)

// spender calls a model at a dollar a call, again and again; reserve is what it says of
// that before.
func spender(calls *atomic.Int32, reserve stint.Money) engine.Agent {
	return agent("spender", func(ctx context.Context, l stint.Loop) (stint.Next, error) {
		_, err := l.Do(ctx, stint.Step{Name: "model", Kind: stint.Model, Effect: stint.Read, Reserve: stint.Usage{Cost: reserve}},
			func(context.Context, string) (stint.Result, error) {
				calls.Add(1)
				l.(stint.Reporter).Log("log", []byte("a call\n"))
				<-time.After(time.Second)
				return stint.Result{Usage: stint.Usage{Input: 10, Cost: dollar}}, nil
			})
		return stint.Next{}, err
	})
}

// brood spawns n of an agent, and waits for them.
func brood(n int, agents ...string) engine.Agent {
	return agent("brood", func(ctx context.Context, l stint.Loop) (stint.Next, error) {
		if l.Session().At.Loop == 1 {
			for i := range n {
				if _, err := spawn(ctx, l, stint.Child{Agent: agents[0], Name: fmt.Sprintf("%s.%d", l.Session().Name, i)}); err != nil {
					return stint.Next{}, err
				}
			}
		}
		return waitsForChild(), nil
	})
}

// TestATreeSharesItsBudget: eight children at a dollar a call share their parent's five.
func TestATreeSharesItsBudget(t *testing.T) {
	for _, reserve := range []stint.Money{dollar, 0} {
		t.Run(fmt.Sprintf("reserving %v", reserve), func(t *testing.T) {
			inBubble(t, func(r *rig) {
				var calls atomic.Int32
				kid, parent := spender(&calls, reserve), brood(8, "spender")
				if reserve == 0 {
					parent = brood(1, "spender") // who reserves nothing is stopped by what others used
				}
				n := r.serve(engine.Options{Agents: []engine.Agent{parent, kid}, Holder: "r1", Concurrency: 20})
				res, err := n.Start(t.Context(), engine.Request{Agent: parent, Name: "root", Limits: &stint.Limits{Cost: 5 * dollar}})
				if err != nil {
					t.Fatal(err)
				}
				<-time.After(time.Minute)
				spent := func(want int) {
					t.Helper()
					all := r.family(res.ID)
					var sum stint.Money
					for _, s := range all {
						sum += s.Totals.Usage.Cost
						if s.Name != "root" && (s.Status != stint.Waiting || s.Wait.For != stint.ForBudget || !strings.Contains(s.Wait.What, "of root")) {
							t.Errorf("%s is %s: %s, %+v", s.Name, s.Status, s.Reason, s.Wait)
						}
						r.verifies(s.ID)
					}
					if got := int(calls.Load()); got != want || sum != stint.Money(want)*dollar {
						t.Errorf("%d calls for $%v, want %d", got, sum, want)
					}
				}
				spent(5)
				r.send(res.ID, stint.SetLimit, journal.Command{Limits: &stint.Limits{Cost: 7 * dollar}})
				<-time.After(time.Minute)
				spent(7)
				r.send(res.ID, stint.Kill, journal.Command{})
				r.settles(res.ID, stint.Canceled)
				<-time.After(time.Second)
				n.stop()
			})
		})
	}
}

// TestWhatWasUsedBeforeAChildCounts: the parent has used two of its three dollars when it
// spawns, and the grandchild draws on it too.
func TestWhatWasUsedBeforeAChildCounts(t *testing.T) {
	inBubble(t, func(r *rig) {
		var calls atomic.Int32
		kid, middle := spender(&calls, dollar), brood(1, "spender")
		call := spender(&calls, dollar)
		parent := agent("top", func(ctx context.Context, l stint.Loop) (stint.Next, error) {
			switch l.Session().At.Loop {
			case 1, 2:
				return call.Loop.Loop(ctx, l)
			case 3:
				_, err := spawn(ctx, l, stint.Child{Agent: "brood", Name: "middle"})
				return waitsForChild(), err
			}
			return waitsForChild(), nil
		})
		n := r.serve(engine.Options{Agents: []engine.Agent{parent, middle, kid}, Holder: "r1", Concurrency: 20})
		res, err := n.Start(t.Context(), engine.Request{Agent: parent, Name: "root", Limits: &stint.Limits{Tokens: 35}})
		if err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Minute)
		// The third call has 15 of 35 tokens left and uses 10; the fourth has 5 and may begin.
		if got := calls.Load(); got != 4 {
			t.Errorf("%d calls, want 4", got)
		}
		if s := r.child("middle.0"); s.Status != stint.Waiting || !strings.Contains(s.Wait.What, "tokens: 35 tokens of root") {
			t.Errorf("the grandchild is %s: %+v", s.Status, s.Wait)
		}
		r.send(res.ID, stint.Kill, journal.Command{})
		r.settles(res.ID, stint.Canceled)
		<-time.After(time.Second)
		n.stop()
	})
}

func TestLimitsOfChildrenAndToolCalls(t *testing.T) {
	inBubble(t, func(r *rig) {
		a := nest("nest", 5)
		n := r.serve(engine.Options{Agents: []engine.Agent{a}, Holder: "r1", Concurrency: 50})
		res, err := n.Start(t.Context(), engine.Request{Agent: a, Name: "root", Limits: &stint.Limits{Children: 4}})
		if err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Minute)
		count := func(want int) {
			t.Helper()
			if all := r.family(res.ID); len(all) != want {
				t.Errorf("%d sessions, want %d", len(all), want)
			}
		}
		count(5)
		parked := 0
		for _, s := range r.family(res.ID) {
			if s.Status == stint.Waiting && s.Wait.For == stint.ForBudget && strings.Contains(s.Wait.What, "children: 4 of root") {
				parked++
			}
			r.verifies(s.ID)
		}
		if parked == 0 {
			t.Error("nobody waits for the limit of children")
		}
		r.send(res.ID, stint.SetLimit, journal.Command{Limits: &stint.Limits{Children: 6}})
		<-time.After(time.Minute)
		count(7)
		r.send(res.ID, stint.Kill, journal.Command{})
		<-time.After(time.Second)

		tools := agent("tools", func(ctx context.Context, l stint.Loop) (stint.Next, error) {
			for range 2 {
				if _, err := l.Do(ctx, stint.Step{Name: "t", Kind: stint.Tool, Effect: stint.Read}, func(context.Context, string) (stint.Result, error) {
					return stint.Result{}, stint.Definite(errBoom)
				}); err != nil && stint.CodeOf(err) != stint.Internal {
					return stint.Next{}, err
				}
			}
			return stint.Next{}, nil
		})
		c, err := n.Start(t.Context(), engine.Request{Agent: tools, Name: "tools", Limits: &stint.Limits{ToolCalls: 3}})
		if err != nil {
			t.Fatal(err)
		}
		n.stop()
		m := r.serve(engine.Options{Agents: []engine.Agent{tools}, Holder: "r2"})
		if s := r.settles(c.ID, stint.Waiting); s.Wait.For != stint.ForBudget || s.Wait.What != "tool_calls: 3 of 3 calls" || s.Totals.Tools != 3 {
			t.Errorf("waits for %s: %s after %d", s.Wait.For, s.Wait.What, s.Totals.Tools)
		}
		m.stop()
	})
}

// TestACrashLeavesItsDrawReserved: what a call may have cost counts until somebody knows.
func TestACrashLeavesItsDrawReserved(t *testing.T) {
	inBubble(t, func(r *rig) {
		var calls atomic.Int32
		kid, parent := spender(&calls, 3*dollar), brood(1, "spender")
		agents := []engine.Agent{parent, kid}
		n := r.serve(engine.Options{Agents: agents, Holder: "r1"})
		res, err := n.Start(t.Context(), engine.Request{Agent: parent, Name: "root", Limits: &stint.Limits{Cost: 5 * dollar}})
		if err != nil {
			t.Fatal(err)
		}
		<-time.After(100 * time.Millisecond) // the call is under way
		r.store.Kill("r1")
		m := r.serve(engine.Options{Agents: agents, Holder: "r2"})
		<-time.After(time.Minute)
		if s := r.child("root.0"); calls.Load() != 1 || s.Status != stint.Waiting || s.Wait.For != stint.ForBudget {
			t.Errorf("%d calls, the child is %s (%s)", calls.Load(), s.Status, s.Reason)
		}
		r.send(res.ID, stint.Kill, journal.Command{})
		r.settles(res.ID, stint.Canceled)
		<-time.After(time.Second)
		m.stop()
		n.stop()
	})
}

// TestALogBesideARefusedDraw: what an agent writes while its intent is tried waits until it
// is known whether that stands.
func TestALogBesideARefusedDraw(t *testing.T) {
	inBubble(t, func(r *rig) {
		var calls atomic.Int32
		call := spender(&calls, dollar)
		kid := agent("spender", func(ctx context.Context, l stint.Loop) (stint.Next, error) {
			over := make(chan struct{})
			defer close(over)
			go func() {
				for {
					select {
					case <-over:
						return
					case <-time.After(time.Millisecond):
						l.(stint.Reporter).Log("log", []byte("still here\n"))
					}
				}
			}()
			return call.Loop.Loop(ctx, l)
		})
		parent := brood(2, "spender")
		n := r.serveOn(&sluggish{mortal: r.store}, engine.Options{Agents: []engine.Agent{parent, kid}, Holder: "r1"})
		res, err := n.Start(t.Context(), engine.Request{Agent: parent, Name: "root", Limits: &stint.Limits{Cost: 3 * dollar}})
		if err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Minute)
		for _, s := range r.family(res.ID) {
			if s.Name != "root" && (s.Status != stint.Waiting || s.Wait.For != stint.ForBudget) {
				t.Errorf("%s is %s (%s)\n%s", s.Name, s.Status, s.Reason, r.journal(s.ID))
			}
			r.verifies(s.ID)
		}
		if calls.Load() != 3 {
			t.Errorf("%d calls, want 3", calls.Load())
		}
		r.send(res.ID, stint.Kill, journal.Command{})
		r.settles(res.ID, stint.Canceled)
		<-time.After(time.Second)
		n.stop()
	})
}

// sluggish is a store that takes its time with a draw, and answers from elsewhere.
type sluggish struct{ *mortal }

func (s *sluggish) Append(ctx context.Context, l stint.Lease, b stint.Batch, done func(error)) {
	for _, m := range b.Meters {
		if m.Reserve > 0 {
			go func() {
				<-time.After(20 * time.Millisecond)
				s.mortal.Append(ctx, l, b, done)
			}()
			return
		}
	}
	s.mortal.Append(ctx, l, b, done)
}
