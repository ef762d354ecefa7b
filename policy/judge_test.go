package policy_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/policy"
)

var update = flag.Bool("update", false, "write the golden files")

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("got\n%s\nwant, as in %s,\n%s", got, path, want)
	}
}

func compile(t testing.TB, rules ...policy.Rule) *policy.Policy {
	t.Helper()
	p, err := policy.Compile(rules)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// named makes a rule that asks.
func named(name string, m policy.Match) policy.Rule {
	return policy.Rule{Name: name, Match: m, Do: policy.Ask}
}

// push is a call that most rules of these tests are for.
func push() policy.Call {
	return policy.Call{Agent: "triage", Trigger: "prompt", Labels: map[string]string{"env": "prod"}, Tool: "github.push", Kind: stint.Tool, Effect: stint.Once,
		Input: json.RawMessage(`{"branch":"main","id":9007199254740993}`), Cost: 4e8, Spent: 7e8}
}

// Each matcher alone, with a call that it fits and one that it does not.
func TestMatchers(t *testing.T) {
	verb := func(v policy.Verb) policy.Call {
		return policy.Call{Verb: v, Agent: "triage", Input: json.RawMessage(`{"to":3}`)}
	}
	for _, c := range []struct {
		name string
		m    policy.Match
		call func(*policy.Call)
		want bool
		why  string
	}{
		{"all", policy.Match{}, nil, true, "it is for every step"},
		{"tool", policy.Match{Tool: []string{"github.push"}}, nil, true, "tool is github.push"},
		{"glob", policy.Match{Tool: []string{"slack.*", "git*.p*h"}}, nil, true, "tool is github.push"},
		{"other tool", policy.Match{Tool: []string{"slack.*", "github"}}, nil, false, "tool is github.push, not slack.* or github"},
		{"kind", policy.Match{Kind: []stint.StepKind{stint.Tool}}, nil, true, "kind is tool"},
		{"other kind", policy.Match{Kind: []stint.StepKind{stint.Model, stint.Custom}}, nil, false, "kind is tool, not model or step"},
		{"no kind is step", policy.Match{Kind: []stint.StepKind{stint.Custom}}, func(c *policy.Call) { c.Kind = "" }, true, "kind is step"},
		{"effect", policy.Match{Effect: []stint.Effect{stint.Idempotent, stint.Once}}, nil, true, "effect is once"},
		{"other effect", policy.Match{Effect: []stint.Effect{stint.Read}}, nil, false, "effect is once, not read"},
		{"no effect is once", policy.Match{Effect: []stint.Effect{stint.Once}}, func(c *policy.Call) { c.Effect = "" }, true, "effect is once"},
		{"tainted", policy.Match{Tainted: true}, func(c *policy.Call) { c.Tainted = true }, true, "the session is tainted"},
		{"not tainted", policy.Match{Tainted: true}, nil, false, "the session is not tainted"},
		{"cost and spent", policy.Match{CostOver: 1e9}, nil, true, "1.10 with this step is over 1.00"},
		{"cost at the bound", policy.Match{CostOver: 11e8}, nil, false, "1.10 with this step is not over 1.10"},
		{"cost alone", policy.Match{CostOver: 1e9}, func(c *policy.Call) { c.Spent = 0 }, false, "0.40 with this step is not over 1.00"},
		{"cost too large to add", policy.Match{CostOver: 1e9}, func(c *policy.Call) { c.Spent = 1<<63 - 1 }, true, "is over 1.00"},
		{"when", policy.Match{When: `args.branch == "main" && tool == "github.push" && labels.env == "prod" && agent == "triage"`}, nil, true, "when is true"},
		{"when false", policy.Match{When: `args.branch != "main"`}, nil, false, "when is false"},
		{"when exact", policy.Match{When: `args.id == 9007199254740992`}, nil, false, "when is false"},
		{"when all names", policy.Match{When: `kind == "tool" && effect == "once" && verb == "" && !tainted && trigger == "prompt" && cost == 0.4 && spent == 0.7`}, nil, true, "when is true"},
		{"when of the environment", policy.Match{When: `$env["args"].branch == "main"`}, nil, true, "when is true"},
		{"when and another", policy.Match{Tool: []string{"other"}, When: "args.a.b.c.d"}, nil, false, "tool is github.push, not other"},
		{"nothing given", policy.Match{When: "args == nil"}, func(c *policy.Call) { c.Input = nil }, true, "when is true"},
		{"a verb and a rule for steps", policy.Match{}, func(c *policy.Call) { *c = verb(policy.Rollback) }, false, "it is for steps"},
		{"a step and a rule for verbs", policy.Match{Verb: []policy.Verb{policy.Rollback}}, nil, false, "it is for verbs"},
		{"verb", policy.Match{Verb: []policy.Verb{policy.Branch, policy.Rollback}}, func(c *policy.Call) { *c = verb(policy.Rollback) }, true, "verb is rollback"},
		{"other verb", policy.Match{Verb: []policy.Verb{policy.Branch}}, func(c *policy.Call) { *c = verb(policy.Rollback) }, false, "verb is rollback, not branch"},
		{"verb with a condition", policy.Match{Verb: policy.Verbs(), When: `args.to < 5 && verb == "rollback"`}, func(c *policy.Call) { *c = verb(policy.Rollback) }, true, "verb is rollback, when is true"},
	} {
		t.Run(c.name, func(t *testing.T) {
			call := push()
			if c.call != nil {
				c.call(&call)
			}
			p := compile(t, named("r", c.m))
			v, arms := p.Explain(call)
			if len(arms) != 1 || arms[0].Matched != c.want || arms[0].Rule != "r" || !strings.Contains(arms[0].Why, c.why) {
				t.Errorf("got %+v, want %v: %s", arms, c.want, c.why)
			}
			if (v.Do == policy.Ask) != c.want || v.Fault != "" {
				t.Errorf("got %+v", v)
			}
			if again := p.Judge(call); fmt.Sprint(again) != fmt.Sprint(v) {
				t.Errorf("Judge says %+v, Explain %+v", again, v)
			}
		})
	}
}

// A * stands for any text, also none, and nothing else does.
func TestGlob(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"git.push", "git.push", true}, {"git.push", "git.push2", false}, {"git.push", "git", false}, {"*", "", true}, {"*", "anything/at:all", true}, {"git.*", "git.", true}, {"git.*", "git", false},
		{"*.push", "git.push", true}, {"*.push", "git.push.x", false}, {"*push", "pushpush", true}, {"a*b*c", "abc", true}, {"a*b*c", "a-c-b-c", true}, {"a*b*c", "acb", false}, {"a*a", "a", false}, {"a**b", "a.b", true},
		{"git?push", "git.push", false}, {"[a]", "a", false}, {"git.push", "Git.push", false}, {"é*", "été", true},
	} {
		v := compile(t, named("r", policy.Match{Tool: []string{c.pattern}})).Judge(policy.Call{Tool: c.name})
		if (v.Do == policy.Ask) != c.want {
			t.Errorf("%s and %s: %v", c.pattern, c.name, v.Do)
		}
	}
}

