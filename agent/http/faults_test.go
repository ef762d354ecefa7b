package http_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stint-dev/stint"
	agenthttp "github.com/stint-dev/stint/agent/http"
)

const (
	stepOne   = `{"type":"step","id":1,"name":"look","effect":"read"}` + "\n"
	resultOne = `{"type":"result","id":1,"result":1}` + "\n"
	ended     = `{"type":"end","outcome":"complete"}` + "\n"
)

// say serves fixed text: what comes before a proceed up to the step, all of it after.
func say(t *testing.T, text string) *server {
	t.Helper()
	return raw(t, func(w http.ResponseWriter, _ *http.Request, body []byte) {
		w.Header().Set("Content-Type", "application/x-ndjson")
		if strings.HasPrefix(text, stepOne) && !bytes.Contains(body, []byte(`{"type":"proceed"`)) {
			_, _ = io.WriteString(w, stepOne)
			return
		}
		_, _ = io.WriteString(w, text)
	})
}

// breaches are what an agent must not say, and what the error says of it: the list of the
// exec protocol.
func breaches() map[string][2]string {
	return map[string][2]string{
		"garbage first":             {"<html>Hello</html>\n", `not a line of JSON`},
		"garbage later":             {`{"type":"log","text":"x"}` + "\nHello world\n", `the line: "Hello world"`},
		"control characters":        {"\x1b]52;c;x\a\n", `"\x1b]52;c;x\a"`},
		"not UTF-8":                 {"{\"type\":\"log\",\"text\":\"\xff\"}\n", `invalid UTF-8`},
		"byte order mark":           {"\xef\xbb\xbf" + `{"type":"log","text":"x"}` + "\n", `byte order mark`},
		"half a surrogate pair":     {`{"type":"log","text":"\ud800"}`, `surrogate`},
		"an array":                  {"[]\n", `must be one JSON object`},
		"no type":                   {`{"id":1}`, `has no type`},
		"type in another case":      {`{"Type":"log","text":"x"}`, `has no type`},
		"type is a number":          {`{"type":1}`, `type must be a string`},
		"unknown type":              {`{"type":"loop"}`, `the type "loop" is not one that an agent sends`},
		"duplicate keys":            {`{"type":"log","text":"a","text":"b"}`, `"text" is in this object twice`},
		"duplicate keys deep":       {`{"type":"state","patch":{"a":{"b":1,"b":2}}}`, `twice`},
		"two values":                {`{"type":"log","text":"a"} {}`, `something follows`},
		"log without text":          {`{"type":"log"}`, `text is missing`},
		"log level":                 {`{"type":"log","level":"loud","text":"x"}`, `level is "loud"; it must be one of: info debug warn error`},
		"id missing":                {`{"type":"step","name":"x"}`, `id is missing`},
		"id zero":                   {`{"type":"step","id":0,"name":"x"}`, `id must be an integer from 1`},
		"id with fraction":          {`{"type":"step","id":1.0,"name":"x"}`, `id must be an integer`},
		"id beyond 2^53":            {`{"type":"step","id":9007199254740992,"name":"x"}`, `id must be an integer`},
		"id as text":                {`{"type":"step","id":"1","name":"x"}`, `id must be an integer`},
		"name missing":              {`{"type":"step","id":1}`, `name must be a string of 1 to 200`},
		"name empty":                {`{"type":"step","id":1,"name":""}`, `name must be a string of 1 to 200`},
		"kind unknown":              {`{"type":"step","id":1,"name":"x","kind":"toll"}`, `kind is "toll"; it must be one of: step tool model`},
		"effect unknown":            {`{"type":"step","id":1,"name":"x","effect":"twice"}`, `effect is "twice"; it must be one of: read idempotent once`},
		"no steps":                  {`{"type":"steps","steps":[]}`, `steps must be an array of 1 to 1000`},
		"a step that is none":       {`{"type":"steps","steps":[{"id":1,"name":"a"},7]}`, `steps[1] must be an object`},
		"a wrong member of a group": {`{"type":"steps","steps":[{"id":1,"name":"a"},{"id":2,"name":3}]}`, `steps[1].name must be a string`},
		"id twice":                  {stepOne + resultOne + stepOne, `the id 1 is used a second time`},
		"id twice in a group":       {`{"type":"steps","steps":[{"id":1,"name":"a"},{"id":1,"name":"b"}]}`, `the id 1 is used a second time`},
		"unknown id":                {`{"type":"result","id":9,"result":1}`, `a result for an unknown id: no step 9`},
		"result too early":          {`{"type":"step","id":2,"name":"x"}` + "\n" + `{"type":"result","id":2,"result":1}`, `step 2 was not told to proceed yet`},
		"result twice":              {stepOne + resultOne + resultOne, `step 1 has its answer already`},
		"result and error":          {stepOne + `{"type":"result","id":1,"result":1,"error":"x"}`, `exclude each other`},
		"neither":                   {stepOne + `{"type":"result","id":1}`, `or error is missing`},
		"empty error":               {stepOne + `{"type":"result","id":1,"error":""}`, `error must not be empty`},
		"blank error":               {stepOne + `{"type":"result","id":1,"error":"  "}`, `error must not be empty`},
		"definite is a text":        {stepOne + `{"type":"result","id":1,"error":"x","definite":"yes"}`, `definite must be true or false`},
		"retry in the past":         {stepOne + `{"type":"result","id":1,"error":"x","retry_after_ms":-1}`, `retry_after_ms must be an integer from 0`},
		"negative tokens":           {stepOne + `{"type":"result","id":1,"result":1,"usage":{"input_tokens":-1}}`, `usage.input_tokens must be an integer from 0`},
		"cost as a number":          {stepOne + `{"type":"result","id":1,"result":1,"usage":{"cost":0.21}}`, `usage.cost must be a string`},
		"cost that is none":         {stepOne + `{"type":"result","id":1,"result":1,"usage":{"cost":"-1"}}`, `usage.cost must be an amount`},
		"a step in a step":          {stepOne + `{"type":"step","id":2,"name":"x"}`, `a step was begun while another is open`},
		"a step behind a step":      {`{"type":"step","id":1,"name":"x"}` + "\n" + `{"type":"step","id":2,"name":"x"}`, `a step was begun while another is open`},
		"state before its answer":   {`{"type":"step","id":2,"name":"look","effect":"read"}` + "\n" + `{"type":"state","patch":{"a":1}}`, `the state was changed while a step is open`},
		"patch in a step":           {stepOne + `{"type":"state","patch":{"a":1}}` + "\n" + resultOne, `the state was changed while a step is open`},
		"replace in a step":         {stepOne + `{"type":"state","replace":1,"by":"b"}` + "\n" + resultOne, `the state was changed while a step is open`},
		"end in a step":             {stepOne + ended, `ended while a step is open`},
		"end behind a step":         {`{"type":"step","id":2,"name":"x"}` + "\n" + ended, `ended while a step is open`},
		"patch that is no object":   {`{"type":"state","patch":[1]}`, `patch must be an object`},
		"patch and replace":         {`{"type":"state","patch":{},"replace":1}`, `patch or replace must be there, and not both`},
		"replace after another":     {`{"type":"state","patch":{"a":1},"by":"x"}` + "\n" + `{"type":"state","replace":{}}`, `writer "x" and the agent itself both write /a`},
		"state after end":           {ended + `{"type":"state","patch":{}}`, `state came after the end`},
		"step after end":            {ended + `{"type":"step","id":1,"name":"x"}`, `step came after the end`},
		"end twice":                 {ended + ended, `end came after the end`},
		"garbage after end":         {ended + "Hello", `not a line of JSON`},
		"outcome missing":           {`{"type":"end"}`, `outcome is missing`},
		"outcome unknown":           {`{"type":"end","outcome":"done"}`, `outcome is "done"; it must be one of: continue, wait, complete, fail`},
		"wait without wait":         {`{"type":"end","outcome":"wait"}`, `wait is missing`},
		"wait for nothing":          {`{"type":"end","outcome":"wait","wait":{}}`, `wait.for is missing`},
		"wait for godot":            {`{"type":"end","outcome":"wait","wait":{"for":"godot"}}`, `wait.for is "godot"`},
		"time without until":        {`{"type":"end","outcome":"wait","wait":{"for":"time"}}`, `wait.until is missing`},
		"until without zone":        {`{"type":"end","outcome":"wait","wait":{"for":"time","until":"2026-03-02 10:00"}}`, `wait.until must be a time`},
		"ends in a line":            {`{"type":"end","outcome":"comp`, `it ended in the middle of a line`},
		"nothing":                   {"", `without an end message`},
		"no end":                    {`{"type":"log","text":"x"}`, `without an end message`},
		"no result":                 {stepOne, `while look was under way: the agent ended its response without the result`},
		"no end after a step":       {stepOne + resultOne, `without an end message`},
	}
}

