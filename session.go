package stint

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// Status is where a session stands in its life. The fold of a journal is never
// [Running]: see [Row.Status].
type Status string

// The statuses, who moves a session out of each, and what a crash leaves.
const (
	// Pending: could go on now and nobody holds it. A runner's claim moves it. A
	// crash of a runner leaves a session here, with the reason "interrupted".
	Pending Status = "pending"
	// Running: pending under a live lease. Its runner moves it; the lease's end
	// makes it pending again. Never stored.
	Running Status = "running"
	// Waiting: parked, or held with a question open. What [Wait.For] names moves it.
	Waiting Status = "waiting"
	// Completed: the stop condition was met. Ended; only a restart or a rollback,
	// which append, move an ended session.
	Completed Status = "completed"
	// Failed: an error, or recovery exhausted. Ended.
	Failed Status = "failed"
	// Stopped: a deadline, or a limit or health rule under on_limit: stop. Ended.
	Stopped Status = "stopped"
	// Canceled: by a person or a parent session. Ended.
	Canceled Status = "canceled"
)

// Ended reports whether s is one of the four ends.
func (s Status) Ended() bool {
	return s == Completed || s == Failed || s == Stopped || s == Canceled
}

// WaitFor is what a waiting session waits for.
type WaitFor string

// What a session can wait for. Each is left by what its line says.
const (
	ForApproval WaitFor = "approval" // a decision, its expiry or invalidation
	ForMessage  WaitFor = "message"  // a prompt
	ForTime     WaitFor = "time"     // Until
	ForChild    WaitFor = "child"    // the end of a child session
	ForRetry    WaitFor = "retry"    // Until: the next attempt after an error
	ForBudget   WaitFor = "budget"   // a raised limit; What names it
	ForDoubt    WaitFor = "doubt"    // a person's word on a step or a divergence
	ForHealth   WaitFor = "health"   // a person, after a rule stopped a fruitless agent
	ForOperator WaitFor = "operator" // resume, after pause or rollback
)

// Wait is why a session is parked and what wakes it. Exactly the fields that make
// sense for For are set.
type Wait struct {
	For      WaitFor       `json:"for"`
	Since    time.Time     `json:"since,omitzero"`
	Until    time.Time     `json:"until,omitzero"`     // when time alone wakes it; zero: never
	What     string        `json:"what,omitempty"`     // one line for a person: the limit, the question, the error
	Who      string        `json:"who,omitempty"`      // whose move it is, where that is known
	Approval string        `json:"approval,omitempty"` // id of the open approval
	Step     Position      `json:"step,omitzero"`      // the step in doubt or diverged
	Wakes    []MessageKind `json:"wakes,omitempty"`    // message kinds that make it claimable, besides control
}

// Session is the fold of a journal: nothing in it comes from anywhere else, so
// folding the entries again gives an equal value. Times are UTC, whole
// microseconds. A Session is a value; its slices and maps are never changed in
// place, so copies may be shared between goroutines.
type Session struct {
	ID         ID                `json:"id"`
	Family     ID                `json:"family"` // root of the tree of children and branches: key space, budget, unit of erasure
	Name       string            `json:"name"`
	Agent      AgentRef          `json:"agent"`
	Trigger    Trigger           `json:"trigger"`
	Parent     Parent            `json:"parent,omitzero"`
	Labels     map[string]string `json:"labels,omitempty"`
	Limits     Limits            `json:"limits"`
	Status     Status            `json:"status"`
	Reason     string            `json:"reason,omitempty"`
	Wait       *Wait             `json:"waiting,omitempty"`
	At         Place             `json:"at"`
	Checkpoint Checkpoint        `json:"checkpoint"`
	Head       Seq               `json:"head"`
	HeadHash   Hash              `json:"head_hash"`
	Epoch      int64             `json:"epoch"` // of the newest entry
	Totals     Totals            `json:"totals"`
	Created    time.Time         `json:"created"`
	Updated    time.Time         `json:"updated"`
	Ended      time.Time         `json:"ended,omitzero"`
}

// AgentRef names the agent of a session and the exact definition it is pinned to.
type AgentRef struct {
	Name    string `json:"name"`
	Runtime string `json:"runtime"` // what can drive it: "exec", or "go/NAME" for code registered with an engine
	Pin     Hash   `json:"pin"`     // SHA-256 of the resolved definition in the first entry
}

// Trigger is what started a session.
type Trigger struct {
	Kind string    `json:"kind"`          // prompt, schedule, hook, session
	Ref  string    `json:"ref,omitempty"` // schedule or hook name, delivery id, parent's id
	Due  time.Time `json:"due,omitzero"`  // nominal time of a schedule's occurrence
}

