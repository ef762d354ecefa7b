package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/endpoint"
	"github.com/stint-dev/stint/internal/hook"
	"github.com/stint-dev/stint/internal/worktree"
	"github.com/stint-dev/stint/policy"
)

// FileName is what the file is called, in a project's folder or any above.
const FileName = "stint.yaml"

// maxFile bounds the file, in bytes. It is written by hand.
const maxFile = 1 << 20

// File is a stint.yaml that was read without a problem. It is a value; nobody
// changes its maps.
type File struct {
	Path        string                         // absolute when [Load] read it, else as given to [Parse]
	Store       string                         // "sqlite:PATH" with the path joined to the file's folder; empty: none given
	Concurrency int                            // sessions at once, 1 to 10,000
	Agents      map[string]Agent               // by name; may be empty
	Hooks       map[string]*hook.Hook          // by name; may be empty
	Schedules   map[string]Schedule            // by name; may be empty
	Notify      map[string]endpoint.Definition // by name; may be empty
	Policy      []policy.Rule                  // that each of the agents has behind its own

	Quiet endpoint.Quiet // when only urgent endpoints are told; zero: never

	providers map[string]Provider // with those that are built in, by name
}

// Agent is how the sessions of one name run: everything the file says, defaults
// filled in. Empty maps and slices are nil, so that equal agents are deeply equal.
// What a kind has no use for is zero.
type Agent struct {
	Name        string                  `json:"name"`
	Kind        string                  `json:"kind"` // [KindExec], [KindLLM], [KindHTTP] or [KindCLI]
	Command     []string                `json:"command,omitempty"`
	Protocol    Protocol                `json:"protocol,omitempty"`
	Dir         string                  `json:"dir"`               // joined to the file's folder, which it is where a kind has no key dir
	Env         map[string]string       `json:"env,omitempty"`     // literal, "env:NAME" or "file:PATH" with the path joined to the file's folder
	Pass        []string                `json:"pass,omitempty"`    // names copied from stint's environment, sorted
	Keep        Keep                    `json:"keep,omitempty"`    // how long a process lives
	Effect      stint.Effect            `json:"effect,omitempty"`  // of the one step under protocol none
	Effects     map[string]stint.Effect `json:"effects,omitempty"` // by step name; wins over what the program declares
	InDoubt     map[string]InDoubt      `json:"in_doubt,omitempty"`
	Output      int64                   `json:"output"` // bytes of output kept for each loop
	Bounds      Bounds                  `json:"limits"`
	Grace       time.Duration           `json:"grace_ns"` // between asking a process to end and killing it
	Retry       Retry                   `json:"retry"`
	Concurrency int                     `json:"concurrency,omitempty"` // sessions of this agent at once in the store; 0: as many as there is room for
	Done        string                  `json:"done,omitempty"`        // a condition for [CompileDone]; empty: the program says when it is done

	Pin Pin `json:"pin"`

	About
	Kinds
}

// About is what an agent itself need not know: where its sessions work, what people are
// told of it, and when they are asked.
type About struct {
	Workspace   *worktree.Spec    `json:"workspace,omitempty"` // a git worktree for each session; nil: all work in its folder
	Labels      map[string]string `json:"labels,omitempty"`
	Description string            `json:"description,omitempty"` // one line
	Policy      []policy.Rule     `json:"policy,omitempty"`      // its own rules, and those of the file; see [Agent.PolicyRules]
}

// Protocol is how stint and a program talk.
type Protocol string

// The protocols: the first two are those of exec agents, the others of cli agents.
const (
	JSONL    Protocol = "jsonl" // JSON lines on stdin and stdout
	None     Protocol = "none"  // stdout is the log, the exit code the outcome
	Codex    Protocol = "codex"
	Claude   Protocol = "claude"
	OpenCode Protocol = "opencode"
	Gemini   Protocol = "gemini"
	ACP      Protocol = "acp" // the Agent Client Protocol
)

// Keep is how long the process of an agent lives.
type Keep string

// How long a process lives.
const (
	KeepLoop    Keep = "loop"    // a process a loop
	KeepSession Keep = "session" // the same process for the session's loops, as long as its runner holds it
)

// Pin is what happens when a session goes on and its agent is no longer the one
// it began with.
type Pin string

// What happens to a drifted agent.
const (
	PinWarn   Pin = "warn"   // go on with the files as they are now, and say so
	PinStrict Pin = "strict" // refuse
	PinCopy   Pin = "copy"   // run the copy made when the session began
)

// Action is what is done about a once step whose outcome is not known.
type Action string

