package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/config"
	"github.com/stint-dev/stint/internal/term"
	"github.com/stint-dev/stint/internal/view"
	"github.com/stint-dev/stint/tool"
	"github.com/stint-dev/stint/tool/mcp"
)

// startTools bounds how long the servers of an agent may take to list their tools.
const startTools = 2 * time.Minute

// accepted are the servers that a file describes, and what was accepted of them.
func accepted(m *config.MCPTools) ([]mcp.Spec, *lock, error) {
	specs, err := mcpSpecs(m)
	if err != nil {
		return nil, nil, err
	}
	l, err := readLock(m.File)
	return specs, l, err
}

// served makes tools of the servers that a file describes. What they are has to be what
// was accepted: by the session, when it began, or since then in the lock. Who asks for
// them first accepts them as they are.
func (w *wiring) served(m *config.MCPTools, p *pin) ([]tool.Tool, error) {
	specs, lock, err := accepted(m)
	if err != nil {
		return nil, err
	}
	if w.again != nil {
		return pinnedTools(m, p, specs, lock)
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTools)
	defer cancel()
	var all []tool.Tool
	var first []mcp.Pin
	if p.Servers == nil {
		p.Servers = map[string]mcp.Pin{}
	}
	for _, spec := range specs { // nothing is started unless all can be, as they were
		known := lock.known(p.Servers, m.File, spec.Name)
		if err := fits(m.File, known, func(was mcp.Pin) mcp.Pin { return started(spec, was) }); err != nil {
			return nil, err
		}
		if _, err := w.server(m.File, spec); err != nil { // a variable that is not set
			return nil, err
		}
	}
	for _, spec := range specs {
		known := lock.known(p.Servers, m.File, spec.Name)
		some, accepted, err := w.accepted(ctx, m.File, spec, known)
		if err != nil {
			return nil, err
		}
		if len(known) == 0 {
			first = append(first, accepted)
		}
		p.Servers[m.File+"#"+spec.Name] = accepted
		all = append(all, some...)
	}
	if len(first) == 0 || w.look {
		return all, nil
	}
	if err := acceptFirst(m.File, first); err != nil {
		return nil, err
	}
	if w.first != nil {
		w.first(m.File, first)
	}
	return all, nil
}

// accepted returns the tools of a server and which of the known pins it fits; without any
// it is accepted as it is.
func (w *wiring) accepted(ctx context.Context, file string, spec mcp.Spec, known []mcp.Pin) ([]tool.Tool, mcp.Pin, error) {
	s, err := w.server(file, spec)
	if err != nil {
		return nil, mcp.Pin{}, err
	}
	now, err := s.Pin(ctx)
	if err != nil {
		return nil, mcp.Pin{}, err
	}
	if err := fits(file, known, func(mcp.Pin) mcp.Pin { return now }); err != nil {
		return nil, mcp.Pin{}, err
	}
	tools, err := s.ToolsFor(ctx, now, spec.Trust)
	var changed *mcp.Changed
	if errors.As(err, &changed) { // since a moment ago
		err = notAccepted(file, changed)
	}
	return tools, now, err
}

// started is what a server is before it was started, with the tools that it had.
func started(spec mcp.Spec, was mcp.Pin) mcp.Pin {
	now := spec.Start()
	now.Tools = was.Tools
	return now
}

// fits reports the difference to the newest of the known pins, unless one of them is now.
func fits(file string, known []mcp.Pin, now func(mcp.Pin) mcp.Pin) error {
	var newest *mcp.Changed
	for _, was := range known {
		is := now(was)
		diff := was.Compare(is)
		if len(diff) == 0 {
			return nil
		}
		newest = &mcp.Changed{Server: is.Server, Was: was.Hash(), Is: is.Hash(), Diff: diff}
	}
	if newest == nil {
		return nil
	}
	return notAccepted(file, newest)
}

func notAccepted(file string, c *mcp.Changed) error {
	return &stint.Error{Code: stint.Denied, Op: "mcp server " + c.Server, Err: c,
		Hint: fmt.Sprintf("read the difference; if it is meant: stint agent accept %s %s", file, c.Server)}
}

// server returns the server of a spec, which all sessions and agents of this process
// share. It is looked whether it can be started, which is done when it is first needed,
// and it ends with the wiring.
func (w *wiring) server(file string, spec mcp.Spec) (*mcp.Server, error) {
	spec.Trust = false // each of its users says so
	how, err := json.Marshal(spec)
	if err != nil {
		return nil, &stint.Error{Code: stint.Internal, Op: "mcp", Err: err}
	}
	key := file + "\x00" + string(how)
	w = w.whole()
	w.mu.Lock()
	defer w.mu.Unlock()
	if s := w.live[key]; s != nil {
		return s, nil
	}
	opts := mcp.Options{Lookup: w.getenv}
	if w.talk != nil {
		opts.Log = w.talk
	}
	s, err := mcp.Open(context.Background(), spec, opts)
	if err != nil {
		return nil, err
	}
	if w.live == nil {
		w.live = map[string]*mcp.Server{}
	}
	w.live[key] = s
	w.closes = append(w.closes, s.Close)
	return s, nil
}

