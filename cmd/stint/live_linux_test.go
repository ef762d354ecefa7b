package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"github.com/stint-dev/stint/internal/term"
)

// seat is a person at a terminal, before the program.
type seat struct {
	d    *desk
	tty  *os.File
	seen buffer // all that the terminal was sent
	out  buffer // standard output, where it is no terminal
	over chan struct{}
	code int
}

// sit starts the program on a terminal of so many columns, in the desk's folder work;
// piped keeps its standard output from the terminal.
func (d *desk) sit(cols uint16, piped bool, env []string, args ...string) *seat {
	d.t.Helper()
	self, err := os.Executable()
	if err != nil {
		d.t.Fatal(err)
	}
	s := &seat{d: d, over: make(chan struct{})}
	cmd := exec.Command(self, args...)
	cmd.Dir = d.dir + "/site"
	cmd.Env = append([]string{"STINT_TEST_PROGRAM=1", "STINT_STORE=sqlite:" + d.path(), "TZ=UTC", "TERM=xterm", "HOME=" + d.dir, "PATH=" + os.Getenv("PATH")}, env...)
	if piped {
		cmd.Stdout = &s.out
	}
	if s.tty, err = pty.StartWithSize(cmd, &pty.Winsize{Rows: 50, Cols: cols}); err != nil {
		d.t.Fatal(err)
	}
	read := make(chan struct{})
	go func() {
		_, _ = io.Copy(&s.seen, s.tty) // ends when nobody has the terminal open
		close(read)
	}()
	go func() {
		_ = cmd.Wait()
		<-read
		s.code = cmd.ProcessState.ExitCode()
		close(s.over)
	}()
	d.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-s.over
		_ = s.tty.Close()
	})
	return s
}

func (s *seat) press(keys string) {
	s.d.t.Helper()
	if _, err := s.tty.WriteString(keys); err != nil {
		s.d.t.Fatal(err)
	}
}

// end waits until the program has ended, and returns what stands on the screen.
func (s *seat) end(code int, cols int) string {
	s.d.t.Helper()
	select {
	case <-s.over:
	case <-time.After(time.Minute):
		s.d.t.Fatalf("it does not end\n%q", s.seen.String())
	}
	if s.code != code {
		s.d.t.Errorf("exit status %d, want %d\n%q", s.code, code, s.seen.String())
	}
	return s.screen(cols)
}

// screen is what stands on the terminal. It knows what the program may send, and no more.
func (s *seat) screen(cols int) string {
	s.d.t.Helper()
	rows, r, c := []string{""}, 0, 0
	token := regexp.MustCompile("\x1b\\[[0-9;]*[A-Za-z]|[\\s\\S]")
	for _, tok := range token.FindAllString(s.seen.String(), -1) {
		n := 1
		switch {
		case tok == "\r":
			c = 0
		case tok == "\n":
			r++
		case strings.HasSuffix(tok, "A") && len(tok) > 2:
			_, _ = fmt.Sscan(tok[2:len(tok)-1], &n)
			r = max(r-n, 0)
		case tok == "\x1b[J":
			rows, rows[r] = rows[:r+1], term.Cut(rows[r], max(c, 1))
			if c == 0 {
				rows[r] = ""
			}
		case strings.HasSuffix(tok, "m") && len(tok) > 2:
		case driving(tok) != "":
			s.d.t.Errorf("the terminal gets %q", tok)
		default:
			if c == cols {
				r, c = r+1, 0
			}
			for len(rows) <= r {
				rows = append(rows, "")
			}
			rows[r] = term.Pad(rows[r], c, false) + tok
			c += term.Width(tok)
		}
		for len(rows) <= r {
			rows = append(rows, "")
		}
	}
	return strings.TrimRight(strings.Join(rows, "\n"), "\n")
}

