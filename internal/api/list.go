package api

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/access"
	"github.com/stint-dev/stint/internal/view"
)

// listQuery says which sessions a list has.
type listQuery struct {
	Status  []string  `query:"status,explode" enum:"pending,running,waiting,completed,failed,stopped,canceled" maxItems:"7" doc:"Only those with one of these statuses."`
	Open    bool      `query:"open" doc:"Only those that have not ended."`
	Bad     bool      `query:"bad" doc:"Only those that ended other than completed, or wait for doubt, budget or health."`
	Agent   string    `query:"agent" maxLength:"300" doc:"Only those of this agent."`
	Trigger string    `query:"trigger" enum:"prompt,schedule,hook,session,bench" doc:"Only those that were started by this."`
	Label   []string  `query:"label,explode" maxItems:"16" doc:"Only those with this label, key=value; with several, those that have all."`
	Text    string    `query:"text" maxLength:"200" doc:"Only those with this text in their name or their agent's; ASCII letters match in either case."`
	Since   time.Time `query:"since" doc:"Only those created at this time or after, RFC 3339."`
	Until   time.Time `query:"until" doc:"Only those created before this time, RFC 3339."`
	Limit   int       `query:"limit" minimum:"1" maximum:"500" default:"50" doc:"At most so many."`
	After   string    `query:"after" maxLength:"26" doc:"Only those older than this id: the cursor of the page before."`
}

// sessionList is stint.session.list/1 with the way on.
type sessionList struct {
	view.List
	Next *string `json:"next"` // the page after this one, to be resolved against this one's URL; null at the end
}

type sessionListOutput struct{ Body sessionList }

func (s *server) list(ctx context.Context, in *listQuery) (*sessionListOutput, error) {
	q, err := in.query()
	if err != nil {
		return nil, err
	}
	rows, cursor, err := view.Sessions(ctx, s.Store, q)
	if err != nil {
		return nil, err
	}
	out := &sessionListOutput{Body: sessionList{List: view.NewList(rows, cursor, time.Now())}}
	if !cursor.IsZero() {
		next := "?" + in.values(cursor.String()).Encode()
		out.Body.Next = &next
	}
	return out, nil
}

func (in *listQuery) query() (view.Query, error) {
	f := stint.Filter{Agent: in.Agent, Trigger: in.Trigger, Text: in.Text, Since: in.Since, Before: in.Until}
	q := view.Query{All: !in.Open, Bad: in.Bad, Limit: in.Limit}
	n := 0
	for _, set := range []bool{len(in.Status) > 0, in.Open, in.Bad} {
		if set {
			n++
		}
	}
	if n > 1 {
		return q, invalid("status, open and bad exclude each other", "give one of them")
	}
	for _, l := range in.Label {
		k, v, ok := strings.Cut(l, "=")
		if !ok || k == "" {
			return q, invalid("a label is key=value", "write label=team%3Dplatform, once for each label")
		}
		if _, twice := f.Labels[k]; twice {
			return q, invalid("a label is asked for twice", "a session has one value of each label")
		}
		if f.Labels == nil {
			f.Labels = map[string]string{}
		}
		f.Labels[k] = v
	}
	for _, st := range in.Status {
		q.Statuses = append(q.Statuses, stint.Status(st))
	}
	if in.After != "" {
		var err error
		if q.After, err = stint.ParseID(in.After); err != nil {
			return q, invalid("after is no cursor", "take next of the page before, or its cursor")
		}
	}
	q.Filter = f
	return q, nil
}

// values is the query again, behind a cursor.
func (in *listQuery) values(after string) url.Values {
	v := url.Values{"after": {after}, "limit": {strconv.Itoa(in.Limit)}}
	for name, value := range map[string]string{"agent": in.Agent, "trigger": in.Trigger, "text": in.Text} {
		if value != "" {
			v.Set(name, value)
		}
	}
	for name, value := range map[string][]string{"status": in.Status, "label": in.Label} {
		if len(value) > 0 {
			v[name] = value
		}
	}
	for name, value := range map[string]bool{"open": in.Open, "bad": in.Bad} {
		if value {
			v.Set(name, "true")
		}
	}
	for name, value := range map[string]time.Time{"since": in.Since, "until": in.Until} {
		if !value.IsZero() {
			v.Set(name, value.Format(time.RFC3339Nano))
		}
	}
	return v
}

// invalid is a request that cannot be met. What was sent is not repeated.
func invalid(what, hint string) error {
	e := stint.Invalid.Errorf("request", "%s", what)
	e.Hint = hint
	return e
}

// read is the row of a route that reads sessions.
func read(pattern string) access.Route {
	return access.Route{Method: http.MethodGet, Pattern: pattern, Scope: access.SessionsRead}
}
