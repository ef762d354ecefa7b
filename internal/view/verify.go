package view

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/term"
	"github.com/stint-dev/stint/journal"
)

// VerifyOptions say how deep a verification looks. The zero value checks all
// entries and bodies, the session's row, and the newest state.
type VerifyOptions struct {
	States   bool                // the states of all checkpoints of all lines, not of the newest alone
	Page     int                 // entries read at once; 0: 500
	Progress func(entries int64) // called after each page with the entries checked so far; nil: nobody asks
	Known    []Problem           // of the session, found elsewhere: they stand first in the report
}

// Report is what a verification of one session found.
type Report struct {
	Session  stint.ID   `json:"session"`
	Short    string     `json:"short"`
	Name     string     `json:"name"`
	OK       bool       `json:"ok"`
	Entries  int64      `json:"entries"` // read and checked
	Bodies   int64      `json:"bodies"`  // outside the journal, re-hashed
	States   int64      `json:"states"`  // read and compared with their sums
	Head     stint.Seq  `json:"head"`
	HeadHash stint.Hash `json:"head_hash"`
	Problems []Problem  `json:"problems"` // at most 100
}

// Problem is one thing that is not as it must be.
type Problem struct {
	Seq   stint.Seq `json:"seq"`   // the entry; 0: the session as a whole
	Check string    `json:"check"` // journal, body, state, fold, row; table: what the store keeps beside them
	What  string    `json:"what"`
}

// maxProblems bounds a report.
const maxProblems = 100

// Verification is a verification of one or more sessions as JSON, schema
// stint.verify/1.
type Verification struct {
	Schema   Schema     `json:"schema"`
	Now      *time.Time `json:"now"`
	OK       bool       `json:"ok"`
	Sessions int        `json:"sessions"`
	Entries  int64      `json:"entries"`
	Bodies   int64      `json:"bodies"`
	States   int64      `json:"states"`
	Problems []Problem  `json:"problems"` // of the store as a whole, at most 100
	Items    []Report   `json:"items"`    // of the sessions that were named; of --all, those with problems
}

// NewVerification returns one of no sessions.
func NewVerification(now time.Time) Verification {
	return Verification{Schema: SchemaVerify, Now: whole(now), OK: true, Problems: []Problem{}, Items: []Report{}}
}

// Fault adds a problem of the store as a whole.
func (v *Verification) Fault(p Problem) {
	v.OK = false
	if len(v.Problems) < maxProblems {
		p.What = term.Line(p.What)
		v.Problems = append(v.Problems, p)
	}
}

// Add counts r, and keeps it if keep is set or it has problems.
func (v *Verification) Add(r Report, keep bool) {
	v.Sessions++
	v.Entries, v.Bodies, v.States = v.Entries+r.Entries, v.Bodies+r.Bodies, v.States+r.States
	v.OK = v.OK && r.OK
	if keep || !r.OK {
		v.Items = append(v.Items, r)
	}
}

// VerifySession checks the journal of row's session up to the row's head: the chain
// and the rules ([journal.Verifier]), every body that lies outside, hashed again
// under the family's key, the states of checkpoints, that the entries add up to
// the row, and that the row makes sense. What is wrong is in the report; the error
// is only for what could not be looked at, such as a store that is
// [stint.Unavailable]. Memory is bounded by a page of entries, their bodies one at
// a time, and what the Verifier keeps. A session that is being written meanwhile
// is checked as row has it.
func VerifySession(ctx context.Context, src Source, row stint.Row, opt VerifyOptions) (Report, error) {
	if opt.Page <= 0 {
		opt.Page = entryPage
	}
	c := checker{ctx: ctx, src: src, row: &row, opt: opt, report: Report{
		Session: row.Session.ID, Short: row.Short, Name: row.Session.Name, Problems: []Problem{},
	}}
	c.known(opt.Known)
	err := c.run()
	c.report.OK = len(c.report.Problems) == 0
	return c.report, err
}

// Unreadable is the report of a session whose row cannot be read, for the reason err:
// there is nothing to compare its entries with.
func Unreadable(id stint.ID, known []Problem, err error) Report {
	full := id.String()
	c := checker{report: Report{Session: id, Short: full[len(full)-minEnding:], Problems: []Problem{}}}
	c.known(known)
	c.problem(0, "row", "%s", cause(err))
	return c.report
}

// known adds what was found elsewhere.
func (c *checker) known(all []Problem) {
	for _, p := range all {
		c.problem(p.Seq, p.Check, "%s", p.What)
	}
}

type checker struct {
	ctx    context.Context
	src    Source
	row    *stint.Row
	opt    VerifyOptions
	report Report
	v      journal.Verifier
	broken bool  // the chain or a rule; what comes after cannot be judged by them
	epoch  int64 // the highest of an entry
	ending int64 // that of the newest session.ended
	key    []byte
	states states
}

