package view

import (
	"context"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/journal"
)

// Class is what a log line is about, for choosing.
type Class string

// The classes. An entry can be of several.
const (
	ClassModel   Class = "model"   // steps of models
	ClassTool    Class = "tool"    // steps of tools
	ClassStep    Class = "step"    // all other steps
	ClassMessage Class = "message" // messages taken and refused
	ClassState   Class = "state"   // checkpoints and new lines
	ClassOutput  Class = "output"  // what the agent wrote
	ClassLoop    Class = "loop"    // beginnings and ends of loops
	ClassSession Class = "session" // everything else about the session
)

// Classes returns all of them.
func Classes() []Class {
	return []Class{ClassModel, ClassTool, ClassStep, ClassMessage, ClassState, ClassOutput, ClassLoop, ClassSession}
}

// Level is how much an entry matters.
type Level int

// The levels.
const (
	Info  Level = iota
	Warn        // something failed or stands still, and may mend itself or be mended
	Error       // something has ended badly
)

// LogQuery says which entries of a session a log shows. The zero value but for
// Line is all of them.
type LogQuery struct {
	After stint.Seq // greater than
	Until stint.Seq // at most; 0: no bound
	Line  int       // entries written on this line; -1: on all
	From  int       // loops from this one; 0: no bound
	To    int       // loops up to this one; 0: no bound
	Step  int       // only this step; 0: all
	Sub   int       // and only this member of its group
	Kinds []Class   // any of these; nil: all
	Level Level     // at least
	Since time.Time // at or after; zero: no bound
	Till  time.Time // before; zero: no bound
	// Grep chooses output by its lines, anything else by the text that [Log] makes
	// of it.
	Grep *regexp.Regexp
	// Streams chooses output by its stream; nil: all.
	Streams []string
}

// ParseLoops reads a range of loops: "3", "3..5", "3..", "..5".
func ParseLoops(s string) (from, to int, err error) {
	a, b, ranged := strings.Cut(s, "..")
	if !ranged {
		b = a
	}
	for _, p := range []struct {
		text string
		to   *int
	}{{a, &from}, {b, &to}} {
		if p.text == "" && ranged && s != ".." {
			continue
		}
		if *p.to, err = strconv.Atoi(p.text); err != nil || *p.to < 1 {
			err := stint.Invalid.Errorf("loop", "%q is no range of loops", clip(s))
			err.Hint = "write 3, 3..5, 3.. or ..5"
			return 0, 0, err
		}
	}
	if to > 0 && to < from {
		err := stint.Invalid.Errorf("loop", "%q ends before it begins", clip(s))
		err.Hint = "write the lower loop first: " + strconv.Itoa(to) + ".." + strconv.Itoa(from)
		return 0, 0, err
	}
	return from, to, nil
}

// matches reports whether q wants e, as far as that is to be seen without its
// body or the text that is made of it.
func (q *LogQuery) matches(e *stint.Entry) bool {
	at := e.Pos
	switch {
	case e.Seq <= q.After || q.Until > 0 && e.Seq > q.Until:
		return false
	case q.Line >= 0 && at.Line != q.Line:
		return false
	case at.Loop < q.From || q.To > 0 && (at.Loop > q.To || at.Loop == 0):
		return false
	case q.Step > 0 && at.Step != q.Step || q.Sub > 0 && at.Sub != q.Sub:
		return false
	case !q.Since.IsZero() && e.At.Before(q.Since) || !q.Till.IsZero() && !e.At.Before(q.Till):
		return false
	case q.Kinds != nil && !slices.ContainsFunc(classesOf(e), func(c Class) bool { return slices.Contains(q.Kinds, c) }):
		return false
	}
	return levelOf(e) >= q.Level && q.wantsStream(e)
}

func (q *LogQuery) wantsStream(e *stint.Entry) bool {
	if q.Streams == nil || e.Kind != stint.OutputWritten {
		return true
	}
	d, err := journal.Decode[journal.Output](e)
	return err == nil && slices.Contains(q.Streams, d.Stream)
}

// classesOf are the classes of e.
func classesOf(e *stint.Entry) []Class {
	switch e.Kind {
	case stint.StepRequested, stint.StepCompleted, stint.StepFailed:
		d, err := journal.Decode[journal.StepRequested](e)
		switch {
		case err == nil && d.Kind == stint.Model:
			return []Class{ClassModel}
		case err == nil && d.Kind == stint.Tool:
			return []Class{ClassTool}
		}
		return []Class{ClassStep}
	case stint.StepResolved:
		return []Class{ClassStep, ClassTool, ClassModel}
	case stint.MessageTaken, stint.MessageRefused:
		return []Class{ClassMessage}
	case stint.LoopStarted, stint.LoopFailed:
		return []Class{ClassLoop}
	case stint.LoopCompleted:
		return []Class{ClassLoop, ClassState}
	case stint.LineStarted:
		return []Class{ClassSession, ClassState}
	case stint.OutputWritten:
		return []Class{ClassOutput}
	}
	return []Class{ClassSession}
}

// levelOf is how much e matters.
func levelOf(e *stint.Entry) Level {
	switch e.Kind {
	case stint.StepFailed, stint.MessageRefused, stint.LeaseLost:
		return Warn
	case stint.LoopFailed:
		if d, err := journal.Decode[journal.LoopFailed](e); err != nil || d.Final {
			return Error
		}
		return Warn
	case stint.SessionWaiting:
		d, err := journal.Decode[journal.Waiting](e)
		if err != nil || d.For == stint.ForRetry || NeedsPerson(&stint.Session{Status: stint.Waiting, Wait: &d}) {
			return Warn
		}
	case stint.SessionEnded:
		d, err := journal.Decode[journal.Ended](e)
		switch {
		case err != nil || d.Outcome == stint.Failed:
			return Error
		case d.Outcome != stint.Completed:
			return Warn
		}
	}
	return Info
}

// read calls fn for the entries that q wants, oldest first; with last over 0 only
// for the newest so many of those that choose wants too. An error of fn ends it.
func (q *LogQuery) read(ctx context.Context, r stint.Reader, id stint.ID, last int, choose func(*stint.Entry) (bool, error), fn func(*stint.Entry) error) error {
	if last <= 0 {
		return eachEntry(ctx, r, stint.Range{Session: id, After: q.After, Until: q.Until}, func(e *stint.Entry) error {
			if !q.matches(e) {
				return nil
			}
			return fn(e)
		})
	}
	var found []stint.Entry // newest first
	for until := q.Until; ; {
		page, err := r.Entries(ctx, stint.Range{Session: id, After: q.After, Until: until, Last: true, Limit: entryPage})
		if err != nil {
			return err
		}
		for i := len(page) - 1; i >= 0 && len(found) < last; i-- {
			if !q.matches(&page[i]) {
				continue
			}
			ok, err := choose(&page[i])
			if err != nil {
				return err
			}
			if ok {
				found = append(found, page[i])
			}
		}
		if len(page) < entryPage || len(found) >= last || page[0].Seq <= q.After+1 {
			break
		}
		until = page[0].Seq - 1
	}
	for i := len(found) - 1; i >= 0; i-- {
		if err := fn(&found[i]); err != nil {
			return err
		}
	}
	return nil
}
