package view

import (
	"time"

	"github.com/stint-dev/stint"
)

// Schema names the shape of a JSON document. It gets new members without a new
// number; a member is removed, or changes what it means, only with one.
type Schema string

// The schemas; docs/cli-json.md is their contract.
const (
	SchemaSession Schema = "stint.session/1"
	SchemaList    Schema = "stint.session.list/1"
	SchemaEntry   Schema = "stint.entry/1"
	SchemaEntries Schema = "stint.entry.list/1"
	SchemaVerify  Schema = "stint.verify/1"
	SchemaExport  Schema = "stint.export/1"
)

// Session is one session as JSON, schema stint.session/1. Every member is always
// there; what does not apply is null. Times are RFC 3339 in UTC, durations whole
// milliseconds in members that end in _ms, money decimal strings of US dollars,
// counts of tokens strings of digits, since agents report them and a double cannot
// hold every one.
type Session struct {
	Schema Schema `json:"schema,omitempty"` // absent within a list
	identity
	condition
	At         course     `json:"at"`
	Limits     limitSet   `json:"limits"`
	Totals     totals     `json:"totals"`
	Checkpoint *saved     `json:"checkpoint"` // the newest; null before the first loop has completed
	Lease      *held      `json:"lease"`      // null if nobody holds the session
	Unread     int        `json:"unread"`     // messages that nobody has taken
	Head       stint.Seq  `json:"head"`       // seq of the newest entry
	HeadHash   stint.Hash `json:"head_hash"`
	Created    *time.Time `json:"created"`
	Updated    *time.Time `json:"updated"` // time of the newest entry
	Ended      *time.Time `json:"ended"`
}

// identity is what a session is; it never changes.
type identity struct {
	ID      stint.ID          `json:"id"`     // 26 characters
	Short   string            `json:"short"`  // a suffix of the id to type
	Family  stint.ID          `json:"family"` // id of the root of its tree of children and branches
	Name    string            `json:"name"`
	Agent   stint.AgentRef    `json:"agent"` // {name, runtime, pin}
	Trigger trigger           `json:"trigger"`
	Parent  *origin           `json:"parent"` // null unless it is a child or a branch
	Labels  map[string]string `json:"labels"`
}

// trigger is what started a session.
type trigger struct {
	Kind string     `json:"kind"` // prompt, schedule, hook, session, bench
	Ref  string     `json:"ref"`  // name of the schedule or hook, id of the parent; may be empty
	Due  *time.Time `json:"due"`  // nominal time, of a schedule
}

// origin is where a child session or a branch comes from.
type origin struct {
	Session stint.ID  `json:"session"`
	Name    string    `json:"name,omitempty"`  // of the parent; where one session is shown
	Short   string    `json:"short,omitempty"` // likewise
	Seq     stint.Seq `json:"seq"`             // entry of the parent that led to it
	Branch  bool      `json:"branch"`
	Loop    int       `json:"loop"` // of the checkpoint that a branch began at
	Reason  string    `json:"reason"`
}

// condition is how a session stands.
type condition struct {
	Status  stint.Status `json:"status"`  // pending, running, waiting, completed, failed, stopped, canceled
	Reason  string       `json:"reason"`  // one line; "interrupted" for a pending session whose runner is gone
	Since   *time.Time   `json:"since"`   // since when it has this status
	Waiting *waiting     `json:"waiting"` // an object exactly while status is waiting
	Now     *doing       `json:"now"`     // what the agent says it does in this loop; null unless a live lease says so
}

// waiting is what a session waits for.
type waiting struct {
	For      stint.WaitFor `json:"for"` // approval, message, time, child, retry, budget, doubt, health, operator
	Since    *time.Time    `json:"since"`
	Until    *time.Time    `json:"until"`    // when time alone wakes it; null: never
	What     string        `json:"what"`     // one line: the limit, the question, the error
	Who      string        `json:"who"`      // whose move it is; may be empty
	Approval *string       `json:"approval"` // id of the open approval
	Step     *string       `json:"step"`     // LOOP.STEP in doubt
}

// doing is what an agent is doing, at most a second old.
type doing struct {
	Line  string     `json:"line"`
	Since *time.Time `json:"since"`
}

// course is where a session is on its way.
type course struct {
	Line    int    `json:"line"`
	Loop    int    `json:"loop"`    // the newest begun on this line; 0 before the first
	Attempt int    `json:"attempt"` // at that loop
	Step    int    `json:"step"`    // the newest with an entry in that loop
	Open    bool   `json:"open"`    // the loop has begun and not completed
	Error   string `json:"error"`   // the newest error since the last checkpoint, one line
}

