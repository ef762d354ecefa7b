package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/agent/exec"
	"github.com/stint-dev/stint/internal/config"
	"github.com/stint-dev/stint/journal"
	"github.com/stint-dev/stint/store/sqlite"
	"github.com/stint-dev/stint/tool/mcp"
)

// pin is what a session is pinned to: the resolved agent, and the files that its
// command consists of. Its JSON is the config of the session's first entry, whose
// hash is the session's pin.
type pin struct {
	Agent json.RawMessage       `json:"agent"`
	Files map[string]stint.Hash `json:"files,omitempty"` // by path: relative to the agent's folder, or absolute
	// Servers is what MCP servers said of their tools, by file#name.
	Servers map[string]mcp.Pin `json:"servers,omitempty"`
	Store   string             `json:"store,omitempty"` // folder where the copies were first put, with pin: copy; its last part names the set
}

// newPin pins an agent as it is now. Files that cannot be read are not pinned: the
// loop says what is wrong with them.
func newPin(c *config.Agent, spec exec.Spec, kept copies) (json.RawMessage, error) {
	def, _ := c.Definition()
	p := pin{Agent: def}
	if files, err := spec.Fingerprint(); err == nil {
		p.Files = files
	}
	if c.Workspace != nil && c.Pin != config.PinCopy {
		maps.DeleteFunc(p.Files, func(name string, _ stint.Hash) bool { return !filepath.IsAbs(name) }) // a session has its own
	}
	if c.Pin == config.PinCopy {
		dir, err := kept.make(c, p.Files)
		if err != nil {
			return nil, err
		}
		p.Store = dir
	}
	return stint.Marshal(p)
}

func readPin(b json.RawMessage) (p pin, c config.Agent, err error) {
	if err := json.Unmarshal(b, &p); err != nil {
		return p, c, &stint.Error{Code: stint.Corrupt, Op: "pin", Err: err}
	}
	c, err = config.FromDefinition(p.Agent)
	return p, c, err
}

// pinOf reads what a session is pinned to.
func (s *site) pinOf(ctx context.Context, session stint.ID) (pin, config.Agent, error) {
	es, err := s.store.Entries(ctx, stint.Range{Session: session, Limit: 1})
	if err != nil {
		return pin{}, config.Agent{}, err
	}
	if len(es) == 0 {
		return pin{}, config.Agent{}, stint.Corrupt.Errorf("agent", "the journal has no first entry")
	}
	first, err := journal.Decode[journal.Created](&es[0])
	if err != nil {
		return pin{}, config.Agent{}, err
	}
	return readPin(first.Config)
}

// copies are the files of agents with pin: copy. They lie in the store, so that a
// session can go on from a backup of it alone; a program needs them in a folder, which
// is filled from there, and may be removed at any time.
type copies struct {
	store *sqlite.Store
	dir   string // of the folders, one for each set
}

// make keeps the project's files as they are now, as a set that is named by what is in
// it, so that sessions with equal files share one.
func (k copies) make(c *config.Agent, files map[string]stint.Hash) (string, error) {
	h := sha256.New()
	names := slices.Sorted(maps.Keys(files))
	for _, name := range names {
		fmt.Fprintf(h, "%s %s\n", files[name], name)
	}
	set := fmt.Sprintf("%x", h.Sum(nil)[:12])
	var all []sqlite.File
	for _, name := range names {
		if filepath.IsAbs(name) {
			continue // a program of the system
		}
		from := filepath.Join(c.Dir, filepath.FromSlash(name))
		data, err := os.ReadFile(from)
		var info fs.FileInfo
		if err == nil {
			info, err = os.Stat(from)
		}
		if err != nil {
			return "", &stint.Error{Code: stint.Unavailable, Op: "pin", Err: err, Hint: "make the agent's files readable"}
		}
		all = append(all, sqlite.File{Set: set, Path: filepath.ToSlash(name), Mode: info.Mode().Perm(), Data: data})
	}
	if err := k.store.KeepFiles(context.Background(), all); err != nil {
		return "", err
	}
	return filepath.Join(k.dir, set), nil
}

