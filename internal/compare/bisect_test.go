package compare_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/compare"
)

// wander is an agent whose state has what states says, loop by loop.
func wander(states ...string) stint.AgentFunc {
	return func(ctx context.Context, l stint.Loop) (stint.Next, error) {
		n := l.Session().At.Loop
		does(ctx, l, stint.Step{Name: fmt.Sprintf("walk-%d", n), Kind: stint.Tool, Effect: stint.Read}, "1", nil)
		next := stint.Next{Headline: fmt.Sprintf("at %d", n)}
		if s := states[n-1]; s != "" {
			next.State = json.RawMessage(s)
		}
		if n == len(states) {
			next.End = &stint.End{}
		}
		return next, nil
	}
}

func TestBisect(t *testing.T) {
	inBubble(t, func(r *rig) {
		row := r.run("w", wander("", `{"a":{"b":[1,{"c/d":true}]}}`, `{"a":{"b":[1]},"n":12345678901234567890}`, `{"a":{"b":[2]}, "n":1}`, `{"a":null}`, `{"a":{"b":[1]}}`))
		for _, c := range []struct {
			want string
			opt  compare.Want
			loop int // 0: there is none
		}{
			{want: "/a", loop: 2},
			{want: "", loop: 2},
			{want: "/a/b/0=2", loop: 4},
			{want: "/a/b/0=1", loop: 2},
			{want: "/a/b/1/c~1d", loop: 2},
			{want: "/a/b/1/c~1d=false"},
			{want: "/a/b/01"},
			{want: "/a/b/-"},
			{want: "/n", loop: 3},
			{want: "/n=12345678901234567890", loop: 3},
			{want: "/n=12345678901234567891"},
			{want: "/a=null", loop: 5},
			{want: `={"a": null}`, loop: 5},
			{want: "/a/b", opt: compare.Want{Changed: true}, loop: 2},
			{want: "/n", opt: compare.Want{Changed: true}, loop: 3},
			{want: "/zz", opt: compare.Want{Changed: true}},
		} {
			want, err := compare.ParseWant(c.want)
			if err != nil {
				t.Fatal(err)
			}
			want.Changed = c.opt.Changed
			f, err := compare.Bisect(t.Context(), r.store, compare.Of{Row: row, Line: -1}, want)
			switch {
			case c.loop == 0 && stint.CodeOf(err) != stint.NotFound:
				t.Errorf("%s: found %+v, %v", c.want, f, err)
			case c.loop == 0:
			case err != nil || f.Loop != c.loop || f.Visited != c.loop:
				t.Errorf("%s: %+v, %v, want loop %d", c.want, f, err, c.loop)
			case f.Headline != fmt.Sprintf("at %d", c.loop) || f.Step == nil || f.Step.Name != fmt.Sprintf("walk-%d", c.loop) || f.Step.Step != fmt.Sprintf("%d.1", c.loop):
				t.Errorf("%s: %+v ended last in %+v", c.want, f.Step, f)
			}
		}
		for _, bad := range []string{"a", "/~", "/a~2", "/x~/y"} {
			if _, err := compare.ParseWant(bad); stint.CodeOf(err) != stint.Invalid {
				t.Errorf("%q is a pointer: %v", bad, err)
			}
		}
		f, err := compare.Bisect(t.Context(), r.store, compare.Of{Row: row, Line: -1}, compare.Want{Pointer: "/a/b/0", Value: json.RawMessage("2")})
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		if err := f.Write(&b); err != nil {
			t.Fatal(err)
		}
		golden(t, "bisect", strings.ReplaceAll(b.String(), row.Short, "aaaa"))
	})
}

// A value that stays is found with few looks, and where it is.
func TestBisectMonotone(t *testing.T) {
	inBubble(t, func(r *rig) {
		var states []string
		for n := 1; n <= 200; n++ {
			states = append(states, fmt.Sprintf(`{"n":%d,"late":%v}`, n, n >= 137))
		}
		row := r.run("w", wander(states...))
		for _, monotone := range []bool{false, true} {
			f, err := compare.Bisect(t.Context(), r.store, compare.Of{Row: row, Line: -1}, compare.Want{Pointer: "/late", Value: json.RawMessage("true"), Monotone: monotone})
			if err != nil || f.Loop != 137 || string(f.Before) != "false" {
				t.Fatalf("monotone %v: %+v, %v", monotone, f, err)
			}
			if most := map[bool]int{false: 137, true: 9}[monotone]; f.Visited > most {
				t.Errorf("monotone %v: it looked at %d states", monotone, f.Visited)
			}
		}
	})
}
