package hook_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/hook"
	"github.com/stint-dev/stint/internal/plaintest"
)

// Numbers of 64 bits keep each digit, wherever an expression puts them.
func TestNumbers(t *testing.T) {
	body := `{"id":9007199254740993,"least":-9223372036854775808,"most":9223372036854775807,"over":9223372036854775808,"far":18446744073709551617,"e":1e400,"f":0.1,"g":1.0,"h":1E3}`
	for expression, want := range map[string]string{
		"body.id": "9007199254740993", "[body.id]": "[9007199254740993]", "toJSON({a: body.id})": `{"a":9007199254740993}`, "string(body.id)": "9007199254740993",
		"body.id == 9007199254740993": "true", "body.id == 9007199254740992": "false", "body.id + 1": "9007199254740994", `"#" + string(body.id)`: "#9007199254740993",
		"body.least": "-9223372036854775808", "body.most": "9223372036854775807", "body.most > body.id": "true", "max(body.id, 9007199254740992)": "9007199254740993",
		"body.over": "9223372036854775808", `body.over == "9223372036854775808"`: "true", "body.far": "18446744073709551617", "body.e": "1e400",
		"body.f": "0.1", "body.g": "1", "body.h": "1000", "body.none": "null", "body.none ?? 'no'": "no", "body.none?.below?.it": "null",
	} {
		h := compile(t, hook.Definition{Input: "${ " + expression + " }"})
		if d := accept(t, h, jsonOf(body)); string(d.Input) != want {
			t.Errorf("%s: %s, want %s", expression, d.Input, want)
		}
	}
	// What would round is an error.
	for _, expression := range []string{"body.over + 1", "body.over > 1", "body.e > 1"} {
		v, err := compile(t, hook.Definition{Input: "${ " + expression + " }"}).Receive(jsonOf(body), nil, noon())
		refused(t, v, err, 422, "does not fit")
	}
}

// What an expression can do besides.
func TestExpressions(t *testing.T) {
	body := `{"a":["x","y"],"o":{"b":1,"c":"<&>"},"s":"Hello World","l":[{"n":2,"k":"p"},{"n":1,"k":"q"},{"n":3,"k":"p"}]}`
	for expression, want := range map[string]string{
		`join(body.a, ", ")`: "x, y", `body.a | join("-")`: "x-y", `join([])`: "", `body.o`: `{"b":1,"c":"<&>"}`, `string(body.s)`: "Hello World", `string(nil)`: "null",
		`body.s matches "^Hello"`: "true", `body.s contains "lo"`: "true", `"x" in body.a`: "true", `"b" in body.o`: "true", `lower(body.s)`: "hello world", `body.s[0:5]`: "Hello",
		`split(body.s, " ")[1]`: "World", `map(sortBy(body.l, .n), .n)`: "[1,2,3]", `len(filter(body.l, .k == "p"))`: "2", `groupBy(body.l, .k)["q"][0].n`: "1",
		`reduce(body.l, #acc + .n, 0)`: "6", `any(body.l, {.n > 2})`: "true", `keys(body.o) | sort()`: `["b","c"]`, `toPairs({a: 1})`: `[["a",1]]`, `let x = body.o; x.b`: "1",
		`body.o.b == 1 ? "one" : "other"`: "one", `raw == toJSON(body)`: "false", `len(raw) > 10`: "true", `$env["event"]`: "", `{"a}": "}"}["a}"] /* } */`: "}", "`}`": "}",
	} {
		h := compile(t, hook.Definition{Input: "${" + expression + "}"})
		if d := accept(t, h, jsonOf(body)); string(d.Input) != want {
			t.Errorf("%s: %s, want %s", expression, d.Input, want)
		}
	}
	for _, expression := range []string{`join(body.l, ",")`, `join(body.s)`, `join(body.a, 1)`, `join()`, `toJSON()`, `toJSON($env)`, `body.a[5]`, `body.o.b.c`, `upper(body.o)`, `1.0 / 0`, `body + 2`} {
		v, err := compile(t, hook.Definition{Input: "${" + expression + "}"}).Receive(jsonOf(body), nil, noon())
		refused(t, v, err, 422, "input")
	}
}

