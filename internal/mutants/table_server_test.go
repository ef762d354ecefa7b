package mutants_test

// serverMutants break the life of a server.
func serverMutants() []mutant {
	const pkg = "internal/server"
	return []mutant{
		{
			name: "system-older-section", file: "engine/system.go",
			edits: one("|| d.Section != \"\" && state[d.Section] != nil {", "{"),
			why:   "what was said first of schedules or tokens counts again after a restart",
			red:   by("engine", "TestSystemSections"),
		}, {
			name: "system-whole-over-newer", file: "engine/system.go",
			edits: one("if state[section] == nil {", "if raw != nil {"),
			why:   "what was said since all was written down is forgotten at a restart",
			red:   by("engine", "TestSystemSections"),
		}, {
			name: "system-all-with-each-note", file: "engine/system.go",
			edits: one("case s.since >= stateEvery && len(s.state) > 0:", "case n.State != nil || s.since >= stateEvery && len(s.state) > 0:"),
			why:   "each notification writes the whole stint.yaml and all tokens again",
			red:   by("engine", "TestSystemSections"),
		}, {
			name: "server-socket-for-everybody", file: pkg + "/listen.go",
			edits: one("os.Chmod(from, 0o600)", "os.Chmod(from, 0o666)"),
			why:   "every user of the machine is an administrator",
			red:   by(pkg, "TestSocketIsPrivate"),
		}, {
			name: "server-socket-private-too-late", file: pkg + "/listen.go",
			edits: one("next := filepath.Join(private, \"s\")", "next := private + \"s\""),
			why:   "who connects in the instant before the mode is set is an administrator",
			red:   by(pkg, "TestSocketIsPrivate"),
		}, {
			name: "server-takes-the-next-ones-socket", file: pkg + "/listen.go",
			edits: one("!os.SameFile(is, l.inode)", "is == nil"),
			why:   "a server that was overtaken leaves its successor without a socket",
			red:   by(pkg, "TestSocketSucceeds"),
		}, {
			name: "server-broken-certificate-counts", file: pkg + "/listen.go",
			edits: one("pair, err := tls.LoadX509KeyPair(c.cert, c.key)\n", "pair, err := tls.LoadX509KeyPair(c.cert, c.key)\n\tc.pair = &pair\n"),
			why:   "a certificate that was renewed by half ends all connections",
			red:   by(pkg, "TestCertificate"),
		}, {
			name: "server-cuts-requests", file: pkg + "/listen.go",
			edits: one("time.AfterFunc(soon, cut)", "time.AfterFunc(soon-soon, cut)"),
			why:   "what is under way when a server ends is canceled, not answered",
			red:   by(pkg, "TestServeEnds"),
		}, {
			name: "server-streams-hold-the-end", file: pkg + "/listen.go",
			edits: one("time.AfterFunc(soon, cut)", "time.AfterFunc(soon+late, cut)"),
			why:   "one page that is open somewhere makes each restart take as long as it may",
			red:   by(pkg, "TestServeEnds"),
		}, {
			name: "server-orders-overtake", file: pkg + "/orders.go",
			edits: one("if err := o.Obey(ctx, &in[i]); err != nil {\n\t\t\treturn err", "if err := o.Obey(ctx, &in[i]); err != nil {\n\t\t\tcontinue"),
			why:   "a schedule that was paused and resumed is paused",
			red:   by(pkg, "TestOrdersAreTriedAgain"),
		}, {
			name: "server-orders-wait-for-a-bad-one", file: pkg + "/orders.go",
			edits: one("return code == stint.Unavailable || code == stint.Fenced", "return code != \"\""),
			why:   "one order that can never be done holds up all others, for ever",
			red:   by(pkg, "TestOrdersThatCannotBeDone"),
		}, {
			name: "server-fenced-goes-on", file: pkg + "/orders.go",
			edits: one("if stint.CodeOf(err) == stint.Fenced {", "if stint.CodeOf(err) == \"\" {"),
			why:   "two servers work on one store",
			red:   by(pkg, "TestOrdersEndWhenFenced"),
		}, {
			name: "server-watchdog-fed-blindly", file: pkg + "/systemd.go",
			edits: one("if err := alive(ctx); err == nil {", "if err := alive(ctx); err == nil || within > 0 {"),
			why:   "a server whose disk hangs is never started again",
			red:   by(pkg, "TestWatchdog"),
		}, {
			name: "server-journal-without-priority", file: pkg + "/journald.go",
			edits: one("h.lines.level, r.Time = r.Level, time.Time{}", "r.Time = time.Time{}"),
			why:   "errors cannot be told from the rest in the journal",
			red:   by(pkg, "TestJournalHandler"),
		},
	}
}

// serveMutants break the command that serves, and the service that it prints.
func serveMutants() []mutant {
	return []mutant{
		{
			name: "server-ends-well-without-its-store", file: "cmd/stint/serve.go",
			edits: one("!errors.Is(cause, context.Canceled) {", "errors.Is(cause, stint.Fenced) {"),
			why:   "a server whose disk failed is never started again",
			red:   by("cmd/stint", "TestUnasked"),
		}, {
			name: "server-killed-by-an-echo", file: "cmd/stint/serve.go",
			edits: one("case time.Since(first) < echo:", "case time.Since(first) < 0:"),
			why:   "Ctrl-C under make kills what was to drain",
			red:   by("cmd/stint", "TestEchoOfASignal"),
		}, {
			name: "server-unit-cuts-the-drain", file: "cmd/stint/unit.go",
			edits: one("(u.drain+30*time.Second+", "(30*time.Second+"),
			why:   "systemd kills an effect in the middle that the server still waits for",
			red:   by("cmd/stint", "TestPrintUnit"),
		}, {
			name: "server-unit-forgets-variables", file: "cmd/stint/unit.go",
			edits: one("cmd.InheritedFlags().Lookup(f.Name) != nil ||", "cmd.InheritedFlags().Lookup(f.Name) != nil || f.Name == \"host\" ||"),
			why:   "the service answers to no name that was given by the environment",
			red:   by("cmd/stint", "TestPrintUnit"),
		},
	}
}
