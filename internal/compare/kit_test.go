package compare_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/internal/compare"
	"github.com/stint-dev/stint/internal/term"
	"github.com/stint-dev/stint/store/mem"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// rig is an engine on a store in memory, in a bubble whose clock stands still.
type rig struct {
	t     *testing.T
	store *mem.Store
	e     *engine.Engine
}

func inBubble(t *testing.T, fn func(r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := &rig{t: t, store: mem.New()}
		var err error
		if r.e, err = engine.New(t.Context(), r.store, engine.Options{}); err != nil {
			t.Fatal(err)
		}
		fn(r)
		if err := errors.Join(r.e.Close(), r.store.Close()); err != nil {
			t.Error(err)
		}
	})
}

// run drives a new session until it ends or waits.
func (r *rig) run(name string, fn stint.AgentFunc) *stint.Row {
	r.t.Helper()
	s, err := r.e.RunNew(r.t.Context(), engine.Request{Agent: engine.Agent{Name: "a", Loop: fn}, Name: name, Actor: "human:ana"}, func(engine.Created) {})
	if err != nil {
		r.t.Fatal(err)
	}
	return r.row(s.ID)
}

func (r *rig) row(id stint.ID) *stint.Row {
	r.t.Helper()
	row, err := r.store.Session(r.t.Context(), id)
	if err != nil {
		r.t.Fatal(err)
	}
	return &row
}

// does is a step that takes a while and gives something.
func does(ctx context.Context, l stint.Loop, s stint.Step, gives string, err error) {
	_, _ = l.Do(ctx, s, func(context.Context, string) (stint.Result, error) {
		<-time.After(time.Second)
		return stint.Result{Data: json.RawMessage(gives), Usage: stint.Usage{Input: 3, Output: 2, Cost: 20_000_000}}, err
	})
}

// says is a model's step.
func says(ctx context.Context, l stint.Loop, asked, text string, calls ...string) {
	type call struct {
		Name string `json:"name"`
	}
	type part struct {
		Text string `json:"text,omitempty"`
		Call *call  `json:"call,omitempty"`
	}
	parts := []part{{Text: text}}
	for _, c := range calls {
		parts = append(parts, part{Call: &call{c}})
	}
	b, err := stint.Marshal(map[string]any{"message": map[string]any{"parts": parts}, "stop": "end", "at": time.Now()})
	if err != nil {
		panic(err)
	}
	does(ctx, l, stint.Step{Name: "model-1", Kind: stint.Model, Effect: stint.Read, Input: json.RawMessage(asked)}, string(b), nil)
}

// golden compares the text of a Diff with a file.
func golden(t *testing.T, name string, texts ...string) {
	t.Helper()
	got := strings.Join(texts, "\n----\n")
	path := filepath.Join("testdata", name+".txt")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s is\n%s", path, got)
	}
}

// text is a Diff for people, without the ids that differ each time.
func text(t *testing.T, d *compare.Diff) string {
	t.Helper()
	var b bytes.Buffer
	if err := d.Write(&b, term.Style{}); err != nil {
		t.Fatal(err)
	}
	return strings.NewReplacer("("+d.A.Short+")", "(aaaa)", "("+d.B.Short+")", "(bbbb)").Replace(b.String())
}
