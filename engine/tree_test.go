package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/journal"
)

func spawn(ctx context.Context, l stint.Loop, c stint.Child) (stint.ID, error) {
	return l.(stint.Spawner).Spawn(ctx, c)
}

// inboxOf is what a loop's inbox says, a line a message.
func inboxOf(l stint.Loop) string {
	var lines []string
	for _, m := range l.Inbox() {
		var end engine.ChildEnded
		if m.Kind == stint.ChildEnd {
			_ = json.Unmarshal(m.Data, &end)
			lines = append(lines, fmt.Sprintf("%s %s: %s", end.Name, end.Outcome, m.Body))
			continue
		}
		lines = append(lines, string(m.Body))
	}
	return strings.Join(lines, "\n")
}

func ends(result string) stint.Next {
	return stint.Next{End: &stint.End{Result: json.RawMessage(result)}}
}

func waitsForChild() stint.Next { return stint.Next{Wait: &stint.Wait{For: stint.ForChild}} }

// child returns the newest session of a name.
func (r *rig) child(name string) stint.Session {
	r.t.Helper()
	rows, err := r.store.Sessions(r.t.Context(), stint.Filter{Name: name})
	if err != nil || len(rows) == 0 {
		r.t.Fatalf("no session %q: %v", name, err)
	}
	return rows[0].Session
}

// family are the sessions of a family, oldest first.
func (r *rig) family(id stint.ID) []stint.Session {
	r.t.Helper()
	rows, err := r.store.Sessions(r.t.Context(), stint.Filter{Family: id})
	if err != nil {
		r.t.Fatal(err)
	}
	var all []stint.Session
	for i := range slices.Backward(rows) {
		all = append(all, rows[i].Session)
	}
	return all
}

func TestAChildIsSpawnedAndWaitedFor(t *testing.T) {
	inBubble(t, func(r *rig) {
		child := agent("worker", func(_ context.Context, l stint.Loop) (stint.Next, error) {
			<-time.After(time.Minute)
			return ends(`{"of":"` + inboxOf(l) + `"}`), nil
		})
		parent := agent("boss", func(ctx context.Context, l stint.Loop) (stint.Next, error) {
			if l.Session().At.Loop == 1 {
				if _, err := spawn(ctx, l, stint.Child{Agent: "worker", Input: []byte("dig")}); err != nil {
					return stint.Next{}, err
				}
				return waitsForChild(), nil
			}
			return ends(fmt.Sprintf("%q", inboxOf(l))), nil
		})
		n := r.serve(engine.Options{Agents: []engine.Agent{parent, child}, Holder: "r1"})
		c, err := n.Start(t.Context(), engine.Request{Agent: parent, Name: "boss"})
		if err != nil {
			t.Fatal(err)
		}
		s := r.settles(c.ID, stint.Completed)
		n.stop()
		r.note("the parent")
		r.show(c.ID)
		kid := r.child("boss.worker-1")
		r.note("the child")
		r.show(kid.ID)
		said := strings.NewReplacer(c.ID.String(), "PARENT", kid.ID.String(), "CHILD").Replace(r.out.String())
		r.out.Reset()
		r.out.WriteString(said)
		r.golden("child")
		r.verifies(c.ID)
		r.verifies(kid.ID)
		if s.Totals.Children != 1 || kid.Family != c.ID || kid.Parent.Session != c.ID || kid.Trigger != (stint.Trigger{Kind: "session", Ref: c.ID.String()}) {
			t.Errorf("the parent spawned %d, the child has family %v, parent %v, trigger %v", s.Totals.Children, kid.Family, kid.Parent, kid.Trigger)
		}
		at := r.entries(c.ID)[kid.Parent.Seq-1]
		if at.Hash != kid.Parent.Hash || at.Kind != stint.StepRequested {
			t.Errorf("the child names entry %d, a %s, with another hash than it has", at.Seq, at.Kind)
		}
	})
}

