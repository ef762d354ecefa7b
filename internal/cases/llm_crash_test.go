package cases_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
)

// TestC01CallWithoutResult: stint is killed while a tool runs. The model gets an explicit
// result for the call, the same one ever after, and no request is refused
// (crush#1206, copilot-cli#3183).
func TestC01CallWithoutResult(t *testing.T) {
	inFormats(t, func(t *testing.T, api string) {
		s := llm(t, api, steps(t, `{"steps":[{"tools":[{"id":"toolu_1","name":"effect","input":{"step":1}}]},{"text":"finished"},{"text":"again"}]}`),
			agent{keys: "interactive: true\nin_doubt: {effect: unknown}", tools: []toolSpec{{name: "effect", env: map[string]string{"EFFECT_SLEEP_BEFORE": "60s"}}}})
		u := s.start("run", "case", "-p", "Go.")
		await(t, "call", func() bool { return s.begun() == 1 || u.ended() })
		u.kill()
		id := s.only().ID
		for i, drive := range [][]string{{"resume", id, "--run"}, {"send", id, "And now?", "--run"}} {
			s.gives(6, drive...)
			s.is(s.only(), "waiting", "message: ", []string{"finished", "again"}[i])
			got := results(t, api, s.requests(2 + i)[1+i])
			if len(got) != 1 || got[0].ID != "toolu_1" || !strings.Contains(got[0].Text, "interrupted") || !strings.Contains(got[0].Text, "not known") {
				t.Errorf("the model got %+v", got)
			}
		}
		s.did()
		if s.begun() != 1 {
			t.Errorf("the tool was begun %d times", s.begun())
		}
		repairs := 0
		for _, e := range s.journal(id) {
			if strings.Contains(string(e.Data)+e.body(), `"unknown"`) && e.Kind == "step.resolved" {
				repairs++
			}
		}
		if repairs != 1 {
			t.Errorf("the repair is in the journal %d times\n%s", repairs, s.must("logs", id))
		}
		s.verified()
	})
}

// TestC10ResultsStay: a session is stopped between loops and goes on. What its calls gave
// is sent again byte for byte, and stands in the journal as it did (qwen-code#9573).
func TestC10ResultsStay(t *testing.T) {
	inFormats(t, func(t *testing.T, api string) {
		s := llm(t, api, steps(t, `{"steps":[{"tools":[{"id":"t1","name":"effect","input":{"step":1}}]},{"tools":[{"id":"t2","name":"effect","input":{"step":2}}]},
			{"hang":true},{"tools":[{"id":"t3","name":"effect","input":{"step":3}}]},{"text":"finished"}]}`), agent{tools: []toolSpec{{name: "effect"}}})
		u := s.start("run", "case", "-p", "Go.")
		await(t, "third request", func() bool { return len(s.srv.Requests()) == 3 || u.ended() })
		if err := u.cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		u.ends(-1)
		v := s.only()
		s.is(v, "pending")
		before := s.journal(v.ID)
		s.must("resume", v.ID, "--run")
		s.is(s.only(), "completed", "finished")
		after := s.journal(v.ID)
		for i, e := range before {
			if after[i].Hash != e.Hash || after[i].body() != e.body() {
				t.Errorf("entry %d was %s, and is %s", e.Seq, e.body(), after[i].body())
			}
		}
		s.did(`{"step":1}`, `{"step":2}`, `{"step":3}`)
		all := s.requests(5)
		if all[3] != all[2] {
			t.Errorf("what was asked when it stopped is asked otherwise:\n%s\n%s", all[2], all[3])
		}
		for n, body := range all {
			got := results(t, api, body)
			if want := []int{0, 1, 2, 2, 3}[n]; len(got) != want {
				t.Errorf("request %d has %d results, want %d", n+1, len(got), want)
			}
			for i, r := range got {
				if r.Text != "done" || r.ID != fmt.Sprint("t", i+1) {
					t.Errorf("request %d has the result %+v", n+1, r)
				}
			}
		}
		s.verified()
	})
}

