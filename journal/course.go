package journal

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/stint-dev/stint"
)

// Loop is one loop of a line, summed up from the entries that began and ended it.
type Loop struct {
	Number   int       `json:"loop"`
	Line     int       `json:"line"` // the line that it took place on; a later one may have kept it
	Attempts int       `json:"attempts"`
	Start    stint.Seq `json:"start"`         // entry that began its first attempt
	End      stint.Seq `json:"end,omitempty"` // entry that ended it: its loop.completed, or the end of the session or line that broke it off
	Began    time.Time `json:"began"`
	Ended    time.Time `json:"ended,omitzero"`
	// Checkpoint is what the loop left, zero unless it completed. Where a line
	// began with another state than that, it is the line's.
	Checkpoint stint.Checkpoint `json:"checkpoint,omitzero"`
	Rollup
	Headline string `json:"headline,omitempty"`
	Error    string `json:"error,omitempty"` // of the newest attempt that failed, also where a later one completed
	Open     bool   `json:"open,omitempty"`  // begun, not completed, and nothing ended it
}

// Completed reports whether the loop ended well: a restart can keep it.
func (l *Loop) Completed() bool { return l.Checkpoint.Loop == l.Number }

// Course returns the loops of a line in order: those that it kept of the line
// before it, then its own. Line -1 is the current one.
//
// es is in order of seq and begins with session.created. It may be the whole
// journal, or only the entries of the kinds session.created, line.started,
// loop.started, loop.completed, loop.failed and session.ended, as a reader can
// select them. Errors: [stint.NotFound] names the lines there are, [stint.Invalid]
// is for entries that do not begin with the first one, [stint.Corrupt] for ones
// that cannot follow each other.
func Course(es []stint.Entry, line int) ([]Loop, error) {
	c, err := courseOf(es, line)
	return c.loops, err
}

// CheckpointAt returns the checkpoint that a restart from loop of the current
// line begins at: the loop's own, or for loop 0 what the line began with, which
// is the zero Checkpoint unless a restart gave the session another state. es and
// errors are as with [Course]; a loop that did not complete is [stint.NotFound]
// and names those that did.
func CheckpointAt(es []stint.Entry, loop int) (stint.Checkpoint, error) {
	c, err := courseOf(es, -1)
	if err != nil {
		return stint.Checkpoint{}, err
	}
	return c.checkpoint(loop)
}

// course is a line while its entries are read.
type course struct {
	session stint.ID
	line    int
	first   int              // loops before this one and it are those of the session that this one branched off
	base    stint.Checkpoint // before the loop after first
	loops   []Loop
}

func courseOf(es []stint.Entry, line int) (course, error) {
	var c course
	if len(es) == 0 || es[0].Kind != stint.SessionCreated {
		err := stint.Invalid.Errorf("course", "the entries do not begin with session.created")
		err.Hint = "read the journal from its first entry"
		return c, err
	}
	d, err := Decode[Created](&es[0])
	if err != nil {
		return c, err
	}
	c.session, c.first = es[0].Session, base(d.Parent)
	c.base = d.checkpoint(&es[0])
	for i := range es {
		e := &es[i]
		if e.Kind == stint.LineStarted && c.line == line {
			c.breakOff(e)
			return c, nil
		}
		if err := c.add(e); err != nil {
			return c, err
		}
	}
	if line >= 0 && line != c.line || line < -1 {
		err := stint.NotFound.Errorf("course", "there is no line %d; lines 0 to %d exist", line, c.line)
		err.Session = c.session
		return course{}, err
	}
	return c, nil
}

func (c *course) add(e *stint.Entry) error {
	switch e.Kind {
	case stint.LineStarted:
		return c.lineStarted(e)
	case stint.LoopStarted:
		return c.loopStarted(e)
	case stint.LoopCompleted:
		return c.loopCompleted(e)
	case stint.LoopFailed:
		l, err := c.current(e)
		if err != nil {
			return err
		}
		d, err := Decode[LoopFailed](e)
		l.Error = d.Error
		return err
	case stint.SessionEnded:
		c.breakOff(e)
	}
	return nil
}

