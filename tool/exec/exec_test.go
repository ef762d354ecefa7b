package exec_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/proc"
	"github.com/stint-dev/stint/tool"
	"github.com/stint-dev/stint/tool/exec"
)

// TestMain lets the test binary be the guard of what it starts, and the program too.
func TestMain(m *testing.M) {
	proc.MaybeGuard()
	if len(os.Args) > 2 && os.Args[1] == "program" {
		os.Exit(program(os.Args[2], os.Args[3:]))
	}
	os.Exit(m.Run())
}

// program is a tool with a countable effect, and with outputs of every kind.
func program(name string, args []string) int {
	in, _ := io.ReadAll(os.Stdin)
	switch name {
	case "argv":
		_ = json.NewEncoder(os.Stdout).Encode(args)
	case "stdin":
		_, _ = os.Stdout.Write(in)
	case "env":
		for _, v := range os.Environ() {
			fmt.Println(v)
		}
	case "effect":
		f, err := os.OpenFile("effects", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return 1
		}
		fmt.Fprintln(f, os.Getenv("STINT_IDEMPOTENCY_KEY"), string(in))
		if len(args) > 0 {
			hang() // the window after the effect
		}
		fmt.Print("done")
	case "fail":
		fmt.Print("half a result")
		fmt.Fprintln(os.Stderr, "no such thing")
		return 3
	case "bytes":
		fmt.Print("before\x00after \xed\xa0\xbd lone, tab\t, esc\x1b[31m, bell\a, 😀, literal \\u0000")
	case "big":
		fmt.Fprint(os.Stderr, "warned")
		chunk := strings.Repeat("é", 1<<15)
		for range 160 {
			fmt.Print(chunk)
		}
	case "noisy":
		for i := range 100_000 {
			fmt.Fprintf(os.Stderr, "line %d\n", i)
		}
		return 1
	}
	return 0
}

// self is a Spec that starts this binary in the part of a program.
func self(t testing.TB, part string, args ...string) exec.Spec {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return exec.Spec{Name: part, Command: append([]string{exe, "program", part}, args...), Dir: t.TempDir(),
		Env: map[string]string{"GORACE": "atexit_sleep_ms=0"}} // the race detector waits a second at each exit
}

func sh(t testing.TB, script string) exec.Spec {
	return exec.Spec{Name: "sh", Command: []string{script}, Shell: true, Dir: t.TempDir()}
}

func call(t testing.TB, s exec.Spec, args string) (tool.Output, error) {
	t.Helper()
	return callIn(t.Context(), t, s, args)
}

func callIn(ctx context.Context, t testing.TB, s exec.Spec, args string) (tool.Output, error) {
	t.Helper()
	one, err := exec.New(s)
	if err != nil {
		t.Fatal(err)
	}
	return one.Caller.Call(ctx, tool.Call{Args: json.RawMessage(args), Key: "k3y", Name: "nightly", Epoch: 7,
		Position: stint.Position{Line: 1, Loop: 3, Attempt: 2, Step: 4}})
}

func steer(err error) (definite, notBegun bool) {
	var s interface {
		Steer() (time.Duration, bool, bool)
	}
	if errors.As(err, &s) {
		_, _, definite = s.Steer()
	}
	var n interface{ NotBegun() bool }
	return definite, errors.As(err, &n) && n.NotBegun()
}

