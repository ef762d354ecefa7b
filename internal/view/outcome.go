package view

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/term"
	"github.com/stint-dev/stint/journal"
)

// outcomeWidth is how much of a result stands for one, in columns.
const outcomeWidth = 200

// Outcomes says in a line each what those of rows came to that have ended: why they did
// not complete, else what their agent said of its last loop and why they ended, else the
// beginning of the result. It reads two entries of each; a session whose entries
// cannot be read has none, and its row is listed all the same. The error is that of
// ctx, or [stint.Unavailable].
func Outcomes(ctx context.Context, src Source, rows []stint.Row) (map[stint.ID]string, error) {
	out := map[stint.ID]string{}
	for i := range rows {
		s := &rows[i].Session
		switch {
		case !s.Status.Ended():
			continue
		case s.Status != stint.Completed && s.Reason != "":
			out[s.ID] = term.Line(s.Reason)
			continue
		}
		what, err := outcomeOf(ctx, src, s)
		switch {
		case ctx.Err() != nil:
			return out, ctx.Err()
		case stint.CodeOf(err) == stint.Unavailable:
			return out, err
		case err == nil:
			out[s.ID] = what
		}
	}
	return out, nil
}

// resultOf is the beginning of a result. That of a command line is its exit status.
func resultOf(b []byte) string {
	var exit map[string]int
	if json.Unmarshal(b, &exit) == nil && len(exit) == 1 {
		if code, ok := exit["exit"]; ok {
			return fmt.Sprintf("exit %d", code)
		}
	}
	return head(b, outcomeWidth)
}

func outcomeOf(ctx context.Context, src Source, s *stint.Session) (string, error) {
	es, err := src.Entries(ctx, stint.Range{Session: s.ID, Kinds: []stint.Kind{stint.LoopCompleted, stint.SessionEnded}, Last: true, Limit: 2})
	if err != nil {
		return "", err
	}
	headline, result := "", ""
	for i := range es {
		switch e := &es[i]; {
		case e.Erased || e.Pos.Line != s.At.Line:
		case e.Kind == stint.LoopCompleted:
			d, err := journal.Decode[journal.LoopCompleted](e)
			if err != nil {
				return "", err
			}
			headline = d.Headline
		case e.Kind == stint.SessionEnded:
			result = resultOf(e.Body)
		}
	}
	if what := list(headline, s.Reason); what != "" {
		return term.Line(what), nil
	}
	return result, nil
}
