package hook_test

import (
	"bytes"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stint-dev/stint/internal/hook"
)

// jsonOf is a request of a hook that asks for no proof.
func jsonOf(body string) hook.Request {
	return hook.Request{Headers: headers{"Content-Type": {"application/json; charset=utf-8"}}, Body: []byte(body)}
}

// signedFile is a file, signed as its sender does it.
func signedFile(t *testing.T, s hook.Scheme, name string) hook.Request {
	t.Helper()
	b := file(t, name)
	return hook.Request{Headers: sign(t, s, secretOf(s), b, noon()), Body: b}
}

// Bodies of several bytes a character, and those that writing anew would change, are
// signed and kept as they came.
func TestBytesStay(t *testing.T) {
	for _, name := range []string{"github-emoji.json", "github-escapes.json"} {
		r := signedFile(t, hook.GitHub, name)
		d := accept(t, of(t, hook.GitHub), r, plainSecret)
		if !bytes.Equal(d.Input, file(t, name)) {
			t.Errorf("%s: the input is %q", name, d.Input)
		}
		// The same value in other bytes is another body.
		other := strings.NewReplacer("🚒", `\ud83d\ude92`, `\/`, "/", "1E3", "1000").Replace(string(r.Body))
		v, err := of(t, hook.GitHub).Receive(hook.Request{Headers: r.Headers, Body: []byte(other)}, []string{plainSecret}, noon())
		refused(t, v, err, 401, "match")
	}
	h := compile(t, hook.Definition{Scheme: hook.GitHub, Input: "${ body.dup } ${ body.e } ${ body.a }"})
	d := accept(t, h, signedFile(t, hook.GitHub, "github-escapes.json"), plainSecret)
	if string(d.Input) != "2 1000 \x1b[31mred\x1b[0m \u2028 /path" {
		t.Errorf("of two members of one name the last counts: %q", d.Input)
	}
}

// Text of a delivery is never read as a template.
func TestPayloadIsNotExpanded(t *testing.T) {
	h := compile(t, hook.Definition{Scheme: hook.GitHub, Input: "From ${ body.sender.login }: ${ body.text } $${ body.text }", Labels: map[string]string{"text": "${body.text}"}})
	body := []byte(`{"sender":{"login":"dev-bot[bot]"},"text":"https://x/gists{/gist_id} ${ raw } $${ x } {{ .Body }}"}`)
	d := accept(t, h, hook.Request{Headers: sign(t, hook.GitHub, plainSecret, body, noon()), Body: body}, plainSecret)
	want := "From dev-bot[bot]: https://x/gists{/gist_id} ${ raw } $${ x } {{ .Body }} ${ body.text }"
	if string(d.Input) != want || d.Labels["text"] != "https://x/gists{/gist_id} ${ raw } $${ x } {{ .Body }}" {
		t.Errorf("got %q, %v", d.Input, d.Labels)
	}
}

// Handshakes are answered, after they are verified, and begin nothing.
func TestHandshakes(t *testing.T) {
	v, err := of(t, hook.Slack).Receive(signedFile(t, hook.Slack, "slack-challenge.json"), []string{plainSecret}, noon())
	if err != nil || v.Decision != hook.Answer || v.Reply != (hook.Reply{Status: 200, Body: "3eZbrw1aBm2rZgRNFdxV2595E9CY"}) {
		t.Errorf("challenge: %+v, %v", v, err)
	}
	r := signedFile(t, hook.GitHub, "github-ping.json")
	r.Headers["X-Github-Event"] = []string{"ping"}
	if v, err = of(t, hook.GitHub).Receive(r, []string{plainSecret}, noon()); err != nil || v.Decision != hook.Answer || v.Reply.Status != 200 {
		t.Errorf("ping: %+v, %v", v, err)
	}
	for _, body := range []string{`{"type":"url_verification"}`, `{"type":"url_verification","challenge":1}`, `{"type":"url_verification","challenge":"a\nb"}`,
		`{"type":"url_verification","challenge":"` + strings.Repeat("a", 1025) + `"}`} {
		v, err := of(t, hook.Slack).Receive(hook.Request{Headers: sign(t, hook.Slack, plainSecret, []byte(body), noon()), Body: []byte(body)}, []string{plainSecret}, noon())
		refused(t, v, err, 400, "challenge")
	}
	// The handshake of one scheme is a delivery of another.
	accept(t, of(t, hook.None), jsonOf(`{"type":"url_verification","challenge":"x"}`))
}

