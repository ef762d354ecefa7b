package engine

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/faultpoint"
	"github.com/stint-dev/stint/journal"
)

// Branch says what session to branch off another one.
type Branch struct {
	From    *int              // its loops go on behind this one of the parent's current line; nil: the newest completed one
	Name    string            // empty: the parent's name and the loop, as in triage-1129.13
	State   json.RawMessage   // instead of the checkpoint's; nil: that
	Say     string            // a message for its first loop; empty: none
	Reason  string            // one line
	Agent   *Agent            // instead of the parent's, as that is pinned; nil: that
	Labels  map[string]string // nil: the parent's
	Limits  *stint.Limits     // nil: the parent's
	Actor   stint.Actor
	InDoubt journal.DoubtChoice // for the once steps in doubt of the parent behind the loop
	Dedupe  string              // as in [Request]
}

// Branch creates a session that goes on from a checkpoint of another one, which it does not
// change or wait for. It has a journal, limits and idempotency keys of its own, and the
// state in its first entry, so that it goes on without its parent, which is read only for
// results that its agent looks back at; a body that both have lies in the store once. It is
// left for any runner.
//
// Errors: [stint.NotFound] for a loop that the parent's current line did not complete,
// [stint.Conflict] where once steps behind it are in doubt and b does not choose what
// becomes of them, [stint.Invalid] for what a session cannot begin with, and those of
// [Engine.Start].
func (e *Engine) Branch(ctx context.Context, parent stint.ID, b Branch) (Created, error) {
	return e.branch(ctx, parent, b, false)
}

// branch is Branch; still: whoever calls holds the session, and no loop of it runs.
func (e *Engine) branch(ctx context.Context, parent stint.ID, b Branch, still bool) (Created, error) {
	row, err := e.store.Session(ctx, parent)
	if err != nil {
		return Created{}, err
	}
	s := &row.Session
	if s.Trigger.OfServer() {
		return Created{}, stint.Invalid.Errorf("branch", "that is the journal of the server itself")
	}
	loop := s.Checkpoint.Loop
	if b.From != nil {
		loop = *b.From
	}
	var skipped []journal.DoubtedStep
	if !row.Live || still {
		if skipped, err = e.skipped(ctx, s, loop, b.InDoubt); err != nil {
			return Created{}, err
		}
	}
	batch, err := e.offspring(ctx, s, loop, &b, skipped)
	if err == nil {
		err = e.heard(ctx, s, loop, &b, &batch)
	}
	if err != nil {
		return Created{}, err
	}
	l, err := e.store.Create(ctx, batch, stint.Claim{})
	if err != nil {
		return Created{}, err
	}
	e.poke()
	return Created{l.Session, l.Session != batch.Session.ID}, nil
}

// offspring is how a branch of s behind a loop begins, with what it must not do.
func (e *Engine) offspring(ctx context.Context, s *stint.Session, loop int, b *Branch, skipped []journal.DoubtedStep) (batch stint.Batch, err error) {
	end, err := e.endOf(ctx, s, loop)
	if err != nil {
		return batch, err
	}
	cp, err := e.left(ctx, end)
	if err != nil {
		return batch, err
	}
	r, c, err := e.offshoot(ctx, s, loop, b)
	if err != nil {
		return batch, err
	}
	c.Parent = stint.Parent{Session: s.ID, Seq: end.Seq, Hash: end.Hash, Branch: true, Loop: loop, Reason: clip(firstLine(b.Reason), maxQuestion)}
	c.Skipped = skipped
	state := []byte(b.State)
	if state == nil {
		state, err = journal.ReadState(cp, e.source(ctx, s))
	} else {
		err = checkValue("the state", b.State)
	}
	if err != nil {
		return batch, err
	}
	if state != nil {
		if c.State, state, err = journal.WriteState(stint.Checkpoint{}, nil, state, nil); err != nil {
			return batch, err
		}
	}
	return e.bear(ctx, r, c, state)
}

// offshoot is what a branch of s has of its parent.
func (e *Engine) offshoot(ctx context.Context, s *stint.Session, loop int, b *Branch) (Request, journal.Created, error) {
	r := Request{Name: b.Name, Input: []byte(b.Say), Actor: b.Actor, Dedupe: b.Dedupe, Trigger: stint.Trigger{Kind: "branch", Ref: s.ID.String()}}
	if r.Name == "" {
		suffix := fmt.Sprintf(".%d", loop)
		r.Name = clip(s.Name, 100-len(suffix)) + suffix
	}
	c := journal.Created{Family: s.Family, Agent: s.Agent, Labels: b.Labels, Limits: s.Limits}
	if c.Labels == nil {
		c.Labels = s.Labels
	}
	if b.Limits != nil {
		c.Limits = *b.Limits
	}
	var err error
	if b.Agent != nil {
		c.Agent, c.Config, err = Pin(*b.Agent)
	} else {
		c.Config, err = Pinned(ctx, e.store, s)
	}
	return r, c, err
}

