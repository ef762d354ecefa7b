//go:build linux

package acceptance_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// recorder is a tool that notes the arguments which it gets.
const recorder = `limits: {loops: 100, wall: none}
context: {window: 5000000}
rules: {N01: off, N02: off, N03: off, N04: off}
tools:
  - exec: {name: rec, command: [sh, rec.sh], taints: false, effect: read}
  - exec: {name: say, command: [printf, "%s", "{text}"], args: {type: object, properties: {text: {type: string}}}, taints: false, effect: read}
`

// step is one loop of the session: what its steps said.
type toolStep struct {
	name   string
	failed string // why it was not done; empty: it was
	output string // what it gave, as JSON
}

// toolSteps are the steps of tools in a session's journal, in their order.
func (s *site) toolSteps(session string) (all []toolStep) {
	s.t.Helper()
	at := map[string]int{}
	for l := range strings.Lines(s.must("logs", session, "--content", "-o", "jsonl")) {
		var e struct {
			Kind string
			Pos  struct{ Loop, Attempt, Step, Sub int }
			Data struct {
				Name, Kind string
				Error      string
			}
			Body *struct{ JSON json.RawMessage }
		}
		if err := json.Unmarshal([]byte(l), &e); err != nil {
			s.t.Fatalf("%v: %s", err, clip(l))
		}
		if e.Pos.Step < 2 || !strings.HasPrefix(e.Kind, "step.") {
			continue
		}
		e.Pos.Attempt = 0
		place := fmt.Sprint(e.Pos)
		i, ok := at[place]
		if !ok {
			i = len(all)
			at[place], all = i, append(all, toolStep{name: e.Data.Name})
		}
		switch {
		case e.Kind == "step.failed":
			all[i].failed = e.Data.Error
		case e.Kind == "step.completed" && e.Body != nil:
			all[i].output = string(e.Body.JSON)
		}
	}
	return all
}

// badCall is a call of a model.
type badCall struct {
	call string // its members
	want string // why it is not done; empty: it is
	args string // what the tool gets, where it is not what was written
}

func badCalls() (rows []badCall) {
	input := func(s string) string { return `"name":"rec","input":` + s }
	text := func(s string) string { return `"name":"rec","args":` + jsonText(s) }
	rows = []badCall{
		{call: input(`{"a":1,"a":2}`), want: "twice"},
		{call: input(`{"a":{"b":[{"c":1,"\u0063":2}]}}`), want: "twice"},
		{call: input(`{"tool":"rm","TOOL":"ls"}`)},
		{call: input(`{"n":9007199254740993,"m":-9223372036854775809,"f":1.10}`)},
		{call: input(`{"n":1e400}`), want: "beyond 64-bit"},
		{call: input(`{"n":-1E+999}`), want: "beyond 64-bit"},
		{call: text(`{"a":` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + `}`), want: "deep"},
		{call: text(`{"a":` + strings.Repeat(`{"a":`, 20000)), want: "rec was not called"},
		{call: input("{\"a\":\"\xff\xfe\"}"), want: "UTF-8"},
		{call: input(`{"a":"\ud800"}`), want: "surrogate"},
		{call: input(`{"a":"\udc00\ud800"}`), want: "surrogate"},
		{call: input(`{"\ud83d":1}`), want: "surrogate"},
		{call: input(`{"a":"\ud83d\ude00\u0000"}`)},
		{call: input(`{"a":"<b>&amp;\u2028</b>"}`)},
		{call: input(`{"a":"\u202e\u001b]0;x\u0007"}`)},
		{call: text("\ufeff{}"), want: "rec was not called"},
		{call: text(`{"a":1} x`), want: "rec was not called"},
		{call: text(`{"a":1}{}`), want: "rec was not called"},
		{call: text(`{"a":NaN}`), want: "rec was not called"},
		{call: text(`{"a":Infinity}`), want: "rec was not called"},
		{call: text(`{'a':1}`), want: "rec was not called"},
		{call: text(`{"a":1,}`), want: "rec was not called"},
		{call: text(`{"a":01}`), want: "rec was not called"},
		{call: text("{\"a\":\"\x01\"}"), want: "rec was not called"},
		{call: text(`{"a":`), want: "rec was not called"},
		{call: text("\x00"), want: "rec was not called"},
		{call: input(`[1]`), want: "object"},
		{call: input(`"x"`), want: "object"},
		{call: input(`null`), want: "object"},
		{call: input(`7`), want: "object"},
		{call: text(``), args: `{}`},
		{call: text(" \n\t"), args: `{}`},
		{call: input(`{"a":"` + strings.Repeat("x", 1<<20) + `"}`)},
		{call: `"name":"say","input":{"text":"a\u0000b"}`, want: "NUL"},
		{call: `"name":"say","input":{"text":"-rf"}`, want: "option"},
		{call: `"name":"say","input":{"text":7}`, want: "say was not called"},
	}
	for _, name := range strangeNames() {
		rows = append(rows, badCall{call: `"name":` + jsonText(name) + `,"input":{}`, want: "there is no tool"})
	}
	return rows
}

