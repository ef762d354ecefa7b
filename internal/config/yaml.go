package config

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// shape is what a node of the file is.
type shape int

const (
	nothing shape = iota
	text
	number
	truth
	list
	mapping
	unread // something a problem was already reported for
)

// node is one value of the file, and where it begins. It holds what a
// configuration needs of YAML and nothing of the parser's types.
type node struct {
	shape  shape
	text   string // of a scalar: a text unquoted, anything else as it is written
	block  bool   // a text after | or >, so that columns in it mean nothing
	quoted bool
	line   int
	column int
	items  []*node
	pairs  []pair
}

// pair is a key of a mapping and its value.
type pair struct {
	key   *node
	value *node
}

// document returns the content of the file, or nil if it could not be read as
// one YAML document; the reasons are problems of s.
func (s *source) document() *node {
	if !s.readable() {
		return nil
	}
	tokens := lexer.Tokenize(s.text)
	if s.tokens(tokens); len(s.problems) > 0 {
		return nil
	}
	file, err := s.parse(tokens)
	if err != nil {
		s.syntax(err)
		return nil
	}
	c := &converter{source: s, seen: map[*token.Token]bool{}}
	var root *node
	for _, doc := range file.Docs {
		if doc.Body != nil {
			root = c.node(doc.Body)
		}
	}
	if len(s.problems) > 0 {
		return nil
	}
	if root == nil || root.shape == nothing || root.shape == mapping && len(root.pairs) == 0 {
		s.empty()
		return nil
	}
	c.complete(tokens)
	return root
}

// readable checks the bytes: a size, an encoding and no characters that have no
// place in a text file.
func (s *source) readable() bool {
	switch {
	case len(s.text) > maxFile:
		s.add(1, 1, "", "the file is larger than 1 MiB", "is it the right file?")
	case strings.HasPrefix(s.text, "\xff\xfe") || strings.HasPrefix(s.text, "\xfe\xff"):
		s.add(1, 1, "", "expected UTF-8 text, found UTF-16", "save the file as UTF-8")
	case !utf8.ValidString(s.text):
		i := 0
		for {
			r, size := utf8.DecodeRuneInString(s.text[i:])
			if r == utf8.RuneError && size == 1 {
				break
			}
			i += size
		}
		s.addAt(i, fmt.Sprintf("expected UTF-8 text, found the byte 0x%02x", s.text[i]), "save the file as UTF-8")
	default:
		s.characters()
	}
	return len(s.problems) == 0
}

// characters reports the first control character, and the first line that is
// indented with a tab. YAML allows a tab there only inside a text of several lines.
func (s *source) characters() {
	for i, r := range s.text {
		bare := r == '\r' && !strings.HasPrefix(s.text[i+1:], "\n")
		if r < ' ' && r != '\n' && r != '\t' && r != '\r' || bare || r == 0x7f || r == 0x85 || r == 0x2028 || r == 0x2029 {
			s.addAt(i, fmt.Sprintf("the control character U+%04X has no place in the file", r), "remove it; in double quotes it may be written as an escape")
			return
		}
	}
	for i, l := range s.lines {
		indent := l[:len(l)-len(strings.TrimLeft(l, " \t"))]
		if at := strings.IndexByte(indent, '\t'); at >= 0 && strings.TrimSpace(l) != "" {
			s.add(i+1, at+1, "", "the line is indented with a tab", "indent with spaces")
			return
		}
	}
}

// addAt is add for a byte offset.
func (s *source) addAt(offset int, text, hint string) {
	before := s.text[:offset]
	start := strings.LastIndexByte(before, '\n') + 1
	s.add(1+strings.Count(before, "\n"), 1+utf8.RuneCountInString(before[start:]), "", text, hint)
}

// parse calls the YAML parser. A panic there is one more way of saying that it
// cannot read the file.
func (s *source) parse(tokens token.Tokens) (file *ast.File, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("cannot be read as YAML (%v)", r)
		}
	}()
	return parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
}

const checkIndent = "check the indentation and the quotes here and on the line above"

