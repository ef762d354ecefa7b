package cases_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// alive reports whether a process is there and has not ended.
func alive(pid string) bool {
	b, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return false
	}
	_, after, _ := strings.Cut(string(b), ") ")
	return !strings.HasPrefix(after, "Z")
}

// TestG03ATreeOfATool: a tool starts a process that keeps its output open. Whatever ends
// the call ends all of it, and the session in time (agent-adaptor PR#1, leoflow PR#1074).
func TestG03ATreeOfATool(t *testing.T) {
	inFormats(t, func(t *testing.T, api string) {
		for name, end := range map[string]treeEnd{
			"kill":           {0, func(s *site, _ *under) { s.must("kill", "@last") }, 7, "canceled"},
			"kill -9":        {0, func(_ *site, u *under) { u.kill() }, -1, "pending"},
			"its time is up": {3 * time.Second, func(*site, *under) {}, 0, "completed"},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				for !end.of(t, api) {
					if end.timeout *= 4; end.timeout == 0 || end.timeout > 2*patience {
						t.Fatal("what the tool starts was not there before it ended")
					}
				}
			})
		}
	}, "messages", "chat")
}

// treeEnd is what ends a tool that never would, and what comes of its session.
type treeEnd struct {
	timeout time.Duration // of the tool; 0: the usual one
	do      func(s *site, u *under)
	code    int
	is      string
}

// of has a tool ended so. It returns false if the tool had not yet started its process, as
// on a machine where that takes longer than the tool may.
func (end *treeEnd) of(t *testing.T, api string) bool {
	t.Helper()
	const grace = 5 * time.Second // and what a busy machine takes on top
	timeout := ""
	if end.timeout > 0 {
		timeout = fmt.Sprintf(", timeout: %v", end.timeout)
	}
	s := llm(t, api, steps(t, `{"steps":[{"tools":[{"id":"s1","name":"tree","input":{}}]},{"text":"finished"}]}`), agent{
		keys: "in_doubt: {tree: unknown}",
		more: fmt.Sprintf("      - exec: {name: tree, description: Starts processes., command: [sh, -c, 'sleep 300 & echo $! >> pids; wait'], dir: .%s}\n", timeout)})
	u := s.start("run", "case", "-p", "Go.")
	pid := ""
	await(t, "process", func() bool {
		b, _ := os.ReadFile(s.path("pids"))
		pid = strings.TrimSpace(string(b))
		return strings.HasSuffix(string(b), "\n") || u.ended()
	})
	if pid == "" || !alive(pid) {
		return false
	}
	begun := time.Now()
	end.do(s, u)
	u.ends(end.code)
	await(t, "end of what the tool started", func() bool { return !alive(pid) })
	if took := time.Since(begun); took > max(2*grace, end.timeout+7*time.Second) {
		t.Errorf("it took %v", took)
	}
	if v := s.only(); v.Status != end.is {
		t.Errorf("the session is %s (%s), want %s", v.Status, v.Reason, end.is)
	}
	s.verified()
	return true
}
