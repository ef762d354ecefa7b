package main

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/engine"
)

// nastyAgent says such things wherever an agent can say something.
func nastyAgent(end func(stint.Loop) stint.Next) stint.AgentFunc {
	return func(ctx context.Context, l stint.Loop) (stint.Next, error) {
		if r, ok := l.(stint.Reporter); ok {
			r.Progress(nasty)
			for _, stream := range []string{"stdout", "stderr", "log", nasty} {
				r.Log(stream, []byte(nasty+"\n"))
			}
		}
		text := strings.ToValidUTF8(nasty, "?")
		_, err := stint.Do(ctx, l, stint.Step{Name: text, Effect: stint.Read, Input: []byte(jsonNasty)}, func(context.Context, string) (json.RawMessage, error) { return []byte(jsonNasty), nil })
		if err == nil {
			_, _ = stint.Do(ctx, l, stint.Step{Name: text, Effect: stint.Once, Input: []byte(jsonNasty)}, func(context.Context, string) (int, error) { return 0, stint.Definite(errors.New(nasty)) })
		}
		next := end(l)
		next.State, next.Headline = []byte(jsonNasty), nasty
		return next, err
	}
}

// nastyDesk has sessions that ended, failed, wait, and are in doubt, with such
// characters in each place that a person, an agent or a program can fill.
func nastyDesk(t *testing.T) *desk {
	t.Helper()
	d := newDesk(t)
	text := strings.ToValidUTF8(nasty, "?") // what is no text at all the engine refuses
	run := func(name string, fn stint.AgentFunc) {
		_, err := d.e.RunNew(t.Context(), engine.Request{Agent: engine.Agent{Name: "nasty" + text, Loop: fn, Retry: engine.Retry{Attempts: 1}}, Name: name, Actor: stint.Actor("human:" + text),
			Input: []byte(nasty), Labels: map[string]string{text: text}, Trigger: stint.Trigger{Kind: "prompt", Ref: text}, Dedupe: name + text}, func(engine.Created) {})
		if err != nil {
			t.Fatal(err)
		}
	}
	run("done", nastyAgent(func(l stint.Loop) stint.Next {
		if l.Session().At.Loop < 2 {
			return stint.Next{}
		}
		return stint.Next{End: &stint.End{Reason: nasty, Result: []byte(jsonNasty)}}
	}))
	run("failed", func(context.Context, stint.Loop) (stint.Next, error) {
		return stint.Next{}, stint.Fail(errors.New(nasty))
	})
	run("panics", func(context.Context, stint.Loop) (stint.Next, error) { panic(nasty) })
	run("waits", nastyAgent(func(stint.Loop) stint.Next { return stint.Next{Wait: &stint.Wait{For: stint.ForMessage, What: nasty}} }))
	run("doubts", func(ctx context.Context, l stint.Loop) (stint.Next, error) {
		_, err := stint.Do(ctx, l, stint.Step{Name: strings.ToValidUTF8(nasty, "?"), Effect: stint.Once}, func(context.Context, string) (int, error) { return 0, errors.New(nasty) })
		return stint.Next{}, err
	})
	return d
}

// nastyPlaces are the command lines that print something of a session.
func nastyPlaces(session string) (all [][]string) {
	for _, line := range []string{"show S", "show S --all --lines 100", "show S --json", "show S --field reason", "show S --field labels", "show S --field agent.name", "show S --field goal.text", "show S --field waiting", "show S --field effects",
		"show S --field result", "show S --field loops.0", "show S --field lines", "logs S", "logs S -x", "logs S --content", "logs S -x --content --json", "logs S -o jsonl", "logs S --content -o jsonl", "logs S -o cat", "logs S -g pwned",
		"wait S --for waiting", "wait S --for waiting --json", "verify S", "verify S --json", "export S", "restart S --dry-run", "restart S --dry-run --from 0"} {
		args := strings.Fields(line)
		args[1] = session
		all = append(all, args)
	}
	return all
}

func TestNothingDrivesTheTerminal(t *testing.T) {
	t.Parallel()
	d := nastyDesk(t)
	var lines [][]string
	for i, name := range []string{"done", "doubts", "failed", "panics", "waits"} {
		for j, args := range nastyPlaces(name) {
			if i == 0 || j%4 == i-1 || long() { // each place for the session that has most to tell, and for another
				lines = append(lines, args)
			}
		}
	}
	for _, line := range []string{"ps", "ps -a", "ps -a -o wide", "ps -a -o name", "ps -a -o jsonl", "ps -a --json", "ps -a -q", "verify --all", "verify --all --json", "verify --all --states", "db size", "show @bad", "__complete show d", "__complete logs "} {
		lines = append(lines, strings.Fields(line))
	}
	for _, table := range []string{"v_sessions", "v_loops", "v_steps", "v_entries", "sessions", "names", "journal"} {
		for i, format := range []string{"table", "json", "csv"} {
			if lines = append(lines, []string{"sql", "select * from " + table, "-o", format}); i != len(table)%3 && !long() {
				continue
			}
			lines = append(lines, []string{"sql", `select '` + strings.ReplaceAll(nasty, "\x00", "") + `' as "` + strings.ReplaceAll(nasty, "\x00", "") + `" from ` + table, "-o", format})
		}
	}
	for _, words := range []string{"show", "logs", "explain", "send", "start", "run", "agent show", "wait --for", "ps --sort", "ps -l", "ps --status", "logs done -k", "show done --field", "ps --store", "ps --config"} {
		lines = append(lines, append(strings.Fields(words), nasty))
	}
	said := 0
	for _, args := range lines {
		_, out, talk := d.stint(args...)
		if bad := driving(out); bad != "" {
			t.Errorf("stint %.80q: %s reaches standard output", args, bad)
		}
		if bad := driving(talk); bad != "" {
			t.Errorf("stint %.80q: %s reaches standard error", args, bad)
		}
		said += strings.Count(out+talk, "pwned")
		for dec := json.NewDecoder(strings.NewReader(out)); strings.HasPrefix(out, `{"schema"`) && dec.More(); {
			var v json.RawMessage
			if err := dec.Decode(&v); err != nil {
				t.Errorf("stint %.80q: what it prints is no JSON: %v", args, err)
				break
			}
		}
	}
	if said < 200 {
		t.Errorf("the commands print only %d of what they should show", said)
	}
	if out := d.ok("logs", "done", "-o", "cat", "--raw"); driving(out) == "" {
		t.Error("--raw does not print the bytes as they are")
	}
}
