package acp

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/child"
	"github.com/stint-dev/stint/internal/jsonx"
)

// Bounds of what the agent says, in bytes.
const (
	maxMessage = 8 << 20  // one message; the library reads at most 10 MiB
	maxQueued  = 64 << 20 // said and not journaled yet
	maxText    = 1 << 20  // one answer of the model
	maxInput   = 1 << 20  // arguments of a call
	maxOut     = 32 << 10 // output of a call that is kept
	maxName    = 200      // characters of a name
	maxAsk     = 900      // of a question
)

// What agents send is read leniently here, and values as the bytes that came: the
// library's own types refuse what they do not know, and read numbers as floats.

// notification is the body of session/update.
type notification struct {
	Session string `json:"sessionId"`
	Update  update `json:"update"`
}

type update struct {
	What    string          `json:"sessionUpdate"`
	Content json.RawMessage `json:"content"` // one block of a message, or a list of a call's
	Entries []struct {
		Content string `json:"content"`
		Status  string `json:"status"`
	} `json:"entries"`
	Cost *struct {
		Amount   float64 `json:"amount"`
		Currency string  `json:"currency"`
	} `json:"cost"`
	toolCall
}

// toolCall is what an update says of a call: the members that changed.
type toolCall struct {
	ID        string          `json:"toolCallId"`
	Title     *string         `json:"title"`
	Kind      *string         `json:"kind"`
	Status    *string         `json:"status"`
	Locations json.RawMessage `json:"locations"`
	RawInput  json.RawMessage `json:"rawInput"`
	RawOutput json.RawMessage `json:"rawOutput"`
	Blocks    json.RawMessage `json:"-"` // content, which is something else in other updates
}

// permissionRequest is the body of session/request_permission.
type permissionRequest struct {
	Options []option `json:"options"`
	Call    struct {
		toolCall
		Content json.RawMessage `json:"content"`
	} `json:"toolCall"`
}

type option struct {
	ID   string `json:"optionId"`
	Kind string `json:"kind"`
}

// fileRequest is the body of fs/read_text_file and fs/write_text_file.
type fileRequest struct {
	Path    string  `json:"path"`
	Line    *int    `json:"line"`
	Limit   *int    `json:"limit"`
	Content *string `json:"content"`
}

// block is one piece of content: of a message, or of a call (then it may be a diff).
type block struct {
	Type    string          `json:"type"`
	Text    string          `json:"text"`
	URI     string          `json:"uri"`
	Content json.RawMessage `json:"content"`
	Path    string          `json:"path"`
	Old     *string         `json:"oldText"`
	New     string          `json:"newText"`
}

// text is a block as a reader would see it.
func (b *block) text() string {
	switch b.Type {
	case "text":
		return b.Text
	case "resource_link":
		return b.URI
	}
	return ""
}

