// Command counter is the quick start for Go: an agent in a program of its own, with
// the journal in one SQLite file. Kill it at any moment and run it again: it goes on
// from the last number, and a step that had finished is not done again.
//
//	go run ./examples/counter counter.db
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"os/signal"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/store/sqlite"
)

// state is what the next loop starts from.
type state struct {
	N int `json:"n"`
}

// count is the agent: one number a loop, until it has counted to ten.
func count(ctx context.Context, l stint.Loop) (stint.Next, error) {
	st := state{}
	if l.State() != nil { // nil: the first loop
		if err := json.Unmarshal(l.State(), &st); err != nil {
			return stint.Next{}, stint.Fail(err)
		}
	}
	// Effects belong into steps: their results are journaled, and a loop that is begun
	// again after a crash gets them from there.
	n, err := stint.Do(ctx, l, stint.Step{Name: "add one", Effect: stint.Idempotent}, func(_ context.Context, key string) (int, error) {
		fmt.Println(st.N+1, "under the key", key)
		<-time.After(300 * time.Millisecond)
		return st.N + 1, nil
	})
	if err != nil {
		return stint.Next{}, err
	}
	next := stint.Next{Headline: fmt.Sprintf("%d of 10", n)}
	if n == 10 {
		next.End = &stint.End{Reason: "counted"}
	}
	next.State, err = stint.Marshal(state{n})
	return next, err
}

// run drives the one session of the store at path until it ends or ctx does.
func run(ctx context.Context, path string) (s stint.Session, err error) {
	store, err := sqlite.Open(ctx, sqlite.Options{Path: path})
	if err != nil {
		return s, err
	}
	defer store.Close()
	agent := engine.Agent{Name: "counter", Loop: stint.AgentFunc(count)}
	e, err := engine.New(ctx, store, engine.Options{Agents: []engine.Agent{agent}})
	if err != nil {
		return s, err
	}
	defer e.Close()
	made, err := e.Start(ctx, engine.Request{Agent: agent, Dedupe: "count"}) // finds the session if it is there
	if err != nil {
		return s, err
	}
	if row, err := store.Session(ctx, made.ID); err != nil || row.Session.Status.Ended() {
		return row.Session, err
	}
	return e.Run(ctx, made.ID)
}

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: counter FILE")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt) // lets the step under way end
	s, err := run(ctx, os.Args[1])
	stop()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s: %s after %d loops\n", s.Name, s.Status, s.Totals.Loops)
}
