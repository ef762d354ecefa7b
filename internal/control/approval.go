package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/internal/ident"
	"github.com/stint-dev/stint/internal/jsonx"
	"github.com/stint-dev/stint/internal/view"
	"github.com/stint-dev/stint/journal"
	"github.com/stint-dev/stint/policy"
	"github.com/stint-dev/stint/tool"
)

// Decision is what somebody decides about a question.
type Decision struct {
	State  stint.ApprovalState // approved or denied
	From   stint.Actor
	Note   string        // one line; the agent and the journal get it
	Answer string        // JSON, where one is asked for; empty: none
	Args   string        // JSON to do the step with instead of what was shown; empty: that
	Roles  []string      // that the person has, for questions that only some may decide
	Grant  *policy.Grant // what is said yes to besides, of calls to come: Scope, and if it is given When, Expires; nil: nothing
	Text   bool          // Answer may also be a text without quotes, where a text is asked for

	// Others are what else is answered: for each a branch goes on from the question with
	// that. A yes or a no is "yes" or "no", where nothing else is asked for.
	Others []string
}

// maxNote is how many bytes of a person's words the journal keeps beside a decision.
const maxNote = 1000

// Check refuses words of which the journal would not keep all: a person who writes three
// lines must not find out later that the agent got the first. prefix is as in [Desk]. It
// takes spaces at the ends off.
func (v *Decision) Check(prefix string) error {
	v.Note = strings.TrimSpace(v.Note)
	why := ""
	switch {
	case strings.ContainsAny(v.Note, "\r\n"):
		why = "has several"
	case len(v.Note) > maxNote:
		why = fmt.Sprintf("has %d", len(v.Note))
	default:
		return nil
	}
	err := stint.Invalid.Errorf("", "%smessage is one line of at most %d bytes, and this one %s", prefix, maxNote, why)
	err.Hint = "say in one line what was decided, and the rest with stint send SESSION -f FILE"
	return err
}

// Decide decides the question that name names, see [Desk.Question], and returns its
// session and the question as they were before. may, if it is not nil, is asked whether
// this decision may be made. The first decision counts: a later one is [stint.Conflict],
// and the error says who decided, and when.
func (d *Desk) Decide(ctx context.Context, name string, v Decision, may func(context.Context, *stint.Row) error) (row stint.Row, asked view.Approval, err error) {
	if err := v.Check(d.Prefix); err != nil {
		return row, asked, err
	}
	row, q, err := d.Question(ctx, name)
	if err != nil {
		return row, asked, err
	}
	if may != nil {
		if err := may(ctx, &row); err != nil {
			return row, asked, err
		}
	}
	if asked, err = view.NewApproval(ctx, d.Store, &row, &q); err != nil {
		return row, asked, err
	}
	body, err := d.answer(&v, &asked)
	if err != nil {
		return row, asked, err
	}
	c := journal.Decision{Approval: q.Seq, State: v.State, Note: v.Note, Nonce: ident.New().String(), Roles: v.Roles}
	if v.Args != "" {
		if body, err = d.args(&v, &asked); err != nil {
			return row, asked, err
		}
		c.Edit = true
	}
	if asked.Quorum > 1 {
		c.Each = v.From
	}
	if c.Branches, err = d.others(ctx, &v, &row, &asked); err != nil {
		return row, asked, err
	}
	data, err := stint.Marshal(c)
	if err != nil {
		return row, asked, err
	}
	m := stint.Message{ID: c.MessageID(), Kind: stint.Decision, From: v.From, Data: data, Body: body}
	if m.Keys, err = d.policy(&v, &row, &asked); err != nil {
		return row, asked, err
	}
	if err := m.Check(); err != nil {
		return row, asked, err
	}
	if err := d.Store.Send(ctx, row.Session.ID, m); err != nil {
		if errors.Is(err, stint.Conflict) {
			err = d.tooLate(ctx, &row, q.Seq)
		}
		return row, asked, err
	}
	return row, asked, d.settle(ctx, &row, m.ID)
}

