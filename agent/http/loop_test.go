package http_test

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stint-dev/stint"
	agenthttp "github.com/stint-dev/stint/agent/http"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/journal"
)

// refunder is the agent of the transcript: a step of each class, then a wait.
func refunder(c *counter) func(k *talk) {
	return func(k *talk) {
		k.say(`{"type":"progress","text":"looking up A-18"}`)
		k.say(`{"type":"log","text":"asked for A-18"}`)
		k.step("order", "read", c.do("order"))
		k.say(`{"type":"log","level":"warn","text":"it is late"}`)
		k.step("refund", "once", c.do("refund"))
		k.step("mail", "idempotent", c.do("mail"))
		k.say(`{"type":"state","patch":{"refunded":["A-18"]}}`)
		k.say(`{"type":"end","outcome":"complete","headline":"refunded A-18","reason":"done","result":{"receipt":"r-991"}}`)
	}
}

func TestLoop(t *testing.T) {
	t.Parallel()
	var c counter
	s := serve(t, refunder(&c))
	r := newRig(t, newAgent(t, s, nil), nil)
	ses := r.run()
	if ses.Status != stint.Completed || ses.Reason != "done" || ses.Totals.Steps != 3 || ses.At.Attempt != 1 {
		t.Errorf("the session is %s (%s) after %+v", ses.Status, ses.Reason, ses.Totals)
	}
	if n := len(s.all()); n != 4 {
		t.Errorf("it took %d requests, want one and one for each step", n)
	}
	if got := c.done(); len(got) != 3 {
		t.Errorf("the effects are %q", got)
	}
	for i, c := range c.done() {
		_, key, _ := strings.Cut(c, " ")
		if want := journal.Key(r.id, stint.Position{Loop: 1, Step: i + 1}); key != want || s.all()[i+1].header.Get("Idempotency-Key") != want {
			t.Errorf("step %d was done under %s, and its request has %s, want %s", i+1, key, s.all()[i+1].header.Get("Idempotency-Key"), want)
		}
	}
	log := strings.Join(r.entries(stint.OutputWritten), "\n")
	for _, once := range []string{"asked for A-18", "warn: it is late"} {
		if strings.Count(log, once) != 1 {
			t.Errorf("the log is\n%s\nwant %q in it once", log, once)
		}
	}
	contains(t, "the journal", r.journal(), `{"refunded":["A-18"]}`, `{"receipt":"r-991"}`, `"refund done"`)
	golden(t, "loop", s, r.id)
}

// golden compares what was said with testdata/NAME.txt, with names for what differs from
// one time to the next.
func golden(t *testing.T, name string, s *server, id stint.ID) {
	t.Helper()
	var b strings.Builder
	for i, x := range s.all() {
		if i > 0 {
			b.WriteString("\n")
		}
		b.WriteString("> POST /agent HTTP/1.1\n")
		for _, h := range []string{"Content-Type", "Idempotency-Key", "Stint-Session", "Stint-Epoch", "Stint-Loop", "Stint-Attempt", "Stint-Version",
			"Webhook-Id", "Webhook-Timestamp", "Webhook-Signature"} {
			fmt.Fprintf(&b, "> %s: %s\n", h, x.header.Get(h))
		}
		b.WriteString(">\n")
		for line := range strings.Lines(x.body) {
			b.WriteString("> " + line)
		}
		fmt.Fprintf(&b, "< HTTP/1.1 %d %s\n< Content-Type: application/x-ndjson\n<\n", x.status, http.StatusText(x.status))
		for line := range strings.Lines(x.answer.String()) {
			b.WriteString("< " + line)
		}
	}
	got := strings.ReplaceAll(b.String(), id.String(), "SESSION")
	got = regexp.MustCompile(`v1,\S+`).ReplaceAllString(got, "v1,SIGNATURE")
	got = regexp.MustCompile(`Timestamp: \d+`).ReplaceAllString(got, "Timestamp: SECONDS")
	got = regexp.MustCompile(`"at":"[^"]*"`).ReplaceAllString(got, `"at":"TIME"`)
	keys := map[string]string{}
	got = regexp.MustCompile(`[0-9a-hjkmnp-tv-z]{52}`).ReplaceAllStringFunc(got, func(k string) string {
		if keys[k] == "" {
			keys[k] = fmt.Sprintf("KEY-%d", len(keys)+1)
		}
		return keys[k]
	})
	path := filepath.Join("testdata", name+".txt")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("the transcript is\n%s\nand %s has\n%s", got, path, want)
	}
}

