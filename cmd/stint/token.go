package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/access"
	"github.com/stint-dev/stint/internal/access/keeper"
	"github.com/stint-dev/stint/internal/api"
	"github.com/stint-dev/stint/internal/term"
	"github.com/stint-dev/stint/internal/view"
)

func (a *app) tokenCommand() *cobra.Command {
	return group(&cobra.Command{
		Use: "token", Short: "Make, list and revoke the tokens of a server",
		Long: `A token lets a program or a person into the server: see docs/access.md. It is shown
once; the store has its hash. These commands work through the store, with or without a
server, or through the server that --context names.`,
	}, a.tokenCreateCommand(), a.tokenListCommand(), a.tokenRevokeCommand())
}

// tokenOptions are the flags of stint token create.
type tokenOptions struct {
	kind, role string
	scopes     []string
	lifetime   time.Duration
}

func (a *app) tokenCreateCommand() *cobra.Command {
	var o tokenOptions
	cmd := &cobra.Command{
		Use: "create NAME", Short: "Make a token, and show it once",
		Long: `Make a token for NAME, a person or a program, and show it. Standard output is the
token alone. With the first token of kind user or ci, programs of this machine need one
too, unless the server has --local-admin; the Unix socket needs none.`,
		Example: "  stint token create --role admin ann\n  stint token create --kind ci --role operator --for 720h build\n  stint token create --scope sessions:read board",
		Args:    exactly(1, "one name"),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.tokenCreate(cmd.Context(), &o, args[0]) },
	}
	f := cmd.Flags()
	f.StringVar(&o.kind, "kind", string(access.User), "user, ci or agent")
	f.StringVar(&o.role, "role", "", "viewer, operator, approver or admin")
	f.StringSliceVar(&o.scopes, "scope", nil, "a scope instead of a role; repeatable")
	f.DurationVar(&o.lifetime, "for", 0, "how long it is good (default: 90 days, a day for an agent)")
	return cmd
}

// spec is the token that the flags ask for.
func (o *tokenOptions) spec(name string) (access.Spec, error) {
	s := access.Spec{Kind: access.Kind(o.kind), Name: name, Lifetime: o.lifetime}
	if (o.role == "") == (len(o.scopes) == 0) {
		return s, usage(fmt.Errorf("give --role, or one or more --scope"))
	}
	if !s.Kind.Bearer() {
		return s, usage(fmt.Errorf("--kind is user, ci or agent, not %q", o.kind))
	}
	var err error
	if o.role != "" {
		s.Role, err = access.ParseRole(o.role)
	}
	for _, text := range o.scopes {
		if err != nil {
			break
		}
		var scope access.Scope
		scope, err = access.ParseScope(text)
		s.Scopes = append(s.Scopes, scope)
	}
	return s, err
}

func (a *app) tokenCreate(ctx context.Context, o *tokenOptions, name string) error {
	spec, err := o.spec(name)
	if err != nil {
		return err
	}
	var random [access.RandomBytes]byte
	_, _ = rand.Read(random[:]) // it never fails
	t, secret, err := access.Mint(spec, time.Now().UTC().Truncate(time.Second), random)
	if err != nil {
		return err
	}
	s, err := a.reach(ctx, true)
	if err != nil {
		return err
	}
	defer s.store.Close()
	if _, err := a.order(ctx, s, keeper.Command{Verb: keeper.Create, Token: t}, ownTokens); err != nil {
		return err
	}
	if a.json {
		doc := api.MadeToken{Token: api.NewToken(t, time.Now()), Secret: secret.Reveal()}
		doc.Schema = api.SchemaToken
		return a.printJSON(doc)
	}
	fmt.Fprintln(a.out, secret.Reveal()) // it has no characters to escape
	a.notef("stint: token %s of %s, %s, is good until %s; it is not shown again\n", t.ID, t.Name, powers(t), t.Expires.Local().Format(time.DateTime))
	return nil
}

// powers is what a token may, in words.
func powers(t access.Token) string {
	if t.Role != "" {
		return string(t.Role)
	}
	var all []string
	for _, s := range t.Scopes {
		all = append(all, string(s))
	}
	return strings.Join(all, ",")
}

func (a *app) tokenListCommand() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use: "ls", Short: "List the tokens", Args: noArgs,
		Example: "  stint token ls\n  stint token ls -a --json",
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.tokenList(cmd.Context(), all) },
	}
	cmd.Flags().BoolVarP(&all, "all", "a", false, "those that were revoked or have expired within the last 30 days too")
	return cmd
}

