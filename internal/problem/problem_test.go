package problem_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/problem"
)

func TestEveryCodeHasItsStatus(t *testing.T) {
	for code, want := range map[stint.Code]int{
		stint.Invalid: 400, stint.NotFound: 404, stint.Exists: 409, stint.Conflict: 409, stint.Fenced: 409, stint.Denied: 403,
		stint.Limit: 429, stint.Unavailable: 503, stint.Corrupt: 500, stint.Internal: 500,
	} {
		t.Run(string(code), func(t *testing.T) {
			w := httptest.NewRecorder()
			w.Header().Set("ETag", `"of another body"`)
			e := code.Errorf("ask", "it is %s", code)
			e.Hint, e.Session = "do this", stint.ID{1}
			problem.Write(w, fmt.Errorf("outside: %w", e))
			var got problem.Document
			if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
				t.Fatal(err)
			}
			if w.Code != want || got.Status != want || got.Code != code || got.Title == "" || got.Hint == "" || got.Session != e.Session.String() {
				t.Errorf("status %d with %+v, want %d", w.Code, got, want)
			}
			h := w.Header()
			if h.Get("Content-Type") != problem.ContentType || h.Get("Cache-Control") != "no-store" || h.Get("ETag") != "" {
				t.Errorf("the headers are %v", h)
			}
			if (h.Get("Retry-After") != "") != (code == stint.Unavailable) {
				t.Errorf("Retry-After is %q", h.Get("Retry-After"))
			}
		})
	}
}

func TestRetryAfterIsAskedFor(t *testing.T) {
	for after, want := range map[time.Duration]string{time.Millisecond: "1", 1500 * time.Millisecond: "2", time.Hour: "3600"} {
		w := httptest.NewRecorder()
		problem.Write(w, stint.Retry(after, stint.Limit.Errorf("hook", "too many")))
		if got := w.Header().Get("Retry-After"); got != want || w.Code != 429 {
			t.Errorf("after %s: status %d, Retry-After %q, want %q", after, w.Code, got, want)
		}
	}
}

func TestAMoreExactStatus(t *testing.T) {
	err := problem.With(401, stint.Denied.Errorf("token", "no"))
	if problem.Status(err) != 401 || !errors.Is(err, stint.Denied) {
		t.Errorf("it is %d, %v", problem.Status(err), err)
	}
	if got := problem.Status(nil); got != 200 {
		t.Errorf("no error is %d", got)
	}
}

// What a fault says can be anything, a path or a statement of the database.
func TestAFaultIsNotShown(t *testing.T) {
	w := httptest.NewRecorder()
	problem.Write(w, errors.New("open /home/me/.keys: denied"))
	if body := w.Body.String(); w.Code != 500 || strings.Contains(body, "keys") || !strings.Contains(body, "log of the server") {
		t.Errorf("%d %s", w.Code, body)
	}
}
