// Command tool is a tool with a countable effect, and with outputs that agents met. The
// line of an effect is its tool, its key and its arguments. As mcp it is a server of tools.
package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

func main() { os.Exit(run(context.Background(), os.Args[1])) }

func run(ctx context.Context, name string) int {
	if name == "mcp" {
		return serve(ctx, os.Args[2], os.Args[3:])
	}
	in, err := io.ReadAll(os.Stdin)
	var args struct {
		N    int
		Unit string
	}
	if err == nil {
		err = json.Unmarshal(in, &args)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	switch name {
	case "effect":
		return effect(in)
	case "echo":
		_, _ = os.Stdout.Write(in)
	case "fail":
		fmt.Fprintln(os.Stderr, "it cannot be done")
		return 1
	case "big":
		_, _ = io.WriteString(os.Stdout, strings.Repeat(cmp.Or(args.Unit, "x"), args.N))
	case "nul":
		fmt.Print("before\x00after \xed\xa0\xbd lone, tab\t, esc\x1b[31m, bell\a, 😀, literal \\u0000")
	case "bigint":
		fmt.Print(bigints)
	}
	return 0
}

// bigints are numbers that a reader with 64-bit floats would change.
const bigints = `{"id": 2512292042121000001, "neg": -9223372036854775808, "u64": 18446744073709551615}`

// effect writes the line, between two pauses. That it began is in a file beside the log.
func effect(in []byte) int {
	log := os.Getenv("EFFECT_LOG")
	if err := appendLine(log+".begun", []byte(os.Getenv("STINT_IDEMPOTENCY_KEY")+"\n")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	pause("EFFECT_SLEEP_BEFORE")
	var line bytes.Buffer
	fmt.Fprintf(&line, "%s %s ", os.Getenv("STINT_TOOL"), os.Getenv("STINT_IDEMPOTENCY_KEY"))
	if err := json.Compact(&line, in); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	line.WriteByte('\n')
	if err := appendLine(log, line.Bytes()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	pause("EFFECT_SLEEP_AFTER")
	fmt.Print("done")
	return 0
}

// pause waits as long as a variable says, unless there is a file beside the log that
// says otherwise.
func pause(name string) {
	if _, err := os.Stat(os.Getenv("EFFECT_LOG") + ".quick"); err == nil {
		return
	}
	if d, err := time.ParseDuration(os.Getenv(name)); err == nil {
		<-time.After(d)
	}
}

func appendLine(path string, line []byte) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if _, err := f.Write(line); err != nil {
		return err
	}
	return f.Close()
}

// serve is a server of tools on the standard streams. That it was started, and with
// what, is a line in a file.
func serve(ctx context.Context, file string, args []string) int {
	if err := appendLine(file, fmt.Appendf(nil, "%q DEBUG=%s\n", args, os.Getenv("DEBUG"))); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	s := sdk.NewServer(&sdk.Implementation{Name: "files", Version: "1"}, nil)
	s.AddTool(&sdk.Tool{Name: "look", Description: "Looks.", InputSchema: json.RawMessage(`{"type":"object"}`)},
		func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "looked"}}}, nil
		})
	if err := s.Run(ctx, &sdk.StdioTransport{}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}
