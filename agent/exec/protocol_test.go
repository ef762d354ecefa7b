package exec_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/agent/exec"
)

// script is a run of a Python agent out of testdata.
type script struct {
	name       string
	transcript string
	effects    string
	agent      *exec.Agent
}

func newScript(t *testing.T, name string, change func(*exec.Spec)) *script {
	t.Helper()
	dir := t.TempDir()
	s := &script{name: name, transcript: filepath.Join(dir, "transcript"), effects: filepath.Join(dir, "effects")}
	path, err := filepath.Abs(filepath.Join("testdata", name+".py"))
	if err != nil {
		t.Fatal(err)
	}
	spec := exec.Spec{Command: []string{"python3", path}, Dir: dir,
		Env: map[string]string{"TRANSCRIPT": s.transcript, "EFFECTS": s.effects, "PYTHONDONTWRITEBYTECODE": "1"}}
	if change != nil {
		change(&spec)
	}
	s.agent = newAgent(t, spec)
	return s
}

func newAgent(t *testing.T, spec exec.Spec) *exec.Agent {
	t.Helper()
	a, err := exec.New(spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close() })
	return a
}

// loop runs one loop and checks what holds for every one.
func loop(t *testing.T, a *exec.Agent, l *fakeLoop) (stint.Next, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*patience)
	defer cancel()
	next, err := a.Loop(ctx, l)
	l.finish()
	if err != nil {
		t.Logf("the loop's error: %v", err)
	}
	if ctx.Err() != nil {
		t.Fatal("the loop did not end by itself")
	}
	if l.late {
		t.Error("output was reported after the loop")
	}
	return next, err
}

// golden compares what was said with testdata/NAME.txt.
func (s *script) golden(t *testing.T, sorted bool) {
	t.Helper()
	got := read(t, s.transcript)
	if sorted {
		got = sortRuns(got)
	}
	path := filepath.Join("testdata", s.name+".txt")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want := read(t, path); got != want {
		t.Errorf("the transcript is\n%s\nand %s has\n%s", got, path, want)
	}
}

// sortRuns orders neighbouring lines of stint, which are sent in any order to the
// members of a group.
func sortRuns(text string) string {
	lines := strings.SplitAfter(text, "\n")
	for i := 0; i < len(lines); {
		j := i + 1
		for i < len(lines) && strings.HasPrefix(lines[i], ">") && j < len(lines) && strings.HasPrefix(lines[j], ">") {
			j++
		}
		slices.Sort(lines[i:j])
		i = j
	}
	return strings.Join(lines, "")
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return string(b)
}

func (s *script) done(t *testing.T) string { t.Helper(); return read(t, s.effects) }

func TestHappyPath(t *testing.T) {
	t.Parallel() // it mostly waits
	s := newScript(t, "happy", func(s *exec.Spec) {
		s.StepTimeout = time.Minute
		s.Effects = map[string]stint.Effect{"mail": stint.Idempotent}
	})
	l := newLoop(3)
	l.ses.Labels = map[string]string{"team": "billing"}
	l.state = json.RawMessage("{\n  \"open\": [7],\n  \"big\": 12345678901234567890.10\n}")
	l.inbox = []stint.Message{prompt("m1", `{"pay": 7, "note": "<now> & here"}`), prompt("m2", "please pay\nsoon"), prompt("m3", "\xff\x00"), prompt("m4", ""), prompt("m5", `{"a":1,"a":2}`)}
	next, err := loop(t, s.agent, l)
	if err != nil {
		t.Fatal(err)
	}
	s.golden(t, false)
	if got := s.done(t); got != "charge key-1\n" {
		t.Errorf("effects are %q", got)
	}
	want := stint.Step{Name: "charge", Kind: stint.Tool, Effect: stint.Once, Timeout: time.Minute}
	got := l.steps[0]
	got.Input = nil
	if !equalJSON(got, want) || got.Timeout != want.Timeout {
		t.Errorf("the step is %+v, want %+v", got, want)
	}
	if l.steps[1].Effect != stint.Idempotent {
		t.Errorf("the configured effect of mail did not win: %v", l.steps[1].Effect)
	}
	res := l.journal["1"].result
	if string(res.Data) != `{"paid":12345678901234567890.10}` {
		t.Errorf("the result is %s", res.Data)
	}
	if res.Usage != (stint.Usage{Input: 10, Output: 2, CacheRead: 3, CacheWrite: 4, Cost: 210_000_000}) {
		t.Errorf("the usage is %+v", res.Usage)
	}
	if _, final, definite := steering(l.journal["2"].err); final || !definite {
		t.Errorf("the error of mail is %v", l.journal["2"].err)
	}
	if next.End == nil || next.End.Outcome != stint.Completed || next.End.Reason != "invoice paid" || string(next.End.Result) != `{"ok":true}` || next.Headline != "1 paid" {
		t.Errorf("the end is %+v of %+v", next.End, next)
	}
	if want := "{\n  \"big\": 12345678901234567890.10,\"paid\":[7]\n}"; string(next.State) != want {
		t.Errorf("the state is\n%s\nwant\n%s", next.State, want)
	}
	if got := l.log("log"); got != "warn: the card expires soon\nwarn: ask for another\n" {
		t.Errorf("the log is %q", got)
	}
	if !slices.Equal(l.progress, []string{"reading the invoice"}) {
		t.Errorf("progress is %q", l.progress)
	}
}

