package mutants_test

// journalMutants break the rules of which entry may follow which, and of what it
// does to a session.
func journalMutants() []mutant {
	return []mutant{
		{
			name: "journal-an-answer-before-the-question-is-decided", file: "journal/approve.go",
			edits: one("case a.State == stint.ApprovalOpen, a.State", "case a.State"),
			why:   "a step fails, or is begun, on a question that nobody decided",
			red:   by("journal", "TestTranscripts"),
		}, {
			name: "journal-decided-twice", file: "journal/approve.go",
			edits: one("if a.State != stint.ApprovalOpen && !void {", "if false {"),
			why:   "a no becomes a yes",
			red:   by("journal", "TestTranscripts"),
		}, {
			name: "journal-goes-on-after-the-end", file: "journal/apply.go",
			edits: one("if s.Status.Ended() {\n\t\treturn illegal", "if false {\n\t\treturn illegal"),
			why:   "a session that completed is written to, or completes twice",
			red:   by("journal", "TestAgainstModel"),
		}, {
			name: "journal-works-while-it-waits", file: "journal/apply.go",
			edits: one("if s.Status == stint.Waiting {\n\t\treturn illegal(s, e, \"the session is waiting for", "if false {\n\t\treturn illegal(s, e, \"the session is waiting for"),
			why:   "a session that waits for a person acts all the same",
			red:   by("journal", "TestAgainstModel"),
		}, {
			name: "journal-attempt-of-a-park", file: "journal/apply.go",
			edits: one("if s.At.Parked {\n\t\t\tattempt--\n\t\t}", ""),
			why:   "a wait or a drain counts as an attempt, and the brake stops a sound session",
			red:   by("journal", "TestAgainstModel"),
		}, {
			name: "journal-attempt-not-checked", file: "journal/apply.go",
			edits: one("if e.Pos.Attempt != s.At.Attempt {", "if false {"),
			why:   "what an earlier attempt had on its way is taken for this one's",
			red:   by("journal", "TestAgainstModel|TestUnderWay"),
		}, {
			name: "journal-parked-after-a-failure", file: "journal/apply.go",
			edits: one("s.At.Parked = s.At.Open && (s.At.Parked || !s.At.Since.IsZero())\n\tpause", "s.At.Parked = s.At.Open\n\tpause"),
			why:   "a failed attempt is begun again under its own number, as if it had not failed",
			red:   by("journal", "TestReleasedAfterFailure"),
		}, {
			name: "journal-fence-counts-as-a-death", file: "journal/apply.go",
			edits: one("if d.Prior == stint.Expired {", "if false {"),
			why:   "three slow renewals stop a sound session",
			red:   by("journal", "TestAgainstModel|TestTranscripts"),
		}, {
			name: "journal-line-not-checked", file: "journal/apply.go",
			edits: one("case e.Pos.Line != line:", "case false && e.Pos.Line != line:"),
			why:   "an entry of a line that was left is taken for one of the new line",
			red:   by("journal", "TestOutOfOrder"),
		}, {
			name: "journal-epoch-falls", file: "journal/apply.go",
			edits: one("case e.Epoch < s.Epoch:", "case false:"),
			why:   "a journal with entries of a fenced runner verifies",
			red:   by("journal", "TestEpochNeverFalls"),
		}, {
			name: "journal-downtime-counts", file: "journal/apply.go",
			edits: one("if e.Epoch != s.Epoch {\n\t\tpause(s, s.Updated,", "if e.Epoch != s.Epoch {\n\t\tpause(s, e.At,"),
			why:   "the night that a machine was off uses up the wall limit",
			red:   by("journal", "TestDeadTime"),
		}, {
			name: "journal-brake-a-death-late", file: "journal/brake.go",
			edits: one("s.At.Deaths >= maxDeaths", "s.At.Deaths > maxDeaths"),
			why:   "a loop that kills its runner does so once more than is promised",
			red:   by("journal", "TestBrake"),
		}, {
			name: "journal-brake-for-ever", file: "journal/brake.go",
			edits: one(" && now.Sub(fs[len(fs)-maxFailures]) <= failureWindow", ""),
			why:   "five failures in a year stop a session",
			red:   by("journal", "TestBrake"),
		}, {
			name: "journal-restart-keeps-the-brake", file: "journal/apply.go",
			edits: one("s.At.Parked, s.At.Failures, s.At.Deaths = false, nil, 0", "s.At.Parked = false"),
			why:   "a session that the brake stopped cannot be restarted by anybody",
			red:   by("journal", "TestAgainstModel"),
		},
	}
}

