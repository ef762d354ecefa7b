package notify_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/internal/endpoint"
	"github.com/stint-dev/stint/internal/notify"
	"github.com/stint-dev/stint/store/mem"
)

// Each event is told once, signed, with what is known of the session; what is nobody's move
// is not told.
func TestEvents(t *testing.T) {
	inBubble(t, func(t *testing.T, o *office) {
		asks := o.start("asks", "ask")
		fails := o.start("fails", "fail")
		waits := o.start("waits", "wait")
		o.start("naps", "nap")
		o.after(time.Minute)
		o.say(waits, stint.Stop, "")
		o.after(3 * time.Hour)
		got := map[string][]got{}
		for _, g := range o.got("e") {
			o.verified(g, whsec)
			got[g.Data.Name] = append(got[g.Data.Name], g)
			if g.Data.Agent != "a" || g.Data.Labels["for"] != g.Data.Name || g.id != fmt.Sprintf("evt_%s_%d", g.Data.Session, g.Data.Seq) || g.headers.Get("Content-Type") != "application/json" {
				t.Errorf("got %s", g.body)
			}
		}
		for name, want := range map[string]string{
			"asks": "session.created pending, approval.requested waiting", "fails": "session.created pending, session.failed failed",
			"waits": "session.created pending, session.waiting waiting, session.ended canceled", "naps": "session.created pending",
		} {
			var all []string
			for _, g := range got[name] {
				all = append(all, string(g.Type)+" "+g.Data.Status)
			}
			o.is(name, strings.Join(all, ", "), want)
		}
		row, err := o.store.Session(t.Context(), asks)
		if err != nil {
			t.Fatal(err)
		}
		a := got["asks"][1].Data.Approval
		if a == nil || a.ID == "" || a.ID != row.Session.Wait.Approval || a.Step != "deploy" || a.Text != "deploy it?" || a.Why != "rule 7" {
			t.Errorf("the approval: %+v, want %s", a, row.Session.Wait.Approval)
		}
		if w := got["waits"][1].Data.Waiting; w == nil || w.For != stint.ForMessage || w.What != "what next?" {
			t.Errorf("the wait: %+v", w)
		}
		if r := got["fails"][1].Data.Reason; !strings.Contains(r, "it cannot be done") {
			t.Errorf("the reason: %q", r)
		}
		before := len(o.got("e"))
		o.say(fails, stint.Restart, "")
		o.after(time.Minute)
		o.is("an end after a restart", len(o.got("e")), before)
		lines := o.lines("e")
		o.is("lines", len(lines), before)
		if l := lines[0]; l.Result != notify.Delivered || l.Attempts != 1 || l.Status != 204 || l.Event != endpoint.Created || l.ID == "" {
			t.Errorf("a line: %+v", l)
		}
	})
}

// An endpoint is told of the events and agents that it wants, from when it is set on.
func TestSet(t *testing.T) {
	inBubble(t, func(t *testing.T, o *office) {
		o.start("early", "wait")
		o.after(time.Minute)
		ends := o.endpoint("ends", func(e *notify.Endpoint) { e.Events = []endpoint.Event{endpoint.Ended} })
		other := o.endpoint("other", func(e *notify.Endpoint) { e.Agents = []string{"b"} })
		if err := o.n.Set(t.Context(), []notify.Endpoint{o.endpoint("e"), ends, other}); err != nil {
			t.Fatal(err)
		}
		o.start("later", "end")
		o.after(time.Minute)
		o.is("all", o.types("e"), "early:session.created early:session.waiting later:session.created later:session.ended")
		o.is("ends", o.types("ends"), "later:session.ended")
		o.is("other", o.types("other"), "")
		if err := o.n.Set(t.Context(), []notify.Endpoint{ends}); err != nil {
			t.Fatal(err)
		}
		o.start("last", "end")
		o.after(time.Minute)
		o.is("removed", len(o.got("e")), 4)
		o.is("stays", o.types("ends"), "later:session.ended last:session.ended")
		for what, change := range map[string]func(*notify.Endpoint){
			"no name": func(e *notify.Endpoint) { e.Name = "" }, "no URL": webhook(func(w *notify.Webhook) { w.URL = "example.org" }), "http": webhook(func(w *notify.Webhook) { w.URL = "http://example.org" }),
			"a scheme":   webhook(func(w *notify.Webhook) { w.URL, w.AllowPrivate = "ftp://example.org", true }),
			"a password": webhook(func(w *notify.Webhook) { w.URL = "https://a:b@example.org" }),
			"no secret":  webhook(func(w *notify.Webhook) { w.Secrets = nil }), "no channel": func(e *notify.Endpoint) { e.Channel = nil }, "no such event": func(e *notify.Endpoint) { e.Events = []endpoint.Event{"session.began"} },
		} {
			if err := o.n.Set(t.Context(), []notify.Endpoint{o.endpoint("bad", change)}); stint.CodeOf(err) != stint.Invalid {
				t.Errorf("%s: %v", what, err)
			}
		}
		o.start("goes-on", "end")
	})
}

