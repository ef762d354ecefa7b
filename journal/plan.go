package journal

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stint-dev/stint"
)

// Plan is what going back to a checkpoint, or branching off there, would do, for a person
// to read before it is done. Plans of equal journals are equal, hash and all.
type Plan struct {
	Session stint.ID    `json:"session"`
	Branch  bool        `json:"branch,omitempty"` // the session stays as it is, and another begins there
	From    int         `json:"from"`             // keeps loops 1..From
	Head    stint.Seq   `json:"head"`             // newest entry that the plan knows of
	Keeps   Keeps       `json:"keeps"`
	Leaves  Leaves      `json:"leaves"`
	State   StateChange `json:"state"`
	// Outside is what the loops after the checkpoint did to the world and nothing undoes,
	// in order of seq: their once and idempotent steps, those of models excepted.
	Outside []EffectStep `json:"outside"`
	// InDoubt is the steps of those loops of which nobody knows whether they took effect.
	InDoubt []EffectStep `json:"in_doubt"`
	// Decided is the steps of those loops that people said yes or no to: none of it counts
	// for the same steps later, which are asked about again.
	Decided []EffectStep `json:"decided"`
	// Resume is what the newest model step of the loops kept used: the first one behind them
	// reads about as much again, without what its provider remembered if that is long ago.
	Resume stint.Usage `json:"resume,omitzero"`
	// Agent is how the agent's definition changes; nil: it stays the one that is pinned.
	Agent *StateChange `json:"agent,omitempty"`
	// Advised is the loop to go back to as the session stands, whichever was asked for, and
	// Advice says in a line what came after it; empty: the newest loop came to something.
	// The hash covers neither.
	Advised int        `json:"advised"`
	Advice  string     `json:"advice"`
	Hash    stint.Hash `json:"hash"` // of the session up to here, the loop, and both states
}

// OfBranch returns p as the plan of a branch: nothing is left behind, and what the loops
// after the checkpoint did is done again by the branch and stays done.
func (p Plan) OfBranch() Plan {
	p.Branch, p.Leaves = true, Leaves{Line: p.Leaves.Line}
	for _, list := range [...]*[]EffectStep{&p.Outside, &p.InDoubt} {
		*list = slices.Clone(*list)
		for i := range *list {
			(*list)[i].Note = strings.NewReplacer("the new line", "the branch").Replace((*list)[i].Note)
		}
	}
	return p
}

// Changes notes that the agent's definition becomes another one; both are JSON.
func (p *Plan) Changes(pinned, next []byte) {
	c := StateChange{Before: int64(len(pinned)), After: int64(len(next)), Changes: []KeyChange{}}
	if c.Compare(pinned, next); len(c.Changes) > 0 {
		p.Agent = &c
	}
}

// Undecided returns the steps in doubt that nobody has said a word about: going back
// leaves them behind, and is refused without a [DoubtChoice].
func (p *Plan) Undecided() []EffectStep {
	var out []EffectStep
	for _, st := range p.InDoubt {
		if st.Effect == stint.Once && st.Outcome == "requested" {
			out = append(out, st)
		}
	}
	return out
}

// Keeps sums up the loops that stay.
type Keeps struct {
	Loops int         `json:"loops"`
	Steps int         `json:"steps"`
	Usage stint.Usage `json:"usage"`
}

// Leaves is what stays readable on the line that the session leaves, and only there.
type Leaves struct {
	Line  int `json:"line"`
	Loops int `json:"loops"` // begun after the checkpoint, completed or not
}

// StateChange compares the state of the newest checkpoint with the one that the
// session would go on from.
type StateChange struct {
	Before  int64       `json:"before"` // bytes
	After   int64       `json:"after"`
	Changes []KeyChange `json:"changes"`           // at most 100, in order of path
	More    int         `json:"more,omitempty"`    // changes beyond those
	Unknown bool        `json:"unknown,omitempty"` // the newest state was not there to be compared
}

// KeyChange is one value that differs. A side that has no such value has size 0;
// a value over 64 bytes is given by its size alone.
type KeyChange struct {
	Path    string          `json:"path"` // JSON pointer (RFC 6901); empty: the whole state
	Old     json.RawMessage `json:"old,omitempty"`
	New     json.RawMessage `json:"new,omitempty"`
	OldSize int             `json:"old_size"` // bytes
	NewSize int             `json:"new_size"`
}

