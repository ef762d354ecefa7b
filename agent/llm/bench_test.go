package llm_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/agent/llm"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/health"
	"github.com/stint-dev/stint/model/script"
	"github.com/stint-dev/stint/store/mem"
	"github.com/stint-dev/stint/tool"
)

// BenchmarkSessions drives 64 sessions of 50 loops at once, one call in each loop, on an
// engine with a store in memory.
func BenchmarkSessions(b *testing.B) {
	off := health.Rule{Off: true}
	b.Run("watched", func(b *testing.B) { sessions(b, health.Rules{}) })
	b.Run("plain", func(b *testing.B) { sessions(b, health.Rules{N01: off, N02: off, N03: off, N04: off}) })
}

func sessions(b *testing.B, rules health.Rules) {
	const sessions, loops = 64, 50
	var steps []string
	for i := range loops - 1 {
		steps = append(steps, fmt.Sprintf(`{"text":"Looking at item %d of the list.","tools":[{"name":"look","input":{"n":%d}}]}`, i, i))
	}
	m, err := script.Parse([]byte(`{"steps":[` + strings.Join(steps, ",") + `]}`))
	if err != nil {
		b.Fatal(err)
	}
	look := tool.Tool{Name: "look", Effect: stint.Read, Parallel: true, Schema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}}}`),
		Caller: tool.CallerFunc(func(_ context.Context, c tool.Call) (tool.Output, error) {
			return tool.Output{Text: "item " + string(c.Args) + " is there: " + strings.Repeat("a few words ", 20)}, nil
		})}
	agent := engine.Agent{Name: "helper", Loop: agentOf(b, llm.Spec{Model: m, Tools: toolset(b, look), System: "Be brief.", Health: rules})}
	store := mem.New()
	e, err := engine.New(b.Context(), store, engine.Options{Agents: []engine.Agent{agent}, Concurrency: sessions})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	done := 0
	for b.Loop() {
		var wg sync.WaitGroup
		for range sessions {
			wg.Go(func() {
				s, err := e.RunNew(b.Context(), engine.Request{Agent: agent, Input: []byte("Go through the list.")}, func(engine.Created) {})
				if err != nil || s.Status != stint.Completed || s.Totals.Loops != loops {
					b.Errorf("%s %s, %d loops, %v", s.Status, s.Reason, s.Totals.Loops, err)
				}
			})
		}
		wg.Wait()
		done += sessions * loops
	}
	b.ReportMetric(float64(done)/b.Elapsed().Seconds(), "loops/s")
	if err := e.Close(); err != nil {
		b.Error(err)
	}
}
