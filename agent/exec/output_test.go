package exec_test

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/agent/exec"
)

// size is a figure at its full size under STINT_LONG, else a part of it that is
// still far more than is kept.
func size(full int) int {
	if os.Getenv("STINT_LONG") == "1" {
		return full
	}
	return full / 25
}

// self is this test binary as an agent.
func self(t *testing.T, protocol exec.Protocol, args ...string) *exec.Agent {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return newAgent(t, exec.Spec{Command: append([]string{exe, "program"}, args...), Dir: t.TempDir(), Protocol: protocol,
		Env: map[string]string{"GORACE": "atexit_sleep_ms=0"}}) // the race detector waits a second at each exit
}

// watchMemory returns a function that ends the watch and gives by how much what is held
// in the heap grew at most. What waits to be collected is not held: how much of that
// there is depends on what else the machine does.
func watchMemory() func() uint64 {
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	base, most := heap(), uint64(0)
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(50 * time.Millisecond)
		defer tick.Stop()
		for {
			most = max(most, heap())
			select {
			case <-tick.C:
			case <-stop:
				return
			}
		}
	}()
	return func() uint64 {
		close(stop)
		<-done
		return max(most, base) - base
	}
}

// logLine is the length of the lines of the program log-flood.
const logLine = 61

// TestFlood has programs that write far more than is kept.
func TestFlood(t *testing.T) {
	for name, c := range map[string]struct {
		protocol exec.Protocol
		program  string
		bytes    int
		stream   string
		logged   int64 // at most
		within   uint64
	}{
		"standard output":  {exec.None, "lines", size(1 << 30), "stdout", 1 << 20, 16 << 20},
		"standard error":   {exec.None, "stderr", size(1 << 30), "stderr", 1 << 20, 16 << 20},
		"without newline":  {exec.None, "oneline", size(1 << 30), "stdout", 64 << 10, 16 << 20},
		"log messages":     {exec.JSONL, "log-flood", size(100<<20) / logLine * logLine, "log", 1 << 20, 16 << 20},
		"protocol garbage": {exec.JSONL, "garbage", size(1 << 30), "log", 0, 16 << 20},
		"an endless line":  {exec.JSONL, "oneline", size(1 << 30), "log", 0, 160 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLoop(1)
			a := self(t, c.protocol, c.program, strconv.Itoa(c.bytes))
			grown := watchMemory()
			next, err := loop(t, a, l)
			if most := grown(); most > c.within {
				t.Errorf("the heap grew by %d MiB, the bound is %d MiB", most>>20, c.within>>20)
			} else {
				t.Logf("%d MiB written, the heap grew by at most %.1f MiB in %d calls", c.bytes>>20, float64(most)/(1<<20), l.calls)
			}
			breach := name == "protocol garbage" || name == "an endless line"
			if breach != errors.Is(err, stint.Invalid) || breach == (next.End != nil) {
				t.Fatalf("the loop gave %+v, %.500v", next, err)
			}
			got := int64(len(l.log(c.stream)))
			if got > c.logged+200 || !breach && got < c.logged/2 {
				t.Errorf("%d bytes were logged, want about %d", got, c.logged)
			}
			if c.protocol == exec.None {
				contains(t, "the result", string(l.journal["1"].result.Data), fmt.Sprintf("_bytes\":%d", c.bytes))
			}
		})
	}
}

func TestMaxOutput(t *testing.T) {
	l := newLoop(1)
	a := plain(t, `i=0; while [ $i -lt 20 ]; do i=$((i+1)); echo 12345678; done; echo x`, func(s *exec.Spec) { s.MaxOutput = 102 })
	if _, err := loop(t, a, l); err != nil {
		t.Fatal(err)
	}
	if got, want := l.log("stdout"), strings.Repeat("12345678\n", 11); got != want {
		t.Errorf("the log has %q, want %q: no line after the first that did not fit", got, want)
	}
	if got, want := l.log("log"), "[stint] 83 bytes of output are not logged: the loop's limit is 102 bytes\n"; got != want {
		t.Errorf("the marker is %q, want %q", got, want)
	}
}

func TestMaxOutputOfLoops(t *testing.T) {
	keep := strings.ReplaceAll(ended, "complete", "continue")
	a := sh(t, `while :; do echo '{"type":"log","text":"0123456789"}'; echo '{"type":"log","text":"abc"}'; `+keep+`read -r line || exit 0; done`,
		func(s *exec.Spec) { s.MaxOutput, s.Keep = 11, exec.KeepSession })
	for number := 1; number <= 2; number++ {
		l := newLoop(number)
		if _, err := loop(t, a, l); err != nil {
			t.Fatal(err)
		}
		if got, want := l.log("log"), "0123456789\n[stint] 4 bytes of output are not logged: the loop's limit is 11 bytes\n"; got != want {
			t.Errorf("the log of loop %d is %q, want %q", number, got, want)
		}
	}
}

