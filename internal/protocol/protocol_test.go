package protocol_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/protocol"
)

// fresh is a loop with a state and nothing else.
type fresh struct{ state json.RawMessage }

func (fresh) Session() stint.Session   { return stint.Session{} }
func (l fresh) State() json.RawMessage { return l.state }
func (fresh) Inbox() []stint.Message   { return nil }
func (fresh) Do(context.Context, stint.Step, func(context.Context, string) (stint.Result, error)) (stint.Result, error) {
	return stint.Result{}, nil
}

func (fresh) DoAll(context.Context, []stint.Step, func(context.Context, int, string) (stint.Result, error)) ([]stint.Result, error) {
	return nil, nil
}

// TestBook plays what an agent says, with ! for "told to proceed" and = for "answered by
// stint", and expects the first fault at the last of it.
func TestBook(t *testing.T) {
	const step, group = `{"type":"step","id":1,"name":"a"}`, `{"type":"steps","steps":[{"id":2,"name":"b"},{"id":3,"name":"c"}]}`
	result := func(id int) string { return fmt.Sprintf(`{"type":"result","id":%d,"result":1}`, id) }
	const patch, end = `{"type":"state","patch":{"a":2}}`, `{"type":"end","outcome":"complete"}`
	for name, c := range map[string]struct {
		said  []string
		want  string
		state string
	}{
		"nothing but an end":        {[]string{end}, "", ""},
		"a step, done":              {[]string{step, "!1", result(1), patch, end}, "", `{"a":2}`},
		"a step, answered":          {[]string{step, "=1", patch, end}, "", `{"a":2}`},
		"a group, in any order":     {[]string{group, "!2", "!3", result(3), result(2), end}, "", ""},
		"a group, one of it cached": {[]string{group, "=2", "!3", result(3), end}, "", ""},
		"a result unasked":          {[]string{result(1)}, "no step 1 was begun", ""},
		"a result too early":        {[]string{step, result(1)}, "was not told to proceed", ""},
		"a result twice":            {[]string{step, "!1", result(1), result(1)}, "has its answer already", ""},
		"a result of one answered":  {[]string{step, "=1", result(1)}, "has its answer already", ""},
		"an id again":               {[]string{step, "=1", step}, "used a second time", ""},
		"a group half done":         {[]string{group, "!2", result(2), step}, "another is open", ""},
		"a state in a step":         {[]string{step, patch}, "state was changed while a step is open", ""},
		"an end in a step":          {[]string{step, "!1", end}, "ended while a step is open", ""},
		"more after the end":        {[]string{end, patch}, "after the end", ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := protocol.NewBook(fresh{json.RawMessage(`{"a":1}`)})
			calls := map[string]*protocol.Call{}
			for i, said := range c.said {
				switch said[0] {
				case '!':
					b.Start(calls[said[1:]])
					continue
				case '=':
					b.Settle(calls[said[1:]])
					continue
				}
				m, err := protocol.Parse([]byte(said))
				if err != nil {
					t.Fatal(err)
				}
				for _, call := range m.Calls {
					calls[fmt.Sprint(call.ID)] = call
				}
				err = b.Take(m)
				if last := i == len(c.said)-1; err != nil && (!last || c.want == "") || err == nil && last && c.want != "" {
					t.Fatalf("%s gave %v", said, err)
				}
				if err != nil && !strings.Contains(err.Error(), c.want) {
					t.Errorf("the fault is %v, want %s", err, c.want)
				}
			}
			if got := string(b.Memory.Changed()); c.want == "" && got != c.state {
				t.Errorf("the state is %q, want %q", got, c.state)
			}
		})
	}
}

func TestEffect(t *testing.T) {
	byName := map[string]stint.Effect{"mail": stint.Read}
	for _, c := range []struct {
		name                     string
		claimed, otherwise, want stint.Effect
	}{
		{"mail", stint.Once, stint.Once, stint.Read}, {"x", stint.Idempotent, stint.Read, stint.Idempotent},
		{"x", "", stint.Read, stint.Read}, {"x", "", "", stint.Once},
	} {
		if got := protocol.Effect(byName, c.name, c.claimed, c.otherwise); got != c.want {
			t.Errorf("%+v gave %s", c, got)
		}
	}
}

// TestRecall is the line that answers from the journal.
func TestRecall(t *testing.T) {
	boom := errors.New("no <b>")
	for _, c := range []struct {
		err  error
		want string
	}{
		{nil, `{"type":"result","id":7,"result":{"n":1.50},"cached":true}`},
		{boom, `{"type":"result","id":7,"error":"no <b>","cached":true}`},
		{stint.Fail(stint.Definite(boom)), `{"type":"result","id":7,"error":"no <b>","definite":true,"cached":true}`},
		{fmt.Errorf("x: %w", stint.Definite(boom)), `{"type":"result","id":7,"error":"x: no <b>","definite":true,"cached":true}`},
	} {
		line, err := protocol.Recall(7, json.RawMessage(`{ "n": 1.50 }`), c.err)
		if err != nil || string(line) != c.want+"\n" {
			t.Errorf("%v gave %s, %v; want %s", c.err, line, err, c.want)
		}
	}
}
