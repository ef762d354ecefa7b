package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/config"
	"github.com/stint-dev/stint/tool/mcp"
)

// oncall are the agents of a desk: a program, and a model that plays a script.
func oncall(d *desk) {
	d.put("stint.yaml", `agents:
  count: {kind: exec, command: [sh, count.sh]}
  clerk: {kind: llm, model: script/answers.json, instructions: You are a clerk., tools: [sleep]}
  other: {kind: llm, model: script/answers.json, instructions: You are a poet., tools: [sleep]}
`)
	d.put("answers.json", `{"model":"clerk-1","steps":[{"tools":[{"name":"sleep","input":{"seconds":0}}]},{"text":"Done."}]}`)
	d.put("count.sh", countProgram)
}

// countProgram is an agent of three loops, with a step in each.
const countProgram = `read -r line
echo '{"type":"step","id":1,"name":"add","effect":"read","input":{"n":'$STINT_LOOP'}}'
read -r answer
case $answer in *proceed*) echo '{"type":"result","id":1,"result":{"n":'$STINT_LOOP'}}' ;; esac
echo '{"type":"state","patch":{"sum":'$STINT_LOOP'}}'
[ $STINT_LOOP = 3 ] && echo '{"type":"end","outcome":"complete"}' || echo '{"type":"end","outcome":"continue","headline":"at '$STINT_LOOP'"}'
`

func TestReplay(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	oncall(d)
	d.says(exitOK, "", "run", "count", "--name", "count-1")
	d.says(exitOK, "", "run", "clerk", "--name", "clerk-1", "-p", "begin")
	before := d.ok("show", "count-1", "--field", "head_hash")

	d.says(exitOK, "The same: 3 loops, 3 steps", "replay", "count-1")
	d.says(exitOK, "loop 2    same  1 step  at 2\nThe same: 1 loop, 1 step", "replay", "count-1:2")
	d.says(exitOK, "The same: 2 loops, 2 steps", "replay", "count-1", "--from", "2", "--line", "0")
	d.says(exitOK, "The same: 2 loops, 3 steps", "replay", "clerk-1")
	d.says(exitNotOK, `instructions: "You are a clerk." → "You are a poet."`, "replay", "clerk-1", "--agent", "other")
	d.says(exitNotOK, "step 1.1 was model \"clerk-1\" (read), and the agent asks for it with another input", "replay", "clerk-1", "--agent", "other")

	d.put("count.sh", strings.Replace(countProgram, `"n":'$STINT_LOOP'}}'`, `"n":'$((STINT_LOOP * STINT_LOOP))'}}'`, 1))
	d.says(exitNotOK, "  loop 1    same  1 step  at 1\n  loop 2    DIFFERS\nstep 2.1 was step \"add\" (read)", "replay", "count-1")
	d.says(exitNotOK, "  /n  2 → 4\n", "replay", "count-1")
	d.says(exitNotOK, "count.sh: ", "replay", "count-1")
	d.says(exitOK, "--allow-network: the program's own network is not cut off here", "replay", "count-1:1", "--allow-network")

	code, out, _ := d.stint("replay", "count-1", "--json")
	var doc struct {
		Schema     string
		Same       bool
		Loops      []struct{ Loop, Steps int }
		Divergence struct {
			What              string
			Pos               stint.Position
			Recorded, Offered struct{ Input json.RawMessage }
		}
	}
	if err := json.Unmarshal([]byte(out), &doc); err != nil || code != exitNotOK {
		t.Fatalf("exit status %d, %v", code, err)
	}
	dv := doc.Divergence
	if doc.Schema != "stint.replay/1" || doc.Same || len(doc.Loops) != 1 || dv.Pos.String() != "2.1" || string(dv.Recorded.Input) != `{"n":2}` || string(dv.Offered.Input) != `{"n":4}` {
		t.Errorf("the document is %s", out)
	}

	d.fails(exitNotFound, "loop 4 is not completed; loops 1 to 3 are", "replay", "count-1", "--to", "4")
	d.fails(exitInvalid, "--from is a loop", "replay", "count-1", "--from", "0")
	d.fails(exitInvalid, "--line is a line", "replay", "count-1", "--line", "-2")
	d.fails(exitNotFound, "nobody", "replay", "count-1", "--agent", "nobody")
	d.run("done-1", works)
	d.fails(exitNotFound, "this program cannot drive", "replay", "done-1")
	if after := d.ok("show", "count-1", "--field", "head_hash"); after != before {
		t.Error("a replay changed the journal")
	}
}

