package exec_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/agent/exec"
	"github.com/stint-dev/stint/internal/proc"
)

// patience is how long the tests wait for what has to come. It only ends a test that
// would hang: how long a program takes depends on what else the machine does.
const patience = time.Minute

// await polls for something that another process does.
func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(patience)
	for !done() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("gave up waiting for %s", what)
		}
	}
}

// result waits for the error of a loop.
func result(t *testing.T, loops <-chan error) error {
	t.Helper()
	select {
	case err := <-loops:
		return err
	case <-time.After(patience):
		t.Fatal("the loop does not end")
		panic("unreachable")
	}
}

// pids reads process ids, n of them, from a file that programs append to.
func pids(t *testing.T, path string, n int) []proc.Ident {
	t.Helper()
	var out []proc.Ident
	await(t, "process ids", func() bool {
		fields := strings.Fields(read(t, path))
		if len(fields) < n {
			return false
		}
		out = nil
		for _, f := range fields {
			pid, err := strconv.Atoi(f)
			if err != nil {
				t.Fatal(err)
			}
			if id, ok := proc.IdentOf(pid); ok {
				out = append(out, id)
			}
		}
		return true
	})
	if len(out) != n {
		t.Fatalf("only %d of the %d processes lived", len(out), n)
	}
	return out
}

// tree starts a child that ignores SIGTERM, a grandchild in a session of its own
// that holds every stream, and waits for them for ever.
const tree = `echo $$ >> pids
(trap '' TERM; echo $(exec sh -c 'echo $PPID') >> pids; while :; do sleep 1; done) &
setsid sh -c 'echo $$ >> pids; trap "" TERM HUP; while :; do sleep 1; done' &
`

func gone(t *testing.T, ids []proc.Ident) {
	t.Helper()
	for _, id := range ids {
		if proc.Alive(id) {
			t.Errorf("process %d is still there", id.Pid)
		}
	}
}

// TestCancel cancels a loop in which a whole family never ends: at rest, in a step,
// and with a step that nobody reads the proceed of.
func TestCancel(t *testing.T) {
	t.Parallel() // it mostly waits
	for name, script := range map[string]string{
		"at rest":       tree + `wait`,
		"in a step":     `echo '{"type":"step","id":1,"name":"look","effect":"read"}'; read -r go; ` + tree + `wait`,
		"ignores TERM":  `trap '' TERM; ` + tree + `while :; do sleep 1; done`,
		"after its end": tree + ended + `cat > /dev/null; echo $$ >> pids; wait`, // end of file says that the end was heard
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			most, lines := 5*time.Second, 3
			if name == "after its end" {
				most, lines = 4*time.Second, 4 // it has five seconds to exit, unless it is canceled
			}
			dir := t.TempDir()
			a := sh(t, script, func(s *exec.Spec) { s.Dir = dir })
			ctx, cancel := context.WithCancelCause(context.Background())
			defer cancel(nil)
			why := errors.New("the lease is lost")
			loops := make(chan error, 1)
			l, known := newLoop(3), make(chan []proc.Ident, 1)
			l.after = func(string) { gone(t, <-known) } // before the step counts as over
			go func() {
				_, err := a.Loop(ctx, l)
				loops <- err
			}()
			family := pids(t, filepath.Join(dir, "pids"), lines)
			known <- family
			began := time.Now()
			cancel(why)
			err := result(t, loops)
			if took := time.Since(began); took > most {
				t.Errorf("the loop ended %v after its cancel", took)
			}
			gone(t, family)
			if name == "after its end" {
				if err != nil {
					t.Errorf("a loop that had ended gave %v", err)
				}
				if said := l.log("log"); strings.Contains(said, "did not exit") { // it has five seconds for that, unless it is canceled
					t.Errorf("the cancel was not heeded: %s", said)
				}
			} else if !errors.Is(err, why) {
				t.Errorf("the loop gave %v", err)
			}
		})
	}
}

