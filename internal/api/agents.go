package api

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/access"
	"github.com/stint-dev/stint/internal/control"
	"github.com/stint-dev/stint/internal/view"
	"github.com/stint-dev/stint/policy"
)

// Definition is an agent as it would be pinned, as JSON, schema stint.agent/1.
type Definition struct {
	Schema view.Schema     `json:"schema"`
	Sum    stint.Hash      `json:"definition_sum"`
	Agent  json.RawMessage `json:"definition"`
	Cost   json.RawMessage `json:"cost_limit"` // of a session that is started now: {max, why}
}

// SchemaAgent is the schema of a [Definition].
const SchemaAgent view.Schema = "stint.agent/1"

const (
	agents    = "agents"
	approvals = "approvals"
)

// agentList is stint.agent.list/1.
type agentList struct {
	Schema view.Schema  `json:"schema"`
	Items  []view.Agent `json:"items"`
}

type agentListOutput struct{ Body agentList }

type agentPath struct {
	Name string `path:"name" maxLength:"300" doc:"The name of an agent."`
}

type agentOutput struct{ Body Definition }

// agentRoutes are those of agents and approvals.
func (s *server) agentRoutes() {
	add(s, operation{Route: read("/v1/agents"), id: "listAgents", tag: agents, summary: "List the agents that can be started"},
		func(ctx context.Context, _ *struct{}) (*agentListOutput, error) {
			items, err := s.Agents.Agents(ctx)
			if items == nil {
				items = []view.Agent{}
			}
			return &agentListOutput{agentList{Schema: view.SchemaAgents, Items: items}}, err
		})
	add(s, operation{Route: read("/v1/agents/{name}"), id: "getAgent", tag: agents, summary: "Show an agent as it would be pinned", about: "Defaults are filled in; secrets are named, not shown."},
		func(ctx context.Context, in *agentPath) (*agentOutput, error) {
			a, err := s.Agents.Agent(ctx, in.Name)
			a.Schema = SchemaAgent
			return &agentOutput{a}, err
		})
	add(s, operation{Route: read("/v1/approvals"), id: "listApprovals", tag: approvals, summary: "List what waits for a person's decision",
		about: "The oldest first, with the exact arguments, and the rule that asks."}, s.approvals)
	decide := func(verb string) access.Route {
		return access.Route{Method: http.MethodPost, Pattern: "/v1/approvals/{id}/" + verb, Scope: access.ApprovalsDecide}
	}
	add(s, operation{Route: decide("approve"), id: "approve", tag: approvals, summary: "Say yes to what a session asks, or answer it",
		about: "The step is done with exactly the arguments that were shown, once. The first decision counts; a later one is told who decided, and when."},
		func(ctx context.Context, in *approveInput) (*sessionOutput, error) {
			v := control.Decision{State: stint.ApprovalApproved}
			if in.Body != nil {
				v.Note, v.Answer, v.Args, v.Others = in.Body.Message, string(in.Body.Answer), string(in.Body.Args), in.Body.texts()
				var err error
				if v.Grant, err = in.Body.Grant.grant(); err != nil {
					return nil, err
				}
			}
			return s.decide(ctx, in.ID, v)
		})
	add(s, operation{Route: decide("deny"), id: "deny", tag: approvals, summary: "Say no to what a session asks", about: "The step is not done; the agent goes on with the no, and with the message, as its result."},
		func(ctx context.Context, in *denyInput) (*sessionOutput, error) {
			v := control.Decision{State: stint.ApprovalDenied}
			if in.Body != nil {
				v.Note, v.Others = in.Body.Message, in.Body.texts()
			}
			return s.decide(ctx, in.ID, v)
		})
}

type approvalsInput struct {
	Session string `query:"session" maxLength:"300" doc:"Only those of this session, as it is addressed on the command line."`
}

type approvalsOutput struct{ Body view.Approvals }

func (s *server) approvals(ctx context.Context, in *approvalsInput) (*approvalsOutput, error) {
	now := time.Now()
	var one *stint.Row
	if in.Session != "" {
		row, _, err := view.Find(ctx, s.Store, in.Session, now)
		if err != nil {
			return nil, err
		}
		one = &row
	}
	v, err := view.NewApprovals(ctx, s.Store, one, now)
	return &approvalsOutput{v}, err
}

// ApprovalPath is the part of a path that names a question.
type ApprovalPath struct {
	ID string `path:"id" maxLength:"300" doc:"An approval: SESSION.SEQ, as /v1/approvals lists it; or a session that asks one question."`
}

type denyBody struct {
	Message string `json:"message,omitempty" maxLength:"1000" doc:"Your words, one line; the agent and the journal get them."`
	othersBody
}

type approveBody struct {
	Message string          `json:"message,omitempty" maxLength:"1000" doc:"Your words, one line; the agent and the journal get them."`
	Answer  json.RawMessage `json:"answer,omitempty" doc:"The answer, of the schema that was shown, where one is asked for."`
	Args    json.RawMessage `json:"args,omitempty" doc:"The arguments to do it with instead of those that were shown, where that is allowed. The agent is told."`
	Grant   *grantBody      `json:"grant,omitempty" doc:"Say yes to calls to come besides."`
	othersBody
}

// othersBody are the answers that branches go on with.
type othersBody struct {
	Others []json.RawMessage `json:"branch_with,omitempty" maxItems:"10" doc:"Answers with which branches go on from the question: \"yes\", \"no\", or any JSON of the schema that was shown where an answer is asked for."`
}

// texts are the answers as a decision has them.
func (b *othersBody) texts() (all []string) {
	for _, raw := range b.Others {
		all = append(all, string(raw))
	}
	return all
}

type grantBody struct {
	Scope string `json:"scope" enum:"session,agent,store" doc:"Of this session, of its agent, or of all."`
	When  string `json:"when,omitempty" maxLength:"4000" doc:"The calls for which this is true, like args.amount < 100; true for all. Without it those of exactly these arguments."`
	For   string `json:"for,omitempty" maxLength:"40" doc:"How long it holds, like 48h; without it 30 days."`
}

// grant is what the body grants; nil: nothing.
func (b *grantBody) grant() (*policy.Grant, error) {
	if b == nil {
		return nil, nil
	}
	life := policy.GrantLife
	if b.For != "" {
		var err error
		if life, err = time.ParseDuration(b.For); err != nil || life <= 0 {
			return nil, invalid("for is no length of time", "write it like 48h")
		}
	}
	return &policy.Grant{Scope: policy.Scope(b.Scope), When: b.When, Expires: time.Now().Add(life).UTC()}, nil
}

type approveInput struct {
	ApprovalPath
	Body *approveBody
}

type denyInput struct {
	ApprovalPath
	Body *denyBody
}

// decide decides a question. A decision is made once whatever is repeated, so that it
// takes no key.
func (s *server) decide(ctx context.Context, id string, v control.Decision) (*sessionOutput, error) {
	v.From, v.Roles = actor(ctx), rolesOf(ctx)
	row, _, err := s.desk().Decide(settled(ctx), id, v, s.MayDecide)
	if err != nil {
		return nil, err
	}
	return s.stands(ctx, row.Session.ID, http.StatusOK)
}