// The first rule that matches decides, and those behind it are not looked at.
func TestFirstMatchWins(t *testing.T) {
	allow := policy.Rule{Name: "lab", Match: policy.Match{Tool: []string{"github.*"}, When: `labels.env == "lab"`}, Do: policy.Allow}
	deny := policy.Rule{Name: "never-main", Match: policy.Match{When: `args.branch == "main"`}, Do: policy.Deny, Asking: policy.Asking{Message: "open a pull request"}}
	rest := named("rest", policy.Match{When: "args.x.y.z > 1"}) // would be a fault
	p := compile(t, allow, deny, rest)
	v, arms := p.Explain(push())
	if v.Do != policy.Deny || v.Rule != "never-main" || v.Message != "open a pull request" || v.Why != "never-main: open a pull request" || len(arms) != 2 || v.Quorum != 0 || !v.Digest.IsZero() {
		t.Errorf("got %+v, %+v", v, arms)
	}
	call := push()
	call.Labels = map[string]string{"env": "lab"}
	if v := p.Judge(call); v.Do != policy.Allow || v.Rule != "lab" {
		t.Errorf("got %+v", v)
	}
	for _, none := range []*policy.Policy{nil, compile(t)} {
		if v, arms := none.Explain(push()); v.Do != policy.Allow || v.Rule != "" || len(arms) != 0 || v.Why == "" || none.Rules() != nil && len(none.Rules()) > 0 {
			t.Errorf("got %+v, %+v", v, arms)
		}
	}
}

