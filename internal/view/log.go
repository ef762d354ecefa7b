package view

import (
	"bytes"
	"context"
	"io"
	"strings"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/explain"
	"github.com/stint-dev/stint/internal/term"
	"github.com/stint-dev/stint/journal"
)

// LogFormat is the form that a log is printed in.
type LogFormat string

// The forms.
const (
	Short LogFormat = ""      // lines for people
	JSON  LogFormat = "json"  // one stint.entry.list/1
	JSONL LogFormat = "jsonl" // one stint.entry/1 a line
	Cat   LogFormat = "cat"   // what the agent wrote, and nothing else
)

// LogOptions say what a log shows and how. The zero value but for Query.Line shows
// everything as lines.
type LogOptions struct {
	Query   LogQuery
	Tail    int // only the newest so many entries at first; 0: all
	Format  LogFormat
	Limit   int  // of [Log.Entries] without Tail: the first so many; 0: all
	Body    int  // of [Log.Entries]: at most so many bytes of each body; 0: none
	Content bool // whole bodies, not their beginnings
	Explain bool // a line on what an entry means, where it matters
	Raw     bool // with Cat: the bytes as they are
	Again   bool // the session is about to begin again: [Log.Follow] goes on to its next end
}

// Log prints the journal of one session. It is not safe for concurrent use.
type Log struct {
	src    Source
	bodies bodies
	row    stint.Row
	st     term.Style
	zone   *time.Location
	opt    LogOptions
	day    string    // of the newest line
	last   stint.Seq // newest entry that was looked at
	items  int       // printed as JSON
	shown  *stint.Seq
	heard  bool // what a model said is shown elsewhere: its line has the calls alone
}

// NewLog returns a log of the session as row has it. Times on a terminal are in
// the zone of now.
func NewLog(src Source, row stint.Row, st term.Style, now time.Time, opt LogOptions) *Log {
	return &Log{src: src, bodies: bodies{src, row.Session.Family}, row: row, st: st, zone: now.Location(), opt: opt, last: opt.Query.After}
}

// Write prints the entries there are.
func (l *Log) Write(ctx context.Context, w io.Writer, now time.Time) error {
	if l.opt.Format != JSON {
		return l.upTo(ctx, w, l.row.Session.Head)
	}
	b, err := encode(struct {
		Schema  Schema     `json:"schema"`
		Now     *time.Time `json:"now"`
		Session stint.ID   `json:"session"`
	}{SchemaEntries, whole(now), l.row.Session.ID})
	if err != nil {
		return err
	}
	if _, err := w.Write(append(b[:len(b)-1], `,"items":[`...)); err != nil {
		return err
	}
	if err := l.upTo(ctx, w, l.row.Session.Head); err != nil {
		return err
	}
	end, err := encode(l.shown)
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, `],"cursor":`+string(end)+"}\n")
	return err
}

// upTo prints the entries up to head.
func (l *Log) upTo(ctx context.Context, w io.Writer, head stint.Seq) error {
	q := l.opt.Query
	if q.Until == 0 || q.Until > head {
		q.Until = head
	}
	if q.After >= q.Until {
		return nil
	}
	l.last = q.Until
	choose := func(e *stint.Entry) (bool, error) {
		if q.Grep == nil && l.opt.Format != Cat {
			return true, nil
		}
		var buf bytes.Buffer
		probe := *l
		err := probe.print(ctx, &buf, e)
		return buf.Len() > 0, err
	}
	return q.read(ctx, l.src, l.row.Session.ID, l.opt.Tail, choose, func(e *stint.Entry) error { return l.print(ctx, w, e) })
}

// Follow prints the entries there are and then those that come, looking every
// poll, until the session has ended and all is printed; it returns the session as
// it is then. Which runner writes the entries does not matter. It ends sooner with
// ctx, and at Query.Until.
func (l *Log) Follow(ctx context.Context, w io.Writer, poll time.Duration) (stint.Row, error) {
	if l.opt.Format == JSON {
		l.opt.Format = JSONL
	}
	if err := l.upTo(ctx, w, l.row.Session.Head); err != nil {
		return l.row, err
	}
	l.last = max(l.last, l.row.Session.Head)
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for {
		q := l.opt.Query
		if q.Until > 0 && l.last >= q.Until {
			return l.row, nil
		}
		q.After = l.last
		if err := eachEntry(ctx, l.src, stint.Range{Session: l.row.Session.ID, After: q.After}, func(e *stint.Entry) error {
			l.last = e.Seq
			l.opt.Again = l.opt.Again && e.Kind != stint.SessionEnded
			if !q.matches(e) {
				return nil
			}
			return l.print(ctx, w, e)
		}); err != nil {
			return l.row, err
		}
		row, err := l.src.Session(ctx, l.row.Session.ID)
		if err != nil {
			return l.row, err
		}
		l.row = row
		switch {
		case row.Session.Head > l.last:
			continue
		case row.Session.Status.Ended() && !l.opt.Again:
			return row, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return row, ctx.Err()
		}
	}
}

