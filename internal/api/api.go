package api

import (
	"context"
	"log/slog"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/internal/access"
	"github.com/stint-dev/stint/internal/access/guard"
	"github.com/stint-dev/stint/internal/control"
	"github.com/stint-dev/stint/internal/problem"
	"github.com/stint-dev/stint/internal/view"
	"github.com/stint-dev/stint/internal/worktree"
	"github.com/stint-dev/stint/journal"
	"github.com/stint-dev/stint/policy"
)

// Starter makes sessions.
type Starter interface {
	// Start creates a session and returns once it is durable. [StartRequest.Request] makes
	// what the engine takes of the agent. An agent that is not there is [stint.NotFound].
	Start(ctx context.Context, r StartRequest) (engine.Created, error)
}

// Brancher makes branches of sessions.
type Brancher interface {
	control.Brancher
	// Made returns an agent as it is now, or [stint.NotFound].
	Made(ctx context.Context, name string) (engine.Agent, error)
}

// Agents knows the agents that can be started.
type Agents interface {
	// Agents returns them by name.
	Agents(ctx context.Context) ([]view.Agent, error)
	// Agent returns one as it would be pinned, or [stint.NotFound].
	Agent(ctx context.Context, name string) (Definition, error)
}

// Options are what the API is made of. Store, Starter, Settler, Agents and Health are
// required; all of them must be safe for concurrent use.
type Options struct {
	Store    control.Store
	Starter  Starter
	Brancher Brancher
	// Policy returns the policy that a session is pinned to, nil for none. It may be nil itself.
	Policy    func(ctx context.Context, s *stint.Session) (*policy.Policy, error)
	Settler   control.Settler
	Agents    Agents
	Health    Health
	Tokens    Tokens    // nil: there are none, and their routes answer 404
	Schedules Schedules // as Tokens
	Hooks     Hooks     // as Tokens
	// MayDecide is asked before a decision of somebody who has the scope for it: nil lets
	// them. It is the place to refuse a local caller that an agent's process started.
	MayDecide func(ctx context.Context, row *stint.Row) error
	// Files returns how the files of a session differ from those at the end of a loop; nil
	// where its agent has no workspace. It may be nil itself.
	Files func(ctx context.Context, row *stint.Row, loop int) *worktree.Changes
	// Events and SessionEvents, if set, are mounted at GET /v1/events and at
	// GET /v1/sessions/{id}/events as streams.
	Events        http.Handler
	SessionEvents http.Handler
	Version       string       // of this program, for /openapi.json
	Log           *slog.Logger // what is not told to clients: errors of code internal; nil: nowhere
}

// Register registers the routes on mux and returns their rows. Options that miss
// something are [stint.Internal].
func Register(mux *guard.Mux, o Options) (access.Table, error) {
	if o.Store == nil || o.Starter == nil || o.Brancher == nil || o.Settler == nil || o.Agents == nil || o.Health == nil {
		return nil, stint.Internal.Errorf("api", "it needs a store, a starter, a brancher, a settler, agents and health")
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := newServer(mux, o)
	s.healthRoutes()
	s.sessionRoutes()
	s.orderRoutes()
	s.agentRoutes()
	s.tokenRoutes()
	s.scheduleRoutes()
	s.hookRoutes()
	s.notificationRoutes()
	s.storeRoutes()
	s.streams()
	if err := s.document(); err != nil {
		return nil, err
	}
	return s.table, nil
}

// New returns the whole API behind g: for a server that serves nothing else.
func New(g *guard.Guard, o Options) (http.Handler, error) {
	var mux guard.Mux
	table, err := Register(&mux, o)
	if err != nil {
		return nil, err
	}
	return g.Protect(table, &mux)
}

// streams mounts and describes what is not answered here.
func (s *server) streams() {
	after := []*huma.Param{
		{Name: "Last-Event-ID", In: "header", Description: "The id of the newest event that came: what came after it follows.", Schema: &huma.Schema{Type: huma.TypeString}},
		{Name: "after", In: "query", Description: "The same, for who cannot send the header. docs/events.md has the other parameters.", Schema: &huma.Schema{Type: huma.TypeString}},
	}
	session := &huma.Param{Name: "id", In: "path", Required: true, Description: "A session: its id, short id or name.", Schema: &huma.Schema{Type: huma.TypeString}}
	for _, r := range []struct {
		pattern, id, summary string
		h                    http.Handler
		params               []*huma.Param
	}{
		{"/v1/events", "boardEvents", "Follow the rows of all sessions", s.Events, after},
		{"/v1/sessions/{id}/events", "sessionEvents", "Follow the entries of a session", s.readable(s.SessionEvents), append([]*huma.Param{session}, after...)},
	} {
		if r.h == nil {
			continue
		}
		s.raw(access.Route{Method: http.MethodGet, Pattern: r.pattern, Scope: access.SessionsRead, Stream: true}, r.h)
		responses := s.responses(http.StatusOK, "text/event-stream")
		s.huma.OpenAPI().AddOperation(&huma.Operation{OperationID: r.id, Method: http.MethodGet, Path: r.pattern, Tags: []string{"events"}, Summary: r.summary,
			Description: "Server-Sent Events, as docs/events.md says. Needs the scope " + string(access.SessionsRead) + ".",
			Parameters:  r.params, Responses: responses, Security: []map[string][]string{{bearer: {}}}})
	}
}

// readable is a handler for the sessions that the caller may read; nil stays nil.
func (s *server) readable(h http.Handler) http.Handler {
	if h == nil {
		return nil
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, _, err := s.find(r.Context(), SessionPath{ID: r.PathValue("id")}); err != nil {
			problem.Write(w, err)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// desk is where orders are given.
func (s *server) desk() *control.Desk {
	return &control.Desk{Store: s.Store, Settler: s.Settler, Brancher: s.Brancher, Gate: s.gate}
}

// gate holds what is asked of a session against its agent's policy.
func (s *server) gate(ctx context.Context, row *stint.Row, verb policy.Verb, c *journal.Command, by stint.Actor) (*journal.ApprovalRequested, error) {
	if s.Policy == nil {
		return nil, nil
	}
	p, err := s.Policy(ctx, &row.Session)
	if err != nil {
		return nil, err
	}
	return control.Gate(p, &row.Session, verb, c, by, rolesOf(ctx))
}

// rolesOf are those of who asks.
func rolesOf(ctx context.Context) []string {
	var all []string
	for _, r := range guard.From(ctx).Roles() {
		all = append(all, string(r))
	}
	return all
}

// actor is who a request comes from, as journals name them.
func actor(ctx context.Context) stint.Actor {
	p := guard.From(ctx)
	switch p.Kind {
	case access.Agent:
		if p.Token == "" { // a session that is on this machine
			return stint.Actor(p.Name)
		}
		return stint.Actor("agent:" + p.Name)
	case access.CI:
		return stint.Actor("ci:" + p.Name)
	case access.User, access.Web, access.Login:
		return stint.Actor("human:" + p.Name)
	}
	return stint.Actor(p.Name) // local
}
