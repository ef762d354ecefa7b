package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/internal/config"
	"github.com/stint-dev/stint/internal/control"
	"github.com/stint-dev/stint/internal/ident"
	"github.com/stint-dev/stint/internal/term"
	"github.com/stint-dev/stint/internal/view"
)

func (a *app) runCommand() *cobra.Command {
	var o requestOptions
	var p promptOptions
	var quiet bool
	var effect string
	cmd := &cobra.Command{
		Use:   "run AGENT | run -p TEXT | run -- COMMAND [ARGS]",
		Short: "Run a session here, in the foreground",
		Long: `Run a session in this process: in this folder, with this environment, on this
terminal. Other processes see and control it through the store while it runs.

With AGENT it runs an agent of stint.yaml. Without one, -p or -f is what a model is
asked: --model names it, --tools what it may call, --system how it shall work. What it
says last is standard output, alone; all else is standard error.

With -- it makes a session of any command, without a configuration: its output is the
log, its exit code the outcome and the exit code of stint. Such a command is one step
with the effect once, unless --effect says that it may run again: if stint dies, nobody
runs it again by itself.

On a terminal, what a model says is shown as it comes, and a line at the bottom says
what the session does. Ctrl-C there asks whether to pause, stop or kill the session;
elsewhere it lets an agent finish its step and gives the session back, to be resumed.
Once more ends it as canceled. A command after -- is ended by the first one, as it
would be without stint. With --json each entry is printed as it comes, then the
session.`,
		Example: `  stint run -- make test
  stint run --name nightly --wall 1h -- ./backup.sh /srv
  stint run triage -p "open issues since yesterday"
  stint run -p "what is in this folder?" --model anthropic/claude-sonnet-5 --tools files
  summary=$(stint run -f report.md --system "Sum it up in a sentence." --cost 0.50)
  echo '{"repo":"acme/api"}' | stint run review -f -`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if dash := cmd.ArgsLenAtDash(); dash >= 0 {
				if dash > 0 || len(args) == 0 {
					return misused(cmd, "give an agent, or -- and a command")
				}
				if err := p.noPrompt(cmd, "a command after -- has no model"); err != nil {
					return err
				}
				return a.runArgv(cmd.Context(), &o, args, effect, quiet)
			}
			if len(args) > 1 || len(args) == 0 && o.prompt == "" && o.file == "" {
				return promptMissing(cmd)
			}
			if effect != "" {
				return misused(cmd, "--effect is for commands after --; an agent's effects are in stint.yaml")
			}
			if len(args) == 0 {
				return a.runPrompt(cmd.Context(), &o, &p, quiet)
			}
			if err := p.noPrompt(cmd, "that of an agent is in stint.yaml"); err != nil {
				return err
			}
			return a.runAgent(cmd.Context(), &o, args[0], quiet)
		},
	}
	o.flags(cmd.Flags())
	p.flags(cmd)
	cmd.Flags().BoolVarP(&quiet, "quiet", "q", false, "print nothing but what the command or the model says, unless the session fails or needs you")
	cmd.Flags().StringVar(&effect, "effect", "", "of the command after --: once (default), idempotent, read")
	return cmd
}

// argvAgent is the agent that a command line without a configuration makes.
func (a *app) argvAgent(argv []string, effect string) (config.Agent, error) {
	dir, err := a.getwd()
	if err != nil {
		return config.Agent{}, &stint.Error{Code: stint.Invalid, Op: "run", Err: err}
	}
	e := stint.Effect(effect)
	switch e {
	case "":
		e = stint.Once
	case stint.Read, stint.Idempotent, stint.Once:
	default:
		return config.Agent{}, usage(fmt.Errorf("--effect is once, idempotent or read, not %q", effect))
	}
	var pass []string
	for _, kv := range os.Environ() {
		if name, _, ok := cut(kv); ok && plainName(name) {
			pass = append(pass, name)
		}
	}
	slices.Sort(pass)
	return config.Agent{
		Name: agentName(argv[0]), Kind: config.KindExec, Command: argv, Protocol: config.None, Dir: dir, Pass: pass,
		Keep: config.Keep("loop"), Effect: e, Output: 1 << 20, Pin: config.PinWarn,
		Retry: config.Retry{Attempts: 1},
	}, nil
}

// cut splits NAME=value.
func cut(kv string) (name, value string, ok bool) {
	for i := 1; i < len(kv); i++ {
		if kv[i] == '=' {
			return kv[:i], kv[i+1:], true
		}
	}
	return "", "", false
}

