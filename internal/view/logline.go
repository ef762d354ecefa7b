package view

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/term"
	"github.com/stint-dev/stint/journal"
)

// lines says in words what e records.
func (l *Log) lines(ctx context.Context, e *stint.Entry) ([]logLine, error) {
	if e.Erased {
		return []logLine{{name: string(e.Kind), text: "erased: only its place in the chain is left", color: term.Dim}}, nil
	}
	if e.Kind == stint.OutputWritten {
		return l.output(ctx, e)
	}
	ls, err := l.words(ctx, e)
	if err != nil { // bad data is a line too: a log must not end there
		ls = []logLine{{name: string(e.Kind), text: term.Line(err.Error()), color: term.Red, whole: true}}
	}
	for i := range ls {
		ls[i].name, ls[i].text = term.Line(ls[i].name), term.Line(ls[i].text)
	}
	if l.opt.Content {
		return l.content(ctx, e, ls)
	}
	return ls, nil
}

// words are the lines of an entry that is no output; they are not safe yet.
func (l *Log) words(ctx context.Context, e *stint.Entry) ([]logLine, error) {
	switch e.Kind {
	case stint.StepRequested:
		d, err := journal.Decode[journal.StepRequested](e)
		return []logLine{{arrow: "→", name: d.Name, text: list(kindWord(d), l.beginning(e))}}, err
	case stint.StepCompleted, stint.StepFailed:
		d, err := journal.Decode[journal.StepDone](e)
		if err != nil {
			return nil, err
		}
		return l.done(ctx, e, &d)
	case stint.StepResolved:
		d, err := journal.Decode[journal.StepResolved](e)
		return []logLine{{arrow: "←", name: "resolved", text: list(verdictWord(d.Verdict)+", says "+string(e.Actor), d.Reason, l.beginning(e)), color: term.Yellow}}, err
	case stint.ApprovalRequested, stint.ApprovalDecided, stint.ApprovalChanged:
		return l.approval(e)
	case stint.LoopStarted:
		return l.loopStarted(e)
	case stint.LoopCompleted:
		d, err := journal.Decode[journal.LoopCompleted](e)
		return []logLine{{name: "loop", text: loopDone(e, &d), color: term.Green}}, err
	case stint.LoopFailed:
		d, err := journal.Decode[journal.LoopFailed](e)
		again := ""
		if d.Final {
			again = "no further attempt"
		}
		return []logLine{{arrow: "✗", name: "loop", text: list("failed", d.Error, again), color: term.Red}}, err
	case stint.MessageTaken, stint.MessageRefused:
		return l.message(e)
	}
	return l.session(e)
}

// session are the words of entries about the session as a whole.
func (l *Log) session(e *stint.Entry) ([]logLine, error) {
	ln := logLine{name: "session"}
	var err error
	switch e.Kind {
	case stint.SessionCreated:
		var d journal.Created
		d, err = journal.Decode[journal.Created](e)
		s := stint.Session{Trigger: d.Trigger}
		ln.text = list("created by "+string(e.Actor), "agent "+d.Agent.Name, triggerOf(&s), l.beginning(e))
	case stint.SessionWaiting:
		var d journal.Waiting
		d, err = journal.Decode[journal.Waiting](e)
		ln.text, ln.color = "waits for "+string(d.For), term.Yellow
		until := untilAt(&d, iso(d.Until))
		if l.st.TTY {
			until = untilAt(&d, clock(d.Until, e.At.In(l.zone)))
		}
		if words := waitLine(&d, until); words != "a "+string(d.For) {
			ln.text += ": " + words
		}
	case stint.SessionResumed:
		var d journal.Resumed
		d, err = journal.Decode[journal.Resumed](e)
		ln.text = list("goes on ("+d.Why+")", d.Reason, by(e))
	case stint.SessionReleased:
		var d journal.Released
		d, err = journal.Decode[journal.Released](e)
		if ln.text = "given back by its runner (" + d.Why + ")"; d.Why == "branch" {
			ln.text = "what is above was done by the session that it branched off"
		}
	case stint.SessionEnded:
		var d journal.Ended
		d, err = journal.Decode[journal.Ended](e)
		_, ln.color = shape(&stint.Row{Session: stint.Session{Status: d.Outcome}})
		result := l.beginning(e)
		if text, ok := onlyText(e.Body); ok {
			result = l.brief(quoted(text))
		}
		ln.text = list(string(d.Outcome), d.Reason, result)
	case stint.LineStarted:
		var d journal.LineStarted
		d, err = journal.Decode[journal.LineStarted](e)
		ln.name, ln.color = "line", term.Cyan
		ln.text = list(fmt.Sprintf("line %d begins from the end of loop %d", e.Pos.Line, d.From), by(e), d.Reason,
			fmt.Sprintf("what came after it is readable at %s/%d", l.row.Short, e.Pos.Line-1))
	case stint.LeaseLost:
		var d journal.LeaseLost
		d, err = journal.Decode[journal.LeaseLost](e)
		ln.name, ln.color = "lease", term.Yellow
		ln.text = "lost: the runner that held it did not renew it in time"
		if d.Prior == stint.Died {
			ln.text = "lost: the runner that held it died"
		}
	case stint.LimitChanged:
		var d journal.LimitChanged
		d, err = journal.Decode[journal.LimitChanged](e)
		ln.name, ln.text = "limits", list(limitWords(d.Limits), by(e), d.Reason)
	case stint.SystemRecorded:
		var d journal.Recorded
		d, err = journal.Decode[journal.Recorded](e)
		ln.name, ln.text = "system", list(d.What, d.Name, by(e), d.Reason)
		if ln.text == "" {
			ln.text = "the state of the server"
		}
	default:
		ln.name, ln.text = string(e.Kind), "this program does not know this kind of entry"
	}
	return []logLine{ln}, err
}

