package main

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	xterm "golang.org/x/term"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/config"
	"github.com/stint-dev/stint/internal/term"
	"github.com/stint-dev/stint/tool/mcp"
)

func (a *app) agentAcceptCommand() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use: "accept FILE [SERVER…]", Short: "Compare MCP servers with what was accepted, and accept them",
		Long: `Show how the servers in a .mcp.json differ from what the lock file beside it says was
accepted: a line for each difference in how a server is started and in what it says of
its tools. With --yes, or after a yes on a terminal, the lock file is written, and
sessions that were refused can go on.

A server that would be started otherwise than it was accepted is started only after
that; one that is new is started to be shown.

The exit status is 0 if there is no difference or it was accepted, and 5 if there is one
that was not.`,
		Example: "  stint agent accept .mcp.json\n  stint agent accept .mcp.json docs --yes\n  stint agent accept .mcp.json --json",
		Args:    atLeast(1, "a file of MCP servers, and servers in it if not all are meant"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.agentAccept(cmd.Context(), args[0], args[1:], yes)
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "accept what is shown")
	return cmd
}

// How a server stands to the lock.
const (
	serverSame    = "same"
	serverNew     = "new"
	serverChanged = "changed"
	serverGone    = "gone" // from the file, and not from the lock
)

// standing is a server beside what was accepted of it, an item of stint.agent.accept/1.
type standing struct {
	Server   string   `json:"server"`
	Standing string   `json:"standing"`
	Command  []string `json:"command"` // null for a server behind a URL
	URL      string   `json:"url"`
	Tools    *int     `json:"tools"`   // null if it was not started
	Changes  []string `json:"changes"` // a line for each
	Accepted bool     `json:"accepted"`

	spec mcp.Spec
	was  mcp.Pin
	now  mcp.Pin
}

// acceptance is one call of the command.
type acceptance struct {
	app   *app
	w     *wiring
	file  string
	yes   bool
	input *bufio.Reader // nil until somebody is asked
	items []*standing
}

func (a *app) agentAccept(ctx context.Context, name string, servers []string, yes bool) error {
	dir, err := a.getwd()
	if err != nil {
		return &stint.Error{Code: stint.Invalid, Op: "mcp", Err: err}
	}
	file := name
	if !filepath.IsAbs(file) {
		file = filepath.Join(dir, file)
	}
	w := &wiring{getenv: os.LookupEnv, look: true, talk: a.serverTalk()}
	defer w.close()
	c := &acceptance{app: a, w: w, file: file, yes: yes}
	if err := c.list(servers); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startTools)
	defer cancel()
	for _, it := range c.items {
		if err := w.until(ctx, func() error { return c.look(ctx, it) }); err != nil {
			return err
		}
	}
	return c.finish()
}

// list finds the servers that are meant, in the file and in the lock.
func (c *acceptance) list(servers []string) error {
	specs, err := readServers(c.file)
	if err != nil {
		return err
	}
	l, err := readLock(c.file)
	if err != nil {
		return err
	}
	for _, want := range servers {
		_, locked := l.Servers[want]
		if !locked && !slices.ContainsFunc(specs, func(s mcp.Spec) bool { return s.Name == want }) {
			return noServer(stint.NotFound, c.file, want, specs)
		}
	}
	meant := func(name string) bool { return len(servers) == 0 || slices.Contains(servers, name) }
	allow := c.app.allowed(c.file)
	for _, s := range specs {
		was, known := l.Servers[s.Name]
		delete(l.Servers, s.Name)
		if !meant(s.Name) {
			continue
		}
		s.Allow = allow
		it := &standing{Server: s.Name, Standing: serverNew, spec: s, was: was, URL: s.URL, Changes: []string{}}
		if known {
			it.Standing = serverSame
		}
		if s.Transport == mcp.Stdio {
			it.Command = append([]string{s.Command}, s.Args...)
		}
		c.items = append(c.items, it)
	}
	for _, name := range slices.Sorted(maps.Keys(l.Servers)) {
		if meant(name) {
			c.items = append(c.items, &standing{Server: name, Standing: serverGone, was: l.Servers[name], URL: l.Servers[name].URL, Command: l.Servers[name].Command,
				Changes: []string{"it is in the lock and not in the file any more"}})
		}
	}
	return nil
}

// allowed are the hosts that agents of stint.yaml let the servers of a file be at.
func (a *app) allowed(file string) (hosts []string) {
	conf, err := a.agentsConfig()
	if err != nil || conf == nil {
		return nil // it is no part of this
	}
	for _, c := range conf.Agents {
		if c.Kind != config.KindLLM {
			continue
		}
		for _, t := range c.LLM.Tools {
			if t.MCP != nil && t.MCP.File == file {
				hosts = append(hosts, t.MCP.Allow...)
			}
		}
	}
	slices.Sort(hosts)
	return slices.Compact(hosts)
}