// TestBreaches shows that each breach of the protocol fails the attempt, by an error that
// names it and says where the rules are.
func TestBreaches(t *testing.T) {
	t.Parallel()
	for name, c := range breaches() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			next, err := ask(t, newAgent(t, say(t, c[0]), nil), newSingle())
			var e *stint.Error
			if !errors.As(err, &e) || next.End != nil {
				t.Fatalf("the loop gave %+v, %v", next, err)
			}
			contains(t, "the error", err.Error(), c[1])
			contains(t, "the hint", e.Hint, "docs/")
			if _, _, final := steering(err); final || e.Op != "" || len(err.Error()) > 1500 {
				t.Errorf("the error has the operation %q, %d bytes, and ends the session: %v", e.Op, len(err.Error()), final)
			}
		})
	}
}

// TestAccepted has what looks like a breach and is none.
func TestAccepted(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"empty lines":            "\n  \r\n" + ended,
		"CRLF":                   strings.TrimSpace(ended) + "\r\n",
		"last line unterminated": strings.TrimSpace(ended),
		"log after end":          ended + `{"type":"log","text":"bye"}`,
		"null is absent":         `{"type":"end","outcome":"complete","reason":null,"wait":null,"retry_after_ms":null}`,
		"unknown members":        `{"type":"end","outcome":"complete","more":{"a":[1]}}`,
		"null is a result":       stepOne + `{"type":"result","id":1,"result":null,"error":null}` + "\n" + ended,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			next, err := ask(t, newAgent(t, say(t, text), nil), newSingle())
			if err != nil || next.End == nil || next.End.Outcome != stint.Completed {
				t.Fatalf("the loop gave %+v, %v", next, err)
			}
		})
	}
}

