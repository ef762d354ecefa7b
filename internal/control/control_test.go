package control_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/control"
)

// A limit is replaced, added to or removed, and what is no limit says so and leaves room
// for no doubt about which.
func TestLimits(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 29, 16, 0, 0, 0, time.UTC)
	was := stint.Limits{Wall: time.Hour, Loops: 5, Tokens: 100, Cost: 1e9, Deadline: now.Add(time.Hour)}
	for _, c := range []struct {
		name string
		l    control.Limits
		want stint.Limits
	}{
		{"nothing", control.Limits{}, was},
		{"new ones", control.Limits{Wall: "90m", Loops: "7", Cost: "2.50", OnLimit: "stop"}, stint.Limits{Wall: 90 * time.Minute, Loops: 7, Tokens: 100, Cost: 2.5e9, Deadline: was.Deadline, Stop: true}},
		{"more", control.Limits{Wall: "+30m", Loops: "+2", Tokens: "+1", Cost: "+0.5", Deadline: "+1h"},
			stint.Limits{Wall: 90 * time.Minute, Loops: 7, Tokens: 101, Cost: 1.5e9, Deadline: now.Add(2 * time.Hour)}},
		{"none", control.Limits{Wall: "none", Loops: "none", Tokens: "none", Cost: "none", Deadline: "none"}, stint.Limits{}},
		{"a deadline from now", control.Limits{Deadline: "2h"}, stint.Limits{Wall: time.Hour, Loops: 5, Tokens: 100, Cost: 1e9, Deadline: now.Add(2 * time.Hour)}},
		{"a first one that is added", control.Limits{Steps: "+3", Idle: "+1m"}, stint.Limits{Wall: time.Hour, Loops: 5, Tokens: 100, Cost: 1e9, Deadline: was.Deadline, Steps: 3, Idle: time.Minute}},
	} {
		got := was
		if err := c.l.Apply(&got, now); err != nil || got != c.want {
			t.Errorf("%s: %+v, %v; want %+v", c.name, got, err, c.want)
		}
	}
	for what, l := range map[string]control.Limits{
		`wall "-1h"`: {Wall: "-1h"}, `idle "0s"`: {Idle: "0s"}, `deadline "soon"`: {Deadline: "soon"}, `loops "1.5"`: {Loops: "1.5"}, `steps "0"`: {Steps: "0"},
		`tokens "+9223372036854775807"`: {Tokens: "+9223372036854775807"}, `cost "-1"`: {Cost: "-1"}, `on-limit "maybe"`: {OnLimit: "maybe"}, `wall "xx`: {Wall: strings.Repeat("x", 5000)},
	} {
		got := was
		if err := l.Apply(&got, now); err == nil || !strings.HasPrefix(err.Error(), what) || len(err.Error()) > 300 {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// A session's own labels stand over those of its agent, whose map stays as it is.
func TestLabels(t *testing.T) {
	t.Parallel()
	agent := map[string]string{"team": "a", "env": "prod"}
	got, err := control.Labels(map[string]string{"team": "b"}, agent)
	if err != nil || len(got) != 2 || got["team"] != "b" || got["env"] != "prod" || agent["team"] != "a" {
		t.Errorf("%v, %v, and the agent's are %v", got, err, agent)
	}
	for _, own := range []map[string]string{{"": "x"}, {"a b": "x"}, {"a": "x\ny"}, many(65)} {
		if _, err := control.Labels(own, nil); stint.CodeOf(err) != stint.Invalid {
			t.Errorf("%.60v: %v", own, err)
		}
	}
}

func many(n int) map[string]string {
	all := map[string]string{}
	for i := range n {
		all["l"+strings.Repeat("x", i)] = "v"
	}
	return all
}

// Words that the journal would not keep whole are refused before anything is decided.
func TestNotes(t *testing.T) {
	t.Parallel()
	v := control.Decision{Note: "  checked the amount \n"}
	if err := v.Check("--"); err != nil || v.Note != "checked the amount" {
		t.Errorf("%q, %v", v.Note, err)
	}
	for _, note := range []string{"a\nb", "a\rb", strings.Repeat("x", 1001)} {
		v := control.Decision{Note: note}
		if err := v.Check("--"); stint.CodeOf(err) != stint.Invalid || !strings.Contains(err.Error(), "--message is one line") {
			t.Errorf("%.20q: %v", note, err)
		}
	}
}
