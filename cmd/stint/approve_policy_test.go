package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/access"
	"github.com/stint-dev/stint/internal/control"
	"github.com/stint-dev/stint/internal/view"
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

// TestGrants: a yes for calls to come answers those that it is for, of this agent alone, until
// it is revoked; its rule has to allow it.
func TestGrants(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.put("pay.sh", "cat >> paid; echo >> paid; echo paid\n")
	d.put("pay.json", `{"steps":[{"tools":[{"name":"pay","input":{"amount":5}}]},{"text":"That is all."}]}`)
	d.put("stint.yaml", `policy:
  - {name: strict, tool: pay, when: agent == "strict", do: ask, grant: false}
  - {name: payments, tool: pay, do: ask}
agents:
  pay`+payer+"  other"+payer+"  strict"+payer)
	asked := func(agent, name string) bool {
		t.Helper()
		code, _, talk := d.stint("run", "-q", agent, "-p", "go", "--name", name)
		if code != exitOK && code != exitWaits {
			t.Fatalf("%s: exit status %d\n%s", name, code, talk)
		}
		return code == exitWaits
	}
	if !asked("pay", "pay-1") {
		t.Fatal("nothing is asked without a grant")
	}
	d.says(exitInvalid, "--grant is session, agent or store", "approve", "pay-1", "--grant", "all")
	d.says(exitInvalid, "--when goes with --grant", "approve", "pay-1", "--when", "true")
	d.says(exitInvalid, "when", "approve", "pay-1", "--grant", "agent", "--when", "args.amount <")
	d.ok("approve", "pay-1", "--grant", "agent", "--when", "args.amount < 10", "--for", "48h", "--run")
	if asked("pay", "pay-2") {
		t.Error("it is asked again, and there is a grant")
	}
	if log := d.ok("logs", "pay-2", "--json"); !strings.Contains(log, `"rule":"grant:`) {
		t.Errorf("the log does not say what decided:\n%s", log)
	}
	if !asked("other", "other-1") {
		t.Error("the grant is for another agent")
	}
	d.ok("approve", "other-1", "--grant", "store", "--run") // exactly these arguments
	if asked("other", "other-2") {
		t.Error("exactly the same arguments are asked about again")
	}
	if !asked("strict", "strict-1") {
		t.Error("a rule that allows no grant is answered by one")
	}
	d.says(exitRefused, "can be no grant for calls to come", "approve", "strict-1", "--grant", "agent")
	list := d.ok("approvals", "grants")
	if strings.Count(list, "\n") != 3 || !strings.Contains(list, "args.amount < 10") || !strings.Contains(list, "those arguments") {
		t.Errorf("the grants are\n%s", list)
	}
	for _, line := range strings.Split(strings.TrimSpace(list), "\n")[1:] {
		d.ok("approvals", "revoke", strings.Fields(line)[0])
	}
	if got := d.ok("approvals", "grants"); got != "nothing is granted\n" {
		t.Errorf("after they were revoked:\n%s", got)
	}
	d.says(exitRefused, "there is no grant of that id", "approvals", "revoke", "nosuch")
	if !asked("pay", "pay-3") || !asked("other", "other-3") {
		t.Error("what was revoked still answers")
	}
}

// payer is an agent that pays once, behind its name.
const payer = `: {kind: llm, model: script/pay.json, tools: [{exec: {name: pay, command: [sh, pay.sh], args: {type: object, properties: {amount: {type: integer}}}}}]}
`