// TestNotTheSameTwice has agents that begin a loop another way when they are asked again.
func TestNotTheSameTwice(t *testing.T) {
	t.Parallel()
	for name, c := range map[string][2]string{
		"another name":  {`{"type":"step","id":1,"name":"other","effect":"read"}`, "step 1, other, stands where an earlier response had step 1, look"},
		"another id":    {`{"type":"step","id":2,"name":"look","effect":"read"}`, "step 2, look, stands where"},
		"another input": {`{"type":"step","id":1,"name":"look","effect":"read","input":1}`, "another kind, effect or input"},
		"another kind":  {`{"type":"step","id":1,"name":"look","effect":"read","kind":"tool"}`, "another kind, effect or input"},
		"a group":       {`{"type":"steps","steps":[{"id":1,"name":"look","effect":"read"}]}`, "is another one than"},
		"an end":        {strings.TrimSpace(ended), "the loop was ended without step 1, look"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := raw(t, func(w http.ResponseWriter, _ *http.Request, body []byte) {
				w.Header().Set("Content-Type", "application/x-ndjson")
				if bytes.Contains(body, []byte("proceed")) {
					_, _ = io.WriteString(w, c[0]+"\n")
					return
				}
				_, _ = io.WriteString(w, stepOne)
			})
			l := newSingle()
			_, err := ask(t, newAgent(t, s, nil), l)
			if !errors.Is(err, stint.Conflict) || notBegun(err) {
				t.Fatalf("the loop gave %v", err)
			}
			contains(t, "the error", err.Error(), "the agent did not begin the loop as before", c[1])
		})
	}
}

