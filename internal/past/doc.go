// Package past is what a journal says of the steps of a loop, and what it answers to
// whoever asks for the same ones again: the engine, when a loop is begun again, and a
// replay.
package past
