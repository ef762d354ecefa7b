package view

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/term"
)

// page prints the parts of a session's page under labels.
type page struct {
	b   strings.Builder
	st  term.Style
	now time.Time
}

const labelWidth = 10

// labelled prints one line; an empty text prints nothing.
func (p *page) labelled(label, text string) {
	if text == "" {
		return
	}
	p.b.WriteString(p.st.Paint(term.Dim, term.Pad(label, labelWidth, p.st.TTY)) + "  " + text + "\n")
}

func (p *page) cut(text string) string {
	if p.st.TTY && p.st.Width > 0 {
		return term.Cut(text, max(p.st.Width-labelWidth-2, 20))
	}
	return text
}

// flow is text on as many lines as it needs: what a person has to read whole.
func (p *page) flow(text string) string {
	if !p.st.TTY || p.st.Width <= 0 {
		return text
	}
	return strings.Join(wrap(text, max(p.st.Width-labelWidth-2, 20)), "\n"+strings.Repeat(" ", labelWidth+2))
}

func (p *page) at(t *time.Time) string {
	switch {
	case t == nil:
		return "-"
	case p.st.TTY:
		return clock(*t, p.now)
	}
	return iso(*t)
}

func (p *page) ago(t time.Time) string {
	if p.st.TTY {
		return span(p.now.Sub(t)) + " ago"
	}
	return iso(t)
}

// WriteShow prints the page of a session.
func WriteShow(w io.Writer, st term.Style, row *stint.Row, v *Show, now time.Time) error {
	p := page{st: st, now: now}
	p.head(row, v)
	p.body(row, v)
	if err := p.loops(v); err != nil {
		return err
	}
	p.effects(row, v)
	p.b.WriteByte('\n')
	for i, cmd := range v.Next {
		label := ""
		if i == 0 {
			label = "Next"
		}
		p.b.WriteString(p.st.Paint(term.Dim, term.Pad(label, labelWidth, false)) + "  " + cmd + "\n")
	}
	_, err := io.WriteString(w, p.b.String())
	return err
}

func (p *page) head(row *stint.Row, v *Show) {
	s := &row.Session
	glyph, color := shape(row)
	if !p.st.TTY {
		glyph = ""
	}
	title := strings.TrimSpace(glyph + " " + term.Line(s.Name))
	agent := "  agent " + term.Line(s.Agent.Name) + "  "
	if v.Line != s.At.Line {
		fmt.Fprintf(&p.b, "%s (%s/%d)%sline %d, left behind: the session goes on at line %d\n", term.Line(s.Name), row.Short, v.Line, agent, v.Line, s.At.Line)
		return
	}
	p.b.WriteString(p.st.Paint(color, title) + " (" + row.Short + ")" + agent + p.st.Paint(color, StatusWord(row)))
	status, _ := row.Status()
	why := ""
	if status.Ended() && s.Reason != "" {
		why = ": " + term.Line(s.Reason)
	}
	if used := term.Width(title + " (" + row.Short + ")" + agent + StatusWord(row) + why); p.st.TTY && p.st.Width > 0 && used > p.st.Width {
		p.b.WriteByte('\n')
		p.labelled("Reason", p.flow(term.Line(s.Reason)))
		return
	}
	p.b.WriteString(why + "\n")
}

func (p *page) body(row *stint.Row, v *Show) {
	s := &row.Session
	p.labelled("Id", s.ID.String())
	trigger := term.Line(triggerOf(s)) + " · " + p.at(v.Created)
	if !s.Trigger.Due.IsZero() {
		trigger = term.Line(triggerOf(s)) + " · due " + p.at(v.Trigger.Due) + " · created " + p.at(v.Created)
	}
	p.labelled("Trigger", trigger)
	p.labelled("Labels", labelsOf(s))
	p.labelled("Command", p.cut(term.Line(term.Command(v.Command))))
	p.labelled("Goal", p.excerpt(v.Goal))
	if v.Line == s.At.Line {
		p.standing(row, v)
	}
	p.labelled("Lineage", p.lineage(row, v))
	p.labelled("Family", p.flow(familyLine(v)))
}

