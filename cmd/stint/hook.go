package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/api"
	"github.com/stint-dev/stint/internal/hook"
	"github.com/stint-dev/stint/internal/server"
	"github.com/stint-dev/stint/internal/term"
	"github.com/stint-dev/stint/internal/trigger"
	"github.com/stint-dev/stint/internal/view"
)

func (a *app) hookCommand() *cobra.Command {
	return group(&cobra.Command{Use: "hook", Short: "See webhooks and what came through them, try one, and deliver again"},
		a.hookListCommand(), a.hookDeliveriesCommand(), a.hookShowCommand(), a.hookTestCommand(), a.hookRedeliverCommand())
}

// hookItem is a hook as JSON: what the API says of it, and how it stands for who looks
// from here.
type hookItem struct {
	api.HookDoc

	Status string             `json:"status"`
	Detail string             `json:"detail"` // why it cannot be used
	Last   *trigger.Delivered `json:"last"`   // null if nothing came
}

// The states of a hook, in lists.
const (
	hookReady    = "ready"
	hookNoSecret = "no secret"
	hookWrong    = "wrong here" // the stint.yaml here has a mistake in it; a server goes on with what it was
)

func (a *app) hookListCommand() *cobra.Command {
	return &cobra.Command{
		Use: "ls", Short: "List the hooks of stint.yaml, and what came last", Args: noArgs,
		Example: "  stint hook ls\n  stint hook ls --json",
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.hookList(cmd.Context()) },
	}
}

func (a *app) hookList(ctx context.Context) error {
	here, err := a.readApplied()
	if err != nil {
		return err
	}
	a.warned = true // the list says what is wrong
	s, err := a.look(ctx)
	if err != nil {
		return err
	}
	defer s.store.Close()
	items := []hookItem{}
	for _, t := range here.targets(s.wire(nil)) {
		it := hookItem{HookDoc: api.NewHook(t.Hook.Definition()), Status: hookReady}
		if _, err := t.Secrets(); err != nil {
			it.Status, it.Detail = hookNoSecret, err.Error()
		}
		last, err := trigger.Deliveries(ctx, s.store, it.Name, trigger.Delivered{}, 1)
		if err != nil {
			return err
		}
		if len(last) > 0 {
			it.Last = &last[0]
		}
		items = append(items, it)
	}
	for _, name := range here.broken("hooks") {
		items = append(items, hookItem{HookDoc: api.NewHook(hook.Definition{Name: name}), Status: hookWrong, Detail: here.bad["hooks."+name].Error()})
	}
	rows := make([][]string, 0, len(items))
	for _, it := range items {
		last := "-"
		if it.Last != nil {
			last = string(it.Last.Result) + " " + it.Last.At.Local().Format(time.DateTime)
		}
		rows = append(rows, []string{it.Name, it.Status, string(it.Scheme), it.Agent, it.Path, last})
	}
	return a.printTable(table{
		doc: struct {
			Schema view.Schema `json:"schema"`
			Now    time.Time   `json:"now"`
			Items  []hookItem  `json:"items"`
		}{api.SchemaHooks, time.Now().UTC().Truncate(time.Microsecond), items},
		none:  "There are no hooks. docs/hooks.md says how stint.yaml has them.",
		heads: []string{"HOOK", "STATUS", "SCHEME", "AGENT", "PATH", "LAST"}, rows: rows,
	})
}

// digits is a number as text; empty: there is none.
func digits(n *int64) string {
	if n == nil {
		return ""
	}
	return strconv.FormatInt(*n, 10)
}

func (a *app) hookDeliveriesCommand() *cobra.Command {
	return counting(&cobra.Command{
		Use: "deliveries HOOK", Short: "List what came through a hook, newest first",
		Long: `List the genuine deliveries of a hook of the last 30 days, newest first, with what became of
each. What was refused is counted by the server and in its log: whoever sent it is not known.`,
		Example: "  stint hook deliveries issues\n  stint hook deliveries issues -n 100 --json",
		Args:    exactly(1, "one hook"), ValidArgsFunction: a.completeHooks,
	}, func(ctx context.Context, args []string, n int) error { return a.hookDeliveries(ctx, args[0], n) })
}