// jsonText is a text as JSON.
func jsonText(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		return err.Error() // not reached: a text always has a form
	}
	return string(b)
}

// Arguments that two readers would read differently reach no tool, the model is told why,
// and the session goes on; the others reach it byte for byte.
func TestBadArguments(t *testing.T) {
	t.Parallel()
	rows := badCalls()
	var steps []string
	for _, r := range rows {
		steps = append(steps, `{"tools":[{`+r.call+`}]}`)
	}
	s := played(t, recorder, strings.Join(steps, ","))
	s.file("rec.sh", "cat >> recorded; echo >> recorded; echo done\n")
	r := s.run("run", "a", "-p", "x")
	if r.code != 0 || driving(r.out+r.talk) != "" {
		t.Fatalf("%s: %s", driving(r.out+r.talk), r)
	}
	got := s.toolSteps("@last")
	if len(got) != len(rows) {
		t.Fatalf("%d steps of tools for %d calls", len(got), len(rows))
	}
	recorded, err := os.ReadFile(s.path("recorded"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(string(recorded), "\n"), "\n")
	for i, r := range rows {
		what := fmt.Sprintf("call %d, {%.100s}", i, r.call)
		switch {
		case r.want != "" && !strings.Contains(got[i].failed+got[i].output, r.want):
			t.Errorf("%s: it is %.300q, want %q", what, got[i].failed+got[i].output, r.want)
		case r.want == "" && got[i].failed != "":
			t.Errorf("%s: it failed: %.300s", what, got[i].failed)
		case r.want == "":
			args := r.args
			if args == "" {
				_, args, _ = strings.Cut(r.call, `"input":`)
			}
			if len(lines) == 0 || lines[0] != args {
				t.Fatalf("%s: the tool got %.300q", what, lines)
			}
			lines = lines[1:]
		}
	}
	if len(lines) != 0 {
		t.Errorf("a tool was called %d times more than it should: %.300q", len(lines), lines)
	}
	for _, args := range [][]string{{"logs", "@last", "-x", "--content"}, {"show", "@last", "--all"}, {"export", "@last"}} {
		if bad := driving(s.must(args...)); bad != "" {
			t.Errorf("stint %s prints %s", args, bad)
		}
	}
	s.sound(newAcks())
}

// strangeNames are names that become no path, no option and no part of a page.
func strangeNames() []string {
	return []string{"../../etc/cron.d/x", "", strings.Repeat("n", 300), "CON", "\u202egnp.exe", "e\u0301", "\u00e9", "%00", "a\nb", "-rf", "'; DROP TABLE journal; --", "<script>alert(1)</script>", "$(reboot)", "REC", "rec ", "\x00", "\x1b]52;c;eA==\a"}
}

// What a model answers, however strange, ends in a session that says what is so.
func TestBadAnswers(t *testing.T) {
	t.Parallel()
	many := make([]string, 50)
	for i := range many {
		many[i] = fmt.Sprintf(`{"name":"rec","input":{"i":%d}}`, i)
	}
	same := `{"name":"rec","id":"same","input":{}}`
	for name, c := range map[string]struct {
		steps    string
		settings string
		code     int
		status   string
		why      string // in the reason, what it waits for, or the result
		calls    int    // that reached the tool
	}{
		"fifty calls":       {steps: `{"tools":[` + strings.Join(many, ",") + `]}`, status: "completed", why: "done", calls: 50},
		"ids that are one":  {steps: `{"tools":[` + same + "," + same + "," + same + `]},{"tools":[` + same + `]}`, status: "completed", why: "done", calls: 4},
		"nothing but space": {steps: `{"text":"  "}`, status: "completed"},
		"cut in a call":     {steps: `{"stop":"length","tools":[{"name":"rec","args":"{\"a\":"}]},{"text":"sorry"}`, status: "completed", why: "sorry"},
		"cut, and whole":    {steps: `{"stop":"length","tools":[{"name":"rec","input":{}}]},{"text":"sorry"}`, status: "completed", why: "sorry"},
		"cut for ever":      {steps: `{"stop":"length","text":"a"},{"stop":"length","text":"b"},{"stop":"length","text":"c"}`, code: 7, status: "failed", why: "cut 3 answers"},
		"a refusal":         {steps: `{"stop":"refusal","text":"no\u001b[8m"}`, code: 7, status: "failed", why: "the model refused"},
		"no such model":     {steps: `{"error":{"kind":"not_found","message":"gone"}}`, code: 7, status: "failed", why: "gone"},
		"a storm":           {steps: `{"error":{"kind":"overloaded","message":"busy","times":1}},{"text":"well"}`, status: "completed", why: "ok"},
		"cut in the middle": {steps: `{"text":"half","error":{"kind":"cut","message":"reset","times":1}}`, status: "completed", why: "half"},
		"too long":          {steps: `{"error":{"kind":"too_long","message":"too many tokens"}}`, code: 7, status: "failed", why: "too"},
		"the same for ever": {steps: strings.Repeat(calls("rec", `{"a":1}`)+",", 60) + `{"text":"x"}`, settings: "rules: {N02: off}\n", code: 6, status: "waiting", why: "rec"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			settings := recorder
			if c.settings != "" {
				settings = c.settings + strings.Replace(recorder, "rules: {N01: off, N02: off, N03: off, N04: off}\n", "", 1)
			}
			s := played(t, settings, c.steps)
			s.file("rec.sh", "echo call >> effects\n")
			r := s.run("run", "a", "-p", "x")
			if r.code != c.code || driving(r.out+r.talk) != "" || r.took > 20*time.Second {
				t.Errorf("want exit status %d: %s", c.code, r)
			}
			v := s.show("@last")
			why := v.Reason
			if v.Waiting != nil {
				why += " " + v.Waiting.What
			}
			if v.Result != nil {
				why += " " + v.Result.Text
			}
			if v.Status != c.status || !strings.Contains(why, c.why) || len(why) > 4000 {
				t.Errorf("it is %s: %q, want %s: %q", v.Status, why, c.status, c.why)
			}
			if n := s.noted("effects"); c.calls > 0 && n != c.calls || c.status != "waiting" && n != c.calls {
				t.Errorf("the tool was called %d times, want %d", n, c.calls)
			}
			s.sound(newAcks())
		})
	}
}

