package cli_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/agent/cli"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/internal/proc"
	"github.com/stint-dev/stint/journal"
	"github.com/stint-dev/stint/store/mem"
)

func has(t *testing.T, what, text string, want ...string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(text, w) {
			text := text[:min(len(text), 4000)]
			t.Errorf("%s is\n%s\nwant in it\n%s", what, text, w)
		}
	}
}

// A session that waits for messages is resumed by its id, with the new words only,
// and what codex counts for the whole session is counted once.
func TestTurns(t *testing.T) {
	second := strings.Replace(cxDone, `"input_tokens":100`, `"input_tokens":150`, 1)
	f := newFake(t, cli.Codex, lines(cxThread, cxTurn, cxText("one"), cxDone), lines(cxThread, cxTurn, cxText("two"), second))
	f.spec.Interactive = true
	r := newRig(t, f.spec, 1)
	s := r.run(t.Context(), "first")
	r.is(s, stint.Waiting)
	r.send(s.ID, stint.Prompt, journal.Command{}, "second")
	s = r.drive(t.Context(), s.ID)
	r.is(s, stint.Waiting)
	turns := f.turns()
	if len(turns) != 2 {
		t.Fatalf("started %d times", len(turns))
	}
	if got, want := turns[0].Args, []string{"exec", "--json", "--own", "-"}; !slices.Equal(got, want) {
		t.Errorf("the first turn was called with %q, want %q", got, want)
	}
	if got, want := turns[1].Args, []string{"exec", "--json", "--own", "resume", "th-1", "-"}; !slices.Equal(got, want) {
		t.Errorf("the second turn was called with %q, want %q", got, want)
	}
	if turns[0].Prompt != "first" || turns[1].Prompt != "second" {
		t.Errorf("the prompts were %q and %q", turns[0].Prompt, turns[1].Prompt)
	}
	if got := s.Totals.Usage; got.Input != 150 || got.Output != 10 {
		t.Errorf("the session used %+v, want 150 and 10", got)
	}
}

// The environment is clean but for what is named.
func TestEnvironment(t *testing.T) {
	t.Setenv("CLI_SECRET", "s")
	t.Setenv("CLI_NAMED", "n")
	f := newFake(t, cli.Codex, lines(cxThread, cxText("x"), cxDone))
	f.spec.Pass = []string{"CLI_NAMED"}
	r := newRig(t, f.spec, 1)
	s := r.run(t.Context(), "x")
	r.is(s, stint.Completed)
	env := strings.Join(f.turns()[0].Env, "\n")
	has(t, "the environment", env, "CLI_NAMED=n", "STINT_SESSION="+s.ID.String(), "STINT_LOOP=1", "HOME=")
	if strings.Contains(env, "CLI_SECRET") {
		t.Error("a variable that nobody named is in the environment")
	}
}

// A tool by effect: what the Spec says wins.
func TestEffects(t *testing.T) {
	f := newFake(t, cli.Codex, lines(cxThread, cxBegin("1", "ls"), cxEnd("1", "ls", "a"), cxText("x"), cxDone))
	f.spec.Effects = map[string]stint.Effect{"command_execution": stint.Idempotent}
	r := newRig(t, f.spec, 1)
	s := r.run(t.Context(), "x")
	r.is(s, stint.Completed)
	has(t, "the journal", r.journal(s.ID), "tool command_execution idempotent")
}

// What is not of the stream is logged and passed over.
func TestGarbage(t *testing.T) {
	f := newFake(t, cli.Codex, lines("Warning: 256 colors \x1b[31mred\x1b[0m", "{]", `["an array"]`, `{"type":"of a later codex","x":1}`, "",
		"!stderr on the side", cxThread, "\xff\xfe", "!big 100000", cxText("fine"), cxDone, "after the end"))
	r := newRig(t, f.spec, 1)
	s := r.run(t.Context(), "x")
	r.is(s, stint.Completed)
	has(t, "the journal", r.journal(s.ID), "Warning: 256 colors red\n", "{]", "on the side", "xxxx")
}

