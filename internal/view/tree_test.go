package view_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/term"
	"github.com/stint-dev/stint/internal/view"
	"github.com/stint-dev/stint/journal"
)

// TestTree: children and branches stand below what they came of, the older first, and what
// they used is summed up.
func TestTree(t *testing.T) {
	inWorld(t, func(w *world) {
		t := w.t
		of := func(p *script, more func(*journal.Created)) func(*journal.Created) {
			return func(c *journal.Created) {
				c.Family = p.s.Family
				c.Parent = stint.Parent{Session: p.s.ID, Seq: 1, Hash: p.s.HeadHash}
				c.Trigger = stint.Trigger{Kind: "session", Ref: p.s.ID.String()}
				if more != nil {
					more(c)
				}
			}
		}
		works := func(k *script, cost stint.Money) {
			k.claim("r-" + k.s.Name)
			k.loop("first")
			k.step(1, journal.StepDone{StepRequested: journal.StepRequested{Name: "model", Kind: stint.Model, Effect: stint.Read}, Usage: stint.Usage{Input: 1000, Cost: cost}}, `1`)
			k.complete(`{"n":1}`, "", journal.Rollup{Steps: 1})
		}
		top := w.session("triage-1129")
		works(top, 1e9)
		one := w.session("triage-1129.worker-1", of(top, nil))
		works(one, 2e9)
		deep := w.session("triage-1129.worker-1.worker-1", of(one, nil))
		works(deep, 3e9)
		deep.end(stint.Completed, "", `1`)
		w.session("free", of(top, func(c *journal.Created) { c.Parent.Detach = true }))
		w.session("triage-1129.1", of(top, func(c *journal.Created) { c.Parent.Branch, c.Parent.Loop, c.Trigger.Kind = true, 1, "branch" }))
		w.session("another")
		one.wait(stint.Wait{For: stint.ForChild, Wakes: []stint.MessageKind{stint.ChildEnd}})
		row := top.row()
		tree, err := view.NewTree(t.Context(), w.store, &row, now())
		if err != nil {
			t.Fatal(err)
		}
		if s := tree.Sum; s.Sessions != 5 || s.Open != 4 || s.Cost != 6e9 || s.Tokens != 3000 || s.Loops != 3 {
			t.Errorf("the sum is %+v", s)
		}
		if s := tree.Items[1].Sum; s.Sessions != 2 || s.Cost != 5e9 {
			t.Errorf("the sum of %s is %+v", tree.Items[1].Name, s)
		}
		golden(t, "stint.tree.1.json", pretty(t, tree))
		var b bytes.Buffer
		if err := tree.Write(&b, term.Style{}, now()); err != nil {
			t.Fatal(err)
		}
		golden(t, "tree.txt", b.Bytes())
		page := func(row stint.Row) string {
			t.Helper()
			show, err := view.NewShow(t.Context(), w.store, &row, view.ShowOptions{Line: -1}, now())
			if err != nil {
				t.Fatal(err)
			}
			var b bytes.Buffer
			if err := view.WriteShow(&b, term.Style{}, &row, &show, now()); err != nil {
				t.Fatal(err)
			}
			return b.String()
		}
		text := page(row)
		for _, want := range []string{"2 child sessions", "triage-1129.worker-1 (m5c2) waiting:child", "triage-1129.1 (jgq0) pending"} {
			if !strings.Contains(text, want) {
				t.Errorf("the page does not say %q:\n%s", want, text)
			}
		}
		child, err := w.store.Session(t.Context(), tree.Items[1].ID)
		if err != nil {
			t.Fatal(err)
		}
		if want := "a child of triage-1129 (" + row.Short + ")"; !strings.Contains(page(child), want) {
			t.Errorf("the page of a child does not say %q:\n%s", want, page(child))
		}
	})
}
