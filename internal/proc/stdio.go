package proc

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// afterEnd bounds what is read from a pipe after the tree has ended. What the tree left in it is at most the pipe's capacity
// (1 MiB unless a privileged process raised it); the bound stops a stranger that keeps writing.
const afterEnd = 16 << 20

// stdio holds both sides of the standard streams of one program.
type stdio struct {
	child  []*os.File // the program's 0, 1 and 2
	owned  []*os.File // those of child that Start opened
	stdin  *os.File
	stdout *output
	stderr *output
}

func (s *stdio) open(spec Spec) error {
	for i, st := range []Stream{spec.Stdin, spec.Stdout, spec.Stderr} {
		f, err := s.openOne(i, st)
		if err != nil {
			return fmt.Errorf("proc: open stream %d: %w; close files or raise the limit of open files", i, err)
		}
		s.child = append(s.child, f)
	}
	return nil
}

func (s *stdio) openOne(i int, st Stream) (*os.File, error) {
	if st.File != nil {
		return st.File, nil
	}
	if !st.Pipe {
		f, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
		if err == nil {
			s.owned = append(s.owned, f)
		}
		return f, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	switch i {
	case 0:
		s.stdin, s.owned = w, append(s.owned, r)
		return r, nil
	case 1:
		s.stdout = &output{f: r}
	default:
		s.stderr = &output{f: r}
	}
	s.owned = append(s.owned, w)
	return w, nil
}

func (s *stdio) closeChild() {
	for _, f := range s.owned {
		f.Close()
	}
}

func (s *stdio) closeOurs() {
	if s.stdin != nil {
		s.stdin.Close()
	}
	for _, o := range []*output{s.stdout, s.stderr} {
		if o != nil {
			o.Close()
		}
	}
}

// output is the reading end of a pipe. Once ended it yields what is in the pipe and then io.EOF, without waiting for other
// holders of the writing end.
type output struct {
	f     *os.File
	ended atomic.Bool

	mu      sync.Mutex
	taken   int64     // bytes read
	worked  int64     // of those, the ones after which the reader has come back
	waiting []catchUp // for worked

	// The rest is touched by the reader only.
	after int  // bytes read since ended
	eof   bool // f is closed
}

// catchUp is somebody who waits until the reader is through with so many bytes.
type catchUp struct {
	until int64
	done  chan struct{}
}

// reader returns a nil interface for a nil output.
func (o *output) reader() io.ReadCloser {
	if o == nil {
		return nil
	}
	return o
}

// Read implements io.Reader.
func (o *output) Read(p []byte) (int, error) {
	o.cameBack(false)
	for len(p) > 0 && !o.eof {
		var n int
		var err error
		if o.ended.Load() {
			// The deadline that released a waiting read would also fail this one.
			o.f.SetReadDeadline(time.Time{})
			n, err = readPipe(o.f, p[:min(len(p), afterEnd-o.after)], false, o.took)
			o.after += n
		} else {
			n, err = readPipe(o.f, p, true, o.took)
		}
		switch {
		case n > 0:
			return n, nil
		case errors.Is(err, os.ErrDeadlineExceeded):
			continue
		case err != nil && err != io.EOF:
			o.cameBack(true)
			return 0, err
		}
		o.eof = true
		o.f.Close()
		o.cameBack(true)
	}
	if len(p) == 0 {
		return 0, nil
	}
	return 0, io.EOF
}

// took counts what is read, so that nobody can look while it is neither in the pipe nor counted.
func (o *output) took(read func() int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.taken += int64(read())
}

// cameBack notes that the reader is through with what it got; at the end nobody waits any longer.
func (o *output) cameBack(ended bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.worked = o.taken
	o.waiting = slices.DeleteFunc(o.waiting, func(c catchUp) bool {
		if c.until > o.worked && !ended {
			return false
		}
		close(c.done)
		return true
	})
}

// caughtUp returns a channel that is closed when the reader is through with all that is in the pipe now.
func (o *output) caughtUp() <-chan struct{} {
	done := make(chan struct{})
	o.mu.Lock()
	defer o.mu.Unlock()
	n, ok := unread(o.f)
	if until := o.taken + int64(n); ok && o.worked < until {
		o.waiting = append(o.waiting, catchUp{until, done})
		return done
	}
	close(done)
	return done
}

// Close implements io.Closer. A program that writes afterwards gets SIGPIPE or EPIPE.
func (o *output) Close() error { return o.f.Close() }

// end tells the reader that nothing of the tree is left. Where pipes have no deadlines (Windows) they end with the job.
func (o *output) end() {
	if o == nil || !canCut {
		return
	}
	o.ended.Store(true)
	o.f.SetReadDeadline(time.Unix(1, 0))
}
