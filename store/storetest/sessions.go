package storetest

import (
	"encoding/binary"
	"slices"
	"sync"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/journal"
)

func sessionsProperties() []property {
	return []property{
		{name: "a session that is not there is not found", holds: sessionsAbsent},
		{name: "an empty filter selects all, newest first", holds: sessionsAll},
		{name: "each member of a filter selects", holds: sessionsFilters},
		{name: "members of a filter are combined by and", holds: sessionsCombined},
		{name: "Running selects what is pending under a live lease", holds: sessionsRunning, timed: true},
		{name: "pages are gapless, also among sessions created at one time", holds: sessionsPages},
		{name: "without a limit a reader gets 1,000", holds: sessionsDefault},
		{name: "a short id is the shortest unique suffix at its time", holds: sessionsShort},
		{name: "a session is found by its short id and by longer suffixes", holds: sessionsByShort},
	}
}

// listed returns the ids that f selects.
func (k *kit) listed(f stint.Filter) []stint.ID {
	k.Helper()
	rows, err := k.store.Sessions(k.ctx(), f)
	k.ok(err)
	ids := make([]stint.ID, 0, len(rows))
	for _, r := range rows {
		ids = append(ids, r.Session.ID)
	}
	return ids
}

// selects fails the property unless f selects exactly want, newest first.
func (k *kit) selects(f stint.Filter, want ...*course) {
	k.Helper()
	var ids []stint.ID
	for _, c := range want {
		ids = append(ids, c.id())
	}
	slices.SortFunc(ids, func(a, b stint.ID) int { return slices.Compare(b[:], a[:]) })
	if got := k.listed(f); !slices.Equal(got, ids) {
		k.Errorf("filter %s selects\n%v, want\n%v", text(f), got, ids)
	}
}

func sessionsAbsent(k *kit) {
	k.absent(newID())
	equal(k, "sessions", len(k.listed(stint.Filter{})), 0)
}

func sessionsAll(k *kit) {
	a := k.create()
	b := k.create()
	c := k.claimed(k.runner("r"))
	k.leave(c, ends())
	k.selects(stint.Filter{}, a, b, c)
	rows, err := k.store.Sessions(k.ctx(), stint.Filter{Limit: 1})
	k.ok(err)
	if len(rows) != 1 {
		k.Fatalf("%d rows, want 1", len(rows))
	}
	equal(k, "the row in the list", text(rows[0]), text(k.row(c.id())))
}

func labels(l map[string]string) change {
	return func(_ *stint.ID, c *journal.Created, _ *journal.Draft) { c.Labels = l }
}

func trigger(kind string) change {
	return func(_ *stint.ID, c *journal.Created, _ *journal.Draft) {
		c.Trigger = stint.Trigger{Kind: kind, Ref: "nightly", Due: clock(0)}
	}
}