// A line that is too long is left out; where the end of a call was in it, the call is
// in doubt.
func TestOversizedLine(t *testing.T) {
	f := newFake(t, cli.Codex, lines(cxThread, cxBegin("1", "pay"), "!big 40000000", cxText("fine"), cxDone))
	r := newRig(t, f.spec, 1)
	s := r.run(t.Context(), "x")
	r.is(s, stint.Waiting)
	if s.Wait.For != stint.ForDoubt {
		t.Errorf("it waits for %s", s.Wait.For)
	}
	has(t, "the journal", r.journal(s.ID), "a line of 40000000 bytes is left out")
}

// Output is bounded, and says what is left out.
func TestLongOutput(t *testing.T) {
	f := newFake(t, cli.Codex, lines(cxThread, cxBegin("1", "cat"), cxEnd("1", "cat", strings.Repeat("é", 100_000)), cxText("fine"), cxDone))
	r := newRig(t, f.spec, 1)
	s := r.run(t.Context(), "x")
	r.is(s, stint.Completed)
	for _, e := range r.entries(s.ID) {
		if e.Kind != stint.StepCompleted || e.Pos.Step != 3 {
			continue
		}
		var out struct {
			Output string
			Cut    int64 `json:"cut_bytes"`
		}
		if err := json.Unmarshal([]byte(r.body(&e, s.Family)), &out); err != nil {
			t.Fatal(err)
		}
		if len(out.Output) != 64<<10 || out.Cut != 200_000-64<<10 {
			t.Errorf("%d bytes are kept and %d left out", len(out.Output), out.Cut)
		}
		return
	}
	t.Error("there is no result")
}

// How a turn ends badly, and what it makes of the session.
func TestFailures(t *testing.T) {
	gm := `{"type":"init","session_id":"g-1"}`
	for name, c := range map[string]struct {
		protocol cli.Protocol
		script   string
		status   stint.Status
		reason   []string
		code     stint.Code
	}{
		"exit code":       {cli.Codex, lines(cxThread, "!stderr it broke", "!exit 3"), stint.Failed, []string{"codex exited with 3 before the end of its turn: it broke"}, ""},
		"cut stream":      {cli.Codex, lines(cxThread, cxText("half")), stint.Failed, []string{"codex exited with 0 before the end of its turn"}, ""},
		"cut line":        {cli.Codex, lines(cxThread, `!raw {"type":"turn.compl`), stint.Failed, []string{"exited with 0 before"}, ""},
		"nothing":         {cli.Codex, "", stint.Failed, []string{"exited with 0 before"}, ""},
		"turn failed":     {cli.Codex, lines(cxThread, `{"type":"turn.failed","error":{"message":"model gone"}}`, "!exit 1"), stint.Failed, []string{"codex failed its turn: model gone"}, ""},
		"auth":            {cli.Codex, lines(cxThread, `{"type":"error","message":"Reconnecting"}`, `{"type":"turn.failed","error":{"message":"unexpected status 401 Unauthorized: Incorrect API key provided"}}`, "!exit 1"), stint.Failed, []string{"401 Unauthorized"}, ""},
		"gemini auth":     {cli.Gemini, lines("!stderr Please set an Auth method in your settings.json", "!exit 41"), stint.Failed, []string{"gemini exited with 41", "Auth method"}, ""},
		"gemini error":    {cli.Gemini, lines(gm, `{"type":"result","status":"error","error":{"type":"unknown","message":"[API Error: boom]"},"stats":{}}`, "!exit 1"), stint.Failed, []string{"gemini failed its turn: [API Error: boom]"}, ""},
		"opencode error":  {cli.OpenCode, lines(`{"type":"error","sessionID":"ses_1","error":{"name":"APIError","data":{"message":"no","statusCode":500}}}`, "!exit 1"), stint.Failed, []string{"opencode failed its turn: no (status 500)"}, ""},
		"opencode silent": {cli.OpenCode, lines(`{"type":"step_start","sessionID":"ses_1","part":{}}`), stint.Failed, []string{"opencode exited with 0 before"}, ""},
		"claude turns":    {cli.Claude, lines(`{"type":"system","subtype":"init","session_id":"c-1"}`, `{"type":"result","subtype":"error_max_turns","is_error":false,"session_id":"c-1"}`), stint.Failed, []string{"error_max_turns"}, ""},
		"no such session": {cli.Gemini, lines("!stderr Error resuming session: Invalid session identifier \"x\".", "!stderr   Use --list-sessions to see what there is", "!exit 1"), stint.Failed, []string{"Invalid session identifier"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t, c.protocol, c.script)
			r := newRig(t, f.spec, 1)
			s := r.run(t.Context(), "x")
			r.is(s, c.status)
			has(t, "the reason", s.Reason, c.reason...)
		})
	}
}

