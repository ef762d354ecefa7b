package builtin_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/tool"
	"github.com/stint-dev/stint/tool/builtin"
)

// files is a folder with tools for it, beside a folder that they must not reach.
type files struct {
	set       *tool.Set
	dir, away string
}

func newFiles(t testing.TB) files {
	t.Helper()
	top := t.TempDir()
	f := files{dir: filepath.Join(top, "root"), away: filepath.Join(top, "away")}
	for _, d := range []string{f.dir, f.away} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(f.away, "secret"), "the secret")
	opened, err := builtin.OpenFiles(f.dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { opened.Close() })
	if f.set, err = tool.NewSet(opened.Tools()...); err != nil {
		t.Fatal(err)
	}
	return f
}

func write(t testing.TB, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func read(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func (f files) call(t testing.TB, name string, args map[string]any) tool.Output {
	t.Helper()
	if args == nil {
		args = map[string]any{}
	}
	raw, err := stint.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	one, checked, err := f.set.Check(name, raw)
	if err != nil {
		t.Fatal(err)
	}
	out, err := one.Caller.Call(t.Context(), tool.Call{Args: checked})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestFilesEffects(t *testing.T) {
	f := newFiles(t)
	for name, want := range map[string]stint.Effect{"read_file": stint.Read, "list_files": stint.Read, "write_file": stint.Idempotent} {
		if one, ok := f.set.Lookup(name); !ok || one.Class() != want || one.Parallel != (want == stint.Read) {
			t.Errorf("%s is %+v", name, one)
		}
	}
}

// TestNoWayOut tries every way that leads out of the folder, with every tool.
func TestNoWayOut(t *testing.T) {
	f := newFiles(t)
	for link, to := range map[string]string{
		"link": filepath.Join(f.away, "secret"), "relative": "../away/secret", "folder": "../away", "absolute": f.away,
		"twice": "folder/secret", "new": "../away/new", "loop": "loop",
	} {
		if err := os.Symlink(to, filepath.Join(f.dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range []string{
		"../away/secret", "/etc/passwd", filepath.Join(f.away, "secret"), "x/../../away/secret", "link", "relative", "folder/secret",
		"absolute/secret", "twice", "new", "loop", "..", "~/x", "a\x00b", "./../away/secret", "folder/../../away/secret", "//etc/passwd",
	} {
		for _, out := range []tool.Output{
			f.call(t, "read_file", map[string]any{"path": p}),
			f.call(t, "write_file", map[string]any{"path": p, "content": "overwritten"}),
			f.call(t, "list_files", map[string]any{"path": p}),
		} {
			if !out.Error || strings.Contains(out.Text, "the secret") {
				t.Errorf("%q gave %q", p, out.Text)
			}
		}
	}
	if got := read(t, filepath.Join(f.away, "secret")); got != "the secret" {
		t.Errorf("the file outside is %q", got)
	}
	if left, err := os.ReadDir(f.away); err != nil || len(left) != 1 {
		t.Errorf("outside there is %v, %v", left, err)
	}
}

func TestReadFile(t *testing.T) {
	f := newFiles(t)
	write(t, filepath.Join(f.dir, "a.txt"), "0123456789é")
	write(t, filepath.Join(f.dir, "odd"), "a\xffb\\u0000")
	write(t, filepath.Join(f.dir, "binary"), "\x7fELF\x00\x01")
	write(t, filepath.Join(f.dir, "empty"), "")
	write(t, filepath.Join(f.dir, "huge"), strings.Repeat("x", builtin.MaxFile+5))
	for _, tt := range []struct {
		args  map[string]any
		want  string
		wrong bool
	}{
		{map[string]any{"path": "a.txt"}, "0123456789é", false},
		{map[string]any{"path": "./x/../a.txt", "offset": 8}, "89é", false},
		{map[string]any{"path": "a.txt", "offset": 2, "length": 3}, "234\n[stint: bytes 2 to 5 of 12; to read on, use offset 5]", false},
		{map[string]any{"path": "a.txt", "offset": 12}, "a.txt has 12 bytes; nothing is at 12", true},
		{map[string]any{"path": "a.txt", "offset": json.Number("99999999999999999999999")}, "nothing is at", true},
		{map[string]any{"path": "empty"}, "", false},
		{map[string]any{"path": "odd"}, "a\uFFFDb\\u0000\n[stint: one \uFFFD above stands for a NUL or for bytes that are not UTF-8]", false},
		{map[string]any{"path": "binary"}, "binary has 6 bytes and is no text", true},
		{map[string]any{"path": "none"}, "cannot read none: no such file or directory", true},
		{map[string]any{"path": "."}, "it is a folder; use list_files", true},
	} {
		out := f.call(t, "read_file", tt.args)
		if out.Error != tt.wrong || !strings.HasSuffix(out.Text, tt.want) && !strings.Contains(out.Text, tt.want) || tt.want == "" && out.Text != "" {
			t.Errorf("%v: got %q, %v, want %q", tt.args, out.Text, out.Error, tt.want)
		}
	}
	out := f.call(t, "read_file", map[string]any{"path": "huge"})
	if want := fmt.Sprintf("to read on, use offset %d]", builtin.MaxFile); out.Error || !strings.HasSuffix(out.Text, want) || len(out.Text) > builtin.MaxFile+200 {
		t.Errorf("a huge file gave %d bytes", len(out.Text))
	}
}

func TestWriteFile(t *testing.T) {
	f := newFiles(t)
	if err := os.WriteFile(filepath.Join(f.dir, "run.sh"), nil, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("sub/target", filepath.Join(f.dir, "link")); err != nil {
		t.Fatal(err)
	}
	for path, at := range map[string]string{"a.txt": "a.txt", "new/folder/b.txt": "new/folder/b.txt", "run.sh": "run.sh", "link": "sub/target"} {
		for _, content := range []string{"first", "", "second é 😀\n"} {
			if out := f.call(t, "write_file", map[string]any{"path": path, "content": content}); out.Error {
				t.Fatal(path, out.Text)
			}
			if got := read(t, filepath.Join(f.dir, at)); got != content {
				t.Errorf("%s holds %q", path, got)
			}
		}
	}
	if info, err := os.Stat(filepath.Join(f.dir, "run.sh")); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("the mode is %v, %v", info.Mode(), err)
	}
	if target, err := os.Readlink(filepath.Join(f.dir, "link")); err != nil || target != "sub/target" {
		t.Errorf("the link is %q, %v", target, err)
	}
	for path, want := range map[string]string{".": "is the working folder itself", "new": "no plain file", "a.txt/x": "not a directory"} {
		if out := f.call(t, "write_file", map[string]any{"path": path, "content": "x"}); !out.Error || !strings.Contains(out.Text, want) {
			t.Errorf("%s: got %q", path, out.Text)
		}
	}
	if out := f.call(t, "write_file", map[string]any{"path": "big", "content": strings.Repeat("x", builtin.MaxFile+1)}); !out.Error || !strings.Contains(out.Text, "can be written") {
		t.Errorf("got %q", out.Text)
	}
	if out := f.call(t, "list_files", map[string]any{"depth": 9}); strings.Contains(out.Text, ".stint-") || strings.Contains(out.Text, "big") {
		t.Errorf("something is left:\n%s", out.Text)
	}
}

// TestWriteIsWhole reads while it is written: it is always one of the contents.
func TestWriteIsWhole(t *testing.T) {
	f := newFiles(t)
	a, b := strings.Repeat("a", 300_000), strings.Repeat("b", 200_000)
	f.call(t, "write_file", map[string]any{"path": "x", "content": a})
	var writers sync.WaitGroup
	done := make(chan struct{})
	writers.Go(func() {
		defer close(done)
		for i := range 50 {
			f.call(t, "write_file", map[string]any{"path": "x", "content": []string{b, a}[i%2]})
		}
	})
	for looked := 0; ; looked++ {
		if got := read(t, filepath.Join(f.dir, "x")); got != a && got != b {
			t.Fatalf("after %d looks the file has %d bytes of neither content", looked, len(got))
		}
		select {
		case <-done:
			writers.Wait()
			return
		default:
		}
	}
}

func TestListFiles(t *testing.T) {
	f := newFiles(t)
	if out := f.call(t, "list_files", nil); out.Text != "[nothing is in it]" {
		t.Errorf("got %q", out.Text)
	}
	for _, p := range []string{"b/deep/er/x", "a", "new\nline"} {
		if err := os.MkdirAll(filepath.Join(f.dir, filepath.Dir(p)), 0o755); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(f.dir, p), "123")
	}
	if err := os.Symlink("/", filepath.Join(f.dir, "out")); err != nil {
		t.Fatal(err)
	}
	for depth, want := range map[int]string{
		1: "a\t3 bytes\nb/\n\"new\\nline\"\t3 bytes\nout\tlink",
		3: "a\t3 bytes\nb/\nb/deep/\nb/deep/er/\n\"new\\nline\"\t3 bytes\nout\tlink",
	} {
		if out := f.call(t, "list_files", map[string]any{"depth": depth}); out.Text != want {
			t.Errorf("depth %d: got %q, want %q", depth, out.Text, want)
		}
	}
	if out := f.call(t, "list_files", map[string]any{"path": "b/deep", "depth": 2}); out.Text != "er/\ner/x\t3 bytes" {
		t.Errorf("got %q", out.Text)
	}
	for i := range 2100 {
		write(t, filepath.Join(f.dir, "b", fmt.Sprint(i)), "")
	}
	if out := f.call(t, "list_files", map[string]any{"path": "b"}); strings.Count(out.Text, "\n") != 2000 || !strings.HasSuffix(out.Text, "only 2000 entries are listed]") {
		t.Errorf("got %d lines", strings.Count(out.Text, "\n"))
	}
}

func TestFilesCanceled(t *testing.T) {
	f := newFiles(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("the lease is lost")
	cancel(why)
	one, _ := f.set.Lookup("write_file")
	_, err := one.Caller.Call(ctx, tool.Call{Args: json.RawMessage(`{"path":"x","content":"y"}`)})
	var n interface{ NotBegun() bool }
	if !errors.Is(err, why) || !errors.As(err, &n) {
		t.Errorf("got %v", err)
	}
	if _, err := builtin.OpenFiles(filepath.Join(f.dir, "none")); !errors.Is(err, stint.Invalid) {
		t.Errorf("got %v", err)
	}
}
