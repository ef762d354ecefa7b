package client

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/wire"
)

// Start is a session to begin.
type Start struct {
	Agent  string            `json:"agent"`            // of the server's stint.yaml
	Prompt string            `json:"prompt,omitempty"` // text or JSON, at most 8 MiB
	Name   string            `json:"name,omitempty"`   // empty: the agent's and the day
	Labels map[string]string `json:"labels,omitempty"` // beside the agent's
	Limits Limits            `json:"limits,omitzero"`  // instead of the agent's
	// Key makes the session at most once: the same again leads to the first. It is the
	// caller's alone, has at most 255 bytes and is kept for 400 days. Without one a start
	// whose answer is lost is not repeated.
	Key string `json:"-"`
}

// Limits are those of a session, as stint limit takes them: "90m", "+1h", "none". Empty
// members leave the agent's.
type Limits struct {
	Wall     string `json:"wall,omitempty"`
	Idle     string `json:"idle,omitempty"`
	Deadline string `json:"deadline,omitempty"`
	Loops    string `json:"loops,omitempty"`
	Steps    string `json:"steps,omitempty"`
	Tokens   string `json:"tokens,omitempty"`
	Cost     string `json:"cost,omitempty"`
	Tools    string `json:"tool_calls,omitempty"`
	Children string `json:"children,omitempty"`
	OnLimit  string `json:"on_limit,omitempty"` // wait or stop
}

// Started is a session that was begun.
type Started struct {
	ID    stint.ID `json:"id"`
	Name  string   `json:"name"`
	Short string   `json:"short"`
	Found bool     `json:"-"` // it was begun before, with the same key
}

// Start begins a session and returns once it is durable; a runner of the server takes it
// up. An agent that is not there is [stint.NotFound], a key that was used for something
// else [stint.Conflict].
func (c *Client) Start(ctx context.Context, s Start) (Started, error) {
	if !utf8.ValidString(s.Prompt) {
		e := stint.Invalid.Errorf("start", "the prompt is not UTF-8, and JSON cannot carry it to the server")
		e.Hint = "write it as text, or put it into a file that the agent reads"
		return Started{}, e
	}
	return c.begin(ctx, "/v1/sessions", s, s.Key)
}

// begin makes a session.
func (c *Client) begin(ctx context.Context, path string, body any, key string) (Started, error) {
	b, status, err := c.send(ctx, request{method: http.MethodPost, path: path, body: body, key: key, again: key != ""})
	out := Started{Found: status == http.StatusOK}
	if err != nil {
		return out, err
	}
	if status == http.StatusAccepted {
		e := stint.Limit.Errorf("", "it waits for a decision: the policy of its agent has others agree to it first")
		e.Hint = "stint approvals  shows what is asked"
		return out, e
	}
	if err := json.Unmarshal(b, &out); err != nil || out.ID.IsZero() {
		return out, c.away(errors.New("its answer names no session"))
	}
	return out, nil
}

// Branch is a session to branch off another one.
type Branch struct {
	From    *int              `json:"from,omitempty"`  // behind which loop; nil: the newest completed one
	Name    string            `json:"name,omitempty"`  // empty: the session's and the loop
	State   json.RawMessage   `json:"state,omitempty"` // instead of that of the loop
	Say     string            `json:"say,omitempty"`   // a message for its first loop
	Agent   string            `json:"agent,omitempty"` // of the server, as it is now; empty: as it is pinned
	Reason  string            `json:"reason,omitempty"`
	InDoubt string            `json:"in_doubt,omitempty"` // skip or redo, where steps behind the loop are in doubt
	Labels  map[string]string `json:"labels,omitempty"`   // beside the session's
	Limits  Limits            `json:"limits,omitzero"`    // instead of the session's
	// Key makes the call one that can be repeated: the same again leads to the branch of the first.
	Key string `json:"-"`
}

// Branch begins a session behind a loop of another one and returns once it is durable; a
// runner of the server takes it up. A loop that was not completed is [stint.NotFound], steps
// in doubt without a choice are [stint.Conflict]; [stint.Limit] says that it is recorded, and
// made once those agree whom the policy of its agent names.
func (c *Client) Branch(ctx context.Context, parent stint.ID, b Branch) (Started, error) {
	return c.begin(ctx, "/v1/sessions/"+parent.String()+"/branch", b, b.Key)
}

