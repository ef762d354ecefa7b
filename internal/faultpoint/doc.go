// Package faultpoint marks the instants at which a crash is interesting, and is
// the wall clock of production code.
//
// A normal build compiles [Hit] to nothing and [Now] to time.Now. A binary built
// with the tag faultinject (make bin/stint-fault) obeys three variables:
//
//	STINT_FAULT=NAME:N    kill -9 this process at the N-th hit of point NAME
//	STINT_FAULT_LOG=FILE  append the name of every point at its first hit
//	STINT_TEST_CLOCK=FILE FILE holds a duration (like 24h or -1h) to add to the clock;
//	                      read at every call, so that it can move while the binary lives
package faultpoint

// The crash points, in the order in which a session meets them, then those of servers. A
// test fails if the crash suites never hit one of them.
const (
	BeforeClaim      = "engine.before-claim"
	AfterClaim       = "engine.after-claim"
	AnswerReceived   = "engine.answer-received"    // a step's work is done, its result not handed to the store
	AnswerRecorded   = "engine.answer-recorded"    // a model's answer is durable, no tool begun
	IntentRecorded   = "engine.intent-recorded"    // of a once step
	EffectSent       = "exec.effect-sent"          // an agent was told to proceed
	EffectDone       = "engine.effect-done"        // a once step's work is done, its result not handed to the store
	RecordedNotAcked = "engine.recorded-not-acked" // durable, nobody told
	AtCheckpoint     = "engine.at-checkpoint"      // a loop returned, its checkpoint not handed to the store
	AtLoopEnd        = "engine.at-loop-end"        // the checkpoint is durable, the next loop not begun
	AtClose          = "engine.at-close"           // the closing entry not handed to the store
	BeforeCommit     = "store.before-commit"
	AfterCommit      = "store.after-commit"
	InCheckpoint     = "store.in-checkpoint" // the WAL is being copied back
	InMigration      = "store.in-migration"
	HookVerified     = "hook.verified"    // a delivery is genuine, nothing of it is written
	HookDurable      = "hook.durable"     // what became of a delivery is durable, its sender not told
	ScheduleDecided  = "schedule.decided" // what becomes of a time is decided, nothing of it is written
	ScheduleDurable  = "schedule.durable" // what became of a time is durable, the scheduler does not know it
)
