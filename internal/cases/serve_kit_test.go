package cases_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// hookSecret is the secret of every hook of the tests.
const hookSecret = "It's a Secret to Everybody"

// hearers are the agents that deliveries go to. Each writes what it was given, byte by
// byte, to a file that has the name of its session: keep ends there, and hold once there
// is a file go. Both may run again.
const hearers = `agents:
  keep: {kind: exec, protocol: none, effect: read, command: [sh, -c, 'cat > part.$STINT_SESSION && mv part.$STINT_SESSION got.$STINT_SESSION']}
  hold: {kind: exec, protocol: none, effect: read, command: [sh, -c, 'cat > part.$STINT_SESSION && mv part.$STINT_SESSION got.$STINT_SESSION && until [ -e go ]; do sleep 0.05; done; echo done']}
`

// hooked is a site with hearers, further agents and hooks, a line each.
func hooked(t *testing.T, agents string, hooks ...string) *site {
	t.Helper()
	s := newSite(t)
	s.env = []string{"HOOK_SECRET=" + hookSecret}
	s.write("stint.yaml", hearers+agents+"hooks:\n  "+strings.Join(hooks, "\n  ")+"\n")
	return s
}

// server is a server of a site, the real stint.
type server struct {
	*site

	run *under
	log string // the file that has its log
	url string
}

// serves starts a server and waits until it serves. The test ends it, if nobody else does.
func (s *site) serves(args ...string) *server {
	s.t.Helper()
	args = append([]string{"serve", "--addr", "127.0.0.1:0", "--socket", "none", "--log-format", "json"}, args...)
	v := &server{site: s, run: &under{t: s.t, cmd: s.command(stintPath(s.t), args...), done: make(chan struct{})}}
	log, err := os.CreateTemp(s.t.TempDir(), "log-")
	if err != nil {
		s.t.Fatal(err)
	}
	v.log, v.run.cmd.Stderr = log.Name(), log
	v.run.launch()
	s.t.Cleanup(func() { // before its folder is removed, in which its agents may be at work
		_ = v.run.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
		select {
		case <-v.run.done:
		case <-time.After(patience):
			v.t.Errorf("the server did not end\n%s", clip(v.logged()))
		}
	})
	_ = log.Close()
	await(s.t, "server", func() bool {
		v.url = v.said("serving", "url")
		return v.url != "" || v.run.ended()
	})
	if v.url == "" {
		s.t.Fatalf("it does not serve: %s", v.logged())
	}
	return v
}

// logged is all that the server has logged.
func (v *server) logged() string {
	v.t.Helper()
	b, err := os.ReadFile(v.log)
	if err != nil {
		v.t.Fatal(err)
	}
	return string(b)
}

// said is a member of the first line of the log with that message; empty: there is none.
func (v *server) said(msg, member string) string {
	v.t.Helper()
	for l := range strings.Lines(v.logged()) {
		var line map[string]any
		if json.Unmarshal([]byte(l), &line) == nil && line["msg"] == msg { // else the line is not whole yet
			return fmt.Sprint(line[member])
		}
	}
	return ""
}

// ends ends the server as a service manager does, which has to go well.
func (v *server) ends() {
	v.t.Helper()
	if err := v.run.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		v.t.Fatal(err)
	}
	v.run.ends(-1)
	if v.run.cmd.ProcessState.ExitCode() != 0 {
		v.t.Errorf("the server ended with %v\n%s", v.run.cmd.ProcessState, clip(v.logged()))
	}
}

// headers are those of a request.
type headers map[string]string

// with is h and more.
func (h headers) with(more headers) headers {
	out := maps.Clone(h)
	maps.Copy(out, more)
	return out
}

// answer is what a server said.
type answer struct {
	status int
	header http.Header
	text   string
	err    error // it said nothing, or not all
}

// asks sends a request. It may be used by several goroutines.
func (v *server) asks(ctx context.Context, method, path string, body io.Reader, h headers) (a answer) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, v.url+path, body)
	if err != nil {
		return answer{err: err}
	}
	req.Header.Set("Content-Type", "application/json")
	for name, value := range h {
		req.Header.Set(name, value)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return answer{err: err}
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return answer{res.StatusCode, res.Header, string(b), err}
}

// gets is the body of an answer that has to be 200.
func (v *server) gets(path string) string {
	v.t.Helper()
	a := v.asks(v.t.Context(), http.MethodGet, path, http.NoBody, nil)
	if a.err != nil || a.status != http.StatusOK {
		v.t.Fatalf("%s: %d %v %s", path, a.status, a.err, clip(a.text))
	}
	return a.text
}

