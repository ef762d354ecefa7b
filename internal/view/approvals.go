package view

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/ident"
	"github.com/stint-dev/stint/internal/term"
	"github.com/stint-dev/stint/journal"
)

// The schemas of questions to a person.
const (
	SchemaApproval  Schema = "stint.approval/1"
	SchemaApprovals Schema = "stint.approval.list/1"
)

// Approval is a question to a person as JSON, schema stint.approval/1.
type Approval struct {
	Schema  Schema          `json:"schema,omitempty"` // absent within a list
	ID      string          `json:"id"`               // SESSION.SEQ
	Short   string          `json:"short"`            // the same with the session's short id
	Session stint.ID        `json:"session"`
	Name    string          `json:"session_name"`
	Agent   string          `json:"agent"`
	About   string          `json:"about"` // step, or order: what somebody asked of the session
	Step    string          `json:"step"`  // LOOP.STEP or LOOP.STEP.MEMBER; of an order the loop at which it was given
	Tool    string          `json:"name"`  // of the step, or the verb of the order
	Effect  stint.Effect    `json:"effect"`
	Text    string          `json:"text"` // one line: what is to be decided
	Why     string          `json:"why"`  // the rule that asks
	Args    json.RawMessage `json:"args"` // of the step, as they would be used; null if there are none
	ArgsSum string          `json:"args_sum"`
	Answer  json.RawMessage `json:"answer_schema"` // null where a yes or a no is all that is asked
	demands
	stand
}

// stand is how a question stands.
type stand struct {
	State stint.ApprovalState `json:"state"`
	Since *time.Time          `json:"since"`
	By    stint.Actor         `json:"by"` // who decided; empty while it is open
	At    *time.Time          `json:"at"`
	Note  string              `json:"note"`
}

// demands is what a policy wants of a question.
type demands struct {
	Approvers []string        `json:"approvers"` // roles, and user:NAME; empty: whoever may decide
	Quorum    int             `json:"quorum"`    // how many have to say yes
	Yes       []stint.Actor   `json:"yes"`       // who has, while more are needed
	Until     *time.Time      `json:"until"`     // when it expires; null: never
	Editable  bool            `json:"editable"`  // a yes may change the arguments
	Policy    json.RawMessage `json:"policy"`    // the verdict of the policy that asks; null where none does
}

// Approvals is questions to persons as JSON, schema stint.approval.list/1.
type Approvals struct {
	Schema Schema     `json:"schema"`
	Now    *time.Time `json:"now"`
	Items  []Approval `json:"items"`
}

// openPage is how many sessions are read at a time.
const openPage = 500

// NewApprovals returns the open questions of one session, in the order of their asking,
// or without one those of all sessions, the oldest first.
func NewApprovals(ctx context.Context, src Source, row *stint.Row, now time.Time) (Approvals, error) {
	out := Approvals{Schema: SchemaApprovals, Now: whole(now), Items: []Approval{}}
	if row != nil {
		return out, out.add(ctx, src, row)
	}
	f := stint.Filter{Asking: true, Limit: openPage}
	for {
		rows, err := src.Sessions(ctx, f)
		if err != nil {
			return out, err
		}
		for i := range rows {
			if err := out.add(ctx, src, &rows[i]); err != nil {
				return out, err
			}
		}
		if len(rows) < openPage {
			break
		}
		f.After = rows[len(rows)-1].Session.ID
	}
	slices.SortStableFunc(out.Items, func(a, b Approval) int { return a.Since.Compare(*b.Since) })
	return out, nil
}

func (l *Approvals) add(ctx context.Context, src Source, row *stint.Row) error {
	for i := range row.Session.At.Approvals {
		a := &row.Session.At.Approvals[i]
		if a.State != stint.ApprovalOpen {
			continue
		}
		v, err := NewApproval(ctx, src, row, a)
		if err != nil {
			return err
		}
		v.Schema = ""
		l.Items = append(l.Items, v)
	}
	return nil
}

