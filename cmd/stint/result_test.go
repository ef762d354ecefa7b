package main

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stint-dev/stint"
)

// result calls the verb by itself.
func (d *desk) result(asJSON bool, address string) (code int, out, talk string) {
	d.t.Helper()
	var o, e buffer
	a := &app{in: strings.NewReader(""), out: &o, err: &e, json: asJSON, getwd: func() (string, error) { return d.dir, nil },
		getenv: func(k string) string { return map[string]string{"STINT_STORE": "sqlite:" + d.path()}[k] }}
	cmd := a.resultCommand()
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs([]string{address})
	code = a.fail(cmd.ExecuteContext(d.t.Context()))
	return code, o.String(), e.String()
}

func TestResult(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	done := d.run("done-1", works)
	d.run("bad-1", breaks)
	d.run("pay-1", doubts)
	d.run("long-1", func(context.Context, stint.Loop) (stint.Next, error) {
		return stint.Next{End: &stint.End{Outcome: stint.Failed, Reason: "too long", Result: json.RawMessage(`"` + strings.Repeat("x", 5000) + `"`)}}, nil
	})
	for _, c := range []struct {
		address, out, talk string
		code               int
	}{
		{"done-1", `{"closed":3}` + "\n", "", exitOK},
		{done.Short + "/0", `{"closed":3}` + "\n", "", exitOK},
		{"bad-1", "", "failed: no such repository\n  stint logs", exitNotOK},
		{"long-1", `"` + strings.Repeat("x", 5000) + `"` + "\n", "failed: too long", exitNotOK}, // it lies in a blob
		{"pay-1", "", "has not ended: it is waiting:doubt\n  stint wait", exitWaits},
		{"nobody", "", "there is no session", exitNotFound},
		{"done-1/3", "", "there is no line 3 of done-1; it has line 0 alone", exitNotFound},
	} {
		code, out, talk := d.result(false, c.address)
		if code != c.code || out != c.out || !strings.Contains(talk, c.talk) || c.talk == "" && talk != "" {
			t.Errorf("the result of %s: exit status %d, want %d with %q\n%s%s", c.address, code, c.code, c.talk, out, talk)
		}
	}
	for address, want := range map[string]string{
		"done-1": `"name":"done-1","line":0,"status":"completed","reason":"nothing left","ended":"`,
		"bad-1":  `"result":null}`,
		"pay-1":  `"status":"waiting","reason":"doubt","ended":null,"result":null}`,
	} {
		_, out, talk := d.result(true, address)
		if !json.Valid([]byte(out)) || !strings.Contains(out, want) || talk != "" {
			t.Errorf("the result of %s as JSON:\n%s%s", address, out, talk)
		}
	}
}

// What a line that was left ended with stays readable.
func TestResultOfALine(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.put("stint.yaml", "agents:\n  a: {kind: exec, command: [sh, agent.sh]}\n")
	agent := func(result string) {
		d.put("agent.sh", "read -r line\n"+`echo '{"type":"end","outcome":"complete","result":"`+result+`"}'`+"\n")
	}
	agent("first")
	d.ok("run", "-q", "a", "--name", "a-1")
	d.ok("restart", "a-1", "--from", "0")
	if code, out, _ := d.result(false, "a-1"); code != exitWaits || out != "" {
		t.Errorf("before anybody runs the restarted session: exit status %d\n%s", code, out)
	}
	agent("second")
	d.ok("restart", "a-1", "--run")
	for address, want := range map[string]string{"a-1": "second", "a-1/0": "first", "a-1/1": "second"} {
		if code, out, talk := d.result(false, address); code != exitOK || out != `"`+want+`"`+"\n" {
			t.Errorf("the result of %s: exit status %d, want %q\n%s%s", address, code, want, out, talk)
		}
	}
}