func (c *checker) problem(seq stint.Seq, check, format string, args ...any) {
	if len(c.report.Problems) < maxProblems {
		c.report.Problems = append(c.report.Problems, Problem{seq, check, term.Line(fmt.Sprintf(format, args...))})
	}
}

func (c *checker) run() error {
	c.states = states{c: c}
	if err := c.entries(); err != nil {
		return err
	}
	fold, err := c.v.Result()
	if err != nil && !c.broken {
		c.problem(0, "journal", "%s", cause(err))
		c.broken = true
	}
	c.report.Head, c.report.HeadHash = fold.Head, fold.HeadHash
	if !c.broken {
		c.fold(&fold)
	}
	c.sanity()
	if !c.opt.States && !c.broken {
		if err := c.newestState(&fold); err != nil {
			return err
		}
	}
	return c.beyond()
}

// entries reads the journal in pages.
func (c *checker) entries() error {
	q := stint.Range{Session: c.row.Session.ID, Until: c.row.Session.Head, Limit: c.opt.Page}
	if q.Until == 0 {
		c.problem(0, "row", "the row has no head")
		return nil
	}
	for {
		page, err := c.src.Entries(c.ctx, q)
		if errors.Is(err, stint.Corrupt) {
			c.problem(q.After+1, "journal", "the entries after %d cannot be read: %s", q.After, cause(err))
			c.broken = true
			return nil
		}
		if err != nil {
			return err
		}
		for i := range page {
			if err := c.entry(&page[i]); err != nil {
				return err
			}
		}
		if c.opt.Progress != nil {
			c.opt.Progress(c.report.Entries)
		}
		if len(page) < c.opt.Page || page[len(page)-1].Seq <= q.After {
			return nil
		}
		q.After = page[len(page)-1].Seq
	}
}

func (c *checker) entry(e *stint.Entry) error {
	c.report.Entries++
	c.epoch = max(c.epoch, e.Epoch)
	if e.Kind == stint.SessionEnded {
		c.ending = e.Epoch
	}
	if !c.broken {
		if err := c.v.Add(*e); err != nil {
			c.problem(e.Seq, "journal", "%s", cause(err))
			c.broken = true
		}
	}
	if err := c.body(e); err != nil {
		return err
	}
	if c.opt.States && !c.broken {
		return c.states.check(e)
	}
	return nil
}

// cause is the message of err without what was attempted and for which session.
func cause(err error) string {
	var e *stint.Error
	if errors.As(err, &e) && e.Err != nil {
		return e.Err.Error()
	}
	return err.Error()
}

// body hashes a body that lies outside the journal again.
func (c *checker) body(e *stint.Entry) error {
	if e.Blob.IsZero() || e.Erased {
		return nil
	}
	if c.key == nil {
		key, err := c.src.FamilyKey(c.ctx, c.row.Session.Family)
		if errors.Is(err, stint.Corrupt) || errors.Is(err, stint.NotFound) || errors.Is(err, stint.Conflict) {
			c.problem(e.Seq, "body", "the key of family %s, which names its body, is not there: %s", c.row.Session.Family, cause(err))
			return nil
		}
		if err != nil {
			return err
		}
		c.key = key
	}
	body, err := c.src.Blob(c.ctx, c.row.Session.Family, e.Blob)
	switch {
	case errors.Is(err, stint.NotFound):
		c.problem(e.Seq, "body", "its body of %d bytes is not there, and no entry says that it was erased", e.Blob.Size)
		return nil
	case errors.Is(err, stint.Corrupt):
		c.problem(e.Seq, "body", "its body cannot be read: %s", cause(err))
		return nil
	case err != nil:
		return err
	}
	c.report.Bodies++
	if journal.BlobID(c.key, body) != e.Blob {
		c.problem(e.Seq, "body", "the %d bytes kept as its body are not those that it names", len(body))
	}
	return nil
}

// fold compares the row with what the entries add up to.
func (c *checker) fold(fold *stint.Session) {
	if fold.Head != c.row.Session.Head {
		c.problem(fold.Head, "fold", "the journal ends with entry %d, the row says %d", fold.Head, c.row.Session.Head)
		return
	}
	want, got := comparable(fold), comparable(&c.row.Session)
	for _, name := range sortedKeys(want) {
		if !bytes.Equal(want[name], got[name]) {
			c.problem(fold.Head, "fold", "the entries add up to %s %s, the row has %s", name, want[name], orNothing(got[name]))
		}
	}
	for _, name := range sortedKeys(got) {
		if _, ok := want[name]; !ok {
			c.problem(fold.Head, "fold", "the entries add up to no %s, the row has %s", name, got[name])
		}
	}
}

func orNothing(b []byte) []byte {
	if b == nil {
		return []byte("none")
	}
	return b
}

