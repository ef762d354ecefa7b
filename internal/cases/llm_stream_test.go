package cases_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stint-dev/stint/model/modeltest"
)

// TestF01RetryAfter: a provider that names a time is asked again no earlier, and the
// session ends as if nothing had been (Memoh PR#1142).
func TestF01RetryAfter(t *testing.T) {
	inFormats(t, func(t *testing.T, api string) {
		s := llm(t, api, played(t, "retry-after-seconds"), agent{})
		u := s.start("run", "case", "-p", "Go.")
		u.ends(0)
		s.is(s.only(), "completed", "recovered")
		s.requests(3)
		for i, least := range []time.Duration{3 * time.Second, 2 * time.Second} {
			at := s.srv.Requests()
			if gap := at[i+1].At.Sub(at[i].At); gap < least {
				t.Errorf("request %d came %v after the one before, want at least %v", i+2, gap, least)
			}
		}
		s.verified()
	})
}

// TestF01CancelDuringTheWait: that a session waits for its provider can be seen; it can be
// canceled then, and its turn can be.
func TestF01CancelDuringTheWait(t *testing.T) {
	inFormats(t, func(t *testing.T, api string) {
		for order, status := range map[string]string{"interrupt": "waiting", "kill": "canceled"} {
			t.Run(order, func(t *testing.T) {
				t.Parallel()
				s := llm(t, api, steps(t, `{"steps":[{"status":429,"headers":{"retry-after":"90"}}]}`), agent{})
				u := s.start("run", "case", "-p", "Go.")
				await(t, "request", func() bool { return len(s.srv.Requests()) == 1 || u.ended() })
				await(t, "wait that can be seen", func() bool {
					v := s.only()
					return v.Status == "running" && v.Now != nil && strings.Contains(v.Now.Line, "mock-1: the provider asked to wait, until ")
				})
				begun := time.Now()
				s.gives(-1, order, "@last")
				u.ends(-1)
				if took := time.Since(begun); took > 10*time.Second {
					t.Errorf("it ended %v after the order", took)
				}
				s.is(s.only(), status)
				s.requests(1)
			})
		}
	}, "messages", "chat")
}

// TestF02OverloadInsideAStream: an answer that breaks off with an error is asked for again,
// and nothing of it is kept (agent-afk#762).
func TestF02OverloadInsideAStream(t *testing.T) {
	inFormats(t, func(t *testing.T, api string) {
		sc := steps(t, `{"steps":[{"inside":"overloaded_error"},{"text":"recovered"}]}`)
		if api == "messages" {
			sc = played(t, "overloaded-midstream")
		}
		s := llm(t, api, sc, agent{})
		s.must("run", "case", "-p", "Go.")
		s.is(s.only(), "completed", "recovered")
		s.requests(2)
		s.verified()
	})
}

// TestF03StreamEndsEarly: an answer that ends without its end is no answer: its call is
// not executed, its text is in no result and in no later request
// (openclaw PR#108989, litellm PR#32159).
func TestF03StreamEndsEarly(t *testing.T) {
	inFormats(t, func(t *testing.T, api string) {
		cut := map[string]modeltest.Scenario{
			"in text": steps(t, `{"steps":[{"text":"I will now create the fi","cut":true},{"text":"recovered"}]}`),
			"in a call": steps(t, `{"steps":[{"text":"I will now create the fi","tools":[{"id":"c1","name":"effect","input":{"step":1,"path":"/srv/data"}}],"cut":true},
				{"text":"recovered"}]}`),
		}
		switch api {
		case "messages":
			cut["file in text"], cut["file in a call"] = played(t, "cut-in-text"), played(t, "cut-in-tool")
		case "chat":
			cut["file without its end"] = played(t, "openai-no-done")
		}
		for name, sc := range cut {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				s := llm(t, api, sc, agent{tools: []toolSpec{{name: "effect"}}})
				s.must("run", "case", "-p", "Go.")
				s.is(s.only(), "completed", "recovered")
				s.did()
				for _, body := range s.requests(2) {
					if strings.Contains(body, "I will now") || strings.Contains(body, "half an ans") || strings.Contains(body, "/srv/da") {
						t.Errorf("a request has what was cut: %s", body)
					}
				}
				for _, e := range of(s.journal(s.only().ID), "step.completed") {
					if b := e.body(); strings.Contains(b, "I will now") || strings.Contains(b, "half an ans") || strings.Contains(b, "/srv/da") {
						t.Errorf("entry %d has what was cut: %s", e.Seq, b)
					}
				}
				s.verified()
			})
		}
	})
}

