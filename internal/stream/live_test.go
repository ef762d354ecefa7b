package stream_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/stream"
	"github.com/stint-dev/stint/journal"
	"github.com/stint-dev/stint/model"
)

// bubble runs fn where time is not real, with a store and a server that end with it.
func bubble(t *testing.T, o stream.Options, fn func(t *testing.T, ctx context.Context, s holder, server *stream.Server)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := memory(t)
		if o.Store == nil {
			o.Store = s
		}
		ctx, cancel := context.WithCancel(t.Context())
		server := stream.New(ctx, o)
		fn(t, ctx, s, server)
		cancel()
		server.Close()
	})
}

// settle lets the hub look, and the streams write.
func settle() {
	<-time.After(time.Second)
	synctest.Wait()
}

func names(es []event) string {
	var all []string
	for _, e := range es {
		all = append(all, e.name)
	}
	return strings.Join(all, " ")
}

// What a model writes comes at once and has no id; it stands before the entry that
// records it.
func TestLive(t *testing.T) {
	bubble(t, stream.Options{}, func(t *testing.T, ctx context.Context, s holder, server *stream.Server) {
		c, other := begin(t, s, nil), begin(t, s, nil)
		p, _ := visit(ctx, routes(server), eventsOf(c.s.ID), "")
		board, _ := visit(ctx, routes(server), "/v1/events", "")
		settle()
		var live stream.Live = server
		for _, d := range []model.Delta{{Text: "hm", Thought: true}, {Text: "One, "}, {Text: "two"}, {Void: true}, {Text: "Three"}} {
			live.Publish(c.s.ID, 1, d)
			live.Publish(other.s.ID, 1, model.Delta{Text: "for others"})
		}
		synctest.Wait() // no time passes
		var got []string
		for _, e := range p.events()[3:] {
			equal(t, "the id of "+e.data, e.id, "")
			got = append(got, fmt.Sprint(e.name, member(t, e.data, "loop"), member(t, e.data, "thought"), member(t, e.data, "void"), member(t, e.data, "text")))
		}
		if want := []string{"delta1truefalsehm", "delta1falsefalseOne, two", "delta1falsetrueThree"}; strings.Join(got, "|") != strings.Join(want, "|") {
			t.Errorf("the text is %q, want %q", got, want)
		}
		live.Publish(c.s.ID, 1, model.Delta{Text: "."})
		ok(t, c.write(step(c)))
		settle()
		if got := names(p.events()[6:]); got != "delta entry" {
			t.Errorf("an answer and its entry come as %q", got)
		}
		if got := names(board.events()); got != "ready session" {
			t.Errorf("the board has %q", got)
		}
	})
}

// Nothing happens, and yet each quarter of a minute something comes; on the board it
// moves the id on.
func TestHeartbeats(t *testing.T) {
	bubble(t, stream.Options{}, func(t *testing.T, ctx context.Context, s holder, server *stream.Server) {
		c := begin(t, s, nil)
		p, _ := visit(ctx, routes(server), eventsOf(c.s.ID), "")
		board, _ := visit(ctx, routes(server), "/v1/events?agent=nobody", "")
		settle()
		if !strings.HasPrefix(p.raw(), "retry: 2000\n\n") {
			t.Errorf("the stream begins with %.40q", p.raw())
		}
		start := board.events()[0].id
		ok(t, c.write(step(c)))
		<-time.After(time.Minute)
		synctest.Wait()
		equal(t, "heartbeats in a minute", strings.Count(p.raw(), "\n:\n"), 4)
		equal(t, "events", names(p.events()), "ready entry entry entry")
		equal(t, "events of the board", names(board.events()), "ready")
		_, id, _ := strings.Cut(board.raw()[strings.LastIndex(board.raw(), "\n:\n"):], "id: ")
		if id = strings.TrimSpace(id); id <= start {
			t.Errorf("a heartbeat has the id %q, behind %q", id, start)
		}
		back, _ := visit(ctx, routes(server), "/v1/events?agent=nobody", id)
		settle()
		equal(t, "events for who comes back", names(back.events()), "ready")
	})
}

