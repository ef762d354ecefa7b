// Package http makes tools of HTTP requests.
//
// The configuration fixes the host; arguments fill places in the path and the query, each
// escaped so that it stays in its place, and the rest is the JSON body. A request goes
// only to addresses of the public Internet, unless its host is allowed by name, and so
// does each redirect. It carries the idempotency key of its step as Idempotency-Key and
// the epoch as Stint-Fencing-Token.
//
// A whole response is the outcome: one of 400 and above makes an [tool.Output] with Error
// set, for the model to read. A request that did not reach a connection did nothing. A
// time-out, a reset and a response that breaks off leave the outcome open.
package http
