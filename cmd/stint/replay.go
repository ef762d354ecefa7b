package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/compare"
	"github.com/stint-dev/stint/internal/config"
	"github.com/stint-dev/stint/internal/replay"
	"github.com/stint-dev/stint/internal/term"
	"github.com/stint-dev/stint/internal/view"
	"github.com/stint-dev/stint/journal"
)

// replayOptions are the flags of stint replay.
type replayOptions struct {
	from, to int
	line     int
	agent    string
	network  bool
	logs     bool
	live     liveOptions
}

func (a *app) replayCommand() *cobra.Command {
	var o replayOptions
	cmd := &cobra.Command{
		Use: "replay SESSION", Short: "Do the loops of a session again, offline, or with a model, and show where they differ",
		Long: `Do the completed loops of a session again: the agent's code runs, and every step that
it asks for is answered from the journal. No step is done, no model is called, no
server of tools is started, and nothing is written. It ends at the first step, state,
wait or end that is another one than recorded, with both sides, and exit status 7.

The agent is the one that the session is pinned to. With --agent it is an agent of
stint.yaml as it is now, by its name or the beginning of its sum: so it shows at which
step a changed agent would first act otherwise.

A program runs without a network. Where the system does not allow that, and for an
agent behind a URL, --allow-network has to be given. SESSION:LOOP does one loop again,
SESSION/LINE those of a line that the session left.

With --live-model the model is asked, and paid, and nothing else is done: a branch of the
session begins before loop --from and runs here, and its calls of tools get what equal
ones gave the session. A call that is not on record is not made, and the model is told
so. --model and --agent choose who does it. At the end the two are compared.`,
		Example: "  stint replay triage-1129\n  stint replay x81d --from 3 --to 7\n  stint replay x81d --agent triage\n  stint replay x81d/0 --json\n" +
			"  stint replay x81d --live-model --model openai/gpt-5.6\n  stint replay x81d --live-model --from 3 --agent triage --dry-run",
		Args: exactly(1, "one session"), ValidArgsFunction: a.completeSessions,
		RunE: func(cmd *cobra.Command, args []string) error {
			f := cmd.Flags()
			for _, name := range []string{"from", "to"} {
				if n, err := f.GetInt(name); err == nil && f.Changed(name) && n < 1 {
					return misused(cmd, "--%s is a loop: 1 or higher", name)
				}
			}
			if f.Changed("line") && o.line < 0 {
				return misused(cmd, "--line is a line: 0 or higher")
			}
			if err := o.live.check(cmd); err != nil {
				return err
			}
			if o.live.on {
				return a.replayLive(cmd.Context(), args[0], &o)
			}
			return a.replay(cmd.Context(), args[0], &o)
		},
	}
	f := cmd.Flags()
	f.IntVar(&o.from, "from", 0, "the first loop to do again (default: 1)")
	f.IntVar(&o.to, "to", 0, "the last one (default: the newest that was completed)")
	f.IntVar(&o.line, "line", -1, "the line whose loops are done again (default: the current one)")
	f.StringVar(&o.agent, "agent", "", "the agent of stint.yaml that does them, by name or sum (default: the one that the session is pinned to)")
	f.BoolVar(&o.network, "allow-network", false, "let the agent's program use the network")
	f.BoolVar(&o.logs, "logs", false, "show what the agent logs, on standard error")
	o.live.flags(f)
	return cmd
}

// replayed is the outcome as JSON, schema stint.replay/1.
type replayed struct {
	Schema string `json:"schema"`
	Name   string `json:"name"`
	Short  string `json:"short"`
	*replay.Report
	Same  bool          `json:"same"`
	Agent replayedAgent `json:"agent"`
}

// replayedAgent is who did the loops again.
type replayedAgent struct {
	Name    string          `json:"name"`
	Sum     stint.Hash      `json:"definition_sum"`
	Pinned  bool            `json:"pinned"`  // it is the one of the session
	Changes []config.Change `json:"changes"` // from the session's agent to this one
	Network bool            `json:"network"` // its program had a network

	kind string
}

func (a *app) replay(ctx context.Context, address string, o *replayOptions) error {
	s, err := a.reach(ctx, false)
	if err != nil {
		return err
	}
	defer s.store.Close()
	row, place, err := view.Find(ctx, s.store, address, time.Now())
	if err != nil {
		return err
	}
	opt := replay.Options{Line: place.Line, From: o.from, To: o.to}
	if o.line >= 0 {
		opt.Line = o.line
	}
	if place.Loop > 0 && o.from == 0 && o.to == 0 {
		opt.From, opt.To = place.Loop, place.Loop
	}
	w := s.wire(nil)
	w.again = &again{network: o.network}
	defer w.close()
	agent, who, err := a.replayer(ctx, s, w, &row, o.agent)
	if err != nil {
		return err
	}
	opt.Settled = who.kind == config.KindCLI
	if !a.json {
		a.printReplayer(&row, who)
		opt.Passed = a.printPassed
	}
	if o.logs {
		opt.Output = func(_ string, p []byte) { a.notef("%s", string(p)) }
	}
	rep, err := replay.Run(ctx, s.store, row.Session.ID, agent, opt)
	if err != nil {
		return err
	}
	if a.json {
		err = a.printJSON(replayed{"stint.replay/1", row.Session.Name, row.Short, rep, rep.Divergence == nil, *who})
	} else {
		a.printReport(&row, rep)
	}
	if err == nil && rep.Divergence != nil {
		err = exitError(exitNotOK)
	}
	return err
}

