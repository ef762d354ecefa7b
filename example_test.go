package stint_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/store/mem"
)

// A step runs once, and its result is journaled. When the loop is begun again, the
// result comes from the journal, as the Go value it was.
func ExampleDo() {
	type invoice struct {
		Number string    `json:"number"`
		Cents  int       `json:"cents"`
		Due    time.Time `json:"due"`
	}
	fetch := func(context.Context, string) (invoice, error) {
		fmt.Println("fetching the invoice")
		return invoice{"A-18", 2100, time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)}, nil
	}
	agent := engine.Agent{
		Name:  "billing",
		Retry: engine.Retry{Initial: time.Millisecond},
		Loop: stint.AgentFunc(func(ctx context.Context, l stint.Loop) (stint.Next, error) {
			in, err := stint.Do(ctx, l, stint.Step{Name: "fetch invoice", Effect: stint.Read}, fetch)
			if err != nil {
				return stint.Next{}, err
			}
			fmt.Printf("attempt %d: %s, %d cents, due %s\n", l.Session().At.Attempt, in.Number, in.Cents, in.Due.Format(time.DateOnly))
			if l.Session().At.Attempt == 1 {
				return stint.Next{}, errors.New("the printer is out of paper")
			}
			return stint.Next{End: &stint.End{Reason: "printed"}}, nil
		}),
	}

	ctx := context.Background()
	store := mem.New()
	defer store.Close()
	e, err := engine.New(ctx, store, engine.Options{Agents: []engine.Agent{agent}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer e.Close()
	s, err := e.RunNew(ctx, engine.Request{Agent: agent}, func(engine.Created) {})
	fmt.Println(s.Status, s.Reason, err)
	// Output:
	// fetching the invoice
	// attempt 1: A-18, 2100 cents, due 2026-03-01
	// attempt 2: A-18, 2100 cents, due 2026-03-01
	// completed printed <nil>
}

// shop is an agent that sells what it is asked for, one order a loop, and waits for
// the next in between.
type shop struct{}

// ledger is its state.
type ledger struct {
	Sold []string `json:"sold"`
}

// Loop implements stint.Agent.
func (shop) Loop(ctx context.Context, l stint.Loop) (stint.Next, error) {
	var books ledger
	if l.State() != nil {
		if err := json.Unmarshal(l.State(), &books); err != nil {
			return stint.Next{}, err
		}
	}
	for _, m := range l.Inbox() {
		order := string(m.Body)
		if order == "close" {
			result, err := stint.Marshal(books)
			return stint.Next{End: &stint.End{Reason: "closed", Result: result}}, err
		}
		if err := sell(ctx, l, order); err != nil {
			return stint.Next{}, err // stint.ErrParked too: pass it on
		}
		books.Sold = append(books.Sold, order)
	}
	state, err := stint.Marshal(books)
	return stint.Next{
		State:    state,
		Headline: fmt.Sprintf("%d sold", len(books.Sold)),
		Wait:     &stint.Wait{For: stint.ForMessage, What: "the next order"},
	}, err
}

// sell has a step of each effect.
func sell(ctx context.Context, l stint.Loop, order string) error {
	input, err := stint.Marshal(order)
	if err != nil {
		return err
	}
	// Two that only look, at once.
	found, err := l.DoAll(ctx, []stint.Step{
		{Name: "stock", Effect: stint.Read, Input: input},
		{Name: "price", Effect: stint.Read, Input: input},
	}, func(_ context.Context, i int, _ string) (stint.Result, error) {
		return stint.Result{Data: json.RawMessage([]string{`7`, `1999`}[i])}, nil
	})
	if err != nil {
		return err
	}
	fmt.Printf("%s: %s in stock, %s cents\n", order, found[0].Data, found[1].Data)
	// The warehouse recognises the key: the same again is the same reservation.
	_, err = stint.Do(ctx, l, stint.Step{Name: "reserve", Kind: stint.Tool, Effect: stint.Idempotent, Input: input},
		func(_ context.Context, key string) (bool, error) {
			fmt.Println("reserved under a key of", len(key), "characters")
			return true, nil
		})
	if err != nil {
		return err
	}
	// Nobody recognises a mail: if stint dies over this, a person is asked.
	_, err = stint.Do(ctx, l, stint.Step{Name: "mail", Kind: stint.Tool, Effect: stint.Once, Input: input},
		func(context.Context, string) (string, error) {
			fmt.Println("mail sent")
			return "250 OK", nil
		})
	return err
}

// An agent is code that does one loop. Between two loops its session may wait for
// days, without a goroutine and without a process.
func ExampleAgent() {
	ctx := context.Background()
	store := mem.New()
	defer store.Close()
	agent := engine.Agent{Name: "shop", Loop: shop{}}
	e, err := engine.New(ctx, store, engine.Options{Agents: []engine.Agent{agent}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer e.Close()

	s, err := e.RunNew(ctx, engine.Request{Agent: agent, Input: []byte("a lamp")}, func(engine.Created) {})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(s.Status, "for", s.Wait.For+":", s.Wait.What)
	for i, order := range []string{"a chair", "close"} {
		m := stint.Message{ID: fmt.Sprint("m", i), Kind: stint.Prompt, From: "human:ana", Body: []byte(order)}
		if err := store.Send(ctx, s.ID, m); err != nil {
			fmt.Println(err)
			return
		}
		if s, err = e.Run(ctx, s.ID); err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(s.Status, s.Reason)
	}
	last, err := store.Entries(ctx, stint.Range{Session: s.ID, Last: true, Limit: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s %s, after %d loops and %d steps\n", last[0].Kind, last[0].Body, s.Totals.Loops, s.Totals.Steps)
	// Output:
	// a lamp: 7 in stock, 1999 cents
	// reserved under a key of 52 characters
	// mail sent
	// waiting for message: the next order
	// a chair: 7 in stock, 1999 cents
	// reserved under a key of 52 characters
	// mail sent
	// waiting message
	// completed closed
	// session.ended {"sold":["a lamp","a chair"]}, after 3 loops and 8 steps
}
