package journal

import (
	"maps"
	"time"

	"github.com/stint-dev/stint"
)

// Apply returns the session that e leads to from s. It checks that e may follow:
// the next seq, no older epoch, a kind that is legal now. It does not check the
// hash, which is [Verify]'s part; the result has e's.
func Apply(s stint.Session, e stint.Entry) (stint.Session, error) {
	d, err := typed(&e)
	if err != nil {
		return s, err
	}
	out := s
	if err := apply(&out, &e, d); err != nil {
		return s, err
	}
	out.HeadHash = e.Hash
	return out, nil
}

// Fold applies es in order, starting from s (the zero Session for a whole
// journal).
func Fold(s stint.Session, es []stint.Entry) (stint.Session, error) {
	for i := range es {
		var err error
		if s, err = Apply(s, es[i]); err != nil {
			return s, err
		}
	}
	return s, nil
}

// typed decodes the data of the kinds that change a session.
func typed(e *stint.Entry) (any, error) {
	switch e.Kind {
	case stint.SessionCreated:
		return Decode[Created](e)
	case stint.SessionWaiting:
		return Decode[Parked](e)
	case stint.SessionResumed:
		return Decode[Resumed](e)
	case stint.SessionEnded:
		return Decode[Ended](e)
	case stint.SessionReleased:
		return Decode[Released](e)
	case stint.LineStarted:
		return Decode[LineStarted](e)
	case stint.LoopStarted:
		return Decode[LoopStarted](e)
	case stint.LoopCompleted:
		return Decode[LoopCompleted](e)
	case stint.LoopFailed:
		return Decode[LoopFailed](e)
	case stint.LimitChanged:
		return Decode[LimitChanged](e)
	case stint.StepRequested:
		return Decode[StepRequested](e)
	case stint.StepCompleted, stint.StepFailed:
		return Decode[StepDone](e)
	case stint.ApprovalRequested:
		return Decode[ApprovalRequested](e)
	case stint.ApprovalDecided:
		return Decode[ApprovalDecided](e)
	case stint.ApprovalChanged:
		return Decode[ApprovalChanged](e)
	case stint.LeaseLost:
		return Decode[LeaseLost](e)
	case stint.MessageTaken:
		return Decode[Taken](e)
	}
	return nil, nil
}

// apply changes s as e, with its data d, says.
func apply(s *stint.Session, e *stint.Entry, d any) error {
	if err := inOrder(s, e); err != nil {
		return err
	}
	if err := allowed(s, e); err != nil {
		return err
	}
	ran := !s.At.Since.IsZero()
	if e.Epoch != s.Epoch {
		pause(s, s.Updated, 0) // a runner that is gone ran until its newest entry at least
	}
	s.Epoch = e.Epoch
	switch d := d.(type) {
	case Created:
		if err := bornRight(s, e, &d); err != nil {
			return err
		}
		created(s, e, d)
	case Parked:
		waiting(s, e, d)
	case Released:
		park(s, e.At, d.Ran)
	case Resumed:
		resumed(s, d)
	case Ended:
		if !d.Outcome.Ended() {
			return illegal(s, e, "%q is no end", d.Outcome)
		}
		ended(s, e, d)
	case LineStarted:
		if from := base(s.Parent); d.From < from || d.From > s.Checkpoint.Loop {
			return illegal(s, e, "it keeps loops %d to %d of %d", from+1, d.From, s.Checkpoint.Loop)
		}
		lineStarted(s, e, d)
	case LoopStarted:
		if err := loopStarted(s, e); err != nil {
			return err
		}
	case LoopCompleted:
		loopCompleted(s, e, d)
	case LoopFailed:
		loopFailed(s, e, d)
	case StepRequested:
		if err := permitted(s, e, d); err != nil {
			return err
		}
		stepRequested(s, d)
	case StepDone:
		if d.Copied && (!s.Parent.Branch || e.Epoch != 0) {
			return illegal(s, e, "only what a branch begins with is copied")
		}
		if err := permitted(s, e, d.StepRequested); err != nil {
			return err
		}
		stepDone(s, e, d)
	case ApprovalRequested, ApprovalChanged, ApprovalDecided:
		if err := questioned(s, e, d); err != nil {
			return err
		}
	case LimitChanged:
		s.Limits = d.Limits
		s.Limits.Deadline = micro(d.Limits.Deadline)
	case LeaseLost:
		if d.Prior != stint.Died && d.Prior != stint.Expired {
			return illegal(s, e, "a lease is lost because its runner died or it expired, not by %q", d.Prior)
		}
		leaseLost(s, d, ran)
	case Taken:
		if d.Kind.Input() {
			said(s, e)
		}
	}
	switch e.Kind {
	case stint.StepRequested, stint.StepCompleted, stint.StepFailed, stint.ApprovalRequested:
		s.At.Step = max(s.At.Step, e.Pos.Step)
	}
	s.Head, s.Updated = e.Seq, e.At
	return nil
}

