package cases_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/internal/hook"
	"github.com/stint-dev/stint/internal/trigger"
)

// TestB01MultiByteBody: a body with signs of several bytes is verified and kept by its
// bytes; a signature over the same text in other bytes is none (github/docs#3567,
// octokit/webhooks.js#1155, freescout-help-desk/freescout#4351).
func TestB01MultiByteBody(t *testing.T) {
	t.Parallel()
	v := hooked(t, "", "gh: {agent: keep, scheme: github, secret: env:HOOK_SECRET}").serves()
	body := posted(t, "github-emoji.json")
	d := v.takes(202, "gh", body, gitHub("d-1", body))
	if got := v.got(d.Session); got != body {
		t.Errorf("the agent got %q", got)
	}
	if kept := unmarshal[delivery](t, v.gets("/v1/hooks/gh/deliveries/d-1")); kept.BodyText == nil || *kept.BodyText != body {
		t.Errorf("the ledger has %+v", kept)
	}
	other := rewritten(t, body)
	if other == body {
		t.Fatal("the body has no sign of several bytes")
	}
	v.takes(401, "gh", body, gitHub("d-2", other))
	v.becomes(d.Session, "completed")
	if n := v.sessions(); n != 1 {
		t.Errorf("there are %d sessions, want one", n)
	}
	v.ends()
	v.verified()
}

// TestB02BodyIsNotWrittenAnew: a body that reading and writing would change reaches the
// agent as it came; of two members of one name expressions see the last one
// (octokit/webhooks.js#71, jonpulice/node-shopify-auth#2).
func TestB02BodyIsNotWrittenAnew(t *testing.T) {
	t.Parallel()
	v := hooked(t, "", "raw: {agent: keep, scheme: github, secret: env:HOOK_SECRET}",
		"read: {agent: keep, scheme: github, secret: env:HOOK_SECRET, input: '${ body.dup } ${ body.e } ${ body.a } ${ raw }'}").serves()
	body := posted(t, "github-escapes.json")
	if got := v.got(v.takes(202, "raw", body, gitHub("d-1", body)).Session); got != body {
		t.Errorf("the agent got %q", got)
	}
	if got, want := v.got(v.takes(202, "read", body, gitHub("d-1", body)).Session), "2 1000 \x1b[31mred\x1b[0m \u2028 /path "+body; got != want {
		t.Errorf("the agent got %q, want %q", got, want)
	}
	v.takes(401, "raw", strings.TrimSuffix(body, "\n"), gitHub("d-2", body))
	v.takes(401, "raw", body, gitHub("d-2", rewritten(t, body)))
}

// TestB03Redelivery: the same delivery comes again while its session runs, many times at
// once, after the server was killed, and when the session has ended: there is one session,
// which every answer names (coleam00/Archon#1951, cyrusagents/cyrus#1450,
// The-PR-Agent/pr-agent#3373, devops-thiago/ThrillhouseBot#80).
func TestB03Redelivery(t *testing.T) {
	t.Parallel()
	s := hooked(t, "", "gh: {agent: hold, scheme: github, secret: env:HOOK_SECRET}")
	v := s.serves()
	body := posted(t, "github-emoji.json")
	var wg sync.WaitGroup
	answers := make([]answer, 16)
	for i := range answers {
		wg.Go(func() { answers[i] = v.sends("gh", body, gitHub("d-1", body)) })
	}
	wg.Wait()
	first := 0
	id := ""
	for _, a := range answers {
		d := unmarshal[delivery](t, a.text)
		if id == "" {
			id = d.Session
		}
		switch {
		case a.status == 202 && d.Result == "created" && !d.Repeated:
			first++
		case a.status != 200 || !d.Repeated:
			t.Errorf("at once: %d %s", a.status, a.text)
		}
		if d.Session != id {
			t.Errorf("at once: the sessions %s and %s", d.Session, id)
		}
	}
	if first != 1 {
		t.Errorf("%d deliveries began a session", first)
	}
	again := func(when string) {
		t.Helper()
		if d := v.takes(200, "gh", body, gitHub("d-1", body)); d.Session != id || !d.Repeated {
			t.Errorf("%s: %+v", when, d)
		}
	}
	v.got(id)
	again("while it runs")
	v.run.kill()
	v = s.serves()
	again("after a restart")
	s.write("go", "")
	v.becomes(id, "completed")
	again("after its end")
	if a := v.sends("gh", `{"other":1}`, gitHub("d-1", `{"other":1}`)); a.status != 409 {
		t.Errorf("another body under its id: %d %s", a.status, a.text)
	}
	if n := v.sessions(); n != 1 {
		t.Errorf("there are %d sessions, want one", n)
	}
	v.ends()
	v.verified()
}

