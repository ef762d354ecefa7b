// Package gate asks the condition of a schedule: a command or a URL that says whether a
// session is worth beginning, so that no model is woken for nothing.
package gate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/child"
	"github.com/stint-dev/stint/internal/proc"
	"github.com/stint-dev/stint/internal/safedial"
)

// maxSaid is how much of what a condition says is kept, in bytes.
const maxSaid = 4 << 10

// grace is how long a command may take to end after its time is up.
const grace = 2 * time.Second

// Command returns a condition that is a program: 0 opens, 1 does not, and any other end is
// an error. What it printed last is what it says. It runs in dir with the variables that
// every agent gets, and no others, for at most timeout.
func Command(argv []string, dir string, timeout time.Duration) func(context.Context) (open bool, says string, err error) {
	return func(ctx context.Context) (bool, string, error) {
		ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("its time of %v was up", timeout))
		defer cancel()
		p, err := proc.Start(ctx, proc.Spec{Argv: argv, Dir: dir, Env: child.List(child.Variables(nil, nil)), Name: "when", Grace: grace,
			Stdout: proc.Stream{Pipe: true}, Stderr: proc.Stream{Pipe: true}})
		if err != nil {
			return false, "", child.StartFailure(dir, argv[0], err)
		}
		out, errs := said{}, said{}
		var streams sync.WaitGroup
		streams.Go(func() { out.take(p.Stdout()) })
		streams.Go(func() { errs.take(p.Stderr()) })
		x := p.Wait()
		streams.Wait()
		switch says := last(out.String(), errs.String()); {
		case ctx.Err() != nil:
			return false, says, context.Cause(ctx)
		case x.Code == 0:
			return true, says, nil
		case x.Code == 1:
			return false, says, nil
		case x.Signal != "":
			return false, says, stint.Invalid.Errorf("when", "%s was ended by %s%s", argv[0], x.Signal, after(says))
		default:
			return false, says, stint.Invalid.Errorf("when", "%s ended with %d%s", argv[0], x.Code, after(says))
		}
	}
}

// after is what an error adds of what was said.
func after(says string) string {
	if says == "" {
		return ""
	}
	return ": " + says
}

// said is the end of what a program prints.
type said struct{ bytes.Buffer }

// take reads to the end, and keeps the last of it.
func (s *said) take(r io.Reader) {
	buf := make([]byte, maxSaid)
	for {
		n, err := r.Read(buf)
		s.Write(buf[:n])
		if more := s.Len() - maxSaid; more > 0 {
			s.Next(more)
		}
		if err != nil {
			return
		}
	}
}

// last is the last line with something in it, of the first text that has one.
func last(texts ...string) string {
	for _, text := range texts {
		if text = strings.TrimSpace(strings.ToValidUTF8(text, "\uFFFD")); text != "" {
			return text[strings.LastIndexByte(text, '\n')+1:]
		}
	}
	return ""
}

// URL returns a condition that is asked by a GET: a status of 2xx but 204 opens, 204, 304
// and 404 do not, and any other is an error. private lets it be at an address that is not of the
// public Internet. It answers within timeout.
func URL(url string, private bool, timeout time.Duration) func(context.Context) (open bool, says string, err error) {
	return func(ctx context.Context) (bool, string, error) {
		ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("its time of %v was up", timeout))
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return false, "", stint.Invalid.Errorf("when", "%v", err)
		}
		policy := safedial.Policy{}
		if private {
			policy.Allow = []string{req.URL.Hostname()}
		}
		transport := policy.Transport()
		defer transport.CloseIdleConnections()
		resp, err := (&http.Client{Transport: transport, CheckRedirect: safedial.Redirect(nil)}).Do(req)
		if err != nil {
			return false, "", unanswered(ctx, err)
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(io.LimitReader(resp.Body, maxSaid)) // what came of it is enough
		says := last(string(body))
		switch code := resp.StatusCode; {
		case code == http.StatusNoContent, code == http.StatusNotModified, code == http.StatusNotFound:
			return false, says, nil
		case code/100 == 2:
			return true, says, nil
		default:
			return false, says, stint.Invalid.Errorf("when", "it answers %s%s", resp.Status, after(says))
		}
	}
}

// unanswered is why there was no answer, with what to do where stint refused to ask.
func unanswered(ctx context.Context, err error) error {
	var refused *safedial.Refused
	switch {
	case errors.As(err, &refused):
		e := stint.Denied.Errorf("when", "%v", refused)
		e.Hint = "allow_private: true lets a condition ask there"
		return e
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return stint.Unavailable.Errorf("when", "%v", err)
}