// TestForksAway leaves processes behind: they are gone when the loop returns.
func TestForksAway(t *testing.T) {
	t.Parallel() // it mostly waits
	for name, rest := range map[string]string{
		"exits":       ended + `exit 0`,
		"without end": `exit 2`,
		"garbage":     `echo garbage; wait`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			wait := `while [ "$(wc -l < pids)" -lt 3 ]; do sleep 0.01; done; cp pids known; `
			a := sh(t, tree+wait+`read -r go < gate; `+rest, func(s *exec.Spec) { s.Dir = dir })
			fifo(t, filepath.Join(dir, "gate"))
			loops := make(chan error, 1)
			go func() {
				_, err := a.Loop(context.Background(), newLoop(3))
				loops <- err
			}()
			family := pids(t, filepath.Join(dir, "known"), 3)
			if err := os.WriteFile(filepath.Join(dir, "gate"), []byte("go\n"), 0); err != nil {
				t.Fatal(err)
			}
			if err := result(t, loops); (err == nil) != (name == "exits") {
				t.Errorf("the loop gave %v", err)
			}
			gone(t, family)
		})
	}
}

// TestPanic has a loop whose Do panics, as it does for a fault of the engine.
func TestPanic(t *testing.T) {
	dir, l := t.TempDir(), newLoop(3)
	a := sh(t, `echo $$ > pids; `+stepOne+`exec sleep 100`, func(s *exec.Spec) { s.Dir = dir })
	var agent []proc.Ident
	l.before = func(string) {
		agent = pids(t, filepath.Join(dir, "pids"), 1)
		panic("a fault")
	}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic was swallowed")
			}
		}()
		_, _ = a.Loop(context.Background(), l)
	}()
	gone(t, agent)
}

// TestDoesNotExit is an agent that stays after its end.
func TestDoesNotExit(t *testing.T) {
	t.Parallel() // it mostly waits
	l := newLoop(3)
	next, err := loop(t, sh(t, `trap '' TERM; `+ended+`while :; do sleep 1; done`, nil), l)
	if err != nil || next.End == nil {
		t.Fatalf("the loop gave %+v, %v", next, err)
	}
	contains(t, "the log", l.log("log"), "did not exit within 5s of the end of its loop and was killed")
}

// begins is what an agent does when it was told to proceed with the step of overtime.
const begins = `[ -n "$go" ] && echo > "$BEGUN"; `

// overtime runs a loop whose step is to run out of its time. That counts once the agent has
// begun: one who was not told to by then is given more. It returns how long that was.
func overtime(t *testing.T, script string, change func(*exec.Spec)) (l *fakeLoop, limit time.Duration, err error) {
	t.Helper()
	for limit = 100 * time.Millisecond; limit < patience; limit *= 4 {
		begun := filepath.Join(t.TempDir(), "begun")
		l = newLoop(3)
		_, err = loop(t, sh(t, script, func(s *exec.Spec) {
			s.StepTimeout, s.Env = limit, map[string]string{"BEGUN": begun}
			if change != nil {
				change(s)
			}
		}), l)
		if _, no := os.Stat(begun); no == nil {
			return l, limit, err
		}
	}
	t.Fatalf("it was never told to proceed: %v", err)
	panic("unreachable")
}

func TestStepTimeout(t *testing.T) {
	t.Parallel() // it mostly waits
	step := `echo '{"type":"step","id":1,"name":"slow","effect":"%"}'; read -r go; ` + begins
	t.Run("once is in doubt", func(t *testing.T) {
		t.Parallel()
		_, _, err := overtime(t, strings.ReplaceAll(step, "%", "once")+`sleep 100`, nil)
		if !errors.Is(err, stint.ErrParked) {
			t.Fatalf("the loop gave %v", err)
		}
	})
	t.Run("read fails", func(t *testing.T) {
		t.Parallel()
		_, limit, err := overtime(t, strings.ReplaceAll(step, "%", "read")+`sleep 100`, nil)
		if !errors.Is(err, stint.Unavailable) {
			t.Fatalf("the loop gave %v", err)
		}
		contains(t, "the error", err.Error(), "while slow was under way", fmt.Sprintf("no result within %v", limit))
	})
	t.Run("a late answer counts", func(t *testing.T) {
		t.Parallel()
		answer := `trap 'echo "{\"type\":\"result\",\"id\":1,\"result\":1}"; exit 0' TERM; `
		l, _, err := overtime(t, answer+strings.ReplaceAll(step, "%", "once")+`while :; do sleep 0.05; done`,
			func(s *exec.Spec) { s.Grace = patience }) // the answer comes at once, as far as the machine lets it
		if string(l.journal["1"].result.Data) != "1" || err == nil {
			t.Fatalf("the journal has %+v, the loop gave %v", l.journal, err)
		}
	})
}

