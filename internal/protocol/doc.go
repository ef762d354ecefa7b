// Package protocol is what agents that are programs and agents behind a URL have in
// common: the messages of docs/exec-protocol.md, which of them may follow which, what
// they make of the state, and how their output gets into the log. It moves no bytes.
package protocol
