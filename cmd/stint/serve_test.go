package main

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
)

const serveYAML = `agents:
  hello: {kind: exec, command: [sh, -c, "echo hello"], protocol: none, effect: read}
schedules:
  soon: {agent: hello, every: 1s, overlap: allow, prompt: look}
  rarely: {agent: hello, cron: 0 6 1 1 *, zone: UTC}
`

// serves starts a server and waits until it listens.
func (d *desk) serves(args ...string) (r *runs, url string) {
	d.t.Helper()
	r = d.runs(append([]string{"serve", "--addr", "127.0.0.1:0"}, args...)...)
	r.talk.until(d.t, "msg=serving url=")
	url = regexp.MustCompile(`url=(\S+)`).FindStringSubmatch(r.talk.String())[1]
	return r, url
}

// ends has a server end, and wants it to go well.
func (r *runs) ends() {
	r.d.t.Helper()
	r.signal(syscall.SIGTERM)
	if code := <-r.code; code != exitOK {
		r.d.t.Errorf("the server ended with %d\n%s", code, r.talk.String())
	}
}

// has waits until a command prints what it is to.
func (d *desk) has(want string, args ...string) string {
	d.t.Helper()
	until := time.Now().Add(time.Minute)
	for {
		out := d.ok(args...)
		if strings.Contains(out, want) {
			return out
		}
		if time.Now().After(until) {
			d.t.Fatalf("stint %s never says %q:\n%s", strings.Join(args, " "), want, out)
		}
		<-time.After(20 * time.Millisecond)
	}
}

func status(t *testing.T, c *http.Client, req *http.Request) (int, string) {
	t.Helper()
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

func TestServe(t *testing.T) {
	d := newDesk(t)
	d.put("stint.yaml", serveYAML)
	r, url := d.serves()
	d.has("completed", "schedule", "history", "soon")

	code, _, talk := d.stint("serve", "--addr", "127.0.0.1:0", "--patience", "0s")
	if code != exitRefused || !strings.Contains(talk, "one server serves a store") {
		t.Errorf("a second server: exit status %d\n%s", code, talk)
	}

	d.ok("schedule", "pause", "soon", "-m", "too loud")
	if out := d.ok("schedule", "ls"); !regexp.MustCompile(`soon +paused`).MatchString(out) || !regexp.MustCompile(`rarely +on +20\d\d-01-01`).MatchString(out) {
		t.Errorf("it is not paused:\n%s", out)
	}
	code, out, talk := d.stint("schedule", "pause", "soon")
	if code != exitRefused || !strings.Contains(talk, "it is paused already") {
		t.Errorf("paused twice: exit status %d\n%s%s", code, out, talk)
	}
	d.ok("schedule", "fire", "soon", "-m", "by hand")
	if out := d.ok("schedule", "history", "soon"); !regexp.MustCompile(`ran +fired by \S+: by hand`).MatchString(out) {
		t.Errorf("it was not fired:\n%s", out)
	}
	d.has("completed", "schedule", "history", "soon", "-n", "1")
	d.ok("schedule", "resume", "soon")

	req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/healthz", nil)
	if code, body := status(t, http.DefaultClient, req); code != http.StatusOK || !strings.Contains(body, `"status":"ok"`) {
		t.Errorf("got %d, %q", code, body)
	}
	req.Host = "attacker.example"
	if code, _ := status(t, http.DefaultClient, req); code != http.StatusForbidden {
		t.Errorf("another host gets %d", code)
	}
	sock := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var dialer net.Dialer
		return dialer.DialContext(ctx, "unix", d.path()+".d/stint.sock")
	}}}
	req, _ = http.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost/healthz", nil)
	if code, _ := status(t, sock, req); code != http.StatusOK {
		t.Errorf("the socket answers %d", code)
	}
	sock.CloseIdleConnections()
	http.DefaultClient.CloseIdleConnections()
	r.ends()
	if _, err := os.Stat(d.path() + ".d/stint.sock"); !os.IsNotExist(err) {
		t.Errorf("the socket is left behind: %v", err)
	}
	if out := d.ok("verify", "--all"); !strings.Contains(out, "all sound") {
		t.Errorf("got %s", out)
	}
}

