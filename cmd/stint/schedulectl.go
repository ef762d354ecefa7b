package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/cron"
	"github.com/stint-dev/stint/internal/api"
	"github.com/stint-dev/stint/internal/config"
	"github.com/stint-dev/stint/internal/trigger"
	"github.com/stint-dev/stint/internal/view"
)

// scheduleItem is a schedule as JSON: what the API says of it, and how it stands for who
// looks from here.
type scheduleItem struct {
	api.Schedule

	Words  string              `json:"words"` // the timing for people
	Status string              `json:"status"`
	Last   *trigger.Occurrence `json:"last"` // null before the first
}

// The states of a schedule, in lists.
const (
	scheduleOn     = "on"
	schedulePaused = "paused"
	scheduleNew    = "not served yet" // no server has taken it up
	scheduleOver   = "over"           // no time comes any more
	scheduleWrong  = "wrong here"     // the stint.yaml here has a mistake in it; a server goes on with what it was
)

// schedules reads what the stint.yaml here and the store say of schedules.
func (a *app) schedules(ctx context.Context, s *site) ([]scheduleItem, error) {
	raw, err := s.system(ctx, trigger.Section)
	if err != nil {
		return nil, err
	}
	held, err := trigger.ReadHeld(raw)
	if err != nil {
		return nil, err
	}
	here := newApplied() // the store's schedules are there whatever the file says
	if s.server == nil {
		if read, err := a.readApplied(); err == nil {
			here = read
		}
	}
	names := slices.AppendSeq(slices.Collect(maps.Keys(held)), maps.Keys(here.file.Schedules))
	slices.Sort(names)
	var all []scheduleItem
	for _, name := range slices.Compact(names) {
		it, err := scheduleItemOf(ctx, s.store, name, here.file.Schedules, held)
		if err != nil {
			return nil, err
		}
		if here.bad["schedules."+name] != nil {
			it.Status = scheduleWrong
		}
		all = append(all, it)
	}
	return all, nil
}

func scheduleItemOf(ctx context.Context, r stint.Reader, name string, file map[string]config.Schedule, held map[string]trigger.Held) (scheduleItem, error) {
	c, written := file[name]
	h, served := held[name]
	if written {
		h.Timing = timingOf(&c)
	}
	now := time.Now()
	one, err := scheduleDoc(name, &c, &h).Upcoming(now)
	if err != nil {
		return scheduleItem{}, err
	}
	it := scheduleItem{Schedule: one, Status: scheduleOn, Words: timingWords(h.Timing)}
	switch {
	case !served:
		it.Status, it.Next = scheduleNew, []time.Time{}
	case h.Paused != nil:
		it.Status = schedulePaused
	case len(it.Next) == 0:
		it.Status = scheduleOver
	}
	last, err := trigger.History(ctx, r, name, time.Time{}, 1)
	if len(last) > 0 {
		it.Last = &last[0]
	}
	return it, err
}

// scheduleDoc is a schedule of a stint.yaml as a server holds it; c is zero where the file
// has none or a mistake.
func scheduleDoc(name string, c *config.Schedule, h *trigger.Held) api.Schedule {
	return api.Schedule{
		Name: name, Agent: c.Agent, Timing: h.Timing, Overlap: trigger.Overlap(c.Overlap), WindowMS: c.Window.Milliseconds(), Most: c.Most,
		JitterMS: c.Jitter.Milliseconds(), PauseAfter: c.PauseAfter, Conditional: c.When != nil, Since: h.Since, Paused: h.Paused,
	}
}

// timingWords says when a schedule is due, for people.
func timingWords(t trigger.Timing) string {
	if !t.At.IsZero() {
		return "once, at " + t.At.Local().Format(time.DateTime)
	}
	s, err := cron.Parse(t.Cron, cron.Options{Zone: t.Zone, Seconds: t.Seconds})
	if err != nil {
		return t.Cron + " in " + t.Zone
	}
	return s.Describe()
}

func (a *app) scheduleListCommand() *cobra.Command {
	return &cobra.Command{
		Use: "ls", Short: "List the schedules: when each fires next, and what came of it last", Args: noArgs,
		Example: "  stint schedule ls\n  stint schedule ls --json",
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.scheduleList(cmd.Context()) },
	}
}

