package server

import (
	"context"
	"crypto/tls"
	"net"
	"sync"

	"github.com/stint-dev/stint/internal/proc"
)

// peer is the other end of a connection, which is found out when somebody asks.
type peer struct {
	conn net.Conn

	once  sync.Once
	pid   int
	known bool
}

type peerKey struct{}

// withPeer has the context of a connection's requests know its other end.
func withPeer(ctx context.Context, c net.Conn) context.Context {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	return context.WithValue(ctx, peerKey{}, &peer{conn: c})
}

// PeerOf returns the process that a request of [Listeners.Serve] comes from, if it is one
// of this machine and can be known: see [proc.Peer]. It is found out once a connection.
func PeerOf(ctx context.Context) (pid int, known bool) {
	p, ok := ctx.Value(peerKey{}).(*peer)
	if !ok {
		return 0, false
	}
	p.once.Do(func() { p.pid, p.known = proc.Peer(p.conn) })
	return p.pid, p.known
}
