package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/notify"
	"github.com/stint-dev/stint/internal/server"
	"github.com/stint-dev/stint/internal/view"
)

func (a *app) notifyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "notify", Short: "See endpoints that are told what happens, and let one that is paused go on",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownCommand(cmd, args)
			}
			return cmd.Help()
		},
	}
	cmd.AddCommand(a.notifyListCommand(), a.notifyHistoryCommand(), a.notifyResumeCommand())
	return cmd
}

// endpointStatus is how an endpoint does, in a word.
func endpointStatus(s notify.Status) string {
	switch {
	case s.Paused != nil:
		return "paused"
	case !s.Failing.IsZero():
		return "failing"
	}
	return "on"
}

func (a *app) endpoints(ctx context.Context, s *site) ([]notify.Status, error) {
	raw, err := s.system(ctx, notify.Section)
	if err != nil {
		return nil, err
	}
	return notify.Read(raw)
}

func (a *app) notifyListCommand() *cobra.Command {
	return &cobra.Command{
		Use: "ls", Short: "List the endpoints, how they do, and what waits for another attempt", Args: noArgs,
		Example: "  stint notify ls\n  stint notify ls --json",
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.notifyList(cmd.Context()) },
	}
}

func (a *app) notifyList(ctx context.Context) error {
	s, err := a.reach(ctx, false)
	if err != nil {
		return err
	}
	defer s.store.Close()
	items, err := a.endpoints(ctx, s)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(struct {
			Schema string          `json:"schema"`
			Items  []notify.Status `json:"items"`
		}{"stint.endpoint.list/1", append([]notify.Status{}, items...)})
	}
	if len(items) == 0 {
		a.printf("There are no endpoints. docs/notify.md says how stint.yaml has them.\n")
		return nil
	}
	rows := make([][]string, 0, len(items))
	for _, it := range items {
		why := ""
		switch {
		case it.Paused != nil:
			why = it.Paused.Reason
		case len(it.Pending) > 0:
			why = it.Pending[len(it.Pending)-1].Error
		}
		rows = append(rows, []string{it.Name, endpointStatus(it), fmt.Sprint(len(it.Pending)), why})
	}
	return view.WriteTable(a.out, a.style(), []string{"ENDPOINT", "STATUS", "PENDING", "WHY"}, rows)
}

func (a *app) notifyHistoryCommand() *cobra.Command {
	var limit int
	cmd := &cobra.Command{
		Use: "history ENDPOINT", Short: "Show what an endpoint was told within 30 days, newest first",
		Example: "  stint notify history pager\n  stint notify history pager -n 100 --json",
		Args:    exactly(1, "one endpoint"), ValidArgsFunction: a.completeEndpoints,
		RunE: func(cmd *cobra.Command, args []string) error {
			if limit < 1 || limit > 1000 {
				return usage(fmt.Errorf("--count is from 1 to 1000, not %d", limit))
			}
			return a.notifyHistory(cmd.Context(), args[0], limit)
		},
	}
	cmd.Flags().IntVarP(&limit, "count", "n", 20, "how many")
	return cmd
}

func (a *app) notifyHistory(ctx context.Context, name string, limit int) error {
	s, err := a.reach(ctx, false)
	if err != nil {
		return err
	}
	defer s.store.Close()
	if err := a.hasEndpoint(ctx, s, name); err != nil {
		return err
	}
	items, err := notify.Deliveries(ctx, s.store, name, notify.Sent{}, limit)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(struct {
			Schema   string        `json:"schema"`
			Endpoint string        `json:"endpoint"`
			Items    []notify.Sent `json:"items"`
		}{"stint.notification.list/1", name, append([]notify.Sent{}, items...)})
	}
	if len(items) == 0 {
		a.printf("%s was told nothing within 30 days.\n", name)
		return nil
	}
	rows := make([][]string, 0, len(items))
	for _, it := range items {
		row, err := s.store.Session(ctx, it.Session)
		if err != nil && stint.CodeOf(err) != stint.NotFound {
			return err
		}
		rows = append(rows, []string{it.At.Local().Format(time.DateTime), string(it.Event), row.Short, strings.ReplaceAll(string(it.Result), "_", " "), fmt.Sprint(it.Attempts), it.Error})
	}
	return view.WriteTable(a.out, a.style(), []string{"AT", "EVENT", "SESSION", "RESULT", "ATTEMPTS", "WHY"}, rows)
}

// hasEndpoint is [stint.NotFound] if the store knows no such endpoint.
func (a *app) hasEndpoint(ctx context.Context, s *site, name string) error {
	all, err := a.endpoints(ctx, s)
	if err != nil || slices.ContainsFunc(all, func(it notify.Status) bool { return it.Name == name }) {
		return err
	}
	e := stint.NotFound.Errorf("notify", "there is no endpoint %q", name)
	e.Hint = "stint notify ls lists those that a server has taken up"
	return e
}

func (a *app) notifyResumeCommand() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use: "resume ENDPOINT", Short: "Let an endpoint that is paused go on where it was",
		Example: `  stint notify resume pager -m "it has a new certificate"`,
		Args:    exactly(1, "one endpoint"), ValidArgsFunction: a.completeEndpoints,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.notifyResume(cmd.Context(), args[0], reason)
		},
	}
	cmd.Flags().StringVarP(&reason, "message", "m", "", "why")
	return cmd
}

func (a *app) notifyResume(ctx context.Context, name, reason string) error {
	s, err := a.reach(ctx, false)
	if err != nil {
		return err
	}
	defer s.store.Close()
	if err := a.hasEndpoint(ctx, s, name); err != nil {
		return err
	}
	own := func(_ context.Context, v *serving) (server.Obeyer, error) { return v.notifier, nil }
	if _, err := a.order(ctx, s, notify.Command{Verb: notify.ResumeVerb, Endpoint: name, Reason: reason}, own); err != nil {
		return err
	}
	if a.json {
		return a.notifyList(ctx)
	}
	a.printf("%s goes on where it was.\n", name)
	return nil
}

func (a *app) completeEndpoints(cmd *cobra.Command, args []string, prefix string) (out []cobra.Completion, _ cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
	defer cancel()
	s, err := a.reach(ctx, false)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	defer s.store.Close()
	all, _ := a.endpoints(ctx, s) // none are offered then
	for _, it := range all {
		if strings.HasPrefix(it.Name, prefix) {
			out = append(out, cobra.CompletionWithDesc(it.Name, endpointStatus(it)))
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}