func (a *app) hookDeliveries(ctx context.Context, name string, limit int) error {
	s, err := a.reach(ctx, false)
	if err != nil {
		return err
	}
	defer s.store.Close()
	items, err := trigger.Deliveries(ctx, s.store, name, trigger.Delivered{}, limit)
	if err != nil {
		return err
	}
	if len(items) == 0 && !a.hasHook(s, name) {
		return noHook(name)
	}
	doc := struct {
		Schema view.Schema         `json:"schema"`
		Hook   string              `json:"hook"`
		Items  []trigger.Delivered `json:"items"`
	}{api.SchemaDeliveries, name, append([]trigger.Delivered{}, items...)}
	if a.json {
		return a.printJSON(doc) // it names sessions as the ledger does
	}
	rows := make([][]string, 0, len(items))
	for _, o := range items {
		row, err := s.session(ctx, o.Session)
		if err != nil {
			return err
		}
		rows = append(rows, []string{o.At.Local().Format(time.DateTime), string(o.Result), o.Event, o.Key, cmp.Or(row.Short, "-"), o.Reason, o.ID})
	}
	return a.printTable(table{none: "Nothing came through " + name + " within 30 days.", heads: []string{"CAME", "RESULT", "EVENT", "KEY", "SESSION", "WHY", "ID"}, rows: rows})
}

// hasHook reports whether there may be a hook of that name: the stint.yaml here has it,
// sound or not, or cannot be read, or it is that of a server elsewhere.
func (a *app) hasHook(s *site, name string) bool {
	here, err := a.readApplied()
	return s.server != nil || err != nil || here.file.Hooks[name] != nil || here.bad["hooks."+name] != nil
}

func noHook(name string) error {
	e := stint.NotFound.Errorf("hook", "there is no hook %q, and nothing came through one within 30 days", name)
	e.Hint = "stint hook ls lists those of stint.yaml"
	return e
}

func (a *app) hookShowCommand() *cobra.Command {
	return &cobra.Command{
		Use: "show HOOK ID", Short: "Print a delivery: what became of it, its headers and its body",
		Example: "  stint hook show issues 72d3162e-cc78-11e3-81ab-4c9367dc0958",
		Args:    exactly(2, "a hook and a delivery"), ValidArgsFunction: a.completeHooks,
		RunE: func(cmd *cobra.Command, args []string) error { return a.hookShow(cmd.Context(), args[0], args[1]) },
	}
}

func (a *app) hookShow(ctx context.Context, name, id string) error {
	s, err := a.reach(ctx, false)
	if err != nil {
		return err
	}
	defer s.store.Close()
	d, err := trigger.Delivery(ctx, s.store, name, id)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(api.NewDelivery(d))
	}
	a.printf("%s %s · %s\n", d.Hook, d.ID, d.Result)
	for _, line := range [][2]string{{"came", d.At.Local().Format(time.DateTime)}, {"event", d.Event}, {"key", d.Key}, {"order", digits(d.Order)}, {"why", d.Reason}, {"repeats", d.Repeats}, {"by", string(d.By)}} {
		if line[1] != "" {
			a.printf("  %s  %s\n", term.Pad(line[0], 7, false), line[1])
		}
	}
	if !d.Session.IsZero() {
		a.printf("  session  %s\n", d.Session)
	}
	for _, name := range slices.Sorted(maps.Keys(d.Request.Headers)) {
		a.printf("  %s: %s\n", name, d.Request.Headers[name])
	}
	if d.Body == nil && d.Bytes > 0 {
		a.printf("\nIts body, %d bytes, was too long to be kept.\n", d.Bytes)
		return nil
	}
	a.printf("\n%s\n", strings.TrimRight(string(d.Body), "\n"))
	return nil
}

// hookTestOptions are the flags of stint hook test.
type hookTestOptions struct {
	file    string
	headers []string
	query   string
}