func inOrder(s *stint.Session, e *stint.Entry) error {
	line := s.At.Line
	if e.Kind == stint.LineStarted {
		line++
	}
	switch {
	case e.Session != s.ID && s.Head != 0:
		return illegal(s, e, "belongs to session %s", e.Session)
	case e.Seq != s.Head+1:
		return illegal(s, e, "has seq %d after %d", e.Seq, s.Head)
	case e.Epoch < s.Epoch:
		return illegal(s, e, "has epoch %d after %d", e.Epoch, s.Epoch)
	case e.Pos.Line != line:
		return illegal(s, e, "is on line %d, the session is on %d", e.Pos.Line, line)
	}
	return nil
}

// allowed says whether an entry of e's kind may follow in the session's status.
func allowed(s *stint.Session, e *stint.Entry) error {
	if (e.Kind == stint.SessionCreated) != (s.Head == 0) {
		return illegal(s, e, "session.created is the first entry and no other")
	}
	switch e.Kind {
	case stint.SessionCreated, stint.MessageTaken, stint.MessageRefused:
		return nil
	case stint.LeaseLost:
		if e.Epoch == s.Epoch {
			return illegal(s, e, "only the next holder can say so")
		}
		return nil
	}
	if system := s.Trigger.Kind == systemTrigger; system != (e.Kind == stint.SystemRecorded) {
		return illegal(s, e, "the system journal holds records, and nothing else does")
	} else if system {
		return nil
	}
	switch e.Kind {
	case stint.SessionResumed:
		if s.Status == stint.Pending {
			return illegal(s, e, "the session is not waiting and has not ended")
		}
		return nil
	case stint.LineStarted:
		return nil
	}
	if e.Pos.Step == 0 { // questions about orders: in any status
		switch e.Kind {
		case stint.ApprovalRequested, stint.ApprovalChanged, stint.ApprovalDecided:
			return nil
		}
	}
	if s.Status.Ended() {
		return illegal(s, e, "the session has ended (%s)", s.Status)
	}
	switch e.Kind {
	case stint.SessionEnded, stint.LimitChanged, stint.SessionReleased:
		return nil
	case stint.StepResolved, stint.ApprovalDecided, stint.ApprovalChanged:
		return openLoop(s, e)
	case stint.SessionWaiting:
		if s.Status == stint.Waiting {
			return illegal(s, e, "the session is waiting already")
		}
		return nil
	}
	if s.Status == stint.Waiting {
		return illegal(s, e, "the session is waiting for %s", s.Wait.For)
	}
	switch e.Kind {
	case stint.LoopStarted:
		if !s.At.Since.IsZero() && e.Epoch == s.Epoch {
			return illegal(s, e, "attempt %d at loop %d runs", s.At.Attempt, s.At.Loop)
		}
		return nil
	case stint.LoopCompleted, stint.LoopFailed, stint.OutputWritten:
		return underWay(s, e)
	case stint.StepRequested, stint.StepCompleted, stint.StepFailed, stint.ApprovalRequested:
		if e.Pos.Step < 1 {
			return illegal(s, e, "steps count from 1")
		}
		return underWay(s, e)
	}
	return illegal(s, e, "no such kind of entry")
}

func openLoop(s *stint.Session, e *stint.Entry) error {
	if !s.At.Open || e.Pos.Loop != s.At.Loop {
		return illegal(s, e, "loop %d is not open", e.Pos.Loop)
	}
	return nil
}