// NewApproval returns one question of the session as JSON has it.
func NewApproval(ctx context.Context, src Source, row *stint.Row, a *stint.Approval) (Approval, error) {
	s := &row.Session
	out := Approval{
		Schema: SchemaApproval, ID: ident.ApprovalID(s.ID, a.Seq), Short: fmt.Sprintf("%s.%d", row.Short, a.Seq), Session: s.ID, Name: s.Name, Agent: s.Agent.Name,
		Step: a.Step.String(), Tool: a.Name, Effect: a.Effect, Text: a.Text, Why: a.Why, ArgsSum: a.Input,
		stand:   stand{a.State, whole(a.Since), a.By, whole(a.At), a.Note},
		demands: demands{Approvers: append([]string{}, a.Approvers...), Quorum: max(a.Quorum, 1), Yes: append([]stint.Actor{}, a.Yes...), Until: whole(a.Until)},
	}
	if out.About = "step"; a.OfOrder() {
		out.About = "order"
	}
	es, err := src.Entries(ctx, stint.Range{Session: s.ID, After: a.Seq - 1, Until: a.Seq})
	if err != nil {
		return out, err
	}
	if len(es) != 1 || es[0].Kind != stint.ApprovalRequested {
		return out, stint.Corrupt.Errorf("approvals", "entry %d of %s is no question", a.Seq, s.ID)
	}
	d, err := journal.Decode[journal.ApprovalRequested](&es[0])
	if err != nil {
		return out, err
	}
	out.Answer, out.Args, out.Editable, out.Policy = d.Schema, es[0].Body, d.Editable, d.Policy
	if !es[0].Blob.IsZero() {
		if out.Args, err = src.Blob(ctx, s.Family, es[0].Blob); err != nil {
			return out, err
		}
	}
	if len(out.Args) > 0 && !json.Valid(out.Args) {
		return out, stint.Corrupt.Errorf("approvals", "the arguments in entry %d of %s are not JSON", a.Seq, s.ID)
	}
	return out, nil
}

// Write prints the questions for people: one block each, so that what a yes allows can
// be read whole.
func (l *Approvals) Write(w io.Writer, st term.Style, now time.Time) error {
	var b strings.Builder
	for i := range l.Items {
		a := &l.Items[i]
		if i > 0 {
			b.WriteByte('\n')
		}
		age := iso(*a.Since)
		if st.TTY {
			age = span(now.Sub(*a.Since)) + " ago"
		}
		b.WriteString(st.Paint(term.Yellow, "◐ "+a.Short) + "  " + term.Line(a.Name) + "  " + st.Paint(term.Dim, list(a.where(), string(a.Effect), age)) + "\n")
		p := page{st: st, now: now}
		p.labelled("  Asks", p.flow(term.Line(a.Text)))
		p.labelled("  Why", p.flow(term.Line(a.Why)))
		with := a.Args
		if a.About == "order" {
			plan, rest := a.order()
			p.labelled("  Plan", plan)
			with = rest
		}
		if len(with) > 0 {
			p.labelled("  With", p.flow(head(with, 2000)))
		}
		p.labelled("  Who", p.flow(a.who()))
		if a.Until != nil {
			until := iso(*a.Until)
			if st.TTY {
				until = "in " + span(a.Until.Sub(now))
			}
			p.labelled("  Expires", until)
		}
		yes := "stint approve " + a.Short
		if a.Answer != nil {
			p.labelled("  Answer", p.flow(head(a.Answer, 1000)))
			yes += " --answer JSON"
		}
		if a.Editable {
			yes += " [--args JSON]"
		}
		p.labelled("  Decide", yes+" · stint deny "+a.Short+" -m TEXT")
		b.WriteString(p.b.String())
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// where is what the question stands at.
func (a *Approval) where() string {
	if a.About == "order" {
		return "order"
	}
	return "loop " + a.Step
}

// who is who has to decide, and who has; empty for whoever may.
func (a *Approval) who() string {
	var parts []string
	if len(a.Approvers) > 0 {
		parts = append(parts, term.Line(strings.Join(a.Approvers, ", ")))
	}
	if a.Quorum > 1 {
		said := fmt.Sprintf("%d of %d have said yes", len(a.Yes), a.Quorum)
		for i, by := range a.Yes {
			said += map[bool]string{true: ": ", false: ", "}[i == 0] + term.Line(string(by))
		}
		parts = append(parts, said)
	}
	return list(parts...)
}
