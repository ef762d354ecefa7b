package exec_test

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"strconv"
)

// program is what the test binary does when it is started as an agent.
func program(name string, args []string) int {
	n := 0
	if len(args) > 0 {
		n, _ = strconv.Atoi(args[0])
	}
	in := bufio.NewReader(os.Stdin)
	switch name {
	case "lines": // n bytes in lines of 64
		flood(os.Stdout, n, []byte("0123456789abcdefghijklmnopqrstuvwxyz \x1b[31mred\x1b[0m \xff\xfe and more\n"))
	case "oneline": // n bytes without a newline
		flood(os.Stdout, n, bytes.Repeat([]byte("x"), 64))
	case "stderr":
		flood(os.Stderr, n, []byte("0123456789012345678901234567890123456789012345678901234567890123456789\n"))
	case "big-result": // a step whose result has n bytes
		_, _ = in.ReadString('\n')
		fmt.Fprintln(os.Stdout, `{"type":"step","id":1,"name":"big","effect":"read"}`)
		_, _ = in.ReadString('\n')
		out := bufio.NewWriterSize(os.Stdout, 1<<20)
		fmt.Fprint(out, `{"type":"result","id":1,"result":"`)
		flood(out, n, bytes.Repeat([]byte("y"), 64))
		fmt.Fprintln(out, `"}`)
		fmt.Fprintln(out, `{"type":"end","outcome":"complete"}`)
		if out.Flush() != nil {
			return 1
		}
		_, _ = in.ReadString('\n')
	case "log-flood": // n bytes of log messages
		_, _ = in.ReadString('\n')
		flood(os.Stdout, n, []byte(`{"type":"log","text":"0123456789abcdefghijklmnopqrstuvwxyz"}`+"\n"))
		fmt.Fprintln(os.Stdout, `{"type":"end","outcome":"complete"}`)
	case "garbage": // n bytes of the protocol's worst
		flood(os.Stdout, n, []byte("{]\x00\n"))
	default:
		return 99
	}
	return 0
}

type writer interface{ Write(p []byte) (int, error) }

func flood(w writer, n int, piece []byte) {
	block := bytes.Repeat(piece, 1+(64<<10)/len(piece))
	for n > 0 {
		k, err := w.Write(block[:min(n, len(block))])
		if err != nil {
			os.Exit(1)
		}
		n -= k
	}
}
