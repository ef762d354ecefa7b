package mutants_test

// orderMutants break orders that others have to agree to, and answers with branches.
func orderMutants() []mutant {
	return []mutant{
		{
			name: "order-obeyed-unasked", file: "engine/control.go",
			edits: one("if c.Ask != nil {\n\t\treturn d.askOrder(s, m, c)\n\t}\n", ""),
			why:   "a rollback is done before anybody agreed to it",
			red:   by("engine", "TestOrderIsAsked"),
		}, {
			name: "order-by-an-old-plan", file: "engine/ask.go",
			edits: one("if c.Head == 0 {", "if c.Head >= 0 {"),
			why:   "a yes to one plan carries out another",
			red:   by("engine", "TestOrderOverMoved"),
		}, {
			name: "order-by-one-of-two", file: "engine/approval.go",
			edits: one("v.yeses >= a.Quorum)", "v.yeses > 0)"),
			why:   "one person decides where two have to",
			red:   by("engine", "TestOrderByTwo"),
		}, {
			name: "order-ends-with-its-loop", file: "journal/apply.go",
			edits: one(", Approvals: ofOrders(s.At.Approvals)}", "}"),
			why:   "nobody can decide any more about what was ordered while a session ran",
			red:   by("engine", "TestOrderWhileItRuns"),
		}, {
			name: "order-makes-two-branches", file: "engine/ask.go",
			edits: one(`"approval/"+ident.ApprovalID(s.ID, a.Seq)`, "ident.New().String()"),
			why:   "a crash makes a second branch",
			red:   by("engine", "TestOrderedBranchOnce"),
		}, {
			name: "order-never-expires", file: "session.go",
			edits: one("a.OfOrder() && !a.Until.IsZero() &&", "a.OfOrder() && a.Until.Year() > 9998 &&"),
			why:   "a question about a session that has ended stays for ever",
			red:   by("engine", "TestOrderExpires"),
		}, {
			name: "order-breaks-off-the-loop", file: "engine/control.go",
			edits: one("yes && a.Name != string(stint.BranchOff)", `yes && a.Name != ""`),
			why:   "a yes to a branch has the loop that runs begun again",
			red:   by("engine", "TestOrderWhileItRuns"),
		}, {
			name: "late-is-in-time", file: "engine/policy.go",
			edits: one("a.Until.IsZero() || at.Before(a.Until)", "a.Until.IsZero() || at.Before(a.Until.Add(1<<50))"),
			why:   "a yes that comes after the deadline counts where nobody noticed that it passed",
			red:   by("engine", "TestLateIsLate"),
		}, {
			name: "split-does-it-again", file: "engine/split.go",
			edits: one("\tcase stint.StepCompleted, stint.StepFailed:\n", "\tcase stint.StepFailed:\n"),
			why:   "what stands before a question is done again by each branch at it",
			red:   by("engine", "TestSplit"),
		}, {
			name: "split-counts-twice", file: "journal/apply.go",
			edits: one("\tif d.Copied {\n", "\tif false {\n"),
			why:   "money is counted in two sessions",
			red:   by("engine", "TestSplit"),
		}, {
			name: "split-makes-more", file: "engine/split.go",
			edits: one(`Dedupe: fmt.Sprintf("approval/%s/%d", id, n)`, `Dedupe: fmt.Sprintf("approval/%s/%d", id, n) + ident.New().String()`),
			why:   "a crash makes a second branch with the same answer",
			red:   by("engine", "TestSplitOnce"),
		}, {
			name: "split-forgets-what-to-skip", file: "engine/split.go",
			edits: one("s.Checkpoint.Loop, &b, skipped)", "s.Checkpoint.Loop, &b, skipped[:0])"),
			why:   "a step that a person had skipped is done by a branch at a question",
			red:   by("engine", "TestSplitSkips"),
		}, {
			name: "split-shares-a-child", file: "engine/split.go",
			edits: one("err == nil && d.Child", "err == nil && d.Child && d.Name == \"\""),
			why:   "a branch waits for a session that tells another one of its end",
			red:   by("engine", "TestSplitWhereAChildIs"),
		},
	}
}
