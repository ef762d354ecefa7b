package llm_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/agent/llm"
	"github.com/stint-dev/stint/model"
	"github.com/stint-dev/stint/tool"
)

// lines are n numbered lines with characters of several bytes.
func lines(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "line %d ☃\n", i)
	}
	return b.String()
}

// A result of 3 MB reaches the model as an excerpt, and whole through read_result.
func TestReadResult(t *testing.T) {
	text := lines(200_000)
	big := does("big", stint.Once, func(tool.Call) (string, error) { return text, nil })
	const limit = 4096
	read := func(args string) string { return fmt.Sprintf(`{"tools":[{"name":"read_result","input":%s}]}`, args) }
	m := plays(t, `{"steps":[`+strings.Join([]string{read(`{"call":"call_1"}`), `{"tools":[{"name":"echo","input":{}},{"name":"big","input":{}}]}`,
		read(`{"call":"call_3","offset":12}`), read(`{"call":"call_3","offset":8,"length":1}`), read(`{"call":"call_3","offset":99999999}`), read(`{"call":"call_2"}`),
		read(`{"call":"call_3","offset":1e300}`), read(`{"call":"call_3","length":8}`), read(`{"call":"call_3","offset":-1}`)}, ",")+`]}`)
	w := newWorld(t, llm.Spec{Model: m, Tools: toolset(t, big, echo("echo")), Context: llm.Context{Excerpt: limit}}, "Read.")
	w.run(whole)
	var results []string
	for _, msg := range messages(t, w.state) {
		for _, p := range msg.Parts {
			if p.Result == nil {
				continue
			}
			if results = append(results, p.Result.Text); len(p.Result.Text) > limit || !utf8.ValidString(p.Result.Text) {
				t.Errorf("%d bytes: %.200s", len(p.Result.Text), p.Result.Text)
			}
		}
	}
	if !strings.Contains(results[0], `no tool "read_result"`) {
		t.Errorf("before any excerpt: %s", results[0])
	}
	for i, want := range []string{2: "line 0 ☃\n", 3: "[stint: bytes 12 to ", 4: "[stint: bytes 10 to ", 5: "nothing is at 99999999", 6: `no result of call "call_2"`, 7: "nothing is at", 8: "[stint: bytes 0 to 7 of ", 9: "$.offset: "} {
		if !strings.Contains(results[i], want) {
			t.Errorf("results[%d] is %.300s", i, results[i])
		}
	}
	// Piece by piece the whole comes.
	var got strings.Builder
	for offset := 0; offset < len(text); {
		var o tool.Output
		m := plays(t, `{"steps":[`+read(fmt.Sprintf(`{"call":"call_3","offset":%d}`, offset))+`],"after":"repeat"}`)
		again := *w
		again.agent, again.steps = agentOf(t, llm.Spec{Model: m, Tools: toolset(t, big), Context: llm.Context{Excerpt: 1 << 20}}), nil
		again.rec, again.end = map[[2]int]*record{}, nil
		again.inbox = []stint.Message{{Kind: stint.Prompt, Body: []byte("Go on.")}}
		again.run(w.ses.At.Loop)
		at := stint.Position{Loop: w.ses.At.Loop, Step: 2, Sub: 1}
		if err := json.Unmarshal(again.past[at], &o); err != nil {
			t.Fatal(err)
		}
		head, body, _ := strings.Cut(o.Text, "\n")
		var from, to, of int
		if _, err := fmt.Sscanf(head, "[stint: bytes %d to %d of %d", &from, &to, &of); err != nil || from != offset || of != len(text) {
			t.Fatalf("%s, %v", head, err)
		}
		got.WriteString(body)
		offset = to
	}
	if got.String() != text {
		t.Errorf("%d bytes came of %d", got.Len(), len(text))
	}
}

// counter is a model that calls a tool with n one higher than the highest it sees, up to
// most, and that summarises when it is told to.
type counter struct {
	tool string
	most int
	per  int64 // bytes that it counts as a token
}

func (counter) Name() string { return "counter" }

