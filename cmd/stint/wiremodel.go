package main

import (
	"fmt"
	"net/http"
	"os"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/agent/llm"
	"github.com/stint-dev/stint/health"
	"github.com/stint-dev/stint/internal/config"
	"github.com/stint-dev/stint/internal/price"
	"github.com/stint-dev/stint/internal/record"
	"github.com/stint-dev/stint/model"
	"github.com/stint-dev/stint/model/anthropic"
	"github.com/stint-dev/stint/model/openai"
	"github.com/stint-dev/stint/model/script"
)

// llm makes the agent of a model with tools.
func (w *wiring) llm(c *config.Agent, p *pin) (stint.Agent, error) {
	l := c.LLM
	m, err := w.model(&l.ModelRef)
	if err != nil {
		return nil, err
	}
	set, err := w.tools(c, p)
	if err != nil {
		return nil, err
	}
	spec := llm.Spec{
		Model: m, System: l.Instructions, Prompt: l.Prompt, Tools: set, Interactive: l.Interactive, MaxTokens: l.MaxTokens,
		Temperature: l.Temperature, Cache: l.Cache, TrustAll: l.Rules["tainted-once"].Off, Health: healthRules(l.Rules), Hear: w.hear,
		Context: llm.Context{Window: l.Context.Window, Compact: l.Context.Compact, Excerpt: int(l.Context.Excerpt)},
	}
	if r := l.Record; r != nil {
		spec.Record = record.New(w.kept.store, record.Of{Session: r.Session, Line: r.Line, Behind: r.Behind, Until: r.Until})
	}
	free := map[string]bool{m.Name(): isFree(&l.Provider)}
	if r := l.Rubric; r != nil {
		judge, err := w.model(&r.ModelRef)
		if err != nil {
			return nil, err
		}
		free[judge.Name()] = isFree(&r.Provider)
		spec.Rubric = &llm.Rubric{Text: r.Text, Model: judge, Rounds: r.Rounds}
	}
	if w.again != nil {
		return llm.New(spec) // nothing is spent
	}
	table, err := w.prices()
	if err != nil {
		return nil, err
	}
	spec.Prices, _ = table.Version()
	spec.Cost = func(name string, u model.Usage) (stint.Money, bool) {
		if free[name] {
			return 0, true
		}
		cost, _, known := table.Cost(name, stint.Usage{Input: u.Input, Output: u.Output, CacheRead: u.CacheRead, CacheWrite: u.CacheWrite})
		return cost, known
	}
	return llm.New(spec)
}

// isFree reports whether nobody is paid: a script, or a service on this machine.
func isFree(p *config.Provider) bool { return p.API == config.Script || price.Free(p.BaseURL) }

func healthRules(rules map[string]config.Rule) health.Rules {
	one := func(name string) health.Rule {
		r := rules[name]
		return health.Rule{Off: r.Off, Warn: r.Warn, Pause: r.Pause}
	}
	return health.Rules{N01: one(health.SameCall), N02: one(health.SameError), N03: one(health.PingPong), N04: one(health.Recurring)}
}

// model makes a model as it is reached. All users of one provider in this process wait
// for each other.
func (w *wiring) model(ref *config.ModelRef) (model.Model, error) {
	p := &ref.Provider
	if w.again != nil && p.API != config.Script {
		return silent(ref.ModelName()), nil
	}
	var m model.Model
	headers, err := w.headers(p)
	if err != nil {
		return nil, err
	}
	switch p.API {
	case config.Script:
		m, err = script.Load(ref.ModelName())
		if err != nil {
			return nil, &stint.Error{Code: stint.Invalid, Op: "model", Err: err, Hint: "a script is a JSON file of answers; see the documentation of model/script"}
		}
		return m, nil
	case config.Messages:
		m, err = anthropic.New(anthropic.Options{Model: ref.ModelName(), BaseURL: p.BaseURL, Key: w.key(p), Headers: headers, Idle: p.Timeout})
	case config.Chat, config.Responses:
		m, err = openai.New(openai.Options{Model: ref.ModelName(), API: openai.API(p.API), BaseURL: p.BaseURL, Key: w.key(p), Headers: headers, Idle: p.Timeout})
	default:
		err = fmt.Errorf("there is no API %q", p.API)
	}
	if err != nil {
		return nil, &stint.Error{Code: stint.Invalid, Op: "model " + ref.Model, Err: err, Hint: "see model and providers in stint.yaml"}
	}
	return &model.Paced{Model: m, Pace: w.pace(p), Waits: w.waits}, nil
}

// key looks the key up at each call, so that it is stored nowhere and a rotated one is
// used at once. A provider without one gets none.
func (w *wiring) key(p *config.Provider) func() (string, error) {
	if p.Key == "" {
		return nil
	}
	return func() (string, error) { return config.Resolve(p.Key, w.getenv, os.ReadFile) }
}

// headers are those of the file, resolved.
func (w *wiring) headers(p *config.Provider) (http.Header, error) {
	h := http.Header{}
	for name, value := range p.Headers {
		text, err := config.Resolve(value, w.getenv, os.ReadFile)
		if err != nil {
			return nil, err
		}
		h.Set(name, text)
	}
	return h, nil
}

// pace is what all users of a provider share.
func (w *wiring) pace(p *config.Provider) *model.Pace {
	w = w.whole()
	w.mu.Lock()
	defer w.mu.Unlock()
	at := p.Name + " " + p.BaseURL
	if w.paces[at] == nil {
		if w.paces == nil {
			w.paces = map[string]*model.Pace{}
		}
		w.paces[at] = model.NewPace(model.PaceConfig{Parallel: p.Parallel})
	}
	return w.paces[at]
}
