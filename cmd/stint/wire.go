package main

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/agent/acp"
	"github.com/stint-dev/stint/agent/cli"
	"github.com/stint-dev/stint/agent/exec"
	agenthttp "github.com/stint-dev/stint/agent/http"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/internal/config"
	"github.com/stint-dev/stint/internal/price"
	"github.com/stint-dev/stint/journal"
	"github.com/stint-dev/stint/model"
	"github.com/stint-dev/stint/policy"
	"github.com/stint-dev/stint/tool/mcp"
)

// runtimeExec is the runtime of agents that are programs. The runtime of an agent is its
// kind in stint.yaml.
const runtimeExec = config.KindExec

// runtimes are all that this program can drive.
func runtimes() []string {
	return []string{config.KindExec, config.KindLLM, config.KindHTTP, config.KindCLI}
}

// wiring makes engine agents out of what the configuration says of them.
type wiring struct {
	getenv func(string) (string, bool)
	kept   copies // the files of agents with pin: copy
	tee    *tee   // nil unless a foreground command shows the agent's output
	closes []func() error

	prices func() (*price.Table, error)
	hear   func(stint.ID, int, model.Delta) // pieces of answers, for who watches; nil: nobody does
	waits  func(model.Wait)                 // what a provider makes a call wait for
	talk   func(server, line string)        // what servers of tools say; nil: nobody listens
	first  func(file string, accepted []mcp.Pin)
	look   bool       // accept nothing of servers of tools
	over   *wiring    // of which this is one part, which is closed alone; nil: it is the whole
	again  *again     // the agents only do again what is on record; nil: they act
	shut   sync.Mutex // held while all is closed
	mu     sync.Mutex
	paces  map[string]*model.Pace // by provider
	live   map[string]*mcp.Server // by file and how they are started; behind mu, as closes
}

// wire makes the wiring of a site.
func (s *site) wire(t *tee) *wiring {
	return &wiring{getenv: os.LookupEnv, kept: copies{s.db, filepath.Join(s.path+".d", "pins")}, tee: t,
		prices: func() (*price.Table, error) { return s.app.prices(&priceOptions{}) }, first: s.app.firstUse}
}

// later has something closed with the wiring.
func (w *wiring) later(c func() error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closes = append(w.closes, c)
}

// close ends the processes that agents kept, and returns when they are gone, whoever
// began to end them.
func (w *wiring) close() {
	w.shut.Lock()
	defer w.shut.Unlock()
	w.mu.Lock()
	all := w.closes
	w.closes = nil
	w.mu.Unlock()
	for _, c := range all {
		_ = c()
	}
}

// until does what may wait for servers of tools that start, and gives it up, with all that
// the wiring holds, when ctx ends.
func (w *wiring) until(ctx context.Context, do func() error) error {
	stop := context.AfterFunc(ctx, w.close)
	defer stop()
	if err := do(); err == nil || ctx.Err() == nil {
		return err
	}
	return ctx.Err()
}

