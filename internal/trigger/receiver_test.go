package trigger_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/hook"
	"github.com/stint-dev/stint/internal/trigger"
	"github.com/stint-dev/stint/store/mem"
)

// What is no delivery of a hook is answered with what is wrong with it, leaves nothing in
// the store, and is remembered for a while.
func TestRefusals(t *testing.T) {
	d := newDesk(t, mem.New())
	d.hooks(hook.Definition{Name: "gh", Scheme: hook.GitHub, Input: "${ body.n }", Limits: hook.Limits{Body: 1000}}, hook.Definition{Name: "std", Scheme: hook.Standard})
	const body = `{"n":1}`
	for _, c := range []struct {
		what    string
		status  int
		hook    string
		body    string
		headers map[string]string
	}{
		{"no such hook", 404, "nobody", body, gitHub("1", body)},
		{"no signature", 401, "gh", body, nil},
		{"a wrong signature", 401, "gh", body, gitHub("1", body+" ")},
		{"another's secret", 401, "gh", body, standard(t, "1", body, time.Now())},
		{"signed long ago", 401, "std", body, standard(t, "1", body, time.Now().Add(-302*time.Second))},
		{"signed for later", 401, "std", body, standard(t, "1", body, time.Now().Add(302*time.Second))},
		{"too long", 413, "gh", strings.Repeat(" ", 1001), nil},
		{"no JSON", 400, "gh", "{", gitHub("1", "{")},
		{"empty", 400, "gh", "", gitHub("1", "")},
		{"nothing that the hook can use", 422, "gh", `{}`, gitHub("1", `{}`)},
	} {
		if c.status == 422 {
			d.hooks(hook.Definition{Name: "gh", Scheme: hook.GitHub, Key: "body.n + 1"})
		}
		a := d.send(c.hook, c.body, c.headers)
		d.is(c.what, a.Status, c.status)
		if ct := a.Header.Get("Content-Type"); ct != "application/problem+json" || strings.Contains(a.Text, plainKey) || strings.Contains(a.Text, whsec) {
			t.Errorf("%s: %s %s", c.what, ct, a.Text)
		}
	}
	get := d.ask(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/hooks/gh", nil))
	d.is("GET", fmt.Sprint(get.Status, get.Header.Get("Allow")), "405POST")
	d.is("sessions", len(d.sessions()), 0)
	d.is("ledger", d.ledger("gh")+d.ledger("std"), "")
	counts, known := d.recv.Counts("gh")
	d.is("counts", fmt.Sprint(known, counts.Answers, len(counts.Refused)), "true map[refused:7] 7")
	d.is("the first", counts.Refused[0].Status, 401)
	if _, known := d.recv.Counts("nobody"); known {
		t.Error("a hook that is not there is counted")
	}
	for range 60 {
		d.send("gh", body, nil)
	}
	counts, _ = d.recv.Counts("gh")
	d.is("counts", fmt.Sprint(counts.Answers, len(counts.Refused)), "map[refused:67] 50")
}

// The limit of a body holds however it is sent, and a body that ends too early is none.
func TestBodies(t *testing.T) {
	d := newDesk(t, mem.New())
	d.hooks(hook.Definition{Limits: hook.Limits{Body: 2000}})
	server := httptest.NewServer(d.mux)
	defer server.Close()
	long := `{"x":"` + strings.Repeat("x", 4000) + `"}`
	for _, c := range []struct {
		what   string
		body   io.Reader
		status int
	}{
		{"a length", strings.NewReader(long), 413},
		{"chunks", io.MultiReader(strings.NewReader(long)), 413},
		{"short chunks", io.MultiReader(strings.NewReader(`{"n":1}`)), 202},
		{"the longest", strings.NewReader(long[:1998] + `"}`), 202},
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"/hooks/h", c.body)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := server.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		d.is(c.what, resp.StatusCode, c.status)
	}
	cut := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/hooks/h", io.MultiReader(strings.NewReader(`{"n":`), broken{}))
	d.is("cut", d.ask(cut).Status, 400)
	d.is("sessions", len(d.sessions()), 2)
}

// broken is a connection that was lost.
type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errors.New("the connection was lost") }

