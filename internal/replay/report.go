package replay

import (
	"encoding/json"
	"fmt"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/past"
	"github.com/stint-dev/stint/journal"
)

// Report is how a replay went.
type Report struct {
	Session stint.ID `json:"session"`
	Line    int      `json:"line"`
	From    int      `json:"from"` // the loops that were to be done again
	To      int      `json:"to"`
	// Loops are those that came out as recorded, in order.
	Loops []Loop `json:"loops"`
	// Divergence is the first difference, which ended the replay; nil: there is none.
	Divergence *Divergence `json:"divergence"`
}

// Loop is a loop that came out as recorded.
type Loop struct {
	Loop     int    `json:"loop"`
	Line     int    `json:"line"` // that it took place on
	Attempt  int    `json:"attempt"`
	Steps    int    `json:"steps"`
	Headline string `json:"headline"`
}

// What differs first.
type What string

// A divergence is one of these.
const (
	OtherStep   What = "step"    // the agent asks for another step than is on record
	NoStep      What = "extra"   // it asks for one that is not on record
	LeftStep    What = "missing" // it ends its loop without one that is
	OtherState  What = "state"   // the loop leaves another state
	OtherEnd    What = "end"     // the session ends, or does not, or otherwise
	OtherWait   What = "wait"    // it waits, or does not, or for something else
	AgentFailed What = "error"   // the agent fails, where its loop was completed
)

// Divergence is the first difference between what is on record and what the agent does.
type Divergence struct {
	What What           `json:"what"`
	Pos  stint.Position `json:"pos"`
	Seq  stint.Seq      `json:"seq"`  // of the newest entry on record about it; 0: there is none
	Text string         `json:"text"` // one line
	// Recorded and Offered are both sides, where steps differ.
	Recorded *Step `json:"recorded"`
	Offered  *Step `json:"offered"`
	// Change is what differs between the inputs of two steps, or between two states. Its
	// before is what is on record.
	Change *journal.StateChange `json:"change"`
}

// Step is one side of a divergence. Size is that of the input, and -1 where only its hash is
// on record: that of a step that may be done again, and is long.
type Step struct {
	Name   string          `json:"name"`
	Kind   stint.StepKind  `json:"kind"`
	Effect stint.Effect    `json:"effect"`
	Hash   string          `json:"input_hash"`
	Size   int             `json:"input_size"`
	Input  json.RawMessage `json:"input"`
}

// Options say what is done again.
type Options struct {
	Line     int // -1: the current one
	From, To int // the first and the last loop; 0: of those that were completed
	// Settled shows the agent each loop as one whose steps are all on record, and not as its
	// last entry saw it: for agents that would start a program for what was not.
	Settled bool
	// Passed is told of each loop that came out as recorded; nil: nobody is.
	Passed func(Loop)
	// Output gets what the agent logs, from many goroutines; nil: it is dropped.
	Output func(stream string, p []byte)
}

// divergeStep is a divergence of two steps. Where both inputs are known it says what
// differs.
func divergeStep(what What, pos stint.Position, recorded, offered *Step) *Divergence {
	d := &Divergence{What: what, Pos: pos, Recorded: recorded, Offered: offered}
	switch {
	case recorded == nil:
		d.Text = fmt.Sprintf("step %s is not on record, and the agent asks for %s", pos, offered)
	case offered == nil:
		d.Text = fmt.Sprintf("step %s was %s, and the agent ends the loop without it", pos, recorded)
	default:
		d.Text = fmt.Sprintf("step %s was %s, and the agent asks for %s", pos, recorded, offered)
		if recorded.String() == offered.String() {
			d.Text = fmt.Sprintf("step %s was %s, and the agent asks for it with another input", pos, recorded)
		}
		if recorded.Hash != offered.Hash && recorded.Size >= 0 {
			c := past.Compare(recorded.Input, offered.Input)
			d.Change = &c
		}
	}
	return d
}

// String says it in words.
func (s *Step) String() string {
	return fmt.Sprintf("%s %q (%s)", s.Kind, s.Name, s.Effect)
}
