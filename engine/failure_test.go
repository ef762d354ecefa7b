package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/internal/ident"
	"github.com/stint-dev/stint/journal"
)

// seen is all that an agent can see of an outcome.
func seen(res stint.Result, err error) string {
	if err == nil {
		return fmt.Sprintf("%s %+v", res.Data, res.Usage)
	}
	var e *stint.Error
	hint := ""
	if errors.As(err, &e) {
		hint = e.Hint
	}
	after, final, definite := steer(err)
	return fmt.Sprintf("%q code %s hint %q is not-found %v, fenced %v; after %v final %v definite %v; beside it %s %+v",
		err.Error(), stint.CodeOf(err), hint, errors.Is(err, stint.NotFound), errors.Is(err, stint.Fenced), after, final, definite, res.Data, res.Usage)
}

// steer reads errors as the engine does.
func steer(err error) (after time.Duration, final, definite bool) {
	for err != nil {
		var s interface {
			error
			Steer() (time.Duration, bool, bool)
		}
		if !errors.As(err, &s) {
			break
		}
		a, f, d := s.Steer()
		after, final, definite = max(after, a), final || f, definite || d
		err = errors.Unwrap(s)
	}
	return after, final, definite
}

// sees runs a step that gives an outcome, and then again from the journal; it returns
// what the agent saw each time.
func sees(t *testing.T, effect stint.Effect, group bool, res stint.Result, fails error) (looks []string) {
	t.Helper()
	inBubble(t, func(r *rig) {
		a := agent("a", func(ctx context.Context, l stint.Loop) (stint.Next, error) {
			s := stint.Step{Name: "tool", Kind: stint.Tool, Effect: effect}
			var got stint.Result
			var err error
			if group {
				var all []stint.Result
				all, err = l.DoAll(ctx, []stint.Step{s, s}, func(context.Context, int, string) (stint.Result, error) { return res, fails })
				var m interface{ Members() []error }
				if got = all[1]; errors.As(err, &m) {
					err = m.Members()[1]
				}
			} else {
				got, err = l.Do(ctx, s, func(context.Context, string) (stint.Result, error) { return res, fails })
			}
			if looks = append(looks, seen(got, err)); len(looks) < 3 {
				return stint.Next{}, errBoom
			}
			return stint.Next{End: &stint.End{}}, nil
		})
		n := r.serve(engine.Options{Agents: []engine.Agent{a}, Holder: "r1"})
		id := r.start(n.Engine, a, "")
		r.settles(id, stint.Completed)
		n.stop()
		r.verifies(id)
	})
	return looks
}

// TestAnErrorIsTheSameWhenItIsReplayed is the shapes that errors have.
func TestAnErrorIsTheSameWhenItIsReplayed(t *testing.T) {
	long := strings.Repeat("no rule to make target\n", 1000)
	hinted := stint.NotFound.Errorf("open", "there is no such file\nnor directory")
	hinted.Hint, hinted.Session = "make it", ident.New()
	for name, err := range map[string]error{
		"of one line":               errors.New("no"),
		"of several lines":          errors.New("exit status 1\nmake: *** no rule to make target 'all'"),
		"that begins with no line":  errors.New("\n\n  what?\n"),
		"of white space":            errors.New(" \n\t"),
		"without a text":            errors.New(""),
		"long":                      errors.New(long),
		"longer than is kept":       errors.New(strings.Repeat("é", 100_000)),
		"not UTF-8":                 errors.New("caf\xe9 is \xff\xfe closed"),
		"longer, and not UTF-8":     errors.New("a" + strings.Repeat("\xe9", 100_000)),
		"with NUL and controls":     errors.New("\x00\x1b[31m\u2028</script>&amp;"),
		"of the operating system":   &fs.PathError{Op: "open", Path: "x", Err: fs.ErrNotExist},
		"with a code":               stint.NotFound.Errorf("open", "no such file"),
		"a code alone":              stint.Fenced,
		"with a hint and a session": hinted,
		"a code inside":             fmt.Errorf("reading it: %w", hinted),
		"a code that is none":       &stint.Error{Code: stint.Code(strings.Repeat("\xe9", 5000)), Hint: strings.Repeat("h\n", 5000)},
		"two":                       errors.Join(errBoom, hinted, stint.Fenced),
		"one to try again":          stint.Retry(time.Hour, hinted),
		"a final one":               stint.Fail(hinted),
		"all of it":                 stint.Fail(stint.Retry(time.Second, fmt.Errorf("%s %w", long, hinted))),
	} {
		t.Run(name, func(t *testing.T) {
			for _, effect := range []stint.Effect{stint.Read, stint.Idempotent, stint.Once} {
				for _, group := range []bool{false, true} {
					looks := sees(t, effect, group, stint.Result{}, stint.Definite(err))
					for i, look := range looks {
						if look != looks[0] {
							t.Errorf("%s: at first the agent saw\n%.500s\nin attempt %d\n%.500s", effect, looks[0], i+1, look)
						}
					}
				}
			}
		})
	}
}