// TestReplay has a first attempt that ends after two of three steps. The second one gets
// their results from the journal, byte for byte, and does neither of them again.
func TestReplay(t *testing.T) {
	t.Parallel()
	var c counter
	s := serve(t, func(k *talk) {
		k.step("order", "read", c.do("order"))
		k.step("refund", "once", func(key string) string { c.do("refund")(key); return `"result":{ "cents": 12345678901234567890 }` })
		if k.loop.Attempt == 1 {
			return // as a function that dies: no end
		}
		k.step("mail", "idempotent", c.do("mail"))
		k.say(`{"type":"end","outcome":"complete"}`)
	})
	r := newRig(t, newAgent(t, s, nil), nil)
	if ses := r.run(); ses.Status != stint.Completed || ses.At.Attempt != 2 {
		t.Fatalf("the session is %s (%s) at attempt %d", ses.Status, ses.Reason, ses.At.Attempt)
	}
	if got := c.done(); len(got) != 3 {
		t.Errorf("the effects are %q", got)
	}
	var cached int
	for _, x := range s.all() {
		if x.header.Get("Stint-Attempt") == "2" && strings.Contains(x.body, `{"type":"result","id":2,"result":{"cents":12345678901234567890},"cached":true}`) {
			cached++
		}
	}
	if cached != 2 { // the one that declares mail, and the one that does it
		t.Errorf("%d requests of the second attempt have the refund's result", cached)
	}
	contains(t, "the first error", strings.Join(r.entries(stint.LoopFailed), "\n"), "the agent ended its response without an end message")
	// Requests at the same place have the same key in both attempts.
	if a, b := s.all()[0], s.all()[3]; b.header.Get("Stint-Attempt") != "2" || a.header.Get("Idempotency-Key") != b.header.Get("Idempotency-Key") ||
		a.header.Get("Webhook-Id") == b.header.Get("Webhook-Id") {
		t.Errorf("the first requests of the attempts have the headers\n%v\n%v", a.header, b.header)
	}
}

// TestGroup does three steps at once, each in a request of its own, and waits for each
// other to show that.
func TestGroup(t *testing.T) {
	t.Parallel()
	var c counter
	var here sync.WaitGroup
	here.Add(3)
	s := serve(t, func(k *talk) {
		k.say(`{"type":"steps","steps":[{"id":7,"name":"a","effect":"once"},{"id":8,"name":"b","effect":"read"},{"id":9,"name":"c","effect":"idempotent","input":[1]}]}`)
		k.id = 9
		open := false
		for _, id := range []int64{7, 8, 9} {
			switch a := k.answers[id]; a.Type {
			case "":
				panic(stop{})
			case "park":
				open = true
				continue
			}
			k.outcome(id, func(key string) string {
				here.Done()
				here.Wait()
				k.say(fmt.Sprintf(`{"type":"log","text":"doing %d"}`, id))
				if id == 8 {
					return `"error":"no b","definite":true`
				}
				return c.do(fmt.Sprint(id))(key)
			})
		}
		if open {
			k.say(`{"type":"state","patch":{}}`) // one that does not know better: it is of no account
			return
		}
		k.say(fmt.Sprintf(`{"type":"state","replace":[%s,%q,%s]}`, k.answers[7].Result, k.answers[8].Error, k.answers[9].Result))
		k.say(`{"type":"end","outcome":"complete"}`)
	})
	r := newRig(t, newAgent(t, s, nil), nil)
	if ses := r.run(); ses.Status != stint.Completed || len(s.all()) != 5 {
		t.Fatalf("the session is %s (%s) after %d requests", ses.Status, ses.Reason, len(s.all()))
	}
	contains(t, "the journal", r.journal(), `["7 done","no b","9 done"]`)
	for _, x := range s.all()[1:4] {
		if strings.Count(x.body, `"type":"proceed"`) != 1 || strings.Count(x.body, `"type":"park"`) != 2 {
			t.Errorf("a request of the group is\n%s", x.body)
		}
	}
	if log := strings.Join(r.entries(stint.OutputWritten), "\n"); strings.Count(log, "doing") != 3 {
		t.Errorf("the log is\n%s", log)
	}
}