// What an endpoint does not take is sent again, later and later, under the same id with the
// same body, and given up after about a day.
func TestRetries(t *testing.T) {
	inBubble(t, func(t *testing.T, o *office) {
		n := 0
		o.answers("e", func(got) (int, http.Header, error) {
			switch n++; {
			case n == 1:
				return 0, nil, errors.New("connection refused")
			case n == 2:
				return 500, http.Header{"Retry-After": {"3600"}}, nil
			case n == 3:
				return 302, http.Header{"Location": {"https://elsewhere.example.org"}}, nil
			}
			return 200, http.Header{}, nil
		})
		o.start("s", "nap")
		o.after(10 * time.Second)
		pending := o.n.Status()[0]
		if len(pending.Pending) != 1 || pending.Failing.IsZero() {
			t.Errorf("got %+v", pending)
		}
		o.after(2 * time.Hour)
		all := o.got("e")
		if len(all) != 4 {
			t.Fatalf("%d attempts", len(all))
		}
		for i, g := range all {
			o.verified(g, whsec)
			if g.id != all[0].id || g.body != all[0].body {
				t.Errorf("attempt %d: %s %s", i, g.id, g.body)
			}
		}
		for i, want := range []time.Duration{5 * time.Second, time.Hour, 80 * time.Second} {
			if d := all[i+1].at.Sub(all[i].at); d < want*4/5 || d > want*6/5+2*time.Second {
				t.Errorf("wait %d was %v, want about %v", i, d, want)
			}
		}
		lines := o.lines("e")
		if len(lines) != 1 || lines[0].Result != notify.Delivered || lines[0].Attempts != 4 {
			t.Errorf("lines: %+v", lines)
		}
		if is := o.n.Status()[0]; len(is.Pending) > 0 || !is.Failing.IsZero() {
			t.Errorf("got %+v", is)
		}

		o.answers("e", func(g got) (int, http.Header, error) {
			if g.Data.Name == "poison" {
				return 422, http.Header{}, nil
			}
			return 200, http.Header{}, nil
		})
		o.start("poison", "nap")
		o.after(time.Minute)
		o.start("sound", "nap")
		o.after(30 * time.Hour)
		var first, last time.Time
		for _, g := range o.got("e") {
			if g.Data.Name == "poison" {
				if first.IsZero() {
					first = g.at
				}
				last = g.at
			}
		}
		if d := last.Sub(first); d < 20*time.Hour || d > 30*time.Hour {
			t.Errorf("it was tried for %v", d)
		}
		lines = o.lines("e")
		o.is("sound", lines[1].Result, "delivered")
		if l := lines[2]; l.Result != notify.GivenUp || l.Attempts != notify.MaxAttempts || l.Status != 422 || !strings.Contains(l.Error, "422") {
			t.Errorf("given up: %+v", l)
		}
		if p := o.n.Status()[0].Paused; p != nil {
			t.Errorf("paused: %+v", p)
		}
	})
}

