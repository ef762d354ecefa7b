package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stint-dev/stint/internal/view"
)

func TestShow(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	done := d.run("done-1", works)
	pay := d.run("pay-1", doubts)

	out := d.ok("show", "pay-1", "--lines", "2")
	for _, want := range []string{idOf(pay), "waiting:doubt", "IN DOUBT", "stint resolve " + pay.Short + ":1.1 --happened", "session   waits for doubt"} {
		if !strings.Contains(out, want) {
			t.Errorf("the page has no %q:\n%s", want, out)
		}
	}
	if got := strings.Count(out, "Z "); strings.Contains(out, "loop      begins") {
		t.Errorf("--lines 2 prints more (%d):\n%s", got, out)
	}
	for args, want := range map[string]string{
		"show done-1 --field status":          "completed\n",
		"show done-1 --field loops.2.loop":    "3\n",
		"show " + done.Short + " --state":     `{"n":3}`,
		"show done-1 --state 2":               `{"n":2}`,
		"show done-1 --state=1":               `{"n":1}`,
		"show done-1:2 --state":               `{"n":2}`,
		"show done-1/0 --field line":          "0\n",
		"show pay-1 --field steps.0.outcome":  "doubt\n",
		"show @bad --field waiting":           "",
		"show done-1 --field result.text":     `{"closed":3}` + "\n",
		"show done-1 --field checkpoint.size": "7\n",
	} {
		if got := d.ok(strings.Fields(args)...); got != want && want != "" {
			t.Errorf("stint %s prints %q, want %q", args, got, want)
		}
	}
	var v view.Show
	if err := json.Unmarshal([]byte(d.ok("show", "done-1", "--json")), &v); err != nil || v.Schema != view.SchemaSession || len(v.Loops) != 3 || v.Result.Size != 12 {
		t.Errorf("the page as JSON: %v %+v", err, v)
	}
	d.fails(exitNotFound, "there is no member", "show", "done-1", "--field", "size")
	d.fails(exitNotFound, "loops 1 to 3 are completed", "show", "done-1", "--state", "4")
	d.fails(exitNotFound, "there is no line 1", "show", "done-1/1")
	d.fails(exitNotFound, "did you mean done-1?", "show", "done-2")
	d.fails(exitInvalid, "takes one session", "show")
	d.fails(exitInvalid, "takes one session", "show", "done-1", "2")
	d.fails(exitInvalid, "number of a loop", "show", "done-1", "--state", "x")
	d.fails(exitInvalid, "one loop", "show", "done-1", "2", "--state=1")
	d.run("pay-1", doubts)
	d.fails(exitInvalid, pay.Short+"  pay-1  waiting:doubt", "show", "pay-1")
}
