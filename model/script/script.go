package script

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/stint-dev/stint/model"
)

// Model is a [model.Model] that plays a script. It is safe for concurrent use.
type Model struct {
	name  string
	after string
	steps []step

	mu     sync.Mutex
	failed map[place]int // errors given, where they are counted
}

// place is a position in the messages of one session.
type place struct {
	session string
	step    int
}

var _ model.Model = (*Model)(nil)

// What a script says after its last step.
const (
	afterEnd    = "end"
	afterRepeat = "repeat"
	afterFail   = "fail"
)

type file struct {
	Model string     `json:"model"`
	After string     `json:"after"`
	Steps []fileStep `json:"steps"`
}

type fileStep struct {
	Text    string       `json:"text"`
	Thought string       `json:"thought"`
	Tools   []fileCall   `json:"tools"`
	Stop    model.Stop   `json:"stop"`
	Usage   *model.Usage `json:"usage"`
	Delay   duration     `json:"delay"`
	Error   *fileError   `json:"error"`
}

type fileCall struct {
	ID    string          `json:"id"`
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`
	Args  *string         `json:"args"`
}

type fileError struct {
	Kind    model.Kind `json:"kind"`
	Message string     `json:"message"`
	After   duration   `json:"after"`
	Times   int        `json:"times"`
}

// duration is written like 1.5s.
type duration time.Duration

// UnmarshalText reads it.
func (d *duration) UnmarshalText(b []byte) error {
	v, err := time.ParseDuration(string(b))
	if err == nil && v < 0 {
		err = fmt.Errorf("%s is negative", b)
	}
	*d = duration(v)
	return err
}

// step is one that was read, ready to be given.
type step struct {
	parts   []model.Part // calls are copied for each answer
	thought string
	stop    model.Stop
	usage   *model.Usage
	delay   time.Duration
	err     *fileError
	size    int64 // bytes of what it says
}

// Load reads a script from a file.
func Load(path string) (*Model, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("script: %w", err)
	}
	m, err := Parse(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return m, nil
}

// Parse reads a script. The error names the step.
func Parse(b []byte) (*Model, error) {
	var f file
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&f); err != nil {
		return nil, fmt.Errorf("script: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("script: something follows the object")
	}
	m := &Model{name: f.Model, after: f.After, failed: map[place]int{}}
	if m.name == "" {
		m.name = "script"
	}
	switch m.after {
	case "":
		m.after = afterEnd
	case afterEnd, afterRepeat, afterFail:
	default:
		return nil, fmt.Errorf("script: after is %q; it is end, repeat or fail", m.after)
	}
	if m.after == afterRepeat && len(f.Steps) == 0 {
		return nil, errors.New("script: there is no step to repeat")
	}
	for i := range f.Steps {
		s, err := f.Steps[i].read()
		if err != nil {
			return nil, fmt.Errorf("script: steps[%d]: %w", i, err)
		}
		m.steps = append(m.steps, s)
	}
	return m, nil
}

func (f *fileStep) read() (step, error) {
	s := step{thought: f.Thought, stop: f.Stop, usage: f.Usage, delay: time.Duration(f.Delay), err: f.Error}
	if f.Text == "" && len(f.Tools) == 0 {
		f.Text = "ok"
	}
	if f.Text != "" {
		s.parts = append(s.parts, model.Part{Text: f.Text})
	}
	s.size = int64(len(f.Text) + len(f.Thought))
	for _, c := range f.Tools {
		args := string(c.Input)
		switch {
		case c.Args != nil && c.Input != nil:
			return step{}, fmt.Errorf("the call of %q has both input and args", c.Name)
		case c.Args != nil:
			args = *c.Args
		}
		s.parts = append(s.parts, model.Part{Call: &model.Call{ID: c.ID, Name: c.Name, Args: model.Args(args)}})
		s.size += int64(len(c.Name) + len(args))
	}
	if s.stop == "" {
		s.stop = model.EndTurn
		if len(f.Tools) > 0 {
			s.stop = model.ToolUse
		}
	}
	switch {
	case !slices.Contains([]model.Stop{model.EndTurn, model.ToolUse, model.Length, model.Window, model.Sequence, model.Refusal, model.Pause, model.Other}, s.stop):
		return step{}, fmt.Errorf("there is no stop %q", s.stop)
	case s.stop == model.ToolUse && len(f.Tools) == 0:
		return step{}, errors.New("it stops for tools and calls none")
	case s.err != nil && !slices.Contains([]model.Kind{model.Rate, model.Overloaded, model.Transient, model.Cut, model.Invalid, model.TooLong,
		model.Auth, model.Quota, model.NotFound, model.Refused}, s.err.Kind):
		return step{}, fmt.Errorf("there is no kind of error %q", string(s.err.Kind))
	case s.err != nil && s.err.Times < 0:
		return step{}, fmt.Errorf("the error comes %d times", s.err.Times)
	}
	return s, nil
}

// Name is the script's.
func (m *Model) Name() string { return m.name }

// Call plays the step at r's position; see [model.Model].
func (m *Model) Call(ctx context.Context, r *model.Request, hear func(model.Delta)) (*model.Answer, error) {
	if err := r.Check(); err != nil {
		model.AsError(err).Model = m.name
		return nil, err
	}
	position := 0
	for i := range r.Messages {
		if r.Messages[i].Role == model.Assistant {
			position++
		}
	}
	s, err := m.at(position)
	if err != nil {
		return nil, err
	}
	if err := wait(ctx, s.delay); err != nil {
		return nil, err
	}
	if err := m.fail(s, place{r.Session, position}); err != nil {
		return nil, err
	}
	speak(hear, s)
	a := &model.Answer{Stop: s.stop, Reason: "script", Model: m.name, ID: "script-" + strconv.Itoa(position)}
	a.Message = model.Message{Role: model.Assistant, Parts: slices.Clone(s.parts)}
	for i := range a.Message.Parts {
		if c := a.Message.Parts[i].Call; c != nil {
			own := *c
			a.Message.Parts[i].Call = &own
		}
	}
	if s.usage != nil {
		a.Usage = *s.usage
	} else {
		a.Usage = model.Usage{Input: size(r)/4 + 1, Output: s.size/4 + 1}
	}
	r.Settle(&a.Message)
	return a, nil
}

func (m *Model) at(position int) (*step, error) {
	switch {
	case position < len(m.steps):
		return &m.steps[position], nil
	case m.after == afterRepeat:
		return &m.steps[len(m.steps)-1], nil
	case m.after == afterFail:
		return nil, &model.Error{Kind: model.Invalid, Model: m.name,
			Message: fmt.Sprintf("the script has %d steps and was asked for one more", len(m.steps))}
	}
	return &step{parts: []model.Part{{Text: "done"}}, stop: model.EndTurn, size: 4}, nil
}

func (m *Model) fail(s *step, at place) error {
	if s.err == nil {
		return nil
	}
	if s.err.Times > 0 {
		m.mu.Lock()
		n := m.failed[at]
		m.failed[at] = n + 1
		m.mu.Unlock()
		if n >= s.err.Times {
			return nil
		}
	}
	e := &model.Error{Kind: s.err.Kind, Model: m.name, Message: s.err.Message, After: min(time.Duration(s.err.After), model.MaxAfter)}
	if e.Kind == model.Cut && len(s.parts) > 0 {
		e.Partial = s.parts[0].Text
	}
	return e
}

func wait(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// speak gives the text in pieces, as a stream would.
func speak(hear func(model.Delta), s *step) {
	if hear == nil {
		return
	}
	if s.thought != "" {
		hear(model.Delta{Text: s.thought, Thought: true})
	}
	for _, p := range s.parts {
		for text := p.Text; text != ""; {
			n := min(24, len(text))
			for n < len(text) && !utf8.RuneStart(text[n]) {
				n++
			}
			hear(model.Delta{Text: text[:n]})
			text = text[n:]
		}
	}
}

// size is the bytes of what is asked.
func size(r *model.Request) int64 {
	n := len(r.System)
	for _, m := range r.Messages {
		for _, p := range m.Parts {
			n += len(p.Text)
			if p.Call != nil {
				n += len(p.Call.Name) + len(p.Call.Args)
			}
			if p.Result != nil {
				n += len(p.Result.Text)
			}
			if p.Opaque != nil {
				n += len(p.Opaque.Data)
			}
		}
	}
	return int64(n)
}
