package mutants_test

// channelMutants break the ways to tell people.
func channelMutants() []mutant {
	const pkg = "internal/notify"
	return []mutant{
		{
			name: "channels-lose-in-silence", file: "internal/notify/sender.go",
			edits: one("if result.Lost() {", "if false {"),
			why:   "what nobody was told of is nowhere once the ledger is forgotten",
			red:   by(pkg, "TestLost"),
		}, {
			name: "channels-try-the-refused-again", file: "internal/notify/sender.go",
			edits: one("case got.Final:", "case got.Final && false:"),
			why:   "a relay that refuses a mail gets it eleven times, and takes stint for a sender of junk",
			red:   by(pkg, "TestLost"),
		}, {
			name: "exec-later-is-never", file: "internal/notify/exec.go", quick: true,
			edits: one("Final: end.Code != tempFail", "Final: true"),
			why:   "a program that says not now is not asked again",
			red:   by(pkg, "TestChannels|TestExec"),
		}, {
			name: "exec-tells-its-secret", file: "internal/notify/exec.go",
			edits: one("oneLine(tool.Redact(cmp.Or(out, errs), secrets))", "oneLine(tool.Redact(cmp.Or(out, errs), nil))"),
			why:   "a token that a program prints is in the journal for good",
			red:   by(pkg, "TestChannels|TestExec"),
		}, {
			name: "exec-timeout-is-never", file: "internal/notify/exec.go",
			edits: one("return Answer{}, errors.New(cmp.Or(says, context.Cause(ctx).Error()))", "return Answer{Final: true}, errors.New(cmp.Or(says, context.Cause(ctx).Error()))"),
			why:   "one slow moment loses what somebody waits to hear",
			red:   by(pkg, "TestChannels|TestExec"),
		}, {
			name: "mail-without-tls", file: "internal/notify/smtp.go",
			edits: one(`if ok, _ := c.Extension("STARTTLS"); !ok {`, `if ok, _ := c.Extension("STARTTLS"); !ok && m.User == "" {
			return c, nil
		} else if !ok {`),
			why: "whoever is on the way takes STARTTLS out of the greeting and reads the mails",
			red: by(pkg, "TestMailTLS"),
		}, {
			name: "mail-to-anybody-in-the-clear", file: "internal/notify/smtp.go",
			edits: one("at.Addr().Unmap().IsLoopback()", "at.Addr().Unmap().IsValid()"),
			why:   "a name that leads elsewhere has mails sent over the network without TLS",
			red:   by(pkg, "TestMailElsewhere"),
		}, {
			name: "mail-refused-login-is-final", file: "internal/notify/smtp.go",
			edits: one("return Answer{Status: code(err)}, err", "return Answer{Status: code(err), Final: code(err)/100 == 5}, err"),
			why:   "a password that was changed loses all mails until somebody looks",
			red:   by(pkg, "TestMailLogin"),
		}, {
			name: "mail-refusal-is-not-final", file: "internal/notify/smtp.go",
			edits: one("Final: code(err)/100 == 5}, err }", "Final: false}, err }"),
			why:   "a mail that no relay wants is sent for a day",
			red:   by(pkg, "TestMail|TestChannels"),
		}, {
			name: "mail-takes-lines-from-sessions", file: "internal/notify/mail.go", quick: true,
			edits: one("term.Cut(term.Line(strings.TrimSpace(s)), 300)", "term.Cut(strings.TrimSpace(s), 300)"),
			why:   "what an agent calls itself looks like the command that answers it",
			red:   by(pkg, "TestLetters|TestLetterIsOnlyText"),
		}, {
			name: "mail-another-id", file: "internal/notify/mail.go",
			edits: one(`"<" + n.ID + "@" + domain + ">"`, `"<" + n.ID + time.Now().Format("150405.000000000") + "@" + domain + ">"`),
			why:   "a mail that is sent again is there twice",
			red:   by(pkg, "TestChannels|TestMail"),
		}, {
			name: "mail-is-answered", file: "internal/notify/mail.go",
			edits: one(`{"Auto-Submitted", "auto-generated"},`, `{"Auto-Submitted", "no"},`),
			why:   "machines that are away answer to each mail",
			red:   by(pkg, "TestMail|TestLetters"),
		},
	}
}

// remindMutants break when people are told.
func remindMutants() []mutant {
	const pkg = "internal/notify"
	return []mutant{
		{
			name: "remind-the-answered", file: "internal/notify/remind.go", quick: true,
			edits: one("if is.Status != stint.Waiting || is.Wait == nil || !is.Wait.Since.Equal(p.Waiting) {", "if false {"),
			why:   "people are woken for what somebody has answered",
			red:   by(pkg, "TestRemindersThatAreLate"),
		}, {
			name: "remind-from-the-start", file: "internal/notify/remind.go",
			edits: one("s.held.Pending, s.held.Reminded = keep, until", "s.held.Pending = keep"),
			why:   "all reminders come again, and again",
			red:   by(pkg, "TestReminders|TestRemindersOverRestarts"),
		}, {
			name: "remind-what-is-told-just-now", file: "internal/notify/remind.go",
			edits: one("if told := s.late[is.ID]; told.After(after) {", "if told := s.late[is.ID]; false && told.After(after) {"),
			why:   "after a night without a server each question comes twice",
			red:   by(pkg, "TestRemindersAfterAGap"),
		}, {
			name: "remind-some-of-many", file: "internal/notify/remind.go",
			edits: one("until, next = all[cut-1].Due, now", "next = now"),
			why:   "where many sessions wait, those behind the first hundred are forgotten",
			red:   by(pkg, "TestManyReminders"),
		}, {
			name: "remind-written-down-later", file: "internal/notify/sender.go",
			edits: one("err != nil || wait <= 0 || !s.owed {", "err != nil || wait <= 0 || !s.owed || true {"),
			why:   "a server that dies after a reminder sends it again",
			red:   by(pkg, "TestReminderIsWrittenDown"),
		}, {
			name: "needs-you-for-a-message", file: "internal/endpoint/when.go",
			edits: one("stint.ForHealth, stint.ForOperator:\n\t\treturn true\n\tcase stint.ForMessage, ", "stint.ForHealth, stint.ForOperator, stint.ForMessage:\n\t\treturn true\n\tcase "),
			why:   "whoever has a chat open is reminded of it all day",
			red:   by("internal/endpoint", "TestTold"),
		}, {
			name: "quiet-is-loud", file: "internal/notify/sender.go",
			edits: one("; quiet {", "; quiet && s.Quiet.From < s.Quiet.To {"),
			why:   "people are woken at night",
			red:   by(pkg, "TestQuietHours"),
		}, {
			name: "quiet-tells-the-answered", file: "internal/notify/sender.go",
			edits: one("held && !what.stands(of, e) {", "held && !what.stands(of, e) && false {"),
			why:   "the morning begins with everything that is over",
			red:   by(pkg, "TestQuietHours"),
		}, {
			name: "quiet-by-the-wrong-day", file: "internal/endpoint/when.go",
			edits: one("[]int{today - 1, today}", "[]int{today}"),
			why:   "quiet hours end at midnight",
			red:   by("internal/endpoint", "TestQuiet"),
		},
	}
}
