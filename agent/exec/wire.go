package exec

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/jsonx"
)

// message is one line of an agent.
type message struct {
	kind   string  // its type; "step" is a "steps" of one that is no group
	calls  []*call // step, steps
	group  bool    // steps
	id     int64   // result
	answer answer  // result
	text   string  // log, progress
	level  string  // log
	change []byte  // state: the patch, or the whole new value
	whole  bool    // state: change is the new value
	by     string  // state
	end    *ending // end
}

// call is a step that the agent announced.
type call struct {
	id      int64
	step    stint.Step
	answers chan answer // the agent's result; room for one
	started bool        // told to proceed
	done    bool        // answered by either side
}

// answer is the agent's result of a step.
type answer struct {
	result stint.Result
	err    error
}

// ending is how the agent ended a loop.
type ending struct {
	next stint.Next
	err  error // the attempt failed and asks to be tried again
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
	if len(v) > maxValue {
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
	f.faultf(name, "is %q; it must be one of: %s", clip(s, 40), words)
	return allowed[0]
}

const (
	maxID    = 1<<53 - 1                        // what every language's numbers hold
	maxRetry = int64(30 * 24 * time.Hour / 1e6) // milliseconds
)

// parse reads a line of the agent. It keeps nothing of line.
func parse(line []byte) (*message, error) {
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
	m := &message{kind: kind}
	switch kind {
	case "step":
		m.calls = []*call{readCall(f)}
	case "steps":
		m.group = true
		m.calls = readGroup(f)
	case "result":
		m.readResult(f)
	case "log", "progress":
		m.level = oneOf(f, "level", "info", "debug", "warn", "error")
		if m.text, ok = f.text("text"); !ok {
			f.faultf("text", "is missing")
		}
	case "state":
		m.readState(f)
	case "end":
		m.end = readEnd(f)
	default:
		return nil, fmt.Errorf("the type %q is not one that an agent sends; those are step, steps, result, log, progress, state and end", clip(kind, 40))
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

func readCall(f *fields) *call {
	c := &call{id: f.id(), answers: make(chan answer, 1)}
	name, ok := f.text("name")
	if n := utf8.RuneCountInString(name); !ok || n < 1 || n > 200 {
		f.faultf("name", "must be a string of 1 to 200 characters")
	}
	input, _ := f.value("input")
	c.step = stint.Step{
		Name:   name,
		Kind:   oneOf(f, "kind", stint.Custom, stint.Tool, stint.Model),
		Effect: oneOf(f, "effect", "", stint.Read, stint.Idempotent, stint.Once),
		Input:  input,
	}
	return c
}

func readGroup(f *fields) []*call {
	v, _ := f.value("steps")
	var list []json.RawMessage
	if len(v) == 0 || v[0] != '[' || json.Unmarshal(v, &list) != nil || len(list) == 0 || len(list) > maxGroup {
		f.faultf("steps", "must be an array of 1 to %d steps", maxGroup)
		return nil
	}
	calls := make([]*call, len(list))
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

func (m *message) readResult(f *fields) {
	m.id = f.id()
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
		m.answer.result = stint.Result{Data: result, Usage: usage}
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
		m.answer.err = err
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

func (m *message) readState(f *fields) {
	m.by, _ = f.text("by")
	patch, patched := f.value("patch")
	value, replaced := f.value("replace")
	switch {
	case patched == replaced:
		f.faultf("patch", "or replace must be there, and not both")
	case replaced:
		m.change, m.whole = value, true
	case patch[0] != '{':
		f.faultf("patch", "must be an object; use replace for another value")
	default:
		m.change = patch
	}
}

func readEnd(f *fields) *ending {
	outcome, ok := f.text("outcome")
	if !ok {
		f.faultf("outcome", "is missing")
	}
	reason, _ := f.text("reason")
	headline, _ := f.text("headline")
	result, _ := f.value("result")
	after, retry := f.whole("retry_after_ms", 0, maxRetry)
	wait := readWait(f)
	e := &ending{next: stint.Next{Headline: oneLine(headline)}}
	end := func(s stint.Status) { e.next.End = &stint.End{Outcome: s, Reason: oneLine(reason), Result: result} }
	switch outcome {
	case "continue":
	case "wait":
		if wait == nil {
			f.faultf("wait", "is missing; it says what the session waits for")
		}
		e.next.Wait = wait
	case "complete":
		end(stint.Completed)
	case "fail":
		end(stint.Failed)
		if retry {
			if reason == "" {
				reason = "the agent asked for another attempt"
			}
			e.err = stint.Retry(time.Duration(after)*time.Millisecond, errors.New(oneLine(reason)))
		}
	default:
		f.faultf("outcome", "is %q; it must be one of: continue, wait, complete, fail", clip(outcome, 40))
	}
	return e
}

func readWait(f *fields) *stint.Wait {
	in, ok := f.object("wait")
	if !ok {
		return nil
	}
	w := &stint.Wait{For: oneOf(in, "for", "", stint.ForMessage, stint.ForTime)}
	what, _ := in.text("what")
	w.What = oneLine(what)
	if until, ok := in.text("until"); ok {
		t, err := time.Parse(time.RFC3339, until)
		if err != nil {
			in.faultf("until", "must be a time after RFC 3339 with its zone, like 2026-01-31T09:00:00Z")
		}
		w.Until = t.UTC()
	}
	switch {
	case w.For == "":
		in.faultf("for", "is missing; it is message or time")
	case w.For == stint.ForTime && w.Until.IsZero():
		in.faultf("until", "is missing; waiting for time needs it")
	case w.For == stint.ForMessage:
		w.Wakes = []stint.MessageKind{stint.Prompt}
	}
	if in.err != nil && f.err == nil {
		f.err = in.err
	}
	return w
}

// Lines of stint, in the order in which their members are written.
type (
	loopLine struct {
		Type    string            `json:"type"`
		V       int               `json:"v"`
		Session sessionPart       `json:"session"`
		Line    int               `json:"line"`
		Loop    int               `json:"loop"`
		Attempt int               `json:"attempt"`
		Epoch   int64             `json:"epoch"`
		State   json.RawMessage   `json:"state"`
		Inbox   []inboxPart       `json:"inbox"`
		Steps   []json.RawMessage `json:"steps"`
	}
	sessionPart struct {
		ID     string            `json:"id"`
		Name   string            `json:"name"`
		Agent  string            `json:"agent"`
		Labels map[string]string `json:"labels"`
	}
	inboxPart struct {
		ID     string            `json:"id"`
		Kind   stint.MessageKind `json:"kind"`
		From   stint.Actor       `json:"from"`
		At     string            `json:"at"`
		Body   json.RawMessage   `json:"body,omitempty"`
		Text   *string           `json:"text,omitempty"`
		Base64 *string           `json:"base64,omitempty"`
	}
	proceedLine struct {
		Type string `json:"type"`
		ID   int64  `json:"id"`
		Key  string `json:"key"`
		Step string `json:"step"`
	}
	resultLine struct {
		Type   string          `json:"type"`
		ID     int64           `json:"id"`
		Result json.RawMessage `json:"result"`
		Cached bool            `json:"cached"`
	}
	errorLine struct {
		Type     string `json:"type"`
		ID       int64  `json:"id"`
		Error    string `json:"error"`
		Definite bool   `json:"definite,omitempty"`
		Cached   bool   `json:"cached"`
	}
	parkLine struct {
		Type   string `json:"type"`
		ID     int64  `json:"id"`
		Reason string `json:"reason"`
	}
)

// encode writes v as one line. Raw JSON in it loses its white space and nothing else.
func encode(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, stint.Internal.Errorf("", "a line for the agent: %w", err)
	}
	return buf.Bytes(), nil
}

func inboxParts(inbox []stint.Message) []inboxPart {
	parts := make([]inboxPart, len(inbox))
	for i, m := range inbox {
		p := inboxPart{ID: m.ID, Kind: m.Kind, From: m.From, At: m.At.UTC().Format(time.RFC3339Nano)}
		switch {
		case jsonx.Check(m.Body, jsonx.Limits{}) == nil:
			p.Body = m.Body
		case utf8.Valid(m.Body):
			s := string(m.Body)
			p.Text = &s
		default:
			s := base64.StdEncoding.EncodeToString(m.Body)
			p.Base64 = &s
		}
		parts[i] = p
	}
	return parts
}

// clip cuts a text for a message about it.
func clip(s string, runes int) string {
	for i := range s {
		if runes--; runes < 0 {
			return s[:i] + "…"
		}
	}
	return s
}

// oneLine puts a text of several lines on one.
func oneLine(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == '\n' || r == '\r' }), " ")
}
