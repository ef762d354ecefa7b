package mutants_test

// agentMutants break what holds between stint and the programs that it starts.
func agentMutants() []mutant {
	return []mutant{
		{
			name: "exec-cached-step-runs-again", file: "agent/exec/drive.go",
			edits: one("return d.cached(ctx, c, res, err)", "res, err = d.effect(ctx, ctx, c, \"again\", at)\n\t_ = res\n\treturn err"),
			why:   "a program does what the journal has the result of",
			red:   by("agent/exec", "TestCachedReplay"),
		}, {
			name: "exec-conflict-not-seen", file: "internal/protocol/memory.go",
			edits: one("if other, ok := m.wrote[path]; ok && other != by {", "if other, ok := m.wrote[path]; ok && other == \"no writer\" {"),
			why:   "of two writers of one key the later one wins, and nobody is told",
			red:   by("agent/exec", "TestReplaceConflicts|TestWritersProperty"),
		}, {
			name: "exec-output-without-bound", file: "internal/child/log.go",
			edits: one("if s.full || int64(len(h.line)) > s.left {", "if false {"),
			why:   "a program that writes without end fills the store",
			red:   by("agent/exec", "TestMaxOutput"),
		}, {
			name: "exec-death-is-no-doubt", file: "agent/exec/effect.go",
			edits: one("return stint.Result{}, fmt.Errorf(\"while %s was under way: %w\", c.Step.Name, d.breakdown())", "return stint.Result{}, protocol.NotBegun{Err: d.breakdown()}"),
			why:   "an effect that a program died over is done again without anybody's word",
			red:   by("agent/exec", "TestWhatWasToldToProceedHasBegun"),
		}, {
			name: "exec-steps-overlap", file: "internal/protocol/book.go",
			edits: one("if b.open > 0 {\n\t\treturn errors", "if false {\n\t\treturn errors"),
			why:   "two steps change places from one attempt to the next",
			red:   by("agent/exec", "TestBreaches"),
		}, {
			name: "exec-epoch-not-told", file: "internal/child/env.go",
			edits: one("env[\"STINT_EPOCH\"] = strconv.FormatInt(epoch, 10)", "env[\"STINT_EPOCH\"] = strconv.FormatInt(epoch*0, 10)"),
			why:   "nothing outside can refuse a program whose runner was fenced",
			red:   by("agent/exec", "TestEnvironment"),
		}, {
			name: "cli-call-without-intent-is-no-doubt", file: "agent/cli/tools.go",
			edits: one("if !begun {", "if false {"),
			why:   "a CLI is told that a call did not take place, which nobody knows",
			red:   by("agent/cli", "TestCutBeforeIntent"),
		}, {
			name: "cli-death-is-an-outcome", file: "agent/cli/tools.go",
			edits: one("if c.lost {", "if false {"),
			why:   "a call that a CLI died over counts as done",
			red:   by("agent/cli", "TestCLIDies"),
		}, {
			name: "cli-begins-anew", file: "agent/cli/turn.go",
			edits: one("t.start(ctx, t.session, t.interrupted())", "t.start(ctx, \"\", t.interrupted())"),
			why:   "a CLI that was interrupted does not know what it did before",
			red:   by("agent/cli", "TestKilledInTool"),
		}, {
			name: "cli-groups-what-follows", file: "agent/cli/turn.go",
			edits: one("e.call.before != m.Calls[0].before", "e.call.before < m.Calls[0].before"),
			why:   "a call that needed the end of another one is recorded beside it",
			red:   by("agent/cli", "TestStreams"),
		}, {
			name: "cli-counts-twice", file: "agent/cli/turn.go",
			edits: one("if t.session == t.state.Resume {", "if false {"),
			why:   "each turn of a session costs what all before it cost",
			red:   by("agent/cli", "TestTurns"),
		}, {
			name: "proc-kills-the-group-only", file: "internal/proc/tree_unix.go", goos: "linux",
			edits: one("\tkillCgroup(t.cgroup)\n\tfor _, e := range t.members() {", "\tt.killGroup()\n\tif true {\n\t\treturn\n\t}\n\tfor _, e := range t.members() {"),
			why:   "what an agent started in a session of its own goes on after it was canceled",
			red:   by("internal/proc", "TestKillEndsTheWholeTree"),
		}, {
			name: "proc-terminates-the-program-only", file: "internal/proc/tree_unix.go", goos: "linux",
			edits: one("if t.mode == ModeGroup {\n\t\tt.signalGroup(sig)", "if true {\n\t\tt.signalGroup(sig)"),
			why:   "the programs below an agent are killed without a word",
			red:   by("internal/proc", "TestTerminateReachesEveryone"),
		}, {
			name: "proc-leaves-what-outlives-the-program", file: "internal/proc/tree_unix.go", goos: "linux",
			edits: one("if gone && t.empty() {", "if gone {\n\t\t\tt.mode = ModeGroup"),
			why:   "what an agent left in the background goes on after its loop",
			red:   by("internal/proc", "TestExitEndsTheWholeTree"),
		},
	}
}

