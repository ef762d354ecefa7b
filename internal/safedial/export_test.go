package safedial

import (
	"context"
	"net"
)

// Control looks at an address right before it is connected to.
func Control(addr string) error { return control("tcp", addr, nil) }

// WithDial lets a test see what is dialed.
func (p Policy) WithDial(dial func(ctx context.Context, network, addr string) (net.Conn, error)) Policy {
	p.dial = dial
	return p
}