// print prints one entry that the query wants, unless Grep does not.
func (l *Log) print(ctx context.Context, w io.Writer, e *stint.Entry) error {
	switch l.opt.Format {
	case JSON, JSONL:
		return l.printJSON(ctx, w, e)
	case Cat:
		return l.printRaw(ctx, w, e)
	}
	ls, err := l.lines(ctx, e)
	if err != nil {
		return err
	}
	if ls = l.grep(ls, e); len(ls) == 0 {
		return nil
	}
	if hint := hintOf(e); hint != "" {
		ls = append(ls, logLine{text: "↳ " + term.Line(hint), more: true, wrap: true, color: term.Dim})
	}
	if l.opt.Explain && levelOf(e) >= Warn {
		ls = append(ls, logLine{text: meaning(e), more: true, wrap: true, color: term.Dim})
	}
	if levelOf(e) >= Warn { // what went wrong, or is waited for, is there to be read whole
		for i := range ls {
			ls[i].wrap = true
		}
	}
	var b strings.Builder
	for i := range ls {
		l.line(&b, e, &ls[i])
	}
	_, err = io.WriteString(w, b.String())
	return err
}

// grep returns the lines that the expression leaves: of output those that match,
// of anything else all or none.
func (l *Log) grep(ls []logLine, e *stint.Entry) []logLine {
	re := l.opt.Query.Grep
	if re == nil {
		return ls
	}
	var kept []logLine
	for _, ln := range ls {
		if re.MatchString(ln.text) || e.Kind != stint.OutputWritten && re.MatchString(ln.name) {
			if e.Kind != stint.OutputWritten {
				return ls
			}
			kept = append(kept, ln)
		}
	}
	return kept
}

func (l *Log) printJSON(ctx context.Context, w io.Writer, e *stint.Entry) error {
	if l.opt.Query.Grep != nil {
		ls, err := l.lines(ctx, e)
		if err != nil || len(l.grep(ls, e)) == 0 {
			return err
		}
	}
	out := NewEntry(e)
	if l.opt.Content && out.Body != nil {
		body, found, err := l.bodies.maybe(ctx, e)
		if err != nil {
			return err
		}
		if out.Body.Missing = !found; found {
			out.Body.fill(body)
		}
	}
	seq := e.Seq
	l.shown = &seq
	if l.opt.Format == JSONL {
		return WriteJSON(w, out)
	}
	out.Schema = ""
	b, err := encode(out)
	if err != nil {
		return err
	}
	if l.items++; l.items > 1 {
		b = append([]byte{','}, b...)
	}
	_, err = w.Write(append([]byte{'\n'}, b...))
	return err
}

// printRaw prints output as the agent wrote it, or made safe.
func (l *Log) printRaw(ctx context.Context, w io.Writer, e *stint.Entry) error {
	if e.Kind != stint.OutputWritten {
		return nil
	}
	body, found, err := l.bodies.maybe(ctx, e)
	if err != nil || !found {
		return err
	}
	if l.opt.Query.Grep != nil {
		var kept []byte
		for line := range bytes.Lines(body) {
			if l.opt.Query.Grep.Match(bytes.TrimRight(line, "\r\n")) {
				kept = append(kept, line...)
			}
		}
		body = kept
	}
	if !l.opt.Raw {
		body = []byte(term.Escape(string(body)))
	}
	_, err = w.Write(body)
	return err
}

// logLine is one line of an entry, safe to print.
type logLine struct {
	arrow string // → an intent, ← an outcome, ✗ a failure
	name  string
	text  string
	color term.Color
	more  bool // it goes on with the line before
	whole bool // it is not cut
	wrap  bool // it goes on in the next line instead of being cut
	rule  bool // on a terminal it is drawn as a rule
}

const (
	posWidth  = 7
	nameWidth = 9
)