// streams is a script whose model thinks, says what is longer than a line, calls a tool,
// and ends with what a terminal would act on.
const streams = `{"model": "demo-model", "steps": [
	{"delay": "700ms", "thought": "What may there be?", "text": "I look at the folder, and then I read what is in it, so that I can tell you about it in a few words.", "tools": [{"name": "list_files", "input": {"path": "."}}], "usage": {"input_tokens": 41000, "output_tokens": 200}},
	{"delay": "700ms", "text": "There is \u001b[31mred\u001b[0m in it.\n\nThat is all."}
]}`

func TestLiveView(t *testing.T) {
	t.Parallel()
	for _, cols := range []int{80, 40} {
		t.Run(fmt.Sprint(cols, " columns"), func(t *testing.T) {
			t.Parallel()
			d := promptDesk(t)
			d.lay("site/demo.json", streams)
			s := d.sit(uint16(cols), false, nil, "run", "-p", "what is here?", "--model", "script/demo.json", "--tools", "files", "--name", "p-1")
			screen := s.end(exitOK, cols)
			wrapped := "I look at the folder, and then I read what is in it, so that I can tell you\nabout it in a few words.\n"
			if cols == 40 {
				wrapped = "I look at the folder, and then I read\nwhat is in it, so that I can tell you\nabout it in a few words.\n"
			}
			for _, want := range []string{"What may there be?\n" + wrapped, "list_files", "\nThere is \\x1b[31mred\\x1b[0m in it.\n\nThat is all.\n", "stint: p-1 completed"} {
				if strings.Count(screen, want) != 1 && want != "list_files" || !strings.Contains(screen, want) {
					t.Errorf("%q stands on the screen %d times:\n%s", want, strings.Count(screen, want), screen)
				}
			}
			for line := range strings.Lines(screen) {
				if strings.HasPrefix(line, "loop ") {
					t.Errorf("what is redrawn is left behind: %s\n%s", line, screen)
				}
			}
			seen := s.seen.String()
			for _, want := range []string{"\x1b[2mloop 1 · ", "\x1b[2mloop 2 · model dem", "s · 41.2k tokens\x1b[0m", "\x1b[2mWhat may there be?\x1b[0m"} {
				if !strings.Contains(seen, want) {
					t.Errorf("%q was never drawn:\n%q", want, seen)
				}
			}
			for line := range strings.SplitSeq(regexp.MustCompile("\x1b\\[[0-9;]*[A-Za-z]").ReplaceAllString(seen, ""), "\n") {
				for part := range strings.SplitSeq(line, "\r") {
					if n := term.Width(part); strings.HasPrefix(part, "loop ") && n >= cols {
						t.Errorf("what is redrawn takes %d columns: %q", n, part)
					}
				}
			}
		})
	}
}

// What is no terminal gets lines and the text alone; what is one gets the rest.
func TestLiveViewOfPipes(t *testing.T) {
	t.Parallel()
	d := promptDesk(t)
	d.lay("site/demo.json", streams)
	s := d.sit(80, true, []string{"NO_COLOR=1"}, "run", "-p", "x", "--model", "script/demo.json", "--tools", "files")
	screen := s.end(exitOK, 80)
	if got, want := s.out.String(), "There is \x1b[31mred\x1b[0m in it.\n\nThat is all.\n"; got != want {
		t.Errorf("standard output is %q, want %q", got, want)
	}
	if !strings.Contains(screen, "\nThat is all.\n") || regexp.MustCompile(`\x1b\[[0-9;]*m`).MatchString(s.seen.String()) {
		t.Errorf("the terminal has %q", s.seen.String())
	}
	d.lay("site/stint.yaml", "agents:\n  reader: {kind: llm, model: script/demo.json, tools: [{files: {root: .}}]}\n")
	named := d.sit(80, true, nil, "run", "reader", "-p", "x")
	screen = named.end(exitOK, 80)
	if got := named.out.String(); !strings.Contains(got, "→ There is \\x1b[31mred\\x1b[0m in it.") || !strings.Contains(screen, "\nThat is all.\n") {
		t.Errorf("the log is\n%s\nthe screen is\n%s", got, screen)
	}
	quiet := d.sit(80, false, nil, "run", "-q", "-p", "x", "--model", "script/demo.json", "--tools", "files")
	if got, want := quiet.end(exitOK, 80), "There is \\x1b[31mred\\x1b[0m in it.\n\nThat is all."; got != want {
		t.Errorf("quietly, the screen is\n%s", got)
	}
	dumb := d.sit(80, false, []string{"TERM=dumb"}, "run", "-p", "x", "--model", "script/demo.json", "--tools", "files")
	if got := dumb.end(exitOK, 80); strings.Contains(dumb.seen.String(), "\x1b[") || !strings.Contains(got, "That is all.") {
		t.Errorf("a terminal that can do nothing gets %q", dumb.seen.String())
	}
}

