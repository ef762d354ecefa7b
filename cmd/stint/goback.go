package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/internal/config"
	"github.com/stint-dev/stint/internal/control"
	"github.com/stint-dev/stint/internal/jsonx"
	"github.com/stint-dev/stint/internal/term"
	"github.com/stint-dev/stint/internal/worktree"
	"github.com/stint-dev/stint/journal"
)

// backOptions are the flags of what goes on otherwise than it was: a restart, a rollback, a
// branch.
type backOptions struct {
	order
	from    int
	inDoubt string
	dryRun  bool
	edit    bool
	set     []string
	agent   string
	model   string
	pinned  *config.Agent // what agent and model come to; nil: the session's
}

// flags adds them to a command; from is the name of the flag that says the loop.
func (o *backOptions) flags(cmd *cobra.Command, from, what string) {
	f := cmd.Flags()
	f.IntVar(&o.from, from, 0, what)
	f.StringVar(&o.inDoubt, "in-doubt", "", "with --"+from+", what becomes of steps in doubt that come after it: ask (default), skip or redo")
	f.BoolVar(&o.dryRun, "dry-run", false, "print the plan and change nothing; exit 5 if it would be refused")
	f.StringArrayVar(&o.set, "set", nil, "change a member of the state: `KEY=VALUE`, a JSON value or a text, KEY may be a path like a.b; repeatable")
	f.BoolVar(&o.edit, "edit", false, "change the state in $EDITOR")
	f.StringVar(&o.agent, "agent", "", "go on with this `AGENT` of stint.yaml as it is now (default: as it was pinned)")
	f.StringVar(&o.model, "model", "", "go on with another model, `PROVIDER/MODEL`, of an agent of kind llm")
}

// check reads the flags into the order.
func (o *backOptions) check(cmd *cobra.Command, from string) error {
	if cmd.Flags().Changed(from) {
		if o.from < 0 {
			return misused(cmd, "--%s is a loop: 0 for the very beginning, or higher", from)
		}
		o.command.From = &o.from
	}
	switch choice := journal.DoubtChoice(o.inDoubt); choice {
	case journal.AskDoubt, journal.SkipDoubt, journal.RedoDoubt:
		o.command.InDoubt = choice
	case "":
		if cmd.Flags().Changed("in-doubt") {
			return misused(cmd, "--in-doubt is ask, skip or redo")
		}
	default:
		return misused(cmd, "--in-doubt is ask, skip or redo, not %q", o.inDoubt)
	}
	if o.edit && len(o.set) > 0 {
		return misused(cmd, "--edit and --set are two ways of one thing: give one of them")
	}
	return nil
}

// patch is what --set says, as a merge patch; nil: nothing.
func (o *backOptions) patch() (json.RawMessage, error) {
	root := map[string]any{}
	for _, s := range o.set {
		key, value, ok := strings.Cut(s, "=")
		if !ok || key == "" {
			return nil, usage(fmt.Errorf("--set %q is not KEY=VALUE", s))
		}
		at, path := root, strings.Split(key, ".")
		for _, name := range path[:len(path)-1] {
			below, ok := at[name].(map[string]any)
			if !ok {
				below = map[string]any{}
				at[name] = below
			}
			at = below
		}
		v := json.RawMessage(value)
		if jsonx.Check(v, jsonx.Limits{}) != nil { // a text need not be quoted
			text, err := stint.Marshal(value)
			if err != nil {
				return nil, usage(fmt.Errorf("--set %s: %w", key, err))
			}
			v = text
		}
		at[path[len(path)-1]] = v
	}
	if len(root) == 0 {
		return nil, nil
	}
	return stint.Marshal(root)
}

// apply puts the state and the agent that the session goes on with into the order. What
// changes one of them begins a new line, from the newest loop if none is said.
func (o *backOptions) apply(ctx context.Context, a *app, s *site, row *stint.Row) error {
	patch, err := o.patch()
	if err != nil {
		return err
	}
	if patch != nil || o.edit {
		state, err := a.desk(s).State(ctx, &row.Session, o.command.From, patch)
		if err != nil {
			return err
		}
		if o.edit {
			if state, err = a.edited(ctx, state); err != nil {
				return err
			}
		}
		o.command.State = state
	}
	if o.agent != "" || o.model != "" {
		if err := o.pin(ctx, a, s, row); err != nil {
			return err
		}
	}
	if (o.command.State != nil || o.command.Agent != nil) && o.command.From == nil {
		newest := row.Session.Checkpoint.Loop
		o.command.From = &newest
	}
	return nil
}

