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
	for _, c := range []struct {
		name    string
		timeout time.Duration
		act     func(p *place, id stint.ID, drain func())
		status  stint.Status
	}{
		{"kill", 0, func(p *place, id stint.ID, _ func()) { p.send(id, stint.Kill, journal.Command{}) }, stint.Canceled},
		{"interrupt", 0, func(p *place, id stint.ID, _ func()) { p.send(id, stint.Interrupt, journal.Command{}) }, stint.Waiting},
		{"step time-out", 2 * time.Second, func(*place, stint.ID, func()) {}, stint.Failed},
		{"runner ends", 0, func(_ *place, _ stint.ID, drain func()) { drain() }, stint.Pending},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel() // it mostly waits
			onFile(t, func(t *testing.T, p *place) {
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
				family := pids(t, filepath.Join(dir, "pids"), 3)
				begun := time.Now()
				c.act(p, created.ID, cancel)
				await(t, "free lease", func() bool {
					row := p.row(created.ID)
					return !row.Live && row.Session.Status == c.status
				})
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
			})
		})
	}
}

// tree is an agent whose step starts a child and a grandchild in sessions of their
// own, which hold its output open and ignore SIGTERM, and never ends.
const tree = `read -r loop
echo '{"type":"step","id":1,"name":"spawn","effect":"read"}'
read -r go
setsid sh -c "trap '' TERM; echo \$\$ >> pids; setsid sh -c \"trap '' TERM; echo \\\$\\\$ >> pids; while :; do sleep 1; done\" & while :; do sleep 1; done" &
echo $$ >> pids
while :; do sleep 1; done`

// pids waits for n process ids in a file.
func pids(t *testing.T, path string, n int) []proc.Ident {
	t.Helper()
	var out []proc.Ident
	await(t, "process ids", func() bool {
		b, err := os.ReadFile(path)
		if err != nil || strings.Count(string(b), "\n") < n {
			return false
		}
		for _, f := range strings.Fields(string(b)) {
			pid, err := strconv.Atoi(f)
			if err != nil {
				t.Fatal(err)
			}
			id, ok := proc.IdentOf(pid)
			if !ok {
				t.Fatalf("process %d does not live", pid)
			}
			out = append(out, id)
		}
		return true
	})
	return out
}
