package modeltest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stint-dev/stint/model"
)

// Transcript asks a fixed list of requests and returns what went over the wire, for
// golden files: each request's body, indented, and the answer as the journal keeps it.
func Transcript(tb testing.TB, open Open) string {
	tb.Helper()
	broken := `{"step": 1, "q": "unterm`
	odd := `{ "n":9007199254740993, "q":"<b> \u00e9 🙂" }`
	s := Serve(tb, Scenario{Steps: []Step{
		{Text: "I look.", Tools: []ToolCall{{ID: "t1", Name: "effect", ArgsRaw: &odd}, {ID: "t1", Name: "no.such", ArgsRaw: &broken}},
			Usage: Usage{Input: 20, Output: 9, CacheWrite: 12}},
		{Text: "Done.", Usage: Usage{Input: 4, Output: 2, CacheRead: 32}},
	}})
	m := open(tb, Config{URL: s.URL})
	zero := 0.0
	r := ask()
	r.MaxTokens, r.Temperature, r.Stop = 100, &zero, []string{"STOP"}
	r.Cache, r.Session = true, "s-1"
	r.Choice = model.Choice{Mode: model.Required, Single: true}
	r.Schema = &model.Schema{Name: "out", Schema: []byte(`{"type":"object"}`)}
	var b strings.Builder
	show := func(a *model.Answer) {
		a.Raw, a.RawSize = nil, 0
		j, err := json.MarshalIndent(a, "", "  ")
		if err != nil {
			tb.Fatal(err)
		}
		fmt.Fprintf(&b, "== answer\n%s\n", j)
	}
	request := func(i int) {
		var out bytes.Buffer
		if err := json.Indent(&out, s.Requests()[i].Body, "", "  "); err != nil {
			tb.Fatal(err)
		}
		fmt.Fprintf(&b, "== POST %s\n%s\n", s.Requests()[i].Path, out.Bytes())
	}
	a := call(tb, m, r)
	request(0)
	show(a)
	var results []model.Result
	for _, c := range a.Calls() {
		results = append(results, model.Result{Call: c.ID, Text: "result of " + c.Name, Error: c.Args.Check() != nil})
	}
	next := ask(a.Message, model.Results(results...))
	next.Messages[2].Parts = append(next.Messages[2].Parts, model.Part{Text: "and be quick"})
	next.Cache, next.Choice = true, model.Choice{Mode: model.Named, Tool: "echo"}
	a = call(tb, m, next)
	request(1)
	show(a)
	valid(tb, s)
	return b.String()
}

// Golden compares got with the file, or writes the file when update is set.
func Golden(tb testing.TB, file, got string, update bool) {
	tb.Helper()
	if update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			tb.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		tb.Fatal(err)
	}
	if got != string(want) {
		tb.Errorf("%s differs (-update writes it anew); got\n%s", file, got)
	}
}
