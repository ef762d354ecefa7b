package api_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/access"
	"github.com/stint-dev/stint/internal/api"
	"github.com/stint-dev/stint/internal/control"
	"github.com/stint-dev/stint/journal"
)

// status returns how a session stands.
func (r *room) status(id string) string {
	r.t.Helper()
	doc := r.do(get("/v1/sessions/" + id)).doc
	w, _ := doc["waiting"].(map[string]any)
	if w != nil {
		return fmt.Sprint(doc["status"], " ", w["for"])
	}
	return fmt.Sprint(doc["status"])
}

func TestOrders(t *testing.T) {
	t.Parallel()
	inRoom(t, func(t *testing.T, r *room) {
		id := r.begin(`{"agent":"chat","name":"talk"}`)
		r.run(id)
		at := "/v1/sessions/talk/"
		for _, c := range []struct{ verb, body, want string }{
			{"pause", `{"reason":"month end","now":true}`, "waiting operator"},
			{"resume", "", "pending"},
			{"interrupt", `{}`, "waiting message"},
			{"limits", `{"loops":"+4","cost":"1.25","on_limit":"stop","reason":"enough"}`, "waiting message"},
			{"stop", `{"reason":"wrong repository"}`, "canceled"},
			{"restart", "", "pending"},
			{"kill", "", "canceled"},
		} {
			r.ok(http.StatusOK, post(at+c.verb, c.body))
			if got := r.status(id); got != c.want {
				t.Errorf("after %s it is %s, want %s", c.verb, got, c.want)
			}
			if c.verb == "resume" {
				r.run(id)
			}
		}
		r.fails(stint.Conflict, "restart "+id[22:]+" --run begins it again", post(at+"stop", ""))
		r.fails(stint.Conflict, "the session has ended", post(at+"messages", `{"text":"hi"}`))
		r.fails(stint.Invalid, "no limit changes", post(at+"limits", `{}`))
		r.fails(stint.Invalid, `loops "-3": a number above zero`, post(at+"limits", `{"loops":"-3"}`))
		r.fails(stint.Conflict, "no step in doubt", post(at+"resolve", `{"verdict":"not"}`))
		row, err := r.store.Session(t.Context(), mustID(t, id))
		if err != nil || row.Session.Limits.Loops != 4 || row.Session.Limits.Cost.String() != "1.25" || !row.Session.Limits.Stop {
			t.Errorf("the limits are %+v, %v", row.Session.Limits, err)
		}
		if got := r.actors(id); strings.Count(got, "human:admin") < 7 {
			t.Errorf("who did it: %s", got)
		}
		r.golden("orders.txt")
	})
}

// actors is who the entries of a session are from.
func (r *room) actors(id string) string {
	r.t.Helper()
	es, err := r.store.Entries(r.t.Context(), stint.Range{Session: mustID(r.t, id)})
	if err != nil {
		r.t.Fatal(err)
	}
	var all []string
	for i := range es {
		all = append(all, string(es[i].Actor))
		if d, err := journal.Decode[journal.Taken](&es[i]); err == nil && es[i].Kind == stint.MessageTaken {
			all = append(all, string(d.From))
		}
	}
	return strings.Join(all, " ")
}

// An order that is repeated with its key is given once.
func TestOrdersAreIdempotent(t *testing.T) {
	t.Parallel()
	inRoom(t, func(t *testing.T, r *room) {
		id := r.begin(`{"agent":"chat"}`)
		r.run(id)
		c := post("/v1/sessions/"+id+"/messages", `{"text":"hi"}`)
		c.key = "m1"
		r.ok(http.StatusOK, c)
		r.ok(http.StatusOK, c)
		c.body = `{"text":"ho"}`
		r.fails(stint.Conflict, "Idempotency-Key was used", c)
		if s := r.run(id); s.Totals.Loops != 2 {
			t.Errorf("%d loops", s.Totals.Loops)
		}
		limits := post("/v1/sessions/"+id+"/limits", `{"loops":"+2"}`)
		limits.key = "l1"
		r.ok(http.StatusOK, limits)
		r.fails(stint.Conflict, "", limits) // not twice more
		row, err := r.store.Session(t.Context(), mustID(t, id))
		if err != nil || row.Session.Limits.Loops != 2 {
			t.Errorf("%+v, %v", row.Session.Limits, err)
		}
	})
}

