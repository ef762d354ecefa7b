package bench

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/internal/access"
	"github.com/stint-dev/stint/internal/access/guard"
	"github.com/stint-dev/stint/internal/api"
	"github.com/stint-dev/stint/internal/ident"
	"github.com/stint-dev/stint/internal/view"
	"github.com/stint-dev/stint/journal"
)

// Lists is how long lists of sessions take over HTTP.
type Lists struct {
	Sessions int        `json:"sessions"`
	FillS    float64    `json:"fill_s"` // until they were there; 0: they were before
	Queries  []ListTime `json:"queries"`
}

// ListTime is how long one kind of list takes.
type ListTime struct {
	Name     string  `json:"name"`
	Query    string  `json:"query"` // its first page
	Items    int     `json:"items"` // of that
	MaxBytes int     `json:"max_bytes"`
	P50ms    float64 `json:"p50_ms"`
	P95ms    float64 `json:"p95_ms"`
	MaxMS    float64 `json:"max_ms"`
}

// ListQueries are the lists that [MeasureLists] asks for, by name: the whole one, filters
// that select many and few, and texts that many, few and no sessions have.
func ListQueries() [][2]string {
	return [][2]string{
		{"list", ""}, {"list, open ones", "open=true"}, {"list, bad ones", "bad=true"},
		{"filter by status", "status=failed"}, {"filter by statuses", "status=completed&status=stopped"}, {"filter by agent", "agent=agent-3"}, {"filter by trigger", "trigger=hook"},
		{"filter by label", "label=team%3Dteam-5"}, {"filter by labels", "label=env%3Dtest&label=team%3Dteam-5"}, {"filter by labels, none has both", "label=env%3Dprod&label=team%3Dteam-5"}, {"filter by a rare label", "label=customer%3Dc-7"},
		{"filter by agent, status", "agent=agent-3&status=failed"}, {"filter by label, status", "label=team%3Dteam-5&status=failed"}, {"filter by time", "since=" + url.QueryEscape(listed(0).Add(time.Hour).Format(time.RFC3339))},
		{"search, many have it", "text=AGENT-1"}, {"search, few have it", "text=needle"}, {"search, none has it", "text=nothing-has-it"}, {"search, in a label", "text=needle&label=env%3Dprod"},
	}
}

// listed is when the session number i was created.
func listed(i int) time.Time {
	return time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(i) * time.Second)
}

// FillLists puts n sessions into the store, in the order of their numbers: of ten agents,
// most of them ended, with three labels. Each 5,000th has a word in its name that no other
// has.
func FillLists(ctx context.Context, store stint.Store, n int) error {
	const at = 256 // once at a time, so that they share commits
	errs := make([]error, at)
	for from := 0; from < n; from += at {
		var wg sync.WaitGroup
		for k := range min(at, n-from) {
			wg.Go(func() { errs[k] = fillOne(ctx, store, from+k) })
		}
		wg.Wait()
		if err := errors.Join(errs...); err != nil {
			return err
		}
	}
	return nil
}

func fillOne(ctx context.Context, store stint.Store, i int) error {
	created := listed(i)
	name := fmt.Sprintf("agent-%d-%05d", i%10, i)
	if i%5_000 == 2_500 {
		name = "needle-" + name
	}
	id := ident.At(created)
	draft := func(d journal.Draft) journal.Draft {
		d.At, d.Actor = created, "human:bench"
		_, _ = rand.Read(d.Salt[:])
		return d
	}
	trigger := []string{"prompt", "schedule", "prompt", "prompt", "schedule", "prompt", "prompt"}[i%7]
	if i%500 == 0 {
		trigger = "hook"
	}
	s, e, err := journal.Begin(id, journal.Created{Family: id, Name: name, Agent: stint.AgentRef{Name: fmt.Sprintf("agent-%d", i%10), Runtime: "exec", Pin: sha256.Sum256(nil)},
		Trigger: stint.Trigger{Kind: trigger, Ref: "nightly"},
		Labels:  map[string]string{"team": fmt.Sprintf("team-%d", i%8), "env": []string{"prod", "test"}[i%2], "customer": fmt.Sprintf("c-%d", i%2_000)}}, draft(journal.Draft{Body: []byte("look at what is new")}))
	if err != nil {
		return err
	}
	es := []stint.Entry{e}
	var next *journal.Draft
	switch {
	case i%50 == 7:
		next = &journal.Draft{Kind: stint.SessionEnded, Data: journal.Ended{Outcome: stint.Failed, Reason: "the model did not answer"}}
	case i%100 == 9:
		next = &journal.Draft{Kind: stint.SessionEnded, Data: journal.Ended{Outcome: stint.Stopped, Reason: "loops"}}
	case i%20 == 3:
		next = &journal.Draft{Kind: stint.SessionWaiting, Data: stint.Wait{For: stint.ForMessage, What: "what next?", Wakes: []stint.MessageKind{stint.Prompt}}}
	case i%100 != 0: // those stay pending
		next = &journal.Draft{Kind: stint.SessionEnded, Data: journal.Ended{Outcome: stint.Completed, Reason: "done"}}
	}
	if next != nil {
		if s, e, err = journal.Next(s, draft(*next)); err != nil {
			return err
		}
		es = append(es, e)
	}
	_, err = store.Create(ctx, stint.Batch{Session: s, Entries: es}, stint.Claim{})
	return err
}

