package cases_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestI03CrontabsInTheWild: a crontab as people have it, with SHELL and PATH, su, redirections,
// percent signs and comments, becomes schedules that a server takes and whose commands do
// what they did under cron (ADWilkinson/barbossa-dev and 99designs/awsmonitors have such;
// the faults are those of TestA11Crontab).
func TestI03CrontabsInTheWild(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.write("crontab", `# agents of the night
SHELL=/bin/sh
PATH=`+os.Getenv("PATH")+`

# twice an hour, and a line for the log
*/30 * * * * sh -c 'echo "patrol of $USER_OF_CRON" >> out/patrol.log 2>&1'
USER_OF_CRON=agent
0 9-17 * * MON-FRI sh -c "echo \"checks \$USER_OF_CRON\"" >> out/checks.log 2>&1
15 4 * * * printf '\%s' "100\% of $(date +\%Y)" > out/percent.log
30 4 * * 1 cat > out/stdin.log%first line%second line
0 0 * * * su - agent -c "cd /srv/agent && ./digest >> digest.log 2>&1"
@reboot echo never
61 * * * * echo never
`)
	if err := os.Mkdir(s.path("out"), 0o700); err != nil {
		t.Fatal(err)
	}
	u := s.start("schedule", "import", "crontab", "--json")
	plan := unmarshal[struct {
		NotTaken []struct{ Line int } `json:"not_taken"`
		Items    []struct {
			Name  string
			Agent struct{ Command []string }
		}
	}](t, u.ends(0))
	if len(plan.Items) != 5 || fmt.Sprint(plan.NotTaken) != "[{12} {13}]" {
		t.Fatalf("taken are %+v, not taken %+v\n%s", plan.Items, plan.NotTaken, u)
	}
	if su := plan.Items[4].Agent.Command; len(su) != 5 || su[4] != "cd /srv/agent && ./digest >> digest.log 2>&1" {
		t.Errorf("su has %q", su)
	}
	s.write("stint.yaml", s.must("schedule", "import", "crontab"))
	v := s.serves()
	for _, j := range plan.Items[:4] {
		v.orders("/v1/schedules/"+j.Name+"/fire", `{}`)
	}
	for name, want := range map[string]string{"patrol": "patrol of \n", "checks": "checks agent\n", "percent": "100% of 20", "stdin": "first line\nsecond line"} {
		var b []byte
		await(t, "log of "+name, func() bool {
			b, _ = os.ReadFile(s.path("out/" + name + ".log"))
			return len(b) >= len(want)
		})
		if !strings.HasPrefix(string(b), want) || name != "percent" && strings.TrimSuffix(string(b), "\n") != strings.TrimSuffix(want, "\n") {
			t.Errorf("%s: %q, want %q", name, b, want)
		}
	}
}

// gitHubBody is a payload as GitHub sends them, of so many commits: with templates of URLs,
// brackets and plus signs in addresses, nulls, and text that looks like a template of ours.
func gitHubBody(t *testing.T, commits int) string {
	t.Helper()
	const url = "https://api.example.invalid/users/dev"
	user := map[string]any{"login": "dev-bot[bot]", "email": "49699333+dev-bot[bot]@users.example.invalid", "name": nil, "gists_url": url + "/gists{/gist_id}",
		"starred_url": url + "/starred{/owner}{/repo}", "html_url": "https://example.invalid/apps/dev-bot?tab=a&b=<c>", "site_admin": false}
	list := make([]any, commits)
	for i := range list {
		list[i] = map[string]any{"id": strings.Repeat(fmt.Sprintf("%02x", i%256), 20), "author": user, "message": "Fix ${ body.sender.login } and {{ .Title }} of $HOME `id` $(id)\n\nCo-authored-by: Zoë <zoe+ci@example.invalid>", "added": []string{}, "pusher": nil}
	}
	b, err := json.Marshal(map[string]any{"action": "requested", "sender": user, "commits": list, "base_ref": nil, "repository": map[string]any{"full_name": "acme/demo", "id": 9007199254740993, "keys_url": "https://api.example.invalid/repos/acme/demo/keys{/key_id}"}})
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestI04GitHubPayloads: bodies as GitHub sends them are taken as they are, and what is in
// them goes into a prompt once: a template of a URL, or of ours, is not expanded, and no
// shell reads it (octokit/webhooks has 393 payloads, one of them of addresses with special
// characters).
func TestI04GitHubPayloads(t *testing.T) {
	t.Parallel()
	const input = `input: "${ body.sender.email } ${ body.sender.gists_url } ${ body.sender.starred_url } ${ body.repository.keys_url }\n${ body.commits[0].message }\n${ body.base_ref } ${ body.sender.name ?? 'nobody' } ${ body.repository.id } $${ body.action }"`
	v := hooked(t, "", "raw: {agent: keep, scheme: github, secret: env:HOOK_SECRET}",
		"read: {agent: keep, scheme: github, secret: env:HOOK_SECRET, "+input+", name: body.sender.login, labels: {who: '${ body.sender.email }', url: '${ body.sender.gists_url }'}}").serves()
	for i, commits := range []int{1, 16, 80} {
		body := gitHubBody(t, commits)
		id := fmt.Sprint("d-", i)
		if got := v.got(v.takes(202, "raw", body, gitHub(id, body)).Session); got != body {
			t.Errorf("of %d bytes the agent got %d, which differ", len(body), len(got))
		}
		d := v.takes(202, "read", body, gitHub(id, body))
		const url = "https://api.example.invalid/"
		want := "49699333+dev-bot[bot]@users.example.invalid " + url + "users/dev/gists{/gist_id} " + url + "users/dev/starred{/owner}{/repo} " + url + "repos/acme/demo/keys{/key_id}\n" +
			"Fix ${ body.sender.login } and {{ .Title }} of $HOME `id` $(id)\n\nCo-authored-by: Zoë <zoe+ci@example.invalid>\nnull nobody 9007199254740993 ${ body.action }"
		if got := v.got(d.Session); got != want {
			t.Errorf("the agent got\n%q, want\n%q", got, want)
		}
		s := unmarshal[struct {
			Name   string
			Labels map[string]string
		}](t, v.gets("/v1/sessions/"+d.Session))
		if s.Labels["who"] != "49699333+dev-bot[bot]@users.example.invalid" || s.Labels["url"] != url+"users/dev/gists{/gist_id}" || !strings.HasPrefix(s.Name, "dev-bot-bot") {
			t.Errorf("the session is %+v", s)
		}
	}
	body := posted(t, "github-emoji.json") // it has no member of a name that the prompt needs
	if a := v.sends("read", body, gitHub("d-9", body)); a.status != 422 || !strings.Contains(a.text, "input") {
		t.Errorf("a body that does not fit: %d %s", a.status, a.text)
	}
}
