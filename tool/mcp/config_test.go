package mcp_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/tool/mcp"
)

// config is of the shapes that such files have: an entry without a type, blanks in a path,
// variables with and without a default, and members of other programs.
const config = `{
 "globalShortcut": "Ctrl+Space",
 "mcpServers": {
  "remote": {"type": "http", "url": "%s/mcp", "headers": {"Authorization": "Bearer ${MCP_TOKEN}", "X-Team": "${TEAM:-core}"}},
  "docs": {"command": "docs-mcp"},
  "fs": {"type": "stdio", "command": "npx", "args": ["-y", "@example/fs", "/srv/my data", "${HOME}", "$HOME ${1} ${A-b}"], "env": {"DEBUG": "true"},
         "disabled": false, "autoApprove": ["read"]}
 }
}`

func TestReadConfig(t *testing.T) {
	specs, err := mcp.ReadConfig(fmt.Appendf(nil, config, "https://a.example"))
	want := []mcp.Spec{
		{Name: "docs", Transport: mcp.Stdio, Command: "docs-mcp"},
		{Name: "fs", Transport: mcp.Stdio, Command: "npx", Args: []string{"-y", "@example/fs", "/srv/my data", "${HOME}", "$HOME ${1} ${A-b}"}, Env: map[string]string{"DEBUG": "true"}},
		{Name: "remote", Transport: mcp.HTTP, URL: "https://a.example/mcp", Headers: map[string]string{"Authorization": "Bearer ${MCP_TOKEN}", "X-Team": "${TEAM:-core}"}},
	}
	if err != nil || !reflect.DeepEqual(specs, want) {
		t.Errorf("got %+v, %v", specs, err)
	}
	if specs, err := mcp.ReadConfig([]byte(`{"mcpServers":{}}`)); err != nil || len(specs) != 0 {
		t.Errorf("got %v, %v", specs, err)
	}
	for want, in := range map[string]string{
		"it has no mcpServers":                   `{"servers":{}}`,
		"a member begins with its name":          `{"mcpServers":{`,
		`"docs" is in this object twice`:         `{"mcpServers":{"docs":{"command":"a"},"docs":{"command":"b"}}}`,
		`the server "a": it has no command`:      `{"mcpServers":{"a":{}}}`,
		`the server "a": it has no url`:          `{"mcpServers":{"a":{"type":"http"}}}`,
		`there is no type "pigeon"`:              `{"mcpServers":{"a":{"type":"pigeon","command":"x"}}}`,
		"the transport of 2024":                  `{"mcpServers":{"a":{"type":"sse","url":"http://x"}}}`,
		"a command or variables, and is reached": `{"mcpServers":{"a":{"type":"http","url":"http://x","command":"y"}}}`,
		"a URL or headers, and is started":       `{"mcpServers":{"a":{"type":"stdio","url":"http://x","command":"y"}}}`,
		"cannot unmarshal number":                `{"mcpServers":{"a":{"command":"x","args":[1]}}}`,
		`"A=B" is not the name`:                  `{"mcpServers":{"a":{"command":"x","env":{"A=B":""}}}}`,
		"the server \"\": it has no name":        `{"mcpServers":{"":{"command":"x"}}}`,
		"cannot unmarshal array":                 `{"mcpServers":[]}`,
	} {
		_, err := mcp.ReadConfig([]byte(in))
		if !errors.Is(err, stint.Invalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", in, err, want)
		}
	}
}