// TestC11Outcome: a call that failed is a call that failed; how the session ended is
// another question (openclaw#112670, #94846).
func TestC11Outcome(t *testing.T) {
	inFormats(t, func(t *testing.T, api string) {
		s := llm(t, api, steps(t, `{"steps":[{"tools":[{"id":"t1","name":"fail","input":{}}]},{"tools":[{"id":"t2","name":"effect","input":{"step":1}}]},{"text":"finished"}]}`),
			agent{tools: []toolSpec{{name: "fail"}, {name: "effect"}}})
		s.must("run", "case", "-p", "Go.")
		v := s.only()
		s.is(v, "completed", "finished")
		s.did(`{"step":1}`)
		got := results(t, api, s.requests(3)[2])
		if len(got) != 2 || !strings.Contains(got[0].Text, "it cannot be done") || !strings.Contains(got[0].Text, "exit status 1") || got[1].Text != "done" {
			t.Errorf("the model got %+v", got)
		}
		if api == "messages" && (!got[0].Error || got[1].Error) {
			t.Errorf("the model got %+v", got)
		}
		if out := s.must("logs", v.ID); !strings.Contains(out, "it cannot be done") {
			t.Errorf("the log does not have the failure:\n%s", out)
		}
	})
}

// odd is a text that whoever escapes it once more, or once less, changes.
const odd = `{"a":"\"quoted\" \\\\ back\\slash","b":"line\nline\ttab","c":"é 😀 \u00e9 \ud83d\ude00","d":"\\u0041 \\n </script>&<>","e":"{\"in\":\"{\\\"deep\\\":1}\"}","f": 1.50 ,"g":[ ]}`

// TestC12ArgumentsStay: a session is stopped and goes on ten times. The arguments of its
// call are sent the same each time (krutaka#181).
func TestC12ArgumentsStay(t *testing.T) {
	const cycles = 10
	inFormats(t, func(t *testing.T, api string) {
		sc := steps(t, `{"steps":[{"tools":[{"id":"t1","name":"echo"}]}]}`)
		text := odd
		sc.Steps[0].Tools[0].ArgsRaw = &text
		for n := range cycles {
			sc.Steps = append(sc.Steps, steps(t, fmt.Sprintf(`{"steps":[{"hang":true},{"tools":[{"id":"n%d","name":"echo","input":{"n":%d}}]}]}`, n, n)).Steps...)
		}
		s := llm(t, api, sc, agent{tools: []toolSpec{{name: "echo", more: "effect: read"}}})
		drive := []string{"run", "case", "-p", "Go."}
		for n := range cycles {
			u := s.start(drive...)
			await(t, "request", func() bool { return len(s.srv.Requests()) == 2*n+2 || u.ended() })
			if n%5 == 0 {
				if err := u.cmd.Process.Signal(syscall.SIGTERM); err != nil {
					t.Fatal(err)
				}
				u.ends(-1)
			} else {
				u.kill()
			}
			drive = []string{"resume", "@last", "--run"}
		}
		s.must(drive...)
		s.is(s.only(), "completed", "done")
		for n, body := range s.requests(2*cycles + 2)[1:] {
			c, r := calls(t, api, body), results(t, api, body)
			if len(c) != n/2+1 || len(r) != len(c) {
				t.Fatalf("request %d has %d calls and %d results", n+2, len(c), len(r))
			}
			if compact(t, []byte(c[0].Args)) != compact(t, []byte(odd)) || compact(t, []byte(r[0].Text)) != compact(t, []byte(odd)) {
				t.Errorf("request %d has the call\n%s\nwith the result\n%s\nfor\n%s", n+2, c[0].Args, r[0].Text, odd)
			}
			if was := calls(t, api, string(s.srv.Requests()[1].Body)); c[0] != was[0] {
				t.Errorf("request %d has %+v, the first had %+v", n+2, c[0], was[0])
			}
		}
		s.verified()
	})
}
