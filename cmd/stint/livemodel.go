package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/internal/compare"
	"github.com/stint-dev/stint/internal/config"
	"github.com/stint-dev/stint/internal/past"
	"github.com/stint-dev/stint/internal/record"
	"github.com/stint-dev/stint/internal/term"
	"github.com/stint-dev/stint/internal/view"
	"github.com/stint-dev/stint/journal"
	"github.com/stint-dev/stint/tool/mcp"
)

// liveOptions are the flags of a replay that asks a model.
type liveOptions struct {
	on     bool
	model  string
	name   string
	dryRun bool
}

func (o *liveOptions) flags(f *pflag.FlagSet) {
	f.BoolVar(&o.on, "live-model", false, "ask the model, in a branch whose tools give what is on record")
	f.StringVar(&o.model, "model", "", "with --live-model: another model, `PROVIDER/MODEL`")
	f.StringVar(&o.name, "name", "", "with --live-model: of the branch (default: the session's name and the loop)")
	f.BoolVar(&o.dryRun, "dry-run", false, "with --live-model: say what would begin, and change nothing")
}

// check refuses flags of the one replay with the other.
func (o *liveOptions) check(cmd *cobra.Command) error {
	for _, name := range []string{"model", "name", "dry-run"} {
		if !o.on && cmd.Flags().Changed(name) {
			return misused(cmd, "--%s goes with --live-model: without it no model is asked, and nothing begins", name)
		}
	}
	for _, name := range []string{"to", "line", "allow-network", "logs"} {
		if o.on && cmd.Flags().Changed(name) {
			return misused(cmd, "--%s is for a replay without --live-model, which is a branch of the current line that runs to its end", name)
		}
	}
	return nil
}

// otherwise is the agent that goes on with a session: the named one of stint.yaml, or the
// one that the session is pinned to, with what it knows of servers of tools; with a model
// put in the place of its own, if one is named.
func (a *app) otherwise(ctx context.Context, s *site, row *stint.Row, agent, model string) (c config.Agent, servers map[string]mcp.Pin, err error) {
	if agent != "" {
		c, err = a.configured(agent)
	} else {
		c, servers, err = s.agentOf(ctx, &row.Session)
	}
	if err == nil {
		c, err = a.withModel(c, model)
	}
	return c, servers, err
}

// withModel is an agent with another model; empty: with its own.
func (a *app) withModel(c config.Agent, model string) (config.Agent, error) {
	if model == "" {
		return c, nil
	}
	if c.Kind != config.KindLLM {
		e := stint.Invalid.Errorf("agent "+c.Name, "it is of kind %s, and --model is for agents of kind llm", c.Kind)
		e.Hint = "leave --model out, or name an agent of kind llm with --agent"
		return c, e
	}
	file, err := a.agentsConfig()
	if err != nil {
		return c, err
	}
	dir, err := a.getwd()
	if err != nil {
		return c, &stint.Error{Code: stint.Invalid, Op: "model", Err: err}
	}
	asks, err := config.Prompt(file, dir, model, "", nil)
	if err != nil {
		return c, err
	}
	changed := *c.LLM
	changed.ModelRef = asks.LLM.ModelRef
	c.LLM = &changed
	return c, nil
}

// agentOf is the agent that a session goes on with now, and what it knows of servers of
// tools.
func (s *site) agentOf(ctx context.Context, ses *stint.Session) (config.Agent, map[string]mcp.Pin, error) {
	if !slices.Contains(runtimes(), ses.Agent.Runtime) {
		e := stint.Invalid.Errorf("agent "+ses.Agent.Name, "it is one of a program (runtime %s), and has no model that stint knows", ses.Agent.Runtime)
		e.Hint = "do it with the program that has the agent, or with one of stint.yaml: --agent NAME"
		return config.Agent{}, nil, e
	}
	def, err := engine.Pinned(ctx, s.store, ses)
	if err != nil {
		return config.Agent{}, nil, err
	}
	p, c, err := readPin(def)
	return c, p.Servers, err
}

