package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/journal"
	"github.com/stint-dev/stint/store/storetest"
)

// An invariant is a sentence that holds at every moment of every simulation. It
// returns what contradicts it. Others are checked as things happen: that no two
// hold a session at once, that caps are kept, and that none who was fenced writes
// (world.granted, port.land), that a position has one key and one input (world.act), that a dead
// runner's sessions are taken over (cluster.kill).
type invariant struct {
	name  string
	holds func(w *world, v *view) error
}

func invariants() []invariant {
	return []invariant{
		{"every session that was created is there, once a key", createdAreThere},
		{"a journal verifies: gapless, chained, legal, one answer a position, and the row is its fold", journalsVerify},
		{"what anybody was told is durable is in the journal", ackedAreThere},
		{"a message that was sent is in the inbox, or was taken or refused once", messagesAreKept},
		{"a decision that was sent is in the inbox, or was the one that counts", decisionsCount},
		{"a yes to an order is followed by what was ordered, and each branch is of one decision", decidedAboutOrders},
		{"a once step has its intent first, and was done once unless somebody said that it was not", onceIsOnce},
		{"a state is what the loop before returned", statesAreReturned},
		{"a branch begins where its parent was, and what it saw there is still there", branchesFit},
		{"an attempt has a reason", attemptsHaveReasons},
		{"a lease that ended without a release has a reason", leasesHaveReasons},
		{"agents that do the same each time do not diverge", nobodyDiverges},
		{"limits are kept", limitsAreKept},
		{"no loop is begun that failed or killed its runner too often", brakesHold},
		{"what a restart says is heard by the next loop that begins", saysAreHeard},
		{"who shows as running has a lease and lives, and caps are kept", runningIsLive},
		{"a spawn leads to one child, and no child is there without one", spawnsHaveOneChild},
		{"a child is of its parent's family, and names where it was begun", childrenFit},
		{"the end of a child is told its parent once", endsAreTold},
		{"what a parent is told reaches its children, and so does its end", ordersReach},
		{"nobody waits for a child when none is open", waitsForChildrenEnd},
		{"what a tree shares is not used up beyond its limit", treesKeepLimits},
	}
}

// view is the store at one moment.
type view struct {
	*testing.T
	ids     []stint.ID
	moved   []stint.ID                   // those whose journal grew since the view before
	folds   map[stint.ID][]stint.Session // of those that moved: as it was before each entry, and after the last
	rows    map[stint.ID]stint.Row
	entries map[stint.ID][]stint.Entry
	inbox   map[stint.ID][]stint.Message
	kids    map[stint.ID][]stint.ID // of each session, those detached too
}

// wrong is what contradicts an invariant.
type wrong struct {
	session stint.ID
	what    string
}

func (e *wrong) Error() string { return e.what }

func in(id stint.ID, format string, args ...any) error {
	return &wrong{id, fmt.Sprintf(format, args...)}
}

// look reads everything. Nobody may write meanwhile.
func (w *world) look(t *testing.T) (*view, error) {
	ctx := context.WithoutCancel(w.ctx)
	v := &view{T: t, folds: map[stint.ID][]stint.Session{}, rows: map[stint.ID]stint.Row{}, entries: map[stint.ID][]stint.Entry{}, inbox: map[stint.ID][]stint.Message{},
		kids: map[stint.ID][]stint.ID{}}
	for page := (stint.Filter{Limit: 500}); ; {
		rows, err := w.store.Sessions(ctx, page)
		if err != nil || len(rows) == 0 {
			return v, err
		}
		for _, row := range rows {
			id := row.Session.ID
			page.After = id
			v.ids = append(v.ids, id)
			v.rows[id] = row
			if isKid(&row.Session) {
				v.kids[row.Session.Parent.Session] = append(v.kids[row.Session.Parent.Session], id)
			}
			for after := stint.Seq(0); ; {
				es, err := w.store.Entries(ctx, stint.Range{Session: id, After: after})
				if err != nil {
					return v, err
				}
				if len(es) == 0 {
					break
				}
				v.entries[id] = append(v.entries[id], es...)
				after = es[len(es)-1].Seq
			}
			if v.inbox[id], err = w.store.Inbox(ctx, id); err != nil {
				return v, err
			}
			if err := w.fold(v, id); err != nil {
				return v, err
			}
		}
	}
}

