package trigger_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/internal/hook"
	"github.com/stint-dev/stint/internal/trigger"
	"github.com/stint-dev/stint/store/mem"
	"github.com/stint-dev/stint/store/sqlite"
	"github.com/stint-dev/stint/store/storetest"
)

const (
	plainKey = "It's a Secret to Everybody"
	whsec    = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
)

// desk is a server that receives deliveries.
type desk struct {
	testing.TB

	store stint.Store
	e     *engine.Engine
	sys   *engine.System
	recv  *trigger.Receiver
	mux   *http.ServeMux
	n     int
	close func()
}

// newDesk starts a server on a store. What is in the store in the end must be sound.
func newDesk(t testing.TB, store stint.Store) *desk {
	t.Helper()
	d := &desk{TB: t, store: store}
	d.open()
	t.Cleanup(func() {
		d.close()
		storetest.Check(t, store)
	})
	return d
}

// open starts the server, or the next one on the same store.
func (d *desk) open() {
	d.Helper()
	d.n++
	ctx := context.WithoutCancel(d.Context())
	e, err := engine.New(ctx, d.store, engine.Options{Holder: fmt.Sprint("desk-", d.n), Agents: []engine.Agent{listener()}})
	if err != nil {
		d.Fatal(err)
	}
	sys, err := e.System(ctx, func(err error) { d.Errorf("the system journal is lost: %v", err) })
	if err != nil {
		d.Fatal(err)
	}
	d.e, d.sys, d.recv, d.mux = e, sys, trigger.NewReceiver(e, sys, d.store, nil), http.NewServeMux()
	d.mux.Handle("/hooks/{name}", d.recv)
	d.close = func() {
		d.Helper()
		if err := errors.Join(sys.Close(), e.Close()); err != nil {
			d.Error(err)
		}
	}
}

// listener is an agent that listens until it is told to end.
func listener() engine.Agent {
	return engine.Agent{Name: "a", Labels: map[string]string{"team": "core"}, Loop: stint.AgentFunc(func(_ context.Context, l stint.Loop) (stint.Next, error) {
		var heard []string
		if len(l.State()) > 0 {
			if err := json.Unmarshal(l.State(), &heard); err != nil {
				return stint.Next{}, err
			}
		}
		next := stint.Next{Wait: &stint.Wait{For: stint.ForMessage, What: "the next one", Wakes: []stint.MessageKind{stint.Prompt}}}
		for _, m := range l.Inbox() {
			heard = append(heard, string(m.Body))
			if strings.Contains(string(m.Body), "end") {
				next = stint.Next{End: &stint.End{}}
			}
		}
		next.State, _ = json.Marshal(heard)
		return next, nil
	})}
}

// run lets a session do what it can.
func (d *desk) run(id stint.ID) stint.Session {
	d.Helper()
	s, err := d.e.Run(d.Context(), id)
	if err != nil {
		d.Fatal(err)
	}
	return s
}

// heard is what the agent of a session was told, after it did what it can.
func (d *desk) heard(id stint.ID) string {
	d.Helper()
	s := d.run(id)
	if s.Checkpoint.Seq == 0 {
		return ""
	}
	es, err := d.store.Entries(d.Context(), stint.Range{Session: id, Kinds: []stint.Kind{stint.SessionCreated, stint.MessageTaken}})
	if err != nil {
		d.Fatal(err)
	}
	var all []string
	for i := range es {
		if len(es[i].Body) > 0 {
			all = append(all, string(es[i].Body))
		}
	}
	return strings.Join(all, " ")
}

