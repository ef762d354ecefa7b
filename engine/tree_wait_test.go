package engine_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/journal"
)

func TestAWaitForOneChildIsNotEndedByAnother(t *testing.T) {
	inBubble(t, func(r *rig) {
		child := agent("worker", func(_ context.Context, l stint.Loop) (stint.Next, error) {
			d, _ := time.ParseDuration(inboxOf(l))
			<-time.After(d)
			return ends(`"` + inboxOf(l) + `"`), nil
		})
		var inboxes []string
		parent := agent("boss", func(ctx context.Context, l stint.Loop) (stint.Next, error) {
			inboxes = append(inboxes, inboxOf(l))
			if l.Session().At.Loop > 1 {
				return ends(`null`), nil
			}
			if _, err := spawn(ctx, l, stint.Child{Agent: "worker", Name: "quick", Input: []byte("1m")}); err != nil {
				return stint.Next{}, err
			}
			id, err := spawn(ctx, l, stint.Child{Agent: "worker", Name: "slow", Input: []byte("1h")})
			return stint.Next{Wait: &stint.Wait{For: stint.ForChild, What: id.String()}}, err
		})
		n := r.serve(engine.Options{Agents: []engine.Agent{parent, child}, Holder: "r1"})
		id := r.start(n.Engine, parent, "go")
		<-time.After(30 * time.Minute)
		s := r.settles(id, stint.Waiting)
		if row := r.row(id); row.Unread != 0 || s.Wait.For != stint.ForChild {
			t.Errorf("%d messages unread, it waits for %s", row.Unread, s.Wait.For)
		}
		r.settles(id, stint.Completed)
		n.stop()
		want := []string{"go", "quick completed: \"1m\"\nslow completed: \"1h\""}
		if !slices.Equal(inboxes, want) {
			t.Errorf("the loops heard %q, want %q", inboxes, want)
		}
		r.verifies(id)
	})
}

func TestAWaitWithoutAnOpenChildGoesOn(t *testing.T) {
	inBubble(t, func(r *rig) {
		child := agent("worker", func(context.Context, stint.Loop) (stint.Next, error) { return ends(`1`), nil })
		var inboxes []string
		parent := agent("boss", func(ctx context.Context, l stint.Loop) (stint.Next, error) {
			inboxes = append(inboxes, inboxOf(l))
			switch l.Session().At.Loop {
			case 1:
				return waitsForChild(), nil // it has none
			case 2:
				_, err := spawn(ctx, l, stint.Child{Agent: "worker", Name: "kid"})
				<-time.After(time.Minute) // it ends meanwhile
				return waitsForChild(), err
			}
			return ends(`null`), nil
		})
		n := r.serve(engine.Options{Agents: []engine.Agent{parent, child}, Holder: "r1"})
		id := r.start(n.Engine, parent, "go")
		r.settles(id, stint.Completed)
		n.stop()
		if want := []string{"go", "", "kid completed: 1"}; !slices.Equal(inboxes, want) {
			t.Errorf("the loops heard %q, want %q", inboxes, want)
		}
	})
}

// TestAWaitIsNotForAChildThatHasTold: a child that ended, and was begun again, ends without
// a word the next time. Who waits for any child must not wait for that.
func TestAWaitIsNotForAChildThatHasTold(t *testing.T) {
	inBubble(t, func(r *rig) {
		parent := agent("boss", func(ctx context.Context, l stint.Loop) (stint.Next, error) {
			switch l.Session().At.Loop {
			case 1:
				_, err := spawn(ctx, l, stint.Child{Agent: "worker", Name: "kid"})
				return waitsForChild(), err
			case 2:
				<-time.After(time.Minute) // the child is begun again meanwhile
				return waitsForChild(), nil
			}
			return ends(`null`), nil
		})
		n := r.serve(engine.Options{Agents: []engine.Agent{parent, twoMinutes()}, Holder: "r1"})
		id := r.start(n.Engine, parent, "go")
		<-time.After(150 * time.Second)
		r.send(r.child("kid").ID, stint.Restart, journal.Command{})
		<-time.After(10 * time.Minute)
		if s := r.row(id).Session; s.Status != stint.Completed {
			t.Errorf("the parent is %s (%s)\n%s", s.Status, s.Reason, r.journal(id))
			r.send(id, stint.Stop, journal.Command{})
			r.settles(id, stint.Canceled)
		}
		n.stop()
	})
}