// fold adds a session to those that moved, if it did.
func (w *world) fold(v *view, id stint.ID) error {
	es := v.entries[id]
	if w.looked[id] == stint.Seq(len(es)) {
		return nil
	}
	w.looked[id] = stint.Seq(len(es))
	v.moved = append(v.moved, id)
	all := make([]stint.Session, len(es)+1)
	for i, e := range es {
		var err error
		if all[i+1], err = journal.Apply(all[i], e); err != nil {
			return in(id, "the fold: %v", err)
		}
	}
	w.remember(id, all, es)
	v.folds[id] = all
	return nil
}

// check holds the store against every invariant.
func (w *world) check(t *testing.T) {
	t.Helper()
	v, err := w.look(t)
	if err != nil {
		w.wrong("the store cannot be read", err)
		return
	}
	for _, inv := range invariants() {
		if err := inv.holds(w, v); err != nil {
			w.wrong(inv.name, err)
			return
		}
	}
}

func (w *world) wrong(name string, err error) {
	var e *wrong
	if errors.As(err, &e) {
		w.broken(e.session, "%s:\n%v", name, err)
		return
	}
	w.broken(stint.ID{}, "%s:\n%v", name, err)
}

func createdAreThere(w *world, v *view) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for key, id := range w.created {
		if _, ok := v.rows[id]; !ok {
			return in(id, "%s led to %s, which is not there", key, id)
		}
	}
	byNumber := map[string]stint.ID{}
	for _, id := range v.ids {
		n := v.rows[id].Session.Labels["n"]
		if goesOn(v, id) {
			continue
		}
		if other, ok := byNumber[n]; ok {
			return in(id, "sessions %s and %s were made from one key", id, other)
		}
		byNumber[n] = id
	}
	return nil
}

// recorder is a test that may fail without failing the one that looks on.
type recorder struct {
	testing.TB
	errors []string
}

func (r *recorder) Errorf(format string, args ...any) {
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}

func journalsVerify(w *world, v *view) error {
	r := &recorder{TB: v.T}
	storetest.Check(r, w.store)
	if len(r.errors) > 0 {
		return in(stint.ID{}, "%s", strings.Join(r.errors, "\n"))
	}
	for _, id := range v.moved {
		var verifier journal.Verifier
		for _, e := range v.entries[id] {
			if err := verifier.Add(e); err != nil {
				return in(id, "%v", err)
			}
		}
		if s, err := verifier.Result(); err != nil || s.Head != v.rows[id].Session.Head {
			return in(id, "the fold ends at %d, the row at %d: %v", s.Head, v.rows[id].Session.Head, err)
		}
	}
	return nil
}

func ackedAreThere(w *world, v *view) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for id, acked := range w.acked {
		es := v.entries[id]
		for seq, hash := range acked {
			if int(seq) > len(es) || es[seq-1].Hash != hash {
				return in(id, "entry %d was acknowledged and is not there as it was", seq)
			}
		}
	}
	return nil
}

func messagesAreKept(w *world, v *view) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, id := range v.ids {
		seen := map[string]stint.Seq{}
		for i := range v.entries[id] {
			e := &v.entries[id][i]
			if e.Kind != stint.MessageTaken && e.Kind != stint.MessageRefused {
				continue
			}
			d, err := journal.Decode[journal.Taken](e)
			if err != nil {
				return in(id, "%v", err)
			}
			if other, ok := seen[d.ID]; ok {
				return in(id, "message %s (%s) was taken by entry %d and by entry %d", d.ID, d.Kind, other, e.Seq)
			}
			seen[d.ID] = e.Seq
		}
		for _, m := range v.inbox[id] {
			if seq, ok := seen[m.ID]; ok {
				return in(id, "message %s (%s) is in the inbox and was taken by entry %d", m.ID, m.Kind, seq)
			}
			seen[m.ID] = 1
		}
		for mid, m := range w.sent[id] {
			if seen[mid] == 0 {
				return in(id, "message %s (%s %s%s) was sent and is neither in the inbox nor in the journal", mid, m.Kind, m.Data, m.Body)
			}
		}
	}
	return nil
}

