package main

import (
	"context"
	"strings"
	"testing"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
)

func TestLogs(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.run("done-1", works)
	pay := d.run("pay-1", doubts)

	all := d.ok("logs", "done-1")
	if got := strings.Count(all, "\n"); strings.Contains(all, "\x1b") || !strings.Contains(all, `\x1b[31mred`) || !strings.Contains(all, "completed · nothing left") {
		t.Errorf("%d lines:\n%s", got, all)
	}
	for args, want := range map[string]int{
		"logs done-1 -o cat":                     6,
		"logs done-1 -n 1":                       1,
		"logs done-1 --loop 2 -k output":         2,
		"logs done-1:3 -k output":                2,
		"logs done-1 -k loop":                    6,
		"logs done-1 -g red$":                    0,
		"logs done-1 -g red":                     3,
		"logs done-1 -p warn":                    0,
		"logs pay-1 -p warn":                     1,
		"logs pay-1 -p warn -x":                  2,
		"logs pay-1 --step 1":                    1,
		"logs pay-1 --step 1.1":                  1,
		"logs pay-1 --step 2.1":                  0,
		"logs pay-1 --line 0 -k session":         2,
		"logs done-1 -S 1h -k session":           2,
		"logs done-1 -U 1h":                      0,
		"logs done-1 -o jsonl --stream log":      8,
		"logs done-1 -o jsonl -k output -n 2":    2,
		"logs done-1 --after 10 -o jsonl":        1,
		"logs " + idOf(pay) + " -o cat":          0,
		"logs done-1 -o cat --stream stderr,log": 0,
	} {
		if got := strings.Count(d.ok(strings.Fields(args)...), "\n"); got != want {
			t.Errorf("stint %s prints %d lines, want %d:\n%s", args, got, want, d.ok(strings.Fields(args)...))
		}
	}
	if out := d.ok("logs", "done-1", "-o", "cat", "--raw", "--loop", "1"); out != "loop done\n\x1b[31mred\x1b[0m\n" {
		t.Errorf("the raw output is %q", out)
	}
	if out := d.ok("logs", "done-1", "--json", "--content"); !strings.HasPrefix(out, `{"schema":"stint.entry.list/1"`) || !strings.Contains(out, `"json":{"n":1}`) {
		t.Errorf("as JSON:\n%s", out)
	}
	for _, args := range []string{"logs", "logs a b", "logs done-1 -o xml", "logs done-1 -k shell", "logs done-1 -p fatal", "logs done-1 -g (", "logs done-1 --loop x", "logs done-1 --step x.y",
		"logs done-1 -n -1", "logs done-1 -S soon", "logs done-1 -U soon", "logs done-1 --line -2", "logs done-1 --step 1.1.1.1"} {
		d.fails(exitInvalid, "stint:", strings.Fields(args)...)
	}
	d.fails(exitNotFound, "there is no line 3", "logs", "done-1", "--line", "3")
	d.fails(exitNotFound, "has not begun loop 9; it is at loop 3", "logs", "done-1:9")
}

// A follower sees what comes, and ends with the session, saying so.
func TestLogsFollow(t *testing.T) {
	d := newDesk(t)
	began, goOn := make(chan stint.ID, 1), make(chan bool)
	ended := make(chan error, 1)
	go func() {
		agent := engine.Agent{Name: "triage", Loop: stint.AgentFunc(func(_ context.Context, l stint.Loop) (stint.Next, error) {
			l.(stint.Reporter).Log("stdout", []byte("first\n"))
			<-goOn
			l.(stint.Reporter).Log("stdout", []byte("second\n"))
			return stint.Next{End: &stint.End{Reason: "all read"}}, nil
		})}
		_, err := d.e.RunNew(context.Background(), engine.Request{Agent: agent, Name: "chat-1"}, func(c engine.Created) { began <- c.ID })
		ended <- err
	}()
	<-began
	var out, talk buffer
	code := make(chan int)
	go func() { code <- d.stintTo(t.Context(), &out, &talk, "logs", "chat-1", "-f") }()
	out.until(t, "first")
	close(goOn)
	if got := <-code; got != 0 {
		t.Errorf("exit status %d\n%s", got, talk.String())
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if !strings.Contains(out.String(), "second") || !strings.Contains(out.String(), "completed · all read") || !strings.Contains(talk.String(), "the session has ended: completed, all read") {
		t.Errorf("%s%s", out.String(), talk.String())
	}

	d.run("chat-2", sleeps)
	ctx, cancel := context.WithCancel(t.Context())
	var out2, talk2 buffer
	go func() { code <- d.stintTo(ctx, &out2, &talk2, "logs", "chat-2", "-f", "--json") }()
	out2.until(t, `"session.waiting"`)
	cancel()
	if got := <-code; got != exitInterrupted {
		t.Errorf("exit status %d after an interrupt\n%s", got, talk2.String())
	}
	if !strings.HasPrefix(out2.String(), `{"schema":"stint.entry/1"`) {
		t.Errorf("a follower with --json prints no JSON lines:\n%s", out2.String())
	}
}
