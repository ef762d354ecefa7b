package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/stint-dev/stint"
)

const (
	endpoint = "/mcp"
	maxBody  = 8 << 20 // bytes of a request: a prompt of 1 MiB, each character escaped
	drain    = 2 * time.Second
)

// ListenAndServe answers clients over streamable HTTP at addr until ctx ends, which is
// no error. addr is HOST:PORT, and HOST a loopback address or localhost: another is
// [stint.Invalid], because whoever reaches the server acts as this user. ready gets the
// URL once it can be reached.
func (s *Server) ListenAndServe(ctx context.Context, addr string, ready func(url string)) error {
	addr, err := loopback(addr)
	if err != nil {
		return err
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		return &stint.Error{Code: stint.Unavailable, Op: "mcp", Err: err, Hint: "port 0 takes one that is free"}
	}
	srv := &http.Server{Handler: s.Handler(), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10}
	stop := context.AfterFunc(ctx, func() {
		left, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
		defer cancel()
		if srv.Shutdown(left) != nil {
			_ = srv.Close()
		}
	})
	defer stop()
	ready("http://" + l.Addr().String() + endpoint)
	if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return &stint.Error{Code: stint.Unavailable, Op: "mcp", Err: err}
	}
	return nil
}

// loopback refuses an address that others than this machine can reach.
func loopback(addr string) (string, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "", &stint.Error{Code: stint.Invalid, Op: "mcp", Err: err, Hint: "write an address like 127.0.0.1:8811"}
	}
	if host == "localhost" { // whatever a resolver makes of the name
		host = "127.0.0.1"
	}
	if ip, err := netip.ParseAddr(host); err != nil || !ip.Unmap().IsLoopback() {
		e := stint.Invalid.Errorf("mcp", "%q is not a loopback address; there is no login here, and whoever reaches the server starts sessions as you", addr)
		e.Hint = fmt.Sprintf("write 127.0.0.1:%s; from another machine, forward the port over ssh", port)
		return "", e
	}
	return net.JoinHostPort(host, port), nil
}

// Handler answers at /mcp, and only requests that were made to this machine by its own
// name, from no page of another origin: a web page whose name was made to lead here
// ("DNS rebinding") gets 403. It is for a listener on a loopback address.
func (s *Server) Handler() http.Handler {
	h := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s.mcp }, &mcp.StreamableHTTPOptions{
		Stateless: true, JSONResponse: true, MaxRequestBodyBytes: maxBody, PropagateRequestCancellation: true,
		DisableLocalhostProtection: true, // ours also looks at the origin, and does not ask where the connection came in
	})
	mux := http.NewServeMux()
	mux.Handle(endpoint, guard(h))
	return mux
}

// guard refuses requests that a foreign web page made.
func guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !ownName(r.Host) {
			http.Error(w, "this server answers to localhost and loopback addresses alone", http.StatusForbidden)
			return
		}
		if o := r.Header.Values("Origin"); len(o) > 1 || len(o) == 1 && o[0] != "http://"+r.Host {
			http.Error(w, "this server answers no web page of another origin", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// ownName reports whether a Host header names this machine as it names itself.
func ownName(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	} else if len(host) > 2 && host[0] == '[' && host[len(host)-1] == ']' {
		host = host[1 : len(host)-1]
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.Unmap().IsLoopback()
}
