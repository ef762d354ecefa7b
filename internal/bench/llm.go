package bench

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/agent/llm"
	"github.com/stint-dev/stint/model/script"
	"github.com/stint-dev/stint/tool"
)

// agent is what runs the loops of the workload: code that does its steps, or a language
// model that plays a script of the same size.
func (r *runner) agent() (stint.Agent, error) {
	if !r.w.LLM {
		return stint.AgentFunc(r.loop), nil
	}
	inner, err := r.w.llm()
	if err != nil {
		return nil, err
	}
	return stint.AgentFunc(func(ctx context.Context, l stint.Loop) (stint.Next, error) {
		r.m.marks(l.Session().ID) // so that its steps are counted
		return inner.Loop(ctx, l)
	}), nil
}

// llm is an agent whose model answers with about 1 KiB and asks for two tools, which give
// 256 bytes each, in every loop but the last.
func (s *play) llm() (*llm.Agent, error) {
	type call struct {
		Name  string          `json:"name"`
		Input json.RawMessage `json:"input"`
	}
	type answer struct {
		Text  string `json:"text"`
		Tools []call `json:"tools,omitempty"`
	}
	var file struct {
		Steps []answer `json:"steps"`
	}
	for i := range s.Loops {
		a := answer{Text: string(text(contentBytes))}
		if i < s.Loops-1 {
			for _, name := range []string{"search", "fetch"} {
				a.Tools = append(a.Tools, call{name, fmt.Appendf(nil, `{"n":%d}`, i)})
			}
		}
		file.Steps = append(file.Steps, a)
	}
	b, err := json.Marshal(file)
	if err != nil {
		return nil, err
	}
	m, err := script.Parse(b)
	if err != nil {
		return nil, err
	}
	var tools []tool.Tool
	for _, name := range []string{"search", "fetch"} {
		tools = append(tools, tool.Tool{Name: name, Effect: s.Effect, Parallel: true,
			Caller: tool.CallerFunc(func(context.Context, tool.Call) (tool.Output, error) {
				return tool.Output{Text: string(text(254))}, nil
			})})
	}
	set, err := tool.NewSet(tools...)
	if err != nil {
		return nil, err
	}
	return llm.New(llm.Spec{Model: m, System: "You are measured.", Prompt: "Go on.", Tools: set, TrustAll: true})
}
