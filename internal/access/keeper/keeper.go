package keeper

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/internal/access"
	"github.com/stint-dev/stint/internal/faultpoint"
)

// Section is the part of the system journal's state that has the tokens.
const Section = "tokens"

const (
	// useEvery is how old a stored time of use gets before a newer one is stored: each is
	// an entry in the journal.
	useEvery = time.Hour
	// keptEnded is how long a token is listed after it ended.
	keptEnded = 30 * 24 * time.Hour
	// most is how many tokens a server has.
	most = 1000
)

// held is the section.
type held struct {
	Tokens map[string]access.Token `json:"tokens,omitempty"` // by id
	// Ever says that there was a token of a person or of a CI, see [access.Keeper].
	Ever bool `json:"ever,omitempty"`
}

// Read returns the tokens of a section, by id.
func Read(raw json.RawMessage) ([]access.Token, error) {
	h, err := read(raw)
	if err != nil {
		return nil, err
	}
	return h.list(), nil
}

func read(raw json.RawMessage) (held, error) {
	h := held{}
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &h); err != nil {
			return h, stint.Corrupt.Errorf("token", "the tokens in the system journal cannot be read: %v", err)
		}
	}
	if h.Tokens == nil {
		h.Tokens = map[string]access.Token{}
	}
	return h, nil
}

func (h *held) list() []access.Token {
	return slices.SortedFunc(maps.Values(h.Tokens), func(a, b access.Token) int {
		if c := a.Created.Compare(b.Created); c != 0 {
			return c
		}
		return strings.Compare(a.ID, b.ID)
	})
}

// Keeper is the tokens of a server. It may be used by many goroutines.
type Keeper struct {
	system *engine.System

	write sync.Mutex // held over a change: they come one after the other
	mu    sync.Mutex
	held  held
	used  map[string]time.Time // newer than what is stored
}

// New returns the tokens of the server that has system.
func New(system *engine.System) (*Keeper, error) {
	h, err := read(system.State(Section))
	if err != nil {
		return nil, err
	}
	return &Keeper{system: system, held: h, used: map[string]time.Time{}}, nil
}

// Token implements [access.Keeper].
func (k *Keeper) Token(_ context.Context, id string) (access.Token, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.get(id)
}

// get returns a token with when it was used last. The lock is held.
func (k *Keeper) get(id string) (access.Token, error) {
	t, ok := k.held.Tokens[id]
	if !ok {
		err := stint.NotFound.Errorf("token", "there is no token %.32q", id)
		err.Hint = "stint token ls lists them"
		return t, err
	}
	if at := k.used[id]; at.After(t.LastUsed) {
		t.LastUsed = at
	}
	return t, nil
}

// Any implements [access.Keeper].
func (k *Keeper) Any(context.Context) (bool, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.held.Ever, nil
}

// All returns the tokens, oldest first; those that ended within the last thirty days too.
func (k *Keeper) All() []access.Token {
	k.mu.Lock()
	defer k.mu.Unlock()
	all := k.held.list()
	for i := range all {
		all[i], _ = k.get(all[i].ID) // it is there
	}
	return all
}

// Used implements [access.Keeper]. It is stored once an hour, and with the next change of
// a token.
func (k *Keeper) Used(ctx context.Context, id string, at time.Time) error {
	k.mu.Lock()
	t, err := k.get(id)
	if err == nil && at.After(t.LastUsed) {
		k.used[id] = at
	}
	stored := k.held.Tokens[id].LastUsed
	k.mu.Unlock()
	if err != nil || at.Sub(stored) < useEvery {
		return err
	}
	return k.change(ctx, engine.Note{What: "token.used", Name: t.Name}, func(*held) error { return nil })
}

// Put stores a new token, which by asked for; takes is the message that did, or nil.
// A token that is there, or would be one too many, is [stint.Conflict] or [stint.Limit].
func (k *Keeper) Put(ctx context.Context, t access.Token, by stint.Actor, takes *stint.Message) error {
	n := engine.Note{What: "token.created", Name: t.Name, Actor: by, Takes: takes, Data: about(t)}
	return k.change(ctx, n, func(h *held) error { return h.put(t) })
}

