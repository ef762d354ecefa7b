package mutants_test

// treeMutants break what sessions and their children have to do with each other.
func treeMutants() []mutant {
	return []mutant{
		{
			name: "tree-two-children-of-one-spawn", file: "engine/tree.go",
			edits: one("Dedupe: \"spawn-\" + key,", "Dedupe: \"\","),
			why:   "a runner that dies in a spawn leaves two children that do the same",
			red:   by("engine", "TestACrashMakesOneChild"),
		}, {
			name: "tree-spawn-without-intent", file: "engine/loop.go",
			edits: one("|| c.intent.Child || c.intent.Asked", "|| c.intent.Asked"),
			why:   "who ends the parent does not know that there is a child",
			red:   by("engine", "TestAChildIsSpawnedAndWaitedFor"),
		}, {
			name: "tree-pause-stays-above", file: "engine/tree.go",
			edits: one("case stint.Stop, stint.Kill, stint.Pause, stint.Resume,", "case stint.Stop, stint.Kill, stint.Resume,"),
			why:   "a paused session goes on spending through its children",
			red:   by("engine", "TestControlReachesTheTree"),
		}, {
			name: "tree-children-outlive", file: "engine/tree.go",
			edits: one("if p.by != nil {", "if true {"),
			why:   "children work on for a parent that is gone",
			red:   by("engine", "TestTheEndOfAParentEndsItsChildren"),
		}, {
			name: "tree-end-told-twice", file: "engine/tree.go",
			edits: one("ID: lastWord(s.ID)", "ID: fmt.Sprintf(\"child-%s-%d\", s.ID, s.Head)"),
			why:   "a child that is restarted sets its parent to work again",
			red:   by("engine", "TestAChildTellsItsEndOnce"),
		}, {
			name: "tree-end-lost-in-a-drain", file: "engine/tree.go",
			edits: one("|| d.isLost() || stopped(d.e.store) {", "|| d.isDraining() || d.isLost() {"),
			why:   "a session goes on that its agent ended, where the store did not answer as its runner drained",
			red:   by("engine", "TestAnEndIsKeptWhereChildrenCannotBeRead"),
		}, {
			name: "tree-wait-over-inbox-unread", file: "engine/tree.go",
			edits: one("return true, d.readInbox()", "return true, nil"),
			why:   "the loop after a wait for a child does not hear of the child, which is over",
			red:   by("engine", "TestAWaitThatIsOverHearsTheChild"),
		}, {
			name: "tree-wait-for-one-that-told", file: "engine/tree.go",
			edits: one("if told, err := d.hasTold(c); err != nil || !told {", "if told, err := d.hasTold(c); err != nil || !told || told {"),
			why:   "a parent waits for ever once its child was restarted",
			red:   by("engine", "TestAWaitIsNotForAChildThatHasTold"),
		}, {
			name: "tree-wait-not-for-a-restarted-child", file: "engine/tree.go",
			edits: one("m.ID == lastWord(c.ID)", "m.ID != \"\""),
			why:   "a parent that was restarted with its child goes on without it",
			red:   by("engine", "TestAWaitIsForAChildThatHasNotTold"),
		}, {
			name: "tree-use-before-the-first-child", file: "engine/draw.go",
			edits: one("if !c.intent.Child || s.Totals.Children > 0 {", "if true {"),
			why:   "what a session used before it spawned is not counted for its tree",
			red:   by("engine", "TestWhatWasUsedBeforeAChildCounts"),
		}, {
			name: "tree-draw-never-given-back", file: "engine/draw.go",
			edits: one("Spend: int64(u.Cost), Reserve: -held.cost", "Spend: int64(u.Cost), Reserve: 0"),
			why:   "each call counts twice against the limits above",
			red:   by("engine", "TestATreeSharesItsBudget"),
		}, {
			name: "tree-refused-intent-stands", file: "engine/writer.go",
			edits: one("w.s, w.last, w.queue, c.err = *c.before, nil, nil, err", "w.last, w.queue, c.err = nil, nil, err"),
			why:   "a session that a limit stops goes on from an entry that was never written",
			red:   by("engine", "TestATreeSharesItsBudget"),
		}, {
			name: "tree-log-behind-a-refused-intent", file: "engine/writer.go",
			edits: one("\tfor w.trial != nil {", "\tfor w.trial != nil && false {"),
			why:   "output that came in that moment stands behind an entry that was never written",
			red:   by("engine", "TestALogBesideARefusedDraw"),
		},
	}
}

// interruptMutants break what an interrupted loop is begun again with.
func interruptMutants() []mutant {
	return []mutant{
		{
			name: "interrupt-other-input-after-a-failed-try", file: "engine/past.go",
			edits: one("return err == nil && d.Effect == stint.Idempotent", "return err == nil && d.Effect == \"\""),
			why:   "a service is sent something else under the key of what it may have done",
			red:   by("engine", "TestAnInterruptKeepsTheInputOfAKey/dies=false"),
		}, {
			name: "interrupt-other-input-after-a-death", file: "engine/past.go",
			edits: one("return e.Kind == stint.LeaseLost", "return false"),
			why:   "a service is sent something else under the key of what it may have done",
			red:   by("engine", "TestAnInterruptKeepsTheInputOfAKey/dies=true"),
		}, {
			name: "children-uncounted", file: "engine/engine.go",
			edits: one("leases, err := e.store.Claim(ctx, c)\n		if err != nil {\n			leave()", "bare := c\n		bare.Caps = nil\n		leases, err := e.store.Claim(ctx, bare)\n		if err != nil {\n			leave()"),
			why:   "a run beside a server drives more sessions of an agent than may run",
			red:   by("engine", "TestRunCountsOthers"),
		}, {
			name: "waiting-children-keep-their-place", file: "engine/engine.go",
			edits: one("	leave()\n	if err == nil {", "	if err == nil {"),
			why:   "a tree of one agent waits for ever for the room that it has itself",
			red:   by("engine", "TestRunOfAChain"),
		}, {
			name: "children-crowd", file: "engine/brood.go",
			edits: one("bounds[\"\"] = b.e.opt.Concurrency", "bounds[\"\"] = 1000"),
			why:   "a run of many children drives all of them at once",
			red:   by("engine", "TestRunBoundsItsChildren"),
		}, {
			name: "salvage-forgets-the-tree", file: "engine/draw.go",
			edits: one("t[s.ID] = append([]stint.ID{s.Parent.Session}, t[s.Parent.Session]...)", "t[s.ID] = []stint.ID{s.Parent.Session}"),
			why:   "a tree of three levels may spend its limit again after a salvage",
			red:   by("cmd/stint", "TestSalvageOfATree"),
		},
	}
}
