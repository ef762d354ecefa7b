package mcpserver

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/term"
	"github.com/stint-dev/stint/internal/view"
)

// Sizes of pages.
const (
	listLimit = 10
	listMost  = 100
	logLimit  = 50
	logMost   = 200
)

const sessionInput = `"session": {"type": "string", "minLength": 1, "maxLength": 300,
	"description": "a name, an id or the end of one (at least 4 characters), AGENT@06:00, @last, @bad"}`

// readVerbs are the tools that change nothing.
func (s *Server) readVerbs() []verb {
	return []verb{
		{name: "list_sessions", title: "List sessions", readOnly: true, output: outputSchema[sessionList], call: typed(s.listSessions),
			about: "List sessions, newest first: what each is doing and which need a person. The structure is stint.session.list/1; " +
				"where cursor is not null, pass it on to get the next page.",
			input: fmt.Sprintf(`{"type": "object", "additionalProperties": false, "properties": {
	"status": {"enum": ["open", "all", "bad", "pending", "running", "waiting", "completed", "failed", "stopped", "canceled"],
		"description": "open (the default): all that have not ended; bad: those that ended other than completed, or wait because something is wrong"},
	"agent": {"type": "string", "maxLength": 300, "description": "only those of this agent"},
	"limit": {"type": "integer", "minimum": 1, "maximum": %d, "description": "at most so many; %d without it"},
	"cursor": {"type": "string", "maxLength": 100, "description": "the cursor of the page before"}}}`, listMost, listLimit)},
		{name: "show_session", title: "Show a session", readOnly: true, output: outputSchema[sessionPage], call: typed(s.showSession),
			about: "Show one session: its status and what it waits for, limits, newest loops, result, and the commands that make sense now, " +
				"which are a person's. The structure is stint.session/1. NAME/LINE shows a line that the session left.",
			input: `{"type": "object", "additionalProperties": false, "required": ["session"], "properties": {` + sessionInput + `}}`},
		{name: "read_log", title: "Read a session's log", readOnly: true, output: outputSchema[logPage], call: typed(s.readLog),
			about: "Read what happened in a session, oldest first: the newest entries, or with after those behind it (0: from the beginning). " +
				"To follow a session, pass the cursor back as after until status is an end. The structure is stint.entry.list/1; long bodies are excerpts, marked with cut.",
			input: fmt.Sprintf(`{"type": "object", "additionalProperties": false, "required": ["session"], "properties": {%s,
	"after": {"type": "integer", "minimum": 0, "maximum": 9007199254740991, "description": "a seq: only entries behind it"},
	"limit": {"type": "integer", "minimum": 1, "maximum": %d, "description": "at most so many; %d without it"},
	"kinds": {"type": "array", "maxItems": 8, "items": {"enum": ["model", "tool", "step", "message", "state", "output", "loop", "session"]},
		"description": "only these: steps of models, steps of tools, other steps, messages, checkpoints, what the agent wrote, loops, the rest"}}}`, sessionInput, logMost, logLimit)},
		{name: "list_approvals", title: "List open questions", readOnly: true, output: outputSchema[approvalList], call: typed(s.listApprovals),
			about: "List the questions that sessions have asked a person, with the exact arguments, and for each the command with which a person " +
				"decides it in a shell of their own. There is no tool to decide. The structure is stint.approval.list/1.",
			input: `{"type": "object", "additionalProperties": false, "properties": {` + sessionInput + `}}`},
		{name: "list_agents", title: "List agents", readOnly: true, output: outputSchema[agentList], call: typed(s.listAgents),
			about: "List the agents that start_session can start. The structure is stint.agent.list/1.",
			input: `{"type": "object", "additionalProperties": false}`},
	}
}

// sessionList is stint.session.list/1 with what was cut.
type sessionList struct {
	view.List
	Cut []cut `json:"cut,omitempty"`
}

func (s *Server) listSessions(ctx context.Context, _ string, in struct {
	Status, Agent, Cursor string
	Limit                 int
}) (answer, error) {
	q := view.Query{Filter: stint.Filter{Agent: in.Agent}, Limit: listLimit}
	if in.Limit > 0 {
		q.Limit = in.Limit
	}
	switch in.Status {
	case "", "open":
	case "all":
		q.All = true
	case "bad":
		q.Bad = true
	default:
		q.Statuses = []stint.Status{stint.Status(in.Status)}
	}
	if in.Cursor != "" {
		var err error
		if q.After, err = stint.ParseID(in.Cursor); err != nil {
			e := stint.Invalid.Errorf("cursor", "%q is no cursor", in.Cursor)
			e.Hint = "pass the cursor of an answer of list_sessions as it is, or none to begin"
			return answer{}, e
		}
	}
	rows, cursor, err := view.Sessions(ctx, s.b.Source, q)
	if err != nil {
		return answer{}, err
	}
	now := time.Now()
	doc := sessionList{List: view.NewList(rows, cursor, now)}
	n, err := fitting(doc.Items)
	if err != nil {
		return answer{}, err
	}
	if n < len(rows) {
		doc.Items, rows, cursor = doc.Items[:n], rows[:n], rows[n-1].Session.ID
		doc.Cursor = &cursor
	}
	var text strings.Builder
	if len(rows) == 0 {
		text.WriteString("no session\n")
	} else if err := view.WriteList(&text, term.Style{}, rows, view.ListOptions{}, now); err != nil {
		return answer{}, err
	}
	if !cursor.IsZero() {
		fmt.Fprintf(&text, "there are more: cursor %s\n", cursor)
	}
	return answer{doc, text.String()}, nil
}