// put adds a token.
func (h *held) put(t access.Token) error {
	if _, there := h.Tokens[t.ID]; there {
		return stint.Conflict.Errorf("token", "there is a token %s already", t.ID)
	}
	if t.ID == "" || t.Name == "" || t.Hash == (access.Hash{}) || t.Expires.IsZero() {
		return stint.Invalid.Errorf("token", "a token has an id, a name, a hash and an end")
	}
	if len(h.Tokens) >= most {
		err := stint.Limit.Errorf("token", "there are %d tokens, as many as may be", most)
		err.Hint = "revoke some: stint token revoke ID"
		return err
	}
	h.Tokens[t.ID] = t
	h.Ever = h.Ever || t.Kind == access.User || t.Kind == access.CI
	return nil
}

// Revoke ends a token and those that it asked for. One that has ended is
// [stint.Conflict], one that is not there [stint.NotFound].
func (k *Keeper) Revoke(ctx context.Context, id string, by stint.Actor, reason string, takes *stint.Message) error {
	k.mu.Lock()
	t, err := k.get(id)
	k.mu.Unlock()
	if err != nil {
		return err
	}
	now := faultpoint.Now().UTC()
	n := engine.Note{What: "token.revoked", Name: t.Name, Actor: by, Reason: reason, Takes: takes, Data: about(t)}
	return k.change(ctx, n, func(h *held) error {
		if t := h.Tokens[id]; !t.Revoked.IsZero() {
			return stint.Conflict.Errorf("token", "it was revoked at %s", t.Revoked.Format(time.RFC3339))
		}
		for other, t := range h.Tokens {
			if (other == id || t.From == id) && t.Revoked.IsZero() {
				t.Revoked = now
				h.Tokens[other] = t
			}
		}
		return nil
	})
}

// Redeem implements [access.Redeemer].
func (k *Keeper) Redeem(ctx context.Context, code string, next access.Token) error {
	n := engine.Note{What: "token.redeemed", Name: next.Name, Actor: stint.Actor("human:" + next.Name), Data: about(next)}
	return k.change(ctx, n, func(h *held) error {
		t, ok := h.Tokens[code]
		if !ok {
			return stint.NotFound.Errorf("login", "there is no such code")
		}
		if !t.Revoked.IsZero() {
			return stint.Conflict.Errorf("login", "the code was redeemed at %s", t.Revoked.Format(time.RFC3339))
		}
		t.Revoked = next.Created
		h.Tokens[code] = t
		return h.put(next)
	})
}

// about is what the journal says of a token. What others could use is not in it.
func about(t access.Token) any {
	return struct {
		ID      string         `json:"id"`
		Kind    access.Kind    `json:"kind"`
		Role    access.Role    `json:"role,omitempty"`
		Scopes  []access.Scope `json:"scopes,omitempty"`
		Expires time.Time      `json:"expires"`
	}{t.ID, t.Kind, t.Role, t.Scopes, t.Expires}
}

// change records n with the tokens as do leaves them. They count once that is durable.
func (k *Keeper) change(ctx context.Context, n engine.Note, do func(*held) error) error {
	k.write.Lock()
	defer k.write.Unlock()
	now := faultpoint.Now()
	k.mu.Lock()
	next := held{Tokens: map[string]access.Token{}, Ever: k.held.Ever}
	for id := range k.held.Tokens {
		t, _ := k.get(id) // it is there
		if now.Sub(end(t)) < keptEnded {
			next.Tokens[id] = t
		}
	}
	k.mu.Unlock()
	if err := do(&next); err != nil {
		return err
	}
	raw, err := json.Marshal(next)
	if err != nil {
		return stint.Internal.Errorf("token", "the tokens are no JSON: %v", err)
	}
	n.Section, n.State = Section, raw
	if err := k.system.Record(ctx, n); err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.held = next
	return nil
}

// end is when a token ended, or will.
func end(t access.Token) time.Time {
	if !t.Revoked.IsZero() {
		return t.Revoked
	}
	return t.Expires
}