// TestBusy sends messages to a session that waits for one, and to one that is at work.
func TestBusy(t *testing.T) {
	t.Parallel()
	inRoom(t, func(t *testing.T, r *room) {
		id := r.begin(`{"agent":"chat","name":"talk","labels":{"team":"a"}}`)
		r.run(id)
		at := "/v1/sessions/" + id + "/messages"
		rejecting := post(at, `{"text":"one","busy":"reject"}`)
		rejecting.key = "r1"
		r.ok(http.StatusOK, rejecting)
		r.fails(stint.Conflict, "is at work", post(at, `{"text":"two","busy":"reject"}`))
		r.ok(http.StatusOK, rejecting) // it was taken, whatever the session does now
		r.ok(http.StatusOK, post(at, `{"text":"two","busy":"queue"}`))
		if n := r.unread(id); n != 2 {
			t.Errorf("%d messages wait", n)
		}
		r.run(id)
		r.ok(http.StatusOK, post(at, `{"text":"three","busy":"interrupt"}`))
		r.ok(http.StatusOK, post(at, `{"text":"four","busy":"interrupt"}`))
		r.run(id)
		r.ok(http.StatusOK, post(at, `{"text":"five","busy":"replace"}`)) // it waits for a message: it gets it
		if n := len(r.list("")); n != 1 {
			t.Errorf("a session that waited for a message was replaced: %d", n)
		}
		other := post(at, `{"text":"six","busy":"replace"}`)
		other.key = "p1"
		doc := r.ok(http.StatusCreated, other)
		if doc["id"] == id || r.status(id) != "canceled" || doc["labels"].(map[string]any)["team"] != "a" {
			t.Errorf("it is %s, and the other one %v", r.status(id), doc["id"])
		}
		if again := r.ok(http.StatusOK, other); again["id"] != doc["id"] {
			t.Errorf("the same again is %v", again["id"])
		}
		if n := len(r.list("")); n != 2 {
			t.Errorf("there are %d sessions", n)
		}
	})
}

func (r *room) unread(id string) int {
	r.t.Helper()
	ms, err := r.store.Inbox(r.t.Context(), mustID(r.t, id))
	if err != nil {
		r.t.Fatal(err)
	}
	return len(ms)
}

// crowd lets nobody send before n have come to it.
type crowd struct {
	control.Store

	n    int64
	here atomic.Int64
	all  chan struct{}
}

func (c *crowd) Send(ctx context.Context, id stint.ID, m stint.Message) error {
	if c.here.Add(1) == c.n {
		close(c.all)
	}
	<-c.all
	return c.Store.Send(ctx, id, m)
}

// Of several who found a session idle and want it to themselves, one gets it.
func TestRejectAtOnce(t *testing.T) {
	t.Parallel()
	const n = 20
	together := func(o *api.Options) { o.Store = &crowd{Store: o.Store, n: n, all: make(chan struct{})} }
	inRoomWith(t, together, func(t *testing.T, r *room) {
		id := r.begin(`{"agent":"chat"}`)
		r.run(id)
		got := make(chan int, n)
		for i := range n {
			go func() {
				w := newRecorder()
				r.h.ServeHTTP(w, newRequest(r, post("/v1/sessions/"+id+"/messages", fmt.Sprintf(`{"text":"%d","busy":"reject"}`, i))))
				got <- w.Code
			}()
		}
		taken := 0
		for range n {
			switch code := <-got; code {
			case http.StatusOK:
				taken++
			case http.StatusConflict:
			default:
				t.Errorf("an answer is %d", code)
			}
		}
		if taken != 1 || r.unread(id) != 1 {
			t.Errorf("%d were told that theirs was taken, %d were", taken, r.unread(id))
		}
	})
}

