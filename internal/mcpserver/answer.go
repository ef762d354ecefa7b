package mcpserver

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/term"
)

// Bounds of an answer, so that a session cannot flood who watches it.
const (
	maxString = 4 << 10   // bytes of one text
	maxItems  = 200       // members of one list
	maxFree   = 8 << 10   // bytes of JSON whose shape is an agent's
	maxList   = 128 << 10 // bytes of all items of a list
	maxText   = 48 << 10  // bytes of an answer in words
	maxCuts   = 20        // cuts that are listed
)

// cutMark ends a text that was cut.
const cutMark = " …[cut]"

// cut says what an answer leaves out.
type cut struct {
	Path string `json:"path"` // JSON pointer
	Size int    `json:"size"` // of the whole: bytes of a text, members of a list
	Kept int    `json:"kept"`
}

// excerpt is the beginning of JSON that is too long.
type excerpt struct {
	Text string `json:"text"`
	Size int    `json:"size"` // bytes of the whole
}

// result is the answer as the protocol has it.
func (a answer) result() (*mcp.CallToolResult, error) {
	doc, err := bounded(a.doc)
	if err != nil {
		return nil, err
	}
	return &mcp.CallToolResult{StructuredContent: doc, Content: []mcp.Content{&mcp.TextContent{Text: a.words()}}}, nil
}

// words is the answer as text.
func (a answer) words() string { return clipped(term.Escape(a.text), maxText) }

// failed is an error as a tool's result: its code tells what to do next, its hint how.
func failed(err error) *mcp.CallToolResult {
	doc := struct {
		Schema string     `json:"schema"`
		Code   stint.Code `json:"code"`
		Error  string     `json:"error"`
		Hint   string     `json:"hint"`
	}{"stint.error/1", stint.CodeOf(err), err.Error(), ""}
	var e *stint.Error
	if errors.As(err, &e) {
		doc.Hint = e.Hint
	}
	if doc.Hint == "" {
		doc.Hint = "stint explain " + string(doc.Code) + "  says what it asks of you"
	}
	text, err := bounded(doc)
	if err != nil {
		text = []byte(`{"schema":"stint.error/1","code":"internal","error":"the error cannot be said","hint":"report it"}`)
	}
	// Not as structured content: that has the shape of the tool's output, or is not there.
	return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: string(text)}}}
}

// bounded is doc, an object, as JSON with nothing in its texts that a terminal could act
// on. Texts and lists that are too long are cut; the member cut then lists which.
func bounded(doc any) (json.RawMessage, error) {
	var raw bytes.Buffer
	enc := json.NewEncoder(&raw)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(doc); err != nil {
		return nil, &stint.Error{Code: stint.Internal, Op: "json", Err: err}
	}
	b := bounder{dec: json.NewDecoder(&raw)}
	b.dec.UseNumber()
	if err := b.value(""); err != nil {
		return nil, &stint.Error{Code: stint.Internal, Op: "json", Err: err}
	}
	if len(b.cuts) > 0 {
		b.out.Truncate(b.out.Len() - 1)
		b.out.WriteString(`,"cut":`)
		if err := b.put(b.cuts); err != nil {
			return nil, err
		}
		b.out.WriteByte('}')
	}
	return b.out.Bytes(), nil
}

// bounder copies JSON, token by token, so that the order of members stays.
type bounder struct {
	dec  *json.Decoder
	out  bytes.Buffer
	cuts []cut
}

func (b *bounder) value(path string) error {
	t, err := b.dec.Token()
	if err != nil {
		return err
	}
	switch t := t.(type) {
	case json.Delim:
		if t == '{' {
			return b.object(path)
		}
		return b.array(path)
	case string:
		text := term.Escape(t)
		if len(text) > maxString {
			b.note(cut{path, len(t), maxString})
		}
		return b.put(clipped(text, maxString))
	case json.Number:
		b.out.WriteString(t.String())
		return nil
	}
	return b.put(t)
}

func (b *bounder) object(path string) error {
	b.out.WriteByte('{')
	for first := true; b.dec.More(); first = false {
		t, err := b.dec.Token()
		if err != nil {
			return err
		}
		if !first {
			b.out.WriteByte(',')
		}
		name := fmt.Sprint(t)
		if err := b.put(clipped(term.Escape(name), maxString)); err != nil {
			return err
		}
		b.out.WriteByte(':')
		if err := b.value(path + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(clipped(term.Line(name), 100))); err != nil {
			return err
		}
	}
	b.out.WriteByte('}')
	_, err := b.dec.Token()
	return err
}

func (b *bounder) array(path string) error {
	b.out.WriteByte('[')
	n := 0
	for ; b.dec.More(); n++ {
		if n >= maxItems { // read over it
			var skipped json.RawMessage
			if err := b.dec.Decode(&skipped); err != nil {
				return err
			}
			continue
		}
		if n > 0 {
			b.out.WriteByte(',')
		}
		if err := b.value(path + "/" + strconv.Itoa(n)); err != nil {
			return err
		}
	}
	if n > maxItems {
		b.note(cut{path, n, maxItems})
	}
	b.out.WriteByte(']')
	_, err := b.dec.Token()
	return err
}

func (b *bounder) note(c cut) {
	if len(b.cuts) < maxCuts {
		b.cuts = append(b.cuts, c)
	}
}

// put writes v, which holds nothing harmful, as JSON.
func (b *bounder) put(v any) error {
	enc := json.NewEncoder(&b.out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	b.out.Truncate(b.out.Len() - 1) // the newline
	return nil
}

// clipped is text of at most n bytes and the mark, whole if it fits.
func clipped(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) { // not in the middle of a character
		n--
	}
	return text[:n] + cutMark
}

// free bounds JSON whose shape is an agent's: what is too long becomes an excerpt, and
// null stands in its place.
func free(raw json.RawMessage) (json.RawMessage, *excerpt) {
	if len(raw) <= maxFree {
		return raw, nil
	}
	return nil, &excerpt{Text: clipped(string(raw), maxString/2), Size: len(raw)}
}

// fitting is how many of the items fit into a list, at least one.
func fitting[T any](items []T) (int, error) {
	used := 0
	for i := range items {
		one, err := bounded(items[i])
		if err != nil {
			return 0, err
		}
		if used += len(one); used > maxList && i > 0 {
			return i, nil
		}
	}
	return len(items), nil
}
