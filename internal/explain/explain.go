// Package explain has a page on every status, wait, reason, exit code, error, kind of
// entry and word that stint shows, and finds the one that is meant.
package explain

import (
	"cmp"
	"embed"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/ident"
	"github.com/stint-dev/stint/internal/term"
)

// The pages, one file a topic: a heading with the topic's name and what it is
// about, then a heading for each key, a sentence, and more text.
//
//go:embed pages/*.md
var pageFiles embed.FS

// Schema names the shape of topics and of pages as JSON.
const Schema = "stint.explain/1"

// Page explains one word, code or number.
type Page struct {
	Topic   string `json:"topic"`   // status, wait, reason, exit, error, kind, effect, message, word
	Key     string `json:"key"`     // what it explains
	Summary string `json:"summary"` // one sentence
	Text    string `json:"text"`    // more; may be empty
}

// Topic is the pages of one subject.
type Topic struct {
	Name  string `json:"topic"`
	About string `json:"about"`
	Note  string `json:"note"` // holds for all pages; may be empty
	Pages []Page `json:"items"`
}

// topicOrder is the order in which topics are listed.
func topicOrder() []string {
	return []string{"status", "wait", "reason", "exit", "error", "kind", "effect", "message", "word"}
}

// Topics returns all pages.
func Topics() []Topic {
	names, _ := fs.Glob(pageFiles, "pages/*.md") // the pattern is right
	var all []Topic
	for _, name := range names {
		b, err := pageFiles.ReadFile(name)
		if err != nil { // an embedded file that is listed can be read
			continue
		}
		all = append(all, parseTopic(string(b)))
	}
	order := topicOrder()
	slices.SortFunc(all, func(a, b Topic) int {
		return cmp.Compare(slices.Index(order, a.Name), slices.Index(order, b.Name))
	})
	return all
}

func parseTopic(s string) Topic {
	first, rest, _ := strings.Cut(s, "\n## ")
	title, note, _ := strings.Cut(first, "\n")
	name, about, _ := strings.Cut(strings.TrimPrefix(title, "# "), ": ")
	t := Topic{Name: name, About: about, Note: strings.TrimSpace(note)}
	for part := range strings.SplitSeq(rest, "\n## ") {
		key, text, _ := strings.Cut(part, "\n")
		summary, more, _ := strings.Cut(strings.TrimSpace(text), "\n\n")
		t.Pages = append(t.Pages, Page{Topic: name, Key: key, Summary: summary, Text: strings.TrimSpace(more)})
	}
	return t
}

// Find returns the pages on code: all that have it as their key, or the pages of
// a topic by its name. "exit:5" and "wait:doubt" choose the topic;
// "waiting:doubt" and "pending:interrupted" are understood as they are printed in
// lists. Nothing found is [stint.NotFound].
func Find(code string) ([]Page, error) {
	key := strings.ToLower(strings.TrimSpace(code))
	key = strings.TrimPrefix(key, "pending:")
	if after, ok := strings.CutPrefix(key, "waiting:"); ok {
		key = "wait:" + after
	}
	topic, in, _ := strings.Cut(strings.ReplaceAll(key, " ", ":"), ":")
	var found []Page
	for _, t := range Topics() {
		for _, p := range t.Pages {
			if p.Key == key || t.Name == topic && p.Key == in || in == "" && (t.Name == key || t.Name+"s" == key) {
				found = append(found, p)
			}
		}
	}
	if len(found) > 0 {
		return found, nil
	}
	err := stint.NotFound.Errorf("explain", "there is no page on %q", term.Cut(code, 80))
	err.Hint = "stint explain lists the pages"
	if near := nearestPage(key); near != "" {
		err.Hint = "did you mean " + near + "? " + err.Hint
	}
	return nil, err
}

func nearestPage(key string) string {
	best, far := "", max(2, len(key)/3)+1
	for _, t := range Topics() {
		for _, p := range t.Pages {
			if d := ident.Distance(key, p.Key); d < far {
				best, far = p.Key, d
			}
		}
	}
	return best
}

// Write prints pages in full.
func Write(w io.Writer, st term.Style, pages []Page) error {
	var b strings.Builder
	for i, p := range pages {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(st.Paint(term.Bold, p.Key) + "  " + st.Paint(term.Dim, "("+p.Topic+")") + "\n  " + p.Summary + "\n")
		if p.Text != "" {
			b.WriteString("\n  " + strings.ReplaceAll(strings.ReplaceAll(p.Text, "\n", "\n  "), "\n  \n", "\n\n") + "\n")
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// WriteTopics lists the pages that there are.
func WriteTopics(w io.Writer, st term.Style) error {
	var b strings.Builder
	for i, t := range Topics() {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(st.Paint(term.Bold, t.Name) + "  " + t.About + "\n")
		width := 0
		for _, p := range t.Pages {
			width = max(width, term.Width(p.Key))
		}
		for _, p := range t.Pages {
			line := "  " + term.Pad(p.Key, width, false) + "  " + p.Summary
			if st.TTY {
				line = term.Cut(line, st.Width)
			}
			b.WriteString(line + "\n")
		}
	}
	if st.TTY {
		b.WriteString("\nOne of them whole: stint explain KEY\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}
