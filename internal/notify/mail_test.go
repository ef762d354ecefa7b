package notify_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"mime"
	"mime/quotedprintable"
	"net"
	"net/http/httptest"
	"net/mail"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/endpoint"
	"github.com/stint-dev/stint/internal/notify"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// relay is a server of SMTP.
type relay struct {
	t     *testing.T
	cert  tls.Certificate
	trust *httptest.Server
	port  int

	mu      sync.Mutex
	is      mood
	tls     endpoint.TLS
	logins  []string          // the ways in; empty: there are none
	rcpt    map[string]string // what is answered to an address, instead of 250
	answers map[string]string // what is answered to a command, instead of what it is for
	all     []string          // commands that came, without TLS in capitals as they came, with it behind a +
	mails   []string
}

func newRelay(t *testing.T) *relay {
	trust := httptest.NewTLSServer(nil) // for its certificate, of 127.0.0.1
	trust.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{t: t, cert: trust.TLS.Certificates[0], trust: trust, port: l.Addr().(*net.TCPAddr).Port, is: takes, tls: endpoint.StartTLS}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { r.serve(conn) })
		}
	})
	t.Cleanup(func() { l.Close(); all.Wait() })
	return r
}

func (r *relay) channel() *notify.Mail {
	m := &notify.Mail{SMTP: endpoint.SMTP{Host: "127.0.0.1", Port: r.port, TLS: r.tls, From: "Stint <stint@example.org>", To: []string{"ops@example.org", "Ben Öz <ben@example.org>"}}}
	return m.Trust(r.trust.Certificate())
}

func (r *relay) set(change func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change()
}

// came are the commands since it was asked last.
func (r *relay) came() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := strings.Join(r.all, ", ")
	r.all = nil
	return all
}

func (r *relay) serve(conn net.Conn) {
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	r.mu.Lock()
	is, way, logins := r.is, r.tls, r.logins
	r.mu.Unlock()
	private := way == endpoint.Implicit
	if private {
		conn = tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{r.cert}})
	}
	in := bufio.NewReader(conn)
	say := func(text string) { fmt.Fprintf(conn, "%s\r\n", text) }
	if is == hangs {
		_, _ = io.Copy(io.Discard, in)
		return
	}
	say("220 relay ready")
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		line = strings.TrimRight(line, "\r\n")
		verb, rest, _ := strings.Cut(line, " ")
		answer := r.note(line, verb, rest, private)
		switch {
		case answer != "":
			say(answer)
		case verb == "EHLO":
			say(offer(way == endpoint.StartTLS && !private, logins))
		case verb == "STARTTLS":
			say("220 go on")
			conn, private = tls.Server(conn, &tls.Config{Certificates: []tls.Certificate{r.cert}}), true
			in = bufio.NewReader(conn)
		case verb == "AUTH" && strings.HasPrefix(rest, "LOGIN"):
			for _, ask := range []string{"Username:", "Password:"} {
				say("334 " + base64.StdEncoding.EncodeToString([]byte(ask)))
				word, _ := in.ReadString('\n')
				b, _ := base64.StdEncoding.DecodeString(strings.TrimSpace(word))
				r.set(func() { r.all = append(r.all, "="+string(b)) })
			}
			say("235 welcome")
		case verb == "AUTH":
			say("235 welcome")
		case verb == "DATA" && is == later:
			say("451 come again\x07")
		case verb == "DATA" && is == refuses:
			say("554 no such mail here")
		case verb == "DATA":
			say("354 go on")
			r.keep(in)
			say("250 queued")
		case verb == "QUIT":
			say("221 bye")
			return
		default:
			say("250 well")
		}
	}
}

// note writes a command down, and says what is answered instead of what it is for.
func (r *relay) note(line, verb, rest string, private bool) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if private {
		line = "+" + line
	}
	r.all = append(r.all, line)
	if verb == "RCPT" && r.rcpt[between(rest)] != "" {
		return r.rcpt[between(rest)]
	}
	return r.answers[strings.ToUpper(verb)]
}

// offer is the answer to EHLO.
func offer(startTLS bool, logins []string) string {
	lines := []string{"250-relay"}
	if startTLS {
		lines = append(lines, "250-STARTTLS")
	}
	if len(logins) > 0 {
		lines = append(lines, "250-AUTH "+strings.Join(logins, " "))
	}
	return strings.Join(append(lines, "250 HELP"), "\r\n")
}

// keep reads a mail.
func (r *relay) keep(in *bufio.Reader) {
	var b strings.Builder
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		if line == ".\r\n" {
			break
		}
		b.WriteString(strings.TrimPrefix(line, "."))
	}
	r.set(func() { r.mails = append(r.mails, b.String()) })
}

