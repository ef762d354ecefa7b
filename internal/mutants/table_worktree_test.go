package mutants_test

// worktreeMutants break what holds between the files of a session and its loops.
func worktreeMutants() []mutant {
	return []mutant{
		{
			name: "worktree-leftovers-are-lost", file: "internal/worktree/folder.go",
			edits: one("if commit == m.Base || commit == m.Commit && !again {", "if commit == m.Base || !again || true {"),
			why:   "what a loop that broke off had written is gone",
			red:   by("internal/worktree", "TestLoopBrokeOff"),
		}, {
			name: "worktree-leftovers-are-one", file: "internal/worktree/folder.go",
			edits: one("k.left[name] == \"\" {", "k.left[name] == \"\" || true {"),
			why:   "of two loops that broke off only the newer one has its files kept",
			red:   by("internal/worktree", "TestBrokeOffTwice"),
		}, {
			name: "worktree-steps-lose-their-files", file: "internal/worktree/folder.go",
			edits: one("(t.Steps || m.Stage == parked", "(m.Stage == parked"),
			why:   "a step is answered from the journal, and what it wrote is not there",
			red:   by("internal/worktree", "TestLoopBrokeOff|TestWrap"),
		}, {
			name: "worktree-wait-loses-files", file: "internal/worktree/agent.go",
			edits: one("_ = r.Park(f)", "_ = f.Path"),
			why:   "a loop that waited for an answer goes on without what it had written",
			red:   by("internal/worktree", "TestWrap"),
		}, {
			name: "worktree-attempt-finds-leftovers", file: "internal/worktree/folder.go",
			edits: one("m.Stage == parked && m.Attempt == t.Attempt)", "m.Attempt <= t.Attempt)"),
			why:   "a loop begins with half of what the attempt before it wrote",
			red:   by("internal/worktree", "TestLoopBrokeOff"),
		}, {
			name: "worktree-line-begins-anew", file: "internal/worktree/repo.go",
			edits: one("for ; line >= 0; line-- {", "for ; line >= 0; line = -1 {"),
			why:   "a restart finds none of the files of the loops that it keeps",
			red:   by("internal/worktree", "TestFilesGoWithTheLine"),
		}, {
			name: "worktree-help-is-taken-away", file: "internal/worktree/folder.go",
			edits: one("case there && m.Stage == done && m.Line == t.At.Line", "case there && m.Stage == stage(\"none\") && m.Line == t.At.Line"),
			why:   "what a person changed between two loops is not there in the next one",
			red:   by("internal/worktree", "TestPersonHelps"),
		},
	}
}

// apartMutants break what holds between sessions, agents and the repository.
func apartMutants() []mutant {
	return []mutant{
		{
			name: "worktree-agent-says-where-the-repository-is", file: "internal/worktree/git.go",
			edits: one("argv, dir = append(argv, \"--git-dir=\"+c.admin, \"--work-tree=\"+c.tree), c.tree", "dir = c.tree"),
			why:   "a file that an agent writes makes stint run any program",
			red:   by("internal/worktree", "TestNothingIsRun"),
		}, {
			name: "worktree-filters-run", file: "internal/worktree/repo.go",
			edits: one("r.git.filters = append(r.git.filters, \"-c\", key[:i]+s)", "_ = s"),
			why:   "an agent chooses a program of the repository's configuration that stint runs on its files",
			red:   by("internal/worktree", "TestNothingIsRun"),
		}, {
			name: "worktree-hooks-run", file: "internal/worktree/git.go",
			edits: one("\"core.hooksPath=\"", "\"core.otherPath=\""),
			why:   "each loop runs the hooks of a person's checkout",
			red:   by("internal/worktree", "TestNothingIsRun"),
		}, {
			name: "worktree-looks-into-repositories", file: "internal/worktree/folder.go",
			edits: one("range within(out) {", "range within(nil) {"),
			why:   "a repository that an agent makes stops its loop, or names a program that git runs",
			red:   by("internal/worktree", "TestWhatIsLeftAlone|TestNothingIsRun"),
		}, {
			name: "worktree-asking-stages", file: "internal/worktree/changes.go",
			edits: one("return r.tree(ctx, f, index)", "return r.tree(ctx, f, \"\")"),
			why:   "looking what changed takes part in what the agent is about to commit",
			red:   by("internal/worktree", "TestSince"),
		}, {
			name: "worktree-locks-of-the-dead", file: "internal/worktree/move.go",
			edits: one("own, _ := filepath.Glob(filepath.Join(f.admin, \"*.lock\"))", "var own []string"),
			why:   "a session whose runner was killed in the middle of a git command never goes on",
			red:   by("internal/worktree", "TestLocksOfTheDead"),
		}, {
			name: "worktree-empty-folder-is-what-was-left", file: "internal/worktree/move.go",
			edits: one("if err := f.setMark(mark{Stage: moving, Line: t.At.Line, Loop: t.At.Loop, Attempt: t.Attempt, Base: base, Commit: commit}); err != nil {", "if err := error(nil); err != nil {"),
			why:   "a loop begins without a file after its runner died while it made the folder again",
			red:   by("internal/worktree", "TestKilledWhileItIsMadeAgain"),
		}, {
			name: "worktree-somebodys-branch-is-taken", file: "internal/worktree/move.go",
			edits: one("if !line {", "if false {"),
			why:   "a branch of a person is moved to where a session begins",
			red:   by("internal/worktree", "TestErrorsSayWhatToDo"),
		}, {
			name: "worktree-agent-works-in-the-checkout", file: "cmd/stint/wireplace.go",
			edits: one("out.Dir = f.Of(c.Dir)", "out.Dir = c.Dir"),
			why:   "sessions that were to be apart write over each other's files, and over a person's",
			red:   by("cmd/stint", "TestWorkspace"),
		}, {
			name: "worktree-tools-work-in-the-checkout", file: "cmd/stint/wireplace.go",
			edits: one("files.Root = f.Of(files.Root)", "files.Root = filepath.Clean(files.Root)"),
			why:   "a model writes over the files of a person's checkout",
			red:   by("cmd/stint", "TestWorkspaceOfAModel"),
		},
	}
}
