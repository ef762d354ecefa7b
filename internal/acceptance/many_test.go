//go:build linux

package acceptance_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestManyRunners has many processes run sessions on one store at once.
func TestManyRunners(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.must("run", "-q", "--", "true")
	s.together(size(20, 60))
	if all := s.sound(newAcks()); len(all) != size(20, 60)+1 {
		t.Errorf("there are %d sessions", len(all))
	}
}

// together runs n commands at the same time, all of which have to complete.
func (s *site) together(n int) {
	s.t.Helper()
	var all []*proc
	for i := range n {
		all = append(all, s.start(s.command(bin.stint, "run", "--name", fmt.Sprintf("n-%d", i), "--", "true")))
	}
	for _, p := range all {
		if r := p.wait(2 * patience); r.code != 0 {
			s.t.Errorf("%s", r)
		}
	}
	for _, v := range s.list() {
		if v.Status != "completed" {
			s.t.Errorf("%s is %s: %s", v.Name, v.Status, v.Reason)
		}
	}
}

// promptly is how soon an order from another process acts. A tenth of a second is
// what is meant; the rest is for the machine, which has other things to do.
const promptly = 2 * time.Second

// TestControlFromOutside looks at a session and orders it about from other processes
// while one drives it in the foreground.
func TestControlFromOutside(t *testing.T) { // not parallel: it looks at times
	s := newSite(t, map[string]string{"AGENT_PAUSE": "2ms"}, "spin")
	begin := func() (*proc, string) {
		t.Helper()
		had := 0
		if exists(s.store()) {
			had = len(s.list())
		}
		p := s.start(s.command(bin.stint, "run", "spin", "--json"))
		eventually(t, "it runs", patience, func() bool { return strings.Count(p.out.String(), "loop.completed") > 1 })
		if all := s.list(); len(all) != had+1 || all[0].Status != "running" || all[0].Lease == nil || !all[0].Lease.Live {
			t.Fatalf("ps says %+v", all)
		}
		return p, s.list()[0].ID
	}
	p, id := begin()
	t.Run("look", func(t *testing.T) { s.looks(t, id) })
	t.Run("send", func(t *testing.T) {
		s.prompt(t, func() bool { return strings.Contains(s.state(id), theWord) }, "send", id, theWord)
	})
	t.Run("pause", func(t *testing.T) {
		s.prompt(t, p.ended, "pause", id, "--reason", "month end")
		v := s.show(id)
		if v.Status != "waiting" || v.Waiting.For != "operator" || v.Waiting.What != "month end" || p.res.code != 6 {
			t.Errorf("%+v\n%s", v, p.res)
		}
	})
	t.Run("resume", func(t *testing.T) {
		s.must("resume", id)
		if v := s.show(id); v.Status != "pending" {
			t.Errorf("it is %s", v.Status)
		}
		p = s.start(s.command(bin.stint, "resume", id, "--run", "--json"))
		eventually(t, "it runs", patience, func() bool { return s.show(id).Status == "running" })
	})
	t.Run("interrupt", func(t *testing.T) {
		s.prompt(t, p.ended, "interrupt", id)
		if v := s.show(id); v.Status != "waiting" || v.Waiting.For != "message" {
			t.Errorf("%+v", v)
		}
		p = s.start(s.command(bin.stint, "send", id, "go on", "--run"))
		eventually(t, "it runs", patience, func() bool { return s.show(id).Status == "running" })
	})
	t.Run("stop", func(t *testing.T) {
		s.prompt(t, p.ended, "stop", id)
		if v := s.show(id); v.Status != "canceled" || p.res.code != 7 {
			t.Errorf("it is %s\n%s", v.Status, p.res)
		}
	})
	t.Run("kill", func(t *testing.T) {
		p, id := begin()
		s.prompt(t, p.ended, "kill", id)
		if v := s.show(id); v.Status != "canceled" || p.res.code != 7 {
			t.Errorf("it is %s\n%s", v.Status, p.res)
		}
		s.quiet()
	})
	t.Run("drain", func(t *testing.T) {
		p, id := begin()
		p.signal(syscall.SIGTERM)
		r := p.wait(patience)
		if v := s.show(id); r.code != 130 || v.Status != "pending" || v.At.Attempt != 1 {
			t.Errorf("it is %s in attempt %d\n%s", v.Status, v.At.Attempt, r)
		}
	})
	s.sound(newAcks())
}

// prompt gives an order and checks that it acts soon after it was given.
func (s *site) prompt(t *testing.T, acted func() bool, args ...string) {
	t.Helper()
	s.must(args...)
	begun := time.Now()
	eventually(t, strings.Join(args, " ")+" has acted", patience, acted)
	if took := time.Since(begun); took > promptly {
		t.Errorf("stint %s acted after %v", args[0], took)
	}
}

// looks checks that a session that runs elsewhere can be watched.
func (s *site) looks(t *testing.T, id string) {
	t.Helper()
	for _, args := range [][]string{{"ps"}, {"show", id}, {"logs", id, "-n", "5"}, {"verify", id}} {
		if r := s.run(args...); r.code != 0 || r.took > promptly || !strings.Contains(r.out, "spin") && args[0] != "logs" {
			t.Errorf("%s", r)
		}
	}
	follow := s.start(s.command(bin.stint, "logs", id, "-f", "-o", "jsonl"))
	seen := func() int64 {
		es := decodeLines[entry](follow.out.String(), "stint.entry/1")
		if len(es) == 0 {
			return 0
		}
		return es[len(es)-1].Seq
	}
	for range 3 {
		head := s.show(id).Head
		begun := time.Now()
		eventually(t, "the follower has caught up", patience, func() bool { return seen() >= head })
		if took := time.Since(begun); took > promptly {
			t.Errorf("a follower was %v late", took)
		}
	}
	for i, e := range decodeLines[entry](follow.out.String(), "stint.entry/1") {
		if e.Seq != int64(i+1) {
			t.Fatalf("line %d of logs -f has seq %d", i+1, e.Seq)
		}
	}
	follow.signal(syscall.SIGINT)
	if r := follow.wait(patience); r.code != 130 {
		t.Errorf("a follower that is interrupted: %s", clip(r.talk))
	}
}
