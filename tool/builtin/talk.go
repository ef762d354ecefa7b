package builtin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/tool"
)

// MaxSleep is the longest pause that the sleep tool makes.
const MaxSleep = 366 * 24 * time.Hour

// Sleep returns the tool sleep: its output waits for a time, and nothing is held meanwhile.
func Sleep() tool.Tool {
	return tool.Tool{
		Name: "sleep", Effect: stint.Read, Source: "builtin",
		Description: "Pause until some seconds have passed, or until a time. Nothing runs meanwhile.",
		Schema: json.RawMessage(`{"type":"object","properties":{"seconds":{"type":"number","minimum":0},` +
			`"until":{"type":"string","description":"a time like 2006-01-02T15:04:05Z"},"why":{"type":"string"}},"additionalProperties":false}`),
		Caller: tool.CallerFunc(func(_ context.Context, c tool.Call) (tool.Output, error) {
			args, err := tool.ReadArgs(c.Args)
			if err != nil {
				return tool.Output{}, stint.Definite(err)
			}
			return sleep(args, time.Now())
		}),
	}
}

func sleep(args tool.Args, now time.Time) (tool.Output, error) {
	if args.Has("seconds") == args.Has("until") {
		return tool.Errorf("sleep: give either seconds or until"), nil
	}
	until := now
	if args.Has("until") {
		var err error
		if until, err = time.Parse(time.RFC3339, args.Text("until")); err != nil {
			return tool.Errorf("sleep: %q is not a time; write it like %s", args.Text("until"), now.UTC().Format(time.RFC3339)), nil
		}
	} else {
		seconds, err := json.Number(args.Text("seconds")).Float64()
		if err != nil || seconds > MaxSleep.Seconds() {
			seconds = math.Inf(1)
		}
		if !math.IsInf(seconds, 1) {
			until = now.Add(time.Duration(seconds * float64(time.Second)))
		} else {
			until = now.Add(MaxSleep + 1)
		}
	}
	if until.Sub(now) > MaxSleep {
		return tool.Errorf("sleep: that is longer than %d days", int(MaxSleep.Hours()/24)), nil
	}
	until = until.UTC().Truncate(time.Microsecond)
	text := "It is " + until.Format(time.RFC3339) + " now, or later."
	if !until.After(now) {
		return tool.Output{Text: text}, nil
	}
	what := "the model pauses"
	if why := args.Text("why"); why != "" {
		what = oneLine(why)
	}
	return tool.Output{Text: text, Wait: &stint.Wait{For: stint.ForTime, Until: until, What: what}}, nil
}

// Ask returns the tool ask: a question to a person, before whose step the agent asks. Its
// caller is a [tool.Asker]; called all the same, it fails: nobody was asked.
func Ask() tool.Tool {
	return tool.Tool{
		Name: "ask", Effect: stint.Read, Source: "builtin", Approve: tool.Never,
		Description: "Ask a person, and wait for the answer. Say all that they need to know in the question.",
		Schema: json.RawMessage(`{"type":"object","properties":{"question":{"type":"string","minLength":1,"maxLength":4000},` +
			`"schema":{"type":"object","description":"JSON Schema of the answer; a text if left out"}},"required":["question"],"additionalProperties":false}`),
		Caller: asker{},
	}
}

type asker struct{}

var _ tool.Asker = asker{}

// Call says that nobody was asked.
func (asker) Call(context.Context, tool.Call) (tool.Output, error) {
	return tool.Output{}, stint.Definite(&stint.Error{Code: stint.Invalid, Op: "ask", Err: errors.New("nobody was asked"),
		Hint: "an agent that has this tool asks the person before the step begins"})
}

// Question reads the arguments.
func (asker) Question(raw json.RawMessage) (tool.Question, error) {
	args, err := tool.ReadArgs(raw)
	if err != nil {
		return tool.Question{}, err
	}
	q := tool.Question{Text: args.Text("question"), Schema: json.RawMessage(`{"type":"string"}`)}
	if args.Has("schema") {
		if _, err := tool.NewSchema(args["schema"]); err != nil {
			return tool.Question{}, fmt.Errorf("ask: %w", err)
		}
		q.Schema = args["schema"]
	}
	return q, nil
}

// Answer is the function of that name.
func (asker) Answer(q tool.Question, answer json.RawMessage) (tool.Output, error) {
	return Answer(q, answer)
}

// oneLine is a text for a list.
func oneLine(s string) string {
	return strings.Join(strings.Fields(tool.Excerpt(s, 512, "")), " ")
}

// Answer makes the result of an ask call of what a person answered: a JSON value that the
// question's schema takes. [stint.Invalid] for any other, with a text for that person.
func Answer(q tool.Question, answer json.RawMessage) (tool.Output, error) {
	schema, err := tool.NewSchema(q.Schema)
	if err != nil {
		return tool.Output{}, err
	}
	if err := schema.Check(answer); err != nil {
		return tool.Output{}, &stint.Error{Code: stint.Invalid, Op: "answer", Err: err, Hint: "answer in the form that was asked for"}
	}
	data, replaced := tool.CleanJSON(answer)
	out := tool.Output{Text: tool.Noted(string(data), replaced), Data: data}
	var s string
	if json.Unmarshal(data, &s) == nil {
		out.Text = tool.Noted(s, replaced)
	}
	return out, nil
}

// Finish returns the tool finish: it ends the session with a result that schema takes. A
// schema of an object describes the arguments; any other is that of their member result.
// [stint.Invalid] for what is no schema.
func Finish(schema json.RawMessage) (tool.Tool, error) {
	if _, err := tool.NewSchema(schema); err != nil {
		return tool.Tool{}, err
	}
	var top struct {
		Type any `json:"type"`
	}
	whole := json.Unmarshal(schema, &top) == nil && top.Type == "object"
	args := schema
	if !whole {
		if len(schema) == 0 {
			schema = json.RawMessage("{}")
		}
		args = fmt.Appendf(nil, `{"type":"object","properties":{"result":%s},"required":["result"],"additionalProperties":false}`, schema)
	}
	t := tool.Tool{
		Name: "finish", Effect: stint.Read, Source: "builtin", Approve: tool.Never, Schema: args,
		Description: "End with a result. Call it once all is done; nothing comes after it.",
		Caller: tool.CallerFunc(func(_ context.Context, c tool.Call) (tool.Output, error) {
			result := c.Args
			if !whole {
				members, err := tool.ReadArgs(c.Args)
				if err != nil {
					return tool.Output{}, stint.Definite(err)
				}
				result = members["result"]
			}
			return tool.Output{Text: "done", Result: result}, nil
		}),
	}
	// The schema may point into itself; then it works as a whole only.
	if _, err := tool.NewSet(t); err != nil {
		return tool.Tool{}, err
	}
	return t, nil
}
