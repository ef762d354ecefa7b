package exec

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/child"
	"github.com/stint-dev/stint/internal/protocol"
)

// Protocol is how stint and the program talk.
type Protocol string

// The protocols. A Spec without one speaks [JSONL].
const (
	JSONL Protocol = "jsonl" // JSON lines on standard input and output, version 1
	None  Protocol = "none"  // none: the program is one step, its exit code the outcome
)

// Keep says how long a process lives.
type Keep string

// How long a process lives. A Spec without it uses [KeepLoop].
const (
	KeepLoop    Keep = "loop"    // one process a loop
	KeepSession Keep = "session" // the same one while loop follows loop; gone once the session waits or ends
)

// Bounds and their defaults.
const (
	minLine       = 1 << 10         // a MaxLine below this could not hold a step
	maxOutput     = 1 << 20         // bytes logged a loop, unless the Spec says otherwise
	defaultGrace  = 2 * time.Second // leaves the five seconds of a cancel enough for the kill
	maxGrace      = time.Minute     //
	exitTime      = 5 * time.Second // from end of file on its input to the agent's own exit
	releaseTime   = 2 * time.Second // the same for a kept process, which has nothing to do: a drain waits for it
	silentTime    = time.Second     // from the end of its output to its exit
	catchUpTime   = time.Second     // for what it logged before a message to be read
	keepIdle      = 5 * time.Minute // a kept process that gets no loop for so long is ended
	noStepTimeout = 10 * 365 * 24 * time.Hour
)

// Spec says which program to run and how. The zero value of every member but
// Command is its default. Nobody changes a Spec once it is in use.
type Spec struct {
	// Command is the program and its arguments; no shell reads it. A name without a
	// slash is looked up in PATH.
	Command  []string
	Protocol Protocol
	// Dir is the working directory, and what a relative Command is relative to;
	// empty: this process's.
	Dir string
	// Env is set as it is; it wins over Pass.
	Env map[string]string
	// Pass names variables of this process that the program gets too, where they are
	// set: by default it gets PATH, HOME, LANG, TZ and TMPDIR only (on Windows also
	// what programs there cannot start without).
	Pass []string
	Keep Keep
	// Effect is that of the one step of [None], and of steps that do not say theirs;
	// empty: [stint.Once].
	Effect stint.Effect
	// Effects are by a step's name, and win over what the program says of it.
	Effects map[string]stint.Effect
	// MaxOutput bounds what a loop logs, in bytes; 0: 1 MiB. What is beyond is
	// counted and dropped.
	MaxOutput int64
	// MaxLine bounds a line of the protocol, in bytes; 0: 33 MiB, which is also the most.
	MaxLine int
	// StepTimeout bounds each step; 0: ten minutes under [JSONL], none under [None].
	StepTimeout time.Duration
	// Grace is the time from SIGTERM to SIGKILL after a cancel; 0: 2 s. It is at most
	// a minute; above 2.5 s a canceled tree may take longer than 5 s to be gone.
	Grace time.Duration
	// Offline cuts the program off from every network, this machine's own included, for
	// code that is to be watched and must reach nobody. It fails where
	// [proc.CanOffline] does.
	Offline bool
	// TeeStdout and TeeStderr get what the program writes as it writes it; standard
	// output only under [None], where it is not the protocol. Their errors are
	// ignored. With several sessions at once they are written to concurrently.
	TeeStdout, TeeStderr io.Writer
}

// Validate reports the first member that cannot be used as an [stint.Invalid]
// error that names it as stint.yaml does. It does not look at the file system.
func (s Spec) Validate() error {
	if err := s.validateCommand(); err != nil {
		return err
	}
	if err := s.validateEnv(); err != nil {
		return err
	}
	switch {
	case s.MaxOutput < 0:
		return badMember("max_output", "leave it out for 1 MiB", "it is negative")
	case s.MaxLine != 0 && (s.MaxLine < minLine || s.MaxLine > protocol.MaxLine):
		return badMember("max_line", "leave it out for 33 MiB", "%d bytes; it lies between 1 KiB and 33 MiB", s.MaxLine)
	case s.StepTimeout < 0:
		return badMember("step_timeout", "leave it out for the default", "it is negative")
	case s.Grace < 0 || s.Grace > maxGrace:
		return badMember("grace", "leave it out for 2s", "%v; it lies between 0 and 1m", s.Grace)
	}
	return nil
}

