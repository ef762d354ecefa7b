package protocol

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/child"
	"github.com/stint-dev/stint/internal/jsonx"
)

// Bounds of what an agent says.
const (
	MaxValue = 32 << 20         // bytes of one state, input or result, as the engine has it
	MaxLine  = MaxValue + 1<<20 // bytes of the longest line of an agent, its newline included
	MaxGroup = 1000             // steps in one group
)

// Message is one line of an agent, read by [Parse].
type Message struct {
	Kind   string  // its type; "step" is a "steps" of one that is no group
	Calls  []*Call // step, steps, spawn
	Group  bool    // steps
	ID     int64   // result
	Answer Answer  // result
	Text   string  // log, progress
	Level  string  // log
	Change []byte  // state: the patch, or the whole new value
	Whole  bool    // state: Change is the new value
	By     string  // state
	End    *Ending // end
}

// Call is a step that the agent announced. Its unexported members are the [Book]'s.
type Call struct {
	ID      int64
	Step    stint.Step   // with the effect that the agent claims; empty: none
	Answers chan Answer  // gets the agent's result from the Book; room for one
	Child   *stint.Child // spawn: the session to begin; nil: the step is the agent's

	started bool // told to proceed
	done    bool // answered by either side
}

// Answer is the agent's result of a step.
type Answer struct {
	Result stint.Result
	Err    error
}

// Ending is how the agent ended a loop.
type Ending struct {
	Next stint.Next
	Err  error // the attempt failed and asks to be tried again
}

// fields reads the members of one object. The first fault sticks in err, and from
// then on everything reads as absent.
type fields struct {
	m    map[string]json.RawMessage
	path string // "steps[2]." in front of a member's name
	err  error
}

func (f *fields) faultf(name, format string, args ...any) {
	if f.err == nil {
		f.err = fmt.Errorf("%s%s %s", f.path, name, fmt.Sprintf(format, args...))
	}
}

// value returns a member as it is written; null is a value.
func (f *fields) value(name string) (json.RawMessage, bool) {
	v, ok := f.m[name]
	if len(v) > MaxValue {
		f.faultf(name, "has %d bytes; a value has at most 32 MiB", len(v))
	}
	return v, ok && f.err == nil
}

// member returns a member that is not null.
func (f *fields) member(name string) (json.RawMessage, bool) {
	v, ok := f.value(name)
	return v, ok && string(v) != "null"
}

func (f *fields) text(name string) (string, bool) {
	v, ok := f.member(name)
	if !ok {
		return "", false
	}
	var s string
	if v[0] != '"' || json.Unmarshal(v, &s) != nil {
		f.faultf(name, "must be a string")
		return "", false
	}
	return s, true
}

func (f *fields) flag(name string) bool {
	v, ok := f.member(name)
	if ok && string(v) != "true" && string(v) != "false" {
		f.faultf(name, "must be true or false")
	}
	return string(v) == "true"
}

// whole reads an integer written without fraction or exponent.
func (f *fields) whole(name string, lowest, highest int64) (int64, bool) {
	v, ok := f.member(name)
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseInt(string(v), 10, 64)
	if err != nil || n < lowest || n > highest {
		f.faultf(name, "must be an integer from %d to %d", lowest, highest)
		return 0, false
	}
	return n, true
}

func (f *fields) object(name string) (*fields, bool) {
	v, ok := f.member(name)
	if !ok {
		return nil, false
	}
	in := &fields{path: f.path + name + "."}
	if v[0] != '{' || json.Unmarshal(v, &in.m) != nil {
		f.faultf(name, "must be an object")
		return nil, false
	}
	return in, true
}

// oneOf reads a string out of a few; absent is the first of them.
func oneOf[T ~string](f *fields, name string, allowed ...T) T {
	s, ok := f.text(name)
	if !ok {
		return allowed[0]
	}
	for _, a := range allowed {
		if s == string(a) && s != "" {
			return a
		}
	}
	words := strings.Trim(fmt.Sprintf("%v", allowed), "[ ]")
	f.faultf(name, "is %q; it must be one of: %s", Clip(s, 40), words)
	return allowed[0]
}

