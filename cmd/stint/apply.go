package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/internal/server"
	"github.com/stint-dev/stint/internal/term"
)

// appliedSection is the part of the system journal's state that says what the server
// works by.
const appliedSection = "config"

// appliedHeld is that part.
type appliedHeld struct {
	Path  string            `json:"path"`
	Sum   stint.Hash        `json:"sum"`
	At    time.Time         `json:"at"`
	By    stint.Actor       `json:"by"`
	Items map[string]string `json:"items"` // see [applied.items]
}

// readAppliedHeld reads that part; it is empty where no server has run.
func readAppliedHeld(raw json.RawMessage) (was appliedHeld, err error) {
	if raw == nil {
		return was, nil
	}
	if err := json.Unmarshal(raw, &was); err != nil {
		return was, stint.Corrupt.Errorf("apply", "the system journal's record of stint.yaml cannot be read: %v", err)
	}
	return was, nil
}

// partChange is a part of a stint.yaml that differs.
type partChange struct {
	Part string `json:"part"`          // schedules.NAME
	Was  string `json:"was,omitempty"` // empty: it is new
	Is   string `json:"is,omitempty"`  // empty: it is gone
}

// partChanges are what differs between two states of a stint.yaml, by part.
func partChanges(was, is map[string]string) []partChange {
	all := map[string]bool{}
	for key := range was {
		all[key] = true
	}
	for key := range is {
		all[key] = true
	}
	out := []partChange{}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if was[key] != is[key] {
			out = append(out, partChange{key, was[key], is[key]})
		}
	}
	return out
}

// apply has the server work by p from now on. by is who wanted it, takes the message that
// asked, or nil.
func (v *serving) apply(ctx context.Context, p *applied, by stint.Actor, takes *stint.Message) error {
	v.applies.Lock()
	defer v.applies.Unlock()
	p.tellBad(v.log)
	if err := v.scheduler.Set(ctx, p.schedules(v.wiring), p.broken("schedules")...); err != nil {
		return err
	}
	v.receiver.Set(p.targets(v.wiring), p.broken("hooks")...)
	if err := v.notifier.Set(ctx, p.endpoints(v.wiring), p.broken("notify")...); err != nil {
		return err
	}
	v.now.Store(p)
	was, err := readAppliedHeld(v.system.State(appliedSection))
	if err != nil {
		return err
	}
	is := appliedHeld{Path: p.file.Path, Sum: p.sum, At: time.Now().UTC(), By: by, Items: p.items()}
	differs := partChanges(was.Items, is.Items)
	if len(differs) == 0 && takes == nil {
		return nil
	}
	raw, err := json.Marshal(is)
	if err != nil {
		return err
	}
	v.log.Info("stint.yaml is in force", "path", p.file.Path, "changes", len(differs), "by", by)
	return v.system.Record(ctx, engine.Note{What: "config.applied", Name: p.file.Path, Actor: by, Data: differs, Section: appliedSection, State: raw, Takes: takes})
}

// reload reads stint.yaml and the certificate again. What cannot be read changes nothing.
func (v *serving) reload(ctx context.Context) {
	if err := v.listeners.Reload(); err != nil {
		v.log.Error("the certificate stays as it was", "error", err)
	}
	p, err := v.app.readApplied()
	if err == nil {
		err = v.apply(ctx, p, "engine", nil)
	}
	if err != nil {
		v.log.Error("stint.yaml stays as it was", "error", err)
	}
}

const applyVerb = "server.apply"

// applyOrder is the body of the message that asks a server to read its stint.yaml again.
type applyOrder struct {
	Verb string     `json:"verb"` // [applyVerb]
	Sum  stint.Hash `json:"sum"`  // of what the person saw
}

