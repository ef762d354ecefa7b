package main

import (
	"encoding/json"
	"strings"
	"testing"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/stint-dev/stint/internal/view"
)

func TestVerify(t *testing.T) {
	d := newDesk(t)
	done := d.run("done-1", works)
	pay := d.run("pay-1", doubts)
	if out := d.ok("verify", "done-1", pay.Short); strings.Count(out, "sound: ") != 2 {
		t.Errorf("stint verify prints\n%s", out)
	}
	if out := d.ok("verify", "--all", "--states"); !strings.HasPrefix(out, "2 sessions, ") || !strings.Contains(out, "3 states: all sound") {
		t.Errorf("stint verify --all prints\n%s", out)
	}
	d.fails(exitInvalid, "give sessions, or --all", "verify")
	d.fails(exitInvalid, "give sessions, or --all", "verify", "done-1", "--all")
	d.fails(exitNotFound, "no session", "verify", "done-9")

	damage(t, d, "UPDATE journal SET actor = 52 WHERE seq = 3 AND sid = (SELECT sid FROM sessions WHERE name = 'done-1')")
	code, out, talk := d.stint("verify", "--all")
	if code != exitCorrupt || !strings.Contains(out, "done-1 ("+done.Short+") NOT SOUND") || !strings.Contains(out, "entry 3, journal:") || strings.Contains(out, "pay-1") {
		t.Errorf("exit status %d\n%s%s", code, out, talk)
	}
	code, out, _ = d.stint("verify", "--all", "--json")
	var v view.Verification
	if err := json.Unmarshal([]byte(out), &v); err != nil || code != exitCorrupt || v.OK || v.Sessions != 2 || len(v.Items) != 1 || v.Items[0].Session != done.Session.ID || v.Items[0].Problems[0].Seq != 3 {
		t.Errorf("exit status %d: %v\n%s", code, err, out)
	}
	code, out, _ = d.stint("verify", "pay-1", "--json")
	if err := json.Unmarshal([]byte(out), &v); err != nil || code != 0 || !v.OK || len(v.Items) != 1 {
		t.Errorf("exit status %d: %v\n%s", code, err, out)
	}
	damage(t, d, "UPDATE sessions SET fold = json_set(fold, '$.reason', 'all is well') WHERE name = 'pay-1'")
	code, out, _ = d.stint("verify", "pay-1")
	if code != exitCorrupt || !strings.Contains(out, "fold: the entries add up to reason") {
		t.Errorf("exit status %d\n%s", code, out)
	}
}

// damage changes the database behind the program's back.
func damage(t *testing.T, d *desk, q string) {
	t.Helper()
	c, err := sqlite.OpenConn(d.path(), sqlite.OpenReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	if err := sqlitex.ExecuteTransient(c, q, nil); err != nil {
		t.Error(err)
	}
	if n := c.Changes(); n != 1 {
		t.Errorf("%s changed %d rows", q, n)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
}
