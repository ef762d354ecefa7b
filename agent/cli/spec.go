package cli

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/child"
)

// Protocol says which CLI it is: how it is called, and what its stream means.
type Protocol string

// The CLIs, and the versions that the package was written against.
const (
	Codex    Protocol = "codex"    // OpenAI Codex CLI 0.169: codex exec --json
	Claude   Protocol = "claude"   // Claude Code 2.1: claude -p --output-format stream-json; by its documentation
	OpenCode Protocol = "opencode" // OpenCode 1.18: opencode run --format json
	Gemini   Protocol = "gemini"   // Gemini CLI 0.61: gemini -o stream-json
)

// Bounds and their defaults.
const (
	maxOutput    = 1 << 20         // bytes logged a loop, unless the Spec says otherwise
	defaultGrace = 2 * time.Second // leaves the five seconds of a cancel enough for the kill
	maxGrace     = time.Minute
	exitTime     = 10 * time.Second     // from the end of a turn to the CLI's own exit
	silentTime   = 5 * time.Second      // from the end of its output to its exit
	gatherTime   = 5 * time.Millisecond // longer, and a crash would find more that is not in the journal
	noTimeout    = 10 * 365 * 24 * time.Hour
)

// Spec says which CLI to run and how. The zero value of every member but Protocol is
// its default. Nobody changes a Spec once it is in use.
type Spec struct {
	// Command is the program and flags of its own, which stand before those that the
	// protocol needs: [codex --sandbox workspace-write]. Empty: the program that
	// [Preset] names. A name without a slash is looked up in PATH.
	Command  []string
	Protocol Protocol
	// Dir is the working directory; empty: this process's. CLIs find their sessions by
	// it, so it must not change while a session lives.
	Dir string
	// Env is set as it is; it wins over Pass.
	Env map[string]string
	// Pass names variables of this process that the CLI gets too, where they are set. It
	// always gets PATH, HOME, LANG, TZ and TMPDIR. The CLI keeps its own sessions and its
	// login below HOME, or where a variable of its own says.
	Pass []string
	// Effects are by a tool's name as the journal has it, and win over what the package
	// knows: a tool that only looks is [stint.Read], every other one [stint.Once].
	Effects map[string]stint.Effect
	// Interactive leaves the session waiting for a message after each turn; otherwise
	// the session ends with its first turn.
	Interactive bool
	// MaxOutput bounds what a loop logs, in bytes; 0: 1 MiB. What is beyond is counted
	// and dropped.
	MaxOutput int64
	// StepTimeout bounds each call and each answer of the model; 0: no bound. A
	// [stint.Once] call that runs into it is in doubt.
	StepTimeout time.Duration
	// Grace is the time from SIGTERM to SIGKILL after a cancel; 0: 2 s. It is at most a
	// minute; above 2.5 s a canceled tree may take longer than 5 s to be gone.
	Grace time.Duration
}

// Preset is a Spec that runs a CLI as it is installed: its program, and the variables
// that hold its keys and say where its files are. It has none of the flags by which a
// CLI may do more than its own configuration allows. A protocol that there is not
// gives a Spec that [New] refuses.
func Preset(p Protocol) Spec {
	s := Spec{Protocol: p, Pass: []string{"USER", "SHELL", "TERM", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"}}
	add := func(program string, names ...string) {
		s.Command = []string{program}
		s.Pass = append(s.Pass, names...)
	}
	switch p {
	case Codex:
		add("codex", "CODEX_HOME", "CODEX_API_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL")
	case Claude:
		add("claude", "CLAUDE_CONFIG_DIR", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL", "CLAUDE_CODE_OAUTH_TOKEN")
	case OpenCode:
		add("opencode", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "OPENCODE_CONFIG",
			"ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "OPENROUTER_API_KEY")
	case Gemini:
		add("gemini", "GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_CLOUD_PROJECT", "GOOGLE_CLOUD_LOCATION",
			"GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_GEMINI_BASE_URL")
	}
	return s
}

// Argv is the command line of one turn, whose prompt comes on standard input. resume
// is the CLI's own id of the session to go on with; empty: a new one.
func (s Spec) Argv(resume string) []string {
	command := s.Command
	if len(command) == 0 {
		command = Preset(s.Protocol).Command
	}
	if len(command) == 0 {
		return nil
	}
	with := func(flag string, rest ...string) []string {
		if resume == "" {
			return rest
		}
		return append([]string{flag, resume}, rest...)
	}
	program, own := command[:1:1], command[1:]
	switch s.Protocol {
	case Codex: // flags of exec itself stand before the subcommand
		return slices.Concat(program, []string{"exec", "--json"}, own, with("resume", "-"))
	case Claude:
		return slices.Concat(program, own, []string{"-p", "--output-format", "stream-json", "--verbose"}, with("--resume"))
	case OpenCode:
		return slices.Concat(program, []string{"run"}, own, []string{"--format", "json"}, with("--session"))
	default:
		return slices.Concat(program, own, []string{"--output-format", "stream-json"}, with("--resume"))
	}
}

// Validate reports the first member that cannot be used as an [stint.Invalid] error
// that names it as stint.yaml does. It does not look at the file system.
func (s Spec) Validate() error {
	switch s.Protocol {
	case Codex, Claude, OpenCode, Gemini:
	default:
		return badMember("protocol", "use codex, claude, opencode or gemini", "%q is not one", s.Protocol)
	}
	for i, arg := range s.Command {
		if strings.ContainsRune(arg, 0) || i == 0 && arg == "" {
			return badMember(fmt.Sprintf("command[%d]", i), "write command: [codex]", "it is empty or holds a NUL byte")
		}
	}
	if strings.ContainsRune(s.Dir, 0) {
		return badMember("dir", "remove it", "it holds a NUL byte")
	}
	for _, name := range slices.Concat(slices.Sorted(maps.Keys(s.Env)), s.Pass) {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.ContainsRune(s.Env[name], 0) {
			return badMember("env", "name a variable, as in env: {CODEX_HOME: /srv/codex}", "%q cannot be set", name)
		}
		if strings.HasPrefix(name, "STINT_") {
			return badMember("env", "rename it", "%s is set by stint itself", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Effects)) {
		switch s.Effects[name] {
		case stint.Read, stint.Idempotent, stint.Once:
		default:
			return badMember("effects."+name, "use read, idempotent or once", "%q is not one", s.Effects[name])
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

func badMember(name, hint, format string, args ...any) error {
	return &stint.Error{Code: stint.Invalid, Op: "cli agent", Hint: hint,
		Err: fmt.Errorf("%s: %s", name, fmt.Sprintf(format, args...))}
}

// effect is the class of a call.
func (s Spec) effect(c *call) stint.Effect {
	if e := s.Effects[c.Name]; e != "" {
		return e
	}
	return c.Effect
}

func (s Spec) outputLimit() int64 {
	if s.MaxOutput == 0 {
		return maxOutput
	}
	return s.MaxOutput
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
