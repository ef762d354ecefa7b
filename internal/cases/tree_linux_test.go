package cases_test

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/agent/exec"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/internal/proc"
	"github.com/stint-dev/stint/journal"
)

// TestG03CancelEndsTheTree: a program starts others that outlive it and hold its
// output open. A cancel, a step's time-out and the end of the runner end all of
// them within five seconds, and the session's lease is free
// (kubeblocks#10861, neochaotic/leoflow#1074).
func TestG03CancelEndsTheTree(t *testing.T) {
	for _, c := range []cancelOfTree{
		{"kill", 0, func(p *place, id stint.ID, _ func()) { p.send(id, stint.Kill, journal.Command{}) }, stint.Canceled},
		{"interrupt", 0, func(p *place, id stint.ID, _ func()) { p.send(id, stint.Interrupt, journal.Command{}) }, stint.Waiting},
		{"step time-out", 2 * time.Second, func(*place, stint.ID, func()) {}, stint.Failed},
		{"runner ends", 0, func(_ *place, _ stint.ID, drain func()) { drain() }, stint.Pending},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel() // it mostly waits
			for seen := false; !seen; c.timeout *= 4 {
				if c.timeout > 2*patience {
					t.Fatal("the processes were not there before the step ended")
				}
				onFile(t, func(t *testing.T, p *place) { seen = c.of(t, p) })
			}
		})
	}
}

// cancelOfTree is what ends a step that never would, and what comes of its session.
type cancelOfTree struct {
	name    string
	timeout time.Duration // of the step; 0: none
	act     func(p *place, id stint.ID, drain func())
	status  stint.Status
}

// of has a step ended so. It returns false if its processes were not all there before its
// time was up, which only says how slow the machine is.
func (c *cancelOfTree) of(t *testing.T, p *place) bool {
	t.Helper()
	dir := t.TempDir()
	a := pythonWith(t, func(s *exec.Spec) {
		s.Command, s.Keep, s.Dir, s.StepTimeout, s.Grace = []string{"sh", "-c", tree}, exec.KeepLoop, dir, c.timeout, time.Second
	})
	e := p.engine(a)
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- e.Serve(ctx) }()
	created, err := e.Start(t.Context(), engine.Request{Agent: a})
	if err != nil {
		t.Fatal(err)
	}
	over := func() bool {
		row := p.row(created.ID)
		return !row.Live && row.Session.Status == c.status
	}
	family := pids(t, filepath.Join(dir, "pids"), 3, func() bool { return c.timeout > 0 && over() })
	begun := time.Now()
	c.act(p, created.ID, cancel)
	await(t, "free lease", over)
	if took := time.Since(begun); took > c.timeout+12*time.Second {
		t.Errorf("it took %v", took)
	}
	for _, id := range family {
		if proc.Alive(id) {
			t.Errorf("process %d is still there", id.Pid)
		}
	}
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
	p.closes(e)
	if len(family) != 3 && c.timeout == 0 {
		t.Fatalf("%d of the processes lived", len(family))
	}
	return len(family) == 3
}

// tree is an agent whose step starts a child and a grandchild in sessions of their
// own, which hold its output open and ignore SIGTERM, and never ends.
const tree = `read -r loop
echo '{"type":"step","id":1,"name":"spawn","effect":"read"}'
read -r go
setsid sh -c "trap '' TERM; echo \$\$ >> pids; setsid sh -c \"trap '' TERM; echo \\\$\\\$ >> pids; while :; do sleep 1; done\" & while :; do sleep 1; done" &
echo $$ >> pids
while :; do sleep 1; done`

// pids waits for n process ids in a file, unless over says that there will not be as many,
// and returns the processes that live.
func pids(t *testing.T, path string, n int, over func() bool) []proc.Ident {
	t.Helper()
	var out []proc.Ident
	await(t, "process ids", func() bool {
		b, err := os.ReadFile(path)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		if strings.Count(string(b), "\n") < n && !over() {
			return false
		}
		for _, f := range strings.Fields(string(b)) {
			pid, err := strconv.Atoi(f)
			if err != nil {
				t.Fatal(err)
			}
			if id, ok := proc.IdentOf(pid); ok {
				out = append(out, id)
			}
		}
		return true
	})
	return out
}
