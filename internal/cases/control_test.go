package cases_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// pays is a site whose model calls a tool once that a policy has a person asked about.
func pays(t *testing.T, api, rule string) *site {
	t.Helper()
	return llm(t, api, steps(t, `{"by":"turn","steps":[{"tools":[{"id":"g1","name":"effect","input":{"to":"ops","amount":10}}]},{"text":"finished"}]}`),
		agent{keys: "policy: [{name: pay, tool: effect, do: ask" + rule + "}]", tools: []toolSpec{{name: "effect"}}})
}

// asksUntil is a site with a question that nobody may answer any more after until. Before,
// somebody waits for the session and gives up, which ends no question. A machine on which
// that takes longer than the question has gets one that has longer.
func asksUntil(t *testing.T, api string) (s *site, q asked, until time.Time) {
	t.Helper()
	for deadline := time.Second; ; deadline *= 4 {
		s = pays(t, api, fmt.Sprintf(", deadline: %v", deadline))
		begun := time.Now()
		s.gives(6, "run", "case", "-p", "Go.")
		before := s.questions()
		until = time.Now().Add(deadline + 100*time.Millisecond)
		s.gives(6, "wait", "@last", "--timeout", "1ms") // who waits has no say
		after := s.questions()
		switch late := time.Since(begun) > deadline; {
		case len(after) != 1 && late && deadline < patience:
			continue
		case len(before) != 1:
			t.Fatalf("it asks %+v", before)
		case len(after) != 1:
			t.Error("whoever waits for the session ended the question")
		}
		return s, before[0], until
	}
}

// TestD03LateIsLate: after its deadline a question is expired, which is no denial by anybody,
// and a yes leads to nothing; that whoever waits for a session gives up changes nothing
// (agent-os#1563, AgentDeck#308).
func TestD03LateIsLate(t *testing.T) {
	inFormats(t, func(t *testing.T, api string) {
		s, q, until := asksUntil(t, api)
		await(t, "deadline", func() bool { return time.Now().After(until) })
		late := s.start("approve", q.ID)
		late.ends(5)
		if !strings.Contains(late.talk.String(), "expired at 20") {
			t.Errorf("it is told %s", late)
		}
		s.must("resume", "@last", "--run")
		s.is(s.only(), "completed", "finished")
		s.did()
		decided := of(s.journal("@last"), "approval.decided")
		if len(decided) != 1 || !strings.Contains(string(decided[0].Data), `"state":"expired"`) {
			t.Errorf("the journal has the ends %v", decided)
		}
		if got := results(t, api, s.requests(2)[1]); len(got) != 1 || !strings.Contains(got[0].Text, "nobody decided in time") {
			t.Errorf("the model got %+v", got)
		}
		s.verified()
	}, "messages", "chat")
}

// TestD05EditedArguments: what a person put in the place of the arguments is what is done, the
// model is told, and the journal has both (langchain#33787, #33784, #32988).
func TestD05EditedArguments(t *testing.T) {
	inFormats(t, func(t *testing.T, api string) {
		s := pays(t, api, "")
		s.gives(6, "run", "case", "-p", "Go.")
		s.must("approve", "@last", "--args", `{"to":"ops","amount":5}`, "--run")
		s.is(s.only(), "completed", "finished")
		s.did(`{"to":"ops","amount":5}`)
		if got := results(t, api, s.requests(2)[1]); len(got) != 1 || !strings.Contains(got[0].Text, "a person changed the arguments") || !strings.Contains(got[0].Text, `"amount\":5`) && !strings.Contains(got[0].Text, `"amount":5`) {
			t.Errorf("the model got %+v", got)
		}
		es := s.journal("@last")
		asked, decided := of(es, "approval.requested"), of(es, "approval.decided")
		if len(asked) != 1 || len(decided) != 1 || !strings.Contains(asked[0].body(), `10`) || !strings.Contains(decided[0].body(), `5`) {
			t.Errorf("asked was %v, decided %v", asked, decided)
		}
		s.verified()
	})
}

// TestD07NobodyAnswers: without a deadline a question waits for ever and is listed with its
// age; with one that stops, nothing is done (lettabot#127, apex PR#639).
func TestD07NobodyAnswers(t *testing.T) {
	inFormats(t, func(t *testing.T, api string) {
		s := pays(t, api, "")
		s.gives(6, "run", "case", "-p", "Go.")
		v := unmarshal[struct {
			Items []struct {
				Since string
				Until *string
			}
		}](t, s.must("approvals", "--json"))
		if len(v.Items) != 1 || v.Items[0].Since == "" || v.Items[0].Until != nil {
			t.Errorf("the list is %+v", v)
		}
		if out := s.must("ps"); !strings.Contains(out, "approval") {
			t.Errorf("ps says\n%s", out)
		}
		s.did()

		s = pays(t, api, ", deadline: 1s, on_expire: stop")
		s.gives(6, "run", "case", "-p", "Go.")
		v1 := s.serves()
		await(t, "end", func() bool { return s.only().Status == "stopped" })
		v1.ends()
		s.is(s.only(), "stopped", "approval: nobody decided in time")
		s.did()
		s.verified()
	}, "messages")
}

