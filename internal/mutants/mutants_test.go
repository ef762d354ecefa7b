package mutants_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
)

// table is all mutants.
func table() []mutant {
	return slices.Concat(
		storeMutants(),
		durableMutants(),
		journalMutants(),
		proofMutants(),
		hashMutants(),
		engineMutants(),
		questionMutants(),
		promiseMutants(),
		personMutants(),
		branchMutants(), orderMutants(),
		verdictMutants(),
		treeMutants(),
		interruptMutants(),
		agentMutants(),
		worktreeMutants(),
		apartMutants(),
		httpMutants(),
		shellMutants(),
		modelMutants(),
		llmMutants(),
		worthMutants(),
		cronMutants(),
		scheduleMutants(),
		hookMutants(),
		triggerMutants(),
		policyMutants(),
		decisionMutants(),
		notifyMutants(),
		channelMutants(),
		remindMutants(),
		accessMutants(),
		apiMutants(),
		guardMutants(),
		serverMutants(),
		serveMutants(),
		streamMutants(),
		doorMutants(),
		feedMutants(),
		clientMutants(),
		replayMutants(),
		liveMutants(),
	)
}

// fits reports whether the tests of m exist on this system.
func (m *mutant) fits() bool { return m.goos == "" || m.goos == runtime.GOOS }

// long reports whether all of them are tried.
func long() bool { return os.Getenv("STINT_LONG") == "1" }

func module(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestMutantsFit checks the table against the source as it is: every mutant can be
// put in, and names tests that exist.
func TestMutantsFit(t *testing.T) {
	all, seen := table(), map[string]bool{}
	known := map[string][]string{}
	for i := range all {
		m := &all[i]
		t.Run(m.name, func(t *testing.T) {
			switch {
			case seen[m.name]:
				t.Error("there are two mutants of that name")
			case m.why == "" || len(m.red) == 0:
				t.Error("it does not say why it matters, or what has to see it")
			case strings.HasSuffix(m.file, "_test.go"):
				t.Errorf("%s is no production code", m.file)
			}
			seen[m.name] = true
			src, err := os.ReadFile(filepath.Join(module(t), filepath.FromSlash(m.file)))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := m.apply(string(src)); err != nil {
				t.Error(err)
			}
			for _, r := range m.red {
				if known[r.pkg] == nil {
					if known[r.pkg], err = functions(module(t), r.pkg); err != nil {
						t.Fatal(err)
					}
				}
				for _, name := range r.top() {
					if !slices.Contains(known[r.pkg], name) {
						t.Errorf("there is no test %s in %s; name the one that holds this rule now", name, r.pkg)
					}
				}
			}
		})
	}
}

// tried is the mutants that are put in: by default the cheapest.
func tried(all []mutant) []mutant {
	return slices.DeleteFunc(slices.Clone(all), func(m mutant) bool { return !m.quick && !long() })
}

// TestMutants puts in one mutant after the other; each has to turn its tests red.
func TestMutants(t *testing.T) {
	total := len(table())
	all := tried(table())
	r := newRig(t, module(t))
	var lines []string
	killed := 0
	for i := range all {
		m := &all[i]
		if !m.fits() {
			lines = append(lines, fmt.Sprintf("%s\tNOT RUN: its tests are for %s\t", m.name, m.goos))
			continue
		}
		t.Run(m.name, func(t *testing.T) {
			for _, k := range m.red {
				if err := r.green(t.Context(), all, k.pkg); err != nil {
					t.Fatal(err)
				}
			}
			outs, err := r.try(t.Context(), m)
			if err != nil {
				lines = append(lines, m.name+"\tNOT SEEN\t")
				t.Fatal(err)
			}
			killed++
			for i, o := range outs {
				lines = append(lines, fmt.Sprintf("%s\t%s: %s\t%.1f", m.name, m.red[i].pkg, o.by(), o.took.Seconds()))
			}
		})
	}
	if killed == 0 {
		t.Error("no mutant was tried")
	}
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "mutant\tkilled by\tseconds")
	fmt.Fprintln(w, strings.Join(lines, "\n"))
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d of %d mutants were tried and seen\n%s", killed, total, b.String())
}
