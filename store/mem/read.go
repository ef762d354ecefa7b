package mem

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/stint-dev/stint"
)

// minShort is the least length of a short id.
const minShort = 4

// Session implements [stint.Reader].
func (s *Store) Session(_ context.Context, id stint.ID) (stint.Row, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.sessions[id]; r != nil {
		return s.row(r, now()), nil
	}
	return stint.Row{}, notFound("session", id)
}

func (s *Store) row(r *record, at time.Time) stint.Row {
	return stint.Row{Session: r.session, Short: r.short, Lease: r.lease, Live: s.live(r, at), Unread: len(r.inbox)}
}

// Sessions implements [stint.Reader]. Newest is by id, which sorts by creation.
func (s *Store) Sessions(_ context.Context, f stint.Filter) ([]stint.Row, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var rows []stint.Row
	for _, r := range s.sessions {
		if row := s.row(r, now()); selects(&f, &row) {
			rows = append(rows, row)
		}
	}
	slices.SortFunc(rows, func(a, b stint.Row) int { return bytes.Compare(b.Session.ID[:], a.Session.ID[:]) })
	return rows[:min(cmp.Or(f.Limit, 1_000), len(rows))], nil
}

// selects reports whether f wants row.
func selects(f *stint.Filter, row *stint.Row) bool {
	s := &row.Session
	status := func(want stint.Status) bool {
		return s.Status == want || want == stint.Running && s.Status == stint.Pending && row.Live
	}
	for name, value := range f.Labels {
		if got, ok := s.Labels[name]; !ok || got != value {
			return false
		}
	}
	return (f.Statuses == nil || slices.ContainsFunc(f.Statuses, status)) &&
		(!f.Open || !s.Status.Ended()) &&
		(!f.Asking || len(s.At.Approvals) > 0) &&
		(f.Agent == "" || f.Agent == s.Agent.Name) &&
		(f.Name == "" || f.Name == s.Name) &&
		(f.Short == "" || len(f.Short) >= minShort && strings.HasSuffix(s.ID.String(), f.Short)) &&
		(f.Family.IsZero() || f.Family == s.Family) &&
		(f.Trigger == s.Trigger.Kind || f.Trigger == "" && s.Trigger.Kind != "system") &&
		(f.Text == "" || strings.Contains(lower(s.Name+"\n"+s.Agent.Name), lower(f.Text))) &&
		(f.Since.IsZero() || !s.Created.Before(f.Since)) &&
		(f.Before.IsZero() || s.Created.Before(f.Before)) &&
		(f.After.IsZero() || bytes.Compare(s.ID[:], f.After[:]) < 0)
}

// lower makes ASCII letters small, and no others, as SQLite does.
func lower(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' {
			r += 'a' - 'A'
		}
		return r
	}, s)
}

// shortest returns the shortest suffix of id that no session's id has.
func (s *Store) shortest(id stint.ID) string {
	full, n := id.String(), minShort
	for other := range maps.Keys(s.sessions) {
		for o := other.String(); n < len(full) && strings.HasSuffix(o, full[len(full)-n:]); {
			n++
		}
	}
	return full[len(full)-n:]
}

// Entries implements [stint.Reader]. A session that is not there has none.
func (s *Store) Entries(_ context.Context, r stint.Range) ([]stint.Entry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var got []stint.Entry
	if rec := s.sessions[r.Session]; rec != nil {
		for _, e := range rec.entries {
			if e.Seq > r.After && (r.Until == 0 || e.Seq <= r.Until) && (r.Kinds == nil || slices.Contains(r.Kinds, e.Kind)) {
				got = append(got, e)
			}
		}
	}
	most := min(cmp.Or(r.Limit, 10_000), len(got))
	if r.Last {
		return got[len(got)-most:], nil
	}
	return got[:most], nil
}

// Inbox implements [stint.Reader]. A session that is not there has an empty one.
func (s *Store) Inbox(_ context.Context, id stint.ID) ([]stint.Message, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.sessions[id]; r != nil {
		return slices.Clone(r.inbox), nil
	}
	return nil, nil
}

// Keys implements [stint.Reader].
func (s *Store) Keys(_ context.Context, like stint.Key, limit int) ([]stint.Key, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var got []stint.Key
	for _, k := range s.keys {
		_, lives := s.taken(k, now())
		switch {
		case !lives || k.Scope != like.Scope:
		case like.Source == "" && k.Name == like.Name:
			return []stint.Key{k}, nil
		case like.Source != "" && k.Source == like.Source && (like.At.IsZero() || newerLine(like, k) < 0):
			k.Body = nil
			got = append(got, k)
		}
	}
	slices.SortFunc(got, newerLine)
	return got[:min(cmp.Or(limit, 100), len(got))], nil
}

// newerLine sorts the lines of a ledger.
func newerLine(a, b stint.Key) int {
	return cmp.Or(b.At.Compare(a.At), cmp.Compare(b.Name, a.Name))
}

// Send implements [stint.Sender]. Two sessions may get messages of one id. A message
// sent again is not judged again: it is no error that its first sending ended the
// session.
func (s *Store) Send(_ context.Context, id stint.ID, m stint.Message) error {
	if err := s.lock("send"); err != nil {
		return err
	}
	defer s.mu.Unlock()
	if err := nameless("send", &m); err != nil {
		return err
	}
	return s.send(id, m)
}

// nameless refuses a message without an id.
func nameless(op string, m *stint.Message) error {
	if m.ID == "" {
		return stint.Invalid.Errorf(op, "a message needs an id, made by its sender")
	}
	return nil
}

// send is Send for whoever has s.mu.
func (s *Store) send(id stint.ID, m stint.Message) error {
	r := s.sessions[id]
	if r == nil {
		return notFound("send", id)
	}
	for _, k := range m.Keys {
		if old, taken := s.taken(k, now()); taken && old.Digest == k.Digest {
			return nil
		} else if taken {
			return takenBy("send", id, old)
		}
	}
	if old, ok := r.sent[m.ID]; ok {
		if old.Kind == m.Kind && old.From == m.From && bytes.Equal(old.Data, m.Data) && bytes.Equal(old.Body, m.Body) {
			return nil
		}
		return refuse(stint.Conflict, "send", id, "give each message an id of its own; the first one stands",
			"message %q was sent before with other content", m.ID)
	}
	if err := r.session.Accepts(m.Kind); err != nil {
		return err
	}
	for _, k := range m.Keys {
		s.keys[[2]string{k.Scope, k.Name}] = k
	}
	m.At, m.To, m.Keys = now(), stint.ID{}, nil
	r.sent[m.ID], r.inbox = m, append(r.inbox, m)
	s.signal()
	return nil
}

// Changed implements [stint.Watcher].
func (s *Store) Changed(ctx context.Context) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	ch := make(chan struct{}, 1)
	s.watchers[ch] = true
	context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.watchers, ch)
		close(ch)
	})
	return ch
}

// signal tells the watchers. The caller has the lock.
func (s *Store) signal() {
	for ch := range s.watchers {
		select {
		case ch <- struct{}{}:
		default: // it has a value already
		}
	}
}

// Unread implements [stint.Watcher].
func (s *Store) Unread(_ context.Context, holder string) ([]stint.ID, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var ids []stint.ID
	for id, r := range s.sessions {
		if r.lease.Holder == holder && len(r.inbox) > 0 {
			ids = append(ids, id)
		}
	}
	return ids, nil
}
