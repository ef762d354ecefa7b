package config_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/goccy/go-yaml"

	"github.com/stint-dev/stint/internal/config"
	"github.com/stint-dev/stint/internal/endpoint"
	"github.com/stint-dev/stint/internal/worktree"
)

// object is a JSON object.
type object = map[string]any

func schema(t *testing.T) object {
	t.Helper()
	var s object
	if err := json.Unmarshal(config.Schema(), &s); err != nil {
		t.Fatal(err)
	}
	return s
}

// at follows a path of members.
func at(t *testing.T, s object, path ...string) object {
	t.Helper()
	for _, p := range path {
		next, ok := s[p].(object)
		if !ok {
			t.Fatalf("the schema has no %v", path)
		}
		s = next
	}
	return s
}

// second is the second of two forms.
func second(o object) object { return o["anyOf"].([]any)[1].(object) }

// Every key that the parser knows is in the schema, and the other way round.
func TestSchemaKeys(t *testing.T) {
	s := schema(t)
	def := func(path ...string) object { t.Helper(); return at(t, s, append([]string{"$defs"}, path...)...) }
	sections := map[string]object{
		"":        s,
		"verify":  second(at(t, def("inDoubt"), "additionalProperties")),
		"rule":    second(def("rule")),
		"tool":    second(def("tool")),
		"files":   at(t, second(def("tool")), "properties", "files"),
		"mcp":     at(t, second(def("tool")), "properties", "mcp"),
		"spawn":   at(t, second(def("tool")), "properties", "spawn"),
		"content": second(def("content")),
		"preset":  at(t, def("policies"), "items")["anyOf"].([]any)[0].(object),

		"workspace": second(def("workspace")),
	}
	for _, name := range append(config.KindNames(), "limits", "retry", "provider", "context", "rubric", "result", "execTool", "httpTool", "override", "hook", "hmac", "hookLimits", "schedule", "catchUp", "when", "endpoint", "policy", "notifyExec", "notifySMTP", "quiet") {
		sections[name] = def(name)
	}
	known := config.KnownKeys()
	if len(known) != len(sections) {
		t.Fatalf("the parser has %d sections, this test %d", len(known), len(sections))
	}
	for name, want := range known {
		section := sections[name]
		got := slices.Sorted(maps.Keys(at(t, section, "properties")))
		if slices.Sort(want); !slices.Equal(got, want) {
			t.Errorf("section %q: the schema has %v, the parser %v", name, got, want)
		}
		if section["additionalProperties"] != false {
			t.Errorf("section %q of the schema takes other keys", name)
		}
	}
}

