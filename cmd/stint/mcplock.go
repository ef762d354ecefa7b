package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/gofrs/flock"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/jsonx"
	"github.com/stint-dev/stint/tool/mcp"
)

// lockVersion is the version of the form of a lock file.
const lockVersion = 1

// maxLock bounds a lock file, in bytes.
const maxLock = 64 << 20

// lock is what was accepted of the servers in one file of MCP servers. It lies beside
// that file and belongs under version control with it: a description that a server
// changes, or a command that somebody changes in the file, is then seen before any model
// reads it.
type lock struct {
	Version int                `json:"version"`
	Servers map[string]mcp.Pin `json:"servers"` // by name
}

// lockPath is where the lock of a file lies: .mcp.lock.json beside .mcp.json.
func lockPath(file string) string {
	return strings.TrimSuffix(file, filepath.Ext(file)) + ".lock.json"
}

// known are the pins that a server may fit: the one that the session began with, then the
// one in the lock. There is none if nobody has accepted anything yet.
func (l *lock) known(began map[string]mcp.Pin, file, server string) (all []mcp.Pin) {
	for _, in := range []struct {
		pins map[string]mcp.Pin
		name string
	}{{began, file + "#" + server}, {l.Servers, server}} {
		if p, ok := in.pins[in.name]; ok {
			all = append(all, p)
		}
	}
	return all
}

func readLock(file string) (*lock, error) {
	l := &lock{Version: lockVersion, Servers: map[string]mcp.Pin{}}
	b, err := os.ReadFile(lockPath(file))
	if errors.Is(err, fs.ErrNotExist) {
		return l, nil
	}
	hint := "make it readable; without it every server is accepted anew"
	if err == nil {
		hint = "restore it from version control; without it every server is accepted anew"
		if l, err = parseLock(file, b); err == nil {
			return l, nil
		}
	}
	return nil, &stint.Error{Code: stint.Invalid, Op: "mcp", Err: fmt.Errorf("%s: %w", lockPath(file), err), Hint: hint}
}

// parseLock reads a lock strictly. What people and tools do to the spaces of JSON does
// not change what was accepted.
func parseLock(file string, b []byte) (*lock, error) {
	if err := jsonx.Check(b, jsonx.Limits{Size: maxLock, Depth: 200}); err != nil {
		return nil, err
	}
	var l lock
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&l); err != nil {
		var version struct{ Version int }
		if json.Unmarshal(b, &version) == nil && version.Version > lockVersion {
			err = fmt.Errorf("it has version %d, known is %d", version.Version, lockVersion)
		}
		return nil, err
	}
	if l.Version != lockVersion {
		return nil, fmt.Errorf("it has version %d, known is %d", l.Version, lockVersion)
	}
	if !sameJSON(b, l) { // encoding/json takes Servers for servers
		return nil, errors.New("it has more than stint writes, or names in other letters")
	}
	for name, p := range l.Servers {
		if p.Server != name {
			return nil, fmt.Errorf("under %q is what was accepted of the server %q", name, p.Server)
		}
		for tool, d := range p.Tools {
			var buf bytes.Buffer
			if len(d.Schema) > 0 && json.Compact(&buf, d.Schema) == nil {
				d.Schema = buf.Bytes()
				p.Tools[tool] = d
			}
		}
		if len(p.Command) > 0 {
			p.Dir = placed(file, p.Dir)
		}
		l.Servers[name] = p
	}
	return &l, nil
}

// sameJSON reports whether v says all that is in b.
func sameJSON(b []byte, v any) bool {
	again, err := json.Marshal(v)
	if err != nil {
		return false
	}
	var sides [2]any
	for i, side := range [][]byte{b, again} {
		d := json.NewDecoder(bytes.NewReader(side))
		d.UseNumber()
		if d.Decode(&sides[i]) != nil {
			return false
		}
	}
	return reflect.DeepEqual(sides[0], sides[1])
}

// acceptFirst keeps what servers are that nobody has accepted. If somebody did so
// meanwhile it has to be the same.
func acceptFirst(file string, now []mcp.Pin) error {
	return changeLock(file, func(l *lock) error {
		for _, p := range now {
			if was, ok := l.Servers[p.Server]; ok {
				if err := fits(file, []mcp.Pin{was}, func(mcp.Pin) mcp.Pin { return p }); err != nil {
					return err
				}
			}
			l.Servers[p.Server] = p
		}
		return nil
	})
}

// changeLock changes a lock file as it is now. Processes that do so at the same time come
// one after another.
func changeLock(file string, change func(*lock) error) error {
	turn := flock.New(file, flock.SetFlag(os.O_RDONLY))
	if turn.Lock() == nil { // file systems without locks go without
		defer turn.Close()
	}
	l, err := readLock(file)
	if err != nil {
		return err
	}
	if err := change(l); err != nil {
		return err
	}
	return writeLock(file, l)
}

func writeLock(file string, l *lock) error {
	out := lock{Version: l.Version, Servers: maps.Clone(l.Servers)}
	for name, p := range out.Servers {
		p.Dir = portable(file, p.Dir)
		out.Servers[name] = p
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // a schema stays byte for byte what it was, but for spaces
	enc.SetIndent("", "  ")
	if err := enc.Encode(out); err != nil {
		return &stint.Error{Code: stint.Internal, Op: "mcp", Err: err}
	}
	to := lockPath(file)
	part, err := os.CreateTemp(filepath.Dir(to), ".part-")
	if err == nil {
		_, err = part.Write(b.Bytes())
		err = errors.Join(err, part.Chmod(0o644), part.Sync(), part.Close())
		if err == nil {
			err = os.Rename(part.Name(), to)
		}
		if err != nil {
			_ = os.Remove(part.Name())
		}
	}
	if err != nil {
		return &stint.Error{Code: stint.Unavailable, Op: "mcp", Err: err,
			Hint: "what was accepted of a server is kept in " + to + ": make its folder writable"}
	}
	return nil
}
