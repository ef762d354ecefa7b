//go:build linux

package acceptance_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

// traced is the command stint with args under strace(1), which does to it what
// inject says. strace counts calls by thread, so the N-th is some N-th: for a sweep
// that is as good, as long as it ends where no thread makes as many calls.
func (s *site) traced(inject string, args ...string) *exec.Cmd {
	s.t.Helper()
	strace, err := exec.LookPath("strace")
	if err != nil {
		s.t.Fatalf("%v: scripts/setup-test.sh installs it", err)
	}
	calls, _, _ := strings.Cut(inject, ":")
	return s.command(strace, append([]string{"-f", "-qq", "-o", "/dev/null", "-e", "trace=" + calls, "-e", "inject=" + inject, bin.stint}, args...)...)
}

// changes are the system calls that change what is on the disk, with how many of
// each a short session makes at most on one thread, roughly.
func changes() map[string]int {
	return map[string]int{"pwrite64": 60, "write": 40, "fsync": 4, "fdatasync": 16, "ftruncate": 8, "unlink,unlinkat": 4}
}

// sweepAgent is short: it begins anew for every point.
const sweepAgent = "work loops=1 wait=0"

// TestSyscallSweep kills stint, or its agent, at the N-th call of each kind that
// changes something on the disk, from the making of the store to its closing.
func TestSyscallSweep(t *testing.T) {
	t.Parallel()
	want := undisturbed(t, nil, sweepAgent)
	r := random(t)
	for call, most := range changes() {
		for _, n := range numbers(r, size(6, most), most) {
			t.Run(fmt.Sprintf("%s:%d", call, n), func(t *testing.T) {
				t.Parallel()
				s := newSite(t, nil, sweepAgent)
				s.keep()
				a := newAcks()
				res := s.start(s.traced(fmt.Sprintf("%s:signal=SIGKILL:when=%d", call, n), "run", "work", "--json", "-p", "topic;")).wait(patience)
				if res.code > 0 && res.code != 6 {
					t.Errorf("%s", res)
				}
				a.told(res.out)
				s.quiet()
				all := s.sound(a)
				if len(all) == 0 {
					s.went("run", "work", "--json", "-p", "topic;")
					all = s.list()
				}
				v := s.finish(all[0].ID)
				s.sound(a)
				s.honest(v.ID)
				s.same(v, want)
			})
		}
	}
}

// numbers returns n of the numbers from 1 to most, always the first two.
func numbers(r *rand.Rand, n, most int) []int {
	all := r.Perm(most)
	picked := map[int]bool{1: true, 2: true}
	for _, i := range all {
		if len(picked) < n {
			picked[i+1] = true
		}
	}
	var out []int
	for i := 1; i <= most; i++ {
		if picked[i] {
			out = append(out, i)
		}
	}
	return out
}

// TestNoSpaceForAWrite makes a single write to the store fail for want of space: the
// session goes on as if nothing had been.
func TestNoSpaceForAWrite(t *testing.T) {
	t.Parallel()
	want := undisturbed(t, nil, sweepAgent)
	r := random(t)
	for _, n := range numbers(r, size(6, 60), 60) {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			s := newSite(t, nil, sweepAgent)
			a := newAcks()
			res := s.start(s.traced(fmt.Sprintf("pwrite64:error=ENOSPC:when=%d", n), "run", "work", "--json", "-p", "topic;")).wait(patience)
			a.told(res.out)
			all := s.sound(a)
			if len(all) == 0 || res.code != 0 { // no command may create a session without space; it says so
				if res.code != 11 || !strings.Contains(res.talk, "space") {
					t.Fatalf("%s", res)
				}
				s.went("run", "work", "--json", "-p", "topic;")
				all = s.list()
			}
			v := s.finish(all[0].ID)
			s.honest(v.ID)
			s.same(v, want)
		})
	}
}

// TestFailedFlush makes the disk refuse to keep what was written to it, while short
// commands record something: they say so, and nothing that was told before is lost.
func TestFailedFlush(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil, "chat")
	s.went("run", "chat", "--json", "-p", "0;")
	a := newAcks()
	a.told(s.must("ps", "-a", "-o", "jsonl"))
	id := s.list()[0].ID
	for _, args := range [][]string{{"start", "chat", "--json"}, {"send", id, "lost"}, {"run", "--json", "--", "true"}} {
		r := s.start(s.traced("fdatasync,fsync:error=EIO:when=1+", args...)).wait(patience)
		if r.code != 11 || !strings.Contains(r.talk, "the disk failed to keep what was written") {
			t.Errorf("%s", r)
		}
		s.sound(a)
	}
	if v := s.show(id); v.Unread > 1 {
		t.Errorf("one message was sent, %d are there", v.Unread)
	}
	s.must("send", id, "bye")
	if v := s.finish(id); v.Status != "completed" {
		t.Errorf("it ends as %s, %s", v.Status, v.Reason)
	}
}

// TestFailedFlushUnderASession makes the disk refuse in the middle of a session: its
// runner ends soon, and says why.
func TestFailedFlushUnderASession(t *testing.T) {
	t.Parallel()
	if !asRoot(t) { // strace has to attach to a process that is not its child
		return
	}
	for name, args := range map[string][]string{
		"in a step":   {"run", "spin", "--json"},
		"at its end":  {"run", "--", "sh", "-c", "touch held; until [ -e release ]; do sleep 0.01; done"},
		"in its wait": {"run", "retry", "--json"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, map[string]string{"AGENT_PAUSE": "2ms"}, "spin class=idempotent")
			s.write("stint.yaml", yaml(s.dir, nil, "spin class=idempotent")+"  retry: {kind: exec, command: [sh, -c, 'touch held; exit 1'], retry: {initial: 2s}}\n")
			a := newAcks()
			p := s.start(s.command(bin.stint, args...))
			eventually(t, "it is under way", patience, func() bool { return exists(s.path("held")) || strings.Count(p.out.String(), "loop.completed") > 2 })
			tracer := s.failFlushes(p)
			s.write("release", "")
			r := p.wait(15 * time.Second)
			tracer.wait(patience)
			if r.code != 11 || !strings.Contains(r.talk, "the disk failed to keep what was written") {
				t.Errorf("%s", r)
			}
			a.told(r.out)
			s.quiet()
			s.sound(a)
		})
	}
}

// failFlushes makes every flush of a process that runs fail from now on.
func (s *site) failFlushes(p *proc) (tracer *proc) {
	s.t.Helper()
	pid := strconv.Itoa(p.cmd.Process.Pid)
	tracer = s.start(exec.Command("strace", "-f", "-qq", "-o", "/dev/null", "-p", pid, "-e", "trace=fdatasync,fsync", "-e", "inject=fdatasync,fsync:error=EIO"))
	eventually(s.t, "strace is attached", patience, func() bool {
		b, err := os.ReadFile("/proc/" + pid + "/status")
		return err == nil && !strings.Contains(string(b), "TracerPid:\t0\n")
	})
	return tracer
}
