package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/internal/access"
	"github.com/stint-dev/stint/internal/access/guard"
	"github.com/stint-dev/stint/internal/api"
	"github.com/stint-dev/stint/internal/view"
	"github.com/stint-dev/stint/store/mem"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// room is a server without a network, on a store with an engine in this process. In its
// bubble the clock stands at four in the afternoon of a Sunday.
type room struct {
	t      *testing.T
	store  *mem.Store
	e      *engine.Engine
	keeper *access.Mem
	h      http.Handler
	table  access.Table
	texts  map[access.Role]string // a token of each role
	agent  string                 // the token of an agent with every scope
	minted byte
	sick   error           // what the health of the server is
	writes int             // of the health
	desk   *desk           // of hooks; nil: there are none
	said   strings.Builder // the transcript
	ids    []string        // of sessions, in the order in which answers named them
}

func inRoom(t *testing.T, fn func(t *testing.T, r *room)) {
	t.Helper()
	inRoomWith(t, func(*api.Options) {}, fn)
}

func inRoomWith(t *testing.T, change func(*api.Options), fn func(t *testing.T, r *room)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		<-time.After(time.Until(time.Date(2026, 11, 29, 16, 0, 0, 0, time.UTC)))
		r := &room{t: t, store: mem.New(), keeper: &access.Mem{}, texts: map[access.Role]string{}}
		var err error
		if r.e, err = engine.New(t.Context(), r.store, engine.Options{Agents: agents(), Holder: "runner-1"}); err != nil {
			t.Fatal(err)
		}
		for _, role := range access.Roles() {
			r.texts[role] = r.mint(access.Spec{Kind: access.User, Name: string(role), Role: role})
		}
		r.agent = r.mint(access.Spec{Kind: access.Agent, Name: "robot", Role: access.Operator})
		r.serve(change)
		fn(t, r)
		if err := errors.Join(r.e.Close(), r.store.Close()); err != nil {
			t.Error(err)
		}
	})
}

func (r *room) serve(change func(*api.Options)) {
	r.t.Helper()
	g, err := guard.New(guard.Config{Keeper: r.keeper})
	if err != nil {
		r.t.Fatal(err)
	}
	o := api.Options{Store: r.store, Starter: r, Brancher: r, Settler: r.e, Agents: r, Health: r, Version: "1.2.3", Tokens: tokens{r.keeper},
		Events: http.NotFoundHandler(), SessionEvents: http.NotFoundHandler()}
	change(&o)
	var mux guard.Mux
	if r.table, err = api.Register(&mux, o); err != nil {
		r.t.Fatal(err)
	}
	if r.h, err = g.Protect(r.table, &mux); err != nil {
		r.t.Fatal(err)
	}
}

func (r *room) mint(s access.Spec) string {
	r.t.Helper()
	var random [access.RandomBytes]byte
	r.minted++
	for i := range random {
		random[i] = r.minted
	}
	t, secret, err := access.Mint(s, time.Now(), random)
	if err == nil {
		err = r.keeper.Put(t)
	}
	if err != nil {
		r.t.Fatal(err)
	}
	return secret.Reveal()
}

// tokens is a keeper as the API needs it.
type tokens struct{ *access.Mem }

func (k tokens) Put(_ context.Context, t access.Token, _ stint.Actor, _ *stint.Message) error {
	return k.Mem.Put(t)
}

func (k tokens) Revoke(_ context.Context, id string, _ stint.Actor, _ string, _ *stint.Message) error {
	return k.Mem.Revoke(id, time.Now())
}

