//go:build linux

package acceptance_test

import (
	"os"
	"strings"
	"testing"
	"time"
)

// oneTool is a list with one tool of this name, which may have anything for a schema.
func oneTool(name, schema string) string {
	return `{"tools":[{"name":"` + name + `","inputSchema":` + schema + `}]}`
}

// What a server says of its tools is used if it can be, under a name that every provider
// takes; else the agent is refused, and says which server.
func TestBadListsOfServers(t *testing.T) {
	t.Parallel()
	const object = `{"type":"object"}`
	for name, c := range map[string]struct {
		list string
		code int    // of stint agent tools
		want string // in what it prints
	}{
		"a path":            {list: oneTool("../../etc/cron.d/x", object), want: "fake__"},
		"no name":           {list: oneTool("", object), want: "fake__"},
		"300 characters":    {list: oneTool(strings.Repeat("n", 300), object), want: "fake__nnn"},
		"directions":        {list: oneTool(`\u202egnp`, object), want: "fake__"},
		"half a surrogate":  {list: oneTool(`\ud800x`, object), want: "fake__"},
		"NUL":               {list: oneTool(`a\u0000b`, object), want: "fake__a_b"},
		"an option":         {list: oneTool(`-rf`, object), want: "fake__-rf"},
		"twins":             {list: `{"tools":[{"name":"a.b","inputSchema":` + object + `},{"name":"a/b","inputSchema":` + object + `}]}`, want: "fake__a_b"},
		"twice":             {list: `{"tools":[{"name":"a","inputSchema":` + object + `},{"name":"a","inputSchema":` + object + `}]}`, code: 11, want: "twice"},
		"no schema":         {list: `{"tools":[{"name":"a"}]}`, want: "fake__a"},
		"schema of a list":  {list: oneTool("a", `{"type":"array"}`), want: "fake__a"},
		"no schema at all":  {list: oneTool("a", `"text"`), code: 2, want: "fake__a"},
		"a wrong schema":    {list: oneTool("a", `{"type":"objekt"}`), code: 2, want: "fake__a"},
		"another document":  {list: oneTool("a", `{"type":"object","$ref":"http://127.0.0.1:1/x"}`), code: 2, want: "fake__a"},
		"a large number":    {list: oneTool("a", `{"type":"object","properties":{"n":{"maximum":9007199254740993}}}`), want: "fake__a"},
		"deep":              {list: oneTool("a", `{"type":"object","properties":`+strings.Repeat(`{"a":`, 300)+`{}`+strings.Repeat(`}`, 300)+`}`), code: 2, want: "fake__a"},
		"colours":           {list: `{"tools":[{"name":"a","description":"\u001b]0;x\u0007\u202eevil\nmore","inputSchema":` + object + `}]}`, want: `\u202eevil`},
		"a long text":       {list: `{"tools":[{"name":"a","description":"` + strings.Repeat("d", 1<<20) + `","inputSchema":` + object + `}]}`, want: "fake__a"},
		"not a list":        {list: `{"tools":{}}`, code: 11, want: "mcp server fake"},
		"not an object":     {list: `[]`, code: 11, want: "mcp server fake"},
		"no JSON":           {list: `{"tools":[}`, code: 11, want: "mcp server fake"},
		"nothing":           {list: `{}`, want: "it has no tools"},
		"hints of any kind": {list: `{"tools":[{"name":"a","inputSchema":` + object + `,"annotations":{"readOnlyHint":"yes"}}]}`, code: 11, want: "mcp server fake"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := played(t, fakeTools, "")
			s.served(c.list)
			if c.want == "mcp server fake" { // such an answer is none, and is waited for
				s.file("server.sh", strings.Replace(fakeServer, "answer < tools.json", "answer < tools.json; exit 1", 1))
			}
			for _, args := range [][]string{{"agent", "tools", "a"}, {"agent", "tools", "a", "--json"}, {"run", "a"}, {"agent", "accept", ".mcp.json", "--yes"}} {
				r := s.run(args...)
				if driving(r.out+r.talk) != "" || strings.Contains(r.talk, "goroutine ") || len(r.out) > 2<<20 || r.took > 20*time.Second {
					t.Errorf("%s: %s", driving(r.out+r.talk), r)
				}
				if args[1] == "tools" && (r.code != c.code || len(args) == 3 && !strings.Contains(r.out+r.talk, c.want)) {
					t.Errorf("want exit status %d and %q: %s", c.code, c.want, r)
				}
				if args[0] == "run" && r.code != c.code && (c.code != 0 || r.code != 6) {
					t.Errorf("want exit status %d, as of stint agent tools: %s", c.code, r)
				}
			}
		})
	}
}

