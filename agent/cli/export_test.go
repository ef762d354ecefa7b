package cli

import "time"

// Gather sets how long a call waits for others that begin with it.
func (a *Agent) Gather(d time.Duration) { a.gather = d }

// ReadLine reads one line as the newest of a stream, and returns how many events it makes.
func ReadLine(p Protocol, before [][]byte, line []byte) (int, error) {
	r := newReader(p)
	for _, b := range before {
		_, _ = r.read(b)
	}
	es, err := r.read(line)
	return len(es), err
}

// Clean is clean.
func Clean(s string) string { return clean(s) }

// Arguments is arguments.
func Arguments(in []byte) []byte { return arguments(in) }

// After is after.
func After(text string) time.Duration { return after(text) }