// The waits grow to six hours, a fifth more or less.
func TestBackoff(t *testing.T) {
	total := time.Duration(0)
	for n := 1; n < notify.MaxAttempts; n++ {
		low, mid, high := notify.Backoff(n, 0), notify.Backoff(n, 0.5), notify.Backoff(n, 1)
		if low != mid-mid/5 || high != mid+mid/5 || mid < 5*time.Second || mid > 6*time.Hour || n > 1 && mid < notify.Backoff(n-1, 0.5) {
			t.Errorf("%d: %v to %v", n, low, high)
		}
		total += mid
	}
	if total < 20*time.Hour || total > 28*time.Hour || notify.Backoff(1000, 0.5) != 6*time.Hour {
		t.Errorf("in all %v", total)
	}
}

// One endpoint that is slow or away holds up neither the others nor the engine.
func TestSlow(t *testing.T) {
	inBubble(t, func(t *testing.T, o *office) {
		if err := o.n.Set(t.Context(), []notify.Endpoint{o.endpoint("e"), o.endpoint("slow"), o.endpoint("away")}); err != nil {
			t.Fatal(err)
		}
		o.answers("slow", func(g got) (int, http.Header, error) {
			<-g.ctx.Done() // it never answers
			return 0, nil, g.ctx.Err()
		})
		o.answers("away", always(503))
		begun := time.Now()
		for i := range 50 {
			o.start(fmt.Sprint("s", i), "end")
		}
		o.after(10 * time.Second)
		o.is("the others", len(o.got("e")), 100)
		if last := o.got("e")[99].at; last.Sub(begun) > 3*time.Second {
			t.Errorf("the last one came after %v", last.Sub(begun))
		}
		o.is("slow", len(o.got("slow")), 1)
		rows, err := o.store.Sessions(t.Context(), stint.Filter{Open: true})
		if err != nil || len(rows) > 0 {
			t.Errorf("%d sessions did not end, %v", len(rows), err)
		}
		o.after(20 * time.Second)
		if p := o.n.Status()[2].Pending; len(p) == 0 || p[0].Attempts == 0 {
			t.Errorf("the slow one has nothing pending: %+v", p)
		}
	})
}

// An endpoint that takes nothing has a bounded number of events pending, is paused after
// days, and goes on where it was when somebody says so.
func TestPaused(t *testing.T) {
	inBubble(t, func(t *testing.T, o *office) {
		const all = notify.MaxPending + 50
		o.answers("e", always(500))
		for i := range all {
			o.start(fmt.Sprint("s", i), "nap")
		}
		o.after(10 * time.Minute)
		o.is("pending", len(o.n.Status()[0].Pending), notify.MaxPending)
		o.after(4*24*time.Hour + 20*time.Hour)
		if p := o.n.Status()[0].Paused; p != nil {
			t.Errorf("paused after four days: %+v", p)
		}
		o.after(30 * time.Hour)
		p := o.n.Status()[0].Paused
		if p == nil || p.By != stint.ByEngine || !strings.Contains(p.Reason, "5 days") || !strings.Contains(p.Reason, "500") {
			t.Fatalf("paused: %+v", p)
		}
		o.crash(o.endpoint("e"))
		before := len(o.got("e"))
		o.answers("e", nil)
		o.start("after", "nap")
		o.after(10 * 24 * time.Hour)
		o.is("while paused", len(o.got("e")), before)
		for _, c := range []struct {
			name string
			code stint.Code
		}{{"nobody", stint.NotFound}, {"e", ""}, {"e", stint.Conflict}} {
			if err := o.n.Resume(t.Context(), c.name, "human:ben", "mended"); stint.CodeOf(err) != c.code {
				t.Errorf("resume %s: %v", c.name, err)
			}
		}
		o.after(time.Hour)
		told := map[stint.ID]bool{}
		for _, l := range o.lines("e") {
			if l.Event == endpoint.Created && l.Result == notify.Delivered {
				told[l.Session] = true
			}
		}
		o.is("each event was taken", len(told), all+1)
		o.is("notes", strings.Join(o.notes(), ", "), "notify.paused e, notify.resumed e by human:ben: mended")

		o.answers("e", always(410))
		o.start("gone", "nap")
		o.after(5 * time.Second)
		if p := o.n.Status()[0].Paused; p == nil || !strings.Contains(p.Reason, "410") {
			t.Errorf("after 410: %+v", p)
		}
	})
}