const (
	maxID    = 1<<53 - 1                        // what every language's numbers hold
	maxRetry = int64(30 * 24 * time.Hour / 1e6) // milliseconds
)

// Parse reads a line of the agent, which is not blank. It keeps nothing of line. Its
// error says what is wrong with the line, for [Breach].
func Parse(line []byte) (*Message, error) {
	if err := jsonx.Check(line, jsonx.Limits{}); err != nil {
		return nil, notJSON(err)
	}
	f := &fields{}
	if bytes.TrimLeft(line, " \t\r")[0] != '{' || json.Unmarshal(line, &f.m) != nil {
		return nil, errors.New("a line must be one JSON object")
	}
	kind, ok := f.text("type")
	switch {
	case f.err != nil:
		return nil, f.err
	case !ok:
		return nil, errors.New("the line has no type")
	}
	m := &Message{Kind: kind}
	switch kind {
	case "step":
		m.Calls = []*Call{readCall(f)}
	case "steps":
		m.Group = true
		m.Calls = readGroup(f)
	case "spawn":
		m.Calls = []*Call{readSpawn(f)}
	case "result":
		m.readResult(f)
	case "log", "progress":
		m.Level = oneOf(f, "level", "info", "debug", "warn", "error")
		if m.Text, ok = f.text("text"); !ok {
			f.faultf("text", "is missing")
		}
	case "state":
		m.readState(f)
	case "end":
		m.End = readEnd(f)
	default:
		return nil, fmt.Errorf("the type %q is not one that an agent sends; those are step, steps, spawn, result, log, progress, state and end", Clip(kind, 40))
	}
	if f.err != nil {
		return nil, f.err
	}
	return m, nil
}

// notJSON says it for people, who have the line before them.
func notJSON(err error) error {
	var e *jsonx.SyntaxError
	if !errors.As(err, &e) {
		return fmt.Errorf("not a line of JSON: %w", err)
	}
	return fmt.Errorf("not a line of JSON: at column %d, in %s, %s", e.Column, e.Path, e.Msg)
}

func (f *fields) id() int64 {
	id, ok := f.whole("id", 1, maxID)
	if !ok {
		f.faultf("id", "is missing")
	}
	return id
}

func readCall(f *fields) *Call {
	c := &Call{ID: f.id(), Answers: make(chan Answer, 1)}
	name, ok := f.text("name")
	if n := utf8.RuneCountInString(name); !ok || n < 1 || n > 200 {
		f.faultf("name", "must be a string of 1 to 200 characters")
	}
	input, _ := f.value("input")
	c.Step = stint.Step{
		Name:   name,
		Kind:   oneOf(f, "kind", stint.Custom, stint.Tool, stint.Model),
		Effect: oneOf(f, "effect", "", stint.Read, stint.Idempotent, stint.Once),
		Input:  input,
	}
	return c
}

func readGroup(f *fields) []*Call {
	v, _ := f.value("steps")
	var list []json.RawMessage
	if len(v) == 0 || v[0] != '[' || json.Unmarshal(v, &list) != nil || len(list) == 0 || len(list) > MaxGroup {
		f.faultf("steps", "must be an array of 1 to %d steps", MaxGroup)
		return nil
	}
	calls := make([]*Call, len(list))
	for i, raw := range list {
		in := &fields{path: fmt.Sprintf("steps[%d].", i)}
		if raw[0] != '{' || json.Unmarshal(raw, &in.m) != nil {
			f.faultf(fmt.Sprintf("steps[%d]", i), "must be an object")
			return nil
		}
		if calls[i] = readCall(in); in.err != nil {
			f.err = in.err
			return nil
		}
	}
	return calls
}

func (m *Message) readResult(f *fields) {
	m.ID = f.id()
	result, has := f.value("result")
	text, failed := f.text("error")
	definite, final := f.flag("definite"), f.flag("final")
	after, retry := f.whole("retry_after_ms", 0, maxRetry)
	usage := readUsage(f)
	switch {
	case has && failed:
		f.faultf("result", "and error exclude each other")
	case !has && !failed:
		f.faultf("result", "or error is missing")
	case failed && strings.TrimSpace(text) == "":
		f.faultf("error", "must not be empty")
	case !failed:
		m.Answer.Result = stint.Result{Data: result, Usage: usage}
	default:
		err := errors.New(strings.TrimLeft(text, "\r\n")) // its first line is what is kept
		if retry {
			err = stint.Retry(time.Duration(after)*time.Millisecond, err)
		}
		if final {
			err = stint.Fail(err)
		}
		if definite {
			err = stint.Definite(err)
		}
		m.Answer.Err = err
	}
}

