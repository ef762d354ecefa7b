package view

import (
	"fmt"
	"strings"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/term"
)

// group is where a session stands in a list for people: what needs them first.
type group int

const (
	needsYou group = iota
	wasInterrupted
	isRunning
	isWaiting
	isPending
	hasEnded
)

func (g group) String() string {
	return [...]string{"NEEDS YOU", "INTERRUPTED", "RUNNING", "WAITING", "PENDING", "ENDED"}[g]
}

func groupOf(row *stint.Row) group {
	status, reason := row.Status()
	switch {
	case status.Ended():
		return hasEnded
	case status == stint.Running:
		return isRunning
	case NeedsPerson(&row.Session):
		return needsYou
	case status == stint.Waiting:
		return isWaiting
	case reason == interrupted:
		return wasInterrupted
	}
	return isPending
}

// NeedsPerson reports whether s waits for something that only a person brings: a
// decision, a verdict on a step in doubt, a raised limit, or a resume.
func NeedsPerson(s *stint.Session) bool {
	if s.Status != stint.Waiting || s.Wait == nil {
		return false
	}
	switch s.Wait.For {
	case stint.ForApproval, stint.ForDoubt, stint.ForBudget, stint.ForHealth, stint.ForOperator:
		return true
	}
	return false
}

// bad reports whether s ended in another way than completed, or waits because
// something is wrong: a step in doubt, a used-up limit, a health rule.
func bad(s *stint.Session) bool {
	if s.Status == stint.Waiting && s.Wait != nil {
		return s.Wait.For == stint.ForDoubt || s.Wait.For == stint.ForBudget || s.Wait.For == stint.ForHealth
	}
	return s.Status.Ended() && s.Status != stint.Completed
}

// StatusWord is the status as one word: "running", "waiting:doubt",
// "pending:interrupted".
func StatusWord(row *stint.Row) string {
	status, reason := row.Status()
	switch {
	case status == stint.Waiting && row.Session.Wait != nil:
		return string(status) + ":" + string(row.Session.Wait.For)
	case status == stint.Pending && reason == interrupted:
		return string(status) + ":" + reason
	}
	return string(status)
}

// shape is the status as a glyph: shape as well as colour says it.
func shape(row *stint.Row) (glyph string, c term.Color) {
	status, reason := row.Status()
	switch status {
	case stint.Running:
		return "●", term.Green
	case stint.Completed:
		return "✓", term.Green
	case stint.Failed:
		return "✗", term.Red
	case stint.Stopped:
		return "■", term.Yellow
	case stint.Canceled:
		return "⊘", term.Dim
	case stint.Pending:
		if reason == interrupted {
			return "▲", term.Yellow
		}
		return "◌", term.Blue
	}
	if w := row.Session.Wait; w != nil {
		switch w.For {
		case stint.ForHealth, stint.ForDoubt:
			return "▲", term.Red
		case stint.ForOperator:
			return "⏸", term.Yellow
		case stint.ForTime, stint.ForRetry, stint.ForChild, stint.ForMessage:
			return "◔", term.Blue
		}
	}
	return "◐", term.Yellow
}

// nowLine says what a session does or waits for, in one line that is safe to print.
// On a terminal lengths of time are relative to now.
func nowLine(row *stint.Row, now time.Time, tty bool) string {
	line, elapsed := nowParts(row, now, tty)
	return line + elapsed
}

// nowParts is nowLine with its end apart, which stays when the line is cut.
func nowParts(row *stint.Row, now time.Time, tty bool) (line, elapsed string) {
	s := &row.Session
	status, reason := row.Status()
	unread := ""
	if row.Unread > 0 && !status.Ended() {
		unread = plural(row.Unread, "message") + " unread"
	}
	switch {
	case status == stint.Waiting && s.Wait != nil:
		line = waitLine(s.Wait, untilWords(s.Wait, now, tty))
	case status == stint.Running:
		what, at := doingNow(row)
		if line = what; line == "" {
			line = fmt.Sprintf("loop %d", max(s.At.Loop, s.Checkpoint.Loop+1))
		}
		if tty && !at.IsZero() {
			elapsed = " " + span(now.Sub(at))
		}
	case reason == interrupted:
		line = fmt.Sprintf("runner gone in loop %d", s.At.Loop)
		if !s.At.Open {
			line = fmt.Sprintf("runner gone after loop %d", s.At.Loop)
		}
	case status == stint.Pending:
		line = list(reason, "nobody runs it")
	default:
		line = reason
	}
	return term.Line(list(line, unread)), elapsed
}

// takeUp is the command that runs a session which nobody runs; empty for any other.
func takeUp(row *stint.Row) string {
	if status, _ := row.Status(); status != stint.Pending {
		return ""
	}
	return "stint resume " + row.Short + " --run"
}

// doingNow is what the agent says that it is doing, and since when; nothing where that
// was said in an earlier loop or stretch, since when the agent has said nothing.
func doingNow(row *stint.Row) (what string, since time.Time) {
	s := &row.Session
	begun := s.At.Since
	if s.Checkpoint.At.After(begun) {
		begun = s.Checkpoint.At
	}
	switch {
	case !row.Live:
		return "", time.Time{}
	case row.Lease.Now == "" || row.Lease.NowAt.Before(begun):
		return "", begun
	}
	return row.Lease.Now, row.Lease.NowAt
}

// untilWords says when time alone ends a wait: on a terminal as a length of time.
func untilWords(w *stint.Wait, now time.Time, tty bool) string {
	if w.Until.IsZero() || !tty {
		return untilAt(w, iso(w.Until))
	}
	left := span(w.Until.Sub(now) + time.Second - 1)
	if w.For == stint.ForRetry {
		return "again in " + left
	}
	return "in " + left
}

// untilAt is untilWords with a time.
func untilAt(w *stint.Wait, at string) string {
	switch {
	case w.Until.IsZero():
		return ""
	case w.For == stint.ForRetry:
		return "again at " + at
	}
	return "until " + at
}

// waitLine says what a wait is for; until is when time alone ends it.
func waitLine(w *stint.Wait, until string) string {
	who := ""
	if w.Who != "" && w.For != stint.ForOperator {
		who = "asks " + w.Who
	}
	what := w.What
	if what == "" && until == "" {
		what = "a " + string(w.For)
	}
	if w.For == stint.ForOperator && w.Who != "" && !strings.Contains(what, w.Who) {
		what += " by " + w.Who
	}
	if w.For == stint.ForRetry {
		return list(until, what, who)
	}
	return list(what, until, who)
}

// costOf is what a session cost, with its cap where it has one.
func costOf(s *stint.Session) string {
	used, most := s.Totals.Usage.Cost, s.Limits.Cost
	switch {
	case most > 0:
		return Dollars(used) + "/" + Dollars(most)
	case used == 0:
		return "-"
	}
	return Dollars(used)
}
