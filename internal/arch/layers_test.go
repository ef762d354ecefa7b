package arch_test

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"
)

// A row says what one package is and which other packages of this module its
// code may import. Test files may import anything.
type row struct {
	pkg string   // folder; "stint" is the root of the module; "x/..." is x and all below it
	is  string   // one line for the reader
	may []string // packages above it, or a pattern of them, or anything or public

	everywhere bool // every package but the root may import it
	pure       bool // no I/O and no clock
	testsOnly  bool // no code outside _test.go files
}

const (
	root     = "stint"
	anything = "*"      // every package
	public   = "public" // every package outside internal and cmd
)

// layers is the diagram of the system, top to bottom: a row may name only
// rows above it, so that imports follow the data. A package that is not here
// fails; rows may stand before their package does. A new package comes with
// its row in the same commit.
func layers() []row {
	return slices.Concat(vocabularyLayers(), agentLayers(), doorLayers(), programLayers())
}

func may(pkgs ...string) []string { return pkgs }

// vocabularyLayers are the vocabulary, stores, and the only writer.
func vocabularyLayers() []row {
	return []row{
		// The vocabulary and the rules.
		{pkg: root, is: "the vocabulary: Session, Entry, Lease, Message, Agent, Loop, Store, Error; standard library only"},
		{pkg: "internal/faultpoint", is: "named places where a test makes the process die", everywhere: true},
		{pkg: "internal/delta", is: "byte deltas between two states", pure: true},
		{pkg: "internal/jsonx", is: "JSON on tokens, so that untouched bytes stay as they were", pure: true},
		{pkg: "internal/expression", is: "expressions of stint.yaml over what strangers sent, at a bounded cost", pure: true},
		{pkg: "internal/ident", is: "ids, their short forms, and names", may: may(root)},
		{pkg: "internal/cursor", is: "places in the feed of a store, as text", may: may(root), pure: true},
		{pkg: "journal", is: "which entry may follow which, what it does to a session, the hash chain", may: may(root, "internal/delta"), pure: true},
		{pkg: "internal/access", is: "who may do what over the network: tokens, scopes, routes, names, addresses", may: may(root), pure: true},
		{pkg: "health", is: "which calls of an agent show that it gets nowhere", may: may(root), pure: true},
		{pkg: "cron", is: "when a schedule fires", may: may(root), pure: true},
		{pkg: "policy", is: "which steps wait for a person, who may decide, and when enough have", may: may(root, "internal/access", "internal/expression", "internal/jsonx"), pure: true},

		// Helpers that know nothing of sessions.
		{pkg: "internal/proc", is: "child processes and all of their descendants"},
		{pkg: "internal/child", is: "what agents that are other programs share: environment, log, why one cannot start", may: may(root, "internal/proc")},
		{pkg: "internal/worktree", is: "a git worktree for each session, and a branch for each of its lines", may: may(root, "internal/proc")},
		{pkg: "internal/safedial", is: "connections to addresses that somebody else chose"},
		{pkg: "internal/term", is: "what the terminal can show"},
		{pkg: "internal/problem", is: "errors as HTTP answers", may: may(root)},
		{pkg: "internal/wire", is: "what a store answers, as JSON that leaves nothing out", may: may(root), pure: true},
		{pkg: "internal/access/guard", is: "the rules of access before an HTTP handler", may: may(root, "internal/access", "internal/problem")},

		// Stores keep; they interpret nothing.
		{pkg: "store/mem", is: "a store in memory", may: may(root, "internal/cursor")},
		{pkg: "store/sqlite", is: "a store in one SQLite file", may: may(root, "internal/cursor", "internal/faultpoint")},
		{pkg: "store/postgres", is: "a store that several machines share", may: may(root, "internal/cursor", "internal/faultpoint")},
		{pkg: "store/storetest", is: "the suite that every store must pass", may: may(root, "journal")},

		{pkg: "internal/past", is: "what a journal says of the steps of a loop, and answers to the same ones", may: may(root, "journal", "internal/jsonx"), pure: true},

		{pkg: "internal/replay", is: "completed loops done again, each step answered from the journal; it cannot write", may: may(root, "journal", "internal/past")},
		{pkg: "internal/replay/replaytest", is: "agents are held to the journals of their tests", may: may(root, "internal/replay")},

		// The only writer.
		{pkg: "engine", is: "claims sessions, drives loops, renews leases", may: may(root, "journal", "internal/ident", "internal/faultpoint", "internal/jsonx", "internal/past", "policy")},
	}
}

