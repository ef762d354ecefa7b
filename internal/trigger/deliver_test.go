package trigger_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/internal/hook"
	"github.com/stint-dev/stint/internal/trigger"
	"github.com/stint-dev/stint/journal"
	"github.com/stint-dev/stint/store/mem"
)

// A delivery begins one session, which has what the hook says and knows where it is from;
// its line has the body byte for byte.
func TestDelivery(t *testing.T) {
	onEach(t, func(t *testing.T, d *desk) {
		d.hooks(hook.Definition{Name: "issues", Scheme: hook.GitHub, Input: "look at ${ body.n }", Session: "body.title", Labels: map[string]string{"n": "${ body.n }"}})
		body := "{\"n\": 9007199254740993,  \"title\": \"Caf\u00e9 & <more>\", \"n2\": 1E3}\n"
		a := d.want(202, "issues", body, gitHub("g-1", body))
		d.is("result", a.Result, "created")
		rows := d.sessions()
		if len(rows) != 1 || rows[0].Session.ID != a.Delivered.Session {
			t.Fatalf("there are %d sessions", len(rows))
		}
		s := rows[0].Session
		d.is("name", s.Name, "caf-more")
		d.is("labels", s.Labels, "map[n:9007199254740993 team:core]")
		d.is("trigger", s.Trigger.Kind+" "+s.Trigger.Ref, "hook issues")
		es, err := d.store.Entries(t.Context(), stint.Range{Session: s.ID})
		if err != nil || len(es) != 1 {
			t.Fatalf("%d entries, %v", len(es), err)
		}
		d.is("prompt", string(es[0].Body), "look at 9007199254740993")
		d.is("actor", es[0].Actor, "hook:issues")
		keys, err := d.store.Keys(t.Context(), stint.Key{Scope: "delivery", Name: "issues/g-1"}, 1)
		if err != nil || len(keys) != 1 {
			t.Fatalf("%d lines, %v", len(keys), err)
		}
		d.is("body", string(keys[0].Body), body)
		d.is("ledger", d.ledger("issues"), "created")
	})
}

// held keeps what is created back until it is let go.
type held struct {
	*mem.Store

	gate chan error // what to say before: nil goes on
}

func (h *held) Create(ctx context.Context, b stint.Batch, c stint.Claim) (stint.Lease, error) {
	if b.Session.Trigger.Kind == "hook" {
		select {
		case err := <-h.gate:
			if err != nil {
				return stint.Lease{}, err
			}
		case <-ctx.Done():
			return stint.Lease{}, stint.Unavailable.Errorf("create", "%v", ctx.Err())
		}
	}
	return h.Store.Create(ctx, b, c)
}

// Nobody is told 202 before the session is durable, and a sender that hangs up meanwhile
// takes nothing back.
func TestAnsweredOnceDurable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &held{mem.New(), make(chan error)}
		d := newDesk(t, store)
		d.hooks(hook.Definition{})
		answers := make(chan answered, 1)
		go func() { answers <- d.send("h", `{"n":1}`, nil) }()
		synctest.Wait()
		if len(answers) > 0 || len(d.sessions()) > 0 {
			t.Fatal("it is answered, or there is a session, before the commit")
		}
		store.gate <- nil
		if a := <-answers; a.Status != 202 || len(d.sessions()) != 1 {
			t.Errorf("got %d with %d sessions", a.Status, len(d.sessions()))
		}
	})
}

