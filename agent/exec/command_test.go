package exec_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/agent/exec"
)

// plain is a shell script that knows nothing of the protocol.
func plain(t *testing.T, text string, change func(*exec.Spec)) *exec.Agent {
	t.Helper()
	spec := exec.Spec{Command: []string{"sh", "-c", text}, Dir: t.TempDir(), Protocol: exec.None}
	if change != nil {
		change(&spec)
	}
	return newAgent(t, spec)
}

func TestNoneOutcomes(t *testing.T) {
	t.Parallel() // it mostly waits
	for name, c := range map[string]struct {
		script          string
		outcome         stint.Status
		reason, result  string
		stdout, journal string
	}{
		"exit 0":        {`echo hello`, stint.Completed, "", `{"exit":0}`, "hello\n", `"exit":0`},
		"exit 3":        {`printf 'no newline'; exit 3`, stint.Failed, "exit 3", `{"exit":3}`, "no newline\n", `"stdout_bytes":10`},
		"a signal":      {`kill -SEGV $$`, stint.Failed, "signal SEGV", `{"signal":"SEGV"}`, "", `"signal":"SEGV"`},
		"kill by other": {`kill -KILL $$`, stint.Failed, "signal KILL", `{"signal":"KILL"}`, "", `"signal":"KILL"`},
		"stderr is ok":  {`echo trouble >&2`, stint.Completed, "", `{"exit":0}`, "", `"stderr_bytes":8`},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLoop(1)
			next, err := loop(t, plain(t, c.script, nil), l)
			if err != nil {
				t.Fatal(err)
			}
			checkEnd(t, next, c.outcome, c.reason, c.result)
			if got := l.log("stdout"); got != c.stdout {
				t.Errorf("the log has %q, want %q", got, c.stdout)
			}
			contains(t, "the result", string(l.journal["1"].result.Data), c.journal, `"ms":`)
			step := l.steps[0]
			if step.Name != "sh" || step.Kind != stint.Tool || step.Effect != stint.Once || step.Timeout < 365*24*time.Hour {
				t.Errorf("the step is %+v", step)
			}
			replay := l.again()
			next, err = loop(t, plain(t, `exit 77`, nil), replay)
			if err != nil || len(replay.order) != 0 {
				t.Fatalf("the replay ran %v and gave %v", replay.order, err)
			}
			checkEnd(t, next, c.outcome, c.reason, c.result)
		})
	}
}

func checkEnd(t *testing.T, next stint.Next, outcome stint.Status, reason, result string) {
	t.Helper()
	e := next.End
	if e == nil || e.Outcome != outcome || e.Reason != reason || string(e.Result) != result {
		t.Errorf("the end is %+v, want %v %q %s", e, outcome, reason, result)
	}
}

// TestNoneSettled has results that a person or a rule gave in place of the program.
func TestNoneSettled(t *testing.T) {
	for result, want := range map[string]stint.Status{
		`null`: stint.Completed, `{"exit":0}`: stint.Completed, `{"exit":2}`: stint.Failed,
		`{"stint":"unknown","note":"x"}`: stint.Failed, `"done"`: stint.Completed,
	} {
		l := newLoop(1)
		l.journal["1"] = recorded{result: stint.Result{Data: json.RawMessage(result)}}
		next, err := loop(t, plain(t, `exit 77`, nil), l)
		if err != nil || next.End == nil || next.End.Outcome != want {
			t.Errorf("the result %s ends the session by %+v, %v", result, next.End, err)
		}
	}
}

func TestNoneInput(t *testing.T) {
	t.Parallel() // it mostly waits
	for name, c := range map[string]struct {
		inbox []stint.Message
		want  string
	}{
		"prompts":    {[]stint.Message{prompt("1", "one"), {Kind: stint.Decision, Body: []byte("no")}, prompt("2", "two\n\xff")}, "one\ntwo\n\xff"},
		"none":       {nil, ""},
		"empty":      {[]stint.Message{prompt("1", "")}, ""},
		"large":      {[]stint.Message{prompt("1", strings.Repeat("x", 1<<20))}, strings.Repeat("x", 1<<20)},
		"two, large": {[]stint.Message{prompt("1", "a"), prompt("2", strings.Repeat("y", 200_000))}, "a\n" + strings.Repeat("y", 200_000)},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			l := newLoop(1)
			l.inbox = c.inbox
			_, err := loop(t, plain(t, `cat > got; echo "$STINT_IDEMPOTENCY_KEY $STINT_PROTOCOL" > key`, func(s *exec.Spec) { s.Dir = dir }), l)
			if err != nil {
				t.Fatal(err)
			}
			if got := read(t, filepath.Join(dir, "got")); got != c.want {
				t.Errorf("the program read %d bytes %.40q, want %d", len(got), got, len(c.want))
			}
			if got := read(t, filepath.Join(dir, "key")); got != "key-1 \n" {
				t.Errorf("the key is %q", got)
			}
		})
	}
	t.Run("unread", func(t *testing.T) {
		l := newLoop(1)
		l.inbox = []stint.Message{prompt("1", strings.Repeat("x", 1<<20))}
		next, err := loop(t, plain(t, `exit 0`, nil), l)
		if err != nil || next.End == nil {
			t.Fatalf("the loop gave %+v, %v", next, err)
		}
	})
}

