package http

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/tool"
)

// target is a URL with places.
type target struct {
	origin string          // scheme, host and port: no place in it
	path   []tool.Template // its segments
	query  []pair
}

type pair struct {
	name  string // escaped
	value tool.Template
}

// parseTarget reads a URL with places. Places may stand in the path and in the values of
// the query only.
func parseTarget(s string) (target, error) {
	var t target
	scheme, rest, ok := strings.Cut(s, "://")
	if !ok || scheme != "http" && scheme != "https" {
		return t, fmt.Errorf("the URL %.200q does not begin with http:// or https://", s)
	}
	if strings.Contains(rest, "#") {
		return t, errors.New("the URL has a fragment, which no server gets; leave it out")
	}
	before, query, hasQuery := strings.Cut(rest, "?")
	host, path, _ := strings.Cut(before, "/")
	if strings.ContainsAny(host, "{}") {
		return t, errors.New("an argument would choose the host; name the host itself, and make a tool for each")
	}
	u, err := url.Parse(scheme + "://" + host)
	switch {
	case err != nil:
		return t, fmt.Errorf("the URL's host: %w", err)
	case u.User != nil:
		return t, errors.New("the URL has a user or a password in it; put an Authorization header under secrets")
	case u.Hostname() == "":
		return t, errors.New("the URL has no host")
	}
	t.origin = scheme + "://" + u.Host
	for segment := range strings.SplitSeq(path, "/") {
		tpl, err := tool.ParseTemplate(segment)
		if err != nil {
			return t, err
		}
		t.path = append(t.path, tpl)
	}
	if !hasQuery {
		return t, nil
	}
	for one := range strings.SplitSeq(query, "&") {
		name, value, _ := strings.Cut(one, "=")
		if strings.ContainsAny(name, "{}") {
			return t, fmt.Errorf("an argument would name a parameter: %.100q; write name={argument}", one)
		}
		tpl, err := tool.ParseTemplate(value)
		if err != nil {
			return t, err
		}
		t.query = append(t.query, pair{name, tpl})
	}
	return t, nil
}

// names returns the arguments that have a place.
func (t target) names() []string {
	var names []string
	for _, tpl := range t.templates() {
		for _, n := range tpl.Names() {
			if !slices.Contains(names, n) {
				names = append(names, n)
			}
		}
	}
	return names
}

func (t target) templates() []tool.Template {
	all := slices.Clone(t.path)
	for _, p := range t.query {
		all = append(all, p.value)
	}
	return all
}

// fill puts the arguments in their places; wrong says why it cannot.
func (t target) fill(args tool.Args) (address, wrong string) {
	var out strings.Builder
	out.WriteString(t.origin)
	for _, segment := range t.path {
		plain, err := segment.Expand(func(n string) (string, error) {
			if args.Text(n) == "" {
				return "", fmt.Errorf("the argument %s is needed for the path and must not be empty", n)
			}
			return args.Text(n), nil
		})
		if err != nil {
			return "", err.Error()
		}
		text, fixed := segment.Text()
		if !fixed {
			// A server that takes the path apart after it has unescaped it must not climb either.
			for part := range strings.SplitSeq(strings.ReplaceAll(plain, `\`, "/"), "/") {
				if part == "." || part == ".." {
					return "", fmt.Sprintf("%q would lead elsewhere in the path", plain)
				}
			}
			text, _ = segment.Expand(func(n string) (string, error) { return escape(args.Text(n)), nil })
		}
		out.WriteString("/" + text)
	}
	sep := "?"
	for _, p := range t.query {
		if slices.ContainsFunc(p.value.Names(), func(n string) bool { return !args.Has(n) }) {
			continue
		}
		value, _ := p.value.Expand(func(n string) (string, error) { return escape(args.Text(n)), nil })
		out.WriteString(sep + p.name + "=" + value)
		sep = "&"
	}
	return out.String(), ""
}

// escape leaves nothing but letters, digits and -._~ as they are (RFC 3986, unreserved), so
// that the text means the same in a path and in a query.
func escape(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") }

// rest is the arguments that have no place, each with its bytes, as a JSON object. They
// are all of args if the URL has no place.
func (t target) rest(all json.RawMessage, args tool.Args) []byte {
	used := t.names()
	if len(used) == 0 {
		return all
	}
	left := tool.Args{}
	for name, raw := range args {
		if !slices.Contains(used, name) {
			left[name] = raw
		}
	}
	b, err := stint.Marshal(left)
	if err != nil {
		return all // not reached: args were read from JSON
	}
	return b
}
