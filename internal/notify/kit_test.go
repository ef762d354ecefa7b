package notify_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/internal/endpoint"
	"github.com/stint-dev/stint/internal/hook"
	"github.com/stint-dev/stint/internal/notify"
	"github.com/stint-dev/stint/store/mem"
	"github.com/stint-dev/stint/store/storetest"
)

const (
	whsec = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	newer = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"
)

// feeds is a store in memory, until it is cut off from its server.
type feeds struct {
	*mem.Store

	cut   atomic.Bool
	moved atomic.Bool // the next place that it is asked for is that of another store
}

func (f *feeds) Append(ctx context.Context, l stint.Lease, b stint.Batch, done func(error)) {
	if f.cut.Load() {
		done(stint.Fenced.Errorf("append", "it is dead"))
		return
	}
	f.Store.Append(ctx, l, b, done)
}

func (f *feeds) Feed(ctx context.Context, after string, limit int) (es []stint.Entry, cursors []string, err error) {
	if after != "" && f.moved.CompareAndSwap(true, false) {
		return nil, nil, stint.Conflict.Errorf("feed", "%q is of another store", after)
	}
	return f.Store.Feed(ctx, after, limit)
}

// office is a server that notifies.
type office struct {
	*testing.T

	broken []string // endpoints of which the file says nothing that can be used

	store *feeds
	e     *engine.Engine
	sys   *engine.System
	n     *notify.Notifier
	count int
	close func()
	die   func() // its system journal may be lost from now on

	mu    sync.Mutex
	peers map[string]func(got) (int, http.Header, error)
	mail  map[string][]got
}

// got is a request that an endpoint got.
type got struct {
	at      time.Time
	headers http.Header
	body    string
	ctx     context.Context
	id      string
	Type    endpoint.Event
	Data    struct {
		Session  stint.ID
		Seq      int
		Name     string
		Agent    string
		Status   string
		Reason   string
		Labels   map[string]string
		Waiting  *stint.Wait
		Approval *struct{ ID, Step, Text, Why string }
	}
}

// inBubble runs a test of an office in fake time.
func inBubble(t *testing.T, f func(t *testing.T, o *office)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		o := &office{T: t, store: &feeds{Store: mem.New()}, peers: map[string]func(got) (int, http.Header, error){}, mail: map[string][]got{}}
		o.open(o.endpoint("e"))
		f(t, o)
		o.close()
		storetest.Check(t, o.store)
	})
}

func (o *office) endpoint(name string, changes ...func(*notify.Endpoint)) notify.Endpoint {
	w := &notify.Webhook{URL: "https://" + name + ".example.org/x", Secrets: func() ([]string, error) { return []string{whsec}, nil }}
	e := notify.Endpoint{Name: name, Channel: w.Through(&peer{o, name})}
	for _, c := range changes {
		c(&e)
	}
	return e
}

// webhook changes the channel of an endpoint.
func webhook(change func(w *notify.Webhook)) func(*notify.Endpoint) {
	return func(e *notify.Endpoint) { change(e.Channel.(*notify.Webhook)) }
}

// open starts a server.
func (o *office) open(all ...notify.Endpoint) {
	o.Helper()
	o.count++
	e, err := engine.New(o.Context(), o.store, engine.Options{Holder: fmt.Sprint("office-", o.count), Agents: agents(), Poll: time.Hour, TTL: 240 * time.Hour})
	if err != nil {
		o.Fatal(err)
	}
	var dead atomic.Bool
	o.die = func() { dead.Store(true) }
	sys, err := e.System(o.Context(), func(err error) {
		if !dead.Load() {
			o.Errorf("the system journal is lost: %v", err)
		}
	})
	if err != nil {
		o.Fatal(err)
	}
	n, err := notify.New(sys, o.store, nil)
	if err != nil {
		o.Fatal(err)
	}
	if err := n.Set(o.Context(), all, o.broken...); err != nil {
		o.Fatal(err)
	}
	ctx, cancel := context.WithCancel(o.Context())
	ended := make(chan error, 2)
	go func() { ended <- e.Serve(ctx) }()
	go func() { ended <- n.Run(ctx) }()
	o.e, o.sys, o.n = e, sys, n
	o.close = func() {
		o.Helper()
		cancel()
		err := errors.Join(<-ended, <-ended, sys.Close(), e.Close())
		if err != nil && !o.store.cut.Load() {
			o.Error(err)
		}
	}
}

// crash ends the server as a power cut would, and starts the next one.
func (o *office) crash(all ...notify.Endpoint) {
	o.Helper()
	o.die()
	o.store.cut.Store(true)
	o.close()
	o.store.cut.Store(false)
	o.open(all...)
}

// peer is an endpoint.
type peer struct {
	o    *office
	name string
}

