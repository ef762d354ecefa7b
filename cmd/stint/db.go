package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/term"
	"github.com/stint-dev/stint/store/sqlite"
)

func (a *app) dbCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "db", Short: "Look after the store: size, backup, restore, salvage",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return misused(cmd, "there is no command %q", args[0])
			}
			return cmd.Help()
		},
	}
	cmd.AddCommand(a.dbSizeCommand(), a.dbBackupCommand(), a.dbRestoreCommand(), a.dbSalvageCommand())
	return cmd
}

func (a *app) dbSizeCommand() *cobra.Command {
	return &cobra.Command{
		Use: "size", Short: "Print how large the store is", Args: noArgs, Example: "  stint db size --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := a.open(cmd.Context(), false)
			if err != nil {
				return err
			}
			defer s.store.Close()
			z, err := s.db.Size(cmd.Context())
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(struct {
					Schema string           `json:"schema"`
					Path   string           `json:"path"`
					File   int64            `json:"file_bytes"`
					WAL    int64            `json:"wal_bytes"`
					Keys   int64            `json:"keys_bytes"`
					Free   int64            `json:"free_bytes"`
					Rows   map[string]int64 `json:"rows"`
				}{"stint.db.size/1", s.path, z.File, z.WAL, z.Keys, z.Free, z.Rows})
			}
			a.printf("%s\n  %-15s %12d bytes, %d of them free\n  %-15s %12d bytes\n  %-15s %12d bytes\n", term.Escape(s.path), "file", z.File, z.Free, "wal", z.WAL, "keys file", z.Keys)
			for _, t := range slices.Sorted(maps.Keys(z.Rows)) {
				a.printf("  %-15s %12d rows\n", "table "+term.Line(t), z.Rows[t])
			}
			return nil
		},
	}
}

func (a *app) dbBackupCommand() *cobra.Command {
	return &cobra.Command{
		Use: "backup FILE", Short: "Write a copy of the store while it is in use",
		Long: `Write a copy of the store as it is at one moment, while sessions run. FILE.keys holds
the keys of families; keep it apart from the copy where erasure has to hold.`,
		Example: "  stint db backup /backup/stint-$(date +%F).db",
		Args:    exactly(1, "one file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := a.open(cmd.Context(), false)
			if err != nil {
				return err
			}
			defer s.store.Close()
			begun := time.Now()
			if err := s.db.Backup(cmd.Context(), args[0]); err != nil {
				return err
			}
			return a.copied("stint.db.backup/1", args[0], time.Since(begun))
		},
	}
}

// copied tells of a copy that is durable.
func (a *app) copied(schema, path string, took time.Duration) error {
	info, err := os.Stat(path)
	if err != nil {
		return &stint.Error{Code: stint.Unavailable, Op: "db", Err: err}
	}
	if a.json {
		return a.printJSON(struct {
			Schema string `json:"schema"`
			Path   string `json:"path"`
			Bytes  int64  `json:"bytes"`
			MS     int64  `json:"ms"`
		}{schema, path, info.Size(), took.Milliseconds()})
	}
	a.printf("wrote %s, %d bytes in %v\n", term.Escape(path), info.Size(), took.Round(time.Millisecond))
	return nil
}

func (a *app) dbRestoreCommand() *cobra.Command {
	return &cobra.Command{
		Use: "restore BACKUP", Short: "Put a backup in the place of a store that is not there",
		Long: `Copy a backup to the store's place and open it once. A store that is there is not
touched: move it away first, so that nothing is lost by a slip.`,
		Example: "  mv .stint/stint.db .stint/damaged.db && stint db restore /backup/stint-2026-11-28.db",
		Args:    exactly(1, "one backup file"),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.dbRestore(cmd.Context(), args[0]) },
	}
}

func (a *app) dbRestore(ctx context.Context, backup string) error {
	file, err := a.loadConfig()
	if err != nil {
		return err
	}
	path, err := a.storePath(file)
	if err != nil {
		return err
	}
	if err := restorable(backup); err != nil {
		return err
	}
	for _, p := range []string{path, path + "-wal", path + ".keys"} {
		if _, err := os.Lstat(p); err == nil {
			e := stint.Exists.Errorf("restore", "%s is there", p)
			e.Hint = "move it away first; restore touches nothing that is there"
			return e
		}
	}
	begun := time.Now()
	_, err = os.Lstat(path + ".d")
	locks := errors.Is(err, fs.ErrNotExist)
	folders, err := makeFolders(filepath.Dir(path))
	if err != nil {
		removeFolders(folders)
		return err
	}
	if err := restore(ctx, backup, path); err != nil {
		for _, suffix := range []string{"", "-wal", "-shm", ".keys", ".part", ".keys.part"} {
			err = errors.Join(err, removeNew(path+suffix))
		}
		if locks {
			err = errors.Join(err, os.RemoveAll(path+".d"))
		}
		removeFolders(folders)
		return err
	}
	return a.copied("stint.db.restore/1", path, time.Since(begun))
}