func TestCommand(t *testing.T) {
	for _, tt := range []struct {
		name    string
		command []string
		args    string
		want    string // argv as JSON, or what is wrong
	}{
		{"parts of elements", []string{"--id={id}", "{a}/{b}", "{{x}}"}, `{"id":2512292042121000001,"a":"p q","b":"; rm -rf *"}`, `["--id=2512292042121000001","p q/; rm -rf *","{x}"]`},
		{"never split", []string{"{a}"}, `{"a":"one two\n$(id) 'x' \"y\" ` + "`id`" + ` *"}`, `["one two\n$(id) 'x' \"y\" ` + "`id`" + ` *"]`},
		{"left out", []string{"--x={x}", "{y}", "z"}, `{"y":null}`, `["z"]`},
		{"empty is not left out", []string{"{y}", "z"}, `{"y":""}`, `["","z"]`},
		{"other types", []string{"{n}", "{t}", "{l}", "{o}"}, `{"n":-1.50,"t":true,"l":[1, "a"],"o":{"b":1}}`, `["-1.50","true","[1, \"a\"]","{\"b\":1}"]`},
		{"no second round", []string{"{a}"}, `{"a":"{b}","b":"x"}`, `["{b}"]`},
		{"an option", []string{"{a}"}, `{"a":"--output=/etc/passwd"}`, "the argument a begins with -"},
		{"an option behind a place", []string{"{a}{b}"}, `{"a":"","b":"-rf"}`, "the argument a begins with -"},
		{"no option after --", []string{"--", "{a}"}, `{"a":"-rf"}`, `["--","-rf"]`},
		{"no option inside", []string{"--x={a}"}, `{"a":"-rf"}`, `["--x=-rf"]`},
		{"NUL", []string{"{a}"}, `{"a":"x\u0000y"}`, "has a NUL in it"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out, err := call(t, self(t, "argv", tt.command...), tt.args)
			if err != nil {
				t.Fatal(err)
			}
			if out.Error {
				if !strings.Contains(out.Text, tt.want) {
					t.Errorf("got %q, want %q", out.Text, tt.want)
				}
				return
			}
			var got, want []string
			if json.Unmarshal(out.Data, &got) != nil || json.Unmarshal([]byte(tt.want), &want) != nil || fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
				t.Errorf("got %s, want %s", out.Text, tt.want)
			}
		})
	}
}

