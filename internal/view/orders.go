package view

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/ident"
	"github.com/stint-dev/stint/internal/term"
	"github.com/stint-dev/stint/journal"
)

// orderInfo is an order that waits until others agree to it.
type orderInfo struct {
	Approval string     `json:"approval"` // id of the question
	Name     string     `json:"name"`     // restart, rollback or branch
	Text     string     `json:"text"`     // one line: what it would do, and who asked for it
	Since    *time.Time `json:"since"`
}

// ordersOf are those of a session, oldest first.
func ordersOf(s *stint.Session) []orderInfo {
	all := []orderInfo{}
	for i := range s.At.Approvals {
		if a := &s.At.Approvals[i]; a.OfOrder() {
			all = append(all, orderInfo{ident.ApprovalID(s.ID, a.Seq), a.Name, a.Text, whole(a.Since)})
		}
	}
	return all
}

// orders says what somebody asked of the session and others decide about.
func (p *page) orders(v *Show) {
	for i := range v.Orders {
		label := ""
		if i == 0 {
			label = "Ordered"
		}
		p.labelled(label, p.flow(list(term.Line(v.Orders[i].Text), "waits for a decision")))
	}
}

// order is what shows the plan of an order, and what it says besides what its line does.
func (a *Approval) order() (plan string, rest json.RawMessage) {
	var c journal.Command
	if err := json.Unmarshal(a.Args, &c); err != nil {
		return "", a.Args
	}
	session, _, _ := strings.Cut(a.Short, ".")
	plan = "stint " + a.Tool + " " + session
	if c.From != nil {
		flag := " --from "
		if a.Tool == string(stint.Rollback) {
			flag = " --to "
		}
		plan += flag + strconv.Itoa(*c.From)
	}
	c.From, c.Reason, c.Head, c.Plan = nil, "", 0, stint.Hash{}
	rest, err := stint.Marshal(c)
	if err != nil || string(rest) == "{}" {
		return plan + " --dry-run", nil
	}
	return plan + " --dry-run", rest
}
