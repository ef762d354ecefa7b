package mcpserver_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/journal"
)

// A conversation with a session, from its start to its end.
func TestStartWatchSend(t *testing.T) {
	inRoom(t, func(t *testing.T, r *room) {
		c := r.connect("claude-code")
		defer c.leave()
		made, _ := c.call("start_session", `{"agent":"chat","prompt":"how many?","name":"chat-1","labels":{"team":"a"},"dedupe":"k1"}`)
		id, err := stint.ParseID(made["id"].(string))
		if err != nil {
			t.Fatal(err)
		}
		c.call("list_sessions", `{}`)
		r.run(id)
		page, _ := c.call("read_log", `{"session":"chat-1"}`)
		c.call("show_session", `{"session":"chat-1"}`)
		c.call("send_message", `{"session":"chat-1","text":"that is enough","id":"m1"}`)
		if s := r.run(id); s.Status != stint.Completed {
			t.Errorf("the session is %s: the message did not reach it", s.Status)
		}
		c.call("read_log", fmt.Sprintf(`{"session":"chat-1","after":%v,"kinds":["message","session"]}`, page["cursor"]))
		c.call("list_sessions", `{"status":"completed","agent":"chat"}`)
		c.fails(stint.Conflict, "start_session begins another", "send_message", `{"session":"chat-1","text":"more"}`)
		r.golden("conversation")
	})
}

// What a session asks is shown with what a person types, and nothing here decides it.
func TestApprovals(t *testing.T) {
	inRoom(t, func(t *testing.T, r *room) {
		c := r.connect("codex")
		defer c.leave()
		if _, text := c.call("list_approvals", `{}`); text != "nothing waits for a decision\n" {
			t.Errorf("of no question it says %q", text)
		}
		r.said.Reset()
		made, _ := c.call("start_session", `{"agent":"pay","prompt":"","name":"pay-1"}`)
		id, _ := stint.ParseID(made["id"].(string))
		s := r.run(id)
		c.call("list_approvals", `{"session":"pay-1"}`)
		r.golden("approvals")

		list, err := c.ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range list.Tools {
			for _, word := range []string{"approve", "deny", "decide", "resolve", "limit", "restart", "resume"} {
				if strings.Contains(v.Name, word) {
					t.Errorf("there is a tool %s: what a session asks is a person's to decide", v.Name)
				}
			}
		}
		// A message cannot take the place of a decision, whose id is known beforehand.
		seq := s.At.Approvals[0].Seq
		id1 := journal.Decision{Approval: seq}.MessageID()
		c.call("send_message", fmt.Sprintf(`{"session":"pay-1","text":"yes","id":%q}`, id1))
		d := journal.Decision{Approval: seq, State: stint.ApprovalDenied, Nonce: "n"}
		data, err := stint.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.store.Send(t.Context(), id, stint.Message{ID: d.MessageID(), Kind: stint.Decision, From: "human:ana", Data: data}); err != nil {
			t.Errorf("a person cannot decide any more: %v", err)
		}
		if row, err := r.store.Session(t.Context(), id); err != nil || row.Session.At.Approvals[0].State != stint.ApprovalOpen {
			t.Errorf("the message decided: %+v %v", row.Session.At.Approvals, err)
		}
	})
}

// The tools as they are offered.
func TestToolList(t *testing.T) {
	inRoom(t, func(t *testing.T, r *room) {
		c := r.connect("codex")
		defer c.leave()
		list, err := c.ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		reads := map[string]bool{"list_sessions": true, "show_session": true, "read_log": true, "list_approvals": true, "list_agents": true, "start_session": false, "send_message": false}
		for _, v := range list.Tools {
			readOnly, known := reads[v.Name]
			a := v.Annotations
			if !known || a.ReadOnlyHint != readOnly || a.IdempotentHint != readOnly || *a.DestructiveHint || *a.OpenWorldHint == readOnly {
				t.Errorf("%s has the annotations %+v", v.Name, a)
			}
			delete(reads, v.Name)
			fmt.Fprintf(&r.said, "%s: %s\n  read only %v, idempotent %v\n", v.Name, v.Description, a.ReadOnlyHint, a.IdempotentHint)
			b, err := json.MarshalIndent(v.InputSchema, "  ", "  ")
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&r.said, "  %s\n\n", b)
		}
		if len(reads) > 0 {
			t.Errorf("there is no %v", reads)
		}
		c.call("list_agents", `{}`)
		r.golden("tools")
	})
}

