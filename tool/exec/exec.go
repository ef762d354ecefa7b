package exec

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/proc"
	"github.com/stint-dev/stint/tool"
)

// Spec describes a program as a tool.
type Spec struct {
	Name        string
	Description string
	Schema      json.RawMessage // of the arguments; nil: any object
	// Command is the program and its arguments, each a [tool.Template]. An element with an
	// argument that the call leaves out, or sets to null, is left out with it. A string that
	// begins with - is refused where it would begin an element, since a program would take
	// it for an option, unless an element -- stands before it.
	Command []string
	// Shell has /bin/sh read Command, which is one element then and no template: the
	// arguments are in the environment as STINT_ARG_NAME, to be used as "$STINT_ARG_NAME".
	Shell bool
	Dir   string // working directory; empty: stint's own
	// Env is variables to set. PATH, HOME, LANG, TZ and TMPDIR are taken from stint's own
	// environment where it does not name them.
	Env map[string]string
	// Secrets is variables whose value nobody else may see; where the output has one, it is
	// replaced by {{secret:NAME}}.
	Secrets   map[string]tool.Secret
	Effect    stint.Effect  // empty: once
	Timeout   time.Duration // of one call; 0: the step's
	Grace     time.Duration // between SIGTERM and SIGKILL; 0: 2 s
	MaxOutput int           // bytes kept of its output; 0: tool.MaxText
	Approve   tool.Approve
	Parallel  bool
	Taints    bool
}

// maxStderr is how much of the error stream is kept: its end says what went wrong.
const maxStderr = 64 << 10

// New makes a tool of a Spec. [stint.Invalid] for one that can never be called.
func New(s Spec) (tool.Tool, error) {
	p := &program{spec: s}
	bad := func(err error, hint string) (tool.Tool, error) {
		return tool.Tool{}, &stint.Error{Code: stint.Invalid, Op: fmt.Sprintf("tool %.100q", s.Name), Err: err, Hint: hint}
	}
	if len(s.Command) == 0 || s.Command[0] == "" {
		return bad(errors.New("it has no command"), "name the program and its arguments")
	}
	if s.Shell && len(s.Command) != 1 {
		return bad(errors.New("a shell reads one text, not a list"), `write the command as one element, with "$STINT_ARG_NAME" for arguments`)
	}
	for name := range s.Env {
		if _, twice := s.Secrets[name]; twice {
			return bad(fmt.Errorf("%s is a variable and a secret", name), "keep one")
		}
	}
	for name := range maps.Keys(s.Secrets) {
		if !variable(name) {
			return bad(fmt.Errorf("%.100q is not the name of a variable", name), "use letters, digits and _")
		}
	}
	for name, v := range s.Env {
		if !variable(name) || strings.Contains(v, "\x00") {
			return bad(fmt.Errorf("the variable %.100q cannot be set", name), "use letters, digits and _ for names, and no NUL in values")
		}
	}
	if !s.Shell {
		for i, element := range s.Command {
			t, err := tool.ParseTemplate(element)
			if err == nil {
				err = tool.CheckNames(t.Names(), s.Schema)
			}
			if err != nil {
				return bad(fmt.Errorf("element %d of its command: %w", i+1, err), hintOf(err))
			}
			p.argv = append(p.argv, t)
		}
		if _, fixed := p.argv[0].Text(); !fixed {
			return bad(errors.New("an argument would choose the program"), "name the program itself")
		}
	}
	return tool.Tool{Name: s.Name, Description: s.Description, Schema: s.Schema, Effect: s.Effect, Parallel: s.Parallel,
		Timeout: s.Timeout, Approve: s.Approve, Taints: s.Taints, Source: "exec", Caller: p}, nil
}

func hintOf(err error) string {
	var e *stint.Error
	if errors.As(err, &e) {
		return e.Hint
	}
	return ""
}

