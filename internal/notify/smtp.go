package notify

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/smtp"
	"net/textproto"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/stint-dev/stint/internal/endpoint"
	"github.com/stint-dev/stint/internal/safedial"
)

// Mail is a channel that sends a mail to a relay over SMTP. A mail is taken when the relay
// takes it for one address at least. What the relay says about the mail with a code of 5xx
// is a refusal for good; with 4xx, and when something is wrong between the relay and stint,
// whatever the code, the same mail is sent again, under the same Message-ID.
type Mail struct {
	endpoint.SMTP

	Secret func() (string, error) // the password, read for each attempt; nil without a user

	roots *x509.CertPool // nil: those of the system
}

var _ Channel = (*Mail)(nil)

const (
	// mailPatience is how long a relay may take for all of it.
	mailPatience = 60 * time.Second
	submission   = 587
	submissions  = 465
)

// Check says what is wrong with the relay or the addresses.
func (m *Mail) Check() error {
	_, _, err := m.addresses()
	link, linkErr := url.Parse(m.Link)
	switch {
	case m.Host == "" || strings.ContainsAny(m.Host, " \t\r\n/@"):
		return wrong("for example mail.example.org", "%q is no host", m.Host)
	case m.Port < 0 || m.Port > 65535:
		return wrong("leave it out for the usual one", "there is no port %d", m.Port)
	case m.TLS != "" && m.TLS != endpoint.StartTLS && m.TLS != endpoint.Implicit && m.TLS != endpoint.NoTLS:
		return wrong("leave it out for starttls", "there is no TLS %q", m.TLS)
	case m.User != "" && m.Secret == nil:
		return wrong("give the password as a reference", "there is a user without a password")
	case strings.ContainsAny(m.User, "\x00\r\n"):
		return wrong("a user is one line", "the user cannot be sent")
	case m.Link != "" && (linkErr != nil || link.Host == ""):
		return wrong("for example https://stint.example.org/sessions/{session}", "%q is no URL", m.Link)
	}
	return err
}

// Send hands the mail to the relay.
func (m *Mail) Send(ctx context.Context, n *Notification) (Answer, error) {
	letter, err := m.letter(n)
	if err != nil {
		return Answer{}, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, mailPatience, errors.New("the relay took too long"))
	defer cancel()
	conn, err := m.dial(ctx)
	if err != nil {
		return Answer{}, err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() }) // whatever it waits for ends
	defer stop()
	defer conn.Close()
	c, err := m.greet(conn)
	if err == nil {
		var got Answer
		if got, err = m.hand(c, letter); err == nil {
			_ = c.Quit() // it has the mail
			return got, nil
		}
		if ctx.Err() == nil {
			return got, err
		}
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return Answer{Status: code(err)}, err
}

// dial connects to the relay. Without TLS it has to be this machine, whatever its name says.
func (m *Mail) dial(ctx context.Context) (net.Conn, error) {
	port := cmp.Or(m.Port, submission)
	if m.Port == 0 && m.TLS == endpoint.Implicit {
		port = submissions
	}
	policy := safedial.Policy{Allow: []string{m.Host}}
	conn, err := policy.DialContext(ctx, "tcp", net.JoinHostPort(m.Host, strconv.Itoa(port)))
	if err != nil {
		return nil, err
	}
	switch m.TLS {
	case endpoint.NoTLS:
		if !ofThisMachine(conn.RemoteAddr()) {
			_ = conn.Close()
			return nil, fmt.Errorf("%s is not this machine, and without TLS all can be read on its way", m.Host)
		}
	case endpoint.Implicit:
		conn = tls.Client(conn, m.tls())
	case endpoint.StartTLS:
	}
	return conn, nil
}

// ofThisMachine reports whether what is sent to an address stays on this machine.
func ofThisMachine(a net.Addr) bool {
	at, err := netip.ParseAddrPort(a.String())
	return err == nil && at.Addr().Unmap().IsLoopback()
}

func (m *Mail) tls() *tls.Config {
	return &tls.Config{ServerName: m.Host, MinVersion: tls.VersionTLS12, RootCAs: m.roots}
}

