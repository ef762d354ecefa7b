package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// errParked means that the loop has to be left without an end.
var errParked = errors.New("parked")

// line is a message of the exec protocol, either way.
type line struct {
	Type   string          `json:"type"`
	V      int             `json:"v,omitempty"`
	ID     int             `json:"id,omitempty"`
	Loop   int             `json:"loop,omitempty"`
	Key    string          `json:"key,omitempty"`
	State  json.RawMessage `json:"state,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
	Error  string          `json:"error,omitempty"`
	Inbox  []struct {
		Text string `json:"text"`
	} `json:"inbox,omitempty"`
}

// stepLine declares a step.
type stepLine struct {
	Type   string `json:"type,omitempty"`
	ID     int    `json:"id"`
	Name   string `json:"name"`
	Kind   string `json:"kind"`
	Effect string `json:"effect"`
	Input  any    `json:"input"`
}

// act is one step with what it does.
type act struct {
	name, kind, effect string
	input              any
	do                 func(key string) (any, error)
}

// talk is one loop as both sides speak of it.
type talk struct {
	in    *bufio.Reader
	out   *json.Encoder
	begin line
	ids   int
}

// serve does one loop, as a process that is started for one does.
func serve(in io.Reader, out io.Writer, loop func(*talk) (map[string]any, error)) error {
	t := &talk{in: bufio.NewReader(in), out: json.NewEncoder(out)}
	var err error
	if t.begin, err = t.read(); err != nil {
		return err
	}
	if t.begin.Type != "loop" || t.begin.V != 1 {
		return fmt.Errorf("began with %q version %d", t.begin.Type, t.begin.V)
	}
	end, err := loop(t)
	if errors.Is(err, errParked) || errors.Is(err, io.EOF) {
		return nil
	}
	if err != nil {
		return err
	}
	end["type"] = "end"
	return t.out.Encode(end)
}

func (t *talk) read() (l line, err error) {
	b, err := t.in.ReadBytes('\n')
	if err != nil {
		return l, io.EOF // a line without its end is none
	}
	return l, json.Unmarshal(b, &l)
}

// text is all messages of this loop, one behind the other.
func (t *talk) text() (all string) {
	for _, m := range t.begin.Inbox {
		all += m.Text
	}
	return all
}

func (t *talk) say(format string, args ...any) {
	t.out.Encode(map[string]any{"type": "log", "text": fmt.Sprintf(format, args...)})
	t.out.Encode(map[string]any{"type": "progress", "text": fmt.Sprintf(format, args...)})
}

func (t *talk) replace(state any) { t.out.Encode(map[string]any{"type": "state", "replace": state}) }

// step does one step and returns its result, live or from the journal.
func (t *talk) step(a act) (json.RawMessage, error) {
	t.ids++
	t.out.Encode(stepLine{"step", t.ids, a.name, a.kind, a.effect, a.input})
	got, err := t.settle(map[int]act{t.ids: a})
	return got[t.ids], err
}

// group does steps at once and returns their results in the order of acts.
func (t *talk) group(acts ...act) ([]json.RawMessage, error) {
	var lines []stepLine
	open, first := map[int]act{}, t.ids+1
	for _, a := range acts {
		t.ids++
		lines = append(lines, stepLine{"", t.ids, a.name, a.kind, a.effect, a.input})
		open[t.ids] = a
	}
	t.out.Encode(map[string]any{"type": "steps", "steps": lines})
	got, err := t.settle(open)
	if err != nil {
		return nil, err
	}
	var all []json.RawMessage
	for i := range acts {
		all = append(all, got[first+i])
	}
	return all, nil
}

// settle reads answers until every open step has its result. A step that is told
// to proceed is done at once, and parking waits for those that were begun.
func (t *talk) settle(open map[int]act) (map[int]json.RawMessage, error) {
	got, parked := map[int]json.RawMessage{}, false
	for len(open) > 0 {
		l, err := t.read()
		if err != nil {
			return nil, err
		}
		a, ok := open[l.ID]
		if !ok {
			return nil, fmt.Errorf("an answer to step %d, which is not open", l.ID)
		}
		delete(open, l.ID)
		switch {
		case l.Type == "park":
			parked = true
		case l.Type == "result" && l.Error != "":
			return nil, errors.New(l.Error)
		case l.Type == "result":
			got[l.ID] = l.Result
		default:
			v, err := a.do(l.Key)
			if err != nil {
				t.out.Encode(map[string]any{"type": "result", "id": l.ID, "error": err.Error()})
				return nil, err
			}
			b, err := json.Marshal(v)
			if err != nil {
				return nil, err
			}
			got[l.ID] = b
			reply := map[string]any{"type": "result", "id": l.ID, "result": v}
			if a.kind == "model" {
				reply["usage"] = map[string]any{"input_tokens": 100, "output_tokens": 20, "cost": "0.001"}
			}
			t.out.Encode(reply)
		}
	}
	if parked {
		return nil, errParked
	}
	return got, nil
}

func warn(err error) { fmt.Fprintln(os.Stderr, "agent:", err) }
