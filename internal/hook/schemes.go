package hook

import (
	"crypto/sha256"
	"crypto/subtle"
	"strings"
	"time"
)

// wrongSecret is the hint where a signature is one, but not ours.
const wrongSecret = "compare the secret on both sides; the bytes of the body must reach stint as they were sent"

// simple verifies one signature in one header over the parts, SHA-256 in hexadecimal.
func simple(f fields, header, prefix string, before, body []byte, keys [][]byte) error {
	return single(f, &HMAC{Header: header, Prefix: prefix}, before, body, keys)
}

// single verifies one signature in one header over before and body.
func single(f fields, h *HMAC, before, body []byte, keys [][]byte) error {
	text, why := f.one(h.Header)
	if why != "" {
		return unproven("the sender signs with the header "+h.Header, "%s", why)
	}
	text, ok := strings.CutPrefix(text, h.Prefix)
	if !ok {
		return unproven("", "the signature in %s does not begin with %s", h.Header, h.Prefix)
	}
	if why := misshapen(text, h.Algorithm, h.Encoding); why != "" {
		return unproven("", "the signature in %s %s", h.Header, why)
	}
	if !genuine([]string{text}, sums(h.Algorithm, h.Encoding, keys, before, body)) {
		return unproven(wrongSecret, "the signature in %s does not match", h.Header)
	}
	return nil
}

// timed verifies what h describes, and the time if one is signed. The signature comes
// first: nobody learns of our clock without a secret.
func timed(f fields, h *HMAC, body []byte, keys [][]byte, now time.Time) (proof, error) {
	text := ""
	if h.Timestamp != "" {
		var why string
		if text, why = f.one(h.Timestamp); why != "" {
			return proof{}, unproven("the sender signs a time, in the header "+h.Timestamp, "%s", why)
		}
	}
	before := strings.ReplaceAll(strings.TrimSuffix(h.signed(), "{body}"), "{timestamp}", text)
	if err := single(f, h, []byte(before), body, keys); err != nil {
		return proof{}, err
	}
	if h.Timestamp == "" {
		return proof{}, nil
	}
	at, err := instant(h.Timestamp, text, now)
	return proof{at: at}, err
}

// signed is what is signed, with its default.
func (h *HMAC) signed() string {
	switch {
	case h.Signed != "":
		return h.Signed
	case h.Timestamp != "":
		return "{timestamp}.{body}"
	default:
		return "{body}"
	}
}

// standard verifies Standard Webhooks, under its own names or those of Svix, who began it.
func standard(f fields, body []byte, keys [][]byte, now time.Time) (proof, error) {
	prefix := "webhook-"
	_, id1 := f["webhook-id"]
	_, ts1 := f["webhook-timestamp"]
	_, list1 := f["webhook-signature"]
	if _, svix := f["svix-signature"]; svix && !id1 && !ts1 && !list1 {
		prefix = "svix-"
	}
	var id, ts, list string
	for _, h := range []struct {
		name string
		to   *string
	}{{"id", &id}, {"timestamp", &ts}, {"signature", &list}} {
		text, why := f.one(prefix + h.name)
		if why != "" {
			return proof{}, unproven("Standard Webhooks sends webhook-id, webhook-timestamp and webhook-signature", "%s", why)
		}
		*h.to = text
	}
	// The parts are put together with dots: one in the id would let a part of it be
	// taken for the time, and a part of the body for the rest.
	if strings.Contains(id, ".") || len(id) > maxText {
		return proof{}, unproven("", "%sid has a dot in it or is longer than %d bytes", prefix, maxText)
	}
	given, why := versions(list)
	if why != "" {
		return proof{}, unproven("", "%ssignature %s", prefix, why)
	}
	if !genuine(given, sums(SHA256, Base64, keys, []byte(id+"."+ts+"."), body)) {
		return proof{}, unproven(wrongSecret, "no signature in %ssignature matches", prefix)
	}
	at, err := instant(prefix+"timestamp", ts, now)
	return proof{id: id, at: at}, err
}

// versions returns the v1 signatures of a list like "v1,AAAA v1a,BBBB v1,CCCC". Those of
// other versions are for other readers.
func versions(list string) (given []string, why string) {
	all := strings.Split(list, " ")
	if len(all) > maxSignatures {
		return nil, "has too many signatures"
	}
	for _, s := range all {
		version, text, ok := strings.Cut(s, ",")
		switch {
		case !ok || version == "" || text == "":
			return nil, "is not a list of VERSION,SIGNATURE with one blank between them"
		case version != "v1":
		case misshapen(text, SHA256, Base64) != "":
			return nil, "has a v1 signature that " + misshapen(text, SHA256, Base64)
		default:
			given = append(given, text)
		}
	}
	if len(given) == 0 {
		return nil, "has no signature of version v1"
	}
	return given, ""
}

// stripe verifies a header like "t=1,v1=aa,v1=bb,v0=cc".
func stripe(f fields, body []byte, keys [][]byte, now time.Time) (proof, error) {
	const header = "stripe-signature"
	list, why := f.one(header)
	if why != "" {
		return proof{}, unproven("Stripe signs with the header Stripe-Signature", "%s", why)
	}
	ts, given, why := pairs(list)
	if why != "" {
		return proof{}, unproven("", "%s %s", header, why)
	}
	if !genuine(given, sums(SHA256, Hex, keys, []byte(ts+"."), body)) {
		return proof{}, unproven(wrongSecret, "no signature in %s matches", header)
	}
	at, err := instant("t in "+header, ts, now)
	return proof{at: at}, err
}

// pairs returns the time and the v1 signatures of Stripe's header.
func pairs(list string) (ts string, given []string, why string) {
	all := strings.Split(list, ",")
	if len(all) > maxSignatures {
		return "", nil, "has too many parts"
	}
	times := 0
	for _, s := range all {
		name, text, ok := strings.Cut(s, "=")
		switch {
		case !ok || name == "" || text == "":
			return "", nil, "is not a list of NAME=TEXT with commas between them"
		case name == "t":
			times++
			ts = text
		case name != "v1":
		case misshapen(text, SHA256, Hex) != "":
			return "", nil, "has a v1 signature that " + misshapen(text, SHA256, Hex)
		default:
			given = append(given, text)
		}
	}
	switch {
	case times != 1:
		return "", nil, "needs exactly one time, t=SECONDS"
	case len(given) == 0:
		return "", nil, "has no signature of version v1"
	}
	return ts, given, ""
}

// bearer compares a token. Both sides are hashed, so that the time does not tell how long
// the token is.
func bearer(f fields, keys [][]byte) error {
	const hint = "send Authorization: Bearer TOKEN"
	text, why := f.one("authorization")
	if why != "" {
		return unproven(hint, "%s", why)
	}
	kind, token, ok := strings.Cut(text, " ")
	if !ok || !strings.EqualFold(kind, "bearer") {
		return unproven(hint, "authorization holds no bearer token")
	}
	got, found := sha256.Sum256([]byte(token)), 0
	for _, k := range keys {
		want := sha256.Sum256(k)
		found |= subtle.ConstantTimeCompare(got[:], want[:])
	}
	if found != 1 {
		return unproven("compare the token on both sides", "the token in authorization is not this hook's")
	}
	return nil
}