// underWay checks that an attempt runs, and that e is of it.
func underWay(s *stint.Session, e *stint.Entry) error {
	if err := openLoop(s, e); err != nil {
		return err
	}
	if s.At.Since.IsZero() || e.Epoch != s.Epoch {
		return illegal(s, e, "no attempt at loop %d runs", s.At.Loop)
	}
	if e.Pos.Attempt != s.At.Attempt {
		return illegal(s, e, "attempt %d is under way, not %d", s.At.Attempt, e.Pos.Attempt)
	}
	return nil
}

func illegal(s *stint.Session, e *stint.Entry, format string, args ...any) error {
	err := stint.Invalid.Errorf("journal", "%s cannot follow entry %d: "+format, append([]any{e.Kind, s.Head}, args...)...)
	err.Session = s.ID
	return err
}

func created(s *stint.Session, e *stint.Entry, d Created) {
	d.Limits.Deadline, d.Trigger.Due = micro(d.Limits.Deadline), micro(d.Trigger.Due)
	if d.Labels = maps.Clone(d.Labels); len(d.Labels) == 0 { // they may be the caller's
		d.Labels = nil
	}
	*s = stint.Session{
		ID: e.Session, Epoch: e.Epoch, Family: d.Family, Name: d.Name, Agent: d.Agent, Trigger: d.Trigger, Parent: d.Parent,
		Labels: d.Labels, Limits: d.Limits, Status: stint.Pending, Created: e.At,
	}
	s.At.Loop, s.Checkpoint = base(d.Parent), d.checkpoint(e)
}

// bornRight checks what only a branch may begin with.
func bornRight(s *stint.Session, e *stint.Entry, d *Created) error {
	p := &d.Parent
	switch {
	case p.Branch && (p.Session.IsZero() || p.Session == e.Session || p.Seq < 1 || p.Loop < 0):
		return illegal(s, e, "a branch names the entry of another session that it begins at")
	case !p.Branch && (p.Loop != 0 || d.State != (StateRef{}) || len(d.Skipped) > 0):
		return illegal(s, e, "only a branch begins with a state")
	case d.State != (StateRef{}) && d.State.Enc != Full:
		return illegal(s, e, "a branch has its state whole, not %q", d.State.Enc)
	}
	return nil
}

// micro is a time as a session has it: UTC, whole microseconds; zero stays zero.
func micro(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.UTC().Truncate(time.Microsecond)
}

// pause closes a stretch of running time: what its runner measured, or the time up to
// at if it left no word of that.
func pause(s *stint.Session, at time.Time, ran time.Duration) {
	if s.At.Since.IsZero() {
		return
	}
	if ran <= 0 {
		ran = max(0, at.Sub(s.At.Since))
	}
	s.Totals.Running += ran
	s.At.Since = time.Time{}
}

// park ends a stretch of running time such that going on is not a new attempt,
// unless the attempt had ended already.
func park(s *stint.Session, at time.Time, ran time.Duration) {
	s.At.Parked = s.At.Open && (s.At.Parked || !s.At.Since.IsZero())
	pause(s, at, ran)
}

// leaseLost closes the running stretch of a runner that is gone. A death ends the
// attempt and counts for the brake; a runner that was merely fenced does neither.
func leaseLost(s *stint.Session, d LeaseLost, ran bool) {
	if d.Prior == stint.Expired {
		s.At.Parked = s.At.Open && (s.At.Parked || ran)
		return
	}
	s.At.Parked = false
	s.At.Deaths++
}

// said notes a prompt that is taken for a loop which has not begun: that loop's
// entries begin with it.
func said(s *stint.Session, e *stint.Entry) {
	at := &s.At
	switch {
	case !at.Open && at.LoopSeq == 0 && e.Pos.Loop == s.Checkpoint.Loop+1:
		at.LoopSeq = e.Seq
	case at.Open && at.Said == 0 && e.Pos.Loop == at.Loop+1:
		at.Said = e.Seq
	}
}

func waiting(s *stint.Session, e *stint.Entry, d Parked) {
	park(s, e.At, d.Ran)
	w := d.Waiting
	w.Since, w.Until = e.At, micro(d.Until)
	s.Status, s.Reason, s.Wait = stint.Waiting, string(d.For), &w
}

