package engine_test

import (
	"context"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/journal"
)

// Some sessions of the simulation are bosses: they begin children, which are of other
// agents, have scripts of their own, and may be bosses too. The label of a child is that of
// its parent and where it was begun, as in 7/0.2.1: session 7, line 0, loop 2, step 1. So
// it says which step it is of, and a child that is there twice has its label twice.

// kin is what the world knows of parents and children.
type kin struct {
	expects map[stint.ID]bool        // sessions that were sent the end of a child
	bornAt  map[stint.ID]time.Time   // when the world heard of a session
	rests   map[stint.ID][]span      // when a session was over
	before  map[stint.ID]stint.Usage // what a session had used and reserved when it began its first child
}

func newKin() kin {
	return kin{map[stint.ID]bool{}, map[stint.ID]time.Time{}, map[stint.ID][]span{}, map[stint.ID]stint.Usage{}}
}

// simReserve is what a model's call may use, simUsage what it uses.
var (
	simReserve = stint.Usage{Input: 20, Output: 5, Cost: 200}
	simUsage   = stint.Usage{Input: 10, Output: 1, Cost: 100}
)

// isKid reports whether a session was spawned, and did not branch off.
func isKid(s *stint.Session) bool { return !s.Parent.Session.IsZero() && !s.Parent.Branch }

// simLevels is how many levels of children there are below a session that has no parent.
const simLevels = 3

// boss reports whether the session of a label begins children.
func (w *world) boss(label string) bool {
	r := w.dice("boss", label)
	switch strings.Count(label, "/") {
	case 0:
		return r.IntN(6) == 0
	case simLevels:
		return false
	}
	return r.IntN(3) == 0
}

// last is the loop in which the script ends.
func (s *script) last() int {
	if n, err := strconv.Atoi(s.label); err == nil {
		return 3 + n%4
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(s.label)) // it never fails
	return 2 + int(h.Sum32()%3)
}

// planChildren adds to what loop n of a boss does: it begins children, one after another or
// with other steps between them, and waits for one of them or for any.
func (s *script) planChildren(n int, lp *loopPlan) {
	if !s.w.boss(s.label) {
		return
	}
	first := 1 + s.w.dice("first child", s.label).IntN(2)
	r := s.w.dice("children", s.label, "loop", n)
	begins := n == first || n < s.last() && r.IntN(5) == 0
	if begins {
		at := r.IntN(len(lp.plans) + 1)
		for range []int{1, 1, 2, 3}[r.IntN(4)] {
			c := &stint.Child{Agent: []string{"plain", "careful", "careless"}[r.IntN(3)], Input: []byte("do " + strconv.Itoa(r.IntN(100)))}
			switch r.IntN(12) {
			case 0, 1:
				c.Detach = true
			case 2:
				c.Limits = &stint.Limits{Tokens: 30 + r.Int64N(60)}
			case 3:
				c.Limits = &stint.Limits{Children: []int{-1, 1}[r.IntN(2)], Stop: r.IntN(2) == 0}
			case 4:
				c.Input = []byte(strings.Repeat("a long story ", 300))
			case 5:
				c.Agent = []string{"nobody", "plain"}[r.IntN(2)]
			}
			lp.plans = slices.Insert(lp.plans, at, plan{child: c})
			if r.IntN(2) == 0 {
				at = r.IntN(len(lp.plans) + 1)
			}
		}
	}
	if lp.ends == "" && (begins || r.IntN(2) == 0) && r.IntN(4) > 0 {
		lp.waits, lp.one = stint.ForChild, r.IntN(3) == 0
	}
}

// spawn is a step that begins a child.
func (s *script) spawn(ctx context.Context, l stint.Loop, c stint.Child, n int, know stepInput) (stepInput, error) {
	at := stint.Position{Loop: l.Session().At.Loop, Step: n + 1}
	label := s.label + "/" + strconv.Itoa(l.Session().At.Line) + "." + at.String()
	c.Labels = map[string]string{"n": label}
	id, err := l.(stint.Spawner).Spawn(ctx, c)
	switch {
	case err == nil:
		s.kids = append(s.kids, id)
		if !s.p.isDead() {
			s.w.born("child "+label, id)
		}
		know.Seen = digest(know.Seen, id.String())
	case isDefinite(err):
		know.Seen = digest(know.Seen, err.Error(), string(stint.CodeOf(err)))
	default:
		return know, err
	}
	return know, nil
}

