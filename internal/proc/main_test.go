package proc_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stint-dev/stint/internal/proc"
)

// helperEnv makes the test binary play another program.
const helperEnv = "PROC_TEST_HELPER"

func TestMain(m *testing.M) {
	proc.MaybeGuard()
	if name := os.Getenv(helperEnv); name != "" {
		os.Exit(helper(name))
	}
	os.Exit(m.Run())
}

func helper(name string) int {
	switch name {
	case "echo":
		b, _ := io.ReadAll(os.Stdin)
		fmt.Printf("out:%s", b)
		fmt.Fprintf(os.Stderr, "err:%s", b)
		return 7
	case "dial":
		return dial(os.Args[1])
	case "who":
		dir, _ := os.Getwd()
		fmt.Println(os.Getuid(), os.Getgid(), dir)
		return 0
	case "block":
		fmt.Println("ready")
		<-time.After(time.Hour)
	}
	return systemHelper(name)
}

// self is a Spec that starts this test binary in the part of a helper.
func self(t testing.TB, name string, args ...string) proc.Spec {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	env := []string{helperEnv + "=" + name}
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "STINT_PROC") && !strings.HasPrefix(v, helperEnv) {
			env = append(env, v)
		}
	}
	return proc.Spec{Argv: append([]string{exe}, args...), Env: env, Name: t.Name()}
}

func start(t testing.TB, spec proc.Spec) *proc.Proc {
	t.Helper()
	p, err := proc.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Kill()
		p.Wait()
	})
	return p
}

// patience is how long the tests wait for what has to come. It only ends a test that
// would hang: how long a program takes depends on what else the machine does.
const patience = time.Minute

// wait fails the test if the tree does not end.
func wait(t testing.TB, p *proc.Proc) proc.Exit {
	t.Helper()
	select {
	case <-p.Done():
		return p.Wait()
	case <-time.After(patience):
		t.Fatalf("the tree of %d did not end within %v", p.Pid(), patience)
		panic("unreachable")
	}
}

// readAll reads a stream to its end and fails the test if it has none.
func readAll(t testing.TB, r io.Reader) string {
	t.Helper()
	type result struct {
		b   []byte
		err error
	}
	done := make(chan result, 1)
	go func() {
		b, err := io.ReadAll(r)
		done <- result{b, err}
	}()
	select {
	case res := <-done:
		if res.err != nil {
			t.Fatalf("reading a stream: %v", res.err)
		}
		return string(res.b)
	case <-time.After(patience):
		t.Fatalf("a stream did not end within %v", patience)
		panic("unreachable")
	}
}

// expect reads from r until the line is there.
func expect(t testing.TB, r io.Reader, line string) *proc.LineReader {
	t.Helper()
	lines := proc.Lines(r, 4096)
	expectLine(t, lines, line)
	return lines
}

func expectLine(t testing.TB, lines *proc.LineReader, line string) {
	t.Helper()
	found := make(chan error, 1)
	go func() {
		for {
			l, err := lines.Next()
			if err != nil || string(l.Data) == line {
				found <- err
				return
			}
		}
	}()
	select {
	case err := <-found:
		if err != nil {
			t.Fatalf("waiting for %q: %v", line, err)
		}
	case <-time.After(patience):
		t.Fatalf("no line %q within %v", line, patience)
	}
}

func TestStreamsAndExitCode(t *testing.T) {
	spec := self(t, "echo")
	spec.Stdin, spec.Stdout, spec.Stderr = proc.Stream{Pipe: true}, proc.Stream{Pipe: true}, proc.Stream{Pipe: true}
	p := start(t, spec)
	if _, err := p.Stdin().Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	p.Stdin().Close()
	// All is still there for a reader who comes when the tree has gone.
	if x := wait(t, p); x != (proc.Exit{Code: 7}) {
		t.Errorf("exit %+v, want code 7 and nothing else", x)
	}
	if got := readAll(t, p.Stdout()); got != "out:hello" {
		t.Errorf("stdout %q", got)
	}
	if got := readAll(t, p.Stderr()); got != "err:hello" {
		t.Errorf("stderr %q", got)
	}
}

func TestContextEndsProgram(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	spec := self(t, "block")
	spec.Stdout = proc.Stream{Pipe: true}
	spec.Grace = 100 * time.Millisecond
	p, err := proc.Start(ctx, spec)
	if err != nil {
		t.Fatal(err)
	}
	expect(t, p.Stdout(), "ready")
	cancel()
	if x := wait(t, p); !x.Killed || x.Code == 0 {
		t.Errorf("exit %+v, want killed and not code 0", x)
	}
	if p.Stdin() != nil || p.Stderr() != nil {
		t.Error("streams that were not asked for are not nil")
	}
	if _, err := proc.Start(ctx, spec); err != context.Canceled {
		t.Errorf("start with an ended context: %v", err)
	}
}
