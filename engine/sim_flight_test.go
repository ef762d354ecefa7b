package engine_test

import (
	"context"
	"time"

	"github.com/stint-dev/stint"
)

// Append sends b on its way and never waits: a caller that waits may have a lock,
// and in a bubble time stands still while somebody waits for one. Now and then the
// answer is there before Append returns.
func (p *port) Append(ctx context.Context, l stint.Lease, b stint.Batch, done func(error)) {
	if p.isDead() {
		done(&stint.Error{Code: stint.Fenced, Op: "append", Err: errGone})
		return
	}
	p.mu.Lock()
	f := &flight{ctx: ctx, lease: l, batch: b, done: done, thaw: p.thaw}
	key := stint.Lease{Session: l.Session, Epoch: l.Epoch}
	ln := p.lanes[key]
	if ln == nil {
		ln = &lane{}
		p.lanes[key] = ln
	}
	ln.queue = append(ln.queue, f)
	first, direct := !ln.busy, p.w.direct && p.lag == 0 && p.thaw == nil && p.rng.IntN(2) == 0
	if first {
		ln.busy = true
	}
	p.mu.Unlock()
	switch {
	case first && direct:
		p.fly(ln)
	case first:
		p.w.wg.Go(func() { p.fly(ln) })
	}
}

// fly takes the flights of a lane to the store, one after the other.
func (p *port) fly(ln *lane) {
	for {
		p.mu.Lock()
		if len(ln.queue) == 0 {
			ln.busy = false
			p.mu.Unlock()
			return
		}
		f, lag := ln.queue[0], p.lag
		p.mu.Unlock()
		if lag > 0 {
			<-time.After(p.upTo(lag))
		}
		err := p.land(f)
		if lag > 0 {
			<-time.After(p.upTo(lag))
		}
		p.mu.Lock()
		ln.queue = ln.queue[1:]
		if err != nil { // and so are those queued behind it
			for _, behind := range ln.queue {
				behind.refuse = err
			}
		}
		p.mu.Unlock()
		if gone := p.enter(); gone != nil { // the answer reaches nobody
			f.done(gone)
			continue
		}
		if n := len(f.batch.Entries); err == nil && n > 0 {
			last := &f.batch.Entries[n-1]
			p.w.durable(f.lease.Session, last.Seq, last.Hash)
		}
		f.done(err)
	}
}

// land is a flight reaching the store.
func (p *port) land(f *flight) error {
	p.mu.Lock()
	refuse, cut, late, broken := f.refuse, f.cut, f.late, p.broken
	p.mu.Unlock()
	if f.thaw != nil { // a frozen process sends nothing
		select {
		case <-f.thaw:
		case <-p.gone:
		}
	}
	if late > 0 {
		<-time.After(late)
	}
	switch {
	case refuse != nil:
		return refuse
	case cut:
		return &stint.Error{Code: stint.Fenced, Op: "append", Err: errGone}
	case broken:
		return stint.Unavailable.Errorf("append", "the disk is full for this process")
	}
	if err := p.w.door(); err != nil {
		return err
	}
	newest := p.w.newest(f.lease.Session)
	answer := make(chan error, 1)
	p.w.givesBack(f.lease, f.batch.Release)
	p.store.Append(context.WithoutCancel(f.ctx), f.lease, f.batch, func(err error) { answer <- err })
	err := <-answer
	if err != nil {
		p.w.givesBack(f.lease, false)
		return err
	}
	if f.lease.Epoch < newest {
		p.w.broken(f.lease.Session, "%s wrote %d entries under epoch %d after epoch %d was granted", p.name, len(f.batch.Entries), f.lease.Epoch, newest)
	}
	if f.batch.Release {
		p.w.releases(f.lease)
	}
	if p.w.tells(f.batch.Sends) {
		p.w.wakes(f.batch.Sends)
		p.doomed(6) // nobody but the parent knows
	}
	return nil
}

// kill ends the process: its lock is gone, and so is what had not left it.
func (p *port) kill() {
	p.mu.Lock()
	if p.dead {
		p.mu.Unlock()
		return
	}
	p.dead, p.died = true, time.Now()
	close(p.gone)
	for _, ln := range p.lanes {
		leave := p.rng.IntN(len(ln.queue) + 1)
		for i, f := range ln.queue {
			f.cut, f.late = i >= leave, time.Duration(p.rng.Int64N(int64(4*time.Second)))
		}
	}
	release := p.release
	p.mu.Unlock()
	if release != nil {
		if err := release(); err != nil {
			p.w.broken(stint.ID{}, "the lock of %s: %v", p.name, err)
		}
	}
}

// doomed kills the process in n of 100 cases, where it stands: what it has just done was
// done, and it never hears of that. It reports whether it is dead.
func (p *port) doomed(n int) bool {
	if !p.frail || !p.chance(n) {
		return p.isDead()
	}
	p.w.mu.Lock()
	die := !p.w.calm && !p.w.ended
	if die {
		p.w.deaths <- p
	}
	p.w.mu.Unlock()
	if die {
		p.kill()
	}
	return p.isDead()
}

// freeze stops the process, as SIGSTOP does; thaw lets it go on.
func (p *port) freeze() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.thaw == nil {
		p.thaw = make(chan struct{})
		p.sick = append(p.sick, span{from: time.Now()})
	}
}

func (p *port) unfreeze() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.thaw != nil {
		close(p.thaw)
		p.thaw = nil
		p.wellLocked()
	}
}

// fall sets one of the flags of what is wrong with the process, and notes that it
// may lose leases while that lasts.
func (p *port) fall(flag *bool, v bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case v && !*flag:
		p.sick = append(p.sick, span{from: time.Now()})
	case !v && *flag:
		p.wellLocked()
	}
	*flag = v
}

func (p *port) wellLocked() {
	for i := range p.sick {
		if p.sick[i].to.IsZero() {
			p.sick[i].to = time.Now()
			return
		}
	}
}

func (p *port) set(flag *bool, v bool) {
	p.mu.Lock()
	*flag = v
	p.mu.Unlock()
}

func (p *port) setLag(d time.Duration) {
	p.mu.Lock()
	p.lag = d
	p.mu.Unlock()
}

// heal ends whatever is wrong, but for death.
func (p *port) heal() {
	p.unfreeze()
	p.fall(&p.deaf, false)
	p.set(&p.broken, false)
	p.fall(&p.blind, false)
	p.fall(&p.mute, false)
	p.setLag(0)
}

// wasSick reports whether the process may have lost a lease that it had since t.
func (p *port) wasSick(t time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.sick {
		if s.to.IsZero() || s.to.After(t) {
			return true
		}
	}
	return false
}

// diedBy reports whether the process was dead at t.
func (p *port) diedBy(t time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dead && !p.died.After(t)
}

// well reports whether nothing is wrong with the process.
func (p *port) well() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.dead && p.thaw == nil && !p.deaf && !p.mute && !p.broken && !p.blind && p.lag == 0
}
