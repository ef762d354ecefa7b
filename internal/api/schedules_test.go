package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/internal/access"
	"github.com/stint-dev/stint/internal/api"
	"github.com/stint-dev/stint/internal/hook"
	"github.com/stint-dev/stint/internal/trigger"
	"github.com/stint-dev/stint/journal"
)

// timer is a scheduler as the API needs it.
type timer struct {
	r     *room
	sched *trigger.Scheduler
	sys   *engine.System
	all   []trigger.Schedule
}

// desk is a receiver as the API needs it.
type desk struct {
	*trigger.Receiver

	defs []hook.Definition
}

func (d *desk) Hooks(context.Context) ([]hook.Definition, error) { return d.defs, nil }

// come sends the hook build a delivery of its own.
func (d *desk) come(t *testing.T, body string) {
	t.Helper()
	req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/hooks/build", strings.NewReader(body))
	req.SetPathValue("name", "build")
	w := httptest.NewRecorder()
	d.ServeHTTP(w, req)
	if w.Code != http.StatusAccepted && w.Code != http.StatusOK {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
}

// withTriggers gives the room two schedules: one at six each morning, and one that is over;
// and a hook.
func withTriggers(t *testing.T, fn func(t *testing.T, r *room)) {
	t.Helper()
	clock, door := &timer{}, &desk{}
	inRoomWith(t, func(o *api.Options) { o.Schedules, o.Hooks = clock, door }, func(t *testing.T, r *room) {
		clock.r, r.desk = r, door
		var err error
		if clock.sys, err = r.e.System(t.Context(), func(err error) { t.Error(err) }); err != nil {
			t.Fatal(err)
		}
		if clock.sched, err = trigger.NewScheduler(r.e, clock.sys, r.store, nil); err != nil {
			t.Fatal(err)
		}
		request := func() (engine.Request, error) { return engine.Request{Agent: agents()[0], Input: []byte("go")}, nil }
		clock.all = []trigger.Schedule{
			{Name: "morning", Timing: trigger.Timing{Cron: "0 6 * * *", Zone: "UTC"}, Policy: trigger.Policy{Overlap: trigger.Skip, Window: time.Hour, Most: 1}, Request: request},
			{Name: "once", Timing: trigger.Timing{At: time.Date(2026, 11, 1, 6, 0, 0, 0, time.UTC)}, Policy: trigger.Policy{Overlap: trigger.Allow, Most: 1}, Request: request},
		}
		if err := clock.sched.Set(t.Context(), clock.all); err != nil {
			t.Fatal(err)
		}
		h, err := hook.Compile(hook.Definition{Name: "build", Agent: "chat", Scheme: hook.None, When: `body.state != "started"`, Dedupe: "body.id", Limits: hook.Limits{Rate: hook.Rate{Count: 100, Per: time.Minute}}})
		if err != nil {
			t.Fatal(err)
		}
		door.Receiver, door.defs = trigger.NewReceiver(r.e, clock.sys, r.store, nil), []hook.Definition{h.Definition()}
		door.Set([]trigger.Target{{Hook: h, Secrets: func() ([]string, error) { return nil, nil }, Request: request}})
		fn(t, r)
		if err := clock.sys.Close(); err != nil {
			t.Error(err)
		}
	})
}

func (c *timer) Schedules(ctx context.Context) ([]api.Schedule, error) {
	id, err := engine.SystemJournal(ctx, c.r.store)
	if err != nil {
		return nil, err
	}
	state, err := engine.SystemState(ctx, c.r.store, id)
	if err != nil {
		return nil, err
	}
	held, err := trigger.ReadHeld(state["schedules"])
	var all []api.Schedule
	for _, s := range c.all {
		all = append(all, api.Schedule{Name: s.Name, Agent: "chat", Timing: s.Timing, Overlap: s.Policy.Overlap, WindowMS: s.Policy.Window.Milliseconds(), Most: s.Policy.Most,
			Since: held[s.Name].Since.UTC(), Paused: held[s.Name].Paused})
	}
	return all, err
}

func (c *timer) Do(ctx context.Context, cmd trigger.Command, by stint.Actor, id string) error {
	journalID, err := engine.SystemJournal(ctx, c.r.store)
	if err != nil {
		return err
	}
	body, err := json.Marshal(cmd)
	if err != nil {
		return err
	}
	if err := c.r.store.Send(ctx, journalID, stint.Message{ID: id, Kind: stint.Prompt, From: by, Body: body}); err != nil {
		return err
	}
	ms, err := c.r.store.Inbox(ctx, journalID)
	if err != nil || len(ms) == 0 { // it was obeyed before
		return err
	}
	if _, err := c.sched.Obey(ctx, &ms[0]); err != nil {
		return err
	}
	es, err := c.r.store.Entries(ctx, stint.Range{Session: journalID, Kinds: []stint.Kind{stint.SystemRecorded}, Last: true, Limit: 1})
	if err != nil {
		return err
	}
	d, err := journal.Decode[journal.Recorded](&es[0])
	if err == nil && strings.HasSuffix(d.What, ".refused") {
		err = stint.Conflict.Errorf("schedule", "%s", d.Reason)
	}
	return err
}

func TestSchedules(t *testing.T) {
	t.Parallel()
	withTriggers(t, func(t *testing.T, r *room) {
		r.ok(http.StatusOK, get("/v1/schedules"))
		r.ok(http.StatusOK, get("/v1/schedules/morning"))
		r.fails(stint.NotFound, "lists them", get("/v1/schedules/evening"))
		r.ok(http.StatusOK, post("/v1/schedules/morning/pause", `{"reason":"month end"}`))
		r.fails(stint.Conflict, "paused already", post("/v1/schedules/morning/pause", ""))
		r.ok(http.StatusOK, post("/v1/schedules/morning/resume", ""))
		fire := post("/v1/schedules/morning/fire", `{"reason":"once more"}`)
		fire.key = "f1"
		r.ok(http.StatusOK, fire)
		r.ok(http.StatusOK, fire)
		if n := len(r.list("?trigger=schedule")); n != 1 {
			t.Errorf("a session that was asked for twice with one key is there %d times", n)
		}
		r.ok(http.StatusOK, get("/v1/schedules/morning/occurrences"))
		past := `{"from":"2026-11-27T00:00:00Z","to":"2026-11-28T12:00:00Z","dry_run":true}`
		if doc := r.ok(http.StatusOK, post("/v1/schedules/morning/backfill", past)); doc["runs"] != 2.0 {
			t.Errorf("the plan is %v", doc)
		}
		if n := len(r.list("?trigger=schedule")); n != 1 {
			t.Errorf("a plan made sessions: there are %d", n)
		}
		r.ok(http.StatusOK, post("/v1/schedules/morning/backfill", strings.Replace(past, "true", "false", 1)))
		if n := len(r.list("?trigger=schedule")); n != 3 {
			t.Errorf("there are %d sessions", n)
		}
		if doc := r.ok(http.StatusOK, post("/v1/schedules/morning/backfill", past)); doc["runs"] != 0.0 {
			t.Errorf("the plan is %v", doc)
		}
		r.fails(stint.Invalid, "no stretch of the past", post("/v1/schedules/morning/backfill", `{"from":"2026-11-28T00:00:00Z","to":"2027-11-28T00:00:00Z"}`))
		r.fails(stint.Limit, "do it in parts", post("/v1/schedules/morning/backfill", `{"from":"2020-01-01T00:00:00Z","to":"2026-11-28T00:00:00Z"}`))
		r.golden("schedules.txt")
	})
}

// All lines of a ledger are on one page or another, also those of one time.
func TestOccurrencePages(t *testing.T) {
	t.Parallel()
	withTriggers(t, func(t *testing.T, r *room) {
		for i := range 5 {
			day := time.Date(2026, 11, 10+i, 6, 0, 0, 0, time.UTC).Format(time.RFC3339)
			r.ok(http.StatusOK, post("/v1/schedules/morning/backfill", `{"from":"`+day+`","to":"`+day+`"}`))
		}
		for range 12 { // at one time
			r.ok(http.StatusOK, post("/v1/schedules/morning/fire", ""))
		}
		n, pages := 0, 0
		for next := "?limit=7"; next != ""; pages++ {
			doc := r.ok(http.StatusOK, get("/v1/schedules/morning/occurrences"+next))
			n += len(doc["items"].([]any))
			next, _ = doc["next"].(string)
		}
		if n != 17 || pages != 2 {
			t.Errorf("%d occurrences on %d pages", n, pages)
		}
	})
}

// A server without schedules has none; who may not fire a schedule may look at it.
func TestWhoFires(t *testing.T) {
	t.Parallel()
	withTriggers(t, func(t *testing.T, r *room) {
		for _, role := range []access.Role{access.Viewer, access.Approver} {
			c := post("/v1/schedules/morning/fire", "")
			c.token = r.texts[role]
			r.fails(stint.Denied, "triggers:fire", c)
			c = post("/v1/hooks/build/deliveries/x/redeliver", "")
			c.token = r.texts[role]
			r.fails(stint.Denied, "triggers:fire", c)
			for _, path := range []string{"/v1/schedules", "/v1/hooks"} {
				c = get(path)
				c.token = r.texts[role]
				r.ok(http.StatusOK, c)
			}
		}
	})
	inRoom(t, func(t *testing.T, r *room) {
		for _, path := range []string{"/v1/schedules", "/v1/schedules/x", "/v1/schedules/x/occurrences"} {
			r.fails(stint.NotFound, "has no schedules", get(path))
		}
		r.fails(stint.NotFound, "has no schedules", post("/v1/schedules/x/pause", ""))
		for _, path := range []string{"/v1/hooks", "/v1/hooks/x", "/v1/hooks/x/deliveries", "/v1/hooks/x/deliveries/y"} {
			r.fails(stint.NotFound, "has no hooks", get(path))
		}
	})
}

func TestHooks(t *testing.T) {
	t.Parallel()
	withTriggers(t, func(t *testing.T, r *room) {
		r.desk.come(t, `{"id":"run/7","state":"failed"}`)
		r.desk.come(t, `{"id":"run/7","state":"failed"}`)
		r.desk.come(t, `{"id":"run/8","state":"started"}`)
		r.ok(http.StatusOK, get("/v1/hooks"))
		r.ok(http.StatusOK, get("/v1/hooks/build"))
		r.fails(stint.NotFound, "lists them", get("/v1/hooks/x"))
		list := r.ok(http.StatusOK, get("/v1/hooks/build/deliveries"))["items"].([]any)
		if len(list) != 2 {
			t.Errorf("there are %d deliveries", len(list))
		}
		at := "/v1/hooks/build/deliveries/run%2F7"
		if doc := r.ok(http.StatusOK, get(at)); doc["body_text"] != `{"id":"run/7","state":"failed"}` {
			t.Errorf("what came is %v", doc)
		}
		r.fails(stint.NotFound, "kept for 30 days", get("/v1/hooks/build/deliveries/run"))
		r.fails(stint.NotFound, "kept for 30 days", post("/v1/hooks/build/deliveries/run/redeliver", ""))
		<-time.After(time.Second)
		again := r.ok(http.StatusOK, post(at+"/redeliver", ""))
		if again["repeats"] != "run/7" || again["by"] != "human:admin" {
			t.Errorf("delivered again, it is %v", again)
		}
		if n := len(r.list("?trigger=hook")); n != 2 {
			t.Errorf("there are %d sessions", n)
		}
	})
}

// All deliveries are on one page or another, once.
func TestDeliveryPages(t *testing.T) {
	t.Parallel()
	withTriggers(t, func(t *testing.T, r *room) {
		for i := range 25 { // at one time
			r.desk.come(t, fmt.Sprintf(`{"id":"%d","state":"failed"}`, i))
		}
		seen := map[string]int{}
		pages := 0
		for next := "?limit=10"; next != ""; pages++ {
			doc := r.ok(http.StatusOK, get("/v1/hooks/build/deliveries"+next))
			for _, it := range doc["items"].([]any) {
				seen[it.(map[string]any)["id"].(string)]++
			}
			next, _ = doc["next"].(string)
		}
		if len(seen) != 25 || pages != 3 {
			t.Errorf("%d deliveries on %d pages: %v", len(seen), pages, seen)
		}
	})
}
