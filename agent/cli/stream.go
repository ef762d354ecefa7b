package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/child"
	"github.com/stint-dev/stint/internal/jsonx"
)

// What a line of a CLI's stream says, in one vocabulary for all of them.
type eventKind int

const (
	evSession eventKind = iota + 1 // id: by which the CLI can be resumed
	evText                         // the model's words; id: of the message, more: they go on where the last ended
	evBegin                        // the CLI begins a call
	evEnd                          // the call id has ended
	evUsage                        // what a message of the model used
	evDone                         // the turn is over; text: its last words, where the stream says them again
	evTrouble                      // an error that the CLI may get over
	evFail                         // the turn has failed
	evNote                         // for the log
	evExit                         // the process is gone; made by who reads it
)

type event struct {
	kind    eventKind
	id      string
	text    string
	more    bool
	call    *call
	outcome outcome
	usage   stint.Usage
	whole   bool // usage is of the whole turn, or session, and not of a message
	exit    *exit
}

// size is about how much memory an event that waits takes.
func (e *event) size() int {
	n := 200 + len(e.text)
	if e.call != nil {
		n += len(e.call.Input)
	}
	return n
}

// call is one call of a tool that the CLI makes by itself.
type call struct {
	Name   string          `json:"name"`
	Effect stint.Effect    `json:"effect"`
	Input  json.RawMessage `json:"input,omitempty"`

	id     string
	before int           // calls that had ended when it began
	done   chan struct{} // closed once it has an outcome, or never will
	out    outcome
	lost   bool
}

// outcome is the result of a call's step.
type outcome struct {
	Output string `json:"output"`
	Cut    int64  `json:"cut_bytes,omitempty"` // of the output, left out
	Exit   *int   `json:"exit,omitempty"`
	Status string `json:"status,omitempty"` // as the CLI says it
	Failed bool   `json:"failed,omitempty"`
}

// Bounds of what is kept of a stream, in bytes.
const (
	maxLine   = 32 << 20 // one line; a longer one is left out
	maxOut    = 64 << 10 // the output of one call
	maxText   = 1 << 20  // the words of one message
	maxInput  = 1 << 20  // the arguments of one call
	maxName   = 200      // characters of a tool's name
	maxQueued = 64 << 20 // of events that nobody has taken yet
)

// reader turns lines into events. An error means that the line is none of the
// stream's; it is logged and passed over.
type reader interface {
	read(line []byte) ([]event, error)
}

func newReader(p Protocol) reader {
	switch p {
	case Claude:
		return &claude{}
	case OpenCode:
		return &opencode{}
	case Gemini:
		return &gemini{}
	default:
		return &codex{}
	}
}

// object decodes a line into v. What is no JSON object is none of the stream's. A member
// of another type than is known here, as a later version may have, is as if left out.
func object(line []byte, v any) error {
	if t := bytes.TrimLeft(line, " \t"); len(t) == 0 || t[0] != '{' {
		return errors.New("not a JSON object")
	}
	err := json.Unmarshal(line, v)
	var other *json.UnmarshalTypeError
	if errors.As(err, &other) {
		return nil
	}
	return err
}

// newCall makes a call of what the stream says of it.
func newCall(p Protocol, id, name string, input json.RawMessage) *call {
	name = clean(name)
	if name == "" {
		name = "unnamed"
	}
	if utf8.RuneCountInString(name) > maxName {
		name = string([]rune(name)[:maxName])
	}
	return &call{Name: name, Effect: effectOf(p, name), Input: arguments(input), id: id, done: make(chan struct{})}
}

