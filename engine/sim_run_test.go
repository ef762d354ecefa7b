package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/ident"
	"github.com/stint-dev/stint/journal"
	"github.com/stint-dev/stint/store/mem"
	"github.com/stint-dev/stint/store/sqlite"
)

var simSeed = flag.Uint64("seed", 0, "simulate with this seed alone")

// size is how much is simulated.
type size struct {
	seeds    int
	lasts    time.Duration // of faults; then they are healed
	sessions int
}

func long() bool { return os.Getenv("STINT_LONG") == "1" }

// simulate runs one simulation on the store that open returns, which may be a
// broken one, and returns what must not have happened.
func simulate(t *testing.T, seed uint64, z size, open func(t *testing.T) stint.Store, happened map[string]int) error {
	t.Helper()
	// With one processor a seed comes closer to one course of events.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	done := make(chan struct{})
	go watchdog(seed, done)
	defer close(done)
	var err error
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(seed, open(t))
		w.test, w.happened = t.Name(), happened
		if f, ok := w.store.(*file); ok {
			w.open = f.again
		} else {
			w.direct = true
		}
		err = w.run(t, z)
	})
	return err
}

// watchdog ends the program if a simulation hangs: in a bubble where somebody waits
// for a mutex, time stands still and no deadline of the test's own is ever reached.
func watchdog(seed uint64, done chan struct{}) {
	select {
	case <-done:
	case <-time.After(15 * time.Minute): // twenty hours take three on a busy machine, with the race detector
		buf := make([]byte, 1<<20)
		panic(fmt.Sprintf("seed %d hangs\n%s", seed, buf[:runtime.Stack(buf, true)]))
	}
}

// run is one simulation from its beginning to its end.
func (w *world) run(t *testing.T, z size) error {
	ctx, cancel := context.WithCancel(t.Context())
	w.ctx = ctx
	c := &cluster{w: w, rng: w.dice("faults")}
	for range runners {
		c.start()
	}
	p, err := w.newPeople()
	if err != nil {
		cancel()
		return err
	}
	until := w.begun.Add(z.lasts)
	rest := make(chan struct{})
	go func() { c.wreak(until); close(rest) }()
	w.wg.Go(func() { p.live(until, z.sessions) })
	for !w.isOver() && time.Now().Before(until) {
		w.pass(min(z.lasts/6, time.Until(until)))
		synctest.Wait()
		w.check(t)
	}
	<-rest
	if w.pass(time.Minute) {
		synctest.Wait()
		w.atRest(ctx)
		w.check(t)
	}
	w.stopAll(p)
	synctest.Wait()
	w.check(t)
	w.finish()
	for len(c.nodes) > 0 {
		c.drain(c.nodes[0])
	}
	if w.bad != nil {
		w.wreck()
	}
	cancel()
	if err := p.engine.Close(); err != nil {
		w.broken(stint.ID{}, "%v", err)
	}
	w.wg.Wait()
	for _, p := range w.ports {
		if p.store != w.store {
			if err := p.store.Close(); err != nil {
				w.broken(stint.ID{}, "%s closes the store: %v", p.name, err)
			}
		}
	}
	w.check(t)
	w.report(t)
	if w.bad == nil {
		w.replays(t.Context())
	}
	err = w.verdictOf()
	return errors.Join(err, w.store.Close())
}

// report counts what happened, so that a test can tell that everything did.
func (w *world) report(t *testing.T) {
	t.Helper()
	v, err := w.look(t)
	if err != nil {
		return // check has said so
	}
	for _, es := range v.entries {
		for i := range es {
			w.happened[string(es[i].Kind)]++
			for _, word := range detail(&es[i]) {
				w.happened[word]++
			}
		}
	}
}