// A condition that cannot be evaluated asks, whatever its rule would do, and nobody's
// standing yes or tool's own word answers it.
func TestFaultsAsk(t *testing.T) {
	for _, do := range []policy.Do{policy.Allow, policy.Ask, policy.Deny} {
		for name, c := range map[string]struct{ when, input, why string }{
			"missing member": {"args.amount < 100", `{}`, "line 1, column 13 does not fit"},
			"other type":     {"args.amount < 100", `{"amount":"5"}`, "does not fit"},
			"no truth":       {"args.amount", `{"amount":5}`, "does not fit"},
			"too much":       {"all(args.l, all(args.l, all(args.l, true)))", `{"l":[` + strings.Repeat("1,", 999) + `1]}`, "looks at more"},
			"two meanings":   {"args.a == 1", `{"a":1,"a":2}`, `"a" is in this object twice`},
			"no JSON":        {`$env["args"] == 1`, `{`, "the arguments cannot be read"},
			"rounded":        {"args.n > 1", `{"n":12345678901234567890}`, "does not fit"},
		} {
			t.Run(string(do)+" "+name, func(t *testing.T) {
				p := compile(t, policy.Rule{Name: "r", Match: policy.Match{When: c.when}, Do: do}, policy.Rule{Name: "all", Do: policy.Allow})
				call := push()
				call.Input, call.Approve = json.RawMessage(c.input), "never"
				v := p.Judge(call)
				if v.Do != policy.Ask || v.Rule != "r" || v.Grantable || v.Quorum != 1 || v.Digest.IsZero() || !strings.Contains(v.Fault, c.why) || !strings.Contains(v.Why, v.Fault) {
					t.Errorf("got %+v", v)
				}
			})
		}
	}
}

// What is asked for is what the rule says, defaults filled in.
func TestVerdictOfAsking(t *testing.T) {
	v := compile(t, named("r", policy.Match{})).Judge(push())
	if v.Quorum != 1 || v.Deadline != 0 || v.OnExpire != "" || !v.Edit || !v.Grantable || v.Approvers != nil || v.Message != "" {
		t.Errorf("got %+v", v)
	}
	canonical, err := policy.Canonical(push().Input)
	if err != nil || v.Digest != policy.Digest("github.push", stint.Once, canonical) {
		t.Errorf("got %s, %v", v.Digest, err)
	}
	r := named("r", policy.Match{})
	r.Asking = policy.Asking{Message: "m", Approvers: []string{"approver", "user:ana"}, Quorum: 2, Deadline: time.Hour, OnExpire: policy.Escalate, EscalateTo: []string{"admin"},
		NoEdit: true, NoGrant: true}
	v = compile(t, r).Judge(push())
	if v.Message != "m" || len(v.Approvers) != 2 || v.Quorum != 2 || v.Deadline != time.Hour || v.OnExpire != policy.Escalate || len(v.EscalateTo) != 1 || v.Edit || v.Grantable {
		t.Errorf("got %+v", v)
	}
	r.Asking = policy.Asking{Deadline: time.Hour}
	if v = compile(t, r).Judge(push()); v.OnExpire != policy.ExpireDeny {
		t.Errorf("got %+v", v)
	}
}

