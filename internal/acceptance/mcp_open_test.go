//go:build linux

package acceptance_test

import (
	"fmt"
	"strings"
	"testing"
)

// A server changes while a loop is open, and a person accepts that: the model would be
// asked otherwise than is recorded. The session says that the loop is done anew with a
// restart, no verdict is taken for it, and the restart does what it says.
func TestServerChangesInOpenLoop(t *testing.T) {
	t.Parallel()
	for name, first := range map[string]string{"": "", "after a loop": `{"tools":[{"name":"fake__look","input":{}}]},`} {
		t.Run("asked"+name, func(t *testing.T) {
			t.Parallel()
			s := played(t, fakeTools+"tool: {fake__effect: {approve: always}}\n", first+calls("fake__effect", `{}`))
			s.served(listed("effect=first", "look"))
			if r := s.run("run", "a", "-p", "x", "--name", "n"); r.code != 6 {
				t.Fatalf("%s", r)
			}
			short, open, looked := s.list()[0].Short, 1, 0
			if first != "" {
				open, looked = 2, 1
			}
			s.must("approve", "n")
			s.file("tools.json", listed("effect=second", "look"))
			if r := s.run("agent", "accept", ".mcp.json", "--yes"); r.code != 0 {
				t.Fatalf("%s", r)
			}
			s.diverges(short, open)
			if r := s.run("restart", short, "--from", fmt.Sprint(open-1), "--run"); r.code != 6 || s.noted("effects") != looked {
				t.Errorf("what was allowed before is not asked again: %s", r)
			}
			if r := s.run("approve", "n", "--run"); r.code != 0 || s.noted("effects") != looked+1 {
				t.Errorf("%d effects: %s", s.noted("effects"), r)
			}
			s.sound(newAcks())
		})
	}
	t.Run("killed", func(t *testing.T) {
		t.Parallel()
		s := played(t, fakeTools, calls("fake__slow", `{}`))
		s.served(listed("slow=first"))
		p := s.start(s.command(bin.stint, "run", "a", "-p", "x", "--name", "n"))
		eventually(t, "called: the tool", patience, func() bool { return s.noted("effects") == 1 })
		p.kill()
		p.wait(patience)
		short := s.list()[0].Short
		s.file("tools.json", listed("slow=second"))
		if r := s.run("agent", "accept", ".mcp.json", "--yes"); r.code != 0 {
			t.Fatalf("%s", r)
		}
		s.diverges(short, 1)
		if r := s.run("restart", short, "--from", "0", "--run"); r.code != 5 || !strings.Contains(r.talk, "is in doubt") || !strings.Contains(r.talk, "--in-doubt skip") {
			t.Errorf("want 5 and the step that is in doubt: %s", r)
		}
		if r := s.run("restart", short, "--from", "0", "--in-doubt", "skip", "--run"); r.code != 0 || s.noted("effects") != 1 {
			t.Errorf("%d effects: %s", s.noted("effects"), r)
		}
		s.sound(newAcks())
	})
}

// diverges drives a session whose agent has changed, and holds what it says to what works.
func (s *site) diverges(short string, loop int) {
	s.t.Helper()
	anew := fmt.Sprintf("stint restart %s --from %d", short, loop-1)
	r := s.run("resume", short, "--run")
	if r.code != 6 || !strings.Contains(r.talk, "waits for your word: step ") || !strings.Contains(r.talk, "\n  do the loop anew, as the agent is now: "+anew+" --run\n") ||
		!strings.Contains(r.talk, "stint resume "+short+" --run\n") || strings.Contains(r.talk, "stint resolve") {
		s.t.Errorf("want 6 and %q: %s", anew, r)
	}
	if out := s.must("show", short); !strings.Contains(out, anew+" --dry-run\n") || !strings.Contains(strings.Join(strings.Fields(out), " "), "the agent is no longer what it was when the loop began") ||
		strings.Contains(out, "Next        stint resolve") {
		s.t.Errorf("want %q: %s", anew, out)
	}
	if out := s.must("logs", short); !strings.Contains(out, fmt.Sprintf("--from %d --run does the loop anew", loop-1)) {
		s.t.Errorf("the log does not say what to do: %s", out)
	}
	for _, verdict := range []string{"--happened", "--not", "--unknown"} {
		if r := s.run("resolve", fmt.Sprintf("%s:%d.1", short, loop), verdict); r.code != 5 || !strings.Contains(r.talk, anew) {
			s.t.Errorf("want 5 and %q: %s", anew, r)
		}
	}
}
