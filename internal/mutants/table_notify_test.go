package mutants_test

// notifyMutants break what endpoints rely on.
func notifyMutants() []mutant {
	const pkg = "internal/notify"
	return []mutant{
		{
			name: "notify-forgets-what-was-not-taken", file: "internal/notify/sender.go", quick: true,
			edits: one("s.held.Pending = append(others(s.held.Pending, &p), p)", "s.held.Pending = others(s.held.Pending, &p)"),
			why:   "an endpoint that is away for a moment never hears of what happened then",
			red:   by(pkg, "TestRetries|TestCrash"),
		}, {
			name: "notify-another-id", file: "internal/notify/sender.go",
			edits: one("what.notification(of, &p, at)\n\tif err != nil {\n\t\treturn err\n\t}", "what.notification(of, &p, at)\n\tif err != nil {\n\t\treturn err\n\t}\n\tn.ID = fmt.Sprint(n.ID, \"_\", p.Attempts)"),
			why:   "whoever remembers ids does again what it did before",
			red:   by(pkg, "TestEvents|TestRetries"),
		}, {
			name: "notify-goes-anywhere", file: "internal/notify/webhook.go",
			edits: one("err == nil && w.AllowPrivate {", "err == nil {"),
			why:   "whoever may name an endpoint reaches what only this machine can",
			red:   by(pkg, "TestPrivate"),
		}, {
			name: "notify-follows-redirects", file: "internal/notify/webhook.go",
			edits: one(", CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}", "}"),
			why:   "what was signed for one endpoint goes to another",
			red:   by(pkg, "TestPrivate"),
		}, {
			name: "notify-tells-an-end-twice", file: "internal/notify/sender.go",
			edits: one("if err != nil || len(before) > 0 {", "if err != nil || len(before) > 1 {"),
			why:   "a session that is restarted is reported as done a second time",
			red:   by(pkg, "TestEvents"),
		}, {
			name: "notify-keeps-everything", file: "internal/notify/sender.go",
			edits: one("len(s.held.Pending) < maxPending && ", ""),
			why:   "an endpoint that is away fills the system journal with what it has not taken",
			red:   by(pkg, "TestPaused"),
		}, {
			name: "notify-gives-up-on-the-absent", file: "internal/notify/sender.go",
			edits: one("return p.Attempts >= maxAttempts && (", "return p.Attempts >= maxAttempts || p.Attempts >= maxAttempts && ("),
			why:   "an endpoint that is away for two days loses what happened on the first",
			red:   by(pkg, "TestPaused"),
		}, {
			name: "reminder-of-an-answered-order", file: "internal/notify/remind.go",
			edits: one("&& d.Approval == p.Seq", "&& d.Approval == p.Seq+1"),
			why:   "somebody is told again of an order that was decided, since its session is busy",
			red:   by("internal/notify", "TestReminderOfADecidedOrder"),
		}, {
			name: "reminders-of-orders-never-looked-for", file: "internal/notify/remind.go",
			edits: one("e.Kind != stint.LineStarted && !order", "e.Kind != stint.LineStarted && (!order || true)"),
			why:   "an order is forgotten where nothing else is due",
			red:   by("internal/notify", "TestReminderOfADecidedOrder"),
		}, {
			name: "reminder-of-an-order-for-a-wait", file: "internal/notify/remind.go",
			edits: one("&& p.order() == all[i].order()", ""),
			why:   "a reminder of a wait is dropped for one of an order, or the other way round",
			red:   by("internal/notify", "TestRemindersThatAreLate"),
		},
	}
}
