package cron_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/cron"
)

func read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestCrontabOfAUser(t *testing.T) {
	tab, err := cron.ReadCrontab(read(t, "crontab-user.txt"), cron.Options{Zone: "UTC"})
	if err != nil || len(tab.Problems) > 0 {
		t.Fatal(err, tab)
	}
	var want struct {
		Jobs []struct {
			Expr, Command string
			TZ            *string
		}
		Env map[string]string
	}
	if err := json.Unmarshal([]byte(read(t, "crontab-user.expected.json")), &want); err != nil {
		t.Fatal(err)
	}
	if len(tab.Jobs) != len(want.Jobs) || len(want.Jobs) != 5 || !maps.Equal(tab.Env, want.Env) {
		t.Fatalf("%d jobs, env %v", len(tab.Jobs), tab.Env)
	}
	for i, j := range tab.Jobs {
		w, zone, fires := want.Jobs[i], "", "UTC"
		if w.TZ != nil {
			zone, fires = *w.TZ, *w.TZ
		}
		if j.Expr != w.Expr || j.Command != w.Command || j.Zone != zone || j.Schedule.Zone().String() != fires || j.Stdin != "" {
			t.Errorf("line %d: %+v, want %+v", j.Line, j, w)
		}
	}
}

func TestCrontabLines(t *testing.T) {
	type job struct {
		line                                int
		expr, zone, command, stdin, comment string
	}
	for name, c := range map[string]struct {
		text string
		want []job
		env  map[string]string
	}{
		"nothing":           {"", nil, nil},
		"no newline at end": {"0 6 * * * a", []job{{1, "0 6 * * *", "", "a", "", ""}}, nil},
		"blanks":            {"\n  \t\n   0\t6 *  * *\t a  b \n", []job{{3, "0\t6 *  * *", "", "a  b ", "", ""}}, nil},
		"lines of Windows":  {"A=b\r\n0 6 * * * a\r\n", []job{{2, "0 6 * * *", "", "a", "", ""}}, map[string]string{"A": "b"}},
		"comments": {"# one\n\n# two\n#  three\n0 6 * * * a # not one\n0 7 * * * b\n  # four\n@daily c", []job{
			{5, "0 6 * * *", "", "a # not one", "", "two\nthree"}, {6, "0 7 * * *", "", "b", "", ""}, {8, "@daily", "", "c", "", "four"},
		}, nil},
		"standard input": {`0 6 * * * mail me%Hello,%%20\% off%`, []job{{1, "0 6 * * *", "", "mail me", "Hello,\n\n20% off\n\n", ""}}, nil},
		"empty input":    {`0 6 * * * cat%`, []job{{1, "0 6 * * *", "", "cat", "\n", ""}}, nil},
		"backslashes":    {`0 6 * * * printf '\\%\\n' a\%b\\`, []job{{1, "0 6 * * *", "", `printf '\%\\n' a%b\\`, "", ""}}, nil},
		"short forms":    {"@Hourly a\n@every\t90m b", []job{{1, "@Hourly", "", "a", "", ""}, {2, "@every\t90m", "", "b", "", ""}}, nil},
		"variables": {"A = b c \nB=\"  x  \"\n'C'='y # z'\nD=\nE=$A\nTZ=Europe/Paris\n0 6 * * * X=1 run A=2", []job{{7, "0 6 * * *", "", "X=1 run A=2", "", ""}},
			map[string]string{"A": "b c", "B": "  x  ", "C": "y # z", "D": "", "E": "$A", "TZ": "Europe/Paris"}},
		"zones": {"0 6 * * * a\nCRON_TZ=Asia/Tokyo\n0 6 * * * b\nCRON_TZ = \"Europe/Berlin\"\n0 6 * * * c\nCRON_TZ=\n0 6 * * * d", []job{
			{1, "0 6 * * *", "", "a", "", ""}, {3, "0 6 * * *", "Asia/Tokyo", "b", "", ""}, {5, "0 6 * * *", "Europe/Berlin", "c", "", ""}, {7, "0 6 * * *", "", "d", "", ""},
		}, nil},
	} {
		tab, err := cron.ReadCrontab(c.text, cron.Options{Zone: "America/Lima"})
		if err != nil || len(tab.Problems) > 0 {
			t.Errorf("%s: %v, %v", name, err, tab.Problems)
			continue
		}
		var got []job
		for _, j := range tab.Jobs {
			got = append(got, job{j.Line, j.Expr, j.Zone, j.Command, j.Stdin, j.Comment})
			if zone := j.Schedule.Zone().String(); zone != j.Zone && (j.Zone != "" || zone != "America/Lima") {
				t.Errorf("%s: line %d runs in %s", name, j.Line, zone)
			}
		}
		if !reflect.DeepEqual(got, c.want) || !maps.Equal(tab.Env, c.env) {
			t.Errorf("%s:\ngot  %+v %q\nwant %+v %q", name, got, tab.Env, c.want, c.env)
		}
	}
}

