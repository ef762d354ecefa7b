package mcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/jsonx"
	"github.com/stint-dev/stint/internal/safedial"
	"github.com/stint-dev/stint/tool"
)

// Transport is how a server is spoken to.
type Transport string

// The transports.
const (
	Stdio Transport = "stdio" // a program, started here
	HTTP  Transport = "http"  // a URL, by streamable HTTP
)

// Spec describes a server. In Command, Args, Env, Dir, URL and Headers a ${VAR} stands
// for a variable, and ${VAR:-default} for one that may be unset; they are put in when the
// server is started, so that a Spec holds no secret that its author did not write into it.
type Spec struct {
	Name      string // the tools are named NAME__tool
	Transport Transport
	Command   string            // stdio: the program
	Args      []string          // stdio: its arguments
	Env       map[string]string // stdio: variables, besides PATH, HOME, LANG, TZ and TMPDIR
	Dir       string            // stdio: working directory; empty: stint's own
	URL       string            // http
	Headers   map[string]string // http
	Allow     []string          // http: hosts that may have an address of any kind
	// Trust lets the server's hints decide the effect of its tools. Without it all are once.
	Trust bool
	// Approve is by the tool's own name.
	Approve   map[string]tool.Approve
	Timeout   time.Duration // of one call; 0: the step's
	MaxOutput int           // bytes kept of a result; 0: tool.MaxText
}

// file is what is read of a configuration file. The programs that share these files put
// more into them than one of them knows, so other members are passed over.
type file struct {
	Servers map[string]json.RawMessage `json:"mcpServers"`
}

type entry struct {
	Type    string            `json:"type"`
	Command string            `json:"command"`
	Args    []string          `json:"args"`
	Env     map[string]string `json:"env"`
	Cwd     string            `json:"cwd"`
	URL     string            `json:"url"`
	Headers map[string]string `json:"headers"`
}

// ReadConfig reads the mcpServers of a .mcp.json or a claude_desktop_config.json, in the
// order of their names. [stint.Invalid] names the server and what is wrong with it. No
// variable is looked up.
func ReadConfig(b []byte) ([]Spec, error) {
	bad := func(err error) ([]Spec, error) {
		return nil, &stint.Error{Code: stint.Invalid, Op: "mcp configuration", Err: err,
			Hint: `it is {"mcpServers": {"NAME": {"command": …, "args": […]}}}, or with "url" for a server elsewhere`}
	}
	if err := jsonx.Check(b, jsonx.Limits{Size: 4 << 20, Depth: 32}); err != nil {
		return bad(err)
	}
	var f file
	if err := json.Unmarshal(b, &f); err != nil {
		return bad(err)
	}
	if f.Servers == nil {
		return bad(errors.New("it has no mcpServers"))
	}
	var specs []Spec
	for _, name := range slices.Sorted(maps.Keys(f.Servers)) {
		var e entry
		if err := json.Unmarshal(f.Servers[name], &e); err != nil {
			return bad(fmt.Errorf("the server %q: %w", name, err))
		}
		s, err := e.spec(name)
		if err == nil {
			err = s.check()
		}
		if err != nil {
			return bad(fmt.Errorf("the server %q: %w", name, err))
		}
		specs = append(specs, s)
	}
	return specs, nil
}

// spec makes a Spec of an entry; one without a type is what its members make it.
func (e entry) spec(name string) (Spec, error) {
	s := Spec{Name: name, Command: e.Command, Args: e.Args, Env: e.Env, Dir: e.Cwd, URL: e.URL, Headers: e.Headers}
	switch e.Type {
	case "stdio":
		s.Transport = Stdio
	case "http", "streamable-http", "streamableHttp":
		s.Transport = HTTP
	case "":
		s.Transport = Stdio
		if e.Command == "" && e.URL != "" {
			s.Transport = HTTP
		}
	case "sse":
		return s, errors.New("the type sse is the transport of 2024, which is not spoken here; ask the server for http")
	default:
		return s, fmt.Errorf("there is no type %q; write stdio or http", e.Type)
	}
	return s, nil
}

