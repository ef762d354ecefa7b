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
		{"tools":[{"name":"wait_for_children","input":{}}]},{"text":"Done."}]}`)
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
	if len(answers) != 5 || !strings.Contains(answers[0], "A session of worker begins. Its id is ") || answers[1] != "seen" || !strings.Contains(answers[2], "Its id is ") || !strings.Contains(answers[3], "must be 'worker'") {
		t.Errorf("the calls gave %q", answers)
	}
	if _, err := builtin.Spawn(); err == nil {
		t.Error("spawn without agents is a tool")
	}
}