func (a *app) hookTestCommand() *cobra.Command {
	var o hookTestOptions
	cmd := &cobra.Command{
		Use: "test HOOK", Short: "Say what a delivery would do, and do nothing",
		Long: `Read a body and say what a hook of stint.yaml would do with it, as if its sender were
proven: whether its condition holds, the key, the prompt, the session that would begin
or get it. Nothing is written.`,
		Example: "  stint hook test issues -f issue.json -H 'X-GitHub-Event: issues' -H 'X-GitHub-Delivery: 1'\n  curl -s https://example.com/payload.json | stint hook test alerts -f - --json",
		Args:    exactly(1, "one hook"), ValidArgsFunction: a.completeHooks,
		RunE: func(cmd *cobra.Command, args []string) error { return a.hookTest(cmd.Context(), &o, args[0]) },
	}
	f := cmd.Flags()
	f.StringVarP(&o.file, "file", "f", "", "the body: a `FILE`, or - for standard input")
	f.StringArrayVarP(&o.headers, "header", "H", nil, "a header, `Name: value`; repeatable")
	f.StringVar(&o.query, "query", "", "the query of the URL, like a=1&b=2")
	return cmd
}

// request is the request that the flags describe.
func (o *hookTestOptions) request(a *app) (hook.Request, error) {
	headers := http.Header{}
	r := hook.Request{Headers: headers}
	for _, h := range o.headers {
		name, value, ok := strings.Cut(h, ":")
		if !ok || strings.TrimSpace(name) == "" {
			return r, usage(fmt.Errorf("--header %q is not Name: value", h))
		}
		headers.Add(strings.TrimSpace(name), strings.TrimSpace(value))
	}
	var err error
	if r.Query, err = url.ParseQuery(o.query); err != nil {
		return r, usage(fmt.Errorf("--query: %w", err))
	}
	if o.file == "" {
		return r, usage(fmt.Errorf("give the body with --file"))
	}
	in := a.in
	if o.file != "-" {
		f, err := os.Open(o.file)
		if err != nil {
			return r, &stint.Error{Code: stint.Invalid, Op: "hook test", Err: err, Hint: inputHint}
		}
		defer f.Close()
		in = f
	}
	if r.Body, err = io.ReadAll(io.LimitReader(in, 1<<30)); err != nil {
		err = &stint.Error{Code: stint.Invalid, Op: "hook test", Err: err, Hint: inputHint}
	}
	return r, err
}

func (a *app) hookTest(ctx context.Context, o *hookTestOptions, name string) error {
	here, err := a.readApplied()
	if err != nil {
		return err
	}
	if err := here.bad["hooks."+name]; err != nil {
		return err
	}
	if here.file.Hooks[name] == nil {
		e := stint.NotFound.Errorf("hook", "stint.yaml has no hook %q", name)
		e.Hint = "stint hook ls lists them"
		return e
	}
	req, err := o.request(a)
	if err != nil {
		return err
	}
	s, err := a.look(ctx)
	if err != nil {
		return err
	}
	defer s.store.Close()
	st, ok := s.store.(stint.Store)
	if !ok {
		return stint.Internal.Errorf("hook test", "the store cannot be looked at")
	}
	w := s.wire(nil)
	defer w.close()
	r := trigger.NewReceiver(nil, nil, st, nil) // a trial writes nothing
	r.Set(here.targets(w))
	is, err := r.Test(ctx, name, req)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(struct {
			Schema string `json:"schema"`
			trigger.Trial
		}{"stint.hook.trial/1", is})
	}
	a.printTrial(name, is)
	return nil
}

// printTrial says what would become of a delivery.
func (a *app) printTrial(name string, is trigger.Trial) {
	switch {
	case is.Decision == hook.Answer:
		a.printf("%s would answer a handshake with: %s\n", name, is.Reply)
	case is.Repeated:
		a.printf("%s has had it: it was %s\n", name, is.Result)
	case is.Result == trigger.Ignored || is.Result == trigger.Dropped:
		a.printf("%s would do nothing with it, which is recorded as %s: %s\n", name, is.Result, is.Reason)
	case is.Result == trigger.Messaged:
		a.printf("%s would give it to session %s\n", name, is.Session)
	default:
		a.printf("%s would begin the session %s\n", name, is.Name)
	}
	for _, line := range [][2]string{{"id", is.ID}, {"event", is.Event}, {"key", is.Key}, {"order", digits(is.Order)}} {
		if line[1] != "" {
			a.printf("  %s  %s\n", term.Pad(line[0], 5, false), line[1])
		}
	}
	if len(is.Labels) > 0 {
		b, _ := json.Marshal(is.Labels) // they are texts
		a.printf("  labels %s\n", string(b))
	}
	if is.Interrupt {
		a.printf("  the session is at work, and would be interrupted\n")
	}
	if !is.Replaces.IsZero() {
		a.printf("  session %s would be stopped for it\n", is.Replaces)
	}
	if is.Input != "" {
		a.printf("\n%s\n", strings.TrimRight(is.Input, "\n"))
	}
}