func (c counter) Call(_ context.Context, r *model.Request, _ func(model.Delta)) (*model.Answer, error) {
	if err := r.Check(); err != nil {
		return nil, err
	}
	seen, size := 0, int64(0)
	for _, m := range r.Messages {
		for _, p := range m.Parts {
			var n int
			switch {
			case p.Call != nil:
				_, _ = fmt.Sscanf(string(p.Call.Args), `{"n":%d}`, &n)
			case p.Result != nil:
				size += int64(len(p.Result.Text))
			default:
				_, rest, _ := strings.Cut(p.Text, "Done up to ")
				_, _ = fmt.Sscanf(rest, "%d", &n)
			}
			seen, size = max(seen, n), size+int64(len(p.Text))
		}
	}
	a := &model.Answer{Message: model.Text(model.Assistant, "All is done."), Stop: model.EndTurn, Usage: model.Usage{Input: size / c.per, Output: 10}}
	last := r.Messages[len(r.Messages)-1]
	switch {
	case r.Choice.Mode == model.Never:
		a.Message = model.Text(model.Assistant, fmt.Sprintf("Done up to %d.", seen))
	case strings.HasSuffix(last.Text(), "Write the summary and nothing else."):
		return nil, &model.Error{Kind: model.Invalid, Message: "a summary that may call tools"}
	case seen < c.most:
		a.Stop = model.ToolUse
		a.Message.Parts = []model.Part{{Text: fmt.Sprintf("Now %d.", seen+1)}, {Call: &model.Call{Name: c.tool, Args: model.Args(fmt.Sprintf(`{"n":%d}`, seen+1))}}}
	}
	r.Settle(&a.Message)
	return a, nil
}

// compacts is a session of forty loops with 20 kB in each, of a model that counts so many
// bytes as a token.
func compacts(t *testing.T, c llm.Context, per int64) (*world, *heard) {
	t.Helper()
	page := does("page", stint.Read, func(c tool.Call) (string, error) { return string(c.Args) + strings.Repeat(" word", 4000), nil })
	m := &heard{Model: counter{"page", 40, per}, t: t}
	return newWorld(t, llm.Spec{Model: m, Tools: toolset(t, page), Context: c}, "Read forty pages."), m
}

func TestCompaction(t *testing.T) {
	w, m := compacts(t, llm.Context{Window: 40_000}, 4)
	w.run(whole)
	var sizes []int
	summaries := 0
	for _, r := range m.reqs {
		b, err := json.Marshal(r.Messages)
		if err != nil {
			t.Fatal(err)
		}
		sizes = append(sizes, len(b))
	}
	for _, s := range w.steps {
		if len(s.Input) > 120 {
			t.Errorf("the step's input is %s", s.Input)
		}
		if s.Name == "compact" {
			summaries++
		}
	}
	if slices.Max(sizes) > 40_000*4 || summaries < 4 || w.end == nil || len(w.past) != 81+summaries {
		t.Errorf("%d summaries, %d steps, sizes %v", summaries, len(w.past), sizes)
	}
	if first := messages(t, w.state)[0]; first.Parts[0].Text != "Read forty pages." {
		t.Errorf("the task is now %q", first.Parts[0].Text)
	}
}

// A service that reports next to no tokens does not make requests grow for ever.
func TestCountedTooLow(t *testing.T) {
	w, m := compacts(t, llm.Context{Window: 40_000}, 1_000_000)
	w.run(whole)
	most := 0
	for _, r := range m.reqs {
		b, err := json.Marshal(r.Messages)
		if err != nil {
			t.Fatal(err)
		}
		most = max(most, len(b))
	}
	if most > 40_000*8 || w.end == nil {
		t.Errorf("the longest request has %d bytes, the end is %v", most, w.end)
	}
}

func TestCompactionTranscript(t *testing.T) {
	note := does("note", stint.Read, func(c tool.Call) (string, error) { return string(c.Args) + strings.Repeat(" word", 50), nil })
	w := newWorld(t, llm.Spec{Model: counter{"note", 6, 1}, Tools: toolset(t, note), Context: llm.Context{Window: 1500}}, "Take notes.")
	w.run(whole)
	var b strings.Builder
	for _, s := range w.steps {
		fmt.Fprintf(&b, "%-8s %.14s\n", s.Name, s.Input)
	}
	golden(t, "compaction", b.String()+w.shows())
}