func TestNoneCanceled(t *testing.T) {
	t.Parallel() // it mostly waits
	dir := t.TempDir()
	a := plain(t, tree+`wait`, func(s *exec.Spec) { s.Dir = dir })
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	l := newLoop(1)
	loops := make(chan error, 1)
	go func() {
		_, err := a.Loop(ctx, l)
		loops <- err
	}()
	family := pids(t, filepath.Join(dir, "pids"), 3)
	began := time.Now()
	cancel(errors.New("stopped by ana"))
	err := result(t, loops)
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("the program was gone after %v", took)
	}
	gone(t, family)
	if !errors.Is(err, stint.ErrParked) || len(l.journal) != 0 {
		t.Errorf("a killed program is not in doubt: %v, %+v", err, l.journal)
	}
	// It writes its pids before whoever began it may have taken note of that.
	if !strings.Contains(err.Error(), "sh was told to end as it began") {
		contains(t, "the error", err.Error(), "sh was told to end, and was ended by signal TERM: stopped by ana")
	}
}

// TestNoneLost has a program that kills the process which watches over it.
func TestNoneLost(t *testing.T) {
	t.Parallel() // it mostly waits
	l := newLoop(1)
	_, err := loop(t, plain(t, `kill -KILL $PPID; exec sleep 100`, nil), l)
	if !errors.Is(err, stint.ErrParked) || len(l.journal) != 0 {
		t.Errorf("a program whose end nobody saw is not in doubt: %v, %+v", err, l.journal)
	}
}

// TestNoneEffect has a program that may be run again.
func TestNoneEffect(t *testing.T) {
	t.Parallel() // it mostly waits
	l := newLoop(1)
	_, err := loop(t, plain(t, `exec sleep 100`, func(s *exec.Spec) {
		s.Effect, s.StepTimeout = stint.Idempotent, 200*time.Millisecond
	}), l)
	if !errors.Is(err, stint.Unavailable) || l.steps[0].Effect != stint.Idempotent {
		t.Errorf("the loop gave %v for %+v", err, l.steps)
	}
	_, err = loop(t, plain(t, `exit 0`, func(s *exec.Spec) { s.Effects = map[string]stint.Effect{"sh": stint.Read} }), l)
	if err != nil || l.steps[1].Effect != stint.Read {
		t.Errorf("the loop gave %v for %+v", err, l.steps)
	}
}

// locked is a buffer for several writers.
type locked struct {
	mu  sync.Mutex
	b   bytes.Buffer
	err error
}

func (w *locked) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.b.Write(p)
	return len(p), w.err
}

func TestTee(t *testing.T) {
	var out, errs locked
	out.err = os.ErrClosed // a terminal that went away does not lose the log
	l := newLoop(1)
	_, err := loop(t, plain(t, `printf 'a\nb'; printf '\033[1mc' >&2`, func(s *exec.Spec) { s.TeeStdout, s.TeeStderr = &out, &errs }), l)
	if err != nil {
		t.Fatal(err)
	}
	if out.b.String() != "a\nb" || errs.b.String() != "\x1b[1mc" {
		t.Errorf("the copies are %q and %q", out.b.String(), errs.b.String())
	}
	if l.log("stdout") != "a\nb\n" || l.log("stderr") != "\x1b[1mc\n" {
		t.Errorf("the log is %q and %q", l.log("stdout"), l.log("stderr"))
	}
}

func TestTeeJSONL(t *testing.T) {
	var out, errs locked
	_, err := loop(t, sh(t, `echo hello >&2; `+ended, func(s *exec.Spec) { s.TeeStdout, s.TeeStderr = &out, &errs }), newLoop(1))
	if err != nil || out.b.Len() != 0 || errs.b.String() != "hello\n" {
		t.Errorf("the copies are %q and %q, the loop gave %v", out.b.String(), errs.b.String(), err)
	}
}
