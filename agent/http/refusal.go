package http

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/protocol"
)

const maxRetry = 30 * 24 * time.Hour

// refusal is the error of a response with another status than 200. begun tells whether
// a step that was to proceed may have begun: a server that says 3xx or 4xx, or 503 with a
// time to come back, has not taken the request up; any other may have died over it.
func (x *exchange) refusal(resp *http.Response) (begun bool, err error) {
	text := fmt.Sprintf("the agent's server answered %d", resp.StatusCode)
	if name := http.StatusText(resp.StatusCode); name != "" {
		text += " " + name
	}
	if said := x.firstLine(); said != "" {
		text += ": " + said
	}
	e := &stint.Error{Code: stint.Unavailable, Err: errors.New(text), Hint: "it is tried again; look whether the agent's server is well"}
	after, named := retryAfter(resp.Header.Get("Retry-After"), time.Now())
	switch code := resp.StatusCode; {
	case code == http.StatusTooManyRequests || code == http.StatusServiceUnavailable:
		if named {
			return false, stint.Retry(after, e)
		}
		return code == http.StatusServiceUnavailable, e
	case code == http.StatusRequestTimeout || code == http.StatusTooEarly: // the client may come again (RFC 9110, 15.5.9; RFC 8470)
		return false, e
	case code >= 500:
		return true, e
	case code >= 400:
		e.Code, e.Hint = stint.Invalid, "mend the agent's url, secret or headers, or the agent; then restart the session"
		return false, stint.Fail(e)
	case code >= 300:
		e.Code, e.Hint = stint.Invalid, "only 307 and 308 to the same host are followed; set url to where the agent is"
		return false, stint.Fail(e)
	}
	return true, x.fault(nil, errors.New(text), "an agent answers with 200")
}

// firstLine is the first line of a body that says something, made fit for a reason.
func (x *exchange) firstLine() string {
	x.whole.Reset(endTime)
	r := bufio.NewScanner(io.LimitReader(x.body, 4<<10))
	for r.Scan() {
		line := strings.Map(func(r rune) rune {
			if unicode.IsPrint(r) {
				return r
			}
			return -1
		}, strings.ToValidUTF8(x.d.agent.redact(r.Text()), ""))
		if line = strings.TrimSpace(line); line != "" {
			return protocol.Clip(line, 300)
		}
	}
	return ""
}

// retryAfter reads a Retry-After (RFC 9110, 10.2.3): seconds, or a date.
func retryAfter(text string, now time.Time) (time.Duration, bool) {
	if text = strings.TrimSpace(text); text == "" {
		return 0, false
	}
	if n, err := strconv.ParseUint(text, 10, 64); err == nil {
		return time.Duration(min(n, uint64(maxRetry/time.Second))) * time.Second, true
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return 0, false
	}
	return min(max(at.Sub(now), 0), maxRetry), true
}

// isLines reports that a media type can be that of JSON Lines. One line is JSON too.
func isLines(kind string) bool {
	kind, _, err := mime.ParseMediaType(kind)
	return err == nil && (kind == ContentType || kind == "application/jsonl" || kind == "application/json")
}
