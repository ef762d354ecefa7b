package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stint-dev/stint"
)

// states is an agent whose state is the loops that it did and what it was told.
const states = `read -r line
said=$(echo "$line" | grep -o '"body":"[^"]*"' | tail -1)
echo '{"type":"state","patch":{"loop":'$STINT_LOOP',"l'$STINT_LOOP'":"'$WORD'"}}'
[ $STINT_LOOP -ge 3 ] && echo '{"type":"end","outcome":"complete"}' || echo '{"type":"end","outcome":"continue"}'
`

func branching(t *testing.T) *desk {
	t.Helper()
	d := newDesk(t)
	d.put("stint.yaml", "agents:\n  a: {kind: exec, command: [sh, agent.sh], env: {WORD: one}}\n  b: {kind: exec, command: [sh, agent.sh], env: {WORD: two}}\n")
	d.put("agent.sh", states)
	d.ok("run", "-q", "a", "--name", "a-1")
	return d
}

func TestBranches(t *testing.T) {
	t.Parallel()
	d := branching(t)
	state := func(name string) string { return strings.TrimSpace(d.ok("show", name, "--state")) }
	short := d.short("a-1")
	plan := d.ok("branch", "a-1", "--from", "1", "--set", "loop=9", "--set", "deep.word=text", "--agent", "b", "--dry-run")
	for _, want := range []string{
		"Plan: branch a-1 (" + short + ") from the end of loop 1\n", "/loop  3 → 9\n", `/deep  (none) → {"word":"text"}`, "/agent/env/WORD",
		"To do it: stint branch " + short + " --from 1 --set loop=9 --set deep.word=text --agent b\n",
	} {
		if !strings.Contains(plan, want) {
			t.Errorf("the plan has no %q:\n%s", want, plan)
		}
	}
	if strings.Contains(plan, "Leaves") || strings.Contains(plan, "Keeps") {
		t.Errorf("a branch leaves nothing:\n%s", plan)
	}
	before := d.ok("show", "a-1", "--json", "--field", "head")
	d.ok("branch", "a-1", "--from", "1", "--name", "same", "--run")
	if got, want := state("same"), state("a-1"); got != want {
		t.Errorf("a branch of an agent that always does the same has the state %s, not %s", got, want)
	}
	d.ok("branch", "a-1", "--from", "1", "--name", "other", "--set", "more=[1]", "--agent", "b", "--say", "hi", "--run")
	if got, want := state("other"), `{"loop":3,"l1":"one","more":[1],"l2":"two","l3":"two"}`; got != want {
		t.Errorf("the other has the state %s, not %s", got, want)
	}
	if after := d.ok("show", "a-1", "--json", "--field", "head"); after != before {
		t.Error("the session that it comes from changed")
	}
	if got := d.ok("show", "other"); !strings.Contains(got, "a branch of a-1 ("+short+") behind loop 1") {
		t.Errorf("the page of a branch does not say of what:\n%s", got)
	}
	d.ok("branch", "other", "-n", "3", "--dedupe", "k")
	d.ok("branch", "other", "-n", "3", "--dedupe", "k")
	rows := strings.Count(d.ok("ps", "-a", "-q"), "\n")
	if rows != 6 {
		t.Errorf("there are %d sessions, want 3 and the 3 of one key", rows)
	}
	d.refuses(
		refuse(exitNotFound, "line 0 has no completed loop 7; loops 1 to 3 are completed", "", "branch", "a-1", "--from", "7"),
		refuse(exitNotFound, "loop 0 is one of the session that this one branched off at loop 1", "stint branch PARENT --from 0", "branch", "other", "--from", "0"),
		refuse(exitInvalid, `--set "x" is not KEY=VALUE`, "", "branch", "a-1", "--set", "x"),
		refuse(exitInvalid, "--edit and --set are two ways of one thing", "", "branch", "a-1", "--set", "x=1", "--edit"),
		refuse(exitInvalid, "-n is 1 to 100", "", "branch", "a-1", "-n", "101"),
		refuse(exitNotFound, "nosuch", "", "branch", "a-1", "--agent", "nosuch"),
		refuse(exitInvalid, "--from is a loop", "", "branch", "a-1", "--from=-1"),
	)
}

