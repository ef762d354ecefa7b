package main

import (
	"context"
	"path/filepath"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/internal/control"
	"github.com/stint-dev/stint/internal/mcpserver"
	"github.com/stint-dev/stint/internal/term"
	"github.com/stint-dev/stint/internal/view"
)

// mcpOptions are the flags of stint mcp.
type mcpOptions struct {
	http  string
	print string
}

func (a *app) mcpCommand() *cobra.Command {
	var o mcpOptions
	cmd := &cobra.Command{
		Use: "mcp", Short: "Let another agent start, watch and feed sessions: an MCP server",
		Long: `Serve the Model Context Protocol, so that another agent can start sessions of the
agents of stint.yaml, watch them and send them messages. A client starts stint mcp
itself and talks to it on standard input and output; --print-config prints what to put
into its configuration. --http serves clients on this machine at /mcp instead.

No tool decides what a session asks, settles a doubt, raises a limit or restarts: those
are a person's. A session that is started here waits for a runner, as with stint start.`,
		Example: "  stint mcp --print-config claude > .mcp.json\n  stint mcp --print-config codex >> ~/.codex/config.toml\n  stint mcp --http 127.0.0.1:8811",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.print != "" {
				return a.printMCPConfig(cmd, o.print)
			}
			return a.mcp(cmd.Context(), &o)
		},
	}
	cmd.Flags().StringVar(&o.http, "http", "", "serve streamable HTTP at this loopback `ADDRESS` (127.0.0.1:8811; port 0 takes a free one)")
	cmd.Flags().StringVar(&o.print, "print-config", "", "print the configuration of a `CLIENT`: claude, codex, opencode or gemini")
	return cmd
}

// mcp serves clients until they are gone, or a signal comes.
func (a *app) mcp(ctx context.Context, o *mcpOptions) error {
	d := &mcpDoor{app: a, starting: make(chan struct{}, 1)}
	defer d.close()
	srv, err := mcpserver.New(mcpserver.Backend{Source: d, Sender: d, Starter: d, Agents: d, Actor: a.clientActor(), Version: version})
	if err != nil {
		return err
	}
	if o.http != "" {
		return srv.ListenAndServe(ctx, o.http, func(url string) { a.notef("stint: serving the Model Context Protocol at %s\n", url) })
	}
	if term.IsTerminal(a.in) {
		a.notef("stint: speaking the Model Context Protocol on standard input and output; stint mcp --help says how a client is set up\n")
	}
	return srv.Serve(ctx, a.in, a.out)
}

// clientActor says who acts when a client does: the session that this process descends
// from, an agent that is of no one session, or what this user's client calls itself.
func (a *app) clientActor() func(client string) stint.Actor {
	sessions, served := a.startedBy()
	user := strings.TrimPrefix(string(a.actor()), "human:")
	return func(client string) stint.Actor {
		switch {
		case len(sessions) > 0:
			return stint.Actor("session:" + sessions[0].String())
		case served:
			return "agent"
		case client == "":
			return stint.Actor("mcp:" + user)
		}
		return stint.Actor("mcp:" + user + "/" + client)
	}
}

// mcpDoor is the store and the configuration as a server of clients needs them. The store
// is opened when it is first asked for, and then kept; the configuration is read anew for
// each session, as stint start does.
type mcpDoor struct {
	app      *app
	mu       sync.Mutex
	site     *site         // nil before the store was opened; behind mu
	starting chan struct{} // holds one value while a session is made
}

// open returns the open store. With create unset one that is not there is [stint.Unavailable].
func (d *mcpDoor) open(ctx context.Context, create bool) (*site, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.site != nil {
		return d.site, nil
	}
	s, err := d.app.open(ctx, create)
	if err != nil {
		return nil, err
	}
	d.site = s
	return s, nil
}

func (d *mcpDoor) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.site != nil {
		_ = d.site.store.Close()
	}
}

// Start makes a session as stint start does, one at a time: to make an agent may start
// servers of tools, and talks on standard error.
func (d *mcpDoor) Start(ctx context.Context, r mcpserver.Request) (mcpserver.Started, error) {
	select {
	case d.starting <- struct{}{}:
		defer func() { <-d.starting }()
	case <-ctx.Done():
		return mcpserver.Started{}, ctx.Err()
	}
	c, err := d.app.configured(r.Agent)
	if err != nil {
		return mcpserver.Started{}, err
	}
	s, err := d.open(ctx, true)
	if err != nil {
		return mcpserver.Started{}, err
	}
	made, err := d.app.record(ctx, s, c, func(agent engine.Agent) (engine.Request, error) {
		q := engine.Request{Agent: agent, Name: r.Name, Input: []byte(r.Prompt), Actor: r.Actor, Dedupe: r.Dedupe}
		if len(r.Labels) == 0 {
			return q, nil
		}
		var err error
		q.Labels, err = control.Labels(r.Labels, agent.Labels)
		return q, err
	})
	return mcpserver.Started{ID: made.ID, Found: made.Found}, err
}

