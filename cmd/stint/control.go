package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/control"
	"github.com/stint-dev/stint/internal/jsonx"
	"github.com/stint-dev/stint/internal/term"
	"github.com/stint-dev/stint/internal/view"
	"github.com/stint-dev/stint/journal"
)

// order is a message that a verb sends to a session, and what then happens here.
type order struct {
	kind    stint.MessageKind
	command journal.Command
	body    []byte
	run     bool // drive the session here afterwards
}

// controlFlags are what all control verbs share.
func controlFlags(cmd *cobra.Command, o *order, what string) {
	cmd.Flags().StringVar(&o.command.Reason, "reason", "", "why; kept in the journal")
	if what != "" {
		cmd.Flags().BoolVar(&o.run, "run", false, what)
	}
}

const runHere = "then run the session here, in the foreground"

func (a *app) pauseCommand() *cobra.Command {
	o := order{kind: stint.Pause}
	cmd := &cobra.Command{
		Use: "pause SESSION…", Short: "Park a session until resume",
		Long: `Park a session at its next step boundary; its process ends there. With --now the
step under way is canceled. stint resume goes on from where it stood.`,
		Example: "  stint pause triage-1129\n  stint pause x81d --now --reason \"month end\"",
		Args:    atLeast(1, "one or more sessions"),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.orderAll(cmd.Context(), args, o) },
	}
	controlFlags(cmd, &o, "")
	cmd.Flags().BoolVar(&o.command.Now, "now", false, "cancel the step under way instead of waiting for its end")
	return cmd
}

func (a *app) resumeCommand() *cobra.Command {
	o := order{kind: stint.Resume}
	cmd := &cobra.Command{
		Use: "resume SESSION…", Short: "Let a parked or interrupted session go on",
		Long: `Let a session go on that waits for the operator, a budget, a rule, a time or a
retry, or whose agent was mended after a divergence. An interrupted session needs a
runner only: --run is one. A step in doubt is settled with stint resolve.`,
		Example: "  stint resume triage-1129\n  stint resume x81d --run",
		Args:    atLeast(1, "one or more sessions"),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.orderAll(cmd.Context(), args, o) },
	}
	controlFlags(cmd, &o, runHere)
	return cmd
}

func (a *app) interruptCommand() *cobra.Command {
	o := order{kind: stint.Interrupt}
	cmd := &cobra.Command{
		Use: "interrupt SESSION", Short: "Cancel the turn; the session then waits for a message",
		Long: `Cancel the step under way and leave the session waiting for a message. What its loop
finished before is kept, and answered when the loop begins again. Calls that a model
asked for and that have not begun are not made, and what it asks of you is withdrawn:
your next message is heard before any other call.`,
		Example: "  stint interrupt chat-1129 && stint send chat-1129 \"stop that, look at the tests\"",
		Args:    exactly(1, "one session"),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.orderAll(cmd.Context(), args, o) },
	}
	controlFlags(cmd, &o, "")
	return cmd
}

func (a *app) stopCommand() *cobra.Command {
	o := order{kind: stint.Stop}
	cmd := &cobra.Command{
		Use: "stop SESSION…", Short: "End a session at its next step boundary",
		Long:    "End a session as canceled at its next step boundary. stint kill does it at once.",
		Example: "  stint stop triage-1129 --reason \"wrong repository\"",
		Args:    atLeast(1, "one or more sessions"),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.orderAll(cmd.Context(), args, o) },
	}
	controlFlags(cmd, &o, "")
	return cmd
}

func (a *app) killCommand() *cobra.Command {
	o := order{kind: stint.Kill}
	cmd := &cobra.Command{
		Use: "kill SESSION…", Short: "End a session and its processes at once",
		Long: `End a session as canceled at once, with every process that its agent started. A
once step under way stays in doubt: stint show names it.`,
		Example: "  stint kill x81d",
		Args:    atLeast(1, "one or more sessions"),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.orderAll(cmd.Context(), args, o) },
	}
	controlFlags(cmd, &o, "")
	return cmd
}

