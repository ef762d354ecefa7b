package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/config"
	"github.com/stint-dev/stint/internal/worktree"
)

// whole is the wiring whose part this is.
func (w *wiring) whole() *wiring {
	if w.over != nil {
		return w.over
	}
	return w
}

// part is a wiring that is closed alone, and shares what sessions share.
func (w *wiring) part() *wiring {
	return &wiring{getenv: w.getenv, kept: w.kept, tee: w.tee, prices: w.prices, hear: w.hear, waits: w.waits, talk: w.talk, first: w.first, look: w.look, over: w.whole()}
}

// placed makes what runs the loops of an agent where its sessions work.
func (w *wiring) placed(c *config.Agent, p *pin) (stint.Agent, error) {
	if c.Workspace == nil {
		return w.loop(c, p)
	}
	here := w.part()
	_, err := here.loop(c, p) // it is wrong in each folder what is wrong in its own
	here.close()
	if err != nil {
		return nil, err
	}
	spec, err := w.workspace(c)
	if err != nil {
		return nil, err
	}
	a := worktree.Wrap(worktree.Options{Spec: spec, Origin: w.origin, Make: func(_ context.Context, f *worktree.Folder) (stint.Agent, error) {
		part := w.part()
		moved, own := within(c, f), *p
		own.Servers = maps.Clone(p.Servers) // sessions are at work at the same time
		loop, err := part.loop(&moved, &own)
		if err != nil {
			part.close()
			return nil, err
		}
		return &housed{loop, part}, nil
	}})
	w.later(a.Close)
	return a, nil
}

// workspace is where the worktrees of an agent are.
func (w *wiring) workspace(c *config.Agent) (worktree.Spec, error) {
	return workspaceOf(c, func(name string) string {
		v, _ := w.getenv(name)
		return v
	})
}

// workspaceOf fills in where the worktrees of an agent lie. The name of the repository's folder is
// for people; what follows it keeps two of one name apart.
func workspaceOf(c *config.Agent, getenv func(string) string) (worktree.Spec, error) {
	spec := *c.Workspace
	if spec.Dir != "" {
		return spec, nil
	}
	state, err := stateFolder(getenv)
	if err != nil {
		return spec, &stint.Error{Code: stint.Invalid, Op: "workspace", Err: err, Hint: "write workspace: {dir: PATH}"}
	}
	sum := sha256.Sum256([]byte(spec.Repo))
	spec.Dir = filepath.Join(state, "worktrees", fmt.Sprintf("%s-%x", filepath.Base(spec.Repo), sum[:4]))
	return spec, nil
}

// origin tells on which line of a parent its branch begins: on that of the entry which the branch
// names.
func (w *wiring) origin(ctx context.Context, p stint.Parent) (int, error) {
	es, err := w.kept.store.Entries(ctx, stint.Range{Session: p.Session, After: max(p.Seq, 1) - 1, Limit: 1})
	if err != nil {
		return 0, err
	}
	if len(es) == 0 || es[0].Seq != p.Seq {
		e := stint.NotFound.Errorf("workspace", "session %s, which this one branches from, has no entry %d here", p.Session, p.Seq)
		e.Hint = "run it where the journal of that session is"
		return 0, e
	}
	return es[0].Pos.Line, nil
}

// within is an agent whose folders are those of a worktree, as far as they are in the repository.
func within(c *config.Agent, f *worktree.Folder) config.Agent {
	out := *c
	out.Workspace = nil
	out.Dir = f.Of(c.Dir)
	if c.LLM == nil {
		return out
	}
	model := *c.LLM
	model.Tools = slices.Clone(model.Tools)
	for i := range model.Tools {
		switch t := &model.Tools[i]; {
		case t.Files != nil:
			files := *t.Files
			files.Root = f.Of(files.Root)
			t.Files = &files
		case t.Exec != nil:
			program := *t.Exec
			program.Dir = f.Of(program.Dir)
			t.Exec = &program
		}
	}
	out.LLM = &model
	return out
}

// housed is the agent of one session.
type housed struct {
	stint.Agent
	part *wiring
}

// Release ends what is kept between the loops of the session.
func (h *housed) Release(session stint.ID) {
	if r, ok := h.Agent.(interface{ Release(stint.ID) }); ok {
		r.Release(session)
	}
}

// Close ends what the agent holds.
func (h *housed) Close() error {
	h.part.close()
	return nil
}
