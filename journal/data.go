package journal

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"time"

	"github.com/stint-dev/stint"
)

// Created is the data of session.created. The body is the input, which the first loop gets
// as its first message; of a branch it is the state that the branch begins with, whole, so
// that nothing of it has to be looked for in its parent.
type Created struct {
	Family  stint.ID          `json:"family"`
	Name    string            `json:"name"`
	Agent   stint.AgentRef    `json:"agent"`
	Config  json.RawMessage   `json:"config,omitempty"` // the resolved definition that Agent.Pin is the hash of
	Trigger stint.Trigger     `json:"trigger"`
	Parent  stint.Parent      `json:"parent,omitzero"`
	Labels  map[string]string `json:"labels,omitempty"`
	Limits  stint.Limits      `json:"limits"`
	State   StateRef          `json:"state,omitzero"` // of a branch: the body's; without one it begins with no state
	// Skipped is, of a branch, the steps in doubt of its parent that it does not do: the first
	// equal step gets the marker of [Unknown] as its result.
	Skipped []DoubtedStep `json:"skipped,omitempty"`
}

// base is the loop behind whose checkpoint a session begins: its own are counted from
// there. Loops before it are those of the session that it branched off.
func base(p stint.Parent) int {
	if p.Branch {
		return p.Loop
	}
	return 0
}

// LineStarted is the data of line.started: the session goes back to a checkpoint,
// and what came after stays readable on the line that it leaves. The body, if
// there is one, is the state that replaces the checkpoint's.
type LineStarted struct {
	From       int              `json:"from"` // keeps loops 1..From
	Checkpoint stint.Checkpoint `json:"checkpoint"`
	State      StateRef         `json:"state,omitzero"` // of the body
	Reason     string           `json:"reason,omitempty"`
	Plan       stint.Hash       `json:"plan,omitzero"`
	Park       bool             `json:"park,omitempty"` // rollback: wait for the operator
	// InDoubt is what was chosen for the steps in doubt that are left behind, which
	// Doubts names; see [DoubtChoice].
	InDoubt DoubtChoice   `json:"in_doubt,omitempty"`
	Doubts  []DoubtedStep `json:"doubts,omitempty"`
	// Agent is what the session is pinned to from here on, with its definition in Config;
	// nil: as before.
	Agent  *stint.AgentRef `json:"agent,omitempty"`
	Config json.RawMessage `json:"config,omitempty"`
	Ran    time.Duration   `json:"ran_ns,omitempty"` // see [Parked]
}

// DoubtedStep is a step in doubt that a line left behind.
type DoubtedStep struct {
	Pos stint.Position `json:"pos"`
	StepRequested
}

// LoopStarted is the data of loop.started.
type LoopStarted struct {
	Why string `json:"why"` // first, next, wake, retry, recover
}

// LeaseLost is the data of lease.lost, which the next holder writes.
type LeaseLost struct {
	Prior stint.Prior `json:"prior"` // died or expired
}

// Rollup sums up the steps of a loop over all its attempts.
type Rollup struct {
	Steps   int         `json:"steps,omitempty"`
	Models  int         `json:"models,omitempty"`
	Tools   int         `json:"tools,omitempty"`
	Effects int         `json:"effects,omitempty"` // steps that were not read
	Errors  int         `json:"errors,omitempty"`
	Usage   stint.Usage `json:"usage,omitzero"`
}

// LoopCompleted is the data of loop.completed, the wide roll-up that lists read.
// The body is the state or its delta, as State says.
type LoopCompleted struct {
	Rollup
	MS       int64         `json:"ms"` // of the attempt that completed it, from its beginning to its end
	State    StateRef      `json:"state"`
	Headline string        `json:"headline,omitempty"`
	Ran      time.Duration `json:"ran_ns,omitempty"` // see [Parked]
}

// LoopFailed is the data of loop.failed: an attempt ended with an error.
type LoopFailed struct {
	Error string         `json:"error"`
	Step  stint.Position `json:"step,omitzero"`
	Final bool           `json:"final,omitempty"`  // no further attempt can mend it
	Hint  string         `json:"hint,omitempty"`   // of a [stint.Error]: what to do next
	Ran   time.Duration  `json:"ran_ns,omitempty"` // see [Parked]
}

