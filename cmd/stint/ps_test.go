package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/internal/view"
	"github.com/stint-dev/stint/store/sqlite"
)

// desk is a store with sessions, and a person who looks at them with stint.
type desk struct {
	t     *testing.T
	dir   string
	store *sqlite.Store
	e     *engine.Engine
	env   map[string]string // beside what the desk needs

	damaged bool // the test damages its store
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	d := &desk{t: t, dir: t.TempDir()}
	var err error
	if d.store, err = sqlite.Open(t.Context(), sqlite.Options{Path: d.path()}); err != nil {
		t.Fatal(err)
	}
	if d.e, err = engine.New(context.Background(), d.store, engine.Options{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_, err := d.store.Verify(context.Background(), stint.ID{}, func(f sqlite.Flaw) { // what commands write is what a store knows
			if !d.damaged {
				t.Errorf("the store is left with a flaw: %+v", f)
			}
		})
		if err := errors.Join(err, d.e.Close(), d.store.Close()); err != nil && !d.damaged {
			t.Error(err)
		}
	})
	return d
}

// short is the short id of a session.
func (d *desk) short(name string) string {
	d.t.Helper()
	return strings.TrimSpace(d.ok("show", name, "--field", "short"))
}

func (d *desk) path() string { return filepath.Join(d.dir, "stint.db") }

// run drives a new session until it parks or ends.
func (d *desk) run(name string, fn stint.AgentFunc) stint.Row {
	d.t.Helper()
	s, err := d.e.RunNew(d.t.Context(), engine.Request{Agent: engine.Agent{Name: "triage", Loop: fn}, Name: name, Actor: "human:ana", Input: []byte("close what is stale")}, func(engine.Created) {})
	if err != nil {
		d.t.Fatal(err)
	}
	return d.row(s.ID)
}

func (d *desk) row(id stint.ID) stint.Row {
	d.t.Helper()
	row, err := d.store.Session(d.t.Context(), id)
	if err != nil {
		d.t.Fatal(err)
	}
	return row
}

// stint calls the program as in a shell.
func (d *desk) stint(args ...string) (code int, out, talk string) {
	d.t.Helper()
	var o, e buffer
	code = d.stintTo(d.t.Context(), &o, &e, args...)
	return code, o.String(), e.String()
}

func (d *desk) stintTo(ctx context.Context, out, talk *buffer, args ...string) int {
	return d.app(out, talk).run(ctx, args)
}

// app is the program in the desk's folder, with its store.
func (d *desk) app(out, talk *buffer) *app {
	env := map[string]string{"STINT_STORE": "sqlite:" + d.path()}
	maps.Copy(env, d.env)
	return &app{in: strings.NewReader(""), out: out, err: talk, getenv: func(k string) string { return env[k] }, getwd: func() (string, error) { return d.dir, nil }}
}

// ok calls the program, which must end well, and returns what it printed.
func (d *desk) ok(args ...string) string {
	d.t.Helper()
	code, out, talk := d.stint(args...)
	if code != 0 {
		d.t.Fatalf("stint %s: exit status %d\n%s", strings.Join(args, " "), code, talk)
	}
	return out
}

// fails calls the program, which must exit with code and say what.
func (d *desk) fails(code int, what string, args ...string) {
	d.t.Helper()
	got, out, talk := d.stint(args...)
	if got != code || !strings.Contains(talk, what) {
		d.t.Errorf("stint %s: exit status %d, want %d with %q\n%s%s", strings.Join(args, " "), got, code, what, out, talk)
	}
}

// buffer is one that can be read while it is written.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// until waits until the buffer holds text.
func (b *buffer) until(t *testing.T, text string) {
	t.Helper()
	if !holds(b, text, time.After(time.Minute)) {
		t.Fatalf("%q does not come:\n%s", text, b.String())
	}
}

// holds reports whether the buffer gets to hold text before over.
func holds[T any](b *buffer, text string, over <-chan T) bool {
	for !strings.Contains(b.String(), text) {
		select {
		case <-over:
			return strings.Contains(b.String(), text)
		case <-time.After(5 * time.Millisecond):
		}
	}
	return true
}

// The agents of these tests.

func works(_ context.Context, l stint.Loop) (stint.Next, error) {
	n := l.Session().At.Loop
	if r, ok := l.(stint.Reporter); ok {
		r.Log("stdout", []byte("loop done\n\x1b[31mred\x1b[0m\n"))
	}
	next := stint.Next{State: json.RawMessage(`{"n":` + string(rune('0'+n)) + `}`), Headline: "closed one"}
	if n == 3 {
		next.End = &stint.End{Reason: "nothing left", Result: json.RawMessage(`{"closed":3}`)}
	}
	return next, nil
}

func doubts(ctx context.Context, l stint.Loop) (stint.Next, error) {
	_, err := stint.Do(ctx, l, stint.Step{Name: "pay", Effect: stint.Once}, func(context.Context, string) (int, error) { return 0, errors.New("connection reset") })
	return stint.Next{}, err
}

func breaks(context.Context, stint.Loop) (stint.Next, error) {
	return stint.Next{}, stint.Fail(errors.New("no such repository"))
}

func sleeps(context.Context, stint.Loop) (stint.Next, error) {
	return stint.Next{Wait: &stint.Wait{For: stint.ForMessage, What: "what next?"}}, nil
}