// TestGatedVerbs: what a policy asks about of a verb is done at once by whom it names; what
// anybody else orders waits until those agree, and changes nothing before.
func TestGatedVerbs(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.put("agent.sh", states)
	d.put("stint.yaml", `policy:
  - {name: no-way-back, verb: rollback, do: deny, message: what was posted stays posted}
  - {name: branches, verb: [branch, agent], do: ask, approvers: "user:kim"}
  - {name: far-back, verb: restart, when: "(args.from ?? 99) < 2", do: ask, approvers: admin, quorum: 2}
agents:
  a: {kind: exec, command: [sh, agent.sh]}
`)
	d.ok("run", "-q", "a", "--name", "a-1")
	d.refuses(
		refuse(exitDenied, "the policy's rule no-way-back: what was posted stays posted", "", "rollback", "a-1", "--to", "1"),
		refuse(exitDenied, "want different people asked about it", "ask somebody", "restart", "a-1", "--from", "1", "--agent", "a"),
	)
	d.says(exitWaits, "stays as it is until user:kim decides: the policy's rule branches", "branch", "a-1", "--name", "twig")
	d.says(exitWaits, "stays as it is until 2 of admin decide: the policy's rule far-back", "restart", "a-1", "--from", "1")
	d.says(exitWaits, "stays as it is until user:kim decides", "restart", "a-1", "--from", "2", "--agent", "a")
	if out := d.ok("branch", "a-1", "--dry-run"); !strings.Contains(out, "Asks      user:kim decides: the policy's rule branches") {
		t.Errorf("a plan that others decide about:\n%s", out)
	}
	if out := d.ok("restart", "a-1", "--from", "1", "--dry-run", "--json"); !strings.Contains(out, `"asks":{"rule":"far-back","approvers":["admin"],"quorum":2}`) {
		t.Errorf("the same as JSON:\n%s", out)
	}
	out := d.ok("approvals")
	for _, want := range []string{"order", "branch behind loop 3, asked for by human:", "restart behind loop 1", "with the agent a as it is now", "0 of 2 have said yes"} {
		if !strings.Contains(out, want) {
			t.Errorf("the questions do not say %q:\n%s", want, out)
		}
	}
	if out := d.ok("show", "a-1"); !strings.Contains(out, "Ordered") || !strings.Contains(out, "completed") {
		t.Errorf("the session:\n%s", out)
	}
	list := d.asked()
	if len(list) != 3 {
		t.Fatalf("%q are asked", list)
	}
	d.says(exitDenied, "is not among those who decide", "approve", list[0])
	d.ok("deny", list[1], "-m", "not that far")
	d.says(exitRefused, "was denied by", "approve", list[1])
	if out := d.ok("show", "a-1"); !strings.Contains(out, "completed") {
		t.Errorf("after a no:\n%s", out)
	}
	if out := d.ok("restart", "a-1", "--from", "2", "--dry-run", "--json"); !strings.Contains(out, `"decided":[]`) {
		t.Errorf("what was said of an order is asked again:\n%s", out)
	}
	d.ok("restart", "a-1", "--from", "2") // the rule is for what goes further back
	if list := d.asked(); len(list) != 0 {
		t.Errorf("on the new line %q are asked", list)
	}
}

// asked are the questions that are open, oldest first.
func (d *desk) asked() (all []string) {
	d.t.Helper()
	var list view.Approvals
	if err := json.Unmarshal([]byte(d.ok("approvals", "--json")), &list); err != nil {
		d.t.Fatal(err)
	}
	for i := range list.Items {
		all = append(all, list.Items[i].Short)
	}
	return all
}

// TestGatedBranch: those whom a policy names agree to a branch, and that makes it, once and
// as it was ordered.
func TestGatedBranch(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.put("agent.sh", states)
	d.put("stint.yaml", `policy:
  - {name: branches, verb: branch, do: ask, approvers: [admin, "user:kim"], quorum: 2}
agents:
  a: {kind: exec, command: [sh, agent.sh]}
`)
	d.ok("run", "-q", "a", "--name", "a-1")
	d.says(exitWaits, "", "branch", "a-1", "--from", "2", "--name", "twig", "--label", "why=try", "--loops", "9")
	d.ok("approve", "a-1")
	d.says(exitNotFound, "", "show", "twig")
	desk := control.Desk{Store: d.store, Settler: d.e}
	if _, _, err := desk.Decide(t.Context(), "a-1", control.Decision{State: stint.ApprovalApproved, From: "human:kim"}, nil); err != nil {
		t.Fatal(err)
	}
	out := d.ok("show", "twig")
	for _, want := range []string{"pending", "why=try", "loops 0/9", "branch of a-1"} {
		if !strings.Contains(out, want) {
			t.Errorf("the branch has no %q:\n%s", want, out)
		}
	}
	if list := d.asked(); len(list) != 0 {
		t.Errorf("%q are asked", list)
	}
	d.ok("resume", "twig", "--run")
	d.ok("verify", "--all")
}

