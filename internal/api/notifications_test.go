package api_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/internal/endpoint"
	"github.com/stint-dev/stint/internal/notify"
)

// deaf is an endpoint that takes nothing.
type deaf struct{}

func (deaf) Check() error { return nil }

func (deaf) Send(context.Context, *notify.Notification) (notify.Answer, error) {
	return notify.Answer{Status: 3, Final: true}, errors.New("never")
}

// What endpoints were told is there in pages, of all or of one, the newest first.
func TestNotifications(t *testing.T) {
	t.Parallel()
	inRoom(t, func(t *testing.T, r *room) {
		sys, err := r.e.System(t.Context(), func(err error) { t.Error(err) })
		if err != nil {
			t.Fatal(err)
		}
		n, err := notify.New(sys, r.store, nil)
		if err != nil {
			t.Fatal(err)
		}
		created := []endpoint.Event{endpoint.Created}
		if err := n.Set(t.Context(), []notify.Endpoint{{Name: "a", Channel: deaf{}, Events: created}, {Name: "b", Channel: deaf{}, Events: created}}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		over := make(chan error, 1)
		go func() { over <- n.Run(ctx) }()
		for i := range 3 {
			if _, err := r.e.Start(t.Context(), engine.Request{Agent: agents()[0], Name: fmt.Sprint("s", i), Input: []byte("go")}); err != nil {
				t.Fatal(err)
			}
			<-time.After(10 * time.Second)
			synctest.Wait()
		}
		seen := map[string]int{}
		for at, pages := "/v1/notifications?limit=4", 0; at != ""; pages++ {
			doc := r.ok(http.StatusOK, get(at))
			for _, it := range doc["items"].([]any) {
				line := it.(map[string]any)
				seen[fmt.Sprint(line["endpoint"], " ", line["event"], " ", line["result"], " ", line["error"], " ", line["attempts"])]++
			}
			next, _ := doc["next"].(string)
			if at = ""; next != "" {
				at = "/v1/notifications" + next
			}
			if pages > 2 {
				t.Fatal("there is no end")
			}
		}
		if got := fmt.Sprint(seen); got != "map[a session.created refused never 1:3 b session.created refused never 1:3]" {
			t.Errorf("got %s", got)
		}
		if one := r.ok(http.StatusOK, get("/v1/notifications?endpoint=b")); len(one["items"].([]any)) != 3 || one["endpoint"] != "b" || one["next"] != nil {
			t.Errorf("got %v", one)
		}
		r.fails(stint.NotFound, "begin at the newest", get("/v1/notifications?after=a/x"))
		cancel()
		if err := errors.Join(<-over, sys.Close()); err != nil {
			t.Error(err)
		}
	})
}