func (a *app) sendCommand() *cobra.Command {
	o := order{kind: stint.Prompt}
	var file string
	cmd := &cobra.Command{
		Use: "send SESSION TEXT", Short: "Send a session a message",
		Long: `Put a message into a session's inbox. Its next loop gets it; a session that waits
for a message is woken by it.`,
		Example: "  stint send chat-1129 \"use the staging database\"\n  git diff | stint send review-1129 -f -",
		RunE: func(cmd *cobra.Command, args []string) error {
			in := requestOptions{file: file}
			switch {
			case file != "" && len(args) == 1:
			case file == "" && len(args) >= 2:
				in.prompt = strings.Join(args[1:], " ")
			default:
				return misused(cmd, "give a session and a text, or a session and --file")
			}
			body, err := in.input(a)
			if err != nil {
				return err
			}
			if o.body = body; len(body) == 0 {
				return misused(cmd, "the message is empty")
			}
			return a.orderAll(cmd.Context(), args[:1], o)
		},
	}
	cmd.Flags().StringVarP(&file, "file", "f", "", "read the message from a file, - for standard input")
	cmd.Flags().BoolVar(&o.run, "run", false, runHere)
	return cmd
}

func (a *app) resolveCommand() *cobra.Command {
	o := order{kind: stint.Resolve}
	var happened, not, unknown bool
	var result string
	cmd := &cobra.Command{
		Use: "resolve SESSION:STEP", Short: "Say what became of a step in doubt",
		Long: `A once step whose intent is recorded and whose outcome is not (stint or the step's
process died in between) is never run again by itself. Look at the world outside,
then say what you found:

  --happened  the effect took place; --result gives the step's result
  --not       it did not: it is done again, under the same idempotency key
  --unknown   nobody can tell: the loop goes on with a marker as the result`,
		Example: "  stint resolve x81d:4.2 --happened --result '{\"id\":4121}'\n  stint resolve x81d:4.2 --not --run",
		Args:    exactly(1, "one step, like x81d:4.2"),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case happened && !not && !unknown:
				o.command.Verdict = journal.Happened
			case not && !happened && !unknown:
				o.command.Verdict = journal.NotHappened
			case unknown && !happened && !not:
				o.command.Verdict = journal.Unknown
			default:
				return misused(cmd, "give one of --happened, --not, --unknown")
			}
			if result != "" {
				if !happened || !json.Valid([]byte(result)) {
					return misused(cmd, "--result is JSON and goes with --happened")
				}
				if err := jsonx.Check([]byte(result), jsonx.Limits{}); err != nil {
					return misused(cmd, "--result: %v", err)
				}
				o.command.Result = json.RawMessage(result)
			}
			return a.resolve(cmd.Context(), args[0], o)
		},
	}
	controlFlags(cmd, &o, runHere)
	cmd.Flags().BoolVar(&happened, "happened", false, "the effect took place")
	cmd.Flags().BoolVar(&not, "not", false, "the effect did not take place")
	cmd.Flags().BoolVar(&unknown, "unknown", false, "nobody can tell")
	cmd.Flags().StringVar(&result, "result", "", "what the step gave, as JSON")
	return cmd
}

// resolve finds the step and sends the verdict.
func (a *app) resolve(ctx context.Context, address string, o order) error {
	s, row, place, err := a.atSession(ctx, address, o.run)
	if err != nil {
		return err
	}
	defer s.store.Close()
	if err := a.desk(s).Resolve(ctx, &row, place, a.said(o)); err != nil {
		return err
	}
	return a.given(ctx, s, &row, o)
}

