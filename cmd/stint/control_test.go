package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
	"github.com/stint-dev/stint/journal"
)

// put writes a file of the desk's folder.
func (d *desk) put(name, text string) {
	d.t.Helper()
	if err := os.WriteFile(filepath.Join(d.dir, name), []byte(text), 0o600); err != nil {
		d.t.Fatal(err)
	}
}

// says calls the program and checks its exit status and what it says on either
// stream.
func (d *desk) says(code int, want string, args ...string) {
	d.t.Helper()
	got, out, talk := d.stint(args...)
	if got != code || !strings.Contains(out+talk, want) {
		d.t.Errorf("stint %s: exit status %d, want %d with %q\n%s%s", strings.Join(args, " "), got, code, want, out, talk)
	}
}

// held runs a session until the test is over.
func (d *desk) held(name string) {
	d.t.Helper()
	began, ended, goOn := make(chan engine.Created, 1), make(chan error, 1), make(chan bool)
	go func() {
		agent := engine.Agent{Name: "slow", Loop: stint.AgentFunc(func(ctx context.Context, l stint.Loop) (stint.Next, error) {
			if l.Session().At.Loop == 1 {
				return stint.Next{}, nil
			}
			select {
			case <-goOn:
			case <-ctx.Done():
			}
			return stint.Next{End: &stint.End{}}, nil
		})}
		_, err := d.e.RunNew(context.Background(), engine.Request{Agent: agent, Name: name}, func(c engine.Created) { began <- c })
		ended <- err
	}()
	<-began
	d.t.Cleanup(func() {
		close(goOn)
		if err := <-ended; err != nil {
			d.t.Error(err)
		}
	})
	d.ok("wait", name, "--for", "loop=1", "--timeout", "1m")
}

// An order says what it led to, and what is to be done next.
func TestOrders(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.put("stint.yaml", "agents:\n  chat: {kind: exec, command: [sh, chat.sh]}\n  pay: {kind: exec, command: [sh, pay.sh]}\n")
	d.put("chat.sh", "read -r line\n"+`echo '{"type":"end","outcome":"wait","wait":{"for":"message"}}'`+"\n")
	d.put("pay.sh", "read -r line\n"+`echo '{"type":"step","id":1,"name":"pay","kind":"tool","effect":"once"}'; read -r answer`+"\n")
	d.says(exitWaits, "stint send ", "run", "chat", "--name", "chat-1")
	d.says(exitWaits, "stint send ", "run", "chat", "--name", "chat-2")
	d.says(exitWaits, "stint resolve ", "run", "pay", "--name", "pay-1")
	pay, chat := d.row(d.id("pay-1")), d.row(d.id("chat-1"))
	done := d.run("done-1", works)
	d.held("slow-1")

	d.says(exitOK, "pause was sent and acts at its next step boundary", "pause", "slow-1")
	d.says(exitOK, "is running on ", "resume", "slow-1")
	d.says(exitOK, "prompt was sent and acts at its next loop", "send", "slow-1", "hello")
	d.says(exitOK, "run it here: stint resume "+chat.Short+" --run", "send", "chat-1", "hello")
	d.says(exitRefused, "("+done.Short+"): the session has ended: completed\n  stint restart "+done.Short+" --say TEXT --run", "send", "done-1", "hello")
	d.says(exitRefused, "stint restart "+done.Short+" --run begins it again", "resume", "done-1")

	// What ends one order does not keep it from the next session.
	d.says(exitRefused, "chat-2 ", "stop", "done-1", "chat-2", "chat-1")
	for _, name := range []string{"chat-1", "chat-2"} {
		if got := d.ok("show", name, "--field", "status"); got != "canceled\n" {
			t.Errorf("%s is %s", name, got)
		}
	}

	// Going on before the doubt is settled would ask the same again.
	way := "stint resolve " + pay.Short + ":1.1 --happened | --not | --unknown"
	for _, args := range []string{"resume pay-1", "pause pay-1", "interrupt pay-1", "restart pay-1", "restart pay-1 --dry-run", "resume pay-1 --run"} {
		d.says(exitRefused, "cannot go on before step 1.1 is settled\n  "+way, strings.Fields(args)...)
	}
	d.says(exitRefused, way, "resolve", "pay-1:2.1", "--happened")
	d.says(exitRefused, "has no step in doubt: it is completed\n  stint show", "resolve", "done-1", "--not")
	d.says(exitOK, "is pending; run it here: stint resume "+pay.Short+" --run", "resolve", "pay-1", "--unknown")
	d.says(exitRefused, "finds out what is in doubt", "resolve", "pay-1", "--unknown")
	d.says(exitOK, "is pending; run it here: stint resume "+done.Short+" --run", "restart", "done-1")
}