// TestC08GoingBackAsksAgain: a question behind the loop that is gone back to is asked again,
// also on a branch; what was there before stays, and is not the branch's
// (langgraph PR#7027, #7038, #7115, #8597, #4987).
func TestC08GoingBackAsksAgain(t *testing.T) {
	inFormats(t, func(t *testing.T, api string) {
		sc := `{"by":"turn","steps":[{"tools":[{"id":"t1","name":"free","input":{"step":1}}]},{"tools":[{"id":"t2","name":"effect","input":{"step":2}}]},{"text":"finished"}]}`
		s := llm(t, api, steps(t, sc), agent{keys: "policy: [{name: pay, tool: effect, do: ask}]", tools: []toolSpec{{name: "free", part: "effect"}, {name: "effect"}}})
		s.gives(6, "run", "case", "-p", "Go.", "--name", "one")
		first := s.questions()
		s.must("approve", "one", "--run")
		s.did(`{"step":1}`, `{"step":2}`)
		before := s.journal("one")
		s.gives(6, "branch", "one", "--from", "1", "--name", "two", "--run")
		asked := s.questions()
		if len(first) != 1 || len(asked) != 1 || asked[0].ID == first[0].ID || string(asked[0].Args) != string(first[0].Args) {
			t.Fatalf("first it asked %+v, the branch asks %+v", first, asked)
		}
		if after := s.journal("one"); len(after) != len(before) || after[len(after)-1].Hash != before[len(before)-1].Hash {
			t.Error("the branch changed the journal that it comes from")
		}
		if out := s.must("logs", "two"); strings.Contains(out, "finished") {
			t.Errorf("the branch sees later loops:\n%s", out)
		}
		s.must("deny", "two", "--run")
		s.did(`{"step":1}`, `{"step":2}`)
		s.must("rollback", "one", "--to", "1")
		s.gives(6, "resume", "one", "--run")
		if asked = s.questions(); len(asked) != 1 || asked[0].ID == first[0].ID {
			t.Errorf("after going back it asks %+v", asked)
		}
		s.must("approve", "one", "--run")
		s.did(`{"step":1}`, `{"step":2}`, `{"step":2}`)
		v := unmarshal[struct{ Parent struct{ Loop int } }](t, s.must("show", "two", "--json"))
		if v.Parent.Loop != 1 {
			t.Errorf("the branch is of loop %d", v.Parent.Loop)
		}
		s.verified()
	}, "messages", "chat")
}

// TestFiftyDecisions: of many people who decide at once one is heard, and the others are told
// who it was and when.
func TestFiftyDecisions(t *testing.T) {
	t.Parallel()
	const people = 50
	s := pays(t, "messages", "")
	s.gives(6, "run", "case", "-p", "Go.")
	q := s.questions()
	v := s.serves()
	token := strings.TrimSpace(s.must("token", "create", "--role", "approver", "judge"))
	late := regexp.MustCompile(`was (approved|denied) by human:\S+ at \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`)
	var wg sync.WaitGroup
	answers := make([]answer, people)
	for i := range people {
		verb := []string{"approve", "deny"}[i%2]
		wg.Go(func() {
			body := strings.NewReader(fmt.Sprintf(`{"message":"%d"}`, i))
			answers[i] = v.asks(t.Context(), http.MethodPost, "/v1/approvals/"+q[0].ID+"/"+verb, body, headers{"Authorization": "Bearer " + token, "Content-Type": "application/json"})
		})
	}
	wg.Wait()
	won := 0
	for i, a := range answers {
		var said struct{ Detail string }
		switch {
		case a.err != nil:
			t.Errorf("%d: %v", i, a.err)
		case a.status == http.StatusOK:
			won++
		case a.status != http.StatusConflict || json.Unmarshal([]byte(a.text), &said) != nil || !late.MatchString(said.Detail):
			t.Errorf("%d is told %d %s", i, a.status, a.text)
		}
	}
	await(t, "end", func() bool { return s.only().Status == "completed" })
	v.ends()
	decided := of(s.journal("@last"), "approval.decided")
	if won != 1 || len(decided) != 1 || len(s.deeds()) > 1 {
		t.Errorf("%d were heard, the journal has %d decisions, the effects are %v", won, len(decided), s.deeds())
	}
	s.verified()
}
