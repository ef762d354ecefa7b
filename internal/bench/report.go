package bench

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/stint-dev/stint"
)

// Check is one target and what was measured.
type Check struct {
	Check   string  `json:"check"`
	Got     float64 `json:"got"` // of the medians
	Low     float64 `json:"low"` // of the rounds, each by itself
	High    float64 `json:"high"`
	Want    float64 `json:"want"`
	AtLeast bool    `json:"at_least"` // want is the least that passes; else the most
	Unit    string  `json:"unit"`
	Pass    bool    `json:"pass"`
}

// Who the lines of a report are of. Any other name is an engine that stint is
// compared with.
const (
	whoFloor = "floor"
	whoStint = "stint"
	whoOnce  = "stint-once"
)

// line is one line of throughput, whoever wrote it.
type line struct {
	Who         string  `json:"who"`
	Round       int     `json:"round"`
	Load        float64 `json:"load"`
	Concurrency int     `json:"concurrency"`
	Conc        int     `json:"conc"` // as the harness of the others calls it
	StepsPerS   float64 `json:"steps_per_s"`
	StepsS      float64 `json:"steps_s"`
	P50         float64 `json:"step_p50_us"`
	P99         float64 `json:"step_p99_us"`
	CPU         float64 `json:"cpu_us_per_step"`
	RSS         float64 `json:"rss_mb"`
	Error       string  `json:"error"`
}

// records is what a report is made of.
type records struct {
	lines   []line
	latency []Latency
	recover []Recovery
	waiters []Waiters
	cold    []Cold
	growth  []Growth
}

// Report reads JSON lines of measurements, each with who it is of, and writes
// medians and how they stand to the targets; with asJSON a line of JSON for each
// target. A line that is no such measurement is [stint.Invalid].
func Report(in io.Reader, out io.Writer, asJSON bool) error {
	var r records
	sc := bufio.NewScanner(in)
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		if len(strings.TrimSpace(sc.Text())) == 0 {
			continue
		}
		if err := r.add(sc.Bytes()); err != nil {
			return stint.Invalid.Errorf("bench", "%q is no measurement: %w", sc.Text(), err)
		}
	}
	if err := sc.Err(); err != nil {
		return &stint.Error{Code: stint.Invalid, Op: "bench", Err: err}
	}
	checks := r.checks()
	if asJSON {
		enc := json.NewEncoder(out)
		for _, c := range checks {
			if err := enc.Encode(c); err != nil {
				return err
			}
		}
		return nil
	}
	var b strings.Builder
	r.tables(&b)
	writeChecks(&b, checks)
	_, err := io.WriteString(out, b.String())
	return err
}

func (r *records) add(b []byte) error {
	var l line
	if err := json.Unmarshal(b, &l); err != nil {
		return err
	}
	switch l.Who {
	case "":
		return nil // a target of an earlier report
	case "latency":
		return addTo(&r.latency, b)
	case "recover":
		return addTo(&r.recover, b)
	case "waiters":
		return addTo(&r.waiters, b)
	case "cold":
		return addTo(&r.cold, b)
	case "growth":
		return addTo(&r.growth, b)
	}
	if l.Concurrency = max(l.Concurrency, l.Conc); l.Concurrency < 1 {
		return fmt.Errorf("%s at no concurrency", l.Who)
	}
	l.StepsPerS = max(l.StepsPerS, l.StepsS)
	r.lines = append(r.lines, l)
	return nil
}

func addTo[T any](all *[]T, b []byte) error {
	var v T
	err := json.Unmarshal(b, &v)
	*all = append(*all, v)
	return err
}

// of returns what the lines of one engine say at one concurrency, by round.
func (r *records) of(who string, conc int, what func(line) float64) map[int]float64 {
	out := map[int]float64{}
	for _, l := range r.lines {
		if l.Who == who && l.Concurrency == conc && l.Error == "" {
			out[l.Round] = what(l)
		}
	}
	return out
}

