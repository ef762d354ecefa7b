package trigger

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/internal/faultpoint"
	"github.com/stint-dev/stint/internal/hook"
	"github.com/stint-dev/stint/internal/problem"
)

// Receiver is the HTTP edge of hooks: POST /hooks/NAME. It answers 202 once a delivery
// is durable, with the session that it is for. It may be used concurrently.
type Receiver struct {
	deliverer

	room chan struct{} // deliveries at once whose bodies have come
	held atomic.Int64  // bytes of bodies, at most so many and a chunk for each that is refused:
	most int64

	mu      sync.RWMutex
	targets map[string]*target
	broken  []string // names of hooks that cannot be used as they are written
}

// target is a hook with what is counted of it.
type target struct {
	Target

	def     hook.Definition
	limiter *rate.Limiter // nil: no limit
	room    *room

	mu      sync.Mutex
	refused []Refused // the newest, oldest first
	counts  map[string]int64
}

// Refused is a request that was none of a hook's.
type Refused struct {
	At     time.Time `json:"at"`
	Status int       `json:"status"`
	Reason string    `json:"reason"`
	From   string    `json:"from"` // the address
	Bytes  int       `json:"bytes"`
}

// keptRefused is how many refused requests of a hook are kept, in memory: whoever sends
// them is not known, and does not write to the store.
const keptRefused = 50

const (
	// maxRequests is how many deliveries are handled at once.
	maxRequests = 512
	// maxHeld bounds the memory that senders can make us use before anybody knows who they
	// are. It is taken by the chunk, as bodies come.
	maxHeld = 512 << 20
	chunk   = 32 << 10
	// readTime is how long a sender may take for a body.
	readTime = 30 * time.Second
	// writeTime is how long a delivery may take to be durable. Senders give up after about
	// so long, and then nobody is there to be told.
	writeTime = 10 * time.Second
)

// NewReceiver makes a receiver without hooks. log may be nil.
func NewReceiver(e *engine.Engine, system *engine.System, store stint.Store, log *slog.Logger) *Receiver {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Receiver{deliverer: deliverer{engine: e, system: system, store: store, log: log}, room: make(chan struct{}, maxRequests), most: maxHeld, targets: map[string]*target{}}
}

// Set replaces all hooks. What was counted of one that stays is kept. What is broken, by
// name, stays as it was; one that was never sound is [stint.Unavailable] for its senders,
// who try again while it is mended.
func (r *Receiver) Set(all []Target, broken ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	next := map[string]*target{}
	r.broken = broken
	for _, name := range broken {
		if old := r.targets[name]; old != nil {
			next[name] = old
		}
	}
	for _, t := range all {
		made := &target{Target: t, def: t.Hook.Definition(), room: &room{}, counts: map[string]int64{}}
		if l := made.def.Limits.Rate; l.Count > 0 {
			made.limiter = rate.NewLimiter(rate.Limit(float64(l.Count)/l.Per.Seconds()), l.Count)
		}
		if old := r.targets[made.def.Name]; old != nil {
			old.mu.Lock()
			made.refused, made.counts, made.room = slices.Clone(old.refused), maps.Clone(old.counts), old.room
			old.mu.Unlock()
			if old.def.Limits.Rate == made.def.Limits.Rate {
				made.limiter = old.limiter // else a file that is read again lets another burst through
			}
		}
		next[made.def.Name] = made
	}
	r.targets = next
}

// Counts is what was counted of a hook since the server began.
type Counts struct {
	Answers map[string]int64 `json:"answers"` // by what became of the request
	Refused []Refused        `json:"refused"` // the newest, oldest first
}

// Counts returns what was counted of a hook; false if there is no such hook.
func (r *Receiver) Counts(name string) (Counts, bool) {
	t, err := r.target(name)
	if err != nil {
		return Counts{}, false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return Counts{Answers: maps.Clone(t.counts), Refused: append([]Refused{}, t.refused...)}, true
}

// target returns a hook by its name, or [stint.NotFound].
func (r *Receiver) target(name string) (*target, error) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if t := r.targets[name]; t != nil {
		return t, nil
	}
	if slices.Contains(r.broken, name) {
		return nil, stint.Unavailable.Errorf("hook", "the hook has a mistake in its configuration")
	}
	return nil, stint.NotFound.Errorf("hook", "there is no such hook")
}

// ServeHTTP takes a delivery to the hook that the path value "name" names.
func (r *Receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	t, err := r.target(req.PathValue("name"))
	switch {
	case err != nil:
		problem.Write(w, err)
		return
	case req.Method != http.MethodPost:
		w.Header().Set("Allow", http.MethodPost)
		problem.Write(w, problem.With(http.StatusMethodNotAllowed, stint.Invalid.Errorf("hook", "deliveries are sent with POST")))
		return
	}
	body, done, err := r.read(w, req, t.def.Limits.Body)
	defer done()
	if err != nil {
		r.refuse(w, req, t, len(body), err)
		return
	}
	select { // whoever sends slowly has no place yet
	case r.room <- struct{}{}:
		defer func() { <-r.room }()
	default:
		r.refuse(w, req, t, len(body), tooMany(time.Second, "the server is at work on %d deliveries", maxRequests))
		return
	}
	r.take(w, req, t, body)
}