// agentLayers are agents and what they talk to.
func agentLayers() []row {
	return []row{
		// Agents and what they talk to.
		{pkg: "model", is: "the question to a language model and its answer"},
		{pkg: "model/modeltest", is: "a strict service, and the suite that every model over HTTP must pass", may: may("model")},
		{pkg: "internal/modelhttp", is: "what the models over HTTP share: an exchange, its limits, what a refusal means", may: may("model")},
		{pkg: "model/anthropic", is: "the Anthropic API", may: may("model", "internal/modelhttp")},
		{pkg: "model/openai", is: "the OpenAI API and those who speak it", may: may("model", "internal/modelhttp")},
		{pkg: "model/script", is: "a model that plays a script", may: may("model")},
		{pkg: "internal/price", is: "what tokens cost", may: may(root)},
		{pkg: "tool", is: "what an agent can call, and what its output must be like", may: may(root, "internal/jsonx")},
		{pkg: "tool/builtin", is: "files below a folder, sleep, ask and finish as tools", may: may(root, "tool", "internal/jsonx")},
		{pkg: "tool/exec", is: "programs as tools", may: may(root, "tool", "internal/proc", "internal/jsonx")},
		{pkg: "tool/http", is: "requests as tools", may: may(root, "tool", "internal/safedial", "internal/jsonx")},
		{pkg: "tool/mcp", is: "tools of MCP servers", may: may(root, "tool", "internal/proc", "internal/safedial", "internal/jsonx")},
		{pkg: "internal/hook", is: "what a webhook delivery is, whether it is genuine, and what it asks for", may: may(root, "internal/expression", "internal/jsonx"), pure: true},
		{pkg: "internal/endpoint", is: "who is told of what happens to sessions, over which channel, and when", may: may(root), pure: true},
		{pkg: "internal/config", is: "stint.yaml, read strictly; it asks the tools whether there can be one, and hooks whether they compile", may: may(root, "cron", "policy", "internal/endpoint", "internal/expression", "internal/hook", "internal/jsonx", "internal/safedial", "internal/worktree", "tool", "tool/exec", "tool/http")},
		{pkg: "internal/importer", is: "what stint.yaml says of a user's crontab", may: may(root, "cron", "internal/config")},
		{pkg: "agent/llm", is: "a model with tools, as an agent", may: may(root, "model", "tool", "health", "internal/jsonx")},
		{pkg: "internal/record", is: "what the tools of a session gave, for one that does it again with a model", may: may(root, "journal", "policy", "internal/past", "agent/llm")},
		{pkg: "internal/protocol", is: "what agents in other languages say, which of it may follow which, and what it does to the state", may: may(root, "internal/child", "internal/jsonx")},
		{pkg: "agent/exec", is: "any program, as an agent", may: may(root, "model", "tool", "internal/proc", "internal/child", "internal/jsonx", "internal/protocol", "internal/faultpoint")},
		{pkg: "agent/http", is: "a signed request, as an agent", may: may(root, "model", "tool", "internal/safedial", "internal/child", "internal/protocol")},
		{pkg: "agent/cli", is: "command-line agents that print JSON, as agents", may: may(root, "internal/proc", "internal/child", "internal/jsonx", "internal/faultpoint")},
		{pkg: "agent/acp", is: "agents that speak the Agent Client Protocol, as agents", may: may(root, "internal/proc", "internal/child", "internal/jsonx", "internal/faultpoint")},
	}
}

