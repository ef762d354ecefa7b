package server

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

// pipes is a listener whose connections stay in this process, so that time is not real.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
}

func newPipes() *pipes { return &pipes{make(chan net.Conn), make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error { close(p.closed); return nil }

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

// ask sends a request, and returns what is read of the answer, and when its end came.
func (p *pipes) ask(t *testing.T) (body string, err error) {
	client, srv := net.Pipe()
	defer client.Close()
	p.conns <- srv
	go io.WriteString(client, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
	resp, err := http.ReadResponse(bufio.NewReader(client), nil)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return string(b), err
}

// end is a server that is told to end while one request is under way.
type end struct {
	asked  chan struct{} // the request is under way
	body   string        // what it got
	err    error
	ended  time.Duration // when Serve returned, from when it was told
	result error         // of Serve
}

// ends has a request under way with h, and ends the server then.
func ends(t *testing.T, soon, late time.Duration, h http.HandlerFunc) *end {
	t.Helper()
	p, e := newPipes(), &end{asked: make(chan struct{})}
	l := &Listeners{tcp: p}
	ctx, cancel := context.WithCancel(t.Context())
	served, got := make(chan error, 1), make(chan struct{})
	go func() {
		served <- l.Serve(ctx, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { close(e.asked); h(w, r) }), slog.New(slog.DiscardHandler), soon, late)
	}()
	go func() {
		e.body, e.err = p.ask(t)
		close(got)
	}()
	<-e.asked
	told := time.Now()
	cancel()
	synctest.Wait()
	select {
	case <-p.closed:
	default:
		t.Error("new clients are let in though it ends")
	}
	e.result = <-served
	e.ended = time.Since(told)
	<-got
	<-time.After(2 * late) // for a handler that goes on regardless
	return e
}

const (
	soon = time.Second
	late = 10 * time.Second
)

func TestServeEnds(t *testing.T) {
	for _, tt := range []struct {
		name       string
		h          http.HandlerFunc
		body       string
		cut        bool
		from, till time.Duration // when Serve returns; it looks for the end of requests twice a second
	}{
		{"a request under way is answered", func(w http.ResponseWriter, r *http.Request) {
			<-time.After(soon - time.Millisecond)
			if r.Context().Err() != nil {
				_, _ = io.WriteString(w, "cut short: ")
			}
			_, _ = io.WriteString(w, "done")
		}, "done", false, 0, 2 * soon},
		{"a stream is told to end", func(w http.ResponseWriter, r *http.Request) {
			began := time.Now()
			<-r.Context().Done()
			if time.Since(began) != soon {
				_, _ = io.WriteString(w, "not in time: ")
			}
			_, _ = io.WriteString(w, "bye")
		}, "bye", false, soon, 2 * soon},
		{"what does not end is cut off", func(_ http.ResponseWriter, _ *http.Request) { <-time.After(2 * late) }, "", true, late, late + time.Millisecond},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := ends(t, soon, late, tt.h)
				if e.result != nil || e.body != tt.body || (e.err != nil) != tt.cut || e.ended < tt.from || e.ended > tt.till {
					t.Errorf("Serve ended after %v with %v; the client got %q, %v", e.ended, e.result, e.body, e.err)
				}
			})
		})
	}
}

// A listener that fails ends the server, and the error is told.
func TestServeFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("the network is gone")
		l := &Listeners{tcp: failing{newPipes(), broken}, unix: newPipes(), socket: filepath.Join(t.TempDir(), "none")}
		if err := l.Serve(t.Context(), http.NotFoundHandler(), slog.New(slog.DiscardHandler), soon, late); !errors.Is(err, broken) {
			t.Errorf("got %v", err)
		}
	})
}

type failing struct {
	*pipes

	err error
}

func (f failing) Accept() (net.Conn, error) { return nil, f.err }

// The file of the socket goes with the server, and TCP and the socket are both served.
func TestServeSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := Listen(t.Context(), Address{TCP: "127.0.0.1:0", Socket: path})
	if err != nil {
		t.Fatal(err)
	}
	only := filepath.Join(t.TempDir(), "only")
	alone, err := Listen(t.Context(), Address{Socket: only})
	if err != nil {
		t.Fatal(err)
	}
	if alone.Addr() != "unix:"+only || len(alone.all()) != 1 {
		t.Errorf("without TCP it listens at %s and %d more", alone.Addr(), len(alone.all())-1)
	}
	if err := alone.Close(); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	served := make(chan error, 1)
	go func() {
		served <- l.Serve(ctx, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") }), slog.New(slog.DiscardHandler), soon, late)
	}()
	for network, addr := range map[string]string{"tcp": l.Addr(), "unix": path} {
		c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, network, addr)
		}}}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost/", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := c.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if b, err := io.ReadAll(resp.Body); string(b) != "hello" || err != nil {
			t.Errorf("%s: got %q, %v", network, b, err)
		}
		resp.Body.Close()
	}
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket is left behind: %v", err)
	}
}
