package cli_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/agent/cli"
	"github.com/stint-dev/stint/journal"
)

// again drives the session in a stint that is killed once ready says so.
func (f *fake) again(path string, id stint.ID, ready func() bool) {
	f.t.Helper()
	p := startStint(f.t, runnerConfig{Store: path, ID: id, Spec: f.spec})
	eventually(f.t, "where it is to be killed", ready)
	p.kill()
	f.gone()
}

// settle drives a session to a step in doubt and says what became of it.
func (r *rig) settle(id stint.ID, v journal.Verdict) {
	r.t.Helper()
	s := r.drive(r.t.Context(), id)
	r.is(s, stint.Waiting)
	if s.Wait.For != stint.ForDoubt {
		r.t.Fatalf("it waits for %s\n%s", s.Wait.For, r.journal(id))
	}
	r.send(id, stint.Resolve, journal.Command{Step: &s.Wait.Step, Verdict: v}, "")
}

// lacks fails if a text has a piece.
func lacks(t *testing.T, what, got, piece string) {
	t.Helper()
	if strings.Contains(got, piece) {
		t.Errorf("%s has %q:\n%s", what, piece, got)
	}
}

// A stint that is killed in a call, and after a person's word in the same call once more:
// each call is one question, what took place is done once, and the CLI is told of the
// newest call alone. What it was told before and has acted on since is not told again.
func TestKilledTwice(t *testing.T) {
	f := newFake(t, cli.Codex,
		lines(cxThread, cxTurn, cxText("I pay."), cxBegin("1", "pay"), "!child", "!touch hanging", "!hang"),
		lines(cxThread, cxTurn, cxText("Again."), cxBegin("2", "pay"), "!effect paid", "!child", "!touch twice", "!hang"),
		lines(cxThread, cxTurn, cxText("It is paid."), cxDone))
	r, id, path := crashAt(t, f.spec, func(r *rig, id stint.ID) bool {
		return f.has("hanging") && r.steps(id, stint.StepRequested, "command_execution") == 1
	})
	f.gone()
	r.settle(id, journal.NotHappened)
	f.again(path, id, func() bool { return f.has("twice") && r.steps(id, stint.StepRequested, "command_execution") == 3 })
	r.settle(id, journal.Happened)
	r.is(r.drive(t.Context(), id), stint.Completed)
	turns := f.turns()
	if got := f.read("effects"); got != "paid\n" || len(turns) != 3 {
		t.Fatalf("the effects are %q after %d starts\n%s", got, len(turns), r.journal(id))
	}
	has(t, "the second prompt", turns[1].Prompt, `command_execution {"command":"pay"} did not take place.`)
	has(t, "the third prompt", turns[2].Prompt, "did take place; do not repeat it.")
	lacks(t, "the third prompt", turns[2].Prompt, "did not take place")
}

// A call that a person said did not take place is made again by the CLI, which then is
// killed in another one: it must not hear that the first one never took place.
func TestOldWordsAreNotSaidAgain(t *testing.T) {
	f := newFake(t, cli.Codex,
		lines(cxThread, cxTurn, cxBegin("1", "pay"), "!child", "!touch hanging", "!hang"),
		lines(cxThread, cxTurn, cxBegin("2", "pay"), "!effect paid", cxEnd("2", "pay", "ok"), cxText("Now I look."), "!child", "!touch twice", "!hang"),
		lines(cxThread, cxTurn, cxText("It is paid."), cxDone))
	r, id, path := crashAt(t, f.spec, func(r *rig, id stint.ID) bool {
		return f.has("hanging") && r.steps(id, stint.StepRequested, "command_execution") == 1
	})
	f.gone()
	r.settle(id, journal.NotHappened)
	f.again(path, id, func() bool { return f.has("twice") && r.steps(id, stint.StepCompleted, "command_execution") == 2 })
	r.is(r.drive(t.Context(), id), stint.Completed)
	turns := f.turns()
	has(t, "the third prompt", turns[2].Prompt, "You were interrupted.")
	lacks(t, "the third prompt", turns[2].Prompt, "did not take place")
}

// cutGroup is a loop whose process dies when the intent of the first call of a group is
// in the journal and that of the second is not.
type cutGroup struct{ stint.Loop }

