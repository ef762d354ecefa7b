package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPinCopyIsInTheStore: what a session with pin: copy needs to go on is in the
// store, so in every backup of it, and in what is salvaged. The folder beside the store
// may be gone, or be damaged.
func TestPinCopyIsInTheStore(t *testing.T) {
	d := newDesk(t)
	d.damaged = true
	d.put("agent.sh", "read -r line\n. ./lib.sh\n"+`echo '{"type":"log","text":"first version"}'`+"\n"+`echo '{"type":"end","outcome":"wait","wait":{"for":"message"}}'`+"\n")
	d.put("lib.sh", ":\n")
	d.put("stint.yaml", "agents:\n  copied: {kind: exec, command: [sh, agent.sh], pin: copy}\n")
	d.fails(exitWaits, "", "run", "-q", "copied", "--name", "copied")
	pins := filepath.Join(d.path()+".d", "pins")
	copied, err := filepath.Glob(filepath.Join(pins, "*", "agent.sh"))
	if err != nil || len(copied) != 1 {
		t.Fatalf("%v: the copies are %q", err, copied)
	}
	d.put("agent.sh", "echo second version\nexit 9\n")
	backup, restored, saved := filepath.Join(d.dir, "backup.db"), filepath.Join(d.dir, "restored.db"), filepath.Join(d.dir, "saved.db")
	d.ok("db", "backup", backup)
	d.ok("db", "restore", backup, "--store", "sqlite:"+restored)
	d.ok("db", "salvage", backup, saved)
	for name, c := range map[string]struct {
		store  string
		before func() error
	}{
		"a folder that was removed": {d.path(), func() error { return os.RemoveAll(pins) }},
		"half a copy":               {d.path(), func() error { return os.WriteFile(copied[0], []byte("echo"), 0o600) }},
		"restored":                  {restored, func() error { return os.RemoveAll(pins) }},
		"salvaged":                  {saved, func() error { return os.RemoveAll(pins) }},
	} {
		if err := c.before(); err != nil {
			t.Fatal(err)
		}
		d.fails(exitWaits, "", "send", "copied", "more", "--run", "--store", "sqlite:"+c.store)
		log := d.ok("logs", "copied", "--store", "sqlite:"+c.store)
		if n := strings.Count(log, "first version"); n < 2 || strings.Contains(log, "second version") {
			t.Errorf("%s: the log\n%s", name, log)
		}
		d.ok("verify", "--all", "--store", "sqlite:"+c.store)
	}
	damageAt(t, d.path(), "UPDATE copies SET data = data || x'0a'")
	d.fails(exitCorrupt, "", "verify", "--all")
	if code, out, talk := d.stint("send", "copied", "more", "--run"); code == exitOK || strings.Contains(out+talk, "second version") {
		t.Errorf("with a damaged copy: exit status %d\n%s%s", code, out, talk)
	}
}