// skipped is what a branch at loop must not do: what is in doubt behind it, if that is the
// choice, and what its parent was not to do either.
func (e *Engine) skipped(ctx context.Context, s *stint.Session, loop int, choice journal.DoubtChoice) ([]journal.DoubtedStep, error) {
	doubts, err := e.doubts(ctx, s)
	if err != nil {
		return nil, err
	}
	switch choice {
	case journal.RedoDoubt:
		return nil, nil
	case journal.SkipDoubt, journal.AskDoubt, "":
	default:
		return nil, stint.Invalid.Errorf("branch", "in_doubt is %q; it is ask, skip or redo", clip(string(choice), 60))
	}
	if len(doubts) > 0 && choice != journal.SkipDoubt {
		err := stint.Conflict.Errorf("branch", "%s in doubt, and the branch would come to %s again", named(doubts), it(len(doubts)))
		err.Session, err.Hint = s.ID, "choose skip (the branch does not do it) or redo (it does it again), or say what became of it with stint resolve"
		return nil, err
	}
	inherited, err := e.inherited(ctx, s, loop)
	if err != nil {
		return nil, err
	}
	if doubts = append(doubts, inherited...); len(doubts) > maxDoubts {
		return nil, stint.Limit.Errorf("branch", "%d steps are in doubt; at most %d can be skipped", len(doubts), maxDoubts)
	}
	return doubts, nil
}

// inherited is what a branch at loop must not do since its parent is not to do it either.
func (e *Engine) inherited(ctx context.Context, s *stint.Session, loop int) (all []journal.DoubtedStep, err error) {
	skips, err := e.skips(ctx, s)
	for _, sk := range skips {
		if sk.at.Loop == 0 || sk.at.Loop > loop {
			all = append(all, sk.DoubtedStep)
		}
	}
	return all, err
}

// heard adds to a branch what its first loop hears: the input, where it begins before the
// first loop, and what b says.
func (e *Engine) heard(ctx context.Context, s *stint.Session, loop int, b *Branch, to *stint.Batch) error {
	now := to.Session.Created
	var all []stint.Message
	if loop == 0 {
		input, err := e.firstInput(ctx, s)
		if err != nil {
			return err
		}
		if input != nil {
			all = append(all, *input)
		}
	}
	if b.Say != "" {
		all = append(all, stint.Message{ID: "say", From: b.Actor, At: now, Body: []byte(b.Say)})
	}
	for i := range all {
		m := &all[i]
		if m.From == "" {
			m.From = stint.ByEngine
		}
		d := journal.Draft{Kind: stint.MessageTaken, Pos: stint.Position{Loop: loop + 1}, At: faultpoint.Now(), Actor: m.From,
			Data: journal.Taken{ID: m.ID, Kind: stint.Prompt, From: m.From, At: m.At}}
		if err := e.follow(ctx, to, d, m.Body); err != nil {
			return err
		}
	}
	return nil
}

// follow adds an entry to a session that is about to be created.
func (e *Engine) follow(ctx context.Context, to *stint.Batch, d journal.Draft, body []byte) error {
	_, _ = rand.Read(d.Salt[:])
	if err := e.lay(ctx, to, &d, body); err != nil {
		return err
	}
	s, entry, err := journal.Next(to.Session, d)
	if err != nil {
		return err
	}
	to.Session, to.Entries = s, append(to.Entries, entry)
	return nil
}

// lay puts a body into a draft, or beside it into the batch if it is long.
func (e *Engine) lay(ctx context.Context, to *stint.Batch, d *journal.Draft, body []byte) error {
	if d.Body = body; len(body) <= journal.InlineBytes {
		return nil
	}
	key, err := e.store.FamilyKey(ctx, to.Session.Family)
	if err != nil {
		return err
	}
	d.Body, d.Blob = nil, journal.BlobID(key, body)
	if to.Blobs == nil {
		to.Blobs = map[stint.BlobRef][]byte{}
	}
	to.Blobs[d.Blob] = body
	return nil
}

// kin is what a session's digest has of the one that it comes from.
func kin(c *journal.Created) []byte {
	if c.Parent.Session.IsZero() {
		return nil
	}
	b := append([]byte("\x00parent\x00"), c.Parent.Session[:]...)
	b = binary.AppendVarint(b, int64(c.Parent.Loop))
	sum := sha256.Sum256(c.Config)
	return append(append(b, c.State.Sum[:]...), sum[:]...)
}
