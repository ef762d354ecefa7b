package exec

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	osexec "os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/child"
)

// Fingerprint returns the SHA-256 of the files that the command consists of: the
// executable, and every argument that is the name of a regular file below Dir. The
// names are relative to Dir, with slashes, where the file lies below it, and
// absolute otherwise. Two equal results mean that the same program would run, as
// far as its command line tells. What it loads by itself is not looked at. A program
// that cannot be executed gives a [StartError].
func (s Spec) Fingerprint() (map[string]stint.Hash, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	dir, err := filepath.Abs(s.Dir)
	if err != nil {
		return nil, unreadable("dir", err)
	}
	program, err := s.executable(dir)
	if err != nil {
		return nil, err
	}
	sums := map[string]stint.Hash{}
	sums[nameIn(dir, program)], err = sum(program)
	switch {
	case errors.Is(err, fs.ErrPermission): // what may be executed need not be readable
		return nil, unreadable("command[0]", err)
	case err != nil:
		return nil, s.unusable(err)
	}
	for i, arg := range s.Command[1:] {
		path := arg
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		name := nameIn(dir, path)
		if arg == "" || filepath.IsAbs(name) {
			continue
		}
		if fi, err := os.Stat(path); err != nil || !fi.Mode().IsRegular() {
			continue // an argument that is no file
		}
		if sums[name], err = sum(path); err != nil {
			return nil, unreadable(fmt.Sprintf("command[%d]", i+1), err)
		}
	}
	return sums, nil
}

func unreadable(member string, err error) error {
	return &stint.Error{Code: stint.Invalid, Op: "exec agent", Err: fmt.Errorf("%s: %w", member, err),
		Hint: "check that the file is there and may be read"}
}

// nameIn is path relative to dir with slashes, or absolute where it is not below dir.
func nameIn(dir, path string) string {
	rel, err := filepath.Rel(dir, path)
	if err != nil || !filepath.IsLocal(rel) || rel == "." {
		return filepath.Clean(path)
	}
	return filepath.ToSlash(rel)
}

// executable finds the file that starting the command would execute, by the rules
// of package proc: no relative entries of PATH.
func (s Spec) executable(dir string) (string, error) {
	name := s.Command[0]
	if strings.ContainsRune(name, '/') || strings.ContainsRune(name, filepath.Separator) {
		if filepath.IsAbs(name) {
			return name, nil
		}
		return filepath.Join(dir, name), nil
	}
	if runtime.GOOS == "windows" {
		path, err := osexec.LookPath(name)
		if err != nil {
			return "", s.unusable(err)
		}
		return filepath.Abs(path)
	}
	list, found := s.variables()["PATH"], fs.ErrNotExist
	for _, entry := range filepath.SplitList(list) {
		if !filepath.IsAbs(entry) {
			continue
		}
		path := filepath.Join(entry, name)
		fi, err := os.Stat(path)
		switch {
		case err != nil || !fi.Mode().IsRegular():
		case fi.Mode()&0o111 != 0:
			return path, nil
		default:
			found = fs.ErrPermission
		}
	}
	return "", s.unusable(fmt.Errorf("%q in PATH %q: %w", name, list, found))
}

// unusable says what is wrong with the program itself.
func (s Spec) unusable(err error) error {
	cannot := child.CannotStart(s.Dir, s.Command[0], err)
	if cannot == nil {
		return unreadable("command[0]", err)
	}
	return &stint.Error{Code: stint.Invalid, Err: cannot, Hint: cannot.Hint}
}

func sum(path string) (stint.Hash, error) {
	// A pipe would make its opener wait.
	if fi, err := os.Stat(path); err != nil {
		return stint.Hash{}, err
	} else if !fi.Mode().IsRegular() {
		return stint.Hash{}, fmt.Errorf("%s is not a regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return stint.Hash{}, err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return stint.Hash{}, err
	}
	return stint.Hash(h.Sum(nil)), nil
}
