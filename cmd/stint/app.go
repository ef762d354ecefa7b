package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/config"
	"github.com/stint-dev/stint/internal/term"
	"github.com/stint-dev/stint/internal/view"
)

// app is the program as a value: tests run it with buffers and an environment of
// their own.
type app struct {
	in       io.Reader
	out, err io.Writer
	getenv   func(string) string
	getwd    func() (string, error)

	mu       sync.Mutex
	onSignal func(os.Signal) // of the command under way; nil: its context is canceled

	args    []string // the command line
	unread  bool     // its flags could not be read, or not all of them
	astray  error    // what help was asked for is not there
	warned  bool     // of the stint.yaml
	command string   // the one that runs, as stint ps

	storeFlag   string
	contextFlag string
	configFlag  string
	json        bool
	color       string
}

// signal hands a signal to the command under way.
func (a *app) signal(s os.Signal, cancel context.CancelFunc) {
	a.mu.Lock()
	handle := a.onSignal
	a.mu.Unlock()
	if handle == nil {
		cancel()
		return
	}
	handle(s)
}

// handleSignals makes handle get the signals from now on.
func (a *app) handleSignals(handle func(os.Signal)) {
	a.mu.Lock()
	a.onSignal = handle
	a.mu.Unlock()
}

// run executes one command line and returns the exit code.
func (a *app) run(ctx context.Context, args []string) int { return a.fail(a.execute(ctx, args)) }

// execute is run without what is said of an error.
func (a *app) execute(ctx context.Context, args []string) error {
	a.args = args
	root := a.root()
	root.SetArgs(append([]string{}, args...)) // of nil cobra makes those of the process
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		err = a.astray
	}
	var e *stint.Error
	if errors.As(err, &e) && e.Hint == usageHint {
		e.Hint = cmd.CommandPath() + " --help explains it"
	}
	a.json = a.json || a.wantsJSON(cmd)
	return err
}

func (a *app) root() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "stint",
		Short: "Run AI agents as sessions that survive",
		Long: `stint runs AI agents as sessions: bounded units of work with a name, a log, a
status and checkpoints. A session survives the death of whatever runs it, and it
can be restarted from any of its loops.`,
		Example: `  stint run -- make test             any command as a session, no configuration
  stint run triage -p "open issues"  an agent of stint.yaml
  stint ps                           what every session is doing
  stint logs -f @last                follow the newest one
  stint restart @last --from 3       go back to the end of loop 3`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          unknownCommand,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			a.command = cmd.CommandPath()
			return a.checkColor()
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.SetIn(a.in)
	cmd.SetOut(a.out)
	cmd.SetErr(a.err)
	cmd.CompletionOptions.DisableDefaultCmd = true
	f := cmd.PersistentFlags()
	f.StringVar(&a.storeFlag, "store", "", "where journals are kept: sqlite:PATH (default: $STINT_STORE, stint.yaml's, .stint/stint.db beside that, else the user's own)")
	f.StringVar(&a.contextFlag, "context", "", "ask this server instead of a store here: a name of stint context ls, or none (default: $STINT_CONTEXT, $STINT_SERVER, the one in use)")
	f.StringVar(&a.configFlag, "config", "", "the stint.yaml to use (default: the nearest one upwards)")
	f.BoolVar(&a.json, "json", false, "print JSON instead of text")
	f.StringVar(&a.color, "color", "auto", "colours: auto, always, never")
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		a.unread = true
		return usage(err)
	})
	cmd.AddGroup(
		&cobra.Group{ID: "run", Title: "Run:"},
		&cobra.Group{ID: "see", Title: "See:"},
		&cobra.Group{ID: "control", Title: "Control:"},
		&cobra.Group{ID: "manage", Title: "Manage:"},
	)
	cmd.AddCommand(a.commands()...)
	a.help(cmd)
	a.complete(cmd)
	return cmd
}

// usageHint stands for where the command that was given explains itself.
const usageHint = "see stint help"

// usage marks an error of the command line itself.
func usage(err error) error {
	return &stint.Error{Code: stint.Invalid, Err: err, Hint: usageHint}
}