// Each active secret counts, read anew for each delivery; one that cannot be read is the
// server's fault, and stops no other hook.
func TestSecrets(t *testing.T) {
	d := newDesk(t, mem.New())
	active, failed := []string{"old"}, error(nil)
	target := d.target(hook.Definition{Scheme: hook.Bearer})
	target.Secrets = func() ([]string, error) { return active, failed }
	other := d.target(hook.Definition{Name: "other"})
	d.recv.Set([]trigger.Target{target, other})
	n := 0
	bear := func(token string) int {
		n++
		return d.send("h", fmt.Sprintf(`{"n":%d}`, n), map[string]string{"Authorization": "Bearer " + token}).Status
	}
	d.is("before", fmt.Sprint(bear("old"), bear("new")), "202 401")
	active = []string{"new", "old"}
	d.is("both", fmt.Sprint(bear("old"), bear("new"), bear("other")), "202 202 401")
	active = []string{"new"}
	d.is("after", fmt.Sprint(bear("old"), bear("new")), "401 202")
	failed = errors.New("/home/ben/token: no such file")
	a := d.want(503, "h", `{"n":0}`, map[string]string{"Authorization": "Bearer new"})
	if strings.Contains(a.Text, "ben") || a.Header.Get("Retry-After") == "" {
		t.Errorf("got %s %v", a.Text, a.Header)
	}
	d.want(202, "other", `{}`, nil)
}

// Handshakes of senders are answered and leave nothing behind.
func TestHandshakes(t *testing.T) {
	d := newDesk(t, mem.New())
	d.hooks(hook.Definition{Name: "gh", Scheme: hook.GitHub}, hook.Definition{Name: "slack", Scheme: hook.Slack})
	ping := given(t, "github-ping.json")
	headers := gitHub("1", ping)
	headers["X-GitHub-Event"] = "ping"
	d.is("ping", d.want(200, "gh", ping, headers).Text, "pong")
	challenge := given(t, "slack-challenge.json")
	d.want(401, "slack", challenge, nil)
	ts := fmt.Sprint(time.Now().Unix())
	mac := hmac.New(sha256.New, []byte(plainKey))
	mac.Write([]byte("v0:" + ts + ":" + challenge))
	a := d.want(200, "slack", challenge, map[string]string{"X-Slack-Request-Timestamp": ts, "X-Slack-Signature": "v0=" + hex.EncodeToString(mac.Sum(nil))})
	var asked struct{ Challenge string }
	if err := json.Unmarshal([]byte(challenge), &asked); err != nil || asked.Challenge == "" || a.Text != asked.Challenge || a.Header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("%v: got %q", err, a.Text)
	}
	d.is("ledger", d.ledger("gh")+d.ledger("slack"), "")
	counts, _ := d.recv.Counts("gh")
	d.is("counts", counts.Answers, "map[answered:1]")
}

// given is a body that a service sent.
func given(t testing.TB, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "hook", "testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// A hook takes so many deliveries in a time, and says when it takes more. What is not
// genuine uses nothing up, and setting the hooks again gives nothing back.
func TestRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, mem.New())
		def := hook.Definition{Scheme: hook.Standard, When: "body.n > 0", Limits: hook.Limits{Rate: hook.Rate{Count: 3, Per: time.Minute}}}
		d.hooks(def)
		n := 0
		say := func() answered {
			n++
			body := fmt.Sprintf(`{"n":%d}`, n)
			return d.send("h", body, standard(t, fmt.Sprint(n), body, time.Now()))
		}
		for range 10 {
			d.want(401, "h", `{"n":0}`, nil)
			d.want(200, "h", `{"n":0}`, standard(t, "no", `{"n":0}`, time.Now()))
		}
		d.is("three", fmt.Sprint(say().Status, say().Status, say().Status), "202 202 202")
		d.hooks(def)
		a := say()
		d.is("one more", fmt.Sprint(a.Status, " ", a.Header.Get("Retry-After")), "429 20")
		<-time.After(21 * time.Second)
		d.is("later", fmt.Sprint(say().Status, say().Status), "202 429")
		d.is("sessions", len(d.sessions()), 4)
	})
}

