package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/term"
	"github.com/stint-dev/stint/internal/view"
	"github.com/stint-dev/stint/journal"
	"github.com/stint-dev/stint/store/sqlite"
)

// verifyOptions are the flags of stint verify.
type verifyOptions struct {
	all    bool
	states bool
}

func (a *app) verifyCommand() *cobra.Command {
	var o verifyOptions
	cmd := &cobra.Command{
		Use: "verify [SESSION…]", Short: "Check that journals are sound and complete",
		Long: `Check every entry of a session's journal: the hash chain and the rules, every body
against its hash, that the entries add up to what lists show, and that the newest
state can be read. --states reads the states of all checkpoints. --all also checks
the file itself with its indexes, and that whatever one table names is in the other:
a session that damage has taken out of every list is counted, and named.

The exit status is 10 if anything is wrong; each problem is named with its session
and entry. Sessions that are being worked on can be verified too.`,
		Example: "  stint verify x81d\n  stint verify --all --states",
		Args: func(cmd *cobra.Command, args []string) error {
			if o.all == (len(args) > 0) {
				return misused(cmd, "give sessions, or --all")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return a.verify(cmd.Context(), args, &o) },
	}
	cmd.Flags().BoolVar(&o.all, "all", false, "all sessions of the store")
	cmd.Flags().BoolVar(&o.states, "states", false, "read the states of all checkpoints, not of the newest alone")
	return cmd
}

func (a *app) verify(ctx context.Context, args []string, o *verifyOptions) error {
	s, err := a.open(ctx, false)
	if err != nil {
		return err
	}
	defer s.store.Close()
	c := &verification{app: a, site: s, opt: o, v: view.NewVerification(time.Now()), known: map[stint.ID][]view.Problem{}}
	c.progress = &progress{app: a, tty: term.For(a.err, a.color, a.getenv).TTY && !a.json}
	p := c.progress
	if o.all {
		err = c.all(ctx)
	} else {
		err = c.named(ctx, args)
	}
	v := &c.v
	p.done()
	if err != nil {
		return err
	}
	if a.json {
		if err := view.WriteJSON(a.out, *v); err != nil {
			return err
		}
	} else if o.all {
		a.printf("%d sessions, %d entries, %d bodies, %d states: %s\n", v.Sessions, v.Entries, v.Bodies, v.States,
			map[bool]string{true: "all sound", false: "NOT SOUND"}[v.OK])
	}
	if !v.OK {
		return exitError(exitCorrupt)
	}
	return nil
}

// verification is one call of stint verify at work.
type verification struct {
	*app
	site     *site
	opt      *verifyOptions
	v        view.Verification
	known    map[stint.ID][]view.Problem // what the tables show, by session
	progress *progress
}

// maxKnown bounds what is kept of one session.
const maxKnown = 100

// found takes what the tables show.
func (c *verification) found(f sqlite.Flaw) {
	p := view.Problem{Seq: f.Seq, Check: "table", What: f.What}
	if f.Session.IsZero() {
		c.v.Fault(p)
	} else if len(c.known[f.Session]) < maxKnown {
		c.known[f.Session] = append(c.known[f.Session], p)
	}
}

// all checks the store and every session that any table names.
func (c *verification) all(ctx context.Context) error {
	ids, err := c.site.db.Verify(ctx, stint.ID{}, c.found)
	if err != nil {
		return err
	}
	if !c.json {
		if err := c.v.WriteFaults(c.out, c.style()); err != nil {
			return err
		}
	}
	for _, id := range ids {
		row, err := c.site.store.Session(ctx, id)
		switch {
		case errors.Is(err, stint.Corrupt), errors.Is(err, stint.NotFound):
			err = c.report(view.Unreadable(id, c.known[id], err))
		case err == nil:
			err = c.one(ctx, &row)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// named checks the sessions that are addressed.
func (c *verification) named(ctx context.Context, args []string) error {
	for _, address := range args {
		row, _, err := view.Find(ctx, c.site.store, address, time.Now())
		if err == nil {
			_, err = c.site.db.Verify(ctx, row.Session.ID, c.found)
		}
		if err == nil {
			err = c.one(ctx, &row)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// one checks one session.
func (c *verification) one(ctx context.Context, row *stint.Row) error {
	base := c.v.Entries
	known, err := c.pinned(ctx, row)
	if err != nil {
		return err
	}
	r, err := view.VerifySession(ctx, c.site.store, *row, view.VerifyOptions{
		States: c.opt.states, Known: append(known, c.known[row.Session.ID]...),
		Progress: func(n int64) { c.progress.show(c.v.Sessions+1, base+n) },
	})
	if err != nil {
		return err
	}
	return c.report(r)
}

// pinned finds copies of the agent's files that the session needs to go on, and that
// the store does not have. What cannot be read of the first entry is found elsewhere.
func (c *verification) pinned(ctx context.Context, row *stint.Row) ([]view.Problem, error) {
	if row.Session.Agent.Runtime != runtimeExec {
		return nil, nil
	}
	es, err := c.site.store.Entries(ctx, stint.Range{Session: row.Session.ID, Until: 1, Limit: 1})
	if errors.Is(err, stint.Corrupt) || err == nil && len(es) == 0 {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	first, err := journal.Decode[journal.Created](&es[0])
	if err != nil {
		return nil, nil //nolint:nilerr // the journal is checked next
	}
	p, _, err := readPin(first.Config)
	if err != nil || p.Store == "" {
		return nil, nil //nolint:nilerr // the agent cannot be read; its pin is checked with the journal
	}
	files, err := c.site.db.Files(ctx, filepath.Base(p.Store))
	if err != nil && !errors.Is(err, stint.Corrupt) {
		return nil, err
	}
	if err != nil {
		return []view.Problem{{Check: "table", What: err.Error()}}, nil
	}
	has := map[string]bool{}
	for i := range files {
		has[files[i].Path] = true
	}
	var problems []view.Problem
	for name := range p.Files {
		if !filepath.IsAbs(name) && !has[filepath.ToSlash(name)] {
			problems = append(problems, view.Problem{Check: "table", What: fmt.Sprintf("the store has no copy of %q, which it is pinned to", name)})
		}
	}
	return problems, nil
}

// report counts r and prints what --all need not sum up.
func (c *verification) report(r view.Report) error {
	c.v.Add(r, !c.opt.all)
	if c.json || c.opt.all && r.OK {
		return nil
	}
	c.progress.done()
	return view.WriteReport(c.out, c.style(), &r)
}

// progress is a line on a terminal that is written over.
type progress struct {
	app   *app
	tty   bool
	shown bool
	at    time.Time
}

func (p *progress) show(sessions int, entries int64) {
	if !p.tty || time.Since(p.at) < 100*time.Millisecond {
		return
	}
	p.at, p.shown = time.Now(), true
	p.app.notef("\r\x1b[K%s", fmt.Sprintf("session %d, %d entries checked", sessions, entries))
}

// done takes the line away.
func (p *progress) done() {
	if p.shown {
		p.app.notef("\r\x1b[K")
		p.shown = false
	}
}
