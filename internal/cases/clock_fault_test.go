//go:build faultinject

package cases_test

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
)

// movable is a clock that a test can move.
type movable struct {
	t    *testing.T
	path string
}

func newClock(t *testing.T) movable {
	t.Helper()
	c := movable{t, filepath.Join(t.TempDir(), "clock")}
	t.Setenv("STINT_TEST_CLOCK", c.path)
	c.set(0)
	return c
}

func (c movable) set(d time.Duration) {
	c.t.Helper()
	next := c.path + ".next"
	if err := os.WriteFile(next, []byte(d.String()), 0o600); err != nil {
		c.t.Fatal(err)
	}
	if err := os.Rename(next, c.path); err != nil {
		c.t.Fatal(err)
	}
}

// TestMovedClock: a clock that goes back by an hour, once or again and again,
// changes the labels of entries and nothing else: not their order, not what was
// recorded, and no time that a session ran becomes negative.
func TestMovedClock(t *testing.T) {
	for name, move := range map[string]func(i int) time.Duration{
		"once":            func(i int) time.Duration { return -time.Hour * time.Duration(i/100) },
		"again and again": func(i int) time.Duration { return -time.Hour * time.Duration(i%2) },
		"forth and back":  func(i int) time.Duration { return time.Hour * time.Duration(1-i%3) },
	} {
		t.Run(name+"/go", func(t *testing.T) {
			onStores(t, func(t *testing.T, p *place) {
				c := newClock(t)
				backAndForth(t, p, manySteps(func(i int) { c.set(move(i)) }))
			})
		})
		t.Run(name+"/exec", func(t *testing.T) {
			onStores(t, func(t *testing.T, p *place) {
				var times []string
				for i := range 200 {
					times = append(times, move(i).String())
				}
				backAndForth(t, p, python(t, "steps", newClock(t).path, strings.Join(times, ",")))
			})
		})
	}
	t.Run("while a session is retried", func(t *testing.T) {
		onStores(t, func(t *testing.T, p *place) {
			c := newClock(t)
			a := goAgent(func(_ context.Context, l stint.Loop) (stint.Next, error) {
				c.set(-time.Hour * time.Duration(l.Session().At.Attempt))
				if l.Session().At.Attempt < 3 {
					return stint.Next{}, context.DeadlineExceeded
				}
				return stint.Next{State: []byte(strconv.Itoa(l.Session().At.Attempt)), End: &stint.End{}}, nil
			})
			a.Retry = engine.Retry{Attempts: 5, Initial: time.Millisecond}
			p.ends(p.run(a, ""), stint.Completed)
		})
	})
}

// backAndForth runs an agent of 200 steps that moves the clock.
func backAndForth(t *testing.T, p *place, a engine.Agent) {
	t.Helper()
	s := p.run(a, "")
	p.ends(s, stint.Completed)
	back := 0
	es := p.entries(s.ID)
	for i := range es[1:] {
		if es[i+1].At.Before(es[i].At.Add(-59 * time.Minute)) {
			back++
		}
	}
	if back == 0 {
		t.Fatal("the clock did not go back")
	}
	if s.Totals.Running < 0 {
		t.Errorf("the session ran for %v", s.Totals.Running)
	}
	inOrder(t, p, s.ID, 20)
}
