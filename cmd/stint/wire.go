package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/agent/exec"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/internal/config"
	"github.com/stint-dev/stint/journal"
)

// runtimeExec is the runtime of agents that are programs.
const runtimeExec = "exec"

// wiring makes engine agents out of what the configuration says of them.
type wiring struct {
	getenv func(string) (string, bool)
	kept   copies // the files of agents with pin: copy
	tee    *tee   // nil unless a foreground command shows the agent's output
	closes []func() error
}

// wire makes the wiring of a site.
func (s *site) wire(t *tee) *wiring {
	return &wiring{getenv: os.LookupEnv, kept: copies{s.store, filepath.Join(s.path+".d", "pins")}, tee: t}
}

// close ends the processes that agents kept.
func (w *wiring) close() {
	for _, c := range w.closes {
		_ = c()
	}
}

// resolve makes the agent that a session is pinned to.
func (w *wiring) resolve(ref stint.AgentRef, def json.RawMessage) (engine.Agent, error) {
	if ref.Runtime != runtimeExec {
		err := stint.NotFound.Errorf("agent", "this program cannot drive %q (runtime %s)", ref.Name, ref.Runtime)
		err.Hint = "run it with the program that has the agent in its code"
		return engine.Agent{}, err
	}
	p, c, err := readPin(def)
	if err != nil {
		return engine.Agent{}, err
	}
	return w.make(c, def, &p)
}

// agent makes an engine agent of a resolved definition, pinned as it is now.
func (w *wiring) agent(c config.Agent) (engine.Agent, error) {
	spec, _, err := w.spec(c)
	if err != nil {
		return engine.Agent{}, err
	}
	def, err := newPin(&c, spec, w.kept)
	if err != nil {
		return engine.Agent{}, err
	}
	p, c, err := readPin(def)
	if err != nil {
		return engine.Agent{}, err
	}
	return w.make(c, def, &p)
}

// spec is how the agent's program runs.
func (w *wiring) spec(c config.Agent) (exec.Spec, map[string]string, error) {
	env, err := c.ResolveEnv(w.getenv, os.ReadFile)
	if err != nil {
		return exec.Spec{}, nil, err
	}
	spec := exec.Spec{
		Command: c.Command, Protocol: exec.Protocol(c.Protocol), Dir: c.Dir, Env: env, Pass: c.Pass,
		Keep: exec.Keep(c.Keep), Effect: c.Effect, Effects: c.Effects, MaxOutput: c.Output,
	}
	if w.tee != nil {
		spec.TeeStdout, spec.TeeStderr = w.tee.stdout, w.tee.stderr
	}
	return spec, env, spec.Validate()
}

// make makes the engine agent of a pin.
func (w *wiring) make(c config.Agent, def json.RawMessage, p *pin) (engine.Agent, error) {
	spec, env, err := w.spec(c)
	if err != nil {
		return engine.Agent{}, err
	}
	var loop stint.Agent
	if p.Store != "" {
		if err := w.kept.use(&spec, p); err != nil {
			return engine.Agent{}, err
		}
	}
	run, err := exec.New(spec)
	if err != nil {
		return engine.Agent{}, err
	}
	w.closes = append(w.closes, run.Close)
	if loop = run; p.Store == "" && len(p.Files) > 0 {
		loop = &pinned{Agent: run, spec: spec, files: p.Files, strict: c.Pin == config.PinStrict}
	}
	out := engine.Agent{
		Name: c.Name, Runtime: runtimeExec, Loop: loop, Config: def, Limits: c.Limits, Labels: c.Labels,
		Concurrency: c.Concurrency, Grace: c.Grace,
		Retry: engine.Retry{Attempts: c.Retry.Attempts, Initial: c.Retry.Initial, Max: c.Retry.Max, Factor: c.Retry.Factor, Jitter: c.Retry.Jitter},
		Doubt: func(step string) engine.Doubt { return doubt(c, env, step) },
	}
	if c.Done == "" {
		return out, nil
	}
	cond, err := config.CompileDone(c.Done)
	if err != nil {
		return engine.Agent{}, err
	}
	out.Done = func(s stint.Session, state json.RawMessage) (bool, error) {
		return cond.Eval(config.Env{State: state, Loop: s.At.Loop, Totals: s.Totals, Session: s})
	}
	return out, nil
}

// verifyTime bounds a command that finds out whether a step took place.
const verifyTime = time.Minute

// doubt is the agent's rule for a step in doubt.
func doubt(c config.Agent, env map[string]string, step string) engine.Doubt {
	rule := c.InDoubt[step]
	switch rule.Do {
	case config.Unknown:
		return engine.Doubt{Unknown: true}
	case config.Verify:
		return engine.Doubt{Verify: func(ctx context.Context, s stint.Step, key string) (journal.Verdict, json.RawMessage, error) {
			ctx, cancel := context.WithTimeout(ctx, verifyTime)
			defer cancel()
			happened, result, err := exec.Verify(ctx, exec.Spec{Command: rule.Verify, Dir: c.Dir, Env: env, Pass: c.Pass}, s, key)
			if err != nil || happened {
				return journal.Happened, result, err
			}
			return journal.NotHappened, nil, nil
		}}
	}
	return engine.Doubt{}
}
