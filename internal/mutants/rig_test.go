package mutants_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stint-dev/stint/internal/proc"
)

// Tests of mutated code run below a guard: whatever a mutant leaves behind ends
// with them.
func TestMain(m *testing.M) {
	proc.MaybeGuard()
	os.Exit(m.Run())
}

// mutant is a fault in one file.
type mutant struct {
	name  string
	file  string // slash-separated, from the root of the module
	edits []edit
	why   string // what goes wrong for a user where nobody sees it
	red   []tests
	quick bool   // cheap enough for every day
	goos  string // its tests exist on this system only; empty: on all
}

// edit replaces a text that occurs once.
type edit struct{ old, new string }

// one is the edits of a mutant that needs only one.
func one(old, new string) []edit { return []edit{{old, new}} }

// tests names tests of one package, all of which must be green without the mutant
// and one of which must be red with it.
type tests struct {
	pkg  string // folder, from the root of the module
	name string // as for -run, each level anchored: "TestA|TestB/subtest"
}

// by names the only tests that a mutant has to turn red.
func by(pkg, name string) []tests { return []tests{{pkg, name}} }

// pattern is the argument of -run.
func (t tests) pattern() string {
	levels := strings.Split(t.name, "/")
	for i, l := range levels {
		levels[i] = "^(" + l + ")$"
	}
	return strings.Join(levels, "/")
}

// top is the names of the test functions.
func (t tests) top() []string {
	first, _, _ := strings.Cut(t.name, "/")
	return strings.Split(first, "|")
}

// apply returns src with the mutant in it.
func (m *mutant) apply(src string) (string, error) {
	for _, e := range m.edits {
		switch n := strings.Count(src, e.old); {
		case e.old == e.new:
			return "", fmt.Errorf("mutant %s changes nothing in %s", m.name, m.file)
		case n != 1:
			return "", fmt.Errorf("mutant %s has to be brought up to date: %s has %d times, not once, the text\n%s", m.name, m.file, n, e.old)
		}
		src = strings.Replace(src, e.old, e.new, 1)
	}
	return src, nil
}

// rig is a copy of a module in which tests are run.
type rig struct {
	dir   string
	sound map[string]error // by package: what is wrong with the named tests, mutants apart
}

func newRig(t *testing.T, module string) *rig {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "module")
	if err := copyModule(dir, module); err != nil {
		t.Fatal(err)
	}
	return &rig{dir: dir, sound: map[string]error{}}
}

// copyModule copies what belongs to the module at from, and not what is built or
// stored there. It copies bytes: a link would let a mutant into the original.
func copyModule(to, from string) error {
	return filepath.WalkDir(from, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, p)
		if err != nil {
			return err
		}
		switch name := d.Name(); {
		case d.IsDir() && rel != "." && (strings.HasPrefix(name, ".") || name == "__pycache__" || rel == "bin" || rel == "dist"):
			return fs.SkipDir
		case d.IsDir():
			return os.MkdirAll(filepath.Join(to, rel), 0o755)
		case !d.Type().IsRegular() || strings.Contains(name, ".db") || strings.HasSuffix(name, ".test") || strings.HasSuffix(name, ".prof"):
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		b, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, rel), b, info.Mode().Perm())
	})
}

// outcome is what came of running tests.
type outcome struct {
	pass   bool
	broken bool     // it did not compile
	hung   bool     // its time was up
	red    []string // the tests that failed, without those whose subtests did
	green  []string
	took   time.Duration
	text   string // the end of what was printed
}

// by says which tests were red.
func (o *outcome) by() string {
	if len(o.red) == 0 {
		return "nothing"
	}
	who := o.red[0]
	if more := len(o.red) - 1; more > 0 {
		who = fmt.Sprintf("%s and %d more", who, more)
	}
	if o.hung {
		who += ", which does not end"
	}
	return who
}

// patience bounds one go test: the tests themselves, and what builds them.
const (
	patience      = 45 * time.Second
	buildPatience = 10 * time.Minute
)

// run runs tests of one package of the copy, for at most within.
func (r *rig) run(ctx context.Context, pkg, pattern string, within time.Duration) (*outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, within+buildPatience)
	defer cancel()
	begun := time.Now()
	p, err := proc.Start(ctx, proc.Spec{
		// Without the folder in what is compiled, copies share the build cache.
		Argv: []string{"go", "test", "-json", "-trimpath", "-vet=off", "-count=1", "-failfast", "-timeout", within.String(), "-run", pattern, "./" + pkg},
		Dir:  r.dir, Env: environment(), Name: "mutant",
		Stdout: proc.Stream{Pipe: true}, Stderr: proc.Stream{Pipe: true},
	})
	if err != nil {
		return nil, err
	}
	var stderr []byte
	var wg sync.WaitGroup
	wg.Go(func() { stderr, _ = io.ReadAll(p.Stderr()) })
	stdout, err := io.ReadAll(p.Stdout())
	wg.Wait()
	exit := p.Wait()
	if err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	o := judge(stdout)
	o.took = time.Since(begun)
	o.text = tail(o.text + string(stderr))
	if o.pass != (exit.Code == 0) {
		return nil, fmt.Errorf("go test ended with %d and does not say so\n%s", exit.Code, o.text)
	}
	return o, nil
}