// errOf is the error of one loop that is driven without an engine.
func errOf(t *testing.T, spec cli.Spec) error {
	t.Helper()
	return errOfInput(t, spec, "x")
}

func promptless(t *testing.T, spec cli.Spec) error {
	t.Helper()
	return errOfInput(t, spec, "")
}

func errOfInput(t *testing.T, spec cli.Spec, input string) error {
	t.Helper()
	a, err := cli.New(spec)
	if err != nil {
		t.Fatal(err)
	}
	var got error
	r := &rig{t: t, store: mem.New()}
	r.agent = engineAgent(stint.AgentFunc(func(ctx context.Context, l stint.Loop) (stint.Next, error) {
		_, got = a.Loop(ctx, l)
		return stint.Next{End: &stint.End{}}, nil
	}), 1)
	e, err := engine.New(t.Context(), r.store, engine.Options{Agents: []engine.Agent{r.agent}})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	r.engine = e
	_ = r.run(t.Context(), input)
	return got
}

// What an error asks of the engine, and of a person.
func TestErrors(t *testing.T) {
	fail := func(text string) string {
		return lines(cxThread, `{"type":"turn.failed","error":{"message":"`+text+`"}}`)
	}
	for name, c := range map[string]struct {
		script string
		code   stint.Code
		after  time.Duration
		final  bool
		hint   string
	}{
		"auth":      {fail("401 Unauthorized"), stint.Invalid, 0, true, "codex login"},
		"rate":      {fail("exceeded retry limit, last status: 429 Too Many Requests"), stint.Unavailable, 30 * time.Second, false, "tried again later"},
		"rate says": {fail("You've hit your usage limit. Try again in 5 minutes."), stint.Unavailable, 5 * time.Minute, false, "tried again later"},
		"gone":      {lines("!stderr Error: thread/resume failed: no rollout found for thread id x", "!exit 1"), stint.NotFound, 0, true, "HOME or dir"},
		"other":     {fail("boom"), stint.Unavailable, 0, false, "tried again"},
	} {
		t.Run(name, func(t *testing.T) {
			err := errOf(t, newFake(t, cli.Codex, c.script).spec)
			var s interface {
				Steer() (time.Duration, bool, bool)
			}
			var after time.Duration
			var final bool
			if errors.As(err, &s) {
				after, final, _ = s.Steer()
			}
			var e *stint.Error
			if !errors.As(err, &e) || e.Code != c.code || after != c.after || final != c.final {
				t.Errorf("the error is %#v (%v): after %v, final %v", err, err, after, final)
			}
			if e != nil {
				has(t, "the hint", e.Hint, c.hint)
			}
		})
	}
	t.Run("no prompt", func(t *testing.T) {
		err := promptless(t, newFake(t, cli.Codex, "").spec)
		if !errors.Is(err, stint.Invalid) || !strings.Contains(err.Error(), "no prompt") {
			t.Errorf("the error is %v", err)
		}
	})
	t.Run("no program", func(t *testing.T) {
		err := errOf(t, cli.Spec{Protocol: cli.Codex, Command: []string{"there-is-no-such-cli"}})
		if !errors.Is(err, stint.Invalid) || !strings.Contains(err.Error(), "is not in PATH") {
			t.Errorf("the error is %v", err)
		}
	})
}

