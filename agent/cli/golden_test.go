package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/agent/cli"
	"github.com/stint-dev/stint/engine"
)

// A recorded stream becomes these steps.
func TestStreams(t *testing.T) {
	for _, name := range []string{"codex", "codex-parallel", "claude", "opencode", "gemini"} {
		t.Run(name, func(t *testing.T) {
			stream, err := os.ReadFile(filepath.Join("testdata", name+".jsonl"))
			if err != nil {
				t.Fatal(err)
			}
			p, _, _ := strings.Cut(name, "-")
			f := newFake(t, cli.Protocol(p), string(stream))
			r := newRig(t, f.spec, 1)
			s := r.run(t.Context(), "write the file")
			r.is(s, stint.Completed)
			golden(t, name+".txt", r.journal(s.ID))
		})
	}
}

// Wherever a stream breaks off, the next attempt is answered what was recorded, nothing
// diverges, and each call that was told has one outcome.
func TestCutAnywhere(t *testing.T) {
	for name, again := range map[string][]int{ // the lines that a resumed CLI says
		"codex-parallel": {0, -2, -1}, "claude": {0, -2, -1}, "opencode": {-3, -2, -1}, "gemini": {0, -2, -1},
	} {
		stream, err := os.ReadFile(filepath.Join("testdata", name+".jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		all := strings.SplitAfter(strings.TrimRight(string(stream), "\n"), "\n")
		var rest strings.Builder
		for _, i := range again {
			rest.WriteString(strings.TrimRight(all[(i+len(all))%len(all)], "\n") + "\n")
		}
		p, _, _ := strings.Cut(name, "-")
		for cut := range all {
			t.Run(fmt.Sprint(name, "/", cut), func(t *testing.T) {
				f := newFake(t, cli.Protocol(p), strings.Join(all[:cut], "")+"!exit 1\n", rest.String(), rest.String())
				r := newRig(t, f.spec, 3)
				r.agent.Doubt = func(string) engine.Doubt { return engine.Doubt{Unknown: true} }
				r.replace()
				s := r.run(t.Context(), "write the file")
				r.is(s, stint.Completed)
				outcomes := map[stint.Position]int{}
				for _, e := range r.entries(s.ID) {
					at := e.Pos
					at.Attempt = 0
					switch e.Kind {
					case stint.StepRequested:
						outcomes[at] += 0
					case stint.StepCompleted, stint.StepResolved:
						outcomes[at]++
					}
				}
				for at, n := range outcomes {
					if n != 1 {
						t.Errorf("step %s has %d outcomes\n%s", at, n, r.journal(s.ID))
					}
				}
			})
		}
	}
}
