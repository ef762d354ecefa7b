//go:build linux

package acceptance_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stint-dev/stint/internal/npmtest"
)

// conformanceFloor is how many checks of the suite pass in both runs, at least: a suite
// that did not run passes nothing.
const conformanceFloor = 180

// TestMCPConformance runs all scenarios of the protocol's conformance suite against the
// binary. What fails is what testdata/mcp-conformance.txt says, each with its reason, and
// nothing else; and what it says does fail, so that the file cannot grow stale.
func TestMCPConformance(t *testing.T) {
	t.Parallel()
	s := newSite(t, nil, "work")
	p := s.start(s.command(bin.stint, "mcp", "--http", "127.0.0.1:0"))
	url := ""
	eventually(t, "the server says where it is", patience, func() bool {
		url = regexp.MustCompile(`http://\S+`).FindString(p.talk.String())
		return url != ""
	})
	failed, passed := map[string]string{}, 0
	suite := append(npmtest.Conformance(t), "server", "--url", url, "--suite", "all")
	for _, version := range [][]string{nil, {"--spec-version", "2026-07-28"}} { // each scenario at the oldest revision that has it, and at the newest
		out := t.TempDir()
		args := append(append(slices.Clone(suite), "-o", out), version...)
		said, err := exec.CommandContext(t.Context(), args[0], args[1:]...).CombinedOutput()
		found, n := conformanceResults(t, out)
		if err == nil || n < conformanceFloor/2 {
			t.Errorf("%v: %d checks pass, %v\n%s", version, n, err, said)
		}
		maps.Copy(failed, found)
		passed += n
	}
	want := conformanceBaseline(t)
	for _, check := range slices.Sorted(maps.Keys(failed)) {
		if want[check] == "" {
			t.Errorf("it fails, and testdata/mcp-conformance.txt does not say why: %s\n  %s", check, failed[check])
		}
	}
	for _, check := range slices.Sorted(maps.Keys(want)) {
		if _, ok := failed[check]; !ok {
			t.Errorf("it does not fail any more; take it out of testdata/mcp-conformance.txt: %s", check)
		}
	}
	if passed < conformanceFloor {
		t.Errorf("%d checks pass, %d did", passed, conformanceFloor)
	}
	t.Logf("%d checks pass, %d fail for reasons that are known", passed, len(failed))
}

// conformanceResults reads what the suite found: checks that failed or were warned about,
// with what it says of each, and how many passed.
func conformanceResults(t *testing.T, dir string) (failed map[string]string, passed int) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "server-*", "checks.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("the suite left no results: %v", err)
	}
	failed = map[string]string{}
	dated := regexp.MustCompile(`^server-(.*)-\d{4}-\d\d-\d\dT.*$`)
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		var checks []struct{ ID, Status, Description, ErrorMessage string }
		if err := json.Unmarshal(b, &checks); err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		scenario := dated.ReplaceAllString(filepath.Base(filepath.Dir(f)), "$1")
		for _, c := range checks {
			switch c.Status {
			case "SUCCESS":
				passed++
			case "FAILURE", "WARNING":
				failed[scenario+" "+c.ID] = fmt.Sprintf("%s: %s %s", c.Status, c.Description, c.ErrorMessage)
			}
		}
	}
	return failed, passed
}

// conformanceBaseline reads the checks that are known to fail, with the reason that
// stands above them.
func conformanceBaseline(t *testing.T) map[string]string {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", "mcp-conformance.txt"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	known, reason := map[string]string{}, ""
	for lines := bufio.NewScanner(f); lines.Scan(); {
		line := strings.TrimSpace(lines.Text())
		switch {
		case line == "":
			reason = ""
		case strings.HasPrefix(line, "#"):
			reason = strings.TrimSpace(reason + " " + strings.TrimPrefix(line, "#"))
		case reason == "":
			t.Errorf("there is no reason above %s", line)
		case known[line] != "":
			t.Errorf("%s stands there twice", line)
		default:
			known[line] = reason
		}
	}
	return known
}
