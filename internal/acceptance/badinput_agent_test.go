//go:build linux

package acceptance_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// evil is an agent that does what no agent should. MARK in its script becomes a
// word by which its processes can be found.
type evil struct {
	script string
	code   int           // of stint run
	status string        // of the session
	why    string        // in its reason, or in what it waits for
	within time.Duration // 0: ten seconds
}

const (
	step   = `echo '{"type":"step","id":1,"name":"look","effect":"read"}'; read -r go; `
	over   = `echo '{"type":"end","outcome":"complete"}'; `
	linger = `exec sleep 9MARK; `
)

// evils are those agents by name.
func evils() map[string]evil {
	return map[string]evil{
		"garbage":            {script: `echo 'Hello, I am an agent!'; ` + linger, code: 7, status: "failed", why: "not a line of JSON"},
		"garbage-later":      {script: `echo '{"type":"log","text":"x"}'; printf '\033]0;pwned\007\377\n'; ` + linger, code: 7, status: "failed", why: "not a line of JSON"},
		"garbage-in-step":    {script: step + `echo garbage; ` + linger, code: 7, status: "failed", why: "not a line of JSON"},
		"an-array":           {script: `echo '[1]'; ` + linger, code: 7, status: "failed", why: "must be one JSON object"},
		"mid-line":           {script: `printf '{"type":"end","outcome":"comp'`, code: 7, status: "failed", why: "in the middle of a line"},
		"mid-line-in-step":   {script: step + `printf '{"type":"result","id":1,"res'; exit 3`, code: 7, status: "failed", why: "in the middle of a line"},
		"says-nothing":       {script: `exit 0`, code: 7, status: "failed", why: "exited with 0 without an end"},
		"bus-error":          {script: `kill -BUS $$`, code: 7, status: "failed", why: "signal BUS"},
		"never-ends":         {script: linger, code: 7, status: "stopped", why: "deadline"},
		"never-ends-in-step": {script: step + linger, code: 7, status: "stopped", why: "deadline"},
		"too-long":           {script: linger, code: 6, status: "waiting", why: "wall"},
		"idle":               {script: linger, code: 6, status: "waiting", why: "idle"},
		"ignores-term":       {script: `trap '' TERM INT HUP; while :; do sleep 9MARK; done`, code: 7, status: "stopped", why: "deadline"},
		"closes-stdout":      {script: `exec >&-; ` + linger, code: 7, status: "failed", why: "closed its standard output"},
		"closes-all":         {script: `exec >&- 2>&- <&-; ` + linger, code: 7, status: "failed", why: "closed its standard output"},
		"stays-after-end":    {script: over + linger, status: "completed", within: 15 * time.Second},
		"forks-away":         {script: `(setsid sh -c '(sleep 9MARK &) & sleep 9MARK' &) ; ` + over, status: "completed", within: 15 * time.Second},
		"forks-away-quietly": {script: `(setsid sh -c 'exec >/dev/null 2>&1 </dev/null; (sleep 9MARK &)' &); ` + over, status: "completed", within: 15 * time.Second},
		"forks-and-fails":    {script: `(setsid sh -c 'trap "" TERM; (sleep 9MARK &) & sleep 9MARK' &) ; exit 1`, code: 7, status: "failed", why: "exited with 1", within: 15 * time.Second},
		"many-children":      {script: `i=0; while [ $i -lt 100 ]; do setsid sleep 9MARK & i=$((i+1)); done; ` + over, status: "completed", within: 15 * time.Second},
		"duplicate-keys":     {script: `echo '{"type":"end","outcome":"complete","outcome":"fail"}'`, code: 7, status: "failed", why: "in this object twice"},
		"half-a-surrogate":   {script: `printf '{"type":"state","replace":"\\ud800"}\n'`, code: 7, status: "failed", why: "surrogate"},
		"not-utf8":           {script: `printf '{"type":"log","text":"\377"}\n'`, code: 7, status: "failed", why: "UTF-8"},
		"nul":                {script: `printf '{"type":"log","text":"\000"}\n'`, code: 7, status: "failed", why: "control character"},
		"too-deep":           {script: `printf '{"type":"state","replace":'; head -c 600 /dev/zero | tr '\0' '['; head -c 600 /dev/zero | tr '\0' ']'; echo '}'`, code: 7, status: "failed", why: "deep"},
		"two-values":         {script: `echo '{"type":"log","text":"a"}{}'`, code: 7, status: "failed", why: "follows"},
		"infinite-money":     {script: step + `echo '{"type":"result","id":1,"result":1,"usage":{"cost":"1e400"}}'`, code: 7, status: "failed", why: "usage.cost"},
		"two-ends":           {script: over + over, code: 7, status: "failed", why: "after the end"},
		"wrong-id":           {script: `echo '{"type":"result","id":7,"result":1}'; ` + linger, code: 7, status: "failed", why: "unknown id"},
	}
}

