package control

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/stint-dev/stint"
)

// Limits changes limits of a session. Empty members leave a limit as it is; a value is a
// new limit, +VALUE adds to the old one, and none removes it.
type Limits struct {
	Wall     string `json:"wall,omitempty" doc:"Running time, like 90m; +1h adds, none removes the limit."`
	Idle     string `json:"idle,omitempty" doc:"Running time without a sign of life, like 10m."`
	Deadline string `json:"deadline,omitempty" doc:"Time from now, like 2h, or an RFC 3339 time."`
	Loops    string `json:"loops,omitempty" doc:"Loops in all, like 50 or +20."`
	Steps    string `json:"steps,omitempty" doc:"Steps in all."`
	Tokens   string `json:"tokens,omitempty" doc:"Tokens of models in all."`
	Cost     string `json:"cost,omitempty" doc:"US dollars in all, like 2.50."`
	Tools    string `json:"tool_calls,omitempty" doc:"Calls of tools in all."`
	Children string `json:"children,omitempty" doc:"Sessions spawned below it in all, at every level."`
	OnLimit  string `json:"on_limit,omitempty" doc:"What a used-up limit does: wait (for a person) or stop."`
}

// Apply makes the changes in lim. An error says which member is wrong and what it takes;
// lim is then partly changed.
func (l *Limits) Apply(lim *stint.Limits, now time.Time) error {
	for _, f := range []struct {
		name, value string
		set         func(string) error
	}{
		{"wall", l.Wall, func(v string) error { return setDuration(&lim.Wall, v) }},
		{"idle", l.Idle, func(v string) error { return setDuration(&lim.Idle, v) }},
		{"deadline", l.Deadline, func(v string) error { return setDeadline(&lim.Deadline, v, now) }},
		{"loops", l.Loops, func(v string) error { return setCount(&lim.Loops, v) }},
		{"steps", l.Steps, func(v string) error { return setCount(&lim.Steps, v) }},
		{"tokens", l.Tokens, func(v string) error { return setCount(&lim.Tokens, v) }},
		{"cost", l.Cost, func(v string) error { return setMoney(&lim.Cost, v) }},
		{"tool-calls", l.Tools, func(v string) error { return setCount(&lim.ToolCalls, v) }},
		{"children", l.Children, func(v string) error { return setCount(&lim.Children, v) }},
		{"on-limit", l.OnLimit, func(v string) error { return setOnLimit(&lim.Stop, v) }},
	} {
		if f.value == "" {
			continue
		}
		if err := f.set(f.value); err != nil {
			return fmt.Errorf("%s %q: %w", f.name, clip(f.value), err)
		}
	}
	return nil
}

// clip keeps what came from outside short in an error.
func clip(s string) string {
	const most = 60
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

func setDuration(to *time.Duration, v string) error {
	if v == "none" {
		*to = 0
		return nil
	}
	more, add := strings.CutPrefix(v, "+")
	d, err := time.ParseDuration(more)
	if err != nil || d <= 0 {
		return fmt.Errorf("a duration like 90m or 2h, +1h to add, or none")
	}
	if add {
		if d += *to; d < 0 {
			return fmt.Errorf("more than a duration can be")
		}
	}
	*to = d
	return nil
}

func setDeadline(to *time.Time, v string, now time.Time) error {
	if v == "none" {
		*to = time.Time{}
		return nil
	}
	t, err := time.Parse(time.RFC3339, v)
	if err != nil {
		more, add := strings.CutPrefix(v, "+")
		d, derr := time.ParseDuration(more)
		if derr != nil || d <= 0 {
			return fmt.Errorf("a duration from now like 2h, +1h to add, an RFC 3339 time, or none")
		}
		if t = now.Add(d); add && !to.IsZero() {
			t = to.Add(d)
		}
	}
	*to = t.UTC().Truncate(time.Microsecond)
	return nil
}

func setCount[N int | int64](to *N, v string) error {
	if v == "none" {
		*to = 0
		return nil
	}
	more, add := strings.CutPrefix(v, "+")
	n, err := strconv.Atoi(more)
	if err != nil || n <= 0 || add && n > math.MaxInt-int(*to) {
		return fmt.Errorf("a number above zero, +20 to add, or none")
	}
	if add {
		n += int(*to)
	}
	*to = N(n)
	return nil
}

func setMoney(to *stint.Money, v string) error {
	if v == "none" {
		*to = 0
		return nil
	}
	more, add := strings.CutPrefix(v, "+")
	var m stint.Money
	if m.UnmarshalText([]byte(more)) != nil || m <= 0 || add && m > math.MaxInt64-*to {
		return fmt.Errorf("an amount of dollars like 5 or 0.25, +2.50 to add, or none")
	}
	if add {
		m += *to
	}
	*to = m
	return nil
}

func setOnLimit(to *bool, v string) error {
	if v != "wait" && v != "stop" {
		return fmt.Errorf("wait or stop")
	}
	*to = v == "stop"
	return nil
}