// TestACrashMakesOneChild: the runner dies between the child's creation and the outcome of
// the step.
func TestACrashMakesOneChild(t *testing.T) {
	inBubble(t, func(r *rig) {
		child := agent("worker", func(context.Context, stint.Loop) (stint.Next, error) { return ends(`1`), nil })
		parent := agent("boss", func(ctx context.Context, l stint.Loop) (stint.Next, error) {
			if l.Session().At.Loop == 1 {
				if _, err := spawn(ctx, l, stint.Child{Agent: "worker", Name: "kid"}); err != nil {
					return stint.Next{}, err
				}
				return waitsForChild(), nil
			}
			return ends(`2`), nil
		})
		agents := []engine.Agent{parent, child}
		first := r.serveOn(&mayfly{mortal: r.store, holder: "r1"}, engine.Options{Agents: agents, Holder: "r1"})
		c, err := first.Start(t.Context(), engine.Request{Agent: parent, Name: "boss"})
		if err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Second)
		second := r.serve(engine.Options{Agents: agents, Holder: "r2"})
		s := r.settles(c.ID, stint.Completed)
		if all := r.family(c.ID); len(all) != 2 || s.Totals.Children != 1 || s.Epoch < 2 {
			t.Errorf("%d sessions in the family, %d spawned, at epoch %d\n%s", len(all), s.Totals.Children, s.Epoch, r.journal(c.ID))
		}
		r.verifies(c.ID)
		second.stop()
		first.stop()
	})
}

// mayfly is a store whose runner dies as soon as it has made a child.
type mayfly struct {
	*mortal
	holder string
	dead   atomic.Bool
}

func (d *mayfly) Create(ctx context.Context, b stint.Batch, c stint.Claim) (stint.Lease, error) {
	l, err := d.mortal.Create(ctx, b, c)
	if b.Session.Trigger.Kind == "session" && d.dead.CompareAndSwap(false, true) {
		d.Kill(d.holder)
	}
	return l, err
}

// Append of a dead process does not reach the store.
func (d *mayfly) Append(ctx context.Context, l stint.Lease, b stint.Batch, done func(error)) {
	if d.dead.Load() {
		done(stint.Fenced.Errorf("append", "the process is dead"))
		return
	}
	d.mortal.Append(ctx, l, b, done)
}

// nest spawns itself down to a depth, and then each level waits for the one below it.
func nest(name string, depth int) engine.Agent {
	return agent(name, func(ctx context.Context, l stint.Loop) (stint.Next, error) {
		if strings.Count(l.Session().Name, ".") == depth {
			return stint.Next{Wait: &stint.Wait{For: stint.ForMessage}}, nil
		}
		if l.Session().At.Loop == 1 {
			for i := range 2 {
				if _, err := spawn(ctx, l, stint.Child{Agent: name, Name: fmt.Sprintf("%s.%d", l.Session().Name, i)}); err != nil {
					return stint.Next{}, err
				}
			}
		}
		return waitsForChild(), nil
	})
}

func TestControlReachesTheTree(t *testing.T) {
	for _, c := range []struct {
		kind  stint.MessageKind
		want  stint.Status
		waits stint.WaitFor
	}{
		{stint.Stop, stint.Canceled, ""},
		{stint.Kill, stint.Canceled, ""},
		{stint.Pause, stint.Waiting, stint.ForOperator},
		{stint.Interrupt, stint.Waiting, stint.ForMessage},
	} {
		t.Run(string(c.kind), func(t *testing.T) {
			inBubble(t, func(r *rig) {
				a := nest("nest", 2)
				n := r.serve(engine.Options{Agents: []engine.Agent{a}, Holder: "r1", Concurrency: 20})
				res, err := n.Start(t.Context(), engine.Request{Agent: a, Name: "top"})
				if err != nil {
					t.Fatal(err)
				}
				<-time.After(time.Minute)
				if all := r.family(res.ID); len(all) != 7 {
					t.Fatalf("%d sessions in the tree, want 7", len(all))
				}
				r.send(res.ID, c.kind, journal.Command{Reason: "enough"})
				<-time.After(5 * time.Second)
				for _, s := range r.family(res.ID) {
					if s.Status != c.want || c.waits != "" && s.Wait.For != c.waits {
						t.Errorf("%s is %s (%s)", s.Name, s.Status, s.Reason)
					}
					r.verifies(s.ID)
				}
				if c.kind == stint.Pause {
					r.send(res.ID, stint.Resume, journal.Command{})
					<-time.After(5 * time.Second)
					for _, s := range r.family(res.ID) {
						if s.Status == stint.Waiting && s.Wait.For == stint.ForOperator {
							t.Errorf("%s is still paused", s.Name)
						}
					}
				}
				n.stop()
			})
		})
	}
}

