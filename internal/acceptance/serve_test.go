//go:build linux

package acceptance_test

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stint-dev/stint/internal/faultpoint"
)

// beatYAML is a stint.yaml with a schedule that is due each second.
const beatYAML = `agents:
  beat: {kind: exec, protocol: none, effect: read, command: ["true"]}
schedules:
  beat: {agent: beat, every: 1s, overlap: allow}
`

// beating is a site whose stint.yaml is beatYAML.
func beating(t *testing.T) *site {
	t.Helper()
	s := siteAt(t, t.TempDir(), nil)
	s.write("stint.yaml", beatYAML)
	return s
}

// serves starts a server, and does not wait until it serves.
func (s *site) serves(program string, args ...string) *proc {
	s.t.Helper()
	return s.start(s.command(program, append([]string{"serve", "--addr", "127.0.0.1:0", "--log-format", "json"}, args...)...))
}

// up waits until a server serves.
func (p *proc) up() *proc {
	p.t.Helper()
	eventually(p.t, "it serves", patience, func() bool { return p.serving() || p.ended() })
	if !p.serving() {
		p.t.Fatalf("it does not serve: %s", p.res)
	}
	return p
}

func (p *proc) serving() bool { return strings.Contains(p.talk.String(), `"msg":"serving"`) }

// drains ends a server as a service manager does.
func (p *proc) drains() {
	p.t.Helper()
	p.signal(syscall.SIGTERM)
	if r := p.wait(2 * patience); r.code != 0 {
		p.t.Errorf("%s", r)
	}
}

// line is what the tests look at in a line of stint.occurrence.list/1.
type line struct {
	Outcome string    `json:"outcome"`
	From    time.Time `json:"from"`
	To      time.Time `json:"to"`
	Count   int64     `json:"count"`
	Reason  string    `json:"reason"`
	Session string    `json:"session"`
	Status  string    `json:"status"`
}

// lines is the ledger of the schedule beat, oldest first.
func (s *site) lines() []line {
	s.t.Helper()
	all := decode[struct{ Items []line }](s.t, s.must("schedule", "history", "beat", "-n", "1000", "--json")).Items
	slices.SortFunc(all, func(a, b line) int { return cmp.Or(a.To.Compare(b.To), a.From.Compare(b.From)) })
	return all
}

// upto waits until the ledger has a line of a time that is not before at.
func (s *site) upto(at time.Time) []line {
	s.t.Helper()
	var all []line
	eventually(s.t, "there is a line of "+at.Format(time.TimeOnly), patience, func() bool {
		all = s.lines()
		return len(all) > 0 && !all[len(all)-1].To.Before(at)
	})
	return all
}

// gapless checks that each second since the first is in exactly one line, and that each
// line that ran has a session of its own, of which the store has no others.
func (s *site) gapless(all []line) {
	s.t.Helper()
	for _, p := range gaps(all, s.list()) {
		s.t.Error(p)
	}
}

// gaps says what is wrong with a ledger of each second, oldest line first, and the
// sessions that came of it.
func gaps(all []line, there []session) (wrong []string) {
	say := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	sessions := map[string]int{}
	for i, l := range all {
		if want := int64(l.To.Sub(l.From)/time.Second) + 1; l.Count != want || l.From.After(l.To) || l.From.Nanosecond() != 0 {
			say("a line of %d times has %d seconds in it: %+v", l.Count, want, l)
		}
		if i > 0 && !l.From.Equal(all[i-1].To.Add(time.Second)) {
			say("between two lines are %v: %+v, %+v", l.From.Sub(all[i-1].To), all[i-1], l)
		}
		if ran := l.Outcome == "ran"; ran != (l.Session != "") || ran && l.Count != 1 {
			say("a time and its session do not fit: %+v", l)
		}
		if l.Session != "" {
			sessions[l.Session]++
		}
	}
	for _, v := range there {
		if sessions[v.ID] != 1 {
			say("the session %s, %s, is in %d lines", v.ID, v.Name, sessions[v.ID])
		}
		delete(sessions, v.ID)
	}
	for id := range sessions {
		say("a line names a session that is not there: %s", id)
	}
	return wrong
}

