package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/term"
	"github.com/stint-dev/stint/internal/view"
	"github.com/stint-dev/stint/journal"
)

func (a *app) resultCommand() *cobra.Command {
	return &cobra.Command{
		Use: "result SESSION", Short: "Print what a session ended with",
		Long: `Print the result of a session that has ended, as its agent gave it. Of a session
that was restarted, SESSION/LINE is what a line that it left had ended with.

The exit status says how it ended: 0 if it completed, 7 if otherwise, and why on
standard error; 6 if it has not ended.`,
		Example: "  stint result triage-1129\n  stint wait triage-1129 && stint result triage-1129 > result.json\n  stint result x81d --json",
		Args:    exactly(1, "one session"),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.result(cmd.Context(), args[0]) },
	}
}

// result is how a line of a session ended, as JSON, schema stint.result/1.
type result struct {
	Schema  string          `json:"schema"`
	Session stint.ID        `json:"session"`
	Short   string          `json:"short"`
	Name    string          `json:"name"`
	Line    int             `json:"line"`
	Status  stint.Status    `json:"status"`
	Reason  string          `json:"reason"`
	Ended   *time.Time      `json:"ended"`  // null if it has not
	Result  json.RawMessage `json:"result"` // null if there is none
}

func (a *app) result(ctx context.Context, address string) error {
	s, err := a.open(ctx, false)
	if err != nil {
		return err
	}
	defer s.store.Close()
	row, place, err := view.Find(ctx, s.store, address, time.Now())
	if err != nil {
		return err
	}
	r, err := readResult(ctx, s, &row, place.Line)
	if err != nil {
		return err
	}
	switch {
	case a.json:
		err = view.WriteJSON(a.out, r)
	case r.Result != nil:
		text := string(r.Result)
		if a.style().TTY {
			text = term.Escape(text)
		}
		_, err = io.WriteString(a.out, text+"\n")
	}
	if err != nil {
		return err
	}
	if !a.json && r.Status != stint.Completed {
		a.notef("stint: %s\n", r.trouble(&row))
	}
	return outcomeError(&stint.Session{Status: r.Status})
}

// trouble says why there is no result to rely on.
func (r *result) trouble(row *stint.Row) string {
	if !r.Status.Ended() {
		return fmt.Sprintf("%s (%s) has not ended: it is %s\n  stint wait %s waits until it has", r.Name, r.Short, view.StatusWord(row), r.Short)
	}
	return fmt.Sprintf("%s (%s) %s: %s\n  stint logs %s -p warn", r.Name, r.Short, r.Status, term.Line(r.Reason), r.Short)
}

// readResult finds how line ended; -1 is the current one.
func readResult(ctx context.Context, s *site, row *stint.Row, line int) (result, error) {
	ses := &row.Session
	r := result{Schema: "stint.result/1", Session: ses.ID, Short: row.Short, Name: ses.Name, Line: ses.At.Line}
	if line < 0 || line == ses.At.Line {
		if r.Status, r.Reason = row.Status(); !r.Status.Ended() {
			return r, nil
		}
	} else {
		r.Line = line
	}
	es, err := s.store.Entries(ctx, stint.Range{Session: ses.ID, Kinds: []stint.Kind{stint.SessionEnded}})
	if err != nil {
		return r, err
	}
	for i := len(es) - 1; i >= 0; i-- {
		e := &es[i]
		if e.Pos.Line != r.Line {
			continue
		}
		d, err := journal.Decode[journal.Ended](e)
		if err != nil {
			return r, err
		}
		at := e.At.UTC().Truncate(time.Microsecond)
		r.Status, r.Reason, r.Ended = d.Outcome, d.Reason, &at
		body := e.Body
		if !e.Blob.IsZero() {
			if body, err = s.store.Blob(ctx, ses.Family, e.Blob); err != nil {
				return r, err
			}
		}
		if len(body) > 0 {
			r.Result = body
		}
		return r, nil
	}
	missing := stint.NotFound.Errorf("result", "line %d of %s never ended: the session went back before", r.Line, term.Line(ses.Name))
	missing.Hint = fmt.Sprintf("stint show %s/%d", row.Short, r.Line)
	return r, missing
}