// TestAnOrderReachesTheTreeWithoutARunner: what a command line settles is settled below
// too, where nobody else would come by.
func TestAnOrderReachesTheTreeWithoutARunner(t *testing.T) {
	inBubble(t, func(r *rig) {
		a := nest("nest", 2)
		n := r.serve(engine.Options{Agents: []engine.Agent{a}, Holder: "r1", Concurrency: 20})
		res, err := n.Start(t.Context(), engine.Request{Agent: a, Name: "top"})
		if err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Minute)
		n.stop()
		e := r.engine(engine.Options{Holder: "cli"})
		r.send(res.ID, stint.Kill, journal.Command{})
		if err := e.Settle(r.t.Context(), res.ID); err != nil {
			t.Fatal(err)
		}
		for _, s := range r.family(res.ID) {
			if s.Status != stint.Canceled {
				t.Errorf("%s is %s", s.Name, s.Status)
			}
		}
		r.closes(e)
	})
}

func TestTheEndOfAParentEndsItsChildren(t *testing.T) {
	inBubble(t, func(r *rig) {
		child := agent("worker", func(context.Context, stint.Loop) (stint.Next, error) {
			return stint.Next{Wait: &stint.Wait{For: stint.ForMessage}}, nil
		})
		parent := agent("boss", func(ctx context.Context, l stint.Loop) (stint.Next, error) {
			for _, c := range []stint.Child{{Name: "kid"}, {Name: "free", Detach: true}} {
				c.Agent = "worker"
				if _, err := spawn(ctx, l, c); err != nil {
					return stint.Next{}, err
				}
			}
			<-time.After(time.Minute)
			return ends(`null`), nil
		})
		n := r.serve(engine.Options{Agents: []engine.Agent{parent, child}, Holder: "r1"})
		id := r.start(n.Engine, parent, "")
		r.settles(id, stint.Completed)
		<-time.After(5 * time.Second)
		if s := r.child("kid"); s.Status != stint.Canceled || !strings.Contains(s.Reason, "parent ended") {
			t.Errorf("the child is %s (%s)", s.Status, s.Reason)
		}
		if s := r.child("free"); s.Status != stint.Waiting {
			t.Errorf("the detached one is %s (%s)", s.Status, s.Reason)
		}
		n.stop()
	})
}

