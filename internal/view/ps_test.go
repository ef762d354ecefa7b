package view_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/term"
	"github.com/stint-dev/stint/internal/view"
	"github.com/stint-dev/stint/journal"
)

func TestList(t *testing.T) {
	inWorld(t, func(w *world) {
		t := w.t
		story(w)
		rows, cursor, err := view.Sessions(t.Context(), w.store, view.Query{All: true})
		if err != nil || !cursor.IsZero() {
			t.Fatal(cursor, err)
		}
		view.Sort(rows, view.ByUrgency, true)
		outcomes, err := view.Outcomes(t.Context(), w.store, rows)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		for _, c := range []struct {
			title string
			st    term.Style
			wide  bool
		}{
			{"a terminal", terminal(), false},
			{"a narrow terminal", term.Style{TTY: true, Width: 80}, false},
			{"colours", term.Style{TTY: true, Width: 100, Color: true}, false},
			{"no terminal", term.Style{}, false},
			{"no terminal, wide", term.Style{}, true},
			{"a wide terminal, wide", term.Style{TTY: true, Width: 240}, true},
		} {
			out.WriteString("# " + c.title + "\n")
			if err := view.WriteList(&out, c.st, rows, view.ListOptions{Wide: c.wide, Outcomes: outcomes}, now()); err != nil {
				t.Fatal(err)
			}
			out.WriteString("\n")
		}
		out.WriteString("# nothing\n")
		if err := view.WriteList(&out, terminal(), nil, view.ListOptions{}, now()); err != nil {
			t.Fatal(err)
		}
		golden(t, "ps.txt", bytes.ReplaceAll(out.Bytes(), []byte("\x1b"), []byte("␛")))
	})
}

func TestQuery(t *testing.T) {
	inWorld(t, func(w *world) {
		t := w.t
		story(w)
		open := []string{"deps-bump-1129", "digest-1129", "docs-1129", "invoice-recon-1129", "mail-1129", "pr-review-1129", "report-1129", "sync-1129"}
		for _, c := range []struct {
			name string
			q    view.Query
			want []string
		}{
			{"open ones", view.Query{}, open},
			{"all", view.Query{All: true}, slices.Sorted(slices.Values(append([]string{"inbox-1129", "nightly-triage-1129"}, open...)))},
			{"all, one ended", view.Query{All: true, Ended: 1}, slices.Sorted(slices.Values(append([]string{"inbox-1129"}, open...)))},
			{"bad", view.Query{Bad: true}, []string{"inbox-1129", "invoice-recon-1129", "mail-1129"}},
			{"running", view.Query{Statuses: []stint.Status{stint.Running}}, []string{"deps-bump-1129"}},
			{"pending", view.Query{Statuses: []stint.Status{stint.Pending}}, []string{"docs-1129", "pr-review-1129"}},
			{"pending or ended well", view.Query{Statuses: []stint.Status{stint.Pending, stint.Completed}}, []string{"docs-1129", "nightly-triage-1129", "pr-review-1129"}},
			{"by agent", view.Query{Filter: stint.Filter{Agent: "sync"}}, []string{"sync-1129"}},
			{"by label", view.Query{Filter: stint.Filter{Labels: map[string]string{"team": "platform"}}}, []string{"docs-1129"}},
			{"the newest", view.Query{Limit: 2}, []string{"docs-1129", "pr-review-1129"}},
		} {
			if got := listed(t, w, c.q); !slices.Equal(got, c.want) {
				t.Errorf("%s: got %q, want %q", c.name, got, c.want)
			}
		}
		rows, cursor, err := view.Sessions(t.Context(), w.store, view.Query{All: true, Limit: 3})
		if err != nil || len(rows) != 3 || cursor != rows[2].Session.ID {
			t.Fatalf("a list that is cut short has the cursor %v and %d rows: %v", cursor, len(rows), err)
		}
		rest, cursor, err := view.Sessions(t.Context(), w.store, view.Query{All: true, After: cursor})
		if err != nil || len(rest) != 7 || !cursor.IsZero() {
			t.Fatalf("the rest has the cursor %v and %d rows: %v", cursor, len(rest), err)
		}
	})
}