// doorLayers are triggers, answers and doors.
func doorLayers() []row {
	return []row{
		// Triggers, answers, doors.
		{pkg: "internal/access/keeper", is: "tokens in the system journal", may: may(root, "engine", "internal/access", "internal/faultpoint")},
		{pkg: "internal/gate", is: "what is asked before a session begins", may: may(root, "internal/child", "internal/proc", "internal/safedial")},
		{pkg: "internal/trigger", is: "schedules and hooks become sessions, at most once", may: may(root, "cron", "engine", "internal/faultpoint", "internal/hook", "internal/ident", "internal/problem")},
		{pkg: "internal/notify", is: "others are told what happens to sessions, by requests, programs and mail, at least once", may: may(root, "journal", "engine", "tool", "internal/child", "internal/endpoint", "internal/faultpoint", "internal/hook", "internal/ident", "internal/proc", "internal/safedial", "internal/term")},
		{pkg: "internal/explain", is: "a page on every word and code that is shown", may: may(root, "internal/ident", "internal/term")},
		{pkg: "internal/view", is: "answers; it gets a Reader, so it cannot write", may: may(root, "journal", "internal/explain", "internal/ident", "internal/past", "internal/term")},
		{pkg: "internal/control", is: "orders to sessions, the same for the command line and the API", may: may(root, "journal", "engine", "tool", "policy", "internal/config", "internal/ident", "internal/jsonx", "internal/term", "internal/view")},
		{pkg: "internal/compare", is: "two loops, or two sessions, side by side, and where a value came from", may: may(root, "journal", "policy", "internal/past", "internal/term", "internal/view")},
		{pkg: "internal/mcpserver", is: "sessions as tools of the Model Context Protocol, for other agents", may: may(root, "tool", "internal/ident", "internal/term", "internal/view")},
		{pkg: "internal/server", is: "the life of a server: where it listens, what it obeys, how it ends", may: may(root, "engine", "internal/access/guard", "internal/proc")},
		{pkg: "internal/stream", is: "what happens, as events over HTTP with cursors that outlive the process", may: may(root, "model", "internal/view", "internal/problem")},
		{pkg: "internal/api", is: "HTTP and SSE: reads through view, commands through engine", may: may(root, "journal", "engine", "policy", "internal/access", "internal/access/guard", "internal/control", "internal/hook", "internal/ident", "internal/jsonx", "internal/notify", "internal/problem", "internal/term", "internal/trigger", "internal/view", "internal/worktree", "internal/wire")},
		{pkg: "internal/web", is: "the dashboard, embedded"},
		{pkg: "client", is: "the same questions and commands over HTTP", may: may(root, "internal/wire")},
	}
}

// programLayers are programs and checks of the whole product.
func programLayers() []row {
	return []row{
		// Programs and whole-product checks.
		{pkg: "internal/bench", is: "the measured workloads", may: may(root, "engine", "journal", "store/*", "agent/llm", "model", "model/script", "tool", "internal/access", "internal/access/guard", "internal/api", "internal/ident", "internal/view")},
		{pkg: "cmd/stint", is: "flags, configuration, wiring; one file a command", may: may(anything)},
		{pkg: "examples/...", is: "what a reader would write; the public packages alone", may: may(public)},
		{pkg: "internal/plaintest", is: "what runs a test of one goroutine and many steps without the race detector"},
		{pkg: "internal/npmtest", is: "what tests take from npm: programs of MCP, those that read descriptions of APIs, a library of cron expressions to compare with"},
		{pkg: "internal/cases", is: "faults that users reported in public, on the engine, the stores, agents in Go, programs, and models with tools", may: may(anything), testsOnly: true},
		{pkg: "internal/acceptance", is: "the whole product, from outside", may: may(anything), testsOnly: true},
		{pkg: "internal/mutants", is: "faults put into the source, each of which some test has to see", may: may(anything), testsOnly: true},
		{pkg: "internal/arch", is: "this table and the size budget", testsOnly: true},
	}
}