// An expression cannot take long, whatever a delivery has in it: each of these would look
// at billions of bytes, or make them.
func TestWorkIsBounded(t *testing.T) {
	if plaintest.Instead(t) {
		return
	}
	words := `{"s":"` + strings.Repeat("x", 500_000) + `","l":[` + strings.Repeat(`"aaaa",`, 60_000) + `"a"]}`
	deep := strings.Repeat("[", 300) + strings.Repeat("1,", 300_000) + "1" + strings.Repeat("]", 300)
	for _, c := range []struct{ expression, body string }{
		{`filter(body.l, body.s contains "y")`, words},
		{`filter(body.l, len(toJSON(body)) > 1)`, words},
		{`filter(body.l, body == body.l)`, words},
		{`filter(body.l, # in body.l)`, words},
		{`map(body.l, body.s + "x")`, words},
		{`reduce(body.l, #acc + body.s, "")`, words},
		{`reduce(1..60, [#acc, #acc], [1])`, words},
		{`reduce(1..900000, [#acc], [1])`, words},
		{`reduce(1..300000, [{"a": #acc}], [body]) == [body.l]`, words},
		{`all(body.l, all(body.l, true))`, words},
		{`map(body.l, map(body.l, 1))`, words},
		{`map(body.l, split(body.s, ""))`, words},
		{`map(body.l, sortBy(body.l, #))`, words},
		{`map(body.l, body.s matches "(x+x+)+y")`, words},
		{`map(body.l, join(body.l, body.s))`, words},
		{`join(body.l, body.s)`, words},
		{`map(body.l, upper(body.s))`, words},
		{`map(body.l, body.s[1:])`, words},
		{`map(body.l, toPairs(body))`, words},
		{`map(body.l, concat(body.l, body.l))`, words},
		{`map(body.l, take(body.l, 60_000))`, words},
		{`1..2000000`, "{}"},
		{`map(1..3000, toJSON(body))`, deep},
	} {
		h := compile(t, hook.Definition{Input: "${ " + c.expression + " }"})
		v, err := h.Receive(jsonOf(c.body), nil, noon())
		if err == nil || !strings.Contains(err.Error(), "looks at more") {
			t.Errorf("%s: %.80v", c.expression, err)
			continue
		}
		refused(t, v, err, 422, "input")
	}
	// Many places share what there is, and writing a value counts too.
	h := compile(t, hook.Definition{Input: strings.Repeat("${ raw }${ body }", 50)})
	v, err := h.Receive(jsonOf(words), nil, noon())
	refused(t, v, err, 422, "looks at more")
	// What is usual is far below the bound: JSON of 1 MiB is searched and written whole.
	h = compile(t, hook.Definition{When: `body.s contains "y" || any(body.l, # == "a")`, Input: "${ len(body.l) } ${ toJSON(body) } ${ join(body.l, ' ') }"})
	accept(t, h, jsonOf(words))
}

