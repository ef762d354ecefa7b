package exec_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/agent/exec"
)

// TestPythonSDK has agents of the Python SDK at the other end.
func TestPythonSDK(t *testing.T) {
	t.Parallel() // it mostly waits
	lib, err := filepath.Abs(filepath.Join("..", "..", "sdk", "python"))
	if err != nil {
		t.Fatal(err)
	}
	agent := func(t *testing.T, name string, keep exec.Keep) *script {
		t.Helper()
		return newScript(t, "sdk", func(s *exec.Spec) {
			s.Command, s.Keep = append(s.Command, name), keep
			s.Env["PYTHONPATH"] = lib
		})
	}
	t.Run("begun again", func(t *testing.T) {
		s := agent(t, "clerk", "")
		first := newLoop(3)
		first.inbox, first.state = []stint.Message{prompt("m", "A-18")}, []byte(`{"old":1,"big":12345678901234567890}`)
		var x *exec.ExitError
		if _, err := loop(t, s.agent, first); !errors.As(err, &x) || x.Code != 9 {
			t.Fatalf("the first attempt gave %v", err)
		}
		next, err := loop(t, s.agent, first.again())
		if err != nil {
			t.Fatal(err)
		}
		checkEnd(t, next, stint.Completed, "paid", `["key-3.1","key-3.2","key-3.3"]`)
		if string(next.State) != `{"big":12345678901234567890,"paid":true}` || next.Headline != "1 paid" {
			t.Errorf("the loop gave %s, %q", next.State, next.Headline)
		}
		if got := s.done(t); got != "charge key-2\nmail\n" {
			t.Errorf("the effects are %q", got)
		}
		if u := first.journal["3.2"].result.Usage; u.Input != 7 || u.Cost != 500_000_000 {
			t.Errorf("the usage is %+v", u)
		}
	})
	t.Run("kept", func(t *testing.T) {
		s := agent(t, "counter", exec.KeepSession)
		var state []byte
		processes := map[string]bool{}
		for number := 1; number <= 3; number++ {
			l := newLoop(number)
			l.state = state
			next, err := loop(t, s.agent, l)
			if err != nil || (next.Wait != nil) != (number == 3) {
				t.Fatalf("loop %d gave %+v, %v", number, next, err)
			}
			state = next.State
			processes[l.log("log")] = true
		}
		if string(state) != "3" || len(processes) != 1 {
			t.Errorf("the state is %s, the processes are %v", state, processes)
		}
	})
	t.Run("in doubt", func(t *testing.T) {
		if _, err := loop(t, agent(t, "doubt", "").agent, newLoop(1)); !errors.Is(err, stint.ErrParked) || !strings.Contains(err.Error(), "connection lost") {
			t.Errorf("the loop gave %v", err)
		}
	})
	t.Run("parked", func(t *testing.T) {
		l := newLoop(1)
		l.parkAt = "1"
		if _, err := loop(t, agent(t, "busy", "").agent, l); !errors.Is(err, stint.ErrParked) {
			t.Errorf("the loop gave %v", err)
		}
	})
	t.Run("asks for time", func(t *testing.T) {
		_, err := loop(t, agent(t, "busy", "").agent, newLoop(1))
		if after, final, _ := steering(err); after != 2*time.Second || final || !strings.Contains(err.Error(), "busy") {
			t.Errorf("the loop gave %v (after %v, final %v)", err, after, final)
		}
	})
}