func variable(name string) bool {
	ok := name != "" && (name[0] < '0' || name[0] > '9')
	for _, c := range []byte(name) {
		ok = ok && (c == '_' || '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z')
	}
	return ok
}

var _ tool.Caller = (*program)(nil)

// program is the caller of one Spec.
type program struct {
	spec Spec
	argv []tool.Template
}

// Call runs the program once.
func (p *program) Call(ctx context.Context, c tool.Call) (tool.Output, error) {
	args, err := tool.ReadArgs(c.Args)
	if err != nil {
		return tool.Output{}, stint.Definite(err)
	}
	argv, wrong := p.command(args)
	if wrong != "" {
		return tool.Errorf("%s was not run: %s", p.spec.Name, wrong), nil
	}
	secrets, err := p.secrets()
	if err != nil {
		return tool.Output{}, tool.NotBegun(err)
	}
	if p.spec.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, p.spec.Timeout, fmt.Errorf("its time of %v was up", p.spec.Timeout))
		defer cancel()
	}
	if ctx.Err() != nil {
		return tool.Output{}, tool.NotBegun(context.Cause(ctx))
	}
	env, wrong := p.environ(c, args, secrets)
	if wrong != "" {
		return tool.Errorf("%s was not run: %s", p.spec.Name, wrong), nil
	}
	running, err := proc.Start(ctx, proc.Spec{
		Argv: argv, Dir: p.spec.Dir, Env: env, Name: p.spec.Name, Grace: p.spec.Grace,
		Stdin: proc.Stream{Pipe: true}, Stdout: proc.Stream{Pipe: true}, Stderr: proc.Stream{Pipe: true},
	})
	if err != nil {
		return p.notStarted(ctx, err)
	}
	return p.finish(ctx, running, c.Args, secrets)
}

// notStarted says what a program that did not start leaves behind: nothing, unless it was
// told to end as it began.
func (p *program) notStarted(ctx context.Context, err error) (tool.Output, error) {
	switch {
	case ctx.Err() != nil:
		return tool.Output{}, fmt.Errorf("%s was told to end as it began: %w", p.spec.Name, context.Cause(ctx))
	case errors.Is(err, syscall.E2BIG):
		return tool.Errorf("%s was not run: an argument is longer than the system takes for a program", p.spec.Name), nil
	}
	var errno syscall.Errno
	e := &stint.Error{Code: stint.Invalid, Op: "tool " + p.spec.Name, Err: err, Hint: "look at the tool's command"}
	if errors.As(err, &errno) && (errno.Temporary() || errno == syscall.ENOMEM || errno == syscall.EAGAIN) {
		e.Code, e.Hint = stint.Unavailable, "the system would not start it for now"
		return tool.Output{}, tool.NotBegun(e)
	}
	return tool.Output{}, stint.Definite(e)
}

// finish feeds the program, waits for its end and says what it gave.
func (p *program) finish(ctx context.Context, running *proc.Proc, args json.RawMessage, secrets map[string]string) (tool.Output, error) {
	out, errs := tool.NewKeep(p.spec.MaxOutput), &tail{limit: maxStderr}
	var streams sync.WaitGroup
	streams.Go(func() { drain(out, running.Stdout()) })
	streams.Go(func() { drain(errs, running.Stderr()) })
	streams.Go(func() {
		_, _ = running.Stdin().Write(args) // a program need not read it
		running.Stdin().Close()
	})
	x := running.Wait()
	streams.Wait()
	how := "exit status " + strconv.Itoa(x.Code)
	switch {
	case x.Killed:
		cause := context.Cause(ctx)
		if cause == nil {
			cause = errors.New("it was killed by stint")
		}
		return tool.Output{}, fmt.Errorf("%s was told to end before it was done: %w", p.spec.Name, cause)
	case x.Signal != "":
		how = "ended by " + x.Signal
	case x.Code < 0:
		return tool.Output{}, stint.Unavailable.Errorf("tool "+p.spec.Name, "nobody knows how it ended: its guard was killed")
	}
	said := out.Capped()
	o := tool.Output{Text: tool.Redact(said.Text(), secrets), Error: x.Code != 0}
	stderr := tool.Redact(errs.text(), secrets)
	if o.Error {
		o.Text = section(o.Text, "["+how+"]")
		if stderr != "" {
			o.Text = section(o.Text, "[what it wrote to stderr]\n"+stderr)
		}
	} else if said.Dropped == 0 {
		o.Data = tool.JSON([]byte(tool.Redact(string(said.Bytes), secrets)))
	}
	return o, nil
}

