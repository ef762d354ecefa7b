package mutants_test

// branchMutants break what a branch begins with.
func branchMutants() []mutant {
	return []mutant{
		{
			name: "engine-branch-hears-no-input", file: "engine/branch.go",
			edits: one("if loop == 0 {\n\t\tinput", "if loop < 0 {\n\t\tinput"),
			why:   "a branch from before the first loop does not know what was asked",
			red:   by("engine", "TestBranchHears"),
		}, {
			name: "engine-branch-across-a-doubt", file: "engine/branch.go",
			edits: one("if len(doubts) > 0 && choice != journal.SkipDoubt {", "if len(doubts) > 50 {"),
			why:   "a branch does again what may have been done, and nobody was asked",
			red:   by("engine", "TestBranchAcrossADoubt"),
		}, {
			name: "engine-branch-forgets-what-to-skip", file: "engine/branch.go",
			edits: one("if sk.at.Loop == 0 || sk.at.Loop > loop {", "if sk.at.Loop == 0 && loop < 0 {"),
			why:   "a step that a person had skipped is done in a branch of the branch",
			red:   by("engine", "TestBranchAcrossADoubt"),
		}, {
			name: "journal-branch-goes-behind-its-beginning", file: "journal/apply.go",
			edits: one("if from := base(s.Parent); d.From < from ||", "if from := base(s.Parent); d.From < 0 ||"),
			why:   "a branch goes back to a loop whose state it does not have",
			red:   by("journal", "TestAgainstModel"),
		}, {
			name: "outcome-of-a-later-past", file: "internal/past/lookback.go",
			edits: one("id, head = from.Session, from.Seq", "id, head = from.Session, 1<<40"),
			why:   "a branch reads what its parent did after it had branched off",
			red:   by("engine", "TestOutcomeBeforeABranch"),
		}, {
			name: "outcome-of-the-nearest-parent", file: "internal/past/lookback.go",
			edits: one("from = created.Parent\n", "_, from = created, stint.Parent{}\n"),
			why:   "a branch of a branch cannot read what was before both",
			red:   by("engine", "TestOutcomeBeforeABranch"),
		},
	}
}
