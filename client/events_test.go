package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/client"
	"github.com/stint-dev/stint/internal/access"
)

// A stream goes on where it was: over connections that break, servers that end, and one
// that is away for a while.
func TestEventsGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked []string
		var at []time.Duration
		began := time.Now()
		events := func(text string) (*http.Response, error) { return answer(200, "text/event-stream", text), nil }
		c := over(t, "", func(r *http.Request) (*http.Response, error) {
			asked, at = append(asked, r.Header.Get("Last-Event-ID")), append(at, time.Since(began))
			switch len(asked) {
			case 1:
				return events("retry: 4000\n\nevent: entry\nid: 1-a\ndata: {\"n\":1}\n\nevent: entry\r\nid: 2-b\r\ndata: {\"n\":\r\ndata: 2}\r\n\r\nevent: entry\nid: 3-c\ndata: {\"n\"")
			case 2:
				return nil, io.ErrUnexpectedEOF
			case 3:
				return events(":\nid: 5-d\n\nevent: bye\ndata: {\"reason\":\"drain\",\"cursor\":\"6-e\"}\n\n")
			case 4:
				return answer(503, problemType, `{"code":"unavailable","detail":"it begins"}`, "Retry-After", "20"), nil
			case 5:
				return events("event: resync\ndata: {\"reason\":\"slow\",\"cursor\":\"7-f\"}\n\nevent: resync\ndata: {\"reason\":\"moved\",\"cursor\":\"1-z\"}\n\nevent: delta\ndata: {\"text\":\"x\"}\n\n")
			}
			return answer(403, problemType, `{"code":"denied","detail":"the token ended","hint":"ask for another"}`), nil
		})
		var got []string
		var failed error
		for e, err := range c.Events(t.Context(), client.Watch{Session: stint.ID{1}, After: "0-x"}) {
			if err != nil {
				failed = err
				continue
			}
			got = append(got, fmt.Sprintf("%s %s %s", e.Name, e.ID, e.Data))
		}
		want := []string{`entry 1-a {"n":1}`, "entry 2-b {\"n\":\n2}", `resync  {"reason":"moved","cursor":"1-z"}`, `delta  {"text":"x"}`}
		if !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		if want := []string{"0-x", "2-b", "2-b", "6-e", "6-e", "1-z"}; !slices.Equal(asked, want) {
			t.Errorf("asked behind %q, want %q", asked, want)
		}
		for i, wait := range []time.Duration{4 * time.Second, 4 * time.Second, 4 * time.Second, 20 * time.Second, 4 * time.Second} {
			if took := at[i+1] - at[i]; took < wait || took > wait+time.Second {
				t.Errorf("the connection %d came after %v, want %v", i+2, took, wait)
			}
		}
		if !errors.Is(failed, stint.Denied) {
			t.Errorf("it ended with %v", failed)
		}
	})
}

// A connection on which nothing comes any more, not even what keeps it alive, is given up.
func TestEventsOfASilentConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		asked := 0
		c := over(t, "", func(r *http.Request) (*http.Response, error) {
			if asked++; asked > 1 {
				cancel()
				return nil, io.ErrUnexpectedEOF
			}
			in, out := io.Pipe()
			go func() {
				_, _ = io.WriteString(out, "event: ready\ndata: {}\n\n")
				<-r.Context().Done()
				_ = out.CloseWithError(r.Context().Err())
			}()
			resp := answer(200, "text/event-stream", "")
			resp.Body = in
			return resp, nil
		})
		began, names := time.Now(), ""
		for e, err := range c.Events(ctx, client.Watch{}) {
			if err != nil && !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			names += e.Name + " "
		}
		if took := time.Since(began); asked != 2 || took < 45*time.Second || took > 50*time.Second || names != "ready  " {
			t.Errorf("asked %d times after %v: %q", asked, took, names)
		}
	})
}

// The events of a server, over a network and the end of its connections: each entry once,
// in order.
func TestEventsOfAServer(t *testing.T) {
	p := newPlace(t)
	srv := httptest.NewServer(p.h)
	defer srv.Close()
	c, err := client.New(client.Options{URL: strings.Replace(srv.URL, "127.0.0.1", "localhost", 1), Token: p.token("ada", access.Operator)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	made, err := c.Start(ctx, client.Start{Agent: "chat", Prompt: "hello"})
	if err != nil {
		t.Fatal(err)
	}
	var seqs []string
	ready := 0
	for e, err := range c.Events(ctx, client.Watch{Session: made.ID}) {
		if err != nil {
			t.Fatal(err)
		}
		switch e.Name {
		case "ready":
			if ready++; ready == 1 {
				go func() { _, _ = p.own().Run(ctx, made.ID) }()
			}
		case "entry":
			if seqs = append(seqs, strings.Split(e.ID, "-")[0]); len(seqs) == 3 {
				srv.CloseClientConnections()
			}
		}
		if strings.Contains(string(e.Data), `"session.waiting"`) {
			break
		}
	}
	row, err := c.Session(ctx, made.ID)
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for i := range row.Session.Head {
		want = append(want, fmt.Sprint(i+1))
	}
	if !slices.Equal(seqs, want) {
		t.Errorf("the entries that came are %v, want %v (%d connections)", seqs, want, ready)
	}
}