// StepRequested is the data of step.requested. The body is the step's input.
type StepRequested struct {
	Name   string         `json:"name"`
	Kind   stint.StepKind `json:"kind"`
	Effect stint.Effect   `json:"effect"`
	Input  string         `json:"input,omitempty"` // short hash of the input
	// Asked is the hash of the input that the agent gave, where a person put another in its
	// place; Rule is the rule of a policy that decided about the step.
	Asked string `json:"asked,omitempty"`
	Rule  string `json:"rule,omitempty"`
	// Child says that the step begins a session. Its intent is recorded first, so that who
	// ends the session knows that there may be one.
	Child bool `json:"child,omitempty"`
	// Reserve is what the step may use at most; in the data of its outcome, what that
	// frees. A reservation whose outcome never comes stays reserved.
	Reserve stint.Usage `json:"reserve,omitzero"`
}

// Same reports whether r and o describe the same step, whatever they reserve, and whatever
// input a person put in the place of the agent's.
func (r StepRequested) Same(o StepRequested) bool { return r.given() == o.given() }

// given is the step as the agent gave it.
func (r StepRequested) given() StepRequested {
	r.Reserve, r.Rule = stint.Usage{}, ""
	if r.Asked != "" {
		r.Input, r.Asked = r.Asked, ""
	}
	return r
}

// ApprovalRequested is the data of approval.requested. The body is the step's input, or
// where the question is about an order, its [Command]; then Name is the verb, the position
// names no step, and the actor of the entry is who gave the order.
type ApprovalRequested struct {
	StepRequested
	Text   string          `json:"text"`
	Why    string          `json:"why,omitempty"`
	Schema json.RawMessage `json:"schema,omitempty"` // of the answer; nil: a yes or a no is all that is asked
	// What a policy wants, if one asks: who may decide, how many of them, until when, and
	// whether they may change the input. Policy is its verdict, whole.
	Approvers []string        `json:"approvers,omitempty"`
	Quorum    int             `json:"quorum,omitempty"`
	Until     time.Time       `json:"until,omitzero"`
	Editable  bool            `json:"editable,omitempty"`
	Policy    json.RawMessage `json:"policy,omitempty"`
	Order     string          `json:"order,omitempty"` // id of the message that gave the order
}

// ApprovalChanged is the data of approval.changed: what became of a question that stays open.
// With Yes the actor of the entry is one of several who have to say so; else it has other
// approvers and another deadline from here on.
type ApprovalChanged struct {
	Approval  stint.Seq `json:"approval"`
	Yes       bool      `json:"yes,omitempty"`
	Edited    string    `json:"edited,omitempty"` // as in [ApprovalDecided]; the yeses before it do not count
	Note      string    `json:"note,omitempty"`
	Approvers []string  `json:"approvers,omitempty"`
	Until     time.Time `json:"until,omitzero"`
}

// ApprovalDecided is the data of approval.decided: the end of a question. Who it was is
// the entry's actor; its body is the answer, where one was asked for.
type ApprovalDecided struct {
	Approval stint.Seq           `json:"approval"` // the entry that asked
	State    stint.ApprovalState `json:"state"`
	Note     string              `json:"note,omitempty"` // one line, the person's
	// Edited is the short hash of the input that takes the place of the one that was asked
	// about, if the person changed it; the body is that input.
	Edited string `json:"edited,omitempty"`
	// Branches are the sessions that a yes to a branch made, or that go on from a question
	// with another answer.
	Branches []stint.ID `json:"branches,omitempty"`
}

// Decision is the Data of a decision message. Its Body is the answer, where one was asked
// for, or the changed input. The message's id is its MessageID, so that a store takes one
// decision of an approval and no other, or of each person where several have to say yes.
type Decision struct {
	Approval stint.Seq           `json:"approval"`
	State    stint.ApprovalState `json:"state"` // approved or denied
	Note     string              `json:"note,omitempty"`
	Nonce    string              `json:"nonce,omitempty"` // tells two decisions of the same words apart
	Edit     bool                `json:"edit,omitempty"`  // the body is the input to do it with
	Roles    []string            `json:"roles,omitempty"` // of the person, as whoever let them in knows
	Each     stint.Actor         `json:"each,omitempty"`  // who decides, where several have to
	// Branches are what else is decided: for each a branch goes on from the question with
	// that. Of them only the State, the Note and the Answer, where one is asked for, count.
	Branches []Decision      `json:"branches,omitempty"`
	Answer   json.RawMessage `json:"answer,omitempty"`
}