func TestEvilAgents(t *testing.T) {
	t.Parallel()
	settings := map[string]string{"never-ends": "limits: {deadline: 1s}", "never-ends-in-step": "limits: {deadline: 1s}", "ignores-term": "limits: {deadline: 1s}", "too-long": "limits: {wall: 1s}", "idle": "limits: {idle: 1s}"}
	for name, e := range evils() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mark := mark(t)
			s := scripted(t, map[string]string{name: settings[name] + " | " + strings.ReplaceAll(e.script, "MARK", mark)})
			if e.within == 0 {
				e.within = 10 * time.Second
			}
			r := s.run("run", name)
			if r.code != e.code || r.took > e.within || driving(r.out+r.talk) != "" {
				t.Errorf("want exit status %d within %v: %s", e.code, e.within, r)
			}
			v := s.list()[0]
			why := v.Reason
			if v.Waiting != nil {
				why += " " + v.Waiting.For + " " + v.Waiting.What
			}
			if v.Status != e.status || !strings.Contains(why, e.why) || len(why) > 4000 {
				t.Errorf("it is %s: %q, want %s: %q", v.Status, why, e.status, e.why)
			}
			if !strings.Contains(s.must("logs", name+"-"+v.Name[len(name)+1:]), e.why) {
				t.Errorf("its log does not say why:\n%s", s.must("logs", v.ID))
			}
			s.sound(newAcks())
			gone(t, mark)
		})
	}
}

// mark is a number that no other test has in its command lines.
func mark(t *testing.T) string {
	return fmt.Sprintf("%d.%d", os.Getpid(), random(t).Uint64())
}

// gone waits until no process has the mark in its command line.
func gone(t *testing.T, mark string) {
	t.Helper()
	if !soon(5*time.Second, func() bool { return len(marked(mark)) == 0 }) {
		t.Errorf("five seconds after the end there are left: %q", marked(mark))
	}
}

func marked(mark string) (found []string) {
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range all {
		b, err := os.ReadFile(path)
		if err == nil && strings.Contains(string(b), mark) {
			found = append(found, path+": "+strings.ReplaceAll(string(b), "\x00", " "))
		}
	}
	return found
}

// A kill ends an agent that takes no notice of signals, with those that it sent
// away.
func TestKillTheUnwilling(t *testing.T) {
	t.Parallel()
	mark := mark(t)
	s := scripted(t, map[string]string{"deaf": ` | trap '' TERM INT HUP; (setsid sh -c 'trap "" TERM; (sleep 9` + mark + ` &) & sleep 9` + mark + `' &); echo '{"type":"log","text":"ready"}'; while :; do sleep 9` + mark + `; done`})
	p := s.start(s.command(bin.stint, "run", "deaf"))
	eventually(t, "the agent runs", patience, func() bool { return strings.Contains(p.talk.String()+p.out.String(), "ready") })
	if r := s.run("kill", "@last", "--reason", "enough"); r.code != 0 {
		t.Errorf("%s", r)
	}
	if r := p.wait(10 * time.Second); r.code != 7 {
		t.Errorf("%s", r)
	}
	if v := s.list()[0]; v.Status != "canceled" || !strings.Contains(v.Reason, "enough") {
		t.Errorf("it is %s: %s", v.Status, v.Reason)
	}
	s.sound(newAcks())
	gone(t, mark)
}

