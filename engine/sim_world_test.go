package engine_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/journal"
)

// The simulation is a cluster of runners on one store, in virtual time, with people
// who send messages, an outside world that the agents act on, and a scheduler of
// faults. What must hold all the while is in sim_check_test.go, what goes wrong in
// sim_faults_test.go, what the agents do in sim_agent_test.go. A seed fixes the
// agents' scripts and the plan of faults; what happens within one instant is left
// to Go's scheduler, so a seed that fails once in a while is run with -count.

// world is everything outside the runners, and remembers what everybody was told.
type world struct {
	test   string // its name
	seed   uint64
	store  stint.Store                 // the one store, in a test of the tests a broken one
	direct bool                        // it answers before Append returns
	open   func() (stint.Store, error) // nil: processes share the store
	ctx    context.Context
	begun  time.Time
	wg     sync.WaitGroup // everything that the simulation itself started

	mu     sync.Mutex
	bad    *violation
	over   chan struct{} // closed with the first violation, or at the end
	ended  bool
	ports  []*port
	deaths chan *port             // processes that died in the middle of something
	looked map[stint.ID]stint.Seq // how far each journal was when it was checked
	kin
	weather
	ledger
	told
	happened map[string]int // counts what did
}

// weather is what is wrong with all of it.
type weather struct {
	calm    bool     // no faults any more, and agents are quick
	full    bool     // the disk is full: nothing can be written
	outages []span   // when it was
	stirs   int      // faults that began or ended
	diary   []string // of faults
}

// ledger is the outside world: each effect that took place, under its key.
type ledger struct {
	effects map[string]*effect
	keys    map[place]string
	nonce   int
	tries   map[place]int // how often a step was begun, for those that fail at first
}

// told is what somebody may rely on.
type told struct {
	created map[string]stint.ID                            // by the key that deduplicates
	sent    map[stint.ID]map[string]stint.Message          // messages that Send took
	decided map[stint.ID]map[stint.Seq]stint.ApprovalState // decisions that Send took, by the entry that asks
	acked   map[stint.ID]map[stint.Seq]stint.Hash          // entries that a runner or an observer was told are durable
	grants  map[stint.ID][]*grant                          // leases, in order of epoch
	began   map[visit]stint.Hash                           // the state that a loop was given
	gave    map[visit]stint.Hash                           // the state that a loop returned
	kept    map[visit]bool                                 // a loop returned none
	order   []stint.ID                                     // sessions as they were created
	agent   map[stint.ID]string                            // of a session
}

// place is a position without its attempt: what one idempotency key stands for.
type place struct {
	session               stint.ID
	line, loop, step, sub int
}

func (p place) String() string {
	return fmt.Sprintf("%s line %d %d.%d.%d", p.session, p.line, p.loop, p.step, p.sub)
}

// visit is one attempt at a loop by one holder.
type visit struct {
	session             stint.ID
	epoch               int64
	line, loop, attempt int
}

// effect is what the outside world saw under one key.
type effect struct {
	at     place
	class  stint.Effect
	input  string
	times  int
	result json.RawMessage
}

// grant is a lease that the store gave.
type grant struct {
	epoch    int64
	port     *port
	claimed  time.Time
	expires  time.Time
	leaving  bool // it is being given back, and may be by now
	released bool
	revived  bool // it was renewed after it had expired
	prior    stint.Prior
}

// violation is the first thing that must not happen.
type violation struct {
	at      time.Duration
	session stint.ID
	what    string
}

func newWorld(seed uint64, store stint.Store) *world {
	return &world{
		seed: seed, store: store, begun: time.Now(), over: make(chan struct{}), looked: map[stint.ID]stint.Seq{},
		deaths: make(chan *port, 1000), kin: newKin(),
		ledger: ledger{effects: map[string]*effect{}, keys: map[place]string{}, tries: map[place]int{}},
		told: told{
			created: map[string]stint.ID{}, sent: map[stint.ID]map[string]stint.Message{}, acked: map[stint.ID]map[stint.Seq]stint.Hash{},
			grants: map[stint.ID][]*grant{}, began: map[visit]stint.Hash{}, gave: map[visit]stint.Hash{}, kept: map[visit]bool{},
			agent: map[stint.ID]string{}, decided: map[stint.ID]map[stint.Seq]stint.ApprovalState{},
		},
	}
}