func TestPs(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.run("done-1", works)
	pay := d.run("pay-1", doubts)
	bad := d.run("bad-1", breaks)
	chat := d.run("chat-1", sleeps)

	out := d.ok("ps")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) != 3 || !strings.HasPrefix(lines[0], "SESSION") || !strings.HasPrefix(lines[1], "pay-1") || !strings.HasPrefix(lines[2], "chat-1") {
		t.Errorf("stint ps prints\n%s", out)
	}
	if !strings.Contains(lines[1], "waiting:doubt") || !strings.Contains(lines[1], pay.Short) || !strings.Contains(lines[1], "pay: did it happen?") {
		t.Errorf("the session in doubt is shown as\n%s", lines[1])
	}
	for args, want := range map[string][]string{
		"ps -o name":                               {"pay-1", "chat-1"},
		"ps -a -o name --sort name":                {"bad-1", "chat-1", "done-1", "pay-1"},
		"ps --bad -o name --sort age":              {"bad-1", "pay-1"},
		"ps -q --status waiting --sort age":        {chat.Session.ID.String(), pay.Session.ID.String()},
		"ps -q -a -n 1":                            {chat.Session.ID.String()},
		"ps -q -a -n 1 --after " + idOf(chat):      {bad.Session.ID.String()},
		"ps -o name --status failed":               {"bad-1"},
		"ps -o name -a --agent nobody":             {""},
		"ps -o name -a -l team=x":                  {""},
		"ps -o name --since 1h --sort name":        {"chat-1", "pay-1"},
		"ps -o name --since 2020-01-01 --sort age": {"chat-1", "pay-1"},
	} {
		if got := strings.Split(strings.TrimSpace(d.ok(strings.Fields(args)...)), "\n"); !slices.Equal(got, want) {
			t.Errorf("stint %s prints %q, want %q", args, got, want)
		}
	}
	var list view.List
	if err := json.Unmarshal([]byte(d.ok("ps", "-a", "--json")), &list); err != nil || list.Schema != view.SchemaList || len(list.Items) != 4 || list.Cursor != nil {
		t.Errorf("the list as JSON: %v %+v", err, list)
	}
	if got := strings.Count(d.ok("ps", "-a", "-o", "jsonl"), `"schema":"stint.session/1"`); got != 4 {
		t.Errorf("%d JSON lines, want 4", got)
	}
	for _, args := range []string{"ps x", "ps -o xml", "ps --sort size", "ps --status busy", "ps -l team", "ps -n -1", "ps --since soon", "ps --after 12"} {
		d.fails(exitInvalid, "stint:", strings.Fields(args)...)
	}
}

func idOf(row stint.Row) string { return row.Session.ID.String() }

func TestPsWatch(t *testing.T) {
	d := newDesk(t)
	d.run("pay-1", doubts)
	ctx, cancel := context.WithCancel(t.Context())
	var out, talk buffer
	code := make(chan int)
	go func() { code <- d.stintTo(ctx, &out, &talk, "ps", "-w=100ms", "--json") }()
	out.until(t, "\n")
	d.run("pay-2", doubts)
	out.until(t, "pay-2")
	cancel()
	if got := <-code; got != exitInterrupted {
		t.Errorf("exit status %d\n%s", got, talk.String())
	}
	for line := range strings.Lines(out.String()) {
		var list view.List
		if err := json.Unmarshal([]byte(line), &list); err != nil || list.Schema != view.SchemaList {
			t.Errorf("a line is no list: %v\n%s", err, line)
		}
	}
}

func TestNoStore(t *testing.T) {
	d := newDesk(t)
	for _, args := range []string{"ps", "show x", "logs x", "wait x", "verify x", "export x"} {
		d.fails(exitUnavailable, "there is no store", append(strings.Fields(args), "--store", "sqlite:"+filepath.Join(d.dir, "none.db"))...)
	}
	d.fails(exitNotFound, "there is no session", "show", "x")
}

func TestParseWhen(t *testing.T) {
	now := time.Date(2026, 11, 29, 16, 10, 42, 0, time.FixedZone("CET", 3600))
	for in, want := range map[string]string{
		"24h": "2026-11-28T16:10:42+01:00", "-90m": "2026-11-29T14:40:42+01:00", "06:00": "2026-11-29T06:00:00+01:00", "16:11": "2026-11-28T16:11:00+01:00",
		"today": "2026-11-29T00:00:00+01:00", "yesterday": "2026-11-28T00:00:00+01:00", "2026-11-01": "2026-11-01T00:00:00+01:00", "now": "2026-11-29T16:10:42+01:00",
		"2026-11-01 08:30": "2026-11-01T08:30:00+01:00", "2026-11-01T08:30:00Z": "2026-11-01T08:30:00Z", "16:10:41": "2026-11-29T16:10:41+01:00",
		"7d": "2026-11-22T16:10:42+01:00", "-1d": "2026-11-28T16:10:42+01:00",
	} {
		if got, err := parseWhen(in, now); err != nil || got.Format(time.RFC3339) != want {
			t.Errorf("parseWhen(%q) = %v, %v, want %s", in, got.Format(time.RFC3339), err, want)
		}
	}
	for _, in := range []string{"", "soon", "25:00", "2026-13-01", "d", "x7d", "9999999d"} {
		if _, err := parseWhen(in, now); stint.CodeOf(err) != stint.Invalid {
			t.Errorf("parseWhen(%q): %v, want invalid", in, err)
		}
	}
}