// MessageID is the id of the message that has this decision: the same for all decisions
// of one approval.
func (d Decision) MessageID() string {
	id := "decision-" + strconv.FormatInt(int64(d.Approval), 10)
	if d.Each == "" {
		return id
	}
	sum := sha256.Sum256([]byte(d.Each))
	return id + "-" + hex.EncodeToString(sum[:8])
}

// StepDone is the data of step.completed and step.failed. The body is the result, or
// the [Failure].
type StepDone struct {
	StepRequested
	Args     json.RawMessage `json:"args,omitempty"` // the input itself where no step.requested carries it, at most 2 KiB
	MS       int64           `json:"ms"`
	Usage    stint.Usage     `json:"usage,omitzero"`
	Error    string          `json:"error,omitempty"`    // one line, for lists
	Definite bool            `json:"definite,omitempty"` // the error is the step's result, not a try that failed
	Final    bool            `json:"final,omitempty"`
	// Copied says that the session which this one branched off did the step, within the loop
	// at which it did: it counts there, and is answered from the journal here.
	Copied bool `json:"copied,omitempty"`
}

// Failure is the body of a definite step.failed, as JSON: the error as the agent got
// it and gets it whenever the loop begins again. It is there where the line of
// [StepDone] does not say all of it.
type Failure struct {
	Text  string        `json:"text"`               // valid UTF-8; see the engine for its bound
	Code  stint.Code    `json:"code,omitempty"`     // of a [stint.Error]
	Hint  string        `json:"hint,omitempty"`     // of a [stint.Error]
	After time.Duration `json:"after_ns,omitempty"` // of a [stint.Retry]
}

// Failure returns the definite error that the step ended with. body is the body of
// its entry; one that is no Failure is [stint.Corrupt].
func (d *StepDone) Failure(body []byte) (Failure, error) {
	if len(body) == 0 {
		return Failure{Text: d.Error}, nil
	}
	var f Failure
	if err := json.Unmarshal(body, &f); err != nil {
		return f, stint.Corrupt.Errorf("journal", "the recorded error of step %q cannot be read: %v", d.Name, err)
	}
	return f, nil
}

// StepResolved is the data of step.resolved. The body is the result, with
// [Happened].
type StepResolved struct {
	Verdict Verdict `json:"verdict"`
	Reason  string  `json:"reason,omitempty"`
	// Skipped is the step of an earlier line for which this one gets the marker of
	// [Unknown], see [SkipDoubt].
	Skipped *stint.Position `json:"skipped,omitempty"`
}

// Waiting is the data of session.waiting.
type Waiting = stint.Wait

// Parked is Waiting with what else a runner knows when it parks a session.
//
// Ran is the running time that the entry closes, by a clock of the runner that
// setting the time does not move; an entry without one closes the time between the
// clocks of two entries, and at least none.
type Parked struct {
	Waiting
	Hint string        `json:"hint,omitempty"` // of the error that What tells of
	Ran  time.Duration `json:"ran_ns,omitempty"`
}

// Resumed is the data of session.resumed.
type Resumed struct {
	Why    string `json:"why"` // message, child, time, resume, restart, resolved, limit
	Reason string `json:"reason,omitempty"`
}

// Released is the data of session.released.
type Released struct {
	Why string        `json:"why"`              // drain, message
	Ran time.Duration `json:"ran_ns,omitempty"` // see [Parked]
}

// Ended is the data of session.ended. The body is the result.
type Ended struct {
	Outcome stint.Status  `json:"outcome"`
	Reason  string        `json:"reason,omitempty"`
	Hint    string        `json:"hint,omitempty"`   // of the error that Reason tells of
	Ran     time.Duration `json:"ran_ns,omitempty"` // see [Parked]
}

// Taken is the data of message.taken and message.refused. The body is the
// message's body. A prompt belongs to the loop of its position, which may be one
// that has not begun.
type Taken struct {
	ID   string            `json:"id"`
	Kind stint.MessageKind `json:"kind"`
	From stint.Actor       `json:"from"`
	At   time.Time         `json:"at"`
	Data json.RawMessage   `json:"data,omitempty"`
	Long bool              `json:"long,omitempty"` // the body is what Data was: it is long
	Why  string            `json:"why,omitempty"`  // of a refusal
}