// There are never more open sessions of a hook than may be, however many come at once.
// Messages and repeats need no room, and neither does what replaces.
func TestConcurrency(t *testing.T) {
	onEach(t, func(t *testing.T, d *desk) {
		limits := hook.Limits{Concurrency: 3}
		def := hook.Definition{Key: `body.key ?? ""`, Limits: limits, Input: "${ body.text ?? \"\" }"}
		d.hooks(def, hook.Definition{Name: "other"})
		d.want(202, "other", `{}`, nil)
		var wg sync.WaitGroup
		var made, refused atomic.Int32
		var first atomic.Value
		for i := range 40 {
			wg.Go(func() {
				switch a := d.send("h", fmt.Sprintf(`{"key":"k%d"}`, i), nil); {
				case a.Status == 202:
					made.Add(1)
					first.CompareAndSwap(nil, a)
				case a.Status == 429 && a.Header.Get("Retry-After") == "10":
					refused.Add(1)
				default:
					t.Errorf("got %d %s", a.Status, a.Text)
				}
			})
		}
		wg.Wait()
		d.is("made, refused", fmt.Sprint(made.Load(), refused.Load()), "3 37")
		one := first.Load().(answered)
		d.is("a repeat", d.send("h", fmt.Sprintf(`{"key":%q}`, one.Key), nil).Status, 200)
		d.is("a message", d.send("h", fmt.Sprintf(`{"key":%q,"text":"end"}`, one.Key), nil).Status, 202)
		d.close()
		d.open() // the next server counts what is there
		d.hooks(def)
		d.want(429, "h", `{}`, nil)
		d.run(one.Delivered.Session)
		waitUntil(t, func() bool { return d.send("h", `{"text":"end"}`, nil).Status == 202 })
		d.want(429, "h", `{"n":1}`, nil)
		def.Busy, def.Key = hook.Replace, `"r"`
		d.hooks(def)
		d.want(429, "h", `{"n":2}`, nil)
		for _, row := range d.sessions() {
			if row.Session.Trigger.Ref == "h" && !row.Session.Status.Ended() {
				if err := d.store.Send(t.Context(), row.Session.ID, stint.Message{ID: "stop", Kind: stint.Stop, From: "human:ben"}); err != nil {
					t.Fatal(err)
				}
				if err := d.e.Settle(t.Context(), row.Session.ID); err != nil {
					t.Fatal(err)
				}
			}
		}
		def.Limits.Concurrency = 1
		d.hooks(def)
		waitUntil(t, func() bool { return d.send("h", `{"n":3}`, nil).Status == 202 })
		d.want(202, "h", `{"n":4}`, nil)
	})
}

// waitUntil asks until it is so.
func waitUntil(t *testing.T, so func() bool) {
	t.Helper()
	for range 1_000_000 {
		if so() {
			return
		}
	}
	t.Fatal("it never was so")
}

// Senders that are slow are in nobody's way, however many they are: what has not come takes
// no place, and what is all bodies' shared memory is given back.
func TestSlowSenders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, mem.New())
		d.hooks(hook.Definition{})
		var wg sync.WaitGroup
		var slow []*io.PipeWriter
		for range 2 * 512 {
			r, w := io.Pipe()
			slow = append(slow, w)
			wg.Go(func() {
				d.ask(httptest.NewRequestWithContext(d.Context(), http.MethodPost, "/hooks/h", r))
			})
			if _, err := io.WriteString(w, "{"); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		for i := range 10 {
			d.want(202, "h", fmt.Sprintf(`{"n":%d}`, i), nil)
		}
		for _, w := range slow {
			_ = w.CloseWithError(errors.New("it hung up"))
		}
		wg.Wait()
		d.want(202, "h", `{"n":11}`, nil)
	})
}

// Bodies share a memory that is bounded.
func TestHeldBodies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, mem.New())
		d.hooks(hook.Definition{})
		d.recv.Hold(2 << 20)
		var wg sync.WaitGroup
		var slow []*io.PipeWriter
		for range 4 {
			r, w := io.Pipe()
			slow = append(slow, w)
			wg.Go(func() {
				d.ask(httptest.NewRequestWithContext(d.Context(), http.MethodPost, "/hooks/h", r))
			})
			wg.Go(func() { _, _ = io.CopyN(w, zeros{}, 512<<10-100) }) // it may be sent away
		}
		synctest.Wait()
		d.want(429, "h", `{}`, nil)
		for _, w := range slow {
			_ = w.CloseWithError(errors.New("it hung up"))
		}
		wg.Wait()
		d.want(202, "h", `{}`, nil)
	})
}