// restorable refuses what cannot be a backup before anything is made.
func restorable(backup string) error {
	info, err := os.Stat(backup)
	var e *stint.Error
	switch {
	case errors.Is(err, fs.ErrNotExist):
		e = &stint.Error{Code: stint.NotFound, Op: "restore", Err: err}
	case err != nil:
		e = &stint.Error{Code: stint.Unavailable, Op: "restore", Err: err}
	case info.IsDir():
		e = stint.Invalid.Errorf("restore", "%s is a folder, and a backup is a file", backup)
	case info.Size() == 0:
		e = stint.Corrupt.Errorf("restore", "%s is empty, and no backup is", backup)
	default:
		return nil
	}
	e.Hint = "name a file that `stint db backup` wrote"
	return e
}

// restore copies a backup and its keys to path and opens it once. What is not whole
// is never seen under its name.
func restore(ctx context.Context, backup, path string) error {
	for _, suffix := range []string{".keys", ""} { // the store is there once its keys are
		part := path + suffix + ".part"
		if err := removeNew(part); err != nil { // of one that was killed
			return err
		}
		if err := copyNew(backup+suffix, part); suffix != "" && errors.Is(err, fs.ErrNotExist) {
			continue
		} else if err != nil {
			return err
		}
		if err := os.Rename(part, path+suffix); err != nil {
			return &stint.Error{Code: stint.Unavailable, Op: "restore", Err: err, Hint: "nothing was restored; try again"}
		}
	}
	if err := syncFolder(filepath.Dir(path)); err != nil {
		return err
	}
	st, err := sqlite.Open(ctx, sqlite.Options{Path: path})
	if err != nil {
		return err
	}
	return st.Close()
}

// makeFolders makes a folder with those above it, and returns those that it made, the
// innermost first.
func makeFolders(dir string) (made []string, err error) {
	if info, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		if err == nil && !info.IsDir() {
			err = fmt.Errorf("%s is not a directory", dir)
		}
		if err != nil {
			return nil, &stint.Error{Code: stint.Unavailable, Op: "folder", Err: err, Hint: "check the path, and that this user may use it"}
		}
		return nil, nil
	}
	if up := filepath.Dir(dir); up != dir {
		if made, err = makeFolders(up); err != nil {
			return made, err
		}
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return made, &stint.Error{Code: stint.Unavailable, Op: "folder", Err: err, Hint: "choose a folder that this user may write to"}
	} else if err == nil {
		made = append([]string{dir}, made...)
	}
	return made, syncFolder(filepath.Dir(dir))
}

// removeFolders removes folders that were made for something that then failed, unless
// somebody else has put something into them.
func removeFolders(made []string) {
	for _, dir := range made {
		if os.Remove(dir) != nil {
			return
		}
	}
}

// syncFolder makes the names in a folder durable.
func syncFolder(dir string) error {
	d, err := os.Open(dir)
	if err == nil {
		err = d.Sync()
		_ = d.Close()
	}
	if err == nil || errors.Is(err, errors.ErrUnsupported) || errors.Is(err, fs.ErrPermission) {
		return nil // a folder that cannot be synced is one of a system that needs it not
	}
	return &stint.Error{Code: stint.Unavailable, Op: "folder", Err: err, Hint: "look at the kernel's log for errors of the disk"}
}

// copyNew copies a file to one that must not be there, durably.
func copyNew(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return &stint.Error{Code: stint.NotFound, Op: "restore", Err: err}
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return &stint.Error{Code: stint.Unavailable, Op: "restore", Err: err}
	}
	_, err = io.Copy(out, in)
	if err = errors.Join(err, out.Sync(), out.Close()); err != nil {
		return errors.Join(&stint.Error{Code: stint.Unavailable, Op: "restore", Err: err}, removeNew(to))
	}
	return nil
}

func removeNew(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("left behind: %w", err)
	}
	return nil
}
