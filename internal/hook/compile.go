package hook

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/expression"
)

// Fault is one thing that is wrong with a definition.
type Fault = expression.Fault

// Faults is everything that is wrong with a definition.
type Faults []Fault

// Error returns the faults, one below the other.
func (f Faults) Error() string {
	all := make([]string, len(f))
	for i := range f {
		all[i] = f[i].Error()
	}
	return strings.Join(all, "\n")
}

// Hook is a definition that was checked. It may be used concurrently.
type Hook struct {
	def                      Definition
	when, key, dedupe, order expression.Program
	session                  expression.Program
	input                    template
	labels                   map[string]template
	uses                     map[string]bool // names that expressions mention, see [expression.Program]
	raw                      bool            // an expression mentions raw
	covered                  bool            // the delivery's id is part of what is verified
}

// Compile checks a definition and fills in its defaults. The error is [stint.Invalid],
// its cause a [Faults] with all that is wrong.
func Compile(d Definition) (*Hook, error) {
	c := compiler{hook: &Hook{def: d.resolved(), labels: map[string]template{}}}
	c.scheme()
	c.choices()
	c.expressions()
	if len(c.faults) > 0 {
		return nil, &stint.Error{Code: stint.Invalid, Op: "hook " + expression.Clip(d.Name, 64), Err: c.faults,
			Hint: "stint agent validate checks the file again"}
	}
	return c.hook, nil
}

// Definition returns what the hook was made of, defaults filled in.
func (h *Hook) Definition() Definition { return h.def.resolved() }

// resolved is a copy with defaults filled in.
func (d *Definition) resolved() Definition {
	out := *d
	out.Secrets, out.Labels = slices.Clone(d.Secrets), maps.Clone(d.Labels)
	if d.HMAC != nil {
		h := *d.HMAC
		h.Algorithm, h.Encoding, h.Signed = either(h.Algorithm, SHA256), either(h.Encoding, Hex), h.signed()
		out.HMAC = &h
	}
	out.Busy, out.Late = either(d.Busy, Queue), either(d.Late, KeepLate)
	if d.Limits.Body == 0 {
		out.Limits.Body = MaxBody
	}
	return out
}

func either[T comparable](v, otherwise T) T {
	var zero T
	if v == zero {
		return otherwise
	}
	return v
}

// compiler collects what is wrong.
type compiler struct {
	hook   *Hook
	faults Faults
}

func (c *compiler) fail(field, hint, format string, args ...any) {
	c.faults = append(c.faults, Fault{Field: field, Line: 1, Column: 1, Text: fmt.Sprintf(format, args...), Hint: hint})
}

// scheme checks how senders prove themselves.
func (c *compiler) scheme() {
	d := &c.hook.def
	words := make([]string, len(Schemes()))
	for i, s := range Schemes() {
		words[i] = string(s)
	}
	if !slices.Contains(Schemes(), d.Scheme) {
		c.fail("scheme", "scheme: none has to be said; then whoever reaches the URL begins sessions",
			"expected one of %s, found %q", strings.Join(words, ", "), expression.Clip(string(d.Scheme), 40))
		return
	}
	switch n := len(d.Secrets); {
	case d.Scheme.Signs() && (n < 1 || n > MaxSecrets):
		c.fail("secret", "give env:NAME or file:PATH, or a list of two while the secret is changed", "expected 1 or %d secrets, found %d", MaxSecrets, n)
	case !d.Scheme.Signs() && n > 0:
		c.fail("secret", "remove it, or name the scheme that it is for", "it has no effect under scheme: none")
	}
	switch {
	case d.Scheme == Generic && d.HMAC == nil:
		c.fail("hmac", "add hmac: {header: X-Signature}", "the key hmac is missing")
	case d.Scheme != Generic && d.HMAC != nil:
		c.fail("hmac", "remove it, or write scheme: hmac", "it has no effect under scheme: %s", d.Scheme)
	case d.HMAC != nil:
		c.hmac(d.HMAC)
	}
}