// environment is this process's, such that the tests run at their default size, and not as
// what a program under a guard has started would: the guard is the rig's.
func environment() []string {
	env := slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "STINT_") || strings.HasPrefix(v, "CGO_ENABLED=")
	})
	return append(env, "CGO_ENABLED=0", "STINT_SESSION=")
}

// judge reads the lines of go test -json (go doc test2json).
func judge(out []byte) *outcome {
	o := &outcome{}
	var text strings.Builder
	ran := map[string]string{} // test: its last action
	for line := range bytes.Lines(out) {
		var e struct{ Action, Package, ImportPath, Test, Output, FailedBuild string }
		if json.Unmarshal(line, &e) != nil {
			text.Write(line)
			continue
		}
		switch {
		case e.Action == "output" || e.Action == "build-output":
			text.WriteString(e.Output)
		case e.Action == "build-fail" || e.FailedBuild != "":
			o.broken = true
		case e.Test == "":
			o.pass = o.pass || e.Action == "pass"
		default:
			ran[e.Test] = e.Action
		}
	}
	for name, action := range ran {
		switch {
		case action == "pass":
			o.green = append(o.green, name)
		case o.pass || o.broken:
		default: // failed, or under way when the process crashed or its time was up
			o.red = append(o.red, name)
		}
	}
	slices.Sort(o.red)
	all := slices.Clone(o.red)
	o.red = slices.DeleteFunc(o.red, func(name string) bool {
		return slices.ContainsFunc(all, func(other string) bool { return strings.HasPrefix(other, name+"/") })
	})
	o.text = text.String()
	o.hung = strings.Contains(o.text, "panic: test timed out after")
	return o
}

// tail is the end of a long text.
func tail(s string) string {
	const most = 6000
	if len(s) <= most {
		return s
	}
	return "…" + strings.ToValidUTF8(s[len(s)-most:], "")
}

// green shows once a package that the tests which mutants name are green without
// one, and then that they were run.
func (r *rig) green(ctx context.Context, all []mutant, pkg string) error {
	if err, known := r.sound[pkg]; known {
		return err
	}
	names := namedTests(all, pkg)
	o, err := r.run(ctx, pkg, "^("+strings.Join(names, "|")+")$", 10*patience)
	switch {
	case err != nil:
	case !o.pass:
		err = fmt.Errorf("without a mutant, %s is red: %s\n%s", pkg, o.by(), o.text)
	default:
		for _, n := range names {
			if !slices.Contains(o.green, n) {
				err = fmt.Errorf("a mutant names the test %s, which was not run in %s", n, pkg)
			}
		}
	}
	r.sound[pkg] = err
	return err
}

// namedTests is the test functions of a package that mutants name.
func namedTests(all []mutant, pkg string) []string {
	var names []string
	for i := range all {
		for _, t := range all[i].red {
			if t.pkg == pkg && all[i].fits() {
				names = append(names, t.top()...)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// try puts m into the copy, runs its tests, and takes it out again. A mutant that
// is not seen, or not put to the test, is an error.
func (r *rig) try(ctx context.Context, m *mutant) (outs []*outcome, err error) {
	file := filepath.Join(r.dir, filepath.FromSlash(m.file))
	src, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	changed, err := m.apply(string(src))
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(file, []byte(changed), 0o644); err != nil {
		return nil, err
	}
	defer func() {
		if e := os.WriteFile(file, src, 0o644); err == nil {
			err = e
		}
	}()
	for _, t := range m.red {
		o, err := r.run(ctx, t.pkg, t.pattern(), patience)
		switch {
		case err != nil:
			return outs, err
		case o.broken:
			return outs, fmt.Errorf("with mutant %s, %s does not compile\n%s", m.name, t.pkg, o.text)
		case o.pass && len(o.green) == 0:
			return outs, fmt.Errorf("%s has no test %s", t.pkg, t.name)
		case o.pass:
			return outs, fmt.Errorf("mutant %s survives %s in %s: %s", m.name, t.name, t.pkg, m.why)
		case len(o.red) == 0:
			return outs, fmt.Errorf("with mutant %s, %s fails before any of its tests\n%s", m.name, t.pkg, o.text)
		}
		outs = append(outs, o)
	}
	return outs, nil
}

// functions is the names of the test functions in a folder.
func functions(module, pkg string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(module, filepath.FromSlash(pkg), "*_test.go"))
	if err != nil {
		return nil, err
	}
	declared := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w*)\(`)
	var all []string
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		for _, m := range declared.FindAllSubmatch(b, -1) {
			all = append(all, string(m[1]))
		}
	}
	return all, nil
}
