package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/stint-dev/stint/cron"
	"github.com/stint-dev/stint/internal/trigger"
	"github.com/stint-dev/stint/internal/view"
)

func (a *app) scheduleCommand() *cobra.Command {
	return group(&cobra.Command{Use: "schedule", Short: "See schedules, pause and fire them, and show when one would fire"},
		append(a.scheduleOrderCommands(), a.scheduleListCommand(), a.scheduleHistoryCommand(), a.scheduleNextCommand(), a.scheduleBackfillCommand(), a.scheduleImportCommand())...)
}

// nextOptions are the flags of stint schedule next.
type nextOptions struct {
	expr, zone, from, anchor string
	seconds                  bool
	count                    int
}

// maxNext bounds how many times are printed.
const maxNext = 1000

func (a *app) scheduleNextCommand() *cobra.Command {
	var o nextOptions
	cmd := &cobra.Command{
		Use: "next NAME | next --cron EXPR", Short: "Print the next times of a schedule or a cron expression, and start nothing",
		ValidArgsFunction: a.completeSchedules,
		Long: `Print the next times of a schedule, or of a cron expression, and start nothing. What is
printed is what fires, but for jitter and conditions. An expression has five fields:
minute, hour, day of month, month, day of week; or @hourly, @daily, @weekly, @monthly,
@yearly, or @every with a length like 90m. A time that the clock skips in spring fires
once, right after the gap; of an hour that it repeats in autumn, the first counts.`,
		Example: `  stint schedule next nightly
  stint schedule next --cron '0 6 * * MON-FRI' --tz Europe/Berlin
  stint schedule next --cron '0 0 L * *' --tz UTC -n 12
  stint schedule next --cron '30 2 * * *' --tz America/New_York --from 2026-03-07T00:00:00-05:00 --json
  stint schedule next --cron '*/10 * * * * *' --seconds
  stint schedule next --cron '@every 36h' --anchor 2026-11-30T08:00:00Z`,
		RunE: func(cmd *cobra.Command, args []string) error { return a.scheduleNext(cmd, args, &o) },
	}
	f := cmd.Flags()
	f.StringVar(&o.expr, "cron", "", "the expression")
	f.StringVar(&o.zone, "tz", "", "the time zone, like Europe/Berlin (default: UTC)")
	f.StringVar(&o.from, "from", "", "list what comes after this time: RFC 3339, or a date or \"2026-11-28 06:00\" in the zone (default: now)")
	f.IntVarP(&o.count, "count", "n", 5, "how many times")
	f.BoolVar(&o.seconds, "seconds", false, "the expression has six fields, seconds first")
	f.StringVar(&o.anchor, "anchor", "", "the time that @every is counted from (default: 1970-01-01T00:00:00Z)")
	return cmd
}

func (a *app) scheduleNext(cmd *cobra.Command, args []string, o *nextOptions) error {
	named := cmd.Flags().Changed("cron")
	if len(args) > 1 || (len(args) == 1) == named {
		return misused(cmd, "%s takes the name of a schedule, or --cron EXPR", cmd.CommandPath())
	}
	if o.count < 1 || o.count > maxNext {
		return usage(fmt.Errorf("--count is from 1 to %d, not %d", maxNext, o.count))
	}
	zoned := cmd.Flags().Changed("tz")
	if !named {
		return a.nextOfSchedule(cmd, args[0], o)
	}
	s, err := o.expression(zoned)
	if err != nil {
		return err
	}
	from := time.Now()
	if o.from != "" {
		if from, err = parseInZone(o.from, s.Zone()); err != nil {
			return usage(fmt.Errorf("--from %q: a time like 2026-11-28T06:00:00Z, or a date or \"2026-11-28 06:00\" in the zone", o.from))
		}
	}
	return a.printNext(s, s.Describe(), s.Zone(), from, o.count, zoned)
}

// expression reads the expression that the flags give.
func (o *nextOptions) expression(zoned bool) (*cron.Schedule, error) {
	options := cron.Options{Zone: o.zone, Seconds: o.seconds}
	if !zoned {
		options.Zone = "UTC"
	}
	if o.anchor != "" {
		at, err := time.Parse(time.RFC3339, o.anchor)
		if err != nil {
			return nil, usage(fmt.Errorf("--anchor %q: a time like 2026-11-28T06:00:00Z", o.anchor))
		}
		options.Anchor = at
	}
	return cron.Parse(o.expr, options)
}

