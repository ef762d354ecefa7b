package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
)

// paidDesk is a folder with agents whose models cost so much that the first call of one
// would pass any limit, so none is called: one has a price, one has none, and one runs on
// this machine.
func paidDesk(t *testing.T) (d *desk, env map[string]string) {
	t.Helper()
	d = promptDesk(t)
	d.lay("site/stint.yaml", `providers:
  paid: {api: chat, base_url: "http://192.0.2.1/v1"}
  here: {api: chat, base_url: "http://127.0.0.1:9/v1"}
agents:
  dear: {kind: llm, model: paid/dear}
  capped: {kind: llm, model: paid/dear, limits: {cost: 7}, on_limit: stop}
  endless: {kind: llm, model: paid/dear, limits: {cost: none, wall: 1h}}
  nameless: {kind: llm, model: paid/nameless}
  strict: {kind: llm, model: paid/nameless, limits: {cost: 5}}
  judged: {kind: llm, model: paid/dear, rubric: {text: good, model: paid/nameless}}
  here: {kind: llm, model: here/dear}
  mixed: {kind: llm, model: here/nameless, rubric: {text: good, model: paid/dear}}
`)
	env = map[string]string{"XDG_CONFIG_HOME": filepath.Join(d.dir, "config"), "STINT_MODEL": "paid/dear"}
	if code, _, talk := d.at("site", env, "price", "set", "dear", "--input", "1", "--output", "1000000"); code != exitOK {
		t.Fatalf("exit status %d\n%s", code, talk)
	}
	return d, env
}

// Which limit of money a session gets, and that the agent shows it before.
func TestDefaultCost(t *testing.T) {
	t.Parallel()
	d, env := paidDesk(t)
	for _, c := range []struct{ agent, max, why, shown string }{
		{"dear", "5.00", "default", "5.00 by default"},
		{"capped", "7.00", "given", "7.00"},
		{"endless", "", "given", "none"},
		{"nameless", "", "no price", "none: what nameless costs is not known; stint price set gives it a price, and so a limit of 5.00"},
		{"strict", "5.00", "given", "5.00"},
		{"judged", "", "no price", "none: what nameless costs is not known; stint price set gives it a price, and so a limit of 5.00"},
		{"here", "", "free", "none: nothing that it uses costs money"},
		{"mixed", "5.00", "default", "5.00 by default"},
	} {
		_, out, talk := d.at("site", env, "agent", "show", c.agent)
		if !strings.Contains(out, "  limits.cost") || !strings.Contains(out, "  "+c.shown+"\n") {
			t.Errorf("%s is shown as %s%s", c.agent, out, talk)
		}
		var s struct {
			Limit struct {
				Max *string
				Why string
			} `json:"cost_limit"`
		}
		_, out, _ = d.at("site", env, "agent", "show", c.agent, "--json")
		if err := json.Unmarshal([]byte(out), &s); err != nil || s.Limit.Why != c.why || (s.Limit.Max == nil) != (c.max == "") || s.Limit.Max != nil && *s.Limit.Max != c.max {
			t.Errorf("%s: %v: %s", c.agent, err, out)
		}
		if code, _, talk := d.at("site", env, "start", c.agent, "-p", "x", "--name", c.agent); code != exitOK {
			t.Fatalf("start %s: exit status %d\n%s", c.agent, code, talk)
		}
		want := c.max
		if want == "" {
			want = "null"
		}
		if _, out, _ := d.at("site", env, "show", c.agent, "--field", "limits.cost.max"); strings.Trim(out, "\"\n") != want {
			t.Errorf("a session of %s has the limit %s, want %s", c.agent, out, want)
		}
	}
}

// A default that is used up is like a limit that somebody gave: the session waits and
// goes on when it is raised. What it was begun with stays when prices change.
func TestDefaultCostIsReached(t *testing.T) {
	t.Parallel()
	d, env := paidDesk(t)
	for name, args := range map[string][]string{
		"agent": {"run", "dear", "-p", "x", "--name", "agent"}, "prompt": {"run", "-p", "x", "--name", "prompt"},
	} {
		if code, out, talk := d.at("site", env, args...); code != exitWaits || !strings.Contains(out+talk, "cost: $0.00 of $5.00") {
			t.Errorf("%s: exit status %d\n%s%s", name, code, out, talk)
		}
		if _, out, _ := d.at("site", env, "show", name, "--field", "waiting.for"); strings.Trim(out, "\"\n") != "budget" {
			t.Errorf("%s waits for %s", name, out)
		}
		if code, _, talk := d.at("site", env, "limit", name, "--cost", "+1"); code != exitOK {
			t.Errorf("limit: exit status %d\n%s", code, talk)
		}
		if code, out, talk := d.at("site", env, "resume", name, "--run"); code != exitWaits || !strings.Contains(out+talk, "cost: $0.00 of $6.00") {
			t.Errorf("%s, raised: exit status %d\n%s%s", name, code, out, talk)
		}
	}
	if code, out, talk := d.at("site", env, "run", "capped", "-p", "x"); code != exitNotOK || !strings.Contains(out+talk, "cost: $0.00 of $7.00") {
		t.Errorf("a limit that stops: exit status %d\n%s%s", code, out, talk)
	}
	if code, out, talk := d.at("site", env, "run", "strict", "-p", "x"); code != exitNotOK || !strings.Contains(out+talk, "what nameless costs is not known") {
		t.Errorf("a limit that somebody gave: exit status %d\n%s%s", code, out, talk)
	}
	if code, out, talk := d.at("site", env, "start", "dear", "-p", "x", "--cost", "none", "--name", "free"); code != exitOK {
		t.Errorf("exit status %d\n%s%s", code, out, talk)
	}
	if _, out, _ := d.at("site", env, "show", "free", "--field", "limits.cost.max"); strings.TrimSpace(out) != "null" {
		t.Errorf("--cost none leaves %s", out)
	}
}
