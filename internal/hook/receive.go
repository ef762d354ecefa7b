package hook

import (
	"crypto/sha256"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/expression"
)

// Request is what came over HTTP. Nothing of it is changed or kept, but for Body, which
// is the Input of a delivery whose hook has no template.
type Request struct {
	Headers map[string][]string // names in any case
	Query   map[string][]string // of the URL
	Body    []byte              // as it came
}

// Decision is what a server does about a request.
type Decision string

// The decisions.
const (
	Accept Decision = "accept" // record the delivery, begin or message a session, and answer 202
	Answer Decision = "answer" // send the reply; no session is begun
	Ignore Decision = "ignore" // answer 200; no session is begun
)

// Verdict is what is to be done about a genuine request.
type Verdict struct {
	Decision Decision
	Delivery Delivery // of Accept; of Ignore Event and Digest alone
	Reply    Reply    // of Answer
	Reason   string   // of Ignore: one line for a person
}

// Reply is what a handshake of a sender is answered with. Send it as plain text, and
// with X-Content-Type-Options: nosniff.
type Reply struct {
	Status int
	Body   string
}

// Delivery is what a request asks for.
type Delivery struct {
	ID      string            // the same whenever the same delivery comes again; 1 to 512 bytes
	Covered bool              // what is verified has the id, or makes it; else refuse a known Digest too
	Digest  stint.Hash        // SHA-256 of the body
	Event   string            // what happened, in the sender's word; may be empty
	Key     string            // deliveries of one key go to one open session; empty: begin one
	Order   *int64            // the event's own time: the number that the sender gives, or microseconds since 1970; nil: none
	Input   []byte            // the prompt
	Session string            // the session's name, which need not be unique; empty: choose one
	Labels  map[string]string // texts of 1 to 256 characters in one line
	At      time.Time         // the signed time; zero: none is signed
}

// Receive judges a request at a time. The secrets are those that the definition refers to,
// in any order. The error is a [Refusal] with its HTTP status in a [stint.Error].
func (h *Hook) Receive(r Request, secrets []string, now time.Time) (Verdict, error) {
	if err := h.fits(r); err != nil { // before it is hashed
		return Verdict{}, err
	}
	f := newFields(r.Headers)
	proof, err := h.def.verify(f, r.Body, secrets, now)
	if err != nil {
		return Verdict{}, err
	}
	return h.judge(r, f, proof)
}

// Judge is [Hook.Receive] for a request that nobody has to prove: one that was verified
// when it came, or that somebody only asks about. A scheme's id is taken as it stands.
func (h *Hook) Judge(r Request) (Verdict, error) {
	if err := h.fits(r); err != nil {
		return Verdict{}, err
	}
	f, p := newFields(r.Headers), proof{}
	if h.def.Scheme == Standard {
		for _, name := range []string{"svix-id", "webhook-id"} {
			if id, why := f.one(name); why == "" {
				p.id = short(id)
			}
		}
	}
	return h.judge(r, f, p)
}

// fits refuses a body that is too long.
func (h *Hook) fits(r Request) error {
	if n := int64(len(r.Body)); n > h.def.Limits.Body {
		return refuse(tooLarge, "raise limits.body if such deliveries are meant", "the body has more than %d bytes", h.def.Limits.Body)
	}
	return nil
}

// judge judges a request that is genuine.
func (h *Hook) judge(r Request, f fields, p proof) (Verdict, error) {
	if coding := strings.Join(f["content-encoding"], ","); coding != "" && !strings.EqualFold(coding, "identity") {
		return Verdict{}, refuse(unsupported, "send it as it is", "the body is compressed")
	}
	if h.def.Scheme == GitHub && strings.Join(f["x-github-event"], "") == "ping" {
		return answer("pong"), nil
	}
	if len(r.Body) == 0 {
		return Verdict{}, refuse(badRequest, "send {} if there is nothing to say", "the body is empty")
	}
	body, err := h.parse(f, r.Body)
	if err != nil {
		return Verdict{}, err
	}
	if h.def.Scheme == Slack && body.member("type") == "url_verification" {
		return challenge(body.member("challenge"))
	}
	d := &delivery{hook: h, body: body, meter: expression.NewMeter(len(r.Body)), env: map[string]any{
		"body": body.value, "headers": f.shown(), "query": firsts(r.Query), "event": h.event(f, body), "raw": "",
	}}
	if h.raw {
		d.env["raw"] = string(r.Body)
	}
	d.meter.Functions(d.env)
	return d.judge(f, p, r.Body)
}

func answer(text string) Verdict {
	return Verdict{Decision: Answer, Reply: Reply{Status: 200, Body: text}}
}

// challenge answers the handshake of Slack, which wants its own word back.
func challenge(word string) (Verdict, error) {
	if word == "" || len(word) > 1024 || strings.ContainsFunc(word, unicode.IsControl) {
		return Verdict{}, refuse(badRequest, "", "the challenge is not a line of text")
	}
	return answer(word), nil
}

// firsts is the first value of each name.
func firsts(values map[string][]string) map[string]string {
	out := make(map[string]string, len(values))
	for name, all := range values {
		if len(all) > 0 {
			out[name] = all[0]
		}
	}
	return out
}

// event is what happened, in the sender's word.
func (h *Hook) event(f fields, body content) string {
	switch h.def.Scheme {
	case GitHub:
		return strings.Join(f["x-github-event"], ", ")
	case Slack:
		if e := body.member("event", "type"); e != "" {
			return e
		}
		if e := body.member("command"); e != "" {
			return e
		}
	}
	return body.member("type")
}

// delivery is one request while it is judged.
type delivery struct {
	hook  *Hook
	body  content
	meter *expression.Meter
	env   map[string]any
	out   Delivery
}