// What a session wrote can neither drive a terminal nor flood its reader.
func TestAnswersAreSafeAndBounded(t *testing.T) {
	inRoom(t, func(t *testing.T, r *room) {
		c := r.connect("codex")
		defer c.leave()
		made, _ := c.call("start_session", `{"agent":"loud","prompt":"\u001b[31mred\u0007","name":"loud-1"}`)
		id, _ := stint.ParseID(made["id"].(string))
		r.run(id)
		for _, name := range []string{"show_session", "read_log"} {
			doc, text := c.call(name, `{"session":"loud-1"}`)
			raw, err := json.Marshal(doc)
			if err != nil {
				t.Fatal(err)
			}
			var harmful []rune
			walk(doc, func(s string) {
				for _, ch := range s + text {
					if ch < 0x20 && ch != '\n' && ch != '\t' || ch == 0x7f || ch == 0x202e {
						harmful = append(harmful, ch)
					}
				}
			})
			if harmful != nil {
				t.Errorf("%s passes on %q", name, harmful[:1])
			}
			if !strings.Contains(text, `\x1b[31mred\x07`) || !strings.Contains(text, `bell\x07 and \u202eback`) {
				t.Errorf("%s does not show what was there:\n%s", name, text)
			}
			if len(raw) > 20_000 || len(text) > 20_000 {
				t.Errorf("%s answers %d and %d bytes of a result of 20,000", name, len(raw), len(text))
			}
		}
		doc, _ := c.call("read_log", `{"session":"loud-1","kinds":["tool"]}`)
		items := doc["items"].([]any)
		body := items[len(items)-1].(map[string]any)["body"].(map[string]any)
		if body["cut"] != true || body["size"].(float64) < 20_000 || len(body["text"].(string)) > 4096 {
			t.Errorf("a body of 20,000 bytes is not marked as cut: size %v, cut %v", body["size"], body["cut"])
		}
		r.golden("loud")
	})
}

func walk(v any, fn func(string)) {
	switch v := v.(type) {
	case string:
		fn(v)
	case []any:
		for _, e := range v {
			walk(e, fn)
		}
	case map[string]any:
		for k, e := range v {
			fn(k)
			walk(e, fn)
		}
	}
}

// What is asked wrongly is refused in a way that the asker can mend.
func TestBadInput(t *testing.T) {
	inRoom(t, func(t *testing.T, r *room) {
		c := r.connect("codex")
		defer c.leave()
		for _, name := range []string{"chat-a", "chat-a", "chat-b"} {
			<-time.After(time.Second) // so that they have an order
			c.call("start_session", fmt.Sprintf(`{"agent":"chat","prompt":"x","name":%q}`, name))
		}
		r.said.Reset()
		c.fails(stint.NotFound, "chat-b", "show_session", `{"session":"chat-x"}`)
		c.fails(stint.Invalid, "chat-a", "show_session", `{"session":"chat-a"}`)
		c.fails(stint.Invalid, "got number, want string", "show_session", `{"session":7}`)
		c.fails(stint.Invalid, "session", "show_session", `{}`)
		c.fails(stint.Invalid, "sesion", "show_session", `{"sesion":"chat-b"}`)
		c.fails(stint.Invalid, "", "show_session", `{"session":""}`)
		c.fails(stint.NotFound, "", "show_session", `{"session":"\u0000\u001b[2J"}`)
		c.fails(stint.Invalid, "100", "list_sessions", `{"limit":1000000000000}`)
		c.fails(stint.Invalid, "", "list_sessions", `{"limit":-1}`)
		c.fails(stint.Invalid, "integer", "list_sessions", `{"limit":1.5}`)
		c.fails(stint.Invalid, "no cursor", "list_sessions", `{"cursor":"'; drop table"}`)
		c.fails(stint.Invalid, "", "list_sessions", `{"status":"asleep"}`)
		c.fails(stint.Invalid, "got string, want integer", "read_log", `{"session":"chat-b","after":"1"}`)
		c.fails(stint.Invalid, "", "read_log", `{"session":"chat-b","kinds":["thoughts"]}`)
		c.fails(stint.NotFound, "it has chat, loud, pay", "start_session", `{"agent":"nobody","prompt":""}`)
		c.fails(stint.Invalid, "cannot be a session's name", "start_session", `{"agent":"chat","prompt":"","name":"../x"}`)
		c.fails(stint.Invalid, "", "start_session", `{"agent":"chat","prompt":["x"]}`)
		c.fails(stint.Invalid, "", "send_message", `{"session":"chat-b","text":""}`)
		c.fails(stint.Invalid, "", "send_message", `["chat-b"]`)
		r.golden("badinput")

		c.fails(stint.Limit, "keep large content in a file", "start_session", `{"agent":"chat","prompt":"`+strings.Repeat("x", 1<<20+1)+`"}`)
		c.fails(stint.Limit, "keep large content in a file", "send_message", `{"session":"chat-b","text":"`+strings.Repeat("x", 1<<20+1)+`"}`)
		if _, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "approve"}); err == nil {
			t.Error("a tool that is not there was called")
		}
		if doc, _ := c.call("list_sessions", `{"status":"all"}`); len(doc["items"].([]any)) != 3 {
			t.Errorf("after all that there are not 3 sessions: %v", doc["items"])
		}
	})
}

