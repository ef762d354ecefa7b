package main

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// offers is what a press of the tab key offers.
func (d *desk) offers(args ...string) []string {
	d.t.Helper()
	out := d.ok(append([]string{"__complete"}, args...)...)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	return lines[:len(lines)-1] // the last one is for the shell
}

// offersAll asks until args are completed by all of want: a completion that took too long
// offers nothing, and a person would press the key again.
func (d *desk) offersAll(want int, args ...string) (got []string) {
	d.t.Helper()
	for end := time.Now().Add(time.Minute); ; {
		if got = d.offers(args...); len(got) == want || time.Now().After(end) {
			return got
		}
	}
}

func TestCompletion(t *testing.T) {
	d := newDesk(t)
	pay := d.run("pay-1", doubts)
	d.run("done-1", works)
	twins := []string{d.run("twin", sleeps).Short, d.run("twin", sleeps).Short}
	d.put("stint.yaml", "agents:\n  triage: {kind: exec, command: [\"true\"], description: Reads issues}\n  mail: {kind: exec, command: [\"true\"]}\n")
	slices.Sort(twins)
	for args, want := range map[string][]string{
		"show pay":                      {"pay-1\twaiting:doubt"},
		"logs do":                       {"done-1\tcompleted"},
		"logs done-1 ":                  {},
		"stop pay-1 done":               {"done-1\tcompleted"},
		"kill pay-1 pay":                {},
		"resolve ":                      {pay.Short + ":1.1\tpay-1 " + pay.Session.Wait.What},
		"resolve pay":                   {"pay-1:1.1\tpay-1 " + pay.Session.Wait.What},
		"restart done-1 --from ":        {"3\tclosed one", "2\tclosed one", "1\tclosed one"},
		"run ":                          {"mail", "triage\tReads issues"},
		"run -- ":                       {},
		"start t":                       {"triage\tReads issues"},
		"start triage ":                 {},
		"ps --agent m":                  {"mail"},
		"ps --status ":                  {"pending", "running", "waiting", "completed", "failed", "stopped", "canceled"},
		"ps -o ":                        {"wide", "json", "jsonl", "name"},
		"logs done-1 -k ":               {"model", "tool", "step", "message", "state", "output", "loop", "session"},
		"run triage --on-limit ":        {"wait", "stop"},
		"limit done-1 --wall ":          {},
		"--color ":                      {"auto", "always", "never"},
		"ps ":                           {},
		"resolve " + pay.Short + ":":    {pay.Short + ":1.1\tpay-1 " + pay.Session.Wait.What},
		"db size ":                      {},
		"schedule n":                    {"next\tPrint the next times of a schedule or a cron expression, and start nothing"},
		"schedule import --tz ":         {},
		"schedule next --from ":         {},
		"schedule next --tz ":           {},
		"completion ":                   {"bash", "zsh", "fish", "powershell"},
		"show " + twins[0][:1] + "nope": {},
	} {
		words := strings.Split(args, " ")
		if got := d.offersAll(len(want), words...); !slices.Equal(got, want) {
			t.Errorf("stint %s offers %q, want %q", args, got, want)
		}
	}
	// A name that means several sessions is of no use: their ids are.
	all := d.offersAll(4, "show", "")
	if !strings.HasPrefix(all[0], "pay-1\t") {
		t.Errorf("what needs a person is not offered first: %q", all)
	}
	var ids []string
	for _, offer := range all {
		if word, what, _ := strings.Cut(offer, "\t"); what == "twin waiting:message" {
			ids = append(ids, word)
		}
	}
	if slices.Sort(ids); !slices.Equal(ids, twins) || len(all) != 4 {
		t.Errorf("two sessions of a name: %q", all)
	}
}

// Where there is nothing to offer, or no store, it is silent.
func TestCompletionIsSilent(t *testing.T) {
	d := newDesk(t)
	for _, args := range []string{"show ", "restart nobody --from ", "resolve ", "run "} {
		code, out, talk := d.stint(append([]string{"__complete", "--store=sqlite:" + d.dir + "/none.db"}, strings.Split(args, " ")...)...)
		if code != exitOK || !strings.HasPrefix(out, ":4") && !strings.HasPrefix(out, ":36") || strings.Contains(talk, "stint:") {
			t.Errorf("stint %s: exit status %d\n%s%s", args, code, out, talk)
		}
	}
}

func TestNoSuchCommand(t *testing.T) {
	d := newDesk(t)
	d.says(exitInvalid, "there is no command \"shwo\"\n  did you mean stint show? stint help lists the commands", "shwo")
	d.says(exitInvalid, "there is no command \"frobnicate\"\n  stint help lists the commands", "frobnicate")
	d.says(exitInvalid, "--color is auto, always or never, not \"blue\"\n  stint ps --help", "ps", "--color", "blue")
	d.says(exitInvalid, "stint logs --help explains it", "logs", "--nosuch")
	d.says(exitInvalid, "there is no command \"\"\n  stint help lists the commands", "")
	d.says(exitOK, "stint runs AI agents as sessions", "help")
	d.says(exitOK, "stint runs AI agents as sessions")
}
