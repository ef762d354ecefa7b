package jsonx

import (
	"bytes"
	"encoding/json"
)

// Text returns the text below a path of names in b, which json.Valid has accepted, as
// decoding all of b would find it: of two members of one name the last counts. It is ""
// where there is none, or something else. It takes the time of passing over b once.
func Text(b []byte, path ...string) string {
	c := cursor{b: bytes.TrimSpace(b)}
	if len(path) > 0 {
		if c.b[0] != '{' {
			return ""
		}
		var found []byte
		for c.i++; c.more(); {
			name := c.name()
			at := c.i
			c.skip()
			if said(name) == path[0] {
				found = c.b[at:c.i]
			}
		}
		if found == nil {
			return ""
		}
		return Text(found, path[1:]...)
	}
	if c.b[0] != '"' {
		return ""
	}
	return said(c.b)
}

// said is what a string that json.Valid has accepted says.
func said(quoted []byte) string {
	if bytes.IndexByte(quoted, '\\') < 0 && isASCII(quoted) {
		return string(quoted[1 : len(quoted)-1])
	}
	var s string
	if json.Unmarshal(quoted, &s) != nil {
		return ""
	}
	return s
}

func isASCII(b []byte) bool { return bytes.IndexFunc(b, func(r rune) bool { return r >= 0x80 }) < 0 }
