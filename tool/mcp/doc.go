// Package mcp makes tools of the servers that speak the Model Context Protocol, over
// their standard input and output or over streamable HTTP.
//
// [ReadConfig] reads .mcp.json and claude_desktop_config.json as they are. A [Server] is
// started when its tools are asked for, restarted with growing pauses when it dies, and
// ended with all of its processes. One process serves all sessions of this one: a server
// takes up to seconds to start and tens of megabytes to keep, and the protocol is made
// for many calls at once. The price is that a server that dies takes the open calls of
// all sessions with it, and that what it keeps in memory is not of one session.
//
// A call has an outcome only once the server answers it. A server that dies, is too slow
// or is canceled in a call leaves the outcome open, and a [stint.Once] step in doubt. The
// server is told of a cancel; since nobody could tell whether it heeds that, its process
// takes no call after it and is ended, at once if no other session's call is open, else
// with the last of these. The next call starts another.
//
// What a server says of its tools may change under an agent's feet, and is written for a
// model to obey: [Pin] keeps it, and a difference is an error until somebody accepts it.
// Its hints decide the class of effect only where [Spec.Trust] is set.
//
// A server's requests back are refused: stint gives it no model, no roots and no answers
// of people. Images and other data that is no text is named in a result and left out.
package mcp
