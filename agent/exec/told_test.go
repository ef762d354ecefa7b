package exec_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/agent/exec"
)

// TestToldToEnd: what a program does on SIGTERM does not settle the step that it was
// interrupted in, be it that it exits by itself and with what code it likes. Only its
// own word about the step does, a result of the protocol. A program without the
// protocol and an agent are alike in that.
func TestToldToEnd(t *testing.T) {
	t.Parallel() // it mostly waits
	const result = `{\"type\":\"result\",\"id\":1,\"result\":7}`
	for name, c := range map[string]told{
		"takes the signal": {how: "was ended by signal TERM"},
		"exits with 0":     {onTerm: `trap 'exit 0' TERM; `, how: "exited with 0"},
		"exits with 3":     {onTerm: `trap 'exit 3' TERM; `, how: "exited with 3"},
		"exits with 143":   {onTerm: `trap 'exit 143' TERM; `, how: "exited with 143"},
		"does not care":    {onTerm: `trap '' TERM; `, grace: 100 * time.Millisecond, how: "was ended by signal KILL"},
		"gives its result": {onTerm: `trap 'echo "` + result + `"; exit 0' TERM; `, how: "exited with 0", journal: "7"},
	} {
		for _, protocol := range []exec.Protocol{exec.None, exec.JSONL} {
			for _, effect := range []stint.Effect{stint.Once, stint.Idempotent, stint.Read} {
				t.Run(fmt.Sprintf("%s, %s, %s", name, protocol, effect), func(t *testing.T) {
					t.Parallel()
					toldToEnd(t, c, protocol, effect)
				})
			}
		}
	}
}

// told is what a program does on SIGTERM, how it ends, and what its step comes to.
type told struct {
	onTerm, how, journal string
	grace                time.Duration // 0: as long as a machine with much to do may need
}

func toldToEnd(t *testing.T, c told, protocol exec.Protocol, effect stint.Effect) {
	t.Helper()
	if c.grace == 0 {
		c.grace = patience
	}
	dir, l := t.TempDir(), newLoop(1)
	script, settings := c.onTerm+`echo ready >&2; while :; do sleep 0.01; done`, func(s *exec.Spec) {
		s.Dir, s.Effect, s.Grace = dir, effect, c.grace
	}
	a := plain(t, script, settings)
	if protocol == exec.JSONL {
		a = sh(t, `echo '{"type":"step","id":1,"name":"sh"}'; read -r go; `+script, settings)
	} else {
		c.journal = "" // nobody reads what it writes for a result
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	done := make(chan error, 1)
	go func() {
		_, err := a.Loop(ctx, l)
		done <- err
	}()
	await(t, "its first word", func() bool { return l.log("stderr") != "" })
	why := errors.New("the runner drains")
	cancel(why)
	err := <-done
	if got := string(l.journal["1"].result.Data); got != c.journal {
		t.Errorf("the journal has %q, want %q", got, c.journal)
	}
	switch inDoubt := errors.Is(err, stint.ErrParked); {
	case c.journal != "":
		if !errors.Is(err, why) || inDoubt {
			t.Errorf("the loop gave %v", err)
		}
		return
	case inDoubt != (effect == stint.Once) || !errors.Is(err, why):
		t.Errorf("the loop gave %v", err)
	}
	if steps := effect != stint.Once && protocol == exec.JSONL; !steps && !strings.Contains(err.Error(), c.how) {
		t.Errorf("the error does not say how it ended, %q: %v", c.how, err)
	}
}

// TestOutputBeforeResult: what a program wrote in a step stands in the log before the
// result of the step is recorded, on whichever stream and however much it is.
func TestOutputBeforeResult(t *testing.T) {
	t.Parallel() // it mostly waits
	const many = 3000
	write := func(to string) string {
		return fmt.Sprintf(`i=0; while [ $i -lt %d ]; do i=$((i+1)); echo "line $i"; done %s; `, many, to)
	}
	result := strings.ReplaceAll(resultOne, ";", "")
	for name, c := range map[string]struct {
		agent  func() *exec.Agent
		stream string
		lines  int
	}{
		"standard output of a program": {func() *exec.Agent { return plain(t, write(""), nil) }, "stdout", many},
		"standard error of a program":  {func() *exec.Agent { return plain(t, write(">&2"), nil) }, "stderr", many},
		"a last word of a program":     {func() *exec.Agent { return plain(t, `printf word >&2`, nil) }, "stderr", 1},
		"standard error of an agent":   {func() *exec.Agent { return sh(t, stepOne+write(">&2")+resultOne+ended, nil) }, "stderr", many},
		"a word of an agent":           {func() *exec.Agent { return sh(t, stepOne+`echo word >&2; `+resultOne+ended, nil) }, "stderr", 1},
		"log messages":                 {func() *exec.Agent { return sh(t, stepOne+`echo '{"type":"log","text":"x"}'; `+resultOne+ended, nil) }, "log", 1},
		"an agent that goes on": {func() *exec.Agent {
			return sh(t, stepOne+write(">&2")+`(while :; do echo more; done >&2) & `+result+`; sleep 0.05; kill $!; `+ended, nil)
		}, "stderr", many},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLoop(1)
			var logged string
			l.after = func(string) { logged = l.log(c.stream) }
			if _, err := loop(t, c.agent(), l); err != nil {
				t.Fatal(err)
			}
			if got := strings.Count(logged, "\n") - strings.Count(logged, "more\n"); got != c.lines {
				t.Errorf("%d of the %d lines stood in the log when the step's result came", got, c.lines)
			}
		})
	}
}

// TestOutputBeforeEnd: in a kept process too, the output of a loop is that loop's.
func TestOutputBeforeEnd(t *testing.T) {
	t.Parallel() // it mostly waits
	a := sh(t, `n=0; while :; do n=$((n+1)); for i in 1 2 3 4 5 6 7 8 9; do echo "loop $n" >&2; done
		`+strings.ReplaceAll(ended, "complete", "continue")+`read -r line || exit 0; done`,
		func(s *exec.Spec) { s.Keep = exec.KeepSession })
	for number := 1; number <= 20; number++ {
		l := newLoop(number)
		if _, err := loop(t, a, l); err != nil {
			t.Fatal(err)
		}
		if got, want := l.log("stderr"), strings.Repeat(fmt.Sprintf("loop %d\n", number), 9); got != want {
			t.Fatalf("the log of loop %d is %q", number, got)
		}
	}
}
