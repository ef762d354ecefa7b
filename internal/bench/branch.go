package bench

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/journal"
	"github.com/stint-dev/stint/store/sqlite"
)

// Branches is what branches of one long session, and going back in it, take.
type Branches struct {
	Loops      int     `json:"loops"`       // of the session
	From       int     `json:"from"`        // the loop that is branched at, and gone back to
	StateBytes int     `json:"state_bytes"` // there
	CommitMS   float64 `json:"commit_ms"`   // median of a small transaction on the same store, for comparison
	P50ms      float64 `json:"p50_ms"`      // of a branch, until it is durable
	P95ms      float64 `json:"p95_ms"`
	Branches   int     `json:"branches"`
	Bytes      float64 `json:"bytes_per_branch"`   // by which the store grew, of the first half
	Later      float64 `json:"later_bytes"`        // of the second half
	RollbackMS float64 `json:"rollback_p50_ms"`    // going back to that loop, until it is durable
	RollBytes  float64 `json:"bytes_per_rollback"` // by which the store grew
	Parent     float64 `json:"parent_bytes"`       // of the session itself
}

// kept is how much of its state the session of [MeasureBranches] keeps, in bytes.
const keptState = 4 << 10

// MeasureBranches makes a session of so many loops, each with 1 KiB of news in a state of
// 4 KiB, then n branches of it at a loop in its middle, and takes it back there 50 times.
func MeasureBranches(ctx context.Context, st *sqlite.Store, loops, n int, say Say) (out Branches, err error) {
	e, err := engine.New(ctx, st, engine.Options{})
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	out = Branches{Loops: loops, From: loops / 2, Branches: n}
	before, err := st.Bytes(ctx)
	if err != nil {
		return out, err
	}
	var id stint.ID
	if _, err = e.RunNew(ctx, engine.Request{Agent: engine.Agent{Name: "long", Loop: keeper{loops}}}, func(c engine.Created) { id = c.ID }); err != nil {
		return out, err
	}
	if say != nil {
		say("branch: a session of %d loops is there", loops)
	}
	grown, err := st.Bytes(ctx)
	if err != nil {
		return out, err
	}
	out.Parent = float64(grown - before)
	if out.CommitMS, err = smallCommit(ctx, st); err != nil {
		return out, err
	}
	if err = out.branch(ctx, e, st, id, n); err != nil {
		return out, err
	}
	if say != nil {
		say("branch: %d branches are there", n)
	}
	return out, out.rollback(ctx, e, st, id)
}

func (out *Branches) branch(ctx context.Context, e *engine.Engine, st *sqlite.Store, id stint.ID, n int) error {
	took := make([]float64, n)
	was, err := st.Bytes(ctx)
	if err != nil {
		return err
	}
	for half, of := range []*float64{&out.Bytes, &out.Later} {
		for i := half * n / 2; i < (half+1)*n/2; i++ {
			begun := time.Now()
			made, err := e.Branch(ctx, id, engine.Branch{From: &out.From})
			if err != nil {
				return err
			}
			took[i] = milliseconds(time.Since(begun))
			if i == 0 {
				row, err := st.Session(ctx, made.ID)
				if err != nil {
					return err
				}
				out.StateBytes = int(row.Session.Checkpoint.Size)
			}
		}
		now, err := st.Bytes(ctx)
		if err != nil {
			return err
		}
		*of = float64(now-was) / float64(n/2)
		was = now
	}
	slices.Sort(took)
	out.P50ms, out.P95ms = took[n/2], took[n*95/100]
	return nil
}

// rollbacks is how often the session is taken back.
const rollbacks = 50

func (out *Branches) rollback(ctx context.Context, e *engine.Engine, st *sqlite.Store, id stint.ID) error {
	was, err := st.Bytes(ctx)
	if err != nil {
		return err
	}
	took := make([]float64, rollbacks)
	data, err := stint.Marshal(journal.Command{From: &out.From})
	if err != nil {
		return err
	}
	for i := range took {
		begun := time.Now()
		if err := st.Send(ctx, id, stint.Message{ID: fmt.Sprint("back-", i), Kind: stint.Rollback, From: "human:bench", Data: data}); err != nil {
			return err
		}
		if err := e.Settle(ctx, id); err != nil {
			return err
		}
		took[i] = milliseconds(time.Since(begun))
	}
	row, err := st.Session(ctx, id)
	if err != nil {
		return err
	}
	if row.Session.At.Line != rollbacks || row.Session.Checkpoint.Loop != out.From {
		return stint.Internal.Errorf("bench", "the session is on line %d at loop %d after %d rollbacks", row.Session.At.Line, row.Session.Checkpoint.Loop, rollbacks)
	}
	now, err := st.Bytes(ctx)
	slices.Sort(took)
	out.RollbackMS, out.RollBytes = took[rollbacks/2], float64(now-was)/rollbacks
	return err
}

// smallCommit is the median of the smallest change that a store makes durable.
func smallCommit(ctx context.Context, st *sqlite.Store) (float64, error) {
	took := make([]float64, 101)
	for i := range took {
		id := stint.ID{0xff, 14: byte(i >> 8), 15: byte(i)}
		s, entry, err := journal.Begin(id, journal.Created{Family: id, Name: "small", Agent: stint.AgentRef{Name: "a", Runtime: "none"}}, journal.Draft{At: time.Now()})
		if err != nil {
			return 0, err
		}
		begun := time.Now()
		if _, err := st.Create(ctx, stint.Batch{Session: s, Entries: []stint.Entry{entry}}, stint.Claim{}); err != nil {
			return 0, err
		}
		took[i] = milliseconds(time.Since(begun))
	}
	slices.Sort(took)
	return took[len(took)/2], nil
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// keeper is an agent whose state is 4 KiB, of which each loop changes one.
type keeper struct{ loops int }

// Loop implements [stint.Agent].
func (k keeper) Loop(_ context.Context, l stint.Loop) (stint.Next, error) {
	news := make([]byte, 765) // of 1,020 characters
	_, _ = rand.Read(news)
	state := append([]byte(`"`), base64.StdEncoding.EncodeToString(news)...)
	if old := l.State(); len(old) > 2 {
		state = append(state, old[1:len(old)-1]...)
	}
	next := stint.Next{State: append(state[:min(len(state), keptState-1):min(len(state), keptState-1)], '"')}
	if l.Session().At.Loop == k.loops {
		next.End = &stint.End{}
	}
	return next, nil
}
