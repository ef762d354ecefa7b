package sqlite

import (
	"cmp"
	"context"
	"encoding/binary"
	"os"
	"reflect"
	"slices"

	"github.com/stint-dev/stint"
)

// Found is who is told of what [Scan] finds. An error ends the scan and is
// returned as it is. A nil function wants none of its kind.
type Found struct {
	// Family gets each family and the place of its key in the keys file: see [AdoptKeys].
	Family func(family stint.ID, keys, slot int64) error
	// Entry gets the entries of one session after the other, each in order of seq,
	// from the first one up to the first that is missing. Where the file has several
	// different ones for one place, it gets them all, one after the other. Whether they
	// follow from each other is the caller's to verify.
	Entry func(e stint.Entry) error
	// Body gets each body that lies outside the journal and can be unpacked.
	Body func(family stint.ID, ref stint.BlobRef, body []byte) error
	// File gets each file that is kept for sessions and is as it was.
	File func(f File) error
}

// Lost is what [Scan] could not give.
type Lost struct {
	Pages   int  // pages that could not be read at all
	Rows    int  // rows of pages that could be read, but not they
	Entries int  // entries that were found behind a gap, or without their session
	Bodies  int  // bodies that could not be unpacked, or without their family
	WAL     bool // the WAL ends in something broken; what follows there is lost
	// Gaps has, for each session with a gap, the first entry that is missing: also
	// where the newest ones are, up to the head that the store has for the session.
	Gaps map[stint.ID]stint.Seq
}

// Scan reads what can be read of the database at path with its WAL, page by page:
// it needs neither a sound header nor sound tables. It never changes the file and
// takes no locks: nobody may have the database open meanwhile, in this process
// least of all. It keeps 40 bytes in memory for each entry. A folder, or a file in
// which there is nothing of a store, is [stint.Invalid].
func Scan(ctx context.Context, path string, to Found) (Lost, error) {
	info, err := os.Stat(path)
	if err == nil && info.IsDir() {
		return Lost{}, refuse(stint.Invalid, "salvage", stint.ID{}, "name the damaged file in it", "%s is a folder, and a store is a file", path)
	}
	p, err := openPages(path)
	if err != nil {
		return Lost{}, unavailable("salvage", err)
	}
	defer p.close()
	s := scan{
		pages: p, ctx: ctx, to: to, lost: Lost{Gaps: map[stint.ID]stint.Seq{}, WAL: p.walFault},
		codec: newCodec(), names: fixedNames(), families: map[int64]stint.ID{}, sessions: map[int64]stint.ID{},
		heads: map[int64]int64{},
	}
	if err := s.each(s.index); err != nil {
		return s.lost, err
	}
	if !s.ours && len(s.families)+len(s.sessions)+len(s.found) == 0 {
		return s.lost, refuse(stint.Invalid, "salvage", stint.ID{}, "name the file of a store, as stint.yaml or --store has it; `stint db restore` brings back a backup",
			"there is nothing of a store in %s", path)
	}
	if err := s.each(s.body); err != nil {
		return s.lost, err
	}
	return s.lost, s.entries()
}

// scan is one scan at work.
type scan struct {
	*pages
	ctx      context.Context
	to       Found
	lost     Lost
	codec    *codec
	names    map[int64]string
	families map[int64]stint.ID
	sessions map[int64]stint.ID
	heads    map[int64]int64 // by session: its newest entry, as far as it is known
	found    []spot
	counted  bool // what is lost was counted, by the first pass
}

// spot is where an entry lies.
type spot struct{ sid, seq, page, id int64 }

// each calls fn with each row of each table.
func (s *scan) each(fn func(page int64, r record) error) error {
	for n := int64(1); n <= s.count; n++ {
		if err := s.ctx.Err(); err != nil {
			return unavailable("salvage", err)
		}
		page := s.page(n)
		if page == nil {
			s.lost.Pages += s.once(1)
			continue
		}
		var failed error
		broken := s.leaf(n, page, func(r record) {
			if failed == nil {
				failed = fn(n, r)
			}
		})
		if failed != nil {
			return failed
		}
		s.lost.Rows += s.once(broken)
	}
	s.counted = true
	return nil
}

