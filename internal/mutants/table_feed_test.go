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
		},
	}
}
