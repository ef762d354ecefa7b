package config

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/cron"
)

// Schedule says when sessions of an agent begin by themselves, and how. Of Cron and At
// one is there.
type Schedule struct {
	Name    string            `json:"name"`
	Agent   string            `json:"agent"`
	Cron    string            `json:"cron,omitempty"` // an expression of package cron; every: 90m is @every 90m
	Zone    string            `json:"zone,omitempty"` // of Cron
	Seconds bool              `json:"seconds,omitempty"`
	At      time.Time         `json:"at,omitzero"` // once
	Prompt  string            `json:"prompt,omitempty"`
	Labels  map[string]string `json:"labels,omitempty"` // beside those of the agent
	Overlap string            `json:"overlap"`          // skip, queue, replace or allow
	Window  time.Duration     `json:"window_ns"`        // how late a session may begin, as after a time without a server; 0: it may not
	Most    int               `json:"most"`             // how many times may be caught up, the newest
	Jitter  time.Duration     `json:"jitter_ns,omitempty"`
	// PauseAfter is after how many sessions in a row that did not complete the schedule
	// is paused; 0: never.
	PauseAfter int   `json:"pause_after,omitempty"`
	When       *When `json:"when,omitempty"` // nil: each time
}

// When is asked before a session begins: a command that ends with 0, or a URL that
// answers with 2xx, says yes; an exit code of 1, or 304, 404 and 204, says no.
type When struct {
	Command []string      `json:"command,omitempty"` // run in the folder of the file
	URL     string        `json:"url,omitempty"`
	Private bool          `json:"allow_private,omitempty"` // addresses that are not of the public Internet too
	Timeout time.Duration `json:"timeout_ns"`
}

// defaultSchedule is a schedule of which only the needful is said.
func defaultSchedule(name string) Schedule {
	return Schedule{Name: name, Overlap: "skip", Window: time.Hour, Most: 1}
}

// defaultWhen is a condition of which only the needful is said.
func defaultWhen() When { return When{Timeout: 30 * time.Second} }

// schedules reads the schedules, after the agents, which they name.
func (d *decoder) schedules(n *node, path string, f *File) {
	f.Schedules = named(d, n, path, "a mapping of names to schedules", func(key, value *node, at string) Schedule { return d.schedule(key, value, at, f) })
}

// schedule reads one schedule.
func (d *decoder) schedule(key, n *node, path string, f *File) Schedule {
	s, every := defaultSchedule(key.text), ""
	given := d.sectionOr(n, path, "a mapping with the keys agent and cron", d.scheduleMembers(&s, &every), strangerInSchedule)
	if n.shape != mapping {
		return s
	}
	if given["agent"] == nil {
		d.fail(key, path, "the key agent is missing", "name the agent whose sessions it begins")
	} else if s.Agent != "" {
		d.hookAgent(given["agent"], join(path, "agent"), s.Agent, f)
	}
	var times []string
	for _, name := range []string{"cron", "every", "at"} {
		if given[name] != nil {
			times = append(times, name)
		}
	}
	switch {
	case len(times) == 0:
		d.fail(key, path, "it says no time", `add cron: "0 6 * * MON-FRI" and zone: Europe/Berlin, or every: 90m, or at: 2027-01-31T18:00:00Z`)
	case len(times) > 1:
		d.fail(given[times[1]], join(path, times[1]), "there is "+times[0]+" already", "leave one of them out; a second schedule is free")
	case times[0] == "cron":
		d.expression(key, n, path, given, &s)
	default:
		for _, name := range []string{"zone", "seconds"} {
			if given[name] != nil {
				d.fail(given[name], join(path, name), "it is of cron, and there is "+times[0], "leave it out")
			}
		}
		if every != "" {
			s.Cron, s.Zone = "@every "+every, "UTC"
		}
	}
	if s.Most > 1 && (s.Overlap == "skip" || s.Overlap == "replace") && valueOf(n, "catchup") != nil {
		d.fail(valueOf(n, "catchup"), join(path, "catchup"), fmt.Sprintf("with overlap: %s no more than one time can be caught up", s.Overlap), "leave most out, or take overlap: queue or allow")
	}
	return s
}

// expression checks an expression with its zone.
func (d *decoder) expression(key, n *node, path string, given map[string]*node, s *Schedule) {
	if given["zone"] == nil {
		d.fail(key, path, "the key zone is missing", "say in which time zone: Europe/Berlin, America/New_York or UTC")
		return
	}
	if s.Cron == "" || s.Zone == "" {
		return // said already
	}
	if _, err := cron.Zone(s.Zone); err != nil {
		d.remedy(given["zone"], join(path, "zone"), err)
		return
	}
	times, err := cron.Parse(s.Cron, cron.Options{Zone: s.Zone, Seconds: s.Seconds})
	if err != nil {
		d.remedy(given["cron"], join(path, "cron"), err)
		return
	}
	s.Cron = times.String()
	if s.Jitter > 0 && valueOf(n, "jitter") != nil {
		first, _ := times.Next(time.Unix(0, 0))
		if second, ok := times.Next(first); ok && second.Sub(first) < s.Jitter {
			d.fail(valueOf(n, "jitter"), join(path, "jitter"), "it is longer than the "+formatDuration(second.Sub(first))+" between two times", "make it shorter")
		}
	}
}

// remedy reports an error of another package, with its own hint.
func (d *decoder) remedy(n *node, path string, err error) {
	var e *stint.Error
	if errors.As(err, &e) {
		d.fail(n, path, e.Err.Error(), e.Hint)
		return
	}
	d.fail(n, path, err.Error(), "")
}

