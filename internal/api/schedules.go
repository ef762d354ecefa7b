package api

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/access"
	"github.com/stint-dev/stint/internal/ident"
	"github.com/stint-dev/stint/internal/trigger"
	"github.com/stint-dev/stint/internal/view"
)

// Schedules knows the schedules of a server, and does what is asked of them.
type Schedules interface {
	// Schedules returns them by name.
	Schedules(ctx context.Context) ([]Schedule, error)
	// Do does what c asks of its schedule and returns once that is recorded, once for each
	// id. A schedule that is not there is [stint.NotFound], what cannot be done as it stands
	// [stint.Conflict].
	Do(ctx context.Context, c trigger.Command, by stint.Actor, id string) error
}

// Schedule is a schedule as it stands, as JSON, schema stint.schedule/1.
type Schedule struct {
	Schema      view.Schema     `json:"schema,omitempty"` // absent within a list
	Name        string          `json:"name"`
	Agent       string          `json:"agent"`
	Timing      trigger.Timing  `json:"timing"`
	Overlap     trigger.Overlap `json:"overlap"`   // skip, queue, replace, allow
	WindowMS    int64           `json:"window_ms"` // how late a time may still lead to a session
	Most        int             `json:"most"`      // how many times that are late may
	JitterMS    int64           `json:"jitter_ms"`
	PauseAfter  int             `json:"pause_after"` // sessions in a row that did not complete; 0: never
	Conditional bool            `json:"conditional"` // it is asked whether a time leads to a session
	Since       time.Time       `json:"since"`       // it has been due at these times since
	Paused      *trigger.Parked `json:"paused"`      // null unless it is
	Next        []time.Time     `json:"next"`        // the next times, filled in here; none while it is paused
}

// The schemas of schedules.
const (
	SchemaSchedule    view.Schema = "stint.schedule/1"
	SchemaSchedules   view.Schema = "stint.schedule.list/1"
	SchemaOccurrences view.Schema = "stint.occurrence.list/1"
	SchemaBackfill    view.Schema = "stint.backfill/1"
)

const schedules = "schedules"

// shownNext is how many times of a schedule are told.
const shownNext = 5

// TriggerPath is the part of a path that names a schedule or a hook.
type TriggerPath struct {
	Name string `path:"name" maxLength:"300" doc:"Its name in stint.yaml."`
}

func (s *server) scheduleRoutes() {
	fire := func(verb string) access.Route {
		return access.Route{Method: http.MethodPost, Pattern: "/v1/schedules/{name}/" + verb, Scope: access.TriggersFire}
	}
	add(s, operation{Route: read("/v1/schedules"), id: "listSchedules", tag: schedules, summary: "List schedules"}, s.listSchedules)
	add(s, operation{Route: read("/v1/schedules/{name}"), id: "getSchedule", tag: schedules, summary: "Show a schedule"}, s.getSchedule)
	add(s, operation{Route: read("/v1/schedules/{name}/occurrences"), id: "listOccurrences", tag: schedules, summary: "List what became of a schedule's times",
		about: "Newest first: which led to a session, and why others did not."}, s.occurrences)
	for _, v := range []struct {
		verb           trigger.Verb
		name           string
		summary, about string
	}{
		{trigger.Pause, "pause", "Pause a schedule", "Its times lead to no sessions until it is resumed; they are recorded as skipped."},
		{trigger.Resume, "resume", "Resume a schedule", "Times of the pause stay skipped; backfill makes sessions of them."},
		{trigger.Fire, "fire", "Begin a session of a schedule now", "Whatever its times are, and whether or not it is paused."},
	} {
		add(s, operation{Route: fire(v.name), id: v.name + "Schedule", tag: schedules, summary: v.summary, about: v.about},
			func(ctx context.Context, in *scheduleInput) (*scheduleOutput, error) {
				c := trigger.Command{Verb: v.verb, Schedule: in.Name}
				if in.Body != nil {
					c.Reason = in.Body.Reason
				}
				return s.command(ctx, c, in.id(ctx))
			})
	}
	add(s, operation{Route: fire("backfill"), id: "backfillSchedule", tag: schedules, summary: "Begin sessions of times that are past",
		about: "Of each time from one to another, both included, that led to no session; at most 100 times. Ask with dry_run first: it answers what would be done, and does nothing."}, s.backfill)
}

