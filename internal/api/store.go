package api

import (
	"bytes"
	"context"
	"net/http"
	"strings"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/internal/access"
	"github.com/stint-dev/stint/internal/access/guard"
	"github.com/stint-dev/stint/internal/jsonx"
	"github.com/stint-dev/stint/internal/trigger"
	"github.com/stint-dev/stint/internal/view"
	"github.com/stint-dev/stint/internal/wire"
	"github.com/stint-dev/stint/journal"
	"github.com/stint-dev/stint/policy"
)

const store = "store"

// Bounds of one answer. A client asks again where there is more.
const (
	maxRows         = 500
	maxStoreEntries = 1000
	maxStoreKeys    = 500
	maxStoreBytes   = 4 << 20  // of the bodies of entries and keys, but for the first
	maxInbox        = 64 << 20 // of the bodies of an inbox, which is one answer
)

// storeRoutes are what package client reads and sends through: the store itself, for
// programs of stint. The rows say what is needed to ask at all; what a message needs
// depends on what it says, and what is of the server's own journal is for auditors.
func (s *server) storeRoutes() {
	route := func(name string) access.Route {
		return access.Route{Method: http.MethodPost, Pattern: wire.Prefix + name, Scope: access.SessionsRead}
	}
	const about = "What a store has, whole, for the command line and package client of Go; others read /v1/sessions."
	addStore(s, route(wire.Session), "Read a session", about, s.storeSession)
	addStore(s, route(wire.Sessions), "Read sessions", about, s.storeSessions)
	addStore(s, route(wire.Entries), "Read entries", about, s.storeEntries)
	addStore(s, route(wire.Inbox), "Read an inbox", about, s.storeInbox)
	addStore(s, route(wire.Keys), "Read keys and ledgers", about, s.storeKeys)
	addStore(s, route(wire.State), "Read what the server's own journal comes to", about+" The schedules need no other scope; the rest needs admin.", s.storeState)
	addStore(s, route(wire.Answer), "Read what became of a message to the server itself", about+" Of one that another sent, it needs audit:read.", s.storeAnswer)
	send := route(wire.Send)
	send.MaxBody = promptBody
	addStore(s, send, "Send a message", "Its sender is who sends the request. A decision needs approvals:decide, anything else to a session sessions:run; to the server itself, what is about schedules and hooks needs triggers:fire, and the rest admin.", s.storeSend)
	addStore(s, route(wire.Settle), "Have a session that nobody runs act on its messages", "Needs sessions:run or approvals:decide besides.", s.storeSettle)
	add(s, operation{Route: route(wire.Blob), id: "storeBlob", tag: store, summary: "Read a body", about: about, content: "application/octet-stream"}, s.storeBlob)
}

type storeInput[I any] struct{ Body I }

// addStore registers a route whose answer is a document of package wire.
func addStore[I, O any](s *server, r access.Route, summary, about string, h func(context.Context, *I) (O, error)) {
	name := strings.TrimPrefix(r.Pattern, wire.Prefix)
	id := store + strings.ToUpper(name[:1]) + name[1:]
	add(s, operation{Route: r, id: id, tag: store, summary: summary, about: about, content: "application/json"}, func(ctx context.Context, in *storeInput[I]) (*bytesOutput, error) {
		out, err := h(ctx, &in.Body)
		if err != nil {
			return nil, err
		}
		var b bytes.Buffer
		err = view.WriteJSON(&b, out)
		return &bytesOutput{ContentType: "application/json", Body: b.Bytes()}, err
	})
}

// needs is [stint.Denied] unless who asks has one of the scopes.
func needs(ctx context.Context, what string, one ...access.Scope) error {
	who := guard.From(ctx)
	for _, scope := range one {
		if who.Can(scope) {
			return nil
		}
	}
	e := stint.Denied.Errorf("request", "%s has no scope %s, which %s needs", who.Name, one[0], what)
	e.Hint = "ask with a token that has it: stint token create --role ROLE NAME makes one"
	return e
}

// mayRead refuses the server's own journal, which says what each person did, to who may
// read sessions alone. What is not there is told by what reads it.
func (s *server) mayRead(ctx context.Context, id stint.ID) error {
	if guard.From(ctx).Can(access.AuditRead) {
		return nil
	}
	own, err := s.isOwn(ctx, id)
	if own {
		return needs(ctx, "the journal of the server itself", access.AuditRead)
	}
	return err
}

// notOwn refuses orders to the server's own journal as if it were a session: what is asked
// of the server has its own doors, which ask for other scopes.
func (s *server) notOwn(ctx context.Context, id stint.ID) error {
	own, err := s.isOwn(ctx, id)
	if own {
		return invalid("that is the journal of the server itself, which takes no orders as sessions do", "name a session")
	}
	return err
}

// isOwn reports whether a session is the server's own journal.
func (s *server) isOwn(ctx context.Context, id stint.ID) (bool, error) {
	system, err := engine.FindSystemJournal(ctx, s.Store)
	return !id.IsZero() && id == system, err
}

