//go:build linux

package acceptance_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// played makes a site with one agent a, a model that plays the steps, as of model/script,
// with the lines of settings, below which its tools may stand.
func played(t *testing.T, settings, steps string) *site {
	t.Helper()
	s := newSite(t, nil)
	s.file("script.json", `{"steps":[`+steps+`]}`)
	s.file("stint.yaml", "agents:\n"+playing("a", settings))
	return s
}

// playing is an agent of a stint.yaml that plays script.json.
func playing(name, settings string) string {
	text := "  " + name + ":\n    kind: llm\n    model: script/script.json\n"
	if !strings.Contains(settings, "retry:") {
		text += "    retry: {initial: 10ms, attempts: 2}\n"
	}
	for line := range strings.Lines(settings) {
		text += "    " + line
	}
	return strings.TrimRight(text, "\n") + "\n"
}

// calls is a step that calls one tool.
func calls(tool, input string) string {
	return fmt.Sprintf(`{"tools":[{"name":%q,"input":%s}]}`, tool, input)
}

// fakeServer is a server of tools that a shell plays: what it lists is in tools.json, the
// result of a call in reply.json, if there is one. A call of a tool that is called slow
// ends with the server. It notes its starts and the calls.
const fakeServer = `
echo $$ >> starts
echo "the fake says hello" >&2
while IFS= read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  answer() { printf '{"jsonrpc":"2.0","id":%s,"result":' "$id"; tr -d '\n'; printf '}\n'; }
  case $line in
  *'"method":"server/discover"'*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}\n' "$id" ;;
  *'"method":"initialize"'*) echo '{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"fake","version":"1"}}' | answer ;;
  *'"method":"tools/list"'*) answer < tools.json ;;
  *'"method":"tools/call"'*)
    echo call >> effects
    case $line in *'"name":"slow"'*) sleep 600 & wait ;; esac
    if [ -e reply.json ]; then answer < reply.json; else echo '{"content":[{"type":"text","text":"done"}]}' | answer; fi ;;
  esac
done
`

// served puts the fake into the site, and a .mcp.json that names it.
func (s *site) served(tools string) {
	s.t.Helper()
	s.file("server.sh", fakeServer)
	s.file("tools.json", tools)
	s.file(".mcp.json", `{"mcpServers":{"fake":{"command":"sh","args":["server.sh"]}}}`)
}

// listed is a list of tools that take any object, each NAME or NAME=DESCRIPTION.
func listed(tools ...string) string {
	type item struct {
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		Schema      json.RawMessage `json:"inputSchema"`
	}
	var all struct {
		Tools []item `json:"tools"`
	}
	for _, text := range tools {
		name, what, _ := strings.Cut(text, "=")
		// All that a lock file must not change is in the schema.
		schema := `{"type":"object","properties":{"n":{"type":"integer","maximum":18446744073709551615,"description":"<b>&amp; 1.0e2"}}}`
		all.Tools = append(all.Tools, item{name, what, json.RawMessage(schema)})
	}
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(all); err != nil {
		return err.Error()
	}
	return b.String()
}

// noted is how many lines a file of the site has.
func (s *site) noted(name string) int {
	b, err := os.ReadFile(filepath.Join(s.dir, name))
	if err != nil {
		return 0
	}
	return strings.Count(string(b), "\n")
}

// told is the journal of a session with what its steps were given and gave.
func (s *site) told(session string) string {
	s.t.Helper()
	return s.must("logs", session, "--content", "-o", "jsonl")
}
