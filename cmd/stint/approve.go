package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/client"
	"github.com/stint-dev/stint/internal/access"
	"github.com/stint-dev/stint/internal/control"
	"github.com/stint-dev/stint/internal/proc"
	"github.com/stint-dev/stint/internal/term"
	"github.com/stint-dev/stint/internal/view"
	"github.com/stint-dev/stint/policy"
)

func (a *app) approvalsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "approvals [SESSION]", Short: "List what waits for a person's decision",
		Long: `List the questions that sessions have asked and nobody has decided, the oldest first:
what a yes allows, with the exact arguments, and the rule that asks.`,
		Example: "  stint approvals\n  stint approvals triage-1129 --json",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return misused(cmd, "give one session, or none for all")
			}
			return nil
		},
		ValidArgsFunction: a.completeSessions,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.approvals(cmd.Context(), args) },
	}
	cmd.AddCommand(a.grantsCommand(), a.revokeGrantCommand())
	return cmd
}

func (a *app) approvals(ctx context.Context, args []string) error {
	s, err := a.reach(ctx, false)
	if err != nil {
		return err
	}
	defer s.store.Close()
	now := time.Now()
	var list view.Approvals
	if len(args) == 0 {
		list, err = view.NewApprovals(ctx, s.store, nil, now)
	} else {
		var row stint.Row
		if row, _, err = view.Find(ctx, s.store, args[0], now); err == nil {
			list, err = view.NewApprovals(ctx, s.store, &row, now)
		}
	}
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(list)
	}
	if len(list.Items) == 0 {
		a.printf("nothing waits for a decision\n")
		return nil
	}
	return list.Write(a.out, a.style(), now)
}

// decision is what approve and deny send.
type decision struct {
	state  stint.ApprovalState
	note   string
	answer string
	args   string
	run    bool
	grant  string        // session, agent or store; empty: none
	life   time.Duration // of it
	when   string        // what calls it is for; empty: those of exactly these arguments
	others []string      // answers that branches go on with
}

func (a *app) approveCommand() *cobra.Command {
	d := decision{state: stint.ApprovalApproved}
	cmd := &cobra.Command{
		Use: "approve APPROVAL…", Short: "Say yes to what a session asks, or answer it",
		Long: `Say yes to a question that stint approvals lists: the step is done with exactly the
arguments that were shown, once. --answer gives the answer where one is asked for: JSON
of the schema that was shown, or a text where a text is wanted. --args puts other
arguments in the place of those shown, where that is allowed. A session that has one
open question may stand for it. The first decision counts; a later one is told who
decided, and when.

--branch-with makes a branch that goes on from the question with another answer, yes, no
or what is asked for: what the loop has done before it is not done again there.`,
		Example: "  stint approve x81d.45\n  stint approve x81d.45 -m \"checked the amount\" --run\n  stint approve x81d.52 --answer blue\n  stint approve x81d.45 --args '{\"amount\": 90}'\n  stint approve x81d.45 --branch-with no\n  stint approve x81d.52 --answer blue --branch-with red --branch-with green",
		Args:    atLeast(1, "one or more approvals, like x81d.45"), ValidArgsFunction: a.completeApprovals,
		RunE: func(cmd *cobra.Command, args []string) error { return a.decideAll(cmd.Context(), args, d) },
	}
	d.flags(cmd)
	cmd.Flags().StringVar(&d.grant, "grant", "", "say yes to the same calls to come: of this session, of its agent, or of all in the store (`session`, agent, store)")
	cmd.Flags().DurationVar(&d.life, "for", policy.GrantLife, "how long the grant holds")
	cmd.Flags().StringVar(&d.when, "when", "", "grant calls for which this is true, like 'args.amount < 100', not those of exactly these arguments; true: all of them")
	cmd.Flags().StringVar(&d.answer, "answer", "", "the answer: `JSON`, or a text where a text is wanted")
	cmd.Flags().StringVar(&d.args, "args", "", "do it with these arguments instead: `JSON`; the agent is told that you changed them")
	return cmd
}

