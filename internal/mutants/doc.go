// Package mutants holds tests of the tests. A mutant is a small fault put into one
// source file: a forgotten predicate, a commit that is not synced, an answer that is
// given too early. Each names the tests that must turn red, and why.
//
// The rig copies the module, shows that the tests it will need are green there, then puts
// in one mutant after the other and runs its tests. A mutant that stays green is a
// rule that nothing holds. One that does not compile, or whose tests were not run,
// fails as well, so that no mutant is taken for seen that was not.
//
// By default it is only checked that every mutant still fits its file, that the
// tests it names exist, and that the cheapest ones turn their tests red.
// STINT_LONG=1 goes through all of them, which takes a quarter of an hour:
//
//	STINT_LONG=1 go test ./internal/mutants -v -timeout 60m
//	STINT_LONG=1 go test ./internal/mutants -v -run 'TestMutants/sqlite-'
//
// A mutant that no longer fits its file has to be brought up to date, not removed:
// the rule that it breaks has moved.
package mutants
