package llm_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/agent/llm"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/journal"
	"github.com/stint-dev/stint/model"
	"github.com/stint-dev/stint/model/script"
	"github.com/stint-dev/stint/store/mem"
	"github.com/stint-dev/stint/tool"
)

// dying is the store as a process reaches it that dies at an append.
type dying struct {
	*mem.Store

	mu      sync.Mutex
	n       int  // appends so far
	at      int  // it dies at this one; 0: never
	durable bool // once that was made
	dead    bool
	release func() error
}

func (d *dying) Hold(ctx context.Context, holder string) (func() error, error) {
	release, err := d.Store.Hold(ctx, holder)
	d.release = release
	return func() error { return nil }, err
}

func (d *dying) Append(ctx context.Context, l stint.Lease, b stint.Batch, done func(error)) {
	d.mu.Lock()
	d.n++
	now := !d.dead && d.n == d.at
	was := d.dead
	d.dead = was || now
	d.mu.Unlock()
	if now {
		_ = d.release()
	}
	switch {
	case was, now && !d.durable:
		done(stint.Fenced)
	case now:
		d.Store.Append(ctx, l, b, func(error) { done(stint.Fenced) })
	default:
		d.Store.Append(ctx, l, b, done)
	}
}

// deeds is what happened outside, by key.
type deeds struct {
	mu   sync.Mutex
	n    map[string]int
	gave map[string]json.RawMessage
}

// act does something outside, and is safe for several calls at once.
func (d *deeds) act(c tool.Call) (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.n[c.Key]++
	text := "did " + string(c.Args)
	d.gave[c.Key], _ = stint.Marshal(tool.Output{Text: text})
	return text, nil
}

// verify looks whether a call took effect.
func (d *deeds) verify(_ context.Context, _ stint.Step, key string) (journal.Verdict, json.RawMessage, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.n[key] == 0 {
		return journal.NotHappened, nil, nil
	}
	return journal.Happened, d.gave[key], nil
}

// playKilled plays a script on engines of which the first dies, and returns the transcript
// with the end, and how many appends the first made.
func playKilled(t *testing.T, m model.Model, window int64, at int, durable bool) (end string, appends int) {
	synctest.Test(t, func(t *testing.T) {
		did := &deeds{n: map[string]int{}, gave: map[string]json.RawMessage{}}
		flaky := 0
		single := does("single", stint.Once, did.act)
		single.Parallel = false
		tools := toolset(t, does("once", stint.Once, did.act), single, echo("look"), does("idem", stint.Idempotent, did.act),
			does("fails", stint.Read, func(tool.Call) (string, error) { return "", stint.Definite(errors.New("no")) }),
			does("flaky", stint.Read, func(tool.Call) (string, error) {
				if flaky++; flaky == 1 {
					return "", errReset{}
				}
				return "at last", nil
			}))
		store := mem.New()
		r := &rig{t: t, store: store}
		mortal := &dying{Store: store, at: at, durable: durable}
		agent := func() engine.Agent {
			return engine.Agent{Name: "helper", Loop: agentOf(t, llm.Spec{Model: &heard{Model: m, t: t}, Tools: tools, Context: llm.Context{Window: window, Excerpt: 512},
				Rubric: &llm.Rubric{Text: "Good.", Model: wants("o")}}), Doubt: func(string) engine.Doubt { return engine.Doubt{Verify: did.verify} }}
		}
		first := agent()
		e1, err := engine.New(t.Context(), mortal, engine.Options{Agents: []engine.Agent{first}, Holder: "r1"})
		if err != nil {
			t.Fatal(err)
		}
		created, err := e1.Start(t.Context(), engine.Request{Agent: first, Input: []byte("Go.")})
		if err != nil {
			t.Fatal(err)
		}
		r.id = created.ID
		if _, err := e1.Run(t.Context(), r.id); err == nil && at > 0 && mortal.n >= at && mortal.dead && !ended(r) {
			t.Error("the first process was not told that it lost the session")
		}
		r.agent = agent()
		if r.e, err = engine.New(t.Context(), store, engine.Options{Agents: []engine.Agent{r.agent}, Holder: "r2"}); err != nil {
			t.Fatal(err)
		}
		for tries := 0; !ended(r) && tries < 20; tries++ {
			if _, err := r.e.Run(t.Context(), r.id); err != nil {
				<-time.After(time.Second)
			}
		}
		for key, n := range did.n {
			if n != 1 && strings.HasPrefix(string(did.gave[key]), `{"text":"did {\"n\":1`) {
				t.Errorf("killed at %d: call %s took effect %d times", at, key, n)
			}
		}
		row, err := store.Session(t.Context(), r.id)
		if err != nil {
			t.Fatal(err)
		}
		end, appends = transcript(t, r.state())+stands(&row.Session), mortal.n
		var v journal.Verifier
		for _, e := range r.entries() {
			if err := v.Add(e); err != nil {
				t.Errorf("killed at %d: %v", at, err)
			}
		}
		if err := errors.Join(e1.Close(), r.e.Close(), store.Close()); err != nil {
			t.Error(err)
		}
	})
	return end, appends
}

func ended(r *rig) bool {
	row, err := r.store.Session(r.t.Context(), r.id)
	if err != nil {
		r.t.Fatal(err)
	}
	return row.Session.Status.Ended()
}

// Wherever the process of a session dies, before an append or after it, the next one
// ends it in the same words, and nothing that is done once is done twice.
func TestKilledAnywhere(t *testing.T) {
	calls, err := script.Parse([]byte(`{"steps":[{"tools":[{"name":"once","input":{"n":1}},{"name":"look","input":{}},{"name":"single","input":{"n":11}},{"name":"once","args":"{"},{"name":"idem","input":{"n":2}}]},
		{"text":"cut","stop":"length"},{"tools":[{"name":"once","input":{"n":12}},{"name":"flaky","input":{}},{"name":"fails","input":{}}]},{"text":"Bad."},{"text":"Good."}]}`))
	if err != nil {
		t.Fatal(err)
	}
	for name, play := range map[string]struct {
		model  model.Model
		window int64
	}{"calls": {calls, 0}, "compaction": {counter{"single", 9, 1}, 150}} {
		t.Run(name, func(t *testing.T) {
			want, appends := playKilled(t, play.model, play.window, 0, false)
			if !strings.Contains(want, "completed") || strings.Contains(want, "A summary of them") != (name == "compaction") {
				t.Fatalf("not killed, it ends so:\n%s", want)
			}
			for at := 1; at <= appends; at++ {
				for _, durable := range []bool{false, true} {
					if got, _ := playKilled(t, play.model, play.window, at, durable); got != want {
						t.Fatalf("killed at append %d of %d (durable: %t):\n%s--- not killed\n%s", at, appends, durable, got, want)
					}
				}
			}
		})
	}
}