func equalJSON(a, b any) bool {
	x, err := json.Marshal(a)
	if err != nil {
		return false
	}
	y, err := json.Marshal(b)
	return err == nil && string(x) == string(y)
}

// TestCachedReplay kills an attempt after three effects; the next one gets their
// answers and does none of them again.
func TestCachedReplay(t *testing.T) {
	t.Parallel() // it mostly waits
	s := newScript(t, "cached", nil)
	first := newLoop(3)
	_, err := loop(t, s.agent, first)
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Code != 1 || !errors.Is(err, stint.Invalid) {
		t.Fatalf("the first attempt ended with %v", err)
	}
	contains(t, "the error", err.Error(), "exited with 1 without an end message", "the first attempt dies here")
	before := s.done(t)
	second := first.again()
	second.earlier = []json.RawMessage{[]byte(`{"step":1,"sub":0,"name":"charge","kind":"step","effect":"once","result":{"paid": 1}}`)}
	next, err := loop(t, s.agent, second)
	if err != nil || next.End == nil {
		t.Fatalf("the second attempt gave %+v, %v", next, err)
	}
	if after := s.done(t); after != before || strings.Count(after, "\n") != 4 {
		t.Errorf("the effects were\n%s\nand are\n%s", before, after)
	}
	s.golden(t, true)
}

func TestPark(t *testing.T) {
	t.Parallel() // it mostly waits
	s := newScript(t, "park", nil)
	l := newLoop(3)
	l.parkAt = "2"
	l.parkBy = errors.Join(errors.New("asks ana"), stint.ErrParked)
	next, err := loop(t, s.agent, l)
	if !errors.Is(err, stint.ErrParked) || next.State != nil {
		t.Fatalf("a parked loop gave %+v, %v", next, err)
	}
	if got := s.done(t); got != "" {
		t.Errorf("effects in spite of the park: %q", got)
	}
	s.golden(t, false)
}

func TestGroup(t *testing.T) {
	t.Parallel() // it mostly waits
	s := newScript(t, "group", func(s *exec.Spec) {
		s.StepTimeout, s.Effects = time.Minute, map[string]stint.Effect{"mail": stint.Once}
	})
	l := newLoop(3)
	next, err := loop(t, s.agent, l)
	if err != nil || next.End != nil || next.Wait != nil || next.Headline != "three answers" {
		t.Fatalf("the loop gave %+v, %v", next, err)
	}
	for at, want := range map[string]string{"1.1": "80", "1.2": "90", "1.3": "50", "2": "220"} {
		if got := string(l.journal[at].result.Data); got != want {
			t.Errorf("step %s has the result %s, want %s", at, got, want)
		}
	}
	for _, step := range l.steps {
		if step.Timeout != time.Minute || step.Name == "mail" && step.Effect != stint.Once {
			t.Errorf("the configuration is not in the step %+v", step)
		}
	}
	s.golden(t, true)
	if got := s.done(t); got != "key-1.3\nkey-1.2\nkey-1.1\n" {
		t.Errorf("effects are %q", got)
	}
}

