package mutants_test

// triggerMutants break what makes a delivery one session, however often it comes.
func triggerMutants() []mutant {
	const pkg = "internal/trigger"
	return []mutant{
		{
			name: "delivery-leaves-no-line", file: "internal/trigger/deliver.go", quick: true,
			edits: one("r.Trigger, r.Keys = a.Input, a.actor(), stint.Trigger{Kind: \"hook\", Ref: o.Hook}, a.keys(o)", "r.Trigger, r.Keys = a.Input, a.actor(), stint.Trigger{Kind: \"hook\", Ref: o.Hook}, nil"),
			why:   "a delivery that is sent again begins a second session",
			red:   by(pkg, "TestRepeats|TestStorm"),
		}, {
			name: "delivery-message-leaves-no-line", file: "internal/trigger/deliver.go",
			edits: one("Body: a.Input, Keys: a.keys(o)}", "Body: a.Input}"),
			why:   "a message that is sent again is read twice",
			red:   by(pkg, "TestLate|TestKilled"),
		}, {
			name: "delivery-under-another-id", file: "internal/trigger/deliver.go",
			edits: one("if len(keys) == 0 && !a.Covered {", "if len(keys) == 0 && a.Covered {"),
			why:   "a captured request of GitHub is taken again under another delivery id",
			red:   by(pkg, "TestRepeats"),
		}, {
			name: "delivery-of-another-body", file: "internal/trigger/deliver.go",
			edits: one("if len(keys) > 0 && keys[0].Digest != a.Digest {", "if len(keys) > 1 && keys[0].Digest != a.Digest {"),
			why:   "a sender that gives two events one id is told that the second was taken",
			red:   by(pkg, "TestRepeats"),
		}, {
			name: "delivery-route-follows-the-clock", file: "internal/trigger/deliver.go",
			edits: one("if now.After(r.at) {", "if !now.IsZero() {"),
			why:   "after the clock was set back a key has no next session until the clock has caught up",
			red:   by(pkg, "TestRouteOutlivesTheClock"),
		}, {
			name: "delivery-hangs-up", file: "internal/trigger/receiver.go",
			edits: one("context.WithTimeout(context.WithoutCancel(req.Context()), writeTime)", "context.WithTimeout(req.Context(), writeTime)"),
			why:   "a sender that gives up too early leaves a delivery half done",
			red:   by(pkg, "TestHangUp"),
		}, {
			name: "delivery-room-not-reserved", file: "internal/trigger/room.go",
			edits: one("\tr.coming++\n", ""),
			why:   "deliveries that come at once begin more sessions than there may be",
			red:   by(pkg, "TestConcurrency"),
		}, {
			name: "delivery-again-is-the-first", file: "internal/trigger/redeliver.go",
			edits: one("a.repeats+\"~\"+cmp.Or(as, ident.New().String()), true", "cmp.Or(a.repeats, as, ident.New().String()), true"),
			why:   "what is delivered again is taken for a repeat, and begins nothing",
			red:   by(pkg, "TestRedeliver"),
		}, {
			name: "delivery-order-is-not-told", file: "internal/trigger/deliver.go",
			edits: one("Key: a.Key, Order: a.Order, ", "Key: a.Key, "),
			why:   "who sees an older event behind a newer one cannot tell which is which",
			red:   by(pkg, "TestLate"),
		}, {
			name: "delivery-keeps-a-token", file: "internal/hook/kept.go",
			edits: one("\"signature\", \"token\", ", "\"signature\", "),
			why:   "whoever may look at deliveries learns the secret of their sender",
			red:   by(pkg, "TestSecretsAreNotKept"),
		},
	}
}