func (a *app) hookRedeliverCommand() *cobra.Command {
	return &cobra.Command{
		Use: "redeliver HOOK ID", Short: "Have a delivery that was kept judged and done again",
		Long: `Have a delivery judged again by the hook as it is now, and do what that says: after a
mistake in the hook was mended, or a session was lost. It becomes a delivery of its own,
which says whose repetition it is and who wanted it.`,
		Example: "  stint hook redeliver issues 72d3162e-cc78-11e3-81ab-4c9367dc0958",
		Args:    exactly(2, "a hook and a delivery"), ValidArgsFunction: a.completeHooks,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.hookRedeliver(cmd.Context(), args[0], args[1])
		},
	}
}

func (a *app) hookRedeliver(ctx context.Context, name, id string) error {
	s, err := a.reach(ctx, false)
	if err != nil {
		return err
	}
	defer s.store.Close()
	if _, err := trigger.Delivery(ctx, s.store, name, id); err != nil {
		return err
	}
	noted, err := a.order(ctx, s, trigger.HookCommand{Verb: trigger.RedeliverVerb, Hook: name, ID: id}, ownReceiver)
	if err != nil {
		return err
	}
	var o trigger.Delivered
	if err := json.Unmarshal(noted.Data, &o); err != nil {
		return stint.Corrupt.Errorf("hook", "what the server recorded cannot be read: %v", err)
	}
	if a.json {
		return a.printJSON(struct {
			Schema view.Schema `json:"schema"`
			trigger.Delivered
		}{api.SchemaDelivery, o})
	}
	a.printf("It was delivered again as %s: %s\n", o.ID, strings.TrimSpace(string(o.Result)+" "+o.Reason))
	return a.noteUnserved(ctx, s, waitsForServer)
}

// ownReceiver is the receiver of a process that serves for a moment.
func ownReceiver(_ context.Context, v *serving) (server.Obeyer, error) {
	file := v.now.Load()
	v.receiver.Set(file.targets(v.wiring), file.broken("hooks")...)
	return v.receiver, nil
}

// completeHooks offers the hooks of stint.yaml, and behind one its newest deliveries where
// the command takes one.
func (a *app) completeHooks(cmd *cobra.Command, args []string, prefix string) (out []cobra.Completion, _ cobra.ShellCompDirective) {
	if len(args) > 0 {
		if takes := cmd.Name() == "show" || cmd.Name() == "redeliver"; takes && len(args) == 1 {
			return a.completeDeliveries(cmd, args[0], prefix), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
		}
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	here, err := a.readApplied()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	for _, name := range slices.Sorted(maps.Keys(here.file.Hooks)) {
		if strings.HasPrefix(name, prefix) {
			out = append(out, cobra.CompletionWithDesc(name, "begins sessions of "+here.file.Hooks[name].Definition().Agent))
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

func (a *app) completeDeliveries(cmd *cobra.Command, hook, prefix string) (out []cobra.Completion) {
	a.atStore(cmd, func(ctx context.Context, s *site) error {
		all, err := trigger.Deliveries(ctx, s.store, hook, trigger.Delivered{}, 100)
		for _, o := range all {
			if strings.HasPrefix(o.ID, prefix) {
				out = append(out, cobra.CompletionWithDesc(o.ID, term.Line(string(o.Result)+" "+o.At.Local().Format(time.DateTime)+" "+o.Event)))
			}
		}
		return err
	})
	return out
}