// between is the address in a command.
func between(s string) string {
	_, s, _ = strings.Cut(s, "<")
	s, _, _ = strings.Cut(s, ">")
	return s
}

// opened reads a mail as its reader sees it.
func opened(raw string) (head mail.Header, subject, text string, err error) {
	m, err := mail.ReadMessage(strings.NewReader(raw))
	if err != nil {
		return nil, "", "", err
	}
	b, err := io.ReadAll(quotedprintable.NewReader(m.Body))
	if err != nil {
		return nil, "", "", err
	}
	subject, err = (&mime.WordDecoder{}).DecodeHeader(m.Header.Get("Subject"))
	return m.Header, subject, strings.ReplaceAll(string(b), "\r\n", "\n"), err
}

// mailEnd is a relay that takes each mail, so that it can be looked at, whatever it says.
func mailEnd(t *testing.T) *far {
	r := newRelay(t)
	var sent []post
	m := r.channel()
	return &far{
		channel: watched{m, func(n *notify.Notification) {
			raw, err := m.Letter(n)
			if err != nil {
				t.Fatal(err)
			}
			head, subject, text, err := opened(string(raw))
			if err != nil {
				t.Fatal(err)
			}
			sent = append(sent, post{head.Get("Message-Id"), subject + "\n" + text})
		}},
		is: func(m mood) { r.set(func() { r.is = m }) }, finals: true,
		came: func() []post { return slices.Clone(sent) },
	}
}

// watched is a channel whose notifications are seen before they are sent.
type watched struct {
	notify.Channel
	see func(*notify.Notification)
}

// Send looks, and sends.
func (w watched) Send(ctx context.Context, n *notify.Notification) (notify.Answer, error) {
	w.see(n)
	return w.Channel.Send(ctx, n)
}

// standard are the headers of each mail.
func standard() []string {
	return []string{"Auto-Submitted", "Content-Transfer-Encoding", "Content-Type", "Date", "From", "Message-Id", "Mime-Version", "References", "Subject", "To", "X-Auto-Response-Suppress"}
}

// hands sends a mail over a channel, and checks what comes of it.
func (r *relay) hands(m *notify.Mail, want notify.Answer, why string) {
	r.t.Helper()
	got, err := m.Send(r.t.Context(), sample(r.t, 1, "night"))
	said := ""
	if err != nil {
		said = err.Error()
	}
	if got != want || why == "" && err != nil || !strings.Contains(said, why) {
		r.t.Errorf("got %+v, %q, want %+v, %s", got, said, want, why)
	}
}

// heard checks what came since it was asked last.
func (r *relay) heard(want string) {
	r.t.Helper()
	if got := regexp.MustCompile(`EHLO [^,]+`).ReplaceAllString(r.came(), "EHLO"); !regexp.MustCompile(want).MatchString(got) {
		r.t.Errorf("the relay got\n%s, want\n%s", got, want)
	}
}

// A mail goes to those who may get it, over TLS; what the relay says of the mail is final if
// it says so.
func TestMail(t *testing.T) {
	r := newRelay(t)
	r.hands(r.channel(), notify.Answer{Status: 250}, "")
	r.heard(`^EHLO, STARTTLS, \+EHLO, \+MAIL FROM:<stint@example.org>, \+RCPT TO:<ops@example.org>, \+RCPT TO:<ben@example.org>, \+DATA, \+QUIT$`)
	head, _, _, err := opened(r.mails[0])
	if err != nil || head.Get("Message-Id") != "<evt_01m8narkh8fgj9y313w2aq76qy_1@example.org>" || head.Get("Auto-Submitted") != "auto-generated" || !slices.Equal(slices.Sorted(maps.Keys(head)), standard()) {
		t.Errorf("%v, %v", head, err)
	}
	r.set(func() { r.rcpt = map[string]string{"ben@example.org": "550 no ben"} })
	r.hands(r.channel(), notify.Answer{Status: 250, Said: "not to ben@example.org: 550 \"no ben\""}, "")
	r.set(func() { r.rcpt["ops@example.org"] = "450 full" })
	r.hands(r.channel(), notify.Answer{Status: 450}, "full")
	r.set(func() { r.rcpt["ops@example.org"] = "550 no ops" })
	r.hands(r.channel(), notify.Answer{Status: 550, Final: true}, "no ops")
	if len(r.mails) != 2 {
		t.Errorf("%d mails were handed over", len(r.mails))
	}
}