func (c *compiler) hmac(h *HMAC) {
	header := regexp.MustCompile(`^[A-Za-z0-9_-]{1,200}$`)
	if !header.MatchString(h.Header) {
		c.fail("hmac.header", "for example X-Signature", "expected the name of the header that the signature is in")
	}
	if h.Timestamp != "" && !header.MatchString(h.Timestamp) {
		c.fail("hmac.timestamp", "for example X-Timestamp", "expected the name of the header that the time is in")
	}
	if h.Timestamp != "" && strings.EqualFold(h.Timestamp, h.Header) {
		c.fail("hmac.timestamp", "a time and a signature in one header are those of scheme: stripe", "it is the header of the signature")
	}
	if h.Algorithm != SHA256 && h.Algorithm != SHA512 {
		c.fail("hmac.algorithm", "", "expected sha256 or sha512")
	}
	if h.Encoding != Hex && h.Encoding != Base64 {
		c.fail("hmac.encoding", "", "expected hex or base64")
	}
	if odd := func(r rune) bool { return r < ' ' || r > '~' }; len(h.Prefix) > 64 || strings.ContainsFunc(h.Prefix, odd) {
		c.fail("hmac.prefix", "for example sha256=", "expected at most 64 characters of ASCII")
	}
	before, ends := strings.CutSuffix(h.Signed, "{body}")
	_, separator, timed := strings.Cut(before, "{timestamp}")
	switch {
	case !ends || strings.Contains(before, "{body}") || strings.Count(before, "{timestamp}") > 1 || len(before) > 200:
		c.fail("hmac.signed", "for example v0:{timestamp}:{body}", "expected text that ends in {body} and has {timestamp} at most once")
	case timed != (h.Timestamp != ""):
		c.fail("hmac.signed", "a time that is not signed proves nothing, and one that is signed is compared", "{timestamp} and the key timestamp need each other")
	case timed && (separator == "" || separator[0] >= '0' && separator[0] <= '9'):
		// Else digits could move from the body into the time.
		c.fail("hmac.signed", "for example {timestamp}.{body}", "expected something between {timestamp} and what follows that is no digit")
	}
}

// choices checks words and numbers.
func (c *compiler) choices() {
	d := &c.hook.def
	if d.Name == "" {
		c.fail("name", "", "the hook has no name")
	}
	if d.Agent == "" {
		c.fail("agent", "name an agent of the file", "the key agent is missing")
	}
	if b := d.Limits.Body; b < 1 || b > 1<<30 {
		c.fail("limits.body", "", "expected 1 byte to 1GiB")
	}
	if r := d.Limits.Rate; r != (Rate{}) && (r.Count < 1 || r.Per <= 0) {
		c.fail("limits.rate", "for example 60/m", "expected a number of deliveries in a time")
	}
	if d.Limits.Concurrency < 0 {
		c.fail("limits.concurrency", "", "expected a whole number from 1")
	}
	if !slices.Contains([]Busy{Queue, Reject, Interrupt, Replace}, d.Busy) {
		c.fail("busy", "", "expected queue, reject, interrupt or replace")
	}
	if (d.Busy == Interrupt || d.Busy == Replace) && d.Key == "" {
		c.fail("busy", "add key:, which says which session a delivery is for", "%s needs the key key", d.Busy)
	}
	switch {
	case d.Late != KeepLate && d.Late != DropLate:
		c.fail("late", "", "expected keep or drop")
	case d.Late == DropLate && (d.Order == "" || d.Key == ""):
		c.fail("late", "add order: and key:, of which the newest delivery is known", "drop needs the keys order and key")
	}
}

// expressions compiles what is computed for each delivery.
func (c *compiler) expressions() {
	h, d := c.hook, &c.hook.def
	c.expression("when", d.When, true, &h.when)
	c.expression("key", d.Key, false, &h.key)
	c.expression("dedupe", d.Dedupe, false, &h.dedupe)
	c.expression("order", d.Order, false, &h.order)
	c.expression("name", d.Session, false, &h.session)
	c.template("input", d.Input, &h.input)
	if len(d.Labels) > MaxLabels {
		c.fail("labels", "", "expected at most %d labels, found %d", MaxLabels, len(d.Labels))
		return
	}
	label := regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._/-]{0,62}$`)
	for _, name := range slices.Sorted(maps.Keys(d.Labels)) {
		if !label.MatchString(name) {
			c.fail("labels", "a label has 1 to 63 letters, digits, '.', '_', '-' and '/'", "there can be no label %q", expression.Clip(name, 40))
			continue
		}
		var t template
		c.template("labels."+name, d.Labels[name], &t)
		h.labels[name] = t
	}
	h.covered = d.covers(&h.dedupe)
}

// covers reports whether nobody can give a captured request another id. Without a
// signature there is nothing to capture it for.
func (d *Definition) covers(dedupe *expression.Program) bool {
	switch {
	case d.Scheme == Bearer || d.Scheme == None:
		return true
	case d.Dedupe == "":
		return d.Scheme != GitHub // whose id is in a header that is not signed
	}
	for _, unsigned := range []string{"headers", "query", "event", "$env"} {
		if dedupe.Uses[unsigned] {
			return false
		}
	}
	return true
}

func (c *compiler) expression(field, src string, truth bool, to *expression.Program) {
	if src == "" {
		return
	}
	p, f := compileExpression(src, truth)
	c.add(field, f)
	*to = p
	c.hook.mentions(p.Uses)
	c.hook.raw = c.hook.uses["raw"] || c.hook.uses["$env"]
}

func (c *compiler) template(field, src string, to *template) {
	if src == "" {
		return
	}
	t, f := compileTemplate(src)
	c.add(field, f)
	*to = t
	for i := range t {
		c.hook.mentions(t[i].program.Uses)
	}
	c.hook.raw = c.hook.uses["raw"] || c.hook.uses["$env"]
}

func (c *compiler) add(field string, f *Fault) {
	if f != nil {
		f.Field = field
		c.faults = append(c.faults, *f)
	}
}
