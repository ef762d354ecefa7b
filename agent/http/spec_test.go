package http_test

import (
	"bytes"
	"errors"
	"io"
	"log"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stint-dev/stint"
	agenthttp "github.com/stint-dev/stint/agent/http"
)

func quiet() *log.Logger { return log.New(io.Discard, "", 0) }

func TestValidate(t *testing.T) {
	key := bytes.Repeat([]byte{7}, 32)
	for name, c := range map[string]struct {
		spec agenthttp.Spec
		want string // empty: it is valid
	}{
		"the least":          {agenthttp.Spec{URL: "https://agents.example/refunds?key=1"}, ""},
		"this machine":       {agenthttp.Spec{URL: "http://127.0.0.1:8080/"}, ""},
		"localhost":          {agenthttp.Spec{URL: "http://LOCALHOST:8080/"}, ""},
		"IPv6":               {agenthttp.Spec{URL: "http://[::1]:8080/"}, ""},
		"clear text":         {agenthttp.Spec{URL: "http://agents.example/"}, "url: the state of a session would go to agents.example in clear text"},
		"looks like this":    {agenthttp.Spec{URL: "http://localhost.example/"}, "in clear text"},
		"on a private net":   {agenthttp.Spec{URL: "http://10.0.0.1/", AllowPrivate: true}, ""},
		"no URL":             {agenthttp.Spec{}, "url: it is empty"},
		"no scheme":          {agenthttp.Spec{URL: "agents.example/"}, "url: it does not begin with https://"},
		"another scheme":     {agenthttp.Spec{URL: "file:///etc/passwd"}, "url: it does not begin"},
		"no host":            {agenthttp.Spec{URL: "https:///x"}, "url: it has no host"},
		"no URL at all":      {agenthttp.Spec{URL: "https://k3y\x7f/"}, "url: it is no URL"},
		"a password":         {agenthttp.Spec{URL: "https://u:k3y@agents.example/"}, "url: it has a user or a password"},
		"a fragment":         {agenthttp.Spec{URL: "https://agents.example/#k3y"}, "url: it has a fragment"},
		"a short secret":     {agenthttp.Spec{URL: "https://a.example", Secret: []byte("k3y")}, "secret: 3 bytes"},
		"a long secret":      {agenthttp.Spec{URL: "https://a.example", Secret: make([]byte, 65)}, "secret: 65 bytes"},
		"a header of stint":  {agenthttp.Spec{URL: "https://a.example", Headers: map[string]string{"webhook-id": "k3y"}}, "headers.webhook-id: stint sets it itself"},
		"another of stint":   {agenthttp.Spec{URL: "https://a.example", Secrets: map[string]string{"stint-epoch": "k3y"}}, "secrets.stint-epoch: stint sets it"},
		"a name that is not": {agenthttp.Spec{URL: "https://a.example", Headers: map[string]string{"a b": "k3y"}}, `headers."a b": it is no name`},
		"a value of two":     {agenthttp.Spec{URL: "https://a.example", Secrets: map[string]string{"X-A": "k3y\r\nX-B: 1"}}, "secrets.X-A: its value holds a line end"},
		"an effect":          {agenthttp.Spec{URL: "https://a.example", Effect: "twice"}, `effect: "twice" is not one`},
		"effects":            {agenthttp.Spec{URL: "https://a.example", Effects: map[string]stint.Effect{"a": ""}}, `effects.a: "" is not one`},
		"timeout":            {agenthttp.Spec{URL: "https://a.example", Timeout: -1}, "timeout: it is negative"},
		"idle":               {agenthttp.Spec{URL: "https://a.example", Idle: -1}, "idle: it is negative"},
		"max_output":         {agenthttp.Spec{URL: "https://a.example", MaxOutput: -1}, "max_output: it is negative"},
		"max_line":           {agenthttp.Spec{URL: "https://a.example", MaxLine: 10}, "max_line: 10 bytes"},
		"max_body":           {agenthttp.Spec{URL: "https://a.example", MaxBody: 10}, "max_body: 10 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.spec.Secret == nil {
				c.spec.Secret = key
			}
			err := c.spec.Validate()
			if _, made := agenthttp.New(c.spec); (made == nil) != (err == nil) {
				t.Errorf("New gave %v, Validate %v", made, err)
			}
			if c.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			var e *stint.Error
			if !errors.As(err, &e) || e.Code != stint.Invalid || e.Hint == "" {
				t.Fatalf("the error is %+v", err)
			}
			contains(t, "the error", err.Error(), c.want)
			if strings.Contains(err.Error()+e.Hint, "k3y") {
				t.Errorf("the error shows a secret: %v", err)
			}
		})
	}
}