// TestUndelivered has steps that cannot be told to proceed.
func TestUndelivered(t *testing.T) {
	t.Parallel() // it mostly waits
	begun := func(l *fakeLoop) bool { _, ok := l.journal["1"]; return ok }
	t.Run("closed input", func(t *testing.T) {
		t.Parallel()
		l := newLoop(3)
		_, err := loop(t, sh(t, `exec <&-; echo '{"type":"step","id":1,"name":"x","effect":"read"}'; exec sleep 100`, nil), l)
		if err == nil || begun(l) {
			t.Fatalf("the loop gave %v", err)
		}
		contains(t, "the error", err.Error(), "closed its standard input")
	})
	t.Run("says it did not begin", func(t *testing.T) {
		t.Parallel()
		l := newLoop(3)
		var kind interface{ NotBegun() bool }
		_, err := loop(t, sh(t, `exec <&-; echo '{"type":"step","id":1,"name":"x"}'; exec sleep 100`, nil), l)
		if !errors.Is(err, stint.ErrParked) || !errors.As(err, &kind) {
			t.Fatalf("the loop gave %v", err)
		}
	})
	t.Run("gone before", func(t *testing.T) {
		t.Parallel()
		l := newLoop(3)
		_, err := loop(t, sh(t, `echo '{"type":"step","id":1,"name":"x","effect":"read"}'; exit 9`, nil), l)
		var x *exec.ExitError
		if !errors.As(err, &x) || begun(l) {
			t.Fatalf("the loop gave %v", err)
		}
	})
}

// TestParkedMeanwhile parks the session while its step is under way.
func TestParkedMeanwhile(t *testing.T) {
	t.Parallel() // it mostly waits
	for name, script := range map[string]string{
		"next step":  stepOne + resultOne + `echo '{"type":"step","id":2,"name":"x"}'; read -r answer; echo "$answer" > answer; cat`,
		"ends":       stepOne + resultOne + ended + `cat`,
		"exits":      stepOne + resultOne + `exit 3`,
		"works on":   stepOne + resultOne + `exec sleep 100`,
		"is garbage": stepOne + resultOne + `echo garbage; cat`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, dir := newLoop(3), t.TempDir()
			l.parkAt = "1!"
			next, err := loop(t, sh(t, script, func(s *exec.Spec) { s.Dir = dir }), l)
			if !errors.Is(err, stint.ErrParked) || next.State != nil {
				t.Fatalf("the loop gave %+v, %v", next, err)
			}
			if name == "next step" {
				contains(t, "the answer", read(t, filepath.Join(dir, "answer")), `{"type":"park","id":2,"reason":"the session stops here"}`)
			}
		})
	}
}

// counter is an agent that counts the loops of its process. between is run after
// each loop, deaf when it has read that the next begins.
func counter(t *testing.T, between, deaf string) (a *exec.Agent, pids string) {
	t.Helper()
	dir := t.TempDir()
	script := strings.NewReplacer("BETWEEN", between, "DEAF", deaf).Replace(`echo $$ >> pids; n=0; while :; do n=$((n+1))
		echo "{\"type\":\"state\",\"replace\":$n}"; echo '{"type":"end","outcome":"continue"}'
		BETWEEN read -r line || exit 0; DEAF done`)
	return sh(t, script, func(s *exec.Spec) { s.Dir, s.Keep = dir, exec.KeepSession }), filepath.Join(dir, "pids")
}

func expectCount(t *testing.T, a *exec.Agent, l *fakeLoop, want string) {
	t.Helper()
	next, err := loop(t, a, l)
	if err != nil || string(next.State) != want {
		t.Errorf("the loop gave %s, %v, want %s", next.State, err, want)
	}
}

