package exec_test

import (
	"crypto/sha256"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/agent/exec"
)

func TestValidate(t *testing.T) {
	good := func() exec.Spec { return exec.Spec{Command: []string{"python3", "agent.py"}} }
	for want, change := range map[string]func(*exec.Spec){
		`command: it is empty`:               func(s *exec.Spec) { s.Command = nil },
		`command[1]: it holds a NUL`:         func(s *exec.Spec) { s.Command[1] = "a\x00b" },
		`dir: it holds a NUL`:                func(s *exec.Spec) { s.Dir = "\x00" },
		`protocol: "acp" is not one`:         func(s *exec.Spec) { s.Protocol = "acp" },
		`keep: "ever" is not one`:            func(s *exec.Spec) { s.Keep = "ever" },
		`keep: a program without a protocol`: func(s *exec.Spec) { s.Protocol, s.Keep = exec.None, exec.KeepSession },
		`effect: "twice" is not one`:         func(s *exec.Spec) { s.Effect = "twice" },
		`effects.b: "" is not one`:           func(s *exec.Spec) { s.Effects = map[string]stint.Effect{"a": stint.Read, "b": ""} },
		`env."A=B": the name of a variable`:  func(s *exec.Spec) { s.Env = map[string]string{"A=B": ""} },
		`env."": the name of a variable`:     func(s *exec.Spec) { s.Env = map[string]string{"": ""} },
		`env.A: its value holds a NUL`:       func(s *exec.Spec) { s.Env = map[string]string{"A": "\x00"} },
		`STINT_EPOCH is set by stint itself`: func(s *exec.Spec) { s.Env = map[string]string{"STINT_EPOCH": "1"} },
		`pass[1]: the name of a variable`:    func(s *exec.Spec) { s.Pass = []string{"A", "A=B"} },
		`max_output: it is negative`:         func(s *exec.Spec) { s.MaxOutput = -1 },
		`max_line: 1023 bytes`:               func(s *exec.Spec) { s.MaxLine = 1023 },
		`max_line: 34603009 bytes`:           func(s *exec.Spec) { s.MaxLine = 33<<20 + 1 },
		`step_timeout: it is negative`:       func(s *exec.Spec) { s.StepTimeout = -1 },
		`grace: -1ns`:                        func(s *exec.Spec) { s.Grace = -1 },
		`grace: 1m1s`:                        func(s *exec.Spec) { s.Grace = 61 * time.Second },
	} {
		t.Run(want, func(t *testing.T) {
			s := good()
			change(&s)
			var e *stint.Error
			if err := s.Validate(); !errors.As(err, &e) || e.Code != stint.Invalid || e.Hint == "" || !strings.Contains(e.Error(), want) {
				t.Errorf("Validate gave %v with the hint %q, want %q", err, e.Hint, want)
			}
			if a, err := exec.New(s); err == nil || a != nil {
				t.Errorf("New took it")
			}
			if _, err := s.Fingerprint(); err == nil {
				t.Errorf("Fingerprint took it")
			}
		})
	}
	full := exec.Spec{Command: []string{"x"}, Protocol: exec.JSONL, Keep: exec.KeepSession, Dir: "/nowhere", Env: map[string]string{"A": ""},
		Pass: []string{"B"}, Effect: stint.Read, Effects: map[string]stint.Effect{"any name": stint.Once}, MaxOutput: 1, MaxLine: 1024,
		StepTimeout: time.Hour, Grace: time.Minute}
	if err := errors.Join(good().Validate(), full.Validate()); err != nil {
		t.Errorf("good ones are refused: %v", err)
	}
}

func TestFingerprint(t *testing.T) {
	root := t.TempDir()
	dir, bin := filepath.Join(root, "project"), filepath.Join(root, "bin")
	put := func(path, text string, mode os.FileMode) stint.Hash {
		t.Helper()
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), mode)); err != nil {
			t.Fatal(err)
		}
		return sha256.Sum256([]byte(text))
	}
	tool := put(filepath.Join(bin, "tool"), "the program", 0o755)
	put(filepath.Join(root, "first", "tool"), "not executable", 0o644)
	agent := put(filepath.Join(dir, "agent.py"), "the agent", 0o644)
	lib := put(filepath.Join(dir, "lib", "b.py"), "the library", 0o644)
	put(filepath.Join(root, "outside"), "outside", 0o644)
	put(filepath.Join(root, "relative", "tool"), "beside whoever starts it", 0o755)
	t.Chdir(root)
	path := map[string]string{"PATH": "relative:" + filepath.Join(root, "first") + ":" + bin}
	for name, c := range map[string]struct {
		argv []string
		want map[string]stint.Hash
	}{
		"in PATH": {[]string{"tool", "agent.py", "lib/b.py", "lib", "missing.py", "--x=agent.py", "", "../outside", filepath.Join(root, "outside")},
			map[string]stint.Hash{filepath.Join(bin, "tool"): tool, "agent.py": agent, "lib/b.py": lib}},
		"absolute":    {[]string{filepath.Join(bin, "tool"), filepath.Join(dir, "lib", "b.py")}, map[string]stint.Hash{filepath.Join(bin, "tool"): tool, "lib/b.py": lib}},
		"of the tree": {[]string{"./agent.py", "lib/../agent.py"}, map[string]stint.Hash{"agent.py": agent}},
	} {
		t.Run(name, func(t *testing.T) {
			s := exec.Spec{Command: c.argv, Dir: dir, Env: path}
			got, err := s.Fingerprint()
			if err != nil || !maps.Equal(got, c.want) {
				t.Errorf("the fingerprint is %v, %v, want %v", got, err, c.want)
			}
		})
	}
	for name, c := range map[string]struct {
		program string
		exit    int
	}{"not in PATH": {"nothing-like-it", 127}, "missing": {"./missing", 127}, "a folder": {"./lib", 126}, "not executable": {"plain", 126}} {
		t.Run(name, func(t *testing.T) {
			put(filepath.Join(root, "first", "plain"), "not executable", 0o644)
			got, err := exec.Spec{Command: []string{c.program}, Dir: dir, Env: path}.Fingerprint()
			var e *stint.Error
			var start *exec.StartError
			if !errors.As(err, &e) || e.Code != stint.Invalid || e.Op != "" || e.Hint == "" || !errors.As(err, &start) || start.Exit != c.exit {
				t.Errorf("the fingerprint is %v, %v (%+v)", got, err, start)
			}
		})
	}
	t.Run("runs what it names", func(t *testing.T) {
		s := exec.Spec{Command: []string{"sh", "-c", `exit 0`}, Dir: dir, Protocol: exec.None}
		got, err := s.Fingerprint()
		if err != nil || len(got) != 1 {
			t.Fatalf("the fingerprint is %v, %v", got, err)
		}
		program := slices.Collect(maps.Keys(got))[0]
		s.Command[0] = program
		next, err := loop(t, newAgent(t, s), newLoop(1))
		if err != nil || next.End == nil || next.End.Outcome != stint.Completed {
			t.Errorf("%s gave %+v, %v", program, next, err)
		}
	})
}
