package config_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/config"
	"github.com/stint-dev/stint/internal/worktree"
	"github.com/stint-dev/stint/policy"
	"github.com/stint-dev/stint/tool"
)

// agents generates what Parse could return, and more.
func agents() *rapid.Generator[config.Agent] {
	span := rapid.Map(rapid.Int64Range(0, 1<<58), func(n int64) time.Duration { return time.Duration(n) })
	words := rapid.SliceOfN(rapid.String(), 1, 4)
	return rapid.Custom(func(t *rapid.T) config.Agent {
		a := config.Agent{
			Name:        rapid.StringMatching(`[a-z0-9][a-z0-9._-]{0,9}`).Draw(t, "name"),
			Kind:        config.KindExec,
			Command:     words.Draw(t, "command"),
			Protocol:    rapid.SampledFrom([]config.Protocol{config.JSONL, config.None}).Draw(t, "protocol"),
			Dir:         rapid.String().Draw(t, "dir"),
			Env:         texts(t, "env", rapid.String()),
			Keep:        rapid.SampledFrom([]config.Keep{config.KeepLoop, config.KeepSession}).Draw(t, "keep"),
			Effect:      rapid.SampledFrom([]stint.Effect{stint.Read, stint.Idempotent, stint.Once}).Draw(t, "effect"),
			Effects:     texts(t, "effects", rapid.SampledFrom([]stint.Effect{stint.Read, stint.Idempotent, stint.Once})),
			Output:      rapid.Int64Range(1, 1<<30).Draw(t, "output"),
			Grace:       span.Draw(t, "grace"),
			Concurrency: rapid.IntRange(0, 9).Draw(t, "concurrency"),
			Done:        rapid.String().Draw(t, "done"),
			Pin:         rapid.SampledFrom([]config.Pin{config.PinWarn, config.PinStrict, config.PinCopy}).Draw(t, "pin"),
			About: config.About{Labels: texts(t, "labels", rapid.String()), Description: rapid.String().Draw(t, "description"), Policy: rapid.SampledFrom([][]policy.Rule{nil, {{Name: "a", Do: policy.Ask}}, {{Name: "b", Do: policy.Deny}, {Name: "a.b", Do: policy.Allow}},
				{{Name: "a", Match: policy.Match{Tool: []string{"x*"}, When: "args.a == 1"}, Do: policy.Ask, Asking: policy.Asking{Quorum: 2, Deadline: 1}}}}).Draw(t, "policy")},
			Retry: config.Retry{Attempts: rapid.IntRange(1, 1000).Draw(t, "attempts"), Initial: span.Draw(t, "initial"),
				Factor: rapid.Float64Range(1, 100).Draw(t, "factor"), Max: span.Draw(t, "max"), Jitter: rapid.Float64Range(0, 1).Draw(t, "jitter")},
			Bounds: config.Bounds{Wall: span.Draw(t, "wall"), Idle: span.Draw(t, "idle"), Loops: rapid.IntRange(0, 9).Draw(t, "loops"),
				Steps: rapid.IntRange(0, 9).Draw(t, "steps"), Cost: stint.Money(rapid.Int64Range(0, 1e18).Draw(t, "cost")),
				Tokens: rapid.Int64Range(0, 1e15).Draw(t, "tokens"), Stop: rapid.Bool().Draw(t, "stop")},
		}
		if rapid.Bool().Draw(t, "works apart") {
			a.Workspace = &worktree.Spec{Repo: rapid.String().Draw(t, "repo"), Dir: rapid.String().Draw(t, "trees"), Base: rapid.String().Draw(t, "base"),
				Author: rapid.String().Draw(t, "author"), Keep: rapid.SampledFrom([]worktree.Keep{worktree.KeepAll, worktree.KeepBranch}).Draw(t, "keeps")}
		}
		if rapid.Bool().Draw(t, "passes") {
			a.Pass = words.Draw(t, "pass")
		}
		a.InDoubt = texts(t, "in_doubt", rapid.SampledFrom([]config.InDoubt{{Do: config.Ask}, {Do: config.Unknown},
			{Do: config.Verify, Verify: []string{"a"}}, {Do: config.Verify, Verify: []string{"a", "b, c"}}}))
		switch rapid.IntRange(0, 2).Draw(t, "deadline") {
		case 1:
			a.Bounds.DeadlineIn = span.Draw(t, "in")
		case 2:
			a.Bounds.DeadlineAt = time.UnixMicro(rapid.Int64Range(0, 1<<52).Draw(t, "at")).UTC()
		}
		switch a.Kind = rapid.SampledFrom(config.KindNames()).Draw(t, "kind"); a.Kind {
		case config.KindLLM:
			a.LLM = models().Draw(t, "llm")
		case config.KindHTTP:
			a.HTTP = &config.HTTP{URL: "https://" + rapid.String().Draw(t, "url"), Secret: rapid.String().Draw(t, "secret"), Headers: texts(t, "headers", rapid.String()),
				Timeout: span.Draw(t, "timeout"), Idle: span.Draw(t, "idle"), AllowPrivate: rapid.Bool().Draw(t, "private")}
		case config.KindCLI:
			a.CLI = &config.CLI{Interactive: rapid.Bool().Draw(t, "interactive"), Hold: span.Draw(t, "hold"), Args: rapid.SampledFrom([][]string{nil, {"a"}, {"b", "c d"}}).Draw(t, "args")}
		}
		return a
	})
}