// layerRules are the rules that need the table.
func layerRules(table []row) []rule {
	return []rule{
		{"one module", checkOneModule},
		{"package is listed", func(t *tree) []finding { return checkListed(t, table) }},
		{"imports follow the table", func(t *tree) []finding { return checkImports(t, table) }},
		{"root imports the standard library only", checkRoot},
		{"pure packages have no I/O and no clock", func(t *tree) []finding { return checkPure(t, table) }},
		{"packages of tests hold tests only", func(t *tree) []finding { return checkTestsOnly(t, table) }},
	}
}

// name returns the name of a folder in the table.
func name(dir string) string {
	if dir == "." {
		return root
	}
	return dir
}

// find returns the row of a package.
func find(table []row, pkg string) (row, bool) {
	for _, r := range table {
		if r.pkg == pkg {
			return r, true
		}
		if under, ok := strings.CutSuffix(r.pkg, "/..."); ok && (pkg == under || strings.HasPrefix(pkg, under+"/")) {
			return r, true
		}
	}
	return row{}, false
}

// allows reports whether the code of r may import pkg.
func (r row) allows(table []row, pkg string) bool {
	if r.pkg == pkg {
		return true // "examples/..." among themselves
	}
	if to, ok := find(table, pkg); ok && to.everywhere && r.pkg != root {
		return true
	}
	for _, m := range r.may {
		switch m {
		case anything:
			return true
		case public:
			if !strings.HasPrefix(pkg, "internal/") && !strings.HasPrefix(pkg, "cmd/") {
				return true
			}
		default:
			if ok, err := path.Match(m, pkg); ok && err == nil {
				return true
			}
		}
	}
	return false
}

// ours returns the table's name of an import path of this module.
func ours(t *tree, importPath string) (string, bool) {
	if importPath == t.module {
		return root, true
	}
	return strings.CutPrefix(importPath, t.module+"/")
}

func checkOneModule(t *tree) []finding {
	var found []finding
	for _, f := range t.files {
		if path.Base(f.path) == "go.mod" && f.path != "go.mod" && !strings.Contains(f.path, "testdata/") {
			found = append(found, finding{
				f.path, 1, "a module inside the module", "the repository is one module",
				"delete this go.mod; its packages would escape every rule here",
			})
		}
	}
	return found
}

func checkListed(t *tree, table []row) []finding {
	var found []finding
	dirs, by := t.dirs()
	for _, d := range dirs {
		if _, ok := find(table, name(d)); !ok {
			f := by[d][0]
			found = append(found, finding{
				f.path, t.line(f.ast.Package), "package " + d + " is not in the import table", "every package has a row",
				"add its row to layers in internal/arch/layers_test.go, or move the code into a package that is listed",
			})
		}
	}
	return found
}

func checkImports(t *tree, table []row) []finding {
	var found []finding
	for _, f := range t.sources() {
		r, ok := find(table, name(f.dir()))
		if !ok {
			continue // the rule "package is listed" reports it
		}
		for i, p := range f.imports() {
			pkg, ok := ours(t, p)
			if !ok || r.allows(table, pkg) {
				continue
			}
			bound := r.pkg + " may import none of our packages"
			if len(r.may) > 0 {
				bound = r.pkg + " may import " + strings.Join(r.may, ", ")
			}
			found = append(found, finding{
				f.path, t.line(f.ast.Imports[i].Pos()), r.pkg + " imports " + pkg, bound,
				"take what you need as a value or a small interface, or move the code; a new arrow in layers needs its reason in the commit",
			})
		}
	}
	return found
}

