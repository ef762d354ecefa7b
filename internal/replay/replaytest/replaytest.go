// Package replaytest holds agents to their journals: what a test let an agent do, an agent
// that remembers nothing does again.
package replaytest

import (
	"context"
	"testing"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/replay"
)

// Same replays all sessions of a store whose loops were completed, with an agent that is as
// it was when they ran, and fails t where one comes out otherwise. settled is as in
// [replay.Options]. It may be called in a cleanup.
func Same(t testing.TB, src replay.Source, agent stint.Agent, settled bool) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	rows, err := src.Sessions(ctx, stint.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		if row.Session.Checkpoint.Loop == 0 {
			continue
		}
		rep, err := replay.Run(ctx, src, row.Session.ID, agent, replay.Options{Line: -1, Settled: settled})
		if err != nil {
			t.Errorf("the replay of %s: %v", row.Session.Name, err)
			continue
		}
		if rep.Divergence != nil {
			t.Errorf("the replay of %s diverged: %s", row.Session.Name, rep.Divergence.Text)
		}
	}
}