func TestNewRefuses(t *testing.T) {
	schema := json.RawMessage(`{"type":"object","properties":{"a":{}}}`)
	for want, s := range map[string]exec.Spec{
		"it has no command":                      {},
		"an argument would choose the program":   {Command: []string{"{a}"}},
		"the brace at byte 0 begins no argument": {Command: []string{"awk", "{print $1}"}},
		"{b} is no argument of its schema":       {Command: []string{"echo", "{b}"}, Schema: schema},
		"a shell reads one text":                 {Command: []string{"echo", "a"}, Shell: true},
		"A is a variable and a secret":           {Command: []string{"x"}, Env: map[string]string{"A": ""}, Secrets: map[string]tool.Secret{"A": nil}},
		"cannot be set":                          {Command: []string{"x"}, Env: map[string]string{"A=B": ""}},
	} {
		if _, err := exec.New(s); !errors.Is(err, stint.Invalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// TestShell: no value of an argument is read by the shell as anything but a value.
func TestShell(t *testing.T) {
	s := sh(t, `printf '%s|' "$STINT_ARG_a" "$STINT_ARG_n" "${STINT_ARG_none-unset}"; ls`)
	out, err := call(t, s, `{"a":"$(touch pwned) `+"`touch pwned`"+`; touch pwned \"'","n":18446744073709551615,"none":null}`)
	if want := "$(touch pwned) `touch pwned`; touch pwned \"'|18446744073709551615|unset|"; err != nil || out.Text != want {
		t.Errorf("got %q, %v, want %q", out.Text, err, want)
	}
	for _, args := range []string{`{"a":"x\u0000y"}`, `{"PATH":"/nowhere","IFS":"x"}`} {
		if out, err := call(t, sh(t, `echo "$PATH"`), args); err != nil || out.Text == "/nowhere\n" {
			t.Errorf("%s: got %q, %v", args, out.Text, err)
		}
	}
}

func TestEnvironment(t *testing.T) {
	t.Setenv("STINT_TEST_CANARY", "of stint itself")
	s := self(t, "env")
	s.Env = map[string]string{"A": "b c=d", "TZ": "Mars/Olympus"}
	s.Secrets = map[string]tool.Secret{"TOKEN": func() (string, error) { return "s3cr3t-value", nil }}
	out, err := call(t, s, `{}`)
	if err != nil || out.Error {
		t.Fatal(out, err)
	}
	for _, want := range []string{"A=b c=d", "TZ=Mars/Olympus", "TOKEN={{secret:TOKEN}}", "STINT_IDEMPOTENCY_KEY=k3y", "STINT_EPOCH=7", "STINT_NAME=nightly", "STINT_LINE=1", "STINT_LOOP=3", "STINT_ATTEMPT=2", "STINT_TOOL=env"} {
		if !strings.Contains("\n"+out.Text, "\n"+want+"\n") {
			t.Errorf("%s is not in\n%s", want, out.Text)
		}
	}
	for _, not := range []string{"CANARY", "s3cr3t"} {
		if strings.Contains(out.Text, not) {
			t.Errorf("%s is in\n%s", not, out.Text)
		}
	}
	s.Secrets["TOKEN"] = func() (string, error) { return "", errors.New("not set") }
	_, err = call(t, s, `{}`)
	if _, notBegun := steer(err); !notBegun || !strings.Contains(err.Error(), "the secret TOKEN: not set") {
		t.Errorf("got %v", err)
	}
}

func TestOutcomes(t *testing.T) {
	t.Run("the bytes of the arguments", func(t *testing.T) {
		args := `{"id": 2512292042121000001,  "u64":18446744073709551615, "s":"<&>é\n"}`
		out, err := call(t, self(t, "stdin"), args)
		if err != nil || out.Text != args || string(out.Data) != args {
			t.Errorf("got %q, %s, %v", out.Text, out.Data, err)
		}
	})
	t.Run("an exit code is an outcome", func(t *testing.T) {
		out, err := call(t, self(t, "fail"), `{}`)
		if want := "half a result\n[exit status 3]\n[what it wrote to stderr]\nno such thing\n"; err != nil || !out.Error || out.Text != want {
			t.Errorf("got %+v, %v, want %q", out, err, want)
		}
	})
	t.Run("a signal from elsewhere is one", func(t *testing.T) {
		out, err := call(t, sh(t, "kill -SEGV $$"), `{}`)
		if err != nil || !out.Error || out.Text != "[ended by SIGSEGV]" {
			t.Errorf("got %+v, %v", out, err)
		}
	})
	t.Run("strange bytes", func(t *testing.T) {
		out, err := call(t, self(t, "bytes"), `{}`)
		want := "before\uFFFDafter \uFFFD lone, tab\t, esc\x1b[31m, bell\a, 😀, literal \\u0000\n[stint: 2 times \uFFFD above stands for a NUL or for bytes that are not UTF-8]"
		if err != nil || out.Text != want {
			t.Errorf("got %q, %v, want %q", out.Text, err, want)
		}
	})
	t.Run("a flood", func(t *testing.T) {
		s := self(t, "big")
		s.MaxOutput = 100_001
		out, err := call(t, s, `{}`)
		if err != nil || out.Error || len(out.Text) > 100_200 || !strings.HasSuffix(out.Text, "10385760 bytes after these were not kept]") || out.Data != nil {
			t.Errorf("got %d bytes ending in %q, %v", len(out.Text), out.Text[max(0, len(out.Text)-100):], err)
		}
	})
	t.Run("the end of stderr", func(t *testing.T) {
		out, err := call(t, self(t, "noisy"), `{}`)
		if err != nil || !strings.HasSuffix(out.Text, "line 99999\n") || !strings.Contains(out.Text, "bytes before these were not kept") || len(out.Text) > 70_000 {
			t.Errorf("got %d bytes, %v", len(out.Text), err)
		}
	})
	t.Run("no such program", func(t *testing.T) {
		_, err := call(t, exec.Spec{Name: "x", Command: []string{"stint-no-such-program"}}, `{}`)
		if definite, _ := steer(err); !definite || !errors.Is(err, stint.Invalid) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a program that reads nothing", func(t *testing.T) {
		s := exec.Spec{Name: "true", Command: []string{"sh", "-c", "exec <&-; echo fine"}}
		out, err := call(t, s, `{"a":"`+strings.Repeat("x", 4<<20)+`"}`)
		if err != nil || out.Text != "fine\n" {
			t.Errorf("got %+v, %v", out, err)
		}
	})
	t.Run("an argument that no program can have", func(t *testing.T) {
		out, err := call(t, self(t, "argv", "{a}"), `{"a":"`+strings.Repeat("x", 4<<20)+`"}`)
		if err != nil || !out.Error || !strings.Contains(out.Text, "longer than the system takes") {
			t.Errorf("got %.300q, %v", out.Text, err)
		}
	})
}

// hang waits for a signal that does not come. A select without cases would be taken for a
// deadlock, and end the program.
func hang() {
	c := make(chan os.Signal, 1)
	signal.Notify(c, os.Interrupt)
	<-c
}

func lines(t testing.TB, path string) []string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return strings.Fields(string(b))
}

// patience is how long the tests wait for what has to come. It only ends a test that
// would hang: how long a program takes depends on what else the machine does.
const patience = time.Minute

// await polls for something that another process does.
func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(patience)
	for !done() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("gave up waiting for %s", what)
		}
	}
}

