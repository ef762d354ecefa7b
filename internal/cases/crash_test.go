package cases_test

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/journal"
)

// dying is the store as a runner sees it that dies as it records an entry of a
// kind: nothing that it writes from then on is acknowledged, and nothing reaches the
// store. With late set the fatal entry still does.
type dying struct {
	stint.Store
	at   stint.Kind
	late bool
	died chan struct{} // closed once the fatal entry is recorded, or lost

	mu   sync.Mutex
	dead bool
	left []func(error) // of those who wait for an answer
}

// Append implements [stint.Writer].
func (d *dying) Append(ctx context.Context, l stint.Lease, b stint.Batch, done func(error)) {
	fatal := slices.ContainsFunc(b.Entries, func(e stint.Entry) bool { return e.Kind == d.at })
	d.mu.Lock()
	if !d.dead && !fatal {
		d.mu.Unlock()
		d.Store.Append(ctx, l, b, done)
		return
	}
	first := !d.dead
	d.dead = true
	d.left = append(d.left, done)
	d.mu.Unlock()
	switch {
	case !first:
	case d.late:
		d.Store.Append(ctx, l, b, func(error) { close(d.died) })
	default:
		close(d.died)
	}
}

// Claim gives nothing to the dead: none is under way when a runner dies, which could get
// its own session once more when its lock is gone.
func (d *dying) Claim(ctx context.Context, c stint.Claim) ([]stint.Lease, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.dead {
		return nil, nil
	}
	return d.Store.Claim(ctx, c)
}

// Renew does nothing for the dead.
func (d *dying) Renew(ctx context.Context, ttl time.Duration, held []stint.Lease) ([]stint.ID, error) {
	if d.isDead() {
		return nil, nil
	}
	return d.Store.Renew(ctx, ttl, held)
}

// Hold implements what the stores have beside the interface.
func (d *dying) Hold(ctx context.Context, holder string) (func() error, error) {
	return d.Store.(interface {
		Hold(context.Context, string) (func() error, error)
	}).Hold(ctx, holder)
}

func (d *dying) isDead() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.dead
}

// bury answers those who still wait, so that nothing of the dead is left.
func (d *dying) bury() {
	d.mu.Lock()
	left := d.left
	d.left = nil
	d.mu.Unlock()
	for _, done := range left {
		done(stint.Fenced.Errorf("append", "the runner is dead"))
	}
}

// crash is a way for a runner to die over a step, and what the next one makes of it.
type crash struct {
	name    string
	effect  stint.Effect
	at      stint.Kind      // the entry it dies over; empty: the result
	late    bool            // that was recorded, and nobody told
	unknown bool            // the rule of the agent for a step in doubt
	sent    int             // how often the effect takes place before a person is asked, if one is
	verdict journal.Verdict // what the person says
	again   int             // how often it takes place after that
}

func crashes() []crash {
	return []crash{
		{name: "once, it happened", effect: stint.Once, sent: 1, verdict: journal.Happened},
		{name: "once, it did not", effect: stint.Once, sent: 1, verdict: journal.NotHappened, again: 1},
		{name: "once, nobody knows", effect: stint.Once, sent: 1, verdict: journal.Unknown},
		{name: "once, intent lost", effect: stint.Once, at: stint.StepRequested, sent: 1},
		{name: "once, intent recorded", effect: stint.Once, at: stint.StepRequested, late: true, verdict: journal.NotHappened, again: 1},
		{name: "once, unknown by rule", effect: stint.Once, unknown: true, sent: 1},
		{name: "idempotent", effect: stint.Idempotent, sent: 2},
		{name: "read", effect: stint.Read, sent: 2},
		{name: "once, recorded", effect: stint.Once, late: true, sent: 1},
		{name: "idempotent, recorded", effect: stint.Idempotent, late: true, sent: 1},
		{name: "read, recorded", effect: stint.Read, late: true, sent: 1},
	}
}

