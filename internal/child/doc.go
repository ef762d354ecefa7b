// Package child is what agents that are other programs share: the environment that a
// program gets, what it means that one cannot be started, and the log that what it says
// becomes. Processes themselves are package proc's.
package child