// comparable is a session by its members: a store may keep an empty map for a
// missing one, and a time in another zone.
func comparable(s *stint.Session) map[string]json.RawMessage {
	b, err := json.Marshal(s)
	if err != nil {
		return map[string]json.RawMessage{"session": json.RawMessage(err.Error())}
	}
	var m map[string]json.RawMessage
	if err := json.Unmarshal(b, &m); err != nil {
		return map[string]json.RawMessage{"session": b}
	}
	return m
}

// sanity checks what the row says besides the fold.
func (c *checker) sanity() {
	s, l := &c.row.Session, &c.row.Lease
	id := s.ID.String()
	checks := []struct {
		bad  bool
		what string
	}{
		{s.Status == stint.Running, "it is stored as running, which only a live lease can make it"},
		{(s.Status == stint.Waiting) != (s.Wait != nil), "its status is " + string(s.Status) + ", and what it waits for does not fit"},
		{s.Status.Ended() == s.Ended.IsZero(), "its status is " + string(s.Status) + ", and the time of its end does not fit"},
		{len(c.row.Short) < minEnding || !strings.HasSuffix(id, c.row.Short), "its short id is no ending of its id"},
		{!l.Session.IsZero() && l.Session != s.ID, "its lease is one of session " + l.Session.String()},
		{!l.Session.IsZero() && l.Epoch < c.epoch, fmt.Sprintf("its lease has epoch %d, and an entry was written under %d", l.Epoch, c.epoch)},
		{c.row.Live && l.Session.IsZero(), "it is said to be held, and there is no lease"},
		// Another lease than the one that ended it is there for a restart.
		{!l.Session.IsZero() && s.Status.Ended() && l.Epoch == c.ending, "it has ended, and the lease that ended it was not given back"},
	}
	for _, ck := range checks {
		if ck.bad {
			c.problem(0, "row", "%s", ck.what)
		}
	}
}

// newestState reads the state that the session would go on from.
func (c *checker) newestState(fold *stint.Session) error {
	if fold.Checkpoint.Seq == 0 {
		return nil
	}
	b := bodies{c.src, fold.Family}
	_, err := journal.ReadState(fold.Checkpoint, func(seq stint.Seq) (journal.StateRef, []byte, error) {
		return b.state(c.ctx, fold.ID, seq)
	})
	return c.stateError(fold.Checkpoint.Seq, err)
}

// stateError reports a state that cannot be read; other errors are returned.
func (c *checker) stateError(seq stint.Seq, err error) error {
	if errors.Is(err, stint.Corrupt) || errors.Is(err, stint.NotFound) {
		c.problem(seq, "state", "%s", cause(err))
		return nil
	}
	if err == nil {
		c.report.States++
	}
	return err
}

// beyond looks for entries after the row's head that no commit of the session has
// made its own.
func (c *checker) beyond() error {
	id := c.row.Session.ID
	es, err := c.src.Entries(c.ctx, stint.Range{Session: id, After: c.row.Session.Head, Limit: 1})
	if err != nil || len(es) == 0 {
		if errors.Is(err, stint.Corrupt) {
			err = nil // what is readable was reported
		}
		return err
	}
	now, err := c.src.Session(c.ctx, id)
	if errors.Is(err, stint.Corrupt) || errors.Is(err, stint.NotFound) {
		c.problem(0, "row", "%s", cause(err))
		return nil
	}
	if err != nil {
		return err
	}
	if now.Session.Head < es[0].Seq {
		c.problem(es[0].Seq, "fold", "there is an entry %d, and the row ends with %d", es[0].Seq, now.Session.Head)
	}
	return nil
}

// WriteFaults prints a line for each problem of the store as a whole, after one that
// says so; nothing if there is none.
func (v *Verification) WriteFaults(w io.Writer, st term.Style) error {
	if len(v.Problems) == 0 {
		return nil
	}
	var b strings.Builder
	glyph := "✗ "
	if !st.TTY {
		glyph = ""
	}
	fmt.Fprintf(&b, "%s\n", st.Paint(term.Red, glyph+"the store NOT SOUND"))
	for _, p := range v.Problems {
		fmt.Fprintf(&b, "    %s: %s\n", p.Check, p.What)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// WriteReport prints r in a line, and a line for each problem.
func WriteReport(w io.Writer, st term.Style, r *Report) error {
	var b strings.Builder
	what := list(plural(int(r.Entries), "entry"), plural(int(r.Bodies), "body"), plural(int(r.States), "state"))
	glyph, verdict, color := "✓", "sound", term.Green
	if !r.OK {
		glyph, verdict, color = "✗", "NOT SOUND", term.Red
	}
	if !st.TTY {
		glyph = ""
	}
	fmt.Fprintf(&b, "%s\n", st.Paint(color, strings.TrimSpace(glyph+" "+term.Line(r.Name)+" ("+r.Short+") "+verdict))+": "+what)
	for _, p := range r.Problems {
		at := "session"
		if p.Seq > 0 {
			at = fmt.Sprintf("entry %d", p.Seq)
		}
		fmt.Fprintf(&b, "    %s, %s: %s\n", at, p.Check, p.What)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
