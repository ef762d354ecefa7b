package journal_test

import (
	"slices"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/journal"
)

// model is a second, slow opinion on what a journal means. It keeps what happened
// and works everything out by looking back over it; it shares no code with Apply.
type model struct {
	id    stint.ID
	facts []fact
}

// fact is an entry that was accepted.
type fact struct {
	seq  stint.Seq
	kind stint.Kind
	pos  stint.Position
	at   time.Time
	by   int64 // the epoch
	data any
	ran  time.Duration // that its runner measured

	actor stint.Actor
}

func factOf(e *stint.Entry, data any) fact {
	f := fact{seq: e.Seq, kind: e.Kind, pos: e.Pos, at: e.At, by: e.Epoch, data: data, actor: e.Actor}
	switch d := data.(type) {
	case journal.Parked:
		f.data, f.ran = d.Waiting, d.Ran
	case journal.Released:
		f.ran = d.Ran
	case journal.Ended:
		f.ran = d.Ran
	case journal.LineStarted:
		f.ran = d.Ran
	case journal.LoopCompleted:
		f.ran = d.Ran
	case journal.LoopFailed:
		f.ran = d.Ran
	}
	return f
}

// last returns the index of the newest fact of one of these kinds, or -1.
func (m *model) last(kinds ...stint.Kind) int {
	for i, f := range slices.Backward(m.facts) {
		if slices.Contains(kinds, f.kind) {
			return i
		}
	}
	return -1
}

// count counts the facts of one of these kinds from index i on.
func (m *model) count(i int, kinds ...stint.Kind) (n int) {
	for _, f := range m.facts[i:] {
		if slices.Contains(kinds, f.kind) {
			n++
		}
	}
	return n
}

func (m *model) statusAfter(n int) stint.Status {
	for _, f := range slices.Backward(m.facts[:n]) {
		switch d := f.data.(type) {
		case journal.Created, journal.Resumed:
			return stint.Pending
		case journal.Waiting:
			return stint.Waiting
		case journal.Ended:
			return d.Outcome
		case journal.LineStarted:
			if d.Park {
				return stint.Waiting
			}
			return stint.Pending
		}
	}
	return ""
}

func (m *model) status() stint.Status { return m.statusAfter(len(m.facts)) }

// lineBegin is the index of the first fact of the current line.
func (m *model) lineBegin() int { return max(0, m.last(stint.LineStarted)) }

func (m *model) kept() int {
	if i := m.last(stint.LineStarted); i >= 0 {
		return m.facts[i].data.(journal.LineStarted).From
	}
	return m.branched()
}

// branched is the loop that the session branched off at; 0 if it did not.
func (m *model) branched() int {
	if p := m.facts[0].data.(journal.Created).Parent; p.Branch {
		return p.Loop
	}
	return 0
}

func (m *model) done() int { return m.kept() + m.count(m.lineBegin(), stint.LoopCompleted) }

// openLoop returns the index of the loop.started that began the open loop.
func (m *model) openLoop() (int, bool) {
	for i := 1 + m.last(stint.LineStarted, stint.LoopCompleted); i < len(m.facts); i++ {
		if m.facts[i].kind == stint.LoopStarted {
			return i, true
		}
	}
	return 0, false
}

// continues reports whether a loop.started at index i would go on with the attempt
// before it. What counts is how that one's runner left it: by a wait, a drain or a
// fence, and not by a failure, a death, or not at all. Nothing that comes later
// makes a broken attempt whole, but a failure, a death or an end breaks a whole one.
func (m *model) continues(i int) bool {
	begin := i - 1
	for ; begin >= 0 && m.facts[begin].kind != stint.LoopStarted; begin-- {
		switch d := m.facts[begin].data.(type) {
		case journal.LoopFailed, journal.Ended, journal.LineStarted, journal.LoopCompleted:
			return false
		case journal.LeaseLost:
			if d.Prior == stint.Died {
				return false
			}
		}
	}
	if begin < 0 {
		return false
	}
	for _, f := range m.facts[begin+1 : i] {
		switch f.data.(type) {
		case journal.LeaseLost: // a fence
			return true
		case journal.Waiting, journal.Released:
			return f.by == m.facts[begin].by
		}
		if f.by != m.facts[begin].by {
			return false // its runner is gone without a word
		}
	}
	return false
}