// Who does not read what comes is sent away when he does again, misses nothing with his
// id, and nobody else notices.
func TestSlow(t *testing.T) {
	bubble(t, stream.Options{Queue: 20, Ring: 40}, func(t *testing.T, ctx context.Context, s holder, server *stream.Server) {
		c := begin(t, s, nil)
		bad, badEnded := visit(ctx, routes(server), eventsOf(c.s.ID), "")
		badBoard, badBoardEnded := visit(ctx, routes(server), "/v1/events", "")
		good, _ := visit(ctx, routes(server), eventsOf(c.s.ID), "")
		board, _ := visit(ctx, routes(server), "/v1/events", "")
		settle()
		release, releaseBoard := bad.stick(), badBoard.stick()
		for range 30 {
			ok(t, c.write(step(c)))
			<-time.After(200 * time.Millisecond)
		}
		release()
		releaseBoard()
		<-badEnded
		<-badBoardEnded
		settle()
		want := lines(t, s, c.s.ID)
		whole := entriesOf(good.events())
		if !slices.Equal(whole, want) {
			t.Errorf("one who reads got %d entries, want %d", len(whole), len(want))
		}
		equal(t, "rows of a board that is read", len(board.events()), 1+30)
		got := bad.events()
		equal(t, "the last event", got[len(got)-1].name, "resync")
		equal(t, "the reason", member(t, got[len(got)-1].data, "reason"), "slow")
		cursor := member(t, got[len(got)-1].data, "cursor")
		equal(t, "the cursor", cursor, got[len(got)-2].id)
		again, _ := visit(ctx, routes(server), eventsOf(c.s.ID), cursor)
		settle()
		if all := append(entriesOf(got), entriesOf(again.events())...); !slices.Equal(all, want) {
			t.Errorf("with its id the slow one got %d entries, want %d", len(all), len(want))
		}
		rows := badBoard.events()
		equal(t, "the last event of the board", rows[len(rows)-1].name, "resync")
	})
}

// More at once than the ring holds makes nobody slow: he reads the store until he has
// caught up again.
func TestBurst(t *testing.T) {
	bubble(t, stream.Options{Ring: 4}, func(t *testing.T, ctx context.Context, s holder, server *stream.Server) {
		c := begin(t, s, nil)
		p, _ := visit(ctx, routes(server), eventsOf(c.s.ID), "")
		board, _ := visit(ctx, routes(server), "/v1/events", "")
		settle()
		for range 3 {
			var many []journal.Draft
			for range 50 {
				many = append(many, said("x"))
			}
			ok(t, c.write(append(many, journal.Draft{Kind: stint.LimitChanged, Actor: "human:ann", Data: journal.LimitChanged{Limits: stint.Limits{Tokens: 9}}})...))
			settle()
		}
		if got, want := entriesOf(p.events()), lines(t, s, c.s.ID); !slices.Equal(got, want) {
			t.Errorf("the stream has %d entries, want %d", len(got), len(want))
		}
		rows := board.events()
		equal(t, "rows", names(rows), "ready session session session")
		equal(t, "the newest row", member(t, rows[len(rows)-1].data, "head"), fmt.Sprint(c.s.Head))
	})
}

// pipes are connections without a buffer.
type pipes struct{ conns chan net.Conn }

func (p pipes) Accept() (net.Conn, error) {
	c, open := <-p.conns
	if !open {
		return nil, net.ErrClosed
	}
	return c, nil
}

func (p pipes) Close() error { return nil }