// The same delivery never begins a second session, whatever came between.
func TestRepeats(t *testing.T) {
	const one, two = `{"n":1}`, `{"n":2}`
	onEach(t, func(t *testing.T, d *desk) {
		for _, c := range []struct {
			name    string
			def     hook.Definition
			headers func(id, body string) map[string]string
			sameID  int // with another body
			otherID int // with the same body
		}{
			{"an id that is signed", hook.Definition{Scheme: hook.Standard}, func(id, body string) map[string]string { return standard(t, id, body, time.Now()) }, 409, 202},
			{"an id that is not", hook.Definition{Scheme: hook.GitHub}, gitHub, 409, 200},
			{"an id from a header", hook.Definition{Scheme: hook.GitHub, Dedupe: `headers["x-github-delivery"]`}, gitHub, 409, 200},
			{"an id from the body", hook.Definition{Scheme: hook.GitHub, Dedupe: "body.n"}, gitHub, 202, 200},
			{"an id that nobody signs", hook.Definition{Dedupe: `headers["x-id"]`}, func(id, _ string) map[string]string { return map[string]string{"X-Id": id} }, 409, 202},
			{"no id", hook.Definition{}, func(string, string) map[string]string { return nil }, 202, 200},
		} {
			c.def.Name = strings.ReplaceAll(c.name, " ", "-")
			d.hooks(c.def)
			first := d.want(202, c.def.Name, one, c.headers("id-1", one))
			for range 2 {
				again := d.want(200, c.def.Name, one, c.headers("id-1", one))
				if !again.Repeated || again.Delivered.Session != first.Delivered.Session || again.Result != "created" {
					t.Errorf("%s, again: got %s", c.name, again.Text)
				}
				d.close()
				d.open()
				d.hooks(c.def)
			}
			d.is(c.name+", other body", d.send(c.def.Name, two, c.headers("id-1", two)).Status, c.sameID)
			other := d.send(c.def.Name, one, c.headers("id-2", one))
			d.is(c.name+", other id", other.Status, c.otherID)
			if c.otherID == 200 && other.Delivered.Session != first.Delivered.Session {
				t.Errorf("%s, other id: %s", c.name, other.Text)
			}
		}
	})
}

// Deliveries of one key go to one open session, and the next session follows one that
// ended.
func TestRoutes(t *testing.T) {
	onEach(t, func(t *testing.T, d *desk) {
		d.hooks(hook.Definition{Key: "body.key", Input: "${ body.text }"})
		say := func(key, text string) answered {
			t.Helper()
			return d.want(202, "h", fmt.Sprintf(`{"key":%s,"text":%q}`, key, text), nil)
		}
		first := say(`"x"`, "1")
		d.is("result", first.Result, "created")
		second := say(`"x"`, "2")
		d.is("result", second.Result, "messaged")
		d.is("session", second.Delivered.Session, first.Delivered.Session)
		if other := say(`"y"`, "1"); other.Delivered.Session == first.Delivered.Session {
			t.Error("two keys have one session")
		}
		if a, b := say(`""`, "1"), say(`""`, "2"); a.Delivered.Session == b.Delivered.Session || b.Result != "created" {
			t.Error("deliveries without a key have one session")
		}
		d.is("told", d.heard(first.Delivered.Session), "1 2")
		d.is("session", say(`"x"`, "end").Delivered.Session, first.Delivered.Session)
		d.run(first.Delivered.Session)
		third := say(`"x"`, "3")
		if third.Result != "created" || third.Delivered.Session == first.Delivered.Session {
			t.Errorf("after the end: %s", third.Text)
		}
		d.is("session", say(`"x"`, "4").Delivered.Session, third.Delivered.Session)
	})
}

