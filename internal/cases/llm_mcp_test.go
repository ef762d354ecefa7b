package cases_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// indiscreet is a remote server with a tool that says what it was sent, in a result or in
// an error.
func indiscreet(t *testing.T) (url string, headers func() []http.Header) {
	t.Helper()
	got := make(chan http.Header, 100)
	s := sdk.NewServer(&sdk.Implementation{Name: "remote", Version: "1"}, nil)
	s.AddTool(&sdk.Tool{Name: "say", Description: "Says.", InputSchema: json.RawMessage(`{"type":"object"}`)},
		func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			text := "I was sent " + r.Extra.Header.Get("Authorization") + " by " + r.Extra.Header.Get("X-Team")
			if strings.Contains(string(r.Params.Arguments), "fail") {
				return nil, fmt.Errorf("it broke: %s", text)
			}
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: text}}}, nil
		})
	h := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, nil)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case got <- r.Header.Clone():
		default:
		}
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	return srv.URL, func() (all []http.Header) {
		for {
			select {
			case h := <-got:
				all = append(all, h)
			default:
				return all
			}
		}
	}
}

// mcpFile has entries as they are written for other programs: without a type, with a blank
// in a path, with an environment, with variables that need or need not be set.
func (s *site) mcpFile(url string) {
	s.t.Helper()
	exe := toolPath(s.t)
	type obj = map[string]any
	program := []string{"mcp", s.path("started")}
	b, err := json.MarshalIndent(obj{"mcpServers": obj{
		"docs":   obj{"command": exe, "args": program},
		"fs":     obj{"type": "stdio", "command": exe, "args": append(slices.Clone(program), "-y", "/srv/my data"), "env": obj{"DEBUG": "true"}},
		"remote": obj{"type": "http", "url": url, "headers": obj{"Authorization": "Bearer ${MCP_TOKEN}", "X-Team": "${TEAM:-core}"}},
	}}, "", "  ")
	if err != nil {
		s.t.Fatal(err)
	}
	s.write(".mcp.json", string(b))
}

// TestI05MCPConfiguration: a variable that is not set is named before anything is started;
// one that is set is sent to its server, and is nowhere else.
func TestI05MCPConfiguration(t *testing.T) {
	const secret = "tok-7f3a91c2d4e5b6"
	inFormats(t, func(t *testing.T, api string) {
		url, headers := indiscreet(t)
		s := llm(t, api, steps(t, `{"steps":[{"tools":[{"id":"c1","name":"fs__look","input":{}},{"id":"c2","name":"remote__say","input":{}},{"id":"c3","name":"remote__say","input":{"do":"fail"}}]},
			{"text":"finished"}]}`), agent{keys: "rules: {tainted-once: off}", more: "      - mcp: {file: .mcp.json, allow: [127.0.0.1]}\n"})
		s.mcpFile(url)

		u := s.start("run", "case", "-p", "Go.")
		u.ends(2)
		if talk := u.talk.String(); !strings.Contains(talk, "MCP_TOKEN") || !strings.Contains(talk, "remote") {
			t.Errorf("the error is %s", talk)
		}
		if _, err := os.Stat(s.path("started")); err == nil || len(headers()) > 0 {
			t.Error("a server was started before the error")
		}
		if all := s.all(); len(all) > 0 {
			t.Errorf("there is the session %+v", all)
		}
		s.requests(0)

		s.env = append(s.env, "MCP_TOKEN="+secret)
		u = s.start("run", "case", "-p", "Go.")
		u.ends(0)
		v := s.only()
		s.is(v, "completed", "finished")
		started, err := os.ReadFile(s.path("started"))
		if err != nil || !strings.Contains(string(started), `["-y" "/srv/my data"] DEBUG=true`) || !strings.Contains(string(started), `[] DEBUG=`+"\n") {
			t.Errorf("the servers were started so: %s %v", started, err)
		}
		for _, h := range headers() {
			if h.Get("Authorization") != "Bearer "+secret || h.Get("X-Team") != "core" {
				t.Errorf("the server got %v", h)
			}
		}
		last := s.requests(2)[1]
		got := results(t, api, last)
		if len(got) != 3 || got[0].Text != "looked" || !strings.Contains(got[1].Text, "I was sent") || !strings.Contains(got[1].Text, "by core") || !strings.Contains(got[2].Text, "it broke") {
			t.Errorf("the model got %+v", got)
		}
		for what, text := range map[string]string{
			"requests": last + string(s.srv.Requests()[0].Body), "output": u.out.String() + u.talk.String(),
			"log": s.must("logs", v.ID, "--content") + s.must("logs", v.ID, "--json", "--content"), "export": s.must("export", v.ID),
			"page": s.must("show", v.ID, "--json") + s.must("show", v.ID), "state": s.must("show", v.ID, "--state"), "agent": s.must("agent", "show", "case", "--json"),
		} {
			if strings.Contains(text, secret) {
				t.Errorf("the secret is in the %s", what)
			}
		}
		s.nowhere(secret)
		s.verified()
	})
}

// nowhere checks that no file below the site has a secret: the store, its log, what was
// accepted of servers.
func (s *site) nowhere(secret string) {
	s.t.Helper()
	files := 0
	err := filepath.WalkDir(s.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		if bytes.Contains(b, []byte(secret)) {
			s.t.Errorf("the secret is in %s", path)
		}
		files++
		return err
	})
	if err != nil || files < 3 {
		s.t.Errorf("%d files were looked at, %v", files, err)
	}
}
