package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/compare"
	"github.com/stint-dev/stint/internal/term"
	"github.com/stint-dev/stint/internal/view"
	"github.com/stint-dev/stint/internal/worktree"
	"github.com/stint-dev/stint/journal"
)

// printSession prints one session as JSON.
func (a *app) printSession(row *stint.Row) error {
	return a.printJSON(view.NewSession(row, time.Now()))
}

// followPoll is how often a follower looks for new entries.
const followPoll = 100 * time.Millisecond

// shownChanges is how many values are listed of what differs between two states.
const shownChanges = 10

// planLine is one line of a plan.
func planLine(b *strings.Builder, label, format string, args ...any) {
	fmt.Fprintf(b, "  %-9s %s\n", label, fmt.Sprintf(format, args...))
}

// planSteps lists steps of a plan, five a line, under what note says that they mean.
func planSteps(b *strings.Builder, label string, steps []journal.EffectStep, note func(*journal.EffectStep) string) {
	var notes []string
	by := map[string][]string{}
	for i := range steps {
		n := note(&steps[i])
		if by[n] == nil {
			notes = append(notes, n)
		}
		by[n] = append(by[n], fmt.Sprintf("%s %s", steps[i].Pos, term.Line(steps[i].Name)))
	}
	for _, n := range notes {
		for names := range slices.Chunk(by[n], 5) {
			planLine(b, label, "%s", strings.Join(names, ", "))
			label = ""
		}
		for part := range strings.SplitSeq(n, "; ") {
			planLine(b, "", "  %s", part)
		}
	}
}

// planKeeps is what stays as it is.
func planKeeps(k *journal.Keeps) string {
	spent := ""
	if k.Usage.Cost > 0 {
		spent = " · " + view.Dollars(k.Usage.Cost) + " already spent"
	}
	switch k.Loops {
	case 0:
		return "no loop" + spent
	case 1:
		return "loop 1 · " + counted(k.Steps, "step") + spent
	}
	return fmt.Sprintf("loops 1 to %d · %s%s", k.Loops, counted(k.Steps, "step"), spent)
}

// planAdvice is the loop to go back to, and why, where that is not what p does.
func planAdvice(b *strings.Builder, row *stint.Row, p *journal.Plan) {
	if p.Advice == "" {
		return
	}
	where := fmt.Sprintf("from the end of loop %d", p.Advised)
	switch {
	case p.Advised == p.From:
		where = "the same loop"
	case p.Advised == 0:
		where = "from the beginning"
	}
	planLine(b, "Advised", "%s: %s", where, term.Line(p.Advice))
	if p.Advised != p.From {
		planLine(b, "", "stint restart %s --from %d --dry-run  shows that plan", row.Short, p.Advised)
	}
}

// goOnText is the plan, for people, of a restart that stays on its line: p is that of
// going back to the newest checkpoint.
func goOnText(row *stint.Row, p *journal.Plan) string {
	var b strings.Builder
	s := &row.Session
	fmt.Fprintf(&b, "Plan: go on with %s (%s) on the same line\n", term.Line(s.Name), row.Short)
	planLine(&b, "Keeps", "%s", planKeeps(&p.Keeps))
	if s.At.Open {
		planLine(&b, "Again", "loop %d; its finished steps are answered from the journal", s.At.Loop)
	} else {
		planLine(&b, "Next", "loop %d", s.Checkpoint.Loop+1)
	}
	planLine(&b, "State", "as it is, %d bytes", p.State.Before)
	label := "In doubt"
	if row.Live {
		label = "Under way"
	}
	planSteps(&b, label, p.InDoubt, func(*journal.EffectStep) string {
		if row.Live {
			return "comes to its end first"
		}
		if s.Status == stint.Waiting && s.Wait.For == stint.ForDoubt {
			return "may have taken effect: say which first"
		}
		return "may have taken effect: settled by the agent's rule, or asked about"
	})
	planAdvice(&b, row, p)
	fmt.Fprintf(&b, "Nothing was changed. To do it: stint restart %s --run\n", row.Short)
	return b.String()
}

// planText is the plan of going back, or of a branch, for people.
func planText(row *stint.Row, p *journal.Plan, o *backOptions) string {
	var b strings.Builder
	line := func(label, format string, args ...any) { planLine(&b, label, format, args...) }
	from := fmt.Sprintf("the end of loop %d", p.From)
	if p.From == 0 {
		from = "the beginning"
	}
	word := "from"
	if o.kind == stint.Rollback {
		word = "to"
	}
	fmt.Fprintf(&b, "Plan: %s %s (%s) %s %s\n", o.verb(), term.Line(row.Session.Name), row.Short, word, from)
	if !p.Branch {
		line("Keeps", "%s", planKeeps(&p.Keeps))
	}
	if p.Leaves.Loops > 0 {
		line("Leaves", "%s on line %s/%d (readable, not deleted)", counted(p.Leaves.Loops, "loop"), row.Short, p.Leaves.Line)
	}
	switch {
	case p.State.Unknown:
		line("State", "the newest state cannot be read; goes back to one of %d bytes", p.State.After)
	case len(p.State.Changes) == 0:
		line("State", "unchanged")
	default:
		line("State", "%d bytes become %d", p.State.Before, p.State.After)
		for _, text := range compare.Lines(&p.State, shownChanges) {
			line("", "%s", text)
		}
	}
	if p.Agent != nil {
		line("Agent", "%s as it is now, which differs from the one that is pinned", term.Line(o.agent))
		for _, text := range compare.Lines(p.Agent, shownChanges) {
			line("", "%s", text)
		}
	}
	note := func(e *journal.EffectStep) string { return e.Note }
	planSteps(&b, "Outside", p.Outside, note)
	planSteps(&b, "In doubt", p.InDoubt, func(e *journal.EffectStep) string {
		if found, _, ok := strings.Cut(e.Note, "; "); ok && o.command.InDoubt == journal.SkipDoubt && e.Effect == stint.Once {
			return found + "; it is not done again, and gets a marker as its result"
		}
		return e.Note
	})
	label := "Re-asks"
	for i := range p.Decided {
		q := &p.Decided[i]
		line(label, "%s %s, %s %s", q.Pos, term.Line(q.Name), q.Outcome, term.Line(q.Note))
		label = ""
	}
	if t := p.Resume.Input + p.Resume.CacheRead + p.Resume.CacheWrite; t > 0 {
		line("Resumes", "the next call of the model reads about %s tokens again", term.Grouped(t))
	}
	planAdvice(&b, row, p)
	return b.String()
}

// planFiles is what becomes of the files that differ from those at the loop.
func planFiles(row *stint.Row, p *journal.Plan, c *worktree.Changes) string {
	var b strings.Builder
	switch {
	case c == nil:
		return ""
	case !c.Known:
		planLine(&b, "Files", "nobody knows which differ: %s", term.Line(c.Why))
	case len(c.Files) == 0:
		planLine(&b, "Files", "none differ")
	case p.Branch:
		planLine(&b, "Files", "the branch begins without %s:", counted(len(c.Files), "change"))
	default:
		planLine(&b, "Files", "%s, kept on the branch of line %s/%d:", counted(len(c.Files), "change"), row.Short, p.Leaves.Line)
	}
	for i, f := range c.Files {
		if i == shownChanges {
			planLine(&b, "", "and %d more: stint workspace diff %s", len(c.Files)-i, row.Short)
			break
		}
		planLine(&b, "", "%-8s %s", f.Kind, term.Line(f.Name))
	}
	return b.String()
}

func or(s, def string) string {
	if s == "" {
		return def
	}
	return s
}
