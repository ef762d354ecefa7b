package engine

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/faultpoint"
	"github.com/stint-dev/stint/internal/ident"
	"github.com/stint-dev/stint/journal"
)

// System is the right to write the store's system journal: what was done to the
// configuration, by whom, and what became of triggers that led to no session. One
// process of a store has it at a time; it is the server. Its methods may be called
// from any goroutine.
type System struct {
	store stint.Store
	ttl   time.Duration // of the lease
	w     *writer
	stop  context.CancelFunc
	wg    sync.WaitGroup

	mu    sync.Mutex
	state map[string]json.RawMessage // what all notes come to, by section
	keys  map[[2]string]bool         // on their way into the store
	since int                        // notes since the newest that has all of it; many, if it is not known
}

// systemKey leads to the system journal of a store.
func systemKey(ref stint.ID) stint.Key {
	return stint.Key{Scope: "system", Name: "journal", Digest: sha256.Sum256([]byte("journal")), Ref: ref.String()}
}

// SystemJournal returns the id of the store's system journal, and makes one where there
// is none. Anybody may send to it; the server takes what is sent.
func SystemJournal(ctx context.Context, store stint.Store) (stint.ID, error) {
	id, err := FindSystemJournal(ctx, store)
	if err != nil || !id.IsZero() {
		return id, err
	}
	id = ident.New()
	d := journal.Draft{At: faultpoint.Now()}
	_, _ = rand.Read(d.Salt[:])
	s, e, err := journal.Begin(id, journal.Created{
		Family: id, Name: "system", Agent: stint.AgentRef{Name: "stint", Runtime: "system", Pin: sha256.Sum256(nil)},
		Trigger: stint.Trigger{Kind: "system"},
	}, d)
	if err != nil {
		return stint.ID{}, err
	}
	l, err := store.Create(ctx, stint.Batch{Session: s, Entries: []stint.Entry{e}, Keys: []stint.Key{systemKey(id)}}, stint.Claim{})
	return l.Session, err
}

// FindSystemJournal is SystemJournal that makes none: the zero ID means that there is none.
func FindSystemJournal(ctx context.Context, r stint.Reader) (stint.ID, error) {
	keys, err := r.Keys(ctx, systemKey(stint.ID{}), 1)
	if err != nil || len(keys) == 0 {
		return stint.ID{}, err
	}
	return stint.ParseID(keys[0].Ref)
}

// System claims the system journal. If a process that lives has it, that is
// [stint.Conflict], and the error names it. When the right is lost, lost is called once
// with the reason, from a goroutine of its own, and nothing more can be recorded.
func (e *Engine) System(ctx context.Context, lost func(error)) (*System, error) {
	id, err := SystemJournal(ctx, e.store)
	if err != nil {
		return nil, err
	}
	leases, err := e.store.Claim(ctx, stint.Claim{Holder: e.opt.Holder, TTL: e.opt.TTL, Max: 1, Session: id})
	if errors.Is(err, stint.Conflict) {
		return nil, &stint.Error{Code: stint.Conflict, Op: "serve", Err: err,
			Hint: "one server serves a store: stop that one, or give this one a store of its own with --store"}
	}
	if err != nil {
		return nil, err
	}
	row, err := e.store.Session(ctx, id)
	if err != nil {
		return nil, err
	}
	life, stop := context.WithCancel(e.ctx)
	state, err := SystemState(ctx, e.store, id)
	if err != nil {
		stop()
		return nil, err
	}
	s := &System{store: e.store, ttl: e.opt.TTL, stop: stop, state: state, keys: map[[2]string]bool{}, since: stateEvery}
	s.w = &writer{ctx: context.WithoutCancel(e.ctx), store: e.store, lease: leases[0], s: row.Session, sending: make(chan struct{}, 1),
		lost: func(err error) { stop(); lost(err) }}
	s.wg.Go(func() { s.renew(life, e.opt.TTL) })
	return s, nil
}

// renew keeps the lease until ctx ends.
func (s *System) renew(ctx context.Context, ttl time.Duration) {
	tick := time.NewTicker(ttl / 3)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		lost, err := s.store.Renew(ctx, ttl, []stint.Lease{s.w.lease})
		if err == nil && len(lost) > 0 {
			s.w.abandon(&stint.Error{Code: stint.Fenced, Op: "serve", Err: errors.New("another process has the system journal now"),
				Hint: "one server serves a store: find the other one, or start this one again"})
			return
		}
	}
}

// Beat writes to the store, durably: it extends the right to the system journal. An error
// says that the store does not work, or that the right is lost, which is [stint.Fenced].
func (s *System) Beat(ctx context.Context) error {
	lost, err := s.store.Renew(ctx, s.ttl, []stint.Lease{s.w.lease})
	if err == nil && len(lost) > 0 {
		return stint.Fenced.Errorf("serve", "another process has the system journal now")
	}
	return err
}

// Close gives the system journal back.
func (s *System) Close() error {
	s.stop()
	s.wg.Wait()
	s.w.flush(true)
	return s.w.wait()
}

// A Note is what to record.
type Note struct {
	What    string      // what happened, such as schedule.paused; required
	Name    string      // to which schedule, hook or token
	Actor   stint.Actor // who did it; empty: the engine
	Reason  string
	Data    any             // for programs; nil: none
	Keys    []stint.Key     // durable with it, or [stint.Conflict] if one is taken
	Section string          // of the state: what all notes of one kind come to
	State   json.RawMessage // the section as it is after this note; nil: as it was
	Takes   *stint.Message  // the message that asked for it
}

// stateEvery is after how many notes one has the state of all sections, so that finding it
// stays quick. The others have their own section's: what changes often is not to write
// again what does not.
const stateEvery = 500