// models generates what an llm agent may have.
func models() *rapid.Generator[*config.LLM] {
	span := rapid.Map(rapid.Int64Range(0, 1<<58), func(n int64) time.Duration { return time.Duration(n) })
	effect := rapid.SampledFrom([]stint.Effect{stint.Read, stint.Idempotent, stint.Once})
	approve := rapid.SampledFrom([]tool.Approve{"", tool.Always, tool.Never})
	schema := rapid.SampledFrom([]json.RawMessage{nil, json.RawMessage(`{"type":"object"}`), json.RawMessage(`{"const":"<\u2028&é` + strings.Repeat("x", 200) + `","maximum":1e400}`)})
	flag := rapid.Ptr(rapid.Bool(), true)
	some := rapid.SampledFrom([][]string{nil, {"a"}, {"b", "c d"}})
	ref := rapid.Custom(func(t *rapid.T) config.ModelRef {
		name := rapid.StringMatching(`[a-z]{1,3}`).Draw(t, "provider")
		return config.ModelRef{Model: name + "/" + rapid.String().Draw(t, "model"), Provider: config.Provider{Name: name, API: config.Chat, BaseURL: rapid.String().Draw(t, "base"),
			Key: rapid.String().Draw(t, "key"), Headers: texts(t, "headers", rapid.String()), Timeout: span.Draw(t, "timeout"), Parallel: rapid.IntRange(0, 9).Draw(t, "parallel")}}
	})
	tools := rapid.Custom(func(t *rapid.T) config.ToolSpec {
		info := config.ToolInfo{Name: rapid.StringMatching(`[a-z]{1,2}`).Draw(t, "name"), Description: rapid.String().Draw(t, "description"), Args: schema.Draw(t, "args"), Effect: effect.Draw(t, "effect"),
			Approve: approve.Draw(t, "approve"), Parallel: rapid.Bool().Draw(t, "parallel"), Timeout: span.Draw(t, "timeout"), Taints: rapid.Bool().Draw(t, "taints"), Output: rapid.Int64Range(0, 9).Draw(t, "output")}
		switch rapid.IntRange(0, 5).Draw(t, "tool") {
		case 5:
			return config.ToolSpec{Spawn: &config.SpawnTool{Agents: some.Draw(t, "agents")}}
		case 0:
			return config.ToolSpec{Builtin: rapid.SampledFrom([]config.Builtin{config.SleepTool, config.AskTool}).Draw(t, "builtin")}
		case 1:
			return config.ToolSpec{Files: &config.FilesTool{Root: rapid.String().Draw(t, "root"), Write: rapid.Bool().Draw(t, "write")}}
		case 2:
			return config.ToolSpec{HTTP: &config.HTTPTool{ToolInfo: info, Method: "GET", URL: rapid.String().Draw(t, "url"), Headers: texts(t, "headers", rapid.String()), Allow: some.Draw(t, "allow")}}
		case 3:
			return config.ToolSpec{MCP: &config.MCPTools{File: rapid.String().Draw(t, "file"), Servers: some.Draw(t, "servers"), Trust: some.Draw(t, "trust"), Allow: some.Draw(t, "allow")}}
		}
		return config.ToolSpec{Exec: &config.ExecTool{ToolInfo: info, Command: []string{rapid.String().Draw(t, "command")}, Shell: rapid.Bool().Draw(t, "shell"), Dir: rapid.String().Draw(t, "dir"),
			Env: texts(t, "env", rapid.String()), Pass: some.Draw(t, "pass"), Grace: span.Draw(t, "grace")}}
	})
	return rapid.Custom(func(t *rapid.T) *config.LLM {
		l := &config.LLM{ModelRef: ref.Draw(t, "model"), MaxTokens: rapid.Int64Range(1, 9).Draw(t, "max"), Temperature: rapid.Ptr(rapid.Float64Range(0, 2), true).Draw(t, "temperature"),
			Cache: rapid.Bool().Draw(t, "cache"), Context: config.Context{Window: rapid.Int64Range(1, 9).Draw(t, "window"), Compact: rapid.Float64Range(0, 1).Draw(t, "compact"), Excerpt: rapid.Int64Range(1, 9).Draw(t, "excerpt")},
			Instructions: rapid.String().Draw(t, "instructions"), Prompt: rapid.String().Draw(t, "prompt"), Interactive: rapid.Bool().Draw(t, "interactive"), Result: schema.Draw(t, "result")}
		if rapid.Bool().Draw(t, "judged") {
			l.Rubric = &config.Rubric{ModelRef: ref.Draw(t, "judge"), Text: rapid.String().Draw(t, "rubric"), Rounds: rapid.IntRange(1, 9).Draw(t, "rounds")}
		}
		if list := rapid.SliceOfN(tools, 0, 4).Draw(t, "tools"); len(list) > 0 {
			l.Tools = list
		}
		l.Tool = texts(t, "tool", rapid.Custom(func(t *rapid.T) config.ToolRule {
			return config.ToolRule{Effect: effect.Draw(t, "effect"), Approve: approve.Draw(t, "approve"), Parallel: flag.Draw(t, "parallel"), Timeout: span.Draw(t, "timeout"), Taints: flag.Draw(t, "taints"), Poll: rapid.Bool().Draw(t, "poll")}
		}))
		l.Rules = texts(t, "rules", rapid.Custom(func(t *rapid.T) config.Rule {
			return config.Rule{Off: rapid.Bool().Draw(t, "off"), Warn: rapid.IntRange(0, 3).Draw(t, "warn"), Pause: rapid.IntRange(0, 3).Draw(t, "pause")}
		}))
		return l
	})
}