func (a *app) scheduleList(ctx context.Context) error {
	s, err := a.reach(ctx, false)
	if err != nil {
		return err
	}
	defer s.store.Close()
	items, err := a.schedules(ctx, s)
	if err != nil {
		return err
	}
	rows := make([][]string, 0, len(items))
	for _, it := range items {
		rows = append(rows, []string{it.Name, it.Status, nextWords(it), lastWords(it.Last), it.Agent, it.Words})
	}
	err = a.printTable(table{
		doc: struct {
			Schema view.Schema    `json:"schema"`
			Now    time.Time      `json:"now"`
			Items  []scheduleItem `json:"items"`
		}{api.SchemaSchedules, time.Now().UTC().Truncate(time.Microsecond), append([]scheduleItem{}, items...)},
		none:  "There are no schedules. docs/schedules.md says how stint.yaml has them.",
		heads: []string{"SCHEDULE", "STATUS", "NEXT", "LAST", "AGENT", "TIMES"}, rows: rows,
	})
	if err != nil || a.json || len(items) == 0 {
		return err
	}
	return a.noteUnserved(ctx, s, "nothing fires until one does")
}

// waitsForServer is what becomes of a session that was begun where nobody runs it.
const waitsForServer = "the session waits for one, or for stint resume --run"

func nextWords(it scheduleItem) string {
	if len(it.Next) == 0 {
		return "-"
	}
	return it.Next[0].Local().Format(time.DateTime)
}

func lastWords(o *trigger.Occurrence) string {
	if o == nil {
		return "-"
	}
	return string(o.Outcome) + " " + o.To.Local().Format(time.DateTime)
}

// historyItem is a line of a ledger as JSON: the line, and how its session stands.
type historyItem struct {
	trigger.Occurrence

	Status stint.Status `json:"status,omitempty"` // of the session
	Short  string       `json:"short,omitempty"`
}

func (a *app) scheduleHistoryCommand() *cobra.Command {
	return counting(&cobra.Command{
		Use: "history NAME", Short: "Show what became of each time of a schedule, newest first",
		Long: `Show the ledger of a schedule. Every time that it was due is in exactly one line: it
ran, and led to a session; it was skipped, as its policy says; or it was missed, and
why. A long time without a server is one line.`,
		Example: "  stint schedule history nightly\n  stint schedule history nightly -n 100 --json",
		Args:    exactly(1, "one schedule"), ValidArgsFunction: a.completeSchedules,
	}, func(ctx context.Context, args []string, n int) error { return a.scheduleHistory(ctx, args[0], n) })
}

func (a *app) scheduleHistory(ctx context.Context, name string, limit int) error {
	s, err := a.reach(ctx, false)
	if err != nil {
		return err
	}
	defer s.store.Close()
	if _, err := a.schedule(ctx, s, name); err != nil {
		return err
	}
	lines, err := trigger.History(ctx, s.store, name, time.Time{}, limit)
	if err != nil {
		return err
	}
	items := []historyItem{}
	for _, o := range lines {
		row, err := s.session(ctx, o.Session)
		if err != nil {
			return err
		}
		items = append(items, historyItem{Occurrence: o, Status: row.Session.Status, Short: row.Short})
	}
	rows := make([][]string, 0, len(items))
	for _, it := range items {
		rows = append(rows, []string{dueWords(it.Occurrence), string(it.Outcome), whyWords(it.Occurrence), it.Short, string(it.Status)})
	}
	return a.printTable(table{
		doc: struct {
			Schema   view.Schema   `json:"schema"`
			Schedule string        `json:"schedule"`
			Items    []historyItem `json:"items"`
		}{api.SchemaOccurrences, name, items},
		none:  "Nothing came of " + name + " yet.",
		heads: []string{"DUE", "OUTCOME", "WHY", "SESSION", "STATUS"}, rows: rows,
	})
}

func dueWords(o trigger.Occurrence) string {
	due := o.To.Local().Format(time.DateTime)
	if o.Count > 1 {
		return o.From.Local().Format(time.DateTime) + " to " + due + ", " + strconv.FormatInt(o.Count, 10) + " times"
	}
	return due
}