// limitSet is what bounds a session, each limit with how much of it is used. A max
// of null is no limit.
type limitSet struct {
	Wall     limit[int64]       `json:"wall_ms"` // running time
	Idle     *int64             `json:"idle_ms"` // running time without a sign of life
	Deadline *time.Time         `json:"deadline"`
	Loops    limit[int]         `json:"loops"`
	Steps    limit[int]         `json:"steps"`
	Tools    limit[int]         `json:"tool_calls"`
	Tokens   limit[Big]         `json:"tokens"`
	Cost     limit[stint.Money] `json:"cost"`
	Children limit[int]         `json:"children"` // used: what it spawned itself; max: what is spawned below it, too
	OnLimit  string             `json:"on_limit"` // wait, or stop
}

// limit is a limit and what is used of it.
type limit[T any] struct {
	Used T  `json:"used"`
	Max  *T `json:"max"`
}

// totals is what a session used, over all its lines.
type totals struct {
	Loops     int         `json:"loops"` // completed
	Steps     int         `json:"steps"` // completed
	Errors    int         `json:"errors"`
	Attempts  int         `json:"attempts"`
	Restarts  int         `json:"restarts"`
	RunningMS int64       `json:"running_ms"` // without waits; the stretch under way counts
	Tokens    tokens      `json:"tokens"`
	Cost      stint.Money `json:"cost"` // US dollars
}

// tokens are counts of tokens, as strings.
type tokens struct {
	Input      Big `json:"input"`
	Output     Big `json:"output"`
	CacheRead  Big `json:"cache_read"`
	CacheWrite Big `json:"cache_write"`
	Counted    Big `json:"counted"` // what a token limit counts: input, output and cache writes
}

// saved is the state at the end of a loop.
type saved struct {
	Loop  int        `json:"loop"`
	Seq   stint.Seq  `json:"seq"` // entry that carries the state; 0: the loops left none
	At    *time.Time `json:"at"`
	AgeMS int64      `json:"age_ms"`
	Size  int64      `json:"size"` // bytes of the state
	Sum   stint.Hash `json:"sum"`  // SHA-256 of the state
}

// held is who holds a session.
type held struct {
	Runner  string     `json:"runner"`
	Epoch   int64      `json:"epoch"` // the fencing token
	Claimed *time.Time `json:"claimed"`
	Expires *time.Time `json:"expires"`
	Live    bool       `json:"live"` // it has not expired and its runner lives
}

// List is sessions as JSON, schema stint.session.list/1.
type List struct {
	Schema Schema     `json:"schema"`
	Now    *time.Time `json:"now"` // when the list was made
	Items  []Session  `json:"items"`
	Cursor *stint.ID  `json:"cursor"` // where a list that was cut short goes on; null at the end
}

// NewSession returns row as JSON has it.
func NewSession(row *stint.Row, now time.Time) Session {
	s := sessionOf(row, now)
	s.Schema = SchemaSession
	return s
}

// NewList returns rows as JSON has them; cursor is zero at the end.
func NewList(rows []stint.Row, cursor stint.ID, now time.Time) List {
	l := List{Schema: SchemaList, Now: whole(now), Items: make([]Session, len(rows))}
	for i := range rows {
		l.Items[i] = sessionOf(&rows[i], now)
	}
	if !cursor.IsZero() {
		l.Cursor = &cursor
	}
	return l
}

func sessionOf(row *stint.Row, now time.Time) Session {
	s := &row.Session
	out := Session{
		identity:  identityOf(row),
		condition: conditionOf(row),
		At: course{Line: s.At.Line, Loop: s.At.Loop, Attempt: s.At.Attempt, Step: s.At.Step, Open: s.At.Open,
			Error: s.At.Error},
		Limits: limitsOf(row, now), Totals: totalsOf(row, now), Unread: row.Unread,
		Head: s.Head, HeadHash: s.HeadHash, Created: whole(s.Created), Updated: whole(s.Updated), Ended: whole(s.Ended),
	}
	if c := s.Checkpoint; c.Loop > 0 || c.Seq > 0 {
		out.Checkpoint = &saved{Loop: c.Loop, Seq: c.Seq, At: whole(c.At), AgeMS: max(0, now.Sub(c.At)).Milliseconds(), Size: c.Size, Sum: c.Sum}
	}
	if l := row.Lease; !l.Session.IsZero() {
		out.Lease = &held{Runner: l.Holder, Epoch: l.Epoch, Claimed: whole(l.Claimed), Expires: whole(l.Expires), Live: row.Live}
	}
	return out
}