// reads is a server that answers reads alone.
type reads struct{}

func (reads) none() error {
	return stint.Unavailable.Errorf("bench", "this server answers reads alone")
}

// Start implements api.Starter.
func (r reads) Start(context.Context, api.StartRequest) (engine.Created, error) {
	return engine.Created{}, r.none()
}

// Branch implements api.Brancher.
func (r reads) Branch(context.Context, stint.ID, engine.Branch) (engine.Created, error) {
	return engine.Created{}, r.none()
}

// Made implements api.Brancher.
func (r reads) Made(context.Context, string) (engine.Agent, error) { return engine.Agent{}, r.none() }

// Settle implements control.Settler.
func (r reads) Settle(context.Context, stint.ID) error { return r.none() }

// Agents implements api.Agents.
func (r reads) Agents(context.Context) ([]view.Agent, error) { return nil, r.none() }

// Agent implements api.Agents.
func (r reads) Agent(context.Context, string) (api.Definition, error) {
	return api.Definition{}, r.none()
}

// Write implements api.Health.
func (r reads) Write(context.Context) error { return r.none() }

// Ready implements api.Health.
func (r reads) Ready(context.Context) error { return nil }

// Scheduler implements api.Health.
func (r reads) Scheduler(context.Context) (api.SchedulerHealth, error) {
	return api.SchedulerHealth{}, r.none()
}

// MeasureLists serves the store on this machine and asks for each of [ListQueries] so
// often, one request after the other, pages of 50 from its first to its last and then
// again. The sessions are there; it counts those of the first list.
func MeasureLists(ctx context.Context, store stint.Store, requests int, say Say) (out Lists, err error) {
	base, stop, err := serveReads(ctx, store)
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	for _, q := range ListQueries() {
		t, err := measureList(ctx, base, q[0], q[1], requests)
		if err != nil {
			return out, err
		}
		say("%s: p95 %.1f ms", t.Name, t.P95ms)
		out.Queries = append(out.Queries, t)
	}
	return out, nil
}

// serveReads answers reads of the store at a port of this machine.
func serveReads(ctx context.Context, store stint.Store) (base string, stop func() error, err error) {
	g, err := guard.New(guard.Config{Keeper: &access.Mem{}})
	if err != nil {
		return "", nil, err
	}
	h, err := api.New(g, api.Options{Store: store, Starter: reads{}, Brancher: reads{}, Settler: reads{}, Agents: reads{}, Health: reads{}})
	if err != nil {
		return "", nil, err
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, &stint.Error{Code: stint.Unavailable, Op: "bench", Err: err}
	}
	srv := guard.Server(h)
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(l) }()
	return "http://" + l.Addr().String(), func() error {
		err := srv.Close()
		if served := <-ended; !errors.Is(served, http.ErrServerClosed) {
			err = errors.Join(err, served)
		}
		return err
	}, nil
}

// measureList asks for the pages of one list.
func measureList(ctx context.Context, base, name, query string, requests int) (ListTime, error) {
	out := ListTime{Name: name, Query: "/v1/sessions?" + query}
	var took []float64
	at := out.Query
	for i := range requests + 1 { // the first opens the connection
		begun := time.Now()
		body, err := fetch(ctx, base+at)
		if err != nil {
			return out, err
		}
		if i > 0 {
			took = append(took, ms(time.Since(begun)))
		}
		var page struct {
			Items []json.RawMessage
			Next  *string
		}
		if err := json.Unmarshal(body, &page); err != nil {
			return out, stint.Internal.Errorf("bench", "%s is answered with no list: %w", at, err)
		}
		if out.MaxBytes = max(out.MaxBytes, len(body)); i == 0 {
			out.Items = len(page.Items)
		}
		if at = out.Query; page.Next != nil && i > 0 {
			at = "/v1/sessions" + *page.Next
		}
	}
	slices.Sort(took)
	out.P50ms, out.P95ms, out.MaxMS = took[len(took)/2], took[len(took)*95/100], took[len(took)-1]
	return out, nil
}

// fetch returns the body of an answer that has to be 200.
func fetch(ctx context.Context, to string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, to, nil)
	if err != nil {
		return nil, &stint.Error{Code: stint.Internal, Op: "bench", Err: err}
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, &stint.Error{Code: stint.Unavailable, Op: "bench", Err: err}
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = errors.New(strconv.Itoa(res.StatusCode) + " " + string(body))
	}
	if err != nil {
		return nil, &stint.Error{Code: stint.Unavailable, Op: "bench", Err: err}
	}
	return body, nil
}
