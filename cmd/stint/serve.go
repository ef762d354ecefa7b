package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/internal/access"
	"github.com/stint-dev/stint/internal/access/keeper"
	"github.com/stint-dev/stint/internal/control"
	"github.com/stint-dev/stint/internal/notify"
	"github.com/stint-dev/stint/internal/server"
	"github.com/stint-dev/stint/internal/stream"
	"github.com/stint-dev/stint/internal/trigger"
)

// serveOptions are the flags of stint serve.
type serveOptions struct {
	addr, socket string
	cert, key    string
	hosts        []string
	behindProxy  bool
	localAdmin   bool
	noRun        bool
	drain        time.Duration
	patience     time.Duration
	logFormat    string
	logLevel     string
	printUnit    bool

	ready func(v *serving) // called once it serves; may be nil
}

// noSocket is the socket of a server that has none.
const noSocket = "none"

// defaultAddr is where a server listens that was not told where.
const defaultAddr = "127.0.0.1:7878"

func (a *app) serveCommand() *cobra.Command {
	var o serveOptions
	cmd := &cobra.Command{
		Use: "serve", Short: "Run sessions, schedules, hooks and the HTTP API until told to end", Args: noArgs,
		Long: `Run the sessions of a store, begin those of schedules and hooks, and answer the HTTP
API. One server serves a store; a second one is refused. Other commands work beside it,
as they do without.

SIGTERM or Ctrl-C ends it: no loop begins any more, steps under way get the time of
--drain, and every session goes on from its last checkpoint when a server runs again. A
second one ends it at once. SIGHUP reads stint.yaml and the certificate again, as stint
apply does after it has shown what changes; a schedule or hook with a mistake in it is
told of, and stays as it was.

It listens at 127.0.0.1 and at a socket beside the store. Any other address needs tokens
(stint token create) and TLS, or --behind-proxy.

Each flag may also be given by the environment: STINT_ADDR, STINT_SOCKET,
STINT_TLS_CERT, STINT_TLS_KEY, STINT_HOSTS, STINT_BEHIND_PROXY, STINT_LOCAL_ADMIN, STINT_NO_RUN,
STINT_DRAIN, STINT_PATIENCE, STINT_LOG_FORMAT and STINT_LOG_LEVEL.`,
		Example: `  stint serve
  stint serve --addr 127.0.0.1:0 --log-format json
  stint serve --addr :7878 --tls-cert cert.pem --tls-key key.pem --host stint.example.com
  stint serve --addr :443 --tls-cert cert.pem --tls-key key.pem --print-unit`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.environment(cmd, a.getenv); err != nil {
				return err
			}
			if o.printUnit {
				return a.printUnit(cmd, &o)
			}
			if a.getenv("GOGC") == "" { // whoever set it knows better
				debug.SetGCPercent(serverGC)
			}
			return a.serve(cmd.Context(), &o)
		},
	}
	o.flags(cmd)
	cmd.Flags().BoolVar(&o.printUnit, "print-unit", false, "print a unit of systemd that serves with these flags, and serve nothing")
	return cmd
}

// serverGC is by how many percent the memory of a server grows before it is looked through
// for what is not used any more. With Go's own 100, that took a tenth of the processor time
// of a flood of deliveries; it is 10 MB of memory more.
const serverGC = 200

// flags are those of whatever serves.
func (o *serveOptions) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.addr, "addr", defaultAddr, "listen at `HOST:PORT`, port 0 takes a free one; or at unix:PATH alone")
	f.StringVar(&o.socket, "socket", "", "listen at this Unix socket too (default: stint.sock in the folder beside the store; none: no socket)")
	f.StringVar(&o.cert, "tls-cert", "", "the `FILE` of a certificate, PEM")
	f.StringVar(&o.key, "tls-key", "", "the `FILE` of its key, PEM")
	f.StringSliceVar(&o.hosts, "host", nil, "a `NAME` that the server answers to beside localhost; repeatable")
	f.BoolVar(&o.behindProxy, "behind-proxy", false, "a proxy with TLS on this machine stands in front")
	f.BoolVar(&o.localAdmin, "local-admin", false, "programs of this machine need no token though there are tokens")
	f.BoolVar(&o.noRun, "no-run", false, "begin sessions and run none, as where other processes run them")
	f.DurationVar(&o.drain, "drain", 90*time.Second, "how long steps that may run once only get to end")
	f.DurationVar(&o.patience, "patience", 5*time.Second, "how long to wait for another server of the store to end")
	f.StringVar(&o.logFormat, "log-format", logText, "text, json, or terminal: short, and in colour")
	f.StringVar(&o.logLevel, "log-level", "info", "debug, info, warn or error")
}

