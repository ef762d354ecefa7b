package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/client"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/internal/access"
	"github.com/stint-dev/stint/store/sqlite"
	"github.com/stint-dev/stint/store/storetest"
)

// far is a store that is written here, and read and sent to through a server.
type far struct {
	*sqlite.Store

	c *client.Client
}

func (f far) Session(ctx context.Context, id stint.ID) (stint.Row, error) {
	return f.c.Session(ctx, id)
}

func (f far) Sessions(ctx context.Context, q stint.Filter) ([]stint.Row, error) {
	return f.c.Sessions(ctx, q)
}

func (f far) Entries(ctx context.Context, r stint.Range) ([]stint.Entry, error) {
	return f.c.Entries(ctx, r)
}

func (f far) Inbox(ctx context.Context, id stint.ID) ([]stint.Message, error) {
	return f.c.Inbox(ctx, id)
}

func (f far) Keys(ctx context.Context, like stint.Key, limit int) ([]stint.Key, error) {
	return f.c.Keys(ctx, like, limit)
}

func (f far) Blob(ctx context.Context, family stint.ID, ref stint.BlobRef) ([]byte, error) {
	return f.c.Blob(ctx, family, ref)
}

// Send goes through the server where that takes it: a message of who the client is, which
// is no decision of a question that nobody asked, and has no keys.
func (f far) Send(ctx context.Context, id stint.ID, m stint.Message) error {
	if m.From != "human:ada" || len(m.Keys) > 0 || m.Kind == stint.Decision {
		return f.Store.Send(ctx, id, m)
	}
	return f.c.Send(ctx, id, m)
}

// What a store promises of reading and sending holds through a server.
func TestStore(t *testing.T) {
	t.Parallel() // it waits for a store that is closed, as a client does
	storetest.Run(t, func(t *testing.T) stint.Store {
		p := newPlace(t)
		at, token := time.Now(), p.token("ada", access.Administrator)
		return far{p.store, over(t, token, func(r *http.Request) (*http.Response, error) {
			if time.Since(at) > 24*time.Hour { // years pass, and tokens end
				at, token = time.Now(), p.token("ada", access.Administrator)
			}
			r.Header.Set("Authorization", "Bearer "+token)
			return p.call(r)
		})}
	})
}

// Answers that are longer than one page are whole, and in order, from both ends.
func TestPages(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	c := p.client("ada", access.Viewer)
	made, err := p.own().RunNew(t.Context(), engine.Request{Agent: longAgent(2600), Name: "long"}, func(engine.Created) {})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []stint.Range{
		{}, {Last: true}, {Limit: 1500}, {Last: true, Limit: 1500}, {After: 700, Until: 2100}, {After: 700, Until: 2100, Last: true},
		{After: 100, Last: true, Limit: 2450}, {Limit: 1000}, {Last: true, Limit: 1000}, {Kinds: []stint.Kind{stint.StepCompleted}, Last: true, Limit: 1300}, {Kinds: []stint.Kind{}},
	} {
		r.Session = made.ID
		want, err := p.store.Entries(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		got, err := c.Entries(t.Context(), r)
		if err != nil || seqs(got) != seqs(want) {
			t.Errorf("%+v: %.80s, want %.80s, %v", r, seqs(got), seqs(want), err)
		}
	}
	for i := range 1100 {
		if _, err := p.own().Start(t.Context(), engine.Request{Agent: chat(), Name: fmt.Sprint("s", i)}); err != nil {
			t.Fatal(err)
		}
	}
	for _, limit := range []int{0, 3, 500, 501, 1050, 5000} {
		want, err := p.store.Sessions(t.Context(), stint.Filter{Limit: limit})
		if err != nil {
			t.Fatal(err)
		}
		got, err := c.Sessions(t.Context(), stint.Filter{Limit: limit})
		if err != nil || len(got) != len(want) || got[len(got)-1].Session.ID != want[len(want)-1].Session.ID {
			t.Errorf("%d of %d sessions, %v", len(got), len(want), err)
		}
	}
}

func seqs(es []stint.Entry) string {
	var b strings.Builder
	for i := range es {
		fmt.Fprint(&b, es[i].Seq, " ")
	}
	return b.String()
}

// longAgent makes so many steps.
func longAgent(n int) engine.Agent {
	return engine.Agent{Name: "long", Loop: stint.AgentFunc(func(ctx context.Context, l stint.Loop) (stint.Next, error) {
		for i := range n {
			if _, err := l.Do(ctx, stint.Step{Name: fmt.Sprint("s", i), Kind: stint.Tool, Effect: stint.Read}, func(context.Context, string) (stint.Result, error) {
				return stint.Result{Data: []byte(`"` + strings.Repeat("y", 1800) + `"`)}, nil
			}); err != nil {
				return stint.Next{}, err
			}
		}
		return stint.Next{End: &stint.End{}}, nil
	})}
}

// What a server does not give, and what it does not take, is said by the client.
func TestWhatStaysThere(t *testing.T) {
	p := newPlace(t)
	c := p.client("ada", access.Administrator)
	var e *stint.Error
	if _, err := c.FamilyKey(t.Context(), stint.ID{1}); !errors.As(err, &e) || e.Code != stint.Denied || !strings.Contains(e.Hint, "where the store is") {
		t.Errorf("a family's key: %v", err)
	}
	if err := c.Send(t.Context(), stint.ID{1}, stint.Message{ID: "x", Kind: stint.Prompt, Keys: []stint.Key{{Scope: "delivery"}}}); !errors.Is(err, stint.Invalid) {
		t.Errorf("a message with keys: %v", err)
	}
	if err := c.Send(t.Context(), stint.ID{}, stint.Message{ID: "x", Kind: stint.Prompt}); !errors.Is(err, stint.NotFound) {
		t.Errorf("a message to nobody: %v", err)
	}
	if ms, err := p.store.Sessions(t.Context(), stint.Filter{Trigger: "system"}); err != nil || len(ms) != 0 {
		t.Errorf("%d journals of the server, %v", len(ms), err)
	}
	_, err := c.Session(t.Context(), stint.ID{7})
	_, local := p.store.Session(t.Context(), stint.ID{7})
	var l *stint.Error
	if !errors.As(err, &e) || !errors.As(local, &l) || e.Error() != l.Error() || e.Code != l.Code || e.Session != l.Session || e.Hint != l.Hint {
		t.Errorf("an error differs: %#v is %#v where the store is", err, local)
	}
	if _, err := c.Sessions(t.Context(), stint.Filter{Since: time.Now().Add(time.Hour)}); err != nil {
		t.Error(err)
	}
}
