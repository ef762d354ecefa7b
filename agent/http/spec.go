package http

import (
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"maps"
	"net/netip"
	"net/textproto"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/protocol"
)

// Bounds and their defaults.
const (
	minLine     = 1 << 10          // a MaxLine below this could not hold a step
	minBody     = 64 << 10         // a MaxBody below this could not hold a loop
	maxBody     = 128 << 20        // bytes of a request and of a response, unless the Spec says otherwise
	maxOutput   = 1 << 20          // bytes logged a loop, unless the Spec says otherwise
	maxSecret   = 64               // bytes, as Standard Webhooks has it
	minSecret   = 24               // the same
	defaultTime = 10 * time.Minute // of a step, and of a request without one
	defaultIdle = 5 * time.Minute  // without a byte
	endTime     = 5 * time.Second  // from an end message to the end of its response
	maxBeside   = 16               // requests of one group at once
)

// Spec says where an agent is and how it is asked. The zero value of every member but
// URL and Secret is its default. Nobody changes a Spec once it is in use. Secrets are
// given as they are; none is in an error or a log.
type Spec struct {
	// URL gets the requests: https, or http where it names this machine (localhost,
	// 127.0.0.1, [::1]) or AllowPrivate is set.
	URL string
	// Secret signs the requests: 24 to 64 bytes; see [ParseSecret].
	Secret []byte
	// Headers are added to each request.
	Headers map[string]string
	// Secrets are headers too, with values that nobody else may see: where the agent
	// says one, it becomes {{secret:NAME}} before anything is done with it.
	Secrets map[string]string
	// Timeout bounds each step, and each request outside of one; 0: ten minutes.
	Timeout time.Duration
	// Idle is how long the agent may send nothing, from the request on; 0: five minutes.
	Idle time.Duration
	// AllowPrivate lets the host have any address, on a private network too.
	AllowPrivate bool
	// Roots are the authorities that may sign the server's certificate; nil: the system's.
	Roots *x509.CertPool
	// Effect is that of steps that do not say theirs; empty: [stint.Once].
	Effect stint.Effect
	// Effects are by a step's name, and win over what the agent says of it.
	Effects map[string]stint.Effect
	// MaxOutput bounds what a loop logs, in bytes; 0: 1 MiB. What is beyond is counted
	// and dropped.
	MaxOutput int64
	// MaxLine bounds a line of a response, in bytes; 0: 33 MiB, which is also the most.
	MaxLine int
	// MaxBody bounds a request and a response, in bytes; 0: 128 MiB.
	MaxBody int64
}

// Validate reports the first member that cannot be used as an [stint.Invalid] error that
// names it as stint.yaml does. It connects to nothing.
func (s Spec) Validate() error {
	if _, err := s.target(); err != nil {
		return err
	}
	if n := len(s.Secret); n < minSecret || n > maxSecret {
		return badMember("secret", "make one with: echo whsec_$(openssl rand -base64 32)", "%d bytes; it has 24 to 64", n)
	}
	if err := s.validateHeaders(); err != nil {
		return err
	}
	if s.Effect != "" && !protocol.ValidEffect(s.Effect) {
		return badMember("effect", "use read, idempotent or once", "%q is not one", s.Effect)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Effects)) {
		if !protocol.ValidEffect(s.Effects[name]) {
			return badMember("effects."+name, "use read, idempotent or once", "%q is not one", s.Effects[name])
		}
	}
	switch {
	case s.Timeout < 0:
		return badMember("timeout", "leave it out for 10m", "it is negative")
	case s.Idle < 0:
		return badMember("idle", "leave it out for 5m", "it is negative")
	case s.MaxOutput < 0:
		return badMember("max_output", "leave it out for 1 MiB", "it is negative")
	case s.MaxLine != 0 && (s.MaxLine < minLine || s.MaxLine > protocol.MaxLine):
		return badMember("max_line", "leave it out for 33 MiB", "%d bytes; it lies between 1 KiB and 33 MiB", s.MaxLine)
	case s.MaxBody != 0 && s.MaxBody < minBody:
		return badMember("max_body", "leave it out for 128 MiB", "%d bytes; it is at least 64 KiB", s.MaxBody)
	}
	return nil
}

