package api

import (
	"context"
	"net/url"
	"strconv"

	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/internal/notify"
	"github.com/stint-dev/stint/internal/view"
)

// SchemaNotifications is the schema of what endpoints were told.
const SchemaNotifications view.Schema = "stint.notification.list/1"

func (s *server) notificationRoutes() {
	add(s, operation{Route: read("/v1/notifications"), id: "listNotifications", tag: "notify", summary: "List what endpoints were told",
		about: "Newest first, of the last 30 days, with what became of each. What is still pending is not among them."}, s.notifications)
}

type notificationsInput struct {
	Endpoint string `query:"endpoint" maxLength:"64" doc:"Of this one alone."`
	Limit    int    `query:"limit" minimum:"1" maximum:"500" default:"100" doc:"At most so many."`
	After    string `query:"after" maxLength:"200" doc:"Only those older than this one: the endpoint and the line of the last of the page before, with / between them."`
}

// NotificationList is what endpoints were told, as JSON, schema stint.notification.list/1.
type NotificationList struct {
	Schema   view.Schema   `json:"schema"`
	Endpoint string        `json:"endpoint,omitempty"` // of which alone they are
	Items    []notify.Sent `json:"items"`
	Next     *string       `json:"next"` // the page after this one; null at the end
}

type notificationsOutput struct{ Body NotificationList }

func (s *server) notifications(ctx context.Context, in *notificationsInput) (*notificationsOutput, error) {
	var after notify.Sent
	if in.After != "" {
		var err error
		if after, err = notify.Delivery(ctx, s.Store, in.After); err != nil {
			return nil, err
		}
	}
	of := []string{in.Endpoint}
	if in.Endpoint == "" {
		var err error
		if of, err = s.endpoints(ctx); err != nil {
			return nil, err
		}
	}
	items, err := notify.History(ctx, s.Store, of, after, in.Limit+1)
	if err != nil {
		return nil, err
	}
	out := &notificationsOutput{NotificationList{Schema: SchemaNotifications, Endpoint: in.Endpoint, Items: items[:min(len(items), in.Limit)]}}
	if len(items) > in.Limit {
		last := &items[in.Limit-1]
		q := url.Values{"after": {last.Endpoint + "/" + last.Line}, "limit": {strconv.Itoa(in.Limit)}}
		if in.Endpoint != "" {
			q.Set("endpoint", in.Endpoint)
		}
		next := "?" + q.Encode()
		out.Body.Next = &next
	}
	return out, nil
}

// endpoints are the names of those that a server has taken up.
func (s *server) endpoints(ctx context.Context) ([]string, error) {
	id, err := engine.FindSystemJournal(ctx, s.Store)
	if err != nil || id.IsZero() {
		return nil, err
	}
	state, err := engine.SystemState(ctx, s.Store, id)
	if err != nil {
		return nil, err
	}
	all, err := notify.Read(state[notify.Section])
	names := make([]string, len(all))
	for i := range all {
		names[i] = all[i].Name
	}
	return names, err
}
