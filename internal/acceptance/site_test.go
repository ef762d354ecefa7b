//go:build linux

package acceptance_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// site is a folder with a stint.yaml, a store and what the agents left.
type site struct {
	t   *testing.T
	dir string
	env []string // added to that of every command
	db  string   // the store; empty: where it is by default
}

// newSite makes a folder in which agents, as of yaml, can be run.
func newSite(t *testing.T, env map[string]string, agents ...string) *site {
	t.Helper()
	return siteAt(t, t.TempDir(), env, agents...)
}

func siteAt(t *testing.T, dir string, env map[string]string, agents ...string) *site {
	t.Helper()
	s := &site{t: t, dir: dir}
	if len(agents) == 0 { // commands after -- need no stint.yaml
		return s.on(filepath.Join(dir, ".stint", "stint.db"))
	}
	if err := os.WriteFile(filepath.Join(dir, "stint.yaml"), []byte(yaml(dir, env, agents...)), 0o600); err != nil {
		t.Fatal(err)
	}
	return s
}

// with returns the site with variables for every command.
func (s *site) with(env ...string) *site {
	c := *s
	c.env = append(append([]string(nil), s.env...), env...)
	return &c
}

// on returns the site with its store somewhere else.
func (s *site) on(db string) *site {
	c := s.with("STINT_STORE=sqlite:" + db)
	c.db = db
	return c
}

func (s *site) store() string {
	if s.db != "" {
		return s.db
	}
	return filepath.Join(s.dir, ".stint", "stint.db")
}

func (s *site) path(name string) string { return filepath.Join(s.dir, name) }

// command is program with args in the site, not started.
func (s *site) command(program string, args ...string) *exec.Cmd {
	cmd := exec.Command(program, args...)
	cmd.Dir = s.dir
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.dir, "TMPDIR=" + os.TempDir(), "USER=tester"}, s.env...)
	return cmd
}

// result is how a command ended.
type result struct {
	args   []string
	code   int // -1: a signal ended it
	signal syscall.Signal
	out    string
	talk   string
	took   time.Duration
}

func (r result) String() string {
	how := fmt.Sprintf("exit status %d", r.code)
	if r.code < 0 {
		how = r.signal.String()
	}
	return fmt.Sprintf("%s: %s after %v\n%s%s", strings.Join(r.args, " "), how, r.took.Round(time.Millisecond), clip(r.out), clip(r.talk))
}

func clip(s string) string {
	if len(s) > 4000 {
		return s[:2000] + "\n…\n" + s[len(s)-2000:]
	}
	return s
}

// proc is a command under way.
type proc struct {
	t     *testing.T
	cmd   *exec.Cmd
	out   *lines
	talk  *lines
	begun time.Time
	done  chan struct{} // closed once it has ended
	res   result        // then
}

// lines collects what a command writes. A program that leaves its output to others
// must not hold up the test, so it is read from a pipe that may stay open.
type lines struct {
	f    *os.File // what the command writes to
	path string
}

func newLines(t *testing.T, dir, what string) *lines {
	f, err := os.CreateTemp(dir, what+"-*")
	if err != nil {
		t.Fatal(err)
	}
	return &lines{f, f.Name()}
}

func (l *lines) String() string {
	b, err := os.ReadFile(l.path)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// Len is how many bytes came so far.
func (l *lines) Len() int {
	info, err := os.Stat(l.path)
	if err != nil {
		return 0
	}
	return int(info.Size())
}

// start starts cmd.
func (s *site) start(cmd *exec.Cmd) *proc {
	s.t.Helper()
	logs := s.t.TempDir() // not in the site, whose disk may be full
	p := &proc{t: s.t, cmd: cmd, out: newLines(s.t, logs, "out"), talk: newLines(s.t, logs, "talk"), begun: time.Now(), done: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = p.out.f, p.talk.f
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	p.out.f.Close()
	p.talk.f.Close()
	go func() {
		defer close(p.done)
		err := cmd.Wait()
		p.res = result{args: append([]string{filepath.Base(cmd.Args[0])}, cmd.Args[1:]...), took: time.Since(p.begun), out: p.out.String(), talk: p.talk.String()}
		p.res.code = cmd.ProcessState.ExitCode()
		if ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
			p.res.signal = ws.Signal()
		}
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			p.res.talk += err.Error()
		}
	}()
	s.t.Cleanup(func() { _ = cmd.Process.Kill(); <-p.done })
	return p
}

