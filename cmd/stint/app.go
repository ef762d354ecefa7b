package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/internal/config"
	"github.com/stint-dev/stint/internal/term"
	"github.com/stint-dev/stint/store/sqlite"
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

	args       []string // the command line
	storeFlag  string
	configFlag string
	json       bool
	color      string
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
func (a *app) run(ctx context.Context, args []string) int {
	a.args = args
	root := a.root()
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	var e *stint.Error
	if errors.As(err, &e) && e.Hint == usageHint {
		e.Hint = cmd.CommandPath() + " --help explains it"
	}
	return a.fail(err)
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
		SilenceErrors:     true,
		SilenceUsage:      true,
		Args:              unknownCommand,
		PersistentPreRunE: func(*cobra.Command, []string) error { return a.checkColor() },
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.SetIn(a.in)
	cmd.SetOut(a.out)
	cmd.SetErr(a.err)
	cmd.CompletionOptions.DisableDefaultCmd = true
	f := cmd.PersistentFlags()
	f.StringVar(&a.storeFlag, "store", "", "where journals are kept: sqlite:PATH (default: $STINT_STORE, stint.yaml's, .stint/stint.db beside that, else the user's own)")
	f.StringVar(&a.configFlag, "config", "", "the stint.yaml to use (default: the nearest one upwards)")
	f.BoolVar(&a.json, "json", false, "print JSON instead of text")
	f.StringVar(&a.color, "color", "auto", "colours: auto, always, never")
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usage(err) })
	cmd.AddGroup(
		&cobra.Group{ID: "run", Title: "Run:"},
		&cobra.Group{ID: "see", Title: "See:"},
		&cobra.Group{ID: "control", Title: "Control:"},
		&cobra.Group{ID: "manage", Title: "Manage:"},
	)
	cmd.AddCommand(a.commands()...)
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
	cmd.SuggestionsMinimumDistance = 2
	if like := cmd.SuggestionsFor(args[0]); args[0] != "" && len(like) > 0 {
		err.Hint = "did you mean stint " + like[0] + "? " + err.Hint
	}
	return err
}

func (a *app) checkColor() error {
	switch a.color {
	case "auto", "always", "never":
		return nil
	}
	return usage(fmt.Errorf("--color is auto, always or never, not %q", a.color))
}

// loadConfig reads the stint.yaml that applies; nil if there is none.
func (a *app) loadConfig() (*config.File, error) {
	path := a.configFlag
	if path == "" {
		dir, err := a.getwd()
		if err != nil {
			return nil, err
		}
		found, ok := config.Find(dir)
		if !ok {
			return nil, nil
		}
		path = found
	}
	return config.Load(path)
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
		state := a.getenv("XDG_STATE_HOME")
		if state == "" {
			home, err := os.UserHomeDir()
			if err != nil {
				return "", &stint.Error{Code: stint.Invalid, Op: "store", Err: err, Hint: "set STINT_STORE=sqlite:PATH"}
			}
			state = filepath.Join(home, ".local", "state")
		}
		addr = "sqlite:" + filepath.Join(state, "stint", "stint.db")
	}
	path, ok := strings.CutPrefix(addr, "sqlite:")
	if !ok || path == "" {
		err := stint.Invalid.Errorf("store", "%q is no store that this program knows", addr)
		err.Hint = "write sqlite:PATH, like sqlite:/var/lib/stint/stint.db"
		return "", err
	}
	return path, nil
}

// site is an open store with what belongs to it.
type site struct {
	file  *config.File // nil without a stint.yaml
	path  string
	store *sqlite.Store
}

// open opens the store for a command that may write; with create unset a store
// that is not there is [stint.Unavailable].
func (a *app) open(ctx context.Context, create bool) (*site, error) {
	file, err := a.loadConfig()
	if err != nil && (create || a.storeFlag == "" && a.getenv("STINT_STORE") == "") {
		return nil, err
	}
	path, err := a.storePath(file)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(path); !create && errors.Is(err, os.ErrNotExist) {
		e := stint.Unavailable.Errorf("store", "there is no store at %s", path)
		e.Hint = "stint run makes one; --store or STINT_STORE names another"
		return nil, e
	}
	st, err := sqlite.Open(ctx, sqlite.Options{Path: path})
	if err != nil {
		return nil, err
	}
	return &site{file: file, path: path, store: st}, nil
}

// engine makes an engine on the site's store that can drive exec agents.
func (a *app) engine(ctx context.Context, s *site, w *wiring) (*engine.Engine, error) {
	opt := engine.Options{Resolve: w.resolve, Runtimes: []string{runtimeExec}}
	if s.file != nil {
		opt.Concurrency = s.file.Concurrency
	}
	return engine.New(ctx, s.store, opt)
}

// style says how to draw on standard output.
func (a *app) style() term.Style { return term.For(a.out, a.color, a.getenv) }

// printf writes to standard output: data.
func (a *app) printf(format string, args ...any) { fmt.Fprintf(a.out, format, args...) }

// notef writes to standard error: talk.
func (a *app) notef(format string, args ...any) { fmt.Fprintf(a.err, format, args...) }
