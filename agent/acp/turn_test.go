package acp_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/agent/acp"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/journal"
)

// A turn with words, a plan, a call that only looks, and one that asks permission.
const twoTools = `think Let me see.
plan Read, then write
text I look\n
text at it.
tool 1 read {"path":"a.go"} Read a.go
begin 1
end 1 package a
text Now I change it.
tool 2 edit {"path":"a.go","by":3} Edit a.go
edit 2 a.go new\nlines\n
ask 2
?begin 2
?effect edited
?end 2 done
!fail 2 refused
text All done.
usage
cost 0.25`

func TestPermission(t *testing.T) {
	for name, state := range map[string]stint.ApprovalState{"approved": stint.ApprovalApproved, "denied": stint.ApprovalDenied} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t, twoTools)
			r := newRig(t, f.spec, 1)
			id, end := r.held("change a.go")
			if got := f.read("effects"); got != "" {
				t.Fatalf("before the decision: %q", got)
			}
			r.decide(id, r.asked(id), state, "as you like")
			s := end()
			r.is(s, stint.Completed)
			want := map[string]string{"approved": "edited\n", "denied": ""}[name]
			if got := f.read("effects"); got != want {
				t.Errorf("the effects are %q", got)
			}
			if f.how() != "new" {
				t.Errorf("prompts: %s", f.how())
			}
			if s.Totals.Usage.Input != 100 || s.Totals.Usage.Cost != 250_000_000 {
				t.Errorf("used %+v", s.Totals.Usage)
			}
			golden(t, name+".txt", r.journal(id))
		})
	}
}

// pays asks permission for one payment, as often as it is played.
const pays = `text I pay.
tool 1 execute {"pay":5} Pay
ask 1
?begin 1
?effect paid
?end 1 paid
!fail 1 refused
`

// goOn does the same in a new process, with other words and another id.
const goOn = `text Again.
tool 9 execute {"pay":5} Pay the bill
ask 9
?begin 9
?effect paid
?end 9 paid
!fail 9 refused
text Done.`

// A question outlives the time that the process is kept for it, and the process: the
// decision is for the first equal call that is asked for afterwards, once.
func TestHoldIsOver(t *testing.T) {
	for name, c := range map[string]struct {
		state   stint.ApprovalState
		next    string
		effects string
		told    string
	}{
		"approved": {stint.ApprovalApproved, goOn, "paid\n", `You were given permission for execute {"pay":5}. Go on with it now.`},
		"denied":   {stint.ApprovalDenied, goOn, "", `Your call of execute {"pay":5} was refused: denied by human:kim: so be it.`},
		"approved, asked later": {stint.ApprovalApproved,
			lines(`tool 8 read {"path":"bill"} Read`, "begin 8", "end 8 5 francs") + goOn, "paid\n", "You were given permission"},
		"approved, not asked": {stint.ApprovalApproved, "text Never mind.", "", "You were given permission"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t, pays, c.next)
			f.spec.Hold = 50 * time.Millisecond
			r := newRig(t, f.spec, 1)
			id, end := r.held("pay the bill")
			s := end()
			r.is(s, stint.Waiting)
			first := r.asked(id)
			if s.Wait.For != stint.ForApproval || !f.has("canceled") {
				t.Fatalf("it waits for %s, canceled: %v\n%s", s.Wait.For, f.has("canceled"), r.journal(id))
			}
			r.decide(id, first, c.state, "so be it")
			s = r.drive(t.Context(), id)
			r.is(s, stint.Completed)
			if got := f.read("effects"); got != c.effects {
				t.Errorf("the effects are %q\n%s", got, r.journal(id))
			}
			if f.how() != "new load" {
				t.Errorf("prompts: %s", f.how())
			}
			has(t, "the prompt", f.said()[1].Prompt, "You were interrupted.", c.told)
			if n := strings.Count(r.journal(id), "approval.requested"); n != 1 {
				t.Errorf("a person was asked %d times", n)
			}
			golden(t, "hold-"+strings.ReplaceAll(strings.ReplaceAll(name, ", ", "-"), " ", "-")+".txt", r.journal(id))
		})
	}
}