// proofMutants break what a reader of a journal can check, and the keys that the
// world is sent.
func proofMutants() []mutant {
	return []mutant{
		{
			name: "journal-key-without-the-line", file: "journal/sum.go",
			edits: one("[...]int{p.Line, p.Loop, p.Step, p.Sub}", "[...]int{p.Loop, p.Step, p.Sub}"),
			why:   "after a restart from an earlier loop the world answers with what it did before",
			red:   by("journal", "TestKey"),
		}, {
			name: "journal-key-of-the-attempt", file: "journal/sum.go",
			edits: one("[...]int{p.Line, p.Loop, p.Step, p.Sub}", "[...]int{p.Line, p.Loop, p.Attempt, p.Step, p.Sub}"),
			why:   "an effect that was cut off is done a second time, under another key",
			red:   by("journal", "TestKey"),
		}, {
			name: "journal-state-sum-not-checked", file: "journal/state.go",
			edits: one("if sha256.Sum256(state) != cp.Sum {", "if false {"),
			why:   "an agent goes on from a state that nobody wrote",
			red:   by("journal", "TestBrokenChain"),
		}, {
			name: "journal-once-step-twice-verifies", file: "journal/verify.go",
			edits: one("if m.requested != 0 && m.intent.Effect == stint.Once {", "if false {"),
			why:   "verify calls a journal sound in which an effect may have happened twice",
			red:   by("journal", "TestVerifierRules"),
		}, {
			name: "journal-answered-twice-verifies", file: "journal/verify.go",
			edits: one("if m.answered != 0 {", "if false {"),
			why:   "verify calls a journal sound in which one position has two results",
			red:   by("journal", "TestVerifierRules"),
		},
	}
}

// hashMutants leave one part of an entry out of its hash each.
func hashMutants() []mutant {
	var all []mutant
	const pos = "[...]int{e.Pos.Line, e.Pos.Loop, e.Pos.Attempt, e.Pos.Step, e.Pos.Sub}"
	for _, part := range []struct{ name, old, new string }{
		{"version", "append(arr[:0], e.Version)", "append(arr[:0], 0)"},
		{"session", "\tb = append(b, e.Session[:]...)\n", ""},
		{"seq", "\tb = binary.AppendUvarint(b, uint64(e.Seq))\n", ""},
		{"epoch", "\tb = binary.AppendUvarint(b, uint64(e.Epoch))\n", ""},
		{"line", pos, "[...]int{e.Pos.Loop, e.Pos.Attempt, e.Pos.Step, e.Pos.Sub}"},
		{"loop", pos, "[...]int{e.Pos.Line, e.Pos.Attempt, e.Pos.Step, e.Pos.Sub}"},
		{"attempt", pos, "[...]int{e.Pos.Line, e.Pos.Loop, e.Pos.Step, e.Pos.Sub}"},
		{"step", pos, "[...]int{e.Pos.Line, e.Pos.Loop, e.Pos.Attempt, e.Pos.Sub}"},
		{"member", pos, "[...]int{e.Pos.Line, e.Pos.Loop, e.Pos.Attempt, e.Pos.Step}"},
		{"kind", "\tb = append(b, e.Kind...)\n", ""},
		{"time", "\tb = binary.BigEndian.AppendUint64(b, uint64(e.At.UnixMicro()))\n", ""},
		{"actor", "\tb = append(b, e.Actor...)\n", ""},
		{"cause", "\tb = binary.AppendUvarint(b, uint64(e.Cause))\n", ""},
		{"predecessor", "\tb = append(b, prev[:]...)\n", ""},
		{"commitment", "\tb = append(b, commit[:]...)\n", "\tb = append(b, commit[:0]...)\n"},
		{"salt", "\tb = append(b, e.Salt[:]...)\n", "\tb = append(b, make([]byte, len(e.Salt))...)\n"},
		{"data", "\tb = append(b, e.Data...)\n", ""},
		{"body", "\tb = append(b, e.Body...)\n", ""},
		{"blob", "append(append(b, 1), e.Blob.Sum[:]...)", "append(b, 1)"},
		{"blob-size", "\t\tb = binary.AppendUvarint(b, uint64(e.Blob.Size))\n", ""},
	} {
		all = append(all, mutant{
			name: "hash-without-" + part.name, file: "journal/sum.go", edits: one(part.old, part.new),
			why: "the " + part.name + " of an entry can be changed and the journal still verifies",
			red: by("journal", "TestSumAsDocumented|TestVerifierDamage|TestCommitmentIsHMAC"),
		})
	}
	return all
}