func TestSort(t *testing.T) {
	inWorld(t, func(w *world) {
		t := w.t
		story(w)
		for _, c := range []struct {
			by    view.Order
			first string
		}{
			{view.ByUrgency, "invoice-recon-1129"}, {view.ByWait, "deps-bump-1129"}, {view.ByCost, "deps-bump-1129"}, {view.ByAge, "docs-1129"}, {view.ByName, "deps-bump-1129"},
		} {
			rows, _, err := view.Sessions(t.Context(), w.store, view.Query{})
			if err != nil {
				t.Fatal(err)
			}
			view.Sort(rows, c.by, false)
			if rows[0].Session.Name != c.first {
				t.Errorf("by %q the first is %s, want %s", c.by, rows[0].Session.Name, c.first)
			}
		}
	})
}

// A list of a thousand sessions is a list of rows: it opens no journal.
func TestListReadsNoEntries(t *testing.T) {
	inWorld(t, func(w *world) {
		t := w.t
		for range 1000 {
			k := w.session("many-1129")
			pass(time.Millisecond)
			if w.n%3 == 0 {
				k.claim("worker/" + k.seed)
				k.end(stint.Completed, "", "")
			}
		}
		r := &noEntries{Reader: w.store}
		rows, _, err := view.Sessions(t.Context(), r, view.Query{All: true})
		if err != nil || len(rows) != 1000 {
			t.Fatalf("%d rows: %v", len(rows), err)
		}
		view.Sort(rows, view.ByUrgency, true)
		var out bytes.Buffer
		if err := view.WriteList(&out, terminal(), rows, view.ListOptions{Wide: true}, now()); err != nil {
			t.Fatal(err)
		}
		if err := view.WriteJSON(&out, view.NewList(rows, stint.ID{}, now())); err != nil {
			t.Fatal(err)
		}
		if r.reads > 0 {
			t.Errorf("the list read entries %d times", r.reads)
		}
		if got := strings.Count(out.String(), "many-1129"); got != 2000 {
			t.Errorf("the list has %d of 1,000 sessions", got/2)
		}
		open, _, err := view.Sessions(t.Context(), r, view.Query{All: true, Ended: 5})
		if err != nil || len(open) != 667+5 {
			t.Errorf("%d sessions with the newest five that ended, want 672: %v", len(open), err)
		}
	})
}

// A list says of each session that has ended what it came to.
func TestOutcomes(t *testing.T) {
	inWorld(t, func(w *world) {
		t := w.t
		for _, c := range []struct {
			name, headline string
			outcome        stint.Status
			reason, result string
			want           string
		}{
			{"headline", "9 issues closed", stint.Completed, "", `{"closed":9}`, "9 issues closed"},
			{"headline and reason", "9 issues closed", stint.Completed, "nothing left to do", "", "9 issues closed · nothing left to do"},
			{"reason", "", stint.Completed, "nothing left to do", `{"closed":9}`, "nothing left to do"},
			{"result", "", stint.Completed, "", `{"closed": 9}`, `{"closed":9}`},
			{"result of text", "", stint.Completed, "", `"all is well"`, "all is well"},
			{"exit status", "", stint.Completed, "", `{"exit": 0}`, "exit 0"},
			{"nothing", "", stint.Completed, "", "", ""},
			{"failed", "half of it", stint.Failed, "gmail: 401", "", "gmail: 401"},
			{"failed without a word", "half of it", stint.Failed, "", "", "half of it"},
			{"canceled", "half of it", stint.Canceled, "by human:ana: wrong repository", "", "by human:ana: wrong repository"},
			{"two lines", "one\ntwo\x1b[2J", stint.Completed, "", "", `one\ntwo\x1b[2J`},
		} {
			k := w.session(strings.ReplaceAll(c.name, " ", "-")).claim("worker/" + strings.ReplaceAll(c.name, " ", "-"))
			k.loop("first")
			k.complete(`{"n":1}`, "an earlier loop", journal.Rollup{})
			k.loop("next")
			k.complete(`{"n":2}`, c.headline, journal.Rollup{})
			k.end(c.outcome, c.reason, c.result)
			rows := []stint.Row{k.row()}
			got, err := view.Outcomes(t.Context(), w.store, rows)
			if err != nil || got[k.s.ID] != c.want {
				t.Errorf("%s: got %q (%v), want %q", c.name, got[k.s.ID], err, c.want)
			}
			var out bytes.Buffer
			if err := view.WriteList(&out, term.Style{}, rows, view.ListOptions{Outcomes: got}, now()); err != nil || !strings.HasSuffix(out.String(), c.want+"\n") {
				t.Errorf("%s: the list does not end with it (%v):\n%s", c.name, err, out.String())
			}
		}
		open := w.session("open").claim("worker/open")
		open.loop("first")
		r := &noEntries{Reader: w.store}
		if got, err := view.Outcomes(t.Context(), struct {
			stint.Reader
			stint.Blobs
		}{r, w.store}, []stint.Row{open.row()}); err != nil || len(got) != 0 || r.reads > 0 {
			t.Errorf("an open session has the outcomes %q (%v) after %d reads", got, err, r.reads)
		}
	})
}

