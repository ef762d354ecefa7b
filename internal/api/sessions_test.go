package api_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/access"
)

func TestSessions(t *testing.T) {
	t.Parallel()
	inRoom(t, func(t *testing.T, r *room) {
		id := r.begin(`{"agent":"chat","prompt":"hello","name":"talk","labels":{"team":"a"},"limits":{"loops":"5","cost":"2.50"}}`)
		r.run(id)
		r.ok(http.StatusOK, get("/v1/sessions/"+id))
		r.ok(http.StatusOK, get("/v1/sessions/talk/state"))
		r.ok(http.StatusOK, get("/v1/sessions/talk/entries?kind=loop&kind=session"))
		r.ok(http.StatusOK, get("/v1/sessions/talk/result"))
		r.ok(http.StatusOK, post("/v1/sessions/talk/messages", `{"text":"that is enough"}`))
		r.run(id)
		r.ok(http.StatusOK, get("/v1/sessions/talk/result"))
		r.ok(http.StatusOK, get("/v1/sessions"))
		r.golden("sessions.txt")
	})
}

// A session is named as on the command line.
func TestAddresses(t *testing.T) {
	t.Parallel()
	inRoom(t, func(t *testing.T, r *room) {
		id := r.begin(`{"agent":"chat","name":"talk"}`)
		r.run(id)
		for _, address := range []string{id, strings.ToUpper(id), id[22:], "talk", "tal", "@last", "chat@16:00", "talk%2F0", "talk:1"} {
			if got := r.ok(http.StatusOK, get("/v1/sessions/"+address))["id"]; got != id {
				t.Errorf("%s is %v", address, got)
			}
		}
		r.fails(stint.NotFound, "did you mean talk", get("/v1/sessions/tslk"))
		r.fails(stint.NotFound, "line 0 alone", get("/v1/sessions/talk%2F3"))
		r.fails(stint.Invalid, "an address is", get("/v1/sessions/"+url.PathEscape("a:b:c")))
		r.fails(stint.NotFound, "", get("/v1/sessions/talk/nothing"))
	})
}

// The same key and body lead to the session that the first request made; the same key
// and another body lead nowhere.
func TestStartIsIdempotent(t *testing.T) {
	t.Parallel()
	inRoom(t, func(t *testing.T, r *room) {
		first := post("/v1/sessions", `{"agent":"chat","prompt":"one"}`)
		first.key = "k1"
		id := r.ok(http.StatusCreated, first)["id"]
		if got := r.ok(http.StatusOK, first)["id"]; got != id {
			t.Errorf("the same again is %v", got)
		}
		spaced := first
		spaced.body = `{ "prompt": "one", "agent": "chat" }`
		if got := r.ok(http.StatusOK, spaced)["id"]; got != id {
			t.Errorf("the same in other words is %v", got)
		}
		for _, body := range []string{`{"agent":"chat","prompt":"two"}`, `{"agent":"pay","prompt":"one"}`, `{"agent":"chat","prompt":"one","name":"x"}`,
			`{"agent":"chat","prompt":"one","limits":{"loops":"3"}}`, `{"agent":"chat","prompt":"one","labels":{"a":"b"}}`} {
			other := first
			other.body = body
			if got := r.fails(stint.Conflict, "Idempotency-Key was used", other); got.status != http.StatusConflict {
				t.Errorf("%s: %d", body, got.status)
			}
		}
		message := post("/v1/sessions/"+id.(string)+"/messages", `{"text":"hi"}`)
		message.key = "k1"
		r.fails(stint.Conflict, "Idempotency-Key was used", message)
		other := first
		other.token = r.texts[access.Operator]
		if got := r.ok(http.StatusCreated, other)["id"]; got == id {
			t.Error("two callers with one key have one session")
		}
		if n := len(r.list("")); n != 2 {
			t.Errorf("there are %d sessions", n)
		}
	})
}

// Of many requests with one key, sent at once, one makes the session.
func TestStartAtOnce(t *testing.T) {
	t.Parallel()
	inRoom(t, func(t *testing.T, r *room) {
		const n = 20
		ids := make(chan string, n)
		for range n {
			go func() {
				c := post("/v1/sessions", `{"agent":"chat"}`)
				c.key = "k"
				req := newRequest(r, c)
				w := newRecorder()
				r.h.ServeHTTP(w, req)
				var doc struct{ ID string }
				_ = json.Unmarshal(w.Body.Bytes(), &doc) // an empty id is not the others'
				ids <- doc.ID
			}()
		}
		first := <-ids
		for range n - 1 {
			if id := <-ids; id != first || id == "" {
				t.Errorf("one key leads to %q and %q", first, id)
			}
		}
		if n := len(r.list("")); n != 1 {
			t.Errorf("there are %d sessions", n)
		}
	})
}