func (s *server) storeSession(ctx context.Context, in *wire.One) (stint.Row, error) {
	if err := s.mayRead(ctx, in.Session); err != nil {
		return stint.Row{}, err
	}
	return s.Store.Session(ctx, in.Session)
}

func (s *server) storeSessions(ctx context.Context, in *wire.Filter) (out wire.Rows, err error) {
	f := stint.Filter(*in)
	if f.Trigger == "system" {
		if err := needs(ctx, "the journal of the server itself", access.AuditRead); err != nil {
			return out, err
		}
	}
	f.Limit = page(f.Limit, maxRows)
	out.Rows, err = s.Store.Sessions(ctx, f)
	out.More = len(out.Rows) == maxRows
	return out, err
}

// page is how many are read at once of so many that are asked for.
func page(limit, most int) int {
	if limit <= 0 || limit > most {
		return most
	}
	return limit
}

func (s *server) storeEntries(ctx context.Context, in *wire.Range) (out wire.Journal, err error) {
	if err := s.mayRead(ctx, in.Session); err != nil {
		return out, err
	}
	r := stint.Range(*in)
	r.Limit = page(r.Limit, maxStoreEntries)
	es, err := s.Store.Entries(ctx, r)
	if err != nil {
		return out, err
	}
	out.More = len(es) == maxStoreEntries
	size := func(i int) int { return len(es[i].Data) + len(es[i].Body) }
	n, used := 0, 0
	for ; n < len(es); n++ {
		i := n
		if r.Last {
			i = len(es) - 1 - n
		}
		if used += size(i); used > maxStoreBytes && n > 0 {
			out.More = true
			break
		}
	}
	if es = es[:n]; r.Last {
		es = es[len(es)-n:]
	}
	for i := range es {
		out.Entries = append(out.Entries, wire.Entry(es[i]))
	}
	return out, nil
}

func (s *server) storeInbox(ctx context.Context, in *wire.One) (out wire.Messages, err error) {
	if err := s.mayRead(ctx, in.Session); err != nil {
		return out, err
	}
	all, err := s.Store.Inbox(ctx, in.Session)
	used := 0
	for i := range all {
		used += len(all[i].Data) + len(all[i].Body)
		out.Messages = append(out.Messages, wire.FromMessage(&all[i]))
	}
	if used > maxInbox {
		e := stint.Limit.Errorf("inbox", "%d messages with %d bytes wait, more than an answer has", len(all), used)
		e.Hint = "look at them where the store is, or let a runner take them"
		return wire.Messages{}, e
	}
	return out, err
}

func (s *server) storeKeys(ctx context.Context, in *wire.Like) (out wire.Ledger, err error) {
	if in.Like.Scope == "system" {
		if err := needs(ctx, "the journal of the server itself", access.AuditRead); err != nil {
			return out, err
		}
	}
	limit := in.Limit
	if limit == 0 {
		limit = 100
	}
	limit = page(limit, maxStoreKeys)
	keys, err := s.Store.Keys(ctx, in.Like.Key(), limit)
	for i := range keys {
		out.Keys = append(out.Keys, wire.FromKey(&keys[i]))
	}
	out.More = len(keys) == maxStoreKeys
	return out, err
}

func (s *server) storeBlob(ctx context.Context, in *storeInput[wire.Body]) (*bytesOutput, error) {
	if err := s.mayRead(ctx, in.Body.Family); err != nil {
		return nil, err
	}
	b, err := s.Store.Blob(ctx, in.Body.Family, in.Body.Ref)
	return &bytesOutput{ContentType: "application/octet-stream", Body: b}, err
}

// storeSend puts a message of who asks into an inbox.
func (s *server) storeSend(ctx context.Context, in *wire.Delivery) (wire.Done, error) {
	m := in.Message.Message()
	m.From = actor(ctx)
	if err := tooLong(len(m.Body)); err != nil {
		return wire.Done{}, err
	}
	if err := m.Check(); err != nil {
		return wire.Done{}, err
	}
	to := in.Session
	own, err := s.isOwn(ctx, to)
	if err != nil {
		return wire.Done{}, err
	}
	if own || to.IsZero() {
		if to, err = s.ownJournal(ctx); err == nil {
			err = mayOrder(ctx, &m)
		}
	} else {
		err = s.maySend(ctx, to, &m)
	}
	if err != nil {
		return wire.Done{}, err
	}
	return wire.Done{}, s.Store.Send(settled(ctx), to, m)
}

// ownJournal is the server's own journal, or [stint.NotFound].
func (s *server) ownJournal(ctx context.Context) (stint.ID, error) {
	id, err := engine.FindSystemJournal(ctx, s.Store)
	if err == nil && id.IsZero() {
		err = absent("journal of its own")
	}
	return id, err
}

