package access

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"encoding/binary"
	"encoding/hex"
	"hash/crc32"
	"slices"
	"strings"
	"time"

	"github.com/stint-dev/stint"
)

// Kind says who carries a token. It is part of the token's text.
type Kind string

// The kinds. The first three come in an Authorization header; a Login code is redeemed
// once for a Web token, which only a cookie carries.
const (
	User  Kind = "user"  // a person's programs: the CLI, scripts
	Agent Kind = "agent" // what an agent has while it runs; it never decides approvals or administers
	CI    Kind = "ci"    // a build, a cron job, another service
	Login Kind = "login" // single use, in a link
	Web   Kind = "web"   // a browser that redeemed a Login code
)

// lifetimes returns how long a token of a kind is good by default and at most; zero for
// no kind. None is good for ever: a token that nobody remembers ends by itself.
func (k Kind) lifetimes() (usual, most time.Duration) {
	const day = 24 * time.Hour
	switch k {
	case User, CI:
		return 90 * day, 366 * day
	case Agent:
		return day, 7 * day
	case Login:
		return 5 * time.Minute, 15 * time.Minute
	case Web:
		return 12 * time.Hour, 12 * time.Hour
	}
	return 0, 0
}

// Bearer reports whether a token of this kind may come in an Authorization header.
func (k Kind) Bearer() bool { return k == User || k == Agent || k == CI }

// never reports whether nothing of this kind may have a scope, whatever is stored.
// An agent that could decide would answer its own questions.
func (k Kind) never(s Scope) bool {
	return k == Agent && (s == ApprovalsDecide || s == Admin)
}

// The parts of a token's text, in bytes before and characters after encoding.
const (
	prefix      = "stint_"
	idBytes     = 10
	secretBytes = 32
	idChars     = 16 // 80 bits
	secretChars = 52 // 256 bits and four zero bits
	crcChars    = 7  // 32 bits after three zero bits
	maxText     = len(prefix) + len("agent_") + idChars + 1 + secretChars + crcChars
)

// RandomBytes is how many random bytes a token is made of: its id and its secret.
const RandomBytes = idBytes + secretBytes

// Pattern is a regular expression that matches tokens, for secret scanners. The last
// seven characters are the checksum, see [Parse].
const Pattern = `stint_(user|agent|ci|login|web)_[0-9a-hjkmnp-tv-z]{16}_[0-9a-hjkmnp-tv-z]{59}`

// alphabet is Crockford's base32 in lower case, as of session ids: no character is
// taken for another, and a double click selects all of a token.
const alphabet = "0123456789abcdefghjkmnpqrstvwxyz"

func encoding() *base32.Encoding { return base32.NewEncoding(alphabet).WithPadding(base32.NoPadding) }

// Hash is the SHA-256 of a token's text. It is all that is stored of the secret: 256
// random bits need no slow hash. Its text form is hexadecimal.
type Hash [sha256.Size]byte

// MarshalText writes 64 hexadecimal digits.
func (h Hash) MarshalText() ([]byte, error) { return []byte(hex.EncodeToString(h[:])), nil }

// UnmarshalText reads 64 hexadecimal digits; another text is [stint.Invalid].
func (h *Hash) UnmarshalText(b []byte) error {
	if n, err := hex.Decode(h[:], b[:min(len(b), 2*len(h))]); err != nil || n != len(h) || len(b) != 2*len(h) {
		return stint.Invalid.Errorf("token hash", "it is not 64 hexadecimal digits")
	}
	return nil
}

// Token is what is stored of a token. From its fields nobody can make one that is let in.
type Token struct {
	ID       string    `json:"id"` // 16 characters, part of the text, no secret
	Kind     Kind      `json:"kind"`
	Name     string    `json:"name"`             // of the person or program; the actor of what it does
	Role     Role      `json:"role,omitempty"`   // or
	Scopes   []Scope   `json:"scopes,omitempty"` // one of the two
	Hash     Hash      `json:"hash"`
	From     string    `json:"from,omitempty"` // the id of the token that asked for this one, and with which it ends
	Created  time.Time `json:"created"`
	Expires  time.Time `json:"expires"`
	Revoked  time.Time `json:"revoked,omitzero"` // also when a login code was redeemed
	LastUsed time.Time `json:"last_used,omitzero"`
}

// Spec is what a new token is to be.
type Spec struct {
	Kind     Kind
	Name     string // 1 to 64 printable ASCII characters
	Role     Role   // or
	Scopes   []Scope
	From     string        // see [Token]
	Lifetime time.Duration // 0: as usual for the kind; at most 366 days, 7 for an agent
}

// Secret is the text of a token, which exists once, for whoever asked for it. Its text
// forms are redacted; only Reveal gives it away.
type Secret struct{ text string }

// Reveal returns the text of the token.
func (s Secret) Reveal() string { return s.text }

// String returns a placeholder, as fmt and slog print it.
func (Secret) String() string { return "(token)" }

// GoString returns a placeholder, as %#v prints it.
func (Secret) GoString() string { return "(token)" }

// MarshalText returns a placeholder, as encoding/json writes it.
func (Secret) MarshalText() ([]byte, error) { return []byte("(token)"), nil }

