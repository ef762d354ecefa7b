// Package exec runs a program, in any language, as a [stint.Agent].
//
// With [JSONL] the program speaks a small protocol, one JSON object a line: stint
// says which loop begins and with what state and messages; the program announces
// each effect as a step, does it once it is told to proceed, and says how the loop
// ends. docs/exec-protocol.md is its specification. With [None] any program will
// do: its whole run is one step, its output is the log, its exit code the outcome.
//
// A loop has a process of its own, or with [KeepSession] shares it with the loops
// before it. In every case the process and all it started are gone when Loop
// returns an error, and within five seconds of a cancel if [Spec.Grace] is left as
// it is. Its environment is empty but for PATH, HOME, LANG, TZ and TMPDIR, the
// variables that the Spec names, and STINT_SESSION, STINT_NAME, STINT_LINE,
// STINT_LOOP, STINT_ATTEMPT and STINT_EPOCH; STINT_PROTOCOL is 1 under JSONL, and
// STINT_IDEMPOTENCY_KEY is the key of the step under None.
//
// What the program writes is never held whole: a line of the protocol has at most
// [Spec.MaxLine] bytes, a line of the log 64 KiB, and a loop logs [Spec.MaxOutput].
package exec
