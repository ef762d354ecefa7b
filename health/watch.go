package health

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/stint-dev/stint"
)

const (
	ring   = 24 // signatures kept
	window = 10 // newest calls that N04 counts among
	period = 4  // calls of the longest circle of N03
	pace   = 30 * time.Second
)

// Call is one call of a tool that has an outcome.
type Call struct {
	Tool   string
	Args   string // JSON or any text
	Result string // what the tool returned; of one that failed, its error
	Failed bool
	Poll   bool      // the tool is one to wait with: repetition is what it is for
	At     time.Time // when the call began; zero if that is not known
}

// Finding is a rule that a call made true. A rule is told of when its figure is first
// reached, and not again before what it counts has been broken; a pause is told of again
// each time when as many calls again have come, so that a session which somebody let go
// on does not go on for ever.
type Finding struct {
	Rule  string `json:"rule"`  // [SameCall], [SameError], [PingPong] or [Recurring]
	N     int    `json:"n"`     // how many: calls, or times round
	Pause bool   `json:"pause"` // the session should wait for somebody; else it is a warning
	What  string `json:"what"`  // one line for a person, with the tool and the count
}

// Watch follows the calls of one session. Its zero value has seen none. It holds hashes
// of the newest 24 calls and a few counts, no texts, and marshals to JSON and back in
// less than 2 KiB, so that it can lie with the session. Not for concurrent use.
type Watch struct{ s state }

type state struct {
	Ring    []step        `json:"ring,omitempty"`    // oldest first
	Last    int64         `json:"last,omitempty"`    // when the newest call began, Unix milliseconds; 0: not known
	Args    string        `json:"args,omitempty"`    // hash of the newest call without its result
	Error   string        `json:"error,omitempty"`   // hash of its tool and error, empty if it did not fail
	Unpaced int           `json:"unpaced,omitempty"` // newest calls, from the last paced one on
	Circles [period]count `json:"circles"`           // by period, less 1: N01 and N03
	Errors  count         `json:"errors"`            // N02
	Often   often         `json:"often,omitzero"`    // N04
}

// step is a call in the ring.
type step struct {
	Sum   string `json:"sum"`
	Paced bool   `json:"paced,omitempty"`
}

// count is what repeats without a break.
type count struct {
	N     int  `json:"n,omitempty"`     // repetitions so far: calls that are as the one a period before
	Quick int  `json:"quick,omitempty"` // of N02: calls since the last that is allowed for
	Fast  told `json:"fast,omitzero"`
	Slow  told `json:"slow,omitzero"` // of the figures for paced calls
}

// told is what was said of a count.
type told struct {
	Warned bool `json:"warned,omitempty"`
	Paused int  `json:"paused,omitempty"` // the count at the last pause
}

// often is what was said of N04, and for how many more calls it is not said again.
type often struct {
	Sum   string `json:"sum,omitempty"`
	Warn  int    `json:"warn,omitempty"`
	Pause int    `json:"pause,omitempty"`
}

// Monitor holds rules, ready to be applied to any number of sessions. It does not change,
// so it is safe for concurrent use.
type Monitor struct {
	rules    Rules
	volatile []pattern
	compiled []*regexp.Regexp // one for each of volatile
}

// NewMonitor makes a monitor of r, or says what is wrong with it, as [Rules.Validate] does.
func NewMonitor(r Rules) (*Monitor, error) {
	if err := r.Validate(); err != nil {
		return nil, err
	}
	m := &Monitor{rules: r.filled(), volatile: volatile()}
	for _, v := range m.volatile {
		m.compiled = append(m.compiled, regexp.MustCompile(v.pattern))
	}
	return m, nil
}

// Off reports whether every rule is off.
func (m *Monitor) Off() bool {
	return m.rules.N01.Off && m.rules.N02.Off && m.rules.N03.Off && m.rules.N04.Off
}

// See shows the next call to what has followed the session, and returns what it makes
// true, in the order of the rules; most often nothing.
func (m *Monitor) See(w *Watch, c Call) []Finding {
	r := m.rules
	s := &w.s
	text := m.result(c.Result)
	args := sum(c.Tool, canon(c.Args))
	now := step{Sum: sum(args, text, fmt.Sprint(c.Failed)), Paced: c.Poll}
	var at int64
	if !c.At.IsZero() {
		at = c.At.UnixMilli()
	}
	if at != 0 && s.Last != 0 && at-s.Last >= pace.Milliseconds() {
		now.Paced = true
	}
	failed := ""
	if c.Failed && text != "" {
		failed = sum(c.Tool, failure(text))
	}
	tool := shown(c.Tool)

	s.turn(now)
	s.fail(failed, now.Paced && args == s.Args)
	s.Last, s.Args = at, args

	found := s.circles(1, tool, r.N01, r.Paced)
	found = append(found, s.errors(tool, r.N02, r.Paced)...)
	for p := 2; p <= period; p++ {
		found = append(found, s.circles(p, tool, r.N03, r.Paced)...)
	}
	return append(found, s.recurring(tool, r.N04)...)
}

// turn puts a call into the ring and counts for each period whether it is as the one
// that long before.
func (s *state) turn(now step) {
	if now.Paced {
		s.Unpaced = 0
	}
	s.Unpaced++
	for i := range s.Circles {
		c := &s.Circles[i]
		if n := len(s.Ring) - 1 - i; n < 0 || s.Ring[n].Sum != now.Sum {
			*c = count{}
			continue
		}
		c.N++
		if now.Paced {
			c.Fast = told{}
		}
	}
	s.Ring = append(s.Ring, now)
	s.Ring = slices.Clone(s.Ring[max(0, len(s.Ring)-ring):])
}