// check tells whether a server can be started from the Spec.
func (s Spec) check() error {
	switch {
	case s.Name == "":
		return errors.New("it has no name")
	case s.Transport == Stdio && (s.URL != "" || len(s.Headers) > 0):
		return errors.New("it has a URL or headers, and is started as a program; keep one")
	case s.Transport == Stdio && s.Command == "":
		return errors.New("it has no command")
	case s.Transport == HTTP && (s.Command != "" || len(s.Args) > 0 || len(s.Env) > 0 || s.Dir != ""):
		return errors.New("it has a command or variables, and is reached by a URL; keep one")
	case s.Transport == HTTP && s.URL == "":
		return errors.New("it has no url")
	case s.Transport != Stdio && s.Transport != HTTP:
		return fmt.Errorf("there is no transport %q", s.Transport)
	}
	for name := range s.Env {
		if name == "" || strings.ContainsAny(name, "=\x00") {
			return fmt.Errorf("%q is not the name of a variable", name)
		}
	}
	return safedial.CheckAllow(s.Allow)
}

// reference is ${VAR} or ${VAR:-default}. What is not exactly that stays as it is.
const reference = `\$\{([A-Za-z_][A-Za-z0-9_]*)(:-([^}]*))?\}`

// expander puts variables into texts. It notes what is missing and which values are secret.
type expander struct {
	lookup  func(string) (string, bool)
	pattern *regexp.Regexp
	missing []string
	secrets map[string]string
}

// expand returns text with its variables; where says for people which text that is, and
// secret that what comes in is.
func (x *expander) expand(where, text string, secret bool) string {
	return x.pattern.ReplaceAllStringFunc(text, func(ref string) string {
		m := x.pattern.FindStringSubmatch(ref)
		v, ok := x.lookup(m[1])
		switch {
		case ok:
			if !commonName(m[1]) && (secretName(m[1]) || secretName(where) || secret && len(v) >= longValue) {
				x.secrets[m[1]] = v
			}
			return v
		case m[2] != "":
			return m[3]
		}
		x.missing = append(x.missing, where+" needs the variable "+m[1])
		return ""
	})
}

// longValue is how long a value in a header must be to be taken for a secret when nothing
// is called like one: a short word would be found in every output.
const longValue = 8

// commonName reports variables whose value everybody knows.
func commonName(name string) bool {
	return slices.Contains([]string{"HOME", "USER", "LOGNAME", "PATH", "PWD", "TMPDIR", "LANG", "TZ", "SHELL", "HOSTNAME"}, name)
}

// secretName reports that something called so is likely to be kept from others.
func secretName(name string) bool {
	name = strings.ToUpper(name)
	return slices.ContainsFunc([]string{"TOKEN", "KEY", "SECRET", "PASS", "AUTH", "CRED", "COOKIE"},
		func(s string) bool { return strings.Contains(name, s) })
}

// expand returns the Spec with its variables put in, and the values that nobody may see,
// by name. [stint.Invalid] names every variable that is missing, and no value.
func (s Spec) expand(lookup func(string) (string, bool)) (Spec, map[string]string, error) {
	x := &expander{lookup: lookup, pattern: regexp.MustCompile(reference), secrets: map[string]string{}}
	s.Command = x.expand("command", s.Command, false)
	s.Dir = x.expand("cwd", s.Dir, false)
	s.URL = x.expand("url", s.URL, false)
	s.Args = slices.Clone(s.Args)
	for i, a := range s.Args {
		s.Args[i] = x.expand(fmt.Sprintf("args[%d]", i), a, false)
	}
	all := func(where string, in map[string]string, secret bool) map[string]string {
		out := make(map[string]string, len(in))
		for _, name := range slices.Sorted(maps.Keys(in)) {
			out[name] = x.expand(where+"."+name, in[name], secret)
			if secretName(name) && out[name] == in[name] && in[name] != "" {
				x.secrets[name] = in[name] // written into the file itself
			}
		}
		return out
	}
	s.Env = all("env", s.Env, false)
	s.Headers = all("headers", s.Headers, true)
	if len(x.missing) > 0 {
		return s, nil, &stint.Error{Code: stint.Invalid, Op: "mcp server " + s.Name,
			Err:  fmt.Errorf("%s, which is not set", strings.Join(x.missing, "; ")),
			Hint: "set it where stint runs, or write ${NAME:-default}"}
	}
	return s, x.secrets, nil
}
