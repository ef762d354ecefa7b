package replay_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/agent/acp"
	"github.com/stint-dev/stint/agent/cli"
	agenthttp "github.com/stint-dev/stint/agent/http"
)

// baker is an agent behind a URL. Each request has what was answered so far; a response
// ends where an answer is missing.
func baker(t *testing.T, change *strings.Replacer) stint.Agent {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", agenthttp.ContentType)
		say := func(format string, args ...any) {
			_, _ = io.WriteString(w, change.Replace(fmt.Sprintf(format, args...))+"\n")
		}
		in := bufio.NewScanner(r.Body)
		in.Scan()
		var hello struct {
			Loop  int
			State struct{ Baked int }
		}
		if err := json.Unmarshal(in.Bytes(), &hello); err != nil {
			t.Error(err)
		}
		answers := map[int64]string{}
		for in.Scan() {
			var a struct {
				Type string
				ID   int64
			}
			if err := json.Unmarshal(in.Bytes(), &a); err != nil {
				t.Error(err)
			}
			answers[a.ID] = a.Type
		}
		for id, step := range []string{"mix", "bake"} {
			say(`{"type":"step","id":%d,"name":"%s","kind":"tool","effect":"idempotent","input":{"loaf":%d}}`, id+1, step, hello.Loop)
			switch answers[int64(id+1)] {
			case "":
				return
			case "proceed":
				say(`{"type":"result","id":%d,"result":{"%s":true}}`, id+1, step)
			}
		}
		say(`{"type":"state","patch":{"baked":%d}}`, hello.State.Baked+1)
		if hello.Loop == 2 {
			say(`{"type":"end","outcome":"complete","reason":"all baked"}`)
			return
		}
		say(`{"type":"end","outcome":"continue"}`)
	}))
	t.Cleanup(srv.Close)
	key, err := agenthttp.ParseSecret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	if err != nil {
		t.Fatal(err)
	}
	a, err := agenthttp.New(agenthttp.Spec{URL: srv.URL, Secret: key})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close() })
	return a
}

func TestAnAgentBehindAURLThatWasChanged(t *testing.T) {
	rep := all(t, "http", baker(t, strings.NewReplacer(`"name":"bake"`, `"name":"roast"`)))
	if d := rep.Divergence; d == nil || d.Pos.String() != "1.2" || d.Offered.Name != "roast" {
		t.Errorf("it came to %s", marshal(t, rep))
	}
	rep = all(t, "http", baker(t, strings.NewReplacer(`"reason":"all baked"`, `"reason":"no flour"`)))
	if d := rep.Divergence; d == nil || d.Pos.String() != "2" || !strings.Contains(d.Text, "no flour") {
		t.Errorf("it came to %s", marshal(t, rep))
	}
}

// writer is a command-line agent. Only a recording starts it: what such an agent said is a
// step.
func writer(t *testing.T) stint.Agent {
	t.Helper()
	spec := cli.Preset(cli.Claude)
	spec.Command, spec.Interactive = []string{"/nowhere/claude"}, true
	if *record {
		dir, err := filepath.Abs(filepath.Join("..", "..", "agent", "cli", "testdata"))
		if err != nil {
			t.Fatal(err)
		}
		spec.Command, spec.Dir = []string{"/bin/sh", "-c", "cat >/dev/null; cat claude.jsonl"}, dir
	}
	a, err := cli.New(spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close() })
	return a
}

// peer is an agent of the Agent Client Protocol; only a recording starts it.
func peer(t *testing.T) stint.Agent {
	t.Helper()
	spec := acp.Spec{Command: []string{"/nowhere/python3"}, Interactive: true}
	if *record {
		dir, err := filepath.Abs(filepath.Join("testdata", "agents"))
		if err != nil {
			t.Fatal(err)
		}
		spec.Command, spec.Dir = []string{"python3", "acp.py"}, dir
	}
	a, err := acp.New(spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close() })
	return a
}
