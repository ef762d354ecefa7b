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
	"net/http/httptest"
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
	got := make([][]string, writers)
	var following, writing sync.WaitGroup
	for i, c := range courses {
		v := &visitor{client: web.Client(), url: web.URL + eventsOf(c.s.ID), drops: drops, seed: rand.New(rand.NewPCG(2, uint64(i)))}
		v.see = func(e event) (bool, error) {
			got[i] = append(got[i], e.data)
			return len(got[i]) == total, nil
		}
		following.Go(func() {
			if err := v.run(t.Context()); err != nil {
				t.Errorf("client %d: %v", i, err)
			}
		})
	}
	written := make(chan struct{})
	seen := make([]map[string]string, boards)
	for i := range boards {
		following.Go(func() { seen[i] = followBoard(t, s, web, uint64(i), drops, written) })
	}
	for i, c := range courses {
		writing.Go(func() { fill(t, c, stint.Seq(total), uint64(i)) })
	}
	writing.Wait()
	close(written)
	following.Wait()
	for i, c := range courses {
		want := lines(t, s, c.s.ID)
		if !slices.Equal(got[i], want) {
			t.Errorf("client %d got %d entries that are not the %d there are", i, len(got[i]), len(want))
		}
		for _, heads := range seen {
			equal(t, "the newest row that a board has", heads[c.s.ID.String()], fmt.Sprint(total))
		}
	}
}

// fill writes entries until there are total.
func fill(t *testing.T, c *course, total stint.Seq, n uint64) {
	seed := rand.New(rand.NewPCG(1, n))
	for c.s.Head < total {
		draft := step(c) // the newest has to be one that changes a row
		if c.s.Head < total-1 && seed.IntN(2) == 0 {
			draft = said("x")
		}
		if err := c.write(draft); err != nil {
			t.Error(err)
			return
		}
	}
}

// followBoard follows the board over so many connections that end at any byte, and then
// until all that was written has come. No id comes twice. It returns the newest head of
// each session that it saw.
func followBoard(t *testing.T, s holder, web *httptest.Server, n uint64, drops int, written <-chan struct{}) map[string]string {
	own := begin(t, s, nil)
	heads, last, want := map[string]string{}, "", own.s.ID.String()
	v := &visitor{client: web.Client(), url: web.URL + "/v1/events", seed: rand.New(rand.NewPCG(3, n))}
	v.see = func(e event) (bool, error) {
		if e.id <= last {
			return false, fmt.Errorf("the event %s comes behind %s", e.id, last)
		}
		last = e.id
		id, head := member(t, e.data, "id"), member(t, e.data, "head")
		heads[id] = head
		return id == want && head == fmt.Sprint(own.s.Head), nil
	}
	_, end, err := s.Feed(t.Context(), "", 0)
	if err == nil {
		v.last = end[0]
	}
	for range drops {
		if err == nil {
			err = own.write(step(own))
		}
		if err == nil {
			_, err = v.once(t.Context(), v.seed.Int64N(3000))
		}
	}
	<-written
	if err == nil {
		err = own.write(step(own))
	}
	if err == nil {
		err = v.run(t.Context())
	}
	if err != nil {
		t.Errorf("board %d: %v", n, err)
	}
	return heads
}

// use is what the process uses once garbage is collected.
type use struct {
	heap, stacks int64
	goroutines   int
}

func usage() use {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what has finalizers is freed by the second
	runtime.ReadMemStats(&m)
	return use{int64(m.HeapAlloc), int64(m.StackInuse), runtime.NumGoroutine()}
}

// crowd is many clients with a connection each.
type crowd struct {
	t      *testing.T
	conns  []net.Conn
	bodies []*bufio.Reader
}

// join opens one more stream.
func (c *crowd) join(address, path string) {
	c.t.Helper()
	var d net.Dialer
	conn, err := d.DialContext(c.t.Context(), "tcp", address)
	ok(c.t, err)
	_, err = fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", path)
	ok(c.t, err)
	c.conns, c.bodies = append(c.conns, conn), append(c.bodies, bufio.NewReaderSize(conn, 512))
}

// until has each read until it has an event that is wanted. The header, and the sizes of
// chunks, are lines that say nothing of an event.
func (c *crowd) until(wanted func(e event) bool) {
	c.t.Helper()
	var wg sync.WaitGroup
	for i, body := range c.bodies {
		wg.Go(func() {
			for f := (fold{}); ; {
				e, err := f.next(body)
				if err != nil || e.name == "resync" || e.name == "bye" {
					c.t.Errorf("client %d: %+v, %v", i, e, err)
					return
				}
				if wanted(e) {
					return
				}
			}
		})
	}
	wg.Wait()
}

// leave closes all connections, and returns what is used when the goroutines are about as
// many as before.
func (c *crowd) leave(before use) (after use) {
	for _, conn := range c.conns {
		_ = conn.Close()
	}
	c.conns, c.bodies = nil, nil
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
		if usage().goroutines <= before.goroutines+10 {
			break
		}
	}
	return usage()
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
	fresh, many := usage(), &crowd{t: t}
	come := func() {
		for range clients / 2 {
			many.join(l.Addr().String(), eventsOf(c.s.ID))
			many.join(l.Addr().String(), "/v1/events")
		}
		many.until(func(e event) bool { return e.name == "ready" })
	}
	come()
	before := many.leave(fresh) // what the runtime keeps for the next is in it
	come()
	idle := usage()
	rounds := 100
	if long() {
		rounds = 2000
	}
	for range rounds / 20 {
		for range 20 {
			ok(t, c.write(step(c)))
		}
		head := fmt.Sprint(c.s.Head)
		many.until(func(e event) bool {
			return e.name == "entry" && member(t, e.data, "seq") == head || e.name == "session" && member(t, e.data, "head") == head
		})
	}
	busy := usage()
	after := many.leave(fresh)
	each := func(u use) int64 { return (u.heap + u.stacks - fresh.heap - fresh.stacks) / clients }
	t.Logf("a client takes %d bytes and %.1f goroutines while nothing happens, %d bytes after %d events; %d bytes, %d of stacks and %d goroutines are left of %d clients",
		each(idle), float64(idle.goroutines-before.goroutines)/clients, each(busy), rounds, after.heap-before.heap, after.stacks-before.stacks, after.goroutines-before.goroutines, clients)
	if most := int64(64 << 10); each(idle) > most || each(busy) > most {
		t.Errorf("a client takes %d bytes, then %d; want at most %d", each(idle), each(busy), most)
	}
	if n := idle.goroutines - before.goroutines; n > 3*clients {
		t.Errorf("%d clients have %d goroutines", clients, n)
	}
	if after.goroutines > before.goroutines+20 || after.heap-before.heap > 4<<20 {
		t.Errorf("%d bytes and %d goroutines are left when all have gone", after.heap-before.heap, after.goroutines-before.goroutines)
	}
}
