package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/client"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/internal/config"
	"github.com/stint-dev/stint/internal/control"
	"github.com/stint-dev/stint/internal/view"
	"github.com/stint-dev/stint/store/mem"
	"github.com/stint-dev/stint/store/sqlite"
)

// door is a store as commands that read and give orders see it: a file of this machine, or
// a server.
type door interface {
	control.Store
	io.Closer
}

// site is an open store with what belongs to it.
type site struct {
	store  door
	app    *app
	server *client.Client // what the store is where it is not of this machine; else nil

	file *config.File  // nil without a stint.yaml, and of a server
	path string        // of the file
	db   *sqlite.Store // what the store is here; nil of a server, and where none is there to look at
}

// reach opens the store of this machine, or the server that was chosen instead. With create
// unset a store that is not there is [stint.Unavailable].
func (a *app) reach(ctx context.Context, create bool) (*site, error) {
	far, err := a.chosen()
	switch {
	case err != nil:
		return nil, err
	case far == nil:
		return a.openHere(ctx, create)
	}
	c, err := far.client(a)
	if err != nil {
		return nil, err
	}
	return &site{store: c, server: c, app: a}, nil
}

// reachFor is reach for an order; run says that the session is to run here then.
func (a *app) reachFor(ctx context.Context, run bool) (*site, error) {
	far, err := a.chosen()
	if err == nil && far != nil && run {
		e := stint.Invalid.Errorf("", "--run runs a session in this process, and the session is one of the server %s", far)
		e.Hint = "leave --run out: a runner of the server takes the session up"
		err = e
	}
	if err != nil {
		return nil, err
	}
	return a.reach(ctx, false)
}

// atSession finds the session that an order is for, as reachFor does the store, which the
// caller closes.
func (a *app) atSession(ctx context.Context, address string, run bool) (*site, stint.Row, view.Place, error) {
	s, err := a.reachFor(ctx, run)
	if err != nil {
		return nil, stint.Row{}, view.Place{}, err
	}
	row, place, err := view.Find(ctx, s.store, address, time.Now())
	if err != nil {
		_ = s.store.Close()
	}
	return s, row, place, err
}

// open opens the store for a command that needs the file itself; where a server was chosen
// that is [stint.Invalid].
func (a *app) open(ctx context.Context, create bool) (*site, error) {
	if err := a.here(); err != nil {
		return nil, err
	}
	return a.openHere(ctx, create)
}

// look is open for a command that only reads, and has something to say of stint.yaml
// alone: a store that is not there is an empty one, and none is made.
func (a *app) look(ctx context.Context) (*site, error) {
	if err := a.here(); err != nil {
		return nil, err
	}
	file, path, there, err := a.storeHere()
	if err == nil && !there {
		return &site{file: file, path: path, store: mem.New(), app: a}, nil
	}
	return a.openHere(ctx, false)
}

// here is [stint.Invalid] where a server was chosen.
func (a *app) here() error {
	far, err := a.chosen()
	if err != nil || far == nil {
		return err
	}
	e := stint.Invalid.Errorf("", "%s needs a store of this machine, and %s chose the server %s", a.command, far.from, far)
	e.Hint = "run it where the store is, or for the store of this machine with --context none"
	return e
}

// storeHere says where the store of this machine is, and whether it is there.
func (a *app) storeHere() (file *config.File, path string, there bool, err error) {
	if file, err = a.loadConfig(); err != nil {
		return nil, "", false, err
	}
	if path, err = a.storePath(file); err != nil {
		return nil, "", false, err
	}
	_, err = os.Stat(path)
	return file, path, !errors.Is(err, os.ErrNotExist), nil // what else is wrong is told by who opens it
}

func (a *app) openHere(ctx context.Context, create bool) (*site, error) {
	file, path, there, err := a.storeHere()
	if err != nil {
		return nil, err
	}
	if !create && !there {
		e := stint.Unavailable.Errorf("store", "there is no store at %s", path)
		e.Hint = "stint run makes one; --store or STINT_STORE names another"
		return nil, e
	}
	st, err := sqlite.Open(ctx, sqlite.Options{Path: path})
	if err != nil {
		return nil, err
	}
	return &site{file: file, path: path, store: st, db: st, app: a}, nil
}

// engine makes an engine on the site's store that can drive exec agents.
func (a *app) engine(ctx context.Context, s *site, w *wiring) (*engine.Engine, error) {
	opt := engine.Options{Resolve: w.resolve, Runtimes: runtimes()}
	opt.Find = func(name string) (engine.Agent, error) {
		c, err := a.configured(name)
		if err != nil {
			return engine.Agent{}, err
		}
		return w.agent(c)
	}
	if s.file != nil {
		opt.Concurrency = s.file.Concurrency
	}
	return engine.New(ctx, s.db, opt)
}

// farPoll is how often a server is asked where a store here is looked at each followPoll.
const farPoll = time.Second

// poll is how often who waits looks for something new.
func (s *site) poll() time.Duration {
	if s.server != nil {
		return farPoll
	}
	return followPoll
}

// runs says how a session that can go on is run.
func (s *site) runs(row *stint.Row) string {
	if s.server != nil {
		return "a runner of the server takes it up"
	}
	return fmt.Sprintf("run it here: stint resume %s --run", row.Short)
}

// served reports whether a server runs on the store.
func (s *site) served(ctx context.Context) (bool, error) {
	if s.server != nil {
		return true, nil
	}
	holder, err := s.holder(ctx)
	return holder != "", err
}

// holder is the name that the server on the store holds its sessions by; empty: none runs.
func (s *site) holder(ctx context.Context) (string, error) {
	id, err := engine.FindSystemJournal(ctx, s.store)
	if err != nil || id.IsZero() {
		return "", err
	}
	row, err := s.store.Session(ctx, id)
	if err != nil || !row.Live {
		return "", err
	}
	return row.Lease.Holder, nil
}

// noteUnserved tells people that there is no server, and what that means for what they
// see or asked for.
func (a *app) noteUnserved(ctx context.Context, s *site, means string) error {
	served, err := s.served(ctx)
	if err == nil && !served && !a.json {
		a.notef("stint: no server runs on this store: %s\n  stint serve is one\n", means)
	}
	return err
}

// settler settles sessions of the site.
func (s *site) settler() control.Settler {
	if s.server != nil {
		return s.server
	}
	return settler{s.app, s}
}

// brancher makes branches: an engine here, or the server.
func (s *site) brancher() control.Brancher {
	if s.server != nil {
		return farBrancher{s.server}
	}
	return settler{s.app, s}
}

// system returns a section of what the system journal comes to; nil if it has none.
func (s *site) system(ctx context.Context, section string) (json.RawMessage, error) {
	if s.server != nil {
		return s.server.State(ctx, section)
	}
	id, err := engine.FindSystemJournal(ctx, s.store) // who looks makes none
	if err != nil || id.IsZero() {
		return nil, err
	}
	state, err := engine.SystemState(ctx, s.store, id)
	return state[section], err
}
