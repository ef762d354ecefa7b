package main

import (
	"os"
	"slices"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/config"
	"github.com/stint-dev/stint/tool"
	"github.com/stint-dev/stint/tool/builtin"
	toolexec "github.com/stint-dev/stint/tool/exec"
	toolhttp "github.com/stint-dev/stint/tool/http"
)

// tools makes the tools of an agent; what they hold open is closed with the wiring.
func (w *wiring) tools(c *config.Agent, p *pin) (*tool.Set, error) {
	var all []tool.Tool
	for i := range c.LLM.Tools {
		some, err := w.toolsOf(&c.LLM.Tools[i], c.LLM.Record != nil, p)
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

// toolsOf makes the tools of one item of the list; those that are never called need no
// server.
func (w *wiring) toolsOf(s *config.ToolSpec, uncalled bool, p *pin) ([]tool.Tool, error) {
	switch {
	case s.Files != nil:
		files, err := builtin.OpenFiles(s.Files.Root)
		if err != nil {
			return nil, err
		}
		w.later(files.Close)
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
		if uncalled {
			return w.described(s.MCP, p)
		}
		return w.served(s.MCP, p)
	case s.Spawn != nil:
		return builtin.Spawn(s.Spawn.Agents...)
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
