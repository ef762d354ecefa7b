package engine_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/store/mem"
	"github.com/stint-dev/stint/store/storetest"
)

// A store has one system journal, one process writes it, and what it records is there
// for the next one.
func TestSystem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, store := t.Context(), mem.New()
		first, err := engine.New(ctx, store, engine.Options{Holder: "first"})
		if err != nil {
			t.Fatal(err)
		}
		sys, err := first.System(ctx, func(err error) { t.Errorf("it is lost: %v", err) })
		if err != nil {
			t.Fatal(err)
		}
		second, err := engine.New(ctx, store, engine.Options{Holder: "second"})
		if err != nil {
			t.Fatal(err)
		}
		defer second.Close()    //nolint:errcheck // it has nothing to give back
		<-time.After(time.Hour) // it is renewed
		if _, err := second.System(ctx, func(error) {}); !errors.Is(err, stint.Conflict) || !strings.Contains(err.Error(), "first") {
			t.Errorf("a second server: %v", err)
		}

		id, err := engine.SystemJournal(ctx, store)
		if err != nil {
			t.Fatal(err)
		}
		if err := store.Send(ctx, id, stint.Message{ID: "m", Kind: stint.Prompt, From: "human:ben", Body: []byte("pause")}); err != nil {
			t.Fatal(err)
		}
		in, err := sys.Inbox(ctx)
		if err != nil || len(in) != 1 {
			t.Fatalf("%d messages, %v", len(in), err)
		}
		line := stint.Key{Scope: "occurrence", Source: "nightly", Name: "nightly@1", At: time.Unix(1, 0)}
		for _, n := range []engine.Note{
			{What: "schedule.paused", Name: "nightly", Actor: "human:ben", Reason: "holidays", Section: "schedules", State: json.RawMessage(`{"paused":true}`), Takes: &in[0]},
			{What: "occurrence.skipped", Name: "nightly", Data: map[string]int{"n": 1}, Keys: []stint.Key{line}},
		} {
			if err := sys.Record(ctx, n); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 1200 {
			if err := sys.Record(ctx, engine.Note{What: "occurrence.skipped", Name: fmt.Sprint(i)}); err != nil {
				t.Fatal(err)
			}
		}
		if err := sys.Close(); err != nil {
			t.Fatal(err)
		}
		if err := first.Close(); err != nil {
			t.Fatal(err)
		}

		sys, err = second.System(ctx, func(error) {})
		if err != nil {
			t.Fatal(err)
		}
		if state := sys.State("schedules"); string(state) != `{"paused":true}` {
			t.Errorf("the state is %s", state)
		}
		if in, err := sys.Inbox(ctx); err != nil || len(in) != 0 {
			t.Errorf("%d messages are left, %v", len(in), err)
		}
		if err := sys.Record(ctx, engine.Note{What: "again", Keys: []stint.Key{line}}); !errors.Is(err, stint.Conflict) {
			t.Errorf("a line that is there: %v", err)
		}
		if err := sys.Record(ctx, engine.Note{What: "after it"}); err != nil {
			t.Errorf("after a refusal: %v", err)
		}
		storetest.Check(t, store)
	})
}

// The state is found again whatever was recorded since all of it was, and a section that
// changes often does not have the others written with it.
func TestSystemSections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, store := t.Context(), mem.New()
		e, err := engine.New(ctx, store, engine.Options{Holder: "first"})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close() //nolint:errcheck // the test ends
		id, err := engine.SystemJournal(ctx, store)
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]json.RawMessage{}
		big := json.RawMessage(`"` + strings.Repeat("x", 5000) + `"`)
		rnd := rand.New(rand.NewPCG(1, 2))
		for life := range 4 {
			sys, err := e.System(ctx, func(error) {})
			if err != nil {
				t.Fatal(err)
			}
			for i := range 400 {
				n := engine.Note{What: "noted"}
				switch k := rnd.IntN(10); {
				case i == 10:
					n.Section, n.State = "big", big
				case k < 5:
					n.Section, n.State = fmt.Sprint("s", k), json.RawMessage(fmt.Sprint(life*1000+i))
				}
				if n.State != nil {
					want[n.Section] = n.State
				}
				if err := sys.Record(ctx, n); err != nil {
					t.Fatal(err)
				}
				if i%97 != 0 {
					continue
				}
				if got, err := engine.SystemState(ctx, store, id); err != nil || !reflect.DeepEqual(got, want) {
					t.Fatalf("life %d, note %d: the state is %d sections, %v", life, i, len(got), err)
				}
			}
			if err := sys.Close(); err != nil {
				t.Fatal(err)
			}
		}
		es, err := store.Entries(ctx, stint.Range{Session: id, Kinds: []stint.Kind{stint.SystemRecorded}, Limit: 10_000})
		if err != nil {
			t.Fatal(err)
		}
		large := 0
		for i := range es {
			if max(int64(len(es[i].Body)), es[i].Blob.Size) >= 5000 {
				large++
			}
		}
		if large > 4+8 { // four that changed it, and all of it at each beginning and every 500
			t.Errorf("of %d notes %d have the large section", len(es), large)
		}
		storetest.Check(t, store)
	})
}

// Who loses the system journal is told, and writes nothing more.
func TestSystemLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, store := t.Context(), mem.New()
		e, err := engine.New(ctx, store, engine.Options{Holder: "first", TTL: 30 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close() //nolint:errcheck // the test ends
		lost := make(chan error, 1)
		sys, err := e.System(ctx, func(err error) { lost <- err })
		if err != nil {
			t.Fatal(err)
		}
		id, err := engine.SystemJournal(ctx, store)
		if err != nil {
			t.Fatal(err)
		}
		row, err := store.Session(ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		store.Append(ctx, row.Lease, stint.Batch{Session: row.Session, Release: true}, func(err error) {
			if err != nil {
				t.Error(err)
			}
		})
		if _, err := store.Claim(ctx, stint.Claim{Holder: "other", TTL: time.Minute, Session: id}); err != nil {
			t.Fatal(err)
		}
		if err := <-lost; !errors.Is(err, stint.Fenced) {
			t.Errorf("it is told %v", err)
		}
		if err := sys.Record(ctx, engine.Note{What: "late"}); !errors.Is(err, stint.Fenced) {
			t.Errorf("it still writes: %v", err)
		}
		synctest.Wait()
	})
}