// TestWhatAnErrorKeeps is what of it the agent gets.
func TestWhatAnErrorKeeps(t *testing.T) {
	hinted := stint.NotFound.Errorf("open", "no such file")
	hinted.Hint = "make it"
	for name, c := range map[string]struct {
		err  error
		want []string
	}{
		"all lines":        {errors.New("one\ntwo"), []string{`"one\ntwo"`}},
		"64 KiB":           {errors.New(strings.Repeat("x", 64<<10)), []string{`xxx"`}},
		"a cut that shows": {errors.New(strings.Repeat("x", 64<<10+1)), []string{"x… (cut here: 65537 bytes in all)"}},
		"code and hint":    {fmt.Errorf("reading: %w", hinted), []string{`"reading: open: no such file"`, "code not_found", `hint "make it"`, "not-found true", "fenced false", "definite true"}},
		"what to do":       {stint.Retry(time.Minute, stint.Fail(errBoom)), []string{"after 1m0s", "final true"}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, look := range sees(t, stint.Read, false, stint.Result{}, stint.Definite(c.err)) {
				for _, want := range c.want {
					if !strings.Contains(look, want) {
						t.Errorf("%s is not in %.300s", want, look)
					}
				}
			}
		})
	}
}

// TestLiveEqualsReplay is any outcome.
func TestLiveEqualsReplay(t *testing.T) {
	text := rapid.OneOf(
		rapid.String(),
		rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }),
		rapid.Map(rapid.IntRange(0, 80_000), func(n int) string { return strings.Repeat("a line\n", n/7) }),
	)
	rapid.Check(t, func(rt *rapid.T) {
		effect := rapid.SampledFrom([]stint.Effect{stint.Read, stint.Idempotent, stint.Once}).Draw(rt, "effect")
		res := stint.Result{Usage: stint.Usage{Input: rapid.Int64Range(0, 9).Draw(rt, "usage")}}
		res.Data = json.RawMessage(rapid.SampledFrom([]string{"", " {} ", `"x"`, "{"}).Draw(rt, "data"))
		if len(res.Data) == 0 {
			res.Data = nil
		}
		var err error
		if rapid.Bool().Draw(rt, "fails") {
			err = errors.New(text.Draw(rt, "text"))
			for _, by := range rapid.SliceOfN(rapid.IntRange(0, 4), 0, 4).Draw(rt, "wrapped") {
				switch by {
				case 0:
					err = fmt.Errorf("%s: %w", text.Draw(rt, "around"), err)
				case 1:
					err = &stint.Error{Code: rapid.SampledFrom([]stint.Code{stint.NotFound, stint.Internal, ""}).Draw(rt, "code"), Op: "op", Err: err, Hint: text.Draw(rt, "hint")}
				case 2:
					err = stint.Retry(time.Duration(rapid.IntRange(0, 99).Draw(rt, "after")), err)
				case 3:
					err = stint.Fail(err)
				case 4:
					err = errors.Join(err, stint.Fenced)
				}
			}
			err = stint.Definite(err)
		}
		looks := sees(t, effect, rapid.Bool().Draw(rt, "group"), res, err)
		for _, look := range looks {
			if look != looks[0] || !utf8.ValidString(look) {
				rt.Fatalf("the agent saw first\n%.500s\nand then\n%.500s", looks[0], look)
			}
		}
	})
}

