package modelhttp

import (
	"encoding/json"
	"strconv"
	"strings"
)

// Joiner puts a text together from the JSON strings in which a stream brought its
// pieces. It joins them before it decodes them: services that count in UTF-16 cut a
// character in two, with one half in each piece. Half a character that stays alone is
// kept as the six characters of its escape, so that it is seen where the text is read
// as JSON. The zero value is empty.
type Joiner struct {
	escaped strings.Builder
}

// Add appends a piece: a JSON string with its quotes. null and nothing add nothing; other
// JSON is added as its own text, for services that send arguments as an object.
func (j *Joiner) Add(raw string) {
	switch {
	case raw == "" || raw == "null":
	case raw[0] == '"' && len(raw) >= 2:
		j.escaped.WriteString(raw[1 : len(raw)-1])
	default:
		if b, err := json.Marshal(raw); err == nil {
			j.escaped.Write(b[1 : len(b)-1])
		}
	}
}

// String is the text so far.
func (j *Joiner) String() string {
	s := keepHalves(j.escaped.String())
	var out string
	if err := json.Unmarshal([]byte(`"`+s+`"`), &out); err != nil {
		return s // what a client's decoder took for a string and this one does not
	}
	return out
}

// keepHalves escapes the backslash of each \uXXXX that is half a pair and alone.
func keepHalves(s string) string {
	if !strings.Contains(s, `\u`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		if s[i] != '\\' || i+1 >= len(s) {
			b.WriteByte(s[i])
			i++
			continue
		}
		u := unit(s[i:])
		switch low := unit(s[min(i+6, len(s)):]); {
		case u < 0: // another escape
			b.WriteString(s[i : i+2])
			i += 2
		case u >= 0xd800 && u < 0xdc00 && low >= 0xdc00 && low < 0xe000:
			b.WriteString(s[i : i+12])
			i += 12
		case u >= 0xd800 && u < 0xe000:
			b.WriteString(`\` + s[i:i+6])
			i += 6
		default:
			b.WriteString(s[i : i+6])
			i += 6
		}
	}
	return b.String()
}

// unit is the value of the \uXXXX that s begins with, -1 if it does not.
func unit(s string) int64 {
	if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
		return -1
	}
	u, err := strconv.ParseInt(s[2:6], 16, 32)
	if err != nil {
		return -1
	}
	return u
}