// detail is what of an entry's data a report counts.
func detail(e *stint.Entry) []string {
	switch e.Kind {
	case stint.SessionWaiting:
		d, _ := journal.Decode[journal.Waiting](e)
		if strings.Contains(d.What, "and what it spawned") {
			return []string{"waits for " + string(d.For), "a tree at its limit"}
		}
		return []string{"waits for " + string(d.For)}
	case stint.SessionEnded:
		d, _ := journal.Decode[journal.Ended](e)
		if strings.HasPrefix(d.Reason, "recovery") {
			return []string{string(d.Outcome), "a brake"}
		}
		return []string{string(d.Outcome)}
	case stint.LeaseLost:
		d, _ := journal.Decode[journal.LeaseLost](e)
		return []string{"lease " + string(d.Prior)}
	case stint.StepResolved:
		d, _ := journal.Decode[journal.StepResolved](e)
		return []string{"verdict " + string(d.Verdict)}
	case stint.StepCompleted:
		d, _ := journal.Decode[journal.StepDone](e)
		out := []string{string(d.Effect)}
		if e.Pos.Sub > 0 {
			out = append(out, "a group")
		}
		if !e.Blob.IsZero() {
			out = append(out, "a large result")
		}
		return out
	case stint.ApprovalDecided:
		d, _ := journal.Decode[journal.ApprovalDecided](e)
		out := []string{"decision " + string(d.State)}
		switch {
		case e.Pos.Step == 0 && d.State == stint.ApprovalApproved:
			out = append(out, "an order that others agreed to")
		case len(d.Branches) > 0:
			out = append(out, "a question with several answers")
		}
		return out
	case stint.SessionCreated:
		switch d, _ := journal.Decode[journal.Created](e); {
		case d.Parent.Branch:
			return []string{"a branch"}
		case d.Parent.Detach:
			return []string{"a detached child"}
		case !d.Parent.Session.IsZero():
			return []string{fmt.Sprintf("a child of level %d", strings.Count(d.Labels["n"], "/"))}
		}
	case stint.MessageTaken:
		d, _ := journal.Decode[journal.Taken](e)
		var c journal.Command
		if decodeJSON(d.Data, &c) == nil && !c.Tree.IsZero() {
			return []string{"passed on: " + string(d.Kind)}
		}
		return []string{"message " + string(d.Kind)}
	}
	return nil
}

// mustHappen is what simulations of the default size come across; one that does not
// proves less than it seems to.
func mustHappen() []string {
	return []string{
		"session.created", "session.resumed", "session.released", "line.started", "loop.started", "loop.completed", "loop.failed",
		"step.requested", "step.failed", "message.refused", "limit.changed", "output.written",
		"waits for message", "waits for time", "waits for retry", "waits for budget", "waits for doubt", "waits for operator",
		"completed", "failed", "stopped", "canceled", "a brake", "a replayed loop", "lease died", "lease expired",
		"verdict happened", "verdict not", "verdict unknown", "read", "idempotent", "once", "a group", "a large result", "a branch",
		"an order that others agreed to", "a question with several answers",
		"waits for approval", "decision approved", "decision denied", "decision canceled",
		"message prompt", "message pause", "message resume", "message interrupt", "message stop", "message kill",
		"message restart", "message rollback", "message resolve", "message limit",
		"a child of level 1", "a child of level 2", "a child of level 3", "a detached child", "waits for child", "message child",
		"passed on: stop", "passed on: kill", "passed on: pause", "passed on: resume", "passed on: interrupt", "passed on: limit",
		"a tree at its limit",
	}
}

// stopAll kills every session that has not ended, but for those below another one; all of
// them must end soon.
func (w *world) stopAll(p *people) {
	if w.isOver() {
		return
	}
	all, err := w.everybody()
	if err != nil {
		w.broken(stint.ID{}, "list: %v", err)
		return
	}
	tops := slices.DeleteFunc(slices.Clone(all), w.reached)
	for _, id := range tops {
		m := stint.Message{ID: ident.New().String(), Kind: stint.Kill, From: "human:ana"}
		if err := p.port.Send(w.ctx, id, m); err != nil && stint.CodeOf(err) != stint.Conflict {
			w.broken(id, "kill: %v", err)
		}
	}
	if !w.pass(20 * time.Second) {
		return
	}
	for _, id := range all {
		if row, err := w.store.Session(w.ctx, id); err != nil || !row.Session.Status.Ended() {
			w.broken(id, "it was killed 20 seconds ago and is %s: %v", row.Session.Status, err)
		}
	}
}

// wreck ends every process, so that a simulation that went wrong ends too.
func (w *world) wreck() {
	w.mu.Lock()
	ports := w.ports
	w.mu.Unlock()
	for _, p := range ports {
		p.kill()
	}
}

