package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What is no command, or contradicts itself, is refused with what to do instead.
func TestRefusedMisuse(t *testing.T) {
	d := busyDesk(t).inside()
	d.write("mine", "my diary")
	if err := os.Mkdir("folder", 0o700); err != nil {
		t.Fatal(err)
	}
	d.refuses([]refusal{
		refuse(exitInvalid, `there is no command "nosuch"`, "stint help", "nosuch"),
		refuse(exitInvalid, `there is no command "nosuch"`, "stint help", "help", "nosuch"),
		refuse(exitInvalid, `there is no command "nosuch"`, "stint help", "nosuch", "--help"),
		refuse(exitInvalid, `there is no command "pss"`, "did you mean stint ps?", "help", "pss"),
		refuse(exitInvalid, `there is no command "restrat"`, "did you mean stint restart?", "restrat", "--help"),
		refuse(exitInvalid, `there is no command "siz"`, "did you mean stint db size?", "help", "db", "siz"),
		refuse(exitInvalid, `there is no command "x"`, "stint help lists", "help", "ps", "x"),
		refuse(exitInvalid, `there is no command "shwo"`, "did you mean stint agent show?", "agent", "shwo"),
		refuse(exitInvalid, `there is no command "nosuch"`, "stint db --help", "db", "nosuch", "--help"),
		refuse(exitInvalid, "auto, always", "--help", "ps", "--color", "bogus"),
		refuse(exitInvalid, "--timeout is not below zero", "--help", "wait", "chat-1", "--timeout", "-5s"),
		refuse(exitInvalid, "--lines is not below zero", "--help", "show", "chat-1", "--lines", "-1"),
		refuse(exitInvalid, `"5..3" ends before it begins`, "3..5", "logs", "done-1", "--loop", "5..3"),
		refuse(exitInvalid, "is not before --until", "--help", "logs", "done-1", "-S", "2026-11-29", "-U", "2026-11-28"),
		refuse(exitInvalid, "no such file", "standard input", "start", "a", "-f", "nothing"),
		refuse(exitInvalid, "is a directory", "standard input", "start", "a", "-f", "."),
		refuse(exitInvalid, "no such file", "standard input", "run", "a", "-f", "nothing"),
		refuse(exitInvalid, "no such file", "standard input", "send", "chat-1", "-f", "nothing"),
		refuse(exitRefused, "no step in doubt", "stint show", "resolve", "done-1:1.1", "--unknown"),
		refuse(exitRefused, "no step in doubt", "stint show", "resolve", "chat-1", "--not"),
		refuse(exitInvalid, "twice", "--help", "resolve", "pay-1:1.1", "--happened", "--result", `{"a":1,"a":2}`),
		refuse(exitInvalid, "surrogate", "--help", "resolve", "pay-1:1.1", "--happened", "--result", `"\ud800"`),
		refuse(exitUnavailable, "no such file", "a new file in a folder", "export", "done-1", "--out", "none/x"),
		refuse(exitUnavailable, "not a directory", "", "init", "mine"),
	}...)
}

// Every refusal says what to do next, also one whose author had nothing to say: it
// leads to what its code asks for.
func TestEveryErrorHasAHint(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for _, code := range []string{"invalid", "not_found", "exists", "conflict", "fenced", "denied", "limit", "unavailable", "corrupt", "internal"} {
		if out := d.ok("explain", code); !strings.Contains(out, code) {
			t.Errorf("stint explain %s prints %q", code, out)
		}
	}
}