func (c *course) lineStarted(e *stint.Entry) error {
	d, err := Decode[LineStarted](e)
	if err != nil {
		return err
	}
	if _, err := c.checkpoint(d.From); err != nil {
		return corrupt(e, "keeps loop %d, which line %d did not complete", d.From, c.line)
	}
	c.line, c.loops = e.Pos.Line, c.loops[:d.From-c.first]
	if d.State.Enc == "" {
		return nil
	}
	cp := d.checkpoint(e)
	if d.From == c.first {
		c.base = cp
		return nil
	}
	c.loops[d.From-c.first-1].Checkpoint = cp
	return nil
}

func (c *course) loopStarted(e *stint.Entry) error {
	if n := len(c.loops); n > 0 && !c.loops[n-1].Completed() {
		l := &c.loops[n-1]
		if e.Pos.Loop != l.Number {
			return corrupt(e, "begins loop %d while loop %d is not completed", e.Pos.Loop, l.Number)
		}
		l.Attempts, l.Open, l.End, l.Ended = e.Pos.Attempt, true, 0, time.Time{}
		return nil
	}
	if e.Pos.Loop != c.last()+1 {
		return corrupt(e, "begins loop %d after loop %d", e.Pos.Loop, c.last())
	}
	c.loops = append(c.loops, Loop{
		Number: e.Pos.Loop, Line: e.Pos.Line, Attempts: e.Pos.Attempt, Start: e.Seq, Began: e.At, Open: true,
	})
	return nil
}

func (c *course) loopCompleted(e *stint.Entry) error {
	l, err := c.current(e)
	if err != nil {
		return err
	}
	d, err := Decode[LoopCompleted](e)
	if err != nil {
		return err
	}
	before, err := c.checkpoint(l.Number - 1)
	if err != nil {
		return err
	}
	l.Checkpoint = d.checkpoint(e, before)
	l.Rollup, l.Headline, l.Open, l.End, l.Ended = d.Rollup, d.Headline, false, e.Seq, e.At
	return nil
}

// current returns the loop that e, an entry within a loop, belongs to.
func (c *course) current(e *stint.Entry) (*Loop, error) {
	n := len(c.loops)
	if n == 0 || e.Pos.Loop != c.last() || c.loops[n-1].Completed() {
		return nil, corrupt(e, "belongs to loop %d, which nothing began or which is completed", e.Pos.Loop)
	}
	return &c.loops[n-1], nil
}

// breakOff notes that e ended the open loop, if there is one.
func (c *course) breakOff(e *stint.Entry) {
	if n := len(c.loops); n > 0 && c.loops[n-1].Open {
		l := &c.loops[n-1]
		l.Open, l.End, l.Ended = false, e.Seq, e.At
	}
}

// last is the newest loop that has begun.
func (c *course) last() int { return c.first + len(c.loops) }

func (c *course) checkpoint(loop int) (stint.Checkpoint, error) {
	switch i := loop - c.first; {
	case i == 0:
		return c.base, nil
	case i > 0 && i <= len(c.loops) && c.loops[i-1].Completed():
		return c.loops[i-1].Checkpoint, nil
	case loop >= 0 && i < 0:
		err := stint.NotFound.Errorf("checkpoint", "loop %d is one of the session that this one branched off at loop %d", loop, c.first)
		err.Session = c.session
		err.Hint = "branch that one: stint branch PARENT --from " + strconv.Itoa(loop)
		return stint.Checkpoint{}, err
	}
	err := stint.NotFound.Errorf("checkpoint", "line %d has no completed loop %d; %s", c.line, loop, c.completed())
	err.Session = c.session
	err.Hint = "give one of those, or " + strconv.Itoa(c.first) + " for the beginning"
	return stint.Checkpoint{}, err
}

// completed says in words which loops of the line can be kept.
func (c *course) completed() string {
	n := len(c.loops)
	if i := slices.IndexFunc(c.loops, func(l Loop) bool { return !l.Completed() }); i >= 0 {
		n = i
	}
	switch n {
	case 0:
		return "none is completed yet"
	case 1:
		return fmt.Sprintf("loop %d is completed", c.first+1)
	}
	return fmt.Sprintf("loops %d to %d are completed", c.first+1, c.first+n)
}
