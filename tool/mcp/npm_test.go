package mcp_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/npmtest"
	"github.com/stint-dev/stint/tool"
	"github.com/stint-dev/stint/tool/mcp"
)

func npmSpec(t *testing.T, name string, args ...string) mcp.Spec {
	t.Helper()
	return mcp.Spec{Name: name, Transport: mcp.Stdio, Command: "node", Args: append([]string{npmtest.Server(t, name)}, args...), Dir: t.TempDir(), Trust: true}
}

func npmSet(t *testing.T, s mcp.Spec) *tool.Set {
	t.Helper()
	var mu sync.Mutex
	var log []string
	srv, err := mcp.Open(t.Context(), s, mcp.Options{Log: func(_, line string) {
		mu.Lock()
		defer mu.Unlock()
		log = append(log, line)
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		srv.Close()
		if t.Failed() {
			t.Logf("%s wrote\n%s", s.Name, strings.Join(log, "\n"))
		}
	})
	tools, err := srv.Tools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	set, err := tool.NewSet(tools...)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func npmCall(t *testing.T, set *tool.Set, name, args string) tool.Output {
	t.Helper()
	one, checked, err := set.Check(name, json.RawMessage(args))
	if err != nil {
		t.Fatal(err)
	}
	out, err := one.Caller.Call(t.Context(), tool.Call{Args: checked, Key: "k3y"})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return out
}

func names(set *tool.Set, effect stint.Effect) []string {
	var out []string
	for _, one := range set.Tools() {
		if one.Class() == effect {
			out = append(out, one.Name)
		}
	}
	return out
}

// TestNPMFilesystem: real annotations decide the effects of a real server.
func TestNPMFilesystem(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	set := npmSet(t, npmSpec(t, "filesystem", dir))
	if set.Len() != 14 {
		t.Errorf("%d tools", set.Len())
	}
	for name, want := range map[string]stint.Effect{
		"filesystem__read_text_file": stint.Read, "filesystem__list_directory": stint.Read, "filesystem__write_file": stint.Idempotent,
		"filesystem__create_directory": stint.Idempotent, "filesystem__edit_file": stint.Once,
	} {
		if !slices.Contains(names(set, want), name) {
			t.Errorf("%s is not %s: %v", name, want, names(set, want))
		}
	}
	if out := npmCall(t, set, "filesystem__read_text_file", `{"path":"`+filepath.Join(dir, "a.txt")+`"}`); out.Error || out.Text != "hello" {
		t.Errorf("got %+v", out)
	}
	if out := npmCall(t, set, "filesystem__read_text_file", `{"path":"/etc/passwd"}`); !out.Error || !strings.Contains(out.Text, "denied") {
		t.Errorf("got %+v", out)
	}
	if out := npmCall(t, set, "filesystem__write_file", `{"path":"`+filepath.Join(dir, "b.txt")+`","content":"\u00e9 2512292042121000001"}`); out.Error {
		t.Errorf("got %+v", out)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "b.txt")); err != nil || string(b) != "é 2512292042121000001" {
		t.Errorf("the file holds %q, %v", b, err)
	}
	if _, _, err := set.Check("filesystem__write_file", json.RawMessage(`{"path":"x"}`)); !errors.Is(err, stint.Invalid) || !strings.Contains(err.Error(), "content") {
		t.Errorf("got %v", err)
	}
}

func TestNPMMemory(t *testing.T) {
	s := npmSpec(t, "memory")
	s.Env = map[string]string{"MEMORY_FILE_PATH": filepath.Join(s.Dir, "memory.jsonl")}
	set := npmSet(t, s)
	if set.Len() != 9 {
		t.Errorf("%d tools", set.Len())
	}
	if out := npmCall(t, set, "memory__create_entities", `{"entities":[{"name":"stint","entityType":"project","observations":["is durable"]}]}`); out.Error {
		t.Errorf("got %+v", out)
	}
	if out := npmCall(t, set, "memory__search_nodes", `{"query":"durable"}`); out.Error || !strings.Contains(out.Text, "is durable") || out.Data == nil {
		t.Errorf("got %+v", out)
	}
	if b, err := os.ReadFile(filepath.Join(s.Dir, "memory.jsonl")); err != nil || !strings.Contains(string(b), "is durable") {
		t.Errorf("the file holds %q, %v", b, err)
	}
}

func TestNPMEverything(t *testing.T) {
	s := npmSpec(t, "everything", "stdio")
	set := npmSet(t, s)
	for _, one := range set.Tools() {
		if !strings.HasPrefix(one.Name, "everything__") || one.Description == "" {
			t.Errorf("the tool %q: %q", one.Name, one.Description)
		}
	}
	if out := npmCall(t, set, "everything__echo", `{"message":"hi"}`); out.Error || !strings.Contains(out.Text, "hi") {
		t.Errorf("got %+v", out)
	}
	if out := npmCall(t, set, "everything__get-tiny-image", `{}`); out.Error || !strings.Contains(out.Text, "[image image/png, ") || len(out.Text) > 1000 {
		t.Errorf("got %+v", out)
	}
	if out := npmCall(t, set, "everything__get-structured-content", `{"location":"New York"}`); out.Error || out.Data == nil {
		t.Errorf("got %+v", out)
	}
}
