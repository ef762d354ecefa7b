package cron_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stint-dev/stint/cron"
)

// The tests use the table of zones that comes with Go, not the one of the machine, which
// may be older or not there.
func TestMain(m *testing.M) {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	table := filepath.Join(strings.TrimSpace(string(root)), "lib", "time", "zoneinfo.zip")
	if err == nil {
		_, err = os.Stat(table)
	}
	if err == nil {
		err = os.Setenv("ZONEINFO", table)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "the tests need the table of time zones of Go:", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// long reports whether everything is tried at full size.
func long() bool { return os.Getenv("STINT_LONG") == "1" }

func parse(t testing.TB, expr, zone string) *cron.Schedule {
	t.Helper()
	s, err := cron.Parse(expr, cron.Options{Zone: zone})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func moment(t testing.TB, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// nextN are the next n times, in UTC.
func nextN(s *cron.Schedule, from time.Time, n int) []string {
	var out []string
	for range n {
		next, ok := s.Next(from)
		if !ok {
			return append(out, "none")
		}
		out = append(out, next.UTC().Format(time.RFC3339))
		from = next
	}
	return out
}