// TestPythonSDK has a program of the exec protocol behind a URL, as CGI has it: a process
// for each request, which reads the request and writes the response.
func TestPythonSDK(t *testing.T) {
	t.Parallel()
	effects := filepath.Join(t.TempDir(), "effects")
	lib, err := filepath.Abs("../../sdk/python")
	if err != nil {
		t.Fatal(err)
	}
	s := raw(t, func(w http.ResponseWriter, r *http.Request, body []byte) {
		w.Header().Set("Content-Type", "application/x-ndjson")
		cmd := exec.CommandContext(r.Context(), "python3", "../exec/testdata/sdk.py", "clerk")
		cmd.Env = append(os.Environ(), "PYTHONPATH="+lib, "PYTHONDONTWRITEBYTECODE=1", "EFFECTS="+effects)
		cmd.Stdin, cmd.Stdout = bytes.NewReader(body), w
		_ = cmd.Run() // it exits with 1 where it waits for another request
	})
	r := newRig(t, newAgent(t, s, nil), nil)
	if ses := r.run(); ses.Status != stint.Completed || ses.Reason != "paid" || ses.At.Attempt != 2 || ses.Totals.Usage.Input != 21 {
		t.Fatalf("the session is %s (%s) at attempt %d with %+v", ses.Status, ses.Reason, ses.At.Attempt, ses.Totals)
	}
	got, err := os.ReadFile(effects)
	if want := "charge " + journal.Key(r.id, stint.Position{Loop: 1, Step: 2}) + "\nmail\n"; err != nil || string(got) != want {
		t.Errorf("the effects are %q, %v, want %q", got, err, want)
	}
}

// TestGroupOfOne goes on in the response that has its result.
func TestGroupOfOne(t *testing.T) {
	t.Parallel()
	var c counter
	s := serve(t, func(k *talk) {
		k.say(`{"type":"steps","steps":[{"id":7,"name":"a"}]}`)
		k.outcome(7, c.do("a"))
		k.say(`{"type":"end","outcome":"complete"}`)
	})
	r := newRig(t, newAgent(t, s, nil), nil)
	if ses := r.run(); ses.Status != stint.Completed || len(s.all()) != 2 || len(c.done()) != 1 {
		t.Fatalf("the session is %s (%s) after %d requests", ses.Status, ses.Reason, len(s.all()))
	}
}

// TestEpochRises shows the fencing token over two leases.
func TestEpochRises(t *testing.T) {
	t.Parallel()
	s := serve(t, func(k *talk) {
		if k.loop.Loop == 1 {
			k.say(`{"type":"end","outcome":"wait","wait":{"for":"message","what":"the next order"}}`)
			return
		}
		k.say(fmt.Sprintf(`{"type":"state","replace":%d}`, k.loop.Epoch))
		k.say(`{"type":"end","outcome":"complete"}`)
	})
	r := newRig(t, newAgent(t, s, nil), nil)
	if ses := r.run(); ses.Status != stint.Waiting || ses.Wait.For != stint.ForMessage {
		t.Fatalf("the session is %s", ses.Status)
	}
	r.send(stint.Message{ID: "m-2", Kind: stint.Prompt, From: "human:ana", Body: []byte("refund A-19")})
	if ses := r.run(); ses.Status != stint.Completed {
		t.Fatalf("the session is %s (%s)", ses.Status, ses.Reason)
	}
	all := s.all()
	if len(all) != 2 || all[0].header.Get("Stint-Epoch") >= all[1].header.Get("Stint-Epoch") || all[0].header.Get("Stint-Epoch") == "0" {
		t.Errorf("the epochs are %s and %s", all[0].header.Get("Stint-Epoch"), all[1].header.Get("Stint-Epoch"))
	}
	contains(t, "the second loop", all[1].body, `"text":"refund A-19"`, `"epoch":`+all[1].header.Get("Stint-Epoch"))
}

