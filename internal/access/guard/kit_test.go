package guard_test

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stint-dev/stint/internal/access"
	"github.com/stint-dev/stint/internal/access/guard"
	"github.com/stint-dev/stint/internal/problem"
)

// table is a server in small: a row of each kind.
func table() access.Table {
	return access.Table{
		{Method: "GET", Pattern: "/", Public: "files without data"},
		{Method: "POST", Pattern: "/login", Public: "the code is the credential"},
		{Method: "POST", Pattern: "/hooks/{name}", Public: "it is signed"},
		{Method: "GET", Pattern: "/v1/sessions", Scope: access.SessionsRead},
		{Method: "GET", Pattern: "/v1/sessions/{id}", Scope: access.SessionsRead},
		{Method: "GET", Pattern: "/v1/events", Scope: access.SessionsRead, Stream: true},
		{Method: "POST", Pattern: "/v1/sessions", Scope: access.SessionsRun, MaxBody: 100},
		{Method: "POST", Pattern: "/v1/decisions", Scope: access.ApprovalsDecide},
		{Method: "POST", Pattern: "/v1/fire", Scope: access.TriggersFire},
		{Method: "DELETE", Pattern: "/v1/memory/{key}", Scope: access.MemoryWrite},
		{Method: "GET", Pattern: "/v1/audit", Scope: access.AuditRead},
		{Method: "POST", Pattern: "/v1/tokens", Scope: access.Admin},
	}
}

// kit is a guarded server without a network.
type kit struct {
	t      *testing.T
	mem    *access.Mem
	h      http.Handler
	calls  atomic.Int64 // of handlers
	minted byte
	stream http.HandlerFunc // of /v1/events; nil: as the others
}

func newKit(t *testing.T, change func(*guard.Config)) *kit {
	t.Helper()
	k := &kit{t: t, mem: &access.Mem{}}
	hosts, err := access.NewHosts("stint.example.com")
	if err != nil {
		t.Fatal(err)
	}
	c := guard.Config{Keeper: k.mem, Redeemer: k.mem, Hosts: hosts}
	if change != nil {
		change(&c)
	}
	g, err := guard.New(c)
	if err != nil {
		t.Fatal(err)
	}
	var m guard.Mux
	for _, r := range table() {
		switch r.Pattern {
		case "/login":
			m.Handle(r.Key(), g.Login())
		default:
			m.HandleFunc(r.Key(), func(w http.ResponseWriter, req *http.Request) {
				k.calls.Add(1)
				if r.Stream && k.stream != nil {
					k.stream(w, req)
					return
				}
				w.Header().Set("X-Who", guard.From(req.Context()).Name)
				w.Header().Set("X-Method", req.Method)
				var in [4096]byte
				for {
					if _, err := req.Body.Read(in[:]); err != nil {
						if large := new(http.MaxBytesError); errors.As(err, &large) {
							w.WriteHeader(http.StatusRequestEntityTooLarge)
						}
						return
					}
				}
			})
		}
	}
	if k.h, err = g.Protect(table(), &m); err != nil {
		t.Fatal(err)
	}
	return k
}

// token makes a token and stores it.
func (k *kit) token(s access.Spec) (access.Token, string) {
	k.t.Helper()
	if s.Name == "" {
		s.Name = "ana"
	}
	k.minted++
	var random [access.RandomBytes]byte
	for i := range random {
		random[i] = k.minted + byte(i)
	}
	tok, secret, err := access.Mint(s, time.Now(), random)
	if err != nil {
		k.t.Fatal(err)
	}
	if err := k.mem.Put(tok); err != nil {
		k.t.Fatal(err)
	}
	return tok, secret.Reveal()
}

func (k *kit) user(r access.Role) string {
	k.t.Helper()
	_, text := k.token(access.Spec{Kind: access.User, Role: r})
	return text
}

// request is a request from 192.0.2.9 to localhost:7777, with headers as "Name: value".
func request(method, path string, headers ...string) *http.Request {
	r := httptest.NewRequestWithContext(context.Background(), method, "http://localhost:7777/", nil)
	r.URL.Path, r.RequestURI, r.RemoteAddr = path, path, "192.0.2.9:1000"
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		switch name {
		case "Host":
			r.Host = value
		case "From-Address":
			r.RemoteAddr = value
		case "From-Socket":
			r.RemoteAddr = "@"
			r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, &net.UnixAddr{Net: "unix", Name: value}))
		default:
			r.Header.Add(name, value)
		}
	}
	return r
}

// do sends a request, and checks that a failure is a problem with a hint of what to do.
func (k *kit) do(r *http.Request) *httptest.ResponseRecorder {
	k.t.Helper()
	w := httptest.NewRecorder()
	k.h.ServeHTTP(w, r)
	if w.Code >= 400 && w.Header().Get("Content-Type") == problem.ContentType {
		var d problem.Document
		if err := json.Unmarshal(w.Body.Bytes(), &d); err != nil || d.Status != w.Code || d.Detail == "" || d.Code == "" {
			k.t.Errorf("the problem is %s", w.Body)
		}
		if strings.Contains(w.Body.String(), "stint_user_") {
			k.t.Errorf("the problem has a token: %s", w.Body)
		}
	}
	return w
}

// status sends a request and returns its status.
func (k *kit) status(method, path string, headers ...string) int {
	k.t.Helper()
	return k.do(request(method, path, headers...)).Code
}

func bearer(text string) string { return "Authorization: Bearer " + text }

// pipes is a listener without a network, so that its time can be faked.
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

func (p *pipes) Close() error   { close(p.closed); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 7777} }

// dial returns the client's end of a new connection.
func (p *pipes) dial() net.Conn {
	client, server := net.Pipe()
	p.conns <- addressed{server}
	return client
}

type addressed struct{ net.Conn }

func (addressed) RemoteAddr() net.Addr {
	return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1000}
}
func (addressed) LocalAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 7777} }