func TestDoubtAndRestart(t *testing.T) {
	t.Parallel()
	inRoom(t, func(t *testing.T, r *room) {
		id := r.begin(`{"agent":"unsure"}`)
		r.run(id)
		at := "/v1/sessions/" + id
		r.fails(stint.Conflict, "cannot go on before step 1.1 is settled", post(at+"/resume", ""))
		r.fails(stint.Conflict, "the step in doubt is 1.1, not 1.2", post(at+":1.2/resolve", `{"verdict":"not"}`))
		r.fails(stint.Invalid, "result goes with", post(at+"/resolve", `{"verdict":"not","result":{}}`))
		plan := r.ok(http.StatusOK, get(at+"/plan?from=0"))
		refused, _ := plan["refused"].(map[string]any)
		if refused == nil || refused["code"] != "conflict" {
			t.Errorf("the plan is %v", plan)
		}
		r.fails(stint.Conflict, "in doubt, and going back leaves that behind", post(at+"/restart", `{"from":0}`))
		r.fails(stint.Conflict, "another one by now", post(at+"/restart", `{"from":0,"in_doubt":"skip","plan":"`+strings.Repeat("0", 64)+`"}`))
		r.fails(stint.Invalid, "go with from", post(at+"/restart", `{"in_doubt":"skip"}`))
		before := r.status(id)
		if before != "waiting doubt" {
			t.Errorf("refused orders changed it: %s", before)
		}
		plan = r.ok(http.StatusOK, get(at+"/plan?from=0&in_doubt=skip"))
		if plan["refused"] != nil {
			t.Errorf("the plan is refused: %v", plan["refused"])
		}
		r.ok(http.StatusOK, post(at+"/restart", fmt.Sprintf(`{"from":0,"in_doubt":"skip","plan":%q}`, plan["hash"])))
		r.run(id)
		if got := r.status(id); got != "completed" {
			t.Errorf("it is %s", got)
		}

		id = r.begin(`{"agent":"unsure"}`)
		r.run(id)
		r.ok(http.StatusOK, post("/v1/sessions/"+id+":1.1/resolve", `{"verdict":"happened","result":{"id":4121},"reason":"I looked"}`))
		r.run(id)
		if got := r.status(id); got != "completed" {
			t.Errorf("it is %s", got)
		}
	})
}

func TestApprovals(t *testing.T) {
	t.Parallel()
	denied := stint.Denied.Errorf("approval", "not you")
	var refuse bool
	change := func(o *api.Options) {
		o.MayDecide = func(context.Context, *stint.Row) error {
			if refuse {
				return denied
			}
			return nil
		}
	}
	inRoomWith(t, change, func(t *testing.T, r *room) {
		id := r.begin(`{"agent":"pay","name":"pay-1"}`)
		r.run(id)
		list := r.ok(http.StatusOK, get("/v1/approvals"))["items"].([]any)
		question := list[0].(map[string]any)["id"].(string)
		at := "/v1/approvals/" + question
		r.ok(http.StatusOK, get("/v1/approvals?session=pay-1"))
		yes := post(at+"/approve", `{"message":"checked the amount"}`)
		for _, token := range []string{r.texts[access.Operator], r.texts[access.Viewer], r.agent} {
			c := yes
			c.token = token
			r.fails(stint.Denied, "approvals:decide", c)
		}
		refuse = true
		r.fails(stint.Denied, "not you", yes)
		refuse = false
		r.fails(stint.Invalid, "takes no answer", post(at+"/approve", `{"answer":1}`))
		r.fails(stint.Invalid, "one line", post(at+"/deny", `{"message":"a\nb"}`))
		r.fails(stint.NotFound, "", post("/v1/approvals/"+id+".1/deny", ""))
		if got := r.status(id); got != "waiting approval" {
			t.Errorf("refused decisions changed it: %s", got)
		}
		yes.token = r.texts[access.Approver]
		r.ok(http.StatusOK, yes)
		r.fails(stint.Conflict, "was approved by human:approver at 2026-11-29T16:00:00Z", post(at+"/deny", ""))
		r.run(id)
		if got := r.status(id); got != "completed" {
			t.Errorf("it is %s", got)
		}
		r.golden("approvals.txt")
	})
}

