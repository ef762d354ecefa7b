package engine

import (
	"context"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/past"
)

// DoAll implements [stint.Loop].
func (l *loop) DoAll(ctx context.Context, steps []stint.Step, fn func(context.Context, int, string) (stint.Result, error)) ([]stint.Result, error) {
	if len(steps) == 0 {
		return nil, nil
	}
	if !l.busy.CompareAndSwap(false, true) {
		return nil, past.Overlapping(steps[0].Name)
	}
	defer l.busy.Store(false)
	calls := make([]*call, len(steps))
	var todo []*call
	for i, s := range steps {
		c, err := l.prepare(s, place{step: l.step + 1, sub: i + 1, beside: len(todo)})
		if err != nil {
			return nil, err
		}
		if calls[i] = c; !c.answered {
			todo = append(todo, c)
		}
	}
	l.step++
	if err := l.together(ctx, calls, fn); err != nil {
		return nil, err
	}
	out, errs := make([]stint.Result, len(calls)), make([]error, len(calls))
	for i, c := range calls {
		out[i], errs[i] = c.result, c.err
	}
	return out, past.GroupError(errs)
}

// together brings the members of a group to their outcomes. Those that a person decided
// have theirs. Those that may overlap run beside each other; one that is to be alone
// waits for those before it, and it does not overtake one that waits for a person.
func (l *loop) together(ctx context.Context, calls []*call, fn func(context.Context, int, string) (stint.Result, error)) error {
	asks := false
	for begin := 0; begin < len(calls); {
		c, first, end := calls[begin], begin == 0, begin+1
		for !c.step.Alone && end < len(calls) && !calls[end].step.Alone {
			end++
		}
		var batch []*call
		for _, c := range calls[begin:end] {
			switch {
			case c.answered:
			case c.decided:
				l.settle(c)
			case c.asks, c.step.Alone && asks:
				asks = true
			default:
				batch = append(batch, c)
			}
		}
		begin = end
		if l.park == nil && !first && len(batch) > 0 {
			l.park = l.d.boundary() // the first ones were prepared just now
		}
		if l.park != nil {
			return stint.ErrParked
		}
		if err := l.batch(ctx, batch, fn); err != nil {
			return err
		}
	}
	if asks {
		l.parkFor(l.questions())
	}
	if l.park != nil {
		return stint.ErrParked
	}
	return nil
}

// batch runs calls beside each other.
func (l *loop) batch(ctx context.Context, calls []*call, fn func(context.Context, int, string) (stint.Result, error)) error {
	if len(calls) == 0 {
		return nil
	}
	if err := l.before(calls); err != nil {
		return err
	}
	done := make(chan *call)
	for _, c := range calls {
		go func() {
			l.perform(ctx, c, func(ctx context.Context, key string) (stint.Result, error) {
				return fn(ctx, c.pos.Sub-1, key)
			})
			done <- c
		}()
	}
	for range calls {
		l.settle(<-done)
	}
	return nil
}