func (s *scan) once(n int) int {
	if s.counted {
		return 0
	}
	return n
}

// The tables, told apart by their numbers of columns.
const (
	colsNames    = 2
	colsFamilies = 4
	colsCopies   = 5
	colsBlobs    = 6
	colsSessions = 11
	colsJournal  = 20
	colsHeads    = 21
)

// index learns names, families, sessions, and where entries lie.
func (s *scan) index(page int64, r record) error {
	switch len(r.cols) {
	case colsNames:
		if t, ok := r.cols[1].(string); ok {
			s.names[r.rowid] = t
		}
	case colsFamilies:
		id, ok := idOf(r.cols[1])
		if !ok {
			break
		}
		s.families[r.rowid] = id
		keys, ok := r.cols[2].(int64)
		slot, placed := r.cols[3].(int64)
		if ok && placed && s.to.Family != nil {
			return s.to.Family(id, keys, slot)
		}
	case colsCopies:
		return s.file(r)
	case colsSessions:
		if id, ok := idOf(r.cols[1]); ok {
			s.sessions[r.rowid] = id
		}
	case colsJournal:
		sid, ok := r.cols[2].(int64)
		seq, both := r.cols[3].(int64)
		if seal := bytesOf(r.cols[15]); ok && both && len(seal) > 0 {
			s.found = append(s.found, spot{sid, seq, page, r.rowid})
		}
	case colsHeads:
		head, ok := r.cols[15].(int64)
		if ok && len(bytesOf(r.cols[17])) == 32 && len(bytesOf(r.cols[20])) == 32 {
			s.heads[r.rowid] = max(s.heads[r.rowid], head) // it only grows
		}
	}
	return nil
}

// bytesOf is a column of bytes: damage may have made text of it, with the same bytes.
func bytesOf(v any) []byte {
	switch v := v.(type) {
	case []byte:
		return v
	case string:
		return []byte(v)
	}
	return nil
}

func idOf(v any) (stint.ID, bool) {
	t, _ := v.(string)
	id, err := stint.ParseID(t)
	return id, err == nil && !id.IsZero()
}

// body gives the bodies.
func (s *scan) body(_ int64, r record) error {
	if len(r.cols) != colsBlobs || s.to.Body == nil {
		return nil
	}
	fid, ok1 := r.cols[1].(int64)
	sum, ok2 := bytesOf(r.cols[2]), r.cols[2] != nil
	size, ok3 := r.cols[3].(int64)
	enc, ok4 := r.cols[4].(int64)
	data, ok5 := bytesOf(r.cols[5]), r.cols[5] != nil
	family, known := s.families[fid]
	ref := stint.BlobRef{Size: size}
	if !ok1 || !ok2 || !ok3 || !ok4 || !ok5 || copy(ref.Sum[:], sum) != len(ref.Sum) {
		return nil // a row of something else
	}
	if !known || size > maxBlob {
		s.lost.Bodies++
		return nil
	}
	plain, err := s.codec.unpack(enc, data, size)
	if err != nil || int64(len(plain)) != size {
		s.lost.Bodies++
		return nil
	}
	return s.to.Body(family, ref, plain)
}

// entries gives the entries. A page that was freed may still hold rows that lie
// elsewhere too; rows never change, so equal ones are given once.
func (s *scan) entries() error {
	slices.SortFunc(s.found, func(a, b spot) int {
		return cmp.Or(cmp.Compare(a.sid, b.sid), cmp.Compare(a.seq, b.seq), cmp.Compare(a.page, b.page))
	})
	for rest := s.found; len(rest) > 0; {
		n := 1
		for n < len(rest) && rest[n].sid == rest[0].sid {
			n++
		}
		if err := s.session(rest[:n]); err != nil {
			return err
		}
		rest = rest[n:]
	}
	for sid, id := range s.sessions {
		if s.lost.Gaps[id] == 0 && !s.any(sid) {
			s.lost.Gaps[id] = 1
		}
	}
	return nil
}