// maySend checks a message to a session. The ids of decisions and of requests of the API
// are theirs: who takes one would keep the message that it belongs to from coming.
func (s *server) maySend(ctx context.Context, to stint.ID, m *stint.Message) error {
	switch m.Kind {
	case stint.Decision:
		if err := needs(ctx, "a decision", access.ApprovalsDecide); err != nil {
			return err
		}
		var d journal.Decision
		if err := jsonx.Decode(m.Data, &d); err != nil || m.ID != d.MessageID() {
			return invalid("the data of the message is no decision of its id", "stint approve and stint deny decide")
		}
		d.Roles = rolesOf(ctx) // whatever the sender says of itself
		if d.Each != "" {
			d.Each = actor(ctx)
		}
		data, err := stint.Marshal(d)
		if err != nil {
			return err
		}
		m.ID, m.Data = d.MessageID(), data
		row, err := s.Store.Session(ctx, to)
		if err == nil && s.MayDecide != nil {
			err = s.MayDecide(ctx, &row)
		}
		if err == nil && len(d.Branches) > 0 {
			err = s.desk().MayBranch(ctx, &row, actor(ctx))
		}
		return err
	case stint.Restart, stint.Rollback, stint.BranchOff:
		row, err := s.Store.Session(ctx, to)
		if err != nil {
			return err
		}
		var c journal.Command
		if err := jsonx.Decode(m.Data, &c); len(m.Data) > 0 && err != nil {
			return invalid("the data of the message is no command", "update the program that sends it")
		}
		ask, err := s.gate(ctx, &row, policy.Verb(m.Kind), &c, actor(ctx))
		if err != nil {
			return err
		}
		given := c.Ask != nil
		if c.Ask = ask; ask != nil || given { // whether and what is asked is not for the sender to say
			if m.Data, err = stint.Marshal(c); err != nil {
				return err
			}
		}
	case stint.Prompt, stint.Pause, stint.Resume, stint.Interrupt, stint.Stop, stint.Kill, stint.Resolve, stint.SetLimit:
	default:
		return invalid("it is no message of a kind that there is", "update the program that sends it, or the server")
	}
	if err := needs(ctx, "a message", access.SessionsRun); err != nil {
		return err
	}
	if strings.HasPrefix(m.ID, "decision-") || strings.HasPrefix(m.ID, "api:") {
		return invalid("the id of the message is one of the server's", "take another, such as a random one")
	}
	return nil
}

// mayOrder checks a message to the server itself. What is about schedules and hooks is read
// as strictly as it can be, and sent as it was read: nobody else reads something else.
func mayOrder(ctx context.Context, m *stint.Message) error {
	if m.Kind != stint.Prompt {
		return invalid("only a prompt is for the server itself", "name a session for anything else")
	}
	var schedule trigger.Command
	var hook trigger.HookCommand
	var read any
	switch {
	case jsonx.Decode(m.Body, &schedule) == nil && strings.HasPrefix(string(schedule.Verb), "schedule."):
		read = schedule
	case jsonx.Decode(m.Body, &hook) == nil && strings.HasPrefix(hook.Verb, "hook."):
		read = hook
	default:
		return needs(ctx, "an order to the server itself", access.Admin)
	}
	body, err := stint.Marshal(read)
	if err != nil {
		return err
	}
	m.Body = body
	return needs(ctx, "an order to a schedule or a hook", access.TriggersFire)
}

func (s *server) storeSettle(ctx context.Context, in *wire.One) (wire.Done, error) {
	if err := needs(ctx, "to settle a session", access.SessionsRun, access.ApprovalsDecide); err != nil {
		return wire.Done{}, err
	}
	if err := s.notOwn(ctx, in.Session); err != nil {
		return wire.Done{}, err
	}
	return wire.Done{}, s.Settler.Settle(settled(ctx), in.Session)
}

func (s *server) storeState(ctx context.Context, in *wire.Section) (out wire.Held, err error) {
	if in.Section != trigger.Section {
		if err := needs(ctx, "what is not about schedules", access.Admin); err != nil {
			return out, err
		}
	}
	id, err := s.ownJournal(ctx)
	if err != nil {
		return out, err
	}
	state, err := engine.SystemState(ctx, s.Store, id)
	out.State = state[in.Section]
	return out, err
}

func (s *server) storeAnswer(ctx context.Context, in *wire.Asked) (out wire.Recorded, err error) {
	id, err := s.ownJournal(ctx)
	if err != nil {
		return out, err
	}
	es, err := s.Store.Entries(ctx, stint.Range{Session: id, Kinds: []stint.Kind{stint.MessageTaken, stint.SystemRecorded}, Last: true, Limit: maxStoreEntries})
	if err != nil {
		return out, err
	}
	from, done, found, err := engine.SystemAnswer(es, in.Message)
	if err != nil || !found {
		return out, err
	}
	if from != actor(ctx) {
		if err := needs(ctx, "what another asked", access.AuditRead); err != nil {
			return out, err
		}
	}
	return wire.Recorded{Done: true, What: done.What, Name: done.Name, Reason: done.Reason, Data: done.Data}, nil
}
