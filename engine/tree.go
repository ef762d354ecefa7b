package engine

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/faultpoint"
	"github.com/stint-dev/stint/internal/past"
	"github.com/stint-dev/stint/journal"
)

var _ stint.Spawner = (*loop)(nil)

// isChild reports whether a session with this parent was spawned, and did not branch off.
func isChild(p *stint.Parent) bool { return !p.Session.IsZero() && !p.Branch }

// Spawn implements [stint.Spawner].
func (l *loop) Spawn(ctx context.Context, c stint.Child) (stint.ID, error) {
	s, err := past.SpawnStep(&c)
	if err != nil {
		return stint.ID{}, err
	}
	res, err := l.do(ctx, s, true, func(ctx context.Context, key string) (stint.Result, error) { return l.bear(ctx, c, key) })
	if err != nil {
		return stint.ID{}, err
	}
	return past.ChildOf(res.Data)
}

// bear creates the child, unless the step has begun it before. What can never be done is
// the step's outcome.
func (l *loop) bear(ctx context.Context, c stint.Child, key string) (stint.Result, error) {
	d := l.d
	s := d.w.session() // what it is now is durable in a moment, whatever is written beside this
	if err := d.w.sync(); err != nil {
		return stint.Result{}, err
	}
	a, err := d.e.agentNamed(c.Agent)
	if err != nil {
		return stint.Result{}, definitely(err)
	}
	id := s.ID.String()
	r := Request{Agent: a, Name: c.Name, Input: c.Input, Labels: c.Labels, Limits: c.Limits, Dedupe: "spawn-" + key,
		Trigger: stint.Trigger{Kind: "session", Ref: id}, Actor: stint.Actor("session:" + id)}
	if r.Name == "" {
		suffix := fmt.Sprintf(".%s-%d", a.Name, s.Totals.Children)
		if r.Name = s.Name; len(r.Name)+len(suffix) > 100 {
			r.Name = cut(r.Name, max(1, 100-len(suffix)))
		}
		r.Name += suffix
	}
	created, err := d.e.pinnedTo(r, faultpoint.Now())
	if err != nil {
		return stint.Result{}, definitely(err)
	}
	created.Family, created.Parent = s.Family, stint.Parent{Session: s.ID, Seq: s.Head, Hash: s.HeadHash, Detach: c.Detach}
	b, err := d.e.bear(ctx, r, created, r.Input)
	if err != nil {
		return stint.Result{}, definitely(err)
	}
	tree, err := d.tree()
	if err != nil {
		return stint.Result{}, err
	}
	if len(tree) >= maxLevels {
		err := stint.Limit.Errorf("spawn", "a tree of sessions has at most %d levels", maxLevels)
		err.Hint = "let a session further up spawn it"
		return stint.Result{}, stint.Definite(err)
	}
	for i := range tree {
		b.Meters = append(b.Meters, stint.Meter{Metric: metric(perChild, tree[i].ID), Limit: most(int64(tree[i].Limits.Children)), Reserve: 1})
	}
	d.e.remember(a, b.Session.Agent)
	lease, err := d.e.store.Create(ctx, b, stint.Claim{})
	if err != nil {
		return stint.Result{}, definitely(passed(err, tree))
	}
	d.e.poke()
	if d.brood != nil {
		d.brood.run(lease.Session)
	}
	row, err := d.e.store.Session(ctx, lease.Session) // it may be one that an earlier attempt began
	if err != nil {
		return stint.Result{}, err
	}
	data, err := stint.Marshal(past.Spawned{Session: lease.Session, Name: row.Session.Name})
	return stint.Result{Data: data}, err
}

// definitely makes an error the outcome of its step, unless trying again may mend it.
func definitely(err error) error {
	switch stint.CodeOf(err) {
	case stint.Invalid, stint.NotFound, stint.Conflict, stint.Denied:
		return stint.Definite(err)
	}
	return err
}

// agentNamed returns the agent of a name as it is defined now.
func (e *Engine) agentNamed(name string) (Agent, error) {
	for i := range e.opt.Agents {
		if e.opt.Agents[i].Name == name {
			return e.opt.Agents[i], nil
		}
	}
	if e.opt.Find == nil {
		err := stint.NotFound.Errorf("agent", "there is no agent %q", clip(name, maxName))
		err.Hint = "name one that the program has"
		return Agent{}, err
	}
	return e.opt.Find(name)
}

