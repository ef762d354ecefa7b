// Package replay does the loops of a session again, offline: the agent's code runs, and
// every step that it asks for is answered from the journal. No step's function is called,
// so nothing is done outside, and nothing is written. It ends at the first difference: a
// step that is another one than on record, or a loop that comes to another end.
//
// Only what a completed loop saw is done again: the last entry into it, with what the
// entries before had left. Attempts that failed are not.
package replay
