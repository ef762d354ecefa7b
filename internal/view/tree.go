package view

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/term"
)

// SchemaTree is a session with all that came of it.
const SchemaTree Schema = "stint.tree/1"

// tree is a session and all that was spawned by it or branched off it, as JSON, schema
// stint.tree/1.
type tree struct {
	Schema  Schema     `json:"schema"`
	Now     *time.Time `json:"now"`
	Session stint.ID   `json:"session"` // that it begins with
	Items   []treeItem `json:"items"`   // each before those that came of it, these by age
	Sum     treeSum    `json:"sum"`
}

// treeItem is one session of a tree.
type treeItem struct {
	ID     stint.ID  `json:"id"`
	Short  string    `json:"short"`
	Name   string    `json:"name"`
	Agent  string    `json:"agent"`
	Status string    `json:"status"` // with what it waits for: waiting:child
	Reason string    `json:"reason"`
	How    string    `json:"how"` // root, child, detached or branch
	Parent *stint.ID `json:"parent"`
	Depth  int       `json:"depth"`
	Own    treeSum   `json:"own"`
	Sum    treeSum   `json:"sum"` // with all that came of it

	row *stint.Row
}

// treeSum is what sessions used.
type treeSum struct {
	Sessions int         `json:"sessions"`
	Open     int         `json:"open"`
	Loops    int         `json:"loops"`
	Tokens   Big         `json:"tokens"`
	Cost     stint.Money `json:"cost"`
}

func (s *treeSum) add(o treeSum) {
	s.Sessions += o.Sessions
	s.Open += o.Open
	s.Loops += o.Loops
	s.Tokens += o.Tokens
	s.Cost += o.Cost
}

// NewTree reads the tree below a session.
func NewTree(ctx context.Context, r stint.Reader, top *stint.Row, now time.Time) (tree, error) {
	out := tree{Schema: SchemaTree, Now: whole(now), Session: top.Session.ID, Items: []treeItem{}}
	below := map[stint.ID][]stint.Row{}
	for f := (stint.Filter{Family: top.Session.Family, Limit: openPage}); ; {
		rows, err := r.Sessions(ctx, f)
		if err != nil {
			return out, err
		}
		for i := range rows {
			p := rows[i].Session.Parent.Session
			below[p] = append(below[p], rows[i])
		}
		if len(rows) < openPage {
			break
		}
		f.After = rows[len(rows)-1].Session.ID
	}
	out.Sum = out.grow(top, below, 0)
	return out, nil
}

// grow adds a session and those below it, and returns what they used.
func (t *tree) grow(row *stint.Row, below map[stint.ID][]stint.Row, depth int) treeSum {
	s := &row.Session
	_, reason := row.Status()
	it := treeItem{ID: s.ID, Short: row.Short, Name: s.Name, Agent: s.Agent.Name, Status: StatusWord(row), Reason: reason, How: "root", Depth: depth, row: row}
	switch p := &s.Parent; {
	case p.Session.IsZero():
	case p.Branch:
		it.How, it.Parent = "branch", &p.Session
	case p.Detach:
		it.How, it.Parent = "detached", &p.Session
	default:
		it.How, it.Parent = "child", &p.Session
	}
	it.Own = treeSum{Sessions: 1, Loops: s.Totals.Loops, Tokens: Big(s.Totals.Usage.Tokens()), Cost: s.Totals.Usage.Cost}
	if !s.Status.Ended() {
		it.Own.Open = 1
	}
	at := len(t.Items)
	t.Items = append(t.Items, it)
	sum := it.Own
	kids := below[s.ID]
	for i := range slices.Backward(kids) { // lists are newest first
		sum.add(t.grow(&kids[i], below, depth+1))
	}
	t.Items[at].Sum = sum
	return sum
}

// Write prints the tree for people: what came of a session stands below it.
func (t *tree) Write(w io.Writer, st term.Style, now time.Time) error {
	out := table{columns: []column{{head: "SESSION", most: 60, least: 20}, {head: "ID"}, {head: "STATUS"}, {head: "LOOPS", right: true},
		{head: "TOKENS", right: true}, {head: "COST", right: true}, {head: "NOW"}}}
	for i := range t.Items {
		it := &t.Items[i]
		name := strings.Repeat("  ", it.Depth) + term.Line(it.Name)
		if it.How == "branch" || it.How == "detached" {
			name += " (" + it.How + ")"
		}
		_, color := shape(it.row)
		line, elapsed := nowParts(it.row, now, st.TTY)
		out.rows = append(out.rows, []cell{{text: name}, {text: it.Short, color: term.Cyan}, {text: it.Status, color: color}, {text: fmt.Sprint(it.Own.Loops)},
			{text: countOf(int64(it.Own.Tokens))}, {text: Dollars(it.Own.Cost)}, {text: line, end: elapsed}})
	}
	var b strings.Builder
	if err := out.write(&b, st); err != nil {
		return err
	}
	if s := &t.Sum; s.Sessions > 1 {
		fmt.Fprintf(&b, "\n%s\n", list(fmt.Sprintf("%s, %d open", plural(s.Sessions, "session"), s.Open), plural(s.Loops, "loop"), countOf(int64(s.Tokens))+" tokens", Dollars(s.Cost)))
	}
	_, err := io.WriteString(w, b.String())
	return err
}
