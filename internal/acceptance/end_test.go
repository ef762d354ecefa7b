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
		flags          []string
		act            func(*site, *proc, string)
		code           int
		status         string
	}{
		{name: "kill", act: order("kill"), code: 7, status: "canceled"},
		{name: "stop", settings: "grace: 500ms", act: order("stop"), code: 7, status: "canceled"},
		{name: "pause now", act: order("pause", "--now"), code: 6, status: "waiting"},
		{name: "interrupt", act: order("interrupt"), code: 6, status: "waiting"},
		{name: "deadline", flags: []string{"--deadline", "2s"}, act: nothing, code: 7, status: "stopped"},
		{name: "idle", flags: []string{"--idle", "2s"}, act: nothing, code: 6, status: "waiting"},
		{name: "wall", settings: "grace: 500ms", flags: []string{"--wall", "2s"}, act: nothing, code: 6, status: "waiting"},
		{name: "two SIGTERM", act: twice, code: 7, status: "canceled"},
		{name: "SIGKILL", act: kill, code: -1, status: "pending"},
		{name: "its end", settings: "then=end", act: nothing, code: 0, status: "completed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, nil)
			agent, settings := "tree", c.settings
			if strings.HasPrefix(settings, "then=") {
				agent, settings = "tree "+settings, ""
			}
			text := yaml(s.dir, nil, agent)
			if settings != "" {
				text += "    " + settings + "\n"
			}
			s.write("stint.yaml", text)
			s.ends(c.flags, c.act, c.code, c.status)
		})
	}
}

// ends runs the agent in mode tree, acts, and checks how and how soon it ends.
func (s *site) ends(flags []string, act func(*site, *proc, string), code int, status string) {
	s.t.Helper()
	p := s.start(s.command(bin.stint, append([]string{"run", "tree", "--json"}, flags...)...))
	eventually(s.t, "the tree has grown", patience, func() bool { return exists(s.path("grown")) })
	id := s.list()[0].ID
	act(s, p, id)
	begun := time.Now()
	if len(flags) > 0 { // its time is not up yet
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
		s := newSite(t, nil, "chat")
		s.went("run", "chat", "-p", "0;", "--wall", "1s", "--json")
		id := s.list()[0].ID
		<-time.After(1500 * time.Millisecond)
		s.must("send", id, "bye")
		s.went("resume", id, "--run", "--json")
		if v := s.show(id); v.Status != "completed" || v.Totals.RunningMS >= 1000 {
			t.Errorf("after a wait it is %s, %+v, with %d ms of running time", v.Status, v.Waiting, v.Totals.RunningMS)
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