// find returns the session that an address means. To an agent the journal of the server
// is no session: it says what people did, and a message to it would be an order.
func (s *Server) find(ctx context.Context, address string, now time.Time) (stint.Row, view.Place, error) {
	row, place, err := view.Find(ctx, s.b.Source, address, now)
	if err == nil && row.Session.Trigger.OfServer() {
		e := stint.Denied.Errorf("session", "that is the journal of the server itself, which is for people")
		e.Hint = "list_sessions lists the sessions"
		return stint.Row{}, view.Place{}, e
	}
	return row, place, err
}

// sessionPage is stint.session/1 as stint show prints it, with what was cut.
type sessionPage struct {
	view.Show
	Cut []cut `json:"cut,omitempty"`
}

// sessionInputs are the arguments of tools about one session.
type sessionInputs struct{ Session string }

func (s *Server) showSession(ctx context.Context, _ string, in sessionInputs) (answer, error) {
	now := time.Now()
	row, place, err := s.find(ctx, in.Session, now)
	if err != nil {
		return answer{}, err
	}
	v, err := view.NewShow(ctx, s.b.Source, &row, view.ShowOptions{Line: place.Line}, now)
	if err != nil {
		return answer{}, err
	}
	var text strings.Builder
	err = view.WriteShow(&text, term.Style{}, &row, &v, now)
	return answer{sessionPage{Show: v}, text.String()}, err
}

// logPage is stint.entry.list/1, with how the session stands.
type logPage struct {
	Schema  view.Schema  `json:"schema"`
	Now     *time.Time   `json:"now"`
	Session stint.ID     `json:"session"`
	Items   []logEntry   `json:"items"`
	Cursor  *stint.Seq   `json:"cursor"` // seq of the last item; null if there is none
	More    bool         `json:"more"`   // behind the last item, or with the newest ones before the first
	Status  stint.Status `json:"status"` // of the session now
	Reason  string       `json:"reason"`
	Cut     []cut        `json:"cut,omitempty"`
}

// logEntry is stint.entry/1 whose data may be too long.
type logEntry struct {
	view.Entry
	DataCut *excerpt `json:"data_cut,omitempty"` // its beginning; data is null then
}

// logInput are the arguments of read_log.
type logInput struct {
	Session string
	After   *int64
	Limit   int
	Kinds   []string
}

func (s *Server) readLog(ctx context.Context, _ string, in logInput) (answer, error) {
	now := time.Now()
	row, place, err := s.find(ctx, in.Session, now)
	if err != nil {
		return answer{}, err
	}
	opt := view.LogOptions{Query: view.LogQuery{Line: place.Line}, Body: maxString}
	most := logLimit
	if in.Limit > 0 {
		most = in.Limit
	}
	if in.After != nil {
		opt.Query.After, opt.Limit = stint.Seq(*in.After), most
	} else {
		opt.Tail = most
	}
	if place.Loop > 0 {
		opt.Query.From, opt.Query.To, opt.Query.Step, opt.Query.Sub = place.Loop, place.Loop, place.Step, place.Sub
	}
	for _, k := range in.Kinds {
		opt.Query.Kinds = append(opt.Query.Kinds, view.Class(k))
	}
	es, more, err := view.NewLog(s.b.Source, row, term.Style{}, now, opt).Entries(ctx, now)
	if err != nil {
		return answer{}, err
	}
	doc := logPage{Schema: es.Schema, Now: es.Now, Session: es.Session, Items: make([]logEntry, len(es.Items)), Cursor: es.Cursor, More: more}
	doc.Status, doc.Reason = row.Status()
	for i, e := range es.Items {
		doc.Items[i].Entry = e
		doc.Items[i].Data, doc.Items[i].DataCut = free(e.Data)
	}
	if err := doc.fit(opt.Tail > 0); err != nil {
		return answer{}, err
	}
	text, err := s.logText(ctx, row, &doc, opt.Query, now)
	return answer{doc, text}, err
}