// environment takes flags that were not given from STINT_ADDR and its like.
func (o *serveOptions) environment(cmd *cobra.Command, getenv func(string) string) error {
	for _, name := range strings.Fields("addr socket tls-cert tls-key host behind-proxy local-admin no-run drain patience log-format log-level") {
		variable := "STINT_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
		if name == "host" {
			variable = "STINT_HOSTS"
		}
		value := getenv(variable)
		if value == "" || cmd.Flags().Changed(name) {
			continue
		}
		if err := cmd.Flags().Set(name, value); err != nil {
			return usage(fmt.Errorf("%s: %w", variable, err))
		}
	}
	if (o.cert == "") != (o.key == "") {
		return misused(cmd, "--tls-cert and --tls-key belong together")
	}
	if only := strings.HasPrefix(o.addr, "unix:"); only && (o.socket != "" || o.cert != "") {
		return misused(cmd, "with --addr unix:PATH there is no other --socket, and no --tls-cert")
	}
	if o.drain < 0 {
		return misused(cmd, "--drain is not below zero")
	}
	return nil
}

// serving is a server while it runs.
type serving struct {
	app       *app
	site      *site
	wiring    *wiring
	options   *serveOptions
	log       *slog.Logger
	engine    *engine.Engine
	system    *engine.System
	tokens    *keeper.Keeper
	scheduler *trigger.Scheduler
	receiver  *trigger.Receiver
	notifier  *notify.Notifier
	ending    atomic.Bool // no requests are taken up any more
	listeners *server.Listeners
	now       atomic.Pointer[applied]
	applies   sync.Mutex // held while a stint.yaml is taken up
}

// serve runs a server until a signal comes.
func (a *app) serve(ctx context.Context, o *serveOptions) (err error) {
	log, err := a.logger(o)
	if err != nil {
		return err
	}
	first, err := a.readApplied()
	if err != nil {
		return err
	}
	a.warned = true // the log says it, part by part
	s, err := a.open(ctx, true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.store.Close()) }()
	w := s.wire(nil)
	defer w.close()
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	v := &serving{app: a, site: s, wiring: w, options: o, log: log}
	if err := v.begin(ctx, o.patience, end); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, v.system.Close(), v.engine.Close()) }()
	if err := v.listen(ctx); err != nil { // first of all: who cannot be asked changes nothing
		return err
	}
	if err := v.apply(ctx, first, "engine", nil); err != nil {
		return errors.Join(err, v.listeners.Close())
	}
	return v.run(ctx, end)
}

