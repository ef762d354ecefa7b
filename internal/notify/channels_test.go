package notify_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/endpoint"
	"github.com/stint-dev/stint/internal/notify"
	"github.com/stint-dev/stint/internal/proc"
)

// TestMain lets the test binary be the guard of the programs that are told.
func TestMain(m *testing.M) {
	proc.MaybeGuard()
	os.Exit(m.Run())
}

// mood is what whoever is at the end of a channel does with what comes.
type mood string

const (
	takes   mood = "takes"
	later   mood = "later"   // it says that it cannot now
	refuses mood = "refuses" // it says that it will not
	hangs   mood = "hangs"   // it says nothing
)

// post is what came through a channel: the id by which a second one of it is known, and all
// the text there is.
type post struct{ id, text string }

// far is the other end of a channel.
type far struct {
	channel notify.Channel
	is      func(mood)
	came    func() []post
	finals  bool // it can refuse for good
}

// hostile is a session whose words try to be more than words.
const hostile = "x\r\nBcc: mallory@example.org\r\n\r\n.\r\nQUIT\r\n; $(touch pwned) \x00\x1b[31m\u202e"

// sample is a notification about a session of that name.
func sample(t *testing.T, n int, name string) *notify.Notification {
	t.Helper()
	id, err := stint.ParseID("01m8narkh8fgj9y313w2aq76qy")
	if err != nil {
		t.Fatal(err)
	}
	out, err := notify.NewNotification(fmt.Sprintf("evt_%s_%d", id, n), notify.Message{
		Type: endpoint.Asked, At: time.Date(2026, 11, 30, 4, 17, 45, 44e6, time.UTC),
		Data: notify.Data{Session: id, Seq: stint.Seq(n), Name: name, Agent: "triage", Status: stint.Waiting, Approval: &notify.Question{ID: id.String() + ".12", Step: "deploy", Text: name}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// ends are a far end of each channel.
func ends(t *testing.T) map[string]*far {
	return map[string]*far{"webhook": webhookEnd(t), "exec": execEnd(t), "smtp": mailEnd(t)}
}

func webhookEnd(t *testing.T) *far {
	var mu sync.Mutex
	now, all := takes, []post(nil)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		mu.Lock()
		is := now
		all = append(all, post{r.Header.Get("webhook-id"), string(b)})
		mu.Unlock()
		switch is {
		case later:
			w.WriteHeader(http.StatusServiceUnavailable)
		case refuses:
			w.WriteHeader(http.StatusUnprocessableEntity)
		case hangs:
			<-r.Context().Done()
		}
	}))
	t.Cleanup(server.Close)
	return &far{
		channel: &notify.Webhook{URL: server.URL, AllowPrivate: true, Secrets: func() ([]string, error) { return []string{whsec}, nil }},
		is:      func(m mood) { mu.Lock(); defer mu.Unlock(); now = m },
		came:    func() []post { mu.Lock(); defer mu.Unlock(); return append([]post(nil), all...) },
	}
}

// execEnd is a program that keeps what it is told in files, and does what the file mood says.
func execEnd(t *testing.T) *far {
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	write("tell", `#!/bin/sh
cat >"got-$(ls | wc -l)-$STINT_NOTIFICATION"
case $(cat mood) in
later) echo; echo "come again, $TOKEN"; exit 75;;
refuses) echo "never again" >&2; echo more >&2; exit 3;;
hangs) sleep 1000 & echo $! >pid; wait;;
*) echo thanks; yes | head -c 3000000; env >env;;
esac
`, 0o700)
	write("mood", string(takes), 0o600)
	x := &notify.Exec{Command: []string{"./tell"}, Dir: dir, Env: func() (secrets, plain map[string]string, err error) {
		return map[string]string{"TOKEN": "tok-123456"}, map[string]string{"MODE": "x"}, nil
	}}
	return &far{
		channel: x, finals: true,
		is: func(m mood) {
			write("mood", string(m), 0o600)
			if x.Timeout = 0; m == hangs {
				x.Timeout = time.Second
			}
		},
		came: func() (all []post) {
			names, err := filepath.Glob(filepath.Join(dir, "got-*"))
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range names {
				b, err := os.ReadFile(name)
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, post{name[strings.Index(name, "evt_"):], string(b)})
			}
			return all
		},
	}
}

