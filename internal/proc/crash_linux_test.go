package proc_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stint-dev/stint/internal/proc"
)

// hard is a tree with an orphan, a process in another session, and one that cleared its environment.
const hard = `trap "" TERM HUP; ( setsid sleep $T & ); setsid sleep $T & env -i setsid sleep $T & echo ready; wait; sleep $T`

// standIn starts a process that starts the Spec, and returns it with what it reported.
func standIn(t *testing.T, spec proc.Spec) (*exec.Cmd, report) {
	t.Helper()
	arg, err := json.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	s := self(t, "stint")
	cmd := exec.Command(s.Argv[0], string(arg))
	cmd.Env, cmd.Stderr = s.Env, os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	var r report
	if err := json.NewDecoder(out).Decode(&r); err != nil {
		t.Fatalf("no report: %v", err)
	}
	return cmd, r
}

// gone waits for one process to end.
func gone(t *testing.T, id proc.Ident) {
	t.Helper()
	for deadline := time.Now().Add(patience); proc.Alive(id); <-time.After(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("pid %d is still alive after %v", id.Pid, patience)
		}
	}
}

func TestKillOfTheCallerEndsTheTree(t *testing.T) {
	for _, s := range setups()[:2] {
		t.Run(s.name, func(t *testing.T) {
			tok := token()
			spec := sh(t, hard, tok)
			spec.Mode = s.mode
			cmd, r := standIn(t, spec)
			if len(census(r.Marker, tok)) < 4 {
				t.Fatal("the tree is not there")
			}
			if !proc.Alive(r.Root) || !proc.Alive(r.Guard) || r.Root == r.Guard {
				t.Fatalf("report %+v", r)
			}
			cmd.Process.Kill()
			cmd.Wait()
			nobodyIn(t, r.Marker, tok, patience)
			gone(t, r.Root)
			gone(t, r.Guard)
		})
	}
}

// When the caller and the guard die at once the program dies with the guard; Sweep finds the rest.
func TestSweepAfterCallerAndGuardDied(t *testing.T) {
	for _, s := range setups() {
		t.Run(s.name, func(t *testing.T) {
			tok := token()
			script := hard
			if s.mode == proc.ModeSubreaper {
				script = strings.ReplaceAll(hard, "env -i ", "") // that one only the cgroup still knows
			}
			spec := sh(t, script, tok)
			spec.Mode, spec.NoGuard = s.mode, s.bare
			cmd, r := standIn(t, spec)
			// Stopped, neither can act on the death of the other.
			unix.Kill(r.Guard.Pid, unix.SIGSTOP)
			cmd.Process.Kill()
			unix.Kill(r.Guard.Pid, unix.SIGKILL)
			cmd.Wait()
			if n, err := proc.Sweep(r.Marker); n == 0 || err != nil {
				t.Errorf("sweep killed %d: %v", n, err)
			}
			nobodyIn(t, r.Marker, tok, patience)
			if n, err := proc.Sweep(r.Marker); n != 0 || err != nil {
				t.Errorf("second sweep killed %d: %v", n, err)
			}
		})
	}
}

