package sqlite_test

import (
	"bytes"
	"context"
	"os"
	"testing"

	"github.com/stint-dev/stint"
)

func TestKeys(t *testing.T) {
	path := dbPath(t)
	a := open(t, path)
	b := open(t, path)
	batch := first(t, "test")
	family := batch.Session.Family
	key, err := a.FamilyKey(t.Context(), family)
	ok(t, err)
	again, err := a.FamilyKey(t.Context(), family)
	ok(t, err)
	_, err = a.Create(t.Context(), batch, stint.Claim{})
	ok(t, err)
	other, err := b.FamilyKey(t.Context(), family)
	ok(t, err)
	if !bytes.Equal(key, again) || !bytes.Equal(key, other) || len(key) != 32 {
		t.Errorf("one family has the keys %x, %x and, in another process, %x", key, again, other)
	}
	seen := map[string]bool{string(key): true}
	for i := range 600 { // more than one block, from both
		k, err := []interface {
			FamilyKey(ctx context.Context, family stint.ID) ([]byte, error)
		}{a, b}[i%2].FamilyKey(t.Context(), newID())
		ok(t, err)
		if seen[string(k)] {
			t.Fatal("two families have one key")
		}
		seen[string(k)] = true
	}
}

// A family that has sessions but no key gets one, and both processes the same.
func TestKeysLost(t *testing.T) {
	path := dbPath(t)
	s := open(t, path)
	batch := first(t, "test")
	family := batch.Session.Family
	old, err := s.FamilyKey(t.Context(), family)
	ok(t, err)
	_, err = s.Create(t.Context(), batch, stint.Claim{})
	ok(t, err)
	ok(t, s.Close())
	ok(t, os.Remove(path+".keys"))
	a, b := open(t, path), open(t, path)
	fresh, err := a.FamilyKey(t.Context(), family)
	ok(t, err)
	same, err := b.FamilyKey(t.Context(), family)
	ok(t, err)
	if bytes.Equal(old, fresh) || !bytes.Equal(fresh, same) {
		t.Errorf("after the loss of %x: %x, and in another process %x", old, fresh, same)
	}
}

func TestKeysErased(t *testing.T) {
	path := dbPath(t)
	s := open(t, path)
	batch := first(t, "test")
	family := batch.Session.Family
	key, err := s.FamilyKey(t.Context(), family)
	ok(t, err)
	_, err = s.Create(t.Context(), batch, stint.Claim{})
	ok(t, err)
	ok(t, s.Close())
	file, err := os.ReadFile(path + ".keys")
	ok(t, err)
	ok(t, os.WriteFile(path+".keys", bytes.Replace(file, key, make([]byte, 32), 1), 0o600))
	_, err = open(t, path).FamilyKey(t.Context(), family)
	refused(t, err, stint.NotFound, "erased")
}

func TestKeysForeign(t *testing.T) {
	mine, theirs := dbPath(t), dbPath(t)
	for _, p := range []string{mine, theirs} {
		s := open(t, p)
		_, err := s.FamilyKey(t.Context(), newID())
		ok(t, err)
		ok(t, s.Close())
	}
	b, err := os.ReadFile(theirs + ".keys")
	ok(t, err)
	ok(t, os.WriteFile(mine+".keys", b, 0o600))
	_, err = open(t, mine).FamilyKey(t.Context(), newID())
	refused(t, err, stint.Conflict, "another store")
	ok(t, os.WriteFile(mine+".keys", []byte("rubbish"), 0o600))
	_, err = open(t, mine).FamilyKey(t.Context(), newID())
	refused(t, err, stint.Corrupt, "not a keys file")
}

// An older database beside a newer keys file must not use a slot twice.
func TestKeysOlderDatabase(t *testing.T) {
	path := dbPath(t)
	s := open(t, path)
	_, err := s.Create(t.Context(), first(t, "test"), stint.Claim{})
	ok(t, err)
	ok(t, s.Close())
	old, err := os.ReadFile(path)
	ok(t, err)
	s = open(t, path)
	batch := first(t, "test")
	key, err := s.FamilyKey(t.Context(), batch.Session.Family)
	ok(t, err)
	ok(t, s.Close())
	ok(t, os.WriteFile(path, old, 0o600))
	s = open(t, path)
	for range 300 {
		k, err := s.FamilyKey(t.Context(), newID())
		ok(t, err)
		if bytes.Equal(k, key) {
			t.Fatal("a key was given out twice")
		}
	}
	file, err := os.ReadFile(path + ".keys")
	ok(t, err)
	if !bytes.Contains(file, key) {
		t.Error("the key of the newer database is gone")
	}
}
