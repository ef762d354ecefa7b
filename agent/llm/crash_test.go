package llm_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/agent/llm"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/model/script"
	"github.com/stint-dev/stint/store/mem"
	"github.com/stint-dev/stint/tool"
)

// A process dies in the middle of three calls, one of which has ended. The next process
// gives the model one explicit result for each: what ended stays as it was, what may have
// taken effect is unknown, and what can be read again is read again.
func TestCrashInGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := mem.New()
		done, dead := make(chan bool), make(chan bool)
		reads := 0
		slow := does("slow", stint.Once, func(tool.Call) (string, error) { <-dead; return "too late", nil })
		quick := does("quick", stint.Once, func(c tool.Call) (string, error) { defer close(done); return "quick " + string(c.Args), nil })
		look := does("look", stint.Read, func(tool.Call) (string, error) {
			if reads++; reads == 1 {
				<-dead
			}
			return fmt.Sprintf("looked %d times", reads), nil
		})
		m := plays(t, `{"steps":[{"tools":[{"name":"slow","input":{"n":1}},{"name":"quick","input":{"n":2}},{"name":"look","input":{}}]},{"text":"I see."}]}`)
		agent := func() engine.Agent {
			return engine.Agent{Name: "helper", Loop: agentOf(t, llm.Spec{Model: m, Tools: toolset(t, slow, quick, look)}),
				Doubt: func(string) engine.Doubt { return engine.Doubt{Unknown: true} }}
		}
		first := agent()
		e1, err := engine.New(t.Context(), store, engine.Options{Agents: []engine.Agent{first}})
		if err != nil {
			t.Fatal(err)
		}
		r := &rig{t: t, store: store}
		gone := make(chan error)
		go func() {
			_, err := e1.RunNew(t.Context(), engine.Request{Agent: first, Input: []byte("Go.")}, func(c engine.Created) { r.id = c.ID })
			gone <- err
		}()
		<-done
		synctest.Wait()
		if err := e1.Close(); err != nil {
			t.Fatal(err)
		}
		r.agent = agent()
		if r.e, err = engine.New(t.Context(), store, engine.Options{Agents: []engine.Agent{r.agent}}); err != nil {
			t.Fatal(err)
		}
		if s := r.goOn(); s.Status != stint.Completed {
			t.Errorf("got %s %s", s.Status, s.Reason)
		}
		close(dead)
		if err := <-gone; err == nil {
			t.Error("the first process was not told that it lost the session")
		}
		r.show()
		fmt.Fprintf(&r.out, "%d requests\n", len(m.reqs))
		r.golden("crash")
		if err := r.e.Close(); err != nil {
			t.Error(err)
		}
	})
}

// What a loop adds to the store is about what was said in it, however long the transcript is.
func TestGrowth(t *testing.T) {
	var steps []string
	for i := range 200 {
		steps = append(steps, fmt.Sprintf(`{"tools":[{"name":"look","input":{"n":%d}}]}`, i))
	}
	look := does("look", stint.Read, func(c tool.Call) (string, error) { return string(c.Args) + strings.Repeat(" word", 100), nil })
	onEngine(t, llm.Spec{Model: plays(t, `{"steps":[`+strings.Join(steps, ",")+`]}`), Tools: toolset(t, look), Context: llm.Context{Window: 10_000_000}}, func(r *rig) {
		r.start("Go.", nil)
		var early, late int
		for _, e := range r.entries() {
			if e.Kind != stint.LoopCompleted {
				continue
			}
			size := len(e.Body) + int(e.Blob.Size)
			switch n := e.Pos.Loop; {
			case size > 100_000: // a full snapshot, once in 64
			case n > 50 && n <= 100:
				early += size
			case n > 150 && n <= 200:
				late += size
			}
		}
		if late > early*11/10 || late > 50*4000 {
			t.Errorf("fifty loops add %d bytes, and a hundred later %d", early, late)
		}
	})
}

// A state that this agent has not written is refused, and never breaks it.
func FuzzState(f *testing.F) {
	for _, s := range []string{`{}`, `[]`, `null`, `{"v":1}`, `{"v":1,"messages":[]}`, `{"v":1,"messages":null}`, `{"v":2,"messages":[]}`, `{"v":1,"idle":true,"messages":[{}]}`,
		`{"v":1,"used":-5,"used_at":99,"messages":[{"role":"user","parts":[{"text":"hi"}]}]}`,
		`{"v":1,"long":[{"call":"a"}],"messages":[{"role":"user","parts":[{"text":"hi"}]},{"role":"assistant","parts":[{"text":"ho"}]}]}`,
		`{"v":1,"watch":{"ring":3},"messages":[{"role":"user","parts":[{"result":{}}]}]}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, state string) {
		if !json.Valid([]byte(state)) {
			return
		}
		m, err := script.Parse([]byte(`{"steps":[{"tools":[{"name":"echo","input":{}}]},{"text":"ok"}],"after":"repeat"}`))
		if err != nil {
			t.Fatal(err)
		}
		w := newWorld(t, llm.Spec{Model: m, Tools: toolset(t, echo("echo")), Context: llm.Context{Window: 100}}, "Go.")
		w.state = json.RawMessage(state)
		next, err := w.agent.Loop(context.Background(), &fakeLoop{w: w})
		if err == nil && next.State != nil {
			messages(t, next.State)
		}
	})
}
