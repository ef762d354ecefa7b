package view

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/journal"
)

// Show is one session with its course as JSON: the members of stint.session/1 and
// more, which only `stint show` gives.
type Show struct {
	Session
	Command      []string    `json:"command" nullable:"true"` // what runs for it, of agents that are programs; else null
	Goal         *excerpt    `json:"goal"`                    // what it was begun with; null if with nothing
	Result       *excerpt    `json:"result"`                  // what it ended with; null if it has not, or with nothing
	Hint         *string     `json:"hint"`                    // what to do about the error that it stands at; null if nobody knew
	Lines        []lineInfo  `json:"lines"`                   // all of them, in order
	Line         int         `json:"line"`                    // the one whose loops are shown
	Loops        []loopPart  `json:"loops"`                   // of that line, oldest first: the newest ten, or all
	LoopsOmitted int         `json:"loops_omitted"`           // earlier ones that are not in loops
	Steps        []StepInfo  `json:"steps"`                   // of the open loop: those without a recorded outcome
	Effects      []StepInfo  `json:"effects"`                 // of the open loop: those that acted on the outside
	Orders       []orderInfo `json:"orders"`                  // that wait until others agree to them
	Related      related     `json:"related"`
	Next         []string    `json:"next"` // commands that make sense now
}

// excerpt is the beginning of a body.
type excerpt struct {
	Text string `json:"text"` // on one line, at most 4 KiB; empty if the body is not there
	Size int64  `json:"size"` // bytes of the whole
}

// lineInfo is one line of a session.
type lineInfo struct {
	Line   int         `json:"line"`
	From   int         `json:"from"` // keeps loops 1..from of the line before
	Seq    stint.Seq   `json:"seq"`  // entry that began it
	At     *time.Time  `json:"at"`
	By     stint.Actor `json:"by"`
	Reason string      `json:"reason"`
}

// loopPart is one loop of a line.
type loopPart struct {
	Loop      int         `json:"loop"`
	Session   *stint.ID   `json:"session,omitempty"` // of a branch: the one that it comes from, whose loop this is
	Line      int         `json:"line"`              // that it took place on
	Attempts  int         `json:"attempts"`
	Began     *time.Time  `json:"began"`
	Ended     *time.Time  `json:"ended"`
	TookMS    int64       `json:"took_ms"` // up to now for an open one
	Completed bool        `json:"completed"`
	Open      bool        `json:"open"`
	Steps     int         `json:"steps"`
	Effects   int         `json:"effects"` // steps that were not read
	Errors    int         `json:"errors"`
	Tokens    Big         `json:"tokens"` // what a token limit counts
	Cost      stint.Money `json:"cost"`
	StateSize int64       `json:"state_size"` // bytes after it
	StateSeq  stint.Seq   `json:"state_seq"`  // entry that carries the state; that of the loop before if it left it as it was
	Headline  string      `json:"headline"`
	Error     string      `json:"error"` // of its newest attempt that failed
}

// StepInfo is a step that acted on the outside, or may have.
type StepInfo struct {
	Step    string         `json:"step"` // LOOP.STEP
	Name    string         `json:"name"`
	Kind    stint.StepKind `json:"kind"`
	Effect  stint.Effect   `json:"effect"`
	At      *time.Time     `json:"at"`
	Outcome string         `json:"outcome"` // running, doubt, completed, failed, happened
	Key     string         `json:"key"`     // the idempotency key that it was sent with
}

// related is the sessions that came from this one.
type related struct {
	Children int        `json:"children"`
	Branches int        `json:"branches"`
	Items    []relative `json:"items"` // the newest twenty of both
}

// relative is one of them.
type relative struct {
	ID     stint.ID `json:"id"`
	Short  string   `json:"short"`
	Name   string   `json:"name"`
	Status string   `json:"status"` // with what it waits for
	Branch bool     `json:"branch"`
}

// shownRelatives is how many of them a page names.
const shownRelatives = 20

// ShowOptions say how much a page shows.
type ShowOptions struct {
	Line int  // the line whose loops are shown; -1: the current one
	All  bool // all of its loops, not the newest ten
}

// shownLoops is how many loops a page has.
const shownLoops = 10