// What a server answers to a call is cleaned and bounded; what is no answer leaves the
// call in doubt, and the server does not outlive it.
func TestBadAnswersOfServers(t *testing.T) {
	t.Parallel()
	text := func(s string) string { return `{"content":[{"type":"text","text":"` + s + `"}]}` }
	for name, c := range map[string]struct {
		reply string
		want  string // in what the step gave; empty: it is in doubt
	}{
		"colours":          {text(`a\u001b]52;c;eA==\u0007\u202eb`), "a"},
		"NUL":              {text(`a\u0000b`), `a` + "\ufffd" + `b`},
		"half a surrogate": {text(`a\ud800b`), `a` + "\ufffd" + `b`},
		"not UTF-8":        {text("a\xff\xfeb"), "a\ufffd"},
		"a large number":   {`{"content":[],"structuredContent":{"n":9007199254740993,"f":1.10}}`, "9007199254740993"},
		"a larger number":  {`{"content":[],"structuredContent":{"n":1e400}}`, ""},
		"twice":            {`{"content":[],"structuredContent":{"a":1,"a":2}}`, `a`},
		"another case":     {`{"content":[{"type":"text","text":"right"}],"Content":[{"type":"text","text":"wrong"}]}`, "right"},
		"no content":       {`{}`, `"text":""`},
		"an unknown part":  {`{"content":[{"type":"hologram","text":"x"}]}`, ""},
		"content is text":  {`{"content":"x"}`, ""},
		"not an object":    {`[1,2]`, ""},
		"deep":             {`{"content":[],"structuredContent":` + strings.Repeat(`{"a":`, 20000) + `1` + strings.Repeat(`}`, 20000) + `}`, ""},
		"NaN":              {`{"content":[],"structuredContent":{"n":NaN}}`, ""},
		"no JSON":          {`{"content":[`, ""},
		"20 MB":            {text(strings.Repeat("x", 20<<20)), "bytes"},
		"4 MB":             {text(strings.Repeat("y", 4<<20)), "yyy"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mark := mark(t)
			s := played(t, "retry: {attempts: 1}\n"+fakeTools+"tool: {fake__effect: {timeout: 5s}}\n", calls("fake__effect", `{}`))
			s.served(listed("effect"))
			s.file(".mcp.json", `{"mcpServers":{"fake":{"command":"sh","args":["server.sh","`+mark+`"]}}}`)
			s.file("reply.json", c.reply)
			r := s.run("run", "a", "-p", "x")
			if driving(r.out+r.talk) != "" || r.took > 30*time.Second {
				t.Errorf("%s: %s", driving(r.out+r.talk), r)
			}
			v := s.show("@last")
			if c.want == "" {
				if v.Status != "waiting" || v.Waiting.For != "doubt" || r.code != 6 {
					t.Errorf("it is %s %s: %s", v.Status, v.Reason, r)
				}
			} else if got := s.toolSteps("@last"); len(got) != 1 || !strings.Contains(got[0].output+got[0].failed, c.want) || v.Status != "completed" {
				t.Errorf("it gave %.500q, want %q: %s", got, c.want, r)
			}
			if s.noted("effects") != 1 {
				t.Errorf("%d calls", s.noted("effects"))
			}
			if info, err := os.Stat(s.store()); err == nil && info.Size() > 64<<20 {
				t.Errorf("the store has %d bytes", info.Size())
			}
			gone(t, mark)
			s.sound(newAcks())
		})
	}
}
