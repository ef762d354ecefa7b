package stream_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/stream"
)

// visitor follows one stream over many connections, each of which it drops at a place
// that it does not choose.
type visitor struct {
	fold

	client *http.Client
	url    string
	seed   *rand.Rand
	see    func(e event) (done bool, err error) // of each event but notices
	drops  int                                  // how often it is to come back
}

// run follows until see is done; a connection ends after a number of bytes.
func (v *visitor) run(ctx context.Context) error {
	for n := 0; ; n++ {
		bytes := int64(1 << 40)
		if n < v.drops {
			bytes = v.seed.Int64N(1500)
		}
		done, err := v.once(ctx, bytes)
		switch {
		case err != nil:
			return err
		case done && n < v.drops:
			return fmt.Errorf("it has all after %d connections, and was to have %d", n, v.drops)
		case done:
			return nil
		case n > v.drops:
			return fmt.Errorf("the stream ended by itself behind %s", v.last)
		}
	}
}

// once follows over one connection.
func (v *visitor) once(ctx context.Context, bytes int64) (done bool, err error) {
	ctx, drop := context.WithCancel(ctx)
	defer drop()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, v.url, http.NoBody)
	if err != nil {
		return false, err
	}
	if v.last != "" {
		r.Header.Set("Last-Event-ID", v.last)
	}
	res, err := v.client.Do(r)
	if err != nil {
		return false, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return false, fmt.Errorf("it is refused: %s", res.Status)
	}
	body := bufio.NewReader(io.LimitReader(res.Body, bytes))
	for {
		e, err := v.next(body)
		if err != nil {
			return false, nil //nolint:nilerr // the connection is lost, as it was meant to
		}
		switch e.name {
		case "ready":
		case "resync", "bye":
			return false, fmt.Errorf("%s: %s", e.name, e.data)
		default:
			if done, err := v.see(e); done || err != nil {
				return done, err
			}
		}
	}
}

// disconnects is how often the clients of TestDisconnects come back, all together.
func disconnects() int {
	if long() {
		return 20_000
	}
	return 1000
}

