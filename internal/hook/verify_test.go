package hook_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/hook"
)

// The vectors that the makers of the schemes publish.
func TestPublishedVectors(t *testing.T) {
	slackBody := "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c"
	for _, c := range []struct {
		scheme       hook.Scheme
		secret, body string
		at           int64
		headers      headers
		status       int // once the signature is found to be genuine
	}{
		{hook.Standard, whsec, `{"test": 2432232314}`, 1614265330, headers{
			"webhook-id": {"msg_p5jXN8AQM9LWM0D4loKWxJek"}, "webhook-timestamp": {"1614265330"},
			"webhook-signature": {"v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="},
		}, 200},
		{hook.GitHub, "It's a Secret to Everybody", "Hello, World!", 1, headers{
			"X-Hub-Signature-256": {"sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"},
			"X-GitHub-Delivery":   {"1"}, "Content-Type": {"text/plain"},
		}, 200},
		{hook.Slack, "8f742231b10e8888abcd99yyyzzz85a5", slackBody, 1531420618, headers{
			"X-Slack-Request-Timestamp": {"1531420618"}, "Content-Type": {"application/x-www-form-urlencoded"},
			"X-Slack-Signature": {"v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503"},
		}, 200},
	} {
		_, err := of(t, c.scheme).Receive(hook.Request{Headers: c.headers, Body: []byte(c.body)}, []string{c.secret}, time.Unix(c.at, 0))
		if hook.Status(err) != c.status {
			t.Errorf("%s: %v", c.scheme, err)
		}
	}
}

// What is signed for others is the published vector too.
func TestSignVector(t *testing.T) {
	got, err := hook.Sign(whsec, "msg_p5jXN8AQM9LWM0D4loKWxJek", time.Unix(1614265330, 0), []byte(`{"test": 2432232314}`))
	want := map[string]string{
		"webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek", "webhook-timestamp": "1614265330",
		"webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
	}
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("got %v, %v", got, err)
	}
	for _, c := range []struct{ secret, id string }{{"", "a"}, {"whsec_?", "a"}, {whsec, ""}, {whsec, "a.b"}, {whsec, "a b"}, {whsec, "a\n"}, {whsec, "é"}} {
		if _, err := hook.Sign(c.secret, c.id, noon(), nil); stint.CodeOf(err) != stint.Invalid || strings.Contains(err.Error(), "whsec_?") {
			t.Errorf("%q %q: %v", c.secret, c.id, err)
		}
	}
}

// What Sign makes, a hook takes.
func TestSignedIsTaken(t *testing.T) {
	body := []byte(`{"type":"session.completed"}`)
	signed, err := hook.Sign(whsec, "msg_7", noon(), body)
	if err != nil {
		t.Fatal(err)
	}
	h := headers{}
	for k, v := range signed {
		h[k] = []string{v}
	}
	d := accept(t, of(t, hook.Standard), hook.Request{Headers: h, Body: body}, whsec)
	if d.ID != "msg_7" || d.Event != "session.completed" || !d.At.Equal(noon()) {
		t.Errorf("got %+v", d)
	}
}