// target is the URL. What its path and query hold may be secret, so no error shows it.
func (s Spec) target() (*url.URL, error) {
	const hint = "write url: https://agents.example/refunds"
	u, err := url.Parse(s.URL)
	switch {
	case s.URL == "":
		return nil, badMember("url", hint, "it is empty")
	case err != nil:
		return nil, badMember("url", hint, "it is no URL")
	case u.Scheme != "https" && u.Scheme != "http":
		return nil, badMember("url", hint, "it does not begin with https://")
	case u.Hostname() == "":
		return nil, badMember("url", hint, "it has no host")
	case u.User != nil:
		return nil, badMember("url", "put an Authorization header under secrets", "it has a user or a password in it")
	case u.Fragment != "":
		return nil, badMember("url", "leave it out", "it has a fragment, which no server gets")
	case u.Scheme == "http" && !s.AllowPrivate && !isLoopback(u.Hostname()):
		return nil, badMember("url", "use https, or set allow_private for a network that you trust",
			"the state of a session would go to %s in clear text", u.Hostname())
	}
	return u, nil
}

// isLoopback reports that a host names this machine by itself, whatever a resolver says.
func isLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.Zone() == "" && a.Unmap().IsLoopback()
}

func (s Spec) validateHeaders() error {
	for member, headers := range map[string]map[string]string{"headers": s.Headers, "secrets": s.Secrets} {
		for _, name := range slices.Sorted(maps.Keys(headers)) {
			canonical := textproto.CanonicalMIMEHeaderKey(name)
			switch {
			case !isToken(name):
				return badMember(fmt.Sprintf("%s.%q", member, name), "rename it", "it is no name of a header")
			case slices.Contains(ownHeaders(), canonical) || strings.HasPrefix(canonical, "Stint-"):
				return badMember(member+"."+name, "remove it", "stint sets it itself")
			case strings.IndexFunc(headers[name], func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) >= 0:
				return badMember(member+"."+name, "remove it", "its value holds a line end or another control character")
			}
		}
	}
	return nil
}

func isToken(name string) bool {
	return name != "" && strings.IndexFunc(name, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
	}) < 0
}

// ownHeaders are those that frame a request, and those of the protocol.
func ownHeaders() []string {
	return []string{"Host", "Content-Length", "Content-Type", "Content-Encoding", "Transfer-Encoding", "Connection", "Upgrade",
		"Te", "Trailer", "Expect", "Accept", "Accept-Encoding", KeyHeader, "Webhook-Id", "Webhook-Timestamp", "Webhook-Signature"}
}

func badMember(name, hint, format string, args ...any) error {
	return &stint.Error{Code: stint.Invalid, Op: "http agent", Hint: hint,
		Err: fmt.Errorf("%s: %s", name, fmt.Sprintf(format, args...))}
}

// withDefaults fills in what a valid Spec leaves out.
func (s Spec) withDefaults() Spec {
	if s.Timeout == 0 {
		s.Timeout = defaultTime
	}
	if s.Idle == 0 {
		s.Idle = defaultIdle
	}
	if s.MaxOutput == 0 {
		s.MaxOutput = maxOutput
	}
	if s.MaxLine == 0 {
		s.MaxLine = protocol.MaxLine
	}
	if s.MaxBody == 0 {
		s.MaxBody = maxBody
	}
	return s
}

// hidden is what must not be shown, by the name that stands for it.
func (s Spec) hidden() map[string]string {
	all := map[string]string{"webhook-secret": base64.StdEncoding.EncodeToString(s.Secret)}
	maps.Copy(all, s.Secrets)
	return all
}