// A decision is used once: the second equal call is a question of its own.
func TestDecisionIsUsedOnce(t *testing.T) {
	for name, state := range map[string]stint.ApprovalState{"approved": stint.ApprovalApproved, "denied": stint.ApprovalDenied} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t, pays, goOn+"\n"+strings.ReplaceAll(goOn, " 9", " 10"))
			f.spec.Hold = -1
			r := newRig(t, f.spec, 1)
			s := r.run(t.Context(), "pay the bill")
			r.is(s, stint.Waiting)
			first := r.asked(s.ID)
			r.decide(s.ID, first, state, "")
			s = r.drive(t.Context(), s.ID)
			r.is(s, stint.Waiting)
			if second := r.asked(s.ID); second.Seq == first.Seq {
				t.Errorf("no second question\n%s", r.journal(s.ID))
			}
			want := map[string]string{"approved": "paid\n", "denied": ""}[name]
			if got := f.read("effects"); got != want {
				t.Errorf("the effects are %q\n%s", got, r.journal(s.ID))
			}
		})
	}
}

// A process that dies while a person thinks is started again for the decision.
func TestDiesWhileHeld(t *testing.T) {
	f := newFake(t, "pid\n"+pays, goOn)
	r := newRig(t, f.spec, 1)
	id, end := r.held("pay")
	f.kill()
	r.decide(id, r.asked(id), stint.ApprovalApproved, "")
	s := end()
	r.is(s, stint.Completed)
	if got := f.read("effects"); got != "paid\n" || f.how() != "new load" {
		t.Errorf("the effects are %q, prompts %s\n%s", got, f.how(), r.journal(id))
	}
}

// An agent that dies before it asks again leaves nothing in doubt, however often.
func TestDiesBeforeAskedAgain(t *testing.T) {
	f := newFake(t, pays, "text I\nexit 1", "exit 1", goOn)
	f.spec.Hold = -1
	r := newRig(t, f.spec, 4)
	s := r.run(t.Context(), "pay")
	r.decide(s.ID, r.asked(s.ID), stint.ApprovalApproved, "")
	r.is(r.drive(t.Context(), s.ID), stint.Completed)
	if got := f.read("effects"); got != "paid\n" || f.how() != "new load load load" {
		t.Errorf("the effects are %q, prompts: %s\n%s", got, f.how(), r.journal(s.ID))
	}
	if n := r.steps(s.ID, stint.StepRequested, "execute"); n != 1 || strings.Contains(r.journal(s.ID), "step.resolved") {
		t.Errorf("%d intents\n%s", n, r.journal(s.ID))
	}
}

// Nor one that died while a person thought, and dies again when it is started for the yes.
func TestDiesHeldAndAgain(t *testing.T) {
	f := newFake(t, "pid\n"+pays, "exit 1", goOn)
	r := newRig(t, f.spec, 3)
	id, end := r.held("pay")
	f.kill()
	r.decide(id, r.asked(id), stint.ApprovalApproved, "")
	r.is(end(), stint.Completed)
	if got := f.read("effects"); got != "paid\n" || f.how() != "new load load" {
		t.Errorf("the effects are %q, prompts: %s\n%s", got, f.how(), r.journal(id))
	}
	has(t, "the journal", r.journal(id), "step.resolved  not")
}

// An agent that cannot load a session is told what was.
func TestCannotLoad(t *testing.T) {
	f := newFake(t, "text Hello.", "tool 1 read {} Look\nbegin 1\nend 1 seen\n"+pays, goOn)
	f.write("no-load", "")
	f.spec.Hold, f.spec.Interactive = -1, true
	r := newRig(t, f.spec, 1)
	s := r.run(t.Context(), "Hi!")
	r.is(s, stint.Waiting)
	r.send(s.ID, stint.Prompt, journal.Command{}, "Pay.")
	s = r.drive(t.Context(), s.ID)
	r.decide(s.ID, r.asked(s.ID), stint.ApprovalApproved, "")
	s = r.drive(t.Context(), s.ID)
	r.is(s, stint.Waiting)
	if f.how() != "new new new" || f.read("effects") != "paid\n" {
		t.Errorf("prompts: %s, effects %q", f.how(), f.read("effects"))
	}
	all := f.said()
	has(t, "the second prompt", all[1].Prompt, "The user: Hi!\nYou: Hello.", "\nPay.")
	has(t, "the third prompt", all[2].Prompt, "The user: Hi!\nYou: Hello.\nThe user: Pay.", "You called read", "You: I pay.", "You were given permission for")
	golden(t, "no-load.txt", r.journal(s.ID))
}

