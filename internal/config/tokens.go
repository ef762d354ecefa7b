package config

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/goccy/go-yaml/token"
)

// The YAML parser recurses with nesting and is quadratic in the keys of a
// mapping, so both are bounded before it sees the file.
const (
	maxTokens  = 50_000
	maxNesting = 16
)

// tokens reports what is not supported, and what the parser would accept although
// YAML does not: two programs must not read a file differently. Of each kind it
// reports the first.
func (s *source) tokens(all token.Tokens) {
	c := &checker{
		source: s, reported: map[string]bool{},
		escape: regexp.MustCompile(`\\(?:x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|U00[01][0-9A-Fa-f]{5}|[0abtnvfre "/\\N_LP\t])`),
	}
	before := &token.Token{Position: &token.Position{}}
	for _, t := range all {
		if t.Type == token.CommentType {
			continue
		}
		if c.count++; c.count > maxTokens {
			c.report(t, "the file holds more than 50,000 keys and values", "is it the right file?")
			return
		}
		c.documents(t)
		c.brackets(t, before)
		c.lists(t)
		if len(c.open) > maxNesting || c.dashes > maxNesting {
			c.report(t, fmt.Sprintf("lists and mappings are nested more than %d deep", maxNesting), "no key needs that; is a bracket missing?")
			return
		}
		if what, hint := unsupported(t.Type); what != "" {
			c.report(t, "found "+what, hint)
		}
		switch t.Type {
		case token.MappingValueType:
			c.colon(t, before)
		case token.StringType:
			if before.Type != token.LiteralType && before.Type != token.FoldedType {
				c.plain(t)
			}
		case token.SingleQuoteType, token.DoubleQuoteType, token.InvalidType:
			c.quoted(t)
		}
		before = t
	}
}

// checker is the state of going over the tokens.
type checker struct {
	source   *source
	reported map[string]bool // what was said already
	open     []bracket
	line     int    // of the token
	runes    []rune // of that line
	dashes   int    // in it
	count    int
	headers  int
	ended    bool           // the document
	escape   *regexp.Regexp // what \ may begin in double quotes
}

// bracket is an open bracket or brace.
type bracket struct {
	kind  token.Type
	colon bool // one has come since it or the last comma in it
}

func (c *checker) report(t *token.Token, what, hint string) {
	if !c.reported[what] {
		c.reported[what] = true
		c.source.add(t.Position.Line, t.Position.Column, "", what, hint)
	}
}

// documents allows one --- at the beginning and ... at the end.
func (c *checker) documents(t *token.Token) {
	header := t.Type == token.DocumentHeaderType
	if header {
		c.headers++
	}
	if header && (c.headers > 1 || c.count > 1) || c.ended && t.Type != token.DocumentEndType {
		c.report(t, "expected one YAML document, found a second one", "remove the lines --- and ... between them")
	}
	c.ended = c.ended || t.Type == token.DocumentEndType
}

// brackets pairs them, and allows nothing of block style between them.
func (c *checker) brackets(t, before *token.Token) {
	const whole = "check the brackets and braces here and on the lines above"
	switch t.Type {
	case token.SequenceStartType, token.MappingStartType:
		c.open = append(c.open, bracket{kind: t.Type})
	case token.SequenceEndType, token.MappingEndType:
		opened := token.SequenceStartType
		if t.Type == token.MappingEndType {
			opened = token.MappingStartType
		}
		if len(c.open) == 0 || c.open[len(c.open)-1].kind != opened {
			c.report(t, "not YAML: nothing is open that "+t.Value+" could close", whole)
			return
		}
		c.open = c.open[:len(c.open)-1]
	case token.CollectEntryType:
		if before.Type == token.SequenceStartType || before.Type == token.MappingStartType || before.Type == token.CollectEntryType {
			c.report(t, "not YAML: a comma with nothing before it", "remove it")
		}
		if last := len(c.open) - 1; last >= 0 {
			c.open[last].colon = false
		}
	case token.SequenceEntryType:
		if len(c.open) > 0 {
			c.report(t, "not YAML: a list with dashes inside brackets or braces", "write it as [a, b]")
		}
	case token.LiteralType, token.FoldedType:
		if len(c.open) > 0 {
			c.report(t, "not YAML: a text of several lines inside brackets or braces", "write the mapping or list over several lines too")
		}
	}
}

