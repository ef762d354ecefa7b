package exec_test

import (
	"context"
	"errors"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/agent/exec"
	"github.com/stint-dev/stint/internal/proc"
)

// sh is an agent that reads the loop's line and then runs a shell script.
func sh(t *testing.T, text string, change func(*exec.Spec)) *exec.Agent {
	t.Helper()
	spec := exec.Spec{Command: []string{"sh", "-c", "read -r line\n" + text}, Dir: t.TempDir()}
	if change != nil {
		change(&spec)
	}
	return newAgent(t, spec)
}

const (
	stepOne   = `echo '{"type":"step","id":1,"name":"look","effect":"read"}'; read -r go; `
	resultOne = `echo '{"type":"result","id":1,"result":1}'; `
	ended     = `echo '{"type":"end","outcome":"complete"}'; `
)

// breach is what an agent must not say, and what the error says of it.
type breach struct{ script, want string }

func breaches() map[string]breach {
	return map[string]breach{
		"garbage first":             {`echo 'Hello world'`, `not a line of JSON`},
		"garbage later":             {`echo '{"type":"log","text":"x"}'; echo 'Hello world'`, `the line: "Hello world"`},
		"control characters":        {`printf '\033]52;c;x\007\n'`, `"\x1b]52;c;x\a"`},
		"not UTF-8":                 {`printf '{"type":"log","text":"\377"}\n'`, `invalid UTF-8`},
		"byte order mark":           {`printf '\357\273\277{"type":"log","text":"x"}\n'`, `byte order mark`},
		"an array":                  {`echo '[]'`, `must be one JSON object`},
		"no type":                   {`echo '{"id":1}'`, `has no type`},
		"type in another case":      {`echo '{"Type":"log","text":"x"}'`, `has no type`},
		"type is a number":          {`echo '{"type":1}'`, `type must be a string`},
		"unknown type":              {`echo '{"type":"loop"}'`, `the type "loop" is not one that an agent sends`},
		"duplicate keys":            {`echo '{"type":"log","text":"a","text":"b"}'`, `"text" is in this object twice`},
		"duplicate keys deep":       {`echo '{"type":"state","patch":{"a":{"b":1,"b":2}}}'`, `twice`},
		"two values":                {`echo '{"type":"log","text":"a"} {}'`, `something follows`},
		"log without text":          {`echo '{"type":"log"}'`, `text is missing`},
		"log level":                 {`echo '{"type":"log","level":"loud","text":"x"}'`, `level is "loud"; it must be one of: info debug warn error`},
		"id missing":                {`echo '{"type":"step","name":"x"}'`, `id is missing`},
		"id zero":                   {`echo '{"type":"step","id":0,"name":"x"}'`, `id must be an integer from 1`},
		"id with fraction":          {`echo '{"type":"step","id":1.0,"name":"x"}'`, `id must be an integer`},
		"id beyond 2^53":            {`echo '{"type":"step","id":9007199254740992,"name":"x"}'`, `id must be an integer`},
		"id as text":                {`echo '{"type":"step","id":"1","name":"x"}'`, `id must be an integer`},
		"name missing":              {`echo '{"type":"step","id":1}'`, `name must be a string of 1 to 200`},
		"name empty":                {`echo '{"type":"step","id":1,"name":""}'`, `name must be a string of 1 to 200`},
		"kind unknown":              {`echo '{"type":"step","id":1,"name":"x","kind":"toll"}'`, `kind is "toll"; it must be one of: step tool model`},
		"effect unknown":            {`echo '{"type":"step","id":1,"name":"x","effect":"twice"}'`, `effect is "twice"; it must be one of: read idempotent once`},
		"no steps":                  {`echo '{"type":"steps","steps":[]}'`, `steps must be an array of 1 to 1000`},
		"a step that is none":       {`echo '{"type":"steps","steps":[{"id":1,"name":"a"},7]}'`, `steps[1] must be an object`},
		"a wrong member of a group": {`echo '{"type":"steps","steps":[{"id":1,"name":"a"},{"id":2,"name":3}]}'`, `steps[1].name must be a string`},
		"id twice":                  {stepOne + resultOne + `echo '{"type":"step","id":1,"name":"look"}'`, `the id 1 is used a second time`},
		"id twice in a group":       {`echo '{"type":"steps","steps":[{"id":1,"name":"a"},{"id":1,"name":"b"}]}'`, `the id 1 is used a second time`},
		"unknown id":                {`echo '{"type":"result","id":9,"result":1}'`, `a result for an unknown id: no step 9`},
		"result twice":              {stepOne + resultOne + resultOne, `step 1 has its answer already`},
		"result and error":          {stepOne + `echo '{"type":"result","id":1,"result":1,"error":"x"}'`, `exclude each other`},
		"neither":                   {stepOne + `echo '{"type":"result","id":1}'`, `or error is missing`},
		"empty error":               {stepOne + `echo '{"type":"result","id":1,"error":""}'`, `error must not be empty`},
		"blank error":               {stepOne + `echo '{"type":"result","id":1,"error":"  "}'`, `error must not be empty`},
		"definite is a text":        {stepOne + `echo '{"type":"result","id":1,"error":"x","definite":"yes"}'`, `definite must be true or false`},
		"retry in the past":         {stepOne + `echo '{"type":"result","id":1,"error":"x","retry_after_ms":-1}'`, `retry_after_ms must be an integer from 0`},
		"negative tokens":           {stepOne + `echo '{"type":"result","id":1,"result":1,"usage":{"input_tokens":-1}}'`, `usage.input_tokens must be an integer from 0`},
		"cost as a number":          {stepOne + `echo '{"type":"result","id":1,"result":1,"usage":{"cost":0.21}}'`, `usage.cost must be a string`},
		"cost that is none":         {stepOne + `echo '{"type":"result","id":1,"result":1,"usage":{"cost":"-1"}}'`, `usage.cost must be an amount`},
		"a step in a step":          {stepOne + `echo '{"type":"step","id":2,"name":"x"}'`, `a step was begun while another is open`},
		"state before its answer":   {`echo '{"type":"step","id":1,"name":"look","effect":"read"}'; echo '{"type":"state","patch":{"a":1}}'`, `the state was changed while a step is open`},
		"patch in a step":           {stepOne + `echo '{"type":"state","patch":{"a":1}}'; ` + resultOne, `the state was changed while a step is open`},
		"replace in a step":         {stepOne + `echo '{"type":"state","replace":1,"by":"b"}'; ` + resultOne, `the state was changed while a step is open`},
		"end in a step":             {stepOne + ended, `ended while a step is open`},
		"patch that is no object":   {`echo '{"type":"state","patch":[1]}'`, `patch must be an object`},
		"patch and replace":         {`echo '{"type":"state","patch":{},"replace":1}'`, `patch or replace must be there, and not both`},
		"replace after another":     {`echo '{"type":"state","patch":{"a":1},"by":"x"}'; echo '{"type":"state","replace":{}}'`, `writer "x" and the agent itself both write /a`},
		"state after end":           {ended + `echo '{"type":"state","patch":{}}'`, `state came after the end`},
		"step after end":            {ended + `echo '{"type":"step","id":1,"name":"x"}'`, `step came after the end`},
		"end twice":                 {ended + ended, `end came after the end`},
		"outcome missing":           {`echo '{"type":"end"}'`, `outcome is missing`},
		"outcome unknown":           {`echo '{"type":"end","outcome":"done"}'`, `outcome is "done"; it must be one of: continue, wait, complete, fail`},
		"wait without wait":         {`echo '{"type":"end","outcome":"wait"}'`, `wait is missing`},
		"wait for nothing":          {`echo '{"type":"end","outcome":"wait","wait":{}}'`, `wait.for is missing`},
		"wait for godot":            {`echo '{"type":"end","outcome":"wait","wait":{"for":"godot"}}'`, `wait.for is "godot"`},
		"time without until":        {`echo '{"type":"end","outcome":"wait","wait":{"for":"time"}}'`, `wait.until is missing`},
		"until without zone":        {`echo '{"type":"end","outcome":"wait","wait":{"for":"time","until":"2026-03-02 10:00"}}'`, `wait.until must be a time`},
		"exit in a line":            {`printf '{"type":"end","outcome":"comp'`, `it ended in the middle of a line`},
	}
}

