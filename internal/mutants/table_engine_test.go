package mutants_test

// engineMutants break the order of what is durable and what acts, and the way in
// which a session stops.
func engineMutants() []mutant {
	return []mutant{
		{
			name: "engine-intent-not-durable", file: "engine/loop.go",
			edits: one("c.intent.Asked != \"\":\n\t\t\tneed = true\n", "c.intent.Asked != \"\":\n"),
			why:   "a crash in the middle of an effect leaves no trace of it, and it is done again",
			red:   by("engine", "TestAnIntentIsDurableBeforeItsEffect"),
		}, {
			name: "engine-idempotent-before-its-reads", file: "engine/loop.go",
			edits: one("case c.step.Effect == stint.Idempotent && l.loose > 0:", "case false:"),
			why:   "an effect is repeated with another input under the same key",
			red:   by("engine", "TestAnIdempotentStepWaitsForAllItMayDependOn"),
		}, {
			name: "engine-tool-before-the-answer", file: "engine/loop.go",
			edits: one("case c.step.Kind == stint.Tool && l.model > 0:", "case false:"),
			why:   "a tool acts on an answer that the next attempt gets otherwise",
			red:   by("engine", "TestAToolWaitsForTheAnswerThatAskedForIt"),
		}, {
			name: "engine-released-before-the-end", file: "engine/driver.go",
			edits: one("if err := d.record(p); err != nil || p.lost {\n\t\treturn err\n\t}\n\treturn d.giveBack()", "if err := d.giveBack(); err != nil {\n\t\treturn err\n\t}\n\treturn d.record(p)"),
			why:   "the end is not written, and another runner begins the session again",
			red:   by("engine", "TestTheEndIsOneCommit"),
		}, {
			name: "engine-release-apart-from-the-end", file: "engine/driver.go",
			edits: one("if err := d.record(p); err != nil || p.lost {\n\t\treturn err\n\t}\n\treturn d.giveBack()", "if err := d.record(p); err != nil || p.lost {\n\t\treturn err\n\t}\n\tif err := d.w.sync(); err != nil {\n\t\treturn err\n\t}\n\treturn d.giveBack()"),
			why:   "a crash between the two leaves an ended session under a lease",
			red:   by("engine", "TestTheEndIsOneCommit"),
		}, {
			name: "engine-drain-cancels-at-once", file: "engine/limits.go",
			edits: one("if d.once.Load() == 0 {", "if true {"),
			why:   "every restart of a server leaves effects in doubt",
			red:   by("engine", "TestDrain"),
		}, {
			name: "engine-members-share-a-key", file: "engine/loop.go",
			edits: one("fn(ctx, journal.Key(l.start.ID, c.pos))", "fn(ctx, journal.Key(l.start.ID, l.at(c.pos.Step, 0)))"),
			why:   "of a group of effects the world does one",
			red:   by("engine", "TestKeys"),
		}, {
			name: "engine-key-of-line-zero", file: "engine/loop.go",
			edits: one("return stint.Position{Line: p.Line, Loop: p.Loop,", "return stint.Position{Loop: p.Loop,"),
			why:   "after a restart from an earlier loop the world answers with what it did before",
			red:   by("engine", "TestKeys"),
		}, {
			name: "engine-say-is-lost", file: "engine/goback.go",
			edits: one("if c.Say == \"\" {", "if c.Say != \"\" {"),
			why:   "a person's word is acknowledged and never heard",
			red:   by("engine", "TestSayOfARestartIsNotLost"),
		}, {
			name: "engine-a-step-over-the-limit", file: "engine/limits.go",
			edits: one("ses.Totals.Steps+beside >= lim.Steps", "ses.Totals.Steps+beside > lim.Steps"),
			why:   "a limit of five steps lets six be done",
			red:   by("engine", "TestLimits"),
		}, {
			name: "engine-a-loop-over-the-limit", file: "engine/limits.go",
			edits: one("ses.Totals.Loops >= lim.Loops", "ses.Totals.Loops > lim.Loops"),
			why:   "a limit of three loops lets four be done",
			red:   by("engine", "TestLimits"),
		}, {
			name: "engine-answers-before-it-is-durable", file: "engine/driver.go",
			edits: one("if err := d.w.wait(); err != nil {\n\t\treturn err\n\t}\n\tfaultpoint.Hit(faultpoint.RecordedNotAcked)", "faultpoint.Hit(faultpoint.RecordedNotAcked)"),
			why:   "a command reports an end that a crash takes back",
			red:   by("engine", "TestNobodyIsToldBeforeItIsDurable"),
		}, {
			name: "engine-tells-of-a-loop-before-it-is-durable", file: "engine/driver.go",
			edits: one("if err := d.w.sync(); err != nil {\n\t\t\treturn false, err\n\t\t}\n\t\td.told()", "d.w.flush(false)\n\t\td.told()"),
			why:   "a loop is reported that a crash takes back",
			red:   by("engine", "TestNobodyIsToldBeforeItIsDurable"),
		}, {
			name: "engine-fenced-tries-again", file: "engine/writer.go",
			edits: one("case errors.Is(err, stint.Unavailable)", "case errors.Is(err, stint.Fenced) || errors.Is(err, stint.Unavailable)"),
			why:   "a runner that was overtaken works on, and tries to write for ever",
			red:   by("engine", "TestFencedRunner"),
		},
	}
}