// EffectStep is a step that acted, or may have acted, on the outside.
type EffectStep struct {
	Pos    stint.Position `json:"pos"`
	Seq    stint.Seq      `json:"seq"` // newest entry about it
	At     time.Time      `json:"at"`
	Name   string         `json:"name"`
	Kind   stint.StepKind `json:"kind"`
	Effect stint.Effect   `json:"effect"`
	// Outcome is completed, failed, or happened (a person said so); in doubt it is
	// requested (no outcome), failed (without a definite error) or unknown (a person said so);
	// of one that a person was asked about it is approved or denied.
	Outcome string `json:"outcome"`
	Key     string `json:"key"` // the idempotency key that it was sent with
	Note    string `json:"note"`
}

// Bounds of what a plan shows of a state.
const (
	maxChanges   = 100
	maxShown     = 64  // bytes of one value
	maxDiffDepth = 100 // nesting; deeper values are compared as a whole
)

// MakePlan returns the plan of taking s back to the checkpoint of loop from, 0 for
// the beginning. es is as [Course] wants it, together with the step entries of at
// least the loops after from. stateNow is the state of s.Checkpoint; nil where it
// cannot be read, which the plan then says. stateThen is the state to go on from.
// Errors: as [CheckpointAt], and [stint.Invalid] for entries of another session, or
// newer than s.
func MakePlan(s stint.Session, es []stint.Entry, from int, stateNow, stateThen []byte) (Plan, error) {
	c, err := courseOf(es, -1)
	if err != nil {
		return Plan{}, err
	}
	if c.session != s.ID || c.line != s.At.Line || es[len(es)-1].Seq > s.Head {
		err := stint.Invalid.Errorf("plan", "the entries are not those of the session at entry %d", s.Head)
		err.Session, err.Hint = s.ID, "read the session and its journal again"
		return Plan{}, err
	}
	if _, err := c.checkpoint(from); err != nil {
		return Plan{}, err
	}
	p := Plan{
		Session: s.ID, From: from, Head: s.Head,
		Keeps:   Keeps{Loops: from},
		Leaves:  Leaves{Line: c.line, Loops: c.last() - from},
		State:   StateChange{Before: s.Checkpoint.Size, After: int64(len(stateThen)), Changes: []KeyChange{}},
		Outside: []EffectStep{}, InDoubt: []EffectStep{}, Decided: []EffectStep{},
	}
	for _, l := range c.loops[:from-c.first] {
		p.Keeps.Steps += l.Steps
		p.Keeps.Usage = p.Keeps.Usage.Add(l.Usage)
	}
	if p.State.Unknown = stateNow == nil && s.Checkpoint.Seq != 0; !p.State.Unknown {
		p.State.Compare(stateNow, stateThen)
	}
	if err := p.effects(es, c.loops[from-c.first:]); err != nil {
		return Plan{}, err
	}
	if err := p.decisions(es, c.loops[from-c.first:]); err != nil {
		return Plan{}, err
	}
	if from > c.first {
		if err := p.resume(es, &c.loops[from-c.first-1]); err != nil {
			return Plan{}, err
		}
	}
	if p.Advised, p.Advice, err = c.advise(es); err != nil {
		return Plan{}, err
	}
	p.Hash = p.sum(s.HeadHash, s.Checkpoint.Sum, sha256.Sum256(stateThen))
	return p, nil
}

// effects fills in the steps of the loops that are left behind.
func (p *Plan) effects(es []stint.Entry, left []Loop) error {
	lines := linesOf(left)
	acts := map[stint.Position]act{}
	for i := range es {
		e := &es[i]
		if line, ok := lines[e.Pos.Loop]; ok && e.Pos.Line == line {
			if err := p.follow(acts, e); err != nil {
				return err
			}
		}
	}
	for _, a := range slices.SortedFunc(maps.Values(acts), func(a, b act) int { return cmp.Compare(a.Seq, b.Seq) }) {
		p.list(a)
	}
	return nil
}

