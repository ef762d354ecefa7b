// Package notify tells others what happens to sessions: that one began, waits for a person,
// or ended. A [Channel] is a way to tell them: requests that are signed as Standard Webhooks
// says, a program, or mail.
//
// Each endpoint has a sender with a place of its own in the store's feed, so that one that
// is slow or away holds up nobody. What an endpoint does not take is tried again for about a
// day, and for longer if it takes nothing at all, until it is paused. As much of that as may
// wait is bounded; beyond it the sender goes no further in the feed. Places and what waits
// are in the system journal's state, written with the lines of what was sent: after a crash
// the little that was sent since comes once more, under the same id. So each event comes at
// least once, and whoever remembers ids gets it once.
//
// Reminders have a place too, which is a time: all that was due until then is dealt with.
// Who still waits, for what and since when is asked of the store when one is due.
package notify