// zeros never ends.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// More deliveries than the server has places for are sent away.
func TestPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &held{mem.New(), make(chan error)}
		d := newDesk(t, store)
		d.hooks(hook.Definition{})
		var wg sync.WaitGroup
		for i := range 512 {
			wg.Go(func() { d.want(202, "h", fmt.Sprintf(`{"n":%d}`, i), nil) })
		}
		synctest.Wait()
		d.is("no place", fmt.Sprint(d.send("h", `{}`, nil).Status), "429")
		close(store.gate)
		wg.Wait()
		d.want(202, "h", `{}`, nil)
	})
}

// jammed is a store that takes nothing while it says so.
type jammed struct {
	*mem.Store

	full atomic.Bool
}

func (j *jammed) err() error {
	if j.full.Load() {
		return &stint.Error{Code: stint.Unavailable, Op: "commit", Err: errors.New("the disk is full")}
	}
	return nil
}

func (j *jammed) Create(ctx context.Context, b stint.Batch, c stint.Claim) (stint.Lease, error) {
	if err := j.err(); err != nil {
		return stint.Lease{}, err
	}
	return j.Store.Create(ctx, b, c)
}

func (j *jammed) Send(ctx context.Context, id stint.ID, m stint.Message) error {
	if err := j.err(); err != nil {
		return err
	}
	return j.Store.Send(ctx, id, m)
}

func (j *jammed) Append(ctx context.Context, l stint.Lease, b stint.Batch, done func(error)) {
	if err := j.err(); err != nil {
		done(err)
		return
	}
	j.Store.Append(ctx, l, b, done)
}

// A store that takes nothing is the server's fault and passes: 503 whatever the delivery
// would have done, nothing of it is written, and it is new once there is room.
func TestFullStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &jammed{Store: mem.New()}
		d := newDesk(t, store)
		say := map[string]string{"created": `{"n":1}`, "messaged": `{"n":1,"key":"open"}`, "dropped": `{"n":1,"key":"late"}`, "ignored": `{"n":0}`, "replaced": `{"n":1,"key":"open"}`}
		d.hooks(hook.Definition{Name: "h", When: "body.n > 0", Key: `body.key ?? ""`, Order: "body.n", Late: hook.DropLate}, hook.Definition{Name: "replace", Key: "body.key", Busy: hook.Replace})
		d.want(202, "h", `{"n":1,"key":"open","first":true}`, nil)
		d.want(202, "h", `{"n":9,"key":"late","first":true}`, nil)
		old := d.want(202, "replace", `{"n":1,"key":"open","first":true}`, nil)
		before := d.ledger("h") + d.ledger("replace")
		store.full.Store(true)
		for what, body := range say {
			name := map[bool]string{true: "replace", false: "h"}[what == "replaced"]
			a := d.send(name, body, nil)
			d.is(what, a.Status, 503)
			d.is(what+": come again", a.Header.Get("Retry-After"), "5")
		}
		d.is("ledger", d.ledger("h")+d.ledger("replace"), before)
		d.is("sessions", len(d.sessions()), 3)
		row, err := store.Session(t.Context(), old.Delivered.Session)
		if err != nil || row.Session.Status.Ended() || row.Unread > 0 {
			t.Errorf("the session that was to be replaced: %v %v, %d messages", row.Session.Status, err, row.Unread)
		}
		store.full.Store(false)
		<-time.After(time.Second) // the system journal goes on by itself
		for what, body := range say {
			name := map[bool]string{true: "replace", false: "h"}[what == "replaced"]
			a := d.send(name, body, nil)
			if want := map[string]int{"dropped": 200, "ignored": 200}[what]; a.Status != max(want, 200) && a.Status != 202 {
				t.Errorf("%s: %d %s", what, a.Status, a.Text)
			}
		}
		d.is("sessions", len(d.sessions()), 5)
	})
}

// A sender that hangs up takes nothing back: what it asked for is done, once.
func TestHangUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &held{mem.New(), make(chan error)}
		d := newDesk(t, store)
		d.hooks(hook.Definition{})
		ctx, hangUp := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			d.ask(httptest.NewRequestWithContext(ctx, http.MethodPost, "/hooks/h", strings.NewReader(`{"n":1}`)))
		})
		synctest.Wait()
		hangUp()
		synctest.Wait()
		close(store.gate)
		wg.Wait()
		d.want(200, "h", `{"n":1}`, nil)
		d.is("sessions", len(d.sessions()), 1)
	})
}

