// Package cases holds tests only: faults that users of agent frameworks have
// reported in public, replayed against stint. A case is run with an agent in Go,
// and with a program that speaks the exec protocol, through the engine on every
// store there is. Those of language models run the real stint, with a strict service in
// each wire format that answers 400 to whatever the strictest provider would refuse. Those
// of schedules run servers that come and go, in bubbles in which years pass. Those of
// webhooks, of lists, of streams and of what is killed ask the real stint serve over HTTP.
//
// Each test names the projects whose users met the fault, so that a reader can look
// up what it cost them. The inputs are our own.
package cases
