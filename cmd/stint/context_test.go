package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/internal/access"
)

// far is a desk of a person whose store is on another machine: they have a server, and no
// STINT_STORE.
type far struct {
	*desk

	env map[string]string
	in  string
}

func (d *desk) far(env ...string) *far {
	d.t.Helper()
	f := &far{desk: d, env: map[string]string{"XDG_CONFIG_HOME": filepath.Join(d.dir, "config"), "XDG_STATE_HOME": filepath.Join(d.dir, "state")}}
	for i := 0; i+1 < len(env); i += 2 {
		f.env[env[i]] = env[i+1]
	}
	return f
}

func (f *far) stint(args ...string) (code int, out, talk string) {
	f.t.Helper()
	var o, e buffer
	code = f.start(f.t.Context(), &o, &e, args...)
	return code, o.String(), e.String()
}

func (f *far) start(ctx context.Context, out, talk *buffer, args ...string) int {
	a := &app{in: strings.NewReader(f.in), out: out, err: talk, getenv: func(k string) string { return f.env[k] }, getwd: func() (string, error) { return f.t.TempDir(), nil }}
	return a.run(ctx, args)
}

// says is as that of a desk.
func (f *far) says(code int, want string, args ...string) string {
	f.t.Helper()
	got, out, talk := f.stint(args...)
	if got != code || !strings.Contains(out+talk, want) {
		f.t.Errorf("stint %s: exit status %d, want %d with %q\n%s%s", strings.Join(args, " "), got, code, want, out, talk)
	}
	return out
}

// asks is a session with an open question.
func asks(ctx context.Context, l stint.Loop) (stint.Next, error) {
	s := stint.Step{Name: "pay", Kind: stint.Tool, Input: json.RawMessage(`{"to":"bob"}`), Ask: "Pay bob?", Why: "rule: money asks"}
	_, err := l.Do(ctx, s, func(context.Context, string) (stint.Result, error) {
		return stint.Result{Data: json.RawMessage(`"paid"`)}, nil
	})
	return stint.Next{End: &stint.End{}}, err
}

// finds has bodies outside the journal, and two lines.
func finds(ctx context.Context, l stint.Loop) (stint.Next, error) {
	text, err := json.Marshal(strings.Repeat("what was found ", 400))
	if err != nil {
		return stint.Next{}, err
	}
	if _, err := l.Do(ctx, stint.Step{Name: "fetch", Kind: stint.Tool, Effect: stint.Read, Input: json.RawMessage(`{"url":"x"}`)}, func(context.Context, string) (stint.Result, error) {
		return stint.Result{Data: text}, nil
	}); err != nil {
		return stint.Next{}, err
	}
	return stint.Next{State: text, End: &stint.End{Result: text}}, nil
}

// What commands print of a server is what they print of its store.
func TestServerIsAsItsStore(t *testing.T) {
	d := newDesk(t)
	d.put("stint.yaml", serveYAML)
	d.run("done-1", works)
	pay := d.run("pay-1", doubts)
	d.run("bad-1", breaks)
	d.run("chat-1", sleeps)
	d.run("asks-1", asks)
	d.run("long-1", finds)
	d.ok("restart", "done-1", "--from", "1")
	r, url := d.serves()
	d.has("completed", "schedule", "history", "soon")
	d.ok("schedule", "pause", "soon")
	f := d.far("STINT_SERVER", url)
	for _, line := range []string{
		"ps", "ps -a", "ps --bad", "ps -a --json -l team=x", "ps -a -o jsonl --sort age", "ps -q -n 2 --status waiting", "ps -a -o wide --agent triage", "ps --since 2020-01-01",
		"show done-1", "show done-1/0", "show done-1 --all --json", "show pay-1", "show long-1 --state", "show done-1/0 --state 2", "show bad-1 --field reason", "show asks-1 --lines 5", "show nobody", "show @last --json", "show done-1:9",
		"logs done-1", "logs long-1 --content", "logs done-1 --json", "logs pay-1 -o jsonl", "logs done-1 -o cat --raw", "logs done-1 -n 3", "logs bad-1 -p warn -x", "logs done-1 --loop 2..3 -k loop", "logs done-1 -g red", "logs done-1 -S 2020-01-01 --after 2", "logs bad-1 -f",
		"result done-1/0", "result done-1", "result long-1 --json", "result bad-1", "result " + pay.Short,
		"approvals", "approvals --json", "approvals asks-1", "wait bad-1", "wait pay-1 --json", "wait chat-1",
		"restart done-1/0 --from 0 --dry-run", "restart long-1 --from 0 --dry-run --json",
		"schedule history soon", "schedule history soon --json", "schedule history nothing",
		"agent ls", "agent ls --json", "agent show hello", "agent show hello --json", "agent show nobody",
		"token ls", "token ls --json", "export nobody",
	} {
		d.sameOver(f, line)
	}
	if here, there := d.ok("export", "long-1"), f.says(exitOK, "", "export", "long-1"); lastLines(here) != lastLines(there) {
		t.Errorf("the journal is exported otherwise: %d and %d bytes", len(here), len(there))
	}
	r.ends()
}

