//go:build linux

package acceptance_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// held runs the agent in mode hold until its effect has taken place and is not
// recorded, and kills stint there.
func (s *site) held(args ...string) (id string) {
	s.t.Helper()
	p := s.start(s.command(bin.stint, append([]string{"run"}, args...)...))
	eventually(s.t, "the effect has taken place", patience, func() bool { return exists(s.path("held")) })
	p.kill()
	p.wait(patience)
	s.quiet()
	return s.sound(newAcks())[0].ID
}

// TestC03CrashAfterTheEffect kills stint after an effect took place and before it is
// recorded. What may run again runs again, under the same key; what may not waits for
// a person's word.
func TestC03CrashAfterTheEffect(t *testing.T) {
	t.Parallel()
	for _, class := range []string{"read", "idempotent"} {
		t.Run(class, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, nil, "hold class="+class)
			id := s.held("hold", "-q")
			s.must("resume", id, "--run", "--json")
			s.honest(id)
			if l := s.ledger(); len(l) != 2 || l[0].Key != l[1].Key || l[0].Key == "" {
				t.Errorf("it ran again as %+v", l)
			}
		})
	}
	for _, word := range []string{"--happened", "--not", "--unknown"} {
		t.Run("once "+word, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, nil, "hold class=once")
			s.onceInDoubt(s.held("hold", "-q"), word)
		})
	}
	for effect, lines := range map[string]int{"once": 1, "idempotent": 2, "read": 2} {
		t.Run("command "+effect, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, nil)
			script := "echo $$ >> did; if [ ! -e held ]; then touch held; sleep 100; fi"
			id := s.held("--effect", effect, "-q", "--", "sh", "-c", script)
			r := s.run("resume", id, "--run", "--json")
			b, err := os.ReadFile(s.path("did"))
			if err != nil || strings.Count(string(b), "\n") != lines {
				t.Errorf("it ran %d times: %v\n%s", strings.Count(string(b), "\n"), err, r)
			}
			if v := s.show(id); lines == 1 && (v.Waiting == nil || v.Waiting.For != "doubt") || lines == 2 && v.Status != "completed" {
				t.Errorf("it is %s, waiting %+v", v.Status, v.Waiting)
			}
		})
	}
}

// onceInDoubt checks that a step in doubt stays so until somebody gives a word, and
// what the word does.
func (s *site) onceInDoubt(id, word string) {
	s.t.Helper()
	for range 3 {
		if r := s.run("resume", id, "--run"); r.code != 6 && r.code != 5 || !strings.Contains(r.talk, "stint resolve") {
			s.t.Fatalf("%s", r)
		}
		if l := s.ledger(); len(l) != 1 {
			s.t.Fatalf("a once step in doubt was done again: %+v", l)
		}
	}
	if bad := s.must("ps", "--bad", "-q"); strings.TrimSpace(bad) != id {
		s.t.Errorf("ps --bad does not have it: %q", bad)
	}
	v := s.show(id)
	args := []string{"resolve", id + ":" + *v.Waiting.Step, word, "--run", "--json"}
	want := 1
	switch word {
	case "--happened":
		args = append(args, "--result", `{"of":"mail","sum":"by hand"}`)
	case "--not":
		want = 2 // it was done again, because a person said so
	}
	s.must(args...)
	l := s.ledger()
	if len(l) != want || l[0].Key != l[want-1].Key {
		s.t.Errorf("after %s the ledger has %+v", word, l)
	}
	result := s.show(id).Result
	marks := map[string]string{"--happened": "by hand", "--not": `"of":"mail"`, "--unknown": `"stint":"unknown"`}
	if result == nil || !strings.Contains(result.Text, marks[word]) {
		s.t.Errorf("after %s it ended with %+v", word, result)
	}
	s.sound(newAcks())
}

// TestC05TwoWriters has two processes resume one session at the same moment, over and
// over: one drives it, the other says who does.
func TestC05TwoWriters(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil, "spin class=idempotent")
	for i := range size(10, 50) {
		os.Remove(s.path("release"))
		id := decode[session](t, s.must("start", "spin", "--json", "--name", fmt.Sprintf("c-%d", i))).ID
		pair := []*proc{s.start(s.command(bin.stint, "resume", id, "--run", "--json")), s.start(s.command(bin.stint, "resume", id, "--run", "--json"))}
		eventually(t, "one of two has given up", patience, func() bool { return pair[0].ended() || pair[1].ended() })
		winner, loser := pair[0], pair[1]
		if winner.ended() {
			winner, loser = loser, winner
		}
		if holder := fmt.Sprintf("process %d ", winner.cmd.Process.Pid); loser.res.code != 5 || !strings.Contains(loser.res.talk, "held by") || !strings.Contains(loser.res.talk, holder) {
			t.Errorf("the one that came second: %s", loser.res)
		}
		eventually(t, "the winner has done a loop", patience, func() bool { return winner.ended() || s.show(id).Totals.Loops > 0 })
		s.write("release", "")
		if r := winner.wait(patience); r.code != 0 {
			t.Errorf("the one that came first: %s", r)
		}
		for i, e := range s.entries(id) {
			if e.Seq != int64(i+1) {
				t.Fatalf("entry %d has seq %d", i+1, e.Seq)
			}
		}
		s.honest(id)
	}
	s.sound(newAcks())
}

// TestAgentGoneBeforeProceed has an agent declare a once step and be deaf to the
// answer: nothing was done, so nothing is in doubt, and it is tried again.
func TestAgentGoneBeforeProceed(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil)
	s.write("stint.yaml", `agents:
  deaf:
    kind: exec
    command: [sh, -c, 'read l; exec 0<&-; echo "{\"type\":\"step\",\"id\":1,\"name\":\"pay\",\"effect\":\"once\"}"; sleep 0.2; exit 1']
    retry: {initial: 10ms, attempts: 3}
`)
	r := s.run("run", "deaf", "--json")
	if v := s.sound(newAcks())[0]; r.code != 7 || v.Status != "failed" || v.At.Attempt != 3 {
		t.Errorf("it is %s in attempt %d\n%s", v.Status, v.At.Attempt, r)
	}
}

// TestRestartAfterDeath goes back to an earlier loop of a session whose runner died,
// also where the first to take that up dies too.
func TestRestartAfterDeath(t *testing.T) {
	t.Parallel()
	for _, point := range []string{"", "engine.after-claim:1"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, nil, "work loops=3 wait=0")
			s.start(s.with("STINT_FAULT=engine.at-loop-end:2").command(bin.fault, "run", "work", "-q")).wait(patience)
			id := s.still()[0].ID
			if point == "" {
				s.must("restart", id, "--from", "1", "--run")
			} else {
				s.must("restart", id, "--from", "1")
				s.start(s.with("STINT_FAULT="+point).command(bin.fault, "resume", id, "--run")).wait(patience)
				s.finish(id)
			}
			if v := s.show(id); v.At.Line != 1 || v.Status != "completed" {
				t.Errorf("it is %s on line %d\n%s", v.Status, v.At.Line, s.must("logs", id))
			}
			s.quiet()
			s.sound(newAcks())
			s.honest(id)
		})
	}
}
