package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/internal/control"
	"github.com/stint-dev/stint/internal/server"
	"github.com/stint-dev/stint/internal/term"
	"github.com/stint-dev/stint/policy"
)

func (a *app) grantsCommand() *cobra.Command {
	return &cobra.Command{
		Use: "grants", Short: "List what was granted for calls to come", Args: noArgs,
		Long: `List the grants that hold: yeses of people to questions of a rule that have not been
asked yet, the newest first. stint approve --grant makes one, stint approvals revoke ends it.`,
		Example: "  stint approvals grants\n  stint approvals grants --json",
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.grants(cmd.Context()) },
	}
}

func (a *app) grants(ctx context.Context) error {
	s, err := a.reach(ctx, false)
	if err != nil {
		return err
	}
	defer s.store.Close()
	now := time.Now()
	all, err := engine.Grants(ctx, s.store, now)
	if err != nil {
		return err
	}
	t := table{
		doc: struct {
			Schema string         `json:"schema"`
			Now    time.Time      `json:"now"`
			Items  []policy.Grant `json:"items"`
		}{"stint.grant.list/1", now.UTC(), append([]policy.Grant{}, all...)},
		none: "nothing is granted", heads: []string{"GRANT", "RULE", "TOOL", "FOR", "CALLS", "BY", "UNTIL"},
	}
	for i := range all {
		g := &all[i]
		calls := "those arguments"
		if g.When != "" {
			calls = term.Line(g.When)
		}
		scope := string(g.Scope)
		if g.Scope == policy.OfAgent {
			scope += " " + term.Line(g.Agent)
		}
		t.rows = append(t.rows, []string{g.ID, g.Rule, term.Line(g.Tool), scope, calls, term.Line(string(g.By)), g.Expires.UTC().Format(time.RFC3339)})
	}
	return a.printTable(t)
}

func (a *app) revokeGrantCommand() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use: "revoke GRANT", Short: "End a grant",
		Long:              "End a grant: from then on its calls are asked about again.",
		Example:           "  stint approvals grants\n  stint approvals revoke 01m8ns3xahfqdvkv4eprq2n6f2",
		Args:              exactly(1, "one grant"),
		ValidArgsFunction: one(a.completeGrants),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.revokeGrant(cmd.Context(), args[0], reason)
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why; kept in the journal")
	return cmd
}

func (a *app) revokeGrant(ctx context.Context, id, reason string) error {
	s, err := a.reach(ctx, false)
	if err != nil {
		return err
	}
	defer s.store.Close()
	own := func(_ context.Context, v *serving) (server.Obeyer, error) {
		return &control.Grants{Store: v.site.db, System: v.system}, nil
	}
	if _, err := a.order(ctx, s, control.GrantOrder{Verb: control.RevokeVerb, Grant: id, Reason: reason}, own); err != nil {
		return err
	}
	if !a.json {
		a.printf("%s has ended\n", id)
	}
	return nil
}

// completeGrants offers the grants that hold.
func (a *app) completeGrants(cmd *cobra.Command, _ []string, _ string) (out []cobra.Completion, _ cobra.ShellCompDirective) {
	a.atStore(cmd, func(ctx context.Context, s *site) error {
		all, err := engine.Grants(ctx, s.store, time.Now())
		for i := range all {
			out = append(out, cobra.CompletionWithDesc(all[i].ID, term.Line(all[i].Rule+" "+all[i].Tool)))
		}
		return err
	})
	return out, cobra.ShellCompDirectiveNoFileComp
}
