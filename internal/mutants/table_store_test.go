package mutants_test

// storeMutants break what fences, orders and remembers in the stores.
func storeMutants() []mutant {
	return []mutant{
		{
			name: "sqlite-epoch-not-in-append", file: "store/sqlite/write.go",
			edits: []edit{{"WHERE sid = ? AND held = ? AND head = ?`", "WHERE sid = ? AND ? > 0 AND head = ?`"}, {"AND held = ?13 AND", "AND ?13 > 0 AND"}},
			why:   "a runner that was overtaken goes on writing beside its successor",
			red:   by("store/sqlite", "TestContract/Append|Race"),
		}, {
			name: "sqlite-head-not-in-append", file: "store/sqlite/write.go",
			edits: []edit{{"held = ? AND head = ?`", "held = ? AND ? >= 0`"}, {"held = ?13 AND head = ?14`", "held = ?13 AND ?14 >= 0`"}},
			why:   "an entry is put where another stands, or after a gap, and the chain breaks",
			red:   by("store/sqlite", "TestContract/Append"),
		}, {
			name: "sqlite-epoch-not-raised", file: "store/sqlite/claim.go",
			edits: []edit{{"held = ?1 WHERE sid = ?2\", f.epoch+1, f.sid)", "held = ?1 WHERE sid = ?2\", max(f.epoch, 1), f.sid)"}, {"&o.claim, f.epoch+1, now", "&o.claim, max(f.epoch, 1), now"}},
			why:   "the successor has the epoch of the one before, and nothing tells the two apart",
			red:   by("store/sqlite", "TestContract/Lease|Append"),
		}, {
			name: "sqlite-lease-of-the-dead-lives", file: "store/sqlite/holder.go",
			edits: one("_ = l.Unlock()\n\t\treturn false\n\t}\n\treturn !errors", "_ = l.Unlock()\n\t\treturn true\n\t}\n\treturn !errors"),
			why:   "after kill -9 a session says that it runs until its lease has run out, and nobody takes it up",
			red:   by("store/sqlite", "TestKilled|TestChangedByOther"),
		}, {
			name: "sqlite-expired-lease-is-shown-live", file: "store/sqlite/read.go",
			edits: one("row.Live = alive && now < st.ColumnInt64(22)", "row.Live = alive"),
			why:   "a runner that was stopped keeps its sessions for ever",
			red:   by("store/sqlite", "TestContract/Lease"),
		}, {
			name: "sqlite-expired-lease-is-not-taken", file: "store/sqlite/claim.go",
			edits: one("WHERE l.expires <= ?2 AND l.holder = ?1", "WHERE l.expires <= ?2 AND l.expires < 0 AND l.holder = ?1"),
			why:   "the sessions of a runner that was stopped are begun again by nobody",
			red:   by("store/sqlite", "TestContract/Lease|Claim"),
		}, {
			name: "sqlite-live-lease-is-taken", file: "store/sqlite/claim.go",
			edits: one("WHERE l.expires <= ?2 AND l.holder = ?1", "WHERE l.expires >= 0 AND l.holder = ?1"),
			why:   "two runners drive one session while both are well",
			red:   by("store/sqlite", "TestContract/Lease|Claim"),
		}, {
			name: "sqlite-released-lease-still-writes", file: "store/sqlite/write.go",
			edits: one("\"UPDATE heads SET held = 0, past = epoch WHERE sid = ?\"", "\"UPDATE heads SET held = held, past = epoch WHERE sid = ?\""),
			why:   "a session that was given back is nobody's to claim, or still its last holder's to write",
			red:   by("store/sqlite", "TestContract/Lease|Append"),
		}, {
			name: "sqlite-message-taken-twice", file: "store/sqlite/batch.go",
			edits: one("WHERE sid = +? AND msg = +? AND taken IS NULL", "WHERE sid = ? AND msg = ?"),
			why:   "two attempts act on one message",
			red:   by("store/sqlite", "TestContract/Send"),
		}, {
			name: "sqlite-prepared-at-each-run", file: "store/sqlite/ledger.go",
			edits: one("WHERE k.scope = +? AND k.name = +?", "WHERE k.scope = ? AND k.name = ?"),
			why:   "a statement is prepared anew for each delivery, which takes longer than to run it",
			red:   by("store/sqlite", "TestPreparedOnce"),
		}, {
			name: "sqlite-newer-schema-is-written", file: "store/sqlite/schema.go",
			edits: one("case version > schemaVersion():", "case version < 0:"),
			why:   "an older program writes into a store that it does not know",
			red:   by("store/sqlite", "TestOpenRefuses"),
		}, {
			name: "mem-epoch-not-in-append", file: "store/mem/mem.go",
			edits: one("return !r.lease.Session.IsZero() && r.lease.Epoch == l.Epoch", "return !r.lease.Session.IsZero()"),
			why:   "what the engine is tested on would let a fenced runner write",
			red:   by("store/mem", "TestStore/Append|Lease|Race"),
		}, {
			name: "mem-head-not-in-append", file: "store/mem/mem.go",
			edits: one("e.Seq != want || e.Session != id {", "want < 0 || e.Session != id {"),
			why:   "what the engine is tested on would let a journal have gaps",
			red:   by("store/mem", "TestStore/Append"),
		}, {
			name: "mem-expiry-not-looked-at", file: "store/mem/mem.go",
			edits: one("at.Before(r.lease.Expires) && s.holders[r.lease.Holder]", "s.holders[r.lease.Holder]"),
			why:   "a stopped runner keeps its sessions for ever",
			red:   by("store/mem", "TestStore/Lease"),
		}, {
			name: "mem-lock-not-looked-at", file: "store/mem/mem.go",
			edits: one("at.Before(r.lease.Expires) && s.holders[r.lease.Holder]", "at.Before(r.lease.Expires)"),
			why:   "the lease of a dead runner lives until it has run out",
			red:   by("store/mem", "TestStore/Lease"),
		},
	}
}

