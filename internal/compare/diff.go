package compare

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/past"
	"github.com/stint-dev/stint/journal"
)

// Schema names the JSON of a [Diff].
const Schema = "stint.diff/1"

// Parts are what of two loops is compared.
type Parts struct {
	State bool `json:"state"` // at their ends
	Calls bool `json:"calls"` // steps, what they were given and what they gave
	Text  bool `json:"text"`  // what a model said, or without one the headline
	Cost  bool `json:"cost"`  // steps, tokens, money and time
}

// Diff is how two loops, or two sessions loop by loop, differ.
type Diff struct {
	Schema   string `json:"schema"`
	A        Side   `json:"a"`
	B        Side   `json:"b"`
	Parts    Parts  `json:"parts"`
	Compared int    `json:"compared"` // pairs of loops; one that only one side has is a pair too
	Same     bool   `json:"same"`     // in all that was compared but time
	Loops    []Loop `json:"loops"`    // those that differ, in order
	// Total is what all loops that were compared used; nil if that was not asked.
	Total *Cost `json:"total"`

	first int // loop that was compared
}

// Side is one of the two that are compared.
type Side struct {
	Session stint.ID `json:"session"`
	Name    string   `json:"name"`
	Short   string   `json:"short"`
	Line    int      `json:"line"`
}

// Loop is how two loops differ. What is the same, or was not compared, is nil or empty.
type Loop struct {
	A        int                  `json:"a"` // its number; 0: this side has no such loop
	B        int                  `json:"b"`
	State    *journal.StateChange `json:"state"`
	Calls    []Call               `json:"calls"`      // at most 100
	CallMore int                  `json:"calls_more"` // beyond those
	Text     []Text               `json:"text"`       // at most 200 lines
	TextMore int                  `json:"text_more"`
	Cost     *Cost                `json:"cost"` // also where it is the same
}

// Op says on which side something is.
type Op string

// The operations that lead from a to b.
const (
	Removed Op = "-"
	Added   Op = "+"
	Changed Op = "~"
)

// Call is a step that is on one side alone, or was given or gave something else.
type Call struct {
	Op     Op                   `json:"op"`
	A      *Step                `json:"a"`
	B      *Step                `json:"b"`
	Input  *journal.StateChange `json:"input"`
	Result *journal.StateChange `json:"result"`
}

// Step is a step on one side.
type Step struct {
	Step    string         `json:"step"` // LOOP.STEP or LOOP.STEP.MEMBER
	Name    string         `json:"name"`
	Kind    stint.StepKind `json:"kind"`
	Effect  stint.Effect   `json:"effect"`
	Hash    string         `json:"input_hash"`
	Outcome string         `json:"outcome"` // completed, failed, happened, unknown, or none
	Error   string         `json:"error"`
	Calls   []string       `json:"calls,omitempty"` // that a model asked for, by name

	input  json.RawMessage
	known  bool   // input is it; else there is only its hash
	means  string // the hash of input in the form that equal values have; empty: not known
	result json.RawMessage
	said   *past.Answer // what a model said
	quoted bool         // it stands in a session whose tools are not called
}

// Text is a line that is on one side alone.
type Text struct {
	Op   Op     `json:"op"`
	Line string `json:"line"`
}

// Cost is what loops used.
type Cost struct {
	A Figures `json:"a"`
	B Figures `json:"b"`
}

// Figures are those of one side.
type Figures struct {
	Loops    int         `json:"loops"`
	Attempts int         `json:"attempts"`
	Steps    int         `json:"steps"`
	Errors   int         `json:"errors"`
	Usage    stint.Usage `json:"usage"`
	MS       int64       `json:"ms"` // from the beginning of a loop to its end, waits included
}

func (f *Figures) add(g Figures) {
	f.Loops += g.Loops
	f.Attempts += g.Attempts
	f.Steps += g.Steps
	f.Errors += g.Errors
	f.Usage = f.Usage.Add(g.Usage)
	f.MS += g.MS
}

// same is whether two sides used the same, whatever time they took.
func (f Figures) same(g Figures) bool {
	f.MS, g.MS = 0, 0
	return f == g
}

// Bounds of what is listed of one loop.
const (
	maxCalls = 100
	maxTexts = 200
)

// loop is one side of a pair of loops.
type loop struct {
	number   int
	steps    []Step
	headline string
	state    []byte
	figures  Figures
}

