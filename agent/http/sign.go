package http

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/stint-dev/stint"
)

// Headers of a request, beside those of Standard Webhooks (webhook-id,
// webhook-timestamp and webhook-signature).
const (
	KeyHeader     = "Idempotency-Key" // of the step that proceeds, else of the place in the loop
	SessionHeader = "Stint-Session"   // the session's id
	EpochHeader   = "Stint-Epoch"     // the epoch of the lease, which only rises: refuse a lower one
	LoopHeader    = "Stint-Loop"      // the loop's number on its line
	AttemptHeader = "Stint-Attempt"   // the attempt at this loop
	VersionHeader = "Stint-Version"   // the version of the protocol, 1; a response may have it too
)

// ContentType is that of requests and responses.
const ContentType = "application/x-ndjson"

const (
	secretPrefix = "whsec_"
	version      = "1"
	tolerance    = 5 * time.Minute // between the clocks of the two sides
)

// ParseSecret reads a signing secret in the form that Standard Webhooks gives it:
// whsec_ and 24 to 64 bytes in base64. Its error, [stint.Invalid], does not show it.
func ParseSecret(text string) ([]byte, error) {
	encoded, ok := strings.CutPrefix(strings.TrimSpace(text), secretPrefix)
	key, err := base64.StdEncoding.DecodeString(encoded)
	if !ok || err != nil || len(key) < minSecret || len(key) > maxSecret {
		return nil, badMember("secret", "make one with: echo whsec_$(openssl rand -base64 32)",
			"it is not whsec_ and the base64 of 24 to 64 bytes")
	}
	return key, nil
}

// signature signs id, time and body as Standard Webhooks does.
func signature(secret []byte, id, seconds string, body ...[]byte) string {
	mac := hmac.New(sha256.New, secret)
	_, _ = io.WriteString(mac, id+"."+seconds+".")
	for _, part := range body {
		_, _ = mac.Write(part)
	}
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// Verify is for agents in Go: it returns nil if a request with this header and body was
// signed with secret at most five minutes from now, and else a [stint.Denied] error that
// says what is wrong. It compares in constant time.
func Verify(secret []byte, header http.Header, body []byte, now time.Time) error {
	id, seconds := header.Get("webhook-id"), header.Get("webhook-timestamp")
	at, err := strconv.ParseInt(seconds, 10, 64)
	if id == "" || err != nil {
		return stint.Denied.Errorf("", "the request has no webhook-id or no webhook-timestamp")
	}
	if age := now.Sub(time.Unix(at, 0)); age > tolerance || age < -tolerance {
		return stint.Denied.Errorf("", "the request was signed more than %v from now", tolerance)
	}
	want := []byte(signature(secret, id, seconds, body))
	for one := range strings.FieldsSeq(header.Get("webhook-signature")) {
		if hmac.Equal([]byte(one), want) {
			return nil
		}
	}
	return stint.Denied.Errorf("", "the signature of the request is not right")
}