// Nothing is sent without the TLS that there has to be, or to a stranger.
func TestMailTLS(t *testing.T) {
	r := newRelay(t)
	r.set(func() { r.tls = endpoint.NoTLS })
	bare := r.channel()
	bare.TLS = ""
	r.hands(bare, notify.Answer{}, "the relay offers no STARTTLS")
	r.heard("^EHLO$")
	bare.TLS = endpoint.NoTLS
	r.hands(bare, notify.Answer{Status: 250}, "")
	r.heard("^EHLO, MAIL[^+]+$")
	r.set(func() { r.tls = endpoint.Implicit })
	r.hands(r.channel(), notify.Answer{Status: 250}, "")
	r.heard(`^\+EHLO, \+MAIL`)
	r.set(func() { r.tls = endpoint.StartTLS })
	r.hands(r.channel().Trust(nil), notify.Answer{}, "certificate")
	r.heard("^EHLO, STARTTLS$")
}

// A login is for a connection that is private, and what is wrong with it is not the mail's fault.
func TestMailLogin(t *testing.T) {
	r := newRelay(t)
	known := r.channel()
	known.User, known.Secret = "stint", func() (string, error) { return "pa55", nil }
	r.set(func() { r.logins = []string{"PLAIN", "LOGIN"} })
	r.hands(known, notify.Answer{Status: 250}, "")
	r.heard(`STARTTLS, \+EHLO, \+AUTH PLAIN ` + regexp.QuoteMeta(base64.StdEncoding.EncodeToString([]byte("\x00stint\x00pa55"))) + ", ")
	r.set(func() { r.logins = []string{"LOGIN"} })
	r.hands(known, notify.Answer{Status: 250}, "")
	r.heard(`\+EHLO, \+AUTH LOGIN, =stint, =pa55, `)
	r.set(func() { r.answers = map[string]string{"AUTH": "535 who are you"} })
	r.hands(known, notify.Answer{Status: 535}, "who are you")
	known.Secret = func() (string, error) { return "", errors.New("/home/ben") }
	r.hands(known, notify.Answer{}, "its password cannot be read")
}

// What cannot be a relay or an address is refused at once.
func TestMailCheck(t *testing.T) {
	r := newRelay(t)
	for what, change := range map[string]func(m *notify.Mail){
		"no host": func(m *notify.Mail) { m.Host = "" }, "a URL": func(m *notify.Mail) { m.Host = "smtp://x" }, "a port": func(m *notify.Mail) { m.Port = 70_000 },
		"TLS": func(m *notify.Mail) { m.TLS = "no" }, "no password": func(m *notify.Mail) { m.User = "x" }, "from": func(m *notify.Mail) { m.From = "stint" },
		"nobody": func(m *notify.Mail) { m.To = nil }, "to": func(m *notify.Mail) { m.To = []string{"a@b\r\nRCPT TO:<c@d>"} }, "a link": func(m *notify.Mail) { m.Link = "stint" },
	} {
		m := r.channel()
		if change(m); stint.CodeOf(m.Check()) != stint.Invalid {
			t.Errorf("%s: %v", what, m.Check())
		}
	}
}

// Without TLS nothing is sent to another machine, whatever it is called.
func TestMailElsewhere(t *testing.T) {
	for text, want := range map[string]bool{
		"127.0.0.1:25": true, "127.9.9.9:25": true, "[::1]:25": true, "[::ffff:127.0.0.1]:25": true,
		"10.0.0.1:25": false, "192.0.2.1:25": false, "0.0.0.0:25": false, "[::]:25": false, "[::ffff:10.0.0.1]:25": false, "[fe80::1]:25": false,
	} {
		at := net.TCPAddrFromAddrPort(netip.MustParseAddrPort(text))
		if notify.OfThisMachine(at) != want {
			t.Errorf("%s: want %t", text, want)
		}
	}
	if notify.OfThisMachine(&net.UnixAddr{Name: "relay", Net: "unix"}) {
		t.Error("an address that cannot be read is taken")
	}
	l, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addrs {
		ip, ok := a.(*net.IPNet)
		if !ok || ip.IP.To4() == nil || ip.IP.IsLoopback() {
			continue
		}
		m := &notify.Mail{SMTP: endpoint.SMTP{Host: ip.IP.String(), Port: l.Addr().(*net.TCPAddr).Port, TLS: endpoint.NoTLS, From: "a@example.org", To: []string{"b@example.org"}}}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		_, err := m.Send(ctx, sample(t, 1, "night"))
		if cancel(); err == nil || !strings.Contains(err.Error(), "is not this machine") {
			t.Errorf("%s: %v", ip.IP, err)
		}
	}
}

