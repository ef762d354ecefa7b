package notify_test

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/endpoint"
	"github.com/stint-dev/stint/internal/notify"
	"github.com/stint-dev/stint/journal"
)

// people is an endpoint that is told what people have to know.
func people(c notify.Channel, changes ...func(*notify.Endpoint)) notify.Endpoint {
	e := notify.Endpoint{Name: "people", Channel: c, Events: []endpoint.Event{endpoint.NeedsYou, endpoint.BadEnd}, Remind: endpoint.DefaultRemind()}
	for _, change := range changes {
		change(&e)
	}
	return e
}

// set is the only endpoint from now on.
func (o *office) set(e notify.Endpoint) {
	o.Helper()
	if err := o.n.Set(o.Context(), []notify.Endpoint{e}); err != nil {
		o.Fatal(err)
	}
}

// since are the times at which something came, as minutes since a time.
func (p *played) since(t time.Time) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := make([]string, len(p.at))
	for i, at := range p.at {
		all[i] = fmt.Sprint(int(at.Sub(t).Minutes()))
	}
	return strings.Join(all, " ")
}

// People are told when they are needed and when something ended badly, and of nothing else.
func TestGroups(t *testing.T) {
	inBubble(t, func(t *testing.T, o *office) {
		c := &played{}
		o.set(people(c, func(e *notify.Endpoint) { e.Remind = endpoint.Remind{} }))
		for _, word := range []string{"ask", "broke", "stuck", "parked", "wait", "nap", "end", "stop", "fail"} {
			o.start(word, word)
			o.after(time.Second)
		}
		o.after(10 * 24 * time.Hour)
		o.is("told", c.told(), "ask:approval.requested broke:session.waiting(budget) stuck:session.waiting(health) parked:session.waiting(operator) stop:session.ended fail:session.failed")
	})
}

// Whoever is needed is told again, later and later, as long as the session waits for the
// same, and not a moment longer.
func TestReminders(t *testing.T) {
	inBubble(t, func(t *testing.T, o *office) {
		c := &played{}
		o.set(people(c))
		begun := time.Now()
		asks := o.start("s", "ask")
		o.start("other", "wait")
		o.after(3*24*time.Hour + time.Minute)
		o.is("when", c.since(begun), "0 15 60 240 1680 3120")
		o.is("told", c.told(), "s:approval.requested"+strings.Repeat(" s:session.reminder(approval)", 5))
		ids, row := map[string]bool{}, o.row(asks)
		for i, n := range c.got[1:] {
			ids[n.ID] = true
			d := n.Message.Data
			if d.Reminder != i+1 || d.Waiting.Approval != row.Session.Wait.Approval || !d.Waiting.Since.Equal(row.Session.Wait.Since) || !strings.HasSuffix(n.ID, fmt.Sprint("_", d.Seq, "_r", i+1)) {
				t.Errorf("reminder %d: %s, %+v", i+1, n.ID, d)
			}
		}
		o.is("ids", len(ids), 5)
		o.say(asks, stint.Stop, "")
		o.after(10 * 24 * time.Hour)
		o.is("after its end", len(c.got), 6)
	})
}

func (o *office) row(id stint.ID) stint.Row {
	o.Helper()
	row, err := o.store.Session(o.Context(), id)
	if err != nil {
		o.Fatal(err)
	}
	return row
}

// An answer ends the reminders of a wait; a new wait has reminders of its own.
func TestRemindersOfEachWait(t *testing.T) {
	inBubble(t, func(t *testing.T, o *office) {
		c := &played{}
		o.set(people(c, func(e *notify.Endpoint) { e.Remind = endpoint.Remind{After: []time.Duration{15 * time.Minute}} }))
		begun := time.Now()
		id := o.start("s", "parked")
		o.after(10 * time.Minute)
		o.say(id, stint.Resume, "") // which has it wait for a message, which nobody is told of
		o.after(time.Hour)
		o.is("answered in time", c.since(begun), "0")
		o.say(id, stint.Prompt, "stuck")
		o.after(24 * time.Hour)
		o.is("the second wait", c.since(begun), "0 70 85")
		o.is("told", c.told(), "s:session.waiting(operator) s:session.waiting(health) s:session.reminder(health)")
	})
}

