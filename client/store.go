package client

import (
	"context"
	"net/http"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/wire"
)

// Session implements [stint.Reader].
func (c *Client) Session(ctx context.Context, id stint.ID) (stint.Row, error) {
	var row stint.Row
	err := c.store(ctx, wire.Session, wire.One{Session: id}, &row)
	return row, err
}

// Sessions implements [stint.Reader]. Many come in several answers, so that a session whose
// status changes meanwhile may be in it as it was, or as it is.
func (c *Client) Sessions(ctx context.Context, f stint.Filter) ([]stint.Row, error) {
	if f.Statuses != nil && len(f.Statuses) == 0 {
		return nil, nil
	}
	if f.Limit == 0 {
		f.Limit = 1_000
	}
	var all []stint.Row
	for {
		var got wire.Rows
		if err := c.store(ctx, wire.Sessions, wire.Filter(f), &got); err != nil {
			return nil, err
		}
		all = append(all, got.Rows...)
		n := len(got.Rows)
		if f.Limit -= n; !got.More || n == 0 || f.Limit <= 0 {
			return all, nil
		}
		f.After = got.Rows[n-1].Session.ID
	}
}

// Entries implements [stint.Reader].
func (c *Client) Entries(ctx context.Context, r stint.Range) ([]stint.Entry, error) {
	if r.Kinds != nil && len(r.Kinds) == 0 {
		return nil, nil
	}
	if r.Limit == 0 {
		r.Limit = 10_000
	}
	var all []stint.Entry
	for {
		var got wire.Journal
		if err := c.store(ctx, wire.Entries, wire.Range(r), &got); err != nil {
			return nil, err
		}
		n := len(got.Entries)
		es := make([]stint.Entry, 0, n+len(all))
		for i := range got.Entries {
			es = append(es, stint.Entry(got.Entries[i]))
		}
		if r.Last {
			all = append(es, all...)
		} else {
			all = append(all, es...)
		}
		if r.Limit -= n; !got.More || n == 0 || r.Limit <= 0 {
			return all, nil
		}
		if !r.Last {
			r.After = es[n-1].Seq
		} else if r.Until = es[0].Seq - 1; r.Until <= r.After { // and 0 would be no bound
			return all, nil
		}
	}
}

// Inbox implements [stint.Reader]. One with more than 64 MiB in it is [stint.Limit].
func (c *Client) Inbox(ctx context.Context, id stint.ID) ([]stint.Message, error) {
	var got wire.Messages
	if err := c.store(ctx, wire.Inbox, wire.One{Session: id}, &got); err != nil {
		return nil, err
	}
	var all []stint.Message
	for i := range got.Messages {
		all = append(all, got.Messages[i].Message())
	}
	return all, nil
}

// Keys implements [stint.Reader].
func (c *Client) Keys(ctx context.Context, like stint.Key, limit int) ([]stint.Key, error) {
	if limit == 0 {
		limit = 100
	}
	var all []stint.Key
	for {
		var got wire.Ledger
		if err := c.store(ctx, wire.Keys, wire.Like{Like: wire.FromKey(&like), Limit: limit}, &got); err != nil {
			return nil, err
		}
		for i := range got.Keys {
			all = append(all, got.Keys[i].Key())
		}
		n := len(got.Keys)
		if limit -= n; !got.More || n == 0 || limit <= 0 {
			return all, nil
		}
		like.At, like.Name = got.Keys[n-1].At, got.Keys[n-1].Name
	}
}

// Blob implements [stint.Blobs].
func (c *Client) Blob(ctx context.Context, family stint.ID, ref stint.BlobRef) ([]byte, error) {
	b, _, err := c.send(ctx, request{method: http.MethodPost, path: wire.Prefix + wire.Blob, body: wire.Body{Family: family, Ref: ref}, again: true})
	if err == nil && int64(len(b)) != ref.Size {
		return nil, stint.Corrupt.Errorf("blob", "%s answers with %d bytes for a body of %d", c.name, len(b), ref.Size)
	}
	return b, err
}

// FamilyKey implements [stint.Blobs]: it is [stint.Denied]. A server gives no keys away:
// with one, what a body was can be guessed after it was erased.
func (c *Client) FamilyKey(context.Context, stint.ID) ([]byte, error) {
	e := stint.Denied.Errorf("server", "%s does not give away the keys that bodies are named with", c.name)
	e.Hint = "run stint verify where the store is"
	return nil, e
}

// Send implements [stint.Sender]. The sender is whoever the server takes this client for,
// whatever m says, and keys beside the message are [stint.Invalid]: they are the business
// of the store's own machine.
func (c *Client) Send(ctx context.Context, id stint.ID, m stint.Message) error {
	if len(m.Keys) > 0 {
		return stint.Invalid.Errorf("send", "a message through a server has no keys")
	}
	if id.IsZero() {
		return stint.NotFound.Errorf("send", "no session has the id zero")
	}
	m.From, m.At = "", time.Time{} // the server says both
	return c.store(ctx, wire.Send, wire.Delivery{Session: id, Message: wire.FromMessage(&m)}, nil)
}
