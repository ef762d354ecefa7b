package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// The unit for a folder of its own, and for one at home, as files.
func TestUnit(t *testing.T) {
	for name, u := range map[string]*unit{
		"service": {argv: []string{"/usr/local/bin/stint", "serve", "--config", "/srv/agents/stint.yaml", "--store", "sqlite:" + stateStore}, user: "stint", dir: "/srv/agents", drain: 90 * time.Second, home: "yes"},
		"home":    {argv: []string{"/home/ana/go/bin/stint", "serve", "--config", "/home/ana/my agents/stint.yaml", "--store", "sqlite:/data/100%/s.db", "--addr=:443"}, user: "ana", dir: "/home/ana/my agents", stores: "/data/100%", drain: 1500 * time.Millisecond, low: true, home: "read-only"},
	} {
		golden(t, "unit_"+name+".service", []byte(u.String()))
	}
}

// What a unit executes is what was given, wherever it was given, with paths that hold
// from everywhere.
func TestPrintUnit(t *testing.T) {
	d := newDesk(t)
	d.put("stint.yaml", "agents: {}\n")
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ask := func(env map[string]string, args ...string) string {
		t.Helper()
		var out, talk buffer
		a := &app{in: strings.NewReader(""), out: &out, err: &talk, getenv: func(k string) string { return env[k] }, getwd: func() (string, error) { return d.dir, nil }}
		if code := a.run(t.Context(), append([]string{"serve", "--print-unit"}, args...)); code != exitOK {
			t.Errorf("%q: exit status %d\n%s", args, code, talk.String())
		}
		return out.String()
	}
	line := func(unit, key string) string {
		m := regexp.MustCompile(`(?m)^` + key + `=(.*)$`).FindStringSubmatch(unit)
		if m == nil {
			return "none"
		}
		return m[1]
	}
	plain := ask(map[string]string{"USER": "root", "HOME": "/root"})
	want := exe + " serve --config " + d.dir + "/stint.yaml --store sqlite:" + stateStore
	if got := line(plain, "ExecStart"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := line(plain, "ReadWritePaths") + " " + line(plain, "User") + " " + line(plain, "TimeoutStopSec"); got != d.dir+" stint 120" {
		t.Errorf("got %s", got)
	}
	full := ask(map[string]string{"USER": "ana", "HOME": filepath.Dir(d.dir), "STINT_HOSTS": "a.example,b.example", "STINT_STORE": "sqlite:data/s.db", "STINT_TLS_KEY": "key.pem"},
		"--tls-cert", "cert.pem", "--socket", "none", "--drain", "10m", "--behind-proxy", "--json")
	want = exe + " serve --config " + d.dir + "/stint.yaml --store sqlite:" + d.dir + "/data/s.db --behind-proxy=true --drain=10m0s --host=a.example --host=b.example --socket=none --tls-cert=" + d.dir + "/cert.pem --tls-key=" + d.dir + "/key.pem"
	if got := line(full, "ExecStart"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := line(full, "ReadWritePaths") + " " + line(full, "User") + " " + line(full, "ProtectHome") + " " + line(full, "TimeoutStopSec"); got != d.dir+" "+d.dir+"/data ana read-only 630" {
		t.Errorf("got %s", got)
	}
	if got := line(ask(nil, "--addr", "127.0.0.1:80"), "AmbientCapabilities"); got != "CAP_NET_BIND_SERVICE" {
		t.Errorf("port 80 has the capabilities %s", got)
	}
	if got := line(ask(nil, "--addr", "127.0.0.1:0"), "AmbientCapabilities"); got != "none" {
		t.Errorf("a free port has the capabilities %s", got)
	}
	if _, err := os.Stat(filepath.Join(d.dir, "data")); !os.IsNotExist(err) {
		t.Errorf("a store was made: %v", err)
	}
}

func TestUnitWords(t *testing.T) {
	for word, want := range map[string]string{
		"plain": "plain", "": `""`, "a b": `"a b"`, "100%": "100%%", "$HOME": "$$HOME", `a\b`: `"a\\b"`, `say "hi"`: `"say \"hi\""`, ";": `";"`, "a\nb": `"a\nb"`, "it's": `"it's"`,
	} {
		if got := unitWords([]string{word}); got != want {
			t.Errorf("%q is %s, want %s", word, got, want)
		}
	}
	if got := unitWords([]string{"a", "b c"}); got != `a "b c"` {
		t.Errorf("got %s", got)
	}
}