// texts draws a map, nil where it has no members.
func texts[V any](t *rapid.T, label string, value *rapid.Generator[V]) map[string]V {
	keys := rapid.OneOf(rapid.SampledFrom([]string{"a", "a b", "ab", "B", "b", "a.b", "a[b"}), rapid.String())
	m := rapid.MapOfN(keys, value, 0, 4).Draw(t, label)
	if len(m) == 0 {
		return nil
	}
	return m
}

func TestDefinitionRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := agents().Draw(t, "agent")
		def, hash := a.Definition()
		back, err := config.FromDefinition(def)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(a, back) {
			t.Fatalf("%+v\ncame back as\n%+v", a, back)
		}
		again, same := back.Definition()
		if string(again) != string(def) || same != hash || hash.IsZero() {
			t.Fatalf("%s\nbecame\n%s", def, again)
		}
		if !json.Valid(def) || strings.ContainsAny(string(def), "\n") {
			t.Fatalf("%s", def)
		}
	})
}

// The form is pinned by sessions that exist: a change to these bytes makes all of
// them look drifted.
func TestDefinitionIsStable(t *testing.T) {
	f, err := config.Parse("stint.yaml", files(t, "good")["full"])
	if err != nil {
		t.Fatal(err)
	}
	a := f.Agents["triage"]
	def, hash := a.Definition()
	const want = `{"v":1,"name":"triage","kind":"exec","command":["python3","triage.py","--fast","5"],"protocol":"jsonl","dir":"tools",` +
		`"env":{"ABS":"file:/run/secrets/key","EMPTY":"","KEY":"file:secrets/key","MODE":"fast","TOKEN":"env:GITHUB_TOKEN"},` +
		`"pass":["GITHUB_TOKEN","HOME","PATH"],"keep":"session","effect":"once",` +
		`"effects":{"404":"idempotent","github.comment":"once","list_issues":"read"},` +
		`"in_doubt":{"charge":{"do":"ask"},"mail":{"do":"unknown"},"pay (card)":{"do":"verify","verify":["python3","verify.py"]}},` +
		`"output":524288,"limits":{"wall_ns":172800000000000,"idle_ns":300000000000,"deadline_in_ns":7200000000000,"loops":5,"steps":1000,` +
		`"cost":"5.00","tokens":100000,"stop":true},"grace_ns":10000000000,` +
		`"retry":{"attempts":3,"initial_ns":500000000,"factor":1.5,"max_ns":90000000000,"jitter":0},"concurrency":2,` +
		`"done":"state.remaining == 0 && totals.errors < 3","pin":"strict","labels":{"team":"platform","tier/one":"1"},` +
		`"description":"Sorts the issues, every morning"}`
	if string(def) != want {
		t.Errorf("got\n%s\nwant\n%s", def, want)
	}
	if got := hash.String(); got != "0e7bf552b6c7c738fb98998aa6f311de91f9af4d1d7fbff1c5846f93d71a8a3c" {
		t.Errorf("got %s", got)
	}
}