// An error is JSON wherever JSON is asked for on the command line, and only there.
func TestJSONErrors(t *testing.T) {
	t.Parallel()
	d := busyDesk(t)
	for line, want := range map[string]bool{
		"ps --bogus --json": true, "ps --json --bogus": true, "--json ps --bogus": true, "nosuch --json": true, "--json nosuch": true, "help nosuch --json": true, "nosuch --help --json": true,
		"start a --loops x --json": true, "start a --json -f nothing": true, "ps -n x --json=true": true, "ps -n x --json=1": true, "ps -n x --json=false": false, "ps -n x --json=maybe": false,
		"ps -n x -o json": true, "ps -n x -ojson": true, "ps -n x -o=json": true, "ps -n x --output json": true, "ps -n x --output=jsonl": true, "ps -n x -o wide": false, "ps -n x -o": false,
		"ps --sort x -o json": true, "ps --sort x -o jsonl": true, "logs nosuch -o json": true, "logs nosuch": false, "sql selec -o json": true, "sql selec -o csv": false,
		"ps x": false, "ps --bogus -- --json": false, "run --bogus -- cat --json": false, "run --bogus -- cat -o json": false, "send chat-1 --reason --json": true,
	} {
		code, out, talk := d.stint(strings.Fields(line)...)
		var v map[string]any
		is := json.Unmarshal([]byte(talk), &v) == nil
		if code == exitOK || out != "" || is != want {
			t.Errorf("stint %s: exit status %d; as JSON: %v, want %v\n%s%s", line, code, is, want, out, talk)
		}
		for _, member := range []string{"schema", "code", "error", "hint", "exit"} {
			if s, ok := v[member]; is && (!ok || s == "") {
				t.Errorf("stint %s: there is no %s: %s", line, member, talk)
			}
		}
	}
}

// The hint of a wrong stint.yaml is the hint, and a program gets each of its problems
// apart.
func TestConfigErrorsAsJSON(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct {
		hint     string
		problems int
	}{
		"agents:\n  a: {}\n":                                   {"stint agent validate", 2},
		"agents:\n  a: {kind: exec, comand: [x]}\n":            {"did you mean command?", 1},
		"agents:\n  a: {kind: exec, command: \"python3 x\"}\n": {"write it as a list: [python3, x]", 1},
		"\t\t\n": {"`stint init` writes", 1},
	} {
		d := newDesk(t)
		d.write("stint.yaml", text)
		_, _, talk := d.stint("start", "a", "--json")
		var e struct {
			Error, Hint string
			Problems    []struct {
				File, Path, Text, Hint, Excerpt string
				Line, Column                    int
			}
		}
		if err := json.Unmarshal([]byte(talk), &e); err != nil || !strings.Contains(e.Hint, want.hint) || len(e.Problems) != want.problems || want.problems == 1 && strings.Contains(e.Error, want.hint) {
			t.Errorf("%q: %v: %s", text, err, talk)
		}
		for _, p := range e.Problems {
			if p.File == "" || p.Line < 1 || p.Column < 1 || p.Text == "" || p.Excerpt == "" {
				t.Errorf("%q: a problem is %+v", text, p)
			}
		}
		if _, _, talk := d.stint("start", "a"); want.problems == 1 && !strings.Contains(talk, "\n  "+strings.SplitN(want.hint, ";", 2)[0]) {
			t.Errorf("%q: for people the hint is not on a line of its own:\n%s", text, talk)
		}
	}
}