func TestAgents(t *testing.T) {
	t.Parallel()
	inRoom(t, func(t *testing.T, r *room) {
		r.ok(http.StatusOK, get("/v1/agents"))
		r.ok(http.StatusOK, get("/v1/agents/chat"))
		r.fails(stint.NotFound, "no agent", get("/v1/agents/x"))
		r.fails(stint.NotFound, "it has chat", post("/v1/sessions", `{"agent":"x"}`))
		r.golden("agents.txt")
	})
}

// A token is shown once; its hash never.
func TestTokens(t *testing.T) {
	t.Parallel()
	inRoom(t, func(t *testing.T, r *room) {
		made := r.ok(http.StatusCreated, post("/v1/tokens", `{"name":"ana","role":"viewer","lifetime":"48h"}`))
		secret, _ := made["secret"].(string)
		list := get("/v1/sessions")
		list.token = secret
		r.ok(http.StatusOK, list)
		out := r.do(get("/v1/tokens"))
		if strings.Contains(string(out.body), secret) || strings.Contains(string(out.body), "hash") || !strings.Contains(string(out.body), made["id"].(string)) {
			t.Errorf("the list is %.2000s", out.body)
		}
		revoke := call{method: http.MethodDelete, path: "/v1/tokens/" + made["id"].(string)}
		if doc := r.ok(http.StatusOK, revoke); doc["revoked"] == nil || doc["secret"] != nil {
			t.Errorf("revoked, it is %v", doc)
		}
		<-time.After(2 * time.Second) // how long an old answer about a token is good
		r.fails(stint.Denied, "revoked", list)
		revoke.path = "/v1/tokens/x"
		r.fails(stint.NotFound, "", revoke)
		r.fails(stint.Denied, "cannot have approvals:decide", post("/v1/tokens", `{"kind":"agent","name":"a","scopes":["approvals:decide"]}`))
		r.fails(stint.Invalid, "", post("/v1/tokens", `{"name":"a"}`))
		r.fails(stint.Invalid, "length of time", post("/v1/tokens", `{"name":"a","role":"viewer","lifetime":"soon"}`))
		for _, role := range []access.Role{access.Viewer, access.Operator, access.Approver} {
			c := get("/v1/tokens")
			c.token = r.texts[role]
			r.fails(stint.Denied, "no scope admin", c)
		}
	})
}

func TestHealth(t *testing.T) {
	t.Parallel()
	inRoom(t, func(t *testing.T, r *room) {
		for range 10 {
			r.ok(http.StatusOK, get("/healthz"))
		}
		if r.writes != 1 {
			t.Errorf("ten probes within a second wrote %d times", r.writes)
		}
		r.ok(http.StatusOK, get("/readyz"))
		r.ok(http.StatusOK, get("/healthz/scheduler"))
		<-time.After(time.Second)
		r.sick = stint.Unavailable.Errorf("disk", "/var/lib/secret is full")
		for _, path := range []string{"/healthz", "/readyz", "/healthz/scheduler"} {
			out := r.fails(stint.Unavailable, "the log of the server", get(path))
			if out.status != http.StatusServiceUnavailable || strings.Contains(string(out.body), "secret") {
				t.Errorf("%s: %d %s", path, out.status, out.body)
			}
		}
		r.sick = nil
		<-time.After(time.Second)
		r.ok(http.StatusOK, get("/healthz"))
		if r.writes != 3 {
			t.Errorf("%d writes", r.writes)
		}
	})
}
