package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/term"
	"github.com/stint-dev/stint/internal/view"
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
state can be read. --states reads the states of all checkpoints.

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
	v := view.NewVerification(time.Now())
	p := &progress{app: a, tty: term.For(a.err, a.color, a.getenv).TTY && !a.json}
	one := func(row *stint.Row) error { return a.verifyOne(ctx, s, row, o, &v, p) }
	if o.all {
		err = eachSession(ctx, s.store, one)
	} else {
		for _, address := range args {
			var row stint.Row
			if row, _, err = view.Find(ctx, s.store, address, time.Now()); err == nil {
				err = one(&row)
			}
			if err != nil {
				break
			}
		}
	}
	p.done()
	if err != nil {
		return err
	}
	if a.json {
		if err := view.WriteJSON(a.out, v); err != nil {
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

// verifyOne checks one session and prints what --all need not sum up.
func (a *app) verifyOne(ctx context.Context, s *site, row *stint.Row, o *verifyOptions, v *view.Verification, p *progress) error {
	base := v.Entries
	r, err := view.VerifySession(ctx, s.store, *row, view.VerifyOptions{States: o.states, Progress: func(n int64) { p.show(v.Sessions+1, base+n) }})
	if err != nil {
		return err
	}
	v.Add(r, !o.all)
	if a.json || o.all && r.OK {
		return nil
	}
	p.done()
	return view.WriteReport(a.out, a.style(), &r)
}

// eachSession calls fn for every session, newest first.
func eachSession(ctx context.Context, r stint.Reader, fn func(*stint.Row) error) error {
	const page = 500
	f := stint.Filter{Limit: page}
	for {
		rows, err := r.Sessions(ctx, f)
		if err != nil {
			return err
		}
		for i := range rows {
			if err := fn(&rows[i]); err != nil {
				return err
			}
		}
		if len(rows) < page {
			return nil
		}
		f.After = rows[page-1].Session.ID
	}
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