// begin takes the store's system journal, and makes what works by it. Another process that
// has it may take so long to end.
func (v *serving) begin(ctx context.Context, patience time.Duration, end context.CancelCauseFunc) error {
	opt := engine.Options{Resolve: v.wiring.resolve, Runtimes: runtimes(), Drain: max(v.options.drain, time.Millisecond), Log: v.log}
	opt.Find = func(name string) (engine.Agent, error) { return v.now.Load().agent(v.wiring, name) }
	if v.site.file != nil {
		opt.Concurrency = v.site.file.Concurrency
	}
	e, err := engine.New(ctx, v.site.db, opt)
	if err != nil {
		return err
	}
	until := time.Now().Add(patience)
	for {
		v.system, err = e.System(ctx, func(err error) { end(err) })
		if stint.CodeOf(err) != stint.Conflict || time.Now().After(until) || ctx.Err() != nil {
			break
		}
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
	if err == nil {
		v.tokens, err = keeper.New(v.system)
	}
	if err == nil {
		v.scheduler, err = trigger.NewScheduler(e, v.system, v.site.db, v.log)
	}
	if err == nil {
		v.notifier, err = notify.New(v.system, v.site.db, v.log)
	}
	if err == nil {
		v.engine, v.receiver = e, trigger.NewReceiver(e, v.system, v.site.db, v.log)
		return nil
	}
	if v.system != nil {
		err = errors.Join(err, v.system.Close())
	}
	return errors.Join(err, e.Close())
}

// run works until ctx ends, and closes the listeners.
func (v *serving) run(ctx context.Context, end context.CancelCauseFunc) error {
	events := stream.New(ctx, stream.Options{Store: v.site.db})
	defer events.Close()
	v.wiring.hear = events.Publish
	handler, err := v.handler(events)
	if err != nil {
		return errors.Join(err, v.listeners.Close())
	}
	works := sync.WaitGroup{}
	failed := make(chan error, 8)
	work := func(what string, do func(context.Context) error) {
		works.Go(func() {
			if err := do(ctx); err != nil {
				v.log.Error("the server ends", "because", what, "error", err)
				failed <- err
				end(err)
			}
		})
	}
	reload := make(chan struct{}, 1)
	v.signals(end, reload)
	defer v.app.handleSignals(nil)
	orders := server.Orders{System: v.system, Changed: v.site.db.Changed(ctx), Obeyers: []server.Obeyer{v.scheduler, v.receiver, v.notifier, v.tokens, &control.Grants{Store: v.site.db, System: v.system}, v}, Log: v.log}
	systemd := server.Systemd{Log: v.log}
	if !v.options.noRun {
		work("engine", v.engine.Serve)
	}
	work("schedules", v.scheduler.Run)
	work("notify", v.notifier.Run)
	work("orders", orders.Run)
	work("listener", func(ctx context.Context) error {
		return v.listeners.Serve(ctx, handler, v.log, time.Second, 10*time.Second)
	})
	works.Go(func() { systemd.Watch(ctx, v.system.Beat) })
	works.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-reload:
				v.reload(ctx)
			}
		}
	})
	v.log.Info("serving", "url", v.url(), "store", v.site.path, "pid", os.Getpid())
	systemd.Ready()
	if v.options.ready != nil {
		v.options.ready(v)
	}
	<-ctx.Done()
	v.ending.Store(true)
	systemd.Stopping()
	events.Close()
	works.Wait()
	v.log.Info("ended")
	select {
	case err := <-failed:
		return err
	default:
	}
	return unasked(ctx)
}

// unasked is why a server ends that nobody told to: it can write the system journal no
// more, because another one does, or because the store takes nothing.
func unasked(ctx context.Context) error {
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}

// echo is how soon after a signal to end another one is the same: a terminal, make and
// timeout send one to the server and to whoever passes it on to the server.
const echo = 500 * time.Millisecond

// signals has the first one end the server, and the second one end it at once.
func (v *serving) signals(end context.CancelCauseFunc, reload chan<- struct{}) {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) // a log that nobody reads ends nothing
	var first time.Time
	v.app.handleSignals(func(s os.Signal) {
		if s == syscall.SIGHUP {
			select {
			case reload <- struct{}{}:
			default:
			}
			return
		}
		switch {
		case first.IsZero():
			first = time.Now()
		case time.Since(first) < echo:
			return
		default:
			v.log.Warn("ended at once: sessions go on from their last checkpoints")
			os.Exit(exitInterrupted)
		}
		v.log.Info("ending", "signal", s.String(), "drain", v.options.drain)
		end(nil)
	})
}

// listen opens the addresses, if the rules of access let it.
func (v *serving) listen(ctx context.Context) error {
	any, err := v.tokens.Any(ctx)
	if err != nil {
		return err
	}
	o := v.options
	if err := access.Bind(o.addr, any, o.cert != "", o.behindProxy); err != nil {
		return err
	}
	l, err := server.Listen(ctx, o.address(v.site))
	if err != nil {
		return err
	}
	if err := access.Bind(l.Addr(), any, o.cert != "", o.behindProxy); err != nil {
		return errors.Join(err, l.Close())
	}
	v.listeners = l
	return nil
}

// address is where the options say that the server of a store listens.
func (o *serveOptions) address(s *site) server.Address {
	at := server.Address{TCP: o.addr, Cert: o.cert, Key: o.key, Socket: o.socket}
	path, only := strings.CutPrefix(o.addr, "unix:")
	switch {
	case only:
		at.TCP, at.Socket = "", path
	case at.Socket == "":
		at.Socket = s.socket()
	case at.Socket == noSocket:
		at.Socket = ""
	}
	return at
}

// socket is where the server of a store listens for programs of its user.
func (s *site) socket() string { return filepath.Join(s.path+".d", "stint.sock") }

// url is where the server is.
func (v *serving) url() string {
	scheme := "http"
	if strings.HasPrefix(v.listeners.Addr(), "unix:") {
		return v.listeners.Addr()
	}
	if v.options.cert != "" {
		scheme = "https"
	}
	return scheme + "://" + v.listeners.Addr()
}
