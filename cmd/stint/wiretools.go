package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/config"
	"github.com/stint-dev/stint/tool"
	"github.com/stint-dev/stint/tool/builtin"
	toolexec "github.com/stint-dev/stint/tool/exec"
	toolhttp "github.com/stint-dev/stint/tool/http"
	"github.com/stint-dev/stint/tool/mcp"
)

// tools makes the tools of an agent; what they hold open is closed with the wiring.
func (w *wiring) tools(c *config.Agent, p *pin) (*tool.Set, error) {
	var all []tool.Tool
	for i := range c.LLM.Tools {
		some, err := w.toolsOf(&c.LLM.Tools[i], p)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	if len(c.LLM.Result) > 0 {
		t, err := builtin.Finish(c.LLM.Result)
		if err != nil {
			return nil, err
		}
		all = append(all, t)
	}
	known := map[string]bool{}
	for i := range all {
		known[all[i].Name] = true
		if r, ok := c.LLM.Tool[all[i].Name]; ok {
			change(&all[i], &r)
		}
	}
	for name := range c.LLM.Tool {
		if !known[name] {
			e := stint.Invalid.Errorf("agent "+c.Name, "tool.%s: the agent has no such tool", name)
			e.Hint = "a tool of an MCP server is named SERVER__TOOL; stint agent tools " + c.Name + "  lists them"
			return nil, e
		}
	}
	return tool.NewSet(all...)
}

// change makes of a tool what the agent says of it.
func change(t *tool.Tool, r *config.ToolRule) {
	if r.Effect != "" {
		t.Effect = r.Effect
	}
	if r.Approve != "" {
		t.Approve = r.Approve
	}
	if r.Parallel != nil {
		t.Parallel = *r.Parallel
	}
	if r.Timeout > 0 {
		t.Timeout = r.Timeout
	}
	if r.Taints != nil {
		t.Taints = *r.Taints
	}
	t.Poll = t.Poll || r.Poll
}

func (w *wiring) toolsOf(s *config.ToolSpec, p *pin) ([]tool.Tool, error) {
	switch {
	case s.Files != nil:
		files, err := builtin.OpenFiles(s.Files.Root)
		if err != nil {
			return nil, err
		}
		w.closes = append(w.closes, files.Close)
		all := files.Tools()
		if !s.Files.Write {
			all = slices.DeleteFunc(all, func(t tool.Tool) bool { return t.Class() != stint.Read })
		}
		return all, nil
	case s.Exec != nil:
		return single(toolexec.New(w.execTool(s.Exec)))
	case s.HTTP != nil:
		return single(toolhttp.New(w.httpTool(s.HTTP)))
	case s.MCP != nil:
		return w.servers(s.MCP, p)
	case s.Builtin == config.SleepTool:
		return []tool.Tool{builtin.Sleep()}, nil
	case s.Builtin == config.AskTool:
		return []tool.Tool{builtin.Ask()}, nil
	}
	return nil, stint.Invalid.Errorf("tools", "there is no tool %q", s.Builtin)
}

func single(t tool.Tool, err error) ([]tool.Tool, error) { return []tool.Tool{t}, err }

// secrets splits values into those that anybody may see and references, which are looked
// up at each call.
func (w *wiring) secrets(values map[string]string) (plain map[string]string, secret map[string]tool.Secret) {
	plain, secret = map[string]string{}, map[string]tool.Secret{}
	for name, value := range values {
		if config.IsReference(value) {
			secret[name] = func() (string, error) { return config.Resolve(value, w.getenv, os.ReadFile) }
			continue
		}
		plain[name] = value
	}
	return plain, secret
}

func (w *wiring) execTool(t *config.ExecTool) toolexec.Spec {
	s := toolexec.Spec{
		Name: t.Name, Description: t.Description, Schema: t.Args, Command: t.Command, Shell: t.Shell, Dir: t.Dir, Effect: t.Effect,
		Timeout: t.Timeout, Grace: t.Grace, MaxOutput: int(t.Output), Approve: t.Approve, Parallel: t.Parallel, Taints: t.Taints,
	}
	s.Env, s.Secrets = w.secrets(t.Env)
	for _, name := range t.Pass {
		if value, ok := w.getenv(name); ok {
			s.Env[name] = value
		}
	}
	return s
}

func (w *wiring) httpTool(t *config.HTTPTool) toolhttp.Spec {
	s := toolhttp.Spec{
		Name: t.Name, Description: t.Description, Schema: t.Args, Method: t.Method, URL: t.URL, Allow: t.Allow, Effect: t.Effect,
		Timeout: t.Timeout, MaxOutput: int(t.Output), Approve: t.Approve, Parallel: t.Parallel, Taints: t.Taints,
	}
	s.Headers, s.Secrets = w.secrets(t.Headers)
	return s
}

// startTools bounds how long the servers of an agent may take to list their tools.
const startTools = 2 * time.Minute

// servers makes tools of the servers that a file describes. What they say of their tools
// has to be what was accepted; the first time it is accepted as it is, and kept beside
// the file.
func (w *wiring) servers(m *config.MCPTools, p *pin) ([]tool.Tool, error) {
	specs, err := mcpSpecs(m)
	if err != nil {
		return nil, err
	}
	lock, err := readLock(m.File)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTools)
	defer cancel()
	var all []tool.Tool
	for _, spec := range specs {
		accepted, known := lock.Servers[spec.Name]
		if was, ok := p.Servers[m.File+"#"+spec.Name]; ok { // what the session began with
			accepted, known = was, true
		}
		opts := mcp.Options{Lookup: w.getenv, Log: w.serverLog}
		if known {
			opts.Pinned = &accepted
		}
		s, err := mcp.Open(context.Background(), spec, opts)
		if err != nil {
			return nil, err
		}
		w.closes = append(w.closes, s.Close)
		some, err := s.Tools(ctx)
		if err != nil {
			var changed *mcp.Changed
			if errors.As(err, &changed) {
				return nil, notAccepted(m.File, changed)
			}
			return nil, err
		}
		if !known {
			if accepted, err = s.Pin(ctx); err != nil {
				return nil, err
			}
			if err := lock.accept(m.File, accepted); err != nil {
				return nil, err
			}
		}
		if p.Servers == nil {
			p.Servers = map[string]mcp.Pin{}
		}
		p.Servers[m.File+"#"+spec.Name] = accepted
		all = append(all, some...)
	}
	return all, nil
}