// pin puts the agent as stint.yaml has it, or the session's with another model, into the
// order.
func (o *backOptions) pin(ctx context.Context, a *app, s *site, row *stint.Row) error {
	if s.server != nil {
		what := "--model names a model of the providers here"
		if o.agent != "" {
			what = "--agent names an agent of the stint.yaml here"
		}
		return stint.Invalid.Errorf("", "%s, and the session is one of a server", what)
	}
	c, servers, err := a.otherwise(ctx, s, row, o.agent, o.model)
	if err != nil {
		return err
	}
	o.pinned = &c
	w := s.wire(nil)
	defer w.close()
	var agent engine.Agent
	err = w.until(ctx, func() (err error) {
		if o.agent != "" {
			agent, err = w.agent(c)
		} else {
			agent, err = w.pinnedTo(c, servers)
		}
		return err
	})
	if err != nil {
		return err
	}
	ref, def, err := engine.Pin(agent)
	o.command.Agent, o.command.Config = &ref, def
	return err
}

// edited is the state as a person left it in an editor. One that was closed without a change
// gives it up.
func (a *app) edited(ctx context.Context, state []byte) ([]byte, error) {
	editor := a.getenv("VISUAL")
	if editor == "" {
		editor = a.getenv("EDITOR")
	}
	words := strings.Fields(editor)
	if len(words) == 0 {
		e := stint.Invalid.Errorf("", "there is no editor to change the state in")
		e.Hint = "set EDITOR, or use --set KEY=VALUE"
		return nil, e
	}
	var pretty bytes.Buffer
	if len(state) == 0 {
		state = []byte("{}")
	}
	if err := json.Indent(&pretty, state, "", "  "); err != nil {
		return nil, &stint.Error{Code: stint.Corrupt, Op: "state", Err: err}
	}
	f, err := os.CreateTemp("", "stint-state-*.json")
	if err != nil {
		return nil, err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(append(pretty.Bytes(), '\n'))
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, words[0], append(words[1:], f.Name())...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = a.in, a.err, a.err
	if err := cmd.Run(); err != nil {
		return nil, &stint.Error{Code: stint.Invalid, Op: "edit", Err: err, Hint: "nothing was changed; the editor is $VISUAL or $EDITOR"}
	}
	got, err := os.ReadFile(f.Name())
	if err != nil {
		return nil, err
	}
	got = bytes.TrimSpace(got)
	switch err := jsonx.Check(got, jsonx.Limits{}); {
	case err != nil:
		return nil, &stint.Error{Code: stint.Invalid, Op: "edit", Err: fmt.Errorf("what was written is no JSON: %w", err), Hint: "nothing was changed; edit it again"}
	case bytes.Equal(got, pretty.Bytes()):
		e := stint.Invalid.Errorf("edit", "the state was closed as it was")
		e.Hint = "nothing was changed; leave --edit out to go on with the state as it is"
		return nil, e
	}
	var plain bytes.Buffer
	err = json.Compact(&plain, got)
	return plain.Bytes(), err
}

func (a *app) rollbackCommand() *cobra.Command {
	o := backOptions{order: order{kind: stint.Rollback}}
	cmd := &cobra.Command{
		Use: "rollback SESSION --to LOOP", Short: "Take a session back to the end of a loop, and park it there",
		Long: `Take a session back to the end of a loop, on a new line, and park it there until
stint resume. Loops after it stay readable on the line that is left, also by a later
rollback; what they did outside is listed and cannot be undone.`,
		Example: "  stint rollback x81d --to 3 --dry-run\n  stint rollback x81d --to 3 --reason \"wrong branch\" && stint resume x81d --run",
		Args:    exactly(1, "one session"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(cmd, "to"); err != nil {
				return err
			}
			if o.command.From == nil {
				return misused(cmd, "say where to: --to LOOP, 0 for the very beginning")
			}
			return a.goBack(cmd.Context(), args[0], o)
		},
	}
	controlFlags(cmd, &o.order, "")
	o.flags(cmd, "to", "keep loops 1 to `N`")
	return cmd
}

// goBack restarts a session, or rolls it back.
func (a *app) goBack(ctx context.Context, address string, o backOptions) error {
	s, row, _, err := a.atSession(ctx, address, o.run)
	if err != nil {
		return err
	}
	defer s.store.Close()
	if err := o.apply(ctx, a, s, &row); err != nil {
		return err
	}
	if o.pinned != nil {
		if err := a.countsMoney(o.pinned, &row.Session.Limits); err != nil {
			return err
		}
	}
	desk := a.desk(s)
	if o.command.From == nil && !o.dryRun {
		if err := desk.Restart(ctx, &row, nil, a.said(o.order)); err != nil {
			return err
		}
		return a.given(ctx, s, &row, o.order)
	}
	plan, refused, err := desk.PlanRestart(ctx, &row, a.said(o.order))
	if err != nil {
		return err
	}
	if err := a.noteMoney(&o, &row); err != nil {
		return err
	}
	if o.dryRun {
		return a.printPlan(ctx, s, &row, &plan, refused, &o)
	}
	if refused != nil && !row.Live && !waits(refused) {
		return refused
	}
	if !a.json {
		a.printf("%s", planText(&row, &plan, &o))
	}
	if err := desk.Restart(ctx, &row, &plan, a.said(o.order)); err != nil {
		return err
	}
	return a.given(ctx, s, &row, o.order)
}

// noteMoney says so where a session gets a model that costs money, and has no limit of that
// since the one before cost nothing. A branch gets the default; of a session that goes back
// the limits are left as they are.
func (a *app) noteMoney(o *backOptions, row *stint.Row) error {
	lim := row.Session.Limits
	if o.pinned == nil || a.json {
		return nil
	}
	err := a.defaultMoney(o.pinned, &lim)
	if err == nil && lim.Cost != row.Session.Limits.Cost {
		a.notef("stint: %s costs money, and the session has no limit of it: stint limit %s --cost %v sets one\n", o.pinned.LLM.ModelName(), row.Short, lim.Cost)
	}
	return err
}

// verb is the word for what the order does.
func (o *backOptions) verb() string {
	if o.kind == "" {
		return "branch"
	}
	return string(o.kind)
}

// again is the command that does what a plan shows.
func (o *backOptions) again(row *stint.Row, plan *journal.Plan, choice string) string {
	flag := "--from"
	if o.kind == stint.Rollback {
		flag = "--to"
	}
	out := fmt.Sprintf("stint %s %s %s %d", o.verb(), row.Short, flag, plan.From)
	for _, s := range o.set {
		out += " --set " + term.Command([]string{s})
	}
	if o.edit {
		out += " --edit"
	}
	if o.agent != "" {
		out += " --agent " + o.agent
	}
	if o.model != "" {
		out += " --model " + term.Command([]string{o.model})
	}
	if choice != "" {
		out += " --in-doubt " + choice
	}
	return out
}

// printPlan prints what the order would do, and refuses as it would.
func (a *app) printPlan(ctx context.Context, s *site, row *stint.Row, plan *journal.Plan, refused error, o *backOptions) error {
	files := a.filesSince(ctx, s, row, plan.From)
	asks := control.DecidersOf(refused)
	if asks != nil {
		refused = nil
	}
	switch {
	case a.json:
		doc := struct {
			Schema string `json:"schema"`
			*journal.Plan
			Files *worktree.Changes `json:"files"`
			Asks  *control.Deciders `json:"asks"`
		}{"stint.plan/1", plan, files, asks}
		if err := a.printJSON(doc); err != nil {
			return err
		}
	case o.command.From == nil:
		a.printf("%s", goOnText(row, plan))
		if asks != nil {
			a.printf("  %-9s %s\n", "Asks", term.Line(asks.String()))
		}
	default:
		choice := string(o.command.InDoubt)
		if refused != nil {
			choice = "skip | redo"
		}
		first := ""
		if asks != nil {
			first = fmt.Sprintf("  %-9s %s\n", "Asks", term.Line(asks.String()))
		}
		a.printf("%s%s%sNothing was changed. To do it: %s\n", planText(row, plan, o), planFiles(row, plan, files), first, o.again(row, plan, choice))
	}
	return refused
}

// waits reports whether an order is not refused, and others decide about it.
func waits(err error) bool {
	return control.DecidersOf(err) != nil
}

// filesSince are the files of a session that differ from those at the end of a loop; nil:
// its agent has no workspace. Where the session is one of a server, that is asked. A
// repository that is gone is no reason to show no plan.
func (a *app) filesSince(ctx context.Context, s *site, row *stint.Row, loop int) *worktree.Changes {
	if s.server != nil {
		var plan struct{ Files *worktree.Changes }
		if err := s.server.Get(ctx, "/v1/sessions/"+row.Session.ID.String()+"/plan", url.Values{"from": {strconv.Itoa(loop)}}, &plan); err != nil {
			return &worktree.Changes{Why: err.Error(), Files: []worktree.Change{}}
		}
		return plan.Files
	}
	_, c, err := s.pinOf(ctx, row.Session.ID)
	if err != nil || c.Workspace == nil { // a session of a program that uses the library has no such definition
		return nil
	}
	var changes worktree.Changes
	r, err := a.openWorkspace(ctx, &c)
	if err == nil {
		changes, err = r.Since(ctx, row.Session.ID, -1, loop)
	}
	if err != nil {
		return &worktree.Changes{Why: err.Error(), Files: []worktree.Change{}}
	}
	return &changes
}
