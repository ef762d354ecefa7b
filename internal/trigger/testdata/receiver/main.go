// Receiver is a server with hooks and nothing else, for tests that kill it.
package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/internal/hook"
	"github.com/stint-dev/stint/internal/trigger"
	"github.com/stint-dev/stint/store/sqlite"
)

func main() {
	if err := limitFiles(); err != nil {
		fmt.Fprintln(os.Stderr, "receiver:", err)
		os.Exit(1)
	}
	if err := serve(context.Background(), os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "receiver:", err)
		os.Exit(1)
	}
}

// serve receives deliveries into the store at path until the process ends, and says where.
func serve(ctx context.Context, path string) error {
	store, err := sqlite.Open(ctx, sqlite.Options{Path: path})
	if err != nil {
		return err
	}
	e, err := engine.New(ctx, store, engine.Options{})
	if err != nil {
		return err
	}
	sys, err := e.System(ctx, func(err error) { fmt.Fprintln(os.Stderr, "receiver: the system journal is lost:", err) })
	if err != nil {
		return err
	}
	recv := trigger.NewReceiver(e, sys, store, nil)
	var all []trigger.Target
	for _, def := range []hook.Definition{
		{Name: "plain"}, {Name: "keyed", Key: "body.key"}, {Name: "late", Key: "body.key", Order: "body.order", Late: hook.DropLate},
	} {
		def.Agent, def.Scheme, def.Dedupe = "a", hook.None, "body.id"
		h, err := hook.Compile(def)
		if err != nil {
			return err
		}
		all = append(all, trigger.Target{Hook: h, Secrets: func() ([]string, error) { return nil, nil }, Request: request})
	}
	recv.Set(all)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("/hooks/{name}", recv)
	fmt.Println(l.Addr())
	return (&http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}).Serve(l)
}

// request is a session that nobody runs.
func request() (engine.Request, error) {
	return engine.Request{Agent: engine.Agent{Name: "a", Loop: stint.AgentFunc(func(context.Context, stint.Loop) (stint.Next, error) { return stint.Next{}, nil })}}, nil
}
