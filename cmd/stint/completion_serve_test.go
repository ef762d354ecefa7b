package main

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// What belongs to a server is offered like the rest: a token and a delivery have ids that
// nobody types.
func TestCompletionOfAServer(t *testing.T) {
	d := newDesk(t)
	d.put("stint.yaml", "agents:\n  tick: {kind: exec, protocol: none, command: [\"true\"], effect: read}\nhooks:\n  open: {agent: tick, scheme: none}\n  opaque: {agent: tick, scheme: none}\n")
	r, url := d.serves("--local-admin")
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/hooks/open", strings.NewReader(`{"type":"it \u001b[31m"}`))
	if err != nil {
		t.Fatal(err)
	}
	_, answer := status(t, http.DefaultClient, req)
	var made struct{ ID string }
	if err := json.Unmarshal([]byte(answer), &made); err != nil {
		t.Fatal(err)
	}
	good, gone := strings.Split(d.ok("token", "create", "--role", "viewer", "ann"), "_")[2], strings.Split(d.ok("token", "create", "--role", "viewer", "bob"), "_")[2]
	d.ok("token", "revoke", gone)
	for args, want := range map[string][]string{
		"hook deliveries op":        {"opaque", "open"},
		"hook deliveries open ":     {},
		"hook test open ":           {},
		"hook show open ":           {made.ID},
		"hook redeliver open sha2":  {made.ID},
		"hook show open x":          {},
		"hook show opaque ":         {},
		"token revoke ":             {good},
		"token create --kind ":      {"user", "ci", "agent"},
		"token create --role ":      {"viewer", "operator", "approver", "admin"},
		"token create --scope ":     {"sessions:read", "sessions:run", "approvals:decide", "triggers:fire", "memory:write", "audit:read", "admin"},
		"token create --for ":       {},
		"serve --log-format ":       {"text", "json", "terminal"},
		"dev --log-level ":          {"debug", "info", "warn", "error"},
		"schedule backfill --from ": {},
	} {
		got := d.offersAll(len(want), strings.Split(args, " ")...)
		for i := range got {
			if strings.Contains(got[i], "\x1b") {
				t.Errorf("stint %s offers what drives a terminal: %q", args, got[i])
			}
			got[i], _, _ = strings.Cut(got[i], "\t")
		}
		if !slices.Equal(got, want) && len(got)+len(want) > 0 {
			t.Errorf("stint %s offers %q, want %q", args, got, want)
		}
	}
	http.DefaultClient.CloseIdleConnections()
	r.ends()
}