// A session goes on with the next prompt, in another process.
func TestTurns(t *testing.T) {
	for name, c := range map[string]struct {
		file, want string
	}{
		"load":   {"", "new load"},
		"late":   {"late", "new load"},
		"resume": {"resume", "new resume"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t, "text One.\ncost 0.5\nusage", "text Two.\ncost 0.75\nusage")
			if c.file != "" {
				f.write(c.file, "")
			}
			f.spec.Interactive = true
			r := newRig(t, f.spec, 1)
			if c.file == "late" {
				r.acp.Calm(2 * time.Second)
			}
			s := r.run(t.Context(), "a")
			r.is(s, stint.Waiting)
			r.send(s.ID, stint.Prompt, journal.Command{}, "b")
			s = r.drive(t.Context(), s.ID)
			r.is(s, stint.Waiting)
			if f.how() != c.want || s.Totals.Usage.Cost != 750_000_000 || s.Totals.Usage.Output != 20 {
				t.Errorf("prompts: %s, %+v\n%s", f.how(), s.Totals.Usage, r.journal(s.ID))
			}
			if strings.Contains(r.journal(s.ID), "old") {
				t.Errorf("what was said before is told again\n%s", r.journal(s.ID))
			}
			if got := f.said()[1].Prompt; got != "b" {
				t.Errorf("the second prompt: %q", got)
			}
		})
	}
}

// Approve and Effects are by kind.
func TestPolicy(t *testing.T) {
	f := newFake(t, pays+"write WORK/deep/a.txt hello\ntext read:\nread WORK/deep/a.txt\nread WORK/../b\nread /etc/passwd\nstop max_tokens")
	f.spec.Approve = map[string]acp.Approve{"execute": acp.Never}
	f.spec.Effects = map[string]stint.Effect{"execute": stint.Idempotent}
	r := newRig(t, f.spec, 1)
	s := r.run(t.Context(), "pay")
	r.is(s, stint.Stopped)
	if f.read("effects") != "paid\n" {
		t.Error("it was not done")
	}
	b, err := os.ReadFile(filepath.Join(f.work, "deep", "a.txt"))
	if err != nil || string(b) != "hello" {
		t.Errorf("%q, %v", b, err)
	}
	golden(t, "policy.txt", strings.ReplaceAll(r.journal(s.ID), f.work, "WORK"))
}

// A file outside of a call is a step, and can be a question.
func TestFilePermission(t *testing.T) {
	f := newFake(t, "write WORK/a.txt hello", "write WORK/a.txt hello\nwrite WORK/b.txt hello")
	f.spec.Approve = map[string]acp.Approve{"edit": acp.Always}
	f.spec.Hold = -1
	r := newRig(t, f.spec, 1)
	s := r.run(t.Context(), "write")
	r.is(s, stint.Waiting)
	r.decide(s.ID, r.asked(s.ID), stint.ApprovalApproved, "")
	s = r.drive(t.Context(), s.ID)
	r.is(s, stint.Waiting)
	if b, err := os.ReadFile(filepath.Join(f.work, "a.txt")); err != nil || string(b) != "hello" {
		t.Errorf("%q, %v\n%s", b, err, r.journal(s.ID))
	}
	has(t, "the question", s.Wait.What, "write 5 bytes to", "b.txt")
	if _, err := os.Stat(filepath.Join(f.work, "b.txt")); err == nil {
		t.Error("it was written before the decision")
	}
}

// What a call reads and writes belongs to it, and changes show their size.
func TestEdits(t *testing.T) {
	f := newFake(t, `tool 1 edit - Edit a.go
edit 1 WORK/a.go new\nlines\n
ask 1
begin 1
write WORK/a.go new
read WORK/a.go
end 1 done`)
	r := newRig(t, f.spec, 1)
	id, end := r.held("edit")
	r.decide(id, r.asked(id), stint.ApprovalApproved, "")
	s := end()
	r.is(s, stint.Completed)
	golden(t, "edits.txt", strings.ReplaceAll(r.journal(id), f.work, "WORK"))
}

// A call that turns to ask permission when it is under way is a step for each stretch.
func TestAsksLate(t *testing.T) {
	f := newFake(t, "tool 1 execute {} Pay\nbegin 1\nawait late\nask 1\n?effect paid\nend 1 ok\ntext Done.")
	r := newRig(t, f.spec, 1)
	r.acp.Settle(time.Millisecond)
	c, err := r.engine.Start(t.Context(), engine.Request{Agent: r.agent, Name: "s", Input: []byte("x"), Actor: "human:ana"})
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		eventually(t, "begun", func() bool { return r.steps(c.ID, stint.StepRequested, "execute") == 1 })
		f.write("late", "")
	}()
	end := r.holds(c.ID)
	r.decide(c.ID, r.asked(c.ID), stint.ApprovalApproved, "")
	s := end()
	r.is(s, stint.Completed)
	has(t, "the journal", r.journal(c.ID), `{"stint":"asks_permission"}`, `{"status":"completed","output":"ok"}`)
}