// attempts counts the attempts begun from index i on, n being the end.
func (m *model) attempts(i, n int) (count int) {
	for ; i < n; i++ {
		if m.facts[i].kind == stint.LoopStarted && !m.continues(i) {
			count++
		}
	}
	return count
}

// legal says whether the entry may follow.
func (m *model) legal(kind stint.Kind, pos stint.Position, epoch int64, actor stint.Actor, data any) bool {
	if len(m.facts) == 0 {
		return kind == stint.SessionCreated && born(m.id, data.(journal.Created))
	}
	before := m.facts[len(m.facts)-1].by
	if epoch < before {
		return false
	}
	first, open := m.openLoop()
	inLoop := open && pos.Loop == m.done()+1
	status := m.status()
	switch kind {
	case stint.MessageTaken, stint.MessageRefused:
		return true
	case stint.LeaseLost:
		prior := data.(journal.LeaseLost).Prior
		return epoch > before && (prior == stint.Died || prior == stint.Expired)
	case stint.LineStarted:
		from := data.(journal.LineStarted).From
		return from >= m.branched() && from <= m.done()
	case stint.SessionResumed:
		return status != stint.Pending
	case stint.SessionEnded:
		return !status.Ended() && data.(journal.Ended).Outcome.Ended()
	case stint.LimitChanged, stint.SessionReleased:
		return !status.Ended()
	case stint.StepResolved:
		return !status.Ended() && inLoop
	case stint.ApprovalDecided:
		return (pos.Step == 0 || !status.Ended() && inLoop) && m.mayDecide(data.(journal.ApprovalDecided), pos, actor)
	case stint.ApprovalChanged:
		return (pos.Step == 0 || !status.Ended() && inLoop) && m.mayChange(data.(journal.ApprovalChanged), pos, actor)
	case stint.SessionWaiting:
		return status == stint.Pending
	case stint.LoopStarted:
		want := 1
		if open {
			want = m.attempts(first, len(m.facts))
			if !m.continues(len(m.facts)) {
				want++
			}
		}
		runs := epoch == before && !m.runningSince().IsZero()
		return status == stint.Pending && !runs && pos.Loop == m.done()+1 && pos.Attempt == want && pos.Step == 0
	case stint.StepRequested, stint.StepCompleted, stint.StepFailed, stint.ApprovalRequested:
		if pos.Step == 0 && kind == stint.ApprovalRequested {
			return true
		}
		if d, ok := data.(journal.StepDone); ok && d.Copied && (!m.facts[0].data.(journal.Created).Parent.Branch || epoch != 0) {
			return false
		}
		if pos.Step < 1 || !m.mayStep(kind, pos, data) {
			return false
		}
	case stint.LoopCompleted, stint.LoopFailed, stint.OutputWritten:
	default:
		return false
	}
	return inLoop && epoch == before && !m.runningSince().IsZero() && pos.Attempt == m.attempts(first, len(m.facts))
}

// born says whether a session may begin so: with the parent that a branch has, and with a
// state only as one.
func born(id stint.ID, c journal.Created) bool {
	if p := c.Parent; p.Branch {
		return !p.Session.IsZero() && p.Session != id && p.Seq > 0 && p.Loop >= 0 && (c.State.Enc == "" || c.State.Enc == journal.Full)
	}
	return c.Parent.Loop == 0 && c.State.Enc == "" && len(c.Skipped) == 0
}