func checkRoot(t *tree) []finding {
	var found []finding
	for _, f := range t.sources() {
		if f.dir() != "." {
			continue
		}
		for i, p := range f.imports() {
			first, _, _ := strings.Cut(p, "/")
			if !strings.Contains(first, ".") && p != "C" {
				continue
			}
			found = append(found, finding{
				f.path, t.line(f.ast.Imports[i].Pos()), "the root package imports " + p, "it imports the standard library only",
				"move the code that needs it into a package of its own",
			})
		}
	}
	return found
}

func checkPure(t *tree, table []row) []finding {
	outside := map[string]bool{}
	for _, p := range []string{
		"C", "crypto/rand", "database/sql", "embed", "io/fs", "log", "log/slog", "math/rand", "math/rand/v2", "net", "net/http",
		"os", "os/exec", "os/signal", "os/user", "path/filepath", "syscall", "unsafe",
	} {
		outside[p] = true
	}
	var found []finding
	for _, f := range t.sources() {
		r, ok := find(table, name(f.dir()))
		if !ok || !r.pure {
			continue
		}
		for i, p := range f.imports() {
			if outside[p] {
				found = append(found, finding{
					f.path, t.line(f.ast.Imports[i].Pos()), r.pkg + " imports " + p, "a pure package has no I/O and no randomness",
					"let the caller pass the bytes in",
				})
			}
		}
		for _, id := range uses(f, "time", "Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker") {
			found = append(found, finding{
				f.path, t.line(id.Pos()), r.pkg + " uses time." + id.Name, "a pure package has no clock",
				"let the caller pass the time in",
			})
		}
	}
	return found
}

func checkTestsOnly(t *tree, table []row) []finding {
	var found []finding
	for _, f := range t.sources() {
		r, ok := find(table, name(f.dir()))
		if !ok || !r.testsOnly || len(f.ast.Decls) == 0 {
			continue
		}
		found = append(found, finding{
			f.path, t.line(f.ast.Decls[0].Pos()), r.pkg + " has code outside its tests", "it holds tests and a doc.go",
			"move the code into a _test.go file",
		})
	}
	return found
}

// The table itself can be wrong: a row twice, or an arrow that points up.
func TestTablePointsDownwards(t *testing.T) {
	for _, problem := range tableProblems(layers()) {
		t.Error(problem)
	}
}

func TestTableProblemsAreSeen(t *testing.T) {
	for _, c := range []struct {
		name  string
		table []row
		want  int
	}{
		{"good", []row{{pkg: "stint", is: "a"}, {pkg: "b", is: "b", may: []string{"stint"}}}, 0},
		{"pattern", []row{{pkg: "s/a", is: "a"}, {pkg: "b", is: "b", may: []string{"s/*"}}}, 0},
		{"upwards", []row{{pkg: "b", is: "b", may: []string{"stint"}}, {pkg: "stint", is: "a"}}, 1},
		{"itself", []row{{pkg: "b", is: "b", may: []string{"b"}}}, 1},
		{"twice", []row{{pkg: "b", is: "b"}, {pkg: "b", is: "b"}}, 1},
		{"unexplained", []row{{pkg: "b"}}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := tableProblems(c.table); len(got) != c.want {
				t.Errorf("%d problems, want %d: %q", len(got), c.want, got)
			}
		})
	}
}

func tableProblems(table []row) []string {
	var problems []string
	above := map[string]bool{}
	for _, r := range table {
		if above[r.pkg] {
			problems = append(problems, r.pkg+" is listed twice")
		}
		if r.is == "" {
			problems = append(problems, r.pkg+" does not say what it is")
		}
		for _, m := range r.may {
			if m == anything || m == public {
				continue
			}
			listed := false
			for pkg := range above {
				if ok, err := path.Match(m, pkg); ok && err == nil {
					listed = true
				}
			}
			if !listed {
				problems = append(problems, fmt.Sprintf("%s may import %s, which is no row above it", r.pkg, m))
			}
		}
		above[r.pkg] = true
	}
	return problems
}
