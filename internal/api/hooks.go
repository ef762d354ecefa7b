package api

import (
	"context"
	"encoding/base64"
	"net/http"
	"net/url"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/access"
	"github.com/stint-dev/stint/internal/hook"
	"github.com/stint-dev/stint/internal/trigger"
	"github.com/stint-dev/stint/internal/view"
)

// Hooks knows the hooks of a server. All but Hooks are methods of [trigger.Receiver].
type Hooks interface {
	// Hooks returns what stint.yaml says of them, by name.
	Hooks(ctx context.Context) ([]hook.Definition, error)
	// Counts returns what was counted of a hook since the server began.
	Counts(name string) (trigger.Counts, bool)
	// Redeliver judges a delivery once more, see [trigger.Receiver.Redeliver].
	Redeliver(ctx context.Context, name, id, as string, by stint.Actor) (trigger.Delivered, error)
}

// The schemas of hooks.
const (
	SchemaHook       view.Schema = "stint.hook/1"
	SchemaHooks      view.Schema = "stint.hook.list/1"
	SchemaDelivery   view.Schema = "stint.delivery/1"
	SchemaDeliveries view.Schema = "stint.delivery.list/1"
)

const hooks = "hooks"

// HookDoc is what stint.yaml says of a hook, but for its secrets, as JSON, schema stint.hook/1.
type HookDoc struct {
	Schema      view.Schema     `json:"schema,omitempty"` // absent within a list
	Name        string          `json:"name"`
	Path        string          `json:"path"` // where deliveries go
	Agent       string          `json:"agent"`
	Scheme      hook.Scheme     `json:"scheme"`
	When        string          `json:"when"`   // whether a delivery is for us; empty: each is
	Key         string          `json:"key"`    // what deliveries to one session share; empty: each begins one
	Dedupe      string          `json:"dedupe"` // a delivery's id; empty: the scheme's
	Busy        hook.Busy       `json:"busy"`   // what becomes of one whose session is at work
	Late        hook.Late       `json:"late"`   // what becomes of one that is older than another
	MaxBody     int64           `json:"max_body"`
	Rate        int             `json:"rate"` // so many deliveries in per_ms; 0: no limit
	PerMS       int64           `json:"per_ms"`
	Concurrency int             `json:"concurrency"` // sessions that have not ended; 0: no limit
	Counts      *trigger.Counts `json:"counts"`      // since the server began; null where no server is asked
}

func (s *server) hookRoutes() {
	add(s, operation{Route: read("/v1/hooks"), id: "listHooks", tag: hooks, summary: "List hooks"}, s.listHooks)
	add(s, operation{Route: read("/v1/hooks/{name}"), id: "getHook", tag: hooks, summary: "Show a hook", about: "With what was counted since the server began, and the newest requests that were refused."}, s.getHook)
	add(s, operation{Route: read("/v1/hooks/{name}/deliveries"), id: "listDeliveries", tag: hooks, summary: "List what came to a hook", about: "Newest first, of the last 30 days. Requests that were refused are none."}, s.deliveries)
	add(s, operation{Route: read("/v1/hooks/{name}/deliveries/{id}"), id: "getDelivery", tag: hooks, summary: "Show a delivery with what came"}, s.delivery)
	add(s, operation{Route: access.Route{Method: http.MethodPost, Pattern: "/v1/hooks/{name}/deliveries/{id}/redeliver", Scope: access.TriggersFire}, id: "redeliver", tag: hooks,
		summary: "Deliver a delivery again", about: "It is judged once more, as the hook is now, and becomes a delivery of its own: asking twice is two deliveries, unless both have one Idempotency-Key."}, s.redeliver)
}

// receiver returns what knows hooks, or [stint.NotFound].
func (s *server) receiver() (Hooks, error) {
	if s.Hooks == nil {
		return nil, absent("hooks")
	}
	return s.Hooks, nil
}

// NewHook is the document of a definition, without counts.
func NewHook(d hook.Definition) HookDoc {
	return HookDoc{Name: d.Name, Path: "/hooks/" + url.PathEscape(d.Name), Agent: d.Agent, Scheme: d.Scheme, When: d.When, Key: d.Key, Dedupe: d.Dedupe, Busy: d.Busy, Late: d.Late,
		MaxBody: d.Limits.Body, Rate: d.Limits.Rate.Count, PerMS: d.Limits.Rate.Per.Milliseconds(), Concurrency: d.Limits.Concurrency}
}

// hookDocs are all hooks as documents.
func (s *server) hookDocs(ctx context.Context) ([]HookDoc, error) {
	k, err := s.receiver()
	if err != nil {
		return nil, err
	}
	all, err := k.Hooks(ctx)
	out := make([]HookDoc, len(all))
	for i, d := range all {
		counts, _ := k.Counts(d.Name) // one that was just taken out has none
		if counts.Answers == nil {
			counts.Answers = map[string]int64{}
		}
		if counts.Refused == nil {
			counts.Refused = []trigger.Refused{}
		}
		out[i] = NewHook(d)
		out[i].Counts = &counts
	}
	return out, err
}

