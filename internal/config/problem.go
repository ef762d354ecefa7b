package config

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/stint-dev/stint"
)

// maxProblems is how many problems of one file are reported.
const maxProblems = 20

// Problem is one thing that is wrong with a file.
type Problem struct {
	File    string `json:"file"`
	Line    int    `json:"line"`           // from 1
	Column  int    `json:"column"`         // in characters, from 1
	Path    string `json:"path,omitempty"` // of the key: agents.triage.limits.wall; empty where there is none
	Text    string `json:"text"`           // what was expected and what was found
	Hint    string `json:"hint,omitempty"` // what to write instead
	Excerpt string `json:"excerpt"`        // the line and a caret below it, two lines; what looks like a secret is masked
}

// String returns file:line:column, the path, the text, and below it the excerpt
// with the hint at the caret.
func (p *Problem) String() string {
	if p.Hint == "" {
		return p.what()
	}
	return p.what() + " " + p.Hint
}

// what is String without the hint.
func (p *Problem) what() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s:%d:%d: ", p.File, p.Line, p.Column)
	if p.Path != "" {
		b.WriteString(p.Path + ": ")
	}
	b.WriteString(p.Text + "\n" + p.Excerpt)
	return b.String()
}

// Problems is everything that is wrong with a file, in the order of its lines, at
// most 20; Left is how many more there were.
type Problems struct {
	List []Problem
	Left int
}

// Error returns the text of each problem, one below the other. Of several each has its
// hint at its caret; the hint of a single one is that of the [stint.Error] around it.
func (p *Problems) Error() string {
	if len(p.List) == 1 && p.Left == 0 {
		return p.List[0].what()
	}
	all := make([]string, 0, len(p.List)+1)
	for i := range p.List {
		all = append(all, p.List[i].String())
	}
	if p.Left > 0 {
		all = append(all, fmt.Sprintf("and %d more", p.Left))
	}
	return strings.Join(all, "\n")
}

// source is the text of a file and what is wrong with it.
type source struct {
	name     string
	text     string
	lines    []string
	secret   *regexp.Regexp
	hidden   map[int][][2]int // by line, from one column up to another: values that nobody may see
	problems []Problem
}

func newSource(name string, b []byte) *source {
	// Editors on Windows put a byte order mark in front.
	text := strings.TrimPrefix(string(b), "\ufeff")
	return &source{name: name, text: text, lines: strings.Split(text, "\n"), secret: secretPattern()}
}

// add records a problem at a line and column, both from 1.
func (s *source) add(line, column int, path, text, hint string) {
	line, column = min(max(line, 1), len(s.lines)), max(column, 1)
	s.problems = append(s.problems, Problem{File: s.name, Line: line, Column: column, Path: path, Text: text, Hint: hint})
}

// count is how many problems there are so far.
func (s *source) count() int { return len(s.problems) }