// What a session does now was said in the loop that it is in: not in an earlier one,
// nor before it went back.
func TestNowIsOfThisLoop(t *testing.T) {
	inWorld(t, func(w *world) {
		t := w.t
		k := w.session("triage-1129").claim("worker/1")
		check := func(when, want string) {
			t.Helper()
			row := k.row()
			var list, page bytes.Buffer
			v, err := view.NewShow(t.Context(), w.store, &row, view.ShowOptions{Line: -1}, now())
			if err != nil {
				t.Fatal(err)
			}
			if err := view.WriteList(&list, term.Style{}, []stint.Row{row}, view.ListOptions{}, now()); err != nil {
				t.Fatal(err)
			}
			if err := view.WriteShow(&page, term.Style{}, &row, &v, now()); err != nil {
				t.Fatal(err)
			}
			said := v.Now != nil
			if _, line, _ := strings.Cut(list.String(), "  -  "); strings.TrimSpace(line) != want || said == strings.HasPrefix(want, "loop ") || said && v.Now.Line != want {
				t.Errorf("%s: the list says %q and JSON %+v, want %q", when, line, v.Now, want)
			}
			if strings.Contains(page.String(), "page 1") && want != "reading page 1" {
				t.Errorf("%s: the page tells of what is over:\n%s", when, page.String())
			}
		}
		check("before the first loop", "loop 1")
		k.loop("first")
		pass(time.Second)
		check("a loop without a word", "loop 1")
		k.doing("reading page 1")
		pass(time.Second)
		check("a loop with one", "reading page 1")
		k.complete(`{"n":1}`, "", journal.Rollup{})
		pass(time.Second)
		check("between two loops", "loop 2")
		k.loop("next")
		pass(time.Second)
		check("the next loop", "loop 2")
		k.doing("reading page 2")
		check("the next loop, with a word", "reading page 2")
		cp, err := journal.CheckpointAt(entriesOf(k), 0)
		if err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		k.add(journal.Draft{Kind: stint.LineStarted, Pos: stint.Position{}, Actor: "human:ben", Data: journal.LineStarted{Checkpoint: cp}})
		k.loop("next")
		pass(time.Second)
		check("after it went back", "loop 1")
	})
}

