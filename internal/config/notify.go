package config

import (
	"fmt"
	"net/mail"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/stint-dev/stint/cron"
	"github.com/stint-dev/stint/internal/endpoint"
)

// notify reads the endpoints, after the agents, which they may name.
func (d *decoder) notify(n *node, path string, f *File) {
	f.Notify = named(d, n, path, "a mapping of names to endpoints", func(key, value *node, at string) endpoint.Definition { return d.endpoint(key, value, at, f) })
}

// endpoint reads one endpoint.
func (d *decoder) endpoint(key, n *node, path string, f *File) endpoint.Definition {
	e := endpoint.Definition{Name: key.text}
	given := d.section(n, path, "a mapping with the keys url and secret, or exec, or smtp", d.endpointMembers(&e, f))
	if n.shape != mapping {
		return e
	}
	var ways []string
	for _, way := range []string{"url", "exec", "smtp"} {
		if given[way] != nil {
			ways = append(ways, way)
		}
	}
	switch {
	case len(ways) == 0:
		d.fail(key, path, "it says no way to reach it", "add url: https://example.com/stint with a secret, or exec: {command: [./tell]}, or smtp: with host, from and to")
		return e
	case len(ways) > 1:
		d.fail(given[ways[1]], join(path, ways[1]), "there is "+ways[0]+" already", "leave one of them out; a second endpoint is free")
	case ways[0] != "url":
		for _, name := range []string{"secret", "allow_private"} {
			if given[name] != nil {
				d.fail(given[name], join(path, name), "it is of url, and there is "+ways[0], "leave it out")
			}
		}
	default:
		if strings.HasPrefix(e.URL, "http://") && !e.Private {
			d.fail(given["url"], join(path, "url"), "what is sent there can be read on its way", "begin with https://, or add allow_private: true for an address of this machine or network")
		}
		if given["secret"] == nil {
			d.fail(key, path, "the key secret is missing", "add secret: env:NAME; the value is whsec_ and base64, with which the receiver verifies what comes")
		}
	}
	waits := len(e.Events) == 0 || slices.ContainsFunc(e.Events, func(is endpoint.Event) bool {
		return is == endpoint.NeedsYou || is == endpoint.Waiting || is == endpoint.Asked
	})
	switch {
	case given["remind"] == nil && slices.Contains(e.Events, endpoint.NeedsYou):
		e.Remind = endpoint.DefaultRemind()
	case given["remind"] != nil && !waits && !e.Remind.Never():
		d.fail(given["remind"], join(path, "remind"), "it is not told of what waits, and so it cannot be reminded", "add needs-you to events")
	}
	return e
}

// spelled are words of one kind as texts.
func spelled[T ~string](words []T) []string {
	all := make([]string, len(words))
	for i, w := range words {
		all[i] = string(w)
	}
	return all
}

func (d *decoder) endpointMembers(e *endpoint.Definition, f *File) []member {
	return []member{
		{"url", func(n *node, path string) {
			if u, ok := d.address(n, path, "a URL such as https://example.com/stint", true); ok {
				e.URL = u.String()
			}
		}},
		{"secret", func(n *node, path string) { d.hookSecrets(n, path, &e.Secrets) }},
		{"allow_private", func(n *node, path string) { d.truth(n, path, &e.Private) }},
		{"exec", func(n *node, path string) { e.Exec = d.notifyExec(n, path) }},
		{"smtp", func(n *node, path string) { e.SMTP = d.notifySMTP(n, path) }},
		{"events", func(n *node, path string) {
			var all []string
			d.names(n, path, "events", &all, func(s string) string {
				if slices.Contains(endpoint.Events(), endpoint.Event(s)) {
					return ""
				}
				return or(spelled(endpoint.Events()))
			})
			for _, s := range all {
				e.Events = append(e.Events, endpoint.Event(s))
			}
		}},
		{"remind", func(n *node, path string) { d.notifyRemind(n, path, &e.Remind) }},
		{"urgent", func(n *node, path string) { d.truth(n, path, &e.Urgent) }},
		{"agents", func(n *node, path string) {
			d.names(n, path, "names of agents", &e.Agents, func(s string) string {
				if _, err := f.Agent(s); err != nil {
					return "an agent of this file"
				}
				return ""
			})
		}},
	}
}

// notifyRemind reads when somebody is told again.
func (d *decoder) notifyRemind(n *node, path string, r *endpoint.Remind) {
	const what = "never, or a list of durations such as [15m, 1h, daily]"
	if n.shape == text && n.text == "never" {
		*r = endpoint.Remind{}
		return
	}
	if n.shape != list || len(n.items) == 0 || len(n.items) > 20 {
		d.expected(n, path, what, "", "each is a time since the wait began; daily, at the end, is each day from then on")
		return
	}
	for i, item := range n.items {
		at := fmt.Sprintf("%s[%d]", path, i)
		if item.shape == text && item.text == "daily" {
			if r.Daily = true; i < len(n.items)-1 {
				d.fail(item, at, "nothing comes after daily", "put it at the end")
			}
			continue
		}
		var after time.Duration
		d.duration(item, at, &after, false)
		switch {
		case after == 0: // said already
		case after < time.Minute:
			d.fail(item, at, "expected a minute at least", "")
		case len(r.After) > 0 && after <= r.After[len(r.After)-1]:
			d.fail(item, at, "it is not longer than the one before", "each is a time since the wait began")
		default:
			r.After = append(r.After, after)
		}
	}
}

