package stream_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/stream"
	"github.com/stint-dev/stint/internal/view"
	"github.com/stint-dev/stint/journal"
	"github.com/stint-dev/stint/store/mem"
	"github.com/stint-dev/stint/store/sqlite"
)

// long reports whether tests run at full size.
func long() bool { return os.Getenv("STINT_LONG") == "1" }

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func equal[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// holder lets sessions be written.
type holder interface {
	stint.Store
	stint.Watcher
	Hold(ctx context.Context, holder string) (release func() error, err error)
}

// memory is a store in memory whose sessions "me" holds.
func memory(t testing.TB) holder {
	t.Helper()
	s := mem.New()
	_, err := s.Hold(t.Context(), "me")
	ok(t, err)
	return s
}

// file is a store in the file at path whose sessions "me" holds.
func file(t testing.TB, path string) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), sqlite.Options{Path: path})
	ok(t, err)
	t.Cleanup(func() { ok(t, s.Close()) })
	_, err = s.Hold(t.Context(), "me")
	ok(t, err)
	return s
}

func dbPath(t testing.TB) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "stint.db")
}

// course is a session as its writer knows it.
type course struct {
	store stint.Store
	s     stint.Session
	lease stint.Lease
}

func salt() (s [16]byte) {
	_, _ = rand.Read(s[:])
	return s
}

// begin makes a session in its first loop. change may be nil.
func begin(t testing.TB, s stint.Store, change func(*journal.Created)) *course {
	t.Helper()
	id := stint.ID(uuid.Must(uuid.NewV7()))
	c := journal.Created{Family: id, Name: "test", Agent: stint.AgentRef{Name: "triage", Runtime: "exec"}, Trigger: stint.Trigger{Kind: "prompt"}}
	if change != nil {
		change(&c)
	}
	fold, e, err := journal.Begin(id, c, journal.Draft{At: time.Now(), Salt: salt()})
	ok(t, err)
	l, err := s.Create(t.Context(), stint.Batch{Session: fold, Entries: []stint.Entry{e}}, stint.Claim{Holder: "me", TTL: time.Hour})
	ok(t, err)
	out := &course{store: s, s: fold, lease: l}
	ok(t, out.write(journal.Draft{Kind: stint.LoopStarted, Data: journal.LoopStarted{Why: "first"}, Pos: stint.Position{Loop: 1, Attempt: 1}}))
	return out
}

// write appends ds in one commit and waits for it.
func (c *course) write(ds ...journal.Draft) error {
	b := stint.Batch{Session: c.s}
	for _, d := range ds {
		d.Epoch, d.At, d.Salt = c.lease.Epoch, time.Now(), salt()
		if d.Pos == (stint.Position{}) && b.Session.At.Open {
			d.Pos = stint.Position{Loop: b.Session.At.Loop, Attempt: b.Session.At.Attempt}
		}
		s, e, err := journal.Next(b.Session, d)
		if err != nil {
			return err
		}
		b.Session, b.Entries = s, append(b.Entries, e)
	}
	done := make(chan error, 1)
	c.store.Append(context.Background(), c.lease, b, func(err error) { done <- err })
	err := <-done
	if err == nil {
		c.s = b.Session
	}
	return err
}

func said(body string) journal.Draft {
	return journal.Draft{Kind: stint.OutputWritten, Data: journal.Output{Stream: "log"}, Body: []byte(body)}
}

func step(c *course) journal.Draft {
	at := c.s.At
	return journal.Draft{Kind: stint.StepCompleted, Pos: stint.Position{Line: at.Line, Loop: at.Loop, Attempt: at.Attempt, Step: at.Step + 1},
		Data: journal.StepDone{StepRequested: journal.StepRequested{Name: "ask", Kind: stint.Model, Effect: stint.Idempotent}, MS: 1}, Body: []byte(`"x"`)}
}

func ends() journal.Draft {
	return journal.Draft{Kind: stint.SessionEnded, Data: journal.Ended{Outcome: stint.Completed, Reason: "done"}}
}

// routes is where the API mounts the streams.
func routes(s *stream.Server) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /v1/sessions/{id}/events", s.Session())
	mux.Handle("GET /v1/events", s.Board())
	return mux
}

// serve serves streams of store until the end of the test.
func serve(t testing.TB, o stream.Options) (*stream.Server, *httptest.Server) {
	t.Helper()
	s := stream.New(context.WithoutCancel(t.Context()), o)
	web := httptest.NewServer(routes(s))
	t.Cleanup(func() {
		s.Close()
		web.Close()
	})
	return s, web
}

// event is one event of a stream.
type event struct{ name, id, data string }

// fold is what a client has of a stream.
type fold struct {
	last string // its newest id
}

// next reads events from r up to the next one that a client is told of.
func (f *fold) next(r *bufio.Reader) (e event, err error) {
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return event{}, err
		}
		field, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch field {
		case "event":
			e.name = value
		case "id":
			e.id = value
		case "data":
			e.data = value
		case "":
			if e.id != "" {
				f.last = e.id
			}
			if e.data != "" {
				return e, nil
			}
			e = event{}
		}
	}
}