// compareLoops compares two loops; either may be nil. same is whether there is nothing
// that differs but time.
func compareLoops(a, b *loop, parts Parts) (out Loop, same bool) {
	if a == nil {
		a = &loop{}
	}
	if b == nil {
		b = &loop{}
	}
	out = Loop{A: a.number, B: b.number, Calls: []Call{}, Text: []Text{}}
	same = a.number > 0 && b.number > 0
	if parts.State && !bytes.Equal(a.state, b.state) {
		c := past.Compare(a.state, b.state)
		out.State, same = &c, false
	}
	if parts.Calls {
		out.Calls = compareSteps(a.steps, b.steps)
		if n := len(out.Calls); n > maxCalls {
			out.Calls, out.CallMore = out.Calls[:maxCalls], n-maxCalls
		}
		same = same && len(out.Calls) == 0
	}
	if parts.Text {
		out.Text = compareTexts(a.texts(), b.texts())
		if n := len(out.Text); n > maxTexts {
			out.Text, out.TextMore = out.Text[:maxTexts], n-maxTexts
		}
		same = same && len(out.Text) == 0
	}
	if parts.Cost {
		out.Cost = &Cost{A: a.figures, B: b.figures}
		same = same && a.figures.same(b.figures)
	}
	return out, same
}

// compareSteps lists what differs. Steps that were given the same belong together; of the
// rest, those of one name.
func compareSteps(a, b []Step) []Call {
	out := []Call{}
	twin := func(s, t *Step) bool { return s.Name == t.Name && s.Kind == t.Kind }
	equal := func(i, j int) bool {
		return twin(&a[i], &b[j]) && sameEffect(&a[i], &b[j]) && sameInput(&a[i], &b[j])
	}
	pair := func(i, j int) {
		if c := comparePair(&a[i], &b[j]); c != nil {
			out = append(out, *c)
		}
	}
	gaps(len(a), len(b), align(len(a), len(b), equal), func(i0, i1, j0, j1 int) {
		pairs := align(i1-i0, j1-j0, func(i, j int) bool { return twin(&a[i0+i], &b[j0+j]) })
		gaps(i1-i0, j1-j0, pairs, func(p0, p1, q0, q1 int) {
			for i := range a[i0+p0 : i0+p1] {
				out = append(out, Call{Op: Removed, A: &a[i0+p0+i]})
			}
			for j := range b[j0+q0 : j0+q1] {
				out = append(out, Call{Op: Added, B: &b[j0+q0+j]})
			}
		}, func(i, j int) { pair(i0+i, j0+j) })
	}, pair)
	return out
}

// sameEffect is whether two steps have the same class. A tool that is not called has no
// effect, whatever that of the other side is.
func sameEffect(a, b *Step) bool {
	return a.Effect == b.Effect || a.Kind == stint.Tool && (a.quoted || b.quoted)
}

// sameInput is whether two steps were given the same, as JSON: two models write the members
// of what they ask for in orders of their own.
func sameInput(a, b *Step) bool {
	return a.Hash == b.Hash || a.means != "" && a.means == b.means
}

// comparePair compares two steps that belong together; nil: they are the same.
func comparePair(a, b *Step) *Call {
	c := &Call{Op: Changed, A: a, B: b}
	differs := !sameEffect(a, b) || !sameInput(a, b) || a.Outcome != b.Outcome || a.Error != b.Error
	if !sameInput(a, b) && a.known && b.known {
		in := past.Compare(a.input, b.input)
		c.Input = &in
	}
	switch {
	case a.said != nil && b.said != nil: // words are compared as text
		differs = differs || !slices.Equal(a.Calls, b.Calls) || a.said.Stop != b.said.Stop
	case !bytes.Equal(a.result, b.result):
		res := past.Compare(a.result, b.result)
		c.Result, differs = &res, true
	}
	if !differs {
		return nil
	}
	return c
}

// texts are the lines that a model said, or without one the headline.
func (l *loop) texts() []string {
	var out []string
	for i := range l.steps {
		if said := l.steps[i].said; said != nil {
			out = append(out, strings.Split(strings.TrimSpace(said.Text), "\n")...)
		}
	}
	if out == nil && l.headline != "" {
		out = []string{l.headline}
	}
	return out
}

func compareTexts(a, b []string) []Text {
	out := []Text{}
	gaps(len(a), len(b), align(len(a), len(b), func(i, j int) bool { return a[i] == b[j] }), func(i0, i1, j0, j1 int) {
		for _, s := range a[i0:i1] {
			out = append(out, Text{Removed, s})
		}
		for _, s := range b[j0:j1] {
			out = append(out, Text{Added, s})
		}
	}, func(int, int) {})
	return out
}
