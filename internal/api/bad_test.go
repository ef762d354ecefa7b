package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/access"
)

// example is a path of a pattern: of a session or a token that is named nothing, of a
// schedule and a hook that are there.
func example(pattern string) string {
	pattern = strings.NewReplacer("/schedules/{name}", "/schedules/morning", "/hooks/{name}", "/hooks/build").Replace(pattern)
	return regexp.MustCompile(`\{[a-z]+\}`).ReplaceAllString(pattern, "nothing")
}

// content is all that a store has of sessions.
func (r *room) content() string {
	r.t.Helper()
	rows, err := r.store.Sessions(r.t.Context(), stint.Filter{})
	if err != nil {
		r.t.Fatal(err)
	}
	b, err := json.Marshal(rows)
	if err != nil {
		r.t.Fatal(err)
	}
	system, err := r.store.Sessions(r.t.Context(), stint.Filter{Trigger: "system"})
	if err != nil {
		r.t.Fatal(err)
	}
	for _, row := range system {
		b = fmt.Appendf(b, " system journal at %d with %d messages", row.Session.Head, row.Unread)
	}
	return fmt.Sprintf("%s %d tokens", b, len(r.keeper.All()))
}

// badBodies are bodies that no route takes.
func badBodies() map[string]string {
	return map[string]string{
		"no JSON": `{"agent":`, "two values": `{} {}`, "an array": `[]`, "a text": `"x"`, "a number": `7`, "a null": `null`, "no UTF-8": "{\"reason\":\"\xff\"}",
		"unknown": `{"agent":"chat","text":"x","verdict":"not","message":"m","nothing":1}`, "another case": `{"Reason":"x","Agent":"chat","TEXT":"x"}`,
		"twice":          `{"reason":"a","reason":"b","agent":"chat","agent":"pay","text":"x","text":"y","message":"a","message":"b"}`,
		"twice, escaped": `{"text":"a","\u0074ext":"b","agent":"chat","\u0061gent":"pay","reason":"a","\u0072eason":"b","message":"a","\u006dessage":"b"}`,
		"wrong types":    `{"agent":7,"text":[],"reason":{},"verdict":true,"from":"1","message":4,"loops":5,"name":[],"from":1.5}`,
		"deep":           strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000),
		"a huge number":  `{"from":1e999}`, "below zero": `{"from":-1,"agent":"","text":"","verdict":"x"}`, "a surrogate": `{"reason":"\ud800","agent":"\ud800","text":"\ud800","message":"\ud800"}`,
	}
}

// Whatever a route gets, it never fails, and what is bad changes nothing.
func TestBadBodies(t *testing.T) {
	t.Parallel()
	withTriggers(t, func(t *testing.T, r *room) {
		id := r.begin(`{"agent":"pay","name":"nothing"}`)
		r.run(id)
		before := r.content()
		for _, route := range r.table {
			if route.Method == http.MethodGet {
				continue
			}
			path := strings.Replace(example(route.Pattern), "/approvals/nothing", "/approvals/"+id, 1)
			for name, body := range badBodies() {
				for _, kind := range []string{"application/json", "application/json; charset=utf-8", "text/plain", "application/xml", "application/merge-patch+json", "\x01"} {
					c := call{method: route.Method, path: path, body: body, header: http.Header{"Content-Type": {kind}}}
					if out := r.do(c); out.status < 400 || out.status >= 500 || out.doc["code"] == nil {
						t.Errorf("%s, %s as %q: %d %.300s", route.Key(), name, kind, out.status, out.body)
					}
				}
			}
			if after := r.content(); after != before {
				t.Fatalf("%s changed something: %s\n%s", route.Key(), before, after)
			}
		}
	})
}

// badQueries are queries that no route takes.
func badQueries() []string {
	return []string{"?nothing=1", "?limit=0", "?limit=501", "?limit=-1", "?limit=1e3", "?limit=99999999999999999999", "?limit=1&limit=2", "?after=%zz", "?after=;", "?after=" + strings.Repeat("9", 5000),
		"?status=nothing", "?status=", "?open=maybe", "?since=yesterday", "?until=2026-13-01T00:00:00Z", "?label=", "?label=%3Dx", "?text=" + strings.Repeat("x", 201), "?loop=-1", "?loop=x",
		"?kind=x", "?body=-1", "?body=65537", "?tail=501", "?after=-1", "?after=x", "?from=-2", "?from=x", "?in_doubt=maybe", "?session=%00", "?session=" + strings.Repeat("x", 301), "?LIMIT=1", "?trigger=system", "?%00=1", "?\xff=\xff"}
}

