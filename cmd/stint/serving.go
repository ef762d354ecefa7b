package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/internal/config"
	"github.com/stint-dev/stint/internal/control"
	"github.com/stint-dev/stint/internal/endpoint"
	"github.com/stint-dev/stint/internal/gate"
	"github.com/stint-dev/stint/internal/notify"
	"github.com/stint-dev/stint/internal/trigger"
)

// applied is a stint.yaml that a server works by.
type applied struct {
	file *config.File     // without what is wrong in it
	bad  map[string]error // what is wrong, under schedules.NAME and hooks.NAME
	sum  stint.Hash       // of all that it says

	mu     sync.Mutex
	agents map[string]*madeAgent
}

// madeAgent is an agent that sessions are begun with for a short while.
type madeAgent struct {
	mu    sync.Mutex
	at    time.Time // zero: not made yet
	agent engine.Agent
}

// agentLife is how long an agent that was made is used for new sessions: its program may
// change at any time, and to look at it for each of a flood of deliveries costs too much.
const agentLife = 2 * time.Second

// newApplied is a stint.yaml that says nothing.
func newApplied() *applied { return &applied{file: &config.File{}, agents: map[string]*madeAgent{}} }

// readApplied reads the stint.yaml of a server; without one there are no agents, and
// sessions that others began are run.
func (a *app) readApplied() (*applied, error) {
	path, err := a.configPath()
	if err != nil {
		return nil, err
	}
	p := newApplied()
	if path != "" {
		if p.file, p.bad, err = config.LoadServing(path); err != nil {
			return nil, err
		}
	}
	items, err := json.Marshal(p.items())
	p.sum = sha256.Sum256(items)
	return p, err
}

// items are the parts of a stint.yaml, each as one value, by what and which it is. What
// is wrong with a part stands in its place.
func (p *applied) items() map[string]string {
	out := map[string]string{}
	say := func(key string, v any) {
		b, err := json.Marshal(v)
		if err != nil {
			b = []byte(err.Error())
		}
		out[key] = string(b)
	}
	for name, c := range p.file.Agents {
		_, sum := c.Definition()
		out["agents."+name] = sum.String()
	}
	for name, s := range p.file.Schedules {
		say("schedules."+name, s)
	}
	for name, h := range p.file.Hooks {
		say("hooks."+name, h.Definition())
	}
	for name, e := range p.file.Notify {
		say("notify."+name, e)
	}
	if q := p.file.Quiet; q != (endpoint.Quiet{}) {
		say("quiet", q)
	}
	for key, err := range p.bad {
		out[key] = "cannot be used: " + err.Error()
	}
	return out
}

// broken are the names of the parts of one kind that cannot be used.
func (p *applied) broken(kind string) []string {
	var out []string
	for _, key := range slices.Sorted(maps.Keys(p.bad)) {
		if k, name, _ := strings.Cut(key, "."); k == kind {
			out = append(out, name)
		}
	}
	return out
}

// agent makes an agent of the file as it is now, or takes one that was made just before.
func (p *applied) agent(w *wiring, name string) (engine.Agent, error) {
	p.mu.Lock()
	m := p.agents[name]
	if m == nil {
		m = &madeAgent{}
		p.agents[name] = m
	}
	p.mu.Unlock()
	m.mu.Lock()
	defer m.mu.Unlock()
	if time.Since(m.at) < agentLife {
		return m.agent, nil
	}
	c, err := p.file.Agent(name)
	if err != nil {
		return engine.Agent{}, err
	}
	agent, err := w.agent(c)
	if err == nil {
		m.agent, m.at = agent, time.Now()
	}
	return agent, err
}

// schedules are those of the file, as a scheduler runs them.
func (p *applied) schedules(w *wiring) []trigger.Schedule {
	var all []trigger.Schedule
	for _, name := range slices.Sorted(maps.Keys(p.file.Schedules)) {
		c := p.file.Schedules[name]
		s := trigger.Schedule{
			Name: name, Timing: timingOf(&c),
			Policy: trigger.Policy{Overlap: trigger.Overlap(c.Overlap), Window: c.Window, Most: c.Most, Jitter: c.Jitter, PauseAfter: c.PauseAfter},
			Request: func() (engine.Request, error) {
				agent, err := p.agent(w, c.Agent)
				if err != nil {
					return engine.Request{}, err
				}
				r := engine.Request{Agent: agent, Input: []byte(c.Prompt)}
				if len(c.Labels) > 0 {
					r.Labels, err = control.Labels(c.Labels, agent.Labels)
				}
				return r, err
			},
		}
		if c.When != nil {
			s.Gate = gateOf(c.When, filepath.Dir(p.file.Path))
		}
		all = append(all, s)
	}
	return all
}

// targets are the hooks of the file, as a receiver runs them.
func (p *applied) targets(w *wiring) []trigger.Target {
	var all []trigger.Target
	for _, name := range slices.Sorted(maps.Keys(p.file.Hooks)) {
		h := p.file.Hooks[name]
		def := h.Definition()
		all = append(all, trigger.Target{
			Hook:    h,
			Secrets: func() ([]string, error) { return config.HookSecrets(def, w.getenv, os.ReadFile) },
			Request: func() (engine.Request, error) {
				agent, err := p.agent(w, def.Agent)
				return engine.Request{Agent: agent}, err
			},
		})
	}
	return all
}

// endpoints are those of the file, as a notifier tells them.
func (p *applied) endpoints(w *wiring) []notify.Endpoint {
	var all []notify.Endpoint
	for _, name := range slices.Sorted(maps.Keys(p.file.Notify)) {
		c := p.file.Notify[name]
		e := notify.Endpoint{Name: name, Channel: w.channel(&c, filepath.Dir(p.file.Path)), Events: c.Events, Agents: c.Agents, Remind: c.Remind}
		if !c.Urgent {
			e.Quiet = p.file.Quiet
		}
		all = append(all, e)
	}
	return all
}

// timingOf is when a schedule of the file is due.
func timingOf(c *config.Schedule) trigger.Timing {
	return trigger.Timing{Cron: c.Cron, Zone: c.Zone, Seconds: c.Seconds, At: c.At}
}

func gateOf(c *config.When, dir string) func(context.Context) (bool, string, error) {
	if c.URL != "" {
		return gate.URL(c.URL, c.Private, c.Timeout)
	}
	return gate.Command(c.Command, dir, c.Timeout)
}

// tellBad logs what cannot be used, each with where it stands.
func (p *applied) tellBad(log *slog.Logger) {
	for _, key := range slices.Sorted(maps.Keys(p.bad)) {
		log.Error("a part of stint.yaml cannot be used; what it was before goes on", "part", key, "error", p.bad[key])
	}
}
