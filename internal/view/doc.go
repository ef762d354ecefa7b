// Package view turns what a store holds into answers: which sessions there are and
// what each is doing, what happened in one, whether its journal is sound, and what
// it says in a form for other programs.
//
// It gets a [stint.Reader], and bodies through [stint.Blobs], so it cannot write a
// journal. Nothing in it keeps anything between calls but [Log], and every function
// may be called concurrently.
//
// # Two readers
//
// Each answer comes as a Go value that encodes to JSON, documented member by member
// here and in docs/cli-json.md, and as text. The text has two shapes, by
// [term.Style]: on a terminal groups, glyphs, colours, relative times and cut lines;
// elsewhere one header and one row a thing, whole, with times as RFC 3339 in UTC.
//
// # What agents wrote
//
// Names, headlines, reasons, inputs, results and output come from outside. In text
// they pass through [term.Line] or [term.Escape]; in JSON every character that a
// terminal could act on is written as an escape, which leaves the value as it is.
// Only [State] and [LogQuery] output asked for as raw bytes are what they are.
package view
