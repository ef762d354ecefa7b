package journal

import (
	"cmp"
	"slices"

	"github.com/stint-dev/stint"
)

// Verifier checks a whole journal, entry by entry in order of seq, from the first
// on. The zero value is ready. It is not safe for concurrent use. What it keeps
// grows with the number of checkpoints, not with that of entries.
//
// It finds any changed, missing, inserted or exchanged entry, and any that stint
// would not have written:
//
//   - the chain: each entry has the hash of its bytes and its predecessor ([Verify]);
//   - order and legality: seq without gaps, epochs that never fall, and each entry
//     may follow, as [Apply] says;
//   - answers: a position of a line is answered at most once, by step.completed, by
//     a definite step.failed, or by a person's verdict;
//   - intents: a once step has its step.requested before its result or resolution,
//     and is not requested again before somebody said that it did not happen; where
//     its loop was interrupted, or a policy denies it, it may fail without one;
//   - questions: a step that a person was asked about begins after a yes to exactly
//     that step, and none of them is decided twice;
//   - loops: a loop completes only with all its intents settled;
//   - states: a checkpoint's delta stands on a checkpoint of the rank that standsOn
//     says, and a new line begins at a checkpoint of the line it leaves.
//
// Entries cut off at the end leave a sound journal: compare Head and HeadHash of
// the result with what was recorded elsewhere.
type Verifier struct {
	s      stint.Session
	err    error
	steps  map[[2]int]stepMark // of the open loop, by step and sub
	cut    bool                // the open loop was interrupted: steps in it may fail without having begun
	first  int                 // the loop that the session branched off at
	marks  []stint.Checkpoint  // of the current line, by loop from first on
	states []stateMark         // of all lines, in order of seq
}

// stepMark is what is known of one step of the open loop.
type stepMark struct {
	intent    StepRequested
	requested stint.Seq // newest intent that nobody said did not happen
	tried     bool      // something came of that intent, if only an error
	answered  stint.Seq
}

// stateMark is an entry that carries a state.
type stateMark struct {
	seq  stint.Seq
	rank int
}

// Add checks the next entry. The first problem is a [stint.Corrupt] that names the
// entry's seq and the reason; once there is one, Add returns it again and looks at
// nothing more.
func (v *Verifier) Add(e stint.Entry) error {
	if v.err == nil {
		v.err = v.add(&e)
	}
	return v.err
}

// Result returns the fold of the entries that are sound, up to the first problem,
// and that problem. No entries at all are a problem too.
func (v *Verifier) Result() (stint.Session, error) {
	if v.err == nil && v.s.Head == 0 {
		return v.s, stint.Corrupt.Errorf("journal", "there are no entries; a journal has at least session.created")
	}
	return v.s, v.err
}

func (v *Verifier) add(e *stint.Entry) error {
	if err := Verify(e, v.s.HeadHash); err != nil {
		return err
	}
	d, err := typed(e)
	if err != nil {
		return err
	}
	after := v.s
	if err := apply(&after, e, d); err != nil {
		return corrupt(e, "breaks a rule: %v", err)
	}
	after.HeadHash = e.Hash
	if err := v.step(e, d); err != nil {
		return err
	}
	if err := v.state(e, d, &after); err != nil {
		return err
	}
	v.s = after
	return nil
}

// step checks the entries within a loop.
func (v *Verifier) step(e *stint.Entry, d any) error {
	switch e.Kind {
	case stint.StepRequested, stint.StepCompleted, stint.StepFailed, stint.StepResolved:
		return v.stepEntry(e, d)
	case stint.LoopCompleted:
		for at, m := range v.steps {
			if m.requested != 0 && !m.tried {
				return corrupt(e, "completes the loop while step %s, requested by entry %d, has no outcome",
					stint.Position{Loop: e.Pos.Loop, Step: at[0], Sub: at[1]}, m.requested)
			}
		}
		clear(v.steps)
		v.cut = false
	case stint.LineStarted:
		clear(v.steps)
		v.cut = false
	case stint.MessageTaken:
		if t, ok := d.(Taken); ok && t.Kind == stint.Interrupt && v.s.At.Open {
			v.cut = true
		}
	}
	return nil
}

func (v *Verifier) stepEntry(e *stint.Entry, d any) error {
	if e.Pos.Step < 1 || e.Pos.Sub < 0 {
		return corrupt(e, "names no step: step %d, member %d", e.Pos.Step, e.Pos.Sub)
	}
	at := [2]int{e.Pos.Step, e.Pos.Sub}
	m := v.steps[at]
	if m.answered != 0 {
		return corrupt(e, "is about step %s, which entry %d answered", e.Pos, m.answered)
	}
	var err error
	switch d := d.(type) {
	case StepDone:
		never := e.Kind == stint.StepFailed && d.Definite && (v.cut || ruledOut(e, &d))
		err = m.done(e, d, v.decided(e) || never)
	default:
		if e.Kind == stint.StepRequested {
			err = m.request(e)
		} else {
			err = m.resolve(e)
		}
	}
	if err != nil {
		return err
	}
	if v.steps == nil {
		v.steps = map[[2]int]stepMark{}
	}
	v.steps[at] = m
	return nil
}