// A provider that wants a day of patience gets it, at most an hour at a time, and a person
// sees why nothing happens.
func TestProviderThatWantsADay(t *testing.T) {
	t.Parallel()
	s := played(t, recorder, `{"error":{"kind":"rate","message":"slow \u202edown","after":"24h"}}`)
	p := s.start(s.command(bin.stint, "run", "a", "-p", "x"))
	eventually(t, "the session waits", patience, func() bool { return strings.Contains(p.out.String(), "waits for retry") })
	v := s.show("@last")
	if v.Status != "waiting" || v.Waiting.For != "retry" || !strings.Contains(v.Waiting.What, "too many requests") || driving(p.out.String()) != "" {
		t.Errorf("it is %+v: %s", v, p.out)
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	if r := p.wait(patience); r.code != 130 {
		t.Errorf("%s", r)
	}
	s.sound(newAcks())
}

// An answer of 50 MB, in a text and in a call, is held or refused; nothing is left undone.
func TestLargeAnswers(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("x", 50<<20)
	for name, steps := range map[string]string{
		"text": `{"text":"` + large + `"}`,
		"call": `{"tools":[{"name":"rec","input":{"a":"` + large + `"}}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			s := played(t, recorder, steps)
			s.file("rec.sh", "echo call >> effects\n")
			r := s.run("run", "-q", "a", "-p", "x")
			if len(r.out)+len(r.talk) > 8000 {
				t.Errorf("%d bytes are printed: %s", len(r.out)+len(r.talk), r)
			}
			v := s.show("@last")
			t.Logf("%s: %s %.300s %s", name, v.Status, v.Reason, r)
			if v.Status != "completed" && v.Status != "failed" || s.noted("effects") != 0 {
				t.Errorf("it is %s: %.300s; %d calls", v.Status, v.Reason, s.noted("effects"))
			}
			s.sound(newAcks())
		})
	}
}

// What a program says as a tool is cleaned, bounded and recorded, and the program does not
// outlive its call.
func TestBadOutputOfTools(t *testing.T) {
	t.Parallel()
	mib := size(64, 1024)
	for name, c := range map[string]struct {
		script string
		want   string // in what the step gave
		effect string // of the tool; empty: read
		doubt  bool
		within time.Duration
	}{
		"no newline":       {script: fmt.Sprintf("head -c %d /dev/zero | tr '\\0' x", mib<<20), want: "xxx", within: time.Minute},
		"lines":            {script: fmt.Sprintf("yes 0123456789 | head -c %d", mib<<20), want: "0123456789", within: time.Minute},
		"binary":           {script: `printf 'a\000b\001\377\376c'`, want: "a\ufffdb"},
		"colours":          {script: `printf '\033]0;pwned\007\033[2J\033]52;c;eA==\007\033]8;;http://x\033\\x'`, want: "pwned"},
		"directions":       {script: `printf '\342\200\256abc'`, want: "abc"},
		"half a surrogate": {script: `printf '"\\ud800"'`, want: `\\ud800`},
		"escapes":          {script: `printf '\\u0000 \\x00 %%s %%n'`, want: `\\u0000`},
		"not JSON":         {script: `echo '{"a":NaN}'`, want: "NaN"},
		"twice":            {script: `echo '{"text":"a","text":"b","stint":"unknown","result":{"a":1},"wait":{"for":"time"}}'`, want: "stint"},
		"a large number":   {script: `echo '{"n":9007199254740993,"m":1e400}'`, want: "9007199254740993"},
		"silent":           {script: `exit 0`},
		"only errors":      {script: `echo oops >&2`},
		"fails":            {script: `echo so; echo oops >&2; exit 3`, want: "3"},
		"a signal":         {script: `kill -SEGV $$`, want: "SEGV"},
		"a grandchild":     {script: `echo so; sleep 9MARK & exit 0`, want: "so", within: 20 * time.Second},
		"sent away":        {script: `echo so; setsid sh -c 'trap "" TERM; sleep 9MARK' & exit 0`, want: "so", within: 20 * time.Second},
		"closes and stays": {script: `exec >&- 2>&-; exec sleep 9MARK`, want: "no result within 1s", within: 20 * time.Second},
		"deaf":             {script: `trap '' TERM INT HUP; echo so; while :; do sleep 9MARK; done`, want: "no result within 1s", within: 20 * time.Second},
		"deaf, once":       {script: `trap '' TERM INT HUP; echo so; while :; do sleep 9MARK; done`, effect: "once", doubt: true, within: 20 * time.Second},
		"reads nothing":    {script: `exec 0<&-; echo so`, want: "so"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mark := mark(t)
			effect := c.effect
			if effect == "" {
				effect = "read"
			}
			s := played(t, "retry: {attempts: 1}\ntools:\n  - exec: {name: bad, command: [sh, bad.sh], effect: "+effect+", timeout: 1s, grace: 1s}\n", calls("bad", `{"a":"b"}`))
			if c.within > 30*time.Second {
				s.file("stint.yaml", strings.Replace(s.yaml(), "timeout: 1s", "timeout: 50s", 1))
			}
			s.file("bad.sh", strings.ReplaceAll(c.script, "MARK", mark)+"\n")
			r := s.run("run", "a", "-p", "x")
			if driving(r.out+r.talk) != "" || r.took > max(c.within, 10*time.Second) {
				t.Errorf("%s: %s", driving(r.out+r.talk), r)
			}
			v := s.show("@last")
			if c.doubt {
				if r.code != 6 || v.Waiting == nil || v.Waiting.For != "doubt" {
					t.Errorf("it is %+v: %s", v, r)
				}
				gone(t, mark)
				return
			}
			got := s.toolSteps("@last")
			if len(got) == 0 || !strings.Contains(got[len(got)-1].failed+got[len(got)-1].output, c.want) {
				t.Errorf("it gave %.500q, want %q: %s", got, c.want, r)
			}
			if info, err := os.Stat(s.store()); err == nil && info.Size() > 32<<20 {
				t.Errorf("the store has %d bytes", info.Size())
			}
			gone(t, mark)
			s.sound(newAcks())
		})
	}
}

// yaml is the site's stint.yaml.
func (s *site) yaml() string {
	b, err := os.ReadFile(s.path("stint.yaml"))
	if err != nil {
		s.t.Fatal(err)
	}
	return string(b)
}
