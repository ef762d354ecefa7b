package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/config"
)

// looks is a script whose model reads a file and says what is in it, in two lines and
// with what a terminal would act on.
const looks = `{"model": "demo", "steps": [
	{"thought": "What is there?", "text": "I look.", "tools": [{"name": "list_files", "input": {"path": "."}}], "usage": {"input_tokens": 1200, "output_tokens": 30}},
	{"tools": [{"name": "read_file", "input": {"path": "none"}}], "usage": {"input_tokens": 1250, "output_tokens": 5}},
	{"text": "There is a script.\nIt says \u001b[31mred\u001b[0m.", "usage": {"input_tokens": 1300, "output_tokens": 20, "cache_read_tokens": 1200}}
]}`

const asksScript = `{"model": "demo", "steps": [
	{"text": "I ask.", "tools": [{"name": "ask", "input": {"question": "Which colour?"}}]},
	{"text": "Blue it is."}
]}`

// promptDesk is a folder with scripts and nothing that a model could cost money with.
func promptDesk(t *testing.T) *desk {
	t.Helper()
	d := &desk{t: t, dir: t.TempDir()}
	for name, text := range map[string]string{"site/demo.json": looks, "site/ask.json": asksScript, "site/fails.json": `{"steps": [{"error": {"kind": "auth", "message": "no such key"}}]}`,
		"site/cut.json": `{"after": "repeat", "steps": [{"text": "too lo", "stop": "length"}]}`} {
		d.lay(name, text)
	}
	return d
}

func (d *desk) lay(name, text string) {
	d.t.Helper()
	path := filepath.Join(d.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		d.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		d.t.Fatal(err)
	}
}

// at calls the program in a folder of the desk, with these variables too.
func (d *desk) at(folder string, env map[string]string, args ...string) (code int, out, talk string) {
	d.t.Helper()
	var o, e buffer
	a := &app{in: strings.NewReader("from standard input"), out: &o, err: &e, getwd: func() (string, error) { return filepath.Join(d.dir, folder), nil },
		getenv: func(k string) string {
			if k == "STINT_STORE" {
				return "sqlite:" + d.path()
			}
			return env[k]
		}}
	code = a.run(d.t.Context(), args)
	return code, o.String(), e.String()
}

// masked is a transcript without what differs from one day to the next.
func masked(text string) string {
	for _, m := range []struct{ from, to string }{
		{`\d{4}-\d\d-\d\dT[0-9:.]+Z`, "TIME"}, {`human:[\w-]+`, "human:ana"}, {`\b\d+ms\b|\b\d\.\ds\b`, "MS"}, {`\b0s ago|\b\d+s ago`, "AGO"},
		{`(stint [a-z]+ )[0-9a-hjkmnp-tv-z]{4}\b`, "${1}SHRT"}, {`\b[0-9a-hjkmnp-tv-z]{4}(\.\d+)\b`, "SHRT${1}"},
	} {
		text = regexp.MustCompile(m.from).ReplaceAllString(text, m.to)
	}
	return text
}

