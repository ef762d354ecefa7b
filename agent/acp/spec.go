package acp

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/child"
)

// Approve says whether a person is asked before a call.
type Approve string

// When a person is asked. Without a word a person is asked whatever the agent asks.
const (
	Always Approve = "always" // whatever the agent asks, and before it writes a file through stint
	Never  Approve = "never"  // permission is given at once
)

// Bounds and their defaults.
const (
	maxOutput    = 1 << 20 // bytes logged a loop, unless the Spec says otherwise
	defaultHold  = 30 * time.Minute
	defaultGrace = 2 * time.Second // leaves the five seconds of a cancel enough for the kill
	maxGrace     = time.Minute
	startTime    = 2 * time.Minute        // for the agent to be ready for a prompt
	cancelTime   = 500 * time.Millisecond // from a cancel to SIGTERM
	leaveTime    = 3 * time.Second        // from the end of its input to SIGTERM
	silentTime   = 5 * time.Second        // from the end of its output to SIGTERM
	calmTime     = 500 * time.Millisecond // without news of a session that was loaded, before it is prompted
	settleTime   = 50 * time.Millisecond  // agents say that a call is in progress just before they ask for it
	noTimeout    = 10 * 365 * 24 * time.Hour
)

// Spec says which agent to run and how. The zero value of every member but Command is
// its default. Nobody changes a Spec once it is in use.
type Spec struct {
	// Command is the program and its arguments: [opencode acp]. A name without a slash is
	// looked up in PATH.
	Command []string
	// Dir is the working directory, and the folder below which the agent reads and writes
	// files through stint; empty: this process's.
	Dir string
	// Env is set as it is; it wins over Pass.
	Env map[string]string
	// Pass names variables of this process that the agent gets too, where they are set.
	// It always gets PATH, HOME, LANG, TZ and TMPDIR.
	Pass []string
	// Effects are by the protocol's kind of a tool: read, search, think and fetch are
	// [stint.Read], every other one is [stint.Once], unless it is named here.
	Effects map[string]stint.Effect
	// Approve is by the protocol's kind of a tool: read, edit, delete, move, search,
	// execute, think, fetch, switch_mode, other.
	Approve map[string]Approve
	// Hold is how long the agent's process is kept for a decision, with the session's
	// lease; then the session waits as a row. 0: 30 minutes. Below zero: it is not kept.
	Hold time.Duration
	// Interactive leaves the session waiting for a message after each turn; otherwise
	// the session ends with its first turn.
	Interactive bool
	// MaxOutput bounds what a loop logs from one question to the next, in bytes; 0: 1 MiB.
	// What is beyond is counted and dropped, and so is what is beyond 64 KiB while a
	// question is held.
	MaxOutput int64
	// StepTimeout bounds each call and each answer of the model; 0: no bound. A
	// [stint.Once] call that runs into it is in doubt.
	StepTimeout time.Duration
	// Grace is the time from SIGTERM to SIGKILL; 0: 2 s. It is at most a minute; above
	// 2 s a canceled tree may take longer than 5 s to be gone.
	Grace time.Duration
}

// Validate reports the first member that cannot be used as an [stint.Invalid] error
// that names it as stint.yaml does. It does not look at the file system.
func (s Spec) Validate() error {
	if len(s.Command) == 0 {
		return badMember("command", "write command: [opencode, acp]", "it is missing")
	}
	for i, arg := range s.Command {
		if strings.ContainsRune(arg, 0) || i == 0 && arg == "" {
			return badMember(fmt.Sprintf("command[%d]", i), "write command: [opencode, acp]", "it is empty or holds a NUL byte")
		}
	}
	if strings.ContainsRune(s.Dir, 0) {
		return badMember("dir", "remove it", "it holds a NUL byte")
	}
	for _, name := range slices.Concat(slices.Sorted(maps.Keys(s.Env)), s.Pass) {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.ContainsRune(s.Env[name], 0) {
			return badMember("env", "name a variable, as in env: {HOME: /srv/agent}", "%q cannot be set", name)
		}
		if strings.HasPrefix(name, "STINT_") {
			return badMember("env", "rename it", "%s is set by stint itself", name)
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(s.Effects)) {
		if err := checkKind("effects", kind); err != nil {
			return err
		}
		switch s.Effects[kind] {
		case stint.Read, stint.Idempotent, stint.Once:
		default:
			return badMember("effects."+kind, "use read, idempotent or once", "%q is not one", s.Effects[kind])
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(s.Approve)) {
		if err := checkKind("approve", kind); err != nil {
			return err
		}
		if a := s.Approve[kind]; a != Always && a != Never {
			return badMember("approve."+kind, "use always or never", "%q is neither", a)
		}
	}
	switch {
	case s.MaxOutput < 0:
		return badMember("max_output", "leave it out for 1 MiB", "it is negative")
	case s.StepTimeout < 0:
		return badMember("step_timeout", "leave it out for none", "it is negative")
	case s.Grace < 0 || s.Grace > maxGrace:
		return badMember("grace", "leave it out for 2s", "%v; it lies between 0 and 1m", s.Grace)
	}
	return nil
}

// The kinds of tools that the protocol has, version 1.
const (
	kindEdit  = "edit"
	kindOther = "other"
)

func kinds() []string {
	return []string{"read", kindEdit, "delete", "move", "search", "execute", "think", "fetch", "switch_mode", kindOther}
}

func checkKind(member, kind string) error {
	if slices.Contains(kinds(), kind) {
		return nil
	}
	return badMember(member+"."+kind, "use one of "+strings.Join(kinds(), ", "), "%q is no kind of tool", kind)
}

func badMember(name, hint, format string, args ...any) error {
	return &stint.Error{Code: stint.Invalid, Op: "acp agent", Hint: hint,
		Err: fmt.Errorf("%s: %s", name, fmt.Sprintf(format, args...))}
}

// effect is the class of a kind of tool.
func (s Spec) effect(kind string) stint.Effect {
	if e := s.Effects[kind]; e != "" {
		return e
	}
	switch kind {
	case "read", "search", "think", "fetch":
		return stint.Read
	}
	return stint.Once
}

// name is the agent's, as steps and errors show it.
func (s Spec) name() string {
	base := filepath.Base(s.Command[0])
	name, _ := bound(strings.TrimSuffix(base, filepath.Ext(base)), 100)
	if name == "" {
		return "agent"
	}
	return name
}

func (s Spec) outputLimit() int64 {
	if s.MaxOutput == 0 {
		return maxOutput
	}
	return s.MaxOutput
}

func (s Spec) hold() time.Duration {
	if s.Hold == 0 {
		return defaultHold
	}
	return max(s.Hold, 0)
}

func (s Spec) grace() time.Duration {
	if s.Grace == 0 {
		return defaultGrace
	}
	return s.Grace
}

func (s Spec) timeout() time.Duration {
	if s.StepTimeout == 0 {
		return noTimeout
	}
	return s.StepTimeout
}

func (s Spec) environ(ses stint.Session, epoch int64) []string {
	env := child.Variables(s.Pass, s.Env)
	child.Describe(env, ses, epoch)
	return child.List(env)
}
