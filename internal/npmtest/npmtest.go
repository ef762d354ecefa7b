// Package npmtest brings servers of the Model Context Protocol project to tests, at
// pinned versions, from npm.
package npmtest

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// version is the one of all servers.
const version = "2026.8.31"

// Server returns the path of the program of a server (everything, filesystem or memory),
// to be started with node. All of them are installed into the user's cache if they are
// not there; several tests and processes may do so at once.
func Server(tb testing.TB, name string) string {
	tb.Helper()
	return filepath.Join(folder(tb), "node_modules", "@modelcontextprotocol", "server-"+name, "dist", "index.js")
}

func folder(tb testing.TB) string {
	tb.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		tb.Fatal(err)
	}
	dir := filepath.Join(cache, "stint-test", "mcp-servers-"+version)
	if _, err := os.Stat(filepath.Join(dir, "node_modules")); err == nil {
		return dir
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		tb.Fatal(err)
	}
	// Installed beside it and moved as a whole, so that an install that was cut is none.
	temp, err := os.MkdirTemp(filepath.Dir(dir), "installing-")
	if err != nil {
		tb.Fatal(err)
	}
	defer os.RemoveAll(temp)
	args := []string{"install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", temp}
	for _, name := range []string{"everything", "filesystem", "memory"} {
		args = append(args, "@modelcontextprotocol/server-"+name+"@"+version)
	}
	cmd := exec.CommandContext(tb.Context(), "npm", args...)
	cmd.Dir = temp
	if out, err := cmd.CombinedOutput(); err != nil {
		tb.Fatalf("%v: %v\n%s\nscripts/setup-test.sh installs npm; it needs a package registry", cmd.Args, err, out)
	}
	if err := os.Rename(temp, dir); err != nil && !errors.Is(err, os.ErrExist) && !strings.Contains(err.Error(), "not empty") {
		tb.Fatal(err)
	}
	return dir
}
