package compare

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/past"
	"github.com/stint-dev/stint/journal"
	"github.com/stint-dev/stint/policy"
)

// Source is what is read.
type Source interface {
	stint.Reader
	stint.Blobs
}

// Of names one side: a session, a line of it, -1 for the current one, and a loop, 0 for
// all of them. The tools of one that is quoted are not called: they give what is on record
// of another session.
type Of struct {
	Row    *stint.Row
	Line   int
	Loop   int
	Quoted bool
}

// reader reads the loops of one side.
type reader struct {
	Side
	src    Source
	family stint.ID
	loops  []journal.Loop
	states *past.Walk
	older  bool // the session has left the line
	quoted bool // as in [Of]
}

// New compares two loops, or where neither side names one two sessions, loop by loop.
// Errors: [stint.Invalid] where one side names a loop and the other none; [stint.NotFound]
// for a line or a loop that there is not; those of the reads.
func New(ctx context.Context, src Source, a, b Of, parts Parts) (*Diff, error) {
	if (a.Loop == 0) != (b.Loop == 0) {
		return nil, &stint.Error{Code: stint.Invalid, Op: "diff", Err: errors.New("one side is a loop and the other a whole session"),
			Hint: "stint diff SESSION:LOOP SESSION:LOOP, or two sessions without loops"}
	}
	x, err := open(ctx, src, a)
	if err != nil {
		return nil, err
	}
	y, err := open(ctx, src, b)
	if err != nil {
		return nil, err
	}
	d := &Diff{Schema: Schema, A: x.Side, B: y.Side, Parts: parts, Same: true, Loops: []Loop{}}
	if parts.Cost {
		d.Total = &Cost{}
	}
	pairs := [][2]int{{a.Loop, b.Loop}}
	if a.Loop == 0 {
		pairs = nil
		for n := max(x.first(), y.first()); n <= max(x.last(), y.last()); n++ {
			pairs = append(pairs, [2]int{n, n})
		}
	} else if err := cmp.Or(x.has(a.Loop), y.has(b.Loop)); err != nil {
		return nil, err
	}
	if len(pairs) > 0 {
		d.first = pairs[0][0]
	}
	for _, p := range pairs {
		if err := d.pair(ctx, x, y, p, parts); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// pair compares one pair of loops.
func (d *Diff) pair(ctx context.Context, x, y *reader, p [2]int, parts Parts) error {
	a, err := x.loop(ctx, p[0], parts)
	if err != nil {
		return err
	}
	b, err := y.loop(ctx, p[1], parts)
	if err != nil {
		return err
	}
	l, same := compareLoops(a, b, parts)
	if d.Compared++; !same {
		d.Same = false
		d.Loops = append(d.Loops, l)
	}
	if l.Cost != nil {
		d.Total.A.add(l.Cost.A)
		d.Total.B.add(l.Cost.B)
	}
	return nil
}

func open(ctx context.Context, src Source, of Of) (*reader, error) {
	s := &of.Row.Session
	loops, line, err := past.Course(ctx, src, s.ID, of.Line)
	if err != nil {
		return nil, err
	}
	return &reader{Side: Side{Session: s.ID, Name: s.Name, Short: of.Row.Short, Line: line}, src: src, family: s.Family, loops: loops,
		older: line != s.At.Line, quoted: of.Quoted,
		states: past.NewWalk(past.States(ctx, src, s.ID, s.Family))}, nil
}

// first and last are the numbers of the loops that there are. Those of a branch begin
// behind the loop that it branched off at.
func (r *reader) first() int {
	if len(r.loops) == 0 {
		return 1
	}
	return r.loops[0].Number
}

func (r *reader) last() int { return r.first() + len(r.loops) - 1 }

// has is [stint.NotFound] for a loop that there is not.
func (r *reader) has(n int) error {
	if n >= r.first() && n <= r.last() {
		return nil
	}
	what := "it has no loop yet"
	if len(r.loops) > 0 {
		what = fmt.Sprintf("it has the loops %d to %d", r.first(), r.last())
	}
	return &stint.Error{Code: stint.NotFound, Op: "diff", Session: r.Session, Err: fmt.Errorf("there is no loop %d on line %d; %s", n, r.Line, what),
		Hint: "stint show " + r.Short + " --all lists them"}
}

// loop reads a loop; nil: the side does not have it.
func (r *reader) loop(ctx context.Context, n int, parts Parts) (*loop, error) {
	if n < r.first() || n > r.last() {
		return nil, nil
	}
	l := &r.loops[n-r.first()]
	out := &loop{number: n, headline: l.Headline, figures: Figures{Loops: 1, Attempts: l.Attempts, Steps: l.Steps, Errors: l.Errors, Usage: l.Usage}}
	if !l.Ended.IsZero() {
		out.figures.MS = l.Ended.Sub(l.Began).Round(time.Millisecond).Milliseconds()
	}
	var err error
	if parts.State && l.Completed() {
		if out.state, err = r.states.At(l.Checkpoint); err != nil {
			return nil, err
		}
	}
	if parts.Calls || parts.Text {
		out.steps, err = r.steps(ctx, l)
	}
	return out, err
}

// stepPage is how many entries are read at a time.
const stepPage = 1000

// steps reads the steps of a loop, in the order of their places.
func (r *reader) steps(ctx context.Context, l *journal.Loop) ([]Step, error) {
	kinds := []stint.Kind{stint.StepRequested, stint.StepCompleted, stint.StepFailed, stint.StepResolved, stint.ApprovalRequested}
	steps, inputs := past.Steps{}, past.Inputs{}
	for after := l.Start; ; {
		es, err := r.src.Entries(ctx, stint.Range{Session: r.Session, After: after, Until: l.End, Kinds: kinds, Limit: stepPage})
		if err != nil {
			return nil, err
		}
		for i := range es {
			if es[i].Pos.Loop != l.Number || es[i].Pos.Line != l.Line || es[i].Erased {
				continue
			}
			inputs.Add(&es[i])
			if err := steps.Add(&es[i]); err != nil {
				return nil, err
			}
		}
		if len(es) < stepPage {
			break
		}
		after = es[len(es)-1].Seq
	}
	var out []Step
	for _, at := range slices.SortedFunc(maps.Keys(steps), func(a, b [2]int) int { return slices.Compare(a[:], b[:]) }) {
		s := steps[at]
		st, err := r.step(ctx, l.Number, s)
		if err != nil {
			return nil, err
		}
		if st.input, st.known, err = inputs.Of(ctx, r.src, r.family, at, s.Intent); gone(err) {
			st.known, err = false, nil
		}
		if err != nil {
			return nil, err
		}
		if same, err := policy.Canonical(st.input); st.known && len(st.input) > 0 && err == nil {
			st.means = past.InputSum(same)
		}
		out = append(out, st)
	}
	return out, nil
}

// step is a recorded step with what it gave.
func (r *reader) step(ctx context.Context, number int, s *past.Step) (Step, error) {
	at := stint.Position{Loop: number, Step: s.Step, Sub: s.Sub}
	out := Step{Step: at.String(), Name: s.Intent.Name, Kind: s.Intent.Kind, Effect: s.Intent.Effect, Hash: s.Intent.Input, Outcome: "none", quoted: r.quoted}
	switch {
	case s.Failed:
		out.Outcome, out.Error = "failed", s.Done.Error
	case s.Done != nil:
		out.Outcome = "completed"
	case s.Answered():
		out.Outcome = string(s.Verdict)
	}
	if s.Failed || !s.Answered() {
		return out, nil
	}
	res, err := s.Answer(func() (json.RawMessage, error) {
		if s.Blob.IsZero() {
			return s.Body, nil
		}
		return r.src.Blob(ctx, r.family, s.Blob)
	})
	switch {
	case gone(err):
		return out, nil
	case err != nil:
		return out, err
	}
	out.result = res.Data
	if said, ok := past.ReadAnswer(res.Data); ok && out.Kind == stint.Model {
		out.said, out.Calls = &said, said.Calls
	}
	return out, nil
}

// gone reports whether a body was erased.
func gone(err error) bool { return errors.Is(err, stint.NotFound) }
