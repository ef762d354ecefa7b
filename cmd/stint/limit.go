package main

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/view"
)

// limitOptions are the flags of stint limit; empty ones leave a limit as it is.
type limitOptions struct {
	order
	wall, idle, deadline, loops, steps, tokens, cost, onLimit string
}

func (a *app) limitCommand() *cobra.Command {
	o := limitOptions{order: order{kind: stint.SetLimit}}
	cmd := &cobra.Command{
		Use: "limit SESSION", Short: "Change the limits of a session",
		Long: `Change limits of a session. One that waits for a used-up limit goes on where it
stands once the limit is raised. A value is a new limit, +VALUE adds to the old one,
and none removes it.`,
		Example:           "  stint limit x81d --loops +20\n  stint limit x81d --cost +2.50 --run\n  stint limit x81d --wall 2h --reason \"large repository\"\n  stint limit x81d --deadline none",
		Args:              exactly(1, "one session"),
		ValidArgsFunction: one(a.completeSessions),
		RunE:              func(cmd *cobra.Command, args []string) error { return a.limit(cmd.Context(), args[0], o) },
	}
	f := cmd.Flags()
	f.StringVar(&o.wall, "wall", "", "running time")
	f.StringVar(&o.idle, "idle", "", "running time without a sign of life")
	f.StringVar(&o.deadline, "deadline", "", "time from now, or an RFC 3339 time")
	f.StringVar(&o.loops, "loops", "", "loops in all")
	f.StringVar(&o.steps, "steps", "", "steps in all")
	f.StringVar(&o.tokens, "tokens", "", "tokens of models in all")
	f.StringVar(&o.cost, "cost", "", "US dollars in all")
	f.StringVar(&o.onLimit, "on-limit", "", "what a used-up limit does: wait (for a person) or stop")
	controlFlags(cmd, &o.order, runHere)
	return cmd
}

func (a *app) limit(ctx context.Context, address string, o limitOptions) error {
	s, err := a.open(ctx, false)
	if err != nil {
		return err
	}
	defer s.store.Close()
	row, _, err := view.Find(ctx, s.store, address, time.Now())
	if err != nil {
		return err
	}
	lim := row.Session.Limits
	if err := o.change(&lim); err != nil {
		return err
	}
	if lim == row.Session.Limits {
		return usage(fmt.Errorf("no limit changes; give --wall, --idle, --deadline, --loops, --steps, --tokens, --cost or --on-limit"))
	}
	o.command.Limits = &lim
	return a.give(ctx, s, &row, o.order)
}

func (o *limitOptions) change(lim *stint.Limits) error {
	for _, f := range []struct {
		name, value string
		set         func(string) error
	}{
		{"wall", o.wall, func(v string) error { return setDuration(&lim.Wall, v) }},
		{"idle", o.idle, func(v string) error { return setDuration(&lim.Idle, v) }},
		{"deadline", o.deadline, func(v string) error { return setDeadline(&lim.Deadline, v) }},
		{"loops", o.loops, func(v string) error { return setCount(&lim.Loops, v) }},
		{"steps", o.steps, func(v string) error { return setCount(&lim.Steps, v) }},
		{"tokens", o.tokens, func(v string) error { return setCount(&lim.Tokens, v) }},
		{"cost", o.cost, func(v string) error { return setMoney(&lim.Cost, v) }},
		{"on-limit", o.onLimit, func(v string) error { return setOnLimit(&lim.Stop, v) }},
	} {
		if f.value == "" {
			continue
		}
		if err := f.set(f.value); err != nil {
			return usage(fmt.Errorf("--%s %q: %w", f.name, f.value, err))
		}
	}
	return nil
}

func setDuration(to *time.Duration, v string) error {
	if v == "none" {
		*to = 0
		return nil
	}
	more, add := strings.CutPrefix(v, "+")
	d, err := time.ParseDuration(more)
	if err != nil || d <= 0 {
		return fmt.Errorf("a duration like 90m or 2h, +1h to add, or none")
	}
	if add {
		if d += *to; d < 0 {
			return fmt.Errorf("more than a duration can be")
		}
	}
	*to = d
	return nil
}

func setDeadline(to *time.Time, v string) error {
	if v == "none" {
		*to = time.Time{}
		return nil
	}
	t, err := time.Parse(time.RFC3339, v)
	if err != nil {
		more, add := strings.CutPrefix(v, "+")
		d, derr := time.ParseDuration(more)
		if derr != nil || d <= 0 {
			return fmt.Errorf("a duration from now like 2h, +1h to add, an RFC 3339 time, or none")
		}
		if t = time.Now().Add(d); add && !to.IsZero() {
			t = to.Add(d)
		}
	}
	*to = t.UTC().Truncate(time.Microsecond)
	return nil
}

func setCount[N int | int64](to *N, v string) error {
	if v == "none" {
		*to = 0
		return nil
	}
	more, add := strings.CutPrefix(v, "+")
	n, err := strconv.Atoi(more)
	if err != nil || n <= 0 || add && n > math.MaxInt-int(*to) {
		return fmt.Errorf("a number above zero, +20 to add, or none")
	}
	if add {
		n += int(*to)
	}
	*to = N(n)
	return nil
}

func setMoney(to *stint.Money, v string) error {
	if v == "none" {
		*to = 0
		return nil
	}
	more, add := strings.CutPrefix(v, "+")
	var m stint.Money
	if m.UnmarshalText([]byte(more)) != nil || m <= 0 || add && m > math.MaxInt64-*to {
		return fmt.Errorf("an amount of dollars like 5 or 0.25, +2.50 to add, or none")
	}
	if add {
		m += *to
	}
	*to = m
	return nil
}

func setOnLimit(to *bool, v string) error {
	if v != "wait" && v != "stop" {
		return fmt.Errorf("wait or stop")
	}
	*to = v == "stop"
	return nil
}