// While sessions are written, clients lose their connections at any byte and come back
// with the id that they have. In the end each has had every entry of its session once
// and in order, or the newest row of each session.
func TestDisconnects(t *testing.T) {
	s := file(t, dbPath(t))
	_, web := serve(t, stream.Options{Store: s, Ring: 64}) // so that the store is read as well
	const writers, boards = 8, 2
	courses := make([]*course, writers)
	for i := range courses {
		courses[i] = begin(t, s, nil)
	}
	drops := disconnects() / (writers + boards)
	total := drops * 2 // entries a session: a connection brings one or two
	var wg sync.WaitGroup
	for i, c := range courses {
		wg.Go(func() {
			seed := rand.New(rand.NewPCG(1, uint64(i)))
			for c.s.Head < stint.Seq(total) {
				draft := said("x")
				if seed.IntN(2) == 0 {
					draft = step(c)
				}
				if err := c.write(draft); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	got := make([][]string, writers)
	for i, c := range courses {
		v := &visitor{client: web.Client(), url: web.URL + eventsOf(c.s.ID), drops: drops, seed: rand.New(rand.NewPCG(2, uint64(i)))}
		v.see = func(e event) (bool, error) {
			got[i] = append(got[i], e.data)
			return len(got[i]) == total, nil
		}
		wg.Go(func() {
			if err := v.run(t.Context()); err != nil {
				t.Errorf("client %d: %v", i, err)
			}
		})
	}
	noise, quiet := begin(t, s, nil), make(chan struct{})
	var watching, noisy sync.WaitGroup
	for i := range boards {
		watching.Go(func() { followBoard(t, s, web.URL, web.Client(), i) })
	}
	noisy.Go(func() {
		for {
			select {
			case <-quiet:
				return
			default:
			}
			if err := noise.write(step(noise)); err != nil {
				t.Error(err)
				return
			}
		}
	})
	watching.Wait()
	close(quiet)
	noisy.Wait()
	wg.Wait()
	for i, c := range courses {
		if want := lines(t, s, c.s.ID); !slices.Equal(got[i], want) {
			t.Errorf("client %d got %d entries that are not the %d there are", i, len(got[i]), len(want))
		}
	}
}

// followBoard drops each connection at any byte, until it has seen the row of a session
// that it makes when it has come back often enough. No id comes twice.
func followBoard(t *testing.T, s stint.Store, url string, client *http.Client, i int) {
	heads, last, end := map[string]string{}, "", ""
	v := &visitor{client: client, url: url + "/v1/events", seed: rand.New(rand.NewPCG(3, uint64(i)))}
	v.see = func(e event) (bool, error) {
		if e.id <= last {
			return false, fmt.Errorf("the event %s comes behind %s", e.id, last)
		}
		last = e.id
		heads[member(t, e.data, "id")] = e.id
		return end != "" && member(t, e.data, "id") == end, nil
	}
	for range disconnects() / 10 {
		if _, err := v.once(t.Context(), v.seed.Int64N(2500)); err != nil {
			t.Errorf("board %d: %v", i, err)
			return
		}
	}
	end = begin(t, s, nil).s.ID.String()
	if err := v.run(t.Context()); err != nil {
		t.Errorf("board %d: %v", i, err)
	}
	if len(heads) < 8 {
		t.Errorf("board %d saw %d sessions", i, len(heads))
	}
}

// use is what the process uses once garbage is collected.
type use struct {
	heap       int64
	goroutines int
}

func usage() use {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what has finalizers is freed by the second
	runtime.ReadMemStats(&m)
	return use{int64(m.HeapAlloc + m.StackInuse), runtime.NumGoroutine()}
}

// A thousand clients cost no more than their connections, and nothing once they left.
func TestManyClients(t *testing.T) {
	const clients = 1000
	s := memory(t)
	c := begin(t, s, nil)
	server := stream.New(t.Context(), stream.Options{Store: s, Ring: 256, Queue: 256})
	defer server.Close()
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	ok(t, err)
	web := &http.Server{Handler: routes(server), ReadHeaderTimeout: time.Minute, ErrorLog: log.New(io.Discard, "", 0)}
	go func() { _ = web.Serve(l) }()
	defer web.Close()
	before := usage()

	conns := make([]net.Conn, clients)
	bodies := make([]*bufio.Reader, clients)
	for i := range conns {
		var d net.Dialer
		conns[i], err = d.DialContext(t.Context(), "tcp", l.Addr().String())
		ok(t, err)
		path := eventsOf(c.s.ID)
		if i%2 == 0 {
			path = "/v1/events"
		}
		_, err = fmt.Fprintf(conns[i], "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", path)
		ok(t, err)
		bodies[i] = bufio.NewReaderSize(conns[i], 512)
	}
	all := func(what func(f *fold, r *bufio.Reader) error) {
		t.Helper()
		var wg sync.WaitGroup
		for i := range bodies {
			wg.Go(func() {
				if err := what(&fold{}, bodies[i]); err != nil {
					t.Errorf("client %d: %v", i, err)
				}
			})
		}
		wg.Wait()
	}
	until := func(head int) func(f *fold, r *bufio.Reader) error {
		return func(f *fold, r *bufio.Reader) error {
			for {
				e, err := f.next(r)
				if err != nil {
					return err
				}
				if e.name == "resync" || e.name == "bye" {
					return fmt.Errorf("%s: %s", e.name, e.data)
				}
				if e.name == "entry" && member(t, e.data, "seq") == fmt.Sprint(head) || e.name == "session" && member(t, e.data, "head") == fmt.Sprint(head) {
					return nil
				}
			}
		}
	}
	all(func(f *fold, r *bufio.Reader) error { _, err := f.next(r); return err }) // sizes of chunks are lines that say nothing
	idle := usage()
	rounds := 100
	if long() {
		rounds = 2000
	}
	for range rounds / 20 {
		for range 20 {
			ok(t, c.write(step(c)))
		}
		all(until(int(c.s.Head)))
	}
	busy := usage()
	for i := range conns {
		_ = conns[i].Close()
	}
	clear(conns)
	clear(bodies)
	after := usage()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline) && after.goroutines > before.goroutines+20; after = usage() {
		<-time.After(10 * time.Millisecond)
	}
	each := func(u use) int64 { return (u.heap - before.heap) / clients }
	t.Logf("a client takes %d bytes and %.1f goroutines while nothing happens, %d bytes after %d events; %d bytes and %d goroutines are left of %d clients",
		each(idle), float64(idle.goroutines-before.goroutines)/clients, each(busy), rounds, after.heap-before.heap, after.goroutines-before.goroutines, clients)
	if most := int64(64 << 10); each(idle) > most || each(busy) > most {
		t.Errorf("a client takes %d bytes, then %d; want at most %d", each(idle), each(busy), most)
	}
	if n := idle.goroutines - before.goroutines; n > 3*clients {
		t.Errorf("%d clients have %d goroutines", clients, n)
	}
	if after.goroutines > before.goroutines+20 || after.heap-before.heap > 16<<20 {
		t.Errorf("%d bytes and %d goroutines are left when all have gone", after.heap-before.heap, after.goroutines-before.goroutines)
	}
}
