// Package trigger makes sessions of what happens: schedules that are due, and
// deliveries to hooks. Each occurrence and each delivery is one line of a ledger,
// written in the transaction of the session that it leads to, or in the system journal
// with the reason why it led to none.
//
// What is due is decided by [Decide], which is a function of the schedule, of what is
// known of it, and of a time; the [Scheduler] only asks it and does what it says.
package trigger
