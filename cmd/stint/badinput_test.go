package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/store/sqlite"
)

// refusal is a command line that must be refused, and what must be said.
type refusal struct {
	code  int
	cause string // in the message
	hint  string // in the hint; every refusal has one
	args  []string
}

func refuse(code int, cause, hint string, args ...string) refusal {
	return refusal{code, cause, hint, args}
}

// contents is all that a store's tables hold, and which files lie in the folder.
func (d *desk) contents() string {
	d.t.Helper()
	var b strings.Builder
	var tables []string
	each := func(q string, fn func(cols []string, row []any)) {
		if err := d.store.Select(d.t.Context(), q, func(cols []string, row []any) error { fn(cols, row); return nil }); err != nil {
			d.t.Fatalf("%s: %v", q, err)
		}
	}
	each("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name", func(_ []string, row []any) { tables = append(tables, row[0].(string)) })
	for _, name := range tables {
		each("SELECT * FROM "+name, func(cols []string, row []any) { fmt.Fprintf(&b, "%s %q %q\n", name, cols, row) })
	}
	err := filepath.WalkDir(d.dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || strings.HasPrefix(e.Name(), "stint.db-") {
			return err
		}
		info, err := e.Info()
		fmt.Fprintln(&b, path, info.Mode(), map[bool]int64{true: 0, false: info.Size()}[e.IsDir() || e.Name() == "stint.db"])
		return err
	})
	if err != nil {
		d.t.Fatal(err)
	}
	return b.String()
}

// refuses runs command lines for people and for programs. Both times each must be
// refused as it says, with nothing on standard output, and all of them must leave
// no trace.
func (d *desk) refuses(all ...refusal) {
	d.t.Helper()
	before := d.contents()
	for _, r := range all {
		d.refused(r)
	}
	line := "one of these"
	if len(all) == 1 {
		line = "stint " + strings.Join(all[0].args, " ")
	}
	d.same(line, before)
}

func (d *desk) refused(r refusal) {
	d.t.Helper()
	line := "stint " + strings.Join(r.args, " ")
	if len(line) > 200 {
		line = line[:200] + "…"
	}
	code, out, talk, asJSON := d.both(r.args...)
	said, hint, _ := strings.Cut(talk, "\n  ")
	if code != r.code || out != "" || !strings.HasPrefix(talk, "stint: ") || !strings.Contains(said, r.cause) {
		d.t.Errorf("%s: exit status %d, want %d with %q\n%s%s", line, code, r.code, r.cause, out, talk)
	}
	if !strings.Contains(hint, r.hint) || strings.TrimSpace(hint) == "" {
		d.t.Errorf("%s: the hint is %q, want %q in it", line, hint, r.hint)
	}
	var e struct {
		Schema, Code, Error, Hint string
		Exit                      int
	}
	if err := json.Unmarshal([]byte(asJSON), &e); err != nil || strings.Count(asJSON, "\n") != 1 {
		d.t.Errorf("%s: as JSON, not one object on standard error (%v):\n%s", line, err, asJSON)
	} else if e.Schema != "stint.error/1" || e.Code == "" || e.Exit != code || code != r.code || !strings.Contains(e.Error, r.cause) || !strings.Contains(e.Hint, r.hint) || e.Hint == "" {
		d.t.Errorf("%s: exit status %d; as JSON: %+v", line, code, e)
	}
	if bad := driving(talk + asJSON); bad != "" {
		d.t.Errorf("%s: %s reaches standard error", line, bad)
	}
}

// both calls the program for people and for programs: one call that tells of its error
// twice, or two with STINT_LONG=1, which have to end alike.
func (d *desk) both(args ...string) (code int, out, talk, asJSON string) {
	d.t.Helper()
	var o, e, j buffer
	a := d.app(&o, &e)
	err := a.execute(d.t.Context(), args)
	code = a.fail(err)
	if long() {
		again := d.app(&o, &j).run(d.t.Context(), append([]string{"--json"}, args...))
		if again != code {
			d.t.Errorf("stint %.200q: exit status %d, and %d with --json", args, code, again)
		}
		return code, o.String(), e.String(), j.String()
	}
	a.json, a.err = true, &j
	a.fail(err)
	return code, o.String(), e.String(), j.String()
}

