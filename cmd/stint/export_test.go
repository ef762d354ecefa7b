package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestExport(t *testing.T) {
	d := newDesk(t)
	done := d.run("done-1", works)
	out := d.ok("export", "done-1")
	if n := strings.Count(out, "\n"); n != int(done.Session.Head)+1 || !strings.HasPrefix(out, `{"schema":"stint.export/1"`) || !strings.Contains(out, done.Session.HeadHash.String()) {
		t.Errorf("%d lines:\n%s", n, out)
	}
	path := filepath.Join(d.dir, "done.jsonl")
	code, _, talk := d.stint("export", "done-1", "--out", path)
	b, err := os.ReadFile(path)
	if code != 0 || err != nil || strings.Count(string(b), "\n") != int(done.Session.Head)+1 || !strings.Contains(talk, "wrote "+path) {
		t.Errorf("exit status %d, %d bytes: %v\n%s", code, len(b), err, talk)
	}
	d.fails(exitRefused, "is there already", "export", "done-1", "--out", path)
	d.fails(exitUnavailable, "no such file", "export", "done-1", "--out", filepath.Join(d.dir, "none", "x"))
	d.fails(exitInvalid, "takes one session", "export")
	left, err := os.ReadDir(d.dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range left {
		if strings.HasPrefix(f.Name(), ".done") {
			t.Errorf("%s was left behind", f.Name())
		}
	}
}
