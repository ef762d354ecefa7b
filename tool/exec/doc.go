// Package exec makes tools of programs.
//
// A command is a list of arguments with places for the call's own: {path} is the
// argument path, wherever in an element it stands. A value never becomes more than one
// element, and no shell reads it. The program also gets all arguments as one JSON object
// on its input. Its environment is empty but for a few plain variables, those that the
// Spec names, and STINT_IDEMPOTENCY_KEY, STINT_EPOCH, STINT_SESSION, STINT_NAME,
// STINT_LINE, STINT_LOOP, STINT_ATTEMPT and STINT_TOOL.
//
// An exit code is the outcome, and so is a signal that the program got from elsewhere:
// one other than 0 makes an [tool.Output] with Error set, for the model to read. A
// program that stint ended, because its time was up or its session was stopped, has no
// outcome, whatever it did before. The program and all that it started are gone when the
// call returns.
package exec