func sessionsFilters(k *kit) {
	noon := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	k.runner("r")
	plain := k.create(createdAt(noon))
	other := k.create(agent("other", "exec"), named("weekly report"), trigger("schedule"), createdAt(noon.Add(time.Hour)),
		labels(map[string]string{"team": "a", "env": "prod"}))
	child := k.create(inFamily(plain.id()), labels(map[string]string{"team": "b", "env": "test", "empty": ""}), createdAt(noon.Add(2*time.Hour)))
	waiting, ended := k.claimed("r", createdAt(noon.Add(3*time.Hour))), k.claimed("r", createdAt(noon.Add(4*time.Hour)))
	k.leave(waiting, waits(stint.Wait{For: stint.ForOperator}))
	k.leave(ended, ends())

	k.selects(stint.Filter{Statuses: []stint.Status{stint.Pending}}, plain, other, child)
	k.selects(stint.Filter{Statuses: []stint.Status{stint.Waiting, stint.Completed}}, waiting, ended)
	k.selects(stint.Filter{Statuses: []stint.Status{stint.Failed, stint.Stopped, stint.Canceled, stint.Running}})
	k.selects(stint.Filter{Open: true}, plain, other, child, waiting)
	k.selects(stint.Filter{Agent: "other"}, other)
	k.selects(stint.Filter{Agent: "oth"})
	k.selects(stint.Filter{Name: "weekly report"}, other)
	k.selects(stint.Filter{Name: "weekly"})
	k.selects(stint.Filter{Name: "weekly%"})
	k.selects(stint.Filter{Family: plain.id()}, plain, child)
	k.selects(stint.Filter{Family: child.id()})
	k.selects(stint.Filter{Trigger: "schedule"}, other)
	k.selects(stint.Filter{Labels: map[string]string{"team": "a"}}, other)
	k.selects(stint.Filter{Labels: map[string]string{"team": "a", "env": "prod"}}, other)
	k.selects(stint.Filter{Labels: map[string]string{"team": "a", "env": "test"}})
	k.selects(stint.Filter{Labels: map[string]string{"empty": ""}}, child)
	k.selects(stint.Filter{Labels: map[string]string{"absent": ""}})
	k.selects(stint.Filter{Labels: map[string]string{}}, plain, other, child, waiting, ended)
	k.selects(stint.Filter{Text: "EKLY rep"}, other)
	k.selects(stint.Filter{Text: "eekly_rep"})
	k.selects(stint.Filter{Text: "weekly%"})
	k.selects(stint.Filter{Text: "the"}, other) // in its agent's name
	k.selects(stint.Filter{Text: "other", After: other.id()})
	k.selects(stint.Filter{Text: "other", Labels: map[string]string{"team": "a"}}, other)
	k.selects(stint.Filter{Text: "other", Labels: map[string]string{"team": "b"}})
	k.selects(stint.Filter{Text: "other", Since: noon.Add(time.Hour), Before: noon.Add(2 * time.Hour)}, other)
	k.selects(stint.Filter{Labels: map[string]string{"team": "b"}, Since: noon}, child)
	k.selects(stint.Filter{Labels: map[string]string{"team": "b"}, After: waiting.id()}, child)
	k.selects(stint.Filter{Labels: map[string]string{"team": "b"}, After: child.id()})
	k.selects(stint.Filter{Since: noon.Add(2 * time.Hour)}, child, waiting, ended)
	k.selects(stint.Filter{Since: noon.Add(2*time.Hour + time.Microsecond)}, waiting, ended)
	k.selects(stint.Filter{Before: noon.Add(2 * time.Hour)}, plain, other)
	k.selects(stint.Filter{Since: noon.Add(time.Hour), Before: noon.Add(3 * time.Hour)}, other, child)
	k.selects(stint.Filter{Since: noon.Add(time.Hour).In(time.FixedZone("z", 7200)), Before: noon.Add(2 * time.Hour)}, other)
	k.selects(stint.Filter{Limit: 2}, waiting, ended)
	k.selects(stint.Filter{After: child.id()}, plain, other)
	k.selects(stint.Filter{Statuses: []stint.Status{stint.Waiting, stint.Completed, stint.Pending}, Limit: 3}, ended, waiting, child)
	k.selects(stint.Filter{Statuses: []stint.Status{stint.Waiting, stint.Completed, stint.Pending}, After: waiting.id(), Limit: 2}, child, other)
	live := k.claimed("r", createdAt(noon.Add(5*time.Hour)))
	k.selects(stint.Filter{Statuses: []stint.Status{stint.Pending, stint.Running}}, plain, other, child, live)
	k.selects(stint.Filter{Statuses: []stint.Status{stint.Pending, stint.Running}, Limit: 2}, live, child)
}

func sessionsCombined(k *kit) {
	k.runner("r")
	a, b := k.create(agent("a", "exec"), named("x")), k.create(agent("a", "exec"), named("y"))
	c := k.create(agent("b", "exec"), named("x"))
	d := k.claimed("r", agent("a", "exec"), named("x"))
	k.leave(d, ends())
	k.selects(stint.Filter{Agent: "a", Name: "x"}, a, d)
	k.selects(stint.Filter{Agent: "a", Name: "x", Open: true}, a)
	k.selects(stint.Filter{Agent: "a", Statuses: []stint.Status{stint.Pending}}, a, b)
	k.selects(stint.Filter{Name: "x", After: d.id()}, a, c)
	k.selects(stint.Filter{Name: "x", After: d.id(), Limit: 1}, c)
	k.selects(stint.Filter{Agent: "b", Name: "y"})
}

