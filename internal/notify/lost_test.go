package notify_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/internal/notify"
	"github.com/stint-dev/stint/journal"
)

// played is a channel that does what a test says.
type played struct {
	answer func(n *notify.Notification) (notify.Answer, error)

	mu  sync.Mutex
	got []*notify.Notification
	at  []time.Time
}

func (p *played) Check() error { return nil }

func (p *played) Send(_ context.Context, n *notify.Notification) (notify.Answer, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.got, p.at = append(p.got, n), append(p.at, time.Now())
	if p.answer == nil {
		return notify.Answer{}, nil
	}
	return p.answer(n)
}

// told are the events that came, each with its session and what it waits for.
func (p *played) told() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := make([]string, len(p.got))
	for i, n := range p.got {
		all[i] = n.Message.Data.Name + ":" + string(n.Message.Type)
		if w := n.Message.Data.Waiting; w != nil {
			all[i] += "(" + string(w.For) + ")"
		}
	}
	return strings.Join(all, " ")
}

// note is an entry of the system journal.
type note struct {
	journal.Recorded
	by stint.Actor
}

// recorded are the entries of the system journal that say one of some things.
func (o *office) recorded(what ...string) (all []note) {
	o.Helper()
	id, err := engine.SystemJournal(o.Context(), o.store)
	if err != nil {
		o.Fatal(err)
	}
	es, err := o.store.Entries(o.Context(), stint.Range{Session: id, Kinds: []stint.Kind{stint.SystemRecorded}})
	if err != nil {
		o.Fatal(err)
	}
	for i := range es {
		d, err := journal.Decode[journal.Recorded](&es[i])
		if err != nil {
			o.Fatal(err)
		}
		if slices.Contains(what, d.What) {
			all = append(all, note{d, es[i].Actor})
		}
	}
	return all
}

// What is refused for good is not sent again, and what did not reach somebody, for that or
// for another reason, is in the system journal with all that the ledger says of it.
func TestLost(t *testing.T) {
	inBubble(t, func(t *testing.T, o *office) {
		c := &played{answer: func(n *notify.Notification) (notify.Answer, error) {
			switch {
			case n.Message.Data.Name == "odd":
				return notify.Answer{Status: 550, Final: true}, errors.New("it wants no\nodd \x1b[31mones")
			case n.Message.Data.Name == "slow":
				return notify.Answer{}, errors.New("not now")
			}
			return notify.Answer{Status: 250, Said: "queued"}, nil
		}}
		if err := o.n.Set(t.Context(), []notify.Endpoint{{Name: "c", Channel: c}}); err != nil {
			t.Fatal(err)
		}
		o.start("good", "nap")
		o.start("odd", "nap")
		o.after(time.Minute)
		o.start("slow", "nap")
		o.after(time.Minute)
		o.start("well", "nap")
		o.after(48 * time.Hour)
		lines := o.lines("c")
		if len(lines) != 4 {
			t.Fatalf("got %+v", lines)
		}
		if l := lines[0]; l.Result != notify.Delivered || l.Status != 250 || l.Error != "queued" {
			t.Errorf("taken: %+v", l)
		}
		if l := lines[1]; l.Result != notify.Refused || l.Attempts != 1 || l.Status != 550 || l.Error != `it wants no\nodd \x1b[31mones` {
			t.Errorf("refused: %+v", l)
		}
		if l := lines[3]; l.Result != notify.GivenUp || l.Attempts != notify.MaxAttempts {
			t.Errorf("given up: %+v", l)
		}
		lost := o.recorded("notify.lost")
		if len(lost) != 2 {
			t.Fatalf("got %+v", lost)
		}
		for i, want := range []notify.Sent{lines[1], lines[3]} {
			var got notify.Sent
			if err := json.Unmarshal(lost[i].Data, &got); err != nil {
				t.Fatal(err)
			}
			want.Line = ""
			if got != want || lost[i].Name != "c" || lost[i].Reason != want.Error {
				t.Errorf("got %+v of %+v, want %+v", got, lost[i], want)
			}
		}
	})
}
