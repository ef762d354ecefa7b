package config_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/config"
)

// write makes a file with its folders.
func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestFind(t *testing.T) {
	root := t.TempDir()
	top := filepath.Join(root, "stint.yaml")
	write(t, top, "{}")
	inner := filepath.Join(root, "a", "b", "stint.yaml")
	write(t, inner, "{}")
	if err := os.MkdirAll(filepath.Join(root, "a", "b", "c", "stint.yaml"), 0o755); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]string{
		".": top, "a": top, "a/b": inner, "a/b/c": inner, "a/b/c/stint.yaml": inner, "a/missing/folder": top,
	} {
		if got, ok := config.Find(filepath.Join(root, dir)); !ok || got != want {
			t.Errorf("from %s: %q, %v, want %q", dir, got, ok, want)
		}
	}
	t.Chdir(filepath.Join(root, "a", "b", "c"))
	got, ok := config.Find(".")
	if info, err := os.Stat(got); !ok || !filepath.IsAbs(got) || err != nil || info.IsDir() {
		t.Errorf("from .: %q, %v, %v", got, ok, err)
	}
	if err := os.Remove(top); err != nil {
		t.Fatal(err)
	}
	if got, ok := config.Find(filepath.Join(root, "a")); ok && strings.HasPrefix(got, root) {
		t.Errorf("found %q, which is not above", got)
	}
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "stint.yaml")
	write(t, path, "store: sqlite:db/s.db\nagents:\n  a: {kind: exec, command: [a], dir: sub, env: {K: file:k}}\n")
	t.Chdir(dir)
	f, err := config.Load("stint.yaml")
	if err != nil {
		t.Fatal(err)
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	a := f.Agents["a"]
	for got, want := range map[string]string{
		f.Path:     filepath.Join(here, "stint.yaml"),
		f.Store:    "sqlite:" + filepath.Join(here, "db", "s.db"),
		a.Dir:      filepath.Join(here, "sub"),
		a.Env["K"]: "file:" + filepath.Join(here, "k"),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestLoadFails(t *testing.T) {
	dir := t.TempDir()
	_, err := config.Load(filepath.Join(dir, "stint.yaml"))
	var e *stint.Error
	if !errors.As(err, &e) || e.Code != stint.NotFound || !strings.Contains(e.Hint, "stint init") {
		t.Errorf("missing: got %v", err)
	}
	if _, err = config.Load(dir); stint.CodeOf(err) != stint.Invalid {
		t.Errorf("a folder: got %v", err)
	}
	path := filepath.Join(dir, "large.yaml")
	write(t, path, strings.Repeat("#\n", 1<<20))
	if _, err = config.Load(path); stint.CodeOf(err) != stint.Invalid || !strings.Contains(err.Error(), "larger than 1 MiB") {
		t.Errorf("a large file: got %v", err)
	}
	path = filepath.Join(dir, "bad.yaml")
	write(t, path, "agents:\n  a: {kind: exec}\n")
	if _, err = config.Load(path); err == nil || !strings.Contains(err.Error(), path+":2:3: agents.a: ") {
		t.Errorf("a bad file: got %v", err)
	}
}

// The file's bound is in bytes and inclusive.
func TestSizeBound(t *testing.T) {
	text := "agents: {a: {kind: exec, command: [a]}}\n"
	text += strings.Repeat("#", 1<<20-len(text))
	if _, err := config.Parse("stint.yaml", []byte(text)); err != nil {
		t.Errorf("1 MiB: %v", err)
	}
	if _, err := config.Parse("stint.yaml", []byte(text+"#")); err == nil {
		t.Error("a byte more was taken")
	}
}

func TestNames(t *testing.T) {
	for _, good := range []string{"a", "0", "triage", "nightly-2.1_x", strings.Repeat("a", 64), "a..b", "a-"} {
		if why := config.BadName(good); why != "" {
			t.Errorf("%q %s", good, why)
		}
	}
	for bad, want := range map[string]string{
		"":                       "is empty",
		"../../x":                "begins with '.'",
		"-rf":                    "begins with '-'",
		"_x":                     "begins with '_'",
		"a b":                    "has ' ' in it",
		"a/b":                    "has '/' in it",
		"a\\b":                   `has '\\' in it`,
		"a\nb":                   `has '\n' in it`,
		"a\x00":                  `has '\x00' in it`,
		"Triage":                 "has capital letters",
		"tri\u0430ge":            "has '\\u0430' in it",
		"\u0430":                 "has '\\u0430' in it",
		"a\xff":                  "has '\\ufffd' in it",
		strings.Repeat("a", 300): "has 300 characters",
	} {
		if why := config.BadName(bad); !strings.HasPrefix(why, want) {
			t.Errorf("%.20q %s, want that it %s", bad, why, want)
		}
	}
}

func TestAgentByName(t *testing.T) {
	f, err := config.Parse("stint.yaml", []byte("agents:\n  triage: {kind: exec, command: [a]}\n  nightly: {kind: exec, command: [a]}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if a, err := f.Agent("triage"); err != nil || a.Name != "triage" {
		t.Errorf("got %v, %v", a, err)
	}
	for name, hint := range map[string]string{"traige": "did you mean triage?", "x": "its agents are nightly, triage"} {
		_, err := f.Agent(name)
		var e *stint.Error
		if !errors.As(err, &e) || e.Code != stint.NotFound || e.Hint != hint {
			t.Errorf("%s: got %v with hint %q", name, err, e.Hint)
		}
	}
}

func TestParseDuration(t *testing.T) {
	for s, want := range map[string]time.Duration{
		"1h": time.Hour, "90s": 90 * time.Second, "2d": 48 * time.Hour, "1d12h": 36 * time.Hour, "1.5h": 90 * time.Minute, "0.5d": 12 * time.Hour,
		"1h30m": 90 * time.Minute, "500ms": 500 * time.Millisecond, "1ns": 1, "3650d": 3650 * 24 * time.Hour, "87600h": 3650 * 24 * time.Hour, "1µs": time.Microsecond,
	} {
		if got, why := config.ParseDuration(s); got != want || why != "" {
			t.Errorf("%q: got %v, %q", s, got, why)
		}
	}
	for s, want := range map[string]string{
		"": "no unit", "1": "no unit", "h": "no unit", "-1h": "no unit", "+1h": "no unit", "1h ": "no unit", " 1h": "no unit", "1 h": "no unit", ".5h": "no unit",
		"1.h": "no unit", "1e3s": "units are", "1y": "units are", "1w": "units are", "1D": "units are", "1h30": "no unit", "0s": "not more than zero", "0d": "not more than zero",
		"0.1ns": "not more than zero", "3651d": "more than ten years", "87600h1ns": "more than ten years", "1d87600h": "more than ten years",
		"99999999999999999999h": "more than ten years", "9999999999d": "more than ten years", "none": "no unit", "1h1١m": "no unit",
	} {
		if got, why := config.ParseDuration(s); !strings.Contains(why, want) || got != 0 {
			t.Errorf("%q: got %v, %q, want %q", s, got, why, want)
		}
	}
}

func TestParseSize(t *testing.T) {
	for s, want := range map[string]int64{
		"1": 1, "1024": 1024, "512KiB": 512 << 10, "1MiB": 1 << 20, "10MB": 10e6, "1kB": 1000, "1KB": 1000, "5B": 5, "1GiB": 1 << 30, "1GB": 1e9,
	} {
		if got, why := config.ParseSize(s); got != want || why != "" {
			t.Errorf("%q: got %v, %q", s, got, why)
		}
	}
	for s, want := range map[string]string{
		"": "no number", "MiB": "no number", "-1": "no number", "1 MiB": "units are", "1M": "units are", "1mb": "units are", "1.5MiB": "units are", "0": "not more than zero",
		"2GiB": "more than 1GiB", "1073741825": "more than 1GiB", "99999999999999999999": "more than 1GiB", "1TiB": "units are",
	} {
		if got, why := config.ParseSize(s); !strings.Contains(why, want) || got != 0 {
			t.Errorf("%q: got %v, %q, want %q", s, got, why, want)
		}
	}
}

// What is written for people can be read back.
func TestFormats(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		unit := rapid.SampledFrom([]time.Duration{1, time.Millisecond, time.Second, time.Minute, time.Hour, 24 * time.Hour}).Draw(t, "unit")
		d := unit * time.Duration(rapid.Int64Range(1, int64(3650*24*time.Hour/unit)).Draw(t, "n"))
		if got, why := config.ParseDuration(config.FormatDuration(d)); got != d {
			t.Fatalf("%v is written %q and read %v, %s", d, config.FormatDuration(d), got, why)
		}
		size := rapid.Int64Range(1, 1<<30).Draw(t, "size")
		if got, why := config.ParseSize(config.FormatSize(size)); got != size {
			t.Fatalf("%d is written %q and read %d, %s", size, config.FormatSize(size), got, why)
		}
	})
	for d, want := range map[time.Duration]string{time.Hour: "1h", 90 * time.Minute: "1h30m", 90 * time.Second: "1m30s", 48 * time.Hour: "48h",
		time.Hour + time.Second: "1h0m1s", 10 * time.Minute: "10m", 10 * time.Second: "10s", 20 * time.Hour: "20h", 1500 * time.Millisecond: "1.5s"} {
		if got := config.FormatDuration(d); got != want {
			t.Errorf("%d is written %q, want %q", d, got, want)
		}
	}
}

// The list that a message suggests for a command is read as that command.
func TestSuggestedCommand(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.OneOf(
			rapid.String(),
			rapid.StringMatching(`[a-z./-]{1,8}( [a-z0-9=:,_./-]{1,8}){0,4}`),
			rapid.SampledFrom([]string{"true", "null 5 1e3 .inf -", "--- ... -1 -.5", "a | b", "yes no ~ off", "0x1F 0o7 1_000", "2027-01-31"}),
		).Draw(t, "command")
		if strings.ContainsRune(s, 0) {
			return
		}
		f, err := config.Parse("stint.yaml", []byte("agents: {a: {kind: exec, command: "+config.AsList(s)+"}}"))
		if err != nil {
			t.Fatalf("%q is suggested as %s: %v", s, config.AsList(s), err)
		}
		got := f.Agents["a"].Command
		if len(got) == 3 && got[0] == "sh" && got[1] == "-c" && got[2] == s {
			return
		}
		if strings.Join(got, " ") != strings.Join(strings.Fields(s), " ") {
			t.Fatalf("%q is suggested as %s, which is %q", s, config.AsList(s), got)
		}
	})
}

