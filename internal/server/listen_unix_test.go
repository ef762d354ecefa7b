//go:build unix

package server_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/stint-dev/stint/internal/server"
)

// Nobody else can open the socket at any time, whatever the umask is.
func TestSocketIsPrivate(t *testing.T) {
	old := syscall.Umask(0)
	defer syscall.Umask(old)
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o777); err != nil { //nolint:gosec // like /tmp
		t.Fatal(err)
	}
	over, watching := make(chan struct{}), sync.WaitGroup{}
	watching.Go(func() {
		for {
			select {
			case <-over:
				return
			default:
				open(t, dir)
			}
		}
	})
	for range 300 {
		l, err := server.Listen(t.Context(), server.Address{TCP: anyPort, Socket: filepath.Join(dir, "s")})
		if err != nil {
			t.Fatal(err)
		}
		if info, err := os.Lstat(filepath.Join(dir, "s")); err != nil || info.Mode().Perm() != 0o600 || info.Mode()&fs.ModeSocket == 0 {
			t.Fatalf("the socket is %v, %v", info.Mode(), err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	close(over)
	watching.Wait()
}

// open fails the test if another user could open a socket below dir.
func open(t *testing.T, dir string) {
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // it went while it was looked at
		}
		info, err := os.Lstat(path)
		switch {
		case err != nil:
			return nil //nolint:nilerr // the same
		case d.IsDir() && info.Mode().Perm()&0o011 == 0:
			return fs.SkipDir
		case info.Mode()&fs.ModeSocket != 0 && info.Mode().Perm()&0o066 != 0:
			t.Errorf("%s can be opened by others: %v", path, info.Mode())
		}
		return nil
	})
}
