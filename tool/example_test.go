package tool_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/tool"
)

// A tool written in Go, and what a model gets that calls it with the wrong arguments.
func Example() {
	roll := tool.Tool{
		Name: "roll", Description: "Roll a die.", Effect: stint.Read,
		Schema: json.RawMessage(`{"type":"object","properties":{"sides":{"type":"integer","minimum":2}},"required":["sides"]}`),
		Caller: tool.CallerFunc(func(_ context.Context, c tool.Call) (tool.Output, error) {
			var args struct{ Sides int64 }
			if err := json.Unmarshal(c.Args, &args); err != nil {
				return tool.Output{}, stint.Definite(err)
			}
			return tool.Output{Text: fmt.Sprintf("%d of %d", args.Sides, args.Sides)}, nil
		}),
	}
	set, err := tool.NewSet(roll)
	if err != nil {
		fmt.Println(err)
		return
	}
	t, args, err := set.Check("roll", json.RawMessage(`{"sides":9007199254740993}`))
	fmt.Println(t.Name, string(args), err)
	_, _, err = set.Check("roll", json.RawMessage(`{"sides":1}`))
	fmt.Println(err)
	// Output:
	// roll {"sides":9007199254740993} <nil>
	// roll was not called. Its arguments: $.sides: 1 is not at least 2. The schema is {"type":"object","properties":{"sides":{"type":"integer","minimum":2}},"required":["sides"]}
}
