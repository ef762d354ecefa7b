// Package hook is the pure middle of webhooks: what a delivery is, whether it is genuine,
// and what it asks for. A server hands over headers, raw body, secrets and the time; it
// gets a verdict and does what that says. There is no I/O here and no clock, so every rule
// is a table in a test.
//
//   - [Compile] checks a [Definition], which is what stint.yaml says of a hook.
//   - [Hook.Receive] judges one request: accept, answer, ignore, or an error with a status.
//   - [Hook.Judge] does so for one that was verified before, from what [Hook.Keep] kept of it.
//   - [Sign] makes the headers of Standard Webhooks for what stint sends itself.
//
// A request is verified before anything in it is read, over the bytes as they came, in
// constant time, and against each active secret. No error holds a secret, a signature that
// would have been right, or more of a body than the place where it is wrong.
//
// What is not here: that a delivery makes one session however often it comes is the
// store's transaction, for which a [Delivery] has its id and digest; how many requests
// come at once and how fast they are read is the server's, from [Limits].
package hook
