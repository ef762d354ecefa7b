package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/internal/ident"
	"github.com/stint-dev/stint/internal/server"
	"github.com/stint-dev/stint/internal/trigger"
	"github.com/stint-dev/stint/journal"
	"github.com/stint-dev/stint/store/sqlite"
)

// answerTime is how long a server may take to do what it is asked.
const answerTime = 15 * time.Second

// order asks something of the server of a store, by a message to the system journal, and
// returns what the server recorded. Where no server runs, this process takes its place
// for as long as that takes; own then makes who obeys. What is refused is
// [stint.Conflict] with the reason.
func (a *app) order(ctx context.Context, s *site, body any, own owner) (journal.Recorded, error) {
	if err := a.mayOrder(); err != nil {
		return journal.Recorded{}, err
	}
	b, err := json.Marshal(body)
	if err != nil {
		return journal.Recorded{}, err
	}
	if s.server != nil {
		done, err := s.server.Order(ctx, b)
		return journal.Recorded{What: done.What, Name: done.Name, Reason: done.Reason, Data: done.Data}, err
	}
	m := stint.Message{ID: "order-" + ident.New().String(), Kind: stint.Prompt, From: a.actor(), Body: b}
	return ask(ctx, s.db, m, func(ctx context.Context) error { return a.obeyAlone(ctx, s, m.ID, own) })
}

// owner makes who obeys in a process that serves for a moment.
type owner func(ctx context.Context, v *serving) (server.Obeyer, error)

// ask sends a message to a store's system journal and returns what a server records of it.
// before is done between the two.
func ask(ctx context.Context, store *sqlite.Store, m stint.Message, before func(context.Context) error) (journal.Recorded, error) {
	to, err := engine.SystemJournal(ctx, store)
	if err != nil {
		return journal.Recorded{}, err
	}
	row, err := store.Session(ctx, to)
	if err != nil {
		return journal.Recorded{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	if err := store.Send(ctx, to, m); err != nil {
		return journal.Recorded{}, err
	}
	if err := before(ctx); err != nil {
		return journal.Recorded{}, err
	}
	return answered(ctx, store, to, row.Session.Head, m.ID)
}

// mayOrder refuses what comes out of a session: an agent does not change the server that
// runs it.
func (a *app) mayOrder() error {
	sessions, served := a.startedBy()
	if len(sessions) == 0 && !served {
		return nil
	}
	e := stint.Denied.Errorf("order", "this process was started by an agent, and an agent does not change the server that runs it")
	e.Hint = "a person does, in a shell of their own"
	return e
}

// obeyAlone does what the message asks if nobody serves.
func (a *app) obeyAlone(ctx context.Context, s *site, id string, own owner) error {
	w := s.wire(nil)
	defer w.close()
	v := &serving{app: a, site: s, wiring: w, options: &serveOptions{}, log: slog.New(slog.DiscardHandler)}
	file, err := a.readApplied()
	if err != nil { // the store knows what is asked about
		file = newApplied()
	}
	err = v.begin(ctx, 0, func(error) {})
	if stint.CodeOf(err) == stint.Conflict {
		return nil // somebody serves
	}
	if err != nil {
		return err
	}
	v.now.Store(file)
	err = v.obeyOne(ctx, id, own)
	return errors.Join(err, v.system.Close(), v.engine.Close())
}

// obeyOne has one message obeyed. What is not done now is not left for a server that may
// come much later, after whoever asked was told that it failed.
func (v *serving) obeyOne(ctx context.Context, id string, own owner) error {
	in, err := v.system.Inbox(ctx)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(in, func(m stint.Message) bool { return m.ID == id })
	if i < 0 {
		return nil
	}
	orders := server.Orders{System: v.system, Log: v.log}
	who, err := own(ctx, v)
	if err != nil {
		return errors.Join(err, orders.Refuse(ctx, &in[i], err.Error()))
	}
	orders.Obeyers = []server.Obeyer{who}
	return orders.Obey(ctx, &in[i])
}

// ownScheduler is the scheduler of a process that serves for a moment: it knows the
// schedules of the stint.yaml here, and leaves all others as they are.
func ownScheduler(ctx context.Context, v *serving) (server.Obeyer, error) {
	file := v.now.Load()
	held, err := trigger.ReadHeld(v.system.State(trigger.Section))
	if err != nil {
		return nil, err
	}
	for name := range file.file.Schedules {
		delete(held, name)
	}
	return v.scheduler, v.scheduler.Set(ctx, file.schedules(v.wiring), slices.Collect(maps.Keys(held))...)
}

// ownTokens are the tokens of a process that serves for a moment.
func ownTokens(_ context.Context, v *serving) (server.Obeyer, error) { return v.tokens, nil }

// answered waits for what a server records of a message that was sent when the system
// journal had come to after.
func answered(ctx context.Context, store *sqlite.Store, to stint.ID, after stint.Seq, id string) (journal.Recorded, error) {
	changed := store.Changed(ctx)
	for first := true; ; first = false {
		es, err := store.Entries(ctx, stint.Range{Session: to, After: after, Kinds: []stint.Kind{stint.MessageTaken, stint.SystemRecorded}, Limit: 1000})
		if err != nil {
			return journal.Recorded{}, late(ctx, err)
		}
		if done, found, err := answerIn(es, id); found || err != nil {
			return done, err
		}
		if first {
			done, found, err := answeredBefore(ctx, store, to, after, id)
			if found || err != nil {
				return done, err
			}
		}
		select {
		case <-ctx.Done():
			return journal.Recorded{}, late(ctx, ctx.Err())
		case <-changed:
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// answerIn finds the answer to a message: what is recorded right after it was taken. One
// that refuses is [stint.Conflict].
func answerIn(es []stint.Entry, id string) (done journal.Recorded, found bool, err error) {
	_, done, found, err = engine.SystemAnswer(es, id)
	if err == nil && strings.HasSuffix(done.What, ".refused") {
		err = stint.Conflict.Errorf("order", "it was refused: %s", done.Reason)
	}
	return done, found, err
}

// answeredBefore finds the answer to a message that had come before: one that is sent
// again under its id waits for nobody.
func answeredBefore(ctx context.Context, store *sqlite.Store, to stint.ID, until stint.Seq, id string) (done journal.Recorded, found bool, err error) {
	in, err := store.Inbox(ctx, to)
	if err != nil || slices.ContainsFunc(in, func(m stint.Message) bool { return m.ID == id }) {
		return done, false, err
	}
	for until > 0 {
		es, err := store.Entries(ctx, stint.Range{Session: to, Until: until, Kinds: []stint.Kind{stint.MessageTaken, stint.SystemRecorded}, Last: true, Limit: 1000})
		if err != nil || len(es) < 2 {
			return done, false, err
		}
		if done, found, err := answerIn(es, id); found || err != nil {
			return done, found, err
		}
		until = es[0].Seq // the pages overlap, so that no answer stands apart from its message
	}
	return done, false, nil
}

// late says that there was no answer in time.
func late(ctx context.Context, err error) error {
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return err
	}
	return &stint.Error{Code: stint.Unavailable, Op: "order", Err: fmt.Errorf("the server did not do it within %v", answerTime),
		Hint: "it stays in its inbox, and is done when the server gets to it; look at the server's log"}
}