// target is a hook; without a scheme whoever reaches it is believed.
func (d *desk) target(def hook.Definition) trigger.Target {
	d.Helper()
	if def.Name == "" {
		def.Name = "h"
	}
	if def.Scheme == "" {
		def.Scheme = hook.None
	}
	if def.Scheme.Signs() && def.Secrets == nil {
		def.Secrets = []string{"env:SECRET"}
	}
	def.Agent = "a"
	h, err := hook.Compile(def)
	if err != nil {
		d.Fatal(err)
	}
	secret := map[bool]string{true: whsec, false: plainKey}[def.Scheme == hook.Standard]
	return trigger.Target{
		Hook: h, Secrets: func() ([]string, error) { return []string{secret}, nil },
		Request: func() (engine.Request, error) { return engine.Request{Agent: listener()}, nil },
	}
}

// hooks replaces the hooks of the desk.
func (d *desk) hooks(defs ...hook.Definition) {
	d.Helper()
	var all []trigger.Target
	for _, def := range defs {
		all = append(all, d.target(def))
	}
	d.recv.Set(all)
}

// answered is an answer to a delivery.
type answered struct {
	trigger.Delivered

	Status int
	Text   string
	Header http.Header
}

// send posts a delivery.
func (d *desk) send(name, body string, headers map[string]string) answered {
	d.Helper()
	req := httptest.NewRequestWithContext(d.Context(), http.MethodPost, "/hooks/"+name, strings.NewReader(body))
	for k, v := range headers {
		req.Header.Set(k, v)
	}
	return d.ask(req)
}

// ask answers a request.
func (d *desk) ask(req *http.Request) answered {
	d.Helper()
	w := httptest.NewRecorder()
	d.mux.ServeHTTP(w, req)
	a := answered{Status: w.Code, Text: w.Body.String(), Header: w.Header()}
	if strings.HasPrefix(w.Header().Get("Content-Type"), "application/json") {
		if err := json.Unmarshal(w.Body.Bytes(), &a.Delivered); err != nil {
			d.Errorf("the answer %q: %v", a.Text, err)
		}
	}
	return a
}

// want sends and checks the status.
func (d *desk) want(status int, name, body string, headers map[string]string) answered {
	d.Helper()
	a := d.send(name, body, headers)
	if a.Status != status {
		d.Fatalf("got %d %s, want %d", a.Status, a.Text, status)
	}
	return a
}

// gitHub is what GitHub sends with a body.
func gitHub(id, body string) map[string]string {
	mac := hmac.New(sha256.New, []byte(plainKey))
	mac.Write([]byte(body))
	return map[string]string{"X-GitHub-Delivery": id, "X-GitHub-Event": "push", "X-Hub-Signature-256": "sha256=" + hex.EncodeToString(mac.Sum(nil))}
}

// standard is what a sender of Standard Webhooks sends with a body.
func standard(t testing.TB, id, body string, at time.Time) map[string]string {
	t.Helper()
	headers, err := hook.Sign(whsec, id, at, []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	return headers
}

// sessions are those that hooks began, newest first.
func (d *desk) sessions() []stint.Row {
	d.Helper()
	rows, err := d.store.Sessions(d.Context(), stint.Filter{Trigger: "hook", Limit: 10_000})
	if err != nil {
		d.Fatal(err)
	}
	return rows
}

// ledger is what became of the deliveries to a hook, oldest first.
func (d *desk) ledger(name string) string {
	d.Helper()
	all, err := trigger.Deliveries(d.Context(), d.store, name, trigger.Delivered{}, 1000)
	if err != nil {
		d.Fatal(err)
	}
	var words []string
	for i := len(all) - 1; i >= 0; i-- {
		words = append(words, string(all[i].Result))
	}
	return strings.Join(words, " ")
}

func (d *desk) is(what string, got, want any) {
	d.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		d.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// onEach runs a test on each store.
func onEach(t *testing.T, f func(t *testing.T, d *desk)) {
	t.Run("mem", func(t *testing.T) { f(t, newDesk(t, mem.New())) })
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		f(t, newDesk(t, file(t)))
	})
}

// file is a store in a file.
func file(t testing.TB) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), sqlite.Options{Path: filepath.Join(t.TempDir(), "stint.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}
