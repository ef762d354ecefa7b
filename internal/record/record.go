package record

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/agent/llm"
	"github.com/stint-dev/stint/internal/past"
	"github.com/stint-dev/stint/policy"
)

// Source is what a record is read from.
type Source interface {
	stint.Reader
	stint.Blobs
}

// Of is the part of a journal that is the record: the loops of a line behind one, as far as
// they had come by an entry. It does not change when the session goes on.
type Of struct {
	Session stint.ID
	Line    int
	Behind  int
	Until   stint.Seq
}

// Record is what the tools of a session gave. It is read when it is first asked.
type Record struct {
	src Source
	of  Of

	mu    sync.Mutex
	calls map[string][]call // in the order of the journal, by [Record.Key] or hash; nil: not read yet
	n     int
	row   stint.Row
}

var _ llm.Record = (*Record)(nil)

// call is one call on record.
type call struct {
	past.Step

	child stint.ID
	end   *stint.Entry // that told the session of the end of child; nil: none did
}

// New returns the record of a part of a journal.
func New(src Source, of Of) *Record { return &Record{src: src, of: of} }

// Key implements [llm.Record]: arguments are equal if they are as JSON, whatever the order
// of members and the blanks. That of another record is another one: what a session took
// from that does not count here.
func (r *Record) Key(name string, args json.RawMessage) string {
	same, err := policy.Canonical(args)
	if err != nil {
		same = args
	}
	of := fmt.Appendf(nil, "%s %d %d\n", r.of.Session, r.of.Line, r.of.Behind)
	return name + " " + past.InputSum(append(of, same...))
}

// hashed is the key of a call of whose arguments only a hash is on record.
func hashed(name, sum string) string { return name + "\x00" + sum }

// Answer implements [llm.Record].
func (r *Record) Answer(ctx context.Context, name string, args json.RawMessage, n int) (llm.Recorded, bool, error) {
	if err := r.read(ctx); err != nil {
		return llm.Recorded{}, false, err
	}
	all := r.calls[r.Key(name, args)]
	if len(all) == 0 {
		all = r.calls[hashed(name, past.InputSum(args))]
	}
	if len(all) == 0 {
		return llm.Recorded{}, false, nil
	}
	out, err := r.answer(ctx, &all[min(n, len(all)-1)])
	return out, err == nil, err
}

// Len is how many calls are on record.
func (r *Record) Len(ctx context.Context) (int, error) {
	err := r.read(ctx)
	return r.n, err
}

func (r *Record) answer(ctx context.Context, c *call) (llm.Recorded, error) {
	out := llm.Recorded{Child: c.child}
	body := func(ref stint.BlobRef, inline []byte) ([]byte, error) {
		return past.Body(ctx, r.src, r.row.Session.Family, &stint.Entry{Blob: ref, Body: inline})
	}
	data, err := body(c.Blob, c.Body)
	if err != nil {
		return out, r.unreadable(err)
	}
	if c.Failed {
		f, err := c.Done.Failure(data)
		out.Err = past.Error(f, c.Done.Final)
		return out, err
	}
	res, err := c.Step.Answer(func() (json.RawMessage, error) { return data, nil })
	if out.Data = res.Data; err != nil {
		return out, err
	}
	if c.Intent.Asked != "" {
		if out.Args, err = body(c.InputBlob, c.Input); err != nil {
			return out, r.unreadable(err)
		}
	}
	if c.end != nil {
		told, err := body(c.end.Blob, c.end.Body)
		if err != nil {
			return out, r.unreadable(err)
		}
		m, err := past.Message(c.end, told)
		if err != nil {
			return out, err
		}
		out.End = &m
	}
	return out, nil
}

// unreadable says what a result that is gone means.
func (r *Record) unreadable(err error) error {
	return &stint.Error{Code: stint.CodeOf(err), Op: "record", Session: r.of.Session, Err: fmt.Errorf("what a tool gave cannot be read: %w", err),
		Hint: "the session runs with the recorded results of that one, which have to be in this store"}
}

// read reads the journal, once.
func (r *Record) read(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.calls != nil {
		return nil
	}
	row, err := r.src.Session(ctx, r.of.Session)
	if err != nil {
		return r.unreadable(err)
	}
	t, err := readTape(ctx, r.src, r.of)
	if err != nil {
		return r.unreadable(err)
	}
	r.row = row
	calls := map[string][]call{}
	for _, number := range slices.Sorted(maps.Keys(t.loops)) {
		if err := r.add(ctx, t, t.loops[number], calls); err != nil {
			return err
		}
	}
	for _, all := range calls {
		r.n += len(all)
	}
	r.calls = calls
	return nil
}

// add takes in the calls of a loop.
func (r *Record) add(ctx context.Context, t *tape, l *loop, calls map[string][]call) error {
	steps := l.ordered()
	var children []stint.ID // in the order of the calls that asked for them
	for _, s := range steps {
		if s.Intent.Child && s.Done != nil && !s.Failed {
			id, err := past.ChildOf(s.Body)
			if err != nil {
				return err
			}
			children = append(children, id)
		}
	}
	for _, s := range steps {
		if s.Intent.Kind != stint.Tool || s.Intent.Child || !s.Answered() || neverDone(s) {
			continue
		}
		c := call{Step: *s}
		if len(children) > 0 && !s.Failed {
			body, err := past.Body(ctx, r.src, r.row.Session.Family, &stint.Entry{Blob: s.Blob, Body: s.Body})
			if err != nil {
				return r.unreadable(err)
			}
			if begins(body) {
				c.child, children = children[0], children[1:]
				c.end = t.ends[c.child]
			}
		}
		key, err := r.keyOf(ctx, l, s)
		if err != nil {
			return err
		}
		calls[key] = append(calls[key], c)
	}
	return nil
}

// keyOf is what calls that are equal to s are found under.
func (r *Record) keyOf(ctx context.Context, l *loop, s *past.Step) (string, error) {
	args, known, err := l.args(ctx, r.src, r.row.Session.Family, s)
	switch {
	case err != nil:
		return "", r.unreadable(err)
	case !known:
		return hashed(s.Intent.Name, s.Intent.Input), nil
	}
	return r.Key(s.Intent.Name, args), nil
}

// begins reports whether a result begins a child.
func begins(body []byte) bool {
	var out struct{ Spawn *struct{} }
	return bytes.Contains(body, []byte(`"spawn"`)) && json.Unmarshal(body, &out) == nil && out.Spawn != nil
}

// neverDone reports whether the agent refused a call itself: its arguments could not be
// used, or it was not on record. The tool has not given anything then.
func neverDone(s *past.Step) bool {
	if !s.Failed || s.Intent.Effect != stint.Read {
		return false
	}
	text := s.Done.Error
	return offRecord(s) || strings.HasPrefix(text, s.Intent.Name+" was not called") || strings.HasPrefix(text, "there is no tool ")
}

// offRecord reports whether a call was not made because it was not on record.
func offRecord(s *past.Step) bool {
	return s.Failed && strings.HasPrefix(s.Done.Error, s.Intent.Name+llm.OffRecord)
}