func identityOf(row *stint.Row) identity {
	s := &row.Session
	out := identity{
		ID: s.ID, Short: row.Short, Family: s.Family, Name: s.Name, Agent: s.Agent,
		Trigger: trigger{Kind: s.Trigger.Kind, Ref: s.Trigger.Ref, Due: whole(s.Trigger.Due)}, Labels: s.Labels,
	}
	if out.Labels == nil {
		out.Labels = map[string]string{}
	}
	if p := s.Parent; !p.Session.IsZero() {
		out.Parent = &origin{Session: p.Session, Seq: p.Seq, Branch: p.Branch, Loop: p.Loop, Reason: p.Reason}
	}
	return out
}

func conditionOf(row *stint.Row) condition {
	status, reason := row.Status()
	out := condition{Status: status, Reason: reason, Since: whole(since(row))}
	if w := row.Session.Wait; w != nil {
		out.Waiting = &waiting{For: w.For, Since: whole(w.Since), Until: whole(w.Until), What: w.What, Who: w.Who}
		if w.Approval != "" {
			out.Waiting.Approval = &w.Approval
		}
		if w.Step.Step > 0 {
			at := w.Step.String()
			out.Waiting.Step = &at
		}
	}
	if what, since := doingNow(row); what != "" {
		out.Now = &doing{Line: what, Since: whole(since)}
	}
	return out
}

func limitsOf(row *stint.Row, now time.Time) limitSet {
	lim, t := row.Session.Limits, row.Session.Totals
	out := limitSet{Deadline: whole(lim.Deadline), OnLimit: "wait",
		Wall:     bound(running(row, now).Milliseconds(), lim.Wall.Milliseconds()),
		Loops:    bound(t.Loops, lim.Loops),
		Steps:    bound(t.Steps, lim.Steps),
		Tools:    bound(t.Tools, lim.ToolCalls),
		Tokens:   bound(Big(t.Usage.Tokens()), Big(lim.Tokens)),
		Cost:     bound(t.Usage.Cost, lim.Cost),
		Children: bound(t.Children, lim.Children),
	}
	if lim.Idle > 0 {
		ms := lim.Idle.Milliseconds()
		out.Idle = &ms
	}
	if lim.Stop {
		out.OnLimit = "stop"
	}
	return out
}

func bound[T int | int64 | Big | stint.Money](used, most T) limit[T] {
	if most == 0 {
		return limit[T]{Used: used}
	}
	return limit[T]{used, &most}
}

func totalsOf(row *stint.Row, now time.Time) totals {
	t := row.Session.Totals
	return totals{Loops: t.Loops, Steps: t.Steps, Errors: t.Errors, Attempts: t.Attempts, Restarts: t.Restarts,
		RunningMS: running(row, now).Milliseconds(), Tokens: tokensOf(t.Usage), Cost: t.Usage.Cost}
}

func tokensOf(u stint.Usage) tokens {
	return tokens{Big(u.Input), Big(u.Output), Big(u.CacheRead), Big(u.CacheWrite), Big(u.Tokens())}
}

// running is the running time of a session up to now. Where its runner died, it ran
// until its newest entry at least, which is also what its journal will count.
func running(row *stint.Row, now time.Time) time.Duration {
	s := &row.Session
	if s.At.Since.IsZero() {
		return s.Totals.Running
	}
	if !row.Live {
		now = s.Updated
	}
	return s.Totals.Running + max(0, now.Sub(s.At.Since))
}

// since is since when a session has the status that it shows.
func since(row *stint.Row) time.Time {
	s := &row.Session
	status, reason := row.Status()
	switch {
	case status.Ended():
		return s.Ended
	case status == stint.Waiting && s.Wait != nil:
		return s.Wait.Since
	case status == stint.Running:
		return row.Lease.Claimed
	case reason == interrupted && row.Lease.NowAt.After(s.Updated):
		return row.Lease.NowAt // its last sign of life
	}
	return s.Updated
}

// interrupted is the reason that [stint.Row.Status] gives for a pending session
// whose runner is gone.
const interrupted = "interrupted"