// decisions fills in what was decided in the loops that are left behind.
func (p *Plan) decisions(es []stint.Entry, left []Loop) error {
	asked, lines := map[stint.Seq]StepRequested{}, linesOf(left)
	for i := range es {
		e := &es[i]
		if line, ok := lines[e.Pos.Loop]; !ok || line != e.Pos.Line || e.Pos.Step == 0 { // what was ordered is not asked again
			continue
		}
		switch e.Kind {
		case stint.ApprovalRequested:
			d, err := Decode[ApprovalRequested](e)
			if err != nil {
				return err
			}
			asked[e.Seq] = d.StepRequested
		case stint.ApprovalDecided:
			d, err := Decode[ApprovalDecided](e)
			if err != nil {
				return err
			}
			q, ok := asked[d.Approval]
			if !ok || d.State != stint.ApprovalApproved && d.State != stint.ApprovalDenied {
				continue
			}
			p.Decided = append(p.Decided, EffectStep{Pos: e.Pos, Seq: e.Seq, At: e.At, Name: q.Name, Kind: q.Kind, Effect: q.Effect, Outcome: string(d.State),
				Key: Key(p.Session, e.Pos), Note: strings.TrimSuffix(fmt.Sprintf("by %s: %s", e.Actor, d.Note), ": ")})
		}
	}
	return nil
}

// resume fills in what the newest model step of the last loop that is kept used.
func (p *Plan) resume(es []stint.Entry, last *Loop) error {
	for i := len(es) - 1; i >= 0 && es[i].Seq > last.Start; i-- {
		e := &es[i]
		if e.Kind != stint.StepCompleted || e.Pos.Loop != last.Number || e.Pos.Line != last.Line {
			continue
		}
		d, err := Decode[StepDone](e)
		if err != nil || d.Kind == stint.Model {
			p.Resume = d.Usage
			return err
		}
	}
	return nil
}

// linesOf has the line of each loop by its number: one of that number that an earlier restart
// gave up has another.
func linesOf(loops []Loop) map[int]int {
	lines := map[int]int{}
	for i := range loops {
		lines[loops[i].Number] = loops[i].Line
	}
	return lines
}

// act is a step while its entries are read.
type act struct {
	EffectStep
	doubt bool // nobody knows whether it took effect
}

// follow notes what e says of its step.
func (p *Plan) follow(acts map[stint.Position]act, e *stint.Entry) error {
	at := e.Pos
	at.Attempt = 0
	var d StepDone
	var err error
	a := act{EffectStep: EffectStep{Pos: e.Pos, Seq: e.Seq, At: e.At, Key: Key(p.Session, e.Pos)}}
	switch e.Kind {
	case stint.StepRequested:
		d.StepRequested, err = Decode[StepRequested](e)
		a.Outcome, a.doubt = "requested", true
	case stint.StepCompleted:
		d, err = Decode[StepDone](e)
		a.Outcome = "completed"
	case stint.StepFailed:
		d, err = Decode[StepDone](e)
		a.Outcome, a.doubt = "failed", !d.Definite
	case stint.StepResolved:
		return resolveAct(acts, at, e)
	default:
		return nil
	}
	a.Name, a.Kind, a.Effect = d.Name, d.Kind, d.Effect
	acts[at] = a
	return err
}

// resolveAct notes a person's verdict on the step at at.
func resolveAct(acts map[stint.Position]act, at stint.Position, e *stint.Entry) error {
	d, err := Decode[StepResolved](e)
	if err != nil {
		return err
	}
	a, ok := acts[at]
	switch {
	case !ok:
	case d.Verdict == NotHappened:
		delete(acts, at)
	default:
		a.Seq, a.At, a.Outcome, a.doubt = e.Seq, e.At, string(d.Verdict), d.Verdict == Unknown
		acts[at] = a
	}
	return nil
}

// list puts a where it belongs and says what it means for the new line.
func (p *Plan) list(a act) {
	if a.Effect == stint.Read || a.Kind == stint.Model && (a.Effect != stint.Once || !a.doubt) {
		return
	}
	again := "the new line does it again when it comes to it"
	if a.Effect == stint.Idempotent {
		again = "the new line sends a new key, so it is done again"
	}
	switch {
	case a.doubt:
		a.Note = "may have taken effect, find out before going on; " + again
		p.InDoubt = append(p.InDoubt, a.EffectStep)
		return
	case a.Outcome == "failed":
		a.Note = "failed with a known outcome; " + again
	default:
		a.Note = "cannot be undone; " + again
	}
	p.Outside = append(p.Outside, a.EffectStep)
}

