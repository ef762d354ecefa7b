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
	if !fits(d.Kind, d.Data) {
		return s, e, illegal(&s, &e, "its data is a %T", d.Data)
	}
	var err error
	if e.Data, err = appendData(make([]byte, 0, 256), d.Data); err != nil {
		return s, e, err
	}
	// What changes the session is what the entry says, not what JSON made it out of:
	// the fold of the entries has to come to the same.
	data := d.Data
	if !written(data, e.Data) {
		if data, err = typed(&e); err != nil {
			return s, e, &stint.Error{Code: stint.Invalid, Op: "journal", Session: s.ID, Err: err}
		}
	}
	switch {
	case len(e.Data) > maxData:
		return s, e, tooLong(&e, "data", len(e.Data), maxData)
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

// appendData writes the data of an entry as JSON. The kinds that every
// session, step and loop needs are written by hand: encoding/json costs more than the hash.
func appendData(b []byte, d any) ([]byte, error) {
	switch d := d.(type) {
	case nil:
		return b, nil
	case Created:
		if err := sound("config", d.Config); err != nil {
			return b, err
		}
		if d.plain() {
			return d.appendJSON(b), nil
		}
	case StepRequested:
		return d.appendJSON(b), nil
	case StepDone:
		if err := sound("args", d.Args); err != nil {
			return b, err
		}
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

// sound refuses a member that is written as it is given and is no JSON: it could end its
// object, and say what it likes of the others.
func sound(member string, raw json.RawMessage) error {
	if len(raw) > 0 && !json.Valid(raw) {
		return stint.Invalid.Errorf("journal", "%s is not JSON", member)
	}
	return nil
}

// fits reports whether d is the data that belongs to kind k.
func fits(k stint.Kind, d any) bool {
	ok := false
	switch k {
	case stint.SessionCreated:
		_, ok = d.(Created)
	case stint.SessionWaiting:
		if _, ok = d.(Waiting); !ok {
			_, ok = d.(Parked)
		}
	case stint.SessionResumed:
		_, ok = d.(Resumed)
	case stint.SessionReleased:
		_, ok = d.(Released)
	case stint.SessionEnded:
		_, ok = d.(Ended)
	case stint.LeaseLost:
		_, ok = d.(LeaseLost)
	case stint.LineStarted:
		_, ok = d.(LineStarted)
	case stint.LoopStarted:
		_, ok = d.(LoopStarted)
	case stint.LoopCompleted:
		_, ok = d.(LoopCompleted)
	case stint.LoopFailed:
		_, ok = d.(LoopFailed)
	case stint.StepRequested:
		_, ok = d.(StepRequested)
	case stint.StepCompleted, stint.StepFailed:
		_, ok = d.(StepDone)
	case stint.StepResolved:
		_, ok = d.(StepResolved)
	case stint.MessageTaken, stint.MessageRefused:
		_, ok = d.(Taken)
	case stint.LimitChanged:
		_, ok = d.(LimitChanged)
	case stint.OutputWritten:
		_, ok = d.(Output)
	case stint.ApprovalRequested:
		_, ok = d.(ApprovalRequested)
	case stint.ApprovalDecided:
		_, ok = d.(ApprovalDecided)
	case stint.ApprovalChanged:
		_, ok = d.(ApprovalChanged)
	case stint.SystemRecorded:
		_, ok = d.(Recorded)
	default:
		ok = true // apply says that there is no such kind
	}
	return ok
}

// written reports whether b, the data of d's entry, says exactly what d holds: where the
// form is hand-written and nothing in it can be changed by JSON.
func written(d any, b []byte) bool {
	switch d := d.(type) {
	case Created:
		// \ufffd stands for bytes that are not UTF-8, and for little else.
		return d.plain() && sayable(d.Limits.Deadline) && sayable(d.Trigger.Due) && !bytes.Contains(b, []byte(`\ufffd`))
	case StepDone, StepRequested, LoopStarted, LoopCompleted:
		return true
	}
	return false
}

// sayable reports whether RFC 3339 has a form of t: its years have four digits.
func sayable(t time.Time) bool { return t.IsZero() || t.UTC().Year() >= 0 && t.UTC().Year() <= 9999 }

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