// Of many deliveries of one key at once one begins the session, and the others are its
// messages; many of one id are one.
func TestRace(t *testing.T) {
	const many = 64
	keyed := func(i int) string { return fmt.Sprintf(`{"key":"k","n":%d}`, i) }
	onEach(t, func(t *testing.T, d *desk) {
		for _, c := range []struct {
			name     string
			body     func(i int) string
			busy     hook.Busy
			created  int
			messaged int
			repeated int
		}{
			{"one key", keyed, hook.Queue, 1, many - 1, 0},
			{"one key, replaced", keyed, hook.Replace, many, 0, 0},
			{"one delivery", func(int) string { return keyed(1) }, hook.Queue, 1, 0, many - 1},
			{"one delivery without a key", func(int) string { return "{}" }, hook.Queue, 1, 0, many - 1},
		} {
			name := strings.NewReplacer(" ", "-", ",", "").Replace(c.name)
			d.hooks(hook.Definition{Name: name, Key: "body.key", Busy: c.busy})
			answers, got := make(chan answered, many), map[string]int{}
			var wg sync.WaitGroup
			for i := range many {
				wg.Go(func() { answers <- d.send(name, c.body(i), nil) })
			}
			wg.Wait()
			close(answers)
			sessions := map[stint.ID]bool{}
			for a := range answers {
				what := string(a.Result)
				if a.Repeated {
					what = "repeated"
				}
				if want := map[string]int{"created": 202, "messaged": 202, "repeated": 200}[what]; a.Status != want {
					t.Errorf("%s: %d %s", c.name, a.Status, a.Text)
				}
				got[what]++
				sessions[a.Delivered.Session] = true
			}
			if got["created"] != c.created || got["messaged"] != c.messaged || got["repeated"] != c.repeated || len(sessions) != c.created {
				t.Errorf("%s: %v, %d sessions", c.name, got, len(sessions))
			}
			open := 0
			for id := range sessions {
				row, err := d.store.Session(t.Context(), id)
				if err != nil {
					t.Fatal(err)
				}
				if row.Session.Status.Ended() {
					continue
				}
				open++
				d.is(c.name+": messages", row.Unread, c.messaged)
			}
			d.is(c.name+": open sessions", open, 1)
		}
	})
}

// Whatever the clock said when the newest session of a key began, the one that follows
// follows it.
func TestRouteOutlivesTheClock(t *testing.T) {
	onEach(t, func(t *testing.T, d *desk) {
		d.hooks(hook.Definition{Key: `"k"`})
		ahead := stint.Key{Scope: "route", Source: "h/k", Name: "h/k/" + stint.ID{}.String(), At: time.Now().Add(time.Hour), Expires: time.Now().Add(1000 * time.Hour)}
		was, err := d.e.Start(t.Context(), engine.Request{Agent: listener(), Input: []byte("end"), Keys: []stint.Key{ahead}})
		if err != nil {
			t.Fatal(err)
		}
		d.run(was.ID)
		for i := range 3 {
			a := d.want(202, "h", fmt.Sprintf(`{"text":"end","n":%d}`, i), nil)
			d.is("result", a.Result, "created")
			d.run(a.Delivered.Session)
		}
	})
}

// What becomes of a delivery while the session of its key is at work is as the hook says.
func TestBusy(t *testing.T) {
	onEach(t, func(t *testing.T, d *desk) {
		for _, busy := range []hook.Busy{hook.Queue, hook.Reject, hook.Interrupt, hook.Replace} {
			name := string(busy)
			d.hooks(hook.Definition{Name: name, Key: `"k"`, Busy: busy, Input: "${ body.n }"})
			n := 0
			say := func() answered {
				n++
				return d.send(name, fmt.Sprintf(`{"n":%d}`, n), nil)
			}
			first := say()
			second := say()
			s := first.Delivered.Session
			switch busy {
			case hook.Queue:
				d.is("queue", second.Result, "messaged")
				d.is("told", d.heard(s), "1 2")
			case hook.Reject:
				d.is("reject", second.Status, 429)
				d.is("come again", second.Header.Get("Retry-After"), "10")
				d.is("nothing is written", d.ledger(name), "created")
				d.run(s) // now it waits for a message
				d.is("idle", say().Result, "messaged")
				d.is("at work again", say().Status, 429)
				d.is("told", d.heard(s), "1 3")
			case hook.Interrupt:
				d.is("interrupt", second.Result, "messaged")
				in, err := d.store.Inbox(t.Context(), s)
				if err != nil || len(in) != 2 || in[0].Kind != stint.Interrupt || in[1].Kind != stint.Prompt {
					t.Fatalf("%v %v", in, err)
				}
				d.is("told", d.heard(s), "1 2")
				d.is("idle", say().Result, "messaged")
				if in, err = d.store.Inbox(t.Context(), s); err != nil || len(in) != 1 {
					t.Errorf("who waits for a message is interrupted: %v %v", in, err)
				}
			case hook.Replace:
				if second.Result != "created" || second.Delivered.Session == s {
					t.Errorf("replace: %s", second.Text)
				}
				row, err := d.store.Session(t.Context(), s)
				if err != nil {
					t.Fatal(err)
				}
				d.is("the one before", row.Session.Status, stint.Canceled)
				d.is("why", strings.Contains(row.Session.Reason, "hook replace replaces it"), true)
			}
		}
	})
}