// A plan says what stays, what is left and what is not known.
func TestPlans(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.put("stint.yaml", "agents:\n  a: {kind: exec, command: [sh, agent.sh]}\n")
	d.put("agent.sh", `read -r line
echo '{"type":"state","patch":{"loop":'$STINT_LOOP'}}'
[ $STINT_LOOP = 3 ] && echo '{"type":"end","outcome":"complete"}' || echo '{"type":"end","outcome":"continue"}'
`)
	d.ok("run", "-q", "a", "--name", "a-1")
	short := strings.TrimSpace(d.ok("show", "a-1", "--field", "short"))
	for args, want := range map[string]string{
		"restart a-1 --dry-run": "Plan: go on with a-1 (SHORT) on the same line\n  Keeps     loops 1 to 3 · 0 steps\n  Next      loop 4\n  State     as it is, 10 bytes\n" +
			"Nothing was changed. To do it: stint restart SHORT --run\n",
		"restart a-1 --from 1 --dry-run": "Plan: restart a-1 (SHORT) from the end of loop 1\n  Keeps     loop 1 · 0 steps\n  Leaves    2 loops on line SHORT/0 (readable, not deleted)\n" +
			"  State     10 bytes become 10\n            /loop  3 → 1\nNothing was changed. To do it: stint restart SHORT --from 1\n",
		"restart a-1 --from 0 --dry-run": "Plan: restart a-1 (SHORT) from the beginning\n  Keeps     no loop\n",
	} {
		if got := d.ok(strings.Fields(args)...); !strings.HasPrefix(got, strings.ReplaceAll(want, "SHORT", short)) {
			t.Errorf("stint %s prints\n%s", args, got)
		}
	}
	for args, want := range map[string]string{
		"restart a-1 --dry-run --json":          `"from":3,"head":`,
		"restart a-1 --dry-run --json --from 1": `"leaves":{"line":0,"loops":2}`,
	} {
		if got := d.ok(strings.Fields(args)...); !strings.HasPrefix(got, `{"schema":"stint.plan/1","session":"`) || !strings.Contains(got, want) || strings.Count(got, "\n") != 1 {
			t.Errorf("stint %s prints\n%s", args, got)
		}
	}
	out := d.ok("restart", "a-1", "--from", "2", "--run", "--say", "again")
	if !strings.HasPrefix(out, "Plan: restart a-1 ("+short+") from the end of loop 2\n") || strings.Contains(out, "Nothing was changed") || !strings.Contains(out, "again") {
		t.Errorf("a restart prints\n%s", out)
	}
	if strings.Contains(out, "created by") {
		t.Errorf("a restart prints what was before it:\n%s", out)
	}
}

// Going back across a step in doubt needs a word on it, which the plan asks for.
func TestRestartAcrossADoubt(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	row := d.run("pay-1", doubts)
	hint := "--in-doubt skip"
	d.refuses([]refusal{
		refuse(exitRefused, "step 1.1 pay is in doubt", hint, "restart", "pay-1", "--from", "0"),
		refuse(exitRefused, "step 1.1 pay is in doubt", "stint resolve "+row.Short+":1.1", "restart", "pay-1", "--from", "0", "--in-doubt", "ask"),
		refuse(exitInvalid, "--in-doubt is ask, skip or redo", "--help", "restart", "pay-1", "--from", "0", "--in-doubt", "guess"),
		refuse(exitInvalid, "--in-doubt is ask, skip or redo", "--help", "restart", "pay-1", "--from", "0", "--in-doubt="),
		refuse(exitInvalid, "--in-doubt goes with --from", "--help", "restart", "pay-1", "--in-doubt", "skip"),
	}...)
	before := d.contents()
	for args, want := range map[string]struct {
		code         int
		note, advice string
	}{
		"":                {exitRefused, "does it again", "--from 0 --in-doubt skip | redo\n"},
		"--in-doubt skip": {exitOK, "gets a marker", "--from 0 --in-doubt skip\n"},
		"--in-doubt redo": {exitOK, "does it again", "--from 0 --in-doubt redo\n"},
	} {
		code, out, talk := d.stint(append([]string{"restart", "pay-1", "--from", "0", "--dry-run"}, strings.Fields(args)...)...)
		if code != want.code || !strings.Contains(out, want.note) || !strings.HasSuffix(out, want.advice) || (talk == "") != (code == exitOK) {
			t.Errorf("the plan with %q: exit status %d\n%s%s", args, code, out, talk)
		}
	}
	d.same("a plan", before)
	d.ok("restart", "pay-1", "--from", "0", "--in-doubt", "skip", "--reason", "the bank says no")
	es, err := d.store.Entries(t.Context(), stint.Range{Session: row.Session.ID, Kinds: []stint.Kind{stint.LineStarted}})
	if err != nil || len(es) != 1 {
		t.Fatalf("%d lines began: %v", len(es), err)
	}
	line, err := journal.Decode[journal.LineStarted](&es[0])
	if err != nil || line.InDoubt != journal.SkipDoubt || len(line.Doubts) != 1 || line.Doubts[0].Name != "pay" {
		t.Errorf("the new line has %+v: %v", line, err)
	}
}