// agents are what the room can start.
func agents() []engine.Agent {
	loop := func(fn func(context.Context, stint.Loop) (stint.Next, error)) stint.Agent { return stint.AgentFunc(fn) }
	return []engine.Agent{
		{Name: "chat", Loop: loop(func(_ context.Context, l stint.Loop) (stint.Next, error) {
			for _, m := range l.Inbox() {
				if bytes.Contains(m.Body, []byte("enough")) {
					return stint.Next{End: &stint.End{Result: json.RawMessage(`{"answer":"42"}`)}}, nil
				}
			}
			return stint.Next{State: []byte(`{"heard":true}`), Wait: &stint.Wait{For: stint.ForMessage, What: "what next?", Wakes: []stint.MessageKind{stint.Prompt}}}, nil
		})},
		{Name: "pay", Loop: loop(func(ctx context.Context, l stint.Loop) (stint.Next, error) {
			s := stint.Step{Name: "pay", Kind: stint.Tool, Input: json.RawMessage(`{"to":"bob\u001b[2J","amount":4500}`), Ask: "Pay bob 45.00?", Why: "rule: money asks"}
			_, err := l.Do(ctx, s, func(context.Context, string) (stint.Result, error) { return stint.Result{}, nil })
			return stint.Next{End: &stint.End{}}, err
		})},
		{Name: "unsure", Loop: loop(func(ctx context.Context, l stint.Loop) (stint.Next, error) {
			_, err := l.Do(ctx, stint.Step{Name: "mail", Kind: stint.Tool, Input: json.RawMessage(`{"to":"ana"}`)}, func(context.Context, string) (stint.Result, error) {
				return stint.Result{}, errors.New("the connection broke")
			})
			return stint.Next{End: &stint.End{}}, err
		})},
		{Name: "loud", Loop: loop(func(ctx context.Context, l stint.Loop) (stint.Next, error) {
			for i := range 4 {
				_, err := l.Do(ctx, stint.Step{Name: fmt.Sprint("fetch", i), Kind: stint.Tool, Effect: stint.Read}, func(context.Context, string) (stint.Result, error) {
					b, err := json.Marshal("\x1b[2J" + strings.Repeat("and again ", 40_000))
					return stint.Result{Data: b}, err
				})
				if err != nil {
					return stint.Next{}, err
				}
			}
			return stint.Next{End: &stint.End{Reason: "bell\a and \u202eback"}}, nil
		})},
	}
}

func (r *room) Start(ctx context.Context, q api.StartRequest) (engine.Created, error) {
	a, err := r.Made(ctx, q.Agent)
	if err != nil {
		return engine.Created{}, err
	}
	req, err := q.Request(a)
	if err != nil {
		return engine.Created{}, err
	}
	return r.e.Start(ctx, req)
}

func (r *room) Made(_ context.Context, name string) (engine.Agent, error) {
	for _, a := range agents() {
		if a.Name == name {
			return a, nil
		}
	}
	err := stint.NotFound.Errorf("agent", "stint.yaml has no agent %q", name)
	err.Hint = "it has chat, loud, pay, unsure"
	return engine.Agent{}, err
}

func (r *room) Branch(ctx context.Context, parent stint.ID, b engine.Branch) (engine.Created, error) {
	return r.e.Branch(ctx, parent, b)
}

func (r *room) Agents(context.Context) ([]view.Agent, error) {
	return []view.Agent{{Name: "chat", Kind: "exec", Command: []string{"python3", "chat.py"}, Sum: strings.Repeat("0", 64), Description: "Talks"}}, nil
}

func (r *room) Agent(_ context.Context, name string) (api.Definition, error) {
	if name != "chat" {
		return api.Definition{}, stint.NotFound.Errorf("agent", "stint.yaml has no agent %q", name)
	}
	return api.Definition{Agent: json.RawMessage(`{"agent":{"name":"chat"}}`), Cost: json.RawMessage(`{"max":"5","why":"default"}`)}, nil
}

func (r *room) Write(context.Context) error {
	r.writes++
	return r.sick
}

func (r *room) Ready(context.Context) error { return r.sick }

func (r *room) Scheduler(context.Context) (api.SchedulerHealth, error) {
	return api.SchedulerHealth{Looked: time.Now(), Next: time.Now().Add(time.Hour), Schedules: 3, Paused: 1}, r.sick
}

// run drives a session as a runner does, until it parks or ends.
func (r *room) run(id string) stint.Session {
	r.t.Helper()
	sid, err := stint.ParseID(id)
	if err != nil {
		r.t.Fatal(err)
	}
	s, err := r.e.Run(r.t.Context(), sid)
	if err != nil {
		r.t.Fatal(err)
	}
	return s
}

// call is a request with what a test may say of it.
type call struct {
	method, path, body string
	token              string // a text; empty: the admin's
	key                string // Idempotency-Key
	header             http.Header
}

// reply is the answer.
type reply struct {
	status int
	header http.Header
	body   []byte
	doc    map[string]any // of JSON
}

func newRecorder() *httptest.ResponseRecorder { return httptest.NewRecorder() }