// familyPage is how many sessions of a family are read at once.
const familyPage = 500

// children are the open children of s that are not detached. A session that never spawned
// any does not ask.
func (e *Engine) children(ctx context.Context, s *stint.Session) ([]stint.Row, error) {
	if s.Totals.Children == 0 {
		return nil, nil
	}
	var all []stint.Row
	for f := (stint.Filter{Family: s.Family, Open: true, Limit: familyPage}); ; {
		page, err := e.store.Sessions(ctx, f)
		if err != nil {
			return nil, err
		}
		for i := range page {
			if p := &page[i].Session.Parent; p.Session == s.ID && isChild(p) && !p.Detach {
				all = append(all, page[i])
			}
		}
		if len(page) < familyPage {
			return all, nil
		}
		f.After = page[len(page)-1].Session.ID
	}
}

// children are those of the driver's session. A store that cannot be read for a moment is
// asked again: what a session takes must not leave out its children.
func (d *driver) children() ([]stint.Row, error) {
	s := d.w.session()
	return patiently(d, func() ([]stint.Row, error) { return d.e.children(d.io, &s) })
}

// patiently reads, and again while the store cannot be read for a moment. What is read is
// for an entry that has to be written, so a drain waits for it as it does for a commit:
// without it, an end or a wait that an agent asked for would be lost.
func patiently[T any](d *driver, read func() (T, error)) (T, error) {
	for {
		v, err := read()
		if err == nil || !errors.Is(err, stint.Unavailable) || d.isLost() || stopped(d.e.store) {
			return v, err
		}
		<-time.After(retryCommit)
	}
}

// passOn is what a message that the session takes sends on to its children: all that
// stops, holds or lets go, and that a limit was changed, on which they draw.
func (d *driver) passOn(m stint.Message) ([]stint.Message, error) {
	switch m.Kind {
	case stint.Stop, stint.Kill, stint.Pause, stint.Resume, stint.Interrupt, stint.SetLimit:
	default:
		return nil, nil
	}
	rows, err := d.children()
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	c := command(m)
	data, err := stint.Marshal(journal.Command{Reason: c.Reason, Now: c.Now, Tree: d.lease.Session})
	if err != nil {
		return nil, err
	}
	sends := make([]stint.Message, 0, len(rows))
	for i := range rows {
		id := rows[i].Session.ID
		sends = append(sends, stint.Message{To: id, ID: passedOn(m.ID, id), Kind: m.Kind, From: m.From, Data: data})
	}
	return sends, nil
}

// hasten sends a kill on before the session takes it, which is when its processes are
// gone: those of all levels end at once then, and not one after the other. The messages
// are those that taking it sends too, so they come once.
func (d *driver) hasten(m stint.Message) {
	sends, err := d.passOn(m)
	for i := range sends {
		err = cmp.Or(err, d.e.store.Send(d.io, sends[i].To, sends[i]))
	}
	if err != nil && stint.CodeOf(err) != stint.Conflict { // it has ended meanwhile
		d.e.opt.Log.Warn("a kill reaches the children later", "session", d.lease.Session, "error", err)
	}
}

// passedOn is the id of a message as it goes on to a child: the same each time.
func passedOn(id string, to stint.ID) string {
	sum := sha256.Sum256(append([]byte(id+"\x00"), to[:]...))
	return "tree-" + hex.EncodeToString(sum[:16])
}

// ChildEnded is the Data of a message of kind child, which a session sends its parent with
// its end. Its Body is the result.
type ChildEnded struct {
	Session stint.ID     `json:"session"`
	Name    string       `json:"name"`
	Agent   string       `json:"agent"`
	Outcome stint.Status `json:"outcome"`
	Reason  string       `json:"reason,omitempty"`
}

// farewell is what the end of the session sends: to its parent that it ended, once,
// however often it is begun again; to its children that they are to end too, unless what
// ended it has told them.
func (d *driver) farewell(p *parking) ([]stint.Message, error) {
	s := d.w.session()
	from := stint.Actor("session:" + s.ID.String())
	var sends []stint.Message
	if isChild(&s.Parent) && !s.Parent.Detach {
		end := endData(p)
		data, err := stint.Marshal(ChildEnded{Session: s.ID, Name: s.Name, Agent: s.Agent.Name, Outcome: end.Outcome, Reason: end.Reason})
		if err != nil {
			return nil, err
		}
		sends = append(sends, stint.Message{To: s.Parent.Session, ID: lastWord(s.ID), Kind: stint.ChildEnd, From: from, Data: data, Body: p.end.Result})
	}
	if p.by != nil {
		return sends, nil
	}
	rows, err := d.children()
	if err != nil || len(rows) == 0 {
		return sends, err
	}
	data, err := stint.Marshal(journal.Command{Reason: "parent ended", Tree: s.ID})
	for i := range rows {
		id := rows[i].Session.ID
		sends = append(sends, stint.Message{To: id, ID: passedOn(fmt.Sprintf("ended-%s-%d", s.ID, s.Head), id), Kind: stint.Stop, From: from, Data: data})
	}
	return sends, err
}