func (d *decoder) scheduleMembers(s *Schedule, every *string) []member {
	return []member{
		{"agent", func(n *node, path string) {
			if v, ok := d.oneLine(n, path, "the name of an agent", 64); ok {
				s.Agent = v
			}
		}},
		{"cron", func(n *node, path string) {
			if v, ok := d.oneLine(n, path, `an expression such as "0 6 * * MON-FRI"`, 1000); ok {
				s.Cron = v
			}
		}},
		{"every", func(n *node, path string) {
			var v time.Duration
			d.duration(n, path, &v, false)
			if v > 0 && (v < time.Second || v%time.Second != 0) {
				d.fail(n, path, "expected whole seconds", "")
				return
			}
			if v > 0 {
				*every = v.String()
			}
		}},
		{"at", func(n *node, path string) { d.instant(n, path, &s.At) }},
		{"zone", func(n *node, path string) {
			if v, ok := d.oneLine(n, path, "a time zone such as Europe/Berlin or UTC", 64); ok {
				s.Zone = v
			}
		}},
		{"seconds", func(n *node, path string) { d.truth(n, path, &s.Seconds) }},
		{"prompt", func(n *node, path string) { d.content(n, path, "a text", &s.Prompt) }},
		{"labels", func(n *node, path string) { d.labels(n, path, &s.Labels) }},
		{"overlap", func(n *node, path string) { choose(d, n, path, &s.Overlap, "skip", "queue", "replace", "allow") }},
		{"catchup", func(n *node, path string) {
			if isNone(n) {
				s.Window = 0
				return
			}
			d.section(n, path, "a mapping with the keys window and most, or none", d.catchUpMembers(s))
		}},
		{"jitter", func(n *node, path string) { d.duration(n, path, &s.Jitter, true) }},
		{"pause_after", func(n *node, path string) { integer(d, n, path, &s.PauseAfter, 1, 1000, true) }},
		{"when", func(n *node, path string) {
			w := defaultWhen()
			d.when(n, path, &w)
			s.When = &w
		}},
	}
}

func (d *decoder) catchUpMembers(s *Schedule) []member {
	return []member{
		{"window", func(n *node, path string) { d.duration(n, path, &s.Window, true) }},
		{"most", func(n *node, path string) { integer(d, n, path, &s.Most, 1, 100, false) }},
	}
}

// when reads what is asked before a session begins.
func (d *decoder) when(n *node, path string, w *When) {
	given := d.section(n, path, "a mapping with the key command or url", d.whenMembers(w))
	switch {
	case n.shape != mapping:
	case given["command"] != nil && given["url"] != nil:
		d.fail(given["url"], join(path, "url"), "there is command already", "leave one of them out")
	case given["command"] == nil && given["url"] == nil:
		d.fail(n, path, "expected command or url", `add command: [test, -s, new], or url: https://example.com/new`)
	case given["allow_private"] != nil && given["url"] == nil:
		d.fail(given["allow_private"], join(path, "allow_private"), "it is of url, and there is command", "leave it out")
	}
}

func (d *decoder) whenMembers(w *When) []member {
	return []member{
		{"command", func(n *node, path string) { d.command(n, path, &w.Command) }},
		{"url", func(n *node, path string) {
			if u, ok := d.address(n, path, "a URL such as https://example.com/new", true); ok {
				w.URL = u.String()
			}
		}},
		{"allow_private", func(n *node, path string) { d.truth(n, path, &w.Private) }},
		{"timeout", func(n *node, path string) { d.duration(n, path, &w.Timeout, false) }},
	}
}

// instant reads a point in time.
func (d *decoder) instant(n *node, path string, to *time.Time) {
	const what = "a time such as 2027-01-31T18:00:00Z"
	if n.shape != text || n.text == "" {
		d.expected(n, path, what, "", "")
		return
	}
	at, err := time.Parse(time.RFC3339, n.text)
	if err != nil || at.Year() < 1970 {
		hint := "a time has a date, T, a time of day, and Z or an offset like +01:00"
		if regexp.MustCompile(`^\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?$`).MatchString(n.text) {
			hint = "add Z for UTC, or the offset of your clock, like +01:00"
		}
		d.expected(n, path, what, "", hint)
		return
	}
	*to = at.UTC().Truncate(time.Second)
}

// strangerInSchedule says what to write in place of a key that other programs have.
func strangerInSchedule(key string) (why, hint string) {
	instead := map[string]string{
		"schedule": "cron", "expression": "cron", "expr": "cron", "interval": "every", "timezone": "zone", "tz": "zone", "time_zone": "zone", "date": "at", "once": "at",
		"input": "prompt", "text": "prompt", "message": "prompt", "concurrency": "overlap", "concurrencypolicy": "overlap", "concurrency_policy": "overlap", "busy": "overlap",
		"catch_up": "catchup", "startingdeadlineseconds": "catchup: {window: …}", "window": "catchup: {window: …}", "backfill": "catchup", "randomizeddelaysec": "jitter",
		"spread": "jitter", "condition": "when", "if": "when", "gate": "when", "command": "agent",
	}[strings.ToLower(key)]
	switch {
	case instead != "":
		return "there is no such key here", "did you mean " + instead + "?"
	case slices.Contains([]string{"paused", "suspend", "enabled", "disabled"}, strings.ToLower(key)):
		return "there is no such key here", "stint schedule pause NAME -m REASON stops it, and says who did and why"
	}
	return "", ""
}
