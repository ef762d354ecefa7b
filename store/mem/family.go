package mem

import (
	"bytes"
	"context"
	"crypto/rand"
	"maps"

	"github.com/stint-dev/stint"
)

// family is what the sessions of one family share.
type family struct {
	key    []byte
	blobs  map[stint.Hash][]byte
	meters map[string]use
}

// use is how much of something limited a family used, or may yet use.
type use struct{ spent, reserved int64 }

// family returns the family id, making it if need be. The caller has the lock.
func (s *Store) family(id stint.ID) *family {
	f := s.families[id]
	if f == nil {
		f = &family{key: make([]byte, 32), blobs: map[stint.Hash][]byte{}, meters: map[string]use{}}
		_, _ = rand.Read(f.key) // it never fails, see crypto/rand
		s.families[id] = f
	}
	return f
}

// metered returns the use after ms, or [stint.Limit].
func (f *family) metered(ms []stint.Meter) (map[string]use, error) {
	next := maps.Clone(f.meters)
	for _, m := range ms {
		u := next[m.Metric]
		next[m.Metric] = use{u.spent + m.Spend, u.reserved + m.Reserve}
		if m.Reserve > 0 && m.Limit >= 0 && u.spent+m.Spend+u.reserved+m.Reserve > m.Limit {
			e := stint.Limit.Errorf("reserve", "%d more %s after %d spent and %d reserved would pass the limit of %d", m.Reserve, m.Metric, u.spent, u.reserved, m.Limit)
			e.Metric, e.Hint = m.Metric, "raise the limit of "+m.Metric+", or wait until what is reserved was settled"
			return nil, e
		}
	}
	return next, nil
}

// Blob implements [stint.Blobs].
func (s *Store) Blob(_ context.Context, family stint.ID, ref stint.BlobRef) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	body, ok := s.family(family).blobs[ref.Sum]
	if !ok {
		return nil, refuse(stint.NotFound, "blob", stint.ID{}, "it was erased, or never written", "family %s has no body %s", family, ref.Sum)
	}
	if int64(len(body)) != ref.Size {
		return nil, refuse(stint.Corrupt, "blob", stint.ID{}, "keep a copy of the store; `stint verify` lists what is sound",
			"body %s has %d bytes, not %d", ref.Sum, len(body), ref.Size)
	}
	return body, nil
}

// FamilyKey implements [stint.Blobs]. The key is the caller's own copy.
func (s *Store) FamilyKey(_ context.Context, family stint.ID) ([]byte, error) {
	if err := s.lock("family key"); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	return bytes.Clone(s.family(family).key), nil
}
