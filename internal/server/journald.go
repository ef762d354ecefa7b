package server

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/coreos/go-systemd/v22/journal"
)

// JournalHandler returns a handler for a log that journald reads: lines without a time,
// which it has itself, and with their level as the priority of sd-daemon(3).
func JournalHandler(w io.Writer, level slog.Leveler) slog.Handler {
	j := &journalLines{w: w}
	opt := &slog.HandlerOptions{Level: level, ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
		if _, ok := a.Value.Any().(slog.Level); ok && len(groups) == 0 && a.Key == slog.LevelKey {
			return slog.Attr{}
		}
		return a
	}}
	return &journalHandler{slog.NewTextHandler(j, opt), j}
}

// ToJournal reports whether journald reads this process's standard error. That the
// variable JOURNAL_STREAM is there does not say so: every shell of a desktop has it from
// the session that it was started in.
func ToJournal() bool {
	is, err := journal.StderrIsJournalStream()
	return is && err == nil
}

type journalHandler struct {
	slog.Handler

	lines *journalLines
}

// Handle implements slog.Handler.
func (h *journalHandler) Handle(ctx context.Context, r slog.Record) error {
	h.lines.mu.Lock()
	defer h.lines.mu.Unlock()
	h.lines.level, r.Time = r.Level, time.Time{} // a record without a time is written without one
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h *journalHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &journalHandler{h.Handler.WithAttrs(attrs), h.lines}
}

// WithGroup implements slog.Handler.
func (h *journalHandler) WithGroup(name string) slog.Handler {
	return &journalHandler{h.Handler.WithGroup(name), h.lines}
}

// journalLines puts the priority before each line.
type journalLines struct {
	mu    sync.Mutex
	w     io.Writer
	level slog.Level // of the line that comes
}

// Write implements io.Writer. The text handler writes a line at once.
func (j *journalLines) Write(line []byte) (int, error) {
	priority := 7
	switch {
	case j.level >= slog.LevelError:
		priority = 3
	case j.level >= slog.LevelWarn:
		priority = 4
	case j.level >= slog.LevelInfo:
		priority = 6
	}
	var b bytes.Buffer
	b.WriteString("<" + strconv.Itoa(priority) + ">")
	b.Write(line)
	_, err := j.w.Write(b.Bytes())
	return len(line), err
}
