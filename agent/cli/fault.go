package cli

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/stint-dev/stint"
)

// faultKind says what can be done about a turn that failed.
type faultKind int

const (
	faultOther  faultKind = iota // try again
	faultAuth                    // nobody is logged in, or may not
	faultRate                    // too much was asked; later
	faultNoSuch                  // the CLI does not know the session to resume
)

// What CLIs and providers write. There are no codes to go by: each CLI puts what its
// provider said into a sentence of its own.
const (
	saysNoSuch = `(?i)no rollout found|invalid session identifier|no conversation found|session not found|notfounderror.*session|no previous sessions found`
	saysRate   = `(?i)\b429\b|rate.?limit|too many requests|resource.?exhausted|quota|usage limit|overloaded|\b529\b`
	saysAuth   = `(?i)\b401\b|\b403\b|unauthori[sz]ed|api.?key|auth method|authentication|not logged in|please (log|run).{0,12}login|permission.?denied.{0,20}(key|account|project)`
	saysAfter  = `(?i)(?:again|retry|reset)[^0-9\n]{0,24}(\d{1,6}(?:\.\d+)?)\s*(ms|s|sec|m|min|h|hour)`
)

func classify(text string) faultKind {
	for _, c := range []struct {
		says string
		kind faultKind
	}{{saysNoSuch, faultNoSuch}, {saysRate, faultRate}, {saysAuth, faultAuth}} {
		if regexp.MustCompile(c.says).MatchString(text) {
			return c.kind
		}
	}
	return faultOther
}

// rateWait is how long to wait where nothing says how long.
const rateWait = 30 * time.Second

// after is when a text says that it may be tried again.
func after(text string) time.Duration {
	m := regexp.MustCompile(saysAfter).FindStringSubmatch(text)
	if m == nil {
		return rateWait
	}
	n, err := strconv.ParseFloat(m[1], 64)
	unit := map[string]time.Duration{"ms": time.Millisecond, "s": time.Second, "sec": time.Second,
		"m": time.Minute, "min": time.Minute, "h": time.Hour, "hour": time.Hour}[strings.ToLower(m[2])]
	if err != nil || unit == 0 {
		return rateWait
	}
	return min(max(time.Duration(n*float64(unit)), time.Second), 24*time.Hour)
}

// failure is the error of a turn that did not come to its end. x is nil while the
// process lives.
func (s *Spec) failure(text string, x *exit) error {
	name := string(s.Protocol)
	kind := classify(text)
	said := ""
	if t := strings.TrimSpace(text); t != "" {
		const most = 2000
		short, cut := bound(t, most)
		if said = ": " + strings.Join(strings.Fields(short), " "); cut > 0 {
			said += "…"
		}
	}
	e := &stint.Error{Code: stint.Unavailable}
	switch {
	case x == nil:
		e.Err = fmt.Errorf("%s failed its turn%s", name, said)
	case x.code == 0 && x.signal == "" && !x.killed:
		e.Err = fmt.Errorf("%s exited with 0 before the end of its turn%s", name, said)
	default:
		e.Err = fmt.Errorf("%s %s before the end of its turn%s", name, x.how(), said)
	}
	switch kind {
	case faultAuth:
		e.Code, e.Hint = stint.Invalid, s.login()
		return stint.Fail(e)
	case faultRate:
		e.Hint = "it is tried again later; a limit of sessions at once (concurrency) asks for less"
		return stint.Retry(after(text), e)
	case faultNoSuch:
		e.Code = stint.NotFound
		e.Hint = "its own record of the session is gone, or HOME or dir has changed: put it back, or start a new session"
		return stint.Fail(e)
	}
	e.Hint = "it is tried again; its log (stint logs) has what it wrote"
	return e
}

// login is how somebody is logged in.
func (s *Spec) login() string {
	switch s.Protocol {
	case Codex:
		return "log in with  codex login  as this user, or hand over a key: pass: [CODEX_API_KEY]"
	case Claude:
		return "log in with  claude  as this user, or hand over a key: pass: [ANTHROPIC_API_KEY]"
	case OpenCode:
		return "log in with  opencode auth login  as this user, or hand over the provider's key with pass"
	default:
		return "log in with  gemini  as this user, or hand over a key: pass: [GEMINI_API_KEY]"
	}
}
