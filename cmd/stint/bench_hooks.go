package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/internal/bench"
	"github.com/stint-dev/stint/store/sqlite"
)

func (a *app) benchHooksCommand() *cobra.Command {
	var n, size, clients int
	cmd := &cobra.Command{
		Use: "hooks", Short: "A flood of deliveries to a hook: how many are taken, and that each begins one session",
		Long: `Start a server in a process of its own and send a flood of deliveries to a hook of it:
of twenty, fourteen are good, four are repetitions of those, one is forged and one is
stale. Sessions are begun and not run. A delivery is accepted when it is answered with
202, which is when its session is durable; a time is until all of the answer was read.`,
		Example: "  stint bench hooks\n  stint bench hooks -n 20000 --size 20000 --json",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if n < 1 || size < 32 || clients < 1 {
				return misused(cmd, "-n and --clients are above zero, --size is 32 at least")
			}
			return a.benchHooks(cmd.Context(), n, size, clients)
		},
	}
	cmd.Flags().IntVarP(&n, "n", "n", 50_000, "deliveries")
	cmd.Flags().IntVar(&size, "size", 1024, "bytes of a body")
	cmd.Flags().IntVar(&clients, "clients", 128, "clients at once")
	return cmd
}

// floodConfig is the stint.yaml of a flood.
const floodConfig = `agents:
  flooded: {kind: exec, command: ["true"], protocol: none}
hooks:
  flood: {agent: flooded, scheme: standard-webhooks, secret: env:STINT_FLOOD}
`

func (a *app) benchHooks(ctx context.Context, n, size, clients int) error {
	var f bench.Flood
	err := a.benchFolder(func(dir, path string) error {
		s, err := startFlooded(dir, path)
		if err != nil {
			return err
		}
		f, err = bench.FloodHook(ctx, s.url+"/hooks/flood", n, size, clients)
		f.RSSMB = s.peak()
		if err = errors.Join(err, s.end()); err != nil {
			return err
		}
		return withStore(ctx, path, func(st *sqlite.Store) error {
			f.Sessions, err = begunByHooks(ctx, st)
			return err
		})
	})
	if err != nil || a.json {
		return a.benchJSON(err, f)
	}
	a.printf("%d deliveries of %d bytes from %d clients in %.1f s: %.0f/s, %.0f accepted/s\n", f.Deliveries, f.BodyBytes, f.Clients, f.Seconds, f.PerS, f.AcceptedPS)
	a.printf("p50 %.1f ms, p99 %.1f ms, max %.1f ms; the server had %.0f MB at most\n", f.P50ms, f.P99ms, f.MaxMS, f.RSSMB)
	a.printf("%d sessions for %d good deliveries; %d wrong answers\n", f.Sessions, f.Good, f.Wrong)
	if f.Sessions != f.Good || f.Wrong > 0 {
		return exitError(exitNotOK)
	}
	return nil
}

// begunByHooks counts the sessions of a store.
func begunByHooks(ctx context.Context, st *sqlite.Store) (n int, err error) {
	err = st.Select(ctx, "SELECT count(*) FROM v_sessions WHERE trigger = 'hook'", func(_ []string, row []any) error {
		count, ok := row[0].(int64)
		if n = int(count); !ok {
			return stint.Internal.Errorf("bench", "a count of sessions is %v", row[0])
		}
		return nil
	})
	return n, err
}

// flooded is a server in a process of its own.
type flooded struct {
	cmd *exec.Cmd
	url string
}

func startFlooded(dir, path string) (*flooded, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(dir, "stint.yaml"), []byte(floodConfig), 0o600); err != nil {
		return nil, err
	}
	cmd := exec.Command(self, "serve", "--addr", "127.0.0.1:0", "--socket", "none", "--no-run", "--log-format", "json", "--config", filepath.Join(dir, "stint.yaml"), "--store", "sqlite:"+path)
	cmd.Env = append(os.Environ(), "STINT_FLOOD="+bench.FloodSecret)
	talk, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(talk)
	var last string
	for lines.Scan() {
		var said struct{ Msg, URL string }
		if last = lines.Text(); json.Unmarshal(lines.Bytes(), &said) == nil && said.URL != "" {
			go func() { // its log is for nobody
				for lines.Scan() {
				}
			}()
			return &flooded{cmd, said.URL}, nil
		}
	}
	return nil, errors.Join(stint.Internal.Errorf("bench", "the server did not begin: %s", last), cmd.Wait())
}

// peak is how much memory the server had at most, in megabytes; 0 where the system does
// not say.
func (s *flooded) peak() float64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kb, _ := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			return kb / 1000
		}
	}
	return 0
}

// end has the server end, as systemd would.
func (s *flooded) end() error {
	return errors.Join(s.cmd.Process.Signal(syscall.SIGTERM), s.cmd.Wait())
}