// decisionsCount: what a person was told is decided is so, unless the question had ended.
func decisionsCount(w *world, v *view) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for id, sent := range w.decided {
		found := map[string]bool{}
		for i := range v.inbox[id] {
			found[v.inbox[id][i].ID] = true
		}
		for i := range v.entries[id] {
			switch e := &v.entries[id][i]; e.Kind {
			case stint.ApprovalDecided:
				d, err := journal.Decode[journal.ApprovalDecided](e)
				if err != nil {
					return in(id, "%v", err)
				}
				if want, ok := sent[d.Approval]; ok && e.Actor == "human:kim" && d.State != want {
					return in(id, "entry %d says %s of entry %d, and %s was sent", e.Seq, d.State, d.Approval, want)
				}
				found[journal.Decision{Approval: d.Approval}.MessageID()] = true
			case stint.MessageRefused:
				d, err := journal.Decode[journal.Taken](e)
				if err != nil {
					return in(id, "%v", err)
				}
				found[d.ID] = true
			}
		}
		for seq, state := range sent {
			if !found[journal.Decision{Approval: seq}.MessageID()] {
				return in(id, "the decision %s about entry %d is nowhere", state, seq)
			}
		}
	}
	return nil
}

// onceIsOnce counts what the outside world saw. A person's "not" allows one more.
func onceIsOnce(w *world, v *view) error {
	intents, allowed := map[place]bool{}, map[place]int{}
	for _, id := range v.ids {
		for i := range v.entries[id] {
			e := &v.entries[id][i]
			at := place{id, e.Pos.Line, e.Pos.Loop, e.Pos.Step, e.Pos.Sub}
			switch e.Kind {
			case stint.StepRequested:
				intents[at] = true
			case stint.StepResolved:
				if d, err := journal.Decode[journal.StepResolved](e); err == nil && d.Verdict == journal.NotHappened {
					allowed[at]++
				}
			}
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range w.effects {
		switch {
		case e.class != stint.Once:
		case !intents[e.at]:
			return in(e.at.session, "%v took effect and no intent is recorded", e.at)
		case e.times > 1+allowed[e.at]:
			return in(e.at.session, "%v took effect %d times; %d times somebody said that it had not", e.at, e.times, allowed[e.at])
		}
	}
	return nil
}

// statesAreReturned compares checkpoints with what loops were given and returned,
// and reads the newest state of each session back.
func statesAreReturned(w *world, v *view) error {
	for _, id := range v.moved {
		folds := v.folds[id]
		for i := range v.entries[id] {
			e := &v.entries[id][i]
			at := visit{id, e.Epoch, e.Pos.Line, e.Pos.Loop, e.Pos.Attempt}
			if err := w.stateAt(e, at, folds[i].Checkpoint.Sum, folds[i+1].Checkpoint.Sum); err != nil {
				return err
			}
		}
		s := folds[len(folds)-1]
		if _, err := journal.ReadState(s.Checkpoint, engine.Source(context.WithoutCancel(w.ctx), w.store, id, s.Family)); err != nil {
			return in(id, "the state of checkpoint %d: %v", s.Checkpoint.Loop, err)
		}
	}
	return nil
}

func (w *world) stateAt(e *stint.Entry, at visit, before, after stint.Hash) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch e.Kind {
	case stint.LoopStarted:
		if given, ok := w.began[at]; ok && given != before {
			return in(at.session, "the loop that entry %d began was given another state than the checkpoint before it", e.Seq)
		}
	case stint.LoopCompleted:
		gave, ok := w.gave[at]
		switch {
		case ok && gave != after:
			return in(at.session, "entry %d is another state than the loop returned", e.Seq)
		case !ok && !w.kept[at]:
			return in(at.session, "entry %d completes a loop that did not end well", e.Seq)
		case !ok && before != after:
			return in(at.session, "entry %d changes the state, and the loop returned none", e.Seq)
		}
	}
	return nil
}

// branchesFit compares what branches began with and what their parents had left there.
func branchesFit(_ *world, v *view) error {
	for _, id := range v.moved {
		s := v.folds[id][1]
		from := s.Parent
		if !from.Branch {
			continue
		}
		es := v.entries[from.Session]
		if int(from.Seq) > len(es) || es[from.Seq-1].Hash != from.Hash {
			return in(id, "entry %d of %s, behind which it branched off, is not there or is another one", from.Seq, from.Session)
		}
		then, err := journal.Fold(stint.Session{}, es[:from.Seq])
		if err != nil {
			return in(from.Session, "the fold: %v", err)
		}
		if then.Checkpoint.Sum != s.Checkpoint.Sum || then.Checkpoint.Size != s.Checkpoint.Size {
			return in(id, "it began with another state than loop %d of %s left", from.Loop, from.Session)
		}
	}
	return nil
}

// attemptsHaveReasons: a new one because a process died, the loop failed, or a
// person began it again; the same one after a park, a drain or a fence.
func attemptsHaveReasons(_ *world, v *view) error {
	for _, id := range v.moved {
		reasons := map[string]bool{}
		for i := range v.entries[id] {
			e := &v.entries[id][i]
			switch e.Kind {
			case stint.LoopFailed, stint.SessionEnded, stint.SessionWaiting, stint.SessionReleased:
				reasons[string(e.Kind)] = true
			case stint.MessageTaken:
				if d, err := journal.Decode[journal.Taken](e); err == nil && d.Kind == stint.Restart {
					reasons["restart"] = true
				}
			case stint.SessionResumed:
				if d, err := journal.Decode[journal.Resumed](e); err == nil && d.Why == "restart" { // one that others agreed to
					reasons["restart"] = true
				}
			case stint.LeaseLost:
				d, err := journal.Decode[journal.LeaseLost](e)
				if err != nil {
					return in(id, "%v", err)
				}
				reasons[string(d.Prior)] = true
			case stint.LoopStarted:
				s := &v.folds[id][i]
				again := s.At.Open && e.Pos.Attempt > s.At.Attempt
				if again && !reasons["died"] && !reasons["restart"] && !reasons[string(stint.LoopFailed)] && !reasons[string(stint.SessionEnded)] {
					return in(id, "entry %d begins attempt %d, and neither did a process die nor the loop fail", e.Seq, e.Pos.Attempt)
				}
				clear(reasons)
			}
		}
	}
	return nil
}

// leasesHaveReasons: died is said of the dead, expired of those that could not
// renew; nobody else loses a lease.
func leasesHaveReasons(w *world, v *view) error {
	for _, id := range v.ids {
		w.mu.Lock()
		all := slices.Clone(w.grants[id])
		w.mu.Unlock()
		for i, g := range all {
			if i == 0 {
				continue
			}
			last := all[i-1]
			switch {
			case g.prior == stint.Died && !last.port.diedBy(g.claimed):
				return in(id, "epoch %d: %s is said to have died, and lives", g.epoch, last.port.name)
			case g.prior == stint.Expired && last.port.diedBy(g.claimed.Add(-1)):
				return in(id, "epoch %d: the lease of %s is said to have expired, but it died", g.epoch, last.port.name)
			case g.prior == stint.Expired && !last.port.wasSick(last.claimed) && !w.wasFull(last.claimed):
				return in(id, "epoch %d: the lease of %s expired although nothing was wrong with it", g.epoch, last.port.name)
			case g.prior == stint.Released && !last.released:
				return in(id, "epoch %d: the lease of %s is said to be released, and was not", g.epoch, last.port.name)
			}
		}
	}
	return nil
}

func nobodyDiverges(_ *world, v *view) error {
	for _, id := range v.moved {
		for i := range v.entries[id] {
			e := &v.entries[id][i]
			if e.Kind != stint.SessionWaiting {
				continue
			}
			if d, err := journal.Decode[journal.Waiting](e); err == nil && d.For == stint.ForDoubt && strings.Contains(d.What, "the agent now") {
				return in(id, "entry %d: %s", e.Seq, d.What)
			}
		}
	}
	return nil
}

// limitsAreKept: nothing begins beyond a limit; a group may pass it by its size.
func limitsAreKept(_ *world, v *view) error {
	for _, id := range v.moved {
		for i := range v.entries[id] {
			e := &v.entries[id][i]
			s := &v.folds[id][i]
			lim, used := s.Limits, s.Totals
			switch {
			case e.Kind == stint.LoopStarted && lim.Loops > 0 && used.Loops >= lim.Loops && !s.At.Open:
				return in(id, "entry %d begins loop %d of at most %d", e.Seq, used.Loops+1, lim.Loops)
			case (e.Kind == stint.LoopStarted || e.Kind == stint.StepRequested) && lim.Steps > 0 && used.Steps >= lim.Steps && e.Pos.Sub == 0:
				return in(id, "entry %d begins something after %d of %d steps", e.Seq, used.Steps, lim.Steps)
			case e.Kind == stint.StepCompleted && lim.Steps > 0 && used.Steps >= lim.Steps && e.Pos.Sub == 0:
				return in(id, "entry %d is step %d of at most %d", e.Seq, used.Steps+1, lim.Steps)
			}
		}
	}
	return nil
}

func brakesHold(_ *world, v *view) error {
	for _, id := range v.moved {
		for i := range v.entries[id] {
			e := &v.entries[id][i]
			if why, on := journal.Brake(&v.folds[id][i], e.At); on && e.Kind == stint.LoopStarted {
				return in(id, "entry %d begins a loop all the same: %s", e.Seq, why)
			}
		}
	}
	return nil
}

func saysAreHeard(_ *world, v *view) error {
	for _, id := range v.moved {
		open := map[string]stint.Seq{}
		for i := range v.entries[id] {
			e := &v.entries[id][i]
			switch e.Kind {
			case stint.MessageTaken:
				d, err := journal.Decode[journal.Taken](e)
				if err != nil {
					return in(id, "%v", err)
				}
				delete(open, d.ID)
				var c journal.Command
				if d.Kind == stint.Restart && decodeJSON(d.Data, &c) == nil && c.Say != "" && c.Ask == nil {
					open[d.ID+"/say"] = e.Seq
				}
			case stint.StepCompleted, stint.StepRequested, stint.LoopCompleted: // the loop has begun in earnest
				if e.Pos.Attempt != 1 {
					break
				}
				s := &v.folds[id][i]
				for _, seq := range open {
					if seq < s.At.LoopSeq {
						return in(id, "what the restart of entry %d says was not taken by loop %d, which entry %d began", seq, s.At.Loop, s.At.LoopSeq)
					}
				}
			}
		}
	}
	return nil
}

func runningIsLive(w *world, v *view) error {
	w.mu.Lock()
	capped := w.liveOf("capped")
	w.mu.Unlock()
	if capped > simCap {
		return in(stint.ID{}, "%d sessions of an agent run of which at most %d may", capped, simCap)
	}
	for _, id := range v.ids {
		row := v.rows[id]
		w.mu.Lock()
		g := w.grantLocked(id, row.Lease.Epoch)
		w.mu.Unlock()
		switch {
		case !row.Live:
		case g == nil:
			return in(id, "the lease of epoch %d was granted to nobody", row.Lease.Epoch)
		case g.port.isDead():
			return in(id, "it shows as running, and its holder %s is dead", g.port.name)
		case !time.Now().Before(row.Lease.Expires):
			return in(id, "it shows as running, and its lease expired")
		}
	}
	return nil
}

// atRest is what must hold a minute after the last fault was healed: everything
// has ended or waits for something that has not come.
func (w *world) atRest(ctx context.Context) {
	for _, id := range w.sessions() {
		row, err := w.store.Session(ctx, id)
		if err != nil {
			w.broken(id, "a session that was created cannot be read: %v", err)
			return
		}
		s := &row.Session
		status, reason := row.Status()
		fresh := row.Live && time.Since(row.Lease.Claimed) < 5*time.Second
		switch {
		case fresh || status.Ended():
		case status != stint.Waiting:
			w.broken(id, "a minute after the last fault it is %s (%s)", status, reason)
		case !s.Wait.Until.IsZero() && time.Since(s.Wait.Until) > 5*time.Second:
			w.broken(id, "it waits for %s, and its time came %v ago", s.Wait.For, time.Since(s.Wait.Until))
		case w.leftBehind(ctx, s):
			w.broken(id, "its parent has ended, and a minute after the last fault it is %s (%s)", status, reason)
		}
	}
}
