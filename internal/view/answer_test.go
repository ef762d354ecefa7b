package view_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/term"
	"github.com/stint-dev/stint/internal/view"
	"github.com/stint-dev/stint/journal"
)

// said is a session whose models and tools gave what they give, and what they may not.
func said(w *world) *script {
	k := w.session("reader-1129").claim("worker/1")
	k.loop("first")
	n := 0
	step := func(kind stint.StepKind, name, args, result string) {
		n++
		d := journal.StepDone{StepRequested: journal.StepRequested{Name: name, Kind: kind, Effect: stint.Read}, MS: 1200}
		if args != "" {
			d.Args = []byte(args)
		}
		if kind == stint.Model {
			d.Usage = stint.Usage{Input: 3100, Output: 120}
		}
		k.step(n, d, result)
		pass(time.Second)
	}
	asked := `{"messages":3,"sha256":"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"}`
	part := func(s string) string { return `{"message":{"role":"assistant","parts":[` + s + `]},` }
	call := func(name string) string { return `{"call":{"id":"c1","name":"` + name + `","args":"{}"}}` }
	step(stint.Model, "claude-sonnet-5", asked, part(`{"text":"I look.\nThen I write."},`+call("read_file")+","+call("note"))+`"stop":"tools","usage":{}}`)
	step(stint.Tool, "read_file", `{"path":"a.txt"}`, `{"text":"line one\nline two\u001b[2J"}`)
	step(stint.Tool, "note", `{"text":"x"}`, `{"text":"no space left","error":true}`)
	step(stint.Tool, "search", `{}`, `{"text":"","data":{"hits":2}}`)
	step(stint.Tool, "nothing", `{}`, `{"text":""}`)
	step(stint.Model, "claude-sonnet-5", strings.Replace(asked, "3", "1", 1), part(call("read_file"))+`"stop":"tools"}`)
	step(stint.Model, "claude-sonnet-5", asked, part(`{"text":"It was lo"}`)+`"stop":"length","reason":"max_tokens"}`)
	step(stint.Model, "claude-sonnet-5", asked, part(``)+`"stop":"refusal","reason":"policy"}`)
	step(stint.Model, "claude-sonnet-5", asked, part(`{"text":"It lies outside the entry."}`)+`"stop":"end","raw":"`+strings.Repeat("QUFB", 8000)+`"}`)
	step(stint.Model, "claude-sonnet-5", asked, part(`{"text":"`+strings.Repeat("A long answer. ", 10)+`"},`+call("read_file"))+`"stop":"tools"}`)
	step(stint.Tool, "read_file", `{"path":"long.txt"}`, `{"text":"`+strings.Repeat("long ", 4000)+`"}`)
	step(stint.Model, "codex", `{"turn":1}`, `{"text":"Done with it.","calls":[{"name":"command_execution","effect":"once"}]}`)
	step(stint.Model, "codex", "", `{"text":"Done.","last":true}`)
	step(stint.Tool, "command_execution", `{"command":"make"}`, `{"output":"make: *** no rule\n","exit":2}`)
	step(stint.Tool, "command_execution", `{"command":"ls"}`, `{"output":"a\nb\n","exit":0}`)
	// What is of another shape stays as it is.
	step(stint.Model, "other", `{"messages":3}`, `{"message":"hello"}`)
	step(stint.Model, "other", `{"messages":"3","sha256":"x"}`, `{"text":"hello"}`)
	step(stint.Model, "other", "", `"hello"`)
	step(stint.Tool, "other", `{"messages":3,"sha256":"x"}`, `{"text":"hello","id":4}`)
	step(stint.Tool, "other", "", `{"text":7}`)
	step(stint.Tool, "other", "", `["text"]`)
	step(stint.Tool, "other", "", `not JSON`)
	step(stint.Tool, "other", "", `{"output":"x","code":1}`)
	step("step", "other", "", `{"text":"a step is no tool"}`)
	return k
}

