package view_test

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/term"
	"github.com/stint-dev/stint/internal/view"
	"github.com/stint-dev/stint/journal"
)

func logOf(t *testing.T, w *world, row stint.Row, st term.Style, opt view.LogOptions) string {
	t.Helper()
	var out bytes.Buffer
	if err := view.NewLog(w.store, row, st, now(), opt).Write(t.Context(), &out, now()); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// every is the query for a whole journal.
func every() view.LogQuery { return view.LogQuery{Line: -1} }

// What an entry says to do about an error stands below it, and on the session's page.
func TestHints(t *testing.T) {
	inWorld(t, func(w *world) {
		t := w.t
		const hint = "set TRACKER_TOKEN where stint runs\x1b[2J"
		failed := w.session("failed").claim("worker/1")
		failed.loop("first")
		failed.add(journal.Draft{Kind: stint.LoopFailed, Pos: failed.at(0, 0), Data: journal.LoopFailed{Error: "401", Final: true, Hint: hint}})
		failed.add(journal.Draft{Kind: stint.SessionEnded, Pos: failed.at(0, 0), Data: journal.Ended{Outcome: stint.Failed, Reason: "401"}})
		ended := w.session("ended").claim("worker/2")
		ended.loop("first")
		ended.add(journal.Draft{Kind: stint.SessionEnded, Pos: ended.at(0, 0), Data: journal.Ended{Outcome: stint.Failed, Reason: "401", Hint: hint}})
		waits := w.session("waits").claim("worker/3")
		waits.loop("first")
		waits.add(journal.Draft{Kind: stint.SessionWaiting, Pos: waits.at(0, 0), Data: journal.Parked{Waiting: stint.Wait{For: stint.ForRetry, What: "401"}, Hint: hint}})
		mended := w.session("mended").claim("worker/4")
		mended.loop("first")
		mended.add(journal.Draft{Kind: stint.LoopFailed, Pos: mended.at(0, 0), Data: journal.LoopFailed{Error: "401", Hint: hint}})
		mended.loop("retry")
		for _, k := range []*script{failed, ended, waits, mended} {
			row := k.row()
			want := `set TRACKER_TOKEN where stint runs\x1b[2J`
			for _, st := range []term.Style{{}, terminal(), {TTY: true, Width: 60}} {
				var out bytes.Buffer
				if err := view.NewLog(w.store, row, st, now(), view.LogOptions{Query: view.LogQuery{Line: -1}}).Write(t.Context(), &out, now()); err != nil || !strings.Contains(out.String(), "↳ set TRACKER_TOKEN") {
					t.Errorf("%s: %v: the log has no hint:\n%s", row.Session.Name, err, out.String())
				}
				v, err := view.NewShow(t.Context(), w.store, &row, view.ShowOptions{Line: -1}, now())
				if err != nil {
					t.Fatal(err)
				}
				out.Reset()
				if err := view.WriteShow(&out, st, &row, &v, now()); err != nil {
					t.Fatal(err)
				}
				if gone := k == mended; (v.Hint == nil) != gone || !gone && *v.Hint != hint || strings.Contains(out.String(), want) == gone {
					t.Errorf("%s: the hint is %v, and the page\n%s", row.Session.Name, v.Hint, out.String())
				}
			}
		}
	})
}

func TestLog(t *testing.T) {
	inWorld(t, func(w *world) {
		t := w.t
		k := story(w)
		var out strings.Builder
		for _, c := range []struct {
			title string
			st    term.Style
			opt   view.LogOptions
		}{
			{"a terminal", terminal(), view.LogOptions{Query: every()}},
			{"no terminal", term.Style{}, view.LogOptions{Query: every()}},
			{"colours, the newest five", term.Style{TTY: true, Width: 100, Color: true}, view.LogOptions{Query: every(), Tail: 5}},
			{"warnings explained", terminal(), view.LogOptions{Query: view.LogQuery{Line: -1, Level: view.Warn}, Explain: true}},
			{"bodies", terminal(), view.LogOptions{Query: view.LogQuery{Line: 0, From: 1, To: 2}, Content: true}},
			{"what the agent wrote", term.Style{}, view.LogOptions{Query: view.LogQuery{Line: -1, To: 1}, Format: view.Cat}},
			{"JSON lines", term.Style{}, view.LogOptions{Query: view.LogQuery{Line: -1, From: 1, To: 1}, Format: view.JSONL, Content: true}},
		} {
			out.WriteString("# " + c.title + "\n" + strings.ReplaceAll(logOf(t, w, k.row(), c.st, c.opt), "\x1b", "␛") + "\n")
		}
		rows, _, err := view.Sessions(t.Context(), w.store, view.Query{All: true})
		if err != nil {
			t.Fatal(err)
		}
		view.Sort(rows, view.ByName, false)
		out.WriteString("# the other sessions\n")
		for _, row := range rows {
			if row.Session.ID != k.s.ID {
				out.WriteString(logOf(t, w, row, terminal(), view.LogOptions{Query: every()}))
			}
		}
		golden(t, "logs.txt", []byte(out.String()))
	})
}

// seqs are the entries that a log shows.
func seqs(t *testing.T, w *world, row stint.Row, opt view.LogOptions) string {
	t.Helper()
	opt.Format = view.JSONL
	var all []string
	for _, m := range regexp.MustCompile(`"seq":(\d+),"epoch"`).FindAllStringSubmatch(logOf(t, w, row, term.Style{}, opt), -1) {
		all = append(all, m[1])
	}
	return strings.Join(all, " ")
}

func TestLogQuery(t *testing.T) {
	inWorld(t, func(w *world) {
		t := w.t
		began := now()
		k := deps(w)
		row := k.row()
		re := regexp.MustCompile
		for _, c := range []struct {
			name string
			opt  view.LogOptions
			want string
		}{
			{"the newest three", view.LogOptions{Query: every(), Tail: 3}, "25 26 27"},
			{"more than there are", view.LogOptions{Query: view.LogQuery{Line: -1, After: 23}, Tail: 50}, "24 25 26 27"},
			{"after", view.LogOptions{Query: view.LogQuery{Line: -1, After: 25}}, "26 27"},
			{"until", view.LogOptions{Query: view.LogQuery{Line: -1, Until: 2}}, "1 2"},
			{"one loop of one line", view.LogOptions{Query: view.LogQuery{Line: 0, From: 4, To: 4}}, "20 21 22"},
			{"loops", view.LogOptions{Query: view.LogQuery{Line: 0, From: 4}}, "20 21 22"},
			{"models", view.LogOptions{Query: view.LogQuery{Line: -1, Kinds: []view.Class{view.ClassModel}}}, "3 9 15"},
			{"a step", view.LogOptions{Query: view.LogQuery{Line: 0, From: 2, To: 2, Step: 2}}, "10 12"},
			{"output", view.LogOptions{Query: view.LogQuery{Line: -1, Kinds: []view.Class{view.ClassOutput}}}, "5 11 17"},
			{"another stream", view.LogOptions{Query: view.LogQuery{Line: -1, Kinds: []view.Class{view.ClassOutput}, Streams: []string{"stderr"}}}, ""},
			{"warnings", view.LogOptions{Query: view.LogQuery{Line: -1, Level: view.Warn}}, "21"},
			{"a word of an output", view.LogOptions{Query: view.LogQuery{Line: -1, Grep: re(`FAIL: Test`)}}, "5 11 17"},
			{"the newest with a word", view.LogOptions{Query: view.LogQuery{Line: -1, Grep: re(`drain`)}, Tail: 1}, "7"},
			{"a name", view.LogOptions{Query: view.LogQuery{Line: -1, Grep: re(`^github`)}}, "26"},
			{"since", view.LogOptions{Query: view.LogQuery{Line: -1, Since: began.Add(110 * time.Second), Kinds: []view.Class{view.ClassState}}}, "19 23"},
			{"till", view.LogOptions{Query: view.LogQuery{Line: -1, Till: began.Add(time.Second)}}, "1"},
			{"another line", view.LogOptions{Query: view.LogQuery{Line: 1, Kinds: []view.Class{view.ClassLoop, view.ClassState}}}, "23 24"},
		} {
			if got := seqs(t, w, row, c.opt); got != c.want {
				t.Errorf("%s: got entries %s, want %s", c.name, got, c.want)
			}
		}
	})
}

func TestParseLoops(t *testing.T) {
	for in, want := range map[string][2]int{"3": {3, 3}, "3..5": {3, 5}, "3..": {3, 0}, "..5": {0, 5}} {
		if from, to, err := view.ParseLoops(in); err != nil || [2]int{from, to} != want {
			t.Errorf("ParseLoops(%q) = %d, %d, %v", in, from, to, err)
		}
	}
	for _, in := range []string{"", "..", "0", "x", "3..x", "-1", "3...5"} {
		if _, _, err := view.ParseLoops(in); stint.CodeOf(err) != stint.Invalid {
			t.Errorf("ParseLoops(%q): %v, want invalid", in, err)
		}
	}
}

// The newest entries are found however far back they lie.
func TestTailOfALongLog(t *testing.T) {
	inWorld(t, func(w *world) {
		t := w.t
		k := w.session("long-1129").claim("worker/1")
		k.loop("first")
		k.add(journal.Draft{Kind: stint.OutputWritten, Pos: k.at(0, 0), Data: journal.Output{Stream: "stdout"}, Body: []byte("needle\n")})
		for range 1500 {
			k.add(journal.Draft{Kind: stint.OutputWritten, Pos: k.at(0, 0), Data: journal.Output{Stream: "stdout"}, Body: []byte("hay\n")})
		}
		row := k.row()
		if got := seqs(t, w, row, view.LogOptions{Tail: 3, Query: view.LogQuery{Line: -1, Grep: regexp.MustCompile("needle")}}); got != "3" {
			t.Errorf("found entries %q, want 3", got)
		}
		if got := len(strings.Fields(seqs(t, w, row, view.LogOptions{Query: every()}))); got != 1503 {
			t.Errorf("%d entries, want 1,503", got)
		}
		if got := len(strings.Fields(seqs(t, w, row, view.LogOptions{Query: every(), Tail: 1200}))); got != 1200 {
			t.Errorf("%d entries, want 1,200", got)
		}
		whole := w.session("whole-1129").claim("worker/2") // whose journal is full pages
		for range 999 {
			whole.add(journal.Draft{Kind: stint.MessageTaken, Data: journal.Taken{ID: "m", Kind: stint.Stop}})
		}
		if got := len(strings.Fields(seqs(t, w, whole.row(), view.LogOptions{Query: every(), Tail: 2000}))); got != 1000 {
			t.Errorf("%d entries, want 1,000", got)
		}
	})
}

// Output comes out byte for byte where that is asked for, also what lies outside
// the journal and what is no text; else it is made safe.
func TestCat(t *testing.T) {
	inWorld(t, func(w *world) {
		t := w.t
		k := w.session("make-1129").claim("worker/1")
		k.loop("first")
		large := strings.Repeat("0123456789abcde\n", 1000)
		var all string
		for i, body := range []string{"plain\n", "\x1b[31mred\x1b[0m\r\n", "\xff\x00\xfe\n", large, "no newline"} {
			stream := []string{"stdout", "stderr"}[i%2]
			k.add(journal.Draft{Kind: stint.OutputWritten, Pos: k.at(0, 0), Data: journal.Output{Stream: stream}, Body: []byte(body)})
			all += body
		}
		row := k.row()
		if got := logOf(t, w, row, terminal(), view.LogOptions{Query: every(), Format: view.Cat, Raw: true}); got != all {
			t.Errorf("raw output differs: %d bytes, want %d", len(got), len(all))
		}
		got := logOf(t, w, row, terminal(), view.LogOptions{Query: every(), Format: view.Cat})
		if got != term.Escape(all) || strings.Contains(got, "\x1b") {
			t.Errorf("output is not made safe: %q", got[:60])
		}
		q := every()
		q.Streams = []string{"stderr"}
		if got := logOf(t, w, row, terminal(), view.LogOptions{Query: q, Format: view.Cat, Raw: true}); got != "\x1b[31mred\x1b[0m\r\n"+large {
			t.Errorf("standard error alone has %d bytes", len(got))
		}
		if got := logOf(t, w, row, terminal(), view.LogOptions{Query: every(), Format: view.Cat, Raw: true, Tail: 2}); got != large+"no newline" {
			t.Errorf("the newest two outputs have %d bytes", len(got))
		}
	})
}

// A follower prints entries as they come, over a change of runners, and ends with
// the session.
func TestFollow(t *testing.T) {
	inWorld(t, func(w *world) {
		t := w.t
		k := w.session("deps-1129").claim("worker/1")
		k.loop("first")
		var out bytes.Buffer
		done := make(chan error, 1)
		var last stint.Row
		go func() {
			var err error
			last, err = view.NewLog(w.store, k.row(), term.Style{}, now(), view.LogOptions{Query: every(), Tail: 1}).Follow(t.Context(), &out, 100*time.Millisecond)
			done <- err
		}()
		say := func(text string) {
			k.add(journal.Draft{Kind: stint.OutputWritten, Pos: k.at(0, 0), Data: journal.Output{Stream: "stdout"}, Body: []byte(text + "\n")})
		}
		pass(time.Second)
		say("before the crash")
		pass(150 * time.Millisecond)
		synctest.Wait()
		if !strings.Contains(out.String(), "before the crash") {
			t.Errorf("after 150 ms the follower has not printed what came:\n%s", out.String())
		}
		k.die()
		pass(time.Minute)
		k.claim("worker/2")
		k.loop("recover")
		say("after it")
		k.complete("", "", journal.Rollup{})
		select {
		case err := <-done:
			t.Fatalf("the follower ended before the session: %v", err)
		case <-time.After(time.Second):
		}
		k.end(stint.Completed, "done", "")
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if last.Session.Status != stint.Completed {
			t.Errorf("it ended with the session %s", last.Session.Status)
		}
		var got []string
		for line := range strings.Lines(out.String()) {
			got = append(got, strings.Join(strings.Fields(line)[1:], " "))
		}
		want := []string{"1 loop begins · attempt 1 · first · from the beginning", "1 stdout before the crash",
			"1 lease lost: the runner that held it died", "1 loop begins · attempt 2 · recover · from the beginning", "1 stdout after it", "1 loop done in 0ms · ck-1", "1 session completed · done"}
		if !slices.Equal(got, want) {
			t.Errorf("it printed\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	})
}

// A session that has ended and is about to begin again is followed to its next end.
func TestFollowAgain(t *testing.T) {
	inWorld(t, func(w *world) {
		t := w.t
		k := w.session("deps-1129").claim("worker/1")
		k.loop("first")
		k.complete("", "", journal.Rollup{})
		k.end(stint.Completed, "done", "")
		var out bytes.Buffer
		done := make(chan error, 1)
		row := k.row()
		go func() {
			q := every()
			q.After = row.Session.Head
			_, err := view.NewLog(w.store, row, term.Style{}, now(), view.LogOptions{Query: q, Again: true}).Follow(t.Context(), &out, 100*time.Millisecond)
			done <- err
		}()
		pass(time.Second)
		if err := w.store.Send(t.Context(), row.Session.ID, stint.Message{ID: "m", Kind: stint.Restart, From: "human:ana"}); err != nil {
			t.Fatal(err)
		}
		k.claim("worker/2")
		k.add(journal.Draft{Kind: stint.MessageTaken, Actor: "human:ana", Data: journal.Taken{ID: "m", Kind: stint.Restart, From: "human:ana"}})
		pass(time.Second) // it has been told to begin again, and has not yet
		k.add(journal.Draft{Kind: stint.SessionResumed, Data: journal.Resumed{Why: "restart"}})
		k.loop("next")
		k.complete("", "", journal.Rollup{})
		select {
		case err := <-done:
			t.Fatalf("the follower ended before the session did again: %v", err)
		case <-time.After(time.Second):
		}
		k.end(stint.Completed, "done again", "")
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if text := out.String(); !strings.Contains(text, "goes on (restart)") || !strings.Contains(text, "done again") || strings.Contains(text, "created by") {
			t.Errorf("it printed\n%s", text)
		}
	})
}

func FuzzAddress(f *testing.F) {
	for _, s := range []string{"x81d:13.2.1", "triage@06:00:3", "triage@2026-11-28/1", "@last", "@bad:2", "a/9999999999999999999", ":", "é/1:2"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		_, place, err := view.Find(t.Context(), emptyReader{}, s, time.Unix(0, 0).UTC())
		if c := stint.CodeOf(err); c != stint.Invalid && c != stint.NotFound {
			t.Fatalf("Find(%q) in an empty store: %v", s, err)
		}
		if place.Line < -1 || place.Loop < -1 || place.Step < 0 || place.Sub < 0 || place.Sub > 0 && place.Step < 0 {
			t.Fatalf("Find(%q) names %+v", s, place)
		}
	})
}

// The journal of the server says in words what it recorded, and who asked for it.
func TestLogOfTheServer(t *testing.T) {
	inWorld(t, func(w *world) {
		k := w.session("system", func(c *journal.Created) { c.Trigger.Kind = "system" }).claim("server/1")
		k.add(journal.Draft{Kind: stint.SystemRecorded, Actor: "human:ana", Data: journal.Recorded{What: "schedule.paused", Name: "nightly\x1b[2J", Reason: "freeze"}})
		k.add(journal.Draft{Kind: stint.SystemRecorded, Actor: stint.ByEngine, Data: journal.Recorded{What: "occurrence.missed", Name: "nightly"}})
		got := logOf(w.t, w, k.row(), term.Style{}, view.LogOptions{Query: every()})
		for _, want := range []string{`schedule.paused · nightly\x1b[2J · by human:ana · freeze`, "occurrence.missed · nightly\n"} {
			if !strings.Contains(got, want) {
				w.t.Errorf("the log does not say %q:\n%s", want, got)
			}
		}
	})
}
