package hook

import (
	"maps"
	"slices"
	"strings"
)

// Kept is what of a request a hook looks at besides the body: enough to judge it again.
type Kept struct {
	Headers map[string]string `json:"headers,omitempty"` // names in lower case
	Query   map[string]string `json:"query,omitempty"`
}

// Bounds of what is kept, in bytes: of one value, and of all of them with their names.
const (
	maxKeptValue = 1024
	maxKept      = 4096
)

// Request is a request with what was kept of another one, and its body.
func (k Kept) Request(body []byte) Request {
	r := Request{Headers: map[string][]string{}, Query: map[string][]string{}, Body: body}
	for name, text := range k.Headers {
		r.Headers[name] = []string{text}
	}
	for name, text := range k.Query {
		r.Query[name] = []string{text}
	}
	return r
}

// Keep returns what of r to keep: the headers that every hook of the scheme looks at, and
// those headers and parameters that the expressions name. What proves who the sender is, or
// may be a secret by its name, is left out whoever names it; so is what is too long.
func (h *Hook) Keep(r Request) Kept {
	headers := []string{"content-type"}
	switch h.def.Scheme {
	case GitHub:
		headers = append(headers, "x-github-delivery", "x-github-event")
	case Standard:
		headers = append(headers, "webhook-id", "webhook-timestamp", "svix-id", "svix-timestamp")
	}
	left := maxKept
	return Kept{
		Headers: h.keep("headers.", headers, newFields(r.Headers).shown(), &left),
		Query:   h.keep("query.", nil, firsts(r.Query), &left),
	}
}

// keep returns those of all that are wanted or that expressions name, while there is room.
func (h *Hook) keep(prefix string, wanted []string, all map[string]string, left *int) map[string]string {
	for name := range h.uses {
		if rest, ok := strings.CutPrefix(name, prefix); ok {
			wanted = append(wanted, rest)
		}
	}
	out := map[string]string{}
	for _, name := range slices.Sorted(slices.Values(wanted)) {
		text, there := all[name]
		if _, twice := out[name]; twice || !there || h.def.secret(name) || len(text) > maxKeptValue || len(name)+len(text) > *left {
			continue
		}
		*left -= len(name) + len(text)
		out[name] = text
	}
	return out
}

// secret reports whether a header or parameter of that name may hold a secret.
func (d *Definition) secret(name string) bool {
	name = strings.ToLower(name)
	if d.HMAC != nil && name == strings.ToLower(d.HMAC.Header) {
		return true
	}
	return slices.ContainsFunc([]string{"auth", "cookie", "signature", "token", "secret", "password", "api-key", "apikey", "api_key", "access-key"}, func(word string) bool { return strings.Contains(name, word) })
}

// mentions adds the names that an expression mentions to those of the hook.
func (h *Hook) mentions(uses map[string]bool) {
	if h.uses == nil {
		h.uses = map[string]bool{}
	}
	maps.Copy(h.uses, uses)
}
