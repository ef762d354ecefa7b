package ident

import (
	"strconv"
	"strings"

	"github.com/stint-dev/stint"
)

// ApprovalID is the name of an approval: the session's id, a point, and the seq of the
// entry that asks.
func ApprovalID(session stint.ID, asked stint.Seq) string {
	return session.String() + "." + strconv.FormatInt(int64(asked), 10)
}

// CutApprovalID splits the name of an approval into what names the session, which may be
// the short form of its id or the session's name, and the seq. Without a seq it returns
// the whole text and 0. It does not look whether there is such an approval.
func CutApprovalID(s string) (session string, asked stint.Seq) {
	i := strings.LastIndexByte(s, '.')
	if i < 0 {
		return s, 0
	}
	n, err := strconv.ParseInt(s[i+1:], 10, 64)
	if err != nil || n < 1 {
		return s, 0
	}
	return s[:i], stint.Seq(n)
}