// sum is the hash of the plan: SHA-256 over a tag and the members in their order,
// numbers as varints, strings with their length in front. What is only a wording,
// the notes and the changes, is left out: the hashes of both states stand for it.
func (p *Plan) sum(head, now, then stint.Hash) stint.Hash {
	b := append([]byte("stint plan 1\n"), p.Session[:]...)
	u := p.Keeps.Usage
	for _, n := range [...]int64{
		int64(p.From), int64(p.Head), int64(p.Keeps.Loops), int64(p.Keeps.Steps),
		u.Input, u.Output, u.CacheRead, u.CacheWrite, int64(u.Cost),
		int64(p.Leaves.Line), int64(p.Leaves.Loops), p.State.Before, p.State.After,
	} {
		b = binary.AppendVarint(b, n)
	}
	b = append(append(append(b, head[:]...), now[:]...), then[:]...)
	for _, list := range [...][]EffectStep{p.Outside, p.InDoubt} {
		b = binary.AppendUvarint(b, uint64(len(list)))
		for _, st := range list {
			for _, n := range [...]int{st.Pos.Line, st.Pos.Loop, st.Pos.Attempt, st.Pos.Step, st.Pos.Sub, int(st.Seq)} {
				b = binary.AppendVarint(b, int64(n))
			}
			for _, t := range [...]string{st.Name, string(st.Kind), string(st.Effect), st.Outcome} {
				b = append(binary.AppendUvarint(b, uint64(len(t))), t...)
			}
		}
	}
	return sha256.Sum256(b)
}

// Compare fills in the values that differ between two states; nil is none at all. Of
// many it lists the first, and a long value only by its size.
func (c *StateChange) Compare(old, new []byte) {
	a, okA := compact(old)
	b, okB := compact(new)
	if !okA || !okB {
		if !bytes.Equal(old, new) {
			c.note(KeyChange{OldSize: len(old), NewSize: len(new)})
		}
		return
	}
	c.diff("", a, b, 0)
}

// compact returns a JSON value without white space; no state at all stays nothing.
func compact(state []byte) (json.RawMessage, bool) {
	if len(state) == 0 {
		return nil, true
	}
	var buf bytes.Buffer
	err := json.Compact(&buf, state)
	return buf.Bytes(), err == nil
}

func (c *StateChange) diff(path string, a, b json.RawMessage, depth int) {
	if bytes.Equal(a, b) {
		return
	}
	if len(a) > 0 && len(b) > 0 && a[0] == b[0] && depth < maxDiffDepth {
		switch a[0] {
		case '{':
			c.diffObjects(path, a, b, depth)
			return
		case '[':
			c.diffArrays(path, a, b, depth)
			return
		case '"':
			var s, t string
			if json.Unmarshal(a, &s) == nil && json.Unmarshal(b, &t) == nil && s == t {
				return
			}
		}
	}
	ch := KeyChange{Path: path, OldSize: len(a), NewSize: len(b)}
	if len(a) <= maxShown {
		ch.Old = a
	}
	if len(b) <= maxShown {
		ch.New = b
	}
	c.note(ch)
}

func (c *StateChange) diffObjects(path string, a, b json.RawMessage, depth int) {
	var x, y map[string]json.RawMessage
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		c.note(KeyChange{Path: path, OldSize: len(a), NewSize: len(b)})
		return
	}
	escape := strings.NewReplacer("~", "~0", "/", "~1")
	keys := slices.AppendSeq(slices.Collect(maps.Keys(x)), maps.Keys(y))
	slices.Sort(keys)
	for _, k := range slices.Compact(keys) {
		c.diff(path+"/"+escape.Replace(k), x[k], y[k], depth+1)
	}
}

func (c *StateChange) diffArrays(path string, a, b json.RawMessage, depth int) {
	var x, y []json.RawMessage
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		c.note(KeyChange{Path: path, OldSize: len(a), NewSize: len(b)})
		return
	}
	for i := range max(len(x), len(y)) {
		var v, w json.RawMessage
		if i < len(x) {
			v = x[i]
		}
		if i < len(y) {
			w = y[i]
		}
		c.diff(path+"/"+strconv.Itoa(i), v, w, depth+1)
	}
}

func (c *StateChange) note(ch KeyChange) {
	if len(c.Changes) == maxChanges {
		c.More++
		return
	}
	c.Changes = append(c.Changes, ch)
}