// standing is how the session stands: what holds for its current line alone.
func (p *page) standing(row *stint.Row, v *Show) {
	s := &row.Session
	status, _ := row.Status()
	switch {
	case status == stint.Waiting && v.Waiting != nil:
		long := " since " + iso(s.Wait.Since)
		if p.st.TTY {
			long = ", " + span(p.now.Sub(s.Wait.Since))
		}
		p.labelled("Waits", p.flow(list("for "+string(v.Waiting.For)+long, nowLine(row, p.now, p.st.TTY))))
	case status == stint.Running:
		at := fmt.Sprintf("loop %d", s.At.Loop)
		if s.At.Attempt > 1 {
			at += fmt.Sprintf(" attempt %d", s.At.Attempt)
		}
		doing := nowLine(row, p.now, p.st.TTY)
		if v.Now == nil { // it names the loop, for want of more
			doing = ""
		}
		p.labelled("Now", p.cut(list(at, doing)))
	case !status.Ended():
		p.labelled("Now", p.cut(nowLine(row, p.now, p.st.TTY)))
	}
	if s.At.Error != "" {
		p.labelled("Error", p.flow(term.Line(s.At.Error)))
	}
	if v.Hint != nil {
		p.labelled("Hint", p.flow(term.Line(*v.Hint)))
	}
	p.labelled("Result", p.excerpt(v.Result))
	if l := v.Lease; l != nil {
		left := "expires " + p.at(l.Expires)
		if p.st.TTY {
			left = "expires in " + span(l.Expires.Sub(p.now))
		}
		if !l.Live {
			left = "its runner is gone"
		}
		p.labelled("Lease", list(term.Line(l.Runner), fmt.Sprintf("epoch %d", l.Epoch), left))
	}
	p.orders(v)
	p.labelled("Limits", p.limits(v))
	p.labelled("Used", p.used(v))
	if c := v.Checkpoint; c != nil {
		size := ""
		if c.Seq > 0 {
			size = bytesOf(c.Size)
		}
		age := ""
		if c.At != nil {
			age = p.ago(*c.At)
		}
		p.labelled("Safe", list(fmt.Sprintf("ck-%d", c.Loop), age, size))
	}
}

func (p *page) excerpt(e *excerpt) string {
	if e == nil {
		return ""
	}
	text := e.Text
	if text == "" {
		text = "(" + bytesOf(e.Size) + " that are not there)"
	}
	return p.cut(text)
}

// used sums up what the session used.
func (p *page) used(v *Show) string {
	t := v.Totals
	tokens, cost := "", ""
	if t.Tokens.Counted > 0 {
		tokens = count(int64(t.Tokens.Counted)) + " tokens"
	}
	if t.Cost > 0 {
		cost = Dollars(t.Cost)
	}
	failed := ""
	if t.Errors > 0 {
		failed = plural(t.Errors, "error")
	}
	ran := ""
	if t.RunningMS > 0 {
		ran = took(msec(t.RunningMS)) + " running"
	}
	return list(plural(t.Loops, "loop"), plural(t.Steps, "step"), failed, tokens, cost, ran)
}

// limits lists the limits with what is used of each.
func (p *page) limits(v *Show) string {
	l := &v.Limits
	var parts []string
	add := func(name, used, most string, share float64) {
		s := name + " " + used + "/" + most
		if p.st.TTY {
			s += " " + bar(share)
		}
		parts = append(parts, s)
	}
	if m := l.Wall.Max; m != nil {
		add("wall", span(msec(l.Wall.Used)), span(msec(*m)), float64(l.Wall.Used)/float64(*m))
	}
	if m := l.Cost.Max; m != nil {
		add("cost", Dollars(l.Cost.Used), Dollars(*m), float64(l.Cost.Used)/float64(*m))
	}
	if m := l.Loops.Max; m != nil {
		add("loops", fmt.Sprint(l.Loops.Used), fmt.Sprint(*m), float64(l.Loops.Used)/float64(*m))
	}
	if m := l.Steps.Max; m != nil {
		add("steps", fmt.Sprint(l.Steps.Used), fmt.Sprint(*m), float64(l.Steps.Used)/float64(*m))
	}
	if m := l.Tokens.Max; m != nil {
		add("tokens", count(int64(l.Tokens.Used)), count(int64(*m)), float64(l.Tokens.Used)/float64(*m))
	}
	if l.Idle != nil {
		parts = append(parts, "idle "+span(msec(*l.Idle)))
	}
	if l.Deadline != nil {
		parts = append(parts, "deadline "+p.at(l.Deadline))
	}
	if len(parts) > 0 && l.OnLimit == "stop" {
		parts = append(parts, "then stop")
	}
	return p.wrap(parts)
}

