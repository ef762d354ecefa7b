package notify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/faultpoint"
	"github.com/stint-dev/stint/internal/hook"
	"github.com/stint-dev/stint/internal/safedial"
)

// Webhook is a channel that sends requests, signed as Standard Webhooks says. Any answer
// of 2xx takes one; any other has it sent again, and 410 closes the channel.
type Webhook struct {
	URL     string                   // https; http too with AllowPrivate
	Secrets func() ([]string, error) // whsec_ and base64; 1, or 2 while it is changed. Read for each attempt
	// AllowPrivate lets the URL be of this machine or of a private network.
	AllowPrivate bool

	dial      sync.Once
	transport http.RoundTripper
}

var _ Channel = (*Webhook)(nil)

const (
	// patience is how long somebody may take for an answer.
	patience = 15 * time.Second
	// maxAnswer is how much of an answer is read, so that its connection can be used again.
	maxAnswer = 64 << 10
)

// Check says what is wrong with the URL or the secret.
func (w *Webhook) Check() error {
	u, err := url.Parse(w.URL)
	switch {
	case err != nil || u.Host == "":
		return wrong("for example https://example.org/stint", "%q is no URL", w.URL)
	case u.User != nil:
		return wrong("requests are signed; leave it out", "the URL holds a password")
	case u.Scheme != "https" && (u.Scheme != "http" || !w.AllowPrivate):
		return wrong("http is for endpoints with allow_private", "expected a URL with https, found %q", u.Scheme)
	case w.Secrets == nil:
		return wrong("give whsec_ and base64", "there is no secret to sign with")
	}
	return nil
}

// wrong is the error of a channel that cannot be used.
func wrong(hint, format string, args ...any) error {
	return &stint.Error{Code: stint.Invalid, Op: "notify", Err: fmt.Errorf(format, args...), Hint: hint}
}

// connect makes what connects to the URL, and to nothing private unless it may.
func (w *Webhook) connect() {
	if w.transport != nil {
		return
	}
	policy := safedial.Policy{}
	if u, err := url.Parse(w.URL); err == nil && w.AllowPrivate {
		policy.Allow = []string{u.Hostname()}
	}
	w.transport = policy.Transport()
}

// Send posts n, and returns an error for everything but a status of success.
func (w *Webhook) Send(ctx context.Context, n *Notification) (Answer, error) {
	w.dial.Do(w.connect)
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	now := faultpoint.Now()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.URL, bytes.NewReader(n.Body))
	if err != nil {
		return Answer{}, err
	}
	if err := w.sign(req, n.ID, now, n.Body); err != nil {
		return Answer{}, err
	}
	client := http.Client{Transport: w.transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		var at *url.Error
		if errors.As(err, &at) {
			err = at.Err // the URL may be a secret
		}
		if _, ok := errors.AsType[*safedial.Refused](err); ok {
			err = fmt.Errorf("%w; allow_private: true lets the endpoint be there", err)
		}
		return Answer{}, err
	}
	_, _ = io.CopyN(io.Discard, resp.Body, maxAnswer)
	_ = resp.Body.Close()
	got := Answer{Status: resp.StatusCode, After: retryAfter(resp.Header, now), Closed: resp.StatusCode == http.StatusGone}
	if resp.StatusCode/100 != 2 {
		return got, fmt.Errorf("it answered %d %s", resp.StatusCode, http.StatusText(resp.StatusCode))
	}
	return got, nil
}

// sign puts the signatures of each active secret on a request.
func (w *Webhook) sign(req *http.Request, id string, now time.Time, body []byte) error {
	secrets, err := w.Secrets()
	if err != nil || len(secrets) == 0 {
		return errors.New("its secret cannot be read")
	}
	var all []string
	for _, secret := range secrets {
		headers, err := hook.Sign(secret, id, now, body)
		if err != nil {
			return errors.New("its secret cannot be used: it is whsec_ and base64")
		}
		for name, text := range headers {
			req.Header.Set(name, text)
		}
		all = append(all, headers["webhook-signature"])
	}
	req.Header.Set("webhook-signature", strings.Join(all, " "))
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "stint")
	return nil
}

// retryAfter is the wait that a response asks for; 0 if it does not.
func retryAfter(h http.Header, now time.Time) time.Duration {
	text := h.Get("Retry-After")
	if n, err := strconv.ParseInt(text, 10, 32); err == nil {
		return min(max(time.Duration(n)*time.Second, 0), longestWait)
	}
	if at, err := http.ParseTime(text); err == nil {
		return min(max(at.Sub(now), 0), longestWait)
	}
	return 0
}
