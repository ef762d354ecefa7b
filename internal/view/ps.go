package view

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/term"
)

// Query says which sessions a list shows. The zero Query is all open ones.
type Query struct {
	Filter   stint.Filter // Statuses, Open, Limit and After are set from the members below
	All      bool         // ended ones too
	Bad      bool         // those that ended other than completed, or wait because something is wrong
	Statuses []stint.Status
	Ended    int      // at most so many ended ones where Limit is 0, which bounds no open one; 0: all
	Limit    int      // at most so many, newest first; 0: no bound
	After    stint.ID // only those older than this one
}

// listPage is how many sessions are read at once.
const listPage = 1000

// Sessions returns the sessions that q selects, newest first, and where the list
// goes on if Limit or Ended cut it short. It reads no entries.
func Sessions(ctx context.Context, r stint.Reader, q Query) (rows []stint.Row, cursor stint.ID, err error) {
	f := q.Filter
	f.Statuses, f.Open, f.Limit, f.After = q.stored(), false, listPage, q.After
	f.Open = f.Statuses == nil && !q.All
	if q.Limit > 0 && q.Limit < listPage { // one more tells whether there are more
		f.Limit = q.Limit + 1
	}
	ended := 0
	for {
		page, err := r.Sessions(ctx, f)
		if err != nil {
			return nil, cursor, err
		}
		for i := range page {
			row := &page[i]
			if !q.wants(row) {
				continue
			}
			if row.Session.Status.Ended() && q.Limit == 0 && q.Ended > 0 {
				if ended++; ended > q.Ended {
					return openRest(ctx, r, q, f, rows, cursor)
				}
			}
			if q.Limit > 0 && len(rows) == q.Limit {
				return rows, rows[len(rows)-1].Session.ID, nil
			}
			rows, cursor = append(rows, *row), row.Session.ID
		}
		if len(page) < f.Limit {
			return rows, stint.ID{}, nil
		}
		f.After, f.Limit = page[len(page)-1].Session.ID, min(listPage, 2*f.Limit) // few are wanted of those that the store selects
	}
}

// openRest goes on with the open sessions alone, once there are enough ended ones.
func openRest(ctx context.Context, r stint.Reader, q Query, f stint.Filter, rows []stint.Row, cursor stint.ID) ([]stint.Row, stint.ID, error) {
	f.After, f.Open, f.Limit = cursor, true, listPage
	for {
		page, err := r.Sessions(ctx, f)
		if err != nil {
			return nil, cursor, err
		}
		for i := range page {
			if q.wants(&page[i]) {
				rows = append(rows, page[i])
			}
		}
		if len(page) < listPage {
			return rows, cursor, nil
		}
		f.After = page[len(page)-1].Session.ID
	}
}

// stored is the statuses to ask the store for, nil for any.
func (q *Query) stored() []stint.Status {
	switch {
	case q.Statuses != nil:
		out := slices.Clone(q.Statuses)
		if slices.Contains(out, stint.Running) {
			out = append(out, stint.Waiting) // one that is held with a question open
		}
		return out
	case q.Bad:
		return []stint.Status{stint.Waiting, stint.Failed, stint.Stopped, stint.Canceled}
	}
	return nil
}

func (q *Query) wants(row *stint.Row) bool {
	status, _ := row.Status()
	return (!q.Bad || bad(&row.Session)) && (q.Statuses == nil || slices.Contains(q.Statuses, status))
}

// Order is how a list of sessions is sorted.
type Order string

// The orders.
const (
	ByUrgency Order = ""     // what needs a person first, then by how long it has stood so
	ByWait    Order = "wait" // longest in its status first
	ByCost    Order = "cost" // dearest first
	ByAge     Order = "age"  // newest first
	ByName    Order = "name"
)

// Sort sorts rows. On a terminal groups stay together in any order.
func Sort(rows []stint.Row, by Order, groups bool) {
	longest := func(a, b *stint.Row) int { return since(a).Compare(since(b)) }
	slices.SortStableFunc(rows, func(x, y stint.Row) int {
		a, b := &x, &y
		if groups || by == ByUrgency {
			if c := cmp.Compare(groupOf(a), groupOf(b)); c != 0 {
				return c
			}
		}
		ended := a.Session.Status.Ended() && b.Session.Status.Ended()
		switch by {
		case ByCost:
			return cmp.Compare(b.Session.Totals.Usage.Cost, a.Session.Totals.Usage.Cost)
		case ByAge:
			return strings.Compare(b.Session.ID.String(), a.Session.ID.String())
		case ByName:
			return strings.Compare(a.Session.Name, b.Session.Name)
		case ByUrgency:
			if ended {
				return longest(b, a)
			}
		}
		return longest(a, b)
	})
}

// ListOptions say what a list for people shows beside the rows.
type ListOptions struct {
	Wide     bool                // more columns
	More     bool                // the list was cut short
	Outcomes map[stint.ID]string // of sessions that have ended, from [Outcomes]; nil: their reasons alone
}

// narrow is the width of a terminal, in columns, below which a list leaves out what
// the rest of a row says as well: that it waits, and what its cost may be.
const narrow = 120