// Genuine bodies that cannot be read.
func TestBadBodies(t *testing.T) {
	for body, reason := range map[string]string{
		"": "empty", " ": "ends too early", "{": "ends too early", `{"a":1}x`: "follows", `{"a":1}{}`: "follows", "{'a':1}": "byte 2", "\xef\xbb\xbf{}": "byte 1", "nan": "not JSON",
		strings.Repeat("[", 20000): "not JSON", "\x1f\x8b\x08": "byte 1",
	} {
		v, err := of(t, hook.None).Receive(jsonOf(body), nil, noon())
		refused(t, v, err, 400, reason)
	}
	for _, scheme := range signing() {
		v, err := of(t, scheme).Receive(hook.Request{Headers: sign(t, scheme, secretOf(scheme), nil, noon())}, []string{secretOf(scheme)}, noon())
		refused(t, v, err, 400, "empty")
	}
	for coding, status := range map[string]int{"gzip": 415, "deflate": 415, "br, gzip": 415, "identity": 200, "": 200} {
		r := jsonOf("{}")
		r.Headers["Content-Encoding"] = []string{coding}
		if _, err := of(t, hook.None).Receive(r, nil, noon()); hook.Status(err) != status {
			t.Errorf("%q: %v", coding, err)
		}
	}
	r := jsonOf("a=%zz")
	r.Headers["Content-Type"] = []string{"application/x-www-form-urlencoded"}
	v, err := of(t, hook.None).Receive(r, nil, noon())
	refused(t, v, err, 400, "form")
	// Of GitHub the id is in a header.
	for id, reason := range map[string]string{"": "missing", "é": "ASCII"} {
		r := signedFile(t, hook.GitHub, "github-emoji.json")
		r.Headers["X-Github-Delivery"] = []string{id}
		v, err := of(t, hook.GitHub).Receive(r, []string{plainSecret}, noon())
		refused(t, v, err, 400, reason)
	}
}

// The limit is of the bytes that there are; events of 25 MiB are taken where it is raised.
func TestBodyLimit(t *testing.T) {
	text := func(n int) []byte { return []byte(`"` + strings.Repeat("x", n-2) + `"`) }
	for _, c := range []struct {
		limit  int64
		size   int
		status int
	}{
		{0, 1 << 19, 200}, {0, 1 << 20, 200}, {0, 1<<20 + 1, 413}, {0, 4 << 20, 413}, {26 << 20, 5 << 20, 200}, {26 << 20, 25 << 20, 200}, {26 << 20, 26<<20 + 1, 413}, {2, 2, 200}, {2, 3, 413},
	} {
		h := compile(t, hook.Definition{Scheme: hook.GitHub, Limits: hook.Limits{Body: c.limit}, When: `body contains ""`})
		body := text(c.size)
		_, err := h.Receive(hook.Request{Headers: sign(t, hook.GitHub, plainSecret, body, noon()), Body: body}, []string{plainSecret}, noon())
		if hook.Status(err) != c.status {
			t.Errorf("%d of %d bytes: %v", c.size, c.limit, err)
		}
	}
	// It is looked at first: hashing what is too long would be work for a stranger.
	v, err := of(t, hook.GitHub).Receive(hook.Request{Body: make([]byte, 1<<20+1)}, []string{plainSecret}, noon())
	refused(t, v, err, 413, "1048576")
}