func TestRunPrompt(t *testing.T) {
	t.Parallel()
	d := promptDesk(t)
	var b bytes.Buffer
	for _, c := range []struct {
		env  map[string]string
		args []string
	}{
		{nil, []string{"run", "-p", "what is here?", "--model", "script/demo.json", "--tools", "files", "--name", "p-1"}},
		{map[string]string{"STINT_MODEL": "script/demo.json"}, []string{"run", "-q", "-f", "-", "--tools", "files"}},
		{nil, []string{"run", "-p", "x", "--model", "script/ask.json", "--tools", "ask,sleep", "--name", "p-2"}},
		{nil, []string{"run", "-q", "-p", "x", "--model", "script/fails.json", "--name", "p-3"}},
		{nil, []string{"run", "-q", "-p", "x", "--model", "script/cut.json", "--name", "p-4"}},
		{nil, []string{"run", "-q", "-p", "x", "--model", "script/demo.json", "--loops", "1", "--tools", "files", "--name", "p-5"}},
		{nil, []string{"run", "-p", "x"}},
		{nil, []string{"run"}},
		{nil, []string{"run", "--model", "script/demo.json"}},
		{nil, []string{"run", "-p", "x", "--model", "demo"}},
		{nil, []string{"run", "-p", "x", "--model", "script/none.json"}},
		{nil, []string{"run", "-p", "x", "--model", "script/demo.json", "--tools", "fils"}},
		{nil, []string{"run", "-p", "x", "--model", "script/demo.json", "--effect", "read"}},
		{nil, []string{"run", "a", "-p", "x", "--model", "script/demo.json"}},
		{nil, []string{"run", "--system", "x", "--", "true"}},
	} {
		words := slices.Clone(c.args)
		for i, w := range words {
			if strings.ContainsAny(w, " ?") {
				words[i] = "'" + w + "'"
			}
		}
		code, out, talk := d.at("site", c.env, c.args...)
		talk = strings.ReplaceAll(talk, d.dir, "DIR")
		fmt.Fprintf(&b, "$ stint %s\n--- standard output\n%s--- standard error\n%s(exit status %d)\n\n", strings.Join(words, " "), strings.ReplaceAll(out, "\x1b", "␛"), talk, code)
	}
	got, path := []byte(masked(b.String())), filepath.Join("testdata", "prompt.txt")
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs; -update rewrites it, after you have understood why\n--- got\n%s--- want\n%s", path, got, want)
	}
}

// A session of an agent that flags made goes on anywhere: its definition is in it.
func TestPromptGoesOnElsewhere(t *testing.T) {
	t.Parallel()
	d := promptDesk(t)
	d.lay("site/stint.yaml", "providers:\n  local: {api: chat, base_url: \"http://127.0.0.1:9/v1\"}\nagents:\n  prompt: {kind: exec, protocol: none, command: [\"false\"]}\n")
	if code, _, talk := d.at("site", nil, "run", "-q", "-p", "x", "--model", "script/ask.json", "--tools", "ask", "--system", "Be brief.", "--name", "p-1"); code != exitWaits {
		t.Fatalf("exit status %d\n%s", code, talk)
	}
	_, out, _ := d.at("", nil, "approvals", "--json")
	var list struct{ Items []struct{ Short string } }
	if err := json.Unmarshal([]byte(out), &list); err != nil || len(list.Items) != 1 {
		t.Fatalf("%v: the questions are %s", err, out)
	}
	if code, _, talk := d.at("", nil, "approve", list.Items[0].Short, "--answer", "blue", "--run"); code != exitOK {
		t.Fatalf("exit status %d\n%s", code, talk)
	}
	if _, out, _ := d.at("", nil, "result", "p-1"); out != `{"text":"Blue it is."}`+"\n" {
		t.Errorf("the result is %s", out)
	}
	// The agent of the file that has the same name is another one.
	if code, _, talk := d.at("site", nil, "run", "-q", "prompt", "-p", "x"); code != exitNotOK {
		t.Errorf("exit status %d\n%s", code, talk)
	}
}

func TestPromptAsJSON(t *testing.T) {
	t.Parallel()
	d := promptDesk(t)
	code, out, talk := d.at("site", nil, "run", "-p", "x", "--model", "script/demo.json", "--tools", "files", "--json")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if code != exitOK || talk != "" || len(lines) < 5 {
		t.Fatalf("exit status %d\n%s%s", code, out, talk)
	}
	for i, line := range lines {
		want := `{"schema":"stint.entry/1"`
		if i == len(lines)-1 {
			want = `{"schema":"stint.session/1"`
		}
		if !strings.HasPrefix(line, want) {
			t.Errorf("line %d is %s", i, line)
		}
	}
	if code, _, talk := d.at("site", nil, "run", "-p", "x", "--json"); code != exitInvalid || !strings.Contains(talk, `"hint":"give --model PROVIDER/MODEL`) {
		t.Errorf("exit status %d\n%s", code, talk)
	}
}

