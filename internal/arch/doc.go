// Package arch holds the architecture of stint as tests: which package may
// import which, how large a file, a function or an interface may grow, and a
// few habits that decay when only memory guards them.
//
// It has no code of its own. The import table in layers_test.go is the
// diagram of the system, written so that it can be read from top to bottom.
// Each rule is a function from the parsed tree to a list of findings, and
// each rule is shown rejecting a small bad tree in the tests beside it.
//
// A finding names the file and line, what was found, the bound, and what to
// do. When a bound is wrong for a good reason, change the bound here in the
// same commit and say why in its body; a list of exceptions is not kept.
package arch