// Both events of a key are kept, in the order of arrival and with their own times.
func TestOutOfOrder(t *testing.T) {
	h := compile(t, hook.Definition{Scheme: hook.Stripe, Key: "body.data.object.id", Order: "body.created", Late: hook.DropLate})
	updated := accept(t, h, signedFile(t, hook.Stripe, "stripe-1-updated.json"), plainSecret)
	created := accept(t, h, signedFile(t, hook.Stripe, "stripe-2-created.json"), plainSecret)
	if updated.Key != "sub_1" || created.Key != "sub_1" || updated.ID != "evt_b" || created.ID != "evt_a" || created.Event != "customer.subscription.created" {
		t.Errorf("got %+v and %+v", updated, created)
	}
	if *updated.Order != 1767225602 || *created.Order != 1767225601 || h.Definition().Late != hook.DropLate {
		t.Errorf("got %d and %d", *updated.Order, *created.Order)
	}
	for body, want := range map[string]string{
		`{"at":"2026-05-01T10:00:00.014925565Z"}`: "1777629600014925", `{"at":"0001-01-01T00:00:00Z"}`: "-62135596800000000", `{"at":"2026-05-01T12:00:00+02:00"}`: "1777629600000000",
		`{"at":9007199254740993}`: "9007199254740993", `{"at":-5}`: "-5", `{"at":1e3}`: "1000", `{"at":null}`: "none", `{}`: "none",
		`{"at":"yesterday"}`: "422", `{"at":1.5}`: "422", `{"at":[1]}`: "422", `{"at":true}`: "422", `{"at":1e300}`: "422", `{"at":18446744073709551616}`: "422",
	} {
		v, err := compile(t, hook.Definition{Order: "body.at"}).Receive(jsonOf(body), nil, noon())
		got := "none"
		if err != nil {
			got = fmt.Sprint(hook.Status(err))
		} else if v.Delivery.Order != nil {
			got = fmt.Sprint(*v.Delivery.Order)
		}
		if got != want {
			t.Errorf("%s: %s, want %s", body, got, want)
		}
	}
}

// A batch of alerts is one delivery. Its year 1, its nine digits and its truncation reach
// the agent as they are, and its group can be the key.
func TestAlertmanager(t *testing.T) {
	h := compile(t, hook.Definition{
		When: `any(body.alerts, .status == "firing")`, Key: "body.groupKey", Session: `"alert " + body.groupLabels.alertname`,
		Labels: map[string]string{"severity": "${ body.commonLabels.severity }", "first": "${ body.alerts[0].fingerprint }", "none": "${ body.commonLabels.none ?? '' }"},
		Input:  "${ len(body.alerts) } alerts, ${ body.truncatedAlerts } left out\n${ map(body.alerts, .startsAt + ' ' + .endsAt) | join('\\n') }\n${ body.alerts[1] }",
	})
	d := accept(t, h, hook.Request{Headers: headers{"Content-Type": {"application/json"}}, Body: file(t, "alertmanager-mixed.json")})
	want := "2 alerts, 3 left out\n2026-05-01T10:00:00.014925565Z 0001-01-01T00:00:00Z\n2026-05-01T09:00:00+02:00 2026-05-01T10:01:00Z\n" +
		`{"annotations":{},"endsAt":"2026-05-01T10:01:00Z","fingerprint":"bb22","generatorURL":"","labels":{"alertname":"DiskFull","host":"db-2"},"startsAt":"2026-05-01T09:00:00+02:00","status":"resolved"}`
	if string(d.Input) != want {
		t.Errorf("got %q", d.Input)
	}
	if d.Key != `{}/{team="core"}:{alertname="DiskFull"}` || d.Session != "alert-diskfull" || fmt.Sprint(d.Labels) != "map[first:aa11 severity:page]" {
		t.Errorf("got %+v", d)
	}
}

// Forms are read once they are verified: slash commands, and JSON in a field.
func TestForms(t *testing.T) {
	form := func(s hook.Scheme, body string) hook.Request {
		h := sign(t, s, secretOf(s), []byte(body), noon())
		h["Content-Type"] = []string{"application/x-www-form-urlencoded; charset=utf-8"}
		return hook.Request{Headers: h, Body: []byte(body)}
	}
	slash := "token=x&command=%2Fdeploy&text=web+now&tag=a&tag=b"
	h := compile(t, hook.Definition{Scheme: hook.Slack, Input: "${ body.text } ${ body.tag }"})
	if d := accept(t, h, form(hook.Slack, slash), plainSecret); d.Event != "/deploy" || string(d.Input) != `web now ["a","b"]` || !strings.HasPrefix(d.ID, "sha256:") {
		t.Errorf("got %+v", d)
	}
	payload := "payload=" + url.QueryEscape(string(file(t, "github-emoji.json")))
	for s, want := range map[hook.Scheme]string{hook.GitHub: "9007199254740993", hook.Slack: "9007199254740993", hook.None: "422"} {
		v, err := compile(t, hook.Definition{Scheme: s, Input: "${ body.comment.id }"}).Receive(form(s, payload), []string{plainSecret}, noon())
		if got := string(v.Delivery.Input); got != want && fmt.Sprint(hook.Status(err)) != want {
			t.Errorf("%s: %q, %v", s, got, err)
		}
	}
	v, err := of(t, hook.GitHub).Receive(form(hook.GitHub, "payload=%7B"), []string{plainSecret}, noon())
	refused(t, v, err, 400, "JSON")
	r := hook.Request{Headers: headers{"Content-Type": {"text/plain"}}, Body: []byte("disk {full} \xff")}
	if d := accept(t, compile(t, hook.Definition{Input: "${ body }"}), r); string(d.Input) != "disk {full} \xff" {
		t.Errorf("got %q", d.Input)
	}
}