func sessionsRunning(k *kit) {
	free, held, parked := k.create(), k.claimed(k.runner("r")), k.claimed("r")
	k.write(parked, waits(stint.Wait{For: stint.ForApproval}))
	running := stint.Filter{Statuses: []stint.Status{stint.Running}}
	k.selects(running, held)
	k.selects(stint.Filter{Statuses: []stint.Status{stint.Running, stint.Waiting}}, held, parked)
	k.selects(stint.Filter{Statuses: []stint.Status{stint.Pending}}, free, held)
	k.pass(time.Minute)
	k.selects(running)
	lost, err := k.store.Renew(k.ctx(), time.Minute, []stint.Lease{held.lease})
	k.ok(err)
	equal(k, "lost leases", len(lost), 0)
	k.selects(running, held)
}

func sessionsPages(k *kit) {
	at := clock(0)
	want := make([]stint.ID, 0, 23)
	for range cap(want) {
		want = append(want, k.create(createdAt(at)).id())
	}
	slices.Reverse(want)
	var got []stint.ID
	for page := (stint.Filter{Limit: 5}); len(got) <= len(want); page.After = got[len(got)-1] {
		ids := k.listed(page)
		if len(ids) == 0 {
			break
		}
		if len(ids) > 5 {
			k.Fatalf("a page of 5 has %d sessions", len(ids))
		}
		got = append(got, ids...)
	}
	if !slices.Equal(got, want) {
		k.Errorf("the pages have %d sessions\n%v, want %d\n%v", len(got), got, len(want), want)
	}
}

func sessionsDefault(k *kit) {
	const creators, each = 11, 91
	var wg sync.WaitGroup
	for range creators {
		wg.Go(func() {
			for range each {
				if _, err := k.store.Create(k.ctx(), k.begin(), stint.Claim{}); err != nil {
					k.Errorf("create: %v", err)
					return
				}
			}
		})
	}
	wg.Wait()
	equal(k, "sessions", len(k.listed(stint.Filter{})), 1_000)
	equal(k, "sessions, where more are asked for", len(k.listed(stint.Filter{Limit: 2_000})), creators*each)
}

// crafted returns an id that ends with the low bits of tail; n makes it differ.
func crafted(n byte, tail uint32) stint.ID {
	id := stint.ID{0: 1, 1: n, 6: 0x70, 8: 0x80}
	binary.BigEndian.PutUint32(id[12:], tail)
	return id
}

func sessionsShort(k *kit) {
	const plain = 0b00000_00001_00001_00001_00001 // five characters
	for i, s := range []struct {
		tail uint32
		want int
	}{
		{plain, 4},
		{plain ^ 0b00011<<15, 4}, // differs in the fourth from the right
		{plain ^ 0b00010<<20, 5}, // in the fifth
		{plain ^ 0b00011<<20, 5},
		{plain ^ 0b00011<<20, 23}, // in the time alone
		{plain ^ 1, 4},
	} {
		c := k.create(withID(crafted(byte(2+i), s.tail)))
		full := c.id().String()
		equal(k, "short id of the "+full, k.row(c.id()).Short, full[len(full)-s.want:])
	}
	equal(k, "the first one's short id, kept", len(k.row(crafted(2, plain)).Short), 4)
}

func sessionsByShort(k *kit) {
	const tail = 0b00000_00001_00001_00001_00001
	a := k.create(withID(crafted(1, tail)))
	b := k.create(withID(crafted(2, tail|1<<20)))
	other := k.create(withID(crafted(3, 0)))
	full := other.id().String()
	k.selects(stint.Filter{Short: k.row(other.id()).Short}, other)
	k.selects(stint.Filter{Short: full[len(full)-9:]}, other)
	k.selects(stint.Filter{Short: full}, other)
	k.selects(stint.Filter{Short: k.row(b.id()).Short}, b)
	k.selects(stint.Filter{Short: a.id().String()[26-5:]}, a)
	k.selects(stint.Filter{Short: full[len(full)-3:]})
	k.selects(stint.Filter{Short: "%" + full[len(full)-4:]})
	k.selects(stint.Filter{Short: "zzzz"})
	// What was unique when a was created is the end of b's id too: the reader
	// prefers the row that has it as its short id.
	k.selects(stint.Filter{Short: k.row(a.id()).Short}, a, b)
}
