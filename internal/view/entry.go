package view

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"time"
	"unicode/utf8"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/journal"
)

// Source is what views read: journals, and bodies that lie outside them.
type Source interface {
	stint.Reader
	stint.Blobs
}

// Entry is one entry as JSON, schema stint.entry/1. Every member is always there;
// docs/log-schema.md says what they mean.
type Entry struct {
	Schema  Schema          `json:"schema,omitempty"` // absent within a list
	Version uint8           `json:"v"`                // of the journal's format
	Session stint.ID        `json:"session"`
	Seq     stint.Seq       `json:"seq"`
	Epoch   int64           `json:"epoch"` // of the lease that it was written under
	Pos     stint.Position  `json:"pos"`   // {line, loop, attempt, step, sub}
	Kind    stint.Kind      `json:"kind"`
	At      *time.Time      `json:"at"` // the writer's clock; seq orders
	Actor   stint.Actor     `json:"actor"`
	Cause   stint.Seq       `json:"cause"` // entry that led to this one; 0: none
	Data    json.RawMessage `json:"data"`  // its members depend on kind; null if it was erased
	Body    *payload        `json:"body"`  // null if there is none
	Blob    *stint.BlobRef  `json:"blob"`  // {sum, size} of a body that lies outside the journal; else null
	Erased  bool            `json:"erased"`
	Hash    stint.Hash      `json:"hash"`
}

// payload is the body of an entry: a step's input or result, a message, a state or
// its delta, output. The bytes are in one of the last three members, where they
// were asked for.
type payload struct {
	Size    int64           `json:"size"`          // bytes
	Missing bool            `json:"missing"`       // it was asked for and is not there
	Cut     bool            `json:"cut,omitempty"` // only its beginning was asked for
	JSON    json.RawMessage `json:"json,omitempty"`
	Text    *string         `json:"text,omitempty"`
	Base64  *string         `json:"base64,omitempty"` // of bytes that are neither JSON nor UTF-8
}

// Entries is entries of one session as JSON, schema stint.entry.list/1.
type Entries struct {
	Schema  Schema     `json:"schema"`
	Now     *time.Time `json:"now"`
	Session stint.ID   `json:"session"`
	Items   []Entry    `json:"items"`
	Cursor  *stint.Seq `json:"cursor"` // seq of the last item, for --after; null if there is none
}

// NewEntry returns e as JSON has it, without the bytes of its body.
func NewEntry(e *stint.Entry) Entry {
	out := Entry{Schema: SchemaEntry, Version: e.Version, Session: e.Session, Seq: e.Seq, Epoch: e.Epoch, Pos: e.Pos, Kind: e.Kind,
		At: whole(e.At), Actor: e.Actor, Cause: e.Cause, Data: e.Data, Erased: e.Erased, Hash: e.Hash}
	if !json.Valid(out.Data) {
		out.Data = json.RawMessage("null")
	}
	if n := sizeOf(e); n > 0 {
		out.Body = &payload{Size: n}
	}
	if !e.Blob.IsZero() {
		ref := e.Blob
		out.Blob = &ref
	}
	return out
}

// sizeOf is how many bytes the body of e has.
func sizeOf(e *stint.Entry) int64 { return max(int64(len(e.Body)), e.Blob.Size) }

// fill puts the bytes in.
func (b *payload) fill(p []byte) {
	switch {
	case json.Valid(p):
		b.JSON = p
	case utf8.Valid(p):
		s := string(p)
		b.Text = &s
	default:
		s := base64.StdEncoding.EncodeToString(p)
		b.Base64 = &s
	}
}

// bodies loads bodies of one family.
type bodies struct {
	src    Source
	family stint.ID
}

// of returns the body of e. One that is not there is [stint.NotFound].
func (b bodies) of(ctx context.Context, e *stint.Entry) ([]byte, error) {
	if e.Blob.IsZero() {
		return e.Body, nil
	}
	return b.src.Blob(ctx, b.family, e.Blob)
}

// maybe is of for those who can do without: a body that is not there, or damaged,
// is found false.
func (b bodies) maybe(ctx context.Context, e *stint.Entry) (body []byte, found bool, err error) {
	body, err = b.of(ctx, e)
	if errors.Is(err, stint.NotFound) || errors.Is(err, stint.Corrupt) {
		return nil, false, nil
	}
	return body, err == nil, err
}

// entryPage is how many entries are read at once.
const entryPage = 500

