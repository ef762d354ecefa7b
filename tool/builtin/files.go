package builtin

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/tool"
)

// Files are tools for the files below one folder. No path and no link leads out of it
// ([os.Root]). Close it when the tools are not needed any more.
type Files struct {
	root *os.Root
	max  int64
}

// Bounds of the file tools.
const (
	MaxFile  = 4 << 20 // bytes of a file that is read or written
	maxList  = 2000    // entries of one list
	maxLevel = 20      // folders below each other in one list
)

// OpenFiles opens a folder, which must be there.
func OpenFiles(folder string) (*Files, error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, &stint.Error{Code: stint.Invalid, Op: "file tools", Err: err, Hint: "create the folder, or correct the path"}
	}
	return &Files{root: root, max: MaxFile}, nil
}

// Close lets go of the folder; the tools fail from then on.
func (f *Files) Close() error { return f.root.Close() }

// Tools returns read_file, write_file and list_files.
func (f *Files) Tools() []tool.Tool {
	one := func(name, description, schema string, effect stint.Effect, do func(tool.Args) (tool.Output, error)) tool.Tool {
		return tool.Tool{Name: name, Description: description, Schema: json.RawMessage(schema), Effect: effect,
			Parallel: effect == stint.Read, Taints: name == "read_file", Source: "builtin",
			Caller: tool.CallerFunc(func(ctx context.Context, c tool.Call) (tool.Output, error) {
				if err := context.Cause(ctx); err != nil {
					return tool.Output{}, tool.NotBegun(err)
				}
				args, err := tool.ReadArgs(c.Args)
				if err != nil {
					return tool.Output{}, stint.Definite(err)
				}
				return do(args)
			})}
	}
	return []tool.Tool{
		one("read_file", "Read a text file below the working folder. Long files can be read in parts.",
			`{"type":"object","properties":{"path":{"type":"string","description":"relative to the working folder"},`+
				`"offset":{"type":"integer","minimum":0,"description":"first byte, 0 if left out"},`+
				`"length":{"type":"integer","minimum":1,"description":"bytes at most"}},"required":["path"],"additionalProperties":false}`,
			stint.Read, f.read),
		one("write_file", "Write a text file below the working folder, in place of what it held. Missing folders are made.",
			`{"type":"object","properties":{"path":{"type":"string","description":"relative to the working folder"},`+
				`"content":{"type":"string"}},"required":["path","content"],"additionalProperties":false}`,
			stint.Idempotent, f.write),
		one("list_files", "List the files and folders below a folder.",
			`{"type":"object","properties":{"path":{"type":"string","description":"relative to the working folder, which it is if left out"},`+
				`"depth":{"type":"integer","minimum":1,"maximum":20,"description":"levels, 1 if left out"}},"additionalProperties":false}`,
			stint.Read, f.list),
	}
}

// name turns an argument into a path below the root; an absolute one is not taken for a
// relative one.
func name(args tool.Args) (string, string) {
	p := args.Text("path")
	switch {
	case p == "":
		return ".", ""
	case strings.Contains(p, "\x00"):
		return "", "the path has a NUL in it"
	case path.IsAbs(p), filepath.IsAbs(p), strings.HasPrefix(p, "~"):
		return "", fmt.Sprintf("%q is not relative; give the path below the working folder", p)
	}
	return filepath.FromSlash(path.Clean(p)), ""
}

// refuse is the output for a path that cannot be used.
func refuse(what string, err error) tool.Output {
	var at *fs.PathError
	if errors.As(err, &at) {
		err = at.Err
	}
	return tool.Errorf("%s: %v", what, err)
}

// openRegular opens a plain file. Without waiting: a pipe would keep the session for ever.
func (f *Files) openRegular(name string) (*os.File, fs.FileInfo, error) {
	file, err := f.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is no plain file")
		if info.IsDir() {
			err = errors.New("it is a folder; use list_files")
		}
	}
	if err != nil {
		file.Close()
		return nil, nil, err
	}
	return file, info, nil
}

func (f *Files) read(args tool.Args) (tool.Output, error) {
	p, wrong := name(args)
	if wrong != "" {
		return tool.Errorf("read_file: %s", wrong), nil
	}
	file, info, err := f.openRegular(p)
	if err != nil {
		return refuse("cannot read "+p, err), nil
	}
	defer file.Close()
	from, length := number(args, "offset", 0), number(args, "length", f.max)
	if from > info.Size() || from == info.Size() && from > 0 {
		return tool.Errorf("%s has %d bytes; nothing is at %d", p, info.Size(), from), nil
	}
	b, err := io.ReadAll(io.NewSectionReader(file, from, min(length, f.max)))
	if err != nil {
		return refuse("cannot read "+p, err), nil
	}
	if bytes.IndexByte(b[:min(len(b), 8<<10)], 0) >= 0 {
		return tool.Errorf("%s has %d bytes and is no text", p, info.Size()), nil
	}
	text := tool.Capped{Bytes: b}.Text()
	if end := from + int64(len(b)); end < info.Size() {
		text = strings.TrimSuffix(text, "\n") + fmt.Sprintf("\n[stint: bytes %d to %d of %d; to read on, use offset %d]", from, end, info.Size(), end)
	}
	return tool.Output{Text: text}, nil
}

