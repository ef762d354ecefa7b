package server_test

import (
	"bytes"
	"context"
	"flag"
	"log/slog"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stint-dev/stint/internal/server"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestJournalHandler(t *testing.T) {
	var b bytes.Buffer
	log := slog.New(server.JournalHandler(&b, slog.LevelDebug))
	log.Debug("looking")
	log.Info("serving", "url", "http://127.0.0.1:7878")
	log.Warn("two\nlines", "error", "a\nb")
	log.Error("it ends")
	log.Log(context.Background(), slog.LevelInfo+2, "between two levels")
	log.Info("what the caller says stays", "time", time.Date(2026, 11, 28, 6, 0, 0, 0, time.UTC), "level", "high")
	log.With("session", "7hq2").WithGroup("at").Warn("in a group", "level", 3, "time", "now")
	golden(t, "testdata/journald.txt", b.Bytes())

	b.Reset()
	slog.New(server.JournalHandler(&b, slog.LevelWarn)).Info("not wanted")
	if b.Len() > 0 {
		t.Errorf("below its level it says %q", b.String())
	}
}

// Each line has its own priority, whoever else writes at the time.
func TestJournalLinesStayWhole(t *testing.T) {
	var b bytes.Buffer
	log := slog.New(server.JournalHandler(&b, slog.LevelDebug))
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() { log.Error("wrong") })
		all.Go(func() { log.With("a", 1).Debug("right") })
	}
	all.Wait()
	if got := bytes.Count(b.Bytes(), []byte("<3>msg=wrong\n")) + bytes.Count(b.Bytes(), []byte("<7>msg=right a=1\n")); got != 100 {
		t.Errorf("%d of 100 lines are right:\n%s", got, b.String())
	}
}

func golden(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
