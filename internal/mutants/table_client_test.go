package mutants_test

// clientMutants break what a server is to programs elsewhere.
func clientMutants() []mutant {
	return []mutant{
		{
			name: "wire-raw-json", file: "internal/wire/wire.go",
			edits: []edit{{"import (\n", "import (\n\t\"encoding/json\"\n"}, {"Note    []byte     `json:\"note,omitempty\"`", "Note    json.RawMessage `json:\"note,omitempty\"`"}},
			why:   "encoding/json writes what a ledger noted anew, and its digest is another",
			red:   by("internal/wire", "TestNothingIsLost"),
		}, {
			name: "api-sender-as-it-says", file: "internal/api/store.go",
			edits: one("	m.From = actor(ctx)\n	if err := tooLong(len(m.Body)); err != nil {", "	if err := tooLong(len(m.Body)); err != nil {"),
			why:   "whoever may send a message signs it with another's name",
			red:   by("internal/api", "TestSendNeedsTheScopeOfItsMessage"), quick: true,
		}, {
			name: "api-orders-for-operators", file: "internal/api/store.go",
			edits: one("return needs(ctx, \"an order to the server itself\", access.Admin)", "return needs(ctx, \"an order to the server itself\", access.TriggersFire)"),
			why:   "an operator makes an administrator's token",
			red:   by("internal/api", "TestSendNeedsTheScopeOfItsMessage"),
		}, {
			name: "api-own-journal-for-viewers", file: "internal/api/store.go",
			edits: one("return !id.IsZero() && id == system, err", "return id.IsZero() && id == system, err"),
			why:   "who may look at sessions reads what each person did, and sends the server orders as a session",
			red:   by("internal/api", "TestOwnJournalIsForAuditors"),
		}, {
			name: "client-starts-twice", file: "client/verbs.go",
			edits: one("again: key != \"\"})", "again: true})"),
			why:   "a start whose answer was lost begins a second session",
			red:   by("client", "TestOnce"),
		}, {
			name: "client-token-in-the-clear", file: "client/client.go",
			edits: one("c.token != \"\" && o.Socket == \"\" && !isLoopback(u.Hostname())", "c.token != \"\" && o.Socket == \"\" && u.Hostname() == \"\""),
			why:   "a token crosses the network where everybody on the way reads it",
			red:   by("client", "TestNew"),
		}, {
			name: "client-last-page-first", file: "client/store.go",
			edits: one("all = append(es, all...)", "all = append(all, es...)"),
			why:   "the newest entries of a long journal come before those that they follow",
			red:   by("client", "TestPages"),
		}, {
			name: "client-events-from-the-beginning", file: "client/events.go",
			edits: one("req.Header.Set(\"Last-Event-ID\", s.place)", "req.Header.Set(\"Last-Event-ID\", s.w.After)"),
			why:   "after each lost connection all events come again",
			red:   by("client", "TestEventsGoOn"),
		},
	}
}