// What a tool says of itself is about asking: it never opens what a rule denies.
func TestToolsOwnWord(t *testing.T) {
	for _, c := range []struct {
		do       policy.Do
		approve  string
		want     policy.Do
		rule     string
		grantble bool
	}{
		{policy.Allow, "", policy.Allow, "r", false},
		{policy.Allow, "always", policy.Ask, "approve: always", false},
		{policy.Allow, "never", policy.Allow, "r", false},
		{policy.Ask, "", policy.Ask, "r", true},
		{policy.Ask, "always", policy.Ask, "r", true},
		{policy.Ask, "never", policy.Allow, "approve: never", false},
		{policy.Deny, "always", policy.Deny, "r", false},
		{policy.Deny, "never", policy.Deny, "r", false},
	} {
		call := push()
		call.Approve = c.approve
		v := compile(t, policy.Rule{Name: "r", Do: c.do}).Judge(call)
		if v.Do != c.want || v.Rule != c.rule || v.Grantable != c.grantble || (v.Do == policy.Ask) != (v.Quorum == 1) || (v.Do == policy.Ask) == v.Digest.IsZero() {
			t.Errorf("%s, %q: got %+v", c.do, c.approve, v)
		}
	}
	call := policy.Call{Verb: policy.Branch, Approve: "never"}
	if v := compile(t, named("r", policy.Match{Verb: policy.Verbs()})).Judge(call); v.Do != policy.Ask || v.Edit || v.Grantable {
		t.Errorf("a verb is no tool: %+v", v)
	}
}

func TestPresets(t *testing.T) {
	all := map[string]map[stint.Effect]policy.Do{
		"tainted-once": {stint.Read: policy.Allow, stint.Idempotent: policy.Allow, stint.Once: policy.Ask},
		"ask-once":     {stint.Read: policy.Allow, stint.Idempotent: policy.Allow, stint.Once: policy.Ask},
		"read-only":    {stint.Read: policy.Allow, stint.Idempotent: policy.Deny, stint.Once: policy.Deny},
	}
	if len(all) != len(policy.Presets()) {
		t.Errorf("there are %v", policy.Presets())
	}
	for _, name := range policy.Presets() {
		rules, ok := policy.Preset(name)
		if !ok {
			t.Fatal(name)
		}
		for effect, want := range all[name] {
			call := push()
			call.Effect, call.Tainted = effect, true
			if v := compile(t, rules...).Judge(call); v.Do != want || (want == policy.Allow) != (v.Rule == "") {
				t.Errorf("%s, %s: %+v", name, effect, v)
			}
		}
	}
	if _, ok := policy.Preset("careful"); ok {
		t.Error("there is a preset careful")
	}
	if v := compile(t, policy.BuiltIn()).Judge(push()); v.Do != policy.Allow {
		t.Errorf("nothing came from outside: %+v", v)
	}
}

// Rules can be pinned: their JSON comes back as they were, and says nothing of what is not
// given.
func TestRulesAsJSON(t *testing.T) {
	r := policy.Rule{Name: "r", Match: policy.Match{Tool: []string{"a*"}, Kind: []stint.StepKind{stint.Tool}, Effect: []stint.Effect{stint.Once}, When: "tainted", Tainted: true, CostOver: 15e8},
		Do: policy.Ask, Asking: policy.Asking{Message: "m", Approvers: []string{"admin"}, Quorum: 2, Deadline: time.Hour, OnExpire: policy.Escalate, EscalateTo: []string{"user:ana"},
			NoEdit: true, NoGrant: true}}
	b, err := json.Marshal([]policy.Rule{r, {Name: "v", Match: policy.Match{Verb: policy.Verbs()}, Do: policy.Ask, Asking: policy.Asking{}}, {Name: "x", Do: policy.Allow}})
	if err != nil {
		t.Fatal(err)
	}
	const want = `[{"name":"r","tool":["a*"],"kind":["tool"],"effect":["once"],"when":"tainted","tainted":true,"cost_over":"1.50","do":"ask","message":"m","approvers":["admin"],"quorum":2,` +
		`"deadline_ns":3600000000000,"on_expire":"escalate","escalate_to":["user:ana"],"no_edit":true,"no_grant":true},` +
		`{"name":"v","verb":["branch","rollback","restart","agent"],"do":"ask"},{"name":"x","do":"allow"}]`
	if string(b) != want {
		t.Errorf("got  %s\nwant %s", b, want)
	}
	var back []policy.Rule
	if err := json.Unmarshal(b, &back); err != nil {
		t.Fatal(err)
	}
	p := compile(t, back...)
	if fmt.Sprint(p.Rules()[0]) != fmt.Sprint(r) {
		t.Errorf("got %+v", p.Rules()[0])
	}
}