// A file that changes is taken up on SIGHUP and by stint apply, which shows what changes;
// a mistake in one part leaves the others as they are, and that one as it was.
func TestApply(t *testing.T) {
	d := newDesk(t)
	d.put("stint.yaml", serveYAML)
	r, _ := d.serves()
	d.put("stint.yaml", strings.Replace(serveYAML, "0 6 1 1 *", "0 7 1 1 *", 1)+"  broken: {agent: hello, cron: 0 0 31 2 *, zone: UTC}\n")
	code, _, talk := d.stint("apply")
	if code != exitInvalid || !strings.Contains(talk, "stint.yaml:6:26: schedules.broken.cron") {
		t.Errorf("a file with a mistake: exit status %d\n%s", code, talk)
	}
	r.signal(syscall.SIGHUP)
	r.talk.until(t, "changes=2")
	d.has("07:00:00", "schedule", "ls")
	d.put("stint.yaml", strings.Replace(serveYAML, "every: 1s", "every: forty", 1))
	r.signal(syscall.SIGHUP)
	d.has("wrong here", "schedule", "ls")
	before := strings.Count(d.ok("schedule", "history", "soon"), "completed")
	for strings.Count(d.ok("schedule", "history", "soon"), "completed") == before {
		<-time.After(50 * time.Millisecond)
	}

	d.put("stint.yaml", strings.Replace(serveYAML, "look", "listen", 1))
	out := d.ok("apply", "--dry-run")
	if !strings.Contains(out, "~ schedules.soon") || strings.Contains(out, "works by") {
		t.Errorf("got\n%s", out)
	}
	out = d.ok("apply")
	if !strings.Contains(out, "The server works by ") {
		t.Errorf("got\n%s", out)
	}
	d.put("stint.yaml", strings.Replace(strings.Replace(serveYAML, "look", "read", 1), "rarely", "seldom", 1))
	out = d.ok("apply")
	for _, want := range []string{"- schedules.rarely\n", "+ schedules.seldom\n", "~ schedules.soon\n    prompt: \"listen\" → \"read\"\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("there is no %q in\n%s", want, out)
		}
	}
	if out = d.ok("apply"); !strings.HasPrefix(out, "Nothing changes.\n") {
		t.Errorf("got\n%s", out)
	}
	r.ends()
	code, _, talk = d.stint("apply")
	if code != exitUnavailable || !strings.Contains(talk, "stint serve reads stint.yaml when it starts") {
		t.Errorf("without a server: exit status %d\n%s", code, talk)
	}
	d.noOrders()
}

// noOrders wants no order to be left for a server that comes later.
func (d *desk) noOrders() {
	d.t.Helper()
	id, err := engine.SystemJournal(d.t.Context(), d.store)
	if err != nil {
		d.t.Fatal(err)
	}
	if in, err := d.store.Inbox(d.t.Context(), id); err != nil || len(in) != 0 {
		d.t.Errorf("%d orders are left, %v", len(in), err)
	}
}

// Without a server a command takes its place for as long as it needs.
func TestOrdersWithoutAServer(t *testing.T) {
	d := newDesk(t)
	d.put("stint.yaml", serveYAML)
	d.ok("schedule", "fire", "rarely")
	if out := d.ok("ps", "-a"); !strings.Contains(out, "rarely-") {
		t.Errorf("there is no session:\n%s", out)
	}
	d.ok("schedule", "pause", "rarely", "-m", "holidays")
	d.noOrders()
	d.put("stint.yaml", "agents: {}\n") // the store knows its schedules, whatever the file here says
	d.fails(exitRefused, "in the stint.yaml of this server", "schedule", "fire", "rarely")
	if out := d.ok("schedule", "ls"); !regexp.MustCompile(`rarely +paused`).MatchString(out) {
		t.Errorf("got\n%s", out)
	}
	d.fails(exitNotFound, "there is no schedule", "schedule", "fire", "nothing")
	d.put("stint.yaml", "agents: [\n") // nor whether it can be read
	for _, args := range [][]string{{"schedule", "resume", "rarely"}, {"schedule", "pause", "rarely"}, {"token", "create", "--role", "admin", "ann"}} {
		if code, out, talk := d.stint(args...); code != exitOK {
			t.Errorf("%q: exit status %d\n%s%s", args, code, out, talk)
		}
	}
	d.fails(exitRefused, "in the stint.yaml of this server", "schedule", "fire", "rarely")
}

