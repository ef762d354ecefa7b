//go:build agents

package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/agent/cli"
	"github.com/stint-dev/stint/journal"
)

// These tests run the real CLIs, against a scripted model on the loopback. AGENTS names
// those to run; STINT_AGENTS_DIR is where scripts/test-agents.sh has installed them.

// real is a CLI with a home of its own.
type real struct {
	name  string
	model *scripted
	work  string
	spec  cli.Spec
	mark  string // is in the command line of the tool that runs
}

// eachAgent runs a test for every CLI that is asked for.
func eachAgent(t *testing.T, command func(work, mark string) string, test func(t *testing.T, c *real)) {
	t.Helper()
	names := strings.FieldsFunc(os.Getenv("AGENTS"), func(r rune) bool { return r == ',' || r == ' ' })
	if len(names) == 0 {
		t.Fatal("AGENTS names no CLI; scripts/test-agents.sh sets it")
	}
	for i, name := range names {
		t.Run(name, func(t *testing.T) {
			work := t.TempDir()
			mark := fmt.Sprintf("9%d%07d", i, os.Getpid())
			c := &real{name: name, work: work, mark: mark, model: newScripted(t, command(work, mark))}
			c.configure(t)
			test(t, c)
		})
	}
}

// configure writes the CLI's own configuration.
func (c *real) configure(t *testing.T) {
	t.Helper()
	home := t.TempDir()
	program := filepath.Join(os.Getenv("STINT_AGENTS_DIR"), c.name, "node_modules", ".bin", c.name)
	if _, err := os.Stat(program); err != nil {
		t.Fatal(err)
	}
	write := func(path, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(strings.ReplaceAll(text, "@URL@", c.model.server.URL)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c.spec = cli.Preset(cli.Protocol(c.name))
	c.spec.Dir, c.spec.Command = c.work, []string{program}
	c.spec.Env = map[string]string{"HOME": home}
	env := c.spec.Env
	switch c.spec.Protocol {
	case cli.Codex:
		write(filepath.Join(home, "config.toml"), `model = "scripted"
model_provider = "loop"
check_for_update_on_startup = false
[analytics]
enabled = false
[feedback]
enabled = false
[model_providers.loop]
name = "loop"
base_url = "@URL@/v1"
wire_api = "responses"
env_key = "LOOP_KEY"
`)
		env["CODEX_HOME"], env["LOOP_KEY"] = home, "x"
		c.spec.Command = append(c.spec.Command, "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox")
	case cli.OpenCode:
		write(filepath.Join(c.work, "opencode.json"), `{"autoupdate":false,"share":"disabled","model":"loop/scripted","small_model":"loop/scripted",
"permission":{"bash":"allow","edit":"allow"},"provider":{"loop":{"npm":"@ai-sdk/openai-compatible","name":"loop",
"options":{"baseURL":"@URL@/v1","apiKey":"x"},"models":{"scripted":{"name":"scripted","tool_call":true,"limit":{"context":100000,"output":4096}}}}}}`)
		for _, v := range []string{"CONFIG", "DATA", "STATE", "CACHE"} {
			env["XDG_"+v+"_HOME"] = filepath.Join(home, strings.ToLower(v))
		}
		env["OPENCODE_DISABLE_MODELS_FETCH"], env["OPENCODE_DISABLE_AUTOUPDATE"], env["OPENCODE_DISABLE_DEFAULT_PLUGINS"] = "1", "1", "1"
	case cli.Gemini:
		write(filepath.Join(home, ".gemini", "settings.json"), `{"security":{"auth":{"selectedType":"gemini-api-key"}},
"privacy":{"usageStatisticsEnabled":false},"telemetry":{"enabled":false},"general":{"disableAutoUpdate":true,"enableAutoUpdate":false}}`)
		env["GEMINI_API_KEY"], env["GOOGLE_GEMINI_BASE_URL"], env["NO_BROWSER"] = "x", c.model.server.URL, "1"
		c.spec.Command = append(c.spec.Command, "--skip-trust", "--yolo", "-m", "scripted")
	}
}

// tool is the name of the CLI's shell in the journal.
func (c *real) tool() string {
	return map[cli.Protocol]string{cli.Codex: "command_execution", cli.OpenCode: "bash", cli.Gemini: "run_shell_command"}[c.spec.Protocol]
}

func (c *real) effects(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(c.work, "effects"))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// survivors are the processes that have the mark in their command line.
func (c *real) survivors(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, f := range files {
		if b, err := os.ReadFile(f); err == nil && strings.Contains(string(b), c.mark) {
			out = append(out, f+" "+strings.ReplaceAll(string(b), "\x00", " "))
		}
	}
	return out
}

// A turn with one call, then another in the same session of the CLI.
func TestRealTurns(t *testing.T) {
	eachAgent(t, func(work, _ string) string { return "echo paid >> " + work + "/effects; cat " + work + "/effects" }, func(t *testing.T, c *real) {
		c.spec.Interactive = true
		r := newRig(t, c.spec, 1)
		s := r.run(t.Context(), "Pay the bill.")
		r.is(s, stint.Waiting)
		text := r.journal(s.ID)
		has(t, "the journal", text, "tool "+c.tool()+" once", `"output":"paid`, `"text":"All done.","last":true`)
		if s.Totals.Usage.Input == 0 || s.Totals.Usage.Output == 0 {
			t.Errorf("the session used %+v", s.Totals.Usage)
		}
		first := s.Totals.Usage
		r.send(s.ID, stint.Prompt, journal.Command{}, "Once more.")
		s = r.drive(t.Context(), s.ID)
		r.is(s, stint.Waiting)
		if got := c.effects(t); got != "paid\npaid\n" {
			t.Errorf("the effects are %q", got)
		}
		if got := s.Totals.Usage; got.Input != 2*first.Input || got.Output != 2*first.Output {
			t.Errorf("one turn used %+v, two %+v", first, got)
		}
		has(t, "the last question", c.model.last(), "Pay the bill.", "Once more.")
	})
}

// Two calls in one answer are two steps, each with its own result.
func TestRealTwoCalls(t *testing.T) {
	eachAgent(t, func(work, _ string) string { return "echo paid >> " + work + "/effects; sleep 0.3; echo ok" }, func(t *testing.T, c *real) {
		c.model.twice = true
		r := newRig(t, c.spec, 1)
		s := r.run(t.Context(), "Pay the bill.")
		r.is(s, stint.Completed)
		if n := r.steps(s.ID, stint.StepCompleted, c.tool()); n != 2 || c.effects(t) != "paid\npaid\n" {
			t.Errorf("%d results, and the effects are %q\n%s", n, c.effects(t), r.journal(s.ID))
		}
	})
}

// kill -9 of stint in the middle of a call: nothing survives, a person is asked where
// the CLI had told of the call, and the effect is there once.
func TestRealKill(t *testing.T) {
	command := func(work, mark string) string {
		return "echo paid >> " + work + "/effects; sleep " + mark
	}
	eachAgent(t, command, func(t *testing.T, c *real) {
		r, id := crash(t, c.spec, func(r *rig, id stint.ID) bool {
			if b, err := os.ReadFile(filepath.Join(c.work, "effects")); err != nil || len(b) == 0 {
				return false
			}
			return c.spec.Protocol == cli.OpenCode || r.steps(id, stint.StepRequested, c.tool()) == 1
		})
		eventually(t, "gone: all that the CLI started", func() bool { return len(c.survivors(t)) == 0 })
		s := r.drive(t.Context(), id)
		if c.spec.Protocol != cli.OpenCode { // it tells of a call when that has ended
			r.is(s, stint.Waiting)
			if s.Wait.For != stint.ForDoubt {
				t.Fatalf("it waits for %s\n%s", s.Wait.For, r.journal(id))
			}
			r.send(id, stint.Resolve, journal.Command{Step: &s.Wait.Step, Verdict: journal.Happened, Result: []byte(`"the bill is paid"`)}, "")
			s = r.drive(t.Context(), id)
		}
		r.is(s, stint.Completed)
		if got := c.effects(t); got != "paid\n" {
			t.Errorf("the effects are %q\n%s", got, r.journal(id))
		}
		has(t, "the last question", c.model.last(), "You were interrupted. Look at what you did last before you go on.")
		if c.spec.Protocol != cli.OpenCode {
			has(t, "the last question", c.model.last(), "did take place; do not repeat it", "the bill is paid")
		}
		if left := c.survivors(t); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	})
}

// A cancel in the middle of a call ends everything.
func TestRealCancel(t *testing.T) {
	command := func(work, mark string) string {
		return "echo paid >> " + work + "/effects; sleep " + mark
	}
	eachAgent(t, command, func(t *testing.T, c *real) {
		r := newRig(t, c.spec, 1)
		go func() {
			eventually(t, "in its call", func() bool {
				b, err := os.ReadFile(filepath.Join(c.work, "effects"))
				return err == nil && len(b) > 0
			})
			all, err := r.store.Sessions(t.Context(), stint.Filter{})
			if err != nil || len(all) != 1 {
				t.Error(len(all), err)
				return
			}
			r.send(all[0].Session.ID, stint.Kill, journal.Command{}, "")
		}()
		r.is(r.run(t.Context(), "Pay the bill."), stint.Canceled)
		if left := c.survivors(t); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	})
}

// A provider that refuses the key ends the session, with the way to log in.
func TestRealRefusal(t *testing.T) {
	eachAgent(t, func(string, string) string { return "true" }, func(t *testing.T, c *real) {
		c.model.refuses = 401
		r := newRig(t, c.spec, 3)
		s := r.run(t.Context(), "Pay the bill.")
		r.is(s, stint.Failed)
		has(t, "the reason", s.Reason, "Incorrect API key provided")
		if s.At.Attempt > 1 {
			t.Errorf("it took %d attempts", s.At.Attempt)
		}
	})
}
