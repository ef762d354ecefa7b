package proc_test

import (
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/stint-dev/stint/internal/proc"
)

// dial connects to its first argument, and says in its exit status whether it could.
func dial(addr string) int {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return 3
	}
	c.Close()
	return 0
}

// A tree that is offline reaches nobody, not even this machine; one that is not does. Where
// the system does not let this user cut a program off, it does not start at all.
func TestOffline(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	came := make(chan struct{}, 10)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			c.Close()
			came <- struct{}{}
		}
	}()
	for _, bare := range []bool{false, true} {
		spec := self(t, "dial", l.Addr().String())
		spec.NoGuard = bare
		if x := start(t, spec).Wait(); x.Code != 0 {
			t.Fatalf("a program with a network exits with %+v", x)
		}
		<-came
		spec.Offline = true
		if cannot := proc.CanOffline(); cannot != nil {
			_, err := proc.Start(t.Context(), spec)
			if !errors.Is(cannot, proc.ErrUnsupported) || !errors.Is(err, proc.ErrUnsupported) {
				t.Errorf("it cannot be cut off (%v), and its start says %v", cannot, err)
			}
			continue
		}
		if x := start(t, spec).Wait(); x.Code != 3 {
			t.Errorf("a program that is offline exits with %+v", x)
		}
	}
	if n := len(came); n != 0 {
		t.Errorf("%d connections came from programs that are offline", n)
	}
}

// Who a program is, and where, does not change with it.
func TestOfflineKeepsTheUser(t *testing.T) {
	if proc.CanOffline() != nil {
		return // TestOffline says what happens then
	}
	said := func(offline bool) string {
		spec := self(t, "who")
		spec.Stdout.Pipe, spec.Offline = true, offline
		return readAll(t, start(t, spec).Stdout())
	}
	if with, without := said(false), said(true); with != without || strings.Count(with, " ") < 2 {
		t.Errorf("with a network %q, without %q", with, without)
	}
}