// NewShow reads what a page about row's session shows. Errors are the reader's, and
// [stint.Corrupt] for a journal whose loops cannot follow each other.
func NewShow(ctx context.Context, src Source, row *stint.Row, opt ShowOptions, now time.Time) (Show, error) {
	s := &row.Session
	out := Show{Session: NewSession(row, now), Line: s.At.Line, Loops: []loopPart{}, Steps: []StepInfo{}, Effects: []StepInfo{}, Orders: ordersOf(s)}
	if opt.Line >= 0 {
		out.Line = opt.Line
	}
	es, err := courseEntries(ctx, src, row)
	if err != nil {
		return out, err
	}
	if out.Lines, err = linesOf(es); err != nil {
		return out, err
	}
	b := bodies{src, s.Family}
	out.Command = commandOf(es)
	if out.Hint, err = hintNow(ctx, src, s, es); err != nil {
		return out, err
	}
	if out.Goal, err = b.excerpt(ctx, s.ID, stint.SessionCreated); err != nil {
		return out, err
	}
	if s.Status.Ended() {
		if out.Result, err = b.excerpt(ctx, s.ID, stint.SessionEnded); err != nil {
			return out, err
		}
	}
	loops, err := journal.Course(es, out.Line)
	if err != nil {
		return out, err
	}
	first := 0
	if !opt.All {
		first = max(0, len(loops)-shownLoops)
	}
	out.LoopsOmitted = first
	for _, l := range loops[first:] {
		out.Loops = append(out.Loops, loopInfo(&l, row, now))
	}
	if err := out.openSteps(ctx, src, row, es); err != nil {
		return out, err
	}
	if err := out.before(ctx, b, row, opt.All); err != nil {
		return out, err
	}
	if err := out.relatives(ctx, src, row); err != nil {
		return out, err
	}
	out.Next = nextSteps(row, &out)
	if len(out.Orders) > 0 {
		out.Next = append([]string{"stint approvals " + row.Short}, out.Next...)
	}
	return out, nil
}

// commandOf is the command line in the definition that a session is pinned to.
// Definitions are the business of those who run agents; one that says it otherwise,
// or is erased, gives none.
func commandOf(es []stint.Entry) []string {
	var def struct{ Agent struct{ Command []string } }
	for i := range slices.Backward(es) {
		var config json.RawMessage
		switch es[i].Kind {
		case stint.SessionCreated:
			d, _ := journal.Decode[journal.Created](&es[i]) // that of one which is erased is none
			config = d.Config
		case stint.LineStarted:
			d, _ := journal.Decode[journal.LineStarted](&es[i])
			config = d.Config
		}
		if config != nil {
			if json.Unmarshal(config, &def) != nil {
				return nil
			}
			return def.Agent.Command
		}
	}
	return nil
}

// excerpt is the beginning of the body of the newest entry of a kind.
func (b bodies) excerpt(ctx context.Context, id stint.ID, kind stint.Kind) (*excerpt, error) {
	es, err := b.src.Entries(ctx, stint.Range{Session: id, Kinds: []stint.Kind{kind}, Last: true, Limit: 1})
	if err != nil || len(es) == 0 || sizeOf(&es[0]) == 0 {
		return nil, err
	}
	body, _, err := b.maybe(ctx, &es[0])
	return &excerpt{Text: head(body, 0), Size: sizeOf(&es[0])}, err
}

func linesOf(es []stint.Entry) ([]lineInfo, error) {
	var all []lineInfo
	for i := range es {
		e := &es[i]
		l := lineInfo{Line: e.Pos.Line, Seq: e.Seq, At: whole(e.At), By: e.Actor}
		switch e.Kind {
		case stint.SessionCreated:
		case stint.LineStarted:
			d, err := journal.Decode[journal.LineStarted](e)
			if err != nil {
				return nil, err
			}
			l.From, l.Reason = d.From, d.Reason
		default:
			continue
		}
		all = append(all, l)
	}
	return all, nil
}

func loopInfo(l *journal.Loop, row *stint.Row, now time.Time) loopPart {
	out := loopPart{
		Loop: l.Number, Line: l.Line, Attempts: l.Attempts, Began: whole(l.Began), Ended: whole(l.Ended), Completed: l.Completed(),
		Open: l.Open, Steps: l.Steps, Effects: l.Effects, Errors: l.Errors, Tokens: Big(l.Usage.Tokens()), Cost: l.Usage.Cost,
		StateSize: l.Checkpoint.Size, StateSeq: l.Checkpoint.Seq, Headline: l.Headline, Error: l.Error,
	}
	end := l.Ended
	if end.IsZero() {
		if end = now; !row.Live {
			end = row.Session.Updated
		}
	}
	out.TookMS = max(0, end.Sub(l.Began)).Milliseconds()
	return out
}