// fit drops what is too much: of the newest entries the oldest, else the newest.
func (p *logPage) fit(newest bool) error {
	if newest {
		slices.Reverse(p.Items)
	}
	n, err := fitting(p.Items)
	if err != nil {
		return err
	}
	if n < len(p.Items) {
		p.Items, p.More = p.Items[:n], true
	}
	if newest {
		slices.Reverse(p.Items)
	}
	if n > 0 {
		p.Cursor = &p.Items[n-1].Seq
	}
	return nil
}

// logText is the page as stint logs prints it.
func (s *Server) logText(ctx context.Context, row stint.Row, p *logPage, q view.LogQuery, now time.Time) (string, error) {
	var text strings.Builder
	fmt.Fprintf(&text, "%s (%s) is %s\n", term.Line(row.Session.Name), row.Short, term.Line(view.StatusWord(&row)))
	if len(p.Items) == 0 {
		text.WriteString("no entries\n")
		return text.String(), nil
	}
	q.After, q.Until = p.Items[0].Seq-1, *p.Cursor
	if err := view.NewLog(s.b.Source, row, term.Style{}, now, view.LogOptions{Query: q}).Write(ctx, &text, now); err != nil {
		return "", err
	}
	fmt.Fprintf(&text, "cursor %d\n", *p.Cursor)
	return text.String(), nil
}

// approvalList is stint.approval.list/1 with the commands that decide.
type approvalList struct {
	Schema  view.Schema `json:"schema"`
	Now     *time.Time  `json:"now"`
	Items   []approval  `json:"items"`
	Omitted int         `json:"omitted"` // questions that do not fit into the answer; ask for one session
	Decide  string      `json:"decide"`  // who does, and where
	Cut     []cut       `json:"cut,omitempty"`
}

// approval is stint.approval/1 with what a person types.
type approval struct {
	view.Approval
	ArgsCut   *excerpt `json:"args_cut,omitempty"`          // the beginning of args, which is null then
	AnswerCut *excerpt `json:"answer_schema_cut,omitempty"` // the same of answer_schema
	Approve   string   `json:"approve"`                     // the command for yes
	Deny      string   `json:"deny"`                        // the command for no
}

const decides = "Only a person decides, in a shell of their own; no tool of this server does. Show them the question and its commands, and go on with something else."

func (s *Server) listApprovals(ctx context.Context, _ string, in sessionInputs) (answer, error) {
	now := time.Now()
	var one *stint.Row
	if in.Session != "" {
		row, _, err := s.find(ctx, in.Session, now)
		if err != nil {
			return answer{}, err
		}
		one = &row
	}
	all, err := view.NewApprovals(ctx, s.b.Source, one, now)
	if err != nil {
		return answer{}, err
	}
	doc := approvalList{Schema: all.Schema, Now: all.Now, Items: make([]approval, min(len(all.Items), maxItems)), Decide: decides}
	for i := range doc.Items {
		a := approval{Approval: all.Items[i]}
		a.Args, a.ArgsCut = free(a.Args)
		a.Answer, a.AnswerCut = free(a.Answer)
		a.Approve, a.Deny = "stint approve "+a.Short, "stint deny "+a.Short+" -m TEXT"
		if all.Items[i].Answer != nil {
			a.Approve += " --answer JSON"
		}
		doc.Items[i] = a
	}
	n, err := fitting(doc.Items)
	if err != nil {
		return answer{}, err
	}
	doc.Items, doc.Omitted = doc.Items[:n], len(all.Items)-n
	all.Items = all.Items[:n]
	if n == 0 {
		return answer{doc, "nothing waits for a decision\n"}, nil
	}
	var text strings.Builder
	if err := all.Write(&text, term.Style{}, now); err != nil {
		return answer{}, err
	}
	text.WriteString("\n" + decides + "\n")
	return answer{doc, text.String()}, nil
}

// agentList is stint.agent.list/1 with what was cut.
type agentList struct {
	Schema view.Schema  `json:"schema"`
	Items  []view.Agent `json:"items"`
	Cut    []cut        `json:"cut,omitempty"`
}

func (s *Server) listAgents(ctx context.Context, _ string, _ struct{}) (answer, error) {
	items, err := s.b.Agents.Agents(ctx)
	if err != nil {
		return answer{}, err
	}
	var text strings.Builder
	if len(items) == 0 {
		text.WriteString("no agent is defined\n")
	}
	for i := range items {
		fmt.Fprintf(&text, "%s  %s  %s\n", term.Line(items[i].Name), items[i].Kind, term.Line(items[i].Description))
	}
	return answer{agentList{Schema: view.SchemaAgents, Items: items}, text.String()}, nil
}
