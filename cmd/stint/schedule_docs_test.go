package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stint-dev/stint/internal/config"
)

// What docs/schedules.md shows is what is printed. With -update the page gets it.
func TestSchedulesPage(t *testing.T) {
	const page = "../../docs/schedules.md"
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	text, shown, s := string(b), 0, newShop(t)
	block := regexp.MustCompile("(?s)```console\n\\$ stint (schedule [^\n]*)\n(.*?)```")
	got := block.ReplaceAllStringFunc(text, func(example string) string {
		shown++
		line := block.FindStringSubmatch(example)[1]
		code, out, talk := s.stint(words(line)...)
		if code != exitOK {
			t.Errorf("stint %s: exit status %d\n%s", line, code, talk)
		}
		return "```console\n$ stint " + line + "\n" + out + "```"
	})
	for _, m := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(text, -1) {
		shown++
		if _, err := config.Parse("stint.yaml", []byte(m[1])); err != nil {
			t.Error(err)
		}
	}
	switch {
	case shown < 5:
		t.Errorf("%d examples were found: the test looks in the wrong place", shown)
	case got == text:
	case *update:
		if err := os.WriteFile(page, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		for i, line := range strings.Split(got, "\n") {
			if was := strings.Split(text, "\n"); i >= len(was) || was[i] != line {
				t.Errorf("%s, line %d: %q is printed now", filepath.Base(page), i+1, line)
				break
			}
		}
	}
}
