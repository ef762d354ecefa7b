package exec

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"sync"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/jsonx"
	"github.com/stint-dev/stint/internal/proc"
)

// maxVerify bounds what a verifying program may print.
const maxVerify = 1 << 20

// Verify asks a program whether the effect of a once step took place, for a step
// whose runner died over it. The program gets the step as a JSON line on standard
// input ({"name","kind","effect","input","key"}) and the key as
// STINT_IDEMPOTENCY_KEY. It answers by its exit code: 0, it happened, and what it
// prints, if that is JSON, is the step's result; 1, it did not; anything else is
// an error, and a person will be asked.
func Verify(ctx context.Context, s Spec, step stint.Step, key string) (happened bool, result json.RawMessage, err error) {
	in, err := stint.Marshal(struct {
		stint.Step

		Key string `json:"key"`
	}{step, key})
	if err != nil {
		return false, nil, err
	}
	env := append(s.environ(stint.Session{}, 0, key), "STINT_IDEMPOTENCY_KEY="+key)
	p, err := proc.Start(ctx, proc.Spec{
		Argv: s.Command, Dir: s.Dir, Env: env, Name: "verify", Grace: s.grace(),
		Stdin: proc.Stream{Pipe: true}, Stdout: proc.Stream{Pipe: true}, Stderr: proc.Stream{Pipe: true},
	})
	if err != nil {
		return false, nil, s.commandStartError(err)
	}
	var out bytes.Buffer
	var streams sync.WaitGroup
	streams.Go(func() {
		_, _ = io.Copy(&out, io.LimitReader(p.Stdout(), maxVerify))
		_, _ = io.Copy(io.Discard, p.Stdout())
	})
	streams.Go(func() { _, _ = io.Copy(io.Discard, p.Stderr()) })
	streams.Go(func() {
		_, _ = p.Stdin().Write(append(in, '\n')) // a program need not read it
		p.Stdin().Close()
	})
	x := p.Wait()
	streams.Wait()
	switch {
	case x.Killed || x.Signal != "" || x.Code < 0 || x.Code > 1:
		return false, nil, stint.Unavailable.Errorf("", "%s gave no verdict (exit %d %s)", s.Command[0], x.Code, x.Signal)
	case x.Code == 1:
		return false, nil, nil
	}
	if b := bytes.TrimSpace(out.Bytes()); len(b) > 0 && jsonx.Check(b, jsonx.Limits{}) == nil {
		result = b
	}
	return true, result, nil
}
