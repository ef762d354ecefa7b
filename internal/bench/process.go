package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"

	"github.com/stint-dev/stint"
)

// Self says how to start this program so that it calls [Child] with one more
// argument.
type Self struct {
	Path string
	Args []string
}

// Say tells how far a long measurement is, in one line without its end. It may be
// nil.
type Say func(format string, args ...any)

// process is a running child, as its parent sees it.
type process struct {
	cmd    *exec.Cmd
	begun  time.Time // right before it was started
	in     io.WriteCloser
	enc    *json.Encoder
	dec    *json.Decoder
	stderr bytes.Buffer
	say    Say
	over   bool
	ctxErr func() error // of what the process is bound to
}

// start starts a child. The caller ends or kills it; it is killed when ctx ends,
// and ends by itself when this process does.
func (s Self) start(ctx context.Context, at site, say Say) (*process, error) {
	arg, err := json.Marshal(at)
	if err != nil {
		return nil, &stint.Error{Code: stint.Internal, Op: "bench", Err: err}
	}
	p := &process{say: say, ctxErr: ctx.Err}
	p.cmd = exec.CommandContext(ctx, s.Path, append(s.Args[:len(s.Args):len(s.Args)], string(arg))...)
	p.cmd.Stderr = &p.stderr
	out, err := p.cmd.StdoutPipe()
	if err == nil {
		p.in, err = p.cmd.StdinPipe()
	}
	if err == nil {
		p.begun = time.Now()
		err = p.cmd.Start()
	}
	if err != nil {
		return nil, &stint.Error{Code: stint.Unavailable, Op: "bench", Err: err}
	}
	p.enc, p.dec = json.NewEncoder(p.in), json.NewDecoder(out)
	return p, nil
}

// ask hands the child a command. It may be asked before it is ready, and more than
// it has answered.
func (p *process) ask(q command) error {
	if err := p.enc.Encode(q); err != nil {
		return p.broken(err)
	}
	return nil
}

// answer returns the answer to the oldest command without one, and when it came,
// counted from the start of the process. The first one is "ready".
func (p *process) answer(of string) (r reply, at time.Duration, err error) {
	for {
		r = reply{}
		if err := p.dec.Decode(&r); err != nil {
			return r, 0, p.broken(err)
		}
		at = time.Since(p.begun)
		switch {
		case r.Of != of:
			return r, at, stint.Internal.Errorf("bench", "the child answers %q, not %q", r.Of, of)
		case !r.More:
			return r, at, nil
		case p.say != nil:
			p.say("%s: %d sessions", of, r.N)
		}
	}
}

// call is ask and answer.
func (p *process) call(q command) (reply, error) {
	if err := p.ask(q); err != nil {
		return reply{}, err
	}
	r, _, err := p.answer(q.Do)
	return r, err
}

// broken is the error of a child that does not talk any more.
func (p *process) broken(err error) error {
	p.kill()
	if err := p.ctxErr(); err != nil {
		return err
	}
	if said := strings.TrimSpace(p.stderr.String()); said != "" {
		return stint.Unavailable.Errorf("bench", "the child process ended: %s", said)
	}
	return &stint.Error{Code: stint.Unavailable, Op: "bench", Err: fmt.Errorf("the child process ended: %w", err)}
}

// kill ends the child as a power cut would, and waits until it is gone. On one that
// is gone it does nothing.
func (p *process) kill() {
	if p.over {
		return
	}
	p.over = true
	_ = p.cmd.Process.Kill()
	_ = p.in.Close()
	_ = p.cmd.Wait()
}

// end lets the child end by itself.
func (p *process) end() error {
	if p.over {
		return nil
	}
	p.over = true
	err := errors.Join(p.in.Close(), p.cmd.Wait())
	if err != nil {
		return stint.Unavailable.Errorf("bench", "the child process: %w\n%s", err, bytes.TrimSpace(p.stderr.Bytes()))
	}
	return nil
}