// long reports whether tests run at full size.
func long() bool { return os.Getenv("STINT_LONG") == "1" }

// same checks that the store and its folder are as they were.
func (d *desk) same(line, before string) {
	d.t.Helper()
	after := d.contents()
	if after == before {
		return
	}
	was := strings.Split(before, "\n")
	for _, l := range strings.Split(after, "\n") {
		if !slices.Contains(was, l) && len(l) > 300 {
			l = l[:300] + "…"
		}
		if !slices.Contains(was, l) {
			d.t.Errorf("%s: it was refused, and now there is\n%s", line, l)
		}
	}
}

// driving names the first character in text that a terminal could act on, or that
// is no character at all; "" if there is none. It knows nothing of the code that is
// to keep them out.
func driving(text string) string {
	for i, r := range text {
		switch {
		case r == '\n' || r == '\t':
		case r == utf8.RuneError && !strings.HasPrefix(text[i:], "\ufffd"):
			return fmt.Sprintf("the byte %#02x", text[i])
		case r < 0x20 || r >= 0x7f && r < 0xa0 || unicode.Is(unicode.Bidi_Control, r), r == 0x2028, r == 0x2029, r == 0x200b, r == 0xfeff:
			return fmt.Sprintf("%U", r)
		}
	}
	return ""
}

// busyDesk has sessions in the states that matter, and a stint.yaml.
func busyDesk(t *testing.T) *desk {
	t.Helper()
	d := newDesk(t)
	d.run("done-1", works)
	d.run("pay-1", doubts)
	d.run("bad-1", breaks)
	d.run("chat-1", sleeps)
	d.run("twin", sleeps)
	d.run("twin", sleeps)
	d.write("stint.yaml", "agents:\n  a: {kind: exec, command: [\"true\"]}\n")
	return d
}

// inside makes the process's folder the desk's, to which paths on a command line are
// relative; a test that runs beside others cannot.
func (d *desk) inside() *desk {
	d.t.Helper()
	d.t.Chdir(d.dir)
	return d
}

func (d *desk) write(name, text string) {
	d.t.Helper()
	if err := os.WriteFile(filepath.Join(d.dir, name), []byte(text), 0o600); err != nil {
		d.t.Fatal(err)
	}
}

func TestRefusedWords(t *testing.T) {
	d := busyDesk(t).inside()
	large(t, filepath.Join(d.dir, "large"), 50<<20)
	d.refuses([]refusal{
		refuse(exitInvalid, "unknown flag: --bogus", "help", "ps", "--bogus"),
		refuse(exitInvalid, "unknown shorthand flag", "help", "ps", "-Z"),
		refuse(exitInvalid, "needs an argument", "help", "ps", "--agent"),
		refuse(exitInvalid, `there is no command "nosuch"`, "stint db --help", "db", "nosuch"),
		refuse(exitInvalid, `there is no command "nosuch"`, "stint agent --help", "agent", "nosuch"),
		refuse(exitInvalid, "takes no arguments", "--help", "bench", "nosuch"),
		refuse(exitInvalid, "takes no arguments", "--help", "version", "1"),
		refuse(exitInvalid, "is none of", "--help", "completion", "tcsh"),
		refuse(exitNotFound, "there is no page", "stint explain", "explain", "nosuch"),
		refuse(exitNotFound, "there is no page", "stint explain", "explain", ""),
		refuse(exitInvalid, "give one agent", "--help", "run"),
		refuse(exitInvalid, "give one agent", "--help", "run", "a", "b"),
		refuse(exitInvalid, "give an agent, or --", "--help", "run", "--"),
		refuse(exitInvalid, "give an agent, or --", "--help", "run", "a", "--", "true"),
		refuse(exitInvalid, "--effect is for commands", "--help", "run", "a", "--effect", "once"),
		refuse(exitInvalid, "--effect is once", "help", "run", "--effect", "twice", "--", "true"),
		refuse(exitInvalid, "it is empty", "command", "run", "--", ""),
		refuse(exitInvalid, "takes one agent", "--help", "start"),
		refuse(exitNotFound, `has no agent "b"`, "did you mean a?", "start", "b"),
		refuse(exitNotFound, `has no agent "../../x"`, "its agents are a", "start", "../../x"),
		refuse(exitNotFound, `has no agent "-rf"`, "its agents are a", "start", "--", "-rf"),
		refuse(exitInvalid, "is not key=value", "help", "start", "a", "-l", "team"),
		refuse(exitInvalid, "is not key=value", "help", "start", "a", "-l", "=x"),
		refuse(exitInvalid, "is not key=value", "help", "start", "a", "-l", ""),
		refuse(exitInvalid, "a duration like", "help", "start", "a", "--wall", "-1s"),
		refuse(exitInvalid, "a number above zero", "help", "start", "a", "--loops", "-1"),
		refuse(exitInvalid, "a number above zero", "help", "start", "a", "--loops", "1e400"),
		refuse(exitInvalid, "a number above zero", "help", "start", "a", "--steps", "99999999999999999999"),
		refuse(exitInvalid, "a duration like", "help", "start", "a", "--wall", "9999999999h"),
		refuse(exitInvalid, "wait or stop", "help", "start", "a", "--on-limit", "panic"),
		refuse(exitInvalid, "exclude each other", "help", "start", "a", "-p", "x", "-f", "stint.yaml"),
		refuse(exitLimit, "longer than 33554432 bytes", "in a file", "start", "a", "-f", "large"),
	}...)
}

