package client_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/client"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/internal/access"
	"github.com/stint-dev/stint/internal/access/guard"
	"github.com/stint-dev/stint/internal/api"
	"github.com/stint-dev/stint/internal/stream"
	"github.com/stint-dev/stint/store/mem"
)

func ExampleClient() {
	ctx, url, token := someServer()
	c, err := client.New(client.Options{URL: url, Token: token})
	if err != nil {
		log.Fatal(err)
	}
	started, err := c.Start(ctx, client.Start{Agent: "chat", Prompt: "hello", Key: "greeting-1"})
	if err != nil {
		log.Fatal(err)
	}
	for event, err := range c.Events(ctx, client.Watch{Session: started.ID}) {
		if err != nil {
			log.Fatal(err)
		}
		var entry struct{ Kind stint.Kind }
		if event.Name != "entry" || json.Unmarshal(event.Data, &entry) != nil {
			continue
		}
		if entry.Kind == stint.SessionWaiting {
			m := stint.Message{ID: "answer-" + started.Short, Kind: stint.Prompt, Body: []byte("that is all")}
			if err := c.Send(ctx, started.ID, m); err != nil {
				log.Fatal(err)
			}
		}
		if entry.Kind == stint.SessionEnded {
			break
		}
	}
	row, err := c.Session(ctx, started.ID)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(row.Session.Status, "after", row.Session.Totals.Loops, "loops")
	// Output: completed after 2 loops
}

// someServer is one that runs its sessions until the test binary ends.
func someServer() (ctx context.Context, url, token string) {
	ctx = context.Background()
	must := func(err error) {
		if err != nil {
			log.Fatal(err)
		}
	}
	store := mem.New()
	e, err := engine.New(ctx, store, engine.Options{Agents: []engine.Agent{chat()}})
	must(err)
	go func() { must(e.Serve(ctx)) }()
	p := &place{engine: e, keeper: &access.Mem{}}
	g, err := guard.New(guard.Config{Keeper: p.keeper})
	must(err)
	events := stream.New(ctx, stream.Options{Store: store})
	h, err := api.New(g, api.Options{Store: store, Starter: p, Brancher: p, Settler: p, Agents: p, Health: p, Events: events.Board(), SessionEvents: events.Session()})
	must(err)
	return ctx, httptest.NewServer(h).URL, ""
}

// The page shows the example as it is here, and names what there is.
func TestPageShowsTheExample(t *testing.T) {
	page, err := os.ReadFile("../docs/client.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(source), "	ctx, url, token := someServer()\n")
	body, _, ok := strings.Cut(rest, "	// Output:")
	var want strings.Builder
	for line := range strings.Lines(body) {
		want.WriteString("    " + strings.ReplaceAll(strings.TrimPrefix(line, "\t"), "\t", "    "))
	}
	if !ok || strings.Count(body, "\n") < 20 || !strings.Contains(string(page), want.String()) {
		t.Errorf("docs/client.md does not have\n%s", want.String())
	}
}
