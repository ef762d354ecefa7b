package proc_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stint-dev/stint/internal/proc"
)

type setup struct {
	name string
	mode proc.Mode
	bare bool // no guard
}

// setups are the ways to hold a tree that must all keep the promise.
func setups() []setup {
	return []setup{
		{"cgroup", proc.ModeCgroup, false},
		{"subreaper", proc.ModeSubreaper, false},
		{"cgroup bare", proc.ModeCgroup, true},
		{"sweep bare", proc.ModeSubreaper, true},
	}
}

// families are programs that are hard to end. Each prints ready and then stays until it is killed; $T is their token.
func families() map[string]string {
	return map[string]string{
		"plain":            `echo ready; sleep $T`,
		"ignores SIGTERM":  `trap "" TERM; echo ready; while :; do sleep $T; done`,
		"setsid":           `setsid sh -c 'echo ready; exec sleep $T' & wait`,
		"double fork":      `( setsid sh -c 'echo ready; exec sleep $T' & ); sleep $T`,
		"clears marker":    `env -i setsid sh -c "echo ready; exec sleep $T" & wait`,
		"closes stdout":    `echo ready; exec >&- 2>&-; sleep $T`,
		"stops itself":     `echo ready; kill -STOP $$; sleep $T`,
		"dead root":        `( trap "" TERM HUP; setsid sleep $T & setsid sleep $T & echo ready; sleep $T ) & exec sleep $T`,
		"storm":            `i=0; while [ $i -lt 200 ]; do sleep $T & i=$((i+1)); done; echo ready; while [ $i -lt 400 ]; do sleep $T & i=$((i+1)); done; wait`,
		"respawns":         `echo ready; i=0; while [ $i -lt 400 ]; do sleep $T; i=$((i+1)); done`,
		"nested processes": `sh -c 'sh -c "sh -c \"setsid sleep $T & echo ready; sleep $T\"; :"; :'; :`,
	}
}

func TestKillEndsTheWholeTree(t *testing.T) {
	for _, s := range setups() {
		for name, script := range families() {
			t.Run(s.name+"/"+name, func(t *testing.T) {
				tok := token()
				spec := sh(t, script, tok)
				spec.Mode, spec.NoGuard = s.mode, s.bare
				p := start(t, spec)
				if p.Mode() != s.mode {
					t.Fatalf("mode %v", p.Mode())
				}
				expect(t, p.Stdout(), "ready")
				if len(census(p.Marker(), tok)) == 0 {
					t.Fatal("the census does not see the living tree")
				}
				p.Kill()
				x := wait(t, p)
				if want := (proc.Exit{Code: -1, Signal: "SIGKILL", Killed: true}); x != want {
					t.Errorf("exit %+v, want %+v", x, want)
				}
				readAll(t, p.Stdout())
				nobodyIn(t, p.Marker(), tok, 0)
			})
		}
	}
}

func TestExitEndsTheWholeTree(t *testing.T) {
	for _, s := range setups() {
		t.Run(s.name, func(t *testing.T) {
			tok := token()
			// Grandchildren hold the pipe, one in a session of its own, one orphaned at once, one deaf to SIGTERM.
			spec := sh(t, `sleep $T & ( setsid sleep $T & ) ; ( trap "" TERM; sleep $T ) & echo said; exit 3`, tok)
			spec.Mode, spec.NoGuard = s.mode, s.bare
			p := start(t, spec)
			if got := readAll(t, p.Stdout()); got != "said\n" {
				t.Errorf("output %q", got)
			}
			if x := wait(t, p); x != (proc.Exit{Code: 3}) {
				t.Errorf("exit %+v, want code 3", x)
			}
			nobodyIn(t, p.Marker(), tok, 0)
		})
	}
}