// The defaults that the schema shows are those of the parser.
func TestSchemaDefaults(t *testing.T) {
	s := schema(t)
	a, concurrency := config.Defaults()
	span := func(d time.Duration) any { return config.FormatDuration(d) }
	check := func(want any, path ...string) {
		t.Helper()
		if got := at(t, s, path...)["default"]; !reflect.DeepEqual(got, want) {
			t.Errorf("%v: the schema says %v, the parser %v", path, got, want)
		}
	}
	agent := func(key string, want any) { t.Helper(); check(want, "$defs", "exec", "properties", key) }
	limit := func(key string, want any) { t.Helper(); check(want, "$defs", "limits", "properties", key) }
	retry := func(key string, want any) { t.Helper(); check(want, "$defs", "retry", "properties", key) }
	check(float64(concurrency), "properties", "concurrency")
	agent("protocol", string(a.Protocol))
	agent("keep", string(a.Keep))
	check(string(a.Effect), "$defs", "effect")
	agent("output", config.FormatSize(a.Output))
	agent("on_limit", map[bool]string{false: "wait", true: "stop"}[a.Bounds.Stop])
	agent("grace", "90s")
	if d, _ := config.ParseDuration("90s"); d != a.Grace {
		t.Errorf("grace is %v", a.Grace)
	}
	agent("pin", string(a.Pin))
	limit("wall", span(a.Bounds.Wall))
	limit("loops", float64(a.Bounds.Loops))
	for _, none := range []string{"idle", "deadline", "steps", "cost", "tokens"} {
		limit(none, "none")
	}
	if b := a.Bounds; b.Idle != 0 || b.DeadlineIn != 0 || !b.DeadlineAt.IsZero() || b.Steps != 0 || b.Cost != 0 || b.Tokens != 0 {
		t.Errorf("limits are %+v", b)
	}
	retry("attempts", float64(a.Retry.Attempts))
	retry("initial", span(a.Retry.Initial))
	retry("factor", a.Retry.Factor)
	retry("max", span(a.Retry.Max))
	retry("jitter", a.Retry.Jitter)
	of := func(section string, want map[string]any) {
		t.Helper()
		for key, v := range want {
			check(v, "$defs", section, "properties", key)
		}
	}
	l, h, c := config.DefaultsOf(config.KindLLM).LLM, config.DefaultsOf(config.KindHTTP).HTTP, config.DefaultsOf(config.KindCLI)
	of("llm", object{"max_tokens": float64(l.MaxTokens), "cache": l.Cache, "interactive": l.Interactive, "pin": "warn", "on_limit": "wait"})
	of("context", object{"window": float64(l.Context.Window), "compact": l.Context.Compact, "excerpt": config.FormatSize(l.Context.Excerpt)})
	of("http", object{"timeout": span(h.Timeout), "idle": span(h.Idle), "allow_private": h.AllowPrivate, "pin": "warn"})
	of("cli", object{"interactive": c.CLI.Interactive, "hold": span(c.CLI.Hold), "output": config.FormatSize(c.Output), "grace": "90s", "pin": "warn"})
	of("notifyExec", object{"timeout": span(endpoint.DefaultExec().Timeout)})
	of("notifySMTP", object{"tls": string(endpoint.DefaultSMTP().TLS)})
	check("none", "$defs", "workspace")
	apart := second(at(t, s, "$defs", "workspace"))["properties"].(object)
	for key, want := range map[string]any{"author": worktree.DefaultAuthor, "keep": string(worktree.KeepAll), "repo": "."} {
		if got := apart[key].(object)["default"]; got != want {
			t.Errorf("workspace.%s: the schema says %v, the parser %v", key, got, want)
		}
	}
	for name, p := range config.BuiltIn() {
		if name != "script" {
			of("provider", object{"timeout": span(p.Timeout), "parallel": float64(p.Parallel)})
		}
	}
	f, err := config.Parse("stint.yaml", []byte("agents: {a: {kind: llm, model: script/x, rubric: {text: x}, tools: [files: {}, exec: {name: a, command: [a]}, http: {name: b, url: \"https://example.com\"}]}}"))
	if err != nil {
		t.Fatal(err)
	}
	l = f.Agents["a"].LLM
	x, r := l.Tools[1].Exec, l.Tools[2].HTTP
	v, err := policyVerdict()
	if err != nil {
		t.Fatal(err)
	}
	of("policy", object{"quorum": float64(v.Quorum), "on_expire": string(v.OnExpire), "edit": v.Edit, "grant": v.Grantable})
	of("rubric", object{"rounds": float64(l.Rubric.Rounds)})
	of("execTool", object{"parallel": x.Parallel, "taints": x.Taints, "shell": x.Shell, "dir": x.Dir})
	of("httpTool", object{"parallel": r.Parallel, "taints": r.Taints, "method": r.Method, "timeout": span(r.Timeout)})
	if x.Effect != "once" || l.Tools[0].Files.Write || l.Tools[0].Files.Root != "." {
		t.Errorf("got %+v, %+v", x, l.Tools[0].Files)
	}
}

