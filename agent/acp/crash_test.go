package acp_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/agent/acp"
	"github.com/stint-dev/stint/journal"
	"github.com/stint-dev/stint/store/sqlite"
)

// stintProcess is a stint in a process of its own.
type stintProcess struct {
	t   *testing.T
	cmd *exec.Cmd
	out bytes.Buffer
}

// startStint starts one on a store.
func startStint(t *testing.T, c runnerConfig) *stintProcess {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "runner.json")
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	p := &stintProcess{t: t, cmd: exec.CommandContext(t.Context(), exe)}
	p.cmd.Env = append(os.Environ(), "ACP_RUNNER="+file)
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.out
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return p
}

// kill is kill -9.
func (p *stintProcess) kill() {
	p.t.Helper()
	if err := p.cmd.Process.Kill(); err != nil {
		p.t.Fatal(err)
	}
	_ = p.cmd.Wait()
}

// wait returns what it said at its end.
func (p *stintProcess) wait() string {
	p.t.Helper()
	if err := p.cmd.Wait(); err != nil {
		p.t.Fatalf("%v\n%s", err, p.out.String())
	}
	return p.out.String()
}

// crashOn starts a session in a stint that is killed once ready says so, and returns a
// rig on its store, with the session.
func crashOn(t *testing.T, path string, spec acp.Spec, ready func(r *rig, id stint.ID) bool) (*rig, stint.ID) {
	t.Helper()
	store, err := sqlite.Open(t.Context(), sqlite.Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	r := rigOn(t, store, spec, 2)
	p := startStint(t, runnerConfig{Store: path, Input: "pay the bill", Spec: spec})
	var id stint.ID
	eventually(t, "where it is to be killed", func() bool {
		all, err := store.Sessions(t.Context(), stint.Filter{})
		if err != nil || len(all) != 1 {
			return false
		}
		id = all[0].Session.ID
		return ready(r, id)
	})
	p.kill()
	return r, id
}

// again drives the session in a stint that is killed once ready says so.
func (r *rig) again(path string, id stint.ID, spec acp.Spec, ready func() bool) {
	r.t.Helper()
	p := startStint(r.t, runnerConfig{Store: path, ID: id, Spec: spec})
	eventually(r.t, "where it is to be killed", ready)
	p.kill()
}

// A stint that is killed while it holds a question: the question stays, under its id,
// whoever looks at it or enters the loop; the decision of another process is for the call
// that the agent asks for again, which is done once.
func TestKilledWhileHeld(t *testing.T) {
	for name, c := range map[string]struct {
		state   stint.ApprovalState
		effects string
	}{
		"approved": {stint.ApprovalApproved, "paid\n"},
		"denied":   {stint.ApprovalDenied, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t, pays, goOn)
			f.write("child", "")
			path := filepath.Join(t.TempDir(), "stint.db")
			r, id := crashOn(t, path, f.spec, func(r *rig, id stint.ID) bool {
				return r.session(id).Status == stint.Waiting
			})
			f.gone()
			first := r.asked(id)
			if _, err := r.engine.Run(t.Context(), id); err == nil || f.how() != "new" { // there is nothing to do for it
				t.Errorf("driven before the decision: %v, prompts: %s", err, f.how())
			}
			if second := r.asked(id); second.Seq != first.Seq {
				t.Errorf("the question was %d and is %d", first.Seq, second.Seq)
			}
			r.decide(id, first, c.state, "")
			r.is(r.drive(t.Context(), id), stint.Completed)
			if got := f.read("effects"); got != c.effects || f.how() != "new load" {
				t.Errorf("the effects are %q, prompts: %s\n%s", got, f.how(), r.journal(id))
			}
			golden(t, "killed-"+name+".txt", r.journal(id))
		})
	}
}

// Between a decision and the call that the agent asks for again another stint may die:
// nothing was begun, so nothing is in doubt.
func TestKilledBeforeAskedAgain(t *testing.T) {
	f := newFake(t, pays, "text I am\ntouch thinking\nhang", goOn)
	path := filepath.Join(t.TempDir(), "stint.db")
	r, id := crashOn(t, path, f.spec, func(r *rig, id stint.ID) bool { return r.session(id).Status == stint.Waiting })
	r.decide(id, r.asked(id), stint.ApprovalApproved, "")
	r.again(path, id, f.spec, func() bool { return f.has("thinking") })
	r.is(r.drive(t.Context(), id), stint.Completed)
	if got := f.read("effects"); got != "paid\n" || f.how() != "new load load" {
		t.Errorf("the effects are %q, prompts: %s\n%s", got, f.how(), r.journal(id))
	}
}

