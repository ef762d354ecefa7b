package main

import (
	"net/http"
	"os/exec"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// The examples that the help of the commands about a server has do what they say, each as
// it stands, where there is what they name.
func TestExamplesOfAServerRun(t *testing.T) {
	const id = "72d3162e-cc78-11e3-81ab-4c9367dc0958"
	t.Setenv("HOOK_SECRET", "It's a Secret to Everybody")
	d := newDesk(t)
	d.put("stint.yaml", hookYAML+`schedules:
  nightly: {agent: hello, cron: "0 3 * * *", zone: UTC}
notify:
  pager: {url: "https://stint.invalid/x", secret: env:HOOK_SECRET}
  desk: {exec: {command: ["true"]}}
`)
	d.put("issue.json", `{"action":"opened","issue":{"number":7,"title":"It"},"repository":{"full_name":"acme/api"}}`)
	d.put("old.crontab", "0 6 * * 1-5 ./digest\n")
	t.Chdir(d.dir)
	r, url := d.serves()
	if code, doc := deliver(t, url+"/hooks/issues", id, "issues", `{"action":"opened","issue":{"number":8,"title":"It"},"repository":{"full_name":"acme/api"}}`, "It's a Secret to Everybody"); code != http.StatusAccepted {
		t.Fatalf("%d %v", code, doc)
	}
	a := &app{}
	ran := 0
	var run func(cmd *cobra.Command)
	run = func(cmd *cobra.Command) {
		for _, sub := range cmd.Commands() {
			run(sub)
		}
		for line := range strings.Lines(cmd.Example) {
			words, is := strings.CutPrefix(strings.TrimSpace(line), "stint ")
			if !is || cmd.Name() == "revoke" || strings.HasPrefix(words, "notify resume") { // they name what is not there yet
				continue
			}
			said, err := exec.CommandContext(t.Context(), "sh", "-c", "printf '%s\\n' "+words).Output()
			if err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			ran++
			if code, out, talk := d.stint(strings.Split(strings.TrimSuffix(string(said), "\n"), "\n")...); code != exitOK {
				t.Errorf("stint %s: exit status %d\n%s%s", words, code, out, talk)
			}
		}
	}
	for _, cmd := range []*cobra.Command{a.scheduleCommand(), a.hookCommand(), a.notifyCommand(), a.tokenCommand(), a.applyCommand()} {
		run(cmd)
	}
	if ran < 25 {
		t.Errorf("%d examples were found: the test looks in the wrong place", ran)
	}
	http.DefaultClient.CloseIdleConnections()
	r.ends()
}