// TestAChildTellsItsEndOnce: one that is begun again and ends again is no news to its
// parent, on the same line or on another.
func TestAChildTellsItsEndOnce(t *testing.T) {
	inBubble(t, func(r *rig) {
		child := agent("worker", func(context.Context, stint.Loop) (stint.Next, error) { return ends(`1`), nil })
		var inboxes []string
		parent := agent("boss", func(ctx context.Context, l stint.Loop) (stint.Next, error) {
			inboxes = append(inboxes, inboxOf(l))
			if l.Session().At.Loop == 1 {
				_, err := spawn(ctx, l, stint.Child{Agent: "worker", Name: "kid"})
				return waitsForChild(), err
			}
			return stint.Next{Wait: &stint.Wait{For: stint.ForMessage, Wakes: []stint.MessageKind{stint.Prompt, stint.ChildEnd}}}, nil
		})
		n := r.serve(engine.Options{Agents: []engine.Agent{parent, child}, Holder: "r1"})
		id := r.start(n.Engine, parent, "go")
		<-time.After(time.Minute)
		kid := r.child("kid")
		zero := 0
		for _, c := range []journal.Command{{}, {From: &zero}} {
			r.send(kid.ID, stint.Restart, c)
			<-time.After(time.Minute)
			r.settles(kid.ID, stint.Completed)
		}
		if s := r.child("kid"); s.Totals.Restarts != 2 || s.At.Line != 1 {
			t.Errorf("the child was restarted %d times and is on line %d", s.Totals.Restarts, s.At.Line)
		}
		if want := []string{"go", "kid completed: 1"}; !slices.Equal(inboxes, want) {
			t.Errorf("the loops heard %q, want %q", inboxes, want)
		}
		r.send(id, stint.Stop, journal.Command{})
		r.settles(id, stint.Canceled)
		n.stop()
	})
}

// TestAnEndIsKeptWhereChildrenCannotBeRead: the store does not answer as a session ends, and
// its runner drains. The end waits for it, as a commit would: without it the session would
// go on after its agent ended it.
func TestAnEndIsKeptWhereChildrenCannotBeRead(t *testing.T) {
	inBubble(t, func(r *rig) {
		blind := &blindable{mortal: r.store}
		var n *runner
		loops := 0
		parent := agent("boss", func(ctx context.Context, l stint.Loop) (stint.Next, error) {
			loops++
			_, err := spawn(ctx, l, stint.Child{Agent: "worker", Name: "kid"})
			blind.is.Store(true)
			n.cancel()
			return ends(`null`), err
		})
		child := agent("worker", func(context.Context, stint.Loop) (stint.Next, error) {
			return stint.Next{Wait: &stint.Wait{For: stint.ForMessage}}, nil
		})
		agents := []engine.Agent{parent, child}
		n = r.serveOn(blind, engine.Options{Agents: agents, Holder: "r1"})
		id := r.start(n.Engine, parent, "")
		<-time.After(time.Minute)
		blind.is.Store(false)
		<-time.After(time.Minute)
		second := r.serve(engine.Options{Agents: agents, Holder: "r2"})
		r.settles(id, stint.Completed)
		<-time.After(5 * time.Second)
		if s := r.child("kid"); s.Status != stint.Canceled || loops != 1 {
			t.Errorf("the child is %s (%s), after %d loops of its parent\n%s", s.Status, s.Reason, loops, r.journal(id))
		}
		second.stop()
		n.stop()
	})
}

// blindable is a store that cannot be listed for a while.
type blindable struct {
	*mortal
	is atomic.Bool
}

func (b *blindable) Sessions(ctx context.Context, f stint.Filter) ([]stint.Row, error) {
	if b.is.Load() {
		return nil, stint.Unavailable.Errorf("list", "the disk does not answer")
	}
	return b.mortal.Sessions(ctx, f)
}

func TestAChildOfAnEndedParentDoesNotBegin(t *testing.T) {
	inBubble(t, func(r *rig) {
		begun := 0
		child := agent("worker", func(context.Context, stint.Loop) (stint.Next, error) {
			begun++
			return ends(`1`), nil
		})
		parent := agent("boss", func(ctx context.Context, l stint.Loop) (stint.Next, error) {
			_, err := spawn(ctx, l, stint.Child{Agent: "worker", Name: "kid"})
			return ends(`null`), err
		})
		n := r.serveOn(&forgetful{mortal: r.store}, engine.Options{Agents: []engine.Agent{parent, child}, Holder: "r1", Concurrency: 1})
		r.settles(r.start(n.Engine, parent, ""), stint.Completed)
		<-time.After(5 * time.Second)
		n.stop()
		if s := r.child("kid"); s.Status != stint.Canceled || s.Reason != "parent ended" || begun != 0 {
			t.Errorf("the child is %s (%s), and was begun %d times", s.Status, s.Reason, begun)
		}
	})
}