// A stint.yaml that is wrong stands in the way of nothing but its agents.
func TestBrokenConfig(t *testing.T) {
	t.Parallel()
	at := func(d *desk, env map[string]string, args ...string) (int, string, string) {
		var out, talk buffer
		a := &app{in: strings.NewReader(""), out: &out, err: &talk, getenv: func(k string) string { return env[k] }, getwd: func() (string, error) { return d.dir, nil }}
		code := a.run(d.t.Context(), args)
		return code, out.String(), talk.String()
	}
	for text, store := range map[string]string{ // what is left of the file, and the store it names; ? where nobody can tell
		"agents: [[[\n": "",
		"agents:\n\ta: x\nstore: 'sqlite:stint.db' # ours\n": "sqlite:stint.db",
		"store: mysql:x\n": "?",
	} {
		t.Run(fmt.Sprintf("%.30q", text), func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			chat := d.run("chat-1", sleeps)
			d.run("done-1", works)
			d.run("pay-1", doubts)
			d.write("stint.yaml", text)
			if store == "" {
				if err := os.Mkdir(filepath.Join(d.dir, ".stint"), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.Symlink(d.path(), filepath.Join(d.dir, ".stint", "stint.db")); err != nil {
					t.Fatal(err)
				}
			}
			verbs := []string{"ps -a", "show done-1", "logs done-1", "result done-1", "wait done-1", "export done-1", "verify done-1", "sql select~1", "send chat-1 hello", "limit chat-1 --loops 99", "pause chat-1",
				"resume chat-1", "resolve pay-1:1.1 --unknown", "restart done-1 --dry-run", "stop chat-1", "kill pay-1", "db size", "run -q -- true", "agent diff done-1"}
			for i, line := range verbs {
				if store != "sqlite:stint.db" && i%2 > 0 && !strings.HasPrefix(line, "stop") && !long() {
					continue
				}
				args := strings.Fields(line)
				for j := range args {
					args[j] = strings.ReplaceAll(args[j], "~", " ")
				}
				named := map[string]string{"STINT_STORE": "sqlite:" + d.path()}
				if store != "" && store != "?" || i%4 == 0 && store == "" && !strings.HasPrefix(line, "run") {
					named = nil
				}
				if store == "?" && (i%4 == 0 || long()) {
					if code, out, talk := at(d, nil, args...); code != exitInvalid || out != "" || !strings.Contains(talk, "--store sqlite:PATH") {
						t.Errorf("stint %s: exit status %d without a store\n%s%s", line, code, out, talk)
					}
				}
				code, out, talk := at(d, named, args...)
				if line == "agent diff done-1" { // this one needs the agents
					if code == exitOK {
						t.Errorf("stint %s compares with what cannot be read:\n%s", line, out)
					}
					continue
				}
				if code != exitOK || strings.Count(talk, "stint: warning: ") != 1 || !strings.Contains(talk, "stint.yaml") || strings.Count(strings.SplitAfterN(talk, "warning: ", 2)[1], "agent validate") != 1 {
					t.Errorf("stint %s: exit status %d\n%s%s", line, code, out, talk)
				}
			}
			named := map[string]string{"STINT_STORE": "sqlite:" + d.path()}
			if code, out, talk := at(d, named, "ps", "-a", "--json"); code != exitOK || !json.Valid([]byte(out)) || !strings.HasPrefix(talk, `{"schema":"stint.warning/1","warning":"`) || strings.Count(talk, "\n") != 1 {
				t.Errorf("as JSON: exit status %d\n%s%s", code, out, talk)
			}
			if code, out, talk := at(d, named, "__complete", "show", "don"); code != exitOK || strings.Contains(out+talk, "warning") {
				t.Errorf("completion: exit status %d\n%s%s", code, out, talk)
			}
			for _, line := range []string{"start a", "run a", "agent ls", "agent validate"} {
				if code, _, talk := at(d, named, strings.Fields(line)...); code != exitInvalid || strings.Contains(talk, "warning") {
					t.Errorf("stint %s: exit status %d\n%s", line, code, talk)
				}
			}
			if got := d.row(chat.Session.ID).Session.Status; !got.Ended() {
				t.Errorf("the session that was stopped is %s", got)
			}
		})
	}
}

// A label on a command line is held to the rule of those in stint.yaml.
func TestRefusedLabels(t *testing.T) {
	t.Parallel()
	d := busyDesk(t)
	var all []refusal
	for _, l := range []string{"a b=1", "\x1b[2J=1", "a\nb=1", "k=", "k=  ", "k=" + strings.Repeat("x", 257), strings.Repeat("k", 64) + "=1", "\u202e=1", "k=\xff", "k=a\nb", ".a=1", "k=ghp_" + strings.Repeat("a", 36)} {
		all = append(all, refuse(exitInvalid, "label", "", "start", "a", "-l", l), refuse(exitInvalid, "label", "", "run", "-l", l, "--", "true"))
	}
	all = append(all, refuse(exitInvalid, "given twice", "", "start", "a", "-l", "k=1", "-l", "k=2"))
	many := []string{"start", "a"}
	for i := range 65 {
		many = append(many, "-l", fmt.Sprintf("k%d=x", i))
	}
	all = append(all, refuse(exitInvalid, "65 labels are too many", "", many...))
	d.refuses(all...)
	d.ok(append(many[:2], many[4:]...)...)
}
