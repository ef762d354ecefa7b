package storetest

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/journal"
)

func feedProperties() []property {
	return []property{
		{name: "the feed has the entries of all sessions in the order of their commits", holds: feedOrder},
		{name: "entries of the feed are as those of their sessions", holds: feedEntries},
		{name: "the feed goes on behind any cursor, in steps of any size", holds: feedSteps},
		{name: "a limit of 0 gives the end, behind which only what is new comes", holds: feedEnd},
		{name: "the system journal is not in the feed", holds: feedSystem},
		{name: "what was refused is not in the feed", holds: feedRefused},
		{name: "cursors are short text, and the later is the greater", holds: feedCursors},
		{name: "what no store gives as a cursor is invalid", holds: feedInvalid},
		{name: "the cursor of another store is a conflict", holds: feedOther},
		{name: "who reads while many write misses nothing and sees nothing twice", holds: feedRace},
	}
}

// feed returns the feed of a store that has one, as a function that fails the
// property if the feed does.
func (k *kit) feed() func(after string, limit int) ([]stint.Entry, []string) {
	w, ok := k.store.(stint.Watcher)
	if !ok {
		return nil
	}
	return func(after string, limit int) ([]stint.Entry, []string) {
		k.Helper()
		es, cursors, err := w.Feed(k.ctx(), after, limit)
		k.ok(err)
		if len(es) > limit || len(cursors) != len(es)+1 {
			k.Fatalf("a limit of %d gives %d entries and %d cursors", limit, len(es), len(cursors))
		}
		return es, cursors
	}
}

// end is the cursor behind all that is in the feed.
func (k *kit) end() string {
	k.Helper()
	_, cursors := k.feed()("", 0)
	return cursors[0]
}

// place is where an entry stands, as text.
func place(e *stint.Entry) string { return fmt.Sprint(e.Session, "/", e.Seq) }

// places is where all of es stand.
func places(es []stint.Entry) []string {
	var all []string
	for i := range es {
		all = append(all, place(&es[i]))
	}
	return all
}

// step is a read of the feed: what came, and the cursors behind each and behind all.
type step struct {
	entries []stint.Entry
	cursors []string
}

// follows reads the feed behind after to its end, limit entries at a time.
func (k *kit) follows(after string, limit int) (steps []step) {
	k.Helper()
	feed := k.feed()
	for {
		es, cursors := feed(after, limit)
		next := cursors[len(es)]
		if next == after {
			if len(es) != 0 {
				k.Errorf("%d entries lie behind the cursor %q, which stays", len(es), after)
			}
			return steps
		}
		steps, after = append(steps, step{es, cursors}), next
		if len(steps) > 1000 {
			k.Fatalf("the feed has no end")
		}
	}
}

// all joins what came in steps.
func all(steps []step) (es []stint.Entry) {
	for _, s := range steps {
		es = append(es, s.entries...)
	}
	return es
}

// plaits writes entries of three sessions in turn and returns where they stand.
func (k *kit) plaits() (want []string) {
	k.Helper()
	r := k.runner("r")
	courses := []*course{k.claimed(r), k.claimed(r), k.claimed(r)}
	for _, c := range courses {
		want = append(want, fmt.Sprint(c.id(), "/", 1))
	}
	for i := range 9 {
		c := courses[i%len(courses)]
		from := c.s.Head
		k.write(c, said("one"), said("two"))
		for seq := from + 1; seq <= c.s.Head; seq++ {
			want = append(want, fmt.Sprint(c.id(), "/", seq))
		}
	}
	return want
}

func sameList(k *kit, what string, got, want []string) {
	k.Helper()
	if !slices.Equal(got, want) {
		k.Errorf("%s: %s\nwant %s", what, strings.Join(got, " "), strings.Join(want, " "))
	}
}

func feedOrder(k *kit) {
	if k.feed() == nil {
		return // it is part of Watcher
	}
	want := k.plaits()
	sameList(k, "the feed", places(all(k.follows("", 1000))), want)
}

func feedEntries(k *kit) {
	if k.feed() == nil {
		return // it is part of Watcher
	}
	c := k.claimed(k.runner("r"))
	k.write(c, said("a body"))
	k.leave(c, journal.Draft{Kind: stint.LimitChanged, Actor: "human:ann", Data: journal.LimitChanged{Limits: stint.Limits{Tokens: 9}}})
	got, want := all(k.follows("", 1000)), k.entries(stint.Range{Session: c.id()})
	if len(got) != len(want) {
		k.Fatalf("the feed has %d entries, want %d", len(got), len(want))
	}
	for i := range want {
		equal(k, "an entry of the feed", fmt.Sprintf("%+v", got[i]), fmt.Sprintf("%+v", want[i]))
	}
}

func feedSteps(k *kit) {
	if k.feed() == nil {
		return // it is part of Watcher
	}
	want := k.plaits()
	for limit := 1; limit <= len(want)+1; limit++ {
		steps := k.follows("", limit)
		sameList(k, fmt.Sprint("in steps of ", limit), places(all(steps)), want)
		seen := 0
		for _, s := range steps { // and again from each of the cursors
			for i, c := range s.cursors {
				behind := seen + min(i+1, len(s.entries))
				sameList(k, fmt.Sprint("behind ", behind), places(all(k.follows(c, 1000))), want[behind:])
			}
			seen += len(s.entries)
		}
	}
}

