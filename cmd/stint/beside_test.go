package main

import (
	"strings"
	"syscall"
	"testing"
)

// What --run begins a server may take up first. It is waited for then as if it ran here, and
// to stop waiting changes nothing. What a person runs is theirs, with a server beside it too.
func TestRunBesideAServer(t *testing.T) {
	d := newDesk(t)
	d.put("stint.yaml", "agents:\n  slow: {kind: exec, protocol: none, command: [sh, slow.sh]}\n")
	d.put("slow.sh", "until [ -e go ]; do sleep 0.02; done\necho done with it\n")
	server, _ := d.serves()
	d.ok("start", "slow", "--name", "slow-1")
	d.has("running", "ps")
	mine := d.runs("run", "slow", "--name", "mine-1")
	d.has("mine-1", "ps")
	d.says(exitRefused, "it is held by", "send", "mine-1", "hurry", "--run")
	tired, patient := d.runs("send", "slow-1", "hurry", "--run"), d.runs("send", "slow-1", "please", "--run")
	for _, r := range []*runs{tired, patient} {
		r.talk.until(t, "stint: a server runs slow-1; this waits for it")
	}
	tired.signal(syscall.SIGINT)
	if code, talk := <-tired.code, tired.talk.String(); code != exitInterrupted || !strings.Contains(talk, "stint: the server goes on with it") {
		t.Errorf("who was tired of it ended with %d and %q", code, talk)
	}
	d.put("go", "")
	if code, talk := <-patient.code, patient.talk.String(); code != exitOK || !strings.Contains(talk, "slow-1 completed") {
		t.Errorf("who waited ended with %d and %q", code, talk)
	}
	if code := <-mine.code; code != exitOK {
		t.Errorf("the other session ended with %d\n%s", code, mine.talk.String())
	}
	if out := patient.out.String(); !strings.Contains(out, "done with it") {
		t.Errorf("who waited saw %q", out)
	}
	for _, line := range []string{"branch slow-1 --from 0 --run", "restart slow-1 --from 0 --run", "branch slow-1 --from 0 --run --json"} {
		d.says(exitOK, "", strings.Fields(line)...)
	}
	server.ends()
}