// A token is shown once and ends loopback's freedom; what was made is in the journal, its
// secret is nowhere.
func TestTokens(t *testing.T) {
	d := newDesk(t)
	d.put("stint.yaml", serveYAML)
	code, _, talk := d.stint("serve", "--addr", "0.0.0.0:0")
	if code != exitInvalid || !strings.Contains(talk, "stint token create --role admin NAME") {
		t.Errorf("exit status %d\n%s", code, talk)
	}
	secret := strings.TrimSpace(d.ok("token", "create", "--role", "admin", "ann"))
	r, _ := d.serves()
	var made struct{ ID, Secret, Status string }
	if err := json.Unmarshal([]byte(d.ok("token", "create", "--role", "viewer", "--kind", "ci", "--json", "build")), &made); err != nil || made.Status != "live" || made.Secret == "" {
		t.Errorf("got %+v, %v", made, err)
	}
	if out := d.ok("token", "ls"); strings.Count(out, "live") != 2 || strings.Contains(out, secret) {
		t.Errorf("got\n%s", out)
	}
	d.ok("token", "revoke", made.ID, "-m", "done")
	if out := d.ok("token", "ls", "-a"); !regexp.MustCompile(made.ID + ` +build +ci +viewer +revoked`).MatchString(out) {
		t.Errorf("got\n%s", out)
	}
	if code, _, _ := d.stint("token", "revoke", made.ID); code != exitRefused {
		t.Errorf("revoked twice: exit status %d", code)
	}
	if code, _, _ := d.stint("token", "revoke", "none"); code != exitNotFound {
		t.Errorf("one that is not there: exit status %d", code)
	}
	for _, args := range [][]string{{"x"}, {"--role", "king", "x"}, {"--scope", "all", "x"}, {"--role", "admin", "--scope", "admin", "x"}, {"--kind", "login", "--role", "admin", "x"}} {
		if code, _, talk := d.stint(append([]string{"token", "create"}, args...)...); code != exitInvalid {
			t.Errorf("%q: exit status %d\n%s", args, code, talk)
		}
	}
	r.ends()
	names, err := filepath.Glob(d.path() + "*")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err == nil && (strings.Contains(string(b), secret[30:]) || strings.Contains(string(b), made.Secret[30:])) {
			t.Errorf("%s has a token in it", name)
		}
	}
}

// An agent does not give the server orders.
func TestOrdersOfAnAgent(t *testing.T) {
	d := newDesk(t)
	d.put("stint.yaml", serveYAML)
	row := d.run("a", func(context.Context, stint.Loop) (stint.Next, error) {
		return stint.Next{End: &stint.End{Outcome: stint.Completed}}, nil
	})
	for _, args := range [][]string{{"token", "create", "--role", "admin", "me"}, {"schedule", "pause", "rarely"}, {"schedule", "fire", "rarely"}, {"apply"}} {
		var out, talk buffer
		a := d.app(&out, &talk)
		plain := a.getenv
		a.getenv = func(k string) string {
			if k == "STINT_SESSION" {
				return row.Session.ID.String()
			}
			return plain(k)
		}
		if code := a.run(t.Context(), args); code != exitDenied || !strings.Contains(talk.String(), "an agent does not change the server that runs it") {
			t.Errorf("%q: exit status %d\n%s%s", args, code, out.String(), talk.String())
		}
	}
}

// The times of a schedule are those of its expression in its zone.
func TestNextOfASchedule(t *testing.T) {
	d := newDesk(t)
	d.put("stint.yaml", serveYAML)
	if got, want := d.ok("schedule", "next", "rarely", "--from", "2026-05-01", "-n", "2", "--json"), `["2027-01-01T06:00:00Z","2028-01-01T06:00:00Z"]`; strings.Join(strings.Fields(got), "") != want {
		t.Errorf("got %s, want %s", got, want)
	}
	d.fails(exitNotFound, "there is no schedule", "schedule", "next", "never")
	d.fails(exitInvalid, "a schedule says that itself", "schedule", "next", "rarely", "--tz", "UTC")
	d.fails(exitInvalid, "takes the name of a schedule, or --cron", "schedule", "next")
	d.fails(exitInvalid, "takes the name of a schedule, or --cron", "schedule", "next", "rarely", "--cron", "@daily")
}