// tokens reads the tokens of a store.
func (a *app) tokens(ctx context.Context, s *site) ([]access.Token, error) {
	raw, err := s.system(ctx, keeper.Section)
	if err != nil {
		return nil, err
	}
	return keeper.Read(raw)
}

func (a *app) tokenList(ctx context.Context, all bool) error {
	s, err := a.reach(ctx, false)
	if err != nil {
		return err
	}
	defer s.store.Close()
	list, err := a.tokens(ctx, s)
	if err != nil {
		return err
	}
	items := []api.Token{}
	for _, t := range list {
		if it := api.NewToken(t, time.Now()); all || it.Status == "live" {
			items = append(items, it)
		}
	}
	rows := make([][]string, 0, len(items))
	for _, it := range items {
		used := "never"
		if it.LastUsed != nil {
			used = it.LastUsed.Local().Format(time.DateTime)
		}
		may := powers(access.Token{Role: it.Role, Scopes: it.Scopes})
		rows = append(rows, []string{it.ID, it.Name, string(it.Kind), may, it.Status, it.Expires.Local().Format(time.DateOnly), used})
	}
	return a.printTable(table{
		doc: struct {
			Schema view.Schema `json:"schema"`
			Items  []api.Token `json:"items"`
		}{api.SchemaTokens, items},
		none:  noTokens(list) + "\n  stint token create --role admin NAME makes one",
		heads: []string{"ID", "NAME", "KIND", "MAY", "STATUS", "EXPIRES", "USED"}, rows: rows,
	})
}

// noTokens says that no token is good, of those that are remembered.
func noTokens(list []access.Token) string {
	switch {
	case slices.ContainsFunc(list, func(t access.Token) bool { return t.Kind == access.User || t.Kind == access.CI }):
		return "No token is good any more, and programs of this machine need one unless the server has --local-admin; -a lists those that ended."
	case len(list) > 0:
		return "No token is good any more; programs of this machine need none. -a lists those that ended."
	}
	return "There are no tokens. Programs of this machine need none before the first one is made."
}

func (a *app) tokenRevokeCommand() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use: "revoke ID", Short: "End a token, and those that were made with it",
		Example: "  stint token revoke 0440y5gx4gnk4ea0 -m \"laptop lost\"",
		Args:    exactly(1, "one token"), ValidArgsFunction: a.completeTokens,
		RunE: func(cmd *cobra.Command, args []string) error { return a.tokenRevoke(cmd.Context(), args[0], reason) },
	}
	cmd.Flags().StringVarP(&reason, "message", "m", "", "why")
	return cmd
}

func (a *app) tokenRevoke(ctx context.Context, id, reason string) error {
	s, err := a.reach(ctx, false)
	if err != nil {
		return err
	}
	defer s.store.Close()
	list, err := a.tokens(ctx, s)
	if err != nil {
		return err
	}
	var t access.Token
	for _, one := range list {
		if one.ID == id {
			t = one
		}
	}
	if t.ID == "" {
		e := stint.NotFound.Errorf("token", "there is no token %q", id)
		e.Hint = "stint token ls lists them"
		return e
	}
	if _, err := a.order(ctx, s, keeper.Command{Verb: keeper.Revoke, ID: id, Reason: reason}, ownTokens); err != nil {
		return err
	}
	t.Revoked = time.Now()
	if a.json {
		doc := api.NewToken(t, time.Now())
		doc.Schema = api.SchemaToken
		return a.printJSON(doc)
	}
	a.printf("Token %s of %s is revoked; what it has open ends within five seconds.\n", id, t.Name)
	return nil
}

// completeTokens offers the tokens that are good.
func (a *app) completeTokens(cmd *cobra.Command, args []string, prefix string) (out []cobra.Completion, _ cobra.ShellCompDirective) {
	a.atStore(cmd, func(ctx context.Context, s *site) error {
		if len(args) > 0 {
			return nil
		}
		all, err := a.tokens(ctx, s)
		for _, t := range all {
			if t.Live(time.Now()) == nil && strings.HasPrefix(t.ID, prefix) {
				out = append(out, cobra.CompletionWithDesc(t.ID, term.Line(t.Name+", "+powers(t))))
			}
		}
		return err
	})
	return out, cobra.ShellCompDirectiveNoFileComp
}
