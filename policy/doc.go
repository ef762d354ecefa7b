// Package policy says which steps begin by themselves, which wait for a person, and which
// do not begin at all. It is pure: the engine tells it of a [Call] and does what the
// [Verdict] says; whoever takes decisions asks it who may decide and when enough people have.
//
//   - [Compile] checks an ordered list of rules, as an agent's pinned configuration has it.
//   - [Policy.Judge] gives the verdict of the first rule that matches, [Policy.Explain]
//     says of each rule why it did or did not.
//   - [Canonical] and [Digest] bind a decision to exactly the arguments that were shown.
//   - [Tally] counts decisions, [Verdict.Admits] says who may make one, [Verdict.Expired]
//     what comes when nobody does.
//   - [Grant] is a decision that was made for calls to come.
//
// Nothing here fails open: a condition that cannot be evaluated asks a person, and says so.
package policy