// durableMutants break what a store promises about the disk and about commits.
func durableMutants() []mutant {
	return []mutant{
		{
			name: "sqlite-synchronous-normal", file: "store/sqlite/open.go",
			edits: one("range []string{\"synchronous = FULL\"", "range []string{\"synchronous = NORMAL\""),
			why:   "what was acknowledged is in no file yet",
			red:   []tests{{"store/sqlite", "TestCommitsAreSynced"}, {"store/sqlite", "TestKilled"}},
		}, {
			name: "sqlite-rolled-back-frames-stay", file: "store/sqlite/vfs.go",
			edits: one("\t\tat[walFile](m.wal).len = 0\n\t}\n\treturn call[lockFunc]", "\t}\n\treturn call[lockFunc]"),
			why:   "what was rolled back is written over what another process committed",
			red:   by("store/sqlite", "TestLayer"),
		}, {
			name: "sqlite-wal-not-synced", file: "store/sqlite/vfs.go",
			edits: one("return call[flagFunc](below(file).FxSync)(tls, under(file), flags)", "return lib.SQLITE_OK"),
			why:   "what was acknowledged is gone after a power cut, and after nothing less",
			red:   by("store/sqlite", "TestCommitsAreSynced"),
		}, {
			name: "sqlite-acknowledged-before-commit", file: "store/sqlite/queue.go",
			edits: one("faultpoint.Hit(faultpoint.BeforeCommit)\n", `for _, o := range group {
			if o.err == nil && o.kind == opAppend {
				o.done(nil)
				o.done = func(error) {}
			}
		}
		faultpoint.Hit(faultpoint.BeforeCommit)
`),
			why: "somebody was told of an entry that a crash, or a full disk, then takes back",
			red: []tests{{"store/sqlite", "TestCommitsAreSynced"}, {"store/sqlite", "TestFull"}},
		}, {
			name: "sqlite-deferred-transactions", file: "store/sqlite/write.go",
			edits: one("{&w.begin, \"BEGIN IMMEDIATE\"}", "{&w.begin, \"BEGIN\"}"),
			why:   "two processes that write at once fail each other in the middle of a transaction",
			red:   by("store/sqlite", "TestKilled|TestFair"),
		}, {
			name: "sqlite-key-not-with-the-batch", file: "store/sqlite/batch.go",
			edits: one("if err := w.addKey(&b.Keys[i]); err != nil {", "if err := error(nil); err != nil && i > 0 {"),
			why:   "a schedule's slot is begun twice",
			red:   by("store/sqlite", "TestContract/Create|Append"),
		}, {
			name: "sqlite-key-before-the-refusal", file: "store/sqlite/batch.go",
			edits: one("return taken(\"append\", id, &old)\n\t\t}\n", "return taken(\"append\", id, &old)\n\t\t}\n\t\tif err := w.addKey(&b.Keys[i]); err != nil {\n\t\t\treturn err\n\t\t}\n"),
			why:   "a batch that was refused keeps its key, and can never be written",
			red:   by("store/sqlite", "TestContract/Append"),
		}, {
			name: "sqlite-key-in-a-transaction-of-its-own", file: "store/sqlite/batch.go",
			edits: one("if err := w.addKey(&b.Keys[i]); err != nil {\n\t\t\treturn err\n\t\t}\n", `if err := w.addKey(&b.Keys[i]); err != nil {
			return err
		}
		if err := exec(w.c, "COMMIT"); err != nil {
			return err
		}
		if err := exec(w.c, "BEGIN IMMEDIATE"); err != nil {
			return err
		}
`),
			why: "a crash between the two leaves a key that leads to nothing",
			red: by("store/sqlite", "TestARefusedCommitLeavesNothing"),
		}, {
			name: "sqlite-rollback-keeps-the-cache", file: "store/sqlite/queue.go",
			edits: one("delete(s.w.held, o.session())\n\t\to.leases", "o.leases"),
			why:   "after a full disk the store writes on from what was rolled back",
			red:   by("store/sqlite", "TestARefusedCommitLeavesNothing"),
		}, {
			name: "sqlite-goes-on-after-a-failed-sync", file: "store/sqlite/queue.go",
			edits: one("s.dead.Store(dead)", "_ = dead"),
			why:   "the system drops what it could not keep, and the next sync reports success",
			red:   by("store/sqlite", "TestUndo"),
		},
	}
}
