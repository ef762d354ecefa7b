package api

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/access"
	"github.com/stint-dev/stint/internal/control"
	"github.com/stint-dev/stint/internal/term"
	"github.com/stint-dev/stint/internal/view"
	"github.com/stint-dev/stint/internal/worktree"
	"github.com/stint-dev/stint/journal"
)

const sessions = "sessions"

// SessionPath is the part of a path that names a session. It is exported for the framework,
// which reads exported members alone.
type SessionPath struct {
	ID string `path:"id" maxLength:"300" doc:"A session: its name, id or short id, AGENT@06:00, @last or @bad; then %2FLINE and :LOOP.STEP, as on the command line."`
}

// sessionRoutes are those that read sessions, and that begin one.
func (s *server) sessionRoutes() {
	add(s, operation{Route: read("/v1/sessions"), id: "listSessions", tag: sessions, summary: "List sessions",
		about: "Newest first. Follow next until it is null: a page begins behind the session that the one before ended with, so that new sessions move nothing."}, s.list)
	add(s, operation{Route: access.Route{Method: http.MethodPost, Pattern: "/v1/sessions", Scope: access.SessionsRun, MaxBody: promptBody},
		id: "startSession", tag: sessions, summary: "Start a session", status: http.StatusCreated,
		about: "The session is durable when the answer comes; a runner takes it up. The same Idempotency-Key with the same body again is answered with the session that the first request made and 200, with another body with 409."}, s.start)
	add(s, operation{Route: read("/v1/sessions/{id}"), id: "getSession", tag: sessions, summary: "Show a session",
		about: "What it does, its newest loops, steps in doubt, and the commands that make sense now."}, s.show)
	add(s, operation{Route: read("/v1/sessions/{id}/entries"), id: "listEntries", tag: sessions, summary: "Read a session's log",
		about: "Oldest first. Bodies are cut at body bytes, and a page ends early rather than be longer than 1 MiB."}, s.entries)
	add(s, operation{Route: read("/v1/sessions/{id}/state"), id: "getState", tag: sessions, summary: "Read a state", content: "*/*",
		about: "The state at the end of a loop, byte for byte."}, s.state)
	add(s, operation{Route: read("/v1/sessions/{id}/result"), id: "getResult", tag: sessions, summary: "Read what a session ended with",
		about: "status says whether it has ended; ended and result are null if not."}, s.result)
	add(s, operation{Route: read("/v1/sessions/{id}/plan"), id: "planRestart", tag: sessions, summary: "Plan a restart, a rollback or a branch",
		about: "What a POST of the verb with the same from, in_doubt and agent would do, and why it would be refused. It changes nothing."}, s.plan)
}

// find returns the session that an address names. The server's own journal is for auditors.
func (s *server) find(ctx context.Context, in SessionPath) (stint.Row, view.Place, error) {
	row, place, err := view.Find(ctx, s.Store, in.ID, time.Now())
	if err == nil {
		err = s.mayRead(ctx, row.Session.ID)
	}
	if err != nil {
		row = stint.Row{}
	}
	return row, place, err
}

// whole returns the session that an address names: an order is about all of it, and who
// names a line or a loop means something else.
func (s *server) whole(ctx context.Context, in SessionPath) (stint.Row, error) {
	row, place, err := s.find(ctx, in)
	if err == nil && (place.Line >= 0 || place.Loop >= 0) {
		err = invalid("an order is about a session, and the address names a place in it", "leave out what is behind the session's name or id")
	}
	if err == nil {
		err = s.notOwn(ctx, row.Session.ID)
	}
	return row, err
}

type showInput struct {
	SessionPath
	All bool `query:"all" doc:"All loops, not the newest ten."`
}

type showOutput struct{ Body view.Show }

func (s *server) show(ctx context.Context, in *showInput) (*showOutput, error) {
	now := time.Now()
	row, place, err := s.find(ctx, in.SessionPath)
	if err != nil {
		return nil, err
	}
	v, err := view.NewShow(ctx, s.Store, &row, view.ShowOptions{Line: place.Line, All: in.All}, now)
	return &showOutput{v}, err
}