func TestTerminateReachesEveryone(t *testing.T) {
	for _, s := range setups() {
		t.Run(s.name, func(t *testing.T) {
			tok, dir := token(), t.TempDir()
			// The sleep is short because a shell runs its trap only between commands.
			spec := sh(t, `child() { trap 'echo term > '"$D"'/child; exit 0' TERM; echo ready; while :; do sleep 0.05; done; }
				trap 'exit 4' TERM; setsid sh -c "$C" & while :; do sleep 0.05; done`, tok)
			spec.Env = append(spec.Env, "D="+dir, `C=trap 'sleep 0.2; echo term > $D/child; exit 0' TERM; echo ready; while :; do sleep 0.05; done`)
			spec.Mode, spec.NoGuard = s.mode, s.bare
			p := start(t, spec)
			expect(t, p.Stdout(), "ready")
			p.Terminate(2 * patience) // nobody waits for the whole of it
			if x := wait(t, p); x != (proc.Exit{Code: 4, Killed: true}) {
				t.Errorf("exit %+v, want code 4, killed", x)
			}
			if _, err := os.Stat(filepath.Join(dir, "child")); err != nil {
				t.Errorf("the grandchild in another session had no time for its own end: %v", err)
			}
			nobodyIn(t, p.Marker(), tok, 0)
		})
	}
}

func TestTerminateKillsAfterGrace(t *testing.T) {
	for _, s := range setups() {
		t.Run(s.name, func(t *testing.T) {
			tok := token()
			spec := sh(t, families()["ignores SIGTERM"], tok)
			spec.Mode, spec.NoGuard = s.mode, s.bare
			p := start(t, spec)
			expect(t, p.Stdout(), "ready")
			begin := time.Now()
			p.Terminate(time.Hour)
			p.Terminate(300 * time.Millisecond)
			if x := wait(t, p); x.Signal != "SIGKILL" || !x.Killed || time.Since(begin) < 300*time.Millisecond {
				t.Errorf("exit %+v after %v", x, time.Since(begin))
			}
			nobodyIn(t, p.Marker(), tok, 0)
		})
	}
}

// A chain of processes, each of which starts the next in a session of its own and exits, is caught although no process of it
// lives long. It ends by itself after a while, lest a failure of this test stay for ever.
func TestChainOfForksIsCaught(t *testing.T) {
	for _, s := range setups()[:2] {
		t.Run(s.name, func(t *testing.T) {
			tok := token()
			chain := self(t, "chain", tok)
			chain.Argv = append([]string{shell, "-c", `"$@" & "$@" & "$@" & "$@" & wait; sleep ` + tok, "sh"}, chain.Argv...)
			chain.Mode, chain.Stdout = s.mode, proc.Stream{Pipe: true}
			p := start(t, chain)
			expectLine(t, expect(t, p.Stdout(), "ready"), "ready")
			p.Kill()
			if x := wait(t, p); x.Left != 0 {
				t.Errorf("exit %+v", x)
			}
			nobodyIn(t, p.Marker(), tok, 0)
		})
	}
}

// A program may close its output and go on: the guard does not keep the pipe open.
func TestClosedOutputEnds(t *testing.T) {
	for _, s := range setups() {
		spec := sh(t, `exec >&-; read x; exit 6`, token())
		spec.Mode, spec.NoGuard, spec.Stdin = s.mode, s.bare, proc.Stream{Pipe: true}
		p := start(t, spec)
		readAll(t, p.Stdout())
		p.Stdin().Write([]byte("go on\n"))
		if x := wait(t, p); x != (proc.Exit{Code: 6}) {
			t.Errorf("%s: exit %+v", s.name, x)
		}
	}
}

// The checker must be able to reject: a group kill leaves the process that changed its session, and the census sees it. The
// survivor holds the pipe, and reading ends all the same.
func TestGroupKillLeavesASurvivor(t *testing.T) {
	for _, bare := range []bool{false, true} {
		tok := token()
		spec := sh(t, families()["setsid"], tok)
		spec.Mode, spec.NoGuard = proc.ModeGroup, bare
		p := start(t, spec)
		expect(t, p.Stdout(), "ready")
		p.Kill()
		if x := wait(t, p); !x.Killed {
			t.Errorf("exit %+v", x)
		}
		readAll(t, p.Stdout())
		left := census(p.Marker(), tok)
		if len(left) != 1 {
			t.Errorf("left: %q, want the sleep in its own session", left)
		}
		if n, err := proc.Sweep(p.Marker()); n != 1 || err != nil {
			t.Errorf("sweep: %d, %v", n, err)
		}
		nobodyIn(t, p.Marker(), tok, patience)
	}
}