// hintOf is what to do about the error that an entry tells of; empty where nobody knew.
func hintOf(e *stint.Entry) string {
	switch e.Kind {
	case stint.LoopFailed:
		d, _ := journal.Decode[journal.LoopFailed](e) // bad data has no hint
		return d.Hint
	case stint.SessionWaiting:
		d, _ := journal.Decode[journal.Parked](e)
		return d.Hint
	case stint.SessionEnded:
		d, _ := journal.Decode[journal.Ended](e)
		return d.Hint
	}
	return ""
}

// hintNow is what to do about the error that a session stands at; nil where nobody
// knew. es are the entries of its course.
func hintNow(ctx context.Context, r stint.Reader, s *stint.Session, es []stint.Entry) (*string, error) {
	if s.Status == stint.Waiting {
		last, err := r.Entries(ctx, stint.Range{Session: s.ID, Until: s.Head, Kinds: []stint.Kind{stint.SessionWaiting}, Last: true, Limit: 1})
		if err != nil {
			return nil, err
		}
		es = append(es[:len(es):len(es)], last...)
	}
	for i := len(es) - 1; i >= 0; i-- {
		switch es[i].Kind {
		case stint.LoopFailed, stint.SessionWaiting, stint.SessionEnded:
			if hint := hintOf(&es[i]); hint != "" {
				return &hint, nil
			}
		default:
			return nil, nil
		}
	}
	return nil, nil
}

func by(e *stint.Entry) string {
	if e.Actor == stint.ByEngine {
		return ""
	}
	return "by " + string(e.Actor)
}

// kindWord is the kind of a step and what doing it again means, where that matters.
func kindWord(d journal.StepRequested) string {
	if d.Effect == stint.Read {
		return string(d.Kind)
	}
	return string(d.Kind) + ", " + string(d.Effect)
}

// approval are the lines of a question and of its end.
func (l *Log) approval(e *stint.Entry) ([]logLine, error) {
	if e.Kind == stint.ApprovalRequested {
		d, err := journal.Decode[journal.ApprovalRequested](e)
		return []logLine{{arrow: "?", name: "approval", text: list(d.Text, d.Why, fmt.Sprintf("stint approve %s.%d", l.row.Short, e.Seq)), color: term.Yellow}}, err
	}
	if e.Kind == stint.ApprovalChanged {
		d, err := journal.Decode[journal.ApprovalChanged](e)
		text := list(d.Note, strings.Join(d.Approvers, ", "))
		if d.Yes {
			text = list("yes by "+string(e.Actor)+", and others have to say so", d.Note)
		}
		return []logLine{{arrow: "?", name: "approval", text: text, color: term.Yellow}}, err
	}
	d, err := journal.Decode[journal.ApprovalDecided](e)
	ln := logLine{arrow: "←", name: "approval", text: list(string(d.State)+" by "+string(e.Actor), d.Note, l.beginning(e)), color: term.Green}
	if d.State != stint.ApprovalApproved {
		ln.arrow, ln.color = "✗", term.Yellow
	}
	return []logLine{ln}, err
}

