package main

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stint-dev/stint/internal/bench"
)

// bench calls stint bench without a store of the environment, and returns what it
// printed as JSON.
func benchJSON[T any](d *desk, args ...string) (v T) {
	d.t.Helper()
	if err := json.Unmarshal([]byte(d.ok(append([]string{"bench", "--json"}, args...)...)), &v); err != nil {
		d.t.Fatal(err)
	}
	return v
}

func TestBench(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	store := "sqlite:" + filepath.Join(t.TempDir(), "bench.db")
	rows := benchJSON[[]bench.Row](d, "--store", store, "--concurrency", "1, 3", "--sessions", "4", "--loops", "2")
	if len(rows) != 2 || rows[0].Concurrency != 1 || rows[1].Concurrency != 3 {
		t.Fatalf("%+v", rows)
	}
	for _, r := range rows {
		if r.Sessions != 4 || r.Steps != 24 || r.StepsPerS <= 0 || r.BytesPerSession <= 0 || r.StepP50us <= 0 {
			t.Errorf("%+v", r)
		}
	}
	// The sessions stay, are sound, and are whole.
	if out := d.ok("verify", "--all", "--store", store); !strings.HasPrefix(out, "8 sessions,") || !strings.Contains(out, "all sound") {
		t.Errorf("stint verify prints %s", out)
	}
	if out := d.ok("sql", "--store", store, "--json", "select count(*) n, count(distinct session) s from v_steps where outcome = 'completed'"); !strings.Contains(out, "48") || !strings.Contains(out, "8") {
		t.Errorf("v_steps has %s", out)
	}
	text := d.ok("bench", "--concurrency", "2", "--sessions", "2", "--loops", "1", "--effect", "once", "--grow", "10")
	if lines := strings.Split(strings.TrimSpace(text), "\n"); len(lines) != 2 || !strings.Contains(lines[0], "steps/s") || len(strings.Fields(lines[1])) != 9 {
		t.Errorf("stint bench prints\n%s", text)
	}
	// The store that the environment names is somebody's real one.
	if rows := d.ok("ps", "-a", "-q"); rows != "" {
		t.Errorf("sessions of a benchmark are in the store of the environment: %s", rows)
	}
}

func TestBenchLatencyAndGrowth(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	if l := benchJSON[bench.Latency](d, "latency", "--for", "1ms"); l.RawP50us <= 0 || l.OncePerRaw <= 0 {
		t.Errorf("%+v", l)
	}
	if out := d.ok("bench", "latency", "--for", "1ms"); strings.Count(out, "\n") != 4 || !strings.Contains(out, "once step") {
		t.Errorf("stint bench latency prints\n%s", out)
	}
	loops := "50"
	if long() {
		loops = "500"
	}
	rows := benchJSON[[]bench.Growth](d, "growth", "--loops", loops)
	if len(rows) != 1 || rows[0].Ratio < 1 || rows[0].Ratio > 3 {
		t.Errorf("%+v", rows)
	}
}

func TestBenchList(t *testing.T) {
	d := newDesk(t)
	l := benchJSON[bench.Lists](d, "list", "-n", "300", "--requests", "3")
	if l.Sessions != 300 || len(l.Queries) != len(bench.ListQueries()) {
		t.Errorf("%+v", l)
	}
	for _, q := range l.Queries {
		if q.P95ms < q.P50ms || q.MaxMS < q.P95ms || q.MaxBytes == 0 {
			t.Errorf("%+v", q)
		}
	}
}

func TestBenchRefuses(t *testing.T) {
	d := newDesk(t)
	for _, args := range []string{
		"bench x", "bench --concurrency 0", "bench --concurrency 1,x", "bench --effect twice", "bench --loops 0", "bench --sessions -1", "bench --for 0s",
		"bench latency x", "bench latency --for 0s", "bench recover -n 0", "bench recover --loops -1", "bench waiters -n 0", "bench waiters --for 0s",
		"bench cold -n 0", "bench growth --loops 0", "bench growth --grow -1", "bench growth --store sqlite:x.db", "bench list -n 0", "bench list --requests 0", "bench child", "bench child x",
		"bench --store mysql:x", "bench cold --store x",
	} {
		d.fails(exitInvalid, "stint:", strings.Fields(args)...)
	}
}

// The hidden commands: the other side of a measurement, and the sum of many.
func TestBenchChildAndReport(t *testing.T) {
	var out, talk buffer
	a := &app{in: strings.NewReader(`{"do":"first"}{"do":"measure"}`), out: &out, err: &talk, getenv: func(string) string { return "" }}
	site, err := json.Marshal(map[string]any{"path": filepath.Join(t.TempDir(), "stint.db"), "concurrency": 1})
	if err != nil {
		t.Fatal(err)
	}
	if code := a.run(t.Context(), []string{"bench", "child", string(site)}); code != 0 {
		t.Fatalf("exit status %d\n%s", code, talk.String())
	}
	var said []string
	for dec := json.NewDecoder(strings.NewReader(out.String())); dec.More(); {
		var r struct{ Of string }
		if err := dec.Decode(&r); err != nil {
			t.Fatal(err)
		}
		said = append(said, r.Of)
	}
	if got := strings.Join(said, " "); got != "ready first measure" {
		t.Errorf("the child says %s", got)
	}
	var report bytes.Buffer
	a = &app{in: strings.NewReader(`{"who":"cold","ready_p50_ms":20}`), out: &report, err: &talk, getenv: func(string) string { return "" }}
	if code := a.run(t.Context(), []string{"bench", "report"}); code != 0 || !strings.Contains(report.String(), "pass") {
		t.Errorf("exit status %d\n%s", code, report.String())
	}
}