// Everything that can be wrong with rules, as it is said.
func TestFaults(t *testing.T) {
	asking := func(a policy.Asking) policy.Rule { return policy.Rule{Name: "r", Do: policy.Ask, Asking: a} }
	many := make([]string, 101)
	for i := range many {
		many[i] = fmt.Sprintf("user:p%d", i)
	}
	var b strings.Builder
	for _, c := range []struct {
		name  string
		rules []policy.Rule
	}{
		{"nothing", []policy.Rule{{}}},
		{"name", []policy.Rule{{Name: "Big Spend", Do: policy.Ask}, {Name: strings.Repeat("a", 65), Do: policy.Ask}, {Name: "-a", Do: policy.Ask}}},
		{"name twice", []policy.Rule{{Name: "a", Do: policy.Ask}, {Name: "b", Do: policy.Ask}, {Name: "a", Do: policy.Deny}}},
		{"words", []policy.Rule{{Name: "a", Do: "maybe", Match: policy.Match{Kind: []stint.StepKind{"llm"}, Effect: []stint.Effect{"write", stint.Once, stint.Once}}}, {Name: "b", Do: policy.Ask, Match: policy.Match{Verb: []policy.Verb{"kill"}}}}},
		{"tools", []policy.Rule{named("a", policy.Match{Tool: []string{"", "a\nb", strings.Repeat("x", 201)}}), named("b", policy.Match{Tool: many})}},
		{"verb and tool", []policy.Rule{named("a", policy.Match{Tool: []string{"x"}, Verb: policy.Verbs()})}},
		{"cost", []policy.Rule{named("a", policy.Match{CostOver: -1})}},
		{"when", []policy.Rule{named("a", policy.Match{When: "args.x &&\n  tol == 1"}), named("b", policy.Match{When: "cost"}), named("c", policy.Match{When: "tool matches args.p"}),
			named("d", policy.Match{When: "now() > 1"}), named("e", policy.Match{When: "${ args.x }"}), named("f", policy.Match{When: "effect = 1"}), named("g", policy.Match{When: "fromJSON(tool) == 1"})}},
		{"useless", []policy.Rule{{Name: "a", Do: policy.Deny, Asking: policy.Asking{Approvers: []string{"admin"}, Quorum: 1, Deadline: 1, OnExpire: policy.ExpireDeny, EscalateTo: []string{"viewer"}, NoEdit: true, NoGrant: true, Message: "ok"}},
			{Name: "b", Do: policy.Allow, Asking: policy.Asking{Message: "m", NoEdit: true}}}},
		{"message", []policy.Rule{asking(policy.Asking{Message: "a\nb"})}},
		{"approvers", []policy.Rule{asking(policy.Asking{Approvers: []string{"boss", "user:", "Ana", "admin", "admin", "user: ana"}})}},
		{"many approvers", []policy.Rule{asking(policy.Asking{Approvers: many})}},
		{"quorum", []policy.Rule{asking(policy.Asking{Quorum: 21})}},
		{"quorum of people", []policy.Rule{asking(policy.Asking{Quorum: 2, Approvers: []string{"user:ana"}})}},
		{"expiry", []policy.Rule{asking(policy.Asking{OnExpire: policy.ExpireStop})}},
		{"expiry word", []policy.Rule{asking(policy.Asking{OnExpire: "allow", Deadline: time.Hour})}},
		{"deadline", []policy.Rule{asking(policy.Asking{Deadline: -1})}},
		{"escalate to nobody", []policy.Rule{asking(policy.Asking{OnExpire: policy.Escalate, Deadline: time.Hour})}},
		{"escalate without it", []policy.Rule{asking(policy.Asking{EscalateTo: []string{"admin"}, Deadline: time.Hour})}},
		{"escalate to the same", []policy.Rule{asking(policy.Asking{Approvers: []string{"admin"}, OnExpire: policy.Escalate, EscalateTo: []string{"admin", "user:ana", "user:ana"}, Deadline: time.Hour})}},
		{"many rules", make([]policy.Rule, 201)},
	} {
		_, err := policy.Compile(c.rules)
		var faults policy.Faults
		var e *stint.Error
		if !errors.As(err, &e) || e.Code != stint.Invalid || e.Hint == "" || !errors.As(err, &faults) {
			t.Errorf("%s: got %v", c.name, err)
			continue
		}
		fmt.Fprintf(&b, "%s\n", c.name)
		for i := range faults {
			fmt.Fprintf(&b, "  %s\n", faults[i:i+1].Error())
			if faults[i].Hint != "" {
				fmt.Fprintf(&b, "    %s\n", faults[i].Hint)
			}
		}
	}
	golden(t, "testdata/faults.txt", b.String())
}

