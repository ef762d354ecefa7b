package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/internal/term"
	"github.com/stint-dev/stint/journal"
	"github.com/stint-dev/stint/store/sqlite"
)

func (a *app) dbSalvageCommand() *cobra.Command {
	return &cobra.Command{
		Use: "salvage DAMAGED NEW", Short: "Copy what is sound in a damaged store to a new one",
		Long: `Read a damaged store as far as it can be read, and copy of each session the entries
up to the first that is missing or does not verify. Nothing is invented: a session
whose first entry is lost is not copied, and what is lost is named: also entries that
are gone from the end, where the store still knows of them. A body outside the journal
counts only if it is the one that its entry names. The damaged file is only read.`,
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

func (a *app) salvage(ctx context.Context, from, to string) (err error) {
	begun := time.Now()
	for _, p := range []string{to, to + "-wal", to + ".keys"} {
		if _, err := os.Lstat(p); err == nil {
			e := stint.Exists.Errorf("salvage", "%s is there already", p)
			e.Hint = "choose a new path"
			return e
		}
	}
	// What is not whole is never seen under its name, even if this process dies.
	dir, err := os.MkdirTemp(filepath.Dir(to), ".stint-salvage-")
	if err != nil {
		return &stint.Error{Code: stint.Unavailable, Op: "salvage", Err: err, Hint: "choose a folder that is there, and that this user may write to"}
	}
	defer func() { err = errors.Join(err, removeAll(dir)) }()
	made := filepath.Join(dir, "stint.db")
	r, lost, err := salvageInto(ctx, from, made, dir)
	if err != nil {
		return err
	}
	for _, suffix := range []string{".keys", ""} { // the store is there once its keys are
		if err := os.Rename(made+suffix, to+suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return errors.Join(&stint.Error{Code: stint.Unavailable, Op: "salvage", Err: err, Hint: "nothing was written; try again"}, removeNew(to+".keys"))
		}
	}
	if err := syncFolder(filepath.Dir(to)); err != nil {
		return err
	}
	if a.json {
		return a.printJSON(struct {
			Schema    string  `json:"schema"`
			Path      string  `json:"path"`
			MS        int64   `json:"ms"`
			Pages     int     `json:"unreadable_pages"`
			Rows      int     `json:"unreadable_rows"`
			Entries   int     `json:"entries_behind_a_gap"`
			Bodies    int     `json:"lost_bodies"`
			Unchecked int     `json:"unchecked_bodies"`
			Sessions  []saved `json:"sessions"`
		}{"stint.db.salvage/1", to, time.Since(begun).Milliseconds(), lost.Pages, lost.Rows, lost.Entries, lost.Bodies, r.unchecked, r.report})
	}
	whole := 0
	for _, s := range r.report {
		if s.Why == "" {
			whole++
			continue
		}
		a.printf("%s: entries 1 to %d kept, %d lost: %s\n", s.Session, s.Kept, s.Lost, term.Line(s.Why))
	}
	if lost.Pages+lost.Rows+lost.Entries+lost.Bodies > 0 || lost.WAL {
		a.printf("%d pages, %d rows and %d bodies could not be read; %d entries lie behind a gap\n", lost.Pages, lost.Rows, lost.Bodies, lost.Entries)
	}
	if r.unchecked > 0 {
		a.printf("%d bodies could not be checked: there is no keys file beside the damaged store\n", r.unchecked)
	}
	a.printf("%d sessions are whole, %d are not; wrote %s\n", whole, len(r.report)-whole, term.Escape(to))
	return nil
}

func removeAll(dir string) error {
	if err := os.RemoveAll(dir); err != nil {
		return &stint.Error{Code: stint.Unavailable, Op: "salvage", Err: fmt.Errorf("left behind: %w", err), Hint: "remove it"}
	}
	return nil
}

// salvageInto makes a store at to of the sound beginning of every journal that can be
// read. Bodies lie in dir until the entries that name them come.
func salvageInto(ctx context.Context, from, to, dir string) (r *rescue, lost sqlite.Lost, err error) {
	adopted, err := sqlite.AdoptKeys(ctx, from, to)
	if err != nil {
		return nil, lost, err
	}
	st, err := sqlite.Open(ctx, sqlite.Options{Path: to})
	if err != nil {
		return nil, lost, err
	}
	r = &rescue{ctx: ctx, st: st, spool: dir, adopted: adopted, report: []saved{}, trees: engine.Trees{}, batch: stint.Batch{Blobs: map[stint.BlobRef][]byte{}}}
	lost, err = sqlite.Scan(ctx, from, sqlite.Found{Entry: r.entry, Body: r.body, File: r.file})
	if err == nil {
		err = r.finish()
	}
	if err = errors.Join(err, st.Close()); err != nil {
		return nil, lost, err
	}
	lost.Bodies += r.wrong
	kept := stint.Seq(0)
	for i := range r.report {
		s := &r.report[i]
		kept += s.Kept
		if seq, ok := lost.Gaps[s.Session]; ok && s.Why == "" {
			s.Why = fmt.Sprintf("entry %d is lost, and all after it", seq)
		}
		delete(lost.Gaps, s.Session)
	}
	for id := range lost.Gaps {
		r.report = append(r.report, saved{Session: id, Why: "none of its entries is left"})
	}
	slices.SortFunc(r.report, func(a, b saved) int { return bytes.Compare(a.Session[:], b.Session[:]) })
	if kept == 0 && len(r.report)+lost.Entries > 0 {
		e := stint.Corrupt.Errorf("salvage", "nothing of its %d sessions can be kept: the first entry of each is lost, or not sound", len(r.report))
		e.Hint = "`stint db restore` brings back a backup"
		return nil, lost, e
	}
	return r, lost, nil
}

// rescue writes the journals that a scan finds, one after the other.
type rescue struct {
	ctx       context.Context
	st        *sqlite.Store
	spool     string // folder of the bodies
	adopted   bool   // the families have their own keys, so that bodies can be checked
	wrong     int    // bodies that are not what their names say
	unchecked int    // bodies that nobody can tell of whether they are
	s         stint.Session
	batch     stint.Batch
	now       saved
	failed    stint.Seq // the entry that now.Why is of
	report    []saved
	trees     engine.Trees
}

// body keeps a body that is what its name says, until the entries come.
func (r *rescue) body(family stint.ID, ref stint.BlobRef, body []byte) error {
	if r.adopted {
		key, err := r.st.FamilyKey(r.ctx, family)
		if err != nil && !errors.Is(err, stint.NotFound) {
			return err
		}
		if err != nil || journal.BlobID(key, body) != ref {
			r.wrong++
			return nil
		}
	} else {
		r.unchecked++
	}
	if err := os.WriteFile(r.place(family, ref), body, 0o600); err != nil {
		return &stint.Error{Code: stint.Unavailable, Op: "salvage", Err: err, Hint: "the new store's folder needs room for the bodies twice"}
	}
	return nil
}

// file brings over a file that sessions are pinned to.
func (r *rescue) file(f sqlite.File) error { return r.st.KeepFiles(r.ctx, []sqlite.File{f}) }

func (r *rescue) place(family stint.ID, ref stint.BlobRef) string {
	return filepath.Join(r.spool, family.String()+"-"+ref.Sum.String())
}

// entry takes the next entry of a journal, up to the journal's first fault. Of several
// for one place it takes the one that follows.
func (r *rescue) entry(e stint.Entry) error {
	if e.Session != r.now.Session {
		if err := r.finish(); err != nil {
			return err
		}
		r.now = saved{Session: e.Session}
	}
	if e.Seq <= r.s.Head {
		return nil
	}
	if r.now.Why != "" && e.Seq != r.failed {
		r.now.Lost++
		return nil
	}
	next, body, err := r.admit(e)
	if err != nil {
		if r.now.Why == "" {
			r.now.Lost, r.now.Why, r.failed = 1, err.Error(), e.Seq
		}
		return nil
	}
	r.s, r.now.Lost, r.now.Why = next, 0, ""
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
			return r.s, nil, fmt.Errorf("the body of entry %d is lost, or another one", e.Seq)
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
	b.Session, b.Meters = s, r.trees.Meters(&s)
	_, err := r.st.Create(r.ctx, b, stint.Claim{})
	return err
}
