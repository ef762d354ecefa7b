package access

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stint-dev/stint"
)

// Mem keeps tokens in memory, as a model for other keepers and for tests. Its zero value is
// empty. It may be used by many goroutines.
type Mem struct {
	mu     sync.Mutex
	tokens map[string]Token
}

var (
	_ Keeper   = (*Mem)(nil)
	_ Redeemer = (*Mem)(nil)
)

// Put stores a new token. An id that is there already is [stint.Exists]: make another.
func (m *Mem) Put(t Token) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.put(t)
}

func (m *Mem) put(t Token) error {
	if _, ok := m.tokens[t.ID]; ok {
		return stint.Exists.Errorf("token", "there is a token %s", t.ID)
	}
	if m.tokens == nil {
		m.tokens = map[string]Token{}
	}
	m.tokens[t.ID] = t
	return nil
}

// Revoke ends a token; a second time changes nothing. An unknown id is [stint.NotFound].
func (m *Mem) Revoke(id string, at time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	t, err := m.get(id)
	if err != nil {
		return err
	}
	if t.Revoked.IsZero() {
		t.Revoked = at
		m.tokens[id] = t
	}
	return nil
}

func (m *Mem) get(id string) (Token, error) {
	t, ok := m.tokens[id]
	if !ok {
		return Token{}, stint.NotFound.Errorf("token", "there is no token %s", id)
	}
	return t, nil
}

// Token implements [Keeper].
func (m *Mem) Token(_ context.Context, id string) (Token, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.get(id)
}

// Used implements [Keeper].
func (m *Mem) Used(_ context.Context, id string, at time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	t, err := m.get(id)
	if err == nil && at.After(t.LastUsed) {
		t.LastUsed = at
		m.tokens[id] = t
	}
	return err
}

// Any implements [Keeper].
func (m *Mem) Any(context.Context) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, t := range m.tokens {
		if t.Kind == User || t.Kind == CI {
			return true, nil
		}
	}
	return false, nil
}

// Redeem implements [Redeemer].
func (m *Mem) Redeem(_ context.Context, code string, next Token) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	t, err := m.get(code)
	if err != nil {
		return err
	}
	if !t.Revoked.IsZero() {
		return stint.Conflict.Errorf("login", "the code was redeemed at %s", t.Revoked.UTC().Format(time.RFC3339))
	}
	if err := m.put(next); err != nil {
		return err
	}
	t.Revoked = next.Created
	m.tokens[code] = t
	return nil
}

// All returns every stored token, by id.
func (m *Mem) All() []Token {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := make([]Token, 0, len(m.tokens))
	for _, t := range m.tokens {
		all = append(all, t)
	}
	slices.SortFunc(all, func(a, b Token) int { return strings.Compare(a.ID, b.ID) })
	return all
}
