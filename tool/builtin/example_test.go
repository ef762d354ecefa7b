package builtin_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/stint-dev/stint/tool"
	"github.com/stint-dev/stint/tool/builtin"
)

// A question waits as a row of the store. What a person answers later is checked against
// the schema that the model gave with it.
func Example() {
	out, err := builtin.Ask().Caller.Call(context.Background(), tool.Call{
		Args: json.RawMessage(`{"question":"Delete 3 branches?","schema":{"type":"boolean"}}`)})
	fmt.Println(out.Wait.For, out.Wait.What, err)
	_, err = builtin.Answer(*out.Question, json.RawMessage(`"maybe"`))
	fmt.Println(err)
	answer, err := builtin.Answer(*out.Question, json.RawMessage(`true`))
	fmt.Println(answer.Text, err)
	// Output:
	// approval Delete 3 branches? <nil>
	// answer: $: got string, want boolean. The schema is {"type":"boolean"}
	// true <nil>
}
