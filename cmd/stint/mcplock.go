package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/tool/mcp"
)

// lockVersion is the version of the form of a lock file.
const lockVersion = 1

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

func readLock(file string) (*lock, error) {
	l := &lock{Version: lockVersion, Servers: map[string]mcp.Pin{}}
	b, err := os.ReadFile(lockPath(file))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return l, nil
	case err == nil:
		err = json.Unmarshal(b, l)
	}
	if err == nil && l.Version != lockVersion {
		err = fmt.Errorf("it has version %d, known is %d", l.Version, lockVersion)
	}
	if err != nil {
		return nil, &stint.Error{Code: stint.Invalid, Op: "mcp", Err: fmt.Errorf("%s: %w", lockPath(file), err),
			Hint: "restore it from version control; without it every server is accepted anew"}
	}
	if l.Servers == nil {
		l.Servers = map[string]mcp.Pin{}
	}
	return l, nil
}

// accept keeps what a server is now. Others that accept at the same time are not lost:
// the file is read again before it is written.
func (l *lock) accept(file string, p mcp.Pin) error {
	now, err := readLock(file)
	if err != nil {
		return err
	}
	now.Servers[p.Server] = p
	l.Servers[p.Server] = p
	b, err := json.MarshalIndent(now, "", "  ")
	if err != nil {
		return &stint.Error{Code: stint.Internal, Op: "mcp", Err: err}
	}
	to := lockPath(file)
	part, err := os.CreateTemp(filepath.Dir(to), ".part-")
	if err == nil {
		_, err = part.Write(append(b, '\n'))
		err = errors.Join(err, part.Chmod(0o644), part.Close())
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
