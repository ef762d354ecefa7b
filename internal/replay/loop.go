package replay

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/past"
	"github.com/stint-dev/stint/journal"
)

// loop is one loop as its agent sees it again.
type loop struct {
	*tape
	from   *tapes
	state  json.RawMessage
	output func(stream string, p []byte)

	busy     atomic.Bool
	step     int         // newest step number handed out
	diverged *Divergence // the first difference; every step after it is parked
	err      error       // the journal could not be read
}

var (
	_ stint.Loop     = (*loop)(nil)
	_ stint.Reporter = (*loop)(nil)
)

func (l *loop) Session() stint.Session { return l.session }
func (l *loop) State() json.RawMessage { return l.state }
func (l *loop) Inbox() []stint.Message { return l.tape.inbox }

// Recorded returns what earlier entries into the loop had left, as the engine does.
func (l *loop) Recorded() []json.RawMessage { return l.told.Describe() }

// Begun tells of a step what earlier entries into the loop had left, as the engine does.
func (l *loop) Begun(step, sub int) (begun bool, verdict string) { return l.told.Begun(step, sub) }

// LastAttempt is false: the attempt that is done again was completed.
func (l *loop) LastAttempt() bool { return false }

// Epoch returns the epoch that the loop was entered under.
func (l *loop) Epoch() int64 { return l.epoch }

// Outcome returns the result of a step of an earlier loop, as the engine does.
func (l *loop) Outcome(ctx context.Context, at stint.Position) (json.RawMessage, error) {
	return past.Outcome(ctx, l.from.src, &l.session, at)
}

// Progress shows nothing: nobody watches a replay.
func (l *loop) Progress(string) {}

func (l *loop) Log(stream string, p []byte) {
	if l.output != nil {
		l.output(stream, p)
	}
}

// Do implements [stint.Loop]; it never calls the function.
func (l *loop) Do(ctx context.Context, s stint.Step, _ func(context.Context, string) (stint.Result, error)) (stint.Result, error) {
	return l.do(ctx, s, false)
}

// Spawn implements [stint.Spawner]; it begins no session.
func (l *loop) Spawn(ctx context.Context, c stint.Child) (stint.ID, error) {
	s, err := past.SpawnStep(&c)
	if err != nil {
		return stint.ID{}, err
	}
	res, err := l.do(ctx, s, true)
	if err != nil {
		return stint.ID{}, err
	}
	return past.ChildOf(res.Data)
}

func (l *loop) do(ctx context.Context, s stint.Step, child bool) (stint.Result, error) {
	if !l.busy.CompareAndSwap(false, true) {
		return stint.Result{}, past.Overlapping(s.Name)
	}
	defer l.busy.Store(false)
	res, own, err := l.prepare(ctx, s, l.step+1, 0, child)
	if err != nil {
		return stint.Result{}, err
	}
	l.step++
	return res, own
}

// DoAll implements [stint.Loop]; it never calls the function.
func (l *loop) DoAll(ctx context.Context, steps []stint.Step, _ func(context.Context, int, string) (stint.Result, error)) ([]stint.Result, error) {
	if len(steps) == 0 {
		return nil, nil
	}
	if !l.busy.CompareAndSwap(false, true) {
		return nil, past.Overlapping(steps[0].Name)
	}
	defer l.busy.Store(false)
	out, errs := make([]stint.Result, len(steps)), make([]error, len(steps))
	for i, s := range steps {
		var err error
		if out[i], errs[i], err = l.prepare(ctx, s, l.step+1, i+1, false); err != nil {
			return nil, err
		}
	}
	l.step++
	return out, past.GroupError(errs)
}

// prepare answers a step from the journal: with its result, or with the error own that is
// its result. err is that of a step that cannot be one, or parks the loop.
func (l *loop) prepare(ctx context.Context, s stint.Step, step, sub int, child bool) (res stint.Result, own, err error) {
	if l.diverged != nil || l.err != nil || ctx.Err() != nil {
		return res, nil, stint.ErrParked
	}
	if err := past.Check(&s); err != nil {
		return res, nil, err
	}
	intent := past.Intent(&s)
	intent.Child = child
	was := l.steps.At(step, sub)
	try := l.tried(step, sub)
	switch {
	case was == nil && try == nil:
		l.other(NoStep, step, sub, nil, &s, intent)
		return res, nil, stint.ErrParked
	case try != nil && try.Same(intent):
		// As a known outcome: to agents that talk with a program, another error is not its own.
		return res, stint.Definite(errors.New(try.Error)), nil
	case try != nil:
		l.other(OtherStep, step, sub, &try.StepRequested, &s, intent)
		return res, nil, stint.ErrParked
	case !was.Intent.Same(intent):
		l.other(OtherStep, step, sub, &was.Intent, &s, intent)
		return res, nil, stint.ErrParked
	case !was.Answered():
		l.err = stint.Corrupt.Errorf("replay", "step %s has no outcome, and its loop was completed", l.at(step, sub))
		return res, nil, stint.ErrParked
	}
	if s.Edit != nil && was.Intent.Asked != "" {
		input := was.Input
		if !was.InputBlob.IsZero() {
			if input, l.err = l.from.src.Blob(ctx, l.from.family, was.InputBlob); l.err != nil {
				return res, nil, stint.ErrParked
			}
		}
		s.Edit(input)
	}
	res, own = was.Answer(func() (json.RawMessage, error) {
		var b []byte
		if b, l.err = l.body(ctx, was); l.err != nil {
			return nil, l.err
		}
		return b, nil
	})
	if l.err != nil {
		return stint.Result{}, nil, stint.ErrParked
	}
	return res, own, nil
}

// body reads the body of an outcome.
func (l *loop) body(ctx context.Context, s *past.Step) ([]byte, error) {
	if s.Blob.IsZero() {
		return s.Body, nil
	}
	return l.from.src.Blob(ctx, l.from.family, s.Blob)
}

// other notes that a step is not the one on record.
func (l *loop) other(what What, step, sub int, was *journal.StepRequested, s *stint.Step, intent journal.StepRequested) {
	offered := &Step{Name: intent.Name, Kind: intent.Kind, Effect: intent.Effect, Hash: intent.Input, Size: len(s.Input), Input: s.Input}
	var recorded *Step
	if was != nil {
		if recorded, l.err = l.from.recordedStep(l.tape, place{step, sub}, *was); l.err != nil {
			return
		}
	}
	l.diverged = divergeStep(what, l.at(step, sub), recorded, offered)
	l.diverged.Seq = l.seqs[place{step, sub}]
}