// The same key leads to the session that there is, and to its answer.
func TestPromptTwice(t *testing.T) {
	t.Parallel()
	d := promptDesk(t)
	for range 2 {
		code, out, talk := d.at("site", nil, "run", "-p", "x", "--model", "script/demo.json", "--tools", "files", "--dedupe", "k")
		if code != exitOK || !strings.HasPrefix(out, "There is a script.\n") || strings.Count(out, "\n") != 2 {
			t.Errorf("exit status %d\n%s%s", code, out, talk)
		}
	}
}

// Providers of a stint.yaml are usable by name, and a file that is wrong is not passed
// over: it may say that a key goes elsewhere.
func TestPromptProviders(t *testing.T) {
	t.Parallel()
	d := promptDesk(t)
	d.lay("site/stint.yaml", "providers:\n  local: {api: chat, base_url: \"http://127.0.0.1:9/v1\", key: file:key}\n")
	d.lay("site/below/x", "")
	a := d.app(&buffer{}, &buffer{})
	a.getwd = func() (string, error) { return filepath.Join(d.dir, "site", "below"), nil }
	c, err := a.promptAgent(&promptOptions{model: "local/llama", tools: []string{"files:rw"}})
	if err != nil {
		t.Fatal(err)
	}
	if p := c.LLM.Provider; p.BaseURL != "http://127.0.0.1:9/v1" || p.Key != "file:"+filepath.Join(d.dir, "site", "key") || c.Kind != config.KindLLM || c.Name != "prompt" {
		t.Errorf("the agent is %+v of %+v", c, p)
	}
	if f := c.LLM.Tools[0].Files; f == nil || !f.Write || f.Root != filepath.Join(d.dir, "site", "below") {
		t.Errorf("the files are %+v", f)
	}
	d.lay("site/stint.yaml", "providers: 7\n")
	if code, _, talk := d.at("site", nil, "run", "-p", "x", "--model", "script/demo.json"); code != exitInvalid || !strings.Contains(talk, "stint.yaml:1:") {
		t.Errorf("a file that is wrong: exit status %d\n%s", code, talk)
	}
}