// TestF03NeverWhole: a provider that cuts every answer is asked again until the session's
// time is up; it never completes.
func TestF03NeverWhole(t *testing.T) {
	inFormats(t, func(t *testing.T, api string) {
		for deadline := 5 * time.Second; ; deadline *= 4 {
			s := llm(t, api, steps(t, `{"steps":[{"text":"I will now create the fi","cut":true}],"after":"repeat_last"}`), agent{})
			s.gives(7, "run", "case", "-p", "Go.", "--deadline", deadline.String())
			v := s.only()
			s.is(v, "stopped", "deadline")
			n := len(s.srv.Requests())
			if n < 2 && deadline < patience { // the machine did not come to the second in that time
				continue
			}
			if most := 6 + 2*int(deadline/(20*time.Second)); v.Result != nil || n < 2 || n > most {
				t.Errorf("after %d requests the result is %v", n, v.Result)
			}
			return
		}
	}, "messages", "chat")
}

// TestF04EmptyChoices: chunks without a choice are no fault, and the usage in one of them
// counts (goose PR#5248).
func TestF04EmptyChoices(t *testing.T) {
	inFormats(t, func(t *testing.T, api string) {
		s := llm(t, api, played(t, "openai-empty-choices"), agent{})
		s.must("run", "case", "-p", "Go.")
		v := s.only()
		s.is(v, "completed", "hello")
		if got := v.Totals.Tokens; got.Input != "3" || got.Output != "4" {
			t.Errorf("the tokens are %+v", got)
		}
		s.requests(1)
	}, "chat")
}

// cutCall is a scenario in which the output limit cuts a call, and what comes then.
func cutCall(t *testing.T, api string) modeltest.Scenario {
	t.Helper()
	switch api {
	case "messages":
		return played(t, "max-tokens-in-tool")
	case "chat":
		return played(t, "openai-length-tool")
	}
	return steps(t, `{"steps":[{"tools":[{"id":"call_1","name":"effect","args_raw":"{\"step\": 1"}],"stop":"max_tokens"},{"text":"recovered"}]}`)
}

// TestF05OutputLimit: a call that the output limit cut is not executed, the model is told
// so, and a model that is cut again and again ends the session as failed, with the reason
// (mastra PR#15718).
func TestF05OutputLimit(t *testing.T) {
	inFormats(t, func(t *testing.T, api string) {
		t.Run("once", func(t *testing.T) {
			t.Parallel()
			s := llm(t, api, cutCall(t, api), agent{tools: []toolSpec{{name: "effect"}}})
			s.must("run", "case", "-p", "Go.")
			s.is(s.only(), "completed", "recovered")
			s.did()
			got := results(t, api, s.requests(2)[1])
			if len(got) != 1 || !strings.Contains(got[0].Text, "cut by the output limit") {
				t.Errorf("the model got %+v", got)
			}
			s.verified()
		})
		t.Run("again and again", func(t *testing.T) {
			t.Parallel()
			sc := cutCall(t, api)
			sc.Steps, sc.After = sc.Steps[:1], "repeat_last"
			s := llm(t, api, sc, agent{tools: []toolSpec{{name: "effect"}}})
			s.gives(7, "run", "case", "-p", "Go.")
			s.is(s.only(), "failed", "the output limit cut 3 answers in a row")
			s.did()
			s.requests(3)
		})
	})
}

