package mutants_test

// verdictMutants break what the engine does with the verdict of a policy.
func verdictMutants() []mutant {
	return []mutant{
		{
			name: "engine-denied-step-begins", file: "engine/policy.go",
			edits: one("c.step.Ask, c.decided = \"\", true", "c.step.Ask = \"\""),
			why:   "what a policy denies is done",
			red:   by("engine", "TestPolicyDecides"),
		}, {
			name: "engine-one-yes-of-two", file: "engine/approval.go",
			edits: one("if c.State == stint.ApprovalApproved && v.yeses < a.Quorum {", "if c.State == stint.ApprovalApproved && v.yeses < a.Quorum-1 {"),
			why:   "one person is enough where two have to agree",
			red:   by("engine", "TestPolicyQuorum"),
		}, {
			name: "engine-anybody-decides", file: "engine/approval.go",
			edits: one("Yes: yes, Edited: c.Edit}); err != nil {", "Yes: yes, Edited: c.Edit}); err != nil && c.Edit {"),
			why:   "somebody who is no approver decides",
			red:   by("engine", "TestPolicyQuorum"),
		}, {
			name: "engine-changed-input-is-not-used", file: "engine/approval.go",
			edits: one("\treturn shielded(func() error { c.step.Edit(input); return nil })", "\treturn nil"),
			why:   "a person changes the arguments, and the step is done with the agent's",
			red:   by("engine", "TestPolicyQuorum"),
		}, {
			name: "engine-deadline-goes-by", file: "engine/policy.go",
			edits: one("if what == policy.ExpireStop && !a.OfOrder() {", "if what == policy.ExpireStop && a.Quorum > 0 {"),
			why:   "a session that is to stop when nobody decides goes on",
			red:   by("engine", "TestPolicyExpires"),
		}, {
			name: "journal-step-of-another-input", file: "journal/approve.go",
			edits: one("|| a.Edited != \"\" && a.State == stint.ApprovalApproved && a.Edited != d.Input", ""),
			why:   "a yes to other arguments lets the first ones be done",
			red:   by("journal", "TestAgainstModel"),
		},
	}
}
