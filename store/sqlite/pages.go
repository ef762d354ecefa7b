package sqlite

import (
	"encoding/binary"
	"errors"
	"io"
	"os"
)

// This file reads the pages and records of a database without SQLite, which gives
// up on the tables that a broken page belongs to. See the SQLite file format.

// pages gives the pages of a database with its WAL.
type pages struct {
	db, wal  *os.File // wal may be nil
	size     int64    // of a page
	usable   int64    // bytes of a page that hold data
	ours     bool     // the header is that of a store
	count    int64    // pages of the database
	frames   map[int64]int64
	walFault bool // the WAL has frames that are not whole
}

// openPages opens the database at path for reading its pages.
func openPages(path string) (*pages, error) {
	db, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	p := &pages{db: db, size: pageSize, usable: pageSize, frames: map[int64]int64{}}
	info, err := db.Stat()
	if err != nil {
		_ = db.Close()
		return nil, err
	}
	if p.wal, err = os.Open(path + "-wal"); err == nil {
		err = p.readWAL()
	} else if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	if err != nil {
		p.close()
		return nil, err
	}
	header := make([]byte, 100)
	if first := p.page(1); first != nil {
		copy(header, first)
	}
	if string(header[:15]) == "SQLite format 3" {
		// A damaged header must not part the file in other places than its writer did.
		n, pages := int64(binary.BigEndian.Uint16(header[16:])), int64(binary.BigEndian.Uint32(header[28:]))
		if n >= minPage && n&(n-1) == 0 && n*pages == info.Size() {
			p.size = n
		}
		p.usable = p.size // no store keeps bytes of a page for anything else
		p.ours = binary.BigEndian.Uint32(header[68:]) == applicationID
	}
	p.count = (info.Size() + p.size - 1) / p.size
	for n := range p.frames {
		p.count = max(p.count, n)
	}
	return p, nil
}

func (p *pages) close() {
	_ = p.db.Close()
	if p.wal != nil {
		_ = p.wal.Close()
	}
}

// readWAL finds the newest frame of each page, up to the last commit whose frames
// are whole.
func (p *pages) readWAL() error {
	header := make([]byte, 32)
	if _, err := io.ReadFull(p.wal, header); err != nil {
		return nil //nolint:nilerr // a WAL without a header has nothing to give
	}
	magic := binary.BigEndian.Uint32(header)
	size := int64(binary.BigEndian.Uint32(header[8:]))
	if magic&^1 != 0x377f0682 || size < 512 || size > 65536 || size&(size-1) != 0 {
		return nil
	}
	var order binary.ByteOrder = binary.LittleEndian
	if magic&1 == 1 {
		order = binary.BigEndian
	}
	sum := checksum(order, [2]uint32{}, header[:24])
	if sum != [2]uint32{binary.BigEndian.Uint32(header[24:]), binary.BigEndian.Uint32(header[28:])} {
		p.walFault = true
		return nil
	}
	p.size = size
	open := map[int64]int64{}
	frame := make([]byte, 24+size)
	for off := int64(32); ; off += int64(len(frame)) {
		if _, err := p.wal.ReadAt(frame, off); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if string(frame[8:16]) != string(header[16:24]) {
			return nil // left over from before the WAL started over
		}
		sum = checksum(order, checksum(order, sum, frame[:8]), frame[24:])
		if sum != [2]uint32{binary.BigEndian.Uint32(frame[16:]), binary.BigEndian.Uint32(frame[20:])} {
			p.walFault = true
			return nil
		}
		open[int64(binary.BigEndian.Uint32(frame))] = off + 24
		if binary.BigEndian.Uint32(frame[4:]) != 0 { // a commit
			for n, at := range open {
				p.frames[n] = at
			}
			clear(open)
		}
	}
}

func checksum(order binary.ByteOrder, s [2]uint32, b []byte) [2]uint32 {
	for ; len(b) >= 8; b = b[8:] {
		s[0] += order.Uint32(b) + s[1]
		s[1] += order.Uint32(b[4:]) + s[0]
	}
	return s
}

