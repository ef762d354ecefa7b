package engine_test

import (
	"context"
	"errors"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/replay"
)

// replays does all completed loops of all lines again, with agents of a process that is
// dead and so leaves no trace in the world: whatever happened to a loop before it was
// completed, it comes out as recorded, and nothing is done.
func (w *world) replays(ctx context.Context) {
	w.mu.Lock()
	w.calm = true // no loop comes to grief any more
	w.mu.Unlock()
	p := &port{w: w, name: "replay", rng: w.dice("replay"), gone: make(chan struct{}), dead: true}
	close(p.gone)
	agent := w.simAgents(p)[0].Loop // they differ in what is done about doubts
	for _, id := range w.sessions() {
		row, err := w.store.Session(ctx, id)
		if err != nil {
			w.broken(id, "cannot be read: %v", err)
			return
		}
		for line := range row.Session.At.Line + 1 {
			rep, err := replay.Run(ctx, w.store, id, agent, replay.Options{Line: line})
			switch {
			case errors.Is(err, stint.NotFound): // no loop of it was completed
			case err != nil:
				w.broken(id, "the replay of line %d: %v", line, err)
			case rep.Divergence != nil:
				w.broken(id, "the replay of line %d diverged in loop %d: %s", line, rep.Divergence.Pos.Loop, rep.Divergence.Text)
			default:
				w.happened["a replayed loop"] += len(rep.Loops)
			}
		}
	}
}