// wrap joins parts, on as many lines as the terminal needs.
func (p *page) wrap(parts []string) string {
	var b strings.Builder
	used := labelWidth + 2
	for i, s := range parts {
		switch {
		case i == 0:
		case p.st.TTY && p.st.Width > 0 && used+3+term.Width(s) > p.st.Width:
			used = labelWidth + 2
			b.WriteString("\n" + strings.Repeat(" ", used))
		default:
			used += 3
			b.WriteString("   ")
		}
		used += term.Width(s)
		b.WriteString(s)
	}
	return b.String()
}

// bar draws a share of a limit in ten parts.
func bar(share float64) string {
	const parts = 10
	n := int(share*parts + 0.5)
	n = min(max(n, 0), parts)
	return strings.Repeat("▓", n) + strings.Repeat("░", parts-n)
}

func (p *page) lineage(row *stint.Row, v *Show) string {
	s := &row.Session
	attempt := ""
	if s.At.Attempt > 1 && s.At.Open {
		attempt = fmt.Sprintf("attempt %d of loop %d", s.At.Attempt, s.At.Loop)
	}
	deaths := ""
	if s.At.Deaths > 0 {
		deaths = plural(s.At.Deaths, "runner") + " died since the checkpoint"
	}
	var moved []string
	for _, l := range v.Lines[min(1, len(v.Lines)):] {
		moved = append(moved, list(fmt.Sprintf("line %d from loop %d", l.Line, l.From), p.at(l.At), term.Line(string(l.By)), term.Line(l.Reason)))
	}
	if n := len(moved); n > 3 {
		moved = append([]string{plural(n-3, "line") + " before"}, moved[n-3:]...)
	}
	parent := ""
	if v.Parent != nil {
		parent = v.Parent.Session.String()
		if v.Parent.Name != "" {
			parent = fmt.Sprintf("%s (%s)", term.Line(v.Parent.Name), v.Parent.Short)
		}
		if v.Parent.Branch {
			parent = list(fmt.Sprintf("a branch of %s behind loop %d", parent, v.Parent.Loop), term.Line(v.Parent.Reason))
		} else {
			parent = "a child of " + parent
		}
	}
	children, branches := "", ""
	if v.Related.Children > 0 {
		children = plural(v.Related.Children, "child session")
	}
	if n := v.Related.Branches; n > 0 {
		branches = fmt.Sprintf("%d branches", n)
		if n == 1 {
			branches = "1 branch"
		}
	}
	return list(append([]string{parent, attempt, deaths, children, branches}, moved...)...)
}

// loops prints the table of loops.
func (p *page) loops(v *Show) error {
	if len(v.Loops) == 0 {
		return nil
	}
	t := table{lead: "  ", columns: []column{
		{head: ""}, {head: "LOOP", right: true}, {head: "AT"}, {head: "TOOK", right: true}, {head: "STEPS", right: true}, {head: "TOKENS", right: true},
		{head: "COST", right: true}, {head: "STATE"}, {head: "CKPT"}, {head: "WHAT CHANGED"},
	}}
	if v.LoopsOmitted > 0 && p.st.TTY {
		t.rows = append(t.rows, []cell{{text: fmt.Sprintf("  …%s (--all)", plural(v.LoopsOmitted, "earlier loop")), color: term.Dim}})
	}
	before := int64(-1)
	for i := range v.Loops {
		l := &v.Loops[i]
		t.rows = append(t.rows, p.loop(v, l, before))
		before = l.StateSize
	}
	if !p.st.TTY { // no glyphs
		t.columns = t.columns[1:]
		for i := range t.rows {
			t.rows[i] = t.rows[i][1:]
		}
	}
	p.b.WriteByte('\n')
	return t.write(&p.b, p.st)
}