// plainName reports whether a variable can be passed on by name: shells put
// functions into the environment under names that nothing else can spell, and what
// the session around this one is called is not for the one within.
func plainName(s string) bool {
	if strings.HasPrefix(s, "STINT_") && s != "STINT_STORE" {
		return false
	}
	for i, c := range []byte(s) {
		if c != '_' && (c|0x20 < 'a' || c|0x20 > 'z') && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}

// agentName makes a name for an agent out of a program's path.
func agentName(path string) string {
	b := []byte(filepath.Base(path))
	for i, c := range b {
		switch {
		case c >= 'A' && c <= 'Z':
			b[i] = c + 'a' - 'A'
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9', i > 0 && (c == '.' || c == '_' || c == '-'):
		default:
			b[i] = 'x'
		}
	}
	return string(b[:min(len(b), 64)])
}

func (a *app) runArgv(ctx context.Context, o *requestOptions, argv []string, effect string, quiet bool) error {
	c, err := a.argvAgent(argv, effect)
	if err != nil {
		return err
	}
	return a.runNew(ctx, o, a.teeOf(c), c, manner{quiet: quiet, argv: true})
}

func (a *app) runAgent(ctx context.Context, o *requestOptions, name string, quiet bool) error {
	c, err := a.configured(name)
	if err != nil {
		return err
	}
	return a.runNew(ctx, o, a.teeOf(c), c, manner{quiet: quiet})
}

// teeOf is where the raw output of an agent in the foreground goes: that of a program
// without the protocol to the terminal, unless standard output is for JSON.
func (a *app) teeOf(c config.Agent) *tee {
	if c.Protocol != config.None || a.json {
		return nil
	}
	return &tee{stdout: a.out, stderr: a.err}
}

// configured returns an agent of stint.yaml.
func (a *app) configured(name string) (config.Agent, error) {
	file, err := a.agentsConfig()
	if err != nil {
		return config.Agent{}, err
	}
	if file == nil {
		err := stint.NotFound.Errorf("agent "+name, "there is no stint.yaml in this folder or above")
		err.Hint = "stint init makes one; stint run -- COMMAND needs none"
		return config.Agent{}, err
	}
	return file.Agent(name)
}

// manner is how a session is run in the foreground.
type manner struct {
	quiet bool
	argv  bool // made of a command line: its exit code is ours
	text  bool // what the model says last is standard output, and nothing else
}

// runNew creates a session and drives it in the foreground.
func (a *app) runNew(ctx context.Context, o *requestOptions, t *tee, c config.Agent, m manner) error {
	s, err := a.open(ctx, true)
	if err != nil {
		return err
	}
	defer s.store.Close()
	w := s.wire(t)
	defer w.close()
	f := &foreground{app: a, site: s, manner: m, logs: w.tee == nil}
	f.look(w, c.Kind, modelName(&c))
	if !m.quiet {
		w.talk = a.serverTalk()
	}
	var agent engine.Agent
	if err := w.until(ctx, func() (err error) { agent, err = w.agent(c); return err }); err != nil {
		return err
	}
	req, err := o.request(a, agent)
	if err != nil {
		return err
	}
	e, err := a.engine(ctx, s, w)
	if err != nil {
		return err
	}
	defer e.Close()
	ses, err := f.drive(ctx, func(ctx context.Context) (stint.Session, error) {
		return e.RunNew(ctx, req, f.begun)
	})
	if err != nil {
		return err
	}
	return f.outcome(&ses)
}

// runThere drives an existing session in the foreground: what --run does. It shows
// what the log gained since row was read, the order that started it included.
func (a *app) runThere(ctx context.Context, s *site, row *stint.Row, quiet bool) error {
	f, ses, err := a.driveThere(ctx, s, row, quiet)
	if err != nil {
		return err
	}
	return f.outcome(&ses)
}

// driveThere is runThere without a word on how it came out.
func (a *app) driveThere(ctx context.Context, s *site, row *stint.Row, quiet bool) (*foreground, stint.Session, error) {
	id := row.Session.ID
	w := s.wire(nil)
	defer w.close()
	f := &foreground{app: a, site: s, manner: manner{quiet: quiet}, logs: true, id: id, after: row.Session.Head}
	f.look(w, row.Session.Agent.Runtime, "")
	if !quiet {
		w.talk = a.serverTalk()
	}
	e, err := a.engine(ctx, s, w)
	if err != nil {
		return nil, stint.Session{}, err
	}
	defer e.Close()
	ses, err := f.drive(ctx, func(ctx context.Context) (stint.Session, error) {
		f.begun(engine.Created{ID: id})
		ses, err := e.Run(ctx, id)
		if stint.CodeOf(err) == stint.Conflict {
			return f.follow(ctx, err)
		}
		return ses, err
	})
	return f, ses, err
}

// follow waits for a session that a server took up first, until it is over or waits for
// more than time, as if it were driven here. It fails with why where no server did: what
// somebody else runs is theirs.
func (f *foreground) follow(ctx context.Context, why error) (stint.Session, error) {
	server, err := f.site.holder(ctx)
	if err != nil {
		return stint.Session{}, err
	}
	row, err := f.site.store.Session(ctx, f.id)
	if err != nil {
		return row.Session, err
	}
	if its := row.Live && row.Lease.Holder == server || !row.Live && over(&row.Session); server == "" || !its {
		return row.Session, why
	}
	f.elsewhere.Store(true)
	if !over(&row.Session) {
		f.say("a server runs %s; this waits for it\n", row.Session.Name)
	}
	tick := time.NewTicker(f.site.poll())
	defer tick.Stop()
	for !over(&row.Session) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return row.Session, exitError(exitInterrupted)
		}
		if row, err = f.site.store.Session(ctx, f.id); err != nil {
			return row.Session, err
		}
	}
	return row.Session, nil
}

