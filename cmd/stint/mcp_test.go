package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/stint-dev/stint"
)

// peer is a client of stint mcp, which a test runs in its own process.
type peer struct {
	d *desk
	*mcp.ClientSession
}

// mcp starts stint mcp for a client; env is added to its environment. At the end of the
// test it has to end well when its input does.
func (d *desk) mcp(env map[string]string, args ...string) *peer {
	d.t.Helper()
	fromClient, toServer := io.Pipe()
	fromServer, toClient := io.Pipe()
	var talk buffer
	a := d.app(nil, &talk)
	plain := a.getenv
	a.in, a.out, a.getenv = fromClient, toClient, func(k string) string {
		if v, ok := env[k]; ok {
			return v
		}
		return plain(k)
	}
	ended := make(chan int, 1)
	go func() { ended <- a.run(context.Background(), append([]string{"mcp"}, args...)) }()
	s, err := mcp.NewClient(&mcp.Implementation{Name: "codex", Version: "1"}, nil).Connect(d.t.Context(), &mcp.IOTransport{Reader: fromServer, Writer: toServer}, nil)
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() {
		if err := s.Close(); err != nil {
			d.t.Error(err)
		}
		if code := <-ended; code != 0 || talk.String() != "" {
			d.t.Errorf("stint mcp: exit status %d\n%s", code, talk.String())
		}
	})
	return &peer{d, s}
}

// call calls a tool; failed is the code of its error.
func (p *peer) call(name, args string) (doc map[string]any, failed stint.Code) {
	p.d.t.Helper()
	res, err := p.CallTool(p.d.t.Context(), &mcp.CallToolParams{Name: name, Arguments: json.RawMessage(args)})
	if err != nil {
		p.d.t.Fatalf("%s %s: %v", name, args, err)
	}
	raw, err := json.Marshal(res.StructuredContent)
	if res.IsError {
		raw, err = []byte(res.Content[0].(*mcp.TextContent).Text), nil
	}
	if err == nil {
		err = json.Unmarshal(raw, &doc)
	}
	if err != nil {
		p.d.t.Fatal(err)
	}
	if res.IsError {
		failed = stint.Code(doc["code"].(string))
	}
	return doc, failed
}

const greeter = `agents:
  greet:
    kind: exec
    protocol: none
    command: [sh, -c, "cat; echo"]
    labels: {kind: greeting}
    description: Says it back
  chat: {kind: exec, command: [sh, chat.sh]}
`

// A session that a client starts is run as one of stint start, and seen as stint ps,
// show and logs show it.
func TestMCPStartsSessions(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.put("stint.yaml", greeter)
	p := d.mcp(nil)
	if doc, _ := p.call("list_agents", `{}`); len(doc["items"].([]any)) != 2 {
		t.Errorf("the agents are %v", doc)
	}
	made, _ := p.call("start_session", `{"agent":"greet","prompt":"good evening","name":"greet-1","labels":{"team":"a"},"dedupe":"k1"}`)
	id := made["id"].(string)
	if made["status"] != "pending" || made["found"] != false || made["labels"].(map[string]any)["kind"] != "greeting" || made["labels"].(map[string]any)["team"] != "a" {
		t.Errorf("it started %v", made)
	}
	again, _ := p.call("start_session", `{"agent":"greet","prompt":"good evening","dedupe":"k1"}`)
	if again["id"] != id || again["found"] != true {
		t.Errorf("the same key again led to %v", again["id"])
	}
	if said := d.ok("start", "greet", "-p", "good evening", "--dedupe", "k1"); !strings.Contains(said, "was recorded before") {
		t.Errorf("the command with the same key says %s", said)
	}
	if _, failed := p.call("start_session", `{"agent":"greet","prompt":"good night","dedupe":"k1"}`); failed != stint.Conflict {
		t.Errorf("another prompt under the key: %q", failed)
	}
	if _, failed := p.call("start_session", `{"agent":"greet","prompt":"","labels":{"a b":"c"}}`); failed != stint.Invalid {
		t.Errorf("a label that stint start refuses: %q", failed)
	}
	if out := d.ok("resume", "greet-1", "--run"); !strings.Contains(out, "good evening") {
		t.Errorf("the runner printed %s", out)
	}
	doc, _ := p.call("show_session", `{"session":"greet-1"}`)
	var cli map[string]any
	if err := json.Unmarshal([]byte(d.ok("show", "greet-1", "--json")), &cli); err != nil {
		t.Fatal(err)
	}
	delete(doc["checkpoint"].(map[string]any), "age_ms")
	delete(cli["checkpoint"].(map[string]any), "age_ms")
	a, _ := json.Marshal(doc)
	b, _ := json.Marshal(cli)
	if string(a) != string(b) || doc["status"] != "completed" {
		t.Errorf("the tool and the command differ:\n%s\n%s", a, b)
	}
	log, _ := p.call("read_log", `{"session":"greet-1","after":0,"kinds":["output"]}`)
	if body, _ := json.Marshal(log["items"]); !strings.Contains(string(body), "good evening") || log["status"] != "completed" {
		t.Errorf("the log is %v", log)
	}
	if out := d.ok("logs", "greet-1"); !strings.Contains(out, "created by mcp:") || !strings.Contains(out, "/codex ") {
		t.Errorf("the log does not say who started it:\n%s", out)
	}
}