func TestJudgeConcurrently(t *testing.T) {
	p := compile(t, named("r", policy.Match{When: `args.branch == "main" && any(keys(args), # == "id")`}))
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 50 {
				call, want := push(), policy.Ask
				if i%2 == 0 {
					call.Input, want = json.RawMessage(`{"branch":"other"}`), policy.Allow
				}
				if v := p.Judge(call); v.Do != want || v.Fault != "" {
					t.Errorf("got %+v", v)
				}
			}
		})
	}
	wg.Wait()
}

// Whatever rules and arguments there are, nothing panics, a fault has its place, and what
// went wrong asks.
func FuzzJudge(f *testing.F) {
	f.Add("r", "git*", `args.a == 1`, `{"a":1}`, "user:ana", "deny", 1, int64(1))
	f.Add("r", "", `all(args, # > 1)`, `[1,2]`, "admin", "ask", 0, int64(0))
	f.Add("R", "a**b", `labels.x matches "("`, `{`, "", "escalate", -1, int64(-1))
	f.Fuzz(func(t *testing.T, name, tool, when, input, approver, expire string, quorum int, span int64) {
		r := policy.Rule{Name: name, Match: policy.Match{When: when}, Do: policy.Ask, Asking: policy.Asking{Quorum: quorum, Deadline: time.Duration(span), OnExpire: policy.OnExpire(expire)}}
		if tool != "" {
			r.Tool = []string{tool}
		}
		if approver != "" {
			r.Approvers = []string{approver}
		}
		p, err := policy.Compile([]policy.Rule{r})
		if err != nil {
			var faults policy.Faults
			if !errors.As(err, &faults) || len(faults) == 0 {
				t.Fatal(err)
			}
			for _, f := range faults {
				if f.Line < 1 || f.Column < 1 || f.Text == "" || f.Line > strings.Count(when, "\n")+1 {
					t.Errorf("no place: %+v", f)
				}
			}
			return
		}
		call := push()
		call.Tool, call.Input = tool, json.RawMessage(input)
		v := p.Judge(call)
		if v.Fault != "" && (v.Do != policy.Ask || v.Grantable) || v.Do == policy.Ask && (v.Quorum < 1 || v.Digest.IsZero()) || when == "" && v.Do != policy.Ask {
			t.Errorf("got %+v", v)
		}
	})
}