func newRequest(r *room, c call) *http.Request {
	req := httptest.NewRequestWithContext(r.t.Context(), c.method, c.path, strings.NewReader(c.body))
	req.Host = "localhost"
	for k, v := range c.header {
		req.Header[k] = v
	}
	if c.token == "" {
		c.token = r.texts[access.Administrator]
	}
	req.Header.Set("Authorization", "Bearer "+c.token)
	if c.key != "" {
		req.Header.Set("Idempotency-Key", c.key)
	}
	if c.body != "" && req.Header.Get("Content-Type") == "" {
		req.Header.Set("Content-Type", "application/json")
	}
	return req
}

func (r *room) do(c call) reply {
	r.t.Helper()
	req := newRequest(r, c)
	w := newRecorder()
	r.h.ServeHTTP(w, req)
	out := reply{status: w.Code, header: w.Result().Header, body: w.Body.Bytes()}
	if strings.Contains(out.header.Get("Content-Type"), "json") && len(out.body) > 0 && json.Unmarshal(out.body, &out.doc) != nil {
		r.t.Errorf("%s %s: %.200s is no JSON object", c.method, c.path, out.body)
	}
	for _, id := range regexp.MustCompile(`\b01[0-9a-hjkmnp-tv-z]{24}\b`).FindAllString(string(out.body), -1) {
		if !slices.Contains(r.ids, id) {
			r.ids = append(r.ids, id)
		}
	}
	return out
}

// ok makes a request that has to be answered with a status, writes it down, and returns
// the document.
func (r *room) ok(status int, c call) map[string]any {
	r.t.Helper()
	out := r.do(c)
	r.note(c, out)
	if out.status != status {
		r.t.Errorf("%s %s %.200s: %d, want %d\n%s", c.method, c.path, c.body, out.status, status, clip(out.body))
	}
	return out.doc
}

// fails makes a request that has to be refused, as a problem with a code, a hint and want.
func (r *room) fails(code stint.Code, want string, c call) reply {
	r.t.Helper()
	out := r.do(c)
	r.note(c, out)
	detail, _ := out.doc["detail"].(string)
	hint, _ := out.doc["hint"].(string)
	if out.doc["code"] != string(code) || out.doc["status"] != float64(out.status) || out.header.Get("Content-Type") != "application/problem+json" || !strings.Contains(detail+hint, want) {
		r.t.Errorf("%s %.200s %.200s: want %s with %q\n%d %s\n%s", c.method, c.path, c.body, code, want, out.status, out.header.Get("Content-Type"), clip(out.body))
	}
	return out
}

// note writes a request and its answer into the transcript.
func (r *room) note(c call, out reply) {
	fmt.Fprintf(&r.said, "> %s %s %s\n%d %s\n", c.method, c.path, c.body, out.status, out.header.Get("Location"))
	var b bytes.Buffer
	if json.Indent(&b, out.body, "", "  ") != nil {
		b.Reset()
		b.Write(out.body)
	}
	r.said.WriteString(strings.TrimRight(b.String(), "\n") + "\n\n")
}

func (r *room) golden(name string) {
	r.t.Helper()
	golden(r.t, name, r.scrub(r.said.String()))
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs from what was said; -update rewrites it\n%s", path, got)
	}
}

// scrub names what is random: ids by the order in which they were made, and hashes.
func (r *room) scrub(s string) string {
	s = regexp.MustCompile(`\b[0-9a-f]{64}\b`).ReplaceAllString(s, "HASH")
	s = regexp.MustCompile(`stint_user_[0-9a-z_]+`).ReplaceAllString(s, "SECRET")
	for i, id := range r.ids {
		s = strings.ReplaceAll(s, id, fmt.Sprintf("ID-%d", i+1))
		s = regexp.MustCompile(`\b`+id[22:]+`\b`).ReplaceAllString(s, fmt.Sprintf("id-%d", i+1))
	}
	return s
}

func get(path string) call        { return call{method: http.MethodGet, path: path} }
func post(path, body string) call { return call{method: http.MethodPost, path: path, body: body} }

// begin starts a session and returns its id.
func (r *room) begin(body string) string {
	r.t.Helper()
	id, ok := r.ok(http.StatusCreated, post("/v1/sessions", body))["id"].(string)
	if !ok {
		r.t.Fatal("no session was made")
	}
	return id
}

func clip(b []byte) []byte { return b[:min(len(b), 600)] }
