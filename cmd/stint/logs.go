package main

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/term"
	"github.com/stint-dev/stint/internal/view"
)

// logsOptions are the flags of stint logs.
type logsOptions struct {
	view.LogOptions
	follow       bool
	since, until string
	loops        string
	step         string
	kinds        []string
	level        string
	grep         string
	line         int
	after        int64
	output       string
}

// logsTail is how many entries a terminal gets without -n.
const logsTail = 50

func (a *app) logsCommand() *cobra.Command {
	var o logsOptions
	cmd := &cobra.Command{
		Use: "logs SESSION", Short: "Print what happened in a session",
		Long: `Print a session's journal as a log: loops, steps with their outcome, messages, and
what the agent wrote. An intent is →, an outcome ←, a failure ✗.

With -f it goes on with what comes, over restarts and changes of the runner, until
the session has ended. -o cat prints what the agent wrote and nothing else.`,
		Example: "  stint logs @last -f\n  stint logs x81d --loop 3..5 -k tool,output\n  stint logs x81d -p warn -x\n  stint logs x81d -o cat > output.txt",
		Args:    exactly(1, "one session"),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.logs(cmd.Context(), cmd, args[0], &o) },
	}
	f := cmd.Flags()
	f.BoolVarP(&o.follow, "follow", "f", false, "go on with what comes, until the session has ended")
	f.IntVarP(&o.Tail, "tail", "n", 0, "only the newest so many entries (default: 50 on a terminal, else all)")
	f.StringVarP(&o.since, "since", "S", "", "since this time: 10m, 7d, 06:00, yesterday, 2026-11-28")
	f.StringVarP(&o.until, "until", "U", "", "until this time")
	f.StringVar(&o.loops, "loop", "", "only these loops: 3, 3..5, 3..")
	f.StringVar(&o.step, "step", "", "only this step: 2, or 13.2 for that of loop 13")
	f.StringSliceVarP(&o.kinds, "kind", "k", nil, "only these: model tool step message state output loop session")
	f.StringVarP(&o.level, "priority", "p", "", "only what is at least: warn, error")
	f.StringVarP(&o.grep, "grep", "g", "", "only what matches this regular expression (RE2)")
	f.IntVar(&o.line, "line", -1, "only what was written on this line (default: all)")
	f.StringSliceVar(&o.Query.Streams, "stream", nil, "only output of these streams: stdout stderr log")
	f.Int64Var(&o.after, "after", 0, "only entries after this seq: the cursor of an earlier list")
	f.BoolVarP(&o.Explain, "explain", "x", false, "say what an entry means, where it matters")
	f.BoolVar(&o.Content, "content", false, "whole inputs, results and messages")
	f.BoolVar(&o.Raw, "raw", false, "with -o cat: the bytes as they are, also what a terminal acts on")
	f.StringVarP(&o.output, "output", "o", "short", "short, json, jsonl or cat")
	return cmd
}

func (a *app) logs(ctx context.Context, cmd *cobra.Command, address string, o *logsOptions) error {
	now, st := time.Now(), a.style()
	if err := a.logsFlags(cmd, o, now); err != nil {
		return err
	}
	s, err := a.reach(ctx, false)
	if err != nil {
		return err
	}
	defer s.store.Close()
	row, place, err := view.Find(ctx, s.store, address, now)
	if err != nil {
		return err
	}
	q := &o.Query
	if q.Line = o.line; place.Line >= 0 {
		q.Line = place.Line
	}
	if last := row.Session.At.Line; q.Line > last {
		err := stint.NotFound.Errorf("logs", "there is no line %d of %s; it has %s", q.Line, term.Line(row.Session.Name), view.LinesUpTo(last))
		err.Hint = "stint show " + row.Short + " lists them"
		return err
	}
	if at := row.Session.At; place.Loop > at.Loop && (q.Line < 0 || q.Line == at.Line) {
		err := stint.NotFound.Errorf("logs", "%s has not begun loop %d; it is at loop %d", term.Line(row.Session.Name), place.Loop, at.Loop)
		err.Hint = "stint show " + row.Short + " --all lists its loops"
		return err
	}
	if place.Loop > 0 {
		q.From, q.To, q.Step, q.Sub = place.Loop, place.Loop, place.Step, place.Sub
	}
	if !cmd.Flags().Changed("tail") && st.TTY && q.From == 0 && q.After == 0 && q.Since.IsZero() && o.Format != view.Cat {
		o.Tail = logsTail
	}
	log := view.NewLog(s.store, row, st, now, o.LogOptions)
	if !o.follow {
		return log.Write(ctx, a.out, now)
	}
	last, err := log.Follow(ctx, a.out, s.poll())
	switch {
	case errors.Is(err, context.Canceled):
		return exitError(exitInterrupted)
	case err == nil && last.Session.Status.Ended():
		a.notef("stint: the session has ended: %s\n", endedWords(&last))
	}
	return err
}

