package sqlite

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"
	"sync"

	"zombiezen.com/go/sqlite"

	"github.com/stint-dev/stint"
)

// The keys file lies beside the database, so that a backup of the database alone
// opens nothing: a header, then slots of 32 random bytes each. A slot of zeros is
// an erased key. The database knows the generation of the file, which rises when
// one was lost, and for each family the generation and the slot. The file only
// grows: slots are given out at its end, under the database's write lock, so that
// an older copy of the database never leads to a slot being used twice.
const (
	keysMagic  = "stintkey"
	keysHeader = 32 // magic, generation, the store's id
	keySize    = 32
	keyBlock   = 256 // slots that a process takes at once
)

// keyring hands out the keys of families.
type keyring struct {
	path    string
	s       *Store
	pending sync.Map // of families that have no session yet: their place

	turn      chan struct{} // holds one value while somebody uses what follows
	gen       int64         // of the file; 0: not known yet
	next, end int64         // slots that are written and free
}

// place is where a key lies.
type place struct{ gen, slot int64 }

func newKeyring(s *Store) *keyring {
	return &keyring{path: s.opt.Path + ".keys", s: s, turn: make(chan struct{}, 1)}
}

// FamilyKey implements [stint.Blobs]. If the keys file was lost, families get new
// keys, and the ids of the bodies that they had before can no longer be checked;
// the bodies can still be read. An erased key is [stint.NotFound].
func (s *Store) FamilyKey(ctx context.Context, family stint.ID) ([]byte, error) {
	if family.IsZero() {
		return nil, stint.Invalid.Errorf("family key", "no family is named")
	}
	k := s.keys
	select {
	case k.turn <- struct{}{}:
		defer func() { <-k.turn }()
	case <-ctx.Done():
		return nil, unavailable("family key", ctx.Err())
	}
	if err := k.open(ctx); err != nil {
		return nil, err
	}
	if p, ok := k.pending.Load(family); ok {
		return k.key(family, p.(place).slot)
	}
	slot, known, err := k.stored(ctx, family)
	if err != nil {
		return nil, err
	}
	if slot < 0 {
		if slot, err = k.assign(ctx, family, known); err != nil {
			return nil, err
		}
	}
	return k.key(family, slot)
}

// stored returns the slot of a family, -1 if it has none in this file, and whether
// the database knows the family at all.
func (k *keyring) stored(ctx context.Context, family stint.ID) (slot int64, known bool, err error) {
	slot = -1
	err = k.s.read(ctx, "family key", func(c *sqlite.Conn) error {
		known, err = one(c, "SELECT keys, slot FROM families WHERE id = ?", func(st *sqlite.Stmt) {
			if !st.ColumnIsNull(0) && st.ColumnInt64(0) == k.gen {
				slot = st.ColumnInt64(1)
			}
		}, family.String())
		return err
	})
	return slot, known, err
}

// assign gives a family a slot. One that the database knows gets it written at
// once, any other with its first session.
func (k *keyring) assign(ctx context.Context, family stint.ID, known bool) (int64, error) {
	if k.next == k.end {
		o := &op{kind: opReserve}
		if err := k.s.do(ctx, o); err != nil {
			return 0, err
		}
		k.gen, k.next, k.end = o.lease.Epoch, o.n, o.n+keyBlock
	}
	slot := k.next
	k.next++
	if !known {
		k.pending.Store(family, place{k.gen, slot})
		return slot, nil
	}
	o := &op{kind: opSlot, lease: stint.Lease{Session: family, Epoch: k.gen}, n: slot}
	err := k.s.do(ctx, o)
	return o.n, err
}

// key reads a slot.
func (k *keyring) key(family stint.ID, slot int64) ([]byte, error) {
	f, err := os.Open(k.path)
	if err != nil {
		return nil, unavailable("family key", err)
	}
	defer f.Close()
	key := make([]byte, keySize)
	if _, err := f.ReadAt(key, keysHeader+slot*keySize); err != nil && !errors.Is(err, io.EOF) {
		return nil, unavailable("family key", err)
	}
	if bytes.Equal(key, make([]byte, keySize)) {
		return nil, refuse(stint.NotFound, "family key", stint.ID{}, "nothing that was kept under it can be read any more", "the key of family %s was erased", family)
	}
	return key, nil
}