// use makes the command run the copies instead of the files.
func (k copies) use(spec *exec.Spec, p *pin) error {
	dir := filepath.Join(k.dir, filepath.Base(p.Store))
	all, err := k.store.Files(context.Background(), filepath.Base(p.Store))
	if err != nil {
		return err
	}
	for i := range all {
		if err := place(dir, &all[i]); err != nil {
			return &stint.Error{Code: stint.Unavailable, Op: "pin", Err: err, Hint: "check the folder beside the store, and that it is this user's"}
		}
	}
	spec.Command = slices.Clone(spec.Command)
	for i, arg := range spec.Command {
		path := arg
		if !filepath.IsAbs(path) {
			path = filepath.Join(spec.Dir, path)
		}
		rel, err := filepath.Rel(spec.Dir, path)
		if err != nil {
			continue
		}
		if _, ok := p.Files[filepath.ToSlash(rel)]; ok {
			spec.Command[i] = filepath.Join(dir, rel)
		}
	}
	return nil
}

// place puts a kept file into the folder, unless it is there as it was kept. Several
// processes may do so at once, and one may die in the middle.
func place(dir string, f *sqlite.File) error {
	if !filepath.IsLocal(filepath.FromSlash(f.Path)) {
		return fmt.Errorf("%q leads out of the agent's folder", f.Path)
	}
	to := filepath.Join(dir, filepath.FromSlash(f.Path))
	if info, err := os.Stat(to); err == nil && info.Mode().Perm() == f.Mode && info.Size() == int64(len(f.Data)) {
		if data, err := os.ReadFile(to); err == nil && bytes.Equal(data, f.Data) {
			return nil
		}
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	part, err := os.CreateTemp(filepath.Dir(to), ".part-")
	if err != nil {
		return err
	}
	_, err = part.Write(f.Data)
	err = errors.Join(err, part.Close())
	if err == nil {
		err = os.Chmod(part.Name(), f.Mode)
	}
	if err == nil {
		err = os.Rename(part.Name(), to)
	}
	if err != nil {
		_ = os.Remove(part.Name())
	}
	return err
}

// pinned is an agent that looks at each loop whether its files are still those that
// the session began with.
type pinned struct {
	*exec.Agent
	spec   exec.Spec
	files  map[string]stint.Hash
	strict bool

	mu    sync.Mutex
	stats map[string]string // size and time of the files when they were found to be right
	told  string            // what was last warned of
}

// Loop implements [stint.Agent].
func (p *pinned) Loop(ctx context.Context, l stint.Loop) (stint.Next, error) {
	changed, news := p.check()
	if len(changed) > 0 {
		what := "changed since this session began: " + strings.Join(changed, ", ")
		if p.strict {
			err := stint.Conflict.Errorf("pin", "%s", what)
			err.Hint = "put the files back, or start a new session"
			return stint.Next{}, stint.Fail(err)
		}
		if r, ok := l.(stint.Reporter); ok && news {
			r.Log("log", []byte("[stint] "+what+"\n"))
		}
	}
	return p.Agent.Loop(ctx, l)
}

// check names the files that are not what they were; news says whether that is
// other than what the check before said.
func (p *pinned) check() (changed []string, news bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	stats := map[string]string{}
	for name := range p.files {
		path := name
		if !filepath.IsAbs(path) {
			path = filepath.Join(p.spec.Dir, filepath.FromSlash(name))
		}
		if info, err := os.Stat(path); err == nil {
			stats[name] = fmt.Sprint(info.Size(), info.ModTime().UnixNano())
		}
	}
	if p.stats != nil && maps.Equal(stats, p.stats) {
		return nil, false
	}
	changed = drifted(p.files, p.spec)
	if len(changed) == 0 {
		p.stats = stats
	}
	said := strings.Join(changed, ", ")
	news, p.told = said != p.told, said
	return changed, news
}

// drifted names the files that differ from what they were, or are gone.
func drifted(was map[string]stint.Hash, spec exec.Spec) []string {
	now, err := spec.Fingerprint()
	if err != nil {
		return nil // the loop says what is wrong
	}
	var out []string
	for name, sum := range was {
		if now[name] != sum {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}
