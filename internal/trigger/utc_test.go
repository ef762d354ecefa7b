package trigger_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stint-dev/stint/internal/trigger"
)

// What a program reads is in UTC, whatever zone the times of a schedule are of.
func TestTimesAreInUTC(t *testing.T) {
	inShop(t, func(s *shop) {
		tokyo := s.schedule("h", "0 * * * *", func(sc *trigger.Schedule) { sc.Timing.Zone = "Asia/Tokyo" })
		s.serve(tokyo)
		s.until("01:30:00")
		s.close()
		s.until("04:30:00")
		s.serve(tokyo)
		s.until("05:30:00")
		all, err := trigger.History(s.Context(), s.store, "h", time.Time{}, 10)
		if err != nil || len(all) < 3 {
			s.Fatalf("%d lines, %v", len(all), err)
		}
		times, err := tokyo.Timing.Times()
		if err != nil {
			s.Fatal(err)
		}
		plan, err := trigger.PlanBackfill(s.Context(), s.store, "h", times, at("2000-01-01 01:00:00"), at("2000-01-01 05:00:00"), time.Now())
		if err != nil || len(plan) != 5 {
			s.Fatalf("%d times, %v", len(plan), err)
		}
		said, err := json.Marshal(map[string]any{"history": all, "plan": plan})
		if err != nil || strings.Contains(string(said), "+09:00") {
			s.Errorf("%v: %s", err, said)
		}
	})
}
