package stream

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/view"
)

// entryPage is how many entries of a session are read at once.
const entryPage = 256

// journal is the stream of one session.
type journal struct {
	hub    *hub
	client *client
	row    stint.Row
	asked  spot
	at     spot // behind the newest entry that was written
	moved  bool // what was asked for is no place at all
}

func readSession(h *hub, r *http.Request, q url.Values) (source, *client, error) {
	if err := strictly(q, []string{"after"}, nil); err != nil {
		return nil, nil, err
	}
	row, place, err := view.Find(r.Context(), h.Store, r.PathValue("id"), time.Now())
	if err == nil && place != (view.Place{Line: -1, Loop: -1}) {
		e := stint.Invalid.Errorf("events", "events are of a whole session")
		e.Hint = "leave out the line and the loop"
		err = e
	}
	if err != nil {
		return nil, nil, err
	}
	s := &journal{hub: h, client: newClient(row.Session.ID), row: row}
	if text, header := resumes(r, q); text != "" {
		if s.asked, err = parseSpot(text); err != nil && !header {
			return nil, nil, err
		}
		s.moved = err != nil // a browser would not come back after a refusal
	}
	return s, s.client, nil
}

func (s *journal) place() string { return s.at.String() }

// begin implements [source].
func (s *journal) begin(ctx context.Context) (string, Notice, error) {
	found, err := s.find(ctx)
	if err != nil {
		return "", Notice{}, err
	}
	if found {
		return nameReady, Notice{Schema: SchemaNotice, Cursor: s.place()}, nil
	}
	s.at = spotOf(s.row.Session.Head, s.row.Session.HeadHash)
	return nameResync, Notice{Schema: SchemaNotice, Reason: string(moved), Text: movedText, Cursor: s.place()}, nil
}

// find makes at the place that was asked for, and reports false where the session as it
// is has no such place.
func (s *journal) find(ctx context.Context) (bool, error) {
	ses := &s.row.Session
	hash := stint.Hash{}
	switch {
	case s.moved || s.asked.seq > ses.Head:
		return false, nil
	case s.asked.seq == ses.Head:
		hash = ses.HeadHash
	case s.asked.seq > 0:
		es, err := s.hub.Store.Entries(ctx, stint.Range{Session: ses.ID, After: s.asked.seq - 1, Until: s.asked.seq, Limit: 1})
		if err != nil {
			return false, err
		}
		if len(es) != 1 {
			return false, nil
		}
		hash = es[0].Hash
	}
	s.at = spotOf(s.asked.seq, hash)
	return s.asked.check == "" || s.asked == s.at, nil
}

// catchUp implements [source]: what was committed before the hub knew of the client is
// read here, what comes after it waits there, and what is both is told by its seq.
func (s *journal) catchUp(ctx context.Context, o *out) error {
	if s.hub.attachSession(s.client, s.at.seq) {
		return nil
	}
	for {
		s.hub.renew(s.client)
		for more := true; more; {
			es, err := s.hub.Store.Entries(ctx, stint.Range{Session: s.client.session, After: s.at.seq, Limit: entryPage})
			if err != nil {
				return err
			}
			for i := range es {
				it := newItem(&es[i], "")
				if err := s.write(o, it); err != nil {
					return err
				}
			}
			if err := o.flush(); err != nil {
				return err
			}
			more = len(es) == entryPage
		}
		if s.hub.caughtUp(s.client) {
			return nil
		}
	}
}

func (s *journal) write(o *out, it *item) error {
	event, err := it.text()
	if err != nil {
		return err
	}
	s.at = it.at
	return o.add(event)
}

// more implements [source].
func (s *journal) more(_ context.Context, o *out, items []*item, _ string) error {
	for _, it := range items {
		if it.at.seq <= s.at.seq {
			continue // it was read from the store
		}
		if err := s.write(o, it); err != nil {
			return err
		}
	}
	return nil
}