func (d *delivery) judge(f fields, p proof, body []byte) (Verdict, error) {
	h := d.hook
	event, _ := d.env["event"].(string)
	d.out = Delivery{Digest: sha256.Sum256(body), Event: short(event), Covered: h.covered, At: p.at, Input: body}
	if h.when.Given() {
		v, err := run(d.meter, "when", &h.when, d.env)
		if err != nil {
			return Verdict{}, err
		}
		if ours, _ := v.(bool); !ours {
			return Verdict{Decision: Ignore, Delivery: Delivery{Event: d.out.Event, Digest: d.out.Digest}, Reason: "when is false for this delivery"}, nil
		}
	}
	for _, part := range []func() error{
		func() error { return d.id(f, p) }, d.key, d.order, d.name, d.labels, d.input,
	} {
		if err := part(); err != nil {
			return Verdict{}, err
		}
	}
	return Verdict{Decision: Accept, Delivery: d.out}, nil
}

// id finds what makes the delivery the same when it comes again.
func (d *delivery) id(f fields, p proof) error {
	h := d.hook
	if h.dedupe.Given() {
		id, err := d.text("dedupe", &h.dedupe)
		if err == nil && id == "" {
			err = refuse(unprocessable, "write what every delivery has, or leave dedupe out", "dedupe gives no text for this delivery")
		}
		d.out.ID = id
		return err
	}
	switch h.def.Scheme {
	case Standard:
		d.out.ID = p.id
	case GitHub:
		id, why := f.one("x-github-delivery")
		if why != "" {
			return refuse(badRequest, "GitHub sends the header X-GitHub-Delivery", "%s", why)
		}
		d.out.ID = short(id)
	case Stripe:
		d.out.ID = short(d.body.member("id"))
	case Slack:
		d.out.ID = short(d.body.member("event_id"))
	}
	if d.out.ID == "" {
		d.out.ID = "sha256:" + d.out.Digest.String()
	}
	return nil
}

func (d *delivery) key() (err error) {
	if d.hook.key.Given() {
		d.out.Key, err = d.text("key", &d.hook.key)
	}
	return err
}

// text is the value of an expression as an id: a text or a whole number. What is
// missing is "".
func (d *delivery) text(field string, p *expression.Program) (string, error) {
	v, err := run(d.meter, field, p, d.env)
	if err != nil {
		return "", err
	}
	switch v := v.(type) {
	case nil:
		return "", nil
	case string:
		return short(v), nil
	case int:
		return strconv.Itoa(v), nil
	case int64:
		return strconv.FormatInt(v, 10), nil
	}
	return "", refuse(unprocessable, "string(…) makes a text of any value", "%s gives neither a text nor a whole number", field)
}

// short is a text that a store can index: one that is long, or is not text, is hashed.
func short(s string) string {
	if len(s) <= maxText && strings.ToValidUTF8(s, "") == s && !strings.ContainsFunc(s, unicode.IsControl) {
		return s
	}
	return "sha256:" + stint.Hash(sha256.Sum256([]byte(s))).String()
}

func (d *delivery) order() error {
	h := d.hook
	if !h.order.Given() {
		return nil
	}
	v, err := run(d.meter, "order", &h.order, d.env)
	if err != nil {
		return err
	}
	var n int64
	switch v := v.(type) {
	case nil:
		return nil
	case int:
		n = int64(v)
	case int64:
		n = v
	case float64:
		if v != math.Trunc(v) || math.Abs(v) > 1<<53 {
			return refuse(unprocessable, "give whole numbers", "order gives a number that is not whole")
		}
		n = int64(v)
	case string:
		at, err := time.Parse(time.RFC3339Nano, v)
		if err != nil {
			return refuse(unprocessable, "give a whole number, or a time such as 2026-05-01T10:00:00Z", "order gives a text that is no RFC 3339 time")
		}
		n = at.UnixMicro()
	default:
		return refuse(unprocessable, "give a whole number, or a time such as 2026-05-01T10:00:00Z", "order gives neither a number nor a time")
	}
	d.out.Order = &n
	return nil
}

// name makes a session's name of a text: letters, digits, '.', '_' and '-', beginning
// with a letter or a digit. Every other character becomes '-'.
func (d *delivery) name() error {
	if !d.hook.session.Given() {
		return nil
	}
	v, err := run(d.meter, "name", &d.hook.session, d.env)
	if err != nil {
		return err
	}
	s, err := written(d.meter, "name", v)
	if v == nil || err != nil {
		return err
	}
	var out strings.Builder
	for _, r := range s {
		r = unicode.ToLower(r)
		switch {
		case r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '.' || r == '_':
			out.WriteRune(r)
		case !strings.HasSuffix(out.String(), "-"):
			out.WriteByte('-')
		}
		if out.Len() >= maxName {
			break
		}
	}
	d.out.Session = strings.Trim(out.String(), "-._")
	return nil
}

func (d *delivery) labels() error {
	for _, name := range slices.Sorted(maps.Keys(d.hook.labels)) {
		s, err := render(d.meter, "labels."+name, d.hook.labels[name], d.env)
		if err != nil {
			return err
		}
		if s = line(s); s == "" {
			continue
		}
		if d.out.Labels == nil {
			d.out.Labels = map[string]string{}
		}
		d.out.Labels[name] = s
	}
	return nil
}

// line is a text as a label can have it.
func line(s string) string {
	s = strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "�")))
	if r := []rune(s); len(r) > maxLabel {
		return string(r[:maxLabel-1]) + "…"
	}
	return s
}

func (d *delivery) input() error {
	if d.hook.input == nil {
		return nil
	}
	s, err := render(d.meter, "input", d.hook.input, d.env)
	d.out.Input = []byte(s)
	return err
}