// notes are what the system journal says of the pauses of endpoints.
func (o *office) notes() (all []string) {
	o.Helper()
	for _, n := range o.recorded("notify.paused", "notify.resumed") {
		text := n.What + " " + n.Name
		if n.What == "notify.resumed" {
			text += " by " + string(n.by) + ": " + n.Reason
		}
		all = append(all, text)
	}
	return all
}

// Whenever the server dies, each event comes at least once, always under the same id with the
// same body, and attempts go on where they were.
func TestCrash(t *testing.T) {
	inBubble(t, func(t *testing.T, o *office) {
		var down atomic.Bool
		o.answers("e", func(got) (int, http.Header, error) {
			if down.Load() {
				return 503, http.Header{}, nil
			}
			return 200, http.Header{}, nil
		})
		sessions := map[stint.ID]bool{}
		for i := range 30 {
			down.Store(i%3 == 1)
			for j := range 3 {
				sessions[o.start(fmt.Sprint("s", i, "-", j), "end")] = true
			}
			o.after(time.Duration(i*i*97%9000) * time.Millisecond)
			o.crash(o.endpoint("e"))
		}
		down.Store(true)
		o.start("last", "nap")
		o.after(time.Hour)
		tries := o.n.Status()[0].Pending
		o.crash(o.endpoint("e"))
		if again := o.n.Status()[0].Pending; len(again) != len(tries) || len(tries) == 0 || again[0].Attempts < tries[0].Attempts-1 || again[0].Attempts < 2 || !again[0].Since.Equal(tries[0].Since) {
			t.Errorf("before %+v, after %+v", tries, again)
		}
		down.Store(false)
		o.after(12 * time.Hour)
		bodies, took := map[string]string{}, map[string]bool{}
		for _, g := range o.got("e") {
			if was, there := bodies[g.id]; there && was != g.body {
				t.Errorf("%s: %s, then %s", g.id, was, g.body)
			}
			bodies[g.id] = g.body
		}
		for _, l := range o.lines("e") {
			took[l.ID] = took[l.ID] || l.Result == notify.Delivered
		}
		missing := 0
		for id := range sessions {
			es, err := o.store.Entries(t.Context(), stint.Range{Session: id, Kinds: []stint.Kind{stint.SessionCreated, stint.SessionEnded}})
			if err != nil || len(es) != 2 {
				t.Fatalf("%v: %d entries", err, len(es))
			}
			for i := range es {
				if !took[fmt.Sprintf("evt_%s_%d", id, es[i].Seq)] {
					missing++
				}
			}
		}
		o.is("missing", missing, 0)
		o.is("pending", len(o.n.Status()[0].Pending), 0)
		t.Logf("%d requests for %d events", len(o.got("e")), len(bodies))
	})
}

