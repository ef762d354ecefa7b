package trigger_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/hook"
	"github.com/stint-dev/stint/internal/trigger"
	"github.com/stint-dev/stint/store/mem"
	"github.com/stint-dev/stint/store/sqlite"
)

// A delivery can be delivered again, long after it was signed: each time it is a delivery
// of its own, whose id says whose repeat it is.
func TestRedeliver(t *testing.T) {
	onEach(t, func(t *testing.T, d *desk) {
		d.hooks(hook.Definition{Scheme: hook.GitHub})
		const body = `{"n":1,  "é":"\u00e9"}`
		first := d.want(202, "h", body, gitHub("g-1", body))
		ids := map[stint.ID]bool{first.Delivered.Session: true}
		id := "g-1"
		for range 3 { // each is a repeat of the one before
			again, err := d.recv.Redeliver(t.Context(), "h", id, "", "human:ben")
			if err != nil {
				t.Fatal(err)
			}
			if again.Result != "created" || again.Repeated || !strings.HasPrefix(again.ID, "g-1~") || again.Repeats != "g-1" || again.By != "human:ben" || again.Event != "push" {
				t.Errorf("got %+v", again)
			}
			ids[again.Session] = true
			got, err := trigger.Delivery(t.Context(), d.store, "h", again.ID)
			if err != nil || string(got.Body) != body || got.Session != again.Session || got.By != "human:ben" {
				t.Errorf("%v: got %+v with %s", err, got, got.Body)
			}
			id = again.ID
		}
		d.is("sessions", len(ids), 4)
		d.is("in the store", len(d.sessions()), 4)
		d.is("ledger", d.ledger("h"), "created created created created")
		es, err := d.store.Entries(t.Context(), stint.Range{Session: d.sessions()[0].Session.ID, Limit: 1})
		if err != nil || es[0].Actor != "human:ben" || string(es[0].Body) != body {
			t.Errorf("%v: by %s, %s", err, es[0].Actor, es[0].Body)
		}
		d.want(200, "h", body, gitHub("g-1", body)) // its sender still gets the first one
		for _, c := range []struct{ hook, id string }{{"h", "g-2"}, {"nobody", "g-1"}} {
			if _, err := d.recv.Redeliver(t.Context(), c.hook, c.id, "", "human:ben"); stint.CodeOf(err) != stint.NotFound {
				t.Errorf("%v: %v", c, err)
			}
		}
	})
}

// What was ignored can be delivered again once the condition was mended, with the headers
// that the condition looks at; what has a key goes where its key says.
func TestRedeliverMended(t *testing.T) {
	onEach(t, func(t *testing.T, d *desk) {
		def := hook.Definition{Scheme: hook.Bearer, When: `headers["x-kind"] == "wrong"`, Key: "query.key"}
		target := d.target(def)
		target.Secrets = func() ([]string, error) { return []string{"s3cr3t"}, nil }
		d.recv.Set([]trigger.Target{target})
		d.want(200, "h?key=k", `{"n":1}`, map[string]string{"Authorization": "Bearer s3cr3t", "X-Kind": "right"})
		lines, err := trigger.Deliveries(t.Context(), d.store, "h", trigger.Delivered{}, 10)
		if err != nil || len(lines) != 1 {
			t.Fatalf("%v %v", lines, err)
		}
		again, err := d.recv.Redeliver(t.Context(), "h", lines[0].ID, "", "human:ben")
		if err != nil || again.Result != "ignored" || again.Repeats != lines[0].ID {
			t.Errorf("before: %+v %v", again, err)
		}
		def.When = `headers["x-kind"] == "right"`
		d.hooks(def)
		for i, want := range []trigger.Result{trigger.Created, trigger.Messaged} {
			again, err := d.recv.Redeliver(t.Context(), "h", lines[0].ID, "", "human:ben")
			if err != nil || again.Result != want || again.Key != "k" {
				t.Errorf("%d: %+v %v", i, again, err)
			}
		}
		d.is("ledger", d.ledger("h"), "ignored ignored created messaged")
		d.is("sessions", len(d.sessions()), 1)
	})
}

// A body that was too long to be kept can be looked up and not delivered again.
func TestRedeliverTooLong(t *testing.T) {
	d := newDesk(t, mem.New())
	d.hooks(hook.Definition{When: "body.n > 0", Limits: hook.Limits{Body: 2 << 20}})
	long := `{"n":1,"x":"` + strings.Repeat("x", 1<<20) + `"}`
	a := d.want(202, "h", long, nil)
	was, err := trigger.Delivery(t.Context(), d.store, "h", a.ID)
	if err != nil || was.Body != nil || was.Bytes != len(long) {
		t.Errorf("%v: %d of %d bytes", err, len(was.Body), was.Bytes)
	}
	if _, err := d.recv.Redeliver(t.Context(), "h", a.ID, "", "human:ben"); stint.CodeOf(err) != stint.NotFound || !strings.Contains(err.Error(), "too long") {
		t.Errorf("got %v", err)
	}
}

