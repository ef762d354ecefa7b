package view

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/past"
	"github.com/stint-dev/stint/internal/term"
	"github.com/stint-dev/stint/journal"
)

// maxOutcome bounds what is read of a model's or a tool's outcome that lies outside its
// entry, in bytes: a log of thousands of steps must not read all that they gave.
const maxOutcome = 1 << 20

// outcomeOf is the body of a model's or a tool's outcome, also where it lies outside the
// entry; nil where it is too long, or not there.
func (l *Log) outcomeOf(ctx context.Context, e *stint.Entry, kind stint.StepKind) ([]byte, error) {
	if e.Blob.IsZero() {
		return e.Body, nil
	}
	if kind != stint.Model && kind != stint.Tool || e.Blob.Size > maxOutcome {
		return nil, nil
	}
	body, _, err := l.bodies.maybe(ctx, e)
	return body, err
}

// gave is the outcome of a step in words; ok is false for a shape that is not known,
// whose bytes speak for themselves.
type gave struct {
	text  string
	bad   bool // the tool says that it failed
	spare bool // the size of the body says nothing to people
}

// told is what a step gave, where it is the answer of a model or the output of a tool.
func (l *Log) told(d *journal.StepDone, body []byte) (g gave, ok bool) {
	switch d.Kind {
	case stint.Model:
		return l.answer(body)
	case stint.Tool:
		return output(body)
	}
	return gave{}, false
}

// answer is what a model said, on one line.
func (l *Log) answer(body []byte) (gave, bool) {
	a, ok := past.ReadAnswer(body)
	if !ok {
		return gave{}, false
	}
	text := strings.TrimSpace(a.Text)
	if l.heard {
		text = ""
	}
	if len(a.Calls) > 0 {
		text = strings.TrimSpace(l.opening(text) + " → " + strings.Join(a.Calls, ", "))
	}
	if why := stopWord(a.Stop, a.Reason); why != "" {
		text = strings.TrimSpace("[" + why + "] " + text)
	}
	return gave{text: text, spare: true}, true
}

// opening is so much of a text that the names of calls have room behind it.
func (l *Log) opening(s string) string {
	n := 400
	if l.st.TTY {
		n = 48
	}
	return term.Cut(s, n)
}

// stopWord says why an answer ended, where it is not because it was whole.
func stopWord(stop, reason string) string {
	switch stop {
	case "", "end", "tools", "sequence":
		return ""
	case "length":
		return "cut by the output limit"
	case "window":
		return "the context window is full"
	case "refusal":
		return list("refused", reason)
	case "pause":
		return "paused, and goes on"
	}
	return list("ended: "+stop, reason)
}

// output reads what a tool gave, of the agent llm or of one with a command line of its
// own: an object of these members and no others, so that what another agent's step gives
// is not taken for one.
func output(body []byte) (gave, bool) {
	if !isObject(body) {
		return gave{}, false
	}
	var o struct {
		Text   *string         `json:"text"`
		Data   json.RawMessage `json:"data"`
		Error  bool            `json:"error"`
		Wait   json.RawMessage `json:"wait"`
		Result json.RawMessage `json:"result"`
	}
	if strict(body, &o) && o.Text != nil {
		text := *o.Text
		for _, more := range []json.RawMessage{o.Result, o.Data} {
			if strings.TrimSpace(text) == "" {
				text = string(more)
			}
		}
		return gave{text: text, bad: o.Error}, true
	}
	var c struct {
		Output *string `json:"output"`
		Cut    int64   `json:"cut_bytes"`
		Exit   *int    `json:"exit"`
		Status string  `json:"status"`
		Failed bool    `json:"failed"`
	}
	if !strict(body, &c) || c.Output == nil {
		return gave{}, false
	}
	exit := ""
	if c.Exit != nil && *c.Exit != 0 {
		exit = fmt.Sprintf("exit %d", *c.Exit)
	}
	return gave{text: list(exit, strings.TrimSpace(*c.Output)), bad: c.Failed || exit != ""}, true
}

// onlyText reads a result that is a text and nothing else.
func onlyText(body []byte) (string, bool) {
	var o struct {
		Text *string `json:"text"`
	}
	if !isObject(body) || !strict(body, &o) || o.Text == nil {
		return "", false
	}
	return *o.Text, true
}

// strict reads an object that has no other members.
func strict(body []byte, v any) bool {
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	return d.Decode(v) == nil
}

// asked is the input of a model's step: how much it was asked with.
func asked(args []byte) (string, bool) {
	var in map[string]json.RawMessage
	var n int
	if json.Unmarshal(args, &in) != nil || len(in) != 2 || in["sha256"] == nil || json.Unmarshal(in["messages"], &n) != nil {
		return "", false
	}
	return plural(n, "message"), true
}

func isObject(b []byte) bool {
	b = bytes.TrimSpace(b)
	return len(b) > 0 && b[0] == '{'
}

// outcome is what a step was given and what it gave, on one line, and the size of that
// where it says something; bad is as in [gave].
func (l *Log) outcome(ctx context.Context, e *stint.Entry, d *journal.StepDone) (what, size string, bad bool, err error) {
	body, err := l.outcomeOf(ctx, e, d.Kind)
	if err != nil {
		return "", "", false, err
	}
	if !e.Blob.IsZero() {
		size = bytesOf(e.Blob.Size)
	}
	args, known := asked(d.Args)
	if d.Kind != stint.Model || !known {
		args = l.brief(d.Args)
	}
	g, known := l.told(d, body)
	result := l.brief(quoted(g.text))
	switch {
	case known && g.spare && result == "":
		return args, "", g.bad, nil
	case known && g.spare:
		size = ""
	case !known:
		if result = l.brief(e.Body); args == "" && (result == "" || result == "null") {
			return "", size, false, nil
		}
	}
	return strings.TrimSpace(args + " → " + strings.TrimPrefix(orDash(result), "→ ")), size, g.bad, nil
}

// quoted is a text as a body that is not taken for JSON.
func quoted(s string) []byte {
	b, err := json.Marshal(s)
	if err != nil { // there is no such text
		return nil
	}
	return b
}