// TestKilled: what stint ended has no outcome, whether or not its effect is there.
func TestKilled(t *testing.T) {
	t.Run("time-out after the effect", func(t *testing.T) {
		effects := func(timeout time.Duration) string {
			s := self(t, "effect", "hang")
			s.Timeout, s.Grace = timeout, 50*time.Millisecond
			out, err := call(t, s, `{"x":1}`)
			if err == nil {
				t.Fatalf("it ended by itself, and said %q", out.Text)
			}
			definite, notBegun := steer(err)
			if definite || notBegun || !strings.Contains(err.Error(), fmt.Sprintf("its time of %v was up", timeout)) {
				t.Errorf("got %v, definite %v, not begun %v", err, definite, notBegun)
			}
			return strings.Join(lines(t, filepath.Join(s.Dir, "effects")), " ")
		}
		// One who did not come to the effect in time is called again, with more of it.
		timeout := time.Second
		got := effects(timeout)
		for ; got == "" && timeout < patience; got = effects(timeout) {
			timeout *= 4
		}
		if got != `k3y {"x":1}` {
			t.Errorf("the effects are %q", got)
		}
	})
	t.Run("a canceled call of nothing", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		s := self(t, "effect")
		_, err := callIn(ctx, t, s, `{}`)
		if _, notBegun := steer(err); !notBegun || len(lines(t, filepath.Join(s.Dir, "effects"))) != 0 {
			t.Errorf("got %v", err)
		}
	})
	t.Run("an exit code after SIGTERM", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		s := sh(t, `trap 'exit 0' TERM; echo $$ > pid; while :; do sleep 0.05; done`)
		s.Grace = patience // it needs little of that, but nobody knows how little
		result := make(chan error, 1)
		go func() {
			_, err := callIn(ctx, t, s, `{}`)
			result <- err
		}()
		await(t, "the program", func() bool { return len(lines(t, filepath.Join(s.Dir, "pid"))) == 1 })
		why := errors.New("the lease is lost")
		cancel(why)
		err := <-result
		if definite, _ := steer(err); definite || !errors.Is(err, why) {
			t.Errorf("got %v", err)
		}
	})
}

// TestTree cancels a tool whose grandchildren ignore SIGTERM, left its session and hold its
// output.
func TestTree(t *testing.T) {
	t.Run("cancel", func(t *testing.T) {
		t.Parallel() // it mostly waits
		if n := treeEnds(t, 0); n != 3 {
			t.Errorf("%d of the processes lived", n)
		}
	})
	t.Run("time-out", func(t *testing.T) {
		t.Parallel() // it mostly waits
		timeout := 2 * time.Second
		n := treeEnds(t, timeout)
		for ; n != 3 && timeout < patience; n = treeEnds(t, timeout) { // its time was up before they were there
			timeout *= 4
		}
		if n != 3 {
			t.Errorf("%d of the processes lived", n)
		}
	})
}

// treeEnds calls the tool, which has so much time, 0: until it is canceled. It returns how
// many of its processes it saw alive; none of them is when the call returns.
func treeEnds(t *testing.T, timeout time.Duration) int {
	t.Helper()
	s := sh(t, `echo $$ >> pids
(trap '' TERM; echo $(exec sh -c 'echo $PPID') >> pids; while :; do sleep 1; done) &
setsid sh -c 'echo $$ >> pids; trap "" TERM HUP; while :; do sleep 1; done' &
wait`)
	s.Timeout = timeout
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	result := make(chan error, 1)
	go func() {
		_, err := callIn(ctx, t, s, `{}`)
		result <- err
	}()
	pids := func() []string { return lines(t, filepath.Join(s.Dir, "pids")) }
	await(t, "three processes", func() bool { return len(pids()) == 3 || len(result) == 1 })
	var family []proc.Ident
	for _, f := range pids() {
		pid, err := strconv.Atoi(f)
		if err != nil {
			t.Fatal(err)
		}
		if id, ok := proc.IdentOf(pid); ok {
			family = append(family, id)
		}
	}
	if timeout == 0 {
		cancel()
	}
	select {
	case err := <-result:
		if err == nil {
			t.Error("it ended well")
		}
	case <-time.After(max(7*time.Second, timeout+5*time.Second)):
		t.Fatal("it does not end")
	}
	for _, id := range family {
		if proc.Alive(id) {
			t.Errorf("process %d is still there", id.Pid)
		}
	}
	return len(family)
}

func TestDefaults(t *testing.T) {
	one, err := exec.New(exec.Spec{Name: "x", Command: []string{"true"}})
	if err != nil || one.Class() != stint.Once || one.Parallel {
		t.Errorf("got %+v, %v", one, err)
	}
}
