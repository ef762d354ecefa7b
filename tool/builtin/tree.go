package builtin

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/tool"
)

// Spawn returns the tools spawn, for children of these agents alone, and
// wait_for_children. Their outputs say what the agent is to begin and to wait for.
func Spawn(agents ...string) ([]tool.Tool, error) {
	names, err := json.Marshal(agents)
	if err != nil || len(agents) == 0 {
		return nil, stint.Invalid.Errorf("spawn", "it names no agents")
	}
	spawn := tool.Tool{
		Name: "spawn", Effect: stint.Idempotent, Source: "builtin",
		Description: "Begin another session, which works by itself at what you tell it. You are told when it has ended, and what came of it. Say all that it needs to know: it sees nothing of this conversation.",
		Schema: json.RawMessage(`{"type":"object","properties":{"agent":{"enum":` + string(names) + `},"input":{"type":"string","minLength":1},` +
			`"name":{"type":"string","pattern":"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"}},"required":["agent","input"],"additionalProperties":false}`),
		Caller: tool.CallerFunc(func(_ context.Context, c tool.Call) (tool.Output, error) { return spawned(c.Args, agents) }),
	}
	wait := tool.Tool{
		Name: "wait_for_children", Effect: stint.Read, Source: "builtin", Approve: tool.Never,
		Description: "Pause until a session that you began has ended: the one with this id, or any. Nothing runs meanwhile. If none is open, you go on at once.",
		Schema:      json.RawMessage(`{"type":"object","properties":{"session":{"type":"string"}},"additionalProperties":false}`),
		Caller: tool.CallerFunc(func(_ context.Context, c tool.Call) (tool.Output, error) {
			args, err := tool.ReadArgs(c.Args)
			if err != nil {
				return tool.Output{}, stint.Definite(err)
			}
			return tool.Output{Text: "You are told below of those that have ended.", Wait: &stint.Wait{For: stint.ForChild, What: oneLine(args.Text("session"))}}, nil
		}),
	}
	return []tool.Tool{spawn, wait}, nil
}

func spawned(raw json.RawMessage, agents []string) (tool.Output, error) {
	args, err := tool.ReadArgs(raw)
	if err != nil {
		return tool.Output{}, stint.Definite(err)
	}
	s := tool.Spawn{Agent: args.Text("agent"), Name: args.Text("name"), Input: args.Text("input")}
	if !slices.Contains(agents, s.Agent) {
		return tool.Errorf("spawn: there is no agent %q to begin; there are %s", s.Agent, strings.Join(agents, ", ")), nil
	}
	return tool.Output{Text: fmt.Sprintf("A session of %s begins.", s.Agent), Spawn: &s}, nil
}