// OfServer reports whether the session is the system journal of the store: what the server
// is asked and what it did. It takes no orders as a session does, since a message to it is
// an order to the server.
func (t Trigger) OfServer() bool { return t.Kind == systemTrigger }

// systemTrigger is the kind of the trigger of the system journal.
const systemTrigger = "system"

// Parent is where a child session or a branch comes from.
type Parent struct {
	Session ID     `json:"session"`
	Seq     Seq    `json:"seq"`
	Hash    Hash   `json:"hash"`
	Branch  bool   `json:"branch,omitempty"` // begun from the parent's state, not spawned by it
	Loop    int    `json:"loop,omitempty"`
	Detach  bool   `json:"detach,omitempty"`
	Reason  string `json:"reason,omitempty"`
}

// Place is where a session is in its course, and how the open loop fares. What
// went wrong feeds the brake on restarts.
type Place struct {
	Line    int       `json:"line"`
	Loop    int       `json:"loop"`              // of the newest loop begun on this line; 0 before the first
	Attempt int       `json:"attempt"`           // at that loop
	Step    int       `json:"step"`              // newest step with an entry in it
	Open    bool      `json:"open,omitempty"`    // the loop has begun and not completed
	Parked  bool      `json:"parked,omitempty"`  // the open loop was left by a park, a drain or a fence: going on is not a new attempt
	Since   time.Time `json:"since,omitzero"`    // when the running stretch began
	LoopSeq Seq       `json:"loop_seq,omitzero"` // seq of the first entry of the open loop, or of the one to come; 0: it has none
	Said    Seq       `json:"said,omitzero"`     // seq of the first prompt taken for the loop after the open one; 0: none

	Failures []time.Time `json:"failures,omitempty"` // of attempts at the open loop, the newest five
	Deaths   int         `json:"deaths,omitempty"`   // runners that died since the last checkpoint
	Error    string      `json:"error,omitempty"`    // the newest error since then, one line

	// Approvals are the questions that steps of the open loop asked and whose steps have
	// no outcome yet, and those about orders that nobody has decided, in the order of
	// their asking.
	Approvals []Approval `json:"approvals,omitempty"`
}

// Checkpoint is the state at the end of a loop, as a reference: the bytes are the
// body of entry Seq, a snapshot or a delta against an earlier one.
type Checkpoint struct {
	Seq    Seq       `json:"seq"`  // entry that carries it; 0: there is no state yet
	Loop   int       `json:"loop"` // 0: the initial context
	At     time.Time `json:"at,omitzero"`
	Rank   int       `json:"rank"`   // checkpoints since the last full snapshot
	Weight int64     `json:"weight"` // bytes of the deltas since it, along the chain
	Size   int64     `json:"size"`   // bytes of the state
	Sum    Hash      `json:"sum"`    // SHA-256 of the state
}

// Limits bound a session. Zero means no limit. They live with the session, so a
// restart does not refresh them.
type Limits struct {
	Wall     time.Duration `json:"wall_ns,omitempty"` // running time: waiting does not count
	Idle     time.Duration `json:"idle_ns,omitempty"` // running time without a step, a progress report or output
	Deadline time.Time     `json:"deadline,omitzero"` // calendar; always stops
	Loops    int           `json:"loops,omitempty"`
	Steps    int           `json:"steps,omitempty"`
	Tokens   int64         `json:"tokens,omitempty"`
	Cost     Money         `json:"cost,omitempty"`
	// ToolCalls is how many steps of kind tool may come to an outcome.
	ToolCalls int `json:"tool_calls,omitempty"`
	// Children is how many sessions may be spawned below this one, over all of its life
	// and by children of children too; -1: none.
	Children int  `json:"children,omitempty"`
	Stop     bool `json:"stop,omitempty"` // on_limit: stop, instead of waiting for a raised limit
}

// Totals is what a session used, up to its last checkpoint and over all lines.
type Totals struct {
	Loops    int           `json:"loops"`
	Steps    int           `json:"steps"`
	Errors   int           `json:"errors"` // failed steps and failed loops
	Attempts int           `json:"attempts"`
	Restarts int           `json:"restarts"`
	Running  time.Duration `json:"running_ns"`
	Usage    Usage         `json:"usage"`
	Reserved Usage         `json:"reserved,omitzero"`  // by steps whose outcome is not recorded; what a crash left open stays
	Tools    int           `json:"tools,omitempty"`    // steps of kind tool, those that failed included
	Children int           `json:"children,omitempty"` // sessions that it spawned, or was about to
}

