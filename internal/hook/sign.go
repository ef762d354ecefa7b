package hook

import (
	"strconv"
	"strings"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/expression"
)

// Sign returns the headers of Standard Webhooks for a body that is sent out: webhook-id,
// webhook-timestamp and webhook-signature. The secret is whsec_ and base64. The id is the
// same whenever the same event is sent again, and has no dot; at is the time of this
// attempt. A secret or an id that cannot be used is [stint.Invalid].
func Sign(secret, id string, at time.Time, body []byte) (map[string]string, error) {
	key, why := key(Standard, secret)
	if why != "" {
		e := stint.Invalid.Errorf("sign", "the secret %s", why)
		e.Hint = "make one of 24 to 64 random bytes"
		return nil, e
	}
	odd := func(r rune) bool { return r <= ' ' || r > '~' || r == '.' }
	if id == "" || len(id) > maxText || strings.ContainsFunc(id, odd) || at.Unix() < 0 {
		e := stint.Invalid.Errorf("sign", "the id %q or the time cannot be signed", expression.Clip(id, 64))
		e.Hint = "an id has letters, digits and _"
		return nil, e
	}
	ts := strconv.FormatInt(at.Unix(), 10)
	sum := encode(Base64, mac(SHA256, key, []byte(id+"."+ts+"."), body))
	return map[string]string{"webhook-id": id, "webhook-timestamp": ts, "webhook-signature": "v1," + sum}, nil
}