// What an agent or a sender chose cannot drive the terminal, in no form of output.
func TestHostile(t *testing.T) {
	const evil = "\x1b]52;c;ZXZpbA==\x07\x1b[2J\u202egnp.exe\u2066\u009b31m\rx"
	inWorld(t, func(w *world) {
		t := w.t
		k := w.session("x", func(c *journal.Created) {
			c.Name, c.Agent.Name = "name"+evil, "agent"+evil
			c.Labels = map[string]string{"label" + evil: "value" + evil}
			c.Trigger = stint.Trigger{Kind: "hook", Ref: "ref" + evil}
		})
		k.claim("holder" + evil)
		k.doing("now" + evil)
		k.loop("first")
		r := journal.StepRequested{Name: "step" + evil, Kind: stint.Tool, Effect: stint.Once}
		k.add(journal.Draft{Kind: stint.StepRequested, Pos: k.at(1, 0), Actor: stint.ByAgent, Data: r, Body: []byte("not JSON" + evil)})
		k.add(journal.Draft{Kind: stint.StepCompleted, Pos: k.at(1, 0), Actor: stint.ByAgent, Data: journal.StepDone{StepRequested: r}, Body: []byte(`"result` + "\u202e\u009b31m" + `"`)})
		k.add(journal.Draft{Kind: stint.StepRequested, Pos: k.at(2, 0), Actor: stint.ByAgent, Data: r})
		k.add(journal.Draft{Kind: stint.StepFailed, Pos: k.at(2, 0), Actor: stint.ByAgent, Data: journal.StepDone{StepRequested: r, Error: "error" + evil, Definite: true}})
		k.add(journal.Draft{Kind: stint.OutputWritten, Pos: k.at(0, 0), Data: journal.Output{Stream: "stream" + evil}, Body: []byte("out" + evil + "\n")})
		k.add(journal.Draft{Kind: stint.MessageTaken, Pos: k.at(0, 0), Actor: stint.Actor("human:" + evil), Data: journal.Taken{ID: "m", Kind: stint.Prompt, From: stint.Actor("human:" + evil)}, Body: []byte(evil)})
		k.add(journal.Draft{Kind: stint.LoopFailed, Pos: k.at(0, 0), Data: journal.LoopFailed{Error: evil}})
		k.loop("retry")
		k.complete(`{"state":"`+"\u202e\u009b31m"+`"}`, "headline"+evil, journal.Rollup{})
		k.wait(stint.Wait{For: stint.ForDoubt, What: "what" + evil, Who: "who" + evil})
		row := k.row()
		var out bytes.Buffer
		check := func(what string, err error) {
			t.Helper()
			if err != nil {
				t.Errorf("%s: %v", what, err)
			}
			if strings.ContainsAny(out.String(), "\x1b\x07\r\u202e\u2066\u009b") {
				t.Errorf("%s prints what a terminal acts on:\n%q", what, out.String())
			}
			if !strings.Contains(out.String(), "]52") {
				t.Errorf("%s does not show the text at all:\n%q", what, out.String())
			}
			out.Reset()
		}
		for _, st := range []term.Style{terminal(), {}, {TTY: true, Width: 400}} {
			check("ps", view.WriteList(&out, st, []stint.Row{row}, view.ListOptions{Wide: true}, now()))
			v, err := view.NewShow(t.Context(), w.store, &row, view.ShowOptions{Line: -1, All: true}, now())
			if err != nil {
				t.Fatal(err)
			}
			check("show", view.WriteShow(&out, st, &row, &v, now()))
			check("show as JSON", view.WriteJSON(&out, v))
			field, err := view.Field(v, "waiting.what")
			if err != nil {
				t.Fatal(err)
			}
			out.WriteString(term.Escape(field))
			check("a field", nil)
			for _, opt := range []view.LogOptions{{}, {Content: true}, {Explain: true}, {Format: view.JSON, Content: true}, {Format: view.JSONL, Content: true}, {Format: view.Cat}} {
				opt.Query.Line = -1
				check("logs", view.NewLog(w.store, row, st, now(), opt).Write(t.Context(), &out, now()))
			}
		}
		check("export", view.Export(t.Context(), w.store, &row, now(), &out))
		rep, err := view.VerifySession(t.Context(), w.store, row, view.VerifyOptions{})
		if err != nil || !rep.OK {
			t.Fatal(rep.Problems, err)
		}
		check("verify", view.WriteReport(&out, terminal(), &rep))
		_, _, err = view.Find(t.Context(), w.store, "name", now())
		if err != nil {
			t.Fatal(err)
		}
	})
}

// The last column of a table may be what the next command is to be given: on a narrow
// terminal it stands below its row, and is never cut.
func TestWriteTableKeepsTheLastColumn(t *testing.T) {
	id := "sha256:" + strings.Repeat("0123456789abcdef", 4) + "~order-1"
	for width, want := range map[int]string{
		0:   "CAME  KEY  ID\nnow   k    " + id + "\nthen  k    short\n",
		40:  "CAME  KEY  ID\nnow   k\n     " + id + "\nthen  k    short\n",
		200: "CAME  KEY  ID\nnow   k    " + id + "\nthen  k    short\n",
	} {
		var out bytes.Buffer
		if err := view.WriteTable(&out, term.Style{TTY: width > 0, Width: width}, []string{"CAME", "KEY", "ID"}, [][]string{{"now", "k", id}, {"then", "k", "short"}}); err != nil {
			t.Fatal(err)
		}
		if out.String() != want {
			t.Errorf("at %d columns:\n%s\nwant\n%s", width, out.String(), want)
		}
	}
}
