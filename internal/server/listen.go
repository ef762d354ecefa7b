package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/access/guard"
)

// Address is where a server listens.
type Address struct {
	TCP    string // HOST:PORT; port 0 takes a free one; empty: the socket alone
	Socket string // the path of a Unix socket for this user's programs; empty: none
	Cert   string // the path of a certificate for TCP, PEM; empty: no TLS
	Key    string // the path of its key
}

// Listeners are what a server listens on. They are closed by [Listeners.Serve].
type Listeners struct {
	tcp, unix net.Listener // nil: none
	tls       *certificate
	socket    string
	inode     os.FileInfo // of the socket: another server may have put its own there
}

// certificate is read again by reload, so that a new one is used without a restart.
type certificate struct {
	cert, key string

	mu   sync.Mutex
	pair *tls.Certificate
}

func (c *certificate) reload() error {
	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err != nil {
		return &stint.Error{Code: stint.Invalid, Op: "listen", Err: fmt.Errorf("the certificate cannot be used: %w", err), Hint: "--tls-cert and --tls-key are PEM files that belong together"}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pair = &pair
	return nil
}

func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pair, nil
}

// Listen opens what a describes. An address that cannot be had is [stint.Unavailable].
//
// The socket takes the place of one that is there: whoever has the store's system journal
// is its only server, and one that stands still would still seem to answer. It has mode
// 0600 from the beginning.
func Listen(ctx context.Context, a Address) (*Listeners, error) {
	l := &Listeners{socket: a.Socket}
	var err error
	if a.TCP != "" {
		if err = l.listenTCP(ctx, a); err != nil {
			return nil, err
		}
	}
	if a.Socket != "" {
		if l.unix, l.inode, err = socket(ctx, a.Socket); err != nil {
			return nil, errors.Join(err, l.Close())
		}
	}
	return l, nil
}

func (l *Listeners) listenTCP(ctx context.Context, a Address) error {
	var lc net.ListenConfig
	tcp, err := lc.Listen(ctx, "tcp", a.TCP)
	if err != nil {
		return unheard(err, "another program has it, or it is none of this machine's; --addr names another")
	}
	l.tcp = tcp
	if a.Cert == "" {
		return nil
	}
	l.tls = &certificate{cert: a.Cert, key: a.Key}
	if err := l.tls.reload(); err != nil {
		return errors.Join(err, tcp.Close())
	}
	l.tcp = tls.NewListener(tcp, &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: l.tls.get, NextProtos: []string{"h2", "http/1.1"}})
	return nil
}

func unheard(err error, hint string) error {
	return &stint.Error{Code: stint.Unavailable, Op: "listen", Err: err, Hint: hint}
}

// maxSocketPath is how long the path of a socket may be where that is least: on macOS.
const maxSocketPath = 103

// socketHint is what to do where there can be no socket.
const socketHint = "--socket names another path, or none"

// socket listens at path. The socket comes into being in a folder that nobody else can
// enter, and goes to its place when it has its mode: bind(2) gives it that of the umask.
func socket(ctx context.Context, path string) (net.Listener, os.FileInfo, error) {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, nil, unheard(err, socketHint)
	}
	private, err := os.MkdirTemp(dir, ".new")
	if err != nil {
		return nil, nil, unheard(err, socketHint)
	}
	defer os.Remove(private)
	next := filepath.Join(private, "s")
	if max(len(path), len(next)) > maxSocketPath {
		return nil, nil, unheard(fmt.Errorf("the path of the socket, %s, is longer than a system takes", path), "--socket names a shorter one, or none")
	}
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "unix", next)
	if err != nil {
		return nil, nil, unheard(err, socketHint)
	}
	ln.(*net.UnixListener).SetUnlinkOnClose(false) // it gets another name
	inode, err := moved(next, path)
	if err != nil {
		return nil, nil, errors.Join(unheard(err, socketHint), ln.Close(), os.Remove(next))
	}
	return ln, inode, nil
}

// moved gives a socket its mode and its name, and returns what tells it from others.
func moved(from, to string) (os.FileInfo, error) {
	if err := os.Chmod(from, 0o600); err != nil {
		return nil, err
	}
	inode, err := os.Lstat(from)
	if err != nil {
		return nil, err
	}
	return inode, os.Rename(from, to)
}

// unlink removes the socket, if there is one, unless a server that came after this one has
// its own there.
func (l *Listeners) unlink() error {
	if l.unix == nil {
		return nil
	}
	if is, err := os.Lstat(l.socket); err != nil || !os.SameFile(is, l.inode) {
		return nil //nolint:nilerr // it is gone
	}
	return os.Remove(l.socket)
}

// Addr is the address of TCP, with the port that it got, or unix:PATH without one.
func (l *Listeners) Addr() string {
	if l.tcp == nil {
		return "unix:" + l.socket
	}
	return l.tcp.Addr().String()
}

// all are what there is to serve.
func (l *Listeners) all() (all []net.Listener) {
	for _, ln := range []net.Listener{l.tcp, l.unix} {
		if ln != nil {
			all = append(all, ln)
		}
	}
	return all
}

// Reload reads the certificate again. One that cannot be used leaves the old one.
func (l *Listeners) Reload() error {
	if l.tls == nil {
		return nil
	}
	return l.tls.reload()
}

// Close closes what was opened and not served.
func (l *Listeners) Close() error {
	var errs []error
	for _, ln := range l.all() {
		errs = append(errs, ln.Close())
	}
	return errors.Join(append(errs, l.unlink())...)
}

// Serve serves h until ctx ends. Then nobody is let in any more, the context of every
// request that is under way ends after soon, and Serve returns when all have been
// answered, or after late.
func (l *Listeners) Serve(ctx context.Context, h http.Handler, log *slog.Logger, soon, late time.Duration) error {
	base, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	srv := guard.Server(h)
	srv.BaseContext = func(net.Listener) context.Context { return base }
	srv.ConnContext = withPeer
	srv.ErrorLog = slog.NewLogLogger(log.Handler(), slog.LevelDebug) // what clients do wrong
	ended, serving := make(chan error, 2), 0
	for _, ln := range l.all() {
		serving++
		go func() { ended <- srv.Serve(ln) }()
	}
	var failed error
	select {
	case <-ctx.Done():
	case failed = <-ended:
		serving--
	}
	timer := time.AfterFunc(soon, cut)
	defer timer.Stop()
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), late)
	defer cancel()
	if err := srv.Shutdown(end); err != nil {
		log.Warn("requests were cut off", "error", err)
		_ = srv.Close()
	}
	for range serving {
		<-ended
	}
	_ = l.unlink()
	if errors.Is(failed, http.ErrServerClosed) {
		return nil
	}
	return failed
}
