// Package cli runs unmodified agent CLIs (Codex, Claude Code, OpenCode, Gemini CLI)
// as a [stint.Agent], by reading the JSON that they print.
//
// A loop is one turn: the prompt goes in on standard input, the CLI works until its
// turn ends. Its steps are the CLI's id of its session, then each answer of the model
// with what it used, followed by the calls that came with it. The CLI runs its tools
// by itself. A step for a call is recorded when the CLI says that the call has begun,
// and its result when it says that it has ended.
//
// # After a crash
//
// The steps in the journal are answered from it; then the CLI is resumed by its id and
// told that it was interrupted. A [stint.Once] call that was under way is in doubt, and
// the session waits for a person; the person's word is the result of the step, and the
// resumed CLI is told of it. What a [stint.Once] call did is never done again by stint;
// whether the model repeats it is the model's decision, made with that knowledge.
//
// # What it does not cover
//
// The journal knows of a call what the CLI told. A call that the CLI had begun and not
// told of, or told of within the last milliseconds before a crash, is not in the
// journal; the resumed CLI finds it in its own transcript, or not at all. OpenCode
// tells of a call only once it has ended, so none of its calls is ever in doubt. A call
// that begins while another one is awaited is recorded when that one has ended.
// docs/agent-clis.md says which CLI tells what.
//
// In every case the CLI and all it started are gone when Loop returns, and within five
// seconds of a cancel if [Spec.Grace] is left as it is.
package cli