// LimitChanged is the data of limit.changed.
type LimitChanged struct {
	Limits stint.Limits `json:"limits"`
	Reason string       `json:"reason,omitempty"`
}

// Output is the data of output.written. The body is whole lines.
type Output struct {
	Stream string `json:"stream"`
}

// systemTrigger is the trigger of the one session that nobody runs: the journal of what
// concerns the whole store.
const systemTrigger = "system"

// Recorded is the data of system.recorded. The body is a state, if State says so: what all
// that was recorded of one section comes to, or without a Section an object of all.
type Recorded struct {
	What    string          `json:"what"` // such as schedule.paused or occurrence.missed
	Name    string          `json:"name,omitempty"`
	Reason  string          `json:"reason,omitempty"`
	Data    json.RawMessage `json:"data,omitempty"`
	State   bool            `json:"state,omitempty"`
	Section string          `json:"section,omitempty"`
}

// Command is the Data of a control message. Which members a kind reads is said at
// each; the others must be zero.
type Command struct {
	Reason  string          `json:"reason,omitempty"`  // all
	Now     bool            `json:"now,omitempty"`     // pause: cancel the step instead of waiting for its end
	From    *int            `json:"from,omitempty"`    // restart, rollback: keep loops 1..From; nil: go on from the newest checkpoint
	Head    stint.Seq       `json:"head,omitempty"`    // restart, rollback: the head the plan was made at; a moved one is refused
	Plan    stint.Hash      `json:"plan,omitzero"`     // restart, rollback: hash of the plan that was shown
	Step    *stint.Position `json:"step,omitempty"`    // resolve: which step
	Verdict Verdict         `json:"verdict,omitempty"` // resolve
	Result  json.RawMessage `json:"result,omitempty"`  // resolve: what the step gave, with Happened
	Limits  *stint.Limits   `json:"limits,omitempty"`  // limit: the new ones, whole
	State   json.RawMessage `json:"state,omitempty"`   // restart: replaces the checkpoint's state
	Say     string          `json:"say,omitempty"`     // restart: a prompt for the first loop after it
	Agent   *stint.AgentRef `json:"agent,omitempty"`   // restart with From: what the session is pinned to from there on
	Config  json.RawMessage `json:"config,omitempty"`  // restart: the definition of Agent
	// Tree is the session above this one that the message was for: stop, kill, pause,
	// resume, interrupt and limit go on to its children, who are told which it was.
	Tree stint.ID `json:"tree,omitzero"`
	// InDoubt says, of a restart from an earlier loop and of a rollback, what becomes
	// of the steps in doubt that they leave behind.
	InDoubt DoubtChoice `json:"in_doubt,omitempty"`
	// Ask has a restart, a rollback or a branch asked about instead of done: whoever it
	// names decides. What a branch begins with besides is in Name, Labels, Limits and Key.
	Ask    *ApprovalRequested `json:"ask,omitempty"`
	Name   string             `json:"name,omitempty"`
	Labels map[string]string  `json:"labels,omitempty"`
	Key    string             `json:"key,omitempty"` // as in engine.Branch: Dedupe
}

// DoubtChoice is what a person chooses for steps in doubt that a new line leaves
// behind. They stay in doubt on the line that is left, and nothing can settle them
// there any more.
type DoubtChoice string

// The choices. Empty is [AskDoubt].
const (
	AskDoubt  DoubtChoice = "ask"  // do not go back while there is one
	SkipDoubt DoubtChoice = "skip" // the new line does not do them: the first equal step gets the marker of [Unknown] as its result
	RedoDoubt DoubtChoice = "redo" // the new line does them when it comes to them, under new keys
)

// Verdict is a person's word on a step in doubt.
type Verdict string

// The verdicts.
const (
	Happened    Verdict = "happened" // the effect took place; Result, or null, becomes the step's result
	NotHappened Verdict = "not"      // it did not: do it again under the same key
	Unknown     Verdict = "unknown"  // nobody can tell: the loop goes on with a marker as the result
)
