package hook

import (
	"fmt"
	"strings"

	"github.com/stint-dev/stint/internal/expression"
)

// template is text with places for the values of expressions. A value is written once:
// what looks like a place in it stays text.
type template []piece

// piece is text as it stands, or an expression.
type piece struct {
	text    string
	program expression.Program
}

// compileTemplate reads text with ${ expression } in it; $${ is a plain ${. A fault has
// its place in src, and no field.
func compileTemplate(src string) (template, *Fault) {
	if len(src) > maxTemplate {
		return nil, &Fault{Line: 1, Column: 1, Text: fmt.Sprintf("the template is longer than %d bytes", maxTemplate), Hint: "put standing instructions into the agent"}
	}
	var out template
	var plain strings.Builder
	places := 0
	for i := 0; i < len(src); {
		switch rest := src[i:]; {
		case strings.HasPrefix(rest, "$${"):
			plain.WriteString("${")
			i += 3
			continue
		case !strings.HasPrefix(rest, "${"):
			plain.WriteByte(src[i])
			i++
			continue
		}
		line, column := expression.Place([]rune(src[:i]))
		inner := src[i+2:]
		end := closing(inner)
		if end < 0 {
			return nil, &Fault{Line: line, Column: column, Text: "${ without its }", Hint: "a ${ that is meant as text is written $${"}
		}
		if places++; places > maxPlaceholders {
			return nil, &Fault{Line: line, Column: column, Text: fmt.Sprintf("there are more than %d places", maxPlaceholders), Hint: "write ${ raw } for the whole body"}
		}
		p, f := compileExpression(inner[:end], false)
		if f != nil {
			return nil, below(f, line, column+2)
		}
		out = append(out, piece{text: plain.String()}, piece{program: p})
		plain.Reset()
		i += 2 + end + 1
	}
	return append(out, piece{text: plain.String()}), nil
}

// below moves a fault of an inner text to its place in the outer one.
func below(f *Fault, line, column int) *Fault {
	moved := *f
	if f.Line == 1 {
		moved.Column += column - 1
	}
	moved.Line += line - 1
	return &moved
}

// closing finds the } that ends an expression: none in a text, in a comment, or of a
// brace that the expression opened. It is -1 where there is none.
func closing(src string) int {
	depth := 0
	for i := 0; i < len(src); i++ {
		switch c := src[i]; c {
		case '{':
			depth++
		case '}':
			if depth == 0 {
				return i
			}
			depth--
		case '"', '\'', '`':
			for i++; i < len(src) && src[i] != c; i++ {
				if src[i] == '\\' && c != '`' {
					i++
				}
			}
		case '/':
			end := ""
			switch {
			case strings.HasPrefix(src[i:], "//"):
				end = "\n"
			case strings.HasPrefix(src[i:], "/*"):
				end = "*/"
			default:
				continue
			}
			n := strings.Index(src[i+2:], end)
			if n < 0 {
				return -1
			}
			i += 2 + n + len(end) - 1
		}
	}
	return -1
}

// render writes the template with values in its places.
func render(m *expression.Meter, field string, t template, env map[string]any) (string, error) {
	var out strings.Builder
	for i := range t {
		p := &t[i]
		if !p.program.Given() {
			out.WriteString(p.text)
			continue
		}
		v, err := run(m, field, &p.program, env)
		if err != nil {
			return "", err
		}
		s, err := written(m, field, v)
		if err != nil {
			return "", err
		}
		out.WriteString(s)
	}
	return out.String(), nil
}
