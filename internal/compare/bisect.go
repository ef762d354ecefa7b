package compare

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"sort"
	"strconv"
	"strings"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/term"
	"github.com/stint-dev/stint/journal"
)

// BisectSchema names the JSON of a [Found].
const BisectSchema = "stint.bisect/1"

// Want is what is looked for in the states of a session.
type Want struct {
	Pointer string          // JSON pointer (RFC 6901); empty: the whole state
	Value   json.RawMessage // the value there; nil: any
	Changed bool            // another value than one loop before
	// Monotone says that a loop that has it is followed by such loops alone: then few
	// states are read, of which the first is sought by halves.
	Monotone bool
}

// Found is the first loop at whose end a state has what was looked for.
type Found struct {
	Schema   string          `json:"schema"`
	Session  stint.ID        `json:"session"`
	Name     string          `json:"name"`
	Short    string          `json:"short"`
	Line     int             `json:"line"`
	Pointer  string          `json:"pointer"`
	Loop     int             `json:"loop"`
	Value    json.RawMessage `json:"value"`  // at its end
	Has      bool            `json:"has"`    // there is one
	Before   json.RawMessage `json:"before"` // at the end of the loop before; null if there was none
	Had      bool            `json:"had"`    // there was one
	Headline string          `json:"headline"`
	Step     *LastStep       `json:"step"`    // the newest that ended in the loop; null if none did
	Visited  int             `json:"visited"` // states that were looked at
	Next     []string        `json:"next"`    // commands that make sense now
}

// LastStep is the step that ended last before a checkpoint.
type LastStep struct {
	Step   string         `json:"step"`
	Name   string         `json:"name"`
	Kind   stint.StepKind `json:"kind"`
	Effect stint.Effect   `json:"effect"`
}

// Bisect finds the first completed loop of a line, -1 for the current one, at whose end the
// state has what is wanted. Errors: [stint.Invalid] for a pointer that is none;
// [stint.NotFound] if there is no such loop; those of the reads.
func Bisect(ctx context.Context, src Source, of Of, want Want) (*Found, error) {
	path, err := parsePointer(want.Pointer)
	if err != nil {
		return nil, err
	}
	if want.Monotone && want.Changed {
		return nil, &stint.Error{Code: stint.Invalid, Op: "bisect", Err: errors.New("a value that changes is sought from loop to loop"), Hint: "leave --assume-monotone out"}
	}
	r, err := open(ctx, src, of)
	if err != nil {
		return nil, err
	}
	n := 0
	for n < len(r.loops) && r.loops[n].Completed() {
		n++
	}
	s := &seeker{r: r, path: path, want: want}
	at, err := s.seek(n)
	if err != nil {
		return nil, err
	}
	if at == n {
		return nil, s.missing(n)
	}
	return s.found(ctx, at)
}

// seeker looks at the states of a line.
type seeker struct {
	r       *reader
	path    []string
	want    Want
	visited int
}

// value is the value at the end of the loop at place i; found is false for none.
func (s *seeker) value(i int) (v json.RawMessage, found bool, err error) {
	if i < 0 {
		return nil, false, nil
	}
	s.visited++
	state, err := s.r.states.At(s.r.loops[i].Checkpoint)
	if err != nil {
		return nil, false, err
	}
	v, found = resolve(state, s.path)
	return v, found, nil
}

// seek returns the place of the first loop that has it; n: there is none.
func (s *seeker) seek(n int) (int, error) {
	var last json.RawMessage
	had := false
	has := func(i int) (bool, error) {
		v, found, err := s.value(i)
		switch {
		case err != nil:
			return false, err
		case s.want.Changed:
			was, then := last, had
			last, had = v, found
			return i > 0 && (then != found || found && !equalJSON(was, v)), nil
		case s.want.Value != nil:
			return found && equalJSON(v, s.want.Value), nil
		}
		return found, nil
	}
	if s.want.Monotone {
		var failed error
		at := sort.Search(n, func(i int) bool {
			ok, err := has(i)
			failed = errors.Join(failed, err)
			return ok
		})
		return at, failed
	}
	for i := range n {
		if ok, err := has(i); ok || err != nil {
			return i, err
		}
	}
	return n, nil
}

func (s *seeker) missing(n int) error {
	what := fmt.Sprintf("has %s", s.want.describe())
	if n == 0 {
		return &stint.Error{Code: stint.NotFound, Op: "bisect", Session: s.r.Session, Err: errors.New("no loop is completed yet"), Hint: "stint show " + s.r.Short + " says how it stands"}
	}
	return &stint.Error{Code: stint.NotFound, Op: "bisect", Session: s.r.Session, Err: fmt.Errorf("no state at the end of loops %d to %d %s", s.r.first(), s.r.first()+n-1, what),
		Hint: "stint show " + s.r.Short + " --state  prints the newest state"}
}

// describe is what is wanted, in words.
func (w *Want) describe() string {
	at := w.Pointer
	if at == "" {
		at = "(all)"
	}
	switch {
	case w.Changed:
		return "another value of " + at + " than the loop before"
	case w.Value != nil:
		return at + " = " + string(w.Value)
	}
	return at
}