func resumed(s *stint.Session, d Resumed) {
	if s.Status.Ended() {
		s.Totals.Restarts++
		s.At.Parked, s.At.Failures, s.At.Deaths = false, nil, 0
	}
	s.Status, s.Reason, s.Wait, s.Ended = stint.Pending, d.Reason, nil, time.Time{}
}

func ended(s *stint.Session, e *stint.Entry, d Ended) {
	pause(s, e.At, d.Ran)
	s.At.Parked, s.At.Approvals = false, ofOrders(s.At.Approvals)
	s.Status, s.Reason, s.Wait, s.Ended = d.Outcome, d.Reason, nil, e.At
}

func stepRequested(s *stint.Session, d StepRequested) {
	s.Totals.Reserved = s.Totals.Reserved.Add(d.Reserve)
	if d.Child {
		s.Totals.Children++
	}
}

func stepDone(s *stint.Session, e *stint.Entry, d StepDone) {
	if d.Copied {
		if e.Kind == stint.StepCompleted || d.Definite {
			settled(s, e.Pos)
		}
		return
	}
	if e.Kind == stint.StepFailed {
		s.Totals.Errors++
	} else {
		s.Totals.Steps++
	}
	if d.Kind == stint.Tool {
		s.Totals.Tools++
	}
	s.Totals.Usage = s.Totals.Usage.Add(d.Usage)
	s.Totals.Reserved = s.Totals.Reserved.Add(negative(d.Reserve))
	if e.Kind == stint.StepCompleted || d.Definite {
		settled(s, e.Pos)
	}
}

func negative(u stint.Usage) stint.Usage {
	return stint.Usage{Input: -u.Input, Output: -u.Output, CacheRead: -u.CacheRead, CacheWrite: -u.CacheWrite, Cost: -u.Cost}
}

func lineStarted(s *stint.Session, e *stint.Entry, d LineStarted) {
	pause(s, e.At, d.Ran)
	s.Totals.Restarts++
	s.At = stint.Place{Line: e.Pos.Line, Loop: d.From}
	s.Checkpoint = d.checkpoint(e)
	if d.Agent != nil {
		s.Agent = *d.Agent
	}
	s.Status, s.Reason, s.Wait, s.Ended = stint.Pending, d.Reason, nil, time.Time{}
	if d.Park {
		s.Status, s.Reason = stint.Waiting, string(stint.ForOperator)
		s.Wait = &stint.Wait{For: stint.ForOperator, Since: e.At, What: "rolled back to loop " + stint.Position{Loop: d.From}.String()}
	}
}

func loopStarted(s *stint.Session, e *stint.Entry) error {
	loop, attempt := s.Checkpoint.Loop+1, 1
	if s.At.Open {
		loop, attempt = s.At.Loop, s.At.Attempt+1
		if s.At.Parked {
			attempt--
		}
	}
	if e.Pos.Loop != loop || e.Pos.Attempt != attempt || e.Pos.Step != 0 {
		return illegal(s, e, "loop %d attempt %d was to begin, not loop %d attempt %d", loop, attempt, e.Pos.Loop, e.Pos.Attempt)
	}
	at := &s.At
	if !at.Open {
		at.Loop, at.Step = loop, 0
		if at.LoopSeq == 0 {
			at.LoopSeq = e.Seq
		}
	}
	if at.Attempt != attempt || !at.Open {
		s.Totals.Attempts++
	}
	at.Attempt, at.Open, at.Parked, at.Since = attempt, true, false, e.At
	s.Reason = ""
	return nil
}

func loopCompleted(s *stint.Session, e *stint.Entry, d LoopCompleted) {
	pause(s, e.At, d.Ran)
	s.Totals.Loops++
	s.Checkpoint = d.checkpoint(e, s.Checkpoint)
	s.At = stint.Place{Line: s.At.Line, Loop: s.At.Loop, Attempt: s.At.Attempt, LoopSeq: s.At.Said, Approvals: ofOrders(s.At.Approvals)}
}

func loopFailed(s *stint.Session, e *stint.Entry, d LoopFailed) {
	pause(s, e.At, d.Ran)
	s.Totals.Errors++
	fs := s.At.Failures
	if len(fs) >= maxFailures {
		fs = fs[len(fs)-maxFailures+1:]
	}
	s.At.Failures = append(fs[:len(fs):len(fs)], e.At)
	s.At.Parked = false
	s.At.Error = d.Error
}
