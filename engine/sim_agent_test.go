package engine_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/journal"
)

// The agents of the simulation. What a session does in which loop follows from the
// seed and its number, so that every attempt at a loop does the same, as SEMANTICS
// demands of agents; what the outside world answers does not. All that an agent
// has learned goes into a digest, the digest into the input of its next step and
// into its state: a result that is replayed wrongly, an inbox that differs between
// attempts, or a state that is not the one returned, shows as another input.

// script is what one session does.
type script struct {
	w     *world
	p     *port // the process that this is running in
	label string
	kids  []stint.ID // that this attempt at a loop began, or found begun
}

// plan is one step or group of a loop.
type plan struct {
	members []stepPlan
	child   *stint.Child // instead of them: the session that it begins
	group   bool
	log     bool // something is logged meanwhile, from another goroutine
}

// stepPlan is one step.
type stepPlan struct {
	name     string
	kind     stint.StepKind
	effect   stint.Effect
	takes    time.Duration
	fails    int  // so many tries end in an error
	after    bool // they do so after the effect
	panics   bool // by a panic
	definite bool // ends in a definite error, a read only at its first try
	big      bool // the result lies outside the journal
	stubborn bool // it does not look at its context
	asks     bool // a person is asked first
}

// loopPlan is one loop.
type loopPlan struct {
	plans  []plan
	fails  int // so many tries fail at the end of the loop
	panics bool
	after  time.Duration // Retry
	final  bool          // Fail
	sulks  bool          // answers a park with words of its own
	same   bool          // returns no state
	pad    int           // bytes that the state grows by
	waits  stint.WaitFor // message, time, child, or nothing
	one    bool          // for the newest child, not for any
	until  time.Duration
	ends   stint.Status
}

// memory is the state of the sessions.
type memory struct {
	Loops int      `json:"loops"`
	Seen  string   `json:"seen"`
	Log   []string `json:"log"`
}

// stepInput is the input of every step: digests of all that the agent has learned,
// and of the answers of models among it.
type stepInput struct {
	Seen    string `json:"seen"`
	Answers string `json:"answers,omitempty"`
}

// simAgents returns the agents as process p has them.
func (w *world) simAgents(p *port) []engine.Agent {
	loop := stint.AgentFunc(func(ctx context.Context, l stint.Loop) (stint.Next, error) {
		return (&script{w: w, p: p, label: l.Session().Labels["n"]}).loop(ctx, l)
	})
	retry := engine.Retry{Jitter: 1e-9} // the seed alone decides
	doubt := func(string) engine.Doubt {
		return engine.Doubt{Verify: func(_ context.Context, _ stint.Step, key string) (journal.Verdict, json.RawMessage, error) {
			if p.isDead() {
				return "", nil, errGone
			}
			w.mu.Lock()
			defer w.mu.Unlock()
			if e := w.effects[key]; e != nil {
				return journal.Happened, e.result, nil
			}
			return journal.NotHappened, nil, nil
		}}
	}
	return []engine.Agent{
		{Name: "plain", Loop: loop, Retry: retry, Grace: 20 * time.Second},
		{Name: "capped", Loop: loop, Retry: retry, Concurrency: simCap},
		{Name: "careful", Loop: loop, Retry: retry, Doubt: doubt},
		{Name: "careless", Loop: loop, Retry: retry, Doubt: func(string) engine.Doubt { return engine.Doubt{Unknown: true} }},
	}
}

// simCap is how many sessions of the agent "capped" may run at once.
const simCap = 1

// loop is one attempt at a loop.
func (s *script) loop(ctx context.Context, l stint.Loop) (stint.Next, error) {
	at := l.Session().At
	v := visit{session: l.Session().ID, line: at.Line, loop: at.Loop, attempt: at.Attempt}
	if e, ok := l.(interface{ Epoch() int64 }); ok {
		v.epoch = e.Epoch()
	}
	if !s.p.isDead() {
		s.w.enters(v, l.State())
	}
	var m memory
	if l.State() != nil {
		if err := json.Unmarshal(l.State(), &m); err != nil {
			return stint.Next{}, err
		}
	}
	know := stepInput{Seen: m.Seen}
	for _, msg := range l.Inbox() {
		know.Seen = digest(know.Seen, msg.ID, string(msg.Body))
	}
	lp := s.plan(at.Loop)
	for i, p := range lp.plans {
		var err error
		if know, err = s.do(ctx, l, p, i, know); err != nil {
			if lp.sulks && errors.Is(err, stint.ErrParked) {
				return stint.Next{State: json.RawMessage(`{"sulking":true}`)}, nil // must not count
			}
			return stint.Next{}, fmt.Errorf("loop %d: %w", at.Loop, err)
		}
	}
	if err := s.fail(v, lp); err != nil {
		return stint.Next{}, err
	}
	return s.next(v, lp, m, know.Seen)
}

