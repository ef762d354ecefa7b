package delta

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"math/bits"
)

const (
	// minCopy is the shortest copy worth an op: at its most a copy takes 8 bytes and
	// splits an insert, whose second head takes 4. So a delta never outgrows an insert
	// of the whole state.
	minCopy = 12
	// minMiddle is the shortest middle, on either side, that is searched for matches.
	minMiddle = 64
	// reach is how far, in bytes, resync looks ahead on each side; seed is what must be
	// equal there, and sure how long the match must then be to be taken at once. It is
	// long so that no accidental likeness is preferred to what the table would find.
	reach = 64
	seed  = 16
	sure  = 1024
	// window bounds the part of the old middle that is put into the table: this many
	// bytes on each side for each byte of the new middle that is left.
	window = 32
)

// Make returns a delta from which Apply rebuilds new when it is given old. Neither is
// changed or kept. The delta is at most 16 bytes longer than new; of equal states it
// takes less than 16 bytes. An old state over MaxSize is not looked at; a new state over
// MaxSize gives a delta that Apply refuses, so bound states before. Time is linear in
// both lengths; besides the delta it allocates a table of at most half of old, or 32 KiB.
// It may be called from several goroutines.
func Make(old, new []byte) []byte {
	if len(old) > MaxSize {
		old = nil
	}
	pre := matchLen(old, new)
	post := suffixLen(old[pre:], new[pre:])
	// Where old has no middle the new one is inserted whole; else what grew is a fair guess.
	guess := 32 + len(new) - pre - post
	if len(old)-pre-post >= minMiddle {
		guess = 64 + max(0, len(new)-len(old))
	}
	e := encoder{old: old, new: new, out: make([]byte, 0, guess)}
	e.out = append(e.out, version)
	e.out = binary.AppendUvarint(e.out, uint64(len(new)))
	e.out = binary.LittleEndian.AppendUint32(e.out, crc32.Checksum(new, crc32.MakeTable(crc32.Castagnoli)))
	e.copy(0, 0, pre)
	e.middle(pre, len(old)-post, len(new)-post)
	e.copy(len(old)-post, len(new)-post, post)
	e.insert(len(new))
	return e.out
}

// encoder writes ops in the order of new.
type encoder struct {
	old, new, out []byte
	lit           int // new[lit:] is not yet in an op
	end           int // where the last copy ended in old
}

// insert writes what is pending before place at of new.
func (e *encoder) insert(at int) {
	if n := at - e.lit; n > 0 {
		e.out = binary.AppendUvarint(e.out, uint64(n)<<1)
		e.out = append(e.out, e.new[e.lit:at]...)
		e.lit = at
	}
}

// copy says that new[at:at+n] is old[from:from+n]. A short one stays pending.
func (e *encoder) copy(from, at, n int) {
	if n < minCopy {
		return
	}
	e.insert(at)
	e.out = binary.AppendUvarint(e.out, uint64(n)<<1|1)
	e.out = binary.AppendVarint(e.out, int64(from-e.end))
	e.end, e.lit = from+n, at+n
}

// middle finds copies for new[start:newEnd] in old[start:oldEnd]. What it leaves pending
// becomes an insert.
func (e *encoder) middle(start, oldEnd, newEnd int) {
	i, j := start, start
	for oldEnd-i >= sure && newEnd-j >= sure {
		from, at, n := e.resync(i, j, oldEnd, newEnd)
		if n == 0 {
			break
		}
		e.copy(from, at, n)
		i, j = from+n, at+n
	}
	if oldEnd-i < minMiddle || newEnd-j < minMiddle {
		return
	}
	span := window * min(newEnd-j, MaxSize/window)
	e.match(max(start, i-span), min(oldEnd, i+span), j, newEnd)
}

// resync finds where old and new agree again shortly after a small edit at old[i], new[j].
func (e *encoder) resync(i, j, oldEnd, newEnd int) (from, at, n int) {
	near := e.old[i:min(i+reach+seed, oldEnd)]
	for at = j; at <= j+reach && at+seed <= newEnd; at++ {
		k := bytes.Index(near, e.new[at:at+seed])
		if k < 0 {
			continue
		}
		if n = matchLen(e.old[i+k:oldEnd], e.new[at:newEnd]); n >= sure {
			return i + k, at, n
		}
	}
	return 0, 0, 0
}

