package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/ident"
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
		err := stint.Conflict.Errorf("resolve", "%s (%s) has no step in doubt: it is %s", ses.Name, row.Short, view.StatusWord(&row))
		err.Hint = "stint show " + row.Short + "  says what it needs, if anything"
		if ses.Status == stint.Pending && ses.At.Open {
			err.Hint = "stint resume " + row.Short + " --run  finds out what is in doubt, and asks"
		}
		return err
	}
	if differs, err := diverged(ctx, s, &row); err != nil {
		return err
	} else if differs {
		err := stint.Conflict.Errorf("resolve", "%s (%s) goes on otherwise than is recorded, which no word on a step settles", ses.Name, row.Short)
		err.Hint = anew(&row)
		return err
	}
	step := ses.Wait.Step
	if place.Step != 0 && (place.Loop != step.Loop || place.Step != step.Step || place.Sub != step.Sub) {
		err := stint.Conflict.Errorf("resolve", "the step in doubt is %s, not %s", step, stint.Position{Loop: place.Loop, Step: place.Step, Sub: place.Sub})
		err.Hint = fmt.Sprintf("stint resolve %s:%s --happened | --not | --unknown", row.Short, step)
		return err
	}
	o.command.Step = &step
	return a.give(ctx, s, &row, o)
}

// orderAll gives one order to several sessions, once it is clear which. One that
// cannot take it does not keep it from the others; the first error decides.
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

// give sends the order and makes it act: the session's runner obeys it; one that
// nobody holds is settled here.
func (a *app) give(ctx context.Context, s *site, row *stint.Row, o order) error {
	status, _ := row.Status()
	if err := a.futile(ctx, s, row, o); err != nil {
		return err
	}
	// An interrupted session needs no message to go on, only a runner.
	if o.kind != stint.Resume || status != stint.Pending {
		if err := a.deliver(ctx, s, row, o); err != nil {
			return err
		}
	}
	if o.run {
		return a.runThere(ctx, s, row, a.json)
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
		var e *stint.Error
		if errors.As(err, &e) && e.Code == stint.Conflict && row.Session.Status.Ended() {
			e = stint.Conflict.Errorf("", "%s (%s): the session has ended: %s", row.Session.Name, row.Short, row.Session.Status)
			e.Hint = fmt.Sprintf("stint restart %s --run begins it again", row.Short)
			if o.kind == stint.Prompt {
				e.Hint = fmt.Sprintf("stint restart %s --say TEXT --run begins it again with a message", row.Short)
			}
			return e
		}
		return err
	}
	if !o.kind.Control() {
		return nil
	}
	return a.settle(ctx, s, row, m.ID)
}

// settle has a message acted on: the session's runner obeys it, one that nobody holds
// is settled here.
func (a *app) settle(ctx context.Context, s *site, row *stint.Row, id string) error {
	if row.Live {
		return nil
	}
	w := s.wire(nil)
	defer w.close()
	e, err := a.engine(ctx, s, w)
	if err != nil {
		return err
	}
	defer e.Close()
	if err := e.Settle(ctx, row.Session.ID); err != nil {
		return err
	}
	return refusedFor(ctx, s, row, id)
}

// refusedFor is why a message was refused; nil if it was not.
func refusedFor(ctx context.Context, s *site, row *stint.Row, id string) error {
	es, err := s.store.Entries(ctx, stint.Range{Session: row.Session.ID, After: row.Session.Head, Kinds: []stint.Kind{stint.MessageRefused}})
	if err != nil {
		return err
	}
	for i := range es {
		d, err := journal.Decode[journal.Taken](&es[i])
		if err != nil {
			return err
		}
		if d.ID == id {
			err := stint.Conflict.Errorf(string(d.Kind), "%s (%s) refused it: %s", row.Session.Name, row.Short, d.Why)
			err.Hint = "stint show " + row.Short
			return err
		}
	}
	return nil
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
	case row.Live && o.kind == stint.Resume:
		line += " on " + row.Lease.Holder
	case row.Live:
		line += fmt.Sprintf(" on %s; %s was sent and acts %s", row.Lease.Holder, o.kind, o.when())
	case o.kind == stint.Restart && status != stint.Pending:
		line += fmt.Sprintf("; the restart is recorded, run it here: stint restart %s --run", row.Short)
	case status == stint.Pending || o.kind == stint.Prompt && row.Session.WokenBy(stint.Prompt):
		line += fmt.Sprintf("; run it here: stint resume %s --run", row.Short)
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

// diverged reports whether a session in doubt waits since its agent goes on otherwise than
// is recorded, and not for a word on a step.
func diverged(ctx context.Context, s *site, row *stint.Row) (bool, error) {
	v, err := view.NewShow(ctx, s.store, row, view.ShowOptions{Line: -1}, time.Now())
	if err != nil {
		return false, err
	}
	step := row.Session.Wait.Step.String()
	return !slices.ContainsFunc(v.Steps, func(st view.StepInfo) bool { return st.Step == step }), nil
}

// anew is how a loop that diverged goes on.
func anew(row *stint.Row) string {
	return fmt.Sprintf("do the loop anew, as the agent is now: stint restart %[1]s --from %[2]d --run\n  or put the agent back, and go on: stint resume %[1]s --run", row.Short, row.Session.Wait.Step.Loop-1)
}

// futile refuses an order that would be taken and lead to nothing: to go on before
// a step in doubt is settled asks the same again, and to park a session that is
// parked for it hides the question.
func (a *app) futile(ctx context.Context, s *site, row *stint.Row, o order) error {
	ses := &row.Session
	concerned := o.kind == stint.Resume || o.kind == stint.Pause || o.kind == stint.Interrupt || o.kind == stint.Restart && o.command.From == nil
	if !concerned || row.Live || ses.Status != stint.Waiting || ses.Wait.For != stint.ForDoubt {
		return nil
	}
	differs, err := diverged(ctx, s, row)
	if err != nil || differs { // it may have been mended
		return err
	}
	step := ses.Wait.Step.String()
	e := stint.Conflict.Errorf("", "%s (%s) is parked, and cannot go on before step %s is settled", ses.Name, row.Short, step)
	e.Hint = fmt.Sprintf("stint resolve %s:%s --happened | --not | --unknown", row.Short, step)
	return e
}