// nextOfSchedule prints the next times of a schedule of the stint.yaml here or of the store.
func (a *app) nextOfSchedule(cmd *cobra.Command, name string, o *nextOptions) error {
	for _, flag := range []string{"tz", "seconds", "anchor"} {
		if cmd.Flags().Changed(flag) {
			return misused(cmd, "--%s is for --cron; a schedule says that itself", flag)
		}
	}
	timing, err := a.timing(cmd.Context(), name)
	if err != nil {
		return err
	}
	times, err := timing.Times()
	if err != nil {
		return err
	}
	zone := time.UTC
	if z, ok := times.(interface{ Zone() *time.Location }); ok {
		zone = z.Zone()
	}
	from := time.Now()
	if o.from != "" {
		if from, err = parseInZone(o.from, zone); err != nil {
			return usage(fmt.Errorf("--from %q: a time like 2026-11-28T06:00:00Z, or a date or \"2026-11-28 06:00\" in the zone", o.from))
		}
	}
	return a.printNext(times, timingWords(timing), zone, from, o.count, true)
}

// timing is when a schedule is due: by the stint.yaml here, else by the store.
func (a *app) timing(ctx context.Context, name string) (trigger.Timing, error) {
	here, err := a.readApplied()
	if err != nil {
		return trigger.Timing{}, err
	}
	if err := here.bad["schedules."+name]; err != nil {
		return trigger.Timing{}, err
	}
	if c, ok := here.file.Schedules[name]; ok {
		return timingOf(&c), nil
	}
	s, err := a.open(ctx, false)
	if err != nil {
		return trigger.Timing{}, err
	}
	defer s.store.Close()
	it, err := a.schedule(ctx, s, name)
	return it.Timing, err
}

// parseInZone reads a time; one without an offset is of the zone.
func parseInZone(text string, zone *time.Location) (at time.Time, err error) {
	for _, layout := range []string{time.RFC3339Nano, time.DateTime, "2006-01-02 15:04", time.DateOnly} {
		if at, err = time.ParseInLocation(layout, text, zone); err == nil {
			return at, nil
		}
	}
	return time.Time{}, err
}

// printNext prints the next n times in their zone; named says that somebody chose it.
func (a *app) printNext(s trigger.Times, words string, zone *time.Location, from time.Time, n int, named bool) error {
	times := make([]string, 0, n)
	var rows [][]string
	for at := from; len(times) < n; {
		next, ok := s.Next(at)
		if !ok {
			break
		}
		utc := next.UTC().Format(time.RFC3339)
		times = append(times, utc)
		rows = append(rows, []string{next.In(zone).Format("Mon 2006-01-02 15:04:05 MST"), utc, away(next.Sub(from))})
		at = next
	}
	if a.json {
		return a.printJSON(times)
	}
	if len(rows) == 0 {
		a.printf("%s\n\nNo time comes after %s.\n", words, from.In(zone).Format(time.DateTime+" MST"))
		return nil
	}
	a.printf("%s\n\n", words)
	if err := view.WriteTable(a.out, a.style(), []string{"LOCAL TIME", "UTC", "IN"}, rows); err != nil {
		return err
	}
	if !named {
		a.printf("\nThe time zone is UTC, as none was given; --tz Europe/Berlin names another.\n")
		return nil
	}
	a.printf("\nThe time zone is %s.\n", zone)
	return nil
}

// away is a length of time in its two greatest units.
func away(d time.Duration) string {
	d = d.Round(time.Second)
	days, hours, minutes := d/(24*time.Hour), d/time.Hour%24, d/time.Minute%60
	switch {
	case days > 0:
		return fmt.Sprintf("%dd%02dh", days, hours)
	case hours > 0:
		return fmt.Sprintf("%dh%02dm", hours, minutes)
	case minutes > 0:
		return fmt.Sprintf("%dm%02ds", minutes, d/time.Second%60)
	}
	return fmt.Sprintf("%ds", d/time.Second)
}