func verdictWord(v journal.Verdict) string {
	switch v {
	case journal.Happened:
		return "it happened"
	case journal.NotHappened:
		return "it did not happen"
	case journal.Unknown:
		return "nobody can tell"
	}
	return string(v)
}

// done are the lines of a step's outcome.
func (l *Log) done(ctx context.Context, e *stint.Entry, d *journal.StepDone) ([]logLine, error) {
	ln := logLine{arrow: "←", name: d.Name}
	figures := took(msec(d.MS))
	if d.Kind == stint.Model || d.Usage != (stint.Usage{}) {
		figures = list(usageWords(d.Usage), figures)
	}
	if e.Kind == stint.StepFailed {
		ln.arrow, ln.color = "✗", term.Red
		what := d.Error
		if !d.Definite && d.Effect == stint.Once {
			what += " (in doubt)"
		}
		ln.text = list(figures, what)
		return []logLine{ln}, nil
	}
	what, size, bad, err := l.outcome(ctx, e, d)
	if err != nil {
		return nil, err
	}
	if ln.text = list(figures, size); what != "" {
		ln.text += "   " + what
	}
	if bad {
		ln.color = term.Red
	}
	return []logLine{ln}, nil
}

func usageWords(u stint.Usage) string {
	in := count(u.Input + u.CacheRead + u.CacheWrite)
	if all := u.Input + u.CacheRead + u.CacheWrite; u.CacheRead > 0 && all > 0 {
		in += fmt.Sprintf(" in (%d%% cached)", u.CacheRead*100/all)
	} else {
		in += " in"
	}
	cost := ""
	if u.Cost != 0 {
		cost = Dollars(u.Cost)
	}
	return list(in+" → "+count(u.Output)+" out", cost)
}

// beginning is the beginning of an entry's body, or its size where it lies outside.
func (l *Log) beginning(e *stint.Entry) string {
	if !e.Blob.IsZero() {
		return bytesOf(e.Blob.Size)
	}
	return l.brief(e.Body)
}

// brief is a body on one line. The line is cut to the terminal later.
func (l *Log) brief(b []byte) string {
	if l.st.TTY {
		return head(b, 400)
	}
	return head(b, 0)
}

func (l *Log) loopStarted(e *stint.Entry) ([]logLine, error) {
	d, err := journal.Decode[journal.LoopStarted](e)
	ln := logLine{name: "loop", rule: l.st.TTY}
	from := "from the beginning"
	if e.Pos.Loop > 1 {
		from = fmt.Sprintf("from ck-%d", e.Pos.Loop-1)
	}
	attempt := ""
	if e.Pos.Attempt > 1 || d.Why == "wake" {
		attempt = fmt.Sprintf("attempt %d (%s)", e.Pos.Attempt, d.Why)
	}
	line := ""
	if e.Pos.Line > 0 {
		line = fmt.Sprintf("line %d", e.Pos.Line)
	}
	ln.text = list(fmt.Sprintf("loop %d", e.Pos.Loop), line, attempt, from)
	if !l.st.TTY {
		ln.text = list("begins", line, fmt.Sprintf("attempt %d", e.Pos.Attempt), d.Why, from)
	}
	return []logLine{ln}, err
}

// loopDone sums up a loop.
func loopDone(e *stint.Entry, d *journal.LoopCompleted) string {
	steps := ""
	if d.Steps > 0 {
		others := d.Steps - d.Models - d.Tools
		var parts []string
		for _, p := range []struct {
			n    int
			what string
		}{{d.Models, "model call"}, {d.Tools, "tool call"}, {others, "step"}} {
			if p.n > 0 {
				parts = append(parts, plural(p.n, p.what))
			}
		}
		steps = strings.Join(parts, ", ")
	}
	failed := ""
	if d.Errors > 0 {
		failed = plural(d.Errors, "error")
	}
	usage := ""
	if d.Usage != (stint.Usage{}) {
		usage = usageWords(d.Usage)
	}
	state := fmt.Sprintf("ck-%d %s", e.Pos.Loop, bytesOf(d.State.Size))
	switch {
	case d.State.Enc == journal.Same && d.State.Size == 0:
		state = fmt.Sprintf("ck-%d", e.Pos.Loop)
	case d.State.Enc == journal.Same:
		state += " unchanged"
	}
	return list("done in "+took(msec(d.MS)), d.Headline, steps, failed, usage, state)
}