func feedEnd(k *kit) {
	feed := k.feed()
	if feed == nil {
		return // it is part of Watcher
	}
	empty := k.end()
	want := k.plaits()
	sameList(k, "behind the end of an empty feed", places(all(k.follows(empty, 1000))), want)
	end := k.end()
	_, same := feed(empty, 0)
	equal(k, "the end, by a cursor", same[0], end)
	equal(k, "entries behind the end", len(all(k.follows(end, 1000))), 0)
	c := k.create()
	sameList(k, "what is new behind the end", places(all(k.follows(end, 1000))), []string{fmt.Sprint(c.id(), "/", 1)})
}

func ofSystem(_ *stint.ID, c *journal.Created, _ *journal.Draft) { c.Trigger.Kind = "system" }

func feedSystem(k *kit) {
	feed := k.feed()
	if feed == nil {
		return // it is part of Watcher
	}
	var want []string
	for i := range 9 {
		if i%3 == 2 {
			want = append(want, fmt.Sprint(k.create().id(), "/", 1))
			continue
		}
		k.create(ofSystem)
	}
	for limit := 1; limit < 4; limit++ {
		sameList(k, fmt.Sprint("in steps of ", limit), places(all(k.follows("", limit))), want)
	}
	end := k.end()
	k.create(ofSystem)
	equal(k, "entries behind the end", len(all(k.follows(end, 1000))), 0)
}

func feedRefused(k *kit) {
	if k.feed() == nil {
		return // it is part of Watcher
	}
	c := k.claimed(k.runner("r"))
	b := k.follow(c, said("x"))
	stale := c.lease
	stale.Epoch++
	k.refused(k.append(stale, b), stint.Fenced)
	equal(k, "entries after one was refused", len(all(k.follows("", 1000))), 1)
	k.ok(k.append(c.lease, b))
	equal(k, "entries after it was written", len(all(k.follows("", 1000))), 1+len(b.Entries))
}

func feedCursors(k *kit) {
	if k.feed() == nil {
		return // it is part of Watcher
	}
	k.plaits()
	last := ""
	for _, s := range k.follows("", 1) {
		if s.cursors[0] <= last {
			k.Errorf("the cursor %q comes after %q and is not greater", s.cursors[0], last)
		}
		if last = s.cursors[0]; len(last) > 64 || strings.Trim(last, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-") != "" {
			k.Errorf("the cursor %q is not at most 64 letters, digits and dashes", last)
		}
	}
}

func feedInvalid(k *kit) {
	w, ok := k.store.(stint.Watcher)
	if !ok {
		return // it is part of Watcher
	}
	k.create()
	for _, after := range []string{"x", "0", "-1", " ", "0000", strings.Repeat("0", 64), strings.Repeat("9", 1000)} {
		for _, limit := range []int{0, 10} {
			es, cursors, err := w.Feed(k.ctx(), after, limit)
			k.refused(err, stint.Invalid)
			k.hint(err, "cursor")
			equal(k, "entries and cursors behind a refused one", len(es)+len(cursors), 0)
		}
	}
}

func feedOther(k *kit) {
	feed := k.feed()
	if feed == nil {
		return // it is part of Watcher
	}
	none := k.end()
	k.create()
	some := k.end()
	other := k.open(k.T)
	defer func() { k.ok(other.Close()) }()
	for _, after := range []string{none, some} {
		for _, limit := range []int{0, 10} {
			_, _, err := other.(stint.Watcher).Feed(k.ctx(), after, limit)
			k.refused(err, stint.Conflict)
			k.hint(err, "read what you need anew")
		}
	}
}

func feedRace(k *kit) {
	if k.feed() == nil {
		return // it is part of Watcher
	}
	r := k.runner("r")
	const writers, turns = 6, 40
	courses := make([]*course, writers)
	for i := range courses {
		courses[i] = k.claimed(r)
	}
	var wg sync.WaitGroup
	for _, c := range courses {
		wg.Go(func() {
			for range turns {
				b := k.follow(c, said("x"))
				if err := k.append(c.lease, b); err != nil {
					k.Errorf("append: %v", err)
					return
				}
				c.s = b.Session
			}
		})
	}
	heads, after, done := map[stint.ID]stint.Seq{}, "", make(chan struct{})
	go func() {
		wg.Wait()
		close(done)
	}()
	for written := false; ; {
		select {
		case <-done:
			written = true
		default:
		}
		es, cursors := k.feed()(after, 7)
		next := cursors[len(es)]
		for i := range es {
			if e := &es[i]; e.Seq != heads[e.Session]+1 {
				k.Fatalf("entry %s comes after %d", place(e), heads[e.Session])
			}
			heads[es[i].Session] = es[i].Seq
		}
		if next == after && written {
			break
		}
		if next == after {
			<-time.After(time.Millisecond)
		}
		after = next
	}
	for _, c := range courses {
		equal(k, "the newest entry in the feed", heads[c.id()], c.s.Head)
	}
}