// present reports that a member says something.
func present(raw json.RawMessage) bool {
	switch string(bytes.TrimSpace(raw)) {
	case "", "null", "{}", "[]":
		return false
	}
	return true
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// known is what is known of a call, in bounded memory.
type known struct {
	title, kind, status string
	places              []string
	input               json.RawMessage // its arguments, if the agent told them
	output              string
	cut                 int64 // bytes that output lacks
	said                bool  // output is of its content, which goes before a raw output
	changes             []change
}

// change is one that a call makes to a file.
type change struct {
	Path    string `json:"path"`
	Bytes   int    `json:"bytes"`
	SHA256  string `json:"sha256"`
	removed int    // lines
	added   int
}

const maxPlaces = 100 // files of a call that are kept

// merge takes over what an update says.
func (k *known) merge(u toolCall) {
	if u.Title != nil {
		k.title = cutRunes(clean(*u.Title), 4000)
	}
	if u.Kind != nil {
		k.kind = cutRunes(oneLine(*u.Kind), maxName)
	}
	if u.Status != nil {
		k.status = cutRunes(clean(*u.Status), maxName)
	}
	if present(u.RawInput) {
		k.input = arguments(trimmed(u.RawInput, u.ID))
	}
	if present(u.Locations) {
		var places []struct {
			Path string `json:"path"`
		}
		_ = json.Unmarshal(u.Locations, &places)
		k.places = nil
		for _, p := range places[:min(len(places), maxPlaces)] {
			k.places = append(k.places, cutRunes(clean(p.Path), 4000))
		}
	}
	if present(u.Blocks) {
		k.content(blocks(u.Blocks))
	}
	if present(u.RawOutput) && !k.said {
		k.output, k.cut = bound(rawText(u.RawOutput), maxOut)
	}
}

// trimmed are arguments without what an agent keeps its own books with: codex-acp tells
// the id of the call again, and with it those of its turn and the time. Another call that
// asks for the same thing has others.
func trimmed(raw json.RawMessage, id string) json.RawMessage {
	var own struct {
		Call string `json:"call_id"`
	}
	var all map[string]json.RawMessage
	if json.Unmarshal(raw, &own) != nil || own.Call == "" || own.Call != id || json.Unmarshal(raw, &all) != nil {
		return raw
	}
	for _, name := range []string{"call_id", "turn_id", "started_at_ms"} {
		delete(all, name)
	}
	out, err := stint.Marshal(all)
	if err != nil {
		return raw
	}
	return out
}

// asked takes over what a request for permission says. Its content is for who decides,
// and no output.
func (k *known) asked(u toolCall) {
	output, cut, said := k.output, k.cut, k.said
	k.merge(u)
	k.output, k.cut, k.said = output, cut, said
}

// content takes over a call's content. Agents replace it as the call ends, so changes
// stay until there are others.
func (k *known) content(all []block) {
	var text []string
	var changes []change
	for _, b := range all {
		if b.Type == "diff" && len(changes) < maxPlaces {
			removed, added := changed(deref(b.Old), b.New)
			changes = append(changes, change{cutRunes(clean(b.Path), 4000), len(b.New), digest(b.New), removed, added})
		} else if s := b.text(); s != "" {
			text = append(text, s)
		}
	}
	if len(changes) > 0 {
		k.changes = changes
	}
	if len(text) > 0 {
		k.output, k.cut = bound(strings.Join(text, "\n"), maxOut)
		k.said = true
	}
}

// class is the protocol's kind.
func (k *known) class() string {
	if k.kind == "" {
		return kindOther
	}
	return k.kind
}

// name is the call's in the journal: its kind, or its title where that says more.
func (k *known) name() string {
	name := k.class()
	if t := oneLine(k.title); k.class() == kindOther && t != "" {
		name = t
	}
	return cutRunes(name, maxName)
}

// arguments is what the call is to do, as exactly as the agent says: its arguments, else
// its title, the files, and the digests of what is to stand in them.
func (k *known) arguments() json.RawMessage {
	if k.input != nil {
		return k.input
	}
	out, err := stint.Marshal(struct {
		Title     string   `json:"title,omitempty"`
		Locations []string `json:"locations,omitempty"`
		Changes   []change `json:"changes,omitempty"`
	}{k.title, k.places, k.changes})
	if err != nil {
		return nil
	}
	return out
}

func digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:12])
}

// question is what a person reads: the call with its arguments, on one line.
func (k *known) question() string {
	text := k.name()
	if t := oneLine(k.title); t != "" && t != text {
		text += ": " + t
	}
	for _, c := range k.changes[:min(len(k.changes), 5)] {
		text += fmt.Sprintf(" (%s: -%d +%d lines)", c.Path, c.removed, c.added)
	}
	if k.input != nil {
		text += " " + string(k.input)
	}
	return cutRunes(oneLine(text), maxAsk)
}

// outcome is how the call ended.
func (k *known) outcome() outcome {
	o := outcome{Status: k.status, Output: k.output, Cut: k.cut}
	for _, c := range k.changes {
		o.Edits = append(o.Edits, edit{c.Path, c.removed, c.added})
	}
	return o
}

