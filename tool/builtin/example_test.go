package builtin_test

import (
	"encoding/json"
	"fmt"

	"github.com/stint-dev/stint/tool"
	"github.com/stint-dev/stint/tool/builtin"
)

// An agent asks the question before the step begins. What a person answers later is
// checked against the schema that the model gave with it.
func Example() {
	ask, _ := builtin.Ask().Caller.(tool.Asker)
	q, err := ask.Question(json.RawMessage(`{"question":"Delete 3 branches?","schema":{"type":"boolean"}}`))
	fmt.Println(q.Text, err)
	_, err = builtin.Answer(q, json.RawMessage(`"maybe"`))
	fmt.Println(err)
	answer, err := builtin.Answer(q, json.RawMessage(`true`))
	fmt.Println(answer.Text, err)
	// Output:
	// Delete 3 branches? <nil>
	// answer: $: got string, want boolean. The schema is {"type":"boolean"}
	// true <nil>
}