// match puts the blocks of old[lo:hi] into a table and looks up every place of
// new[j:newEnd] there. Each block is kept once, the first of equal ones.
func (e *encoder) match(lo, hi, j, newEnd int) {
	block := blockSize(hi - lo)
	size := bits.Len(uint(2*((hi-lo)/block) - 1))
	var small [1 << 10]uint32
	table := small[:]
	if 1<<size > len(small) {
		table = make([]uint32, 1<<size)
	}
	h := newHasher(block, bits.Len(uint(len(table)))-1)
	for k := (hi - lo) / block; k > 0; k-- {
		v := mix(h.sum(e.old[lo+(k-1)*block : lo+k*block]))
		table[v>>h.shift] = uint32(v)&tagBits | uint32(k)
	}
	for j+block <= newEnd {
		sum := h.sum(e.new[j : j+block])
		for {
			v := mix(sum)
			entry := table[v>>h.shift]
			if k := int(entry &^ tagBits); entry&tagBits == uint32(v)&tagBits && k != 0 &&
				string(e.old[lo+(k-1)*block:lo+k*block]) == string(e.new[j:j+block]) {
				j = e.extend(lo+(k-1)*block, j, newEnd)
				break
			}
			if j+block >= newEnd {
				return
			}
			sum = h.roll(sum, e.new[j], e.new[j+block])
			j++
		}
	}
}

// extend writes the longest copy around the equal places old[p] and new[j] and returns
// where it ends in new. It reaches back over pending bytes only.
func (e *encoder) extend(p, j, newEnd int) int {
	n := matchLen(e.old[p:], e.new[j:newEnd])
	back := suffixLen(e.old[:p], e.new[e.lit:j])
	e.copy(p-back, j-back, n+back)
	return j + n
}

// blockSize grows with what is searched: short blocks find more, long ones keep the
// table small.
func blockSize(n int) int {
	switch {
	case n <= 64<<10:
		return 16
	case n <= 4<<20:
		return 32
	}
	return 64
}

// hasher is a polynomial rolling hash modulo 2^64 over blocks. Collisions cost
// compression and one comparison, never correctness.
type hasher struct {
	p1, p2, p3, p4 uint64 // powers of the base
	out            uint64 // base^block, the factor of the byte that leaves
	shift          uint
}

func newHasher(block, tableBits int) hasher {
	const base = 0x9e3779b97f4a7c15 // odd, so no byte of a block is lost
	h := hasher{p1: base, out: 1, shift: uint(64 - tableBits)}
	h.p2 = h.p1 * h.p1
	h.p3 = h.p2 * h.p1
	h.p4 = h.p2 * h.p2
	for range block {
		h.out *= h.p1
	}
	return h
}

// sum hashes a block, whose length is a multiple of 4.
func (h *hasher) sum(b []byte) uint64 {
	var s uint64
	for ; len(b) >= 4; b = b[4:] {
		s = s*h.p4 + uint64(b[0])*h.p3 + uint64(b[1])*h.p2 + uint64(b[2])*h.p1 + uint64(b[3])
	}
	return s
}

// roll moves a sum on by one byte.
func (h *hasher) roll(sum uint64, leaves, enters byte) uint64 {
	return sum*h.p1 + uint64(enters) - uint64(leaves)*h.out
}

// tagBits of a table entry are of the hash, which spares most comparisons. The others
// number a block from 1; there are at most MaxSize/64 of them.
const tagBits = 0xffe00000

// mix spreads a sum, whose low bits depend on few bits of the block.
func mix(sum uint64) uint64 { return (sum ^ sum>>32) * 0xd6e8feb86659fd93 }

// chunk is compared at once by matchLen and suffixLen.
const chunk = 256

// matchLen is the length of the common front of a and b.
func matchLen(a, b []byte) int {
	n, i := min(len(a), len(b)), 0
	for i+chunk <= n && string(a[i:i+chunk]) == string(b[i:i+chunk]) {
		i += chunk
	}
	for ; i+8 <= n; i += 8 {
		if x := binary.LittleEndian.Uint64(a[i:]) ^ binary.LittleEndian.Uint64(b[i:]); x != 0 {
			return i + bits.TrailingZeros64(x)/8
		}
	}
	for i < n && a[i] == b[i] {
		i++
	}
	return i
}

// suffixLen is the length of the common back of a and b.
func suffixLen(a, b []byte) int {
	n := min(len(a), len(b))
	a, b = a[len(a)-n:], b[len(b)-n:]
	i := n
	for i >= chunk && string(a[i-chunk:i]) == string(b[i-chunk:i]) {
		i -= chunk
	}
	for ; i >= 8; i -= 8 {
		if x := binary.LittleEndian.Uint64(a[i-8:]) ^ binary.LittleEndian.Uint64(b[i-8:]); x != 0 {
			return n - i + bits.LeadingZeros64(x)/8
		}
	}
	for i > 0 && a[i-1] == b[i-1] {
		i--
	}
	return n - i
}
