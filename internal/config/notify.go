package config

import (
	"slices"
	"strings"
)

// Endpoint is where a server sends what happens to sessions.
type Endpoint struct {
	Name    string   `json:"name"`
	URL     string   `json:"url"`
	Secrets []string `json:"secret"`           // references, of whsec_ and base64: 1, or 2 while it is changed
	Events  []string `json:"events,omitempty"` // sorted; nil: all
	Agents  []string `json:"agents,omitempty"` // sorted; nil: of all
	Private bool     `json:"allow_private,omitempty"`
}

// events are what an endpoint can be told of. Package notify has the same, which a test of
// package main compares.
func events() []string {
	return []string{"session.created", "session.waiting", "approval.requested", "session.ended", "session.failed"}
}

// notify reads the endpoints, after the agents, which they may name.
func (d *decoder) notify(n *node, path string, f *File) {
	f.Notify = named(d, n, path, "a mapping of names to endpoints", func(key, value *node, at string) Endpoint { return d.endpoint(key, value, at, f) })
}

// endpoint reads one endpoint.
func (d *decoder) endpoint(key, n *node, path string, f *File) Endpoint {
	e := Endpoint{Name: key.text}
	given := d.section(n, path, "a mapping with the keys url and secret", d.endpointMembers(&e, f))
	if n.shape != mapping {
		return e
	}
	if given["url"] == nil {
		d.fail(key, path, "the key url is missing", "add url: https://example.com/stint")
	} else if strings.HasPrefix(e.URL, "http://") && !e.Private {
		d.fail(given["url"], join(path, "url"), "what is sent there can be read on its way", "begin with https://, or add allow_private: true for an address of this machine or network")
	}
	if given["secret"] == nil {
		d.fail(key, path, "the key secret is missing", "add secret: env:NAME; the value is whsec_ and base64, with which the receiver verifies what comes")
	}
	return e
}

func (d *decoder) endpointMembers(e *Endpoint, f *File) []member {
	return []member{
		{"url", func(n *node, path string) {
			if u, ok := d.address(n, path, "a URL such as https://example.com/stint", true); ok {
				e.URL = u.String()
			}
		}},
		{"secret", func(n *node, path string) { d.hookSecrets(n, path, &e.Secrets) }},
		{"events", func(n *node, path string) {
			d.names(n, path, "events", &e.Events, func(s string) string {
				if slices.Contains(events(), s) {
					return ""
				}
				return or(events())
			})
		}},
		{"agents", func(n *node, path string) {
			d.names(n, path, "names of agents", &e.Agents, func(s string) string {
				if _, err := f.Agent(s); err != nil {
					return "an agent of this file"
				}
				return ""
			})
		}},
		{"allow_private", func(n *node, path string) { d.truth(n, path, &e.Private) }},
	}
}
