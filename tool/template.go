package tool

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/stint-dev/stint"
)

// Template is text with places for arguments: {name} stands for the argument of that
// name, {{ and }} for a brace. Its zero value is empty text.
type Template struct {
	parts []part
}

// part is some text, or an argument's name.
type part struct {
	text string
	arg  bool
}

// ParseTemplate reads a template. [stint.Invalid] for a brace that is neither: a name is
// letters, digits, _ and -, and does not begin with a digit.
func ParseTemplate(s string) (Template, error) {
	var t Template
	var text strings.Builder
	flush := func() {
		if text.Len() > 0 {
			t.parts = append(t.parts, part{text: text.String()})
			text.Reset()
		}
	}
	for i := 0; i < len(s); {
		switch c := s[i]; {
		case c != '{' && c != '}':
			text.WriteByte(c)
			i++
		case strings.HasPrefix(s[i:], "{{"), strings.HasPrefix(s[i:], "}}"):
			text.WriteByte(c)
			i += 2
		default:
			name, _, ok := strings.Cut(s[i+1:], "}")
			if c == '}' || !ok || !argName(name) {
				return Template{}, &stint.Error{Code: stint.Invalid, Op: "template",
					Err:  fmt.Errorf("%.200q: the brace at byte %d begins no argument", s, i),
					Hint: "write {name} for an argument, and {{ or }} for a brace"}
			}
			flush()
			t.parts = append(t.parts, part{text: name, arg: true})
			i += len(name) + 2
		}
	}
	flush()
	return t, nil
}

func argName(s string) bool {
	return s != "" && strings.IndexFunc(s, func(r rune) bool { return !nameRune(r) }) < 0 && (s[0] < '0' || s[0] > '9') && s[0] != '-'
}

// Names returns the names of the arguments in it, each once, in order.
func (t Template) Names() []string {
	var names []string
	for _, p := range t.parts {
		if p.arg && !slices.Contains(names, p.text) {
			names = append(names, p.text)
		}
	}
	return names
}

// Begins reports whether the text begins with an argument, and with which.
func (t Template) Begins() (name string, ok bool) {
	if len(t.parts) == 0 || !t.parts[0].arg {
		return "", false
	}
	return t.parts[0].text, true
}

// Text returns the template's text if it has no argument in it.
func (t Template) Text() (string, bool) {
	switch len(t.parts) {
	case 0:
		return "", true
	case 1:
		return t.parts[0].text, !t.parts[0].arg
	}
	return "", false
}

// Expand puts a text in each place. Its error is the first of value's.
func (t Template) Expand(value func(name string) (string, error)) (string, error) {
	var out strings.Builder
	for _, p := range t.parts {
		text := p.text
		if p.arg {
			var err error
			if text, err = value(p.text); err != nil {
				return "", err
			}
		}
		out.WriteString(text)
	}
	return out.String(), nil
}

// Args is the members of a call's arguments, each with its bytes.
type Args map[string]json.RawMessage

// ReadArgs takes arguments apart; nothing of their members is changed.
func ReadArgs(args json.RawMessage) (Args, error) {
	a := Args{}
	if len(args) == 0 {
		return a, nil
	}
	if err := json.Unmarshal(args, &a); err != nil {
		return nil, &stint.Error{Code: stint.Invalid, Op: "arguments", Err: err, Hint: "pass what Set.Check returned"}
	}
	return a, nil
}

// Has reports whether there is an argument of the name that is not null.
func (a Args) Has(name string) bool {
	raw, ok := a[name]
	return ok && string(raw) != "null"
}

// Text is an argument as text: a string's characters, a number's digits, true or false,
// and the JSON of anything else. It is empty for one that [Args.Has] does not have.
func (a Args) Text(name string) string {
	raw := a[name]
	if !a.Has(name) {
		return ""
	}
	var s string
	if raw[0] == '"' && json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}

// IsString reports whether an argument is a string.
func (a Args) IsString(name string) bool { return a.Has(name) && a[name][0] == '"' }

// CheckNames tells whether all of names are properties of a schema. [stint.Invalid] names
// the first that is not, since no call could ever set it.
func CheckNames(names []string, schema json.RawMessage) error {
	var s struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if json.Unmarshal(schema, &s) != nil || s.Properties == nil {
		return nil
	}
	for _, n := range names {
		if _, ok := s.Properties[n]; !ok {
			return &stint.Error{Code: stint.Invalid, Op: "template", Err: fmt.Errorf("{%s} is no argument of its schema", n),
				Hint: "add it to the properties, or write {{" + n + "}} for the text"}
		}
	}
	return nil
}

// Secret returns a value that must not be kept anywhere: a key, a token. It is asked for
// each call, so that a rotated one is used at once.
type Secret func() (string, error)

// Redact replaces each secret in text by {{secret:NAME}}. Values of fewer than four bytes
// are left alone, since they would be found everywhere.
func Redact(text string, secrets map[string]string) string {
	names := make([]string, 0, len(secrets))
	for n, v := range secrets {
		if len(v) >= 4 {
			names = append(names, n)
		}
	}
	// The longest first: one may contain another.
	slices.SortFunc(names, func(a, b string) int {
		if d := len(secrets[b]) - len(secrets[a]); d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	for _, n := range names {
		text = strings.ReplaceAll(text, secrets[n], "{{secret:"+n+"}}")
		if quoted, err := json.Marshal(secrets[n]); err == nil && len(quoted) != len(secrets[n])+2 {
			text = strings.ReplaceAll(text, string(quoted[1:len(quoted)-1]), "{{secret:"+n+"}}")
		}
	}
	return text
}