// Where there is no boundary, or the model cannot give a summary, the transcript still
// does not grow for ever.
func TestCompactionWithout(t *testing.T) {
	t.Run("a boundary", func(t *testing.T) {
		huge := does("huge", stint.Read, func(tool.Call) (string, error) { return lines(4000), nil })
		var calls []string
		for i := range 20 {
			calls = append(calls, fmt.Sprintf(`{"name":"huge","input":{"n":%d}}`, i))
		}
		m := plays(t, `{"steps":[{"tools":[`+strings.Join(calls, ",")+`]}]}`)
		w := newWorld(t, llm.Spec{Model: m, Tools: toolset(t, huge), Context: llm.Context{Window: 20_000}}, "Go.")
		w.run(whole)
		if n := len(w.state); n > 20_000*3 || w.end == nil || w.end.Outcome != stint.Completed {
			t.Errorf("%d bytes, %+v", n, w.end)
		}
		for _, s := range w.steps {
			if s.Name == "compact" {
				t.Error("the task alone was summarised")
			}
		}
		if got := messages(t, w.state); len(got) != 4 || !strings.Contains(got[2].Parts[19].Result.Text, "to read it, call read_result") {
			t.Errorf("%d messages: %.300s", len(got), got[2].Parts[19].Result.Text)
		}
	})
	t.Run("a summary", func(t *testing.T) {
		w, m := compacts(t, llm.Context{Window: 40_000}, 4)
		m.Model = silent{m.Model}
		w.run(10)
		got := messages(t, w.state)
		if text := got[0].Text(); !strings.Contains(text, "are left out. There is no summary of them: no-summary: the provider's policy refused") || len(w.state) > 160_000 {
			t.Errorf("%d bytes, first %q", len(w.state), text)
		}
	})
	t.Run("room", func(t *testing.T) {
		m := plays(t, `{"after":"repeat","steps":[{"error":{"kind":"too_long","message":"prompt is too long"}}]}`)
		w := newWorld(t, llm.Spec{Model: m}, "Go.")
		w.run(whole)
		if w.end == nil || w.end.Outcome != stint.Failed || !strings.Contains(w.end.Reason, "prompt is too long") || len(m.reqs) != 2 {
			t.Errorf("%d requests, %+v", len(m.reqs), w.end)
		}
	})
}

// silent refuses to summarise.
type silent struct{ model.Model }

func (s silent) Call(ctx context.Context, r *model.Request, hear func(model.Delta)) (*model.Answer, error) {
	if r.Choice.Mode == model.Never {
		return nil, &model.Error{Kind: model.Refused, Model: "no-summary"}
	}
	return s.Model.Call(ctx, r, hear)
}

// A request that the model finds too long is asked again after compaction, once.
func TestTooLong(t *testing.T) {
	for name, full := range map[string]func() (*model.Answer, error){
		"error": func() (*model.Answer, error) {
			return nil, &model.Error{Kind: model.TooLong, Message: "prompt is too long"}
		},
		"stop": func() (*model.Answer, error) {
			return &model.Answer{Message: model.Text(model.Assistant, "Half"), Stop: model.Window}, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			page := does("page", stint.Read, func(c tool.Call) (string, error) { return string(c.Args) + strings.Repeat(" word", 400), nil })
			m := &heard{Model: narrow{counter{"page", 8, 4}, 12_000, full}, t: t}
			w := newWorld(t, llm.Spec{Model: m, Tools: toolset(t, page)}, "Go.")
			w.run(whole)
			if w.end == nil || w.end.Outcome != stint.Completed || !strings.Contains(messages(t, w.state)[0].Text(), "Done up to") {
				t.Errorf("%+v: %s", w.end, transcript(t, w.state))
			}
		})
	}
}

// narrow takes so many bytes.
type narrow struct {
	model.Model

	bytes int
	full  func() (*model.Answer, error)
}

func (n narrow) Call(ctx context.Context, r *model.Request, hear func(model.Delta)) (*model.Answer, error) {
	if b, err := json.Marshal(r.Messages); err != nil || len(b) > n.bytes {
		return n.full()
	}
	return n.Model.Call(ctx, r, hear)
}
