package modelhttp

import (
	"encoding/json"
	"math"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/stint-dev/stint/model"
)

const maxMessage = 2000 // of an error's text, in bytes

// parse reads the shapes in which services say what is wrong: an object or a text
// under "error", the same in a list, or "message" or "detail" at the top. Text that is
// no JSON is the message.
func parse(b []byte) *model.Error {
	var list []json.RawMessage
	if json.Unmarshal(b, &list) == nil && len(list) > 0 {
		b = list[0]
	}
	var top struct {
		Error    json.RawMessage `json:"error"`
		Response json.RawMessage `json:"response"`
		Message  json.RawMessage `json:"message"`
		Detail   json.RawMessage `json:"detail"`
		Code     json.RawMessage `json:"code"`
	}
	if json.Unmarshal(b, &top) != nil {
		return &model.Error{Message: strings.TrimSpace(strings.ToValidUTF8(string(b), "\uFFFD"))}
	}
	var in struct {
		Type    json.RawMessage `json:"type"`
		Code    json.RawMessage `json:"code"`
		Status  json.RawMessage `json:"status"`
		Message json.RawMessage `json:"message"`
	}
	e := &model.Error{}
	switch {
	case json.Unmarshal(top.Error, &in) == nil && present(top.Error):
		e.Message = text(in.Message)
		for _, c := range []json.RawMessage{in.Code, in.Type, in.Status} {
			if c := text(c); c != "" && c != "error" && e.Code == "" {
				e.Code = clip(c, 100)
			}
		}
		if e.Message == "" {
			e.Message = string(top.Error)
		}
	case present(top.Error):
		e.Message = text(top.Error)
	case present(top.Response): // a failed response inside a stream of them
		return parse(top.Response)
	default:
		e.Code, e.Message = clip(text(top.Code), 100), text(top.Message)
		if e.Message == "" {
			e.Message = text(top.Detail)
		}
	}
	return e
}

func present(b json.RawMessage) bool { return len(b) > 0 && string(b) != "null" }

// text returns a JSON string's text, and other JSON as it is.
func text(b json.RawMessage) string {
	if !present(b) {
		return ""
	}
	var s string
	if json.Unmarshal(b, &s) == nil {
		return s
	}
	return string(b)
}

// classify says what to do about a failure; status is 0 for one inside a stream.
func classify(status int, code, message string) model.Kind {
	c, m := strings.ToLower(code), strings.ToLower(message)
	if n, err := strconv.Atoi(c); err == nil && n >= 400 && n < 600 && (status == 0 || status/100 == 2) {
		status = n // gateways put the status of whom they asked here
	}
	switch {
	case containsAny(c, "insufficient_quota", "billing", "credits") || status == http.StatusPaymentRequired ||
		containsAny(m, "credit balance is too low", "exceeded your current quota", "insufficient credits"):
		return model.Quota
	case containsAny(c, "context_length", "context_window", "request_too_large", "string_above_max_length") ||
		status == http.StatusRequestEntityTooLarge || status == http.StatusBadRequest && tooLong(m) || status == 0 && tooLong(m):
		return model.TooLong
	case containsAny(c, "content_filter", "content_policy", "safety", "moderation", "invalid_prompt"):
		return model.Refused
	case containsAny(c, "overloaded"):
		return model.Overloaded
	case containsAny(c, "rate_limit", "too_many_requests", "resource_exhausted"):
		return model.Rate
	}
	if k := byStatus(status); k != "" {
		return k
	}
	switch {
	case containsAny(c, "authentication", "permission", "invalid_api_key", "unauthorized"):
		return model.Auth
	case containsAny(c, "not_found"):
		return model.NotFound
	case containsAny(c, "invalid_request", "invalid_argument", "unsupported", "bad_request"):
		return model.Invalid
	}
	return model.Transient
}

func byStatus(status int) model.Kind {
	switch status {
	case 0:
		return ""
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusProxyAuthRequired:
		return model.Auth
	case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusGone:
		return model.NotFound
	case http.StatusTooManyRequests:
		return model.Rate
	case http.StatusServiceUnavailable, 529:
		return model.Overloaded
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooEarly, 499:
		return model.Transient
	}
	switch {
	case status >= 500:
		return model.Transient
	case status >= 400:
		return model.Invalid
	}
	return ""
}

func tooLong(m string) bool {
	return containsAny(m, "prompt is too long", "context length", "context window", "context size", "maximum context",
		"exceed context limit", "input is too long", "too many tokens", "exceeds the available context")
}

func containsAny(s string, words ...string) bool {
	for _, w := range words {
		if strings.Contains(s, w) {
			return true
		}
	}
	return false
}

// retryAfter reads how long the service asks to wait: milliseconds, seconds or a date,
// at most [model.MaxAfter]. What makes no sense is as if it had not been said.
func retryAfter(h http.Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil {
		return bound(ms / 1000)
	}
	v := strings.TrimSpace(h.Get("Retry-After"))
	if s, err := strconv.ParseFloat(v, 64); err == nil {
		return bound(s)
	}
	if t, err := http.ParseTime(v); err == nil {
		if date, err := http.ParseTime(h.Get("Date")); err == nil {
			now = date // the service's clock, which need not be ours
		}
		return bound(t.Sub(now).Seconds())
	}
	return 0
}

func bound(seconds float64) time.Duration {
	switch {
	case math.IsNaN(seconds) || seconds <= 0:
		return 0
	case seconds >= model.MaxAfter.Seconds():
		return model.MaxAfter
	}
	return time.Duration(seconds * float64(time.Second))
}

func looksLikePage(b []byte) bool {
	s := strings.ToLower(strings.TrimSpace(string(b[:min(len(b), 200)])))
	return strings.HasPrefix(s, "<!doctype") || strings.HasPrefix(s, "<html")
}

// title is the page's title, or its beginning without tags.
func title(b []byte) string {
	s := strings.ToValidUTF8(string(b), "\uFFFD")
	if m := regexp.MustCompile(`(?is)<title[^>]*>(.*?)</title>`).FindStringSubmatch(s); m != nil {
		s = m[1]
	}
	s = regexp.MustCompile(`(?s)<[^>]*>`).ReplaceAllString(s, " ")
	return clip(strings.Join(strings.Fields(s), " "), 200)
}

// clip cuts s to at most n bytes, at a character.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
