package llm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/tool"
)

// readName is the tool that reads what an excerpt leaves out.
const readName = "read_result"

// readRoom is what the line above a piece takes at most, in bytes.
const readRoom = 200

// reader is the tool as it is offered; each loop has its own caller.
func reader() tool.Tool {
	return tool.Tool{
		Name: readName, Effect: stint.Read, Parallel: true, Approve: tool.Never, Source: "builtin",
		Description: "Read a piece of an earlier result that was shown as an excerpt.",
		Schema: json.RawMessage(`{"type":"object","properties":{"call":{"type":"string","description":"the call whose result it is"},` +
			`"offset":{"type":"integer","minimum":0,"description":"the byte to begin at; 0 if left out"},` +
			`"length":{"type":"integer","minimum":1,"description":"how many bytes; as many as fit if left out"}},"required":["call"],"additionalProperties":false}`),
		Caller: tool.CallerFunc(func(context.Context, tool.Call) (tool.Output, error) {
			return tool.Output{}, stint.Definite(errors.New("nothing can be read here"))
		}),
	}
}

// readHow follows "to read it, ".
func readHow(call string) string {
	return fmt.Sprintf(`call %s with {"call":%q} and an offset in bytes`, readName, call)
}

// remember keeps where the result of a call lies.
func (p *pass) remember(call string, sub int) {
	at := long{Call: call, Line: p.ses.At.Line, Loop: p.ses.At.Loop, Step: p.step, Sub: sub}
	p.mem.Long = slices.DeleteFunc(slices.Clone(p.mem.Long), func(l long) bool { return l.Call == call })
	p.mem.Long = append(p.mem.Long, at)
	p.mem.Long = p.mem.Long[max(0, len(p.mem.Long)-maxLong):]
}

// lookback is implemented by loops that can read what an earlier step gave; its method
// may be called from any goroutine while Loop runs.
type lookback interface {
	Outcome(ctx context.Context, at stint.Position) (json.RawMessage, error)
}

// readResult is the call of read_result.
func (p *pass) readResult(ctx context.Context, c tool.Call) (tool.Output, error) {
	args, err := tool.ReadArgs(c.Args)
	if err != nil {
		return tool.Output{}, stint.Definite(err)
	}
	i := slices.IndexFunc(p.mem.Long, func(l long) bool { return l.Call == args.Text("call") })
	if i < 0 {
		return tool.Errorf("%s: no result of call %.60q was shown as an excerpt, or it was too long ago", readName, args.Text("call")), nil
	}
	back, ok := p.l.(lookback)
	if !ok {
		return tool.Errorf("%s: earlier results cannot be read here", readName), nil
	}
	data, err := back.Outcome(ctx, p.mem.Long[i].position())
	if errors.Is(err, stint.NotFound) {
		return tool.Errorf("%s: the result is not there any more", readName), nil
	}
	if err != nil {
		return tool.Output{}, err
	}
	return tool.Output{Text: piece(whole(data), number(args, "offset", 0), number(args, "length", math.MaxInt), p.a.spec.Context.Excerpt-readRoom)}, nil
}

// whole is the text that the excerpt was made of.
func whole(data json.RawMessage) string {
	c := planned{}
	out, _ := c.output(data)
	if out.Error {
		return errorText(out.Text)
	}
	return out.Text
}

// number is an argument that the schema has checked; what no int holds is a very large one.
func number(args tool.Args, name string, otherwise int) int {
	if !args.Has(name) {
		return otherwise
	}
	f, err := strconv.ParseFloat(args.Text(name), 64)
	if err != nil || f >= 1<<53 {
		return math.MaxInt
	}
	return int(f)
}

// piece is at most limit bytes of text with a line that says which; no character is cut.
func piece(text string, offset, length, limit int) string {
	if offset >= len(text) {
		return fmt.Sprintf("[stint: the result has %d bytes; nothing is at %d or behind it]", len(text), offset)
	}
	for !utf8.RuneStart(text[offset]) {
		offset++
		if offset == len(text) {
			return fmt.Sprintf("[stint: the result has %d bytes; nothing is at %d or behind it]", len(text), offset)
		}
	}
	end := offset + min(length, limit, len(text)-offset)
	for end < len(text) && end > offset && !utf8.RuneStart(text[end]) {
		end--
	}
	if end == offset { // shorter than the one character there
		_, n := utf8.DecodeRuneInString(text[offset:])
		end = offset + n
	}
	more := "this is its end"
	if end < len(text) {
		more = fmt.Sprintf("go on with offset %d", end)
	}
	return fmt.Sprintf("[stint: bytes %d to %d of %d; %s]\n%s", offset, end, len(text), more, text[offset:end])
}
