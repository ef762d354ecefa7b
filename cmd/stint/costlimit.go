package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/config"
	"github.com/stint-dev/stint/internal/price"
)

// costLimit is the limit of money of an agent's sessions, and where it is from.
type costLimit struct {
	Max *stint.Money `json:"max"` // nil: there is none
	Why string       `json:"why"` // "given", "default", "free", "no price"

	unpriced []string // models
}

// limitOfCost says which limit of money a session of the agent gets. The default is for
// models that all have a price: it would count nothing of the others, and only somebody who
// asked for a limit wants to be refused for that.
func limitOfCost(c *config.Agent, table func() (*price.Table, error)) (*costLimit, error) {
	m := &costLimit{Why: "given"}
	if c.Bounds.Cost > 0 {
		m.Max = &c.Bounds.Cost
	}
	if !c.Bounds.CostDefault || c.LLM == nil {
		return m, nil
	}
	models := []*config.ModelRef{&c.LLM.ModelRef}
	if c.LLM.Rubric != nil {
		models = append(models, &c.LLM.Rubric.ModelRef)
	}
	models = slices.DeleteFunc(models, func(r *config.ModelRef) bool { return isFree(&r.Provider) })
	if len(models) == 0 {
		return &costLimit{Why: "free"}, nil
	}
	t, err := table()
	if err != nil {
		return nil, err
	}
	for _, r := range models {
		if _, _, by := t.Find(r.ModelName()); by == nil && !slices.Contains(m.unpriced, r.ModelName()) {
			m.unpriced = append(m.unpriced, r.ModelName())
		}
	}
	if m.Why = "default"; len(m.unpriced) > 0 {
		m.Max, m.Why = nil, "no price"
	}
	return m, nil
}

// line is the limit as stint agent show has it.
func (m *costLimit) line() string {
	switch {
	case m.Why == "free":
		return "none: nothing that it uses costs money"
	case m.Why == "no price":
		return fmt.Sprintf("none: what %s costs is not known; stint price set gives it a price, and so a limit of %v",
			strings.Join(m.unpriced, " and "), config.DefaultCost)
	case m.Max == nil:
		return "none"
	case m.Why == "default":
		return m.Max.String() + " by default"
	}
	return m.Max.String()
}

// costLimit is the limit of money that a session of the agent would get now.
func (a *app) costLimit(c *config.Agent) (*costLimit, error) {
	return limitOfCost(c, func() (*price.Table, error) { return a.prices(&priceOptions{}) })
}

// models holds the models of an agent against the prices, whatever limit it has.
func (a *app) models(c *config.Agent) (*costLimit, error) {
	asked := *c
	asked.Bounds.Cost, asked.Bounds.CostDefault = config.DefaultCost, true
	return a.costLimit(&asked)
}

// defaultMoney gives a session that had no limit of money, since its models cost nothing,
// the one that sessions of another agent begin with.
func (a *app) defaultMoney(c *config.Agent, lim *stint.Limits) error {
	m, err := a.models(c)
	if err == nil && m.Why == "default" && lim.Cost == 0 && c.Bounds.CostDefault {
		lim.Cost = config.DefaultCost
	}
	return err
}

// countsMoney refuses a limit of money on models of which nobody knows what they cost,
// before a session fails for that.
func (a *app) countsMoney(c *config.Agent, lim *stint.Limits) error {
	m, err := a.models(c)
	if err != nil || m.Why != "no price" || lim.Cost <= 0 {
		return err
	}
	e := stint.Invalid.Errorf("cost", "the session has a limit of money, %v, and what %s costs is not known", lim.Cost, strings.Join(m.unpriced, " and "))
	e.Hint = "stint price set gives it a price; stint branch --cost none does without a limit"
	return e
}

// limits are those that sessions of the agent begin with.
func (w *wiring) limits(c *config.Agent) (func(time.Time) stint.Limits, error) {
	money, err := limitOfCost(c, w.prices)
	if err != nil || money.Max != nil {
		return c.Limits, err
	}
	return func(created time.Time) stint.Limits {
		l := c.Limits(created)
		l.Cost = 0
		return l
	}, nil
}
