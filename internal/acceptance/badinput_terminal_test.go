//go:build linux

package acceptance_test

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// drives is a script that writes what a terminal could act on wherever an agent can
// write: its log, its steps, its state, its headline, its result, its reason.
const drives = `printf 'err \033]0;pwned\007\033[2J\302\233\377\342\200\256\r\b\n' >&2
bad='n\u001b]0;pwned\u0007\u001b[2J\u009b\u202e\u2066\u2028\u007f\u200f\r'
raw=$(printf '\302\233\342\200\256\342\201\246\342\200\250\177\342\200\217')
printf '{"type":"log","level":"error","text":"%s %s"}\n' "$bad" "$raw"
printf '{"type":"progress","text":"%s %s"}\n' "$bad" "$raw"
printf '{"type":"step","id":1,"name":"%s %s","effect":"once","input":{"%s":"%s"}}\n' "$bad" "$raw" "$bad" "$raw"; read -r go
printf '{"type":"result","id":1,"error":"%s %s","definite":true}\n' "$bad" "$raw"
printf '{"type":"state","replace":{"%s":"%s"}}\n' "$bad" "$raw"
`

// terminal starts a command on a terminal of its own, as a person sees it, and
// returns what it shows.
func (s *site) terminal(args ...string) string {
	s.t.Helper()
	text, _ := s.typed("", args...)
	return text
}

// typed is terminal for a person who types this, and also returns the exit status.
func (s *site) typed(keys string, args ...string) (text string, code int) {
	s.t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		s.t.Fatal(err)
	}
	defer master.Close()
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(int(master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 50, Col: 120})
	}
	if err != nil {
		s.t.Fatal(err)
	}
	slave, err := os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		s.t.Fatal(err)
	}
	defer slave.Close()
	shown := make(chan string, 1)
	end := "-- end of " + s.t.Name() + " --"
	go func() {
		var all strings.Builder
		for b := make([]byte, 64<<10); !strings.Contains(all.String(), end); {
			n, err := master.Read(b)
			all.Write(b[:n])
			if err != nil {
				break
			}
		}
		shown <- all.String()
	}()
	cmd := s.command(bin.stint, args...)
	cmd.Env = append(cmd.Env, "TERM=xterm-256color")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	if _, err := master.WriteString(keys); err != nil {
		s.t.Fatal(err)
	}
	_ = cmd.Run() // what it shows is what matters
	if _, err := slave.WriteString(end); err != nil {
		s.t.Fatal(err)
	}
	text = <-shown
	return strings.TrimSuffix(strings.ReplaceAll(text, "\r\n", "\n"), end), cmd.ProcessState.ExitCode()
}

// plain takes out what stint itself draws with: colours, and in the line that a
// verification writes over, the erasing of it.
func plain(text string) string {
	for _, own := range []string{"\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[34m", "\x1b[36m", "\r\x1b[K"} {
		text = strings.ReplaceAll(text, own, "")
	}
	return text
}

// Nothing that an agent or a person wrote acts on the terminal of whoever looks at
// it, in no command, whether its output is a terminal or a pipe.
func TestTerminalIsSafe(t *testing.T) {
	t.Parallel()
	s := scripted(t, map[string]string{
		"ends":   " | " + drives + `printf '{"type":"end","outcome":"complete","headline":"%s %s","reason":"%s %s","result":"%s"}\n' "$bad" "$raw" "$bad" "$raw" "$raw"`,
		"fails":  " | " + drives + `printf '{"type":"end","outcome":"fail","headline":"%s %s","reason":"%s %s"}\n' "$bad" "$raw" "$bad" "$raw"`,
		"waits":  " | " + drives + `printf '{"type":"end","outcome":"wait","headline":"%s %s","wait":{"for":"message","what":"%s %s"}}\n' "$bad" "$raw" "$bad" "$raw"`,
		"breaks": " | " + drives + `printf 'not JSON: \033]0;pwned\007\302\233\342\200\256\n'`,
	})
	const evil = "n\x1b]0;pwned\x07\x1b[2J\u009b\u202e\u2066\u2028\x7f\u200f\rZ"
	s.file("prompt", evil+"\xff\x00\x9b")
	var lines [][]string
	for name, code := range map[string]int{"ends": 0, "fails": 7, "waits": 6, "breaks": 7} {
		r := s.run("run", name, "--name", name, "-q", "-f", "prompt")
		if r.code != code {
			t.Fatalf("%s", r)
		}
		for _, line := range []string{"show S", "show S --all --lines 99", "show S --json", "show S --field labels", "show S --field reason", "logs S", "logs S -x --content", "logs S --content --json", "logs S -o jsonl", "logs S -o cat", "wait S", "wait S --json",
			"verify S", "export S", "restart S --from 0 --dry-run", "agent diff S"} {
			args := strings.Fields(line)
			for i := range args {
				if args[i] == "S" {
					args[i] = name
				}
			}
			lines = append(lines, args)
		}
	}
	s.must("send", "waits", evil)
	s.must("pause", "waits", "--reason", evil)
	for _, line := range []string{"ps -a", "ps -a -o wide", "ps -a --json", "ps", "verify --all", "agent ls", "agent show ends", "sql|select * from v_sessions", "sql|select * from v_entries", "sql|select * from v_steps|-o|csv", "sql|select * from v_loops|--json", "db size", "resume waits --run", "run waits --name waits-2", "run fails --name fails-2", "run ends --name ends-2 --json"} {
		if strings.Contains(line, "|") {
			lines = append(lines, strings.Split(line, "|"))
			continue
		}
		lines = append(lines, strings.Fields(line))
	}
	lines = append(lines, []string{"show", evil}, []string{"logs", "ends", "-k", evil}, []string{"run", evil}, []string{"start", "ends", "--name", evil}, []string{"start", "ends", "-l", "team=" + evil})
	said := 0
	for _, args := range lines {
		piped := s.run(args...)
		if bad := driving(piped.out + strings.ReplaceAll(piped.talk, "\\r", "")); bad != "" {
			t.Errorf("%s gets through: %s", bad, piped)
		}
		shown := s.terminal(args...)
		if bad := driving(plain(shown)); bad != "" {
			t.Errorf("on a terminal %s gets through: stint %q\n%q", bad, args, clip(shown))
		}
		if shown == "" {
			t.Errorf("stint %q shows nothing on a terminal", args)
		}
		said += strings.Count(piped.out+shown, "pwned")
	}
	if shown := s.terminal("show", "ends", "--state"); driving(plain(shown)) != "" {
		t.Errorf("on a terminal the state shows %q", shown)
	}
	if said < 100 {
		t.Errorf("only %d of what should be shown is", said)
	}
	if raw := s.must("logs", "ends", "-o", "cat", "--raw"); !strings.Contains(raw, "\x1b]0;pwned\x07") {
		t.Errorf("--raw shows %q", raw)
	}
}