// unknownCommand refuses a first word that is no command, and names one like it.
func unknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	err := stint.Invalid.Errorf("", "there is no command %q", args[0])
	err.Hint = "stint help lists the commands"
	if cmd.HasSubCommands() && cmd.HasParent() {
		err.Hint = cmd.CommandPath() + " --help lists the commands"
	}
	cmd.SuggestionsMinimumDistance = 2
	like := cmd.SuggestionsFor(args[0])
	if i := slices.IndexFunc(like, func(name string) bool { return strings.HasPrefix(name, args[0]) }); i > 0 {
		like = like[i:]
	}
	if args[0] != "" && len(like) > 0 {
		err.Hint = "did you mean " + cmd.CommandPath() + " " + like[0] + "? " + err.Hint
	}
	return err
}

// help makes the help of what is no command an error, where cobra explains the command
// above it.
func (a *app) help(root *cobra.Command) {
	explain := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		if rest := cmd.Flags().Args(); cmd.HasSubCommands() && len(rest) > 0 {
			a.astray = unknownCommand(cmd, rest)
			return
		}
		explain(cmd, args)
	})
	root.SetHelpCommand(&cobra.Command{
		Use: "help [COMMAND]", Short: "Explain a command",
		Example: "  stint help\n  stint help run\n  stint help db backup",
		ValidArgsFunction: func(_ *cobra.Command, args []string, prefix string) (out []cobra.Completion, _ cobra.ShellCompDirective) {
			at, _, err := root.Find(args)
			if err != nil || at == root && len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			for _, c := range at.Commands() {
				if c.IsAvailableCommand() && strings.HasPrefix(c.Name(), prefix) {
					out = append(out, cobra.CompletionWithDesc(c.Name(), c.Short))
				}
			}
			return out, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			at := root
			for _, name := range args {
				next := slices.IndexFunc(at.Commands(), func(c *cobra.Command) bool { return c.Name() == name })
				if next < 0 {
					return unknownCommand(at, []string{name})
				}
				at = at.Commands()[next]
			}
			at.InitDefaultHelpFlag() // as if it had been asked itself
			return at.Help()
		},
	})
}

// wantsJSON reports whether an error is to be JSON for another reason than --json: an
// output that is, or, where the flags could not be read, what stands among them.
func (a *app) wantsJSON(cmd *cobra.Command) bool {
	isJSON := func(format string) bool { return format == "json" || format == "jsonl" }
	if !a.unread {
		f := cmd.Flags().Lookup("output")
		return f != nil && isJSON(f.Value.String())
	}
	for i, arg := range a.args {
		name, value, given := strings.Cut(arg, "=")
		switch {
		case arg == "--":
			return false
		case name == "--json":
			if on, err := strconv.ParseBool(value); !given || err == nil && on {
				return true
			}
		case name == "--output" && given, strings.HasPrefix(arg, "-o") && arg != "-o":
			if isJSON(strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(arg, "--output"), "-o"), "=")) {
				return true
			}
		case (arg == "--output" || arg == "-o") && i+1 < len(a.args):
			if isJSON(a.args[i+1]) {
				return true
			}
		}
	}
	return false
}

func (a *app) checkColor() error {
	switch a.color {
	case "auto", "always", "never":
		return nil
	}
	return usage(fmt.Errorf("--color is auto, always or never, not %q", a.color))
}

// configPath is the path of the stint.yaml that applies; empty if there is none.
func (a *app) configPath() (string, error) {
	if a.configFlag != "" {
		return a.configFlag, nil
	}
	dir, err := a.getwd()
	if err != nil {
		return "", err
	}
	found, _ := config.Find(dir)
	return found, nil
}

// agentsConfig reads the stint.yaml that applies, for what needs its agents; nil if
// there is none.
func (a *app) agentsConfig() (*config.File, error) {
	path, err := a.configPath()
	if err != nil || path == "" {
		return nil, err
	}
	return config.Load(path)
}

