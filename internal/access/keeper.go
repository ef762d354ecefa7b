package access

import (
	"context"
	"time"
)

// Keeper is where tokens are stored. It is called by many goroutines at once, and does
// not keep an answer longer than a second: revocations are noticed through Token.
type Keeper interface {
	// Token returns the stored token of an id, revoked and expired ones as well. An id that
	// is not stored is [stint.NotFound].
	Token(ctx context.Context, id string) (Token, error)
	// Used notes that a token was let in; it is called when the stored LastUsed is a minute
	// old. An older time does not replace a newer one. An error is logged, and nobody is
	// refused for it.
	Used(ctx context.Context, id string, at time.Time) error
	// Any reports whether a token of kind [User] or [CI] was ever made, also one that is
	// revoked or has expired since: see [Trust].
	Any(ctx context.Context) (bool, error)
}

// Redeemer ends login codes.
type Redeemer interface {
	// Redeem revokes a login code and stores next, in one transaction. A code that is
	// already revoked is [stint.Conflict], one that is not stored [stint.NotFound], and
	// nothing is stored then: of two that redeem one code, one gets in.
	Redeem(ctx context.Context, code string, next Token) error
}
