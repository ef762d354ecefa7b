package mutants_test

// policyMutants break what keeps a step from beginning that a person should have been
// asked about.
func policyMutants() []mutant {
	const pkg = "policy"
	return []mutant{
		{
			name: "policy-fault-is-no-match", file: "policy/judge.go", quick: true,
			edits: one("return \"its condition cannot be evaluated\", true, \"the condition cannot be evaluated: \" + err.Error()", "return \"its condition cannot be evaluated\", false, \"\""),
			why:   "an agent gets past a rule with arguments that the rule cannot read",
			red:   by(pkg, "TestFaultsAsk"),
		}, {
			name: "policy-fault-does-as-the-rule-says", file: "policy/judge.go",
			edits: one("v.Do, v.Why = Ask, r.Name+\": \"+fault", "v.Why = r.Name + \": \" + fault"),
			why:   "an allow rule lets in what it could not look at",
			red:   by(pkg, "TestFaultsAsk"),
		}, {
			name: "policy-fault-answered-by-a-tool", file: "policy/judge.go",
			edits: one("case v.Do == Deny || v.Fault != \"\" || c.Verb != \"\":", "case v.Do == Deny || c.Verb != \"\":"),
			why:   "a step that no rule could judge begins",
			red:   by(pkg, "TestFaultsAsk"),
		}, {
			name: "policy-never-opens-deny", file: "policy/judge.go",
			edits: []edit{{"case v.Do == Deny || v.Fault", "case v.Fault"}, {"case v.Do == Ask && c.Approve == approveNever:", "case v.Do != Allow && c.Approve == approveNever:"}},
			why:   "a tool's own word lifts what a rule denies",
			red:   by(pkg, "TestToolsOwnWord"),
		}, {
			name: "policy-last-match-wins", file: "policy/judge.go", quick: true,
			edits: one("\t\t\tv = r.verdict(fault, why)\n\t\t\tbreak\n", "\t\t\tv = r.verdict(fault, why)\n"),
			why:   "the rules are read in another order than they stand in",
			red:   by(pkg, "TestFirstMatchWins"),
		}, {
			name: "policy-any-matcher-is-enough", file: "policy/judge.go",
			edits: one("case r.Tainted && !c.Tainted:", "case r.Tainted && !c.Tainted && len(r.Effect) == 0:"),
			why:   "what is given is not all held against the call",
			red:   by(pkg, "TestPresets"),
		}, {
			name: "policy-cost-of-the-step-alone", file: "policy/judge.go",
			edits: one("c.total() <= r.CostOver:", "c.Cost <= r.CostOver:"),
			why:   "many small steps pass a bound of money that one large step does not",
			red:   by(pkg, "TestMatchers"),
		}, {
			name: "policy-glob-ends-anywhere", file: "policy/judge.go",
			edits: one("return strings.HasSuffix(name, parts[last])", "return strings.Contains(name, parts[last])"),
			why:   "a rule for one tool is one for others",
			red:   by(pkg, "TestGlob"),
		}, {
			name: "policy-file-comes-first", file: "internal/config/policy.go",
			edits: one("a.Policy = slices.Concat(a.Policy, d.common)", "a.Policy = slices.Concat(d.common, a.Policy)"),
			why:   "a rule of the file takes what the agent's own was for",
			red:   by("internal/config", "TestOrderOfRules"),
		}, {
			name: "policy-pinned-unchecked", file: "internal/config/definition.go",
			edits: one("if _, err := policy.Compile(a.Policy); err != nil {", "if _, err := policy.Compile(nil); err != nil {"),
			why:   "a session goes on without the rules that it began with",
			red:   by("internal/config", "TestFromDefinitionRefuses"),
		},
	}
}

// decisionMutants break what a decision is bound to, and who makes one.
func decisionMutants() []mutant {
	const pkg = "policy"
	return []mutant{
		{
			name: "policy-number-rounded", file: "policy/canonical.go",
			edits: one("\tcase json.Number:\n\t\treturn append(out, v...)", "\tcase json.Number:\n\t\tf, _ := v.Float64()\n\t\tb, _ := json.Marshal(f)\n\t\treturn append(out, b...)"),
			why:   "a yes to one account is a yes to another",
			red:   by(pkg, "TestCanonical|TestCanonicalProperty"),
		}, {
			name: "policy-two-meanings-digested", file: "policy/judge.go",
			edits: one("\tif err = jsonx.Check(input, jsonx.Limits{}); err != nil {\n\t\treturn nil, err\n\t}\n", "\t_ = jsonx.Check\n"),
			why:   "what a person saw and what a tool reads are two things",
			red:   by(pkg, "TestCanonical|TestFaultsAsk"),
		}, {
			name: "policy-digest-parts-run-together", file: "policy/canonical.go",
			edits: one("\t\th.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))\n", "\t\t_ = binary.BigEndian\n"),
			why:   "a yes to one tool is a yes to another",
			red:   by(pkg, "TestDigestIsStable"),
		}, {
			name: "policy-one-person-is-a-quorum", file: "policy/tally.go", quick: true,
			edits: one("if yes[vote.By] = true; len(yes) >= quorum {", "if yes[vote.By] = true; len(yes) >= quorum || len(votes) >= quorum {"),
			why:   "one person agrees twice with themself",
			red:   by(pkg, "TestTally|TestTallyProperty"),
		}, {
			name: "policy-no-is-outvoted", file: "policy/tally.go",
			edits: one("\t\t\treturn stint.ApprovalDenied, 0\n", "\t\t\tcontinue\n"),
			why:   "a step begins that somebody said no to",
			red:   by(pkg, "TestTally|TestTallyProperty"),
		}, {
			name: "policy-edit-keeps-the-count", file: "policy/tally.go",
			edits: one("\t\t\tclear(yes)\n", ""),
			why:   "people have agreed to arguments that they never saw",
			red:   by(pkg, "TestTally|TestTallyProperty"),
		}, {
			name: "policy-anybody-decides", file: "policy/tally.go",
			edits: one("\t\tif v.Admits(vote) != nil {\n\t\t\tcontinue\n\t\t}\n", ""),
			why:   "whoever is not among the approvers decides",
			red:   by(pkg, "TestTally|TestTallyProperty"),
		}, {
			name: "policy-agent-is-a-person", file: "policy/tally.go",
			edits: one("if !human || name == \"\" {", "if !human && name == \"\" {"),
			why:   "an agent approves itself",
			red:   by(pkg, "TestTally|TestAdmits"),
		}, {
			name: "policy-escalates-for-ever", file: "policy/tally.go",
			edits: one("if n < 1 || n > len(v.EscalateTo) {\n\t\treturn ExpireDeny, v.Approvers\n\t}", "n = min(max(n, 1), len(v.EscalateTo))"),
			why:   "a question with a deadline never ends",
			red:   by(pkg, "TestExpired"),
		}, {
			name: "policy-grant-of-another-rule", file: "policy/grant.go",
			edits: one("\t\tif grants[i].Rule != v.Rule {\n\t\t\tcontinue\n\t\t}\n", ""),
			why:   "a yes to a tool is one to what a stranger asks of it",
			red:   by(pkg, "TestGrants"),
		}, {
			name: "policy-grant-never-ends", file: "policy/grant.go",
			edits: one(" || !now.Before(g.Expires)", ""),
			why:   "a yes of last year still counts",
			red:   by(pkg, "TestGrants"),
		},
	}
}