// lastLines is an export without its first line, which says when it was made.
func lastLines(s string) string { return s[strings.IndexByte(s, '\n')+1:] }

// sameOver calls a command both ways. How long ago something was changes meanwhile: what
// differs between two calls where the store is, is asked once more.
func (d *desk) sameOver(f *far, line string) {
	d.t.Helper()
	clock := regexp.MustCompile(`"now":"[^"]*"|"for_ms":\d+|"age_ms":\d+`)
	type said struct {
		code      int
		out, talk string
	}
	ask := func(call func(...string) (int, string, string)) said {
		code, out, talk := call(strings.Fields(line)...)
		return said{code, clock.ReplaceAllString(out, "NOW"), clock.ReplaceAllString(talk, "NOW")}
	}
	var before, there, after said
	for range 20 {
		if before, there, after = ask(d.stint), ask(f.stint), ask(d.stint); before == after {
			break
		}
	}
	if before != after {
		d.t.Errorf("stint %s never says the same twice:\n%+v\n%+v", line, before, after)
	} else if there != before {
		d.t.Errorf("stint %s of the server: exit status %d, of the store %d\n--- server\n%s%s\n--- store\n%s%s", line, there.code, before.code, there.out, there.talk, before.out, before.talk)
	}
}

// Orders to the sessions of a server, and to the server, do what they do where the store is.
func TestOrdersToAServer(t *testing.T) {
	d := newDesk(t)
	d.put("stint.yaml", serveYAML+"  hourly: {agent: hello, cron: 0 * * * *, zone: UTC}\n")
	for _, name := range []string{"chat-1", "chat-2", "chat-3", "chat-4", "chat-5"} {
		d.run(name, sleeps)
	}
	pay, asked, no := d.run("pay-1", doubts), d.run("asks-1", asks), d.run("asks-2", asks)
	d.run("done-1", works)
	r, url := d.serves()
	f := d.far("STINT_SERVER", url)
	f.says(exitOK, "chat-1", "pause", "chat-1", "--reason", "month end")
	f.says(exitOK, "a runner of the server takes it up", "resume", "chat-1")
	f.says(exitOK, "a runner of the server takes it up", "send", "chat-2", "hello")
	f.says(exitOK, "is canceled", "stop", "chat-3", "--reason", "enough")
	f.says(exitOK, "is canceled", "kill", "chat-4")
	f.says(exitRefused, "the session has ended", "send", "chat-3", "hello")
	f.says(exitOK, "pay-1", "limit", "pay-1", "--loops", "+20")
	f.says(exitRefused, "cannot go on before step 1.1 is settled", "resume", "pay-1")
	f.says(exitOK, "is pending; a runner of the server takes it up", "resolve", pay.Short+":1.1", "--happened", "--result", "7")
	f.says(exitOK, "approved", "approve", asked.Short, "-m", "checked")
	f.says(exitOK, "denied", "deny", no.Short, "-m", "not now")
	f.says(exitRefused, "was approved by", "deny", asked.Short)
	f.says(exitOK, "done-1", "restart", "done-1", "--from", "1", "--say", "again")
	for name, want := range map[string]string{"chat-3": "canceled", "chat-4": "canceled", "pay-1": "pending", "asks-1": "pending", "done-1": "pending"} {
		if got := strings.TrimSpace(d.ok("show", name, "--field", "status")); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	if out := d.ok("logs", "asks-1", "-x"); !strings.Contains(out, "checked") {
		t.Errorf("the words of the decision are not there:\n%s", out)
	}

	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/v1/sessions/chat-2/messages", strings.NewReader(`{"text":"and this","busy":"reject"}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if code, body := status(t, http.DefaultClient, req); code != http.StatusConflict {
		t.Errorf("a busy session takes a message: %d %s", code, body)
	}
	req.URL.Path, req.Body = "/v1/sessions/chat-5/messages", io.NopCloser(strings.NewReader(`{"text":"and this","busy":"reject"}`))
	if code, body := status(t, http.DefaultClient, req); code != http.StatusOK { // verify knows the keys of the API
		t.Errorf("an idle session takes none: %d %s", code, body)
	}

	first := f.says(exitOK, "is recorded", "start", "hello", "-p", "look", "--name", "far-1", "-l", "team=a", "--loops", "5", "--dedupe", "k")
	again := f.says(exitOK, "was recorded before", "start", "hello", "-p", "look", "--name", "far-1", "-l", "team=a", "--loops", "5", "--dedupe", "k")
	if !strings.Contains(first, "a runner of the server takes it up") || strings.Contains(first+again, "--run") {
		t.Errorf("%s%s", first, again)
	}
	f.says(exitOK, "completed", "wait", "far-1", "--timeout", "1m")
	f.says(exitNotFound, "nobody", "start", "nobody")
	f.says(exitInvalid, "--loops", "start", "hello", "--loops", "-1")

	f.says(exitOK, "is paused", "schedule", "pause", "rarely", "-m", "holidays")
	f.says(exitOK, "paused", "schedule", "ls")
	f.says(exitRefused, "it is paused already", "schedule", "pause", "rarely")
	f.says(exitOK, "goes on", "schedule", "resume", "rarely")
	f.says(exitOK, "has fired", "schedule", "fire", "rarely", "-m", "by hand")
	f.says(exitOK, "by hand", "schedule", "history", "rarely")
	f.says(exitOK, "With --run, ", "schedule", "backfill", "hourly", "--from", "2026-01-01T00:00:00Z", "--to", "2026-01-01T03:00:00Z")
	f.says(exitOK, "begun", "schedule", "backfill", "hourly", "--from", "2026-01-01T00:00:00Z", "--to", "2026-01-01T01:00:00Z", "--run")
	f.says(exitNotFound, "there is no schedule", "schedule", "fire", "nothing")
	r.ends()
	if code, out, talk := d.stint("verify", "--all"); code != exitOK || !strings.Contains(out, "all sound") {
		t.Errorf("exit status %d\n%s%s", code, out, talk)
	}
}

