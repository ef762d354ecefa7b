package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/view"
	"github.com/stint-dev/stint/internal/worktree"
)

// git runs git in a folder, without anybody's configuration.
func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=p", "GIT_AUTHOR_EMAIL=p@x", "GIT_COMMITTER_NAME=p", "GIT_COMMITTER_EMAIL=p@x")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %q: %v\n%s", args, err, out)
	}
	return strings.TrimSuffix(string(out), "\n")
}

// apart makes a repository with a stint.yaml, whose agent writes down each of its loops and
// ends with the third.
func apart(t *testing.T) *desk {
	t.Helper()
	d := newDesk(t)
	d.put("agent.sh", `read -r line
n=$(cat notes 2>/dev/null | wc -l)
echo "loop $STINT_LOOP line $STINT_LINE sees $((n)) notes" >>seen
echo "note $STINT_LOOP of line $STINT_LINE" >>notes
if [ "$STINT_LOOP" -lt 3 ]; then
  echo '{"type":"end","outcome":"wait","wait":{"for":"message"}}'
else
  echo '{"type":"end","outcome":"complete"}'
fi
`)
	d.put("stint.yaml", `agents:
  coder: {kind: exec, command: [sh, agent.sh], workspace: {dir: trees}}
  reader:
    kind: llm
    model: script/play.json
    workspace: {dir: trees}
    tools:
      - files: {root: ., write: true}
`)
	d.put("play.json", `{"steps": [{"tools": [{"name": "write_file", "input": {"path": "made", "content": "by a model"}}]}, {"text": "done"}]}`)
	d.put(".gitignore", "*.db*\ntrees\n")
	git(t, d.dir, "init", "--quiet", "--initial-branch=main")
	git(t, d.dir, "add", "--all")
	git(t, d.dir, "commit", "--quiet", "--message=first")
	return d
}

