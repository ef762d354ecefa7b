package exec_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/agent/exec"
)

func TestVerify(t *testing.T) {
	step := stint.Step{Name: "charge", Kind: stint.Tool, Effect: stint.Once, Input: json.RawMessage(`{"n":7}`)}
	for name, c := range map[string]struct {
		script, result string
		happened, ok   bool
	}{
		"happened":        {`exit 0`, "", true, true},
		"with a result":   {`echo ' {"paid":1} '`, `{"paid":1}`, true, true},
		"with plain text": {`echo yes`, "", true, true},
		"did not":         {`echo '{"paid":1}'; exit 1`, "", false, true},
		"no verdict":      {`exit 2`, "", false, false},
		"a signal":        {`kill -KILL $$`, "", false, false},
		"takes too long":  {`exec sleep 100`, "", false, false},
		"its guard dies":  {`kill -KILL $PPID; exec sleep 100`, "", false, false},
		"gets the step":   {`read -r line; case $line in *'"name":"charge"'*'"input":{"n":7}'*'"key":"k-1"'*) ;; *) exit 3;; esac; [ "$STINT_IDEMPOTENCY_KEY" = k-1 ]`, "", true, true},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			if name == "takes too long" {
				ctx, cancel = context.WithTimeout(ctx, 100*time.Millisecond)
			}
			defer cancel()
			happened, result, err := exec.Verify(ctx, exec.Spec{Command: []string{"sh", "-c", c.script}, Dir: t.TempDir()}, step, "k-1")
			if happened != c.happened || string(result) != c.result || (err == nil) != c.ok {
				t.Errorf("the verdict is %v %s, %v", happened, result, err)
			}
		})
	}
}
