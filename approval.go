package stint

import "time"

// ApprovalState is how a question to a person stands: open, or at the one end that it
// came to. Being forgotten is no denial.
type ApprovalState string

// The states. A person's decision, an expiry or an invalidation ends a question, and
// nothing ends it twice.
const (
	ApprovalOpen        ApprovalState = "open"
	ApprovalApproved    ApprovalState = "approved"    // the step may begin; where an answer was asked for, it is there
	ApprovalDenied      ApprovalState = "denied"      // it must not
	ApprovalExpired     ApprovalState = "expired"     // nobody decided in time
	ApprovalCanceled    ApprovalState = "canceled"    // the loop that asked was left, or the line that the order was for
	ApprovalInvalidated ApprovalState = "invalidated" // at its place stands another step now, or the order cannot be carried out any more
)

// Approval is a question to a person about one step of the open loop, bound to that
// step's exact input; or about an order that somebody gave and another has to agree to,
// bound to exactly that: see [Approval.OfOrder].
type Approval struct {
	Seq    Seq           `json:"seq"`  // of the entry that asks; with the session's id it names the approval
	Step   Position      `json:"step"` // the attempt is the one that asked
	Name   string        `json:"name"` // of the step, or the verb of the order
	Effect Effect        `json:"effect"`
	Input  string        `json:"input,omitempty"`  // short hash of the step's input, or of the order
	Text   string        `json:"text"`             // one line: what is to be decided
	Why    string        `json:"why,omitempty"`    // one line: the rule that asks
	Answer bool          `json:"answer,omitempty"` // a yes is an answer, of the schema in the entry
	State  ApprovalState `json:"state"`
	Since  time.Time     `json:"since"` // when it was asked

	// What a policy wants of it. Yes are those who have said so while more are needed.
	Until     time.Time `json:"until,omitzero"` // when it expires; zero: never
	Approvers []string  `json:"approvers,omitempty"`
	Quorum    int       `json:"quorum,omitempty"` // how many have to say yes; 0: one
	Yes       []Actor   `json:"yes,omitempty"`
	Edited    string    `json:"edited,omitempty"` // short hash of the input that a person put in the place of Input

	// How it was decided. The note is the person's, one line; Decided is the entry that
	// says so, whose body is the answer.
	By      Actor     `json:"by,omitempty"`
	At      time.Time `json:"at,omitzero"`
	Note    string    `json:"note,omitempty"`
	Decided Seq       `json:"decided,omitempty"`
}

// OfOrder reports whether the question is about an order, such as a rollback, and not about
// a step. It belongs to no loop: the session goes on meanwhile, and may have ended. A yes
// has the order carried out in the same transaction.
func (a *Approval) OfOrder() bool { return a.Step.Step == 0 }
