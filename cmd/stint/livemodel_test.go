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

// liveDesk has a session of a clerk that has paid ana, and other models to do it again.
func liveDesk(t *testing.T) *desk {
	t.Helper()
	d := newDesk(t)
	d.put("stint.yaml", `agents:
  clerk:
    kind: llm
    model: script/paid.json
    instructions: You are a clerk.
    tools:
      - sleep
      - exec: {name: pay, command: [sh, pay.sh], approve: never, args: {type: object, properties: {to: {type: string}, amount: {type: integer}}}}
  poet:
    kind: llm
    model: script/paid.json
    instructions: You are a poet.
    interactive: true
    tools:
      - exec: {name: pay, command: [sh, pay.sh], approve: never, args: {type: object, properties: {to: {type: string}, amount: {type: integer}}}}
  count: {kind: exec, command: ["true"], protocol: none}
`)
	d.put("pay.sh", "cat >> paid; echo >> paid; echo paid\n")
	for name, steps := range map[string]string{
		"paid":  `{"tools":[{"name":"pay","input":{"to":"ana","amount":1}}]},{"tools":[{"name":"sleep","input":{"seconds":0}}]},{"text":"Ana is paid."}`,
		"other": `{"tools":[{"name":"pay","input":{"amount":1,"to":"ana"}},{"name":"pay","input":{"to":"bob","amount":2}}]},{"text":"Ana is paid, bob is not."}`,
		"loose": `{"tools":[{"name":"pay","input":{"to":"ana","amount":1}}]},{"text":"Ana is paid."},{"tools":[{"name":"pay","input":{"to":"eve","amount":3}}]},{"text":"Eve is not."}`,
	} {
		d.put(name+".json", `{"model":"`+name+`","steps":[`+steps+`]}`)
	}
	d.ok("run", "-q", "clerk", "-p", "pay them", "--name", "pay-1")
	return d
}

const paidOnce = `{"to":"ana","amount":1}` + "\n"