func (a *app) denyCommand() *cobra.Command {
	d := decision{state: stint.ApprovalDenied}
	cmd := &cobra.Command{
		Use: "deny APPROVAL…", Short: "Say no to what a session asks",
		Long: `Say no to a question that stint approvals lists: the step is not done, and the agent
goes on with the no as its result, and with the words that you give.`,
		Example: "  stint deny x81d.45 -m \"use the staging account\"\n  stint deny x81d.45 --branch-with yes",
		Args:    atLeast(1, "one or more approvals, like x81d.45"), ValidArgsFunction: a.completeApprovals,
		RunE: func(cmd *cobra.Command, args []string) error { return a.decideAll(cmd.Context(), args, d) },
	}
	d.flags(cmd)
	return cmd
}

func (d *decision) flags(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&d.note, "message", "m", "", "your words, one line of at most 1,000 bytes; the agent and the journal get them")
	cmd.Flags().BoolVar(&d.run, "run", false, runHere)
	cmd.Flags().StringArrayVar(&d.others, "branch-with", nil, "make a branch that goes on with this `ANSWER` instead: yes, no, or one as --answer takes it; repeatable")
}

// decideAll gives one decision on several questions.
func (a *app) decideAll(ctx context.Context, names []string, d decision) error {
	if err := d.said(a).Check("--"); err != nil {
		return err
	}
	s, err := a.reachFor(ctx, d.run)
	if err != nil {
		return err
	}
	defer s.store.Close()
	switch {
	case d.grant == "" && d.when != "":
		return usage(fmt.Errorf("--when goes with --grant"))
	case d.grant != "" && !slices.Contains([]policy.Scope{policy.InSession, policy.OfAgent, policy.InStore}, policy.Scope(d.grant)):
		return usage(fmt.Errorf("--grant is session, agent or store, not %q", d.grant))
	}
	if s.server != nil && d.grant != "" && len(d.others) > 0 {
		return usage(fmt.Errorf("at a server --grant and --branch-with are two decisions: give one of them"))
	}
	if d.run && len(names) > 1 {
		return usage(fmt.Errorf("--run takes one approval"))
	}
	return a.each(ctx, len(names), func(i int) error { return a.decide(ctx, s, names[i], d) })
}

func (a *app) decide(ctx context.Context, s *site, name string, d decision) error {
	row, v, err := a.decided(ctx, s, name, d)
	var e *stint.Error
	if errors.As(err, &e) && e.Code == stint.Invalid && e.Hint == "" {
		e.Hint = usageHint
	}
	if err != nil {
		return err
	}
	if d.run {
		return a.runThere(ctx, s, &row, a.json)
	}
	after, err := s.store.Session(ctx, row.Session.ID)
	if err != nil {
		return err
	}
	if a.json {
		return a.printSession(&after)
	}
	status, _ := after.Status()
	line := fmt.Sprintf("%s %s · %s (%s) is %s", d.state, v.Short, row.Session.Name, row.Short, view.StatusWord(&after))
	if status == stint.Pending {
		line += "; " + s.runs(&row)
	}
	a.printf("%s\n", term.Line(line))
	return a.madeWith(ctx, s, &after, len(d.others))
}

// decided makes a decision, and returns the session and the question as they were before.
// What a server is to grant it has to be asked for by its own route: it keeps grants.
func (a *app) decided(ctx context.Context, s *site, name string, d decision) (row stint.Row, v view.Approval, err error) {
	desk, may := a.desk(s), func(ctx context.Context, row *stint.Row) error { return a.mayDecide(ctx, s, row) }
	if s.server == nil || d.grant == "" {
		return desk.Decide(ctx, name, *d.said(a), may)
	}
	row, q, err := desk.Question(ctx, name)
	if err == nil {
		err = may(ctx, &row)
	}
	if err == nil {
		v, err = view.NewApproval(ctx, s.store, &row, &q)
	}
	if err == nil {
		g := client.Grant{Scope: d.grant, When: d.when, For: d.life.String()}
		err = s.server.Approve(ctx, v.ID, client.Approval{Message: d.note, Answer: json.RawMessage(d.answer), Args: json.RawMessage(d.args), Grant: &g})
	}
	return row, v, err
}