// Obey takes up the stint.yaml when that is asked, and is as it was seen by who asks.
func (v *serving) Obey(ctx context.Context, m *stint.Message) (known bool, err error) {
	var c applyOrder
	if json.Unmarshal(m.Body, &c) != nil || c.Verb != applyVerb {
		return false, nil
	}
	p, err := v.app.readApplied()
	why := ""
	switch {
	case err != nil:
		why = err.Error()
	case p.sum != c.Sum:
		why = fmt.Sprintf("the server's stint.yaml, %s, says something else than the one that was shown", p.file.Path)
	default:
		return true, v.apply(ctx, p, m.From, m)
	}
	return true, v.system.Record(ctx, engine.Note{What: "config.refused", Actor: m.From, Reason: why, Takes: m})
}

func (a *app) applyCommand() *cobra.Command {
	var dry bool
	cmd := &cobra.Command{
		Use: "apply", Short: "Show what stint.yaml changes, and have the server work by it", Args: noArgs,
		Long: `Show how stint.yaml differs from what the server of the store works by, and have the
server take it up. A file with a mistake anywhere is not applied. Sessions that have
begun go on with the agent they are pinned to.`,
		Example: "  stint apply --dry-run\n  stint apply",
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.apply(cmd.Context(), dry) },
	}
	cmd.Flags().BoolVar(&dry, "dry-run", false, "show, and change nothing")
	return cmd
}

func (a *app) apply(ctx context.Context, dry bool) error {
	if _, err := a.mustConfig(); err != nil { // with every mistake in it
		return err
	}
	p, err := a.readApplied()
	if err != nil {
		return err
	}
	s, err := a.open(ctx, false)
	if err != nil {
		return err
	}
	defer s.store.Close()
	raw, err := s.system(ctx, appliedSection)
	if err != nil {
		return err
	}
	was, err := readAppliedHeld(raw)
	if err != nil {
		return err
	}
	differs := partChanges(was.Items, p.items())
	if !a.json {
		a.showChanges(differs)
	}
	done := false
	if !dry {
		_, err := a.order(ctx, s, applyOrder{applyVerb, p.sum}, func(context.Context, *serving) (server.Obeyer, error) {
			e := stint.Unavailable.Errorf("apply", "no server runs on this store")
			e.Hint = "stint serve reads stint.yaml when it starts"
			return nil, e
		})
		if err != nil {
			return err
		}
		done = true
	}
	if a.json {
		return a.printJSON(struct {
			Schema  string       `json:"schema"`
			Path    string       `json:"path"`
			Applied bool         `json:"applied"`
			Changes []partChange `json:"changes"`
		}{"stint.apply/1", p.file.Path, done, differs})
	}
	if done {
		a.printf("The server works by %s.\n", p.file.Path)
	}
	return nil
}

// showChanges prints what differs, a line for each part, and for each member that differs.
func (a *app) showChanges(all []partChange) {
	st := a.style()
	if len(all) == 0 {
		a.printf("Nothing changes.\n")
	}
	for _, c := range all {
		switch {
		case c.Was == "":
			fmt.Fprintln(a.out, st.Paint(term.Green, "+ "+term.Escape(c.Part)))
		case c.Is == "":
			fmt.Fprintln(a.out, st.Paint(term.Red, "- "+term.Escape(c.Part)))
		default:
			fmt.Fprintln(a.out, st.Paint(term.Yellow, "~ "+term.Escape(c.Part)))
			for _, m := range members(c.Was, c.Is) {
				a.printf("    %s\n", m)
			}
		}
	}
}

// members says which members of two JSON objects differ.
func members(was, is string) []string {
	var a, b map[string]json.RawMessage
	if json.Unmarshal([]byte(was), &a) != nil || json.Unmarshal([]byte(is), &b) != nil {
		return nil // a sum, or a mistake
	}
	names := map[string]bool{}
	for name := range a {
		names[name] = true
	}
	for name := range b {
		names[name] = true
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if x, y := string(a[name]), string(b[name]); x != y {
			out = append(out, fmt.Sprintf("%s: %s → %s", strings.TrimSuffix(name, "_ns"), orNothing(x), orNothing(y)))
		}
	}
	return out
}

func orNothing(s string) string {
	if s == "" {
		return "nothing"
	}
	return s
}
