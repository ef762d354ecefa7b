package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/ident"
	"github.com/stint-dev/stint/journal"
)

// Asked is the error of an order that is recorded and not done: others decide about it. It
// is [stint.Limit], as is all that waits for somebody.
type Asked struct {
	// ID names the question, as [Desk.Question] takes it; empty while the session's runner
	// has not come to it, and where nothing was recorded yet.
	ID  string
	By  Deciders
	err *stint.Error
}

// Deciders are those who decide about an order, and the rule that asks them.
type Deciders struct {
	Rule      string   `json:"rule"`
	Approvers []string `json:"approvers"` // empty: whoever may decide
	Quorum    int      `json:"quorum"`
}

// DecidersOf returns those who decide about an order that err is of; nil: it is of none.
func DecidersOf(err error) *Deciders {
	var asked *Asked
	if !errors.As(err, &asked) {
		return nil
	}
	return &asked.By
}

// Error implements error.
func (a *Asked) Error() string { return a.err.Error() }

// Unwrap returns the [stint.Error].
func (a *Asked) Unwrap() error { return a.err }

// String says it in one line: "user:kim decides: the policy's rule guard".
func (d *Deciders) String() string {
	who := "whoever may decide"
	if len(d.Approvers) > 0 {
		who = strings.Join(d.Approvers, ", ")
	}
	if d.Quorum > 1 {
		return fmt.Sprintf("%d of %s decide: the policy's rule %s", d.Quorum, who, d.Rule)
	}
	return who + " decides: the policy's rule " + d.Rule
}

// asked is the error for a question that would be asked.
func asked(row *stint.Row, q *journal.ApprovalRequested) *Asked {
	by := Deciders{q.Rule, append([]string{}, q.Approvers...), max(q.Quorum, 1)}
	e := stint.Limit.Errorf(q.Name, "%s (%s) stays as it is until %s", row.Session.Name, row.Short, by.String())
	e.Session = row.Session.ID
	e.Hint = "stint approvals " + row.Short + "  shows what is asked"
	return &Asked{By: by, err: e}
}

// question is [Asked] if the order that message id gave was not obeyed, since others decide
// about it: as this process asked, or a server that it was sent to.
func (d *Desk) question(ctx context.Context, row *stint.Row, o *Order, id string) error {
	if o.Kind != stint.Restart && o.Kind != stint.Rollback && o.Kind != stint.BranchOff {
		return nil
	}
	if err := d.recorded(ctx, row, id); err != nil {
		return err
	}
	ms, err := d.Store.Inbox(ctx, row.Session.ID) // its runner has not come to it
	if err != nil {
		return err
	}
	for i := range ms {
		var c journal.Command
		if ms[i].ID == id && json.Unmarshal(ms[i].Data, &c) == nil && c.Ask != nil {
			out := asked(row, c.Ask)
			out.err.Hint = "its runner asks at its next step: stint approvals " + row.Short + "  then shows it"
			return out
		}
	}
	return d.recorded(ctx, row, id) // it may have come meanwhile
}

// recorded is [Asked] with the question that the order of a message led to; nil: none yet.
func (d *Desk) recorded(ctx context.Context, row *stint.Row, id string) error {
	es, err := d.Store.Entries(ctx, stint.Range{Session: row.Session.ID, After: row.Session.Head, Kinds: []stint.Kind{stint.ApprovalRequested}})
	if err != nil {
		return err
	}
	for i := range es {
		q, err := journal.Decode[journal.ApprovalRequested](&es[i])
		if err != nil || q.Order != id {
			continue
		}
		out, name := asked(row, &q), fmt.Sprintf("%s.%d", row.Short, es[i].Seq)
		out.ID = ident.ApprovalID(row.Session.ID, es[i].Seq)
		out.err.Hint = fmt.Sprintf("stint approve %s  or  stint deny %s -m TEXT  decides it", name, name)
		return out
	}
	return nil
}