// forgetful is a store that loses what batches send, as where a child is made after its
// parent's end.
type forgetful struct{ *mortal }

func (f *forgetful) Append(ctx context.Context, l stint.Lease, b stint.Batch, done func(error)) {
	b.Sends = nil
	f.mortal.Append(ctx, l, b, done)
}

func TestSpawnIsRefused(t *testing.T) {
	inBubble(t, func(r *rig) {
		child := agent("worker", func(context.Context, stint.Loop) (stint.Next, error) { return ends(`1`), nil })
		codes := map[string]stint.Code{}
		parent := agent("boss", func(ctx context.Context, l stint.Loop) (stint.Next, error) {
			_, err := spawn(ctx, l, stint.Child{Agent: "worker", Input: []byte("\xff")})
			codes["input"] = stint.CodeOf(err)
			_, err = spawn(ctx, l, stint.Child{Agent: "none"})
			codes["agent"] = stint.CodeOf(err)
			_, err = spawn(ctx, l, stint.Child{Agent: "worker", Name: "a b"})
			codes["name"] = stint.CodeOf(err)
			return ends(`null`), nil
		})
		n := r.serve(engine.Options{Agents: []engine.Agent{parent, child}, Holder: "r1"})
		id := r.start(n.Engine, parent, "")
		r.settles(id, stint.Completed)
		n.stop()
		for what, want := range map[string]stint.Code{"input": stint.Invalid, "agent": stint.NotFound, "name": stint.Invalid} {
			if codes[what] != want {
				t.Errorf("a bad %s is %q, want %q", what, codes[what], want)
			}
		}
		if all := r.family(id); len(all) != 1 {
			t.Errorf("%d sessions in the family", len(all))
		}
	})
}

// TestRunDrivesTheChildren: who runs a session where nobody serves has its whole tree run.
func TestRunDrivesTheChildren(t *testing.T) {
	inBubble(t, func(r *rig) {
		child := agent("worker", func(context.Context, stint.Loop) (stint.Next, error) {
			<-time.After(time.Minute)
			return ends(`1`), nil
		})
		asks := agent("asks", func(context.Context, stint.Loop) (stint.Next, error) {
			return stint.Next{Wait: &stint.Wait{For: stint.ForMessage}}, nil
		})
		boss := func(name, of string) engine.Agent {
			return agent(name, func(ctx context.Context, l stint.Loop) (stint.Next, error) {
				switch {
				case l.Session().At.Loop == 1:
					for range 2 {
						if _, err := spawn(ctx, l, stint.Child{Agent: of}); err != nil {
							return stint.Next{}, err
						}
					}
				case l.Session().At.Loop == 3:
					return ends(`2`), nil
				}
				return waitsForChild(), nil
			})
		}
		top, middle, stuck := boss("top", "middle"), boss("middle", "worker"), boss("stuck", "asks")
		e := r.engine(engine.Options{Agents: []engine.Agent{top, middle, child, stuck, asks}, Holder: "r1"})
		s, err := e.RunNew(r.t.Context(), engine.Request{Agent: top, Name: "top"}, func(engine.Created) {})
		if err != nil || s.Status != stint.Completed {
			t.Fatalf("%s (%s), %v", s.Status, s.Reason, err)
		}
		all := r.family(s.ID)
		for _, s := range all {
			if s.Status != stint.Completed {
				t.Errorf("%s is %s (%s)", s.Name, s.Status, s.Reason)
			}
		}
		if len(all) != 7 {
			t.Errorf("%d sessions", len(all))
		}
		s, err = e.RunNew(r.t.Context(), engine.Request{Agent: stuck, Name: "stuck"}, func(engine.Created) {})
		if err != nil || s.Status != stint.Waiting || s.Wait.For != stint.ForChild {
			t.Fatalf("%s (%s), %v", s.Status, s.Reason, err)
		}
		for _, k := range r.family(s.ID)[1:] {
			r.message(k.ID, stint.Message{Kind: stint.Stop})
		}
		if s, err = e.Run(r.t.Context(), s.ID); stint.CodeOf(err) != stint.Conflict {
			t.Errorf("a session that waits for a child is run again: %s, %v", s.Status, err)
		}
		r.closes(e)
	})
}