func TestKeepShares(t *testing.T) {
	t.Parallel() // it mostly waits
	t.Run("loops that follow", func(t *testing.T) {
		a, _ := counter(t, "", "")
		expectCount(t, a, newLoop(1), "1")
		expectCount(t, a, newLoop(2), "2")
	})
	for name, change := range map[string]func(l *fakeLoop){
		"epoch":   func(l *fakeLoop) { l.epoch++ },
		"line":    func(l *fakeLoop) { l.ses.At.Line++ },
		"loop":    func(l *fakeLoop) { l.ses.At.Loop++ },
		"session": func(l *fakeLoop) { l.ses.ID[15]++ },
	} {
		t.Run("not with another "+name, func(t *testing.T) {
			a, _ := counter(t, "", "")
			expectCount(t, a, newLoop(1), "1")
			l := newLoop(2)
			change(l)
			expectCount(t, a, l, "1")
		})
	}
	t.Run("not in loop mode", func(t *testing.T) {
		a := sh(t, `n=0; while :; do n=$((n+1)); echo "{\"type\":\"state\",\"replace\":$n}"; `+strings.ReplaceAll(ended, "complete", "continue")+`read -r line || exit 0; done`, nil)
		expectCount(t, a, newLoop(1), "1")
		expectCount(t, a, newLoop(2), "1")
	})
}

func TestKeepDies(t *testing.T) {
	t.Parallel() // it mostly waits
	t.Run("between", func(t *testing.T) {
		t.Parallel()
		a, _ := counter(t, "sleep 0.05; exit 1;", "")
		expectCount(t, a, newLoop(1), "1")
		expectCount(t, a, newLoop(2), "1")
	})
	t.Run("when asked", func(t *testing.T) {
		t.Parallel()
		a, _ := counter(t, "", "exit 1;")
		expectCount(t, a, newLoop(1), "1")
		var x *exec.ExitError
		if _, err := loop(t, a, newLoop(2)); !errors.As(err, &x) || x.Code != 1 {
			t.Errorf("a process that got the loop and died gave %v", err)
		}
		expectCount(t, a, newLoop(2).again(), "1")
	})
	t.Run("speaks between", func(t *testing.T) {
		t.Parallel()
		a, path := counter(t, `read -r go < gate; echo '{"type":"progress","text":"idle"}'; echo '{"type":"state","patch":{}}';`, "")
		gate := filepath.Join(filepath.Dir(path), "gate")
		fifo(t, gate)
		expectCount(t, a, newLoop(1), "1")
		if err := os.WriteFile(gate, []byte("go\n"), 0); err != nil {
			t.Fatal(err)
		}
		await(t, "the line between the loops", func() bool { return a.Broken(newLoop(1).ses.ID) })
		expectCount(t, a, newLoop(2), "1")
	})
	t.Run("canceled", func(t *testing.T) {
		t.Parallel()
		a, path := counter(t, "", "echo $$ >> pids; exec sleep 100;")
		expectCount(t, a, newLoop(1), "1")
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		result := make(chan error, 1)
		go func() {
			_, err := a.Loop(ctx, newLoop(2))
			result <- err
		}()
		ids := pids(t, path, 2)
		cancel()
		if err := <-result; !errors.Is(err, context.Canceled) {
			t.Errorf("the loop gave %v", err)
		}
		gone(t, ids)
	})
	for name, end := range map[string]func(a *exec.Agent, l *fakeLoop){
		"released": func(a *exec.Agent, l *fakeLoop) { a.Release(l.ses.ID) },
		"closed":   func(a *exec.Agent, _ *fakeLoop) { a.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, path := counter(t, "", "")
			l := newLoop(1)
			expectCount(t, a, l, "1")
			ids := pids(t, path, 1)
			end(a, l)
			gone(t, ids)
			expectCount(t, a, newLoop(2), "1")
		})
	}
}