// timer returns what knows schedules, or [stint.NotFound].
func (s *server) timer() (Schedules, error) {
	if s.Schedules == nil {
		return nil, absent("schedules")
	}
	return s.Schedules, nil
}

// schedule returns one of them, with its next times.
func (s *server) schedule(ctx context.Context, name string) (Schedule, error) {
	k, err := s.timer()
	if err != nil {
		return Schedule{}, err
	}
	all, err := k.Schedules(ctx)
	if err != nil {
		return Schedule{}, err
	}
	for _, one := range all {
		if one.Name == name {
			return one.Upcoming(time.Now())
		}
	}
	e := stint.NotFound.Errorf("schedule", "there is no such schedule")
	e.Hint = "GET /v1/schedules lists them"
	return Schedule{}, e
}

// Upcoming returns the schedule with its next times after now filled in, none while it is
// paused, and all times in the precision of documents. The error is that of a timing that
// cannot be read.
func (one Schedule) Upcoming(now time.Time) (Schedule, error) {
	one.Next, one.Since = []time.Time{}, one.Since.UTC().Truncate(time.Microsecond)
	if one.Paused != nil {
		return one, nil
	}
	times, err := one.Timing.Times()
	if err != nil {
		return one, err
	}
	for at := now; len(one.Next) < shownNext; {
		next, ok := times.Next(at)
		if !ok {
			break
		}
		one.Next, at = append(one.Next, next.UTC()), next
	}
	return one, nil
}

// scheduleList is stint.schedule.list/1.
type scheduleList struct {
	Schema view.Schema `json:"schema"`
	Now    time.Time   `json:"now"`
	Items  []Schedule  `json:"items"`
}

type scheduleListOutput struct{ Body scheduleList }

func (s *server) listSchedules(ctx context.Context, _ *struct{}) (*scheduleListOutput, error) {
	k, err := s.timer()
	if err != nil {
		return nil, err
	}
	all, err := k.Schedules(ctx)
	if err != nil {
		return nil, err
	}
	now := time.Now().UTC().Truncate(time.Microsecond)
	out := &scheduleListOutput{scheduleList{Schema: SchemaSchedules, Now: now, Items: make([]Schedule, len(all))}}
	for i := range all {
		if out.Body.Items[i], err = all[i].Upcoming(now); err != nil {
			return nil, err
		}
	}
	return out, nil
}

type scheduleOutput struct{ Body Schedule }

func (s *server) getSchedule(ctx context.Context, in *TriggerPath) (*scheduleOutput, error) {
	one, err := s.schedule(ctx, in.Name)
	one.Schema = SchemaSchedule
	return &scheduleOutput{one}, err
}

type occurrencesInput struct {
	TriggerPath
	Limit  int    `query:"limit" minimum:"1" maximum:"500" default:"100" doc:"At most so many, and others of the same time as the last."`
	Before string `query:"before" maxLength:"40" doc:"Only those of times before this one, RFC 3339: next of the page before has it."`
}

// occurrenceList is stint.occurrence.list/1.
type occurrenceList struct {
	Schema   view.Schema          `json:"schema"`
	Schedule string               `json:"schedule"`
	Items    []trigger.Occurrence `json:"items"`
	Next     *string              `json:"next"` // the page after this one; null at the end
}

type occurrencesOutput struct{ Body occurrenceList }

