package mutants_test

// replayMutants break what is asked of a journal afterwards.
func replayMutants() []mutant {
	return []mutant{
		{
			name: "replay-another-step-is-the-same", file: "internal/replay/loop.go",
			edits: one("case !was.Intent.Same(intent):", "case false:"),
			why:   "an agent that does something else is said to do the same",
			red:   by("internal/replay", "TestFirstDivergence|TestAProgramThatWasChanged"),
		}, {
			name: "replay-left-out-step-not-seen", file: "internal/replay/replay.go",
			edits: one("if at, intent, ok := l.left(l.step); ok {", "if at, intent, ok := l.left(l.step); ok && false {"),
			why:   "an agent that no longer does a step is said to do the same",
			red:   by("internal/replay", "TestFirstDivergence"),
		}, {
			name: "replay-state-not-compared", file: "internal/replay/replay.go",
			edits: one("if bytes.Equal(was, state) {", "if true {"),
			why:   "an agent that remembers something else is said to do the same",
			red:   by("internal/replay", "TestFirstDivergence"),
		}, {
			name: "replay-told-what-came-later", file: "internal/replay/tape.go",
			edits: one("	t.told = past.Steps{}\n	for", "	t.told = t.steps\n	for"),
			why:   "an agent is shown steps as finished that it had not begun when it was entered",
			red:   by("internal/replay", "TestALoopSeesWhatItsLastEntrySaw"),
		}, {
			name: "replay-held-entry-forgets", file: "internal/replay/tape.go",
			edits: one("if t.epoch != e.Epoch || t.session.At.Attempt != e.Pos.Attempt {", "if true {"),
			why:   "a loop that was held for an answer is said to differ where it does not",
			red:   by("internal/replay", "TestErrorsThatTheAgentWentOnFrom"),
		}, {
			name: "replay-program-has-a-network", file: "cmd/stint/wirereplay.go",
			edits: one("func (a *again) offline() bool { return a != nil && !a.network }", "func (a *again) offline() bool { return a != nil && a.network }"),
			why:   "a program that is only looked at reaches the world",
			red:   by("cmd/stint", "TestReplayAsksNobody"),
		}, {
			name: "offline-is-online", file: "internal/proc/tree_linux.go",
			edits: one("	attr.Cloneflags |= syscall.CLONE_NEWNET\n", "	attr.Cloneflags |= syscall.CLONE_NEWUTS\n"),
			why:   "a program that must reach nobody reaches everybody",
			red:   by("internal/proc", "TestOffline"),
			goos:  "linux",
		}, {
			name: "replay-starts-servers", file: "cmd/stint/wiremcp.go",
			edits: one("if w.again != nil {\n		return pinnedTools", "if w.again == nil {\n		return pinnedTools"),
			why:   "a replay starts the programs that an agent's tools come from",
			red:   by("cmd/stint", "TestReplayStartsNoServer"),
		}, {
			name: "diff-shifts-by-one", file: "internal/compare/align.go",
			edits: one("*at(i, j) = *at(i+1, j+1) + 1", "*at(i, j) = *at(i+1, j+1)"),
			why:   "one step more makes all that follow it look different",
			red:   by("internal/compare", "TestAlign"),
		}, {
			name: "bisect-takes-the-newest", file: "internal/compare/bisect.go",
			edits: one("		if ok, err := has(i); ok || err != nil {", "		if ok, err := has(n - 1 - i); ok || err != nil {"),
			why:   "the loop that is named is not the one in which the value came to be",
			red:   by("internal/compare", "TestBisect"),
		},
	}
}

// liveMutants break what is promised of a session that a model does again: it acts on
// nothing.
func liveMutants() []mutant {
	return []mutant{
		{
			name: "live-call-off-the-record-is-executed", file: "agent/llm/record.go",
			edits: one("	case !ok:\n", "	case !ok:\n		return c.do(ctx, tool.Call{Args: c.args})\n	case !ok && ok:\n"),
			why:   "a model that is only tried out pays, writes and deletes",
			red:   by("cmd/stint", "TestLiveModel|TestLiveModelIsResumed"),
		}, {
			name: "live-tools-are-called", file: "agent/llm/calls.go",
			edits: one("if plan[i].recorded {", "if false {"),
			why:   "a model that is only tried out does all again that was done",
			red:   by("internal/record", "TestTheSameIsTold|TestOrder"),
		}, {
			name: "live-begins-children", file: "agent/llm/calls.go",
			edits: one("if c.recorded { // nothing is begun", "if false { // nothing is begun"),
			why:   "a session begins others that act, although it shall not",
			red:   by("internal/record", "TestTheSameIsTold"),
		}, {
			name: "live-equal-calls-get-the-first", file: "internal/record/record.go",
			edits: one("&all[min(n, len(all)-1)]", "&all[0]"),
			why:   "a model that waits for a change sees none, where the session saw one",
			red:   by("internal/record", "TestOrder|TestARecordedCallIsInNoDoubt"),
		}, {
			name: "live-starts-servers", file: "cmd/stint/wiretools.go",
			edits: one("		if uncalled {\n", "		if uncalled && p == nil {\n"),
			why:   "a session whose tools are not called starts the programs that they come from",
			red:   by("cmd/stint", "TestLiveModelStartsNoServer"),
		},
	}
}