// endless is a session that goes on until somebody ends it.
func endless() string {
	var steps []string
	for i := range 500 { // each with another call, and another error, in letters: the same ones again are a finding
		name := string([]byte{'a' + byte(i/26%26), 'a' + byte(i%26)})
		steps = append(steps, fmt.Sprintf(`{"delay": "300ms", "text": "Again.", "tools": [{"name": "read_file", "input": {"path": "%s"}}]}`, name))
	}
	return `{"model": "demo-model", "steps": [` + strings.Join(steps, ", ") + `]}`
}

const question = "stint: [p]ause, [s]top, [k]ill, or go on (Enter)? "

func TestInterruptAsks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, keys, word, status string
		code                     int
	}{
		{"pause", "p", "pause\nstint: it pauses at the end", "waiting", exitInterrupted},
		{"stop", "S", "stop\nstint: it stops at the end", "canceled", exitNotOK},
		{"kill", "k", "kill\n", "canceled", exitNotOK},
		{"what means nothing first", "xyzk", "kill\n", "canceled", exitNotOK},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := sitBefore(t, endless())
			s.press("\x03")
			s.seen.until(t, question)
			s.press(c.keys)
			screen := s.end(c.code, 80)
			if !strings.Contains(screen, question+c.word) {
				t.Errorf("it answers\n%s", screen)
			}
			if got := s.d.ok("show", "p-1", "--field", "status"); got != c.status+"\n" {
				t.Errorf("the session is %s", got)
			}
			if c.status == "waiting" {
				id := s.d.short("p-1")
				if !strings.Contains(screen, "\n  stint resume "+id+" --run") {
					t.Errorf("it does not say how to go on:\n%s", screen)
				}
			}
			s.restored()
		})
	}
}

// Enter goes on, and the next interrupt asks again; a second one in a row kills.
func TestInterruptGoesOn(t *testing.T) {
	t.Parallel()
	s := sitBefore(t, endless())
	s.press("\x03")
	s.seen.until(t, question)
	s.press("\r")
	s.seen.until(t, question+"go on")
	loops := strings.Count(s.seen.String(), "── loop ")
	s.seen.until(t, fmt.Sprintf("── loop %d ", loops+2))
	s.restored()
	s.press("\x03")
	s.listens()
	tick := time.NewTicker(2 * sameSignal)
	defer tick.Stop()
	for done := false; !done; {
		select {
		case <-s.over:
			done = true
		case <-tick.C:
			_, _ = s.tty.WriteString("\x03")
		}
	}
	s.end(exitNotOK, 80)
	if got := s.d.ok("show", "p-1", "--field", "status"); got != "canceled\n" {
		t.Errorf("the session is %s", got)
	}
	s.restored()
}

// A session that ends while the question stands takes it away.
func TestInterruptThatIsNotAnswered(t *testing.T) {
	t.Parallel()
	var s *seat
	for delay := 1500 * time.Millisecond; ; delay *= 4 {
		s = sitBefore(t, fmt.Sprintf(`{"steps": [{"delay": "%v", "text": "Over."}]}`, delay))
		s.press("\x03")
		if holds(&s.seen, question, s.over) || delay > time.Minute { // else the session was quicker than the machine
			break
		}
	}
	if screen := s.end(exitOK, 80); !strings.Contains(screen, "\nOver.\n") || !strings.Contains(s.seen.String(), question) {
		t.Errorf("the screen is\n%s", screen)
	}
	s.restored()
}