// Headers that have to be refused, in every scheme that has the header. Each row changes
// one header of a request that is genuine.
func TestBadHeaders(t *testing.T) {
	sig := map[hook.Scheme]string{
		hook.Standard: "Webhook-Signature", hook.GitHub: "X-Hub-Signature-256", hook.Stripe: "Stripe-Signature", hook.Slack: "X-Slack-Signature", hook.Generic: "X-Signature",
	}
	ts := map[hook.Scheme]string{hook.Standard: "Webhook-Timestamp", hook.Slack: "X-Slack-Request-Timestamp", hook.Generic: "X-Timestamp"}
	body := []byte(`{"a":1}`)
	// upper changes the digits of a signature and no prefix.
	upper := func(s string) string {
		at := len(s) - 64
		if i := strings.Index(s, "v1="); i >= 0 {
			at = i + 3
		}
		return s[:at] + strings.ToUpper(s[at:at+64]) + s[at+64:]
	}
	for _, scheme := range signing() {
		for _, c := range []struct {
			name, header, reason string
			change               func(string) []string
		}{
			{"missing", sig[scheme], "missing", func(string) []string { return nil }},
			{"empty", sig[scheme], "missing", func(string) []string { return []string{""} }},
			{"twice", sig[scheme], "more than once", func(s string) []string { return []string{s, s} }},
			{"not ASCII", sig[scheme], "not ASCII", func(string) []string { return []string{"sha256=é"} }},
			{"latin-1", sig[scheme], "not ASCII", func(string) []string { return []string{"sha256=\xe9"} }},
			{"NUL", sig[scheme], "not ASCII", func(s string) []string { return []string{s + "\x00"} }},
			{"shorter", sig[scheme], "", func(s string) []string { return []string{s[:len(s)-1]} }},
			{"longer", sig[scheme], "", func(s string) []string { return []string{s + "0"} }},
			{"prefix alone", sig[scheme], "", func(s string) []string { return []string{s[:3]} }},
			{"blank before", sig[scheme], "", func(s string) []string { return []string{" " + s} }},
			{"of zeros", sig[scheme], "", func(s string) []string {
				return []string{strings.NewReplacer("a", "0", "b", "0", "c", "0", "d", "0", "e", "0", "f", "0", "A", "0", "B", "0").Replace(s)}
			}},
			{"upper case", sig[scheme], "upper case", func(s string) []string {
				if scheme == hook.Standard {
					return nil // base64 has both
				}
				return []string{upper(s)}
			}},
			{"no time", ts[scheme], "missing", func(string) []string { return nil }},
			{"two times", ts[scheme], "more than once", func(s string) []string { return []string{s, s} }},
			{"a later time", ts[scheme], "match", func(string) []string { return []string{"1767225601"} }},
		} {
			t.Run(string(scheme)+"/"+c.name, func(t *testing.T) {
				if c.header == "" {
					return // the time is in the signature, or there is none
				}
				r := hook.Request{Headers: sign(t, scheme, secretOf(scheme), body, noon()), Body: body}
				if c.name == "upper case" && scheme == hook.Standard {
					return
				}
				accept(t, of(t, scheme), r, secretOf(scheme))
				if r.Headers[c.header] = c.change(r.Headers[c.header][0]); r.Headers[c.header] == nil {
					delete(r.Headers, c.header)
				}
				v, err := of(t, scheme).Receive(r, []string{secretOf(scheme)}, noon())
				if scheme == hook.Stripe && (c.name == "shorter" || c.name == "longer") {
					// The end of the header is a v0, which is for other readers.
					if err != nil {
						t.Error(err)
					}
					return
				}
				refused(t, v, err, 401, c.reason)
			})
		}
	}
}

// Times that are signed and no times, or not of now. The signature is genuine in each row.
func TestTimes(t *testing.T) {
	for _, scheme := range []hook.Scheme{hook.Standard, hook.Stripe, hook.Slack, hook.Generic} {
		for _, c := range []struct{ ts, reason string }{
			{"1767225600", ""}, {"1767225301", ""}, {"1767225300", ""}, {"1767225899", ""}, {"1767225900", ""},
			{"1767225299", "old"}, {"1767225901", "future"}, {"1767225000", "old"}, {"1767226200", "future"},
			{"0", "old"}, {"1", "old"}, {"978307200", "old"},
			{"1767225600000", "milliseconds"}, {"9223372036854775807", "milliseconds"},
			{"9223372036854775808", "no time"}, {"18446744075476777216", "no time"}, {"1e9", "no time"}, {"1767225600.0", "no time"}, {"-1767225600", "no time"},
			{"+1767225600", "no time"}, {"01767225600", "no time"}, {"0x6955b900", "no time"}, {" 1767225600", "no time"}, {"now", "no time"}, {"1767225600 ", "no time"},
		} {
			body := `{"id":"x"}`
			r := hook.Request{Headers: signText(t, scheme, secretOf(scheme), body, c.ts), Body: []byte(body)}
			v, err := of(t, scheme).Receive(r, []string{secretOf(scheme)}, noon())
			if c.reason != "" {
				t.Run(string(scheme)+"/"+c.ts, func(t *testing.T) { refused(t, v, err, 401, c.reason) })
			} else if err != nil || v.Decision != hook.Accept {
				t.Errorf("%s %s: %+v, %v", scheme, c.ts, v, err)
			}
		}
	}
}