// quoted reports whether a session calls no tools, and has them give what is on record of
// another one.
func (s *site) quoted(ctx context.Context, ses *stint.Session) bool {
	def, err := engine.Pinned(ctx, s.store, ses)
	if err != nil {
		return false
	}
	_, c, err := readPin(def) // a session of a program that uses the library has no such definition
	return err == nil && c.LLM != nil && c.LLM.Record != nil
}

// liveReplay is what a live replay comes to as JSON, schema stint.replay.live/1.
type liveReplay struct {
	Schema  string        `json:"schema"`
	Session stint.ID      `json:"session"`
	Name    string        `json:"name"`
	Short   string        `json:"short"`
	Line    int           `json:"line"`
	From    int           `json:"from"` // the first loop that is done again
	Agent   replayedAgent `json:"agent"`
	Model   string        `json:"model"`
	Calls   int           `json:"calls"`  // of tools, on record
	Branch  *view.Session `json:"branch"` // nil: it was not made
	// OffRecord are the calls that were not made; the first is where the branch leaves the
	// record.
	OffRecord []record.Call `json:"off_record"`
	Diff      *compare.Diff `json:"diff"` // nil: there is no branch

	row stint.Row // of the session
}

// replayLive does a session again with a model: a branch of it runs here, whose tools give
// what is on record.
func (a *app) replayLive(ctx context.Context, address string, o *replayOptions) error {
	s, err := a.open(ctx, false)
	if err != nil {
		return err
	}
	defer s.store.Close()
	row, place, err := view.Find(ctx, s.store, address, time.Now())
	if err != nil {
		return err
	}
	doc := &liveReplay{Schema: "stint.replay.live/1", Session: row.Session.ID, Name: row.Session.Name, Short: row.Short, OffRecord: []record.Call{}, row: row}
	if err := doc.place(ctx, s, place, o.from); err != nil {
		return err
	}
	agent, c, err := a.liveAgent(ctx, s, doc, o)
	if err != nil {
		return err
	}
	desk := a.desk(s)
	behind := doc.From - 1
	command := journal.Command{From: &behind, InDoubt: journal.RedoDoubt} // nothing is done again, so nothing is in doubt
	plan, refused, err := desk.PlanBranch(ctx, &row, &command, a.actor())
	if err != nil {
		return err
	}
	lim, err := a.liveLimits(c, &row.Session)
	if err != nil {
		return err
	}
	if !a.json {
		a.printLive(doc, &lim)
	}
	if o.live.dryRun && waits(refused) {
		refused = nil
	}
	switch {
	case o.live.dryRun && a.json:
		if err := a.printJSON(doc); err != nil {
			return err
		}
		return refused
	case o.live.dryRun:
		a.printf("Nothing was changed. To do it: %s\n", o.again(doc))
		return refused
	case refused != nil && !waits(refused):
		return refused
	}
	b := engine.Branch{Name: o.live.name, Reason: "what " + doc.Model + " does with the recorded results", Agent: &agent, Limits: &lim, Actor: a.actor(), InDoubt: command.InDoubt}
	if b.Say, err = record.Said(ctx, s.store, &row.Session, doc.From); err != nil {
		return err
	}
	made, err := desk.Branch(ctx, &row, &plan, b)
	if err != nil {
		return err
	}
	return a.runLive(ctx, s, doc, made.ID)
}

// place finds the loop that is done again first.
func (d *liveReplay) place(ctx context.Context, s *site, at view.Place, from int) error {
	loops, line, err := past.Course(ctx, s.store, d.Session, -1)
	if err != nil {
		return err
	}
	d.Line, d.From = line, from
	switch {
	case at.Line >= 0 && at.Line != line:
		e := stint.Invalid.Errorf("replay", "--live-model makes a branch, which begins on the current line, %d", line)
		e.Hint = "leave the line out; stint replay " + d.Short + "/" + fmt.Sprint(at.Line) + "  does its loops again without a model"
		return e
	case at.Loop > 0 && from == 0:
		d.From = at.Loop
	case from == 0 && len(loops) > 0: // those of a branch begin behind a loop of its parent
		d.From = loops[0].Number
	}
	d.From = max(d.From, 1)
	return nil
}