func (p pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

// A connection whose client has stopped to read is ended, in its time and at the end of
// the server.
func TestDeadConnections(t *testing.T) {
	bubble(t, stream.Options{}, func(t *testing.T, ctx context.Context, s holder, server *stream.Server) {
		c := begin(t, s, nil)
		l := pipes{make(chan net.Conn)}
		web := &http.Server{Handler: routes(server), WriteTimeout: time.Minute}
		go func() { _ = web.Serve(l) }()
		dial := func() net.Conn {
			mine, theirs := net.Pipe()
			l.conns <- theirs
			go func() { _, _ = io.WriteString(mine, "GET "+eventsOf(c.s.ID)+" HTTP/1.1\r\nHost: x\r\n\r\n") }()
			var f fold
			r := bufio.NewReader(mine)
			for range 3 {
				if _, err := f.next(r); err != nil {
					t.Fatal(err)
				}
			}
			return mine
		}
		silent := dial()
		<-time.After(10 * time.Minute) // longer than any limit of the server
		began := time.Now()
		ok(t, c.write(step(c)))
		<-time.After(15 * time.Second)
		if rest, err := io.ReadAll(silent); err == nil && strings.Contains(string(rest), "event: entry") {
			t.Errorf("after %v one who did not read gets %q", time.Since(began), rest)
		}
		_ = dial() // stays until the server ends
		ok(t, c.write(step(c)))
		<-time.After(200 * time.Millisecond)
		began = time.Now()
		server.Close()
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("the end of the server took %v", took)
		}
		close(l.conns)
		_ = web.Close()
	})
}

func entriesOf(es []event) (all []string) {
	for _, e := range es {
		if e.name == "entry" {
			all = append(all, e.data)
		}
	}
	return all
}

// Text of a model that nobody reads is not heaped up, and who never reads again loses
// his connection.
func TestStuck(t *testing.T) {
	bubble(t, stream.Options{Write: 5 * time.Second}, func(t *testing.T, ctx context.Context, s holder, server *stream.Server) {
		c := begin(t, s, nil)
		slow, slowEnded := visit(ctx, routes(server), eventsOf(c.s.ID), "")
		dead, deadEnded := visit(ctx, routes(server), eventsOf(c.s.ID), "")
		settle()
		release := slow.stick()
		dead.stick()
		for range 100 {
			server.Publish(c.s.ID, 1, model.Delta{Text: strings.Repeat("x", 1000)})
			synctest.Wait()
		}
		began := time.Now()
		release()
		<-slowEnded
		got := slow.events()
		equal(t, "the last event of the slow one", got[len(got)-1].name, "resync")
		<-deadEnded
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("the dead one's write ended after %v", took)
		}
	})
}

// The end of the server, and of the request, end a stream at once, with a last word.
func TestEnds(t *testing.T) {
	bubble(t, stream.Options{}, func(t *testing.T, ctx context.Context, s holder, server *stream.Server) {
		c := begin(t, s, nil)
		request, revoke := context.WithCancelCause(ctx)
		revoked, revokedEnded := visit(request, routes(server), eventsOf(c.s.ID), "")
		var pages []*page
		var ends []chan struct{}
		for _, path := range []string{eventsOf(c.s.ID), "/v1/events", "/v1/events"} {
			p, ended := visit(ctx, routes(server), path, "")
			pages, ends = append(pages, p), append(ends, ended)
		}
		settle()
		began := time.Now()
		revoke(stint.Denied.Errorf("token", "it was revoked"))
		<-revokedEnded
		last := func(p *page) event { es := p.events(); return es[len(es)-1] }
		equal(t, "the last event", last(revoked).name, "bye")
		equal(t, "the reason", member(t, last(revoked).data, "reason"), "denied")
		pages[2].stick()
		ok(t, c.write(step(c)))
		settle()
		server.Close()
		for i, ended := range ends {
			<-ended
			if i < 2 {
				equal(t, "the last event", last(pages[i]).name, "bye")
				equal(t, "the reason", member(t, last(pages[i]).data, "reason"), "drain")
			}
		}
		if took := time.Since(began); took > 3*time.Second {
			t.Errorf("it took %v", took)
		}
		late, ended := visit(ctx, routes(server), eventsOf(c.s.ID), "")
		<-ended
		equal(t, "the status of one who comes later", late.status, 503)
	})
}

// flaky is a store that can fail, and counts.
type flaky struct {
	holder

	fails       atomic.Pointer[error] // of Feed
	during      func()                // happens once, during a read of entries
	feeds, rows atomic.Int64
}

func (s *flaky) Feed(ctx context.Context, after string, limit int) ([]stint.Entry, []string, error) {
	s.feeds.Add(1)
	if err := s.fails.Load(); err != nil && after != "" {
		return nil, nil, *err
	}
	return s.holder.Feed(ctx, after, limit)
}