func TestFromDefinitionRefuses(t *testing.T) {
	for def, want := range map[string]string{
		``:   "cannot be read",
		`[]`: "cannot be read",
		`{"v":1,"kind":"exec","command":["a"],"x":1}`:                                                 `unknown field "x"`,
		`{"v":1,"kind":"exec","command":["a"],"limits":{"kids":3}}`:                                   "kids",
		`{"v":2,"kind":"exec","command":["a"]}`:                                                       "version 2",
		`{"kind":"exec","command":["a"]}`:                                                             "version 0",
		`{"v":1,"kind":"llm","command":["a"]}`:                                                        `kind "llm"`,
		`{"v":1,"kind":"exec"}`:                                                                       "0 words",
		`{"v":1,"kind":"robot","command":["a"]}`:                                                      `kind "robot"`,
		`{"v":1,"kind":"llm"}`:                                                                        "not what that kind is",
		`{"v":1,"kind":"llm","llm":{}}`:                                                               "not what that kind is",
		`{"v":1,"kind":"llm","llm":{"model":"a/b"},"http":{"url":"https://example.com"}}`:             "not what that kind is",
		`{"v":1,"kind":"http","llm":{"model":"a/b"}}`:                                                 "not what that kind is",
		`{"v":1,"kind":"http","http":{}}`:                                                             "not what that kind is",
		`{"v":1,"kind":"exec","command":["a"],"cli":{}}`:                                              "not what that kind is",
		`{"v":1,"kind":"cli","cli":{}}`:                                                               "not what that kind is",
		`{"v":1,"kind":"cli","command":["a"]}`:                                                        "not what that kind is",
		`{"v":1,"kind":"llm","llm":{"model":"a/b","budget":1}}`:                                       `unknown field "budget"`,
		`{"v":1,"kind":"llm","llm":{"model":"a/b","provider":{"region":"x"}}}`:                        `unknown field "region"`,
		`{"v":1,"kind":"llm","llm":{"model":"a/b","rubric":{"x":1}}}`:                                 `unknown field "x"`,
		`{"v":1,"kind":"llm","llm":{"model":"a/b","tools":[{"exec":{"x":1}}]}}`:                       `unknown field "x"`,
		`{"v":1,"kind":"llm","llm":{"model":"a/b","tools":[{"grpc":{}}]}}`:                            `unknown field "grpc"`,
		`{"v":1,"kind":"llm","llm":{"model":"a/b","tools":[{}]}}`:                                     "not one tool",
		`{"v":1,"kind":"llm","llm":{"model":"a/b","tools":[{"builtin":"ask","files":{"root":"."}}]}}`: "not one tool",
		`{"v":1,"kind":"llm","llm":{"model":"a/b","rules":{"N01":{"do":"x"}}}}`:                       `unknown field "do"`,
		`{"v":1,"kind":"http","http":{"url":"https://example.com","x":1}}`:                            `unknown field "x"`,
		`{"v":1,"kind":"cli","command":["a"],"cli":{"x":1}}`:                                          `unknown field "x"`,
		`{"v":1,"kind":"exec","command":["a"],"policy":[{"name":"a","do":"ask","x":1}]}`:              `unknown field "x"`,
		`{"v":1,"kind":"exec","command":["a"],"policy":[{"name":"a","do":"maybe"}]}`:                  "a policy that cannot be used",
		`{"v":1,"kind":"exec","command":["a"],"policy":[{"name":"a","when":"x","do":"ask"}]}`:         "unknown name x",
		`{"v":1,"kind":"exec","command":["a"]} {}`:                                                    "more after it",
		`{"v":1,"kind":"exec","command":["a"],"grace_ns":"1m"}`:                                       "cannot be read",
	} {
		_, err := config.FromDefinition(json.RawMessage(def))
		if stint.CodeOf(err) != stint.Invalid || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q in it", def, err, want)
		}
	}
}

