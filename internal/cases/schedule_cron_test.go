package cases_test

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stint-dev/stint/internal/config"
	"github.com/stint-dev/stint/internal/trigger"
)

// csvRows are the rows of a file of the cases of schedules, without its heading.
func csvRows(t *testing.T, name string) [][]string {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", "schedule", name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all, err := csv.NewReader(f).ReadAll()
	if err != nil || len(all) < 10 {
		t.Fatalf("%s has %d rows: %v", name, len(all), err)
	}
	return all[1:]
}

// newSite is a folder without anything in it.
func newSite(t *testing.T) *site { return &site{t: t, dir: t.TempDir()} }

// nominal is an expression, the instant from which it is looked at, and its next times.
type nominal struct {
	expr, zone string
	from       time.Time
	want       []time.Time
}

// nominals are the rows of one case.
func nominals(t *testing.T, which string) (all []nominal) {
	t.Helper()
	instant := func(text string) time.Time {
		at, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
	for _, row := range csvRows(t, "cron-next.csv") {
		if row[0] != which {
			continue
		}
		n := nominal{expr: row[1], zone: row[2], from: instant(row[3])}
		for _, text := range strings.Fields(row[5]) { // the rule of docs/schedules.md: at the end of a gap
			n.want = append(n.want, instant(text))
		}
		all = append(all, n)
	}
	if len(all) == 0 {
		t.Fatalf("there are no rows of %s", which)
	}
	return all
}

// fires checks that a preview of the real program prints these times, and that a server
// that comes up right before each of them makes a session of it and of no other.
func fires(t *testing.T, all []nominal) {
	t.Helper()
	s := newSite(t)
	for _, n := range all {
		var got []time.Time
		out := s.must("schedule", "next", "--cron", n.expr, "--tz", n.zone, "--from", n.from.Format(time.RFC3339), "-n", strconv.Itoa(len(n.want)), "--json")
		if err := json.Unmarshal([]byte(out), &got); err != nil {
			t.Fatal(err)
		}
		if fmt.Sprint(got) != fmt.Sprint(n.want) {
			t.Errorf("%q in %s: the preview has %v, want %v", n.expr, n.zone, got, n.want)
		}
	}
	for _, n := range all {
		served(t, func(_ *testing.T, r *rota) { r.firesAt(&n) })
	}
}

// firesAt has servers come and go so that one is there at each time of n.
func (r *rota) firesAt(n *nominal) {
	r.t.Helper()
	sc := r.schedule("s", n.expr, n.zone)
	r.pass(time.Until(n.from))
	for i, due := range n.want {
		r.up(sc)
		r.down()
		if d := time.Until(due) - 10*time.Second; d > 0 {
			r.pass(d)
		}
		r.up(sc)
		r.pass(15 * time.Second)
		r.down()
		ledger := r.ledger("s")
		if len(ledger) == 0 || lineOf(&ledger[0]) != "ran "+due.UTC().Format("02T15:04:05") || !ledger[0].To.Equal(due) {
			r.t.Fatalf("at %v the ledger has %s", due, linesOf(ledger))
		}
		if len(ledger) != i+1 {
			r.eras["s"][0].since = due.Add(-1) // the line before it was of so long ago that it is forgotten
		}
	}
}

// TestA01NightsOfTheClock: a daily time that the clock shows twice fires once, one that it
// leaves out fires at the end of the gap, and others stay where they are
// (use-agent-os/agent-os#2472, librefang/librefang#3831, robfig/cron#541,
// temporalio/temporal#8205, vatesfr/xen-orchestra#4024).
func TestA01NightsOfTheClock(t *testing.T) { fires(t, nominals(t, "A01")) }

// TestA02FromWithinTheGap: asked on the morning of a gap, the next time is at most 25 hours
// away (node-cron/node-cron#518).
func TestA02FromWithinTheGap(t *testing.T) {
	all := nominals(t, "A02")
	fires(t, all)
	times, err := trigger.Timing{Cron: all[0].expr, Zone: all[0].zone}.Times()
	if err != nil {
		t.Fatal(err)
	}
	for at := all[0].from.Add(-48 * time.Hour); at.Before(all[0].from.Add(48 * time.Hour)); at = at.Add(time.Minute) {
		if next, ok := times.Next(at); !ok || next.Sub(at) > 25*time.Hour {
			t.Fatalf("after %v comes %v", at, next)
		}
	}
}

// TestA03FarFromTheGap: on the day of a gap what is due far away from it fires
// (dragonmantank/cron-expression#202, cronie-crond/cronie#218, jmettraux/rufus-scheduler#114).
func TestA03FarFromTheGap(t *testing.T) { fires(t, nominals(t, "A03")) }

// TestA04Intervals: each quarter of an hour is one of real time, on every night
// (robfig/cron#541).
func TestA04Intervals(t *testing.T) {
	all := nominals(t, "A04")
	fires(t, all)
	for _, n := range all {
		for i := range n.want[1:] {
			if d := n.want[i+1].Sub(n.want[i]); d != 15*time.Minute {
				t.Errorf("%v and %v are %v apart", n.want[i], n.want[i+1], d)
			}
		}
	}
}

// TestA05RareDates: rare dates come, and if both the date and the weekday are said, a day
// that fits either is one, but for a field that begins with *: what the preview shows is
// what fires (go-co-op/gocron#765, atifaziz/NCrontab#106, staticlibs/ccronexpr#5,
// harrisiirak/cron-parser#410, robfig/cron#527).
func TestA05RareDates(t *testing.T) {
	all := nominals(t, "A05")
	day := func(month time.Month, day int) time.Time { return time.Date(2026, month, day, 0, 0, 0, 0, time.UTC) }
	odd := nominal{"0 0 */2 * 3", "UTC", day(1, 1), []time.Time{day(1, 7), day(1, 21), day(2, 11)}}
	fires(t, append(all, odd))
}

// TestA06Refused: what is wrong in an expression is refused when it is written, with the
// field and its value; a date that never comes is too (floraison/fugit#10,
// systemd-cron/systemd-cron#49, harrisiirak/cron-parser#151).
func TestA06Refused(t *testing.T) {
	s := newSite(t)
	names := map[string]string{ // what the message has to name
		"0 0 31 2 *": "31", "0 0 30 2 *": "30", "0 0 32 * *": "day-of-month", "*/0 * * * *": "minute", "0 2 1 0 *": "month", "60 * * * *": "minute", "0 24 * * *": "hour",
		"* * * *": "4", "": "there is none",
	}
	var yaml strings.Builder
	yaml.WriteString("agents:\n  a: {kind: exec, protocol: none, command: [echo]}\nschedules:\n")
	refused := 0
	for i, row := range csvRows(t, "cron-valid.csv") {
		expr, verdict := row[1], row[2]
		fmt.Fprintf(&yaml, "  s%d: {agent: a, zone: UTC, cron: %q}\n", i, expr)
		valid := strings.HasPrefix(verdict, "valid") || strings.HasSuffix(verdict, "or documented") // the page has L and @daily
		code := 2
		if valid {
			code = 0
		}
		u := s.start("schedule", "next", "--tz", "UTC", "--cron", expr)
		u.ends(code)
		if !valid {
			refused++
			if talk := u.talk.String(); names[expr] == "" || !strings.Contains(talk, names[expr]) || strings.Contains(talk, "panic") {
				t.Errorf("%q: it does not name %q: %s", expr, names[expr], talk)
			}
		}
	}
	s.write("stint.yaml", yaml.String())
	u := s.start("agent", "validate")
	u.ends(2)
	if n := strings.Count(u.out.String()+u.talk.String(), ".cron"); n < refused || refused != len(names) {
		t.Errorf("%d of %d mistakes are told of\n%s", n, refused, u)
	}
}

// TestA11Crontab: a user's crontab means to stint what it means to cron: percent signs,
// zones for the lines below them, short forms, a last line without an end; and no command
// is cut (systemd-cron/systemd-cron#146, javan/whenever#200, cronie-crond/cronie#195).
func TestA11Crontab(t *testing.T) {
	s := newSite(t)
	text, err := os.ReadFile(filepath.Join("testdata", "schedule", "crontab-user.txt"))
	if err != nil {
		t.Fatal(err)
	}
	s.write("crontab", string(text))
	u := s.start("schedule", "import", "crontab")
	f, err := config.Parse("stint.yaml", []byte(u.ends(0)))
	if err != nil {
		t.Fatalf("%v\n%s", err, u)
	}
	if talk := u.talk.String(); !strings.Contains(talk, "MAILTO") {
		t.Errorf("nothing is said of MAILTO: %s", talk)
	}
	var want struct {
		Jobs []struct {
			Expr, Command string
			TZ            *string
		}
	}
	b, err := os.ReadFile(filepath.Join("testdata", "schedule", "crontab-user.expected.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &want); err != nil {
		t.Fatal(err)
	}
	if len(want.Jobs) != 5 || len(f.Schedules) != len(want.Jobs) {
		t.Fatalf("%d schedules of %d jobs\n%s", len(f.Schedules), len(want.Jobs), u)
	}
	got := map[string]bool{}
	for name, sc := range f.Schedules {
		command := f.Agents[sc.Agent].Command
		line := strings.Join(command, " ")
		if len(command) == 3 && command[1] == "-c" {
			line = command[2]
		}
		got[sc.Cron+"|"+sc.Zone+"|"+line] = true
		if sc.Overlap != "allow" || sc.Window != 0 {
			t.Errorf("%s is not as cron has it: %+v", name, sc)
		}
	}
	for _, j := range want.Jobs {
		zone := "UTC"
		if j.TZ != nil {
			zone = *j.TZ
		}
		if key := j.Expr + "|" + zone + "|" + j.Command; !got[key] {
			t.Errorf("there is no %s in %v", key, got)
		}
	}
}

// TestA13OneZone: where a server, a preview and a list run does not matter, and each says
// which zone it speaks of; a one-time schedule of the past is over, and said to be
// (grandamenium/cortextos#589, ohdearquant/lionagi#1611).
func TestA13OneZone(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	past := time.Now().Add(-5 * time.Minute).UTC().Format(time.RFC3339)
	s.write("stint.yaml", "agents:\n  a: {kind: exec, protocol: none, command: [echo]}\nschedules:\n  brief: {agent: a, cron: 0 14 * * *}\n")
	if u := s.start("agent", "validate"); !strings.Contains(u.ends(2)+u.talk.String(), "zone") {
		t.Errorf("a schedule without a zone: %s", u)
	}
	s.write("stint.yaml", "agents:\n  a: {kind: exec, protocol: none, command: [echo]}\nschedules:\n  brief: {agent: a, cron: 0 14 * * *, zone: UTC}\n  gone: {agent: a, at: "+past+"}\n")
	s.env = []string{"TZ=Asia/Tokyo"}
	server := s.start("serve", "--addr", "127.0.0.1:0")
	s.env = []string{"TZ=America/Chicago"}
	type item struct {
		Name, Status string
		Next         []time.Time
		Last         *struct{}
	}
	var list struct{ Items []item }
	await(t, "schedule that is served", func() bool {
		out := s.gives(-1, "schedule", "ls", "--json")
		return json.Unmarshal([]byte(out), &list) == nil && len(list.Items) == 2 && list.Items[0].Status == "on" && list.Items[1].Status != "not served yet"
	})
	if gone := list.Items[1]; gone.Name != "gone" || gone.Status != "over" || gone.Last != nil || len(gone.Next) > 0 {
		t.Errorf("the one of the past is %+v", gone)
	}
	var next []time.Time
	if err := json.Unmarshal([]byte(s.must("schedule", "next", "--cron", "0 14 * * *", "-n", "2", "--json")), &next); err != nil {
		t.Fatal(err)
	}
	if at := list.Items[0].Next[0]; !(at.Equal(next[0]) || at.Equal(next[1])) || at.UTC().Hour() != 14 { // it may be two o'clock right now
		t.Errorf("the list has %v, the preview %v", at, next)
	}
	if out := s.must("schedule", "next", "--cron", "0 14 * * *"); !strings.Contains(out, "The time zone is UTC, as none was given") || !strings.Contains(out, "14:00:00 UTC") {
		t.Errorf("the preview does not name its zone\n%s", out)
	}
	if server.ended() {
		t.Fatalf("the server ended: %s", server)
	}
}
