package main

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/config"
	"github.com/stint-dev/stint/internal/proc"
	"github.com/stint-dev/stint/model"
	"github.com/stint-dev/stint/tool"
	"github.com/stint-dev/stint/tool/mcp"
)

// again is how agents are made that only do again what is on record: no model is called,
// no server of tools is started, and a program is cut off from the network.
type again struct {
	network bool // programs keep the network, and agents behind a URL are asked
}

// offline reports whether programs are to be cut off.
func (a *again) offline() bool { return a != nil && !a.network }

// mayAsk refuses to ask an agent behind a URL.
func (a *again) mayAsk(url string) error {
	if !a.offline() {
		return nil
	}
	err := stint.Denied.Errorf("replay", "the agent's code is behind %s, and a replay asks nobody", url)
	err.Hint = "--allow-network lets it ask there; its steps are still answered from the journal, and what it does besides it does"
	return err
}

// unstartable makes a command one that cannot be started: what an agent with a command line
// of its own said is on record, and nothing of it is to run. Its name stays, since steps
// are named after it.
func (a *again) unstartable(command []string) []string {
	if a != nil {
		command[0] = os.DevNull + "/" + filepath.Base(command[0])
	}
	return command
}

// canRun refuses to run a program that cannot be cut off.
func (a *again) canRun(c *config.Agent) error {
	if !a.offline() || c.Kind != config.KindExec || c.Protocol == "none" {
		return nil
	}
	if err := proc.CanOffline(); err != nil {
		return &stint.Error{Code: stint.Denied, Op: "replay", Err: errors.Join(errors.New("the program's own network cannot be cut off here"), err),
			Hint: "--allow-network runs it with its network: its steps are answered from the journal, and what it does besides it does"}
	}
	return nil
}

// silent is the name of a model that says nothing.
type silent string

var _ model.Model = silent("")

func (s silent) Name() string { return string(s) }

// Call is not reached: a replay calls no step's function.
func (s silent) Call(context.Context, *model.Request, func(model.Delta)) (*model.Answer, error) {
	return nil, stint.Internal.Errorf("model "+string(s), "a replay asked a model")
}

// described makes the tools of servers as they are on record, and starts none of them.
func (w *wiring) described(m *config.MCPTools, p *pin) ([]tool.Tool, error) {
	specs, lock, err := accepted(m)
	if err != nil {
		return nil, err
	}
	return pinnedTools(m, p, specs, lock)
}

// pinnedTools are the tools of servers as the session began with them, else as the lock
// has them.
func pinnedTools(m *config.MCPTools, p *pin, specs []mcp.Spec, l *lock) ([]tool.Tool, error) {
	var all []tool.Tool
	for _, spec := range specs {
		known := l.known(p.Servers, m.File, spec.Name)
		if len(known) == 0 {
			e := stint.NotFound.Errorf("mcp server "+spec.Name, "what tools it has nobody has accepted yet, and no server is started here")
			e.Hint = "stint agent accept " + m.File + " " + spec.Name
			return nil, e
		}
		all = append(all, mcp.PinnedTools(spec, known[0])...)
		if key := m.File + "#" + spec.Name; p.Servers[key].Server == "" { // so that it stays what it is now
			p.Servers = maps.Clone(p.Servers)
			if p.Servers == nil {
				p.Servers = map[string]mcp.Pin{}
			}
			p.Servers[key] = known[0]
		}
	}
	return all, nil
}
