//go:build linux

package acceptance_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// signal sends sig to stint itself, not to what it started.
func (p *proc) signal(sig syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil {
		p.t.Fatal(err)
	}
}

// write makes a file in the site.
func (s *site) write(name, content string) {
	s.t.Helper()
	if err := os.WriteFile(s.path(name), []byte(content), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// stop stops stint, but not in the middle of a commit: one that is stopped there has
// SQLite's write lock, and everybody waits for it.
func (s *site) stop(p *proc) {
	s.t.Helper()
	eventually(s.t, "it is stopped between two commits", patience, func() bool {
		p.signal(syscall.SIGSTOP)
		eventually(s.t, "it stands still", patience, func() bool {
			b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
			return strings.Contains(string(b), ") T ")
		})
		if s.commits(p.cmd.Process.Pid) {
			p.signal(syscall.SIGCONT)
			return false
		}
		return true
	})
}

// commits reports whether a process has the lock under which the WAL is written:
// byte 120 of the shared index, see "WAL Locks" in SQLite's walformat documentation.
func (s *site) commits(pid int) bool {
	s.t.Helper()
	var st syscall.Stat_t
	if err := syscall.Stat(s.store()+"-shm", &st); err != nil {
		s.t.Fatal(err)
	}
	b, err := os.ReadFile("/proc/locks")
	if err != nil {
		s.t.Fatal(err)
	}
	for l := range strings.Lines(string(b)) {
		f := strings.Fields(l) // 7: POSIX ADVISORY WRITE 4711 fe:00:815 120 120
		if len(f) >= 8 && f[3] == "WRITE" && f[4] == strconv.Itoa(pid) && strings.HasSuffix(f[5], ":"+strconv.FormatUint(st.Ino, 10)) && f[6] == "120" {
			return true
		}
	}
	return false
}

// TestStoppedBeyondTheLease stops a runner until its lease has run out, lets another
// finish its session, and wakes it: it writes nothing more and says why it ends.
func TestStoppedBeyondTheLease(t *testing.T) {
	t.Parallel()
	for _, class := range []string{"read", "idempotent", "once"} {
		t.Run(class, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, map[string]string{"AGENT_PAUSE": "2ms"}, "spin steps=2 class="+class)
			s.keep()
			first := s.start(s.command(bin.stint, "run", "spin", "--json"))
			eventually(t, "it has done some loops", patience, func() bool { return strings.Count(first.out.String(), "loop.completed") > 3 })
			s.stop(first)
			id := s.list()[0].ID
			if r := s.run("resume", id, "--run", "--json"); r.code != 5 || !strings.Contains(r.talk, "held by") {
				t.Errorf("a runner that stands still for less than its lease was overtaken: %s", r)
			}
			s.write("clock", "60s")
			s.write("release", "")
			later := s.with("STINT_TEST_CLOCK=" + s.path("clock"))
			second := s.start(later.command(bin.fault, "resume", id, "--run", "--json")).wait(patience)
			if class == "once" && second.code == 6 { // it stood still in the middle of an effect
				s.settle(s.show(id))
				second = s.start(later.command(bin.fault, "resume", id, "--run", "--json")).wait(patience)
			}
			if second.code != 0 {
				t.Fatalf("%s", second)
			}
			before := s.show(id)
			first.signal(syscall.SIGCONT)
			r := first.wait(patience)
			if r.code != 5 || !strings.Contains(r.talk, "fenced") {
				t.Errorf("the runner that was overtaken: %s", r)
			}
			if after := s.show(id); after.Head != before.Head || after.HeadHash != before.HeadHash || after.Status != "completed" {
				t.Errorf("the runner that was overtaken took the journal from %d to %d, %s", before.Head, after.Head, after.Status)
			}
			a := newAcks()
			a.told(r.out)
			a.told(second.out)
			s.quiet()
			s.sound(a)
			s.honest(id)
		})
	}
}

// TestStoppedWithinTheLease stops a runner for less than its lease: it goes on as if
// nothing had been.
func TestStoppedWithinTheLease(t *testing.T) {
	t.Parallel()
	s := newSite(t, map[string]string{"AGENT_PAUSE": "2ms"}, "spin steps=2 class=once")
	p := s.start(s.command(bin.stint, "run", "spin", "--json"))
	for range 3 {
		before := strings.Count(p.out.String(), "loop.completed")
		eventually(t, "it has done a loop", patience, func() bool { return strings.Count(p.out.String(), "loop.completed") > before })
		p.signal(syscall.SIGSTOP)
		<-time.After(300 * time.Millisecond)
		p.signal(syscall.SIGCONT)
	}
	s.write("release", "")
	if r := p.wait(patience); r.code != 0 {
		t.Errorf("%s", r)
	}
	s.sound(newAcks())
	s.honest(s.list()[0].ID)
}