// promiseMutants break what an engine does with what it finds in a journal.
func promiseMutants() []mutant {
	return []mutant{
		{
			name: "engine-divergence-not-seen", file: "engine/loop.go",
			edits: one("if !p.Intent.Same(c.intent) {", "if false {"),
			why:   "after a change of code a step is answered with what another step got",
			red:   by("engine", "TestDivergence"),
		}, {
			name: "engine-a-left-out-step-not-seen", file: "engine/driver.go",
			edits: one("if p := l.past.Left(l.step); p != nil {", "if p := l.past.Left(l.step); p != nil && false {"),
			why:   "an effect that took place is forgotten by the agent that did it",
			red:   by("engine", "TestAStepThatIsLeftOutIsSeen"),
		}, {
			name: "engine-doubt-runs-again", file: "engine/loop.go",
			edits: one("case p.Requested && c.step.Effect == stint.Once:", "case false:"),
			why:   "a once step is done a second time without anybody's word",
			red:   by("engine", "TestDoubt"),
		}, {
			name: "engine-an-error-of-a-once-step-is-its-answer", file: "engine/loop.go",
			edits: one("if c.step.Effect == stint.Once && !definite {", "if false {"),
			why:   "an effect that timed out is done again although it may have happened",
			red:   by("engine", "TestASiblingDoesNotForgetAPark"),
		}, {
			name: "engine-message-heard-twice", file: "engine/control.go",
			edits: one("if d.seen[m.ID] {", "if false {"),
			why:   "a prompt is heard by two loops",
			red:   by("engine", "TestAMessageIsTakenOnce"),
		}, {
			name: "engine-message-stays-in-the-inbox", file: "engine/control.go",
			edits: one("x := extras{taken: []string{m.ID}}", "x := extras{}"),
			why:   "the next runner hears a prompt that was answered",
			red:   by("engine", "TestAMessageIsTakenOnce"),
		}, {
			name: "engine-brake-not-asked", file: "engine/driver.go",
			edits: one("if why, on := journal.Brake(&s, faultpoint.Now()); on {", "if why, on := journal.Brake(&s, faultpoint.Now()); on && false {"),
			why:   "a loop that kills its runner is begun for ever",
			red:   by("engine", "TestBrakeOnDeaths"),
		}, {
			name: "engine-death-not-recorded", file: "engine/driver.go",
			edits: one("if d.prior != stint.Released {", "if false {"),
			why:   "the brake counts nothing",
			red:   by("engine", "TestDeathAndRecovery|TestBrakeOnDeaths"),
		}, {
			name: "engine-state-belongs-to-the-agent", file: "engine/driver.go",
			edits: one("next.State = bytes.Clone(next.State)", "next.State = bytes.TrimSpace(next.State)"),
			why:   "an agent that uses its buffer again makes the next checkpoint unreadable",
			red:   by("engine", "TestAnAgentMayUseItsBuffersAgain"),
		}, {
			name: "engine-result-belongs-to-the-agent", file: "engine/loop.go",
			edits: one("Body: bytes.Clone(c.result.Data)}", "Body: c.result.Data}"),
			why:   "an agent that uses its buffer again changes an entry behind its hash",
			red:   by("engine", "TestAnAgentMayUseItsBuffersAgain"),
		}, {
			name: "engine-dedupe-not-asked", file: "engine/start.go",
			edits: one("if r.Dedupe != \"\" {", "if false {"),
			why:   "a request that is sent again begins a second session",
			red:   by("engine", "TestDedupe"),
		}, {
			name: "engine-an-error-is-used-before-it-is-recorded", file: "engine/loop.go",
			edits: one("c.err = past.Error(f, final)", "_ = past.Error(f, final)"),
			why:   "after a crash an agent sees another error than the one it worked on with",
			red:   by("engine", "TestLiveEqualsReplay"),
		},
	}
}