type stateInput struct {
	SessionPath
	Loop int `query:"loop" minimum:"0" maximum:"1073741824" doc:"The loop; without it the one that the address names, or the newest."`
}

// bytesOutput is an answer that is not JSON, or not known to be.
type bytesOutput struct {
	ContentType string `header:"Content-Type"`
	Body        []byte
}

func (s *server) state(ctx context.Context, in *stateInput) (*bytesOutput, error) {
	row, place, err := s.find(ctx, in.SessionPath)
	if err != nil {
		return nil, err
	}
	loop := place.Loop
	if in.Loop > 0 {
		loop = in.Loop
	}
	state, _, err := view.State(ctx, s.Store, &row, place.Line, loop)
	out := &bytesOutput{ContentType: "application/octet-stream", Body: state}
	if json.Valid(state) {
		out.ContentType = "application/json"
	}
	return out, err
}

type resultOutput struct{ Body view.Result }

func (s *server) result(ctx context.Context, in *SessionPath) (*resultOutput, error) {
	row, place, err := s.find(ctx, *in)
	if err != nil {
		return nil, err
	}
	v, err := view.NewResult(ctx, s.Store, &row, place.Line)
	return &resultOutput{v}, err
}

type entriesInput struct {
	SessionPath
	After int64    `query:"after" minimum:"0" maximum:"9007199254740991" doc:"Only entries behind this seq."`
	Tail  int      `query:"tail" minimum:"0" maximum:"500" doc:"The newest so many, instead of the first limit."`
	Limit int      `query:"limit" minimum:"1" maximum:"500" default:"100" doc:"At most so many."`
	Kind  []string `query:"kind,explode" enum:"model,tool,step,message,state,output,loop,session" maxItems:"8" doc:"Only these."`
	Level string   `query:"level" enum:"warn,error" doc:"Only what is at least so bad."`
	Bytes int      `query:"body" minimum:"0" maximum:"65536" default:"4096" doc:"So many bytes of each body; 0: none."`
}

// entryList is stint.entry.list/1 with the way on.
type entryList struct {
	view.Entries
	Next *string `json:"next"` // the page after this one, to be resolved against this one's URL; null where there is no entry behind it yet
}

type entriesOutput struct{ Body entryList }

// maxPage bounds the items of a page of entries, in bytes.
const maxPage = 1 << 20

func (s *server) entries(ctx context.Context, in *entriesInput) (*entriesOutput, error) {
	now := time.Now()
	row, place, err := s.find(ctx, in.SessionPath)
	if err != nil {
		return nil, err
	}
	opt := view.LogOptions{Query: view.LogQuery{Line: place.Line, After: stint.Seq(in.After)}, Body: in.Bytes, Limit: in.Limit}
	if in.Tail > 0 {
		opt.Tail, opt.Limit = in.Tail, 0
	}
	if place.Loop > 0 {
		opt.Query.From, opt.Query.To, opt.Query.Step, opt.Query.Sub = place.Loop, place.Loop, place.Step, place.Sub
	}
	for _, k := range in.Kind {
		opt.Query.Kinds = append(opt.Query.Kinds, view.Class(k))
	}
	switch in.Level {
	case "warn":
		opt.Query.Level = view.Warn
	case "error":
		opt.Query.Level = view.Error
	}
	es, more, err := view.NewLog(s.Store, row, term.Style{}, now, opt).Entries(ctx, now)
	if err != nil {
		return nil, err
	}
	out := &entriesOutput{Body: entryList{Entries: es}}
	if in.Tail > 0 {
		return out, out.Body.keepNewest()
	}
	cut, err := out.Body.fit()
	if err != nil {
		return nil, err
	}
	if more || cut {
		next := "?" + in.values(*out.Body.Cursor).Encode()
		out.Body.Next = &next
	}
	return out, nil
}

