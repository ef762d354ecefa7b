package mutants_test

// scheduleMutants break what becomes of the times of schedules.
func scheduleMutants() []mutant {
	const pkg = "internal/trigger"
	return []mutant{
		{
			name: "schedule-jitter-counts-as-late", file: "internal/trigger/plan.go", quick: true,
			edits: one("!p.begins(s.Name, due).Before(from)", "!due.Before(from)"),
			why:   "a schedule with a jitter is held back, and then found too late to begin at all",
			red:   by(pkg, "TestDecide"),
		}, {
			name: "schedule-gap-of-one", file: "internal/trigger/plan.go",
			edits: one("d := missed(t, p, s, before)", "d := missed(t, p, Standing{Name: s.Name, Since: before.Add(-1), Up: s.Up, Open: s.Open}, before)"),
			why:   "of an outage only the newest time is in the ledger, and the others are nowhere",
			red:   by(pkg, "TestDecide|TestEachTimeHasOneFate"),
		}, {
			name: "schedule-late-answer-counts", file: "internal/trigger/scheduler.go", quick: true,
			edits: one("\t\tcase !s.undecided(t, d):", "\t\tcase false && !s.undecided(t, d):"),
			why:   "a schedule that was paused or edited while its condition was asked begins a session all the same",
			red:   by(pkg, "TestAnswersThatComeLate"),
		}, {
			name: "schedule-edit-forgets", file: "internal/trigger/scheduler.go",
			edits: one("\treturn s.gap(ctx, t, now, reason)\n", "\treturn s.gap(ctx, t, t.since, reason)\n"),
			why:   "times of a schedule that was edited while no server ran are in no line",
			red:   by(pkg, "TestEdits"),
		}, {
			name: "schedule-waits-and-is-made-good", file: "internal/trigger/scheduler.go",
			edits: one("\t} else if made {\n", "\t} else if made && false {\n"),
			why:   "a time that somebody made good while it waited runs twice",
			red:   by(pkg, "TestBackfill"),
		}, {
			name: "schedule-open-session-is-forgotten", file: "internal/trigger/scheduler.go",
			edits: one("\tt.since, t.open, t.read = since, open, true\n", "\tt.since, t.open, t.read = since, open[:0], true\n"),
			why:   "a server that comes up begins a session beside one that is open",
			red:   by(pkg, "TestLongLedgers"),
		}, {
			name: "schedule-settled-dies-with-its-lines", file: "internal/trigger/scheduler.go",
			edits: one("\treturn s.keep(ctx, t)\n", "\treturn nil\n"),
			why:   "after an outage of more than 400 days everything since the beginning was missed",
			red:   by(pkg, "TestDue"),
		}, {
			name: "schedule-wrong-clock-counts", file: "internal/trigger/scheduler.go",
			edits: one("o.Manual || o.Era < is.Era", "o.Manual"),
			why:   "after a clock that was days ahead a schedule is silent until it has caught up",
			red:   by("internal/cases", "TestClockOfSchedules/TestClockFarAhead"),
		}, {
			name: "schedule-line-of-another-time", file: "internal/trigger/line.go",
			edits: one("if n := len(all); n >= limit && !o.To.Equal(all[n-1].To) {", "if n := len(all); n >= limit {"),
			why:   "a page of a history ends between two lines of one time, and the next one begins after both",
			red:   by(pkg, "TestPagesOfAHistory"),
		},
	}
}
