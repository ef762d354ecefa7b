// Package compare puts two loops side by side, or two sessions loop by loop, and finds the
// loop in which a value of the state came to be what it is.
package compare
