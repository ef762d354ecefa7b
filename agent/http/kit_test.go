package http_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stint-dev/stint"
	agenthttp "github.com/stint-dev/stint/agent/http"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/internal/replay/replaytest"
	"github.com/stint-dev/stint/store/mem"
)

var update = flag.Bool("update", false, "write the transcripts in testdata anew")

// patience is how long the tests wait for what has to come. It only ends a test that
// would hang: how long something takes depends on what else the machine does.
const patience = time.Minute

const secretText = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

func secret(t *testing.T) []byte {
	t.Helper()
	key, err := agenthttp.ParseSecret(secretText)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// stop is the panic by which an agent leaves a request: it waits for an answer that the
// request does not have.
type stop struct{}

// talk is one request to an agent, which is written as if nothing had been asked before.
type talk struct {
	*testing.T

	w       http.ResponseWriter
	r       *http.Request
	loop    loopLine
	answers map[int64]answer
	id      int64
}

type loopLine struct {
	Session struct{ ID, Name string }
	Loop    int
	Attempt int
	Epoch   int64
	State   json.RawMessage
	Inbox   []struct {
		Text  string
		Child struct{ Name, Outcome string }
	}
	Steps []json.RawMessage
}

type answer struct {
	Type   string
	ID     int64
	Key    string
	Result json.RawMessage
	Error  string
	Cached bool
}

func (k *talk) say(line string) {
	_, _ = io.WriteString(k.w, line+"\n")
	_ = http.NewResponseController(k.w).Flush()
}

// step declares a step and gives its result. do is called if it has to be done.
func (k *talk) step(name, effect string, do func(key string) string) json.RawMessage {
	k.id++
	k.say(fmt.Sprintf(`{"type":"step","id":%d,"name":%q,"effect":%q,"input":{"of":%q}}`, k.id, name, effect, name))
	return k.outcome(k.id, do)
}

func (k *talk) outcome(id int64, do func(key string) string) json.RawMessage {
	a, ok := k.answers[id]
	switch {
	case !ok || a.Type == "park":
		panic(stop{})
	case a.Type == "proceed":
		said := do(a.Key)
		k.say(fmt.Sprintf(`{"type":"result","id":%d,%s}`, id, said))
		var r answer
		if err := json.Unmarshal([]byte("{"+said+"}"), &r); err != nil {
			k.Error(err)
		}
		return r.Result
	}
	return a.Result
}

// server is an agent behind a URL that keeps what was said.
type server struct {
	*httptest.Server

	mu       sync.Mutex
	requests []*exchange
}

// exchange is one request and its response, as they were.
type exchange struct {
	header http.Header
	body   string
	status int
	answer bytes.Buffer
}

// tee keeps a response.
type tee struct {
	http.ResponseWriter

	x *exchange
}

func (t tee) WriteHeader(status int) { t.x.status = status; t.ResponseWriter.WriteHeader(status) }
func (t tee) Write(b []byte) (int, error) {
	t.x.answer.Write(b)
	return t.ResponseWriter.Write(b)
}
func (t tee) Unwrap() http.ResponseWriter { return t.ResponseWriter }

// keep is a handler that keeps what passes through it.
func (s *server) keep(t *testing.T, next func(w http.ResponseWriter, r *http.Request, body []byte)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // cut off
		}
		checkSignature(t, r.Header, body)
		x := &exchange{header: r.Header.Clone(), body: string(body), status: 200}
		s.mu.Lock()
		s.requests = append(s.requests, x)
		s.mu.Unlock()
		next(tee{w, x}, r, body)
	})
}

func (s *server) all() []*exchange {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// checkSignature verifies as Standard Webhooks says, without the code under test.
func checkSignature(t *testing.T, h http.Header, body []byte) {
	t.Helper()
	key, err := base64.StdEncoding.DecodeString(secretText[len("whsec_"):])
	if err != nil {
		t.Error(err)
	}
	mac := hmac.New(sha256.New, key)
	for _, part := range [][]byte{[]byte(h.Get("webhook-id")), {'.'}, []byte(h.Get("webhook-timestamp")), {'.'}, body} {
		mac.Write(part)
	}
	if want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)); h.Get("webhook-signature") != want {
		t.Errorf("the signature is %q, want %q", h.Get("webhook-signature"), want)
	}
	at, err := strconv.ParseInt(h.Get("webhook-timestamp"), 10, 64)
	if err != nil || time.Since(time.Unix(at, 0)).Abs() > time.Minute {
		t.Errorf("the timestamp is %q", h.Get("webhook-timestamp"))
	}
}