// any reports whether an entry of the session was found.
func (s *scan) any(sid int64) bool {
	_, found := slices.BinarySearchFunc(s.found, sid, func(a spot, sid int64) int { return cmp.Compare(a.sid, sid) })
	return found
}

// session gives the entries of one session.
func (s *scan) session(spots []spot) error {
	id, ok := s.sessions[spots[0].sid]
	if !ok {
		s.lost.Entries += len(spots)
		return nil
	}
	next := int64(1)
	for rest := spots; len(rest) > 0; next++ {
		if err := s.ctx.Err(); err != nil {
			return unavailable("salvage", err)
		}
		n := 0
		for n < len(rest) && rest[n].seq == rest[0].seq {
			n++
		}
		given, err := 0, error(nil)
		if rest[0].seq == next {
			given, err = s.copies(id, rest[:n])
		}
		if err != nil {
			return err
		}
		if given == 0 {
			s.lost.Entries += len(rest)
			s.lost.Gaps[id] = stint.Seq(next)
			return nil
		}
		rest = rest[n:]
	}
	if next <= s.heads[spots[0].sid] {
		s.lost.Gaps[id] = stint.Seq(next)
	}
	return nil
}

// copies gives what the file has for one place in a session.
func (s *scan) copies(id stint.ID, spots []spot) (given int, err error) {
	var before []stint.Entry
	for _, at := range spots {
		e, ok := s.entry(id, at)
		if !ok || slices.ContainsFunc(before, func(b stint.Entry) bool { return reflect.DeepEqual(b, e) }) {
			continue
		}
		before = append(before, e)
		given++
		if s.to.Entry == nil {
			continue
		}
		if err := s.to.Entry(e); err != nil {
			return given, err
		}
	}
	return given, nil
}

// entry reads the entry at a spot again.
func (s *scan) entry(id stint.ID, at spot) (e stint.Entry, ok bool) {
	page := s.page(at.page)
	if page == nil {
		return e, false
	}
	s.leaf(at.page, page, func(r record) {
		if !ok && r.rowid == at.id && len(r.cols) == colsJournal {
			e, ok = s.decode(id, r.cols)
		}
	})
	return e, ok
}

func (s *scan) decode(id stint.ID, cols []any) (e stint.Entry, ok bool) {
	var n [15]int64 // prev to v
	for i := 1; i < len(n); i++ {
		if n[i], ok = cols[i].(int64); !ok {
			return e, false
		}
	}
	seal := bytesOf(cols[15])
	kind, known := s.names[n[4]]
	actor, knownToo := s.names[n[12]]
	if len(seal) != len(e.Hash)+len(e.Salt) || !known || !knownToo {
		return e, false
	}
	e = stint.Entry{
		Version: uint8(n[14]), Session: id, Seq: stint.Seq(n[3]), Kind: stint.Kind(kind), Epoch: n[5],
		Pos: stint.Position{Line: int(n[6]), Loop: int(n[7]), Attempt: int(n[8]), Step: int(n[9]), Sub: int(n[10])},
		At:  moment(n[11]), Actor: stint.Actor(actor), Cause: stint.Seq(n[13]),
	}
	copy(e.Salt[:], seal[copy(e.Hash[:], seal):])
	e.Data, e.Body = bytesOf(cols[16]), bytesOf(cols[17])
	if b := bytesOf(cols[18]); len(b) == len(e.Blob.Sum)+8 {
		e.Blob.Size = int64(binary.BigEndian.Uint64(b[copy(e.Blob.Sum[:], b):]))
	}
	if b := bytesOf(cols[19]); b != nil {
		e.Erased = true
		copy(e.Commit[:], b)
	}
	return e, true
}
