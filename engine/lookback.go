package engine

import (
	"context"
	"encoding/json"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/past"
)

// Outcome returns the result of the step at exactly this position of an earlier loop,
// whatever its attempt; [stint.NotFound] if no step ended well there. The loops before a
// branch are those of the session that it branched off, as far as it is still in the store.
// It is for agents that want back what they do not carry in their state.
func (l *loop) Outcome(ctx context.Context, at stint.Position) (json.RawMessage, error) {
	return past.Outcome(ctx, l.d.e.store, &l.start, at)
}
