package exec_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/stint-dev/stint/tool"
	"github.com/stint-dev/stint/tool/exec"
)

// A program as a tool. What the model gives is one element of the command, whatever is in it.
func Example() {
	greet, err := exec.New(exec.Spec{
		Name: "greet", Description: "Greet somebody.",
		Schema:  json.RawMessage(`{"type":"object","properties":{"who":{"type":"string"}},"required":["who"]}`),
		Command: []string{"printf", "%s\\n", "hello {who}"},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	out, err := greet.Caller.Call(context.Background(), tool.Call{Args: json.RawMessage(`{"who":"$(id) && rm"}`)})
	fmt.Print(out.Text, err)
	// Output:
	// hello $(id) && rm
	// <nil>
}
