// Package record reads what the tools of a session gave, for a session that does it again
// with a model and calls none of them; and what such a session asked for that is not on
// record.
package record