// Another model does a session again: it gets what the tools gave, a call that is not on
// record is not made, and no tool runs.
func TestLiveModel(t *testing.T) {
	t.Parallel()
	d := liveDesk(t)
	before := d.ok("show", "pay-1", "--field", "head_hash")
	d.says(exitOK, "2 calls of tools on record behind loop 0; none is made\nNothing was changed. To do it: stint replay ", "replay", "pay-1", "--live-model", "--model", "script/other.json", "--dry-run")
	d.fails(exitNotFound, "pay-1.0", "show", "pay-1.0")

	code, out, talk := d.stint("replay", "pay-1", "--live-model", "--model", "script/other.json")
	if code != exitOK {
		t.Fatalf("exit status %d\n%s%s", code, out, talk)
	}
	for _, want := range []string{
		"from loop 1 on, with script/other.json and the agent clerk as the session is pinned to it\n", "  model: ", "The branch is pay-1.0 (",
		"→ pay", "  loop 1    differs in 1 call\n", "  loop 3    not in the branch\n", "  loops 3 → 2 · steps 5 → 4 · ",
		"Not on record, and not made; it diverges at 1.2.2\n  1.2.2    pay {\"to\":\"bob\",\"amount\":2}\n", "stint diff ",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	if got := d.paid(); got != paidOnce {
		t.Errorf("the tool ran with %q", got)
	}
	logs := d.ok("logs", "pay-1.0", "--content")
	if !strings.Contains(logs, "paid") || !strings.Contains(logs, "pay is not on record: ") {
		t.Errorf("the branch has\n%s", logs)
	}
	d.says(exitOK, "The same: 2 loops, 3 steps", "replay", "pay-1.0")
	d.says(exitOK, "+ 1.2.2 tool pay (read) failed", "diff", "pay-1", "pay-1.0", "--calls")
	if after := d.ok("show", "pay-1", "--field", "head_hash"); after != before {
		t.Error("the session itself was changed")
	}

	d.says(exitOK, "the same calls of tools and the same words in 3 loops", "replay", "pay-1", "--live-model", "--name", "same-1")
	d.says(exitOK, "Every call of a tool is on record", "replay", "pay-1:2", "--live-model", "--name", "rest-1")
	d.says(exitOK, "Loops 1 to 3 are the same", "diff", "pay-1", "same-1", "--calls", "--text")
	d.says(exitOK, "Not on record, and not made; it diverges at 1.2.2", "replay", "pay-1.0", "--live-model", "--name", "again-1")
	if got := d.paid(); got != paidOnce {
		t.Errorf("the tool ran with %q", got)
	}
}

// The branch stays one whose tools are not called, whoever goes on with it.
func TestLiveModelIsResumed(t *testing.T) {
	t.Parallel()
	d := liveDesk(t)
	d.says(exitWaits, "waits for message", "replay", "pay-1", "--live-model", "--agent", "poet", "--model", "script/loose.json", "--name", "loose-1")
	d.says(exitWaits, "pay is not on record: ", "send", "loose-1", "and eve", "--run")
	d.says(exitWaits, "", "branch", "loose-1", "--from", "2", "--say", "and eve", "--run", "--name", "loose-2")
	d.says(exitOK, "pay is not on record: ", "logs", "loose-2")
	d.says(exitOK, "", "restart", "loose-1", "--from", "0")
	d.says(exitWaits, "", "restart", "loose-1", "--run")
	if got := d.paid(); got != paidOnce {
		t.Errorf("the tool ran with %q", got)
	}
	d.says(exitWaits, "pay is not on record: ", "branch", "loose-1", "--from", "0", "--model", "script/other.json", "--run", "--name", "loose-3")
	if got := d.paid(); got != paidOnce {
		t.Errorf("the tool of a branch with another model ran with %q", got)
	}
	d.says(exitWaits, "", "branch", "loose-1", "--agent", "poet", "--from", "0", "--run", "--name", "acts-1") // who names an agent has its tools
	if got := d.paid(); got != paidOnce+paidOnce {
		t.Errorf("the tool of a branch with an agent of its own ran with %q", got)
	}
}

// What the session was told for the loop that is done again first, the branch is told; and
// a session that was itself done from a record is a record like any other.
func TestLiveModelHears(t *testing.T) {
	t.Parallel()
	d := liveDesk(t)
	d.put("paid.json", `{"steps":[{"tools":[{"name":"pay","input":{"to":"ana","amount":1}}]},{"text":"Ana is paid."},{"tools":[{"name":"pay","input":{"to":"ana","amount":1}}]},{"text":"Twice."}]}`)
	d.says(exitWaits, "", "run", "-q", "poet", "-p", "pay ana", "--name", "chat-1")
	d.put("pay.sh", "cat >> paid; echo >> paid; echo again\n")
	d.says(exitWaits, "", "send", "chat-1", "and once more", "--run")
	paid := d.paid()
	d.says(exitWaits, "the same calls of tools and the same words in 2 loops", "replay", "chat-1", "--live-model", "--from", "3", "--name", "chat-2")
	d.says(exitOK, "and once more", "logs", "chat-2", "--content")
	d.says(exitOK, "again", "logs", "chat-2", "--content")
	d.says(exitWaits, "", "replay", "chat-1", "--live-model", "--name", "chat-3")
	d.says(exitWaits, "", "send", "chat-3", "and once more", "--run")
	d.says(exitOK, "again", "logs", "chat-3:3", "--content")
	d.says(exitWaits, "the same calls of tools and the same words in 2 loops", "replay", "chat-3", "--live-model", "--from", "3", "--name", "chat-4")
	d.says(exitOK, "again", "logs", "chat-4", "--content")
	if got := d.paid(); got != paid || strings.Count(paid, "\n") != 3 {
		t.Errorf("the tool ran with %q, and with %q before", got, paid)
	}
}

// A server may take the branch up first; it comes to the same.
func TestLiveModelBesideAServer(t *testing.T) {
	d := liveDesk(t)
	d.put("slow.json", `{"steps":[{"delay":"300ms","tools":[{"name":"pay","input":{"to":"ana","amount":1}}]},{"delay":"300ms","text":"Ana is paid."}]}`)
	r, _ := d.serves()
	for range 4 {
		d.says(exitOK, "Every call of a tool is on record", "replay", "pay-1", "--live-model", "--model", "script/slow.json")
	}
	r.ends()
	if got := d.paid(); got != paidOnce {
		t.Errorf("the tool ran with %q", got)
	}
}

func TestLiveModelAsJSON(t *testing.T) {
	t.Parallel()
	d := liveDesk(t)
	type document struct {
		Schema, Model string
		From, Calls   int
		Branch        *struct{ Name, Status string }
		Agent         struct{ Pinned bool }
		Diff          *struct{ Schema string }
		OffRecord     []struct {
			Pos  stint.Position
			Tool string
			Args json.RawMessage
		} `json:"off_record"`
	}
	read := func(args ...string) (doc document) {
		t.Helper()
		out := d.ok(append([]string{"replay", "pay-1", "--live-model", "--model", "script/other.json", "--json"}, args...)...)
		if err := json.Unmarshal([]byte(out), &doc); err != nil {
			t.Fatalf("%v in %s", err, out)
		}
		return doc
	}
	if doc := read("--dry-run"); doc.Schema != "stint.replay.live/1" || doc.Branch != nil || doc.Diff != nil || doc.Calls != 2 || doc.From != 1 || doc.OffRecord == nil {
		t.Errorf("a dry run is %+v", doc)
	}
	doc := read()
	if doc.Branch == nil || doc.Branch.Name != "pay-1.0" || doc.Branch.Status != "completed" || !doc.Agent.Pinned || doc.Diff == nil || doc.Diff.Schema != "stint.diff/1" || doc.Model != "script/other.json" {
		t.Errorf("it is %+v", doc)
	}
	if got := d.offers("replay", "pay-1", "--live-model", "--model", "openai/gpt-5.4"); len(got) == 0 {
		t.Error("no model is offered")
	}
	if len(doc.OffRecord) != 1 || doc.OffRecord[0].Pos.String() != "1.2.2" || doc.OffRecord[0].Tool != "pay" || string(doc.OffRecord[0].Args) != `{"to":"bob","amount":2}` {
		t.Errorf("not on record are %+v", doc.OffRecord)
	}
}

// What cannot be done again with a model says so, and begins nothing.
func TestLiveModelRefuses(t *testing.T) {
	t.Parallel()
	d := liveDesk(t)
	d.ok("run", "-q", "count", "--name", "count-1")
	d.run("code-1", works)
	d.ok("restart", "pay-1", "--from", "1")
	d.refuses(
		refuse(exitInvalid, "--live-model asks the model of an agent of kind llm", "does its loops again from the journal", "replay", "count-1", "--live-model"),
		refuse(exitInvalid, "--live-model asks the model of an agent of kind llm", "stint branch", "replay", "pay-1", "--live-model", "--agent", "count"),
		refuse(exitInvalid, "it is one of a program", "--agent NAME", "replay", "code-1", "--live-model"),
		refuse(exitInvalid, "--model goes with --live-model", "--help", "replay", "pay-1", "--model", "script/other.json"),
		refuse(exitInvalid, "--to is for a replay without --live-model", "--help", "replay", "pay-1", "--live-model", "--to", "2"),
		refuse(exitInvalid, "which begins on the current line, 1", "does its loops again without a model", "replay", "pay-1/0", "--live-model"),
		refuse(exitNotFound, "loop 7", "", "replay", "pay-1", "--live-model", "--from", "8"),
		refuse(exitInvalid, "--model is for agents of kind llm", "leave --model out", "branch", "count-1", "--model", "script/other.json"),
		refuse(exitInvalid, "what dear-1 costs is not known", "stint price set", "branch", "pay-1", "--from", "0", "--model", "openai/dear-1", "--cost", "2"),
	)
}

// A branch with another model calls its tools, and has the limit of money that its model
// would have.
func TestBranchWithAnotherModel(t *testing.T) {
	t.Parallel()
	d := liveDesk(t)
	d.says(exitOK, "completed", "branch", "pay-1", "--from", "0", "--model", "script/other.json", "--run", "--name", "b-1")
	if got := d.paid(); got != paidOnce+`{"amount":1,"to":"ana"}`+"\n"+`{"to":"bob","amount":2}`+"\n" {
		t.Errorf("the tool ran with %q", got)
	}
	d.ok("branch", "pay-1", "--from", "0", "--model", "openai/gpt-5.4", "--name", "b-2")
	if got := strings.TrimSpace(d.ok("show", "b-2", "--field", "limits.cost.max")); got != config.DefaultCost.String() {
		t.Errorf("its limit of money is %q", got)
	}
	d.ok("branch", "pay-1", "--from", "0", "--model", "openai/gpt-5.4", "--cost", "none", "--name", "b-3")
	d.ok("restart", "pay-1", "--from", "0", "--model", "script/loose.json", "--run")
	d.says(exitOK, "Ana is paid.", "result", "pay-1")
	d.says(exitOK, "gpt-5.4 costs money, and the session has no limit of it: stint limit "+d.short("pay-1")+" --cost 5.00 sets one", "restart", "pay-1", "--from", "0", "--model", "openai/gpt-5.4", "--dry-run")
	d.says(exitOK, "--model script/other.json", "restart", "pay-1", "--from", "0", "--model", "script/other.json", "--dry-run")
}

// An agent whose tools are not called starts none of its servers.
func TestLiveModelStartsNoServer(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, ".mcp.json")
	if err := os.WriteFile(file, []byte(`{"mcpServers":{"notes":{"command":"touch","args":["started"]}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	c := config.Agent{Name: "clerk", Kind: config.KindLLM, Kinds: config.Kinds{LLM: &config.LLM{
		Tools: []config.ToolSpec{{MCP: &config.MCPTools{File: file}}}, Record: &config.Record{Session: stint.ID{1}}}}}
	w := &wiring{getenv: os.LookupEnv}
	p := &pin{Servers: map[string]mcp.Pin{file + "#notes": {Server: "notes", Tools: map[string]mcp.Definition{"write": {Schema: json.RawMessage(`{"type":"object"}`)}}}}}
	set, err := w.tools(&c, p)
	if err != nil || set.Len() != 1 {
		t.Errorf("the tools are %+v, %v", set, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "started")); err == nil {
		t.Error("the server was started")
	}
}
