package client_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/client"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/internal/access"
	"github.com/stint-dev/stint/internal/access/guard"
	"github.com/stint-dev/stint/internal/api"
	"github.com/stint-dev/stint/internal/stream"
	"github.com/stint-dev/stint/internal/view"
	"github.com/stint-dev/stint/store/sqlite"
)

// place is a server on a store in a file, without a network between: requests are calls of
// its handler, so that its time can be that of a bubble.
type place struct {
	t      *testing.T
	store  *sqlite.Store
	engine *engine.Engine // made when it is asked for
	keeper *access.Mem
	h      http.Handler
	minted byte
}

func newPlace(t *testing.T) *place {
	t.Helper()
	p := &place{t: t, keeper: &access.Mem{}}
	var err error
	if p.store, err = sqlite.Open(t.Context(), sqlite.Options{Path: filepath.Join(t.TempDir(), "stint.db")}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if p.engine != nil {
			if err := p.engine.Close(); err != nil {
				t.Error(err)
			}
		}
		if err := p.store.Close(); err != nil {
			t.Error(err)
		}
	})
	g, err := guard.New(guard.Config{Keeper: p.keeper})
	if err != nil {
		t.Fatal(err)
	}
	events := stream.New(t.Context(), stream.Options{Store: p.store})
	t.Cleanup(events.Close)
	if p.h, err = api.New(g, api.Options{Store: p.store, Starter: p, Brancher: p, Settler: p, Agents: p, Health: p, Events: events.Board(), SessionEvents: events.Session()}); err != nil {
		t.Fatal(err)
	}
	return p
}

// token is the text of a new token for a role.
func (p *place) token(name string, role access.Role) string {
	p.t.Helper()
	var random [access.RandomBytes]byte
	p.minted++
	for i := range random {
		random[i] = p.minted
	}
	t, secret, err := access.Mint(access.Spec{Kind: access.User, Name: name, Role: role, Lifetime: 366 * 24 * time.Hour}, time.Now(), random)
	if err == nil {
		err = p.keeper.Put(t)
	}
	if err != nil {
		p.t.Fatal(err)
	}
	return secret.Reveal()
}

// trip makes a round trip of a function.
type trip func(*http.Request) (*http.Response, error)

func (f trip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// call answers a request as the server does.
func (p *place) call(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	p.h.ServeHTTP(w, r)
	return w.Result(), nil
}

// client is one with a role.
func (p *place) client(name string, role access.Role) *client.Client {
	p.t.Helper()
	return over(p.t, p.token(name, role), p.call)
}

// over is a client whose requests are answered by a function.
func over(t *testing.T, token string, f trip) *client.Client {
	t.Helper()
	c, err := client.New(client.Options{URL: "http://localhost", Token: token, HTTP: &http.Client{Transport: f}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// own returns the engine that the place has.
func (p *place) own() *engine.Engine {
	if p.engine != nil {
		return p.engine
	}
	p.t.Helper()
	var err error
	if p.engine, err = engine.New(context.WithoutCancel(p.t.Context()), p.store, engine.Options{Agents: []engine.Agent{chat()}}); err != nil {
		p.t.Fatal(err)
	}
	return p.engine
}

// chat waits for messages, and ends with the first.
func chat() engine.Agent {
	return engine.Agent{Name: "chat", Loop: stint.AgentFunc(func(_ context.Context, l stint.Loop) (stint.Next, error) {
		if len(l.Inbox()) > 0 && l.State() != nil {
			return stint.Next{End: &stint.End{Result: json.RawMessage(`{"heard":"it"}`)}}, nil
		}
		return stint.Next{State: []byte(`{"n":1}`), Wait: &stint.Wait{For: stint.ForMessage, What: "what next?", Wakes: []stint.MessageKind{stint.Prompt}}}, nil
	})}
}

func (p *place) Start(ctx context.Context, r api.StartRequest) (engine.Created, error) {
	if r.Agent != "chat" {
		e := stint.NotFound.Errorf("agent", "stint.yaml has no agent %q", r.Agent)
		e.Hint = "it has chat"
		return engine.Created{}, e
	}
	q, err := r.Request(chat())
	if err != nil {
		return engine.Created{}, err
	}
	return p.own().Start(ctx, q)
}

// Branch implements [api.Brancher].
func (p *place) Branch(ctx context.Context, parent stint.ID, b engine.Branch) (engine.Created, error) {
	return p.own().Branch(ctx, parent, b)
}

// Made implements [api.Brancher].
func (p *place) Made(_ context.Context, name string) (engine.Agent, error) {
	if name != "chat" {
		return engine.Agent{}, stint.NotFound.Errorf("agent", "stint.yaml has no agent %q", name)
	}
	return chat(), nil
}

func (p *place) Settle(ctx context.Context, id stint.ID) error { return p.own().Settle(ctx, id) }

func (p *place) Agents(context.Context) ([]view.Agent, error) {
	return []view.Agent{{Name: "chat", Kind: "exec", Command: []string{"chat"}, Sum: "00"}}, nil
}

func (p *place) Agent(context.Context, string) (api.Definition, error) {
	return api.Definition{}, stint.NotFound.Errorf("agent", "there is none")
}

func (p *place) Write(context.Context) error { return nil }
func (p *place) Ready(context.Context) error { return nil }
func (p *place) Scheduler(context.Context) (api.SchedulerHealth, error) {
	return api.SchedulerHealth{}, nil
}