// Question finds an open question by its name, SESSION.SEQ, or by that of a session which
// has one. The error is [stint.NotFound], or [stint.Conflict] for one that was decided or
// has ended, or [stint.Invalid] where several are meant.
func (d *Desk) Question(ctx context.Context, name string) (stint.Row, stint.Approval, error) {
	session, seq := ident.CutApprovalID(name)
	row, _, err := view.Find(ctx, d.Store, session, time.Now())
	if err != nil && seq > 0 { // a session may be named like that
		if whole, _, other := view.Find(ctx, d.Store, name, time.Now()); other == nil {
			row, seq, err = whole, 0, nil
		}
	}
	if err != nil {
		return row, stint.Approval{}, err
	}
	var open []stint.Approval
	var names []string
	var last stint.Approval // the newest that was decided, in a loop that is open
	for _, q := range row.Session.At.Approvals {
		if q.State != stint.ApprovalOpen && !q.At.Before(last.At) {
			last = q
		}
		if q.State == stint.ApprovalOpen && (seq == 0 || q.Seq == seq) {
			open = append(open, q)
			names = append(names, fmt.Sprintf("%s.%d", row.Short, q.Seq))
		}
	}
	switch {
	case len(open) == 1:
		return row, open[0], nil
	case len(open) > 1:
		err := stint.Invalid.Errorf("approval", "%s (%s) asks %d questions", row.Session.Name, row.Short, len(open))
		err.Hint = "name one of " + strings.Join(names, ", ") + "; stint approvals " + row.Short + "  shows them"
		return row, stint.Approval{}, err
	case seq > 0:
		return row, stint.Approval{}, d.ended(ctx, &row, seq)
	case last.Seq > 0:
		return row, stint.Approval{}, decided(&row, last.Seq, last.State, last.By, last.At)
	}
	e := stint.NotFound.Errorf("approval", "%s (%s) asks nothing: it is %s", row.Session.Name, row.Short, view.StatusWord(&row))
	e.Hint = "stint approvals  lists what is asked"
	return row, stint.Approval{}, e
}

// ended is why a question that is not open cannot be decided: the end that it came to.
func (d *Desk) ended(ctx context.Context, row *stint.Row, seq stint.Seq) error {
	es, err := d.Store.Entries(ctx, stint.Range{Session: row.Session.ID, After: seq - 1, Kinds: []stint.Kind{stint.ApprovalRequested, stint.ApprovalDecided}})
	if err != nil {
		return err
	}
	if len(es) == 0 || es[0].Seq != seq || es[0].Kind != stint.ApprovalRequested {
		e := stint.NotFound.Errorf("approval", "entry %d of %s (%s) is no question", seq, row.Session.Name, row.Short)
		e.Hint = "stint approvals  lists what is asked"
		return e
	}
	for i := range es {
		c, err := journal.Decode[journal.ApprovalDecided](&es[i])
		if err == nil && es[i].Kind == stint.ApprovalDecided && c.Approval == seq {
			return decided(row, seq, c.State, es[i].Actor, es[i].At)
		}
	}
	e := stint.Conflict.Errorf("approval", "%s.%d is not open any more: its session is %s", row.Short, seq, view.StatusWord(row))
	e.Hint = "stint approvals  lists what is asked"
	return e
}

func decided(row *stint.Row, seq stint.Seq, state stint.ApprovalState, by stint.Actor, at time.Time) error {
	e := stint.Conflict.Errorf("approval", "%s.%d was %s by %s at %s", row.Short, seq, state, by, at.UTC().Format(time.RFC3339))
	e.Hint = "one decision counts, the first; stint logs " + row.Short + "  shows what came of it"
	return e
}

// tooLate says who decided before.
func (d *Desk) tooLate(ctx context.Context, row *stint.Row, seq stint.Seq) error {
	ms, err := d.Store.Inbox(ctx, row.Session.ID)
	if err != nil {
		return err
	}
	id := journal.Decision{Approval: seq}.MessageID()
	for i := range ms {
		var c journal.Decision
		if ms[i].ID == id && json.Unmarshal(ms[i].Data, &c) == nil {
			return decided(row, seq, c.State, ms[i].From, ms[i].At)
		}
	}
	after, err := d.Store.Session(ctx, row.Session.ID)
	if err != nil {
		return err
	}
	for _, q := range after.Session.At.Approvals {
		if q.Seq == seq && q.State != stint.ApprovalOpen {
			return decided(&after, seq, q.State, q.By, q.At)
		}
	}
	return d.ended(ctx, &after, seq)
}

