package api_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/internal/access"
	"github.com/stint-dev/stint/internal/api"
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

// withTimer gives the room two schedules: one at six each morning, and one that is over.
func withTimer(t *testing.T, fn func(t *testing.T, r *room)) {
	t.Helper()
	clock := &timer{}
	inRoomWith(t, func(o *api.Options) { o.Schedules = clock }, func(t *testing.T, r *room) {
		clock.r = r
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
	withTimer(t, func(t *testing.T, r *room) {
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
	withTimer(t, func(t *testing.T, r *room) {
		for i := range 12 {
			day := time.Date(2026, 11, 10+i, 6, 0, 0, 0, time.UTC).Format(time.RFC3339)
			r.ok(http.StatusOK, post("/v1/schedules/morning/backfill", `{"from":"`+day+`","to":"`+day+`"}`))
		}
		for range 5 { // at one time
			r.ok(http.StatusOK, post("/v1/schedules/morning/fire", ""))
		}
		n, pages := 0, 0
		for next := "?limit=10"; next != ""; pages++ {
			doc := r.ok(http.StatusOK, get("/v1/schedules/morning/occurrences"+next))
			n += len(doc["items"].([]any))
			next, _ = doc["next"].(string)
		}
		if n != 17 || pages < 2 {
			t.Errorf("%d occurrences on %d pages", n, pages)
		}
	})
}

// A server without schedules has none; who may not fire a schedule may look at it.
func TestWhoFires(t *testing.T) {
	t.Parallel()
	withTimer(t, func(t *testing.T, r *room) {
		for _, role := range []access.Role{access.Viewer, access.Approver} {
			c := post("/v1/schedules/morning/fire", "")
			c.token = r.texts[role]
			r.fails(stint.Denied, "triggers:fire", c)
			c = get("/v1/schedules")
			c.token = r.texts[role]
			r.ok(http.StatusOK, c)
		}
	})
	inRoom(t, func(t *testing.T, r *room) {
		for _, path := range []string{"/v1/schedules", "/v1/schedules/x", "/v1/schedules/x/occurrences"} {
			r.fails(stint.NotFound, "has no schedules", get(path))
		}
		r.fails(stint.NotFound, "has no schedules", post("/v1/schedules/x/pause", ""))
	})
}
