package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// This file is all that a Go program needs of the exec protocol.

// session is one loop of a session.
type session struct {
	in   *bufio.Reader
	out  *json.Encoder
	loop message
	id   int
}

// message is a line of the protocol, either way.
type message struct {
	Type   string          `json:"type"`
	V      int             `json:"v,omitempty"`
	ID     int             `json:"id,omitempty"`
	State  json.RawMessage `json:"state,omitempty"`
	Inbox  []inboxMessage  `json:"inbox,omitempty"`
	Key    string          `json:"key,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
	Error  string          `json:"error,omitempty"`
}

type inboxMessage struct {
	Text string `json:"text"`
}

// end says how a loop ended.
type end struct {
	Outcome  string `json:"outcome"`
	Reason   string `json:"reason,omitempty"`
	Headline string `json:"headline,omitempty"`
	Result   any    `json:"result,omitempty"`
}

// errParked means that the session stops here: leave the loop without an end.
var errParked = errors.New("parked")

// serve runs loops until the input ends. Standard output belongs to the protocol,
// so nothing else may print there.
func serve(in io.Reader, out io.Writer, loop func(*session) (end, error)) error {
	s := &session{in: bufio.NewReader(in), out: json.NewEncoder(out)}
	for {
		m, err := s.read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if m.Type != "loop" || m.V != 1 {
			return fmt.Errorf("stint said %q version %d, this agent knows loop 1", m.Type, m.V)
		}
		s.loop, s.id = m, 0
		e, err := loop(s)
		switch {
		case errors.Is(err, errParked), errors.Is(err, io.EOF):
			continue // the next line, or the end of the input, says what follows
		case err != nil:
			return err // ending without an end fails the attempt
		}
		s.write(struct {
			Type string `json:"type"`
			end
		}{"end", e})
	}
}

func (s *session) read() (m message, err error) {
	line, err := s.in.ReadBytes('\n')
	if err != nil {
		return m, err
	}
	err = json.Unmarshal(line, &m)
	return m, err
}

func (s *session) write(v any) {
	if err := s.out.Encode(v); err != nil {
		fmt.Fprintln(os.Stderr, "repo-digest:", err) // stint is gone; the read that follows ends the loop
	}
}

// state reads the state into v; fresh says that there is none yet.
func (s *session) state(v any) (fresh bool, err error) {
	if len(s.loop.State) == 0 || string(s.loop.State) == "null" {
		return true, nil
	}
	return false, json.Unmarshal(s.loop.State, v)
}

// text is the first prompt of this loop.
func (s *session) text() string {
	if len(s.loop.Inbox) == 0 {
		return ""
	}
	return s.loop.Inbox[0].Text
}

func (s *session) progress(text string) {
	s.write(map[string]any{"type": "progress", "text": text})
}

func (s *session) replace(state any) {
	s.write(map[string]any{"type": "state", "replace": state})
}

// step runs fn as a durable step: where the journal has its result, that is
// returned and fn does not run.
func step[T any](s *session, name, effect string, input any, fn func(key string) (T, error)) (T, error) {
	var zero T
	s.id++
	s.write(map[string]any{"type": "step", "id": s.id, "name": name, "effect": effect, "input": input})
	m, err := s.read()
	if err != nil {
		return zero, err
	}
	switch {
	case m.Type == "park":
		return zero, errParked
	case m.Type == "result" && m.Error != "":
		return zero, errors.New(m.Error)
	case m.Type == "result":
		var v T
		err := json.Unmarshal(m.Result, &v)
		return v, err
	}
	v, err := fn(m.Key)
	if err != nil {
		s.write(map[string]any{"type": "result", "id": s.id, "error": err.Error()})
		return zero, err
	}
	s.write(map[string]any{"type": "result", "id": s.id, "result": v})
	return v, nil
}
