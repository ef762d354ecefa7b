package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stint-dev/stint/internal/term"
)

const policyYAML = `policy:
  - {name: lab, when: labels.env == "lab", do: allow}
  - name: main-branch
    tool: git.*
    effect: once
    when: args.branch == "main"
    do: ask
    message: A push to main goes live.
    approvers: [approver, user:ana]
    quorum: 2
    deadline: 4h
    on_expire: escalate
    escalate_to: admin
    grant: false
  - {name: dear, cost_over: 1.00, do: ask, edit: false}
  - {name: back, verb: [rollback, branch], do: ask}
agents:
  plain: {kind: exec, command: [a], effects: {list: read}}
  lab: {kind: exec, command: [a], labels: {env: lab}}
  triage:
    kind: llm
    model: script/x
    policy: [{name: outside, tainted: true, tool: label, do: deny, message: This came from outside.}]
    tools:
      - files: {root: ., write: true}
      - exec: {name: label, command: [label], effect: idempotent}
      - exec: {name: page, command: [page], approve: always}
      - exec: {name: mail, command: [mail]}
    tool: {mail: {approve: never}}
`

func TestPolicy(t *testing.T) {
	t.Parallel()
	for name, lines := range map[string][]string{
		"policy.txt": {
			"show triage",
			"show plain",
			`test plain --tool git.push --args '{"branch":"main"}'`,
			`test plain --tool git.push --args '{"branch":"main"}' -l env=lab`,
			`test plain --tool git.push --args '{"branch":"x"}' --cost 0.5 --spent 0.75`,
			`test plain --tool git.push --args '{"branches":5}' --effect once`,
			`test plain --tool list`,
			`test plain --verb rollback --args '{"to":3}'`,
			`test plain --verb agent`,
			`test lab --tool git.push`,
			`test lab --tool git.push -l env=prod -l team=x`,
			`test triage --tool label --tainted`,
			`test triage --tool mail --tainted`,
			`test triage --tool other --tainted`,
			`test triage --tool page`,
			`test triage --tool write_file`,
		},
		"policy-json.txt": {
			"show triage --json",
			`test plain --tool git.push --args '{"branch":"main"}' --json`,
			`test triage --tool label --tainted --json`,
			`test plain --verb restart --json`,
		},
		"policy-refused.txt": {
			"nosuch", "show", "show nosuch", "test plain", "test plain --tool a --verb branch", "test plain --verb branch --effect read", "test plain --tool a --args '{'", `test plain --tool a --args '{"a":1,"a":2}'`,
			"test plain --tool a --effect write", "test plain --tool a --kind llm", "test plain --verb kill", "test plain --tool a --trigger cron", "test plain --tool a --cost much", "test plain --tool a --spent -1", "test plain --tool a -l x",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t)
			if err := os.WriteFile(filepath.Join(s.dir, "stint.yaml"), []byte(policyYAML), 0o600); err != nil {
				t.Fatal(err)
			}
			var b strings.Builder
			for _, line := range lines {
				code, out, talk := s.stint(words("policy " + line)...)
				b.WriteString("$ stint policy " + term.Escape(line) + "\n" + out + talk)
				switch {
				case name == "policy-refused.txt" && (code == exitInvalid || code == exitNotFound):
					b.WriteString(map[int]string{exitInvalid: "(exit status 2)\n", exitNotFound: "(exit status 3)\n"}[code])
				case name == "policy-refused.txt" || code != exitOK:
					t.Errorf("stint policy %s: exit status %d", line, code)
				}
				b.WriteString("\n")
			}
			golden(t, name, []byte(strings.ReplaceAll(b.String(), s.dir, "DIR")))
		})
	}
}
