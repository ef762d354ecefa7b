package cases_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
)

// heard is the state of testdata/hears.py.
type heard struct {
	Heard []string
	Loops []int
}

// hears waits until the agent has heard so many messages.
func (v *server) hears(id string, n int) (h heard) {
	v.t.Helper()
	await(v.t, fmt.Sprintf("agent that has heard %d messages", n), func() bool {
		a := v.asks(v.t.Context(), http.MethodGet, "/v1/sessions/"+id+"/state", http.NoBody, nil)
		if a.status != http.StatusOK {
			return false // there is none yet
		}
		h = unmarshal[heard](v.t, a.text)
		return len(h.Heard) >= n
	})
	return h
}

// TestB07OutOfOrder: of a customer the older event comes after the newer one. Both are
// kept, in the order in which they came and with the times that they say; where the hook
// drops what is late, the older one is recorded and does nothing. Events of one key are
// handled one after the other (stripe/stripe-cli#418, laravel/cashier-stripe#1201,
// webrenew/memories#397).
func TestB07OutOfOrder(t *testing.T) {
	t.Parallel()
	const rest = "agent: hears, scheme: stripe, secret: env:HOOK_SECRET, key: body.data.object.id, order: body.created"
	v := hooked(t, inPython(t, "hears", "hears.py"), "kept: {"+rest+"}", "dropped: {"+rest+", late: drop}").serves()
	updated, created := posted(t, "stripe-1-updated.json"), posted(t, "stripe-2-created.json")
	for hook, want := range map[string][]string{"kept": {"evt_b", "evt_a"}, "dropped": {"evt_b"}} {
		first := v.takes(202, hook, updated, stripe(now(0), updated))
		status, result := 202, "messaged"
		if hook == "dropped" {
			status, result = 200, "dropped"
		}
		if d := v.takes(status, hook, created, stripe(now(0), created)); d.Result != result || status == 202 && d.Session != first.Session {
			t.Errorf("%s: %+v", hook, d)
		}
		if h := v.hears(first.Session, len(want)); !slices.Equal(h.Heard, want) {
			t.Errorf("%s: the agent heard %v", hook, h.Heard)
		}
		ledger := v.deliveries(hook)
		if len(ledger) != 2 || ledger[0].ID != "evt_b" || ledger[1].ID != "evt_a" || ledger[1].Result != result {
			t.Fatalf("%s: the ledger has %+v", hook, ledger)
		}
		for i, at := range []int64{1767225602, 1767225601} {
			if o := ledger[i].Order; o == nil || *o != at {
				t.Errorf("%s: the ledger has %+v, not its time %d", hook, ledger[i], at)
			}
			if text := v.must("hook", "show", hook, ledger[i].ID); !strings.Contains(text, fmt.Sprintf("order    %d", at)) {
				t.Errorf("%s: its time %d is not in\n%s", hook, at, text)
			}
		}
	}
	const events = 40
	var wg sync.WaitGroup
	for i := range events {
		wg.Go(func() {
			body := fmt.Sprintf(`{"id":"evt_%d","created":%d,"type":"t","data":{"object":{"id":"sub_2"}}}`, i, i)
			if a := v.sends("kept", body, stripe(now(0), body)); a.status != 202 {
				t.Errorf("at once: %d %s", a.status, a.text)
			}
		})
	}
	wg.Wait()
	ledger := v.deliveries("kept")[2:]
	session := ledger[0].Session
	h := v.hears(session, events)
	slices.Sort(h.Heard)
	if n := len(slices.Compact(h.Heard)); n != events || len(h.Loops) == 0 {
		t.Errorf("of %d events %d were heard: %+v", events, n, h)
	}
	for _, d := range ledger {
		if d.Session != session {
			t.Errorf("events of one key have the sessions %s and %s", d.Session, session)
		}
	}
	v.ends()
	v.verified()
}

// TestB08AnswerAtOnce: a delivery is answered once it is durable, while the agent is at
// work; what it makes of it can be had later (getarcaneapp/arcane#3469,
// ghostwright/phantom#80, vm0-ai/vm0#23880).
func TestB08AnswerAtOnce(t *testing.T) {
	t.Parallel()
	s := hooked(t, "", "gh: {agent: hold, scheme: github, secret: env:HOOK_SECRET}")
	v := s.serves()
	body := posted(t, "github-emoji.json")
	d := v.takes(202, "gh", body, gitHub("d-1", body)) // the agent is not let go before this is answered
	v.run.kill()                                       // and it is durable
	v = s.serves()
	v.got(d.Session)
	if r := unmarshal[struct{ Ended, Result any }](t, v.gets("/v1/sessions/"+d.Session+"/result")); r.Ended != nil || r.Result != nil {
		t.Errorf("it has a result: %+v", r)
	}
	s.write("go", "")
	v.becomes(d.Session, "completed")
	if r := unmarshal[struct{ Status string }](t, v.gets("/v1/sessions/"+d.Session+"/result")); r.Status != "completed" {
		t.Errorf("its result is %+v", r)
	}
	if text := v.gets("/v1/sessions/" + d.Session + "/entries?body=1000"); !strings.Contains(text, "done") {
		t.Errorf("the word of the agent is not in\n%s", clip(text))
	}
}