// In the middle of execve a process shows no environment; Sweep must find it all the same.
func TestSweepFindsAProcessThatKeepsExecuting(t *testing.T) {
	script := filepath.Join(t.TempDir(), "again")
	text := "#!/bin/sh\n[ $1 -eq 5 ] && echo ready\n[ $1 -lt 20000 ] && exec \"$0\" $(($1+1)) $2\n"
	if err := os.WriteFile(script, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	for range 8 {
		tok := token()
		spec := proc.Spec{Argv: []string{"/bin/sh", "-c", "setsid " + script + " 1 " + tok + " & wait"},
			Env: []string{"PATH=" + os.Getenv("PATH")}, Stdout: proc.Stream{Pipe: true}, Mode: proc.ModeGroup}
		p := start(t, spec)
		expect(t, p.Stdout(), "ready")
		p.Kill()
		wait(t, p)
		if n, err := proc.Sweep(p.Marker()); n != 1 || err != nil {
			t.Errorf("sweep killed %d, %v", n, err)
		}
		nobodyIn(t, p.Marker(), tok, patience)
	}
}

func TestProgramDiesWithABareCaller(t *testing.T) {
	spec := sh(t, families()["plain"], token())
	spec.NoGuard = true
	cmd, r := standIn(t, spec)
	cmd.Process.Kill()
	cmd.Wait()
	gone(t, r.Root)
	if _, err := proc.Sweep(r.Marker); err != nil {
		t.Error(err)
	}
	nobodyIn(t, r.Marker, "", patience)
}

// A guard that is killed, or stopped and so deaf, costs the exit status but not the end of the tree.
func TestLostGuard(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGKILL, syscall.SIGSTOP} {
		for _, s := range setups()[:2] {
			t.Run(s.name+"/"+unix.SignalName(sig), func(t *testing.T) {
				tok := token()
				spec := sh(t, strings.ReplaceAll(hard, "env -i ", ""), tok)
				spec.Mode = s.mode
				p := start(t, spec)
				expect(t, p.Stdout(), "ready")
				syscall.Kill(p.Guard().Pid, sig)
				if sig == syscall.SIGSTOP {
					p.Kill()
				}
				x := wait(t, p)
				if want := (proc.Exit{Code: -1, Lost: true, Killed: sig == syscall.SIGSTOP}); x != want {
					t.Errorf("exit %+v, want %+v", x, want)
				}
				readAll(t, p.Stdout())
				nobodyIn(t, p.Marker(), tok, 0)
			})
		}
	}
}

// A service manager's SIGTERM reaches every process of the service; the guard leaves the decision to its caller.
func TestGuardIgnoresSignalsForOthers(t *testing.T) {
	spec := sh(t, `echo ready; read x; echo "got $x"`, token())
	spec.Stdin = proc.Stream{Pipe: true}
	p := start(t, spec)
	lines := expect(t, p.Stdout(), "ready")
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT} {
		syscall.Kill(p.Guard().Pid, s)
	}
	p.Stdin().Write([]byte("it\n"))
	if l, err := lines.Next(); string(l.Data) != "got it" || err != nil {
		t.Errorf("line %q, %v", l.Data, err)
	}
	if x := wait(t, p); x != (proc.Exit{}) {
		t.Errorf("exit %+v", x)
	}
}

func TestOrphansNeverCostOurOwnChildren(t *testing.T) {
	s := self(t, "subreaper")
	s.Stdout, s.Stderr = proc.Stream{Pipe: true}, proc.Stream{File: os.Stderr}
	p := start(t, s)
	if got := readAll(t, p.Stdout()); got != "end\n" {
		t.Errorf("output:\n%s", got)
	}
}

func TestInterruptKeyReachesForegroundProgram(t *testing.T) {
	for _, arg := range []string{"guard", "noguard"} {
		t.Run(arg, func(t *testing.T) {
			master, slave := terminal(t)
			s := self(t, "foreground")
			cmd := exec.Command(s.Argv[0], arg)
			cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = s.Env, slave, slave, slave
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				cmd.Process.Kill()
				cmd.Wait()
			})
			slave.Close()
			lines := expect(t, master, "no terminal\r") // of a program in the background
			expectLine(t, lines, "ready\r")
			master.Write([]byte("words\n"))
			expectLine(t, lines, "read words\r")
			master.Write([]byte{3})
			expectLine(t, lines, "^Cprogram-interrupted\r") // the terminal itself writes ^C
			if l, err := lines.Next(); string(l.Data) != "exit 9 killed false\r" || err != nil {
				t.Errorf("line %q, %v", l.Data, err)
			}
			l, err := lines.Next()
			if len(l.Data) != 33 || err != nil {
				t.Fatalf("line %q, %v, want the marker", l.Data, err)
			}
			marker := string(l.Data[:32])
			if err := cmd.Wait(); err != nil {
				t.Error(err)
			}
			nobodyIn(t, marker, "", 0)
		})
	}
}

// terminal opens a pseudo terminal (pty(7)).
func terminal(t *testing.T) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { master.Close() })
	raw, err := master.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	raw.Control(func(fd uintptr) {
		if err = unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0); err != nil {
			return
		}
		var n int
		if n, err = unix.IoctlGetInt(int(fd), unix.TIOCGPTN); err == nil {
			slave, err = os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|unix.O_NOCTTY, 0)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return master, slave
}