// TestF06Arguments: no arguments are {}, and those that cannot be used are answered with
// the schema and never executed; every later request is valid (openai-agents-js#664,
// denova PR#57).
func TestF06Arguments(t *testing.T) {
	inFormats(t, func(t *testing.T, api string) {
		empty := steps(t, `{"steps":[{"tools":[{"id":"call_1","name":"effect","args_raw":""}]},{"text":"recovered"}]}`)
		bad := steps(t, `{"steps":[{"tools":[{"id":"call_1","name":"effect","args_raw":"{\"step\": 1, \"q\": \"unterminated"}]},{"text":"recovered"}]}`)
		switch api {
		case "messages":
			empty = played(t, "empty-args")
		case "chat":
			bad = played(t, "openai-bad-args")
		}
		t.Run("empty", func(t *testing.T) {
			t.Parallel()
			s := llm(t, api, empty, agent{tools: []toolSpec{{name: "effect"}}})
			s.must("run", "case", "-p", "Go.")
			s.is(s.only(), "completed", "recovered")
			s.did("{}")
			if got := results(t, api, s.requests(2)[1]); len(got) != 1 || got[0].Text != "done" {
				t.Errorf("the model got %+v", got)
			}
		})
		for name, text := range map[string]string{"broken": "", "a list": "[1]", "twice a name": `{"a":1,"a":2}`, "a text": `"{}"`, "missing": "{}"} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				sc := bad
				if text != "" {
					sc.Steps = append([]modeltest.Step{{Tools: []modeltest.ToolCall{{ID: "call_1", Name: "effect", ArgsRaw: &text}}}}, sc.Steps[1:]...)
				}
				const schema = `{"type":"object","properties":{"step":{"type":"integer"}},"required":["step"]}`
				s := llm(t, api, sc, agent{tools: []toolSpec{{name: "effect", args: schema}}})
				s.must("run", "case", "-p", "Go.")
				s.is(s.only(), "completed", "recovered")
				s.did()
				got := results(t, api, s.requests(2)[1])
				if len(got) != 1 || !strings.Contains(got[0].Text, "not called") || !strings.Contains(got[0].Text, schema) {
					t.Errorf("the model got %+v", got)
				}
				s.verified()
			})
		}
	})
}

// TestF07SameCallID: a provider that begins to count anew in each answer is no reason not
// to call, and what is sent back to it has ids that differ (qwen-code#8382).
func TestF07SameCallID(t *testing.T) {
	inFormats(t, func(t *testing.T, api string) {
		s := llm(t, api, played(t, "dup-ids-across-turns"), agent{tools: []toolSpec{{name: "effect"}}})
		s.must("run", "case", "-p", "Go.")
		s.is(s.only(), "completed", "finished")
		s.did(`{"step":1}`, `{"step":2}`)
		if d := s.deeds(); d[0].key == d[1].key {
			t.Errorf("both calls have the key %s", d[0].key)
		}
		got := calls(t, api, s.requests(3)[2])
		if len(got) != 2 || got[0].ID == got[1].ID {
			t.Errorf("the provider got back %+v", got)
		}
		s.verified()
	})
}