// TestAWaitIsForAChildThatHasNotTold: its parent was over when it ended, and both were begun
// again.
func TestAWaitIsForAChildThatHasNotTold(t *testing.T) {
	for name, c := range map[string]struct {
		lanes int           // how many sessions the runner drives at once
		stays time.Duration // how long the parent's first loop takes
		kid   stint.Status  // how the child ended the first time
	}{
		"it was stopped before it began": {lanes: 1, kid: stint.Canceled},
		"it ended by itself":             {lanes: 2, stays: time.Minute, kid: stint.Completed},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(r *rig) {
				parent := agent("boss", func(ctx context.Context, l stint.Loop) (stint.Next, error) {
					switch l.Session().At.Loop {
					case 1:
						_, err := spawn(ctx, l, stint.Child{Agent: "worker", Name: "kid"})
						<-time.After(c.stays)
						return ends(`null`), err
					case 2:
						return waitsForChild(), nil
					}
					return ends(fmt.Sprintf("%q", inboxOf(l))), nil
				})
				agents := []engine.Agent{parent, twoMinutes()}
				n := r.serve(engine.Options{Agents: agents, Holder: "r1", Concurrency: c.lanes})
				id := r.start(n.Engine, parent, "go")
				<-time.After(3 * time.Minute)
				n.stop()
				n = r.serve(engine.Options{Agents: agents, Holder: "r2"})
				kid := r.child("kid").ID
				r.settles(kid, c.kid)
				r.send(kid, stint.Restart, journal.Command{})
				<-time.After(time.Second)
				r.send(id, stint.Restart, journal.Command{})
				<-time.After(5 * time.Minute)
				s := r.settles(id, stint.Completed)
				if heard := r.entries(id)[s.Head-1].Body; string(heard) != `"kid completed: 1"` {
					t.Errorf("the loop after the wait heard %s\n%s", heard, r.journal(id))
				}
				n.stop()
			})
		})
	}
}

// twoMinutes is a worker that takes two minutes, whatever is asked of it meanwhile.
func twoMinutes() engine.Agent {
	return agent("worker", func(context.Context, stint.Loop) (stint.Next, error) {
		<-time.After(2 * time.Minute)
		return ends(`1`), nil
	})
}

// TestAWaitThatIsOverHearsTheChild: the child ends as its parent is about to wait, before
// the runner has told the parent of any message. What it gave is input of the next loop.
func TestAWaitThatIsOverHearsTheChild(t *testing.T) {
	inBubble(t, func(r *rig) {
		var inboxes []string
		parent := agent("boss", func(ctx context.Context, l stint.Loop) (stint.Next, error) {
			inboxes = append(inboxes, inboxOf(l))
			if l.Session().At.Loop == 1 {
				_, err := spawn(ctx, l, stint.Child{Agent: "worker", Name: "kid"})
				<-time.After(3 * time.Minute)
				return waitsForChild(), err
			}
			return ends(`null`), nil
		})
		n := r.serveOn(&mute{r.store}, engine.Options{Agents: []engine.Agent{parent, twoMinutes()}, Holder: "r1"})
		id := r.start(n.Engine, parent, "go")
		r.settles(id, stint.Completed)
		n.stop()
		if want := []string{"go", "kid completed: 1"}; !slices.Equal(inboxes, want) {
			t.Errorf("the loops heard %q, want %q", inboxes, want)
		}
	})
}

// mute is a store that does not say who has messages.
type mute struct{ *mortal }

func (*mute) Unread(context.Context, string) ([]stint.ID, error) { return nil, nil }
