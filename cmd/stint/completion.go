package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/access"
	"github.com/stint-dev/stint/internal/term"
	"github.com/stint-dev/stint/internal/view"
)

func (a *app) completionCommand() *cobra.Command {
	shells := []string{"bash", "zsh", "fish", "powershell"}
	return &cobra.Command{
		Use: "completion SHELL", Short: "Print a completion script for bash, zsh, fish or powershell",
		Long: `Print a script that completes commands, flags, sessions with how they stand, steps in
doubt, loops to restart from, and the agents of stint.yaml. In bash it needs the
package bash-completion, in zsh compinit.`,
		Example:   "  source <(stint completion bash)       # in ~/.bashrc\n  source <(stint completion zsh)        # in ~/.zshrc, after compinit\n  stint completion fish > ~/.config/fish/completions/stint.fish",
		Args:      exactly(1, "one shell: bash, zsh, fish or powershell"),
		ValidArgs: shells,
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(a.out, true)
			case "zsh":
				return root.GenZshCompletion(a.out)
			case "fish":
				return root.GenFishCompletion(a.out, true)
			case "powershell":
				return root.GenPowerShellCompletionWithDesc(a.out)
			}
			return misused(cmd, "%q is none of %s", args[0], strings.Join(shells, ", "))
		},
	}
}

// completionTime bounds what a press of the tab key may cost.
const completionTime = 150 * time.Millisecond

// filesArgs are the commands whose arguments are files.
const filesArgs = " init validate accept backup restore salvage "

// complete says of every command what its arguments and flags can be. What is not
// known is offered nothing, rather than the files of the folder.
func (a *app) complete(root *cobra.Command) {
	args := map[string]cobra.CompletionFunc{"run": a.completeRun, "start": a.completeAgents, "resolve": a.completeDoubts}
	for name := range strings.FieldsSeq("show result logs wait export send interrupt restart rollback branch") {
		args[name] = one(a.completeSessions)
	}
	for name := range strings.FieldsSeq("verify pause resume stop kill") {
		args[name] = a.completeSessions
	}
	for _, c := range root.Commands() {
		if f := args[c.Name()]; f != nil {
			c.ValidArgsFunction = f
		}
		a.completeRest(c)
		for _, sub := range c.Commands() {
			a.completeRest(sub)
		}
	}
	a.completeFlag(root, "color", "auto", "always", "never")
	_ = root.RegisterFlagCompletionFunc("context", func(cmd *cobra.Command, _ []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return a.completeContexts(cmd, nil, prefix)
	})
}

func (a *app) completeRest(c *cobra.Command) {
	if c.ValidArgsFunction == nil && len(c.ValidArgs) == 0 && !c.HasSubCommands() && !strings.Contains(filesArgs, " "+c.Name()+" ") {
		c.ValidArgsFunction = cobra.NoFileCompletions
	}
	c.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
		switch name := c.Name() + " " + f.Name; {
		case slices.Contains([]string{"file", "out", "cpuprofile", "help", "tls-cert", "tls-key", "socket"}, f.Name):
		case f.Name == "agent" && name != "init agent":
			_ = c.RegisterFlagCompletionFunc(f.Name, a.completeAgents)
		case f.Name == "model":
			_ = c.RegisterFlagCompletionFunc(f.Name, a.completeModel)
		case f.Name == "tools":
			_ = c.RegisterFlagCompletionFunc(f.Name, a.completeTools)
		case name == "rollback to", f.Name == "from" && name != "next from" && name != "backfill from": // those are times
			_ = c.RegisterFlagCompletionFunc(f.Name, a.completeLoops)
		default:
			a.completeFlag(c, f.Name, flagValues(c, f)...)
		}
	})
}

// flagValues are the words that a flag of a command takes; none where it takes anything.
func flagValues(c *cobra.Command, f *pflag.Flag) (values []string) {
	switch c.Name() + " " + f.Name {
	case "init agent":
		return presetNames()
	case "create kind": // of a token
		return []string{string(access.User), string(access.CI), string(access.Agent)}
	case "create for": // how long it is good
		return nil
	case "create role":
		return texts(access.Roles())
	case "create scope":
		return texts(access.Scopes())
	case "test effect", "test kind", "test verb", "test trigger": // of a policy
		return policyWords(f.Name)
	}
	switch f.Name {
	case "kind":
		return texts(view.Classes())
	case "status":
		return strings.Fields("pending running waiting completed failed stopped canceled")
	case "for":
		return strings.Fields("ended waiting loop= running completed failed")
	case "output":
		values = strings.FieldsFunc(f.Usage, func(r rune) bool { return r == ',' || r == ' ' })
		return slices.DeleteFunc(values, func(s string) bool { return s == "or" })
	case "print-config":
		return strings.Fields(mcpClients)
	case "sort":
		return []string{string(view.ByWait), string(view.ByCost), string(view.ByAge), string(view.ByName)}
	case "priority":
		return []string{"warn", "error"}
	case "stream":
		return []string{"stdout", "stderr", "log"}
	case "effect":
		return []string{"once", "idempotent", "read"}
	case "in-doubt":
		return []string{"ask", "skip", "redo"}
	case "on-limit":
		return []string{"wait", "stop"}
	case "log-format":
		return []string{logText, logJSON, logTerminal}
	case "log-level":
		return []string{"debug", "info", "warn", "error"}
	}
	return nil
}

// texts are the words of an enumeration.
func texts[T ~string](all []T) []string {
	out := make([]string, len(all))
	for i, one := range all {
		out[i] = string(one)
	}
	return out
}

// completeFlag offers values for a flag, none if there are none. It fails only for
// a flag that is not there, or has its values already.
func (a *app) completeFlag(c *cobra.Command, name string, values ...string) {
	_ = c.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}

