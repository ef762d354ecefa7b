package api

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/access"
	"github.com/stint-dev/stint/internal/view"
)

// Health says whether a server works. Its methods return within seconds.
type Health interface {
	// Write writes something into the store and waits until it is durable.
	Write(ctx context.Context) error
	// Ready returns nil while sessions are taken up, and requests can be answered.
	Ready(ctx context.Context) error
	// Scheduler says how the scheduler does; an error if it does not look at the clock.
	Scheduler(ctx context.Context) (SchedulerHealth, error)
}

// SchedulerHealth is how a scheduler does.
type SchedulerHealth struct {
	Looked    time.Time // at the clock, last
	Next      time.Time // when the next schedule is due; zero: never
	Schedules int
	Paused    int // of them
}

// SchemaHealth is the schema of answers about health.
const SchemaHealth view.Schema = "stint.health/1"

type healthBody struct {
	Schema  view.Schema `json:"schema"`
	Now     time.Time   `json:"now"`
	Status  string      `json:"status" doc:"ok; what is not well is answered with 503."`
	WroteMS *int64      `json:"wrote_ms" doc:"How long the newest write of this kind took; null where none is done."`
}

type healthOutput struct{ Body healthBody }

type schedulerBody struct {
	healthBody
	Looked    time.Time  `json:"looked" doc:"When it looked at the clock."`
	Next      *time.Time `json:"next" doc:"When the next schedule is due; null: never."`
	Schedules int        `json:"schedules"`
	Paused    int        `json:"paused"`
}

type schedulerOutput struct{ Body schedulerBody }

const health = "health"

func (s *server) healthRoutes() {
	public := func(pattern, why string) access.Route {
		return access.Route{Method: http.MethodGet, Pattern: pattern, Public: why}
	}
	add(s, operation{Route: public("/healthz", "load balancers and supervisors have no token"), id: "healthz", tag: health, summary: "Does the server work?",
		about: "It has written to the store within the last second, durably."}, s.healthz)
	add(s, operation{Route: public("/readyz", "load balancers and supervisors have no token"), id: "readyz", tag: health, summary: "Does the server take requests and sessions?"},
		func(ctx context.Context, _ *struct{}) (*healthOutput, error) {
			if err := s.Health.Ready(ctx); err != nil {
				return nil, s.unwell(ctx, err, "the server is not ready")
			}
			return &healthOutput{healthy()}, nil
		})
	add(s, operation{Route: public("/healthz/scheduler", "it tells counts and times, and no names"), id: "schedulerHealth", tag: health, summary: "Does the scheduler work?"},
		func(ctx context.Context, _ *struct{}) (*schedulerOutput, error) {
			h, err := s.Health.Scheduler(ctx)
			if err != nil {
				return nil, s.unwell(ctx, err, "the scheduler does not work")
			}
			out := schedulerBody{healthBody: healthy(), Looked: h.Looked.UTC(), Schedules: h.Schedules, Paused: h.Paused}
			if !h.Next.IsZero() {
				next := h.Next.UTC()
				out.Next = &next
			}
			return &schedulerOutput{out}, nil
		})
}

func healthy() healthBody {
	return healthBody{Schema: SchemaHealth, Now: time.Now().UTC().Truncate(time.Microsecond), Status: "ok"}
}

func (s *server) healthz(ctx context.Context, _ *struct{}) (*healthOutput, error) {
	took, err := s.write.do(ctx, s.Health.Write)
	if err != nil {
		return nil, s.unwell(ctx, err, "the store takes no writes")
	}
	out := healthy()
	ms := took.Milliseconds()
	out.WroteMS = &ms
	return &healthOutput{out}, nil
}

// unwell is the answer to anybody about something that does not work: paths and causes
// are for the log.
func (s *server) unwell(ctx context.Context, err error, what string) error {
	s.Log.ErrorContext(ctx, what, "error", err)
	e := stint.Unavailable.Errorf("health", "%s", what)
	e.Hint = "the log of the server says why"
	return e
}

// probe asks something at most once in a second, however many ask it: whoever has no
// token must not make the store write as often as they like.
type probe struct {
	mu   sync.Mutex
	at   time.Time
	took time.Duration
	err  error
}

// fresh is how long an answer of a probe is good.
const fresh = time.Second

func (p *probe) do(ctx context.Context, ask func(context.Context) error) (time.Duration, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now := time.Now(); p.at.IsZero() || now.Sub(p.at) >= fresh {
		p.err = ask(context.WithoutCancel(ctx)) // the answer is not of this caller alone
		p.at, p.took = time.Now(), time.Since(now)
	}
	return p.took, p.err
}
