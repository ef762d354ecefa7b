//go:build unix

package builtin_test

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestPipe: a named pipe that nobody writes to keeps nobody waiting.
func TestPipe(t *testing.T) {
	f := newFiles(t)
	if err := syscall.Mkfifo(filepath.Join(f.dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, args := range map[string]map[string]any{
		"read_file": {"path": "pipe"}, "write_file": {"path": "pipe", "content": "x"},
	} {
		if out := f.call(t, name, args); !out.Error || !strings.Contains(out.Text, "no plain file") {
			t.Errorf("%s: got %q", name, out.Text)
		}
	}
	if out := f.call(t, "list_files", map[string]any{"path": "pipe"}); !out.Error {
		t.Errorf("got %q", out.Text)
	}
	if out := f.call(t, "list_files", nil); out.Text != "pipe\tno plain file" {
		t.Errorf("got %q", out.Text)
	}
}