// err returns all problems as one error, or nil.
func (s *source) err() error {
	if len(s.problems) == 0 {
		return nil
	}
	slices.SortStableFunc(s.problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	kept := min(len(s.problems), maxProblems)
	for i := range s.problems[:kept] {
		p := &s.problems[i]
		p.Excerpt = s.excerpt(p.Line, p.Column)
	}
	return &stint.Error{Code: stint.Invalid, Op: "config", Hint: s.hint(),
		Err: &Problems{List: s.problems[:kept:kept], Left: len(s.problems) - kept}}
}

// hint is what to do about the problems.
func (s *source) hint() string {
	const check = "stint agent validate checks the file again"
	if len(s.problems) == 1 && s.problems[0].Hint != "" {
		return s.problems[0].Hint + "; " + check
	}
	return check
}

// excerpt returns a line with a caret under a column. Of a long line it shows
// the part around the column.
func (s *source) excerpt(line, column int) string {
	const before, width = 60, 100
	raw := []rune(strings.TrimSuffix(s.lines[line-1], "\r"))
	for _, span := range s.hidden[line] {
		for i := span[0] - 1; i < min(span[1]-1, len(raw)); i++ {
			raw[i] = '•'
		}
	}
	text := []rune(printable(s.mask(string(raw))))
	at := min(column-1, len(text))
	lead := ""
	if at > before {
		text, at, lead = text[at-before:], before, "…"
	}
	tail := ""
	if len(text) > width {
		text, tail = text[:width], "…"
	}
	gutter := fmt.Sprintf("%5d", line)
	return fmt.Sprintf("%s | %s%s%s\n%*s | %*s^", gutter, lead, string(text), tail, len(gutter), "", at+utf8.RuneCountInString(lead), "")
}

// hide keeps a value out of excerpts: its text where that stands as it is, else all to
// the end of the line. No problem of a text of several lines is reported in these.
func (s *source) hide(n *node) {
	if s.hidden == nil {
		s.hidden = map[int][][2]int{}
	}
	switch n.shape {
	case list:
		for _, item := range n.items {
			s.hide(item)
		}
		return
	case mapping:
		for _, p := range n.pairs {
			s.hide(p.value)
		}
		return
	}
	to := math.MaxInt
	if runes := []rune(s.lines[min(n.line, len(s.lines))-1]); n.column <= len(runes) && !n.block {
		from, length := string(runes[n.column-1:]), utf8.RuneCountInString(n.text)
		switch {
		case n.quoted && len(from) > 0 && strings.HasPrefix(from[1:], n.text+from[:1]):
			to = n.column + length + 2
		case !n.quoted && strings.HasPrefix(from, n.text):
			to = n.column + length
		}
	}
	s.hidden[n.line] = append(s.hidden[n.line], [2]int{n.column, to})
}

// mask hides what looks like a secret, leaving its length.
func (s *source) mask(text string) string {
	return s.secret.ReplaceAllStringFunc(text, func(m string) string {
		return strings.Repeat("•", utf8.RuneCountInString(m))
	})
}

// printable replaces what a terminal would act on instead of showing it; a tab
// becomes a blank, so that the caret stays under its character.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t':
			return ' '
		case !unicode.IsPrint(r):
			return utf8.RuneError
		}
		return r
	}, text)
}

// clip shortens text to n characters for a message.
func clip(text string, n int) string {
	text = printable(text)
	if utf8.RuneCountInString(text) <= n {
		return text
	}
	return string([]rune(text)[:n-1]) + "…"
}

// secretPattern finds what the makers of well-known services let their keys look
// like, so that a key is told from other text without knowing it. The boundary
// in front keeps "task-…" from being taken for "sk-…".
func secretPattern() *regexp.Regexp {
	return regexp.MustCompile(`\b(?:` + strings.Join([]string{
		`sk-[A-Za-z0-9_-]{16,}`, `[spr]k_(?:live|test)_[A-Za-z0-9]{16,}`,
		`gh[pousr]_[A-Za-z0-9]{16,}`, `github_pat_[A-Za-z0-9_]{16,}`, `glpat-[A-Za-z0-9_-]{16,}`,
		`A[KS]IA[A-Z0-9]{16}`, `AIza[A-Za-z0-9_-]{30,}`, `ya29\.[A-Za-z0-9_-]{20,}`,
		`xox[abeoprs]-[A-Za-z0-9-]{10,}`, `xapp-[A-Za-z0-9-]{10,}`, `hf_[A-Za-z0-9]{20,}`, `npm_[A-Za-z0-9]{30,}`,
		`pypi-[A-Za-z0-9_-]{30,}`, `whsec_[A-Za-z0-9+/=]{16,}`, `SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}`,
		`gsk_[A-Za-z0-9]{20,}`, `xai-[A-Za-z0-9]{20,}`, `dop_v1_[a-f0-9]{32,}`,
		`eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]*`,
	}, "|") + `)|-----BEGIN [A-Z ]*PRIVATE KEY-----`)
}
