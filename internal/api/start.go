package api

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/internal/control"
	"github.com/stint-dev/stint/internal/problem"
	"github.com/stint-dev/stint/internal/view"
)

// KeyHeader is the Idempotency-Key of a request that changes something.
type KeyHeader struct {
	Key string `header:"Idempotency-Key" maxLength:"255" doc:"A key of yours, so that a request whose answer was lost can be repeated. It is kept for 400 days, and is yours alone: another caller's is another key."`
}

// id is the name of a request in the store; empty if it has no key. It is a hash, so that
// nobody's key is the id of a decision or of another caller's request.
func (k KeyHeader) id(ctx context.Context) string {
	if k.Key == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(string(actor(ctx)) + "\x00" + k.Key))
	return "api:" + hex.EncodeToString(sum[:16])
}

// requests is the scope of the keys of requests.
const requests = "request"

// keyLife is how long the key of a request is kept.
const keyLife = 400 * 24 * time.Hour

// requestKey is the store's key of a request.
func requestKey(id string, digest stint.Hash, now time.Time) stint.Key {
	return stint.Key{Scope: requests, Name: id, Digest: digest, Expires: now.Add(keyLife)}
}

// digest is of what a request asks for, so that the same said again is the same.
func digest(route string, body any) (stint.Hash, error) {
	b, err := json.Marshal(struct {
		Route string
		Body  any
	}{route, body})
	if err != nil {
		return stint.Hash{}, &stint.Error{Code: stint.Internal, Op: "json", Err: err}
	}
	return sha256.Sum256(b), nil
}

// StartRequest is a session to make.
type StartRequest struct {
	Agent  string
	Input  []byte            // at most 8 MiB
	Name   string            // empty: the agent's and the day
	Labels map[string]string // beside the agent's
	Limits control.Limits    // instead of the agent's
	Actor  stint.Actor       // who asks
	Keys   []stint.Key       // durable with it: the same again leads to the session of the first
}

// Request is what the engine takes: the session, of an agent as it is now.
func (r StartRequest) Request(agent engine.Agent) (engine.Request, error) {
	now := time.Now()
	q := engine.Request{Agent: agent, Name: r.Name, Input: r.Input, Actor: r.Actor, Keys: r.Keys}
	if len(r.Labels) > 0 {
		var err error
		if q.Labels, err = control.Labels(r.Labels, agent.Labels); err != nil {
			return q, err
		}
	}
	if r.Limits == (control.Limits{}) {
		return q, nil
	}
	var lim stint.Limits
	if agent.Limits != nil {
		lim = agent.Limits(now)
	}
	if err := r.Limits.Apply(&lim, now); err != nil {
		return q, &stint.Error{Code: stint.Invalid, Op: "limits", Err: err, Hint: "docs/api.md says what limits take"}
	}
	q.Limits = &lim
	return q, nil
}

type startBody struct {
	Agent  string            `json:"agent" minLength:"1" maxLength:"300" doc:"An agent of stint.yaml."`
	Prompt string            `json:"prompt,omitempty" doc:"What it is to do: text or JSON."`
	Name   string            `json:"name,omitempty" maxLength:"100" doc:"Of the session; without it the agent's name and the day."`
	Labels map[string]string `json:"labels,omitempty" maxProperties:"64"`
	Limits control.Limits    `json:"limits,omitzero"`
}

type startInput struct {
	KeyHeader
	Body startBody
}

// sessionOutput is how a session stands after something was done.
type sessionOutput struct {
	Status   int
	Location string `header:"Location"`
	Body     view.Session
}

func (s *server) start(ctx context.Context, in *startInput) (*sessionOutput, error) {
	r := StartRequest{Agent: in.Body.Agent, Input: []byte(in.Body.Prompt), Name: in.Body.Name, Labels: in.Body.Labels, Limits: in.Body.Limits, Actor: actor(ctx)}
	sum, err := digest("start", in.Body)
	if err != nil {
		return nil, err
	}
	return s.begin(ctx, r, in.id(ctx), sum)
}

// begin makes a session, once for each id that is not empty.
func (s *server) begin(ctx context.Context, r StartRequest, id string, sum stint.Hash) (*sessionOutput, error) {
	if err := tooLong(len(r.Input)); err != nil {
		return nil, err
	}
	if id != "" {
		if out, err := s.before(ctx, id, sum); out != nil || err != nil {
			return out, err
		}
		r.Keys = []stint.Key{requestKey(id, sum, time.Now())}
	}
	made, err := s.Starter.Start(ctx, r)
	if err != nil {
		if id != "" && errors.Is(err, stint.Conflict) { // another with this key was quicker
			if out, again := s.before(ctx, id, sum); out != nil || again != nil {
				return out, again
			}
		}
		return nil, err
	}
	status := http.StatusCreated
	if made.Found {
		status = http.StatusOK
	}
	return s.stands(ctx, made.ID, status)
}

// before is the answer to a request that came before; nil if none did. With other content
// it is [stint.Conflict].
func (s *server) before(ctx context.Context, id string, sum stint.Hash) (*sessionOutput, error) {
	keys, err := s.Store.Keys(ctx, stint.Key{Scope: requests, Name: id}, 1)
	if err != nil || len(keys) == 0 {
		return nil, err
	}
	if keys[0].Digest != sum {
		e := stint.Conflict.Errorf("request", "its Idempotency-Key was used for another request, about the session %s", keys[0].Ref)
		e.Hint = "take a new key for each request, and the same one only to repeat it"
		return nil, e
	}
	session, err := stint.ParseID(keys[0].Ref)
	if err != nil {
		return nil, err
	}
	return s.stands(ctx, session, http.StatusOK)
}

// stands is how a session stands.
func (s *server) stands(ctx context.Context, id stint.ID, status int) (*sessionOutput, error) {
	row, err := s.Store.Session(ctx, id)
	if err != nil {
		return nil, err
	}
	out := &sessionOutput{Status: status, Body: view.NewSession(&row, time.Now())}
	if status == http.StatusCreated {
		out.Location = "/v1/sessions/" + id.String()
	}
	return out, nil
}

// tooLong refuses a text of more bytes than a request may carry.
func tooLong(n int) error {
	if n <= maxText {
		return nil
	}
	e := stint.Limit.Errorf("request", "the text has %d bytes; at most %d fit", n, maxText)
	e.Hint = "keep large content in a file and name it in the text"
	return problem.With(http.StatusRequestEntityTooLarge, e)
}