// What is wrong with a definition is said with field and place, all of it at once.
func TestFaults(t *testing.T) {
	for _, c := range []struct {
		name string
		d    hook.Definition
		want []string
	}{
		{"nothing said", hook.Definition{}, []string{`scheme 1:1 expected one of standard-webhooks, github, stripe, slack, hmac, bearer, none, found ""`, "name 1:1 the hook has no name", "agent 1:1 the key agent is missing"}},
		{"scheme", base(hook.Definition{Scheme: "gitlab"}), []string{"scheme 1:1 expected one of"}},
		{"no secret", base(hook.Definition{Scheme: hook.GitHub}), []string{"secret 1:1 expected 1 or 2 secrets, found 0"}},
		{"three secrets", base(hook.Definition{Scheme: hook.GitHub, Secrets: []string{"a", "b", "c"}}), []string{"secret 1:1 expected 1 or 2 secrets, found 3"}},
		{"secret of none", base(hook.Definition{Secrets: []string{"a"}}), []string{"secret 1:1 it has no effect under scheme: none"}},
		{"hmac missing", base(hook.Definition{Scheme: hook.Generic, Secrets: []string{"a"}}), []string{"hmac 1:1 the key hmac is missing"}},
		{"hmac elsewhere", base(hook.Definition{HMAC: &hook.HMAC{Header: "a"}}), []string{"hmac 1:1 it has no effect under scheme: none"}},
		{"hmac", generic(hook.HMAC{Header: "a b", Algorithm: "md5", Encoding: "base32", Prefix: "é", Timestamp: "c:d"}), []string{
			"hmac.header 1:1", "hmac.timestamp 1:1 expected the name", "hmac.algorithm 1:1", "hmac.encoding 1:1", "hmac.prefix 1:1",
		}},
		{"hmac one header", generic(hook.HMAC{Header: "X-A", Timestamp: "x-a"}), []string{"hmac.timestamp 1:1 it is the header of the signature"}},
		{"signed without body", generic(hook.HMAC{Header: "X-A", Signed: "{timestamp}."}), []string{"hmac.signed 1:1 expected text that ends in {body}"}},
		{"signed twice", generic(hook.HMAC{Header: "X-A", Signed: "{body}{body}"}), []string{"hmac.signed 1:1 expected text that ends in {body}"}},
		{"time not signed", generic(hook.HMAC{Header: "X-A", Timestamp: "X-T", Signed: "{body}"}), []string{"hmac.signed 1:1 {timestamp} and the key timestamp need each other"}},
		{"time not compared", generic(hook.HMAC{Header: "X-A", Signed: "{timestamp}.{body}"}), []string{"hmac.signed 1:1 {timestamp} and the key timestamp need each other"}},
		{"no separator", generic(hook.HMAC{Header: "X-A", Timestamp: "X-T", Signed: "{timestamp}{body}"}), []string{"hmac.signed 1:1 expected something between"}},
		{"digit as separator", generic(hook.HMAC{Header: "X-A", Timestamp: "X-T", Signed: "{timestamp}0{body}"}), []string{"hmac.signed 1:1 expected something between"}},
		{"limits", base(hook.Definition{Limits: hook.Limits{Body: -1, Rate: hook.Rate{Count: 1}, Concurrency: -1}}), []string{"limits.body 1:1", "limits.rate 1:1", "limits.concurrency 1:1"}},
		{"large body", base(hook.Definition{Limits: hook.Limits{Body: 1<<30 + 1}}), []string{"limits.body 1:1"}},
		{"busy", base(hook.Definition{Busy: "wait"}), []string{"busy 1:1 expected queue, reject, interrupt or replace"}},
		{"busy without key", base(hook.Definition{Busy: hook.Replace}), []string{"busy 1:1 replace needs the key key"}},
		{"late", base(hook.Definition{Late: "lose"}), []string{"late 1:1 expected keep or drop"}},
		{"late without order", base(hook.Definition{Late: hook.DropLate, Key: "event"}), []string{"late 1:1 drop needs the keys order and key"}},
		{"expressions", base(hook.Definition{When: "body.x ==", Key: " ", Dedupe: "hed", Order: "now()", Session: `env("HOME")`}), []string{
			"when 1:9 unexpected token EOF", "key 1:1 the expression is empty", "dedupe 1:1 unknown name hed", "order 1:1 now cannot be used in a hook", "name 1:1 unknown name env",
		}},
		{"truth", base(hook.Definition{When: "event"}), []string{"when 1:1 expected true or false, found string"}},
		{"types", base(hook.Definition{When: "event == 5"}), []string{`when 1:7 invalid operation: == (mismatched types`}},
		{"lines", base(hook.Definition{When: "body.a &&\n  bdy.b"}), []string{"when 2:3 unknown name bdy"}},
		{"pattern", base(hook.Definition{When: "body.a &&\n  event matches body.p"}), []string{"when 2:9 the pattern after matches is not written out"}},
		{"wrong pattern", base(hook.Definition{When: `event matches "("`}), []string{"when 1:7 error parsing regexp"}},
		{"long", base(hook.Definition{When: strings.Repeat(" ", 4096) + "true"}), []string{"when 1:1 the expression is longer than 4096 bytes"}},
		{"large", base(hook.Definition{When: "[" + strings.Repeat("1,", 600) + "1] == []"}), []string{"when 1:"}},
		{"withheld", base(hook.Definition{Key: `repeat("a", 9)`}), []string{"key 1:1 repeat cannot be used in a hook"}},
		{"templates", base(hook.Definition{Input: "é ${ body.x } and\n ${ bdy }", Labels: map[string]string{"a": "${", "b": "${ '}' ", "c": "${}", "d": "${ body.x }}", "a b": "x"}}), []string{
			"input 2:5 unknown name bdy", "labels.a 1:1 ${ without its }", `labels 1:1 there can be no label "a b"`, "labels.b 1:1 ${ without its }", "labels.c 1:3 the expression is empty",
		}},
		{"template lines", base(hook.Definition{Input: "x ${ body.x ||\n bdy }"}), []string{"input 2:2 unknown name bdy"}},
		{"template comment", base(hook.Definition{Input: "${ 1 // }"}), []string{"input 1:1 ${ without its }"}},
		{"many places", base(hook.Definition{Input: strings.Repeat("${1}", 101)}), []string{"input 1:401 there are more than 100 places"}},
		{"long template", base(hook.Definition{Input: strings.Repeat("x", 64<<10+1)}), []string{"input 1:1 the template is longer"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := hook.Compile(c.d)
			if stint.CodeOf(err) != stint.Invalid {
				t.Fatalf("got %v", err)
			}
			all := faults(t, err)
			if len(all) != len(c.want) {
				t.Fatalf("got %q, want %q", all, c.want)
			}
			for i, f := range all {
				if got := fmt.Sprintf("%s %d:%d %s", f.Field, f.Line, f.Column, f.Text); !strings.HasPrefix(got, c.want[i]) {
					t.Errorf("got %s, want %s", got, c.want[i])
				}
			}
		})
	}
}

func base(d hook.Definition) hook.Definition {
	d.Name, d.Agent = "h", "a"
	if d.Scheme == "" {
		d.Scheme = hook.None
	}
	return d
}