// fail is a loop that comes to grief after its steps.
func (s *script) fail(v visit, lp loopPlan) error {
	if s.w.isCalm() {
		return nil
	}
	if s.w.tried(place{session: v.session, line: v.line, loop: v.loop}) > lp.fails {
		return nil
	}
	err := error(errBoom)
	switch {
	case lp.panics:
		panic("the agent lost its head")
	case lp.final:
		err = stint.Fail(err)
	case lp.after > 0:
		err = stint.Retry(lp.after, err)
	}
	return err
}

// next is how a loop ends well.
func (s *script) next(v visit, lp loopPlan, m memory, seen string) (stint.Next, error) {
	m.Loops++
	m.Seen = seen
	m.Log = append(m.Log, fmt.Sprintf("loop %d of line %d: %s", v.loop, v.line, strings.Repeat("·", lp.pad/2)))
	state, err := stint.Marshal(m)
	if err != nil {
		return stint.Next{}, err
	}
	if lp.same {
		state = nil
	}
	if !s.p.isDead() {
		s.w.leaves(v, state)
	}
	next := stint.Next{State: state, Headline: "seen " + seen}
	switch {
	case lp.ends != "":
		next.End = &stint.End{Outcome: lp.ends, Reason: "the script is over", Result: state}
	case lp.waits == stint.ForMessage:
		next.Wait = &stint.Wait{For: stint.ForMessage, What: "say something"}
	case lp.waits == stint.ForChild:
		next.Wait = &stint.Wait{For: stint.ForChild}
		if n := len(s.kids); lp.one && n > 0 {
			next.Wait.What = s.kids[n-1].String()
		}
	case lp.waits == stint.ForTime:
		d := lp.until
		if s.w.isCalm() {
			d = time.Hour
		}
		next.Wait = &stint.Wait{Until: time.Now().Add(d)}
	}
	return next, nil
}

// do is one step or group. It returns what is known with the results.
func (s *script) do(ctx context.Context, l stint.Loop, p plan, n int, know stepInput) (stepInput, error) {
	if p.log {
		logged := make(chan struct{})
		go func() {
			defer close(logged)
			_ = s.p.work(ctx, s.p.upTo(5*time.Millisecond))
			l.(stint.Reporter).Log("stdout", []byte(fmt.Sprintf("in step %d\n", n+1)))
			l.(stint.Reporter).Progress(fmt.Sprintf("step %d", n+1))
		}()
		defer func() { <-logged }()
	}
	if p.child != nil {
		return s.spawn(ctx, l, *p.child, n, know)
	}
	input, err := stint.Marshal(know)
	if err != nil {
		return know, err
	}
	steps := make([]stint.Step, len(p.members))
	for i, sp := range p.members {
		steps[i] = stint.Step{Name: sp.name, Kind: sp.kind, Effect: sp.effect, Input: input, Timeout: 30 * time.Second}
		if sp.kind == stint.Model {
			steps[i].Reserve = simReserve
		}
		if sp.asks {
			steps[i].Ask = "may it " + sp.name + "?"
		}
	}
	at := place{session: l.Session().ID, line: l.Session().At.Line, loop: l.Session().At.Loop, step: n + 1}
	if !p.group {
		res, err := l.Do(ctx, steps[0], func(ctx context.Context, key string) (stint.Result, error) {
			return s.perform(ctx, at, p.members[0], steps[0], key)
		})
		return know.learn(steps, []stint.Result{res}, []error{err})
	}
	res, err := l.DoAll(ctx, steps, func(ctx context.Context, i int, key string) (stint.Result, error) {
		at := at
		at.sub = i + 1
		return s.perform(ctx, at, p.members[i], steps[i], key)
	})
	errs := make([]error, len(steps))
	var members interface{ Members() []error }
	switch {
	case errors.As(err, &members):
		errs = members.Members()
	case err != nil:
		return know, err
	}
	return know.learn(steps, res, errs)
}

// learn adds results to what is known. Errors that are results are lived with.
func (k stepInput) learn(steps []stint.Step, res []stint.Result, errs []error) (stepInput, error) {
	for i, err := range errs {
		switch {
		case err == nil:
			k.Seen = digest(k.Seen, string(res[i].Data))
			if steps[i].Kind == stint.Model {
				k.Answers = digest(k.Answers, string(res[i].Data))
			}
		case isDefinite(err):
			k.Seen = digest(k.Seen, err.Error(), string(stint.CodeOf(err)))
		default:
			return k, err
		}
	}
	return k, nil
}

func isDefinite(err error) bool {
	var s interface {
		Steer() (time.Duration, bool, bool)
	}
	if !errors.As(err, &s) {
		return false
	}
	_, _, definite := s.Steer()
	return definite
}