// What a role may not, a command of its owner may not: with the exit status and a hint.
func TestRolesOverAServer(t *testing.T) {
	d := newDesk(t)
	d.put("stint.yaml", serveYAML)
	d.run("chat-1", sleeps)
	d.run("chat-2", sleeps)
	asked := d.run("asks-1", asks)
	tokens := map[access.Role]string{}
	for _, role := range access.Roles() {
		tokens[role] = strings.TrimSpace(d.ok("token", "create", "--role", string(role), string(role)))
	}
	r, url := d.serves()
	as := func(role access.Role) *far { return d.far("STINT_SERVER", url, "STINT_TOKEN", tokens[role]) }
	for _, role := range access.Roles() {
		as(role).says(exitOK, "chat-1", "ps")
		as(role).says(exitOK, "rarely", "schedule", "ls")
	}
	hint := "stint token create"
	for _, args := range []string{"stop chat-1", "send chat-1 hello", "approve " + asked.Short, "schedule fire rarely", "token ls", "token create --role viewer x"} {
		as(access.Viewer).says(exitDenied, hint, strings.Fields(args)...)
	}
	as(access.Viewer).says(exitDenied, "no scope sessions:run", "start", "hello")
	as(access.Operator).says(exitDenied, hint, "approve", asked.Short)
	as(access.Operator).says(exitDenied, hint, "token", "create", "--role", "viewer", "x")
	as(access.Operator).says(exitOK, "is canceled", "stop", "chat-1")
	as(access.Operator).says(exitOK, "has fired", "schedule", "fire", "rarely")
	as(access.Approver).says(exitDenied, hint, "stop", "chat-2")
	as(access.Approver).says(exitOK, "approved", "approve", asked.Short)
	secret := strings.TrimSpace(as(access.Administrator).says(exitOK, "stint_user_", "token", "create", "--role", "viewer", "new"))
	d.far("STINT_SERVER", url, "STINT_TOKEN", strings.Fields(secret)[0]).says(exitOK, "chat-2", "ps")
	out := as(access.Administrator).says(exitOK, "new", "token", "ls")
	id := regexp.MustCompile(`(?m)^(\S+) +new `).FindStringSubmatch(out)
	as(access.Administrator).says(exitOK, "is revoked", "token", "revoke", id[1])
	d.far("STINT_SERVER", url).says(exitDenied, "it has no token", "ps")
	d.far("STINT_SERVER", url, "STINT_TOKEN", "stint_user_x").says(exitDenied, "", "ps")
	es, err := d.store.Entries(t.Context(), stint.Range{Session: asked.Session.ID, Kinds: []stint.Kind{stint.ApprovalDecided}})
	if err != nil || len(es) != 1 || es[0].Actor != "human:approver" {
		t.Errorf("%d decisions, by %v, %v", len(es), es[0].Actor, err)
	}
	r.ends()
}

