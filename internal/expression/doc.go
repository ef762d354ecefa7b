// Package expression compiles and runs the expressions of stint.yaml that look at what
// strangers sent or a model made up: the fields of a hook, the conditions of a policy. They
// are of expr-lang, with those of its functions whose cost is known.
//
// Who writes an expression is trusted, what it looks at is not. So a [Meter] counts what
// is looked at and made, and ends an expression that does too much of it. There is no
// clock, so that the same expression over the same bytes gives the same value anywhere.
package expression
