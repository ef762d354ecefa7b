package mutants_test

// feedMutants break what those who follow a store rely on.
func feedMutants() []mutant {
	return []mutant{
		{
			name: "sqlite-feed-place-is-only-a-number", file: "store/sqlite/feed.go",
			edits: one("if here != want {", "if here.Pos != want.Pos {"),
			why:   "after a backup was put back, who follows goes on in the middle of another course and never learns of what he missed",
			red:   by("store/sqlite", "TestFeedOfAFilePutBack|TestFeedOfADeletedSession"),
		}, {
			name: "sqlite-backup-is-not-apart", file: "store/sqlite/backup.go",
			edits: one("SET value = randomblob(8) WHERE name = 'feed.id'", "SET value = value WHERE name = 'feed.id'"),
			why:   "a cursor of the store is taken for one of its copy, though the two went different ways",
			red:   by("store/sqlite", "TestFeedOfABackup"),
		}, {
			name: "mem-feed-has-one-entry-a-commit", file: "store/mem/mem.go",
			edits: one("	s.feed.add(r, b.Entries)\n", "	s.feed.add(r, b.Entries[:min(1, len(b.Entries))])\n"),
			why:   "the second entry of a commit never comes",
			red:   by("store/mem", "TestStore/Feed"),
		}, {
			name: "stream-place-without-its-hash", file: "internal/stream/session.go",
			edits: one("s.asked.check == \"\" || s.asked == s.at, nil", "s.asked.check == \"\" || s.asked.seq == s.at.seq, nil"),
			why:   "after a backup was put in place a client goes on in another journal without a word",
			red:   by("internal/stream", "TestSessionResyncs"),
		}, {
			name: "stream-entries-twice", file: "internal/stream/session.go",
			edits: one("if it.at.seq <= s.at.seq {", "if it.at.seq < s.at.seq {"),
			why:   "what was read from the store comes once more from memory",
			red:   by("internal/stream", "TestDisconnects|TestSessionResumes|TestSession"),
		}, {
			name: "stream-overtaken-goes-on", file: "internal/stream/client.go",
			edits: one("	h.judge(c)\n	c.live = c.why != slow || c.deaf", "	c.live, c.why = true, \"\""),
			why:   "what came while a client caught up is missing, and nothing says so",
			red:   by("internal/stream", "TestOvertaken"),
		}, {
			name: "stream-slow-is-kept", file: "internal/stream/client.go",
			edits: one("!c.deaf && time.Since(c.since) < grace", "!c.deaf && time.Since(c.since) < 1000*grace"),
			why:   "a client that reads nothing has the store read for it again and again",
			red:   by("internal/stream", "TestSlow"),
		}, {
			name: "stream-write-without-a-limit", file: "internal/stream/wire.go",
			edits: one("late := time.AfterFunc(o.limit,", "late := time.AfterFunc(1000*o.limit,"),
			why:   "a client that has stopped to read keeps its connection for ever",
			red:   by("internal/stream", "TestStuck|TestDeadConnections"),
		}, {
			name: "stream-board-skips-behind-the-ring", file: "internal/stream/hub.go",
			edits: one("if after < h.base {", "if after < h.base && len(h.ring) == 0 {"),
			why:   "who comes back late to the board keeps rows that are long out of date",
			red:   by("internal/stream", "TestBoardCatchesUp"),
		},
	}
}