// replayer makes the agent that does the loops again: the one that a session is pinned to,
// or the named one of stint.yaml.
func (a *app) replayer(ctx context.Context, s *site, w *wiring, row *stint.Row, name string) (stint.Agent, *replayedAgent, error) {
	es, err := s.store.Entries(ctx, stint.Range{Session: row.Session.ID, Limit: 1})
	if err != nil {
		return nil, nil, err
	}
	if len(es) == 0 {
		return nil, nil, stint.Corrupt.Errorf("replay", "the journal has no first entry")
	}
	first, err := journal.Decode[journal.Created](&es[0])
	if err != nil {
		return nil, nil, err
	}
	if !slices.Contains(runtimes(), first.Agent.Runtime) {
		_, err := w.resolve(first.Agent, first.Config)
		return nil, nil, err
	}
	p, c, err := readPin(first.Config)
	if err != nil {
		return nil, nil, err
	}
	was := c
	if name != "" {
		if c, err = a.agentBy(name); err != nil {
			return nil, nil, err
		}
		def, _ := c.Definition()
		p = pin{Agent: def}
	}
	if p.Store != "" && w.kept.store == nil {
		e := stint.Invalid.Errorf("replay", "the session runs copies of its agent's files, which are in the store of the server")
		e.Hint = "replay it where the store is, or with an agent of the stint.yaml here: --agent NAME"
		return nil, nil, e
	}
	if err := w.again.canRun(&c); err != nil {
		return nil, nil, err
	}
	who := &replayedAgent{Name: c.Name, Pinned: name == "", Changes: config.Diff(was, c), Network: w.again.network, kind: c.Kind}
	_, who.Sum = c.Definition()
	if who.Changes == nil {
		who.Changes = []config.Change{}
	}
	made, err := w.make(c, first.Config, &p)
	if err != nil {
		return nil, nil, err
	}
	if spec, _, err := w.spec(c); err == nil && c.Kind == config.KindExec && p.Store == "" {
		for _, file := range drifted(p.Files, spec) {
			who.Changes = append(who.Changes, config.Change{Member: file, From: p.Files[file].String()[:12], To: "changed"})
		}
	}
	return made.Loop, who, nil
}

// agentBy is the agent of stint.yaml that has a name, or whose sum begins so.
func (a *app) agentBy(name string) (config.Agent, error) {
	const least = 4 // characters of a sum
	c, err := a.configured(name)
	if stint.CodeOf(err) != stint.NotFound || len(name) < least {
		return c, err
	}
	file, other := a.agentsConfig()
	if other != nil || file == nil {
		return c, err
	}
	for _, it := range agentItems(file) {
		if strings.HasPrefix(it.Sum, name) {
			return file.Agent(it.Name)
		}
	}
	return c, err
}

func (a *app) printReplayer(row *stint.Row, who *replayedAgent) {
	what := "as the session is pinned to it"
	if !who.Pinned {
		what = "of stint.yaml"
	}
	a.printf("Replay of %s (%s) with the agent %s %s, definition %s\n", row.Session.Name, row.Short, who.Name, what, who.Sum.String()[:8])
	for _, c := range who.Changes {
		a.printf("  %s\n", term.Line(c.String()))
	}
	if who.Network {
		a.notef("stint: --allow-network: the program's own network is not cut off here\n  its steps are answered from the journal; what it does besides it does\n")
	}
}

func (a *app) printPassed(l replay.Loop) {
	line := fmt.Sprintf("  loop %-4d same  %s  %s", l.Loop, counted(l.Steps, "step"), term.Line(l.Headline))
	a.printf("%s\n", strings.TrimRight(line, " "))
}

// printReport says how it came out.
func (a *app) printReport(row *stint.Row, rep *replay.Report) {
	d := rep.Divergence
	if d == nil {
		n := 0
		for _, l := range rep.Loops {
			n += l.Steps
		}
		a.printf("The same: %s, %s\n", counted(len(rep.Loops), "loop"), counted(n, "step"))
		return
	}
	a.printf("  loop %-4d DIFFERS\n%s\n", d.Pos.Loop, term.Line(d.Text))
	if d.Recorded != nil && d.Offered != nil {
		a.printSide("recorded", d.Recorded)
		a.printSide("now", d.Offered)
	} else if side := cmp.Or(d.Recorded, d.Offered); side != nil {
		a.printSide("step", side)
	}
	if d.Change != nil {
		for _, text := range compare.Lines(d.Change, shownChanges) {
			a.printf("  %s\n", text)
		}
	}
	a.printf("  stint logs %s:%s --content  shows what was recorded\n", row.Short, d.Pos)
}

// sideWidth is how much of an input is shown, in characters.
const sideWidth = 200

func (a *app) printSide(label string, s *replay.Step) {
	input := "no input"
	switch {
	case s.Size < 0:
		input = "input " + s.Hash + ", of which only the hash is on record"
	case s.Size > 0:
		input = term.Cut(term.Line(compactJSON(s.Input)), sideWidth)
	}
	a.printf("  %-9s %s: %s\n", label, s.String(), input)
}

// compactJSON is a value without spaces.
func compactJSON(v json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, v) != nil {
		return string(v)
	}
	return b.String()
}