// Whatever the parser takes the schema takes, and what is wrong in form both refuse.
func TestSchemaAgrees(t *testing.T) {
	s := schema(t)
	validate := func(b []byte) string {
		t.Helper()
		var v any
		b = bytes.TrimPrefix(b, []byte("\xef\xbb\xbf"))
		if err := yaml.Unmarshal(b, &v); err != nil {
			t.Fatal(err)
		}
		j, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(j, &v); err != nil {
			t.Fatal(err)
		}
		return (&validator{t: t, root: s}).check(s, v, "$")
	}
	for name, b := range files(t, "good") {
		if why := validate(b); why != "" {
			t.Errorf("good/%s: %s", name, why)
		}
	}
	if why := validate([]byte(config.Example())); why != "" {
		t.Errorf("the example: %s", why)
	}
	for _, name := range []string{"unknown-keys", "types", "types2", "null", "text", "list", "store-path", "store-postgres", "store-empty", "many", "windows",
		"kinds", "kinds-keys-llm", "kinds-keys-other", "models", "providers", "references", "content", "schemas", "rubric-rules", "tools", "tools-mcp", "tools-exec", "tools-http", "overrides", "http-cli", "hooks", "hooks-list", "policy", "policy-places", "schedules", "schedules2", "notify", "notify-exec", "notify-smtp", "notify-when", "workspace"} {
		if why := validate(files(t, "bad")[name]); why == "" {
			t.Errorf("bad/%s: the schema takes it", name)
		}
	}
	agent := func(line string) []byte {
		return []byte("agents:\n  a:\n    kind: exec\n    command: [a]\n    " + line + "\n")
	}
	for _, line := range []string{
		"limits: {wall: 60}", "limits: {wall: fast}", "limits: {loops: 0}", "limits: {loops: many}", "limits: {cost: 0}", "limits: {cost: $5}", "limits: {deadline: tomorrow}",
		"limits: {wall: 1h 5m}", "grace: none", "grace: 5", "output: 1 MiB", "output: 0", "output: []", "retry: {attempts: 0}", "retry: {factor: 0.5}", "retry: {jitter: 2}",
		"pin: yes", "keep: never", "protocol: json", "pass: HOME", "pass: [A-B]", "pass: [A, A]", "env: {A B: x}", "env: {A: 1}", "effects: {a: never}", "effects: {'': read}", "workspace: git", "workspace: [worktree]", "workspace: {repo: 1}", "workspace: {base: -x}", "workspace: {author: nobody}",
		"workspace: {keep: nothing}", "workspace: {kind: copy}", "workspace: {branch: x}",
		"in_doubt: {a: never}", "in_doubt: {a: {verify: []}}", "in_doubt: {a: {}}", "labels: {a b: x}", "labels: {a: 1}", "description: ''", "concurrency: 0", "done: ''", "dir: ''",
		"policy: {}", "policy: [ask-once]", "policy: [{preset: careful}]", "policy: [{preset: ask-once, do: ask}]", "policy: [{name: a}]", "policy: [{do: ask}]", "policy: [{name: A b, do: ask}]", "policy: [{name: a, do: maybe}]",
		"policy: [{name: a, do: ask, tool: []}]", "policy: [{name: a, do: ask, tool: 1}]", "policy: [{name: a, do: ask, kind: llm}]", "policy: [{name: a, do: ask, effect: [once, once]}]", "policy: [{name: a, do: ask, when: ''}]",
		"policy: [{name: a, do: ask, tainted: false}]", "policy: [{name: a, do: ask, cost_over: 0}]", "policy: [{name: a, do: ask, verb: kill}]", "policy: [{name: a, do: ask, message: ''}]", "policy: [{name: a, do: ask, quorum: 0}]",
		"policy: [{name: a, do: ask, deadline: 4}]", "policy: [{name: a, do: ask, deadline: 4h, on_expire: allow}]", "policy: [{name: a, do: ask, edit: 1}]",
		"policy: [{name: a, do: ask, grant: never}]", "policy: [{name: a, do: ask, approvers: []}]",
	} {
		if _, err := config.Parse("stint.yaml", agent(line)); err == nil {
			t.Errorf("%s: the parser takes it", line)
		}
		if why := validate(agent(line)); why == "" {
			t.Errorf("%s: the schema takes it", line)
		}
	}
	for kind, lines := range ofKinds() {
		head := "agents:\n  a:\n    kind: " + kind + "\n    " + map[string]string{"llm": "model: anthropic/a", "http": "url: https://example.com", "cli": "protocol: codex"}[kind] + "\n    "
		if why := validate([]byte(head)); why != "" {
			t.Errorf("%s: the schema refuses it: %s", head, why)
		}
		for _, line := range lines {
			b := []byte(head + line + "\n")
			if _, err := config.Parse("stint.yaml", b); err == nil {
				t.Errorf("%s: %s: the parser takes it", kind, line)
			}
			if why := validate(b); why == "" {
				t.Errorf("%s: %s: the schema takes it", kind, line)
			}
		}
	}
	for _, name := range []string{"../../x", "", "a b", "-rf", "Triage", "tríage", strings.Repeat("a", 65)} {
		b := fmt.Appendf(nil, "agents: {%q: {kind: exec, command: [a]}}", name)
		if _, err := config.Parse("stint.yaml", b); err == nil || validate(b) == "" {
			t.Errorf("the name %q is taken", name)
		}
	}
}

