package stream

import (
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/stint-dev/stint"
)

// checkLen is how many bytes of an entry's hash an id has. The hash covers all entries
// before it, so an id tells a journal from another that has come as far.
const checkLen = 8

// spot is a place in the journal of a session: behind the entry seq, whose hash begins
// with check; empty: it is not known.
type spot struct {
	seq   stint.Seq
	check string
}

func spotOf(seq stint.Seq, hash stint.Hash) spot {
	return spot{seq, hex.EncodeToString(hash[:checkLen])}
}

// String is the id of the event that ends at p.
func (p spot) String() string { return strconv.FormatInt(int64(p.seq), 10) + "-" + p.check }

// parseSpot reads an id, or the plain number of an entry.
func parseSpot(text string) (p spot, err error) {
	number, check, checked := strings.Cut(text, "-")
	seq, err := strconv.ParseInt(number, 10, 64)
	if err != nil || seq < 0 || checked && len(check) != 2*checkLen || len(number) > 1 && number[0] == '0' || number[0] == '+' {
		err := stint.Invalid.Errorf("events", "%.60q is no place in a session", text)
		err.Hint = "give the id of an event of this session, or the seq of an entry"
		return spot{}, err
	}
	return spot{stint.Seq(seq), check}, nil
}
