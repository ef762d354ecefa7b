package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/coder/acp-go-sdk"

	"github.com/stint-dev/stint"
)

// Codes of errors that the protocol has.
const codeAuth = -32000

// What agents and providers write where they have no code for it.
const (
	saysRate = `(?i)\b429\b|rate.?limit|too many requests|resource.?exhausted|quota|usage limit|overloaded|\b529\b`
	saysAuth = `(?i)\b401\b|\b403\b|unauthori[sz]ed|authentication (is )?required|not logged in|api key (is )?(not|missing|invalid)|(missing|invalid|no) api.?key`
)

// rateWait is how long to wait where nothing says how long.
const rateWait = 30 * time.Second

// lostSession is the error of an agent that cannot load a session.
type lostSession struct{ error }

// Unwrap returns what the agent said.
func (l lostSession) Unwrap() error { return l.error }

// notBegun is the error of a step whose effect was never begun: nothing is in doubt, and
// another attempt may do it.
type notBegun struct{ error }

// NotBegun reports that the effect did not happen.
func (notBegun) NotBegun() bool { return true }

// Unwrap returns the cause.
func (n notBegun) Unwrap() error { return n.error }

// refused is the error of a request that the agent did not answer as it should.
func (p *peer) refused(ctx context.Context, what string, err error) error {
	if ctx.Err() != nil {
		return stopped(ctx, what)
	}
	var re *acp.RequestError
	if !errors.As(err, &re) {
		re = &acp.RequestError{Message: err.Error()}
	}
	if p.cut() || p.out.broken.Load() {
		p.proc.Terminate(p.spec.grace()) // it may have closed its streams and nothing else
		<-p.gone
		e := p.feed.next(ctx)
		for e.kind != evExit && e.kind != 0 {
			e = p.feed.next(ctx)
		}
		if e.exit != nil {
			return p.spec.failure("", e.exit, p.login)
		}
	}
	text := re.Message
	if re.Data != nil {
		if b, merr := json.Marshal(re.Data); merr == nil {
			text += " " + string(b)
		}
	}
	if re.Code == codeAuth {
		return p.spec.unauthorized(text, p.login)
	}
	if what == "load" {
		return lostSession{fmt.Errorf("%s cannot load its session: %s", p.spec.name(), brief(text))}
	}
	return p.spec.failure(text, nil, p.login)
}

// brief is what somebody said, in a sentence.
func brief(text string) string {
	const most = 1000
	return cutRunes(oneLine(text), most)
}

// failure is the error of a turn that did not come to its end. x is nil while the process
// lives.
func (s *Spec) failure(text string, x *exit, login []string) error {
	if x != nil && text == "" {
		text = x.words()
	}
	said := ""
	if text = brief(text); text != "" {
		said = ": " + text
	}
	e := &stint.Error{Code: stint.Unavailable, Err: fmt.Errorf("%s failed its turn%s", s.name(), said)}
	if x != nil {
		e.Err = fmt.Errorf("%s %s before the end of its turn%s", s.name(), x.how(), said)
	}
	switch {
	case regexp.MustCompile(saysRate).MatchString(text):
		e.Hint = "it is tried again later; a limit of sessions at once (concurrency) asks for less"
		return stint.Retry(rateWait, e)
	case regexp.MustCompile(saysAuth).MatchString(text):
		return s.unauthorized(text, login)
	}
	e.Hint = "it is tried again; its log (stint logs) has what it wrote"
	return e
}

// unauthorized is the error of an agent that nobody has logged in to.
func (s *Spec) unauthorized(text string, ways []string) error {
	hint := "log in to " + s.name() + " as this user, or hand over its key with pass"
	known := map[string]string{
		"opencode":  "opencode auth login",
		"gemini":    "gemini",
		"codex-acp": "codex login",
	}
	if c := known[s.name()]; c != "" {
		hint = "log in with  " + c + "  as this user, or hand over its key with pass"
	}
	if len(ways) > 0 {
		hint += "; the agent names: " + strings.Join(ways, ", ")
	}
	return stint.Fail(&stint.Error{Code: stint.Invalid, Hint: cutRunes(hint, 1000),
		Err: fmt.Errorf("nobody is logged in to %s: %s", s.name(), brief(text))})
}

// loginWay is a way to log in that an agent offers.
type loginWay struct {
	ID          string   `json:"id"`
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Type        string   `json:"type"`
	Args        []string `json:"args"`
}

func (w *loginWay) describe(s *Spec) string {
	text := w.Name
	if text == "" {
		text = w.ID
	}
	switch {
	case w.Type == "terminal":
		text = strings.Join(append([]string{s.Command[0]}, w.Args...), " ")
	case w.Description != "":
		text += " (" + w.Description + ")"
	}
	return cutRunes(oneLine(text), 200)
}

// stopped is the error of a step that ends because the agent was told to.
func stopped(ctx context.Context, what string) error {
	cause := context.Cause(ctx)
	if cause == nil {
		cause = errors.New("the loop ended")
	}
	return fmt.Errorf("while %s was under way the agent was told to end: %w", what, cause)
}