// TestBreaches shows that each breach of the protocol fails the attempt, by an
// error that names it, quotes the line and says where the rules are.
func TestBreaches(t *testing.T) {
	t.Parallel() // it mostly waits
	for name, c := range breaches() {
		t.Run(name, func(t *testing.T) {
			next, err := loop(t, sh(t, c.script, nil), newLoop(3))
			var e *stint.Error
			if !errors.As(err, &e) || next.End != nil {
				t.Fatalf("the loop gave %+v, %v", next, err)
			}
			contains(t, "the error", err.Error(), c.want)
			contains(t, "the hint", e.Hint, "docs/exec-protocol.md")
			sentence(t, err)
			if _, final, _ := steering(err); final {
				t.Error("a breach ends the session for good")
			}
			if len(err.Error()) > 1500 {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
		})
	}
}

// sentence checks that an error reads as the reason of a session: it begins with who
// did what, without an operation or an id, and what to do about it is apart from it.
func sentence(t *testing.T, err error) {
	t.Helper()
	first, _, _ := strings.Cut(err.Error(), "\n")
	ok := strings.Contains(first, "both write")
	for _, begin := range []string{"the agent ", "while look was under way: the agent "} {
		ok = ok || strings.HasPrefix(first, begin)
	}
	if !ok || strings.Contains(first, "01jd0f3kx6ewx8ts2gt4hg1m5r") || strings.Contains(first, "exec") {
		t.Errorf("no reason for people: %s", first)
	}
	var e *stint.Error
	if !errors.As(err, &e) || e.Op != "" || e.Hint == "" || strings.Contains(err.Error(), e.Hint) {
		t.Errorf("the error has the hint %+v", e)
	}
}

// TestStateBetweenSteps shows where a change of the state is right: before the first
// step, after a result, and after an answer from the journal.
func TestStateBetweenSteps(t *testing.T) {
	l := newLoop(3)
	l.journal["2"] = recorded{result: stint.Result{Data: []byte("2")}}
	patch := `echo '{"type":"state","patch":{"%":1}}'; `
	next, err := loop(t, sh(t, strings.Replace(patch, "%", "a", 1)+stepOne+resultOne+strings.Replace(patch, "%", "b", 1)+
		strings.Replace(stepOne, `"id":1`, `"id":2`, 1)+strings.Replace(patch, "%", "c", 1)+ended, nil), l)
	if err != nil || string(next.State) != `{"a":1,"b":1,"c":1}` {
		t.Errorf("the loop gave %s, %v", next.State, err)
	}
}

func TestFirstLineHint(t *testing.T) {
	_, err := loop(t, sh(t, `echo 'Hello world'`, nil), newLoop(3))
	var e *stint.Error
	if !errors.As(err, &e) {
		t.Fatal(err)
	}
	contains(t, "the hint of a program without the protocol", e.Hint, "protocol: none")
}

// TestAccepted has what looks like a breach and is none.
func TestAccepted(t *testing.T) {
	t.Parallel() // it mostly waits
	for name, script := range map[string]string{
		"empty lines":            `echo; printf '  \r\n'; ` + ended,
		"CRLF":                   `printf '{"type":"end","outcome":"complete"}\r\n'`,
		"last line unterminated": `printf '{"type":"end","outcome":"complete"}'`,
		"log after end":          ended + `echo '{"type":"log","text":"bye"}'`,
		"null is absent":         `echo '{"type":"end","outcome":"complete","reason":null,"wait":null,"retry_after_ms":null}'`,
		"members of others":      `echo '{"type":"end","outcome":"complete","wait":{"for":"message"},"retry_after_ms":5}'`,
		"error null":             stepOne + `echo '{"type":"result","id":1,"result":null,"error":null}'; ` + ended,
		"exit code after end":    ended + `exit 3`,
		"never reads":            ended,
		"closes its input":       ended + `exec <&-`,
		"bytes on stderr":        `printf '\377\000\033[31m no newline' >&2; ` + ended,
	} {
		t.Run(name, func(t *testing.T) {
			next, err := loop(t, sh(t, script, nil), newLoop(3))
			if err != nil || next.End == nil || next.End.Outcome != stint.Completed {
				t.Fatalf("the loop gave %+v, %v", next, err)
			}
		})
	}
}

func TestExitWithoutEnd(t *testing.T) {
	t.Parallel() // it mostly waits
	for name, c := range map[string]struct {
		script, want string
		is           exec.ExitError
	}{
		"exit 0":         {`exit 0`, "exited with 0 without an end message", exec.ExitError{}},
		"exit 3":         {`echo first >&2; echo '  last  ' >&2; exit 3`, "exited with 3 without an end message; its last words: last\n  stderr: first", exec.ExitError{Code: 3}},
		"a signal":       {`kill -SEGV $$`, "was ended by signal SEGV", exec.ExitError{Code: -1, Signal: "SEGV"}},
		"closed output":  {`exec >&-; exec sleep 100`, "closed its standard output", exec.ExitError{Code: -1, Signal: "TERM", Closed: true}},
		"during a step":  {stepOne + `exit 4`, "exited with 4", exec.ExitError{Code: 4}},
		"after an error": {stepOne + `echo '{"type":"result","id":1,"error":"no such invoice"}'; exit 5`, "no such invoice; then ", exec.ExitError{Code: 5}},
		"went on after an error": {stepOne + `echo '{"type":"result","id":1,"error":"no such invoice"}'; echo '{"type":"step","id":2,"name":"x","effect":"read"}'; read -r go; echo '{"type":"result","id":2,"result":1}'; exit 6`,
			"the agent exited with 6 without an end message", exec.ExitError{Code: 6}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := loop(t, sh(t, c.script, nil), newLoop(3))
			var x *exec.ExitError
			if !errors.As(err, &x) || !errors.Is(err, stint.Invalid) {
				t.Fatalf("the loop gave %v", err)
			}
			if strings.Contains(err.Error(), "invoice") != (name == "after an error") {
				t.Errorf("the error is %v", err)
			}
			if x.Code != c.is.Code || x.Signal != c.is.Signal || x.Closed != c.is.Closed {
				t.Errorf("the exit is %+v, want %+v", *x, c.is)
			}
			contains(t, "the error", err.Error(), c.want)
			if name != "after an error" { // then it begins with that
				sentence(t, err)
			}
		})
	}
}

