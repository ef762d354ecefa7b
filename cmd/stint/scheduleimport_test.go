package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stint-dev/stint/internal/config"
)

// tabs are crontabs by the name of their file.
func tabs() map[string]string {
	return map[string]string{
		"tab": `# nightly agents
SHELL=/bin/bash
MAILTO=ops@example.invalid
0 * * * * agent-run triage >> /var/log/agents/triage.log 2>&1
CRON_TZ=America/New_York
# what came in overnight
30 8 * * 1-5 agent-run brief --day $(date +\%F)
CRON_TZ=Europe/Berlin
@daily agent-run digest
*/20 9-17 * * MON-FRI agent-run inbox`,
		"odd": `API_TOKEN=hunter2
RANDOM_DELAY=15
0 6 * * * python3 /opt/agents/report.py 'two words'
0 7 * * * mail -s hello ops%Good morning,%20\% is left.
@every 90m /opt/agents/poll
@reboot /opt/agents/poll
61 6 * * * /opt/agents/poll
0 6 * * *
0 8 * * * agent --key sk-abcdefghijklmnopqrstuvwx
`,
		"none":  "# nothing yet\nA=1\n",
		"wrong": "0 25 * * * a\n@reboot b\n",
	}
}

// imports is what a terminal shows of some command lines beside the crontabs.
func imports(t *testing.T, s *shop, lines ...string) []byte {
	t.Helper()
	s.env["HOME"] = "/home/ops"
	for name, text := range tabs() {
		if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return bytes.ReplaceAll(s.transcript(lines...), []byte(s.dir), []byte("DIR"))
}

func TestScheduleImport(t *testing.T) {
	t.Parallel()
	for name, lines := range map[string][]string{
		"schedule-import.txt":         {"schedule import tab", "schedule import odd --tz Asia/Tokyo"},
		"schedule-import-json.txt":    {"schedule import odd --json", "schedule import wrong --json"},
		"schedule-import-refused.txt": {"schedule import", "schedule import tab odd", "schedule import missing", "schedule import none", "schedule import wrong", "schedule import tab --tz Nowhere/City", "schedule import tab --tz Local", "schedule import -", "schedule import tab --write"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t)
			golden(t, name, imports(t, s, lines...))
			if left, err := filepath.Glob(filepath.Join(s.dir, "*")); err != nil || len(left) != len(tabs()) {
				t.Errorf("it left %q, %v", left, err)
			}
		})
	}
}

// --write adds to the stint.yaml that init makes, comments and all, or does not touch it.
func TestScheduleImportWrites(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	file := filepath.Join(s.dir, "stint.yaml")
	got := imports(t, s, "init", "schedule import tab --write", "schedule import tab --write")
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	golden(t, "schedule-import-write.txt", append(got, added(config.Example(), text)...))
	for _, line := range strings.SplitAfter(config.Example(), "\n") {
		if !strings.Contains(text, line) {
			t.Errorf("the line %q is gone", line)
		}
	}
	if left, err := filepath.Glob(filepath.Join(s.dir, ".part-*")); err != nil || len(left) > 0 {
		t.Errorf("it left %q, %v", left, err)
	}
	if err := os.WriteFile(file, []byte("agents: {a: {kind: exec, protocol: none, command: [a]}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	golden(t, "schedule-import-braces.txt", imports(t, s, "schedule import tab --write"))
	if b, err = os.ReadFile(file); err != nil || string(b) != "agents: {a: {kind: exec, protocol: none, command: [a]}}\n" {
		t.Errorf("%q, %v", b, err)
	}
}

// A stint.yaml keeps its rights, and a link to one stays a link.
func TestScheduleImportKeepsTheFile(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	real, link := filepath.Join(s.dir, "real.yaml"), filepath.Join(s.dir, "stint.yaml")
	if err := os.WriteFile(real, []byte("store: sqlite:x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(real, link); err != nil {
		t.Fatal(err)
	}
	imports(t, s, "schedule import tab --write")
	at, err := os.Lstat(link)
	if err != nil || at.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is %v, %v", at, err)
	}
	info, err := os.Stat(real)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if b, err := os.ReadFile(real); err != nil || !strings.Contains(string(b), "agent-run-triage:") {
		t.Errorf("%q, %v", b, err)
	}
}

// The crontab on standard input is the same as in a file.
func TestScheduleImportReadsStandardInput(t *testing.T) {
	t.Parallel()
	var out, talk buffer
	a := &app{in: strings.NewReader(tabs()["tab"]), out: &out, err: &talk, getenv: func(string) string { return "" }, getwd: func() (string, error) { return t.TempDir(), nil }}
	if code := a.run(t.Context(), words("schedule import - --json")); code != exitOK || !strings.Contains(out.String(), `"name":"agent-run-digest"`) {
		t.Errorf("exit status %d: %s%s", code, out.String(), talk.String())
	}
}

// added is the lines of a text that another has not, in order.
func added(was, is string) []byte {
	var b bytes.Buffer
	old := map[string]bool{}
	for line := range strings.Lines(was) {
		old[line] = true
	}
	for line := range strings.Lines(is) {
		if !old[line] {
			b.WriteString(line)
		}
	}
	return b.Bytes()
}
