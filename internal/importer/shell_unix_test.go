//go:build unix

package importer_test

import (
	"os/exec"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/stint-dev/stint/internal/importer"
)

// A line that is said to need no shell has the words that a shell would make of it.
func TestSplitAsAShell(t *testing.T) {
	line := rapid.StringOfN(rapid.SampledFrom([]rune(`ab  	''""\\=#~-.,:/%+@^AB_1|$*`)), 1, 24, -1)
	var script strings.Builder
	var lines []string
	var want [][]string
	for seed := 0; len(want) < 500; seed++ {
		l := line.Example(seed)
		words, why := importer.Split(l)
		if why != "" || words == nil {
			continue
		}
		lines, want = append(lines, l), append(want, words)
		script.WriteString(`printf '%s\0' ` + l + "\nprintf '\\n\\0'\n")
	}
	cmd := exec.CommandContext(t.Context(), "sh")
	cmd.Stdin = strings.NewReader(script.String())
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Split(string(out), "\n\x00")
	if len(all) != len(want)+1 {
		t.Fatalf("%d answers to %d lines", len(all)-1, len(want))
	}
	for i, words := range want {
		if got := strings.Join(words, "\x00") + "\x00"; got != all[i] {
			t.Errorf("%q is %q, and to a shell %q", lines[i], got, all[i])
		}
	}
}
