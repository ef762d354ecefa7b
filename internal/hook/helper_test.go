package hook_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/hook"
)

const (
	plainSecret = "k"
	whsec       = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
)

// noon is the time of every test that does not say its own.
func noon() time.Time { return time.Unix(1767225600, 0) }

func file(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func compile(t testing.TB, d hook.Definition) *hook.Hook {
	t.Helper()
	if d.Name == "" {
		d.Name = "h"
	}
	if d.Agent == "" {
		d.Agent = "a"
	}
	if d.Scheme == "" {
		d.Scheme = hook.None
	}
	if d.Secrets == nil && d.Scheme.Signs() {
		d.Secrets = []string{"env:SECRET"}
	}
	h, err := hook.Compile(d)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

type headers = map[string][]string

// sum256 signs by hand, apart from the code under test.
func sum256(key string, parts ...string) []byte {
	h := hmac.New(sha256.New, []byte(key))
	h.Write([]byte(strings.Join(parts, "")))
	return h.Sum(nil)
}

func sum512(key, text string) []byte {
	h := hmac.New(sha512.New, []byte(key))
	h.Write([]byte(text))
	return h.Sum(nil)
}

// secretOf is a secret that a scheme takes.
func secretOf(s hook.Scheme) string {
	if s == hook.Standard {
		return whsec
	}
	return plainSecret
}

func genericHMAC() *hook.HMAC {
	return &hook.HMAC{Header: "X-Signature", Timestamp: "X-Timestamp", Prefix: "v="}
}

// sign makes the headers with which a sender of a scheme would send a body.
func sign(t testing.TB, s hook.Scheme, secret string, body []byte, at time.Time) headers {
	t.Helper()
	return signText(t, s, secret, string(body), strconv.FormatInt(at.Unix(), 10))
}

// signText is sign for a time that need be none.
func signText(t testing.TB, s hook.Scheme, secret, body, ts string) headers {
	t.Helper()
	switch s {
	case hook.Standard:
		key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
		if err != nil {
			t.Fatal(err)
		}
		sig := "v1," + base64.StdEncoding.EncodeToString(sum256(string(key), "msg_1.", ts, ".", body))
		return headers{"Webhook-Id": {"msg_1"}, "Webhook-Timestamp": {ts}, "Webhook-Signature": {sig}}
	case hook.GitHub:
		return headers{"X-Hub-Signature-256": {"sha256=" + hex.EncodeToString(sum256(secret, body))}, "X-Github-Delivery": {"d-1"}, "X-Github-Event": {"push"}}
	case hook.Stripe:
		return headers{"Stripe-Signature": {"t=" + ts + ",v1=" + hex.EncodeToString(sum256(secret, ts, ".", body)) + ",v0=" + strings.Repeat("1", 64)}}
	case hook.Slack:
		return headers{"X-Slack-Request-Timestamp": {ts}, "X-Slack-Signature": {"v0=" + hex.EncodeToString(sum256(secret, "v0:", ts, ":", body))}}
	case hook.Generic:
		return headers{"X-Timestamp": {ts}, "X-Signature": {"v=" + hex.EncodeToString(sum256(secret, ts, ".", body))}}
	case hook.Bearer:
		return headers{"Authorization": {"Bearer " + secret}}
	case hook.None:
		return headers{}
	}
	t.Fatalf("no scheme %q", s)
	return nil
}

// of is a hook of a scheme with nothing else said.
func of(t testing.TB, s hook.Scheme) *hook.Hook {
	t.Helper()
	d := hook.Definition{Scheme: s}
	if s == hook.Generic {
		d.HMAC = genericHMAC()
	}
	return compile(t, d)
}

func signing() []hook.Scheme {
	return []hook.Scheme{hook.Standard, hook.GitHub, hook.Stripe, hook.Slack, hook.Generic}
}

func accept(t testing.TB, h *hook.Hook, r hook.Request, secrets ...string) hook.Delivery {
	t.Helper()
	v, err := h.Receive(r, secrets, noon())
	if err != nil {
		t.Fatal(err)
	}
	if v.Decision != hook.Accept {
		t.Fatalf("got %+v", v)
	}
	return v.Delivery
}

// refused checks that a request is refused with a status, for a reason, without a secret
// in what is said.
func refused(t testing.TB, v hook.Verdict, err error, status int, reason string) {
	t.Helper()
	if err == nil {
		t.Errorf("it is taken: %+v", v)
		return
	}
	if hook.Status(err) != status || !strings.Contains(err.Error(), reason) {
		t.Errorf("got %d %v, want %d and %q", hook.Status(err), err, status, reason)
	}
	for _, secret := range []string{whsec, strings.TrimPrefix(whsec, "whsec_"), "correct horse"} {
		if strings.Contains(err.Error(), secret) {
			t.Errorf("the error holds a secret: %v", err)
		}
	}
}

func faults(t testing.TB, err error) hook.Faults {
	t.Helper()
	var f hook.Faults
	if !errors.As(err, &f) {
		t.Fatalf("got %v", err)
	}
	return f
}

func sum(body string) stint.Hash { return sha256.Sum256([]byte(body)) }

func quoted(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func unquote(s string, to any) {
	if err := json.Unmarshal([]byte(s), to); err != nil {
		panic(err)
	}
}
