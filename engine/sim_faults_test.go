package engine_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
)

// node is a runner: a process with an engine that serves.
type node struct {
	*port
	engine *engine.Engine
	cancel context.CancelFunc
	done   chan error
}

// cluster is the runners, as the scheduler of faults sees them.
type cluster struct {
	w     *world
	rng   *rand.Rand
	nodes []*node // those that live
	count int     // that were ever started
}

// runners is how many runners there are when nothing is wrong.
const runners = 3

// start starts a runner.
func (c *cluster) start() {
	c.count++
	name := fmt.Sprintf("r%d", c.count)
	c.w.log("%s starts", name)
	p := c.w.newPort(name)
	p.frail = true
	n := &node{port: p, done: make(chan error, 1)}
	var err error
	n.engine, err = engine.New(c.w.ctx, p, c.w.options(p))
	if err != nil {
		c.w.broken(stint.ID{}, "runner %s does not start: %v", name, err)
		return
	}
	var ctx context.Context
	ctx, n.cancel = context.WithCancel(c.w.ctx)
	c.w.wg.Go(func() {
		err := n.engine.Serve(ctx)
		if cerr := n.engine.Close(); err == nil {
			err = cerr
		}
		n.done <- err
	})
	c.nodes = append(c.nodes, n)
}

func (w *world) options(p *port) engine.Options {
	return engine.Options{
		Agents: w.simAgents(p), Holder: p.name, TTL: simTTL, Poll: 2 * time.Second, Log: slog.New(slog.NewTextHandler(&diarist{p}, nil)),
		Observe: func(s stint.Session) {
			if !p.isDead() {
				w.durable(s.ID, s.Head, s.HeadHash)
			}
		},
	}
}

// diarist writes what an engine logs into the diary of faults.
type diarist struct{ p *port }

func (d *diarist) Write(b []byte) (int, error) {
	if _, line, ok := strings.Cut(string(b), " level="); ok && !d.p.isDead() {
		d.p.w.log("%s logs %s", d.p.name, strings.TrimSpace(line))
	}
	return len(b), nil
}

const simTTL = 30 * time.Second

// drop takes a runner off the list.
func (c *cluster) drop(n *node) {
	for i := range c.nodes {
		if c.nodes[i] == n {
			c.nodes = append(c.nodes[:i], c.nodes[i+1:]...)
			return
		}
	}
}

// drain stops a runner as SIGTERM does. It must end within its drain time.
func (c *cluster) drain(n *node) {
	c.w.log("%s drains", n.name)
	c.drop(n)
	n.cancel()
	c.w.wg.Go(func() {
		select {
		case err := <-n.done:
			if err != nil && !n.isDead() {
				c.w.broken(stint.ID{}, "%s did not end well: %v", n.name, err)
			}
		case <-time.After(5 * time.Minute):
			c.w.broken(stint.ID{}, "%s drains for more than five minutes", n.name)
			n.kill()
			<-n.done
		}
	})
}

// kill ends a runner as kill -9 does. If nothing else happens meanwhile, what it
// drove is taken over at once: nobody waits for its leases to expire.
func (c *cluster) kill(n *node) {
	c.drop(n)
	held := c.w.heldBy(n.port)
	c.w.log("%s dies", n.name)
	n.kill()
	n.cancel()
	c.w.wg.Go(func() { <-n.done })
	c.w.mu.Lock()
	stirs, full := c.w.stirs, c.w.full
	c.w.mu.Unlock()
	if full || !slices.ContainsFunc(c.nodes, func(n *node) bool { return n.well() }) {
		return
	}
	c.w.wg.Go(func() {
		if !c.w.pass(6 * time.Second) {
			return
		}
		c.w.mu.Lock()
		peace := c.w.stirs == stirs
		c.w.mu.Unlock()
		if peace {
			c.w.takenOver(held, n.name)
		}
	})
}

// heldBy returns the leases of p that are neither over nor given back.
func (w *world) heldBy(p *port) map[stint.ID]int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	held := map[stint.ID]int64{}
	for id, all := range w.grants {
		if g := all[len(all)-1]; g.port == p && !g.released {
			held[id] = g.epoch
		}
	}
	return held
}

// takenOver checks that none of the sessions is still as its dead holder left it.
func (w *world) takenOver(held map[stint.ID]int64, who string) {
	for id, epoch := range held {
		row, err := w.store.Session(w.ctx, id)
		if err == nil && row.Session.Status == stint.Pending && row.Session.Agent.Name != "capped" && row.Lease.Epoch == epoch {
			w.broken(id, "six seconds after %s died nobody has taken over what it held", who)
		}
	}
}

// A fault is something that goes wrong for a while.
type fault struct {
	name   string
	weight int
	// strikes begins it and returns how it ends; nil: it has no end.
	strikes func(c *cluster) (heal func())
}

