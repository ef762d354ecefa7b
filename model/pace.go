package model

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// PaceConfig bounds a [Pace]. Zero values are the defaults.
type PaceConfig struct {
	Parallel int           // calls at once; default 32
	Tries    int           // attempts at one call, the first included; default 6
	Base     time.Duration // the first wait when the provider names none; doubles each time; default 1s
	Max      time.Duration // the longest such wait; default 60s
	// Patience is the longest a call waits in one go. A provider that asks for more gets
	// its error returned at once, so that the session can be parked; default 2m.
	Patience time.Duration
}

// Pace is what all users of one provider in this process share: how many call at once,
// and until when nobody does. The zero value does not work; see [NewPace]. It is safe
// for concurrent use.
//
// A call that is answered with too many requests or overloaded stops all: nobody
// begins before the time that the provider named, or a time that doubles. Then one call
// goes first. Only when that one is being answered does the next pair go, then four, so that
// those who waited are no storm.
type Pace struct {
	cfg PaceConfig

	mu     sync.Mutex
	queue  []*ticket
	active int       // calls that run
	fresh  int       // of them, those begun since the last brake
	window int       // how many of those may run
	until  time.Time // nobody begins before
	level  int       // brakes in a row
	era    int       // counts brakes; what an older call reports is old news
	timer  *time.Timer
}

// ticket is a call that waits for its turn.
type ticket struct {
	turn chan struct{} // closed when it may begin
	era  int           // set then
}

// NewPace returns a Pace for one provider.
func NewPace(cfg PaceConfig) *Pace {
	orDefault(&cfg.Parallel, 32)
	orDefault(&cfg.Tries, 6)
	orDefault(&cfg.Base, time.Second)
	orDefault(&cfg.Max, time.Minute)
	orDefault(&cfg.Patience, 2*time.Minute)
	return &Pace{cfg: cfg, window: cfg.Parallel}
}

func orDefault[T int | time.Duration](v *T, d T) {
	if *v <= 0 {
		*v = d
	}
}

// Paced is a [Model] that waits its turn in a [Pace] and tries again what passes by
// itself. Make one for each user; they share the Pace.
type Paced struct {
	Model Model
	Pace  *Pace
	// Waits, when not nil, is told when a call begins to wait, and with the zero Wait
	// when it goes on. It is called from the goroutine of Call.
	Waits func(Wait)
}

var _ Model = (*Paced)(nil)

// Name is the model's.
func (p *Paced) Name() string { return p.Model.Name() }

// Call asks the model when its turn comes, at most PaceConfig.Tries times. An attempt
// that failed after it was heard is followed by a Delta that voids what was heard. The
// error is that of the last attempt, or ctx's if that ended while it waited.
func (p *Paced) Call(ctx context.Context, r *Request, hear func(Delta)) (*Answer, error) {
	var last *Error
	var wasted Usage
	for try := 1; ; try++ {
		if last != nil && !last.Kind.Shared() {
			if err := p.sleep(ctx, p.Pace.wait(try-1, last), last); err != nil {
				return nil, err
			}
		}
		era, err := p.Pace.enter(ctx, p.Name(), func(w Wait) { p.tell(ctx, w, last) })
		if err != nil {
			return nil, err
		}
		heard := false
		a, err := p.once(ctx, r, era, func(d Delta) {
			if hear != nil {
				heard = true
				hear(d)
			}
		})
		last = AsError(err)
		if last != nil {
			wasted = wasted.Add(last.Usage)
		}
		switch {
		case err == nil:
			a.Wasted = wasted
			return a, nil
		case ctx.Err() != nil, last == nil, !last.Retryable(), try >= p.Pace.cfg.Tries, last.After > p.Pace.cfg.Patience:
			return nil, err
		case heard:
			hear(Delta{Void: true})
		}
	}
}

func (p *Paced) once(ctx context.Context, r *Request, era int, hear func(Delta)) (*Answer, error) {
	served := false
	err := context.Canceled // if the model panics; its place must not stay taken
	defer func() { p.Pace.leave(era, served, err) }()
	var a *Answer
	a, err = p.Model.Call(ctx, r, func(d Delta) {
		if !served {
			served = true
			p.Pace.served(era)
		}
		hear(d)
	})
	return a, err
}

// waiting is the key of what [OnWait] puts into a context.
type waiting struct{}