func TestGroupKillEndsTheGroup(t *testing.T) {
	for _, bare := range []bool{false, true} {
		for _, script := range []string{`sleep $T & sleep $T & echo ready; wait`, `sleep $T & echo ready`} {
			tok := token()
			spec := sh(t, script, tok)
			spec.Mode, spec.NoGuard = proc.ModeGroup, bare
			p := start(t, spec)
			expect(t, p.Stdout(), "ready")
			if strings.Contains(script, "wait") {
				p.Terminate(2 * patience) // nobody waits for the whole of it
			}
			wait(t, p)
			nobodyIn(t, p.Marker(), tok, patience)
		}
	}
}

func TestLingerLetsThePipelineFinish(t *testing.T) {
	for _, s := range setups() {
		t.Run(s.name, func(t *testing.T) {
			spec := sh(t, `( sleep 0.3; echo late ) & exit 0`, token())
			spec.Linger, spec.Mode, spec.NoGuard = 2*patience, s.mode, s.bare // nobody waits for the whole of it
			p := start(t, spec)
			if x := wait(t, p); x != (proc.Exit{}) {
				t.Errorf("exit %+v", x)
			}
			if got := readAll(t, p.Stdout()); got != "late\n" {
				t.Errorf("output %q", got)
			}
		})
	}
}

func TestSignalIsReported(t *testing.T) {
	for _, s := range setups() {
		spec := sh(t, `kill -SEGV $$`, token())
		spec.Mode, spec.NoGuard = s.mode, s.bare
		if x := wait(t, start(t, spec)); x != (proc.Exit{Code: -1, Signal: "SIGSEGV"}) {
			t.Errorf("%s: exit %+v", s.name, x)
		}
	}
}

func TestProgramSeesNothingInherited(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	spec := sh(t, `env; ls /proc/self/fd | tr "\n" " "; cat /proc/self/fdinfo/1 | grep flags; tty; cat`, "x")
	spec.Env = []string{"PATH=" + os.Getenv("PATH"), "A=b\xff", "STINT_PROC_GUARD=x", "STINT_PROC=y"}
	p := start(t, spec)
	got := readAll(t, p.Stdout())
	var env []string
	for l := range strings.Lines(got) {
		if k, _, ok := strings.Cut(l, "="); ok && k != "PWD" && k != "_" && k != "OLDPWD" && k != "SHLVL" {
			env = append(env, strings.TrimSpace(l))
		}
	}
	slices.Sort(env)
	want := []string{"A=b\xff", "PATH=" + os.Getenv("PATH"), "STINT_PROC=" + p.Marker()}
	if !slices.Equal(env, want) {
		t.Errorf("environment %q, want %q", env, want)
	}
	// 3 is the directory that ls reads; the pipe must not be non-blocking (04000), which few programs expect.
	if !strings.Contains(got, "\n0 1 2 3 flags:\t01\n") || !strings.Contains(got, "not a tty") {
		t.Errorf("output %q", got)
	}
}

