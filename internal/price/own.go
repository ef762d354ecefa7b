package price

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/stint-dev/stint"
)

// most is how many bytes a file of prices has at most.
const most = 1 << 20

// read returns the content of a file. Its error names the file.
func read(path string) ([]byte, error) {
	info, err := os.Stat(path) // a pipe is not opened: nobody may ever write into it
	if err != nil {
		return nil, fmt.Errorf("prices: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, stint.Invalid.Errorf("prices", "%s is not a file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("prices: %w", err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return nil, fmt.Errorf("prices: %w", err)
	}
	if len(b) > most {
		return nil, stint.Invalid.Errorf("prices", "%s has more than %d bytes", path, most)
	}
	return b, nil
}

// Open is [Load], or [Default] where there is no such file.
func Open(path string) (*Table, error) {
	t, err := Load(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Default()
	}
	return t, err
}

// Set gives a model, or a pattern of models, its prices in a file, which is made if there is
// none; date is the day, like 2026-11-29. Other rows stay, and a row that names other models
// too stays for those. The file gets another version each time that it changes, so that one
// recorded with an amount means one price. changed is false when the file has these prices
// already. The file is replaced as a whole or not at all; [stint.Conflict] says that
// somebody else changed it meanwhile.
func Set(path, model string, r Rates, date string) (changed bool, err error) {
	if n := utf8.RuneCountInString(model); n < 1 || n > 200 || !utf8.ValidString(model) || strings.ContainsFunc(model, func(c rune) bool { return !unicode.IsGraphic(c) || unicode.IsSpace(c) }) {
		e := stint.Invalid.Errorf("prices", "%q is no name of a model", model)
		e.Hint = "give it as the provider writes it, or with * for anything: 1 to 200 characters without white space"
		return false, e
	}
	row := fileRow{Names: []string{model}, fileRates: fileRates{Input: &r.Input, Output: &r.Output, CacheRead: &r.CacheRead, CacheWrite: &r.CacheWrite}}
	return edit(path, date, func(f *file) bool {
		for i := range f.Models {
			m := &f.Models[i]
			if has, err := m.rates(); err == nil && has == r && m.Long == nil && slices.Contains(m.Names, model) {
				return false
			}
		}
		f.drop(model)
		f.Models = append(f.Models, row)
		return true
	})
}

// Unset takes the prices of a model out of a file, as Set put them in. changed is false when
// the file has none of just that name.
func Unset(path, model, date string) (changed bool, err error) {
	return edit(path, date, func(f *file) bool { return f.drop(model) })
}

// drop takes a name out of the rows, and with its last name a row.
func (f *file) drop(model string) (found bool) {
	for i := range f.Models {
		if at := slices.Index(f.Models[i].Names, model); at >= 0 {
			f.Models[i].Names = slices.Delete(f.Models[i].Names, at, at+1)
			found = true
		}
	}
	f.Models = slices.DeleteFunc(f.Models, func(r fileRow) bool { return len(r.Names) == 0 })
	return found
}

// edit changes a file. change reports whether it did.
func edit(path, date string, change func(*file) bool) (changed bool, err error) {
	if to, err := filepath.EvalSymlinks(path); err == nil {
		path = to // a link stays one
	}
	f := file{Version: "own-0", Models: []fileRow{}}
	before, err := read(path)
	switch {
	case err == nil:
		if _, err = parse(before, path, nil); err == nil {
			err = json.Unmarshal(before, &f)
		}
		if err != nil {
			return false, err
		}
	case !errors.Is(err, fs.ErrNotExist):
		return false, err
	}
	if !change(&f) {
		return false, nil
	}
	f.Version, f.Date = next(f.Version), date
	after, err := json.MarshalIndent(&f, "", "  ")
	if err != nil {
		return false, err
	}
	if after = append(after, '\n'); len(after) > most {
		return false, stint.Invalid.Errorf("prices", "%s would have more than %d bytes", path, most)
	}
	if _, err := parse(after, path, nil); err != nil {
		return false, err
	}
	if err := replace(path, before, after); err != nil {
		return false, err
	}
	return true, nil
}

// next returns the version after v: "own-2" after "own-1", "mine-2" after "mine".
func next(v string) string {
	name := strings.TrimRight(v, "0123456789")
	if n, err := strconv.Atoi(v[len(name):]); err == nil && n < 1_000_000_000 {
		v = name + strconv.Itoa(n+1)
	} else {
		v += "-2"
	}
	if long := []rune(v); len(long) > 40 {
		v = string(long[len(long)-40:])
	}
	return v
}

// replace writes a file that has the content before, or is not there if that is nil.
func replace(path string, before, after []byte) error {
	failed := func(err error) error {
		return &stint.Error{Code: stint.Unavailable, Op: "prices", Err: err, Hint: "--file takes a file in a folder that is there and that you may write to"}
	}
	mode := fs.FileMode(0o644)
	if info, err := os.Stat(path); err == nil {
		mode = info.Mode().Perm()
	}
	part, err := os.CreateTemp(filepath.Dir(path), ".prices-*")
	if err != nil {
		var at *fs.PathError
		if errors.As(err, &at) { // nobody knows the name that it has
			err = fmt.Errorf("%s: %w", path, at.Err)
		}
		return failed(err)
	}
	defer os.Remove(part.Name()) //nolint:errcheck // it is gone once it has its name
	_, err = part.Write(after)
	if err = errors.Join(err, part.Sync(), part.Close()); err == nil {
		err = os.Chmod(part.Name(), mode)
	}
	if err != nil {
		return failed(err)
	}
	if now, err := read(path); (err == nil) != (before != nil) || !bytes.Equal(now, before) {
		e := stint.Conflict.Errorf("prices", "%s has just been changed by somebody else", path)
		e.Hint = "look at it, and try again"
		return e
	}
	if err := os.Rename(part.Name(), path); err != nil {
		return failed(err)
	}
	return nil
}