// mcpSpecs reads the servers that an agent uses of a file.
func mcpSpecs(m *config.MCPTools) ([]mcp.Spec, error) {
	all, err := readServers(m.File)
	if err != nil {
		return nil, err
	}
	for _, want := range slices.Concat(m.Servers, m.Trust) {
		if !slices.ContainsFunc(all, func(s mcp.Spec) bool { return s.Name == want }) {
			return nil, noServer(stint.Invalid, m.File, want, all)
		}
	}
	var out []mcp.Spec
	for _, s := range all {
		if len(m.Servers) > 0 && !slices.Contains(m.Servers, s.Name) {
			continue
		}
		s.Trust, s.Allow = slices.Contains(m.Trust, s.Name), m.Allow
		out = append(out, s)
	}
	return out, nil
}

func noServer(code stint.Code, file, name string, all []mcp.Spec) error {
	e := code.Errorf("mcp", "%s has no server %q", file, name)
	e.Hint = "it has none"
	var names []string
	for _, s := range all {
		names = append(names, s.Name)
	}
	if len(names) > 0 {
		e.Hint = "it has " + strings.Join(names, ", ")
	}
	return e
}

// readServers reads the servers in a file. The folder of a program is the file's, or is
// found from there.
func readServers(file string) ([]mcp.Spec, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, &stint.Error{Code: stint.Invalid, Op: "mcp", Err: err, Hint: "correct the path, or write the file"}
	}
	all, err := mcp.ReadConfig(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	for i := range all {
		if s := &all[i]; s.Transport == mcp.Stdio {
			s.Dir = placed(file, s.Dir)
		}
	}
	return all, nil
}

// firstUse says what was accepted because nobody had said what was to be expected.
func (a *app) firstUse(file string, accepted []mcp.Pin) {
	var all []string
	for _, p := range accepted {
		all = append(all, fmt.Sprintf("%s (%s, %s)", p.Server, howStarted(p), counted(len(p.Tools), "tool")))
	}
	text := fmt.Sprintf("MCP servers were used for the first time and accepted as they are: %s; kept in %s", strings.Join(all, ", "), lockPath(file))
	const hint = "a change from now on is refused until stint agent accept takes it"
	if a.json {
		_ = view.WriteJSON(a.err, struct {
			Schema  string `json:"schema"`
			Warning string `json:"warning"`
			Hint    string `json:"hint"`
		}{"stint.warning/1", text, hint})
		return
	}
	a.notef("stint: %s\n", term.Line(text))
}

// howStarted is a server's command line or URL, for people.
func howStarted(p mcp.Pin) string {
	if p.URL != "" {
		return p.URL
	}
	return commandLine(p.Command)
}

// commandLine is a command for people: what a shell would take apart is quoted.
func commandLine(args []string) string {
	out := make([]string, len(args))
	for i, s := range args {
		if out[i] = s; s == "" || strings.ContainsAny(s, " \t\n\"'\\$&|;<>()*?`#~") {
			out[i] = fmt.Sprintf("%q", s)
		}
	}
	return strings.Join(out, " ")
}

// What is shown of what servers say: this much of each within a span of time, so that one
// that floods neither hides the session nor fills a disk.
const (
	talkSpan  = 10 * time.Second
	talkLines = 50
	talkBytes = 16 << 10
)

// serverTalk returns what shows the lines of servers of tools on standard error.
func (a *app) serverTalk() func(server, line string) {
	type span struct {
		begun              time.Time
		lines, bytes, left int
	}
	var mu sync.Mutex
	spans := map[string]*span{}
	return func(server, line string) {
		mu.Lock()
		defer mu.Unlock()
		s := spans[server]
		if s == nil || time.Since(s.begun) > talkSpan {
			if s != nil && s.left > 0 {
				a.notef("[%s] %s of it not shown\n", server, counted(s.left, "line"))
			}
			s = &span{begun: time.Now()}
			spans[server] = s
		}
		if s.lines >= talkLines || s.bytes >= talkBytes {
			if s.left++; s.left == 1 {
				a.notef("[%s] it says more than is shown\n", server)
			}
			return
		}
		s.lines++
		s.bytes += len(line)
		a.notef("[%s] %s\n", server, term.Line(line))
	}
}

// placed is a folder as it is on this machine, of one that is found from the file.
func placed(file, dir string) string {
	if filepath.IsAbs(dir) || strings.HasPrefix(dir, "${") {
		return dir
	}
	return filepath.Join(filepath.Dir(file), filepath.FromSlash(dir))
}

// portable undoes placed, so that what is under version control fits other machines.
func portable(file, dir string) string {
	rel, err := filepath.Rel(filepath.Dir(file), dir)
	if err != nil || !filepath.IsAbs(dir) || !filepath.IsLocal(rel) {
		return dir
	}
	if rel == "." {
		return ""
	}
	return filepath.ToSlash(rel)
}