// A captured request is no longer taken once its time has passed, nor on a machine whose
// clock is ten minutes off.
func TestReplay(t *testing.T) {
	body := []byte(`{"id":"x"}`)
	for _, scheme := range []hook.Scheme{hook.Standard, hook.Stripe, hook.Slack, hook.Generic} {
		r := hook.Request{Headers: sign(t, scheme, secretOf(scheme), body, noon()), Body: body}
		for _, c := range []struct {
			seconds int
			status  int
		}{{-601, 401}, {-301, 401}, {-299, 200}, {0, 200}, {299, 200}, {300, 200}, {301, 401}, {600, 401}, {86400 * 365, 401}} {
			_, err := of(t, scheme).Receive(r, []string{secretOf(scheme)}, noon().Add(time.Duration(c.seconds)*time.Second))
			if hook.Status(err) != c.status {
				t.Errorf("%s after %d s: %v", scheme, c.seconds, err)
			}
		}
	}
	// Of GitHub no time is signed: what stops a replay is the memory of ids and digests.
	r := hook.Request{Headers: sign(t, hook.GitHub, plainSecret, body, noon()), Body: body}
	first := accept(t, of(t, hook.GitHub), r, plainSecret)
	r.Headers["X-Github-Delivery"] = []string{"d-2"}
	again := accept(t, of(t, hook.GitHub), r, plainSecret)
	if first.ID == again.ID || first.Digest != again.Digest || first.Covered || again.Covered {
		t.Errorf("got %+v and %+v", first, again)
	}
}

// Both secrets are taken while one follows the other, and a third is not.
func TestRotation(t *testing.T) {
	body := []byte(`{"a":1}`)
	other := "whsec_" + base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{7}, 32))
	for _, scheme := range append(signing(), hook.Bearer) {
		h, secrets := of(t, scheme), []string{secretOf(scheme), other}
		for _, s := range secrets {
			accept(t, h, hook.Request{Headers: sign(t, scheme, s, body, noon()), Body: body}, secrets...)
			accept(t, h, hook.Request{Headers: sign(t, scheme, s, body, noon()), Body: body}, secrets[1], secrets[0])
		}
		third := "whsec_" + base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{8}, 32))
		v, err := h.Receive(hook.Request{Headers: sign(t, scheme, third, body, noon()), Body: body}, secrets, noon())
		refused(t, v, err, 401, "")
	}
}