// TestGapsAreSeen shows the checker of ledgers a sound one, and one with each fault.
func TestGapsAreSeen(t *testing.T) {
	t.Parallel()
	at := func(n int) time.Time { return time.Unix(1_700_000_000+int64(n), 0) }
	ran := func(n int, id string) line {
		return line{Outcome: "ran", From: at(n), To: at(n), Count: 1, Session: id}
	}
	missed := func(from, to int) line {
		return line{Outcome: "missed", From: at(from), To: at(to), Count: int64(to-from) + 1}
	}
	there := []session{{ID: "a"}, {ID: "b"}, {ID: "c"}}
	if wrong := gaps([]line{ran(0, "a"), missed(1, 3), ran(4, "b"), missed(5, 5), ran(6, "c")}, there); len(wrong) > 0 {
		t.Errorf("a sound ledger is refused: %q", wrong)
	}
	short := missed(1, 3)
	short.Count = 2
	for what, all := range map[string][]line{
		"a second without a line":       {ran(0, "a"), missed(1, 2), ran(4, "b"), ran(5, "c")},
		"a second in two lines":         {ran(0, "a"), missed(1, 4), ran(4, "b"), ran(5, "c")},
		"a line twice":                  {ran(0, "a"), missed(1, 1), missed(1, 1), ran(2, "b"), ran(3, "c")},
		"a wrong count":                 {ran(0, "a"), short, ran(4, "b"), ran(5, "c")},
		"a line that lost its session":  {ran(0, "a"), ran(1, "b"), ran(2, "c"), ran(3, "")},
		"a session of no line":          {ran(0, "a"), ran(1, "b")},
		"two lines of one session":      {ran(0, "a"), ran(1, "b"), ran(2, "c"), ran(3, "c")},
		"a line of an unknown session":  {ran(0, "a"), ran(1, "b"), ran(2, "c"), ran(3, "d")},
		"a session of what did not run": {ran(0, "a"), ran(1, "b"), {Outcome: "missed", From: at(2), To: at(2), Count: 1, Session: "c"}},
	} {
		if wrong := gaps(all, there); len(wrong) != 1 {
			t.Errorf("%s: %q", what, wrong)
		}
	}
}

// TestServerIsKilled kills a server over and over, at random instants and where a time is
// decided on and recorded, and begins it again, mostly at once: each second has one fate.
func TestServerIsKilled(t *testing.T) {
	t.Parallel()
	s, r := beating(t), random(t)
	faults := []string{faultpoint.ScheduleDecided, faultpoint.ScheduleDurable, faultpoint.BeforeCommit, faultpoint.AfterCommit}
	before := time.Now().Add(-time.Second)
	first := s.serves(bin.stint).up()
	began := time.Now()
	first.kill()
	first.wait(patience)
	died := map[string]int{}
	for i := range size(20, 200) {
		if i%2 == 0 {
			p := s.serves(bin.stint)
			<-time.After(time.Duration(r.Int64N(int64(2500 * time.Millisecond))))
			p.kill()
			if res := p.wait(patience); res.code >= 0 {
				t.Fatalf("%s", res)
			}
			died["random"]++
			if i%8 == 0 { // else no time is ever missed
				<-time.After(time.Duration(r.Int64N(int64(4 * time.Second))))
			}
			continue
		}
		point := faults[i/2%len(faults)]
		visit := 1 + r.IntN(2)
		if strings.HasPrefix(point, "store.") {
			visit = 1 + r.IntN(20)
		}
		p := s.with(fmt.Sprintf("STINT_FAULT=%s:%d", point, visit)).serves(bin.fault)
		if res := p.wait(patience); res.signal != syscall.SIGKILL {
			t.Fatalf("it was to die at visit %d of %s: %s", visit, point, res)
		}
		died[point]++
	}
	last := s.serves(bin.stint).up()
	all := s.upto(time.Now())
	eventually(t, "no session is left open", patience, func() bool {
		return !slices.ContainsFunc(s.lines(), func(l line) bool { return l.Session != "" && l.Status != "completed" && l.Status != "failed" })
	})
	last.drains()
	all = s.upto(all[len(all)-1].To)
	s.gapless(all)
	s.sound(newAcks())
	if from := all[0].From; from.Before(before) || from.After(began.Add(time.Second)) {
		t.Errorf("the first time is %v, the server began at %v", from, began)
	}
	ran := 0
	for _, l := range all {
		if l.Outcome == "ran" {
			ran++
		}
	}
	for _, point := range faults {
		if died[point] == 0 {
			t.Errorf("it never died at %s", point)
		}
	}
	t.Logf("died at %v; %d seconds are in %d lines, %d of which ran", died, int64(all[len(all)-1].To.Sub(all[0].From)/time.Second)+1, len(all), ran)
}