// faults is all that goes wrong.
func faults() []fault {
	sick := func(begin, end func(n *node)) func(c *cluster) func() {
		return func(c *cluster) func() {
			n := c.pick()
			if n == nil {
				return nil
			}
			c.w.log("to %s", n.name)
			begin(n)
			return func() { end(n) }
		}
	}
	return []fault{
		{"a runner is killed, and another started in its place some time later", 6, func(c *cluster) func() {
			if n := c.pick(); n != nil {
				c.kill(n)
			}
			return nil
		}},
		{"a runner is stopped (SIGSTOP), in half of the cases for longer than its leases last", 3,
			sick(func(n *node) { n.freeze() }, func(n *node) { n.unfreeze() })},
		{"a runner's renewals and claims do not reach the store", 3,
			sick(func(n *node) { n.fall(&n.deaf, true) }, func(n *node) { n.fall(&n.deaf, false) })},
		{"a runner's renewals are refused", 2,
			sick(func(n *node) { n.fall(&n.mute, true) }, func(n *node) { n.fall(&n.mute, false) })},
		{"a runner's appends are slow", 3,
			sick(func(n *node) { n.setLag(n.upTo(4 * time.Second)) }, func(n *node) { n.setLag(0) })},
		{"a runner's appends are refused", 2,
			sick(func(n *node) { n.set(&n.broken, true) }, func(n *node) { n.set(&n.broken, false) })},
		{"a runner cannot read", 1,
			sick(func(n *node) { n.fall(&n.blind, true) }, func(n *node) { n.fall(&n.blind, false) })},
		{"the disk is full for all", 2, func(c *cluster) func() {
			c.w.setFull(true)
			return func() { c.w.setFull(false) }
		}},
		{"a runner is drained, and another started in its place", 3, func(c *cluster) func() {
			if n := c.pick(); n != nil {
				c.drain(n)
			}
			return nil
		}},
		{"one runner more than usual", 1, func(c *cluster) func() { c.start(); return nil }},
	}
}

// pick returns a runner at random, nil if none lives.
func (c *cluster) pick() *node {
	if len(c.nodes) == 0 {
		return nil
	}
	return c.nodes[c.rng.IntN(len(c.nodes))]
}

// wreak lets faults strike until a time, and then heals everything. Runners that
// are missing are started some time after they went.
func (c *cluster) wreak(until time.Time) {
	all := faults()
	sum := 0
	for _, f := range all {
		sum += f.weight
	}
	for time.Now().Before(until) {
		if !c.lull(time.Duration(c.rng.Int64N(int64(30 * time.Second)))) {
			break
		}
		for len(c.nodes) < runners && c.rng.IntN(2) == 0 {
			c.start()
		}
		at := c.rng.IntN(sum)
		for _, f := range all {
			if at -= f.weight; at < 0 {
				c.strike(f)
				break
			}
		}
	}
	c.w.mu.Lock()
	c.w.calm = true // nobody dies from here on
	c.w.mu.Unlock()
	for len(c.w.deaths) > 0 {
		c.bury(<-c.w.deaths)
	}
	for _, n := range c.nodes {
		n.heal()
	}
	c.w.setFull(false)
	for len(c.nodes) < runners {
		c.start()
	}
	for len(c.nodes) > runners {
		c.drain(c.nodes[0])
	}
}

// lull is the time until the next fault. Processes that die meanwhile are noticed.
func (c *cluster) lull(d time.Duration) bool {
	for over := time.After(d); ; {
		select {
		case <-c.w.over:
			return false
		case p := <-c.w.deaths:
			c.bury(p)
		case <-over:
			return true
		}
	}
}

// bury does for a runner that is dead what kill does besides.
func (c *cluster) bury(p *port) {
	for _, n := range c.nodes {
		if n.port == p {
			c.w.stir()
			c.kill(n)
			return
		}
	}
}

// strike lets one fault happen, and be over later, while others may strike.
func (c *cluster) strike(f fault) {
	c.w.stir()
	c.w.log("%s", f.name)
	heal := f.strikes(c)
	if heal == nil {
		return
	}
	last := time.Duration(c.rng.Int64N(int64(2 * simTTL)))
	c.w.wg.Go(func() {
		c.w.pass(last)
		heal()
		c.w.stir()
		c.w.log("over after %v: %s", last, f.name)
	})
}

func (w *world) setFull(v bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case v && !w.full:
		w.outages = append(w.outages, span{from: time.Now()})
	case !v && w.full:
		w.outages[len(w.outages)-1].to = time.Now()
	}
	w.full = v
}

// wasFull reports whether the disk was full at some time after t.
func (w *world) wasFull(t time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.outages {
		if s.to.IsZero() || s.to.After(t) {
			return true
		}
	}
	return false
}