// resolve makes the agent that a session is pinned to.
func (w *wiring) resolve(ref stint.AgentRef, def json.RawMessage) (engine.Agent, error) {
	if !slices.Contains(runtimes(), ref.Runtime) {
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
	if c.Kind != config.KindExec {
		return w.pinnedTo(c, nil)
	}
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

// pinnedTo makes an agent that is no program, pinned as it is now; of servers of tools that
// a session knows already, to what they were then.
func (w *wiring) pinnedTo(c config.Agent, servers map[string]mcp.Pin) (engine.Agent, error) {
	def, _ := c.Definition()
	p := pin{Agent: def, Servers: maps.Clone(servers)}
	loop, err := w.placed(&c, &p) // what it finds out is in the pin then
	if err != nil {
		return engine.Agent{}, err
	}
	b, err := stint.Marshal(p)
	if err != nil {
		return engine.Agent{}, err
	}
	return w.engineAgent(c, b, nil, loop)
}

// loop makes what runs the loops of an agent.
func (w *wiring) loop(c *config.Agent, p *pin) (stint.Agent, error) {
	switch c.Kind {
	case config.KindExec:
		return w.exec(c, p)
	case config.KindLLM:
		return w.llm(c, p)
	case config.KindHTTP:
		return w.http(c)
	case config.KindCLI:
		return w.cli(c)
	}
	e := stint.Invalid.Errorf("agent "+c.Name, "this program cannot drive agents of kind %s", c.Kind)
	e.Hint = "a newer stint may; stint version says which this is"
	return nil, e
}

// cli makes the agent of a command line of its own.
func (w *wiring) cli(c *config.Agent) (stint.Agent, error) {
	var env map[string]string
	if w.again == nil { // else no process is started, and no secret is needed
		var err error
		if env, err = c.ResolveEnv(w.getenv, os.ReadFile); err != nil {
			return nil, err
		}
	}
	if c.Protocol == config.ACP {
		return w.acp(c, env)
	}
	spec := cli.Preset(cli.Protocol(c.Protocol))
	if len(c.Command) > 0 {
		spec.Command = c.Command
	}
	spec.Command = w.again.unstartable(append(slices.Clone(spec.Command), c.CLI.Args...))
	for _, name := range c.Pass {
		if !slices.Contains(spec.Pass, name) {
			spec.Pass = append(spec.Pass, name)
		}
	}
	spec.Dir, spec.Env, spec.Effects, spec.Interactive, spec.MaxOutput = c.Dir, env, c.Effects, c.CLI.Interactive, c.Output
	a, err := cli.New(spec)
	if err != nil {
		return nil, err
	}
	w.later(a.Close)
	return a, nil
}

// acp makes the agent that speaks the Agent Client Protocol.
func (w *wiring) acp(c *config.Agent, env map[string]string) (stint.Agent, error) {
	a, err := acp.New(acp.Spec{Command: w.again.unstartable(append(slices.Clone(c.Command), c.CLI.Args...)), Dir: c.Dir, Env: env, Pass: c.Pass, Effects: c.Effects,
		Hold: c.CLI.Hold, Interactive: c.CLI.Interactive, MaxOutput: c.Output})
	if err != nil {
		return nil, err
	}
	w.later(a.Close)
	return a, nil
}

// http makes the agent behind a URL.
func (w *wiring) http(c *config.Agent) (stint.Agent, error) {
	if err := w.again.mayAsk(c.HTTP.URL); err != nil {
		return nil, err
	}
	secret, headers, err := c.HTTP.Resolve(w.getenv, os.ReadFile)
	if err != nil {
		return nil, err
	}
	spec := agenthttp.Spec{URL: c.HTTP.URL, Headers: map[string]string{}, Secrets: map[string]string{}, Timeout: c.HTTP.Timeout, Idle: c.HTTP.Idle,
		AllowPrivate: c.HTTP.AllowPrivate, Effects: c.Effects, MaxOutput: c.Output}
	for name, value := range headers {
		if config.IsReference(c.HTTP.Headers[name]) {
			spec.Secrets[name] = value
		} else {
			spec.Headers[name] = value
		}
	}
	if secret != "" {
		if spec.Secret, err = agenthttp.ParseSecret(secret); err != nil {
			return nil, err
		}
	}
	a, err := agenthttp.New(spec)
	if err != nil {
		return nil, err
	}
	w.later(a.Close)
	return a, nil
}

// spec is how the agent's program runs.
func (w *wiring) spec(c config.Agent) (exec.Spec, map[string]string, error) {
	env, err := c.ResolveEnv(w.getenv, os.ReadFile)
	if err != nil {
		return exec.Spec{}, nil, err
	}
	spec := exec.Spec{
		Command: c.Command, Protocol: exec.Protocol(c.Protocol), Dir: c.Dir, Env: env, Pass: c.Pass,
		Keep: exec.Keep(c.Keep), Effect: c.Effect, Effects: c.Effects, MaxOutput: c.Output, Offline: w.again.offline(),
	}
	if w.tee != nil {
		spec.TeeStdout, spec.TeeStderr = w.tee.stdout, w.tee.stderr
	}
	return spec, env, spec.Validate()
}

// make makes the engine agent of a pin.
func (w *wiring) make(c config.Agent, def json.RawMessage, p *pin) (engine.Agent, error) {
	if c.Kind != config.KindExec {
		loop, err := w.placed(&c, p)
		if err != nil {
			return engine.Agent{}, err
		}
		return w.engineAgent(c, def, nil, loop)
	}
	_, env, err := w.spec(c)
	if err != nil {
		return engine.Agent{}, err
	}
	loop, err := w.placed(&c, p)
	if err != nil {
		return engine.Agent{}, err
	}
	return w.engineAgent(c, def, env, loop)
}

// exec makes the agent that is a program of the exec protocol.
func (w *wiring) exec(c *config.Agent, p *pin) (stint.Agent, error) {
	spec, _, err := w.spec(*c)
	if err != nil {
		return nil, err
	}
	if p.Store != "" {
		if err := w.kept.use(&spec, p); err != nil {
			return nil, err
		}
	}
	run, err := exec.New(spec)
	if err != nil {
		return nil, err
	}
	w.later(run.Close)
	if w.again == nil && p.Store == "" && len(p.Files) > 0 {
		return &pinned{Agent: run, spec: spec, files: p.Files, strict: c.Pin == config.PinStrict}, nil
	}
	return run, nil
}

// engineAgent is what all kinds have in common. env is what commands that settle doubts
// run with.
func (w *wiring) engineAgent(c config.Agent, def json.RawMessage, env map[string]string, loop stint.Agent) (engine.Agent, error) {
	limits, err := w.limits(&c)
	if err != nil {
		return engine.Agent{}, err
	}
	out := engine.Agent{
		Name: c.Name, Runtime: c.Kind, Loop: loop, Config: def, Limits: limits, Labels: c.Labels,
		Concurrency: c.Concurrency, Grace: c.Grace,
		Retry: engine.Retry{Attempts: c.Retry.Attempts, Initial: c.Retry.Initial, Max: c.Retry.Max, Factor: c.Retry.Factor, Jitter: c.Retry.Jitter},
		Doubt: func(step string) engine.Doubt { return doubt(c, env, step) },
	}
	if len(c.Policy) > 0 && (c.LLM == nil || c.LLM.Record == nil) { // without one, what steps say of themselves decides
		if out.Policy, err = policy.Compile(c.PolicyRules()); err != nil {
			return engine.Agent{}, err
		}
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