// TestB04CapturedRequest: a captured request is refused once its signed time is past, or
// if that lies in the future or is one of milliseconds; before that, and where no time is
// signed, it leads to nothing new, under another id either (NousResearch/hermes-agent#58461,
// openclaw/openclaw#143484, fastagent-sh/fastagent#385, deskhq/the-desk#1176).
func TestB04CapturedRequest(t *testing.T) {
	t.Parallel()
	v := hooked(t, "", "slack: {agent: keep, scheme: slack, secret: env:HOOK_SECRET}", "stripe: {agent: keep, scheme: stripe, secret: env:HOOK_SECRET}",
		"gh: {agent: keep, scheme: github, secret: env:HOOK_SECRET}").serves()
	const event = `{"type":"event_callback","id":"evt_1","event_id":"Ev1"}`
	for name, sign := range map[string]func(at, body string) headers{"slack": slack, "stripe": stripe} {
		present, old := now(0), now(-10*time.Minute)
		for what, at := range map[string]string{
			"ten minutes old": old, "of the future": now(10 * time.Minute), "milliseconds": present + "000", "old milliseconds": old + "000",
			"none": "", "a fraction": present + ".0", "an exponent": "1.8e9", "signed": "+" + present, "huge": strings.Repeat("9", 30),
		} {
			if a := v.sends(name, event, sign(at, event)); a.status != 401 {
				t.Errorf("%s, a time that is %s: %d %s", name, what, a.status, a.text)
			}
		}
		moved := sign(old, event)
		for k := range moved {
			moved[k] = strings.ReplaceAll(moved[k], old, present)
		}
		v.takes(401, name, event, moved)
	}
	if n := v.sessions(); n != 0 {
		t.Fatalf("what was captured long ago began %d sessions", n)
	}
	captured := map[string]headers{"slack": slack(now(0), event), "stripe": stripe(now(0), event), "gh": gitHub("d-1", event)}
	for name, h := range captured {
		first := v.takes(202, name, event, h)
		for range 3 {
			if d := v.takes(200, name, event, h); d.Session != first.Session || !d.Repeated {
				t.Errorf("%s, captured: %+v", name, d)
			}
		}
		if d := v.takes(200, name, event, h.with(headers{"X-GitHub-Delivery": "another"})); d.Session != first.Session || !d.Repeated {
			t.Errorf("%s, captured, under another id: %+v", name, d)
		}
	}
	if n := v.sessions(); n != len(captured) {
		t.Errorf("%d captured requests began %d sessions", len(captured), n)
	}
}

// TestB03MuchLater: a delivery that comes again after a minute, an hour or a month is
// known, on servers that come and go; docs/hooks.md says that this ends after 30 days.
func TestB03MuchLater(t *testing.T) {
	served(t, func(t *testing.T, r *rota) {
		def := hook.Definition{Name: "gh", Agent: "case", Scheme: hook.GitHub, Secrets: []string{"env:HOOK_SECRET"}}
		h, err := hook.Compile(def)
		if err != nil {
			t.Fatal(err)
		}
		body := posted(t, "github-emoji.json")
		again := func(later time.Duration, want int) delivery {
			t.Helper()
			r.down()
			r.pass(later)
			r.up()
			recv := trigger.NewReceiver(r.runner, r.system, r.store, nil)
			recv.Set([]trigger.Target{{Hook: h, Secrets: func() ([]string, error) { return []string{hookSecret}, nil },
				Request: func() (engine.Request, error) { return engine.Request{Agent: r.agent()}, nil }}})
			req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/hooks/gh", strings.NewReader(body))
			req.SetPathValue("name", "gh")
			for name, value := range gitHub("d-1", body) {
				req.Header.Set(name, value)
			}
			w := httptest.NewRecorder()
			recv.ServeHTTP(w, req)
			if w.Code != want {
				t.Fatalf("%v later: %d %s, want %d", later, w.Code, w.Body, want)
			}
			return unmarshal[delivery](t, w.Body.String())
		}
		first := again(0, 202)
		for _, later := range []time.Duration{time.Minute, time.Hour, 29 * 24 * time.Hour} {
			if d := again(later, 200); d.Session != first.Session || !d.Repeated {
				t.Errorf("%v later: %+v", later, d)
			}
		}
		if d := again(2*24*time.Hour, 202); d.Session == first.Session || d.Repeated {
			t.Errorf("after 31 days: %+v", d)
		}
	})
}
