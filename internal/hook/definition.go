package hook

import (
	"time"
)

// Scheme is how a sender proves itself.
type Scheme string

// The schemes. None has to be said: a hook without a proof is never the default.
const (
	Standard Scheme = "standard-webhooks" // id, time and body; secrets are whsec_ and base64
	GitHub   Scheme = "github"            // the body alone, in X-Hub-Signature-256
	Stripe   Scheme = "stripe"            // time and body, in Stripe-Signature
	Slack    Scheme = "slack"             // time and body, in X-Slack-Signature
	Generic  Scheme = "hmac"              // any header, see [HMAC]
	Bearer   Scheme = "bearer"            // a token in Authorization; nothing is signed
	None     Scheme = "none"              // whoever reaches the URL
)

// Schemes lists all schemes, in the order in which people are told of them.
func Schemes() []Scheme {
	return []Scheme{Standard, GitHub, Stripe, Slack, Generic, Bearer, None}
}

// Signs reports whether requests of the scheme carry a proof, so that it needs a secret.
func (s Scheme) Signs() bool { return s != None }

// Bounds of a definition.
const (
	MaxSecrets = 2       // active at once: the new one and the one that is going out
	MaxBody    = 1 << 20 // default of [Limits.Body], in bytes
	MaxLabels  = 64      // of a session

	maxTemplate     = 64 << 10 // bytes
	maxPlaceholders = 100
	maxText         = 512 // bytes of an id or a key; longer ones are hashed
	maxLabel        = 256 // characters of a label's text
	maxName         = 64  // characters of a session's name
)

// Window is how far the signed time of a request may be from ours, either way. It is
// what Standard Webhooks, Stripe and Slack say.
const Window = 300 * time.Second

// Definition is what stint.yaml says of one hook. It holds no secret: only where each of
// them is. Expressions are of expr-lang and know body, headers, query, event and raw.
type Definition struct {
	Name    string   // of the hook, as in its URL
	Agent   string   // whose sessions it begins
	Scheme  Scheme   //
	HMAC    *HMAC    // set for [Generic] alone
	Secrets []string // references, env:NAME or file:PATH; 1 or 2, none for [None]

	When    string            // true or false: whether the delivery is for us; empty: it is
	Key     string            // a text: deliveries of one key go to one open session; empty: each begins one
	Dedupe  string            // a text: the delivery's id; empty: the scheme's, or the body's digest
	Order   string            // a whole number or an RFC 3339 time: the event's own time; empty: none
	Late    Late              // what becomes of a delivery that is older than one before it
	Input   string            // a template of the prompt; empty: the body as it came
	Session string            // a text that the session's name is made of; empty: stint chooses one
	Labels  map[string]string // templates of the session's labels

	Limits Limits
	Busy   Busy
}

// HMAC are the options of [Generic].
type HMAC struct {
	Header    string    // that the signature is in
	Algorithm Algorithm //
	Encoding  Encoding  //
	Prefix    string    // before the signature, such as "sha256="; may be empty
	Timestamp string    // the header with the time in seconds; empty: no time is signed
	Signed    string    // what is signed: text with {timestamp}, ending in {body}; empty: {body}, or {timestamp}.{body} with a Timestamp
}

// Algorithm is a hash function.
type Algorithm string

// The hash functions.
const (
	SHA256 Algorithm = "sha256"
	SHA512 Algorithm = "sha512"
)

// Encoding is how the bytes of a signature are written.
type Encoding string

// The encodings.
const (
	Hex    Encoding = "hex"    // in lower case
	Base64 Encoding = "base64" // standard alphabet, padded
)

// Late is what becomes of a delivery whose Order is less than the greatest so far of its key.
type Late string

// What becomes of late deliveries.
const (
	KeepLate Late = "keep" // it goes on its way, in the order of arrival
	DropLate Late = "drop" // it is recorded, and begins and messages nothing
)

// Busy is what becomes of a delivery whose session, by its key, is at work. For one that
// there is no room for under Limits.Concurrency the sender is told to come again.
type Busy string

// What becomes of a delivery when its session is at work.
const (
	Queue     Busy = "queue"     // it waits its turn
	Reject    Busy = "reject"    // the sender is told to come again
	Interrupt Busy = "interrupt" // the session reads it at once; needs a key
	Replace   Busy = "replace"   // the session is stopped and another begins; needs a key
)

// Limits bound what a hook takes. The server holds all but Body; zero is no limit there.
type Limits struct {
	Body        int64 // bytes of a body, 1 to 1 GiB; 0: [MaxBody]
	Rate        Rate
	Concurrency int // sessions of this hook that have not ended
}

// Rate is so many requests in a time.
type Rate struct {
	Count int
	Per   time.Duration
}