// Nothing by which a sender proves itself gets into the store.
func TestSecretsAreNotKept(t *testing.T) {
	dir := t.TempDir()
	s, err := sqlite.Open(t.Context(), sqlite.Options{Path: filepath.Join(dir, "stint.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	d := &desk{TB: t, store: s}
	d.open()
	defer func() { d.close() }()
	hidden := []string{"s3cr3t-of-headers", "s3cr3t-of-a-cookie", "s3cr3t-of-the-query", "s3cr3t-that-nobody-names"}
	d.hooks(hook.Definition{Scheme: hook.GitHub, When: `headers["x-gitlab-token"] == "s3cr3t-of-headers" && query.token != "" && body.n > 0`})
	for n := range 2 {
		body := fmt.Sprintf(`{"n":%d}`, n)
		headers := gitHub(fmt.Sprint(n), body)
		hidden = append(hidden, strings.TrimPrefix(headers["X-Hub-Signature-256"], "sha256="))
		headers["X-Gitlab-Token"], headers["Cookie"], headers["X-Any"] = hidden[0], hidden[1], hidden[3]
		if a := d.send("h?token="+hidden[2], body, headers); a.Status > 202 {
			t.Fatal(a.Text)
		}
	}
	d.is("ledger", d.ledger("h"), "ignored created")
	files, err := filepath.Glob(filepath.Join(dir, "stint.db*")) // the log of what was committed is one of them
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			continue // a folder
		}
		found = found || bytes.Contains(b, []byte(`"x-github-event":"push"`))
		for _, text := range hidden {
			if bytes.Contains(b, []byte(text)) {
				t.Errorf("%s is in %s", text, filepath.Base(file))
			}
		}
	}
	if !found {
		t.Error("the headers that matter are not kept")
	}
}

// A dry run says what would become of a request and writes nothing, even to a store that
// is full.
func TestTrial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &jammed{Store: mem.New()}
		d := newDesk(t, store)
		def := hook.Definition{Name: "h", Scheme: hook.Standard, When: "body.n > 0", Key: `body.key ?? ""`, Order: "body.n", Late: hook.DropLate,
			Input: "see ${ body.n }", Session: `"case " + string(body.n)`, Labels: map[string]string{"n": "${ body.n }"}, Limits: hook.Limits{Concurrency: 3}}
		replace, interrupt, reject := def, def, def
		replace.Name, replace.Busy, replace.Late = "replace", hook.Replace, hook.KeepLate
		interrupt.Name, interrupt.Busy = "interrupt", hook.Interrupt
		reject.Name, reject.Busy = "reject", hook.Reject
		d.hooks(def, replace, interrupt, reject)
		open := map[string]stint.ID{}
		for _, name := range []string{"h", "replace", "interrupt", "reject"} {
			body := `{"n":5,"key":"k"}`
			open[name] = d.want(202, name, body, standard(t, "first", body, time.Now())).Delivered.Session
		}
		store.full.Store(true)
		for _, c := range []struct {
			what, hook, id, body string
			want                 trigger.Trial
			code                 stint.Code
		}{
			{what: "new", hook: "h", id: "x", body: `{"n":1}`, want: trigger.Trial{Result: trigger.Created, ID: "x", Input: "see 1", Name: "case-1", Labels: map[string]string{"n": "1", "team": "core"}}},
			{what: "ignored", hook: "h", id: "x", body: `{"n":0}`, want: trigger.Trial{Decision: hook.Ignore, Result: trigger.Ignored, Reason: "when is false for this delivery"}},
			{what: "a message", hook: "h", id: "x", body: `{"n":6,"key":"k"}`, want: trigger.Trial{Result: trigger.Messaged, ID: "x", Key: "k", Input: "see 6", Session: open["h"]}},
			{what: "late", hook: "h", id: "x", body: `{"n":4,"key":"k"}`, want: trigger.Trial{Result: trigger.Dropped, ID: "x", Key: "k", Input: "see 4", Reason: "a newer event of its key was there before"}},
			{what: "a repeat", hook: "h", id: "first", body: `{"n":5,"key":"k"}`, want: trigger.Trial{Result: trigger.Created, ID: "first", Key: "k", Input: "see 5", Session: open["h"], Repeated: true}},
			{what: "another with its id", hook: "h", id: "first", body: `{"n":7}`, code: stint.Conflict},
			{what: "a replacement", hook: "replace", id: "x", body: `{"n":6,"key":"k"}`,
				want: trigger.Trial{Result: trigger.Created, ID: "x", Key: "k", Input: "see 6", Name: "case-6", Labels: map[string]string{"n": "6", "team": "core"}, Replaces: open["replace"]}},
			{what: "an interruption", hook: "interrupt", id: "x", body: `{"n":6,"key":"k"}`, want: trigger.Trial{Result: trigger.Messaged, ID: "x", Key: "k", Input: "see 6", Session: open["interrupt"], Interrupt: true}},
			{what: "one too many", hook: "reject", id: "x", body: `{"n":6,"key":"k"}`, code: stint.Limit},
			{what: "no such hook", hook: "nobody", body: `{}`, code: stint.NotFound},
			{what: "no JSON", hook: "h", body: `{`, code: stint.Invalid},
		} {
			got, err := d.recv.Test(t.Context(), c.hook, hook.Request{Headers: map[string][]string{"webhook-id": {c.id}}, Body: []byte(c.body)})
			if stint.CodeOf(err) != c.code {
				t.Errorf("%s: %v", c.what, err)
			}
			if c.code != "" {
				continue
			}
			if c.want.Decision == "" {
				c.want.Decision = hook.Accept
			}
			got.Order = nil
			d.is(c.what, fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", c.want))
		}
		store.full.Store(false)
		d.is("sessions", len(d.sessions()), 4)
		d.is("ledger", d.ledger("h"), "created")
	})
}
