package engine

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/policy"
)

// The scopes of what a store keeps of grants, and the ledger that both are lines of.
const (
	grantScope   = "grant"
	revokedScope = "grant-revoked"
	grantLedger  = "grants"
	// maxGrants is how many grants are looked at, the newest first.
	maxGrants = 1000
	// grantKept is the least time for which a store keeps a key.
	grantKept = 31 * 24 * time.Hour
)

// GrantKey is what a store keeps of a grant: it goes with the decision that makes it, so that
// there is no grant without its yes.
func GrantKey(g policy.Grant) (stint.Key, error) {
	note, err := stint.Marshal(g)
	return grantKey(grantScope, &g, note), err
}

// RevokedKey is what a store keeps of the end of a grant.
func RevokedKey(g policy.Grant, by stint.Actor, at time.Time) (stint.Key, error) {
	g.By, g.At = by, at
	note, err := stint.Marshal(map[string]any{"by": by, "at": at})
	return grantKey(revokedScope, &g, note), err
}

func grantKey(scope string, g *policy.Grant, note json.RawMessage) stint.Key {
	k := stint.Key{Scope: scope, Name: g.ID, Digest: sha256.Sum256(note), Source: grantLedger, At: g.At, Note: note, Expires: g.Expires}
	if least := g.At.Add(grantKept); k.Expires.Before(least) {
		k.Expires = least
	}
	return k
}

// Grants returns the grants that hold at now, the newest first, at most 1,000.
func Grants(ctx context.Context, r stint.Reader, now time.Time) ([]policy.Grant, error) {
	made, err := r.Keys(ctx, stint.Key{Scope: grantScope, Source: grantLedger}, maxGrants)
	if err != nil || len(made) == 0 {
		return nil, err
	}
	ended, err := r.Keys(ctx, stint.Key{Scope: revokedScope, Source: grantLedger}, maxGrants)
	if err != nil {
		return nil, err
	}
	over := map[string]bool{}
	for i := range ended {
		over[ended[i].Name] = true
	}
	var all []policy.Grant
	for i := range made {
		var g policy.Grant
		if err := json.Unmarshal(made[i].Note, &g); err != nil {
			return nil, stint.Corrupt.Errorf("grants", "the grant %s cannot be read: %v", made[i].Name, err)
		}
		if !over[g.ID] && now.Before(g.Expires) {
			all = append(all, g)
		}
	}
	return all, nil
}

// granted is the grant that answers a question of the policy; false: somebody has to be
// asked, also where the grants cannot be read.
func (l *loop) granted(v policy.Verdict, c policy.Call, now time.Time) (policy.Grant, bool) {
	if v.Do != policy.Ask || !v.Grantable {
		return policy.Grant{}, false
	}
	all, err := Grants(l.d.io, l.d.e.store, now)
	if err != nil {
		return policy.Grant{}, false
	}
	return policy.Granted(all, v, c, now)
}
