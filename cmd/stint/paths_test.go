package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/stint-dev/stint/store/sqlite"
)

// evil is a name that clears the screen, and reads backwards from there.
const evil = "x\x1b[2J\u202ey"

// evilDesk is in a folder of that name, with files and a store of that name.
func evilDesk(t *testing.T) *desk {
	t.Helper()
	d := &desk{t: t, dir: filepath.Join(t.TempDir(), evil)}
	for _, dir := range []string{d.dir, filepath.Join(d.dir, "there"+evil)} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(d.dir)
	st, err := sqlite.Open(t.Context(), sqlite.Options{Path: d.path()})
	if err != nil {
		t.Fatal(err)
	}
	d.store = st
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	yaml := "agents:\n  a: {kind: exec, command: [\"true\"], protocol: none, description: \"x\\u202ey\\u2066\", env: {X: \"\\u202e\\u2066\"}, labels: {k: \"\\u202e\"}}\n"
	d.write("stint.yaml", yaml)
	d.write("good"+evil+".yaml", yaml)
	d.write("bad"+evil+".yaml", "agents: {\""+"x\\e[2J\\u202e"+"\": {kind: [}\n")
	d.write("text"+evil, evil)
	d.ok("start", "a", "--name", "s1")
	return d
}

// evilLines are all commands with something of that name wherever they take a text:
// as the argument, as the one behind a good one, and as the value of each flag.
func evilLines() (all [][]string) {
	var walk func(path []string, cmds []*cobra.Command)
	walk = func(path []string, cmds []*cobra.Command) {
		for _, c := range cmds {
			name := append(append([]string{}, path...), c.Name())
			if c.HasSubCommands() {
				walk(name, c.Commands())
			}
			if c.Name() == "child" || c.Name() == "report" || c.Name() == "dev" || len(path) > 0 && path[0] == "bench" { // these run sessions of their own, or serve them
				continue
			}
			add := func(more ...string) { all = append(all, append(append([]string{}, name...), more...)) }
			if c.Name() != "bench" {
				for _, what := range []string{"", "good" + evil + ".yaml", "there" + evil, "text" + evil, "new" + evil} {
					if what == "" {
						add(evil)
						continue
					}
					add(what)
					add("stint.db", what)
				}
			}
			add("--no" + evil)
			flags := func(f *pflag.Flag) {
				if f.Value.Type() == "bool" {
					return
				}
				whats := []string{evil, "new" + evil, "text" + evil}
				if !long() {
					whats = whats[len(all)%3:][:1]
				}
				for _, what := range whats {
					add("s1", "--"+f.Name+"="+what)
				}
			}
			if c.Name() != "bench" {
				c.Flags().VisitAll(flags)
			}
		}
	}
	walk(nil, (&app{}).commands())
	if !long() { // each fourth of them, which has every command and many of their flags
		kept := all[:0]
		for i, args := range all {
			if i%4 == 0 {
				kept = append(kept, args)
			}
		}
		all = kept
	}
	for _, store := range []string{"sqlite:new" + evil + ".db", "sqlite:text" + evil, "sqlite:there" + evil, evil} {
		for _, line := range []string{"ps", "start a", "db size", "db backup b1", "verify --all", "db restore b1", "sql select"} {
			all = append(all, append(strings.Fields(line), "--store="+store))
		}
	}
	for _, file := range []string{"good", "bad", "none"} {
		for _, line := range []string{"ps", "start a", "agent ls", "agent show a", "agent validate", "agent diff s1", "run a"} {
			all = append(all, append(strings.Fields(line), "--config="+file+evil+".yaml"))
		}
	}
	for _, line := range []string{"export s1 --out new%", "export s1 --out %", "db backup new2%", "db salvage stint.db new3%", "init new4%", "init there%", "init text%", "run -q -- %", "run -- ./text%", "agent show a", "agent ls", "agent validate", "show s1", "ps -a", "completion %"} {
		all = append(all, strings.Fields(strings.ReplaceAll(line, "%", evil)))
	}
	return all
}

// A path or a name that somebody else chose cannot drive the terminal, whatever the
// command does with it; and what it prints as JSON is JSON.
func TestEvilPaths(t *testing.T) {
	d := evilDesk(t)
	lines, said := evilLines(), 0
	for i, args := range lines {
		modes := [][]string{args, append([]string{"--json"}, args...)}
		if !long() { // one of both, in turn
			modes = modes[i%2 : i%2+1]
		}
		for _, args := range modes {
			_, out, talk := d.stint(args...)
			if bad := driving(out); bad != "" {
				t.Errorf("stint %q: %s reaches standard output: %.200q", args, bad, out)
			}
			if bad := driving(talk); bad != "" {
				t.Errorf("stint %q: %s reaches standard error: %.200q", args, bad, talk)
			}
			said += strings.Count(out+talk, "[2J")
		}
	}
	if said < len(lines)/2 {
		t.Errorf("of %d commands only %d show the name that they were given", len(lines), said)
	}
}