// An event that is older than one of its key before it is kept, or dropped, as the hook
// says, and known again in either case.
func TestLate(t *testing.T) {
	onEach(t, func(t *testing.T, d *desk) {
		for _, late := range []hook.Late{hook.KeepLate, hook.DropLate} {
			name := string(late)
			d.hooks(hook.Definition{Name: name, Key: "body.key", Order: "body.at", Late: late, Input: "${ body.at }"})
			say := func(key string, at any) answered {
				t.Helper()
				a := d.send(name, fmt.Sprintf(`{"key":%q,"at":%v}`, key, at), nil)
				if a.Status > 202 {
					t.Fatal(a.Text)
				}
				return a
			}
			first := say("k", 2)
			got := fmt.Sprint(say("k", 1).Result, " ", say("k", 3).Result, " ", say("k", "3.0").Repeated, " ", say("k", "null").Result, " ", say("other", 1).Result, " ", say("k", 2).Repeated)
			again := say("k", 1)
			want, ledger := "messaged messaged false messaged created true", "created messaged messaged messaged messaged created"
			if late == hook.DropLate {
				want, ledger = "dropped messaged false messaged created true", "created dropped messaged messaged messaged created"
			}
			d.is(name, got, want)
			d.is("ledger", d.ledger(name), ledger)
			var times []string
			newest, err := trigger.Deliveries(t.Context(), d.store, name, trigger.Delivered{}, 100)
			if err != nil {
				t.Fatal(err)
			}
			for _, line := range newest {
				if times = append(times, "none"); line.Order != nil {
					times[len(times)-1] = fmt.Sprint(*line.Order)
				}
			}
			d.is("the events' own times", strings.Join(times, " "), "1 none 3 3 1 2")
			if !again.Repeated || again.Status != 200 {
				t.Errorf("again: %d %s", again.Status, again.Text)
			}
			d.is("told", d.heard(first.Delivered.Session), map[hook.Late]string{hook.KeepLate: "2 1 3 3 null", hook.DropLate: "2 3 3 null"}[late])
			say("far", int64(1<<62))
			if a := say("far", 5); late == hook.DropLate && a.Result != "dropped" {
				t.Errorf("after the greatest: %s", a.Text)
			}
			say("", 9)
			if a := say("", 8); a.Result != "created" {
				t.Errorf("without a key: %s", a.Text)
			}
		}
	})
}

// What a hook's condition leaves out is recorded, answered, and not remembered.
func TestIgnored(t *testing.T) {
	onEach(t, func(t *testing.T, d *desk) {
		d.hooks(hook.Definition{Scheme: hook.GitHub, When: `body.n > 1`})
		for range 2 {
			a := d.want(200, "h", `{"n":1}`, gitHub("g-1", `{"n":1}`))
			if a.Result != "ignored" || a.Repeated || a.Reason == "" || a.Event != "push" || !a.Delivered.Session.IsZero() {
				t.Errorf("got %s", a.Text)
			}
		}
		d.is("sessions", len(d.sessions()), 0)
		d.is("ledger", d.ledger("h"), "ignored ignored")
		d.hooks(hook.Definition{Scheme: hook.GitHub})
		d.want(202, "h", `{"n":1}`, gitHub("g-1", `{"n":1}`))
		id, err := engine.SystemJournal(t.Context(), d.store)
		if err != nil {
			t.Fatal(err)
		}
		es, err := d.store.Entries(t.Context(), stint.Range{Session: id, Kinds: []stint.Kind{stint.SystemRecorded}})
		if err != nil || len(es) != 2 {
			t.Fatalf("%d entries, %v", len(es), err)
		}
		note, err := journal.Decode[journal.Recorded](&es[1])
		if err != nil {
			t.Fatal(err)
		}
		d.is("note", note.What+" "+note.Name, "delivery.ignored h")
	})
}
