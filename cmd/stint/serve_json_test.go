package main

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// shape is the schema and the names that a document has, those of its first item with a star.
func shape(t *testing.T, text string) (schema string, names []string) {
	t.Helper()
	var doc map[string]any
	if err := json.Unmarshal([]byte(text), &doc); err != nil {
		t.Fatalf("%v: %.300s", err, text)
	}
	names = slices.Collect(maps.Keys(doc))
	if items, _ := doc["items"].([]any); len(items) > 0 {
		for name := range items[0].(map[string]any) {
			names = append(names, "*"+name)
		}
	}
	schema, _ = doc["schema"].(string)
	return schema, names
}

// A document has one schema, whether the API answers it or a command prints it: what a
// program reads from the one it finds in the other. What is more or less on one side is what
// docs/cli-json.md says.
func TestCommandsPrintTheAPIsDocuments(t *testing.T) {
	d := newDesk(t)
	d.put("stint.yaml", `
agents:
  tick: {kind: exec, protocol: none, command: ["true"], effect: read}
schedules:
  nightly: {agent: tick, cron: "0 3 29 2 *", zone: UTC}
hooks:
  open: {agent: tick, scheme: none}
`)
	r, url := d.serves("--local-admin")
	ask := func(method, path, body string) string {
		req, err := http.NewRequestWithContext(t.Context(), method, url+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if body != "" {
			req.Header.Set("Content-Type", "application/json")
		}
		code, answer := status(t, http.DefaultClient, req)
		if code/100 != 2 {
			t.Fatalf("%s %s: %d, %s", method, path, code, answer)
		}
		return answer
	}
	var made struct{ ID string }
	if err := json.Unmarshal([]byte(ask(http.MethodPost, "/hooks/open", `{"a":1}`)), &made); err != nil {
		t.Fatal(err)
	}
	d.ok("token", "create", "--role", "viewer", "ann")
	d.ok("schedule", "fire", "nightly")
	for _, c := range []struct{ method, path, body, command, more, less string }{
		{"GET", "/v1/schedules", "", "schedule ls", "*words *status *last", ""},
		{"POST", "/v1/schedules/nightly/fire", "", "schedule fire nightly", "words status last", ""},
		{"GET", "/v1/schedules/nightly/occurrences", "", "schedule history nightly", "*status *short", "next"},
		{"POST", "/v1/schedules/nightly/backfill", `{"from":"2024-01-01T00:00:00Z","to":"2024-03-01T00:00:00Z","dry_run":true}`, "schedule backfill nightly --from 2024-01-01 --to 2024-03-01", "", ""},
		{"GET", "/v1/hooks", "", "hook ls", "*status *detail *last", ""},
		{"GET", "/v1/hooks/open/deliveries", "", "hook deliveries open", "", "next"},
		{"GET", "/v1/hooks/open/deliveries/" + made.ID, "", "hook show open " + made.ID, "", ""},
		{"POST", "/v1/hooks/open/deliveries/" + made.ID + "/redeliver", "", "hook redeliver open " + made.ID, "", ""},
		{"GET", "/v1/tokens", "", "token ls", "", ""},
		{"POST", "/v1/tokens", `{"name":"bob","role":"viewer"}`, "token create --role viewer eve", "", ""},
	} {
		schema, there := shape(t, ask(c.method, c.path, c.body))
		printed, here := shape(t, d.ok(append(strings.Fields(c.command), "--json")...))
		want := slices.DeleteFunc(append(there, strings.Fields(c.more)...), func(name string) bool { return slices.Contains(strings.Fields(c.less), name) })
		slices.Sort(want)
		slices.Sort(here)
		if schema == "" || printed != schema || !slices.Equal(here, want) {
			t.Errorf("stint %s prints %s with %v; %s answers %s, so it has to have %v", c.command, printed, here, c.path, schema, want)
		}
	}
	http.DefaultClient.CloseIdleConnections()
	r.ends()
}
