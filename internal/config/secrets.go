package config

import (
	"net/netip"
	"net/textproto"
	"net/url"
	"slices"
	"strings"
	"unicode"
)

const (
	aReference = "env:NAME or file:PATH"
	keepOut    = "name where it is instead: env:NAME takes it from the environment, file:PATH from a file"
)

// reference reads a text that may be a reference, and joins its path.
func (d *decoder) reference(n *node, path, what string) (string, bool) {
	s, ok := d.text(n, path, what)
	if !ok {
		return "", false
	}
	if name, ref := strings.CutPrefix(s, fromEnv); ref && !isVariable(name) {
		d.expected(n, path, "the name of a variable after env:", "", "for example env:GITHUB_TOKEN")
		return "", false
	}
	if name, ref := strings.CutPrefix(s, fromFile); ref {
		if why := badLine(name, 4096); why != "" {
			d.fail(n, path, "expected the path of a file after file:, found one that "+why, "for example file:secrets/token")
			return "", false
		}
		if name, ok = d.joined(n, path, name); !ok {
			return "", false
		}
		s = fromFile + name
	}
	return s, true
}

// secretRef reads a secret, which is never written into the file itself.
func (d *decoder) secretRef(n *node, path, what string, to *string) {
	if n.shape != text || !IsReference(n.text) {
		found := "found a value itself; the file is read, pinned and shared"
		switch {
		case n.shape == nothing || n.text == "" && n.shape == text:
			found = "found nothing"
		case n.shape == list || n.shape == mapping:
			found = "found several"
		}
		if n.shape != nothing {
			d.src.hide(n)
		}
		d.fail(n, path, "expected "+what+" as "+aReference+", "+found, keepOut)
		return
	}
	if s, ok := d.reference(n, path, aReference); ok {
		*to = s
	}
}

// headers reads headers of requests. Those that are called like a secret are references.
func (d *decoder) headers(n *node, path string, to *map[string]string, ours ...string) {
	out, seen := map[string]string{}, map[string]bool{}
	d.each(n, path, "a mapping of headers", func(key, value *node, at string) {
		name := textproto.CanonicalMIMEHeaderKey(key.text)
		switch {
		case !isHeader(key.text):
			d.expected(key, at, "the name of a header, letters, digits and -", "", "")
			return
		case slices.Contains(append(ours, "Host", "Content-Length", "Transfer-Encoding", "Connection", "Upgrade", "Te", "Trailer"), name):
			d.fail(key, at, "stint sets this header itself", "remove it")
			return
		case seen[name]:
			d.fail(key, at, "the header is given twice; capital letters make no difference", "keep one of them")
			return
		}
		seen[name] = true
		if sensitive(key.text) && (value.shape != text || !IsReference(value.text)) {
			var none string
			d.secretRef(value, at, "a secret", &none)
			return
		}
		s, ok := d.reference(value, at, "a text, "+aReference)
		if !ok {
			return
		}
		if why := badLine(s, 8192); why != "" {
			d.fail(value, at, "expected a text, found one that "+why, "")
			return
		}
		out[key.text] = s
	})
	if len(out) > 0 {
		*to = out
	}
}

// isHeader reports whether a header can have the name.
func isHeader(name string) bool {
	other := func(r rune) bool { return !letter(r) && r != '-' }
	return name != "" && len(name) <= 200 && !strings.ContainsFunc(name, other)
}

// sensitive reports whether something of that name is likely to be a secret.
func sensitive(name string) bool {
	words := strings.FieldsFunc(name, func(r rune) bool { return !unicode.IsLetter(r) })
	secret := []string{"authorization", "auth", "token", "key", "secret", "password", "passwd", "cookie", "credential", "credentials",
		"apikey", "authkey", "secretkey", "accesskey", "accesstoken", "authtoken", "privatetoken"}
	return slices.ContainsFunc(words, func(w string) bool { return slices.Contains(secret, strings.ToLower(w)) })
}

// address reads a URL without a user, a fragment and, unless query is allowed, a query.
func (d *decoder) address(n *node, path, what string, query bool) (*url.URL, bool) {
	if n.shape == text && strings.Contains(n.text, "@") {
		if u, err := url.Parse(n.text); err != nil || u.User != nil {
			d.src.hide(n)
			d.fail(n, path, "expected "+what+", found one with a user or a password in it", "leave them out; a key is given by "+aReference)
			return nil, false
		}
	}
	s, ok := d.oneLine(n, path, what, 4096)
	if !ok {
		return nil, false
	}
	u, err := url.Parse(s)
	switch {
	case err != nil:
		d.expected(n, path, what, "it cannot be read", "write what is not plain as %XX")
	case !strings.HasPrefix(s, "http://") && !strings.HasPrefix(s, "https://"):
		d.expected(n, path, what, "", "begin with https:// or http://")
	case u.Hostname() == "":
		d.expected(n, path, what, "it has no host", "")
	case u.Fragment != "":
		d.expected(n, path, what, "it has a fragment, which no server gets", "leave out the # and what follows")
	case u.RawQuery != "" && !query:
		d.expected(n, path, what, "it has a query", "leave out the ? and what follows")
	default:
		return u, true
	}
	return nil, false
}

// private says of a host that is written as an address of no public network, or as the
// name of this machine, which of them it is.
func private(host string) string {
	name := strings.ToLower(strings.TrimSuffix(host, "."))
	if name == "localhost" || strings.HasSuffix(name, ".localhost") {
		return "is this machine"
	}
	ip, err := netip.ParseAddr(host)
	switch ip = ip.Unmap(); {
	case err != nil:
		return ""
	case ip.IsLoopback() || ip.IsUnspecified():
		return "is this machine"
	case ip.IsPrivate() || ip.IsLinkLocalUnicast() || ip.IsMulticast():
		return "is no address of the public Internet"
	}
	return ""
}

// hostOf returns the host of a URL without its port, or "".
func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Hostname()
}