// liveAgent makes the agent of the branch: no tool of it is called.
func (a *app) liveAgent(ctx context.Context, s *site, d *liveReplay, o *replayOptions) (engine.Agent, *config.Agent, error) {
	was, servers, err := s.agentOf(ctx, &d.row.Session)
	if err != nil {
		return engine.Agent{}, nil, err
	}
	c := was
	if o.agent != "" {
		if c, err = a.agentBy(o.agent); err != nil {
			return engine.Agent{}, nil, err
		}
	}
	for _, one := range []*config.Agent{&was, &c} {
		if one.Kind != config.KindLLM {
			e := stint.Invalid.Errorf("agent "+one.Name, "it is of kind %s, and --live-model asks the model of an agent of kind llm", one.Kind)
			e.Hint = fmt.Sprintf("stint replay %s  does its loops again from the journal; stint branch %s --from %d --run  does them anew, tools and all", d.Short, d.Short, d.From-1)
			return engine.Agent{}, nil, e
		}
	}
	if c, err = a.withModel(c, o.live.model); err != nil {
		return engine.Agent{}, nil, err
	}
	d.Agent = replayedAgent{Name: c.Name, Pinned: o.agent == "", Changes: config.Diff(was, c), kind: c.Kind}
	_, d.Agent.Sum = c.Definition()
	if d.Agent.Changes == nil {
		d.Agent.Changes = []config.Change{}
	}
	of := config.Record{Session: d.Session, Line: d.Line, Behind: d.From - 1, Until: d.row.Session.Head}
	tools := *c.LLM
	tools.Record = &of
	c.LLM, c.Workspace = &tools, nil // nothing works in a folder
	dir, err := a.getwd()
	if err != nil {
		return engine.Agent{}, nil, &stint.Error{Code: stint.Invalid, Op: "replay", Err: err}
	}
	d.Model = c.LLM.Written(dir)
	d.Calls, err = record.New(s.db, record.Of{Session: of.Session, Line: of.Line, Behind: of.Behind, Until: of.Until}).Len(ctx)
	if err != nil {
		return engine.Agent{}, nil, err
	}
	w := s.wire(nil)
	defer w.close()
	agent, err := w.pinnedTo(c, maps.Clone(servers))
	return agent, &c, err
}

// liveLimits are those of the session that is done again. A day that has passed would end
// the branch before it begins.
func (a *app) liveLimits(c *config.Agent, parent *stint.Session) (stint.Limits, error) {
	lim := parent.Limits
	if !lim.Deadline.IsZero() && !lim.Deadline.After(time.Now()) {
		lim.Deadline = time.Time{}
	}
	if err := a.defaultMoney(c, &lim); err != nil {
		return lim, err
	}
	return lim, a.countsMoney(c, &lim)
}

// runLive runs the branch here, and says how it came out.
func (a *app) runLive(ctx context.Context, s *site, d *liveReplay, id stint.ID) error {
	branch, err := s.store.Session(ctx, id)
	if err != nil {
		return err
	}
	if !a.json {
		a.printf("The branch is %s (%s)\n", branch.Session.Name, branch.Short)
	}
	f, ses, err := a.driveThere(ctx, s, &branch, a.json)
	if err != nil {
		return err
	}
	if branch, err = s.store.Session(ctx, id); err != nil {
		return err
	}
	if d.row, err = s.store.Session(ctx, d.Session); err != nil { // it may have gone on
		return err
	}
	if d.OffRecord, err = record.Missing(ctx, s.store, &branch.Session); err != nil {
		return err
	}
	sides := []compare.Of{{Row: &d.row, Line: -1}, {Row: &branch, Line: -1, Quoted: true}}
	if d.Diff, err = compare.New(ctx, s.store, sides[0], sides[1], compare.Parts{Calls: true, Text: true, Cost: true}); err != nil {
		return err
	}
	if a.json {
		doc := view.NewSession(&branch, time.Now())
		d.Branch = &doc
		if err := a.printJSON(d); err != nil {
			return err
		}
		return f.status(&ses)
	}
	f.tell(&branch)
	a.printLiveReport(d, &branch)
	return f.status(&ses)
}