// madeWith says which branches a decision made.
func (a *app) madeWith(ctx context.Context, s *site, row *stint.Row, n int) error {
	if n == 0 {
		return nil
	}
	rows, err := s.store.Sessions(ctx, stint.Filter{Family: row.Session.Family, Limit: n})
	if err != nil {
		return err
	}
	found := false
	for i := range slices.Backward(rows) {
		if b := &rows[i]; b.Session.Parent.Branch && b.Session.Parent.Session == row.Session.ID {
			a.printf("%s (%s) goes on from there: %s\n", term.Line(b.Session.Name), b.Short, term.Line(b.Session.Parent.Reason))
			found = true
		}
	}
	if !found {
		a.printf("its runner makes the branch when it takes the decision: stint tree %s\n", row.Short)
	}
	return nil
}

// said is the decision as this person makes it.
func (d *decision) said(a *app) *control.Decision {
	var grant *policy.Grant
	if d.grant != "" {
		grant = &policy.Grant{Scope: policy.Scope(d.grant), When: d.when, Expires: time.Now().Add(d.life).UTC()}
	}
	return &control.Decision{Grant: grant, State: d.state, From: a.actor(), Note: d.note, Answer: d.answer, Text: true, Args: d.args, Others: d.others, Roles: texts(access.Local().Roles())}
}

// mayDecide refuses a decision by a process that a session of the same family started, or
// one that asked for the session: an agent does not approve itself, nor through another. What serves many sessions, as servers of tools do,
// decides nothing. A program of the same user that hides where it comes from is not kept
// from it; the guarantees say how to make a boundary.
func (a *app) mayDecide(ctx context.Context, s *site, row *stint.Row) error {
	from, served := a.startedBy()
	if served {
		e := stint.Denied.Errorf("approval", "this process was started by a program that serves agents, and an agent does not decide what it asks")
		e.Hint = "a person decides, in a shell of their own: stint approvals"
		return e
	}
	if len(from) == 0 {
		return nil
	}
	asks, err := starters(ctx, s, row)
	if err != nil {
		return err
	}
	for _, id := range from {
		family := id
		if other, err := s.store.Session(ctx, id); err == nil {
			family = other.Session.Family
		}
		if slices.Contains(asks, id) || slices.Contains(asks, family) {
			e := stint.Denied.Errorf("approval", "this process was started by the session %s, and an agent does not decide what it asks", id)
			e.Hint = "a person decides, in a shell of their own: stint approvals"
			return e
		}
	}
	return nil
}

// maxStarters bounds a chain of sessions that started each other.
const maxStarters = 100

// starters returns a session, its family, and the sessions and families that it was
// started by, one through the other: a session that another session asked for asks in the
// name of that one.
func starters(ctx context.Context, s *site, row *stint.Row) ([]stint.ID, error) {
	var all []stint.ID
	at := row.Session
	for range maxStarters {
		all = append(all, at.ID, at.Family)
		es, err := s.store.Entries(ctx, stint.Range{Session: at.Family, Limit: 1})
		if err != nil || len(es) == 0 {
			return all, err
		}
		name, ok := strings.CutPrefix(string(es[0].Actor), "session:")
		id, err := stint.ParseID(name)
		if !ok || err != nil || slices.Contains(all, id) {
			return all, nil
		}
		next, err := s.store.Session(ctx, id)
		if errors.Is(err, stint.NotFound) {
			return append(all, id), nil
		}
		if err != nil {
			return all, err
		}
		at = next.Session
	}
	return all, nil
}

// startedBy returns the sessions that this process descends from, see [startedBy].
func (a *app) startedBy() (sessions []stint.ID, served bool) {
	return startedBy(os.Getpid(), a.getenv("STINT_SESSION"))
}

// startedBy returns the sessions that a process descends from, the nearest first, as far
// as more and the environments say; served: it also descends from what a program of
// agents started that is of no one session, as servers of tools are.
func startedBy(pid int, more ...string) (sessions []stint.ID, served bool) {
	from := more
	for _, p := range proc.Ancestors(pid) {
		id, known := proc.Getenv(p.Pid, "STINT_SESSION")
		from = append(from, id)
		served = served || !known && proc.IsGuard(p.Pid)
	}
	for _, text := range from {
		if id, err := stint.ParseID(text); err == nil && !id.IsZero() && !slices.Contains(sessions, id) {
			sessions = append(sessions, id)
		}
	}
	return sessions, served
}