// verdictOf is the violation as an error, with the journal of its session.
func (w *world) verdictOf() error {
	w.mu.Lock()
	bad := w.bad
	w.mu.Unlock()
	if bad == nil {
		return nil
	}
	ctx := context.WithoutCancel(w.ctx)
	var b strings.Builder
	fmt.Fprintf(&b, "after %v: %s\n", bad.at, bad.what)
	for id := bad.session; !id.IsZero(); { // and those that it is a child of
		w.tell(ctx, &b, id)
		row, err := w.store.Session(ctx, id)
		if id = row.Session.Parent.Session; err != nil || !isKid(&row.Session) {
			break
		}
	}
	w.mu.Lock()
	for _, line := range w.diary[max(0, len(w.diary)-400):] {
		fmt.Fprintln(&b, line)
	}
	w.mu.Unlock()
	fmt.Fprintf(&b, "replay: go test ./engine -run '^%s$' -seed %d -count 5", w.test, w.seed)
	return errors.New(b.String())
}

// tell writes the newest entries of a session, and how it stands.
func (w *world) tell(ctx context.Context, b *strings.Builder, id stint.ID) {
	es, err := w.store.Entries(ctx, stint.Range{Session: id})
	fmt.Fprintf(b, "the journal of session %s: %v\n", id, err)
	for _, e := range es[max(0, len(es)-simShown):] {
		fmt.Fprintf(b, "%4d %9.3f e%d l%d %-9s %-17s %-8s%s\n", e.Seq, e.At.Sub(w.begun).Seconds(), e.Epoch, e.Pos.Line,
			fmt.Sprintf("%s#%d", e.Pos, e.Pos.Attempt), e.Kind, e.Actor, brief(e))
	}
	for _, g := range w.grants[id] {
		fmt.Fprintf(b, "epoch %d: %s at %v, prior %s, released %v\n", g.epoch, g.port.name, g.claimed.Sub(w.begun), g.prior, g.released)
	}
	if row, err := w.store.Session(ctx, id); err == nil {
		status, reason := row.Status()
		fmt.Fprintf(b, "%s %s; lease %+v\n", status, reason, row.Lease)
	}
}

// simShown is how many entries of a journal are shown.
const simShown = 60

// simulateAll runs the seeds.
func simulateAll(t *testing.T, z size, open func(t *testing.T) stint.Store) {
	t.Helper()
	first := uint64(1)
	if *simSeed != 0 {
		first, z.seeds = *simSeed, 1
	}
	happened := map[string]int{}
	for seed := first; seed < first+uint64(z.seeds); seed++ {
		if err := simulate(t, seed, z, open, happened); err != nil {
			t.Fatalf("seed %d %v", seed, err)
		}
	}
	t.Logf("what happened: %v", happened)
	for _, what := range mustHappen() {
		if happened[what] == 0 && z.seeds >= 20 && !raced {
			t.Errorf("in %d simulations nothing of the kind happened: %s", z.seeds, what)
		}
	}
}

func openMem(*testing.T) stint.Store { return mem.New() }

// defaultSize is what a plain go test simulates in memory.
func defaultSize() size {
	z := size{seeds: 20, lasts: time.Hour, sessions: 22}
	if raced {
		z.lasts, z.sessions = 20*time.Minute, 11
	}
	return z
}

func TestSimulation(t *testing.T) {
	z := defaultSize()
	switch {
	case long() && raced:
		z = size{seeds: 5, lasts: 20 * time.Hour, sessions: 400}
	case long():
		z = size{seeds: 60, lasts: 20 * time.Hour, sessions: 400}
	}
	simulateAll(t, z, openMem)
}

// file is a store in a file, which every process opens for itself.
type file struct {
	*sqlite.Store
	again func() (stint.Store, error)
}

func openFile(t *testing.T) stint.Store {
	t.Helper()
	path := filepath.Join(t.TempDir(), "stint.db")
	open := func() (stint.Store, error) { return sqlite.Open(t.Context(), sqlite.Options{Path: path}) }
	s, err := sqlite.Open(t.Context(), sqlite.Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	return &file{s, open}
}

func TestSimulationOnSQLite(t *testing.T) {
	z := size{seeds: 3, lasts: 10 * time.Minute, sessions: 12}
	switch {
	case long() && raced:
		z = size{seeds: 5, lasts: 2 * time.Hour, sessions: 60}
	case long():
		z = size{seeds: 30, lasts: 2 * time.Hour, sessions: 60}
	case raced:
		z = size{seeds: 2, lasts: 4 * time.Minute, sessions: 6}
	}
	simulateAll(t, z, openFile)
}

// decodeJSON is json.Unmarshal that takes nothing for an empty value.
func decodeJSON(b []byte, v any) error {
	if len(b) == 0 {
		return nil
	}
	return json.Unmarshal(b, v)
}
