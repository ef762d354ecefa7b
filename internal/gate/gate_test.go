package gate_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stint-dev/stint/internal/gate"
	"github.com/stint-dev/stint/internal/proc"
)

func TestMain(m *testing.M) {
	proc.MaybeGuard()
	os.Exit(m.Run())
}

func ask(t *testing.T, g func(context.Context) (bool, string, error)) (open bool, says, err string) {
	t.Helper()
	open, says, e := g(t.Context())
	if e != nil {
		err = e.Error()
	}
	return open, says, err
}

func TestCommand(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "new"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("MY_SECRET", "hidden")
	const soon = time.Minute
	for _, c := range []struct {
		name    string
		argv    []string
		timeout time.Duration
		open    bool
		says    string
		err     string
	}{
		{"yes", []string{"test", "-s", "new"}, soon, true, "", ""},
		{"no", []string{"test", "-s", "old"}, soon, false, "", ""},
		{"what it says", []string{"sh", "-c", "echo one; echo 3 issues; exit 1"}, soon, false, "3 issues", ""},
		{"it fails", []string{"sh", "-c", "echo no network >&2; exit 3"}, soon, false, "no network", "sh ended with 3: no network"},
		{"it is killed", []string{"sh", "-c", "kill -9 $$"}, soon, false, "", "sh was ended by SIGKILL"},
		{"it is not there", []string{"no-such-program"}, soon, false, "", "no-such-program"},
		{"it takes too long", []string{"sleep", "100"}, 200 * time.Millisecond, false, "", "its time of 200ms was up"},
		{"it gets no secrets", []string{"sh", "-c", "echo \"[$MY_SECRET]\""}, soon, true, "[]", ""},
		{"it says a lot", []string{"sh", "-c", "head -c 100000 /dev/zero | tr '\\0' x; echo; echo end"}, soon, true, "end", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			open, says, err := ask(t, gate.Command(c.argv, dir, c.timeout))
			if open != c.open || says != c.says || !strings.Contains(err, c.err) || (err == "") != (c.err == "") {
				t.Errorf("got %v, %q, %q", open, says, err)
			}
		})
	}
}

func TestURL(t *testing.T) {
	mux := http.NewServeMux()
	for path, code := range map[string]int{"/yes": 200, "/made": 201, "/nothing": 204, "/same": 304, "/gone": 404, "/broken": 500, "/who": 401} {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(code)
			if code != 204 && code != 304 {
				_, _ = w.Write([]byte("said\n"))
			}
		})
	}
	mux.HandleFunc("/never", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	srv := httptest.NewServer(mux)
	defer srv.Close()
	for _, c := range []struct {
		path string
		open bool
		says string
		err  string
	}{
		{"/yes", true, "said", ""}, {"/made", true, "said", ""}, {"/nothing", false, "", ""}, {"/same", false, "", ""}, {"/gone", false, "said", ""},
		{"/broken", false, "said", "it answers 500 Internal Server Error: said"}, {"/who", false, "said", "it answers 401"}, {"/never", false, "", "its time of 300ms was up"},
	} {
		timeout := time.Minute
		if c.path == "/never" {
			timeout = 300 * time.Millisecond
		}
		open, says, err := ask(t, gate.URL(srv.URL+c.path, true, timeout))
		if open != c.open || says != c.says || !strings.Contains(err, c.err) || (err == "") != (c.err == "") {
			t.Errorf("%s: got %v, %q, %q", c.path, open, says, err)
		}
	}
	if _, _, err := ask(t, gate.URL(srv.URL+"/yes", false, time.Minute)); !strings.Contains(err, "this machine") {
		t.Errorf("an address of this machine is asked: %q", err)
	}
	if _, _, err := ask(t, gate.URL("http://127.0.0.1:1/", true, time.Minute)); !strings.Contains(err, "refused") {
		t.Errorf("got %q", err)
	}
}
