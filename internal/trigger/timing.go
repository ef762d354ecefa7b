package trigger

import (
	"time"

	"github.com/stint-dev/stint/cron"
)

// Timing says when a schedule is due: by an expression in a zone, or once.
type Timing struct {
	Cron    string    `json:"cron,omitempty"`
	Zone    string    `json:"zone,omitempty"` // of Cron
	Seconds bool      `json:"seconds,omitempty"`
	At      time.Time `json:"at,omitzero"` // once, instead of Cron
}

// Times reads t. What is wrong with it is [stint.Invalid].
func (t Timing) Times() (Times, error) {
	if !t.At.IsZero() {
		return once(t.At.UTC()), nil
	}
	s, err := cron.Parse(t.Cron, cron.Options{Zone: t.Zone, Seconds: t.Seconds})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// once is the only time of a schedule.
type once time.Time

func (o once) Next(after time.Time) (time.Time, bool) {
	return time.Time(o), time.Time(o).After(after)
}

func (o once) Prev(upto time.Time) (time.Time, bool) {
	return time.Time(o), !time.Time(o).After(upto)
}

func (o once) Count(after, upto time.Time) int64 {
	if time.Time(o).After(after) && !time.Time(o).After(upto) {
		return 1
	}
	return 0
}