// TestC03CrashAfterTheEffect: a runner dies after a step's effect and before its
// record. What happens then is what the step was declared as: once is never done
// again by itself, idempotent is done again under the same key, and where the
// record made it nothing is done again (microsoft/agent-framework#3938,
// crewAIInc/crewAI#5802).
func TestC03CrashAfterTheEffect(t *testing.T) {
	t.Parallel()
	for _, c := range crashes() {
		for name, form := range map[string]struct {
			on     func(*testing.T, func(*testing.T, *place))
			sender func(t *testing.T, effect stint.Effect, ledger string) engine.Agent
		}{"go": {onStores, goSender}, "exec": {onFile, execSender}} {
			t.Run(c.name+"/"+name, func(t *testing.T) {
				t.Parallel()
				form.on(t, func(t *testing.T, p *place) {
					ledger := filepath.Join(t.TempDir(), "ledger")
					c.play(t, p, ledger, func() engine.Agent {
						a := form.sender(t, c.effect, ledger)
						if c.unknown {
							a.Doubt = func(string) engine.Doubt { return engine.Doubt{Unknown: true} }
						}
						return a
					})
				})
			})
		}
	}
}

// goSender sends a mail: a line in the ledger, with the key it was sent under.
func goSender(_ *testing.T, effect stint.Effect, ledger string) engine.Agent {
	return goAgent(func(ctx context.Context, l stint.Loop) (stint.Next, error) {
		got, err := stint.Do(ctx, l, stint.Step{Name: "send", Effect: effect}, func(_ context.Context, key string) (json.RawMessage, error) {
			f, err := os.OpenFile(ledger, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
			if err != nil {
				return nil, err
			}
			defer f.Close()
			_, err = f.WriteString(key + "\n")
			return json.RawMessage(`"sent"`), err
		})
		return stint.Next{End: &stint.End{Result: got}}, err
	})
}

func execSender(t *testing.T, effect stint.Effect, ledger string) engine.Agent {
	t.Helper()
	return python(t, "sender", string(effect), ledger)
}

// play lets one runner die over the step and another take over.
func (c crash) play(t *testing.T, p *place, ledger string, agent func() engine.Agent) {
	d := &dying{Store: p.store, at: c.at, late: c.late, died: make(chan struct{})}
	if d.at == "" {
		d.at = stint.StepCompleted
	}
	one := agent()
	e := p.engineOn(d, one)
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- e.Serve(ctx) }()
	created, err := e.Start(t.Context(), engine.Request{Agent: one})
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-d.died:
	case <-time.After(patience):
		t.Fatalf("the step was not recorded within %v\n%s", patience, p.journal(created.ID))
	}
	cancel()
	p.closes(e) // its lock is gone, as after kill -9

	s := p.goOn(agent(), created.ID)
	if got := lines(t, ledger); len(got) != c.sent {
		t.Errorf("it was sent %d times, want %d\n%s", len(got), c.sent, p.journal(s.ID))
	}
	if c.verdict != "" {
		p.ends(s, stint.Waiting, "doubt: step 1.1 send: did it happen?")
		said := journal.Command{Step: &s.Wait.Step, Verdict: c.verdict}
		if c.verdict == journal.Happened {
			said.Result = json.RawMessage(`"sent"`)
		}
		p.send(s.ID, stint.Resolve, said)
		s = p.goOn(agent(), s.ID)
	}
	p.ends(s, stint.Completed)
	if got := lines(t, ledger); len(got) != c.sent+c.again || len(slices.Compact(slices.Clone(got))) != 1 {
		t.Errorf("in the end it was sent under the keys %q, want %d under one", got, c.sent+c.again)
	}
	want := `"sent"`
	if c.unknown || c.verdict == journal.Unknown {
		want = `{"stint":"unknown"`
	}
	if es := p.entries(s.ID); !strings.HasPrefix(string(es[len(es)-1].Body), want) {
		t.Errorf("the session gave %s, want %s", es[len(es)-1].Body, want)
	}

	d.bury()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

func lines(t *testing.T, path string) []string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return strings.Fields(string(b))
}

// TestC03SilentDeath: a program that is kept over loops, gets one and dies without a
// word has begun it, and may have done anything. Each time is an attempt, so that the
// attempts end, and none is made in silence.
func TestC03SilentDeath(t *testing.T) {
	for _, code := range []string{"0", "1"} {
		t.Run("exit "+code, func(t *testing.T) {
			t.Parallel()
			onFile(t, func(t *testing.T, p *place) {
				ran := filepath.Join(t.TempDir(), "ran")
				a := python(t, "deaf", ran, code)
				a.Retry = engine.Retry{Attempts: 3, Initial: 1}
				s := p.run(a, "")
				p.ends(s, stint.Failed, "3 attempts of loop 2 failed, the last: the agent exited with "+code+" without an end message")
				if got := lines(t, ran); !slices.Equal(got, []string{"1", "2", "3"}) {
					t.Errorf("the loop ran as attempt %v\n%s", got, p.journal(s.ID))
				}
			})
		})
	}
}