// What a session starts is let in without a token as an agent: it may look and start, and
// gets no token with which it could decide what it asks.
func TestAgentAtTheAPI(t *testing.T) {
	d := newDesk(t)
	d.put("ask.sh", `read -r port path
ask() { exec 3<>/dev/tcp/127.0.0.1/$port; printf "$1 HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${#2}\r\nConnection: close\r\n\r\n$2" >&3; head -n 1 <&3; exec 3>&-; }
ask "GET /v1/sessions"
env -i setsid bash -c "$(declare -f ask); port=$port; "'ask "POST /v1/tokens" "{\"name\":\"me\",\"kind\":\"user\",\"role\":\"admin\"}"'
ask "POST /v1/schedules/rarely/fire"
`)
	d.put("stint.yaml", "agents:\n  nosy: {kind: exec, command: [bash, ask.sh], protocol: none, effect: read}\nschedules:\n  rarely: {agent: nosy, every: 9999h}\n")
	r, url := d.serves()
	_, port, err := net.SplitHostPort(strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	d.ok("start", "nosy", "--name", "nosy-1", "-p", port+"\n")
	d.has("completed", "show", "nosy-1", "--field", "status")
	out := d.ok("logs", "nosy-1", "-o", "cat")
	if strings.Count(out, "HTTP/1.1 200 OK") != 1 || strings.Count(out, "HTTP/1.1 403 Forbidden") != 2 {
		t.Errorf("got\n%s", out)
	}
	if out := d.ok("token", "ls", "-a"); !strings.Contains(out, "There are no tokens") {
		t.Errorf("got\n%s", out)
	}
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/v1/tokens", strings.NewReader(`{"name":"ann","kind":"user","role":"admin"}`))
	req.Header.Set("Content-Type", "application/json")
	if code, body := status(t, http.DefaultClient, req); code != http.StatusCreated {
		t.Errorf("a person gets %d: %s", code, body)
	}
	http.DefaultClient.CloseIdleConnections()
	r.ends()
}

// A list without tokens does not say that none is needed when one is.
func TestTokensThatEnded(t *testing.T) {
	d := newDesk(t)
	d.put("stint.yaml", serveYAML)
	revoked := func(kind string) {
		id := strings.Split(d.ok("token", "create", "--kind", kind, "--role", "viewer", "ann"), "_")[2]
		d.ok("token", "revoke", id)
	}
	revoked("agent")
	if out := d.ok("token", "ls"); !strings.Contains(out, "programs of this machine need none") {
		t.Errorf("got %s", out)
	}
	revoked("ci")
	if out := d.ok("token", "ls"); !strings.Contains(out, "programs of this machine need one") {
		t.Errorf("got %s", out)
	}
}

// What only looks makes nothing: no store, and in a store no journal of a server.
func TestLooksMakeNothing(t *testing.T) {
	d := newDesk(t)
	d.put("stint.yaml", serveYAML+"hooks:\n  h: {agent: hello, scheme: none}\n")
	d.put("body.json", "{}")
	looks := [][]string{{"schedule", "ls"}, {"schedule", "history", "soon"}, {"schedule", "next", "soon"}, {"schedule", "backfill", "soon", "--from", "2026-01-01", "--to", "2026-01-01"},
		{"hook", "ls"}, {"hook", "test", "h", "-f", d.dir + "/body.json"}, {"hook", "deliveries", "h"}, {"token", "ls"}, {"notify", "ls"}, {"apply", "--dry-run"}}
	for _, args := range looks {
		if code, out, talk := d.stint(args...); code != exitOK {
			t.Errorf("%q: exit status %d\n%s%s", args, code, out, talk)
		}
	}
	if id, err := engine.FindSystemJournal(t.Context(), d.store); err != nil || !id.IsZero() {
		t.Errorf("there is a system journal, %v", err)
	}
	none := filepath.Join(t.TempDir(), "none", "stint.db")
	for _, args := range looks {
		d.stint(append([]string{"--store", "sqlite:" + none}, args...)...) // some have nothing to say then
	}
	if _, err := os.Stat(filepath.Dir(none)); !os.IsNotExist(err) {
		t.Errorf("a store was made: %v", err)
	}
	if out := d.ok("--store", "sqlite:"+none, "hook", "ls"); !regexp.MustCompile(`h +ready`).MatchString(out) {
		t.Errorf("got\n%s", out)
	}
	if out := d.ok("--store", "sqlite:"+none, "hook", "test", "h", "-f", d.dir+"/body.json"); !strings.Contains(out, "would begin the session") {
		t.Errorf("got\n%s", out)
	}
}