// perform is a step's effect.
func (s *script) perform(ctx context.Context, at place, sp stepPlan, st stint.Step, key string) (stint.Result, error) {
	takes, fails := sp.takes, sp.fails
	if s.w.isCalm() {
		takes, fails = min(takes, 20*time.Millisecond), 0
	}
	if sp.stubborn {
		ctx = context.WithoutCancel(ctx)
	}
	if err := s.p.work(ctx, takes); err != nil {
		return stint.Result{}, err
	}
	try := s.w.tried(at)
	if try <= fails && !sp.after {
		return stint.Result{}, s.grief(sp)
	}
	data := s.w.act(at, st, key)
	switch {
	case sp.definite && (st.Effect != stint.Read || try == 1):
		return stint.Result{}, stint.Definite(refusals(sp))
	case try <= fails:
		return stint.Result{}, s.grief(sp)
	case sp.big:
		data = json.RawMessage(fmt.Sprintf(`{"of":%s,"pad":%q}`, data, strings.Repeat("x", 3<<10)))
		if st.Effect != stint.Read {
			s.w.mu.Lock()
			s.w.effects[key].result = data
			s.w.mu.Unlock()
		}
	}
	if st.Kind != stint.Model {
		return stint.Result{Data: data}, nil
	}
	return stint.Result{Data: data, Usage: simUsage}, nil
}

// refusals are definite errors as tools give them: of many lines, longer than lists
// show, longer than is kept, not UTF-8, and with a code.
func refusals(sp stepPlan) error {
	n := int(sp.takes % 5)
	err := errors.New("the answer was no\nbecause caf\xe9 said " + strings.Repeat("no, ", n*n*n*1000))
	switch n {
	case 1:
		err = stint.Denied.Errorf(sp.name, "%w", err)
	case 2:
		err = fmt.Errorf("\n%w", &stint.Error{Code: stint.NotFound, Op: sp.name, Err: err, Hint: "ask again"})
	}
	return err
}

func (s *script) grief(sp stepPlan) error {
	switch {
	case sp.panics:
		panic("the step lost its head")
	case sp.takes%2 == 0:
		return stint.Retry(2*time.Second, errBoom)
	}
	return errBoom
}

func digest(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:8])
}

// plan makes up what loop n of the session does.
func (s *script) plan(n int) loopPlan {
	r := s.w.dice("script", s.label, "loop", n)
	lp := loopPlan{sulks: r.IntN(20) == 0, same: r.IntN(10) == 0, pad: r.IntN(600)}
	if r.IntN(15) == 0 {
		lp.pad = 8 << 10
	}
	for range r.IntN(4) {
		p := plan{group: r.IntN(4) == 0, log: r.IntN(6) == 0}
		size := 1
		if p.group {
			size = 1 + r.IntN(4)
		}
		for range size {
			p.members = append(p.members, planStep(r))
		}
		lp.plans = append(lp.plans, p)
		if p.members[0].kind == stint.Model && r.IntN(2) == 0 { // and the tools that it asks for
			tools := plan{group: true}
			for range 1 + r.IntN(3) {
				sp := planStep(r)
				sp.kind = stint.Tool
				tools.members = append(tools.members, sp)
			}
			lp.plans = append(lp.plans, tools)
		}
	}
	if r.IntN(6) == 0 {
		lp.fails, lp.panics, lp.final = 1+r.IntN(2), r.IntN(4) == 0, r.IntN(20) == 0
		if r.IntN(2) == 0 {
			lp.after = time.Duration(r.IntN(20_000)) * time.Millisecond
		}
	}
	switch {
	case n >= s.last():
		lp.ends = []stint.Status{stint.Completed, stint.Completed, stint.Completed, stint.Failed, stint.Stopped}[r.IntN(5)]
	case r.IntN(4) == 0:
		lp.waits = stint.ForMessage
	case r.IntN(4) == 0:
		lp.waits, lp.until = stint.ForTime, time.Duration(r.IntN(90_000))*time.Millisecond
	}
	s.planChildren(n, &lp)
	return lp
}

func planStep(r *rand.Rand) stepPlan {
	sp := stepPlan{
		name:     []string{"list", "read", "write", "pay", "think"}[r.IntN(5)],
		kind:     []stint.StepKind{stint.Model, stint.Tool, stint.Custom}[r.IntN(3)],
		effect:   []stint.Effect{stint.Read, stint.Read, stint.Idempotent, stint.Once}[r.IntN(4)],
		takes:    time.Duration(1 + r.IntN(1_500_000_000)),
		definite: r.IntN(12) == 0, big: r.IntN(12) == 0,
	}
	if sp.kind == stint.Model {
		sp.effect = stint.Read
	}
	sp.stubborn = r.IntN(15) == 0
	switch {
	case r.IntN(20) == 0:
		sp.takes = time.Duration(r.IntN(40)) * time.Second // some run into their time-out
	case r.IntN(3) == 0:
		sp.takes = time.Duration(r.IntN(3)) * time.Millisecond
	}
	if r.IntN(10) == 0 {
		sp.fails, sp.after, sp.panics = 1+r.IntN(2), r.IntN(2) == 0, r.IntN(5) == 0
	}
	sp.asks = sp.kind != stint.Model && r.IntN(25) == 0
	return sp
}