// A session that runs is not where it was when the plan was made: it is taken back
// all the same.
func TestRestartWhileItRuns(t *testing.T) {
	d := newDesk(t)
	d.held("slow-1")
	d.says(exitOK, "restart was sent", "restart", "slow-1", "--from", "0")
	row := d.row(d.id("slow-1"))
	ms, err := d.store.Inbox(t.Context(), row.Session.ID)
	if err != nil || len(ms) > 1 {
		t.Fatalf("%d messages: %v", len(ms), err)
	}
	for _, m := range ms {
		if strings.Contains(string(m.Data), `"head"`) {
			t.Errorf("the restart is refused if the session moves on: %s", m.Data)
		}
	}
}

// id is the id of a session by its name.
func (d *desk) id(name string) stint.ID {
	d.t.Helper()
	var id stint.ID
	if err := json.Unmarshal([]byte(`"`+strings.TrimSpace(d.ok("show", name, "--field", "id"))+`"`), &id); err != nil {
		d.t.Fatal(err)
	}
	return id
}

func TestLimit(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.put("stint.yaml", "agents:\n  a: {kind: exec, command: [sh, agent.sh], limits: {cost: 0.10}}\n")
	d.put("agent.sh", `read -r line
echo '{"type":"step","id":1,"name":"sonnet","kind":"model","effect":"read"}'
read -r answer
case $answer in '{"type":"park",'*) exit ;; esac
echo '{"type":"result","id":1,"result":"yes","usage":{"output_tokens":70,"cost":"0.07"}}'
[ $STINT_LOOP = 4 ] && echo '{"type":"end","outcome":"complete"}' || echo '{"type":"end","outcome":"continue"}'
`)
	code, _, talk := d.stint("run", "-q", "a", "--name", "a-1")
	short := strings.TrimSpace(d.ok("show", "a-1", "--field", "short"))
	if want := "waits for budget: cost: $0.14 of $0.10\n  stint limit " + short + " --cost +0.10 --run\n"; code != exitWaits || !strings.HasSuffix(talk, want) {
		t.Errorf("exit status %d, want %d with %q\n%s", code, exitWaits, want, talk)
	}
	if out := d.ok("show", "a-1"); !strings.Contains(out, "Next        stint limit "+short+" --cost +0.10 --run\n") || !strings.Contains(out, "Command     sh agent.sh\n") {
		t.Errorf("the page:\n%s", out)
	}
	for _, c := range [][2]string{
		{"--cost +0.10 --tokens 1000", "0.20 1000"},
		{"--cost 5 --tokens +50", "5.00 1050"},
		{"--tokens none", "5.00 null"},
		{"--cost none", "null null"},
		{"--cost 0.30", "0.30 null"},
	} {
		d.ok(append([]string{"limit", "a-1"}, strings.Fields(c[0])...)...)
		got := strings.TrimSpace(d.ok("show", "a-1", "--field", "limits.cost.max")) + " " + strings.TrimSpace(d.ok("show", "a-1", "--field", "limits.tokens.max"))
		if got != c[1] {
			t.Errorf("stint limit a-1 %s: cost and tokens are %s, want %s", c[0], got, c[1])
		}
	}
	for _, v := range []string{"0", "-1", "x", "+0", "1.2.3", "9999999999999999999", "+9223372036.854775807"} {
		d.fails(exitInvalid, "an amount of dollars", "limit", "a-1", "--cost="+v)
	}
	d.fails(exitInvalid, "an amount of dollars", "start", "a", "--cost", "much")
	d.fails(exitInvalid, "a number above zero", "start", "a", "--tokens", "-1")
	d.ok("start", "a", "--name", "a-2", "--cost", "1.50", "--tokens", "9")
	if got := d.ok("show", "a-2", "--field", "limits.cost.max") + d.ok("show", "a-2", "--field", "limits.tokens.max"); got != "1.50\n9\n" {
		t.Errorf("the limits of a session that was started with some are %q", got)
	}
	d.ok("limit", "a-1", "--cost", "1", "--tokens", "none", "--run")
}