// TestBreachInStep has agents that break the protocol while a step is open, and
// would stay for ever.
func TestBreachInStep(t *testing.T) {
	t.Parallel() // it mostly waits
	for _, rest := range []string{`echo garbage`, `head -c 5000 /dev/zero | tr '\0' x`} {
		dir, l := t.TempDir(), newLoop(3)
		a := sh(t, `echo $$ > pids; `+stepOne+rest+`; exec sleep 100`, func(s *exec.Spec) { s.Dir, s.MaxLine = dir, 1024 })
		var agent []proc.Ident
		l.before = func(string) { agent = pids(t, filepath.Join(dir, "pids"), 1) }
		l.after = func(string) { gone(t, agent) }
		if _, err := loop(t, a, l); !errors.Is(err, stint.Invalid) {
			t.Errorf("%s gave %v", rest, err)
		}
	}
}

// TestResultTooEarly has a result that comes before the agent is told to proceed.
func TestResultTooEarly(t *testing.T) {
	dir, l := t.TempDir(), newLoop(3)
	a := sh(t, `echo $$ > pids; echo '{"type":"step","id":1,"name":"x"}'; `+resultOne+`exec sleep 100`, func(s *exec.Spec) { s.Dir = dir })
	l.before = func(string) { // the breach ends the process, maybe before anybody has looked at it
		await(t, "the end of the agent", func() bool {
			pid, err := strconv.Atoi(strings.TrimSpace(read(t, filepath.Join(dir, "pids"))))
			if err != nil {
				return false
			}
			id, there := proc.IdentOf(pid)
			return !there || !proc.Alive(id)
		})
	}
	_, err := loop(t, a, l)
	if !errors.Is(err, stint.ErrParked) || len(l.journal) != 0 {
		t.Fatalf("the loop gave %v, %+v", err, l.journal)
	}
	contains(t, "the error", err.Error(), "broke the protocol before it was told to proceed")
}

