package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stint-dev/stint/internal/server"
	"github.com/stint-dev/stint/internal/term"
)

// The forms of a server's log.
const (
	logText     = "text"
	logJSON     = "json"
	logTerminal = "terminal"
)

// logger is the server's log on standard error. Where journald reads it, text says no
// time, and the level as a priority.
func (a *app) logger(o *serveOptions) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(o.logLevel)); err != nil {
		return nil, usage(fmt.Errorf("--log-level is debug, info, warn or error, not %q", o.logLevel))
	}
	opt := slog.HandlerOptions{Level: level}
	switch o.logFormat {
	case logJSON:
		return slog.New(slog.NewJSONHandler(a.err, &opt)), nil
	case logTerminal:
		return slog.New(&terminalLog{w: a.err, mu: &sync.Mutex{}, style: term.For(a.err, a.color, a.getenv), level: level}), nil
	case logText:
		if a.err == any(os.Stderr) && server.ToJournal() {
			return slog.New(server.JournalHandler(a.err, level)), nil
		}
		return slog.New(slog.NewTextHandler(a.err, &opt)), nil
	}
	return nil, usage(fmt.Errorf("--log-format is text, json or terminal, not %q", o.logFormat))
}

// terminalLog is a log for people: the time of day, the level where it is none of every
// day, the message, and the rest in a fainter colour. It implements [slog.Handler].
type terminalLog struct {
	w     io.Writer
	mu    *sync.Mutex // of w
	style term.Style
	level slog.Level
	group string   // before each key, with its point
	said  []string // attributes of all lines
}

// Enabled implements [slog.Handler].
func (h *terminalLog) Enabled(_ context.Context, level slog.Level) bool { return level >= h.level }

// Handle implements [slog.Handler].
func (h *terminalLog) Handle(_ context.Context, r slog.Record) error {
	color, mark := term.Plain, ""
	switch {
	case r.Level >= slog.LevelError:
		color, mark = term.Red, "error: "
	case r.Level >= slog.LevelWarn:
		color, mark = term.Yellow, "warning: "
	case r.Level < slog.LevelInfo:
		color = term.Dim
	}
	words := []string{h.style.Paint(term.Dim, r.Time.Format(time.TimeOnly)), h.style.Paint(color, mark+term.Line(r.Message))}
	words = append(words, h.said...)
	r.Attrs(func(a slog.Attr) bool {
		words = append(words, h.attr(h.group, a)...)
		return true
	})
	h.mu.Lock()
	defer h.mu.Unlock()
	_, err := io.WriteString(h.w, strings.Join(words, "  ")+"\n")
	return err
}

// attr is an attribute, or those of a group.
func (h *terminalLog) attr(group string, a slog.Attr) (words []string) {
	v := a.Value.Resolve()
	if v.Kind() != slog.KindGroup {
		if a.Equal(slog.Attr{}) {
			return nil
		}
		text := v.String()
		if v.Kind() == slog.KindTime {
			text = v.Time().Local().Format(time.RFC3339)
		}
		return []string{h.style.Paint(term.Dim, term.Line(group+a.Key)+"=") + term.Line(text)}
	}
	if a.Key != "" {
		group += a.Key + "."
	}
	for _, in := range v.Group() {
		words = append(words, h.attr(group, in)...)
	}
	return words
}

// WithAttrs implements [slog.Handler].
func (h *terminalLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	next := *h
	next.said = slices.Clone(h.said)
	for _, a := range attrs {
		next.said = append(next.said, h.attr(h.group, a)...)
	}
	return &next
}

// WithGroup implements [slog.Handler].
func (h *terminalLog) WithGroup(name string) slog.Handler {
	next := *h
	if name != "" {
		next.group += name + "."
	}
	return &next
}