func (s *seeker) found(ctx context.Context, at int) (*Found, error) {
	l := &s.r.loops[at]
	f := &Found{Schema: BisectSchema, Session: s.r.Session, Name: s.r.Name, Short: s.r.Short, Line: s.r.Line, Pointer: s.want.Pointer, Loop: l.Number, Headline: l.Headline}
	f.Visited = s.visited
	var err error
	if f.Value, f.Has, err = s.value(at); err != nil {
		return nil, err
	}
	if f.Before, f.Had, err = s.value(at - 1); err != nil {
		return nil, err
	}
	if f.Step, err = s.r.lastStep(ctx, l); err != nil {
		return nil, err
	}
	to := fmt.Sprintf("%s:%d", f.Short, f.Loop)
	if f.Step != nil {
		to = f.Short + ":" + f.Step.Step
	}
	f.Next = []string{"stint logs " + to + " --content"}
	if f.Loop > s.r.first() {
		f.Next = append(f.Next, fmt.Sprintf("stint diff %s %d %d", s.r.address(), f.Loop-1, f.Loop))
	}
	if !s.r.older {
		f.Next = append(f.Next, fmt.Sprintf("stint restart %s --from %d --dry-run", f.Short, f.Loop-1))
	}
	return f, nil
}

// address names the line, unless it is the one that is meant without a word.
func (r *reader) address() string {
	if r.older {
		return fmt.Sprintf("%s/%d", r.Short, r.Line)
	}
	return r.Short
}

// lastStep is the step that ended last in a loop; nil: none did.
func (r *reader) lastStep(ctx context.Context, l *journal.Loop) (*LastStep, error) {
	kinds := []stint.Kind{stint.StepCompleted, stint.StepFailed}
	es, err := r.src.Entries(ctx, stint.Range{Session: r.Session, After: l.Start, Until: l.End, Kinds: kinds, Last: true, Limit: 1})
	if err != nil || len(es) == 0 || es[0].Erased {
		return nil, err
	}
	d, err := journal.Decode[journal.StepDone](&es[0])
	return &LastStep{Step: es[0].Pos.String(), Name: d.Name, Kind: d.Kind, Effect: d.Effect}, err
}

// Write writes it for people.
func (f *Found) Write(w io.Writer) error {
	var b strings.Builder
	at := f.Pointer
	if at == "" {
		at = "(all)"
	}
	fmt.Fprintf(&b, "Loop %d of %s (%s) is the first: %s\n", f.Loop, term.Line(f.Name), f.Short, term.Line(at))
	show := func(v json.RawMessage) string { return term.Cut(term.Line(string(v)), 200) }
	was := "(none)"
	if f.Had {
		was = show(f.Before)
	}
	is := "(none)"
	if f.Has {
		is = show(f.Value)
	}
	fmt.Fprintf(&b, "  before    %s\n  then      %s\n", was, is)
	if f.Step != nil {
		fmt.Fprintf(&b, "  step      %s %s %s (%s) ended last before it\n", f.Step.Step, f.Step.Kind, term.Line(f.Step.Name), f.Step.Effect)
	}
	if f.Headline != "" {
		fmt.Fprintf(&b, "  headline  %s\n", term.Line(f.Headline))
	}
	for _, c := range f.Next {
		fmt.Fprintf(&b, "  %s\n", c)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// parsePointer splits a JSON pointer into its tokens.
func parsePointer(p string) ([]string, error) {
	if p == "" {
		return nil, nil
	}
	bad := func(why string) error {
		return &stint.Error{Code: stint.Invalid, Op: "bisect", Err: fmt.Errorf("%q is no JSON pointer: %s", p, why),
			Hint: "write /member/0/name; ~1 is a slash in a name and ~0 a tilde; an empty one is the whole state"}
	}
	if p[0] != '/' {
		return nil, bad("it does not begin with a slash")
	}
	tokens := strings.Split(p[1:], "/")
	for i, t := range tokens {
		for rest := t; ; {
			_, after, found := strings.Cut(rest, "~")
			if !found {
				break
			}
			if after == "" || after[0] != '0' && after[0] != '1' {
				return nil, bad("after ~ comes 0 or 1")
			}
			rest = after[1:]
		}
		tokens[i] = strings.ReplaceAll(strings.ReplaceAll(t, "~1", "/"), "~0", "~")
	}
	return tokens, nil
}

// resolve returns the value at a path, byte for byte.
func resolve(state json.RawMessage, path []string) (json.RawMessage, bool) {
	if len(state) == 0 {
		return nil, false
	}
	for _, t := range path {
		switch first := strings.TrimLeft(string(state[:min(len(state), 64)]), " \t\r\n"); {
		case strings.HasPrefix(first, "{"):
			var m map[string]json.RawMessage
			if json.Unmarshal(state, &m) != nil {
				return nil, false
			}
			v, ok := m[t]
			if !ok {
				return nil, false
			}
			state = v
		case strings.HasPrefix(first, "["):
			var a []json.RawMessage
			n, err := strconv.Atoi(t)
			if err != nil || n < 0 || strconv.Itoa(n) != t || json.Unmarshal(state, &a) != nil || n >= len(a) {
				return nil, false
			}
			state = a[n]
		default:
			return nil, false
		}
	}
	return state, true
}

// equalJSON reports whether two values are the same, however they are written. Numbers are
// the same if their digits are.
func equalJSON(a, b json.RawMessage) bool {
	var sides [2]any
	for i, side := range []json.RawMessage{a, b} {
		d := json.NewDecoder(strings.NewReader(string(side)))
		d.UseNumber()
		if d.Decode(&sides[i]) != nil {
			return string(a) == string(b)
		}
	}
	return reflect.DeepEqual(sides[0], sides[1])
}

// ParseWant reads POINTER or POINTER=VALUE; a value that is not JSON is a text.
func ParseWant(s string) (Want, error) {
	p, v, given := strings.Cut(s, "=")
	w := Want{Pointer: p}
	if given {
		if w.Value = json.RawMessage(v); !json.Valid(w.Value) {
			b, err := stint.Marshal(v)
			if err != nil {
				return w, err
			}
			w.Value = b
		}
	}
	_, err := parsePointer(p)
	return w, err
}
