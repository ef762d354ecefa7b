package api

import (
	"context"
	"crypto/rand"
	"net/http"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/access"
	"github.com/stint-dev/stint/internal/view"
)

// Tokens keeps the tokens of a server; package keeper has one.
type Tokens interface {
	// All returns them by id, also those that have ended.
	All() []access.Token
	// Put stores a new one; by is who asked for it. One too many is [stint.Limit].
	Put(ctx context.Context, t access.Token, by stint.Actor, takes *stint.Message) error
	// Revoke ends one. One that has ended is [stint.Conflict], an unknown one [stint.NotFound].
	Revoke(ctx context.Context, id string, by stint.Actor, reason string, takes *stint.Message) error
}

// The schemas of tokens.
const (
	SchemaToken  view.Schema = "stint.token/1"
	SchemaTokens view.Schema = "stint.token.list/1"
)

// Token is what is stored of a token, but for its hash, as JSON, schema stint.token/1.
type Token struct {
	Schema   view.Schema    `json:"schema,omitempty"` // absent within a list
	ID       string         `json:"id"`
	Kind     access.Kind    `json:"kind"`
	Name     string         `json:"name"`
	Role     access.Role    `json:"role"`   // or
	Scopes   []access.Scope `json:"scopes"` // one of the two
	Status   string         `json:"status"` // live, expired, revoked
	Created  time.Time      `json:"created"`
	Expires  time.Time      `json:"expires"`
	Revoked  *time.Time     `json:"revoked"`
	LastUsed *time.Time     `json:"last_used"` // to the minute
}

// NewToken is the document of a token as it is at now.
func NewToken(t access.Token, now time.Time) Token {
	status := "live"
	switch {
	case !t.Revoked.IsZero():
		status = "revoked"
	case !now.Before(t.Expires):
		status = "expired"
	}
	out := Token{ID: t.ID, Kind: t.Kind, Name: t.Name, Role: t.Role, Scopes: t.Scopes, Status: status, Created: t.Created.UTC(), Expires: t.Expires.UTC(), Revoked: maybe(t.Revoked), LastUsed: maybe(t.LastUsed)}
	if out.Scopes == nil {
		out.Scopes = []access.Scope{}
	}
	return out
}

// maybe is a time in UTC, in the precision of documents; nil for none.
func maybe(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC().Truncate(time.Microsecond)
	return &t
}

type tokenListOutput struct {
	Body struct {
		Schema view.Schema `json:"schema"`
		Items  []Token     `json:"items"`
	}
}

// MadeToken is a token with its secret, which is there once.
type MadeToken struct {
	Token
	Secret string `json:"secret" doc:"The token itself. It is shown once and stored nowhere."`
}

type newTokenOutput struct{ Body MadeToken }

type tokenOutput struct{ Body Token }

type newTokenInput struct {
	Body struct {
		Kind     string         `json:"kind,omitempty" enum:"user,agent,ci" default:"user"`
		Name     string         `json:"name" minLength:"1" maxLength:"64" doc:"Of the person or the program: the actor of what it does. Printable ASCII."`
		Role     string         `json:"role,omitempty" enum:"viewer,operator,approver,admin" doc:"Or scopes."`
		Scopes   []access.Scope `json:"scopes,omitempty" maxItems:"7" enum:"sessions:read,sessions:run,approvals:decide,triggers:fire,memory:write,audit:read,admin"`
		Lifetime string         `json:"lifetime,omitempty" maxLength:"20" doc:"How long it is good, like 720h. Without it 90 days, 24 hours for an agent; at most 366 days, 7 for an agent."`
	}
}

type revokeInput struct {
	ID     string `path:"id" maxLength:"64" doc:"The id of a token, which is no secret."`
	Reason string `query:"reason" maxLength:"1000" doc:"Why; kept in the system journal."`
}

const tokens = "tokens"

func (s *server) tokenRoutes() {
	admin := func(method, pattern string) access.Route {
		return access.Route{Method: method, Pattern: pattern, Scope: access.Admin}
	}
	add(s, operation{Route: admin(http.MethodGet, "/v1/tokens"), id: "listTokens", tag: tokens, summary: "List tokens", about: "Also those that have ended."}, s.listTokens)
	add(s, operation{Route: admin(http.MethodPost, "/v1/tokens"), id: "createToken", tag: tokens, summary: "Make a token", status: http.StatusCreated,
		about: "The answer has the secret, once. It takes no Idempotency-Key: repeat a request whose answer was lost, and revoke what it made."}, s.createToken)
	add(s, operation{Route: admin(http.MethodDelete, "/v1/tokens/{id}"), id: "revokeToken", tag: tokens, summary: "Revoke a token", about: "Requests that it has open end within four seconds."}, s.revokeToken)
}

// keeper returns what keeps tokens, or [stint.NotFound].
func (s *server) keeper() (Tokens, error) {
	if s.Tokens == nil {
		return nil, absent("tokens")
	}
	return s.Tokens, nil
}

// absent is the answer where a server has none of something.
func absent(what string) error {
	e := stint.NotFound.Errorf("request", "this server has no %s", what)
	e.Hint = "docs/api.md says which server has"
	return e
}

func (s *server) listTokens(ctx context.Context, _ *struct{}) (*tokenListOutput, error) {
	k, err := s.keeper()
	if err != nil {
		return nil, err
	}
	all, out := k.All(), &tokenListOutput{}
	out.Body.Schema, out.Body.Items = SchemaTokens, make([]Token, len(all))
	for i := range all {
		out.Body.Items[i] = NewToken(all[i], time.Now())
	}
	return out, nil
}

func (s *server) createToken(ctx context.Context, in *newTokenInput) (*newTokenOutput, error) {
	k, err := s.keeper()
	if err != nil {
		return nil, err
	}
	spec := access.Spec{Kind: access.Kind(in.Body.Kind), Name: in.Body.Name, Role: access.Role(in.Body.Role), Scopes: in.Body.Scopes}
	if in.Body.Lifetime != "" {
		if spec.Lifetime, err = time.ParseDuration(in.Body.Lifetime); err != nil || spec.Lifetime <= 0 {
			return nil, invalid("lifetime is no length of time", "write hours, like 720h")
		}
	}
	var random [access.RandomBytes]byte
	_, _ = rand.Read(random[:]) // it never fails: the process ends instead
	t, secret, err := access.Mint(spec, time.Now(), random)
	if err != nil {
		return nil, err
	}
	if err := k.Put(ctx, t, actor(ctx), nil); err != nil {
		return nil, err
	}
	out := MadeToken{Token: NewToken(t, time.Now()), Secret: secret.Reveal()}
	out.Schema = SchemaToken
	return &newTokenOutput{out}, nil
}

func (s *server) revokeToken(ctx context.Context, in *revokeInput) (*tokenOutput, error) {
	k, err := s.keeper()
	if err != nil {
		return nil, err
	}
	if err := k.Revoke(ctx, in.ID, actor(ctx), in.Reason, nil); err != nil {
		return nil, err
	}
	for _, t := range k.All() {
		if t.ID == in.ID {
			out := NewToken(t, time.Now())
			out.Schema = SchemaToken
			return &tokenOutput{out}, nil
		}
	}
	return nil, stint.NotFound.Errorf("token", "there is no such token")
}