// raw serves a plain handler.
func raw(t *testing.T, next func(w http.ResponseWriter, r *http.Request, body []byte)) *server {
	t.Helper()
	s := &server{}
	s.Server = httptest.NewServer(s.keep(t, next))
	t.Cleanup(s.Close)
	return s
}

// serve serves an agent that is written as a function.
func serve(t *testing.T, agent func(k *talk)) *server {
	t.Helper()
	return raw(t, func(w http.ResponseWriter, r *http.Request, body []byte) {
		w.Header().Set("Content-Type", "application/x-ndjson")
		k := &talk{T: t, w: w, r: r, answers: map[int64]answer{}}
		lines := bufio.NewScanner(bytes.NewReader(body))
		for lines.Scan() {
			var a answer
			into := any(&a)
			if k.loop.Loop == 0 {
				into = &k.loop
			}
			if err := json.Unmarshal(lines.Bytes(), into); err != nil {
				t.Errorf("the line %s: %v", lines.Text(), err)
			}
			k.answers[a.ID] = a
		}
		defer func() {
			if p := recover(); p != nil && p != (stop{}) {
				panic(p)
			}
		}()
		agent(k)
	})
}

func newAgent(t *testing.T, s *server, change func(*agenthttp.Spec)) *agenthttp.Agent {
	t.Helper()
	spec := agenthttp.Spec{URL: s.URL + "/agent", Secret: secret(t), Timeout: patience}
	if change != nil {
		change(&spec)
	}
	a, err := agenthttp.New(spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close() })
	return a
}

// rig is an engine on a store in memory, with one agent and one session.
type rig struct {
	*testing.T

	store  *reads
	engine *engine.Engine
	id     stint.ID
}

func newRig(t *testing.T, a stint.Agent, change func(*engine.Agent)) *rig {
	t.Helper()
	kept := mem.New()
	r := &rig{T: t, store: &reads{Store: kept, Watcher: kept}}
	def := engine.Agent{Name: "clerk", Loop: a, Retry: engine.Retry{Attempts: 2, Initial: time.Millisecond}}
	if change != nil {
		change(&def)
	}
	var err error
	if r.engine, err = engine.New(t.Context(), r.store, engine.Options{Agents: []engine.Agent{def}}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		replaytest.Same(t, r.store, a, false)
		r.engine.Close()
		r.store.Close()
	})
	made, err := r.engine.Start(t.Context(), engine.Request{Agent: def, Name: "refunds", Input: []byte("refund A-18")})
	if err != nil {
		t.Fatal(err)
	}
	r.id = made.ID
	return r
}

func (r *rig) run() stint.Session {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.Context(), 3*patience)
	defer cancel()
	s, err := r.engine.Run(ctx, r.id)
	if err != nil {
		r.Fatalf("the session gave %v", err)
	}
	return s
}

func (r *rig) send(m stint.Message) {
	r.Helper()
	if err := r.store.Send(r.Context(), r.id, m); err != nil {
		r.Fatal(err)
	}
}

// reads is a store that counts how often somebody read an inbox with messages in it.
type reads struct {
	stint.Store
	stint.Watcher

	n atomic.Int64
}

func (s *reads) Inbox(ctx context.Context, id stint.ID) ([]stint.Message, error) {
	ms, err := s.Store.Inbox(ctx, id)
	if len(ms) > 0 {
		s.n.Add(1)
	}
	return ms, err
}

// heard waits until a message that was sent has reached who drives the session: when the
// inbox is read for the second time, what the first reading found was handed over.
func (r *rig) heard() {
	r.Helper()
	deadline := time.After(patience)
	for tick := time.Tick(5 * time.Millisecond); r.store.n.Load() < 2; {
		select {
		case <-tick:
		case <-deadline:
			r.Fatal("nobody reads the inbox")
		}
	}
}