// look finds out what a server is, shows it, and asks.
func (c *acceptance) look(ctx context.Context, it *standing) error {
	if it.Standing == serverGone {
		c.show(it)
		it.Accepted = c.agrees("forget " + it.Server + "?")
		return nil
	}
	if it.Standing == serverSame {
		if it.Changes = it.was.Compare(started(it.spec, it.was)); len(it.Changes) > 0 {
			it.Standing = serverChanged
			c.show(it)
			if !c.agrees("start " + it.Server + " like that?") {
				it.Changes = append(it.Changes, "it was not started, so its tools are not compared")
				c.lines(it.Changes[len(it.Changes)-1:])
				return nil
			}
		}
	}
	s, err := c.w.server(c.file, it.spec)
	if err != nil {
		return err
	}
	if it.now, err = s.Pin(ctx); err != nil {
		return err
	}
	n := len(it.now.Tools)
	it.Tools = &n
	shown := len(it.Changes)
	if it.Standing == serverNew {
		it.Changes = describe(it.now)
	} else if diff := it.was.Compare(it.now); len(diff) > shown {
		it.Changes = diff // how it is started comes first
		if it.Standing == serverSame {
			it.Standing = serverChanged
		}
	}
	if it.Standing == serverSame {
		c.show(it)
		return nil
	}
	if shown == 0 {
		c.show(it)
	} else {
		c.lines(it.Changes[shown:])
	}
	it.Accepted = c.agrees("accept " + it.Server + "?")
	return nil
}

// describe is a server that nobody has accepted, a line for each thing to know.
func describe(p mcp.Pin) (lines []string) {
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	if p.URL != "" {
		add("the url is %+q", p.URL)
	} else {
		add("the command is %+q", p.Command)
		add("the folder is %+q", p.Dir)
	}
	for _, name := range slices.Sorted(maps.Keys(p.Env)) {
		add("the variable %s is %+q", name, p.Env[name])
	}
	for _, name := range slices.Sorted(maps.Keys(p.Headers)) {
		add("the header %s is %+q", name, p.Headers[name])
	}
	for _, change := range (mcp.Pin{}).Compare(mcp.Pin{Tools: p.Tools}) {
		add("%s", change)
	}
	return lines
}

func (c *acceptance) show(it *standing) {
	if c.app.json {
		return
	}
	what := map[string]string{serverSame: "as it was accepted", serverNew: "is new", serverChanged: "is not what was accepted", serverGone: "is gone"}[it.Standing]
	if it.Tools != nil && it.Standing != serverChanged {
		what += ", " + counted(*it.Tools, "tool")
	}
	c.app.printf("%s %s\n", term.Line(it.Server), what)
	c.lines(it.Changes)
}

func (c *acceptance) lines(all []string) {
	if c.app.json {
		return
	}
	for _, l := range all {
		c.app.printf("  %s\n", term.Line(l))
	}
}

// agrees reports whether a person wants it so. Without a terminal nobody is asked.
func (c *acceptance) agrees(question string) bool {
	if c.yes {
		return true
	}
	in, ok := c.app.in.(*os.File)
	if !ok || c.app.json || !c.app.style().TTY || !xterm.IsTerminal(int(in.Fd())) {
		return false
	}
	c.app.notef("%s [y/N] ", term.Line(question))
	if c.input == nil {
		c.input = bufio.NewReader(in)
	}
	answer, err := c.input.ReadString('\n')
	if err != nil {
		c.app.notef("\n")
		return false
	}
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == "y" || answer == "yes"
}

// finish writes what was accepted, and refuses if something was not.
func (c *acceptance) finish() error {
	var open []string
	accepted := 0
	for _, it := range c.items {
		switch {
		case it.Accepted:
			accepted++
		case it.Standing != serverSame:
			open = append(open, it.Server)
		}
	}
	if accepted > 0 {
		if err := c.write(); err != nil {
			return err
		}
	}
	a := c.app
	switch {
	case a.json:
		if err := a.printJSON(struct {
			Schema string      `json:"schema"`
			File   string      `json:"file"`
			Lock   string      `json:"lock"`
			Items  []*standing `json:"items"`
		}{"stint.agent.accept/1", c.file, lockPath(c.file), c.items}); err != nil {
			return err
		}
	case accepted > 0:
		a.printf("accepted %s in %s\n", counted(accepted, "change"), lockPath(c.file))
	}
	if len(open) == 0 {
		return nil
	}
	e := stint.Conflict.Errorf("mcp", "%s: not accepted", strings.Join(open, ", "))
	e.Hint = fmt.Sprintf("if it is meant: stint agent accept %s %s --yes", c.file, strings.Join(open, " "))
	return e
}

func (c *acceptance) write() error {
	return changeLock(c.file, func(l *lock) error {
		for _, it := range c.items {
			if !it.Accepted {
				continue
			}
			if it.Standing == serverGone {
				delete(l.Servers, it.Server)
				continue
			}
			l.Servers[it.Server] = it.now
		}
		return nil
	})
}
