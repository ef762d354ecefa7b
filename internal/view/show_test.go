package view_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/term"
	"github.com/stint-dev/stint/internal/view"
	"github.com/stint-dev/stint/journal"
)

// showOf is the page of a session as text.
func showOf(t *testing.T, w *world, row stint.Row, opt view.ShowOptions, st term.Style) string {
	t.Helper()
	v, err := view.NewShow(t.Context(), w.store, &row, opt, now())
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := view.WriteShow(&out, st, &row, &v, now()); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestShow(t *testing.T) {
	inWorld(t, func(w *world) {
		t := w.t
		story(w)
		rows, _, err := view.Sessions(t.Context(), w.store, view.Query{All: true})
		if err != nil {
			t.Fatal(err)
		}
		view.Sort(rows, view.ByUrgency, true)
		var out strings.Builder
		for _, row := range rows {
			out.WriteString(showOf(t, w, row, view.ShowOptions{Line: -1}, terminal()) + "\n" + strings.Repeat("=", 100) + "\n")
		}
		for _, row := range rows {
			if row.Session.Name != "deps-bump-1129" {
				continue
			}
			for _, part := range []string{
				"# the line it left\n" + showOf(t, w, row, view.ShowOptions{Line: 0}, terminal()),
				"# colours\n" + showOf(t, w, row, view.ShowOptions{Line: -1}, term.Style{TTY: true, Width: 100, Color: true}),
				"# no terminal\n" + showOf(t, w, row, view.ShowOptions{Line: -1}, term.Style{}),
			} {
				out.WriteString(strings.ReplaceAll(part, "\x1b", "␛") + strings.Repeat("=", 100) + "\n")
			}
		}
		golden(t, "show.txt", []byte(out.String()))
	})
}

func TestShowHasTheNewestLoops(t *testing.T) {
	inWorld(t, func(w *world) {
		t := w.t
		k := w.session("long-1129").claim("worker/1")
		for range 25 {
			k.loop("next")
			pass(time.Second)
			k.complete(`{"n":1}`, "", journal.Rollup{})
		}
		row := k.row()
		v, err := view.NewShow(t.Context(), w.store, &row, view.ShowOptions{Line: -1}, now())
		if err != nil || len(v.Loops) != 10 || v.LoopsOmitted != 15 || v.Loops[9].Loop != 25 {
			t.Errorf("%d loops, %d omitted: %v", len(v.Loops), v.LoopsOmitted, err)
		}
		if text := showOf(t, w, row, view.ShowOptions{Line: -1}, terminal()); !strings.Contains(text, "…15 earlier loops (--all)") {
			t.Errorf("the page does not tell of the earlier loops:\n%s", text)
		}
		v, err = view.NewShow(t.Context(), w.store, &row, view.ShowOptions{Line: -1, All: true}, now())
		if err != nil || len(v.Loops) != 25 || v.LoopsOmitted != 0 {
			t.Errorf("%d loops, %d omitted: %v", len(v.Loops), v.LoopsOmitted, err)
		}
	})
}

// What a page advises for a session in doubt fits what is in doubt.
func TestNextAfterDoubt(t *testing.T) {
	inWorld(t, func(w *world) {
		t := w.t
		diverged := w.session("changed-1129").claim("worker/1")
		diverged.loop("first")
		diverged.complete(`{"n":1}`, "one", journal.Rollup{})
		diverged.loop("next")
		diverged.step(1, journal.StepDone{StepRequested: journal.StepRequested{Name: "list", Kind: stint.Tool, Effect: stint.Read}}, "[]")
		diverged.wait(stint.Wait{For: stint.ForDoubt, Step: diverged.at(1, 0), What: "step 1.1 was tool \"list\" (read), the agent now asks for tool \"fetch\" (read)"})
		row := diverged.row()
		v, err := view.NewShow(t.Context(), w.store, &row, view.ShowOptions{Line: -1}, now())
		if err != nil {
			t.Fatal(err)
		}
		if text := strings.Join(v.Next, "\n"); strings.Contains(text, "resolve") || !strings.Contains(text, "resume") || !strings.Contains(text, "restart "+row.Short+" --from 1 --dry-run") {
			t.Errorf("no verdict settles a divergence, and the page advises\n%s", text)
		}

		killed := w.session("killed-1129").claim("worker/2")
		killed.loop("first")
		killed.intend(1, "pay", `{}`)
		killed.end(stint.Canceled, "by human:ana", "")
		text := showOf(t, w, killed.row(), view.ShowOptions{Line: -1}, terminal())
		if !strings.Contains(text, "IN DOUBT") || strings.Contains(text, "resolve") {
			t.Errorf("an ended session's step stays in doubt, and nobody can resolve it:\n%s", text)
		}

		dead := w.session("dead-1129").claim("worker/3")
		dead.loop("first")
		for i := range 2 {
			dead.add(journal.Draft{Kind: stint.StepRequested, Pos: dead.at(1, i+1), Actor: stint.ByAgent, Data: journal.StepRequested{Name: "pay", Kind: stint.Tool, Effect: stint.Once}})
		}
		dead.die()
		text = showOf(t, w, dead.row(), view.ShowOptions{Line: -1}, terminal())
		if !strings.Contains(text, "IN DOUBT") || strings.Contains(text, "resolve") || !strings.Contains(text, "the next runner settles it") {
			t.Errorf("nobody asks yet what became of the steps:\n%s", text)
		}
		dead.claim("worker/4")
		dead.wait(stint.Wait{For: stint.ForDoubt, Step: dead.at(1, 1)})
		text = showOf(t, w, dead.row(), view.ShowOptions{Line: -1}, terminal())
		if strings.Count(text, "resolve "+short(dead)+":1.1.1 --happened|") != 1 || !strings.Contains(text, "asked about once 1.1.1 is settled") {
			t.Errorf("one step is asked about, the other waits:\n%s", text)
		}
	})
}

func TestMoreOf(t *testing.T) {
	lim := stint.Limits{Wall: 90 * time.Minute, Idle: 10 * time.Minute, Loops: 50, Steps: 9, Tokens: 1000, Cost: 2_500_000_000}
	for what, want := range map[string]string{
		"wall: 90m of 90m": "--wall +1h30m --run", "idle: no sign of life": "--idle +10m --run", "loops: 50 of 50 loops": "--loops +50 --run", "steps: 9 of 9": "--steps +9 --run",
		"tokens: 1000 of 1000": "--tokens +1000 --run", "cost: $2.50 of $2.50": "--cost +2.50 --run", "something else": "--help", "": "--help",
	} {
		s := stint.Session{Limits: lim, Wait: &stint.Wait{For: stint.ForBudget, What: what}}
		if got := view.MoreOf(&s); got != want {
			t.Errorf("for %q stint limit is advised with %q, want %q", what, got, want)
		}
		s.Limits = stint.Limits{}
		if got := view.MoreOf(&s); got != "--help" {
			t.Errorf("for %q, where there is no such limit, stint limit is advised with %q", what, got)
		}
	}
	for d, want := range map[time.Duration]string{time.Hour: "1h", 48 * time.Hour: "48h", time.Minute: "1m", 250 * time.Millisecond: "250ms", 61 * time.Second: "1m1s", 10*time.Hour + 10*time.Minute: "10h10m"} {
		s := stint.Session{Limits: stint.Limits{Wall: d}, Wait: &stint.Wait{For: stint.ForBudget, What: "wall: x"}}
		if got := view.MoreOf(&s); got != "--wall +"+want+" --run" {
			t.Errorf("%v is advised as %q, want %s", d, got, want)
		}
	}
}

func TestState(t *testing.T) {
	inWorld(t, func(w *world) {
		t := w.t
		k := deps(w)
		row := k.row()
		for _, c := range []struct {
			line, loop int
			want       string
		}{
			{-1, -1, `{"cursor":1,"tries":["2s → 5s"]}`},
			{-1, 2, `{"cursor":1,"tries":["2s → 5s"]}`},
			{-1, 1, `{"cursor":1,"tries":[]}`},
			{0, 1, `{"cursor":1,"tries":[]}`},
			{0, 3, `{"cursor":1,"tries":["2s → 5s"]}`},
			{0, -1, `{"cursor":1,"tries":["2s → 5s"]}`},
		} {
			got, _, err := view.State(t.Context(), w.store, &row, c.line, c.loop)
			if err != nil || string(got) != c.want {
				t.Errorf("the state of line %d, loop %d is %s, want %s: %v", c.line, c.loop, got, c.want, err)
			}
		}
		for _, at := range [][2]int{{-1, 3}, {-1, 0}, {0, 4}} {
			if _, _, err := view.State(t.Context(), w.store, &row, at[0], at[1]); stint.CodeOf(err) != stint.NotFound {
				t.Errorf("the state of line %d, loop %d: %v, want not_found", at[0], at[1], err)
			}
		}
	})
}

func TestField(t *testing.T) {
	inWorld(t, func(w *world) {
		t := w.t
		k := deps(w)
		k.doing("testing")
		row := k.row()
		v, err := view.NewShow(t.Context(), w.store, &row, view.ShowOptions{Line: -1}, now())
		if err != nil {
			t.Fatal(err)
		}
		for path, want := range map[string]string{
			"status": "running", "limits.cost.max": "8.00", "limits.loops": `{"max":50,"used":3}`, "loops.0.headline": "queue: drain timeout", "waiting": "null",
			"totals.tokens.counted": "9036", "schema": "stint.session/1", "labels": "{}",
		} {
			if got, err := view.Field(v, path); err != nil || got != want {
				t.Errorf("the field %s is %q, want %q: %v", path, got, want, err)
			}
		}
		for _, path := range []string{"", "stat", "loops.99", "loops.x", "status.x", "limits..cost"} {
			if _, err := view.Field(v, path); stint.CodeOf(err) != stint.NotFound {
				t.Errorf("the field %q: %v, want not_found", path, err)
			}
		}
		_, err = view.Field(v, "limits.prize")
		if hint := err.(*stint.Error).Hint; !strings.Contains(hint, "cost, deadline, idle_ms") {
			t.Errorf("the hint names no members: %q", hint)
		}
		for i := range v.Loops {
			if i > 0 && v.Loops[i-1].Loop > v.Loops[i].Loop {
				t.Error("loops are not in order")
			}
		}
	})
}