// TestDiesInStep has a server that breaks the connection while a step is done: before it
// answers at all, or after the head of its response.
func TestDiesInStep(t *testing.T) {
	t.Parallel()
	for _, effect := range []string{"read", "idempotent", "once"} {
		for _, early := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/early=%v", effect, early), func(t *testing.T) {
				t.Parallel()
				var c counter
				var died atomic.Bool
				s := serve(t, func(k *talk) {
					if early && len(k.answers) > 1 && died.CompareAndSwap(false, true) {
						c.do("charge")(k.answers[1].Key)
						panic(http.ErrAbortHandler)
					}
					k.step("charge", effect, func(key string) string {
						c.do("charge")(key)
						if died.CompareAndSwap(false, true) {
							panic(http.ErrAbortHandler)
						}
						return `"result":1`
					})
					k.say(`{"type":"end","outcome":"complete"}`)
				})
				r := newRig(t, newAgent(t, s, nil), nil)
				ses := r.run()
				if effect == "once" {
					if ses.Status != stint.Waiting || ses.Wait.For != stint.ForDoubt || len(c.done()) != 1 {
						t.Fatalf("the session is %s (%s), %+v, after the effects %q", ses.Status, ses.Reason, ses.Wait, c.done())
					}
					contains(t, "what is asked", ses.Wait.What, "did it happen?", "while charge was under way")
					return
				}
				done := c.done()
				if ses.Status != stint.Completed || len(done) != 2 || done[0] != done[1] {
					t.Fatalf("the session is %s (%s) after the effects %q", ses.Status, ses.Reason, done)
				}
			})
		}
	}
}

// TestSettledByRule goes on in the same attempt with what the rule said of a step in doubt.
func TestSettledByRule(t *testing.T) {
	t.Parallel()
	s := serve(t, func(k *talk) {
		got := k.step("charge", "once", func(string) string { panic(http.ErrAbortHandler) })
		k.say(fmt.Sprintf(`{"type":"end","outcome":"complete","result":%s}`, got))
	})
	r := newRig(t, newAgent(t, s, nil), func(a *engine.Agent) {
		a.Doubt = func(string) engine.Doubt { return engine.Doubt{Unknown: true} }
	})
	if ses := r.run(); ses.Status != stint.Completed || ses.At.Attempt != 1 {
		t.Fatalf("the session is %s (%s) at attempt %d", ses.Status, ses.Reason, ses.At.Attempt)
	}
	contains(t, "the journal", r.journal(), `session.ended {"outcome":"completed"} {"stint":"unknown"`)
}

// TestStopInStep ends a session while its step is under way: the request is canceled.
func TestStopInStep(t *testing.T) {
	t.Parallel()
	var r *rig
	gone := make(chan struct{})
	s := serve(t, func(k *talk) {
		k.step("charge", "once", func(string) string {
			r.send(stint.Message{ID: "m-kill", Kind: stint.Kill, From: "human:ana"})
			<-k.r.Context().Done()
			close(gone)
			return `"result":1`
		})
	})
	r = newRig(t, newAgent(t, s, nil), nil)
	if ses := r.run(); ses.Status != stint.Canceled {
		t.Fatalf("the session is %s (%s)", ses.Status, ses.Reason)
	}
	<-gone
}

