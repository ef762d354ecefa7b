package cases_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// asked is what the cases look at in stint.approvals/1.
type asked struct {
	ID, Step, Name, Text string
	Args                 json.RawMessage
}

// questions are those that nobody has decided.
func (s *site) questions() []asked {
	s.t.Helper()
	return unmarshal[struct{ Items []asked }](s.t, s.must("approvals", "--json")).Items
}

// gated is a tool with an effect that a person is asked about.
func gated() toolSpec { return toolSpec{name: "effect", more: "approve: always"} }

// TestD01ApprovalOutlivesTheProcess: what was asked is asked as before when nobody of those
// who asked is there any more, and a yes leads to one effect (lettabot#479, codex#29058).
func TestD01ApprovalOutlivesTheProcess(t *testing.T) {
	inFormats(t, func(t *testing.T, api string) {
		s := llm(t, api, steps(t, `{"steps":[{"tools":[{"id":"toolu_g1","name":"effect","input":{"to":"ops@example.invalid","amount":10}}]},{"text":"finished"}]}`),
			agent{tools: []toolSpec{gated()}})
		u := s.start("run", "case", "-p", "Go.")
		await(t, "request", func() bool { return len(s.srv.Requests()) == 1 || u.ended() })
		await(t, "question", func() bool { return len(s.questions()) == 1 })
		u.kill() // it may have ended by itself: the question needs nobody
		before := s.questions()
		s.is(s.only(), "waiting", "approval: ", "effect", "ops@example.invalid")
		s.gives(5, "resume", s.only().ID, "--run") // which is no answer to what it asks
		after := s.questions()
		if len(before) != 1 || fmt.Sprint(before) != fmt.Sprint(after) {
			t.Errorf("it asked %+v, and asks %+v", before, after)
		}
		if got := compact(t, before[0].Args); got != `{"to":"ops@example.invalid","amount":10}` {
			t.Errorf("what is asked is %s", got)
		}
		s.did()
		s.must("approve", before[0].ID, "--run")
		s.is(s.only(), "completed", "finished")
		if len(s.deeds()) != 1 || len(s.questions()) != 0 {
			t.Errorf("the effects are %v, the questions %v", s.deeds(), s.questions())
		}
		if got := results(t, api, s.requests(2)[1]); len(got) != 1 || got[0].Text != "done" {
			t.Errorf("the model got %+v", got)
		}
		s.verified()
	})
}

// TestD02ApprovedTwice: two processes decide at the same instant. One decision counts, the
// other is told whose and when; there is one effect and one entry
// (s-gw PR#29, ballerina-spec#1459).
func TestD02ApprovedTwice(t *testing.T) {
	const rounds = 25 // in each of two formats
	late := regexp.MustCompile(`was approved by human:\S+ at \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`)
	inFormats(t, func(t *testing.T, api string) {
		s := llm(t, api, steps(t, `{"by":"turn","steps":[{"tools":[{"id":"g1","name":"effect","input":{"amount":10}}]},{"text":"finished"}]}`),
			agent{tools: []toolSpec{gated()}})
		for n := range rounds {
			name := fmt.Sprintf("round-%d", n)
			s.gives(6, "run", "case", "-p", "Go.", "--name", name)
			one, two := s.start("approve", name), s.start("approve", name)
			one.ends(-1)
			two.ends(-1)
			won, lost := one, two
			if two.cmd.ProcessState.ExitCode() == 0 {
				won, lost = two, one
			}
			won.ends(0)
			lost.ends(5)
			if !late.MatchString(lost.talk.String()) {
				t.Errorf("round %d: the other is told: %s", n, lost)
			}
			s.must("resume", name, "--run")
			if got := len(s.deeds()); got != n+1 {
				t.Fatalf("after round %d there are %d effects", n, got)
			}
			if got := of(s.journal(name), "approval.decided"); len(got) != 1 {
				t.Errorf("round %d: there are %d decisions in the journal", n, len(got))
			}
		}
		s.verified()
	}, "messages", "chat")
}

// TestD04SeveralCallsOneAnswer: each call has its own question, and its own answer; what
// needed none is done. The model gets one result a call, in order
// (langgraph#6626, openai-agents-python PR#3006).
func TestD04SeveralCallsOneAnswer(t *testing.T) {
	inFormats(t, func(t *testing.T, api string) {
		s := llm(t, api, steps(t, `{"steps":[{"tools":[{"id":"toolu_g1","name":"effect","input":{"to":"a"}},{"id":"toolu_g2","name":"effect","input":{"to":"b"}},
			{"id":"toolu_f","name":"echo","input":{"free":1}}]},{"text":"finished"}]}`), agent{tools: []toolSpec{gated(), {name: "echo"}}})
		s.gives(6, "run", "case", "-p", "Go.")
		qs := s.questions()
		if len(qs) != 2 || qs[0].ID == qs[1].ID || compact(t, qs[0].Args) != `{"to":"a"}` || compact(t, qs[1].Args) != `{"to":"b"}` {
			t.Fatalf("it asks %+v", qs)
		}
		s.must("approve", qs[1].ID)
		s.gives(6, "resume", "@last", "--run")
		if left := s.questions(); len(left) != 1 || left[0].ID != qs[0].ID {
			t.Errorf("then it asks %+v", left)
		}
		s.must("deny", qs[0].ID, "-m", "not to a", "--run")
		s.is(s.only(), "completed", "finished")
		s.did(`{"to":"b"}`)
		got := results(t, api, s.requests(2)[1])
		if len(got) != 3 || got[0].ID != "toolu_g1" || got[1].ID != "toolu_g2" || got[2].ID != "toolu_f" {
			t.Fatalf("the model got %+v", got)
		}
		if !strings.Contains(got[0].Text, "denied") || !strings.Contains(got[0].Text, "not to a") || got[1].Text != "done" || compact(t, []byte(got[2].Text)) != `{"free":1}` {
			t.Errorf("the model got %+v", got)
		}
		s.verified()
	})
}
