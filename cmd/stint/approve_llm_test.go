package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stint-dev/stint/internal/term"
)

// askingDesk has sessions of models that ask a person: pay-1 asks two questions at once,
// ask-1 wants an answer, one-1 and two-1 ask one each, and over-1 asked once.
func askingDesk(t *testing.T) *desk {
	t.Helper()
	d := newDesk(t)
	d.put("pay.sh", "cat >> paid; echo >> paid; echo paid\n")
	script := map[string]string{
		"pay": `{"tools":[{"name":"pay","input":{"to":"ana","amount":10}},{"name":"pay","input":{"to":"bob\u202e\u001b]0;x\u0007","amount":9007199254740993}}]},{"text":"That is all."}`,
		"ask": `{"tools":[{"name":"ask","input":{"question":"Which colour?\nThe shop has two.","schema":{"enum":["red","blue"]}}}]}`,
		"one": `{"tools":[{"name":"pay","input":{"to":"cy","amount":1}}]}`,
		"two": `{"tools":[{"name":"pay","input":{"to":"di","amount":2}}]}`,
	}
	yaml := "agents:\n"
	for _, name := range []string{"pay", "ask", "one", "two"} {
		d.put(name+".json", `{"steps":[`+script[name]+`]}`)
		yaml += `  ` + name + `:
    kind: llm
    model: script/` + name + `.json
    tools:
      - ask
      - exec: {name: pay, command: [sh, pay.sh], approve: always, args: {type: object, properties: {to: {type: string}, amount: {type: integer}}}}
`
	}
	d.put("stint.yaml", yaml)
	for _, name := range []string{"pay", "ask", "one", "two"} {
		if code, out, talk := d.stint("run", "-q", name, "-p", "go", "--name", name+"-1"); code != exitWaits {
			t.Fatalf("%s: exit status %d\n%s%s", name, code, out, talk)
		}
	}
	d.says(exitWaits, "approval", "run", "-q", "one", "-p", "go", "--name", "over-1")
	d.ok("stop", "over-1")
	return d
}

// transcript is what a terminal shows of some command lines, where what differs from time
// to time has a name.
func (d *desk) transcript(lines ...string) []byte {
	d.t.Helper()
	var b bytes.Buffer
	for _, line := range lines {
		code, out, talk := d.stint(words(line)...)
		fmt.Fprintf(&b, "$ stint %s\n%s%s", term.Escape(line), out, talk)
		if code != exitOK {
			fmt.Fprintf(&b, "(exit status %d)\n", code)
		}
		b.WriteByte('\n')
	}
	text := b.String()
	for _, name := range []string{"pay", "ask", "one", "two", "over"} {
		for field, is := range map[string]string{"id": strings.ToUpper(name) + "-ID", "short": strings.ToUpper(name)} {
			was := strings.TrimSpace(d.ok("show", name+"-1", "--field", field))
			if field == "short" { // not within a longer word
				text = regexp.MustCompile(`\b`+was+`\b`).ReplaceAllString(text, is)
			} else {
				text = strings.ReplaceAll(text, was, is)
			}
		}
	}
	text = strings.ReplaceAll(text, string(d.app(nil, nil).actor()), "human:ana")
	text = strings.ReplaceAll(text, d.dir, "FOLDER")
	for was, is := range map[string]string{
		`20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`: "TIME", `"(age_ms|running_ms|took_ms)":\d+`: `"$1":MS`, `"(head_hash|pin|hash|sum)":"[0-9a-f]{64}"`: `"$1":"HASH"`,
		`"wall_ms":\{"used":\d+`: `"wall_ms":{"used":MS`, `\b\d+(\.\d+)?ms\b`: "MS", `\bin \d+(\.\d+)?s\b`: "in MS",
	} {
		text = regexp.MustCompile(was).ReplaceAllString(text, is)
	}
	return []byte(text)
}

// words takes a command line apart; what stands in single quotes stays whole.
func words(line string) (all []string) {
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			all = append(all, part)
		} else {
			all = append(all, strings.Fields(part)...)
		}
	}
	return all
}

// golden compares with a file of testdata.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
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
		t.Errorf("%s differs; -update rewrites it. Now it is\n%s", path, got)
	}
	if bad := driving(string(got)); bad != "" {
		t.Errorf("%s reaches the terminal", bad)
	}
}

// paid is what the tool that pays was called with.
func (d *desk) paid() string {
	b, err := os.ReadFile(filepath.Join(d.dir, "paid"))
	if err != nil {
		return ""
	}
	return string(b)
}

// Words that the journal would cut are refused, and the question stays open.
func TestNoteIsOneLine(t *testing.T) {
	t.Parallel()
	d := askingDesk(t)
	for _, verb := range []string{"approve", "deny"} {
		for note, why := range map[string]string{"use staging\nand tell me": "this one has several", "a\rb": "this one has several", strings.Repeat("x", 1001): "this one has 1001"} {
			if code, _, talk := d.stint(verb, "pay-1.4", "-m", note); code != exitInvalid || !strings.Contains(talk, why) || !strings.Contains(talk, "stint send") {
				t.Errorf("%s -m %.20q: exit status %d\n%s", verb, note, code, talk)
			}
		}
	}
	note := "\n " + strings.Repeat("ü", 500) + "\n"
	if code, _, talk := d.stint("deny", "pay-1.4", "-m", note); code != exitOK {
		t.Errorf("exit status %d\n%s", code, talk)
	}
	if _, out, _ := d.stint("logs", "pay-1", "--json"); !strings.Contains(out, `"`+strings.TrimSpace(note)+`"`) {
		t.Errorf("the whole line is not kept: %s", out)
	}
}

func TestApprovalsOfModels(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lines []string
		paid  string
	}{
		"approvals.txt": {lines: []string{
			"approvals",
			"approvals pay-1",
			"approvals nosuch",
			"approvals pay-1 ask-1",
			"approvals over-1",
			"approve pay-1",
			"approve pay-1.4 -m 'checked the amount'",
			"approvals pay-1",
			"deny pay-1 -m 'use the staging account'",
			"approvals pay-1",
			"resume pay-1 --run",
			"result pay-1",
			"approve ask-1 --answer red --run",
		}, paid: `{"to":"ana","amount":10}` + "\n"},
		"approvals-refused.txt": {lines: []string{
			"approve",
			"approve nosuch",
			"approve nosuch.5",
			"approve pay-1.3",
			"approve pay-1.99",
			"approve over-1",
			"approve over-1.4",
			"approve one-1 --answer yes",
			"approve ask-1",
			"approve ask-1 --answer green",
			"approve ask-1 --answer '{\"a\":1,\"a\":2}'",
			"deny ask-1 --answer red",
			"approve one-1 two-1 --run",
			"approve one-1 nosuch two-1 -m 'as agreed'",
			"approve one-1",
			"deny one-1.4 -m 'too late'",
			"deny two-1.4",
			"resume one-1 --run",
			"approve one-1.4",
		}, paid: `{"to":"cy","amount":1}` + "\n"},
		"approvals-json.txt": {lines: []string{
			"approvals --json",
			"approvals over-1 --json",
			"approve pay-1 --json",
			"approve pay-1.4 --json",
			"approve pay-1.4 --json",
			"deny pay-1.5 -m no --json",
			"approve ask-1 --answer green --json",
			"approve over-1.4 --json",
			"approve nosuch --json",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := askingDesk(t)
			golden(t, name, d.transcript(c.lines...))
			if got := d.paid(); got != c.paid {
				t.Errorf("paid was %q, want %q", got, c.paid)
			}
		})
	}
}