func (s *flaky) Session(ctx context.Context, id stint.ID) (stint.Row, error) {
	s.rows.Add(1)
	return s.holder.Session(ctx, id)
}

func (s *flaky) Entries(ctx context.Context, r stint.Range) ([]stint.Entry, error) {
	es, err := s.holder.Entries(ctx, r)
	if during := s.during; during != nil {
		s.during = nil
		during()
	}
	return es, err
}

// While one reads from the store what he missed, more comes than the ring holds.
func TestOvertaken(t *testing.T) {
	s := &flaky{}
	bubble(t, stream.Options{Store: s, Ring: 4}, func(t *testing.T, ctx context.Context, m holder, server *stream.Server) {
		s.holder = m
		c := begin(t, m, nil)
		s.during = func() {
			for range 10 {
				ok(t, c.write(step(c)))
			}
			<-time.After(time.Minute) // the hub has come and gone
		}
		p, _ := visit(ctx, routes(server), eventsOf(c.s.ID), "")
		<-time.After(2 * time.Minute)
		synctest.Wait()
		ok(t, c.write(step(c)))
		settle()
		if got, want := entriesOf(p.events()), lines(t, m, c.s.ID); !slices.Equal(got, want) {
			t.Errorf("the stream has %d entries, want %d", len(got), len(want))
		}
	})
}

// All clients together cost one reader and one read of a row, and without one the feed
// is not read.
func TestOneReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &flaky{holder: memory(t)}
		ctx, cancel := context.WithCancel(t.Context())
		server := stream.New(ctx, stream.Options{Store: s})
		c := begin(t, s, nil)
		var pages []*page
		all, leave := context.WithCancel(ctx)
		for range 50 {
			p, _ := visit(all, routes(server), "/v1/events", "")
			pages = append(pages, p)
		}
		settle()
		s.feeds.Store(0)
		ok(t, c.write(step(c)))
		settle()
		for _, p := range pages {
			equal(t, "events", names(p.events()), "ready session")
		}
		equal(t, "rows that were read", s.rows.Load(), 1)
		if n := s.feeds.Load(); n > 30 {
			t.Errorf("the feed was read %d times in a second", n)
		}
		leave()
		<-time.After(2 * time.Minute)
		s.feeds.Store(0)
		<-time.After(time.Hour)
		equal(t, "reads of the feed without a client", s.feeds.Load(), 0)
		p, _ := visit(ctx, routes(server), "/v1/events", "")
		settle()
		ok(t, c.write(step(c)))
		settle()
		equal(t, "events of one who comes then", names(p.events()), "ready session")
		cancel()
		server.Close()
	})
}

// A store that fails for a moment is nothing to tell of. One that fails for longer ends
// the streams, and one that has become another has them begin anew.
func TestStoreFails(t *testing.T) {
	for name, c := range map[string]struct {
		err   error
		lasts time.Duration
		want  string // the last event and its reason; empty: the stream goes on
	}{
		"a moment": {stint.Unavailable.Errorf("feed", "busy"), 5 * time.Second, ""},
		"longer":   {stint.Unavailable.Errorf("feed", "gone"), 15 * time.Second, "bye failed"},
		"put back": {stint.Conflict.Errorf("feed", "another"), time.Second, "resync moved"},
		"no code":  {errors.New("whatever"), 15 * time.Second, "bye failed"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &flaky{}
			bubble(t, stream.Options{Store: s}, func(t *testing.T, ctx context.Context, m holder, server *stream.Server) {
				s.holder = m
				ses := begin(t, s, nil)
				p, ended := visit(ctx, routes(server), eventsOf(ses.s.ID), "")
				settle()
				s.fails.Store(&c.err)
				<-time.After(c.lasts)
				s.fails.Store(nil)
				if c.want == "" {
					ok(t, ses.write(step(ses)))
					settle()
					equal(t, "events", names(p.events()), "ready entry entry entry")
					return
				}
				<-ended
				es := p.events()
				last := es[len(es)-1]
				equal(t, "the end", last.name+" "+member(t, last.data, "reason"), c.want)
			})
		})
	}
}
