package mutants_test

// llmMutants break what an agent that is a language model promises.
func llmMutants() []mutant {
	return []mutant{
		{
			name: "llm-cut-calls-are-executed", file: "agent/llm/calls.go",
			edits: one("if ans.Stop != model.ToolUse {", "if false {"),
			why:   "a call is executed whose arguments were cut off by the output limit",
			red:   by("agent/llm", "TestFlow"),
		}, {
			name: "llm-tainted-is-not-asked", file: "agent/llm/calls.go",
			edits: one(`case p.mem.Taint != "" &&`, "case false &&"),
			why:   "an instruction in a file that the model read reaches the outside world",
			red:   by("agent/llm", "TestTainted"),
		}, {
			name: "llm-unknown-is-known", file: "agent/llm/calls.go",
			edits: one("case o.Stint == \"unknown\":\n\t\treturn tool.Output{}, false", "case o.Stint == \"unknown\":\n\t\treturn tool.Output{Text: \"ok\"}, true"),
			why:   "the model takes for done what nobody can tell of",
			red:   by("agent/llm", "TestUnknown"),
		}, {
			name: "llm-compaction-cuts-a-pair", file: "agent/llm/compact.go",
			edits: one("if p.t.msgs[i].Role != model.Assistant {", "if p.t.msgs[i].Role == model.Assistant {"),
			why:   "a call is separated from its result, and the provider refuses the session for good",
			red:   by("agent/llm", "TestCompaction"),
		}, {
			name: "llm-unpriced-under-a-limit", file: "agent/llm/agent.go",
			edits: one("if _, ok := p.a.spec.Cost(m.Name(), model.Usage{}); !ok {", "if _, ok := p.a.spec.Cost(m.Name(), model.Usage{}); false && !ok {"),
			why:   "a limit of money counts nothing",
			red:   by("agent/llm", "TestUnpriced"),
		}, {
			name: "llm-serial-tools-overlap", file: "agent/llm/calls.go",
			edits: one("s.Yields = !c.tool.Parallel,", "s.Yields = false,"),
			why:   "tools that must not overlap do, and a crash leaves several in doubt",
			red:   by("agent/llm", "TestSteps"),
		},
	}
}

// worthMutants break what is promised of an agent's money, of what it is told of its calls,
// and of what shows that it leads nowhere.
func worthMutants() []mutant {
	return []mutant{
		{
			name: "llm-any-tool-has-failed", file: "agent/llm/calls.go",
			edits: one("if last && steps[i].Effect == stint.Read {", "if last {"),
			why:   "the model is told that a payment failed of which nobody knows whether it took place",
			red:   by("agent/llm", "TestOthersThatNeverWork"),
		}, {
			name: "llm-stop-is-an-outcome", file: "agent/llm/calls.go",
			edits: one("final || ctx.Err() != nil ||", "final ||"),
			why:   "what a person stopped is recorded as what a tool gave",
			red:   by("agent/llm", "TestStopIsNoOutcome"),
		}, {
			name: "llm-brake-is-no-last-attempt", file: "engine/loop.go",
			edits: one("	_, on := journal.Brake(&s, now)\n	return on", "	_, on := journal.Brake(&s, now)\n	return false && on"),
			why:   "a session ends although its model knows another way",
			red:   by("agent/llm", "TestLastAttempt"),
		}, {
			name: "divergence-goes-too-far-back", file: "internal/view/page.go",
			edits: one(`--dry-run", s.Wait.Step.Loop-1)`, `--dry-run", max(s.Wait.Step.Loop-2, 0))`),
			why:   "who follows the advice does a finished loop again",
			red:   by("internal/view", "TestNextAfterDoubt"),
		}, {
			name: "health-passes-over-a-clock", file: "health/may.go",
			edits: one("i+3 < len(s) && s[i+3] == ':'", "i+3 < len(s) && s[i+3] == ';'"),
			why:   "a call whose result differs in its clock alone is never found to repeat itself",
			red:   by("health", "TestNothingIsPassedOver"),
		}, {
			name: "health-passes-over-a-unit", file: "health/may.go",
			edits: one(`strings.HasPrefix(s[k:], "µ") || strings.HasPrefix(s[k:], "μ")`, `strings.HasPrefix(s[k:], "µ")`),
			why:   "one of the two letters for micro counts as a difference",
			red:   by("health", "TestNothingIsPassedOver"),
		}, {
			name: "cli-repeats-old-words", file: "agent/cli/turn.go",
			edits: one("	t.notes = nil // the process", "	// the process"),
			why:   "a CLI hears that a call did not take place which it has made since, and makes it once more",
			red:   by("agent/cli", "TestOldWordsAreNotSaidAgain"),
		}, {
			name: "begun-for-the-whole-group", file: "internal/past/steps.go",
			edits: one("	if s == nil {\n		return false, \"\"", "	if s == nil {\n		return len(p) > 0, \"\""),
			why:   "a call whose intent was lost counts as not made, and is made twice",
			red:   by("agent/cli", "TestCutBetweenIntents"),
		}, {
			name: "acp-word-is-not-read", file: "agent/acp/calls.go",
			edits: one("verdict == saidNot", `verdict == "never"`),
			why:   "a person is asked again about a call that nobody began since the answer",
			red:   by("agent/acp", "TestKilledAfterTheWord"),
		}, {
			name: "default-cost-refuses-unpriced", file: "cmd/stint/costlimit.go",
			edits: one(`if m.Why = "default"; len(m.unpriced) > 0 {`, `if m.Why = "default"; false {`),
			why:   "a limit that nobody asked for refuses every model without a price",
			red:   by("cmd/stint", "TestDefaultCost"),
		}, {
			name: "given-cost-is-a-default", file: "internal/config/sections.go",
			edits: one("			b.CostDefault = false\n", ""),
			why:   "a limit that somebody gave counts nothing where a model has no price",
			red:   by("internal/config", "TestDefaultCost"),
		},
	}
}