// TestVariables: what is missing is named before anything is started, and what is there is
// used and shown nowhere.
func TestVariables(t *testing.T) {
	var asked atomic.Int64
	var header atomic.Value
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		header.Store(r.Header.Get("Authorization") + ", " + r.Header.Get("X-Team"))
		http.Error(w, "who is "+r.Header.Get("Authorization")+"?", http.StatusBadRequest)
	}))
	defer srv.Close()
	specs, err := mcp.ReadConfig(fmt.Appendf(nil, config, srv.URL))
	if err != nil {
		t.Fatal(err)
	}
	remote := specs[2]
	remote.Allow = []string{"127.0.0.1"}
	_, err = mcp.Open(t.Context(), remote, mcp.Options{Lookup: func(string) (string, bool) { return "", false }})
	if !errors.Is(err, stint.Invalid) || err.Error() != "mcp server remote: headers.Authorization needs the variable MCP_TOKEN, which is not set" {
		t.Errorf("got %v", err)
	}
	var log strings.Builder
	s, err := mcp.Open(t.Context(), remote, mcp.Options{
		Lookup: func(name string) (string, bool) { return canary, name == "MCP_TOKEN" },
		Log:    func(_, line string) { log.WriteString(line) },
	})
	if err != nil || asked.Load() != 0 {
		t.Fatal(err, asked.Load())
	}
	defer s.Close()
	_, err = s.Tools(t.Context())
	if !errors.Is(err, stint.Unavailable) || strings.Contains(err.Error()+log.String(), canary) {
		t.Errorf("got %v, logged %q", err, log.String())
	}
	if header.Load() != "Bearer "+canary+", core" {
		t.Errorf("the server got %q", header.Load())
	}
	bad := remote
	bad.URL = "http://user:${MCP_TOKEN}@a.example\x7f/"
	if _, err := mcp.Open(t.Context(), bad, mcp.Options{Lookup: func(string) (string, bool) { return canary, true }}); err == nil || strings.Contains(err.Error(), canary) {
		t.Errorf("got %v", err)
	}
}

func FuzzReadConfig(f *testing.F) {
	f.Add(fmt.Appendf(nil, config, "http://127.0.0.1"))
	f.Add([]byte(`{"mcpServers":{"a":{"command":"${A:-${B}}","args":["${","${}","${A:-"]}}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		specs, err := mcp.ReadConfig(b)
		if err != nil {
			if !errors.Is(err, stint.Invalid) {
				t.Errorf("got %v", err)
			}
			return
		}
		for _, s := range specs {
			srv, err := mcp.Open(t.Context(), s, mcp.Options{Lookup: func(name string) (string, bool) { return canary, len(name)%2 == 0 }})
			if err != nil {
				if !errors.Is(err, stint.Invalid) || strings.Contains(err.Error(), canary) {
					t.Errorf("got %v", err)
				}
				continue
			}
			srv.Close()
		}
	})
}

func TestPinIsJSON(t *testing.T) {
	var p mcp.Pin
	if err := json.Unmarshal([]byte(`{"server":"a","tools":{"x":{"schema":{"maximum":18446744073709551615},"hints":{}}}}`), &p); err != nil {
		t.Fatal(err)
	}
	if string(p.Tools["x"].Schema) != `{"maximum":18446744073709551615}` || p.Hash().IsZero() {
		t.Errorf("got %s", p.Tools["x"].Schema)
	}
}

// TestSecrets: what is taken out of outputs, and what is no secret.
func TestSecrets(t *testing.T) {
	vars := map[string]string{"MCP_TOKEN": "abcd", "TEAM": "core", "ID": "long-enough", "HOME": "/home/ann", "X": "in-an-env", "URLPART": "some.example"}
	s := mcp.Spec{Name: "a", Transport: mcp.HTTP, URL: "https://${URLPART}/${API_KEY:-k}", Headers: map[string]string{
		"Authorization": "Bearer ${MCP_TOKEN}", "X-Team": "${TEAM}", "X-Id": "${ID}", "X-Home-Auth": "${HOME}", "X-Api-Key": "written"}}
	got, err := mcp.Secrets(s, vars)
	if want := map[string]string{"MCP_TOKEN": "abcd", "ID": "long-enough", "X-Api-Key": "written"}; err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	s = mcp.Spec{Name: "a", Transport: mcp.Stdio, Command: "${HOME}/x", Args: []string{"--token=${MCP_TOKEN}"}, Env: map[string]string{"A": "${X}", "PASSWORD": "${TEAM}"}}
	got, err = mcp.Secrets(s, vars)
	if want := map[string]string{"MCP_TOKEN": "abcd", "TEAM": "core"}; err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
}
