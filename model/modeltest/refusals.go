package modeltest

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stint-dev/stint/model"
)

// jsonText is s as a JSON string, without its quotes and without escapes that JSON does
// not need.
func jsonText(s string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		return ""
	}
	return strings.Trim(b.String(), "\n\"")
}

// refusal is an answer that is none, and what it has to become.
type refusal struct {
	name    string
	step    Step
	kind    model.Kind
	after   time.Duration
	message string // a part of the error's message
}

func refusals() []refusal {
	page := json.RawMessage(`"<!DOCTYPE html><html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>"`)
	html := map[string]string{"Content-Type": "text/html"}
	header := func(k, v string) map[string]string { return map[string]string{k: v} }
	date := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	dates := map[string]string{"Date": date.Format(http.TimeFormat), "Retry-After": date.Add(90 * time.Second).Format(http.TimeFormat)}
	body := func(s string) json.RawMessage { return json.RawMessage(s) }
	return []refusal{
		{"429 in seconds", Step{Status: 429, Headers: header("Retry-After", "3"), EType: "rate_limit_error"}, model.Rate, 3 * time.Second, "scripted"},
		{"429 in parts of a second", Step{Status: 429, Headers: header("Retry-After-Ms", "250"), EType: "rate_limit_error"}, model.Rate, 250 * time.Millisecond, "scripted"},
		{"429 with a date", Step{Status: 429, Headers: dates}, model.Rate, 90 * time.Second, "scripted"},
		{"429 for a day", Step{Status: 429, Headers: header("Retry-After", "86400")}, model.Rate, model.MaxAfter, "scripted"},
		{"429 for ever", Step{Status: 429, Headers: header("Retry-After", "1e400")}, model.Rate, 0, "scripted"},
		{"429 with nonsense", Step{Status: 429, Headers: header("Retry-After", "soon")}, model.Rate, 0, "scripted"},
		{"429 with a negative time", Step{Status: 429, Headers: header("Retry-After", "-5")}, model.Rate, 0, "scripted"},
		{"429 without credit", Step{Status: 429, Body: body(`{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}`)}, model.Quota, 0, "quota"},
		{"529", Step{Status: 529, Headers: header("Retry-After", "2"), EType: "overloaded_error"}, model.Overloaded, 2 * time.Second, "scripted"},
		{"503", Step{Status: 503}, model.Overloaded, 0, "scripted"},
		{"500", Step{Status: 500, EType: "api_error"}, model.Transient, 0, "scripted"},
		{"502 with a page", Step{Status: 502, Headers: html, Body: page}, model.Transient, 0, "502 Bad Gateway"},
		{"504 without a body", Step{Status: 504, Body: body(`""`)}, model.Transient, 0, ""},
		{"408", Step{Status: 408}, model.Transient, 0, "scripted"},
		{"400", Step{Status: 400, EType: "invalid_request_error"}, model.Invalid, 0, "scripted"},
		{"422", Step{Status: 422, Body: body(`{"detail":[{"loc":["body"],"msg":"field required"}]}`)}, model.Invalid, 0, "field required"},
		{"400 too long", Step{Status: 400, Body: body(`{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}`)}, model.TooLong, 0, "210000"},
		{"400 context length", Step{Status: 400, Body: body(`{"error":{"message":"This model's maximum context length is 8192 tokens","type":"invalid_request_error","code":"context_length_exceeded"}}`)}, model.TooLong, 0, "8192"},
		{"413", Step{Status: 413, Headers: html, Body: body(`"<html>Request Entity Too Large</html>"`)}, model.TooLong, 0, "Request Entity Too Large"},
		{"400 policy", Step{Status: 400, Body: body(`{"error":{"message":"filtered","code":"content_filter"}}`)}, model.Refused, 0, "filtered"},
		{"401", Step{Status: 401, EType: "authentication_error"}, model.Auth, 0, "scripted"},
		{"403", Step{Status: 403, EType: "permission_error"}, model.Auth, 0, "scripted"},
		{"402", Step{Status: 402}, model.Quota, 0, "scripted"},
		{"404", Step{Status: 404, Body: body(`{"error":{"message":"model 'x' not found, try pulling it first","type":"api_error"}}`)}, model.NotFound, 0, "pulling it first"},
		{"404 of no service", Step{Status: 404, Headers: header("Content-Type", "text/plain"), Body: body(`"404 page not found"`)}, model.NotFound, 0, "404 page not found"},
		{"a redirect", Step{Status: 302, Headers: header("Location", "http://elsewhere.example/v1")}, model.NotFound, 0, "elsewhere.example"},
		{"200 with an error", Step{Status: 200, Body: body(`{"error":{"message":"try later","type":"overloaded_error"}}`)}, model.Overloaded, 0, "try later"},
		{"200 with a gateway's error", Step{Status: 200, Body: body(`{"error":{"message":"upstream","code":429}}`)}, model.Rate, 0, "upstream"},
		{"200 with a text as the error", Step{Status: 200, Body: body(`{"error":"model is loading"}`)}, model.Transient, 0, "model is loading"},
		{"200 with a list", Step{Status: 200, Body: body(`[{"error":{"code":400,"message":"bad","status":"INVALID_ARGUMENT"}}]`)}, model.Invalid, 0, "bad"},
		{"200 with a page", Step{Status: 200, Headers: html, Body: page}, model.NotFound, 0, "web page"},
		{"200 with no stream", Step{Status: 200, Body: body(`{"id":"x"}`)}, model.Transient, 0, "not with a stream"},
	}
}

