// Package sqlite keeps sessions in one SQLite file, which any number of processes
// on one machine may have open at once.
//
// # Writing
//
// All changes of a process go through one goroutine, the committer: it takes what
// is queued, puts it into one transaction, and makes it durable with one fsync
// (group commit). An operation is checked before anything of it is written, so
// that one that is refused leaves nothing behind and its neighbours unharmed. The
// file is in WAL mode with synchronous=FULL: what was acknowledged survives a
// power cut on a disk that honours fsync.
//
// The WAL is copied back by another goroutine, beside the commits.
//
// Processes share the file by SQLite's locks, and give way to each other after a
// commit. A lease lives while it has not expired and its holder's process lives,
// which a locked file beside the database shows ([Store.Hold]): the sessions of a
// process that was killed can be claimed at once.
//
// # Files
//
// PATH is the database, PATH-wal and PATH-shm belong to it; PATH.d holds locks
// that mean nothing when no process runs; PATH.keys holds the keys of families.
package sqlite