// openSteps fills in the steps of the open loop of the current line: a plan to go
// back to the newest checkpoint knows them.
func (out *Show) openSteps(ctx context.Context, src Source, row *stint.Row, es []stint.Entry) error {
	s := &row.Session
	if !s.At.Open || out.Line != s.At.Line {
		return nil
	}
	all := append([]stint.Entry(nil), es...)
	steps := []stint.Kind{stint.StepRequested, stint.StepCompleted, stint.StepFailed, stint.StepResolved}
	done := 0
	err := eachEntry(ctx, src, stint.Range{Session: s.ID, After: s.At.LoopSeq - 1, Until: s.Head, Kinds: steps}, func(e *stint.Entry) error {
		c := *e
		c.Body = nil
		all = append(all, c)
		if e.Kind == stint.StepCompleted && e.Pos.Line == s.At.Line && e.Pos.Loop == s.At.Loop {
			done++
		}
		return nil
	})
	if err != nil {
		return err
	}
	if n := len(out.Loops); n > 0 && out.Loops[n-1].Open { // its roll-up is still to come
		out.Loops[n-1].Steps = done
	}
	plan, err := journal.MakePlan(*s, all, s.Checkpoint.Loop, nil, nil)
	if err != nil {
		return err
	}
	for _, p := range plan.Outside {
		out.Effects = append(out.Effects, stepInfo(&p, p.Outcome))
	}
	for _, p := range plan.InDoubt {
		switch {
		case p.Outcome == string(journal.Unknown):
			out.Effects = append(out.Effects, stepInfo(&p, p.Outcome))
		case row.Live && p.Outcome == "requested" && s.Status != stint.Waiting:
			out.Steps = append(out.Steps, stepInfo(&p, "running"))
		case p.Effect == stint.Once:
			out.Steps = append(out.Steps, stepInfo(&p, "doubt"))
		default:
			out.Effects = append(out.Effects, stepInfo(&p, p.Outcome))
		}
	}
	return nil
}

func stepInfo(p *journal.EffectStep, outcome string) StepInfo {
	return StepInfo{Step: p.Pos.String(), Name: p.Name, Kind: p.Kind, Effect: p.Effect, At: whole(p.At), Outcome: outcome, Key: p.Key}
}

// relatives counts the children and the branches of the session, and names the newest.
func (out *Show) relatives(ctx context.Context, r stint.Reader, row *stint.Row) error {
	rows, _, err := Sessions(ctx, r, Query{Filter: stint.Filter{Family: row.Session.Family}, All: true})
	if err != nil {
		return err
	}
	out.Related.Items = []relative{}
	for i := range rows {
		if p := rows[i].Session.Parent; p.Session == row.Session.ID {
			if len(out.Related.Items) < shownRelatives {
				out.Related.Items = append(out.Related.Items, relative{rows[i].Session.ID, rows[i].Short, rows[i].Session.Name, StatusWord(&rows[i]), p.Branch})
			}
			if p.Branch {
				out.Related.Branches++
			} else {
				out.Related.Children++
			}
		}
	}
	return nil
}

