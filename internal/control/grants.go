package control

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/policy"
)

// RevokeVerb is what is asked of a grant.
const RevokeVerb = "grant.revoke"

// GrantOrder is the body of a message to the system journal that asks something of a grant.
type GrantOrder struct {
	Verb   string `json:"verb"`
	Grant  string `json:"grant"`
	Reason string `json:"reason,omitempty"`
}

// Grants ends grants, as a server is asked to. It may be used by many goroutines.
type Grants struct {
	Store  stint.Reader
	System *engine.System
}

// Obey implements the server's obeyers.
func (g *Grants) Obey(ctx context.Context, m *stint.Message) (known bool, err error) {
	var o GrantOrder
	if json.Unmarshal(m.Body, &o) != nil || o.Verb != RevokeVerb {
		return false, nil
	}
	note := engine.Note{What: "grant.revoked", Name: o.Grant, Actor: m.From, Takes: m, Reason: o.Reason}
	now := time.Now()
	all, err := engine.Grants(ctx, g.Store, now)
	if err != nil {
		return true, err
	}
	i := slices.IndexFunc(all, func(one policy.Grant) bool { return one.ID == o.Grant })
	if i < 0 {
		note.What, note.Reason = RevokeVerb+".refused", "there is no grant of that id, or it has ended"
		return true, g.System.Record(ctx, note)
	}
	k, err := engine.RevokedKey(all[i], m.From, now)
	if err != nil {
		return true, err
	}
	note.Keys = []stint.Key{k}
	return true, g.System.Record(ctx, note)
}