func (s *server) occurrences(ctx context.Context, in *occurrencesInput) (*occurrencesOutput, error) {
	one, err := s.schedule(ctx, in.Name)
	if err != nil {
		return nil, err
	}
	var before time.Time
	if in.Before != "" {
		if before, err = time.Parse(time.RFC3339Nano, in.Before); err != nil {
			return nil, invalid("before is no time", "take next of the page before")
		}
	}
	items, err := trigger.History(ctx, s.Store, one.Name, before, in.Limit+1) // one more tells whether there are more
	if err != nil {
		return nil, err
	}
	out := &occurrencesOutput{occurrenceList{Schema: SchemaOccurrences, Schedule: one.Name, Items: items}}
	n := min(in.Limit, len(items))
	for n > 0 && n < len(items) && items[n].To.Equal(items[n-1].To) { // the next page begins behind a time
		n++
	}
	if len(items) > in.Limit { // behind those of one time there may be none
		out.Body.Items = items[:n]
		next := "?" + url.Values{"before": {items[n-1].To.UTC().Format(time.RFC3339Nano)}, "limit": {strconv.Itoa(in.Limit)}}.Encode()
		out.Body.Next = &next
	}
	return out, nil
}

type scheduleInput struct {
	TriggerPath
	KeyHeader
	Body *reasonBody
}

// command has a schedule do something, and answers how it stands then.
func (s *server) command(ctx context.Context, c trigger.Command, id string) (*scheduleOutput, error) {
	if _, err := s.schedule(ctx, c.Schedule); err != nil {
		return nil, err
	}
	if id == "" {
		id = "api:" + ident.New().String()
	}
	if err := s.Schedules.Do(settled(ctx), c, actor(ctx), id); err != nil {
		return nil, err
	}
	return s.getSchedule(ctx, &TriggerPath{Name: c.Schedule})
}

type backfillInput struct {
	TriggerPath
	KeyHeader
	Body struct {
		reasonBody
		From   time.Time `json:"from" doc:"The first time, RFC 3339."`
		To     time.Time `json:"to" doc:"The last time; not after now."`
		DryRun bool      `json:"dry_run,omitempty" doc:"Answer what would be done, and do nothing."`
	}
}

// BackfillPlan is what a backfill does or would do, as JSON, schema stint.backfill/1.
type BackfillPlan struct {
	Schema   view.Schema       `json:"schema"`
	Schedule string            `json:"schedule"`
	From     time.Time         `json:"from"`
	To       time.Time         `json:"to"`
	DryRun   bool              `json:"dry_run"`
	Runs     int               `json:"runs"`  // how many of the items lead to a session
	Items    []trigger.Planned `json:"items"` // the times, oldest first, as they were before
}

type backfillOutput struct{ Body BackfillPlan }

// NewBackfill is the document of a plan for the times of a schedule from one to another.
func NewBackfill(schedule string, from, to time.Time, dry bool, plan []trigger.Planned) BackfillPlan {
	doc := BackfillPlan{Schema: SchemaBackfill, Schedule: schedule, From: from.UTC(), To: to.UTC(), DryRun: dry, Items: append([]trigger.Planned{}, plan...)}
	for _, p := range plan {
		if p.Runs {
			doc.Runs++
		}
	}
	return doc
}

func (s *server) backfill(ctx context.Context, in *backfillInput) (*backfillOutput, error) {
	one, err := s.schedule(ctx, in.Name)
	if err != nil {
		return nil, err
	}
	times, err := one.Timing.Times()
	if err != nil {
		return nil, err
	}
	plan, err := trigger.PlanBackfill(ctx, s.Store, one.Name, times, in.Body.From, in.Body.To, time.Now())
	if err != nil {
		return nil, err
	}
	out := &backfillOutput{NewBackfill(one.Name, in.Body.From, in.Body.To, in.Body.DryRun, plan)}
	if in.Body.DryRun {
		return out, nil
	}
	c := trigger.Command{Verb: trigger.Backfill, Schedule: one.Name, Reason: in.Body.Reason, From: in.Body.From, To: in.Body.To}
	id := in.id(ctx)
	if id == "" {
		id = "api:" + ident.New().String()
	}
	return out, s.Schedules.Do(settled(ctx), c, actor(ctx), id)
}
