package bench

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/store/sqlite"
)

// site is where a child works, and how much of it at once.
type site struct {
	Path        string `json:"path"`
	Concurrency int    `json:"concurrency"`
	Loops       int    `json:"loops"` // before a session blocks
}

// command is what a child is asked to do. Its answers are replies.
type command struct {
	Do string        `json:"do"`
	N  int           `json:"n,omitempty"`
	D  time.Duration `json:"d,omitempty"`
}

// What a child can be asked.
const (
	doBlock   = "block"   // start N sessions; answer when all are inside the step that blocks
	doInside  = "inside"  // answer when N sessions are inside that step
	doWait    = "wait"    // start N sessions; answer when all wait for a message
	doFirst   = "first"   // run a session of one loop; answer when it has ended
	doMeasure = "measure" // answer after D with what was used meanwhile
	doFinish  = "finish"  // let the blocked sessions go on; answer when N have ended
)

// reply answers a command, or says how far it is.
type reply struct {
	Of     string  `json:"of"`          // the command; "ready" for the one that nobody asked for
	N      int     `json:"n,omitempty"` // sessions so far
	More   bool    `json:"more,omitempty"`
	Again  int64   `json:"again,omitempty"` // steps that the journal had answered before, and ran
	RSSMB  float64 `json:"rss_mb,omitempty"`
	CPUPct float64 `json:"cpu_pct,omitempty"`
	CPUMS  float64 `json:"cpu_ms,omitempty"` // of the process, since it began
}

// stalled is how long a child waits for the next session to get where it shall be,
// and talk how often it tells how far it is.
const (
	stalled = time.Minute
	talk    = time.Second
)

// child is a process that serves a store as stint does, with agents of its own.
type child struct {
	site    site
	e       *engine.Engine
	agents  map[string]engine.Agent
	out     *json.Encoder
	inside  tally
	waiting tally
	ended   tally
	release chan struct{} // closed: the blocked steps end
	free    sync.Once
	again   atomic.Int64
	failed  context.CancelCauseFunc
	base    *play
}

// Child is the other side of the measurements that need a process of their own: it
// serves the store that arg names, reads commands from in and answers on out, until
// in ends. Only processes that [Self] starts call it, with the argument they got.
func Child(ctx context.Context, arg string, in io.Reader, out io.Writer) (err error) {
	c := &child{out: json.NewEncoder(out), release: make(chan struct{}), base: newPlay(Workload{Effect: stint.Idempotent})}
	if err := json.Unmarshal([]byte(arg), &c.site); err != nil {
		return &stint.Error{Code: stint.Invalid, Op: "bench", Err: err, Hint: "stint bench calls it; there is nothing to call by hand"}
	}
	ctx, c.failed = context.WithCancelCause(ctx)
	defer c.failed(nil)
	st, err := sqlite.Open(ctx, sqlite.Options{Path: c.site.Path})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	c.agents = map[string]engine.Agent{}
	opt := engine.Options{Concurrency: c.site.Concurrency, Observe: c.observe}
	for name, loop := range map[string]stint.AgentFunc{"bench-block": c.blockLoop, "bench-wait": c.waitLoop, "bench-first": c.firstLoop} {
		c.agents[name] = engine.Agent{Name: name, Loop: loop}
		opt.Agents = append(opt.Agents, c.agents[name])
	}
	if c.e, err = engine.New(ctx, st, opt); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.e.Close()) }()
	if err := c.out.Encode(reply{Of: "ready"}); err != nil {
		return err
	}
	serving, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	wg.Go(func() { c.failed(c.e.Serve(serving)) })
	return c.obey(ctx, in)
}

// obey does what in says until it ends.
func (c *child) obey(ctx context.Context, in io.Reader) error {
	for dec := json.NewDecoder(in); ; {
		var q command
		if err := dec.Decode(&q); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return &stint.Error{Code: stint.Invalid, Op: "bench", Err: err}
		}
		r, err := c.do(ctx, q)
		if err != nil {
			return err
		}
		r.Of, r.Again, r.CPUMS = q.Do, c.again.Load(), ms(cpuTime())
		if err := c.out.Encode(r); err != nil {
			return err
		}
	}
}

func (c *child) do(ctx context.Context, q command) (reply, error) {
	switch q.Do {
	case doBlock:
		return c.begin(ctx, q, "bench-block", &c.inside)
	case doWait:
		return c.begin(ctx, q, "bench-wait", &c.waiting)
	case doInside:
		return c.reach(ctx, q, &c.inside)
	case doFirst:
		_, err := runToEnd(ctx, c.e, c.agents["bench-first"])
		return reply{N: 1}, err
	case doFinish:
		c.free.Do(func() { close(c.release) })
		return c.reach(ctx, q, &c.ended)
	case doMeasure:
		begun, cpu := time.Now(), cpuTime()
		wait(ctx, q.D)
		took := time.Since(begun)
		return reply{RSSMB: rss(), CPUPct: 100 * (cpuTime() - cpu).Seconds() / took.Seconds()}, ctx.Err()
	}
	return reply{}, stint.Invalid.Errorf("bench", "a child cannot %q", q.Do)
}