// A message reaches the session that waits for it.
func TestMCPSends(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.put("stint.yaml", greeter)
	d.put("chat.sh", "read -r line\ncase $line in *enough*) echo '{\"type\":\"end\",\"outcome\":\"complete\"}';; *) "+`echo '{"type":"end","outcome":"wait","wait":{"for":"message"}}';; esac`+"\n")
	p := d.mcp(nil)
	if _, failed := p.call("start_session", `{"agent":"chat","prompt":"hi","name":"chat-1"}`); failed != "" {
		t.Fatal(failed)
	}
	d.says(exitWaits, "", "resume", "chat-1", "--run")
	doc, failed := p.call("send_message", `{"session":"chat-1","text":"enough","id":"m1"}`)
	if failed != "" || doc["unread"] != 1.0 || !strings.Contains(doc["note"].(string), "stint resume ") {
		t.Errorf("%s %v", failed, doc)
	}
	d.says(exitOK, "", "resume", "chat-1", "--run")
	if _, failed := p.call("send_message", `{"session":"chat-1","text":"more"}`); failed != stint.Conflict {
		t.Errorf("a message to what has ended: %q", failed)
	}
}

// Without a store there is nothing to read, and the first session makes one. A stint.yaml
// that is mended is read anew.
func TestMCPWithoutAStore(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	p := d.mcp(map[string]string{"STINT_STORE": "sqlite:" + d.dir + "/other.db"})
	if doc, failed := p.call("list_sessions", `{}`); failed != stint.Unavailable {
		t.Errorf("%q %v", failed, doc)
	}
	if doc, failed := p.call("start_session", `{"agent":"greet","prompt":"x"}`); failed != stint.NotFound || !strings.Contains(doc["hint"].(string), "stint init") {
		t.Errorf("%q %v", failed, doc)
	}
	d.put("stint.yaml", greeter)
	if doc, failed := p.call("start_session", `{"agent":"great","prompt":"x"}`); failed != stint.NotFound || !strings.Contains(doc["hint"].(string), "greet") {
		t.Errorf("%q %v", failed, doc)
	}
	if _, failed := p.call("start_session", `{"agent":"greet","prompt":"x"}`); failed != "" {
		t.Error(failed)
	}
	if doc, _ := p.call("list_sessions", `{}`); len(doc["items"].([]any)) != 1 {
		t.Errorf("%v", doc)
	}
}

// What a session's agent starts is said to be the session's, and the session's processes
// do not decide what it asks, however long the chain is.
func TestMCPInsideASession(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.put("stint.yaml", "agents:\n  pay: {kind: exec, protocol: none, command: [\"true\"]}\n")
	boss := d.run("boss-1", sleeps)
	p := d.mcp(map[string]string{"STINT_SESSION": boss.Session.ID.String()})
	made, failed := p.call("start_session", `{"agent":"pay","prompt":"x","name":"pay-1"}`)
	if failed != "" {
		t.Fatal(failed)
	}
	out := d.ok("logs", "pay-1")
	if !strings.Contains(out, "created by session:"+boss.Session.ID.String()) {
		t.Errorf("the log says\n%s", out)
	}
	id, _ := stint.ParseID(made["id"].(string))
	pay := d.row(id)
	second := d.mcp(map[string]string{"STINT_SESSION": id.String()})
	made, failed = second.call("start_session", `{"agent":"pay","prompt":"x","name":"pay-2"}`)
	if failed != "" {
		t.Fatal(failed)
	}
	id, _ = stint.ParseID(made["id"].(string))
	last := d.row(id)
	stranger := d.run("other-1", sleeps)
	s := &site{store: d.store}
	for _, c := range []struct {
		name string
		from stint.ID
		row  *stint.Row
		may  bool
	}{
		{"its own", pay.Session.ID, &pay, false},
		{"of what it started", boss.Session.ID, &pay, false},
		{"of what that started", boss.Session.ID, &last, false},
		{"of the one that started it", pay.Session.ID, &boss, true},
		{"of a stranger", stranger.Session.ID, &pay, true},
	} {
		a := d.app(nil, nil)
		a.getenv = func(k string) string { return map[string]string{"STINT_SESSION": c.from.String()}[k] }
		err := a.mayDecide(t.Context(), s, c.row)
		if c.may != (err == nil) || err != nil && stint.CodeOf(err) != stint.Denied {
			t.Errorf("a decision on a question %s: %v", c.name, err)
		}
	}
}

