package llm_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/agent/llm"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/model"
	"github.com/stint-dev/stint/tool"
)

// hopeless is a tool that never comes to an outcome, in one of the ways there are.
func hopeless(how string, effect stint.Effect, tries *int) tool.Tool {
	t := does("flaky", effect, nil)
	t.Parallel = false
	t.Timeout = time.Minute
	t.Caller = tool.CallerFunc(func(ctx context.Context, _ tool.Call) (tool.Output, error) {
		*tries++
		switch how {
		case "panics":
			panic("index out of range")
		case "hangs":
			<-ctx.Done()
			return tool.Output{}, ctx.Err()
		case "wants to be tried later":
			return tool.Output{}, stint.Retry(2*time.Second, errReset{})
		case "is final":
			return tool.Output{}, stint.Fail(errReset{})
		}
		return tool.Output{}, errReset{}
	})
	return t
}

// A read that fails at every attempt is told to the model as an error of its call, and the
// loop goes on: by itself and in a group, of which the others are done once.
func TestReadThatNeverWorks(t *testing.T) {
	for how, want := range map[string]string{
		"fails": "error: flaky could not be done: connection reset", "wants to be tried later": "error: flaky could not be done: connection reset",
		"panics": "error: flaky could not be done: panic: index out of range", "hangs": "error: flaky could not be done: step flaky: no result within 1m0s",
	} {
		for kind, calls := range map[string]string{"single": `{"name":"flaky","input":{}}`, "group": `{"name":"act","input":{}},{"name":"flaky","input":{}},{"name":"echo","input":{"n":1}}`} {
			t.Run(how+"/"+kind, func(t *testing.T) {
				tries, acted := 0, 0
				act := does("act", stint.Once, func(tool.Call) (string, error) { acted++; return "done", nil })
				m := plays(t, `{"steps":[{"tools":[`+calls+`]},{"text":"I see."}]}`)
				onEngine(t, llm.Spec{Model: m, Tools: toolset(t, hopeless(how, stint.Read, &tries), act, echo("echo"))}, func(r *rig) {
					s := r.start("Go.", nil)
					if s.Status != stint.Completed || tries != 5 || acted > 1 || len(m.reqs) != 2 {
						t.Fatalf("%s %s: %d tries, acted %d times, asked %d times", s.Status, s.Reason, tries, acted, len(m.reqs))
					}
					said := map[string]*model.Result{}
					for _, p := range m.reqs[1].Messages[2].Parts {
						said[p.Result.Call] = p.Result
					}
					id := "call_1"
					if kind == "group" {
						id = "call_2"
						if said["call_1"].Error || said["call_3"].Text != `{"n":1}` {
							t.Errorf("the others gave %+v, %+v", said["call_1"], said["call_3"])
						}
					}
					if got := said[id]; !got.Error || got.Text != want {
						t.Errorf("the model is told %q, want %q", got.Text, want)
					}
				})
			})
		}
	}
}

// What is no read is not: a once tool is a question to a person at its first failure, and
// of an idempotent one nobody knows what it did, so the session ends as before.
func TestOthersThatNeverWork(t *testing.T) {
	for _, kind := range []string{`{"name":"flaky","input":{}}`, `{"name":"echo","input":{}},{"name":"flaky","input":{}}`} {
		for effect, want := range map[stint.Effect]struct {
			status stint.Status
			tries  int
		}{stint.Once: {stint.Waiting, 1}, stint.Idempotent: {stint.Failed, 5}} {
			for _, how := range []string{"fails", "panics"} {
				tries := 0
				m := plays(t, `{"steps":[{"tools":[`+kind+`]},{"text":"I see."}]}`)
				onEngine(t, llm.Spec{Model: m, Tools: toolset(t, hopeless(how, effect, &tries), echo("echo"))}, func(r *rig) {
					s := r.start("Go.", nil)
					if s.Status != want.status || tries != want.tries || len(m.reqs) != 1 || s.Status == stint.Waiting && s.Wait.For != stint.ForDoubt {
						t.Errorf("%s %s: %s (%s), %+v, %d tries", effect, how, s.Status, s.Reason, s.Wait, tries)
					}
				})
			}
		}
	}
}

// An error that is final ends the session at once, also at the last attempt.
func TestFinalReadEndsTheSession(t *testing.T) {
	for _, attempts := range []int{1, 5} {
		tries := 0
		onEngine(t, llm.Spec{Model: plays(t, `{"steps":[{"tools":[{"name":"flaky","input":{}}]}]}`), Tools: toolset(t, hopeless("is final", stint.Read, &tries))}, func(r *rig) {
			r.again(engine.Retry{Attempts: attempts})
			if s := r.start("Go.", nil); s.Status != stint.Failed || tries != 1 {
				t.Errorf("%s %s: %d tries", s.Status, s.Reason, tries)
			}
		})
	}
}

// The number of attempts is that of the agent's policy, down to a single one and up to
// what the brake on restarts allows.
func TestLastAttempt(t *testing.T) {
	for attempts, want := range map[int]int{1: 1, 2: 2, -1: 5} {
		tries := 0
		onEngine(t, llm.Spec{Model: plays(t, `{"steps":[{"tools":[{"name":"flaky","input":{}}]},{"text":"I see."}]}`), Tools: toolset(t, hopeless("fails", stint.Read, &tries))}, func(r *rig) {
			r.again(engine.Retry{Attempts: attempts})
			if s := r.start("Go.", nil); s.Status != stint.Completed || tries != want {
				t.Errorf("%d attempts: %s %s: %d tries", attempts, s.Status, s.Reason, tries)
			}
		})
	}
}

// A stop at the last attempt is no outcome of the tool that it cuts off.
func TestStopIsNoOutcome(t *testing.T) {
	tries := 0
	onEngine(t, llm.Spec{Model: plays(t, `{"steps":[{"tools":[{"name":"flaky","input":{}}]}]}`), Tools: toolset(t, hopeless("hangs", stint.Read, &tries))}, func(r *rig) {
		r.again(engine.Retry{Attempts: 1})
		r.begun = func(id stint.ID) {
			go func() {
				<-time.After(time.Second)
				data, err := json.Marshal(map[string]string{"reason": "enough"})
				if err == nil {
					err = r.store.Send(t.Context(), id, stint.Message{ID: "1", Kind: stint.Kill, From: "human:ana", Data: data})
				}
				if err != nil {
					t.Error(err)
				}
			}()
		}
		s := r.start("Go.", nil)
		if s.Status != stint.Canceled || tries != 1 {
			t.Errorf("%s %s: %d tries", s.Status, s.Reason, tries)
		}
		for _, e := range r.entries() {
			if e.Kind == stint.StepFailed && strings.Contains(string(e.Data), `"definite":true`) {
				t.Errorf("it is recorded as an outcome: %s", e.Data)
			}
		}
	})
}

// again makes the engine of the rig anew, with another policy.
func (r *rig) again(policy engine.Retry) {
	r.t.Helper()
	if err := r.e.Close(); err != nil {
		r.t.Fatal(err)
	}
	r.agent.Retry = policy
	var err error
	if r.e, err = engine.New(r.t.Context(), r.store, engine.Options{Agents: []engine.Agent{r.agent}}); err != nil {
		r.t.Fatal(fmt.Errorf("engine: %w", err))
	}
}
