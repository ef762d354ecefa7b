package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/term"
	"github.com/stint-dev/stint/internal/view"
)

// goal is what stint wait waits for.
type goal struct {
	words  string
	ended  bool
	loop   int
	status stint.Status
}

func (a *app) waitCommand() *cobra.Command {
	what, timeout := "ended", time.Duration(0)
	cmd := &cobra.Command{
		Use: "wait SESSION", Short: "Wait until a session has ended, or for something else about it",
		Long: `Wait until a session has ended, waits, has completed a loop, or has some other status,
and print how it stands then. The wait is over too once the session has ended, or
waits for something that only a person brings.

The exit status says how the session stands: 0 if it completed, or goes on and what
was waited for is so; 7 if it ended otherwise; 6 if it waits; 124 if --timeout is over.`,
		Example: "  stint wait triage-1129 && echo done\n  stint wait x81d --for loop=5 --timeout 10m\n  stint wait x81d --for waiting",
		Args:    exactly(1, "one session"),
		RunE: func(cmd *cobra.Command, args []string) error {
			g, err := parseGoal(what)
			if err != nil {
				return misused(cmd, "%v", err)
			}
			if timeout < 0 {
				return misused(cmd, "--timeout is not below zero")
			}
			return a.wait(cmd.Context(), args[0], g, timeout)
		},
	}
	cmd.Flags().StringVar(&what, "for", what, "ended, waiting, loop=N, or a status")
	cmd.Flags().DurationVar(&timeout, "timeout", 0, "give up after this time, with exit status 124")
	return cmd
}

func parseGoal(s string) (goal, error) {
	g := goal{words: s}
	if n, ok := strings.CutPrefix(s, "loop="); ok {
		loop, err := strconv.Atoi(n)
		if err != nil || loop < 1 {
			return g, fmt.Errorf("--for loop=N takes the number of a loop, not %q", n)
		}
		g.loop, g.words = loop, "past loop "+n
		return g, nil
	}
	if s == "ended" {
		g.ended = true
		return g, nil
	}
	g.status = stint.Status(s)
	if all := []stint.Status{stint.Pending, stint.Running, stint.Waiting, stint.Completed, stint.Failed, stint.Stopped, stint.Canceled}; !slices.Contains(all, g.status) {
		return g, fmt.Errorf("--for is ended, waiting, loop=N or another status, not %q", s)
	}
	return g, nil
}

// reached reports whether row is what g is for.
func (g *goal) reached(row *stint.Row) bool {
	status, _ := row.Status()
	switch {
	case g.ended:
		return status.Ended()
	case g.loop > 0:
		return row.Session.Checkpoint.Loop >= g.loop
	}
	return status == g.status
}

// over reports whether waiting on makes no sense: the session has ended, or a
// person has to move it.
func over(s *stint.Session) bool {
	return s.Status.Ended() || view.NeedsPerson(s) || s.Status == stint.Waiting && s.Wait != nil && s.Wait.For == stint.ForMessage
}

func (a *app) wait(ctx context.Context, address string, g goal, timeout time.Duration) error {
	s, err := a.reach(ctx, false)
	if err != nil {
		return err
	}
	defer s.store.Close()
	row, _, err := view.Find(ctx, s.store, address, time.Now())
	if err != nil {
		return err
	}
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	if status, _ := row.Status(); status == stint.Pending && !g.reached(&row) {
		say := "stint: nobody runs it yet: stint resume " + row.Short + " --run does\n"
		if s.server != nil {
			say = "stint: nobody runs it yet: " + s.runs(&row) + "\n"
		}
		a.notef("%s", say)
	}
	tick := time.NewTicker(s.poll())
	defer tick.Stop()
	for !g.reached(&row) && !over(&row.Session) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			if err := a.waited(&row, false); err != nil {
				return err
			}
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				a.notef("stint: after %v the session is not %s yet\n", timeout, g.words)
				return exitError(exitTimeout)
			}
			return exitError(exitInterrupted)
		}
		next, err := s.store.Session(ctx, row.Session.ID)
		switch {
		case err == nil:
			row = next
		case ctx.Err() == nil:
			return err
		}
	}
	return a.waited(&row, true)
}

// waited prints how the session stands and returns that as an exit code.
func (a *app) waited(row *stint.Row, judge bool) error {
	if a.json {
		if err := view.WriteJSON(a.out, view.NewSession(row, time.Now())); err != nil {
			return err
		}
	} else {
		a.printf("%s\n", finalLine(row))
	}
	s := &row.Session
	switch {
	case !judge || s.Status == stint.Completed:
		return nil
	case s.Status.Ended():
		return exitError(exitNotOK)
	case s.Status == stint.Waiting:
		return exitError(exitWaits)
	}
	return nil
}

// finalLine is how a session stands, in a line.
func finalLine(row *stint.Row) string {
	s := &row.Session
	parts := []string{fmt.Sprintf("%s (%s) %s", s.Name, row.Short, view.StatusWord(row)), counted(s.Totals.Loops, "loop") + ", " + counted(s.Totals.Steps, "step")}
	if s.Totals.Usage.Cost > 0 {
		parts = append(parts, view.Dollars(s.Totals.Usage.Cost))
	}
	if s.Wait != nil {
		parts = append(parts, s.Wait.What)
	} else if _, reason := row.Status(); s.Status.Ended() {
		parts = append(parts, reason)
	}
	return term.Line(strings.Join(slices.DeleteFunc(parts, func(p string) bool { return p == "" }), " · "))
}

// counted is "1 loop" or "3 loops".
func counted(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}