// loadConfig reads the stint.yaml that applies, for what needs no agent; nil if there
// is none. Of one that is wrong it returns where the store is, and says that it is
// wrong; where even that cannot be told, and nothing else names the store, it fails.
func (a *app) loadConfig() (*config.File, error) {
	path, err := a.configPath()
	if err != nil || path == "" {
		return nil, err
	}
	file, err := config.Load(path)
	if err == nil || stint.CodeOf(err) == stint.NotFound {
		return file, err
	}
	named := a.storeFlag != "" || a.getenv("STINT_STORE") != ""
	file, ok := config.Outline(path)
	if !ok && !named {
		var e *stint.Error
		if errors.As(err, &e) {
			e.Hint = "mend it, or say where the store is: --store sqlite:PATH, or STINT_STORE"
		}
		return nil, err
	}
	a.warn(err)
	return file, nil
}

// warn says, once, that the stint.yaml is wrong. It is silent while a shell completes.
func (a *app) warn(err error) {
	if a.warned || len(a.args) > 0 && strings.HasPrefix(a.args[0], cobra.ShellCompRequestCmd) {
		return
	}
	a.warned = true
	text, more := err.Error(), ""
	var file *config.Problems
	if errors.As(err, &file) {
		p := &file.List[0]
		text = fmt.Sprintf("%s:%d:%d: %s", p.File, p.Line, p.Column, strings.TrimPrefix(p.Path+": "+p.Text, ": "))
		if n := len(file.List) + file.Left - 1; n > 0 {
			more = fmt.Sprintf(", and %d more", n)
		}
	}
	const hint = "stint agent validate says what is wrong"
	if a.json {
		_ = view.WriteJSON(a.err, struct {
			Schema  string `json:"schema"`
			Warning string `json:"warning"`
			Hint    string `json:"hint"`
		}{"stint.warning/1", text + more, hint})
		return
	}
	a.notef("stint: warning: %s%s; %s\n", term.Line(text), more, hint)
}

// storePath finds the database, in the order that --store's help names.
func (a *app) storePath(file *config.File) (string, error) {
	addr := a.storeFlag
	if addr == "" {
		addr = a.getenv("STINT_STORE")
	}
	if addr == "" && file != nil {
		if addr = file.Store; addr == "" {
			addr = "sqlite:" + filepath.Join(filepath.Dir(file.Path), ".stint", "stint.db")
		}
	}
	if addr == "" {
		state, err := stateFolder(a.getenv)
		if err != nil {
			return "", &stint.Error{Code: stint.Invalid, Op: "store", Err: err, Hint: "set STINT_STORE=sqlite:PATH"}
		}
		addr = "sqlite:" + filepath.Join(state, "stint.db")
	}
	path, ok := strings.CutPrefix(addr, "sqlite:")
	if !ok || path == "" {
		err := stint.Invalid.Errorf("store", "%q is no store that this program knows", addr)
		err.Hint = "write sqlite:PATH, like sqlite:/var/lib/stint/stint.db"
		return "", err
	}
	return path, nil
}

// stateFolder is where this user's data is that has no other place.
func stateFolder(getenv func(string) string) (string, error) {
	state := getenv("XDG_STATE_HOME")
	if state == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", err
		}
		state = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(state, "stint"), nil
}

// style says how to draw on standard output.
func (a *app) style() term.Style { return term.For(a.out, a.color, a.getenv) }

// printf writes to standard output: data. Texts among args are made safe.
func (a *app) printf(format string, args ...any) { fmt.Fprintf(a.out, format, shown(args)...) }

// notef writes to standard error: talk. Texts among args are made safe.
func (a *app) notef(format string, args ...any) { fmt.Fprintf(a.err, format, shown(args)...) }

// shown returns args with texts escaped, whose author may be anybody: paths, names,
// what an error says.
func shown(args []any) []any {
	out := make([]any, len(args))
	for i, arg := range args {
		switch v := arg.(type) {
		case string:
			out[i] = term.Escape(v)
		case error:
			out[i] = term.Escape(v.Error())
		default:
			if out[i] = arg; reflect.ValueOf(arg).Kind() == reflect.String {
				out[i] = term.Escape(reflect.ValueOf(arg).String())
			}
		}
	}
	return out
}