// wait returns how the command ended. One that does not end is killed and fails
// the test.
func (p *proc) wait(within time.Duration) result {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), within)
	defer cancel()
	select {
	case <-p.done:
	case <-ctx.Done():
		_ = p.cmd.Process.Signal(syscall.SIGQUIT) // its stacks tell where it hangs
		select {
		case <-p.done:
		case <-time.After(5 * time.Second):
			_ = p.cmd.Process.Kill()
			<-p.done
		}
		p.t.Fatalf("it did not end within %v: %s", within, p.res)
	}
	return p.res
}

// ended reports whether the command has ended.
func (p *proc) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

func (p *proc) kill() { _ = p.cmd.Process.Kill() }

// run runs stint with args to its end.
func (s *site) run(args ...string) result {
	s.t.Helper()
	return s.start(s.command(bin.stint, args...)).wait(2 * time.Minute)
}

// must is run for what has to work.
func (s *site) must(args ...string) string {
	s.t.Helper()
	r := s.run(args...)
	if r.code != 0 {
		s.t.Fatalf("%s", r)
	}
	return r.out
}

// session is what the tests look at in stint.session/1.
type session struct {
	Schema  string `json:"schema"`
	ID      string `json:"id"`
	Short   string `json:"short"`
	Name    string `json:"name"`
	Status  string `json:"status"`
	Reason  string `json:"reason"`
	Waiting *struct {
		For  string  `json:"for"`
		What string  `json:"what"`
		Step *string `json:"step"`
	} `json:"waiting"`
	At struct {
		Line    int  `json:"line"`
		Loop    int  `json:"loop"`
		Attempt int  `json:"attempt"`
		Open    bool `json:"open"`
	} `json:"at"`
	Totals struct {
		Loops     int   `json:"loops"`
		RunningMS int64 `json:"running_ms"`
	} `json:"totals"`
	Lease *struct {
		Runner string `json:"runner"`
		Live   bool   `json:"live"`
	} `json:"lease"`
	Unread   int    `json:"unread"`
	Head     int64  `json:"head"`
	HeadHash string `json:"head_hash"`
	Result   *struct {
		Text string `json:"text"`
	} `json:"result"`
	Steps []struct {
		Step string `json:"step"`
		Name string `json:"name"`
		Key  string `json:"key"`
	} `json:"steps"`
}

// entry is what the tests look at in stint.entry/1.
type entry struct {
	Schema  string `json:"schema"`
	Session string `json:"session"`
	Seq     int64  `json:"seq"`
	Epoch   int64  `json:"epoch"`
	Kind    string `json:"kind"`
	At      string `json:"at"`
	Hash    string `json:"hash"`
	Pos     struct {
		Line, Loop, Attempt, Step, Sub int
	} `json:"pos"`
	Data json.RawMessage `json:"data"`
}

// list is all sessions of the store, newest first.
func (s *site) list() []session {
	s.t.Helper()
	all := decode[struct{ Items []session }](s.t, s.must("ps", "-a", "--json")).Items
	slices.SortFunc(all, func(a, b session) int { return cmp.Compare(b.ID, a.ID) })
	return all
}

// show is one session with the members of its page.
func (s *site) show(address string) session {
	s.t.Helper()
	return decode[session](s.t, s.must("show", address, "--json"))
}

// entries is the journal of a session.
func (s *site) entries(address string) []entry {
	s.t.Helper()
	return decodeLines[entry](s.must("logs", address, "-o", "jsonl"), "stint.entry/1")
}

// state is the newest state of a session.
func (s *site) state(address string) string {
	s.t.Helper()
	return s.must("show", address, "--state")
}

func decode[T any](t *testing.T, text string) (v T) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v in\n%s", err, clip(text))
	}
	return v
}

// decodeLines returns the whole lines of a schema; what a kill cut off is no line.
func decodeLines[T any](text, schema string) (all []T) {
	for l := range bytes.Lines([]byte(text)) {
		var head struct{ Schema string }
		var v T
		if bytes.HasSuffix(l, []byte("\n")) && json.Unmarshal(l, &head) == nil && head.Schema == schema && json.Unmarshal(l, &v) == nil {
			all = append(all, v)
		}
	}
	return all
}