func section(text, more string) string {
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return text + more
}

// command puts the arguments in their places; wrong says why it cannot.
func (p *program) command(args tool.Args) (argv []string, wrong string) {
	if p.spec.Shell {
		return []string{"/bin/sh", "-c", p.spec.Command[0]}, ""
	}
	options := true // the program still looks for options
	for _, t := range p.argv {
		missing := slices.ContainsFunc(t.Names(), func(n string) bool { return !args.Has(n) })
		if missing {
			continue
		}
		element, _ := t.Expand(func(n string) (string, error) { return args.Text(n), nil })
		if name, ok := t.Begins(); ok && options && strings.HasPrefix(element, "-") && args.IsString(name) {
			return nil, fmt.Sprintf("the argument %s begins with -, which the program would take for an option; "+
				"write a path as ./%s, or leave the - out", name, cmp.Or(strings.TrimLeft(args.Text(name), "-"), "-"))
		}
		if strings.Contains(element, "\x00") {
			return nil, "an argument has a NUL in it, which no program's argument can have; leave it out"
		}
		options = options && element != "--"
		argv = append(argv, element)
	}
	return argv, ""
}

// secrets asks for the values; its error names the variable and no value.
func (p *program) secrets() (map[string]string, error) {
	values := make(map[string]string, len(p.spec.Secrets))
	for name, secret := range p.spec.Secrets {
		v, err := secret()
		if err == nil && strings.Contains(v, "\x00") {
			err = errors.New("it has a NUL in it")
		}
		if err != nil {
			return nil, &stint.Error{Code: stint.Unavailable, Op: "tool " + p.spec.Name, Err: fmt.Errorf("the secret %s: %w", name, err),
				Hint: "look where the configuration says it is"}
		}
		values[name] = v
	}
	return values, nil
}

// environ is the whole environment of the program.
func (p *program) environ(c tool.Call, args tool.Args, secrets map[string]string) (env []string, wrong string) {
	vars := map[string]string{}
	for _, name := range []string{"PATH", "HOME", "LANG", "TZ", "TMPDIR"} {
		if v, ok := os.LookupEnv(name); ok {
			vars[name] = v
		}
	}
	maps.Copy(vars, p.spec.Env)
	maps.Copy(vars, secrets)
	if p.spec.Shell {
		for name := range args {
			text := args.Text(name)
			if strings.Contains(text, "\x00") {
				return nil, "the argument " + name + " has a NUL in it; leave it out"
			}
			if variable(name) && args.Has(name) {
				vars["STINT_ARG_"+name] = text
			}
		}
	}
	vars["STINT_TOOL"], vars["STINT_NAME"] = p.spec.Name, strings.ReplaceAll(c.Name, "\x00", "")
	vars["STINT_IDEMPOTENCY_KEY"], vars["STINT_EPOCH"] = c.Key, strconv.FormatInt(c.Epoch, 10)
	vars["STINT_SESSION"] = c.Session.String()
	for name, n := range map[string]int{"STINT_LINE": c.Position.Line, "STINT_LOOP": c.Position.Loop, "STINT_ATTEMPT": c.Position.Attempt} {
		vars[name] = strconv.Itoa(n)
	}
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		env = append(env, name+"="+vars[name])
	}
	return env, ""
}