// Where the terminal goes away while the question stands, the session is given back.
func TestInterruptThenHangUp(t *testing.T) {
	t.Parallel()
	heard := make(chan os.Signal, 1)
	signal.Notify(heard, syscall.SIGHUP) // what is handled here is not ignored there, as under nohup it would be
	defer signal.Stop(heard)
	s := sitBefore(t, endless())
	s.press("\x03")
	s.seen.until(t, question)
	tick := time.NewTicker(2 * sameSignal) // a signal that soon is the same one
	defer tick.Stop()
	<-tick.C
	pid, err := unix.IoctlGetInt(int(s.tty.Fd()), unix.TIOCGPGRP)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	s.end(exitInterrupted, 80)
	if got := s.d.ok("show", "p-1", "--field", "status"); got != "pending\n" {
		t.Errorf("the session is %s", got)
	}
	s.restored()
}

// A terminal that is not the one of the process gives no keys: an interrupt then means
// what it means elsewhere.
func TestInterruptWithoutKeys(t *testing.T) {
	t.Parallel()
	d := promptDesk(t)
	d.lay("site/demo.json", endless())
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	screen, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer screen.Close()
	var seen buffer
	read := make(chan struct{})
	go func() {
		_, _ = io.Copy(&seen, screen)
		close(read)
	}()
	cmd := exec.Command(self, "run", "-p", "x", "--model", "script/demo.json", "--tools", "files", "--name", "p-1")
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = d.dir+"/site", tty, tty, tty
	cmd.Env = []string{"STINT_TEST_PROGRAM=1", "STINT_STORE=sqlite:" + d.path(), "TERM=xterm", "HOME=" + d.dir, "PATH=" + os.Getenv("PATH")}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := errors.Join(cmd.Start(), tty.Close()); err != nil {
		t.Fatal(err)
	}
	seen.until(t, "loop 1 · ")
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	<-read
	if got := seen.String(); cmd.ProcessState.ExitCode() != exitInterrupted || strings.Contains(got, question) || !strings.Contains(got, "stint: finishing the step under way; once more to kill it\r\n") {
		t.Errorf("exit status %d\n%q", cmd.ProcessState.ExitCode(), got)
	}
}

// sitBefore runs a session of a script until it is under way.
func sitBefore(t *testing.T, script string) *seat {
	t.Helper()
	d := promptDesk(t)
	d.lay("site/demo.json", script)
	s := d.sit(80, false, nil, "run", "-p", "x", "--model", "script/demo.json", "--tools", "files", "--name", "p-1", "--loops", "1000")
	s.seen.until(t, "loop 1 · ")
	return s
}

// listens waits until the program takes keys as they come.
func (s *seat) listens() {
	s.modes(func(lflag uint32) bool { return lflag&unix.ICANON == 0 }, "listens to no key")
}

// restored waits until the terminal is as a shell wants it.
func (s *seat) restored() {
	s.modes(func(lflag uint32) bool { return lflag&unix.ICANON != 0 && lflag&unix.ECHO != 0 }, "is left as it is for single keys")
}

func (s *seat) modes(ok func(uint32) bool, what string) {
	s.d.t.Helper()
	tick, late := time.NewTicker(time.Millisecond), time.After(time.Minute)
	defer tick.Stop()
	for {
		now, err := unix.IoctlGetTermios(int(s.tty.Fd()), unix.TCGETS)
		if err == nil && ok(now.Lflag) {
			return
		}
		select {
		case <-tick.C:
		case <-late:
			s.d.t.Fatalf("the terminal %s: %v", what, err)
		}
	}
}
