package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stint-dev/stint/internal/config"
	"github.com/stint-dev/stint/internal/endpoint"
)

// An endpoint of stint.yaml is told what happens to sessions, in the form that
// docs/notify.md shows; what it takes is listed, and the store that has it is sound.
func TestNotify(t *testing.T) {
	t.Setenv("NOTIFY_SECRET", "whsec_YSBmbG9vZCBvZiBkZWxpdmVyaWVzLCBhbmQgbm8gc2VjcmV0")
	var mu sync.Mutex
	var got []string
	pager := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		var m struct {
			Type string
			Data struct{ Name, Status, Reason string }
		}
		if err := json.Unmarshal(b, &m); err != nil || !strings.HasPrefix(r.Header.Get("Webhook-Id"), "evt_") || !strings.HasPrefix(r.Header.Get("Webhook-Signature"), "v1,") {
			t.Errorf("got %v, %s, %v", r.Header, b, err)
		}
		got = append(got, m.Type+" "+m.Data.Name+" "+m.Data.Status)
	}))
	defer pager.Close()
	d := newDesk(t)
	d.put("stint.yaml", `agents:
  good: {kind: exec, command: ["true"], protocol: none, effect: read}
  bad: {kind: exec, command: ["false"], protocol: none, effect: read, retry: {attempts: 1}}
notify:
  pager: {url: "`+pager.URL+`", secret: env:NOTIFY_SECRET, allow_private: true, agents: [bad], events: [session.failed, session.created]}
`)
	r, url := d.serves()
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/v1/sessions", strings.NewReader(`{"agent":"bad","name":"bad-1"}`))
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", "one")
	if code, body := status(t, http.DefaultClient, req); code != http.StatusCreated {
		t.Fatalf("got %d: %s", code, body)
	}
	http.DefaultClient.CloseIdleConnections()
	d.ok("start", "good")
	d.has("session.failed", "notify", "history", "pager")
	r.ends()
	mu.Lock()
	if all := strings.Join(got, ", "); all != "session.created bad-1 pending, session.failed bad-1 failed" {
		t.Errorf("the endpoint got %s", all)
	}
	mu.Unlock()
	if out := d.ok("notify", "history", "pager"); !regexp.MustCompile(`session.failed +\S+ +delivered +1\b`).MatchString(out) {
		t.Errorf("got\n%s", out)
	}
	if out := d.ok("notify", "ls"); !regexp.MustCompile(`pager +on +0\b`).MatchString(out) {
		t.Errorf("got\n%s", out)
	}
	d.fails(exitRefused, "is not paused", "notify", "resume", "pager")
	d.fails(exitNotFound, "there is no endpoint", "notify", "history", "x")
	if out := d.ok("verify", "--all"); !strings.Contains(out, "all sound") {
		t.Errorf("got\n%s", out)
	}
	d.ok("db", "backup", d.dir+"/copy.db") // which verifies what it copies
}

// The events that a stint.yaml may name are those that there are, and docs/notify.md has
// each; its example is read as it stands there.
func TestNotifyPage(t *testing.T) {
	b, err := os.ReadFile("../../docs/notify.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(b)
	for _, event := range endpoint.Events() {
		if !strings.Contains(page, "\n| `"+string(event)+"` |") {
			t.Errorf("the page has no row for %s", event)
		}
		text := "agents: {}\nnotify: {a: {url: \"https://example.com\", secret: env:A, events: [" + string(event) + "]}}\n"
		if _, err := config.Parse("stint.yaml", []byte(text)); err != nil {
			t.Errorf("%s: %v", event, err)
		}
	}
	shown := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindStringSubmatch(page)
	if shown == nil {
		t.Fatal("the page shows no stint.yaml")
	}
	if f, err := config.Parse("stint.yaml", []byte(shown[1])); err != nil || len(f.Notify) != 3 {
		t.Errorf("got %v", err)
	}
}

// A program of stint.yaml is told what needs a person, with its secret and as the page says;
// what it refuses is in everybody's history, in the API and in the system journal. A sample
// goes through any endpoint.
func TestNotifyProgram(t *testing.T) {
	t.Setenv("CHAT_TOKEN", "tok-123456")
	d := newDesk(t)
	d.put("tell", "#!/bin/sh\ngrep -q session.failed && { echo \"$TOKEN says no\"; exit 3; }\necho well\n")
	if err := os.Chmod(d.dir+"/tell", 0o700); err != nil {
		t.Fatal(err)
	}
	d.put("stint.yaml", `agents:
  bad: {kind: exec, command: ["false"], protocol: none, effect: read, retry: {attempts: 1}}
notify:
  desk: {exec: {command: [./tell], env: {TOKEN: "env:CHAT_TOKEN"}}, events: [needs-you, bad-end]}
  mute: {exec: {command: [sh, -c, "exit 75"]}, agents: [bad], events: [needs-you]}
  lost: {url: "https://127.0.0.1:1/x", secret: "env:NOT_SET"}
`)
	if out := d.ok("notify", "test", "desk"); !strings.Contains(out, "desk took the sample evt_") || !strings.Contains(out, "It said: well") {
		t.Errorf("got %s", out)
	}
	d.fails(exitUnavailable, "mute did not take the sample: it ended with 75", "notify", "test", "mute")
	d.fails(exitUnavailable, "its secret cannot be read", "notify", "test", "lost")
	d.fails(exitNotFound, "has no endpoint \"x\"", "notify", "test", "x")
	r, url := d.serves()
	d.ok("start", "bad")
	d.has("session.failed", "notify", "history")
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/v1/notifications?endpoint=desk", nil)
	code, body := status(t, http.DefaultClient, req)
	if code != http.StatusOK || !strings.Contains(body, `"result":"refused"`) || !strings.Contains(body, "{{secret:TOKEN}} says no") {
		t.Errorf("got %d: %s", code, body)
	}
	http.DefaultClient.CloseIdleConnections()
	r.ends()
	if out := d.ok("notify", "history"); !regexp.MustCompile(`desk +session.failed +\S+ +refused +1 +\{\{secret:TOKEN\}\} says no`).MatchString(out) {
		t.Errorf("got\n%s", out)
	}
	if out := d.ok("verify", "--all"); !strings.Contains(out, "all sound") {
		t.Errorf("got\n%s", out)
	}
}
