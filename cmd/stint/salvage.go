package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/journal"
	"github.com/stint-dev/stint/store/sqlite"
)

func (a *app) dbSalvageCommand() *cobra.Command {
	return &cobra.Command{
		Use: "salvage DAMAGED NEW", Short: "Copy what is sound in a damaged store to a new one",
		Long: `Read a damaged store as far as it can be read, and copy of each session the entries
up to the first that is missing or does not verify. Nothing is invented: a session
whose first entry is lost is not copied, and what is lost is named. The damaged file
is only read.`,
		Example: "  stint db salvage .stint/stint.db /tmp/saved.db",
		Args:    exactly(2, "the damaged file and a new one"),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.salvage(cmd.Context(), args[0], args[1]) },
	}
}

// saved is what became of one session.
type saved struct {
	Session stint.ID  `json:"session"`
	Name    string    `json:"name,omitempty"`
	Kept    stint.Seq `json:"kept"`           // entries 1..Kept are in the new store
	Lost    int       `json:"lost,omitempty"` // entries that were readable beyond those
	Why     string    `json:"why,omitempty"`
}

func (a *app) salvage(ctx context.Context, from, to string) error {
	begun := time.Now()
	if err := sqlite.AdoptKeys(ctx, from, to); err != nil {
		return err
	}
	st, err := sqlite.Open(ctx, sqlite.Options{Path: to})
	if err != nil {
		return err
	}
	report, lost, err := salvageInto(ctx, from, st)
	if err = errors.Join(err, st.Close()); err != nil {
		return err
	}
	if a.json {
		return a.printJSON(struct {
			Schema   string  `json:"schema"`
			Path     string  `json:"path"`
			MS       int64   `json:"ms"`
			Pages    int     `json:"unreadable_pages"`
			Rows     int     `json:"unreadable_rows"`
			Entries  int     `json:"entries_behind_a_gap"`
			Sessions []saved `json:"sessions"`
		}{"stint.db.salvage/1", to, time.Since(begun).Milliseconds(), lost.Pages, lost.Rows, lost.Entries, report})
	}
	whole := 0
	for _, r := range report {
		if r.Why == "" {
			whole++
			continue
		}
		a.printf("%s: entries 1 to %d kept, %d lost: %s\n", r.Session, r.Kept, r.Lost, r.Why)
	}
	if lost.Pages+lost.Rows+lost.Entries+lost.Bodies > 0 || lost.WAL {
		a.printf("%d pages, %d rows and %d bodies could not be read; %d entries lie behind a gap\n", lost.Pages, lost.Rows, lost.Bodies, lost.Entries)
	}
	a.printf("%d sessions are whole, %d are not; wrote %s\n", whole, len(report)-whole, to)
	return nil
}

// salvageInto copies the sound beginning of every journal that can be read.
func salvageInto(ctx context.Context, from string, st *sqlite.Store) (report []saved, lost sqlite.Lost, err error) {
	spool, err := os.MkdirTemp("", "stint-salvage-")
	if err != nil {
		return nil, lost, &stint.Error{Code: stint.Unavailable, Op: "salvage", Err: err, Hint: "set TMPDIR to a folder with room for the bodies of the store"}
	}
	defer os.RemoveAll(spool)
	r := &rescue{ctx: ctx, st: st, spool: spool, report: []saved{}, batch: stint.Batch{Blobs: map[stint.BlobRef][]byte{}}}
	lost, err = sqlite.Scan(ctx, from, sqlite.Found{Entry: r.entry, Body: r.body})
	if err = errors.Join(err, r.finish()); err != nil {
		return r.report, lost, err
	}
	for i := range r.report {
		if seq, ok := lost.Gaps[r.report[i].Session]; ok && r.report[i].Why == "" {
			r.report[i].Why = fmt.Sprintf("entry %d is lost, and all after it", seq)
		}
	}
	return r.report, lost, nil
}

// rescue writes the journals that a scan finds, one after the other.
type rescue struct {
	ctx    context.Context
	st     *sqlite.Store
	spool  string // bodies, until the entries that name them come
	s      stint.Session
	batch  stint.Batch
	now    saved
	report []saved
}

func (r *rescue) body(family stint.ID, ref stint.BlobRef, body []byte) error {
	return os.WriteFile(r.place(family, ref), body, 0o600)
}

func (r *rescue) place(family stint.ID, ref stint.BlobRef) string {
	return filepath.Join(r.spool, family.String()+"-"+ref.Sum.String())
}

// entry takes the next entry of a journal, up to the journal's first fault.
func (r *rescue) entry(e stint.Entry) error {
	if e.Session != r.now.Session {
		if err := r.finish(); err != nil {
			return err
		}
		r.now = saved{Session: e.Session}
	}
	if r.now.Why != "" {
		r.now.Lost++
		return nil
	}
	next, body, err := r.admit(e)
	if err != nil {
		r.now.Lost, r.now.Why = 1, err.Error()
		return nil
	}
	r.s = next
	r.batch.Entries = append(r.batch.Entries, e)
	if body != nil {
		r.batch.Blobs[e.Blob] = body
	}
	return nil
}

// admit checks that e follows and that its bytes are all there.
func (r *rescue) admit(e stint.Entry) (next stint.Session, body []byte, err error) {
	if err := journal.Verify(&e, r.s.HeadHash); err != nil {
		return r.s, nil, err
	}
	if next, err = journal.Apply(r.s, e); err != nil {
		return r.s, nil, err
	}
	if !e.Blob.IsZero() {
		body, err = os.ReadFile(r.place(next.Family, e.Blob))
		if err != nil || int64(len(body)) != e.Blob.Size {
			return r.s, nil, fmt.Errorf("the body of entry %d is lost", e.Seq)
		}
	}
	return next, body, nil
}

// finish writes the journal at hand.
func (r *rescue) finish() error {
	if r.now.Session.IsZero() {
		return nil
	}
	r.now.Kept, r.now.Name = r.s.Head, r.s.Name
	if r.now.Kept == 0 && r.now.Why == "" {
		r.now.Why = "its first entry is lost"
	}
	r.report = append(r.report, r.now)
	b, s := r.batch, r.s
	r.now, r.s, r.batch = saved{}, stint.Session{}, stint.Batch{Blobs: map[stint.BlobRef][]byte{}}
	if len(b.Entries) == 0 {
		return nil
	}
	b.Session = s
	_, err := r.st.Create(r.ctx, b, stint.Claim{})
	return err
}
