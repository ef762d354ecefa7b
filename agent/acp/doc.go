// Package acp runs unmodified agents that speak the Agent Client Protocol over their
// standard streams (opencode acp, gemini --experimental-acp, codex-acp) as a
// [stint.Agent]. What such an agent asks permission for becomes a question to a person
// that any process can answer, also when this one is gone.
//
// A loop is one prompt turn. Its steps are the agent's session, then answers of the
// model, each with the one call that ended it, followed by that call. The agent runs its
// tools by itself. A call that it asks permission for is a step that asks: the question
// is in the journal before a person sees it, the intent before the permission is given.
// A call that it does not ask for is recorded when it says that the call is in progress.
//
// # After a crash
//
// The steps in the journal are answered from it; then the agent is started, told to load
// its session, and told that it was interrupted and what a person said meanwhile. The
// process that waited for a decision is gone, so the agent asks once more: the first
// equal question (the same tool with the same input) gets the decision that is in the
// journal, once, whether it stands at the same place or at a later one of the same loop.
//
// # What it does not cover
//
// The journal knows of a call what the agent told. A call that begins while another one
// is awaited is recorded when that one has ended; if it asks permission, it waits so
// long. Files that the agent reads or writes through stint within a call belong to that
// call's step, others are steps of their own.
package acp