// A variable holds for the lines below it.
func TestCrontabEnvironment(t *testing.T) {
	tab, err := cron.ReadCrontab("0 1 * * * a\nA=1\n0 2 * * * b\nA=2\nB=3\n0 3 * * * c\n", cron.Options{Zone: "UTC"})
	if err != nil || len(tab.Jobs) != 3 {
		t.Fatal(err, tab)
	}
	for i, want := range []map[string]string{{}, {"A": "1"}, {"A": "2", "B": "3"}} {
		if !maps.Equal(tab.Jobs[i].Env, want) {
			t.Errorf("job %d has %v, want %v", i, tab.Jobs[i].Env, want)
		}
	}
}

// A line that sets a variable is told with its number, also where a later one sets it again.
func TestCrontabSettings(t *testing.T) {
	tab, err := cron.ReadCrontab("A=1\nCRON_TZ=UTC\n0 1 * * * a\nA = '2'\nB='open\n", cron.Options{Zone: "UTC"})
	if err != nil {
		t.Fatal(err)
	}
	want := []cron.Setting{{Line: 1, Name: "A", Value: "1"}, {Line: 2, Name: "CRON_TZ", Value: "UTC"}, {Line: 4, Name: "A", Value: "2"}}
	if !slices.Equal(tab.Settings, want) || tab.Env["A"] != "2" || len(tab.Problems) != 1 {
		t.Errorf("%+v, want %+v; problems %v", tab.Settings, want, tab.Problems)
	}
}

// A line that cannot be read is named, and keeps no other from being read. No command
// runs in a zone that its author did not mean.
func TestCrontabProblems(t *testing.T) {
	text := strings.Join([]string{
		"0 6 * * * good", "61 6 * * * a", "0 6 * * *", "@reboot a", "0 6 * * * root\x00", "A='b", "CRON_TZ=Nowhere", "0 6 * * * a", "CRON_TZ=UTC", "0 7 * * * good",
		"* * *", "0 6 * * * %text", "H 6 * * * a", "1A=b", "@every 0s a",
	}, "\n")
	tab, err := cron.ReadCrontab(text, cron.Options{Zone: "UTC"})
	if err != nil || len(tab.Jobs) != 2 || tab.Jobs[0].Line != 1 || tab.Jobs[1].Line != 10 {
		t.Fatal(err, tab)
	}
	want := []struct {
		line int
		says string
	}{
		{2, `minute "61"`}, {3, "command"}, {4, "@reboot"}, {5, "control character"}, {6, "not closed"}, {7, `zone "Nowhere"`}, {8, "CRON_TZ above"},
		{11, "3 fields instead of 5"}, {12, "command"}, {13, "random"}, {14, "one field instead of 5"}, {15, "less than a second"},
	}
	if len(tab.Problems) != len(want) {
		t.Fatalf("%d problems: %v", len(tab.Problems), tab.Problems)
	}
	for i, p := range tab.Problems {
		if p.Line != want[i].line || !strings.Contains(p.Error(), want[i].says) || stint.CodeOf(p) != stint.Invalid || p.Text != strings.Split(text, "\n")[p.Line-1] {
			t.Errorf("line %d: %v, want line %d: %s", p.Line, p, want[i].line, want[i].says)
		}
	}
	if _, err := cron.ReadCrontab(text, cron.Options{}); stint.CodeOf(err) != stint.Invalid {
		t.Errorf("without a zone: %v", err)
	}
}

// Whatever the text, no command is cut in silence: each line is a job, a problem, a
// variable, or nothing.
func FuzzCrontab(f *testing.F) {
	f.Add("# c\nA=b\n0 6 * * * a%b\\%c\nCRON_TZ=UTC\n@daily x\n@every 1h y")
	f.Add("=\n\"\n'=\n@\n%\n\\%\n* * * * * %")
	f.Fuzz(func(t *testing.T, text string) {
		tab, err := cron.ReadCrontab(text, cron.Options{Zone: "UTC"})
		if err != nil {
			t.Fatal(err)
		}
		lines, taken := strings.Split(text, "\n"), map[int]bool{}
		for _, j := range tab.Jobs {
			if j.Command == "" || j.Schedule == nil || taken[j.Line] {
				t.Fatalf("line %d: %+v", j.Line, j)
			}
			taken[j.Line] = true
			source := strings.TrimSuffix(lines[j.Line-1], "\r")
			if i := strings.Index(source, "%"); i < 0 && !strings.HasSuffix(source, j.Command) {
				t.Fatalf("line %d: %q became %q", j.Line, source, j.Command)
			}
		}
		for _, p := range tab.Problems {
			if p.Err == nil || taken[p.Line] {
				t.Fatalf("line %d: %v", p.Line, p)
			}
			taken[p.Line] = true
		}
	})
}
