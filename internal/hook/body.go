package hook

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/url"
	"strings"

	"github.com/stint-dev/stint/internal/jsonx"
)

// parse reads a body that is genuine into what expressions see as body:
//
//	JSON, or no type given     its value
//	a form                     an object of texts, of lists where a name comes twice
//	a form with payload alone  the JSON in it, as GitHub and Slack send it, for these
//	text of any other type     the text
//
// Of two members of one name the last counts, as in Go, JavaScript and Python: a body
// that a sender signed is not refused for it, and its bytes stay as they came.
//
// Where no expression looks at it, JSON is checked and not decoded, and there is no value.
func (h *Hook) parse(f fields, body []byte) (content, error) {
	kind, _, _ := strings.Cut(strings.Join(f["content-type"], ","), ";")
	kind = strings.ToLower(strings.TrimSpace(kind))
	switch {
	case kind == "application/x-www-form-urlencoded":
		return h.form(body)
	case kind == "" || kind == "application/json" || kind == "text/json" || strings.HasSuffix(kind, "+json"):
		return h.json(body)
	default:
		return content{value: string(body)}, nil
	}
}

// content is a body that was parsed.
type content struct {
	value any
	plain []byte // JSON instead of a value
}

// member returns a text below an object, "" where there is none.
func (c content) member(path ...string) string {
	if c.plain != nil {
		return jsonx.Text(c.plain, path...)
	}
	return member(c.value, path...)
}

// json reads JSON as far as it is needed.
func (h *Hook) json(body []byte) (content, error) {
	if !h.uses["body"] && !h.uses["$env"] && json.Valid(body) {
		return content{plain: body}, nil
	}
	v, err := decode(body)
	return content{value: v}, err
}

func (h *Hook) form(body []byte) (content, error) {
	values, err := url.ParseQuery(string(body))
	if err != nil {
		return content{}, refuse(badRequest, "check the content type", "the body is not a form")
	}
	if p := values["payload"]; len(values) == 1 && len(p) == 1 && (h.def.Scheme == GitHub || h.def.Scheme == Slack) {
		return h.json([]byte(p[0]))
	}
	out := make(map[string]any, len(values))
	for name, all := range values {
		if len(all) == 1 {
			out[name] = all[0]
			continue
		}
		list := make([]any, len(all))
		for i, v := range all {
			list[i] = v
		}
		out[name] = list
	}
	return content{value: out}, nil
}

// decode reads JSON for expressions.
func decode(body []byte) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	var v any
	err := dec.Decode(&v)
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &syntax):
		return nil, refuse(badRequest, "check body and content type", "the body is not JSON, byte %d", syntax.Offset)
	case err != nil:
		return nil, refuse(badRequest, "check body and content type", "the body is not JSON: it ends too early")
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, refuse(badRequest, "send one value", "something follows the JSON value of the body, byte %d", dec.InputOffset())
	}
	return jsonx.Exact(v), nil
}

// member returns a text below an object, "" where there is none.
func member(v any, path ...string) string {
	for _, name := range path {
		object, ok := v.(map[string]any)
		if !ok {
			return ""
		}
		v = object[name]
	}
	s, _ := v.(string)
	return s
}
