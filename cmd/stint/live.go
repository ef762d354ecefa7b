package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/config"
	"github.com/stint-dev/stint/internal/term"
	"github.com/stint-dev/stint/internal/view"
	"github.com/stint-dev/stint/journal"
	"github.com/stint-dev/stint/model"
)

// statusEvery is how often the session is read for the line at the bottom.
const statusEvery = 500 * time.Millisecond

// live shows a session in the foreground while it runs: its log and, on a terminal, what
// a model says as it says it, above a line on what the session does.
type live struct {
	app    *app
	site   *site
	lines  io.Writer
	style  term.Style
	screen *term.Screen // nil: lines only
	log    *view.Log
	id     stint.ID
	began  time.Time

	mu    sync.Mutex
	heard []piece // and not shown yet
	wait  model.Wait

	// What follows is of the goroutine that shows.
	now    strings.Builder // what the answer under way says
	said   string          // what the newest whole answer says
	model  string          // what the step is called that asks the model; empty: not known yet
	row    stint.Row       // the session as it was at newest
	newest time.Time
}

// piece is of an answer that is being written.
type piece struct {
	at time.Time
	model.Delta
}

// look decides what is shown, before the agent is made: runtime is what drives it, name
// the model's, where it is known.
func (f *foreground) look(w *wiring, runtime, name string) {
	a := f.app
	errStyle := term.For(a.err, a.color, a.getenv)
	if errStyle.TTY {
		f.screen = term.NewScreen(a.err, errStyle, nil)
	}
	if f.quiet || !f.logs {
		return
	}
	l := &live{app: a, site: f.site, lines: a.out, style: a.style(), model: name, began: time.Now()}
	if f.text && !a.json {
		l.lines, l.style = a.err, errStyle
	}
	if f.screen != nil && l.style.TTY && !a.json {
		l.lines = f.screen
	}
	f.live = l
	if f.screen == nil || a.json || runtime != config.KindLLM || a.getenv("TERM") == "dumb" {
		return
	}
	l.screen = f.screen
	w.hear = func(_ stint.ID, _ int, d model.Delta) { l.hear(d) }
	w.waits = func(wait model.Wait) {
		l.mu.Lock()
		l.wait = wait
		l.mu.Unlock()
	}
}

// hear keeps a piece until the entries before it are shown.
func (l *live) hear(d model.Delta) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.heard = append(l.heard, piece{time.Now().UTC().Truncate(time.Microsecond), d}) // as entries have it
}

// follow shows what the session's log gains behind entry after, until the returned
// function is called, which shows the rest.
func (l *live) follow(row stint.Row, after stint.Seq) (stop func()) {
	opt := view.LogOptions{Query: view.LogQuery{Line: -1, After: after}}
	if l.app.json {
		opt.Format = view.JSONL
	}
	l.id, l.log = row.Session.ID, view.NewLog(l.site.store, row, l.style, time.Now(), opt)
	ctx := context.Background()
	over, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(followPoll)
		defer tick.Stop()
		for l.more(ctx) == nil {
			select {
			case <-tick.C:
			case <-over:
				_ = l.more(ctx) // of what cannot be read the journal tells
				return
			}
		}
		<-over
	}()
	return func() {
		close(over)
		<-done
		if l.screen != nil {
			l.screen.Close()
		}
	}
}

// more shows what came since it was called last. What a model says stands before the
// entries that are younger, and behind those that are older: they were all recorded when
// the model was asked.
func (l *live) more(ctx context.Context) error {
	l.mu.Lock()
	heard := l.heard
	l.heard = nil
	l.mu.Unlock()
	upTo := func(e *stint.Entry) bool {
		n := 0
		for n < len(heard) && !heard[n].at.After(e.At) {
			n++
		}
		l.stream(heard[:n])
		heard = heard[n:]
		return l.now.Len() > 0 && l.lines == io.Writer(l.screen) // a file gets all of it
	}
	show := func(e *stint.Entry, lines string) error {
		if e.Kind == stint.StepCompleted || e.Kind == stint.StepFailed {
			l.answered(e)
		}
		if lines == "" {
			return nil
		}
		_, err := io.WriteString(l.lines, lines)
		return err
	}
	if err := l.log.More(ctx, upTo, show); err != nil {
		return err
	}
	l.stream(heard)
	return l.status(ctx)
}

// answered takes in the outcome of a step: what was heard belongs to a model's.
func (l *live) answered(e *stint.Entry) {
	d, err := journal.Decode[journal.StepDone](e)
	if err != nil || d.Kind != stint.Model {
		return
	}
	if l.model == "" || l.now.Len() > 0 { // others judge, or sum up, and say nothing here
		l.model = d.Name
	}
	if l.now.Len() > 0 && e.Kind == stint.StepCompleted {
		l.said = l.now.String()
	}
	l.now.Reset()
}

// stream shows pieces of an answer.
func (l *live) stream(pieces []piece) {
	for _, p := range pieces {
		switch {
		case p.Void:
			if l.now.Len() > 0 {
				l.now.Reset()
				_, _ = io.WriteString(l.screen, l.style.Paint(term.Dim, "↺ the answer broke off and begins again")+"\n")
			}
		case p.Text == "":
		case p.Thought:
			l.screen.Stream(term.Dim, p.Text)
		default:
			l.now.WriteString(p.Text)
			l.screen.Stream(term.Plain, p.Text)
		}
	}
}

// status makes the line at the bottom, of the session as it was half a second ago at most.
func (l *live) status(ctx context.Context) error {
	if l.screen == nil {
		return nil
	}
	if time.Since(l.newest) >= statusEvery {
		row, err := l.site.store.Session(ctx, l.id)
		if err != nil {
			return err
		}
		l.row, l.newest = row, time.Now()
	}
	l.screen.Status(view.NowLine(&l.row, l.doing(), time.Since(l.began), l.screen.Columns()))
	return nil
}

// doing is what the session does at its place.
func (l *live) doing() string {
	l.mu.Lock()
	waits := waitWords(l.wait)
	l.mu.Unlock()
	doing := l.row.Lease.Now
	switch w := l.row.Session.Wait; {
	case waits != "":
		return waits
	case l.row.Session.Status == stint.Waiting && w != nil && w.Until.IsZero():
		return "waits for " + string(w.For)
	case l.row.Session.Status == stint.Waiting && w != nil:
		return "waits for " + string(w.For) + ", until " + w.Until.Local().Format(time.TimeOnly)
	case l.now.Len() > 0, doing == l.model && doing != "": // the lease may be a second behind
		return strings.TrimSpace("model " + or(l.model, doing))
	}
	return doing
}

// waitWords says what a call of a model waits for; empty: for nothing.
func waitWords(w model.Wait) string {
	switch {
	case w == model.Wait{}:
		return ""
	case w.Until.IsZero():
		return fmt.Sprintf("waits behind %s of this provider", counted(w.Ahead, "call"))
	}
	why := "the provider asked to wait"
	if w.Err != nil {
		switch w.Err.Kind {
		case model.Rate:
			why = "rate limited"
		case model.Overloaded:
			why = "the provider is overloaded"
		default:
			why = "it failed: " + string(w.Err.Kind)
		}
	}
	return why + ", goes on at " + w.Until.Local().Format(time.TimeOnly)
}

// showed reports whether a text stands on the terminal as the last that was said.
func (l *live) showed(text string) bool {
	return l.screen != nil && strings.TrimSpace(l.said) == strings.TrimSpace(text) && l.said != ""
}