// The good signature may be the last of a list, and one of another version does not count.
func TestLists(t *testing.T) {
	body := []byte(`{"a":1}`)
	good := sign(t, hook.Standard, whsec, body, noon())["Webhook-Signature"][0]
	bad := "v1," + base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("0"), 32))
	standard := func(list string) int {
		h := sign(t, hook.Standard, whsec, body, noon())
		h["Webhook-Signature"] = []string{list}
		_, err := of(t, hook.Standard).Receive(hook.Request{Headers: h, Body: body}, []string{whsec}, noon())
		return hook.Status(err)
	}
	for list, want := range map[string]int{
		good: 200, bad + " " + good: 200, good + " " + bad: 200, "v1a,xyz " + good: 200, "v2" + good[2:]: 401, "v2" + good[2:] + " " + bad: 401,
		strings.Repeat(bad+" ", 15) + good: 200, strings.Repeat(bad+" ", 16) + good: 401,
		good[3:]: 401, good + "  " + bad: 401, good + " ": 401, "," + good: 401, strings.TrimSuffix(good, "="): 401,
	} {
		if got := standard(list); got != want {
			t.Errorf("%q: %d", list, got)
		}
	}
	sig := hex.EncodeToString(sum256(plainSecret, "1767225600.", string(body)))
	zero := strings.Repeat("0", 64)
	for list, want := range map[string]int{
		"t=1767225600,v1=" + sig: 200, "t=1767225600,v1=" + zero + ",v1=" + sig: 200, "v1=" + sig + ",t=1767225600": 200,
		"t=1767225600,v0=" + sig: 401, "t=1767225600": 401, "v1=" + sig: 401, "t=1767225600,t=1767225600,v1=" + sig: 401, "t=1767225600, v1=" + sig: 401,
		"t=1767225600,v1=": 401, "t=1767225600,,v1=" + sig: 401, "t=1767225600;v1=" + sig: 401, "t=1767225600," + strings.Repeat("v1="+zero+",", 20) + "v1=" + sig: 401,
	} {
		_, err := of(t, hook.Stripe).Receive(hook.Request{Headers: headers{"Stripe-Signature": {list}}, Body: body}, []string{plainSecret}, noon())
		if hook.Status(err) != want {
			t.Errorf("%q: %v", list, err)
		}
	}
}

// Standard Webhooks goes by the names of Svix too, but never by some of each. An id with
// a dot would let a captured body be cut elsewhere.
func TestStandardNames(t *testing.T) {
	body := []byte(`{"a":1}`)
	h := sign(t, hook.Standard, whsec, body, noon())
	svix := headers{"Svix-Id": h["Webhook-Id"], "Svix-Timestamp": h["Webhook-Timestamp"], "Svix-Signature": h["Webhook-Signature"]}
	accept(t, of(t, hook.Standard), hook.Request{Headers: svix, Body: body}, whsec)
	svix["Webhook-Id"] = []string{"msg_1"}
	v, err := of(t, hook.Standard).Receive(hook.Request{Headers: svix, Body: body}, []string{whsec}, noon())
	refused(t, v, err, 401, "webhook-timestamp is missing")

	key, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(whsec, "whsec_"))
	captured := "v1," + base64.StdEncoding.EncodeToString(sum256(string(key), `msg_1.1600000000.1767225600.{"a":1}`))
	moved := headers{"Webhook-Id": {"msg_1.1600000000"}, "Webhook-Timestamp": {"1767225600"}, "Webhook-Signature": {captured}}
	v, err = of(t, hook.Standard).Receive(hook.Request{Headers: moved, Body: body}, []string{whsec}, noon())
	refused(t, v, err, 401, "dot")
}

// Every choice of the generic scheme.
func TestGeneric(t *testing.T) {
	body := `{"a":1}`
	for _, c := range []struct {
		h       hook.HMAC
		headers headers
	}{
		{hook.HMAC{Header: "X-Sig"}, headers{"x-sig": {hex.EncodeToString(sum256("k", body))}}},
		{hook.HMAC{Header: "X-Sig", Encoding: hook.Base64}, headers{"X-SIG": {base64.StdEncoding.EncodeToString(sum256("k", body))}}},
		{hook.HMAC{Header: "X-Sig", Algorithm: hook.SHA512, Prefix: "sha512="}, headers{"X-Sig": {"sha512=" + hex.EncodeToString(sum512("k", body))}}},
		{hook.HMAC{Header: "X-Sig", Timestamp: "X-Time", Signed: "v0:{timestamp}:{body}"}, headers{"X-Sig": {hex.EncodeToString(sum256("k", "v0:1767225600:", body))}, "X-Time": {"1767225600"}}},
	} {
		h := compile(t, hook.Definition{Scheme: hook.Generic, HMAC: &c.h})
		accept(t, h, hook.Request{Headers: c.headers, Body: []byte(body)}, "k")
		v, err := h.Receive(hook.Request{Headers: c.headers, Body: []byte(body + " ")}, []string{"k"}, noon())
		refused(t, v, err, 401, "match")
	}
}

