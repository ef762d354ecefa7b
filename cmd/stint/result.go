package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/term"
	"github.com/stint-dev/stint/internal/view"
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

func (a *app) result(ctx context.Context, address string) error {
	s, err := a.reach(ctx, false)
	if err != nil {
		return err
	}
	defer s.store.Close()
	row, place, err := view.Find(ctx, s.store, address, time.Now())
	if err != nil {
		return err
	}
	r, err := view.NewResult(ctx, s.store, &row, place.Line)
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
		a.notef("stint: %s\n", trouble(&r, &row))
	}
	return outcomeError(&stint.Session{Status: r.Status})
}

// trouble says why there is no result to rely on.
func trouble(r *view.Result, row *stint.Row) string {
	if !r.Status.Ended() {
		return fmt.Sprintf("%s (%s) has not ended: it is %s\n  stint wait %s waits until it has", r.Name, r.Short, view.StatusWord(row), r.Short)
	}
	return fmt.Sprintf("%s (%s) %s: %s\n  stint logs %s -p warn", r.Name, r.Short, r.Status, term.Line(r.Reason), r.Short)
}
