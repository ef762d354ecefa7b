// Package tool is what an agent can call: a [Tool] with a description for the model,
// a JSON Schema of its arguments and a class of effect, and the [Set] of those that
// one agent has.
//
// A [Caller] gets the arguments byte for byte as they are stored, so no digit of a
// 64-bit number changes on the way, and the idempotency key of its step. What it
// returns says how much is known:
//
//   - an [Output] is the outcome, also one with Error set: the tool itself said that it
//     failed, and that is a result for the model.
//   - an error wrapped by [stint.Definite] is a known outcome too: the call failed, and
//     nothing is in doubt.
//   - an error wrapped by [NotBegun] says that nothing was done, so it may be tried again.
//   - any other error leaves the outcome open, and a [stint.Once] step in doubt. Ends of
//     the context are such errors.
//
// The packages below this one make tools of programs (exec), of requests (http), of
// MCP servers (mcp), and bring a few of their own (builtin).
package tool
