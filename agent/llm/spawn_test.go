package llm_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/agent/llm"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/store/mem"
	"github.com/stint-dev/stint/tool"
	"github.com/stint-dev/stint/tool/builtin"
)

// A model begins two sessions beside another call, waits, and is told what came of them.
func TestSpawn(t *testing.T) {
	both, err := builtin.Spawn("worker")
	if err != nil {
		t.Fatal(err)
	}
	m := plays(t, `{"steps":[
		{"tools":[{"name":"spawn","input":{"agent":"worker","input":"dig","name":"one"}},{"name":"look","input":{}},{"name":"spawn","input":{"agent":"worker","input":"fill","name":"a"}},
			{"name":"spawn","input":{"agent":"boss","input":"x"}}]},
		{"tools":[{"name":"wait_for_children","input":{}}]},{"tools":[{"name":"wait_for_children","input":{}}]},{"text":"Done."}]}`)
	look := does("look", stint.Read, func(tool.Call) (string, error) { return "seen", nil })
	worker := engine.Agent{Name: "worker", Loop: stint.AgentFunc(func(_ context.Context, l stint.Loop) (stint.Next, error) {
		text, err := stint.Marshal(string(l.Inbox()[0].Body) + " is done")
		return stint.Next{End: &stint.End{Result: text}}, err
	})}
	synctest.Test(t, func(t *testing.T) {
		store := mem.New()
		boss := engine.Agent{Name: "boss", Loop: agentOf(t, llm.Spec{Model: m, Tools: toolset(t, append(both, look)...)})}
		e, err := engine.New(t.Context(), store, engine.Options{Agents: []engine.Agent{boss, worker}})
		if err != nil {
			t.Fatal(err)
		}
		s, err := e.RunNew(t.Context(), engine.Request{Agent: boss, Name: "boss", Input: []byte("Go.")}, func(engine.Created) {})
		if err != nil || s.Status != stint.Completed || s.Totals.Children != 2 {
			t.Errorf("%s (%s), %d children, %v", s.Status, s.Reason, s.Totals.Children, err)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	var told, answers []string
	for _, msg := range m.reqs[len(m.reqs)-1].Messages {
		for _, p := range msg.Parts {
			if p.Result != nil {
				answers = append(answers, p.Result.Text)
			} else if strings.Contains(p.Text, "has ended") {
				told = append(told, p.Text)
			}
		}
	}
	all := strings.Join(told, "\n")
	for _, want := range []string{"The session one (", "has ended: completed. Its result:\n\"dig is done\"", "The session a (", "\"fill is done\""} {
		if !strings.Contains(all, want) {
			t.Errorf("the model was told %q, and %q is not in it", all, want)
		}
	}
	if len(answers) != 6 || !strings.Contains(answers[0], "A session of worker begins. Its id is ") || answers[1] != "seen" || !strings.Contains(answers[2], "Its id is ") || !strings.Contains(answers[3], "must be 'worker'") {
		t.Errorf("the calls gave %q", answers)
	}
	if _, err := builtin.Spawn(); err == nil {
		t.Error("spawn without agents is a tool")
	}
}

// A model is told once, before the loop that follows, that 80 % of a limit are used.
func TestNoticeOfALimit(t *testing.T) {
	m := plays(t, `{"steps":[{"tools":[{"name":"look","input":{"n":1}}]},{"tools":[{"name":"look","input":{"n":2}}]},{"tools":[{"name":"look","input":{"n":3}}]},
		{"tools":[{"name":"look","input":{"n":4}}]},{"tools":[{"name":"look","input":{"n":5}}]},{"text":"Done."}]}`)
	look := does("look", stint.Read, func(c tool.Call) (string, error) { return "seen " + string(c.Args), nil })
	onEngine(t, llm.Spec{Model: m, Tools: toolset(t, look)}, func(r *rig) {
		if s := r.start("Go.", &stint.Limits{Loops: 5}); s.Status != stint.Waiting || s.Wait.For != stint.ForBudget {
			t.Fatalf("%s, %+v", s.Status, s.Wait)
		}
		for n, req := range m.reqs {
			told := 0
			for _, msg := range req.Messages {
				for _, p := range msg.Parts {
					told += strings.Count(p.Text, "Of 5 loops that this session may use, 80 % are used.")
				}
			}
			if want := max(0, n-3); told != want {
				t.Errorf("request %d says it %d times, want %d", n+1, told, want)
			}
		}
		if len(m.reqs) != 5 {
			t.Errorf("%d requests", len(m.reqs))
		}
	})
}
