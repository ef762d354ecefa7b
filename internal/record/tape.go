package record

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/past"
	"github.com/stint-dev/stint/journal"
)

// loop is what is on record of the steps of a loop.
type loop struct {
	line   int // that it took place on
	steps  past.Steps
	inputs past.Inputs
	asked  map[[2]int]*stint.Entry // what a person was asked about it, by step and member
}

// tape is the part of a journal that is the record.
type tape struct {
	loops map[int]*loop             // by number
	ends  map[stint.ID]*stint.Entry // by child
}

// page is how many entries are read at a time.
const page = 1000

// readTape reads the loops of a line behind one, up to an entry; Until 0: all there are.
func readTape(ctx context.Context, src Source, of Of) (*tape, error) {
	loops, _, err := past.Course(ctx, src, of.Session, of.Line)
	if err != nil {
		return nil, err
	}
	t := &tape{loops: map[int]*loop{}, ends: map[stint.ID]*stint.Entry{}}
	for _, l := range loops {
		if l.Number > of.Behind {
			t.loops[l.Number] = &loop{line: l.Line, steps: past.Steps{}, inputs: past.Inputs{}, asked: map[[2]int]*stint.Entry{}}
		}
	}
	kinds := []stint.Kind{stint.StepRequested, stint.StepCompleted, stint.StepFailed, stint.StepResolved, stint.ApprovalRequested, stint.MessageTaken}
	for after := stint.Seq(0); ; {
		es, err := src.Entries(ctx, stint.Range{Session: of.Session, After: after, Until: of.Until, Kinds: kinds, Limit: page})
		if err != nil {
			return nil, err
		}
		for i := range es {
			if err := t.add(&es[i]); err != nil {
				return nil, err
			}
		}
		if len(es) < page {
			return t, nil
		}
		after = es[len(es)-1].Seq
	}
}

func (t *tape) add(e *stint.Entry) error {
	l := t.loops[e.Pos.Loop]
	if e.Kind == stint.MessageTaken {
		return t.told(e)
	}
	if l == nil || l.line != e.Pos.Line {
		return nil
	}
	if e.Kind == stint.ApprovalRequested {
		l.asked[[2]int{e.Pos.Step, e.Pos.Sub}] = e
	}
	l.inputs.Add(e)
	return l.steps.Add(e)
}

// told notes the end of a child.
func (t *tape) told(e *stint.Entry) error {
	m, err := past.Message(e, nil)
	if err != nil || m.Kind != stint.ChildEnd {
		return err
	}
	var end struct{ Session stint.ID }
	if json.Unmarshal(m.Data, &end) == nil {
		t.ends[end.Session] = e
	}
	return nil
}

// ordered are the steps of a loop in the order of their places.
func (l *loop) ordered() []*past.Step {
	return slices.SortedFunc(maps.Values(l.steps), func(a, b *past.Step) int {
		return cmp.Or(a.Step-b.Step, a.Sub-b.Sub)
	})
}

// args is what a tool was called with, as the model asked for it, whatever a person made of
// that. known is false where there is only a hash of it.
func (l *loop) args(ctx context.Context, src Source, family stint.ID, s *past.Step) (args json.RawMessage, known bool, err error) {
	at := [2]int{s.Step, s.Sub}
	if e := l.asked[at]; s.Intent.Asked != "" && e != nil {
		args, err := past.Body(ctx, src, family, e)
		return args, err == nil, err
	}
	if args, known, err = l.inputs.Of(ctx, src, family, at, s.Intent); known || err != nil {
		return args, known, err
	}
	// Of a call that may be made again, the input is on record where it is short and gave
	// something; what the model said is there always.
	said := l.answerBefore(s.Step)
	if said == nil {
		return nil, false, nil
	}
	body, err := past.Body(ctx, src, family, &stint.Entry{Blob: said.Blob, Body: said.Body})
	if err != nil {
		return nil, false, err
	}
	args = called(body, s.Sub)
	return args, past.InputSum(args) == s.Intent.Input, nil
}

// answerBefore is the model's answer that a group of calls is from; nil: there is none.
func (l *loop) answerBefore(step int) (out *past.Step) {
	for _, s := range l.ordered() {
		if s.Step < step && s.Intent.Kind == stint.Model && s.Done != nil && !s.Failed {
			out = s
		}
	}
	return out
}

// called are the arguments of the n-th call of a model's answer, from 1 on; nil: there are
// none.
func called(answer []byte, n int) json.RawMessage {
	var said struct {
		Message struct {
			Parts []struct{ Call *struct{ Args string } }
		}
	}
	if json.Unmarshal(answer, &said) != nil {
		return nil
	}
	for _, p := range said.Message.Parts {
		if p.Call == nil {
			continue
		}
		if n--; n == 0 {
			return json.RawMessage(cmp.Or(strings.TrimSpace(p.Call.Args), "{}"))
		}
	}
	return nil
}

// Call is a call that a session asked for.
type Call struct {
	Pos  stint.Position  `json:"pos"`
	Tool string          `json:"tool"`
	Args json.RawMessage `json:"args"` // null where only their hash is on record
}

// Missing are the calls of a session that runs with a record and that are not on it, in the
// order in which it asked for them, on its current line.
func Missing(ctx context.Context, src Source, s *stint.Session) ([]Call, error) {
	t, err := readTape(ctx, src, Of{Session: s.ID, Line: -1})
	if err != nil {
		return nil, err
	}
	out := []Call{}
	for _, number := range slices.Sorted(maps.Keys(t.loops)) {
		l := t.loops[number]
		for _, st := range l.ordered() {
			if !offRecord(st) {
				continue
			}
			args, known, err := l.args(ctx, src, s.Family, st)
			if err != nil {
				return nil, err
			}
			if !known {
				args = nil
			}
			out = append(out, Call{stint.Position{Line: l.line, Loop: number, Step: st.Step, Sub: st.Sub}, st.Intent.Name, args})
		}
	}
	return out, nil
}

// Said is what a loop of the current line of a session was told by somebody besides the
// input of the session, as one text: what it goes on from where a branch begins before it.
func Said(ctx context.Context, src Source, s *stint.Session, number int) (string, error) {
	loops, _, err := past.Course(ctx, src, s.ID, -1)
	if err != nil {
		return "", err
	}
	i := slices.IndexFunc(loops, func(l journal.Loop) bool { return l.Number == number })
	if i < 0 {
		return "", nil
	}
	first, err := src.Entries(ctx, stint.Range{Session: s.ID, Limit: 2})
	if err != nil {
		return "", err
	}
	_, input, err := past.FirstInput(first)
	if err != nil {
		return "", err
	}
	var texts []string
	for after := stint.Seq(0); ; {
		es, err := src.Entries(ctx, stint.Range{Session: s.ID, After: after, Kinds: []stint.Kind{stint.MessageTaken}, Limit: page})
		if err != nil {
			return "", err
		}
		for j := range es {
			e := &es[j]
			if e.Pos.Loop != number || e.Pos.Line != loops[i].Line || input != nil && e.Seq == input.Seq {
				continue
			}
			m, err := past.Message(e, nil)
			if err != nil || m.Kind != stint.Prompt || m.From == stint.ByEngine {
				continue
			}
			body, err := past.Body(ctx, src, s.Family, e)
			if err != nil {
				return "", err
			}
			texts = append(texts, string(body))
		}
		if len(es) < page {
			return strings.Join(texts, "\n\n"), nil
		}
		after = es[len(es)-1].Seq
	}
}