// fit drops the items that are too much for a page, and reports whether there are such.
func (l *entryList) fit() (bool, error) {
	used := 0
	for i := range l.Items {
		b, err := json.Marshal(l.Items[i])
		if err != nil {
			return false, &stint.Error{Code: stint.Internal, Op: "json", Err: err}
		}
		if used += len(b); used > maxPage && i > 0 {
			l.Items, l.Cursor = l.Items[:i], &l.Items[i-1].Seq
			return true, nil
		}
	}
	return false, nil
}

// keepNewest drops the oldest items that are too much for a page.
func (l *entryList) keepNewest() error {
	used := 0
	for i := len(l.Items) - 1; i >= 0; i-- {
		b, err := json.Marshal(l.Items[i])
		if err != nil {
			return &stint.Error{Code: stint.Internal, Op: "json", Err: err}
		}
		if used += len(b); used > maxPage && i < len(l.Items)-1 {
			l.Items = l.Items[i+1:]
			return nil
		}
	}
	return nil
}

// values is the query again, behind a cursor.
func (in *entriesInput) values(after stint.Seq) url.Values {
	v := url.Values{"after": {strconv.FormatInt(int64(after), 10)}, "limit": {strconv.Itoa(in.Limit)}, "body": {strconv.Itoa(in.Bytes)}}
	if in.Level != "" {
		v.Set("level", in.Level)
	}
	if len(in.Kind) > 0 {
		v["kind"] = in.Kind
	}
	return v
}

// restartPlan is what a restart would do, schema stint.plan/1.
type restartPlan struct {
	Schema string `json:"schema"`
	journal.Plan
	Files   *worktree.Changes `json:"files"`   // how the session's files differ from those at the end of the loop; null without a workspace
	Refused *refusedPlan      `json:"refused"` // null if it would be taken as the session stands
	Asks    *control.Deciders `json:"asks"`    // who decides about it first; null: nobody does
}

// refusedPlan says why a restart would be refused.
type refusedPlan struct {
	Code   stint.Code `json:"code"`
	Detail string     `json:"detail"`
	Hint   string     `json:"hint"`
}

type planInput struct {
	SessionPath
	From    int    `query:"from" minimum:"-1" maximum:"1073741824" default:"-1" doc:"Keep loops 1 to so many; 0 is the very beginning. Without it, or with -1, the session goes on from its newest checkpoint."`
	InDoubt string `query:"in_doubt" enum:"ask,skip,redo" doc:"With from: what becomes of steps in doubt that are left behind."`
	Verb    string `query:"verb" enum:"restart,rollback,branch" default:"restart" doc:"What is to be done."`
	Agent   string `query:"agent" maxLength:"300" doc:"An agent of stint.yaml to go on with as it is now."`
}

type planOutput struct{ Body restartPlan }

func (s *server) plan(ctx context.Context, in *planInput) (*planOutput, error) {
	row, err := s.whole(ctx, in.SessionPath)
	if err != nil {
		return nil, err
	}
	b := changesBody{InDoubt: in.InDoubt, Agent: in.Agent}
	if in.From >= 0 {
		b.From = &in.From
	}
	c, _, err := s.changes(ctx, &row, &b)
	if err != nil {
		return nil, err
	}
	var plan journal.Plan
	var refused error
	switch {
	case in.Verb == "branch":
		plan, refused, err = s.desk().PlanBranch(ctx, &row, &c, actor(ctx))
	case c.From == nil && in.InDoubt != "":
		err = invalid("in_doubt goes with from", "on the same line a step in doubt is settled by resolve")
	default:
		plan, refused, err = s.desk().PlanRestart(ctx, &row, control.Order{Kind: stint.MessageKind(in.Verb), From: actor(ctx), Command: c})
	}
	if err != nil {
		return nil, err
	}
	out := restartPlan{Schema: "stint.plan/1", Plan: plan}
	if s.Files != nil {
		out.Files = s.Files(ctx, &row, plan.From)
	}
	if out.Asks = control.DecidersOf(refused); out.Asks != nil {
		refused = nil
	}
	if refused != nil {
		out.Refused = &refusedPlan{Code: stint.CodeOf(refused), Detail: refused.Error(), Hint: hintOf(refused)}
	}
	return &planOutput{out}, nil
}
