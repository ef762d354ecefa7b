package exec_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stint-dev/stint/agent/exec"
)

// TestKeptProcessThatEnds: a kept process that ended between two loops costs nothing.
// One that got the loop and then died has begun the attempt: it may have run any code,
// so the attempt is over, and the brake sees it.
func TestKeptProcessThatEnds(t *testing.T) {
	t.Parallel() // it mostly waits
	const next = `read -r line || exit 0; echo "$line" | grep -o '"loop":[0-9]*' >> got; `
	for name, c := range map[string]struct {
		then  string // after the first loop
		tried bool
	}{
		"exits at once":           {`exit 0`, false},
		"exits with an error":     {`exit 1`, false},
		"exits a little later":    {`sleep 0.02; exit 0`, false},
		"is killed":               {`kill -KILL $$`, false},
		"closes its input":        {`exec <&-; sleep 0.02; exit 0`, false},
		"closes its output":       {`exec >&-; sleep 0.02; exit 0`, false},
		"reads and exits":         {next + `exit 0`, true},
		"reads and fails":         {next + `echo why >&2; exit 1`, true},
		"reads and is killed":     {next + `kill -KILL $$`, true},
		"reads a part of it":      {`head -c 10 > /dev/null; exit 1`, true},
		"reads and goes silent":   {next + `exec >&-; exec sleep 100`, true},
		"reads, and its child":    {`(` + next + `) ; exit 1`, true},
		"works and says nothing":  {next + `touch worked; exit 0`, true},
		"logs before it dies":     {next + `echo '{"type":"log","text":"x"}'; exit 1`, true},
		"breaks the protocol too": {next + `echo garbage; exit 1`, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			a := sh(t, `echo x >> processes; `+strings.ReplaceAll(ended, "complete", "continue")+c.then,
				func(s *exec.Spec) { s.Dir, s.Keep = dir, exec.KeepSession })
			if _, err := loop(t, a, newLoop(1)); err != nil {
				t.Fatal(err)
			}
			_, err := loop(t, a, newLoop(2))
			started := strings.Count(read(t, filepath.Join(dir, "processes")), "x")
			if c.tried {
				var x *exec.ExitError
				broken := name == "breaks the protocol too"
				if err == nil || errors.As(err, &x) == broken || started != 1 {
					t.Errorf("the second loop gave %v in %d processes: the attempt was not counted", err, started)
				}
			} else if err != nil || started != 2 {
				t.Errorf("the second loop gave %v in %d processes", err, started)
			}
			if n := strings.Count(read(t, filepath.Join(dir, "got")), "\n"); n > 1 {
				t.Errorf("%d processes had the loop", n)
			}
			if _, err := os.Stat(filepath.Join(dir, "worked")); (err == nil) != (name == "works and says nothing") {
				t.Error(err)
			}
		})
	}
}

// TestReleaseInTime has kept processes that do not go at the end of their input: a
// drain waits for them, and has five seconds for everything.
func TestReleaseInTime(t *testing.T) {
	t.Parallel() // it mostly waits
	for name, end := range map[string]func(a *exec.Agent, l *fakeLoop){
		"released": func(a *exec.Agent, l *fakeLoop) { a.Release(l.ses.ID) },
		"closed":   func(a *exec.Agent, _ *fakeLoop) { a.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, l := t.TempDir(), newLoop(1)
			a := sh(t, `trap '' TERM; echo $$ > pids; `+strings.ReplaceAll(ended, "complete", "continue")+`while :; do sleep 1; done`,
				func(s *exec.Spec) { s.Dir, s.Keep = dir, exec.KeepSession })
			if _, err := loop(t, a, l); err != nil {
				t.Fatal(err)
			}
			kept := pids(t, filepath.Join(dir, "pids"), 1)
			begun := time.Now()
			end(a, l)
			gone(t, kept)
			if took := time.Since(begun); took > 4*time.Second {
				t.Errorf("it took %v", took)
			}
		})
	}
}
