package hook

import (
	"errors"
	"fmt"

	"github.com/expr-lang/expr/types"

	"github.com/stint-dev/stint/internal/expression"
)

// language is what the expressions of a hook know.
func language() *expression.Language {
	text := types.TypeOf(map[string]string{})
	return &expression.Language{
		Place: "a hook",
		Names: types.Map{"body": types.Any, "headers": text, "query": text, "event": types.String, "raw": types.String},
		Known: []string{"body", "headers", "query", "event", "raw"},
		JSON:  "body",

		Example: "body.action",
		Truth:   `body.action == "opened"`,
		Long:    "let the agent look at the body itself",
		Unknown: "what was sent is in body",
		Pattern: "write it in quotes: what a delivery says is no pattern",
		Clock:   "order takes a time as it is written",
	}
}

// compileExpression compiles an expression. A fault has its place in src, and no field.
func compileExpression(src string, truth bool) (expression.Program, *Fault) {
	return language().Compile(src, truth)
}

// run gives the value of an expression. What went wrong is a refusal that says in which
// field and where, and no value.
func run(m *expression.Meter, field string, p *expression.Program, env map[string]any) (any, error) {
	out, err := m.Run(p, env)
	if err == nil {
		return out, nil
	}
	var u *expression.Unfit
	errors.As(err, &u)
	if u.Over {
		return nil, tooMuch(field)
	}
	place := ""
	if u.Line > 0 {
		place = fmt.Sprintf(", line %d, column %d", u.Line, u.Column)
	}
	return nil, refuse(unprocessable, "a member that may be missing is written body.x?.y ?? \"\"; when: can leave out other deliveries",
		"%s%s does not fit this delivery", field, place)
}

func tooMuch(field string) error {
	return refuse(unprocessable, "let the hook look at less, or the agent look itself", "%s looks at more of the body than it may", field)
}

// written is the text of a value.
func written(m *expression.Meter, field string, v any) (string, error) {
	s, err := m.Text(v)
	var u *expression.Unfit
	switch {
	case err == nil:
		return s, nil
	case errors.As(err, &u) && u.Over:
		return "", tooMuch(field)
	}
	return "", refuse(unprocessable, "write a text or something that JSON has", "%s has a value that cannot be written", field)
}
