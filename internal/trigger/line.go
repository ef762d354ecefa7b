package trigger

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"time"

	"github.com/stint-dev/stint"
)

// occurrences is the scope of the lines of schedules.
const occurrences = "occurrence"

// lineLife is how long a line of a ledger is kept.
const lineLife = 400 * 24 * time.Hour

// Occurrence is a line of a schedule's ledger: what became of one nominal time, or of
// several with one fate.
type Occurrence struct {
	Schedule string    `json:"schedule"`
	Outcome  Outcome   `json:"outcome"`
	From     time.Time `json:"from"` // the first nominal time
	To       time.Time `json:"to"`   // the last one
	Count    int64     `json:"count"`
	Reason   string    `json:"reason,omitempty"`
	Detail   string    `json:"detail,omitempty"`   // for people
	Manual   bool      `json:"manual,omitempty"`   // somebody fired it: no time was due
	Backfill bool      `json:"backfill,omitempty"` // somebody had a time of the past made good; with Manual
	By       string    `json:"by,omitempty"`       // who did
	Era      int       `json:"era,omitempty"`      // see [Held.Era]
	Session  stint.ID  `json:"session,omitzero"`
}

// inUTC is o with its times in UTC, as all documents have them; those of a schedule with a
// zone are of that zone.
func (o Occurrence) inUTC() Occurrence {
	o.From, o.To = o.From.UTC(), o.To.UTC()
	return o
}

// line is the ledger's line of o, which expires a good year after now.
func (o Occurrence) line(id string, now time.Time) stint.Key {
	note, _ := json.Marshal(o) // it has nothing that JSON has not
	name := o.Schedule + "@" + o.To.UTC().Format(time.RFC3339)
	if o.Era > 0 {
		name += fmt.Sprintf("~%d", o.Era)
	}
	if o.Manual {
		name = o.Schedule + "!" + id
	}
	return stint.Key{Scope: occurrences, Name: name, Source: o.Schedule, At: o.To, Note: note, Expires: now.Add(lineLife), Digest: sha256.Sum256([]byte(name))}
}

// occurrenceOf reads a line.
func occurrenceOf(k stint.Key) (Occurrence, error) {
	var o Occurrence
	if err := json.Unmarshal(k.Note, &o); err != nil {
		return o, stint.Corrupt.Errorf("schedule", "the line %q of the ledger cannot be read: %v", k.Name, err)
	}
	if k.Ref != "" {
		id, err := stint.ParseID(k.Ref)
		if err != nil {
			return o, err
		}
		o.Session = id
	}
	return o.inUTC(), nil
}

// each calls fn with the lines of a ledger, newest first, until it says that it has seen
// enough.
func each(ctx context.Context, r stint.Reader, schedule string, before time.Time, fn func(o Occurrence) (enough bool, err error)) error {
	like := stint.Key{Scope: occurrences, Source: schedule, At: before}
	for {
		keys, err := r.Keys(ctx, like, page)
		if err != nil {
			return err
		}
		for _, k := range keys {
			o, err := occurrenceOf(k)
			if err != nil {
				return err
			}
			if enough, err := fn(o); err != nil || enough {
				return err
			}
			like.At, like.Name = k.At, k.Name
		}
		if len(keys) < page {
			return nil
		}
	}
}

// page is how many lines are read at once.
const page = 100

// History returns the newest occurrences of a schedule, at most limit, and those of the
// same time as the last of them; before, if it is not zero, is the time of the last one
// of the page before.
func History(ctx context.Context, r stint.Reader, schedule string, before time.Time, limit int) ([]Occurrence, error) {
	all := []Occurrence{}
	err := each(ctx, r, schedule, before, func(o Occurrence) (bool, error) {
		if n := len(all); n >= limit && !o.To.Equal(all[n-1].To) {
			return true, nil
		}
		all = append(all, o)
		return false, nil
	})
	return all, err
}