// What a delivery is called, with every scheme and with dedupe, and whether that is proven.
func TestIDs(t *testing.T) {
	body := `{"id":"evt_1","event_id":"Ev1","n":9007199254740993,"long":"` + strings.Repeat("x", 600) + `","odd":"a\nb"}`
	digest := fmt.Sprintf("sha256:%s", sum(body))
	for _, c := range []struct {
		scheme     hook.Scheme
		dedupe, id string
		covered    bool
	}{
		{hook.Standard, "", "msg_1", true}, {hook.GitHub, "", "d-1", false}, {hook.Stripe, "", "evt_1", true}, {hook.Slack, "", "Ev1", true},
		{hook.Generic, "", digest, true}, {hook.Bearer, "", digest, true}, {hook.None, "", digest, true},
		{hook.GitHub, "body.id", "evt_1", true}, {hook.Generic, "body.n", "9007199254740993", true}, {hook.Generic, `headers["x-extra"]`, "e-1", false},
		{hook.Generic, `$env["headers"]["x-extra"]`, "e-1", false}, {hook.Bearer, `headers["x-extra"]`, "e-1", true}, {hook.None, "query.id", "q-1", true},
		{hook.None, "body.long", fmt.Sprintf("sha256:%s", sum(strings.Repeat("x", 600))), true}, {hook.None, "body.odd", fmt.Sprintf("sha256:%s", sum("a\nb")), true},
		{hook.None, "body.none", "422", true}, {hook.None, `""`, "422", true}, {hook.None, "body", "422", true},
	} {
		d := hook.Definition{Scheme: c.scheme, Dedupe: c.dedupe}
		if c.scheme == hook.Generic {
			d.HMAC = genericHMAC()
		}
		r := hook.Request{Headers: sign(t, c.scheme, secretOf(c.scheme), []byte(body), noon()), Query: map[string][]string{"id": {"q-1", "q-2"}}, Body: []byte(body)}
		r.Headers["X-Extra"] = []string{"e-1"}
		v, err := compile(t, d).Receive(r, []string{secretOf(c.scheme)}, noon())
		if err != nil {
			if fmt.Sprint(hook.Status(err)) != c.id {
				t.Errorf("%s %s: %v", c.scheme, c.dedupe, err)
			}
			continue
		}
		if got := v.Delivery; got.ID != c.id || got.Covered != c.covered || got.Digest != sum(body) {
			t.Errorf("%s %s: %s, %v", c.scheme, c.dedupe, got.ID, got.Covered)
		}
	}
}

// What expressions see of headers, and what they do not.
func TestHeadersShown(t *testing.T) {
	h := compile(t, hook.Definition{Scheme: hook.Bearer, Input: `${ toJSON(headers) } ${ headers["authorization"] } ${ query } ${ event }`})
	r := hook.Request{Headers: headers{"Authorization": {"Bearer correct horse"}, "Cookie": {"a=correct horse"}, "X-A": {"1", "2"}}, Query: map[string][]string{"q": {"<a>"}}, Body: []byte("{}")}
	if d := accept(t, h, r, "correct horse"); string(d.Input) != `{"x-a":"1, 2"}  {"q":"<a>"} ` {
		t.Errorf("got %q", d.Input)
	}
}