// TestEndlessLine has a line that goes on without a newline for ever.
func TestEndlessLine(t *testing.T) {
	_, err := loop(t, sh(t, `head -c 5000 /dev/zero | tr '\0' x; exec sleep 100`, func(s *exec.Spec) { s.MaxLine = 1024 }), newLoop(1))
	if err == nil || !strings.Contains(err.Error(), "a line is longer than 1024 bytes") {
		t.Errorf("the loop gave %v", err)
	}
}

func TestLongLogLine(t *testing.T) {
	l := newLoop(1)
	if _, err := loop(t, plain(t, `head -c 70000 /dev/zero | tr '\0' 'x'; printf '\nshort\n'; head -c 70000 /dev/zero | tr '\0' 'y' >&2`, nil), l); err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(l.log("stdout"), "\n")
	if len(lines) != 3 || len(lines[0]) > 64<<10 || !strings.HasPrefix(lines[0], "xxxx") || lines[1] != "short\n" {
		t.Fatalf("the log has %d lines, the first of %d bytes", len(lines)-1, len(lines[0]))
	}
	kept, marker, _ := strings.Cut(lines[0], " ")
	var cut int
	if _, err := fmt.Sscanf(marker, "[stint: %d bytes cut]\n", &cut); err != nil || len(kept)+cut != 70000 {
		t.Errorf("the marker is %q (%v)", marker, err)
	}
}

// TestBatches shows that lines are handed on together, and soon.
func TestBatches(t *testing.T) {
	l := newLoop(1)
	a := plain(t, `i=0; while [ $i -lt 2000 ]; do i=$((i+1)); echo "line $i"; done; read -r go < gate`, func(s *exec.Spec) { fifo(t, s.Dir+"/gate") })
	result := make(chan error, 1)
	dir := a.Dir()
	go func() {
		_, err := loop(t, a, l)
		result <- err
	}()
	await(t, "the log while the program runs", func() bool { return strings.Count(l.log("stdout"), "\n") == 2000 })
	if err := os.WriteFile(dir+"/gate", []byte("go\n"), 0); err != nil {
		t.Fatal(err)
	}
	if err := <-result; err != nil {
		t.Fatal(err)
	}
	if l.calls > 200 {
		t.Errorf("2000 lines took %d calls", l.calls)
	}
}

// TestHugeLine passes a result of nearly the largest size, and refuses a larger one.
func TestHugeLine(t *testing.T) {
	t.Parallel() // it mostly waits
	t.Run("fits", func(t *testing.T) {
		t.Parallel()
		l := newLoop(1)
		next, err := loop(t, self(t, exec.JSONL, "big-result", strconv.Itoa(32<<20-2)), l)
		if err != nil || next.End == nil || len(l.journal["1"].result.Data) != 32<<20 {
			t.Fatalf("the loop gave %+v, %.300v with %d bytes", next, err, len(l.journal["1"].result.Data))
		}
		again := l.again()
		next, err = loop(t, self(t, exec.JSONL, "big-result", "0"), again)
		if err == nil || len(again.order) != 0 {
			t.Fatalf("a result for a step that was answered gave %+v, %v", next, err)
		}
	})
	t.Run("value too large", func(t *testing.T) {
		t.Parallel()
		_, err := loop(t, self(t, exec.JSONL, "big-result", strconv.Itoa(32<<20-1)), newLoop(1))
		if err == nil || !strings.Contains(err.Error(), "result has 33554433 bytes; a value has at most 32 MiB") {
			t.Fatalf("the loop gave %.300v", err)
		}
	})
	t.Run("line too long", func(t *testing.T) {
		t.Parallel()
		_, err := loop(t, self(t, exec.JSONL, "big-result", strconv.Itoa(40<<20)), newLoop(1))
		if err == nil || !strings.Contains(err.Error(), "a line is longer than 34603008 bytes") || len(err.Error()) > 1000 {
			t.Fatalf("the loop gave %.300v", err)
		}
	})
	t.Run("at the limit", func(t *testing.T) {
		t.Parallel()
		line := `{"type":"log","text":"` + strings.Repeat("x", 1024-25) + `"}` // with its newline 1,024 bytes
		for extra, want := range map[string]bool{"": true, " ": false} {
			next, err := loop(t, sh(t, `echo '`+line+extra+`'; `+ended, func(s *exec.Spec) { s.MaxLine = 1024 }), newLoop(1))
			if (err == nil) != want || (next.End != nil) != want {
				t.Errorf("a line of %d bytes gave %+v, %.300v", len(line+extra)+1, next, err)
			}
		}
	})
}

// TestHugeGreeting has an agent that does not read a long first line.
func TestHugeGreeting(t *testing.T) {
	t.Parallel() // it mostly waits
	l := newLoop(1)
	l.state = []byte(`"` + strings.Repeat("s", 20<<20) + `"`)
	spec := exec.Spec{Command: []string{"sh", "-c", ended + `exec sleep 0.2`}, Dir: t.TempDir()}
	next, err := loop(t, newAgent(t, spec), l)
	if err != nil || next.End == nil {
		t.Fatalf("the loop gave %+v, %v", next, err)
	}
}
