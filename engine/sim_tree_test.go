package engine_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/internal/past"
	"github.com/stint-dev/stint/journal"
)

// What must hold of sessions and their children, besides what holds of every session. A
// fault in the store for each of these is in sim_mutants_tree_test.go.

// spawnsHaveOneChild: where a step that begins a child has an outcome, the child that it
// names is there; where a child is there, the intent of its step is; and there is one child
// a step.
func spawnsHaveOneChild(_ *world, v *view) error {
	byLabel := map[string]stint.ID{}
	for _, kids := range v.kids {
		for _, id := range kids {
			label := v.rows[id].Session.Labels["n"]
			if other, ok := byLabel[label]; ok {
				return in(id, "step %s began %s and %s", label, id, other)
			}
			byLabel[label] = id
		}
	}
	intents := map[string]bool{}
	for _, id := range v.ids {
		for i := range v.entries[id] {
			e := &v.entries[id][i]
			if !bytes.Contains(e.Data, []byte(`"child":true`)) {
				continue
			}
			label := fmt.Sprintf("%s/%d.%d.%d", v.rows[id].Session.Labels["n"], e.Pos.Line, e.Pos.Loop, e.Pos.Step)
			intents[label] = true
			if e.Kind != stint.StepCompleted {
				continue
			}
			var c past.Spawned
			if err := json.Unmarshal(e.Body, &c); err != nil {
				return in(id, "entry %d: %v", e.Seq, err)
			}
			if byLabel[label] != c.Session {
				return in(id, "entry %d names the child %s, and the one of that step is %s", e.Seq, c.Session, byLabel[label])
			}
		}
	}
	for label, id := range byLabel {
		if !intents[label] {
			return in(id, "the child of step %s is there, and its intent is not", label)
		}
	}
	return nil
}

// childrenFit: the references of a child are right, and so is its level.
func childrenFit(_ *world, v *view) error {
	for parent, kids := range v.kids {
		p, there := v.rows[parent]
		for _, id := range kids {
			s := v.rows[id].Session
			es := v.entries[parent]
			switch at := s.Parent.Seq; {
			case !there:
				return in(id, "its parent %s is not there", parent)
			case s.Family != p.Session.Family:
				return in(id, "it is of family %s, and its parent of %s", s.Family, p.Session.Family)
			case at < 1 || int(at) > len(es) || es[at-1].Hash != s.Parent.Hash:
				return in(id, "entry %d of %s, behind which it was begun, is not there or is another one", at, parent)
			case s.Trigger.Kind != "session" || s.Trigger.Ref != parent.String():
				return in(id, "it was begun by %s %s, and its parent is %s", s.Trigger.Kind, s.Trigger.Ref, parent)
			case !strings.HasPrefix(s.Labels["n"], p.Session.Labels["n"]+"/"):
				return in(id, "it is %s, and its parent %s", s.Labels["n"], p.Session.Labels["n"])
			}
		}
	}
	return nil
}

// letter is a message that a session has, and whether it took or refused it.
type letter struct {
	stint.Message
	at time.Time // when that was; zero: it is in the inbox
}

// heardBy is all that a session was sent.
func (v *view) heardBy(id stint.ID) ([]letter, error) {
	var all []letter
	for i := range v.entries[id] {
		e := &v.entries[id][i]
		if e.Kind != stint.MessageTaken && e.Kind != stint.MessageRefused {
			continue
		}
		d, err := journal.Decode[journal.Taken](e)
		if err != nil {
			return nil, in(id, "%v", err)
		}
		all = append(all, letter{stint.Message{ID: d.ID, Kind: d.Kind, From: d.From, Data: d.Data}, e.At})
	}
	for _, m := range v.inbox[id] {
		all = append(all, letter{Message: m})
	}
	return all, nil
}

// endsAreTold: a parent hears of the end of each child once, however often that one is
// begun again, unless it was over itself.
func endsAreTold(w *world, v *view) error {
	for parent, kids := range v.kids {
		all, err := v.heardBy(parent)
		if err != nil {
			return err
		}
		told := map[stint.ID]int{}
		for i := range all {
			var end engine.ChildEnded
			if all[i].Kind == stint.ChildEnd && decodeJSON(all[i].Data, &end) == nil {
				told[end.Session]++
			}
		}
		for _, id := range kids {
			s := v.rows[id].Session
			switch n := told[id]; {
			case n > 1:
				return in(parent, "it was told %d times that %s ended", n, id)
			case s.Parent.Detach && n > 0:
				return in(parent, "it was told that %s ended, which is detached", id)
			case s.Parent.Detach || n == 1:
				continue
			}
			for _, over := range w.rests[id] {
				if w.steady(parent, over.from) {
					return in(parent, "child %s ended, and it was not told", id)
				}
			}
		}
	}
	return nil
}

