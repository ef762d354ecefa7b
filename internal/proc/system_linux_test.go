package proc_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stint-dev/stint/internal/proc"
)

const shell = "/bin/sh"

// sh is a Spec for a script whose processes carry the token in their arguments.
func sh(t testing.TB, script, token string) proc.Spec {
	return proc.Spec{Argv: []string{shell, "-c", script, token}, Env: []string{"PATH=" + os.Getenv("PATH"), "T=" + token},
		Name: t.Name(), Stdout: proc.Stream{Pipe: true}, Grace: 200 * time.Millisecond}
}

// token returns an argument for sleep that no other process has.
func token() string { return fmt.Sprintf("86400.%d", time.Now().UnixNano()) }

// census lists what is left: processes that carry the marker or the token, and zombies below this process.
func census(marker, token string) []string {
	var out []string
	names, _ := os.ReadDir("/proc")
	for _, d := range names {
		pid, err := strconv.Atoi(d.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		env, _ := os.ReadFile("/proc/" + d.Name() + "/environ")
		cmd, _ := os.ReadFile("/proc/" + d.Name() + "/cmdline")
		stat, _ := os.ReadFile("/proc/" + d.Name() + "/stat")
		_, rest, _ := bytes.Cut(stat, []byte(") "))
		zombie := bytes.HasPrefix(rest, []byte(fmt.Sprintf("Z %d ", os.Getpid())))
		if marker != "" && bytes.Contains(env, []byte(marker)) || token != "" && bytes.Contains(cmd, []byte(token)) || zombie {
			out = append(out, fmt.Sprintf("pid %d zombie %v: %s", pid, zombie, bytes.ReplaceAll(cmd, []byte{0}, []byte(" "))))
		}
	}
	return out
}

// nobodyIn fails the test if the census is not empty within limit. It looks twice, for the census may overlook a process in
// the middle of execve.
func nobodyIn(t testing.TB, marker, token string, limit time.Duration) {
	t.Helper()
	deadline := time.Now().Add(limit)
	for {
		left := census(marker, token)
		if len(left) == 0 {
			<-time.After(20 * time.Millisecond)
			if left = census(marker, token); len(left) == 0 {
				break
			}
		}
		if time.Now().After(deadline) {
			proc.Sweep(marker)
			t.Fatalf("left after %v:\n%s", limit, strings.Join(left, "\n"))
		}
		<-time.After(10 * time.Millisecond)
	}
	if dirs := cgroupsLike("stint-*-" + marker); dirs != "" {
		t.Errorf("cgroup left: %s", dirs)
	}
}

func cgroupsLike(pattern string) string {
	dirs, _ := exec.Command("find", "/sys/fs/cgroup", "-name", pattern).Output()
	return string(dirs)
}

// report is what a helper in the part of stint tells the test.
type report struct {
	Guard, Root proc.Ident
	Marker      string
}

// systemHelper plays a process that uses this package and then comes to grief.
func systemHelper(name string) int {
	switch name {
	case "stint":
		return beStint()
	case "foreground":
		return beForeground()
	case "subreaper":
		return beSubreaper()
	case "chain":
		return beChain()
	}
	fmt.Fprintln(os.Stderr, "unknown helper", name)
	return 64
}

// beStint starts the Spec in its arguments, reports, and waits to be killed.
func beStint() int {
	var spec proc.Spec
	if err := json.Unmarshal([]byte(os.Args[1]), &spec); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 65
	}
	ctx, stop := signal.NotifyContext(backgroundForHelper(), syscall.SIGUSR2)
	defer stop()
	p, err := proc.Start(ctx, spec)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 66
	}
	r := bufio.NewScanner(p.Stdout())
	for r.Scan() && r.Text() != "ready" {
	}
	json.NewEncoder(os.Stdout).Encode(report{p.Guard(), p.Ident(), p.Marker()})
	p.Wait()
	return 0
}

// beForeground hands its terminal to a program and reports what became of both.
func beForeground() int {
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, os.Interrupt)
	background := proc.Spec{Argv: []string{shell, "-c", "( : < /dev/tty ) 2>/dev/null && echo terminal || echo no terminal"},
		Stdout: proc.Stream{File: os.Stdout}}
	if p, err := proc.Start(backgroundForHelper(), background); err == nil {
		p.Wait()
	}
	spec := proc.Spec{Argv: []string{shell, "-c", `trap 'echo program-interrupted; exit 9' INT; echo ready; read x; echo "read $x"; while :; do sleep 0.05; done`},
		Env: []string{"PATH=" + os.Getenv("PATH")}, Foreground: true, NoGuard: len(os.Args) > 1 && os.Args[1] == "noguard",
		Stdin: proc.Stream{File: os.Stdin}, Stdout: proc.Stream{File: os.Stdout}, Stderr: proc.Stream{File: os.Stderr}}
	p, err := proc.Start(backgroundForHelper(), spec)
	if err != nil {
		fmt.Println("start:", err)
		return 66
	}
	x := p.Wait()
	<-caught
	fmt.Printf("exit %d killed %v\n", x.Code, x.Killed)
	fmt.Println(p.Marker())
	return 0
}

// beChain forks a process that forks the next in a session of its own and exits, and so on for some 20 s, with nothing but
// raw system calls: a link lives for some 100 microseconds.
//
//go:norace
func beChain() int {
	fmt.Println("ready")
	for range 200_000 {
		pid, _, errno := syscall.RawSyscall6(syscall.SYS_CLONE, uintptr(syscall.SIGCHLD), 0, 0, 0, 0, 0)
		if errno != 0 || pid != 0 {
			syscall.RawSyscall(syscall.SYS_EXIT_GROUP, 0, 0, 0)
		}
		syscall.RawSyscall(syscall.SYS_SETSID, 0, 0, 0)
	}
	syscall.RawSyscall(syscall.SYS_EXIT_GROUP, 0, 0, 0)
	return 0
}

// beSubreaper inherits orphans, as process 1 of a container does, while it also waits for children of its own.
func beSubreaper() int {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		fmt.Println(err)
		return 66
	}
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			for range 10 {
				err := exec.Command(shell, "-c", "exit 5").Run()
				if e, ok := err.(*exec.ExitError); !ok || e.ExitCode() != 5 {
					fmt.Println("a child of our own was lost:", err)
				}
			}
		})
	}
	for range 2 {
		wg.Go(func() {
			for range 3 {
				p, err := proc.Start(backgroundForHelper(), proc.Spec{Argv: []string{shell, "-c", "for i in 1 2 3; do ( setsid sleep 600 & ); done"},
					Env: []string{"PATH=" + os.Getenv("PATH")}, NoGuard: true, Mode: proc.ModeSubreaper, Linger: -1})
				if err != nil {
					fmt.Println(err)
					return
				}
				if x := p.Wait(); x.Code != 0 || x.Left != 0 {
					fmt.Printf("exit %+v\n", x)
				}
			}
		})
	}
	wg.Wait()
	for _, c := range census("", "") {
		fmt.Println("left:", c)
	}
	fmt.Println("end")
	return 0
}