func TestPromptCompletion(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.lay("stint.yaml", "providers:\n  local: {api: chat, base_url: \"http://127.0.0.1:9/v1\"}\n")
	all := d.offers("run", "--model", "")
	for _, want := range []string{"anthropic/claude-sonnet-5", "openai/gpt-5.6", "local/", "script/"} {
		if !slices.Contains(all, want) {
			t.Errorf("stint run --model offers no %s: %q", want, all)
		}
	}
	for args, want := range map[string][]string{
		"run --model local":         {"local/"},
		"run --model nosuch":        {},
		"run --model openai/nosuch": {},
		"run --tools s":             {"sleep\tthe model may wait"},
		"run --tools files,":        {"files,ask\tthe model may ask you", "files,mcp:", "files,sleep\tthe model may wait"},
		"run --tools ask,files:rw,m": {
			"ask,files:rw,mcp:",
		},
		"run --system ":                          {},
		"init --agent ":                          {"codex", "claude", "opencode", "gemini", "llm"},
		"ps --agent nosuch":                      {},
		"run --model anthropic/claude-sonnet-5-": {"anthropic/claude-sonnet-5-5"},
	} {
		got := d.offersAll(len(want), strings.Split(args, " ")...)
		for i := range got {
			if strings.Contains(got[i], "mcp:") {
				got[i], _, _ = strings.Cut(got[i], "\t")
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("stint %s offers %q, want %q", args, got, want)
		}
	}
}

func TestInitPresets(t *testing.T) {
	t.Parallel()
	for _, p := range allPresets() {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			d := promptDesk(t)
			out := d.ok("init", "--agent", p.name, "site")
			if !strings.Contains(out, "\n  stint run "+p.agent+" -p ") || !strings.Contains(out, p.login) {
				t.Errorf("what to do next is\n%s", out)
			}
			path := filepath.Join(d.dir, "site", config.FileName)
			if got := d.ok("agent", "validate", path); !strings.Contains(got, "sound: 1 agent") {
				t.Error(got)
			}
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			// What stands there as a comment is right too, line by line.
			keys := 0
			for _, m := range regexp.MustCompile(`(?m)^    # ([a-z_]+: .*)$`).FindAllStringSubmatchIndex(string(b), -1) {
				keys++
				text := string(b[:m[0]]) + "    " + string(b[m[2]:m[3]]) + string(b[m[1]:])
				if _, err := config.Parse(path, []byte(text)); err != nil {
					t.Error(err)
				}
			}
			if keys < 2 {
				t.Errorf("%d keys stand there as comments", keys)
			}
			if _, _, talk := d.at("site", nil, "init", "--agent", p.name); !strings.Contains(talk, "is there already") {
				t.Errorf("a second time: %s", talk)
			}
			if p.name != "llm" {
				c, err := config.Load(path)
				if err != nil || string(c.Agents[p.agent].Protocol) != p.name || c.Agents[p.agent].Command[0] != p.program {
					t.Errorf("%v: the agent is %+v", err, c)
				}
				return
			}
			d.lay("site/"+config.FileName, strings.Replace(string(b), "anthropic/claude-sonnet-5", "script/demo.json", 1))
			code, out, talk := d.at("site", nil, "run", p.agent, "-p", "what is in this folder?")
			if code != exitOK || !strings.Contains(out, "I look. → list_files") {
				t.Errorf("exit status %d\n%s%s", code, out, talk)
			}
		})
	}
	d := newDesk(t)
	d.fails(exitInvalid, "codex, claude, opencode, gemini, llm", "init", "--agent", "cody")
	d.fails(exitInvalid, "one of", "init", "--agent", "")
}

// An agent of stint.yaml stays as it was: its log is standard output.
func TestRunOfModelAgent(t *testing.T) {
	t.Parallel()
	d := promptDesk(t)
	d.lay("site/stint.yaml", "agents:\n  reader: {kind: llm, model: script/demo.json, tools: [{files: {root: .}}]}\n")
	code, out, talk := d.at("site", nil, "run", "reader", "-p", "x")
	if code != exitOK || !strings.Contains(out, "   1 message → I look. → list_files\n") || !strings.Contains(talk, string(stint.Completed)) {
		t.Errorf("exit status %d\n%s%s", code, out, talk)
	}
}

// A script is listed as it may be written in the file, wherever it is and however it was.
func TestListOfScripts(t *testing.T) {
	t.Parallel()
	d := promptDesk(t)
	d.lay("site/stint.yaml", "agents:\n  far: {kind: llm, model: script/../other/x.json}\n  near: {kind: llm, model: script/demo.json}\n"+
		"  whole: {kind: llm, model: 'script/"+filepath.ToSlash(filepath.Join(d.dir, "site", "sub", "demo.json"))+"'}\n  none: {kind: llm, model: openai/gpt-4o}\n")
	d.lay("site/below/x", "")
	_, out, talk := d.at(filepath.Join("site", "below"), nil, "agent", "ls", "--json")
	var list struct {
		Items []struct{ Name, Model string }
	}
	if err := json.Unmarshal([]byte(out), &list); err != nil || len(list.Items) != 4 {
		t.Fatalf("%v: %s%s", err, out, talk)
	}
	for _, it := range list.Items {
		if want := map[string]string{"far": "script/../other/x.json", "near": "script/demo.json", "whole": "script/sub/demo.json", "none": "openai/gpt-4o"}[it.Name]; it.Model != want {
			t.Errorf("%s is listed as %s, want %s", it.Name, it.Model, want)
		}
	}
	if _, out, _ := d.at("site", nil, "agent", "ls"); strings.Contains(out, "//") || !strings.Contains(out, "  script/demo.json\n") {
		t.Errorf("the list is\n%s", out)
	}
}
