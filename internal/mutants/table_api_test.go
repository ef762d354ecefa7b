package mutants_test

// apiMutants break what the HTTP API promises to who calls it.
func apiMutants() []mutant {
	const pkg = "internal/api"
	return []mutant{
		{
			name: "orders-to-the-server-as-messages", file: "internal/control/desk.go",
			edits: one("if row.Session.Trigger.OfServer() {", "if false {"),
			why:   "whoever may send to sessions makes themselves an administrator",
			red:   by("internal/control", "TestTheServersJournalTakesNoOrders"), quick: true,
		}, {
			name: "api-key-of-everybody", file: pkg + "/start.go",
			edits: one(`sha256.Sum256([]byte(string(actor(ctx)) + "\x00" + k.Key))`, `sha256.Sum256([]byte(k.Key))`),
			why:   "one caller's key is answered with another caller's session",
			red:   by(pkg, "TestStartIsIdempotent"),
		}, {
			name: "api-key-without-body", file: pkg + "/start.go",
			edits: one("if keys[0].Digest != sum {", "if false {"),
			why:   "another request with a used key is taken for the first one, and nothing is begun for it",
			red:   by(pkg, "TestStartIsIdempotent"),
		}, {
			name: "api-key-not-kept", file: pkg + "/start.go",
			edits: one("r.Keys = []stint.Key{requestKey(id, sum, time.Now())}", "r.Keys = nil"),
			why:   "a request that is repeated begins a second session",
			red:   by(pkg, "TestStartIsIdempotent|TestStartAtOnce"),
		}, {
			name: "api-two-are-not-rejected", file: pkg + "/message.go",
			edits: one("if b.Busy == reject { // of two", "if false { // of two"),
			why:   "two who found a session idle both get it, though each wanted it alone",
			red:   by(pkg, "TestRejectAtOnce"),
		}, {
			name: "api-members-twice", file: pkg + "/route.go",
			edits: []edit{{"if err := jsonx.Check(b, jsonx.Limits{}); err != nil {\n\t\t\treturn err\n\t\t}", "_ = jsonx.Limits{}"}, {"return jsonx.Decode(b, v)", "return json.Unmarshal(b, v)"}},
			why:   "of two members of one name a proxy reads one and the server the other",
			red:   by(pkg, "TestBadBodies"),
		}, {
			name: "api-parameter-twice", file: pkg + "/route.go",
			edits: one("if len(values) > 1 && !slices.Contains(many, name) {", "if false && !slices.Contains(many, name) {"),
			why:   "of two parameters of one name a proxy reads one and the server the other",
			red:   by(pkg, "TestBadQueries"),
		}, {
			name: "api-order-about-a-place", file: pkg + "/sessions.go",
			edits: one("(place.Line >= 0 || place.Loop >= 0)", "place.Line >= 1<<20 && place.Loop >= 1<<20"),
			why:   "an order that names an old line ends the session as it is now",
			red:   by(pkg, "TestBadNames"),
		}, {
			name: "api-health-writes-as-often", file: pkg + "/health.go",
			edits: one("now.Sub(p.at) >= fresh {", "now.Sub(p.at) >= 0 {"),
			why:   "whoever has no token makes the store write as often as they ask",
			red:   by(pkg, "TestHealth"),
		}, {
			name: "api-health-tells-paths", file: pkg + "/health.go",
			edits: one(`e := stint.Unavailable.Errorf("health", "%s", what)`, `e := stint.Unavailable.Errorf("health", "%s: %v", what, err)`),
			why:   "whoever has no token reads paths and causes",
			red:   by(pkg, "TestHealth"),
		}, {
			name: "api-occurrences-of-one-time", file: pkg + "/schedules.go",
			edits: one("for n > 0 && n < len(items) && items[n].To", "for n > len(items) && items[n].To"),
			why:   "lines of one time are lost between two pages",
			red:   by(pkg, "TestOccurrencePages"),
		}, {
			name: "sqlite-label-forgotten", file: "store/sqlite/batch.go",
			edits: one("if err := w.label(s); err != nil {", "if err := error(nil); err != nil {"),
			why:   "a session is not found by its labels",
			red:   by("store/sqlite", "TestContract/Sessions"),
		}, {
			name: "sqlite-list-by-any-label", file: "store/sqlite/list.go",
			edits: one("w.labelled(f.Labels, labels[1:])", "w.labelled(f.Labels, nil)"),
			why:   "a list by two labels has sessions with one of them",
			red:   by("store/sqlite", "TestContract/Sessions"),
		},
	}
}
