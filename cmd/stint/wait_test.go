package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
)

func TestWait(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.run("done-1", works)
	d.run("pay-1", doubts)
	d.run("bad-1", breaks)
	d.run("chat-1", sleeps)
	began, goOn, ended := make(chan stint.ID, 1), make(chan bool), make(chan error, 1)
	go func() {
		agent := engine.Agent{Name: "slow", Loop: stint.AgentFunc(func(_ context.Context, l stint.Loop) (stint.Next, error) {
			if l.Session().At.Loop == 1 {
				return stint.Next{}, nil
			}
			<-goOn
			return stint.Next{End: &stint.End{}}, nil
		})}
		_, err := d.e.RunNew(context.Background(), engine.Request{Agent: agent, Name: "slow-1"}, func(c engine.Created) { began <- c.ID })
		ended <- err
	}()
	<-began
	for _, c := range []struct {
		args string
		code int
		out  string
	}{
		{"wait done-1", exitOK, "completed · 3 loops, 0 steps · nothing left"},
		{"wait done-1 --for loop=2", exitOK, "completed"},
		{"wait done-1 --for waiting", exitOK, "completed"},
		{"wait bad-1", exitNotOK, "failed · 0 loops, 0 steps · no such repository"},
		{"wait bad-1 --for loop=9", exitNotOK, "failed"},
		{"wait pay-1", exitWaits, "waiting:doubt"},
		{"wait pay-1 --for waiting", exitWaits, "waiting:doubt"},
		{"wait chat-1", exitWaits, "what next?"},
		{"wait slow-1 --for loop=1 --timeout 1m", exitOK, "slow-1"},
		{"wait slow-1 --for running --timeout 1m", exitOK, "running"},
		{"wait slow-1 --timeout 150ms", exitTimeout, "running"},
		{"wait slow-1 --for loop=2 --timeout 1ms", exitTimeout, "running"},
		{"wait done-1 --json", exitOK, `"status":"completed"`},
	} {
		begun := time.Now()
		code, out, talk := d.stint(strings.Fields(c.args)...)
		if code != c.code || !strings.Contains(out, c.out) || strings.Count(out, "\n") != 1 {
			t.Errorf("stint %s: exit status %d, want %d with %q\n%s%s", c.args, code, c.code, c.out, out, talk)
		}
		if took := time.Since(begun); took > 15*time.Second {
			t.Errorf("stint %s took %v", c.args, took)
		}
	}
	for _, args := range []string{"wait", "wait a b", "wait done-1 --for loop=0", "wait done-1 --for loop=x", "wait done-1 --for peace"} {
		d.fails(exitInvalid, "stint:", strings.Fields(args)...)
	}
	var out, talk buffer
	code := make(chan int)
	go func() { code <- d.stintTo(t.Context(), &out, &talk, "wait", "slow-1", "--timeout", "1m") }()
	close(goOn)
	if got := <-code; got != exitOK || !strings.Contains(out.String(), "slow-1") {
		t.Errorf("exit status %d\n%s%s", got, out.String(), talk.String())
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
