//go:build linux

package acceptance_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"
)

// endsWithin is how soon nothing is left of what an agent started.
const endsWithin = 5 * time.Second

// TestG03NothingIsLeft ends sessions in every way there is while their agent has
// children that hold its output, left its session and take no notice of signals.
func TestG03NothingIsLeft(t *testing.T) {
	t.Parallel()
	order := func(args ...string) func(*site, *proc, string) {
		return func(s *site, _ *proc, id string) { s.must(append(args, id)...) }
	}
	kill := func(_ *site, p *proc, _ string) { p.kill() }
	twice := func(s *site, p *proc, _ string) {
		p.signal(syscall.SIGTERM)
		eventually(s.t, "it has got the signal", patience, func() bool { return strings.Contains(p.talk.String(), "once more to kill") })
		<-time.After(200 * time.Millisecond) // two signals at once count as one: a terminal and a wrapper may both send it
		p.signal(syscall.SIGTERM)
	}
	nothing := func(*site, *proc, string) {}
	for _, c := range []struct {
		name, settings string
		limit          string // the flag of one; empty: none
		act            func(*site, *proc, string)
		code           int
		status         string
	}{
		{name: "kill", act: order("kill"), code: 7, status: "canceled"},
		{name: "stop", settings: "grace: 500ms", act: order("stop"), code: 7, status: "canceled"},
		{name: "pause now", act: order("pause", "--now"), code: 6, status: "waiting"},
		{name: "interrupt", act: order("interrupt"), code: 6, status: "waiting"},
		{name: "deadline", limit: "--deadline", act: nothing, code: 7, status: "stopped"},
		{name: "idle", limit: "--idle", act: nothing, code: 6, status: "waiting"},
		{name: "wall", settings: "grace: 500ms", limit: "--wall", act: nothing, code: 6, status: "waiting"},
		{name: "two SIGTERM", act: twice, code: 7, status: "canceled"},
		{name: "SIGKILL", act: kill, code: -1, status: "pending"},
		{name: "its end", settings: "then=end", act: nothing, code: 0, status: "completed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			agent, settings := "tree", c.settings
			if strings.HasPrefix(settings, "then=") {
				agent, settings = "tree "+settings, ""
			}
			begin := func(flags ...string) (*site, *proc) {
				s := newSite(t, nil)
				text := yaml(s.dir, nil, agent)
				if settings != "" {
					text += "    " + settings + "\n"
				}
				s.write("stint.yaml", text)
				p := s.start(s.command(bin.stint, append([]string{"run", "tree", "--json"}, flags...)...))
				eventually(t, "the tree has grown", patience, func() bool { return p.ended() || exists(s.path("grown")) })
				return s, p
			}
			if c.limit == "" {
				s, p := begin()
				s.ends(p, false, c.act, c.code, c.status)
				return
			}
			limit := 2 * time.Second
			s, p := begin(c.limit, limit.String())
			for !exists(s.path("grown")) && limit < patience { // its time was up before: it gets more
				limit *= 4
				s, p = begin(c.limit, limit.String())
			}
			s.ends(p, true, c.act, c.code, c.status)
		})
	}
}

// ends acts on a session of the agent in mode tree, and checks how and how soon it ends.
func (s *site) ends(p *proc, limited bool, act func(*site, *proc, string), code int, status string) {
	s.t.Helper()
	if !exists(s.path("grown")) {
		s.t.Fatalf("it has ended before its tree had grown: %s", p.res)
	}
	id := s.list()[0].ID
	act(s, p, id)
	begun := time.Now()
	if limited { // its time is not up yet
		eventually(s.t, "it is over", patience, func() bool { return s.show(id).Status != "running" })
		begun = time.Now()
	}
	r := p.wait(patience)
	if took := time.Since(begun); took > endsWithin {
		s.t.Errorf("stint took %v to end", took)
	}
	if r.code != code {
		s.t.Errorf("%s", r)
	}
	if !soon(endsWithin-time.Since(begun), func() bool { return alone(s.t, s.path("alive")) }) {
		s.t.Errorf("after %v something of the agent is left", endsWithin)
	}
	if v := s.still()[0]; v.Status != status {
		s.t.Errorf("it is %s: %s", v.Status, v.Reason)
	}
	s.sound(newAcks())
}

// TestG05RunsTooLong bounds sessions by the calendar and by running time.
func TestG05RunsTooLong(t *testing.T) {
	t.Parallel()
	t.Run("deadline", func(t *testing.T) {
		t.Parallel()
		for _, agent := range []string{"spin", "hold class=read"} { // between steps, and within one that does not end
			s := newSite(t, map[string]string{"AGENT_PAUSE": "2ms"}, agent)
			r := s.run("run", mode(agent), "--deadline", "2s", "--json")
			v := s.list()[0]
			if r.code != 7 || v.Status != "stopped" || !strings.HasPrefix(v.Reason, "deadline") || r.took < 1500*time.Millisecond || r.took > 2*time.Second+endsWithin {
				t.Errorf("%s is %s, %s\n%s", v.Name, v.Status, v.Reason, r)
			}
			s.quiet()
			s.sound(newAcks())
		}
	})
	t.Run("a person does not count", func(t *testing.T) {
		t.Parallel()
		for wall := time.Second; ; wall *= 4 {
			s := newSite(t, nil, "chat")
			s.run("run", "chat", "-p", "0;", "--wall", wall.String(), "--json")
			id := s.list()[0].ID
			<-time.After(wall * 3 / 2)
			s.must("send", id, "bye")
			s.run("resume", id, "--run", "--json")
			v := s.show(id)
			if v.Waiting != nil && v.Waiting.For == "budget" && wall < patience {
				continue // the machine may have taken that long to run it; the wait would be too long with each limit
			}
			if v.Status != "completed" || v.Totals.RunningMS >= wall.Milliseconds() {
				t.Errorf("after a wait it is %s, %+v, with %d ms of running time", v.Status, v.Waiting, v.Totals.RunningMS)
			}
			return
		}
	})
	t.Run("running time counts", func(t *testing.T) {
		t.Parallel()
		s := newSite(t, map[string]string{"AGENT_PAUSE": "2ms"}, "spin")
		r := s.run("run", "spin", "--wall", "1s", "--json")
		v := s.list()[0]
		if r.code != 6 || v.Waiting == nil || v.Waiting.For != "budget" || !strings.HasPrefix(v.Waiting.What, "wall") {
			t.Errorf("%s", fmt.Sprint(v.Waiting, r))
		}
		s.sound(newAcks())
	})
}
