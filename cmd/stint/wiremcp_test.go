package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/internal/proc"
	"github.com/stint-dev/stint/tool/mcp"
)

// toolServer is a server of tools that a shell plays; it notes when it begins and ends.
const toolServer = `echo begins >> notes; trap 'echo ends >> notes' EXIT; trap exit TERM
while IFS= read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case $line in
  *'"server/discover"'*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}\n' "$id" ;;
  *'"initialize"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"f","version":"1"}}}\n' "$id" ;;
  *'"tools/list"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"look","description":"looks","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}]}}\n' "$id" ;;
  esac
done
`

// toolDesk has two agents that use the same server, one of which trusts it.
func toolDesk(t *testing.T) *desk {
	t.Helper()
	d := newDesk(t)
	d.put("s.json", `{"steps":[]}`)
	d.put("server.sh", toolServer)
	d.put(".mcp.json", `{"mcpServers":{"f":{"command":"sh","args":["server.sh"]}}}`)
	d.put("stint.yaml", `agents:
  a: {kind: llm, model: script/s.json, tools: [{mcp: {file: .mcp.json}}]}
  b: {kind: llm, model: script/s.json, tools: [{mcp: {file: .mcp.json, trust: [f]}}]}
`)
	return d
}

func (d *desk) notes() string {
	b, err := os.ReadFile(filepath.Join(d.dir, "notes"))
	if err != nil {
		return ""
	}
	return strings.Join(strings.Fields(string(b)), " ")
}

// All agents and sessions of a process use one process of a server: it begins when it is
// needed and ends with the wiring. What is accepted at first is said once.
func TestServersAreShared(t *testing.T) {
	t.Parallel()
	d := toolDesk(t)
	var out, talk buffer
	a := d.app(&out, &talk)
	s, err := a.open(t.Context(), false)
	if err != nil {
		t.Fatal(err)
	}
	defer s.store.Close()
	w := s.wire(nil)
	var mu sync.Mutex
	said := 0
	w.first = func(string, []mcp.Pin) { mu.Lock(); defer mu.Unlock(); said++ }
	if d.notes() != "" {
		t.Error("a server began before it was needed")
	}
	made := map[string]engine.Agent{}
	for _, name := range []string{"a", "b"} {
		c, err := a.configured(name)
		if err != nil {
			t.Fatal(err)
		}
		if made[name], err = w.agent(c); err != nil {
			t.Fatal(err)
		}
	}
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			name := []string{"a", "b"}[i%2]
			if _, err := w.resolve(stint.AgentRef{Name: name, Runtime: "llm"}, made[name].Config); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if got := d.notes(); got != "begins" || said != 1 {
		t.Errorf("the server: %s; said %d times", got, said)
	}
	w.close()
	if got := d.notes(); got != "begins ends" {
		t.Errorf("the server: %s", got)
	}
	for name, want := range map[string]string{"a": "once policy no yes", "b": "read policy yes yes"} {
		if got := strings.Join(strings.Fields(d.ok("agent", "tools", name)), " "); !strings.Contains(got, "f__look "+want+" mcp f looks") {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// Many processes that use a server first, at once, accept the same, and lose nothing of
// what the others accept.
func TestFirstUsesAtOnce(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), ".mcp.json")
	if err := os.WriteFile(file, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	refused := 0
	for i := range 20 {
		wg.Go(func() {
			own := mcp.Pin{Server: fmt.Sprint("s", i), Command: []string{"x"}, Dir: filepath.Dir(file)}
			shared := mcp.Pin{Server: "shared", Command: []string{"x", fmt.Sprint(i % 2)}, Dir: filepath.Dir(file)}
			if err := acceptFirst(file, []mcp.Pin{own}); err != nil {
				t.Error(err)
			}
			if err := acceptFirst(file, []mcp.Pin{shared}); errors.Is(err, stint.Denied) {
				mu.Lock()
				refused++
				mu.Unlock()
			} else if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	l, err := readLock(file)
	if err != nil || len(l.Servers) != 21 || refused != 10 {
		t.Errorf("%d servers, %d were refused: %v", len(l.Servers), refused, err)
	}
	left, err := filepath.Glob(filepath.Join(filepath.Dir(file), "*"))
	if err != nil || !slices.Equal(left, []string{file, lockPath(file)}) && len(left) != 0 {
		t.Errorf("the folder holds %v, %v", left, err)
	}
}

// What a server says on the side is shown, in lines that drive no terminal, and not
// without bounds.
func TestTalkOfServers(t *testing.T) {
	t.Parallel()
	var out, talk buffer
	d := newDesk(t)
	say := d.app(&out, &talk).serverTalk()
	say("f", "\x1b]0;owned\aone\ntwo")
	for range 1000 {
		say("f", strings.Repeat("x", 1000))
	}
	say("g", "hello")
	got := talk.String()
	if !strings.HasPrefix(got, `[f] \x1b]0;owned\x07one\ntwo`+"\n[f] xxx") || !strings.HasSuffix(got, "x\n[f] it says more than is shown\n[g] hello\n") || len(got) > 2*talkBytes || driving(got) != "" {
		t.Errorf("%d bytes: %.300s … %s", len(got), got, got[len(got)-200:])
	}
}

// A server that does not answer is given up when the person does.
func TestGivingUpOnAServer(t *testing.T) {
	t.Parallel()
	d := toolDesk(t)
	d.put("server.sh", "echo $$ >> notes; while read -r line; do :; done\n")
	for _, line := range []string{"agent tools a", "agent accept .mcp.json", "start a", "run a -p x"} {
		if err := os.RemoveAll(filepath.Join(d.dir, "notes")); err != nil {
			t.Fatal(err)
		}
		var out, talk buffer
		ctx, cancel := d.until(func() bool { return d.notes() != "" })
		code := d.stintTo(ctx, &out, &talk, strings.Fields(line)...)
		cancel()
		pid, err := strconv.Atoi(d.notes())
		if err != nil {
			t.Fatal(err)
		}
		id, there := proc.IdentOf(pid) // one that is dead and not yet reaped is there too
		if lives := there && proc.Alive(id); code != exitInterrupted || lives || strings.Contains(talk.String(), "explain internal") {
			t.Errorf("stint %s: exit status %d, the server lives: %v\n%s%s", line, code, lives, out.String(), talk.String())
		}
	}
	var all struct{ Items []json.RawMessage }
	if err := json.Unmarshal([]byte(d.ok("ps", "-a", "--json")), &all); err != nil || len(all.Items) != 0 {
		t.Errorf("%d sessions: %v", len(all.Items), err)
	}
}

// until returns a context that ends as soon as ok is true.
func (d *desk) until(ok func() bool) (context.Context, func()) {
	ctx, cancel := context.WithCancel(d.t.Context())
	go func() {
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if ok() {
				cancel()
			}
		}
	}()
	return ctx, cancel
}
