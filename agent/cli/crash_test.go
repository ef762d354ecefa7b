package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/agent/cli"
	"github.com/stint-dev/stint/engine"
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
	p.cmd.Env = append(os.Environ(), "CLI_RUNNER="+file)
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

// crash starts a session in a stint that is killed once ready says so, and returns a
// rig on its store, with the session.
func crash(t *testing.T, spec cli.Spec, ready func(r *rig, id stint.ID) bool) (*rig, stint.ID) {
	t.Helper()
	return crashOn(t, filepath.Join(t.TempDir(), "stint.db"), spec, ready)
}

func crashOn(t *testing.T, path string, spec cli.Spec, ready func(r *rig, id stint.ID) bool) (*rig, stint.ID) {
	t.Helper()
	store, err := sqlite.Open(t.Context(), sqlite.Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	r := rigOn(t, store, spec, 2)
	p := startStint(t, runnerConfig{Store: path, Input: "pay the bill", Spec: spec, Gather: 500 * time.Millisecond})
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

// A stint that is killed while a once call runs asks a person, and the CLI hears the
// answer when it is resumed. The call is not begun again by anybody but the model.
func TestKilledInTool(t *testing.T) {
	for name, c := range map[string]struct {
		verdict journal.Verdict
		result  string
		told    string
		journal string
	}{
		"happened": {journal.Happened, `"paid 3"`, `did take place; do not repeat it. Its result: "paid 3"`, ""},
		"not":      {journal.NotHappened, "", "did not take place.", `{"stint":"not_happened"}`},
		"unknown":  {journal.Unknown, "", "Nobody knows whether this took place", ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t, cli.Codex,
				lines(cxThread, cxTurn, cxText("I pay."), cxBegin("1", "pay"), "!child", "!effect paid", "!touch hanging", "!hang"),
				lines(cxThread, cxTurn, cxText("It is paid."), cxDone))
			r, id := crash(t, f.spec, func(r *rig, id stint.ID) bool {
				return f.has("hanging") && r.steps(id, stint.StepRequested, "command_execution") == 1
			})
			f.gone()
			s := r.drive(t.Context(), id)
			r.is(s, stint.Waiting)
			if s.Wait.For != stint.ForDoubt {
				t.Fatalf("it waits for %s\n%s", s.Wait.For, r.journal(id))
			}
			if n := len(f.turns()); n != 1 {
				t.Fatalf("the CLI was started %d times before the person's word", n)
			}
			r.send(id, stint.Resolve, journal.Command{Step: &s.Wait.Step, Verdict: c.verdict, Result: json.RawMessage(c.result)}, "")
			s = r.drive(t.Context(), id)
			r.is(s, stint.Completed)
			turns := f.turns()
			if len(turns) != 2 {
				t.Fatalf("the CLI was started %d times", len(turns))
			}
			has(t, "the prompt", turns[1].Prompt, "You were interrupted. Look at what you did last before you go on.",
				`all of command_execution {"command":"pay"}`, c.told)
			has(t, "the arguments", strings.Join(turns[1].Args, " "), "resume th-1")
			has(t, "the journal", r.journal(id), c.journal)
			if n := r.steps(id, stint.StepRequested, "command_execution"); n > 2 {
				t.Errorf("%d intents", n)
			}
			if b, err := os.ReadFile(filepath.Join(f.dir, "effects")); err != nil || string(b) != "paid\n" {
				t.Errorf("the effects are %q, %v", b, err)
			}
		})
	}
}

// A stint that is killed between two calls resumes it and asks nobody.
func TestKilledInAnswer(t *testing.T) {
	f := newFake(t, cli.Codex,
		lines(cxThread, cxTurn, cxBegin("1", "look"), cxEnd("1", "look", "a"), "!touch hanging", "!hang"),
		lines(cxThread, cxTurn, cxText("done"), cxDone))
	r, id := crash(t, f.spec, func(r *rig, id stint.ID) bool {
		return f.has("hanging") && r.steps(id, stint.StepCompleted, "command_execution") == 1
	})
	s := r.drive(t.Context(), id)
	r.is(s, stint.Completed)
	turns := f.turns()
	if len(turns) != 2 {
		t.Fatalf("the CLI was started %d times\n%s", len(turns), r.journal(id))
	}
	has(t, "the prompt", turns[1].Prompt, "interrupted")
}