func (p *page) loop(v *Show, l *loopPart, before int64) []cell {
	mark, color := "", term.Plain
	state, ck := "…", "…"
	what := term.Line(l.Headline)
	if l.Session != nil {
		what = list(what, "before the branch")
	}
	switch {
	case l.Completed:
		ck = fmt.Sprintf("ck-%d", l.Loop)
		state = bytesOf(l.StateSize)
		if change := l.StateSize - before; before >= 0 && change == 0 {
			state = "="
		} else if before >= 0 && change > 0 {
			state = "+" + bytesOf(change)
		} else if before >= 0 {
			state = bytesOf(change)
		}
		if l.StateSeq == 0 {
			state = "none"
		}
		if s := &v.Session; what == "" && s.Status.Ended() && s.Status != stint.Completed && l == &v.Loops[len(v.Loops)-1] && v.Line == s.At.Line {
			what = list(string(s.Status), term.Line(s.Reason))
		}
	case l.Open:
		mark, color = "▸", term.Bold
		what = list(string(v.Status), term.Line(l.Error))
	default:
		mark, color, ck = "✗", term.Red, "-"
		what = list("not finished", term.Line(l.Error))
	}
	if l.Completed && l.Error != "" {
		what = list(what, "failed before: "+term.Line(l.Error))
	}
	if l.Attempts > 1 {
		what = list(fmt.Sprintf("attempt %d", l.Attempts), what)
	}
	cost := "-"
	if l.Cost > 0 {
		cost = Dollars(l.Cost)
	}
	row := plain(mark, fmt.Sprint(l.Loop), p.at(l.Began), took(msec(l.TookMS)), fmt.Sprint(l.Steps), countOf(int64(l.Tokens)), cost, state, ck, what)
	for i := range row {
		row[i].color = color
	}
	return row
}

// effects prints what the open loop did outside, and what is not known of it.
func (p *page) effects(row *stint.Row, v *Show) {
	if !row.Session.At.Open || v.Line != row.Session.At.Line {
		return
	}
	p.b.WriteByte('\n')
	ck := checkpointName(row.Session.Checkpoint)
	if ck == "-" {
		ck = "the beginning"
	}
	p.b.WriteString(p.st.Paint(term.Dim, term.Pad("Effects", labelWidth, false)) + fmt.Sprintf("  since %s: %s\n", ck, orNone(len(v.Effects), "step")))
	for _, st := range v.Effects {
		p.b.WriteString(p.step(&st) + "\n")
	}
	for _, st := range v.Steps {
		if st.Outcome == "running" {
			p.b.WriteString(p.step(&st) + "\n")
			continue
		}
		p.b.WriteString(p.st.Paint(term.Red, p.step(&st)) + "\n")
		ask := askAbout(row, &st)
		p.b.WriteString(strings.Repeat(" ", labelWidth+4) + ask + "\n")
	}
}

// askAbout says how a step in doubt is settled.
func askAbout(row *stint.Row, st *StepInfo) string {
	s := &row.Session
	switch {
	case s.Status.Ended():
		return "nobody knows whether it happened: look before you begin the session again"
	case s.Status != stint.Waiting || s.Wait.For != stint.ForDoubt:
		return "the next runner settles it by the agent's rule, or asks"
	case s.Wait.Step.String() != st.Step:
		return "asked about once " + s.Wait.Step.String() + " is settled"
	}
	return fmt.Sprintf("did it happen? stint resolve %s:%s --happened|--not|--unknown", row.Short, st.Step)
}

func orNone(n int, what string) string {
	if n == 0 {
		return "none"
	}
	return plural(n, what)
}

func (p *page) step(st *StepInfo) string {
	word := st.Outcome
	switch word {
	case "running":
		word = "under way"
	case "doubt":
		word = "IN DOUBT"
	}
	return strings.Repeat(" ", labelWidth+2) + list(st.Step+" "+term.Line(st.Name), string(st.Effect), word, p.at(st.At), "key "+st.Key[:8])
}

// familyLine names the sessions that came from this one, the newest first, a few of them.
func familyLine(v *Show) string {
	const most = 5
	var all []string
	for i, r := range v.Related.Items {
		if i == most {
			all = append(all, fmt.Sprintf("%d more: stint tree %s", v.Related.Children+v.Related.Branches-most, v.Short))
			break
		}
		all = append(all, fmt.Sprintf("%s (%s) %s", term.Line(r.Name), r.Short, r.Status))
	}
	return list(all...)
}
