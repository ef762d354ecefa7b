package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/config"
	"github.com/stint-dev/stint/internal/endpoint"
	"github.com/stint-dev/stint/internal/hook"
	"github.com/stint-dev/stint/internal/notify"
	"github.com/stint-dev/stint/internal/server"
)

func (a *app) notifyCommand() *cobra.Command {
	return group(&cobra.Command{Use: "notify", Short: "See endpoints that are told what happens, try one, and let one that is paused go on"},
		a.notifyListCommand(), a.notifyHistoryCommand(), a.notifyResumeCommand(), a.notifyTestCommand())
}

// channel is how an endpoint of a stint.yaml in dir is reached.
func (w *wiring) channel(c *endpoint.Definition, dir string) notify.Channel {
	value := func(ref string) (string, error) { return config.Resolve(ref, w.getenv, os.ReadFile) }
	switch {
	case c.Exec != nil:
		return &notify.Exec{Command: c.Exec.Command, Dir: dir, Timeout: c.Exec.Timeout, Env: func() (secrets, plain map[string]string, err error) {
			secrets, plain = map[string]string{}, map[string]string{}
			for name, ref := range c.Exec.Env {
				to := plain
				if config.IsReference(ref) {
					to = secrets
				}
				if to[name], err = value(ref); err != nil {
					return nil, nil, err
				}
			}
			return secrets, plain, nil
		}}
	case c.SMTP != nil:
		m := &notify.Mail{SMTP: *c.SMTP}
		if c.SMTP.Password != "" {
			m.Secret = func() (string, error) { return value(c.SMTP.Password) }
		}
		return m
	}
	return &notify.Webhook{URL: c.URL, AllowPrivate: c.Private, Secrets: func() ([]string, error) {
		return config.HookSecrets(hook.Definition{Name: c.Name, Scheme: hook.Standard, Secrets: c.Secrets}, w.getenv, os.ReadFile)
	}}
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
	return a.printTable(table{
		doc: struct {
			Schema string          `json:"schema"`
			Items  []notify.Status `json:"items"`
		}{"stint.endpoint.list/1", append([]notify.Status{}, items...)},
		none:  "There are no endpoints. docs/notify.md says how stint.yaml has them.",
		heads: []string{"ENDPOINT", "STATUS", "PENDING", "WHY"}, rows: rows,
	})
}

func (a *app) notifyHistoryCommand() *cobra.Command {
	return counting(&cobra.Command{
		Use: "history [ENDPOINT]", Short: "Show what endpoints were told within 30 days, newest first",
		Example: "  stint notify history\n  stint notify history pager -n 100 --json",
		Args:    atMost(1, "one endpoint"), ValidArgsFunction: a.completeEndpoints,
	}, func(ctx context.Context, args []string, n int) error {
		return a.notifyHistory(ctx, strings.Join(args, ""), n)
	})
}

// notifyHistory shows what an endpoint was told, or all of them if the name is empty.
func (a *app) notifyHistory(ctx context.Context, name string, limit int) error {
	s, err := a.reach(ctx, false)
	if err != nil {
		return err
	}
	defer s.store.Close()
	of := []string{name}
	if name != "" {
		err = a.hasEndpoint(ctx, s, name)
	} else {
		of, err = a.endpointNames(ctx, s)
	}
	if err != nil {
		return err
	}
	items, err := notify.History(ctx, s.store, of, notify.Sent{}, limit)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(struct {
			Schema   string        `json:"schema"`
			Endpoint string        `json:"endpoint,omitempty"`
			Items    []notify.Sent `json:"items"`
		}{"stint.notification.list/1", name, append([]notify.Sent{}, items...)})
	}
	rows := make([][]string, 0, len(items))
	for _, it := range items {
		session := it.Session.String()
		row, err := s.session(ctx, it.Session)
		switch {
		case err == nil:
			session = row.Short
		case stint.CodeOf(err) != stint.NotFound: // else it was deleted since
			return err
		}
		rows = append(rows, []string{it.At.Local().Format(time.DateTime), it.Endpoint, string(it.Event), session, strings.ReplaceAll(string(it.Result), "_", " "), fmt.Sprint(it.Attempts), it.Error})
	}
	none := name + " was told nothing within 30 days."
	if name == "" {
		none = "No endpoint was told anything within 30 days."
	}
	return a.printTable(table{none: none, heads: []string{"AT", "ENDPOINT", "EVENT", "SESSION", "RESULT", "ATTEMPTS", "WHY"}, rows: rows})
}