// again is the command that does what a dry run shows.
func (o *replayOptions) again(d *liveReplay) string {
	words := []string{"stint", "replay", d.Short, "--live-model", "--from", fmt.Sprint(d.From)}
	for _, f := range [][2]string{{"--agent", o.agent}, {"--model", o.live.model}, {"--name", o.live.name}} {
		if f[1] != "" {
			words = append(words, f[0], f[1])
		}
	}
	return term.Command(words)
}

func (a *app) printLive(d *liveReplay, lim *stint.Limits) {
	what := "as the session is pinned to it"
	if !d.Agent.Pinned {
		what = "of stint.yaml"
	}
	a.printf("Live replay of %s (%s) from loop %d on, with %s and the agent %s %s\n", d.Name, d.Short, d.From, term.Line(d.Model), d.Agent.Name, what)
	for _, c := range d.Agent.Changes {
		a.printf("  %s\n", term.Line(c.String()))
	}
	a.printf("  %s of tools on record behind loop %d; none is made\n", counted(d.Calls, "call"), d.From-1)
	if lim.Cost > 0 {
		a.printf("  at most %v is spent on it\n", lim.Cost)
	}
}

// shownLoops and shownCalls are how much of a comparison is listed.
const (
	shownLoops = 10
	shownCalls = 10
)

// printLiveReport says in short how the branch differs from the session.
func (a *app) printLiveReport(d *liveReplay, branch *stint.Row) {
	a.printf("Against %s (%s)\n", d.Name, d.Short)
	n := 0
	for i := range d.Diff.Loops {
		text := liveLoop(&d.Diff.Loops[i])
		if text == "" {
			continue
		}
		if n++; n <= shownLoops {
			a.printf("  loop %-4d %s\n", max(d.Diff.Loops[i].A, d.Diff.Loops[i].B), text)
		}
	}
	switch {
	case n == 0:
		a.printf("  the same calls of tools and the same words in %s\n", counted(d.Diff.Compared, "loop"))
	case n > shownLoops:
		a.printf("  and %d more\n", n-shownLoops)
	}
	x, y := d.Diff.Total.A, d.Diff.Total.B
	a.printf("  loops %d → %d · steps %d → %d · tokens %d → %d · cost %v → %v\n", x.Loops, y.Loops, x.Steps, y.Steps, tokens(x.Usage), tokens(y.Usage), x.Usage.Cost, y.Usage.Cost)
	if len(d.OffRecord) == 0 {
		a.printf("Every call of a tool is on record\n")
	} else {
		a.printf("Not on record, and not made; it diverges at %s\n", d.OffRecord[0].Pos)
	}
	for i, c := range d.OffRecord {
		if i == shownCalls {
			a.printf("  and %d more\n", len(d.OffRecord)-i)
			break
		}
		a.printf("  %-8s %s %s\n", c.Pos, term.Line(c.Tool), term.Cut(term.Line(compactJSON(c.Args)), sideWidth))
	}
	a.printf("stint diff %s %s · stint show %s · stint result %s\n", d.Short, branch.Short, branch.Short, branch.Short)
}

// liveLoop is how a loop differs in what its tools were asked and what its model said; empty:
// it does not. That another model was asked is no difference.
func liveLoop(l *compare.Loop) string {
	switch {
	case l.A == 0:
		return "only in the branch"
	case l.B == 0:
		return "not in the branch"
	}
	calls := l.CallMore
	for _, c := range l.Calls {
		if (c.A != nil && c.A.Kind != stint.Model) || (c.B != nil && c.B.Kind != stint.Model) {
			calls++
		}
	}
	lines := len(l.Text) + l.TextMore
	switch {
	case calls > 0 && lines > 0:
		return "differs in " + counted(calls, "call") + " and " + counted(lines, "line") + " of text"
	case calls > 0:
		return "differs in " + counted(calls, "call")
	case lines > 0:
		return "differs in " + counted(lines, "line") + " of text"
	}
	return ""
}

func tokens(u stint.Usage) int64 { return u.Input + u.Output + u.CacheRead + u.CacheWrite }
