package engine_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"testing"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/journal"
)

// TestAPinIsTheHashOfWhatTheJournalHolds gives a definition with white space.
func TestAPinIsTheHashOfWhatTheJournalHolds(t *testing.T) {
	inBubble(t, func(r *rig) {
		a := agent("a", func(context.Context, stint.Loop) (stint.Next, error) { return stint.Next{End: &stint.End{}}, nil })
		a.Config = json.RawMessage("{\n  \"model\": \"x\"\n}")
		n := r.serve(engine.Options{Agents: []engine.Agent{a}, Holder: "r1"})
		id := r.start(n.Engine, a, "")
		s := r.settles(id, stint.Completed)
		n.stop()
		c, err := journal.Decode[journal.Created](&r.entries(id)[0])
		if err != nil {
			r.t.Fatal(err)
		}
		if got := stint.Hash(sha256.Sum256(c.Config)); got != s.Agent.Pin {
			t.Errorf("the first entry holds %s, which is not what the session is pinned to", c.Config)
		}
	})
}