func rate(l line) float64 { return l.StepsPerS }

func (r *records) rate(who string, conc int) float64 { return middleOf(r.of(who, conc, rate)) }

func middleOf(by map[int]float64) float64 { return median(slices.Collect(maps.Values(by))) }

// levels are the concurrencies, and others the engines that stint is compared with.
func (r *records) levels() (all []int) {
	for _, l := range r.lines {
		if !slices.Contains(all, l.Concurrency) {
			all = append(all, l.Concurrency)
		}
	}
	slices.Sort(all)
	return all
}

func (r *records) others() (all []string) {
	for _, l := range r.lines {
		if l.Who != whoFloor && l.Who != whoStint && l.Who != whoOnce && l.Error == "" && !slices.Contains(all, l.Who) {
			all = append(all, l.Who)
		}
	}
	return all
}

// The targets.
const (
	ofFloor    = 0.75
	overOthers = 6
	many       = 64 // sessions at which the rate must be there
)

func (r *records) checks() []Check {
	var out []Check
	for _, c := range r.levels() {
		if c < many {
			continue
		}
		if r.rate(whoFloor, c) > 0 {
			out = append(out, r.ratio(fmt.Sprintf("%d sessions, of the floor", c), whoStint, whoFloor, c, ofFloor))
		}
		if best := r.best(c); best != "" {
			out = append(out, r.ratio(fmt.Sprintf("%d sessions, over %s", c, best), whoStint, best, c, overOthers))
		}
	}
	out = append(out, each(r.latency, "1 session, an idempotent step over a raw commit", "x", 1.3, func(l Latency) float64 { return l.IdempotentPerRaw })...)
	out = append(out, each(r.latency, "1 session, a once step over a raw commit", "x", 2.5, func(l Latency) float64 { return l.OncePerRaw })...)
	for _, n := range []int{1000, 10_000} {
		of := slices.DeleteFunc(slices.Clone(r.recover), func(v Recovery) bool { return v.Sessions != n })
		out = append(out, each(of, fmt.Sprintf("%d sessions running again after kill -9", n), "ms", map[int]float64{1000: 300, 10_000: 3000}[n], func(v Recovery) float64 { return v.AllMS })...)
	}
	for _, c := range each(r.recover, "steps with a durable result that ran again", "", 0, func(v Recovery) float64 { return float64(v.StepsAgain) }) {
		c.Got, c.Pass = c.High, c.High == 0 // one is too many, whatever the median
		out = append(out, c)
	}
	out = append(out, each(r.waiters, "waiting sessions over an empty store", "MiB", 10, func(w Waiters) float64 { return w.OverMB })...)
	out = append(out, each(r.cold, "cold start", "ms", 50, func(c Cold) float64 { return c.ReadyP50ms })...)
	for _, g := range r.growth {
		name := fmt.Sprintf("%d loops, state +%d a loop, stored over handed in", g.Loops, g.Grow)
		out = append(out, each([]Growth{g}, name, "x", 3, func(g Growth) float64 { return g.Ratio })...)
		name = fmt.Sprintf("%d loops, state +%d a loop, twice as long takes", g.Loops, g.Grow)
		out = append(out, each([]Growth{g}, name, "x", 2.2, func(g Growth) float64 { return g.DoubleRatio })...)
	}
	return out
}

// best is the quickest of the others at one concurrency.
func (r *records) best(conc int) (best string) {
	for _, o := range r.others() {
		if v := r.rate(o, conc); v > 0 && (best == "" || v > r.rate(best, conc)) {
			best = o
		}
	}
	return best
}