func (p *peer) RoundTrip(req *http.Request) (*http.Response, error) {
	b, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	g := got{at: time.Now(), headers: req.Header, body: string(b), ctx: req.Context(), id: req.Header.Get("webhook-id")}
	if err := json.Unmarshal(b, &g); err != nil {
		p.o.Errorf("%s: %v", b, err)
	}
	p.o.mu.Lock()
	answer := p.o.peers[p.name]
	p.o.mail[p.name] = append(p.o.mail[p.name], g)
	p.o.mu.Unlock()
	status, headers := http.StatusNoContent, http.Header{}
	if answer != nil {
		if status, headers, err = answer(g); err != nil {
			return nil, err
		}
	}
	return &http.Response{StatusCode: status, Header: headers, Body: io.NopCloser(strings.NewReader("thanks")), Request: req}, nil
}

// answers says what an endpoint answers.
func (o *office) answers(name string, f func(got) (int, http.Header, error)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.peers[name] = f
}

// always is an endpoint that gives one answer.
func always(status int) func(got) (int, http.Header, error) {
	return func(got) (int, http.Header, error) { return status, http.Header{}, nil }
}

// got is what an endpoint got.
func (o *office) got(name string) []got {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]got(nil), o.mail[name]...)
}

// after lets time pass.
func (o *office) after(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// types are the events that an endpoint got, with the name of the session.
func (o *office) types(name string) string {
	var all []string
	for _, g := range o.got(name) {
		all = append(all, g.Data.Name+":"+string(g.Type))
	}
	return strings.Join(all, " ")
}

// lines are what became of the events of an endpoint, oldest first.
func (o *office) lines(name string) []notify.Sent {
	o.Helper()
	all, err := notify.Deliveries(o.Context(), o.store, name, notify.Sent{}, 1000)
	if err != nil {
		o.Fatal(err)
	}
	for i, j := 0, len(all)-1; i < j; i, j = i+1, j-1 {
		all[i], all[j] = all[j], all[i]
	}
	return all
}

// start begins a session that does what its prompt says.
func (o *office) start(name, prompt string) stint.ID {
	o.Helper()
	made, err := o.e.Start(o.Context(), engine.Request{Agent: agents()[0], Name: name, Input: []byte(prompt), Labels: map[string]string{"for": name}})
	if err != nil {
		o.Fatal(err)
	}
	return made.ID
}

func (o *office) say(id stint.ID, kind stint.MessageKind, body string) {
	o.Helper()
	if err := o.store.Send(o.Context(), id, stint.Message{ID: fmt.Sprint("m", time.Now().UnixNano()), Kind: kind, From: "human:ben", Body: []byte(body)}); err != nil {
		o.Fatal(err)
	}
}

// send sends a message with data.
func (o *office) send(id stint.ID, kind stint.MessageKind, data any) {
	o.Helper()
	raw, err := stint.Marshal(data)
	if err == nil {
		err = o.store.Send(o.Context(), id, stint.Message{ID: fmt.Sprint("m", time.Now().UnixNano()), Kind: kind, From: "human:ben", Data: raw})
	}
	if err != nil {
		o.Fatal(err)
	}
}

func (o *office) is(what string, got, want any) {
	o.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		o.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// agents do what the newest message says.
func agents() []engine.Agent {
	return []engine.Agent{{Name: "a", Retry: engine.Retry{Attempts: 1}, Loop: stint.AgentFunc(func(ctx context.Context, l stint.Loop) (stint.Next, error) {
		word := "wait"
		for _, m := range l.Inbox() {
			word = string(m.Body)
		}
		switch word {
		case "end":
			return stint.Next{End: &stint.End{}}, nil
		case "fail":
			return stint.Next{}, stint.Fail(errors.New("it cannot be done"))
		case "busy":
			<-time.After(3 * time.Hour)
		case "nap":
			return stint.Next{Wait: &stint.Wait{For: stint.ForTime, Until: time.Now().Add(10_000 * time.Hour)}}, nil
		case "broke", "stuck", "parked":
			kind := map[string]stint.WaitFor{"broke": stint.ForBudget, "stuck": stint.ForHealth, "parked": stint.ForOperator}[word]
			return stint.Next{Wait: &stint.Wait{For: kind, What: "it is " + word}}, nil
		case "stop":
			return stint.Next{End: &stint.End{Outcome: stint.Stopped, Reason: "loops"}}, nil
		case "ask":
			_, err := l.Do(ctx, stint.Step{Name: "deploy", Effect: stint.Once, Ask: "deploy it?", Why: "rule 7"}, func(context.Context, string) (stint.Result, error) { return stint.Result{}, nil })
			return stint.Next{End: &stint.End{}}, err
		}
		return stint.Next{Wait: &stint.Wait{For: stint.ForMessage, What: "what next?", Wakes: []stint.MessageKind{stint.Prompt}}}, nil
	})}}
}

// verified checks that a request is what Standard Webhooks wants, for a secret.
func (o *office) verified(g got, secret string) {
	o.Helper()
	h, err := hook.Compile(hook.Definition{Name: "h", Agent: "a", Scheme: hook.Standard, Secrets: []string{"env:S"}})
	if err != nil {
		o.Fatal(err)
	}
	v, err := h.Receive(hook.Request{Headers: g.headers, Body: []byte(g.body)}, []string{secret}, g.at)
	if err != nil || v.Delivery.ID != g.id || v.Delivery.Event != string(g.Type) {
		o.Errorf("%v: %+v", err, v)
	}
}
