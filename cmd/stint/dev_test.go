package main

import (
	"bytes"
	"context"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stint-dev/stint/internal/config"
	"github.com/stint-dev/stint/internal/term"
)

// devs runs stint dev in a folder until it serves.
func devs(t *testing.T, wd string, args ...string) (r *runs, in func(args ...string) (int, string)) {
	t.Helper()
	app := func(out, talk *buffer) *app {
		return &app{in: strings.NewReader(""), out: out, err: talk, getenv: func(string) string { return "" }, getwd: func() (string, error) { return wd, nil }}
	}
	r = &runs{d: &desk{t: t, dir: wd}, code: make(chan int, 1)}
	r.a = app(&r.out, &r.talk)
	go func() {
		r.code <- r.a.run(context.Background(), append([]string{"dev", "--addr", "127.0.0.1:0"}, args...))
	}()
	r.out.until(t, "Ctrl-C ends it.")
	return r, func(args ...string) (int, string) {
		var out, talk buffer
		a := app(&out, &talk)
		a.getwd = func() (string, error) {
			return filepath.Dir(strings.TrimPrefix(strings.SplitN(r.out.String(), "\n", 2)[0], "wrote ")), nil
		}
		return a.run(t.Context(), args), out.String() + talk.String()
	}
}

// In an empty folder there is a server with an example, and everything that is said to be
// worth a try works.
func TestDev(t *testing.T) {
	wd := t.TempDir()
	r, in := devs(t, wd, "new")
	text, err := os.ReadFile(filepath.Join(wd, "new", "stint.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	file, err := config.Parse("stint.yaml", text)
	if err != nil || len(file.Agents) != 1 || file.Schedules["tick"].Agent != "tick" {
		t.Errorf("the example is %+v, %v", file, err)
	}
	tried := 0
	for _, m := range regexp.MustCompile(`(?m)^  (stint|curl) (.*?)  `).FindAllStringSubmatch(r.out.String(), -1) {
		tried++
		if m[1] == "curl" {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, m[2], nil)
			if err != nil {
				t.Fatal(err)
			}
			if code, body := status(t, http.DefaultClient, req); code != http.StatusOK || !strings.Contains(body, `"stint.session.list/1"`) {
				t.Errorf("curl %s: %d, %s", m[2], code, body)
			}
			http.DefaultClient.CloseIdleConnections()
			continue
		}
		words := strings.Fields(m[2])
		if words[0] == "logs" { // when there is one
			continue
		}
		if code, out := in(words...); code != exitOK {
			t.Errorf("stint %s: exit status %d\n%s", m[2], code, out)
		}
	}
	if tried != 5 {
		t.Errorf("%d things are worth a try:\n%s", tried, r.out.String())
	}
	if code, out := in("logs", "-f", "@last"); code != exitOK || !regexp.MustCompile(`It is \d\d:\d\d:\d\d\.`).MatchString(out) {
		t.Errorf("the session that was fired: exit status %d\n%s", code, out)
	}
	if !regexp.MustCompile(`(?m)^\d\d:\d\d:\d\d  serving  url=http://127`).MatchString(r.talk.String()) {
		t.Errorf("the log is\n%s", r.talk.String())
	}
	r.ends()
	if again, _ := devs(t, wd, "new"); !strings.HasPrefix(again.out.String(), "\nThe server is at ") {
		t.Errorf("the second time it says\n%s", again.out.String())
	} else {
		again.ends()
	}
}

// A stint.yaml that is there is served, also from a folder below it, and nothing is
// written beside it.
func TestDevLeavesWhatIsThere(t *testing.T) {
	wd := t.TempDir()
	const mine = "agents: {}\n"
	if err := os.WriteFile(filepath.Join(wd, "stint.yaml"), []byte(mine), 0o600); err != nil {
		t.Fatal(err)
	}
	below := filepath.Join(wd, "below")
	if err := os.Mkdir(below, 0o700); err != nil {
		t.Fatal(err)
	}
	r, _ := devs(t, below)
	if out := r.out.String(); strings.Contains(out, "wrote") || strings.Contains(out, "schedule fire") || !strings.Contains(out, "in "+wd+":") {
		t.Errorf("it says\n%s", out)
	}
	r.ends()
	if got, err := os.ReadFile(filepath.Join(wd, "stint.yaml")); string(got) != mine || err != nil {
		t.Errorf("stint.yaml is now %q, %v", got, err)
	}
	if all, err := os.ReadDir(below); len(all) > 0 || err != nil {
		t.Errorf("%v was written, %v", all, err)
	}
}

// Where it cannot write or serve, it says so and leaves nothing half done.
func TestDevRefuses(t *testing.T) {
	d := newDesk(t)
	d.write("file", "")
	d.fails(exitUnavailable, "not a directory", "dev", "file/below")
	d.fails(exitInvalid, "one folder", "dev", "a", "b")
	d.fails(exitInvalid, "not \"xml\"", "dev", "x", "--log-format", "xml")
	for _, name := range []string{"a", "x"} {
		if _, err := os.Lstat(filepath.Join(d.dir, name)); !os.IsNotExist(err) {
			t.Errorf("there is %s: %v", name, err)
		}
	}
}

// A signal that comes twice at once, as from a terminal and from make, is one.
func TestEchoOfASignal(t *testing.T) {
	d := newDesk(t)
	r, _ := d.serves()
	r.signal(syscall.SIGINT)
	r.signal(syscall.SIGTERM)
	if code := <-r.code; code != exitOK || !strings.Contains(r.talk.String(), "msg=ended") {
		t.Errorf("exit status %d\n%s", code, r.talk.String())
	}
}

func TestTerminalLog(t *testing.T) {
	var b bytes.Buffer
	line := func(style term.Style, say func(*slog.Logger)) string {
		b.Reset()
		h := &terminalLog{w: &b, mu: new(sync.Mutex), style: style, level: slog.LevelInfo}
		say(slog.New(h))
		return b.String()[len("15:04:05"):]
	}
	for _, tt := range []struct {
		say  func(*slog.Logger)
		want string
	}{
		{func(l *slog.Logger) {
			l.Info("serving", "url", "http://x", "n", 3, "after", time.Second, "due", time.Date(2026, 11, 28, 6, 0, 0, 300, time.Local))
		},
			"  serving  url=http://x  n=3  after=1s  due=" + time.Date(2026, 11, 28, 6, 0, 0, 0, time.Local).Format(time.RFC3339) + "\n"},
		{func(l *slog.Logger) { l.Error("bad", "error", fs.ErrNotExist) }, "  error: bad  error=file does not exist\n"},
		{func(l *slog.Logger) { l.Warn("odd \x1b[2J", "name", "a\nb\x07") }, "  warning: odd \\x1b[2J  name=a\\nb\\x07\n"},
		{func(l *slog.Logger) {
			l.With("a", 1).WithGroup("g").With("b", 2).WithGroup("").Info("m", "c", 3, slog.Group("h", "d", 4), slog.Attr{})
		}, "  m  a=1  g.b=2  g.c=3  g.h.d=4\n"},
	} {
		if got := line(term.Style{}, tt.say); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
	if got := line(term.Style{Color: true}, func(l *slog.Logger) { l.Warn("odd", "a", 1) }); !strings.Contains(got, "\x1b[33mwarning: odd\x1b[0m  \x1b[2ma=\x1b[0m1\n") {
		t.Errorf("in colour: %q", got)
	}
	if h := (&terminalLog{level: slog.LevelInfo}); h.Enabled(t.Context(), slog.LevelDebug) || !h.Enabled(t.Context(), slog.LevelWarn) {
		t.Error("the level is not kept")
	}
}