// circles is N01 and N03: the newest calls are as those a period before.
func (s *state) circles(p int, tool string, fast, slow Rule) []Finding {
	c := &s.Circles[p-1]
	if c.N == 0 || fast.Off || p > 1 && s.Circles[0].N >= p-1 || p == 4 && s.Circles[1].N >= 2 {
		return nil // no circle, or a shorter one several times
	}
	f := Finding{Rule: SameCall}
	what := tool + ": the same call with the same result, %d times in a row"
	if p > 1 {
		f.Rule = PingPong
		what = fmt.Sprintf("%s and %d more: the same %d calls with the same results, %%d times round", tool, p-1, p)
	}
	all := c.N + p // calls in the circle
	quick := min(all, s.Unpaced) / p
	if all /= p; c.Fast.say(&f, quick, fast) || s.Unpaced <= p && c.Slow.say(&f, all, slow) {
		f.What = fmt.Sprintf(what, f.N)
		return []Finding{f}
	}
	return nil
}

// fail counts errors that are the same; waits says that the call is paced and has the
// arguments of the one before.
func (s *state) fail(failed string, waits bool) {
	same := failed != "" && failed == s.Error
	s.Error = failed
	switch {
	case failed == "":
		s.Errors = count{}
		return
	case !same:
		s.Errors = count{}
	case waits:
		s.Errors.Quick, s.Errors.Fast = 0, told{}
	}
	s.Errors.N++
	s.Errors.Quick++
}

// errors is N02.
func (s *state) errors(tool string, fast, slow Rule) []Finding {
	c := &s.Errors
	if fast.Off {
		return nil
	}
	f := Finding{Rule: SameError}
	if c.Fast.say(&f, c.Quick, fast) || c.Quick <= 1 && c.Slow.say(&f, c.N, slow) {
		f.What = fmt.Sprintf("%s fails with the same error, %d times in a row", tool, f.N)
		return []Finding{f}
	}
	return nil
}

// recurring is N04. Both of its figures, once told of, are told of again only after ten
// calls, because a count among the newest ten goes up and down.
func (s *state) recurring(tool string, r Rule) []Finding {
	o := &s.Often
	o.Warn, o.Pause = max(0, o.Warn-1), max(0, o.Pause-1)
	newest := s.Ring[max(0, len(s.Ring)-window):]
	now := newest[len(newest)-1]
	if r.Off || now.Paced {
		return nil
	}
	f := Finding{Rule: Recurring}
	for _, c := range newest {
		if c.Sum == now.Sum && !c.Paced {
			f.N++
		}
	}
	over := func(figure int) bool { return figure > 0 && f.N >= figure }
	if !over(r.Warn) && !over(r.Pause) {
		return nil
	}
	if o.Sum != now.Sum {
		*o = often{Sum: now.Sum}
	}
	say := over(r.Warn) && o.Warn == 0
	o.Warn = window
	if over(r.Pause) && o.Pause == 0 {
		say, f.Pause, o.Pause = true, true, window
	}
	if !say {
		return nil
	}
	f.What = fmt.Sprintf("%s: the same call with the same result, %d of the newest %d calls", tool, f.N, len(newest))
	return []Finding{f}
}

// say reports whether n is to be told of, and fills in f.
func (t *told) say(f *Finding, n int, r Rule) bool {
	if r.Off {
		return false
	}
	f.N = n
	switch {
	case r.Pause > 0 && n >= r.Pause && (t.Paused == 0 || n-t.Paused >= r.Pause):
		t.Warned, t.Paused, f.Pause = true, n, true
		return true
	case r.Warn > 0 && n >= r.Warn && !t.Warned:
		t.Warned = true
		return true
	}
	return false
}

// sum is a short hash of texts, which may be anybody's: 64 bits of SHA-256.
func sum(texts ...string) string {
	h := sha256.New()
	for _, t := range texts {
		h.Write(binary.AppendUvarint(nil, uint64(len(t))))
		h.Write([]byte(t))
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// shown returns the name of a tool as it can stand in a line.
func shown(tool string) string {
	var b strings.Builder
	for i, c := range []rune(tool) {
		switch {
		case i == 60:
			return b.String() + "…"
		case !unicode.IsPrint(c):
			c = '�'
		}
		b.WriteRune(c)
	}
	return b.String()
}

// MarshalJSON returns what [Watch.UnmarshalJSON] reads. Its members are not to be relied
// upon.
func (w Watch) MarshalJSON() ([]byte, error) { return json.Marshal(w.s) }

// UnmarshalJSON reads what was marshalled. What no Watch has written is [stint.Invalid],
// and leaves w as it was.
func (w *Watch) UnmarshalJSON(b []byte) error {
	refuse := func(err error) error {
		e := stint.Invalid.Errorf("health", "the watch cannot be read: %w", err)
		e.Hint = "begin with an empty one; only the repetitions so far are forgotten"
		return e
	}
	var s state
	if err := json.Unmarshal(b, &s); err != nil {
		return refuse(err)
	}
	sums := []string{s.Args, s.Error, s.Often.Sum}
	for _, c := range s.Ring {
		sums = append(sums, c.Sum)
	}
	counts := []int{s.Unpaced, s.Often.Warn, s.Often.Pause}
	for _, c := range append(s.Circles[:], s.Errors) {
		counts = append(counts, c.N, c.Quick, c.Fast.Paused, c.Slow.Paused)
	}
	if len(s.Ring) > ring || slices.Min(counts) < 0 || slices.ContainsFunc(sums, func(s string) bool { return len(s) > 16 }) {
		return refuse(fmt.Errorf("%d calls, counts %d", len(s.Ring), counts))
	}
	w.s = s
	return nil
}
