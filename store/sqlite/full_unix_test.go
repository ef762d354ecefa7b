//go:build linux || darwin

package sqlite_test

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/journal"
	"github.com/stint-dev/stint/store/sqlite"
	"github.com/stint-dev/stint/store/storetest"
)

// limitFiles makes writes beyond size fail, in this process.
func limitFiles(size uint64) error {
	signal.Ignore(syscall.SIGXFSZ)
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &l); err != nil {
		return err
	}
	l.Cur = min(size, l.Max)
	return syscall.Setrlimit(syscall.RLIMIT_FSIZE, &l)
}

// fillUp is a child that appends until the disk is full, for it, and goes on once
// there is room again.
func fillUp(ctx context.Context, s *sqlite.Store, c *course) error {
	if err := limitFiles(200 << 10); err != nil {
		return err
	}
	full := false
	for range 200 {
		err := c.write(s, said(strings.Repeat("x", journal.InlineBytes)))
		if stint.CodeOf(err) == stint.Unavailable {
			full = true
			break
		}
		if err != nil {
			return err
		}
	}
	if !full {
		return fmt.Errorf("the disk never was full")
	}
	for range 3 {
		if err := c.write(s, said("x")); stint.CodeOf(err) != stint.Unavailable {
			return fmt.Errorf("still full: %w", err)
		}
	}
	row, err := s.Session(ctx, c.s.ID)
	if err != nil || row.Session.Head != c.s.Head {
		return fmt.Errorf("head %d, want %d: %w", row.Session.Head, c.s.Head, err)
	}
	if err := limitFiles(1 << 40); err != nil {
		return err
	}
	return c.write(s, said("there is room again"))
}

func TestFull(t *testing.T) {
	path := dbPath(t)
	p := spawn(t, "full", path)
	a, more := p.next(t)
	if !more {
		t.Fatal("the child did not get through")
	}
	p.kill()
	s := open(t, path)
	storetest.Check(t, s)
	row, err := s.Session(t.Context(), a.id)
	ok(t, err)
	equal(t, "head", row.Session.Head, a.head)
	if _, err := os.Stat(path + "-wal"); err != nil {
		t.Error(err)
	}
}