// number is an argument that the schema has checked; one beyond an int64 is the largest.
func number(args tool.Args, name string, otherwise int64) int64 {
	if !args.Has(name) {
		return otherwise
	}
	var n json.Number
	if json.Unmarshal(args[name], &n) != nil {
		return otherwise
	}
	v, err := n.Int64()
	if err != nil {
		whole, err := n.Float64() // 1e3 is an integer too
		if err != nil || whole >= 1<<62 {
			return 1 << 62
		}
		v = int64(whole)
	}
	return v
}

// write replaces a file as a whole: it is there with the old content or with the new, at
// every moment and after a crash.
func (f *Files) write(args tool.Args) (tool.Output, error) {
	p, wrong := name(args)
	content := args.Text("content")
	switch {
	case wrong != "":
	case p == ".":
		wrong = "the path is the working folder itself"
	case int64(len(content)) > f.max:
		wrong = fmt.Sprintf("the content has %d bytes, and %d can be written", len(content), f.max)
	}
	if wrong != "" {
		return tool.Errorf("write_file: %s", wrong), nil
	}
	mode := fs.FileMode(0o644)
	switch info, err := f.root.Stat(p); {
	case err == nil && !info.Mode().IsRegular():
		return tool.Errorf("cannot write %s: there is something that is no plain file", p), nil
	case err == nil:
		mode = info.Mode().Perm()
	case !errors.Is(err, fs.ErrNotExist):
		return refuse("cannot write "+p, err), nil
	}
	if err := f.replace(p, []byte(content), mode); err != nil {
		return refuse("cannot write "+p, err), nil
	}
	return tool.Output{Text: fmt.Sprintf("%d bytes written to %s", len(content), filepath.ToSlash(p))}, nil
}

func (f *Files) replace(p string, content []byte, mode fs.FileMode) error {
	if l, err := f.root.Readlink(p); err == nil { // the file behind a link, not the link
		if !filepath.IsAbs(l) {
			return f.replace(filepath.Join(filepath.Dir(p), l), content, mode)
		}
	}
	dir := filepath.Dir(p)
	if err := f.root.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	temp := filepath.Join(dir, ".stint-"+rand.Text())
	file, err := f.root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	err = cmp.Or(err, file.Chmod(mode), file.Sync())
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = f.root.Rename(temp, p)
	}
	if err != nil {
		return errors.Join(err, ignoreMissing(f.root.Remove(temp)))
	}
	return syncFolder(f.root, dir)
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// syncFolder makes a new name durable, where the system can.
func syncFolder(root *os.Root, dir string) error {
	d, err := root.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) && !errors.Is(err, fs.ErrPermission) && !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	return nil
}

func (f *Files) list(args tool.Args) (tool.Output, error) {
	p, wrong := name(args)
	if wrong != "" {
		return tool.Errorf("list_files: %s", wrong), nil
	}
	var lines []string
	more := false
	var walk func(dir, shown string, depth int64) error
	walk = func(dir, shown string, depth int64) error {
		entries, err := f.entries(dir)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if len(lines) == maxList {
				more = true
				return nil
			}
			at := path.Join(shown, e.Name())
			lines = append(lines, entryLine(at, e))
			if e.IsDir() && depth > 1 {
				if err := walk(filepath.Join(dir, e.Name()), at, depth-1); err != nil {
					lines = append(lines, at+"/: cannot be read")
				}
			}
		}
		return nil
	}
	if err := walk(p, "", min(number(args, "depth", 1), maxLevel)); err != nil {
		return refuse("cannot list "+p, err), nil
	}
	text := tool.Capped{Bytes: []byte(strings.Join(lines, "\n"))}.Text()
	switch {
	case len(lines) == 0:
		text = "[nothing is in it]"
	case more:
		text += fmt.Sprintf("\n[stint: there is more; only %d entries are listed]", maxList)
	}
	return tool.Output{Text: text}, nil
}

func (f *Files) entries(dir string) ([]fs.DirEntry, error) {
	d, err := f.root.OpenFile(dir, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	entries, err := d.ReadDir(-1)
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return cmp.Compare(a.Name(), b.Name()) })
	return entries, err
}

// entryLine is a line of a list. A name with a line end is quoted, so that each line is one.
func entryLine(at string, e fs.DirEntry) string {
	if strings.ContainsAny(at, "\n\r") {
		at = fmt.Sprintf("%q", at)
	}
	info, err := e.Info()
	switch {
	case e.IsDir():
		return at + "/"
	case err == nil && e.Type().IsRegular():
		return fmt.Sprintf("%s\t%d bytes", at, info.Size())
	case e.Type()&fs.ModeSymlink != 0:
		return at + "\tlink"
	}
	return at + "\tno plain file"
}