// A rule that knows the answer needs no person.
func TestRuleSettlesDoubt(t *testing.T) {
	f := newFake(t, cli.Codex, lines(cxThread, cxBegin("1", "pay"), "!exit 1"), lines(cxThread, cxText("done"), cxDone))
	r := newRig(t, f.spec, 1)
	r.agent.Doubt = func(string) engine.Doubt { return engine.Doubt{Unknown: true} }
	r.agent.Retry.Attempts = 3
	r.replace()
	s := r.run(t.Context(), "x")
	r.is(s, stint.Completed)
	if turns := f.turns(); len(turns) != 2 || !strings.Contains(turns[1].Prompt, "Nobody knows whether this took place") {
		t.Errorf("the turns are %+v", turns)
	}
}

// A CLI that dies under a once call leaves it in doubt; one that dies between calls
// is resumed by the next attempt.
func TestCLIDies(t *testing.T) {
	t.Run("in a call", func(t *testing.T) {
		f := newFake(t, cli.Codex, lines(cxThread, cxBegin("1", "pay"), "!exit 1"))
		r := newRig(t, f.spec, 3)
		s := r.run(t.Context(), "x")
		r.is(s, stint.Waiting)
		has(t, "the question", s.Wait.What, "command_execution", "did it happen?")
	})
	t.Run("between calls", func(t *testing.T) {
		f := newFake(t, cli.Codex, lines(cxThread, cxBegin("1", "pay"), cxEnd("1", "pay", "ok"), "!exit 1"), lines(cxThread, cxText("done"), cxDone))
		r := newRig(t, f.spec, 3)
		s := r.run(t.Context(), "x")
		r.is(s, stint.Completed)
		if n := r.steps(s.ID, stint.StepCompleted, "command_execution"); n != 1 {
			t.Errorf("%d results\n%s", n, r.journal(s.ID))
		}
		has(t, "the prompt", f.turns()[1].Prompt, "You were interrupted.")
	})
	t.Run("in a read", func(t *testing.T) {
		f := newFake(t, cli.Codex,
			lines(cxThread, `{"type":"item.started","item":{"id":"1","type":"web_search","query":"q"}}`, "!exit 1"),
			lines(cxThread, cxText("done"), cxDone))
		r := newRig(t, f.spec, 3)
		s := r.run(t.Context(), "x")
		r.is(s, stint.Completed)
		has(t, "the prompt", f.turns()[1].Prompt, `call of web_search {"query":"q"} was interrupted.`)
	})
	t.Run("before it wrote its session down", func(t *testing.T) {
		f := newFake(t, cli.Codex, lines(cxThread, "!exit 1"),
			lines("!stderr Error: no rollout found for thread id th-1", "!exit 1"),
			lines(strings.ReplaceAll(cxThread, "th-1", "th-2"), cxText("done"), cxDone))
		r := newRig(t, f.spec, 3)
		s := r.run(t.Context(), "x")
		r.is(s, stint.Completed)
		if turns := f.turns(); len(turns) != 3 || turns[2].Prompt != "x" || strings.Contains(strings.Join(turns[2].Args, " "), "resume") {
			t.Errorf("the turns are %+v", turns)
		}
		has(t, "the journal", r.journal(s.ID), `"resume":"th-2"`)
	})
	t.Run("after its turn", func(t *testing.T) {
		f := newFake(t, cli.Codex, lines(cxThread, cxText("done"), cxDone, "!exit 7"))
		r := newRig(t, f.spec, 1)
		r.is(r.run(t.Context(), "x"), stint.Completed)
	})
}