// TestGroupCached has a group of which two members have failed before, and one is
// done now.
func TestGroupCached(t *testing.T) {
	l, dir := newLoop(3), t.TempDir()
	l.journal["1.1"] = recorded{err: stint.Definite(errors.New("no a"))}
	l.journal["1.3"] = recorded{err: stint.Definite(stint.Fail(errors.New("no c")))}
	l.journal["1.4"] = recorded{result: stint.Result{Data: json.RawMessage(`4`)}}
	a := sh(t, `echo '{"type":"steps","steps":[{"id":1,"name":"a"},{"id":2,"name":"b"},{"id":3,"name":"c"},{"id":4,"name":"d"}]}'
		read -r go; echo "$go" > answers; echo '{"type":"result","id":2,"error":"no b","definite":true}'
		for i in 1 2 3; do read -r answer; echo "$answer" >> answers; done; `+ended, func(s *exec.Spec) { s.Dir = dir })
	if _, err := loop(t, a, l); err != nil {
		t.Fatal(err)
	}
	want := `{"type":"proceed","id":2,"key":"key-1.2","step":"3.1.2"}
{"type":"result","id":1,"error":"no a","definite":true,"cached":true}
{"type":"result","id":3,"error":"no c","definite":true,"cached":true}
{"type":"result","id":4,"result":4,"cached":true}
`
	if got := read(t, filepath.Join(dir, "answers")); got != want {
		t.Errorf("the answers are\n%s\nwant\n%s", got, want)
	}
}

func TestState(t *testing.T) {
	t.Parallel() // it mostly waits
	s := newScript(t, "state", nil)
	l := newLoop(3)
	l.state = json.RawMessage(`{"counters":{"shared":0},"k":1}`)
	next, err := loop(t, s.agent, l)
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"counters":{"shared":0,"a":3,"b":2.50}}`; string(next.State) != want {
		t.Errorf("the state is %s, want %s", next.State, want)
	}
	w := next.Wait
	if w == nil || w.For != stint.ForTime || !w.Until.Equal(time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC)) || w.What != "the bank opens" {
		t.Errorf("the wait is %+v", w)
	}
	s.golden(t, false)
}

func TestStateConflict(t *testing.T) {
	t.Parallel() // it mostly waits
	s := newScript(t, "conflict", nil)
	l := newLoop(3)
	l.state = json.RawMessage(`{"counters":{"shared":0}}`)
	_, err := loop(t, s.agent, l)
	if !errors.Is(err, stint.Conflict) {
		t.Fatalf("two writers of one key gave %v", err)
	}
	contains(t, "the error", err.Error(), `writer "branch a" and writer "branch b" both write /counters/shared`)
	s.golden(t, false)
}

func TestRetryAndFail(t *testing.T) {
	t.Parallel() // it mostly waits
	s := newScript(t, "retry", nil)
	_, err := loop(t, s.agent, newLoop(3))
	after, final, _ := steering(err)
	if after != time.Minute || final || !strings.Contains(err.Error(), "the service is busy") {
		t.Errorf("the loop gave %v (after %v, final %v)", err, after, final)
	}
	s.golden(t, false)
}

func TestKeepSession(t *testing.T) {
	t.Parallel() // it mostly waits
	s := newScript(t, "keep", func(s *exec.Spec) { s.Keep = exec.KeepSession })
	for number := 1; number <= 3; number++ {
		l := newLoop(number)
		next, err := loop(t, s.agent, l)
		if err != nil {
			t.Fatal(err)
		}
		if want := string('0' + rune(number)); string(l.journal["1"].result.Data) != want {
			t.Errorf("loop %d was done by another process: its count is %s", number, l.journal["1"].result.Data)
		}
		if (next.Wait != nil) != (number == 3) {
			t.Errorf("loop %d waits: %v", number, next.Wait)
		} else if number == 3 && !slices.Equal(next.Wait.Wakes, []stint.MessageKind{stint.Prompt}) {
			t.Errorf("a wait for a message is left by %v", next.Wait.Wakes)
		}
	}
	s.golden(t, false)
}
