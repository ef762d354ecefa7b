// Package delta makes and applies byte deltas between two successive states of
// a session, so that a checkpoint costs what changed and not the whole state.
//
// It knows nothing of JSON: it compares bytes, and Apply gives back exactly the
// bytes that Make was given. It is built for a document that grows at its end, with
// counters that change near its front and small edits anywhere.
//
// # Format
//
//	bytes       field    meaning
//	1           version  0x01
//	1 to 4      size     uvarint: length of the new state, at most MaxSize
//	4           sum      CRC-32C (Castagnoli) of the new state, little endian
//	rest        ops      until the end of the delta; none if the new state is empty
//
// Each op begins with a uvarint head; head>>1 is its length n, at least 1:
//
//	head&1 = 0  insert   n bytes of the new state follow
//	head&1 = 1  copy     a zigzag varint follows: the place in the old state from which n
//	                     bytes are copied, less the place where the copy before it ended
//	                     (0 for the first)
//
// The lengths of all ops add up to size. Varints are those of encoding/binary. The sum
// is there because a delta applied to another base than its own would otherwise give a
// wrong state without an error.
//
// # Method
//
// The common front and back are trimmed. In the middle a short edit is stepped over by
// looking a few bytes ahead on both sides. What is left is matched by blocks: those of
// the old middle go into a table, a rolling hash looks up every place of the new one.
// Each part takes time linear in the two lengths, whatever the bytes are.
package delta
