//go:build unix

package worktree_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stint-dev/stint/internal/worktree"
)

// driveEnv makes the test binary drive a session in the folder that it names.
const driveEnv = "WORKTREE_TEST_DRIVE"

func TestMain(m *testing.M) {
	if dir := os.Getenv(driveEnv); dir != "" {
		drive(driven{}, dir)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// driven says what is wrong where there is no testing.T.
type driven struct{}

func (driven) Helper() {}
func (driven) Fatalf(format string, args ...any) {
	fmt.Printf(format+"\n", args...)
	os.Exit(1)
}

// progress is what of the drive is durable, as a journal would have it.
type progress struct {
	Act     int  `json:"act"`
	Attempt int  `json:"attempt"`
	Wrote   bool `json:"wrote"` // loop 2 wrote what it will leave behind
}

// drive takes a session through its life, from where it was: two loops of which the second one
// breaks off once, and a restart from the first. Before each loop its files have to be right.
func drive(t T, dir string) {
	path := filepath.Join(dir, "progress")
	var p progress
	if b, err := os.ReadFile(path); err == nil {
		if err := json.Unmarshal(b, &p); err != nil {
			t.Fatalf("%v", err)
		}
	}
	save := func() {
		b, _ := json.Marshal(p)
		write(t, path+".part", string(b))
		if err := os.Rename(path+".part", path); err != nil {
			t.Fatalf("%v", err)
		}
	}
	r := open(t, dir)
	one := with(first(), "one=1", "a.txt=")
	for _, act := range []struct {
		turn  worktree.Turn
		want  map[string]string
		write []string
		fails bool
	}{
		{at(1, 0, 1, 1), first(), []string{"one=1", "a.txt"}, false},
		{at(1, 0, 2, 1), one, []string{"half=half"}, true},
		{at(1, 0, 2, 2), one, []string{"two=2"}, false},
		{at(1, 1, 2, 1), one, []string{"three=3"}, false},
	}[p.Act:] {
		p.Attempt++
		save() // as loop.started is recorded before the agent is called
		act.turn.Attempt += p.Attempt - 1
		f := prepare(t, r, act.turn)
		same(t, fmt.Sprintf("act %d, attempt %d", p.Act, p.Attempt), files(t, f.Path), act.want)
		for _, file := range act.write {
			if name, content, ok := strings.Cut(file, "="); ok {
				write(t, filepath.Join(f.Path, name), content)
			} else {
				_ = os.Remove(filepath.Join(f.Path, name))
			}
		}
		p.Wrote = p.Wrote || act.fails
		if !act.fails {
			commit(t, r, f, act.turn)
			p.Attempt = 0
		}
		p.Act++
		save()
	}
}

// saboteur puts a git in front of the real one that kills its caller at the n-th command: before,
// after or while that runs; or fail: it fails. It returns the PATH to use.
func saboteur(t *testing.T, dir string, n int, mode string) string {
	t.Helper()
	script := fmt.Sprintf(`#!/bin/sh
PATH=%q
n=$(($(cat %[2]q 2>/dev/null || echo 0)+1))
echo $n >%[2]q
[ $n -eq %[3]d ] || exec git "$@"
case %[4]s in
before) ;;
fail) exit 1 ;;
after) git "$@" ;;
while) exec 3<&0; git "$@" <&3 & sleep 0.003; kill -9 $! ;;
esac
kill -9 $PPID
`, os.Getenv("PATH"), filepath.Join(dir, "count"), n, mode)
	write(t, filepath.Join(dir, "bin", "git"), script)
	if err := os.Chmod(filepath.Join(dir, "bin", "git"), 0o755); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "bin") + ":" + os.Getenv("PATH")
}

// A process that dies in any of its git commands has lost nothing: another one goes on, and every
// loop has its files.
func TestKilledInGit(t *testing.T) {
	step := 11 // each number is a session of a second or so
	if os.Getenv("STINT_LONG") == "1" {
		step = 1
	}
	modes := []string{"before", "after", "while"}
	for n := 1; ; n += step {
		rounds := modes[n/step%3 : n/step%3+1]
		if step == 1 {
			rounds = modes
		}
		over := false
		for _, mode := range rounds {
			t.Run(fmt.Sprintf("%d %s", n, mode), func(t *testing.T) {
				over = !killed(t, n, mode)
			})
		}
		if over || t.Failed() {
			if n < 20 {
				t.Errorf("the session takes %d git commands: that is not all of it", n)
			}
			return
		}
	}
}

// killed reports whether the process was killed at the n-th git command.
func killed(t *testing.T, n int, mode string) bool {
	dir := temp(t)
	checkout(t, dir)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), driveEnv+"="+dir, "PATH="+saboteur(t, dir, n, mode))
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err = cmd.Run()
	var exit *exec.ExitError
	dead := false
	if errors.As(err, &exit) {
		dead = exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL
	}
	if err != nil && !dead {
		t.Fatalf("%v: %s", err, out.String())
	}
	drive(t, dir)
	repo := filepath.Join(dir, "repo")
	for _, name := range []string{"one", "half", "two", "three"} {
		if git(t, repo, "log", "--all", "--format=%h", "--", name) == "" {
			t.Errorf("%s is lost", name)
		}
	}
	same(t, "the checkout", files(t, repo), first())
	if got := git(t, repo, "status", "--porcelain"); got != "" {
		t.Errorf("the checkout: %s", got)
	}
	if got := git(t, repo, "fsck", "--connectivity-only", "--no-dangling"); got != "" {
		t.Errorf("git fsck: %s", got)
	}
	b, err := os.ReadFile(filepath.Join(dir, "count"))
	if err != nil {
		t.Fatal(err)
	}
	count, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		t.Fatal(err)
	}
	return dead && count == n
}

// Making again the folder of a worktree that somebody removed is cut off at any git command: what
// is there then is not what somebody left.
func TestKilledWhileItIsMadeAgain(t *testing.T) {
	path := os.Getenv("PATH")
	for n := 1; n <= 6; n++ {
		dir := temp(t)
		checkout(t, dir)
		r := open(t, dir)
		f := loop(t, r, at(1, 0, 1, 1), "one=1")
		if err := os.RemoveAll(f.Path); err != nil {
			t.Fatal(err)
		}
		t.Setenv("PATH", saboteur(t, dir, n, "fail"))
		_, _, err := r.Prepare(t.Context(), at(1, 0, 2, 1))
		t.Setenv("PATH", path)
		if err == nil && n <= 3 {
			t.Errorf("command %d was not needed", n)
		}
		prepare(t, open(t, dir), at(1, 0, 2, 2))
		same(t, fmt.Sprintf("after command %d", n), files(t, f.Path), with(first(), "one=1"))
		if info, err := r.Info(t.Context(), id(1)); err != nil || len(info.Left) > 0 {
			t.Errorf("after command %d somebody left %+v, %v", n, info.Left, err)
		}
	}
}