// An endpoint that is idle costs the system journal nothing.
func TestIdle(t *testing.T) {
	inBubble(t, func(t *testing.T, o *office) {
		o.start("s", "end")
		o.after(time.Hour)
		id, err := engine.SystemJournal(t.Context(), o.store)
		if err != nil {
			t.Fatal(err)
		}
		row, err := o.store.Session(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		o.after(24 * time.Hour)
		later, err := o.store.Session(t.Context(), id)
		if err != nil || later.Session.Head != row.Session.Head {
			t.Errorf("%v: entry %d, then %d", err, row.Session.Head, later.Session.Head)
		}
	})
}

// While a secret is changed both sign, and one that cannot be read is tried again.
func TestSecrets(t *testing.T) {
	inBubble(t, func(t *testing.T, o *office) {
		var failed atomic.Bool
		failed.Store(true)
		e := o.endpoint("e", webhook(func(w *notify.Webhook) {
			w.Secrets = func() ([]string, error) {
				if failed.Load() {
					return nil, errors.New("/home/ben/secret: no such file")
				}
				return []string{newer, whsec}, nil
			}
		}))
		if err := o.n.Set(t.Context(), []notify.Endpoint{e}); err != nil {
			t.Fatal(err)
		}
		o.start("s", "nap")
		o.after(2 * time.Second)
		if p := o.n.Status()[0].Pending; len(p) != 1 || strings.Contains(p[0].Error, "ben") || !strings.Contains(p[0].Error, "secret") {
			t.Errorf("pending: %+v", p)
		}
		failed.Store(false)
		o.after(time.Minute)
		all := o.got("e")
		if len(all) != 1 {
			t.Fatalf("%d requests", len(all))
		}
		o.verified(all[0], whsec)
		o.verified(all[0], newer)
	})
}

// A place in the feed of another store is left for the end of this one.
func TestOtherStore(t *testing.T) {
	inBubble(t, func(t *testing.T, o *office) {
		o.start("s", "end")
		o.after(time.Minute)
		o.store.moved.Store(true) // a copy was put back
		o.after(time.Minute)
		o.start("new", "end")
		o.after(time.Minute)
		o.is("told", o.types("e"), "s:session.created s:session.ended new:session.created new:session.ended")
	})
}

// Nothing is sent to a private address unless the endpoint may be there, and no redirect is
// followed.
func TestPrivate(t *testing.T) {
	var requests, elsewhere atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	defer other.Close()
	taken := make(chan string, 10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		taken <- r.URL.Path
		http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
	}))
	defer server.Close()
	store := &feeds{Store: mem.New()}
	e, err := engine.New(t.Context(), store, engine.Options{Holder: "x"})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	sys, err := e.System(t.Context(), func(err error) { t.Error(err) })
	if err != nil {
		t.Fatal(err)
	}
	defer sys.Close()
	n, err := notify.New(sys, store, nil)
	if err != nil {
		t.Fatal(err)
	}
	secrets := func() ([]string, error) { return []string{whsec}, nil }
	all := []notify.Endpoint{
		{Name: "may", Channel: &notify.Webhook{URL: server.URL + "/may", Secrets: secrets, AllowPrivate: true}},
		{Name: "not", Channel: &notify.Webhook{URL: strings.Replace(server.URL, "http:", "https:", 1) + "/not", Secrets: secrets}},
	}
	if err := n.Set(t.Context(), all); err != nil {
		t.Fatal(err)
	}
	over := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { over <- n.Run(ctx) }()
	if _, err := e.Start(t.Context(), engine.Request{Agent: agents()[0]}); err != nil {
		t.Fatal(err)
	}
	if path := <-taken; path != "/may" {
		t.Errorf("%s was reached", path)
	}
	failed := map[string]string{}
	for len(failed) < 2 && elsewhere.Load() == 0 {
		for _, s := range n.Status() {
			if len(s.Pending) > 0 {
				failed[s.Name] = s.Pending[0].Error
			}
		}
	}
	cancel()
	if err := <-over; err != nil {
		t.Error(err)
	}
	if why := failed["not"]; !strings.Contains(why, "this machine; allow_private: true lets") || strings.Contains(why, "/not") || !strings.Contains(failed["may"], "307") {
		t.Errorf("got %v", failed)
	}
	if requests.Load() != 1 || elsewhere.Load() != 0 {
		t.Errorf("%d requests, %d elsewhere", requests.Load(), elsewhere.Load())
	}
}
