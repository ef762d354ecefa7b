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
			edits: one("\"child-\" + s.ID.String()", "fmt.Sprintf(\"child-%s-%d\", s.ID, s.Head)"),
			why:   "a child that is restarted sets its parent to work again",
			red:   by("engine", "TestAChildTellsItsEndOnce"),
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