// ordersReach: what a session takes that stops, holds or lets go, and its end, was sent to
// each of its children that was open then and is since.
func ordersReach(w *world, v *view) error {
	for parent, kids := range v.kids {
		for _, id := range kids {
			s := v.rows[id].Session
			if s.Parent.Detach {
				continue
			}
			all, err := v.heardBy(id)
			if err != nil {
				return err
			}
			born := w.birth(id)
			for i := range v.entries[parent] {
				e := &v.entries[parent][i]
				if born.IsZero() || !born.Before(e.At) || !w.steady(id, e.At) {
					continue
				}
				if err := reaches(e, id, all); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// reaches holds one entry of a parent against what its child heard.
func reaches(e *stint.Entry, child stint.ID, all []letter) error {
	switch e.Kind {
	case stint.SessionEnded:
		for i := range all {
			m := &all[i]
			var c journal.Command
			if (m.at.IsZero() || !m.at.Before(e.At)) && (m.Kind == stint.Stop || m.Kind == stint.Kill) && decodeJSON(m.Data, &c) == nil && c.Tree == e.Session {
				return nil
			}
		}
		return in(child, "its parent %s ended with entry %d, and did not end it", e.Session, e.Seq)
	case stint.MessageTaken:
		d, err := journal.Decode[journal.Taken](e)
		if err != nil {
			return in(e.Session, "%v", err)
		}
		switch d.Kind {
		case stint.Stop, stint.Kill, stint.Pause, stint.Resume, stint.Interrupt, stint.SetLimit:
		default:
			return nil
		}
		sum := sha256.Sum256(append([]byte(d.ID+"\x00"), child[:]...))
		for i := range all {
			if all[i].ID == "tree-"+hex.EncodeToString(sum[:16]) {
				return nil
			}
		}
		return in(child, "its parent %s took a %s with entry %d, which did not reach it", e.Session, d.Kind, e.Seq)
	}
	return nil
}

// waitsForChildrenEnd: who waits for a child has one that is open, or its end in the inbox.
func waitsForChildrenEnd(_ *world, v *view) error {
	for _, id := range v.ids {
		s := v.rows[id].Session
		kids := make([]stint.Session, 0, len(v.kids[id]))
		for _, kid := range v.kids[id] {
			kids = append(kids, v.rows[kid].Session)
		}
		if hopeless(&s, kids, v.inbox[id]) {
			return in(id, "it waits for a child (%s), and none is open whose end has not come", s.Wait.What)
		}
	}
	return nil
}

// hopeless reports whether a session waits for a child, and nothing will come of it.
func hopeless(s *stint.Session, kids []stint.Session, inbox []stint.Message) bool {
	if s.Status != stint.Waiting || s.Wait.For != stint.ForChild {
		return false
	}
	which := func(kid stint.ID) bool { return s.Wait.What == "" || s.Wait.What == kid.String() }
	for i := range kids {
		if k := &kids[i]; which(k.ID) && !k.Parent.Detach && !k.Status.Ended() {
			return false
		}
	}
	for _, m := range inbox {
		var end engine.ChildEnded
		if m.Kind == stint.ChildEnd && decodeJSON(m.Data, &end) == nil && which(end.Session) {
			return false
		}
	}
	return true
}

// wakes is that rule as a child ends: somebody may have the parent go on before the next
// look at everything. The store is read in several goes, so what moved meanwhile is left.
func (w *world) wakes(sends []stint.Message) {
	for i := range sends {
		if sends[i].Kind != stint.ChildEnd {
			continue
		}
		ctx := context.WithoutCancel(w.ctx)
		was, err := w.store.Session(ctx, sends[i].To)
		if err != nil {
			return
		}
		rows, err := w.store.Sessions(ctx, stint.Filter{Family: was.Session.Family, Limit: 500})
		if err != nil {
			return
		}
		var kids []stint.Session
		for i := range rows {
			if s := &rows[i].Session; isKid(s) && s.Parent.Session == was.Session.ID {
				kids = append(kids, *s)
			}
		}
		inbox, err := w.store.Inbox(ctx, was.Session.ID)
		if err != nil {
			return
		}
		is, err := w.store.Session(ctx, was.Session.ID)
		if err == nil && is.Session.Head == was.Session.Head && hopeless(&was.Session, kids, inbox) {
			w.broken(was.Session.ID, "a child ended, for which it waits, and it does not wake: none is open whose end has not come")
		}
	}
}

// treesKeepLimits adds up what the sessions of each tree used and may yet use. Limits are
// only ever raised here, so those of now bound all that was. What a session used before it
// began a child is bounded by other rules.
func treesKeepLimits(w *world, v *view) error {
	var sum func(id stint.ID) (u stint.Usage, n int)
	sum = func(id stint.ID) (stint.Usage, int) {
		s := v.rows[id].Session
		u, n := s.Totals.Usage.Add(s.Totals.Reserved), len(v.kids[id])
		for _, kid := range v.kids[id] {
			below, more := sum(kid)
			u, n = u.Add(below), n+more
		}
		return u, n
	}
	for _, id := range v.ids {
		s := v.rows[id].Session
		lim := s.Limits
		if lim.Tokens == 0 && lim.Cost == 0 && lim.Children == 0 {
			continue
		}
		u, n := sum(id)
		if lim.Children != 0 && n > max(0, lim.Children) {
			return in(id, "%d sessions were spawned below it, of at most %d", n, lim.Children)
		}
		if s.Totals.Children == 0 {
			continue
		}
		if most := max(lim.Tokens, w.before[id].Tokens()); lim.Tokens > 0 && u.Tokens() > most {
			return in(id, "its tree used or may use %d tokens of %d", u.Tokens(), most)
		}
		if most := max(lim.Cost, w.before[id].Cost); lim.Cost > 0 && u.Cost > most {
			return in(id, "its tree used or may use $%v of $%v", u.Cost, most)
		}
	}
	return nil
}
