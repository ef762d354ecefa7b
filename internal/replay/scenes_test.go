package replay_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/agent/llm"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/internal/ident"
	"github.com/stint-dev/stint/internal/replay"
	"github.com/stint-dev/stint/journal"
	"github.com/stint-dev/stint/model"
	"github.com/stint-dev/stint/model/script"
	"github.com/stint-dev/stint/store/mem"
	"github.com/stint-dev/stint/tool"
)

// rig is an engine on a store in memory that runs one agent.
type rig struct {
	t     *testing.T
	store *mem.Store
	e     *engine.Engine
	agent engine.Agent
	id    stint.ID
}

func newRig(t *testing.T, loop stint.Agent) *rig {
	t.Helper()
	r := &rig{t: t, store: mem.New(), agent: engine.Agent{Name: "helper", Loop: loop, Retry: engine.Retry{Attempts: 1}}}
	var err error
	if r.e, err = engine.New(t.Context(), r.store, engine.Options{Agents: []engine.Agent{r.agent}}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(r.e.Close(), r.store.Close()); err != nil {
			t.Error(err)
		}
	})
	return r
}

func (r *rig) start(input string) stint.Session {
	r.t.Helper()
	s, err := r.e.RunNew(r.t.Context(), engine.Request{Agent: r.agent, Name: "s", Input: []byte(input), Actor: "human:ana"}, func(c engine.Created) { r.id = c.ID })
	if err != nil {
		r.t.Fatal(err)
	}
	return s
}

func (r *rig) send(m stint.Message) stint.Session {
	r.t.Helper()
	m.From = "human:ana"
	if m.ID == "" {
		m.ID = ident.New().String()
	}
	if err := r.store.Send(r.t.Context(), r.id, m); err != nil {
		r.t.Fatal(err)
	}
	s, err := r.e.Run(r.t.Context(), r.id)
	if err != nil {
		r.t.Fatal(err)
	}
	return s
}

func (r *rig) say(text string) stint.Session {
	return r.send(stint.Message{Kind: stint.Prompt, Body: []byte(text)})
}

func (r *rig) decide(s stint.Session, state stint.ApprovalState, note, answer string) stint.Session {
	r.t.Helper()
	if s.Wait == nil || s.Wait.For != stint.ForApproval {
		r.t.Fatalf("it waits for %+v, not for an approval", s.Wait)
	}
	_, seq := ident.CutApprovalID(s.Wait.Approval)
	d := journal.Decision{Approval: seq, State: state, Note: note}
	return r.send(stint.Message{ID: d.MessageID(), Kind: stint.Decision, Data: marshal(r.t, d), Body: []byte(answer)})
}