// follower is a client with one connection.
type follower struct {
	fold

	t    testing.TB
	body *bufio.Reader
	stop func()
	res  *http.Response
}

// follow opens a stream at url, behind last if it is set.
func follow(t testing.TB, client *http.Client, url, last string) *follower {
	t.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	ok(t, err)
	if last != "" {
		r.Header.Set("Last-Event-ID", last)
	}
	res, err := client.Do(r)
	if err != nil {
		stop()
		t.Fatal(err)
	}
	f := &follower{t: t, fold: fold{last}, body: bufio.NewReader(res.Body), res: res}
	f.stop = func() {
		stop()
		_ = res.Body.Close()
	}
	t.Cleanup(f.stop)
	if got := res.Header.Get("Content-Type"); res.StatusCode == http.StatusOK && got != "text/event-stream" {
		t.Errorf("the stream is %q", got)
	}
	return f
}

// next is the next event; the test fails where there is none.
func (f *follower) next() event {
	f.t.Helper()
	e, err := f.fold.next(f.body)
	if err != nil {
		f.t.Fatalf("no event comes: %v", err)
	}
	return e
}

// expect is next of a name.
func (f *follower) expect(name string) event {
	f.t.Helper()
	e := f.next()
	if e.name != name {
		f.t.Fatalf("the event is %+v, want %s", e, name)
	}
	return e
}

// over fails the test unless the stream has no more events.
func (f *follower) over() {
	f.t.Helper()
	if e, err := f.fold.next(f.body); err == nil {
		f.t.Fatalf("one more event: %+v", e)
	}
}

// lines are the entries of a session as `stint logs -o jsonl` prints them.
func lines(t testing.TB, s stint.Store, id stint.ID) (all []string) {
	t.Helper()
	for after := stint.Seq(0); ; {
		es, err := s.Entries(t.Context(), stint.Range{Session: id, After: after, Limit: 1000})
		ok(t, err)
		for i := range es {
			var b bytes.Buffer
			ok(t, view.WriteJSON(&b, view.NewEntry(&es[i])))
			all = append(all, strings.TrimSuffix(b.String(), "\n"))
			after = es[i].Seq
		}
		if len(es) == 0 {
			return all
		}
	}
}

// member is one member of a JSON object, by its path.
func member(t testing.TB, data, path string) string {
	t.Helper()
	text, err := view.Field(json.RawMessage(data), path)
	ok(t, err)
	return text
}

// page is a response in memory. Its client can stop reading.
type page struct {
	header http.Header

	mu      sync.Mutex
	status  int
	text    bytes.Buffer
	stuck   chan struct{} // nil: it reads
	dead    chan struct{} // the deadline has passed
	flushed chan struct{}
}

func newPage() *page {
	return &page{header: http.Header{}, dead: make(chan struct{}), flushed: make(chan struct{}, 1)}
}

func (p *page) Header() http.Header { return p.header }

func (p *page) WriteHeader(status int) { p.status = status }

func (p *page) Write(b []byte) (int, error) {
	p.mu.Lock()
	stuck, dead := p.stuck, p.dead
	p.mu.Unlock()
	if stuck != nil {
		select {
		case <-stuck:
		case <-dead:
			return 0, os.ErrDeadlineExceeded
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.Write(b)
}

func (p *page) FlushError() error { return nil }

// SetWriteDeadline lets http.ResponseController end a write.
func (p *page) SetWriteDeadline(at time.Time) error {
	if at.IsZero() {
		return nil
	}
	time.AfterFunc(time.Until(at), func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		select {
		case <-p.dead:
		default:
			close(p.dead)
		}
	})
	return nil
}

// stick makes the client read nothing until the returned function is called.
func (p *page) stick() (release func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	stuck := make(chan struct{})
	p.stuck = stuck
	return func() {
		p.mu.Lock()
		p.stuck = nil
		p.mu.Unlock()
		close(stuck)
	}
}

// events is what has come so far.
func (p *page) events() (all []event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := bufio.NewReader(bytes.NewReader(p.text.Bytes()))
	for f := (fold{}); ; {
		e, err := f.next(r)
		if err != nil {
			return all
		}
		all = append(all, e)
	}
}

// raw is it as text.
func (p *page) raw() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.String()
}

// visit makes a request without a connection; ended is closed when it was served.
func visit(ctx context.Context, h http.Handler, path, last string) (p *page, ended chan struct{}) {
	p, ended = newPage(), make(chan struct{})
	r := httptest.NewRequest(http.MethodGet, path, http.NoBody).WithContext(ctx)
	if last != "" {
		r.Header.Set("Last-Event-ID", last)
	}
	go func() {
		defer close(ended)
		h.ServeHTTP(p, r)
	}()
	return p, ended
}

func eventsOf(id stint.ID) string { return fmt.Sprintf("/v1/sessions/%s/events", id) }