// begin starts sessions for whoever serves, and waits until they are where they
// shall be.
func (c *child) begin(ctx context.Context, q command, agent string, t *tally) (reply, error) {
	const clients = 64
	var next atomic.Int64
	for range clients {
		go func() {
			for next.Add(1) <= int64(q.N) && ctx.Err() == nil {
				if _, err := c.e.Start(ctx, request(c.agents[agent])); err != nil {
					c.failed(err)
				}
			}
		}()
	}
	return c.reach(ctx, q, t)
}

// reach waits until a tally is at q.N, and tells how far it is meanwhile.
func (c *child) reach(ctx context.Context, q command, t *tally) (reply, error) {
	done := t.reach(q.N)
	tick := time.NewTicker(talk)
	defer tick.Stop()
	for last, at := 0, time.Now(); ; {
		select {
		case <-done:
			return reply{N: t.count()}, nil
		case <-ctx.Done():
			return reply{}, context.Cause(ctx)
		case <-tick.C:
		}
		n := t.count()
		if n != last {
			last, at = n, time.Now()
		}
		if time.Since(at) > stalled {
			return reply{}, stint.Unavailable.Errorf("bench", "%d of %d sessions, and no further one within %v", n, q.N, stalled)
		}
		if err := c.out.Encode(reply{Of: q.Do, N: n, More: true}); err != nil {
			return reply{}, err
		}
	}
}

// observe sees what became of sessions.
func (c *child) observe(s stint.Session) {
	switch {
	case s.Status == stint.Failed || s.Status == stint.Waiting && s.Wait.For != stint.ForMessage:
		c.failed(stint.Internal.Errorf("bench", "session %s is %s: %s", s.ID, s.Status, s.Reason))
	case s.Status == stint.Waiting:
		c.waiting.add()
	case s.Status == stint.Completed && s.Agent.Name == "bench-block":
		c.ended.add()
	}
}

// script is the workload with sessions of some loops.
func (c *child) script(loops int) *play {
	s := *c.base
	s.Loops = loops
	return &s
}

func none(int) {}

// blockLoop is some loops of the workload, and then one whose third step blocks. A
// process that takes such a session over gets the first two from the journal.
func (c *child) blockLoop(ctx context.Context, l stint.Loop) (stint.Next, error) {
	w := c.script(c.site.Loops + 1)
	s := l.Session()
	n := s.Checkpoint.Loop + 1
	if n <= c.site.Loops {
		return w.next(l.State(), n), w.steps(ctx, l, n, none)
	}
	_, err := l.Do(ctx, modelStep(), func(context.Context, string) (stint.Result, error) {
		if s.At.Attempt > 1 {
			c.again.Add(1)
		}
		return stint.Result{Data: w.modelResult(n)}, nil
	})
	if err != nil {
		return stint.Next{}, err
	}
	tool := stint.Step{Name: "tool", Kind: stint.Tool, Effect: stint.Idempotent}
	if err := step(ctx, l, 2, tool, w.toolResult(), none); err != nil {
		return stint.Next{}, err
	}
	tool.Timeout = 24 * time.Hour
	_, err = l.Do(ctx, tool, func(ctx context.Context, _ string) (stint.Result, error) {
		c.inside.add()
		select {
		case <-c.release:
			return stint.Result{Data: w.toolResult()}, nil
		case <-ctx.Done():
			return stint.Result{}, context.Cause(ctx)
		}
	})
	return w.next(l.State(), n), err
}

// waitLoop is a loop of the workload that ends with a question.
func (c *child) waitLoop(ctx context.Context, l stint.Loop) (stint.Next, error) {
	w := c.script(2)
	next := w.next(l.State(), 1)
	next.Wait = &stint.Wait{For: stint.ForMessage, What: "which of the two shall it be?"}
	return next, w.steps(ctx, l, 1, none)
}

// firstLoop is a session of one loop.
func (c *child) firstLoop(ctx context.Context, l stint.Loop) (stint.Next, error) {
	w := c.script(1)
	return w.next(l.State(), 1), w.steps(ctx, l, 1, none)
}

// tally is a count that can be waited for.
type tally struct {
	mu   sync.Mutex
	n    int
	want int
	done chan struct{} // nil: nobody waits
}

func (t *tally) add() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.n++
	if t.done != nil && t.n >= t.want {
		close(t.done)
		t.done = nil
	}
}

func (t *tally) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.n
}

// reach returns a channel that is closed once the count is n or more.
func (t *tally) reach(n int) <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	done := make(chan struct{})
	if t.n >= n {
		close(done)
	} else {
		t.want, t.done = n, done
	}
	return done
}