// A session that was taken back stays there until it is resumed, and both ends are there.
func TestRollback(t *testing.T) {
	t.Parallel()
	d := branching(t)
	short := d.short("a-1")
	if plan := d.ok("rollback", "a-1", "--to", "1", "--dry-run"); !strings.Contains(plan, "Plan: rollback a-1 ("+short+") to the end of loop 1\n") || !strings.Contains(plan, "To do it: stint rollback "+short+" --to 1\n") {
		t.Errorf("the plan is\n%s", plan)
	}
	d.ok("rollback", "a-1", "--to", "1", "--reason", "wrong")
	if got := d.ok("show", "a-1", "--field", "waiting.for"); got != "operator\n" {
		t.Errorf("it waits for %s", got)
	}
	d.ok("rollback", "a-1", "--to", "0", "--set", "loop=7")
	d.ok("resume", "a-1", "--run")
	if row := d.row(d.id("a-1")); row.Session.Status != stint.Completed || row.Session.At.Line != 2 {
		t.Errorf("it is %s on line %d", row.Session.Status, row.Session.At.Line)
	}
	for _, line := range []string{"a-1/0", "a-1/2"} {
		if got := d.ok("show", line, "--all", "--json"); !strings.Contains(got, `"loop":3`) {
			t.Errorf("the loops of %s are not there:\n%s", line, got)
		}
	}
	d.refuses(refuse(exitInvalid, "say where to: --to LOOP", "", "rollback", "a-1"))
}

// TestEdit changes the state in an editor: what is no JSON, or was closed as it was, changes
// nothing.
func TestEdit(t *testing.T) {
	t.Parallel()
	d := branching(t)
	editor := func(script string) {
		t.Helper()
		path := filepath.Join(d.dir, "editor.sh")
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		d.env = map[string]string{"VISUAL": path + " -w", "EDITOR": "false"}
	}
	head := d.ok("show", "a-1", "--field", "head")
	editor("true")
	d.says(exitInvalid, "the state was closed as it was", "restart", "a-1", "--edit")
	editor("echo nonsense > $2")
	d.says(exitInvalid, "what was written is no JSON", "restart", "a-1", "--edit")
	editor("exit 3")
	d.says(exitInvalid, "nothing was changed; the editor is $VISUAL or $EDITOR", "restart", "a-1", "--edit")
	d.env = nil
	d.says(exitInvalid, "set EDITOR, or use --set", "restart", "a-1", "--edit")
	if after := d.ok("show", "a-1", "--field", "head"); after != head {
		t.Error("the session changed")
	}
	editor(`sed -i 's/"loop": 2/"loop": 42/' $2`)
	out := d.ok("restart", "a-1", "--from", "2", "--edit", "--dry-run")
	if !strings.Contains(out, "/loop  3 → 42\n") || !strings.Contains(out, "--from 2 --edit\n") {
		t.Errorf("the plan is\n%s", out)
	}
	d.ok("branch", "a-1", "--from", "2", "--edit", "--name", "edited")
	if got := d.ok("show", "edited", "--state"); !strings.Contains(got, `"loop":42`) {
		t.Errorf("the state is %s", got)
	}
}

// A plan says which loop to go back to, and prints the command that shows that plan.
func TestRestartIsAdvised(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	short := d.run("stuck", func(_ context.Context, l stint.Loop) (stint.Next, error) {
		switch n := l.Session().At.Loop; {
		case n < 3:
			return stint.Next{State: fmt.Appendf(nil, "%d", n)}, nil
		case n < 5:
			return stint.Next{}, nil
		}
		return stint.Next{}, stint.Fail(errors.New("no route"))
	}).Short
	const why = "loops 3 to 4 came to nothing, and loop 5 failed: no route\n"
	other := "  Advised   from the end of loop 2: " + why + "            stint restart " + short + " --from 2 --dry-run  shows that plan\n"
	for args, want := range map[string]string{"": other, "--from 4": other, "--from 2": "  Advised   the same loop: " + why} {
		if got := d.ok(append([]string{"restart", "stuck", "--dry-run"}, strings.Fields(args)...)...); !strings.Contains(got, want) {
			t.Errorf("the plan with %q:\n%s", args, got)
		}
	}
}