// read reads a body, in a bounded time and in memory that all bodies share: what has not
// come yet takes none of it. done gives it back.
func (r *Receiver) read(w http.ResponseWriter, req *http.Request, most int64) (body []byte, done func(), err error) {
	c := http.NewResponseController(w)
	if c.SetReadDeadline(time.Now().Add(readTime)) == nil { // not every writer has a connection
		defer func() { _ = c.SetReadDeadline(time.Time{}) }() // it would end the request's context
	}
	held := int64(0)
	done = func() { r.held.Add(-held) }
	var buf bytes.Buffer
	for from := http.MaxBytesReader(w, req.Body, most); err == nil; {
		if held += chunk; r.held.Add(chunk) > r.most {
			return buf.Bytes(), done, tooMany(time.Second, "the server has %d bytes of deliveries to look at", r.most)
		}
		_, err = io.CopyN(&buf, from, chunk)
	}
	var long *http.MaxBytesError
	switch {
	case errors.Is(err, io.EOF):
		return buf.Bytes(), done, nil
	case errors.As(err, &long):
		return buf.Bytes(), done, problem.With(http.StatusRequestEntityTooLarge, stint.Limit.Errorf("hook", "a delivery has at most %d bytes", most))
	}
	return buf.Bytes(), done, problem.With(http.StatusBadRequest, stint.Invalid.Errorf("hook", "the body could not be read"))
}

// take verifies a request and does what it asks for. From then on a sender that hangs up
// changes nothing.
func (r *Receiver) take(w http.ResponseWriter, req *http.Request, t *target, body []byte) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(req.Context()), writeTime)
	defer cancel()
	came := hook.Request{Headers: req.Header, Query: req.URL.Query(), Body: body}
	v, err := r.verdict(t, came)
	if err != nil {
		r.refuse(w, req, t, len(body), err)
		return
	}
	if v.Decision == hook.Answer {
		t.count("answered")
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.WriteHeader(v.Reply.Status)
		_, _ = io.WriteString(w, v.Reply.Body)
		return
	}
	faultpoint.Hit(faultpoint.HookVerified)
	o, err := r.accept(ctx, &arrival{target: t, Delivery: v.Delivery, body: body, kept: t.Hook.Keep(came)}, &v)
	if err != nil {
		r.refuse(w, req, t, len(body), err)
		return
	}
	faultpoint.Hit(faultpoint.HookDurable)
	what, status := string(o.Result), http.StatusOK
	switch {
	case o.Repeated:
		what = "repeated"
	case o.Result == Created || o.Result == Messaged:
		status = http.StatusAccepted
	}
	t.count(what)
	answer(w, status, o)
}

// verdict judges a request with the hook's secrets as they are now.
func (r *Receiver) verdict(t *target, req hook.Request) (hook.Verdict, error) {
	secrets, err := t.Secrets()
	if err != nil {
		r.log.Error("hook", "hook", t.def.Name, "error", err)
		return hook.Verdict{}, stint.Unavailable.Errorf("hook", "the hook's secret cannot be read")
	}
	v, err := t.Hook.Receive(req, secrets, faultpoint.Now())
	if err != nil {
		return v, problem.With(hook.Status(err), err)
	}
	return v, nil
}

// accept does with a genuine request what it asks for.
func (r *Receiver) accept(ctx context.Context, a *arrival, v *hook.Verdict) (Delivered, error) {
	if v.Decision == hook.Ignore {
		return r.ignore(ctx, a, v.Reason)
	}
	if a.limiter != nil { // what is not genuine, or ignored, uses nothing up
		res := a.limiter.Reserve()
		if wait := res.Delay(); wait > 0 {
			res.Cancel()
			return Delivered{}, tooMany(wait, "the hook takes %d deliveries in %v", a.def.Limits.Rate.Count, a.def.Limits.Rate.Per)
		}
	}
	return r.deliver(ctx, a)
}

// tooMany is a refusal for now.
func tooMany(wait time.Duration, format string, args ...any) error {
	return problem.With(http.StatusTooManyRequests, stint.Retry(max(wait, time.Second), stint.Limit.Errorf("hook", format, args...)))
}

// answer writes what became of a delivery.
func answer(w http.ResponseWriter, status int, o Delivered) {
	b, err := json.Marshal(struct {
		Schema string `json:"schema"`
		Delivered
	}{"stint.delivery/1", o})
	if err != nil {
		problem.Write(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(b, '\n'))
}

// refuse answers with err, and remembers it for a while.
func (r *Receiver) refuse(w http.ResponseWriter, req *http.Request, t *target, n int, err error) {
	if code := stint.CodeOf(err); code == stint.Internal || code == stint.Corrupt {
		r.log.Error("hook", "hook", t.def.Name, "error", err)
	}
	one := Refused{At: faultpoint.Now(), Status: problem.Status(err), Reason: clip(err.Error(), 300), From: req.RemoteAddr, Bytes: n}
	t.count("refused")
	t.mu.Lock()
	if t.refused = append(t.refused, one); len(t.refused) > keptRefused {
		t.refused = t.refused[1:]
	}
	t.mu.Unlock()
	r.log.Warn("delivery refused", "hook", t.def.Name, "status", one.Status, "reason", strings.ToValidUTF8(one.Reason, "?"), "from", one.From)
	problem.Write(w, err)
}

func (t *target) count(what string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.counts[what]++
}
