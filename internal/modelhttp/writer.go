package modelhttp

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Writer writes one JSON document and changes no byte of what it is given: neither
// encoding/json nor the vendors' clients embed JSON without compacting and escaping it.
// Text has to be UTF-8. The zero value is ready.
type Writer struct {
	b     []byte
	comma bool
}

// Bytes is the document so far.
func (w *Writer) Bytes() []byte { return w.b }

func (w *Writer) sep() {
	if w.comma {
		w.b = append(w.b, ',')
	}
	w.comma = true
}

// Open begins an object or an array: '{' or '['.
func (w *Writer) Open(c byte) {
	w.sep()
	w.b = append(w.b, c)
	w.comma = false
}

// Close ends one: '}' or ']'.
func (w *Writer) Close(c byte) {
	w.b = append(w.b, c)
	w.comma = true
}

// Key begins a member.
func (w *Writer) Key(k string) {
	w.sep()
	w.b = append(quote(w.b, k), ':')
	w.comma = false
}

// Text writes a string.
func (w *Writer) Text(s string) {
	w.sep()
	w.b = quote(w.b, s)
}

// Raw writes a value that is JSON already.
func (w *Writer) Raw(json string) {
	w.sep()
	w.b = append(w.b, json...)
}

// Member writes a member with a string.
func (w *Writer) Member(k, s string) {
	w.Key(k)
	w.Text(s)
}

// RawMember writes a member whose value is JSON already.
func (w *Writer) RawMember(k, json string) {
	w.Key(k)
	w.Raw(json)
}

// Int writes a member with a number.
func (w *Writer) Int(k string, n int64) { w.RawMember(k, strconv.FormatInt(n, 10)) }

// Float writes a member with a number, in the fewest digits that give it back.
func (w *Writer) Float(k string, f float64) { w.RawMember(k, strconv.FormatFloat(f, 'g', -1, 64)) }

const hexDigits = "0123456789abcdef"

func quote(b []byte, s string) []byte {
	b = append(b, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c == '\n':
			b = append(b, '\\', 'n')
		case c == '\r':
			b = append(b, '\\', 'r')
		case c == '\t':
			b = append(b, '\\', 't')
		case c < ' ' || c == 0x7f:
			b = append(b, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		default:
			b = append(b, c)
		}
	}
	return append(b, '"')
}

// Extra is members that a configuration adds to every request.
type Extra []struct{ Name, JSON string }

// ParseExtra reads an object of them. A name in taken is refused, since an adapter
// writes it itself.
func ParseExtra(b []byte, taken ...string) (Extra, error) {
	if len(b) == 0 {
		return nil, nil
	}
	var m map[string]json.RawMessage
	if err := json.Unmarshal(b, &m); err != nil {
		return nil, fmt.Errorf("extra: it has to be a JSON object: %w", err)
	}
	var x Extra
	for name, v := range m {
		if slices.Contains(taken, name) {
			return nil, fmt.Errorf("extra: %s is set by stint itself", name)
		}
		x = append(x, struct{ Name, JSON string }{name, string(v)})
	}
	slices.SortFunc(x, func(a, b struct{ Name, JSON string }) int { return strings.Compare(a.Name, b.Name) })
	return x, nil
}

// Extra writes them.
func (w *Writer) Extra(x Extra) {
	for _, m := range x {
		w.RawMember(m.Name, m.JSON)
	}
}

// CheckBase says what is wrong with a base URL, "" being the vendor's own.
func CheckBase(base string) error {
	if base == "" {
		return nil
	}
	u, err := url.Parse(base)
	switch {
	case err != nil:
		return errors.New("base URL: it cannot be read") // the error of Parse repeats it, and what may be in it
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return errors.New("base URL: it has to begin with http:// or https:// and a host")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return errors.New("base URL: it has no user, query or fragment; a key goes into the key's own field")
	}
	return nil
}