// Every channel tells apart who takes something, who cannot now and who will not; what is
// sent again is known by its id; and nothing that a session says is more than text.
func TestChannels(t *testing.T) {
	for name, end := range ends(t) {
		t.Run(name, func(t *testing.T) {
			if err := end.channel.Check(); err != nil {
				t.Fatal(err)
			}
			send := func(n *notify.Notification) (notify.Answer, error) {
				t.Helper()
				return end.channel.Send(t.Context(), n)
			}
			got, err := send(sample(t, 1, hostile))
			if err != nil || got.Final || got.After != 0 {
				t.Errorf("taken: %+v, %v", got, err)
			}
			all := end.came()
			if len(all) != 1 || !strings.Contains(all[0].text, "mallory") || !strings.Contains(all[0].text, "touch pwned") {
				t.Fatalf("got %+v", all)
			}
			end.is(later)
			if got, err = send(sample(t, 1, hostile)); err == nil || got.Final || strings.Contains(err.Error(), "tok-123456") {
				t.Errorf("not now: %+v, %v", got, err)
			}
			if again := end.came(); len(again) != 2 || again[0] != again[1] || again[0].id == "" {
				t.Errorf("sent again: %q", again)
			}
			end.is(refuses)
			if got, err = send(sample(t, 2, "night")); err == nil || got.Final != end.finals || got.Status == 0 || strings.Contains(err.Error(), "\n") {
				t.Errorf("never: %+v, %v", got, err)
			}
			if other := end.came(); len(other) != 3 || other[0].id == other[2].id {
				t.Errorf("another one: %q", other)
			}
			end.is(hangs)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if name != "exec" { // its patience is longer than a test's
				cancel()
			}
			if got, err := end.channel.Send(ctx, sample(t, 3, "night")); err == nil || got.Final {
				t.Errorf("no answer: %+v, %v", got, err)
			}
		})
	}
}

// What a program prints first is the reason; it gets a clean environment, and is gone with
// all that it started when its time is up.
func TestExec(t *testing.T) {
	t.Setenv("HIDDEN", "yes")
	end := execEnd(t)
	dir := end.channel.(*notify.Exec).Dir
	send := func(c notify.Channel) (notify.Answer, string) {
		t.Helper()
		got, err := c.Send(t.Context(), sample(t, 1, "night"))
		if err != nil {
			return got, err.Error()
		}
		return got, ""
	}
	if got, why := send(end.channel); why != "" || got.Said != "thanks" || got.Status != 0 {
		t.Errorf("got %+v, %s", got, why)
	}
	b, err := os.ReadFile(filepath.Join(dir, "env"))
	if err != nil || strings.Contains(string(b), "HIDDEN") || !strings.Contains(string(b), "MODE=x\n") || !strings.Contains(string(b), "TOKEN=tok-123456") {
		t.Errorf("the environment: %v\n%s", err, b)
	}
	var m notify.Message
	if err := json.Unmarshal([]byte(end.came()[0].text), &m); err != nil || m.Data.Name != "night" || m.Type != endpoint.Asked {
		t.Errorf("the input: %v, %+v", err, m)
	}
	end.is(later)
	if got, why := send(end.channel); got.Status != 75 || got.Final || why != "come again, {{secret:TOKEN}}" {
		t.Errorf("got %+v, %s", got, why)
	}
	end.is(refuses)
	if got, why := send(end.channel); got.Status != 3 || !got.Final || why != "never again" {
		t.Errorf("got %+v, %s", got, why)
	}
	end.is(hangs)
	x := end.channel.(*notify.Exec)
	for began := false; !began && x.Timeout < time.Minute; { // one whose time was up before it began gets more
		got, why := send(x)
		if got.Final || why != fmt.Sprintf("its time of %v was up", x.Timeout) {
			t.Errorf("got %+v, %s", got, why)
		}
		_, err := os.Stat(filepath.Join(dir, "pid"))
		began = err == nil
		x.Timeout *= 4
	}
	pid, err := os.ReadFile(filepath.Join(dir, "pid"))
	if err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS == "linux" {
		if _, err := os.Stat("/proc/" + strings.TrimSpace(string(pid))); !os.IsNotExist(err) {
			t.Errorf("what it started is still there: %v", err)
		}
	}
	for name, want := range map[string]struct {
		c     notify.Exec
		final bool
		why   string
	}{
		"not there": {notify.Exec{Command: []string{"no-such-program"}}, false, "no-such-program"},
		"killed":    {notify.Exec{Command: []string{"sh", "-c", "kill -9 $$"}}, true, "SIGKILL"},
		"silent":    {notify.Exec{Command: []string{"sh", "-c", "exit 9"}}, true, "it ended with 9"},
		"no secret": {notify.Exec{Command: []string{"true"}, Env: func() (secrets, plain map[string]string, err error) { return nil, nil, errors.New("/home/ben") }}, false, "a secret of its environment cannot be read"},
	} {
		if got, why := send(&want.c); got.Final != want.final || !strings.Contains(why, want.why) {
			t.Errorf("%s: %+v, %s", name, got, why)
		}
	}
	if err := (&notify.Exec{}).Check(); stint.CodeOf(err) != stint.Invalid {
		t.Errorf("no command: %v", err)
	}
}