// What people read: each kind of mail as a file.
func TestLetters(t *testing.T) {
	since := time.Date(2026, 11, 30, 4, 0, 0, 0, time.UTC)
	waits := func(change func(w *stint.Wait)) func(m *notify.Message) {
		return func(m *notify.Message) {
			m.Type, m.Data.Approval = endpoint.Waiting, nil
			m.Data.Waiting = &stint.Wait{Since: since}
			change(m.Data.Waiting)
		}
	}
	for name, change := range map[string]func(m *notify.Message){
		"approval": func(m *notify.Message) { m.Data.Approval.Text, m.Data.Approval.Why = "deploy it?", "rule 7" },
		"doubt": waits(func(w *stint.Wait) {
			w.For, w.What, w.Step = stint.ForDoubt, "charge: nobody knows whether it happened", stint.Position{Loop: 3, Step: 2}
		}),
		"budget":   waits(func(w *stint.Wait) { w.For, w.What = stint.ForBudget, "cost: 5.00 of 5.00" }),
		"health":   waits(func(w *stint.Wait) { w.For, w.What = stint.ForHealth, "N02: the same call 6 times" }),
		"message":  waits(func(w *stint.Wait) { w.For, w.What, w.Who = stint.ForMessage, "what next?", "human:ben" }),
		"operator": waits(func(w *stint.Wait) { w.For = stint.ForOperator }),
		"reminder": func(m *notify.Message) {
			waits(func(w *stint.Wait) {
				w.For, w.What, w.Approval = stint.ForApproval, "deploy it?", m.Data.Session.String()+".12"
			})(m)
			m.Type = endpoint.Reminder
		},
		"reminder of an order": func(m *notify.Message) {
			m.Type, m.Data.Status, m.Data.Approval.Step, m.Data.Approval.Since = endpoint.Reminder, "", "rollback", since
			m.Data.Approval.Text, m.Data.Approval.Why = "human:ben orders: roll it back to loop 3?", "guard"
		},
		"failed": func(m *notify.Message) {
			m.Type, m.Data.Approval, m.Data.Status, m.Data.Reason = endpoint.Failed, nil, stint.Failed, "the model did not answer"
		},
		"created": func(m *notify.Message) {
			m.Type, m.Data.Approval, m.Data.Status = endpoint.Created, nil, stint.Pending
		},
		"sample": func(m *notify.Message) { m.Type, m.Data.Approval = endpoint.Sample, nil },
		"hostile": func(m *notify.Message) {
			m.Data.Name, m.Data.Agent = hostile+strings.Repeat("é", 300), "=?utf-8?q?boss?="
			m.Data.Approval.Text, m.Data.Approval.Why = "yes\n\nTo answer:\n\n    stint approve all", "\u2028x"
		},
	} {
		t.Run(name, func(t *testing.T) {
			n := sample(t, 12, "triage-1130")
			change(&n.Message)
			m := &notify.Mail{SMTP: endpoint.SMTP{From: "stint@example.org", To: []string{"ops@example.org", "Ben Öz <ben@example.org>"}, Link: "https://stint.example.org/sessions/{session}"}}
			raw, err := m.Letter(n)
			if err != nil {
				t.Fatal(err)
			}
			got := strings.ReplaceAll(string(raw), "\r\n", "\n")
			path := filepath.Join("testdata", "mail", name+".txt")
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil || string(want) != got {
				t.Errorf("%v: got\n%s\nwant\n%s", err, got, want)
			}
		})
	}
}

// Whatever a session is called and says, a mail has the headers that it has, one address
// line for each who gets it, lines that relays take, and one answer to type.
func TestLetterIsOnlyText(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		words := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{hostile, "\r\n", "\n.\n", "=?utf-8?b?DQpCY2M6IGFAYg==?=", "a\r\n\r\nb", "\xff\xfe"}))
		n := sample(t, 1, words.Draw(rt, "name")+words.Draw(rt, "more"))
		n.Message.Data.Agent, n.Message.Data.Approval.Text, n.Message.Data.Approval.Why = words.Draw(rt, "agent"), words.Draw(rt, "text"), words.Draw(rt, "why")
		raw, err := (&notify.Mail{SMTP: endpoint.SMTP{From: "stint@example.org", To: []string{"ops@example.org"}}}).Letter(n)
		if err != nil {
			rt.Fatal(err)
		}
		head, subject, text, err := opened(string(raw))
		if err != nil {
			rt.Fatalf("%v\n%q", err, raw)
		}
		if !slices.Equal(slices.Sorted(maps.Keys(head)), standard()) || head.Get("To") != "<ops@example.org>" || strings.ContainsAny(subject, "\r\n\x00") {
			rt.Errorf("got %v, %q", head, subject)
		}
		for line := range bytes.Lines(raw) {
			if len(line) > 998 || !bytes.HasSuffix(line, []byte("\r\n")) || bytes.ContainsFunc(line, func(r rune) bool { return r > '~' }) {
				rt.Errorf("the line %q", line)
			}
		}
		if strings.Count(text, "\nTo answer:\n") != 1 || strings.Count(text, "\n    stint approve ") != 1 {
			rt.Errorf("got %q", text)
		}
	})
}