// Agents lists those of stint.yaml.
func (d *mcpDoor) Agents(context.Context) ([]view.Agent, error) {
	file, err := d.app.mustConfig()
	if err != nil {
		return nil, err
	}
	return agentItems(file), nil
}

func (d *mcpDoor) Keys(ctx context.Context, like stint.Key, limit int) ([]stint.Key, error) {
	s, err := d.open(ctx, false)
	if err != nil {
		return nil, err
	}
	return s.store.Keys(ctx, like, limit)
}

// Session, Sessions, Entries, Inbox, Blob, FamilyKey and Send are the store's.

func (d *mcpDoor) Session(ctx context.Context, id stint.ID) (stint.Row, error) {
	s, err := d.open(ctx, false)
	if err != nil {
		return stint.Row{}, err
	}
	return s.store.Session(ctx, id)
}

func (d *mcpDoor) Sessions(ctx context.Context, f stint.Filter) ([]stint.Row, error) {
	s, err := d.open(ctx, false)
	if err != nil {
		return nil, err
	}
	return s.store.Sessions(ctx, f)
}

func (d *mcpDoor) Entries(ctx context.Context, r stint.Range) ([]stint.Entry, error) {
	s, err := d.open(ctx, false)
	if err != nil {
		return nil, err
	}
	return s.store.Entries(ctx, r)
}

func (d *mcpDoor) Inbox(ctx context.Context, id stint.ID) ([]stint.Message, error) {
	s, err := d.open(ctx, false)
	if err != nil {
		return nil, err
	}
	return s.store.Inbox(ctx, id)
}

func (d *mcpDoor) Blob(ctx context.Context, family stint.ID, ref stint.BlobRef) ([]byte, error) {
	s, err := d.open(ctx, false)
	if err != nil {
		return nil, err
	}
	return s.store.Blob(ctx, family, ref)
}

func (d *mcpDoor) FamilyKey(ctx context.Context, family stint.ID) ([]byte, error) {
	s, err := d.open(ctx, false)
	if err != nil {
		return nil, err
	}
	return s.store.FamilyKey(ctx, family)
}

func (d *mcpDoor) Send(ctx context.Context, id stint.ID, m stint.Message) error {
	s, err := d.open(ctx, false)
	if err != nil {
		return err
	}
	return s.store.Send(ctx, id, m)
}

// mcpClients are the clients whose configuration is known.
const mcpClients = "claude codex opencode gemini"

// printMCPConfig prints what makes a client start this server. It names the store and the
// stint.yaml that were given, since clients start their servers in a folder of their own
// choice; without them that folder decides.
func (a *app) printMCPConfig(cmd *cobra.Command, client string) error {
	args := []string{"mcp"}
	if a.configFlag != "" {
		path, err := filepath.Abs(a.configFlag)
		if err != nil {
			return &stint.Error{Code: stint.Invalid, Op: "mcp", Err: err, Hint: "give --config a whole path"}
		}
		args = append(args, "--config", path)
	}
	if path, ok := strings.CutPrefix(a.storeFlag, "sqlite:"); ok {
		path, err := filepath.Abs(path)
		if err != nil {
			return &stint.Error{Code: stint.Invalid, Op: "mcp", Err: err, Hint: "give --store a whole path"}
		}
		args = append(args, "--store", "sqlite:"+path)
	}
	type started struct {
		Command string   `json:"command"`
		Args    []string `json:"args"`
	}
	type local struct {
		Type    string   `json:"type"`
		Command []string `json:"command"`
		Enabled bool     `json:"enabled"`
	}
	switch client {
	case "claude", "gemini":
		return a.printJSON(map[string]any{"mcpServers": map[string]started{"stint": {"stint", args}}})
	case "opencode":
		return a.printJSON(map[string]any{"mcp": map[string]local{"stint": {"local", append([]string{"stint"}, args...), true}}})
	case "codex":
		a.printf("[mcp_servers.stint]\ncommand = \"stint\"\nargs = ")
		return a.printJSON(args) // the array is the same in TOML
	}
	return misused(cmd, "--print-config is one of %s, not %q", strings.Join(strings.Fields(mcpClients), ", "), client)
}
