package health

import "github.com/stint-dev/stint"

// The rules, as in [Finding.Rule].
const (
	SameCall  = "N01" // same call, same result, one after the other
	SameError = "N02" // same tool, same error, one after the other
	PingPong  = "N03" // a circle of two to four calls
	Recurring = "N04" // one call with one result, often in the newest ten
)

// Rules says when repetition becomes a finding. The zero value has the defaults, which
// are written behind each rule: how many make a warning, and how many a pause. It may lie
// in a configuration as JSON.
type Rules struct {
	N01 Rule `json:"N01,omitzero"` // 3, 5: calls
	N02 Rule `json:"N02,omitzero"` // 3, 6: calls
	N03 Rule `json:"N03,omitzero"` // 3, 5: times round
	N04 Rule `json:"N04,omitzero"` // 6, 8: calls of the newest ten, so more than 10 is never

	// Paced has the figures of N01, N02 and N03 where calls are paced: 20, 40. Off lets
	// paced calls repeat themselves for ever.
	Paced Rule `json:"paced,omitzero"`
}

// Rule is the figures of one rule.
type Rule struct {
	Off   bool `json:"off,omitempty"`
	Warn  int  `json:"warn,omitempty"`  // 0: the default, negative: never
	Pause int  `json:"pause,omitempty"` // 0: the default, negative: never
}

// or returns r with its figures filled in. A pause below the default warning takes that
// with it, so that whoever sets one figure need not know the other.
func (r Rule) or(warn, pause int) Rule {
	if r.Pause == 0 {
		r.Pause = max(pause, r.Warn)
	}
	if r.Warn == 0 {
		r.Warn = warn
		if r.Pause > 0 {
			r.Warn = min(warn, r.Pause)
		}
	}
	return r
}

func (r Rules) filled() Rules {
	return Rules{N01: r.N01.or(3, 5), N02: r.N02.or(3, 6), N03: r.N03.or(3, 5), N04: r.N04.or(6, 8), Paced: r.Paced.or(20, 40)}
}

// Validate refuses figures that say nothing sensible with [stint.Invalid]: a figure of 1,
// which every call reaches, a pause before its warning, and more of ten than ten.
func (r Rules) Validate() error {
	f := r.filled()
	for _, c := range []struct {
		name string
		rule Rule
	}{{SameCall, f.N01}, {SameError, f.N02}, {PingPong, f.N03}, {Recurring, f.N04}, {"paced", f.Paced}} {
		what := ""
		switch {
		case c.rule.Warn == 1 || c.rule.Pause == 1:
			what = "the first call would be a finding; use 2 or more, or off"
		case c.rule.Warn > 0 && c.rule.Pause > 0 && c.rule.Warn > c.rule.Pause:
			what = "it would pause before it warns; raise pause, or set it to -1 for never"
		case c.name == Recurring && max(c.rule.Warn, c.rule.Pause) > window:
			what = "it counts among ten calls; use 10 or less, or -1 for never"
		}
		if what != "" {
			err := stint.Invalid.Errorf("health", "%s: warn %d, pause %d", c.name, c.rule.Warn, c.rule.Pause)
			err.Hint = what
			return err
		}
	}
	return nil
}