// ofKinds are lines of agents by kind that are wrong in form.
func ofKinds() map[string][]string {
	return map[string][]string{
		"llm": {"command: [a]", "effects: {a: read}", "max_tokens: 0", "temperature: 3", "cache: 1", "context: {window: 1}", "context: {excerpt: 1 KiB}", "context: {size: 1}",
			"instructions: ''", "instructions: {path: a}", "prompt: [a]", "result: {}", "result: {schema: {}}", "rubric: {}", "rubric: {text: x, rounds: 0}", "rubric: {text: x, model: x}",
			"tools: sleep", "tools: [bash]", "tools: [{}]", "tools: [{files: {}, mcp: {file: a}}]", "tools: [exec: {name: a}]", "tools: [exec: {command: [a]}]", "tools: [exec: {name: a b, command: [a]}]",
			"tools: [exec: {name: a, command: [a], args: {}}]", "tools: [http: {name: a, url: a}]", "tools: [http: {name: a, url: \"https://{a}/\"}]", "tools: [http: {name: a, url: \"https://a\", method: get}]",
			"tools: [mcp: {}]", "tools: [mcp: {file: a, servers: []}]", "tools: [mcp: {file: a, servers: [a, a]}]", "tool: {'a b': {effect: read}}", "tool: {a: {}}", "tool: {a: {effect: never}}",
			"rules: {N99: off}", "rules: {N01: on}", "rules: {N01: {}}", "rules: {N01: {warn: 0}}", "rules: {tainted-once: {warn: 1}}", "model_: x"},
		"http": {"command: [a]", "secret: abc", "headers: {'a b': c}", "headers: {a: 1}", "timeout: none", "idle: 5", "allow_private: 1", "tools: []", "effect: read", "grace: 5s", "workspace: worktree"},
		"cli":  {"model: anthropic/a", "args: a", "args: [1]", "hold: none", "interactive: 1", "keep: loop", "effect: read", "command: []", "tools: []"},
	}
}

// validator checks a value with the keywords of JSON Schema that the schema
// uses. One that it does not know fails the test: it would go unchecked.
type validator struct {
	t    *testing.T
	root object
}

// check says what is wrong with v, "" if nothing is.
func (c *validator) check(s object, v any, path string) string {
	for keyword, arg := range s {
		if why := c.keyword(s, keyword, arg, v, path); why != "" {
			return path + ": " + why
		}
	}
	return ""
}