// awaited is the child that a wait names; zero: any will do.
func awaited(w *stint.Wait) stint.ID {
	id, err := stint.ParseID(w.What)
	if err != nil {
		return stint.ID{}
	}
	return id
}

// childless reports whether a wait for a child is over before it begins, since no such
// child is open. What it had to say is then in the inbox of the next loop.
func (d *driver) childless(w *stint.Wait) (bool, error) {
	if w.For != stint.ForChild {
		return false, nil
	}
	rows, err := d.children()
	if err != nil {
		return false, err
	}
	want := awaited(w)
	for i := range rows {
		if c := &rows[i].Session; want.IsZero() || c.ID == want {
			if told, err := d.hasTold(c); err != nil || !told {
				return false, err
			}
		}
	}
	return true, d.readInbox()
}

// lastWord is the id of the message that tells the end of a child.
func lastWord(child stint.ID) string { return "child-" + child.String() }

// hasTold reports whether the session has heard of the end of an open child, which was
// begun again since. It tells no other, so that a wait for it would never be over.
func (d *driver) hasTold(c *stint.Session) (bool, error) {
	if c.Totals.Restarts == 0 {
		return false, nil
	}
	if err := d.w.sync(); err != nil { // the journal is read: it must have what this drive made
		return false, err
	}
	for r := (stint.Range{Session: d.lease.Session, Limit: 1000, Kinds: []stint.Kind{stint.MessageTaken, stint.MessageRefused}}); ; {
		es, err := patiently(d, func() ([]stint.Entry, error) { return d.e.store.Entries(d.io, r) })
		if err != nil {
			return false, err
		}
		for i := range es {
			m, err := journal.Decode[journal.Taken](&es[i])
			if err != nil || m.ID == lastWord(c.ID) {
				return err == nil, err
			}
		}
		if len(es) < r.Limit {
			return false, nil
		}
		r.After = es[len(es)-1].Seq
	}
}

// takeOthers takes the ends of children other than the one that the session waits for:
// they are input of the next loop, and must not begin it.
func (d *driver) takeOthers(s *stint.Session) error {
	if s.Wait.For != stint.ForChild || s.At.Open || awaited(s.Wait).IsZero() {
		return nil
	}
	from := stint.Actor("session:" + awaited(s.Wait).String())
	for {
		m, ok := d.nextOf(func(m *stint.Message) bool { return m.Kind == stint.ChildEnd && m.From != from })
		if !ok {
			return nil
		}
		if err := d.takeAt(stint.Position{Loop: s.Checkpoint.Loop + 1}, m, ""); err != nil {
			return err
		}
	}
}

// orphaned reports whether the session's parent ended before its first loop: it was
// spawned by a runner that had lost the parent meanwhile, and nobody told it.
func (d *driver) orphaned() (*parking, error) {
	s := d.w.session()
	if !isChild(&s.Parent) || s.Parent.Detach || s.Totals.Attempts > 0 || s.Totals.Restarts > 0 {
		return nil, nil
	}
	row, err := d.readOf(s.Parent.Session)
	switch {
	case stint.CodeOf(err) == stint.NotFound:
	case err != nil:
		return nil, err
	case !row.Session.Status.Ended():
		return nil, nil
	}
	return &parking{end: &stint.End{Outcome: stint.Canceled, Reason: "parent ended"}}, nil
}

// settleTree applies the control messages of the descendants that nobody holds.
func (e *Engine) settleTree(ctx context.Context, s *stint.Session) error {
	rows, err := e.children(ctx, s)
	for i := range rows {
		if rows[i].Unread > 0 || rows[i].Session.Totals.Children > 0 {
			err = cmp.Or(err, e.Settle(ctx, rows[i].Session.ID))
		}
	}
	return err
}