// Whoever has to agree to an order is told again as of a wait, whatever its session does
// meanwhile, and until it is decided.
func TestRemindersOfOrders(t *testing.T) {
	inBubble(t, func(t *testing.T, o *office) {
		c := &played{}
		o.set(people(c))
		begun := time.Now()
		ended, waits := o.start("ended", "end"), o.start("waits", "parked")
		o.after(5 * time.Minute)
		o.orders(ended)
		o.orders(waits)
		o.after(16 * time.Minute)
		o.is("when", c.since(begun), "0 5 5 15 20 20")
		o.is("told", c.told(), "waits:session.waiting(operator) ended:approval.requested waits:approval.requested "+
			"waits:session.reminder(operator) ended:session.reminder waits:session.reminder")
		asked, again := c.got[1].Message.Data, c.got[4].Message.Data
		order := o.row(ended).Session.At.Approvals[0]
		if q := again.Approval; again.Seq != asked.Seq || again.Reminder != 1 || again.Status != "" || q.ID != asked.Approval.ID || q.Text != asked.Approval.Text ||
			q.Step != "rollback" || q.Why != "guard" || !q.Since.Equal(order.Since) || c.got[4].ID != fmt.Sprint("evt_", ended, "_", order.Seq, "_r1") {
			t.Errorf("%s: %+v, %+v", c.got[4].ID, again, q)
		}
		o.say(waits, stint.Stop, "") // its order is open as before
		o.decides(ended, stint.ApprovalDenied)
		o.after(time.Hour)
		o.is("after a no", c.since(begun)[len("0 5 5 15 20 20"):], " 65")
		o.decides(waits, stint.ApprovalDenied)
		o.after(10 * 24 * time.Hour)
		o.is("after both", len(c.got), 7)
	})
}

// orders gives an order that somebody has to agree to.
func (o *office) orders(id stint.ID) {
	o.Helper()
	o.send(id, stint.Rollback, journal.Command{From: new(int), Ask: &journal.ApprovalRequested{Text: "roll it back?", Why: "guard"}})
	o.after(time.Second)
}

// decides ends the question about the order.
func (o *office) decides(id stint.ID, as stint.ApprovalState) {
	o.Helper()
	for _, a := range o.row(id).Session.At.Approvals {
		if a.OfOrder() {
			o.send(id, stint.Decision, journal.Decision{Approval: a.Seq, State: as})
		}
	}
	o.after(time.Second)
}

// An answer that nobody has taken yet ends the reminders of an order too.
func TestReminderOfADecidedOrder(t *testing.T) {
	inBubble(t, func(t *testing.T, o *office) {
		var down atomic.Bool
		c := &played{answer: func(*notify.Notification) (notify.Answer, error) {
			if down.Load() {
				return notify.Answer{}, errors.New("away")
			}
			return notify.Answer{}, nil
		}}
		o.set(people(c))
		id := o.start("busy", "wait")
		o.after(20 * time.Minute) // nothing is due for a day
		o.orders(id)
		o.say(id, stint.Prompt, "busy") // for hours, in which no message is taken
		down.Store(true)
		o.after(20 * time.Minute)
		if p := o.n.Status()[0].Pending; len(p) != 1 || p[0].Nth != 1 || p[0].Event != endpoint.Reminder {
			t.Fatalf("pending: %+v", p)
		}
		o.decides(id, stint.ApprovalDenied)
		down.Store(false)
		o.after(time.Hour)
		lines := o.lines("people")
		o.is("the last of it", lines[len(lines)-1].Result, notify.Moot)
		o.is("nobody has taken the answer", o.row(id).Session.At.Approvals[0].State, stint.ApprovalOpen)
		o.after(3 * time.Hour)
	})
}

// A reminder that could not be sent is not sent any more once it is answered, and gives way
// to a newer one.
func TestRemindersThatAreLate(t *testing.T) {
	inBubble(t, func(t *testing.T, o *office) {
		var down atomic.Bool
		c := &played{}
		c.answer = func(n *notify.Notification) (notify.Answer, error) {
			if down.Load() {
				return notify.Answer{}, errors.New("away")
			}
			return notify.Answer{}, nil
		}
		o.set(people(c))
		gone, stays := o.start("gone", "parked"), o.start("stays", "parked")
		o.orders(stays)
		o.after(time.Minute)
		down.Store(true)
		o.after(2 * time.Hour) // two reminders of each, and two of the order
		pending := o.n.Status()[0].Pending
		if len(pending) != 3 || pending[0].Nth != 2 || pending[1].Nth != 2 || pending[2].Nth != 2 {
			t.Errorf("pending: %+v", pending)
		}
		o.say(gone, stint.Stop, "")
		o.after(time.Second)
		c.mu.Lock()
		before := len(c.got)
		c.mu.Unlock()
		down.Store(false)
		o.after(80 * time.Minute)
		c.mu.Lock()
		defer c.mu.Unlock()
		if len(c.got) != before+2 {
			t.Errorf("%d after %d", len(c.got), before)
		}
		for _, n := range c.got[before:] {
			if n.Message.Data.Session != stays || n.Message.Data.Reminder != 2 {
				t.Errorf("%+v", n.Message)
			}
		}
		results := map[notify.Result]int{}
		for _, l := range o.lines("people") {
			results[l.Result]++
		}
		o.is("results", fmt.Sprint(results), "map[delivered:5 moot:4]")
	})
}

