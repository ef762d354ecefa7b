package hook

import (
	"strings"
)

// fields are the headers of a request by their names in lower case.
type fields map[string][]string

func newFields(headers map[string][]string) fields {
	f := make(fields, len(headers))
	for name, values := range headers {
		lower := strings.ToLower(name)
		f[lower] = append(f[lower], values...)
	}
	return f
}

// one returns the value of a header that is there once and in visible ASCII. why says
// what is wrong with it. Of two headers of one name a proxy and we might each read another.
func (f fields) one(name string) (value, why string) {
	name = strings.ToLower(name)
	values := f[name]
	switch {
	case len(values) == 0 || len(values) == 1 && values[0] == "":
		return "", "the header " + name + " is missing"
	case len(values) > 1:
		return "", "the header " + name + " is there more than once"
	}
	other := func(r rune) bool { return r < ' ' || r > '~' }
	if strings.ContainsFunc(values[0], other) {
		return "", "the header " + name + " has characters that are not ASCII"
	}
	return values[0], ""
}

// shown are the headers that expressions see: each as one text, and none that holds what
// a sender proves itself with to us or to a proxy.
func (f fields) shown() map[string]string {
	out := make(map[string]string, len(f))
	for name, values := range f {
		switch name {
		case "authorization", "proxy-authorization", "cookie":
		default:
			out[name] = strings.Join(values, ", ")
		}
	}
	return out
}
