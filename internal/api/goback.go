package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/internal/control"
	"github.com/stint-dev/stint/journal"
)

// changesBody is what a restart, a rollback or a branch goes on with otherwise than it was.
type changesBody struct {
	reasonBody
	From    *int            `json:"from,omitempty" minimum:"0" maximum:"1073741824" doc:"Keep loops 1 to so many; 0 is the very beginning. Without it: the newest completed one."`
	InDoubt string          `json:"in_doubt,omitempty" enum:"ask,skip,redo" doc:"With from: what becomes of steps in doubt that come after it."`
	State   json.RawMessage `json:"state,omitempty" doc:"Instead of the state of the loop."`
	Set     json.RawMessage `json:"set,omitempty" doc:"An RFC 7396 patch of the state of the loop."`
	Agent   string          `json:"agent,omitempty" maxLength:"300" doc:"An agent of stint.yaml to go on with as it is now. Without it the one that is pinned."`
}

type restartBody struct {
	changesBody
	Say  string `json:"say,omitempty" maxLength:"1000000" doc:"A message for the first loop after the restart."`
	Plan string `json:"plan,omitempty" pattern:"^[0-9a-f]{64}$" doc:"With from: the hash of the plan that was read. If the plan is another one by now, nothing is done."`
}

type rollbackBody struct {
	changesBody
	Plan string `json:"plan,omitempty" pattern:"^[0-9a-f]{64}$" doc:"The hash of the plan that was read. If the plan is another one by now, nothing is done."`
}

type branchBody struct {
	changesBody
	Name   string            `json:"name,omitempty" maxLength:"100" doc:"Of the branch; without it the session's and the loop."`
	Say    string            `json:"say,omitempty" doc:"A message for its first loop."`
	Labels map[string]string `json:"labels,omitempty" maxProperties:"64" doc:"Beside those of the session."`
	Limits control.Limits    `json:"limits,omitzero" doc:"Instead of the session's."`
}

// changes is the command that the body stands for, about row's session.
func (s *server) changes(ctx context.Context, row *stint.Row, b *changesBody) (c journal.Command, agent *engine.Agent, err error) {
	c = journal.Command{Reason: b.Reason, From: b.From, InDoubt: journal.DoubtChoice(b.InDoubt), State: b.State}
	if b.Set != nil {
		if b.State != nil {
			return c, nil, invalid("state and set are two ways of one thing", "give one of them")
		}
		if c.State, err = s.desk().State(ctx, &row.Session, b.From, b.Set); err != nil {
			return c, nil, err
		}
	}
	if b.Agent != "" {
		made, err := s.Brancher.Made(ctx, b.Agent)
		if err != nil {
			return c, nil, err
		}
		ref, config, err := engine.Pin(made)
		if err != nil {
			return c, nil, err
		}
		agent, c.Agent, c.Config = &made, &ref, config
	}
	if (c.State != nil || c.Agent != nil) && c.From == nil { // they begin a new line
		newest := row.Session.Checkpoint.Loop
		c.From = &newest
	}
	return c, agent, nil
}

type restartInput struct {
	SessionPath
	KeyHeader
	Body *restartBody
}

func (s *server) restart(ctx context.Context, in *restartInput) (*sessionOutput, error) {
	b := in.Body
	if b == nil {
		b = &restartBody{}
	}
	row, err := s.whole(ctx, in.SessionPath)
	if err != nil {
		return nil, err
	}
	c, _, err := s.changes(ctx, &row, &b.changesBody)
	if err != nil {
		return nil, err
	}
	if (b.InDoubt != "" || b.Plan != "") && c.From == nil {
		return nil, invalid("in_doubt and plan go with from", "on the same line a step in doubt is settled by resolve")
	}
	c.Say = b.Say
	return s.goBack(ctx, &row, control.Order{Kind: stint.Restart, ID: in.id(ctx), From: actor(ctx), Command: c}, b.Plan)
}

type rollbackInput struct {
	SessionPath
	KeyHeader
	Body rollbackBody
}

func (s *server) rollback(ctx context.Context, in *rollbackInput) (*sessionOutput, error) {
	row, err := s.whole(ctx, in.SessionPath)
	if err != nil {
		return nil, err
	}
	if in.Body.From == nil {
		return nil, invalid("from is missing", "say which loops to keep: 0 for the very beginning")
	}
	c, _, err := s.changes(ctx, &row, &in.Body.changesBody)
	if err != nil {
		return nil, err
	}
	return s.goBack(ctx, &row, control.Order{Kind: stint.Rollback, ID: in.id(ctx), From: actor(ctx), Command: c}, in.Body.Plan)
}

// goBack gives an order that may begin a new line, if the plan is still the one that was read.
func (s *server) goBack(ctx context.Context, row *stint.Row, o control.Order, read string) (*sessionOutput, error) {
	desk := s.desk()
	var plan *journal.Plan
	if o.Command.From != nil {
		p, _, err := desk.PlanRestart(ctx, row, o)
		if err != nil {
			return nil, err
		}
		if plan = &p; read != "" && read != p.Hash.String() {
			e := stint.Conflict.Errorf(string(o.Kind), "the plan is another one by now: the session went on since")
			e.Hint = "read the plan again"
			return nil, e
		}
	}
	if err := desk.Restart(settled(ctx), row, plan, o); err != nil {
		return s.asked(ctx, row, err)
	}
	return s.stands(ctx, row.Session.ID, http.StatusOK)
}

type branchInput struct {
	SessionPath
	KeyHeader
	Body *branchBody
}

func (s *server) branch(ctx context.Context, in *branchInput) (*sessionOutput, error) {
	body := in.Body
	if body == nil {
		body = &branchBody{}
	}
	if err := tooLong(len(body.Say)); err != nil {
		return nil, err
	}
	row, err := s.whole(ctx, in.SessionPath)
	if err != nil {
		return nil, err
	}
	c, agent, err := s.changes(ctx, &row, &body.changesBody)
	if err != nil {
		return nil, err
	}
	b := engine.Branch{Name: body.Name, State: c.State, Say: body.Say, Reason: c.Reason, Agent: agent, Actor: actor(ctx), InDoubt: c.InDoubt, Dedupe: in.id(ctx)}
	if len(body.Labels) > 0 {
		if b.Labels, err = control.Labels(body.Labels, row.Session.Labels); err != nil {
			return nil, err
		}
	}
	lim := row.Session.Limits
	if err := body.Limits.Apply(&lim, time.Now()); err != nil {
		return nil, &stint.Error{Code: stint.Invalid, Op: "limits", Err: err, Hint: "docs/api.md says what limits take"}
	}
	b.Limits = &lim
	desk := s.desk()
	plan, _, err := desk.PlanBranch(ctx, &row, &c, actor(ctx))
	if err != nil {
		return nil, err
	}
	made, err := desk.Branch(settled(ctx), &row, &plan, b)
	if err != nil {
		return s.asked(ctx, &row, err)
	}
	status := http.StatusCreated
	if made.Found {
		status = http.StatusOK
	}
	return s.stands(ctx, made.ID, status)
}

// asked is the answer to an order that is recorded and that others decide about: 202, the
// session as it stays until then, and where to look for the question.
func (s *server) asked(ctx context.Context, row *stint.Row, err error) (*sessionOutput, error) {
	var asked *control.Asked
	if !errors.As(err, &asked) {
		return nil, err
	}
	out, err := s.stands(ctx, row.Session.ID, http.StatusAccepted)
	if err == nil {
		out.Location = "/v1/approvals?session=" + row.Session.ID.String()
	}
	return out, err
}