// TestSaidBeforeExit has an agent that is gone before the loop's goroutine hears
// what it said last: its end counts, and a step that nobody can do is not begun.
func TestSaidBeforeExit(t *testing.T) {
	t.Parallel() // it mostly waits
	for range 8 {
		for _, last := range []string{ended, `echo '{"type":"step","id":2,"name":"x"}'`} {
			good := last == ended
			dir, l := t.TempDir(), newLoop(3)
			a := sh(t, `echo $$ > pids; `+stepOne+resultOne+last, func(s *exec.Spec) { s.Dir = dir })
			var family []proc.Ident // the agent and its guard
			l.before = func(string) { family = proc.Ancestors(pids(t, filepath.Join(dir, "pids"), 1)[0].Pid)[:2] }
			l.after = func(string) {
				await(t, "the end of the agent", func() bool { return !proc.Alive(family[0]) && !proc.Alive(family[1]) })
			}
			next, err := loop(t, a, l)
			if good != (err == nil && next.End != nil) || len(l.steps) != 1 {
				t.Fatalf("after %s the loop gave %+v, %v, and began %d steps", last, next, err, len(l.steps))
			}
		}
	}
}

func TestLastWords(t *testing.T) {
	t.Parallel() // it mostly waits
	_, err := loop(t, sh(t, `i=0; while [ $i -lt 100 ]; do i=$((i+1)); echo "line $i" >&2; done; exit 1`, nil), newLoop(3))
	var x *exec.ExitError
	if !errors.As(err, &x) || len(x.Stderr) != 20 || x.Stderr[0] != "line 81" || x.Stderr[19] != "line 100" {
		t.Fatalf("the last lines are %+v", x)
	}
}