// TestTheLineOfAnError is what lists show of it, and that a reason carries the cause
// and nothing else.
func TestTheLineOfAnError(t *testing.T) {
	id := ident.New()
	refused := &stint.Error{Code: stint.Unavailable, Op: "exec protocol", Session: id, Err: errors.New("the program ended\nin the middle"), Hint: "look at its log"}
	for name, c := range map[string]struct {
		err        error
		line, hint string
	}{
		"one line":               {errors.New("no"), "no", ""},
		"the first of several":   {errors.New("\n\n one \ntwo"), "one", ""},
		"nothing":                {errors.New(" \n "), "an error that says nothing", ""},
		"a long one":             {errors.New(strings.Repeat("é", 600)), strings.Repeat("é", 500) + "…", ""},
		"not UTF-8":              {errors.New("caf\xe9"), "caf\uFFFD", ""},
		"an operation":           {refused, "the program ended", "look at its log"},
		"an operation inside":    {fmt.Errorf("loop 3: %w", refused), "loop 3: the program ended", "look at its log"},
		"operations in each":     {&stint.Error{Code: stint.Invalid, Op: "drive", Session: id, Err: refused}, "the program ended", "look at its log"},
		"a code without a cause": {&stint.Error{Code: stint.Fenced, Op: "append", Session: id}, "fenced", ""},
		"a step":                 {&stint.Error{Code: stint.Limit, Op: "step pay", Session: id, Err: errors.New("too large")}, "step pay: too large", ""},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(r *rig) {
				a := agent("a", func(ctx context.Context, l stint.Loop) (stint.Next, error) {
					if _, err := l.Do(ctx, stint.Step{Name: "x", Effect: stint.Read}, func(context.Context, string) (stint.Result, error) {
						return stint.Result{}, stint.Definite(c.err)
					}); err == nil {
						t.Error("the step gave no error")
					}
					return stint.Next{}, stint.Fail(c.err)
				})
				n := r.serve(engine.Options{Agents: []engine.Agent{a}, Holder: "r1"})
				id := r.start(n.Engine, a, "")
				s := r.settles(id, stint.Failed)
				n.stop()
				if s.Reason != c.line {
					t.Errorf("the reason is %q", s.Reason)
				}
				for _, e := range r.entries(id) {
					var line, hint string
					switch e.Kind {
					case stint.StepFailed:
						d, err := journal.Decode[journal.StepDone](&e)
						if err != nil {
							t.Fatal(err)
						}
						line, hint = d.Error, c.hint
					case stint.LoopFailed:
						d, err := journal.Decode[journal.LoopFailed](&e)
						if err != nil {
							t.Fatal(err)
						}
						line, hint = d.Error, d.Hint
					case stint.SessionEnded:
						d, err := journal.Decode[journal.Ended](&e)
						if err != nil {
							t.Fatal(err)
						}
						line, hint = d.Reason, d.Hint
					default:
						continue
					}
					if line != c.line || hint != c.hint {
						t.Errorf("%s has %q with the hint %q", e.Kind, line, hint)
					}
				}
			})
		})
	}
}

// TestAttemptsInWords is the reason of a session that gave up.
func TestAttemptsInWords(t *testing.T) {
	for attempts, want := range map[int]string{
		1: "loop 1 failed at its only attempt: boom",
		2: "2 attempts of loop 1 failed, the last: boom",
	} {
		inBubble(t, func(r *rig) {
			a := agent("a", func(context.Context, stint.Loop) (stint.Next, error) { return stint.Next{}, errBoom })
			a.Retry.Attempts = attempts
			n := r.serve(engine.Options{Agents: []engine.Agent{a}, Holder: "r1"})
			id := r.start(n.Engine, a, "")
			if s := r.settles(id, stint.Failed); s.Reason != want {
				t.Errorf("after %d: %s", attempts, s.Reason)
			}
			n.stop()
		})
	}
}
