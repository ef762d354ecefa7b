package compare_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/internal/compare"
)

// order is an agent of three loops, which another customer changes.
func order(customer string) stint.AgentFunc {
	return func(ctx context.Context, l stint.Loop) (stint.Next, error) {
		n := l.Session().At.Loop
		long := strings.Repeat("long ", 600)
		does(ctx, l, stint.Step{Name: "list", Kind: stint.Tool, Effect: stint.Read, Input: json.RawMessage(fmt.Sprintf(`{"page":%d}`, n))}, `[1,2]`, nil)
		switch {
		case n == 2 && customer == "ben":
			says(ctx, l, `{"messages":3}`, "I look.\nIt is Ben.", "refund")
			does(ctx, l, stint.Step{Name: "refund", Kind: stint.Tool, Input: json.RawMessage(`{"for":"ben","amount":7}`)}, "", stint.Definite(errors.New("no money\nat all")))
			does(ctx, l, stint.Step{Name: "read", Kind: stint.Tool, Effect: stint.Read, Input: json.RawMessage(`"` + long + `b"`)}, `"`+long+`2"`, nil)
		case n == 2:
			says(ctx, l, `{"messages":2}`, "I look.\nIt is Ana.", "refund", "mail")
			does(ctx, l, stint.Step{Name: "mail", Kind: stint.Tool, Effect: stint.Idempotent}, `{"sent":true}`, nil)
			does(ctx, l, stint.Step{Name: "refund", Kind: stint.Tool, Input: json.RawMessage(`{"for":"ana","amount":7}`)}, `{"paid":7}`, nil)
			does(ctx, l, stint.Step{Name: "read", Kind: stint.Tool, Effect: stint.Read, Input: json.RawMessage(`"` + long + `a"`)}, `"`+long+`1"`, nil)
		}
		next := stint.Next{Headline: "page " + fmt.Sprint(n)}
		if n > 1 {
			next.State = json.RawMessage(fmt.Sprintf(`{"customer":%q,"page":%d}`, customer, n))
		}
		if n == 3 && customer == "ben" || n == 4 {
			next.End = &stint.End{}
		}
		return next, nil
	}
}

func TestDiff(t *testing.T) {
	inBubble(t, func(r *rig) {
		ana, ben := r.run("ana", order("ana")), r.run("ben", order("ben"))
		all := compare.Parts{State: true, Calls: true, Text: true, Cost: true}
		diff := func(a, b compare.Of, parts compare.Parts) *compare.Diff {
			d, err := compare.New(t.Context(), r.store, a, b, parts)
			if err != nil {
				t.Fatal(err)
			}
			return d
		}
		of := func(row *stint.Row, loop int) compare.Of { return compare.Of{Row: row, Line: -1, Loop: loop} }
		golden(t, "sessions", text(t, diff(of(ana, 0), of(ben, 0), all)))
		golden(t, "loops", text(t, diff(of(ana, 1), of(ana, 2), all)), text(t, diff(of(ana, 1), of(ben, 1), all)),
			text(t, diff(of(ana, 2), of(ben, 2), compare.Parts{Text: true})), text(t, diff(of(ana, 2), of(ben, 2), compare.Parts{State: true})),
			text(t, diff(of(ana, 3), of(ana, 4), compare.Parts{Cost: true})))
		b, err := json.MarshalIndent(diff(of(ana, 2), of(ben, 2), compare.Parts{Calls: true}), "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		golden(t, "calls", strings.NewReplacer(ana.Session.ID.String(), "A", ben.Session.ID.String(), "B", ana.Short, "aaaa", ben.Short, "bbbb").Replace(string(b)))
		if d := diff(of(ana, 0), of(ana, 0), all); !d.Same || d.Compared != 4 || len(d.Loops) != 0 {
			t.Errorf("a session differs from itself: %+v", d)
		}
		for _, c := range []struct {
			a, b compare.Of
			code stint.Code
		}{
			{of(ana, 1), of(ben, 0), stint.Invalid},
			{of(ana, 5), of(ben, 1), stint.NotFound},
			{of(ana, 1), of(ben, 4), stint.NotFound},
			{compare.Of{Row: ana, Line: 1}, of(ben, 0), stint.NotFound},
		} {
			if _, err := compare.New(t.Context(), r.store, c.a, c.b, all); stint.CodeOf(err) != c.code {
				t.Errorf("%+v and %+v: %v, want %s", c.a, c.b, err, c.code)
			}
		}
	})
}

// A branch is compared with its parent from where it went its own way.
func TestDiffOfABranch(t *testing.T) {
	inBubble(t, func(r *rig) {
		fn := order("ana")
		parent := r.run("ana", fn)
		agent := engine.Agent{Name: "a", Loop: stint.AgentFunc(fn)}
		e, err := engine.New(r.t.Context(), r.store, engine.Options{Agents: []engine.Agent{agent}})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		from := 2
		c, err := e.Branch(r.t.Context(), parent.Session.ID, engine.Branch{From: &from, Actor: "human:ana"})
		if err != nil {
			t.Fatal(err)
		}
		if s, err := e.Run(r.t.Context(), c.ID); err != nil || s.Status != stint.Completed {
			t.Fatalf("%s, %v", s.Status, err)
		}
		branch := r.row(c.ID)
		d, err := compare.New(r.t.Context(), r.store, compare.Of{Row: parent, Line: -1}, compare.Of{Row: branch, Line: -1}, compare.Parts{State: true, Calls: true, Text: true})
		if err != nil || !d.Same || d.Compared != 2 || !strings.Contains(text(t, d), "Loops 3 to 4 are the same") {
			t.Errorf("%+v, %v", d, err)
		}
		f, err := compare.Bisect(r.t.Context(), r.store, compare.Of{Row: branch, Line: -1}, compare.Want{Pointer: "/page", Value: json.RawMessage("4")})
		if err != nil || f.Loop != 4 {
			t.Errorf("%+v, %v", f, err)
		}
	})
}

// Inputs are the same if they are as JSON, and a tool that gives what is on record has no
// effect of its own.
func TestInputsAreJSON(t *testing.T) {
	inBubble(t, func(r *rig) {
		pays := func(effect stint.Effect, input string) stint.AgentFunc {
			return func(ctx context.Context, l stint.Loop) (stint.Next, error) {
				does(ctx, l, stint.Step{Name: "pay", Kind: stint.Tool, Effect: effect, Input: json.RawMessage(input)}, `"paid"`, nil)
				return stint.Next{End: &stint.End{}}, nil
			}
		}
		was := r.run("was", pays(stint.Once, `{"to":"ana","amount":7}`))
		is := r.run("is", pays(stint.Read, `{"amount": 7, "to": "ana"}`))
		other := r.run("other", pays(stint.Once, `{"amount":7.0,"to":"ana"}`))
		for _, c := range []struct {
			b    compare.Of
			same bool
		}{{compare.Of{Row: is, Line: -1, Quoted: true}, true}, {compare.Of{Row: is, Line: -1}, false}, {compare.Of{Row: other, Line: -1}, false}} {
			d, err := compare.New(t.Context(), r.store, compare.Of{Row: was, Line: -1}, c.b, compare.Parts{Calls: true})
			if err != nil || d.Same != c.same {
				t.Errorf("%s, %+v: %+v, %v", c.b.Row.Session.Name, c.b.Quoted, d, err)
			}
		}
	})
}