// TestBranchWith: an approver lets a session go on with one answer, and branches with others;
// what the model was asked before the question is not asked again there.
func TestBranchWith(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.put("pay.sh", "cat >> paid; echo >> paid; echo paid\n")
	d.put("pay.json", `{"steps":[{"tools":[{"name":"pay","input":{"amount":5}}]},{"text":"That is all."}]}`)
	d.put("stint.yaml", "policy: [{name: all, tool: pay, do: ask}, {name: split, verb: branch, when: args.reason == \"never\", do: deny}]\nagents:\n  pay"+payer)
	d.says(exitWaits, "approval", "run", "-q", "pay", "-p", "go", "--name", "pay-1")
	d.says(exitInvalid, `asks for a yes or a no, and "maybe" is none of them`, "approve", "pay-1", "--branch-with", "maybe")
	out := d.ok("deny", "pay-1", "-m", "not now", "--branch-with", "yes")
	if !strings.Contains(out, "pay-1.1-2-1-1 (") || !strings.Contains(out, "goes on from there: approved to pay") {
		t.Errorf("it says\n%s", out)
	}
	d.ok("resume", "pay-1", "--run")
	if paid, _ := d.read("paid"); paid != "" {
		t.Errorf("a no paid %q", paid)
	}
	d.ok("resume", "pay-1.1-2-1-1", "--run")
	if paid, _ := d.read("paid"); paid != "{\"amount\":5}\n" {
		t.Errorf("a yes paid %q", paid)
	}
	if log := d.ok("logs", "pay-1.1-2-1-1"); !strings.Contains(log, "was done by the session that it branched off") {
		t.Errorf("the log does not say whose the first steps are:\n%s", log)
	}
	if out := d.ok("show", "pay-1.1-2-1-1"); !strings.Contains(out, "loops 2/50") || !strings.Contains(out, "2 steps") {
		t.Errorf("the branch counts what its parent did:\n%s", out)
	}
	d.ok("verify", "--all")
	d.ok("replay", "pay-1.1-2-1-1")
}

// TestPolicyOverAServer: a command of somebody elsewhere orders what others agree to, decides,
// grants and has several answers tried as one beside the store does.
func TestPolicyOverAServer(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.put("pay.sh", "cat >> paid; echo >> paid; echo paid\n")
	d.put("agent.sh", states)
	d.put("pay.json", `{"steps":[{"tools":[{"name":"pay","input":{"amount":5}}]},{"text":"That is all."}]}`)
	d.put("stint.yaml", "policy:\n  - {name: pay, tool: pay, do: ask}\n  - {name: back, verb: [rollback, branch], do: ask, approvers: approver}\n"+
		"agents:\n  a: {kind: exec, command: [sh, agent.sh]}\n  pay"+payer)
	d.ok("run", "-q", "a", "--name", "a-1")
	for _, name := range []string{"pay-1", "pay-2"} {
		d.says(exitWaits, "approval", "run", "-q", "pay", "-p", "go", "--name", name)
	}
	tokens := map[access.Role]string{}
	for _, role := range access.Roles() {
		tokens[role] = strings.TrimSpace(d.ok("token", "create", "--role", string(role), string(role)))
	}
	r, url := d.serves()
	as := func(role access.Role) *far { return d.far("STINT_SERVER", url, "STINT_TOKEN", tokens[role]) }
	as(access.Operator).says(exitWaits, "stays as it is until approver decides", "rollback", "a-1", "--to", "1")
	as(access.Operator).says(exitWaits, "it waits for a decision", "branch", "a-1", "--from", "2", "--name", "twig")
	as(access.Operator).says(exitNotFound, "", "show", "twig")
	list := as(access.Viewer).says(exitOK, "asked for by human:operator", "approvals", "a-1")
	if strings.Count(list, "asked for by human:operator") != 2 {
		t.Errorf("the questions are\n%s", list)
	}
	as(access.Viewer).says(exitOK, "", "wait", "a-1", "--timeout", "1m")
	open := d.asked() // oldest first: those of the models, and the orders in the order that they were given
	if len(open) != 4 {
		t.Fatalf("%q are asked", open)
	}
	as(access.Operator).says(exitDenied, "", "approve", open[3])
	as(access.Approver).says(exitOK, "approved", "approve", open[3])
	as(access.Approver).says(exitOK, "approved", "approve", open[2])
	as(access.Viewer).says(exitOK, "completed", "wait", "twig", "--timeout", "1m")
	as(access.Viewer).says(exitOK, "rolled back to loop 1", "show", "a-1")
	as(access.Approver).says(exitOK, "approved", "approve", "pay-1", "--grant", "agent", "--when", "args.amount < 9")
	as(access.Viewer).says(exitOK, "args.amount < 9", "approvals", "grants")
	as(access.Approver).says(exitOK, "denied", "deny", "pay-2", "--branch-with", "yes")
	as(access.Viewer).says(exitOK, "completed", "wait", "pay-1", "--timeout", "1m")
	as(access.Viewer).says(exitOK, "completed", "wait", "pay-2", "--timeout", "1m")
	as(access.Viewer).says(exitOK, "completed", "wait", "pay-2.1-2-1-1", "--timeout", "1m")
	as(access.Operator).says(exitOK, "", "start", "pay", "-p", "go", "--name", "pay-3")
	as(access.Viewer).says(exitOK, "completed", "wait", "pay-3", "--timeout", "1m") // it was granted
	r.ends()
	if paid, _ := d.read("paid"); strings.Count(paid, "\n") != 3 {
		t.Errorf("paid was\n%s", paid)
	}
	d.says(exitOK, "all sound", "verify", "--all")
}
