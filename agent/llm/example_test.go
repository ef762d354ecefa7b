package llm_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/agent/llm"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/model/script"
	"github.com/stint-dev/stint/store/mem"
	"github.com/stint-dev/stint/tool"
)

// A session asks a model, which here plays a script, and the model calls a tool.
func ExampleNew() {
	ctx := context.Background()
	weather := tool.Tool{Name: "weather", Effect: stint.Read, Parallel: true, Description: "The weather in a city.",
		Schema: json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`),
		Caller: tool.CallerFunc(func(context.Context, tool.Call) (tool.Output, error) { return tool.Output{Text: "sunny"}, nil })}
	tools, err := tool.NewSet(weather)
	if err != nil {
		panic(err)
	}
	m, err := script.Parse([]byte(`{"steps":[{"tools":[{"name":"weather","input":{"city":"Rome"}}]},{"text":"It is sunny in Rome."}]}`))
	if err != nil {
		panic(err)
	}
	loop, err := llm.New(llm.Spec{Model: m, Tools: tools, System: "Be brief."})
	if err != nil {
		panic(err)
	}
	agent := engine.Agent{Name: "clerk", Loop: loop}
	e, err := engine.New(ctx, mem.New(), engine.Options{Agents: []engine.Agent{agent}})
	if err != nil {
		panic(err)
	}
	s, err := e.RunNew(ctx, engine.Request{Agent: agent, Input: []byte("How is Rome?")}, func(engine.Created) {})
	fmt.Println(s.Status, s.Totals.Loops, "loops", err)
	// Output: completed 2 loops <nil>
}