// endpointNames are those that the store knows.
func (a *app) endpointNames(ctx context.Context, s *site) ([]string, error) {
	all, err := a.endpoints(ctx, s)
	names := make([]string, len(all))
	for i := range all {
		names[i] = all[i].Name
	}
	return names, err
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

func (a *app) notifyTestCommand() *cobra.Command {
	return &cobra.Command{
		Use: "test ENDPOINT", Short: "Send an endpoint of stint.yaml a sample, and say what came of it",
		Long: `Send a sample to an endpoint of stint.yaml: from this process, with its environment, at
once, whatever the hour, and once. It needs no server and is in no history.`,
		Example: "  stint notify test desk",
		Args:    exactly(1, "one endpoint"), ValidArgsFunction: a.completeFileEndpoints,
		RunE: func(cmd *cobra.Command, args []string) error { return a.notifyTest(cmd.Context(), args[0]) },
	}
}

// notifyTest sends a sample to an endpoint.
func (a *app) notifyTest(ctx context.Context, name string) error {
	if err := a.here(); err != nil {
		return err
	}
	p, err := a.readApplied()
	if err != nil {
		return err
	}
	if err := p.bad["notify."+name]; err != nil {
		return err
	}
	c, ok := p.file.Notify[name]
	if !ok {
		e := stint.NotFound.Errorf("notify", "stint.yaml has no endpoint %q", name)
		if e.Hint = "docs/notify.md says how it has one"; len(p.file.Notify) > 0 {
			e.Hint = "its endpoints are " + strings.Join(slices.Sorted(maps.Keys(p.file.Notify)), ", ")
		}
		return e
	}
	w := wiring{getenv: os.LookupEnv}
	channel := w.channel(&c, filepath.Dir(p.file.Path))
	if err := channel.Check(); err != nil {
		return err
	}
	n, err := notify.NewSample()
	if err != nil {
		return err
	}
	got, err := channel.Send(ctx, n)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		e := stint.Unavailable.Errorf("notify", "%s did not take the sample: %w", name, err)
		if e.Hint = "a server would try again"; got.Final {
			e.Hint = "a server would not try again: what is refused like this is lost"
		}
		return e
	case a.json:
		return a.printJSON(struct {
			Schema   string `json:"schema"`
			Endpoint string `json:"endpoint"`
			ID       string `json:"id"`
			Status   int    `json:"status,omitempty"`
			Said     string `json:"said,omitempty"`
		}{"stint.notification.test/1", name, n.ID, got.Status, got.Said})
	}
	a.printf("%s took the sample %s.\n", name, n.ID)
	if got.Said != "" {
		a.printf("It said: %s\n", got.Said)
	}
	return nil
}

// completeFileEndpoints lists the endpoints of stint.yaml.
func (a *app) completeFileEndpoints(_ *cobra.Command, args []string, prefix string) (out []cobra.Completion, _ cobra.ShellCompDirective) {
	if p, err := a.readApplied(); err == nil && len(args) == 0 {
		for _, name := range slices.Sorted(maps.Keys(p.file.Notify)) {
			if strings.HasPrefix(name, prefix) {
				out = append(out, name)
			}
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

func (a *app) completeEndpoints(cmd *cobra.Command, args []string, prefix string) (out []cobra.Completion, _ cobra.ShellCompDirective) {
	a.atStore(cmd, func(ctx context.Context, s *site) error {
		if len(args) > 0 {
			return nil
		}
		all, err := a.endpoints(ctx, s)
		for _, it := range all {
			if strings.HasPrefix(it.Name, prefix) {
				out = append(out, cobra.CompletionWithDesc(it.Name, endpointStatus(it)))
			}
		}
		return err
	})
	return out, cobra.ShellCompDirectiveNoFileComp
}