// Diff is empty exactly when the definitions are equal, and reads the same from
// both ends.
func TestDiffAgreesWithDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, other := agents().Draw(t, "a"), agents().Draw(t, "other")
		b := a
		from, to := reflect.ValueOf(other), reflect.ValueOf(&b).Elem()
		for range rapid.IntRange(0, 3).Draw(t, "changes") {
			i := rapid.IntRange(0, to.NumField()-1).Draw(t, "field")
			to.Field(i).Set(from.Field(i))
		}
		_, left := a.Definition()
		_, right := b.Definition()
		there, back := config.Diff(a, b), config.Diff(b, a)
		if (left == right) != (len(there) == 0) {
			t.Fatalf("%+v\n%+v\ndiffer in %v", a, b, there)
		}
		if len(there) != len(back) {
			t.Fatalf("there %v, back %v", there, back)
		}
		once := map[string]bool{}
		for i, c := range there {
			if once[c.Member] {
				t.Fatalf("%s is there twice: %v", c.Member, there)
			}
			once[c.Member] = true
			if r := back[i]; r.Member != c.Member || r.From != c.To || r.To != c.From || c.From == c.To {
				t.Fatalf("there %v, back %v", c, r)
			}
		}
	})
}

func TestDiff(t *testing.T) {
	parse := func(text string) config.Agent {
		t.Helper()
		f, err := config.Parse("stint.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return f.Agents["a"]
	}
	a := parse("agents: {a: {kind: exec, command: [a], env: {MODE: fast, X: env:X}, limits: {cost: 5}, in_doubt: {pay: ask}}}")
	b := parse(`agents:
  a:
    kind: exec
    command: [a, "b c"]
    dir: sub
    env: {MODE: slow, NEW: file:k}
    pass: [HOME]
    effects: {github.list: read}
    in_doubt: {pay: {verify: [check, "1"]}}
    output: 2MiB
    limits: {wall: 90m, loops: none, cost: 0.125, deadline: 2027-01-31T18:00:00Z}
    on_limit: stop
    retry: {factor: 1.5, max: 2m}
    done: state.n == 0
    labels: {team: platform}
`)
	var got []string
	for _, c := range config.Diff(a, b) {
		got = append(got, c.String())
	}
	want := []string{
		`command: [a] → [a, "b c"]`,
		`dir: "." → sub`,
		`env.MODE: fast → slow`,
		`env.NEW: none → "file:k"`,
		`env.X: "env:X" → none`,
		`pass: [] → [HOME]`,
		`effects["github.list"]: none → read`,
		`in_doubt.pay: ask → {verify: [check, "1"]}`,
		`output: 1MiB → 2MiB`,
		`limits.wall: 1h → 1h30m`,
		`limits.deadline: none → 2027-01-31T18:00:00Z`,
		`limits.loops: 50 → none`,
		`limits.cost: 5.00 → 0.125`,
		`on_limit: wait → stop`,
		`retry.factor: 2 → 1.5`,
		`retry.max: 1m → 2m`,
		`done: none → "state.n == 0"`,
		`labels.team: none → platform`,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if d := config.Diff(a, a); len(d) != 0 {
		t.Errorf("an agent differs from itself: %v", d)
	}
}

// A change of a tool, a provider or a text in another file is told by its own name.
func TestDiffOfModels(t *testing.T) {
	parse := func(text, instructions string) config.Agent {
		t.Helper()
		f, err := config.ParseWith("stint.yaml", []byte(text), func(string) ([]byte, error) { return []byte(instructions), nil })
		if err != nil {
			t.Fatal(err)
		}
		return f.Agents["a"]
	}
	long := strings.Repeat("Sort the issues. ", 20)
	a := parse(`providers: {near: {api: chat, base_url: http://127.0.0.1/v1}}
agents: {a: {kind: llm, model: near/x, instructions: {file: a.md}, tools: [sleep, {exec: {name: count, command: [wc]}}], rules: {N01: off}}}
`, long)
	b := parse(`providers: {near: {api: chat, base_url: "http://127.0.0.1:8080/v1", headers: {X-Team: a}}}
agents:
  a:
    kind: llm
    model: near/y
    temperature: 0
    context: {excerpt: 64KiB}
    instructions: {file: a.md}
    prompt: Begin.
    result: {schema: {type: object}}
    tools: [{exec: {name: count, command: [wc, -l], timeout: 90s}}, sleep, files: {}, http: {name: get, url: "https://example.com"}]
    tool: {count: {effect: read, parallel: false}}
    rules: {N01: {warn: 3}, N02: off}
`, long+"Now.")
	var got []string
	for _, c := range config.Diff(a, b) {
		got = append(got, c.String())
	}
	want := []string{
		"model: near/x → near/y",
		`provider.base_url: "http://127.0.0.1/v1" → "http://127.0.0.1:8080/v1"`,
		"provider.headers.X-Team: none → a",
		"temperature: none → 0",
		"context.excerpt: 32KiB → 64KiB",
		`instructions: "Sort the issues. Sort the issues. Sort the issues. Sort the…" (340 bytes, SHA-256 083ef5d991fdc99b) → "Sort the issues. Sort the issues. Sort the issues. Sort the…" (344 bytes, SHA-256 5407cb7cf3f8b5c3)`,
		"prompt: none → Begin.",
		`result: none → {"type":"object"}`,
		"tools: [sleep, count] → [sleep, files, count, get]",
		"tools.count.exec.timeout: none → 1m30s",
		"tools.count.exec.command: [wc] → [wc, -l]",
		`tools.files.root: none → "."`,
		"tools.files.write: none → false",
		"tools.get.http.name: none → get",
		"tools.get.http.effect: none → read",
		"tools.get.http.parallel: none → false",
		"tools.get.http.timeout: none → 1m",
		"tools.get.http.taints: none → true",
		"tools.get.http.method: none → GET",
		`tools.get.http.url: none → "https://example.com"`,
		"tool.count.effect: none → read",
		"tool.count.parallel: none → false",
		"rules.N01: off → {warn: 3}",
		"rules.N02: none → off",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