func generic(h hook.HMAC) hook.Definition {
	return base(hook.Definition{Scheme: hook.Generic, Secrets: []string{"env:A"}, HMAC: &h})
}

func TestTooManyLabels(t *testing.T) {
	d := base(hook.Definition{Labels: map[string]string{}})
	for i := range 65 {
		d.Labels[fmt.Sprintf("l%d", i)] = "x"
	}
	if _, err := hook.Compile(d); err == nil || !strings.Contains(err.Error(), "at most 64 labels, found 65") {
		t.Errorf("got %v", err)
	}
}

// A definition that was compiled has its defaults, and is nobody else's to change.
func TestDefinitionIsCopied(t *testing.T) {
	d := generic(hook.HMAC{Header: "X-A", Timestamp: "X-T"})
	h := compile(t, d)
	d.Secrets[0], d.HMAC.Header = "x", "x"
	got := h.Definition()
	if got.Secrets[0] != "env:A" || *got.HMAC != (hook.HMAC{Header: "X-A", Timestamp: "X-T", Algorithm: hook.SHA256, Encoding: hook.Hex, Signed: "{timestamp}.{body}"}) ||
		got.Limits.Body != 1<<20 || got.Busy != hook.Queue || got.Late != hook.KeepLate {
		t.Errorf("got %+v", got)
	}
}

// Each function that is let through is one that expr-lang has, so that a misspelt one is
// not withheld without a word; and no other is there.
func TestFunctions(t *testing.T) {
	there := map[string]bool{}
	for _, name := range hook.Functions() {
		there[name] = true
		if !hook.IsBuiltin(name) {
			t.Errorf("expr-lang has no %s", name)
		}
	}
	for _, name := range hook.Builtins() {
		if there[name] || name == "string" || name == "toJSON" || name == "join" {
			continue
		}
		_, err := hook.Compile(base(hook.Definition{Key: name + "()"}))
		if f := faults(t, err); f[0].Text != name+" cannot be used in a hook" || f[0].Hint == "" {
			t.Errorf("%s: %+v", name, f)
		}
	}
}

// No template makes the compiler panic, and what a delivery has in it comes out as it is.
func FuzzTemplate(f *testing.F) {
	for _, s := range []string{"", "${", "$${", "${}", "${ body.text }", "${ '}' }", "${ `}` }", "${ {\"a\": 1} }", "$", "$$", "$$${ body.text }", "${ 1 // }\n }", "${ /* } */ 1 }", "${ \"\\\"}\" }", "}{", "${ raw }"} {
		f.Add(s, "${ raw } $${ {{x}}")
	}
	f.Fuzz(func(t *testing.T, src, text string) {
		d := base(hook.Definition{Input: src})
		h, err := hook.Compile(d)
		if err != nil {
			for _, f := range faults(t, err) {
				if f.Line < 1 || f.Column < 1 || f.Line > strings.Count(src, "\n")+1 {
					t.Errorf("%q: no place: %+v", src, f)
				}
			}
		} else if _, err := h.Receive(jsonOf(`{"text":`+quoted(text)+`}`), nil, noon()); err != nil {
			var r *hook.Refusal
			if !errors.As(err, &r) || r.Status != 422 {
				t.Errorf("%q: %v", src, err)
			}
		}
		var own struct{ Text string }
		unquote(quoted(text), &own.Text)
		h, err = hook.Compile(base(hook.Definition{Input: "a ${ body.text } $${ body.text }"}))
		if err != nil {
			t.Fatal(err)
		}
		v, err := h.Receive(jsonOf(`{"text":`+quoted(text)+`}`), nil, noon())
		if want := "a " + own.Text + " ${ body.text }"; err != nil || string(v.Delivery.Input) != want {
			t.Errorf("got %q, %v, want %q", v.Delivery.Input, err, want)
		}
	})
}

func BenchmarkReceive(b *testing.B) {
	h := compile(b, hook.Definition{
		Scheme: hook.GitHub, When: `event == "push" && body.ref == "refs/heads/main"`, Key: "body.repository.full_name",
		Input: "Look at ${ body.after } of ${ body.repository.full_name }", Labels: map[string]string{"repo": "${ body.repository.full_name }"},
	})
	for _, size := range []int{1 << 10, 20 << 10} {
		body := []byte(`{"ref":"refs/heads/main","after":"abc","repository":{"full_name":"acme/demo"},"pad":[`)
		for len(body) < size-20 {
			body = append(body, `{"a":"b","n":12345},`...)
		}
		body = append(body, "1]}"...)
		r := hook.Request{Headers: sign(b, hook.GitHub, plainSecret, body, noon()), Body: body}
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				accept(b, h, r, plainSecret)
			}
		})
	}
}