// Calls that ask at once are asked about one after the other, each with its own answer.
func TestBothAsk(t *testing.T) {
	f := newFake(t, "tool 1 execute {\"n\":1} One\ntool 2 execute {\"n\":2} Two\nboth 1 2\ntext Done.")
	r := newRig(t, f.spec, 1)
	id, end := r.held("both")
	said := map[bool]string{}
	for range 2 {
		a := r.asked(id)
		one := strings.Contains(a.Text, "One")
		said[one] = a.Text
		r.decide(id, a, map[bool]stint.ApprovalState{true: stint.ApprovalApproved, false: stint.ApprovalDenied}[one], "")
		if len(said) == 1 {
			eventually(t, "the second question", func() bool {
				all := r.session(id).At.Approvals
				return len(all) > 0 && all[len(all)-1].Seq > a.Seq
			})
		}
	}
	r.is(end(), stint.Completed)
	if got := f.read("effects"); got != "1\n" || len(said) != 2 {
		t.Errorf("the effects are %q, the questions %v\n%s", got, said, r.journal(id))
	}
}

// An agent may end its turn with a refusal.
func TestRefusalEndsTurn(t *testing.T) {
	f := newFake(t, "tool 1 execute {} Pay\nask 1\nstop cancelled")
	r := newRig(t, f.spec, 1)
	id, end := r.held("pay")
	r.decide(id, r.asked(id), stint.ApprovalDenied, "")
	s := end()
	r.is(s, stint.Stopped)
	has(t, "the reason", s.Reason, "the agent ended its turn when a call was refused")
}

// Stop reasons and errors say what to do.
func TestEnds(t *testing.T) {
	for name, c := range map[string]struct {
		script, file string
		want         stint.Status
		says         []string
	}{
		"refusal":   {"stop refusal", "", stint.Failed, []string{"the agent refused to go on"}},
		"tokens":    {"stop max_tokens", "", stint.Stopped, []string{"reached its limit of tokens"}},
		"requests":  {"stop max_turn_requests", "", stint.Stopped, []string{"requests in a turn"}},
		"cancelled": {"stop cancelled", "", stint.Failed, []string{"says that its turn was canceled"}},
		"at start":  {"", "exits", stint.Failed, []string{"acp exited with 4 before the end of its turn: bad flag"}},
		"auth":      {"", "auth", stint.Failed, []string{"nobody is logged in to acp", "the agent names: Fake login"}},
		"version":   {"", "old", stint.Failed, []string{"speaks version 0 of the protocol"}},
		"error":     {"error boom", "", stint.Failed, []string{"acp failed its turn: boom"}},
		"dies":      {"text I\nexit 3", "", stint.Failed, []string{"acp exited with 3 before the end of its turn: fake: exits"}},
		"forever":   {"tool 1 execute {} Pay\nask 1 forever", "", stint.Failed, []string{"does not offer to take it once"}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t, c.script)
			if c.file != "" {
				f.write(c.file, "")
			}
			f.spec.Approve = map[string]acp.Approve{"execute": acp.Never}
			r := newRig(t, f.spec, 1)
			s := r.run(t.Context(), "go")
			r.is(s, c.want)
			has(t, "the end", s.Reason+r.journal(s.ID), c.says...)
		})
	}
	t.Run("not there", func(t *testing.T) {
		f := newFake(t)
		f.spec.Command = []string{"/no/such/agent"}
		r := newRig(t, f.spec, 3)
		s := r.run(t.Context(), "go")
		r.is(s, stint.Failed)
		has(t, "the end", s.Reason, "does not exist")
	})
}

// What is no message, or too large for one, ends nothing that can go on.
func TestNoise(t *testing.T) {
	t.Run("garbage", func(t *testing.T) {
		f := newFake(t, lines("print hello", "print [1,2]", "print {\"x\":1}", "print ", `print {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"session-1","update":{"sessionUpdate":"novelty","x":1}}}`,
			`print {"jsonrpc":"2.0","method":"session/update","params":3}`, `print {"jsonrpc":"2.0","id":7,"method":"terminal/create","params":{}}`, "text Done."))
		r := newRig(t, f.spec, 1)
		s := r.run(t.Context(), "go")
		r.is(s, stint.Completed)
		has(t, "the journal", r.journal(s.ID), "hello\n[1,2]\n{\"x\":1}\n", `{"text":"Done.","last":true}`)
	})
	t.Run("large", func(t *testing.T) {
		f := newFake(t, "big news 9000000\nbig request 9000000\ntext Done.")
		r := newRig(t, f.spec, 1)
		s := r.run(t.Context(), "go")
		r.is(s, stint.Completed)
		if n := strings.Count(r.journal(s.ID), "is left out: at most 8388608 are read"); n != 2 {
			t.Errorf("%d notes\n%s", n, r.journal(s.ID))
		}
	})
	t.Run("large answer", func(t *testing.T) {
		f := newFake(t, "big answer 9000000\nhang")
		r := newRig(t, f.spec, 1)
		s := r.run(t.Context(), "go")
		r.is(s, stint.Failed)
		has(t, "the end", s.Reason, "at most 8388608 are read")
	})
}