// A delivery that when leaves out is ignored, and nothing else of it is looked at.
func TestWhen(t *testing.T) {
	h := compile(t, hook.Definition{When: `event == "deploy" && body.env == "prod"`, Input: "${ body.missing.member }"})
	v, err := h.Receive(jsonOf(`{"type":"deploy","env":"dev"}`), nil, noon())
	if err != nil || v.Decision != hook.Ignore || v.Reason == "" {
		t.Errorf("got %+v, %v", v, err)
	}
	v, err = h.Receive(jsonOf(`{"type":"deploy","env":"prod"}`), nil, noon())
	refused(t, v, err, 422, "input, line 1")
	for body, status := range map[string]int{`{"x":true}`: 200, `{"x":null}`: 200, `{}`: 200, `{"x":1}`: 422, `{"x":"true"}`: 422, `[]`: 422, `null`: 422} {
		if _, err := compile(t, hook.Definition{When: "body.x"}).Receive(jsonOf(body), nil, noon()); hook.Status(err) != status {
			t.Errorf("%s: %v", body, err)
		}
	}
}

// Names and labels are made to fit, whatever a delivery has in them.
func TestNamesAndLabels(t *testing.T) {
	h := compile(t, hook.Definition{Session: "body.t", Labels: map[string]string{"t": "${ body.t }"}})
	for text, want := range map[string][2]string{
		"Fix #12: \x07 crash": {"fix-12-crash", "Fix #12:   crash"}, "../../etc/cron.d/x": {"etc-cron.d-x", "../../etc/cron.d/x"}, "-rf": {"rf", "-rf"}, "": {"", ""}, "\u202ea": {"a", "\u202ea"},
		strings.Repeat("é", 300): {"", strings.Repeat("é", 255) + "…"}, strings.Repeat("a", 300): {strings.Repeat("a", 64), strings.Repeat("a", 255) + "…"}, "a\nb\x00": {"a-b", "a b"},
	} {
		d := accept(t, h, jsonOf(fmt.Sprintf(`{"t":%s}`, quoted(text))))
		if d.Session != want[0] || d.Labels["t"] != want[1] {
			t.Errorf("%q: %q, %q", text, d.Session, d.Labels["t"])
		}
	}
	d := accept(t, compile(t, hook.Definition{Session: "body.none", Key: "body.none"}), jsonOf("{}"))
	if d.Session != "" || d.Key != "" {
		t.Errorf("got %+v", d)
	}
}

// What is kept of a request is what the hook looks at, and nothing that proves who sent it;
// judged again, without a signature and however late, it says the same.
func TestJudgedAgain(t *testing.T) {
	const body = `{"n":1}`
	for _, s := range hook.Schemes() {
		d := hook.Definition{Scheme: s, When: `headers["x-kind"] == "good" && get(headers, "x-event-key") == "repo:push" && query.page == "7"`,
			Key: `headers["x-kind"] + event`, Input: `${ headers["x-long"] ?? "gone" }${ headers["x-api-key"] ?? "gone" }`, Labels: map[string]string{"n": `${ string(body.n) + (headers.authorization ?? "") }`}}
		if s == hook.Generic {
			d.HMAC = genericHMAC()
		}
		h := compile(t, d)
		r := hook.Request{Headers: sign(t, s, secretOf(s), []byte(body), noon()), Query: map[string][]string{"page": {"7", "8"}, "other": {"x"}}, Body: []byte(body)}
		for name, text := range map[string]string{"X-Kind": "good", "X-Event-Key": "repo:push", "X-Long": strings.Repeat("x", 2000), "X-Api-Key": "s", "X-Other": "x", "Cookie": "c"} {
			r.Headers[name] = []string{text}
		}
		first := accept(t, h, r, secretOf(s))
		kept := h.Keep(r)
		text := fmt.Sprint(kept)
		for _, out := range []string{"signature", "authorization", "cookie", "x-other", "x-long", "x-api-key", "other"} {
			if strings.Contains(text, out+":") {
				t.Errorf("%s: %s is kept: %s", s, out, text)
			}
		}
		v, err := h.Judge(kept.Request([]byte(body)))
		if err != nil || v.Decision != hook.Accept {
			t.Errorf("%s: %+v %v", s, v, err)
			continue
		}
		first.At, v.Delivery.At = time.Time{}, time.Time{}
		first.Input, v.Delivery.Input = nil, nil // of what is not kept nothing can be said
		if fmt.Sprintf("%+v", v.Delivery) != fmt.Sprintf("%+v", first) {
			t.Errorf("%s: got %+v, want %+v", s, v.Delivery, first)
		}
	}
	if _, err := compile(t, hook.Definition{Limits: hook.Limits{Body: 3}}).Judge(hook.Request{Body: []byte(body)}); hook.Status(err) != 413 {
		t.Errorf("got %v", err)
	}
}