// Also the second time: as long as no step was begun with the yes, none is in doubt.
func TestKilledTwiceBeforeAskedAgain(t *testing.T) {
	f := newFake(t, pays, "text I am\ntouch thinking\nhang", "text I am\ntouch still\nhang", goOn)
	path := filepath.Join(t.TempDir(), "stint.db")
	store, err := sqlite.Open(t.Context(), sqlite.Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	f.spec.Hold = 50 * time.Millisecond // it is parked, and no process dies with the question
	r := rigOn(t, store, f.spec, 2)
	id, end := r.held("pay the bill")
	r.is(end(), stint.Waiting)
	r.decide(id, r.asked(id), stint.ApprovalApproved, "")
	r.again(path, id, f.spec, func() bool { return f.has("thinking") })
	r.again(path, id, f.spec, func() bool { return f.has("still") })
	r.is(r.drive(t.Context(), id), stint.Completed)
	if got := f.read("effects"); got != "paid\n" || f.how() != "new load load load" {
		t.Errorf("the effects are %q, prompts: %s\n%s", got, f.how(), r.journal(id))
	}
}

// A permitted call that a person said did not take place is looked for again; a stint that
// is killed meanwhile leaves nothing in doubt, for nothing was begun since the word.
func TestKilledAfterTheWord(t *testing.T) {
	f := newFake(t, "tool 1 execute {\"pay\":5} Pay\nask 1\nbegin 1\ntouch hanging\nhang", "text I am\ntouch thinking\nhang", goOn)
	path := filepath.Join(t.TempDir(), "stint.db")
	decided := false
	r, id := crashOn(t, path, f.spec, func(r *rig, id stint.ID) bool {
		if s := r.session(id); !decided && s.Status == stint.Waiting {
			decided = true
			r.decide(id, r.asked(id), stint.ApprovalApproved, "")
		}
		return f.has("hanging")
	})
	s := r.drive(t.Context(), id)
	r.is(s, stint.Waiting)
	r.send(id, stint.Resolve, journal.Command{Step: &s.Wait.Step, Verdict: journal.NotHappened}, "")
	r.again(path, id, f.spec, func() bool { return f.has("thinking") })
	r.is(r.drive(t.Context(), id), stint.Completed)
	if got := f.read("effects"); got != "paid\n" || f.how() != "new load load" {
		t.Errorf("the effects are %q, prompts: %s\n%s", got, f.how(), r.journal(id))
	}
}

// A stint that is killed in a shell call, twice: each is one question, what took place is
// done once, and the agent is told of the newest call alone.
func TestKilledInToolTwice(t *testing.T) {
	f := newFake(t, "text I pay.\ntool 1 execute {\"pay\":5} Pay\nbegin 1\ntouch hanging\nhang",
		"text Again.\ntool 2 execute {\"pay\":5} Pay\nbegin 2\neffect paid\ntouch twice\nhang", "text It is paid.")
	path := filepath.Join(t.TempDir(), "stint.db")
	r, id := crashOn(t, path, f.spec, func(r *rig, id stint.ID) bool {
		return f.has("hanging") && r.steps(id, stint.StepRequested, "execute") == 1
	})
	settle := func(v journal.Verdict) {
		t.Helper()
		s := r.drive(t.Context(), id)
		r.is(s, stint.Waiting)
		if s.Wait.For != stint.ForDoubt {
			t.Fatalf("it waits for %s\n%s", s.Wait.For, r.journal(id))
		}
		r.send(id, stint.Resolve, journal.Command{Step: &s.Wait.Step, Verdict: v}, "")
	}
	settle(journal.NotHappened)
	r.again(path, id, f.spec, func() bool { return f.has("twice") && r.steps(id, stint.StepRequested, "execute") == 3 })
	settle(journal.Happened)
	r.is(r.drive(t.Context(), id), stint.Completed)
	said := f.said()
	if got := f.read("effects"); got != "paid\n" || len(said) != 3 {
		t.Fatalf("the effects are %q, prompts: %s\n%s", got, f.how(), r.journal(id))
	}
	has(t, "the second prompt", said[1].Prompt, "did not take place")
	has(t, "the third prompt", said[2].Prompt, "did take place; do not repeat it")
	if strings.Contains(said[2].Prompt, "did not take place") {
		t.Errorf("the third prompt is %s", said[2].Prompt)
	}
}

// A stint that is killed in a call that was permitted: a person is asked whether it took
// place, and if it did not, the permission is there still.
func TestKilledInCall(t *testing.T) {
	for name, c := range map[string]struct {
		verdict journal.Verdict
		told    string
		effects string
	}{
		"happened": {journal.Happened, `did take place; do not repeat it. Its result: "paid 3"`, "paid\n"},
		"not":      {journal.NotHappened, `You were given permission for execute {"pay":5}. Go on with it now.`, "paid\npaid\n"},
		"unknown":  {journal.Unknown, "Nobody knows whether this took place", "paid\n"},
	} {
		t.Run(name, func(t *testing.T) {
			next := "text I see."
			if c.verdict == journal.NotHappened {
				next = goOn
			}
			f := newFake(t, "tool 1 execute {\"pay\":5} Pay\nask 1\nbegin 1\neffect paid\ntouch hanging\nhang", next)
			path := filepath.Join(t.TempDir(), "stint.db")
			decided := false
			r, id := crashOn(t, path, f.spec, func(r *rig, id stint.ID) bool {
				if s := r.session(id); !decided && s.Status == stint.Waiting {
					decided = true
					r.decide(id, r.asked(id), stint.ApprovalApproved, "")
				}
				return f.has("hanging")
			})
			s := r.drive(t.Context(), id)
			r.is(s, stint.Waiting)
			if s.Wait.For != stint.ForDoubt || f.how() != "new" {
				t.Fatalf("it waits for %s, prompts: %s\n%s", s.Wait.For, f.how(), r.journal(id))
			}
			cmd := journal.Command{Step: &s.Wait.Step, Verdict: c.verdict}
			if c.verdict == journal.Happened {
				cmd.Result = []byte(`"paid 3"`)
			}
			r.send(id, stint.Resolve, cmd, "")
			r.is(r.drive(t.Context(), id), stint.Completed)
			if got := f.read("effects"); got != c.effects || f.how() != "new load" {
				t.Errorf("the effects are %q, prompts: %s\n%s", got, f.how(), r.journal(id))
			}
			has(t, "the prompt", f.said()[1].Prompt, c.told)
		})
	}
}