// However often the server ends or dies, each reminder comes, and none that was written down
// comes again.
func TestRemindersOverRestarts(t *testing.T) {
	inBubble(t, func(t *testing.T, o *office) {
		c := &played{}
		o.set(people(c))
		begun := time.Now()
		o.start("s", "parked")
		for i := range 60 {
			o.after(time.Duration(7+i%13)*time.Minute + time.Duration(i)*time.Second)
			if i%2 == 0 {
				o.close()
				o.open(people(c))
			} else {
				o.crash(people(c))
			}
		}
		o.after(time.Hour)
		o.is("when", c.since(begun), "0 15 60 240")
	})
}

// A reminder is written down as soon as it was sent, and not only some time later.
func TestReminderIsWrittenDown(t *testing.T) {
	inBubble(t, func(t *testing.T, o *office) {
		c := &played{}
		o.set(people(c))
		o.after(2 * time.Second) // between two times at which all is written down anyway
		begun := time.Now()
		o.start("s", "parked")
		o.after(15*time.Minute + time.Second)
		o.crash(people(c))
		o.after(10 * time.Minute)
		o.is("when", c.since(begun), "0 15")
	})
}

// After a time without a server there is one reminder, however many were due, and none for
// what is told only then.
func TestRemindersAfterAGap(t *testing.T) {
	inBubble(t, func(t *testing.T, o *office) {
		c := &played{}
		o.set(people(c))
		begun := time.Now()
		o.start("old", "parked")
		o.after(20 * time.Minute)
		o.close()
		o.broken = []string{"people"}
		o.open()
		o.start("new", "parked")
		o.after(5 * time.Hour)
		o.close()
		o.broken = nil
		o.open(people(c))
		o.after(time.Hour)
		o.is("told", c.told(), "old:session.waiting(operator) old:session.reminder(operator) new:session.waiting(operator) old:session.reminder(operator)")
		o.is("when", c.since(begun), "0 15 320 320")
		o.is("which", c.got[3].Message.Data.Reminder, 3)
	})
}

// Many sessions that wait are told of in parts, each once.
func TestManyReminders(t *testing.T) {
	inBubble(t, func(t *testing.T, o *office) {
		c := &played{}
		hourly := func(e *notify.Endpoint) { e.Remind = endpoint.Remind{After: []time.Duration{time.Hour}} }
		o.set(people(c, hourly))
		const all = 3*notify.MaxPending + 7
		for i := range all {
			o.start(fmt.Sprint("s", i), "parked")
			if i%50 == 0 {
				o.after(time.Millisecond)
			}
		}
		o.after(10 * time.Minute)
		o.close()
		o.after(3 * time.Hour) // all of them are due by then
		o.open(people(c, hourly))
		o.after(time.Hour)
		times := map[string]int{}
		for _, n := range c.got {
			times[n.ID]++
		}
		o.is("told", len(c.got), 2*all)
		o.is("ids", len(times), 2*all)
	})
}

// In quiet hours nothing is told. At their end each session is told of once, by what is so
// then, and nobody hears of what was answered meanwhile.
func TestQuietHours(t *testing.T) {
	inBubble(t, func(t *testing.T, o *office) { // the clock begins at midnight
		c, loud := &played{}, &played{}
		quiet := endpoint.Quiet{From: 22 * time.Hour, To: 7 * time.Hour, Zone: "UTC"}
		urgent := people(loud)
		urgent.Name = "urgent"
		if err := o.n.Set(t.Context(), []notify.Endpoint{people(c, func(e *notify.Endpoint) { e.Quiet = quiet }), urgent}); err != nil {
			t.Fatal(err)
		}
		midnight := time.Now()
		o.after(10 * time.Minute)
		o.start("open", "parked")
		o.after(time.Second)
		answered, again := o.start("answered", "ask"), o.start("again", "broke")
		o.after(time.Second)
		o.start("failed", "fail")
		o.after(time.Hour)
		o.say(answered, stint.Stop, "")
		o.say(again, stint.Resume, "")
		o.after(time.Minute)
		o.say(again, stint.Prompt, "broke")
		o.after(time.Hour)
		o.is("in the night", c.told(), "")
		o.after(6 * time.Hour)
		o.is("in the morning", c.told(), "open:session.waiting(operator) failed:session.failed again:session.waiting(budget)")
		o.is("when", c.since(midnight), "420 420 420")
		o.is("urgent", loud.since(midnight)[:11], "10 10 10 10")
		results := map[notify.Result]int{}
		for _, l := range o.lines("people") {
			results[l.Result]++
		}
		o.is("results", fmt.Sprint(results), "map[delivered:3 moot:2]")
		o.after(48 * time.Hour)
		for _, at := range c.at[3:] {
			if h := at.UTC().Hour(); h >= 22 || h < 7 {
				t.Errorf("told at %v", at)
			}
		}
		if !strings.Contains(c.told(), "open:session.reminder") {
			t.Errorf("no reminder: %s", c.told())
		}
	})
}
