package sqlite

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/stint-dev/stint"
)

// AdoptKeys makes a new store at to that has the families and the keys of the
// damaged one at from, so that the bodies that are brought over keep names that
// can be checked. What [Scan] finds goes into it by [Store.Create] and
// [Store.Append]. Without a keys file at from, or with one that is none, adopted is
// false: families get new keys, and the names of their bodies cannot be checked any
// more. If it fails, nothing is left at to.
func AdoptKeys(ctx context.Context, from, to string) (adopted bool, err error) {
	if _, err := os.Lstat(to); !errors.Is(err, fs.ErrNotExist) {
		return false, refuse(stint.Exists, "salvage", stint.ID{}, "choose a new path", "%s is there already", to)
	}
	header, slots, err := keysOf(from + ".keys")
	if err != nil {
		return false, err
	}
	var rows []familyKey
	if _, err := Scan(ctx, from, Found{Family: func(id stint.ID, keys, slot int64) error {
		rows = append(rows, familyKey{id, keys, slot})
		return nil
	}}); err != nil {
		return false, err
	}
	s, err := Open(ctx, Options{Path: to})
	if err != nil {
		return false, err
	}
	if header != nil {
		if err = copyFile(from+".keys", to+".keys"); err == nil {
			err = s.w.adopt(header, slots, rows) // nobody else uses the writer yet
		}
	}
	if err = errors.Join(err, s.Close()); err != nil {
		for _, suffix := range []string{"", "-wal", "-shm", ".keys"} {
			_ = os.Remove(to + suffix)
		}
		_ = os.RemoveAll(to + ".d")
	}
	return header != nil, explain("salvage", err)
}

// familyKey is where the key of a family lies.
type familyKey struct {
	id         stint.ID
	keys, slot int64
}

// keysOf reads the header of a keys file, nil if it is none, and how many keys are
// in it.
func keysOf(path string) (header []byte, slots int64, err error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, unavailable("salvage", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, 0, unavailable("salvage", err)
	}
	header = make([]byte, keysHeader)
	if _, err := io.ReadFull(f, header); err != nil || string(header[:8]) != keysMagic {
		return nil, 0, nil //nolint:nilerr // it is no keys file
	}
	return header, (info.Size() - keysHeader) / keySize, nil
}

// adopt writes which keys file the store has, and where in it the families' keys
// are. A place that cannot be one is not taken over.
func (w *writer) adopt(header []byte, slots int64, rows []familyKey) error {
	gen := int64(binary.BigEndian.Uint64(header[8:]))
	if err := exec(w.c, "BEGIN IMMEDIATE"); err != nil {
		return err
	}
	if err := exec(w.c, "INSERT OR REPLACE INTO meta(name, value) VALUES ('store.id', ?), ('keys.gen', ?)", header[16:], gen); err != nil {
		return err
	}
	taken := map[int64]bool{}
	for _, r := range rows {
		if r.keys != gen || r.slot < 0 || r.slot >= slots || taken[r.slot] {
			continue
		}
		if err := exec(w.c, "INSERT OR IGNORE INTO families(id, keys, slot) VALUES (?, ?, ?)", r.id.String(), gen, r.slot); err != nil {
			return err
		}
		taken[r.slot] = w.c.Changes() > 0
	}
	return exec(w.c, "COMMIT")
}
