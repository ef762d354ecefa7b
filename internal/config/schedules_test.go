package config_test

import (
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/stint-dev/stint/internal/config"
	"github.com/stint-dev/stint/internal/endpoint"
)

func TestSchedules(t *testing.T) {
	f, err := config.Load(filepath.Join("testdata", "good", "schedules.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	usual := func(name string, change func(s *config.Schedule)) config.Schedule {
		s := config.Schedule{Name: name, Agent: "triage", Overlap: "skip", Window: time.Hour, Most: 1}
		change(&s)
		return s
	}
	want := map[string]config.Schedule{
		"nightly": {
			Name: "nightly", Agent: "triage", Cron: "30 2 * * MON-FRI", Zone: "Europe/Berlin", Prompt: "Look at what is new.\n", Labels: map[string]string{"team": "core"},
			Overlap: "queue", Window: 48 * time.Hour, Most: 5, Jitter: 5 * time.Minute, PauseAfter: 3,
			When: &config.When{Command: []string{"test", "-s", "inbox"}, Timeout: 5 * time.Second},
		},
		"ticks": usual("ticks", func(s *config.Schedule) { s.Cron, s.Zone, s.Window = "@every 1h30m0s", "UTC", 0 }),
		"seconds": usual("seconds", func(s *config.Schedule) {
			s.Cron, s.Zone, s.Seconds, s.Overlap = "*/10 * * * * *", "UTC", true, "allow"
		}),
		"once": usual("once", func(s *config.Schedule) {
			s.At = time.Date(2027, 1, 31, 17, 0, 0, 0, time.UTC)
			s.When = &config.When{URL: "https://example.com/new?for=me", Private: true, Timeout: 30 * time.Second}
		}),
		"daily": usual("daily", func(s *config.Schedule) { s.Cron, s.Zone = "@daily", "UTC" }),
	}
	if !reflect.DeepEqual(f.Schedules, want) {
		t.Errorf("got\n%+v\nwant\n%+v", f.Schedules, want)
	}
}

func TestNotify(t *testing.T) {
	f, err := config.Load(filepath.Join("testdata", "good", "notify.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	dir, err := filepath.Abs(filepath.Join("testdata", "good"))
	if err != nil {
		t.Fatal(err)
	}
	page := &endpoint.Exec{Command: []string{"./page"}, Timeout: 30 * time.Second}
	if want := (endpoint.Quiet{From: 22 * time.Hour, To: 7*time.Hour + 30*time.Minute, Zone: "Europe/Berlin"}); f.Quiet != want {
		t.Errorf("got %+v, want %+v", f.Quiet, want)
	}
	want := map[string]endpoint.Definition{
		"pager": {Name: "pager", URL: "https://example.com/stint?team=core", Secrets: []string{"env:NEW", "file:" + filepath.Join(dir, "old")},
			Events: []endpoint.Event{"approval.requested", "session.waiting"}, Agents: []string{"triage"}},
		"local": {Name: "local", URL: "http://127.0.0.1:9000", Secrets: []string{"env:LOCAL"}, Private: true},
		"desk": {Name: "desk", Events: []endpoint.Event{"approval.requested"},
			Exec: &endpoint.Exec{Command: []string{"./tell", "ben"}, Env: map[string]string{"MODE": "loud", "TOKEN": "env:TOKEN"}, Timeout: 10 * time.Second}},
		"ops": {Name: "ops", SMTP: &endpoint.SMTP{Host: "mail.example.com", Port: 2525, TLS: "implicit", User: "stint", Password: "file:" + filepath.Join(dir, "mail-password"),
			From: "Stint <stint@example.com>", To: []string{"Ben <ben@example.com>", "ops@example.com"}, Link: "https://stint.example.com/sessions/{session}"}},
		"night": {Name: "night", Exec: page, Events: []endpoint.Event{"bad-end", "needs-you"}, Remind: endpoint.DefaultRemind(), Urgent: true},
		"once":  {Name: "once", Exec: page, Events: []endpoint.Event{"needs-you"}},
		"often": {Name: "often", Exec: page, Remind: endpoint.Remind{After: []time.Duration{time.Minute, 90 * time.Minute}, Daily: true}},
		"near":  {Name: "near", SMTP: &endpoint.SMTP{Host: "localhost", TLS: "none", From: "a@example.com", To: []string{"b@example.com"}}},
	}
	if !reflect.DeepEqual(f.Notify, want) {
		t.Errorf("got\n%+v\nwant\n%+v", f.Notify, want)
	}
}
