package cases_test

import (
	"fmt"
	"strings"
	"testing"
)

// TestC03CrashAfterTheEffectOfACall: stint is killed when a call has taken effect and its
// result is not recorded. A call of class once is asked about; one that is idempotent is
// made again, under the same key (openworker#443, crewAI#5802).
func TestC03CrashAfterTheEffectOfACall(t *testing.T) {
	inFormats(t, func(t *testing.T, api string) {
		for _, c := range []struct {
			effect, verdict string
			times           int
			text            string
		}{
			{"once", "--unknown", 1, "not known"}, {"once", "--happened", 1, "It took effect"}, {"once", "--not", 2, "done"}, {"idempotent", "", 2, "done"}, {"read", "", 2, "done"},
		} {
			t.Run(c.effect+c.verdict, func(t *testing.T) {
				t.Parallel()
				sc := steps(t, `{"by":"turn","steps":[{"tools":[{"id":"toolu_1","name":"effect","input":{"step":1}}]},{"text":"finished"}]}`)
				slow := toolSpec{name: "effect", env: map[string]string{"EFFECT_SLEEP_AFTER": "1m"}, more: "effect: " + c.effect}
				s := llm(t, api, sc, agent{tools: []toolSpec{slow}})
				u := s.start("run", "case", "-p", "Go.")
				await(t, "effect", func() bool { return len(s.deeds()) == 1 || u.ended() })
				u.kill()
				id := s.only().ID
				again := []string{"resume", id, "--run"}
				if c.verdict != "" {
					s.gives(6, again...)
					v := s.only()
					s.is(v, "waiting", "doubt: ", "effect")
					s.did(`{"step":1}`)
					again = []string{"resolve", id + ":" + *v.Waiting.Step, c.verdict, "--run"}
				}
				s.write("effects.quick", "") // from now on
				s.must(again...)
				s.is(s.only(), "completed", "finished")
				all := s.deeds()
				if len(all) != c.times || all[0].key != all[len(all)-1].key {
					t.Errorf("the effects are %v, want %d under one key", all, c.times)
				}
				last := s.srv.Requests()
				if got := results(t, api, string(last[len(last)-1].Body)); len(got) != 1 || !strings.Contains(got[0].Text, c.text) {
					t.Errorf("the model got %+v, want %s", got, c.text)
				}
				s.verified()
			})
		}
	}, "messages", "chat")
}

// TestD06StopWithAQuestionOpen: a session that is stopped asks nothing any more, and a yes
// that comes late leads to nothing; an interrupted turn leaves a session that can be
// spoken to (letta#3176, lettabot#180).
func TestD06StopWithAQuestionOpen(t *testing.T) {
	inFormats(t, func(t *testing.T, api string) {
		sc := `{"steps":[{"tools":[{"id":"g1","name":"effect","input":{"amount":10}}]},{"text":"finished"}]}`
		for _, order := range []string{"stop", "kill", "interrupt"} {
			t.Run(order, func(t *testing.T) {
				t.Parallel()
				s := llm(t, api, steps(t, sc), agent{keys: "interactive: true", tools: []toolSpec{gated()}})
				s.gives(6, "run", "case", "-p", "Go.")
				q := s.questions()
				s.must(order, "@last")
				if left := s.questions(); len(q) != 1 || len(left) != 0 {
					t.Errorf("it asked %v, and asks %v", q, left)
				}
				if order == "interrupt" {
					s.is(s.only(), "waiting", "message: ")
					s.gives(6, "send", "@last", "Something else.", "--run")
					s.is(s.only(), "waiting", "message: finished")
					if got := results(t, api, s.requests(2)[1]); len(got) > 1 {
						t.Errorf("the model got %+v", got)
					}
				}
				late := s.start("approve", q[0].ID)
				late.ends(5)
				s.did()
				s.verified()
			})
		}
	}, "messages", "chat")
}

