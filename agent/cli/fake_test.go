package cli_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stint-dev/stint/agent/cli"
)

// turnOf is what a fake CLI was started with.
type turnOf struct {
	Args   []string
	Prompt string
	Env    []string
}

// fakeCLI plays DIR/N.jsonl at its N-th start. A line that begins with ! is for itself.
func fakeCLI(dir string) int {
	if os.Getenv("FAKE_CLI_WAITS") != "" {
		hang() // a tool
	}
	prompt, err := io.ReadAll(os.Stdin)
	if err != nil {
		return 97
	}
	b, err := json.Marshal(turnOf{os.Args[1:], string(prompt), os.Environ()})
	if err != nil {
		return 97
	}
	n := 1
	for ; ; n++ {
		f, err := os.OpenFile(filepath.Join(dir, fmt.Sprintf("turn-%d.json", n)), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err != nil {
			continue
		}
		if _, err := f.Write(b); err != nil || f.Close() != nil {
			return 97
		}
		break
	}
	script, err := os.ReadFile(filepath.Join(dir, strconv.Itoa(n)+".jsonl"))
	if err != nil {
		fmt.Fprintln(os.Stderr, "no script for start", n)
		return 98
	}
	for line := range bytes.Lines(script) {
		text := strings.TrimSuffix(string(line), "\n")
		if !strings.HasPrefix(text, "!") {
			_, _ = os.Stdout.Write(line)
			continue
		}
		if code, over := command(dir, text); over {
			return code
		}
	}
	return 0
}

// hang waits to be killed.
func hang() {
	for {
		<-time.After(time.Hour)
	}
}

// command does a line that is not output.
func command(dir, text string) (code int, over bool) {
	verb, rest, _ := strings.Cut(strings.TrimPrefix(text, "!"), " ")
	n, _ := strconv.Atoi(rest)
	switch verb {
	case "stderr":
		fmt.Fprintln(os.Stderr, rest)
	case "raw": // without a newline
		fmt.Print(rest)
	case "big":
		fmt.Println(strings.Repeat("x", n))
	case "exit":
		return n, true
	case "touch":
		if os.WriteFile(filepath.Join(dir, rest), nil, 0o600) != nil {
			return 96, true
		}
	case "await":
		for range 6000 {
			if _, err := os.Stat(filepath.Join(dir, rest)); err == nil {
				return 0, false
			}
			<-time.After(10 * time.Millisecond)
		}
		return 95, true
	case "effect":
		f, err := os.OpenFile(filepath.Join(dir, "effects"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			return 96, true
		}
		fmt.Fprintln(f, rest)
		f.Close()
	case "child": // a tool in a session of its own, as real CLIs have them
		exe, err := os.Executable()
		if err != nil {
			return 96, true
		}
		c := exec.Command(exe)
		c.Env = append(os.Environ(), "FAKE_CLI_WAITS=1")
		detach(c)
		if c.Start() != nil || os.WriteFile(filepath.Join(dir, "child.pid"), []byte(strconv.Itoa(c.Process.Pid)), 0o600) != nil {
			return 96, true
		}
	case "chatter": // words without an end
		for i := 0; ; i++ {
			fmt.Println(cxText(strconv.Itoa(i)))
			<-time.After(20 * time.Millisecond)
		}
	case "hang":
		hang()
	}
	return 0, false
}

// fake is a folder with the scripts of a fake CLI.
type fake struct {
	t    *testing.T
	dir  string
	spec cli.Spec
}

// newFake makes a fake whose N-th start plays the N-th script.
func newFake(t *testing.T, p cli.Protocol, scripts ...string) *fake {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	f := &fake{t: t, dir: t.TempDir()}
	for i, s := range scripts {
		f.script(i+1, s)
	}
	f.spec = cli.Spec{Protocol: p, Command: []string{exe, "--own"}, Env: map[string]string{
		"FAKE_CLI": f.dir, "GORACE": "atexit_sleep_ms=0"}} // the race detector waits a second at each exit
	return f
}

func (f *fake) script(n int, text string) {
	f.t.Helper()
	if err := os.WriteFile(filepath.Join(f.dir, strconv.Itoa(n)+".jsonl"), []byte(text), 0o600); err != nil {
		f.t.Fatal(err)
	}
}

// turns is how it was started so far.
func (f *fake) turns() []turnOf {
	f.t.Helper()
	var out []turnOf
	for n := 1; ; n++ {
		b, err := os.ReadFile(filepath.Join(f.dir, fmt.Sprintf("turn-%d.json", n)))
		if err != nil {
			return out
		}
		var t turnOf
		if err := json.Unmarshal(b, &t); err != nil {
			f.t.Fatal(err)
		}
		out = append(out, t)
	}
}

func (f *fake) has(name string) bool {
	_, err := os.Stat(filepath.Join(f.dir, name))
	return err == nil
}

// eventually waits for what another process does.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for range 6000 {
		if ok() {
			return
		}
		<-time.After(10 * time.Millisecond)
	}
	t.Fatalf("after a minute: not %s", what)
}

// lines puts a script together.
func lines(s ...string) string { return strings.Join(s, "\n") + "\n" }

// What a codex says.
const (
	cxThread = `{"type":"thread.started","thread_id":"th-1"}`
	cxTurn   = `{"type":"turn.started"}`
	cxDone   = `{"type":"turn.completed","usage":{"input_tokens":100,"cached_input_tokens":0,"output_tokens":10}}`
)

func cxText(s string) string {
	return fmt.Sprintf(`{"type":"item.completed","item":{"id":"m-%s","type":"agent_message","text":%q}}`, s, s)
}

func cxBegin(id, command string) string {
	return fmt.Sprintf(`{"type":"item.started","item":{"id":%q,"type":"command_execution","command":%q,"aggregated_output":"","exit_code":null,"status":"in_progress"}}`, id, command)
}

func cxEnd(id, command, output string) string {
	return fmt.Sprintf(`{"type":"item.completed","item":{"id":%q,"type":"command_execution","command":%q,"aggregated_output":%q,"exit_code":0,"status":"completed"}}`, id, command, output)
}
