package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/stint-dev/stint"
	"github.com/stint-dev/stint/tool"
)

// Names in the _meta of a call.
const (
	MetaKey     = "idempotency_key"   // the idempotency key of the step
	MetaEpoch   = "stint.dev/epoch"   // the fencing token, which only rises
	MetaSession = "stint.dev/session" // the session's id
)

var _ tool.Caller = (*caller)(nil)

// caller is one tool of a server.
type caller struct {
	server   *Server
	name     string
	accepted Pin // by who has the tool
}

// Call implements [tool.Caller].
func (c *caller) Call(ctx context.Context, call tool.Call) (tool.Output, error) {
	s := c.server
	if s.spec.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, s.spec.Timeout, fmt.Errorf("its time of %v was up", s.spec.Timeout))
		defer cancel()
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	defer context.AfterFunc(s.life, func() { stop(errClosed) })()
	l, err := s.take(ctx)
	if err != nil {
		return tool.Output{}, tool.NotBegun(err)
	}
	unanswered := false
	defer func() { s.giveBack(l, unanswered) }()
	if err := c.unchanged(ctx, l); err != nil {
		return tool.Output{}, err
	}
	if ctx.Err() != nil {
		return tool.Output{}, tool.NotBegun(context.Cause(ctx))
	}
	args := call.Args
	if len(args) == 0 {
		args = json.RawMessage("{}")
	}
	params := &mcp.CallToolParams{Name: c.name, Arguments: args, Meta: mcp.Meta{MetaEpoch: call.Epoch}}
	if call.Key != "" {
		params.Meta[MetaKey] = call.Key
	}
	if !call.Session.IsZero() {
		params.Meta[MetaSession] = call.Session.String()
	}
	res, err := l.session.CallTool(ctx, params)
	if err != nil {
		var out tool.Output
		out, unanswered, err = c.failed(ctx, l, err)
		return out, err
	}
	s.mu.Lock()
	s.deaths = 0
	s.mu.Unlock()
	return c.output(res), nil
}

// unchanged tells whether the tool is still the one that was accepted: what the model
// read of it is what it gets.
func (c *caller) unchanged(ctx context.Context, l *link) error {
	s := c.server
	tools, err := s.current(ctx, l)
	if err != nil {
		return tool.NotBegun(s.unavailable(err))
	}
	one := func(all map[string]Definition) map[string]Definition {
		if d, ok := all[c.name]; ok {
			return map[string]Definition{c.name: d}
		}
		return nil
	}
	was := c.accepted
	was.Tools = one(was.Tools)
	if err := s.compare(was, pinOf(s.spec, one(tools))); err != nil {
		return stint.Definite(err)
	}
	return nil
}

// failed says what an error of a call leaves behind, and whether the server still owes an
// answer.
func (c *caller) failed(ctx context.Context, l *link, err error) (out tool.Output, unanswered bool, _ error) {
	s := c.server
	var answer *jsonrpc.Error
	var refused *refusal
	switch {
	case ctx.Err() != nil:
		return out, true, fmt.Errorf("%s was called, and nobody knows with what outcome: %w", c.name, context.Cause(ctx))
	case errors.As(err, &refused) && refused.busy():
		return out, false, tool.NotBegun(stint.Retry(refused.after, s.unavailable(refused)))
	case errors.As(err, &refused):
		return out, false, stint.Definite(s.unavailable(refused))
	case errors.As(err, new(notSent)):
		return out, false, tool.NotBegun(s.unavailable(fmt.Errorf("it cannot be reached: %w", err)))
	case errors.As(err, &answer) && !ownCode(answer.Code):
		return tool.Errorf("%s", tool.Redact(fmt.Sprintf("the server refused the call: %s (code %d)", answer.Message, answer.Code), s.secrets)), false, nil
	}
	how := err.Error()
	if l.program != nil {
		how = l.program.epitaph()
	}
	return out, true, s.unavailable(fmt.Errorf("%s was called, and the connection ended before it answered: %s", c.name, how))
}

// ownCode reports the codes that the SDK makes itself when a connection ends. A server
// that sends one is taken for one that did not answer.
func ownCode(code int64) bool { return code >= -32005 && code <= -32003 }

// output makes an output of a result.
func (c *caller) output(res *mcp.CallToolResult) tool.Output {
	s := c.server
	keep := tool.NewKeep(s.spec.MaxOutput)
	for i, content := range res.Content {
		if i > 0 {
			_, _ = keep.Write([]byte("\n"))
		}
		_, _ = keep.Write([]byte(contentText(content)))
	}
	out := tool.Output{Error: res.IsError}
	if raw, ok := res.Meta[metaStructured].(string); ok && raw != "null" {
		raw = tool.Redact(raw, s.secrets)
		out.Data = tool.JSON([]byte(raw))
		if len(res.Content) == 0 {
			_, _ = keep.Write([]byte(raw))
		}
	}
	if res.NeedsInput() {
		out.Error = true
		_, _ = keep.Write([]byte("the server asked for something back before it goes on, and stint does not answer servers; the call is not done"))
	}
	out.Text = keep.Capped().Text()
	if n, ok := res.Meta[metaReplaced].(string); ok {
		if count, err := strconv.Atoi(n); err == nil {
			out.Text = tool.Noted(out.Text, count)
		}
	}
	out.Text = tool.Redact(out.Text, s.secrets)
	return out
}

// contentText is one part of a result as text. What is no text is named.
func contentText(content mcp.Content) string {
	named := func(what, kind string, size int) string {
		return fmt.Sprintf("[%s %s, %d bytes; it is no text and not shown]", what, strings.TrimSpace(kind), size)
	}
	switch c := content.(type) {
	case *mcp.TextContent:
		return c.Text
	case *mcp.ImageContent:
		return named("image", c.MIMEType, len(c.Data))
	case *mcp.AudioContent:
		return named("audio", c.MIMEType, len(c.Data))
	case *mcp.ResourceLink:
		return fmt.Sprintf("[resource %s: %s %s]", c.Name, c.URI, c.MIMEType)
	case *mcp.EmbeddedResource:
		switch r := c.Resource; {
		case r == nil:
			return "[an empty resource]"
		case r.Blob != nil:
			return named("resource "+r.URI, r.MIMEType, len(r.Blob))
		default:
			return fmt.Sprintf("[resource %s]\n%s", r.URI, r.Text)
		}
	}
	return fmt.Sprintf("[a part of a kind that is not known here: %T]", content)
}