// TestStatus has every kind of refusal: of the first request, where it steers the attempt,
// and of a proceed, where it says besides whether the step began.
// TestRetryAfterRefusal does a once step again, under its key, that the server put off.
// TestUnreachable has an address at which nobody listens: a once step is not in doubt.
// TestSlow has agents that say nothing, too late, or without end.
func TestSlow(t *testing.T) {
	t.Parallel()
	hold := func(k *talk) { <-k.r.Context().Done() }
	inStep := func(do func(k *talk)) func(k *talk, told *atomic.Bool) {
		return func(k *talk, told *atomic.Bool) {
			k.step("x", "once", func(string) string { told.Store(true); do(k); return "" })
		}
	}
	outside := func(do func(k *talk)) func(k *talk, told *atomic.Bool) {
		return func(k *talk, _ *atomic.Bool) { do(k) }
	}
	const long, short = patience, 50 * time.Millisecond
	for name, c := range map[string]struct {
		agent         func(k *talk, told *atomic.Bool)
		idle, timeout time.Duration
		want          string
	}{
		"no head":             {outside(hold), short, long, "the agent sent nothing for 50ms"},
		"silent":              {outside(func(k *talk) { k.say(`{"type":"log","text":"x"}`); hold(k) }), short, long, "the agent sent nothing for 50ms"},
		"waits for an answer": {outside(func(k *talk) { k.say(`{"type":"step","id":1,"name":"x"}`); hold(k) }), short, long, "the agent sent nothing for 50ms"},
		"without end":         {outside(trickle), long, short, "the response of the agent did not end within 50ms"},
		"silent in a step":    {inStep(hold), 500 * time.Millisecond, long, "while x was under way: the agent sent nothing for 500ms"},
		"a step without end":  {inStep(trickle), long, 500 * time.Millisecond, "while x was under way: no result in its time"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for idle, timeout := c.idle, c.timeout; ; idle, timeout = 4*idle, 4*timeout {
				var told atomic.Bool
				s := serve(t, func(k *talk) { c.agent(k, &told) })
				a := newAgent(t, s, func(s *agenthttp.Spec) { s.Idle, s.Timeout = idle, timeout })
				l := newSingle()
				_, err := ask(t, a, l)
				if err == nil {
					t.Fatal("the loop ended well")
				}
				if strings.Contains(c.want, "under way") && !told.Load() && min(idle, timeout) < patience/4 {
					continue // its time was up before it had begun the step: it gets more
				}
				contains(t, "the error", err.Error(), strings.ReplaceAll(c.want, min(c.idle, c.timeout).String(), min(idle, timeout).String()))
				if len(l.errs) == 1 && notBegun(l.errs[0]) {
					t.Error("a step that was told to proceed is said not to have begun")
				}
				return
			}
		})
	}
}

// trickle sends an empty line every 10 ms until it is cut off.
func trickle(k *talk) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			k.say("")
		case <-k.r.Context().Done():
			return
		}
	}
}

// inGoodTime tries something whose parts have to keep a pace, first at the pace at which
// it costs least, and then slower and slower: how fast it can be depends on what else the
// machine does.
func inGoodTime(t *testing.T, try func(unit time.Duration) (stint.Next, error)) {
	t.Helper()
	for unit := 50 * time.Millisecond; ; unit *= 4 {
		next, err := try(unit)
		if err == nil && next.End != nil {
			return
		}
		if unit > 2*time.Second {
			t.Fatalf("the loop gave %+v, %v", next, err)
		}
	}
}

// TestSignsOfLife keeps a response open past Idle by empty lines.
func TestSignsOfLife(t *testing.T) {
	t.Parallel()
	inGoodTime(t, func(unit time.Duration) (stint.Next, error) {
		s := serve(t, func(k *talk) {
			tick := time.NewTicker(unit)
			defer tick.Stop()
			for range 10 {
				<-tick.C
				k.say("")
			}
			k.say(strings.TrimSpace(ended))
		})
		return ask(t, newAgent(t, s, func(s *agenthttp.Spec) { s.Idle = 6 * unit }), newSingle())
	})
}

