package journal

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/stint-dev/stint"
)

// Draft is what the caller of [Next] knows of the entry to be made.
type Draft struct {
	Kind  stint.Kind
	Pos   stint.Position // Line is filled in from the session
	Epoch int64
	At    time.Time
	Actor stint.Actor // empty: the engine
	Cause stint.Seq
	Data  any // the struct of this package that belongs to Kind
	Body  []byte
	Blob  stint.BlobRef // instead of Body, for a body over InlineBytes
	Salt  [16]byte      // random
}

// Begin makes the first entry of a session.
func Begin(id stint.ID, c Created, d Draft) (stint.Session, stint.Entry, error) {
	d.Kind, d.Data = stint.SessionCreated, c
	return Next(stint.Session{ID: id}, d)
}

// Next makes the entry that follows s as d says, with its place in the chain, and
// returns it with the session that it leads to. A draft that may not follow is
// [stint.Invalid], bytes beyond a limit are [stint.Limit]; s is not changed.
func Next(s stint.Session, d Draft) (stint.Session, stint.Entry, error) {
	e := stint.Entry{
		Version: Version, Session: s.ID, Seq: s.Head + 1, Epoch: d.Epoch, Pos: d.Pos, Kind: d.Kind,
		At: d.At.UTC().Truncate(time.Microsecond), Actor: d.Actor, Cause: d.Cause,
		Body: d.Body, Blob: d.Blob, Salt: d.Salt,
	}
	e.Pos.Line = s.At.Line
	if d.Kind == stint.LineStarted {
		e.Pos.Line++
	}
	if e.Actor == "" {
		e.Actor = stint.ByEngine
	}
	var err error
	if e.Data, err = appendData(nil, d.Data); err != nil {
		return s, e, err
	}
	// What changes the session is what the entry says, not what JSON made it out of:
	// the fold of the entries has to come to the same.
	data := d.Data
	if !written(d.Kind, data) {
		if data, err = typed(&e); err != nil {
			return s, e, &stint.Error{Code: stint.Invalid, Op: "journal", Session: s.ID, Err: err}
		}
	}
	switch {
	case len(e.Data) > MaxData:
		return s, e, tooLong(&e, "data", len(e.Data), MaxData)
	case max(int64(len(e.Body)), e.Blob.Size) > MaxBody:
		return s, e, tooLong(&e, "body", int(max(int64(len(e.Body)), e.Blob.Size)), MaxBody)
	case len(e.Body) > 0 && !e.Blob.IsZero():
		return s, e, illegal(&s, &e, "it has a body and a blob")
	case len(e.Body) > InlineBytes:
		return s, e, illegal(&s, &e, "a body of %d bytes has to be a blob", len(e.Body))
	}
	out := s
	if err := apply(&out, &e, data); err != nil {
		return s, e, err
	}
	e.Hash = Sum(&e, s.HeadHash)
	out.HeadHash = e.Hash
	return out, e, nil
}

func tooLong(e *stint.Entry, what string, n, bound int) error {
	err := stint.Limit.Errorf("journal", "the %s of a %s would be %d bytes; at most %d fit", what, e.Kind, n, bound)
	err.Session = e.Session
	err.Hint = "keep large content in a file or a database and store where it lies"
	return err
}

// appendData writes the data of an entry as JSON. The kinds that every step and
// every loop needs are written by hand: encoding/json costs more than the hash.
func appendData(b []byte, d any) ([]byte, error) {
	switch d := d.(type) {
	case nil:
		return b, nil
	case StepDone:
		return d.appendJSON(b), nil
	case LoopStarted:
		return d.appendJSON(b), nil
	case LoopCompleted:
		return d.appendJSON(b), nil
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(d); err != nil {
		return b, &stint.Error{Code: stint.Invalid, Op: "journal", Err: err}
	}
	return append(b, bytes.TrimRight(buf.Bytes(), "\n")...), nil
}

// written reports whether d is data of kind k that its hand-written form says
// exactly.
func written(k stint.Kind, d any) bool {
	switch d := d.(type) {
	case StepDone:
		return (k == stint.StepCompleted || k == stint.StepFailed) && (d.Args == nil || json.Valid(d.Args))
	case LoopStarted:
		return k == stint.LoopStarted
	case LoopCompleted:
		return k == stint.LoopCompleted
	}
	return false
}

// decode reads the data of e into v.
func decode(e *stint.Entry, v any) error {
	if err := json.Unmarshal(e.Data, v); err != nil {
		return corrupt(e, "has data that is not what its kind holds: %v", err)
	}
	return nil
}

// Decode reads the data of e, which must be of the kind that T belongs to. Bad
// data is [stint.Corrupt].
func Decode[T any](e *stint.Entry) (T, error) {
	var v T
	err := decode(e, &v)
	return v, err
}
