package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/access"
	"github.com/stint-dev/stint/internal/control"
	"github.com/stint-dev/stint/journal"
)

const orders = "orders"

// orderRoutes are those that tell a session to do something.
func (s *server) orderRoutes() {
	run := func(verb string) access.Route {
		return access.Route{Method: http.MethodPost, Pattern: "/v1/sessions/{id}/" + verb, Scope: access.SessionsRun}
	}
	message := run("messages")
	message.MaxBody = promptBody
	add(s, operation{Route: message, id: "sendMessage", tag: orders, summary: "Send a session a message",
		about: "Its next loop gets it; a session that waits for a message is woken. busy says what happens while it is at work: " +
			"queue, the message waits; reject, 409; interrupt, the turn is canceled first; replace, another session of its agent begins with the message, 201, and this one is stopped."}, s.message)
	for _, v := range []struct {
		kind           stint.MessageKind
		summary, about string
	}{
		{stint.Interrupt, "Cancel a session's turn", "The step under way is canceled; the session then waits for a message."},
		{stint.Resume, "Let a session go on", "Of one that waits for the operator, a budget, a rule, a time or a retry."},
		{stint.Stop, "End a session at its next step boundary", "It is canceled then."},
		{stint.Kill, "End a session at once", "With every process that its agent started."},
	} {
		add(s, operation{Route: run(string(v.kind)), id: string(v.kind) + "Session", tag: orders, summary: v.summary, about: v.about},
			func(ctx context.Context, in *plainInput) (*sessionOutput, error) {
				return s.give(ctx, in.SessionPath, control.Order{Kind: v.kind, ID: in.id(ctx), Command: journal.Command{Reason: in.reason()}})
			})
	}
	add(s, operation{Route: run("pause"), id: "pauseSession", tag: orders, summary: "Park a session until resume", about: "At its next step boundary; with now the step under way is canceled."},
		func(ctx context.Context, in *pauseInput) (*sessionOutput, error) {
			c := journal.Command{}
			if in.Body != nil {
				c = journal.Command{Reason: in.Body.Reason, Now: in.Body.Now}
			}
			return s.give(ctx, in.SessionPath, control.Order{Kind: stint.Pause, ID: in.id(ctx), Command: c})
		})
	add(s, operation{Route: run("limits"), id: "changeLimits", tag: orders, summary: "Change a session's limits", about: "Members that are absent leave a limit as it is."}, s.limits)
	add(s, operation{Route: run("resolve"), id: "resolveStep", tag: orders, summary: "Say what became of a step in doubt",
		about: "The address may name the step, like x81d:4.2; it then has to be that one. happened: the effect took place, result is what the step gave. not: it did not, and is done again under the same key. unknown: nobody can tell, and the loop goes on with a marker."}, s.resolve)
	add(s, operation{Route: run("restart"), id: "restartSession", tag: orders, summary: "Begin a session again",
		about: "From its newest checkpoint on the same line, or with from on a new line behind that loop; so it is with set, state and agent. Read the plan first; with its hash as plan, a session that went on since refuses."}, s.restart)
	add(s, operation{Route: run("rollback"), id: "rollbackSession", tag: orders, summary: "Take a session back and park it",
		about: "On a new line behind the loop that from names, where it waits for resume. What came after stays readable."}, s.rollback)
	branch := run("branch")
	branch.MaxBody = promptBody
	add(s, operation{Route: branch, id: "branchSession", tag: orders, summary: "Begin another session behind a loop of this one",
		about: "With a copy of the state there, and a journal, limits and keys of its own; the session that it comes from stays as it is. The answer is the branch."}, s.branch)
}

// reasonBody is the body of an order that takes a reason alone.
type reasonBody struct {
	Reason string `json:"reason,omitempty" maxLength:"1000" doc:"Why; kept in the journal."`
}

type plainInput struct {
	SessionPath
	KeyHeader
	Body *reasonBody
}

func (in *plainInput) reason() string {
	if in.Body == nil {
		return ""
	}
	return in.Body.Reason
}

type pauseInput struct {
	SessionPath
	KeyHeader
	Body *struct {
		reasonBody
		Now bool `json:"now,omitempty" doc:"Cancel the step under way instead of waiting for its end."`
	}
}

// give gives an order and answers how the session stands then.
func (s *server) give(ctx context.Context, in SessionPath, o control.Order) (*sessionOutput, error) {
	row, err := s.whole(ctx, in)
	if err != nil {
		return nil, err
	}
	o.From = actor(ctx)
	if err := s.desk().Give(settled(ctx), &row, o); err != nil {
		return nil, err
	}
	return s.stands(ctx, row.Session.ID, http.StatusOK)
}

// settled is for what goes on once it has begun: who has gone does not keep an order that
// was taken from acting.
func settled(ctx context.Context) context.Context { return context.WithoutCancel(ctx) }

type limitsInput struct {
	SessionPath
	KeyHeader
	Body struct {
		control.Limits
		reasonBody
	}
}

func (s *server) limits(ctx context.Context, in *limitsInput) (*sessionOutput, error) {
	row, err := s.whole(ctx, in.SessionPath)
	if err != nil {
		return nil, err
	}
	lim := row.Session.Limits
	if err := in.Body.Apply(&lim, time.Now()); err != nil {
		return nil, &stint.Error{Code: stint.Invalid, Op: "limits", Err: err, Hint: "docs/api.md says what limits take"}
	}
	if lim == row.Session.Limits {
		return nil, invalid("no limit changes", "give wall, idle, deadline, loops, steps, tokens, cost or on_limit")
	}
	o := control.Order{Kind: stint.SetLimit, ID: in.id(ctx), From: actor(ctx), Command: journal.Command{Reason: in.Body.Reason, Limits: &lim}}
	if err := s.desk().Give(settled(ctx), &row, o); err != nil {
		return nil, err
	}
	return s.stands(ctx, row.Session.ID, http.StatusOK)
}

type resolveInput struct {
	SessionPath
	KeyHeader
	Body struct {
		reasonBody
		Verdict string          `json:"verdict" enum:"happened,not,unknown"`
		Result  json.RawMessage `json:"result,omitempty" doc:"With happened: what the step gave."`
	}
}

func (s *server) resolve(ctx context.Context, in *resolveInput) (*sessionOutput, error) {
	if in.Body.Result != nil && in.Body.Verdict != string(journal.Happened) {
		return nil, invalid("result goes with the verdict happened", "leave it out")
	}
	row, place, err := s.find(ctx, in.SessionPath)
	if err != nil {
		return nil, err
	}
	c := journal.Command{Reason: in.Body.Reason, Verdict: journal.Verdict(in.Body.Verdict), Result: in.Body.Result}
	if err := s.desk().Resolve(settled(ctx), &row, place, control.Order{Kind: stint.Resolve, ID: in.id(ctx), From: actor(ctx), Command: c}); err != nil {
		return nil, err
	}
	return s.stands(ctx, row.Session.ID, http.StatusOK)
}

func hintOf(err error) string {
	if e, ok := errors.AsType[*stint.Error](err); ok {
		return e.Hint
	}
	return ""
}
