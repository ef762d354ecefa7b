package main

import (
	"context"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/internal/access"
	"github.com/stint-dev/stint/internal/control"
	"github.com/stint-dev/stint/journal"
	"github.com/stint-dev/stint/policy"
)

// policyOf reads the policy that a session is pinned to; nil where it has none, or is one of
// an agent in code.
func policyOf(r stint.Reader) func(context.Context, *stint.Session) (*policy.Policy, error) {
	return func(ctx context.Context, ses *stint.Session) (*policy.Policy, error) {
		def, err := engine.Pinned(ctx, r, ses)
		if err != nil || len(def) == 0 {
			return nil, err
		}
		_, c, err := readPin(def)
		if err != nil || len(c.Policy) == 0 {
			return nil, err
		}
		return policy.Compile(c.PolicyRules())
	}
}

// gate holds what this person asks of a session against its agent's policy.
func (a *app) gate(s *site) func(context.Context, *stint.Row, policy.Verb, *journal.Command, stint.Actor) (*journal.ApprovalRequested, error) {
	read := policyOf(s.store)
	return func(ctx context.Context, row *stint.Row, verb policy.Verb, c *journal.Command, by stint.Actor) (*journal.ApprovalRequested, error) {
		p, err := read(ctx, &row.Session)
		if err != nil {
			return nil, err
		}
		return control.Gate(p, &row.Session, verb, c, by, texts(access.Local().Roles()))
	}
}
