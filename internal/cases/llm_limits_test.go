package cases_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stint-dev/stint/model/modeltest"
)

// documented is the figure at which a rule pauses, as docs/health.md says.
func documented(t *testing.T, rule string) int {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "docs", "health.md"))
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile(`(?m)^\| ` + rule + ` \|.*\| (\d+)[^|]* \|$`).FindSubmatch(b)
	if row == nil {
		t.Fatalf("docs/health.md has no row of %s", rule)
	}
	n, err := strconv.Atoi(string(row[1]))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestG01IdenticalCalls: a model that makes one call again and again is paused without any
// limit being set, at the figure that is documented (pi#9637: 220 calls, opencode#45442: 364).
func TestG01IdenticalCalls(t *testing.T) {
	inFormats(t, func(t *testing.T, api string) {
		s := llm(t, api, steps(t, `{"steps":[{"tools":[{"id":"r{n}","name":"echo","input":{"q":"same"}}]}],"after":"repeat_last"}`), agent{tools: []toolSpec{{name: "echo"}}})
		s.gives(6, "run", "case", "-p", "Go.")
		v := s.only()
		s.is(v, "waiting", "health: N01", "echo")
		limit := documented(t, "N01")
		if n := len(s.srv.Requests()); n > limit+1 {
			t.Errorf("%d requests were made, the limit is %d", n, limit)
		}
		if out := s.must("ps"); !strings.Contains(out, "health") {
			t.Errorf("the list has it so:\n%s", out)
		}
		// Whoever lets it go on is asked again after as many calls.
		s.gives(6, "resume", v.ID, "--run")
		s.is(s.only(), "waiting", "health: N01")
		if n := len(s.srv.Requests()); n > 2*limit+1 {
			t.Errorf("%d requests were made in two rounds of %d", n, limit)
		}
		s.verified()
	})
}

// TestG02Budget: a limit of tokens stops a session before the call that would pass it, and
// says so as what it is (agent-os#363, fullsend PR#6588).
func TestG02Budget(t *testing.T) {
	inFormats(t, func(t *testing.T, api string) {
		for word, status := range map[string]string{"wait": "waiting", "stop": "stopped"} {
			t.Run(word, func(t *testing.T) {
				t.Parallel()
				s := llm(t, api, steps(t, `{"steps":[{"tools":[{"id":"r{n}","name":"echo","input":{"q":1}}],"usage":{"input_tokens":40000,"output_tokens":1000}}],"after":"repeat_last"}`),
					agent{keys: "limits: {tokens: 100000}\non_limit: " + word, tools: []toolSpec{{name: "echo"}}})
				s.gives(-1, "run", "case", "-p", "Go.")
				v := s.only()
				if word == "wait" {
					s.is(v, status, "budget: ", "tokens")
				} else {
					s.is(v, status, "tokens")
				}
				if n := len(s.srv.Requests()); n > 3 || n < 2 {
					t.Errorf("%d requests were made", n)
				}
				if v.Totals.Tokens.Input != fmt.Sprint(40000*len(s.srv.Requests())) {
					t.Errorf("the tokens are %+v", v.Totals.Tokens)
				}
				if out := s.must("ps", "-a"); word == "wait" && !strings.Contains(out, "budget") || !strings.Contains(out, status) {
					t.Errorf("the list has it so:\n%s", out)
				}
			})
		}
	})
}

// TestG04UnknownTool: a call of a tool that is not there is answered with those that are,
// and a model that does not listen is paused (superplane#4123).
func TestG04UnknownTool(t *testing.T) {
	inFormats(t, func(t *testing.T, api string) {
		for name, form := range map[string]string{"the same": `{"n":0}`, "others": `{"n":%d}`} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				var sc modeltest.Scenario
				for n := range 20 {
					args := strings.ReplaceAll(form, "%d", strconv.Itoa(n))
					sc.Steps = append(sc.Steps, modeltest.Step{Tools: []modeltest.ToolCall{{ID: "u{n}", Name: "no_such_tool", ArgsRaw: &args}}})
				}
				s := llm(t, api, sc, agent{tools: []toolSpec{{name: "echo"}, {name: "effect"}}})
				s.gives(6, "run", "case", "-p", "Go.")
				s.is(s.only(), "waiting", "health: N0", "no_such_tool")
				if n, limit := len(s.srv.Requests()), documented(t, "N02"); n > limit+1 {
					t.Errorf("%d requests were made, the limit is %d", n, limit)
				}
				all := s.srv.Requests()
				for _, r := range results(t, api, string(all[len(all)-1].Body)) {
					if !strings.Contains(r.Text, "no_such_tool") || !strings.Contains(r.Text, "echo") || !strings.Contains(r.Text, "effect") {
						t.Errorf("the model got %q", r.Text)
					}
				}
				s.did()
			})
		}
	})
}