func TestBearer(t *testing.T) {
	body := []byte(`{"a":1}`)
	for value, reason := range map[string]string{
		"Bearer correct horse battery staple": "", "bearer correct horse battery staple": "",
		"Bearer correct horse battery stapl": "not this hook's", "Bearer correct horse battery staple ": "not this hook's", "Bearer c": "not this hook's",
		"Bearer ": "not this hook's", "Bearer": "no bearer token", "Basic correct horse battery staple": "no bearer token", "correct horse battery staple": "no bearer token", "Bearer é": "ASCII",
	} {
		v, err := of(t, hook.Bearer).Receive(hook.Request{Headers: headers{"Authorization": {value}}, Body: body}, []string{"correct horse battery staple"}, noon())
		if reason == "" && err != nil {
			t.Errorf("%q: %v", value, err)
		} else if reason != "" {
			refused(t, v, err, 401, reason)
		}
	}
	v, err := of(t, hook.Bearer).Receive(hook.Request{Body: body}, []string{"x"}, noon())
	refused(t, v, err, 401, "missing")
}

// A hook whose secrets cannot be used takes nothing, and blames nobody else.
func TestUnusableSecrets(t *testing.T) {
	body := []byte(`{"a":1}`)
	for _, c := range []struct {
		scheme  hook.Scheme
		secrets []string
	}{
		{hook.GitHub, nil}, {hook.GitHub, []string{""}}, {hook.GitHub, []string{"k", " "}}, {hook.GitHub, []string{"a", "b", "c"}},
		{hook.Standard, []string{"whsec_"}}, {hook.Standard, []string{"whsec_correct horse"}}, {hook.Bearer, []string{""}},
	} {
		v, err := of(t, c.scheme).Receive(hook.Request{Headers: sign(t, c.scheme, secretOf(c.scheme), body, noon()), Body: body}, c.secrets, noon())
		refused(t, v, err, 503, "secret")
	}
	for secret, ok := range map[string]bool{whsec: true, strings.TrimPrefix(whsec, "whsec_"): true, "whsec_correct horse": false, "": false} {
		if err := hook.CheckSecret(hook.Standard, secret); (err == nil) != ok || err != nil && strings.Contains(err.Error(), "horse") {
			t.Errorf("%q: %v", secret, err)
		}
	}
}

// A body that nobody signed is not even read: what is wrong with it is not said.
func TestVerifiedBeforeItIsRead(t *testing.T) {
	for _, scheme := range append(signing(), hook.Bearer) {
		for _, body := range []string{"", "{", `{"type":"url_verification","challenge":"x"}`} {
			h := sign(t, scheme, secretOf(scheme), []byte("other"), noon())
			if scheme == hook.Bearer {
				h["Authorization"] = []string{"Bearer no"}
			}
			h["X-Github-Event"] = []string{"ping"}
			h["Content-Encoding"] = []string{"gzip"}
			v, err := of(t, scheme).Receive(hook.Request{Headers: h, Body: []byte(body)}, []string{secretOf(scheme)}, noon())
			refused(t, v, err, 401, "")
		}
	}
}

