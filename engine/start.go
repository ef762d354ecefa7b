package engine

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/faultpoint"
	"github.com/stint-dev/stint/internal/ident"
	"github.com/stint-dev/stint/internal/past"
	"github.com/stint-dev/stint/journal"
)

// Request says what session to create. Agent is required.
type Request struct {
	Agent   Agent
	Name    string // empty: the agent's name and the day, as in triage-1129
	Input   []byte // the first loop's first message
	Labels  map[string]string
	Limits  *stint.Limits // instead of the agent's
	Trigger stint.Trigger // empty kind: prompt
	Actor   stint.Actor   // at most 200 bytes
	Dedupe  string        // at most 255 bytes; the same again leads to the session that the first one made
	Keys    []stint.Key   // as Dedupe, with scopes of the caller's; Ref is filled in
}

// Created is the session that a request led to.
type Created struct {
	ID    stint.ID
	Found bool // it was there: an earlier request with the same Dedupe key made it
}

// maxDedupe is how long a create's key may be, in bytes.
const maxDedupe = 255

// keyLife is how long a create's key is kept.
const keyLife = 400 * 24 * time.Hour

// Start creates a session and leaves it for any runner. The same Dedupe key with
// another request is [stint.Conflict].
func (e *Engine) Start(ctx context.Context, r Request) (Created, error) {
	l, b, err := e.create(ctx, r, stint.Claim{})
	return Created{l.Session, err == nil && l.Session != b.Session.ID}, err
}

// RunNew creates a session that nobody else can claim and drives it as [Engine.Run]
// does. begun is called once it is durable. Where the Dedupe key finds an earlier
// one, that is returned and not run.
func (e *Engine) RunNew(ctx context.Context, r Request, begun func(Created)) (stint.Session, error) {
	c := e.claim()
	l, b, err := e.create(ctx, r, c)
	if err != nil {
		return stint.Session{}, err
	}
	found := l.Session != b.Session.ID
	begun(Created{l.Session, found})
	if found {
		row, err := e.store.Session(ctx, l.Session)
		return row.Session, err
	}
	with := e.newBrood(ctx, l.Session)
	d := e.newDriver(ctx, l)
	d.fresh, d.brood = &b.Session, with
	input := past.Input(&b.Entries[0], r.Input)
	d.input = &input
	s, again, err := e.runOne(ctx, d, func() {})
	if err == nil && again {
		s, err = e.run(ctx, l.Session, with)
	}
	return s, errors.Join(err, with.end(&s))
}

// create makes the session that r asks for. Where its key finds an earlier one, the
// lease names that, and not the session of the batch.
func (e *Engine) create(ctx context.Context, r Request, c stint.Claim) (l stint.Lease, b stint.Batch, err error) {
	if b, err = e.first(ctx, r); err != nil {
		return l, b, err
	}
	e.remember(r.Agent, b.Session.Agent)
	if l, err = e.store.Create(ctx, b, c); err == nil && c.Holder == "" {
		e.poke()
	}
	return l, b, err
}

// remember keeps an agent for the sessions that are pinned to ref, unless it is in code.
func (e *Engine) remember(a Agent, ref stint.AgentRef) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, ok := e.agents[a.runtime()+"\x00"+a.Name]; !ok {
		e.pinned[pinKey(ref)] = a
	}
}

// first makes the first entry of the session that r asks for.
func (e *Engine) first(ctx context.Context, r Request) (stint.Batch, error) {
	if r.Agent.Name == "" || r.Agent.Loop == nil {
		return stint.Batch{}, stint.Invalid.Errorf("create", "the request names no agent")
	}
	now := faultpoint.Now()
	if r.Name == "" {
		r.Name = r.Agent.Name + now.Format("-0102")
	}
	c, err := e.pinnedTo(r, now)
	if err != nil {
		return stint.Batch{}, err
	}
	return e.bear(ctx, r, c, r.Input)
}

// pinnedTo is what a session begins with because of its agent.
func (e *Engine) pinnedTo(r Request, now time.Time) (journal.Created, error) {
	a := r.Agent
	def, err := e.definition(a.Config)
	if err != nil {
		return journal.Created{}, err
	}
	c := journal.Created{Config: def.config, Labels: r.Labels, Agent: stint.AgentRef{Name: a.Name, Runtime: a.runtime(), Pin: def.pin}}
	if c.Labels == nil {
		c.Labels = a.Labels
	}
	switch {
	case r.Limits != nil:
		c.Limits = *r.Limits
	case a.Limits != nil:
		c.Limits = a.Limits(now)
	}
	return c, nil
}