// TestEndStays cuts off a response that goes on after its end message.
func TestEndStays(t *testing.T) {
	t.Parallel()
	var l *single
	inGoodTime(t, func(unit time.Duration) (stint.Next, error) {
		l = newSingle()
		s := serve(t, func(k *talk) { k.say(strings.TrimSpace(ended)); <-k.r.Context().Done() })
		return ask(t, newAgent(t, s, func(s *agenthttp.Spec) { s.Idle = 2 * unit }), l)
	})
	contains(t, "the log", l.outputs.String(), "[stint] after the end of the loop the response did not end well")
}

// TestTooLarge has a line, a response and a request beyond their bounds.
func TestTooLarge(t *testing.T) {
	t.Parallel()
	long := `{"type":"log","text":"` + strings.Repeat("x", 5000) + `"}` + "\n"
	for name, c := range map[string]struct{ text, want string }{
		"a line":                  {long, "a line is longer than 4096 bytes"},
		"a line without its end":  {strings.Repeat("x", 1<<20), "a line is longer than 4096 bytes"},
		"a response":              {strings.Repeat(`{"type":"log","text":"x"}`+"\n", 4000), "a response of more than 65536 bytes"},
		"a response of nothing":   {strings.Repeat("\n", 70000), "a response of more than 65536 bytes"},
		"a response after an end": {ended + strings.Repeat("\n", 70000), "a response of more than 65536 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newAgent(t, say(t, c.text), func(s *agenthttp.Spec) { s.MaxLine, s.MaxBody = 4096, 64<<10 })
			_, err := ask(t, a, newSingle())
			if !errors.Is(err, stint.Invalid) {
				t.Fatalf("the loop gave %v", err)
			}
			contains(t, "the error", err.Error(), c.want)
		})
	}
	t.Run("a request", func(t *testing.T) {
		t.Parallel()
		s := serve(t, func(k *talk) {
			for range 4 {
				k.step("dump", "read", func(string) string { return `"result":"` + strings.Repeat("x", 30<<10) + `"` })
			}
		})
		_, err := ask(t, newAgent(t, s, func(s *agenthttp.Spec) { s.MaxBody = 64 << 10 }), newSingle())
		if _, _, final := steering(err); !errors.Is(err, stint.Limit) || !final {
			t.Fatalf("the loop gave %v", err)
		}
	})
	t.Run("logs", func(t *testing.T) {
		t.Parallel()
		l := newSingle()
		a := newAgent(t, say(t, strings.Repeat(long, 3)+ended), func(s *agenthttp.Spec) { s.MaxOutput = 6000 })
		if _, err := ask(t, a, l); err != nil {
			t.Fatal(err)
		}
		if n := l.outputs.Len(); n > 6200 {
			t.Errorf("%d bytes are logged", n)
		}
		contains(t, "the log", l.outputs.String(), "the loop's limit is 6000 bytes")
	})
}

// TestRedirect follows only to the same origin, and only where the request stays what it is.
// TestHead has responses with a head that cannot be an agent's.
// TestCertificate shows that one which nobody vouches for is refused, before anything is
// sent, and that Roots vouches.
// TestPrivateAddress is not asked: nothing is sent to a network that the configuration
// does not allow.
// TestSecretsStayHidden has a server that gives away what it got, wherever it can.
// TestCanceledBefore is a loop whose context has ended already.
func TestCanceledBefore(t *testing.T) {
	t.Parallel()
	s := say(t, ended)
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("fenced")
	cancel(why)
	if _, err := newAgent(t, s, nil).Loop(ctx, newSingle()); !errors.Is(err, why) || len(s.all()) != 0 {
		t.Fatalf("the loop gave %v", err)
	}
}

// TestOnceIsSentOnce has a connection that is used again and dies: Go's transport would
// send a request with an Idempotency-Key a second time by itself.