func (l *Log) message(e *stint.Entry) ([]logLine, error) {
	d, err := journal.Decode[journal.Taken](e)
	body := l.beginning(e)
	if d.Long { // what it asks is too long for the entry's data
		d.Data, body = e.Body, ""
	}
	ln := logLine{name: "message", text: list(string(d.Kind)+" from "+string(d.From), commandWords(&d), body)}
	if e.Kind == stint.MessageRefused {
		ln.arrow, ln.color = "✗", term.Yellow
		ln.text = list(string(d.Kind)+" from "+string(d.From)+" refused", d.Why)
	}
	return []logLine{ln}, err
}

// commandWords are the arguments of a control message that say what is to be done.
func commandWords(d *journal.Taken) string {
	c, err := journal.Decode[journal.Command](&stint.Entry{Data: orObject(d.Data)})
	if err != nil {
		return ""
	}
	var parts []string
	if c.From != nil {
		parts = append(parts, fmt.Sprintf("from the end of loop %d", *c.From))
	}
	if c.Verdict != "" {
		parts = append(parts, verdictWord(c.Verdict))
	}
	if c.Limits != nil {
		parts = append(parts, limitWords(*c.Limits))
	}
	return list(append(parts, c.Reason)...)
}

func orObject(b []byte) []byte {
	if len(b) == 0 {
		return []byte("{}")
	}
	return b
}

// limitWords lists limits.
func limitWords(lim stint.Limits) string {
	var parts []string
	add := func(set bool, name, value string) {
		if set {
			parts = append(parts, name+" "+value)
		}
	}
	add(lim.Wall > 0, "wall", span(lim.Wall))
	add(lim.Idle > 0, "idle", span(lim.Idle))
	add(!lim.Deadline.IsZero(), "deadline", iso(lim.Deadline))
	add(lim.Loops > 0, "loops", fmt.Sprint(lim.Loops))
	add(lim.Steps > 0, "steps", fmt.Sprint(lim.Steps))
	add(lim.Tokens > 0, "tokens", fmt.Sprint(lim.Tokens))
	add(lim.Cost > 0, "cost", Dollars(lim.Cost))
	add(lim.ToolCalls > 0, "tool calls", fmt.Sprint(lim.ToolCalls))
	add(lim.Children != 0, "children", fmt.Sprint(max(lim.Children, 0)))
	if len(parts) == 0 {
		return "none"
	}
	if lim.Stop {
		parts = append(parts, "then stop")
	}
	return strings.Join(parts, ", ")
}

// output are the lines that an agent wrote.
func (l *Log) output(ctx context.Context, e *stint.Entry) ([]logLine, error) {
	d, err := journal.Decode[journal.Output](e)
	if err != nil {
		d.Stream = "output"
	}
	body, found, err := l.bodies.maybe(ctx, e)
	if err != nil {
		return nil, err
	}
	ln := logLine{name: term.Line(d.Stream), whole: true}
	switch {
	case !found:
		ln.text, ln.color = "("+bytesOf(sizeOf(e))+" that are not there)", term.Red
		return []logLine{ln}, nil
	case d.Stream != "stdout" && d.Stream != "stderr":
		ln.color = term.Dim
	}
	var ls []logLine
	for line := range bytes.Lines(body) {
		ln.text = strings.ReplaceAll(term.Escape(string(bytes.TrimRight(line, "\r\n"))), "\n", `\n`)
		ls = append(ls, ln)
	}
	return ls, nil
}

// content adds the whole body of e.
func (l *Log) content(ctx context.Context, e *stint.Entry, ls []logLine) ([]logLine, error) {
	if sizeOf(e) == 0 {
		return ls, nil
	}
	more := logLine{more: true, whole: true, color: term.Dim}
	if ref, err := journal.StateOf(e); err == nil && ref.Enc == journal.Delta {
		more.text = fmt.Sprintf("(a delta of %s; stint show %s --state=%d prints the state)", bytesOf(sizeOf(e)), l.row.Short, e.Pos.Loop)
		return append(ls, more), nil
	}
	body, found, err := l.bodies.maybe(ctx, e)
	if err != nil {
		return nil, err
	}
	if !found {
		more.text = "(" + bytesOf(sizeOf(e)) + " that are not there)"
		return append(ls, more), nil
	}
	for line := range strings.SplitSeq(strings.TrimRight(string(body), "\n"), "\n") {
		more.text = term.Escape(strings.TrimSuffix(line, "\r"))
		ls = append(ls, more)
	}
	return ls, nil
}