// What is done about a step in doubt.
const (
	Ask     Action = "ask"     // a person says what happened
	Unknown Action = "unknown" // the loop goes on with a marker for a result
	Verify  Action = "verify"  // a program says what happened
)

// InDoubt is what is done about one step in doubt. Verify is the program's
// command, set for [Verify] only.
type InDoubt struct {
	Do     Action   `json:"do"`
	Verify []string `json:"verify,omitempty"`
}

// Bounds are the limits an agent gives to its sessions; zero means none. At most
// one of DeadlineIn and DeadlineAt is set.
type Bounds struct {
	Wall       time.Duration `json:"wall_ns,omitempty"` // running time
	Idle       time.Duration `json:"idle_ns,omitempty"`
	DeadlineIn time.Duration `json:"deadline_in_ns,omitempty"` // from the session's creation
	DeadlineAt time.Time     `json:"deadline_at,omitzero"`     // UTC
	Loops      int           `json:"loops,omitempty"`
	Steps      int           `json:"steps,omitempty"`
	Cost       stint.Money   `json:"cost,omitempty"`
	// CostDefault says that the file has no word on Cost, which is [DefaultCost]. It is for
	// sessions whose models all have a price: what they use can be counted.
	CostDefault bool  `json:"cost_default,omitempty"`
	Tokens      int64 `json:"tokens,omitempty"`
	ToolCalls   int   `json:"tool_calls,omitempty"`
	Children    int   `json:"children,omitempty"` // at every level below, over the session's life
	Stop        bool  `json:"stop,omitempty"`     // on_limit: stop, instead of waiting for a raised limit
}

// Retry is how a failed loop is tried again: after Initial, then each time Factor
// times as long, at most Max, each give or take the fraction Jitter of itself.
type Retry struct {
	Attempts int           `json:"attempts"` // in all, 1 to 1,000
	Initial  time.Duration `json:"initial_ns"`
	Factor   float64       `json:"factor"` // 1 to 100
	Max      time.Duration `json:"max_ns"` // at least Initial
	Jitter   float64       `json:"jitter"` // 0 to 1
}

// defaults is an exec agent as it is before the file says anything, and the default
// number of sessions at once.
func defaults() (a Agent, concurrency int) {
	return Agent{
		Protocol: JSONL,
		Keep:     KeepLoop,
		Effect:   stint.Once,
		Output:   1 << 20,
		Bounds:   Bounds{Wall: time.Hour, Loops: 50},
		Grace:    90 * time.Second,
		Retry:    Retry{Attempts: 5, Initial: time.Second, Factor: 2, Max: time.Minute, Jitter: 0.2},
		Pin:      PinWarn,
	}, 16
}

// DefaultCost is the limit of money of an agent of kind llm whose limits do not name one,
// in a session: 5 US dollars.
const DefaultCost stint.Money = 5e9

// defaultsOf is defaults for any kind.
func defaultsOf(kind string) Agent {
	a, _ := defaults()
	if kind == KindExec {
		return a
	}
	a.Protocol, a.Keep, a.Effect = "", "", ""
	switch kind {
	case KindCLI:
		a.CLI = &CLI{Hold: 30 * time.Minute}
		return a
	case KindLLM:
		a.Bounds.Cost, a.Bounds.CostDefault = DefaultCost, true
		a.LLM = &LLM{MaxTokens: 8192, Cache: true, Context: Context{Window: 200_000, Compact: 0.8, Excerpt: 32 << 10}}
	case KindHTTP:
		a.HTTP = &HTTP{Timeout: 5 * time.Minute, Idle: time.Minute}
	}
	a.Output, a.Grace = 0, 0
	return a
}

// Limits returns the limits of a session created at the given time. [DefaultCost] is among
// them where it applies, whether or not the models have a price, which is not known here.
func (a *Agent) Limits(created time.Time) stint.Limits {
	b := a.Bounds
	l := stint.Limits{Wall: b.Wall, Idle: b.Idle, Deadline: b.DeadlineAt, Loops: b.Loops, Steps: b.Steps,
		Tokens: b.Tokens, Cost: b.Cost, ToolCalls: b.ToolCalls, Children: b.Children, Stop: b.Stop}
	if b.DeadlineIn > 0 {
		l.Deadline = created.Add(b.DeadlineIn).UTC().Truncate(time.Microsecond)
	}
	return l
}

