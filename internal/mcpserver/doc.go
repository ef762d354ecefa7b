// Package mcpserver is stint as a server of the Model Context Protocol, so that another
// agent can start sessions, watch them, and send them messages.
//
// It gets what it needs as small interfaces ([Backend]): behind them may be a store of
// this machine, or a client of a server elsewhere. Reads go through package view, so the
// structured content of an answer is the JSON that docs/cli-json.md describes; messages
// go through the inbox. There is no tool that decides an approval, settles a doubt, raises
// a limit or restarts a session: those are a person's, and an agent that could call them
// would approve itself.
//
// What sessions wrote is data. In answers every character that a terminal could act on
// is replaced by a visible escape, long texts and lists are cut, and what was cut is
// marked in place and listed in the member "cut".
package mcpserver