// A cancel tells the agent, and ends it with all that it started.
func TestCancel(t *testing.T) {
	for name, script := range map[string]string{
		"in a call": "tool 1 execute {} Pay\nbegin 1\ntouch hanging\nhang",
		"deaf":      "tool 1 execute {} Pay\nbegin 1\ntouch hanging\nhang hard",
		"in words":  "text I think\ntouch hanging\nhang",
		"held":      "tool 1 execute {} Pay\ntouch hanging\nask 1",
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t, script)
			f.write("child", "")
			f.write("lingers", "")
			r := newRig(t, f.spec, 1)
			c, err := r.engine.Start(t.Context(), engine.Request{Agent: r.agent, Name: "s", Input: []byte("x"), Actor: "human:ana"})
			if err != nil {
				t.Fatal(err)
			}
			r.acp.Settle(time.Millisecond)
			var at time.Time
			go func() {
				eventually(t, "in the turn", func() bool {
					return f.has("hanging") && (name == "in words" || name == "held" && r.session(c.ID).Status == stint.Waiting || r.steps(c.ID, stint.StepRequested, "execute") == 1)
				})
				at = time.Now()
				r.send(c.ID, stint.Kill, journal.Command{}, "")
			}()
			s := r.drive(t.Context(), c.ID)
			r.is(s, stint.Canceled)
			if d := time.Since(at); d > 5*time.Second {
				t.Errorf("it took %v", d)
			}
			f.gone()
			if !f.has("canceled") {
				t.Error("the agent was not told")
			}
		})
	}
}

// A once call that the agent did not ask for, and a process that dies in it: a person is
// asked, and the agent is told.
func TestDiesInCall(t *testing.T) {
	f := newFake(t, "tool 1 execute {\"pay\":5} Pay\nbegin 1\neffect paid\nexit 1", "text I see.")
	r := newRig(t, f.spec, 2)
	s := r.run(t.Context(), "pay")
	r.is(s, stint.Waiting)
	if s.Wait.For != stint.ForDoubt {
		t.Fatalf("it waits for %s", s.Wait.For)
	}
	r.send(s.ID, stint.Resolve, journal.Command{Step: &s.Wait.Step, Verdict: journal.Happened, Result: []byte(`"receipt 7"`)}, "")
	s = r.drive(t.Context(), s.ID)
	r.is(s, stint.Completed)
	has(t, "the prompt", f.said()[1].Prompt, `Your call of execute {"pay":5} did take place; do not repeat it. Its result: "receipt 7"`)
	golden(t, "dies-in-call.txt", r.journal(s.ID))
}

func TestSpec(t *testing.T) {
	for name, s := range map[string]acp.Spec{
		"command":       {},
		"command[1]":    {Command: []string{"a", "\x00"}},
		"dir":           {Command: []string{"a"}, Dir: "\x00"},
		"env":           {Command: []string{"a"}, Pass: []string{"STINT_X"}},
		"effects.shell": {Command: []string{"a"}, Effects: map[string]stint.Effect{"shell": stint.Read}},
		"effects.edit":  {Command: []string{"a"}, Effects: map[string]stint.Effect{"edit": "x"}},
		"approve.edit":  {Command: []string{"a"}, Approve: map[string]acp.Approve{"edit": "x"}},
		"max_output":    {Command: []string{"a"}, MaxOutput: -1},
		"step_timeout":  {Command: []string{"a"}, StepTimeout: -1},
		"grace":         {Command: []string{"a"}, Grace: time.Hour},
	} {
		_, err := acp.New(s)
		var e *stint.Error
		if !errors.As(err, &e) || e.Code != stint.Invalid || e.Hint == "" || !strings.HasPrefix(e.Err.Error(), name+": ") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := acp.New(acp.Spec{Command: []string{"opencode", "acp"}}); err != nil {
		t.Error(err)
	}
}