// policy holds a decision against the policy that asks, so that who may not decide is told at
// once, and returns what the store keeps of what is granted with it.
func (d *Desk) policy(v *Decision, row *stint.Row, asked *view.Approval) ([]stint.Key, error) {
	var verdict policy.Verdict
	if asked.Policy != nil {
		if err := json.Unmarshal(asked.Policy, &verdict); err != nil {
			return nil, stint.Corrupt.Errorf("approval", "the verdict of %s cannot be read: %v", asked.Short, err)
		}
		verdict.Approvers = asked.Approvers
		if err := verdict.Admits(policy.Vote{By: v.From, Roles: v.Roles, Yes: v.State == stint.ApprovalApproved, Edited: v.Args != ""}); err != nil {
			return nil, err
		}
	}
	if v.Grant == nil {
		return nil, nil
	}
	if v.State != stint.ApprovalApproved || !verdict.Grantable || v.Args != "" || asked.Quorum > 1 {
		e := stint.Conflict.Errorf("grant", "a yes to %s can be no grant for calls to come", asked.Short)
		e.Hint = "its rule forbids it, wants several people, or no rule asks; stint policy show " + asked.Agent + "  prints them"
		return nil, e
	}
	g := *v.Grant
	g.ID, g.Session, g.Agent, g.Rule, g.Tool, g.Effect, g.By = ident.New().String(), row.Session.ID, asked.Agent, verdict.Rule, asked.Tool, asked.Effect, v.From
	if g.When == "" {
		g.Digest = verdict.Digest
	}
	g, err := policy.NewGrant(g, time.Now().UTC())
	if err != nil {
		return nil, err
	}
	k, err := engine.GrantKey(g)
	return []stint.Key{k}, err
}

// args are the arguments that the decision puts in the place of those shown.
func (d *Desk) args(v *Decision, asked *view.Approval) (json.RawMessage, error) {
	switch {
	case v.State != stint.ApprovalApproved:
		return nil, stint.Invalid.Errorf("", "%sargs goes with a yes", d.Prefix)
	case !asked.Editable:
		e := stint.Conflict.Errorf("", "the arguments of %s cannot be changed", asked.Short)
		e.Hint = "approve it as it is, or deny it and say with -m what should be otherwise"
		return nil, e
	}
	args := json.RawMessage(v.Args)
	if err := jsonx.Check(args, jsonx.Limits{}); err != nil {
		return nil, &stint.Error{Code: stint.Invalid, Err: fmt.Errorf("%sargs: %w", d.Prefix, err)}
	}
	return args, nil
}

// answer is what the decision carries: the answer, where one is asked for. An answer that
// does not fit is [stint.Invalid].
func (d *Desk) answer(v *Decision, asked *view.Approval) (json.RawMessage, error) {
	if v.State != stint.ApprovalApproved {
		return nil, nil
	}
	if asked.Answer == nil {
		if v.Answer != "" {
			return nil, stint.Invalid.Errorf("", "%s asks for a yes or a no, and takes no %sanswer", asked.Short, d.Prefix)
		}
		return nil, nil
	}
	schema, err := tool.NewSchema(asked.Answer)
	if err != nil {
		return nil, err
	}
	if v.Answer == "" {
		return nil, stint.Invalid.Errorf("", "%s asks for an answer: give %sanswer, of the schema %s", asked.Short, d.Prefix, asked.Answer)
	}
	answer := json.RawMessage(v.Answer)
	bad := schema.Check(answer)
	if bad == nil {
		return answer, nil
	}
	if v.Text {
		text, err := stint.Marshal(v.Answer) // a text need not be quoted
		if err == nil && !json.Valid(answer) {
			bad = schema.Check(text)
		} else if err == nil && schema.Check(text) == nil {
			bad = nil
		}
		answer = text
	}
	if bad != nil {
		return nil, &stint.Error{Code: stint.Invalid, Err: fmt.Errorf("%sanswer: %w", d.Prefix, bad)}
	}
	return answer, nil
}
