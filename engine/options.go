package engine

import (
	"encoding/json"
	"log/slog"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/policy"
)

// Agent is an agent as an engine runs it. The zero value of every member but Name
// and Loop is sound.
type Agent struct {
	Name    string
	Runtime string          // what a runner must have to drive it; empty: "go/" and Name
	Loop    stint.Agent     // required
	Config  json.RawMessage // resolved definition; its hash pins the sessions that start with it
	Limits  func(created time.Time) stint.Limits
	Labels  map[string]string
	Retry   Retry
	// Concurrency is how many sessions of this agent may run at once, counted from
	// the live leases of the whole store; 0: no bound of its own.
	Concurrency int
	// Done is the stop condition, asked after every loop that did not end the session.
	Done func(s stint.Session, state json.RawMessage) (bool, error)
	// Doubt says what to do with a once step whose outcome is not known; nil: [AskPerson].
	Doubt func(step string) Doubt
	// Policy says which steps wait for a person and which do not begin at all, instead of what
	// steps say of themselves; nil: those decide.
	Policy *policy.Policy
	// Grace is how long a step may go on after a stop, a drain or a used-up wall
	// limit before it is canceled; 0: 90 seconds.
	Grace time.Duration
}

// Doubt is a rule for a once step whose intent is recorded and whose outcome is
// not. The zero value is [AskPerson].
type Doubt struct {
	// Unknown goes on at once with the marker result.
	Unknown bool
	// Verify finds out: it returns the verdict, and the result with [journal.Happened].
	// An error asks a person.
	Verify Verifier
}

// Retry says when a loop that failed is begun again. The zero value is the
// default: 5 attempts, 1 s doubling to at most 1 min, 20 % jitter.
type Retry struct {
	Attempts int           // at one loop, the first included; negative: no bound but the brake
	Initial  time.Duration // before the second attempt
	Max      time.Duration
	Factor   float64
	Jitter   float64 // share of the delay that is random, 0 to 1
}

func (r Retry) withDefaults() Retry {
	if r.Attempts == 0 {
		r.Attempts = 5
	}
	if r.Initial == 0 {
		r.Initial = time.Second
	}
	if r.Max == 0 {
		r.Max = time.Minute
	}
	if r.Factor < 1 {
		r.Factor = 2
	}
	if r.Jitter == 0 {
		r.Jitter = 0.2
	}
	return r
}

// spent reports whether there is no attempt after this one.
func (r Retry) spent(attempt int) bool { return r.Attempts > 0 && attempt >= r.Attempts }

// delay is how long to wait after the failed-th failure in a row; rnd is in [0,1).
func (r Retry) delay(failed int, rnd float64) time.Duration {
	d := float64(r.Initial)
	for range failed - 1 {
		if d *= r.Factor; d >= float64(r.Max) {
			break
		}
	}
	d = min(d, float64(r.Max))
	return time.Duration(d * (1 - r.Jitter + 2*r.Jitter*rnd))
}

// Options configure an [Engine]. The zero value runs nothing but is valid.
type Options struct {
	// Agents that this engine has in its own code, by name.
	Agents []Agent
	// Resolve makes an agent from the definition a session is pinned to, for
	// runtimes that are not in Agents. nil: there are none.
	Resolve func(ref stint.AgentRef, config json.RawMessage) (Agent, error)
	// Find makes the agent of a name as it is defined now, for the children that loops
	// spawn; agents of Agents are found without it. [stint.NotFound] where there is none.
	// nil: there are no others.
	Find func(name string) (Agent, error)
	// Runtimes that Resolve can make.
	Runtimes []string
	// Holder names this runner in leases. It must be unique among the runners of a
	// store; empty: host, pid and a random part.
	Holder string
	// TTL of leases; renewed at a third of it. 0: 30 s.
	TTL time.Duration
	// Concurrency is how many sessions this engine drives at once; 0: 16.
	Concurrency int
	// Total is how many sessions may run at once in the whole store, counted from its
	// live leases; 0: no bound. Run is not held back by it.
	Total int
	// Poll is how often the store is asked for work that no signal told of: leases
	// of dead runners, timers set by others. 0: 1 s.
	Poll time.Duration
	// Drain is how long once steps may take to end when the engine stops; 0: 90 s.
	Drain time.Duration
	// Log gets what an operator may want to know; nil: nothing.
	Log *slog.Logger
	// Observe, if set, is called after something of a session became durable, from
	// its driver's goroutine: it must be quick.
	Observe func(s stint.Session)
}

func (o Options) withDefaults() Options {
	if o.TTL == 0 {
		o.TTL = 30 * time.Second
	}
	if o.Concurrency == 0 {
		o.Concurrency = 16
	}
	if o.Poll == 0 {
		o.Poll = time.Second
	}
	if o.Drain == 0 {
		o.Drain = 90 * time.Second
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

func (a *Agent) runtime() string {
	if a.Runtime != "" {
		return a.Runtime
	}
	return "go/" + a.Name
}

func (a *Agent) grace() time.Duration {
	if a.Grace == 0 {
		return 90 * time.Second
	}
	return a.Grace
}