// WriteList prints rows, which [Sort] has put in order: on a terminal in groups
// under a line that counts them, elsewhere as a plain table.
func WriteList(w io.Writer, st term.Style, rows []stint.Row, opt ListOptions, now time.Time) error {
	var b strings.Builder
	if st.TTY {
		b.WriteString(summary(rows, st.Width, now) + "\n")
		if len(rows) == 0 {
			_, err := io.WriteString(w, b.String())
			return err
		}
		b.WriteByte('\n')
	}
	t := table{columns: listColumns(st, opt.Wide)}
	last, asking := group(-1), ""
	for i := range rows {
		row := &rows[i]
		g := groupOf(row)
		if st.TTY && g != last {
			t.rows = append(t.rows, []cell{{text: g.String(), color: term.Bold}})
			last = g
		}
		if asking == "" && g <= wasInterrupted {
			asking = row.Short
		}
		t.rows = append(t.rows, listRow(st, row, &opt, now))
	}
	if err := t.write(&b, st); err != nil {
		return err
	}
	if asking != "" && st.TTY {
		b.WriteString("\nWhat to do about one: stint show " + asking + "\n")
	}
	if opt.More && st.TTY {
		b.WriteString("\nThere are more: stint ps -a -n 500\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func listColumns(st term.Style, wide bool) []column {
	cs := []column{
		{head: "SESSION", most: 40, least: 16}, {head: "ID"}, {head: "STATUS"}, {head: "SINCE"}, {head: "LOOP", right: true}, {head: "COST", right: true},
	}
	if st.TTY {
		cs[3] = column{head: "FOR", right: true}
		cs = append([]column{{}}, cs...)
	}
	if wide {
		cs = append(cs, column{head: "AGENT", most: 24}, column{head: "PIN"}, column{head: "RUNNER", most: 30}, column{head: "STARTED"},
			column{head: "TRIGGER", most: 24}, column{head: "TOKENS", right: true}, column{head: "CKPT"}, column{head: "LABELS", most: 40})
	}
	return append(cs, column{head: "NOW"})
}

func listRow(st term.Style, row *stint.Row, opt *ListOptions, now time.Time) []cell {
	s := &row.Session
	glyph, color := shape(row)
	out := []cell{
		{text: term.Line(s.Name)}, {text: row.Short, color: term.Cyan}, {text: StatusWord(row), color: color}, {text: iso(since(row))},
		{text: fmt.Sprint(s.At.Loop)}, {text: costOf(s)},
	}
	if st.TTY && st.Width > 0 && st.Width < narrow {
		if _, what, ok := strings.Cut(out[2].text, ":"); ok {
			out[2].text = what
		}
		out[5].text, _, _ = strings.Cut(out[5].text, "/")
	}
	if st.TTY {
		out[3].text = span(now.Sub(since(row)))
		out = append([]cell{{text: glyph, color: color}}, out...)
	}
	if opt.Wide {
		started := iso(s.Created)
		if st.TTY {
			started = clock(s.Created, now)
		}
		runner := "-"
		if row.Live {
			runner = term.Line(row.Lease.Holder)
		}
		out = append(out, plain(term.Line(s.Agent.Name), s.Agent.Pin.String()[:8], runner, started, term.Line(triggerOf(s)),
			countOf(s.Totals.Usage.Tokens()), checkpointName(s.Checkpoint), orDash(labelsOf(s)))...)
	}
	line, elapsed := nowParts(row, now, st.TTY)
	if what := opt.Outcomes[s.ID]; what != "" && s.Status.Ended() {
		line = what
	}
	return append(out, cell{text: list(line, takeUp(row)), end: elapsed, whole: groupOf(row) <= wasInterrupted})
}

func triggerOf(s *stint.Session) string {
	if s.Trigger.Ref == "" {
		return s.Trigger.Kind
	}
	return s.Trigger.Kind + " " + s.Trigger.Ref
}

func labelsOf(s *stint.Session) string {
	var all []string
	for _, k := range sortedKeys(s.Labels) {
		all = append(all, k+"="+s.Labels[k])
	}
	return term.Line(strings.Join(all, ","))
}

// checkpointName is how a checkpoint is called: by the loop that it ends.
func checkpointName(c stint.Checkpoint) string {
	if c.Loop == 0 && c.Seq == 0 {
		return "-"
	}
	return fmt.Sprintf("ck-%d", c.Loop)
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// summary counts rows, on as many lines of at most width columns as that takes; 0 is
// any width.
func summary(rows []stint.Row, width int, now time.Time) string {
	var n [hasEnded + 1]int
	var cost stint.Money
	for i := range rows {
		g := groupOf(&rows[i])
		n[g]++
		if g != hasEnded {
			cost += rows[i].Session.Totals.Usage.Cost
		}
	}
	part := func(n int, what string) string {
		if n == 0 {
			return ""
		}
		return fmt.Sprintf("%d %s", n, what)
	}
	open := "nothing is open"
	if k := len(rows) - n[hasEnded]; k > 0 {
		open = fmt.Sprintf("%d open", k)
	}
	if len(rows) == 0 {
		open += ", stint ps -a lists what has ended"
	}
	need := part(n[needsYou], "need you")
	if n[needsYou] == 1 {
		need = "1 needs you"
	}
	spent := ""
	if cost > 0 {
		spent = Dollars(cost) + " so far"
	}
	return flowed(width, open, need, part(n[wasInterrupted], "interrupted"), part(n[isRunning], "running"), part(n[isWaiting], "waiting"),
		part(n[isPending], "pending"), part(n[hasEnded], "ended"), spent, now.Format("15:04:05 MST"))
}

// flowed joins what is not empty as [list] does, on as many lines as it takes for none
// to be longer than width columns; 0 is any width.
func flowed(width int, parts ...string) string {
	text, used := "", 0
	for _, p := range parts {
		n := term.Width(p)
		switch {
		case p == "":
		case text == "":
			text, used = p, n
		case width > 0 && used+3+n > width:
			text, used = text+"\n"+p, n
		default:
			text, used = text+" · "+p, used+3+n
		}
	}
	return text
}