// testRefusals: one request each, for retrying is not a Model's, and the provider's own
// message in the error.
func testRefusals(t *testing.T, open Open) {
	t.Helper()
	for _, c := range refusals() {
		t.Run(c.name, func(t *testing.T) {
			s := Serve(t, Scenario{Steps: []Step{c.step, {Text: "recovered"}}})
			m := open(t, Config{URL: s.URL})
			e := failure(t, m, ask())
			if e.Kind != c.kind || e.After != c.after || !strings.Contains(e.Error(), c.message) || e.Status != c.step.Status || e.Hint() == "" {
				t.Errorf("got %s after %s, status %d: %v; want %s after %s with %q", e.Kind, e.After, e.Status, e, c.kind, c.after, c.message)
			}
			if e.Retryable() != c.kind.Retryable() || e.RetryAfter() != c.after {
				t.Errorf("retryable %v after %s", e.Retryable(), e.RetryAfter())
			}
			if n := len(s.Requests()); n != 1 {
				t.Errorf("%d requests were sent, want 1", n)
			}
			if a := call(t, m, ask()); a.Message.Text() != "recovered" {
				t.Errorf("then it answered %q", a.Message.Text())
			}
		})
	}
}

func testInside(t *testing.T, open Open) {
	t.Helper()
	for etype, kind := range map[string]model.Kind{
		"overloaded_error": model.Overloaded, "rate_limit_error": model.Rate, "api_error": model.Transient,
		"invalid_request_error": model.Invalid,
	} {
		s := Serve(t, Scenario{Steps: []Step{{Inside: etype}, {Text: "recovered"}}})
		m := open(t, Config{URL: s.URL})
		if e := failure(t, m, ask()); e.Kind != kind || e.Message != "scripted" {
			t.Errorf("%s inside a stream is %v", etype, e)
		}
		call(t, m, ask())
	}
}

// testKey: a service that says the key back gets it into no error, and a key that cannot
// be read sends nothing.
func testKey(t *testing.T, open Open) {
	t.Helper()
	const key = "sk-test-0123456789"
	s := Serve(t, Scenario{Steps: []Step{
		{Status: 401, Body: json.RawMessage(`{"error":{"message":"the key sk-test-0123456789 is wrong"}}`)},
		{Text: "ok"},
	}})
	m := open(t, Config{URL: s.URL, Key: func() (string, error) { return key, nil }})
	e := failure(t, m, ask())
	if strings.Contains(e.Error(), key) || !strings.Contains(e.Error(), "the key [key] is wrong") {
		t.Errorf("the error is %v", e)
	}
	call(t, m, ask())
	for _, r := range s.Requests() {
		sent := r.Header.Get("X-Api-Key") + strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		if sent != key {
			t.Errorf("the key was sent as %q", sent)
		}
	}
	m = open(t, Config{URL: s.URL, Key: func() (string, error) { return "", http.ErrNoLocation }})
	if e := failure(t, m, ask()); e.Kind != model.Auth {
		t.Errorf("a key that cannot be read is %v", e)
	}
	m = open(t, Config{URL: "http://127.0.0.1:1"})
	if e := failure(t, m, ask()); e.Kind != model.Transient || !strings.Contains(e.Message, "127.0.0.1:1") {
		t.Errorf("no connection is %v", e)
	}
}
