package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/internal/config"
	"github.com/stint-dev/stint/internal/view"
)

func (a *app) startCommand() *cobra.Command {
	var o requestOptions
	var run bool
	cmd := &cobra.Command{
		Use: "start AGENT", Short: "Record a session for a runner to take up",
		Long: `Create a session of an agent of stint.yaml and leave it to a runner. It is durable
when the command returns. --run runs it here, and so does stint resume SESSION --run.
With --context the agent is one of the server, whose runners take the session up.`,
		Example: "  stint start triage -p \"issues of today\"\n  stint start triage --dedupe triage-2026-11-29 --json",
		Args:    exactly(1, "one agent"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if run {
				return a.runAgent(cmd.Context(), &o, args[0], false)
			}
			return a.start(cmd.Context(), &o, args[0])
		},
	}
	o.flags(cmd.Flags())
	cmd.Flags().BoolVar(&run, "run", false, "run it here, in the foreground")
	return cmd
}

func (a *app) start(ctx context.Context, o *requestOptions, name string) error {
	begin, err := a.beginner(o, name)
	if err != nil {
		return err
	}
	s, err := a.reach(ctx, true)
	if err != nil {
		return err
	}
	defer s.store.Close()
	made, err := begin(ctx, s)
	if err != nil {
		return err
	}
	row, err := s.store.Session(ctx, made.ID)
	if err != nil {
		return err
	}
	if a.json {
		return a.printSession(&row)
	}
	word := "is recorded"
	if made.Found {
		word = "was recorded before, with the same key"
	}
	status := view.StatusWord(&row)
	a.printf("%s (%s) %s: %s\n  %s\n  stint show %s · stint logs -f %s\n",
		row.Session.Name, row.Short, word, status, s.runs(&row), row.Short, row.Short)
	return nil
}

// beginner returns what begins a session of an agent: of the stint.yaml here, or of the
// server's. What is wrong is told before a store is opened.
func (a *app) beginner(o *requestOptions, name string) (func(context.Context, *site) (engine.Created, error), error) {
	far, err := a.chosen()
	if err != nil {
		return nil, err
	}
	if far != nil {
		q, err := o.start(a, name)
		return func(ctx context.Context, s *site) (engine.Created, error) {
			made, err := s.server.Start(ctx, q)
			return engine.Created{ID: made.ID, Found: made.Found}, err
		}, err
	}
	c, err := a.configured(name)
	return func(ctx context.Context, s *site) (engine.Created, error) {
		return a.record(ctx, s, c, func(agent engine.Agent) (engine.Request, error) { return o.request(a, agent) })
	}, err
}

// made is an agent of stint.yaml as it is now.
func (w *wiring) made(ctx context.Context, c config.Agent) (agent engine.Agent, err error) {
	err = w.until(ctx, func() error {
		agent, err = w.agent(c)
		return err
	})
	return agent, err
}

// record creates a session of an agent for a runner to take up; request says which.
func (a *app) record(ctx context.Context, s *site, c config.Agent, request func(engine.Agent) (engine.Request, error)) (engine.Created, error) {
	w := s.wire(nil)
	defer w.close()
	agent, err := w.made(ctx, c)
	if err != nil {
		return engine.Created{}, err
	}
	req, err := request(agent)
	if err != nil {
		return engine.Created{}, err
	}
	e, err := a.engine(ctx, s, w)
	if err != nil {
		return engine.Created{}, err
	}
	defer e.Close()
	return e.Start(ctx, req)
}
