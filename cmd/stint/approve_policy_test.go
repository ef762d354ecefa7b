package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/control"
)

// TestPolicyOfAModel: a file's policy decides which calls of a model are asked about, two
// people have to say yes to the same arguments, and the model is told of those that they chose.
func TestPolicyOfAModel(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.put("pay.sh", "cat >> paid; echo >> paid; echo paid\n")
	d.put("pay.json", `{"steps":[{"tools":[{"name":"pay","input":{"to":"ana","amount":5}},{"name":"pay","input":{"to":"bob","amount":500}},{"name":"pay","input":{"to":"eve","amount":1}}]},{"text":"That is all."}]}`)
	d.put("stint.yaml", `policy:
  - {name: not-to-eve, tool: pay, when: args.to == "eve", do: deny, message: nothing for eve}
  - {name: large, tool: pay, when: args.amount > 100, do: ask, quorum: 2, approvers: [admin, "user:kim"], deadline: 4h, on_expire: stop}
  - {name: small, tool: pay, do: allow}
agents:
  pay:
    kind: llm
    model: script/pay.json
    tools: [{exec: {name: pay, command: [sh, pay.sh], args: {type: object, properties: {to: {type: string}, amount: {type: integer}}}}}]
`)
	d.says(exitWaits, "approval", "run", "-q", "pay", "-p", "go", "--name", "pay-1")
	shown := d.ok("approvals")
	for _, want := range []string{"Who       admin, user:kim · 0 of 2 have said yes", "Expires   20", "large", `{"to":"bob","amount":500}`} {
		if !strings.Contains(shown, want) {
			t.Errorf("what is asked has no %q:\n%s", want, shown)
		}
	}
	if strings.Contains(shown, `"to":"eve"`) || strings.Contains(shown, `"to":"ana"`) {
		t.Errorf("more is asked than the policy asks:\n%s", shown)
	}
	d.says(exitInvalid, "--args: ", "approve", "pay-1", "--args", "{")
	d.ok("approve", "pay-1", "--args", `{"to":"bob","amount":450}`)
	if shown = d.ok("approvals"); !strings.Contains(shown, "1 of 2 have said yes: human:") {
		t.Errorf("after one yes of two:\n%s", shown)
	}
	d.says(exitRefused, "", "approve", "pay-1") // the same person
	desk := control.Desk{Store: d.store, Settler: d.e}
	if _, _, err := desk.Decide(t.Context(), "pay-1", control.Decision{State: stint.ApprovalApproved, From: "human:kim"}, nil); err != nil {
		t.Fatal(err)
	}
	d.ok("resume", "pay-1", "--run")
	paid, _ := d.read("paid")
	if paid != `{"to":"ana","amount":5}`+"\n"+`{"to":"bob","amount":450}`+"\n" && paid != `{"to":"bob","amount":450}`+"\n"+`{"to":"ana","amount":5}`+"\n" {
		t.Errorf("paid with\n%s", paid)
	}
	log := d.ok("logs", "pay-1", "--content")
	for _, want := range []string{"(a person changed the arguments, to {\\\"to\\\":\\\"bob\\\",\\\"amount\\\":450})", "denied by the policy, rule not-to-eve: nothing for eve"} {
		if !strings.Contains(log, want) && !strings.Contains(log, strings.ReplaceAll(want, `\"`, `"`)) {
			t.Errorf("the log has no %q:\n%s", want, log)
		}
	}
	d.ok("verify", "pay-1") // what was denied has no intent, and is no gap
}

// read is a file of the desk's folder.
func (d *desk) read(name string) (string, error) {
	b, err := os.ReadFile(filepath.Join(d.dir, name))
	return string(b), err
}