// orders sends an order to the API, which has to be answered with 200.
func (v *server) orders(path, body string) string {
	v.t.Helper()
	a := v.asks(v.t.Context(), http.MethodPost, path, strings.NewReader(body), nil)
	if a.err != nil || a.status != http.StatusOK {
		v.t.Fatalf("%s: %d %v %s", path, a.status, a.err, clip(a.text))
	}
	return a.text
}

// delivery is what the cases look at in stint.delivery/1.
type delivery struct {
	ID, Hook, Result, Session, Reason, Event, Key string
	Repeated                                      bool
	Order                                         *int64
	Bytes                                         int
	BodyText                                      *string `json:"body_text"`
}

// sends sends a delivery.
func (v *server) sends(hook, body string, h headers) answer {
	return v.asks(v.t.Context(), http.MethodPost, "/hooks/"+hook, strings.NewReader(body), h)
}

// takes sends a delivery that has to get that status, and returns what became of it. What
// is refused leads to nothing.
func (v *server) takes(status int, hook, body string, h headers) (d delivery) {
	v.t.Helper()
	a := v.sends(hook, body, h)
	if a.err != nil || a.status != status {
		v.t.Fatalf("the delivery to %s got %d, want %d: %v %s", hook, a.status, status, a.err, clip(a.text))
	}
	if status < 300 {
		d = unmarshal[delivery](v.t, a.text)
	}
	return d
}

// deliveries is the ledger of a hook, oldest first.
func (v *server) deliveries(hook string) []delivery {
	v.t.Helper()
	all := unmarshal[struct{ Items []delivery }](v.t, v.gets("/v1/hooks/"+hook+"/deliveries?limit=500")).Items
	slices.Reverse(all)
	return all
}

// session is how one stands by the API.
func (v *server) session(id string) shown {
	v.t.Helper()
	return unmarshal[shown](v.t, v.gets("/v1/sessions/"+id))
}

// becomes waits until a session has that status.
func (v *server) becomes(id, status string) shown {
	v.t.Helper()
	var s shown
	await(v.t, "session that is "+status, func() bool {
		s = v.session(id)
		return s.Status == status || s.Status == "failed"
	})
	if s.Status != status {
		v.t.Fatalf("the session is %s (%s), want %s", s.Status, s.Reason, status)
	}
	return s
}

// sessions is how many there are.
func (v *server) sessions() int {
	v.t.Helper()
	return len(unmarshal[struct{ Items []shown }](v.t, v.gets("/v1/sessions?limit=500")).Items)
}

// got waits for the bytes that a hearer was given in a session.
func (s *site) got(id string) string {
	s.t.Helper()
	var b []byte
	await(s.t, "word of the agent", func() (ok bool) {
		var err error
		b, err = os.ReadFile(s.path("got." + id))
		return err == nil
	})
	return string(b)
}

// posted is a body that a service sent.
func posted(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "hook", "testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// mac is the HMAC of the parts by the secret of the hooks, as hex.
func mac(parts ...string) string {
	h := hmac.New(sha256.New, []byte(hookSecret))
	for _, p := range parts {
		h.Write([]byte(p))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// gitHub are the headers that GitHub sends with a body.
func gitHub(id, body string) headers {
	return headers{"X-Hub-Signature-256": "sha256=" + mac(body), "X-GitHub-Delivery": id, "X-GitHub-Event": "push"}
}

// slack are those of Slack, with a time as it writes it.
func slack(at, body string) headers {
	return headers{"X-Slack-Request-Timestamp": at, "X-Slack-Signature": "v0=" + mac("v0:", at, ":", body)}
}

// stripe are those of Stripe.
func stripe(at, body string) headers {
	return headers{"Stripe-Signature": "t=" + at + ",v1=" + mac(at, ".", body) + ",v0=" + strings.Repeat("1", 64)}
}

// now is the time in seconds, so much later.
func now(later time.Duration) string { return fmt.Sprint(time.Now().Add(later).Unix()) }

// rewritten is JSON that was read and written again, as a careless receiver does it.
func rewritten(t *testing.T, body string) string {
	t.Helper()
	var b bytes.Buffer
	for _, r := range compact(t, []byte(body)) {
		if r < 128 {
			b.WriteRune(r)
			continue
		}
		fmt.Fprintf(&b, `\u%04x`, r)
	}
	return b.String()
}