// greet begins the conversation, as privately as it has to be, and logs in.
func (m *Mail) greet(conn net.Conn) (*smtp.Client, error) {
	c, err := smtp.NewClient(conn, m.Host)
	if err != nil {
		return nil, err
	}
	if err := c.Hello(localName()); err != nil {
		return nil, err
	}
	if m.TLS == "" || m.TLS == endpoint.StartTLS {
		if ok, _ := c.Extension("STARTTLS"); !ok {
			return nil, errors.New("the relay offers no STARTTLS; tls: implicit is for one that begins with TLS")
		}
		if err := c.StartTLS(m.tls()); err != nil {
			return nil, err
		}
	}
	if m.User == "" {
		return c, nil
	}
	password, err := m.Secret()
	if err != nil {
		return nil, errors.New("its password cannot be read")
	}
	_, ways := c.Extension("AUTH")
	var auth smtp.Auth = &login{m.User, password}
	if !strings.Contains(" "+ways+" ", " LOGIN ") || strings.Contains(" "+ways+" ", " PLAIN ") {
		auth = &plain{m.User, password}
	}
	return c, c.Auth(auth)
}

// localName is what stint calls itself to a relay.
func localName() string {
	name, err := os.Hostname()
	odd := func(r rune) bool {
		return r != '.' && r != '-' && (r < '0' || r > '9') && (r|0x20 < 'a' || r|0x20 > 'z')
	}
	if err != nil || name == "" || strings.ContainsFunc(name, odd) {
		return "localhost"
	}
	return name
}

// hand gives the relay the mail, for all who may get it.
func (m *Mail) hand(c *smtp.Client, letter []byte) (Answer, error) {
	from, to, err := m.addresses()
	if err != nil {
		return Answer{}, err
	}
	refused := func(err error) (Answer, error) { return Answer{Status: code(err), Final: code(err)/100 == 5}, err }
	if err := c.Mail(from.Address); err != nil {
		return refused(err)
	}
	var without []string
	var worst error
	for _, a := range to {
		if err := c.Rcpt(a.Address); err != nil {
			if code(err) == 0 {
				return Answer{}, err
			}
			if worst == nil || code(err)/100 == 4 {
				worst = err
			}
			without = append(without, a.Address+": "+err.Error())
		}
	}
	if len(without) == len(to) {
		return refused(worst)
	}
	w, err := c.Data()
	if err != nil {
		return refused(err)
	}
	_, err = w.Write(letter)
	if err := errors.Join(err, w.Close()); err != nil {
		return refused(err)
	}
	got := Answer{Status: 250}
	if len(without) > 0 {
		got.Said = oneLine("not to " + strings.Join(without, "; "))
	}
	return got, nil
}

// code is what the relay answered, 0 if it did not.
func code(err error) int {
	if at, ok := errors.AsType[*textproto.Error](err); ok {
		return at.Code
	}
	return 0
}

// plain is the login PLAIN. That of net/smtp knows three names of this machine alone; here
// the connection has been found private enough before.
type plain struct{ user, password string }

// Start sends both at once.
func (a *plain) Start(*smtp.ServerInfo) (string, []byte, error) {
	return "PLAIN", []byte("\x00" + a.user + "\x00" + a.password), nil
}

// Next has nothing more to say.
func (a *plain) Next(_ []byte, more bool) ([]byte, error) {
	if more {
		return nil, errors.New("the relay asks for more than a user and a password")
	}
	return nil, nil
}

// login is the login LOGIN, which some relays have alone.
type login struct{ user, password string }

// Start asks to be asked.
func (a *login) Start(*smtp.ServerInfo) (string, []byte, error) { return "LOGIN", nil, nil }

// Next answers the two questions.
func (a *login) Next(question []byte, more bool) ([]byte, error) {
	asked := strings.ToLower(string(question))
	switch {
	case !more:
		return nil, nil
	case strings.HasPrefix(asked, "user"):
		return []byte(a.user), nil
	case strings.HasPrefix(asked, "pass"):
		return []byte(a.password), nil
	}
	return nil, fmt.Errorf("the relay asks %q", clip(asked, 60))
}
