package main

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/term"
	"github.com/stint-dev/stint/internal/view"
)

func (a *app) exportCommand() *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use: "export SESSION", Short: "Write a session's whole journal as JSON lines",
		Long: `Write every entry of a session's journal, with all bytes, salts and hashes, as JSON
lines. The first line says in words how the hashes are made, so that anybody can check
the chain without stint. It is checked by stint verify, not by exporting.`,
		Example: "  stint export x81d --out x81d.jsonl\n  stint export x81d | zstd > x81d.jsonl.zst",
		Args:    exactly(1, "one session"),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.export(cmd.Context(), args[0], out) },
	}
	cmd.Flags().StringVar(&out, "out", "", "write to this file, which must not be there (default: standard output)")
	return cmd
}

func (a *app) export(ctx context.Context, address, path string) error {
	s, err := a.reach(ctx, false)
	if err != nil {
		return err
	}
	defer s.store.Close()
	row, _, err := view.Find(ctx, s.store, address, time.Now())
	if err != nil {
		return err
	}
	write := func(w io.Writer) error { return view.Export(ctx, s.store, &row, time.Now(), w) }
	if path == "" {
		return write(a.out)
	}
	if err := writeWhole(path, write); err != nil {
		return err
	}
	a.notef("stint: wrote %s: %d entries, head %s\n", term.Escape(path), row.Session.Head, row.Session.HeadHash)
	return nil
}

// writeWhole makes a file that is there with all of its content or not at all. One
// that is there already is not touched.
func writeWhole(path string, write func(io.Writer) error) error {
	failed := func(err error) error {
		return &stint.Error{Code: stint.Unavailable, Op: "export", Err: err, Hint: "--out takes a new file in a folder that is there and that you may write to"}
	}
	there := func() error {
		e := stint.Exists.Errorf("export", "%s is there already", path)
		e.Hint = "give another name, or remove it first"
		return e
	}
	if _, err := os.Lstat(path); err == nil {
		return there()
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return failed(err)
	}
	defer os.Remove(f.Name()) //nolint:errcheck // it is gone once it has its name
	if err = write(f); err != nil {
		_ = f.Close()
		return err
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return failed(err)
	}
	err = os.Link(f.Name(), path) // unlike a rename it never replaces anything
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrExist):
		return there()
	}
	if err := os.Rename(f.Name(), path); err != nil { // a file system without links
		return failed(err)
	}
	return nil
}
