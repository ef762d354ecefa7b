package proc_test

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stint-dev/stint/internal/proc"
)

// piped is a script with pipes for what it writes.
func piped(text string) proc.Spec {
	return proc.Spec{Argv: []string{shell, "-c", text}, Env: []string{"PATH=/usr/bin:/bin"},
		Stdout: proc.Stream{Pipe: true}, Stderr: proc.Stream{Pipe: true}}
}

// TestCatchUp: whatever a program wrote to its error stream before a word on its output has been worked on when CatchUp
// comes back, however far behind the reader is, and although the program goes on writing.
func TestCatchUp(t *testing.T) {
	for _, n := range []int{0, 1, 100, 20_000} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			p := start(t, piped(`i=0; while [ $i -lt `+fmt.Sprint(n)+` ]; do i=$((i+1)); echo "line $i" >&2; done; echo word; while :; do echo more >&2; done`))
			var mu sync.Mutex
			worked := 0
			go func() {
				lines := proc.Lines(p.Stderr(), 1<<10)
				for {
					line, err := lines.Next()
					if err != nil {
						return
					}
					mu.Lock()
					if strings.HasPrefix(string(line.Data), "line ") {
						worked++
					}
					mu.Unlock()
				}
			}()
			if word, err := bufio.NewReader(p.Stdout()).ReadString('\n'); err != nil || word != "word\n" {
				t.Fatalf("the program said %q, %v", word, err)
			}
			if !p.CatchUp(time.Minute) {
				t.Error("it gave up")
			}
			mu.Lock()
			defer mu.Unlock()
			if worked != n {
				t.Errorf("%d of the %d lines had been worked on", worked, n)
			}
		})
	}
}

// TestCatchUpGivesUp has a reader that never comes back, and one whose stream has ended.
func TestCatchUpGivesUp(t *testing.T) {
	p := start(t, piped(`echo x >&2; echo word; exec sleep 100`))
	if _, err := io.ReadFull(p.Stdout(), make([]byte, 5)); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	caught := p.CatchUp(50 * time.Millisecond)
	if took := time.Since(begun); caught || took < 50*time.Millisecond {
		t.Errorf("it waited for %v, nobody had read, and it says %v", took, caught)
	}
	p.Kill()
	if got := readAll(t, p.Stderr()); got != "x\n" {
		t.Errorf("the stream is %q", got)
	}
	if !p.CatchUp(0) {
		t.Error("it waits for a stream that has ended")
	}
	p = start(t, proc.Spec{Argv: []string{"/bin/sh", "-c", "exit 0"}})
	if !p.CatchUp(0) {
		t.Error("it waits for a stream that there is not")
	}
}

// TestUnread counts what a program left in its input.
func TestUnread(t *testing.T) {
	for script, want := range map[string]int{
		`exec sleep 100`:              9,
		`head -c 4 > /dev/null`:       5,
		`read -r line; exit 1`:        0,
		`read -r line; kill -KILL $$`: 0,
	} {
		t.Run(script, func(t *testing.T) {
			spec := piped(script)
			spec.Stdin = proc.Stream{Pipe: true}
			p := start(t, spec)
			if _, err := p.Stdin().Write([]byte("12345678\n")); err != nil {
				t.Fatal(err)
			}
			if strings.Contains(script, "sleep") {
				p.Kill()
			}
			wait(t, p)
			if n, ok := p.Unread(); n != want || !ok {
				t.Errorf("%d bytes were left (%v), want %d", n, ok, want)
			}
		})
	}
	p := start(t, proc.Spec{Argv: []string{"/bin/sh", "-c", "exit 0"}})
	if _, ok := p.Unread(); ok {
		t.Error("a program without an input has one")
	}
}
