package sqlite

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"time"

	"zombiezen.com/go/sqlite"

	"github.com/stint-dev/stint"
)

// A session is kept in three parts by how often they change: the columns of
// heads, with every append; mark and sum, with every checkpoint; and the rest, a
// row of sessions with a JSON object, when it moves from status to status.

// rest is what sessions.fold holds; what has a column of its own is not in it.
type rest struct {
	Runtime  string            `json:"runtime,omitempty"`
	Pin      stint.Hash        `json:"pin,omitzero"`
	Trigger  stint.Trigger     `json:"trigger"`
	Parent   stint.Parent      `json:"parent,omitzero"`
	Labels   map[string]string `json:"labels,omitempty"`
	Limits   stint.Limits      `json:"limits,omitzero"`
	Reason   string            `json:"reason,omitempty"`
	Wait     *stint.Wait       `json:"waiting,omitempty"`
	Failures []time.Time       `json:"failures,omitempty"`
	Deaths   int               `json:"deaths,omitempty"`
	Error    string            `json:"error,omitempty"`
	Said     stint.Seq         `json:"said,omitempty"`
	Ended    time.Time         `json:"ended,omitzero"`

	Approvals []stint.Approval `json:"approvals,omitempty"`
}

func foldOf(s *stint.Session) ([]byte, error) {
	return json.Marshal(&rest{
		s.Agent.Runtime, s.Agent.Pin, s.Trigger, s.Parent, s.Labels, s.Limits, s.Reason, s.Wait,
		s.At.Failures, s.At.Deaths, s.At.Error, s.At.Said, s.Ended,
		s.At.Approvals,
	})
}

// sameIdentity reports whether the columns of sessions that never change in
// practice are equal.
func sameIdentity(a, b *stint.Session) bool {
	return a.Name == b.Name && a.Agent.Name == b.Agent.Name && a.Agent.Runtime == b.Agent.Runtime &&
		a.Trigger.Kind == b.Trigger.Kind && a.Created.Equal(b.Created) && a.Family == b.Family
}

// sameRest reports whether the rows of sessions are equal. It may say no for
// equal ones.
func sameRest(a, b *stint.Session) bool {
	return a.Status == b.Status && a.Wait == b.Wait && a.Reason == b.Reason && a.At.Deaths == b.At.Deaths && a.At.Error == b.At.Error && a.At.Said == b.At.Said &&
		len(a.At.Failures) == len(b.At.Failures) && a.Ended == b.Ended && a.Agent.Pin == b.Agent.Pin && a.Limits == b.Limits &&
		a.Parent == b.Parent && a.Trigger == b.Trigger && sameIdentity(a, b) &&
		slices.Equal(a.At.Failures, b.At.Failures) && sameList(a.At.Approvals, b.At.Approvals) && maps.Equal(a.Labels, b.Labels)
}

// sameList reports whether a and b are one list. Lists of a session are never changed in
// place, so one that is equal and not the same is rare.
func sameList(a, b []stint.Approval) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// sameMark reports whether mark and sum are equal.
func sameMark(a, b *stint.Session) bool {
	return a.Checkpoint == b.Checkpoint && a.Totals == b.Totals && a.Epoch == b.Epoch
}

// appendMark writes the checkpoint, but for its sum, the totals, and the epoch of
// the newest entry; what is reserved, if anything is, or there is more; and how many tools
// were called and children spawned, if any were. The views name the members.
func appendMark(b []byte, s *stint.Session) []byte {
	c, t, u := &s.Checkpoint, &s.Totals, &s.Totals.Usage
	b = append(b, '[')
	for i, v := range [...]int64{
		int64(c.Seq), int64(c.Loop), micros(c.At), int64(c.Rank), c.Weight, c.Size,
		int64(t.Loops), int64(t.Steps), int64(t.Errors), int64(t.Attempts), int64(t.Restarts), int64(t.Running),
		u.Input, u.Output, u.CacheRead, u.CacheWrite, int64(u.Cost), s.Epoch,
	} {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, v, 10)
	}
	r := t.Reserved
	more := [...]int64{r.Input, r.Output, r.CacheRead, r.CacheWrite, int64(r.Cost), int64(t.Tools), int64(t.Children)}
	last := len(more)
	if t.Tools == 0 && t.Children == 0 {
		if last -= 2; r == (stint.Usage{}) { // mostly, and every checkpoint writes this
			last = 0
		}
	}
	for _, v := range more[:last] {
		b = strconv.AppendInt(append(b, ','), v, 10)
	}
	return append(b, ']')
}

func parseMark(b []byte, s *stint.Session) error {
	var v [25]int64
	if err := json.Unmarshal(b, &v); err != nil {
		return err
	}
	s.Checkpoint = stint.Checkpoint{
		Seq: stint.Seq(v[0]), Loop: int(v[1]), At: moment(v[2]), Rank: int(v[3]), Weight: v[4], Size: v[5],
		Sum: s.Checkpoint.Sum,
	}
	s.Totals = stint.Totals{
		Loops: int(v[6]), Steps: int(v[7]), Errors: int(v[8]), Attempts: int(v[9]), Restarts: int(v[10]), Running: time.Duration(v[11]),
		Usage:    stint.Usage{Input: v[12], Output: v[13], CacheRead: v[14], CacheWrite: v[15], Cost: stint.Money(v[16])},
		Reserved: stint.Usage{Input: v[18], Output: v[19], CacheRead: v[20], CacheWrite: v[21], Cost: stint.Money(v[22])},
		Tools:    int(v[23]), Children: int(v[24]),
	}
	s.Epoch = v[17]
	return nil
}

