package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/tool"
)

const mendSchema = "mend the schema; the members of an object stand under properties"

// maxContent bounds a text in a file of its own, in bytes.
const maxContent = 256 << 10

// readPlain is [read] for a plain file: a pipe would keep the caller for ever.
func readPlain(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "open", Path: path, Err: errors.New("it is no plain file")}
	}
	return read(path)
}

// content reads a text of several lines, or that of the file that it names.
func (d *decoder) content(n *node, path, what string, to *string) {
	what += ", or {file: PATH}"
	if n.shape == mapping && valueOf(n, "file") == nil {
		d.fail(n, path, "expected "+what+", found a mapping without file", "write the text itself, or the path of a file that holds it after file:")
		return
	}
	if n.shape == mapping {
		d.section(n, path, what, d.contentMembers(to))
		return
	}
	s, ok := d.text(n, path, what)
	switch {
	case !ok:
	case strings.TrimSpace(s) == "":
		d.fail(n, path, "expected "+what+", found an empty text", "leave the key out")
	default:
		*to = s
	}
}

func (d *decoder) contentMembers(to *string) []member {
	return []member{{"file", func(n *node, path string) {
		if b, ok := d.fileNamed(n, path); ok {
			*to = string(b)
		}
	}}}
}

// fileNamed reads the file that a node names: UTF-8 without a secret in it.
func (d *decoder) fileNamed(n *node, path string) ([]byte, bool) {
	name, ok := d.path(n, path, "the path of a file")
	if !ok {
		return nil, false
	}
	wrong := func(why, hint string) ([]byte, bool) {
		d.fail(n, path, fmt.Sprintf("the file %q %s", clip(n.text, 80), why), hint)
		return nil, false
	}
	if d.read == nil {
		return wrong("is not read here", "write its content in its place")
	}
	b, err := d.read(name)
	var at *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return wrong("is not there", "create it, or correct the path, which is relative to this file")
	case errors.As(err, &at):
		return wrong("cannot be read: "+at.Err.Error(), "it must be a plain file that this user may read")
	case err != nil:
		return wrong("cannot be read: "+err.Error(), "it must be a plain file that this user may read")
	case len(b) > maxContent:
		return wrong("is larger than 256 KiB", "is it the right file?")
	case !utf8.Valid(b) || bytes.ContainsRune(b, 0):
		return wrong("is not UTF-8 text", "is it the right file?")
	case len(bytes.TrimSpace(b)) == 0:
		return wrong("is empty", "write into it what the agent is to be told")
	case d.src.secret.Match(b):
		return wrong("has something in it that looks like a secret, and it becomes part of the definition", "take it out; a tool may have it, by env:NAME or file:PATH")
	}
	return b, true
}

// result reads the schema of a result, written in its place or in a file of its own.
func (d *decoder) result(n *node, path string, to *json.RawMessage) {
	const what = "{schema: JSON Schema} or {file: PATH}"
	if n.shape == mapping && valueOf(n, "schema") == nil && valueOf(n, "file") == nil {
		d.fail(n, path, "expected "+what+", found a mapping without them", "write the JSON Schema below schema")
		return
	}
	given := d.section(n, path, what, d.resultMembers(to))
	if given["schema"] != nil && given["file"] != nil {
		d.fail(given["file"], join(path, "file"), "there is a schema beside it", "keep one of them")
	}
}

func (d *decoder) resultMembers(to *json.RawMessage) []member {
	return []member{
		{"schema", func(n *node, path string) { d.schema(n, path, to) }},
		{"file", func(n *node, path string) {
			b, ok := d.fileNamed(n, path)
			if !ok {
				return
			}
			if _, err := tool.NewSchema(b); err != nil {
				d.fail(n, path, fmt.Sprintf("the file %q is no JSON Schema: %s", clip(n.text, 80), schemaFault(err)), mendSchema)
				return
			}
			var line bytes.Buffer
			if err := json.Compact(&line, b); err != nil {
				d.fail(n, path, fmt.Sprintf("the file %q is no JSON: %v", clip(n.text, 80), err), "mend the schema")
				return
			}
			if d.saysSomething(n, path, line.Bytes()) {
				*to = line.Bytes()
			}
		}},
	}
}