// tee is where a foreground command's raw output goes besides the journal.
type tee struct{ stdout, stderr io.Writer }

// foreground is a session that this process drives before a person's eyes.
type foreground struct {
	app  *app
	site *site
	manner
	logs    bool         // show the log while it runs
	screen  *term.Screen // where standard error is a terminal
	live    *live        // shows what comes; nil: nobody wants to see it
	mu      sync.Mutex
	id      stint.ID // zero until it is there; behind mu, a signal may come any time
	unask   func()   // ends the question that is on the screen; nil: there is none; behind mu
	asking  sync.WaitGroup
	over    bool // nothing is asked any more; behind mu
	found   bool
	after   stint.Seq // what was before this entry is there to read, and not shown again
	signals atomic.Int32
	stop    func()

	elsewhere atomic.Bool // a server drives it, and this waits for it
}

// sameSignal is how soon a second signal is the same one: timeout(1) signals its
// child and then its group.
const sameSignal = 50 * time.Millisecond

// drive runs the session until it parks or ends, with signals turned into what
// they ask of a session: the first one drains it, or on a terminal asks what is meant,
// the second kills it. A command line's first interrupt kills it, as it would without
// stint.
func (f *foreground) drive(ctx context.Context, run func(context.Context) (stint.Session, error)) (stint.Session, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer ignoreBrokenPipe()()
	var last time.Time
	f.app.handleSignals(func(s os.Signal) {
		if time.Since(last) < sameSignal {
			return
		}
		last = time.Now()
		switch n := f.signals.Add(1); {
		case n == 1 && s == os.Interrupt && f.asks():
			f.ask(ctx, cancel)
		case n == 1 && !(f.argv && s != syscall.SIGTERM), s != os.Interrupt && f.dismiss():
			f.drain(cancel)
		default:
			f.kill(ctx, cancel)
		}
	})
	defer f.app.handleSignals(nil)
	s, err := run(ctx)
	f.asked()
	if f.stop != nil {
		f.stop()
	}
	return s, err
}

// begun tells of the session as soon as it is durable.
func (f *foreground) begun(c engine.Created) {
	f.mu.Lock()
	f.id, f.found = c.ID, c.Found
	f.mu.Unlock()
	row, err := f.site.store.Session(context.Background(), c.ID)
	if err != nil || f.live == nil || c.Found {
		return
	}
	f.stop = f.live.follow(row, f.after)
}

// ignoreBrokenPipe keeps the session going when what reads the output is gone, as
// in "stint run triage | head": the system would end the program at its next write.
// The returned function makes it so again.
func ignoreBrokenPipe() (undo func()) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGPIPE) // not Ignore, which the agent would inherit
	return func() { signal.Stop(c) }
}

func (f *foreground) say(format string, args ...any) {
	switch {
	case f.quiet:
	case f.screen != nil: // what it draws again must not stand in the way
		fmt.Fprintf(f.screen, "stint: "+format, shown(args)...)
	default:
		f.app.notef("stint: "+format, args...)
	}
}