// Whatever is asked of a route that reads, it never fails.
func TestBadQueries(t *testing.T) {
	t.Parallel()
	withTriggers(t, func(t *testing.T, r *room) {
		id := r.begin(`{"agent":"pay","name":"nothing"}`)
		r.run(id)
		before := r.content()
		for _, route := range r.table {
			if route.Method != http.MethodGet {
				continue
			}
			for _, q := range badQueries() {
				if out := r.do(call{method: route.Method, path: example(route.Pattern) + strings.ReplaceAll(q, "\xff", "%ff")}); out.status >= 500 {
					t.Errorf("%s%.60s: %d %.300s", route.Key(), q, out.status, out.body)
				}
			}
		}
		for _, q := range badQueries() {
			out := r.do(get("/v1/sessions" + strings.ReplaceAll(q, "\xff", "%ff")))
			if out.doc["code"] != "invalid" && out.doc["code"] != "limit" {
				t.Errorf("a list with %.60s: %d %.300s", q, out.status, out.body)
			}
		}
		if after := r.content(); after != before {
			t.Errorf("something changed: %s\n%s", before, after)
		}
	})
}

// Whatever stands where a name is expected, it never fails.
func TestBadNames(t *testing.T) {
	t.Parallel()
	withTriggers(t, func(t *testing.T, r *room) {
		id := r.begin(`{"agent":"chat"}`)
		r.run(id)
		before := r.content()
		names := []string{"%00", "%ff", "%1b%5B2J", "%E2%80%AE", "..", ".", "%2e%2e", "%2F", "a%2F..%2Fb", "x:99999999999999999999", id + "%2F99", id + ":7.7.7", "@", "@@", "chat@25:00", "chat@", "*", "%25", "'%20OR%201=1--",
			strings.Repeat("x", 301), strings.Repeat("x", 7000), "0000", "zzzzzzzzzzzzzzzzzzzzzzzzzz", "%F0%9F%8E%89", id + ".1", id + ".99999999999999999999", "-1", "$(id)"}
		for _, route := range r.table {
			if !strings.Contains(route.Pattern, "{") {
				continue
			}
			for _, name := range names {
				path := regexp.MustCompile(`\{[a-z]+\}`).ReplaceAllLiteralString(route.Pattern, name)
				for _, body := range []string{"", `{}`, `{"text":"x"}`, `{"verdict":"not"}`, `{"loops":"3"}`} {
					c := call{method: route.Method, path: path, body: body}
					out := r.do(c)
					if out.status >= 500 || route.Method != http.MethodGet && out.status < 300 || strings.ContainsAny(string(out.body), "\x1b\x00") {
						t.Errorf("%s of %.60q with %s: %d %.300s", route.Key(), name, body, out.status, out.body)
					}
				}
			}
		}
		if after := r.content(); after != before {
			t.Errorf("something changed: %s\n%s", before, after)
		}
	})
}

// What is too long is refused before it is read whole.
func TestLongBodies(t *testing.T) {
	t.Parallel()
	withTriggers(t, func(t *testing.T, r *room) {
		id := r.begin(`{"agent":"chat","name":"nothing"}`)
		r.run(id)
		before := r.content()
		for _, route := range r.table {
			if route.Method == http.MethodGet || route.MaxBody > 1<<20 {
				continue
			}
			for _, known := range []bool{true, false} {
				c := call{method: route.Method, path: example(route.Pattern), body: `{"reason":"` + strings.Repeat("x", int(route.MaxBody)) + `"}`}
				req := newRequest(r, c)
				if !known {
					req.ContentLength = -1
				}
				w := newRecorder()
				r.h.ServeHTTP(w, req)
				if w.Code != http.StatusRequestEntityTooLarge && (known || route.Method != http.MethodDelete) {
					t.Errorf("%s, length known: %v: %d %.300s", route.Key(), known, w.Code, w.Body)
				}
			}
		}
		for path, body := range map[string]string{"/v1/sessions": `{"agent":"chat","prompt":"%s"}`, "/v1/sessions/nothing/messages": `{"text":"%s"}`} {
			out := r.fails(stint.Limit, "at most", post(path, fmt.Sprintf(body, strings.Repeat("x", 9<<20))))
			if out.status != http.StatusRequestEntityTooLarge {
				t.Errorf("a text that is too long: %d", out.status)
			}
		}
		key := post("/v1/sessions", `{"agent":"chat"}`)
		key.key = strings.Repeat("k", 256)
		r.fails(stint.Invalid, "Idempotency-Key", key)
		if after := r.content(); after != before {
			t.Errorf("something changed: %s\n%s", before, after)
		}
	})
}

// Methods that a path does not have, and paths that are none, are told so.
func TestNoSuchRoute(t *testing.T) {
	t.Parallel()
	inRoom(t, func(t *testing.T, r *room) {
		for _, c := range []call{{method: "PUT", path: "/v1/sessions"}, {method: "DELETE", path: "/v1/sessions/x"}, {method: "PATCH", path: "/healthz"}, {method: "POST", path: "/openapi.json"}} {
			if out := r.fails(stint.Invalid, "the methods are", c); out.status != http.StatusMethodNotAllowed || out.header.Get("Allow") == "" {
				t.Errorf("%s %s: %d", c.method, c.path, out.status)
			}
		}
		for _, path := range []string{"/v1", "/v1/", "/v1/session", "/v2/sessions", "/docs", "/schemas/Session.json", "/openapi.yaml", "/openapi-3.0.json"} {
			r.fails(stint.NotFound, "", get(path))
		}
		c := get("/v1/sessions")
		c.token = r.texts[access.Viewer]
		r.ok(http.StatusOK, c)
	})
}
