package bench

import (
	"context"
	"path/filepath"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
)

// Latency is what one durable step of the only session takes, beside one durable
// commit of one row on the same disk at the same time.
type Latency struct {
	RawP50us         float64 `json:"raw_p50_us"` // a row of 1 KiB, synchronous=FULL
	RawP99us         float64 `json:"raw_p99_us"`
	IdempotentP50us  float64 `json:"idempotent_p50_us"` // from Do to durable
	IdempotentP99us  float64 `json:"idempotent_p99_us"`
	OnceP50us        float64 `json:"once_p50_us"` // the same; intent and result are a commit each
	OnceP99us        float64 `json:"once_p99_us"`
	IdempotentPerRaw float64 `json:"idempotent_per_raw"` // of the medians
	OncePerRaw       float64 `json:"once_per_raw"`
}

// sliceSteps is how many commits or steps are done before it is the next one's
// turn: a tenth of a second on a slow disk.
const sliceSteps = 99

// MeasureLatency takes turns, for d in all: rows into a database of its own in dir,
// idempotent steps, once steps. Each step begins when the one before is durable and
// gives 1 KiB.
func MeasureLatency(ctx context.Context, st stint.Store, dir string, d time.Duration) (Latency, error) {
	raw, err := openRaw(filepath.Join(dir, "raw.db"))
	if err != nil {
		return Latency{}, &stint.Error{Code: stint.Unavailable, Op: "bench", Err: err}
	}
	defer raw.c.Close()
	idem, err := newSolo(ctx, st, stint.Idempotent)
	if err != nil {
		return Latency{}, err
	}
	defer idem.e.Close()
	once, err := newSolo(ctx, st, stint.Once)
	if err != nil {
		return Latency{}, err
	}
	defer once.e.Close()
	end := time.Now().Add(d)
	for round := 0; round < 2 || time.Now().Before(end); round++ {
		if round == 1 { // the first one was to warm up
			raw.took.reset()
			idem.m.took.reset()
			once.m.took.reset()
		}
		for _, turn := range []func(context.Context) error{raw.slice, idem.slice, once.slice} {
			if err := turn(ctx); err != nil {
				return Latency{}, err
			}
		}
	}
	l := Latency{RawP50us: raw.took.us(.5), RawP99us: raw.took.us(.99)}
	l.IdempotentP50us, l.IdempotentP99us = idem.m.took.us(.5), idem.m.took.us(.99)
	l.OnceP50us, l.OnceP99us = once.m.took.us(.5), once.m.took.us(.99)
	if l.RawP50us > 0 {
		l.IdempotentPerRaw, l.OncePerRaw = l.IdempotentP50us/l.RawP50us, l.OnceP50us/l.RawP50us
	}
	return l, nil
}

// raw commits single rows to a database of its own, as plainly as one can.
type raw struct {
	c    *sqlite.Conn
	st   *sqlite.Stmt
	n    int64
	row  []byte
	took histogram
}

func openRaw(path string) (*raw, error) {
	c, err := sqlite.OpenConn(path, sqlite.OpenReadWrite|sqlite.OpenCreate|sqlite.OpenWAL)
	if err != nil {
		return nil, err
	}
	r := &raw{c: c, row: text(1024)}
	for _, q := range []string{
		"PRAGMA synchronous = FULL",
		"CREATE TABLE IF NOT EXISTS journal(id INTEGER PRIMARY KEY, session INTEGER NOT NULL, seq INTEGER NOT NULL, payload BLOB NOT NULL, UNIQUE(session, seq))",
		"DELETE FROM journal",
	} {
		if err := sqlitex.ExecuteTransient(c, q, nil); err != nil {
			_ = c.Close()
			return nil, err
		}
	}
	if r.st, err = c.Prepare("INSERT INTO journal(session, seq, payload) VALUES (1, ?, ?)"); err != nil {
		_ = c.Close()
		return nil, err
	}
	return r, nil
}

// slice commits some rows, each by itself.
func (r *raw) slice(ctx context.Context) error {
	for range sliceSteps {
		begun := time.Now()
		r.n++
		r.st.BindInt64(1, r.n)
		r.st.BindBytes(2, r.row)
		if _, err := r.st.Step(); err != nil {
			return &stint.Error{Code: stint.Unavailable, Op: "bench", Err: err}
		}
		if err := r.st.Reset(); err != nil {
			return &stint.Error{Code: stint.Unavailable, Op: "bench", Err: err}
		}
		r.took.add(time.Since(begun))
	}
	return ctx.Err()
}

// solo runs one session at a time, each of whose steps waits for the one before.
type solo struct {
	m     *meter
	e     *engine.Engine
	agent engine.Agent
}

func newSolo(ctx context.Context, st stint.Store, effect stint.Effect) (*solo, error) {
	s := &solo{m: newMeter(st)}
	w := newPlay(Workload{Loops: sliceSteps / StepsPerLoop})
	result := w.modelResult(1)
	s.agent = engine.Agent{Name: "bench-" + string(effect), Loop: stint.AgentFunc(func(ctx context.Context, l stint.Loop) (stint.Next, error) {
		marks, n := s.m.marks(l.Session().ID), l.Session().Checkpoint.Loop+1
		if marks.durable == nil {
			marks.durable = make(chan struct{}, 1)
		}
		for i := range StepsPerLoop {
			if err := step(ctx, l, i+1, stint.Step{Name: "tool", Kind: stint.Tool, Effect: effect}, result, marks.begin); err != nil {
				return stint.Next{}, err
			}
			select {
			case <-marks.durable:
			case <-ctx.Done():
				return stint.Next{}, ctx.Err()
			}
		}
		return w.next(l.State(), n), nil
	})}
	var err error
	s.e, err = engine.New(ctx, s.m.store(), engine.Options{Agents: []engine.Agent{s.agent}, Concurrency: 1})
	return s, err
}

func (s *solo) slice(ctx context.Context) error {
	id, err := runToEnd(ctx, s.e, s.agent)
	s.m.forget(id)
	return err
}