// nextSteps are the commands that make sense as the session stands.
func nextSteps(row *stint.Row, out *Show) []string {
	s := &row.Session
	status, reason := row.Status()
	to := func(format string, args ...any) string {
		return "stint " + fmt.Sprintf(format, append([]any{row.Short}, args...)...)
	}
	back := to("restart %[1]s --from %[2]d --dry-run", max(s.Checkpoint.Loop-1, 0))
	if out.Line != s.At.Line {
		return []string{to("logs %[1]s --line %[2]d", out.Line), to("show %[1]s")}
	}
	switch {
	case status == stint.Running:
		return []string{to("logs -f %[1]s"), to("pause %[1]s"), to("stop %[1]s")}
	case status.Ended():
		next := []string{to("logs %[1]s"), to("restart %[1]s --from %[2]d --dry-run", s.Checkpoint.Loop), to("verify %[1]s")}
		if status == stint.Failed {
			next[0] = to("logs %[1]s -p warn")
			next = slices.Insert(next, 1, to("restart %[1]s --run"))
		}
		if out.Result != nil {
			next = append([]string{to("result %[1]s")}, next...)
		}
		return next
	case reason == interrupted || status == stint.Pending || row.Unread > 0 && s.Wait.For == stint.ForMessage:
		return []string{to("resume %[1]s --run"), to("logs %[1]s -p warn"), to("stop %[1]s")}
	}
	switch s.Wait.For {
	case stint.ForDoubt:
		at := s.Wait.Step.String()
		for _, st := range out.Steps {
			if st.Step == at {
				return []string{to("resolve %[1]s:%[2]s --happened", at), to("resolve %[1]s:%[2]s --not", at), to("resolve %[1]s:%[2]s --unknown", at)}
			}
		}
		// What the agent asks for differs from what is recorded: the loop is done anew, or goes on mended.
		return []string{to("logs %[1]s --step %[2]s --content", at), to("restart %[1]s --from %[2]d --dry-run", s.Wait.Step.Loop-1), to("resume %[1]s --run")}
	case stint.ForMessage:
		return []string{to("send %[1]s TEXT --run"), to("stop %[1]s")}
	case stint.ForBudget:
		if owner := budgetOf(s.Wait); owner != "" && owner != s.Name { // the limit is that of a session above
			return []string{"stint limit " + owner + " --help", to("tree %[1]s"), to("stop %[1]s")}
		}
		return []string{to("limit %[1]s %[2]s", MoreOf(s)), to("logs %[1]s -n 20"), to("stop %[1]s")}
	case stint.ForHealth:
		return []string{to("resume %[1]s --run"), back, to("stop %[1]s")}
	case stint.ForApproval:
		if at := strings.LastIndexByte(s.Wait.Approval, '.'); at > 0 {
			return []string{to("approvals %[1]s"), to("approve %[1]s%[2]s --run", s.Wait.Approval[at:]), to("deny %[1]s%[2]s -m TEXT --run", s.Wait.Approval[at:])}
		}
		return []string{to("logs %[1]s -n 20"), to("stop %[1]s")}
	case stint.ForChild:
		return []string{to("tree %[1]s"), to("logs %[1]s"), to("stop %[1]s")}
	}
	return []string{to("resume %[1]s --run"), to("logs %[1]s -n 20"), to("stop %[1]s")}
}

// budgetOf is the session whose limit a wait for a budget names, where that covers what it
// spawned too; empty: it is the session's own.
func budgetOf(w *stint.Wait) string {
	what, ok := strings.CutSuffix(w.What, " and what it spawned")
	if !ok {
		return ""
	}
	_, name, _ := strings.Cut(what, " of ")
	return name
}

// MoreOf is the arguments of stint limit that let a session go on which waits for a
// budget: as much again as the limit, of what its wait names.
func MoreOf(s *stint.Session) string {
	name := ""
	if s.Wait != nil {
		name, _, _ = strings.Cut(s.Wait.What, ":")
	}
	lim := &s.Limits
	switch {
	case name == "wall" && lim.Wall > 0:
		return "--wall +" + hours(lim.Wall) + " --run"
	case name == "idle" && lim.Idle > 0:
		return "--idle +" + hours(lim.Idle) + " --run"
	case name == "loops" && lim.Loops > 0:
		return fmt.Sprintf("--loops +%d --run", lim.Loops)
	case name == "steps" && lim.Steps > 0:
		return fmt.Sprintf("--steps +%d --run", lim.Steps)
	case name == "tool_calls" && lim.ToolCalls > 0:
		return fmt.Sprintf("--tool-calls +%d --run", lim.ToolCalls)
	case name == "children" && lim.Children > 0:
		return fmt.Sprintf("--children +%d --run", lim.Children)
	case name == "tokens" && lim.Tokens > 0:
		return fmt.Sprintf("--tokens +%d --run", lim.Tokens)
	case name == "cost" && lim.Cost > 0:
		return "--cost +" + lim.Cost.String() + " --run"
	}
	return "--help"
}

// hours is a length of time as a flag takes it: 1h, 1h30m, 250ms.
func hours(d time.Duration) string {
	s := strings.TrimSuffix(d.String(), "m0s")
	if s != d.String() {
		s = strings.TrimSuffix(s+"m", "h0m")
		if !strings.HasSuffix(s, "m") {
			s += "h"
		}
	}
	return s
}
