package engine

import (
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/journal"
)

// Bounds of what is recorded of an error.
const (
	maxErrorText = 64 << 10 // bytes of the text that the agent gets
	maxErrorLine = 1000     // bytes of the line that lists show
	maxHint      = 1000
	maxCode      = 100
)

// failureOf is a definite error in the form in which it is recorded. What the agent
// gets is made of that form and of nothing else, when the step has just failed and
// when it is answered from the journal: an agent that shows the text to its model
// must ask for the same afterwards.
func failureOf(err error) journal.Failure {
	text := err.Error()
	if n := len(text); n > maxErrorText {
		text = cut(text, maxErrorText) + fmt.Sprintf("… (cut here: %d bytes in all)", n)
	}
	f := journal.Failure{Text: valid(text)}
	f.After, _, _ = steering(err)
	if code := stint.CodeOf(err); code != stint.Internal || errors.Is(err, stint.Internal) {
		f.Code = stint.Code(clip(string(code), maxCode))
	}
	f.Hint = clip(hintOf(err), maxHint)
	return f
}

// failureBody is f as the body of an entry; nil where the line says all of it.
func failureBody(f journal.Failure, line string) []byte {
	if f == (journal.Failure{Text: line}) {
		return nil
	}
	b, err := stint.Marshal(f)
	if err != nil { // text, all of it valid: it always marshals
		panic(err)
	}
	return b
}

// hintOf is the hint of the first [stint.Error] in err's tree that has one.
func hintOf(err error) string {
	for e := (*stint.Error)(nil); errors.As(err, &e); err = e.Err {
		if e.Hint != "" {
			return e.Hint
		}
	}
	return ""
}

// plain is what went wrong, without what was attempted and for which session: whoever
// reads a session's reason knows that. The step that it was stays.
func plain(err error) string {
	text := err.Error()
	for e := (*stint.Error)(nil); errors.As(err, &e); err = e.Err {
		if strings.HasPrefix(e.Op, "step ") && e.Session.IsZero() {
			continue
		}
		cause := string(e.Code)
		if e.Err != nil {
			cause = e.Err.Error()
		}
		if strings.HasPrefix(e.Op, "step ") {
			cause = e.Op + ": " + cause
		}
		text = strings.Replace(text, e.Error(), cause, 1)
	}
	return text
}

// oneLine is an error as it stands in lists: its first line that says something, at
// most 1,000 bytes.
func oneLine(err error) string {
	if line := firstLine(plain(err)); line != "" {
		return clip(line, maxErrorLine)
	}
	return "an error that says nothing"
}

// firstLine is the first line of s that says something; a reason is one line.
func firstLine(s string) string {
	for line := range strings.Lines(s) {
		if line = strings.TrimSpace(line); line != "" {
			return line
		}
	}
	return ""
}

// clip bounds a line that comes from an agent; what is not UTF-8 in it is shown as
// U+FFFD, as JSON would.
func clip(s string, n int) string {
	if len(s) <= n {
		return valid(s)
	}
	return valid(cut(s, n)) + "…"
}

// cut is the beginning of s, at most n bytes, and no rune in two.
func cut(s string, n int) string {
	for i := n; i > n-utf8.UTFMax; i-- {
		if utf8.RuneStart(s[i]) {
			return s[:i]
		}
	}
	return s[:n]
}

func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// counted is a number and what it counts.
func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// steering reads what Retry, Fail and Definite put around err.
func steering(err error) (after time.Duration, final, definite bool) {
	for err != nil {
		var s interface {
			error
			Steer() (time.Duration, bool, bool)
		}
		if !errors.As(err, &s) {
			break
		}
		a, f, d := s.Steer()
		after, final, definite = max(after, a), final || f, definite || d
		err = errors.Unwrap(s)
	}
	return after, final, definite
}

// shielded calls code that is not ours: a panic in it is an error of the session,
// and not the end of the process and of all other sessions.
func shielded(fn func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return fn()
}
