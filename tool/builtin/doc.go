// Package builtin is the tools that stint brings itself: files below one folder, a pause,
// a question to a person, sessions that this one spawns, and the end of the session with
// a result.
//
// All but the first do nothing outside: their outputs say what the agent is to do, to wait
// or to end.
package builtin
