package stream

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/stint-dev/stint"
)

// filter selects rows.
type filter struct {
	statuses       []stint.Status // any of them; nil: all
	agent, trigger string         // empty: all
	labels         map[string]string
}

func readFilter(q url.Values) (f filter, err error) {
	if err := strictly(q, []string{"after", "agent", "trigger"}, []string{"status", "label"}); err != nil {
		return f, err
	}
	f.agent, f.trigger = q.Get("agent"), q.Get("trigger")
	all := []stint.Status{stint.Pending, stint.Running, stint.Waiting, stint.Completed, stint.Failed, stint.Stopped, stint.Canceled}
	for _, s := range q["status"] {
		if !slices.Contains(all, stint.Status(s)) {
			err := stint.Invalid.Errorf("events", "%.60q is no status", s)
			err.Hint = "there are pending, running, waiting, completed, failed, stopped and canceled; repeat the parameter for several"
			return f, err
		}
		f.statuses = append(f.statuses, stint.Status(s))
	}
	for _, l := range q["label"] {
		key, value, ok := strings.Cut(l, "=")
		if !ok || key == "" {
			return f, stint.Invalid.Errorf("events", "the label %.60q is not key=value", l)
		}
		if f.labels == nil {
			f.labels = map[string]string{}
		}
		f.labels[key] = value
	}
	return f, nil
}

// wants reports whether f selects r, and whether it may have or will, which hangs on
// the status alone: nothing else of a session that f looks at changes.
func (f *filter) wants(r *stint.Row) (now, ever bool) {
	s := &r.Session
	if f.agent != "" && f.agent != s.Agent.Name || f.trigger != "" && f.trigger != s.Trigger.Kind {
		return false, false
	}
	for key, value := range f.labels {
		if got, ok := s.Labels[key]; !ok || got != value {
			return false, false
		}
	}
	status, _ := r.Status()
	return f.statuses == nil || slices.Contains(f.statuses, status), true
}

// list is the stream of the board.
type list struct {
	hub    *hub
	client *client
	filter filter
	asked  string
	header bool // it is an id that a browser sent
	at     string
}

func readBoard(h *hub, r *http.Request, q url.Values) (source, *client, error) {
	f, err := readFilter(q)
	if err != nil {
		return nil, nil, err
	}
	b := &list{hub: h, client: newClient(stint.ID{}), filter: f}
	b.asked, b.header = resumes(r, q)
	return b, b.client, nil
}

func (b *list) place() string { return b.at }

// begin implements [source].
func (b *list) begin(ctx context.Context) (string, Notice, error) {
	_, end, err := b.hub.Store.Feed(ctx, b.asked, 0)
	code := stint.CodeOf(err)
	if code == stint.Conflict || code == stint.Invalid && b.header { // a browser would not come back after a refusal
		if _, end, err = b.hub.Store.Feed(ctx, "", 0); err == nil {
			b.at = end[0]
			return nameResync, Notice{Schema: SchemaNotice, Reason: string(moved), Text: movedText, Cursor: b.at}, nil
		}
	}
	if err != nil {
		return "", Notice{}, err
	}
	if b.at = b.asked; b.at == "" {
		b.at = end[0]
	}
	return nameReady, Notice{Schema: SchemaNotice, Cursor: b.at}, nil
}

// catchUp implements [source]. The hub does not know of the client before it has come
// as far as the ring.
func (b *list) catchUp(ctx context.Context, o *out) error {
	for !b.hub.attachBoard(b.client, b.at) {
		entries, cursors, err := b.hub.Store.Feed(ctx, b.at, feedPage)
		if err != nil {
			return err
		}
		items := make([]*item, 0, len(entries))
		for i := range entries {
			if it := newItem(&entries[i], cursors[i]); it.row {
				items = append(items, it)
			}
		}
		if err := b.more(ctx, o, items, cursors[len(entries)]); err != nil {
			return err
		}
		if err := o.flush(); err != nil {
			return err
		}
	}
	return nil
}

// more implements [source]. Of several items of one session the newest is enough: its
// row is the one that they led to.
func (b *list) more(ctx context.Context, o *out, items []*item, place string) error {
	newest := map[stint.ID]*item{}
	for _, it := range items {
		newest[it.id] = it
	}
	for _, it := range items {
		if newest[it.id] != it {
			continue
		}
		if err := b.write(ctx, o, it); err != nil {
			return err
		}
	}
	if place != "" {
		b.at = place
	}
	return nil
}

// write adds the row that an item led to.
func (b *list) write(ctx context.Context, o *out, it *item) error {
	r, err := b.hub.rows.get(ctx, b.hub.Store, it.id, it.at.seq)
	if err != nil {
		return err
	}
	now, ever := false, true
	if !r.gone {
		now, ever = b.filter.wants(&r.Row)
	}
	switch {
	case now:
		err = o.add(appendEvent(nil, nameSession, it.cursor, r.doc))
	case ever:
		err = o.event(nameGone, it.cursor, Gone{SchemaGone, it.id})
	}
	b.at = it.cursor
	return err
}