// Whatever is signed is genuine, and with one bit changed anywhere it is not.
func TestOneBit(t *testing.T) {
	hooks := map[hook.Scheme]*hook.Hook{}
	for _, s := range signing() {
		hooks[s] = of(t, s)
	}
	rapid.Check(t, func(rt *rapid.T) {
		scheme := rapid.SampledFrom(signing()).Draw(rt, "scheme")
		body := rapid.SliceOfN(rapid.Byte(), 1, 200).Draw(rt, "body")
		h := sign(t, scheme, secretOf(scheme), body, noon())
		h["Content-Type"] = []string{"application/octet-stream"}
		secrets := []string{secretOf(scheme)}
		d, err := hooks[scheme].Receive(hook.Request{Headers: h, Body: body}, secrets, noon())
		if err != nil || !bytes.Equal(d.Delivery.Input, body) {
			rt.Fatalf("%+v, %v", d, err)
		}
		// Headers that are signed or sign; of Stripe the part before the v0.
		proofs := map[string]int{"Webhook-Id": 0, "Webhook-Timestamp": 0, "Webhook-Signature": 0, "X-Hub-Signature-256": 0, "Stripe-Signature": 66,
			"X-Slack-Request-Timestamp": 0, "X-Slack-Signature": 0, "X-Timestamp": 0, "X-Signature": 0}
		names := slices.DeleteFunc(slices.Sorted(maps.Keys(h)), func(n string) bool { _, ok := proofs[n]; return !ok })
		where := rapid.SampledFrom(append(names, "body")).Draw(rt, "where")
		flip := func(b []byte) {
			b[rapid.IntRange(0, len(b)-1).Draw(rt, "byte")] ^= 1 << rapid.IntRange(0, 7).Draw(rt, "bit")
		}
		if where == "body" {
			flip(body)
		} else {
			text := []byte(h[where][0])
			end := len(text) - proofs[where]
			if where == "Stripe-Signature" {
				end-- // and without the comma, which may become part of the signature before it
			}
			flip(text[:end])
			h[where] = []string{string(text)}
		}
		if v, err := hooks[scheme].Receive(hook.Request{Headers: h, Body: body}, secrets, noon()); hook.Status(err) != 401 {
			rt.Fatalf("%+v, %v", v, err)
		}
	})
}

// No header makes a parser panic, and none is taken that does not hold the signature.
func FuzzHeaders(f *testing.F) {
	body := []byte(`{"a":1}`)
	for i, s := range signing() {
		for _, values := range sign(f, s, secretOf(s), body, noon()) {
			f.Add(byte(i), values[0], "1767225600", "msg_1")
		}
	}
	for _, s := range []string{"", "sha256=é", "v1,", "t=,v1=", "t=1,t=2", "v0=", strings.Repeat("v1,a ", 100), "1e9", "9223372036854775808"} {
		f.Add(byte(0), s, s, s)
		f.Add(byte(2), s, s, s)
	}
	f.Fuzz(func(t *testing.T, which byte, sig, ts, id string) {
		scheme := signing()[int(which)%len(signing())]
		h := headers{
			"Webhook-Id": {id}, "Webhook-Timestamp": {ts}, "Webhook-Signature": {sig}, "X-Hub-Signature-256": {sig}, "X-Github-Delivery": {id}, "Stripe-Signature": {sig},
			"X-Slack-Request-Timestamp": {ts}, "X-Slack-Signature": {sig}, "X-Timestamp": {ts}, "X-Signature": {sig},
		}
		_, err := of(t, scheme).Receive(hook.Request{Headers: h, Body: body}, []string{secretOf(scheme)}, noon())
		var r *hook.Refusal
		if err != nil && !errors.As(err, &r) {
			t.Fatalf("%v is no refusal", err)
		}
		if err != nil {
			return
		}
		key, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(whsec, "whsec_"))
		of := map[hook.Scheme]string{
			hook.Standard: base64.StdEncoding.EncodeToString(sum256(string(key), id, ".", ts, ".", string(body))),
			hook.GitHub:   "sha256=" + hex.EncodeToString(sum256(plainSecret, string(body))),
			hook.Slack:    "v0=" + hex.EncodeToString(sum256(plainSecret, "v0:", ts, ":", string(body))),
			hook.Generic:  "v=" + hex.EncodeToString(sum256(plainSecret, ts, ".", string(body))),
		}
		if scheme == hook.Stripe {
			_, rest, _ := strings.Cut(","+sig, ",t=")
			ts, _, _ = strings.Cut(rest, ",")
			of[scheme] = "v1=" + hex.EncodeToString(sum256(plainSecret, ts, ".", string(body)))
		}
		if !strings.Contains(sig, of[scheme]) {
			t.Fatalf("%s takes %q", scheme, sig)
		}
	})
}