func whyWords(o trigger.Occurrence) string {
	var parts []string
	switch {
	case o.Backfill:
		parts = append(parts, "made good by "+strings.TrimPrefix(o.By, "human:"))
	case o.Manual:
		parts = append(parts, "fired by "+strings.TrimPrefix(o.By, "human:"))
	case o.Reason != "":
		parts = append(parts, o.Reason)
	}
	if o.Detail != "" {
		parts = append(parts, o.Detail)
	}
	return strings.Join(parts, ": ")
}

// schedule finds one by name.
func (a *app) schedule(ctx context.Context, s *site, name string) (scheduleItem, error) {
	all, err := a.schedules(ctx, s)
	if err != nil {
		return scheduleItem{}, err
	}
	for _, it := range all {
		if it.Name == name {
			return it, nil
		}
	}
	e := stint.NotFound.Errorf("schedule", "there is no schedule %q", name)
	e.Hint = "stint schedule ls lists them"
	return scheduleItem{}, e
}

func (a *app) completeSchedules(cmd *cobra.Command, args []string, prefix string) (out []cobra.Completion, _ cobra.ShellCompDirective) {
	a.atStore(cmd, func(ctx context.Context, s *site) error {
		if len(args) > 0 {
			return nil
		}
		all, err := a.schedules(ctx, s)
		for _, it := range all {
			if strings.HasPrefix(it.Name, prefix) {
				out = append(out, cobra.CompletionWithDesc(it.Name, it.Words))
			}
		}
		return err
	})
	return out, cobra.ShellCompDirectiveNoFileComp
}

// scheduleOrderCommand is a command that asks something of one schedule.
func (a *app) scheduleOrderCommand(verb trigger.Verb, use, short, long, example, done string) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use: use + " NAME", Short: short, Long: long, Example: example, Args: exactly(1, "one schedule"), ValidArgsFunction: a.completeSchedules,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.scheduleOrder(cmd.Context(), trigger.Command{Verb: verb, Schedule: args[0], Reason: reason}, done)
		},
	}
	cmd.Flags().StringVarP(&reason, "message", "m", "", "why, for those who look at the history")
	return cmd
}

func (a *app) scheduleOrderCommands() []*cobra.Command {
	return []*cobra.Command{
		a.scheduleOrderCommand(trigger.Pause, "pause", "Let a schedule begin no sessions",
			"Let a schedule begin no sessions until it is resumed. What it has begun goes on. The\nreason stands in stint schedule ls --json, and the times of the pause in one line of its history.",
			`  stint schedule pause nightly -m "release freeze"`, "is paused; stint schedule resume %s lets it go on"),
		a.scheduleOrderCommand(trigger.Resume, "resume", "Let a schedule go on",
			"Let a schedule that is paused go on with its next time. What was due meanwhile is\nrecorded as skipped; stint schedule backfill makes it good.",
			"  stint schedule resume nightly", "goes on; stint schedule ls says when it fires next"),
		a.scheduleOrderCommand(trigger.Fire, "fire", "Begin a session of a schedule now",
			"Begin a session of a schedule now, beside its times, whether it is paused or not, and\nwithout its condition.",
			`  stint schedule fire nightly -m "after the fix"`, "has fired: stint schedule history %s"),
	}
}

func (a *app) scheduleOrder(ctx context.Context, c trigger.Command, done string) error {
	s, err := a.reach(ctx, true)
	if err != nil {
		return err
	}
	defer s.store.Close()
	if _, err := a.schedule(ctx, s, c.Schedule); err != nil {
		return err
	}
	if _, err := a.order(ctx, s, c, ownScheduler); err != nil {
		return err
	}
	if a.json {
		it, err := a.schedule(ctx, s, c.Schedule)
		if err != nil {
			return err
		}
		it.Schema = api.SchemaSchedule
		return a.printJSON(it)
	}
	if strings.Contains(done, "%s") {
		done = fmt.Sprintf(done, c.Schedule)
	}
	a.printf("%s %s\n", c.Schedule, done)
	if c.Verb != trigger.Fire {
		return nil
	}
	return a.noteUnserved(ctx, s, waitsForServer)
}
