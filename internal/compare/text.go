package compare

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/stint-dev/stint/internal/term"
	"github.com/stint-dev/stint/internal/view"
	"github.com/stint-dev/stint/journal"
)

// Write writes a Diff for people. Colours are those of st.
func (d *Diff) Write(w io.Writer, st term.Style) error {
	p := &printer{st: st}
	p.line("a  %s", side(&d.A))
	p.line("b  %s", side(&d.B))
	next := d.first
	for i := range d.Loops {
		l := &d.Loops[i]
		if n := max(l.A, l.B); d.Compared > 1 {
			p.sames(next, n-1)
			next = n + 1
		}
		p.loop(l)
	}
	if d.Compared > 1 {
		p.sames(next, d.first+d.Compared-1)
	} else if d.Same {
		p.line("The same in all that was compared")
	}
	switch {
	case d.Total == nil:
	case d.Compared > 1:
		p.line("")
		p.line("All loops")
		p.cost(d.Total)
	case d.Same:
		p.cost(d.Total)
	}
	_, err := io.WriteString(w, p.b.String())
	return err
}

func side(s *Side) string {
	return fmt.Sprintf("%s (%s) line %d", term.Line(s.Name), s.Short, s.Line)
}

type printer struct {
	b  strings.Builder
	st term.Style
}

func (p *printer) line(format string, args ...any) {
	p.b.WriteString(strings.TrimRight(fmt.Sprintf(format, args...), " ") + "\n")
}

// sames tells of loops that do not differ.
func (p *printer) sames(from, to int) {
	switch {
	case from == to:
		p.line("Loop %d is the same", from)
	case from < to:
		p.line("Loops %d to %d are the same", from, to)
	}
}

func (p *printer) loop(l *Loop) {
	p.line("")
	switch {
	case l.A == 0:
		p.line("Loop %d is on b alone", l.B)
	case l.B == 0:
		p.line("Loop %d is on a alone", l.A)
	case l.A == l.B:
		p.line("Loop %d", l.A)
	default:
		p.line("Loop %d and loop %d", l.A, l.B)
	}
	if l.State != nil {
		p.line("  State     %d bytes and %d", l.State.Before, l.State.After)
		p.changes(l.State)
	}
	if len(l.Calls) > 0 {
		p.line("  Calls")
		for i := range l.Calls {
			p.call(&l.Calls[i])
		}
		p.more(l.CallMore)
	}
	if len(l.Text) > 0 {
		p.line("  Text")
		for _, t := range l.Text {
			p.op(t.Op, term.Line(t.Line))
		}
		p.more(l.TextMore)
	}
	if l.Cost != nil {
		p.cost(l.Cost)
	}
}

func (p *printer) more(n int) {
	if n > 0 {
		p.line("      and %d more", n)
	}
}

// op writes what is on one side, in the colour of that.
func (p *printer) op(op Op, text string) {
	color := map[Op]term.Color{Removed: term.Red, Added: term.Green, Changed: term.Yellow}[op]
	p.line("    %s", p.st.Paint(color, string(op)+" "+text))
}

func (p *printer) call(c *Call) {
	s := cmp.Or(c.A, c.B)
	at := s.Step
	if c.Op == Changed && c.A.Step != c.B.Step {
		at += " and " + c.B.Step
	}
	text := fmt.Sprintf("%s %s %s (%s)", at, s.Kind, term.Line(s.Name), s.Effect)
	if c.Op != Changed {
		p.op(c.Op, text+outcome(s))
		return
	}
	p.op(Changed, text)
	if !sameEffect(c.A, c.B) {
		p.line("        effect  %s → %s", c.A.Effect, c.B.Effect)
	}
	switch {
	case c.Input != nil:
		p.detail("input", c.Input)
	case !sameInput(c.A, c.B):
		p.line("        input  %s → %s, of which only the hash is on record", orNone(c.A.Hash), orNone(c.B.Hash))
	}
	if c.A.Outcome != c.B.Outcome || c.A.Error != c.B.Error {
		p.line("        outcome %s →%s", outcome(c.A), outcome(c.B))
	}
	if was, is := strings.Join(c.A.Calls, ", "), strings.Join(c.B.Calls, ", "); was != is {
		p.line("        calls  %s → %s", orNone(term.Line(was)), orNone(term.Line(is)))
	}
	if c.Result != nil {
		p.detail("result", c.Result)
	}
}

func outcome(s *Step) string {
	if s.Error == "" {
		return " " + s.Outcome
	}
	return " " + s.Outcome + ": " + term.Line(s.Error)
}

func orNone(s string) string { return cmp.Or(s, "(none)") }

// shownChanges is how many values are listed of one difference.
const shownChanges = 10

func (p *printer) changes(c *journal.StateChange) {
	for _, text := range Lines(c, shownChanges) {
		p.line("    %s", text)
	}
}

func (p *printer) detail(what string, c *journal.StateChange) {
	for _, text := range Lines(c, shownChanges) {
		p.line("        %s %s", what, text)
	}
}

// Lines says what differs between two values, a line each, the first most of them.
func Lines(s *journal.StateChange, most int) (out []string) {
	for i, c := range s.Changes {
		if i == most {
			return append(out, fmt.Sprintf("and %d more (--json lists them)", len(s.Changes)-most+s.More))
		}
		out = append(out, fmt.Sprintf("%s  %s → %s", term.Line(cmp.Or(c.Path, "(all)")), value(c.Old, c.OldSize), value(c.New, c.NewSize)))
	}
	return out
}

func value(v []byte, size int) string {
	switch {
	case size == 0:
		return "(none)"
	case v == nil:
		return fmt.Sprintf("(%d bytes)", size)
	}
	return term.Line(string(v))
}

func (p *printer) cost(c *Cost) {
	for i, f := range []Figures{c.A, c.B} {
		label := ""
		if i == 0 {
			label = "Cost"
		}
		p.line("  %-9s %c  loops %d, attempts %d, steps %d, errors %d · tokens in %d, out %d · %s · %v", label, "ab"[i],
			f.Loops, f.Attempts, f.Steps, f.Errors, f.Usage.Input, f.Usage.Output, view.Dollars(f.Usage.Cost), time.Duration(f.MS)*time.Millisecond)
	}
}