// ratio compares the rates of two, at least want of one another.
func (r *records) ratio(name, a, b string, conc int, want float64) Check {
	c := Check{Check: name, Got: r.rate(a, conc) / r.rate(b, conc), Want: want, AtLeast: true, Unit: "x"}
	var rounds []float64
	of := r.of(b, conc, rate)
	for round, v := range r.of(a, conc, rate) {
		if of[round] > 0 {
			rounds = append(rounds, v/of[round])
		}
	}
	if len(rounds) > 0 {
		c.Low, c.High = slices.Min(rounds), slices.Max(rounds)
	}
	c.Pass = c.Got >= want
	return c
}

// each is a check of the median of vs, at most want; none for none.
func each[T any](vs []T, name, unit string, want float64, what func(T) float64) []Check {
	if len(vs) == 0 {
		return nil
	}
	got := make([]float64, len(vs))
	for i, v := range vs {
		got[i] = what(v)
	}
	c := Check{Check: name, Low: slices.Min(got), High: slices.Max(got), Got: median(got), Want: want, Unit: unit}
	c.Pass = c.Got <= want
	return []Check{c}
}

func (r *records) tables(b *strings.Builder) {
	if len(r.lines) == 0 {
		return
	}
	rounds := map[int]bool{}
	var loads []float64
	for _, l := range r.lines {
		rounds[l.Round] = true
		loads = append(loads, l.Load)
	}
	fmt.Fprintf(b, "Durable steps/s, medians of %d rounds; load average %.1f to %.1f\n\n", len(rounds), slices.Min(loads), slices.Max(loads))
	who := append([]string{whoFloor, whoStint, whoOnce}, r.others()...)
	fmt.Fprintf(b, "%8s", "sessions")
	for _, w := range who {
		fmt.Fprintf(b, " %20s", w)
	}
	for _, c := range r.levels() {
		fmt.Fprintf(b, "\n%8d", c)
		for _, w := range who {
			if v := r.rate(w, c); v > 0 {
				fmt.Fprintf(b, " %20.0f", v)
			} else {
				fmt.Fprintf(b, " %20s", "-")
			}
		}
	}
	fmt.Fprintf(b, "\n\n%-20s %8s %9s %9s %12s %8s\n", "", "sessions", "p50 µs", "p99 µs", "cpu µs/step", "rss MiB")
	for _, w := range who {
		for _, c := range r.levels() {
			if r.rate(w, c) == 0 {
				continue
			}
			at := func(what func(line) float64) string {
				if v := middleOf(r.of(w, c, what)); v > 0 {
					return fmt.Sprintf("%.0f", v)
				}
				return "-"
			}
			fmt.Fprintf(b, "%-20s %8d %9s %9s %12s %8s\n", w, c, at(func(l line) float64 { return l.P50 }), at(func(l line) float64 { return l.P99 }),
				at(func(l line) float64 { return l.CPU }), at(func(l line) float64 { return l.RSS }))
		}
	}
	b.WriteByte('\n')
}

func writeChecks(b *strings.Builder, checks []Check) {
	fmt.Fprintf(b, "%-58s %9s %9s %9s %9s  %s\n", "Required", "target", "measured", "low", "high", "")
	for _, c := range checks {
		sign, verdict := "≤", "miss"
		if c.AtLeast {
			sign = "≥"
		}
		if c.Pass {
			verdict = "pass"
		}
		fmt.Fprintf(b, "%-58s %9s %9.2f %9.2f %9.2f  %s\n", c.Check, fmt.Sprintf("%s %g%s", sign, c.Want, unit(c.Unit)), c.Got, c.Low, c.High, verdict)
	}
}

// unit stands behind a number: apart from it, if it is a word.
func unit(u string) string {
	if len(u) > 1 {
		return " " + u
	}
	return u
}

func ms(d time.Duration) float64 { return d.Seconds() * 1e3 }

// median of vs, which it sorts; 0 for none.
func median(vs []float64) float64 {
	if len(vs) == 0 {
		return 0
	}
	slices.Sort(vs)
	return vs[(len(vs)-1)/2]
}

// spread is the median and the greatest of vs.
func spread(vs []float64) (mid, most float64) {
	return median(vs), slices.Max(vs)
}
