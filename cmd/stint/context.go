package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	xterm "golang.org/x/term"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/client"
	"github.com/stint-dev/stint/internal/access"
	"github.com/stint-dev/stint/internal/term"
	"github.com/stint-dev/stint/internal/view"
)

func (a *app) contextCommand() *cobra.Command {
	return group(&cobra.Command{
		Use: "context", Short: "Name servers, and have commands ask one instead of a store here",
		Long: `A context is a server with a name: its address, and where the token for it is. With
--context NAME, STINT_CONTEXT, or once it is in use, commands that read sessions and give
orders ask that server; those that need the file of a store say so. STINT_SERVER and
STINT_TOKEN do without a context. Contexts are kept in contexts.json below
$XDG_CONFIG_HOME/stint, without any token.`,
		Example: "  stint context add prod https://stint.example.com --token ask\n  stint context use prod\n  stint ps\n  stint --context none ps",
	}, a.contextListCommand(), a.contextAddCommand(), a.contextUseCommand(), a.contextRemoveCommand(), a.contextShowCommand())
}

// contextItem is a context as JSON.
type contextItem struct {
	Name  string `json:"name"`
	URL   string `json:"url"`
	Token string `json:"token"` // where it is; empty: there is none
	Used  bool   `json:"used"`
}

func (c *contexts) item(name string) contextItem {
	s := c.Contexts[name]
	return contextItem{Name: name, URL: s.URL, Token: s.Token, Used: c.Use == name}
}

func (a *app) contextListCommand() *cobra.Command {
	return &cobra.Command{
		Use: "ls", Short: "List the contexts", Args: noArgs, Example: "  stint context ls\n  stint context ls --json",
		RunE: func(*cobra.Command, []string) error {
			c, err := a.contexts()
			if err != nil {
				return err
			}
			items := []contextItem{}
			for _, name := range slices.Sorted(maps.Keys(c.Contexts)) {
				items = append(items, c.item(name))
			}
			if a.json {
				return a.printJSON(struct {
					Schema string        `json:"schema"`
					Items  []contextItem `json:"items"`
				}{"stint.context.list/1", items})
			}
			if len(items) == 0 {
				a.printf("There are no contexts: commands use the store of this machine.\n  stint context add NAME URL makes one\n")
				return nil
			}
			rows := make([][]string, 0, len(items))
			for _, it := range items {
				used := ""
				if it.Used {
					used = "in use"
				}
				rows = append(rows, []string{it.Name, it.URL, or(it.Token, "none"), used})
			}
			return view.WriteTable(a.out, a.style(), []string{"CONTEXT", "SERVER", "TOKEN", ""}, rows)
		},
	}
}

func (a *app) contextAddCommand() *cobra.Command {
	var token string
	cmd := &cobra.Command{
		Use: "add NAME URL", Short: "Give a server a name, or change where it is",
		Long: `Give a server a name. URL is https://HOST, http://127.0.0.1:PORT, or unix:PATH for the
socket of a server on this machine, which needs no token.

--token says where the token is: env:NAME, a variable; file:PATH, a file; or ask, to be
asked for it now, or give it on standard input. It is then kept in a file of its own that
only you may read.`,
		Example: "  stint context add prod https://stint.example.com --token ask\n  stint context add ci https://stint.example.com --token env:STINT_CI_TOKEN\n  stint context add here unix:.stint/stint.db.d/stint.sock",
		Args:    exactly(2, "a name and the address of a server"),
		RunE:    func(_ *cobra.Command, args []string) error { return a.contextAdd(args[0], args[1], token) },
	}
	cmd.Flags().StringVar(&token, "token", "", "where the token is: env:NAME, file:PATH or ask")
	return cmd
}

func (a *app) contextAdd(name, url, token string) error {
	if err := checkContextName(name); err != nil {
		return err
	}
	if path, ok := strings.CutPrefix(url, "unix:"); ok {
		abs, err := a.absolute(path)
		if err != nil {
			return err
		}
		url = "unix:" + abs
	}
	if _, err := client.New(client.Options{URL: url, Token: token}); err != nil { // it asks nothing of a server
		return err
	}
	c, err := a.contexts()
	if err != nil {
		return err
	}
	ref, err := a.tokenRef(c, name, token)
	if err != nil {
		return err
	}
	if was := c.Contexts[name].Token; was != ref {
		c.forget(name)
	}
	c.Contexts[name] = serverContext{URL: url, Token: ref}
	if err := c.save(); err != nil {
		return err
	}
	if a.json {
		return a.printContext(c.item(name))
	}
	a.printf("%s is %s; stint context use %s has commands ask it\n", name, url, name)
	return nil
}

// absolute is a path as seen from any folder.
func (a *app) absolute(path string) (string, error) {
	if path == "" || filepath.IsAbs(path) {
		return path, nil
	}
	dir, err := a.getwd()
	if err != nil {
		return "", &stint.Error{Code: stint.Invalid, Op: "context", Err: err, Hint: "give the whole path"}
	}
	return filepath.Join(dir, path), nil
}

// tokenRef says where the token of a context is; one that is asked for is put there.
func (a *app) tokenRef(c *contexts, name, token string) (string, error) {
	kind, what, _ := strings.Cut(token, ":")
	switch {
	case token == "":
		return "", nil
	case token == "ask":
		text, err := a.askToken()
		if err != nil {
			return "", err
		}
		return "file:" + storedToken(name), c.write(storedToken(name), []byte(text+"\n"))
	case kind == "env" && what != "":
		return token, nil
	case kind == "file" && what != "":
		path, err := a.absolute(what)
		return "file:" + path, err
	}
	return "", badTokenRef()
}

