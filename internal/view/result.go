package view

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/term"
	"github.com/stint-dev/stint/journal"
)

// SchemaResult is the schema of a [Result].
const SchemaResult Schema = "stint.result/1"

// Result is how a line of a session ended, as JSON, schema stint.result/1.
type Result struct {
	Schema  Schema          `json:"schema"`
	Session stint.ID        `json:"session"`
	Short   string          `json:"short"`
	Name    string          `json:"name"`
	Line    int             `json:"line"`
	Status  stint.Status    `json:"status"`
	Reason  string          `json:"reason"`
	Ended   *time.Time      `json:"ended"`  // null if it has not
	Result  json.RawMessage `json:"result"` // null if there is none
}

// NewResult finds how a line of a session ended; -1 is the current one. For a line that
// the session left before it ended it is [stint.NotFound].
func NewResult(ctx context.Context, src Source, row *stint.Row, line int) (Result, error) {
	ses := &row.Session
	r := Result{Schema: SchemaResult, Session: ses.ID, Short: row.Short, Name: ses.Name, Line: ses.At.Line}
	if line < 0 || line == ses.At.Line {
		if r.Status, r.Reason = row.Status(); !r.Status.Ended() {
			return r, nil
		}
	} else {
		r.Line = line
	}
	es, err := src.Entries(ctx, stint.Range{Session: ses.ID, Kinds: []stint.Kind{stint.SessionEnded}})
	if err != nil {
		return r, err
	}
	for i := len(es) - 1; i >= 0; i-- {
		e := &es[i]
		if e.Pos.Line != r.Line {
			continue
		}
		d, err := journal.Decode[journal.Ended](e)
		if err != nil {
			return r, err
		}
		r.Status, r.Reason, r.Ended = d.Outcome, d.Reason, whole(e.At)
		body := e.Body
		if !e.Blob.IsZero() {
			if body, err = src.Blob(ctx, ses.Family, e.Blob); err != nil {
				return r, err
			}
		}
		if len(body) > 0 {
			r.Result = body
		}
		return r, nil
	}
	missing := stint.NotFound.Errorf("result", "line %d of %s never ended: the session went back before", r.Line, term.Line(ses.Name))
	missing.Hint = fmt.Sprintf("stint show %s/%d", row.Short, r.Line)
	return r, missing
}
