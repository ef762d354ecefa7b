package main

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/stint-dev/stint"
)

// What is wrong at the start of a server is told at once, with the place and what to do,
// and nothing listens.
func TestServeRefuses(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, tt := range []struct {
		name string
		yaml string
		make func(t *testing.T, d *desk) []string // and the flags
		code int
		says string
		hint string
	}{
		{"a stint.yaml that is no YAML", "agents:\n  a: {kind: exec, command: [true]\n  b: 3\n", nil, exitInvalid, "stint.yaml:3:4: not YAML", "stint agent validate"},
		{"a key that is not there", "agents:\n  a: {kind: exec, comand: [x]}\n", nil, exitInvalid, "stint.yaml:2:19: agents.a.comand", "did you mean command?"},
		{"bytes that are no text", "agents:\n  a: {kind: exec, command: [\"tr\xffe\"]}\n", nil, exitInvalid, "stint.yaml:2:32: expected UTF-8", "save the file as UTF-8"},
		{"a file that was cut off", "agents:\n  a: {kind: exec, command: [\"x", nil, exitInvalid, "stint.yaml:2:", "stint agent validate"},
		{"a stint.yaml that is not there", "agents: {}\n", flags("--config", "nowhere.yaml"), exitNotFound, "nowhere.yaml", "stint init"},
		{"a port that is taken", "agents: {}\n", flags("--addr", taken.Addr().String()), exitUnavailable, "address already in use", "--addr names another"},
		{"an address of another machine", "agents: {}\n", flags("--addr", "203.0.113.7:0"), exitInvalid, "other machines can reach", "stint token create"},
		{"what is no address", "agents: {}\n", flags("--addr", "7878"), exitInvalid, "no address to listen at", "HOST:PORT"},
		{"a socket beyond the length", "agents: {}\n", flags("--socket", "/"+strings.Repeat("x", 120)), exitUnavailable, "longer than a system takes", "shorter"},
		{"two sockets", "agents: {}\n", flags("--addr", "unix:a", "--socket", "b"), exitInvalid, "no other --socket", "stint serve --help"},
		{"half of TLS", "agents: {}\n", flags("--tls-cert", "c.pem"), exitInvalid, "belong together", "stint serve --help"},
		{"a certificate that is not there", "agents: {}\n", flags("--tls-cert", "c.pem", "--tls-key", "k.pem"), exitInvalid, "the certificate cannot be used", "PEM"},
		{"a host with a scheme", "agents: {}\n", flags("--host", "https://stint.example.com"), exitInvalid, "no name of a host", "without scheme and port"},
		{"a level that is none", "agents: {}\n", flags("--log-level", "loud"), exitInvalid, "not \"loud\"", "stint serve --help"},
		{"a form that is none", "agents: {}\n", flags("--log-format", "xml"), exitInvalid, "not \"xml\"", "stint serve --help"},
		{"a drain below zero", "agents: {}\n", flags("--drain", "-1s"), exitInvalid, "not below zero", "stint serve --help"},
		{"a store of a newer stint", "agents: {}\n", newerStore, exitRefused, "has schema version 99", "use the newer stint"},
		{"a store that is something else", "agents: {}\n", otherStore, exitCorrupt, "not a database", "stint db salvage"},
		{"a folder that is a file", "agents: {}\n", storeBelowFile, exitUnavailable, "not a directory", "check the folder"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := newDesk(t)
			d.put("stint.yaml", tt.yaml)
			args := []string{"serve"}
			if tt.make != nil {
				args = append(args, tt.make(t, d)...)
			}
			if !strings.Contains(strings.Join(args, " "), "--addr") {
				args = append(args, "--addr", "127.0.0.1:0")
			}
			code, out, talk := d.stint(args...)
			said, hint, _ := strings.Cut(talk, "\n  ")
			if code != tt.code || out != "" || !strings.Contains(said, tt.says) || !strings.Contains(hint, tt.hint) {
				t.Errorf("exit status %d, want %d with %q and the hint %q\n%s%s", code, tt.code, tt.says, tt.hint, out, talk)
			}
			if strings.Contains(talk, "serving") {
				t.Error("it served")
			}
		})
	}
}

// A server that cannot listen has taken up nothing: what a store is served by is not
// changed by a command that failed.
func TestServeListensFirst(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	d := newDesk(t)
	d.put("stint.yaml", serveYAML)
	d.fails(exitUnavailable, "address already in use", "serve", "--addr", taken.Addr().String())
	if out := d.ok("schedule", "ls"); strings.Count(out, "not served yet") != 2 {
		t.Errorf("its schedules were taken up:\n%s", out)
	}
}