func notAccepted(file string, c *mcp.Changed) error {
	return &stint.Error{Code: stint.Denied, Op: "mcp server " + c.Server, Err: c,
		Hint: fmt.Sprintf("read the difference; if it is meant: stint agent accept %s %s", filepath.Base(file), c.Server)}
}

// mcpSpecs reads the servers that an agent uses of a file.
func mcpSpecs(m *config.MCPTools) ([]mcp.Spec, error) {
	b, err := os.ReadFile(m.File)
	if err != nil {
		return nil, &stint.Error{Code: stint.Invalid, Op: "mcp", Err: err, Hint: "correct the path under mcp, or write the file"}
	}
	all, err := mcp.ReadConfig(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.File, err)
	}
	var names []string
	for _, s := range all {
		names = append(names, s.Name)
	}
	for _, want := range append(slices.Clone(m.Servers), m.Trust...) {
		if !slices.Contains(names, want) {
			e := stint.Invalid.Errorf("mcp", "%s has no server %q", m.File, want)
			e.Hint = fmt.Sprintf("it has %v", names)
			return nil, e
		}
	}
	var out []mcp.Spec
	for _, s := range all {
		if len(m.Servers) > 0 && !slices.Contains(m.Servers, s.Name) {
			continue
		}
		s.Trust, s.Allow = slices.Contains(m.Trust, s.Name), m.Allow
		if s.Dir == "" {
			s.Dir = filepath.Dir(m.File)
		}
		out = append(out, s)
	}
	return out, nil
}
