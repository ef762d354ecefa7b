package sqlite

import (
	"errors"
	"fmt"

	"zombiezen.com/go/sqlite"

	"github.com/stint-dev/stint"
)

// refuse makes an error with a remedy.
func refuse(code stint.Code, op string, id stint.ID, hint, format string, args ...any) *stint.Error {
	return &stint.Error{Code: code, Op: op, Session: id, Hint: hint, Err: fmt.Errorf(format, args...)}
}

func notFound(op string, id stint.ID) *stint.Error {
	return refuse(stint.NotFound, op, id, "`stint ps -a` lists the sessions", "there is no such session")
}

func closed(op string) *stint.Error {
	return refuse(stint.Unavailable, op, stint.ID{}, "nothing was written; open the store and try again", "the store is closed")
}

// explain turns an error of SQLite into one that says what to do.
func explain(op string, err error) error {
	var known *stint.Error
	if err == nil || errors.As(err, &known) {
		return err
	}
	e := &stint.Error{Code: stint.Internal, Op: op, Err: err}
	code := sqlite.ErrCode(err)
	switch code.ToPrimary() {
	case sqlite.ResultFull:
		e.Code, e.Hint = stint.Unavailable, "the disk is full: free some space; nothing of this was written, and what was stored before is whole"
	case sqlite.ResultIOErr:
		e.Code, e.Hint = stint.Unavailable, "look at the kernel's log for errors of the disk, and at its free space"
	case sqlite.ResultBusy, sqlite.ResultLocked, sqlite.ResultProtocol:
		e.Code, e.Hint = stint.Unavailable, "another process is writing to this store for long; try again, and see who has it open"
	case sqlite.ResultCorrupt, sqlite.ResultNotADB, sqlite.ResultFormat:
		e.Code, e.Hint = stint.Corrupt, salvageHint
	case sqlite.ResultCantOpen, sqlite.ResultPerm, sqlite.ResultAuth, sqlite.ResultReadOnly:
		e.Code, e.Hint = stint.Unavailable, "check that the file and its folder exist and belong to this user, and that their file system is writable"
	case sqlite.ResultInterrupt:
		e.Code, e.Hint = stint.Unavailable, "it took too long and was ended: ask for less"
	case sqlite.ResultNoMem:
		e.Code, e.Hint = stint.Unavailable, "there is too little memory"
	case sqlite.ResultTooBig:
		e.Code = stint.Limit
	}
	return e
}

const salvageHint = "keep a copy of the file with its -wal; `stint db salvage` brings what can still be read into a new store"

// fatal reports whether the connection cannot be trusted with the next operation
// of a group after err, so that the whole group fails.
func fatal(err error) bool {
	switch sqlite.ErrCode(err).ToPrimary() {
	case sqlite.ResultFull, sqlite.ResultIOErr, sqlite.ResultCorrupt, sqlite.ResultNotADB, sqlite.ResultNoMem,
		sqlite.ResultBusy, sqlite.ResultReadOnly, sqlite.ResultCantOpen, sqlite.ResultProtocol:
		return true
	}
	return false
}

// unsynced reports whether err says that the disk did not take what it was told to
// keep. After that the system may have dropped the pages and report success next
// time, so nothing written through this process can be relied on.
func unsynced(err error) bool {
	code := sqlite.ErrCode(err)
	return code == sqlite.ResultIOErrFsync || code == sqlite.ResultIOErrDirFsync
}