func TestStartErrors(t *testing.T) {
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain")
	if err := os.WriteFile(plain, []byte("echo"), 0o644); err != nil {
		t.Fatal(err)
	}
	path := []string{"PATH=" + dir + ":/bin:relative"}
	for name, c := range map[string]struct {
		spec proc.Spec
		want error
	}{
		"no argv":        {proc.Spec{}, proc.ErrSpec},
		"NUL":            {proc.Spec{Argv: []string{"a\x00"}}, proc.ErrSpec},
		"bad env":        {proc.Spec{Argv: []string{"/bin/true"}, Env: []string{"=x"}}, proc.ErrSpec},
		"bad stream":     {proc.Spec{Argv: []string{"/bin/true"}, Stdin: proc.Stream{Pipe: true, File: os.Stdin}}, proc.ErrSpec},
		"bad dir":        {proc.Spec{Argv: []string{"/bin/true"}, Dir: dir + "/none"}, proc.ErrSpec},
		"no PATH":        {proc.Spec{Argv: []string{"true"}}, proc.ErrSpec},
		"not in PATH":    {proc.Spec{Argv: []string{"no-such-program"}, Env: path}, fs.ErrNotExist},
		"PATH no x":      {proc.Spec{Argv: []string{"plain"}, Env: path}, fs.ErrPermission},
		"missing":        {proc.Spec{Argv: []string{dir + "/none"}}, fs.ErrNotExist},
		"not executable": {proc.Spec{Argv: []string{plain}}, fs.ErrPermission},
		"job":            {proc.Spec{Argv: []string{"/bin/true"}, Mode: proc.ModeJob}, proc.ErrUnsupported},
	} {
		for _, bare := range []bool{false, true} {
			c.spec.NoGuard = bare
			_, err := proc.Start(t.Context(), c.spec)
			if !errors.Is(err, c.want) {
				t.Errorf("%s, bare %v: %v, want %v", name, bare, err, c.want)
			}
		}
	}
	for _, bare := range []bool{false, true} {
		spec := proc.Spec{Argv: []string{plain}, Name: "start-errors", Mode: proc.ModeCgroup, NoGuard: bare}
		if _, err := proc.Start(t.Context(), spec); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("in a cgroup: %v", err)
		}
	}
	if dirs := cgroupsLike("stint-start-errors-*"); dirs != "" {
		t.Errorf("cgroup left: %s", dirs)
	}
}

func TestStartGivesUpWithItsContext(t *testing.T) {
	// The guard of this process is this test binary, so it cannot be made slow; a context that ends at once is as good.
	for range 20 {
		ctx, cancel := context.WithCancel(t.Context())
		go cancel()
		p, err := proc.Start(ctx, sh(t, `sleep 86400`, "x"))
		if err != nil {
			if !errors.Is(err, context.Canceled) {
				t.Errorf("start: %v", err)
			}
			continue
		}
		wait(t, p)
		nobodyIn(t, p.Marker(), "", 0)
	}
	nobodyIn(t, "", "", patience)
}

func TestWithoutMaybeGuardThereIsNoGuard(t *testing.T) {
	t.Setenv("STINT_PROC_READY", "")
	p := start(t, sh(t, `exit 0`, "x"))
	if p.Guard() != p.Ident() {
		t.Error("an executable that never called MaybeGuard was started as a guard")
	}
	wait(t, p)
}

func TestOutputWithoutNewline(t *testing.T) {
	const size = 100_000_000
	spec := sh(t, `head -c 100000000 /dev/zero`, "x")
	p := start(t, spec)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	lines := proc.Lines(p.Stdout(), 1<<20)
	l, err := lines.Next()
	runtime.ReadMemStats(&after)
	if err != nil || l.Size != size || !l.Unterminated || !l.Truncated() {
		t.Errorf("size %d, unterminated %v, error %v", l.Size, l.Unterminated, err)
	}
	if got := after.TotalAlloc - before.TotalAlloc; got > 8<<20 {
		t.Errorf("allocated %d bytes", got)
	}
	if x := wait(t, p); x != (proc.Exit{}) {
		t.Errorf("exit %+v", x)
	}
}

func TestBlockedWriterIsReleased(t *testing.T) {
	spec := sh(t, families()["plain"], token())
	spec.Stdin = proc.Stream{Pipe: true}
	p := start(t, spec)
	failed := make(chan error, 1)
	go func() {
		_, err := p.Stdin().Write(make([]byte, 1<<20))
		failed <- err
	}()
	p.Kill()
	wait(t, p)
	select {
	case err := <-failed:
		if err == nil {
			t.Error("a write nobody read succeeded")
		}
	case <-time.After(patience):
		t.Fatal("the writer is still blocked")
	}
}

func BenchmarkStart(b *testing.B) {
	for _, s := range append(setups(), setup{"group", proc.ModeGroup, false}, setup{"group bare", proc.ModeGroup, true}) {
		b.Run(s.name, func(b *testing.B) {
			for b.Loop() {
				p, err := proc.Start(b.Context(), proc.Spec{Argv: []string{"/bin/true"}, Mode: s.mode, NoGuard: s.bare})
				if err != nil {
					b.Fatal(err)
				}
				p.Wait()
			}
		})
	}
}