// What an agent floods stint with is bounded in memory and on disk.
func TestFloods(t *testing.T) {
	t.Parallel()
	mib := size(200, 2000)
	bytes := fmt.Sprint(mib << 20)
	long := `head -c ` + bytes + ` /dev/zero | tr '\0' x`
	lines := `yes 0123456789012345678901234567890123456789012345678901234567890123456789 | head -c ` + bytes
	for name, c := range map[string]struct {
		args   []string
		script string // of the agent
		code   int
		why    string
		rss    int // MiB
	}{
		"lines":           {args: []string{"run", "-q", "--", "sh", "-c", lines}, rss: 100},
		"one line":        {args: []string{"run", "-q", "--", "sh", "-c", long}, rss: 100},
		"on stderr":       {args: []string{"run", "-q", "--", "sh", "-c", long + " >&2"}, rss: 100},
		"protocol":        {args: []string{"run", "-q", "a"}, script: `yes '{"type":"log","text":"01234567890123456789012345678901234567890123456789"}' | head -n ` + fmt.Sprint(mib<<20/1000) + `; ` + over, rss: 100},
		"protocol stderr": {args: []string{"run", "-q", "a"}, script: lines + ` >&2; ` + over, rss: 100},
		"endless line":    {args: []string{"run", "-q", "a"}, script: long, code: 7, why: "a line is longer than", rss: 200},
		"endless string":  {args: []string{"run", "-q", "a"}, script: `printf '{"type":"log","text":"'; ` + long + `; echo '"}'; ` + over, code: 7, why: "a line is longer than", rss: 200},
	} {
		t.Run(name, func(t *testing.T) {
			s := scripted(t, map[string]string{"a": " | " + c.script})
			cmd := s.command(bin.stint, c.args...)
			code, peak := peakOf(t, cmd)
			t.Logf("%d MiB, at most %d MiB of memory", mib, peak)
			if code != c.code || peak > c.rss || peak < 5 {
				t.Errorf("exit status %d, want %d; it had %d MiB of memory, at most %d are right", code, c.code, peak, c.rss)
			}
			v := s.list()[0]
			if !strings.Contains(v.Reason, c.why) {
				t.Errorf("it is %s: %s", v.Status, v.Reason)
			}
			log := s.must("logs", v.ID)
			if c.why == "" && !strings.Contains(log, "bytes of output are not logged") && !strings.Contains(log, "bytes cut]") {
				t.Errorf("the log does not say that something is left out:\n%s", clip(log))
			}
			for _, name := range []string{s.store(), s.store() + "-wal"} {
				if info, err := os.Stat(name); err == nil && info.Size() > 16<<20 {
					t.Errorf("%s has %d bytes", name, info.Size())
				}
			}
			s.sound(newAcks())
		})
	}
}

// peakOf runs a command, whose output nobody wants, to its end, and returns the
// most memory that it had, in MiB.
func peakOf(t *testing.T, cmd *exec.Cmd) (code, peak int) {
	t.Helper()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for until := time.Now().Add(4 * patience); ; {
		select {
		case <-done:
			return cmd.ProcessState.ExitCode(), peak
		case <-tick.C:
		}
		peak = max(peak, highWater(cmd.Process.Pid))
		if time.Now().After(until) {
			_ = cmd.Process.Kill()
			t.Fatalf("%q does not end", cmd.Args)
		}
	}
}

// highWater is the most memory that a process has had, in MiB.
func highWater(pid int) int {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, rest, _ := strings.Cut(string(b), "VmHWM:")
	kib, _ := strconv.Atoi(strings.TrimSpace(strings.Split(rest, "kB")[0]))
	return kib >> 10
}