// OnWait returns a context for one call of a model: if the model is [Paced], or has one
// in it, tell is told as [Paced.Waits] is, from the goroutine of the call.
func OnWait(ctx context.Context, tell func(Wait)) context.Context {
	return context.WithValue(ctx, waiting{}, tell)
}

func (p *Paced) tell(ctx context.Context, w Wait, last *Error) {
	if (w != Wait{}) {
		w.Err = last
	}
	if tell, ok := ctx.Value(waiting{}).(func(Wait)); ok {
		tell(w)
	}
	if p.Waits != nil {
		p.Waits(w)
	}
}

// sleep waits by itself, for errors that say nothing about the provider's other users.
func (p *Paced) sleep(ctx context.Context, d time.Duration, last *Error) error {
	p.tell(ctx, Wait{Until: time.Now().Add(d)}, last)
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		p.tell(ctx, Wait{}, nil)
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// wait is how long to wait after the n-th error in a row.
func (p *Pace) wait(n int, e *Error) time.Duration {
	d := p.cfg.Max
	if n < 32 && p.cfg.Base<<(n-1) < d && p.cfg.Base<<(n-1) > 0 {
		d = p.cfg.Base << (n - 1)
	}
	d = max(d/2+rand.N(d/2+1), e.After) // other processes have the same clock
	return d
}

// enter waits for a turn. It refuses at once when the wait is known to be longer than
// the patience.
func (p *Pace) enter(ctx context.Context, name string, tell func(Wait)) (int, error) {
	p.mu.Lock()
	if d := time.Until(p.until); d > p.cfg.Patience {
		p.mu.Unlock()
		return 0, &Error{Kind: Rate, Model: name, After: min(d, MaxAfter),
			Message: "the provider asked all its users here to wait until " + p.until.UTC().Format(time.RFC3339)}
	}
	t := &ticket{turn: make(chan struct{})}
	p.queue = append(p.queue, t)
	p.dispatch()
	place := slices.Index(p.queue, t)
	w := Wait{Ahead: p.active + place}
	if time.Now().Before(p.until) {
		w.Until = p.until
	}
	p.mu.Unlock()
	if place < 0 {
		return t.era, nil // it was let in at once
	}
	tell(w)
	select {
	case <-t.turn:
		tell(Wait{})
		return t.era, nil
	case <-ctx.Done():
		p.abandon(t)
		return 0, context.Cause(ctx)
	}
}

func (p *Pace) abandon(t *ticket) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(p.queue, t); i >= 0 {
		p.queue = slices.Delete(p.queue, i, i+1)
		return
	}
	p.release(t.era) // it was let in meanwhile
	p.dispatch()
}

func (p *Pace) release(era int) {
	p.active--
	if era == p.era {
		p.fresh--
	}
}

// leave gives the place back and learns from how the call ended.
func (p *Pace) leave(era int, served bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.release(era)
	e := AsError(err)
	switch {
	case err == nil && era == p.era:
		p.level = 0
		if !served {
			p.open()
		}
	case e == nil || !e.Kind.Shared():
	case era == p.era:
		p.level++
		p.era++
		p.fresh, p.window = 0, 1
		p.brake(p.wait(p.level, e))
	case e.After > 0: // begun before the brake: it only may know a later time
		p.brake(e.After)
	}
	p.dispatch()
}

// served is told with the first text of an answer: the provider takes calls again, and
// those who wait need not wait for the end of a long one.
func (p *Pace) served(era int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if era == p.era {
		p.open()
		p.dispatch()
	}
}

func (p *Pace) open() { p.window = min(2*p.window, p.cfg.Parallel) }

func (p *Pace) brake(d time.Duration) {
	if until := time.Now().Add(d); until.After(p.until) {
		p.until = until
	}
}

// dispatch lets in who may begin; p.mu is held.
func (p *Pace) dispatch() {
	if len(p.queue) == 0 {
		return
	}
	if d := time.Until(p.until); d > 0 {
		if p.timer != nil {
			p.timer.Stop()
		}
		p.timer = time.AfterFunc(d, func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.dispatch()
		})
		return
	}
	for len(p.queue) > 0 && p.active < p.cfg.Parallel && p.fresh < p.window {
		t := p.queue[0]
		p.queue = p.queue[1:]
		p.active++
		p.fresh++
		t.era = p.era
		close(t.turn)
	}
}
