package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// unit is a service of systemd that runs stint serve. It is made from the flags of the
// command itself, since most of what it says follows from them: what is executed, how
// long an end may take, what may be written.
type unit struct {
	argv   []string
	user   string
	dir    string        // where stint.yaml is; empty: there is none
	stores string        // the folder of the store, if it is not the service's own
	drain  time.Duration // of --drain
	low    bool          // it listens at a port that is for root
	home   string        // ProtectHome
}

// stateStore is the store of a service that was not told where it is: StateDirectory.
const stateStore = "/var/lib/stint/stint.db"

// printUnit prints the unit that runs stint serve with the flags that were given.
func (a *app) printUnit(cmd *cobra.Command, o *serveOptions) error {
	u, err := a.unit(cmd, o)
	if err != nil {
		return err
	}
	_, err = a.out.Write([]byte(u.String()))
	return err
}

func (a *app) unit(cmd *cobra.Command, o *serveOptions) (*unit, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	wd, err := a.getwd()
	if err != nil {
		return nil, err
	}
	u := &unit{argv: []string{exe, "serve"}, user: "stint", drain: o.drain, home: "yes"}
	config, err := a.configPath()
	if err != nil {
		return nil, err
	}
	if config != "" {
		config = absolute(wd, config)
		u.dir = filepath.Dir(config)
		u.argv = append(u.argv, "--config", config)
	}
	store, err := a.unitStore(wd, u)
	if err != nil {
		return nil, err
	}
	u.argv = append(append(u.argv, "--store", "sqlite:"+store), flagsOf(cmd, wd)...)
	if _, port, err := net.SplitHostPort(o.addr); err == nil {
		n, err := strconv.Atoi(port)
		u.low = err == nil && n > 0 && n < 1024
	}
	me, mine := a.getenv("USER"), a.getenv("HOME")
	for _, path := range []string{exe, u.dir, store} {
		if below(path, "/home") || below(path, "/root") || below(path, mine) {
			u.home = "read-only"
		}
	}
	if me != "" && me != "root" && below(u.dir, mine) {
		u.user = me // nobody else can read what is there
	}
	return u, nil
}

// unitStore is where the service has its store, which is its own folder if nothing says
// otherwise.
func (a *app) unitStore(wd string, u *unit) (string, error) {
	file, err := a.loadConfig()
	if err != nil {
		return "", err
	}
	if a.storeFlag == "" && a.getenv("STINT_STORE") == "" && (file == nil || file.Store == "") {
		return stateStore, nil
	}
	path, err := a.storePath(file)
	if err != nil {
		return "", err
	}
	path = absolute(wd, path)
	u.stores = filepath.Dir(path)
	return path, nil
}

// flagsOf are the flags of a command as they were given, whether on the command line or
// by the environment, with paths that are the same from everywhere.
func flagsOf(cmd *cobra.Command, wd string) (words []string) {
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if cmd.InheritedFlags().Lookup(f.Name) != nil || f.Name == "print-unit" {
			return
		}
		values := []string{f.Value.String()}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		for _, v := range values {
			if slices.Contains([]string{"tls-cert", "tls-key", "socket"}, f.Name) && v != noSocket {
				v = absolute(wd, v)
			}
			if path, ok := strings.CutPrefix(v, "unix:"); ok && f.Name == "addr" {
				v = "unix:" + absolute(wd, path)
			}
			words = append(words, "--"+f.Name+"="+v)
		}
	})
	return words
}

func absolute(wd, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(wd, path)
}

// below reports whether path is in a folder, at any depth.
func below(path, dir string) bool {
	return path != "" && dir != "" && (path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/"))
}

// String is the file.
func (u *unit) String() string {
	var b strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	say("# stint as a service: put this into /etc/systemd/system/stint.service, then")
	if u.user == "stint" {
		say("#   useradd --system --home-dir /var/lib/stint stint")
	}
	say("#   systemctl daemon-reload && systemctl enable --now stint\n")
	say("[Unit]\nDescription=stint: sessions of agents, their schedules, hooks and API")
	say("Wants=network-online.target\nAfter=network-online.target")
	say("# A full disk may last for hours: it is tried again without end.\nStartLimitIntervalSec=0\n")
	say("[Service]\nType=notify\nExecStart=%s\nExecReload=/bin/kill -HUP $MAINPID\nUser=%s", unitWords(u.argv), u.user)
	if u.dir != "" {
		say("WorkingDirectory=%s", strings.ReplaceAll(u.dir, "%", "%%"))
	}
	say("StateDirectory=stint\nStateDirectoryMode=0700\nUMask=0077")
	say("# Keys of providers and secrets of hooks, NAME=value, in a file that root alone can read.\nEnvironmentFile=-/etc/stint/environment\n")
	u.life(say)
	u.walls(say)
	say("\n[Install]\nWantedBy=multi-user.target")
	return b.String()
}

// life is how the service begins, ends, and begins again.
func (u *unit) life(say func(string, ...any)) {
	say("# The store of an older version is brought up to date first.\nTimeoutStartSec=5min")
	say("# Without a sign of life for so long it is ended, and begun again.\nWatchdogSec=1min\nRestart=on-failure\nRestartSec=5")
	say("# Wrong flags and a wrong stint.yaml are as wrong the next time.\nRestartPreventExitStatus=2")
	say("# The server is told to end, and ends its agents itself: steps that may run once only\n# have %v of --drain. What is left after that is killed.", u.drain)
	say("KillMode=mixed\nTimeoutStopSec=%d", int64((u.drain+30*time.Second+time.Second-1)/time.Second))
	say("# An agent that takes all memory ends alone.\nOOMPolicy=continue")
	say("# Agents get cgroups of their own, so that nothing of them is left behind.\nDelegate=yes\n")
}

// walls is what the service and all that it starts cannot do. What would keep usual
// agents from working is not there: just-in-time compilers write code, and sandboxes make
// namespaces.
func (u *unit) walls(say func(string, ...any)) {
	say("# Agents can do no more than this either.\nNoNewPrivileges=yes\nProtectSystem=strict\nProtectHome=%s", u.home)
	writes := slices.DeleteFunc([]string{u.dir, u.stores}, func(dir string) bool { return dir == "" })
	if slices.Sort(writes); len(writes) > 0 {
		say("# Where agents work; without it they can write to /tmp and /var/lib/stint alone.\nReadWritePaths=%s", unitWords(slices.Compact(writes)))
	}
	say("PrivateTmp=yes\nPrivateDevices=yes\nProtectClock=yes\nProtectHostname=yes\nProtectKernelLogs=yes\nProtectKernelModules=yes\nProtectKernelTunables=yes")
	say("ProtectProc=invisible\nLockPersonality=yes\nRestrictRealtime=yes\nRestrictSUIDSGID=yes\nSystemCallArchitectures=native")
	if u.low {
		say("# For a port below 1024.\nCapabilityBoundingSet=CAP_NET_BIND_SERVICE\nAmbientCapabilities=CAP_NET_BIND_SERVICE")
		return
	}
	say("CapabilityBoundingSet=")
}

// unitWords writes words as a line of systemd.syntax(7) has them, where %, $ and
// backslashes mean something.
func unitWords(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		q := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "%", "%%", "$", "$$", "\n", `\n`, "\t", `\t`).Replace(w)
		if w == "" || strings.ContainsAny(w, " \t\n'\"\\;") {
			q = `"` + q + `"`
		}
		quoted[i] = q
	}
	return strings.Join(quoted, " ")
}
