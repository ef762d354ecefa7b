package safedial

import (
	"context"
	"net"
)

// WithDial lets a test see what is dialed.
func (p Policy) WithDial(dial func(ctx context.Context, network, addr string) (net.Conn, error)) Policy {
	p.dial = dial
	return p
}
