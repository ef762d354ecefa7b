package hook

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"hash"
	"strconv"
	"strings"
	"time"
)

// maxSignatures bounds the list in one header: two secrets, two versions, and room.
const maxSignatures = 16

// proof is what a request that is genuine says of itself by its scheme.
type proof struct {
	id string    // empty: the scheme has none
	at time.Time // the signed time; zero: none is signed
}

// verify tells whether a request is genuine, before anything of its body is read.
func (d *Definition) verify(f fields, body []byte, secrets []string, now time.Time) (proof, error) {
	if !d.Scheme.Signs() {
		return proof{}, nil
	}
	keys, err := d.keys(secrets)
	if err != nil {
		return proof{}, err
	}
	switch d.Scheme {
	case Standard:
		return standard(f, body, keys, now)
	case GitHub:
		return proof{}, simple(f, "x-hub-signature-256", "sha256=", nil, body, keys)
	case Slack:
		return timed(f, &HMAC{Header: "x-slack-signature", Prefix: "v0=", Timestamp: "x-slack-request-timestamp", Signed: "v0:{timestamp}:{body}"}, body, keys, now)
	case Stripe:
		return stripe(f, body, keys, now)
	case Generic:
		return timed(f, d.HMAC, body, keys, now)
	case Bearer:
		return proof{}, bearer(f, keys)
	}
	return proof{}, refuse(unavailable, "compile the definition", "the scheme of this hook is not known")
}

// keys turns secrets into the bytes of keys.
func (d *Definition) keys(secrets []string) ([][]byte, error) {
	if n := len(secrets); n < 1 || n > MaxSecrets {
		return nil, refuse(unavailable, "give one secret, or two while it is changed", "this hook has %d secrets", n)
	}
	keys := make([][]byte, len(secrets))
	for i, s := range secrets {
		key, why := key(d.Scheme, s)
		if why != "" {
			return nil, refuse(unavailable, "secret "+strconv.Itoa(i+1)+" "+why, "a secret of this hook cannot be used")
		}
		keys[i] = key
	}
	return keys, nil
}

// CheckSecret tells whether a secret can be used with a scheme, so that a server says so
// when it starts. The error is a 503 as [Hook.Receive] gives it, and does not hold the secret.
func CheckSecret(s Scheme, secret string) error {
	if _, why := key(s, secret); why != "" {
		return refuse(unavailable, "the secret "+why, "a secret of this hook cannot be used")
	}
	return nil
}

// key is the key that a secret stands for. why says what is wrong with it.
func key(s Scheme, secret string) (key []byte, why string) {
	if strings.TrimSpace(secret) == "" {
		return nil, "is empty"
	}
	if s != Standard {
		return []byte(secret), ""
	}
	text := strings.TrimRight(strings.TrimPrefix(secret, "whsec_"), "=")
	key, err := base64.RawStdEncoding.DecodeString(text)
	if err != nil || len(key) == 0 {
		return nil, "is not whsec_ and base64, as Standard Webhooks writes it"
	}
	return key, ""
}

// mac signs the parts of a message, one after the other.
func mac(algorithm Algorithm, key []byte, parts ...[]byte) []byte {
	of := func() hash.Hash { return sha256.New() }
	if algorithm == SHA512 {
		of = sha512.New
	}
	h := hmac.New(of, key)
	for _, p := range parts {
		h.Write(p)
	}
	return h.Sum(nil)
}

// encode writes the bytes of a signature.
func encode(e Encoding, sum []byte) string {
	if e == Base64 {
		return base64.StdEncoding.EncodeToString(sum)
	}
	return hex.EncodeToString(sum)
}

// genuine reports whether one of the signatures given is one of those wanted. Each is
// compared with each, whole and in constant time. Texts are compared and not bytes, so
// that a signature has one spelling.
func genuine(given, want []string) bool {
	found := 0
	for _, g := range given {
		for _, w := range want {
			found |= subtle.ConstantTimeCompare([]byte(g), []byte(w))
		}
	}
	return found == 1
}

// sums are the signatures that the keys give a message.
func sums(a Algorithm, e Encoding, keys [][]byte, parts ...[]byte) []string {
	want := make([]string, len(keys))
	for i, k := range keys {
		want[i] = encode(e, mac(a, k, parts...))
	}
	return want
}

// misshapen says why a text can be no signature, "" if it can.
func misshapen(text string, a Algorithm, e Encoding) string {
	size := sha256.Size
	if a == SHA512 {
		size = sha512.Size
	}
	length := hex.EncodedLen(size)
	alphabet := "0123456789abcdef"
	if e == Base64 {
		length = base64.StdEncoding.EncodedLen(size)
		alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/="
	}
	switch {
	case e != Base64 && strings.Trim(text, "0123456789abcdefABCDEF") == "" && strings.Trim(text, alphabet) != "":
		return "has hexadecimal digits in upper case; they are written in lower case"
	case strings.Trim(text, alphabet) != "":
		return "has characters that no signature has"
	case len(text) != length:
		return "has " + strconv.Itoa(len(text)) + " characters; a signature has " + strconv.Itoa(length)
	}
	return ""
}

// instant reads a signed time in seconds and compares it with ours.
func instant(name, text string, now time.Time) (time.Time, error) {
	const whole = "1234567890"
	n, err := strconv.ParseInt(text, 10, 64)
	if text == "" || strings.Trim(text, whole) != "" || len(text) > 1 && text[0] == '0' || err != nil {
		return time.Time{}, unproven("the time is whole seconds since 1970, in digits", "%s holds no time in seconds", name)
	}
	// Neither is negative, so the difference cannot overflow.
	apart, window := now.Unix()-n, int64(Window/time.Second)
	hint := "compare this machine's clock with another; a captured request is refused in the same way"
	switch {
	case apart > window:
		return time.Time{}, unproven(hint, "%s is more than %d seconds old", name, window)
	case apart < -window && n > 1e11:
		return time.Time{}, unproven("send whole seconds", "%s is far in the future; it looks like milliseconds", name)
	case apart < -window:
		return time.Time{}, unproven(hint, "%s is more than %d seconds in the future", name, window)
	}
	return time.Unix(n, 0).UTC(), nil
}
