// Package cursor is the text that a store gives for a place in its feed: which
// store, how far, and what stands there. The last is what tells a place that another
// entry has taken since, as after a copy of the file was put back.
package cursor

import (
	"encoding/hex"
	"strconv"

	"github.com/stint-dev/stint"
)

// Cursor is a place in the feed of a store. All of one store have the same length,
// and the later of two is the greater string.
type Cursor struct {
	Store [8]byte // of this feed, and of no copy of it
	Pos   int64   // of the newest entry before it; 0: none
	Check [4]byte // the beginning of that entry's hash
}

// The parts of the text are hexadecimal, with a dash between them.
const (
	storeLen = 16
	posLen   = 16
	checkLen = 8
	textLen  = storeLen + 1 + posLen + 1 + checkLen
)

// String is the text.
func (c Cursor) String() string {
	b := make([]byte, 0, textLen)
	b = append(hex.AppendEncode(b, c.Store[:]), '-')
	pos := strconv.FormatInt(c.Pos, 16)
	for range posLen - len(pos) {
		b = append(b, '0')
	}
	b = append(append(b, pos...), '-')
	return string(hex.AppendEncode(b, c.Check[:]))
}

// Parse reads what String wrote. Any other text is [stint.Invalid].
func Parse(text string) (c Cursor, err error) {
	wrong := stint.Invalid.Errorf("feed", "%.60q is no cursor of a feed", text)
	wrong.Hint = "use a cursor as it was given, or none to begin anew"
	if len(text) != textLen || text[storeLen] != '-' || text[storeLen+1+posLen] != '-' {
		return c, wrong
	}
	_, err1 := hex.Decode(c.Store[:], []byte(text[:storeLen]))
	c.Pos, err = strconv.ParseInt(text[storeLen+1:storeLen+1+posLen], 16, 64)
	_, err2 := hex.Decode(c.Check[:], []byte(text[textLen-checkLen:]))
	// One place has one text: no signs, no upper case.
	if err != nil || err1 != nil || err2 != nil || c.String() != text {
		return Cursor{}, wrong
	}
	return c, nil
}

// Moved is the error for a cursor that a store gave, but not this one as it is now:
// it is another store's, or what it stands behind is not here.
func Moved(text string) error {
	err := stint.Conflict.Errorf("feed", "the cursor %.60q is not of this store as it is now", text)
	err.Hint = "read what you need anew, and go on from a cursor that this store gives: it is another store, or was brought back from a copy"
	return err
}