// TestD08ApprovingRunsNothingAgain: a yes in the third loop leaves what the first two did
// as it is (opencompany#846, langchain4j-demo#247).
func TestD08ApprovingRunsNothingAgain(t *testing.T) {
	inFormats(t, func(t *testing.T, api string) {
		ungated := toolSpec{name: "free", part: "effect"}
		s := llm(t, api, steps(t, `{"steps":[{"tools":[{"id":"t1","name":"free","input":{"step":1}}]},{"tools":[{"id":"t2","name":"free","input":{"step":2}}]},
			{"tools":[{"id":"t3","name":"effect","input":{"step":3}}]},{"text":"finished"}]}`), agent{tools: []toolSpec{ungated, gated()}})
		s.gives(6, "run", "case", "-p", "Go.")
		s.did(`{"step":1}`, `{"step":2}`)
		s.must("approve", "@last", "--run")
		s.is(s.only(), "completed", "finished")
		s.did(`{"step":1}`, `{"step":2}`, `{"step":3}`)
		for i, r := range results(t, api, s.requests(4)[3]) {
			if r.Text != "done" || r.ID != fmt.Sprint("t", i+1) {
				t.Errorf("result %d is %+v", i+1, r)
			}
		}
		s.verified()
	})
}

// TestD06InterruptedTurn: who interrupts a model and says something else is heard before
// anything more is done: nothing that it was about to do happens, and what was under way is
// not begun again (letta#3176, lettabot PR#341).
func TestD06InterruptedTurn(t *testing.T) {
	inFormats(t, func(t *testing.T, api string) {
		t.Run("in an answer", func(t *testing.T) {
			t.Parallel()
			s := llm(t, api, steps(t, `{"steps":[{"hang":true},{"text":"finished"}]}`), agent{keys: "interactive: true", tools: []toolSpec{{name: "effect"}}})
			u := s.start("run", "case", "-p", "Pay ten.")
			await(t, "request", func() bool { return len(s.srv.Requests()) == 1 || u.ended() })
			s.must("interrupt", "@last")
			u.ends(6)
			s.gives(6, "send", "@last", "No, do not pay!", "--run")
			s.is(s.only(), "waiting", "message: finished")
			last := s.requests(2)[1]
			if !strings.Contains(last, "Pay ten.") || !strings.Contains(last, "No, do not pay!") {
				t.Errorf("the model is asked %s", last)
			}
			s.verified()
		})
		for effect, under := range map[string]string{"once": "not known", "idempotent": "may have been begun", "read": "may have been begun"} {
			t.Run("in a call of class "+effect, func(t *testing.T) {
				t.Parallel()
				s := llm(t, api, steps(t, `{"steps":[{"tools":[{"id":"c1","name":"echo","input":{"n":1}},{"id":"c2","name":"effect","input":{"amount":10}},{"id":"c3","name":"effect","input":{"amount":20}}]},
					{"text":"finished"}]}`), agent{keys: "interactive: true", tools: []toolSpec{{name: "echo"}, {name: "effect", more: "effect: " + effect, env: map[string]string{"EFFECT_SLEEP_BEFORE": "1m"}}}})
				u := s.start("run", "case", "-p", "Pay ten.")
				await(t, "call", func() bool { return s.begun() == 1 || u.ended() })
				s.must("interrupt", "@last")
				u.ends(6)
				s.gives(6, "send", "@last", "No, do not pay!", "--run")
				if v := s.only(); effect == "once" {
					s.is(v, "waiting", "doubt: ")
					s.gives(6, "resolve", v.ID+":"+*v.Waiting.Step, "--unknown", "--run")
				}
				s.is(s.only(), "waiting", "message: finished")
				got := results(t, api, s.requests(2)[1])
				if len(got) != 3 || compact(t, []byte(got[0].Text)) != `{"n":1}` || !strings.Contains(got[1].Text, under) || !strings.Contains(got[2].Text, "the turn was interrupted by human:") {
					t.Errorf("the model got %+v", got)
				}
				if last := string(s.srv.Requests()[1].Body); !strings.Contains(last, "No, do not pay!") {
					t.Errorf("the model is asked %s", last)
				}
				s.did()
				if s.begun() != 1 {
					t.Errorf("the tool was begun %d times", s.begun())
				}
				s.verified()
			})
		}
	}, "messages", "chat")
}