// line writes one line: time, position, arrow, name, text.
func (l *Log) line(b *strings.Builder, e *stint.Entry, ln *logLine) {
	if !l.st.TTY {
		b.WriteString(iso(e.At) + " " + term.Pad(position(e.Pos), posWidth, false))
		b.WriteString(" " + term.Pad(ln.arrow, 1, false) + " " + term.Pad(ln.name, nameWidth, false) + " " + ln.text + "\n")
		return
	}
	at := e.At.In(l.zone)
	day := ""
	if d := at.Format("Mon 2 Jan 2006, MST"); d != l.day {
		l.day, day = d, d
	}
	if ln.rule || day != "" {
		text := ""
		if ln.rule {
			text = ln.text
		}
		b.WriteString(l.st.Paint(ln.ruleColor(), l.ruleLine(text, day)) + "\n")
		if ln.rule {
			return
		}
	}
	if l.st.Width > 0 && l.st.Width < leadWidth {
		l.narrowLine(b, ln)
		return
	}
	lead := at.Format("15:04:05.000") + "  " + term.Pad(position(e.Pos), posWidth, false)
	if ln.more {
		lead = strings.Repeat(" ", len("15:04:05.000")+2+posWidth)
	}
	texts := []string{ln.text}
	used := len("15:04:05.000") + 2 + posWidth + 3 + max(nameWidth, term.Width(ln.name)) + 1
	switch {
	case l.st.Width <= used+20 || ln.whole:
	case ln.wrap:
		texts = wrap(ln.text, l.st.Width-used)
	default:
		texts[0] = term.Cut(ln.text, l.st.Width-used)
	}
	arrow, name := ln.arrow, ln.name
	for _, text := range texts {
		b.WriteString(l.st.Paint(term.Dim, lead) + " " + l.st.Paint(ln.color, term.Pad(arrow, 1, false)) + " " +
			term.Pad(name, nameWidth, false) + " " + l.st.Paint(ln.color, text) + "\n")
		lead, arrow, name = strings.Repeat(" ", term.Width(lead)), "", strings.Repeat(" ", term.Width(name))
	}
}

// leadWidth is the width of a terminal below which lines have no time and no place: those
// would leave no room for what is said.
const leadWidth = 72

// narrowLine writes arrow, name and text, over at most three lines where all of it does
// not matter.
func (l *Log) narrowLine(b *strings.Builder, ln *logLine) {
	text, width := ln.text, l.st.Width-2
	if !ln.more {
		text = strings.TrimSpace(ln.name + "  " + ln.text)
	}
	texts := []string{text}
	if !ln.whole {
		texts = wrap(text, width)
	}
	if !ln.whole && !ln.wrap && len(texts) > 3 {
		texts = append(texts[:2:2], strings.Join(texts[2:], " "))
	}
	lead := ln.arrow
	for _, text := range texts {
		if !ln.whole && !ln.wrap {
			text = term.Cut(text, width)
		}
		text = strings.TrimRight(text, " ")
		b.WriteString(l.st.Paint(ln.color, term.Pad(lead, 1, false)+" "+text) + "\n")
		lead = ""
	}
}

func (ln *logLine) ruleColor() term.Color {
	if ln.rule && ln.color != term.Plain {
		return ln.color
	}
	return term.Bold
}

// ruleLine draws ── text ───── day ──.
func (l *Log) ruleLine(text, day string) string {
	width := 96
	if l.st.Width > 0 {
		width = min(width, l.st.Width)
	}
	s := "──"
	if text != "" {
		s += " " + text + " "
	}
	tail := "──"
	if day != "" {
		tail = " " + day + " ──"
	}
	return s + strings.Repeat("─", max(1, width-term.Width(s)-term.Width(tail))) + tail
}

// position is a place in a session, without its line.
func position(p stint.Position) string {
	if p.Loop == 0 {
		return "-"
	}
	return p.String()
}

// meaning explains an entry in a sentence.
func meaning(e *stint.Entry) string {
	key := "kind:" + string(e.Kind)
	switch e.Kind {
	case stint.SessionWaiting:
		if d, err := journal.Decode[journal.Waiting](e); err == nil {
			key = "wait:" + string(d.For)
		}
	case stint.SessionEnded:
		if d, err := journal.Decode[journal.Ended](e); err == nil {
			key = "status:" + string(d.Outcome)
		}
	}
	pages, err := explain.Find(key)
	if err != nil {
		return ""
	}
	return "↳ " + pages[0].Summary
}
