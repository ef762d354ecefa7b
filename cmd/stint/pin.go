package main

import (
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
)

// pin is what a session is pinned to: the resolved agent, and the files that its
// command consists of. Its JSON is the config of the session's first entry, whose
// hash is the session's pin.
type pin struct {
	Agent json.RawMessage       `json:"agent"`
	Files map[string]stint.Hash `json:"files,omitempty"` // by path: relative to the agent's folder, or absolute
	Store string                `json:"store,omitempty"` // folder of the copies, with pin: copy
}

// newPin pins an agent as it is now. Files that cannot be read are not pinned: the
// loop says what is wrong with them.
func newPin(c *config.Agent, spec exec.Spec, copies string) (json.RawMessage, error) {
	def, _ := c.Definition()
	p := pin{Agent: def}
	if files, err := spec.Fingerprint(); err == nil {
		p.Files = files
	}
	if c.Pin == config.PinCopy {
		dir, err := copyFiles(c, p.Files, copies)
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

// copyFiles keeps the project's files as they are now: a folder named by what is in
// it, so that sessions with equal files share one.
func copyFiles(c *config.Agent, files map[string]stint.Hash, copies string) (string, error) {
	h := sha256.New()
	names := slices.Sorted(maps.Keys(files))
	for _, name := range names {
		fmt.Fprintf(h, "%s %s\n", files[name], name)
	}
	dir := filepath.Join(copies, fmt.Sprintf("%x", h.Sum(nil)[:12]))
	for _, name := range names {
		if filepath.IsAbs(name) {
			continue // a program of the system
		}
		to := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			return "", &stint.Error{Code: stint.Unavailable, Op: "pin", Err: err}
		}
		from := filepath.Join(c.Dir, filepath.FromSlash(name))
		if err := copyNew(from, to); err != nil && !errors.Is(err, fs.ErrExist) {
			return "", err
		}
		info, err := os.Stat(from)
		if err == nil {
			err = os.Chmod(to, info.Mode().Perm())
		}
		if err != nil {
			return "", &stint.Error{Code: stint.Unavailable, Op: "pin", Err: err}
		}
	}
	return dir, nil
}

// useCopies makes the command run the copies instead of the files.
func useCopies(spec *exec.Spec, p *pin) {
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
			spec.Command[i] = filepath.Join(p.Store, rel)
		}
	}
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