// treeLimits are the limits of a session that its tree will share; nil: none.
func (w *world) treeLimits(label string) *stint.Limits {
	r := w.dice("limits", label)
	if !w.boss(label) || r.IntN(2) == 0 {
		return nil
	}
	l := &stint.Limits{Tokens: 80 + r.Int64N(200)}
	switch r.IntN(4) {
	case 0:
		l.Tokens, l.Cost = 0, stint.Money(600+r.Int64N(1500))
	case 1:
		l.Tokens, l.Children = 0, 1+r.IntN(4)
	case 2:
		l.Children = 2 + r.IntN(4)
	}
	return l
}

// raised raises what a tree shares.
func raised(l *stint.Limits) {
	if l.Tokens > 0 {
		l.Tokens += 60
	}
	if l.Cost > 0 {
		l.Cost += 500
	}
	if l.Children > 0 {
		l.Children++
	}
}

// raise raises the limits of a session that waits for that, or of one above it.
func (p *people) raise(s *stint.Session) {
	for isKid(s) && p.rng.IntN(3) > 0 {
		row, err := p.w.store.Session(p.w.ctx, s.Parent.Session)
		if err != nil {
			p.w.broken(s.Parent.Session, "a parent cannot be read: %v", err)
			return
		}
		s = &row.Session
	}
	l := s.Limits
	raised(&l)
	p.send(s.ID, message(stint.SetLimit, journal.Command{Limits: &l}))
}

// redo begins the children of a session again that are over, and has it go on meanwhile.
func (p *people) redo(s *stint.Session) {
	rows, err := p.w.store.Sessions(p.w.ctx, stint.Filter{Family: s.Family})
	if err != nil {
		p.w.broken(s.ID, "its family cannot be read: %v", err)
		return
	}
	for i := range rows {
		if k := &rows[i].Session; isKid(k) && k.Parent.Session == s.ID && k.Status.Ended() {
			p.send(k.ID, message(stint.Restart, journal.Command{From: new(int), InDoubt: journal.SkipDoubt}))
		}
	}
	p.w.pass(time.Duration(p.rng.IntN(3)) * time.Second)
	p.send(s.ID, stint.Message{Kind: stint.Resume})
}

// tells notes whom the end of a child is told, and reports whether anybody.
func (w *world) tells(sends []stint.Message) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for i := range sends {
		if sends[i].Kind == stint.ChildEnd {
			w.expects[sends[i].To] = true
			n++
		}
	}
	return n > 0
}

// heardOfChild reports whether the session was sent the end of a child since it was asked
// last.
func (w *world) heardOfChild(id stint.ID) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	yes := w.expects[id]
	delete(w.expects, id)
	return yes
}

// birth is when the world heard of a session.
func (w *world) birth(id stint.ID) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.bornAt[id]
}

// remember keeps of a journal when its session was over, and what it had used before it
// began its first child.
func (w *world) remember(id stint.ID, folds []stint.Session, es []stint.Entry) {
	w.rests[id] = nil
	delete(w.before, id)
	for i := range es {
		was, is := &folds[i], &folds[i+1]
		switch rests := w.rests[id]; {
		case is.Status.Ended() && !was.Status.Ended():
			w.rests[id] = append(rests, span{from: es[i].At})
		case !is.Status.Ended() && was.Status.Ended():
			rests[len(rests)-1].to = es[i].At
		}
		if is.Totals.Children == 1 && was.Totals.Children == 0 {
			w.before[id] = was.Totals.Usage.Add(was.Totals.Reserved)
		}
	}
}

// steady reports whether a session was open at t and is since, and had been for a while:
// what is said of t was durable some time after it.
func (w *world) steady(id stint.ID, t time.Time) bool {
	return !slices.ContainsFunc(w.rests[id], func(s span) bool { return s.to.IsZero() || s.to.Add(simLag).After(t) })
}

// simLag is how much later than it was made an entry may become durable.
const simLag = 5 * time.Minute

// reached reports whether what is sent to another open session goes on to this one.
func (w *world) reached(id stint.ID) bool {
	row, err := w.store.Session(w.ctx, id)
	if err != nil || !isKid(&row.Session) || row.Session.Parent.Detach {
		return false
	}
	parent, err := w.store.Session(w.ctx, row.Session.Parent.Session)
	return err == nil && !parent.Session.Status.Ended()
}

// leftBehind reports whether a session is the child of one that ended some time ago, and
// nobody has begun it again.
func (w *world) leftBehind(ctx context.Context, s *stint.Session) bool {
	if !isKid(s) || s.Parent.Detach || s.Totals.Restarts > 0 {
		return false
	}
	row, err := w.store.Session(ctx, s.Parent.Session)
	return err == nil && row.Session.Status.Ended() && time.Since(row.Session.Ended) > 20*time.Second
}