// A cancel ends the CLI and what it started in a session of its own, within 5 s.
func TestCancel(t *testing.T) {
	f := newFake(t, cli.Codex, lines(cxThread, "!child", cxBegin("1", "pay"), "!touch hanging", "!hang"))
	r := newRig(t, f.spec, 1)
	r.cli.Gather(time.Millisecond)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	sent := make(chan time.Time, 1)
	go func() {
		eventually(t, "hanging", func() bool { return f.has("hanging") })
		eventually(t, "the intent", func() bool {
			all, err := r.store.Sessions(t.Context(), stint.Filter{})
			return err == nil && len(all) == 1 && r.steps(all[0].Session.ID, stint.StepRequested, "command_execution") == 1
		})
		all, err := r.store.Sessions(t.Context(), stint.Filter{})
		if err != nil {
			t.Error(err)
			return
		}
		sent <- time.Now()
		r.send(all[0].Session.ID, stint.Kill, journal.Command{}, "")
	}()
	s := r.run(ctx, "x")
	r.is(s, stint.Canceled)
	select {
	case began := <-sent:
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("it took %v", took)
		}
	default:
		t.Error("it ended before it was told to")
	}
	f.gone()
}

// gone fails if what the CLI started is still there.
func (f *fake) gone() {
	f.t.Helper()
	b, err := os.ReadFile(filepath.Join(f.dir, "child.pid"))
	if err != nil {
		f.t.Fatal(err)
	}
	pid, err := strconv.Atoi(string(b))
	if err != nil {
		f.t.Fatal(err)
	}
	eventually(f.t, "gone: what the CLI started", func() bool {
		id, ok := proc.IdentOf(pid)
		return !ok || !proc.Alive(id)
	})
}

// A pause parks the session after the call that is under way; resumed, the CLI goes on
// where it was, and no attempt is spent.
func TestPause(t *testing.T) {
	f := newFake(t, cli.Codex,
		lines(cxThread, cxBegin("1", "pay"), "!touch begun", "!await go", cxEnd("1", "pay", "ok"), "!chatter"),
		lines(cxThread, cxText("done"), cxDone))
	r := newRig(t, f.spec, 1)
	r.cli.Gather(time.Millisecond)
	go func() {
		eventually(t, "begun", func() bool { return f.has("begun") })
		all, err := r.store.Sessions(t.Context(), stint.Filter{})
		if err != nil || len(all) != 1 {
			t.Error(len(all), err)
			return
		}
		eventually(t, "recorded", func() bool { return r.steps(all[0].Session.ID, stint.StepRequested, "command_execution") == 1 })
		r.send(all[0].Session.ID, stint.Pause, journal.Command{}, "")
		if err := os.WriteFile(filepath.Join(f.dir, "go"), nil, 0o600); err != nil {
			t.Error(err)
		}
	}()
	s := r.run(t.Context(), "x")
	r.is(s, stint.Waiting)
	if s.Wait.For != stint.ForOperator {
		t.Errorf("it waits for %s", s.Wait.For)
	}
	r.send(s.ID, stint.Resume, journal.Command{}, "")
	s = r.drive(t.Context(), s.ID)
	r.is(s, stint.Completed)
	if s.At.Attempt != 1 {
		t.Errorf("it took %d attempts", s.At.Attempt)
	}
	if n := r.steps(s.ID, stint.StepCompleted, "command_execution"); n != 1 {
		t.Errorf("%d results\n%s", n, r.journal(s.ID))
	}
	has(t, "the prompt", f.turns()[1].Prompt, "You were interrupted.")
}