func (s Spec) validateCommand() error {
	if len(s.Command) == 0 || s.Command[0] == "" {
		return badMember("command", "write command: [python3, agent.py]", "it is empty")
	}
	for i, arg := range s.Command {
		if strings.ContainsRune(arg, 0) {
			return badMember(fmt.Sprintf("command[%d]", i), "remove it", "it holds a NUL byte")
		}
	}
	if strings.ContainsRune(s.Dir, 0) {
		return badMember("dir", "remove it", "it holds a NUL byte")
	}
	switch s.Protocol {
	case "", JSONL:
	case None:
		if s.Keep == KeepSession {
			return badMember("keep", "leave it out, or let the program speak the protocol",
				"a program without a protocol cannot be told of a second loop")
		}
	default:
		return badMember("protocol", "use jsonl or none", "%q is not one", s.Protocol)
	}
	if s.Keep != "" && s.Keep != KeepLoop && s.Keep != KeepSession {
		return badMember("keep", "use loop or session", "%q is not one", s.Keep)
	}
	if s.Effect != "" && !protocol.ValidEffect(s.Effect) {
		return badMember("effect", "use read, idempotent or once", "%q is not one", s.Effect)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Effects)) {
		if !protocol.ValidEffect(s.Effects[name]) {
			return badMember("effects."+name, "use read, idempotent or once", "%q is not one", s.Effects[name])
		}
	}
	return nil
}

func (s Spec) validateEnv() error {
	for _, name := range slices.Sorted(maps.Keys(s.Env)) {
		if problem := badName(name); problem != "" {
			return badMember(fmt.Sprintf("env.%q", name), "rename it", "%s", problem)
		}
		if strings.ContainsRune(s.Env[name], 0) {
			return badMember("env."+name, "remove it", "its value holds a NUL byte")
		}
	}
	for i, name := range s.Pass {
		if problem := badName(name); problem != "" {
			return badMember(fmt.Sprintf("pass[%d]", i), "name a variable", "%s", problem)
		}
	}
	return nil
}

func badName(name string) string {
	switch {
	case name == "":
		return "the name of a variable is empty"
	case strings.ContainsAny(name, "=\x00"):
		return "the name of a variable holds '=' or a NUL byte"
	case slices.Contains(ownVariables(), name):
		return name + " is set by stint itself"
	}
	return ""
}

func badMember(name, hint, format string, args ...any) error {
	return &stint.Error{Code: stint.Invalid, Op: "exec agent", Hint: hint,
		Err: fmt.Errorf("%s: %s", name, fmt.Sprintf(format, args...))}
}

// effect is the class of a step that says of itself what claimed says.
func (s Spec) effect(name string, claimed stint.Effect) stint.Effect {
	return protocol.Effect(s.Effects, name, claimed, s.Effect)
}

func (s Spec) outputLimit() int64 {
	if s.MaxOutput == 0 {
		return maxOutput
	}
	return s.MaxOutput
}

func (s Spec) lineLimit() int {
	if s.MaxLine == 0 {
		return protocol.MaxLine
	}
	return s.MaxLine
}

func (s Spec) grace() time.Duration {
	if s.Grace == 0 {
		return defaultGrace
	}
	return s.Grace
}

func ownVariables() []string {
	return []string{"STINT_SESSION", "STINT_NAME", "STINT_LINE", "STINT_LOOP", "STINT_ATTEMPT", "STINT_EPOCH",
		"STINT_PROTOCOL", "STINT_IDEMPOTENCY_KEY"}
}

// variables are those that do not depend on the session.
func (s Spec) variables() map[string]string { return child.Variables(s.Pass, s.Env) }

// environ is the whole environment for a process begun in this loop. key is that
// of the step under None.
func (s Spec) environ(ses stint.Session, epoch int64, key string) []string {
	env := s.variables()
	child.Describe(env, ses, epoch)
	if s.Protocol == None {
		env["STINT_IDEMPOTENCY_KEY"] = key
	} else {
		env["STINT_PROTOCOL"] = "1"
	}
	return child.List(env)
}