// eachEntry calls fn for the entries that q selects, oldest first; Limit and Last
// are not looked at. An error of fn ends it.
func eachEntry(ctx context.Context, r stint.Reader, q stint.Range, fn func(*stint.Entry) error) error {
	q.Limit, q.Last = entryPage, false
	for {
		page, err := r.Entries(ctx, q)
		if err != nil {
			return err
		}
		for i := range page {
			if err := fn(&page[i]); err != nil {
				return err
			}
		}
		if len(page) < entryPage {
			return nil
		}
		q.After = page[len(page)-1].Seq
	}
}

// courseKinds are the entries that [journal.Course] needs.
func courseKinds() []stint.Kind {
	return []stint.Kind{stint.SessionCreated, stint.LineStarted, stint.LoopStarted, stint.LoopCompleted, stint.LoopFailed, stint.SessionEnded}
}

// courseEntries reads those up to the row's head, without their bodies. An
// abandoned line ends with the entry that began the next.
func courseEntries(ctx context.Context, r stint.Reader, row *stint.Row) ([]stint.Entry, error) {
	return courseUntil(ctx, r, row.Session.ID, row.Session.Head)
}

// courseUntil is that up to an entry.
func courseUntil(ctx context.Context, r stint.Reader, id stint.ID, until stint.Seq) ([]stint.Entry, error) {
	var es []stint.Entry
	err := eachEntry(ctx, r, stint.Range{Session: id, Until: until, Kinds: courseKinds()}, func(e *stint.Entry) error {
		c := *e
		c.Body = nil
		es = append(es, c)
		return nil
	})
	return es, err
}

// onLine cuts es off where the line after the given one begins; -1 is the current
// line.
func onLine(es []stint.Entry, line int) []stint.Entry {
	for i := range es {
		if line >= 0 && es[i].Kind == stint.LineStarted && es[i].Pos.Line == line+1 {
			return es[:i]
		}
	}
	return es
}

// State returns the state at the end of a loop, byte for byte, with its
// checkpoint. A loop of -1 is the newest checkpoint of the line, a line of -1 the
// current one. [stint.NotFound] is for a loop that did not complete, and for one
// that left no state; [stint.Corrupt] for bytes that are not the checkpoint's.
func State(ctx context.Context, src Source, row *stint.Row, line, loop int) ([]byte, stint.Checkpoint, error) {
	cp := row.Session.Checkpoint
	if line >= 0 && line != row.Session.At.Line || loop >= 0 && loop != cp.Loop {
		es, err := courseEntries(ctx, src, row)
		if err != nil {
			return nil, cp, err
		}
		es = onLine(es, line)
		if loop < 0 {
			loops, err := journal.Course(es, -1)
			if err != nil {
				return nil, cp, err
			}
			loop = completed(loops)
		}
		if cp, err = journal.CheckpointAt(es, loop); err != nil {
			return nil, cp, err
		}
	}
	if cp.Seq == 0 {
		err := stint.NotFound.Errorf("state", "no loop up to loop %d left a state", cp.Loop)
		err.Session, err.Hint = row.Session.ID, "an agent's state is what its loops return; a program without the protocol returns none"
		return nil, cp, err
	}
	b := bodies{src, row.Session.Family}
	state, err := journal.ReadState(cp, func(seq stint.Seq) (journal.StateRef, []byte, error) {
		return b.state(ctx, row.Session.ID, seq)
	})
	return state, cp, err
}

// completed is the newest loop of loops that did complete, 0 if none did.
func completed(loops []journal.Loop) int {
	for i := len(loops) - 1; i >= 0; i-- {
		if loops[i].Completed() {
			return loops[i].Number
		}
	}
	return 0
}

// state reads what entry seq has of a state.
func (b bodies) state(ctx context.Context, id stint.ID, seq stint.Seq) (journal.StateRef, []byte, error) {
	es, err := b.src.Entries(ctx, stint.Range{Session: id, After: seq - 1, Until: seq, Limit: 1})
	if err != nil {
		return journal.StateRef{}, nil, err
	}
	if len(es) == 0 {
		err := stint.Corrupt.Errorf("state", "entry %d, which carries a part of the state, is not there", seq)
		err.Session = id
		return journal.StateRef{}, nil, err
	}
	ref, err := journal.StateOf(&es[0])
	if err != nil {
		return ref, nil, err
	}
	body, err := b.of(ctx, &es[0])
	return ref, body, err
}