// Approval is a yes to what a session asks.
type Approval struct {
	Message string          `json:"message,omitempty"` // one line, for the agent and the journal
	Answer  json.RawMessage `json:"answer,omitempty"`  // where one is asked for
	Args    json.RawMessage `json:"args,omitempty"`    // to do it with instead, where that is allowed
	Grant   *Grant          `json:"grant,omitempty"`   // a yes to calls to come besides
}

// Grant is a yes to calls to come.
type Grant struct {
	Scope string `json:"scope"`          // session, agent or store
	When  string `json:"when,omitempty"` // for which calls this is true; empty: those with the same arguments
	For   string `json:"for,omitempty"`  // how long, like 48h; empty: 30 days
}

// Approve says yes to a question, by its id or by the session that asks only one. The first
// decision counts: a later one is [stint.Conflict], which says whose that was and when.
func (c *Client) Approve(ctx context.Context, question string, a Approval) error {
	return c.call(ctx, request{method: http.MethodPost, path: "/v1/approvals/" + url.PathEscape(question) + "/approve", body: a}, nil)
}

// Settle has a session that nobody runs act on the messages in its inbox, as far as that
// needs no runner: a pause, a stop, a decision. Twice does no more than once.
func (c *Client) Settle(ctx context.Context, id stint.ID) error {
	return c.store(ctx, wire.Settle, wire.One{Session: id}, nil)
}

// Get reads a document of the HTTP API, such as /v1/agents, into what out points to.
func (c *Client) Get(ctx context.Context, path string, query url.Values, out any) error {
	return c.call(ctx, request{method: http.MethodGet, path: path, query: query.Encode(), again: true}, out)
}

// Health is how a server is.
type Health struct {
	Status string    `json:"status"` // ok
	Now    time.Time `json:"now"`    // its clock
	Wrote  int64     `json:"wrote_ms"`
}

// Health asks, once, whether the server writes to its store. [stint.Unavailable] means that
// it does not, or does not answer.
func (c *Client) Health(ctx context.Context) (Health, error) {
	var h Health
	err := c.call(ctx, request{method: http.MethodGet, path: "/healthz"}, &h)
	return h, err
}

// Recorded is what a server wrote down of an order.
type Recorded struct {
	What   string // such as schedule.paused or token.created
	Name   string // of what it was about
	Reason string // of the order, or why it was refused
	Data   json.RawMessage
}

// orderTime is how long a server may take to do what it is asked.
const orderTime = 15 * time.Second

// Order asks something of the server itself, as stint schedule and stint token do, and
// returns what it recorded once that is done. What it refuses is [stint.Conflict] with the
// reason. [stint.Unavailable] means that it did not get to it within 15 s, and may still.
func (c *Client) Order(ctx context.Context, body json.RawMessage) (Recorded, error) {
	id := "order-" + strings.ToLower(rand.Text())
	m := wire.Message{ID: id, Kind: stint.Prompt, Body: body}
	if err := c.store(ctx, wire.Send, wire.Delivery{Message: m}, nil); err != nil {
		return Recorded{}, err
	}
	for until := time.Now().Add(orderTime); ; {
		var got wire.Recorded
		if err := c.store(ctx, wire.Answer, wire.Asked{Message: id}, &got); err != nil {
			return Recorded{}, err
		}
		switch {
		case got.Done && strings.HasSuffix(got.What, ".refused"):
			return Recorded{}, stint.Conflict.Errorf("order", "it was refused: %s", got.Reason)
		case got.Done:
			return Recorded{What: got.What, Name: got.Name, Reason: got.Reason, Data: got.Data}, nil
		case time.Now().After(until):
			e := stint.Unavailable.Errorf("order", "the server did not do it within %v", orderTime)
			e.Hint = "it stays in its inbox, and is done when the server gets to it; look at the server's log"
			return Recorded{}, e
		}
		if err := sleep(ctx, firstWait); err != nil {
			return Recorded{}, err
		}
	}
}

// State returns a section of what the server's own journal comes to, "schedules" or
// "tokens", as JSON; nil if it has none.
func (c *Client) State(ctx context.Context, section string) (json.RawMessage, error) {
	var got wire.Held
	err := c.store(ctx, wire.State, wire.Section{Section: section}, &got)
	return got.State, err
}