// TestF08LongOutput: the model gets a marked excerpt of a long result, which cuts no
// character, and can read the rest; the journal has the whole (wisp-science PR#632).
func TestF08LongOutput(t *testing.T) {
	const bytes, limit = 3_000_000, 32 << 10
	inFormats(t, func(t *testing.T, api string) {
		for name, unit := range map[string]string{"of letters": "x", "of two bytes each": "é", "of three": "€"} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				n := bytes / len(unit)
				s := llm(t, api, steps(t, fmt.Sprintf(`{"steps":[{"tools":[{"id":"b1","name":"big","input":{"n":%d,"unit":%q}}]},
					{"tools":[{"id":"b2","name":"read_result","input":{"call":"b1","offset":2000000,"length":10000}}]},{"text":"finished"}]}`, n, unit)),
					agent{tools: []toolSpec{{name: "big"}}})
				s.must("run", "case", "-p", "Go.")
				s.is(s.only(), "completed", "finished")
				last := s.requests(3)[2]
				if !utf8.ValidString(last) || strings.Contains(last, "\uFFFD") || strings.Contains(last, `\ufffd`) {
					t.Error("a character is cut")
				}
				got := results(t, api, last)
				if len(got) != 2 || len(got[0].Text) > limit || len(got[0].Text) < limit/2 || !strings.Contains(got[0].Text, "of 3000000") || !strings.Contains(got[0].Text, "read_result") {
					t.Fatalf("the model got an excerpt of %d bytes: %s", len(got[0].Text), clip(got[0].Text))
				}
				if k := strings.Count(got[1].Text, unit); k < 10000/len(unit)-1 || k > 10000/len(unit)+1 {
					t.Errorf("it read %d of %q: %s", k, unit, clip(got[1].Text))
				}
				whole := 0
				for _, e := range of(s.journal(s.only().ID), "step.completed") {
					var out struct{ Text string }
					if json.Unmarshal([]byte(e.body()), &out) == nil && out.Text == strings.Repeat(unit, n) {
						whole++
					}
				}
				if whole != 1 {
					t.Errorf("the journal has the whole result %d times", whole)
				}
			})
		}
	}, "messages", "chat")
}

// TestF09Compaction: forty results of 20 kB in a small window. No request separates a call
// from its result, requests get shorter again, and the journal keeps everything
// (opencode#25774, pocketrb PR#5).
func TestF09Compaction(t *testing.T) {
	inFormats(t, func(t *testing.T, api string) {
		sc := played(t, "forty-loops")
		sc.Quiet = "Many letters were read."
		loops := len(sc.Steps) - 1
		s := llm(t, api, sc, agent{keys: "context: {window: 40000}\nrules: {N01: off, N04: off}", tools: []toolSpec{{name: "big"}}})
		s.must("run", "case", "-p", "Read what there is.")
		v := s.only()
		s.is(v, "completed", "finished")
		fell, most := 0, 0
		all := s.srv.Requests()
		for i, r := range all {
			if i > 0 && len(r.Body) < len(all[i-1].Body)*3/4 {
				fell++
			}
			most = max(most, len(r.Body))
		}
		if fell < 2 || most > 32000*8+40_000 {
			t.Errorf("of %d requests %d were much shorter than the one before, the longest had %d bytes", len(all), fell, most)
		}
		if last := string(all[len(all)-1].Body); !strings.Contains(last, "Read what there is.") || !strings.Contains(last, "Many letters were read.") {
			t.Error("the last request has not the task and the summary")
		}
		kept := 0
		for _, e := range of(s.journal(v.ID), "step.completed") {
			if strings.Contains(e.body(), strings.Repeat("x", 20000)) {
				kept++
			}
		}
		if kept != loops {
			t.Errorf("the journal has %d results, want %d", kept, loops)
		}
		s.verified()
	})
}

// TestF10PermanentError: what cannot pass is not tried again, and the session fails with
// the provider's own words (Memoh PR#1142, agent-portal PR#1378).
func TestF10PermanentError(t *testing.T) {
	inFormats(t, func(t *testing.T, api string) {
		for status, etype := range map[int]string{400: "invalid_request_error", 401: "authentication_error", 403: "permission_error"} {
			t.Run(fmt.Sprint(status), func(t *testing.T) {
				t.Parallel()
				sc := played(t, "permanent-400")
				sc.Steps[0].Status, sc.Steps[0].EType = status, etype
				s := llm(t, api, sc, agent{})
				s.gives(7, "run", "case", "-p", "Go.")
				s.is(s.only(), "failed", "scripted")
				s.requests(1)
				if out := s.must("ps", "-a"); !strings.Contains(out, "failed") {
					t.Errorf("the list has it so:\n%s", out)
				}
			})
		}
	})
}