// broken records a violation, the first of which ends the simulation. Any
// goroutine may call it; w.mu must not be held.
func (w *world) broken(id stint.ID, format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.brokenLocked(id, format, args...)
}

func (w *world) brokenLocked(id stint.ID, format string, args ...any) {
	if w.bad != nil {
		return
	}
	w.bad = &violation{time.Since(w.begun), id, fmt.Sprintf(format, args...)}
	w.finishLocked()
}

// finish ends whatever waits for time to pass.
func (w *world) finish() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.finishLocked()
}

func (w *world) finishLocked() {
	if !w.ended {
		w.ended = true
		close(w.over)
	}
}

// log writes into the diary of faults.
func (w *world) log(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.diary = append(w.diary, fmt.Sprintf("%9.3f ", time.Since(w.begun).Seconds())+fmt.Sprintf(format, args...))
}

// dice returns randomness that depends on the seed and the labels alone.
func (w *world) dice(labels ...any) *rand.Rand {
	h := fnv.New64a()
	fmt.Fprintln(h, labels...)
	return rand.New(rand.NewPCG(w.seed, h.Sum64()))
}

// pass waits for d, and reports whether the simulation goes on.
func (w *world) pass(d time.Duration) bool {
	select {
	case <-w.over:
		return false
	case <-time.After(d):
		return true
	}
}

func (w *world) isCalm() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.calm
}

// stir notes that a fault begins or ends.
func (w *world) stir() {
	w.mu.Lock()
	w.stirs++
	w.mu.Unlock()
}

// act is the effect of a step taking place. It returns what the step gives.
func (w *world) act(at place, s stint.Step, key string) json.RawMessage {
	w.mu.Lock()
	defer w.mu.Unlock()
	e := w.effects[key]
	if e == nil {
		e = &effect{at: at, class: s.Effect, input: string(s.Input)}
		w.effects[key] = e
	}
	e.times++
	switch other, known := w.keys[at]; {
	case e.at != at:
		w.brokenLocked(at.session, "one key stands for %v and for %v", e.at, at)
	case known && other != key:
		w.brokenLocked(at.session, "%v acted under two keys", at)
	case e.input != string(s.Input) && s.Effect != stint.Read,
		s.Kind == stint.Tool && answersIn(e.input) != answersIn(string(s.Input)):
		w.brokenLocked(at.session, "%v %s (%s, %s) acted twice with different inputs:\n%s\n%s", at, s.Name, s.Kind, s.Effect, e.input, s.Input)
	}
	w.keys[at] = key
	if s.Effect != stint.Read { // who honours a key gives the same answer to it
		e.result = json.RawMessage(fmt.Sprintf(`{"did":%q}`, key[:8]))
		return e.result
	}
	w.nonce++ // who only asks may get another answer each time
	return json.RawMessage(fmt.Sprintf(`{"nonce":%d}`, w.nonce))
}

// answersIn is what a step's input says of the answers of models before it: they
// are durable before a tool acts on them, whatever its effect.
func answersIn(input string) string {
	var in stepInput
	if err := json.Unmarshal([]byte(input), &in); err != nil {
		return err.Error()
	}
	return in.Answers
}

// tried counts how often a step was begun.
func (w *world) tried(at place) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tries[at]++
	return w.tries[at]
}

// verdict is what a person who looks at the outside world says of a step.
func (w *world) verdict(at place) (journal.Verdict, json.RawMessage) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if e := w.effects[w.keys[at]]; e != nil && e.times > 0 {
		return journal.Happened, e.result
	}
	return journal.NotHappened, nil
}

// enters notes which state a loop was given.
func (w *world) enters(v visit, state json.RawMessage) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.began[v] = sumOf(state)
}

// leaves notes which state a loop returned.
func (w *world) leaves(v visit, state json.RawMessage) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if state == nil {
		w.kept[v] = true
		return
	}
	w.gave[v] = sumOf(state)
}

