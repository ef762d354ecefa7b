// Package health tells an agent that gets nowhere from one that works: it looks at the
// tool calls of a session, one after the other, and says when they repeat themselves. It
// is pure: no I/O, no clock, no randomness.
//
//	N01  the same call with the same result, one after the other
//	N02  the same tool fails with the same error, one after the other, whatever the arguments
//	N03  two to four calls with their results go round in a circle
//	N04  one call with one result comes up again and again among others
//
// # What is the same
//
// Arguments are the same when they are the same JSON, whatever the order of members and
// the white space, and otherwise when they are the same text. Nothing else is taken out of
// them: whoever closes twenty tickets by their UUIDs makes twenty calls.
//
// Of results, what changes by itself is taken out first: ANSI codes, dates and times,
// durations, UUIDs, addresses in memory, long hexadecimal ids, names below folders for
// temporary files, and numbers that say that they are a pid, a goroutine or a port. Other
// numbers stay: "41 of 90 done" and "42 of 90 done" are two results, and whoever watches
// them waits for something. Of a result of more than 16 KiB only the two ends are treated
// so, and what lies between is compared as it is.
//
// Errors are compared for N02 as results are, without any digits: "line 12: no such
// column" and "line 14: no such column" are one error. An error without text is no error
// that could be the same as another.
//
// # Who waits may repeat himself
//
// A call is paced when it comes 30 seconds or more after the one before it, or when its
// tool is marked as one to poll with. A paced call breaks what N01, N03 and N04 count;
// repetitions with a paced call among them count for the figures of [Rules.Paced]. N02
// makes the same allowance, only for a call that has the same arguments as well.
package health
