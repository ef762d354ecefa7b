package exec

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/child"
	"github.com/stint-dev/stint/internal/faultpoint"
	"github.com/stint-dev/stint/internal/proc"
	"github.com/stint-dev/stint/internal/protocol"
)

// outcome is the result of the one step of a program without a protocol.
type outcome struct {
	Exit   *int   `json:"exit,omitempty"`
	Signal string `json:"signal,omitempty"` // without SIG
	Error  string `json:"error,omitempty"`  // why it could not be executed
	MS     int64  `json:"ms"`
	Stdout int64  `json:"stdout_bytes"`
	Stderr int64  `json:"stderr_bytes"`
}

// end is what an outcome makes of the session.
func (o outcome) end() *stint.End {
	if o.Exit == nil {
		return &stint.End{Outcome: stint.Failed, Reason: "signal " + o.Signal,
			Result: fmt.Appendf(nil, `{"signal":%s}`, strconv.Quote(o.Signal))}
	}
	e := &stint.End{Outcome: stint.Completed, Result: fmt.Appendf(nil, `{"exit":%d}`, *o.Exit)}
	if *o.Exit != 0 {
		e.Outcome, e.Reason = stint.Failed, cmp.Or(child.OneLine(o.Error), "exit "+strconv.Itoa(*o.Exit))
	}
	return e
}

// command does the loop of a program without a protocol: one step, and its exit
// code is the outcome, live or from the journal.
func (a *Agent) command(ctx context.Context, l stint.Loop) (stint.Next, error) {
	out := &child.Log{}
	out.Attach(l, a.spec.outputLimit())
	defer out.Detach()
	name := filepath.Base(a.spec.Command[0])
	name = string(child.WholeRunes([]byte(name[:min(len(name), 200)])))
	input, err := stint.Marshal(map[string]any{"command": a.spec.Command})
	if err != nil {
		return stint.Next{}, err
	}
	step := stint.Step{Name: name, Kind: stint.Tool, Effect: a.spec.effect(name, ""), Input: input, Timeout: a.spec.StepTimeout}
	if step.Timeout == 0 {
		step.Timeout = noStepTimeout
	}
	stdin, ses, epoch := prompts(l.Inbox()), l.Session(), protocol.Epoch(l)
	res, err := l.Do(ctx, step, func(ctx context.Context, key string) (stint.Result, error) {
		return a.spec.execute(ctx, ses, a.spec.environ(ses, epoch, key), stdin, out)
	})
	if err != nil {
		return stint.Next{}, err
	}
	return stint.Next{End: endOf(res.Data)}, nil
}

// endOf is what the step's result makes of the session. One that says neither exit
// nor signal was given by a person or a rule, after stint had died over the step.
func endOf(result json.RawMessage) *stint.End {
	var o outcome
	var settled struct {
		Stint string `json:"stint"`
	}
	switch {
	case json.Unmarshal(result, &o) == nil && (o.Exit != nil || o.Signal != ""):
		return o.end()
	case json.Unmarshal(result, &settled) == nil && settled.Stint == "unknown":
		return &stint.End{Outcome: stint.Failed, Reason: "nobody knows how the program ended", Result: result}
	}
	return &stint.End{Outcome: stint.Completed, Reason: "settled by hand: it happened", Result: result}
}

// prompts is what the program reads: the bodies of the prompts, a newline between
// each two. nil: none.
func prompts(inbox []stint.Message) []byte {
	var bodies [][]byte
	for _, m := range inbox {
		if m.Kind == stint.Prompt {
			bodies = append(bodies, m.Body)
		}
	}
	if bodies == nil {
		return nil
	}
	return append([]byte{}, bytes.Join(bodies, []byte("\n"))...)
}

// execute runs the program to its end and returns how it ended; a program that
// cannot be executed has ended as a shell says it. Its error is definite where
// nothing was run, and leaves the step in doubt otherwise: what a program did before
// it was told to end nobody knows. That holds for one that exits by itself on
// SIGTERM too: its exit code says how it took the interruption, and were that the
// outcome, a restart of stint would end sessions as failed, or as completed, whose
// work is half done.
func (s Spec) execute(ctx context.Context, ses stint.Session, env []string, stdin []byte, out *child.Log) (stint.Result, error) {
	if ctx.Err() != nil {
		return stint.Result{}, protocol.NotBegun{Err: context.Cause(ctx)}
	}
	began := time.Now()
	p, err := proc.Start(ctx, proc.Spec{
		Argv: s.Command, Dir: s.Dir, Env: env, Name: ses.Name, Grace: s.grace(), Offline: s.Offline,
		Stdin: proc.Stream{Pipe: stdin != nil}, Stdout: proc.Stream{Pipe: true}, Stderr: proc.Stream{Pipe: true},
	})
	switch {
	case err != nil && ctx.Err() != nil: // it may have begun, and have been ended
		return stint.Result{}, fmt.Errorf("%s was told to end as it began: %w", s.Command[0], context.Cause(ctx))
	case err != nil:
		return s.notStarted(err)
	}
	faultpoint.Hit(faultpoint.EffectSent)
	var o outcome
	var streams sync.WaitGroup
	streams.Go(func() {
		o.Stdout = child.Pump(p.Stdout(), s.TeeStdout, func(line []byte, size int64) { out.Line(child.Stdout, line, size) })
	})
	streams.Go(func() {
		o.Stderr = child.Pump(p.Stderr(), s.TeeStderr, func(line []byte, size int64) { out.Line(child.Stderr, line, size) })
	})
	if stdin != nil {
		streams.Go(func() {
			_, _ = p.Stdin().Write(stdin) // a program need not read it
			p.Stdin().Close()
		})
	}
	x := p.Wait()
	streams.Wait()
	out.Sync() // the output stands before the result
	o.MS = time.Since(began).Milliseconds()
	if x.Left > 0 {
		out.Notef("%d processes of the program could not be killed", x.Left)
	}
	switch {
	case x.Killed:
		cause := context.Cause(ctx)
		if cause == nil {
			cause = errors.New("it was killed by stint")
		}
		how := (&ExitError{Code: x.Code, Signal: signalName(x)}).how()
		return stint.Result{}, fmt.Errorf("%s was told to end, and %s: %w", s.Command[0], how, cause)
	case x.Signal != "":
		o.Signal = signalName(x)
	case x.Code < 0:
		return stint.Result{}, stint.Unavailable.Errorf("", "nobody knows how %s ended: its guard was killed", s.Command[0])
	default:
		o.Exit = &x.Code
	}
	data, err := stint.Marshal(o)
	return stint.Result{Data: data}, err
}

// notStarted is what a program gives that could not be started.
func (s Spec) notStarted(err error) (stint.Result, error) {
	err = s.commandStartError(err)
	var cannot *StartError
	if !errors.As(err, &cannot) {
		return stint.Result{}, err
	}
	data, err := stint.Marshal(outcome{Exit: &cannot.Exit, Error: cannot.Error() + "; " + cannot.Hint})
	return stint.Result{Data: data}, err
}

// commandStartError is definite where the program cannot be executed at all, and
// says that nothing began where the system refused for now. Whatever else went
// wrong may have done so after the start.
func (s Spec) commandStartError(err error) error {
	refused := s.startError(err)
	var errno syscall.Errno
	switch {
	case errors.Is(refused, stint.Invalid):
		return stint.Definite(refused)
	case errors.As(err, &errno):
		return protocol.NotBegun{Err: refused}
	}
	return refused
}