// open checks the keys file, if there is one, or leaves it to the committer to
// make one.
func (k *keyring) open(ctx context.Context) error {
	if k.gen != 0 {
		return nil
	}
	var gen int64
	var store []byte
	err := k.s.read(ctx, "family key", func(c *sqlite.Conn) (err error) {
		gen, store, err = generation(c)
		return err
	})
	if err != nil {
		return err
	}
	f, err := os.Open(k.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return unavailable("family key", err)
	}
	defer f.Close()
	found, err := k.header(f, store)
	if found == gen {
		k.gen = gen
	}
	return err
}

// generation returns what the database knows of its keys file.
func generation(c *sqlite.Conn) (gen int64, store []byte, err error) {
	_, err = one(c, "SELECT (SELECT value FROM meta WHERE name = 'keys.gen'), (SELECT value FROM meta WHERE name = 'store.id')",
		func(st *sqlite.Stmt) { gen, store = st.ColumnInt64(0), column(st, 1) })
	return gen, store, err
}

// header reads the generation of a keys file, which must be one of this store.
func (k *keyring) header(f *os.File, store []byte) (int64, error) {
	b := make([]byte, keysHeader)
	if _, err := f.ReadAt(b, 0); err != nil || string(b[:8]) != keysMagic {
		return 0, refuse(stint.Corrupt, "family key", stint.ID{}, "put the right file back, or move this one away to give families new keys", "%s is not a keys file", k.path)
	}
	if !bytes.Equal(b[16:], store) {
		return 0, refuse(stint.Conflict, "family key", stint.ID{}, "put the right file back, or move this one away to give families new keys", "%s belongs to another store", k.path)
	}
	return int64(binary.BigEndian.Uint64(b[8:])), nil
}

// look reads the header of the keys file, which must be one of this store, and its
// size: -1 if there is no such file.
func (k *keyring) look(store []byte) (gen, size int64, err error) {
	f, err := os.Open(k.path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, -1, nil
	}
	if err != nil {
		return 0, 0, unavailable("family key", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return 0, 0, unavailable("family key", err)
	}
	gen, err = k.header(f, store)
	return gen, info.Size(), err
}

// reserve makes a block of keys at the end of the file. It is in a transaction
// that writes, so that no other process does the same.
func (w *writer) reserve(o *op) error {
	k := w.keys
	gen, store, err := generation(w.c)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(k.path, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		b := binary.BigEndian.AppendUint64([]byte(keysMagic), uint64(gen+1))
		part := k.path + ".part"
		if err = os.WriteFile(part, append(b, store...), 0o600); err == nil {
			err = settle(part, k.path)
		}
		if err == nil {
			f, err = os.OpenFile(k.path, os.O_RDWR, 0)
		}
	}
	if err != nil {
		return unavailable("family key", err)
	}
	defer f.Close()
	found, err := k.header(f, store)
	if err != nil {
		return err
	}
	if found != gen {
		if err := exec(w.c, "INSERT OR REPLACE INTO meta(name, value) VALUES ('keys.gen', ?)", found); err != nil {
			return err
		}
	}
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return unavailable("family key", err)
	}
	o.lease.Epoch, o.n = found, (size-keysHeader+keySize-1)/keySize
	block := make([]byte, keyBlock*keySize)
	_, _ = rand.Read(block) // it never fails, see crypto/rand
	if _, err = f.WriteAt(block, keysHeader+o.n*keySize); err == nil {
		err = f.Sync()
	}
	if err != nil {
		return unavailable("family key", err)
	}
	return nil
}

// slot writes the slot of a family that has none, and finds the one that another
// process gave it meanwhile.
func (w *writer) slot(o *op) error {
	id, gen := o.lease.Session.String(), o.lease.Epoch
	if err := exec(w.c, "UPDATE families SET keys = ?1, slot = ?2 WHERE id = ?3 AND keys IS NOT ?1", gen, o.n, id); err != nil {
		return err
	}
	_, err := one(w.c, "SELECT slot FROM families WHERE id = ?", func(st *sqlite.Stmt) { o.n = st.ColumnInt64(0) }, id)
	return err
}
