package view

import (
	"regexp"
	"strconv"

	"github.com/stint-dev/stint"
)

// Place is what an address names within a session.
type Place struct {
	Line int // -1: the current one
	Loop int // -1: none is named; 0 is the initial context
	Step int // 0: none
	Sub  int // 0: none
}

// Position returns the place as a position; what it does not name is 0.
func (p Place) Position() stint.Position {
	return stint.Position{Line: max(p.Line, 0), Loop: max(p.Loop, 0), Step: p.Step, Sub: p.Sub}
}

// addressHint shows what an address can be.
const addressHint = "an address is a name, an id or its ending, AGENT@HH:MM, @last or @bad, then /LINE and :LOOP.STEP if you like: triage-1129, x81d:13.2, x81d/0"

// cutPlace splits an address into what names the session and the place in it. The
// colon of a time of day belongs to the session.
func cutPlace(address string) (string, Place, error) {
	re := regexp.MustCompile(`^([^@]*@\d{1,2}:\d{2}|[^:/]+)(?:/(\d+))?(?::(\d+)(?:\.(\d+)(?:\.(\d+))?)?)?$`)
	p := Place{Line: -1, Loop: -1}
	m := re.FindStringSubmatch(address)
	if m == nil {
		err := stint.Invalid.Errorf("session", "%q is not an address", clip(address))
		err.Hint = addressHint
		return "", p, err
	}
	for i, to := range []*int{&p.Line, &p.Loop, &p.Step, &p.Sub} {
		if m[i+2] == "" {
			continue
		}
		n, err := strconv.Atoi(m[i+2])
		if err != nil || n > 1<<30 {
			err := stint.Invalid.Errorf("session", "%s is too large a number", clip(m[i+2]))
			err.Hint = addressHint
			return "", p, err
		}
		*to = n
	}
	return m[1], p, nil
}

// clip bounds what an error repeats of its input.
func clip(s string) string {
	if len(s) > 80 {
		return s[:80] + "…"
	}
	return s
}