// schema reads a JSON Schema that is written as YAML; the order of its members is kept.
func (d *decoder) schema(n *node, path string, to *json.RawMessage) {
	if n.shape != mapping {
		d.expected(n, path, "a JSON Schema", "", "for example {type: object, properties: {title: {type: string}}}")
		return
	}
	var b bytes.Buffer
	if !d.json(n, path, &b) {
		return
	}
	if _, err := tool.NewSchema(b.Bytes()); err != nil {
		d.fail(n, path, "this is no JSON Schema: "+d.src.mask(schemaFault(err)), mendSchema)
		return
	}
	if d.saysSomething(n, path, b.Bytes()) {
		*to = b.Bytes()
	}
}

// saysSomething refuses a schema that takes anything: most often the names of members
// stand where properties should.
func (d *decoder) saysSomething(n *node, path string, schema []byte) bool {
	var s map[string]json.RawMessage
	if json.Unmarshal(schema, &s) == nil {
		for _, k := range []string{"type", "properties", "$ref", "anyOf", "oneOf", "allOf", "enum", "const", "items"} {
			if s[k] != nil {
				return true
			}
		}
	}
	d.fail(n, path, "this JSON Schema has none of type, properties, enum, anyOf and their like, so it would take anything",
		"write {type: object, properties: {NAME: {type: string}}}")
	return false
}

// args reads the schema of a tool's arguments, which are an object.
func (d *decoder) args(n *node, path string, to *json.RawMessage) {
	var raw json.RawMessage
	if d.schema(n, path, &raw); raw == nil {
		return
	}
	var top struct {
		Type json.RawMessage `json:"type"`
	}
	if err := json.Unmarshal(raw, &top); err != nil || string(top.Type) != `"object"` {
		d.fail(n, path, "the arguments of a tool are an object", "begin with type: object, and put the arguments under properties")
		return
	}
	*to = raw
}

// json writes a node as JSON, its numbers with their digits.
func (d *decoder) json(n *node, path string, to *bytes.Buffer) bool {
	switch n.shape {
	case nothing:
		to.WriteString("null")
	case truth:
		to.WriteString(strings.ToLower(n.text))
	case number:
		if !regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`).MatchString(n.text) {
			d.expected(n, path, "a number as JSON writes it", "", "write decimal digits, or quotes around a text")
			return false
		}
		to.WriteString(n.text)
	case text:
		s, ok := d.text(n, path, "a text")
		if !ok {
			return false
		}
		b, err := stint.Marshal(s)
		if err != nil {
			d.fail(n, path, "this text cannot be written as JSON", "remove what is no text from it")
			return false
		}
		to.Write(b)
	case list:
		ok := true
		to.WriteByte('[')
		for i, item := range n.items {
			if i > 0 {
				to.WriteByte(',')
			}
			ok = d.json(item, fmt.Sprintf("%s[%d]", path, i), to) && ok
		}
		to.WriteByte(']')
		return ok
	case mapping:
		first, ok := true, true
		to.WriteByte('{')
		d.each(n, path, "", func(key, value *node, at string) {
			name, err := stint.Marshal(key.text)
			if err != nil || badText(key.text) != "" || d.src.secret.MatchString(key.text) {
				d.fail(key, at, "this key is no text, or it looks like a secret", "write another one")
				return
			}
			if !first {
				to.WriteByte(',')
			}
			first = false
			to.Write(name)
			to.WriteByte(':')
			ok = d.json(value, at, to) && ok
		})
		to.WriteByte('}')
		return ok
	default:
		return false
	}
	return true
}

// causeOf is the text of the innermost error of ours in err.
func causeOf(err error) string {
	var e *stint.Error
	for errors.As(err, &e) && e.Err != nil {
		err = e.Err
	}
	return err.Error()
}

// hintOf is the hint of the innermost error of ours in err.
func hintOf(err error) string {
	hint := ""
	var e *stint.Error
	for errors.As(err, &e) {
		hint, err = e.Hint, e.Err
	}
	return hint
}

// schemaFault says in one line what is wrong with a schema. The library says it as a
// tree, of which the leaves are for people.
func schemaFault(err error) string {
	all := strings.Split(causeOf(err), "\n")
	for _, line := range all {
		if at, ok := strings.CutPrefix(strings.TrimSpace(line), "- at "); ok && !strings.HasSuffix(at, " failed") {
			return "at " + clip(strings.Replace(at, "at '':", "at its top:", 1), 200)
		}
	}
	return clip(all[0], 200)
}