// The server answers on this machine alone, and no web page of another origin.
func TestMCPOverHTTP(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.put("stint.yaml", greeter)
	for _, addr := range []string{":0", "0.0.0.0:0", "192.0.2.1:8811", "[::]:0", "example.com:80"} {
		d.says(exitInvalid, "is not a loopback address; there is no login here", "mcp", "--http", addr)
	}
	d.says(exitInvalid, "127.0.0.1:8811", "mcp", "--http", "8811")
	ctx, cancel := context.WithCancel(t.Context())
	var out, talk buffer
	ended := make(chan int, 1)
	go func() { ended <- d.stintTo(ctx, &out, &talk, "mcp", "--http", "localhost:0") }()
	talk.until(t, "/mcp\n")
	url := strings.TrimSpace(talk.String()[strings.Index(talk.String(), "http://"):])

	s, err := mcp.NewClient(&mcp.Implementation{Name: "codex", Version: "1"}, nil).Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: url}, nil)
	if err != nil {
		t.Fatal(err)
	}
	p := &peer{d, s}
	if doc, failed := p.call("start_session", `{"agent":"greet","prompt":"x","name":"greet-1"}`); failed != "" {
		t.Errorf("%v", doc)
	}
	if doc, _ := p.call("list_sessions", `{}`); len(doc["items"].([]any)) != 1 {
		t.Errorf("%v", doc)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	own := strings.TrimSuffix(url, "/mcp")
	for _, c := range []struct {
		host, origin, path string
		want               int
	}{
		{"", "", "/mcp", http.StatusOK}, {"", own, "/mcp", http.StatusOK}, {"localhost:99", "http://localhost:99", "/mcp", http.StatusOK},
		{"evil.example", "", "/mcp", http.StatusForbidden}, {"", "http://evil.example", "/mcp", http.StatusForbidden}, {"", "null", "/mcp", http.StatusForbidden},
		{"", "http://localhost:3000", "/mcp", http.StatusForbidden}, {"evil.example", "http://evil.example", "/mcp", http.StatusForbidden}, {"", "", "/", http.StatusNotFound},
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, own+c.path, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		if req.Host = c.host; c.origin != "" {
			req.Header.Set("Origin", c.origin)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if res.StatusCode != c.want {
			t.Errorf("host %q, origin %q, %s: %d %s", c.host, c.origin, c.path, res.StatusCode, body)
		}
	}
	cancel()
	if code := <-ended; code != 0 || out.String() != "" {
		t.Errorf("exit status %d, standard output %q", code, out.String())
	}
}

// What a client needs to start the server is printed in its own format.
func TestMCPConfig(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for client, want := range map[string]string{
		"claude":   `{"mcpServers":{"stint":{"command":"stint","args":["mcp"]}}}` + "\n",
		"gemini":   `{"mcpServers":{"stint":{"command":"stint","args":["mcp"]}}}` + "\n",
		"opencode": `{"mcp":{"stint":{"type":"local","command":["stint","mcp"],"enabled":true}}}` + "\n",
		"codex":    "[mcp_servers.stint]\ncommand = \"stint\"\nargs = [\"mcp\"]\n",
	} {
		if got := d.ok("mcp", "--print-config", client); got != want {
			t.Errorf("for %s it prints %s", client, got)
		}
	}
	if got := d.ok("mcp", "--print-config", "codex", "--config", "/a/stint.yaml", "--store", "sqlite:/b/stint.db"); !strings.HasSuffix(got, `args = ["mcp","--config","/a/stint.yaml","--store","sqlite:/b/stint.db"]`+"\n") {
		t.Errorf("with a store it prints %s", got)
	}
	d.says(exitInvalid, "claude, codex, opencode, gemini", "mcp", "--print-config", "emacs")
	d.says(exitInvalid, "takes no arguments", "mcp", "serve")
	if got := d.offers("mcp", "--print-config", ""); len(got) != 4 {
		t.Errorf("completion offers %q", got)
	}
	if got := d.offers("mcp", ""); len(got) != 0 {
		t.Errorf("completion offers %q", got)
	}
}
