package main

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/internal/access"
	"github.com/stint-dev/stint/internal/access/guard"
	"github.com/stint-dev/stint/internal/api"
	"github.com/stint-dev/stint/internal/stream"
	"github.com/stint-dev/stint/internal/view"
)

// handler is all that the server answers, behind its guard.
func (v *serving) handler(events *stream.Server) (http.Handler, error) {
	hosts, err := access.NewHosts(v.options.hosts...)
	if err != nil {
		return nil, err
	}
	g, err := guard.New(guard.Config{Keeper: v.tokens, Redeemer: v.tokens, Hosts: hosts, LocalAdmin: v.options.localAdmin, BehindProxy: v.options.behindProxy, Log: v.log})
	if err != nil {
		return nil, err
	}
	var mux guard.Mux
	table, err := api.Register(&mux, api.Options{
		Store: v.site.store, Starter: v, Settler: v.engine, Agents: v, Health: v, Tokens: v.tokens,
		Events: events.Board(), SessionEvents: events.Session(), Version: version, Log: v.log,
	})
	if err != nil {
		return nil, err
	}
	return g.Protect(table, &mux)
}

// Start implements [api.Starter].
func (v *serving) Start(ctx context.Context, r api.StartRequest) (engine.Created, error) {
	agent, err := v.now.Load().agent(v.wiring, r.Agent)
	if err != nil {
		return engine.Created{}, err
	}
	q, err := r.Request(agent)
	if err != nil {
		return engine.Created{}, err
	}
	return v.engine.Start(ctx, q)
}

// Agents implements [api.Agents].
func (v *serving) Agents(context.Context) ([]view.Agent, error) {
	return agentItems(v.now.Load().file), nil
}

// Agent implements [api.Agents].
func (v *serving) Agent(_ context.Context, name string) (api.Definition, error) {
	c, err := v.now.Load().file.Agent(name)
	if err != nil {
		return api.Definition{}, err
	}
	money, err := v.app.costLimit(&c)
	if err != nil {
		return api.Definition{}, err
	}
	cost, err := json.Marshal(money)
	def, sum := c.Definition()
	return api.Definition{Sum: sum, Agent: def, Cost: cost}, err
}

// Write implements [api.Health].
func (v *serving) Write(ctx context.Context) error { return v.system.Beat(ctx) }

// Ready implements [api.Health].
func (v *serving) Ready(ctx context.Context) error {
	if v.ending.Load() {
		return stint.Unavailable.Errorf("ready", "the server ends")
	}
	return ctx.Err()
}

// lookedWithin is how long ago a scheduler that works has looked at the clock.
const lookedWithin = 2 * time.Minute

// Scheduler implements [api.Health].
func (v *serving) Scheduler(context.Context) (api.SchedulerHealth, error) {
	p := v.scheduler.Pulse()
	h := api.SchedulerHealth{Looked: p.Looked, Next: p.Next, Schedules: p.Schedules, Paused: p.Paused}
	if p.Looked.IsZero() {
		return h, stint.Unavailable.Errorf("scheduler", "it has not looked at the clock yet")
	}
	if ago := time.Since(p.Looked); ago > lookedWithin {
		return h, stint.Unavailable.Errorf("scheduler", "it looked at the clock %v ago", ago.Round(time.Second))
	}
	return h, nil
}
