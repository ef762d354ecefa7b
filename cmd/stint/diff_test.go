package main

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestDiffOfLoopsAndSessions(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	oncall(d)
	d.says(exitOK, "", "run", "count", "--name", "one")
	d.put("count.sh", strings.NewReplacer(`"add"`, `"sum"`, "= 3", "= 2").Replace(countProgram))
	d.says(exitOK, "", "run", "count", "--name", "two")

	d.says(exitOK, "/sum  1 → 2", "diff", "one", "1", "2")
	d.says(exitOK, "~ 1.1 and 2.1 step add (read)\n        input /n  1 → 2\n        result /n  1 → 2", "diff", "one", "1", "2", "--calls")
	d.says(exitOK, "    - 1.1 step add (read) completed\n    + 1.1 step sum (read) completed", "diff", "one", "two")
	d.says(exitOK, "Loop 3 is on a alone", "diff", "one", "two")
	d.says(exitOK, "Loops 1 to 3 are the same", "diff", "one", "one", "--state", "--calls", "--text")
	d.says(exitOK, "The same in all that was compared", "diff", "one:1", "two:1", "--state", "--text")
	d.says(exitOK, "steps 1", "diff", "one", "1", "2", "--cost")
	var doc struct {
		Schema string
		Same   bool
		Loops  []struct{ A, B int }
	}
	if err := json.Unmarshal([]byte(d.ok("diff", "one", "two", "--calls", "--json")), &doc); err != nil || doc.Schema != "stint.diff/1" || doc.Same || len(doc.Loops) != 3 || doc.Loops[2].B != 0 {
		t.Errorf("the document is %+v, %v", doc, err)
	}
	d.fails(exitInvalid, "takes a session and two loops, or two sessions", "diff", "one")
	d.fails(exitInvalid, "is no loop", "diff", "one", "1", "x")
	d.fails(exitInvalid, "names a loop, and two more are given", "diff", "one:1", "1", "2")
	d.fails(exitInvalid, "one side is a loop and the other a whole session", "diff", "one:1", "two")
	d.fails(exitNotFound, "there is no loop 4", "diff", "one", "1", "4")
	d.fails(exitNotFound, "there is no session", "diff", "one", "three")
}

func TestBisectOfSession(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	oncall(d)
	d.says(exitOK, "", "run", "count", "--name", "one")
	short := d.row(d.id("one")).Short
	d.says(exitOK, "Loop 2 of one ("+short+") is the first: /sum\n  before    1\n  then      2\n  step      2.1 step add (read) ended last before it\n  headline  at 2\n"+
		"  stint logs "+short+":2.1 --content\n  stint diff "+short+" 1 2\n  stint restart "+short+" --from 1 --dry-run\n", "bisect", "one", "/sum=2")
	d.says(exitOK, "Loop 1 of one", "bisect", "one/0", "/sum")
	d.says(exitOK, `"loop":3`, "bisect", "one", "/sum=3", "--assume-monotone", "--json")
	d.says(exitOK, "Loop 2 of one", "bisect", "one", "/sum", "--changed")
	d.fails(exitNotFound, "no state at the end of loops 1 to 3 has /sum = 4", "bisect", "one", "/sum=4")
	d.fails(exitInvalid, "is no JSON pointer", "bisect", "one", "sum")
	d.fails(exitInvalid, "leave =VALUE out", "bisect", "one", "/sum=1", "--changed")
	d.fails(exitInvalid, "leave --assume-monotone out", "bisect", "one", "/sum", "--changed", "--assume-monotone")
	d.fails(exitInvalid, "a session and a JSON pointer", "bisect", "one")
}