// A once call that runs into its bound is in doubt, and the CLI is gone.
func TestStepTimeout(t *testing.T) {
	// The bound is the CLI's own start's too: one whose call did not begin in time gets more.
	for limit := 2 * time.Second; ; limit *= 4 {
		f := newFake(t, cli.Codex, lines(cxThread, "!child", cxBegin("1", "pay"), "!hang"))
		f.spec.StepTimeout = limit
		r := newRig(t, f.spec, 3)
		r.cli.Gather(time.Millisecond)
		s := r.run(t.Context(), "x")
		if limit < time.Minute && r.steps(s.ID, stint.StepRequested, "command_execution") == 0 {
			continue
		}
		r.is(s, stint.Waiting)
		has(t, "the question", s.Wait.What, "command_execution", fmt.Sprintf("no result within %v", limit))
		f.gone()
		return
	}
}

func TestValidate(t *testing.T) {
	for name, c := range map[string]struct {
		spec cli.Spec
		says string
	}{
		"no protocol":       {cli.Spec{}, "protocol"},
		"another protocol":  {cli.Spec{Protocol: "cursor"}, `"cursor" is not one`},
		"an empty command":  {cli.Spec{Protocol: cli.Codex, Command: []string{""}}, "command[0]"},
		"NUL in an arg":     {cli.Spec{Protocol: cli.Codex, Command: []string{"a", "\x00"}}, "command[1]"},
		"NUL in the dir":    {cli.Spec{Protocol: cli.Codex, Dir: "\x00"}, "dir"},
		"a bad variable":    {cli.Spec{Protocol: cli.Codex, Env: map[string]string{"A=B": ""}}, "env"},
		"a bad value":       {cli.Spec{Protocol: cli.Codex, Env: map[string]string{"A": "\x00"}}, "env"},
		"stint's variable":  {cli.Spec{Protocol: cli.Codex, Pass: []string{"STINT_LOOP"}}, "set by stint itself"},
		"an effect":         {cli.Spec{Protocol: cli.Codex, Effects: map[string]stint.Effect{"x": "maybe"}}, "effects.x"},
		"a negative output": {cli.Spec{Protocol: cli.Codex, MaxOutput: -1}, "max_output"},
		"a negative bound":  {cli.Spec{Protocol: cli.Codex, StepTimeout: -1}, "step_timeout"},
		"a long grace":      {cli.Spec{Protocol: cli.Codex, Grace: time.Hour}, "grace"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := cli.New(c.spec)
			if !errors.Is(err, stint.Invalid) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("the error is %v", err)
			}
		})
	}
	for _, p := range []cli.Protocol{cli.Codex, cli.Claude, cli.OpenCode, cli.Gemini} {
		a, err := cli.New(cli.Preset(p))
		if err != nil {
			t.Fatal(err)
		}
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	}
}

// The command lines of the four, for a new session and for one that is resumed.
func TestArgv(t *testing.T) {
	var b strings.Builder
	for _, p := range []cli.Protocol{cli.Codex, cli.Claude, cli.OpenCode, cli.Gemini} {
		own := cli.Preset(p)
		own.Command = []string{"/opt/" + own.Command[0], "--model", "m"}
		for _, s := range []cli.Spec{{Protocol: p}, own} {
			for _, id := range []string{"", "ID"} {
				b.WriteString(strings.Join(s.Argv(id), " ") + "\n")
			}
		}
	}
	golden(t, "argv.txt", b.String())
}