func TestNearest(t *testing.T) {
	words := []string{"command", "concurrency", "dir", "done", "env", "pass", "wall"}
	for s, want := range map[string]string{
		"comand": "command", "commnad": "command", "Command": "command", "concurency": "concurrency", "wal": "wall", "evn": "env", "don": "done",
		"x": "", "": "", "model": "", "zebra": "", strings.Repeat("command", 50): "",
	} {
		if got := config.Nearest(s, words); got != want {
			t.Errorf("%.20q: got %q, want %q", s, got, want)
		}
	}
}

func TestLimits(t *testing.T) {
	created := time.Date(2026, 11, 29, 12, 0, 0, 1999, time.FixedZone("", 3600))
	at := time.Date(2027, 1, 31, 17, 0, 0, 0, time.UTC)
	b := config.Bounds{Wall: time.Hour, Idle: time.Minute, Loops: 5, Steps: 6, Tokens: 7, Cost: 8, Stop: true}
	want := stint.Limits{Wall: time.Hour, Idle: time.Minute, Loops: 5, Steps: 6, Tokens: 7, Cost: 8, Stop: true}

	a := config.Agent{Bounds: b}
	if got := a.Limits(created); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	a.Bounds.DeadlineAt, want.Deadline = at, at
	if got := a.Limits(created); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	a.Bounds.DeadlineAt, a.Bounds.DeadlineIn = time.Time{}, 36*time.Hour
	want.Deadline = time.Date(2026, 11, 30, 23, 0, 0, 1000, time.UTC)
	if got := a.Limits(created); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// An agent with a model has a limit of money unless it says otherwise, and it is told
// apart from one that somebody gave: only that one refuses a model without a price.
func TestDefaultCost(t *testing.T) {
	of := func(kind, limits string) config.Agent {
		t.Helper()
		f, err := config.Parse("stint.yaml", []byte("agents: {a: {kind: "+kind+limits+"}}"))
		if err != nil {
			t.Fatal(err)
		}
		return f.Agents["a"]
	}
	const llm = "llm, model: openai/gpt-4o"
	for _, c := range []struct {
		kind, limits string
		cost         stint.Money
		byDefault    bool
		shown        string
	}{
		{llm, "", 5e9, true, "5.00 by default"},
		{llm, ", limits: {loops: 3}", 5e9, true, "5.00 by default"},
		{llm, ", limits: {cost: 5}", 5e9, false, "5.00"},
		{llm, ", limits: {cost: none}", 0, false, "none"},
		{"exec, command: [x]", "", 0, false, "none"},
		{"cli, protocol: codex", "", 0, false, "none"},
		{"http, url: \"https://example.com\"", "", 0, false, "none"},
	} {
		a := of(c.kind, c.limits)
		if b := a.Bounds; b.Cost != c.cost || b.CostDefault != c.byDefault || a.Limits(time.Now()).Cost != c.cost {
			t.Errorf("%s%s: %+v", c.kind, c.limits, b)
		}
		if i := slices.IndexFunc(a.Members(), func(m config.Member) bool { return m.Name == "limits.cost" }); a.Members()[i].Value != c.shown {
			t.Errorf("%s%s is shown as %q", c.kind, c.limits, a.Members()[i].Value)
		}
	}
	if c := config.Diff(of(llm, ""), of(llm, ", limits: {cost: 5}")); len(c) != 1 || c[0].From != "5.00 by default" || c[0].To != "5.00" {
		t.Errorf("they differ in %v", c)
	}
	p, err := config.Prompt(nil, t.TempDir(), "openai/gpt-4o", "", nil)
	if err != nil || p.Bounds.Cost != config.DefaultCost || !p.Bounds.CostDefault {
		t.Errorf("a prompt has %+v, %v", p.Bounds, err)
	}
}

// Labels are held to one rule, whether they stand in the file or on a command line; and
// money is read from a number as well as from a text.
func TestLabelsAndMoney(t *testing.T) {
	parsed := func(line string) error {
		_, err := config.Parse("stint.yaml", []byte("agents:\n  a:\n    kind: exec\n    command: [a]\n    "+line+"\n"))
		return err
	}
	long := strings.Repeat("k", 63)
	for _, c := range []struct {
		key, text string
		good      bool
	}{
		{"team", "platform", true}, {"a.b/c_d-e", "x", true}, {"0", "x", true}, {long, strings.Repeat("é", 256), true}, {"k", "a=b", true}, {"k", `' OR 1=1 --`, true},
		{long + "k", "x", false}, {"", "x", false}, {"a b", "x", false}, {".a", "x", false}, {"é", "x", false}, {"\x1b[2J", "x", false}, {"a\nb", "x", false}, {"\u202e", "x", false},
		{"k", "", false}, {"k", "  ", false}, {"k", strings.Repeat("x", 257), false}, {"k", "a\nb", false}, {"k", "\x1b", false}, {"k", "ghp_" + strings.Repeat("a", 36), false},
	} {
		err := config.CheckLabel(c.key, c.text)
		var e *stint.Error
		if (err == nil) != c.good || err != nil && (!errors.As(err, &e) || e.Code != stint.Invalid || e.Hint == "") {
			t.Errorf("the label %q=%q: %v", c.key, c.text, err)
		}
		if in := parsed(fmt.Sprintf("labels: {%s: %s}", quoted(c.key), quoted(c.text))); (in == nil) != c.good {
			t.Errorf("the label %q=%q in the file: %v", c.key, c.text, in)
		}
	}
	if err := config.CheckLabel("k", "\xff"); err == nil {
		t.Error("a label takes what is no text")
	}
	for line, good := range map[string]bool{"5": true, "0.50": true, `"0.50"`: true, "'5'": true, `"0.000000001"`: true, `"0"`: false, `"-1"`: false, `"$5"`: false, `""`: false, `"5."`: false, `".5"`: false, `"1e3"`: false, `"0.0000000001"`: false, `"none"`: true, `" 5"`: false} {
		if err := parsed("limits: {cost: " + line + "}"); (err == nil) != good {
			t.Errorf("cost: %s: %v", line, err)
		}
	}
}

// quoted is s as JSON, which YAML reads as well.
func quoted(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// Of a file that is refused it is told where the store is, or that it names none; and
// nothing is guessed.
func TestOutline(t *testing.T) {
	dir := t.TempDir()
	for text, want := range map[string]string{ // ? where nobody can tell
		"agents:\n  a: {kind: exec}\n":                     "",
		"store: sqlite:s.db\nagents:\n  a: {kind: exec}\n": "s.db",
		"store: sqlite:s.db\nagents: [[[\n":                "s.db",
		"store : \"sqlite:s.db\"\nagents: [[[\n":           "s.db",
		"agents:\n\ta: x\nstore: 'sqlite:s.db' # ours\n":   "s.db",
		"store: sqlite:s.db\r\nagents: [[[\r\n":            "s.db",
		"agents: [[[\n":                                    "",
		"\xff\xfe":                                         "",
		"":                                                 "",
		"datastore_url: x\nagents: [[[\n":                  "",
		"[]":                                               "?",
		"5":                                                "?",
		"store: mysql:x\n":                                 "?",
		"store: 5\n":                                       "?",
		"store: mysql:x\nagents: [[[\n":                    "?",
		"store:\n  sqlite:s.db\nagents: [[[\n":             "?",
		"{store: sqlite:s.db, agents: [[[\n":               "?",
		"\"store\": sqlite:s.db\nagents: [[[\n":            "?",
		"  store: sqlite:s.db\nagents: [[[\n":              "?",
		"store: sqlite:a.db\nstore: sqlite:s.db\n":         "?",
		"store: sqlite:a.db\nstore: sqlite:s.db\nagents: [\n": "?",
		"store: sqlite:s.db\n# " + strings.Repeat("x", 1<<20): "?",
		"store: sqlite:\xff.db\nagents:\n  a: {kind: exec}\n": "?",
	} {
		path := filepath.Join(dir, config.FileName)
		write(t, path, text)
		if want != "" && want != "?" {
			want = "sqlite:" + filepath.Join(dir, want)
		}
		f, ok := config.Outline(path)
		if ok != (want != "?") || ok && (f.Store != want || f.Path != path || f.Agents != nil) {
			t.Errorf("%.60q: got %+v, %v, want %q", text, f, ok, want)
		}
	}
	if f, ok := config.Outline(filepath.Join(dir, "none")); ok {
		t.Errorf("a file that is not there has the outline %+v", f)
	}
}

// A problem can be had apart from the text, and there are at most 20.
func TestProblems(t *testing.T) {
	_, err := config.Parse("p/stint.yaml", []byte("agents:\n  triage:\n    kind: exec\n    command: [a]\n    limits: {wall: 60}\n"))
	var ps *config.Problems
	if !errors.As(err, &ps) || len(ps.List) != 1 || ps.Left != 0 {
		t.Fatalf("got %v", err)
	}
	want := config.Problem{File: "p/stint.yaml", Line: 5, Column: 20, Path: "agents.triage.limits.wall",
		Text: "expected a duration such as 90s, 5m, 1h or 2d, or none, found the number 60", Hint: "add a unit: 60s or 60m",
		Excerpt: "    5 |     limits: {wall: 60}\n      |                    ^"}
	if ps.List[0] != want {
		t.Errorf("got %+v\nwant %+v", ps.List[0], want)
	}
	var e *stint.Error
	if !errors.As(err, &e) || !strings.HasPrefix(e.Hint, want.Hint+"; ") || err.Error() != "config: p/stint.yaml:5:20: "+want.Path+": "+want.Text+"\n"+want.Excerpt {
		t.Errorf("got %s\nwith the hint %s", err, e.Hint)
	}
	// Of two problems each has its hint where it is wrong, as far as there is one.
	_, err = config.Parse("stint.yaml", []byte("agents:\n  triage:\n    kind: exec\n    command: [a]\n    limits: {wall: 60, idle: 5}\n"))
	if !errors.As(err, &e) || strings.Contains(e.Hint, "add a unit") || !strings.Contains(err.Error(), "^ add a unit: 60s or 60m\n") || !strings.HasSuffix(err.Error(), "^ add a unit: 5s or 5m") {
		t.Errorf("got %s\nwith the hint %s", err, e.Hint)
	}
	_, err = config.Parse("stint.yaml", []byte("agents:\n"+strings.Repeat("  X: {}\n", 50)))
	if !errors.As(err, &ps) || len(ps.List) != 20 || ps.Left != 30 {
		t.Errorf("got %d and %d", len(ps.List), ps.Left)
	}
}