// list returns the ids of a list, and checks that its pages lead to all of it.
func (r *room) list(query string) []string {
	r.t.Helper()
	var ids []string
	path := "/v1/sessions" + query
	for range 100 {
		doc := r.ok(http.StatusOK, get(path))
		for _, it := range doc["items"].([]any) {
			ids = append(ids, it.(map[string]any)["id"].(string))
		}
		next, ok := doc["next"].(string)
		if !ok {
			return ids
		}
		path = "/v1/sessions" + next
	}
	r.t.Fatalf("%s does not end", query)
	return nil
}

func TestList(t *testing.T) {
	t.Parallel()
	inRoom(t, func(t *testing.T, r *room) {
		var all []string // newest first
		for _, body := range []string{`{"agent":"chat","name":"a","labels":{"team":"x"}}`, `{"agent":"chat","name":"b","labels":{"team":"x","env":"prod"}}`, `{"agent":"pay","name":"c"}`, `{"agent":"chat","name":"d","prompt":"enough"}`} {
			all = append([]string{r.begin(body)}, all...)
		}
		a, b, c, d := all[3], all[2], all[1], all[0]
		r.run(a)
		r.run(d)
		for query, want := range map[string][]string{
			"": {d, c, b, a}, "?limit=1": {d, c, b, a}, "?limit=3": {d, c, b, a}, "?open=true": {c, b, a}, "?bad=true": {}, "?status=waiting": {a},
			"?status=waiting&status=completed&limit=1": {d, a}, "?agent=pay": {c}, "?label=team%3Dx": {b, a}, "?label=team%3Dx&label=env%3Dprod": {b},
			"?trigger=prompt&limit=2": {d, c, b, a}, "?trigger=schedule": {}, "?text=PA": {c}, "?text=CHAT&limit=1": {d, b, a}, "?text=h%25": {}, "?since=2026-11-29T16:00:00Z": {d, c, b, a}, "?since=2026-11-29T16:00:01Z": {},
			"?until=2026-11-29T16:00:00Z": {}, "?after=" + c: {b, a},
		} {
			got := r.list(query)
			if strings.Join(got, " ") != strings.Join(want, " ") {
				t.Errorf("%s lists %v, want %v", query, got, want)
			}
		}
		r.fails(stint.Invalid, "exclude each other", get("/v1/sessions?open=true&bad=true"))
		r.fails(stint.Invalid, "no cursor", get("/v1/sessions?after=x"))
		r.fails(stint.Invalid, "key=value", get("/v1/sessions?label=x"))
	})
}

// A log is read page by page, in bounded answers, with nothing left out.
func TestEntries(t *testing.T) {
	t.Parallel()
	inRoom(t, func(t *testing.T, r *room) {
		id := r.begin(`{"agent":"loud"}`)
		r.run(id)
		var seqs []float64
		path := "/v1/sessions/" + id + "/entries"
		pages := 0
		for next := "?limit=500&body=65536"; next != ""; pages++ {
			out := r.do(get(path + next))
			if len(out.body) > 2<<20 || strings.ContainsAny(string(out.body), "\x1b\u202e\a") {
				t.Errorf("a page has %d bytes, or drives a terminal", len(out.body))
			}
			for _, it := range out.doc["items"].([]any) {
				seqs = append(seqs, it.(map[string]any)["seq"].(float64))
			}
			next, _ = out.doc["next"].(string)
		}
		row, err := r.store.Session(t.Context(), mustID(t, id))
		if err != nil {
			t.Fatal(err)
		}
		for i, seq := range seqs {
			if int(seq) != i+1 {
				t.Fatalf("the entries are %v", seqs)
			}
		}
		if len(seqs) != int(row.Session.Head) {
			t.Errorf("%d entries on %d pages, of %d", len(seqs), pages, row.Session.Head)
		}
		tail := r.ok(http.StatusOK, get(path+"?tail=2&body=0"))["items"].([]any)
		if len(tail) != 2 || tail[1].(map[string]any)["seq"].(float64) != float64(row.Session.Head) {
			t.Errorf("the newest two are %v", tail)
		}
	})
}

func mustID(t *testing.T, s string) stint.ID {
	t.Helper()
	id, err := stint.ParseID(s)
	if err != nil {
		t.Fatal(err)
	}
	return id
}
