package main

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"testing"
)

const hookYAML = `agents:
  hello: {kind: exec, command: [cat], protocol: none, effect: read}
hooks:
  issues:
    agent: hello
    scheme: github
    secret: env:HOOK_SECRET
    when: event == "issues" && body.action == "opened"
    key: string(body.issue.number)
    input: Look at ${ body.issue.title }
    labels: {repo: "${ body.repository.full_name }"}
`

// deliver sends what GitHub would.
func deliver(t *testing.T, url, id, event, body, secret string) (int, map[string]any) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewReader([]byte(body)))
	if err != nil {
		t.Fatal(err)
	}
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(body))
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-GitHub-Event", event)
	req.Header.Set("X-GitHub-Delivery", id)
	req.Header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac.Sum(nil)))
	code, text := status(t, http.DefaultClient, req)
	var doc map[string]any
	if err := json.Unmarshal([]byte(text), &doc); err != nil {
		t.Fatalf("%d, %v: %s", code, err, text)
	}
	return code, doc
}

// What GitHub sends begins a session, once; it is listed, shown, tried and delivered again.
func TestHooks(t *testing.T) {
	t.Setenv("HOOK_SECRET", "It's a Secret to Everybody")
	const opened = `{"action":"opened","issue":{"number":7,"title":"It is \u001b[31mred"},"repository":{"full_name":"acme/api"}}`
	d := newDesk(t)
	d.put("stint.yaml", hookYAML+"  broken: {agent: hello, scheme: none, when: event}\n")
	d.put("body.json", opened)
	if out := d.ok("hook", "test", "issues", "-f", d.dir+"/body.json", "-H", "X-GitHub-Event: issues", "-H", "X-GitHub-Delivery: d-0"); !regexp.MustCompile(`(?s)would begin the session issues.*key    7.*acme/api.*Look at It is \\x1b\[31mred`).MatchString(out) {
		t.Errorf("got\n%s", out)
	}
	if out := d.ok("hook", "test", "issues", "-f", d.dir+"/body.json", "-H", "X-GitHub-Event: push", "-H", "X-GitHub-Delivery: d-0"); !strings.Contains(out, "would do nothing with it, which is recorded as ignored") {
		t.Errorf("got\n%s", out)
	}
	r, url := d.serves()
	url += "/hooks/issues"
	code, doc := deliver(t, url, "d-1", "issues", opened, "It's a Secret to Everybody")
	id, _ := doc["session"].(string)
	if code != http.StatusAccepted || id == "" || doc["result"] != "created" {
		t.Fatalf("got %d, %v", code, doc)
	}
	if code, doc = deliver(t, url, "d-1", "issues", opened, "It's a Secret to Everybody"); code != http.StatusOK || doc["session"] != id || doc["repeated"] != true {
		t.Errorf("again: %d, %v", code, doc)
	}
	if code, doc = deliver(t, url, "d-2", "issues", opened, "a guess"); code != http.StatusUnauthorized || doc["session"] != nil {
		t.Errorf("with another secret: %d, %v", code, doc)
	}
	if code, doc = deliver(t, url, "d-3", "push", `{"action":"opened"}`, "It's a Secret to Everybody"); code != http.StatusOK || doc["result"] != "ignored" {
		t.Errorf("another event: %d, %v", code, doc)
	}
	if code, _ = deliver(t, strings.Replace(url, "issues", "nosuch", 1), "d-4", "issues", opened, ""); code != http.StatusNotFound {
		t.Errorf("a hook that is not there: %d", code)
	}
	if code, _ = deliver(t, strings.Replace(url, "issues", "broken", 1), "d-5", "issues", opened, ""); code != http.StatusServiceUnavailable {
		t.Errorf("a hook that is wrong: %d", code)
	}
	d.has("completed", "show", id)
	if out := d.ok("show", id); !strings.Contains(out, "acme/api") {
		t.Errorf("got\n%s", out)
	}
	out := d.ok("hook", "deliveries", "issues")
	if !regexp.MustCompile(`created +issues +7 +\S+ +d-1`).MatchString(out) || !regexp.MustCompile(`ignored +push`).MatchString(out) || strings.Contains(out, "d-2") {
		t.Errorf("got\n%s", out)
	}
	if out = d.ok("hook", "show", "issues", "d-1"); !strings.Contains(out, "x-github-event: issues") || !strings.Contains(out, `"number":7`) || strings.Contains(out, "sha256=") {
		t.Errorf("got\n%s", out)
	}
	if out = d.ok("hook", "ls"); !regexp.MustCompile(`issues +ready +github +hello +/hooks/issues +ignored`).MatchString(out) || !regexp.MustCompile(`broken +wrong here`).MatchString(out) {
		t.Errorf("got\n%s", out)
	}
	if out = d.ok("hook", "redeliver", "issues", "d-1"); !strings.Contains(out, "d-1~order-") || !strings.Contains(out, ": created") {
		t.Errorf("got\n%s", out)
	}
	http.DefaultClient.CloseIdleConnections()
	r.ends()
	if out = d.ok("hook", "redeliver", "issues", "d-1", "--json"); !strings.Contains(out, `"repeats":"d-1"`) {
		t.Errorf("without a server: got\n%s", out)
	}
	d.fails(exitNotFound, "delivery", "hook", "redeliver", "issues", "d-9")
	d.fails(exitNotFound, "", "hook", "show", "issues", "d-9")
	d.fails(exitInvalid, "give the body with --file", "hook", "test", "issues")
}

// A hook that is not there is told from one that nothing came through; what cannot be read
// as a body is the caller's to mend.
func TestNoSuchHook(t *testing.T) {
	d := newDesk(t)
	d.put("stint.yaml", "agents:\n  hello: {kind: exec, command: [cat], protocol: none, effect: read}\nhooks:\n  open: {agent: hello, scheme: none}\n  broken: {agent: hello, scheme: none, when: event}\n")
	d.ok("token", "create", "--role", "viewer", "ann") // makes the store
	for _, name := range []string{"open", "broken"} {
		if out := d.ok("hook", "deliveries", name); !strings.Contains(out, "Nothing came through "+name) {
			t.Errorf("got %s", out)
		}
	}
	d.fails(exitNotFound, "stint hook ls lists", "hook", "deliveries", "opne")
	d.fails(exitNotFound, "stint hook ls lists", "hook", "deliveries", "opne", "--json")
	d.fails(exitNotFound, "stint hook ls lists", "hook", "test", "opne", "-f", d.dir+"/stint.yaml")
	d.fails(exitInvalid, "--file takes a file", "hook", "test", "open", "-f", d.dir)
}
