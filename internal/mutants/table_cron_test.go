package mutants_test

// cronMutants break when a schedule fires.
func cronMutants() []mutant {
	const pkg = "cron"
	return []mutant{
		{
			name: "cron-repeated-hour-fires-twice", file: "cron/zone.go", quick: true,
			edits: one("\t\tt = max(t, p.end-1+p.offset)\n", "\t\tbreak\n"),
			why:   "on the night when an hour is repeated a daily agent runs twice, and costs twice",
			red:   by(pkg, "TestNextOfReportedFaults|TestNextWhereSchedulersDiffer"),
		}, {
			name: "cron-skipped-hour-comes-early", file: "cron/zone.go",
			edits: one("instant := max(p.start, t-p.offset)", "instant := t - p.offset"),
			why:   "what is due in a skipped hour fires an hour before it",
			red:   by(pkg, "TestNextOfReportedFaults|TestNextWhereSchedulersDiffer"),
		}, {
			name: "cron-interval-stands-still", file: "cron/parse.go",
			edits: one("s.interval = star(0) || star(1) || star(2)", "s.interval = false"),
			why:   "every quarter of an hour is an hour of silence when the clock is set back",
			red:   by(pkg, "TestNextOfReportedFaults|TestNextWhereSchedulersDiffer"),
		}, {
			name: "cron-date-and-weekday", file: "cron/parse.go",
			edits: one("c.days.either = !star(3) && !star(5)", "c.days.either = false"),
			why:   "the 13th or a Friday becomes Friday the 13th: a weekly job runs twice a year",
			red:   by(pkg, "TestNextWhereSchedulersDiffer|TestCroner"),
		}, {
			name: "cron-never-is-accepted", file: "cron/parse.go",
			edits: one("return s.checkFires()", "return nil"),
			why:   "a schedule of 31 February is taken, and nobody hears that it never runs",
			red:   by(pkg, "TestRefused|TestVerdictsOfReportedFaults"),
		}, {
			name: "cron-long-step-is-accepted", file: "cron/field.go",
			edits: one("case every > n:", "case every > 9999:"),
			why:   "*/70 is taken, and means once an hour",
			red:   by(pkg, "TestRefused"),
		}, {
			name: "cron-every-from-now", file: "cron/schedule.go",
			edits: one("\t\tnext = s.anchor + s.every*(s.elapsed(from)+1)", "\t\tnext = from + s.every"),
			why:   "a weekly job on a server that starts every day never runs",
			red:   by(pkg, "TestEveryOutlivesRestarts"),
		}, {
			name: "cron-gap-counts-each", file: "cron/schedule.go",
			edits: one("skipped > 1 {", "skipped > 1<<40 {"),
			why:   "what was missed is more than what would have run",
			red:   by(pkg, "TestNextPrevCount|TestOracle"),
		}, {
			name: "crontab-percent-stays", file: "cron/crontab.go",
			edits: one("case c == '%' && part == 0:", "case c == '%' && part == 7:"),
			why:   "the standard input of a command becomes a part of its command line",
			red:   by(pkg, "TestCrontabLines"),
		}, {
			name: "crontab-zone-that-is-none", file: "cron/crontab.go",
			edits: one("if r.zoneErr != nil {", "if false {"),
			why:   "below a misspelt CRON_TZ commands run in another zone",
			red:   by(pkg, "TestCrontabProblems"),
		}, {
			name: "import-dollar-needs-no-shell", file: "internal/importer/shell.go",
			edits: one("\"|&;<>()$`*?[]{}!\"", "\"|&;<>()`*?[]{}!\""),
			why:   "a command gets $HOME as it is written, where cron's shell put a folder",
			red:   by("internal/importer", "TestSplit|TestSplitAsAShell"),
		}, {
			name: "import-secret-is-written", file: "internal/importer/importer.go",
			edits: one("\t\tcase isSecret(name, value):\n\t\t\tj.Env[name] = \"env:\" + name\n", ""),
			why:   "a token of a crontab that its owner alone may read is in a file that is shared",
			red:   by("internal/importer", "TestNotes|TestSecretInACommand"),
		}, {
			name: "import-takes-a-name", file: "internal/importer/insert.go",
			edits: one("if agent || schedule {", "if agent && schedule {"),
			why:   "an agent that is there gets a schedule that it was not meant for",
			red:   by("internal/importer", "TestInsertIntoAFile"),
		},
	}
}