// session is what all the facts come to. The hash is not the model's business.
func (m *model) session(hash stint.Hash) stint.Session {
	c := m.facts[0].data.(journal.Created)
	newest := m.facts[len(m.facts)-1]
	s := stint.Session{
		ID: m.id, Family: c.Family, Name: c.Name, Agent: c.Agent, Trigger: c.Trigger, Parent: c.Parent, Labels: c.Labels,
		Limits: c.Limits, Status: m.status(), Created: m.facts[0].at, Updated: newest.at, Head: newest.seq, HeadHash: hash, Epoch: newest.by,
	}
	for _, f := range m.facts {
		if d, ok := f.data.(journal.LineStarted); ok && d.Agent != nil {
			s.Agent = *d.Agent
		}
	}
	if i := m.last(stint.LimitChanged); i >= 0 {
		s.Limits = m.facts[i].data.(journal.LimitChanged).Limits
	}
	if s.Status.Ended() {
		s.Ended = m.facts[m.last(stint.SessionEnded)].at
	}
	m.reason(&s)
	s.At = m.place()
	s.Checkpoint = m.checkpoint()
	s.Totals = m.totals()
	return s
}

func (m *model) reason(s *stint.Session) {
	f := m.facts[m.last(stint.SessionCreated, stint.SessionWaiting, stint.SessionResumed, stint.SessionEnded, stint.LineStarted, stint.LoopStarted)]
	switch d := f.data.(type) {
	case journal.Waiting:
		s.Reason = string(d.For)
	case journal.Resumed:
		s.Reason = d.Reason
	case journal.Ended:
		s.Reason = d.Reason
	case journal.LineStarted:
		if s.Reason = d.Reason; d.Park {
			s.Reason = "operator"
		}
	}
	if s.Status != stint.Waiting {
		return
	}
	f = m.facts[m.last(stint.SessionWaiting, stint.LineStarted)]
	switch d := f.data.(type) {
	case journal.Waiting:
		d.Since = f.at
		s.Wait = &d
	case journal.LineStarted:
		s.Wait = &stint.Wait{For: stint.ForOperator, Since: f.at, What: "rolled back to loop " + stint.Position{Loop: d.From}.String()}
	}
}

func (m *model) place() stint.Place {
	at := stint.Place{Line: m.count(0, stint.LineStarted), Loop: m.done()}
	first, open := m.openLoop()
	if !open {
		if i := m.last(stint.LoopCompleted, stint.LineStarted); i >= 0 && m.facts[i].kind == stint.LoopCompleted {
			for j := i; ; j-- { // back to where that loop began
				if j == 0 || m.facts[j-1].kind == stint.LoopCompleted || m.facts[j-1].kind == stint.LineStarted {
					at.Attempt = m.attempts(j, i)
					break
				}
			}
		}
	} else {
		at.Open, at.Loop = true, at.Loop+1
		at.Attempt = m.attempts(first, len(m.facts))
		at.Parked = m.continues(len(m.facts))
		at.Since = m.runningSince()
	}
	at.LoopSeq, at.Said = m.opening(m.done()+1), stint.Seq(0)
	if open {
		at.Said = m.opening(m.done() + 2)
	}
	for i := 1 + m.last(stint.LoopCompleted, stint.LineStarted); i < len(m.facts); i++ {
		switch d := m.facts[i].data.(type) {
		case journal.StepRequested, journal.StepDone, journal.ApprovalRequested:
			at.Step = max(at.Step, m.facts[i].pos.Step)
		case journal.LoopFailed:
			at.Error = d.Error
			at.Failures = append(at.Failures, m.facts[i].at)
		case journal.LeaseLost:
			if d.Prior == stint.Died {
				at.Deaths++
			}
		case journal.Resumed:
			if m.statusAfter(i).Ended() {
				at.Failures, at.Deaths = nil, 0
			}
		}
	}
	if n := len(at.Failures); n > 5 {
		at.Failures = at.Failures[n-5:]
	}
	for _, q := range m.questions() {
		at.Approvals = append(at.Approvals, q.approval)
	}
	return at
}

// opening is the seq of the first entry on this line that the given loop begins
// with: its loop.started, or a prompt that was taken for it while it was the loop to
// come, or while the one before it was open. 0: there is none.
func (m *model) opening(loop int) stint.Seq {
	done, open := m.kept(), false
	for _, f := range m.facts[m.lineBegin()+min(1, m.count(0, stint.LineStarted)):] {
		d, ok := f.data.(journal.Taken)
		prompt := f.kind == stint.MessageTaken && ok && (d.Kind == stint.Prompt || d.Kind == stint.ChildEnd) && f.pos.Loop == loop
		switch {
		case f.kind == stint.LoopCompleted:
			done, open = done+1, false
		case f.kind == stint.LoopStarted:
			if open = true; done+1 == loop {
				return f.seq
			}
		case prompt && open && done+2 == loop, prompt && !open && done+1 == loop:
			return f.seq
		}
	}
	return 0
}