// Record writes n and returns once it is durable. Several at once share commits. If ctx
// ends before that is known, it is [stint.Unavailable]: n becomes durable as soon as the
// store takes anything, and until then its keys are taken.
func (s *System) Record(ctx context.Context, n Note) error {
	d := journal.Recorded{What: n.What, Name: n.Name, Reason: n.Reason}
	if n.Data != nil {
		var err error
		if d.Data, err = json.Marshal(n.Data); err != nil {
			return stint.Internal.Errorf("system", "what is to be recorded is no JSON: %v", err)
		}
	}
	err := s.add(ctx, n, d)
	if err != nil && stint.CodeOf(err) != stint.Conflict {
		return err
	}
	durable := make(chan error, 1) // what has the key may be on its way as well
	go func() {
		failed := s.w.wait()
		if err == nil {
			s.forget(n.Keys) // whoever has them, they are in the store now, or will never be
		}
		durable <- failed
	}()
	select {
	case failed := <-durable:
		return errors.Join(err, failed)
	case <-ctx.Done():
		return stint.Unavailable.Errorf("system", "the store has not taken the note yet: %v", context.Cause(ctx))
	}
}

// forget says that keys are no longer on their way.
func (s *System) forget(keys []stint.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range keys {
		delete(s.keys, [2]string{k.Scope, k.Name})
	}
}

// add makes the entries of n and hands them over.
func (s *System) add(ctx context.Context, n Note, d journal.Recorded) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range n.Keys { // a batch that the store refuses would end the right to write
		if old, err := s.store.Keys(ctx, stint.Key{Scope: k.Scope, Name: k.Name}, 1); err != nil {
			return err
		} else if len(old) > 0 || s.keys[[2]string{k.Scope, k.Name}] {
			return stint.Conflict.Errorf("system", "the %s %q is recorded already", k.Scope, k.Name)
		}
	}
	var body []byte
	if n.State != nil {
		s.state[n.Section] = n.State
	}
	switch s.since++; {
	case s.since >= stateEvery && len(s.state) > 0:
		var err error
		if body, err = json.Marshal(s.state); err != nil {
			return stint.Internal.Errorf("system", "the state is no JSON: %v", err)
		}
		d.State, s.since = true, 0
	case n.State != nil:
		body, d.State, d.Section = n.State, true, n.Section
	}
	if m := n.Takes; m != nil {
		if _, err := s.w.add(journal.Draft{Kind: stint.MessageTaken, Body: m.Body, Data: journal.Taken{ID: m.ID, Kind: m.Kind, From: m.From, At: m.At, Data: m.Data}}, m.ID); err != nil {
			return err
		}
	}
	if _, err := s.w.add(journal.Draft{Kind: stint.SystemRecorded, Actor: n.Actor, Data: d, Body: body}); err != nil {
		return err
	}
	s.w.mu.Lock()
	s.w.batch.Keys = append(s.w.batch.Keys, n.Keys...)
	s.w.mu.Unlock()
	for _, k := range n.Keys {
		s.keys[[2]string{k.Scope, k.Name}] = true
	}
	s.w.flush(false)
	return nil
}

// State returns a section of the state, nil if there is none.
func (s *System) State(section string) json.RawMessage {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state[section]
}

// SystemState returns what the notes in the system journal id come to, by section.
func SystemState(ctx context.Context, store interface {
	stint.Reader
	stint.Blobs
}, id stint.ID) (map[string]json.RawMessage, error) {
	state, until := map[string]json.RawMessage{}, stint.Seq(0)
	for {
		es, err := store.Entries(ctx, stint.Range{Session: id, Until: until, Kinds: []stint.Kind{stint.SystemRecorded}, Last: true, Limit: stateEvery})
		if err != nil {
			return nil, err
		}
		for i := len(es) - 1; i >= 0; i-- {
			if whole, err := stateIn(ctx, store, &es[i], state); err != nil || whole {
				return state, err
			}
		}
		if len(es) < stateEvery {
			return state, nil
		}
		until = es[0].Seq - 1
	}
}

// stateIn adds what a note says of sections of which no newer one said anything, and
// reports whether that is all there is.
func stateIn(ctx context.Context, blobs stint.Blobs, e *stint.Entry, state map[string]json.RawMessage) (whole bool, err error) {
	d, err := journal.Decode[journal.Recorded](e)
	if err != nil || !d.State || d.Section != "" && state[d.Section] != nil {
		return false, err
	}
	body := e.Body
	if !e.Blob.IsZero() {
		if body, err = blobs.Blob(ctx, e.Session, e.Blob); err != nil {
			return false, err
		}
	}
	if d.Section != "" {
		state[d.Section] = body
		return false, nil
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(body, &all); err != nil {
		return false, stint.Corrupt.Errorf("system", "the state in entry %d cannot be read: %v", e.Seq, err)
	}
	for section, raw := range all {
		if state[section] == nil {
			state[section] = raw
		}
	}
	return true, nil
}

// SystemAnswer finds in entries of the system journal who sent a message, and what was
// recorded when it was taken, which stands right behind that.
func SystemAnswer(es []stint.Entry, message string) (from stint.Actor, done journal.Recorded, found bool, err error) {
	for i := range es[:max(len(es)-1, 0)] {
		if es[i].Kind != stint.MessageTaken {
			continue
		}
		taken, err := journal.Decode[journal.Taken](&es[i])
		if err != nil || taken.ID != message {
			continue
		}
		done, err = journal.Decode[journal.Recorded](&es[i+1])
		return taken.From, done, err == nil, err
	}
	return "", done, false, nil
}

// Inbox returns the messages to the system journal that no note has taken.
func (s *System) Inbox(ctx context.Context) ([]stint.Message, error) {
	return s.store.Inbox(ctx, s.w.session().ID)
}