// orderAll gives one order to several sessions, once it is clear which. One that
// cannot take it does not keep it from the others; the first error decides.
func (a *app) orderAll(ctx context.Context, addresses []string, o order) error {
	s, err := a.reachFor(ctx, o.run)
	if err != nil {
		return err
	}
	defer s.store.Close()
	var rows []stint.Row
	for _, addr := range addresses {
		row, _, err := view.Find(ctx, s.store, addr, time.Now())
		if err != nil {
			return err
		}
		rows = append(rows, row)
	}
	if o.run && len(rows) > 1 {
		return usage(fmt.Errorf("--run takes one session"))
	}
	return a.each(ctx, len(rows), func(i int) error { return a.give(ctx, s, &rows[i], o) })
}

// each does the same to n things. One that fails does not keep it from the others; the
// first error decides the exit code.
func (a *app) each(ctx context.Context, n int, do func(i int) error) error {
	var first error
	for i := range n {
		err := do(i)
		switch {
		case err == nil:
		case n == 1 || ctx.Err() != nil:
			return err
		case first == nil:
			first = exitError(a.fail(err))
		default:
			a.fail(err)
		}
	}
	return first
}

// give sends the order and makes it act.
func (a *app) give(ctx context.Context, s *site, row *stint.Row, o order) error {
	if err := a.desk(s).Give(ctx, row, a.said(o)); err != nil {
		return err
	}
	return a.given(ctx, s, row, o)
}

// said is the order as this person gives it.
func (a *app) said(o order) control.Order {
	return control.Order{Kind: o.kind, From: a.actor(), Command: o.command, Body: o.body}
}

// given is what happens here after an order.
func (a *app) given(ctx context.Context, s *site, row *stint.Row, o order) error {
	if o.run {
		return a.runThere(ctx, s, row, a.json)
	}
	after, err := s.store.Session(ctx, row.Session.ID)
	if err != nil {
		return err
	}
	return a.ordered(s, &after, o)
}

// desk is where orders to the sessions of a store are given.
func (a *app) desk(s *site) *control.Desk {
	d := &control.Desk{Store: s.store, Settler: s.settler(), Brancher: s.brancher(), Prefix: "--"}
	if s.server == nil { // which has its own gate
		d.Gate = a.gate(s)
	}
	return d
}

// settler settles sessions with an engine of its own, made when one is needed.
type settler struct {
	app  *app
	site *site
}

// Settle implements [control.Settler].
func (t settler) Settle(ctx context.Context, id stint.ID) error {
	w := t.site.wire(nil)
	defer w.close()
	e, err := t.app.engine(ctx, t.site, w)
	if err != nil {
		return err
	}
	defer e.Close()
	return e.Settle(ctx, id)
}

// ordered says how the session stands after an order, and what takes it up.
func (a *app) ordered(s *site, row *stint.Row, o order) error {
	if a.json {
		return a.printSession(row)
	}
	status, reason := row.Status()
	line := fmt.Sprintf("%s (%s) is %s", row.Session.Name, row.Short, status)
	if reason != "" {
		line += ": " + reason
	}
	switch {
	case row.Live && o.kind == stint.Resume:
		line += " on " + row.Lease.Holder
	case row.Live:
		line += fmt.Sprintf(" on %s; %s was sent and acts %s", row.Lease.Holder, o.kind, o.when())
	case o.kind == stint.Restart && status != stint.Pending && s.server == nil:
		line += fmt.Sprintf("; the restart is recorded, run it here: stint restart %s --run", row.Short)
	case status == stint.Pending || o.kind == stint.Prompt && row.Session.WokenBy(stint.Prompt):
		line += "; " + s.runs(row)
	case o.kind == stint.Prompt:
		line += "; its next loop gets the message"
	}
	a.printf("%s\n", term.Line(line))
	return nil
}

// when says at what point a running session acts on the order.
func (o *order) when() string {
	switch {
	case o.kind == stint.Prompt:
		return "at its next loop"
	case o.kind == stint.Kill, o.kind == stint.Interrupt, o.command.Now:
		return "at once"
	}
	return "at its next step boundary"
}