// TestB09Handshakes: what a sender does while a hook is set up is answered as it expects,
// and begins nothing; what is no delivery is told so (Slack's url_verification,
// hookdeck/webhook-skills#51, and GitHub's ping).
func TestB09Handshakes(t *testing.T) {
	t.Parallel()
	v := hooked(t, "", "slack: {agent: keep, scheme: slack, secret: env:HOOK_SECRET}", "gh: {agent: keep, scheme: github, secret: env:HOOK_SECRET}",
		"stripe: {agent: keep, scheme: stripe, secret: env:HOOK_SECRET}", "open: {agent: keep, scheme: none}").serves()
	challenge, ping := posted(t, "slack-challenge.json"), posted(t, "github-ping.json")
	asked := unmarshal[struct{ Challenge string }](t, challenge).Challenge
	if a := v.sends("slack", challenge, slack(now(0), challenge)); a.status != 200 || a.text != asked || asked == "" {
		t.Errorf("the challenge: %d %q", a.status, a.text)
	}
	v.takes(401, "slack", challenge, nil)
	event := headers{"X-GitHub-Event": "ping"}
	if a := v.sends("gh", ping, gitHub("d-1", ping).with(event)); a.status != 200 {
		t.Errorf("the ping: %d %q", a.status, a.text)
	}
	v.takes(401, "gh", ping, event)
	for hook, h := range map[string]headers{"slack": slack(now(0), ""), "gh": gitHub("d-2", ""), "stripe": stripe(now(0), ""), "open": nil} {
		v.takes(400, hook, "", h)
		for _, method := range []string{"GET", "HEAD", "PUT", "DELETE"} {
			if a := v.asks(t.Context(), method, "/hooks/"+hook, http.NoBody, nil); a.status != 405 || a.header.Get("Allow") != "POST" {
				t.Errorf("%s %s: %d, Allow: %s, %v", method, hook, a.status, a.header.Get("Allow"), a.err)
			}
		}
		if all := v.deliveries(hook); len(all) != 0 {
			t.Errorf("%s has the deliveries %+v", hook, all)
		}
	}
	v.takes(404, "nobody", "{}", nil)
	if n := v.sessions(); n != 0 {
		t.Errorf("%d sessions began", n)
	}
}

// TestB10Alertmanager: a batch that is firing and resolved at once is one delivery. The
// agent sees its year 1, its nine digits and that some were left out, and the group or a
// fingerprint is its key (bodies of Alertmanager's webhooks, version 4).
func TestB10Alertmanager(t *testing.T) {
	t.Parallel()
	const input = "input: '${ body.status }, ${ body.truncatedAlerts } left out ${ map(body.alerts, .status + \" \" + .startsAt + \" \" + .endsAt) | join(\", \") }'"
	const scheme = "scheme: bearer, secret: env:HOOK_SECRET"
	v := hooked(t, "", "raw: {agent: keep, "+scheme+", key: body.groupKey}", "read: {agent: keep, "+scheme+", "+input+"}",
		"group: {agent: hold, "+scheme+", key: body.groupKey}", "print: {agent: hold, "+scheme+", key: 'body.alerts[0].fingerprint'}",
		`firing: {agent: keep, `+scheme+`, when: 'any(body.alerts, .status == "firing" && .labels.host == "db-2")'}`,
		`once: {agent: keep, `+scheme+`, dedupe: 'map(body.alerts, .fingerprint + .status) | join(",")'}`).serves()
	body, bearer := posted(t, "alertmanager-mixed.json"), headers{"Authorization": "Bearer " + hookSecret}
	if got := v.got(v.takes(202, "raw", body, bearer).Session); got != body {
		t.Errorf("the agent got %q", got)
	}
	want := "firing, 3 left out firing 2026-05-01T10:00:00.014925565Z 0001-01-01T00:00:00Z, resolved 2026-05-01T09:00:00+02:00 2026-05-01T10:01:00Z"
	if got := v.got(v.takes(202, "read", body, bearer).Session); got != want {
		t.Errorf("the agent got %q, want %q", got, want)
	}
	later := strings.Replace(body, `"truncatedAlerts": 3`, `"truncatedAlerts": 0`, 1)
	for hook, key := range map[string]string{"group": `{}/{team="core"}:{alertname="DiskFull"}`, "print": "aa11"} {
		first := v.takes(202, hook, body, bearer)
		if d := v.takes(202, hook, later, bearer); first.Key != key || d.Key != key || d.Result != "messaged" || d.Session != first.Session {
			t.Errorf("%s: %+v, then %+v", hook, first, d)
		}
		if d := v.takes(200, hook, body, bearer); !d.Repeated || d.Session != first.Session {
			t.Errorf("%s, repeated: %+v", hook, d)
		}
	}
	if d := v.takes(200, "firing", body, bearer); d.Result != "ignored" {
		t.Errorf("an alert that is over: %+v", d)
	}
	first := v.takes(202, "once", body, bearer)
	if d := v.takes(200, "once", body, bearer); !d.Repeated || d.Session != first.Session {
		t.Errorf("the same alerts again: %+v", d)
	}
	v.takes(202, "once", strings.Replace(body, `"status": "resolved"`, `"status": "firing"`, 1), bearer)
}