// syntax reports what the YAML parser said.
func (s *source) syntax(err error) {
	var at interface {
		GetToken() *token.Token
		GetMessage() string
	}
	if !errors.As(err, &at) {
		s.add(1, 1, "", "not YAML: "+clip(err.Error(), 120), "quote texts with special characters in them")
		return
	}
	line, column := 1, 1
	if t := at.GetToken(); t != nil && t.Position != nil {
		line, column = t.Position.Line, t.Position.Column
	}
	message, hint := at.GetMessage(), checkIndent
	switch {
	case strings.Contains(message, "mapping value is not allowed"), strings.Contains(message, "reserved character"):
		hint = "put a text with special characters in quotes"
	case strings.Contains(message, "not found"), strings.Contains(message, "could not find"):
		hint = "it is opened here and never closed"
	}
	s.add(line, column, "", "not YAML: "+clip(s.mask(message), 120), hint)
}

// empty reports a file without content.
func (s *source) empty() {
	s.add(1, 1, "", "the file is empty; a minimal one is\n"+minimal, "`stint init` writes a commented one")
}

const minimal = `        agents:
          hello:
            kind: exec
            protocol: none
            command: [echo, hello]`

// converter turns the parser's tree into nodes.
type converter struct {
	source *source
	seen   map[*token.Token]bool // tokens of scalars that are part of the tree
}

func (c *converter) node(n ast.Node) *node {
	t := n.GetToken()
	out := &node{text: t.Value, line: t.Position.Line, column: t.Position.Column}
	c.seen[t] = true
	switch n := n.(type) {
	case *ast.NullNode:
		out.shape = nothing
	case *ast.StringNode:
		out.shape, out.text = text, n.Value
		out.quoted = t.Type == token.SingleQuoteType || t.Type == token.DoubleQuoteType
	case *ast.LiteralNode:
		out.shape, out.text, out.block = text, n.Value.Value, true
		c.seen[n.Value.Token] = true
	case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		out.shape = number
	case *ast.BoolNode:
		out.shape = truth
	case *ast.SequenceNode:
		out.shape = list
		for _, v := range n.Values {
			out.items = append(out.items, c.node(v))
		}
	case *ast.MappingNode:
		out.shape = mapping
		for _, v := range n.Values {
			out.pairs = append(out.pairs, pair{c.node(v.Key), c.node(v.Value)})
		}
		c.start(out, n.IsFlowStyle)
		if !n.IsFlowStyle {
			c.aligned(out)
		}
	case *ast.MappingValueNode:
		out.shape = mapping
		out.pairs = append(out.pairs, pair{c.node(n.Key), c.node(n.Value)})
		c.start(out, false)
	default:
		out.shape = unread
		c.source.add(out.line, out.column, "", "expected a text, a number, a list or a mapping, found other YAML", "put it in quotes")
	}
	return out
}

// start lets a mapping without braces begin at its first key, not at its colon.
func (c *converter) start(n *node, braces bool) {
	if !braces && len(n.pairs) > 0 {
		n.line, n.column = n.pairs[0].key.line, n.pairs[0].key.column
	}
}

// aligned reports keys of a mapping that do not stand below each other, and
// values in a line of their own that are not indented more than their key.
func (c *converter) aligned(n *node) {
	for _, p := range n.pairs {
		scalar := p.value.shape == text || p.value.shape == number || p.value.shape == truth
		switch {
		case p.key.column != n.column:
			c.source.add(p.key.line, p.key.column, "", "not YAML: the key does not stand below the one before it", checkIndent)
		case scalar && p.value.line > p.key.line && c.source.indent(p.value.line) < n.column:
			c.source.add(p.value.line, p.value.column, "", "not YAML: this is not indented more than the key above it", checkIndent)
		}
	}
}

// indent returns the number of blanks that a line begins with. The parser's columns
// are off by one for a text with a colon in it that begins a line.
func (s *source) indent(line int) int {
	l := s.lines[min(line, len(s.lines))-1]
	return len(l) - len(strings.TrimLeft(l, " "))
}

// complete reports the first scalar that the parser read and left out.
func (c *converter) complete(tokens token.Tokens) {
	for _, t := range tokens {
		switch t.Type {
		case token.StringType, token.SingleQuoteType, token.DoubleQuoteType, token.IntegerType, token.FloatType, token.BoolType, token.NullType:
			if !c.seen[t] {
				c.source.add(t.Position.Line, t.Position.Column, "", "this belongs to no key", checkIndent)
				return
			}
		}
	}
}

// found says what a node is, for a message.
func (s *source) found(n *node) string {
	switch n.shape {
	case nothing:
		return "nothing"
	case text:
		return fmt.Sprintf("the text %q", clip(s.mask(n.text), 40))
	case number:
		return "the number " + clip(n.text, 40)
	case truth:
		return n.text
	case list:
		return "a list"
	default:
		return "a mapping"
	}
}
