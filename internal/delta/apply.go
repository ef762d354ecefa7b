package delta

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

// MaxSize bounds a state in bytes. Apply refuses a delta that declares a longer one.
const MaxSize = 64 << 20

// version is the first byte of every delta of the format in the package comment.
const version = 1

// ErrCorrupt is wrapped by every error of Apply. The text names the byte of the delta at
// which it stopped making sense.
var ErrCorrupt = errors.New("corrupt delta")

func corrupt(at int, format string, args ...any) error {
	return fmt.Errorf("%w at byte %d: %s; rebuild the state from an older full snapshot or a backup",
		ErrCorrupt, at, fmt.Sprintf(format, args...))
}

// Apply returns the new state that Make was given with old. The result shares no memory
// with old or delta, and is never nil without an error. Any bytes are safe input: all ops
// are checked before anything is allocated, the one allocation is as long as the new
// state, which is at most MaxSize, and errors wrap ErrCorrupt. It may be called from
// several goroutines.
func Apply(old, delta []byte) ([]byte, error) {
	if len(delta) == 0 {
		return nil, corrupt(0, "it is empty")
	}
	if delta[0] != version {
		return nil, corrupt(0, "format version %d is not known here, only %d", delta[0], version)
	}
	size, n := binary.Uvarint(delta[1:])
	if n <= 0 {
		return nil, corrupt(1, "the length of the new state is no varint")
	}
	if size > MaxSize {
		return nil, corrupt(1, "it declares a state of %d bytes, the limit is %d", size, MaxSize)
	}
	at := 1 + n
	if len(delta)-at < 4 {
		return nil, corrupt(at, "it ends inside its header")
	}
	sum := binary.LittleEndian.Uint32(delta[at:])
	first := reader{delta: delta, at: at + 4, old: len(old), left: int(size)}
	for r := first; !r.done(); {
		if _, err := r.next(); err != nil {
			return nil, err
		}
	}
	out := make([]byte, 0, size)
	for r := first; !r.done(); {
		o, err := r.next()
		if err != nil {
			return nil, err
		}
		if o.copy {
			out = append(out, old[o.from:o.from+o.n]...)
		} else {
			out = append(out, delta[o.from:o.from+o.n]...)
		}
	}
	if crc32.Checksum(out, crc32.MakeTable(crc32.Castagnoli)) != sum {
		return nil, corrupt(at, "the result does not have the checksum of the new state; the old state is not the one this delta was made for, or one of them is damaged")
	}
	return out, nil
}

// op is one checked step: n bytes from old (copy) or from the delta itself.
type op struct {
	copy    bool
	from, n int
}

// reader steps through the ops. It is a value, so that a second pass is a plain copy.
type reader struct {
	delta []byte
	at    int // next byte of delta
	old   int // length of the old state
	left  int // bytes of the new state still to be produced
	end   int // where the last copy ended in the old state
}

// done reports that no op is left and nothing is missing.
func (r *reader) done() bool { return r.at == len(r.delta) && r.left == 0 }

func (r *reader) next() (op, error) {
	start := r.at
	if start == len(r.delta) {
		return op{}, corrupt(start, "it ends %d bytes short of the new state", r.left)
	}
	head, k := binary.Uvarint(r.delta[r.at:])
	if k <= 0 {
		return op{}, corrupt(start, "the head of an op is no varint")
	}
	r.at += k
	if n := head >> 1; n == 0 || n > uint64(r.left) {
		return op{}, corrupt(start, "an op of %d bytes where %d are missing", n, r.left)
	}
	n := int(head >> 1)
	r.left -= n
	if head&1 == 0 {
		if n > len(r.delta)-r.at {
			return op{}, corrupt(start, "it ends inside an insert of %d bytes", n)
		}
		o := op{from: r.at, n: n}
		r.at += n
		return o, nil
	}
	diff, k := binary.Varint(r.delta[r.at:])
	if k <= 0 {
		return op{}, corrupt(r.at, "the place of a copy is no varint")
	}
	// Both bounds are checked against diff itself: adding first could overflow.
	if diff < -int64(r.end) || diff > int64(r.old-r.end) {
		return op{}, corrupt(r.at, "a copy from outside the old state")
	}
	from := r.end + int(diff)
	if n > r.old-from {
		return op{}, corrupt(start, "a copy of %d bytes at %d from an old state of %d", n, from, r.old)
	}
	r.at += k
	r.end = from + n
	return op{copy: true, from: from, n: n}, nil
}
