package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/ident"
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
runner only: --run is one.`,
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

// resolve checks the step before it sends the verdict.
func (a *app) resolve(ctx context.Context, address string, o order) error {
	s, err := a.open(ctx, false)
	if err != nil {
		return err
	}
	defer s.store.Close()
	row, place, err := view.Find(ctx, s.store, address, time.Now())
	if err != nil {
		return err
	}
	ses := &row.Session
	if ses.Status != stint.Waiting || ses.Wait.For != stint.ForDoubt {
		err := stint.Conflict.Errorf("resolve", "%s has no step in doubt: it is %s", ses.Name, ses.Status)
		err.Session = ses.ID
		return err
	}
	step := ses.Wait.Step
	if place.Step != 0 && (place.Loop != step.Loop || place.Step != step.Step || place.Sub != step.Sub) {
		err := stint.Conflict.Errorf("resolve", "the step in doubt is %s, not %s", step, stint.Position{Loop: place.Loop, Step: place.Step, Sub: place.Sub})
		err.Hint = fmt.Sprintf("stint resolve %s:%s", row.Short, step)
		return err
	}
	o.command.Step = &step
	return a.give(ctx, s, &row, o)
}

// orderAll gives one order to several sessions.
func (a *app) orderAll(ctx context.Context, addresses []string, o order) error {
	s, err := a.open(ctx, false)
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
	for i := range rows {
		if err := a.give(ctx, s, &rows[i], o); err != nil {
			return err
		}
	}
	return nil
}

// give sends the order and makes it act: the session's runner obeys it; one that
// nobody holds is settled here.
func (a *app) give(ctx context.Context, s *site, row *stint.Row, o order) error {
	status, _ := row.Status()
	// An interrupted session needs no message to go on, only a runner.
	if o.kind != stint.Resume || status != stint.Pending {
		if err := a.deliver(ctx, s, row, o); err != nil {
			return err
		}
	}
	if o.run {
		return a.runThere(ctx, s, row.Session.ID, a.json)
	}
	after, err := s.store.Session(ctx, row.Session.ID)
	if err != nil {
		return err
	}
	return a.ordered(&after, o)
}

func (a *app) deliver(ctx context.Context, s *site, row *stint.Row, o order) error {
	m := stint.Message{ID: ident.New().String(), Kind: o.kind, From: a.actor(), Body: o.body}
	if o.kind != stint.Prompt {
		data, err := stint.Marshal(o.command)
		if err != nil {
			return err
		}
		m.Data = data
	}
	if err := s.store.Send(ctx, row.Session.ID, m); err != nil {
		return err
	}
	if row.Live || !o.kind.Control() || o.kind == stint.Restart {
		return nil
	}
	w := s.wire(nil)
	defer w.close()
	e, err := a.engine(ctx, s, w)
	if err != nil {
		return err
	}
	defer e.Close()
	return e.Settle(ctx, row.Session.ID)
}

// ordered says how the session stands after an order, and what takes it up.
func (a *app) ordered(row *stint.Row, o order) error {
	if a.json {
		return a.printSession(row)
	}
	status, reason := row.Status()
	line := fmt.Sprintf("%s (%s) is %s", row.Session.Name, row.Short, status)
	if reason != "" {
		line += ": " + reason
	}
	switch {
	case row.Live:
		line += fmt.Sprintf(" on %s; %s was sent and acts at its next step boundary", row.Lease.Holder, o.kind)
	case status == stint.Pending:
		line += fmt.Sprintf("; a runner takes it up, or run it here: stint resume %s --run", row.Short)
	case o.kind == stint.Prompt || o.kind == stint.Restart:
		line += fmt.Sprintf("; %s is recorded, a runner takes it up, or run it here: stint %s %s --run", o.kind, map[bool]string{true: "resume", false: "restart"}[o.kind == stint.Prompt], row.Short)
	}
	a.printf("%s\n", line)
	return nil
}