// The files of a session go back with it, and the checkout is not touched.
func TestWorkspace(t *testing.T) {
	d := apart(t)
	d.plain()
	d.fails(exitWaits, "", "run", "-q", "coder", "--name", "c-1")
	d.fails(exitWaits, "", "send", "c-1", "more", "--run")
	d.ok("send", "c-1", "more", "--run")
	d.fails(exitWaits, "", "restart", "c-1", "--from", "1", "--run")
	info := document[workspaceDoc](t, d.ok("workspace", "show", "c-1", "--json"))
	b, err := os.ReadFile(filepath.Join(info.Path, "seen"))
	if want := "loop 1 line 0 sees 0 notes\nloop 2 line 1 sees 1 notes\n"; err != nil || string(b) != want {
		t.Errorf("after the restart: %q, %v", b, err)
	}
	if info.Schema != "stint.workspace/1" || info.Line != 1 || info.Loop != 2 || info.Stage != "done" || len(info.Loops) != 6 || !info.Changed.Known || len(info.Changed.Files) != 0 {
		t.Errorf("%+v", info)
	}
	id := info.Session.String()
	if got := git(t, d.dir, "show", "stint/"+id+"/0:seen"); !strings.HasSuffix(got, "loop 3 line 0 sees 2 notes") {
		t.Errorf("the line that was left has %q", got)
	}
	if got := git(t, d.dir, "status", "--porcelain"); got != "" {
		t.Errorf("the checkout: %s", got)
	}
	if _, err := os.Stat(filepath.Join(d.dir, "notes")); !os.IsNotExist(err) {
		t.Errorf("the agent wrote into the checkout: %v", err)
	}

	if err := os.WriteFile(filepath.Join(info.Path, "by hand"), []byte("1\n2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ args, want string }{
		{"workspace ls", id[len(id)-4:] + "  c-1   waiting     1     2  " + info.Path},
		{"workspace show c-1", "added  +2 -0  by hand"},
		{"workspace diff c-1", "Files that differ since the end of loop 2:"},
		{"workspace diff c-1 0 2", "Files that differ from loop 0 to loop 2:"},
		{"workspace diff c-1/0 1 3 --json", `"name":"seen","kind":"changed","added":2,"deleted":0`},
		{"workspace ls --json", `"schema":"stint.workspace.list/1"`},
	} {
		if got := d.ok(strings.Fields(c.args)...); !strings.Contains(got, c.want) {
			t.Errorf("stint %s, want %q:\n%s", c.args, c.want, got)
		}
	}
	short := id[len(id)-4:]
	for args, want := range map[string]string{
		"restart c-1 --from 1":       "  Files     3 changes, kept on the branch of line " + short + "/1:\n            added    by hand\n            changed  notes\n            changed  seen\n",
		"branch c-1 --from 2":        "  Files     the branch begins without 1 change:\n            added    by hand\n",
		"rollback c-1 --to 1 --json": `"files":{"known":true,`,
		"restart plain-1 --from 0":   "State",
	} {
		if got := d.ok(append(strings.Fields(args), "--dry-run")...); !strings.Contains(got, want) || strings.Contains(args, "plain") && strings.Contains(got, "Files") {
			t.Errorf("stint %s, want %q:\n%s", args, want, got)
		}
	}
	d.fails(exitNotFound, "there are no files of loop 9", "workspace", "diff", "c-1", "1", "9")
	d.fails(exitRefused, "has not ended", "workspace", "rm", "c-1", "--all")
	d.ok("workspace", "rm", "c-1")
	if _, err := os.Stat(info.Path); !os.IsNotExist(err) {
		t.Errorf("%s: %v", info.Path, err)
	}
	if got := d.ok("workspace", "show", "c-1"); !strings.Contains(got, "left behind: refs/stint/"+id+"/left/1-2-1") {
		t.Errorf("after rm:\n%s", got)
	}
	d.ok("send", "c-1", "go on", "--run")
	if got := git(t, d.dir, "show", "stint/"+id+"/1:seen"); !strings.HasSuffix(got, "loop 3 line 1 sees 2 notes") {
		t.Errorf("after rm and another loop: %q", got)
	}
	d.ok("workspace", "rm", "c-1", "--all")
	if got := git(t, d.dir, "for-each-ref", "--format=%(refname)"); got != "refs/heads/main" {
		t.Errorf("after rm --all: %s", got)
	}
	d.fails(exitNotFound, "has no workspace of its own", "workspace", "show", "plain-1")
}

// plain runs a session without a workspace, plain-1.
func (d *desk) plain() {
	d.t.Helper()
	d.ok("run", "-q", "--name", "plain-1", "--", "true")
}

type workspaceDoc struct {
	Schema string `json:"schema"`
	worktree.Info
	Changed worktree.Changes `json:"changed"`
}

// document reads a document.
func document[T any](t *testing.T, text string) T {
	t.Helper()
	var v T
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return v
}

// The tools of a model are those of the worktree too.
func TestWorkspaceOfAModel(t *testing.T) {
	d := apart(t)
	d.ok("run", "-q", "reader", "-p", "make it", "--name", "r-1")
	info := document[workspaceDoc](t, d.ok("workspace", "show", "r-1", "--json"))
	if got := git(t, d.dir, "show", info.Branch+":made"); got != "by a model" {
		t.Errorf("the branch has %q", got)
	}
	if _, err := os.Stat(filepath.Join(d.dir, "made")); !os.IsNotExist(err) {
		t.Errorf("the model wrote into the checkout: %v", err)
	}
}

// The line of a branch's parent is that of the entry which the branch names, wherever the parent
// is now.
func TestOriginOfABranch(t *testing.T) {
	d := apart(t)
	d.fails(exitWaits, "", "run", "-q", "coder", "--name", "c-1")
	row, _, err := view.Find(t.Context(), d.store, "c-1", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	first := row.Session.Head
	d.fails(exitWaits, "", "restart", "c-1", "--from", "0", "--run")
	if row, _, err = view.Find(t.Context(), d.store, "c-1", time.Now()); err != nil {
		t.Fatal(err)
	}
	w := &wiring{kept: copies{store: d.store}}
	for seq, want := range map[stint.Seq]int{1: 0, first: 0, row.Session.Head: 1} {
		if line, err := w.origin(t.Context(), stint.Parent{Session: row.Session.ID, Seq: seq}); err != nil || line != want {
			t.Errorf("entry %d is on line %d, %v; want %d", seq, line, err, want)
		}
	}
	for _, seq := range []stint.Seq{0, row.Session.Head + 1} {
		if _, err := w.origin(t.Context(), stint.Parent{Session: row.Session.ID, Seq: seq}); stint.CodeOf(err) != stint.NotFound {
			t.Errorf("entry %d, which is not there: %v", seq, err)
		}
	}
}

// The program of an agent is that of the worktree: the checkout may change meanwhile, and pin finds
// nothing wrong with it.
func TestWorkspaceHoldsTheProgram(t *testing.T) {
	d := apart(t)
	d.fails(exitWaits, "", "run", "-q", "coder", "--name", "c-1")
	d.put("agent.sh", "exit 9\n")
	d.fails(exitWaits, "", "send", "c-1", "more", "--run")
	if log := d.ok("logs", "c-1"); strings.Contains(log, "changed since") {
		t.Errorf("the log:\n%s", log)
	}
}

// A branch begins with the files of the loop that it goes on from, in a worktree of its own.
func TestWorkspaceOfABranch(t *testing.T) {
	d := apart(t)
	d.fails(exitWaits, "", "run", "-q", "coder", "--name", "c-1")
	d.fails(exitWaits, "", "send", "c-1", "more", "--run")
	d.fails(exitWaits, "", "restart", "c-1", "--from", "1", "--run")
	for from, want := range map[string]string{
		"0": "loop 1 line 0 sees 0 notes",
		"1": "loop 1 line 0 sees 0 notes\nloop 2 line 0 sees 1 notes",
		"2": "loop 1 line 0 sees 0 notes\nloop 2 line 1 sees 1 notes\nloop 3 line 0 sees 2 notes", // of the line that the session is on
	} {
		name := "b-" + from
		exit := exitWaits
		if from == "2" {
			exit = exitOK // its next loop is the third
		}
		d.fails(exit, "", "branch", "c-1", "--from", from, "--name", name, "--run")
		info := document[workspaceDoc](t, d.ok("workspace", "show", name, "--json"))
		if got := git(t, d.dir, "show", info.Branch+":seen"); got != want {
			t.Errorf("the branch from loop %s has\n%s\nwant\n%s", from, got, want)
		}
	}
	info := document[workspaceDoc](t, d.ok("workspace", "show", "c-1", "--json"))
	if len(info.Changed.Files) != 0 || info.Line != 1 || info.Loop != 2 {
		t.Errorf("the parent: %+v", info)
	}
}