// shellMutants break what is read from people and shown to them.
func shellMutants() []mutant {
	return []mutant{
		{
			name: "jsonx-name-twice", file: "internal/jsonx/check.go", quick: true,
			edits: one("if s.known(base, &large, name) {", "if s.known(base, &large, name) && false {"),
			why:   "two readers of one state see two values",
			red:   by("internal/jsonx", "TestCheckRefuses"),
		}, {
			name: "jsonx-null-is-kept", file: "internal/jsonx/merge.go",
			edits: one("if change != nil && change.null {", "if change != nil && change.null && false {"),
			why:   "what an agent deletes from its state stays",
			red:   by("internal/jsonx", "TestMerge"),
		}, {
			name: "term-escape-gets-through", file: "internal/term/term.go", quick: true,
			edits: one("case unicode.IsControl(r):", "case unicode.IsControl(r) && r != 0x1b:"),
			why:   "what an agent wrote drives the terminal of whoever looks at it",
			red:   by("internal/term", "TestEscape"),
		}, {
			name: "view-running-without-a-live-lease", file: "store.go",
			edits: one("case s == Pending && r.Live:", "case s == Pending && !r.Lease.Session.IsZero():"),
			why:   "a session says that it runs after its runner has died",
			red:   []tests{{"internal/view", "TestList"}, {"store/mem", "TestStore/Lease"}},
		}, {
			name: "view-now-line-gets-through", file: "internal/view/condition.go",
			edits: one("return term.Line(list(line, unread)), elapsed", "return list(line, unread), elapsed"),
			why:   "an agent's progress line drives the terminal of whoever lists the sessions",
			red:   by("internal/view", "TestHostile"),
		}, {
			name: "view-verify-does-not-compare-the-head", file: "internal/view/verify.go",
			edits: one("c.fold(&fold)\n", "_ = fold\n"),
			why:   "entries that were cut off at the end are not missed",
			red:   by("internal/view", "TestVerifyRow|TestVerifySound"),
		}, {
			name: "config-unknown-key", file: "internal/config/decode.go",
			edits: one("if i < 0 {\n", "if i < 0 {\n\t\t\tif i < 0 {\n\t\t\t\treturn\n\t\t\t}\n"),
			why:   "a limit whose name is misspelt does not hold",
			red:   by("internal/config", "TestBad"),
		}, {
			name: "config-secret-in-the-file", file: "internal/config/decode.go",
			edits: one("if d.src.secret.MatchString(n.text) {", "if false {"),
			why:   "a secret is pinned with the definition and lies in every journal",
			red:   by("internal/config", "TestSecretsAreKnown|TestBad"),
		}, {
			name: "config-key-twice", file: "internal/config/decode.go",
			edits: one("if line, twice := first[p.key.text]; twice {", "if line, twice := first[p.key.text]; twice && false {"),
			why:   "of two values of one key nobody knows which one holds",
			red:   by("internal/config", "TestBad"),
		},
	}
}
