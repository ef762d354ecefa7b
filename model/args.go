package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Unusable is the one member of the object that stands on the wire for arguments that
// are no JSON object. Its value is the beginning of what the model wrote.
const Unusable = "unusable_arguments"

// maxUnusable bounds that value, in bytes.
const maxUnusable = 1000

// Args is the text of a call's arguments, exactly as the model wrote it.
type Args string

// Check says what keeps the arguments from being used: they must be one JSON object in
// UTF-8. Beyond the grammar it refuses what two readers would read differently: a name
// twice in one object, a number beyond the range of a double (1e400), half of a
// surrogate pair. Nothing at all, or white space, is the empty object.
func (a Args) Check() error {
	s := trim(string(a))
	switch {
	case s == "":
		return nil
	case !utf8.ValidString(s):
		return errors.New("the arguments are not UTF-8")
	}
	var raw json.RawMessage
	if err := json.Unmarshal([]byte(s), &raw); err != nil {
		return fmt.Errorf("the arguments are not JSON: %w", err)
	}
	if s[0] != '{' {
		return fmt.Errorf("the arguments are %s; they have to be a JSON object", what(s[0]))
	}
	w := walker{s: s}
	return w.walk()
}

// Object returns the arguments as a JSON object, for a tool or the wire: themselves,
// byte for byte; {} for none; and for arguments that do not pass Check an object with
// the one member [Unusable].
func (a Args) Object() string {
	switch {
	case a.Check() != nil:
		return unusable(string(a))
	case trim(string(a)) == "":
		return "{}"
	}
	return string(a)
}

func unusable(s string) string {
	if len(s) > maxUnusable {
		cut := maxUnusable
		for cut > 0 && !utf8.RuneStart(s[cut]) {
			cut--
		}
		s = s[:cut]
	}
	b, err := json.Marshal(map[string]string{Unusable: strings.ToValidUTF8(s, "\uFFFD")})
	if err != nil {
		return "{}" // a string always has a JSON form
	}
	return string(b)
}

// binary is the JSON form of arguments that are not UTF-8.
type binary struct {
	Base64 []byte `json:"base64"`
}

// MarshalJSON writes a JSON string, or {"base64":"…"} for what is not UTF-8.
func (a Args) MarshalJSON() ([]byte, error) {
	if utf8.ValidString(string(a)) {
		return json.Marshal(string(a))
	}
	return json.Marshal(binary{[]byte(a)})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (a *Args) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '{' {
		var v binary
		if err := json.Unmarshal(b, &v); err != nil {
			return err
		}
		*a = Args(v.Base64)
		return nil
	}
	return json.Unmarshal(b, (*string)(a))
}

func trim(s string) string { return strings.Trim(s, " \t\r\n") }

func what(c byte) string {
	switch c {
	case '[':
		return "a JSON array"
	case '"':
		return "a JSON string"
	case 't', 'f':
		return "a JSON boolean"
	case 'n':
		return "null"
	}
	return "a JSON number"
}

// walker goes through text that is known to be JSON.
type walker struct {
	s     string
	stack []frame
	name  bool // the next string is a member's name
}

type frame struct {
	object bool
	names  map[string]bool
}

func (w *walker) walk() error {
	for i := 0; i < len(w.s); {
		switch c := w.s[i]; c {
		case '{', '[':
			w.stack = append(w.stack, frame{object: c == '{'})
			w.name = c == '{'
			i++
		case '}', ']':
			w.stack = w.stack[:len(w.stack)-1]
			i++
		case ',':
			w.name = w.stack[len(w.stack)-1].object
			i++
		case '"':
			end := i + 1
			for w.s[end] != '"' {
				if w.s[end] == '\\' {
					end++
				}
				end++
			}
			end++
			if err := w.text(w.s[i:end]); err != nil {
				return err
			}
			i = end
		case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
			end := i + 1
			for end < len(w.s) && strings.IndexByte("0123456789+-.eE", w.s[end]) >= 0 {
				end++
			}
			if _, err := strconv.ParseFloat(w.s[i:end], 64); err != nil {
				return fmt.Errorf("the arguments have the number %.40s, which is beyond what most readers of JSON can hold", w.s[i:end])
			}
			i = end
		default:
			i++
		}
	}
	return nil
}

// text looks at one string, quotes included.
func (w *walker) text(quoted string) error {
	if half := loneSurrogate(quoted); half != "" {
		return fmt.Errorf("the arguments have %s, half of a surrogate pair, in a string", half)
	}
	if !w.name {
		return nil
	}
	w.name = false
	var name string
	if err := json.Unmarshal([]byte(quoted), &name); err != nil {
		return fmt.Errorf("the arguments are not JSON: %w", err)
	}
	top := &w.stack[len(w.stack)-1]
	if top.names[name] {
		return fmt.Errorf("the arguments have the name %q twice in one object", name)
	}
	if top.names == nil {
		top.names = map[string]bool{}
	}
	top.names[name] = true
	return nil
}

// loneSurrogate returns the first \uXXXX in a JSON string that needs another half and
// does not have it, "" if there is none.
func loneSurrogate(s string) string {
	for i := 0; i+5 < len(s); i++ {
		if s[i] != '\\' {
			continue
		}
		i++
		if s[i] != 'u' {
			continue
		}
		u := hex4(s[i+1:])
		switch {
		case u >= 0xd800 && u < 0xdc00:
			if i+10 < len(s) && s[i+5] == '\\' && s[i+6] == 'u' {
				if low := hex4(s[i+7:]); low >= 0xdc00 && low < 0xe000 {
					i += 10
					continue
				}
			}
			return s[i-1 : i+5]
		case u >= 0xdc00 && u < 0xe000:
			return s[i-1 : i+5]
		}
		i += 4
	}
	return ""
}

func hex4(s string) uint64 {
	u, err := strconv.ParseUint(s[:4], 16, 16)
	if err != nil {
		return 0
	}
	return u
}