func readUsage(f *fields) stint.Usage {
	in, ok := f.object("usage")
	if !ok {
		return stint.Usage{}
	}
	var u stint.Usage
	for name, n := range map[string]*int64{"input_tokens": &u.Input, "output_tokens": &u.Output,
		"cache_read_tokens": &u.CacheRead, "cache_write_tokens": &u.CacheWrite} {
		*n, _ = in.whole(name, 0, maxID)
	}
	if cost, ok := in.text("cost"); ok {
		if err := u.Cost.UnmarshalText([]byte(cost)); err != nil || u.Cost < 0 {
			in.faultf("cost", `must be an amount of dollars in a string, like "0.21"`)
		}
	}
	if in.err != nil && f.err == nil {
		f.err = in.err
	}
	return u
}

func (m *Message) readState(f *fields) {
	m.By, _ = f.text("by")
	patch, patched := f.value("patch")
	value, replaced := f.value("replace")
	switch {
	case patched == replaced:
		f.faultf("patch", "or replace must be there, and not both")
	case replaced:
		m.Change, m.Whole = value, true
	case patch[0] != '{':
		f.faultf("patch", "must be an object; use replace for another value")
	default:
		m.Change = patch
	}
}

func readEnd(f *fields) *Ending {
	outcome, ok := f.text("outcome")
	if !ok {
		f.faultf("outcome", "is missing")
	}
	reason, _ := f.text("reason")
	headline, _ := f.text("headline")
	result, _ := f.value("result")
	after, retry := f.whole("retry_after_ms", 0, maxRetry)
	wait := readWait(f)
	e := &Ending{Next: stint.Next{Headline: child.OneLine(headline)}}
	end := func(s stint.Status) {
		e.Next.End = &stint.End{Outcome: s, Reason: child.OneLine(reason), Result: result}
	}
	switch outcome {
	case "continue":
	case "wait":
		if wait == nil {
			f.faultf("wait", "is missing; it says what the session waits for")
		}
		e.Next.Wait = wait
	case "complete":
		end(stint.Completed)
	case "fail":
		end(stint.Failed)
		if retry {
			if reason == "" {
				reason = "the agent asked for another attempt"
			}
			e.Err = stint.Retry(time.Duration(after)*time.Millisecond, errors.New(child.OneLine(reason)))
		}
	default:
		f.faultf("outcome", "is %q; it must be one of: continue, wait, complete, fail", Clip(outcome, 40))
	}
	return e
}

func readWait(f *fields) *stint.Wait {
	in, ok := f.object("wait")
	if !ok {
		return nil
	}
	w := &stint.Wait{For: oneOf(in, "for", "", stint.ForMessage, stint.ForTime, stint.ForChild)}
	what, _ := in.text("what")
	w.What = child.OneLine(what)
	if until, ok := in.text("until"); ok {
		t, err := time.Parse(time.RFC3339, until)
		if err != nil {
			in.faultf("until", "must be a time after RFC 3339 with its zone, like 2026-01-31T09:00:00Z")
		}
		w.Until = t.UTC()
	}
	switch {
	case w.For == "":
		in.faultf("for", "is missing; it is message, time or child")
	case w.For == stint.ForTime && w.Until.IsZero():
		in.faultf("until", "is missing; waiting for time needs it")
	case w.For == stint.ForMessage:
		w.Wakes = []stint.MessageKind{stint.Prompt}
	case w.For == stint.ForChild:
		w.What, _ = in.text("session") // any child, or this one
	}
	if in.err != nil && f.err == nil {
		f.err = in.err
	}
	return w
}

// Clip cuts a text to so many runes, for a message about it.
func Clip(s string, runes int) string {
	for i := range s {
		if runes--; runes < 0 {
			return s[:i] + "…"
		}
	}
	return s
}