// TestRunWaitsForChildrenOfAnotherRunner: a run beside a server does not give up on a child
// that the server has.
func TestRunWaitsForChildrenOfAnotherRunner(t *testing.T) {
	inBubble(t, func(r *rig) {
		child := agent("worker", func(context.Context, stint.Loop) (stint.Next, error) {
			<-time.After(time.Minute)
			return ends(`1`), nil
		})
		boss := agent("boss", func(ctx context.Context, l stint.Loop) (stint.Next, error) {
			if l.Session().At.Loop == 1 {
				_, err := spawn(ctx, l, stint.Child{Agent: "worker"})
				<-time.After(time.Second)
				return waitsForChild(), err
			}
			return ends(`2`), nil
		})
		n := r.serve(engine.Options{Agents: []engine.Agent{child}, Holder: "server"})
		e := r.engine(engine.Options{Agents: []engine.Agent{boss}, Holder: "r1", Find: func(string) (engine.Agent, error) { return child, nil }})
		s, err := e.RunNew(r.t.Context(), engine.Request{Agent: boss, Name: "boss"}, func(engine.Created) {})
		if err != nil || s.Status != stint.Completed {
			t.Errorf("%s (%s), %v", s.Status, s.Reason, err)
		}
		r.closes(e)
		n.stop()
	})
}

// TestRunGoesOnWithATree: the process that ran a tree dies; whoever runs its first session
// again runs all that is left.
func TestRunGoesOnWithATree(t *testing.T) {
	inBubble(t, func(r *rig) {
		worker := agent("worker", func(_ context.Context, l stint.Loop) (stint.Next, error) {
			if l.Session().At.Loop == 1 {
				return stint.Next{Wait: &stint.Wait{For: stint.ForTime, Until: time.Now().Add(time.Hour)}}, nil
			}
			return ends(`1`), nil
		})
		boss := func(name, of string) engine.Agent {
			return agent(name, func(ctx context.Context, l stint.Loop) (stint.Next, error) {
				if l.Session().At.Loop == 1 {
					if _, err := spawn(ctx, l, stint.Child{Agent: of}); err != nil {
						return stint.Next{}, err
					}
				}
				if strings.Contains(inboxOf(l), "completed") {
					return ends(`2`), nil
				}
				return waitsForChild(), nil
			})
		}
		agents := []engine.Agent{boss("top", "middle"), boss("middle", "worker"), worker}
		first := r.engine(engine.Options{Agents: agents, Holder: "r1"})
		ctx, cancel := context.WithCancel(r.t.Context())
		ran := make(chan struct{})
		var id stint.ID
		go func() {
			defer close(ran)
			_, _ = first.RunNew(ctx, engine.Request{Agent: agents[0], Name: "top"}, func(c engine.Created) { id = c.ID })
		}()
		<-time.After(time.Minute)
		r.store.Kill("r1")
		cancel()
		<-ran
		second := r.engine(engine.Options{Agents: agents, Holder: "r2"})
		r.send(id, stint.Resume, journal.Command{})
		s, err := second.Run(r.t.Context(), id)
		if err != nil || s.Status != stint.Completed {
			t.Errorf("%s (%s), %v", s.Status, s.Reason, err)
		}
		for _, s := range r.family(id) {
			if s.Status != stint.Completed {
				t.Errorf("%s is %s (%s)", s.Name, s.Status, s.Reason)
			}
		}
		r.closes(second)
		r.closes(first)
	})
}