// Where no server runs, nothing fires, and who looks at times of the future is told.
func TestNoServerIsTold(t *testing.T) {
	const told = "no server runs on this store"
	d := newDesk(t)
	d.put("stint.yaml", serveYAML)
	r, _ := d.serves()
	if _, _, talk := d.stint("schedule", "ls"); strings.Contains(talk, told) {
		t.Errorf("there is one: %s", talk)
	}
	r.ends()
	for _, args := range [][]string{{"schedule", "ls"}, {"schedule", "fire", "rarely"}} {
		if code, _, talk := d.stint(args...); code != exitOK || !strings.Contains(talk, told) || !strings.Contains(talk, "stint serve is one") {
			t.Errorf("stint %v: exit status %d, %s", args, code, talk)
		}
		if code, _, talk := d.stint(append(args, "--json")...); code != exitOK || talk != "" {
			t.Errorf("stint %v --json: exit status %d, %s", args, code, talk)
		}
	}
}

func flags(words ...string) func(*testing.T, *desk) []string {
	return func(*testing.T, *desk) []string { return words }
}

// newerStore is a store whose form only a newer program knows.
func newerStore(t *testing.T, d *desk) []string {
	path := filepath.Join(d.dir, "newer.db")
	d.at(".", nil, "db", "backup", path)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[60], b[61], b[62], b[63] = 0, 0, 0, 99 // "user version" in SQLite's fileformat2 documentation
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{"--store", "sqlite:" + path}
}

func otherStore(t *testing.T, d *desk) []string {
	d.put("other.db", strings.Repeat("no database at all ", 500))
	return []string{"--store", "sqlite:" + filepath.Join(d.dir, "other.db")}
}

func storeBelowFile(t *testing.T, d *desk) []string {
	d.put("file", "")
	return []string{"--store", "sqlite:" + filepath.Join(d.dir, "file", "stint.db")}
}

// A mistake in a variable is told under its name.
func TestServeRefusesVariables(t *testing.T) {
	d := newDesk(t)
	for name, value := range map[string]string{"STINT_DRAIN": "soon", "STINT_PATIENCE": "1", "STINT_BEHIND_PROXY": "perhaps", "STINT_LOCAL_ADMIN": "2"} {
		code, _, talk := d.at(".", map[string]string{name: value}, "serve", "--addr", "127.0.0.1:0")
		if code != exitInvalid || !strings.Contains(talk, name+": ") || !strings.Contains(talk, strconv.Quote(value)) {
			t.Errorf("%s=%s: exit status %d\n%s", name, value, code, talk)
		}
	}
}

// Each flag has a variable, and counts before it.
func TestServeVariables(t *testing.T) {
	env := map[string]string{
		"STINT_ADDR": "127.0.0.1:9", "STINT_SOCKET": "s", "STINT_TLS_CERT": "c", "STINT_TLS_KEY": "k", "STINT_HOSTS": "a.example,b.example", "STINT_BEHIND_PROXY": "true",
		"STINT_LOCAL_ADMIN": "1", "STINT_DRAIN": "3s", "STINT_PATIENCE": "4s", "STINT_LOG_FORMAT": "json", "STINT_LOG_LEVEL": "warn", "STINT_NO_RUN": "true",
	}
	var o serveOptions
	cmd := &cobra.Command{Use: "serve"}
	o.flags(cmd)
	if err := cmd.Flags().Set("addr", "127.0.0.1:1"); err != nil {
		t.Fatal(err)
	}
	if err := o.environment(cmd, func(k string) string { return env[k] }); err != nil {
		t.Fatal(err)
	}
	want := serveOptions{
		addr: "127.0.0.1:1", socket: "s", cert: "c", key: "k", hosts: []string{"a.example", "b.example"}, behindProxy: true, localAdmin: true, noRun: true,
		drain: 3 * time.Second, patience: 4 * time.Second, logFormat: logJSON, logLevel: "warn",
	}
	if !reflect.DeepEqual(o, want) {
		t.Errorf("got %+v, want %+v", o, want)
	}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Changed {
			t.Errorf("--%s has no variable", f.Name)
		}
	})
}

// Only a server that was told to end ends well; a service manager begins any other again.
func TestUnasked(t *testing.T) {
	for _, why := range []error{nil, stint.Fenced.Errorf("serve", "another process has it"), stint.Unavailable.Errorf("store", "a sync failed")} {
		ctx, end := context.WithCancelCause(t.Context())
		end(why)
		if got := unasked(ctx); !errors.Is(got, why) {
			t.Errorf("ended for %v: %v", why, got)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := unasked(ctx); err != nil {
		t.Errorf("a command that was interrupted: %v", err)
	}
}