// sumOf is the sum that a checkpoint of this state has: zero if there is none.
func sumOf(state json.RawMessage) stint.Hash {
	if state == nil {
		return stint.Hash{}
	}
	return sha256.Sum256(state)
}

// durable notes that a runner or an observer was told that an entry is durable.
func (w *world) durable(id stint.ID, seq stint.Seq, hash stint.Hash) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.acked[id] == nil {
		w.acked[id] = map[stint.Seq]stint.Hash{}
	}
	if old, ok := w.acked[id][seq]; ok && old != hash {
		w.brokenLocked(id, "entry %d was acknowledged and is not there: another one was acknowledged in its place", seq)
	}
	w.acked[id][seq] = hash
}

// born notes a session that its creator was told of under a key.
func (w *world) born(key string, id stint.ID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch old, known := w.created[key]; {
	case known && old != id:
		w.brokenLocked(id, "create key %s led to session %s and to session %s", key, old, id)
	case !known:
		w.created[key] = id
		w.order, w.bornAt[id] = append(w.order, id), time.Now()
	}
}

// granted notes a lease and holds it against the others.
func (w *world) granted(p *port, l stint.Lease) {
	row, err := w.store.Session(w.ctx, l.Session)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err == nil {
		w.agent[l.Session] = row.Session.Agent.Name
	}
	all := w.grants[l.Session]
	if n := len(all); n > 0 {
		last := all[n-1]
		switch {
		case l.Epoch <= last.epoch:
			w.brokenLocked(l.Session, "epoch %d was granted to %s after epoch %d to %s", l.Epoch, p.name, last.epoch, last.port.name)
		case last.live() && l.Prior != stint.Released: // a release may be noted later than it took place
			w.brokenLocked(l.Session, "%s got the session while %s held it until %v from now", p.name, last.port.name, time.Until(last.expires))
		}
	}
	w.grants[l.Session] = append(all, &grant{epoch: l.Epoch, port: p, claimed: time.Now(), expires: l.Expires, prior: l.Prior})
	if n := w.liveOf("capped"); n > simCap && w.direct && w.agent[l.Session] == "capped" && !p.tool {
		w.brokenLocked(l.Session, "%s got one of %d sessions of an agent of which at most %d may run", p.name, n, simCap)
	}
}

// live reports whether the lease lives.
func (g *grant) live() bool {
	return !g.released && !g.port.isDead() && time.Now().Before(g.expires)
}

// liveOf counts the live leases of an agent, but for those of tools, which run
// nothing, and those that were revived: their place may have been given away.
func (w *world) liveOf(agent string) int {
	n := 0
	for id, all := range w.grants {
		if g := all[len(all)-1]; w.agent[id] == agent && g.live() && !g.leaving && !g.revived && !g.port.tool {
			n++
		}
	}
	return n
}

// renewed notes that a lease was extended.
func (w *world) renewed(l stint.Lease, until time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if g := w.grantLocked(l.Session, l.Epoch); g != nil {
		g.revived = g.revived || !time.Now().Before(g.expires)
		g.expires = until.Truncate(time.Microsecond) // as stores keep it
	}
}

// newest returns the newest epoch that was granted.
func (w *world) newest(id stint.ID) int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	if all := w.grants[id]; len(all) > 0 {
		return all[len(all)-1].epoch
	}
	return 0
}

func (w *world) grantLocked(id stint.ID, epoch int64) *grant {
	all := w.grants[id]
	for i := len(all) - 1; i >= 0; i-- {
		if all[i].epoch == epoch {
			return all[i]
		}
	}
	return nil
}

// releases notes that a lease was given back.
func (w *world) releases(l stint.Lease) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if g := w.grantLocked(l.Session, l.Epoch); g != nil {
		g.released = true
	}
}

// givesBack notes that a lease is about to be given back, or that it was not.
func (w *world) givesBack(l stint.Lease, yes bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if g := w.grantLocked(l.Session, l.Epoch); g != nil {
		g.leaving = yes
	}
}

// sessions returns the sessions that were created so far.
func (w *world) sessions() []stint.ID {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.order[:len(w.order):len(w.order)]
}
