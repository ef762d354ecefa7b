package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/view"
)

func (a *app) completionCommand() *cobra.Command {
	shells := []string{"bash", "zsh", "fish", "powershell"}
	return &cobra.Command{
		Use: "completion SHELL", Short: "Print a completion script for bash, zsh, fish or powershell",
		Example:   "  source <(stint completion bash)\n  stint completion fish > ~/.config/fish/completions/stint.fish",
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

// completeSessions offers the sessions, the most urgent first, with how they stand.
// It is silent where it cannot.
func (a *app) completeSessions(cmd *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
	const no = cobra.ShellCompDirectiveNoFileComp
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
	defer cancel()
	s, err := a.open(ctx, false)
	if err != nil {
		return nil, no
	}
	defer s.store.Close()
	rows, err := s.store.Sessions(ctx, stint.Filter{Limit: 200})
	if err != nil {
		return nil, no
	}
	slices.SortStableFunc(rows, func(x, y stint.Row) int { return urgency(&x) - urgency(&y) })
	var out []cobra.Completion
	for i := range rows {
		word := rows[i].Session.Name
		if !strings.HasPrefix(word, prefix) || slices.Contains(args, word) {
			if word = rows[i].Short; prefix == "" || !strings.HasPrefix(word, prefix) {
				continue
			}
		}
		out = append(out, cobra.CompletionWithDesc(word, view.StatusWord(&rows[i])))
	}
	return out, no | cobra.ShellCompDirectiveKeepOrder
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

// completeAgents offers the agents of stint.yaml.
func (a *app) completeAgents(_ *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
	const no = cobra.ShellCompDirectiveNoFileComp
	file, err := a.loadConfig()
	if err != nil || file == nil || len(args) > 0 {
		return nil, no
	}
	var out []cobra.Completion
	for name, c := range file.Agents {
		if strings.HasPrefix(name, prefix) {
			out = append(out, cobra.CompletionWithDesc(name, c.Description))
		}
	}
	slices.Sort(out)
	return out, no
}