// endedWords is the outcome of a session with its reason.
func endedWords(row *stint.Row) string {
	status, reason := row.Status()
	if reason == "" {
		return string(status)
	}
	return string(status) + ", " + term.Line(reason)
}

// logsFlags reads the flags that need more than their type.
func (a *app) logsFlags(cmd *cobra.Command, o *logsOptions, now time.Time) error {
	q := &o.Query
	if a.json && !cmd.Flags().Changed("output") {
		o.output = string(view.JSON)
	}
	switch f := view.LogFormat(o.output); f {
	case "short":
		o.Format = view.Short
	case view.JSON, view.JSONL, view.Cat:
		o.Format = f
	default:
		return misused(cmd, "--output is short, json, jsonl or cat, not %q", o.output)
	}
	switch o.level {
	case "", "info":
	case "warn":
		q.Level = view.Warn
	case "error":
		q.Level = view.Error
	default:
		return misused(cmd, "--priority is warn or error, not %q", o.level)
	}
	for _, k := range o.kinds {
		if !slices.Contains(view.Classes(), view.Class(k)) {
			return misused(cmd, "%q is no kind of entry to choose; there are model tool step message state output loop session", k)
		}
		q.Kinds = append(q.Kinds, view.Class(k))
	}
	if o.Tail < 0 || o.after < 0 || o.line < -1 {
		return misused(cmd, "--tail, --after and --line are not below zero")
	}
	q.After = stint.Seq(o.after)
	return o.times(cmd, now)
}

// times reads the flags that choose times and places.
func (o *logsOptions) times(cmd *cobra.Command, now time.Time) (err error) {
	q := &o.Query
	if o.since != "" {
		if q.Since, err = parseWhen(o.since, now); err != nil {
			return err
		}
	}
	if o.until != "" {
		if q.Till, err = parseWhen(o.until, now); err != nil {
			return err
		}
	}
	if !q.Since.IsZero() && !q.Till.IsZero() && !q.Since.Before(q.Till) {
		return misused(cmd, "--since %q is not before --until %q", o.since, o.until)
	}
	if o.loops != "" {
		if q.From, q.To, err = view.ParseLoops(o.loops); err != nil {
			return err
		}
	}
	if o.step != "" {
		if err := o.oneStep(cmd); err != nil {
			return err
		}
	}
	if o.grep != "" {
		if q.Grep, err = regexp.Compile(o.grep); err != nil {
			return misused(cmd, "--grep: %v", err)
		}
	}
	return nil
}

// oneStep reads --step: a step of any loop, or of one.
func (o *logsOptions) oneStep(cmd *cobra.Command) error {
	q := &o.Query
	parts := strings.Split(o.step, ".")
	var n []int
	for _, p := range parts {
		v, _, err := view.ParseLoops(p)
		if err != nil || len(parts) > 3 {
			return misused(cmd, "--step is a number, or LOOP.STEP, or LOOP.STEP.MEMBER, not %q", o.step)
		}
		n = append(n, v)
	}
	if len(n) == 1 {
		q.Step = n[0]
		return nil
	}
	q.From, q.To, q.Step = n[0], n[0], n[1]
	if len(n) == 3 {
		q.Sub = n[2]
	}
	return nil
}