// TestPauseBetweenSteps stops re-entering: no request says so, and going on begins anew.
func TestPauseBetweenSteps(t *testing.T) {
	t.Parallel()
	var c counter
	var r *rig
	s := serve(t, func(k *talk) {
		k.step("order", "read", func(key string) string {
			if k.loop.Attempt == 1 && len(c.done()) == 0 {
				r.send(stint.Message{ID: "m-pause", Kind: stint.Pause, From: "human:ana"})
				r.heard()
			}
			return c.do("order")(key)
		})
		k.step("refund", "once", c.do("refund"))
		k.say(`{"type":"end","outcome":"complete"}`)
	})
	r = newRig(t, newAgent(t, s, nil), nil)
	ses := r.run()
	if ses.Status != stint.Waiting || ses.Wait.For != stint.ForOperator {
		t.Fatalf("the session is %s (%s)", ses.Status, ses.Reason)
	}
	before := len(s.all())
	r.send(stint.Message{ID: "m-resume", Kind: stint.Resume, From: "human:ana"})
	if ses = r.run(); ses.Status != stint.Completed || ses.At.Attempt != 1 || len(c.done()) != 2 || before > 2 {
		t.Fatalf("the session is %s (%s) at attempt %d after the effects %q and %d requests", ses.Status, ses.Reason, ses.At.Attempt, c.done(), before)
	}
}

// TestAgentsOwnError passes on what the agent says of a step and of the loop.
func TestAgentsOwnError(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	s := serve(t, func(k *talk) {
		k.step("order", "read", func(string) string {
			asked.Add(1)
			return `"error":"no such order","final":true`
		})
		if k.answers[1].Type == "proceed" {
			return // it leaves over the error
		}
		k.Error("the loop went on after the error")
	})
	r := newRig(t, newAgent(t, s, nil), nil)
	if ses := r.run(); ses.Status != stint.Failed || !strings.HasPrefix(ses.Reason, "no such order") || asked.Load() != 1 {
		t.Fatalf("the session is %s (%s) after %d requests for the order", ses.Status, ses.Reason, asked.Load())
	}
}

// TestGoesOnAfterError has an agent that catches the error of a step, which no journal
// has, and gets it again in the requests that follow.
func TestGoesOnAfterError(t *testing.T) {
	t.Parallel()
	var c counter
	s := serve(t, func(k *talk) {
		k.step("order", "read", func(string) string { return `"error":"no such order"` })
		k.step("mail", "idempotent", c.do("mail"))
		k.say(fmt.Sprintf(`{"type":"end","outcome":"complete","reason":%q}`, k.answers[1].Error))
	})
	r := newRig(t, newAgent(t, s, nil), nil)
	if ses := r.run(); ses.Status != stint.Completed || ses.Reason != "no such order" || ses.At.Attempt != 1 {
		t.Fatalf("the session is %s (%s)", ses.Status, ses.Reason)
	}
	if !slices.ContainsFunc(s.all(), func(x *exchange) bool {
		return strings.Contains(x.body, `{"type":"result","id":1,"error":"no such order","cached":true}`)
	}) {
		t.Error("no request has the error")
	}
}

// TestConfiguredEffect lets the configuration win over the agent.
func TestConfiguredEffect(t *testing.T) {
	t.Parallel()
	var c counter
	s := serve(t, func(k *talk) {
		k.step("mail", "once", c.do("mail"))
		k.say(`{"type":"end","outcome":"complete"}`)
	})
	r := newRig(t, newAgent(t, s, func(s *agenthttp.Spec) { s.Effects = map[string]stint.Effect{"mail": stint.Read} }), nil)
	if ses := r.run(); ses.Status != stint.Completed {
		t.Fatalf("the session is %s (%s)", ses.Status, ses.Reason)
	}
	if got := r.entries(stint.StepRequested); len(got) != 0 {
		t.Errorf("a read step has the intents %q", got)
	}
}
