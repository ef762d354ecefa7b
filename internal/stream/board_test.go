package stream_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/stream"
	"github.com/stint-dev/stint/internal/view"
	"github.com/stint-dev/stint/journal"
)

// rowOf is a session as `stint ps -o jsonl` prints it.
func rowOf(t testing.TB, s stint.Store, id stint.ID) string {
	t.Helper()
	row, err := s.Session(t.Context(), id)
	ok(t, err)
	var b bytes.Buffer
	ok(t, view.WriteJSON(&b, view.NewSession(&row, time.Now())))
	return strings.TrimSuffix(b.String(), "\n")
}

// The board begins where the feed ends and has the row of each session that changes.
func TestBoard(t *testing.T) {
	s := memory(t)
	before := begin(t, s, nil)
	_, web := serve(t, stream.Options{Store: s})
	f := follow(t, web.Client(), web.URL+"/v1/events", "")
	ready := f.expect("ready")
	equal(t, "the cursor", member(t, ready.data, "cursor"), ready.id)
	ok(t, before.write(said("output is not in a row")))
	ok(t, before.write(step(before)))
	e := f.expect("session")
	for _, path := range []string{"schema", "id", "status", "head", "head_hash", "totals.steps", "agent", "name"} {
		equal(t, path, member(t, e.data, path), member(t, rowOf(t, s, before.s.ID), path))
	}
	ok(t, before.write(journal.Draft{Kind: stint.LoopCompleted, Body: []byte("{}"), Data: journal.LoopCompleted{
		Rollup: journal.Rollup{Steps: 1, Models: 1}, State: journal.StateRef{Enc: journal.Full, Size: 2},
	}}, ends()))
	for status := ""; status != "completed"; status = member(t, e.data, "status") {
		e = f.expect("session")
	}
	again := follow(t, web.Client(), web.URL+"/v1/events", ready.id)
	again.expect("ready")
	equal(t, "the row for who comes back", member(t, again.expect("session").data, "status"), "completed")
}

// Who filters gets the rows that the filter selects, and is told of those that it selects
// no more.
func TestBoardFilters(t *testing.T) {
	s := memory(t)
	_, web := serve(t, stream.Options{Store: s})
	open := func(query string) *follower {
		f := follow(t, web.Client(), web.URL+"/v1/events?"+query, "")
		f.expect("ready")
		return f
	}
	all, other := open(""), open("agent=other&trigger=hook&label=a%3D1&label=b%3D2")
	running := open("status=running&status=waiting&agent=triage")
	c := begin(t, s, nil)
	ok(t, c.write(ends()))
	o := begin(t, s, func(c *journal.Created) {
		c.Agent.Name, c.Trigger.Kind, c.Labels = "other", "hook", map[string]string{"a": "1", "b": "2", "c": "3"}
	})
	begin(t, s, func(c *journal.Created) {
		c.Agent.Name, c.Trigger.Kind, c.Labels = "other", "hook", map[string]string{"a": "1", "b": "3"}
	})
	last := begin(t, s, nil)
	equal(t, "the row for the filter", member(t, other.expect("session").data, "id"), o.s.ID.String())
	seen := map[string]bool{}
	for id := ""; id != last.s.ID.String(); seen[id] = true {
		id = member(t, all.expect("session").data, "id")
	}
	equal(t, "rows without a filter", len(seen), 4)
	gone := ""
	for e := (event{}); e.name != "session" || member(t, e.data, "id") != last.s.ID.String(); {
		if e = running.next(); e.name == "gone" {
			equal(t, "the schema", member(t, e.data, "schema"), "stint.gone/1")
			gone = member(t, e.data, "id")
		}
	}
	equal(t, "the session that ended", gone, c.s.ID.String())
}

// However far behind the ring a client begins, and while others write, it comes to have
// the newest row of each session.
func TestBoardCatchesUp(t *testing.T) {
	s := memory(t)
	_, web := serve(t, stream.Options{Store: s, Ring: 4})
	start := follow(t, web.Client(), web.URL+"/v1/events", "")
	id := start.expect("ready").id
	start.stop()
	var all []*course
	for range 300 {
		all = append(all, begin(t, s, nil))
	}
	f := follow(t, web.Client(), web.URL+"/v1/events", id)
	f.expect("ready")
	heads := map[string]string{}
	for range 300 {
		e := f.expect("session")
		if e.id <= id {
			t.Fatalf("the event %s comes behind %s", e.id, id)
		}
		id, heads[member(t, e.data, "id")] = e.id, member(t, e.data, "head")
	}
	for _, c := range all {
		equal(t, "the head of a row", heads[c.s.ID.String()], fmt.Sprint(c.s.Head))
	}
}
