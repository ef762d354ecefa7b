package notify

import (
	"bytes"
	"fmt"
	"mime"
	"mime/quotedprintable"
	"net/mail"
	"slices"
	"strings"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/endpoint"
	"github.com/stint-dev/stint/internal/term"
)

// maxSubject bounds the subject of a mail, in columns.
const maxSubject = 150

// letter is the mail that a notification is: the same bytes whenever it is sent.
func (m *Mail) letter(n *Notification) ([]byte, error) {
	from, to, err := m.addresses()
	if err != nil {
		return nil, err
	}
	domain := from.Address[strings.LastIndexByte(from.Address, '@')+1:]
	list := make([]string, len(to))
	for i, a := range to {
		list[i] = a.String()
	}
	var b bytes.Buffer
	for _, h := range [][2]string{
		{"From", from.String()},
		{"To", strings.Join(list, ",\r\n ")},
		{"Subject", subject(&n.Message)},
		{"Date", n.Message.At.UTC().Format(time.RFC1123Z)},
		{"Message-ID", "<" + n.ID + "@" + domain + ">"},
		{"References", "<" + n.Message.Data.Session.String() + "@" + domain + ">"}, // one thread a session
		{"Auto-Submitted", "auto-generated"},
		{"X-Auto-Response-Suppress", "All"},
		{"MIME-Version", "1.0"},
		{"Content-Type", "text/plain; charset=utf-8"},
		{"Content-Transfer-Encoding", "quoted-printable"},
	} {
		fmt.Fprintf(&b, "%s: %s\r\n", h[0], h[1])
	}
	b.WriteString("\r\n")
	w := quotedprintable.NewWriter(&b)
	if _, err := w.Write([]byte(m.text(&n.Message))); err != nil {
		return nil, err
	}
	return b.Bytes(), w.Close()
}

// subject is one line of a mail's head, whatever the session is called.
func subject(m *Message) string {
	plain := "[stint] " + said(m.Data.Name) + " " + does(m)
	plain = strings.ReplaceAll(term.Cut(plain, maxSubject), "=?", "= ?") // which would be read as something encoded
	return strings.ReplaceAll(mime.QEncoding.Encode("utf-8", plain), "?= =?", "?=\r\n =?")
}

// said is what a session says, on one line, as text that can do nothing.
func said(s string) string { return term.Cut(term.Line(strings.TrimSpace(s)), 300) }

// does is what happened, as the rest of a sentence that begins with the session.
func does(m *Message) string {
	d, still := &m.Data, ""
	if m.Type == endpoint.Reminder {
		still = "still "
	}
	switch {
	case m.Type == endpoint.Sample:
		return "is a sample: nothing happened"
	case d.Approval != nil:
		return still + "asks for a decision: " + said(d.Approval.Text)
	case d.Waiting != nil:
		what := map[stint.WaitFor]string{
			stint.ForApproval: "a decision", stint.ForMessage: "a message", stint.ForBudget: "more budget", stint.ForDoubt: "word on a step in doubt",
			stint.ForHealth: "a look at it: it got nowhere", stint.ForOperator: "an operator",
		}[d.Waiting.For]
		if d.Waiting.What != "" {
			what += ": " + said(d.Waiting.What)
		}
		return still + "waits for " + what
	case d.Reason != "":
		return string(d.Status) + ": " + said(d.Reason)
	case m.Type == endpoint.Created:
		return "has begun"
	}
	return string(d.Status)
}

// text is the body of a mail: who, what, since when, and what to type.
func (m *Mail) text(is *Message) string {
	d := &is.Data
	var b strings.Builder
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%-9s %s\n", name+":", value)
		}
	}
	fmt.Fprintf(&b, "%s %s\n\n", said(d.Name), does(is))
	line("session", d.Session.String())
	line("agent", said(d.Agent))
	since := is.At
	if w := d.Waiting; w != nil {
		line("who", said(w.Who))
		if !w.Since.IsZero() {
			since = w.Since
		}
	}
	if a := d.Approval; a != nil {
		name := "step"
		if d.Status == "" { // it changes nothing of the session
			name = "order"
		}
		line(name, said(a.Step))
		line("why", said(a.Why))
		if !a.Since.IsZero() {
			since = a.Since
		}
	}
	line("since", since.UTC().Format("2006-01-02 15:04:05 UTC"))
	if all := commands(is); len(all) > 0 {
		head := "To answer"
		if d.Approval == nil && d.Waiting == nil {
			head = "To see more"
		}
		fmt.Fprintf(&b, "\n%s:\n\n    %s\n", head, strings.Join(all, "\n    "))
	}
	if m.Link != "" {
		fmt.Fprintf(&b, "\n%s\n", strings.ReplaceAll(m.Link, "{session}", d.Session.String()))
	}
	return b.String()
}

// commands are what somebody types who was told of a message. Nothing in them is anybody's
// text: ids alone.
func commands(m *Message) []string {
	d := &m.Data
	id, approval := d.Session.String(), ""
	switch {
	case d.Approval != nil:
		approval = d.Approval.ID
	case d.Waiting != nil:
		approval = d.Waiting.Approval
	}
	switch {
	case m.Type == endpoint.Sample || m.Type == endpoint.Created:
		return nil
	case approval != "":
		return []string{"stint approve " + approval, "stint deny " + approval}
	case d.Waiting == nil:
		return []string{"stint show " + id}
	}
	switch d.Waiting.For {
	case stint.ForApproval:
		return []string{"stint approvals"}
	case stint.ForMessage:
		return []string{"stint send " + id + " TEXT"}
	case stint.ForDoubt:
		step := d.Waiting.Step
		if step.Step == 0 {
			return []string{"stint show " + id}
		}
		at := "stint resolve " + id + ":" + step.String()
		return []string{"stint show " + id, at + " --happened", at + " --not", at + " --unknown"}
	case stint.ForBudget:
		limit, _, _ := strings.Cut(d.Waiting.What, ":")
		if !slices.Contains([]string{"wall", "idle", "loops", "steps", "tokens", "cost"}, limit) {
			return []string{"stint show " + id}
		}
		return []string{"stint show " + id, "stint limit " + id + " --" + limit + " +MORE"}
	case stint.ForHealth, stint.ForOperator:
		return []string{"stint show " + id, "stint resume " + id}
	case stint.ForTime, stint.ForChild, stint.ForRetry: // nobody's move
	}
	return nil
}

// addresses reads who sends and who gets a mail.
func (m *Mail) addresses() (from *mail.Address, to []*mail.Address, err error) {
	one := func(what, text string) (*mail.Address, error) {
		a, err := mail.ParseAddress(text)
		if err != nil || strings.ContainsFunc(a.Address, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
			return nil, wrong("for example stint@example.org, or Stint <stint@example.org>", "%s: %q is no address", what, text)
		}
		return a, nil
	}
	if from, err = one("from", m.From); err != nil {
		return nil, nil, err
	}
	for _, text := range m.To {
		a, err := one("to", text)
		if err != nil {
			return nil, nil, err
		}
		to = append(to, a)
	}
	if len(to) == 0 {
		return nil, nil, wrong("for example [ops@example.org]", "there is nobody to send to")
	}
	return from, to, nil
}