// exitLimit is what a value that is too large gives.
const exitLimit = exitWaits

// large makes a file of n bytes that takes no space.
func large(t *testing.T, path string, n int64) {
	t.Helper()
	f, err := os.Create(path)
	if err == nil {
		err = errors.Join(f.Truncate(n), f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestRefusedNames(t *testing.T) {
	t.Parallel()
	d := busyDesk(t)
	var all []refusal
	for _, name := range []string{"../../x", "/etc/passwd", "-rf", ".hidden", strings.Repeat("a", 300), strings.Repeat("é", 51), "a\u202eb", "a\nb", "a b", "%00", "\u200bx", "e\u0301", "a\x1b[2J", "\xff\xfe", "'; drop table sessions--", "<b>", "$(id)", "a:1", "a/0", "@last"} {
		all = append(all, refuse(exitInvalid, "cannot be a session's name", "1 to 100 letters, digits", "start", "a", "--name="+name))
	}
	d.refuses(all...)
	// What is a name is one, also where a file could not have it.
	for _, name := range []string{"CON", "0", "триаж", "名前", "a..b", strings.Repeat("a", 100)} {
		d.ok("start", "a", "--name", name)
		if got := d.ok("show", name, "--field", "name"); got != name+"\n" {
			t.Errorf("the session %q is called %q", name, got)
		}
	}
}

func TestRefusedAddresses(t *testing.T) {
	t.Parallel()
	d := busyDesk(t)
	var all []refusal
	for _, address := range []string{"nosuch", "0000", "zzzzzzzzzzzzzzzzzzzzzzzzzz", strings.Repeat("7", 26), "'; DROP TABLE sessions; --", "<script>", "$(id)", "%s%n", "a\u202eb", "a\x1b[2Jb", "\xff", "x81d\n", strings.Repeat("a", 5000), "*", "-1"} {
		verbs := []string{"show", "stop"}
		if len(all)%3 > 0 && !long() { // they look in one place
			verbs = verbs[:1]
		}
		if address == "nosuch" {
			verbs = []string{"show", "logs", "wait", "verify", "export", "pause", "resume", "interrupt", "stop", "kill", "restart", "limit"}
		}
		for _, verb := range verbs {
			all = append(all, refuse(exitNotFound, "there is no session", "stint ps -a", verb, "--", address))
		}
	}
	for _, address := range []string{"", "@", "@nobody", "a@soon", "done-1/x", "done-1:x", "done-1:1.2.3.4", "done-1/", "../../etc/passwd", "done-1:99999999999999999999", "done-1/0/0", ":1", "/0"} {
		all = append(all, refuse(exitInvalid, "", "", "show", "--", address))
	}
	for _, verb := range []string{"show", "logs", "wait", "export", "pause", "resume", "stop", "kill", "restart"} {
		all = append(all, refuse(exitInvalid, "may be any of 2 sessions", "use an id:", verb, "twin"))
	}
	all = append(all, refuse(exitInvalid, "may be any of 2 sessions", "use an id:", "stop", "chat-1", "twin")) // and chat-1 is not stopped
	all = append(all, refuse(exitNotFound, "there is no line 7", "", "show", "done-1/7"))
	all = append(all, refuse(exitNotFound, "no completed loop 99", "one of those", "show", "done-1", "--state", "99"))
	all = append(all, refuse(exitNotFound, "there is no member", "there are:", "show", "done-1", "--field", "status.\u202e"))
	d.refuses(all...)
}

func TestRefusedOrders(t *testing.T) {
	t.Parallel()
	d := busyDesk(t)
	d.refuses([]refusal{
		refuse(exitRefused, "the session has ended", "stint restart", "send", "done-1", "hello"),
		refuse(exitRefused, "the session has ended", "stint restart", "pause", "done-1"),
		refuse(exitRefused, "the session has ended", "stint restart", "stop", "done-1"),
		refuse(exitRefused, "the session has ended", "stint restart", "kill", "bad-1"),
		refuse(exitRefused, "the session has ended", "stint restart", "resume", "bad-1"),
		refuse(exitRefused, "the session has ended", "stint restart", "limit", "done-1", "--loops", "9"),
		refuse(exitInvalid, "the message is empty", "--help", "send", "chat-1", ""),
		refuse(exitInvalid, "a session and a text", "--help", "send", "chat-1"),
		refuse(exitInvalid, "a session and a text", "--help", "send", "chat-1", "x", "-f", "stint.yaml"),
		refuse(exitInvalid, "--from is a loop", "--help", "restart", "done-1", "--from", "-1"),
		refuse(exitInvalid, "invalid argument", "help", "restart", "done-1", "--from", "x"),
		refuse(exitNotFound, "no completed loop 99", "one of those", "restart", "done-1", "--from", "99"),
		refuse(exitNotFound, "no completed loop 99", "one of those", "restart", "done-1", "--from", "99", "--dry-run"),
		refuse(exitNotFound, "there is no line 7", "", "logs", "done-1", "--line", "7"),
		refuse(exitRefused, "the step in doubt is 1.1, not 1.2", "stint resolve", "resolve", "pay-1:1.2", "--happened"),
		refuse(exitRefused, "the step in doubt is 1.1, not 7.1", "stint resolve", "resolve", "pay-1:7.1", "--not"),
		refuse(exitInvalid, "give one of --happened", "--help", "resolve", "pay-1:1.1"),
		refuse(exitInvalid, "give one of --happened", "--help", "resolve", "pay-1:1.1", "--happened", "--not"),
		refuse(exitInvalid, "--result is JSON", "--help", "resolve", "pay-1:1.1", "--happened", "--result", "{"),
		refuse(exitInvalid, "--result is JSON", "--help", "resolve", "pay-1:1.1", "--not", "--result", "1"),
		refuse(exitInvalid, "--run takes one session", "help", "resume", "--run", "chat-1", "pay-1"),
		refuse(exitInvalid, "no limit changes; give --wall", "help", "limit", "chat-1"),
		refuse(exitInvalid, "no limit changes; give --wall", "help", "limit", "chat-1", "--wall", "none"),
		refuse(exitInvalid, `--wall "soon"`, "", "limit", "chat-1", "--wall", "soon"),
		refuse(exitInvalid, `--wall "0s"`, "", "limit", "chat-1", "--wall", "0s"),
		refuse(exitInvalid, `--idle "-1h"`, "", "limit", "chat-1", "--idle", "-1h"),
		refuse(exitInvalid, `--loops "0"`, "", "limit", "chat-1", "--loops", "0"),
		refuse(exitInvalid, `--loops "1e400"`, "", "limit", "chat-1", "--loops", "1e400"),
		refuse(exitInvalid, `--loops "+-5"`, "", "limit", "chat-1", "--loops", "+-5"),
		refuse(exitInvalid, `--steps "99999999999999999999"`, "", "limit", "chat-1", "--steps", "99999999999999999999"),
		refuse(exitInvalid, `--deadline "yesterday"`, "", "limit", "chat-1", "--deadline", "yesterday"),
		refuse(exitInvalid, `--deadline "1999-01-01"`, "", "limit", "chat-1", "--deadline", "1999-01-01"),
		refuse(exitInvalid, `--on-limit "explode"`, "", "limit", "chat-1", "--on-limit", "explode"),
	}...)
}

// A limit that is raised by more than fits must not come out below zero, which
// would be no limit, or one that is long used up.
func TestLimitOverflow(t *testing.T) {
	t.Parallel()
	d := busyDesk(t)
	var all []refusal
	d.ok("start", "a", "--name", "far", "--loops", "9223372036854775807", "--steps", "9223372036854775807", "--wall", "2562047h", "--idle", "2562047h")
	for flag, more := range map[string]string{"--loops": "+1", "--steps": "+9223372036854775807", "--wall": "+1h", "--idle": "+2562047h"} {
		all = append(all, refuse(exitInvalid, flag, "", "limit", "far", flag, more))
	}
	d.refuses(all...)
}

// What looks like a part of a query is a label's key, its value, or a name, and
// nothing else.
func TestQueriesInLabels(t *testing.T) {
	t.Parallel()
	d := busyDesk(t)
	for i, l := range []string{`k=' OR 1=1 --`, `k="; DROP TABLE sessions; --`, `a.b=1`, `$=1`, `a"b=1`, `[0]=1`, `a'b=1`, `%=1`, `k=a=b`, `\=1`} {
		name := fmt.Sprintf("labeled-%d", i)
		k, v, _ := strings.Cut(l, "=") // not by stint start, which takes no such key
		if _, err := d.e.Start(t.Context(), engine.Request{Agent: engine.Agent{Name: "a", Loop: stint.AgentFunc(works)}, Name: name, Labels: map[string]string{k: v}}); err != nil {
			t.Fatal(err)
		}
		if got := d.ok("ps", "-a", "-o", "name", "-l", l); got != name+"\n" {
			t.Errorf("with the label %s there is %q", l, got)
		}
	}
	for _, args := range [][]string{{"-l", `k=x' OR '1'='1`}, {"-l", `x' OR 1=1 --=1`}, {"-l", `k') OR 1=1 --=1`}, {"-l", "b=1"}, {"-l", "k=%"}, {"--agent", "' OR 1=1 --"}, {"--agent", "%"}, {"--agent", "a' UNION SELECT 1 --"}} {
		if got := d.ok(append([]string{"ps", "-a", "-o", "name"}, args...)...); got != "" {
			t.Errorf("stint ps %q prints %q", args, got)
		}
	}
}

func TestRefusedQueries(t *testing.T) {
	t.Parallel()
	d := busyDesk(t)
	var all []refusal
	for _, q := range []string{
		"delete from sessions", "update sessions set name = 'x'", "insert into names(text) values ('x')", "drop table journal", "create table x(y)", "create temp table x(y)",
		"attach 'x.db' as y", "detach main", "pragma user_version = 99", "pragma journal_mode = delete", "pragma writable_schema = 1", "vacuum", "vacuum into 'copy.db'", "reindex", "analyze",
		"begin immediate", "savepoint x", "alter table sessions add column x", "replace into meta(name, value) values ('store.id', 1)",
		"with x as (select 1) delete from sessions", "create view v as select 1", "explain delete from sessions",
		"select 1; select 2", "select 1; delete from sessions", "select 1;;", "selec", "select * from nothing", "select nothing", "", " ", ";", "-- nothing", "\x00", "select load_extension('x')",
		"select writefile('x', 'y')", "select 1 \x1b[2J",
	} {
		all = append(all, refuse(exitInvalid, "sql: ", "", "sql", "--", q))
	}
	all = append(all, refuse(exitInvalid, "--output is table, json or csv", "--help", "sql", "select 1", "-o", "xml"))
	for _, args := range []string{"ps x", "ps -o xml", "ps --sort size", "ps --status busy", "ps -l team", "ps -n -1", "ps --since soon", "ps --after 12", "ps -w=-1s", "ps -n 99999999999999999999",
		"logs", "logs a b", "logs done-1 -o xml", "logs done-1 -k shell", "logs done-1 -p fatal", "logs done-1 -g (", "logs done-1 --loop x", "logs done-1 --loop 99999999999999999999", "logs done-1 --step x.y",
		"logs done-1 -n -1", "logs done-1 -S soon", "logs done-1 --line -2", "logs done-1 --after -1", "wait done-1 --for loop=0", "wait done-1 --for peace", "show done-1 --state x", "show done-1 --state -1",
		"verify", "verify done-1 --all", "bench --concurrency 0", "bench --concurrency x", "bench --loops 0", "bench --effect twice", "bench --for -1s", "bench --grow -1", "completion"} {
		all = append(all, refuse(exitInvalid, "", "", strings.Fields(args)...))
	}
	d.refuses(all...)
}

// What is there already is left as it is, to the byte.
func TestRefusedFiles(t *testing.T) {
	d := busyDesk(t).inside()
	d.write("mine", "precious")
	d.ok("init", "fresh")
	if err := os.Symlink("nowhere", filepath.Join(d.dir, "link")); err != nil {
		t.Fatal(err)
	}
	d.refuses([]refusal{
		refuse(exitRefused, "is there already", "another name", "export", "done-1", "--out", "mine"),
		refuse(exitRefused, "is there already", "another name", "export", "done-1", "--out", "link"),
		refuse(exitRefused, "is there already", "another name", "export", "done-1", "--out", "."),
		refuse(exitRefused, "is there already", "another path", "db", "backup", "mine"),
		refuse(exitRefused, "is there already", "another path", "db", "backup", "link"),
		refuse(exitUnavailable, "no such file", "folder", "db", "backup", "none/x"),
		refuse(exitInvalid, "one file", "--help", "db", "backup"),
		refuse(exitRefused, "is there", "move it away", "db", "restore", "mine"),
		refuse(exitRefused, "is there already", "new path", "db", "salvage", "stint.db", "mine"),
		refuse(exitInvalid, "the damaged file and a new one", "--help", "db", "salvage", "mine"),
		refuse(exitUnavailable, "no such file", "folder", "db", "salvage", "none", "new"),
		refuse(exitInvalid, "give one folder", "--help", "init", "a", "b"),
		refuse(exitRefused, "is there already", "stint agent validate", "init", "fresh"),
		refuse(exitInvalid, "give one file", "--help", "agent", "validate", "a", "b"),
		refuse(exitNotFound, "no such file", "stint init", "agent", "validate", "none.yaml"),
		refuse(exitInvalid, "is a directory", "file", "agent", "validate", "."),
		refuse(exitNotFound, "no such file", "stint init", "start", "a", "--config", "none.yaml"),
	}...)
}

func TestRefusedStores(t *testing.T) {
	d := busyDesk(t).inside()
	var all []refusal
	d.write("text", strings.Repeat("this is no database\n", 20))
	for _, verb := range [][]string{{"ps"}, {"start", "a"}, {"verify", "--all"}, {"sql", "select 1"}, {"db", "size"}} {
		for _, addr := range []string{"postgres://localhost/x", "mysql:x", "sqlite", "sqlite:", "SQLITE:x", "file:x", "/tmp/x", "stint.db", "\u202e", "-"} {
			all = append(all, refuse(exitInvalid, "is no store that this program knows", "sqlite:PATH", append(verb, "--store="+addr)...))
		}
		all = append(all, refuse(exitUnavailable, "not a directory", "", append(verb, "--store=sqlite:text/x.db")...))
		all = append(all, refuse(exitUnavailable, "", "", append(verb, "--store=sqlite:/proc/none/x.db")...))
	}
	d.refuses(all...)
}

func TestRefusedConfig(t *testing.T) {
	const ok = `kind: exec, command: ["true"]`
	d := newDesk(t)
	t.Chdir(d.dir)
	before := d.contents()
	for text, want := range map[string]string{
		"agents:\n  a: {" + ok + ", comand: x}\n":              "there is no such key here",
		"agent:\n  a: {" + ok + "}\n":                          "there is no such key here",
		"agents:\n  a: {kind: exec, command: 5}\n":             "expected a list",
		"agents:\n  a: {kind: exec, command: [true]}\n":        "expected a text",
		"agents:\n  a: {" + ok + ", grace: 5}\n":               "expected a duration",
		"agents:\n  a: {" + ok + ", limits: {loops: 1e400}}\n": "expected a whole number",
		"agents:\n  a: {" + ok + ", limits: {cost: .inf}}\n":   "expected",
		"agents:\n  a: {" + ok + ", limits: [1]}\n":            "expected",
		"agents: [a]\n": "expected",
		"agents:\n  a: {" + ok + ", kind: exec}\n":                       "given twice",
		"agents:\n  a: {" + ok + "}\n  a: {" + ok + "}\n":                "given twice",
		`{"agents":{"a":{"kind":"exec","kind":"exec","command":["x"]}}}`: "given twice",
		"agents:\n\ta: {" + ok + "}\n":                                   "indented with a tab",
		"\t\t\n":                                                         "is empty",
		"":                                                               "is empty",
		"\xff\xfea":                                                      "UTF-8",
		"agents:\n  a: {" + ok + ", description: \"\xff\"}\n": "UTF-8",
		"agents:\n  a: {" + ok + ", description: \"\x00\"}\n": "control character",
		"agents:\n  ../../x: {" + ok + "}\n":                  "the name begins with",
		"agents:\n  \"\": {" + ok + "}\n":                     "the name is empty",
		"agents:\n  a: &x {" + ok + "}\n  b: *x\n":            "an anchor",
		"store: mysql:x\n":                                    "expected a store",
		"--- {}\n--- {}\n":                                    "",
		"a: b: c\n":                                           "",
		"[[[[[[":                                              "",
		strings.Repeat("[", 100_000):                          "",
		"# " + strings.Repeat("x", 2<<20):                     "larger than 1 MiB",
	} {
		d.write("stint.yaml", text)
		for _, args := range []string{"start a", "run a", "agent validate", "agent ls", "agent show a", "start a --config stint.yaml", "start a --json"} {
			code, out, talk := d.stint(strings.Fields(args)...)
			if at := strings.Index(talk, "stint.yaml:"); code != exitInvalid || out != "" || at < 0 || !strings.Contains(talk, want) || !strings.Contains(talk, "\n") || driving(talk) != "" {
				t.Errorf("%.60q: stint %s: exit status %d\n%s%s", text, args, code, out, talk)
			}
		}
	}
	if err := os.Remove("stint.yaml"); err != nil {
		t.Fatal(err)
	}
	d.same("what reads such a file", before)
}

// nasty has one of each kind of character that a terminal could act on, and bytes
// that are no characters. What is printed of it must have none of them.
const nasty = "n\x1b]0;pwned\x07\x1b[2J\x1b]52;c;ZXZpbA==\x07\x08\r\x7f\x00\u0085\u009b31m\x9b1m\xff\u202e\u2066\u061c\u200f\u2028\u2029\u200b\ufeffZ"

// jsonNasty is such characters where JSON can have them as they are.
const jsonNasty = `{"n":"\u001b]0;pwned\u0007` + "\x7f\u0085\u009b31m\u202e\u2066\u061c\u200f\u2028\u200b\ufeff" + `"}`

// verbs are all commands that stint has.
func verbs() (all []string) {
	for _, c := range (&app{}).commands() {
		all = append(all, c.Name())
		for _, sub := range c.Commands() {
			all = append(all, c.Name()+"\x00"+sub.Name())
		}
	}
	slices.Sort(all)
	return all
}

// FuzzCommandLine runs any arguments behind any command: it never panics, it ends
// with a documented status and never with that of a fault of its own, it says why
// it refused, and nothing that a terminal acts on is printed. Arguments are parted
// by NUL, which no argument can have.
func FuzzCommandLine(f *testing.F) {
	for _, line := range []string{"", "--help", "--json", "a", "done-1", "@last", "@bad", "pay-1:1.1\x00--not", "done-1/0:3\x00--json", "twin\x00--reason=\x1b[2J", "-a\x00-o\x00wide", "--all\x00--json", "select 1", "select * from v_entries\x00-o\x00csv",
		"a\x00-l\x00k=v\x00--name\x00x\x00-p\x00\xff\xfe\u202e", "a\x00--loops\x00-1", "done-1\x00--from\x001\x00--dry-run", "done-1\x00--from\x00-9223372036854775808", "chat-1\x00--wall\x00+1h", "chat-1\x00hello", "chat-1\x00-f\x00-", "done-1\x00--out\x00x",
		"stint.db\x00new.db", "new.db", "\x00\x00\x00", "-", "--", "--=", "-=", "--json=maybe", "--store\x00sqlite:x.db", "--config\x00none", "done-1\x00--field\x00loops.0.at", "done-1\x00--state\x003", "done-1\x00-g\x00(?i)x{1000}", "exit\x005", "\xff", "done-1\x00--for\x00loop=999",
		"done-1\x00-n\x009223372036854775807\x00--after\x009223372036854775807", "-n\x009223372036854775807\x00--after\x0001m8mdg0000000000000000000", "--since\x009223372036854775807ns", "done-1\x00-S\x0000:00\x00-U\x00now", "bash", "a\x00--deadline\x002562047h47m16.854775807s"} {
		step := 8
		if long() {
			step = 4
		}
		for i := len(line) % step; i < len(verbs()); i += step {
			f.Add(uint8(i), line)
		}
	}
	from := f.TempDir()
	fill(f, from)
	all := verbs()
	f.Fuzz(func(t *testing.T, verb uint8, line string) {
		args := strings.Split(all[int(verb)%len(all)], "\x00")
		if line != "" {
			args = append(args, strings.Split(line, "\x00")...)
		}
		if !harmless(args) {
			return
		}
		dir := t.TempDir()
		if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
			t.Fatal(err)
		}
		t.Chdir(dir)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var out, talk buffer
		env := map[string]string{"STINT_STORE": "sqlite:" + filepath.Join(dir, "stint.db")}
		a := &app{in: strings.NewReader("from standard input"), out: &out, err: &talk, getenv: func(k string) string { return env[k] }, getwd: func() (string, error) { return dir, nil }}
		begun := time.Now()
		code := a.run(ctx, args)
		switch code {
		case exitOK, exitInvalid, exitNotFound, exitDenied, exitRefused, exitWaits, exitNotOK, exitCorrupt, exitUnavailable, exitTimeout, exitInterrupted:
		default:
			t.Errorf("stint %q: exit status %d\n%s", args, code, talk.String())
		}
		if code != exitOK && out.String()+talk.String() == "" {
			t.Errorf("stint %q: exit status %d without a word", args, code)
		}
		named := slices.Contains([]string{"init", "db", "agent"}, args[0]) // these say the path that they were given
		if bad := driving(out.String()); bad != "" && !named && !slices.Contains(args, "--raw") {
			t.Errorf("stint %q: %s reaches standard output", args, bad)
		}
		if took := time.Since(begun); took > 20*time.Second {
			t.Errorf("stint %q took %v", args, took)
		}
	})
}

// harmless keeps the fuzzer in its folder, and from running programs of its own
// choice.
func harmless(args []string) bool {
	place := regexp.MustCompile(`^[a-z0-9-]*/[0-9]*(:[0-9.]*)?$`)
	for _, a := range args {
		if strings.Contains(a, "..") || strings.Contains(a, "/") && !place.MatchString(a) || strings.HasPrefix(a, "/") {
			return false
		}
	}
	return args[0] != "bench" && !(args[0] == "run" && slices.Contains(args, "--"))
}

// fill makes a store with some sessions, and a stint.yaml.
func fill(f *testing.F, dir string) {
	st, err := sqlite.Open(f.Context(), sqlite.Options{Path: filepath.Join(dir, "stint.db")})
	if err != nil {
		f.Fatal(err)
	}
	e, err := engine.New(f.Context(), st, engine.Options{})
	if err != nil {
		f.Fatal(err)
	}
	for name, fn := range map[string]stint.AgentFunc{"done-1": works, "pay-1": doubts, "bad-1": breaks, "chat-1": sleeps, "nasty": nastyAgent(func(stint.Loop) stint.Next { return stint.Next{End: &stint.End{Reason: nasty}} })} {
		if _, err := e.RunNew(f.Context(), engine.Request{Agent: engine.Agent{Name: "triage", Loop: fn}, Name: name, Input: []byte(nasty)}, func(engine.Created) {}); err != nil {
			f.Fatal(err)
		}
	}
	if err := errors.Join(e.Close(), st.Close(), os.RemoveAll(filepath.Join(dir, "stint.db.d")),
		os.WriteFile(filepath.Join(dir, "stint.yaml"), []byte("agents:\n  a: {kind: exec, command: [\"true\"], protocol: none}\n"), 0o600)); err != nil {
		f.Fatal(err)
	}
}
