package main

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/internal/access"
	"github.com/stint-dev/stint/internal/access/guard"
	"github.com/stint-dev/stint/internal/api"
	"github.com/stint-dev/stint/internal/hook"
	"github.com/stint-dev/stint/internal/server"
	"github.com/stint-dev/stint/internal/stream"
	"github.com/stint-dev/stint/internal/trigger"
	"github.com/stint-dev/stint/internal/view"
	"github.com/stint-dev/stint/internal/worktree"
)

// handler is all that the server answers, behind its guard.
func (v *serving) handler(events *stream.Server) (http.Handler, error) {
	hosts, err := access.NewHosts(v.options.hosts...)
	if err != nil {
		return nil, err
	}
	g, err := guard.New(guard.Config{Keeper: v.tokens, Redeemer: v.tokens, Hosts: hosts, LocalAdmin: v.options.localAdmin, BehindProxy: v.options.behindProxy, Somebody: v.somebody, Log: v.log})
	if err != nil {
		return nil, err
	}
	var mux guard.Mux
	table, err := api.Register(&mux, api.Options{
		Store: v.site.db, Starter: v, Brancher: v, Policy: policyOf(v.site.db), Settler: v.engine, Agents: v, Health: v, Tokens: v.tokens,
		Schedules: v, Hooks: hooks{v.receiver, v}, Events: events.Board(), SessionEvents: events.Session(), Version: version, Log: v.log,
		Files: func(ctx context.Context, row *stint.Row, loop int) *worktree.Changes {
			return v.app.filesSince(ctx, v.site, row, loop)
		},
	})
	if err != nil {
		return nil, err
	}
	const pattern = "/hooks/{name}"
	row := access.Route{Method: http.MethodPost, Pattern: pattern, Public: "each delivery is proven by its sender, as its hook says", MaxBody: 1 << 30} // the hook has a limit of its own
	mux.Handle(row.Key(), v.receiver)
	return g.Protect(append(table, row), &mux)
}

// somebody is who asks from this machine without a token: a person, unless the process
// descends from a session.
func (v *serving) somebody(ctx context.Context) access.Principal {
	pid, known := server.PeerOf(ctx)
	if !known {
		return access.Local()
	}
	sessions, served := startedBy(pid)
	switch {
	case len(sessions) > 0:
		return access.Inside(sessions[0].String())
	case served:
		return access.Inside("unknown")
	}
	return access.Local()
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

// Made implements [api.Brancher].
func (v *serving) Made(_ context.Context, name string) (engine.Agent, error) {
	return v.now.Load().agent(v.wiring, name)
}

// Branch implements [api.Brancher].
func (v *serving) Branch(ctx context.Context, parent stint.ID, b engine.Branch) (engine.Created, error) {
	return v.engine.Branch(ctx, parent, b)
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

// hooks implements [api.Hooks].
type hooks struct {
	*trigger.Receiver

	serving *serving
}

// Hooks implements [api.Hooks].
func (h hooks) Hooks(context.Context) ([]hook.Definition, error) {
	file := h.serving.now.Load().file.Hooks
	all := make([]hook.Definition, 0, len(file))
	for _, name := range slices.Sorted(maps.Keys(file)) {
		all = append(all, file[name].Definition())
	}
	return all, nil
}

// Schedules implements [api.Schedules].
func (v *serving) Schedules(context.Context) ([]api.Schedule, error) {
	held, err := trigger.ReadHeld(v.system.State(trigger.Section))
	if err != nil {
		return nil, err
	}
	all := []api.Schedule{}
	file := v.now.Load().file.Schedules
	for _, name := range slices.Sorted(maps.Keys(held)) {
		h, c := held[name], file[name] // zero where the file has a mistake
		all = append(all, scheduleDoc(name, &c, &h))
	}
	return all, nil
}

// Do implements [api.Schedules]. It asks by message like everybody else, so that what one
// request asks for is done once.
func (v *serving) Do(ctx context.Context, c trigger.Command, by stint.Actor, id string) error {
	body, err := json.Marshal(c)
	if err != nil {
		return err
	}
	m := stint.Message{ID: id, Kind: stint.Prompt, From: by, Body: body}
	_, err = ask(ctx, v.site.db, m, func(context.Context) error { return nil }) // this server obeys
	return err
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