func (l cutGroup) DoAll(ctx context.Context, steps []stint.Step, _ func(context.Context, int, string) (stint.Result, error)) ([]stint.Result, error) {
	return l.Loop.DoAll(ctx, steps[:1], func(context.Context, int, string) (stint.Result, error) { return stint.Result{}, errors.New("cut") })
}

// A call of a group whose intent did not get into the journal, while that of another did,
// is in doubt as well: the CLI tells of a call when it has begun.
func TestCutBetweenIntents(t *testing.T) {
	f := newFake(t, cli.Codex,
		lines(cxThread, cxTurn, cxBegin("1", "look"), cxBegin("2", "pay"), cxText("both"), "!hang"), lines(cxThread, cxTurn, cxText("done"), cxDone))
	r := newRig(t, f.spec, 3)
	a := r.cli
	cut := true
	r.agent.Loop = stint.AgentFunc(func(ctx context.Context, l stint.Loop) (stint.Next, error) {
		if cut {
			cut = false
			return a.Loop(ctx, cutGroup{l})
		}
		return a.Loop(ctx, l)
	})
	r.replace()
	s := r.run(t.Context(), "x")
	r.is(s, stint.Waiting)
	if s.Wait.For != stint.ForDoubt || s.Wait.Step.Sub != 1 {
		t.Fatalf("it waits for %s at %s\n%s", s.Wait.For, s.Wait.Step, r.journal(s.ID))
	}
	r.send(s.ID, stint.Resolve, journal.Command{Step: &s.Wait.Step, Verdict: journal.Unknown}, "")
	s = r.drive(t.Context(), s.ID)
	r.is(s, stint.Waiting)
	if s.Wait.For != stint.ForDoubt || s.Wait.Step.Sub != 2 {
		t.Fatalf("it waits for %s at %s\n%s", s.Wait.For, s.Wait.Step, r.journal(s.ID))
	}
	r.send(s.ID, stint.Resolve, journal.Command{Step: &s.Wait.Step, Verdict: journal.Happened}, "")
	r.is(r.drive(t.Context(), s.ID), stint.Completed)
	has(t, "the prompt", f.turns()[1].Prompt, `{"command":"pay"} did take place`, "Nobody knows whether this took place")
}

// A stint that dies once more between the intent and the result of a call that a person
// said did not take place asks again, and nothing is done twice.
func TestDiesAfterTheWord(t *testing.T) {
	f := newFake(t, cli.Codex,
		lines(cxThread, cxTurn, cxBegin("1", "pay"), "!child", "!touch hanging", "!hang"),
		lines(cxThread, cxTurn, cxBegin("2", "pay"), "!effect paid", cxEnd("2", "pay", "ok"), cxText("paid"), cxDone))
	r, id, path := crashAt(t, f.spec, func(r *rig, id stint.ID) bool {
		return f.has("hanging") && r.steps(id, stint.StepRequested, "command_execution") == 1
	})
	f.gone()
	r.settle(id, journal.NotHappened)
	p := startStint(t, runnerConfig{Store: path, ID: id, Spec: f.spec, Dies: true})
	if err := p.cmd.Wait(); err == nil {
		t.Fatalf("it did not die: %s", p.out.String())
	}
	if n := r.steps(id, stint.StepRequested, "command_execution"); n != 2 {
		t.Fatalf("%d intents\n%s", n, r.journal(id))
	}
	r.settle(id, journal.NotHappened)
	r.is(r.drive(t.Context(), id), stint.Completed)
	if got := f.read("effects"); got != "paid\n" {
		t.Errorf("the effects are %q\n%s", got, r.journal(id))
	}
	has(t, "the prompt", f.turns()[1].Prompt, `command_execution {"command":"pay"} did not take place.`)
}

// crashAt is crash, and says where the store is.
func crashAt(t *testing.T, spec cli.Spec, ready func(r *rig, id stint.ID) bool) (*rig, stint.ID, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "stint.db")
	r, id := crashOn(t, path, spec, ready)
	return r, id, path
}

// read is what the scripts wrote into a file; empty if there is none.
func (f *fake) read(name string) string {
	f.t.Helper()
	b, err := os.ReadFile(filepath.Join(f.dir, name))
	if err != nil && !os.IsNotExist(err) {
		f.t.Fatal(err)
	}
	return string(b)
}