// lists counts the dashes of a line, each of which nests.
func (c *checker) lists(t *token.Token) {
	if t.Position.Line != c.line {
		c.line, c.dashes = t.Position.Line, 0
		c.runes = []rune(c.source.lines[min(t.Position.Line, len(c.source.lines))-1])
	}
	if t.Type == token.SequenceEntryType {
		c.dashes++
	}
}

// colon wants a colon in the line of its key, and a blank after it: without one
// YAML reads one word.
func (c *checker) colon(t, before *token.Token) {
	if before.Position.Line != t.Position.Line {
		c.report(t, "not YAML: a colon without a key before it", "put it in the line of the key")
		return
	}
	if last := len(c.open) - 1; last >= 0 {
		if c.open[last].colon {
			c.report(t, "not YAML: two colons without a comma between them", "put a comma after each value, and texts with a colon in quotes")
		}
		c.open[last].colon = true
	}
	if before.Type == token.SingleQuoteType || before.Type == token.DoubleQuoteType {
		return
	}
	if at := t.Position.Column - 1; at+1 < len(c.runes) && c.runes[at] == ':' && !strings.ContainsRune(" \t\r,[]{}", c.runes[at+1]) {
		c.report(t, "not YAML: a key without a blank after its colon", "put a blank after the colon")
	}
}

// A text that goes on in the next line without a mark is more often a quote or a
// colon forgotten.
const (
	severalLines = "expected a text in one line, found one over several"
	inOneLine    = "put it in one line, or after | or >- in the lines below its key"
)

// plain checks a text without quotes.
func (c *checker) plain(t *token.Token) {
	s := t.Value
	switch {
	case strings.Contains(strings.TrimSpace(t.Origin), "\n"):
		c.report(t, severalLines, inOneLine)
	case strings.Contains(s, ": ") || strings.HasSuffix(s, ":") || strings.Contains(s, " #") || s != "" && strings.ContainsRune("?%@`,[]{}&*!|>#'\"", rune(s[0])),
		len(c.open) > 0 && strings.ContainsAny(s, "[]{}"):
		c.report(t, "not YAML: special characters in a text without quotes", "put it in quotes, or check the brackets and braces")
	}
}

// quoted checks a text in quotes, as it stands in the file. One that could not be
// read is none of its business unless an escape is to blame.
func (c *checker) quoted(t *token.Token) {
	whole, closed := c.literal(t)
	if !closed {
		if t.Type != token.InvalidType {
			c.report(t, severalLines, inOneLine)
		}
		return
	}
	if strings.HasPrefix(whole, `"`) && strings.Contains(c.escape.ReplaceAllString(whole, ""), `\`) {
		c.report(t, `not YAML: \ begins an escape in double quotes, and this is none`, `write \\, or use single quotes`)
	}
}

// literal returns a text in quotes with its quotes, if it ends in its line. A
// backslash in double quotes, and a single quote in single ones, makes the next
// character a part of it.
func (c *checker) literal(t *token.Token) (whole string, closed bool) {
	start := t.Position.Column - 1
	if start < 0 || start >= len(c.runes) {
		return "", false
	}
	quote := c.runes[start]
	for i := start + 1; i < len(c.runes); i++ {
		switch {
		case quote == '"' && c.runes[i] == '\\', quote == '\'' && c.runes[i] == '\'' && i+1 < len(c.runes) && c.runes[i+1] == '\'':
			i++
		case c.runes[i] == quote:
			return string(c.runes[start : i+1]), true
		}
	}
	return "", false
}

// unsupported says what a token is that this file has no use for, or "".
func unsupported(t token.Type) (what, hint string) {
	const write, quoted = "write the value where it is used", "; if it is a text, put it in quotes"
	switch t {
	case token.AnchorType:
		return "an anchor (&)", write + quoted
	case token.AliasType:
		return "an alias (*)", write + quoted
	case token.MergeKeyType:
		return "a merge key (<<)", write
	case token.TagType:
		return "a tag (!)", "the type of a value follows from its key" + quoted
	case token.MappingKeyType:
		return "a complex key (?)", "write KEY: VALUE"
	case token.DirectiveType:
		return "a YAML directive (%)", "remove the line"
	}
	return "", ""
}
