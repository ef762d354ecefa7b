package model_test

import (
	"context"
	"fmt"
	"log"

	"github.com/stint-dev/stint/model"
	"github.com/stint-dev/stint/model/script"
)

// One turn: ask, do what the answer calls for, hand the results back, until the model has
// no more calls. All users of a provider share its Pace.
func ExamplePaced() {
	demo, err := script.Parse([]byte(`{"steps": [
		{"text": "I look.", "tools": [{"name": "list", "input": {"path": "."}}, {"name": "list", "args": "{\"path\""}]},
		{"text": "There is one file."}
	]}`))
	if err != nil {
		log.Fatal(err)
	}
	m := &model.Paced{Model: demo, Pace: model.NewPace(model.PaceConfig{Parallel: 4})}
	r := &model.Request{
		Messages: []model.Message{model.Text(model.User, "What is here?")},
		Tools:    []model.Tool{{Name: "list", Schema: []byte(`{"type":"object"}`)}},
	}
	for {
		a, err := m.Call(context.Background(), r, nil)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(a.Message.Text())
		if a.Stop != model.ToolUse {
			return
		}
		var results []model.Result
		for _, c := range a.Calls() {
			res := model.Result{Call: c.ID, Text: "a.txt"}
			if err := c.Args.Check(); err != nil {
				res = model.Result{Call: c.ID, Text: err.Error(), Error: true}
			}
			fmt.Println(c.Name, c.Args, "->", res.Text)
			results = append(results, res)
		}
		r.Messages = append(r.Messages, a.Message, model.Results(results...))
	}
	// Output:
	// I look.
	// list {"path": "."} -> a.txt
	// list {"path" -> the arguments are not JSON: unexpected end of JSON input
	// There is one file.
}