// stops lists the kinds that end a stretch of running time.
func stops() []stint.Kind {
	return []stint.Kind{stint.SessionWaiting, stint.SessionReleased, stint.SessionEnded, stint.LineStarted, stint.LoopCompleted, stint.LoopFailed}
}

func (m *model) runningSince() time.Time {
	begin := m.last(stint.LoopStarted)
	if begin < 0 || m.last(stops()...) > begin || m.facts[begin].by != m.facts[len(m.facts)-1].by {
		return time.Time{}
	}
	return m.facts[begin].at
}

func (m *model) checkpoint() stint.Checkpoint {
	cp := stint.Checkpoint{Loop: m.done()}
	for _, f := range m.facts[m.lineBegin():] {
		var ref journal.StateRef
		switch d := f.data.(type) {
		case journal.Created:
			if !d.Parent.Branch {
				continue
			}
			if ref = d.State; ref.Enc == "" {
				cp.At = f.at
				continue
			}
		case journal.LineStarted:
			cp.Seq, cp.At, cp.Rank, cp.Weight, cp.Size, cp.Sum = d.Checkpoint.Seq, d.Checkpoint.At, d.Checkpoint.Rank, d.Checkpoint.Weight, d.Checkpoint.Size, d.Checkpoint.Sum
			if ref = d.State; ref.Enc == "" {
				continue
			}
		case journal.LoopCompleted:
			ref = d.State
		default:
			continue
		}
		cp.At = f.at
		if ref.Enc != journal.Same {
			cp.Seq, cp.Rank, cp.Weight, cp.Size, cp.Sum = f.seq, ref.Rank, ref.Weight, ref.Size, ref.Sum
		}
	}
	return cp
}

func (m *model) totals() stint.Totals {
	t := stint.Totals{
		Loops: m.count(0, stint.LoopCompleted), Steps: m.count(0, stint.StepCompleted),
		Errors: m.count(0, stint.StepFailed, stint.LoopFailed), Restarts: m.count(0, stint.LineStarted),
		Attempts: m.attempts(0, len(m.facts)),
	}
	var begin time.Time
	for i, f := range m.facts {
		switch d := f.data.(type) {
		case journal.StepRequested:
			t.Reserved = t.Reserved.Add(d.Reserve)
			if d.Child {
				t.Children++
			}
		case journal.StepDone:
			if d.Copied { // it counts where it was done
				if f.kind == stint.StepCompleted {
					t.Steps--
				} else {
					t.Errors--
				}
				break
			}
			if d.Kind == stint.Tool {
				t.Tools++
			}
			t.Reserved.Input -= d.Reserve.Input
			t.Reserved.Output -= d.Reserve.Output
			t.Reserved.CacheRead -= d.Reserve.CacheRead
			t.Reserved.CacheWrite -= d.Reserve.CacheWrite
			t.Reserved.Cost -= d.Reserve.Cost
			t.Usage.Input += d.Usage.Input
			t.Usage.Output += d.Usage.Output
			t.Usage.CacheRead += d.Usage.CacheRead
			t.Usage.CacheWrite += d.Usage.CacheWrite
			t.Usage.Cost += d.Usage.Cost
		case journal.Resumed:
			if m.statusAfter(i).Ended() {
				t.Restarts++
			}
		}
		stop := slices.Contains(stops(), f.kind)
		end := f.at
		if i > 0 && f.by != m.facts[i-1].by {
			stop, end = true, m.facts[i-1].at // nobody knows how long the one before went on after this
		}
		if stop && !begin.IsZero() {
			took := max(0, end.Sub(begin))
			if f.by == m.facts[i-1].by && f.ran > 0 {
				took = f.ran // measured by the runner whose stretch it was
			}
			t.Running += took
			begin = time.Time{}
		}
		if f.kind == stint.LoopStarted {
			begin = f.at
		}
	}
	return t
}
