package main

import (
	"context"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stint-dev/stint/internal/proc"
)

// runs starts the program in the background; said waits for a text and signals it.
type runs struct {
	d    *desk
	a    *app
	out  buffer
	talk buffer
	code chan int
}

func (d *desk) runs(args ...string) *runs {
	r := &runs{d: d, code: make(chan int, 1)}
	env := map[string]string{"STINT_STORE": "sqlite:" + d.path()}
	r.a = &app{in: strings.NewReader(""), out: &r.out, err: &r.talk, getenv: func(k string) string { return env[k] }, getwd: func() (string, error) { return d.dir, nil }}
	go func() { r.code <- r.a.run(context.Background(), args) }()
	return r
}

func (r *runs) signal(s os.Signal) { r.a.signal(s, func() {}) }

// A command that is not there, or cannot be executed, ends as it would in a shell, with
// the reason in a few words.
func TestRunOfNoCommand(t *testing.T) {
	d := newDesk(t)
	d.write("plain", "text")
	t.Chdir(d.dir)
	for _, c := range []struct {
		code int
		why  string
		argv []string
	}{
		{127, "nosuchcmd is not in PATH", []string{"nosuchcmd", "x"}},
		{127, "./nosuchcmd does not exist", []string{"./nosuchcmd"}},
		{126, "./plain is not executable", []string{"./plain"}},
		{126, "is a directory", []string{d.dir}},
	} {
		for _, flags := range [][]string{nil, {"-q"}, {"--json"}, {"--effect", "read"}} {
			code, out, talk := d.stint(append(append(append([]string{"run"}, flags...), "--"), c.argv...)...)
			said := talk
			if slices.Contains(flags, "--json") {
				said = out
			}
			if code != c.code || !strings.Contains(said, c.why) || strings.Count(talk, "\n") > 1 {
				t.Errorf("stint run %q -- %q: exit status %d, want %d with %q\n%s%s", flags, c.argv, code, c.code, c.why, out, talk)
			}
		}
	}
}

func TestRunTells(t *testing.T) {
	d := newDesk(t)
	d.put("stint.yaml", "agents:\n  a: {kind: exec, command: [sh, -c, 'echo out; echo err >&2'], protocol: none}\n  chat: {kind: exec, command: [sh, chat.sh]}\n")
	d.put("chat.sh", "read -r line\n"+`echo '{"type":"end","outcome":"wait","wait":{"for":"message","what":"what next?"}}'`+"\n")
	code, out, talk := d.stint("run", "a")
	if code != exitOK || out != "out\n" || !strings.Contains(talk, "err\n") || !strings.Contains(talk, "completed · 1 loop, 1 step · stint show ") {
		t.Errorf("exit status %d\n%s%s", code, out, talk)
	}
	if code, out, talk = d.stint("run", "-q", "a"); code != exitOK || out != "out\n" || talk != "err\n" {
		t.Errorf("quietly: exit status %d\n%s%s", code, out, talk)
	}
	code, _, talk = d.stint("run", "-q", "chat", "--name", "chat-1")
	if want := "waits for message: what next?\n  stint send " + d.row(d.id("chat-1")).Short + " TEXT --run\n"; code != exitWaits || !strings.HasSuffix(talk, want) {
		t.Errorf("quietly, where a person has to act: exit status %d, want %q\n%s", code, want, talk)
	}
	if code, _, talk = d.stint("run", "-q", "--", "sh", "-c", "exit 3"); code != 3 || !strings.Contains(talk, "failed: exit 3 · stint show ") {
		t.Errorf("quietly, what fails: exit status %d\n%s", code, talk)
	}
	code, out, talk = d.stint("run", "--json", "--", "sh", "-c", "echo out; exit 3")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	for i, line := range lines {
		want := `{"schema":"stint.entry/1"`
		if i == len(lines)-1 {
			want = `{"schema":"stint.session/1"`
		}
		if !strings.HasPrefix(line, want) {
			t.Errorf("line %d of standard output is for no program: %s", i, line)
		}
	}
	if code != 3 || talk != "" || len(lines) < 5 {
		t.Errorf("as JSON: exit status %d\n%s%s", code, out, talk)
	}
}

func TestSignals(t *testing.T) {
	d := newDesk(t)
	interrupted := d.runs("run", "--name", "int-1", "--", "sh", "-c", "echo begun; exec sleep 60")
	interrupted.out.until(t, "begun")
	interrupted.signal(os.Interrupt)
	if code := <-interrupted.code; code != exitInterrupted {
		t.Errorf("an interrupted command: exit status %d, want %d\n%s", code, exitInterrupted, interrupted.talk.String())
	}
	if got := d.ok("show", "int-1", "--field", "status"); got != "canceled\n" {
		t.Errorf("an interrupted command's session is %s", got)
	}

}

// timeout(1) signals its child and then its group: that is one signal.
func TestTwoSignalsAtOnce(t *testing.T) {
	for range 10 {
		d := newDesk(t)
		d.put("gate", "")
		r := d.runs("run", "--name", "term-1", "--", "sh", "-c", "echo begun; while [ -e gate ]; do sleep 0.01; done; echo over")
		r.out.until(t, "begun")
		first := time.Now()
		r.signal(syscall.SIGTERM)
		r.signal(syscall.SIGTERM)
		atOnce := time.Since(first) < sameSignal
		r.talk.until(t, "once more to kill it")
		if err := os.Remove(d.dir + "/gate"); err != nil {
			t.Fatal(err)
		}
		code := <-r.code
		if !atOnce {
			continue // this machine was busy: those were two
		}
		if code != exitOK || !strings.Contains(r.out.String(), "over") {
			t.Errorf("a command that was told to end: exit status %d\n%s%s", code, r.out.String(), r.talk.String())
		}
		return
	}
	t.Error("this machine is too slow to send two signals at once")
}

// TestMain lets the test's binary stand for the program, where its streams matter.
func TestMain(m *testing.M) {
	proc.MaybeGuard()
	if os.Getenv("STINT_TEST_PROGRAM") != "" {
		main()
	}
	os.Exit(m.Run())
}

// Nobody reads the output any more: the session goes on.
func TestOutputThatNobodyReads(t *testing.T) {
	d := newDesk(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	d.put("gate", "")
	cmd := exec.Command(self, "run", "--name", "head-1", "--", "sh", "-c", "echo begun; while [ -e gate ]; do sleep 0.01; done; echo one; echo two; echo three")
	cmd.Dir, cmd.Stdout, cmd.Stderr = d.dir, w, io.Discard
	cmd.Env = append(os.Environ(), "STINT_TEST_PROGRAM=1", "STINT_STORE=sqlite:"+d.path())
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	if _, err := io.ReadFull(r, make([]byte, len("begun\n"))); err != nil {
		t.Error(err)
	}
	_ = r.Close()
	if err := os.Remove(d.dir + "/gate"); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("stint run ended with %v", err)
	}
	if got := d.ok("logs", "head-1", "-o", "cat"); got != "begun\none\ntwo\nthree\n" {
		t.Errorf("the log has\n%s", got)
	}
}
