package api_test

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stint-dev/stint/internal/npmtest"
	"github.com/stint-dev/stint/tool"
)

// description writes /openapi.json into a file of its own.
func (r *room) description() (path string, doc map[string]any) {
	r.t.Helper()
	out := r.do(get("/openapi.json"))
	if out.status != http.StatusOK || out.header.Get("Content-Type") != "application/json" {
		r.t.Fatalf("%d %v", out.status, out.header)
	}
	path = filepath.Join(r.t.TempDir(), "openapi.json")
	if err := os.WriteFile(path, out.body, 0o600); err != nil {
		r.t.Fatal(err)
	}
	return path, out.doc
}

// Each route is described, and nothing else is.
func TestDescriptionHasEachRoute(t *testing.T) {
	t.Parallel()
	inRoom(t, func(t *testing.T, r *room) {
		_, doc := r.description()
		var want, got []string
		for _, route := range r.table {
			if route.Pattern != "/openapi.json" {
				want = append(want, strings.ToLower(route.Method)+" "+route.Pattern)
			}
		}
		for path, item := range doc["paths"].(map[string]any) {
			for method := range item.(map[string]any) {
				got = append(got, method+" "+path)
			}
		}
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(want, got) {
			t.Errorf("routes are\n%s\ndescribed are\n%s", strings.Join(want, "\n"), strings.Join(got, "\n"))
		}
		if doc["openapi"] != "3.1.0" {
			t.Errorf("it is of OpenAPI %v", doc["openapi"])
		}
	})
}

// The description is read by programs that others made: one that checks it, and one that
// makes types of it, which a compiler reads.
func TestDescriptionIsRead(t *testing.T) {
	t.Parallel()
	var path string
	inRoom(t, func(t *testing.T, r *room) {
		from, _ := r.description()
		b, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		r.t = t
		path = string(b)
	})
	dir := t.TempDir()
	file := filepath.Join(dir, "openapi.json")
	for name, text := range map[string]string{"openapi.json": path, "redocly.yaml": "extends: [recommended]\nrules:\n  no-server-example.com: off\n  operation-4xx-response: error\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := func(words ...string) (string, error) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), words[0], words[1:]...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "REDOCLY_TELEMETRY=off", "CI=true")
		out, err := cmd.CombinedOutput()
		return strings.Join(words, " ") + "\n" + string(out), err
	}
	lint := append(npmtest.OpenAPI(t, "redocly"), "lint", "--max-problems=20")
	types := filepath.Join(dir, "stint.d.ts")
	for _, words := range [][]string{append(lint, file), append(npmtest.OpenAPI(t, "openapi-typescript"), file, "-o", types), append(npmtest.OpenAPI(t, "tsc"), "--noEmit", "--strict", types)} {
		if out, err := run(words...); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	}
	broken := strings.Replace(path, `"#/components/schemas/Show"`, `"#/components/schemas/Shown"`, 1)
	if err := os.WriteFile(filepath.Join(dir, "broken.json"), []byte(broken), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := run(append(lint, "broken.json")...); err == nil || !strings.Contains(out, "Can't resolve $ref") {
		t.Errorf("a description that is broken passes: %s", out)
	}
	made, err := os.ReadFile(types)
	if err != nil || !strings.Contains(string(made), `"/v1/sessions/{id}/messages"`) || !strings.Contains(string(made), "listSessions") {
		t.Errorf("the types are not those of the API: %v\n%.1000s", err, made)
	}
}

// What is answered is what the description says.
func TestAnswersAreAsDescribed(t *testing.T) {
	t.Parallel()
	inRoom(t, func(t *testing.T, r *room) {
		_, doc := r.description()
		check := func(c call, pattern string) {
			t.Helper()
			out := r.do(c)
			op := doc["paths"].(map[string]any)[pattern].(map[string]any)[strings.ToLower(c.method)].(map[string]any)
			responses := op["responses"].(map[string]any)
			code, kind := "4XX", "application/problem+json"
			if out.status < 300 {
				code, kind = http.StatusText(out.status), "application/json"
				code = map[string]string{"OK": "200", "Created": "201"}[code]
			}
			response, ok := responses[code].(map[string]any)
			if !ok {
				t.Errorf("%s %s is answered with %d, which is not described", c.method, c.path, out.status)
				return
			}
			schema := response["content"].(map[string]any)[kind].(map[string]any)["schema"].(map[string]any)
			whole, err := json.Marshal(map[string]any{"$ref": schema["$ref"], "components": doc["components"]})
			if err != nil {
				t.Fatal(err)
			}
			s, err := tool.NewSchema(whole)
			if err != nil {
				t.Fatalf("%s: %v", pattern, err)
			}
			if err := s.Check(out.body); err != nil {
				t.Errorf("%s %s: %.300v\n%.500s", c.method, c.path, err, out.body)
			}
		}
		id := r.begin(`{"agent":"pay","labels":{"team":"a"},"limits":{"loops":"5"}}`)
		at := "/v1/sessions/" + id
		check(post("/v1/sessions", `{"agent":"chat"}`), "/v1/sessions")
		check(post("/v1/sessions", `{"agent":"nobody"}`), "/v1/sessions")
		for range 2 {
			for _, path := range []string{"", "/entries", "/result", "/plan"} {
				check(get(at+path), "/v1/sessions/{id}"+path)
			}
			for _, path := range []string{"/v1/sessions", "/v1/approvals", "/v1/agents", "/v1/tokens", "/healthz", "/readyz", "/healthz/scheduler"} {
				check(get(path), path)
			}
			if r.status(id) == "pending" {
				r.run(id)
			}
		}
		check(get("/v1/agents/chat"), "/v1/agents/{name}")
		check(post("/v1/tokens", `{"name":"x","role":"viewer"}`), "/v1/tokens")
		check(post("/v1/approvals/"+id+"/deny", ""), "/v1/approvals/{id}/deny")
		for _, verb := range []string{"resume", "stop", "restart", "kill"} {
			check(post(at+"/"+verb, ""), "/v1/sessions/{id}/"+verb)
		}
	})
}
