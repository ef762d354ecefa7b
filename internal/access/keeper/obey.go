package keeper

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/internal/access"
)

// Verb is what is asked of the tokens.
type Verb string

// The verbs.
const (
	Create Verb = "token.create"
	Revoke Verb = "token.revoke"
)

// Command is the body of a message to the system journal that asks something of the
// tokens. Whoever wants a token mints it, and sends what is to be stored.
type Command struct {
	Verb   Verb         `json:"verb"`
	Token  access.Token `json:"token,omitzero"` // of Create
	ID     string       `json:"id,omitempty"`   // of Revoke
	Reason string       `json:"reason,omitempty"`
}

// Obey does what a message to the system journal asks, and takes it. known is false for a
// message that is none for tokens. What cannot be done is recorded with why.
func (k *Keeper) Obey(ctx context.Context, m *stint.Message) (known bool, err error) {
	var c Command
	if json.Unmarshal(m.Body, &c) != nil || !strings.HasPrefix(string(c.Verb), "token.") {
		return false, nil
	}
	switch c.Verb {
	case Create:
		err = k.Put(ctx, c.Token, m.From, m)
	case Revoke:
		err = k.Revoke(ctx, c.ID, m.From, c.Reason, m)
	default:
		err = stint.Invalid.Errorf("token", "%q is nothing that is done to tokens", c.Verb)
	}
	switch stint.CodeOf(err) {
	case stint.Conflict, stint.NotFound, stint.Limit, stint.Invalid:
	default:
		return true, err
	}
	if err == nil {
		return true, nil
	}
	return true, k.system.Record(ctx, engine.Note{What: string(c.Verb) + ".refused", Name: c.ID, Actor: m.From, Reason: err.Error(), Takes: m})
}