// Contexts name servers; what they keep has no token in it, and is this user's alone.
func TestContexts(t *testing.T) {
	d := newDesk(t)
	d.put("stint.yaml", serveYAML)
	d.run("chat-1", sleeps)
	secret := strings.TrimSpace(d.ok("token", "create", "--role", "operator", "ann"))
	r, url := d.serves()
	f := d.far()
	f.says(exitOK, "There are no contexts", "context", "ls")
	f.says(exitInvalid, "not written on a command line", "context", "add", "prod", url, "--token", secret)
	for _, args := range []string{"context add none " + url, "context add Prod " + url, "context add ../x " + url, "context add x ftp://y", "context add x http://stint.example.com --token env:T", "context add x " + url + " --token env:"} {
		f.says(exitInvalid, "", strings.Fields(args)...)
	}
	f.in = "\n"
	f.says(exitInvalid, "is no token", "context", "add", "prod", url, "--token", "ask")
	f.in = secret + "\n"
	f.says(exitOK, "stint context use prod", "context", "add", "prod", url, "--token", "ask")
	f.in = ""
	f.says(exitOK, "lets you in", "--context", "prod", "context", "show")
	f.says(exitOK, "chat-1", "ps", "--context", "prod")
	f.says(exitNotFound, "there is no context \"test\"", "ps", "--context", "test")
	f.says(exitInvalid, "exclude each other", "ps", "--context", "prod", "--store", "sqlite:x")

	f.says(exitOK, url, "context", "use", "prod")
	f.says(exitOK, "in use", "context", "ls")
	f.says(exitOK, "chat-1", "ps")
	f.says(exitUnavailable, "there is no store", "ps", "--context", "none", "--json")
	f.says(exitUnavailable, "there is no store", "ps", "--store", "sqlite:"+filepath.Join(d.dir, "other.db"))
	f.env["STINT_STORE"] = "sqlite:" + filepath.Join(d.dir, "other.db")
	f.says(exitUnavailable, "there is no store", "ps")
	f.env["STINT_CONTEXT"] = "prod"
	f.says(exitOK, "chat-1", "ps")
	delete(f.env, "STINT_STORE")
	delete(f.env, "STINT_CONTEXT")

	f.env["ELSEWHERE"] = secret
	f.says(exitOK, "", "context", "add", "by-env", url, "--token", "env:ELSEWHERE")
	f.says(exitOK, "chat-1", "ps", "--context", "by-env")
	delete(f.env, "ELSEWHERE")
	f.says(exitInvalid, "which is not set", "ps", "--context", "by-env")
	d.put("token", secret+"\n")
	f.says(exitOK, "", "context", "add", "by-file", url, "--token", "file:"+filepath.Join(d.dir, "token"))
	f.says(exitOK, "chat-1", "ps", "--context", "by-file")
	f.says(exitOK, "", "context", "add", "here", "unix:"+d.path()+".d/stint.sock")
	f.says(exitOK, "chat-1", "ps", "--context", "here")
	f.says(exitOK, "is canceled", "stop", "chat-1", "--context", "here")

	dir := filepath.Join(f.env["XDG_CONFIG_HOME"], "stint")
	for _, name := range []string{contextsFile, storedToken("prod")} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
	b, err := os.ReadFile(filepath.Join(dir, contextsFile))
	if err != nil || strings.Contains(string(b), "stint_user_") {
		t.Errorf("%s, %v", b, err)
	}
	f.says(exitOK, "is forgotten", "context", "rm", "prod")
	if _, err := os.Stat(filepath.Join(dir, storedToken("prod"))); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the token is left: %v", err)
	}
	f.says(exitOK, "No server is chosen", "context", "show")
	f.says(exitNotFound, "there is no context", "context", "rm", "prod")
	d.put("config/stint/contexts.json", "{")
	f.says(exitInvalid, "cannot be read", "ps")
	r.ends()
}

