package view

import (
	"context"
	"errors"
	"time"
	"unicode/utf8"

	"github.com/stint-dev/stint"
)

// Entries returns the entries that the options choose, oldest first: the newest Tail of
// them, or without that the first Limit of them, or all. Grep and the options about words
// are not looked at. more reports whether there are others: behind the last one, or with
// Tail before the first one.
func (l *Log) Entries(ctx context.Context, now time.Time) (out Entries, more bool, err error) {
	out = Entries{Schema: SchemaEntries, Now: whole(now), Session: l.row.Session.ID, Items: []Entry{}}
	q, tail, most := l.opt.Query, 0, l.opt.Limit
	if q.Until == 0 || q.Until > l.row.Session.Head {
		q.Until = l.row.Session.Head
	}
	if l.opt.Tail > 0 {
		tail, most = l.opt.Tail+1, l.opt.Tail // one more tells whether there are
	}
	var found []stint.Entry
	err = q.read(ctx, l.src, l.row.Session.ID, tail, all, func(e *stint.Entry) error {
		if found = append(found, *e); most > 0 && len(found) > most {
			more = true
			return errEnough
		}
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return out, false, err
	}
	switch {
	case more && tail > 0:
		found = found[1:]
	case more:
		found = found[:most]
	}
	for i := range found {
		item := NewEntry(&found[i])
		item.Schema = ""
		if item.Body != nil && l.opt.Body > 0 {
			if err := l.bodies.begin(ctx, &found[i], item.Body, l.opt.Body); err != nil {
				return out, false, err
			}
		}
		out.Items, out.Cursor = append(out.Items, item), &found[i].Seq
	}
	return out, more, nil
}

// errEnough ends a reading.
var errEnough = errors.New("enough")

func all(*stint.Entry) (bool, error) { return true, nil }

// begin puts the first most bytes of the body of e into to, whole if there are no more.
func (b bodies) begin(ctx context.Context, e *stint.Entry, to *payload, most int) error {
	body, found, err := b.maybe(ctx, e)
	if err != nil {
		return err
	}
	if to.Missing = !found; !found {
		return nil
	}
	if len(body) <= most {
		to.fill(body)
		return nil
	}
	to.Cut = true
	head := body[:most]
	for i := 0; i < utf8.UTFMax && !utf8.Valid(head); i++ { // not in the middle of a character
		head = head[:len(head)-1]
	}
	if !utf8.Valid(head) {
		to.fill(body[:most])
		return nil
	}
	text := string(head)
	to.Text = &text
	return nil
}