// Agent returns the agent of that name, or [stint.NotFound] with the names there are.
func (f *File) Agent(name string) (Agent, error) {
	if a, ok := f.Agents[name]; ok {
		return a, nil
	}
	names := slices.Sorted(maps.Keys(f.Agents))
	e := stint.NotFound.Errorf("config", "%s has no agent %q", f.Path, clip(name, 64))
	switch near := nearest(name, names); {
	case near != "":
		e.Hint = fmt.Sprintf("did you mean %s?", near)
	case len(names) > 0:
		e.Hint = "its agents are " + clip(strings.Join(names, ", "), 200)
	default:
		e.Hint = "add the agent under agents: in the file"
	}
	return Agent{}, e
}

// Find returns the path of the nearest stint.yaml: in dir, else in the closest
// folder above it. What cannot be looked at counts as not there.
func Find(dir string) (path string, ok bool) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", false
	}
	for {
		path = filepath.Join(dir, FileName)
		if info, err := os.Stat(path); err == nil && !info.IsDir() {
			return path, true
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", false
		}
		dir = up
	}
}

// Load reads a file. Relative paths in it are joined to its folder, so what comes
// out is absolute. A missing file is [stint.NotFound]; everything else that is
// wrong is [stint.Invalid] and, for the content, a [Problems].
func Load(path string) (*File, error) {
	abs, b, err := open(path)
	if err != nil {
		return nil, err
	}
	f, err := parse(path, filepath.Dir(abs), b, readPlain)
	if err != nil {
		return nil, err
	}
	f.Path = abs
	return f, nil
}

// open returns the absolute path and the bytes of a file, with the errors of [Load].
func open(path string) (abs string, b []byte, err error) {
	if abs, err = filepath.Abs(path); err != nil {
		return "", nil, &stint.Error{Code: stint.Invalid, Op: "config", Err: err, Hint: "give the path of the file as an absolute one"}
	}
	b, err = read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil, &stint.Error{Code: stint.NotFound, Op: "config", Err: err, Hint: "`stint init` writes a commented " + FileName}
	}
	if err != nil {
		return "", nil, &stint.Error{Code: stint.Invalid, Op: "config", Err: err, Hint: "it must be a file that this user may read"}
	}
	return abs, b, nil
}

// Outline tells of a file that [Load] refuses where its store is, or that it names none:
// a File without agents. ok is false where what it says of the store cannot be read.
func Outline(path string) (f *File, ok bool) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, false
	}
	b, err := read(path)
	if err != nil || len(b) > maxFile {
		return nil, false
	}
	f = &File{Path: abs}
	d := &decoder{src: newSource(path, b), dir: filepath.Dir(abs)}
	root := d.src.document()
	if root != nil {
		d.section(root, "", "a mapping", []member{
			{"store", func(n *node, path string) { d.store(n, path, &f.Store) }},
		})
		return f, root.shape == mapping && !slices.ContainsFunc(d.src.problems, func(p Problem) bool { return p.Path == "store" })
	}
	// It is no YAML: what looks like the key has to be one line that says it all.
	lines := regexp.MustCompile(`(?m)^.*\bstore["']?[ \t]*:.*$`).FindAll(b, -1)
	switch {
	case len(lines) == 0:
		return f, true
	case len(lines) > 1 || !strings.HasPrefix(string(lines[0]), "store"):
		return nil, false
	}
	line, err := parse(path, d.dir, bytes.TrimSuffix(lines[0], []byte("\r")), nil)
	if err != nil {
		return nil, false
	}
	f.Store = line.Store
	return f, true
}

// read returns the file's bytes, one more than allowed at most.
func read(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxFile+1))
}

// Parse reads the bytes of a file called name, which messages mention and to
// whose folder relative paths are joined; nothing is opened, so a text or a schema
// that the file has in another one is an error. Every problem is [stint.Invalid], its
// cause a [Problems] with all of them. It never panics.
func Parse(name string, b []byte) (*File, error) {
	return parse(name, filepath.Dir(name), b, nil)
}

// ParseWith is Parse, but texts and schemas may stand in other files, which readFile
// reads: it is called with a path that is joined to the folder of name.
func ParseWith(name string, b []byte, readFile func(path string) ([]byte, error)) (*File, error) {
	return parse(name, filepath.Dir(name), b, readFile)
}

func parse(name, dir string, b []byte, readFile func(string) ([]byte, error)) (*File, error) {
	d := &decoder{src: newSource(name, b), dir: dir, read: readFile}
	f := &File{Path: name}
	if root := d.src.document(); root != nil {
		d.file(root, f)
	}
	if err := d.src.err(); err != nil {
		return nil, err
	}
	return f, nil
}