// page returns page n, nil if it cannot be read whole.
func (p *pages) page(n int64) []byte {
	b := make([]byte, p.size)
	if at, ok := p.frames[n]; ok {
		if _, err := p.wal.ReadAt(b, at); err == nil {
			return b
		}
		return nil
	}
	if n < 1 {
		return nil
	}
	if _, err := p.db.ReadAt(b, (n-1)*p.size); err != nil {
		return nil
	}
	return b
}

// record is a row of a table: its rowid and its columns, each nil, int64, string
// or []byte. Other numbers are left out as nil: no table has them.
type record struct {
	rowid int64
	cols  []any
}

// leaf calls fn with each record of a page, if it is a leaf of a table, and
// returns how many cells of it could not be read.
func (p *pages) leaf(n int64, page []byte, fn func(r record)) (broken int) {
	at := int64(0)
	if n == 1 {
		at = 100
	}
	if page[at] != 0x0d {
		return 0
	}
	cells := int64(binary.BigEndian.Uint16(page[at+3:]))
	for i := range cells {
		slot := at + 8 + 2*i
		if slot+2 > p.usable {
			return broken + int(cells-i)
		}
		r, ok := p.cell(page[:p.usable], int64(binary.BigEndian.Uint16(page[slot:])))
		if ok {
			fn(r)
		} else {
			broken++
		}
	}
	return broken
}

// cell reads the cell at offset off of a leaf.
func (p *pages) cell(page []byte, off int64) (r record, ok bool) {
	if off >= int64(len(page)) {
		return r, false
	}
	size, n := varint(page[off:])
	rowid, m := varint(page[min(off+n, int64(len(page))):])
	off += n + m
	if n == 0 || m == 0 || size < 0 || size > p.count*p.size {
		return r, false
	}
	local := size
	if most := p.usable - 35; size > most {
		least := (p.usable-12)*32/255 - 23
		if local = least + (size-least)%(p.usable-4); local > most {
			local = least
		}
	}
	if off+local > int64(len(page)) {
		return r, false
	}
	payload := page[off : off+local]
	if local < size {
		if off+local+4 > int64(len(page)) {
			return r, false
		}
		payload = p.overflow(payload, size, int64(binary.BigEndian.Uint32(page[off+local:])))
	}
	if int64(len(payload)) != size {
		return r, false
	}
	cols, ok := columns(payload)
	return record{rowid, cols}, ok
}

// overflow appends what lies on overflow pages from next on.
func (p *pages) overflow(local []byte, size, next int64) []byte {
	all := append(make([]byte, 0, len(local)+int(p.usable)), local...)
	for int64(len(all)) < size {
		page := p.page(next)
		if page == nil {
			return nil
		}
		next = int64(binary.BigEndian.Uint32(page))
		all = append(all, page[4:min(p.usable, 4+size-int64(len(all)))]...)
	}
	return all
}

// columns decodes a record.
func columns(b []byte) (cols []any, ok bool) {
	head, n := varint(b)
	if n == 0 || head < n || head > int64(len(b)) {
		return nil, false
	}
	types, body := b[n:head], b[head:]
	for len(types) > 0 {
		t, n := varint(types)
		if n == 0 || t < 0 {
			return nil, false
		}
		types = types[n:]
		size := int64(0)
		switch {
		case t >= 12:
			size = (t - 12) / 2
		case t == 5:
			size = 6
		case t == 6, t == 7:
			size = 8
		case t <= 4:
			size = t
		}
		if size > int64(len(body)) {
			return nil, false
		}
		cols = append(cols, decoded(t, body[:size]))
		body = body[size:]
	}
	return cols, true
}

// decoded is the value of serial type t.
func decoded(t int64, b []byte) any {
	switch {
	case t >= 12 && t%2 == 0:
		return b
	case t >= 13:
		return string(b)
	case t == 8, t == 9:
		return t - 8
	case t == 0, t == 7, t >= 10:
		return nil
	}
	v := int64(int8(b[0]))
	for _, c := range b[1:] {
		v = v<<8 | int64(c)
	}
	return v
}

// varint reads a number of 1 to 9 bytes, big end first; n is 0 if b is too short.
func varint(b []byte) (v, n int64) {
	for i := range min(len(b), 9) {
		if i == 8 {
			return v<<8 | int64(b[i]), 9
		}
		v = v<<7 | int64(b[i]&0x7f)
		if b[i] < 0x80 {
			return v, int64(i) + 1
		}
	}
	return 0, 0
}