// quiet reads the hours in which only urgent endpoints are told.
func (d *decoder) quiet(n *node, path string, q *endpoint.Quiet) {
	before := d.src.count()
	given := d.sectionOr(n, path, "a mapping with the keys from, to and tz", d.quietMembers(q), func(key string) (why, hint string) {
		if slices.Contains([]string{"zone", "timezone", "time_zone"}, strings.ToLower(key)) {
			return "there is no such key here", "did you mean tz?"
		}
		return "", ""
	})
	if n.shape != mapping {
		return
	}
	for _, name := range []string{"from", "to", "tz"} {
		if given[name] == nil {
			d.fail(n, path, "the key "+name+" is missing", `for example {from: "22:00", to: "07:00", tz: Europe/Berlin}`)
		}
	}
	if q.Zone != "" {
		if _, err := cron.Zone(q.Zone); err != nil {
			d.remedy(given["tz"], join(path, "tz"), err)
		}
	}
	if d.src.count() == before && q.From == q.To {
		d.fail(given["to"], join(path, "to"), "it is the same as from", "leave quiet out, or give the hours in which it is quiet")
	}
}

func (d *decoder) quietMembers(q *endpoint.Quiet) []member {
	clock := func(name string, to *time.Duration) member {
		return member{name, func(n *node, path string) {
			at, err := time.Parse("15:04", n.text)
			if n.shape != text || err != nil || len(n.text) != len("15:04") {
				d.expected(n, path, `a time of day such as "22:00"`, "", "")
				return
			}
			*to = time.Duration(at.Hour())*time.Hour + time.Duration(at.Minute())*time.Minute
		}}
	}
	return []member{clock("from", &q.From), clock("to", &q.To), {"tz", func(n *node, path string) {
		if s, ok := d.oneLine(n, path, "a time zone such as Europe/Berlin or UTC", 64); ok {
			q.Zone = s
		}
	}}}
}

// notifyExec reads a program that is told.
func (d *decoder) notifyExec(n *node, path string) *endpoint.Exec {
	x := endpoint.DefaultExec()
	given := d.section(n, path, "a mapping with the key command", d.notifyExecMembers(&x))
	if n.shape == mapping && given["command"] == nil {
		d.fail(n, path, "the key command is missing", "add command: [./tell]; it gets the event as JSON on its input")
	}
	return &x
}

func (d *decoder) notifyExecMembers(x *endpoint.Exec) []member {
	return []member{
		{"command", func(n *node, path string) { d.command(n, path, &x.Command) }},
		{"env", func(n *node, path string) { d.env(n, path, &x.Env) }},
		{"timeout", func(n *node, path string) { d.duration(n, path, &x.Timeout, false) }},
	}
}

// notifySMTP reads a relay that takes mails.
func (d *decoder) notifySMTP(n *node, path string) *endpoint.SMTP {
	m := endpoint.DefaultSMTP()
	given := d.section(n, path, "a mapping with the keys host, from and to", d.notifySMTPMembers(&m))
	if n.shape != mapping {
		return &m
	}
	for _, name := range []string{"host", "from", "to"} {
		if given[name] == nil {
			hint := map[string]string{"host": "add host: mail.example.com, the relay that takes the mails", "from": "add from: stint@example.com", "to": "add to: [ops@example.com]"}[name]
			d.fail(n, path, "the key "+name+" is missing", hint)
		}
	}
	if (given["user"] == nil) != (given["password"] == nil) {
		d.fail(n, path, "user and password belong together", "give both, or leave both out where the relay asks for none")
	}
	if why := private(m.Host); m.TLS == endpoint.NoTLS && m.Host != "" && why != "is this machine" {
		d.fail(given["tls"], join(path, "tls"), "without TLS the mails and the password can be read on their way", "leave tls out, or take implicit; none is for a relay of this machine")
	}
	return &m
}

func (d *decoder) notifySMTPMembers(m *endpoint.SMTP) []member {
	const anAddress = "an address such as stint@example.com"
	return []member{
		{"host", func(n *node, path string) {
			s, ok := d.oneLine(n, path, "a host such as mail.example.com", 253)
			if ok && strings.ContainsAny(s, " /@[]") || ok && strings.Count(s, ":") == 1 {
				d.expected(n, path, "a host such as mail.example.com", "", "write the name alone; port: 587 is a key of its own")
			} else if ok {
				m.Host = s
			}
		}},
		{"port", func(n *node, path string) { integer(d, n, path, &m.Port, 1, 65535, false) }},
		{"tls", func(n *node, path string) {
			choose(d, n, path, &m.TLS, endpoint.StartTLS, endpoint.Implicit, endpoint.NoTLS)
		}},
		{"user", func(n *node, path string) {
			if s, ok := d.oneLine(n, path, "the name to log in with", 320); ok {
				m.User = s
			}
		}},
		{"password", func(n *node, path string) { d.secretRef(n, path, "the password", &m.Password) }},
		{"from", func(n *node, path string) {
			if s, ok := d.oneLine(n, path, anAddress, 320); ok && !isAddress(s) {
				d.expected(n, path, anAddress, "", "")
			} else if ok {
				m.From = s
			}
		}},
		{"to", func(n *node, path string) {
			d.names(n, path, "addresses", &m.To, func(s string) string {
				if isAddress(s) {
					return ""
				}
				return anAddress
			})
		}},
		{"link", func(n *node, path string) {
			const what = "the URL of a session such as https://stint.example.com/sessions/{session}"
			s, ok := d.oneLine(n, path, what, 1000)
			u, err := url.Parse(s)
			if ok && (!strings.Contains(s, "{session}") || err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http") {
				d.expected(n, path, what, "", "{session} stands for its id")
			} else if ok {
				m.Link = s
			}
		}},
	}
}

// isAddress reports whether a mail can be sent to s.
func isAddress(s string) bool {
	a, err := mail.ParseAddress(s)
	return err == nil && strings.Trim(a.Address, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.!#$%&'*+/=?^_`{|}~@-") == "" && len(s) <= 320
}
