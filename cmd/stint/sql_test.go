package main

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestSQL(t *testing.T) {
	d := newDesk(t)
	d.run("done-1", works)
	d.run("pay-1", doubts)
	if out := d.ok("sql", "select name, status, loops from v_sessions order by name"); out != "name    status     loops\ndone-1  completed      3\npay-1   waiting        0\n" {
		t.Errorf("the table is\n%s", out)
	}
	const odd = "select 1 as a, 9007199254740993 as b, 1.5 as c, null as d, x'00ff' as e, char(27) || '[2J' || char(8238) || '\"' as f, 9e999 as g"
	var v struct {
		Schema string
		Items  []map[string]any
	}
	out := d.ok("sql", odd, "--json")
	want := map[string]any{"a": 1.0, "b": "9007199254740993", "c": 1.5, "d": nil, "e": "AP8=", "f": "\x1b[2J\u202e\"", "g": "+Inf"}
	if err := json.Unmarshal([]byte(out), &v); err != nil || v.Schema != schemaSQL || len(v.Items) != 1 {
		t.Fatalf("as JSON: %v\n%s", err, out)
	}
	for k, w := range want {
		if got := v.Items[0][k]; got != w {
			t.Errorf("%s is %v, want %v", k, got, w)
		}
	}
	if csv := d.ok("sql", odd, "-o", "csv"); csv != "a,b,c,d,e,f,g\n1,9007199254740993,1.5,,x'00ff',\"\\x1b[2J\\u202e\"\"\",+Inf\n" {
		t.Errorf("as CSV:\n%s", csv)
	}
	for _, format := range []string{"table", "json", "csv"} {
		if text := d.ok("sql", odd, "-o", format); strings.ContainsAny(text, "\x1b\u202e") {
			t.Errorf("as %s it prints what a terminal acts on: %q", format, text)
		}
	}
	for format, want := range map[string]string{"table": "", "json": `{"schema":"stint.sql/1","items":[]}` + "\n", "csv": ""} {
		if out := d.ok("sql", "select name from v_sessions where name = 'nobody'", "-o", format); out != want {
			t.Errorf("no rows as %s: %q", format, out)
		}
	}
	if out := d.ok("sql", "select seq from v_entries limit 2", "--json"); strings.Count(out, "\n{") != 2 {
		t.Errorf("two rows:\n%s", out)
	}
	for _, q := range []string{"delete from sessions", "update sessions set name = 'x'", "select 1; select 2", "selec", "select * from nothing", "pragma journal_mode = delete", "attach 'x' as y"} {
		d.fails(exitInvalid, "stint:", "sql", q)
	}
	d.fails(exitInvalid, "--output is", "sql", "select 1", "-o", "xml")
	d.fails(exitInvalid, "takes one statement", "sql")
	if out := d.ok("ps", "-a", "-o", "name", "--sort", "name"); out != "done-1\npay-1\n" {
		t.Errorf("after all that the store has\n%s", out)
	}
}