// bear makes the first entry of a session. The name, the trigger and whoever asks are r's,
// the rest is c's; without a Family it begins one.
func (e *Engine) bear(ctx context.Context, r Request, c journal.Created, body []byte) (stint.Batch, error) {
	if !validName(r.Name) {
		err := stint.Invalid.Errorf("create", "%q cannot be a session's name", clip(r.Name, 60))
		err.Hint = "a name has 1 to 100 letters, digits, dots, dashes and underscores, and begins with a letter or a digit"
		return stint.Batch{}, err
	}
	if err := r.Actor.Check(); err != nil {
		return stint.Batch{}, err
	}
	if n := len(r.Dedupe); n > maxDedupe || !utf8.ValidString(r.Dedupe) {
		err := stint.Invalid.Errorf("create", "the dedupe key has %d bytes; it is at most %d bytes of UTF-8", n, maxDedupe)
		err.Hint = "use the id of what the session is made for, or its hash"
		return stint.Batch{}, err
	}
	id, now := ident.New(), faultpoint.Now()
	if c.Name, c.Trigger = r.Name, r.Trigger; c.Trigger.Kind == "" {
		c.Trigger.Kind = "prompt"
	}
	if c.Family.IsZero() {
		c.Family = id
	}
	d := journal.Draft{At: now, Actor: r.Actor}
	_, _ = rand.Read(d.Salt[:])
	b := stint.Batch{Session: stint.Session{Family: c.Family}}
	if err := e.lay(ctx, &b, &d, body); err != nil {
		return b, err
	}
	s, entry, err := journal.Begin(id, c, d)
	if err != nil {
		return b, err
	}
	b.Session, b.Entries = s, []stint.Entry{entry}
	if r.Dedupe != "" {
		b.Keys = []stint.Key{{Scope: "create", Name: r.Dedupe, Digest: digest(r, c), Ref: id.String(), Expires: now.Add(keyLife)}}
	}
	for _, k := range r.Keys {
		k.Ref = id.String()
		b.Keys = append(b.Keys, k)
	}
	return b, nil
}

// definition is an agent's definition as the journal holds it, without white space, so that
// its hash can be checked.
type definition struct {
	config json.RawMessage
	pin    stint.Hash
}

// Pin returns what a session is pinned to that goes on with a, and its definition as a journal
// holds it. One that is no JSON is [stint.Invalid].
func Pin(a Agent) (stint.AgentRef, json.RawMessage, error) {
	def, err := compacted(a.Config)
	return stint.AgentRef{Name: a.Name, Runtime: a.runtime(), Pin: def.pin}, def.config, err
}

// compacted is a definition without white space.
func compacted(config json.RawMessage) (definition, error) {
	var buf bytes.Buffer
	if len(config) > 0 {
		if err := json.Compact(&buf, config); err != nil {
			return definition{}, stint.Invalid.Errorf("create", "the agent's definition is not JSON: %v", err)
		}
	}
	return definition{buf.Bytes(), sha256.Sum256(buf.Bytes())}, nil
}

// definition returns what the journal holds of config. Most sessions begin with one that was
// there before.
func (e *Engine) definition(config json.RawMessage) (definition, error) {
	given := stint.Hash(sha256.Sum256(config))
	e.mu.Lock()
	def, there := e.definitions[given]
	e.mu.Unlock()
	if there {
		return def, nil
	}
	def, err := compacted(config)
	if err != nil {
		return def, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.definitions) >= maxDefinitions {
		clear(e.definitions)
	}
	e.definitions[given] = def
	return def, nil
}

// maxDefinitions bounds the definitions that are kept.
const maxDefinitions = 100

func validName(s string) bool {
	for i, r := range s {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) && (i == 0 || !strings.ContainsRune("._-", r)) {
			return false
		}
	}
	return s != "" && len(s) <= 100
}

// digest is of what the sender said, so that the same said again is the same.
func digest(r Request, c journal.Created) stint.Hash {
	h := sha256.New()
	if isChild(&c.Parent) { // its key is of the step that begins it, and the agent may have been changed since
		fmt.Fprintf(h, "child\x00%s\x00%s\x00", c.Parent.Session, c.Agent.Name)
		h.Write(r.Input)
		return stint.Hash(h.Sum(nil))
	}
	fmt.Fprintf(h, "%s\x00%s\x00%s\x00%s\x00%d\x00", c.Agent.Name, c.Agent.Runtime, c.Trigger.Kind, c.Trigger.Ref, len(r.Input))
	h.Write(r.Input)
	h.Write(kin(&c))
	return stint.Hash(h.Sum(nil))
}
