package sqlite

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"

	"github.com/stint-dev/stint"
)

// Found is who is told of what [Scan] finds. An error ends the scan and is
// returned as it is. A nil function wants none of its kind.
type Found struct {
	// Family gets each family and the place of its key in the keys file: see [AdoptKeys].
	Family func(family stint.ID, keys, slot int64) error
	// Entry gets the entries of one session after the other, each in order of seq,
	// from the first one up to the first that is missing. Whether they follow from
	// each other is the caller's to verify.
	Entry func(e stint.Entry) error
	// Body gets each body that lies outside the journal and can be unpacked.
	Body func(family stint.ID, ref stint.BlobRef, body []byte) error
}

// Lost is what [Scan] could not give.
type Lost struct {
	Pages   int  // pages that could not be read at all
	Rows    int  // rows of pages that could be read, but not they
	Entries int  // entries that were found behind a gap, or without their session
	Bodies  int  // bodies that could not be unpacked, or without their family
	WAL     bool // the WAL ends in something broken; what follows there is lost
	// Gaps has, for each session with a gap, the first entry that is missing.
	Gaps map[stint.ID]stint.Seq
}

// Scan reads what can be read of the database at path with its WAL, page by page:
// it needs neither a sound header nor sound tables. It never changes the file and
// takes no locks: nobody may have the database open meanwhile, in this process
// least of all. It keeps 40 bytes in memory for each entry.
func Scan(ctx context.Context, path string, to Found) (Lost, error) {
	p, err := openPages(path)
	if err != nil {
		return Lost{}, unavailable("salvage", err)
	}
	defer p.close()
	s := scan{
		pages: p, ctx: ctx, to: to, lost: Lost{Gaps: map[stint.ID]stint.Seq{}, WAL: p.walFault},
		codec: newCodec(), names: fixedNames(), families: map[int64]stint.ID{}, sessions: map[int64]stint.ID{},
	}
	for _, pass := range []func(n int64, r record) error{s.index, s.body} {
		if err := s.each(pass); err != nil {
			return s.lost, err
		}
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
	colsBlobs    = 6
	colsSessions = 11
	colsJournal  = 20
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
	case colsSessions:
		if id, ok := idOf(r.cols[1]); ok {
			s.sessions[r.rowid] = id
		}
	case colsJournal:
		sid, ok := r.cols[2].(int64)
		seq, both := r.cols[3].(int64)
		if _, sealed := r.cols[15].([]byte); ok && both && sealed { // a row of heads is as wide
			s.found = append(s.found, spot{sid, seq, page, r.rowid})
		}
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
	sum, ok2 := r.cols[2].([]byte)
	size, ok3 := r.cols[3].(int64)
	enc, ok4 := r.cols[4].(int64)
	data, ok5 := r.cols[5].([]byte)
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
// elsewhere too; rows never change, so any copy will do.
func (s *scan) entries() error {
	slices.SortFunc(s.found, func(a, b spot) int {
		return cmp.Or(cmp.Compare(a.sid, b.sid), cmp.Compare(a.seq, b.seq))
	})
	s.found = slices.CompactFunc(s.found, func(a, b spot) bool { return a.sid == b.sid && a.seq == b.seq })
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
	return nil
}

// session gives the entries of one session.
func (s *scan) session(spots []spot) error {
	id, ok := s.sessions[spots[0].sid]
	if !ok {
		s.lost.Entries += len(spots)
		return nil
	}
	for i, at := range spots {
		if err := s.ctx.Err(); err != nil {
			return unavailable("salvage", err)
		}
		e, ok := stint.Entry{}, at.seq == int64(i)+1
		if ok {
			e, ok = s.entry(id, at)
		}
		if !ok {
			s.lost.Entries += len(spots) - i
			s.lost.Gaps[id] = stint.Seq(i) + 1
			return nil
		}
		if s.to.Entry != nil {
			if err := s.to.Entry(e); err != nil {
				return err
			}
		}
	}
	return nil
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
	seal, _ := cols[15].([]byte)
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
	e.Data, _ = cols[16].([]byte)
	e.Body, _ = cols[17].([]byte)
	if b, _ := cols[18].([]byte); len(b) == len(e.Blob.Sum)+8 {
		e.Blob.Size = int64(binary.BigEndian.Uint64(b[copy(e.Blob.Sum[:], b):]))
	}
	if b, isErased := cols[19].([]byte); isErased {
		e.Erased = true
		copy(e.Commit[:], b)
	}
	return e, true
}

// AdoptKeys makes a new store at to that has the families and the keys of the
// damaged one at from, so that the bodies that are brought over keep names that
// can be checked. What [Scan] finds goes into it by [Store.Create] and
// [Store.Append]. Without a keys file at from, families get new keys.
func AdoptKeys(ctx context.Context, from, to string) error {
	if _, err := os.Lstat(to); !errors.Is(err, fs.ErrNotExist) {
		return refuse(stint.Exists, "salvage", stint.ID{}, "choose a new path", "%s is there already", to)
	}
	header := make([]byte, keysHeader)
	f, err := os.Open(from + ".keys")
	if err == nil {
		_, err = io.ReadFull(f, header)
		_ = f.Close()
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return unavailable("salvage", err)
	}
	adopt := err == nil && string(header[:8]) == keysMagic
	type row struct {
		id         stint.ID
		keys, slot int64
	}
	var rows []row
	if _, err := Scan(ctx, from, Found{Family: func(id stint.ID, keys, slot int64) error {
		rows = append(rows, row{id, keys, slot})
		return nil
	}}); err != nil {
		return err
	}
	s, err := Open(ctx, Options{Path: to})
	if err != nil {
		return err
	}
	if adopt {
		err = copyFile(from+".keys", to+".keys")
	}
	if err == nil && adopt {
		c := s.w.c // nobody else uses it yet
		err = exec(c, "BEGIN IMMEDIATE")
		if err == nil {
			err = exec(c, "INSERT OR REPLACE INTO meta(name, value) VALUES ('store.id', ?), ('keys.gen', ?)", header[16:], int64(binary.BigEndian.Uint64(header[8:])))
		}
		for _, r := range rows {
			if err == nil {
				err = exec(c, "INSERT OR IGNORE INTO families(id, keys, slot) VALUES (?, ?, ?)", r.id.String(), r.keys, r.slot)
			}
		}
		if err == nil {
			err = exec(c, "COMMIT")
		}
	}
	if e := s.Close(); err == nil {
		err = e
	}
	return explain("salvage", err)
}