// askToken reads a token: at a terminal without showing it, else a line of standard input.
func (a *app) askToken() (string, error) {
	var text string
	var err error
	if in, ok := a.in.(*os.File); ok && term.IsTerminal(in) {
		var b []byte
		a.notef("the token, which is not shown: ")
		b, err = xterm.ReadPassword(int(in.Fd()))
		a.notef("\n")
		text = string(b)
	} else {
		text, err = bufio.NewReader(io.LimitReader(a.in, 4<<10)).ReadString('\n')
		if errors.Is(err, io.EOF) {
			err = nil
		}
	}
	text = strings.TrimSpace(text)
	if err == nil {
		_, err = access.Parse(text)
	}
	if err != nil {
		return "", &stint.Error{Code: stint.Invalid, Op: "context", Err: errors.New("what was given is no token"), Hint: "stint token create, where the store is, prints one: all of its line is the token"}
	}
	return text, nil
}

// forget removes the token that was asked for.
func (c *contexts) forget(name string) {
	if c.Contexts[name].Token != "file:"+storedToken(name) {
		return
	}
	_ = os.Remove(filepath.Join(c.dir, storedToken(name))) // if it is gone, so much the better
}

func (a *app) printContext(it contextItem) error {
	return a.printJSON(struct {
		Schema string `json:"schema"`
		contextItem
	}{"stint.context/1", it})
}

func (a *app) contextUseCommand() *cobra.Command {
	return &cobra.Command{
		Use: "use NAME", Short: "Have commands ask a server from now on; none: the store here",
		Example: "  stint context use prod\n  stint context use none",
		Args:    exactly(1, "one context, or none"), ValidArgsFunction: a.completeContexts,
		RunE: func(_ *cobra.Command, args []string) error {
			c, err := a.contexts()
			if err != nil {
				return err
			}
			name, url := args[0], ""
			if name == noContext {
				c.Use = ""
			} else {
				s, err := c.find(name)
				if err != nil {
					return err
				}
				c.Use, url = name, s.URL
			}
			if err := c.save(); err != nil {
				return err
			}
			switch {
			case a.json:
				return a.printContext(contextItem{Name: name, URL: url, Token: c.Contexts[name].Token, Used: url != ""})
			case url == "":
				a.printf("Commands use the store of this machine.\n")
			default:
				a.printf("Commands ask %s; --context none does without\n", url)
			}
			return nil
		},
	}
}

func (a *app) contextRemoveCommand() *cobra.Command {
	return &cobra.Command{
		Use: "rm NAME", Short: "Forget a server, and the token that was given for it",
		Example: "  stint context rm prod",
		Args:    exactly(1, "one context"), ValidArgsFunction: a.completeContexts,
		RunE: func(_ *cobra.Command, args []string) error {
			c, err := a.contexts()
			if err != nil {
				return err
			}
			if _, err := c.find(args[0]); err != nil {
				return err
			}
			it := c.item(args[0])
			c.forget(it.Name)
			if delete(c.Contexts, it.Name); it.Used {
				c.Use = ""
			}
			if err := c.save(); err != nil {
				return err
			}
			if a.json {
				it.Used = false
				return a.printContext(it)
			}
			a.printf("%s is forgotten; its token is good until stint token revoke ends it\n", it.Name)
			return nil
		},
	}
}

func (a *app) contextShowCommand() *cobra.Command {
	return &cobra.Command{
		Use: "show", Short: "Say which server commands ask, why, and how it is", Args: noArgs,
		Long:    "Say which server commands ask as they are called here, what chose it, and whether it\nanswers. The exit status is 11 if it does not.",
		Example: "  stint context show\n  stint --context prod context show",
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.contextShow(cmd.Context()) },
	}
}

func (a *app) contextShow(ctx context.Context) error {
	far, err := a.chosen()
	if err != nil {
		return err
	}
	if far == nil {
		if a.json {
			return a.printContext(contextItem{Name: noContext})
		}
		a.printf("No server is chosen: commands use the store of this machine.\n")
		return nil
	}
	c, err := far.client(a)
	if err != nil {
		return err
	}
	if !a.json {
		a.printf("%s, chosen by %s; its token: %s\n", far.String(), far.from, or(far.token, "none"))
	}
	if _, err := c.Health(ctx); err != nil {
		return err
	}
	if err := c.Get(ctx, "/v1/sessions", map[string][]string{"limit": {"1"}}, nil); err != nil { // health is told to anybody
		return err
	}
	if a.json {
		return a.printContext(contextItem{Name: far.name, URL: far.url, Token: far.token, Used: true})
	}
	a.printf("It answers, and lets you in.\n")
	return nil
}

func (a *app) completeContexts(_ *cobra.Command, args []string, prefix string) (out []cobra.Completion, _ cobra.ShellCompDirective) {
	c, err := a.contexts()
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	for _, name := range append(slices.Sorted(maps.Keys(c.Contexts)), noContext) {
		if strings.HasPrefix(name, prefix) {
			out = append(out, cobra.CompletionWithDesc(name, c.Contexts[name].URL))
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}