// However deliveries come, each genuine one has exactly one session.
func TestStorm(t *testing.T) {
	onEach(t, func(t *testing.T, d *desk) {
		const all, senders = 2000, 128
		d.hooks(hook.Definition{Scheme: hook.Standard})
		r := rand.New(rand.NewPCG(1, 2))
		type shot struct {
			body    string
			headers map[string]string
			status  int // 202 for one that may be a repeat
		}
		var shots []shot
		genuine := 0
		make1 := func(n int, at time.Time) shot {
			body := fmt.Sprintf(`{"n":%d,"x":%q}`, n, strings.Repeat("é", 100))
			return shot{body, standard(t, fmt.Sprintf("msg_%d", n), body, at), 202}
		}
		for i := range all {
			switch k := i % 100; {
			case k < 70:
				shots = append(shots, make1(genuine, time.Now()))
				genuine++
			case k < 90:
				shots = append(shots, make1(r.IntN(genuine), time.Now()))
			case k < 95:
				s := make1(i, time.Now())
				s.body, s.status = s.body+" ", 401
				shots = append(shots, s)
			default:
				s := make1(i, time.Now().Add(-time.Hour))
				s.status = 401
				shots = append(shots, s)
			}
		}
		r.Shuffle(len(shots), func(i, j int) { shots[i], shots[j] = shots[j], shots[i] })
		var next, made, repeated, wrong atomic.Int32
		var sessions sync.Map
		var wg sync.WaitGroup
		for range senders {
			wg.Go(func() {
				for i := next.Add(1) - 1; int(i) < len(shots); i = next.Add(1) - 1 {
					s := shots[i]
					switch a := d.send("h", s.body, s.headers); {
					case s.status == 202 && a.Status == 202 && !a.Repeated:
						made.Add(1)
					case s.status == 202 && a.Status == 200 && a.Repeated:
						repeated.Add(1)
					case s.status == 401 && a.Status == 401:
						wrong.Add(1)
						continue
					default:
						t.Errorf("got %d %s, want %d", a.Status, a.Text, s.status)
						continue
					}
					if was, there := sessions.LoadOrStore(s.headers["webhook-id"], s.body); there && was != s.body {
						t.Errorf("%v has two bodies", s.headers)
					}
				}
			})
		}
		wg.Wait()
		d.is("made, repeated, wrong", fmt.Sprint(made.Load(), repeated.Load(), wrong.Load()), fmt.Sprint(genuine, all/5, all/10))
		rows := d.sessions()
		d.is("sessions", len(rows), genuine)
		bodies := map[string]bool{}
		for i := range rows {
			es, err := d.store.Entries(t.Context(), stint.Range{Session: rows[i].Session.ID, Limit: 1})
			if err != nil || len(es) != 1 || bodies[string(es[0].Body)] {
				t.Fatalf("session %s: %d entries, %v, or one of a body that has another", rows[i].Session.ID, len(es), err)
			}
			bodies[string(es[0].Body)] = true
		}
	})
}

// Bodies of real services get to the session as they came, whatever is in them.
func TestRealBodies(t *testing.T) {
	onEach(t, func(t *testing.T, d *desk) {
		d.hooks(hook.Definition{Scheme: hook.GitHub, Limits: hook.Limits{Body: 2 << 20}})
		bodies := []string{given(t, "github-emoji.json"), given(t, "github-escapes.json"), given(t, "alertmanager-mixed.json")}
		bodies = append(bodies, `{"x":"`+strings.Repeat("x", 1<<20)+`"}`)
		for i, body := range bodies {
			a := d.want(202, "h", body, gitHub(fmt.Sprint(i), body))
			row, err := d.store.Session(t.Context(), a.Delivered.Session)
			if err != nil {
				t.Fatal(err)
			}
			es, err := d.store.Entries(t.Context(), stint.Range{Session: row.Session.ID, Limit: 1})
			if err != nil {
				t.Fatal(err)
			}
			got := es[0].Body
			if !es[0].Blob.IsZero() {
				if got, err = d.store.Blob(t.Context(), row.Session.Family, es[0].Blob); err != nil {
					t.Fatal(err)
				}
			}
			if !bytes.Equal(got, []byte(body)) {
				t.Errorf("body %d is %d bytes long, and not as it came", i, len(got))
			}
		}
	})
}