func TestParseSecret(t *testing.T) {
	for text, ok := range map[string]bool{
		secretText: true, " " + secretText + "\n": true, "": false, "whsec_": false, "whsec_c2hvcnQ=": false,
		"MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw": false, "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS": false,
		"whsec_" + strings.Repeat("QUFB", 22): false,
	} {
		key, err := agenthttp.ParseSecret(text)
		if (err == nil) != ok || ok && len(key) != 24 {
			t.Errorf("%q gave %d bytes, %v", text, len(key), err)
		}
		if len(text) > 8 && err != nil && strings.Contains(err.Error(), text[8:]) {
			t.Errorf("the error shows the secret: %v", err)
		}
	}
}

// TestVerify takes the example of the specification of Standard Webhooks.
func TestVerify(t *testing.T) {
	body, now := []byte(`{"test": 2432232314}`), time.Unix(1614265330, 0)
	header := func(id, at, sig string) http.Header {
		h := http.Header{}
		h.Set("webhook-id", id)
		h.Set("webhook-timestamp", at)
		h.Set("webhook-signature", sig)
		return h
	}
	const id, at, sig = "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
	for name, c := range map[string]struct {
		header http.Header
		body   []byte
		now    time.Time
		ok     bool
	}{
		"right":           {header(id, at, sig), body, now, true},
		"one of several":  {header(id, at, "v1,AAAA v2,BBBB "+sig), body, now, true},
		"five minutes on": {header(id, at, sig), body, now.Add(5 * time.Minute), true},
		"old":             {header(id, at, sig), body, now.Add(5*time.Minute + time.Second), false},
		"of the future":   {header(id, at, sig), body, now.Add(-5*time.Minute - time.Second), false},
		"another body":    {header(id, at, sig), append(body, ' '), now, false},
		"another id":      {header(id+"x", at, sig), body, now, false},
		"another time":    {header(id, "1614265331", sig), body, now, false},
		"no signature":    {header(id, at, ""), body, now, false},
		"no version":      {header(id, at, sig[3:]), body, now, false},
		"no id":           {header("", at, sig), body, now, false},
		"no time":         {header(id, "", sig), body, now, false},
		"nothing":         {http.Header{}, body, now, false},
	} {
		err := agenthttp.Verify(secret(t), c.header, c.body, c.now)
		if (err == nil) != c.ok || err != nil && !errors.Is(err, stint.Denied) {
			t.Errorf("%s gave %v", name, err)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 3, 2, 9, 30, 0, 0, time.UTC)
	for text, want := range map[string]time.Duration{
		"0": 0, " 7 ": 7 * time.Second, "99999999999": 720 * time.Hour, "18446744073709551615": 720 * time.Hour,
		"Mon, 02 Mar 2026 09:31:00 GMT": time.Minute, "Mon, 02 Mar 2020 09:31:00 GMT": 0,
		"": -1, "-1": -1, "1.5": -1, "soon": -1, "99999999999999999999": -1,
	} {
		got, ok := agenthttp.RetryAfter(text, now)
		if ok != (want >= 0) || ok && got != want {
			t.Errorf("%q gave %v, %v", text, got, ok)
		}
	}
}

// FuzzResponse feeds bytes to the reader of responses. What it accepts are messages in an
// order that there can be, and what it refuses is told in valid text.
func FuzzResponse(f *testing.F) {
	for _, c := range breaches() {
		f.Add([]byte(c[0]))
	}
	f.Add([]byte(ended))
	f.Add([]byte("\n\r\n" + stepOne))
	f.Add([]byte(strings.Repeat("\n", 2000)))
	f.Add([]byte(strings.Repeat("x", 2000)))
	f.Fuzz(func(t *testing.T, body []byte) {
		kinds, err := agenthttp.Response(bytes.NewReader(body), newSingle(), 1024, 1500)
		if err != nil {
			if text := err.Error(); text == "" || !utf8.ValidString(text) || len(text) > 8192 {
				t.Fatalf("the error is %q", text)
			}
			return
		}
		if len(body) > 1500 || len(kinds) > 1 {
			t.Fatalf("%d bytes were accepted, with the messages %q", len(body), kinds)
		}
	})
}