// outcome tells how the session stands and returns it as an exit code.
func (f *foreground) outcome(s *stint.Session) error {
	row, err := f.site.store.Session(context.Background(), s.ID)
	if err != nil {
		return err
	}
	switch {
	case f.app.json:
		err = f.app.printSession(&row)
	case f.text:
		err = f.printText(&row)
		f.tell(&row)
	default:
		f.tell(&row)
	}
	if err != nil {
		return err
	}
	if f.argv {
		if code, ok := exitOf(f.site, s); ok {
			return exitError(code)
		}
	}
	return f.status(s)
}

// status is how the session stands, as an exit code.
func (f *foreground) status(s *stint.Session) error {
	if f.signals.Load() > 0 && (f.argv || !s.Status.Ended()) {
		return exitError(exitInterrupted)
	}
	return outcomeError(s)
}

// tell prints the last line of a foreground session, with what to do next. It is
// quiet, if it shall be, only about what went well.
func (f *foreground) tell(row *stint.Row) {
	s := &row.Session
	switch {
	case f.found:
		f.say("%s was started by an earlier request with this key: stint show %s\n", s.Name, row.Short)
		return
	case s.Status == stint.Completed:
		f.say("%s completed · %s, %s · stint show %s\n", s.Name, counted(s.Totals.Loops, "loop"), counted(s.Totals.Steps, "step"), row.Short)
		return
	}
	f.quiet = false
	switch {
	case s.Status.Ended():
		f.say("%s %s: %s · stint show %s\n", s.Name, s.Status, term.Line(s.Reason), row.Short)
	case s.Status == stint.Waiting && s.Wait.For == stint.ForDoubt:
		way := fmt.Sprintf("stint resolve %s:%s --happened | --not | --unknown", row.Short, s.Wait.Step)
		if differs, err := control.Diverged(context.Background(), f.site.store, row); err == nil && differs {
			way = control.Anew(row)
		}
		f.say("%s waits for your word: %s\n  %s\n", s.Name, term.Line(s.Wait.What), way)
	case s.Status == stint.Waiting:
		f.say("%s waits for %s: %s\n", s.Name, s.Wait.For, term.Line(s.Wait.What))
		if !f.questions(row) {
			f.app.notef("  %s\n", wayOn(row))
		}
	default:
		f.say("%s stopped here and can go on: stint resume %s --run\n", s.Name, row.Short)
	}
}

// questions prints what a session asks, with the arguments that a yes would allow, and
// reports whether there is something.
func (f *foreground) questions(row *stint.Row) bool {
	now := time.Now()
	list, err := view.NewApprovals(context.Background(), f.site.store, row, now)
	if err != nil || len(list.Items) == 0 {
		return false // stint approvals says what is wrong
	}
	_ = list.Write(f.app.err, term.For(f.app.err, f.app.color, f.app.getenv), now)
	f.app.notef("  With --run behind it, the session goes on here.\n")
	return true
}

// wayOn is the command that moves a waiting session on.
func wayOn(row *stint.Row) string {
	switch row.Session.Wait.For {
	case stint.ForMessage:
		return "stint send " + row.Short + " TEXT --run"
	case stint.ForOperator, stint.ForHealth, stint.ForTime, stint.ForRetry:
		return "stint resume " + row.Short + " --run"
	case stint.ForApproval:
		if _, seq := ident.CutApprovalID(row.Session.Wait.Approval); seq > 0 {
			return fmt.Sprintf("stint approve %s.%d · stint deny %s.%d -m TEXT · stint approvals %s", row.Short, seq, row.Short, seq, row.Short)
		}
	case stint.ForBudget:
		return "stint limit " + row.Short + " " + view.MoreOf(&row.Session)
	}
	return "stint show " + row.Short
}

// exitOf is the exit code of the command that a session was made of.
func exitOf(site *site, s *stint.Session) (int, bool) {
	if !s.Status.Ended() {
		return 0, false
	}
	es, err := site.store.Entries(context.Background(), stint.Range{Session: s.ID, Kinds: []stint.Kind{stint.StepCompleted}, Last: true, Limit: 1})
	if err != nil || len(es) == 0 {
		return 0, false
	}
	var res struct{ Exit *int }
	if json.Unmarshal(es[0].Body, &res) != nil || res.Exit == nil {
		return 0, false
	}
	return *res.Exit, true
}

// outcomeError is how a session stands, as an exit code.
func outcomeError(s *stint.Session) error {
	switch {
	case s.Status == stint.Completed:
		return nil
	case s.Status.Ended():
		return exitError(exitNotOK)
	}
	return exitError(exitWaits)
}