// blocks are the pieces of a call's content.
func blocks(raw json.RawMessage) []block {
	var all []json.RawMessage
	if json.Unmarshal(raw, &all) != nil {
		return nil
	}
	var out []block
	for _, r := range all {
		var b block
		if json.Unmarshal(r, &b) != nil {
			continue
		}
		if b.Type == "content" {
			var inner block
			if json.Unmarshal(b.Content, &inner) != nil {
				continue
			}
			b = inner
		}
		out = append(out, b)
	}
	return out
}

// outcome is the result of a call as it is kept.
type outcome struct {
	Status string `json:"status,omitempty"`
	Output string `json:"output,omitempty"`
	Cut    int64  `json:"cut_bytes,omitempty"`
	Edits  []edit `json:"edits,omitempty"`
	Files  []file `json:"files,omitempty"`
	Stint  string `json:"stint,omitempty"` // why there is none; see the marks
}

// edit is a change to a file that the agent told of.
type edit struct {
	Path    string `json:"path"`
	Removed int    `json:"removed_lines"`
	Added   int    `json:"added_lines"`
}

// file is one that the agent had from stint, or gave to it.
type file struct {
	Read  string `json:"read,omitempty"`
	Wrote string `json:"wrote,omitempty"`
	Bytes int    `json:"bytes"`
	Error string `json:"error,omitempty"`
}

// rawText is a raw output as text: the text that it is, or has by a usual name.
func rawText(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	var all map[string]json.RawMessage
	if json.Unmarshal(raw, &all) == nil {
		for _, name := range []string{"output", "formatted_output", "aggregated_output", "stdout", "error"} {
			if json.Unmarshal(all[name], &s) == nil && s != "" {
				return s
			}
		}
	}
	return string(raw)
}

// changed counts the lines that a change takes away and puts in, between the lines that
// both begin and end with.
func changed(before, after string) (removed, added int) {
	a, b := strings.SplitAfter(before, "\n"), strings.SplitAfter(after, "\n")
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	count := func(lines []string) int {
		n := len(lines)
		if n > 0 && lines[n-1] == "" {
			n--
		}
		return n
	}
	return count(a), count(b)
}

// arguments makes of a call's input what a journal can hold: the same bytes where it is
// strict JSON, else the same value written anew, and of one that is too large its
// beginning and its digest.
func arguments(in json.RawMessage) json.RawMessage {
	in = bytes.TrimSpace(in)
	if len(in) <= maxInput {
		if jsonx.Check(in, jsonx.Limits{}) == nil {
			return bytes.Clone(in)
		}
		var v any
		dec := json.NewDecoder(bytes.NewReader(in))
		dec.UseNumber()
		if dec.Decode(&v) == nil {
			if out, err := json.Marshal(v); err == nil && jsonx.Check(out, jsonx.Limits{}) == nil {
				return out
			}
		}
	}
	text, cut := bound(string(in), maxOut)
	out, err := stint.Marshal(map[string]any{"begins": text, "cut_bytes": cut, "sha256": digest(string(in))})
	if err != nil {
		return nil
	}
	return out
}

// bound cleans a text and cuts it to n bytes; cut is how many bytes are left out.
func bound(s string, n int) (out string, cut int64) {
	s = clean(s)
	if len(s) <= n {
		return s, 0
	}
	kept := string(child.WholeRunes([]byte(s[:n])))
	return kept, int64(len(s) - len(kept))
}

// clean removes control characters but newline and tab, so that a terminal acts on
// nothing. What is not UTF-8 becomes U+FFFD.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && (r < 0x20 || r >= 0x7f && r <= 0x9f) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
}

// oneLine is a text on one line, cleaned.
func oneLine(s string) string { return strings.Join(strings.Fields(clean(s)), " ") }

// cutRunes cuts a text to n characters and says so.
func cutRunes(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:n-1]) + "…"
}

// short is a text in a sentence.
func short(s string, n int) string {
	text, cut := bound(s, n)
	if cut > 0 {
		text += fmt.Sprintf("… (%d bytes more)", cut)
	}
	return text
}
