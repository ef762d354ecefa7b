package server_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io/fs"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/server"
)

const anyPort = "127.0.0.1:0"

// listen opens an address until the test ends.
func listen(t *testing.T, a server.Address) *server.Listeners {
	t.Helper()
	l, err := server.Listen(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// refused wants [stint.Error] with a code and a hint that has some words in it.
func refused(t *testing.T, err error, code stint.Code, hint string) {
	t.Helper()
	var e *stint.Error
	if !errors.As(err, &e) || e.Code != code || e.Op != "listen" || !strings.Contains(e.Hint, hint) {
		t.Errorf("got %v, want %s with %q in its hint", err, code, hint)
	}
}

// A taken address is told with what to do, and nothing else stays open.
func TestListenTaken(t *testing.T) {
	dir := t.TempDir()
	first := listen(t, server.Address{TCP: anyPort})
	_, err := server.Listen(t.Context(), server.Address{TCP: first.Addr(), Socket: filepath.Join(dir, "s")})
	refused(t, err, stint.Unavailable, "--addr")
	if _, err := os.Lstat(filepath.Join(dir, "s")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("there is a socket of a server that does not listen: %v", err)
	}
	_, err = server.Listen(t.Context(), server.Address{TCP: anyPort, Socket: filepath.Join(dir, strings.Repeat("long", 30))})
	refused(t, err, stint.Unavailable, "shorter")
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = server.Listen(t.Context(), server.Address{TCP: anyPort, Socket: filepath.Join(dir, "file", "s")})
	refused(t, err, stint.Unavailable, "--socket")
	if err := os.MkdirAll(filepath.Join(dir, "folder", "full"), 0o700); err != nil {
		t.Fatal(err)
	}
	_, err = server.Listen(t.Context(), server.Address{TCP: anyPort, Socket: filepath.Join(dir, "folder")})
	refused(t, err, stint.Unavailable, "--socket")
	left, err := filepath.Glob(filepath.Join(dir, ".new*"))
	if err != nil || len(left) > 0 {
		t.Errorf("%q is left behind, %v", left, err)
	}
}

// A socket that a dead server left is replaced, and one that came after stays when its
// predecessor ends.
func TestSocketSucceeds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "deep", "down", "s")
	stale := listen(t, server.Address{TCP: anyPort, Socket: path})
	next := listen(t, server.Address{TCP: anyPort, Socket: path})
	if err := stale.Close(); err != nil {
		t.Error(err)
	}
	var d net.Dialer
	c, err := d.DialContext(t.Context(), "unix", path)
	if err != nil {
		t.Fatalf("the server that went took the socket of the next one with it: %v", err)
	}
	c.Close()
	if err := next.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket is left behind: %v", err)
	}
}

// authority signs certificates of 127.0.0.1.
type authority struct {
	t    *testing.T
	dir  string
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
}

func newAuthority(t *testing.T) *authority {
	a := &authority{t: t, dir: t.TempDir()}
	a.key = a.newKey()
	root := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, root, root, &a.key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	return a
}

func (a *authority) newKey() *ecdsa.PrivateKey {
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	return k
}

// sign puts a certificate with this number into cert.pem, and its key into key.pem.
func (a *authority) sign(serial int64) {
	a.t.Helper()
	key := a.newKey()
	leaf := &x509.Certificate{SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "stint"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, leaf, a.cert, &key.PublicKey, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	a.put("cert.pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	a.put("key.pem", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}))
}

func (a *authority) put(name string, b []byte) {
	a.t.Helper()
	if err := os.WriteFile(a.path(name), b, 0o600); err != nil {
		a.t.Fatal(err)
	}
}

func (a *authority) path(name string) string { return filepath.Join(a.dir, name) }

// client trusts the authority alone.
func (a *authority) client() *http.Client {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true, DisableKeepAlives: true}}
}

// A new certificate is used for the next connection; one that cannot be used leaves the
// old one.
func TestCertificate(t *testing.T) {
	a := newAuthority(t)
	at := server.Address{TCP: anyPort, Cert: a.path("cert.pem"), Key: a.path("key.pem")}
	_, err := server.Listen(t.Context(), at)
	refused(t, err, stint.Invalid, "--tls-cert")
	a.sign(1)
	l := listen(t, at)
	serves(t, l, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
	shows := func(want int64) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+l.Addr(), nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := a.client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if got := resp.TLS.PeerCertificates[0].SerialNumber.Int64(); got != want || resp.ProtoMajor != 2 || resp.StatusCode != http.StatusNoContent {
			t.Errorf("the certificate is number %d, want %d; HTTP/%d, %s", got, want, resp.ProtoMajor, resp.Status)
		}
	}
	shows(1)
	a.sign(2)
	shows(1)
	if err := l.Reload(); err != nil {
		t.Error(err)
	}
	shows(2)
	a.put("cert.pem", []byte("half a file"))
	refused(t, l.Reload(), stint.Invalid, "PEM")
	shows(2)
	a.sign(3)
	key, err := os.ReadFile(a.path("key.pem"))
	if err != nil {
		t.Fatal(err)
	}
	a.sign(4)
	a.put("key.pem", key) // of another certificate
	refused(t, l.Reload(), stint.Invalid, "belong together")
	shows(2)
	old := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{MaxVersion: tls.VersionTLS11, InsecureSkipVerify: true}}}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+l.Addr(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if resp, err := old.Do(req); err == nil {
		resp.Body.Close()
		t.Error("TLS 1.1 is spoken")
	}
	if err := listen(t, server.Address{TCP: anyPort}).Reload(); err != nil {
		t.Errorf("without TLS there is nothing to read again: %v", err)
	}
}

// serves has l serve h until the test ends.
func serves(t *testing.T, l *server.Listeners, h http.Handler) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- l.Serve(ctx, h, quiet(), time.Hour, time.Hour) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