// TestErrorSteering checks that an error of the agent says what it asked for.
func TestErrorSteering(t *testing.T) {
	a := sh(t, stepOne+`echo '{"type":"result","id":1,"error":"gone","definite":true,"retry_after_ms":1500,"final":true}'; `+ended, nil)
	l := newLoop(3)
	if _, err := loop(t, a, l); err != nil {
		t.Fatal(err)
	}
	after, final, definite := steering(l.journal["1"].err)
	if after != 1500*time.Millisecond || !final || !definite || l.journal["1"].err.Error() != "gone" {
		t.Errorf("the recorded error is %v (after %v, final %v, definite %v)", l.journal["1"].err, after, final, definite)
	}
}

// TestDoubt is an error of a once step that says nothing of its outcome.
func TestDoubt(t *testing.T) {
	t.Parallel() // it mostly waits
	once := `echo '{"type":"step","id":1,"name":"charge"}'; read -r go; echo '{"type":"result","id":1,"error":"connection lost"}'; `
	t.Run("parks", func(t *testing.T) {
		l := newLoop(3)
		_, err := loop(t, sh(t, once+ended, nil), l)
		if !errors.Is(err, stint.ErrParked) {
			t.Fatalf("the loop gave %v", err)
		}
	})
	t.Run("next step is parked", func(t *testing.T) {
		l := newLoop(3)
		dir := t.TempDir()
		_, err := loop(t, sh(t, once+`echo '{"type":"step","id":2,"name":"x"}'; read -r answer; echo "$answer" > answer; exit 7`, func(s *exec.Spec) { s.Dir = dir }), l)
		if !errors.Is(err, stint.ErrParked) {
			t.Fatalf("the loop gave %v", err)
		}
		contains(t, "the answer", read(t, filepath.Join(dir, "answer")), `{"type":"park","id":2,"reason":"step 1 is in doubt (connection lost)"}`)
	})
	t.Run("settled by rule", func(t *testing.T) {
		l := newLoop(3)
		l.unknown = true
		_, err := loop(t, sh(t, once+`echo '{"type":"step","id":2,"name":"x"}'; read -r answer`, nil), l)
		if err == nil || errors.Is(err, stint.ErrParked) || !strings.Contains(err.Error(), "settled by rule") {
			t.Fatalf("the loop gave %v", err)
		}
	})
}

func TestRefusedStep(t *testing.T) {
	l := newLoop(3)
	l.journal["1"] = recorded{err: stint.Unavailable.Errorf("store", "the disk is full")}
	_, err := loop(t, sh(t, stepOne+ended, nil), l)
	if !errors.Is(err, stint.Unavailable) {
		t.Fatalf("a step that the engine refuses gave %v", err)
	}
}

// TestCanceledBefore is a loop whose context has ended already.
func TestCanceledBefore(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	why := errors.New("fenced")
	cancel(why)
	a := sh(t, `touch ran`, nil)
	if _, err := a.Loop(ctx, newLoop(3)); !errors.Is(err, why) {
		t.Fatalf("the loop gave %v", err)
	}
}
