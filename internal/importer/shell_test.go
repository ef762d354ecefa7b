package importer_test

import (
	"slices"
	"testing"

	"github.com/stint-dev/stint/internal/importer"
)

func TestSplit(t *testing.T) {
	for line, want := range map[string][]string{
		"a":                         {"a"},
		" a\t b  ":                  {"a", "b"},
		`a 'b  c' "d  e"`:           {"a", "b  c", "d  e"},
		`a b'c'"d"\ e`:              {"a", "bcd e"},
		`a '' ""`:                   {"a", "", ""},
		`a "b\"c\\d\e"`:             {"a", `b"c\d\e`},
		`a '\n' \n`:                 {"a", `\n`, "n"},
		`a --b=c,d +%F a=b x#y x~y`: {"a", "--b=c,d", "+%F", "a=b", "x#y", "x~y"},
		`'A=1' b`:                   {"A=1", "b"},
		`./run.sh -x`:               {"./run.sh", "-x"},
		`a 'b|c;$d'`:                {"a", "b|c;$d"},
		"test -f x":                 {"test", "-f", "x"},
	} {
		if words, why := importer.Split(line); why != "" || !slices.Equal(words, want) {
			t.Errorf("%q: %q, %q", line, words, why)
		}
	}
	for line, want := range map[string]string{
		"a | b": "|", "a & b": "&", "a;b": ";", "a > b": ">", "a < b": "<", "a 2>&1": ">", "a $B": "$", "a `b`": "`", `a "$B"`: "$", "a \"`b`\"": "`",
		"a *": "*", "a b?": "?", "a [b]": "[", "a ~": "~", "a ~/b": "~", "a # b": "#", "a {b,c}": "{", "(a)": "(", "! a": "!", "a =b": "=",
		"A=1 b": "A=", " A= b": "A=", "cd /srv": "cd", ". ./env": ".", "exec a": "exec", "echo a": "echo", "if a": "if", "[ -f a ]": "[",
		"a 'b": "'", `a "b`: `"`, `a \`: `\`, `''`: "no program",
	} {
		if words, why := importer.Split(line); why != want || words != nil {
			t.Errorf("%q: %q needs a shell for %q, want %q", line, words, why, want)
		}
	}
}

func TestNames(t *testing.T) {
	for command, want := range map[string]string{
		"agent-run triage >> /var/log/x 2>&1":  "agent-run-triage",
		"/opt/bin/backup.sh /data":             "backup",
		"python3 /opt/agents/Report.py weekly": "report-weekly",
		"sudo -n /usr/bin/certbot renew":       "certbot-renew",
		"cd /srv/app && ./run.sh":              "run",
		"A=1 B=2 job":                          "job",
		"python3 -u":                           "python3",
		"'/opt/my job' x":                      "my",
		"/opt/Übung":                           "bung",
		"$HOME/bin/x":                          "x",
		"(a)":                                  "a",
		"((( )))":                              "job",
		"true":                                 "true",
		"curl -s https://example.com":          "curl",
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
	} {
		if got := importer.NameOf(command); got != want {
			t.Errorf("%q is called %q, want %q", command, got, want)
		}
	}
}