// Ready is from when on a runner may claim the session without a message: now for
// a pending one (the zero time), for a waiting one the time that ends its wait or
// its deadline, whichever is first, for each the time at which a question about an order
// expires, and ok false for anything else.
func (s *Session) Ready() (t time.Time, ok bool) {
	switch s.Status {
	case Pending, Running:
		return time.Time{}, true
	case Waiting:
		t = s.Limits.Deadline
		if s.Wait != nil && !s.Wait.Until.IsZero() && (t.IsZero() || s.Wait.Until.Before(t)) {
			t = s.Wait.Until
		}
	}
	for i := range s.At.Approvals { // a question about an order ends in any status
		if a := &s.At.Approvals[i]; a.OfOrder() && !a.Until.IsZero() && (t.IsZero() || a.Until.Before(t)) {
			t = a.Until
		}
	}
	return t, !t.IsZero()
}

// asksOfOrder reports whether a decision about an order is open.
func (s *Session) asksOfOrder() bool {
	return slices.ContainsFunc(s.At.Approvals, func(a Approval) bool { return a.OfOrder() })
}

// WokenBy reports whether a message of kind k makes the session claimable:
// always for control, for a decision that an order waits for, and for the kinds that its
// wait names.
func (s *Session) WokenBy(k MessageKind) bool {
	if k.Control() || s.Status != Waiting || k == Decision && s.asksOfOrder() {
		return true
	}
	return s.Wait != nil && slices.Contains(s.Wait.Wakes, k)
}

// Accepts tells whether a message of kind k may be sent to the session now: an
// ended session takes nothing but a restart, a rollback or a branch, and the decision
// about one of them. The error is a [Conflict] with the way out as its hint.
func (s *Session) Accepts(k MessageKind) error {
	if !s.Status.Ended() || k == Restart || k == Rollback || k == BranchOff || k == Decision && s.asksOfOrder() {
		return nil
	}
	return &Error{Code: Conflict, Op: "send", Session: s.ID,
		Err:  errEnded(s.Status),
		Hint: "stint restart " + s.ID.String() + " --say TEXT  begins it again with a message"}
}

type errEnded Status

func (e errEnded) Error() string { return "the session has ended: " + string(e) }

// Money is an amount in billionths of a US dollar, so that a price per token adds
// up without rounding.
type Money int64

// String writes a decimal number of dollars with at least two places: "0.21".
func (m Money) String() string {
	b, _ := m.MarshalText()
	return string(b)
}

// MarshalText writes what [Money.String] returns.
func (m Money) MarshalText() ([]byte, error) {
	var b []byte
	if m < 0 {
		b = append(b, '-')
	}
	u := uint64(m)
	if m < 0 {
		u = -u
	}
	b = append(b, formatUint(u/1e9, 1)...)
	frac := formatUint(u%1e9, 9)
	for len(frac) > 2 && frac[len(frac)-1] == '0' {
		frac = frac[:len(frac)-1]
	}
	return append(append(b, '.'), frac...), nil
}

func formatUint(u uint64, width int) string {
	var d []byte
	for u > 0 || len(d) < width {
		d = append(d, byte('0'+u%10))
		u /= 10
	}
	slices.Reverse(d)
	return string(d)
}

// UnmarshalText reads a decimal number of dollars with at most nine places, below
// nine billion; other input is [Invalid].
func (m *Money) UnmarshalText(b []byte) error {
	s := string(b)
	whole, frac, point := strings.Cut(strings.TrimPrefix(s, "-"), ".")
	frac += strings.Repeat("0", max(0, 9-len(frac)))
	v, err := strconv.ParseUint(whole+frac, 10, 63)
	if err != nil || len(frac) > 9 || whole == "" && !point || strings.HasSuffix(s, ".") {
		return Invalid.Errorf("money", "%q is not an amount of dollars like 5 or 0.25", b)
	}
	*m = Money(v)
	if s[0] == '-' {
		*m = -*m
	}
	return nil
}

// Usage is what a step used. Counts add up; what a provider does not report is 0.
type Usage struct {
	Input      int64 `json:"input_tokens,omitempty"`
	Output     int64 `json:"output_tokens,omitempty"`
	CacheRead  int64 `json:"cache_read_tokens,omitempty"`
	CacheWrite int64 `json:"cache_write_tokens,omitempty"`
	Cost       Money `json:"cost,omitempty"`
}

// Add returns the sum of u and v.
func (u Usage) Add(v Usage) Usage {
	return Usage{u.Input + v.Input, u.Output + v.Output, u.CacheRead + v.CacheRead,
		u.CacheWrite + v.CacheWrite, u.Cost + v.Cost}
}

// Tokens is the number that a token limit counts: input, output and cache writes.
func (u Usage) Tokens() int64 { return u.Input + u.Output + u.CacheWrite }
