//go:build linux

package acceptance_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// agents returns the processes of the test agent that live and belong to the site.
func (s *site) agents() (pids []int) {
	b, _ := os.ReadFile(s.path("pids"))
	for _, f := range strings.Fields(string(b)) {
		pid, err := strconv.Atoi(f)
		if err == nil && isAgent(pid) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// isAgent reports whether a process is still the one that wrote its number down.
func isAgent(pid int) bool {
	exe, err := os.Readlink(filepath.Join("/proc", strconv.Itoa(pid), "exe"))
	return err == nil && exe == bin.agent
}

// TestRandomKills kills stint, its agent, or both, at random instants of a session.
func TestRandomKills(t *testing.T) {
	t.Parallel()
	env := map[string]string{"AGENT_PAUSE": "3ms"}
	want := undisturbed(t, env, workAgent)
	r := random(t)
	for i := range size(30, 300) {
		target, at := []string{"stint", "agent", "both"}[i%3], time.Duration(r.Int64N(int64(want.took)))
		again := time.Duration(r.Int64N(int64(want.took)))
		t.Run(fmt.Sprintf("%03d %s", i, target), func(t *testing.T) {
			t.Parallel()
			s := newSite(t, env, workAgent)
			s.keep()
			a := newAcks()
			s.killed(a, target, at, "run", "work", "--json", "-p", "topic;")
			all := s.sound(a)
			if len(all) == 0 {
				s.went("run", "work", "--json", "-p", "topic;")
				all = s.list()
			}
			id := all[0].ID
			if v := s.bring(id, waits); waits(v) {
				s.must("send", id, theWord)
				s.killed(a, target, again, "resume", id, "--run", "--json")
				s.sound(a)
			}
			v := s.finish(id)
			s.sound(a)
			s.honest(id)
			s.same(v, want)
		})
	}
}

// killed runs a command that drives a session, and kills the target after a while.
func (s *site) killed(a *acks, target string, after time.Duration, args ...string) {
	s.t.Helper()
	p := s.start(s.command(bin.stint, args...))
	timer := time.NewTimer(after)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-p.done:
	}
	var victims []int
	if target != "stint" {
		victims = s.agents()
	}
	if target != "agent" {
		p.kill()
	}
	for _, pid := range victims {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	r := p.wait(patience)
	if r.code > 0 && r.code != 6 && r.code != 7 {
		s.t.Errorf("%s", r)
	}
	a.told(r.out)
	s.quiet()
}

// TestKilledCommands kills commands that record something for others, at random
// instants of their short lives, over and over on one store.
func TestKilledCommands(t *testing.T) {
	t.Parallel()
	r := random(t)
	want := undisturbed(t, nil, workAgent)
	t.Run("start", func(t *testing.T) {
		t.Parallel()
		s := newSite(t, nil, workAgent)
		a := newAcks()
		sometimes(s, a, r.Uint64(), func(i int) []string { return []string{"start", "work", "--json", "--name", fmt.Sprintf("s-%d", i)} })
		t.Logf("%d sessions were acknowledged, %d are there", len(a.sessions), len(s.list()))
	})
	t.Run("send", func(t *testing.T) {
		t.Parallel()
		s := newSite(t, nil, "chat")
		s.went("run", "chat", "--json", "-p", "0;")
		id := s.list()[0].ID
		said := 0
		sometimes(s, newAcks(), r.Uint64(), func(i int) []string { return []string{"send", id, fmt.Sprintf("%d;", i)} }, func(r result) {
			if r.code == 0 {
				said++
			}
			if got := s.show(id).Unread; got < said {
				t.Fatalf("%d messages were acknowledged, %d are there", said, got)
			} else {
				said = got // those that were not acknowledged may be there too
			}
		})
		s.must("send", id, "bye")
		s.finish(id)
		if n := strings.Count(s.state(id), ";"); n != said+1 {
			t.Errorf("%d messages were in the inbox, %d got to the agent: %s", said, n-1, s.state(id))
		}
	})
	t.Run("restart", func(t *testing.T) {
		t.Parallel()
		s := newSite(t, nil, workAgent)
		s.went("run", "work", "--json", "-p", "topic;")
		id := s.list()[0].ID
		a := newAcks()
		took := want.took
		s.finish(id)
		for i := range size(6, 60) {
			args := []string{"restart", id, "--from", strconv.Itoa(i % 3), "--run", "--json"}
			if i%3 == 1 { // the message that loop 2 had is on the line that is left
				args = append(args, "--say", theWord)
			}
			s.killed(a, []string{"stint", "both"}[i%2], time.Duration(r.Int64N(int64(took))), args...)
			s.sound(a)
			s.same(s.finish(id), want)
		}
		s.honest(id)
	})
}

// sometimes runs commands and kills most of them within the time that one takes.
func sometimes(s *site, a *acks, seed uint64, args func(i int) []string, after ...func(result)) {
	s.t.Helper()
	r := rand.New(rand.NewPCG(seed, 0))
	whole := s.start(s.command(bin.stint, args(0)...)).wait(patience)
	if whole.code != 0 {
		s.t.Fatalf("%s", whole)
	}
	a.told(whole.out)
	killed := 0
	for i := 1; i <= size(30, 300); i++ {
		p := s.start(s.command(bin.stint, args(i)...))
		timer := time.NewTimer(time.Duration(r.Int64N(int64(whole.took) * 5 / 4)))
		select {
		case <-timer.C:
		case <-p.done:
			timer.Stop()
		}
		p.kill()
		res := p.wait(patience)
		if res.code > 0 {
			s.t.Fatalf("%s", res)
		}
		if res.signal != 0 {
			killed++
		}
		a.told(res.out)
		for _, f := range after {
			f(res)
		}
	}
	s.sound(a)
	if killed == 0 {
		s.t.Error("no command was killed before its end")
	}
}