// TestServerStandsStill stops a server for some seconds, as a machine that sleeps does:
// what was due meanwhile has a line, and nothing is made up for twice.
func TestServerStandsStill(t *testing.T) {
	t.Parallel()
	s := beating(t)
	p := s.serves(bin.stint).up()
	s.upto(time.Now())
	s.stop(p)
	from := time.Now()
	<-time.After(3 * time.Second)
	p.signal(syscall.SIGCONT)
	to := time.Now()
	s.upto(to.Add(2 * time.Second))
	p.drains()
	all := s.lines()
	s.gapless(all)
	slept := slices.IndexFunc(all, func(l line) bool {
		return l.Outcome == "missed" && l.From.After(from.Add(-time.Second)) && l.To.Before(to)
	})
	if slept < 0 {
		t.Errorf("from %v to %v nothing was missed: %+v", from, to, all)
	}
	s.sound(newAcks())
}

// TestOneServer has a store refuse a second server while the first one lives, and let it
// in as soon as that one is dead.
func TestOneServer(t *testing.T) {
	t.Parallel()
	s := beating(t)
	first := s.serves(bin.stint).up()
	if r := s.serves(bin.stint, "--patience", "0s").wait(patience); r.code != 5 || !strings.Contains(r.talk, "one server serves a store") {
		t.Errorf("a second server: %s", r)
	}
	next := s.serves(bin.stint, "--patience", "1m")
	s.upto(time.Now().Add(time.Second))
	if next.serving() || next.ended() {
		t.Errorf("two servers serve: %s", next.talk)
	}
	first.kill()
	first.wait(patience)
	next.up()
	s.upto(time.Now())
	if !exists(s.store() + ".d/stint.sock") {
		t.Error("the second server has no socket")
	}
	next.drains()
	s.gapless(s.lines())
	s.sound(newAcks())
}

// TestServerDrains ends a server in the middle of an effect that must not be repeated: it
// gets its time, is done once, and another server goes on behind it.
func TestServerDrains(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil, "hold")
	s.must("start", "hold")
	p := s.serves(bin.stint).up()
	eventually(t, "the effect is under way", patience, func() bool { return exists(s.path("held")) })
	p.signal(syscall.SIGTERM)
	eventually(t, "it ends", patience, func() bool { return strings.Contains(p.talk.String(), `"msg":"ending"`) })
	s.must("start", "hold", "--name", "later")
	s.write("release", "")
	if r := p.wait(patience); r.code != 0 {
		t.Errorf("%s", r)
	}
	if deeds := s.ledger(); len(deeds) != 1 {
		t.Errorf("it ended after %d effects, and was to begin none", len(deeds))
	}
	next := s.serves(bin.stint).up()
	eventually(t, "both are completed", patience, func() bool {
		return !slices.ContainsFunc(s.list(), func(v session) bool { return v.Status != "completed" })
	})
	next.drains()
	keys := map[string]bool{}
	for _, d := range s.ledger() {
		if keys[d.Key] {
			t.Errorf("done twice: %+v", d)
		}
		keys[d.Key] = true
	}
	if len(keys) != 2 {
		t.Errorf("two sessions did %d effects", len(keys))
	}
	s.sound(newAcks())
}

// TestServerDrainsInVain gives an effect no time: nobody knows whether it was done, and no
// server does it again.
func TestServerDrainsInVain(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil, "hold")
	s.must("start", "hold")
	p := s.serves(bin.stint, "--drain", "50ms").up()
	eventually(t, "the effect is under way", patience, func() bool { return exists(s.path("held")) })
	p.drains()
	next := s.serves(bin.stint).up()
	eventually(t, "it waits for a word", patience, func() bool {
		v := s.list()[0]
		return v.Waiting != nil && v.Waiting.For == "doubt"
	})
	next.drains()
	if deeds := s.ledger(); len(deeds) != 1 {
		t.Errorf("it was done %d times", len(deeds))
	}
	s.quiet()
	s.sound(newAcks())
}

// TestSecondSignal ends a server at once, however long a drain may take.
func TestSecondSignal(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil, "hold")
	s.must("start", "hold")
	p := s.serves(bin.stint, "--drain", "1h").up()
	eventually(t, "the effect is under way", patience, func() bool { return exists(s.path("held")) })
	p.signal(syscall.SIGTERM)
	eventually(t, "it ends", patience, func() bool { return strings.Contains(p.talk.String(), `"msg":"ending"`) })
	eventually(t, "another signal counts", patience, func() bool {
		_ = p.cmd.Process.Signal(os.Interrupt) // the first ones are an echo
		return p.ended()
	})
	if r := p.wait(patience); r.code != 130 {
		t.Errorf("%s", r)
	}
	s.quiet()
	s.sound(newAcks())
}
