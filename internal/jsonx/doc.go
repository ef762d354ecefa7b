// Package jsonx reads JSON whose meaning decides what may happen: patches, decisions,
// tool input. Go's encoding/json matches names without regard to case, lets the last of
// two equal names win, replaces invalid UTF-8 and writes values anew; so two readers
// of one document can see two meanings. Here every accepted document has one.
//
//   - Check accepts exactly one RFC 8259 value and refuses what readers disagree on.
//   - Decode fills a Go value by exact names only.
//   - Merge applies an RFC 7396 patch to bytes and leaves the bytes of untouched members alone.
//   - Keys and Conflict say what patches write, so that two writers of one key are seen.
//
// Nothing is ever reformatted: a number keeps its digits, a string its escapes. All
// functions are pure, take time linear in their input, and may be called from several
// goroutines.
package jsonx

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	// DefaultDepth is the nesting allowed where Limits.Depth is not positive. It is also
	// what Decode, Merge, Keys and Conflict allow.
	DefaultDepth = 512
	// MaxDepth is the most that Limits.Depth can ask for: encoding/json stops there too.
	MaxDepth = 10000
)

// Limits narrow what Check accepts. The zero value allows any size and DefaultDepth.
type Limits struct {
	Size          int  // longest input in bytes, white space included; 0 or less: no bound
	Depth         int  // deepest nesting of arrays and objects, [] being 1; 0 or less: DefaultDepth
	NoNUL         bool // refuse \u0000, which C strings and PostgreSQL text cannot hold
	FiniteNumbers bool // refuse numbers beyond float64 such as 1e400; long integers below are fine
}

// SyntaxError says where and why input was refused: by Check and by all functions that
// check first. It is found with errors.As.
type SyntaxError struct {
	Offset int    // bytes before the place
	Line   int    // from 1
	Column int    // in characters (code points), from 1
	Path   string // the value it is in, like $.a.b[3]; shortened in front where very long
	Msg    string // what is wrong and what would be right
}

// Error gives place, path and reason in one line.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("JSON, line %d column %d (byte %d), at %s: %s", e.Line, e.Column, e.Offset, e.Path, e.Msg)
}

// failure notes a place while the stack unwinds: steps come innermost first.
type failure struct {
	at    int
	msg   string
	steps []string
}

// maxPath bounds a path in an error, in bytes; maxName one name in it.
const (
	maxPath = 512
	maxName = 64
)

func (f *failure) error(b []byte) *SyntaxError {
	path, n := "", len(f.steps)
	for i, length := 0, 0; i < n; i++ {
		if length += len(f.steps[i]); length > maxPath {
			n, path = i, "…"
		}
	}
	steps := slices.Clone(f.steps[:n])
	slices.Reverse(steps)
	before := b[:min(f.at, len(b))]
	line := before[bytes.LastIndexByte(before, '\n')+1:]
	return &SyntaxError{
		Offset: f.at,
		Line:   1 + bytes.Count(before, []byte("\n")),
		Column: 1 + utf8.RuneCount(line),
		Path:   "$" + path + strings.Join(steps, ""),
		Msg:    f.msg,
	}
}

// nameStep is a member's step in a path: .name where that is readable, else ["the name"].
func nameStep(name []byte) string {
	plain := len(name) > 0 && len(name) <= maxName
	for _, c := range name[:min(len(name), maxName)] {
		plain = plain && (c == '_' || c == '-' || '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z')
	}
	if plain {
		return "." + string(name)
	}
	return "[" + quote(name) + "]"
}

func indexStep(i int) string { return "[" + strconv.Itoa(i) + "]" }

// quote shows a name in a message: escaped, and cut where it is long.
func quote(name []byte) string {
	if len(name) > maxName {
		return strconv.Quote(strings.ToValidUTF8(string(name[:maxName]), "")) + "…"
	}
	return strconv.Quote(string(name))
}
