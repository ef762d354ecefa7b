package server_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/internal/server"
	"github.com/stint-dev/stint/journal"
	"github.com/stint-dev/stint/store/mem"
)

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// office takes orders that begin with its word.
type office struct {
	word string
	sys  *engine.System

	mu    sync.Mutex
	heard []string
	fail  []error // what it says to the next ones
}

func (o *office) Obey(ctx context.Context, m *stint.Message) (bool, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !strings.HasPrefix(string(m.Body), `"`+o.word) {
		return false, nil
	}
	o.heard = append(o.heard, strings.Trim(string(m.Body), `"`))
	if len(o.fail) > 0 {
		err := o.fail[0]
		o.fail = o.fail[1:]
		if err != nil {
			return true, err
		}
	}
	return true, o.sys.Record(ctx, engine.Note{What: "office.done", Actor: m.From, Takes: m})
}

func (o *office) list() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.heard)
}

// hall is a store with a server that takes orders.
type hall struct {
	*testing.T
	store *mem.Store
	id    stint.ID
	front *office
	back  *office
	log   strings.Builder
	end   context.CancelFunc
	ended chan error
}

// opened starts taking orders. change may be nil.
func opened(t *testing.T, change func(*server.Orders)) *hall {
	h := &hall{T: t, store: mem.New(), ended: make(chan error, 1)}
	e, err := engine.New(t.Context(), h.store, engine.Options{Holder: "server"})
	if err != nil {
		t.Fatal(err)
	}
	sys, err := e.System(t.Context(), func(error) {})
	if err != nil {
		t.Fatal(err)
	}
	if h.id, err = engine.SystemJournal(t.Context(), h.store); err != nil {
		t.Fatal(err)
	}
	h.front, h.back = &office{word: "front", sys: sys}, &office{word: "back", sys: sys}
	o := server.Orders{System: sys, Obeyers: []server.Obeyer{h.front, h.back}, Log: slog.New(slog.NewTextHandler(&h.log, nil))}
	if change != nil {
		change(&o)
	}
	ctx, cancel := context.WithCancel(t.Context())
	h.end = cancel
	go func() { h.ended <- o.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := errors.Join(sys.Close(), e.Close(), h.store.Close()); err != nil && !errors.Is(err, stint.Fenced) {
			t.Error(err)
		}
	})
	return h
}

func (h *hall) say(words ...string) {
	h.Helper()
	for _, w := range words {
		m := stint.Message{ID: w, Kind: stint.Prompt, From: "human:ana", Body: []byte(`"` + w + `"`)}
		if err := h.store.Send(h.Context(), h.id, m); err != nil {
			h.Fatal(err)
		}
	}
}

// noted is what the journal says was taken, and what came of it.
func (h *hall) noted() (all []string) {
	h.Helper()
	es, err := h.store.Entries(h.Context(), stint.Range{Session: h.id, Kinds: []stint.Kind{stint.MessageTaken, stint.SystemRecorded}, Limit: 1000})
	if err != nil {
		h.Fatal(err)
	}
	taken := ""
	for i := range es {
		if es[i].Kind == stint.MessageTaken {
			d, err := journal.Decode[journal.Taken](&es[i])
			if err != nil {
				h.Fatal(err)
			}
			taken = d.ID
			continue
		}
		d, err := journal.Decode[journal.Recorded](&es[i])
		if err != nil {
			h.Fatal(err)
		}
		all = append(all, fmt.Sprintf("%s %s by %s", taken, d.What, es[i].Actor))
	}
	return all
}

func (h *hall) wants(want ...string) {
	h.Helper()
	if got := h.noted(); !slices.Equal(got, want) {
		h.Errorf("the journal has\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if in, err := h.store.Inbox(h.Context(), h.id); err != nil || len(in) > 0 {
		h.Errorf("%d orders are left, %v", len(in), err)
	}
}

// Orders are obeyed in the order in which they came, whoever they are for, and what nobody
// knows is recorded as that.
func TestOrdersKeepTheirOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := opened(t, nil)
		h.say("front-1", "back-1", "nobody", "front-2")
		<-time.After(2 * time.Second)
		h.wants("front-1 office.done by human:ana", "back-1 office.done by human:ana", "nobody order.refused by human:ana", "front-2 office.done by human:ana")
		if !strings.Contains(h.log.String(), "from=human:ana id=nobody") {
			t.Errorf("the log says\n%s", h.log.String())
		}
		h.end()
		if err := <-h.ended; err != nil {
			t.Error(err)
		}
	})
}

// What could not be done now is tried again, and nothing overtakes it.
func TestOrdersAreTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := opened(t, nil)
		h.front.fail = []error{stint.Unavailable.Errorf("store", "the disk is full"), stint.Unavailable.Errorf("store", "the disk is full")}
		h.say("front-1", "back-1")
		<-time.After(1500 * time.Millisecond)
		if heard := h.back.list(); len(heard) > 0 {
			t.Errorf("%q overtook what came before", heard)
		}
		<-time.After(2 * time.Second)
		h.wants("front-1 office.done by human:ana", "back-1 office.done by human:ana")
		if got := h.front.list(); !slices.Equal(got, []string{"front-1", "front-1", "front-1"}) {
			t.Errorf("it was tried as %q", got)
		}
		if n := strings.Count(h.log.String(), "the disk is full"); n != 2 {
			t.Errorf("%d failures are in the log:\n%s", n, h.log.String())
		}
	})
}

// What will never go well is refused with the reason, and does not stand in the way of
// what came behind it.
func TestOrdersThatCannotBeDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := opened(t, nil)
		h.front.fail = []error{stint.Corrupt.Errorf("schedule", "a line cannot be read"), errors.New("a fault")}
		h.say("front-1", "front-2", "back-1")
		<-time.After(2 * time.Second)
		h.wants("front-1 order.refused by human:ana", "front-2 order.refused by human:ana", "back-1 office.done by human:ana")
		if log := h.log.String(); !strings.Contains(log, "a line cannot be read") || !strings.Contains(log, "a fault") {
			t.Errorf("the log says\n%s", log)
		}
	})
}

// A server that lost the right to record takes no orders: another one does.
func TestOrdersEndWhenFenced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := opened(t, nil)
		h.front.fail = []error{&stint.Error{Code: stint.Fenced, Op: "serve", Err: errors.New("another process has it")}}
		h.say("front-1", "back-1")
		select {
		case err := <-h.ended:
			if stint.CodeOf(err) != stint.Fenced {
				t.Errorf("it ended with %v", err)
			}
		case <-time.After(time.Minute):
			t.Error("it goes on")
		}
		if heard := h.back.list(); len(heard) > 0 {
			t.Errorf("%q was done without the right to record it", heard)
		}
	})
}

// A change in the store has the orders looked at soon, but not at each of many changes.
func TestOrdersGatherChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		changed := make(chan struct{}, 1)
		h := opened(t, func(o *server.Orders) { o.Changed = changed })
		synctest.Wait()
		<-time.After(100 * time.Millisecond)
		changed <- struct{}{}
		synctest.Wait()
		h.say("front-1")
		<-time.After(49 * time.Millisecond)
		if heard := h.front.list(); len(heard) > 0 {
			t.Errorf("%q: it looked at once, as it would at each commit of a busy store", heard)
		}
		<-time.After(2 * time.Millisecond)
		h.wants("front-1 office.done by human:ana")
	})
}