// personMutants break what an engine does with what comes from people, from agents that
// are wrong, and from clocks.
func personMutants() []mutant {
	return []mutant{
		{
			name: "engine-next-not-checked", file: "engine/driver.go",
			edits: one("err = checkNext(&next)", "err = nil"),
			why:   "a loop that ended its session in a way that cannot be recorded is followed by the next loop, for ever",
			red:   by("engine", "TestABadNextIsAFailedAttempt"),
		}, {
			name: "engine-running-time-by-the-wall-clock", file: "engine/writer.go",
			edits: one("if !w.begun.IsZero() {\n\t\td.Data = measured", "if false {\n\t\td.Data = measured"),
			why:   "setting the clock uses up a wall limit",
			red:   by("engine", "TestClock"),
		}, {
			name: "engine-no-rest", file: "engine/driver.go",
			edits: one("if !d.serves {", "if true {"),
			why:   "a store that cannot be read is asked as fast as it answers",
			red:   by("engine", "TestReadsThatFailAreNoHotLoop"),
		}, {
			name: "engine-a-pause-hides-a-doubt", file: "engine/control.go",
			edits: one("case m.Kind == stint.Pause, m.Kind == stint.Interrupt:\n\t\treturn \"the session is parked", "case false:\n\t\treturn \"the session is parked"),
			why:   "nobody sees any more that a step waits for a word",
			red:   by("engine", "TestAnOpenDoubtStaysOpen"),
		}, {
			name: "engine-a-doubt-is-left-behind", file: "engine/goback.go",
			edits: one("if len(doubts) > 0 && (c.InDoubt", "if false && (c.InDoubt"),
			why:   "a payment of which nobody knows is made again without anybody's choice",
			red:   by("engine", "TestAnOpenDoubtStaysOpen"),
		}, {
			name: "engine-a-skip-is-forgotten", file: "engine/goback.go",
			edits: one("if c.InDoubt != journal.RedoDoubt { // what", "if false { // what"),
			why:   "the second line after a doubt does what the first was not to do",
			red:   by("engine", "TestASkippedStepStaysSkipped"),
		}, {
			name: "engine-a-successor-is-forgotten", file: "engine/engine.go",
			edits: one("if e.drivers[d.lease.Session] == d {", "if true {"),
			why:   "the lease of a session that is claimed again here is not renewed",
			red:   by("engine", "TestSuccessorInTheSameEngineKeepsItsLease"),
		}, {
			name: "engine-goes-back-with-the-newest-state", file: "engine/checkpoint.go",
			edits: one("if loop == s.Checkpoint.Loop {", "if loop >= 0 {"),
			why:   "a restart from an earlier loop goes on with what the later ones left",
			red:   by("engine", "TestRestartFromALoop"),
		},
	}
}

// questionMutants break how a person is asked, and how a group runs.
func questionMutants() []mutant {
	return []mutant{
		{
			name: "engine-a-question-not-held", file: "engine/approval.go",
			edits: one("	case a.State == stint.ApprovalOpen:\n\t\tc.asks = true\n", "	case a.State == stint.ApprovalOpen:\n"),
			why:   "what a person has not decided is done",
			red:   by("engine", "TestApproval"),
		}, {
			name: "engine-a-yes-for-anything", file: "engine/approval.go",
			edits: one("a.Name != c.intent.Name || a.Effect != c.intent.Effect || a.Input != c.intent.Input", "false"),
			why:   "a yes to one payment lets another one through",
			red:   by("engine", "TestApprovalIsBound"),
		}, {
			name: "engine-a-question-left-open", file: "engine/driver.go",
			edits: one("if err := d.voidAll(ofSteps, stint.ApprovalCanceled, \"the session ended\"); err != nil {", "if err := error(nil); err != nil {"),
			why:   "a question has no end, and nobody can tell whether it was decided",
			red:   by("engine", "TestLeftQuestions"),
		}, {
			name: "engine-all-members-at-once", file: "engine/group.go",
			edits: one("for !c.step.Alone && end < len(calls) && !calls[end].step.Alone {", "for c != nil && end < len(calls) {"),
			why:   "a crash leaves steps in doubt that had not begun",
			red:   by("engine", "TestAloneInDoubt"),
		}, {
			name: "engine-lost-reservations-forgotten", file: "engine/limits.go",
			edits: one("gone := ses.Totals.Usage.Add(ses.Totals.Reserved)", "gone := ses.Totals.Usage"),
			why:   "a crash lets a session spend more than its limit",
			red:   by("engine", "TestReserve"),
		},
	}
}