func TestCannotStart(t *testing.T) {
	t.Parallel() // it mostly waits
	for name, c := range map[string]struct {
		spec exec.Spec
		exit int // as a shell has it
		why  string
	}{
		"no such file":   {exec.Spec{Command: []string{"./nothing-here"}}, 127, "./nothing-here does not exist"},
		"not in PATH":    {exec.Spec{Command: []string{"nothing-by-this-name"}}, 127, "nothing-by-this-name is not in PATH"},
		"no program":     {exec.Spec{Command: []string{"./data"}}, 126, "./data is not a program for this machine"},
		"no permission":  {exec.Spec{Command: []string{"./plain"}}, 126, "./plain is not executable"},
		"a folder":       {exec.Spec{Command: []string{"./folder"}}, 126, "./folder is a directory"},
		"no interpreter": {exec.Spec{Command: []string{"./script"}}, 126, "./script needs an interpreter that does not exist"},
		"too much":       {exec.Spec{Command: []string{"true", strings.Repeat("x", 1<<20)}}, 126, "true is given more arguments and environment than the system takes"},
		"no directory":   {exec.Spec{Command: []string{"true"}, Dir: "missing"}, 0, "missing does not exist"},
	} {
		for _, protocol := range []exec.Protocol{exec.JSONL, exec.None} {
			t.Run(name+" "+string(protocol), func(t *testing.T) {
				dir := t.TempDir()
				if c.spec.Dir != "" {
					dir = filepath.Join(dir, c.spec.Dir)
				} else if err := errors.Join(os.WriteFile(filepath.Join(dir, "data"), []byte{1, 2, 3}, 0o755), os.WriteFile(filepath.Join(dir, "plain"), nil, 0o644),
					os.Mkdir(filepath.Join(dir, "folder"), 0o755), os.WriteFile(filepath.Join(dir, "script"), []byte("#!/no/such/shell\n"), 0o755)); err != nil {
					t.Fatal(err)
				}
				spec := c.spec
				spec.Dir, spec.Protocol = dir, protocol
				l := newLoop(3)
				next, err := loop(t, newAgent(t, spec), l)
				_, final, definite := steering(err)
				if protocol == exec.None && c.exit != 0 {
					if err != nil {
						t.Fatal(err)
					}
					why, hint, _ := strings.Cut(next.End.Reason, "; ")
					next.End.Reason = why
					checkEnd(t, next, stint.Failed, c.why, fmt.Sprintf(`{"exit":%d}`, c.exit))
					if hint == "" {
						t.Error("it does not say what to do")
					}
					return
				}
				var start *exec.StartError
				if !errors.Is(err, stint.Invalid) || !final || definite != (protocol == exec.None) || errors.As(err, &start) != (c.exit != 0) {
					t.Fatalf("the loop gave %v (final %v, definite %v)", err, final, definite)
				}
				if c.exit != 0 && (err.Error() != c.why || start.Exit != c.exit) {
					t.Errorf("the error is %q (%d), want %q (%d)", err, start.Exit, c.why, c.exit)
				}
				contains(t, "the error", err.Error(), c.why)
			})
		}
	}
}

// TestEnvironment shows that nothing is inherited that is not named.
func TestEnvironment(t *testing.T) {
	t.Setenv("SECRET_TOKEN", "hidden")
	t.Setenv("NAMED", "passed")
	t.Setenv("STINT_PROTOCOL", "ours")
	a := sh(t, `printf '{"type":"end","outcome":"complete","result":["'; env | sort | grep -v '^STINT_PROC' | tr '\n' '|'; printf '"]}\n'`, func(s *exec.Spec) {
		s.Pass, s.Env = []string{"NAMED", "UNSET_VARIABLE"}, map[string]string{"MORE": "set", "LANG": "C"}
	})
	l := newLoop(3)
	l.ses.At.Line, l.ses.At.Attempt = 2, 5
	next, err := loop(t, a, l)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	if err := json.Unmarshal(next.End.Result, &out); err != nil {
		t.Fatal(err)
	}
	env := "|" + out[0]
	contains(t, "the environment", env, "|NAMED=passed|", "|MORE=set|", "|LANG=C|", "|PATH=", "|STINT_SESSION=01jd0f3kx6ewx8ts2gt4hg1m5r|",
		"|STINT_NAME=billing|", "|STINT_LINE=2|", "|STINT_LOOP=3|", "|STINT_ATTEMPT=5|", "|STINT_EPOCH=4|", "|STINT_PROTOCOL=1|")
	if strings.Contains(env, "SECRET") || strings.Contains(env, "UNSET_VARIABLE") {
		t.Errorf("the environment is %s", env)
	}
}
