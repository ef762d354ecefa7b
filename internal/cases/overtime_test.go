package cases_test

import (
	"context"
	"testing"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/agent/exec"
	"github.com/stint-dev/stint/engine"
)

// slowly is an agent whose second loop has a step of ten minutes, after its first
// has waited for a person. It notes how the step ended.
func slowly(first, slow time.Duration, canceled *error) engine.Agent {
	nap := func(ctx context.Context, l stint.Loop, name string, d time.Duration) error {
		_, err := stint.Do(ctx, l, stint.Step{Name: name, Effect: stint.Read, Timeout: time.Hour}, func(ctx context.Context, _ string) (string, error) {
			select {
			case <-ctx.Done():
				*canceled = context.Cause(ctx)
				return "", *canceled
			case <-time.After(d):
				return "done", nil
			}
		})
		return err
	}
	return goAgent(func(ctx context.Context, l stint.Loop) (stint.Next, error) {
		if l.Session().At.Loop == 1 && first > 0 {
			err := nap(ctx, l, "prepare", first)
			return stint.Next{Wait: &stint.Wait{For: stint.ForMessage, What: "may I?"}}, err
		}
		return stint.Next{End: &stint.End{}}, nap(ctx, l, "slow", slow)
	})
}

// TestG05RunsTooLong: a session ends at its time, in the middle of a step that
// takes longer, and says which limit it was (shaharia-lab/agento#593).
func TestG05RunsTooLong(t *testing.T) {
	for _, c := range []struct {
		name   string
		limits func() stint.Limits
		grace  time.Duration
		status stint.Status
		reason string
		took   time.Duration
	}{
		{"deadline", func() stint.Limits { return stint.Limits{Deadline: time.Now().Add(20 * time.Second)} }, 0,
			stint.Stopped, "deadline: 2000-01-01T00:00:20Z", 20 * time.Second},
		{"wall, stop", func() stint.Limits { return stint.Limits{Wall: 20 * time.Second, Stop: true} }, time.Nanosecond,
			stint.Stopped, "wall: 20s", 20 * time.Second},
		{"wall", func() stint.Limits { return stint.Limits{Wall: 20 * time.Second} }, time.Nanosecond,
			stint.Waiting, "budget: wall: 20s", 20 * time.Second},
		{"wall, with the default grace for a step", func() stint.Limits { return stint.Limits{Wall: 20 * time.Second, Stop: true} }, 0,
			stint.Stopped, "wall: 20s and 1m30s of grace", 110 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			inTime(t, func(t *testing.T, p *place) {
				var canceled error
				a := slowly(0, 10*time.Minute, &canceled)
				a.Grace = c.grace
				lim, begun := c.limits(), time.Now()
				s := p.runLimited(a, "", &lim)
				p.ends(s, c.status, c.reason)
				if took := time.Since(begun).Truncate(time.Second); took != c.took || canceled == nil {
					t.Errorf("it took %v, want %v; the step ended with %v", took, c.took, canceled)
				}
				if row := p.row(s.ID); row.Live {
					t.Error("its lease is still held")
				}
			})
		})
	}
}

// TestG05WaitingForAPersonDoesNotCount: the wall limit counts running time. An hour
// that a session waits for an answer is not running.
func TestG05WaitingForAPersonDoesNotCount(t *testing.T) {
	for _, c := range []struct {
		name   string
		slow   time.Duration
		status stint.Status
		reason string
	}{
		{"within the limit", 8 * time.Second, stint.Completed, ""},
		{"what ran before the wait counts", 15 * time.Second, stint.Stopped, "wall: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			inTime(t, func(t *testing.T, p *place) {
				var canceled error
				a := slowly(10*time.Second, c.slow, &canceled)
				a.Grace = time.Nanosecond
				s := p.runLimited(a, "", &stint.Limits{Wall: 20 * time.Second, Stop: true})
				p.ends(s, stint.Waiting, "message: may I?")
				<-time.After(time.Hour)
				p.prompt(s.ID, "yes")
				s = p.goOn(a, s.ID)
				p.ends(s, c.status, c.reason)
				if s.Totals.Running < 18*time.Second || s.Totals.Running > 21*time.Second {
					t.Errorf("it ran for %v", s.Totals.Running)
				}
			})
		})
	}
}

// TestG05DeadlineCountsTheWait: a deadline is a time of the calendar; it ends a
// session that waits for a person, without a message and without a person.
func TestG05DeadlineCountsTheWait(t *testing.T) {
	inTime(t, func(t *testing.T, p *place) {
		var canceled error
		a := slowly(10*time.Second, time.Second, &canceled)
		e := p.engine(a)
		defer p.closes(e)
		ctx, cancel := context.WithCancel(t.Context())
		served := make(chan error, 1)
		go func() { served <- e.Serve(ctx) }()
		lim := stint.Limits{Deadline: time.Now().Add(5 * time.Minute)}
		created, err := e.Start(ctx, engine.Request{Agent: a, Limits: &lim})
		if err != nil {
			t.Fatal(err)
		}
		<-time.After(4 * time.Minute)
		p.ends(p.row(created.ID).Session, stint.Waiting, "message: may I?")
		<-time.After(2 * time.Minute)
		s := p.row(created.ID).Session
		p.ends(s, stint.Stopped, "deadline: 2000-01-01T00:05:00Z")
		if late := s.Ended.Sub(lim.Deadline); late > 2*time.Second {
			t.Errorf("it ended %v after its deadline", late)
		}
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
}

// TestG05Exec: the same with a program, in real time.
func TestG05Exec(t *testing.T) {
	t.Parallel() // it mostly waits
	nap := func(t *testing.T, args ...string) engine.Agent {
		t.Helper()
		a := pythonWith(t, func(s *exec.Spec) { s.Command = append([]string{"python3", "nap.py"}, args...) })
		a.Grace = time.Nanosecond
		return a
	}
	onFile(t, func(t *testing.T, p *place) {
		begun := time.Now()
		s := p.runLimited(nap(t, "0", "60"), "", &stint.Limits{Deadline: begun.Add(2 * time.Second)})
		p.ends(s, stint.Stopped, "deadline: ")
		if took := s.Ended.Sub(begun); took < 2*time.Second || took > 12*time.Second {
			t.Errorf("with a deadline after 2s it took %v", took)
		}
		s = p.runLimited(nap(t, "0", "60"), "", &stint.Limits{Wall: time.Second, Stop: true})
		p.ends(s, stint.Stopped, "wall: 1s")
		if s.Totals.Running < time.Second || s.Totals.Running > 12*time.Second {
			t.Errorf("with a wall limit of 1s it ran for %v", s.Totals.Running)
		}
	})
	t.Run("waiting for a person does not count", func(t *testing.T) {
		onFile(t, func(t *testing.T, p *place) {
			a := nap(t, "0.01", "0.01")
			lim := stint.Limits{Wall: patience, Stop: true}
			s := p.runLimited(a, "", &lim)
			p.ends(s, stint.Waiting, "message: may I?")
			running := s.Totals.Running
			begun := time.Now()
			<-time.After(time.Second)
			p.prompt(s.ID, "yes")
			s = p.goOn(a, s.ID)
			p.ends(s, stint.Completed)
			if grown := s.Totals.Running - running; grown > s.Ended.Sub(begun)-time.Second {
				t.Errorf("it ran for %v of the %v, of which it waited 1s", grown, s.Ended.Sub(begun))
			}
		})
	})
}