// arguments makes of a call's input what a journal can hold: the same bytes where it
// is strict JSON, else the same value written anew, and of one that is too large its
// beginning.
func arguments(in json.RawMessage) json.RawMessage {
	in = bytes.TrimSpace(in)
	if len(in) == 0 || string(in) == "null" {
		return nil
	}
	if len(in) <= maxInput && jsonx.Check(in, jsonx.Limits{}) == nil {
		return bytes.Clone(in)
	}
	var v any
	dec := json.NewDecoder(bytes.NewReader(in))
	dec.UseNumber()
	if dec.Decode(&v) == nil && len(in) <= maxInput {
		if out, err := json.Marshal(v); err == nil && len(out) <= 2*maxInput && jsonx.Check(out, jsonx.Limits{}) == nil {
			return out
		}
	}
	text, cut := bound(string(in), maxOut)
	out, err := stint.Marshal(map[string]any{"begins": text, "cut_bytes": cut})
	if err != nil {
		return nil
	}
	return out
}

// bound cleans a text and cuts it to n bytes; cut is how many bytes are left out.
func bound(s string, n int) (out string, cut int64) {
	s = clean(s)
	if len(s) <= n {
		return s, 0
	}
	kept := string(child.WholeRunes([]byte(s[:n])))
	return kept, int64(len(s) - len(kept))
}

// result is the outcome of a call as it is kept.
func result(output string) outcome {
	text, cut := bound(output, maxOut)
	return outcome{Output: text, Cut: cut}
}

// exited notes an exit code, where n is one.
func (o *outcome) exited(n json.Number) {
	if code, err := strconv.Atoi(n.String()); err == nil {
		o.Exit, o.Failed = &code, o.Failed || code != 0
	}
}

// clean removes what a terminal would act on: escape sequences and control
// characters but newline and tab. What is not UTF-8 becomes U+FFFD.
func clean(s string) string {
	plain := utf8.ValidString(s)
	for i := 0; plain && i < len(s); i++ {
		plain = s[i] == '\n' || s[i] == '\t' || s[i] >= 0x20 && s[i] < 0x7f || s[i] > 0xc2
	}
	if plain {
		return s
	}
	s = strings.ToValidUTF8(s, "\uFFFD")
	var b strings.Builder
	for i := 0; i < len(s); {
		if s[i] == 0x1b {
			i += escape(s[i:])
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == '\n' || r == '\t' || r >= 0x20 && r != 0x7f && (r < 0x80 || r > 0x9f) {
			b.WriteString(s[i : i+n])
		}
		i += n
	}
	return b.String()
}

// escape is the length of the escape sequence that s begins with (ECMA-48, 5.3 and
// 5.6): a control sequence, a string, or two characters.
func escape(s string) int {
	if len(s) < 2 {
		return len(s)
	}
	switch s[1] {
	case '[':
		for i := 2; i < len(s); i++ {
			if s[i] < 0x20 || s[i] > 0x3f {
				if s[i] >= 0x40 && s[i] < 0x7f {
					i++
				}
				return i
			}
		}
		return len(s)
	case ']', 'P', '_', '^', 'X':
		for i := 2; i < len(s); i++ {
			switch {
			case s[i] == 0x07:
				return i + 1
			case s[i] == 0x1b && i+1 < len(s) && s[i+1] == '\\':
				return i + 2
			case s[i] == '\n': // a string that is never ended must not swallow the rest
				return i
			}
		}
		return len(s)
	}
	if s[1] < 0x20 || s[1] > 0x7e {
		return 1
	}
	return 2
}

// dollars is an amount that a CLI reports as a number.
func dollars(f float64) stint.Money {
	if math.IsNaN(f) || f <= 0 || f > 1e9 {
		return 0
	}
	return stint.Money(math.Round(f * 1e9))
}

// minus is what of u is not in v; no count is below zero.
func minus(u, v stint.Usage) stint.Usage {
	return stint.Usage{
		Input: max(u.Input-v.Input, 0), Output: max(u.Output-v.Output, 0),
		CacheRead: max(u.CacheRead-v.CacheRead, 0), CacheWrite: max(u.CacheWrite-v.CacheWrite, 0),
		Cost: max(u.Cost-v.Cost, 0),
	}
}

// count is a number of tokens: nobody uses less than none, and sums must not overflow.
func count(n int64) int64 { return min(max(n, 0), 1<<50) }