func TestLogOfModels(t *testing.T) {
	inWorld(t, func(w *world) {
		t := w.t
		k := said(w)
		var out strings.Builder
		for _, c := range []struct {
			title string
			st    term.Style
			opt   view.LogOptions
		}{
			{"a terminal", terminal(), view.LogOptions{Query: every()}},
			{"a narrow one", term.Style{TTY: true, Width: 40}, view.LogOptions{Query: every()}},
			{"no terminal", term.Style{}, view.LogOptions{Query: every()}},
			{"colours", term.Style{TTY: true, Width: 100, Color: true}, view.LogOptions{Query: view.LogQuery{Line: -1, From: 1, Step: 3}}},
		} {
			out.WriteString("# " + c.title + "\n" + strings.ReplaceAll(logOf(t, w, k.row(), c.st, c.opt), "\x1b", "␛") + "\n")
		}
		out.WriteString("# what was heard, but for the third\n")
		log := view.NewLog(w.store, k.row(), term.Style{TTY: true, Width: 140}, now(), view.LogOptions{Query: view.LogQuery{Line: -1, Kinds: []view.Class{view.ClassModel}}})
		n := 0
		heard := func(e *stint.Entry) bool { return e.Pos.Step != 7 }
		show := func(_ *stint.Entry, lines string) error {
			n++
			out.WriteString(lines)
			return nil
		}
		if err := log.More(t.Context(), heard, show); err != nil {
			t.Fatal(err)
		}
		k.step(99, journal.StepDone{StepRequested: journal.StepRequested{Name: "claude", Kind: stint.Model, Effect: stint.Read}}, `{"text":"It goes on.","last":true}`)
		if err := log.More(t.Context(), nil, show); err != nil || n != int(k.s.Head) {
			t.Fatalf("%d of %d entries were shown: %v", n, k.s.Head, err)
		}
		golden(t, "models.txt", []byte(out.String()))
	})
}

func TestNowLine(t *testing.T) {
	row := stint.Row{Session: stint.Session{At: stint.Place{Loop: 3}, Totals: stint.Totals{Usage: stint.Usage{Input: 40000, Output: 1200, Cost: 210_000_000}}}}
	for _, c := range []struct {
		row    stint.Row
		doing  string
		driven time.Duration
		width  int
		want   string
	}{
		{row, "model claude-sonnet-5", 12*time.Second + 900*time.Millisecond, 0, "loop 3 · model claude-sonnet-5 · 12s · 41.2k tokens · $0.21"},
		{row, "a\x1b[2Jb\n", 64 * time.Second, 100, `loop 3 · a\x1b[2Jb\n · 1m04s · 41.2k tokens · $0.21`},
		{row, "model claude-sonnet-5", 12 * time.Second, 46, "loop 3 · model c… · 12s · 41.2k tokens · $0.21"},
		{row, "model claude-sonnet-5", 12 * time.Second, 20, "loop 3 · … · 12s · …"},
		{stint.Row{}, "", -time.Second, 1, "0s"},
		{stint.Row{}, "", 2*time.Hour + 3*time.Minute, 0, "2h03m"},
	} {
		if got := view.NowLine(&c.row, c.doing, c.driven, c.width); got != c.want {
			t.Errorf("%d columns: got %q, want %q", c.width, got, c.want)
		}
	}
}

// single is a journal of one entry.
type single struct {
	view.Source

	e stint.Entry
}

func (s single) Entries(context.Context, stint.Range) ([]stint.Entry, error) {
	return []stint.Entry{s.e}, nil
}

// Whatever a model or a tool gave is one line of text that drives no terminal, and what
// is no answer is shown as it is.
func FuzzOutcome(f *testing.F) {
	for _, body := range []string{
		`{"message":{"role":"assistant","parts":[{"text":"I look."},{"call":{"name":"read_file"}}]},"stop":"tools"}`,
		`{"message":{"parts":[]},"stop":"\u001b[2J","reason":"a\nb"}`, `{"text":"x","calls":[{"name":"\u009b"}]}`, `{"text":"\ud800","error":true}`,
		`{"output":"x","exit":-1}`, `{"text":""}`, `{"text":null}`, `{`, `{}{}`, "null", "", "\xff{",
	} {
		for _, args := range []string{``, `{"messages":3,"sha256":"x"}`, `{"messages":1e99,"sha256":1}`, `{"a":"\u001b"}`} {
			f.Add([]byte(body), []byte(args), true)
			f.Add([]byte(body), []byte(args), false)
		}
	}
	f.Fuzz(func(t *testing.T, body, args []byte, tool bool) {
		d := journal.StepDone{StepRequested: journal.StepRequested{Name: "demo", Kind: stint.Model, Effect: stint.Read}}
		if tool {
			d.Kind = stint.Tool
		}
		if json.Valid(args) {
			d.Args = args
		}
		data, err := stint.Marshal(d)
		if err != nil {
			return // no journal has it
		}
		e := stint.Entry{Seq: 1, Kind: stint.StepCompleted, Pos: stint.Position{Loop: 1, Step: 1}, Data: data, Body: body}
		for _, heard := range []bool{false, true} {
			log := view.NewLog(single{e: e}, stint.Row{}, term.Style{}, time.Now(), view.LogOptions{Query: every()})
			err := log.More(t.Context(), func(*stint.Entry) bool { return heard }, func(_ *stint.Entry, lines string) error {
				if strings.Count(lines, "\n") != 1 || !strings.HasSuffix(lines, "\n") || term.Line(strings.TrimSuffix(lines, "\n")) != strings.TrimSuffix(lines, "\n") {
					t.Errorf("of %q and %q the log has %q", args, body, lines)
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	})
}