func (c *validator) keyword(s object, keyword string, arg, v any, path string) string {
	ok := true
	text, isText := v.(string)
	n, isNumber := v.(float64)
	list, _ := v.([]any)
	members, isObject := v.(object)
	switch keyword {
	case "$schema", "$defs", "title", "description", "default", "examples":
	case "$ref":
		return c.check(at(c.t, c.root, strings.Split(strings.TrimPrefix(arg.(string), "#/"), "/")...), v, path)
	case "type":
		ok = typed(arg.(string), v)
	case "const":
		ok = reflect.DeepEqual(arg, v)
	case "enum":
		ok = slices.ContainsFunc(arg.([]any), func(e any) bool { return reflect.DeepEqual(e, v) })
	case "anyOf":
		ok = slices.ContainsFunc(arg.([]any), func(e any) bool { return c.check(e.(object), v, path) == "" })
	case "oneOf":
		fits := 0
		for _, e := range arg.([]any) {
			if c.check(e.(object), v, path) == "" {
				fits++
			}
		}
		ok = fits == 1
	case "pattern":
		ok = !isText || regexp.MustCompile(arg.(string)).MatchString(text)
	case "minLength":
		ok = !isText || utf8.RuneCountInString(text) >= int(arg.(float64))
	case "maxLength":
		ok = !isText || utf8.RuneCountInString(text) <= int(arg.(float64))
	case "minimum":
		ok = !isNumber || n >= arg.(float64)
	case "exclusiveMinimum":
		ok = !isNumber || n > arg.(float64)
	case "maximum":
		ok = !isNumber || n <= arg.(float64)
	case "minItems":
		ok = list == nil || len(list) >= int(arg.(float64))
	case "maxItems":
		ok = len(list) <= int(arg.(float64))
	case "uniqueItems":
		for i := range list {
			ok = ok && !slices.ContainsFunc(list[:i], func(e any) bool { return reflect.DeepEqual(e, list[i]) })
		}
	case "items":
		for i, e := range list {
			if why := c.check(arg.(object), e, fmt.Sprintf("%s[%d]", path, i)); why != "" {
				return why
			}
		}
	case "minProperties":
		ok = !isObject || len(members) >= int(arg.(float64))
	case "maxProperties":
		ok = len(members) <= int(arg.(float64))
	case "required":
		for _, k := range arg.([]any) {
			_, has := members[k.(string)]
			ok = ok && (has || !isObject)
		}
	case "properties", "propertyNames", "additionalProperties":
		return c.members(s, keyword, members, path)
	default:
		c.t.Fatalf("%s: the keyword %s is not checked", path, keyword)
	}
	if !ok {
		return fmt.Sprintf("%v does not pass %s %v", v, keyword, arg)
	}
	return ""
}

func typed(name string, v any) bool {
	switch name {
	case "object":
		_, ok := v.(object)
		return ok
	case "array":
		_, ok := v.([]any)
		return ok
	case "string":
		_, ok := v.(string)
		return ok
	case "boolean":
		_, ok := v.(bool)
		return ok
	case "number":
		_, ok := v.(float64)
		return ok
	case "integer":
		n, ok := v.(float64)
		return ok && n == float64(int64(n))
	}
	return false
}

func (c *validator) members(s object, keyword string, members object, path string) string {
	known, _ := s["properties"].(object)
	for k, v := range members {
		sub, isKnown := known[k].(object)
		below := path + "." + k
		why := ""
		switch other, isSchema := s["additionalProperties"].(object); {
		case keyword == "propertyNames":
			why = c.check(s[keyword].(object), k, below)
		case keyword == "properties" && isKnown:
			why = c.check(sub, v, below)
		case keyword == "additionalProperties" && !isKnown && isSchema:
			why = c.check(other, v, below)
		case keyword == "additionalProperties" && !isKnown && s[keyword] == false:
			why = below + " is not a known key"
		}
		if why != "" {
			return why
		}
	}
	return ""
}