// Mint makes a token of random bytes, which the caller takes from crypto/rand for this
// call alone. Only the [Token] is stored. An impossible spec, and random bytes that
// nobody filled, are [stint.Invalid]; a kind that may not have such a scope is
// [stint.Denied].
func Mint(s Spec, now time.Time, random [RandomBytes]byte) (Token, Secret, error) {
	none := func(err *stint.Error, hint string) (Token, Secret, error) {
		err.Hint = hint
		return Token{}, Secret{}, err
	}
	usual, most := s.Kind.lifetimes()
	if s.Lifetime == 0 {
		s.Lifetime = usual
	}
	scopes := s.Scopes
	if s.Role != "" {
		scopes = s.Role.Scopes()
	}
	switch {
	case most == 0:
		return none(stint.Invalid.Errorf("token", "there is no kind %q", s.Kind), "the kinds are user, agent and ci")
	case !goodName(s.Name):
		return none(stint.Invalid.Errorf("token", "the name %q is not 1 to 64 printable ASCII characters", s.Name), "name the person or the program")
	case s.Lifetime < 0 || s.Lifetime > most:
		return none(stint.Invalid.Errorf("token", "a token of kind %s is not good for %s", s.Kind, s.Lifetime), "ask for at most "+most.String())
	case s.Role != "" && len(s.Scopes) > 0:
		return none(stint.Invalid.Errorf("token", "it has a role and scopes"), "give one of them")
	case len(scopes) == 0:
		return none(stint.Invalid.Errorf("token", "it would be allowed nothing"), "give it a role (viewer, operator, approver, admin) or scopes")
	case [secretBytes]byte(random[idBytes:]) == [secretBytes]byte{}:
		return none(stint.Invalid.Errorf("token", "its random bytes are all zero"), "fill them from crypto/rand")
	}
	for _, c := range scopes {
		if _, err := ParseScope(string(c)); err != nil {
			return Token{}, Secret{}, err
		}
		if s.Kind.never(c) {
			return none(stint.Denied.Errorf("token", "a token of kind %s cannot have %s", s.Kind, c), "agents decide nothing about themselves; make one of kind user or ci")
		}
	}
	id := encoding().EncodeToString(random[:idBytes])
	text := prefix + string(s.Kind) + "_" + id + "_" + encoding().EncodeToString(random[idBytes:])
	text += checksum(text)
	return Token{
		ID: id, Kind: s.Kind, Name: s.Name, Role: s.Role, Scopes: slices.Clone(s.Scopes), From: s.From,
		Hash: sha256.Sum256([]byte(text)), Created: now, Expires: now.Add(s.Lifetime),
	}, Secret{text}, nil
}

func goodName(s string) bool {
	return s != "" && len(s) <= 64 && strings.IndexFunc(s, func(r rune) bool { return r < ' ' || r > '~' }) < 0
}

// checksum returns the CRC-32 (IEEE) of text as seven characters, the highest bits first.
func checksum(text string) string {
	var sum [5]byte // 40 bits are eight characters, of which the first is always 0
	binary.BigEndian.PutUint32(sum[1:], crc32.ChecksumIEEE([]byte(text)))
	return encoding().EncodeToString(sum[:])[1:]
}

// Presented is a token as it came, without its text.
type Presented struct {
	Kind Kind
	ID   string
	hash Hash
}

// Parse reads a token and checks its checksum, without a look at any store: what is
// mistyped, cut off or made up is refused for the price of a CRC. The error is
// [stint.Denied] and does not repeat the text.
//
// A token is stint_KIND_ID_SECRETCRC: 16 characters of id, 52 of secret and 7 of the
// CRC-32 (IEEE) of all that stands before it, in lower-case Crockford base32, the highest
// bits first; the last character of the secret carries one bit.
func Parse(text string) (Presented, error) {
	refuse := func() (Presented, error) {
		e := stint.Denied.Errorf("token", "it is not a token of stint, or not all of one")
		e.Hint = "send it as it was printed: stint_KIND_…, all of it"
		return Presented{}, e
	}
	if len(text) > maxText || !strings.HasPrefix(text, prefix) {
		return refuse()
	}
	parts := strings.Split(text[len(prefix):], "_")
	if len(parts) != 3 || len(parts[1]) != idChars || len(parts[2]) != secretChars+crcChars {
		return refuse()
	}
	kind := Kind(parts[0])
	if _, most := kind.lifetimes(); most == 0 {
		return refuse()
	}
	if body := text[:len(text)-crcChars]; checksum(body) != text[len(body):] {
		return refuse()
	}
	if !canonical(parts[1]) || !canonical(parts[2][:secretChars]) {
		return refuse()
	}
	return Presented{Kind: kind, ID: parts[1], hash: sha256.Sum256([]byte(text))}, nil
}

// canonical reports whether s is what some bytes are encoded to: the decoder alone skips
// line ends and ignores the bits that are left over.
func canonical(s string) bool {
	b, err := encoding().DecodeString(s)
	return err == nil && encoding().EncodeToString(b) == s
}

// Live returns nil while the token is neither revoked nor expired; else it is
// [stint.Denied].
func (t Token) Live(now time.Time) error {
	var e *stint.Error
	switch {
	case !t.Revoked.IsZero():
		e = stint.Denied.Errorf("token", "the token %s was revoked", t.ID)
	case !now.Before(t.Expires):
		e = stint.Denied.Errorf("token", "the token %s expired at %s", t.ID, t.Expires.UTC().Format(time.RFC3339))
	default:
		return nil
	}
	e.Hint = "ask an administrator for a new one"
	return e
}

// Verify returns nil when p is this token and it is live. The comparison takes the same
// time wherever two hashes differ, and only the holder of the secret is told that a token
// was revoked or has expired. The error is [stint.Denied].
func (t Token) Verify(p Presented, now time.Time) error {
	if t.ID != p.ID || t.Kind != p.Kind || subtle.ConstantTimeCompare(t.Hash[:], p.hash[:]) != 1 {
		return Unknown()
	}
	return t.Live(now)
}

// Unknown is the error of a token that is not stored, or has another secret: the two
// cannot be told apart from outside. It is [stint.Denied].
func Unknown() error {
	e := stint.Denied.Errorf("token", "the token is not known here")
	e.Hint = "look at which server it is for; stint token ls lists those of this one"
	return e
}