// Without a server a command says which it asked, and what to do.
func TestServerIsAway(t *testing.T) {
	d := newDesk(t)
	gone := "http://127.0.0.1:1"
	f := d.far("STINT_SERVER", gone)
	for _, args := range []string{"ps", "logs x", "stop x", "schedule ls", "token ls", "agent ls", "start x", "context show"} {
		code, _, talk := f.stint(strings.Fields(args)...)
		if code != exitUnavailable || !strings.Contains(talk, gone+" does not answer") || !strings.Contains(talk, "\n  see that stint serve runs there") {
			t.Errorf("stint %s: exit status %d\n%s", args, code, talk)
		}
	}
	code, _, talk := f.stint("ps", "--json")
	var e failure
	if err := json.Unmarshal([]byte(talk), &e); err != nil || code != exitUnavailable || e.Code != stint.Unavailable || e.Hint == "" {
		t.Errorf("exit status %d, %v\n%s", code, err, talk)
	}
}

// What needs the file of a store says so, and what to do instead.
func TestWhatNeedsTheStore(t *testing.T) {
	d := newDesk(t)
	f := d.far("STINT_SERVER", "http://127.0.0.1:1")
	for _, args := range []string{"run -- true", "sql x", "db size", "db backup x", "verify --all", "serve", "apply", "agent diff x"} {
		code, out, talk := f.stint(strings.Fields(args)...)
		if code != exitInvalid && code != exitNotFound || code == exitInvalid && (!strings.Contains(talk, "needs a store of this machine") || !strings.Contains(talk, "--context none")) {
			t.Errorf("stint %s: exit status %d\n%s%s", args, code, out, talk)
		}
	}
	for _, args := range []string{"resume x --run", "restart x --run", "resolve x:1.1 --not --run", "approve x.4 --run", "limit x --loops 3 --run", "send x y --run"} {
		f.says(exitInvalid, "a runner of the server takes the session up", strings.Fields(args)...)
	}
}

// A follower of a server's session sees what comes, and its end.
func TestLogsFollowAServer(t *testing.T) {
	d := newDesk(t)
	d.put("stint.yaml", serveYAML)
	r, url := d.serves()
	began, goOn, ended := make(chan stint.ID, 1), make(chan bool), make(chan error, 1)
	go func() {
		agent := engine.Agent{Name: "triage", Loop: stint.AgentFunc(func(_ context.Context, l stint.Loop) (stint.Next, error) {
			l.(stint.Reporter).Log("stdout", []byte("first\n"))
			<-goOn
			l.(stint.Reporter).Log("stdout", []byte("second\n"))
			return stint.Next{End: &stint.End{Reason: "all read"}}, nil
		})}
		_, err := d.e.RunNew(context.Background(), engine.Request{Agent: agent, Name: "chat-1"}, func(c engine.Created) { began <- c.ID })
		ended <- err
	}()
	<-began
	var out, talk buffer
	code := make(chan int)
	go func() { code <- d.far("STINT_SERVER", url).start(t.Context(), &out, &talk, "logs", "chat-1", "-f") }()
	out.until(t, "first")
	close(goOn)
	if got := <-code; got != 0 {
		t.Errorf("exit status %d\n%s", got, talk.String())
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if !strings.Contains(out.String(), "second") || !strings.Contains(talk.String(), "the session has ended: completed, all read") {
		t.Errorf("%s%s", out.String(), talk.String())
	}
	r.ends()
}