// An interrupt ends the CLI and leaves the session waiting for a message. The loop that
// it cut short is brought to its end first, then the message has one of its own.
func TestInterrupt(t *testing.T) {
	f := newFake(t, cli.Codex, lines(cxThread, cxText("I begin."), "!chatter"), lines(cxThread, cxText("done"), cxDone), lines(cxThread, cxText("done"), cxDone))
	f.spec.Interactive = true
	r := newRig(t, f.spec, 1)
	go func() {
		var id stint.ID
		eventually(t, "begun", func() bool {
			all, err := r.store.Sessions(t.Context(), stint.Filter{})
			if err != nil || len(all) != 1 {
				return false
			}
			id = all[0].Session.ID
			return r.steps(id, stint.StepCompleted, "codex") > 0
		})
		r.send(id, stint.Interrupt, journal.Command{}, "")
	}()
	s := r.run(t.Context(), "first")
	r.is(s, stint.Waiting)
	if s.Wait.For != stint.ForMessage {
		t.Errorf("it waits for %s", s.Wait.For)
	}
	r.send(s.ID, stint.Prompt, journal.Command{}, "stop that")
	s = r.drive(t.Context(), s.ID)
	r.is(s, stint.Waiting)
	if len(f.turns()) == 2 {
		s = r.drive(t.Context(), s.ID)
		r.is(s, stint.Waiting)
	}
	turns := f.turns()
	if len(turns) != 3 {
		t.Fatalf("the CLI was started %d times\n%s", len(turns), r.journal(s.ID))
	}
	has(t, "the second prompt", turns[1].Prompt, "You were interrupted.")
	if turns[2].Prompt != "stop that" {
		t.Errorf("the third prompt is %q", turns[2].Prompt)
	}
}

// A provider that says when to come back is asked again then, where the CLI stopped.
func TestRateLimit(t *testing.T) {
	f := newFake(t, cli.Codex,
		lines(cxThread, `{"type":"turn.failed","error":{"message":"rate limit reached, try again in 1s"}}`, "!exit 1"),
		lines(cxThread, cxText("done"), cxDone))
	r := newRig(t, f.spec, 2)
	began := time.Now()
	s := r.run(t.Context(), "x")
	r.is(s, stint.Completed)
	if took := time.Since(began); took < time.Second {
		t.Errorf("it was asked again after %v", took)
	}
	has(t, "the prompt", f.turns()[1].Prompt, "You were interrupted.", "This is what you were asked:", "x")
}

// A member of another type than is known does not lose the line.
func TestOtherTypes(t *testing.T) {
	f := newFake(t, cli.Codex, lines(cxThread, cxBegin("1", "pay"),
		`{"type":"item.completed","item":{"id":"1","type":"command_execution","command":["pay"],"aggregated_output":"ok","exit_code":[0],"status":7}}`,
		cxText("done"), `{"type":"turn.completed","usage":{"input_tokens":"many","output_tokens":3}}`))
	r := newRig(t, f.spec, 1)
	s := r.run(t.Context(), "x")
	r.is(s, stint.Completed)
	has(t, "the journal", r.journal(s.ID), `{"output":"ok"}`)
}

// Words that come in small pieces are one answer, and bounded.
func TestPieces(t *testing.T) {
	var script strings.Builder
	script.WriteString(`{"type":"init","session_id":"g-1"}` + "\n")
	for range 60_000 {
		script.WriteString(`{"type":"message","role":"assistant","content":"twenty-two characters ","delta":true}` + "\n")
	}
	script.WriteString(`{"type":"result","status":"success","stats":{"input_tokens":1,"output_tokens":1}}` + "\n")
	f := newFake(t, cli.Gemini, script.String())
	r := newRig(t, f.spec, 1)
	s := r.run(t.Context(), "x")
	r.is(s, stint.Completed)
	for _, e := range r.entries(s.ID) {
		if e.Kind == stint.SessionEnded {
			var end struct{ Text string }
			if err := json.Unmarshal([]byte(r.body(&e, s.Family)), &end); err != nil || len(end.Text) != 1<<20 {
				t.Errorf("%d bytes are kept, %v", len(end.Text), err)
			}
			return
		}
	}
	t.Error("there is no end")
}
