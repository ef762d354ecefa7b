package replay_test

import (
	"bytes"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/agent/exec"
	"github.com/stint-dev/stint/internal/proc"
	"github.com/stint-dev/stint/internal/replay"
)

// TestMain lets the test binary be the guard of the programs that it starts, and knock at
// a door for one of them.
func TestMain(m *testing.M) {
	proc.MaybeGuard()
	if filepath.Base(os.Args[0]) == "knock" {
		c, err := net.Dial("tcp", os.Args[1])
		if err != nil {
			os.Exit(1)
		}
		c.Close()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// courier is an agent in another language.
func courier(t *testing.T, change func(s *exec.Spec)) stint.Agent {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join("testdata", "agents"))
	if err != nil {
		t.Fatal(err)
	}
	s := exec.Spec{Command: []string{"/bin/sh", "courier.sh"}, Dir: dir}
	if change != nil {
		change(&s)
	}
	a, err := exec.New(s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
	return a
}

// plain is a program that knows nothing of stint.
func plain(t *testing.T) stint.Agent {
	return courier(t, func(s *exec.Spec) {
		s.Command, s.Protocol = []string{"/bin/sh", "-c", "echo done; exit 3"}, exec.None
	})
}

// A line of an agent's program that was changed shows at the step that it changes.
func TestAProgramThatWasChanged(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("testdata", "agents", "courier.sh"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ was, is, at, text string }{
		{"ask 3 leave once", "ask 3 drop once", "1.3", `was tool "leave" (once), and the agent asks for tool "drop" (once)`},
		{`{"parcel":%s}}\n' "$1" "$2" "$3" "$loop"`, `{"parcel":%s}}\n' "$1" "$2" "$3" "$((loop * loop))"`, "2.1", `"path":"/parcel","old":2,"new":4`},
		{`1) echo '{"type":"end","outcome":"continue"`, `1) echo '{"type":"end","outcome":"complete"`, "1", "the session went on, and the agent ends it (completed)"},
		{`{"left_%s":"%s"}`, `{"put_%s":"%s"}`, "1", `"path":"/put_1"`},
		{`"reason":"all delivered"`, `"reason":"all gone"`, "3", "all gone"},
		{"ask 2 deliver", "exit 4; ask 2 deliver", "1.1", "exited with 4"},
	} {
		t.Run(c.at, func(t *testing.T) {
			if bytes.Count(b, []byte(c.was)) != 1 {
				t.Fatalf("%q is there %d times", c.was, bytes.Count(b, []byte(c.was)))
			}
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "courier.sh"), bytes.Replace(b, []byte(c.was), []byte(c.is), 1), 0o600); err != nil {
				t.Fatal(err)
			}
			rep := all(t, "exec", courier(t, func(s *exec.Spec) { s.Dir = dir }))
			d := rep.Divergence
			if d == nil {
				t.Fatal("nothing differed")
			}
			at := d.Pos.String()
			if got := string(marshal(t, d)) + d.Text; at != c.at || !strings.Contains(got, c.text) {
				t.Errorf("at %s: %s", at, got)
			}
		})
	}
}

// A program that would knock at a door in the world does not reach it from a replay.
func TestAReplayReachesNobody(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	came := make(chan struct{}, 10)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				close(came)
				return
			}
			c.Close()
			came <- struct{}{}
		}
	}()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	if err := os.Symlink(self, filepath.Join(bin, "knock")); err != nil {
		t.Fatal(err)
	}
	knocks := func(s *exec.Spec) {
		s.Env = map[string]string{"DOOR": l.Addr().String(), "PATH": bin + ":/usr/bin:/bin"}
	}
	online := courier(t, knocks)
	if rep := all(t, "exec", online); rep.Divergence != nil || len(rep.Loops) != 3 {
		t.Errorf("with a network: %s", marshal(t, rep))
	}
	for range 3 {
		<-came
	}
	offline := courier(t, func(s *exec.Spec) {
		knocks(s)
		s.Offline = true
	})
	rep := all(t, "exec", offline)
	l.Close()
	if _, more := <-came; more {
		t.Error("somebody came to the door during the replay")
	}
	switch cannot := proc.CanOffline(); {
	case cannot == nil && (rep.Divergence != nil || len(rep.Loops) != 3):
		t.Errorf("without a network: %s", marshal(t, rep))
	case cannot != nil && (rep.Divergence == nil || rep.Divergence.What != replay.AgentFailed):
		t.Errorf("where nothing can be cut off (%v) it came to %s", cannot, marshal(t, rep))
	}
}

// What the program logs is given to who replays it.
func TestOutput(t *testing.T) {
	g := readGolden(t, "exec")
	var mu sync.Mutex
	var said strings.Builder
	_, err := replay.Run(t.Context(), g, g.session.ID, courier(t, nil), replay.Options{Line: -1, From: 2, To: 2, Output: func(_ string, p []byte) {
		mu.Lock()
		defer mu.Unlock()
		said.Write(p)
	}})
	if err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if said.String() != "loop 2: left at the neighbour\n" {
		t.Errorf("it said %q", said.String())
	}
}