// ruledOut reports whether the rule of a policy kept a step from beginning.
func ruledOut(e *stint.Entry, d *StepDone) bool {
	f, err := d.Failure(e.Body)
	return d.Rule != "" && err == nil && f.Code == stint.Denied
}

// decided reports whether the outcome of a step is a person's: a no, or an answer.
func (v *Verifier) decided(e *stint.Entry) bool {
	i := asked(&v.s, e.Pos)
	return i >= 0 && (e.Kind == stint.StepFailed || v.s.At.Approvals[i].Answer)
}

func (m *stepMark) request(e *stint.Entry) error {
	d, err := Decode[StepRequested](e)
	if err != nil {
		return err
	}
	if m.requested != 0 && m.intent.Effect == stint.Once {
		return corrupt(e, "begins the once step %s again, which entry %d requested and nobody settled", e.Pos, m.requested)
	}
	m.intent, m.requested, m.tried = d, e.Seq, false
	return nil
}

// done checks an outcome. decided says that a person gave it, and nothing was begun.
func (m *stepMark) done(e *stint.Entry, d StepDone, decided bool) error {
	switch {
	case m.requested == 0 && d.Effect == stint.Once && !decided:
		return corrupt(e, "is the outcome of the once step %s, and no step.requested stands before it", e.Pos)
	case m.requested != 0 && m.intent != d.StepRequested:
		return corrupt(e, "is the outcome of another step than entry %d requested", m.requested)
	}
	m.tried = true
	if e.Kind == stint.StepCompleted || d.Definite {
		m.answered = e.Seq
	}
	return nil
}

func (m *stepMark) resolve(e *stint.Entry) error {
	if m.requested == 0 {
		return corrupt(e, "resolves step %s, and no step.requested stands before it", e.Pos)
	}
	d, err := Decode[StepResolved](e)
	if err != nil {
		return err
	}
	switch d.Verdict {
	case Happened, Unknown:
		m.answered, m.tried = e.Seq, true
	case NotHappened:
		*m = stepMark{}
	default:
		return corrupt(e, "has the verdict %q, which is none of %s, %s, %s", d.Verdict, Happened, NotHappened, Unknown)
	}
	return nil
}

// state checks where a checkpoint's bytes lie. after is the session with e.
func (v *Verifier) state(e *stint.Entry, d any, after *stint.Session) error {
	switch d := d.(type) {
	case Created:
		v.first, v.marks = base(d.Parent), []stint.Checkpoint{after.Checkpoint}
		if d.State.Enc != "" {
			return v.stateRef(e, d.State)
		}
	case LoopCompleted:
		if err := v.stateRef(e, d.State); err != nil {
			return err
		}
		if e.Pos.Loop != v.first+len(v.marks) {
			return corrupt(e, "completes loop %d after loop %d", e.Pos.Loop, v.first+len(v.marks)-1)
		}
		v.marks = append(v.marks, after.Checkpoint)
	case LineStarted:
		i := d.From - v.first
		if i < 0 || i >= len(v.marks) {
			return corrupt(e, "keeps loop %d; the line that it leaves completed %d", d.From, v.first+len(v.marks)-1)
		}
		if !sameState(v.marks[i], d.Checkpoint) {
			return corrupt(e, "begins at a checkpoint that is not the one of loop %d", d.From)
		}
		if d.State.Enc != "" {
			if err := v.stateRef(e, d.State); err != nil {
				return err
			}
		}
		v.marks = append(v.marks[:i], after.Checkpoint)
	}
	return nil
}

func sameState(a, b stint.Checkpoint) bool {
	return a.Seq == b.Seq && a.Rank == b.Rank && a.Weight == b.Weight && a.Size == b.Size && a.Sum == b.Sum
}

func (v *Verifier) stateRef(e *stint.Entry, r StateRef) error {
	stored := max(int64(len(e.Body)), e.Blob.Size)
	switch r.Enc {
	case Same:
		if stored != 0 {
			return corrupt(e, "keeps the state as it was, and has a body of %d bytes", stored)
		}
		return nil
	case Full:
		if r.Base != 0 || r.Rank != 0 || r.Weight != 0 || r.Size != stored {
			return corrupt(e, "has a body of %d bytes that is not the full state it claims to be", stored)
		}
	case Delta:
		i, found := slices.BinarySearchFunc(v.states, r.Base, func(m stateMark, seq stint.Seq) int { return cmp.Compare(m.seq, seq) })
		if !found || r.Rank < 1 || v.states[i].rank != standsOn(r.Rank) {
			return corrupt(e, "has a delta of rank %d against entry %d, which does not carry the state it needs", r.Rank, r.Base)
		}
	default:
		return corrupt(e, "has a state in the encoding %q, which is none of %s, %s, %s", r.Enc, Full, Delta, Same)
	}
	v.states = append(v.states, stateMark{e.Seq, r.Rank})
	return nil
}