// Flags of a place.
const (
	flagOpen   = 1
	flagParked = 2
)

func flagsOf(p *stint.Place) (f int64) {
	if p.Open {
		f |= flagOpen
	}
	if p.Parked {
		f |= flagParked
	}
	return f
}

// bindHead binds the columns of heads that every append changes to the parameters
// 1 to 10 of st.
func bindHead(st *sqlite.Stmt, s *stint.Session) {
	p := &s.At
	st.BindInt64(1, int64(p.Line))
	st.BindInt64(2, int64(p.Loop))
	st.BindInt64(3, int64(p.Attempt))
	st.BindInt64(4, int64(p.Step))
	st.BindInt64(5, flagsOf(p))
	st.BindInt64(6, micros(p.Since))
	st.BindInt64(7, int64(p.LoopSeq))
	st.BindInt64(8, int64(s.Head))
	st.BindBytes(9, s.HeadHash[:])
	st.BindInt64(10, micros(s.Updated))
}

// statusID numbers the statuses; those up to 2 are open.
func statusID(s stint.Status) (int64, bool) {
	switch s {
	case stint.Pending:
		return 1, true
	case stint.Waiting:
		return 2, true
	case stint.Completed:
		return 3, true
	case stint.Failed:
		return 4, true
	case stint.Stopped:
		return 5, true
	case stint.Canceled:
		return 6, true
	}
	return 0, false
}

func statusOf(id int64) stint.Status {
	for _, s := range [...]stint.Status{stint.Pending, stint.Waiting, stint.Completed, stint.Failed, stint.Stopped, stint.Canceled} {
		if n, _ := statusID(s); n == id {
			return s
		}
	}
	return ""
}

// messageKinds are the kinds of messages; the place of one is its number.
func messageKinds() [13]stint.MessageKind {
	return [...]stint.MessageKind{
		stint.Prompt, stint.Decision, stint.Pause, stint.Resume, stint.Interrupt, stint.Stop, stint.Kill,
		stint.Restart, stint.Rollback, stint.Resolve, stint.SetLimit, stint.ChildEnd, stint.BranchOff,
	}
}

func messageID(k stint.MessageKind) int64 {
	for i, other := range messageKinds() {
		if other == k {
			return int64(i)
		}
	}
	return -1
}

// wakesOf returns the bits of the kinds of messages that make s claimable.
func wakesOf(s *stint.Session) (bits int64) {
	for i, k := range messageKinds() {
		if s.WokenBy(k) && s.Accepts(k) == nil {
			bits |= 1 << i
		}
	}
	return bits
}

// kindID numbers the kinds of entries as the table names does; 0: it is not fixed.
func kindID(k stint.Kind) int64 {
	switch k {
	case stint.SessionCreated:
		return 1
	case stint.SessionWaiting:
		return 2
	case stint.SessionResumed:
		return 3
	case stint.SessionReleased:
		return 4
	case stint.SessionEnded:
		return 5
	case stint.LineStarted:
		return 6
	case stint.LoopStarted:
		return 7
	case stint.LoopCompleted:
		return 8
	case stint.LoopFailed:
		return 9
	case stint.StepRequested:
		return 10
	case stint.StepCompleted:
		return 11
	case stint.StepFailed:
		return 12
	case stint.StepResolved:
		return 13
	case stint.MessageTaken:
		return 14
	case stint.MessageRefused:
		return 15
	case stint.LimitChanged:
		return 16
	case stint.OutputWritten:
		return 17
	case stint.ApprovalRequested:
		return 18
	case stint.ApprovalDecided:
		return 19
	case stint.SystemRecorded:
		return 20
	}
	return 0
}

// actorID numbers the actors without a name; 0: it is not fixed.
func actorID(a stint.Actor) int64 {
	switch a {
	case stint.ByEngine:
		return 50
	case stint.ByAgent:
		return 51
	case stint.ByPolicy:
		return 52
	}
	return 0
}

// fixedNames are the rows of the table names that every store has.
func fixedNames() map[int64]string {
	all := map[int64]string{}
	for _, k := range [...]stint.Kind{
		stint.SessionCreated, stint.SessionWaiting, stint.SessionResumed, stint.SessionReleased, stint.SessionEnded, stint.LineStarted,
		stint.LoopStarted, stint.LoopCompleted, stint.LoopFailed, stint.StepRequested, stint.StepCompleted, stint.StepFailed, stint.StepResolved,
		stint.MessageTaken, stint.MessageRefused, stint.LimitChanged, stint.OutputWritten, stint.ApprovalRequested, stint.ApprovalDecided,
		stint.SystemRecorded,
	} {
		all[kindID(k)] = string(k)
	}
	for _, a := range [...]stint.Actor{stint.ByEngine, stint.ByAgent, stint.ByPolicy} {
		all[actorID(a)] = string(a)
	}
	return all
}