// entries returns the bodies and the data of the entries of a kind.
func (r *rig) entries(kind stint.Kind) []string {
	r.Helper()
	es, err := r.store.Entries(r.Context(), stint.Range{Session: r.id, Kinds: []stint.Kind{kind}, Limit: 1000})
	if err != nil {
		r.Fatal(err)
	}
	var out []string
	for _, e := range es {
		out = append(out, string(e.Data)+" "+string(e.Body))
	}
	return out
}

// journal is all that the store has of the session, as one text.
func (r *rig) journal() string {
	r.Helper()
	es, err := r.store.Entries(r.Context(), stint.Range{Session: r.id, Limit: 10000})
	if err != nil {
		r.Fatal(err)
	}
	var b strings.Builder
	for _, e := range es {
		fmt.Fprintf(&b, "%s %s %s\n", e.Kind, e.Data, e.Body)
	}
	return b.String()
}

// counter counts effects by the key that they were done under.
type counter struct {
	mu   sync.Mutex
	keys []string
}

func (c *counter) do(name string) func(string) string {
	return func(key string) string {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.keys = append(c.keys, name+" "+key)
		return fmt.Sprintf(`"result":"%s done"`, name)
	}
}

func (c *counter) done() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.keys)
}

// single is a loop by itself, for what it returns. Its steps are done at once.
type single struct {
	ses     stint.Session
	errs    []error // of the steps' functions
	outputs bytes.Buffer
	mu      sync.Mutex
}

func newSingle() *single {
	id, err := stint.ParseID("01jd0f3kx6ewx8ts2gt4hg1m5r")
	if err != nil {
		panic(err)
	}
	return &single{ses: stint.Session{ID: id, Name: "billing", At: stint.Place{Loop: 3, Attempt: 1}}}
}

func (l *single) Session() stint.Session { return l.ses }
func (l *single) State() json.RawMessage { return nil }
func (l *single) Inbox() []stint.Message { return nil }
func (l *single) Progress(string)        {}
func (l *single) Log(_ string, p []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.outputs.Write(p)
}

func (l *single) Do(ctx context.Context, s stint.Step, fn func(context.Context, string) (stint.Result, error)) (stint.Result, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.Timeout, errors.New("no result in its time"))
	defer cancel()
	res, err := fn(ctx, "key")
	l.mu.Lock()
	defer l.mu.Unlock()
	l.errs = append(l.errs, err)
	return res, err
}

func (l *single) DoAll(ctx context.Context, steps []stint.Step, fn func(context.Context, int, string) (stint.Result, error)) ([]stint.Result, error) {
	results, errs := make([]stint.Result, len(steps)), make([]error, len(steps))
	var wait sync.WaitGroup
	for i, s := range steps {
		wait.Go(func() {
			results[i], errs[i] = l.Do(ctx, s, func(ctx context.Context, key string) (stint.Result, error) { return fn(ctx, i, key) })
		})
	}
	wait.Wait()
	return results, errors.Join(errs...)
}

// ask runs one loop by itself.
func ask(t *testing.T, a *agenthttp.Agent, l *single) (stint.Next, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*patience)
	defer cancel()
	next, err := a.Loop(ctx, l)
	if ctx.Err() != nil {
		t.Fatal("the loop did not end by itself")
	}
	if err != nil {
		t.Logf("the loop's error: %v", err)
	}
	return next, err
}

// notBegun and steering read errors as the engine does.
func notBegun(err error) bool {
	var n interface{ NotBegun() bool }
	return errors.As(err, &n) && n.NotBegun()
}

func steering(err error) (after time.Duration, retry, final bool) {
	var s interface {
		error
		Steer() (time.Duration, bool, bool)
	}
	if !errors.As(err, &s) {
		return 0, false, false
	}
	after, final, _ = s.Steer()
	return after, !final, final
}

func contains(t *testing.T, what, text string, want ...string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(text, w) {
			t.Errorf("%s is\n%s\nwant in it\n%s", what, text, w)
		}
	}
}
