// Package http makes an agent of a program behind a URL: each loop is one signed
// request or a few, and the answers are messages of the exec protocol, one JSON object a
// line. docs/http-protocol.md is the specification.
//
// The program keeps nothing between two requests. Where it names a step, its response
// ends; stint records what must be recorded and asks again, with the same loop and the
// answers of all steps so far. The last of them lets the program do its step, or is the
// result that the journal has.
//
// A request carries the signature of Standard Webhooks, an idempotency key and the epoch
// of the lease. It goes to the one host of the URL, over verified TLS, and to private
// networks only where the configuration says so. What comes back is bounded in bytes and
// in time, and never held whole.
package http
