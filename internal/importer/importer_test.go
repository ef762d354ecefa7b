package importer_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/config"
	"github.com/stint-dev/stint/internal/importer"
)

func plan(t *testing.T, lines ...string) *importer.Plan {
	t.Helper()
	p, err := importer.Crontab(strings.Join(lines, "\n"), importer.Options{Zone: "UTC", Home: "/home/ops"})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// only is the one job of a crontab.
func only(t *testing.T, lines ...string) importer.Job {
	t.Helper()
	p := plan(t, lines...)
	if len(p.Jobs) != 1 || len(p.NotTaken) > 0 {
		t.Fatalf("%q: %+v", lines, p)
	}
	return p.Jobs[0]
}

// A command is run as cron would run it: by itself where no shell is needed, else by the
// shell that SHELL names.
func TestCommands(t *testing.T) {
	for _, c := range []struct {
		lines   []string
		command []string
		shell   string
	}{
		{[]string{"0 6 * * * a 'b c'"}, []string{"a", "b c"}, ""},
		{[]string{"0 6 * * * a > b"}, []string{"sh", "-c", "a > b"}, "the line has >"},
		{[]string{"SHELL=/bin/bash", "0 6 * * * a b"}, []string{"a", "b"}, ""},
		{[]string{"SHELL=/bin/bash", "0 6 * * * a > b"}, []string{"/bin/bash", "-c", "a > b"}, "the line has >"},
		{[]string{"SHELL=/usr/bin/fish", "0 6 * * * a b"}, []string{"/usr/bin/fish", "-c", "a b"}, "SHELL is fish"},
		{[]string{"SHELL=/opt/\u202ex", "0 6 * * * a"}, []string{"/opt/\u202ex", "-c", "a"}, `SHELL is "\u202ex"`},
		{[]string{"SHELL=/usr/bin/python3", "0 6 * * * a > b"}, []string{"/usr/bin/python3", "-c", "a > b"}, "SHELL is python3"},
	} {
		if j := only(t, c.lines...); !slices.Equal(j.Command, c.command) || j.Shell != c.shell {
			t.Errorf("%q: %q, %q", c.lines, j.Command, j.Shell)
		}
	}
}

func TestWhatCronGivesACommand(t *testing.T) {
	j := only(t, "# the", "#   digest", "A=1", "PATH=/opt/bin:/bin", "MAILTO=", "HOME=/srv/", "USER=me", "RANDOM_DELAY=20", "# for all", "@Every 90m cat%x%y")
	want := map[string]string{"A": "1", "PATH": "/opt/bin:/bin", "HOME": "/srv/", "USER": "me"}
	if !maps.Equal(j.Env, want) || j.Dir != "/srv" || !slices.Equal(j.Pass, []string{"LOGNAME"}) {
		t.Errorf("env %q, dir %s, pass %q", j.Env, j.Dir, j.Pass)
	}
	if j.Prompt != "x\ny\n" || j.Every != "1h30m" || j.Cron != "" || j.Jitter != 20*time.Minute || j.Description != "for all" || j.Line != 10 {
		t.Errorf("%+v", j)
	}
	if p := plan(t, "RANDOM_DELAY=20", "*/15 * * * * a", "@every 10m b"); p.Jobs[0].Jitter != 0 || p.Jobs[1].Jitter != 0 || len(p.Notes) != 2 {
		t.Errorf("a delay that is longer than it takes to the next run: %+v", p)
	}
	if j = only(t, "CRON_TZ=Asia/Tokyo", "0 6 * * mon a"); j.Cron != "0 6 * * MON" || j.Zone != "Asia/Tokyo" || j.Dir != "/home/ops" {
		t.Errorf("%+v", j)
	}
	if long := only(t, "#"+strings.Repeat("word ", 90), "0 6 * * * a").Description; len([]rune(long)) != 200 || !strings.HasSuffix(long, "…") {
		t.Errorf("a description of %d characters", len([]rune(long)))
	}
}

// What is not as cron has it is told with the number of its line, once.
func TestNotes(t *testing.T) {
	p := plan(t, "MAILTO=me@example.org", "API_TOKEN=hunter2", "0 6 * * * a", "RANDOM_DELAY=soon", "CRON_TZ=UTC", "START_HOURS_RANGE=3-22", "0 7 * * * a",
		"@reboot b", "0 25 * * * c", "KEY=env:OTHER", "0 8 * * * d")
	notes := []string{"1 MAILTO is not taken over", "2 the value of API_TOKEN", "4 RANDOM_DELAY is not", "6 START_HOURS_RANGE"}
	notTaken := []string{`8 expression "@reboot"`, `9 hour "25"`, "11 the value of KEY"}
	for _, c := range []struct {
		got  []importer.Note
		want []string
	}{{p.Notes, notes}, {p.NotTaken, notTaken}} {
		if len(c.got) != len(c.want) {
			t.Fatalf("%+v, want %q", c.got, c.want)
		}
		for i, n := range c.got {
			number, text, _ := strings.Cut(c.want[i], " ")
			if string(rune('0'+n.Line%10)) != number[len(number)-1:] || !strings.HasPrefix(n.Text, text) {
				t.Errorf("line %d: %q, want %q", n.Line, n.Text, c.want[i])
			}
		}
	}
	if len(p.Jobs) != 2 || p.Jobs[0].Name != "a" || p.Jobs[1].Name != "a-2" || p.Jobs[0].Env["API_TOKEN"] != "env:API_TOKEN" || strings.Contains(p.Agents(), "hunter2") {
		t.Errorf("%+v\n%s", p.Jobs, p.Agents())
	}
	if got := p.Zoneless(); !slices.Equal(got, []int{3}) {
		t.Errorf("the zone of the lines %v is the one that was given", got)
	}
	if _, err := importer.Crontab("", importer.Options{Zone: "Nowhere"}); stint.CodeOf(err) != stint.Invalid {
		t.Errorf("a zone that is none: %v", err)
	}
	p, err := importer.Crontab("0 6 * * * a", importer.Options{Zone: "UTC"})
	if err != nil || len(p.Notes) != 1 || p.Notes[0].Hint != "add dir to the agent a" {
		t.Errorf("without a home: %+v, %v", p, err)
	}
}

// A key in a command is not written into a file that is read and shared.
func TestSecretInACommand(t *testing.T) {
	p := plan(t, "0 6 * * * a --key sk-abcdefghijklmnopqrstuvwx", "0 7 * * * b")
	if len(p.Jobs) != 1 || len(p.NotTaken) != 1 || p.NotTaken[0].Line != 1 || !strings.Contains(p.NotTaken[0].Text, "looks like a secret") {
		t.Errorf("%+v", p)
	}
	if j := only(t, "URL=https://example.com/?k=sk-abcdefghijklmnopqrstuvwx", "DB_PASSWORD=x", "MONKEY=y", "0 6 * * * a"); !maps.Equal(j.Env, map[string]string{"URL": "env:URL", "DB_PASSWORD": "env:DB_PASSWORD", "MONKEY": "y"}) {
		t.Errorf("%q", j.Env)
	}
	for _, input := range []string{" ", "sk-abcdefghijklmnopqrstuvwx", "\xff", strings.Repeat("x", 64<<10)} {
		p = plan(t, "0 6 * * * a%"+input)
		if len(p.Jobs) != 0 || len(p.NotTaken) != 1 || p.NotTaken[0].Line != 1 {
			t.Errorf("%+v", p)
		}
	}
}

func TestInsert(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"none":           {"store: sqlite:x\n", "store: sqlite:x\n\nagents:\n  b:\n    c: 1\n"},
		"no newline":     {"store: sqlite:x", "store: sqlite:x\n\nagents:\n  b:\n    c: 1\n"},
		"empty":          {"agents:   # none\nstore: x\n", "agents:   # none\n  b:\n    c: 1\nstore: x\n"},
		"at the end":     {"agents:\n  a:\n    c: 0\n", "agents:\n  a:\n    c: 0\n\n  b:\n    c: 1\n"},
		"in the middle":  {"agents:\n  a:\n    c: 0\n\n  # a: 1\n\n# hooks\nhooks:\n", "agents:\n  a:\n    c: 0\n\n  # a: 1\n\n  b:\n    c: 1\n\n# hooks\nhooks:\n"},
		"by four":        {"agents:\n    # a\n    a:\n        c: 0\n", "agents:\n    # a\n    a:\n        c: 0\n\n    b:\n      c: 1\n"},
		"another's name": {"store: x\nmy_agents:\n  a: 1\n", "store: x\nmy_agents:\n  a: 1\n\nagents:\n  b:\n    c: 1\n"},
	} {
		if got, err := importer.Insert(c.text, "agents", "  b:\n    c: 1\n"); err != nil || got != c.want {
			t.Errorf("%s: %v\n%q\nwant\n%q", name, err, got, c.want)
		}
	}
	for _, text := range []string{"agents: {a: {c: 0}}\n", "agents: &x\n  a: 1\n"} {
		if got, err := importer.Insert(text, "agents", "  b: 1\n"); stint.CodeOf(err) != stint.Invalid {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
}

// The agents of a crontab can be added to the stint.yaml that init writes, and what was
// added wrongly is seen.
func TestInsertIntoAFile(t *testing.T) {
	p := plan(t, "0 6 * * * a > b", `0 7 * * * c "d  e" 'f"\g' ä`, "# it's: a #comment", "0 8 * * * on 1 -2 true")
	old := config.Example()
	was, err := config.Parse("stint.yaml", []byte(old))
	if err != nil {
		t.Fatal(err)
	}
	text, err := importer.Insert(old, "agents", p.Agents())
	if err != nil {
		t.Fatal(err)
	}
	if text, err = importer.Insert(text, "schedules", p.Schedules()); err != nil {
		t.Fatal(err)
	}
	is, err := config.Parse("stint.yaml", []byte(text))
	if err != nil || p.Check(was, is) != nil {
		t.Fatalf("%v, %v", err, p.Check(was, is))
	}
	if clashes := p.Clashes(was); len(clashes) > 0 {
		t.Errorf("%q", clashes)
	}
	if clashes := p.Clashes(&config.File{Agents: map[string]config.Agent{"a": {}}, Schedules: map[string]config.Schedule{"on": {}, "x": {}}}); !slices.Equal(clashes, []string{"a", "on"}) {
		t.Errorf("%q", clashes)
	}
	for what, change := range map[string]func(string) string{
		"an agent that was there": func(s string) string { return strings.Replace(s, "effect: read ", "effect: once ", 1) },
		"a command":               func(s string) string { return strings.Replace(s, "a > b", "a > c", 1) },
		"a folder":                func(s string) string { return strings.Replace(s, "dir: /home/ops", "dir: /home/op", 1) },
		"a time":                  func(s string) string { return strings.Replace(s, "0 6 * * *", "0 5 * * *", 1) },
		"a policy":                func(s string) string { return strings.Replace(s, "overlap: allow", "overlap: skip", 1) },
		"one is missing":          func(string) string { return old },
	} {
		changed := change(text)
		is, err := config.Parse("stint.yaml", []byte(changed))
		if err != nil || changed == text {
			t.Fatalf("%s: %v", what, err)
		}
		if p.Check(was, is) == nil {
			t.Errorf("%s: it is not seen", what)
		}
	}
}

// Whatever the crontab, each job is a sound agent of a name of its own, and no line is
// lost or told twice.
func FuzzCrontab(f *testing.F) {
	f.Add("# c\nSHELL=/bin/bash\n0 6 * * * a > b\n@daily c 'd e'\n@reboot x\n0 7 * * * x%y")
	f.Add("A='\\u2028\n0 6 * * * \"\\x00\n* * * * * on\n*/5 * * * * 1 \\a")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := importer.Crontab(text, importer.Options{Zone: "UTC", Home: "/home/ops"})
		if err != nil {
			t.Fatal(err)
		}
		lines := map[int]bool{}
		for _, n := range p.NotTaken {
			lines[n.Line] = true
		}
		for i := range p.Jobs {
			if lines[p.Jobs[i].Line] {
				t.Fatalf("line %d is told twice", p.Jobs[i].Line)
			}
			lines[p.Jobs[i].Line] = true
		}
		if len(p.Jobs) == 0 {
			return
		}
		is, err := config.Parse("stint.yaml", []byte("agents:\n"+p.Agents()+"schedules:\n"+p.Schedules()))
		if err != nil || p.Check(&config.File{Concurrency: is.Concurrency}, is) != nil {
			t.Fatalf("%v\n%s%s", err, p.Agents(), p.Schedules())
		}
	})
}