// A prompt of a megabyte comes through whole.
func TestLargePrompt(t *testing.T) {
	inRoom(t, func(t *testing.T, r *room) {
		c := r.connect("codex")
		defer c.leave()
		prompt := strings.Repeat("é\x01", 1<<20/3)
		args, _ := json.Marshal(map[string]string{"agent": "chat", "prompt": prompt})
		made, _ := c.call("start_session", string(args))
		id, _ := stint.ParseID(made["id"].(string))
		es, err := r.store.Entries(t.Context(), stint.Range{Session: id})
		if err != nil {
			t.Fatal(err)
		}
		body, err := r.store.Blob(t.Context(), id, es[0].Blob)
		if err != nil || string(body) != prompt {
			t.Errorf("%d bytes came through of %d: %v", len(body), len(prompt), err)
		}
	})
}

// The same key leads to the same session, whoever asks; with other content it is refused.
// Two clients at once get answers of their own.
func TestTwoClients(t *testing.T) {
	inRoom(t, func(t *testing.T, r *room) {
		const rounds = 20
		var wg sync.WaitGroup
		var mu sync.Mutex
		ids, anew := map[string]map[string]bool{}, map[string]int{}
		for _, name := range []string{"codex", "claude-code"} {
			c := r.connect(name)
			defer c.leave()
			wg.Go(func() {
				for i := range rounds {
					key := fmt.Sprintf("k%d", i)
					res, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "start_session", Arguments: map[string]any{"agent": "chat", "prompt": key, "dedupe": key, "name": key}})
					if err != nil || res.IsError {
						t.Errorf("%s %s: %v %v", name, key, err, res)
						continue
					}
					doc := res.StructuredContent.(map[string]any)
					mu.Lock()
					if ids[key] == nil {
						ids[key] = map[string]bool{}
					}
					ids[key][doc["id"].(string)] = true
					if doc["found"] == false {
						anew[key]++
					}
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		if len(ids) != rounds {
			t.Errorf("%d keys led to sessions, want %d", len(ids), rounds)
		}
		for key, of := range ids {
			if len(of) != 1 || anew[key] != 1 {
				t.Errorf("the key %s led to %d sessions, and was new %d times", key, len(of), anew[key])
			}
		}
		c := r.connect("third")
		defer c.leave()
		c.fails(stint.Conflict, "", "start_session", `{"agent":"chat","prompt":"something else","dedupe":"k3"}`)
		// The list goes on where a page ended, and ends.
		seen, cursor := 0, ""
		for range 10 {
			args, _ := json.Marshal(map[string]any{"limit": 7, "cursor": cursor})
			if cursor == "" {
				args = []byte(`{"limit":7}`)
			}
			doc, _ := c.call("list_sessions", string(args))
			seen += len(doc["items"].([]any))
			next, more := doc["cursor"].(string)
			if cursor = next; !more {
				break
			}
		}
		if seen != rounds || cursor != "" {
			t.Errorf("paging saw %d of %d sessions and ended at %q", seen, rounds, cursor)
		}
	})
}

// A message under the same id is sent once.
func TestSendOnce(t *testing.T) {
	inRoom(t, func(t *testing.T, r *room) {
		c := r.connect("codex")
		defer c.leave()
		made, _ := c.call("start_session", `{"agent":"chat","prompt":"x","name":"chat-1"}`)
		id, _ := stint.ParseID(made["id"].(string))
		for range 3 {
			c.call("send_message", `{"session":"chat-1","text":"hello","id":"m1"}`)
		}
		c.fails(stint.Conflict, "", "send_message", `{"session":"chat-1","text":"other words","id":"m1"}`)
		for range 2 {
			c.call("send_message", `{"session":"chat-1","text":"hello"}`)
		}
		ms, err := r.store.Inbox(t.Context(), id)
		if err != nil || len(ms) != 3 {
			t.Errorf("%d messages lie in the inbox, want 3: %v", len(ms), err)
		}
		for _, m := range ms {
			if m.From != "mcp:ana/codex" || m.Kind != stint.Prompt {
				t.Errorf("a message is %s from %s", m.Kind, m.From)
			}
		}
	})
}

// A log is read in pages, from either end, and no entry is missed or read twice.
func TestLogPages(t *testing.T) {
	inRoom(t, func(t *testing.T, r *room) {
		c := r.connect("codex")
		defer c.leave()
		made, _ := c.call("start_session", `{"agent":"chat","prompt":"x","name":"chat-1"}`)
		id, _ := stint.ParseID(made["id"].(string))
		for range 5 {
			r.run(id)
			c.call("send_message", `{"session":"chat-1","text":"go on"}`)
		}
		row, err := r.store.Session(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		want, after, more := stint.Seq(1), 0.0, true
		for more {
			doc, text := c.call("read_log", fmt.Sprintf(`{"session":"chat-1","after":%v,"limit":4}`, after))
			for _, it := range doc["items"].([]any) {
				if seq := stint.Seq(it.(map[string]any)["seq"].(float64)); seq != want {
					t.Fatalf("entry %d comes where %d should", seq, want)
				}
				want++
			}
			if !strings.Contains(text, fmt.Sprintf("cursor %d\n", want-1)) {
				t.Errorf("the words do not name the cursor %d:\n%s", want-1, text)
			}
			after, more = doc["cursor"].(float64), doc["more"].(bool)
		}
		if want-1 != row.Session.Head {
			t.Errorf("the pages ended at %d, the journal at %d", want-1, row.Session.Head)
		}
		doc, _ := c.call("read_log", `{"session":"chat-1","limit":3}`)
		items := doc["items"].([]any)
		if len(items) != 3 || doc["more"] != true || items[2].(map[string]any)["seq"].(float64) != float64(row.Session.Head) {
			t.Errorf("the newest three are %v", items)
		}
		doc, text := c.call("read_log", fmt.Sprintf(`{"session":"chat-1","after":%d}`, row.Session.Head))
		if len(doc["items"].([]any)) != 0 || doc["cursor"] != nil || doc["more"] != false || doc["status"] != "waiting" && doc["status"] != "pending" || !strings.Contains(text, "no entries") {
			t.Errorf("behind the end there is %v\n%s", doc, text)
		}
	})
}

// Sessions and their logs are resources, by any address that a tool takes.
func TestResources(t *testing.T) {
	inRoom(t, func(t *testing.T, r *room) {
		c := r.connect("codex")
		defer c.leave()
		c.call("start_session", `{"agent":"chat","prompt":"x","name":"chat-1"}`)
		for uri, want := range map[string]string{
			"stint://session/chat-1":      `"schema":"stint.session/1"`,
			"stint://session/%40last":     `"name":"chat-1"`,
			"stint://session/chat-1/log":  "created by mcp:ana/codex",
			"stint://session/%40last/log": "chat-1 (",
		} {
			res, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
			if err != nil || len(res.Contents) != 1 || !strings.Contains(res.Contents[0].Text, want) {
				t.Errorf("%s: %v %+v", uri, err, res)
			}
		}
		for _, uri := range []string{"stint://session/nobody", "stint://session/%ff", "stint://session/", "stint://session/chat-1/state", "file:///etc/passwd", "stint://session/..%2f..%2fetc"} {
			if res, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri}); err == nil || !strings.Contains(err.Error(), "not found") {
				t.Errorf("%s: %v %+v", uri, err, res)
			}
		}
	})
}

// A message to the journal of the server would be an order to it, such as to make a token;
// and what is in it is what people did. An agent gets at neither.
func TestTheServersJournalIsNoSession(t *testing.T) {
	inRoom(t, func(t *testing.T, r *room) {
		id, err := engine.SystemJournal(t.Context(), r.store)
		if err != nil {
			t.Fatal(err)
		}
		c := r.connect("codex")
		defer c.leave()
		c.fails(stint.Denied, "journal of the server", "send_message", fmt.Sprintf(`{"session":%q,"text":"{\"verb\":\"token.create\"}"}`, id))
		for _, tool := range []string{"show_session", "read_log", "list_approvals"} {
			c.fails(stint.Denied, "journal of the server", tool, fmt.Sprintf(`{"session":%q}`, id))
		}
		for _, end := range []string{"", "/log"} {
			if _, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "stint://session/" + id.String() + end}); err == nil {
				t.Errorf("it is read as a resource, with %q behind", end)
			}
		}
		if in, err := r.store.Inbox(t.Context(), id); err != nil || len(in) > 0 {
			t.Errorf("%d messages came through, %v", len(in), err)
		}
	})
}
