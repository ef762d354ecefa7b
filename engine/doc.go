// Package engine claims sessions, drives their loops, renews their leases and
// journals what happens. It is the only writer of journals.
//
// One goroutine drives one claimed session; a session that waits has none. The
// goroutine asks the agent for a loop, and every [stint.Loop.Do] in it goes
// through here:
//
//	claim ─► loop.started ─► agent.Loop ─► Do: step.requested? fn step.completed …
//	              ▲                                         │
//	              └── next loop ◄── loop.completed ◄────────┘
//
// # What is durable when
//
// Entries are handed to the store as they are made and become durable in order,
// many sessions in one commit. The driver waits for durability only where someone
// could otherwise be told something that a crash takes back: before a once step's
// effect (its intent), before an idempotent step (every earlier read), before a
// tool that a model asked for (the answer), at a loop's end, and before it gives a
// lease back. So a loop of one model call and two idempotent tools waits twice.
//
// # Losing the right to write
//
// Every append carries the lease's epoch and the store checks it in the same
// transaction. A driver that is fenced cancels its agent's context and writes
// nothing more; what the agent was doing is the next holder's to find out.
package engine