func marshal(t *testing.T, v any) json.RawMessage {
	t.Helper()
	b, err := stint.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// scene is a golden journal: the agent that made it, and how it was made.
type scene struct {
	agent func(t *testing.T) stint.Agent // as it was when the journal was recorded
	play  func(r *rig) stint.Session
}

func scenes() map[string]scene {
	return map[string]scene{
		"go": {
			agent: func(*testing.T) stint.Agent { return stint.AgentFunc(shopkeeper) },
			play: func(r *rig) stint.Session {
				s := r.start(`buy a lamp`)
				s = r.decide(s, stint.ApprovalApproved, "", `"blue"`)
				s = r.decide(s, stint.ApprovalDenied, "too dear", "")
				s = r.say("and a chair")
				return r.send(stint.Message{Kind: stint.Resolve, Data: marshal(r.t, journal.Command{Step: &s.Wait.Step, Verdict: journal.Unknown})})
			},
		},
		"llm": {
			agent: func(t *testing.T) stint.Agent { return clerk(t, "You are a clerk.") },
			play: func(r *rig) stint.Session {
				r.start("file the letters")
				return r.say("and the bills")
			},
		},
		"exec": {
			agent: func(t *testing.T) stint.Agent { return courier(t, nil) },
			play: func(r *rig) stint.Session {
				r.start("bring the parcels")
				return r.say("the last one")
			},
		},
		"http": {
			agent: func(t *testing.T) stint.Agent { return baker(t, strings.NewReplacer()) },
			play:  func(r *rig) stint.Session { return r.start("") },
		},
		"cli": {
			agent: writer,
			play: func(r *rig) stint.Session {
				r.start("write the file")
				return r.say("and now?")
			},
		},
		"acp": {
			agent: peer,
			play: func(r *rig) stint.Session {
				r.start("write the file")
				return r.say("and now?")
			},
		},
		"exec-none": {
			agent: plain,
			play:  func(r *rig) stint.Session { return r.start("") },
		},
	}
}

// shopkeeper uses all that a loop in Go has.
func shopkeeper(ctx context.Context, l stint.Loop) (stint.Next, error) {
	var bought []string
	if l.State() != nil {
		if err := json.Unmarshal(l.State(), &bought); err != nil {
			return stint.Next{}, err
		}
	}
	wish := string(l.Inbox()[0].Body)
	price, err := stint.Do(ctx, l, stint.Step{Name: "price", Effect: stint.Read, Input: json.RawMessage(fmt.Sprintf(`{"of":%q}`, wish))},
		func(context.Context, string) (int, error) { return 1 << 60, nil })
	if err != nil {
		return stint.Next{}, err
	}
	_, missing := l.Do(ctx, stint.Step{Name: "stock", Effect: stint.Read}, func(context.Context, string) (stint.Result, error) {
		return stint.Result{}, errors.New("no answer from the stock\nat all")
	})
	if missing == nil || strings.Contains(missing.Error(), "price") {
		return stint.Next{}, fmt.Errorf("the stock answered: %w", missing)
	}
	var colour stint.Result
	if len(bought) == 0 {
		if colour, err = l.Do(ctx, stint.Step{Name: "colour", Ask: "Which colour?", Answer: json.RawMessage(`{"type":"string"}`)}, nil); err != nil {
			return stint.Next{}, err
		}
	}
	group := []stint.Step{
		{Name: "order", Kind: stint.Tool, Effect: stint.Once, Input: json.RawMessage(fmt.Sprintf(`{"price":%d}`, price))},
		{Name: "insure", Kind: stint.Tool, Effect: stint.Idempotent},
	}
	if len(bought) == 0 {
		group[1].Ask = "Insure it?"
	}
	res, err := l.DoAll(ctx, group, func(_ context.Context, i int, _ string) (stint.Result, error) {
		if i == 0 {
			return stint.Result{Data: json.RawMessage(`"` + strings.Repeat("receipt ", 400) + `"`), Usage: stint.Usage{Cost: 5}}, nil
		}
		return stint.Result{}, stint.Definite(stint.Retry(3, stint.Limit.Errorf("insurance", "not for\nlamps")))
	})
	if len(res) != 2 || err == nil {
		return stint.Next{}, fmt.Errorf("the insurer agreed: %w", err)
	}
	rang := stint.Result{}
	if len(bought) > 0 {
		var ringErr error
		rang, ringErr = l.Do(ctx, stint.Step{Name: "ring", Input: json.RawMessage(`["` + strings.Repeat("door ", 500) + `"]`)}, func(context.Context, string) (stint.Result, error) {
			return stint.Result{}, errors.New("the line is dead") // nobody knows whether it rang
		})
		if ringErr != nil || !strings.Contains(string(rang.Data), "unknown") {
			return stint.Next{}, cmp.Or(ringErr, errors.New("it rang"))
		}
	}
	bought = append(bought, string(rang.Data), wish, fmt.Sprint(len(res[0].Data)), string(colour.Data), err.Error(), string(stint.CodeOf(err)))
	state, err := stint.Marshal(bought)
	if err != nil {
		return stint.Next{}, err
	}
	if len(bought) < 12 {
		return stint.Next{State: state, Wait: &stint.Wait{For: stint.ForMessage}, Headline: "it bought " + wish}, nil
	}
	return stint.Next{State: state, End: &stint.End{Reason: "sold out", Result: state}}, nil
}

// clerkScript is what the clerk's model says: two answers to the first message, and one to
// the second.
const clerkScript = `{"model":"clerk-1","steps":[
	{"text":"I file them.","tools":[{"name":"file","input":{"what":"letter 1"}},{"name":"file","input":{"what":"letter 2"}},{"name":"lose","input":{}}]},
	{"text":"The letters are filed."},
	{"tools":[{"name":"file","input":{"what":"bills"}}]},
	{"text":"So are the bills."}]}`

// clerk is a model with tools.
func clerk(t *testing.T, instructions string) stint.Agent {
	t.Helper()
	m, err := script.Parse([]byte(clerkScript))
	if err != nil {
		t.Fatal(err)
	}
	file := tool.Tool{Name: "file", Effect: stint.Idempotent, Description: "Files something.", Schema: json.RawMessage(`{"type":"object","properties":{"what":{"type":"string"}}}`),
		Caller: tool.CallerFunc(func(_ context.Context, c tool.Call) (tool.Output, error) {
			return tool.Output{Text: "filed " + string(c.Args)}, nil
		})}
	set, err := tool.NewSet(file)
	if err != nil {
		t.Fatal(err)
	}
	a, err := llm.New(llm.Spec{Model: m, System: instructions, Tools: set, Interactive: true,
		Cost: func(string, model.Usage) (stint.Money, bool) { return 7, true }})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// recordScene records what is not there yet.
func recordScene(t *testing.T, name string, s *scene) {
	t.Helper()
	path := filepath.Join("testdata", name+".jsonl")
	if _, err := os.Stat(path); !*record || err == nil {
		return
	}
	r := newRig(t, s.agent(t))
	end := s.play(r)
	t.Logf("%s: %s %s", name, end.Status, end.Reason)
	writeGolden(t, path, r.store, r.id)
}

// all replays a golden journal with an agent.
func all(t *testing.T, name string, agent stint.Agent) *replay.Report {
	t.Helper()
	g := readGolden(t, name)
	rep, err := replay.Run(t.Context(), g, g.session.ID, agent, replay.Options{Line: -1})
	if err != nil {
		t.Fatal(err)
	}
	return rep
}