// one completes the first argument alone.
func one(f cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return f(cmd, args, prefix)
	}
}

// atStore calls fn with the open store, as long as a key press may take. Where that
// is not possible it is silent.
func (a *app) atStore(cmd *cobra.Command, fn func(context.Context, *site) error) {
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
	defer cancel()
	s, err := a.reach(ctx, false)
	if err != nil {
		return
	}
	defer s.store.Close()
	_ = fn(ctx, s)
}

// completeSessions offers the sessions, the most urgent first, with how they stand.
func (a *app) completeSessions(cmd *cobra.Command, args []string, prefix string) (out []cobra.Completion, _ cobra.ShellCompDirective) {
	a.atStore(cmd, func(ctx context.Context, s *site) error {
		rows, err := s.store.Sessions(ctx, stint.Filter{Limit: 200})
		slices.SortStableFunc(rows, func(x, y stint.Row) int { return urgency(&x) - urgency(&y) })
		open := map[string]int{}
		for i := range rows {
			if !rows[i].Session.Status.Ended() {
				open[rows[i].Session.Name]++
			}
		}
		offered := slices.Clone(args)
		for i := range rows {
			word := rows[i].Session.Name
			if open[word] > 1 || slices.Contains(offered, word) || !strings.HasPrefix(word, prefix) {
				word = rows[i].Short // the name means another, or several
			}
			if !strings.HasPrefix(word, prefix) || slices.Contains(offered, word) {
				continue
			}
			offered = append(offered, word)
			what := view.StatusWord(&rows[i])
			if word != rows[i].Session.Name {
				what = rows[i].Session.Name + " " + what
			}
			out = append(out, cobra.CompletionWithDesc(word, term.Line(what)))
		}
		return err
	})
	return out, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}

func urgency(r *stint.Row) int {
	status, _ := r.Status()
	switch {
	case view.NeedsPerson(&r.Session):
		return 0
	case status == stint.Pending:
		return 1
	case status == stint.Running:
		return 2
	case !status.Ended():
		return 3
	}
	return 4
}

// completeDoubts offers the steps that wait for a person's word.
func (a *app) completeDoubts(cmd *cobra.Command, args []string, prefix string) (out []cobra.Completion, _ cobra.ShellCompDirective) {
	a.atStore(cmd, func(ctx context.Context, s *site) error {
		rows, err := s.store.Sessions(ctx, stint.Filter{Statuses: []stint.Status{stint.Waiting}, Limit: 200})
		for i := range rows {
			w := rows[i].Session.Wait
			if len(args) > 0 || w == nil || w.For != stint.ForDoubt {
				continue
			}
			for _, word := range []string{rows[i].Short, rows[i].Session.Name} {
				if word += ":" + w.Step.String(); strings.HasPrefix(word, prefix) {
					out = append(out, cobra.CompletionWithDesc(word, term.Line(rows[i].Session.Name+" "+w.What)))
					break
				}
			}
		}
		return err
	})
	return out, cobra.ShellCompDirectiveNoFileComp
}

// completeApprovals offers the open questions.
func (a *app) completeApprovals(cmd *cobra.Command, args []string, prefix string) (out []cobra.Completion, _ cobra.ShellCompDirective) {
	a.atStore(cmd, func(ctx context.Context, s *site) error {
		rows, err := s.store.Sessions(ctx, stint.Filter{Open: true, Limit: 200})
		for i := range rows {
			for _, q := range rows[i].Session.At.Approvals {
				word := fmt.Sprintf("%s.%d", rows[i].Short, q.Seq)
				if q.State == stint.ApprovalOpen && strings.HasPrefix(word, prefix) && !slices.Contains(args, word) {
					out = append(out, cobra.CompletionWithDesc(word, term.Line(rows[i].Session.Name+" "+q.Text)))
				}
			}
		}
		return err
	})
	return out, cobra.ShellCompDirectiveNoFileComp
}

// completeLoops offers the completed loops of the session in the first argument,
// the newest first.
func (a *app) completeLoops(cmd *cobra.Command, args []string, _ string) (out []cobra.Completion, _ cobra.ShellCompDirective) {
	a.atStore(cmd, func(ctx context.Context, s *site) error {
		if len(args) == 0 {
			return nil
		}
		row, _, err := view.Find(ctx, s.store, args[0], time.Now())
		if err != nil {
			return err
		}
		v, err := view.NewShow(ctx, s.store, &row, view.ShowOptions{Line: -1, All: true}, time.Now())
		for _, l := range slices.Backward(v.Loops) {
			if l.Completed {
				out = append(out, cobra.CompletionWithDesc(strconv.Itoa(l.Loop), term.Line(l.Headline)))
			}
		}
		return err
	})
	return out, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}

// completeRun offers agents; what stands behind -- is the shell's.
func (a *app) completeRun(cmd *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if slices.Contains(a.args, "--") { // cobra does not tell: it puts a -- of its own behind the arguments
		return nil, cobra.ShellCompDirectiveDefault
	}
	return a.completeAgents(cmd, args, prefix)
}

// completeAgents offers the agents of stint.yaml, or of the server that was chosen.
func (a *app) completeAgents(cmd *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
	const no = cobra.ShellCompDirectiveNoFileComp
	if len(args) > 0 && cmd.Name() != "ps" {
		return nil, no
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
	defer cancel()
	items, err := a.agentList(ctx)
	if err != nil {
		return nil, no
	}
	var out []cobra.Completion
	for _, it := range items {
		if strings.HasPrefix(it.Name, prefix) {
			out = append(out, cobra.CompletionWithDesc(it.Name, term.Line(it.Description)))
		}
	}
	slices.Sort(out)
	return out, no
}