// An agent behind a URL is asked only by who says so, and a program has a network only then.
func TestReplayAsksNobody(t *testing.T) {
	for _, c := range []struct {
		again   *again
		offline bool
	}{{nil, false}, {&again{}, true}, {&again{network: true}, false}} {
		w := &wiring{getenv: os.LookupEnv, again: c.again}
		spec, _, err := w.spec(config.Agent{Name: "near", Kind: config.KindExec, Command: []string{"true"}})
		if err != nil || spec.Offline != c.offline {
			t.Errorf("with %+v a program is started with %+v, %v", c.again, spec, err)
		}
	}
	w := &wiring{getenv: os.LookupEnv, again: &again{}}
	c := config.Agent{Name: "far", Kind: config.KindHTTP, Kinds: config.Kinds{HTTP: &config.HTTP{URL: "http://127.0.0.1:1/"}}}
	if _, err := w.http(&c); stint.CodeOf(err) != stint.Denied {
		t.Errorf("it is asked: %v", err)
	}
	w.again.network = true
	if _, err := w.http(&c); stint.CodeOf(err) == stint.Denied {
		t.Errorf("it is refused: %v", err)
	}
}

// A replay has the tools of servers as they were accepted, and starts none of them.
func TestReplayStartsNoServer(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, ".mcp.json")
	if err := os.WriteFile(file, []byte(`{"mcpServers":{"notes":{"command":"touch","args":["started"]}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	w := &wiring{getenv: os.LookupEnv, again: &again{}}
	m := &config.MCPTools{File: file}
	if _, err := w.served(m, &pin{}); stint.CodeOf(err) != stint.NotFound {
		t.Errorf("of a server that nobody accepted: %v", err)
	}
	p := &pin{Servers: map[string]mcp.Pin{file + "#notes": {Server: "notes", Tools: map[string]mcp.Definition{
		"write": {Description: "Writes.", Schema: json.RawMessage(`{"type":"object"}`)}, "read": {Hints: mcp.Hints{ReadOnly: true}}}}}}
	tools, err := w.served(m, p)
	if err != nil || len(tools) != 2 || tools[1].Name != "notes__write" || tools[1].Description != "Writes." || tools[0].Class() != stint.Once {
		t.Errorf("the tools are %+v, %v", tools, err)
	}
	m.Trust = []string{"notes"}
	if tools, err := w.served(m, p); err != nil || tools[0].Class() != stint.Read {
		t.Errorf("of a server that is trusted: %+v, %v", tools, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "started")); err == nil {
		t.Error("the server was started")
	}
}

// What a command-line agent said is on record: a replay does not start it.
func TestReplayStartsNoCommandLine(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	stream, err := os.ReadFile("../../agent/cli/testdata/claude.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	d.put("said.jsonl", string(stream))
	d.put("stint.yaml", "agents:\n  writer: {kind: cli, protocol: claude, command: [sh, cli.sh]}\n")
	d.put("cli.sh", "cat >/dev/null; cat said.jsonl; echo >>started\n")
	d.says(exitOK, "", "run", "writer", "--name", "w", "-p", "write the file")
	d.says(exitOK, "The same: 1 loop", "replay", "w")
	if b, err := os.ReadFile(filepath.Join(d.dir, "started")); err != nil || string(b) != "\n" {
		t.Errorf("it was started as often as %q has lines, %v", b, err)
	}
	a := &again{}
	if got := a.unstartable([]string{"/usr/bin/agent", "acp"}); filepath.Base(got[0]) != "agent" || got[1] != "acp" || got[0] == "/usr/bin/agent" {
		t.Errorf("the command is %q", got)
	}
}