// hook returns one of them.
func (s *server) hook(ctx context.Context, name string) (HookDoc, error) {
	all, err := s.hookDocs(ctx)
	if err != nil {
		return HookDoc{}, err
	}
	for _, d := range all {
		if d.Name == name {
			d.Schema = SchemaHook
			return d, nil
		}
	}
	e := stint.NotFound.Errorf("hook", "there is no such hook")
	e.Hint = "GET /v1/hooks lists them"
	return HookDoc{}, e
}

// hookList is stint.hook.list/1.
type hookList struct {
	Schema view.Schema `json:"schema"`
	Now    time.Time   `json:"now"`
	Items  []HookDoc   `json:"items"`
}

type hookListOutput struct{ Body hookList }

func (s *server) listHooks(ctx context.Context, _ *struct{}) (*hookListOutput, error) {
	all, err := s.hookDocs(ctx)
	return &hookListOutput{hookList{Schema: SchemaHooks, Now: time.Now().UTC().Truncate(time.Microsecond), Items: all}}, err
}

type hookOutput struct{ Body HookDoc }

func (s *server) getHook(ctx context.Context, in *TriggerPath) (*hookOutput, error) {
	d, err := s.hook(ctx, in.Name)
	return &hookOutput{d}, err
}

type deliveriesInput struct {
	TriggerPath
	Limit int    `query:"limit" minimum:"1" maximum:"500" default:"100" doc:"At most so many."`
	After string `query:"after" maxLength:"1000" doc:"Only those older than this one: the id of the last of the page before."`
}

// deliveryList is stint.delivery.list/1.
type deliveryList struct {
	Schema view.Schema         `json:"schema"`
	Hook   string              `json:"hook"`
	Items  []trigger.Delivered `json:"items"`
	Next   *string             `json:"next"` // the page after this one; null at the end
}

type deliveriesOutput struct{ Body deliveryList }

func (s *server) deliveries(ctx context.Context, in *deliveriesInput) (*deliveriesOutput, error) {
	d, err := s.hook(ctx, in.Name)
	if err != nil {
		return nil, err
	}
	var after trigger.Delivered
	if in.After != "" {
		last, err := trigger.Delivery(ctx, s.Store, d.Name, in.After)
		if err != nil {
			return nil, err
		}
		after = last.Delivered
	}
	items, err := trigger.Deliveries(ctx, s.Store, d.Name, after, in.Limit+1)
	if err != nil {
		return nil, err
	}
	out := &deliveriesOutput{deliveryList{Schema: SchemaDeliveries, Hook: d.Name, Items: items[:min(len(items), in.Limit)]}}
	if len(items) > in.Limit {
		next := "?" + url.Values{"after": {items[in.Limit-1].ID}, "limit": {strconv.Itoa(in.Limit)}}.Encode()
		out.Body.Next = &next
	}
	return out, nil
}

// DeliveryPath is the part of a path that names a delivery.
type DeliveryPath struct {
	TriggerPath
	ID string `path:"id" maxLength:"1000" doc:"The delivery's id."`
}

// DeliveryDoc is a delivery with what came, as JSON, schema stint.delivery/1.
type DeliveryDoc struct {
	Schema view.Schema `json:"schema"`
	trigger.Delivered
	Headers    map[string]string `json:"headers"` // those that the hook looks at
	Query      map[string]string `json:"query"`
	BodyText   *string           `json:"body_text"`   // what came, if it is UTF-8 and was kept
	BodyBase64 *string           `json:"body_base64"` // what came, if it is anything else and was kept
}

type deliveryOutput struct{ Body DeliveryDoc }

func (s *server) delivery(ctx context.Context, in *DeliveryPath) (*deliveryOutput, error) {
	d, err := s.hook(ctx, in.Name)
	if err != nil {
		return nil, err
	}
	shown, err := trigger.Delivery(ctx, s.Store, d.Name, in.ID)
	if err != nil {
		return nil, err
	}
	return &deliveryOutput{NewDelivery(shown)}, nil
}

// NewDelivery is the document of a delivery.
func NewDelivery(shown trigger.Shown) DeliveryDoc {
	out := DeliveryDoc{Schema: SchemaDelivery, Delivered: shown.Delivered, Headers: shown.Request.Headers, Query: shown.Request.Query}
	if out.Headers == nil {
		out.Headers = map[string]string{}
	}
	if out.Query == nil {
		out.Query = map[string]string{}
	}
	switch {
	case len(shown.Body) != shown.Bytes: // it was not kept
	case utf8.Valid(shown.Body):
		text := string(shown.Body)
		out.BodyText = &text
	default:
		text := base64.StdEncoding.EncodeToString(shown.Body)
		out.BodyBase64 = &text
	}
	return out
}

// noBody is the body of a request that needs none.
type noBody struct{}

type redeliverInput struct {
	DeliveryPath
	KeyHeader
	Body *noBody
}

// deliveryOne is stint.delivery/1 without what came.
type deliveryOne struct {
	Schema view.Schema `json:"schema"`
	trigger.Delivered
}

type redeliverOutput struct{ Body deliveryOne }

func (s *server) redeliver(ctx context.Context, in *redeliverInput) (*redeliverOutput, error) {
	d, err := s.hook(ctx, in.Name)
	if err != nil {
		return nil, err
	}
	o, err := s.Hooks.Redeliver(settled(ctx), d.Name, in.ID, in.id(ctx), actor(ctx))
	return &redeliverOutput{deliveryOne{SchemaDelivery, o}}, err
}
