//go:build linux

package acceptance_test

import (
	"flag"
	"fmt"
	"hash/fnv"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// built is the programs that the tests start.
type built struct {
	root   string // of the module
	stint  string // the real binary
	fault  string // the same with fault points and a movable clock
	agent  string // testdata/agent
	digest string // examples/repo-digest
}

// bin is set once, by TestMain.
var bin built

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	dir, err := os.MkdirTemp("", "stint-acceptance-")
	if err == nil {
		defer os.RemoveAll(dir)
		err = buildAll(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "acceptance:", err)
		return 1
	}
	flag.Parse()
	if p := flag.Lookup("test.parallel"); p.Value.String() == p.DefValue {
		// Most of the time the tests wait for processes that wait for the disk.
		if err := flag.Set("test.parallel", "6"); err != nil {
			fmt.Fprintln(os.Stderr, "acceptance:", err)
			return 1
		}
	}
	fmt.Printf("acceptance: seed %d, %s size\n", seed(), map[bool]string{true: "full", false: "default"}[long()])
	return m.Run()
}

func buildAll(dir string) error {
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		return err
	}
	bin = built{root, filepath.Join(dir, "stint"), filepath.Join(dir, "stint-fault"), filepath.Join(dir, "agent"), filepath.Join(dir, "repo-digest")}
	if err := watchSources(root); err != nil {
		return err
	}
	for _, b := range []struct{ out, pkg, tags string }{
		{bin.stint, "./cmd/stint", ""},
		{bin.fault, "./cmd/stint", "faultinject"},
		{bin.agent, "./internal/acceptance/testdata/agent", ""},
		{bin.digest, "./examples/repo-digest", ""},
	} {
		if err := build(root, b.out, b.pkg, b.tags); err != nil {
			return err
		}
	}
	return nil
}

// watchSources looks at every source file of the module. The go command keeps the
// outcome of tests whose inputs stayed as they were, and knows what they looked at
// themselves, but not what a build that they started has read.
func watchSources(root string) error {
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && strings.HasPrefix(d.Name(), "."):
			return filepath.SkipDir
		case strings.HasSuffix(path, "_test.go"):
		case slices.Contains([]string{".go", ".sql", ".yaml", ".json", ".mod", ".sum"}, filepath.Ext(path)):
			_, err = os.Stat(path)
		}
		return err
	})
}

// build builds a package of the module at root as it is shipped: without cgo.
func build(root, out, pkg, tags string) error {
	cmd := exec.Command("go", "build", "-buildvcs=false", "-trimpath", "-tags", tags, "-o", out, pkg)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if b, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build %s: %w\n%s", pkg, err, b)
	}
	return nil
}

// long reports whether the rigs run at full size.
func long() bool { return os.Getenv("STINT_LONG") == "1" }

// size is how much of something a rig does.
func size(short, full int) int {
	if long() {
		return full
	}
	return short
}

// seed is what all random choices follow from.
func seed() uint64 {
	if n, err := strconv.ParseUint(os.Getenv("STINT_SEED"), 10, 64); err == nil {
		return n
	}
	return uint64(os.Getpid())
}

// random returns the choices of one rig: those of another do not change them.
func random(t *testing.T) *rand.Rand {
	h := fnv.New64a()
	h.Write([]byte(t.Name()))
	return rand.New(rand.NewPCG(seed(), h.Sum64()))
}

// asRoot reports whether a rig that needs root can run. Where it cannot, that is
// said so that nobody takes silence for success; scripts/test.sh says it again.
func asRoot(t *testing.T) bool {
	if os.Geteuid() == 0 {
		return true
	}
	fmt.Fprintf(os.Stderr, "\n*** NOT RUN: %s mounts file systems and needs root: sudo -E make test ***\n\n", t.Name())
	return false
}

// patience is how long a test waits for what takes no time to speak of: the
// machine may be busy with something else.
const patience = 30 * time.Second

// eventually waits until ok is true.
func eventually(t *testing.T, what string, within time.Duration, ok func() bool) {
	t.Helper()
	if !soon(within, ok) {
		t.Fatalf("after %v: %s is not so", within, what)
	}
}

// soon reports whether ok becomes true in time.
func soon(within time.Duration, ok func() bool) bool {
	until := time.Now().Add(within)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		if time.Now().After(until) {
			return false
		}
		<-tick.C
	}
	return true
}

// exists reports whether there is a file.
func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// yaml is a stint.yaml of the test agent in some of its modes. Each agent is called
// by its mode, unless the line says NAME=MODE ARGS.
func yaml(dir string, env map[string]string, agents ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "agents:\n")
	for _, a := range agents {
		name, mode, named := strings.Cut(a, "=")
		if f := strings.Fields(a); !named || len(strings.Fields(name)) > 1 {
			name, mode = f[0], a
		}
		fmt.Fprintf(&b, "  %s:\n    kind: exec\n    command: [%s, %s]\n    retry: {initial: 10ms, attempts: 5}\n    limits: {loops: none, wall: none}\n    env: {AGENT_DIR: %q", name, bin.agent, strings.Join(strings.Fields(mode), ", "), dir)
		for k, v := range env {
			fmt.Fprintf(&b, ", %s: %q", k, v)
		}
		fmt.Fprintf(&b, "}\n")
	}
	return b.String()
}