// Two calls under way at once are two questions.
func TestKilledInGroup(t *testing.T) {
	f := newFake(t, cli.Codex,
		lines(cxThread, cxBegin("1", "pay"), cxBegin("2", "write"), "!touch hanging", "!hang"),
		lines(cxThread, cxText("done"), cxDone))
	r, id := crash(t, f.spec, func(r *rig, id stint.ID) bool {
		return f.has("hanging") && r.steps(id, stint.StepRequested, "command_execution") == 2
	})
	for i, v := range []journal.Verdict{journal.Unknown, journal.NotHappened} {
		s := r.drive(t.Context(), id)
		r.is(s, stint.Waiting)
		if s.Wait.For != stint.ForDoubt || s.Wait.Step.Sub != i+1 {
			t.Fatalf("it waits for %s at %s\n%s", s.Wait.For, s.Wait.Step, r.journal(id))
		}
		r.send(id, stint.Resolve, journal.Command{Step: &s.Wait.Step, Verdict: v}, "")
	}
	r.is(r.drive(t.Context(), id), stint.Completed)
	has(t, "the prompt", f.turns()[1].Prompt, `Nobody knows whether this took place: Your call of command_execution {"command":"pay"}`,
		`Your call of command_execution {"command":"write"} did not take place.`)
}

// cutLoop is a loop whose process dies before the intent of its first call.
type cutLoop struct{ stint.Loop }

func (l cutLoop) Do(ctx context.Context, s stint.Step, fn func(context.Context, string) (stint.Result, error)) (stint.Result, error) {
	if s.Kind == stint.Tool {
		return stint.Result{}, errors.New("cut")
	}
	return l.Loop.Do(ctx, s, fn)
}

// A call that was told and whose intent is not in the journal is in doubt all the
// same: the CLI tells of a call when it has begun.
func TestCutBeforeIntent(t *testing.T) {
	for verdict, told := range map[journal.Verdict]string{journal.NotHappened: "did not take place.", journal.Happened: "did take place"} {
		t.Run(string(verdict), func(t *testing.T) {
			f := newFake(t, cli.Codex, lines(cxThread, cxBegin("1", "pay"), "!hang"), lines(cxThread, cxText("done"), cxDone))
			a, err := cli.New(f.spec)
			if err != nil {
				t.Fatal(err)
			}
			r := newRig(t, f.spec, 3)
			r.agent.Loop = stint.AgentFunc(func(ctx context.Context, l stint.Loop) (stint.Next, error) {
				if l.Session().At.Attempt == 1 {
					return a.Loop(ctx, cutLoop{l})
				}
				return a.Loop(ctx, l)
			})
			r.replace()
			s := r.run(t.Context(), "x")
			r.is(s, stint.Waiting)
			if s.Wait.For != stint.ForDoubt {
				t.Fatalf("it waits for %s\n%s", s.Wait.For, r.journal(s.ID))
			}
			r.send(s.ID, stint.Resolve, journal.Command{Step: &s.Wait.Step, Verdict: verdict}, "")
			r.is(r.drive(t.Context(), s.ID), stint.Completed)
			turns := f.turns()
			has(t, "the prompt", turns[len(turns)-1].Prompt, told)
		})
	}
}

// A stint that is killed after the turn and before its checkpoint starts nothing again.
func TestCutAfterTurn(t *testing.T) {
	f := newFake(t, cli.Codex, lines(cxThread, cxText("done"), cxDone))
	a, err := cli.New(f.spec)
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t, f.spec, 3)
	r.agent.Loop = stint.AgentFunc(func(ctx context.Context, l stint.Loop) (stint.Next, error) {
		next, err := a.Loop(ctx, l)
		if err == nil && l.Session().At.Attempt == 1 {
			return stint.Next{}, errors.New("cut")
		}
		return next, err
	})
	r.replace()
	r.is(r.run(t.Context(), "x"), stint.Completed)
	if n := len(f.turns()); n != 1 {
		t.Errorf("the CLI was started %d times", n)
	}
}
